"""Segments of one endpoint, from the SYN and the TLS handshake to the last ACK."""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING

from h3sim.transport.quic.handshake import HandshakeMode, Role
from h3sim.transport.tcp.records import Message, Segment, SentSegment
from h3sim.transport.tcp.settings import TlsVersion

if TYPE_CHECKING:
    from h3sim.transport.tcp.records import Reassembly, SendStream
    from h3sim.transport.tcp.settings import TcpSettings


class State(enum.Enum):
    """State of the connection (RFC 9293 § 3.3.2, without closing)."""

    CLOSED = "closed"
    LISTEN = "listen"
    SYN_SENT = "syn-sent"
    SYN_RECEIVED = "syn-received"
    ESTABLISHED = "established"


class _Event(enum.Enum):
    """A segment that is sent or arrives, as far as it changes the state."""

    SEND = "send"
    SYN = "syn"
    SYN_ACK = "syn-ack"
    ACK = "ack"


# By state and event.
_NEXT_STATES = {
    (State.CLOSED, _Event.SEND): State.SYN_SENT,
    (State.LISTEN, _Event.SYN): State.SYN_RECEIVED,
    (State.SYN_SENT, _Event.SYN_ACK): State.ESTABLISHED,
    (State.SYN_RECEIVED, _Event.SYN): State.SYN_RECEIVED,
    (State.SYN_RECEIVED, _Event.ACK): State.ESTABLISHED,
    # Duplicate SYNs and SYN-ACKs that arrive after the handshake.
    (State.ESTABLISHED, _Event.SYN): State.ESTABLISHED,
    (State.ESTABLISHED, _Event.SYN_ACK): State.ESTABLISHED,
}

# By version and the message that arrived.
_TLS_ANSWERS = {
    (TlsVersion.TLS_1_3, Message.CLIENT_HELLO): Message.SERVER_FLIGHT,
    (TlsVersion.TLS_1_3, Message.SERVER_FLIGHT): Message.CLIENT_FINISHED,
    (TlsVersion.TLS_1_2, Message.CLIENT_HELLO): Message.SERVER_FLIGHT,
    (TlsVersion.TLS_1_2, Message.SERVER_FLIGHT): Message.CLIENT_FINISHED,
    (TlsVersion.TLS_1_2, Message.CLIENT_FINISHED): Message.SERVER_FINISHED,
}

_LAST_MESSAGES = {
    (TlsVersion.TLS_1_3, Role.CLIENT): Message.SERVER_FLIGHT,
    (TlsVersion.TLS_1_3, Role.SERVER): Message.CLIENT_HELLO,
    (TlsVersion.TLS_1_2, Role.CLIENT): Message.SERVER_FINISHED,
    (TlsVersion.TLS_1_2, Role.SERVER): Message.CLIENT_FINISHED,
}
"""The message after which an endpoint may send application data."""


