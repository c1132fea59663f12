"""Times at which a server got a client's acknowledgements, as far as the client's log shows them.

A client knows when it sent an acknowledgement, but not which packets the server had sent when it
got it: those wait in the bottleneck's queue. It shows in the order of streams if acknowledgements
requeue them (quicly), and it follows from the congestion window: a server that fills it sends as
many packets per acknowledgement as left the network, in slow start twice as many, and none for a
while once packets were lost (RFC 9002 § 7.3).
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import Counter, deque
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from h3sim.constants import MAX_VARINT
from h3sim.schedulers import Retransmit, SupportsRequeue
from h3sim.study.send_history import pickled, requeue, unpickled
from h3sim.study.send_order import SendOrder, Step, StepKind

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from h3sim.study.identification import Mechanism
    from h3sim.study.send_history import SchedulerCall


_RECOVERY, _AVOIDANCE, _SLOW_START = 0, 1, 2
"""Packets that are sent for each one that leaves the network, by the phase of the window."""

# Costs are about the negative logarithm of how often something happens.
_MISS_COST = 4.0
"""Cost of a stream that is sent and not picked."""
_LEAVE_COST = 0.5
"""Cost of a first recovery that ends now: how far the window is cut is not known by then."""
_STAY_COST = 1.5
"""Cost of a loss that does not cut the window, or of leaving recovery somewhat earlier or later
than the first time."""
_PHASE_COST = 4.0
"""Cost of another phase without a reason."""
_MOVE_COST = 0.5
"""Cost of an acknowledgement that comes at another packet than expected, and once more for each
factor e in the distance."""
_SHIFT_COST = 2.5
"""Cost of continuing at another place after a miss, in addition to that of the distance."""

_MAX_HYPOTHESES = 48
"""Width of the beam: recovery may end with any of about so many acknowledgements, and only later
picks show with which."""
_SETTLED_PACKETS = 24
"""Packets after which the order of streams follows from the acknowledgements since then."""
_MAX_EXTRA_COST = 30.0
"""Hypotheses that cost so much more than the best one are given up."""
_N_VARIED = 4
"""Number of best hypotheses that are varied at each pick."""
_N_VARIED_AFTER_MISS = 8
"""Number that are varied at a pick that they miss."""
_N_SHIFTED = 3
"""Number that are also shifted there."""
_SHIFTS_PACKETS = (4, 12, 32)
"""Shifts, in packets."""
_HOPELESS_SHARE = 0.25
_HOPELESS_PICKS = 50
"""The search ends once the cost exceeds that of missing this share of the picks, and so many
more."""
_MAX_EARLY = 8
"""Steps by which acknowledgements are moved forward at one packet; each receives all that are
due."""
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


class _PhaseChange(NamedTuple):
    """Another phase of the window that may follow an acknowledgement, at a cost."""

    phase: int
    exit_share: float | None
    """As of the hypothesis in which it follows."""
    cost: float
    cut_packets: int | None = None
    """The packets in flight, if this is a cut of the window for no reason."""


class _Received(NamedTuple):
    """The acknowledgements received by a packet: a linked list, shared by hypotheses."""

    previous: _Received | None
    """Those by an earlier packet."""
    number: int
    """The packet."""
    n_acks: int
    """The number of acknowledgements before it."""


@dataclass(slots=True)
class _Hypothesis:
    """A possible past of a server up to a packet, and when it expects the next acknowledgement."""

    scheduler: Any
    """The scheduler; its state, in a saved copy; None until `_keep_best` copies it."""
    due: int
    """The packet before which the next acknowledgement is expected."""
    cost: float = 0.0
    n_acks: int = 0
    """The acknowledgements so far."""
    phase: int = _SLOW_START
    cut_at: int = -1
    """The last packet before the window was cut; no loss up to it cuts it again."""
    cut_packets: int = 0
    """The packets in flight at that moment."""
    exit_share: float | None = None
    """The packets in flight when the first recovery ended, relative to `cut_packets`."""
    growth: float = 0.0
    """The packets by which the window grew in congestion avoidance, still to be sent."""
    blocked: frozenset[int] = frozenset()
    """Active streams that have proven to have nothing to send."""
    missed: int | None = None
    """The wrong pick at the last choice; None if that was right."""
    received: _Received | None = None
    """The acknowledgements by each packet so far."""
    moved_at: int = -_SETTLED_PACKETS
    """The packet at which acknowledgements were last moved."""

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
            self.exit_share,
            self.growth,
            self.blocked,
            self.missed,
            self.received,
            self.moved_at,
        )


class _Variant(NamedTuple):
    """A hypothesis that may be kept, and what its scheduler is copied from, if it has none yet."""

    hypothesis: _Hypothesis
    source: Any = None
    """A scheduler of another hypothesis, or a state as `pickled` returns it."""


def _distance_cost(n_packets: int) -> float:
    """Return the cost of an acknowledgement so many packets from where it is expected."""
    return _MOVE_COST * (1 + math.log(1 + abs(n_packets))) if n_packets else 0.0


class AckTimeSearch:
    """A search for the times at which a server got acknowledgements, if *mechanism* made the log.

    Times are numbers of packets. It is a beam search: of the possible pasts of the server, those
    are followed that explain the picks so far with the fewest misses, and with the fewest changes
    of the congestion window that nothing explains.
    """

    def __init__(self, order: SendOrder, mechanism: Mechanism) -> None:
        """Prepare a search in the log of a client."""
        self._order = order
        self._mechanism = mechanism
        self._waits_turn = mechanism.retransmit is Retransmit.TURN
        self._lost = frozenset(order.lost_packets)
        self._acks = list(_acks(order))
        self._n_departed = [0]
        """The packets that have left the network after so many acknowledgements."""
        for ack in self._acks:
            self._n_departed.append(self._n_departed[-1] + ack.n_packets)
        sent = {step.number for step in order.steps if step.number >= 0}
        self._numbers = sorted(sent | self._lost)
        """The packets with bytes of streams, which are the ones in flight."""
        self._open: set[int] = set()
        self._active: set[int] = set()
        self._begun: set[int] = set()
        self._closings: deque[tuple[int, int]] = deque()
        self._n_shown = 0
        """The picks that the log showed so far."""
        self._number = -1
        """The last packet."""
        self._n_possible = 0
        """The acknowledgements that may have arrived by that packet."""
        first = self._acks[0].earliest if self._acks else MAX_VARINT
        scheduler = mechanism.new(order.turn_bytes)
        self._has_requeue = isinstance(scheduler, SupportsRequeue)
        self._beam = [_Hypothesis(scheduler, first)]
        """The hypotheses, the best ones first."""

    def run(self, most_cost: float = math.inf) -> AckTimes | None:
        """Return the best times; None once all cost more than *most_cost*."""
        for step in self._order.steps:
            self._replay(step)
            if self._beam[0].cost > min(most_cost, self._hopeless_cost()):
                return None
        best = self._beam[0]
        chain: list[_Received] = []
        received = best.received
        while received is not None:
            chain.append(received)
            received = received.previous
        found: list[int] = []
        for each in reversed(chain):
            found += [each.number] * (each.n_acks - len(found))
        found += [MAX_VARINT] * (len(self._acks) - len(found))
        return AckTimes(tuple(found), best.cost)

    def _hopeless_cost(self) -> float:
        """Return the cost from which on the mechanism explains too little to show any times."""
        return _MISS_COST * (_HOPELESS_PICKS + _HOPELESS_SHARE * self._n_shown)

    # Steps of the log, which are the same for all hypotheses

    def _replay(self, step: Step) -> None:
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
        """Call a method of all schedulers; a stream that is blocked in one stays inactive there."""
        for each in self._beam:
            if stream_id in each.blocked:
                if method in ("deactivate", "close"):
                    each.blocked -= {stream_id}
                if method in ("deactivate", "activate", "charge"):
                    continue
            call = getattr(each.scheduler, method)
            call(stream_id) if argument is None else call(stream_id, argument)

    def _send(self, step: Step) -> None:
        stream_id = step.stream_id
        if step.kind is StepKind.SENT and stream_id not in self._open:
            return
        is_next_packet = step.number != self._number
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
                self._record_received(each)
            variants.append(_Variant(each))
            for other, cost in phases:
                other.cost = cost + is_missed * _MISS_COST
                other.blocked, other.missed = each.blocked, each.missed
                self._record_received(other)
                variants.append(_Variant(other, each.scheduler))
            if before is not None and (is_missed or rank < _N_VARIED):
                variants += self._moved_variants(before, each.n_acks, step.stream_id)
            if is_missed and rank < _N_SHIFTED:
                variants += self._shifted_variants(each)
        self._keep_best(variants)

    def _keep_best(self, variants: list[_Variant]) -> None:
        """Keep the best of those that expect something else; copy the schedulers of others."""
        variants.sort(key=lambda each: each.hypothesis.cost)
        most = variants[0].hypothesis.cost + _MAX_EXTRA_COST
        states: dict[int, bytes] = {}
        """The states of schedulers that several variants share, by `id`."""
        selected: dict[tuple[int, int, int, float, bool], _Hypothesis] = {}
        for each, source in variants:
            if len(selected) >= _MAX_HYPOTHESES or each.cost > most:
                break
            # Two pasts that expect the same differ in the order of streams for a while.
            is_settled = self._number - each.moved_at >= _SETTLED_PACKETS
            exit_share = round(each.exit_share or 0.0, 2)
            key = each.n_acks, each.due, each.phase, exit_share, is_settled
            if key not in selected:
                if source is not None:
                    if not isinstance(source, bytes):
                        if id(source) not in states:
                            states[id(source)] = pickled(source)
                        source = states[id(source)]
                    each.scheduler = unpickled(source)
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

    def _record_received(self, each: _Hypothesis) -> None:
        """Note that the acknowledgements so far were before this packet."""
        previous = each.received
        if previous is not None and previous.number == self._number:
            previous = previous.previous
        each.received = _Received(previous, self._number, each.n_acks)

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
                    self._record_received(other)
                    variants.append(_Variant(other, pickled(each.scheduler)))
            changes = self._receive(each, self._number)
            phases = list(self._phases(each, changes, self._number))
        for other, cost in phases:
            if (other.due, other.phase) != (each.due, each.phase):
                yield other, cost

    def _receive(self, each: _Hypothesis, number: int) -> list[_PhaseChange]:
        """Receive the next acknowledgement before a packet; return what else may follow."""
        ack = self._acks[each.n_acks]
        self._requeue(each, ack)
        n_sent = bisect_left(self._numbers, number)
        # Before those leave that it acknowledges or that are lost.
        n_in_flight = max(1, n_sent - self._n_departed[each.n_acks])
        each.n_acks += 1
        phase, exit_share = each.phase, each.exit_share
        if any(lost > each.cut_at for lost in ack.lost):
            changes = [_PhaseChange(phase, exit_share, _STAY_COST)]
            self._cut(each, n_in_flight, number)
        elif phase == _RECOVERY:
            share = n_in_flight / max(1, each.cut_packets)
            if exit_share is None:
                changes = [_PhaseChange(_AVOIDANCE, share, _LEAVE_COST)]
            elif share <= exit_share + _EQUAL_CUT:
                each.phase = _AVOIDANCE
                changes = [_PhaseChange(_RECOVERY, exit_share, _STAY_COST)]
            else:
                cost = _STAY_COST if share < exit_share + _SIMILAR_CUT else _PHASE_COST
                changes = [_PhaseChange(_AVOIDANCE, exit_share, cost)]
        else:
            growing = _AVOIDANCE if phase == _SLOW_START else _SLOW_START
            changes = [
                _PhaseChange(_RECOVERY, exit_share, _PHASE_COST, n_in_flight),
                _PhaseChange(growing, exit_share, _PHASE_COST),
            ]
        if each.phase == _AVOIDANCE:
            each.growth += ack.n_packets / n_in_flight - (each.growth >= 1)
        self._expect_next(each, number)
        return changes

    def _cut(self, each: _Hypothesis, n_in_flight: int, number: int) -> None:
        """Begin a recovery before a packet."""
        each.cut_packets, each.cut_at = n_in_flight, number - 1
        each.phase, each.growth = _RECOVERY, 0.0

    def _phases(
        self, each: _Hypothesis, changes: list[_PhaseChange], number: int
    ) -> Iterator[tuple[_Hypothesis, float]]:
        """Yield variants in other phases, without a scheduler, and their costs."""
        for phase, exit_share, cost, cut_packets in changes:
            variant = each.copy(None)
            if cut_packets is not None:
                self._cut(variant, cut_packets, number)
            variant.phase, variant.exit_share = phase, exit_share
            self._expect_next(variant, number)
            yield variant, each.cost + cost

    def _requeue(self, each: _Hypothesis, ack: _Ack) -> None:
        for stream_id in ack.stream_ids:
            if stream_id in self._active and stream_id not in each.blocked:
                requeue(each.scheduler, stream_id, has_requeue=self._has_requeue)

    def _expect_next(self, each: _Hypothesis, number: int) -> None:
        """Set when the next acknowledgement is expected, if the one before came before *number*."""
        each.due = MAX_VARINT
        if each.n_acks < len(self._acks):
            n_packets = each.phase * self._acks[each.n_acks - 1].n_packets
            n_packets += each.phase == _AVOIDANCE and each.growth >= 1
            each.due = max(self._acks[each.n_acks].earliest, number + n_packets)

    def _moved_variants(
        self, before: _Hypothesis, n_acks: int, stream_id: int
    ) -> Iterator[_Variant]:
        """Yield variants that get more acknowledgements now, or those due a packet later.

        Only those are yielded that pick the stream. *before* is the hypothesis before this packet,
        by which *n_acks* are before it.
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
                n_departed = self._n_departed[each.n_acks] - self._n_departed[before.n_acks]
                n_moved = before.due - self._number + n_departed * rate
                while True:
                    self._receive(each, self._number)
                    if each.n_acks >= self._n_possible or each.due > self._number:
                        break
            if each.n_acks != n_acks and each.scheduler.pick() == stream_id:
                variant = each.copy(None)
                variant.cost = before.cost + _distance_cost(n_moved)
                variant.moved_at, variant.missed = self._number, None
                self._record_received(variant)
                yield _Variant(variant, pickled(each.scheduler))

    def _shifted_variants(self, each: _Hypothesis) -> Iterator[_Variant]:
        """Yield variants that expect the next acknowledgements later, or that got them earlier."""
        if each.n_acks == len(self._acks):
            return
        for n_packets in _SHIFTS_PACKETS:
            cost = each.cost + _distance_cost(n_packets) + _SHIFT_COST
            later = each.copy(None)
            later.due, later.cost = each.due + n_packets, cost
            later.moved_at = self._number
            yield _Variant(later, each.scheduler)
            earlier = each.copy(unpickled(pickled(each.scheduler)))
            earlier.moved_at = self._number
            while earlier.n_acks < self._n_possible and earlier.due <= self._number + n_packets:
                self._receive(earlier, max(earlier.due, self._number))
            if earlier.n_acks > each.n_acks:
                earlier.due = max(earlier.due - n_packets, self._number + 1)
                earlier.cost = cost
                earlier.cut_at = min(earlier.cut_at, self._number - 1)
                self._record_received(earlier)
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

    They touch the streams of the packets that they acknowledge or declare lost. Those at
    `MAX_VARINT` came after the last packet, and are left out. Streams close as early as may be, as
    before.
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
        elif step.kind is StepKind.RESENT and is_new:  # the lost packet carried something else
            step = step._replace(kind=StepKind.SENT)
        sent_bytes[step.stream_id] = max(sent_bytes[step.stream_id], stop)
        steps.append(step)
    return replace(order, steps=tuple(steps))
