"""`make validate ARGS=vgprio`: SpeedIndex in a testbed and over pages of the web, by network.

The testbed of VGPrio (Sander et al., IFIP Networking 2025) loaded 38 popular sites over six
networks, 30 times per scheme, and measured SpeedIndex by video. Its loads are repeated over pages
of the set `web`: all hosts on one connection, as there, and no think times, as a replay has none.
The options change one assumption each, to see how much of the result depends on it. `--testbed`
reads results.csv of COMSYS/VGPrio instead: how well one half of its sites predicts the other.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import random
import statistics
import sys
from collections import defaultdict
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import h3sim
from h3sim import catalog
from h3sim.cli.command import Parser
from h3sim.page import Kind
from h3sim.values.errors import StalledError
from h3sim.values.table import Column, Table

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from h3sim.page import Page

BASELINE = "chrome"
SCHEMES = ("rr", "firefox")
CLEAR = 5.0
"""Per cent from which a site counts as worse or better."""
DEFAULT_SITES = 40
_SEEDS_WITH_LOSS = 30
"""As many as the testbed's runs."""
_N_HALVES = 1000
_LOAD: dict[str, Any] = {
    "network": "sander-2mbps-50ms-2pct",
    "queue_bdp": 1,
    "browser": "parse",
    "tight_mode": "chrome-95",
    "connections": "single",
    "paint": "progressive",
    "time_limit_s": 300,
}
MEDIAN_WITHIN, QUARTILE_WITHIN, SHARE_WITHIN, INDEX_WITHIN = 3.0, 6.0, 12.0, 25.0
"""How close a cell should come, in points, and Chrome's own SpeedIndex in per cent."""


class Changes(NamedTuple):
    """Changes of SpeedIndex relative to Chrome's scheme, in per cent, over sites."""

    median: float
    lower: float
    upper: float
    worse: float
    """Per cent of sites that are worse by 5 %."""
    better: float


class Cell(NamedTuple):
    """A network of the testbed, Chrome's SpeedIndex on it, and the changes by scheme."""

    rate_mbps: float
    rtt_ms: float
    loss: float
    speed_index_ms: float
    changes: dict[str, Changes]

    @property
    def title(self) -> str:
        """The network in words."""
        loss = f" {self.loss:.0%}" if self.loss else ""
        return f"{self.rate_mbps:g} Mbit/s {self.rtt_ms:g} ms{loss}"


def _of_38(median: float, lower: float, upper: float, worse: int, better: int) -> Changes:
    return Changes(median, lower, upper, worse / 0.38, better / 0.38)


MEASURED = (
    Cell(10, 10, 0, 1235, {
        "rr": _of_38(0.0, -3.0, 5.6, 12, 8), "firefox": _of_38(-0.6, -2.8, 1.5, 5, 7)}),
    Cell(10, 50, 0, 1556, {
        "rr": _of_38(1.1, -2.6, 3.6, 7, 7), "firefox": _of_38(0.6, -2.6, 3.8, 7, 6)}),
    Cell(10, 50, 0.02, 2174, {
        "rr": _of_38(1.6, -10.4, 11.7, 14, 14), "firefox": _of_38(1.6, -10.8, 7.9, 13, 12)}),
    Cell(2, 50, 0, 3541, {
        "rr": _of_38(-0.6, -5.9, 8.9, 14, 10), "firefox": _of_38(-0.8, -5.1, 2.4, 8, 10)}),
    Cell(2, 50, 0.02, 4031, {
        "rr": _of_38(0.1, -6.6, 9.5, 13, 12), "firefox": _of_38(-1.0, -6.5, 1.9, 6, 12)}),
    Cell(50, 50, 0, 1237, {
        "rr": _of_38(-1.1, -3.2, 0.5, 1, 7), "firefox": _of_38(-1.1, -2.5, 0.3, 1, 2)}),
)  # fmt: skip
"""Medians of 30 loads per site, computed from results.csv of the repository COMSYS/VGPrio."""


class Setting(NamedTuple):
    """Assumptions of the simulated loads."""

    think: float = 0.0
    """Factor of the recorded think times."""
    scripts: str = "as recorded"
    load: tuple[tuple[str, Any], ...] = ()
    """Other settings of loads."""
    draws: tuple[int, ...] = (0,)
    """Draws of what is unknown; the median over them counts."""
    metric: str = "speed_index_ms"


class Job(NamedTuple):
    """The loads of a page on a network: one per scheme and seed."""

    page: str
    cell: int
    setting: Setting


def scaled(page: Page, *, think: float = 1.0, cpu: float = 1.0) -> Page:
    """Return a page with multiples of the think times, and of the times to parse and to run."""
    # Not `with_resources`, which drops what the load event waited for.
    resources = (
        replace(
            each,
            server_ns=round(each.server_ns * think),
            parse_ns=round(each.parse_ns * cpu),
            execute_ns=round(each.execute_ns * cpu),
        )
        for each in page.resources
    )
    return replace(page, resources=tuple(resources))


