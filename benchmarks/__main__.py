"""`python -m benchmarks`: what a packet costs, as ratios to the probes of the same run.

Everything that is compared is timed in turns, many times over, and the least time of each counts:
so a machine that slows down for a while slows both sides of a ratio.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from dataclasses import replace
from functools import partial
from statistics import median
from typing import TYPE_CHECKING

from tabulate import tabulate

import h3sim
from benchmarks.growth import growth
from benchmarks.headers import headers
from benchmarks.links import over_links
from benchmarks.memory import memory
from benchmarks.options import parser_of
from benchmarks.pages import concurrent_page, reference_page
from benchmarks.picks import picks
from benchmarks.probes import with_heapq, with_plain_simpy, with_simpy
from benchmarks.ratios import ratios
from benchmarks.studies import studies
from benchmarks.timing import least_seconds
from h3sim import engine
from h3sim.load.run import run_spec
from h3sim.transport import HandshakeMode
from h3sim.values.units import ms

if TYPE_CHECKING:
    from collections.abc import Callable

    from h3sim.page import Page
    from h3sim.schemes import Scheme

_ROUNDS = 25
_SCALING_ROUNDS = 7
_FRESH_ROUNDS = 15
_SCALING_PACKETS = 10_000


def _load(page: Page, scheme: Scheme) -> Callable[[], object]:
    network = replace(h3sim.load_network("marx-2019"), rtt_ns=ms(100))
    return lambda: run_spec(
        engine.LoadSpec(page, scheme=scheme, network=network, mode=HandshakeMode.NONE)
    )


def _against_probes() -> str:
    page = reference_page()
    sizes = [resource.size_bytes for resource in page.resources]
    schemes = h3sim.list_schemes()
    probes = (with_heapq, with_simpy, with_plain_simpy)
    calls = [partial(probe, sizes) for probe in probes]
    seconds = least_seconds([*calls, *(_load(page, s) for s in schemes)], rounds=_ROUNDS)
    names = ["probe: bare heapq", "probe: SimPy, smallest", "probe: SimPy, plain"]
    names += [scheme.name for scheme in schemes]
    packets = sum(-(-size // 1400) for size in sizes)
    rows = [
        (name, f"{s * 1e3:.2f}", f"{s / packets * 1e6:.2f}", f"{s / seconds[1]:.2f}")
        for name, s in zip(names, seconds, strict=True)
    ]
    headers = ("what loads the page", "CPU ms", "us a packet", "x smallest SimPy")
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
    """The CPU time beyond a bare interpreter's of a first result, of commands, and of SimPy."""
    commands = {
        name: [sys.executable, *words]
        for name, words in (
            ("nothing", ("-c", "pass")),
            ("import simpy", ("-c", "import simpy")),
            ("import h3sim", ("-c", "import h3sim")),
            (
                "a first result",
                ("-c", "import h3sim; h3sim.simulate('davies-meenan').byte_index()"),
            ),
            *(
                (f"h3sim {words}", ("-m", "h3sim", *words.split()))
                for words in (
                    "--version",
                    "--help",
                    "list pages",
                    "list schemes",
                    "run davies-meenan",
                )
            ),
        )
    }
    for command in commands.values():
        _cpu_seconds(command)  # the first one writes what is compiled of each module
    rounds = [{name: _cpu_seconds(c) for name, c in commands.items()} for _ in range(_FRESH_ROUNDS)]
    added = {
        name: median((times[name] - times["nothing"]) * 1e3 for times in rounds)
        for name in commands
    }
    rows = [(name, f"{added[name]:.0f}") for name in commands if name != "nothing"]
    headers = ("a fresh interpreter, beyond its own start", "CPU ms")
    return str(tabulate(rows, headers, colalign=("left", "right"), disable_numparse=True))


def _cpu_seconds(command: list[str]) -> float:
    """Return what a process and those that it starts take of the processor."""
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    before = _children_seconds()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=environment)
    return _children_seconds() - before


def _children_seconds() -> float:
    # os.times() counts in hundredths of a second, a third of what is measured here.
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _picks() -> str:
    return picks(least_seconds)


def _headers() -> str:
    return headers(least_seconds)


def main() -> None:
    """Print all of it."""
    parser_of(__doc__).parse_args()
    for part in (
        ratios,
        _against_probes,
        over_links,
        _scaling,
        _picks,
        _headers,
        growth,
        memory,
        studies,
        _import_time,
    ):
        print(part(), end="\n\n")


if __name__ == "__main__":
    main()
