"""The interface of a connection's endpoints, and the reassembly of whole messages.

Read next, on the path of docs/reading.md: `h3sim/transport/quic/endpoint.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypeVar

from h3sim._mypyc import mypyc_attr
from h3sim.ranges import Ranges
from h3sim.trace import RecoveryRow
from h3sim.transport.packets import WirePacket

if TYPE_CHECKING:
    from collections.abc import Sequence

    from h3sim.transport.congestion import CongestionController
    from h3sim.transport.packets import StreamBytes
    from h3sim.transport.rtt import RttEstimator


PacketT = TypeVar("PacketT", bound=WirePacket)


@mypyc_attr(allow_interpreted_subclasses=True)
class FrameHeader:
    """Says how long the header of a frame is, and remembers what it said."""

    __slots__ = ("n_bytes",)

    n_bytes: int
    """The last answer: who gives bytes out asks, and who packs them counts with it."""

    def measure(self, stream_id: int, offset: int) -> int:
        """Return the length of the header of a frame that begins at *offset* of a stream."""
        raise NotImplementedError


@mypyc_attr(allow_interpreted_subclasses=True)
class Source:
    """The application's sending side: gives out bytes, and takes them back when they are lost."""

    has_data: bool
    """Whether `take` may give something out; if not, it gives nothing. Asked often, so kept."""

    def waiting_header_bytes(self) -> int:
        """Return how long the frames of HTTP/2 are that wait ahead of all DATA."""
        return 0

    def take(
        self, max_bytes: int | None = None, header: FrameHeader | None = None, least: int = 0
    ) -> StreamBytes | None:
        """Return a stream, an offset and up to *max_bytes* bytes: those whose turn it is.

        With *header* the length of the frame's header is taken off *max_bytes*, and None returned
        where fewer than *least* bytes would be left. If something is returned, *header* was last
        asked about that.
        """
        raise NotImplementedError

    def on_acked(self, stream_id: int, offset: int, n_bytes: int) -> None:
        """Note that the peer has these bytes for good."""
        raise NotImplementedError

    def on_lost(self, stream_id: int, offset: int, n_bytes: int) -> None:
        """Take these bytes back, to be given out again."""
        raise NotImplementedError

    def on_limit(self, stream_id: int | None, limit_bytes: int) -> None:
        """Note that the peer takes up to *limit_bytes* of a stream, or (None) of all together."""
        raise NotImplementedError


class Endpoint(Generic[PacketT]):
    """One end of a connection. It never waits: it takes the time, and says when to be woken."""

    @property
    def is_ready(self) -> bool:
        """Whether the handshake lets the application's bytes go."""
        raise NotImplementedError

    def on_packet(self, packet: PacketT, now_ns: int) -> list[StreamBytes]:
        """Take a packet that arrived; return what it brings."""
        raise NotImplementedError

    def on_timer(self, now_ns: int) -> None:
        """Do what was due."""
        raise NotImplementedError

    def timer_at_ns(self) -> int | None:
        """Return when to be woken, or None."""
        raise NotImplementedError

    def ack_ranges(self, packet: PacketT) -> tuple[tuple[int, int], ...]:
        """Return the spans of numbers that a packet of this end acknowledges, highest first."""
        raise NotImplementedError

    def recovery_row(self, now_ns: int) -> RecoveryRow:
        """Return the state of recovery, and what was declared lost since this was last asked."""
        raise NotImplementedError

    def packets_to_send(self, now_ns: int) -> list[PacketT]:
        """Return the packets that leave now, in order."""
        raise NotImplementedError


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


class MessageReassembler:
    """Puts messages together, each a stream of its own, and tells of each once.

    >>> messages = MessageReassembler()
    >>> messages.expect(0, 20)
    >>> [messages.on_bytes(0, *span) for span in ((10, 10), (0, 10), (0, 10))]
    [False, True, False]
    """

    def __init__(self) -> None:
        self._left: dict[int, tuple[int, Ranges]] = {}

    def expect(self, stream_id: int, n_bytes: int) -> None:
        """Take bytes of a stream that has *n_bytes* in all."""
        self._left[stream_id] = (n_bytes, Ranges())

    def on_bytes(self, stream_id: int, offset: int, n_bytes: int) -> bool:
        """Return whether the message is whole now, and was not before."""
        entry = self._left.get(stream_id)
        if entry is None:
            return False
        size, got = entry
        got.add(offset, offset + n_bytes)
        if got.contiguous < size:
            return False
        del self._left[stream_id]
        return True
