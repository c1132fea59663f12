"""Head-of-line blocking: bytes that have arrived and must wait for others.

With a(g) the arrival of packet g, q(g) the time its stream is complete up to its end, and r(g) the
time everything sent before it is there too, a stream blocks q - a and a connection r - a. So r - q
is what independent streams save. Both are asked of any load: what was, and what would have been.
"""

from __future__ import annotations

from array import array
from collections import Counter
from itertools import chain, compress, count, islice
from operator import ne, sub
from typing import TYPE_CHECKING, NamedTuple

from h3sim.trace import Delivery, delivered_in_one_order, delivered_per_stream

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from h3sim.trace import PacketRows, Trace

__all__ = ["HolBlocking", "hol_blocking", "stack_heights", "stack_histogram", "stacks"]


class HolBlocking(NamedTuple):
    """Bytes that had to wait, and the sum of the waiting times of their packets.

    The bytes are those of streams, response headers included. The times are packet-nanoseconds: a
    hole of 10 ms behind which 100 packets wait adds up to 1000 ms, more than the load may take.
    """

    stream_bytes: int
    stream_delay_ns: int
    connection_bytes: int
    connection_delay_ns: int


def hol_blocking(trace: Trace) -> HolBlocking:
    """Return the exact head-of-line blocking of *trace*, in both orders.

    Over TCP a byte waits for its TLS record as well; that is no blocking and does not count, so
    what streams by themselves would do is worked out from arrivals there. Packets that brought
    nothing new do not count in either order.
    """
    rows = trace.packet_rows
    per_stream: Sequence[int | None] = rows.columns.delivered_at_ns
    if rows.is_in_order:
        return HolBlocking(0, 0, 0, 0)
    if trace.delivery is Delivery.CONNECTION:
        per_stream = delivered_per_stream(rows)
    in_one_order = delivered_in_one_order(rows, per_stream)
    return HolBlocking(*_blocked(rows, per_stream), *_blocked(rows, in_one_order))


def _blocked(rows: PacketRows, until: Sequence[int | None]) -> tuple[int, int]:
    """Return the bytes that waited, and for how long their packets did."""
    blocked_bytes = delay_ns = 0
    _, arrived, _, _, lengths, *_ = rows.columns
    # Most did not wait: of those no more is asked than whether the two times are one.
    waited = compress(zip(arrived, lengths, until, strict=True), map(ne, arrived, until))
    for arrived_at_ns, n_bytes, at_ns in waited:
        if at_ns is not None and arrived_at_ns is not None and at_ns > arrived_at_ns:
            blocked_bytes += n_bytes
            delay_ns += at_ns - arrived_at_ns
    return blocked_bytes, delay_ns


def stacks(trace: Trace) -> dict[int, int]:
    """Return how many stacks of each height *trace* has, lowest first."""
    rows = trace.packet_rows
    if rows.is_apart:
        return {1: len(rows)} if len(rows) else {}
    return stack_histogram(rows.columns.delivered_at_ns)


def stack_heights(delivered_at_ns: Iterable[int | None]) -> list[int]:
    """Return how many packets were delivered together, per instant, in the order of time.

    These are the stacks of Marx 2019, Fig. 13.

    >>> stack_heights([10, 20, 20, 30])
    [1, 2, 1]
    """
    return list(_heights(delivered_at_ns))


def stack_histogram(delivered_at_ns: Iterable[int | None]) -> dict[int, int]:
    """Return how many stacks there are of each height, lowest first.

    >>> stack_histogram([10, 20, 20, 30])
    {1: 2, 2: 1}
    """
    return dict(sorted(Counter(_heights(delivered_at_ns)).items()))


def _heights(delivered_at_ns: Iterable[int | None]) -> Iterator[int]:
    """Return how many packets were delivered at each instant, in the order of time."""
    times = sorted(at_ns for at_ns in delivered_at_ns if at_ns is not None)
    # A count of each instant would take an entry of a hundred bytes for nearly every packet.
    ends = array("q", compress(count(1), map(ne, times, islice(times, 1, None))))
    if times:
        ends.append(len(times))
    return map(sub, ends, chain((0,), ends))
