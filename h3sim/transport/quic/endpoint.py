"""One endpoint of a QUIC connection: packets, acknowledgements, timers.

Read next, on the path of docs/reading.md: `h3sim/transport/quic/packer.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from h3sim.transport.endpoint import Deadline, Endpoint, make_recovery_row
from h3sim.transport.flow_control import FlowReceiver
from h3sim.transport.pacing import AioquicPacer, Pacer
from h3sim.transport.packets import ECT
from h3sim.transport.quic.packer import MIN_FRAME_BYTES, Packer
from h3sim.transport.quic.packets import QuicPacket
from h3sim.transport.quic.recovery import AckState, Recovery
from h3sim.transport.quic.settings import PacingBucket
from h3sim.values.units import NS_PER_MS, NS_PER_S

if TYPE_CHECKING:
    from h3sim.trace import RecoveryRow
    from h3sim.transport.congestion import CongestionController
    from h3sim.transport.endpoint import Source
    from h3sim.transport.packets import StreamBytes
    from h3sim.transport.quic.handshake import Handshake
    from h3sim.transport.quic.settings import QuicSettings
    from h3sim.transport.rtt import RttEstimator


_MIN_WINDOW_BYTES = 2 * MIN_FRAME_BYTES
"""The smallest remaining window in which something is sent (quicly: MIN_SEND_WINDOW)."""


class QuicEndpoint(Endpoint[QuicPacket]):
    """A client or a server; both send, acknowledge and recover in the same way."""

    def __init__(
        self,
        settings: QuicSettings,
        controller: CongestionController,
        source: Source,
        handshake: Handshake,
        *,
        peer_max_ack_delay_ns: int,
        idle_timeout_ns: int | None = None,
        path_rtt_ns: int | None = None,
        has_ecn: bool = False,
    ) -> None:
        self._source = source
        self._peer_max_ack_delay_ns = peer_max_ack_delay_ns
        self._idle_timeout_ns = idle_timeout_ns
        """The shorter one of both ends' (RFC 9000 § 10.1)."""
        self._blackhole_timeouts = settings.blackhole_timeouts
        self._heard_at_ns = 0
        """Time when the last packet of the peer arrived."""
        self._is_ecn_capable = has_ecn and controller.responds_to_ecn
        self._handshake = handshake
        self._controller = controller
        self.recovery = Recovery(controller, settings, peer_max_ack_delay_ns=peer_max_ack_delay_ns)
        if path_rtt_ns is not None:
            self.recovery.on_path_rtt(path_rtt_ns)
        self._acks = AckState.of(settings)
        self._packer = Packer(settings, source, handshake, self._acks, self.recovery)
        self._has_aioquic_bucket = settings.pacing_bucket is PacingBucket.AIOQUIC
        self._pacer = _make_pacer(settings, controller, self.recovery.rtt)
        self._flow = FlowReceiver(
            stream_window=settings.stream_window_bytes,
            connection_window=settings.connection_window_bytes,
            max_window=settings.max_window_bytes,
            rtt=self.recovery.rtt,
        )
        self._probes_per_timeout = settings.probes
        self._loss_timer_packets = settings.loss_timer_packets
        self._free_packets = 0
        """Packets that may leave now regardless of the window."""
        self._is_settled = False
        """True if recovery knows that nothing waits; the source may have changed since."""
        # Read for every packet, so copied from the settings.
        self._datagram_bytes = settings.datagram_bytes
        self._header_bytes = settings.header_bytes
        self._frame_header = self._packer.header
        self._partial_datagrams = settings.partial_datagrams
        self._uses_last_bytes = settings.partial_datagrams or settings.may_exceed_cwnd
        """True if a packet leaves, cut or not, when the window has less room than a full one."""
        self._forgets_acks = settings.ack_ping_every > 0
        """True if packets are no longer acknowledged once the peer has an ACK of them."""
        self._begin(settings)

    def _begin(self, settings: QuicSettings) -> None:
        """Set up the state of a derived class."""

    @property
    def is_ready(self) -> bool:
        """True if the handshake allows application data."""
        return self._handshake.may_send

    # Events

    def on_packet(self, packet: QuicPacket, now_ns: int) -> list[StreamBytes]:
        """Handle a packet that arrived; return the stream bytes that it delivers."""
        self._heard_at_ns = now_ns
        if not self._handshake.is_over:
            # Before duplicates are dropped: RFC 9000 § 8.1 counts all bytes.
            self._handshake.on_datagram(packet)
        if not self._acks.on_packet(packet.number, now_ns, packet.is_ack_eliciting):
            return []
        if packet.ecn:
            self._acks.on_ecn(packet.ecn, now_ns, packet.is_ack_eliciting)
        ack = packet.ack
        if ack is not None:
            self._is_settled = False
            acked, lost = self.recovery.on_ack(ack, packet.ack_delay_ns, now_ns, packet.ce_count)
            if acked:
                self._on_acked(acked)
            for gone in lost:
                self._on_lost(gone)
        # The source ignores a lower limit: frames may arrive out of order (RFC 9000 § 4.1).
        if packet.limits:
            for stream_id, limit in packet.limits:
                self._source.on_limit(stream_id, limit)
        for stream_id, offset, n_bytes in packet.frames:
            raised = self._flow.on_bytes(stream_id, offset + n_bytes, now_ns)
            if raised:
                self._packer.limits.update(raised)
                self._is_settled = False
        return packet.frames

    def on_timer(self, now_ns: int) -> None:
        """Handle the loss timer: declare packets lost, or probe (RFC 9002 § 6.2)."""
        self._is_settled = False
        due_at_ns = self._recovery_at_ns()
        if due_at_ns is None or due_at_ns > now_ns:
            return
        lost = self.recovery.on_timer(now_ns)
        if lost is None:
            # RFC 9002 § 6.2.4: one or two probes per timeout, regardless of the window.
            self._packer.probes = self._probes_per_timeout
            return
        self._free_packets = self._loss_timer_packets
        for packet in lost:
            self._on_lost(packet)

    def timer_at_ns(self) -> int | None:
        """Return the time of the next timer."""
        soonest = self.recovery.due_at_ns
        if soonest is None and not self._handshake.is_over:
            soonest = self._recovery_at_ns()
        at_ns = self._acks.due_at_ns
        if at_ns is not None and (soonest is None or at_ns < soonest):
            soonest = at_ns
        at_ns = self._pacer.due_at_ns
        if at_ns is not None and (soonest is None or at_ns < soonest):
            soonest = at_ns
        return soonest

    @property
    def has_probed(self) -> bool:
        """True if a probe timeout has expired, and nothing was acknowledged since."""
        return self.recovery.pto_count > 0

    def deadline(self) -> Deadline | None:
        """Return when the connection is given up if the peer stays silent, None if never.

        An idle connection is kept: clients keep it alive with PING frames while they wait (Chrome
        every 15 s), or open another one for their next request.
        """
        recovery = self.recovery
        oldest = recovery.oldest
        if oldest is None:
            return None
        deadlines = []
        if self._idle_timeout_ns is not None:
            # RFC 9000 § 10.1: the timer restarts with a packet from the peer, and with the first
            # ack-eliciting one that is sent after it; it runs for at least three PTOs.
            heard_at_ns = self._heard_at_ns
            restarted_at_ns = recovery.first_sent_after(heard_at_ns) or heard_at_ns
            pto_ns = recovery.rtt.probe_timeout_ns(self._peer_max_ack_delay_ns)
            wait_ns = max(self._idle_timeout_ns, 3 * pto_ns)
            reason = f"idle timeout, no packet for {wait_ns / NS_PER_S:.4g} s"
            deadlines.append(Deadline(restarted_at_ns + wait_ns, reason))
        if self._blackhole_timeouts and self._handshake.is_complete:
            wait_ns = recovery.silence_to_give_up_ns(self._blackhole_timeouts)
            begin_ns = max(recovery.acked_at_ns, oldest.sent_at_ns)
            reason = f"network black hole, no acknowledgement for {wait_ns / NS_PER_S:.4g} s"
            deadlines.append(Deadline(begin_ns + wait_ns, reason))
        return min(deadlines, default=None)

    def _recovery_at_ns(self) -> int | None:
        """Return the time of the loss timer; a client probes until the handshake is over."""
        due_at_ns = self.recovery.due_at_ns
        if due_at_ns is None and self._handshake.may_deadlock:
            return self.recovery.probe_at_ns()
        return due_at_ns

    def packets_to_send(self, now_ns: int) -> list[QuicPacket]:
        """Return the packets that leave now."""
        packets: list[QuicPacket] = []
        if not self._is_settled or self._source.has_data:
            self._send(packets, now_ns)
        # Otherwise, as nearly always at a client, there is nothing to send but ACKs.
        at_ns = self._acks.due_at_ns
        if at_ns is not None and at_ns <= now_ns:
            packet = self._packer.bare_ack(now_ns)
            # Only ack-eliciting packets count as in flight (RFC 9002 § 2).
            if packet.is_ack_eliciting or not self._handshake.is_over:
                self._on_sent(packet)
            packets.append(packet)
        if self._is_ecn_capable:  # every packet, those with ACKs alone included (RFC 9000 § 13.4.2)
            for packet in packets:
                packet.ecn = ECT
        return packets

    def ack_ranges(self, packet: QuicPacket) -> tuple[tuple[int, int], ...]:
        """Return the packet numbers that a packet acknowledges, as spans, the highest first."""
        return packet.ack or ()

    def recovery_row(self, now_ns: int) -> RecoveryRow:
        """Return the state of recovery, and the packets declared lost since the last call."""
        recovery = self.recovery
        return make_recovery_row(
            now_ns, self._controller, recovery.rtt, recovery.bytes_in_flight, recovery.take_lost()
        )

    # Sending

    def _send(self, packets: list[QuicPacket], now_ns: int) -> None:
        """Append the packets that leave now, except a bare ACK."""
        has_control_data = self._packer.limits or self._packer.probes or not self._handshake.is_over
        if has_control_data or self._source.has_data:
            self._is_settled = False
            self._pacer.begin()
            is_mixed = has_control_data or self._free_packets or self._acks.due_at_ns is not None
            if is_mixed or self._has_aioquic_bucket:
                self._send_all(packets, now_ns)
            else:
                self._send_streams(packets, now_ns)
        else:
            self._pacer.due_at_ns = None  # set again if a packet waits for it
            self._on_idle(now_ns)
        self._free_packets = 0

    def _send_all(self, packets: list[QuicPacket], now_ns: int) -> None:
        """Append packets as long as sending is allowed and there is something to send."""
        while room := self._packet_room(now_ns):
            packet = self._packer.packet(now_ns, room)
            if packet is None:
                self.recovery.mark_app_limited()
                break
            self._on_sent(packet)
            packets.append(packet)
            if self._free_packets:
                self._free_packets -= 1

    def _send_streams(self, packets: list[QuicPacket], now_ns: int) -> None:
        """Do the same as `_send_all` when only stream bytes can wait.

        That is nearly always the case. The work of `_packet_room`, `Packer.packet` and `_on_sent`
        for each packet is inlined in one loop, without the branches that cannot apply.
        """
        # Attributes used once per packet are not copied to locals: few packets are sent per call.
        # The window is read in each round of the loop: `on_sent` of a controller may change it.
        recovery, controller, pacer = self.recovery, self._controller, self._pacer
        full_bytes, is_paced = self._datagram_bytes, pacer.rate_bps is not None
        while True:
            room = full_bytes
            if controller.congestion_window - recovery.bytes_in_flight < full_bytes:
                room = self._packet_room(now_ns) if self._uses_last_bytes else 0
                if not room:
                    return
            elif is_paced and pacer.ready_at_ns > now_ns:
                pacer.due_at_ns = pacer.ready_at_ns
                return
            left_bytes, header = room - self._header_bytes, self._frame_header
            frame = (
                self._source.take(left_bytes, header, 1) if left_bytes >= MIN_FRAME_BYTES else None
            )
            if frame is None:
                recovery.mark_app_limited()
                return
            _, _, n_bytes = frame
            left_bytes -= header.n_bytes + n_bytes
            frames = [frame]
            if left_bytes >= MIN_FRAME_BYTES:  # the stream ended inside the packet
                left_bytes = self._packer.fill(frames, left_bytes, MIN_FRAME_BYTES)
            recovery.is_cwnd_underutilized = False
            number = recovery.next_number
            recovery.next_number = number + 1
            packet = QuicPacket(number, now_ns, room - left_bytes, frames, None, (), True)
            recovery.on_sent(packet)
            if is_paced:
                pacer.on_sent(room - left_bytes, now_ns)
            packets.append(packet)

    def _on_idle(self, now_ns: int) -> None:
        """Note that a packet could leave now but nothing waits."""
        # Without data to send, the rate matters only while the pacer has to wait.
        if self._has_aioquic_bucket or self._pacer.empty_at_ns > now_ns:
            self._pacer.begin()
        else:
            self._pacer.end()
        if self._packet_room(now_ns):
            self.recovery.mark_app_limited()
            self._is_settled = True

    def _packet_room(self, now_ns: int) -> int:
        """Return the size that a packet may have now, 0 for none; probes ignore the window."""
        full_bytes = self._datagram_bytes
        handshake = self._handshake
        if not handshake.is_over:
            full_bytes = min(full_bytes, handshake.allowance_bytes)
        # RFC 9002 § 7.5: probes are not blocked by the congestion controller, but do count as in
        # flight, so they may take it beyond the window.
        if self._packer.probes:
            return full_bytes
        left_bytes = self._controller.congestion_window - self.recovery.bytes_in_flight
        if left_bytes < full_bytes and not self._free_packets:
            # Too little for a useful frame: quicly waits for the next ACK instead.
            if left_bytes < _MIN_WINDOW_BYTES or not self._uses_last_bytes:
                return 0
            if self._partial_datagrams:
                full_bytes = left_bytes
        return full_bytes if self._pacer.allows_part(full_bytes, now_ns) else 0

    def _on_sent(self, packet: QuicPacket) -> None:
        """Count a packet that leaves now in handshake, recovery and pacing."""
        if not self._handshake.is_over:
            self._handshake.on_sent(packet)
        # RFC 9002 § 7: packets that carry only ACKs are neither counted as in flight nor limited by
        # congestion control; § 7.7: nor paced, since a late ACK delays the peer's feedback.
        if not packet.is_ack_eliciting:
            return
        self.recovery.on_sent(packet)
        self._pacer.on_sent(packet.size_bytes, packet.sent_at_ns)

    # Outcomes of packets

    def _on_acked(self, packets: list[QuicPacket]) -> None:
        """Report the contents of acknowledged packets to their sources."""
        source, forgets_acks = self._source, self._forgets_acks
        for packet in packets:
            # RFC 9000 § 13.2.4: the peer has this ACK, so its packets need not be reported again.
            if forgets_acks and packet.ack is not None:
                _, highest = packet.ack[0]
                self._acks.forget(highest)
            for stream_id, offset, n_bytes in packet.frames:
                source.on_acked(stream_id, offset, n_bytes)
            if packet.crypto:
                for offset, n_bytes in packet.crypto:
                    self._handshake.on_acked(offset, n_bytes)

    def _on_lost(self, packet: QuicPacket) -> None:
        """Return the contents of a lost packet to their sources, to be sent again."""
        # RFC 9000 § 13.3: packets are never retransmitted, their information is, in new frames.
        # ACKs are not: a newer one reports more.
        for stream_id, offset, n_bytes in packet.frames:
            self._source.on_lost(stream_id, offset, n_bytes)
        for offset, n_bytes in packet.crypto:
            self._handshake.on_lost(offset, n_bytes)
        for limited, limit in packet.limits:
            # A higher limit that was announced since is in flight (RFC 9000 § 13.3).
            if limit == self._flow.limit(limited):
                self._packer.limits[limited] = limit


