"""How many logs of h3sim's own loads `identify` names right: `python -m validation.identified`.

Each log is of a random page, network, transport profile, order of retransmissions and scheduler,
from the server's or the client's side. "Cannot tell" is right if all the mechanisms that are named
predict the picks, by all that the server knew: then each of them would have left this log.
"""

from __future__ import annotations

import argparse
import json
import random
from bisect import bisect_left
from collections import Counter, deque
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, NamedTuple

import h3sim
from h3sim.export.qlog_file import write_load_qlog
from h3sim.identification.identification import (
    FEW_PICKS,
    Identification,
    candidates_for,
    identify,
    predictions,
    refutes,
)
from h3sim.identification.mechanism import Mechanism
from h3sim.identification.send_history import HistorySearch, SchedulerCall
from h3sim.identification.send_order import SendOrder, Step, StepKind, send_orders
from h3sim.page import page_from_dict
from h3sim.qlog import read_timeline
from h3sim.schedulers import (
    EpsScheduler,
    Mixed,
    Quantum,
    Retransmit,
    RoundRobinScheduler,
    SupportsRequeue,
)
from h3sim.schemes import SchedulerKind, Scheme
from h3sim.signals import Eps, Signal
from h3sim.values.constants import MAX_VARINT
from h3sim.values.errors import StalledError

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator, Sequence

_N_LOGS = 500
_FIRST = 90_000
"""The number of the first log: the generated page says which rules were chosen by which."""
_RESULTS = Path(__file__).parents[1] / "build" / "identified.jsonl"
_SERVER, _CLIENT = 1, 2
_MOST_BYTES = 3_000_000
_EPS_CLIENTS = ("chrome-eps", "chrome-eps-2022", "firefox-eps", "safari-eps")
_TREE_CLIENTS = ("firefox-h2", "chrome-50-h2", "chrome-h2", "safari-h2")
_TREES = (
    *(SchedulerKind.TREE, SchedulerKind.NGHTTP2_TREE),
    *(SchedulerKind.H2O_CALENDAR, SchedulerKind.ATS_HEAP),
)
_NETWORKS = (
    *("sander-2mbps-100ms-2pct", "sander-10mbps-100ms", "sander-2mbps-100ms-2pct-burst5"),
    *("lte", "cable", "wifi-lossy", "leo-satellite", "marx-2019", "marx-2019-jitter"),
)
_PROFILES = ("default", "aioquic", "quicly", "quiche-chrome")
_QUANTA = (
    Quantum(),
    Quantum(),
    Quantum(packets=2),
    Quantum(packets=10),
    Quantum(size_bytes=16_000),
)


@dataclass(frozen=True, kw_only=True)
class Case:
    """A load to log: its true mechanism, its clients, its options, and the side that logs."""

    mechanism: Mechanism
    clients: str
    page: h3sim.Page
    options: dict[str, Any]
    trace: int
    """1 is the server's log, 2 the client's."""


class Outcome(NamedTuple):
    """What `identify` made of a log."""

    verdict: str
    """One of `VERDICTS`."""
    is_quantum_right: bool
    retransmissions: str
    """"right", "wrong" or "not shown"."""
    percent: float
    """Share of the choices that the true mechanism explains."""
    candidates: tuple[str, ...]


class OneByOneScheduler(EpsScheduler):
    """A scheduler that ignores the incremental flag."""

    def open(self, stream_id: int, signal: Signal) -> None:
        """Open the stream."""
        super().open(stream_id, self._sequential(signal))

    def update(self, stream_id: int, signal: Signal) -> None:
        """Replace the signal, but for its flag."""
        super().update(stream_id, self._sequential(signal))

    def _sequential(self, signal: Signal) -> Signal:
        return replace(signal, incremental=False) if isinstance(signal, Eps) else signal


