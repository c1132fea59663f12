"""`python -m validation.learning`: how much of the gap to the bound policies close on unseen sites.

It trains a linear policy on one half of the shipped sites, and loads those of the other half with
it, with schemes, and with an order of classes that is searched for each site. With `--write` the
tables go into docs/learning.md.
"""

from __future__ import annotations

import sys
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import h3sim
from h3sim import catalog
from h3sim.learn import LinearPolicy, SchedulingEnv, cross_entropy, evaluate
from h3sim.learn.policies import ranked
from h3sim.learn.scheduling_env import CLASSES, FEATURES
from h3sim.page import split_by_site
from h3sim.values.table import Column, Table
from h3sim.values.versions import build

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from h3sim.page import Page

PAGE = Path(__file__).parents[1] / "docs" / "learning.md"
BEGIN, END = "<!-- python -m validation.learning -->\n", "<!-- end of the table -->"
NETWORKS: dict[str, dict[str, Any]] = {
    "1.12 Mbit/s, no delay (Marx 2019)": {"network": "marx-2019"},
    "5 Mbit/s, RTT 40 ms": {"network": "marx-2019", "rate_mbps": 5, "rtt_ms": 40},
}
BASELINE = "chrome before quiche"
SCHEMES = ("rr", "fifo", "dfifo", "p+", "spdyrr", "zeroweight", "bucket-html", "h3sim-1")
_TRAINING = {"rounds": 8, "population": 24}
_SEARCH = {"rounds": 5, "population": 16}
_RESAMPLES = 2000
_BYTES_LEFT = FEATURES.index("bytes_left")


def ratios_of(ends: dict[str, dict[str, Any]]) -> NDArray[np.float64]:
    """Return the ratios to the bound."""
    return np.array([end["ratio"] for end in ends.values()])


def trained(pages: Sequence[Page]) -> LinearPolicy:
    """Return the linear policy with the least geometric mean ratio to the bound on *pages*."""
    envs = [SchedulingEnv(pages, **options) for options in NETWORKS.values()]

    def loss(weights: NDArray[np.float64]) -> float:
        policy = LinearPolicy(weights)
        return float(np.mean([np.log(ratios_of(evaluate(env, policy))).mean() for env in envs]))

    return LinearPolicy(cross_entropy(loss, len(FEATURES), **_TRAINING))


def searched(pages: Sequence[Page], options: dict[str, Any]) -> NDArray[np.float64]:
    """Return the ratio of each page with the best order of classes that a search of it finds."""
    env = SchedulingEnv(pages, action="classes", **options)

    def loss(scores: NDArray[np.float64], page: str) -> float:
        urgencies = ranked(scores)
        return float(evaluate(env, lambda _: urgencies, [page])[page]["ratio"])

    losses = (partial(loss, page=page) for page in env.pages)
    return np.array([one(cross_entropy(one, len(CLASSES), **_SEARCH)) for one in losses])


def of_scheme(pages: Sequence[Page], scheme: str, options: dict[str, Any]) -> NDArray[np.float64]:
    """Return the ratios of a scheme."""
    rows = h3sim.optimality(pages, schemes=scheme, given="page", executor="serial", **options).rows
    return np.array([row.optimality_ratio_atf for row in rows])


def closed(ratios: NDArray[np.float64], baseline: NDArray[np.float64]) -> str:
    """Return the share of the baseline's gap to the bound that is closed, with its interval.

    The gap is the mean logarithm of the ratios, as that of an arithmetic mean would be the gap of
    the worst page; the interval is a percentile bootstrap over pages.

    >>> closed(np.array([1.0, 2.0]), np.array([2.0, 4.0]))
    '67 % (50 to 100)'
    """
    drawn = np.random.default_rng(0).integers(len(ratios), size=(_RESAMPLES, len(ratios)))
    gaps, gaps_of_baseline = np.log(ratios), np.log(baseline)
    shares = 1 - gaps[drawn].mean(axis=1) / gaps_of_baseline[drawn].mean(axis=1)
    low, high = np.percentile(100 * shares, [2.5, 97.5])
    share = 100 * (1 - gaps.mean() / gaps_of_baseline.mean())
    return f"{share:.0f} % ({low:.0f} to {high:.0f})"


def speedup(ratios: NDArray[np.float64], baseline: NDArray[np.float64]) -> float:
    """Return the geometric mean of how much faster pages are."""
    return float(np.exp(np.log(baseline / ratios).mean()))


def table(test: Sequence[Page], policy: LinearPolicy, options: dict[str, Any]) -> Table[Any]:
    """Return the table of a network, worst first."""
    found = {scheme: of_scheme(test, scheme, options) for scheme in (BASELINE, *SCHEMES)}
    env = SchedulingEnv(test, **options)
    shortest = LinearPolicy(-1.0 * np.eye(len(FEATURES))[_BYTES_LEFT])
    found["shortest response first"] = ratios_of(evaluate(env, shortest))
    found["linear policy, trained on other sites"] = ratios_of(evaluate(env, policy))
    found["order of classes, searched for each site"] = searched(test, options)
    found["lower bound"] = np.ones(len(test))
    chrome, rr = found[BASELINE], found["rr"]
    rows = [
        (
            name,
            speedup(np.ones(len(test)), ratios),
            closed(ratios, chrome),
            speedup(ratios, rr),
            speedup(ratios, chrome),
        )
        for name, ratios in sorted(found.items(), key=lambda item: -np.log(item[1]).mean())
    ]
    ratio = Column.ratio("ratio to the bound")
    speedups = Column.ratio("speedup to rr"), Column.ratio("speedup to Chrome")
    return Table(["who decides", ratio, "of Chrome's gap closed", *speedups], rows)


def loads_per_second(pages: Sequence[Page]) -> float:
    """Return how many loads run in a second of CPU time, with a policy that decides at once."""
    env, shortest = SchedulingEnv(pages), LinearPolicy(-1.0 * np.eye(len(FEATURES))[_BYTES_LEFT])
    evaluate(env, shortest)  # bounds are computed once
    begun = time.process_time()
    evaluate(env, shortest)
    return len(pages) / (time.process_time() - begun)


def main(arguments: Sequence[str]) -> int:
    """Print the tables, or write them; with "speed" print how fast loads are."""
    # Split as for h3sim-1, whose rules come from the first half; then one page of each site.
    of_sites = catalog.page_set("sites") or ()
    train, test = (
        [page for page in half if page.name in of_sites]
        for half in split_by_site(h3sim.load_page(row.name) for row in h3sim.list_pages())
    )
    if "speed" in arguments:
        print(f"{loads_per_second([*train, *test]):.0f} loads a second of CPU time, {build()}")
        return 0
    policy = trained(train)
    text = ""
    for title, options in NETWORKS.items():
        rows = table(test, policy, options).to_markdown()
        text += f"{title}: {len(train)} sites to learn from, {len(test)} to test with\n\n{rows}\n\n"
    weights = ", ".join(
        f"{name} {weight:+.1f}" for name, weight in zip(FEATURES, policy.weights, strict=True)
    )
    text += f"Weights of the linear policy: {weights}.\n"
    if "--write" in arguments:
        before, _, rest = PAGE.read_text("utf-8").partition(BEGIN)
        PAGE.write_text(f"{before}{BEGIN}{text}{END}{rest.partition(END)[2]}", "utf-8")
    else:
        print(text)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
