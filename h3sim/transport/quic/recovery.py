"""Acknowledgements and loss detection of QUIC (RFC 9002 §§ 5-6, RFC 9000 § 13.2).

Read next, on the path of docs/reading.md: `h3sim/transport/congestion/controller.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from h3sim.ranges import Ranges
from h3sim.transport.rtt import K_GRANULARITY_NS, RttEstimator
from h3sim.units import NS_PER_S

if TYPE_CHECKING:
    from h3sim.transport.congestion import CongestionController
    from h3sim.transport.quic.packets import QuicPacket, Spans
    from h3sim.transport.quic.settings import QuicSettings


_MAX_SPANS: Final = 8
"""So many spans are told of; older ones were told of several times already."""


class AckState:
    """Decides when an ACK is due (RFC 9000 § 13.2).

    At once with every *every*-th ack-eliciting packet and, with *gaps_at_once*, when numbers have a
    gap or come late; else *max_delay_ns* after the first packet that is not acknowledged yet.

    >>> state = AckState(every=2, max_delay_ns=25)
    >>> state.on_packet(0, 100, True), state.due_at_ns
    (True, 125)
    >>> state.on_packet(1, 110, True), state.due_at_ns
    (True, 110)
    >>> state.take(), state.due_at_ns
    (((0, 1),), None)
    """

    __slots__ = (
        "_eliciting",
        "_every",
        "_gaps_at_once",
        "_largest",
        "_max_delay_ns",
        "_newest_from",
        "_older",
        "_received",
        "_told_to",
        "due_at_ns",
        "largest_at_ns",
    )

    def __init__(self, *, every: int, max_delay_ns: int, gaps_at_once: bool = True) -> None:
        self._every = every
        self._gaps_at_once = gaps_at_once
        self._max_delay_ns = max_delay_ns
        # The newest span grows with every packet, so it is kept as two numbers; the rest changes
        # only where there is a gap, so what an ACK tells of it is kept as well.
        self._newest_from = 0
        self._told_to = -1
        self._largest = -1
        self._older: Spans = ()
        self._received = Ranges()
        """All spans as they were when last a number did not follow the one before."""
        self.largest_at_ns = 0
        """When the packet with the largest number came: an ACK says how long ago that is."""
        self._eliciting = 0
        self.due_at_ns: int | None = None
        """When an ACK is due; None if no ack-eliciting packet has come since the last."""

    @classmethod
    def of(cls, settings: QuicSettings) -> AckState:
        """Return the state of an end with these settings."""
        return cls(
            every=settings.ack_every,
            max_delay_ns=settings.max_ack_delay_ns,
            gaps_at_once=settings.acks_gaps_at_once,
        )

    def on_packet(self, number: int, now_ns: int, is_ack_eliciting: bool) -> bool:
        """Note packet *number*; return False if it came before."""
        is_next = number == self._largest + 1
        if is_next:
            self._largest = number
            self.largest_at_ns = now_ns
        elif not self._out_of_order(number, now_ns):
            return False
        if is_ack_eliciting:
            self._eliciting = eliciting = self._eliciting + 1
            # Also where a gap is filled: the sender learns soonest that its loss was reordering (§
            # 13.2.1). Narrower than there: a gap in front of one that elicits nothing is forgotten.
            if eliciting >= self._every or (not is_next and self._gaps_at_once):
                self.due_at_ns = now_ns
            # Not moved on by later packets: max_ack_delay is a promise about the first of them.
            elif self.due_at_ns is None:
                self.due_at_ns = now_ns + self._max_delay_ns
        return True

    def take(self) -> Spans:
        """Return what an ACK says of everything so far; nothing is due any more."""
        self._eliciting = 0
        self.due_at_ns = None
        spans: Spans = ((self._newest_from, self._largest), *self._older)
        low = self._told_to + 1
        # Something must remain: an ACK frame has one range at least, the newest.
        if low and spans[-1][0] < low <= spans[0][1]:
            spans = tuple((max(first, low), last) for first, last in spans if last >= low)
        return spans

    def forget(self, number: int) -> None:
        """Tell no more of the packets up to *number*: the peer has an ACK of them (§ 13.2.4)."""
        self._told_to = max(self._told_to, number)

    def _out_of_order(self, number: int, now_ns: int) -> bool:
        """Note a number that leaves a gap or fills one; return False if it came before."""
        received = self._received
        # The newest span grew without `received` being told, packet by packet; it is told now.
        received.add(self._newest_from, self._largest + 1)
        if not received.add(number, number + 1):
            return False
        # ACK Delay is that of the largest number (RFC 9000 § 19.3), so a late packet leaves its
        # time.
        if number > self._largest:
            self._largest = number
            self.largest_at_ns = now_ns
        newest, *older = received.last_spans(_MAX_SPANS)
        self._newest_from = newest[0]
        self._older = tuple(older)
        return True


K_PACKET_THRESHOLD: Final = 3
"""kPacketThreshold (RFC 9002 § 6.1.1)."""
_K_PERSISTENT_CONGESTION_THRESHOLD: Final = 3


class Recovery:
    """Keeps the packets in flight of one sender and tells its congestion controller about them."""

    def __init__(
        self,
        controller: CongestionController,
        *,
        initial_rtt_ns: int,
        peer_max_ack_delay_ns: int,
        has_persistent_congestion: bool = True,
        max_pto_ns: int = 60 * NS_PER_S,
    ) -> None:
        self.controller = controller
        self.rtt = RttEstimator(initial_ns=initial_rtt_ns)
        self.bytes_in_flight = 0
        self.is_cwnd_underutilized = False
        """Whether the window was not full when last there was nothing more to send."""
        self.pto_count = 0
        self.due_at_ns: int | None = None
        """When `on_timer` wants to be called (RFC 9002 § 6.2 and appendix A.8).

        It is asked for with each packet, so it is kept and not worked out each time."""
        self._timeout_ns: int | None = None
        """PTO with its backoff; None where a round-trip time has come since it was worked out."""
        self._peer_max_ack_delay_ns = peer_max_ack_delay_ns
        self._max_pto_ns = max_pto_ns
        self._has_persistent_congestion = has_persistent_congestion
        self.declared_lost: list[int] = []
        """The numbers of packets that were declared lost; whoever reads it, clears it."""
        self._sent: dict[int, QuicPacket] = {}
        """The packets in flight by their numbers, which rise."""
        self._lowest = 0
        """No packet in flight has a lower number. A dict's first entry would say the same, but to
        find it costs a look at every entry that was ever taken out before it."""
        self.next_number = 0
        """The number that the next packet will have."""
        self._eliciting = 0
        self._largest_acked = -1
        self._loss_at_ns: int | None = None
        self._last_eliciting_at_ns = 0
        self._first_sample_at_ns: int | None = None
        self._samples_delivery = controller.reads_delivery
        self._delivered_bytes = 0
        self._app_limited_to = 0
        """Until so many bytes are delivered, rates say more of the application than of the path."""
        self._delivered_at_ns = 0
        self._first_sent_at_ns = 0

    @classmethod
    def of(
        cls,
        settings: QuicSettings,
        controller: CongestionController,
        peer_max_ack_delay_ns: int,
    ) -> Recovery:
        """Return the recovery of an end with these settings."""
        return cls(
            controller,
            initial_rtt_ns=settings.initial_rtt_ns,
            peer_max_ack_delay_ns=peer_max_ack_delay_ns,
            has_persistent_congestion=settings.has_persistent_congestion,
            max_pto_ns=settings.max_pto_ns,
        )

    @property
    def oldest(self) -> QuicPacket | None:
        """The oldest packet in flight."""
        return self._sent[self._lowest_in_flight()] if self._sent else None

    def on_path_rtt(self, rtt_ns: int) -> None:
        """Take the round-trip time that a handshake measured before navigation start."""
        self.rtt.on_sample(rtt_ns)
        self._first_sample_at_ns = -1  # what leaves at 0 was sent after it (§ 7.6.2)

    def on_sent(self, packet: QuicPacket) -> None:
        """Take an ack-eliciting packet into account that leaves now."""
        now_ns = packet.sent_at_ns
        in_flight = self.bytes_in_flight
        if not in_flight:
            # A rate is measured from here: what was idle before is no time of the path.
            self._first_sent_at_ns = self._delivered_at_ns = now_ns
            self._lowest = packet.number
        packet.eliciting_index = self._eliciting = self._eliciting + 1
        if self._samples_delivery:
            packet.first_sent_at_ns = self._first_sent_at_ns
            packet.delivered_at_ns = self._delivered_at_ns
            packet.delivered_bytes = delivered_bytes = self._delivered_bytes
            packet.is_app_limited = delivered_bytes < self._app_limited_to
        self._sent[packet.number] = packet
        self.bytes_in_flight = in_flight = in_flight + packet.size_bytes
        self._last_eliciting_at_ns = now_ns
        if self._timeout_ns is None:  # as it is where a loss is due, too
            self._arm()
        else:
            self.due_at_ns = now_ns + self._timeout_ns
        self.controller.on_sent(packet, in_flight)

    def on_ack(
        self, spans: Spans, delay_ns: int, now_ns: int
    ) -> tuple[list[QuicPacket], list[QuicPacket]]:
        """Return the packets that are newly acknowledged, and those that now count as lost.

        *delay_ns* is how late the acknowledgement of the largest number is, as the peer says.
        """
        before = self.bytes_in_flight
        acked = self._newly_acked(spans)
        if not acked:
            # Nothing new: no sample, and no reason to move the timer (RFC 9002 §§ 5.1, 6.2.1).
            return acked, []
        newest = acked[-1]
        if newest.number > self._largest_acked:
            self._largest_acked = newest.number
            # Narrower than § 5.1: packets that elicit no ACK are not kept, nor when they were sent.
            if newest.number == spans[0][1]:
                if self._first_sample_at_ns is None:
                    self._first_sample_at_ns = now_ns
                if delay_ns > self._peer_max_ack_delay_ns:
                    delay_ns = self._peer_max_ack_delay_ns
                self.rtt.on_sample(now_ns - newest.sent_at_ns, delay_ns)
        if self._samples_delivery:
            self._delivered_bytes += before - self.bytes_in_flight
            self._delivered_at_ns = now_ns
            self._first_sent_at_ns = newest.sent_at_ns
        self.pto_count = 0  # § 6.2.1 has a client wait until the server surely knows its address
        self._timeout_ns = None
        lost: list[QuicPacket] = []
        in_flight = before
        if self._lowest <= self._largest_acked:
            acked_bytes = before - self.bytes_in_flight
            lost = self._detect_lost(now_ns)
            # Told with what was acknowledged now, and without what counts as lost now.
            in_flight = self.bytes_in_flight + acked_bytes
        else:
            self._loss_at_ns = None
        self._arm()
        self.controller.on_acked(acked, now_ns, self.rtt, in_flight, self.is_cwnd_underutilized)
        return acked, lost

    def on_nothing_to_send(self) -> None:
        """Note that the window is not full, and that what is in flight was held back by that."""
        self.is_cwnd_underutilized = True
        self._app_limited_to = self._delivered_bytes + self.bytes_in_flight

    def on_timer(self, now_ns: int) -> list[QuicPacket] | None:
        """Return the packets that now count as lost, or None if what was due is to probe."""
        lost = None
        if self._loss_at_ns is not None:  # that is what was due, then
            lost = self._detect_lost(now_ns)
        else:
            self.pto_count += 1
            self._timeout_ns = None
            # A server that may not send yet (RFC 9000 § 8.1) sends no probe, and waits on.
            self._last_eliciting_at_ns = now_ns
        self._arm()
        return lost

    def probe_at_ns(self) -> int:
        """Return when a probe is due, whatever is in flight."""
        if self._timeout_ns is None:
            timeout_ns = self.rtt.probe_timeout_ns(self._peer_max_ack_delay_ns)
            if self.pto_count:
                # The outer `max`: an end to doubling must not cut a first PTO that is longer.
                backed_off_ns = min(timeout_ns << self.pto_count, self._max_pto_ns)
                timeout_ns = max(timeout_ns, backed_off_ns)
            self._timeout_ns = timeout_ns
        return self._last_eliciting_at_ns + self._timeout_ns

    def _arm(self) -> None:
        """Work out when `on_timer` wants to be called."""
        if self._loss_at_ns is not None:
            self.due_at_ns = self._loss_at_ns
            return
        self.due_at_ns = self.probe_at_ns() if self._sent else None

    def _newly_acked(self, spans: Spans) -> list[QuicPacket]:
        """Take out of flight what *spans* tell of, and return it."""
        acked: list[QuicPacket] = []
        if not self._sent:
            return acked
        # Mostly all but the newest tell of what was settled long ago.
        if len(spans) > 1 and spans[1][1] >= self._lowest:
            for low, high in spans[:0:-1]:  # lowest first: controllers get rising numbers
                if high >= self._lowest:
                    self._take_span(low, high, acked)
        low, high = spans[0]
        if high >= self._lowest:
            self._take_span(low, high, acked)
        return acked

    def _take_span(self, low: int, high: int, acked: list[QuicPacket]) -> None:
        stop, sent, in_flight = high + 1, self._sent, self.bytes_in_flight
        if low <= self._lowest:
            low = self._lowest
            self._lowest = stop if stop <= self.next_number else self.next_number
        for number in range(low, stop):
            packet = sent.pop(number, None)
            if packet is not None:
                acked.append(packet)
                in_flight -= packet.size_bytes
        self.bytes_in_flight = in_flight

    def _lowest_in_flight(self) -> int:
        """Return the lowest number in flight; there must be one."""
        sent, number = self._sent, self._lowest
        while number not in sent:
            number += 1
        self._lowest = number
        return number

    def _detect_lost(self, now_ns: int) -> list[QuicPacket]:
        """Take out what is lost by packet or time threshold (RFC 9002 § 6.1)."""
        self._loss_at_ns = None
        largest = self._largest_acked
        sent = self._sent
        if not sent or self._lowest_in_flight() > largest:
            return []
        delay_ns = self.rtt.loss_delay_ns()
        lost: list[QuicPacket] = []
        for number, packet in sent.items():
            if number > largest:  # a dict keeps the order of sending
                break
            due_at_ns = packet.sent_at_ns + delay_ns
            if number <= largest - K_PACKET_THRESHOLD or due_at_ns <= now_ns:
                lost.append(packet)
            elif self._loss_at_ns is None:  # the first of them left first
                self._loss_at_ns = due_at_ns
        if lost:
            self._on_lost(lost, now_ns)
        return lost

    def _on_lost(self, lost: list[QuicPacket], now_ns: int) -> None:
        before = self.bytes_in_flight
        for packet in lost:
            del self._sent[packet.number]
            self.declared_lost.append(packet.number)
            self.bytes_in_flight -= packet.size_bytes
        self.controller.on_lost(lost, now_ns, before, self.next_number)
        if self._has_persistent_congestion and self._is_persistent(lost):
            self.controller.on_persistent_congestion(now_ns)

    def _is_persistent(self, lost: list[QuicPacket]) -> bool:
        """Whether packets lost in a row span the persistent congestion period (RFC 9002 § 7.6)."""
        if self._first_sample_at_ns is None:
            return False
        rtt = self.rtt
        base_ns = rtt.smoothed_rtt_ns + max(4 * rtt.rttvar_ns, K_GRANULARITY_NS)
        period_ns = (base_ns + self._peer_max_ack_delay_ns) * _K_PERSISTENT_CONGESTION_THRESHOLD
        return _span_in_a_row(lost, self._first_sample_at_ns) > period_ns


def _span_in_a_row(lost: list[QuicPacket], after_ns: int) -> int:
    """Return the longest time between two of *lost* with none acknowledged between them.

    § 7.6.2: of those that were sent after the first sample; before it the period was a guess.
    """
    span_ns = 0
    begin: QuicPacket | None = None
    previous = -2
    for packet in lost:
        if packet.sent_at_ns <= after_ns:
            continue
        # A gap between these numbers is a packet that was acknowledged, and ends the row.
        if begin is None or packet.eliciting_index != previous + 1:
            begin = packet
        previous = packet.eliciting_index
        span_ns = max(span_ns, packet.sent_at_ns - begin.sent_at_ns)
    return span_ns