def with_scripts(page: Page, where: str) -> Page:
    """Return a page all of whose document's scripts are in the head, or deferred."""
    if where == "as recorded":
        return page
    documents = {page.resources[index].id for index in page.roots}
    deferred = where == "deferred"
    resources = (
        replace(each, is_async=False, is_defer=deferred, in_head=not deferred)
        if each.kind is Kind.SCRIPT and each.discovered and each.discovered.by in documents
        else each
        for each in page.resources
    )
    return replace(page, resources=tuple(resources))


def speed_indices(job: Job) -> dict[str, float]:
    """Return the metric by scheme, the median over seeds and draws; none if a load did not end."""
    cell, setting = MEASURED[job.cell], job.setting
    is_drawn = job.page in (catalog.page_set("web") or ())
    pages = []
    for draw in setting.draws if is_drawn else (0,):
        page = catalog.load_page(f"{job.page} draw {draw}" if is_drawn else job.page)
        pages.append(with_scripts(scaled(page, think=setting.think), setting.scripts))
    found: dict[str, float] = {}
    for scheme in (BASELINE, *SCHEMES):
        indices = []
        for page, seed in product(pages, range(_SEEDS_WITH_LOSS if cell.loss else 1)):
            try:
                load = h3sim.simulate(
                    page,
                    scheme=f"sander-{scheme}",
                    rate_mbps=cell.rate_mbps,
                    rtt_ms=cell.rtt_ms,
                    loss=cell.loss,
                    seed=seed,
                    **{**_LOAD, **dict(setting.load)},
                )
            except StalledError:
                return {}
            if load.speed_index_ms is not None:
                indices.append(getattr(load, setting.metric))
        if not indices:
            return {}
        found[scheme] = statistics.median(indices)
    return found


def changes_of(found: Sequence[dict[str, float]], scheme: str) -> Changes:
    """Return the changes from Chrome's scheme to another one, over sites.

    >>> sites = [{"chrome": 100.0, "rr": rr} for rr in (90.0, 100.0, 104.0, 110.0)]
    >>> [round(value, 1) for value in changes_of(sites, "rr")]
    [2.0, -7.5, 8.5, 25.0, 25.0]
    """
    changes = [100 * (each[scheme] / each[BASELINE] - 1) for each in found]
    lower, median, upper = statistics.quantiles(changes, n=4)
    worse = 100 * sum(change > CLEAR for change in changes) / len(changes)
    better = 100 * sum(change < -CLEAR for change in changes) / len(changes)
    return Changes(median, lower, upper, worse, better)


def agrees(measured: Changes, simulated: Changes) -> bool:
    """Return whether a cell is as close to the testbed's as it should be."""
    within = (MEDIAN_WITHIN, QUARTILE_WITHIN, QUARTILE_WITHIN, SHARE_WITHIN, SHARE_WITHIN)
    return all(
        abs(one - other) <= most
        for one, other, most in zip(measured, simulated, within, strict=True)
    )


def selected(names: Iterable[str], n_sites: int, half: int | None = None) -> list[str]:
    """Return the pages with the least hashes of their names; of a *half* of them if one is given.

    >>> [selected("abc", 2, half) for half in (None, 0, 1)]
    [['c', 'b'], ['c', 'a'], ['b']]
    """
    ordered = sorted(names, key=lambda name: hashlib.sha256(name.encode()).hexdigest())
    return ordered[half::2][:n_sites] if half is not None else ordered[:n_sites]


def halves(path: Path) -> tuple[list[int], dict[str, list[float]]]:
    """Return how many cells agree between two halves of the testbed's sites, for random halves.

    And by network the ratios of the medians of Chrome's SpeedIndex of the two halves.
    """
    loads: dict[tuple[float, ...], dict[str, dict[str, list[float]]]] = defaultdict(dict)
    with path.open(newline="", encoding="utf-8") as file:
        for row in csv.DictReader(filter(str.strip, file)):
            network = tuple(float(row[key]) for key in ("bw", "rtt", "loss"))
            of_site = loads[network].setdefault(row["website"], defaultdict(list))
            of_site[row["strategy"]].append(float(row["si"]))
    medians = [
        {
            site: {scheme: statistics.median(each) for scheme, each in by_scheme.items()}
            for site, by_scheme in loads[cell[:3]].items()
        }
        for cell in MEASURED
    ]
    rng, counts = random.Random(0), []  # noqa: S311 - not for secrets
    ratios: dict[str, list[float]] = defaultdict(list)
    for _ in range(_N_HALVES):
        n_close = 0
        for cell, by_site in zip(MEASURED, medians, strict=True):
            sites = rng.sample(sorted(by_site), len(by_site))
            half, other = ([by_site[site] for site in sites[at::2]] for at in (0, 1))
            n_close += sum(agrees(changes_of(half, s), changes_of(other, s)) for s in SCHEMES)
            own = [statistics.median(site[BASELINE] for site in each) for each in (half, other)]
            ratios[cell.title].append(own[0] / own[1])
        counts.append(n_close)
    return counts, ratios


