"""What `identify` names by logs of its own mechanisms, of others, and of none.

`python -m validation.identified` simulates random loads and identifies the scheduler by the log of
each side. Of *own* loads the mechanism is one of those that are tried; of *foreign* ones it is of a
scheme that is not among them; of *random* ones streams are drawn. The limits of `identify` were
chosen by one half of the loads (`--limits` prints what each does there); the other is reported.
"""

from __future__ import annotations

import argparse
import hashlib
import random
import statistics
import time
from collections import Counter
from dataclasses import replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, NamedTuple

import h3sim
from h3sim.export.qlog_file import write_load_qlog
from h3sim.identification.identification import identify
from h3sim.identification.mechanism import TREE_KINDS, Mechanism
from h3sim.page import page_from_dict
from h3sim.schedulers import Mixed, Quantum, Retransmit, RoundRobinScheduler
from h3sim.schemes import SchedulerKind
from h3sim.values.errors import StalledError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from h3sim.identification.identification import Identification
    from h3sim.signals import Signal

_N_LOADS = 80
_FIRST = 600_000
_SIDES = {1: "server", 2: "client"}
_MOST_BYTES = 3_000_000
_EPS_CLIENTS = ("chrome-eps", "chrome-eps-2022", "firefox-eps", "safari-eps")
_TREE_CLIENTS = ("firefox-h2", "chrome-50-h2", "chrome-h2", "safari-h2")
_NETWORKS = (
    *("sander-2mbps-100ms-2pct", "sander-10mbps-100ms", "sander-2mbps-100ms-2pct-burst5"),
    *("lte", "cable", "wifi-lossy", "leo-satellite", "marx-2019", "marx-2019-jitter"),
)
_PROFILES = ("default", "aioquic", "quicly", "quiche-chrome")
_QUANTA = (
    *(Quantum(), Quantum(), Quantum(packets=2), Quantum(packets=10)),
    Quantum(size_bytes=16_000),
)
_FOREIGN = (
    *("wrr", "firefox", "bucket", "bucket-html", "dfifo", "zeroweight", "p+", "s+", "spdyrr"),
)
_REPEATS = (0.0, 0.8, 0.95)
"""How likely the last stream is sent again, at random."""
_RUNS = ((10,), (2, 5, 9, 14))
"""Lengths of runs in packets, of which one is drawn for each run."""
_LIMITS = tuple(percent / 100 for percent in range(30, 100, 5))
_LEAST_RIGHT, _MEDIAN_S, _MOST_S = 0.9, 3, 20
"""The aims: the share of own logs with the right name, and CPU seconds for a log."""


class RandomScheduler:
    """A scheduler that draws each stream, or how many packets of it to send."""

    def __init__(self, seed: int, repeats: float, runs: tuple[int, ...]) -> None:
        self._rng = random.Random(seed)  # noqa: S311 - nothing is secret
        self._repeats, self._runs = repeats, runs
        self._active: dict[int, None] = {}
        self._last: int | None = None
        self._next: int | None = None
        self._n_left = 0

    def open(self, stream_id: int, signal: Signal) -> None:
        """Ignore the signal."""

    def update(self, stream_id: int, signal: Signal) -> None:
        """Ignore the signal."""

    def activate(self, stream_id: int) -> None:
        """Add a stream."""
        self._active[stream_id] = None

    def deactivate(self, stream_id: int) -> None:
        """Remove a stream."""
        self._active.pop(stream_id, None)

    def close(self, stream_id: int) -> None:
        """Remove a stream."""
        self._active.pop(stream_id, None)

    def charge(self, stream_id: int, n_bytes: int) -> None:  # noqa: ARG002 - a protocol's
        """End the pick."""
        self._last, self._next = stream_id, None

    def pick(self) -> int | None:
        """Return the stream that was drawn for the next packet."""
        if self._next not in self._active:
            self._next = self._draw() if self._active else None
        return self._next

    def _draw(self) -> int:
        self._n_left -= 1
        is_repeated = self._n_left > 0 or self._rng.random() < self._repeats
        if is_repeated and self._last is not None and self._last in self._active:
            return self._last
        self._n_left = self._rng.choice(self._runs) if self._runs else 0
        others = [stream_id for stream_id in self._active if stream_id != self._last]
        return self._rng.choice(others or [*self._active])


