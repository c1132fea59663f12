"""`make bench`: what a packet costs, as ratios to the probes of the same run.

Everything that is compared is timed in turns, many times over, and the least time of each counts:
so a machine that slows down for a while slows both sides of a ratio.
"""

from __future__ import annotations

import subprocess
import sys
import time
from dataclasses import replace
from typing import TYPE_CHECKING

from tabulate import tabulate

import h3sim
from benchmarks.headers import headers
from benchmarks.links import over_links
from benchmarks.pages import concurrent_page, reference_page
from benchmarks.picks import picks
from benchmarks.probes import with_heapq, with_simpy_callbacks
from benchmarks.studies import studies
from benchmarks.timing import least_seconds
from h3sim import engine
from h3sim.transport import Mode
from h3sim.units import ms

if TYPE_CHECKING:
    from collections.abc import Callable

    from h3sim.page import Page
    from h3sim.schemes import Scheme

_ROUNDS = 25
_SCALING_ROUNDS = 7
_SCALING_PACKETS = 10_000


def _load(page: Page, scheme: Scheme) -> Callable[[], object]:
    network = replace(h3sim.load_network("marx-2019"), rtt_ns=ms(100))
    return lambda: engine.simulate(page, scheme=scheme, network=network, mode=Mode.NONE)


def _against_probes() -> str:
    page = reference_page()
    sizes = [resource.size_bytes for resource in page.resources]
    schemes = h3sim.list_schemes()
    calls = [lambda: with_heapq(sizes), lambda: with_simpy_callbacks(sizes)]
    seconds = least_seconds([*calls, *(_load(page, s) for s in schemes)], rounds=_ROUNDS)
    names = ["probe: bare heapq", "probe: SimPy callbacks", *(s.name for s in schemes)]
    packets = sum(-(-size // 1400) for size in sizes)
    rows = [
        (name, f"{s * 1e3:.2f}", f"{s / packets * 1e6:.2f}", f"{s / seconds[1]:.2f}")
        for name, s in zip(names, seconds, strict=True)
    ]
    headers = ("what loads the page", "CPU ms", "us a packet", "x SimPy callbacks")
    align = ("left", "right", "right", "right")
    return f"{page.name}, {packets} packets, RTT 100 ms\n\n" + str(
        tabulate(rows, headers, colalign=align, disable_numparse=True)
    )


def _scaling() -> str:
    schemes = h3sim.list_schemes()
    pages = [concurrent_page(n, n_packets=_SCALING_PACKETS) for n in (10, 1000)]
    calls = [_load(page, scheme) for scheme in schemes for page in pages]
    seconds = least_seconds(calls, rounds=_SCALING_ROUNDS)
    rows = [
        (
            scheme.name,
            *(f"{s / _SCALING_PACKETS * 1e6:.2f}" for s in pair),
            f"{pair[1] / pair[0]:.2f}",
        )
        for scheme, pair in zip(schemes, zip(seconds[::2], seconds[1::2], strict=True), strict=True)
    ]
    headers = ("scheme", "us a packet, 10 streams", "1000 streams", "ratio")
    title = f"{_SCALING_PACKETS} packets over concurrent streams\n\n"
    align = ("left", "right", "right", "right")
    return title + str(tabulate(rows, headers, colalign=align, disable_numparse=True))


def _import_time() -> str:
    """The time that `import h3sim` adds to a fresh interpreter, and that SimPy alone adds."""
    commands = {
        name: [sys.executable, "-c", code]
        for name, code in (("nothing", ""), ("simpy", "import simpy"), ("h3sim", "import h3sim"))
    }
    best = dict.fromkeys(commands, float("inf"))
    for _ in range(_SCALING_ROUNDS):
        for name, command in commands.items():
            begin = time.perf_counter()
            subprocess.run(command, check=True)
            best[name] = min(best[name], time.perf_counter() - begin)
    added = {name: (best[name] - best["nothing"]) * 1e3 for name in ("simpy", "h3sim")}
    return f"import h3sim: {added['h3sim']:.0f} ms, of which SimPy {added['simpy']:.0f} ms"


def _picks() -> str:
    return picks(least_seconds)


def _headers() -> str:
    return headers(least_seconds)


def main() -> None:
    """Print all of it."""
    for part in (_against_probes, over_links, _scaling, _picks, _headers, studies, _import_time):
        print(part(), end="\n\n")


if __name__ == "__main__":
    main()
