"""One endpoint of a TCP connection that carries HTTP/2, HTTP/1.1 or QMux over TLS."""

from __future__ import annotations

from typing import TYPE_CHECKING

from h3sim.transport.endpoint import Deadline, Endpoint, make_recovery_row
from h3sim.transport.pacing import Pacer
from h3sim.transport.packets import ECT
from h3sim.transport.tcp.packer import Handshake, Packer, State
from h3sim.transport.tcp.records import (
    AutotunedSendStream,
    QmuxFrameHeader,
    Reassembly,
    Segment,
    SendStream,
)
from h3sim.transport.tcp.recovery import Recovery
from h3sim.transport.tcp.settings import SocketBuffer
from h3sim.values.constants import FRAME_HEADER_BYTES
from h3sim.values.units import NS_PER_S

if TYPE_CHECKING:
    from h3sim.trace import RecoveryRow
    from h3sim.transport.congestion import CongestionController
    from h3sim.transport.endpoint import Source
    from h3sim.transport.packets import StreamBytes
    from h3sim.transport.quic.handshake import HandshakeMode, Role
    from h3sim.transport.rtt import RttEstimator
    from h3sim.transport.tcp.records import Message, SentSegment, TlsRecord
    from h3sim.transport.tcp.recovery import TailLossProbe
    from h3sim.transport.tcp.settings import TcpSettings


