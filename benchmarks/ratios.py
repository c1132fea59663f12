"""`python -m benchmarks.ratios [--write]`: what loads cost as ratios to the smallest SimPy probe.

Each build of h3sim that there is times every case and the probe in turns, in a process of its own:
pure Python, and the compiled build where `make test-compiled` has put one. In every round each case
is divided by the probe of that round, and by how many of the probe's packets it is worth; shown are
the median and the middle half, beside what is asked. Table 2 over the corpus is loaded whole, once;
of the loads of Sander 2022 a sample stands for all. `--write` puts the table into
docs/generated/speed.md.
"""

from __future__ import annotations

import gc
import subprocess
import sys
import time
from dataclasses import replace
from functools import partial
from pathlib import Path
from statistics import quantiles
from typing import TYPE_CHECKING, NamedTuple

from tabulate import tabulate

import h3sim
from benchmarks.options import parser_of
from benchmarks.pages import concurrent_page, reference_page
from benchmarks.probes import with_heapq, with_plain_simpy, with_simpy
from h3sim import engine
from h3sim.load.run import run_spec
from h3sim.page import Discovery, Kind, Page, Resource, TriggerEvent
from h3sim.transport import HandshakeMode, Protocol
from h3sim.values import versions
from h3sim.values.units import ms
from tools.documented import put

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["ratios"]

_CHECKOUT = Path(__file__).resolve().parents[1]
_COMPILED = _CHECKOUT / "build" / "compiled" / ".venv" / "bin" / "python"
_ROUNDS = 15
_STUDIED = ("davies-meenan", "http2rulez", "creative")
_STUDY_LOADS = 66_300
_CORES = 2
"""Studies run on so many processes; here one of them is timed, and its time divided."""


class Case(NamedTuple):
    """What is timed."""

    name: str
    call: Callable[[], object]
    asked: tuple[float, float] | None = None
    """The ratio that is aimed at: of pure Python, of the compiled build."""
    worth: float = 1
    """How many times the packets of the reference page it has."""


_SIMPLE, _ANY, _SMALL = (1.4, 1.5), (2.0, 1.5), (6.0, 3.0)
_LOSS_BASED, _BBR = (8.0, 3.5), (10.0, 4.5)
_SCHEMES = {
    "rr": _SIMPLE,
    "fifo": _SIMPLE,
    "bucket-html": _ANY,
    "chrome-eps": _ANY,
    "firefox-h2": _ANY,
    "nghttp2": _ANY,
    "swett": _ANY,
}
_STUDIES = {
    f"Sander 2022: {_STUDY_LOADS:,} loads with metrics, of a sample": (12 * 60.0, 5 * 60.0),
    "Table 2 over the corpus, two send buffers": (10.0, 6.0),
}
"""What is asked of whole studies, in seconds on two cores."""


def _constant(page: Page, scheme: str) -> Callable[[], object]:
    network = replace(h3sim.load_network("marx-2019"), rtt_ns=ms(100))
    row = h3sim.load_scheme(scheme)
    return lambda: run_spec(
        engine.LoadSpec(page, scheme=row, network=network, mode=HandshakeMode.NONE)
    )


def _links(page: Page, profile: str, **changes: str) -> Callable[[], object]:
    network, row = h3sim.load_network("sander-2mbps-100ms-2pct"), h3sim.load_scheme("rr")
    stack = replace(h3sim.load_profile(profile), **changes)  # type: ignore[arg-type]
    return lambda: run_spec(
        engine.LoadSpec(
            page, scheme=row, network=network, profile=stack, protocol=Protocol(stack.protocol)
        )
    )


def _small_page(n_resources: int, n_bytes: int) -> Page:
    """Return a page of so many equal resources, all but the first asked for at once."""
    size = n_bytes // n_resources
    kinds, at_start = list(Kind), Discovery(at=TriggerEvent.TIME)
    rest = [
        Resource(id=str(n), kind=kinds[n % len(kinds)], size_bytes=size, discovered=at_start)
        for n in range(1, n_resources)
    ]
    root = Resource(id="0", kind=Kind.DOCUMENT, size_bytes=size)
    return Page(name=f"{n_resources} resources", resources=(root, *rest))


