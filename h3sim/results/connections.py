"""The connections of a load, each with what happened on it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from h3sim import metrics
from h3sim.units import to_ms

if TYPE_CHECKING:
    from h3sim.trace import Trace

__all__ = ["Connection", "PacketCount"]


class PacketCount(NamedTuple):
    """How many data packets there were."""

    sent: int
    lost: int
    retransmitted: int


@dataclass(frozen=True, kw_only=True, repr=False)
class Connection:
    """A connection of a load: streams in its `trace` have the ids that they have on it.

    Hosts are those that share it, by name ("(page)" where the page does not name its own). It
    was begun at *opened_at_ns*, and requests could leave from *ready_at_ns* on.
    """

    number: int
    hosts: tuple[str, ...]
    rtt_ns: int
    opened_at_ns: int
    ready_at_ns: int
    trace: Trace
    lookups: tuple[tuple[str, int, int], ...] = ()
    """Which of its hosts were looked up, from when until when."""
    n_frames: int = 0
    """How many frames of its control stream spoke of priorities."""
    frame_bytes: int = 0
    """What these took, without headers of packets."""

    @property
    def rtt_ms(self) -> float:
        """The round-trip time to its server, in ms."""
        return to_ms(self.rtt_ns)

    @property
    def opened_ms(self) -> float:
        """When it was begun, in ms since navigation start."""
        return to_ms(self.opened_at_ns)

    @property
    def ready_ms(self) -> float:
        """When requests could leave, in ms since navigation start."""
        return to_ms(self.ready_at_ns)

    @property
    def n_requests(self) -> int:
        """How many requests went over it."""
        return len(self.trace.requests)

    @property
    def stream_bytes(self) -> int:
        """What its responses have in all, headers included."""
        return sum(request.length_bytes for request in self.trace.requests)

    @property
    def packets(self) -> PacketCount:
        """How many data packets it had."""
        return PacketCount(*metrics.count_packets(self.trace))

    def __repr__(self) -> str:
        return f"<Connection {self.number} to {', '.join(self.hosts)}: {self.n_requests} requests>"