def _print_halves(path: Path) -> None:
    counts, ratios = halves(path)
    tenths = statistics.quantiles(counts, n=10)
    print(f"two halves of the testbed's sites, {_N_HALVES:,} times: cells that are close,")
    print(f"median {tenths[4]:.0f} of 12, 10 to 90 per cent: {tenths[0]:.0f} to {tenths[8]:.0f}\n")
    rows = [
        (title, f"{100 * sum(abs(r - 1) <= INDEX_WITHIN / 100 for r in each) / len(each):.0f}")
        for title, each in ratios.items()
    ]
    heads = ("network", "Chrome's within 25 %, % of halves")
    print(Table([Column(head) for head in heads], rows))


def main(argv: list[str] | None = None) -> int:
    """Print a row per network and scheme, and how many of them are as close as they should be."""
    options = _parser().parse_args(argv)
    if options.testbed:
        _print_halves(options.testbed)
        return 0
    names = [name for given in options.pages for name in catalog.page_set(given) or (given,)]
    pages = selected(names, options.sites, options.half)
    draws = tuple(options.draw or (0,))
    loads = tuple(map(_setting, options.set))
    setting = Setting(options.think, options.scripts, loads, draws, options.metric)
    numbers = options.cell or range(len(MEASURED))
    jobs = [Job(page, number, setting) for number in numbers for page in pages]
    with ProcessPoolExecutor(max_workers=options.workers) as pool:
        found = dict(zip(jobs, pool.map(speed_indices, jobs, chunksize=4), strict=True))
    n_used = min(sum(bool(found[job]) for job in jobs if job.cell == n) for n in numbers)
    sizes = [h3sim.load_page(page).total_bytes / 1000 for page in pages]
    size = f"median {statistics.median(sizes):,.0f} kB"
    print(f"{len(pages)} pages of {' '.join(options.pages)}, {size}, {n_used} with a SpeedIndex")
    print(f"{setting}\n")
    rows, n_close = [], 0
    for number in numbers:
        cell = MEASURED[number]
        of_cell = [found[job] for job in jobs if job.cell == number and found[job]]
        own_ms = statistics.median(each[BASELINE] for each in of_cell)
        for scheme in SCHEMES:
            ours, theirs = changes_of(of_cell, scheme), cell.changes[scheme]
            n_close += agrees(theirs, ours)
            rows.append((
                cell.title, f"{cell.speed_index_ms:,.0f} / {own_ms:,.0f}", scheme,
                _shown(theirs), _shown(ours), "yes" if agrees(theirs, ours) else "no",
            ))  # fmt: skip
    heads = ("network", "Chrome's, ms", "scheme", "measured", "simulated", "close")
    print(Table([Column(head) for head in heads], rows))
    print(
        f"\n{n_close} of {len(rows)} are close; median (quartiles), sites worse / better, per cent"
    )
    return 0


def _setting(text: str) -> tuple[str, str | float]:
    key, _, value = text.partition("=")
    try:
        return key, float(value)
    except ValueError:
        return key, value


def _shown(changes: Changes) -> str:
    median, lower, upper, worse, better = changes
    return f"{median:+.1f} ({lower:+.1f} to {upper:+.1f}), {worse:.0f} / {better:.0f}"


def _parser() -> Parser:
    parser = Parser(
        prog="python -m validation.vgprio",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="example: python -m validation.vgprio --set queue_bdp=8 --half 1",
    )
    parser.add_argument(
        "--pages", nargs="+", default=["web"], metavar="SET", help="sets or pages (default: web)"
    )
    parser.add_argument(
        "--sites", type=int, default=DEFAULT_SITES, metavar="N",
        help="number of pages, those with the least hashes (default: %(default)s)",
    )  # fmt: skip
    parser.add_argument("--half", type=int, choices=(0, 1), help="take them from a half of the set")
    parser.add_argument("--cell", type=int, action="append", metavar="N", help="networks, from 0")
    parser.add_argument("--think", type=float, default=0.0, metavar="X", help="times think times")
    parser.add_argument(
        "--scripts", default="as recorded", choices=("head", "deferred"),
        help="all scripts of the document in its head, or deferred",
    )  # fmt: skip
    parser.add_argument(
        "--set", action="append", default=[], metavar="KEY=VALUE",
        help="another setting of loads, such as connections=per-host or cpu_slowdown=2",
    )  # fmt: skip
    parser.add_argument(
        "--draw", type=int, action="append", metavar="N",
        help="draw of what is unknown; of several the median counts (default: 0)",
    )  # fmt: skip
    parser.add_argument(
        "--metric", default="speed_index_ms", choices=("speed_index_ms", "fcp_ms"),
        help="what to compare with the measured SpeedIndex",
    )  # fmt: skip
    parser.add_argument("--testbed", type=Path, metavar="FILE", help="results.csv of COMSYS/VGPrio")
    parser.add_argument("--workers", type=int, default=2, metavar="N", help="processes")
    return parser


if __name__ == "__main__":
    sys.exit(main())
