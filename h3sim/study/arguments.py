"""What the functions of studies take: kinds of arguments that several of them share."""

from __future__ import annotations

from typing import TYPE_CHECKING

from h3sim.documents.arguments import CALLABLE, Only, check_arguments
from h3sim.documents.values import Choice, Number, Whole
from h3sim.errors import InputError, Problem

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = [
    "LEVEL",
    "NETWORKS",
    "N_SAMPLES",
    "SAMPLING",
    "SEED",
    "check_progress",
    "check_some",
]

LEVEL = Number(low=0, high=1, is_above=True, is_below=True)
"""A confidence, a level of significance, a power."""
NETWORKS = Only(
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
        Problem(key=key, message="at least one is needed")
        for key, values in given.items()
        if not values
    ]
    if problems:
        raise InputError(problems)
