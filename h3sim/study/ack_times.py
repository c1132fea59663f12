"""Times at which a server got a client's acknowledgements, as far as the client's log shows them.

A client knows when it sent an acknowledgement, but not which packets the server had sent by then:
those wait in the bottleneck's queue. It shows in the order of streams if acknowledgements requeue
them (quicly), and it follows from the congestion window: a server that fills it sends as many
packets per acknowledgement as left the network, in slow start twice as many, and none for a while
once packets were lost (RFC 9002 § 7.3).
"""

from __future__ import annotations

import math
from collections import Counter, deque
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from h3sim.constants import MAX_VARINT
from h3sim.schedulers import Retransmit, SupportsRequeue
from h3sim.study.send_history import pickled, unpickled
from h3sim.study.send_order import SendOrder, Step, StepKind

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from h3sim.study.identification import Mechanism
    from h3sim.study.send_history import SchedulerCall


_RECOVERY, _AVOIDANCE, _SLOW_START = 0, 1, 2
"""Packets that are sent for each one that leaves the network, by the phase of the window."""

# Costs are about the logarithm of how often something happens, relative to the expected.
_MISS_COST = 4.0
"""Cost of a stream that is sent and not picked."""
_LEAVE_COST = 0.5
"""Cost of a first recovery that ends now: how far the window is cut is not known by then."""
_STAY_COST = 1.5
"""Cost of a loss that does not cut the window, or of a recovery as long as no other."""
_PHASE_COST = 4.0
"""Cost of another phase without a reason."""
_SHIFT_COST = 2.5
"""Cost of continuing at another place after a miss, in addition to that of the distance."""

_MAX_HYPOTHESES = 48
"""A recovery may end with any of so many acknowledgements: the next picks show with which."""
_SETTLED_PACKETS = 24
"""Packets after which the order of streams follows from the acknowledgements since then."""
_MAX_EXTRA_COST = 30.0
"""Hypotheses that cost so much more than the best one are given up."""
_N_VARIED = 4
"""The best hypotheses, which are varied with each packet."""
_N_VARIED_AFTER_MISS = 8
"""The best ones, which are varied where they pick another stream than was sent."""
_N_SHIFTED = 3
"""The best ones, which are continued elsewhere where they pick another stream."""
_SHIFTS_PACKETS = (4, 12, 32)
"""The distances by which they are."""
_HOPELESS_SHARE = 0.25
"""The share of picks that are missed from which on the search is given up..."""
_HOPELESS_PICKS = 50
"""... in addition to so many."""
_MAX_EARLY = 8
"""Acknowledgements that may come earlier than expected with one packet."""
_EQUAL_CUT = 0.01
_SIMILAR_CUT = 0.1
"""The differences of two cuts of the window, relative to it, that count as equal, and as similar:
packets are counted whole."""


class AckTimes(NamedTuple):
    """Times at which a server got a client's acknowledgements."""

    first_packets: tuple[int, ...]
    """The first packet that was sent after each acknowledgement."""
    cost: float
    """The less, the better they explain the order of streams."""


class _Ack(NamedTuple):
    """The effect of an acknowledgement at the server."""

    stream_ids: tuple[int, ...]
    """The streams that are requeued, in order."""
    n_packets: int
    """The packets that leave the network: acknowledged or declared lost."""
    lost: tuple[int, ...]
    earliest: int
    """The first packet that may have been sent after it."""


class _OtherPhase(NamedTuple):
    """A phase of the window that may follow an acknowledgement, but for a cost."""

    phase: int
    share_left: float | None
    cost: float


class _Node(NamedTuple):
    """The acknowledgements before a packet, and the packets before it."""

    previous: _Node | None
    number: int
    n_acks: int


