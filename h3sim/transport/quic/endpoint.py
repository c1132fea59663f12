"""One end of a QUIC connection: packs frames into packets, acknowledges, recovers what is lost."""

from __future__ import annotations

from typing import TYPE_CHECKING

from h3sim.transport.bucket_pacer import BucketPacer
from h3sim.transport.endpoint import row_of
from h3sim.transport.pacer import Pacer, pace_bps
from h3sim.transport.quic.acks import AckState
from h3sim.transport.quic.flow import FlowReceiver
from h3sim.transport.quic.packets import Packet, ack_frame_bytes, stream_header_bytes
from h3sim.transport.quic.recovery import Recovery
from h3sim.transport.quic.settings import PacingBucket

if TYPE_CHECKING:
    from collections.abc import Sequence

    from h3sim.trace import RecoveryRow
    from h3sim.transport.congestion import CongestionController
    from h3sim.transport.endpoint import Source, StreamBytes
    from h3sim.transport.quic.handshake import Handshake
    from h3sim.transport.quic.settings import QuicSettings

__all__ = ["QuicEndpoint"]

_LEAST_ACK_BYTES = 5
"""Kept free for an ACK while a packet is filled; further ranges come on top."""
_LIMIT_FRAME_BYTES = 6
_MIN_FRAME_BYTES = 32
"""A frame with less of a stream than this is not worth its header."""
_MIN_ROOM_BYTES = 2 * _MIN_FRAME_BYTES
"""With less left of a window nothing is sent (quicly: MIN_SEND_WINDOW)."""


