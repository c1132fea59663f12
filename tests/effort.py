"""How hard the tests look: `make test` for minutes, `make test-thorough` for most of an hour.

`make test` looks at the same examples in every run, so that none comes by luck, where many things
are alike at some of them, and at fewer examples of laws whose examples take long.
`HYPOTHESIS_PROFILE=thorough` looks at all, at ten times as many examples of each law, or more, in
runs of states ten times as long, and at other examples each time: the seed is in the head of the
output, and `--hypothesis-seed` repeats them.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, TypeVar

from hypothesis import HealthCheck, settings

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["HANG_S", "IS_THOROUGH", "PROFILE", "law", "scaled", "some", "states"]

PROFILE = os.environ.get("HYPOTHESIS_PROFILE", "ci")
IS_THOROUGH = PROFILE == "thorough"
_TIMES = 10
HANG_S = 600
"""What takes longer hangs: what takes a second may take minutes where others have the processor."""

T = TypeVar("T")


def scaled(count: int) -> int:
    """Return *count*, ten times in a thorough run."""
    return _TIMES * count if IS_THOROUGH else count


def law(max_examples: int, *, usual: int | None = None) -> settings:
    """Return the settings of a law that is tried on so many examples.

    A thorough run tries ten times as many; `make test` tries no more than *usual* of one whose
    examples take long.
    """
    if usual is None or IS_THOROUGH:
        usual = scaled(max_examples)
    return settings(
        derandomize=not IS_THOROUGH,
        deadline=None,
        max_examples=usual,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
        print_blob=IS_THOROUGH,
    )


def states(max_examples: int, *, usual: int) -> settings:
    """Return the settings of a machine of 40 steps, which `make test` tries *usual* times.

    A thorough run tries it *max_examples* times, and steps are ten times as many.
    """
    calm = [*law(1).suppress_health_check, HealthCheck.large_base_example]
    return settings(
        law(max_examples),
        max_examples=max_examples if IS_THOROUGH else usual,
        stateful_step_count=scaled(40),
        suppress_health_check=calm,
    )


def some(few: Sequence[T], everything: Sequence[T]) -> list[T]:
    """Return *few*, which stand for all; in a thorough run *everything*."""
    return list(everything if IS_THOROUGH else few)
