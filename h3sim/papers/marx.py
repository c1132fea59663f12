"""The figures of Marx 2019: speedups to round robin at a constant rate."""

from __future__ import annotations

import itertools
import math
import statistics
from typing import TYPE_CHECKING, Any

from h3sim.page.categories import SIZES, size_class
from h3sim.papers.findings import Estimate, Loads, mean, median, over_pages, share, spearman, tau

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


Figures = dict[str, Estimate]

_BASELINE = "rr"
_ALL, _ATF = "byte_index_sampled_all_ms", "byte_index_sampled_atf_ms"
"""As the paper has it: sampled every 100 ms."""
_COLUMNS = {"all": (_ALL, 0), "atf": (_ATF, 0), "1000k": (_ATF, 1000)}
"""The columns of Table 2: of what, and with which send buffer."""
_POOR = ("firefox", "wrr", "s+")
"""The schemes that the paper calls bad performers."""
_SAME = 1.01


def table_2(loads: Loads, paper: Mapping[str, float]) -> Figures:
    """Return mean speedups, how their order agrees with the paper's, and what stands out."""
    found: Figures = {}
    by_column = {name: _speedups(loads, *which) for name, which in _COLUMNS.items()}
    for name, speedups in by_column.items():
        means = {scheme: mean(each.values()) for scheme, each in speedups.items()}
        found |= {f"{name}.{scheme}": figure for scheme, figure in means.items()}
        found[f"greatest-gain.{name}"] = Estimate(max(means.values()).value - 1)
        found[f"tau.{name}"] = _tau(speedups, {s: paper.get(f"{name}.{s}") for s in speedups})
    found["least-mean"] = min(
        figure for name, figure in found.items() if name.split(".")[0] in _COLUMNS
    )
    by_page = [each for speedups in by_column.values() for each in speedups.values()]
    slower = [value < 1 for each in by_page for value in each.values()]
    found["slower-than-rr"] = Estimate(sum(slower) / len(slower))
    lowered = [
        found[f"1000k.{s}"].value < found[f"atf.{s}"].value
        for s in by_column["atf"]
        if s not in ("firefox", "s+")
    ]
    found["lowered-by-buffer"] = Estimate(sum(lowered))
    found["unequal-downloads"] = share(_unequal(loads))
    found["pages"] = Estimate(len(loads.pages))
    return found


def scatter(loads: Loads, _paper: Mapping[str, float]) -> Figures:
    """Return what Fig. 12 shows: speedups by size of page, the greatest, who is best where."""
    speedups = _speedups(loads, _ATF, 0)
    sizes = {row["page"]: row["page_bytes"] for row in loads.rows}
    shares = {row["page"]: row["page_atf_bytes"] / row["page_bytes"] for row in loads.rows}
    found: Figures = {}
    for name in SIZES:
        pages = [page for page, size in sizes.items() if size_class(size) == name]
        inside = [
            [by_page[page] for by_page in speedups.values() if page in by_page] for page in pages
        ]
        found[f"{name}.atf"] = mean([statistics.mean(values) for values in inside if values])
        found[f"{name}.pages"] = Estimate(len(pages))
        found[f"{name}.below-fold"] = mean([1 - shares[page] for page in pages if page in shares])
    found |= _what_helps(speedups, shares, sizes)
    greatest = {scheme: max(by_page.values()) for scheme, by_page in speedups.items()}
    good = [value for scheme, value in greatest.items() if scheme not in _POOR]
    found["least-greatest"] = Estimate(min(good))
    found["greatest-of-others"] = Estimate(max(greatest[s] for s in _POOR if s in greatest))
    found["greatest"] = Estimate(max(greatest.values()))
    return found | _best(speedups)


def buffers(loads: Loads, _paper: Mapping[str, float]) -> Figures:
    """Return what send buffers do to speedups above the fold, by how the buffer is filled."""
    found = _buffers(_filled(loads, "continuous"))
    in_bursts = _filled(loads, "when-empty")
    if len({row["send_buffer_kb"] for row in in_bursts.rows}) > 1:
        found |= {f"bursts.{name}": figure for name, figure in _buffers(in_bursts).items()}
    return found


def _filled(loads: Loads, model: str) -> Loads:
    """Return the loads without a buffer, and those whose buffer is filled as *model* has it."""
    return Loads(row for row in loads.rows if row.get("send_buffer_refill") in (None, model))


