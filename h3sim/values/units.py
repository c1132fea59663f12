"""Units: time is whole nanoseconds, size whole bytes, rate whole bits per second.

Values with other units exist at the edge only (files, command line, tables); they are converted
here and nowhere else. Rounding is to the nearest whole unit, halves to the even one.

>>> ms(1.5), to_ms(2_500_000), kbyte(1000), mbps(1.12)
(1500000, 2.5, 1000000, 1120000)
"""

from __future__ import annotations

from operator import index
from typing import Any, Final

__all__ = [
    "BITS_PER_BYTE",
    "MS_PER_S",
    "NS_PER_DAY",
    "NS_PER_MS",
    "NS_PER_S",
    "NS_PER_US",
    "as_integer",
    "kbyte",
    "mbps",
    "ms",
    "to_mbps",
    "to_ms",
    "unit_of",
]

BITS_PER_BYTE: Final = 8
NS_PER_US: Final = 1000
NS_PER_MS: Final = 1_000_000
NS_PER_S: Final = 1_000_000_000
NS_PER_DAY: Final = 86_400 * NS_PER_S
MS_PER_S: Final = 1000
_BPS_PER_MBPS: Final = 1_000_000
_BYTES_PER_KBYTE: Final = 1000
_UNIT_BY_NAME_ENDING: Final = {
    "ms": "ms",
    "s": "s",
    "bytes": "bytes",
    "kb": "kB",
    "mbps": "Mbit/s",
    "packets": "packets",
    "bdp": "BDP",
}
"""Display form of a unit, by the last word of a column's name."""


def ms(value_ms: float) -> int:
    """Return *value_ms* milliseconds in nanoseconds."""
    return round(value_ms * NS_PER_MS)


def to_ms(value_ns: int) -> float:
    """Return *value_ns* nanoseconds in milliseconds."""
    return value_ns / NS_PER_MS


def mbps(value_mbps: float) -> int:
    """Return *value_mbps* megabits per second in bits per second."""
    return round(value_mbps * _BPS_PER_MBPS)


def to_mbps(value_bps: int) -> float:
    """Return *value_bps* bits per second in megabits per second."""
    return value_bps / _BPS_PER_MBPS


def kbyte(value_kb: float) -> int:
    """Return *value_kb* kilobytes of 1000 bytes in bytes."""
    return round(value_kb * _BYTES_PER_KBYTE)


def as_integer(value: Any) -> int | None:
    """Return a whole number, which may be numpy's, as an int; None for others and for booleans.

    >>> as_integer(4), as_integer(4.0), as_integer("4"), as_integer(True)
    (4, None, None, None)
    """
    if type(value) is int:
        return value
    is_integer = hasattr(type(value), "__index__") and not isinstance(value, bool)
    return index(value) if is_integer else None


def unit_of(name: str) -> str | None:
    """Return the unit with which the name of a column ends, None if it ends with none.

    >>> unit_of("byte_index_all_ms"), unit_of("rate_mbps"), unit_of("page_bytes"), unit_of("seed")
    ('ms', 'Mbit/s', 'bytes', None)
    """
    return _UNIT_BY_NAME_ENDING.get(name.rpartition("_")[2])
