"""Loss thresholds of QUIC, how stacks adapt them to reordering, and when they undo a reduction."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from h3sim.transport.quic.settings import Reordering, Undo

if TYPE_CHECKING:
    from collections.abc import Sequence

    from h3sim.transport.congestion import CongestionController
    from h3sim.transport.quic.packets import QuicPacket, Spans
    from h3sim.transport.quic.settings import QuicSettings


_UNIT: Final = 1024
"""The denominator of time thresholds: 9/8 is 1152."""
_QUICHE_MAX_PACKETS: Final = 20
"""MAX_PACKET_THRESHOLD in cloudflare/quiche, recovery/mod.rs."""
_QUICHE_REORDERED: Final = _UNIT * 5 // 4
"""PACKET_REORDER_TIME_THRESHOLD there."""
_QUICHE_UNDO_PERCENT: Final = 20
"""ROLLBACK_THRESHOLD_PERCENT in cloudflare/quiche, recovery/congestion/cubic.rs."""
_QUICHE_UNDO_PACKETS: Final = 2
"""MIN_ROLLBACK_THRESHOLD there."""


class LossThresholds:
    """By how much an acknowledged packet may overtake another before that is lost (RFC 9002 § 6.1).

    >>> from h3sim.transport.quic import QuicSettings
    >>> thresholds = LossThresholds(QuicSettings(reordering="quiche"))
    >>> thresholds.lost_to(10), thresholds.delay_ns(80_000_000)
    (7, 90000000)
    >>> thresholds.adapt(6, lost_after=(3, 0))
    >>> thresholds.lost_to(10), thresholds.delay_ns(80_000_000)
    (3, 100000000)
    """

    __slots__ = ("_packets", "_rule", "_time")

    def __init__(self, settings: QuicSettings) -> None:
        self._rule = settings.reordering
        self._packets = settings.packet_threshold
        """kPacketThreshold; None if packets are lost by time alone."""
        self._time = round(_UNIT * settings.time_threshold)
        """kTimeThreshold."""

    def lost_to(self, largest_acked: int) -> int:
        """Return the highest packet number that is lost by the packet threshold; -1 for none."""
        return -1 if self._packets is None else largest_acked - self._packets

    def delay_ns(self, rtt_ns: int) -> int:
        """Return the time after which a packet is lost that was overtaken, without its minimum."""
        return self._time * rtt_ns // _UNIT

    def adapt(self, n_ahead: int, *, lost_after: tuple[int, int]) -> None:
        """Handle a spurious loss, by a rule that RFC 9002 §§ 6.1.1 and 6.1.2 leave open.

        The packet arrived when the largest acknowledged number was *n_ahead* higher, and was
        declared lost when that many were, and after so many RTTs / 1024, as in *lost_after*.
        """
        rule, packets = self._rule, self._packets
        if rule is Reordering.QUICHE:
            if packets is not None:
                self._packets = max(packets, min(n_ahead + 1, _QUICHE_MAX_PACKETS))
            self._time = max(self._time, _QUICHE_REORDERED)
        elif rule is Reordering.MVFST:  # modifyStateForSpuriousLoss
            n_ahead, elapsed = lost_after
            if packets is not None:
                self._packets = max(packets, n_ahead + 1)
            self._time = max(self._time, elapsed)
        elif rule is Reordering.QUICLY:  # quicly_loss_on_ack_received: by time alone, then longer
            if packets is not None:
                self._packets = None
            else:
                self._time = min(2 * self._time - _UNIT, 2 * _UNIT)


class SpuriousLosses:
    """The packets declared lost in the last round trip, and what follows if one arrives after all.

    Thresholds adapt, and the reduction of the window is undone. An episode of losses lasts until a
    packet that was sent after its first loss is lost.
    """

    __slots__ = (
        "_controller",
        "_datagram_bytes",
        "_episode_end",
        "_gaps",
        "_is_undoable",
        "_lost",
        "_n_lost",
        "_n_unproven",
        "_thresholds",
        "_undo",
    )

    def __init__(
        self, settings: QuicSettings, controller: CongestionController, thresholds: LossThresholds
    ) -> None:
        self._undo = settings.undo
        self._datagram_bytes = settings.datagram_bytes
        self._controller = controller
        self._thresholds = thresholds
        self._lost: dict[int, tuple[int, tuple[int, int]]] = {}
        """By number, in the order of time: when it was declared lost, and *lost_after* of it."""
        self._gaps: tuple[int, Spans] = (-1, ())
        """The begin of the newest span of the last ACK, and its other spans."""
        self._episode_end = 0
        """The first packet that had not been sent when the episode began."""
        self._n_lost = 0
        """The packets lost in the episode."""
        self._n_unproven = 0
        """Those of them that have not arrived."""
        self._is_undoable = False
        """True until the reduction of the episode is undone."""

    def on_lost(
        self, lost: Sequence[QuicPacket], largest_acked: int, rtt_ns: int, now_ns: int, end: int
    ) -> None:
        """Record packets that are declared lost, before the controller reduces its window.

        *end* is the number of the next packet.
        """
        if lost[-1].number >= self._episode_end:
            self._episode_end = end
            self._n_lost = self._n_unproven = 0
            window, ssthresh = self._controller.congestion_window, self._controller.ssthresh
            # quiche goes back to no slow start (rollback in cubic.rs).
            is_slow_start = ssthresh is None or window < ssthresh
            self._is_undoable = not (is_slow_start and self._undo is Undo.QUICHE)
        self._n_lost += len(lost)
        self._n_unproven += len(lost)
        for packet in lost:
            elapsed = (now_ns - packet.sent_at_ns) * _UNIT // max(1, rtt_ns)
            self._lost[packet.number] = (now_ns, (largest_acked - packet.number, elapsed))

    def on_ack(self, spans: Spans, largest_acked: int, rtt_ns: int, now_ns: int) -> None:
        """Find packets in *spans* that were declared lost; adapt the thresholds, and undo."""
        lost = self._lost
        if not lost:
            return
        late: list[int] = []
        gaps = (spans[0][0], spans[1:])
        if gaps != self._gaps:  # else no number in a gap has arrived
            for span in spans:
                low, high = span
                # New data, or a span that the last ACK had: nothing in it was lost.
                if low > largest_acked or span in self._gaps[1]:
                    continue
                if high - low < len(lost):
                    late += [number for number in range(low, high + 1) if number in lost]
                else:
                    late += [number for number in lost if low <= number <= high]
            self._gaps = gaps
        if late:
            # Once per ACK, by the packet that was overtaken by most.
            first = min(late)
            _, lost_after = lost[first]
            self._thresholds.adapt(max(largest_acked, spans[0][1]) - first, lost_after=lost_after)
            for number in late:
                del lost[number]
            self._n_unproven -= len(late)
            if self._undo is Undo.QUICHE or self._n_unproven <= 0:
                self._undo_reduction(now_ns)
        # Packets that are late by more than a round trip are not recognized, as in quiche.
        while lost:
            number = next(iter(lost))
            lost_at_ns, _ = lost[number]
            if lost_at_ns + rtt_ns >= now_ns:
                break
            del lost[number]

    def on_window_acked(self, newest: int, now_ns: int) -> None:
        """Handle an ACK of *newest* while the window is full.

        quiche takes an episode for spurious, too, in which less than a fifth of a window was lost
        (RFC 9438 § 4.9 without its detection).
        """
        if self._is_undoable and self._undo is Undo.QUICHE and newest >= self._episode_end:
            n_packets = self._controller.congestion_window // self._datagram_bytes
            limit = max(n_packets * _QUICHE_UNDO_PERCENT // 100, _QUICHE_UNDO_PACKETS)
            if self._n_lost < limit:
                self._undo_reduction(now_ns)

    def _undo_reduction(self, now_ns: int) -> None:
        """Have the controller undo the reduction of this episode, if the stack does."""
        if self._is_undoable and self._undo is not Undo.NONE:
            self._is_undoable = False
            reduced = self._controller.congestion_window
            self._controller.on_spurious_loss(now_ns)
            if self._controller.congestion_window > reduced:
                # The recovery period is undone as well: the next loss begins another one, which
                # may be undone, too (rollback and checkpoint in quiche's recovery/congestion).
                self._episode_end = 0