class TcpEndpoint(Endpoint[Segment]):
    """A client or a server; both send, acknowledge and recover in the same way.

    With `HandshakeMode.NONE` the connection is established and *path_rtt_ns* known. Frames have
    headers of *frame_header_bytes*, 0 for HTTP/1.1, or those of STREAM frames in records of QMux if
    *is_qmux*. TCP's window is the only one here: the flow control of HTTP/2 and QMux is that of the
    source.
    """

    def __init__(
        self,
        settings: TcpSettings,
        controller: CongestionController,
        source: Source,
        role: Role,
        mode: HandshakeMode,
        *,
        path_rtt_ns: int | None = None,
        frame_header_bytes: int = FRAME_HEADER_BYTES,
        has_full_frames: bool = False,
        is_qmux: bool = False,
        has_ecn: bool = False,
    ) -> None:
        self._is_ecn_capable = has_ecn and controller.responds_to_ecn
        self._user_timeout_ns = settings.user_timeout_ns
        self._progress_at_ns: int | None = None
        """Time since which the data in flight has waited for an acknowledgement of any of it."""
        self._mss_bytes = settings.mss_bytes
        self._controller = controller
        autotunes = settings.send_buffer is SocketBuffer.AUTOTUNED
        make_stream = AutotunedSendStream if autotunes else SendStream
        self._stream = make_stream(
            settings,
            source,
            frame_header_bytes,
            has_full_frames=has_full_frames,
            stream_header=QmuxFrameHeader() if is_qmux else None,
        )
        self._received = Reassembly(
            every=settings.ack_every, max_delay_ns=settings.max_ack_delay_ns
        )
        self._packer = Packer(self._stream, self._received, settings.receive_window_bytes)
        self._handshake = Handshake(settings, role, mode)
        self._is_established = self._handshake.state is State.ESTABLISHED
        self.recovery = Recovery(settings, controller)
        if path_rtt_ns is not None:
            self.recovery.on_rtt(path_rtt_ns)
        # Used for every segment, so copied from recovery.
        self._board = self.recovery.board
        self._episode = self.recovery.episode
        self._probe = self.recovery.probe
        self._pacer = _make_pacer(settings, controller, self.recovery.rtt)
        self._source = source
        self._is_settled = False
        """True if recovery knows that nothing waits to be sent, and nothing has changed since."""
        self._right_edge = settings.receive_window_bytes if self._is_established else 0
        """The right edge of the peer's receive window; without a SYN the window is assumed
        equal."""

    @property
    def is_ready(self) -> bool:
        """True if the handshake allows application data."""
        return self._handshake.may_send

    # Events

    def on_packet(self, packet: Segment, now_ns: int) -> list[StreamBytes]:
        """Handle a segment that arrived; return the bytes that can be read now, in order."""
        received = self._received
        if packet.seq <= received.last_ack and (  # RFC 7323 § 4.3, rule 2
            received.echo_ns is None or packet.sent_at_ns > received.echo_ns
        ):
            received.echo_ns = packet.sent_at_ns
        if not self._is_established or packet.is_syn:
            self._on_opening(packet, now_ns)
            if packet.is_syn:
                return []
        ack = packet.ack
        assert ack is not None  # noqa: S101 - only a first SYN comes without
        is_advance = ack > self._board.una
        if is_advance or packet.sack:  # else it is an old ACK without news
            self._is_settled = False
            self.recovery.on_ack(packet, now_ns)
            if is_advance:
                self._progress_at_ns = now_ns
                self._right_edge = ack + packet.window_bytes
                self._stream.on_acked(ack)
        if not packet.length:
            return []
        records = received.on_segment(packet, now_ns)
        return self._read(records) if records else []

    def on_timer(self, now_ns: int) -> None:
        """Handle the timers that are due; resulting segments leave with `packets_to_send`."""
        self._is_settled = False
        if self._is_established:
            self.recovery.on_timer(now_ns)
        else:
            self._handshake.on_timer(now_ns)

    def timer_at_ns(self) -> int | None:
        """Return the time of the next timer."""
        if not self._is_established:
            return self._handshake.retry_at_ns
        at_ns = self.recovery.timer_at_ns()
        due_at_ns = self._received.due_at_ns
        if due_at_ns is not None and (at_ns is None or due_at_ns < at_ns):
            at_ns = due_at_ns
        due_at_ns = self._pacer.due_at_ns
        if due_at_ns is not None and (at_ns is None or due_at_ns < at_ns):
            at_ns = due_at_ns
        return at_ns

    @property
    def has_probed(self) -> bool:
        """True if data was sent: nearly all timers of TCP are retransmission timeouts."""
        return self._progress_at_ns is not None

    def deadline(self) -> Deadline | None:
        """Return when the connection is given up if the peer stays silent, None if never."""
        begin_ns, wait_ns = self._progress_at_ns, self._user_timeout_ns
        is_waiting = bool(self._board.sent) or not self._is_established
        if wait_ns is None or begin_ns is None or not is_waiting:
            return None
        reason = f"user timeout, no acknowledgement for {wait_ns / NS_PER_S:.4g} s"
        return Deadline(begin_ns + wait_ns, reason)

    def ack_ranges(self, packet: Segment) -> tuple[tuple[int, int], ...]:
        """Return the numbers of the peer's data segments that arrived, as spans, highest first.

        Valid at the time when *packet* leaves. Segments acknowledge bytes; of bytes that were sent
        twice this names the transmission that arrived.
        """
        return () if packet.ack is None else self._received.spans()

    def packets_to_send(self, now_ns: int) -> list[Segment]:
        """Return the segments that leave now."""
        if not self._is_established:
            handshake = self._handshake
            if handshake.is_syn_due and self._progress_at_ns is None:
                self._progress_at_ns = now_ns
            return [self._packer.syn(handshake, now_ns)] if handshake.is_syn_due else []
        segments: list[Segment] = []
        received, stream = self._received, self._stream
        if received.due_at_ns is not None and received.wants_sack:
            # SACK blocks are due at once, and the options would not fit next to a full payload.
            segments.append(self._packer.pure_ack(now_ns))
        if not self._is_settled or stream.end != stream.sent or self._source.has_data:
            self._pacer.begin()
            self._send(segments, now_ns)  # data segments carry the ACK
        # Otherwise, as nearly always at a client, there is nothing to send but ACKs.
        due_at_ns = received.due_at_ns
        if due_at_ns is not None and due_at_ns <= now_ns:
            segments.append(self._packer.pure_ack(now_ns))
        if received.echoes_mark:
            for segment in segments:
                segment.is_ece = True
        return segments

    def recovery_row(self, now_ns: int) -> RecoveryRow:
        """Return the state of recovery; losses are declared by bytes, so no numbers are listed."""
        recovery = self.recovery
        in_flight = recovery.board.pipe_bytes
        return make_recovery_row(now_ns, recovery.controller, recovery.rtt, in_flight, ())

    # Sending

    def _send(self, segments: list[Segment], now_ns: int) -> None:
        """Append the data segments that leave now; retransmissions go first."""
        stream, board, episode, pacer = self._stream, self._board, self._episode, self._pacer
        probe, mss_bytes = self._probe, self._mss_bytes
        while True:
            # Below TCP_NOTSENT_LOWAT the socket takes more from the application.
            n_bytes = stream.end - stream.sent
            if n_bytes < stream.lowat_bytes and self._handshake.may_send:
                stream.fill(board.una, now_ns)
                n_bytes = stream.end - stream.sent
            if probe is not None and probe.is_due:
                # A tail loss probe ignores the window (RFC 8985 § 7.3).
                segments.append(self._probe_segment(probe, now_ns))
                continue
            # Outside of an episode nothing is queued for retransmission, so this is the common case
            # without a call.
            if episode.point is None:
                room_bytes = self._controller.congestion_window - board.pipe_bytes
            else:
                room_bytes = self.recovery.room_bytes()
                lost = board.next_lost()
                if lost is not None:
                    resent = self._retransmission(lost, room_bytes, now_ns)
                    if resent is None:
                        return
                    segments.append(resent)
                    continue
            if n_bytes > mss_bytes:
                n_bytes = mss_bytes
            # No partial segments (silly window syndrome, RFC 9293 § 3.8.6.2.1).
            if n_bytes > room_bytes:
                self.recovery.is_cwnd_underutilized = False
                return
            if n_bytes and stream.sent + n_bytes <= self._right_edge:
                if pacer.ready_at_ns > now_ns:
                    pacer.due_at_ns = pacer.ready_at_ns
                    return
                segments.append(self._new_data(n_bytes, now_ns))
                continue
            # Linux grows the buffer only if the window has room for more than the buffer holds.
            may_expand = not n_bytes and room_bytes >= mss_bytes
            if may_expand and stream.expand(self._controller.congestion_window):
                continue
            resent = self._without_new_data(room_bytes, now_ns)
            if resent is None:
                return
            segments.append(resent)

    def _new_data(self, n_bytes: int, now_ns: int) -> Segment:
        """Return a segment with data that was never sent."""
        if not self._board.sent:
            self._progress_at_ns = now_ns
        sent = self._packer.cut(n_bytes, now_ns)
        self.recovery.on_sent(sent)
        if self._pacer.rate_bps is not None:
            self._pacer.on_sent(n_bytes, now_ns)
        segment = self._packer.segment(sent, now_ns)
        if self._is_ecn_capable:  # new data only: neither retransmissions nor ACKs (RFC 3168 § 6.1)
            segment.ecn = ECT
            segment.is_cwr = self.recovery.take_cwr()
        return segment

    def _retransmission(self, lost: SentSegment, room_bytes: int, now_ns: int) -> Segment | None:
        """Return a retransmission of *lost*, if it may leave now."""
        if lost.size_bytes > room_bytes and not self._episode.may_exceed_window:
            self.recovery.is_cwnd_underutilized = False
            return None
        return self._resent(lost, now_ns) if self._pacer.allows(now_ns) else None

    def _resent(self, sent: SentSegment, now_ns: int) -> Segment:
        """Return a segment with the same data, and record the retransmission."""
        self.recovery.on_resent(sent, self._packer.next_number, now_ns)
        self._pacer.on_sent(sent.size_bytes, now_ns)
        return self._packer.segment(sent, now_ns)

    def _without_new_data(self, room_bytes: int, now_ns: int) -> Segment | None:
        """Return a speculative retransmission, without new data (RFC 6675 § 4, rules 3 and 4)."""
        recovery = self.recovery
        if room_bytes < self._mss_bytes:
            recovery.is_cwnd_underutilized = False
            return None
        recovery.on_app_limited()
        if recovery.episode.point is None:
            self._is_settled = True
            return None
        resent = recovery.next_speculative(now_ns)
        return None if resent is None else self._resent(resent, now_ns)

    def _probe_segment(self, probe: TailLossProbe, now_ns: int) -> Segment:
        """Return a probe: new data if there is any, else the last segment (RFC 8985 § 7.3)."""
        stream = self._stream
        n_bytes = min(stream.end - stream.sent, self._mss_bytes)
        if n_bytes and stream.sent + n_bytes <= self._right_edge:
            segment = self._new_data(n_bytes, now_ns)
            probe.on_sent(stream.sent, None)
            return segment
        # The last segment exists: a probe is due only with data in flight, and leaves at once.
        last = next(reversed(self._board.sent.values()))
        resent = self._resent(last, now_ns)
        probe.on_sent(last.stop, last)
        return resent

    # Receiving

    def _read(self, records: list[TlsRecord]) -> list[StreamBytes]:
        """Return the application's bytes in records; answer those of the handshake."""
        frames: list[StreamBytes] = []
        for record in records:
            if record.message is None:
                frames += record.frames
            else:
                self._write(self._handshake.on_message(record.message))
        return frames

    # Connection establishment

    def _on_opening(self, packet: Segment, now_ns: int) -> None:
        """Handle a SYN, a SYN-ACK, or the segment that completes the handshake."""
        handshake = self._handshake
        was_established = self._is_established
        self._write(handshake.on_segment(packet))
        self._is_established = handshake.state is State.ESTABLISHED
        # RFC 9293 § 3.5: the ACK that completes the three-way handshake; a ClientHello carries it.
        if packet.is_syn and self._is_established:
            self._received.due_at_ns = now_ns
        if not was_established:
            self._right_edge = packet.window_bytes  # SND.WND (RFC 9293 § 3.10.7.4)
            if packet.echo_ns is not None:  # only the first SYN echoes no timestamp
                self.recovery.on_rtt(now_ns - packet.echo_ns)

    def _write(self, message: Message | None) -> None:
        """Append a message of the handshake to the stream, if there is one."""
        if message is not None:
            self._stream.write_message(message, self._handshake.length_of(message))


def _make_pacer(
    settings: TcpSettings, controller: CongestionController, rtt: RttEstimator
) -> Pacer:
    """Return the pacer of an endpoint with these settings."""
    mss_bytes = settings.mss_bytes
    burst_bytes = settings.pacing_burst_segments * mss_bytes
    return Pacer(
        controller, rtt, gain=settings.pacing_gain, burst_bytes=burst_bytes, packet_bytes=mss_bytes
    )