def case(number: int) -> Case:
    """Return the random load of that number."""
    rng = random.Random(number)  # noqa: S311 - nothing is secret
    mechanism = _mechanism(rng)
    clients = rng.choice(_TREE_CLIENTS if mechanism.kind in _TREES else _EPS_CLIENTS)
    if mechanism.kind is SchedulerKind.FIFO and rng.random() < 0.5:
        clients = "fifo"
    network = rng.choice(_NETWORKS)
    options: dict[str, Any] = {"network": network, "seed": number}
    if not network.startswith("marx"):
        options["transport_profile"] = rng.choice(_PROFILES)
        options["retransmission_order"] = rng.choice([each.value for each in Retransmit])
        if rng.random() < 0.5:
            options["reorder"] = "6:1-3"
        if rng.random() < 0.5:
            options["loss"] = rng.choice([0.005, 0.01, 0.03])
    return Case(
        mechanism=mechanism,
        clients=clients,
        page=_page(rng),
        options=options,
        trace=rng.choice([_SERVER, _CLIENT]),
    )


def _mechanism(rng: random.Random) -> Mechanism:
    kind = rng.choice(["fifo", "round-robin", "eps", "eps", "eps", "tree"])
    match kind:
        case "fifo":
            return Mechanism(kind=SchedulerKind.FIFO)
        case "round-robin":
            return Mechanism(kind=SchedulerKind.ROUND_ROBIN, turn=rng.choice(_QUANTA))
        case "eps":
            mixed = rng.choice(list(Mixed))
            return Mechanism(kind=SchedulerKind.EPS, mixed=mixed, turn=rng.choice(_QUANTA))
    return Mechanism(kind=rng.choice(_TREES))


@cache
def _pages() -> list[h3sim.Page]:
    return list(h3sim.list_pages())


def _page(rng: random.Random) -> h3sim.Page:
    """Return a shipped page; of one in four, servers take up to 80 ms to respond."""
    while True:
        page = rng.choice(_pages())
        if len(page.resources) >= 6 and page.total_bytes <= _MOST_BYTES:
            break
    if rng.random() < 0.75:
        return page
    document = page.to_dict()
    for resource in document["resources"]:
        resource["server_ms"] = rng.randrange(80)
    return page_from_dict(document)


def simulate(this: Case, mechanism: Mechanism) -> h3sim.Load:
    """Return the load with that mechanism as the server's scheduler."""
    options: dict[str, Any] = {"record_packets": True, **this.options}
    scheme: Scheme = h3sim.load_scheme(this.clients)
    if mechanism.kind is SchedulerKind.FIFO:
        options["scheduler"] = "fifo"
    elif mechanism.is_sequential:
        options["scheduler"] = OneByOneScheduler
    elif mechanism.kind is SchedulerKind.ROUND_ROBIN:
        turn = mechanism.turn or Quantum()
        options["scheduler"] = lambda: RoundRobinScheduler(turn=turn)
    elif mechanism.kind is SchedulerKind.EPS:
        scheme = replace(
            scheme,
            mechanism=mechanism.kind,
            mixed=mechanism.mixed or Mixed.NON_INCREMENTAL_FIRST,
            turn=mechanism.turn or Quantum(),
        )
    else:
        scheme = replace(scheme, mechanism=mechanism.kind)
    return h3sim.simulate(this.page, scheme=scheme, **options)


def outcome(this: Case) -> Outcome | None:
    """Return what `identify` makes of the log of a load; None for one that stalls."""
    try:
        load = simulate(this, this.mechanism)
    except StalledError:
        return None
    with TemporaryDirectory() as folder:
        log = Path(folder) / "load.qlog"
        write_load_qlog(load, log)
        found = identify(log, trace=this.trace)
        (known,) = send_orders(log, trace=1)
        client = read_timeline(log, trace=2).client
    assert client is not None  # noqa: S101 - as the load wrote it
    received = client.packets
    truth = this.mechanism.name
    row = next((row for row in found.rows if row.mechanism == truth), None)
    percent = 0.0 if row is None else row.percent
    if found.mechanism == truth:
        verdict = "named"
    elif not any(step.is_choice for step in (*known.steps, *found.order.steps)):
        verdict = "cannot tell"  # there was never anything to choose from
    elif truth not in found.candidates:
        verdict = "wrong" if found.candidates else "none explains it"
    else:
        verdict = _doubt(this, known, found, received)
    return Outcome(
        verdict,
        _has_quantum(this, found),
        _retransmissions(this, found),
        percent,
        found.candidates,
    )


