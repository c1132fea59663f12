"""How much of a load a figure shows: all of it, or all but a late beacon."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from h3sim.documents import is_quantity, shown
from h3sim.documents.shown import plain_number
from h3sim.errors import InputError, Problem
from h3sim.units import ms

if TYPE_CHECKING:
    from collections.abc import Sequence

    from h3sim.results import Load

__all__ = ["Window", "instant_ns", "window_of"]

_GAP_SHARE, _LATE_SHARE = 0.5, 0.02
"""What comes after a pause of half the time before it, and is no more than 2 % of the bytes, would
squash the rest: it is cut off."""
_MARGIN = 1.005


class Window(NamedTuple):
    """The end of the time axis in ms, and what is to be said of what lies beyond."""

    end_ms: float
    note: str


def instant_ns(at_ms: float) -> int:
    """Return an instant that was given in ms since navigation start.

    Raises:
        InputError: if it is none.

    >>> instant_ns(1.5)
    1500000
    """
    return ms(_checked_ms("at_ms", at_ms))


def _checked_ms(key: str, given_ms: float) -> float:
    at_ms: float = plain_number(given_ms)
    if not is_quantity(at_ms) or at_ms < 0:
        message = f"must be a time in ms, is {shown(given_ms)}"
        raise InputError([Problem(key=key, message=message)])
    return at_ms


def window_of(loads: Sequence[Load], until_ms: float | None = None) -> Window:
    """Return the window of *loads*: up to *until_ms*, or where that is None up to a late rest.

    Raises:
        InputError: if *until_ms* is no time.
    """
    finished = sorted(
        (timing.finished_ms, timing.bytes) for load in loads for timing in load.timings
    )
    last_ms = finished[-1][0] if finished else 0.0
    end_ms = _cut(finished) if until_ms is None else _checked_ms("until_ms", until_ms)
    if end_ms >= last_ms:
        return Window(last_ms * _MARGIN or 1.0, "")
    late = max(sum(timing.finished_ms > end_ms for timing in load.timings) for load in loads)
    what = "1 resource is" if late == 1 else f"{late} resources are"
    note = f"cut here: {what} complete later, the last at {last_ms:,.0f} ms"
    return Window(end_ms * _MARGIN or 1.0, note)


def _cut(finished: list[tuple[float, int]]) -> float:
    """Return when what is not late is complete."""
    total = sum(n_bytes for _, n_bytes in finished)
    done = 0
    for (now_ms, n_bytes), (next_ms, _) in pairwise(finished):
        done += n_bytes
        is_long = now_ms > 0 and next_ms - now_ms > _GAP_SHARE * now_ms
        if is_long and total - done <= _LATE_SHARE * total:
            return now_ms
    return finished[-1][0] if finished else 0.0
