"""When each resource was asked for, began to arrive and was complete."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from h3sim.units import to_ms

if TYPE_CHECKING:
    from h3sim.trace import Trace

__all__ = ["Timing", "timings"]


class Timing(NamedTuple):
    """One resource's times, in nanoseconds since navigation start; rows in request order."""

    stream_id: int
    resource: int
    requested_at_ns: int
    first_byte_at_ns: int
    finished_at_ns: int

    @property
    def completion_ms(self) -> float:
        """Time to completion: from the request to the last byte."""
        return to_ms(self.finished_at_ns - self.requested_at_ns)


def timings(trace: Trace) -> list[Timing]:
    """Return the times of each request of *trace*: its first and last byte as first delivered."""
    first, last = trace.packet_rows.first_and_last([r.stream_id for r in trace.requests])
    return [
        Timing(r.stream_id, r.resource, r.requested_at_ns, first[r.stream_id], last[r.stream_id])
        for r in trace.requests
    ]
