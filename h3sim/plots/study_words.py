"""What figures of many loads show, in words: lines by their ends, intervals, spreads."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

__all__ = ["Interval", "ends_of", "listed", "spreads_of", "with_intervals"]


class Interval(NamedTuple):
    """A value, and its interval where there is one."""

    value: float
    low: float | None = None
    high: float | None = None


def listed(told: Iterable[str]) -> str:
    """Return what is told of each, as a figure's words end; of nothing, that there is nothing.

    >>> listed(["rr: 1", "fifo: 2"]), listed([])
    ('rr: 1; fifo: 2.', 'there is none.')
    """
    return f"{'; '.join(told) or 'there is none'}."


def ends_of(lines: Mapping[str, Sequence[tuple[object, float]]]) -> str:
    """Return from where to where each line goes, from its first point to its last.

    >>> ends_of({"rr": [(0, 100.0), (50, 1512.3)], "fifo": [(0, 90.0)]})
    'rr from 100 at 0 to 1,510 at 50; fifo 90 at 0.'
    """
    told = []
    for name, points in lines.items():
        (first, y), (last, end) = points[0], points[-1]
        is_one = len(points) == 1
        told.append(
            f"{name} {_number(y)} at {_at(first)}"
            if is_one
            else f"{name} from {_number(y)} at {_at(first)} to {_number(end)} at {_at(last)}"
        )
    return listed(told)


def spreads_of(values: Mapping[str, Sequence[float]]) -> str:
    """Return from what to what the values of each go, and how many they are.

    >>> spreads_of({"fifo": [2.0, 0.5, 1.0]})
    'fifo from 0.5 to 2 (3).'
    """
    return listed(
        f"{name} from {_number(min(own))} to {_number(max(own))} ({len(own)})"
        for name, own in values.items()
        if own
    )


def with_intervals(values: Mapping[str, Interval]) -> str:
    """Return each value, with its interval in parentheses.

    >>> with_intervals({"rr": Interval(1.0), "fifo": Interval(1.234, 1.1, 1.4)})
    'rr 1; fifo 1.23 (1.1 to 1.4).'
    """
    return listed(
        f"{name} {_number(value)}"
        + (f" ({_number(low)} to {_number(high)})" if low is not None and high is not None else "")
        for name, (value, low, high) in values.items()
    )


def _number(value: float) -> str:
    """Return three digits that tell, and whole thousands without an exponent."""
    return f"{float(f'{value:.3g}'):,.10g}"


def _at(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
