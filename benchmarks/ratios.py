"""`python -m benchmarks.ratios [--write]`: what loads cost as ratios to the smallest SimPy probe.

Each build of h3sim that there is times every case and the probe in turns, in a process of its own:
pure Python, and the compiled build where `make test-compiled` has put one. In every round each case
is divided by the probe of that round; shown are the median and the middle half of these ratios.
`--write` puts the table into docs/validation.md.
"""

from __future__ import annotations

import gc
import re
import subprocess
import sys
import time
from dataclasses import replace
from functools import partial
from pathlib import Path
from statistics import quantiles
from typing import TYPE_CHECKING

from tabulate import tabulate

import h3sim
from benchmarks.pages import concurrent_page, reference_page
from benchmarks.probes import with_heapq, with_plain_simpy, with_simpy
from h3sim import engine
from h3sim.page import At, Discovery, Kind, Page, Resource
from h3sim.transport import Mode, Protocol
from h3sim.units import ms

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["ratios"]

_CHECKOUT = Path(__file__).resolve().parents[1]
_COMPILED = _CHECKOUT / "build" / "compiled" / ".venv" / "bin" / "python"
_TABLE = _CHECKOUT / "docs" / "validation.md"
_BEGIN, _END = "<!-- python -m benchmarks.ratios --write -->", "<!-- end of the table -->"
_ROUNDS = 15
_STUDIED = ("davies-meenan", "http2rulez", "creative")
_STUDY_LOADS = 66_300

Case = tuple[str, "Callable[[], object]", float]
"""A name, what is timed, and how many of the reference page's packets it is worth."""


def _constant(page: Page, scheme: str) -> Callable[[], object]:
    network = replace(h3sim.load_network("marx-2019"), rtt_ns=ms(100))
    row = h3sim.load_scheme(scheme)
    return lambda: engine.simulate(page, scheme=row, network=network, mode=Mode.NONE)


def _links(page: Page, profile: str, **changes: str) -> Callable[[], object]:
    network, row = h3sim.load_network("sander-2mbps-100ms-2pct"), h3sim.load_scheme("rr")
    stack = replace(h3sim.load_profile(profile), **changes)  # type: ignore[arg-type]
    return lambda: engine.simulate(
        page, scheme=row, network=network, profile=stack, protocol=Protocol(stack.protocol)
    )


def _small_page(n_resources: int, n_bytes: int) -> Page:
    """Return a page of so many equal resources, all but the first asked for at once."""
    size = n_bytes // n_resources
    kinds, at_start = list(Kind), Discovery(at=At.TIME)
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
        done = engine.simulate(page, scheme=scheme, network=network, profile=profile)
        return done.byte_index("all"), done.hol

    return [
        partial(load, page, network, scheme)
        for page in pages
        for network in networks
        for scheme in rows
    ]


def cases() -> list[Case]:
    """Return what is timed; the first is what all others are divided by."""
    page = reference_page()
    sizes = [resource.size_bytes for resource in page.resources]
    n_packets = sum(-(-size // 1400) for size in sizes)
    big = concurrent_page(50, n_packets=10 * n_packets)
    found: list[Case] = [
        ("probe: SimPy, smallest", lambda: with_simpy(sizes), 1),
        ("probe: SimPy, plain", lambda: with_plain_simpy(sizes), 1),
        ("probe: bare heapq", lambda: with_heapq(sizes), 1),
    ]
    found += [
        (f"constant rate, {scheme}", _constant(page, scheme), 1)
        for scheme in ("rr", "fifo", "bucket-html", "chrome-eps", "firefox-h2", "nghttp2")
    ]
    found += [
        ("QUIC, CUBIC, 2 % loss", _links(page, "default"), 1),
        ("TCP, CUBIC, 2 % loss", _links(page, "linux-tcp", cc="cubic"), 1),
        ("QUIC, BBR, 2 % loss", _links(page, "default", cc="bbr"), 1),
        ("TCP, BBR, 2 % loss", _links(page, "linux-tcp", cc="bbr"), 1),
        ("QUIC as aioquic, 2 % loss", _links(page, "aioquic"), 1),
        ("100 resources, 100 kB, rr", _constant(_small_page(100, 10**5), "rr"), 100 / n_packets),
        (
            "1000 resources of 2 kB, rr",
            _constant(_small_page(1000, 2 * 10**6), "rr"),
            2000 / n_packets,
        ),
        ("10 times the page, rr", _constant(big, "rr"), 10),
    ]
    found += _ns_py(sizes)
    return found


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

    return [("ns.py, DRR", run, 1)]


def _worker() -> None:
    """Time each case once for every line that comes in; the last number is Sander's mix."""
    timed = [call for _, call, _ in cases()]
    studied = _studied()
    for call in timed:
        call()
    gc.collect()
    gc.freeze()
    print(h3sim.build(), len(studied), flush=True)
    for line in sys.stdin:
        rounds = [_seconds(call) for call in timed]
        if line.strip() == "all":
            rounds.append(sum(_seconds(call) for call in studied))
        print(*rounds, flush=True)


def _seconds(call: Callable[[], object]) -> float:
    begin = time.process_time()
    call()
    return time.process_time() - begin


def ratios() -> str:
    """Return the table."""
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
    heads = [_answer(worker) for worker in workers]
    rounds: list[list[list[float]]] = [[] for _ in workers]
    for number in range(_ROUNDS):
        for worker, times in zip(workers, rounds, strict=True):
            times.append([float(part) for part in _ask(worker, "one" if number else "all")])
    for worker in workers:
        worker.communicate()
    rows = []
    for index, (name, _, worth) in enumerate(cases()):
        shown = [_spread([times[index] / times[0] for times in found], worth) for found in rounds]
        rows.append((name, *(part for pair in shown for part in pair)))
    builds = [" ".join(head[:-1]) for head in heads]
    n_loads = int(heads[0][-1])
    minutes = [found[0][-1] / n_loads * _STUDY_LOADS / 2 / 60 for found in rounds]
    mix = ", ".join(f"{build} {took:.1f} min" for build, took in zip(builds, minutes, strict=True))
    names = [part for build in builds for part in (build, "middle half", "a packet")]
    align = ("left", *["right"] * (3 * len(builds)))
    table = tabulate(rows, ("x smallest SimPy", *names), colalign=align, disable_numparse=True)
    title = f"46 resources, 2 MB, 1458 packets; {_ROUNDS} rounds, medians\n\n"
    return f"{title}{table}\n\n66,300 loads as those {n_loads} on two cores, with metrics: {mix}"


def _ask(worker: subprocess.Popen[str], what: str) -> list[str]:
    assert worker.stdin is not None
    worker.stdin.write(f"{what}\n")
    worker.stdin.flush()
    return _answer(worker)


def _answer(worker: subprocess.Popen[str]) -> list[str]:
    assert worker.stdout is not None
    return worker.stdout.readline().split()


def _spread(values: list[float], worth: float) -> tuple[str, str, str]:
    low, middle, high = quantiles(values, n=4)
    return f"{middle:.2f}", f"{low:.2f}-{high:.2f}", f"{middle / worth:.2f}"


def main() -> None:
    """Print the table, or write it into the docs."""
    table = ratios()
    print(table)
    if "--write" in sys.argv[1:]:
        text = _TABLE.read_text(encoding="utf-8")
        block = f"{_BEGIN}\n```text\n{table}\n```\n{_END}"
        pattern = f"{re.escape(_BEGIN)}.*?{re.escape(_END)}"
        _TABLE.write_text(re.sub(pattern, lambda _: block, text, flags=re.DOTALL), encoding="utf-8")


if __name__ == "__main__":
    main()
