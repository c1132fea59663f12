"""How many logs of h3sim's own loads `identify` names right: `python -m validation.identified`.

Each log is of a random page, network, transport profile, order of retransmissions and scheduler,
from the server's or the client's side. Where several mechanisms explain a log, the load is
simulated with each of them: "cannot tell" is right if all send the same bytes in the same order.
"""

from __future__ import annotations

import argparse
import random
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import h3sim
from h3sim.errors import StalledError
from h3sim.page import page_from_dict
from h3sim.results.configuration import write_load_qlog
from h3sim.schedulers import EpsScheduler, Mixed, Quantum, Retransmit, RoundRobinScheduler
from h3sim.schemes import SchedulerKind, Scheme
from h3sim.signals import Eps, Signal
from h3sim.study.identification import Identification, Mechanism, identify

_N_LOGS = 500
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


_FEW, _ALIKE = 10, 0.02
"""Mechanisms are alike on a load if no response ends earlier or later by more than so many packets,
or by more than this share of all."""


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
        trace=rng.choice([1, 2]),
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
    truth = this.mechanism.name
    row = next((row for row in found.rows if row.mechanism == truth), None)
    percent = 0.0 if row is None else row.percent
    if found.mechanism == truth:
        verdict = "named"
    elif truth in found.candidates and _are_alike(this, load, found):
        verdict = "cannot tell"
    elif truth in found.candidates:
        verdict = "undecided"
    else:
        verdict = "wrong" if found.candidates else "none explains it"
    return Outcome(verdict, _has_quantum(this, found), _retransmissions(this, found), percent)


def _are_alike(this: Case, load: h3sim.Load, found: Identification) -> bool:
    """Return whether responses end alike with all mechanisms that explain a log."""
    ends = _ends(load)
    allowed = max(_FEW, _ALIKE * len(load.trace.order))
    for name in found.candidates:
        mechanism = replace(_named(name), turn=this.mechanism.turn)
        if mechanism.name != this.mechanism.name:
            try:
                others = _ends(simulate(this, mechanism))
            except StalledError:
                return False
            if any(abs(end - others.get(key, 0)) > allowed for key, end in ends.items()):
                return False
    return True


def _ends(load: h3sim.Load) -> dict[int, int]:
    """Return how many packets are sent until the end of each response."""
    return {stream_id: index for index, stream_id in enumerate(load.trace.order)}


def _named(name: str) -> Mechanism:
    kind, _, mixed = name.partition(", ")
    if mixed == "one-by-one":
        return Mechanism(kind=SchedulerKind.EPS, is_sequential=True)
    found = next(each for each in SchedulerKind if each.value == kind)
    return Mechanism(kind=found, mixed=Mixed(mixed) if mixed else None)


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


VERDICTS = ("named", "cannot tell", "undecided", "wrong", "none explains it")
"""The outcomes: right alone; several that are alike on this load; several that are not; another;
none."""


def main() -> None:
    """Identify the logs of random loads, and print how many of each side had which outcome."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--logs", type=int, default=_N_LOGS, help="number of logs")
    parser.add_argument("--first", type=int, default=0, help="number of the first log")
    parser.add_argument("--verbose", action="store_true", help="print each log that is not right")
    options = parser.parse_args()
    table = {side: Counter[str]() for side in ("server", "client")}
    wrong_quanta, retransmissions = 0, Counter[str]()
    for number in range(options.first, options.first + options.logs):
        this = case(number)
        got = outcome(this)
        if got is None:
            continue  # a load that stalls leaves no log
        side = "server" if this.trace == 1 else "client"
        table[side][got.verdict] += 1
        wrong_quanta += not got.is_quantum_right
        retransmissions[got.retransmissions] += 1
        if options.verbose and got.verdict not in VERDICTS[:2]:
            about = f"{this.mechanism.name}, {this.clients}, {this.page.name}, {this.options}"
            print(number, side, about, got.verdict, f"{got.percent:.1f} %", flush=True)
    print(f"{'side':8}{'logs':>6}" + "".join(f"{verdict:>18}" for verdict in VERDICTS))
    for side, counts in table.items():
        cells = "".join(f"{counts[verdict]:18}" for verdict in VERDICTS)
        print(f"{side:8}{counts.total():6}{cells}")
    print(f"wrong quanta: {wrong_quanta}")
    shown = retransmissions["right"] + retransmissions["wrong"]
    print(f"orders of retransmissions: {retransmissions['right']} of {shown} right")


if __name__ == "__main__":
    main()