class Row(NamedTuple):
    """What was named by a log: *truth* is "" if it is none of the mechanisms that are tried."""

    kind: str
    side: str
    truth: str
    fitting: tuple[str, ...]
    """The mechanisms that are not refuted, whether or not chance explains the log as well."""
    is_named: bool
    is_exact: bool
    """True if the best one explains every pick: its order is the same."""
    saved: float
    cpu_s: float

    def verdict(self, limit: float | None = None) -> str:
        """Return "right", "wrong" or "none", with another limit of what must be saved."""
        is_named = self.is_named if limit is None else self.is_exact or self.saved >= limit
        if not is_named:
            return "none"
        return (
            "right" if self.truth in self.fitting or (not self.truth and self.is_exact) else "wrong"
        )


def is_reported(number: int) -> bool:
    """Return whether a load is of the half by which no limit was chosen.

    >>> [number for number in range(8) if is_reported(number)]
    [0, 1, 4, 5, 6, 7]
    """
    return hashlib.sha256(str(number).encode()).digest()[0] % 2 == 1


def options_of(kind: str, number: int) -> tuple[str, dict[str, Any]]:
    """Return the mechanism of the random load of that number, and the arguments that make it."""
    rng = random.Random(number)  # noqa: S311 - nothing is secret
    mechanism = _mechanism(rng)
    clients = rng.choice(_TREE_CLIENTS if mechanism.kind in TREE_KINDS else _EPS_CLIENTS)
    network = rng.choice(_NETWORKS)
    options: dict[str, Any] = {"network": network, "seed": number, "page": _page(rng)}
    if not network.startswith("marx"):
        options["transport_profile"] = rng.choice(_PROFILES)
        options["retransmission_order"] = rng.choice([each.value for each in Retransmit])
        if rng.random() < 0.5:
            options["reorder"] = "6:1-3"
        if rng.random() < 0.5:
            options["loss"] = rng.choice([0.005, 0.01, 0.03])
    if kind == "foreign":
        return "", {**options, "scheme": _FOREIGN[number % len(_FOREIGN)]}
    if kind == "random":
        drawn = [*((repeats, ()) for repeats in _REPEATS), *((0.0, runs) for runs in _RUNS)]
        repeats, runs = drawn[number % len(drawn)]
        scheduler = lambda: RandomScheduler(number, repeats, runs)  # noqa: E731 - an argument
        return "", {**options, "scheme": clients, "scheduler": scheduler}
    turn = mechanism.turn or Quantum()
    if mechanism.kind is SchedulerKind.FIFO:
        options["scheduler"] = "fifo"
    elif mechanism.kind is SchedulerKind.ROUND_ROBIN:
        options["scheduler"] = lambda: RoundRobinScheduler(turn=turn)
    scheme = h3sim.load_scheme(clients)
    if mechanism.kind in TREE_KINDS:
        scheme = replace(scheme, mechanism=mechanism.kind)
    elif mechanism.mixed is not None:
        scheme = replace(scheme, mechanism=mechanism.kind, mixed=mechanism.mixed, turn=turn)
    return mechanism.name, {**options, "scheme": scheme}


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
    return Mechanism(kind=rng.choice(TREE_KINDS))


@cache
def _pages() -> list[h3sim.Page]:
    pages = h3sim.list_pages()
    return [each for each in pages if len(each.resources) >= 6 and each.total_bytes <= _MOST_BYTES]


def _page(rng: random.Random) -> h3sim.Page:
    """Return a shipped page; of one in four, servers take up to 80 ms to respond."""
    page = rng.choice(_pages())
    if rng.random() < 0.75:
        return page
    document = page.to_dict()
    for resource in document["resources"]:
        resource["server_ms"] = rng.randrange(80)
    return page_from_dict(document)


def rows_of(kind: str, number: int) -> Iterator[Row]:
    """Yield what is named by the logs of both sides of a load; none if it stalls."""
    truth, options = options_of(kind, number)
    try:
        load = h3sim.simulate(record_packets=True, **options)
    except StalledError:
        return
    with TemporaryDirectory() as folder:
        log = Path(folder) / "load.qlog"
        write_load_qlog(load, log)
        for trace, side in _SIDES.items():
            start_s = time.process_time()
            found = identify(log, trace=trace)
            yield _row(kind, side, truth, found, time.process_time() - start_s)


