"""`make validate-intervals`: how often an interval that is shown covers the truth.

Studies are made up whose true speedup is known: pages differ, and so do the seeds of each page. The
first table draws logarithms of pages; the second compares rows as `Results.compare` does, over any
axis, and holds the other intervals against what they promise; the third draws samples of the
shipped pages, whose mean over all of them is the truth. `--write` puts them into
docs/generated/coverage-of-intervals.md.
"""

from __future__ import annotations

import argparse
import math
import sys
from functools import cache, partial
from typing import TYPE_CHECKING, Any

from tabulate import tabulate

import h3sim
from h3sim.advice.search import race
from h3sim.study.design import StoppingRule
from h3sim.study.results import Results
from h3sim.study.statistics.intervals import mean_interval
from h3sim.values import rng
from tools.documented import put

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from random import Random


__all__ = ["CONTRASTS", "PAGES", "SPREADS", "coverage", "coverage_of", "main", "report"]

_STUDIES = 1000
_SEEDS = 3
_TRUE_LOG = math.log(1.2)
_SD, _SEED_SD = 0.2, 0.1
PAGES = (3, 5, 10, 15, 20, 40, 100)

SPREADS: dict[str, tuple[str, Callable[[Random], float]]] = {
    "uniform": ("0", lambda source: source.uniform(-1, 1) * math.sqrt(3)),
    "normal": ("0", lambda source: source.gauss(0, 1)),
    "long tails (Student, 3)": (
        "0",
        lambda source: source.gauss(0, 1) / math.sqrt(source.gammavariate(1.5, 2)),
    ),
    "exponential": ("2", lambda source: source.expovariate(1) - 1),
    "gamma (1/2)": ("2.8", lambda source: (source.gammavariate(0.5, 1) - 0.5) * math.sqrt(2)),
    "log-normal (1)": (
        "6.2",
        lambda source: (
            (source.lognormvariate(0, 1) - math.exp(0.5)) / math.sqrt((math.e - 1) * math.e)
        ),
    ),
    "one page in ten differs": ("2.7", lambda source: (-1 / 3, 3)[source.random() < 0.1]),
}
"""How pages or seeds differ: skewness, and a draw with mean 0 and standard deviation 1."""


def coverage(spread: str, pages: int, *, studies: int = _STUDIES) -> float:
    """Return the share of 95 % intervals that cover the speedup by which studies were made.

    A page's speedup has its own logarithm, of standard deviation 0.2, and each of its three seeds
    adds a normal one of 0.1; the study knows the mean over seeds.
    """
    source = rng.substream(pages, spread)
    _, drawn = SPREADS[spread]
    covered = 0
    for _ in range(studies):
        logs = []
        for _ in range(pages):
            own = _TRUE_LOG + _SD * drawn(source)
            logs.append(own + math.fsum(source.gauss(0, _SEED_SD) for _ in range(_SEEDS)) / _SEEDS)
        low, high = _ends(mean_interval(logs))
        covered += low <= _TRUE_LOG <= high
    return covered / studies


def _ends(interval: tuple[float, float] | tuple[None, None]) -> tuple[float, float]:
    """Return the ends of an interval of enough values."""
    low, high = interval
    assert low is not None  # noqa: S101
    assert high is not None  # noqa: S101
    return low, high


_NETWORKS = ("cable", "4g")


def _rows(source: Random, pages: int, seeds: int) -> list[dict[str, Any]]:
    """Return the rows of a study of two networks, transports and schemes.

    QUIC is faster than TCP, and fifo than rr, by a logarithm of its own for each page, around the
    true one; half of that is the page's, half the network's with it. Seeds add theirs.
    """
    rows = []
    for page in range(pages):
        common = {axis: source.gauss(0, _SD) for axis in ("transport", "scheme")}
        for network in _NETWORKS:
            gain = {
                axis: _TRUE_LOG + (common[axis] + source.gauss(0, _SD)) / math.sqrt(2)
                for axis in common
            }
            rows += [
                {
                    "page": f"page {page}",
                    "network": network,
                    "transport": transport,
                    "scheme": scheme,
                    "seed": seed,
                    "ms": math.exp(
                        source.gauss(5, _SEED_SD)
                        - gain["transport"] * (transport == "quic")
                        - gain["scheme"] * (scheme == "fifo")
                    ),
                }
                for transport in ("tcp", "quic")
                for scheme in ("rr", "fifo")
                for seed in range(seeds)
            ]
    return rows