def _make_pacer(
    settings: QuicSettings, controller: CongestionController, rtt: RttEstimator
) -> Pacer:
    """Return the pacer of an endpoint with these settings."""
    kind = AioquicPacer if settings.pacing_bucket is PacingBucket.AIOQUIC else Pacer
    full_bytes = settings.datagram_bytes
    burst_bytes = settings.pacing_burst_packets * full_bytes
    return kind(
        controller, rtt, gain=settings.pacing_gain, burst_bytes=burst_bytes, packet_bytes=full_bytes
    )


_TIMER_SLACK_NS: Final = NS_PER_MS // 20
"""Latency of Linux timers for a sleeping process: up to 50 microseconds (prctl(2),
PR_SET_TIMERSLACK; select_estimate_accuracy in fs/select.c, which epoll_wait uses)."""


class EventLoop:
    """The event loop that runs the timers of one endpoint.

    If the time until a timer is no multiple of *granularity_ns*, the loop sleeps up to the next
    multiple, counted from when it went to sleep: asyncio's selector rounds the timeout of
    epoll_wait up to a millisecond (Lib/selectors.py, EpollSelector.select). It goes to sleep after
    processing the packets that arrived, *processing_ns* each. A packet that arrives wakes it, and
    then timers that have expired run as well (Lib/asyncio/base_events.py,
    BaseEventLoop._run_once).

    >>> loop = EventLoop(granularity_ns=1_000_000, processing_ns=100_000)
    >>> loop.on_packet(0); loop.wakes_at_ns(1_000_000)  # 0.9 ms are left when it goes to sleep
    1150000
    >>> loop.on_packet(950_000); loop.wakes_at_ns(1_000_000)  # has run out when that is done
    1050000
    """

    __slots__ = ("_granularity_ns", "_idle_at_ns", "_processing_ns")

    def __init__(self, *, granularity_ns: int, processing_ns: int) -> None:
        self._granularity_ns = granularity_ns
        self._processing_ns = processing_ns
        self._idle_at_ns = 0
        """Time when it last went to sleep, or will have processed what arrived."""

    def on_packet(self, now_ns: int) -> None:
        """Process a packet, after those before it."""
        idle_at_ns = self._idle_at_ns
        # Packets queue for a busy process: processing times add up instead of overlapping.
        self._idle_at_ns = (idle_at_ns if idle_at_ns > now_ns else now_ns) + self._processing_ns

    def on_woken(self, now_ns: int) -> None:
        """Record an action that takes no time."""
        if now_ns > self._idle_at_ns:
            self._idle_at_ns = now_ns

    def wakes_at_ns(self, timer_at_ns: int) -> int:
        """Return when a timer runs if no other event occurs before."""
        left_ns = timer_at_ns - self._idle_at_ns
        if left_ns <= 0:
            # The timer expired while the loop was busy: it runs right after, without a sleep.
            return self._idle_at_ns
        granularity_ns = self._granularity_ns
        if not granularity_ns:
            return timer_at_ns
        # Rounded up: a selector that woke early would find no timer due, and spin.
        slept_ns = -(-left_ns // granularity_ns) * granularity_ns
        return self._idle_at_ns + slept_ns + _TIMER_SLACK_NS


class TimerGranularityEndpoint(QuicEndpoint):
    """A `QuicEndpoint` whose timers run when its event loop gets to them.

    Delayed ACKs, paced packets and probes wait for the loop; reactions to a packet that arrives
    leave at once.
    """

    def _begin(self, settings: QuicSettings) -> None:
        self._loop = EventLoop(
            granularity_ns=settings.timer_granularity_ns,
            processing_ns=settings.packet_processing_ns,
        )

    def on_packet(self, packet: QuicPacket, now_ns: int) -> list[StreamBytes]:
        """Handle a packet that arrived; return the stream bytes that it delivers."""
        self._loop.on_packet(now_ns)
        return super().on_packet(packet, now_ns)

    def packets_to_send(self, now_ns: int) -> list[QuicPacket]:
        """Return the packets that leave now."""
        self._loop.on_woken(now_ns)
        return super().packets_to_send(now_ns)

    def timer_at_ns(self) -> int | None:
        """Return when the loop runs the next timer."""
        timer_at_ns = super().timer_at_ns()
        return None if timer_at_ns is None else self._loop.wakes_at_ns(timer_at_ns)
