"""When the bytes of each packet could be handed over: within the stream, and in one order."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from h3sim.ranges import Ranges
from h3sim.trace import Delivery

if TYPE_CHECKING:
    from h3sim.trace import Trace

__all__ = ["Releases", "releases"]


class Releases(NamedTuple):
    """For each packet, in the order sent, three times in nanoseconds.

    `arrived`: when it arrived. `stream`: when its stream was there without a hole up to its end
    (what QUIC waits for). `connection`: when everything sent before it was there too (TCP).
    """

    arrived: list[int]
    stream: list[int]
    connection: list[int]

    def handed_over(self, delivery: Delivery) -> list[int]:
        """Return when each packet's bytes were handed over in that order."""
        return self.stream if delivery is Delivery.STREAM else self.connection


def releases(trace: Trace) -> Releases:
    """Return when the bytes of each packet of *trace* could be handed over.

    In the order sent, what is released waits for the latest arrival so far: over the connection
    always, within a stream as long as its bytes were sent in order (else they are put together
    in the order of arrival).
    """
    rows = trace.packet_rows
    arrived = [row[1] for row in rows]
    connection: list[int] = []
    latest = 0
    for at_ns in arrived:
        latest = max(latest, at_ns)
        connection.append(latest)
    return Releases(arrived, _in_stream(trace), connection)


def _in_stream(trace: Trace) -> list[int]:
    released: list[int] = []
    latest: dict[int, tuple[int, int]] = {}
    for _, arrived_at_ns, stream_id, offset, n_bytes in trace.packet_rows:
        end, at_ns = latest.get(stream_id, (0, 0))
        if offset != end:
            return _reassembled(trace)
        at_ns = max(at_ns, arrived_at_ns)
        latest[stream_id] = (end + n_bytes, at_ns)
        released.append(at_ns)
    return released


def _reassembled(trace: Trace) -> list[int]:
    """Put the streams together in the order of arrival; needed once bytes are sent out of order."""
    rows = trace.packet_rows
    released = [0] * len(rows)
    ranges: dict[int, Ranges] = {}
    waiting: dict[int, list[int]] = {}
    for number in sorted(range(len(rows)), key=lambda number: (rows[number][1], number)):
        _, at_ns, stream_id, offset, n_bytes = rows[number]
        got = ranges.setdefault(stream_id, Ranges())
        got.add(offset, offset + n_bytes)
        wait = waiting.setdefault(stream_id, [])
        wait.append(number)
        done = [n for n in wait if rows[n][3] + rows[n][4] <= got.contiguous]
        for n in done:
            released[n] = at_ns
            wait.remove(n)
    return released