@dataclass(slots=True)
class _Hypothesis:
    """A possible past of a server up to a packet, and when it expects the next acknowledgement."""

    scheduler: Any
    """The scheduler, or its state, or None as long as it is that of another hypothesis."""
    due: int
    """The first packet after the next acknowledgement."""
    cost: float = 0.0
    n_acks: int = 0
    """The acknowledgements so far."""
    phase: int = _SLOW_START
    cut_at: int = -1
    """The last packet before the window was cut: losses before it do not cut it again."""
    cut_packets: int = 0
    """The packets in flight at that moment."""
    share_left: float | None = None
    """The share of them in flight when the first recovery ended."""
    growth: float = 0.0
    """The part of a packet by which the window grew in congestion avoidance."""
    blocked: frozenset[int] = frozenset()
    """Active streams that have proven to have nothing to send."""
    missed: int | None = None
    """The stream that was picked last when another one was sent."""
    node: _Node | None = None
    moved_at: int = -_SETTLED_PACKETS
    """The last packet before which acknowledgements came at another time than expected."""

    def copy(self, scheduler: Any) -> _Hypothesis:
        """Return a copy with that scheduler; `dataclasses.replace` takes ten times as long."""
        return _Hypothesis(
            scheduler,
            self.due,
            self.cost,
            self.n_acks,
            self.phase,
            self.cut_at,
            self.cut_packets,
            self.share_left,
            self.growth,
            self.blocked,
            self.missed,
            self.node,
            self.moved_at,
        )


class _Variant(NamedTuple):
    """A hypothesis that may be kept, and what its scheduler is copied from, if it has none yet."""

    hypothesis: _Hypothesis
    source: Any = None
    """A scheduler of another hypothesis, or a state as `pickled` returns it."""


def _distance_cost(n_packets: int) -> float:
    """Return the cost of an acknowledgement so many packets from where it is expected."""
    return 0.5 + 0.5 * math.log(1 + abs(n_packets)) if n_packets else 0.0


