"""One endpoint of a QUIC connection: flow control, packets, acknowledgements, timers.

Read next, on the path of docs/reading.md: `h3sim/transport/quic/packer.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from h3sim.transport.endpoint import Endpoint, row_of
from h3sim.transport.pacing import AioquicPacer, Pacer
from h3sim.transport.quic.packer import MIN_FRAME_BYTES, Packer
from h3sim.transport.quic.packets import QuicPacket
from h3sim.transport.quic.recovery import AckState, Recovery
from h3sim.transport.quic.settings import PacingBucket
from h3sim.units import NS_PER_MS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from h3sim.trace import RecoveryRow
    from h3sim.transport.congestion import CongestionController
    from h3sim.transport.endpoint import Source
    from h3sim.transport.packets import StreamBytes
    from h3sim.transport.quic.handshake import Handshake
    from h3sim.transport.quic.settings import QuicSettings
    from h3sim.transport.rtt import RttEstimator


_NOTHING: tuple[tuple[int | None, int], ...] = ()


class FlowReceiver:
    """The receiving side: raises a limit once half of its window has been used.

    What arrives is consumed at once, as browsers do.

    >>> flow = FlowReceiver(stream_window=100, connection_window=150)
    >>> flow.on_bytes(0, 60), flow.on_bytes(0, 80)
    ([(0, 160)], [(None, 230)])
    >>> flow.limit(0), flow.limit(None)
    (160, 230)
    """

    __slots__ = (
        "_connection_half",
        "_connection_window",
        "_end",
        "_stream_half",
        "_stream_halves",
        "_stream_window",
        "_total",
    )

    def __init__(self, *, stream_window: int, connection_window: int) -> None:
        self._stream_window = stream_window
        self._connection_window = connection_window
        self._end: dict[int, int] = {}
        self._total = 0
        # Not the limits are kept but where half of each window is used: so a packet that raises
        # none, as nearly all, costs two comparisons.
        # Half the window rounded up, so that a window of one byte is used in full before it is
        # raised.
        self._stream_half = stream_window - stream_window // 2
        self._stream_halves: dict[int, int] = {}
        """Those of the streams whose limit was raised."""
        self._connection_half = connection_window - connection_window // 2

    @classmethod
    def of(cls, settings: QuicSettings) -> FlowReceiver:
        """Return the receiving side of an end with these settings."""
        return cls(
            stream_window=settings.stream_window_bytes,
            connection_window=settings.connection_window_bytes,
        )

    def on_bytes(self, stream_id: int, end: int) -> Sequence[tuple[int | None, int]]:
        """Note that a stream has come up to *end*; return the limits to announce."""
        before = self._end.get(stream_id, 0)
        # A retransmission, or a frame that was overtaken: flow control counts the highest offset (§
        # 4.1).
        if end <= before:
            return _NOTHING
        self._end[stream_id] = end
        self._total = total = self._total + end - before
        if total <= self._connection_half and end <= self._stream_half:
            return _NOTHING
        return self._raised(stream_id, end)

    def limit(self, stream_id: int | None) -> int:
        """Return the limit of a stream, or (None) of all together, as it was last announced."""
        if stream_id is None:
            return self._connection_half + self._connection_window // 2
        half = self._stream_halves.get(stream_id, self._stream_half)
        return half + self._stream_window // 2

    def _raised(self, stream_id: int, end: int) -> list[tuple[int | None, int]]:
        raised: list[tuple[int | None, int]] = []
        # The connection first: it holds back all streams.
        if self._total > self._connection_half:
            # From what has come, not from the old limit: a burst that jumped far needs one update
            # only.
            limit = self._total + self._connection_window
            self._connection_half = limit - self._connection_window // 2
            raised.append((None, limit))
        if end > self._stream_halves.get(stream_id, self._stream_half):
            limit = end + self._stream_window
            self._stream_halves[stream_id] = limit - self._stream_window // 2
            raised.append((stream_id, limit))
        return raised


_MIN_ROOM_BYTES = 2 * MIN_FRAME_BYTES
"""With less left of a window nothing is sent (quicly: MIN_SEND_WINDOW)."""


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
        path_rtt_ns: int | None = None,
    ) -> None:
        self._source = source
        self._handshake = handshake
        self._controller = controller
        self.recovery = Recovery.of(settings, controller, peer_max_ack_delay_ns)
        if path_rtt_ns is not None:
            self.recovery.on_path_rtt(path_rtt_ns)
        self._acks = AckState.of(settings)
        self._packer = Packer(settings, source, handshake, self._acks, self.recovery)
        self._has_bucket = settings.pacing_bucket is PacingBucket.AIOQUIC
        self._pacer = _make_pacer(settings, controller, self.recovery.rtt)
        self._flow = FlowReceiver.of(settings)
        self._n_probes = settings.probes
        self._loss_timer_packets = settings.loss_timer_packets
        self._free_packets = 0
        """So many packets may leave now, whatever the window."""
        self._is_settled = False
        """Whether recovery knows that nothing waits; the source may have changed since."""
        # Looked at for every packet, so not by way of the settings.
        self._datagram_bytes = settings.datagram_bytes
        self._header_bytes = settings.header_bytes
        self._frame_header = self._packer.header
        self._fills_window = settings.fills_window
        self._uses_last_bytes = settings.fills_window or settings.overshoots_window
        self._forgets_acks = settings.ack_ping_every > 0

    @property
    def is_ready(self) -> bool:
        """Whether the handshake lets the application's bytes go."""
        return self._handshake.may_send

    # What happens to it

    def on_packet(self, packet: QuicPacket, now_ns: int) -> list[StreamBytes]:
        """Take a packet that arrived; return the stream bytes that it brings."""
        if not self._handshake.is_over:
            self._handshake.on_datagram(packet)  # before duplicates go: § 8.1 counts all bytes
        if not self._acks.on_packet(packet.number, now_ns, packet.is_ack_eliciting):
            return []
        ack = packet.ack
        if ack is not None:
            self._is_settled = False
            acked, lost = self.recovery.on_ack(ack, packet.ack_delay_ns, now_ns)
            if acked:
                self._on_acked(acked)
            for gone in lost:
                self._on_lost(gone)
        if packet.limits:
            for stream_id, limit in packet.limits:
                self._source.on_limit(stream_id, limit)
        for stream_id, offset, n_bytes in packet.frames:
            raised = self._flow.on_bytes(stream_id, offset + n_bytes)
            if raised:
                self._packer.limits.update(raised)
                self._is_settled = False
        return packet.frames

    def on_timer(self, now_ns: int) -> None:
        """Declare lost or probe, if that is what was due."""
        self._is_settled = False
        due_at_ns = self._recovery_at_ns()
        if due_at_ns is None or due_at_ns > now_ns:
            return
        lost = self.recovery.on_timer(now_ns)
        if lost is None:
            self._packer.probes = self._n_probes
            return
        self._free_packets = self._loss_timer_packets
        for packet in lost:
            self._on_lost(packet)

    def timer_at_ns(self) -> int | None:
        """Return when to be woken."""
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

    def _recovery_at_ns(self) -> int | None:
        """Return when recovery has something to do; a client probes until the handshake is over."""
        due_at_ns = self.recovery.due_at_ns
        if due_at_ns is None and not self._handshake.is_over and self._handshake.may_deadlock:
            return self.recovery.probe_at_ns()
        return due_at_ns

    def packets_to_send(self, now_ns: int) -> list[QuicPacket]:
        """Return the packets that leave now."""
        packets: list[QuicPacket] = []
        if not self._is_settled or self._source.has_data:
            self._send(packets, now_ns)
        # Else, as nearly always at a client, there is nothing to send but ACKs.
        at_ns = self._acks.due_at_ns
        if at_ns is not None and at_ns <= now_ns:
            packet = self._packer.bare_ack(now_ns)
            if packet.is_ack_eliciting or not self._handshake.is_over:
                self._on_sent(packet)
            packets.append(packet)
        return packets

    def ack_ranges(self, packet: QuicPacket) -> tuple[tuple[int, int], ...]:
        """Return the spans of numbers that a packet of this end acknowledges, highest first."""
        return packet.ack or ()

    def recovery_row(self, now_ns: int) -> RecoveryRow:
        """Return the state of recovery, and what was declared lost since this was last asked."""
        recovery = self.recovery
        lost, recovery.declared_lost = recovery.declared_lost, []
        return row_of(now_ns, self._controller, recovery.rtt, recovery.bytes_in_flight, lost)

    # Sending

    def _send(self, packets: list[QuicPacket], now_ns: int) -> None:
        """Add the packets that leave now, but for an ACK alone."""
        waits = self._packer.limits or self._packer.probes or not self._handshake.is_over
        if waits or self._source.has_data:
            self._is_settled = False
            self._pacer.begin()
            is_mixed = waits or self._free_packets or self._acks.due_at_ns is not None
            if is_mixed or self._has_bucket:
                self._send_all(packets, now_ns)
            else:
                self._send_streams(packets, now_ns)
        else:
            self._pacer.due_at_ns = None  # set again if a packet waits for it
            self._settle(now_ns)
        self._free_packets = 0

    def _send_all(self, packets: list[QuicPacket], now_ns: int) -> None:
        """Add the packets that may leave now and have something to carry."""
        while room := self._room(now_ns):
            packet = self._packer.packet(now_ns, room)
            if packet is None:
                self.recovery.on_nothing_to_send()
                break
            self._on_sent(packet)
            packets.append(packet)
            if self._free_packets:
                self._free_packets -= 1

    def _send_streams(self, packets: list[QuicPacket], now_ns: int) -> None:
        """Do what `_send_all` does where nothing but stream bytes can wait.

        That is nearly always so. What `_room`, `Packer.packet` and `_on_sent` would find out and do
        for each packet is done here in one loop, without what cannot be the case.
        """
        # What is used once for each packet is no local name: few are sent at a time.
        recovery, controller, pacer = self.recovery, self._controller, self._pacer
        full, is_paced = self._datagram_bytes, pacer.rate_bps is not None
        while True:
            room = full
            if controller.congestion_window - recovery.bytes_in_flight < full:
                room = self._room(now_ns) if self._uses_last_bytes else 0
                if not room:
                    return
            elif is_paced and pacer.ready_at_ns > now_ns:
                pacer.due_at_ns = pacer.ready_at_ns
                return
            left, header = room - self._header_bytes, self._frame_header
            frame = self._source.take(left, header, 1) if left >= MIN_FRAME_BYTES else None
            if frame is None:
                recovery.on_nothing_to_send()
                return
            left -= header.n_bytes + frame[2]
            frames = [frame]
            if left >= MIN_FRAME_BYTES:  # a stream has come to its end
                left = self._packer.fill(frames, left, MIN_FRAME_BYTES)
            recovery.is_cwnd_underutilized = False
            number = recovery.next_number
            recovery.next_number = number + 1
            packet = QuicPacket(number, now_ns, room - left, frames, None, (), True)
            recovery.on_sent(packet)
            if is_paced:
                pacer.on_sent(room - left, now_ns)
            packets.append(packet)

    def _settle(self, now_ns: int) -> None:
        """Tell recovery that a packet might leave now, and that there is none."""
        # Without anything to send, what the rate is matters only while the pacer has to wait.
        if self._has_bucket or self._pacer.empty_at_ns > now_ns:
            self._pacer.begin()
        else:
            self._pacer.end()
        if self._room(now_ns):
            self.recovery.on_nothing_to_send()
            self._is_settled = True

    def _room(self, now_ns: int) -> int:
        """Return how large a packet may be now, 0 for none; probes go whatever the window."""
        full = self._datagram_bytes
        handshake = self._handshake
        if not handshake.is_over:
            full = min(full, handshake.allowance_bytes)
        if self._packer.probes:
            return full
        left = self._controller.congestion_window - self.recovery.bytes_in_flight
        if left < full and not self._free_packets:
            if left < _MIN_ROOM_BYTES or not self._uses_last_bytes:
                return 0
            if self._fills_window:
                full = left
        return full if self._pacer.allows_part(full, now_ns) else 0

    def _on_sent(self, packet: QuicPacket) -> None:
        if not self._handshake.is_over:
            self._handshake.on_sent(packet)
        if not packet.is_ack_eliciting:
            return
        self.recovery.on_sent(packet)
        self._pacer.on_sent(packet.size_bytes, packet.sent_at_ns)

    # What becomes of packets

    def _on_acked(self, packets: list[QuicPacket]) -> None:
        source, forgets_acks = self._source, self._forgets_acks
        for packet in packets:
            if forgets_acks and packet.ack is not None:
                self._acks.forget(packet.ack[0][1])
            for stream_id, offset, n_bytes in packet.frames:
                source.on_acked(stream_id, offset, n_bytes)
            if packet.crypto:
                for offset, n_bytes in packet.crypto:
                    self._handshake.on_acked(offset, n_bytes)

    def _on_lost(self, packet: QuicPacket) -> None:
        for stream_id, offset, n_bytes in packet.frames:
            self._source.on_lost(stream_id, offset, n_bytes)
        for offset, n_bytes in packet.crypto:
            self._handshake.on_lost(offset, n_bytes)
        for limited, limit in packet.limits:
            # Where a higher one was announced since, that one counts, and is on its way (§ 13.3).
            if limit == self._flow.limit(limited):
                self._packer.limits[limited] = limit