def _buffers(loads: Loads) -> Figures:
    """Return what buffers of one model do, also to the page of Davies and Meenan."""
    sizes = loads.distinct("send_buffer_kb")
    by_size = {size: _speedups(loads, _ATF, size, with_baseline=True) for size in sizes}
    n_bytes = {row["page"]: row["page_bytes"] for row in loads.rows}
    found: Figures = {}
    for size in sizes:
        changes = _by_page(
            by_size[size], by_size[0], lambda with_it, without: abs(with_it / without - 1)
        )
        found[f"change.{size:g}"] = median(changes.values())
        for name in SIZES:
            inside = [changes[page] for page in changes if size_class(n_bytes[page]) == name]
            found[f"change.{size:g}.{name}"] = median(inside)
        ratios = _by_page(by_size[size], by_size[0], lambda with_it, without: with_it / without)
        found[f"kept.{size:g}"] = mean(ratios.values())
        of_page = [by_page.get("davies-meenan") for by_page in by_size[size].values()]
        known = [value for value in of_page if value is not None]
        if known:
            found[f"davies-meenan.{size:g}"] = Estimate(max(known))
            found[f"lose-more.{size:g}"] = share(
                [value < ratios["davies-meenan"] for value in ratios.values()]
            )
    if "lose-more.1000" in found:
        found["lose-more"] = found["lose-more.1000"]
    largest = max(sizes)
    fifo = loads.where(scheme="fifo", send_buffer_kb=largest).medians(_ALL)
    found["as-fifo"] = share(
        [
            row[_ALL] == fifo[row["page"]]
            for row in loads.where(send_buffer_kb=largest).rows
            if row["page"] in fifo
        ]
    )
    return found


def one_page(loads: Loads, _paper: Mapping[str, float]) -> Figures:
    """Return Fig. 11: the ByteIndex above the fold of two schemes, and their ratio."""
    found = {f"byte-index.{row['scheme']}": Estimate(row[_ATF]) for row in loads.rows}
    ratio = found["byte-index.rr"].value / found["byte-index.bucket"].value
    return found | {"ratio": Estimate(ratio)}


def orders(loads: Loads, _paper: Mapping[str, float]) -> Figures:
    """Return Fig. 8: what bucket HTML makes earlier, and how alike four schemes are."""
    without = loads.where(send_buffer_kb=0)
    at = {
        scheme: {row["id"]: row["finished_ms"] for row in without.where(scheme=scheme).resources}
        for scheme in without.schemes
    }
    found = {
        name: Estimate(at["bucket-html"][resource] / at["bucket"][resource])
        for name, resource in (("document", "index.html"), ("font", "font.woff2"))
    }
    pairs = [
        ([*at[a].values()], [*at[b].values()])
        for a, b in itertools.combinations(("firefox", "p+", "s+", "spdyrr"), 2)
    ]
    found["alike.least-tau"] = Estimate(min(tau(a, b) for a, b in pairs))
    found["alike.same"] = Estimate(sum(a == b for a, b in pairs))
    return found


def jitter(loads: Loads, _paper: Mapping[str, float]) -> Figures:
    """Return Fig. 13: which share of packets is delivered with at least two others."""
    found: Figures = {}
    for scheme, transport in itertools.product(("rr", "fifo"), ("quic", "tcp")):
        rows = loads.where(scheme=scheme, transport=transport).rows
        threes = sum(row["hol_packets_in_threes"] for row in rows)
        found[f"threes.{scheme}.{transport}"] = Estimate(
            threes / sum(row["packets_sent"] for row in rows)
        )
    apart = abs(found["threes.fifo.tcp"].value - found["threes.fifo.quic"].value)
    return found | {"threes.fifo.difference": Estimate(apart)}


def case_study(loads: Loads, _paper: Mapping[str, float]) -> Figures:
    """Return the speedups above the fold of a single page."""
    found: Figures = {}
    for name, (column, send_buffer_kb) in _COLUMNS.items():
        if any(row["send_buffer_kb"] == send_buffer_kb for row in loads.rows):
            speedups = _speedups(loads, column, send_buffer_kb)
            found |= {f"{name}.{s}": Estimate(*by.values()) for s, by in speedups.items()}
    return found


def first_case_study(loads: Loads, paper: Mapping[str, float]) -> Figures:
    """Return the speedups of case study 1, and of groups of schemes."""
    found = case_study(loads, paper)
    return found | {
        "least-of-slow": min(found[f"atf.{s}"] for s in ("fifo", "firefox", "s+")),
        "least-of-sharing": min(found[f"atf.{s}"] for s in ("wrr", "p+", "spdyrr")),
        "least-of-knowing": min(found[f"atf.{s}"] for s in _KNOWING),
        "greatest-of-knowing": max(found[f"atf.{s}"] for s in _KNOWING),
    }