class AckTimeSearch:
    """A search for the times at which a server got acknowledgements, if *mechanism* made the log.

    It is a beam search: of the possible pasts of the server, those are followed that explain the
    picks so far with the fewest misses and the plainest course of the congestion window.
    """

    def __init__(self, order: SendOrder, mechanism: Mechanism) -> None:
        """Prepare a search in the log of a client."""
        self._order = order
        self._mechanism = mechanism
        self._waits_turn = mechanism.retransmit is Retransmit.TURN
        self._lost = frozenset(order.lost_packets)
        self._acks = list(_acks(order))
        self._left = [0]
        """The packets that have left the network after so many acknowledgements."""
        for ack in self._acks:
            self._left.append(self._left[-1] + ack.n_packets)
        self._first_number = next(step.number for step in order.steps if step.number >= 0)
        self._open: set[int] = set()
        self._active: set[int] = set()
        self._begun: set[int] = set()
        self._closings: deque[tuple[int, int]] = deque()
        self._number = -1
        """The last packet."""
        self._n_shown = 0
        """The picks that the log showed so far."""
        self._n_possible = 0
        """The acknowledgements that may have arrived before it."""
        first = self._acks[0].earliest if self._acks else MAX_VARINT
        scheduler = mechanism.new(order.turn_bytes)
        self._can_requeue = isinstance(scheduler, SupportsRequeue)
        self._beam = [_Hypothesis(scheduler, first)]
        """The hypotheses, the best ones first."""

    def run(self, most_cost: float = math.inf) -> AckTimes | None:
        """Return the best times; None once all cost more than *most_cost*."""
        for step in self._order.steps:
            self._take(step)
            if self._beam[0].cost > min(most_cost, self._hopeless_cost()):
                return None
        best = min(self._beam, key=lambda each: each.cost)
        nodes: list[_Node] = []
        node = best.node
        while node is not None:
            nodes.append(node)
            node = node.previous
        found: list[int] = []
        for each in reversed(nodes):
            found += [each.number] * (each.n_acks - len(found))
        found += [MAX_VARINT] * (len(self._acks) - len(found))
        return AckTimes(tuple(found), best.cost)

    def _hopeless_cost(self) -> float:
        """Return the cost from which on the mechanism explains too little to show any times."""
        return _MISS_COST * (_HOPELESS_PICKS + _HOPELESS_SHARE * self._n_shown)

    # Steps of the log, which are the same for all hypotheses

    def _take(self, step: Step) -> None:
        stream_id = step.stream_id
        while self._closings and self._closings[0][0] < step.at_ns:
            closed = self._closings.popleft()[1]
            if closed in self._open:
                self._open.discard(closed)
                self._active.discard(closed)
                self._call("close", closed)
        match step.kind:
            case StepKind.OPEN:
                self._open.add(stream_id)
                self._call("open", stream_id, self._mechanism.signal(step.signal))
            case StepKind.UPDATE if stream_id in self._open and self._mechanism.heeds_updates:
                self._call("update", stream_id, self._mechanism.signal(step.signal))
            case StepKind.ACTIVATE if stream_id in self._begun:
                self._activate(stream_id)
            case StepKind.READY if stream_id in self._open and stream_id not in self._begun:
                self._activate(stream_id)
            case StepKind.DEACTIVATE if stream_id in self._active:
                self._active.discard(stream_id)
                self._call("deactivate", stream_id)
            case StepKind.CLOSE:
                retention_ns = self._mechanism.kind.retention_ns
                self._closings.append((step.at_ns + retention_ns, stream_id))
            case StepKind.SENT | StepKind.RESENT:
                self._send(step)

    def _activate(self, stream_id: int) -> None:
        if stream_id not in self._active:
            self._active.add(stream_id)
            self._call("activate", stream_id)

    def _call(self, method: str, stream_id: int, argument: Any = None) -> None:
        """Make a call of all schedulers; a blocked stream is inactive in its own."""
        for each in self._beam:
            if stream_id in each.blocked:
                if method in ("deactivate", "close"):
                    each.blocked -= {stream_id}
                if method in ("deactivate", "activate", "charge"):
                    continue
            call = getattr(each.scheduler, method)
            call(stream_id) if argument is None else call(stream_id, argument)

    def _send(self, step: Step) -> None:
        stream_id, is_next_packet = step.stream_id, step.number != self._number
        self._number = step.number
        while (
            self._n_possible < len(self._acks)
            and self._acks[self._n_possible].earliest <= step.number
        ):
            self._n_possible += 1
        if step.kind is StepKind.RESENT:
            if is_next_packet:
                self._extend(step, shows_pick=False, is_next_packet=True)
            if self._waits_turn and stream_id in self._active:
                self._call("charge", stream_id, step.n_bytes)
            return
        if stream_id not in self._open:
            return
        # The first bytes of a stream show no pick: when it joined is not known.
        shows_pick = step.is_choice and stream_id in self._begun
        self._n_shown += shows_pick
        self._activate(stream_id)
        self._begun.add(stream_id)
        if step.number in self._lost:
            self._extend(step, shows_pick=False, is_next_packet=is_next_packet)
        else:
            self._unblock(stream_id)
            self._extend(step, shows_pick=shows_pick, is_next_packet=is_next_packet)
        if stream_id in self._active:
            self._call("charge", stream_id, step.n_bytes)

    def _unblock(self, stream_id: int) -> None:
        for each in self._beam:
            if stream_id in each.blocked:
                each.blocked -= {stream_id}
                each.scheduler.activate(stream_id)

    # Hypotheses

    def _extend(self, step: Step, *, shows_pick: bool, is_next_packet: bool) -> None:
        """Extend all hypotheses by a packet, or by more bytes in it, and keep the best."""
        variants: list[_Variant] = []
        for rank, each in enumerate(self._beam):
            is_varied = shows_pick and is_next_packet and rank < _N_VARIED_AFTER_MISS
            before: _Hypothesis | None = None
            if is_varied and each.n_acks < self._n_possible:
                before = each.copy(pickled(each.scheduler))
            phases: list[tuple[_Hypothesis, float]] = []
            if is_next_packet:
                phases = list(self._receive_due(each, step, variants, shows_pick=shows_pick))
            is_missed = shows_pick and self._charge_miss(each, step.stream_id)
            if is_next_packet:
                self._mark(each)
            variants.append(_Variant(each))
            for other, cost in phases:
                other.cost = cost + is_missed * _MISS_COST
                other.blocked, other.missed = each.blocked, each.missed
                self._mark(other)
                variants.append(_Variant(other, each.scheduler))
            if before is not None and (is_missed or rank < _N_VARIED):
                variants += self._moved(before, each.n_acks, step.stream_id)
            if is_missed and rank < _N_SHIFTED:
                variants += self._shifted(each)
        self._keep_best(variants)

    def _keep_best(self, variants: list[_Variant]) -> None:
        """Keep the best of those that expect something else; copy the schedulers of others."""
        variants.sort(key=lambda each: each.hypothesis.cost)
        most = variants[0].hypothesis.cost + _MAX_EXTRA_COST
        selected: dict[tuple[int, int, int, float, bool], _Hypothesis] = {}
        for each, source in variants:
            if len(selected) >= _MAX_HYPOTHESES or each.cost > most:
                break
            # Two pasts that expect the same differ in the order of streams for a while.
            is_settled = self._number - each.moved_at >= _SETTLED_PACKETS
            share_left = round(each.share_left or 0.0, 2)
            key = each.n_acks, each.due, each.phase, share_left, is_settled
            if key not in selected:
                if source is not None:
                    state = source if isinstance(source, bytes) else pickled(source)
                    each.scheduler = unpickled(state)
                selected[key] = each
        self._beam = list(selected.values())

    def _charge_miss(self, each: _Hypothesis, stream_id: int) -> bool:
        """Return whether another stream is picked, which costs; the second time it is blocked."""
        pick = each.scheduler.pick()
        if pick == stream_id:
            each.missed = None
            return False
        each.cost += _MISS_COST
        if pick in self._active:
            if each.missed == pick:
                each.scheduler.deactivate(pick)
                each.blocked |= {pick}
            else:
                each.missed = pick
        return True

    def _mark(self, each: _Hypothesis) -> None:
        """Note that the acknowledgements so far were before this packet."""
        previous = each.node
        if previous is not None and previous.number == self._number:
            previous = previous.previous
        each.node = _Node(previous, self._number, each.n_acks)

    def _receive_due(
        self, each: _Hypothesis, step: Step, variants: list[_Variant], *, shows_pick: bool
    ) -> Iterator[tuple[_Hypothesis, float]]:
        """Receive the acknowledgements that are due; yield variants in other phases, and costs.

        Those that expect the next one later than *each* are added to *variants*.
        """
        phases: list[tuple[_Hypothesis, float]] = []
        while each.n_acks < self._n_possible and each.due <= self._number:
            for other, cost in phases:
                if other.due > self._number:
                    is_missed = shows_pick and each.scheduler.pick() != step.stream_id
                    other.cost = cost + is_missed * _MISS_COST
                    self._mark(other)
                    variants.append(_Variant(other, pickled(each.scheduler)))
            phases = list(self._phases(each, self._receive(each)))
        for other, cost in phases:
            if (other.due, other.phase) != (each.due, each.phase):
                yield other, cost

    def _receive(self, each: _Hypothesis) -> list[_OtherPhase]:
        """Receive the next acknowledgement; return the other phases that may follow."""
        ack = self._acks[each.n_acks]
        self._requeue(each, ack)
        n_in_flight = max(1, self._number - self._first_number - self._left[each.n_acks])
        each.n_acks += 1
        phase, share_left = each.phase, each.share_left
        others: list[_OtherPhase]
        if any(number > each.cut_at for number in ack.lost):
            others = [_OtherPhase(phase, None, _STAY_COST)]
            each.cut_packets, each.cut_at = n_in_flight + ack.n_packets, self._number
            each.phase = _RECOVERY
        elif phase == _RECOVERY:
            share = n_in_flight / max(1, each.cut_packets)
            if share_left is None:
                others = [_OtherPhase(_AVOIDANCE, share, _LEAVE_COST)]
            elif share <= share_left + _EQUAL_CUT:
                each.phase = _AVOIDANCE
                others = [_OtherPhase(_RECOVERY, share_left, _STAY_COST)]
            else:
                cost = _STAY_COST if share < share_left + _SIMILAR_CUT else _PHASE_COST
                others = [_OtherPhase(_AVOIDANCE, share_left, cost)]
        else:
            growing = _AVOIDANCE if phase == _SLOW_START else _SLOW_START
            others = [
                _OtherPhase(_RECOVERY, share_left, _PHASE_COST),
                _OtherPhase(growing, share_left, _PHASE_COST),
            ]
        if each.phase == _AVOIDANCE:
            each.growth += ack.n_packets / n_in_flight - (each.growth >= 1)
        self._expect_next(each)
        return others

    def _phases(
        self, each: _Hypothesis, others: list[_OtherPhase]
    ) -> Iterator[tuple[_Hypothesis, float]]:
        """Yield variants in other phases, without a scheduler, and their costs."""
        for phase, share_left, cost in others:
            variant = each.copy(None)
            if phase == _RECOVERY and each.phase != _RECOVERY:
                n_left = self._left[each.n_acks - 1]
                variant.cut_packets = max(1, self._number - self._first_number - n_left)
            variant.phase, variant.share_left = phase, share_left
            self._expect_next(variant)
            yield variant, each.cost + cost

    def _requeue(self, each: _Hypothesis, ack: _Ack) -> None:
        for stream_id in ack.stream_ids:
            if stream_id in self._active and stream_id not in each.blocked:
                if self._can_requeue:
                    each.scheduler.requeue(stream_id)
                else:
                    each.scheduler.deactivate(stream_id)
                    each.scheduler.activate(stream_id)

    def _expect_next(self, each: _Hypothesis) -> None:
        """Set when the next acknowledgement is expected, if the one before arrived just now."""
        each.due = MAX_VARINT
        if each.n_acks < len(self._acks):
            n_packets = each.phase * self._acks[each.n_acks - 1].n_packets + (each.growth >= 1)
            each.due = max(self._acks[each.n_acks].earliest, self._number + n_packets)

    def _moved(self, before: _Hypothesis, n_acks: int, stream_id: int) -> Iterator[_Variant]:
        """Yield variants in which acknowledgements come now, or one later, and that pick right.

        *before* is the hypothesis before this packet, by which *n_acks* are before it.
        """
        each = before.copy(unpickled(before.scheduler))
        rate = max(before.phase, 1)
        for n_early in range(_MAX_EARLY + 1):
            n_moved = 1
            if n_early == 0:
                each.due = self._number + 1
            elif each.n_acks >= self._n_possible:
                break
            else:
                n_left = self._left[each.n_acks] - self._left[before.n_acks]
                n_moved = before.due - self._number + n_left * rate
                while True:
                    self._receive(each)
                    if each.n_acks >= self._n_possible or each.due > self._number:
                        break
            if each.n_acks != n_acks and each.scheduler.pick() == stream_id:
                variant = each.copy(None)
                variant.cost = before.cost + _distance_cost(n_moved)
                variant.moved_at = self._number
                self._mark(variant)
                yield _Variant(variant, pickled(each.scheduler))

    def _shifted(self, each: _Hypothesis) -> Iterator[_Variant]:
        """Yield variants that expect the next acknowledgements later, or that got them earlier."""
        if each.n_acks == len(self._acks):
            return
        number = self._number
        for n_packets in _SHIFTS_PACKETS:
            cost = each.cost + _distance_cost(n_packets) + _SHIFT_COST
            later = each.copy(None)
            later.due, later.cost = each.due + n_packets, cost
            later.moved_at = number
            yield _Variant(later, each.scheduler)
            earlier = each.copy(unpickled(pickled(each.scheduler)))
            earlier.moved_at = number
            while earlier.n_acks < self._n_possible and earlier.due <= number + n_packets:
                self._number = max(earlier.due, number)
                self._receive(earlier)
            self._number = number
            if earlier.n_acks > each.n_acks:
                earlier.due, earlier.cost = max(earlier.due - n_packets, number + 1), cost
                self._mark(earlier)
                yield _Variant(earlier)


