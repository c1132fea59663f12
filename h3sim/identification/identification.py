"""Which scheduler made a log: the shipped mechanisms, driven over the events of the log.

Each mechanism predicts one pick ahead: it is asked which stream it would send, and is then charged
what was sent. So a mistake does not spread, and a share of the picks is explained.
"""

from __future__ import annotations

import enum
import math
from collections import Counter
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from h3sim._version import __version__
from h3sim.identification.chance import contested_picks, share_saved
from h3sim.identification.mechanism import TREE_KINDS, Mechanism
from h3sim.identification.send_order import SendOrder, Step, StepKind, send_orders
from h3sim.identification.workload import EPS_WORKLOAD, TREE_WORKLOAD, describe_signal, order_by
from h3sim.schedulers import Mixed, Quantum, Retransmit, SupportsRequeue
from h3sim.schema.arguments import PATH, ErrorCollector, check_arguments
from h3sim.schema.output import (
    COUNT,
    NUMBER,
    TEXT,
    TEXT_OR_NONE,
    VERSION,
    OutputSchema,
    Property,
    rows_of,
)
from h3sim.schema.values import Flag, Integer, ListOf, OrNone
from h3sim.schemes import SchedulerKind
from h3sim.signals import Eps, H2Priority, StrictPriority
from h3sim.trace import Rows
from h3sim.values.errors import InputError
from h3sim.values.notebook import reporting
from h3sim.values.units import to_ms

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from h3sim.schedulers import Scheduler
    from h3sim.values.plots import IdentificationPlots


class Resync(enum.Enum):
    """The consequence of a pick that was not sent.

    A ring of streams stays out of step if one joined at another time than it seems. Which stream it
    was, the log does not say; strict orders are the same with each.
    """

    NONE = "none"
    """Nothing: the stream that was sent is charged, as always."""
    REJOIN = "rejoin"
    """The streams that were picked in vain go behind their equals, until the one that was sent is
    next."""
    SKIP = "skip"
    """The stream that was sent had its quantum too early, and is not charged for it."""


def predictions(
    order: SendOrder, mechanism: Mechanism, *, resync: Resync = Resync.NONE
) -> list[int | None]:
    """Return which stream the mechanism would have sent at each choice.

    Bytes that are sent again count as another stream, `~stream_id`. A stream that may not have been
    ready is not held against it.
    """
    return _Replay(order, mechanism, resync=resync).run()


