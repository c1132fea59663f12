"""Makes the segments of one end, each with the next number and an acknowledgement."""

from __future__ import annotations

from typing import TYPE_CHECKING

from h3sim.transport.tcp.handshake import State
from h3sim.transport.tcp.segments import Segment, SentSegment

if TYPE_CHECKING:
    from h3sim.transport.tcp.handshake import Handshake
    from h3sim.transport.tcp.reassembly import Reassembly
    from h3sim.transport.tcp.records import SendStream

__all__ = ["Packer"]


class Packer:
    """Cuts *stream* into segments, and acknowledges with each what *received* says."""

    __slots__ = ("_received", "_stream", "_window_bytes", "next_number")

    def __init__(self, stream: SendStream, received: Reassembly, window_bytes: int) -> None:
        self._stream = stream
        self._received = received
        self._window_bytes = window_bytes
        """The receive window, which is announced with each."""
        self.next_number = 0

    def cut(self, n_bytes: int, now_ns: int) -> SentSegment:
        """Return the next *n_bytes* of the stream, which were never sent."""
        stream = self._stream
        seq = stream.sent
        frames, records = stream.cut(n_bytes)
        return SentSegment(self.next_number, now_ns, seq, n_bytes, frames, records)

    def segment(self, sent: SentSegment, now_ns: int) -> Segment:
        """Return *sent* as it goes on the wire now."""
        received = self._received
        # Whatever comes makes an ACK due, now or later: without one there is nothing to take note
        # of.
        if received.due_at_ns is not None:
            received.on_acked()
        self.next_number = sent.number + 1
        return Segment(
            sent.number,
            now_ns,
            sent.seq,
            sent.size_bytes,
            received.next_seq,
            received.echo_ns,
            self._window_bytes,
            (),
            sent.frames,
            sent.records,
        )

    def pure_ack(self, now_ns: int) -> Segment:
        """Return a segment without data."""
        received = self._received
        received.on_acked()
        number = self.next_number
        self.next_number = number + 1
        return Segment(
            number,
            now_ns,
            self._stream.sent,
            0,
            received.next_seq,
            received.echo_ns,
            self._window_bytes,
            # Data segments carry no blocks: a full one has no room for the option.
            received.take_blocks() if received.wants_sack else (),
        )

    def syn(self, handshake: Handshake, now_ns: int) -> Segment:
        """Return a SYN, or the answer to one."""
        ack = None if handshake.state in (State.CLOSED, State.SYN_SENT) else 0
        handshake.on_syn_sent(now_ns)
        number = self.next_number
        self.next_number = number + 1
        echo_ns = None if ack is None else self._received.echo_ns
        return Segment(number, now_ns, 0, 0, ack, echo_ns, self._window_bytes, is_syn=True)