def _acks(order: SendOrder) -> Iterator[_Ack]:
    """Yield what each acknowledgement does, with the streams of the packets that it is about."""
    carried: dict[int, dict[int, None]] = {}
    for step in order.steps:
        if step.kind in (StepKind.SENT, StepKind.RESENT):
            carried.setdefault(step.number, {})[step.stream_id] = None
    for acked, lost, earliest in order.acknowledgements:
        stream_ids = [key for number in (*acked, *lost) for key in carried.get(number, ())]
        yield _Ack(tuple(stream_ids), len(acked) + len(lost), lost, earliest)


_SLACK_PACKETS = 4
"""So many packets earlier an acknowledgement may have come than a search found."""


def with_ack_times(order: SendOrder, first_packets: tuple[int, ...]) -> SendOrder:
    """Return the order with acknowledgements no later than those packets, and not much earlier.

    What they declare lost is touched with what they acknowledge.
    """
    touched: deque[tuple[int, int, int]] = deque()
    for number, ack in zip(first_packets, _acks(order), strict=True):
        start = max(ack.earliest, number - _SLACK_PACKETS)
        touched.extend((start, number, stream_id) for stream_id in ack.stream_ids)
    steps: list[Step] = []
    for step in order.steps:
        if step.kind is StepKind.TOUCHED:
            continue
        if step.kind in (StepKind.SENT, StepKind.RESENT):
            while touched and touched[0][0] <= step.number:
                _, number, stream_id = touched.popleft()
                steps.append(Step(StepKind.TOUCHED, step.at_ns, stream_id, number=number))
        steps.append(step)
    return replace(order, steps=tuple(steps))