class QuicEndpoint:
    """A client or a server; both send, acknowledge and recover in the same way."""

    def __init__(
        self,
        settings: QuicSettings,
        controller: CongestionController,
        source: Source,
        handshake: Handshake,
        *,
        peer_max_ack_delay_ns: int,
        path_rtt_ns: int | None = None,
    ) -> None:
        self._settings = settings
        self._source = source
        self._handshake = handshake
        self._controller = controller
        self.recovery = Recovery.of(settings, controller, peer_max_ack_delay_ns)
        if path_rtt_ns is not None:
            self.recovery.rtt.on_sample(path_rtt_ns)
        self._acks = AckState.of(settings)
        self._pacer = Pacer(burst_bytes=settings.pacing_burst_packets * settings.datagram_bytes)
        self._bucket: BucketPacer | None = None
        if settings.pacing_bucket is PacingBucket.AIOQUIC:
            self._bucket = BucketPacer(datagram_bytes=settings.datagram_bytes)
        self._on_bytes = FlowReceiver(
            stream_window=settings.stream_window_bytes,
            connection_window=settings.connection_window_bytes,
        ).on_bytes
        self._limits: list[tuple[int | None, int]] = []
        """Raised limits that wait to be announced."""
        self._probes = 0
        self._free_packets = 0
        """So many packets may leave now, whatever the window."""
        self._is_settled = False
        """Whether recovery knows that nothing waits to be sent, and nothing has changed since."""
        self._paced_until_ns: int | None = None
        self._rate_bps: int | None = None
        # Looked at for every packet, so not by way of the settings.
        self._datagram_bytes = settings.datagram_bytes
        self._header_bytes = settings.header_bytes
        self._pacing_gain = settings.pacing_gain
        self._bundles_acks = settings.bundles_acks
        self._ack_ping_every = settings.ack_ping_every

    @property
    def is_ready(self) -> bool:
        """Whether the handshake lets the application's bytes go."""
        return self._handshake.may_send

    # What happens to it

    def on_packet(self, packet: Packet, now_ns: int) -> Sequence[StreamBytes]:
        """Take a packet that arrived; return the stream bytes that it brings."""
        if not self._handshake.is_over:
            self._handshake.on_datagram(packet)
        if not self._acks.on_packet(packet.number, now_ns, packet.is_ack_eliciting):
            return ()
        if packet.ack is not None:
            self._is_settled = False
            acked, lost = self.recovery.on_ack(packet.ack, now_ns)
            if acked:
                self._on_acked(acked)
            for gone in lost:
                self._on_lost(gone)
        for stream_id, limit in packet.limits:
            self._source.on_limit(stream_id, limit)
        frames = packet.frames
        on_bytes = self._on_bytes
        for stream_id, offset, n_bytes in frames:
            raised = on_bytes(stream_id, offset + n_bytes)
            if raised:
                self._limits += raised
        return frames

    def on_timer(self, now_ns: int) -> None:
        """Declare lost or probe, if that is what was due."""
        self._is_settled = False
        due_at_ns = self._recovery_at_ns()
        if due_at_ns is None or due_at_ns > now_ns:
            return
        lost = self.recovery.on_timer(now_ns)
        if lost is None:
            self._probes = self._settings.probes
            return
        self._free_packets = self._settings.loss_timer_packets
        for packet in lost:
            self._on_lost(packet)

    def timer_at_ns(self) -> int | None:
        """Return when to be woken."""
        soonest = self.recovery.due_at_ns or self._recovery_at_ns()
        at_ns = self._acks.due_at_ns
        if at_ns is not None and (soonest is None or at_ns < soonest):
            soonest = at_ns
        at_ns = self._paced_until_ns
        if at_ns is not None and (soonest is None or at_ns < soonest):
            soonest = at_ns
        return soonest

    def _recovery_at_ns(self) -> int | None:
        """Return when recovery has something to do; a client probes until the handshake is over."""
        due_at_ns = self.recovery.due_at_ns
        if due_at_ns is None and not self._handshake.is_over and self._handshake.may_deadlock:
            return self.recovery.probe_at_ns()
        return due_at_ns

    def packets_to_send(self, now_ns: int) -> list[Packet]:
        """Return the packets that leave now."""
        has_data = self._source.has_data or self._limits or self._probes
        if self._is_settled and not has_data:
            at_ns = self._acks.due_at_ns
            return [] if at_ns is None or at_ns > now_ns else [self._bare_ack(now_ns)]
        packets: list[Packet] = []
        self._paced_until_ns = None
        if has_data or not self._handshake.is_over:
            self._is_settled = False
            self._fill_packets(packets, now_ns)
        else:
            self._settle(now_ns)
        self._free_packets = 0
        due_at_ns = self._acks.due_at_ns
        if due_at_ns is not None and due_at_ns <= now_ns:
            packets.append(self._bare_ack(now_ns))
        return packets

    def ack_ranges(self, packet: Packet) -> tuple[tuple[int, int], ...]:
        """Return the spans of numbers that a packet of this end acknowledges, highest first."""
        return () if packet.ack is None else packet.ack.spans

    def recovery_row(self, now_ns: int) -> RecoveryRow:
        """Return the state of recovery, and what was declared lost since this was last asked."""
        recovery = self.recovery
        lost, recovery.declared_lost = recovery.declared_lost, []
        return row_of(now_ns, self._controller, recovery.rtt, recovery.bytes_in_flight, lost)

    # Sending

    def _fill_packets(self, packets: list[Packet], now_ns: int) -> None:
        """Add the packets that may leave now and have something to carry."""
        self._take_rate()
        is_mixed = self._limits or self._probes or self._acks.has_news
        is_special = is_mixed or self._free_packets or self._bucket is not None
        if not is_special and self._handshake.is_over:
            self._fill_with_streams(packets, now_ns)
            return
        while room := self._room(now_ns):
            packet = self._build(now_ns, room)
            if packet is None:
                self.recovery.on_nothing_to_send()
                break
            packets.append(packet)
            if self._free_packets:
                self._free_packets -= 1

    def _fill_with_streams(self, packets: list[Packet], now_ns: int) -> None:
        """Do what `_fill_packets` does where nothing but stream bytes can wait.

        That is nearly always so. What `_build`, `_pack` and `_on_sent` would find out and do for
        each packet is done here in one loop, without what cannot be the case.
        """
        recovery, controller, take = self.recovery, self._controller, self._source.take
        full, header_bytes = self._datagram_bytes, self._header_bytes
        rate_bps, pacer = self._rate_bps, self._pacer
        ahead_ns = 0 if rate_bps is None else pacer.ahead_ns(full, rate_bps)
        while True:
            room = full
            if controller.congestion_window - recovery.bytes_in_flight < full:
                room = self._room(now_ns)
                if not room:
                    return
            elif rate_bps is not None and pacer.empty_at_ns - ahead_ns > now_ns:
                self._paced_until_ns = pacer.empty_at_ns - ahead_ns
                return
            left = room - header_bytes
            frames: list[StreamBytes] = []
            least = 1
            while left >= _MIN_FRAME_BYTES and (frame := take(left, stream_header_bytes, least)):
                frames.append(frame)
                left -= stream_header_bytes(frame[0], frame[1]) + frame[2]
                least = _MIN_FRAME_BYTES
            if not frames:
                recovery.on_nothing_to_send()
                return
            recovery.is_cwnd_underutilized = False
            number = recovery.next_number
            recovery.next_number = number + 1
            packet = Packet(number, now_ns, room - left, frames, None, (), True)
            recovery.on_sent(packet)
            if rate_bps is not None:
                pacer.on_sent(room - left, rate_bps, now_ns)
            packets.append(packet)

    def _settle(self, now_ns: int) -> None:
        """Tell recovery that a packet might leave now, and that there is none."""
        # Without anything to send, what the rate is matters only while the pacer has to wait.
        if self._bucket is not None or self._pacer.empty_at_ns > now_ns:
            self._take_rate()
        else:
            self._rate_bps = None
        if self._room(now_ns):
            self.recovery.on_nothing_to_send()
            self._is_settled = True

    def _room(self, now_ns: int) -> int:
        """Return how large a packet may be now, 0 for none; probes go whatever the window."""
        full = self._datagram_bytes
        handshake = self._handshake
        if not handshake.is_over:
            full = min(full, handshake.allowance_bytes)
        if self._probes:
            return full
        left = self._controller.congestion_window - self.recovery.bytes_in_flight
        if left < full and not self._free_packets:
            settings = self._settings
            if left < _MIN_ROOM_BYTES or not (settings.fills_window or settings.overshoots_window):
                return 0
            if settings.fills_window:
                full = left
        rate_bps = self._rate_bps
        if rate_bps is not None:
            ready_at_ns = now_ns
            if self._bucket is not None:
                ready_at_ns = self._bucket.ready_at_ns(now_ns)
            elif self._pacer.empty_at_ns > now_ns:
                ready_at_ns = self._pacer.ready_at_ns(full, rate_bps)
            if ready_at_ns > now_ns:
                self._paced_until_ns = ready_at_ns
                return 0
        return full

    def _take_rate(self) -> None:
        """Note the pace of the moment."""
        controller = self._controller
        rate_bps = self._rate_bps = pace_bps(controller, self.recovery.rtt, self._pacing_gain)
        if self._bucket is not None and rate_bps is not None:
            self._bucket.begin(window_bytes=controller.congestion_window, rate_bps=rate_bps)

    def _build(self, now_ns: int, room: int) -> Packet | None:
        """Fill a packet with handshake bytes, limits and stream bytes; None if there is nothing."""
        left = room - self._header_bytes
        if self._is_ack_ready(now_ns):
            left -= _LEAST_ACK_BYTES
        frames: list[StreamBytes] = []
        crypto: list[tuple[int, int]] = []
        handshake = self._handshake
        if not handshake.is_over:
            left = room - handshake.fill(crypto, room - left, room)
        if handshake.is_over or handshake.may_send:
            least = 1
            while left >= _MIN_FRAME_BYTES:
                frame = self._source.take(left, stream_header_bytes, least)
                if frame is None:
                    break
                frames.append(frame)
                left -= stream_header_bytes(frame[0], frame[1]) + frame[2]
                least = _MIN_FRAME_BYTES
        if self._probes:
            return self._probe(now_ns, frames, crypto, room - left)
        if not frames and not crypto and not self._limits:
            return None
        self.recovery.is_cwnd_underutilized = False
        return self._pack(now_ns, frames, crypto, room - left)

    def _probe(
        self, now_ns: int, frames: list[StreamBytes], crypto: list[tuple[int, int]], used: int
    ) -> Packet | None:
        """Return a probe with these frames; without any, with those of the oldest in flight."""
        if not frames and not crypto and not self._limits:
            oldest = self.recovery.oldest
            if oldest is not None:  # RFC 9002 § 6.2.4
                frames += oldest.frames
                crypto += oldest.crypto
            if not frames and not crypto:
                self._probes = 0
                is_awaited = self.recovery.bytes_in_flight or self._handshake.may_deadlock
                return self._ping(now_ns) if is_awaited else None
            used += sum(frame[-1] + 12 for frame in (*frames, *crypto))
        self._probes -= 1
        return self._pack(now_ns, frames, crypto, used)

    def _pack(
        self, now_ns: int, frames: list[StreamBytes], crypto: Sequence[tuple[int, int]], used: int
    ) -> Packet:
        """Return a packet with these frames, limits that wait, and an ACK if one goes with it."""
        limits: Sequence[tuple[int | None, int]] = ()
        if self._limits:
            limits, self._limits = self._limits, []
            used += _LIMIT_FRAME_BYTES * len(limits)
        is_eliciting = bool(frames or crypto or limits)
        ack = None
        if self._is_ack_ready(now_ns) or not is_eliciting:
            ack = self._acks.frame(now_ns)
            used += ack_frame_bytes(ack) - (_LEAST_ACK_BYTES if frames or crypto else 0)
            every = self._ack_ping_every
            if every and not self.recovery.next_number % every and len(ack.spans) > 1:
                is_eliciting = True
                used += 1
        if not self._handshake.is_over:
            used = self._handshake.padded(crypto, used)
        number = self.recovery.next_number
        packet = Packet(number, now_ns, used, frames, ack, limits, is_eliciting, crypto)
        self._on_sent(packet)
        return packet

    def _bare_ack(self, now_ns: int) -> Packet:
        """Return a packet that carries an ACK alone."""
        if self._limits or self._ack_ping_every or not self._handshake.is_over:
            return self._pack(now_ns, [], (), self._header_bytes)
        # What `_pack` comes to where none of that can be: half of a client's packets lead to one.
        ack = self._acks.frame(now_ns)
        number = self.recovery.next_number
        self.recovery.next_number = number + 1
        return Packet(number, now_ns, self._header_bytes + ack_frame_bytes(ack), [], ack, (), False)

    def _is_ack_ready(self, now_ns: int) -> bool:
        """Whether the next packet carries an ACK."""
        if not self._acks.has_news or self._bundles_acks:
            return self._acks.has_news
        due_at_ns = self._acks.due_at_ns
        return due_at_ns is not None and due_at_ns <= now_ns

    def _ping(self, now_ns: int) -> Packet:
        """Return a probe that carries nothing but asks for an ACK."""
        least = self._settings.client_initial_bytes if self._handshake.may_deadlock else 0
        used = max(self._header_bytes + 1, least)
        packet = Packet(self.recovery.next_number, now_ns, used, [], None, (), True)
        self._on_sent(packet)
        return packet

    def _on_sent(self, packet: Packet) -> None:
        if not self._handshake.is_over:
            self._handshake.on_sent(packet)
        recovery = self.recovery
        recovery.next_number = packet.number + 1
        if not packet.is_ack_eliciting:
            return
        recovery.on_sent(packet)
        rate_bps = self._rate_bps
        if rate_bps is None:
            return
        if self._bucket is None:
            self._pacer.on_sent(packet.size_bytes, rate_bps, packet.sent_at_ns)
        else:
            self._bucket.on_sent(packet.sent_at_ns)

    # What becomes of packets

    def _on_acked(self, packets: Sequence[Packet]) -> None:
        on_acked = self._source.on_acked
        for packet in packets:
            if packet.ack is not None and self._ack_ping_every:
                self._acks.forget(packet.ack.spans[0][1])
            for stream_id, offset, n_bytes in packet.frames:
                on_acked(stream_id, offset, n_bytes)
            for offset, n_bytes in packet.crypto:
                self._handshake.on_acked(offset, n_bytes)

    def _on_lost(self, packet: Packet) -> None:
        for stream_id, offset, n_bytes in packet.frames:
            self._source.on_lost(stream_id, offset, n_bytes)
        for offset, n_bytes in packet.crypto:
            self._handshake.on_lost(offset, n_bytes)
        # A limit is announced again as it is now; the flow receiver knows the newest (§ 13.3).
        self._limits += [limit for limit in packet.limits if limit not in self._limits]