def _doubt(this: Case, known: SendOrder, found: Identification, received: Container[int]) -> str:
    """Return whether one could tell the named mechanisms apart."""
    others = set(found.candidates) - {this.mechanism.name}
    others -= possible_for_server(this, known, others)
    if not others:
        return "cannot tell"
    if this.trace == _SERVER:
        return "undecided"
    views = list(client_views(known, found.order, received))
    is_possible = all(
        any(history(this, view, name) is not None for view in views) for name in sorted(others)
    )
    return "client cannot tell" if is_possible else "undecided"


def _handlings(mechanism: Mechanism, retransmits: Iterable[Retransmit]) -> Iterator[Mechanism]:
    """Yield the mechanism with each handling of lost and acknowledged bytes."""
    for requeues in (False, True):
        for retransmit in retransmits:
            yield replace(mechanism, requeues=requeues, retransmit=retransmit)


def _variants(
    this: Case, order: SendOrder, name: str, retransmits: Sequence[Retransmit]
) -> Iterator[Mechanism]:
    """Yield the variants of a mechanism that may have made a log."""
    for each in candidates_for(order):
        if each.name == name:
            turns = dict.fromkeys([each.turn, this.mechanism.turn if each.turn else None])
            for turn in turns:
                if (turn is None) == (each.turn is None):
                    yield from _handlings(replace(each, turn=turn), retransmits)


def possible_for_server(this: Case, order: SendOrder, names: Iterable[str]) -> set[str]:
    """Return which of these mechanisms could have sent in that order, by all the server knew.

    A mechanism could have if it predicts the picks, with some quantum and some handling of lost and
    acknowledged bytes, so well that the true one, which predicts them all but for ties, does not
    refute it.
    """
    picks = [
        step.stream_id if step.kind is StepKind.SENT else ~step.stream_id
        for step in order.steps
        if step.is_choice
    ]

    def hits(mechanism: Mechanism) -> list[bool]:
        expected = predictions(order, mechanism)
        return [a == b for a, b in zip(expected, picks, strict=True)]

    best = max(map(hits, _handlings(this.mechanism, Retransmit)), key=sum)
    return {
        name
        for name in names
        if any(
            not refutes(best, hits(each))
            for each in _variants(this, order, name, tuple(Retransmit))
        )
    }


def client_views(
    known: SendOrder, found: SendOrder, received: Container[int]
) -> Iterator[SendOrder]:
    """Yield what a client knows of an order, as the server knew it and as the client found it.

    All have the packets *received* in their order. The first has what the others carried, when
    requests arrived, and when acknowledgements did; in the second the acknowledgements may have
    come later; the third has what a client takes for all that. Each may have been. Each comes with
    the times when responses were ready, as a hint for the search, and without.
    """
    for order in (_with_exact_times(known), known, found):
        for has_hints in (True, False):
            view = seen_by_client(order, received, has_hints=has_hints)
            yield replace(
                view,
                ack_spread_ns=found.ack_spread_ns,
                lost_packets=found.lost_packets,
                round_trip_ns=found.round_trip_ns,
                ready_spread_ns=found.ready_spread_ns,
            )


def _with_exact_times(known: SendOrder) -> SendOrder:
    """Return a server's order whose acknowledgements come just when they did."""
    number = MAX_VARINT
    steps: list[Step] = []
    for step in reversed(known.steps):
        if step.kind in (StepKind.SENT, StepKind.RESENT):
            number = step.number
        is_touched = step.kind is StepKind.TOUCHED
        steps.append(step._replace(number=number) if is_touched else step)
    return replace(known, steps=tuple(reversed(steps)))


