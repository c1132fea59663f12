"""The figures of Marx 2019: speedups to round robin at a constant rate."""

from __future__ import annotations

import itertools
import math
import statistics
from typing import TYPE_CHECKING, Any

from h3sim.page.categories import SIZES, size_class
from h3sim.papers.estimates import (
    Estimate,
    Loads,
    combined,
    mean,
    median,
    over_groups,
    over_pages,
    share,
    spearman,
    tau,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence


Figures = dict[str, Estimate]

_BASELINE = "rr"
"""Scheme that speedups are relative to."""
_ALL, _ATF = "byte_index_sampled_all_ms", "byte_index_sampled_atf_ms"
"""Columns of ByteIndexes that are sampled every 100 ms, as in the paper."""
_COLUMNS = {"all": (_ALL, 0), "atf": (_ATF, 0), "1000k": (_ATF, 1000)}
"""Columns of Table 2: that of the loads, and their send buffer in kB."""
_BUFFER_BYTES = 1_000_000
"""Size of Table 2's send buffer."""
_POOR_SCHEMES = ("firefox", "wrr", "s+")
"""The schemes that the paper calls bad performers."""
_MAX_EQUAL_RATIO = 1.01
"""Largest ratio of download times that count as equal."""


def table_2(loads: Loads, paper: Mapping[str, float]) -> Figures:
    """Return mean speedups, Kendall's tau with the paper's order, and extreme speedups."""
    figures: Figures = {}
    by_column = {
        name: _speedups(loads, column, send_buffer_kb)
        for name, (column, send_buffer_kb) in _COLUMNS.items()
    }
    all_means: list[Estimate] = []
    for name, speedups in by_column.items():
        means = {scheme: mean(by_page.values()) for scheme, by_page in speedups.items()}
        all_means += means.values()
        figures |= {f"{name}.{scheme}": figure for scheme, figure in means.items()}
        figures[f"greatest-gain.{name}"] = combined(_gain, *means.values())
        figures[f"spread.{name}"] = combined(_spread, *means.values())
        figures[f"tau.{name}"] = _tau(speedups, {s: paper.get(f"{name}.{s}") for s in speedups})
    figures["least-mean"] = combined(min, *all_means)
    is_slower: dict[str, list[float]] = {}
    for speedups in by_column.values():
        for by_page in speedups.values():
            for page, value in by_page.items():
                is_slower.setdefault(page, []).append(value < 1)
    figures["slower-than-rr"] = over_groups([*is_slower.values()], statistics.fmean)
    others = [scheme for scheme in by_column["atf"] if scheme not in ("firefox", "s+")]
    with_and_without = [figures[f"{name}.{s}"] for name in ("1000k", "atf") for s in others]
    figures["lowered-by-buffer"] = combined(_n_lowered, *with_and_without)
    figures["unequal-downloads"] = share(_unequal_downloads(loads))
    figures["pages"] = Estimate(len(loads.pages))
    page_bytes = {row["page"]: row["page_bytes"] for row in loads.rows}
    figures["pages-that-fit"] = share(n_bytes <= _BUFFER_BYTES for n_bytes in page_bytes.values())
    return figures


def _spread(*means: float) -> float:
    return max(means) - min(means)


def _gain(*means: float) -> float:
    return max(means) - 1


def _n_lowered(*means: float) -> float:
    """Return how many of the first half of *means* are lower than that of the second half."""
    half = len(means) // 2
    return sum(one < other for one, other in zip(means[:half], means[half:], strict=True))


def scatter(loads: Loads, _paper: Mapping[str, float]) -> Figures:
    """Return the figures of Fig. 12: speedups by size of page, the greatest, the best schemes."""
    speedups = _speedups(loads, _ATF, 0)
    sizes = {row["page"]: row["page_bytes"] for row in loads.rows}
    shares = {row["page"]: row["page_atf_bytes"] / row["page_bytes"] for row in loads.rows}
    figures: Figures = {}
    for name in SIZES:
        pages = [page for page, size in sizes.items() if size_class(size) == name]
        of_pages = [
            [by_page[page] for by_page in speedups.values() if page in by_page] for page in pages
        ]
        figures[f"{name}.atf"] = mean([statistics.mean(values) for values in of_pages if values])
        figures[f"{name}.pages"] = Estimate(len(pages))
        figures[f"{name}.below-fold"] = mean([1 - shares[page] for page in pages if page in shares])
    figures |= _speedup_correlations(speedups, shares, sizes)
    good, poor = (
        [by_page for scheme, by_page in speedups.items() if (scheme in _POOR_SCHEMES) is is_poor]
        for is_poor in (False, True)
    )
    figures["least-greatest"] = over_pages(
        _page_rows(good), lambda sample: float(sample.max(axis=0).min())
    )
    figures["greatest-of-others"] = over_pages(
        _page_rows(poor), lambda sample: float(sample.max(axis=0).max())
    )
    # "Up to": that one page reaches it is enough, whatever others do.
    figures["greatest"] = Estimate(max(max(by_page.values()) for by_page in speedups.values()))
    return figures | _best_scheme(speedups)


def _page_rows(speedups: Sequence[Mapping[str, float]]) -> list[list[float]]:
    """Return a row per page, with its speedup under each scheme."""
    first, *_ = speedups
    return [[by_page[page] for by_page in speedups] for page in first]


def buffers(loads: Loads, _paper: Mapping[str, float]) -> Figures:
    """Return the effect of send buffers on speedups above the fold, by how they are filled."""
    figures = _buffer_figures(_with_refill(loads, "continuous"))
    in_bursts = _with_refill(loads, "when-empty")
    if len(in_bursts.distinct("send_buffer_kb")) > 1:
        figures |= {f"bursts.{name}": figure for name, figure in _buffer_figures(in_bursts).items()}
    return figures


def _with_refill(loads: Loads, refill: str) -> Loads:
    """Return the loads without a buffer, and those whose buffer has this *refill*."""
    return Loads(row for row in loads.rows if row.get("send_buffer_refill") in (None, refill))


def _buffer_figures(loads: Loads) -> Figures:
    """Return the effect of buffers on all pages, by size, and on that of Davies and Meenan."""
    buffers_kb = loads.distinct("send_buffer_kb")
    by_buffer = {kb: _speedups(loads, _ATF, kb, with_baseline=True) for kb in buffers_kb}
    page_bytes = {row["page"]: row["page_bytes"] for row in loads.rows}
    figures: Figures = {}
    for kb in buffers_kb:
        changes = _mean_over_schemes(
            by_buffer[kb], by_buffer[0], lambda buffered, unbuffered: abs(buffered / unbuffered - 1)
        )
        figures[f"change.{kb:g}"] = median(changes.values())
        for name in SIZES:
            of_size = [changes[page] for page in changes if size_class(page_bytes[page]) == name]
            figures[f"change.{kb:g}.{name}"] = median(of_size)
        ratios = _mean_over_schemes(
            by_buffer[kb], by_buffer[0], lambda buffered, unbuffered: buffered / unbuffered
        )
        figures[f"kept.{kb:g}"] = mean(ratios.values())
        of_page = [by_page.get("davies-meenan") for by_page in by_buffer[kb].values()]
        known = [value for value in of_page if value is not None]
        if known:
            figures[f"davies-meenan.{kb:g}"] = Estimate(max(known))
            figures[f"lose-more.{kb:g}"] = share(
                [value < ratios["davies-meenan"] for value in ratios.values()]
            )
    if "lose-more.1000" in figures:
        figures["lose-more"] = figures["lose-more.1000"]
    largest_kb = max(buffers_kb)
    fifo = loads.where(scheme="fifo", send_buffer_kb=largest_kb).medians(_ALL)
    figures["as-fifo"] = over_groups(
        [
            [row[_ALL] == fifo[page] for row in of_page.rows]
            for page, of_page in loads.where(send_buffer_kb=largest_kb).split("page")
            if page in fifo
        ],
        statistics.fmean,
    )
    return figures


def one_page(loads: Loads, _paper: Mapping[str, float]) -> Figures:
    """Return the figures of Fig. 11: the ByteIndex above the fold of two schemes, their ratio."""
    figures = {f"byte-index.{row['scheme']}": Estimate(row[_ATF]) for row in loads.rows}
    figures |= {f"load.{row['scheme']}": Estimate(row["page_load_ms"]) for row in loads.rows}
    ratio = figures["byte-index.rr"].value / figures["byte-index.bucket"].value
    return figures | {"ratio": Estimate(ratio)}


def orders(loads: Loads, _paper: Mapping[str, float]) -> Figures:
    """Return the figures of Fig. 8: the effect of "bucket-html", and the order of four schemes."""
    unbuffered = loads.where(send_buffer_kb=0)
    finished_ms = {
        scheme: {row["id"]: row["finished_ms"] for row in unbuffered.where(scheme=scheme).resources}
        for scheme in unbuffered.schemes
    }
    figures = {
        name: Estimate(finished_ms["bucket-html"][resource] / finished_ms["bucket"][resource])
        for name, resource in (("document", "index.html"), ("font", "font.woff2"))
    }
    pairs = [
        ([*finished_ms[one].values()], [*finished_ms[other].values()])
        for one, other in itertools.combinations(("firefox", "p+", "s+", "spdyrr"), 2)
    ]
    figures["alike.least-tau"] = Estimate(min(tau(one, other) for one, other in pairs))
    figures["alike.same"] = Estimate(sum(one == other for one, other in pairs))
    return figures


def jitter(loads: Loads, _paper: Mapping[str, float]) -> Figures:
    """Return the figures of Fig. 13: the share of packets delivered with at least two others."""
    figures: Figures = {}
    for scheme, transport in itertools.product(("rr", "fifo"), ("quic", "tcp")):
        loads_of = loads.where(scheme=scheme, transport=transport)
        rows = [(row["hol_packets_in_threes"], row["packets_sent"]) for row in loads_of.rows]
        # The page is one; its seeds are drawn.
        figures[f"threes.{scheme}.{transport}"] = over_pages(rows, _ratio_of_sums)
    difference = combined(_spread, figures["threes.fifo.tcp"], figures["threes.fifo.quic"])
    return figures | {"threes.fifo.difference": difference}


def _ratio_of_sums(rows: Any) -> float:
    n_in_threes, n_sent = rows.sum(axis=0)
    return float(n_in_threes / n_sent)


def case_study(loads: Loads, _paper: Mapping[str, float]) -> Figures:
    """Return the speedups above the fold of a single page."""
    figures: Figures = {}
    for name, (column, send_buffer_kb) in _COLUMNS.items():
        if any(row["send_buffer_kb"] == send_buffer_kb for row in loads.rows):
            for scheme, by_page in _speedups(loads, column, send_buffer_kb).items():
                (speedup,) = by_page.values()
                figures[f"{name}.{scheme}"] = Estimate(speedup)
    return figures


def first_case_study(loads: Loads, paper: Mapping[str, float]) -> Figures:
    """Return the speedups of case study 1, and of groups of schemes."""
    figures = case_study(loads, paper)
    return figures | {
        "least-of-slow": min(figures[f"atf.{s}"] for s in ("fifo", "firefox", "s+")),
        "least-of-sharing": min(figures[f"atf.{s}"] for s in ("wrr", "p+", "spdyrr")),
        "least-of-knowing": min(figures[f"atf.{s}"] for s in _HERO_SCHEMES),
        "greatest-of-knowing": max(figures[f"atf.{s}"] for s in _HERO_SCHEMES),
    }


def second_case_study(loads: Loads, paper: Mapping[str, float]) -> Figures:
    """Return the speedups of case study 2, and the greatest of those that share."""
    figures = case_study(loads, paper)
    return figures | {"greatest-of-sharing": max(figures[f"atf.{s}"] for s in _POOR_SCHEMES)}


_HERO_SCHEMES = ("bucket", "bucket-html", "zeroweight")
"""The schemes that know the hero image."""


def _speedups(
    loads: Loads, column: str, send_buffer_kb: float, *, with_baseline: bool = False
) -> dict[str, dict[str, float]]:
    """Return the ratio of "rr" without a buffer to each load, by scheme and page."""
    base = loads.where(scheme=_BASELINE, send_buffer_kb=0).medians(column)
    speedups = {}
    for scheme in loads.schemes:
        if scheme == _BASELINE and not with_baseline:
            continue
        medians = loads.where(scheme=scheme, send_buffer_kb=send_buffer_kb).medians(column)
        speedups[scheme] = {
            page: base[page] / value for page, value in medians.items() if page in base
        }
    return speedups


def _tau(
    speedups: Mapping[str, Mapping[str, float]], paper: Mapping[str, float | None]
) -> Estimate:
    """Return Kendall's tau of the order of mean speedups and the paper's."""
    published = {scheme: value for scheme, value in paper.items() if value is not None}
    pages = [*next(iter(speedups.values()))]
    rows = [[speedups[scheme][page] for scheme in published] for page in pages]

    def agreement(sample: Any) -> float:
        # Rounded to two digits as in the paper, so that means can be equal as they are there.
        means = [round(float(value), 2) for value in sample.mean(axis=0)]
        return tau([*published.values()], means)

    return over_pages(rows, agreement)


def _best_scheme(speedups: Mapping[str, Mapping[str, float]]) -> Figures:
    """Return how often the scheme that is best on most pages is the best and the worst."""
    pages = [*next(iter(speedups.values()))]
    best, worst = (
        {page: extreme(by_page[page] for by_page in speedups.values()) for page in pages}
        for extreme in (max, min)
    )
    is_best = {
        scheme: [by_page[page] == best[page] for page in pages]
        for scheme, by_page in speedups.items()
    }
    winner = max(is_best, key=lambda scheme: sum(is_best[scheme]))
    rows = [[is_best[scheme][index] for scheme in is_best] for index in range(len(pages))]
    n_worst = sum(speedups[winner][page] == worst[page] for page in pages)
    return {
        "best-on-most": over_pages(rows, lambda sample: float(sample.mean(axis=0).max())),
        # "Can be": one such page is enough.
        "best-and-worst": Estimate(n_worst),
    }


def _speedup_correlations(
    speedups: Mapping[str, Mapping[str, float]],
    shares: Mapping[str, float],
    sizes: Mapping[str, float],
) -> Figures:
    """Return rank correlations of a page's mean speedup with its share above the fold, and size."""
    pages = [page for page in shares if all(page in by_page for by_page in speedups.values())]
    rows = [
        (statistics.mean(by_page[page] for by_page in speedups.values()), shares[page], sizes[page])
        for page in pages
    ]

    def rho_of_share(sample: Any) -> float:
        mean_speedups, page_shares, _ = sample.T
        return spearman([*mean_speedups], [*page_shares]) or 0

    def rho_of_size(sample: Any) -> float:
        mean_speedups, _, page_sizes = sample.T
        return spearman([*mean_speedups], [*page_sizes]) or 0

    return {
        "rho.above-fold": over_pages(rows, rho_of_share),
        "rho.size": over_pages(rows, rho_of_size),
        "rho.size-given-share": over_pages(rows, _rho_of_size_given_share),
    }


def _rho_of_size_given_share(sample: Any) -> float:
    """Return the partial rank correlation of speedup and size, given the share."""
    speedups, shares, sizes = ([*column] for column in sample.T)
    rho_size = spearman(speedups, sizes) or 0.0
    rho_share = spearman(speedups, shares) or 0.0
    rho_size_share = spearman(sizes, shares) or 0.0
    unexplained = (1 - rho_share**2) * (1 - rho_size_share**2)
    if not unexplained:
        return 0.0
    return (rho_size - rho_share * rho_size_share) / math.sqrt(unexplained)


def _mean_over_schemes(
    speedups: Mapping[str, Mapping[str, float]],
    base: Mapping[str, Mapping[str, float]],
    compare: Callable[[float, float], float],
) -> dict[str, float]:
    """Return, by page, the mean over all schemes but the baseline of the *compare* of both."""
    schemes = [scheme for scheme in speedups if scheme != _BASELINE]
    first, *_ = schemes
    return {
        page: statistics.mean(compare(speedups[s][page], base[s][page]) for s in schemes)
        for page in speedups[first]
    }


def _unequal_downloads(loads: Loads) -> Iterator[bool]:
    """Yield for each page whether its schemes have different download times."""
    for _, of_page in loads.where(send_buffer_kb=0).split("page"):
        times_ms = [row["page_load_ms"] for row in of_page.rows]
        yield max(times_ms) > _MAX_EQUAL_RATIO * min(times_ms)
