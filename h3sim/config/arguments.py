"""Validators of arguments shared by the functions of studies."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from h3sim.errors import InputError, ValidationIssue
from h3sim.schema import format_value, join_words
from h3sim.schema.arguments import CALLABLE, PATH, Predicate, check_arguments
from h3sim.schema.values import Choice, Flag, Integer, Number, OrNone, ValueType

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


LEVEL = Number(low=0, high=1, is_above=True, is_below=True)
"""Confidence, significance level or power."""
NETWORKS = Predicate(
    "a list of names",
    lambda value: isinstance(value, list | tuple) and all(isinstance(name, str) for name in value),
)
"""List of networks."""
SEED = Integer(low=0, high=2**63 - 1, hint="2^63 - 1")
"""Random seed."""
SAMPLING = Choice(("latin-hypercube", "sobol"))
"""Sampling method."""
N_SAMPLES = Integer(low=1, high=10**6)
"""Number of samples."""
SAMPLE_MS = OrNone(Number(low=0, high=1e9, is_above=True), none=None)
"""Sampling interval of ByteIndex in ms; None for the exact integral."""


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
    "workers": OrNone(Integer(low=1)),
    "retry_failed": Flag(),
    "progress": Predicate(
        "a callable, True or False",
        lambda value: value is None or isinstance(value, bool) or callable(value),
    ),
}


def check_running(**given: object) -> dict[str, Any]:
    """Validate arguments of `sweep` that control how a study runs, and return them.

    Raises:
        InputError: listing every invalid argument.
    """
    taken = {key: (_RUNNING[key], value) for key, value in given.items()}
    return check_arguments(InputError, **taken)


def check_known(**given: tuple[object, Iterable[object]]) -> None:
    """Refuse unknown values: each argument is *given* as a value and its allowed values.

    Raises:
        InputError: with one issue per unknown value.
    """
    problems = []
    for key, (value, values) in given.items():
        known = list(dict.fromkeys(values))
        if value not in known:
            there = join_words(map(str, known), near=value)
            problems.append(
                ValidationIssue(
                    key=key, message=f"there is no {format_value(value)}; choose from {there}"
                )
            )
    if problems:
        raise InputError(problems)


def check_progress(progress: object) -> None:
    """Refuse a progress argument that is not callable.

    Raises:
        InputError: if it is neither None nor callable.
    """
    if progress is not None:
        check_arguments(InputError, progress=(CALLABLE, progress))


def check_some(**given: Sequence[object]) -> None:
    """Refuse empty sequences.

    Raises:
        InputError: with one issue per empty sequence.
    """
    problems = [
        ValidationIssue(key=key, message="at least one is needed")
        for key, values in given.items()
        if not values
    ]
    if problems:
        raise InputError(problems)