class _Replay:
    """A scheduler that is driven over the steps of a log."""

    def __init__(self, order: SendOrder, mechanism: Mechanism, *, resync: Resync) -> None:
        self._order = order
        self._resync = resync
        self._mechanism = mechanism
        self._scheduler = mechanism.new(order.turn_bytes)
        self._lost_scheduler: Scheduler | None = None
        """Orders lost bytes among themselves, if these go before all new ones."""
        if mechanism.retransmit is Retransmit.PRIORITY:
            self._lost_scheduler = mechanism.new(order.turn_bytes)
        self._waits_turn = mechanism.retransmit is Retransmit.TURN
        self._unsure: dict[int, None] = {}
        """Active streams that may not have been ready yet."""
        self._held: list[int] = []
        """Those that cannot have been ready at this pick, as they would have been sent."""
        self._active: dict[int, None] = {}
        self._lost: dict[int, None] = {}
        self._closings: list[tuple[int, int]] = []
        self._closed = 0
        self._open: dict[int, None] = {}
        self._previous: int | None = None
        # A protocol's check takes longer than a pick.
        self._requeue = (
            self._scheduler.requeue
            if isinstance(self._scheduler, SupportsRequeue)
            else self._rejoin
        )

    def run(self) -> list[int | None]:
        predicted: list[int | None] = []
        retention_ns = self._mechanism.kind.retention_ns
        for step in self._order.steps:
            self._close_until(step.at_ns)
            match step.kind:
                case StepKind.RESENT if step.stream_id not in self._lost:
                    # When the server learnt of the loss is not known: it shows nothing of others.
                    self._charge(step)
                    self._previous = step.stream_id
                case StepKind.SENT | StepKind.RESENT:
                    pick = self._pick(step)
                    if step.is_choice:
                        predicted.append(pick)
                    if self._resynchronize(pick, step.stream_id):
                        self._charge(step)
                    self._release()
                    self._previous = step.stream_id
                case StepKind.OPEN | StepKind.UPDATE:
                    self._signal(step)
                case StepKind.CLOSE:
                    self._closings.append((step.at_ns + retention_ns, step.stream_id))
                case _:
                    self._change(step)
        return predicted

    def _resynchronize(self, pick: int | None, stream_id: int) -> bool:
        """Correct the order after a wrong pick; return whether the scheduler is to be charged."""
        if pick is None or pick == stream_id or pick not in self._active:
            return True
        if self._resync is Resync.SKIP:
            return False
        if self._resync is Resync.REJOIN:
            self._rotate(pick, stream_id)
        elif pick == self._previous:  # what sent the packet before has used up its quantum
            self._rejoin(pick)
        return True

    def _rotate(self, pick: int, stream_id: int) -> int:
        """Move picks behind their equals until *stream_id* is next; return it, or else *pick*."""
        vain: dict[int, None] = {}
        rotated: int | None = pick
        while rotated is not None and rotated != stream_id and rotated not in vain:
            vain[rotated] = None
            self._rejoin(rotated)
            rotated = self._scheduler.pick()
        return stream_id if rotated == stream_id else pick

    def _rejoin(self, stream_id: int) -> None:
        self._scheduler.deactivate(stream_id)
        self._scheduler.activate(stream_id)

    def _close_until(self, at_ns: int) -> None:
        while self._closed < len(self._closings) and self._closings[self._closed][0] < at_ns:
            stream_id = self._closings[self._closed][1]
            self._closed += 1
            if self._open.pop(stream_id, 0) is None:
                self._scheduler.close(stream_id)
                if self._lost_scheduler is not None:
                    self._lost_scheduler.close(stream_id)

    def _signal(self, step: Step) -> None:
        signal = self._mechanism.signal(step.signal)
        assert signal is not None  # noqa: S101 - both steps have one
        is_new = step.kind is StepKind.OPEN
        if not is_new and (step.stream_id not in self._open or not self._mechanism.heeds_updates):
            return
        self._open[step.stream_id] = None
        for scheduler in (self._scheduler, self._lost_scheduler):
            if scheduler is not None:
                (scheduler.open if is_new else scheduler.update)(step.stream_id, signal)

    def _change(self, step: Step) -> None:
        stream_id = step.stream_id
        match step.kind:
            case StepKind.ACTIVATE:
                self._active[stream_id] = None
                self._scheduler.activate(stream_id)
                self._unsure[stream_id] = None
            case StepKind.READY:
                self._unsure.pop(stream_id, None)
            case StepKind.DEACTIVATE:
                self._active.pop(stream_id, None)
                self._unsure.pop(stream_id, None)
                if not (self._waits_turn and stream_id in self._lost):
                    self._scheduler.deactivate(stream_id)
            case StepKind.LOST if stream_id in self._open:
                self._lost[stream_id] = None
                if self._waits_turn:
                    self._scheduler.activate(stream_id)
                if self._lost_scheduler is not None:
                    self._lost_scheduler.activate(stream_id)
            case StepKind.TOUCHED if self._mechanism.requeues and stream_id in self._active:
                self._requeue(stream_id)
            case StepKind.REPAIRED if self._lost.pop(stream_id, 0) is None:
                if self._waits_turn and stream_id not in self._active:
                    self._scheduler.deactivate(stream_id)
                if self._lost_scheduler is not None:
                    self._lost_scheduler.deactivate(stream_id)

    def _release(self) -> None:
        """Activate again what was held: it may be ready from now on."""
        for stream_id in self._held:
            self._scheduler.activate(stream_id)
        self._held.clear()

    def _pick(self, step: Step) -> int | None:
        """Return the pick; `~stream_id` where it sends lost bytes.

        The first bytes of a stream that may have become ready just then do not show its position
        among its equals.
        """
        joins = step.kind is StepKind.SENT and self._unsure.pop(step.stream_id, 0) is None
        if self._lost and not self._waits_turn:
            lost_id = next(iter(self._lost))
            if self._lost_scheduler is not None:
                lost_id = self._lost_scheduler.pick() or lost_id
            return ~lost_id
        picked = self._scheduler.pick()
        rejoined: dict[int, None] = {}
        while picked is not None and picked != step.stream_id and picked in self._unsure:
            self._scheduler.deactivate(picked)
            if picked in rejoined:
                self._held.append(picked)
            else:  # at the latest now, if it is behind the one that was sent
                rejoined[picked] = None
                self._scheduler.activate(picked)
            picked = self._scheduler.pick()
        if picked is not None and picked in self._lost:
            return ~picked
        if picked is None or picked == step.stream_id or not joins:
            return picked
        # It joined ahead of streams that keep their order: at the end, and then they go behind it.
        self._rejoin(step.stream_id)
        picked = self._scheduler.pick()
        return picked if picked is None else self._rotate(picked, step.stream_id)

    def _charge(self, step: Step) -> None:
        stream_id, n_bytes = step.stream_id, step.n_bytes
        if step.kind is StepKind.RESENT:
            if self._lost_scheduler is not None and stream_id in self._lost:
                self._lost_scheduler.charge(stream_id, n_bytes)
            if not self._waits_turn:
                return
        if stream_id in self._active or (self._waits_turn and stream_id in self._lost):
            self._scheduler.charge(stream_id, n_bytes)