def with_lost_frames(order: SendOrder, calls: Iterable[SchedulerCall]) -> SendOrder:
    """Return the order with what lost packets carried in a history of the server.

    Bytes that a lost packet has carried in it are sent again where the log first shows them.
    """
    lost = frozenset(order.lost_packets)
    charges = deque(call for call in calls if call.method == "charge" and call.number in lost)
    sent_bytes = Counter[int]()
    steps: list[Step] = []
    for step in order.steps:
        if step.kind not in (StepKind.SENT, StepKind.RESENT):
            steps.append(step)
            continue
        while charges and charges[0].number <= step.number:
            charge = charges.popleft()
            stream_id, offset = charge.stream_id, sent_bytes[charge.stream_id]
            frame = Step(StepKind.SENT, step.at_ns, stream_id, charge.argument, charge.number)
            steps.append(frame._replace(offset=offset))
            sent_bytes[stream_id] += charge.argument
        if step.number in lost:
            continue
        stop = step.offset + step.n_bytes
        is_new = stop > sent_bytes[step.stream_id]
        if step.kind is StepKind.SENT and not is_new:
            step = step._replace(kind=StepKind.RESENT, is_choice=False)
        sent_bytes[step.stream_id] = max(sent_bytes[step.stream_id], stop)
        steps.append(step)
    return replace(order, steps=tuple(steps))
