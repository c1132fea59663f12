"""Head-of-line blocking: bytes that have arrived and must wait for others.

With a(g) the arrival of packet g, q(g) the time its stream is complete up to its end, and r(g) the
time everything sent before it is there too, a stream blocks q - a and a connection r - a. So r - q
is what independent streams save.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from h3sim.metrics.release import Releases
    from h3sim.trace import Trace

__all__ = ["HolBlocking", "hol_blocking", "stack_heights", "stack_histogram"]


class HolBlocking(NamedTuple):
    """Bytes that had to wait, and the sum of the waiting times of their packets.

    The bytes are those of streams, response headers included. Both views are given for any
    transport: what waits within streams, and what a single order over the connection makes wait.
    """

    stream_bytes: int
    stream_delay_ns: int
    connection_bytes: int
    connection_delay_ns: int


def hol_blocking(trace: Trace, released: Releases) -> HolBlocking:
    """Return the exact head-of-line blocking of *trace*."""
    lengths = [row[4] for row in trace.packet_rows]

    def blocked(until: Sequence[int | None]) -> tuple[int, int]:
        n_bytes = delay_ns = 0
        for length, arrived, at_ns in zip(lengths, released.arrived, until, strict=True):
            if arrived is not None and at_ns is not None and at_ns > arrived:
                n_bytes += length
                delay_ns += at_ns - arrived
        return n_bytes, delay_ns

    return HolBlocking(*blocked(released.stream), *blocked(released.connection))


def stack_heights(handed_over_ns: Sequence[int | None]) -> list[int]:
    """Return how many packets were handed over together, per instant, in the order of time.

    These are the stacks of Marx 2019, Fig. 13.

    >>> stack_heights([10, 20, 20, 30])
    [1, 2, 1]
    """
    counted = Counter(at_ns for at_ns in handed_over_ns if at_ns is not None)
    return [height for _, height in sorted(counted.items())]


def stack_histogram(handed_over_ns: Sequence[int | None]) -> dict[int, int]:
    """Return how many stacks there are of each height, lowest first.

    >>> stack_histogram([10, 20, 20, 30])
    {1: 2, 2: 1}
    """
    return dict(sorted(Counter(stack_heights(handed_over_ns)).items()))
