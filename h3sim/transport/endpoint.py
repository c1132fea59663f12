"""The interface of a connection's endpoints, and the reassembly of whole messages.

Read next, on the path of docs/reading.md: `h3sim/transport/quic/endpoint.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar

from h3sim.trace import RecoveryRow
from h3sim.transport.packets import WirePacket
from h3sim.values._mypyc import mypyc_attr
from h3sim.values.ranges import Ranges

if TYPE_CHECKING:
    from collections.abc import Sequence

    from h3sim.transport.congestion import CongestionController
    from h3sim.transport.packets import StreamBytes
    from h3sim.transport.rtt import RttEstimator


PacketT = TypeVar("PacketT", bound=WirePacket)


class Deadline(NamedTuple):
    """Time at which an endpoint gives its connection up if it hears nothing until then."""

    at_ns: int
    reason: str
    """The rule, in words, with its time."""


@mypyc_attr(allow_interpreted_subclasses=True)
class FrameHeader:
    """The length of a frame's header, with the result of the last measurement."""

    __slots__ = ("n_bytes",)

    n_bytes: int
    """The last result: the source measures, and the packer counts with it."""

    def measure(self, stream_id: int, offset: int) -> int:
        """Return the length of the header of a frame that begins at *offset* of a stream."""
        raise NotImplementedError


@mypyc_attr(allow_interpreted_subclasses=True)
class Source:
    """The application's sending side: supplies bytes, and takes lost ones back."""

    has_data: bool
    """True if `take` may return something. Checked often, so it is an attribute."""

    def waiting_header_bytes(self) -> int:
        """Return the bytes of HTTP/2 frames that wait ahead of all DATA."""
        return 0

    def take(
        self, max_bytes: int | None = None, header: FrameHeader | None = None, min_bytes: int = 0
    ) -> StreamBytes | None:
        """Return a stream, an offset and up to *max_bytes* bytes: the scheduler's choice.

        With *header* the length of the frame's header is subtracted from *max_bytes*, and None
        returned if fewer than *min_bytes* would remain. If something is returned, *header* was
        last measured for it.
        """
        raise NotImplementedError

    def on_acked(self, stream_id: int, offset: int, n_bytes: int) -> None:
        """Record that the peer has acknowledged these bytes."""
        raise NotImplementedError

    def on_lost(self, stream_id: int, offset: int, n_bytes: int) -> None:
        """Take these bytes back, to be sent again."""
        raise NotImplementedError

    def on_limit(self, stream_id: int | None, limit_bytes: int) -> None:
        """Record that the peer accepts *limit_bytes* of a stream, or (None) of the connection."""
        raise NotImplementedError


class Endpoint(Generic[PacketT]):
    """One end of a connection. It never waits: calls pass the time; it returns its next timer."""

    @property
    def is_ready(self) -> bool:
        """True if the handshake allows application data."""
        raise NotImplementedError

    def on_packet(self, packet: PacketT, now_ns: int) -> list[StreamBytes]:
        """Handle a packet that arrived; return the stream bytes that it delivers."""
        raise NotImplementedError

    def on_timer(self, now_ns: int) -> None:
        """Handle the timers that are due."""
        raise NotImplementedError

    def timer_at_ns(self) -> int | None:
        """Return the time of the next timer, or None."""
        raise NotImplementedError

    @property
    def has_probed(self) -> bool:
        """True if the peer may be silent: a timer has expired, and nothing was acknowledged since.

        Until then `deadline` need not be read: no rule is faster than a retransmission.
        """
        raise NotImplementedError

    def deadline(self) -> Deadline | None:
        """Return when the connection is given up if the peer stays silent, None if never.

        It has to be read again after each timer, and may have moved whenever a packet arrived. An
        endpoint that waits for no acknowledgement has none.
        """
        raise NotImplementedError

    def ack_ranges(self, packet: PacketT) -> tuple[tuple[int, int], ...]:
        """Return the packet numbers that a packet acknowledges, as spans, the highest first."""
        raise NotImplementedError

    def recovery_row(self, now_ns: int) -> RecoveryRow:
        """Return the state of recovery, and the packets declared lost since the last call."""
        raise NotImplementedError

    def packets_to_send(self, now_ns: int) -> list[PacketT]:
        """Return the packets that leave now, in order."""
        raise NotImplementedError


def make_recovery_row(
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
    """Reassembly of messages, one per stream; each is reported complete once.

    >>> messages = MessageReassembler()
    >>> messages.expect(0, 20)
    >>> [messages.on_bytes(0, *span) for span in ((10, 10), (0, 10), (0, 10))]
    [False, True, False]
    """

    def __init__(self) -> None:
        self._incomplete: dict[int, tuple[int, Ranges]] = {}
        """The size and the received bytes of each message."""

    def expect(self, stream_id: int, n_bytes: int) -> None:
        """Register a stream of *n_bytes* in all."""
        self._incomplete[stream_id] = (n_bytes, Ranges())

    def on_bytes(self, stream_id: int, offset: int, n_bytes: int) -> bool:
        """Return whether these bytes complete the message; True once per message."""
        entry = self._incomplete.get(stream_id)
        if entry is None:
            return False
        size, received = entry
        received.add(offset, offset + n_bytes)
        if received.contiguous < size:
            return False
        del self._incomplete[stream_id]
        return True
