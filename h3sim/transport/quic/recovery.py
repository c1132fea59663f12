"""Acknowledgements and loss detection of QUIC (RFC 9002 §§ 5-6, RFC 9000 § 13.2).

Read next, on the path of docs/reading.md: `h3sim/transport/congestion/controller.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from h3sim.transport.delivery_rate import DeliverySampler
from h3sim.transport.packets import CE
from h3sim.transport.quic.loss_thresholds import LossThresholds, SpuriousLosses
from h3sim.transport.quic.packets import ack_frame_bytes, varint_bytes
from h3sim.transport.rtt import K_GRANULARITY_NS, RttEstimator
from h3sim.values.ranges import Ranges
from h3sim.values.units import NS_PER_MS

if TYPE_CHECKING:
    from h3sim.transport.congestion import CongestionController
    from h3sim.transport.quic.packets import QuicPacket, Spans
    from h3sim.transport.quic.settings import QuicSettings


_MAX_ACK_SPANS: Final = 8
"""The most spans that an ACK reports; older ones have been reported several times."""


class AckState:
    """Generation of ACKs (RFC 9000 § 13.2).

    An ACK is due at once with every *every*-th ack-eliciting packet and, with *gaps_at_once*, after
    a gap or a late packet; otherwise *max_delay_ns* after the first unacknowledged packet.

    >>> state = AckState(every=2, max_delay_ns=25)
    >>> state.on_packet(0, 100, True), state.due_at_ns
    (True, 125)
    >>> state.on_packet(1, 110, True), state.due_at_ns
    (True, 110)
    >>> state.take(), state.due_at_ns
    (((0, 1),), None)
    """

    __slots__ = (
        "_confirmed_to",
        "_eliciting",
        "_every",
        "_gaps_at_once",
        "_largest",
        "_max_delay_ns",
        "_newest_from",
        "_older_spans",
        "_received",
        "ce_count",
        "due_at_ns",
        "ect_count",
        "largest_at_ns",
    )

    def __init__(self, *, every: int, max_delay_ns: int, gaps_at_once: bool = True) -> None:
        self._every = every
        self._gaps_at_once = gaps_at_once
        self._max_delay_ns = max_delay_ns
        # The newest span grows with every packet, so it is kept as two numbers; the older ones
        # change only at a gap, so their part of an ACK is kept as well.
        self._newest_from = 0
        self._largest = -1
        self._older_spans: Spans = ()
        self._confirmed_to = -1
        """The highest packet number in an ACK that the peer has; see `forget`."""
        self._received = Ranges()
        """All spans as of the last packet that did not follow its predecessor."""
        self.largest_at_ns = 0
        """Arrival time of the largest packet number, from which ACK Delay counts."""
        self._eliciting = 0
        """The ack-eliciting packets since the last ACK."""
        self.due_at_ns: int | None = None
        """Time when an ACK is due; None if no ack-eliciting packet has arrived since the last."""
        self.ect_count = 0
        """The packets that arrived as ECT(0)."""
        self.ce_count = 0
        """The packets that arrived with a mark."""

    @classmethod
    def of(cls, settings: QuicSettings) -> AckState:
        """Return the state of an endpoint with these settings."""
        return cls(
            every=settings.ack_every,
            max_delay_ns=settings.max_ack_delay_ns,
            gaps_at_once=settings.acks_gaps_at_once,
        )

    def on_packet(self, number: int, now_ns: int, is_ack_eliciting: bool) -> bool:
        """Record packet *number*; return False for a duplicate."""
        is_next = number == self._largest + 1
        if is_next:
            self._largest = number
            self.largest_at_ns = now_ns
        elif not self._out_of_order(number, now_ns):
            return False
        if is_ack_eliciting:
            self._eliciting = eliciting = self._eliciting + 1
            # Also when a gap is filled: the sender learns soonest that its loss was reordering (RFC
            # 9000 § 13.2.1). Narrower than there: a gap before a packet that is not ack-eliciting
            # is ignored.
            if eliciting >= self._every or (not is_next and self._gaps_at_once):
                self.due_at_ns = now_ns
            # Not restarted by later packets: max_ack_delay applies to the first of them.
            elif self.due_at_ns is None:
                self.due_at_ns = now_ns + self._max_delay_ns
        return True

    def on_ecn(self, ecn: int, now_ns: int, is_ack_eliciting: bool) -> None:
        """Count a packet that is ECN-capable; a mark is reported at once (RFC 9000 § 13.2.1)."""
        if ecn != CE:
            self.ect_count += 1
            return
        self.ce_count += 1
        if is_ack_eliciting:
            self.due_at_ns = now_ns

    def frame_bytes(self, spans: Spans) -> int:
        """Return the length of an ACK frame, with ECN counts if any packet was ECN-capable."""
        n_bytes = ack_frame_bytes(spans)
        if self.ect_count or self.ce_count:  # the count of ECT(1) is 0 (RFC 9000 § 19.3.2)
            n_bytes += varint_bytes(self.ect_count) + 1 + varint_bytes(self.ce_count)
        return n_bytes

    def take(self) -> Spans:
        """Return the spans of an ACK of everything so far; nothing is due any more."""
        self._eliciting = 0
        self.due_at_ns = None
        spans: Spans = ((self._newest_from, self._largest), *self._older_spans)
        low = self._confirmed_to + 1
        lowest_first, _ = spans[-1]
        # An ACK frame has at least one range, so the newest span remains.
        if low and lowest_first < low <= self._largest:
            spans = tuple((max(first, low), last) for first, last in spans if last >= low)
        return spans

    def forget(self, number: int) -> None:
        """Omit packets up to *number* from ACKs.

        The peer has an ACK of them (RFC 9000 § 13.2.4).
        """
        self._confirmed_to = max(self._confirmed_to, number)

    def _out_of_order(self, number: int, now_ns: int) -> bool:
        """Record a number that leaves or fills a gap; return False for a duplicate."""
        received = self._received
        # `received` does not follow the newest span packet by packet; it catches up here.
        received.add(self._newest_from, self._largest + 1)
        if not received.add(number, number + 1):
            return False
        # ACK Delay is that of the largest number (RFC 9000 § 19.3), so a late packet keeps its
        # time.
        if number > self._largest:
            self._largest = number
            self.largest_at_ns = now_ns
        (self._newest_from, _), *older = received.last_spans(_MAX_ACK_SPANS)
        self._older_spans = tuple(older)
        return True


_K_PERSISTENT_CONGESTION_THRESHOLD: Final = 3
"""kPersistentCongestionThreshold, in PTOs (RFC 9002 § 7.6.1)."""
_TAIL_LOSS_PROBES: Final = 2
"""kDefaultMaxTailLossProbes in google/quiche, quic_sent_packet_manager.cc."""
_MIN_TAIL_LOSS_PROBE_NS: Final = 10 * NS_PER_MS
"""kMinTailLossProbeTimeoutMs there, if several packets are in flight."""
_MIN_LAST_PROBE_NS: Final = 5 * NS_PER_MS
"""Half of it, if only one is."""
_MIN_RETRANSMISSION_NS: Final = 200 * NS_PER_MS
"""kMinRetransmissionTimeMs there."""


class Recovery:
    """The packets in flight of one sender; reports their outcome to the congestion controller."""

    def __init__(
        self,
        controller: CongestionController,
        settings: QuicSettings,
        *,
        peer_max_ack_delay_ns: int,
    ) -> None:
        self.controller = controller
        self.rtt = RttEstimator(initial_ns=settings.initial_rtt_ns)
        self._thresholds = LossThresholds(settings)
        self._spurious: SpuriousLosses | None = None
        if settings.tracks_spurious_losses:
            self._spurious = SpuriousLosses(settings, controller, self._thresholds)
        self._sampler = DeliverySampler() if controller.reads_delivery else None
        self._peer_max_ack_delay_ns = peer_max_ack_delay_ns
        self._max_pto_ns = settings.max_pto_ns
        self._has_persistent_congestion = settings.has_persistent_congestion
        self._sent: dict[int, QuicPacket] = {}
        """Packets in flight by number, rising."""
        self.bytes_in_flight = 0
        self.next_number = 0
        """The number of the next packet."""
        self._lowest_number = 0
        """A lower bound of the packet numbers in flight. The dict's first entry has it too, but
        finding that means skipping every entry deleted before it."""
        self._largest_acked = -1
        self._eliciting = 0
        """The ack-eliciting packets sent so far."""
        self.is_cwnd_underutilized = False
        """True if the window still had room when the sender last ran out of data."""
        self._declared_lost: list[int] = []
        """See `take_lost`."""
        self.pto_count = 0
        """Consecutive probe timeouts, each of which doubles the next one."""
        self.due_at_ns: int | None = None
        """Time of the next `on_timer` call (RFC 9002 § 6.2 and appendix A.8).

        Read with each packet, so it is kept up to date instead of computed on demand."""
        self._timeout_ns: int | None = None
        """PTO with backoff; None if an RTT sample has arrived since it was computed."""
        self._loss_due_at_ns: int | None = None
        """Time when the next packet is lost by the time threshold (loss_time)."""
        self._last_eliciting_at_ns = 0
        """Time of the last ack-eliciting packet, from which the PTO counts."""
        self.acked_at_ns = 0
        """Time when a packet was last acknowledged for the first time."""
        self._first_sample_at_ns: int | None = None
        """Time of the first RTT sample; only later packets show persistent congestion."""
        self._ce_count = 0
        """The packets with marks that the peer has reported (RFC 9002 § B.2)."""

    @property
    def oldest(self) -> QuicPacket | None:
        """The oldest packet in flight."""
        return self._sent[self._lowest_in_flight()] if self._sent else None

    def first_sent_after(self, at_ns: int) -> int | None:
        """Return when the first packet in flight was sent that left after *at_ns*, if any."""
        return next((p.sent_at_ns for p in self._sent.values() if p.sent_at_ns > at_ns), None)

    def silence_to_give_up_ns(self, n_timeouts: int) -> int:
        """Return how long Chrome waits for an acknowledgement before it reports a black hole.

        That is the time of two tail loss probes and *n_timeouts* retransmission timeouts, of which
        each is twice as long as the last (google/quiche,
        QuicSentPacketManager::GetNConsecutiveRetransmissionTimeoutDelay).
        """
        rtt = self.rtt
        min_probe_ns = _MIN_TAIL_LOSS_PROBE_NS if len(self._sent) > 1 else _MIN_LAST_PROBE_NS
        probe_ns = max(2 * rtt.smoothed_rtt_ns, min_probe_ns)
        timeout_ns = max(rtt.smoothed_rtt_ns + 4 * rtt.rttvar_ns, _MIN_RETRANSMISSION_NS)
        return _TAIL_LOSS_PROBES * probe_ns + ((1 << n_timeouts) - 1) * timeout_ns

    def on_path_rtt(self, rtt_ns: int) -> None:
        """Set the round-trip time measured by a handshake before navigation start."""
        self.rtt.on_sample(rtt_ns)
        self._first_sample_at_ns = -1  # packets sent at 0 were sent after it (RFC 9002 § 7.6.2)

    def on_sent(self, packet: QuicPacket) -> None:
        """Add an ack-eliciting packet that is sent now."""
        now_ns = packet.sent_at_ns
        in_flight = self.bytes_in_flight
        if not in_flight:
            self._lowest_number = packet.number
        packet.eliciting_index = self._eliciting = self._eliciting + 1
        self._sent[packet.number] = packet
        self.bytes_in_flight = in_flight = in_flight + packet.size_bytes
        sampler = self._sampler
        if sampler is not None:
            sampler.on_sent(packet, in_flight)
        self._last_eliciting_at_ns = now_ns
        if self._timeout_ns is None:  # also while a loss timer runs
            self._arm()
        else:
            # RFC 9002 § 6.2.1: the PTO restarts with every ack-eliciting packet that is sent.
            self.due_at_ns = now_ns + self._timeout_ns
        self.controller.on_sent(packet, in_flight)

    def on_ack(
        self, spans: Spans, delay_ns: int, now_ns: int, ce_count: int = 0
    ) -> tuple[list[QuicPacket], list[QuicPacket]]:
        """Return the newly acknowledged packets, and those that are now declared lost.

        *delay_ns* is the ACK Delay of the largest number as reported by the peer, *ce_count* the
        number of packets that arrived there with a mark.
        """
        if self._spurious is not None:  # before losses, as in quiche
            self._spurious.on_ack(spans, self._largest_acked, self.rtt.late_rtt_ns, now_ns)
        before = self.bytes_in_flight
        acked = self._newly_acked(spans)
        if not acked:
            # No new packet: no RTT sample, and no reason to reset the timer (RFC 9002 §§ 5.1,
            # 6.2.1).
            return acked, []
        self.acked_at_ns = now_ns
        newest = acked[-1]  # numbers rise in `acked`
        if newest.number > self._largest_acked:
            self._largest_acked = newest.number
            # RFC 9002 § 5.1: a sample needs the largest acknowledged packet to be newly
            # acknowledged. Narrower than there: it must be ack-eliciting itself, since the send
            # times of other packets are not kept.
            _, largest_in_ack = spans[0]
            if newest.number == largest_in_ack:
                if self._first_sample_at_ns is None:
                    self._first_sample_at_ns = now_ns
                # RFC 9002 § 5.3: a delay beyond max_ack_delay is the path's, not the peer's.
                if delay_ns > self._peer_max_ack_delay_ns:
                    delay_ns = self._peer_max_ack_delay_ns
                self.rtt.on_sample(now_ns - newest.sent_at_ns, delay_ns)
        if self._sampler is not None:
            self._sampler.on_delivered(before - self.bytes_in_flight, newest, now_ns)
        self.pto_count = 0  # § 6.2.1 keeps a client's backoff until its address is surely validated
        self._timeout_ns = None
        if ce_count > self._ce_count:  # before losses, as in RFC 9002 § A.7
            self._ce_count = ce_count
            self.controller.on_congestion_experienced(newest.sent_at_ns, now_ns)
        lost: list[QuicPacket] = []
        in_flight = before
        if self._lowest_number <= self._largest_acked:
            acked_bytes = before - self.bytes_in_flight
            lost = self._detect_lost(now_ns)
            # Includes the packets acknowledged now, excludes those declared lost now.
            in_flight = self.bytes_in_flight + acked_bytes
        else:
            self._loss_due_at_ns = None
        self._arm()
        if self._spurious is not None and not self.is_cwnd_underutilized:
            self._spurious.on_window_acked(newest.number, now_ns)
        self.controller.on_acked(acked, now_ns, self.rtt, in_flight, self.is_cwnd_underutilized)
        return acked, lost

    def mark_app_limited(self) -> None:
        """Record that the window is underutilized (RFC 9002 § 7.8).

        The packets in flight are then app-limited: their delivery rate is no estimate of the path.
        """
        self.is_cwnd_underutilized = True
        if self._sampler is not None:
            self._sampler.on_app_limited(self.bytes_in_flight)

    def take_lost(self) -> list[int]:
        """Return the numbers of the packets declared lost since the last call."""
        lost, self._declared_lost = self._declared_lost, []
        return lost

    def on_timer(self, now_ns: int) -> list[QuicPacket] | None:
        """Return the packets declared lost now, or None if a probe is due instead."""
        lost = None
        if self._loss_due_at_ns is not None:  # the loss timer has priority over the PTO (§ 6.2.1)
            lost = self._detect_lost(now_ns)
        else:
            # RFC 9002 § 6.2: a PTO is no sign of loss. Nothing is declared lost and the window
            # stays; the probe elicits an ACK that shows what was lost.
            self.pto_count += 1
            self._timeout_ns = None  # computed again, with this backoff
            # A server at its amplification limit (RFC 9000 § 8.1) sends no probe, so restart here.
            self._last_eliciting_at_ns = now_ns
        self._arm()
        return lost

    def probe_at_ns(self) -> int:
        """Return the time of the next probe, regardless of packets in flight."""
        if self._timeout_ns is None:
            # RFC 9002 § 6.2.1: the PTO includes the delay that the peer may add to an ACK, and
            # doubles with each consecutive timeout.
            timeout_ns = self.rtt.probe_timeout_ns(self._peer_max_ack_delay_ns)
            if self.pto_count:
                # The outer `max`: the limit of the backoff must not shorten a first PTO that
                # exceeds it.
                backed_off_ns = min(timeout_ns << self.pto_count, self._max_pto_ns)
                timeout_ns = max(timeout_ns, backed_off_ns)
            self._timeout_ns = timeout_ns
        return self._last_eliciting_at_ns + self._timeout_ns

    def _arm(self) -> None:
        """Set `due_at_ns` (SetLossDetectionTimer, RFC 9002 § A.8)."""
        if self._loss_due_at_ns is not None:
            self.due_at_ns = self._loss_due_at_ns
            return
        # Without ack-eliciting packets in flight there is nothing to recover. The exception, a
        # client that probes during the handshake (§ 6.2.2.1), is left to the endpoint.
        self.due_at_ns = self.probe_at_ns() if self._sent else None

    def _newly_acked(self, spans: Spans) -> list[QuicPacket]:
        """Remove the packets in *spans* from those in flight, and return them."""
        acked: list[QuicPacket] = []
        if not self._sent:
            return acked
        # Usually all spans but the newest cover packets that are no longer in flight: the next one,
        # (low, high), ends below the lowest of these.
        if len(spans) > 1 and spans[1][1] >= self._lowest_number:
            # All but the newest, the lowest first: controllers expect rising numbers.
            for low, high in spans[:0:-1]:
                if high >= self._lowest_number:
                    self._take_span(low, high, acked)
        low, high = spans[0]
        if high >= self._lowest_number:
            self._take_span(low, high, acked)
        return acked

    def _take_span(self, low: int, high: int, acked: list[QuicPacket]) -> None:
        """Move the packets from *low* to *high* that are in flight to *acked*."""
        # A local counter: one write of the attribute per span instead of one per packet.
        stop, sent, in_flight = high + 1, self._sent, self.bytes_in_flight
        # Everything up to *high* is acknowledged now, so the lower bound moves behind it.
        if low <= self._lowest_number:
            low = self._lowest_number
            self._lowest_number = stop if stop <= self.next_number else self.next_number
        for number in range(low, stop):
            packet = sent.pop(number, None)
            if packet is not None:
                acked.append(packet)
                in_flight -= packet.size_bytes
        self.bytes_in_flight = in_flight

    def _lowest_in_flight(self) -> int:
        """Return the lowest packet number in flight; there must be one."""
        sent, number = self._sent, self._lowest_number
        while number not in sent:
            number += 1
        self._lowest_number = number
        return number

    def _detect_lost(self, now_ns: int) -> list[QuicPacket]:
        """Remove and return the packets lost by packet or time threshold (RFC 9002 § 6.1)."""
        self._loss_due_at_ns = None
        largest = self._largest_acked
        sent = self._sent
        if not sent or self._lowest_in_flight() > largest:
            return []
        lost_to = self._thresholds.lost_to(largest)
        delay_ns = self._thresholds.delay_ns(self.rtt.late_rtt_ns)
        if delay_ns < K_GRANULARITY_NS:
            delay_ns = K_GRANULARITY_NS
        lost: list[QuicPacket] = []
        for number, packet in sent.items():
            # In the order of sending: only packets before an acknowledged one can be lost.
            if number > largest:
                break
            due_at_ns = packet.sent_at_ns + delay_ns
            # RFC 9002 §§ 6.1.1, 6.1.2: sent long enough before an acknowledged packet, by number or
            # by time. Either suffices; less would take reordering for loss.
            if number <= lost_to or due_at_ns <= now_ns:
                lost.append(packet)
            elif self._loss_due_at_ns is None:  # the first packet left has the earliest deadline
                self._loss_due_at_ns = due_at_ns
        if lost:
            self._on_lost(lost, now_ns)
        return lost

    def _on_lost(self, lost: list[QuicPacket], now_ns: int) -> None:
        """Remove lost packets from those in flight, and report them."""
        before = self.bytes_in_flight
        for packet in lost:
            del self._sent[packet.number]
            self._declared_lost.append(packet.number)
            self.bytes_in_flight -= packet.size_bytes
        if self._spurious is not None:
            self._spurious.on_lost(
                lost, self._largest_acked, self.rtt.late_rtt_ns, now_ns, self.next_number
            )
        # Before persistent congestion, which overrides the reduction made here (RFC 9002 § 7.6.2).
        self.controller.on_lost(lost, now_ns, before, self.next_number)
        if self._has_persistent_congestion and self._is_persistent(lost):
            self.controller.on_persistent_congestion(now_ns)

    def _is_persistent(self, lost: list[QuicPacket]) -> bool:
        """Return whether losses in a row span the persistent congestion period (RFC 9002 § 7.6)."""
        # RFC 9002 § 7.6.2: before the first RTT sample the period would rest on a guess.
        if self._first_sample_at_ns is None:
            return False
        rtt = self.rtt
        # § 7.6.1: like a PTO without backoff, and max_ack_delay always counts.
        base_ns = rtt.smoothed_rtt_ns + max(4 * rtt.rttvar_ns, K_GRANULARITY_NS)
        period_ns = (base_ns + self._peer_max_ack_delay_ns) * _K_PERSISTENT_CONGESTION_THRESHOLD
        return _longest_loss_period_ns(lost, self._first_sample_at_ns) > period_ns


def _longest_loss_period_ns(lost: list[QuicPacket], after_ns: int) -> int:
    """Return the longest time between two *lost* packets without an acknowledged one in between.

    Only packets sent after the first RTT sample count (RFC 9002 § 7.6.2).
    """
    span_ns = 0
    begin: QuicPacket | None = None
    previous = -2  # followed by no index
    for packet in lost:
        if packet.sent_at_ns <= after_ns:
            continue
        # A gap between these indices is an acknowledged packet, which ends the period.
        if begin is None or packet.eliciting_index != previous + 1:
            begin = packet
        previous = packet.eliciting_index
        span_ns = max(span_ns, packet.sent_at_ns - begin.sent_at_ns)
    return span_ns
