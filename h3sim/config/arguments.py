"""Kinds of arguments that the functions of studies share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from h3sim.errors import InputError, ValidationIssue
from h3sim.schema import format_value, join_words
from h3sim.schema.arguments import CALLABLE, PATH, Predicate, check_arguments
from h3sim.schema.values import Choice, Flag, Number, OrNone, ValueType, Whole

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


LEVEL = Number(low=0, high=1, is_above=True, is_below=True)
"""A confidence, a level of significance, a power."""
NETWORKS = Predicate(
    "a list of names",
    lambda value: isinstance(value, list | tuple) and all(isinstance(name, str) for name in value),
)
"""Networks, one after the other."""
SEED = Whole(low=0, high=2**63 - 1, hint="2^63 - 1")
"""What random numbers may begin with."""
SAMPLING = Choice(("latin-hypercube", "sobol"))
"""How samples are drawn."""
N_SAMPLES = Whole(low=1, high=10**6)
"""How many."""
SAMPLE_MS = OrNone(Number(low=0, high=1e9, is_above=True), none=None)
"""How often progress is sampled; None for the integral itself."""


_RUNNING: dict[str, ValueType] = {
    "store": OrNone(PATH),
    "executor": Predicate(
        "'serial', 'processes', a concurrent.futures.Executor or a dask.distributed client",
        lambda value: (
            value is None
            or (isinstance(value, str) and value in ("serial", "processes"))
            or (hasattr(value, "submit") and not isinstance(value, type))
        ),
    ),
    "workers": OrNone(Whole(low=1)),
    "retry_failed": Flag(),
    "progress": Predicate(
        "something that can be called, or True or False",
        lambda value: value is None or isinstance(value, bool) or callable(value),
    ),
}


def check_running(**given: object) -> dict[str, Any]:
    """Return how a study is to be run, as `sweep` takes it: *given* some of those arguments.

    Raises:
        InputError: listing every one that cannot be.
    """
    taken = {key: (_RUNNING[key], value) for key, value in given.items()}
    return check_arguments(InputError, **taken)


def check_known(**given: tuple[object, Iterable[object]]) -> None:
    """Refuse what is none of those that there are: each is *given* as a value, and those.

    Raises:
        InputError: for each that is not.
    """
    problems = []
    for key, (value, values) in given.items():
        known = list(dict.fromkeys(values))
        if value not in known:
            there = join_words(map(str, known), near=value)
            problems.append(
                ValidationIssue(
                    key=key, message=f"none is {format_value(value)}; there are {there}"
                )
            )
    if problems:
        raise InputError(problems)


def check_progress(progress: object) -> None:
    """Refuse what cannot be told of progress.

    Raises:
        InputError: if it is something, and cannot be called.
    """
    if progress is not None:
        check_arguments(InputError, progress=(CALLABLE, progress))


def check_some(**given: Sequence[object]) -> None:
    """Refuse what is empty.

    Raises:
        InputError: for each of *given* that has nothing.
    """
    problems = [
        ValidationIssue(key=key, message="at least one is needed")
        for key, values in given.items()
        if not values
    ]
    if problems:
        raise InputError(problems)