def seen_by_client(
    order: SendOrder, received: Container[int], *, has_hints: bool = True
) -> SendOrder:
    """Return the order as far as a client knows it, who got the packets *received*.

    A response may be ready at any time from its request to its first byte; an acknowledgement may
    arrive later than it did; a loss may have been noticed at any time before its bytes were sent
    again; and what a packet carried that the client never got shows no pick. Every other packet
    shows one.
    """
    hidden = {StepKind.LOST, StepKind.REPAIRED, *(() if has_hints else (StepKind.READY,))}
    requested = {step.stream_id for step in order.steps if step.kind is StepKind.SENT}
    begun: set[int] = set()
    steps: list[Step] = []
    for step in order.steps:
        if step.kind is StepKind.SENT:
            begun.add(step.stream_id)
        if step.kind in hidden or (step.kind is StepKind.ACTIVATE and step.stream_id not in begun):
            continue
        is_choice = step.kind is StepKind.SENT and step.number in received
        steps.append(step._replace(is_choice=is_choice))
        if step.kind is StepKind.OPEN and step.stream_id in requested:
            requested.remove(step.stream_id)
            steps.append(Step(StepKind.ACTIVATE, step.at_ns, step.stream_id))
    sent = {step.number for step in steps if step.kind in (StepKind.SENT, StepKind.RESENT)}
    lost = order.lost_packets or tuple(number for number in sorted(sent) if number not in received)
    return replace(order, steps=tuple(steps), knows_losses=False, lost_packets=lost)


def history(this: Case, seen: SendOrder, name: str) -> list[SchedulerCall] | None:
    """Return a history of a server in which that mechanism sends what a client saw, if found.

    It is the calls of its scheduler, and `is_history` has checked it: the search is the same as in
    `identify`, so that nothing rests on it.
    """
    variants = _variants(this, seen, name, (Retransmit.FIRST, Retransmit.TURN))
    for mechanism in dict.fromkeys(variants):
        is_tree = mechanism.kind in _TREES
        for rejoins in (False, not is_tree):
            search = HistorySearch(
                *(seen, mechanism),
                rejoins=rejoins,
                moves_joins=is_tree,
                most_misses=FEW_PICKS - 1,
            )
            search.run()
            if is_history(seen, mechanism, search.calls):
                return search.calls
    return None


_METHODS = {
    StepKind.OPEN: "open",
    StepKind.UPDATE: "update",
    StepKind.ACTIVATE: "activate",
    StepKind.DEACTIVATE: "deactivate",
    StepKind.TOUCHED: "requeue",
    StepKind.CLOSE: "close",
}
_AT_ONCE, _AT_ANY_TIME = -1, MAX_VARINT