class Handshake:
    """The TCP and TLS handshake of one endpoint.

    An unanswered SYN (or SYN-ACK) is resent after *initial_rto_ns*, then after twice that (RFC 6298
    § 2.1, § 5.5). `HandshakeMode.ZERO_RTT` is early data: requests leave with the ClientHello. TLS
    1.2 has none, and takes two round trips.
    """

    def __init__(self, settings: TcpSettings, role: Role, mode: HandshakeMode) -> None:
        self._role = role
        self._tls = settings.tls
        self._has_early_data = mode is HandshakeMode.ZERO_RTT and settings.tls is TlsVersion.TLS_1_3
        self._retry_ns = settings.initial_rto_ns
        self._max_retry_ns = settings.max_rto_ns
        self._lengths = {
            Message.CLIENT_HELLO: settings.client_hello_bytes,
            Message.SERVER_FLIGHT: settings.server_flight_bytes,
            Message.CLIENT_FINISHED: settings.client_finished_bytes,
            Message.SERVER_FINISHED: settings.tls12_server_finished_bytes,
        }
        if mode is HandshakeMode.NONE:
            self.state = State.ESTABLISHED
        else:
            self.state = State.CLOSED if role is Role.CLIENT else State.LISTEN
        self.may_send = mode is HandshakeMode.NONE
        """True if application data may be sent."""
        self.is_syn_due = self.state is State.CLOSED
        """True if a SYN or a SYN-ACK has to leave now."""
        self.retry_at_ns: int | None = None
        """Time of the next SYN retransmission; unused once established."""

    def length_of(self, message: Message) -> int:
        """Return the length of a message in the stream."""
        return self._lengths[message]

    def on_segment(self, segment: Segment) -> Message | None:
        """Handle a segment's effect on the state; return the message to send for it."""
        before = self.state
        if segment.is_syn:
            event = _Event.SYN if segment.ack is None else _Event.SYN_ACK
        else:
            event = _Event.ACK
        self.state = _NEXT_STATES[before, event]
        if event is _Event.SYN:
            # A repeated SYN means that the SYN-ACK was lost: resend it at once.
            self.is_syn_due = self.state is State.SYN_RECEIVED
        has_opened = before is not self.state and self.state is State.ESTABLISHED
        if not has_opened:
            return None
        if self._tls is TlsVersion.NONE:
            self.may_send = True
            return None
        if self._role is Role.SERVER:  # it waits for the ClientHello
            return None
        self.may_send = self._has_early_data
        return Message.CLIENT_HELLO

    def on_message(self, message: Message) -> Message | None:
        """Handle a TLS message; return the answer to it."""
        if message is _LAST_MESSAGES[self._tls, self._role]:
            self.may_send = True
        return _TLS_ANSWERS.get((self._tls, message))

    def on_syn_sent(self, now_ns: int) -> None:
        """Record that a SYN or a SYN-ACK leaves now."""
        if self.state is State.CLOSED:
            self.state = _NEXT_STATES[self.state, _Event.SEND]
        self.is_syn_due = False
        # RFC 6298 § 5.5: each retransmission doubles the timeout.
        self.retry_at_ns = now_ns + self._retry_ns
        self._retry_ns = min(2 * self._retry_ns, self._max_retry_ns)

    def on_timer(self, now_ns: int) -> None:
        """Resend the SYN if it is due."""
        if self.retry_at_ns is not None and self.retry_at_ns <= now_ns:
            self.is_syn_due = True


class Packer:
    """A packer that cuts *stream* into segments, each with the ACK of *received*."""

    __slots__ = ("_received", "_stream", "_window_bytes", "next_number")

    def __init__(self, stream: SendStream, received: Reassembly, window_bytes: int) -> None:
        self._stream = stream
        self._received = received
        self._window_bytes = window_bytes
        """The receive window announced with each segment."""
        self.next_number = 0

    def cut(self, n_bytes: int, now_ns: int) -> SentSegment:
        """Return the next *n_bytes* of the stream that were never sent."""
        stream = self._stream
        seq = stream.sent
        frames, records = stream.cut(n_bytes)
        return SentSegment(self.next_number, now_ns, seq, n_bytes, frames, records)

    def segment(self, sent: SentSegment, now_ns: int) -> Segment:
        """Return *sent* as a segment on the wire now."""
        received = self._received
        # Every data segment that arrives makes an ACK due: without one there is nothing to update.
        if received.due_at_ns is not None:
            received.on_acked()
        self.next_number = sent.number + 1
        # Positional, as keywords would cost time with each segment.
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
        number, no_bytes = self.next_number, 0
        self.next_number = number + 1
        return Segment(
            number,
            now_ns,
            self._stream.sent,
            no_bytes,
            received.next_seq,
            received.echo_ns,
            self._window_bytes,
            # Data segments carry no SACK blocks: a full one has no room for the option.
            received.take_blocks() if received.wants_sack else (),
        )

    def syn(self, handshake: Handshake, now_ns: int) -> Segment:
        """Return a SYN or a SYN-ACK."""
        ack = None if handshake.state in (State.CLOSED, State.SYN_SENT) else 0
        handshake.on_syn_sent(now_ns)
        number = self.next_number
        self.next_number = number + 1
        echo_ns = None if ack is None else self._received.echo_ns
        return Segment(
            number,
            now_ns,
            seq=0,
            length=0,
            ack=ack,
            echo_ns=echo_ns,
            window_bytes=self._window_bytes,
            is_syn=True,
        )
