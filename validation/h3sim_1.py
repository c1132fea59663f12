"""`make validate-h3sim-1`: how far h3sim-1 is from the optimum, also on pages that made no rule."""

from __future__ import annotations

import statistics
import sys
from dataclasses import replace
from itertools import groupby
from typing import TYPE_CHECKING, Any, NamedTuple

from tabulate import tabulate

import h3sim
from h3sim.cli.command import progress_bar
from h3sim.load import resolve, run_spec
from h3sim.page import Kind, site_of, split_by_site, synthetic, with_first_layout
from h3sim.schemes import Rule, scheme_from_dict, scheme_to_dict
from h3sim.study.statistics.intervals import mean_interval

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from h3sim.load import Load
    from h3sim.load.load import Which
    from h3sim.page import Page
    from h3sim.schemes import Scheme

SPLIT_SEED = 2026
FIRST_RULES = "preloaded fonts before layout"
"""As the rules were when the test half was loaded for the first time."""
_SCHEMES = ("h3sim-1", "chrome-h2", "chrome-eps", "firefox-eps", "safari-eps", "dfifo")
_KNOWING = ("bucket-html", "atf-first")
"""They know what no client does when it asks."""
_NETWORKS = ("cable", "4g", "sander-2mbps-100ms-2pct")
_SEEDS = range(3)
_MADE_UP = range(40)
"""Seeds of made-up pages, which nobody had looked at."""
_WHICH: tuple[Which, ...] = ("atf", "all")


class Site(NamedTuple):
    """Pages of one package, or one that stands alone."""

    name: str
    pages: tuple[Page, ...]


def halves(pages: Sequence[Page]) -> tuple[list[Site], list[Site]]:
    """Return the sites that the rules were made with, and those kept for the test."""
    training, kept = (
        [Site(name, tuple(of_site)) for name, of_site in groupby(some, key=site_of)]
        for some in split_by_site(pages, seed=SPLIT_SEED)
    )
    return training, kept


def reported(values: Sequence[float]) -> str:
    """Return the mean of sites with its interval.

    >>> reported([1.0, 1.2, 1.1, 1.3, 1.1, 1.2])
    '1.15 (1.06 to 1.25)'
    """
    low, high = mean_interval(values)
    mean = f"{statistics.fmean(values):.2f}"
    return mean if low is None or high is None else f"{mean} ({low:.2f} to {high:.2f})"


def regrets(sites: Sequence[Site], scheme: Scheme, which: Which) -> dict[str, float]:
    """Return the regret of each page, given the page."""
    found = {}
    for site in sites:
        for page in site.pages:
            load = h3sim.simulate(page, scheme=scheme)
            if load.byte_index_or_none(which) is not None:
                found[page.name] = load.byte_index(which) / _bound(load, which)
    return found


_BOUNDS: dict[tuple[str, Which], float] = {}


def _bound(load: Load, which: Which) -> float:
    key = load.page.name, which
    if key not in _BOUNDS:
        _BOUNDS[key] = load.lower_bound(which, given="page")
    return _BOUNDS[key]


def by_site(sites: Sequence[Site], values: dict[str, float]) -> list[float]:
    """Return the mean of each site that has a value."""
    groups = ([values[page.name] for page in site.pages if page.name in values] for site in sites)
    return [statistics.fmean(group) for group in groups if group]


def at_a_constant_rate(sites: Sequence[Site], schemes: Sequence[Scheme]) -> str:
    """Return the table of regrets."""
    rows = []
    for scheme in schemes:
        found = {which: regrets(sites, scheme, which) for which in _WHICH}
        worst = max(found["atf"], key=found["atf"].__getitem__)
        of_pages = statistics.fmean(found["atf"].values())
        means = (reported(by_site(sites, found[which])) for which in _WHICH)
        rows.append([scheme.name, *means, of_pages, found["atf"][worst], worst])
    heads = ["scheme", "above the fold", "all", "mean of pages", "worst", "page"]
    return tabulate(rows, heads, floatfmt=".2f")