class _DueCalls:
    """The calls of a scheduler that a client's view calls for, and until when each may be made."""

    def __init__(self, seen: SendOrder, mechanism: Mechanism) -> None:
        self._seen = seen
        self._steps = deque(seen.steps)
        self._mechanism = mechanism
        self._lost = set(seen.lost_packets)
        self._last_number = -1
        self._lost_bytes = Counter[int]()
        """The bytes in each lost packet so far."""
        self._due: dict[tuple[str, int], deque[int]] = {}
        self._begun: set[int] = set()
        self._active: set[int] = set()
        self._closed: set[int] = set()
        self._sent = Counter[int]()
        """The bytes of each stream that were sent so far; the same in the log, and in all."""
        self._sent_in_log = Counter[int]()
        self._end = Counter[int]()
        self._arrivals: dict[int, list[tuple[int, int, int]]] = {}
        """The first and last of bytes of each stream, and when the client got them."""
        sent = [each for each in seen.steps if each.kind in (StepKind.SENT, StepKind.RESENT)]
        self._numbers = [each.number for each in sent]
        self._times_ns = [each.at_ns for each in sent]
        for step in seen.steps:
            if step.kind in (StepKind.SENT, StepKind.RESENT):
                stop = step.offset + step.n_bytes
                self._end[step.stream_id] = max(self._end[step.stream_id], stop)
                if step.number not in self._lost:
                    arrivals = self._arrivals.setdefault(step.stream_id, [])
                    arrivals.append((step.offset, stop, step.at_ns))
        self._advance()

    def _advance(self) -> None:
        """Note what calls for a call up to the next bytes that were sent."""
        while self._steps and self._steps[0].kind not in (StepKind.SENT, StepKind.RESENT):
            step = self._steps.popleft()
            if step.kind in _METHODS and (until_ns := self._until_ns(step)) is not None:
                key = _METHODS[step.kind], step.stream_id
                self._due.setdefault(key, deque()).append(until_ns)

    def _until_ns(self, step: Step) -> int | None:
        """Return when the call for a step must be made; None if there is none."""
        stream_id = step.stream_id
        match step.kind:
            case StepKind.ACTIVATE if stream_id not in self._begun:
                return _AT_ANY_TIME  # until its first byte
            case StepKind.DEACTIVATE if self._sent_in_log[stream_id] >= self._end[stream_id]:
                return None  # it is due once its last byte was sent
            case StepKind.UPDATE if not self._mechanism.heeds_updates:
                return None
            case StepKind.UPDATE if stream_id in self._closed:
                return None
            case StepKind.CLOSE:
                return _AT_ANY_TIME
            case StepKind.TOUCHED if not self._mechanism.requeues:
                return None
            case StepKind.TOUCHED:
                return self._until_requeued_ns(step) if stream_id in self._active else None
        return _AT_ONCE

    def _until_requeued_ns(self, step: Step) -> int:
        """Return when the acknowledgement of a step had arrived at the server."""
        if step.number < 0:
            return step.at_ns + self._seen.ack_spread_ns
        index = bisect_left(self._numbers, step.number)
        return self._times_ns[index] if index < len(self._numbers) else _AT_ANY_TIME

    def make(self, call: SchedulerCall) -> bool:
        """Make a call other than a charge; return whether it is due."""
        key = call.method, call.stream_id
        while not self._due.get(key):
            if not self._passes():
                return False
        self._due[key].popleft()
        match call.method:
            case "activate":
                self._active.add(call.stream_id)
            case "deactivate":
                self._active.discard(call.stream_id)
                self._due.pop(("requeue", call.stream_id), None)
            case "close":
                self._closed.add(call.stream_id)
        return True

    def _passes(self) -> bool:
        """Pass the next bytes of the log if they call for no charge; return whether they do not."""
        if not self._steps:
            return False
        step = self._steps[0]
        stop = step.offset + step.n_bytes
        if step.number not in self._lost:
            is_charged = self._mechanism.retransmit is Retransmit.TURN
            if stop > self._sent[step.stream_id] or (is_charged and step.stream_id in self._active):
                return False
        self._pop()
        return True

    def _pop(self) -> Step:
        step = self._steps.popleft()
        stop = step.offset + step.n_bytes
        self._sent_in_log[step.stream_id] = max(self._sent_in_log[step.stream_id], stop)
        self._advance()
        return step

    def charge(self, call: SchedulerCall) -> Step | None:
        """Make a charge; return the bytes that were sent then, None if it is not their turn."""
        while self._steps and self._steps[0].number <= call.number:
            is_it = self._steps[0].number == call.number and call.number in self._lost
            if is_it or not self._passes():
                break
        if not self._steps or call.number < self._last_number:
            return None
        self._last_number = call.number
        is_late = any(due and due[0] < self._steps[0].at_ns for due in self._due.values())
        if is_late or call.stream_id not in self._active:
            return None
        step = self._lost_step(call) if call.number in self._lost else self._received_step(call)
        if step is not None:
            self._begun.add(call.stream_id)
            stop = step.offset + step.n_bytes
            self._sent[call.stream_id] = max(self._sent[call.stream_id], stop)
            if step.kind is StepKind.SENT and stop >= self._end[call.stream_id]:
                self._due[("deactivate", call.stream_id)] = deque([_AT_ONCE])
        return step

    def _lost_step(self, call: SchedulerCall) -> Step | None:
        """Return the next bytes of a stream if a lost packet may have carried them.

        A client knows which bytes were lost, but not which packet carried which. Bytes ahead of
        others that it got may have been in any lost packet before those; others if they arrived a
        round trip later.
        """
        start = self._sent[call.stream_id]
        stop, at_ns = start + call.argument, self._steps[0].at_ns
        self._lost_bytes[call.number] += call.argument
        if self._steps[0].number < call.number or self._lost_bytes[call.number] > self._most_bytes:
            return None
        has_gap = False
        for first, last, arrived_ns in self._arrivals.get(call.stream_id, ()):
            has_gap |= first >= stop and arrived_ns >= at_ns
            is_early = arrived_ns < at_ns + self._seen.round_trip_ns
            if first < stop and last > start and is_early and not has_gap:
                return None
        kind = StepKind.SENT
        return Step(kind, at_ns, call.stream_id, call.argument, call.number, offset=start)

    @property
    def _most_bytes(self) -> int:
        """The most bytes in a packet."""
        return self._seen.turn_bytes

    def _received_step(self, call: SchedulerCall) -> Step | None:
        """Return the bytes of a packet that the client got, as far as they are new."""
        step = self._steps[0]
        stream_id, sent = step.stream_id, self._sent[step.stream_id]
        if min(self._sent_in_log[stream_id], step.offset) > sent:
            return None  # what the log has in lost packets was not sent
        step = self._pop()
        stop = step.offset + step.n_bytes
        if stop > sent:
            start = max(step.offset, sent)
            step = step._replace(kind=StepKind.SENT, offset=start, n_bytes=stop - start)
        is_it = (step.number, stream_id, step.n_bytes) == (call.number, *call[1:3])
        return step if is_it else None

    def is_over(self) -> bool:
        """Return whether nothing is left that the client received and no call has sent."""
        while self._passes():
            pass
        return not self._steps


