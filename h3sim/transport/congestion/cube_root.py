"""Cubes, and cube roots that are the same on every machine: what CUBIC's curve is made of."""

from __future__ import annotations

from typing import Final

from h3sim.units import NS_PER_S

__all__ = ["cube_root", "cube_root_ns", "cubed_seconds"]

_NS3_PER_S3: Final = 1e27


def cube_root(value: int) -> int:
    """Return the largest whole number whose cube is at most *value*, which is not negative.

    >>> [cube_root(value) for value in (0, 7, 8, 26, 27, 10**27)]
    [0, 1, 2, 2, 3, 1000000000]
    """
    if value == 0:
        return 0
    root = 1 << -(-value.bit_length() // 3)  # Not below the root: Newton comes down to it.
    while True:
        closer = (2 * root + value // (root * root)) // 3
        if closer >= root:
            return root
        root = closer


def cubed_seconds(t_ns: int) -> float:
    """Return the cube of a time, in seconds; by multiplication, as a power differs in its last bit.

    >>> cubed_seconds(-2_000_000_000)
    -8.0
    """
    t_s = t_ns / NS_PER_S
    return t_s * t_s * t_s


def cube_root_ns(seconds_cubed: float) -> int:
    """Return the time whose cube that is, cut to whole nanoseconds; 0 if it is negative.

    The last bit of a mathematical library's cube root differs between machines, so whole numbers
    are used; only IEEE 754 multiplication, which does not differ, comes before.

    >>> cube_root_ns(8.0)
    2000000000
    """
    return cube_root(int(seconds_cubed * _NS3_PER_S3)) if seconds_cubed > 0 else 0