def over_links(sites: Sequence[Site], progress: Callable[[int, int], None] | None) -> str:
    """Return how much faster h3sim-1 is than others, by network."""
    others = [h3sim.load_scheme(name) for name in ("chrome-eps", "chrome-h2", "firefox-eps")]
    ours = h3sim.load_scheme("h3sim-1")
    rows, done = [], 0
    total = len(_NETWORKS) * len(sites)
    for network in _NETWORKS:
        ratios: dict[tuple[str, Which], list[float]] = {}
        for site in sites:
            for which, name, ratio in _site_ratios(site, network, ours, others):
                ratios.setdefault((name, which), []).append(ratio)
            done += 1
            if progress is not None:
                progress(done, total)
        rows += [
            [network, scheme.name, *(reported(ratios[scheme.name, which]) for which in _WHICH)]
            for scheme in others
        ]
    return tabulate(rows, ["network", "than", "above the fold", "all"])


def _site_ratios(
    site: Site, network: str, ours: Scheme, others: Sequence[Scheme]
) -> list[tuple[Which, str, float]]:
    """Return the geometric mean over the pages and seeds of a site of ByteIndex ratios."""
    ratios: dict[tuple[Which, str], list[float]] = {}
    for page in site.pages:
        for seed in _SEEDS:
            config = h3sim.LoadConfig(network=network, seed=seed)
            mine = run_spec(resolve(page, ours, config))
            for scheme in others:
                load = run_spec(resolve(page, scheme, config))
                for which in _WHICH:
                    if which == "all" or not page.nothing_visible_reason:
                        ratio = load.byte_index(which) / mine.byte_index(which, sample_ms=None)
                        ratios.setdefault((which, scheme.name), []).append(ratio)
    return [(*key, statistics.geometric_mean(values)) for key, values in ratios.items()]


def ablations() -> list[Scheme]:
    """Return h3sim-1 with one thing taken away at a time."""
    ours = h3sim.load_scheme("h3sim-1")
    images, every = ("perhaps-seen", "unseen"), tuple(cls.name for cls in ours.classes)

    def but(name: str, *classes: str, without: str = "", **values: Any) -> Scheme:
        document: Any = scheme_to_dict(ours)
        document["rules"] = [rule for rule in document["rules"] if without not in rule]
        for class_name in classes:
            document["classes"][class_name] |= values
        return replace(scheme_from_dict(document), name=name)

    first = but(FIRST_RULES)
    early = Rule(class_name="before-layout", kinds=(Kind.FONT,), flags=(("preload", True),))
    return [
        replace(first, rules=(early, *first.rules)),
        but("never raised at layout", without="visible"),
        but("body scripts with those of the head", "scripts", urgency=1),
        but("body scripts behind images", "scripts", urgency=6),
        but("first images as others", without="first_images"),
        but("images share (i)", *images, incremental=True),
        but("all share (i)", *every, incremental=True),
        but("one urgency", *every, urgency=3),
    ]


def split_description(training: Sequence[Site], kept: Sequence[Site]) -> str:
    """Return which pages are in which half."""
    lines = [f"split by site, with seed {SPLIT_SEED}"]
    for title, sites in (("training half", training), ("test half", kept)):
        lines.append(f"{title}: {len(sites)} sites, {sum(len(site.pages) for site in sites)} pages")
        lines += [f"  {site.name}: {', '.join(page.name for page in site.pages)}" for site in sites]
    return "\n".join(lines)


def main(arguments: Sequence[str]) -> int:
    """Print the tables; with an argument "links" those over links, too; with "split" the halves."""
    pages = [h3sim.load_page(row.name) for row in h3sim.list_pages()]
    training, kept = halves([with_first_layout(page) for page in pages])
    if "split" in arguments:
        print(split_description(training, kept))
        return 0
    schemes = [h3sim.load_scheme(name) for name in (*_SCHEMES, *_KNOWING)]
    drawn = [with_first_layout(synthetic(seed=seed)) for seed in _MADE_UP]
    made_up = [Site(page.name, (page,)) for page in drawn]
    halves_and_more = (
        ("training half", training),
        ("test half", kept),
        ("synthetic pages", made_up),
    )
    ratio = "ratio to the lower bound at a constant rate"
    for title, sites in halves_and_more:
        n_pages = sum(len(site.pages) for site in sites)
        print(f"{ratio}, {title}: {len(sites)} sites, {n_pages} pages\n")
        print(at_a_constant_rate(sites, schemes), end="\n\n")
    print(f"{ratio}, test half, one rule changed at a time\n")
    print(at_a_constant_rate(kept, ablations()), end="\n\n")
    if "links" in arguments:
        print("ByteIndex of other schemes relative to h3sim-1 over links, test half\n")
        with progress_bar("site") as progress:
            print(over_links(kept, progress))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