# Candidates


_EPS = tuple(Mechanism(kind=SchedulerKind.EPS, mixed=mixed) for mixed in Mixed)
_TREES = tuple(Mechanism(kind=kind) for kind in TREE_KINDS)
ONE_PACKET = Quantum()
_LONG_QUANTUM = Quantum(packets=8)
"""A quantum to compare with: where it makes no difference, a log does not show the quantum."""
_LONGEST_QUANTUM = Quantum(size_bytes=16_000)
"""The longest of a deployed server (google-quiche): no response need have reached it."""
_NGHTTP3_QUANTUM = Quantum(size_bytes=800)
"""The bytes of a turn in nghttp3: less than a packet, so few runs of packets show it."""
_MOST_QUANTA = 3
"""Most quanta that are tried beside one packet."""


def candidates_for(order: SendOrder) -> list[Mechanism]:
    """Return the mechanisms that may have made a log, by the signals in it; plain ones first."""
    kinds = {type(signal) for signal in order.signals.values()} if order.has_signals else set()
    found = [Mechanism(kind=SchedulerKind.FIFO)]
    quanta = quanta_of(order)
    found += [
        Mechanism(kind=SchedulerKind.ROUND_ROBIN, turn=turn, is_list=is_list)
        for turn in quanta
        for is_list in (False, True)
    ]
    if Eps in kinds:
        found += [replace(each, turn=turn) for each in _EPS for turn in quanta]
        # One that no response reached.
        if _LONGEST_QUANTUM not in quanta:
            found += [replace(each, turn=_LONGEST_QUANTUM) for each in _EPS]
            # It explains a client's log too easily, whose times are estimates.
            if order.source == "server":
                found += [
                    Mechanism(
                        kind=SchedulerKind.ROUND_ROBIN, turn=_LONGEST_QUANTUM, is_list=is_list
                    )
                    for is_list in (False, True)
                ]
        if _NGHTTP3_QUANTUM not in quanta:
            found.append(
                Mechanism(kind=SchedulerKind.EPS, mixed=Mixed.SHARED_LIST, turn=_NGHTTP3_QUANTUM)
            )
        found.append(Mechanism(kind=SchedulerKind.EPS, is_sequential=True))
    if H2Priority in kinds:
        found += _TREES
    if StrictPriority in kinds:
        found.append(Mechanism(kind=SchedulerKind.STRICT))
    if order.n_updates:
        found += [replace(each, heeds_updates=False) for each in found if each.heeds_signals]
    return found


def quanta_of(order: SendOrder) -> list[Quantum]:
    """Return the quanta that the log suggests: one packet first, then by frequency.

    A run of one stream ends because its quantum is used up, if it had more to send.
    """
    runs = list(_full_runs(order.steps))
    lengths = Counter(n_packets for n_packets, _, _ in runs)
    found = [ONE_PACKET]
    found += [
        Quantum(packets=length) for length, _ in lengths.most_common(_MOST_QUANTA + 1) if length > 1
    ][:_MOST_QUANTA]
    size_bytes = _quantum_bytes([run for run in runs if run[0] > 1])
    return found if size_bytes is None else [*found, Quantum(size_bytes=size_bytes)]


def _full_runs(steps: Iterable[Step]) -> Iterator[tuple[int, int, int]]:
    """Yield packets, bytes, and bytes of the last packet of runs that ended with the quantum."""
    stream_id, n_packets, n_bytes, last_bytes, is_over = -1, 0, 0, 0, True
    for step in steps:
        if step.kind is StepKind.DEACTIVATE and step.stream_id == stream_id:
            is_over = True
        elif step.kind is StepKind.RESENT:
            is_over, stream_id = True, -1
        elif step.kind is StepKind.SENT:
            if step.stream_id != stream_id:
                if not is_over:
                    yield n_packets, n_bytes, last_bytes
                stream_id, n_packets, n_bytes, is_over = step.stream_id, 0, 0, not step.is_choice
            n_packets += 1
            n_bytes += step.n_bytes
            last_bytes = step.n_bytes