def is_history(seen: SendOrder, mechanism: Mechanism, calls: Sequence[SchedulerCall]) -> bool:
    """Return whether these calls make the mechanism send what a client saw, and may have been made.

    Each pick is that of the log. Each stream joins between its request and its first byte, and is
    requeued by an acknowledgement, no earlier than that and at most the spread later; all else is
    called when the log has it. Lost packets may have carried any bytes that were lost then. As few
    picks may differ, or streams go behind others without a reason, as refute no mechanism of a
    server's log.
    """
    scheduler: Any = mechanism.new(seen.turn_bytes)
    due = _DueCalls(seen, mechanism)
    n_wrong = 0
    waiting = deque(calls)
    while waiting and n_wrong < FEW_PICKS:
        call = waiting.popleft()
        if call.method == "charge":
            step = due.charge(call)
            if step is None:
                return False
            n_wrong += step.is_choice and scheduler.pick() != call.stream_id
        elif not due.make(call):
            rejoin = call._replace(method="activate")
            if call.method != "deactivate" or not waiting or waiting.popleft() != rejoin:
                return False
            n_wrong += 1
            scheduler.deactivate(call.stream_id)
            call = rejoin
        _make(scheduler, call)
    return n_wrong < FEW_PICKS and due.is_over()


def _make(scheduler: Any, call: SchedulerCall) -> None:
    if call.method == "requeue" and not isinstance(scheduler, SupportsRequeue):
        scheduler.deactivate(call.stream_id)
        scheduler.activate(call.stream_id)
    elif call.argument is None:
        getattr(scheduler, call.method)(call.stream_id)
    else:
        getattr(scheduler, call.method)(call.stream_id, call.argument)


