"""What the engine asks of either end of a connection, and what an end asks of its application."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from h3sim.trace import RecoveryRow

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from h3sim.transport.congestion import CongestionController
    from h3sim.transport.rtt import RttEstimator

__all__ = ["Endpoint", "Source", "StreamBytes", "WirePacket", "row_of"]


StreamBytes = tuple[int, int, int]
"""A stream, an offset and a number of bytes."""


class Source(Protocol):
    """The application's sending side: gives out bytes, and takes them back when they are lost."""

    @property
    def has_data(self) -> bool:
        """Whether `take` may give something out; if not, it gives nothing."""

    def take(
        self, max_bytes: int, header: Callable[[int, int], int] | None = None, least: int = 0
    ) -> StreamBytes | None:
        """Return a stream, an offset and up to *max_bytes* bytes: those whose turn it is.

        With *header*, the length of a frame's header by stream and offset, that is taken off
        *max_bytes*, and None returned where fewer than *least* bytes would be left.
        """

    def on_acked(self, stream_id: int, offset: int, n_bytes: int) -> None:
        """Note that the peer has these bytes for good."""

    def on_lost(self, stream_id: int, offset: int, n_bytes: int) -> None:
        """Take these bytes back, to be given out again."""

    def on_limit(self, stream_id: int | None, limit_bytes: int) -> None:
        """Note that the peer takes up to *limit_bytes* of a stream, or (None) of all together."""


class WirePacket(Protocol):
    """A packet as the link and the trace see it."""

    number: int

    @property
    def ip_bytes(self) -> int:
        """Its size with IP header and all below."""

    @property
    def frames(self) -> Sequence[Any]:
        """The stream bytes that it carries, each with stream_id, offset, n_bytes."""


class Endpoint(Protocol):
    """One end of a connection. It never waits: it takes the time, and says when to be woken."""

    @property
    def is_ready(self) -> bool:
        """Whether the handshake lets the application's bytes go."""

    def on_packet(self, packet: Any, now_ns: int) -> Sequence[StreamBytes]:
        """Take a packet that arrived; return what it brings."""

    def on_timer(self, now_ns: int) -> None:
        """Do what was due."""

    def timer_at_ns(self) -> int | None:
        """Return when to be woken, or None."""

    def ack_ranges(self, packet: Any) -> tuple[tuple[int, int], ...]:
        """Return the spans of numbers that a packet of this end acknowledges, highest first."""

    def recovery_row(self, now_ns: int) -> RecoveryRow:
        """Return the state of recovery, and what was declared lost since this was last asked."""

    def packets_to_send(self, now_ns: int) -> Sequence[Any]:
        """Return the packets that leave now, in order."""


def row_of(
    now_ns: int,
    controller: CongestionController,
    rtt: RttEstimator,
    bytes_in_flight: int,
    lost: Sequence[int],
) -> RecoveryRow:
    """Return the state of a sender's recovery as a row of a trace."""
    return RecoveryRow(
        at_ns=now_ns,
        congestion_window=controller.congestion_window,
        ssthresh=controller.ssthresh,
        bytes_in_flight=bytes_in_flight,
        smoothed_rtt_ns=rtt.smoothed_rtt_ns,
        latest_rtt_ns=rtt.latest_rtt_ns,
        min_rtt_ns=rtt.min_rtt_ns,
        rtt_variance_ns=rtt.rttvar_ns,
        lost=tuple(lost),
    )