def _row(kind: str, side: str, truth: str, found: Identification, cpu_s: float) -> Row:
    return Row(
        kind=kind,
        side=side,
        truth=truth,
        fitting=tuple(row.mechanism for row in found.rows if not row.is_refuted),
        is_named=bool(found.candidates),
        is_exact=found.rows[0].explained == found.n_choices,
        saved=found.saved,
        cpu_s=cpu_s,
    )


def table(rows: Sequence[Row]) -> str:
    """Return how many logs of each kind and side got which name, and whether the aims are met."""
    titles = ("right name", "alone", "wrong name", "no name", "CPU s, median", "most")
    lines = [f"{'loads':9}{'log':8}{'logs':>5}" + "".join(f"{title:>15}" for title in titles)]
    for kind, side in dict.fromkeys((row.kind, row.side) for row in rows):
        group = [row for row in rows if (row.kind, row.side) == (kind, side)]
        counts = Counter(row.verdict() for row in group)
        n_alone = sum(row.verdict() == "right" and len(row.fitting) == 1 for row in group)
        cells = [str(n) for n in (counts["right"], n_alone, counts["wrong"], counts["none"])]
        times = [row.cpu_s for row in group]
        cells += [f"{statistics.median(times):.1f}", f"{max(times):.1f}"]
        lines.append(f"{kind:9}{side:8}{len(group):5}" + "".join(f"{cell:>15}" for cell in cells))
    return "\n".join([*lines, *_aims(rows)])


def _aims(rows: Sequence[Row]) -> Iterator[str]:
    """Yield each aim with what was measured."""
    own = [row.verdict() for row in rows if row.truth]
    others = [row.verdict() for row in rows if not row.truth]
    times = [row.cpu_s for row in rows]
    right = own.count("right") / len(own) if own else 1.0
    median_s, most_s, n_wrong = statistics.median(times), max(times), others.count("wrong")
    aims = (
        (f"foreign and random logs with a wrong name: {n_wrong} of {len(others)}", not n_wrong),
        (f"own logs with the right name: {right:.1%} (aim: 90 %)", right >= _LEAST_RIGHT),
        (f"CPU for a log: median {median_s:.1f} s (aim: 3)", median_s <= _MEDIAN_S),
        (f"CPU for a log: most {most_s:.1f} s (aim: 20)", most_s <= _MOST_S),
    )
    for words, is_met in aims:
        yield f"{words}: {'met' if is_met else 'not met'}"


def _limits(rows: Iterable[Row]) -> Iterator[str]:
    """Yield for each limit of the share that must be saved how many logs are right and wrong."""
    known = list(rows)
    for side in _SIDES.values():
        for limit in _LIMITS:
            verdicts = [(bool(row.truth), row.verdict(limit)) for row in known if row.side == side]
            counts = Counter(verdicts)
            n_own = sum(is_own for is_own, _ in verdicts)
            yield (
                f"{side} {limit:.2f}: own right {counts[True, 'right']} of {n_own}, wrong"
                f" {counts[True, 'wrong']}; others wrong {counts[False, 'wrong']}"
            )


def main() -> None:
    """Print what was named by logs of each kind and side."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--loads", type=int, default=_N_LOADS, help="loads of each kind, both halves"
    )
    parser.add_argument("--first", type=int, default=_FIRST, help="number of the first load")
    parser.add_argument("--limits", action="store_true", help="print the other half, by limit")
    parser.add_argument("--verbose", action="store_true", help="print each log")
    options = parser.parse_args()
    rows: list[Row] = []
    for kind in ("own", "random", "foreign"):
        for number in range(options.first, options.first + options.loads):
            if is_reported(number) is not options.limits:
                found = list(rows_of(kind, number))
                rows += found
                if options.verbose:
                    for row in found:
                        print(number, row.verdict(), row)
    print("\n".join(_limits(rows)) if options.limits else table(rows))


if __name__ == "__main__":
    main()