def _studied() -> list[Callable[[], object]]:
    """Return loads as Sander 2022 has them: schemes over its networks, with what it measures."""
    pages = [page for page in h3sim.list_pages() if page.name in _STUDIED]
    networks = [n for n in h3sim.list_networks() if n.name.startswith("sander-2mbps")]
    rows = [scheme for scheme in h3sim.list_schemes() if scheme.name.startswith("sander-")]
    profile = h3sim.load_profile("default")

    def load(page: Page, network: h3sim.Network, scheme: h3sim.Scheme) -> object:
        done = run_spec(engine.LoadSpec(page, scheme=scheme, network=network, profile=profile))
        return done.byte_index("all"), done.hol

    return [
        partial(load, page, network, scheme)
        for page in pages
        for network in networks
        for scheme in rows
    ]


def _table_2() -> object:
    return h3sim.compare("corpus").means


def cases() -> list[Case]:
    """Return what is timed; the first is what all others are divided by."""
    page = reference_page()
    sizes = [resource.size_bytes for resource in page.resources]
    n_packets = sum(-(-size // 1400) for size in sizes)
    big = concurrent_page(50, n_packets=10 * n_packets)
    small, many = _small_page(100, 10**5), _small_page(1000, 2 * 10**6)
    return [
        Case("probe: SimPy, smallest", lambda: with_simpy(sizes)),
        Case("probe: SimPy, plain", lambda: with_plain_simpy(sizes)),
        Case("probe: bare heapq", lambda: with_heapq(sizes)),
        *(Case(f"constant rate, {name}", _constant(page, name), a) for name, a in _SCHEMES.items()),
        Case("10 times the page, rr", _constant(big, "rr"), _SIMPLE, 10),
        Case("QUIC, CUBIC, 2 % loss", _links(page, "default"), _LOSS_BASED),
        Case("TCP, CUBIC, 2 % loss", _links(page, "linux-tcp", cc="cubic"), _LOSS_BASED),
        Case("QUIC, BBR, 2 % loss", _links(page, "default", cc="bbr"), _BBR),
        Case("TCP, BBR, 2 % loss", _links(page, "linux-tcp", cc="bbr"), _BBR),
        Case("QUIC as aioquic, 2 % loss", _links(page, "aioquic")),
        Case("100 resources, 100 kB, rr", _constant(small, "rr"), None, 100 / n_packets),
        *(
            Case(f"1,000 resources, 2 MB, {name}", _constant(many, name), _SMALL, 2000 / n_packets)
            for name in _SCHEMES
        ),
        *_ns_py(sizes),
    ]


def _ns_py(sizes: list[int]) -> list[Case]:
    """Return ns.py's round robin over as many flows and packets, where it is installed."""
    try:
        import simpy
        from ns.packet.packet import Packet
        from ns.packet.sink import PacketSink
        from ns.scheduler.drr import DRRServer
    except ImportError:
        return []

    def run() -> object:
        env = simpy.Environment()
        server = DRRServer(env, 1_120_000, dict.fromkeys(range(len(sizes)), 1))
        server.out = PacketSink(env)
        for flow, size in enumerate(sizes):
            for number in range(-(-size // 1400)):
                server.put(Packet(0, min(1400, size - 1400 * number), number, flow_id=flow))
        env.run(until=1000)
        return server.out

    return [Case("ns.py, DRR", run)]


def _worker() -> None:
    """Time each case once for every line that comes in, and the studies for the line "all"."""
    timed = [case.call for case in cases()]
    studied = _studied()
    for call in timed:
        call()
    gc.collect()
    gc.freeze()
    print(versions.build(), flush=True)
    for line in sys.stdin:
        rounds = [_seconds(call) for call in timed]
        if line.strip() == "all":
            share = _STUDY_LOADS / len(studied) / _CORES
            rounds.append(sum(_seconds(call) for call in studied) * share)
            rounds.append(_seconds(_table_2) / _CORES)
        print(*rounds, flush=True)


def _seconds(call: Callable[[], object]) -> float:
    begin = time.process_time()
    call()
    return time.process_time() - begin


def ratios() -> str:
    """Return the tables."""
    pythons = [sys.executable, *([str(_COMPILED)] if _COMPILED.exists() else [])]
    code = "from benchmarks.ratios import _worker; _worker()"
    workers = [
        subprocess.Popen(
            # What was installed is imported, and not the folder h3sim beside the benchmarks.
            [python, "-P", "-c", f"import sys; sys.path.append({str(_CHECKOUT)!r}); {code}"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for python in pythons
    ]
    builds = [" ".join(_answer(worker)) for worker in workers]
    rounds: list[list[list[float]]] = [[] for _ in workers]
    for number in range(_ROUNDS):
        for worker, times in zip(workers, rounds, strict=True):
            times.append([float(part) for part in _ask(worker, "one" if number else "all")])
    for worker in workers:
        worker.communicate()
    title = f"46 resources, 2 MB, 1458 packets: a packet's cost; {_ROUNDS} rounds, medians"
    parts = (title, _case_table(builds, rounds), _study_table(builds, rounds))
    return "\n\n".join(parts)


def _case_table(builds: list[str], rounds: list[list[list[float]]]) -> str:
    """Return the ratios of cases, a column of builds after the other."""
    rows = []
    for position, case in enumerate(cases()):
        row = [case.name]
        for build, found in enumerate(rounds):
            ratio = [times[position] / times[0] / case.worth for times in found]
            low, middle, high = quantiles(ratio, n=4)
            asked = None if case.asked is None else case.asked[build]
            row += [f"{middle:.2f}", f"{low:.2f}-{high:.2f}", _verdict(middle, asked)]
        rows.append(row)
    names = [part for build in builds for part in (build, "middle half", "asked")]
    align = ("left", *["right"] * (3 * len(builds)))
    headers = ("x smallest SimPy", *names)
    return str(tabulate(rows, headers, colalign=align, disable_numparse=True))


def _study_table(builds: list[str], rounds: list[list[list[float]]]) -> str:
    """Return how long whole studies take on two cores."""
    rows = []
    for position, (name, asked_s) in enumerate(_STUDIES.items()):
        row = [name]
        for build, found in enumerate(rounds):
            took_s = found[0][len(found[1]) + position]
            row += [f"{took_s:.1f}", _verdict(took_s, asked_s[build])]
        rows.append(row)
    names = [part for build in builds for part in (f"{build}, s", "asked")]
    headers = ("on two cores", *names)
    align = ("left", *["right"] * (2 * len(builds)))
    return str(tabulate(rows, headers, colalign=align, disable_numparse=True))


def _verdict(found: float, asked: float | None) -> str:
    """Return what is asked, and whether that is so."""
    if asked is None:
        return ""
    return f"{asked:g} {'yes' if found <= asked else 'NO'}"


def _ask(worker: subprocess.Popen[str], what: str) -> list[str]:
    assert worker.stdin is not None
    worker.stdin.write(f"{what}\n")
    worker.stdin.flush()
    return _answer(worker)


def _answer(worker: subprocess.Popen[str]) -> list[str]:
    assert worker.stdout is not None
    return worker.stdout.readline().split()


def main() -> None:
    """Print the table, or write it into the docs."""
    parser = parser_of(__doc__)
    parser.add_argument(
        "--write", action="store_true", help="put the table into docs/generated/speed.md, too"
    )
    options = parser.parse_args()
    table = ratios()
    print(table)
    if options.write:
        put("python -m benchmarks.ratios --write", f"```text\n{table}\n```")


if __name__ == "__main__":
    main()