def second_case_study(loads: Loads, paper: Mapping[str, float]) -> Figures:
    """Return the speedups of case study 2, and the greatest of those that share."""
    found = case_study(loads, paper)
    return found | {"greatest-of-sharing": max(found[f"atf.{s}"] for s in _POOR)}


_KNOWING = ("bucket", "bucket-html", "zeroweight")
"""The schemes that know the hero image."""


def _speedups(
    loads: Loads, column: str, send_buffer_kb: float, *, with_baseline: bool = False
) -> dict[str, dict[str, float]]:
    """Return by scheme and page how much faster than rr without a buffer a load is."""
    base = loads.where(scheme=_BASELINE, send_buffer_kb=0).medians(column)
    found = {}
    for scheme in loads.schemes:
        if scheme == _BASELINE and not with_baseline:
            continue
        ours = loads.where(scheme=scheme, send_buffer_kb=send_buffer_kb).medians(column)
        found[scheme] = {page: base[page] / value for page, value in ours.items() if page in base}
    return found


def _tau(
    speedups: Mapping[str, Mapping[str, float]], paper: Mapping[str, float | None]
) -> Estimate:
    """Return how the order of mean speedups agrees with the paper's, pages being a sample."""
    theirs = {scheme: value for scheme, value in paper.items() if value is not None}
    pages = [*next(iter(speedups.values()))]
    rows = [[speedups[scheme][page] for scheme in theirs] for page in pages]

    def agreement(sample: Any) -> float:
        # To two digits, as the paper prints its own: what is equal there can be equal here.
        return tau([*theirs.values()], [round(float(value), 2) for value in sample.mean(axis=0)])

    return over_pages(rows, agreement)


def _best(speedups: Mapping[str, Mapping[str, float]]) -> Figures:
    """Return on how many pages one scheme is the best, most often, and on how many the worst."""
    pages = [*next(iter(speedups.values()))]
    best, worst = (
        {page: pick(by_page[page] for by_page in speedups.values()) for page in pages}
        for pick in (max, min)
    )
    shares = {s: [by_page[page] == best[page] for page in pages] for s, by_page in speedups.items()}
    most = max(shares, key=lambda scheme: sum(shares[scheme]))
    n_worst = sum(speedups[most][page] == worst[page] for page in pages)
    return {"best-on-most": share(shares[most]), "best-and-worst": Estimate(n_worst)}


def _what_helps(
    speedups: Mapping[str, Mapping[str, float]],
    shares: Mapping[str, float],
    sizes: Mapping[str, float],
) -> Figures:
    """Return how a page's mean speedup goes with its share above the fold, and with its size."""
    pages = [page for page in shares if all(page in by_page for by_page in speedups.values())]
    rows = [
        (statistics.mean(by_page[page] for by_page in speedups.values()), shares[page], sizes[page])
        for page in pages
    ]

    def rho(index: int) -> Estimate:
        return over_pages(rows, lambda sample: spearman([*sample[:, 0]], [*sample[:, index]]) or 0)

    return {
        "rho.above-fold": rho(1),
        "rho.size": rho(2),
        "rho.size-given-share": over_pages(rows, _rho_of_size_given_share),
    }


def _rho_of_size_given_share(sample: Any) -> float:
    """Return the partial rank correlation of speedup and size, once the share is known."""
    speedups, shares, sizes = ([*column] for column in sample.T)
    size, share_ = (spearman(speedups, column) or 0.0 for column in (sizes, shares))
    between = spearman(sizes, shares) or 0.0
    left = (1 - share_**2) * (1 - between**2)
    return (size - share_ * between) / math.sqrt(left) if left else 0.0


def _by_page(
    ours: Mapping[str, Mapping[str, float]], theirs: Mapping[str, Mapping[str, float]], how: Any
) -> dict[str, float]:
    """Return by page the mean over schemes, but for the baseline, of what *how* makes of both."""
    schemes = [scheme for scheme in ours if scheme != _BASELINE]
    return {
        page: statistics.mean(how(ours[s][page], theirs[s][page]) for s in schemes)
        for page in ours[schemes[0]]
    }


def _unequal(loads: Loads) -> Iterator[bool]:
    """Yield for each page whether schemes differ in when the last byte is there."""
    for _, of_page in loads.where(send_buffer_kb=0).split("page"):
        times_ms = [row["page_load_ms"] for row in of_page.rows]
        yield max(times_ms) > _SAME * min(times_ms)
