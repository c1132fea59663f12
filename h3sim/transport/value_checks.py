"""Checks of single values that the settings of QUIC and of TCP have in common."""

from __future__ import annotations

from typing import TYPE_CHECKING

from h3sim.errors import Problem
from h3sim.units import to_ms

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = ["Range", "gain_problems", "range_problems"]

Range = tuple[str, int, int]
"""A field, its smallest value and its largest."""

_MIN_GAIN, _MAX_GAIN = 0.01, 100
"""Less than a hundredth of a window per round trip would not get a page anywhere in an hour."""


def range_problems(settings: object, ranges: Iterable[Range]) -> Iterator[Problem]:
    """Yield what is no whole number, or out of its range; a field that is None is left out.

    Keys and values are those of a profile's file: a field that ends in `_ns` stands there in
    milliseconds.
    """
    for name, low, high in ranges:
        value = getattr(settings, name)
        if value is None:
            continue
        is_whole = isinstance(value, int) and not isinstance(value, bool)
        if is_whole and low <= value <= high:
            continue
        if is_whole and name.endswith("_ns"):
            message = f"must be {to_ms(low):,g} to {to_ms(high):,.12g}, is {to_ms(value):g}"
            yield Problem(key=f"{name.removesuffix('_ns')}_ms", message=message)
        else:
            what = "" if is_whole else "a whole number, "
            yield Problem(key=name, message=f"must be {what}{low:,} to {high:,}, is {value}")


def gain_problems(pacing_gain: float | None) -> Iterator[Problem]:
    """Yield what is wrong with a *pacing_gain*, in windows per round trip."""
    if pacing_gain is not None and not _MIN_GAIN <= pacing_gain <= _MAX_GAIN:
        message = f"must be {_MIN_GAIN} to {_MAX_GAIN}, is {pacing_gain}"
        yield Problem(key="pacing_gain", message=message)