def _quantum_bytes(runs: list[tuple[int, int, int]]) -> int | None:
    """Return the roundest number of bytes that most of *runs* reach with their last packet.

    >>> _quantum_bytes([(12, 16_800, 1_400), (13, 16_200, 1_400), (12, 16_500, 1_400)])
    16000
    """
    edges = sorted(
        edge
        for _, n_bytes, last_bytes in runs
        for edge in ((n_bytes - last_bytes + 1, -1), (n_bytes + 1, 1))
    )
    depth = deepest = low = high = 0
    for index, (at_bytes, change) in enumerate(edges):
        depth -= change
        if depth > deepest:
            deepest, low, high = depth, at_bytes, edges[index + 1][0] - 1
    for digits in range(len(str(high)), -1, -1):
        step: int = 10**digits
        if (rounded := high // step * step) >= max(low, 1):
            return rounded
    return None


# Comparison

_LEAST_SAVED = 0.7
"""The share of the code length of chance that a mechanism must save, chosen on half of the loads of
`validation.identified`."""
_MOST_MISSED, _MOST_MISSED_BY_SERVER = 0.05, 0.025
"""The share of picks, and of changes of stream, that a mechanism may leave unexplained; less
in a server's log, whose times are exact. Chosen on the same half."""
_PROMISING = 0.4
"""Mechanisms that explain less than this share of the best one's picks are not tried further."""
_FEW_MECHANISMS = 4
"""So many of the most promising mechanisms decide what happens to streams that lose bytes."""
_FEW_VARIANTS = 4
"""So many variants of each mechanism are tried with each consequence of a wrong pick."""
_MOST_REPLAYED = 400_000
"""Steps that the candidates together replay at most before variants are tried: with these a log
takes at most about 16 times as many, which is 15 s."""
FEW_PICKS = 4
"""So many picks refute a mechanism where another explains everything."""
_SIGNIFICANT = 100
"""One over the level of significance; whole, since the test counts in large whole numbers."""


def refutes(best: Sequence[bool], other: Sequence[bool]) -> bool:
    """Return whether the picks that *best* explains and *other* does not refute the *other*.

    An exact sign test of the picks that only one of them explains (McNemar's test), at 1 %: seven
    at least. Four more are enough than *best* does not explain; fewer are not, as times in logs are
    not exact.
    And *best* must gain more than half of what it does not explain itself: so much is lost in
    reconstruction.

    >>> refutes([True] * 7 + [False], [False] * 8), refutes([True] * 4 + [False], [False] * 5)
    (True, False)
    >>> refutes([True] * 4, [False] * 4), refutes([True] * 3, [False] * 3)
    (True, False)
    """
    only_best = sum(a and not b for a, b in zip(best, other, strict=True))
    only_other = sum(b and not a for a, b in zip(best, other, strict=True))
    if only_best - only_other >= FEW_PICKS + best.count(False):
        return True
    if 2 * (only_best - only_other) <= best.count(False):
        return False
    n = only_best + only_other
    tail: int = sum(math.comb(n, k) for k in range(only_best, n + 1))
    return bool(tail * _SIGNIFICANT < 2**n)


class Explanation(NamedTuple):
    """A mechanism as the explanation of a log: *explained* of all choices.

    *refuting* picks contradict it: the best mechanism explains them, and this one does not.
    """

    mechanism: str
    quantum: str
    explained: int
    percent: float
    refuting: int
    is_refuted: bool


class Contradiction(NamedTuple):
    """A pick that the best mechanism does not explain; retransmissions are marked."""

    at_ms: float
    packet: int
    sent_stream: int
    expected_stream: int
    is_retransmission: bool
    expected_retransmission: bool


class Difference(NamedTuple):
    """Two responses by which two mechanisms that explain a log alike could be told apart."""

    mechanism: str
    other: str
    needs: str


@dataclass(frozen=True)
class _Scored:
    mechanism: Mechanism
    hits: tuple[bool, ...]
    resync: Resync

    @cached_property
    def n_hits(self) -> int:
        return sum(self.hits)


def _beginning(order: SendOrder) -> SendOrder:
    """Return as much of an order as can be compared in time, with a note of what is left out."""
    n_steps = _MOST_REPLAYED // len(candidates_for(order))
    if len(order.steps) <= n_steps:
        return order
    note = f"steps after the first {n_steps:,} of {len(order.steps):,}: they were not tried"
    return replace(order, steps=order.steps[:n_steps], unknown=(*order.unknown, note))


class _Comparison:
    """The candidates, scored by the choices of a log."""

    def __init__(self, order: SendOrder) -> None:
        self.order = order = _beginning(order)
        self.picks = [
            step.stream_id if step.kind is StepKind.SENT else ~step.stream_id
            for step in order.steps
            if step.is_choice
        ]
        self._known: dict[tuple[Mechanism, Resync], _Scored] = {}
        self.contested = contested_picks(order)
        self.n_changes = sum(pick.is_change for pick in self.contested)
        kinds = {step.kind for step in order.steps}
        self._retransmits: tuple[Retransmit, ...] = (Retransmit.FIRST,)
        if StepKind.LOST in kinds:
            self._retransmits = tuple(Retransmit)
        elif StepKind.RESENT in kinds:  # the others differ by when the server learnt of losses
            self._retransmits = (Retransmit.FIRST, Retransmit.TURN)
        self._requeues = (False, True) if StepKind.TOUCHED in kinds else (False,)
        self.groups: dict[str, _Scored] = {}
        """The best variant of each mechanism, by name."""
        self._resyncs: tuple[Resync, ...] = (Resync.NONE,)
        self._is_server = order.source == "server"
        variants = self._variants()
        for variant in variants:
            self._keep(self.score(variant))
        # Where one explains a server's log exactly, the others need no help.
        if not (self._is_server and self._is_exact()):
            self._help(variants)
        self.best = max(self.groups.values(), key=lambda scored: scored.n_hits)

    def _is_exact(self) -> bool:
        """Return whether a mechanism explains all choices."""
        return any(all(each.hits) for each in self.groups.values())

    def _variants(self) -> list[Mechanism]:
        """Return the promising candidates, with what may happen to streams that lose bytes."""
        promising = self._promising()
        loss_handlings = self._loss_handlings(promising)
        if not any(requeues for requeues, _ in loss_handlings):
            self.groups.clear()
            for mechanism in candidates_for(self.order):
                self._keep(self._scored(mechanism))
        return [
            replace(mechanism, requeues=requeues, retransmit=retransmit)
            for requeues, retransmit in loss_handlings
            for mechanism in promising
        ]

    def _help(self, variants: Iterable[Mechanism]) -> None:
        """Keep what the variants explain that explain most, with each consequence of misses."""
        by_name: dict[str, list[_Scored]] = {}
        for variant in variants:
            if not all(self.groups[variant.name].hits):
                by_name.setdefault(variant.name, []).append(self.score(variant))
        self._resyncs = tuple(Resync)
        for scored in by_name.values():
            for each in sorted(scored, key=lambda each: -each.n_hits)[:_FEW_VARIANTS]:
                self._keep(self.score(each.mechanism))

    def is_named(self, scored: _Scored) -> bool:
        """Return whether a mechanism may be named: it explains all, or far more than chance."""
        missed = [pick.is_change for pick in self.contested if not scored.hits[pick.choice]]
        if not missed:
            return True
        if len(missed) >= FEW_PICKS:
            most = _MOST_MISSED_BY_SERVER if self._is_server else _MOST_MISSED
            if len(missed) > most * len(self.contested) or sum(missed) > most * self.n_changes:
                return False
        return self.saved(scored) >= _LEAST_SAVED

    def saved(self, scored: _Scored) -> float:
        """Return the share of the code length of chance that a mechanism saves."""
        n_fitted = scored.mechanism.turn not in (None, ONE_PACKET)
        return share_saved(self.contested, scored.hits, n_tried=len(self._known), n_fitted=n_fitted)

    def changes_explained(self, scored: _Scored) -> int:
        """Return the number of changes of stream that a mechanism explains."""
        return sum(pick.is_change and scored.hits[pick.choice] for pick in self.contested)

    @property
    def share(self) -> float:
        """The share of the choices that the best mechanism explains."""
        return self.best.n_hits / len(self.picks) if self.picks else 1.0

    def _keep(self, scored: _Scored) -> None:
        """Keep a variant if it is the best of its mechanism."""
        known = self.groups.get(scored.mechanism.name)
        if known is None or scored.n_hits > known.n_hits:
            self.groups[scored.mechanism.name] = scored

    def _promising(self) -> list[Mechanism]:
        """Return the candidates that may explain most, the best first; the others count as is."""
        scored = [
            max(
                (self._scored(replace(each, requeues=requeues)) for requeues in self._requeues),
                key=lambda found: found.n_hits,
            )
            for each in candidates_for(self.order)
        ]
        scored.sort(key=lambda each: -each.n_hits)
        for each in scored:
            self._keep(each)
        return [
            replace(each.mechanism, requeues=False)
            for each in scored
            if each.n_hits >= _PROMISING * scored[0].n_hits
        ]

    def _loss_handlings(self, promising: Sequence[Mechanism]) -> list[tuple[bool, Retransmit]]:
        """Return what may happen to streams that lose bytes, by the most promising mechanisms.

        That is a rule of the transport, and so the same for every mechanism.
        """
        found: dict[tuple[bool, Retransmit], None] = {}
        for mechanism in promising[:_FEW_MECHANISMS]:
            variants = [
                replace(mechanism, requeues=requeues, retransmit=retransmit)
                for requeues in self._requeues
                for retransmit in self._retransmits
            ]
            unrefuted = self._unrefuted(map(self.score, variants))
            found |= {(variant.requeues, variant.retransmit): None for variant in unrefuted}
        return list(found)

    def _scored(self, mechanism: Mechanism, resync: Resync = Resync.NONE) -> _Scored:
        found = self._known.get((mechanism, resync))
        if found is None:
            predicted = predictions(self.order, mechanism, resync=resync)
            hits = tuple(a == b for a, b in zip(predicted, self.picks, strict=True))
            found = self._known[mechanism, resync] = _Scored(mechanism, hits, resync)
        return found

    def score(self, mechanism: Mechanism) -> _Scored:
        """Return which choices a mechanism explains."""
        found = (self._scored(mechanism, resync) for resync in self._resyncs)
        return max(found, key=lambda scored: scored.n_hits)

    def refuted(self, scored: _Scored) -> bool:
        """Return whether the best mechanism refutes another."""
        return refutes(self.best.hits, scored.hits)

    def settled(self, variants: Iterable[Mechanism]) -> list[Mechanism]:
        """Return the variants of the best mechanism that are not refuted, the best ones first."""
        return self._unrefuted(map(self.score, variants))

    def _unrefuted(self, variants: Iterable[_Scored]) -> list[Mechanism]:
        scored = sorted(variants, key=lambda each: -each.n_hits)
        return [each.mechanism for each in scored if not refutes(scored[0].hits, each.hits)]

    def quantum(self) -> str:
        """Return the quantum of the best mechanism, "" where it has none or none shows."""
        best = self.best.mechanism
        if best.turn is None:
            return ""
        turns = list(dict.fromkeys([best.turn, *quanta_of(self.order), _LONG_QUANTUM]))
        found = [each.turn for each in self.settled(replace(best, turn=turn) for turn in turns)]
        if {ONE_PACKET, _LONG_QUANTUM} <= set(found):
            return ""
        return " or ".join(replace(best, turn=turn).quantum for turn in found)

    def retransmissions(self) -> tuple[str, ...]:
        """Return the orders of retransmissions that the log allows; none if it shows none."""
        order = self.order
        shows = any(step.kind is StepKind.RESENT and step.is_choice for step in order.steps)
        if not (order.knows_losses and shows):
            return ()
        best = self.best.mechanism
        found = self.settled(replace(best, retransmit=retransmit) for retransmit in Retransmit)
        return tuple(each.retransmit.value for each in found)

    def requeuing(self) -> bool | None:
        """Return whether streams are requeued when bytes are acknowledged, None if not shown."""
        best = self.best.mechanism
        found = self.settled(replace(best, requeues=requeues) for requeues in self._requeues)
        return found[0].requeues if len(found) == 1 and len(self._requeues) > 1 else None

    def heeds_updates(self) -> bool | None:
        """Return whether changed signals are heeded, None if the log does not show it."""
        best = self.best.mechanism
        if not (best.heeds_signals and self.order.n_updates):
            return None
        found = self.settled(replace(best, heeds_updates=heeds) for heeds in (True, False))
        return found[0].heeds_updates if len(found) == 1 else None


IDENTIFICATION = OutputSchema(
    "h3sim-identification/1",
    "The scheduler that explains a log",
    VERSION,
    Property("title", TEXT, "title of the log"),
    Property("source", TEXT, "log that the order is from: server, client, HAR or network"),
    Property("mechanism", TEXT_OR_NONE, "the mechanism; null if the log does not decide"),
    Property(
        "candidates", ListOf(TEXT, "names"), "mechanisms that explain the log alike; none, if none"
    ),
    Property("quantum", TEXT, "quantum of the best mechanism; empty if none shows"),
    Property("heeds_signals", OrNone(Flag(), none=None), "whether signals decide the order"),
    Property("heeds_updates", OrNone(Flag(), none=None), "whether changed signals do"),
    Property(
        "requeues", OrNone(Flag(), none=None), "whether acknowledged streams go behind the others"
    ),
    Property(
        "retransmissions", ListOf(TEXT, "names"), "orders of retransmissions that fit the log"
    ),
    Property("choices", COUNT, "picks with at least two streams to choose from", of="n_choices"),
    Property("changes", COUNT, "picks of another stream than the packet before", of="n_changes"),
    Property(
        "changes_explained",
        COUNT,
        "changes that the best mechanism explains",
        of="n_changes_explained",
    ),
    Property("saved", NUMBER, "share of the code length of chance that the best mechanism saves"),
    Property("explanations", rows_of(Explanation), "one per mechanism, best first", of="rows"),
    Property(
        "contradictions", rows_of(Contradiction), "picks that the best mechanism does not explain"
    ),
    Property("differences", rows_of(Difference), "what would tell apart mechanisms that fit alike"),
    Property("unknown", ListOf(TEXT, "sentences"), "missing data of the log"),
)


@dataclass(frozen=True, kw_only=True, repr=False)
class Identification:
    """The scheduler that explains a log best, and how well the others do."""

    title: str
    source: str
    """The log that the order is from: "server", "client", "HAR" or "network" (Chromium's)."""
    candidates: tuple[str, ...]
    """The mechanisms that explain the log alike, the best first; none, if none explains it."""
    quantum: str
    """The quantum of the best one in words, "" where none shows."""
    heeds_signals: bool | None
    """True if signals decide the order; None if the log does not show it."""
    heeds_updates: bool | None
    """The same of changed signals."""
    requeues: bool | None
    """True if a stream goes behind the others when its bytes are acknowledged or lost."""
    retransmissions: tuple[str, ...]
    """The orders of retransmissions that fit the log (`Retransmit`)."""
    n_choices: int
    """Number of picks with at least two streams to choose from."""
    saved: float
    """The share of the code length of chance that the best mechanism saves (0 or less: none)."""
    n_changes: int
    """Number of these picks that are of another stream than the packet before."""
    n_changes_explained: int
    """Number of these changes that the best mechanism explains."""
    rows: Rows[Explanation]
    """One per mechanism, the best first."""
    contradictions: Rows[Contradiction]
    """The picks that the best mechanism does not explain."""
    differences: Rows[Difference]
    """Responses that would tell apart mechanisms that explain the log alike."""
    unknown: tuple[str, ...]
    order: SendOrder
    """The order of bytes that was explained."""

    @property
    def mechanism(self) -> str | None:
        """The mechanism, None if several explain the log alike, or none explains it."""
        return self.candidates[0] if len(self.candidates) == 1 else None

    @property
    def share(self) -> float:
        """The share of the choices that the best mechanism explains."""
        return self.rows[0].percent / 100

    @property
    def runner_up(self) -> Explanation | None:
        """The best mechanism that is refuted."""
        return next((row for row in self.rows if row.is_refuted), None)

    @property
    def plot(self) -> IdentificationPlots:
        """Figures: `plot.picks()`."""
        plots: IdentificationPlots = reporting().IdentificationPlots(self)
        return plots

    def to_dict(self) -> dict[str, Any]:
        """Return the result as a document, h3sim-identification/1."""
        return IDENTIFICATION.write(self, version=__version__)

    def __repr__(self) -> str:
        names = " or ".join(self.candidates) or "none"
        return f"<Identification: {names}, {self.rows[0].percent:.1f} % of {self.n_choices} picks>"


def identify(path: str | Path, *, trace: int | None = None) -> Identification:
    """Identify the scheduler that made the log at *path*.

    That is a qlog, a HAR with chunk times, or a network log of Chromium.

    Each mechanism that h3sim ships predicts every pick of the log from the ones before it. Of a
    qlog with both ends' logs the server's is used; *trace* selects one log of several, from 1 on.
    Mechanisms between which the log does not decide are all named. None is named that leaves four
    picks unexplained that are more than a fortieth of all, or of the changes of stream (a twentieth
    in a client's log), or that explains these changes hardly better than chance.

    Raises:
        InputError: if the file cannot be read, or listing the mistakes in it.

    >>> import h3sim
    >>> from h3sim.export.qlog_file import write_load_qlog
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> load = h3sim.simulate("davies-meenan", scheme="rr", network="4g")
    >>> with TemporaryDirectory() as folder:
    ...     log = Path(folder) / "load.qlog"
    ...     write_load_qlog(load, log)
    ...     identify(log).candidates
    ('round-robin',)
    """
    with ErrorCollector() as errors:
        errors.collect(
            "",
            lambda: check_arguments(
                InputError, trace=(OrNone(Integer(low=1), none=None), trace), path=(PATH, path)
            ),
        )
    return identification_of(send_orders(path, trace=trace))


_WELL_EXPLAINED = 0.995
_LEAST_GAIN = 0.02
"""The share that longer waits must explain in addition..."""
_LESS_UNEXPLAINED = 0.5
"""... or the share of the unexplained choices that may remain with it."""
_LEAST_CHOICES = 0.5
"""The share of the choices that it must leave for that."""


def identification_of(orders: Iterable[SendOrder]) -> Identification:
    """Return the scheduler that explains an order of bytes, given for several waits."""
    compared: _Comparison | None = None
    for order in orders:
        found = _Comparison(order)
        if compared is not None and not _explains_more(found, compared):
            break
        compared = found
        n_missed = found.best.hits.count(False)
        if found.share >= _WELL_EXPLAINED or n_missed < FEW_PICKS:
            break
    assert compared is not None  # noqa: S101 - there is one order at least
    return _identification(compared)


def _explains_more(found: _Comparison, known: _Comparison) -> bool:
    """Return whether *found* explains a log better, by so much as its greater freedom must gain."""
    if found.share >= known.share + _LEAST_GAIN:
        return True
    keeps_choices = len(found.picks) >= _LEAST_CHOICES * len(known.picks)
    return keeps_choices and 1 - found.share <= _LESS_UNEXPLAINED * (1 - known.share)


def _identification(compared: _Comparison) -> Identification:
    order = compared.order
    best, n_choices = compared.best, len(compared.picks)
    scored = sorted(compared.groups.values(), key=lambda each: -each.n_hits)
    rows = [_explanation(each, compared) for each in scored]
    fitting = [each.mechanism for each in scored if not compared.refuted(each)]
    is_explained = n_choices > 0 and compared.is_named(best)
    heeding = {each.heeds_signals for each in fitting}
    return Identification(
        title=order.title,
        source=order.source,
        candidates=tuple(each.name for each in fitting) if is_explained else (),
        quantum=compared.quantum(),
        heeds_signals=heeding.pop() if len(heeding) == 1 and order.has_signals else None,
        heeds_updates=compared.heeds_updates(),
        requeues=compared.requeuing(),
        retransmissions=compared.retransmissions(),
        n_choices=n_choices,
        saved=compared.saved(best),
        n_changes=compared.n_changes,
        n_changes_explained=compared.changes_explained(best),
        rows=Rows(Explanation, rows),
        contradictions=Rows(Contradiction, _contradictions(compared)),
        differences=Rows(Difference, _differences(fitting) if is_explained else ()),
        unknown=order.unknown,
        order=order,
    )


def _explanation(scored: _Scored, compared: _Comparison) -> Explanation:
    n_choices = len(compared.picks)
    return Explanation(
        mechanism=scored.mechanism.name,
        quantum=scored.mechanism.quantum,
        explained=scored.n_hits,
        percent=100 * scored.n_hits / n_choices if n_choices else 0.0,
        refuting=sum(a and not b for a, b in zip(compared.best.hits, scored.hits, strict=True)),
        is_refuted=compared.refuted(scored),
    )


def _contradictions(compared: _Comparison) -> Iterator[Contradiction]:
    choices = [step for step in compared.order.steps if step.is_choice]
    best = compared.best
    expected = predictions(compared.order, best.mechanism, resync=best.resync)
    for step, pick in zip(choices, expected, strict=True):
        sent = step.stream_id if step.kind is StepKind.SENT else ~step.stream_id
        if pick is not None and pick != sent:
            yield Contradiction(
                at_ms=to_ms(step.at_ns),
                packet=step.number,
                sent_stream=step.stream_id,
                expected_stream=pick if pick >= 0 else ~pick,
                is_retransmission=sent < 0,
                expected_retransmission=pick < 0,
            )


def _differences(fitting: Sequence[Mechanism]) -> Iterator[Difference]:
    """Yield for each other mechanism what would tell it from the best one."""
    for other in fitting[1:]:
        yield Difference(fitting[0].name, other.name, needed_responses(fitting[0], other))


_NO_PAIR = "no workload of h3sim"


@cache
def needed_responses(mechanism: Mechanism, other: Mechanism) -> str:
    """Return two responses of a workload by which the mechanisms differ, in words.

    >>> fifo = Mechanism(kind=SchedulerKind.FIFO)
    >>> needed_responses(fifo, Mechanism(kind=SchedulerKind.ROUND_ROBIN))
    'responses with u=3, i and u=3, ready at the same time'
    """
    workloads = [EPS_WORKLOAD, TREE_WORKLOAD]
    if any(each.kind in TREE_KINDS for each in (mechanism, other)):
        workloads.reverse()
    for requests in workloads:
        order = order_by(mechanism, requests)
        expected = predictions(order, other)
        choices = (step for step in order.steps if step.is_choice)
        for step, pick in zip(choices, expected, strict=True):
            if pick is not None and pick != step.stream_id:
                words = [describe_signal(order.signals[key]) for key in (step.stream_id, pick)]
                return f"responses with {' and '.join(words)}, ready at the same time"
    return _NO_PAIR