def _make_pacer(
    settings: QuicSettings, controller: CongestionController, rtt: RttEstimator
) -> Pacer:
    """Return what paces an end with these settings."""
    kind = AioquicPacer if settings.pacing_bucket is PacingBucket.AIOQUIC else Pacer
    full = settings.datagram_bytes
    burst_bytes = settings.pacing_burst_packets * full
    return kind(
        controller, rtt, gain=settings.pacing_gain, burst_bytes=burst_bytes, packet_bytes=full
    )


_TIMER_SLACK_NS: Final = NS_PER_MS // 20
"""How late Linux wakes a process that sleeps for a time: up to 50 microseconds (prctl(2),
PR_SET_TIMERSLACK; select_estimate_accuracy in fs/select.c, which epoll_wait uses)."""


class EventLoop:
    """The loop that looks after the timers of one end.

    Where the time until a timer is no whole multiple of *granularity_ns*, the loop sleeps up to the
    next one, counted from when it went to sleep: asyncio's selector rounds the timeout of
    epoll_wait up to a millisecond (Lib/selectors.py, EpollSelector.select). It goes to sleep when
    it is done with what came, which takes *processing_ns* a packet. A packet that arrives wakes it,
    and then it comes to timers that have run out meanwhile, too (Lib/asyncio/base_events.py,
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
        """When it went to sleep last, or will be done with what came."""

    def on_packet(self, now_ns: int) -> None:
        """Take up a packet, once those before it are done with."""
        idle_at_ns = self._idle_at_ns
        # Packets queue up before a busy process: its work adds up instead of overlapping.
        self._idle_at_ns = (idle_at_ns if idle_at_ns > now_ns else now_ns) + self._processing_ns

    def on_woken(self, now_ns: int) -> None:
        """Note that it does something that takes no time."""
        if now_ns > self._idle_at_ns:
            self._idle_at_ns = now_ns

    def wakes_at_ns(self, timer_at_ns: int) -> int:
        """Return when it comes to a timer, if nothing happens before."""
        left_ns = timer_at_ns - self._idle_at_ns
        if left_ns <= 0:
            # The timer ran out while it was busy: it comes to it as soon as it is done, without a
            # sleep.
            return self._idle_at_ns
        granularity_ns = self._granularity_ns
        if not granularity_ns:
            return timer_at_ns
        # Rounded up: a selector that woke too early would find the timer not due, and spin.
        slept_ns = -(-left_ns // granularity_ns) * granularity_ns
        return self._idle_at_ns + slept_ns + _TIMER_SLACK_NS


class TimerGranularityEndpoint(QuicEndpoint):
    """A `QuicEndpoint` that comes to its timers when its event loop does.

    ACKs that are late, paced packets and probes wait for that; what a packet that arrives leads to
    leaves at once.
    """

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
        super().__init__(
            settings,
            controller,
            source,
            handshake,
            peer_max_ack_delay_ns=peer_max_ack_delay_ns,
            path_rtt_ns=path_rtt_ns,
        )
        self._loop = EventLoop(
            granularity_ns=settings.timer_granularity_ns,
            processing_ns=settings.packet_processing_ns,
        )

    def on_packet(self, packet: QuicPacket, now_ns: int) -> list[StreamBytes]:
        """Take a packet that arrived; return the stream bytes that it brings."""
        self._loop.on_packet(now_ns)
        return super().on_packet(packet, now_ns)

    def packets_to_send(self, now_ns: int) -> list[QuicPacket]:
        """Return the packets that leave now."""
        self._loop.on_woken(now_ns)
        return super().packets_to_send(now_ns)

    def timer_at_ns(self) -> int | None:
        """Return when the loop comes to the timer that is next."""
        timer_at_ns = super().timer_at_ns()
        return None if timer_at_ns is None else self._loop.wakes_at_ns(timer_at_ns)