_AXES = ("page", "network", "transport", "scheme", "seed")


def _contrast(source: Random, *, pages: int, seeds: int = 1, **how: Any) -> list[bool]:
    """Return whether each interval of a comparison covers the true speedup."""
    results = Results.of(_rows(source, pages, seeds), axes=_AXES)
    found = results.compare(value="ms", **how)
    rows = [row for row in found if row.geometric != 1]
    return [row.low <= math.exp(_TRUE_LOG) <= row.high for row in rows]


def _one_page(source: Random, *, seeds: int, edited: bool) -> list[bool]:
    """Return whether the interval over seeds of one page, or of a page and its edit, covers."""
    rows = []
    for seed in range(seeds):
        for is_new in (False, True):
            log = source.gauss(5, _SEED_SD) - _TRUE_LOG * is_new
            row = {"page": "page", "scheme": "rr", "seed": seed, "ms": math.exp(log)}
            rows.append(row | ({"page": f"{is_new}"} if edited else {"scheme": f"{is_new}"}))
    results = Results.of(rows, axes=["page" if edited else "scheme", "seed"])
    over: dict[str, Any] = {"over": "page"} if edited else {}
    found = results.compare("False", value="ms", **over)
    return [row.low <= math.exp(_TRUE_LOG) <= row.high for row in found if row.geometric != 1]


def _tau(source: Random, *, n: int) -> list[bool]:
    """Return whether the interval of Kendall's tau covers that of two normal columns."""
    rho = 0.5
    rows = []
    for _ in range(n):
        x = source.gauss(0, 1)
        rows.append({"x": x, "y": rho * x + math.sqrt(1 - rho**2) * source.gauss(0, 1)})
    found = Results.of(rows).correlation("x", "y")
    # For normal columns tau is 2/pi arcsin(rho) (Greiner 1909).
    return [found.tau_low <= 2 / math.pi * math.asin(rho) <= found.tau_high]  # type: ignore[operator]


def _sequential(source: Random, *, spread: str, width: float) -> list[bool]:
    """Return whether the interval at which seeds stop being added covers."""
    rule, logs = StoppingRule(width=width), list[float]()
    _, drawn = SPREADS[spread]
    low = high = math.nan
    for n_seeds in rule.looks:
        logs += (_TRUE_LOG + _SEED_SD * drawn(source) for _ in range(n_seeds - len(logs)))
        low, high = _ends(mean_interval(logs, 1 - rule.level))
        if rule.is_met(math.exp(low), math.exp(high), n_seeds):
            break
    return [low <= _TRUE_LOG <= high]


def _race(source: Random, *, schemes: int, step: float) -> list[bool]:
    """Return whether all intervals that a race ends with cover, each what its arm is behind by."""
    means = [step * arm for arm in range(schemes)]

    def measure(pairs: Sequence[tuple[int, int]]) -> list[float]:
        return [source.gauss(means[arm], _SEED_SD) for arm, _ in pairs]

    found = race(schemes, measure, 30, is_random=True)
    return [
        all(
            row.low <= means[row.arm] - means[found.best] <= row.high
            for row in found.rows
            if row.low is not None and row.high is not None
        )
    ]


_OVER: dict[str, Any] = {"over": "transport", "baseline": "tcp"}
_HOW: dict[str, dict[str, Any]] = {
    "schemes, pooled over networks and transports": {
        "baseline": "rr",
        "pool": ("network", "transport"),
    },
    "transports by network and scheme": {**_OVER, "by": ("network", "scheme")},
    "transports pooled over networks, by scheme": {
        **_OVER,
        "by": ("scheme",),
        "pool": ("network",),
    },
}
CONTRASTS: dict[str, Callable[[Random], list[bool]]] = {
    **{
        f"{reported}, {pages} pages": partial(_contrast, pages=pages, **how)
        for reported, how in _HOW.items()
        for pages in (3, 5, 10)
    },
    **{
        f"{reported}, {seeds} seeds": partial(_one_page, seeds=seeds, edited=edited)
        for reported, edited in {"schemes of one page": False, "a page and its edit": True}.items()
        for seeds in (3, 10, 30)
    },
    **{f"Kendall's tau, {n} rows": partial(_tau, n=n) for n in (10, 30, 100)},
    **{
        f"seeds added until {width:.0%} wide, {label}": partial(
            _sequential, spread=spread, width=width
        )
        for spread, label in {
            "normal": "normal",
            "exponential": "exponential",
            "one page in ten differs": "one in ten differs",
        }.items()
        for width in (0.05, 0.1, 0.2)
    },
    **{
        f"search, {n} {reported} schemes, all intervals at once": partial(
            _race, schemes=n, step=step
        )
        for reported, step in {"different": 0.02, "equal": 0.0}.items()
        for n in (2, 6)
    },
}
"""Every other interval that is shown: whether those of one made-up study cover."""