def _has_quantum(this: Case, found: Identification) -> bool:
    """Return whether the quantum is right, or none is named."""
    turn = this.mechanism.turn
    if turn is None or not found.quantum or found.mechanism != this.mechanism.name:
        return True
    true = this.mechanism.quantum
    size = found.order.packet_bytes
    in_packets = turn.packets if turn.size_bytes is None else -(-turn.size_bytes // size)
    words = found.quantum.split(" or ")
    return (
        true in words
        or Mechanism(kind=SchedulerKind.ROUND_ROBIN, turn=Quantum(packets=in_packets)).quantum
        in words
    )


def _retransmissions(this: Case, found: Identification) -> str:
    true = this.options.get("retransmission_order")
    if true is None or not found.retransmissions or found.mechanism != this.mechanism.name:
        return "not shown"
    return "right" if true in found.retransmissions else "wrong"


VERDICTS = (
    *("named", "cannot tell", "client cannot tell"),
    *("undecided", "wrong", "none explains it"),
)
"""The outcomes. Right are: named alone; several, each of which could have sent in this order by all
that the server knew; several, each of which could have if responses were ready at other times,
which a client does not know. Not right are: several of which one could not have; another; none."""
_N_RIGHT = 3


def _results(path: Path) -> dict[int, dict[str, Any]]:
    """Return the results in a file, by number."""
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    rows = [json.loads(line) for line in lines]
    return {row["number"]: row for row in rows}


def _write_results(path: Path, numbers: Iterable[int]) -> None:
    """Append the results of the loads that the file lacks, each as it comes."""
    known = _results(path)
    for number in numbers:
        if number not in known:
            this = case(number)
            found = outcome(this)
            about = f"{this.mechanism.name}, {this.clients}, {this.page.name}, {this.options}"
            row: dict[str, Any] = {"number": number, "side": this.trace, "about": about}
            if found is not None:  # a load that stalls leaves no log
                row |= found._asdict()
            with path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(row) + "\n")


def _client_groups(rows: Iterable[dict[str, Any]]) -> Iterator[str]:
    """Yield how many clients' logs are right by what makes them hard."""
    n_logs, n_right = Counter[str](), Counter[str]()
    for row in rows:
        this = case(row["number"])
        if this.trace == _CLIENT:
            is_requeuing = this.options.get("transport_profile") == "quicly"
            name = "requeued streams" if is_requeuing else "others"
            name = "dependency trees" if this.mechanism.kind in _TREES else name
            n_logs[name] += 1
            n_right[name] += row["verdict"] in VERDICTS[:_N_RIGHT]
    for name in sorted(n_logs):
        yield f"client, {name}: {n_right[name]} of {n_logs[name]} right"


def _table(rows: Sequence[dict[str, Any]]) -> str:
    """Return how many logs of each side had which outcome."""
    table = {"server": Counter[str](), "client": Counter[str]()}
    wrong_quanta, retransmissions = 0, Counter[str]()
    for row in rows:
        table["server" if row["side"] == _SERVER else "client"][row["verdict"]] += 1
        wrong_quanta += not row["is_quantum_right"]
        retransmissions[row["retransmissions"]] += 1
    lines = [f"{'side':8}{'logs':>6}{'right':>8}" + "".join(f"{each:>20}" for each in VERDICTS)]
    for side, counts in table.items():
        n_right = sum(counts[verdict] for verdict in VERDICTS[:_N_RIGHT])
        right = f"{n_right / counts.total():.1%}" if counts else ""
        cells = "".join(f"{counts[verdict]:20}" for verdict in VERDICTS)
        lines.append(f"{side:8}{counts.total():6}{right:>8}{cells}")
    shown = retransmissions["right"] + retransmissions["wrong"]
    return "\n".join(
        [
            *lines,
            *_client_groups(rows),
            f"wrong quanta: {wrong_quanta}",
            f"orders of retransmissions: {retransmissions['right']} of {shown} right",
        ]
    )


def main() -> None:
    """Identify the logs of random loads, and print how many of each side had which outcome."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--logs", type=int, default=_N_LOGS, help="number of logs")
    parser.add_argument("--first", type=int, default=_FIRST, help="number of the first log")
    parser.add_argument("--verbose", action="store_true", help="print each log that is not right")
    parser.add_argument(
        "--results",
        type=Path,
        default=_RESULTS,
        help="file of results, a line each; those in it are not done again",
    )
    options = parser.parse_args()
    numbers = range(options.first, options.first + options.logs)
    options.results.parent.mkdir(parents=True, exist_ok=True)
    _write_results(options.results, numbers)
    known = _results(options.results)
    rows = [known[number] for number in numbers if "verdict" in known[number]]
    for row in rows:
        if options.verbose and row["verdict"] not in VERDICTS[:_N_RIGHT]:
            print(row["number"], row["about"], row["verdict"], f"{row['percent']:.1f} %")
    print(_table(rows))


if __name__ == "__main__":
    main()
