"""How many logs of h3sim's own loads `identify` names right: `python -m validation.identified`.

Each log is of a random page, network, transport profile, order of retransmissions and scheduler,
from the server's or the client's side. "Cannot tell" is right if all the mechanisms that are named
predict the picks, by all that the server knew: then each of them would have left this log.
"""

from __future__ import annotations

import argparse
import json
import random
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, NamedTuple

import h3sim
from h3sim.errors import StalledError
from h3sim.page import page_from_dict
from h3sim.results.configuration import write_load_qlog
from h3sim.schedulers import EpsScheduler, Mixed, Quantum, Retransmit, RoundRobinScheduler
from h3sim.schemes import SchedulerKind, Scheme
from h3sim.signals import Eps, Signal
from h3sim.study.identification import (
    Identification,
    Mechanism,
    candidates_for,
    identify,
    predictions,
    refutes,
)
from h3sim.study.send_order import SendOrder, Step, StepKind, send_orders

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_N_LOGS = 500
_FIRST = 10_000
"""The number of the first log: no rule or threshold was chosen by these."""
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


def _page(rng: random.Random) -> h3sim.Page:
    """Return a shipped page; of one in four, servers take up to 80 ms to respond."""
    while True:
        page = rng.choice(h3sim.list_pages())
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
    truth = this.mechanism.name
    row = next((row for row in found.rows if row.mechanism == truth), None)
    percent = 0.0 if row is None else row.percent
    if found.mechanism == truth:
        verdict = "named"
    elif not any(step.is_choice for step in (*known.steps, *found.order.steps)):
        verdict = "cannot tell"  # there was never anything to choose from
    elif truth not in found.candidates:
        verdict = "wrong" if found.candidates else "none explains it"
    elif _are_possible(this, known, found.candidates):
        verdict = "cannot tell"
    elif this.trace == _CLIENT and _are_possible(this, _without_ready(known), found.candidates):
        verdict = "client cannot tell"
    else:
        verdict = "undecided"
    return Outcome(verdict, _has_quantum(this, found), _retransmissions(this, found), percent)


def _are_possible(this: Case, order: SendOrder, names: Sequence[str]) -> bool:
    """Return whether servers with each of these mechanisms could have sent in that order.

    *order* is what the server knew. A mechanism could have if it predicts the picks, with some
    quantum and some handling of lost and acknowledged bytes, so well that the true one, which
    predicts them all but for ties, does not refute it.
    """
    picks = [
        step.stream_id if step.kind is StepKind.SENT else ~step.stream_id
        for step in order.steps
        if step.is_choice
    ]

    def hits(mechanism: Mechanism) -> list[bool]:
        expected = predictions(order, mechanism)
        return [a == b for a, b in zip(expected, picks, strict=True)]

    handlings = [(requeues, retransmit) for requeues in (False, True) for retransmit in Retransmit]
    variants = [
        replace(this.mechanism, requeues=requeues, retransmit=retransmit)
        for requeues, retransmit in handlings
    ]
    scored = [hits(variant) for variant in variants]
    best = max(range(len(scored)), key=lambda index: sum(scored[index]))
    possible = {this.mechanism.name}
    for each in candidates_for(order):
        if each.name not in names:
            continue
        turns = dict.fromkeys([each.turn, this.mechanism.turn if each.turn else None])
        others = (
            replace(each, turn=turn, requeues=requeues, retransmit=retransmit)
            for turn in turns
            if (turn is None) == (each.turn is None)
            for requeues, retransmit in handlings
        )
        if each.name not in possible and any(
            not refutes(scored[best], hits(other)) for other in others
        ):
            possible.add(each.name)
    return possible >= set(names)


def _without_ready(order: SendOrder) -> SendOrder:
    """Return the order as it is if only its first bytes show that a response was ready.

    A client knows no more: a mechanism that could have sent in this order with responses that were
    ready later would have left the same log.
    """
    steps: list[Step] = []
    begun: set[int] = set()
    for step in order.steps:
        if step.kind is not StepKind.READY:
            steps.append(step)
        if step.kind is StepKind.SENT and step.stream_id not in begun:
            begun.add(step.stream_id)
            steps.append(Step(StepKind.READY, step.at_ns, step.stream_id))
    return replace(order, steps=tuple(steps))


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


def _table(rows: Iterable[dict[str, Any]]) -> str:
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