def coverage_of(name: str, *, intervals: int = _STUDIES) -> float:
    """Return the share of so many 95 % intervals of that kind that cover."""
    source, covered = rng.substream(0, name), list[bool]()
    while len(covered) < intervals:  # one study may have several intervals
        covered += CONTRASTS[name](source)
    return sum(covered) / len(covered)


_SAMPLED = ("fifo", "p+", "bucket-html")
_SAMPLES = (5, 10, 20, 40)


@cache
def _page_logs() -> dict[str, list[float]]:
    """Return the logarithm of the speedup over rr of each shipped page, by scheme."""
    results = h3sim.sweep("corpus", schemes=["rr", *_SAMPLED], progress=False)
    value = "byte_index_all_ms"
    times: dict[tuple[str, str], float] = {
        (row["page"], row["scheme"]): row[value] for row in results if row.get(value)
    }
    return {
        scheme: [
            math.log(times[page, "rr"] / times[page, scheme]) for page, of in times if of == "rr"
        ]
        for scheme in _SAMPLED
    }


def _sample_coverage(scheme: str, pages: int, studies: int) -> float:
    """Return the share of intervals of samples of pages that cover the mean over all of them."""
    logs, source = _page_logs()[scheme], rng.substream(pages, scheme)
    truth, covered = math.fsum(logs) / len(logs), 0
    for _ in range(studies):
        low, high = _ends(mean_interval(source.choices(logs, k=pages)))
        covered += low <= truth <= high
    return covered / studies


def _skewness(values: Sequence[float]) -> float:
    mean = math.fsum(values) / len(values)
    spread = math.fsum((value - mean) ** 2 for value in values) / len(values)
    third = math.fsum((value - mean) ** 3 for value in values) / len(values)
    return third / math.pow(spread, 1.5)


def report(studies: int = _STUDIES) -> str:
    """Return a table of coverages, by how pages differ and how many there are."""
    rows = [
        (
            spread,
            skewness,
            *(f"{100 * coverage(spread, n, studies=studies):.1f}" for n in PAGES),
        )
        for spread, (skewness, _) in SPREADS.items()
    ]
    headers = ("logarithms of pages", "skewness", *(f"{n} pages" for n in PAGES))
    title = f"% of {studies:,} intervals of 95 % that cover\n\n"
    align = ("left", "right", *["right"] * len(PAGES))
    return title + tabulate(rows, headers, disable_numparse=True, colalign=align)


def other_reports(studies: int = _STUDIES) -> str:
    """Return the tables of all other intervals, and of samples of shipped pages."""
    others = [(name, f"{100 * coverage_of(name, intervals=studies):.1f}") for name in CONTRASTS]
    sampled = [
        (
            scheme,
            f"{_skewness(_page_logs()[scheme]):.1f}",
            *(f"{100 * _sample_coverage(scheme, n, studies):.1f}" for n in _SAMPLES),
        )
        for scheme in _SAMPLED
    ]
    headers = ("speedup over rr", "skewness", *(f"{n} pages" for n in _SAMPLES))
    first = tabulate(
        others,
        (f"interval, {studies:,} of each kind", "% that cover"),
        tablefmt="github",
        disable_numparse=True,
        colalign=("left", "right"),
    )
    second = tabulate(
        sampled,
        headers,
        tablefmt="github",
        disable_numparse=True,
        colalign=("left", *["right"] * (1 + len(_SAMPLES))),
    )
    return f"{first}\n\n{second}"


def main() -> int:
    """Print the tables, or write those of contrasts and shipped pages."""
    parser = argparse.ArgumentParser(prog="python -m validation.intervals")
    parser.add_argument("studies", nargs="?", type=int, default=_STUDIES)
    parser.add_argument(
        "--write", action="store_true", help="write into docs/generated/coverage-of-intervals.md"
    )
    options = parser.parse_args()
    text = other_reports(options.studies)
    if not options.write:
        sys.stdout.write(f"{report(options.studies)}\n\n{text}\n")
        return 0
    put("intervals", f"\n{text}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
