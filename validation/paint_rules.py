"""`make validate-paint-rules`: rules of a client for what is seen, over links, and their gap.

Rules that know only what a client knows are searched for on one half of the sites
(`validation.h3sim_1.halves`), written down as a scheme, and judged on the other half, on made-up
pages and with other servers. What they lack to the bounds is then split up, by knowledge that is
given to them, and by impairments that are taken from the link.
"""

from __future__ import annotations

import argparse
import functools
import json
import math
import random
import statistics
import sys
import tomllib
from collections import defaultdict
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from tabulate import tabulate

import h3sim
from h3sim.catalog import read_scheme
from h3sim.catalog.resources import root
from h3sim.cli.command import progress_bar
from h3sim.page import ResourceState, synthetic
from h3sim.page.transforms import with_early_hints
from h3sim.reporting.output import save_figure, set_alt_text
from h3sim.schemes import scheme_from_dict
from h3sim.values.units import NS_PER_S
from validation.estimates import Estimate, estimate
from validation.h3sim_1 import Site, halves
from validation.paint_bounds import marked_for_paints

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from h3sim.load import Load
    from h3sim.page import Page
    from h3sim.schemes import Scheme
    from h3sim.transport import TransportProfile

NETWORKS = ("cable", "4g", "wifi-lossy", "fast-3g")
HOLD_BACKS = ("chrome-118", "safari", "off")
"""What a client holds back while a document blocks painting, each as a browser does."""
METRICS = {
    "largest_paint_ms": "LCP",
    "speed_index_ms": "SpeedIndex",
    "byte_index_atf_ms": "ByteIndex above the fold",
    "byte_index_all_ms": "ByteIndex",
}
_SEEN = ("largest_paint_ms", "speed_index_ms")
_OF_BYTES = 0.1
"""The weight of the ByteIndex above the fold beside 1 for each paint: it decides between equals."""
_FROZEN = "h3sim-paint"
_TEST_SEEDS = (101, 102)
"""Seeds of losses with which no rule was searched for."""
_MADE_UP = range(1000, 1024)
"""Seeds of made-up pages that nothing was chosen with."""

# What a client knows of a request when it sends it, or once there is a layout: a class per line,
# the first that matches, with the urgency that h3sim-1 gives it.
_RULES: tuple[tuple[str, dict[str, Any], int], ...] = (
    ("root", {"root": True}, 0),
    ("low", {"fetchpriority": "low"}, 6),
    ("image-high", {"kind": "image", "fetchpriority": "high"}, 0),
    ("visible", {"kind": ["image", "media"], "visible": True}, 2),
    ("script-preload", {"kind": "script", "preload": True}, 5),
    ("script-defer", {"kind": "script", "defer": True}, 6),
    ("script-head", {"kind": "script", "in_head": True, "async": False}, 1),
    ("script-async", {"kind": "script", "async": True}, 3),
    ("script-late", {"kind": "script", "after_first_image": True}, 3),
    ("script-body", {"kind": "script"}, 3),
    ("font-preload", {"kind": "font", "preload": True}, 3),
    ("font", {"kind": "font"}, 2),
    ("sheet-other-media", {"kind": "stylesheet", "other_media": True}, 2),
    ("sheet-head", {"kind": "stylesheet", "in_head": True}, 2),
    ("sheet", {"kind": "stylesheet"}, 2),
    ("image-first", {"kind": "image", "first_images": None}, 4),
    ("image", {"kind": ["image", "media", "document"]}, 5),
    ("other", {}, 7),
)
_MAY_SHARE = ("root", "visible", "image-first", "image", "other")
_N_FIRST = (1, 2, 3, 5, 10, 20)
_LAST = 7
_CLEARLY = 0.002
"""By how much a search from elsewhere must be better, as a sum of two logarithms of paints."""
_N_STARTS = 4
"""Searches that begin with random urgencies, on top of the one that begins with h3sim-1."""


class Rules(NamedTuple):
    """Urgencies by class, what shares, what is held back, and how many images are the first."""

    urgencies: Mapping[str, int]
    incremental: frozenset[str]
    hold_back: str
    n_first: int

    def document(self) -> str:
        """Return the scheme as a file."""
        lines = [*_HEAD, f'tight_mode = "{self.hold_back}"', 'otherwise = "other"', ""]
        for cls, urgency in self.urgencies.items():
            lines += [f"[classes.{cls}]", f"urgency = {urgency}"]
            lines += ["incremental = true"] * (cls in self.incremental)
        for cls, test, _ in _RULES:
            if test:
                known = {**test, "first_images": self.n_first} if "first_images" in test else test
                lines += ["[[rules]]", *(f"{key} = {_toml(value)}" for key, value in known.items())]
                lines.append(f'class = "{cls}"')
        return "\n".join(lines) + "\n"

    def scheme(self) -> Scheme:
        """Return the scheme of these rules."""
        return scheme_from_dict(tomllib.loads(self.document()))

    def used(self, page: Page) -> tuple[Any, ...]:
        """Return what these rules say of a page: if that is the same, so is the load."""
        known = classes_of(page, self.n_first)
        return (
            page.name,
            self.hold_back,
            self.n_first if "image-first" in known else 0,
            *(
                (urgency, cls in self.incremental)
                for cls, urgency in self.urgencies.items()
                if cls in known
            ),
        )


_HEAD = (
    'format = "h3sim-scheme/1"',
    f'name = "{_FROZEN}"',
    'title = "Rules of a client for what is seen, over links"',
    'mechanism = "eps"',
    'signalling = "eps"',
    'source = "h3sim, docs/generated/h3sim-1.md: searched for on one half of the sites"',
)


def _toml(value: object) -> str:
    # Numbers, texts, flags and lists of texts are written alike in TOML and JSON.
    return json.dumps(value)


@functools.cache
def classes_of(page: Page, n_first: int) -> frozenset[str]:
    """Return the classes of a page's resources, before there is a layout and then."""
    rules = H3SIM_1._replace(n_first=n_first).scheme().rules
    return frozenset(
        next(
            (
                rule.class_name
                for rule in rules
                if rule.matches(
                    resource, images_before=page.images_before[resource.id], state=state
                )
            ),
            "other",
        )
        for resource in page.resources
        for state in (ResourceState(), ResourceState(visible=True))
    )


H3SIM_1 = Rules({cls: urgency for cls, _, urgency in _RULES}, frozenset(), "chrome-118", 5)
"""Where the search begins: the classes of h3sim-1 in its order."""


def load_of(page: Page, scheme: Scheme | str, network: str, seed: int = 0, **options: Any) -> Load:
    """Return a load as the results count them: images once complete, from Cloudflare's quiche."""
    return h3sim.simulate(
        page,
        scheme=scheme,
        seed=seed,
        **{
            "network": network,
            "browser": "parse",
            "paint": "complete",
            "transport_profile": "quiche-chrome",
            **options,
        },
    )


# The search


class Search:
    """Coordinate descent over classes: what lowers the mean over sites and networks is adopted."""

    def __init__(self, sites: Sequence[Site], networks: Sequence[str] = NETWORKS) -> None:
        # The first page by name of each site, as in the set `sites`.
        self._pages = [min(site.pages, key=lambda page: page.name) for site in sites]
        self._networks = networks
        self._known: dict[tuple[Any, ...], float] = {}
        self.n_tried = 0

    def cost(self, rules: Rules, networks: Iterable[str]) -> float:
        """Return the mean logarithm of the paints, and a little of the ByteIndex."""
        return statistics.fmean(
            self._of_load(rules, page, network) for network in networks for page in self._pages
        )

    def _of_load(self, rules: Rules, page: Page, network: str) -> float:
        key = (network, *rules.used(page))
        if key not in self._known:
            load = load_of(page, rules.scheme(), network)
            lcp_ms = load.largest_paint_ms
            assert lcp_ms  # noqa: S101 - the pages have a document
            index_ms = load.speed_index_ms or lcp_ms
            bytes_ms = load.byte_index_or_none("atf") or lcp_ms
            self._known[key] = (
                math.log(lcp_ms) + math.log(index_ms) + _OF_BYTES * math.log(bytes_ms)
            )
        return self._known[key]

    def best(self, rules: Rules, n_passes: int = 2) -> Rules:
        """Return what no change of one class betters; each step is printed."""
        least = self.cost(rules, self._networks)
        print(f"begins at {least:.4f}", flush=True)
        for _ in range(n_passes):
            before = rules
            for title, group in self._changes():
                # The group is by name, since the rules may have changed since.
                for candidate in group(rules):
                    self.n_tried += 1
                    cost = self._raced(candidate, rules, least)
                    if cost is not None and cost < least - 1e-4:
                        rules, least = candidate, cost
                        print(f"{title}: {_said(rules, title)}, {least:.4f}", flush=True)
            if rules == before:
                break
        return rules

    @property
    def n_loads(self) -> int:
        """The number of loads that were made."""
        return len(self._known)

    def _raced(self, candidate: Rules, rules: Rules, least: float) -> float | None:
        """Return the cost, or None if it is clearly worse over the first network."""
        first = self._networks[:1]
        if self.cost(candidate, first) > self.cost(rules, first) + 0.003:
            return None
        cost = self.cost(candidate, self._networks)
        return cost if cost < least else None

    @staticmethod
    def _changes() -> Iterator[tuple[str, Callable[[Rules], Iterator[Rules]]]]:
        def held(rules: Rules) -> Iterator[Rules]:
            yield from (rules._replace(hold_back=mode) for mode in HOLD_BACKS)

        def counted(rules: Rules) -> Iterator[Rules]:
            yield from (rules._replace(n_first=n_first) for n_first in _N_FIRST)

        yield "hold-back", held
        yield "first images", counted
        for cls, _, _ in _RULES[1:]:

            def moved(rules: Rules, cls: str = cls) -> Iterator[Rules]:
                for urgency in range(_LAST + 1):
                    if urgency != rules.urgencies[cls]:
                        yield rules._replace(urgencies={**rules.urgencies, cls: urgency})

            yield cls, moved
        for cls in _MAY_SHARE:

            def shared(rules: Rules, cls: str = cls) -> Iterator[Rules]:
                yield rules._replace(incremental=rules.incremental ^ {cls})

            yield f"{cls} shares", shared


def _said(rules: Rules, title: str) -> str:
    cls = title.removesuffix(" shares")
    if cls in rules.urgencies:
        return f"u={rules.urgencies[cls]}{', i' if cls in rules.incremental else ''}"
    return str(rules.n_first) if title == "first images" else rules.hold_back


def search() -> None:
    """Search on the first half, and print the rules as a scheme."""
    made, _ = halves([h3sim.load_page(row.name) for row in h3sim.list_pages()])
    sites = [site for site in made if site.name != "marx-heuristics"]
    source = random.Random(0)  # noqa: S311 - where searches begin, no secret
    begins = [H3SIM_1]
    for _ in range(_N_STARTS):
        drawn = {cls: source.randint(0, _LAST) for cls in H3SIM_1.urgencies}
        begins.append(H3SIM_1._replace(urgencies={**drawn, "root": 0}))
    known = Search(sites)
    found = [known.best(rules) for rules in begins]
    rules = min(found, key=lambda rules: known.cost(rules, NETWORKS))
    if known.cost(rules, NETWORKS) > known.cost(found[0], NETWORKS) - _CLEARLY:
        # What no page decides stays as h3sim-1 has it.
        rules = found[0]
    print(f"{known.n_tried} rules tried, {known.n_loads} loads; {rules}")
    frozen_file().write_text(rules.document(), encoding="utf-8")


def frozen_file() -> Path:
    """Return the file of the scheme that the search found."""
    return Path(str(root("models") / "studies" / "results" / "schemes" / f"{_FROZEN}.toml"))


# The test


class Figures(NamedTuple):
    """What a load is judged by: times and ratios to bounds, and the bytes of its signals."""

    times: dict[str, float]
    ratios: dict[str, float]
    update_bytes: int


def figures_of(load: Load) -> Figures:
    """Return the figures of a load; paints are held to the page's bound, bytes to the requests'."""
    bounds = load.paint_bounds
    ratios = {
        "largest_paint_ms": None if bounds is None else bounds.largest_paint_ratio,
        "speed_index_ms": None if bounds is None else bounds.speed_index_ratio,
    }
    for which in ("atf", "all"):
        if load.byte_index_or_none(which) is not None:
            ratios[f"byte_index_{which}_ms"] = load.optimality_ratio(which)
    times = {
        "largest_paint_ms": load.largest_paint_ms,
        "speed_index_ms": load.speed_index_ms,
        "byte_index_atf_ms": load.byte_index_or_none("atf"),
        "byte_index_all_ms": load.byte_index_or_none("all"),
    }
    return Figures(
        {metric: value for metric, value in times.items() if value},
        {metric: ratio for metric, ratio in ratios.items() if ratio is not None},
        sum(connection.frame_bytes for connection in load.connections),
    )


def clients() -> dict[str, Scheme]:
    """Return what is compared: the frozen rules, h3sim-1 as Chrome holds back, and browsers."""
    known = {name: h3sim.load_scheme(name) for name in (_CHROME, "firefox-eps", "safari-eps")}
    h3sim_1 = replace(h3sim.load_scheme("h3sim-1"), tight_mode=known[_CHROME].tight_mode)
    return {_FROZEN: read_scheme(frozen_file()), "h3sim-1": h3sim_1, **known}


def on_server(client: Scheme, server: str | None) -> Scheme:
    """Return the client's scheme with the way in which a server follows signals."""
    if server is None:
        return client
    how = h3sim.load_scheme(server)
    return replace(
        client,
        mixed=how.mixed,
        retransmission=how.retransmission,
        turn=how.turn,
    )


Key = tuple[str, str]
"""A network, and the name of a client."""
BySite = dict[Key, dict[str, list[Figures]]]


def loads_of(
    sites: Sequence[Site],
    schemes: Mapping[str, Scheme],
    networks: Sequence[str] = NETWORKS,
    **options: Any,
) -> BySite:
    """Load every page of the sites; with losses, with seeds that the search did not have."""
    found: BySite = defaultdict(lambda: defaultdict(list))
    with progress_bar("site") as progress:
        for n_done, site in enumerate(sites):
            for page in site.pages:
                for network in networks:
                    seeds = _TEST_SEEDS if network == "wifi-lossy" else _TEST_SEEDS[:1]
                    for seed in seeds:
                        for name, scheme in schemes.items():
                            load = load_of(page, scheme, network, seed, **options)
                            found[network, name][site.name].append(figures_of(load))
            if progress is not None:
                progress(n_done + 1, len(sites))
    return found


def logs_of_site(
    found: BySite, name: str, metric: str, networks: Sequence[str] = NETWORKS, part: str = "times"
) -> dict[str, float]:
    """Return the mean logarithm by site; networks and pages count equally."""
    logs: dict[str, list[float]] = defaultdict(list)
    for network in networks:
        for site, figures in found[network, name].items():
            values = [
                getattr(each, part)[metric] for each in figures if metric in getattr(each, part)
            ]
            if values:
                logs[site].append(statistics.fmean(map(math.log, values)))
    return {site: statistics.fmean(values) for site, values in logs.items()}


def contrast(
    found: BySite, ours: str, theirs: str, metric: str, networks: Sequence[str], family: int
) -> Estimate:
    """Return by how much one client is later than another, over sites."""
    one, two = (logs_of_site(found, name, metric, networks) for name in (ours, theirs))
    return estimate([one[site] - two[site] for site in one if site in two], family=family)


def print_ratios(title: str, found: BySite, names: Iterable[str]) -> None:
    """Print how far each client is from the bounds, and what its updates take on the wire."""
    rows = []
    for name in names:
        cells: list[str | float] = [name]
        for metric in _OF_BOUNDS:
            ratios = logs_of_site(found, name, metric, part="ratios")
            cells.append(math.exp(statistics.fmean(ratios.values())))
        every = [
            each for network in NETWORKS for of in found[network, name].values() for each in of
        ]
        cells.append(
            max(each.ratios[metric] for each in every for metric in _SEEN if metric in each.ratios)
        )
        cells.append(statistics.fmean(each.update_bytes for each in every))
        rows.append(cells)
    n_sites = len(found[NETWORKS[0], _FROZEN])
    print(f"times the bound, {title}: {n_sites} sites\n")
    heads = ["client", *(METRICS[metric] for metric in _OF_BOUNDS), "worst paint", "updates, bytes"]
    print(tabulate(rows, heads, floatfmt=("", *["0.2f"] * 5, "0.0f")), end="\n\n")


_OF_BOUNDS = ("largest_paint_ms", "speed_index_ms", "byte_index_atf_ms", "byte_index_all_ms")
_JUDGED = ("largest_paint_ms", "speed_index_ms", "byte_index_atf_ms")


def print_contrasts(title: str, found: BySite, others: Sequence[str]) -> None:
    """Print the changes to other clients by network; the intervals of a table hold together."""
    parts = [*((network,) for network in NETWORKS), NETWORKS]
    family = len(parts) * len(others) * len(_JUDGED)
    rows = [
        [
            "all" if networks is NETWORKS else networks[0],
            other,
            *(str(contrast(found, _FROZEN, other, metric, networks, family)) for metric in _JUDGED),
        ]
        for networks in parts
        for other in others
    ]
    print(f"{_FROZEN} relative to others, {title}\n")
    print(tabulate(rows, ["network", "to", *(METRICS[each] for each in _JUDGED)]), end="\n\n")


def print_servers(sites: Sequence[Site]) -> None:
    """Print what the rules change with servers of today, relative to Chrome with the same."""
    rows = []
    some = [Site(site.name, (min(site.pages, key=lambda page: page.name),)) for site in sites]
    family = len(_SERVERS) * len(_JUDGED)
    for server in _SERVERS:
        pair = {name: on_server(clients()[name], server) for name in (_FROZEN, _CHROME)}
        found = loads_of(some, pair)
        changes = (contrast(found, _FROZEN, _CHROME, each, NETWORKS, family) for each in _JUDGED)
        rows.append([server, *map(str, changes)])
    print(f"{_FROZEN} relative to {_CHROME}, by server, all networks\n")
    print(tabulate(rows, ["server", *(METRICS[each] for each in _JUDGED)]), end="\n\n")


# The gap


def gap(sites: Sequence[Site]) -> dict[str, dict[str, float]]:
    """Return the mean ratio to the bounds after each step of what is known, or taken away."""
    frozen, chrome = (clients()[name] for name in (_FROZEN, _CHROME))
    found: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for site in sites:
        page = min(site.pages, key=lambda page: page.name)
        marks = [*marked_for_paints(page)]
        needed = [each.id for each in marks[-1].resources if each.above_the_fold]
        early = with_early_hints(
            page, [id_ for id_ in needed if id_ != page.resources[page.root].id]
        )
        for network in NETWORKS:
            bounds = load_of(page, chrome, network, 101).paint_bounds
            steps: dict[str, Iterator[Load]] = {
                "Chrome": iter([load_of(page, chrome, network, 101)]),
                "the rules": iter([load_of(page, frozen, network, 101)]),
                "the rules, nothing held back": iter(
                    [load_of(page, frozen, network, 101, tight_mode="off")]
                ),
                "the rules, and what will be seen": iter(
                    [load_of(page, _seeing(frozen), network, 101)]
                ),
                "all of the page": _of_orders(marks, network),
                "all of it, no slow start, no loss": _of_orders(
                    marks, network, transport_profile=_without_slow_start(network), loss=0.0
                ),
                "all of it, requested at once": _of_orders([*marked_for_paints(early)], network),
            }
            for step, loads in steps.items():
                best: dict[str, float] = {}
                for load in loads:
                    for metric in _SEEN:
                        value = getattr(load, metric)
                        if value is not None and getattr(bounds, metric):
                            ratio = value / getattr(bounds, metric)
                            best[metric] = min(ratio, best.get(metric, ratio))
                for metric, ratio in best.items():
                    found[step][metric].append(math.log(ratio))
    return {
        step: {metric: math.exp(statistics.fmean(logs)) for metric, logs in by.items()}
        for step, by in found.items()
    }


def _without_slow_start(name: str) -> TransportProfile:
    """Return the profile with an initial window that fills the link, and not its queue."""
    network = h3sim.load_network(name)
    assert network.down is not None and network.down.rate_bps is not None  # noqa: S101, PT018 - a link
    flight_bytes = network.down.rate_bps * network.rtt_ns // (8 * NS_PER_S)
    known = h3sim.load_profile("quiche-chrome")
    least_bytes = known.initial_window_bytes or 0
    window_bytes = max(least_bytes, flight_bytes)
    return replace(known, name=f"{name}-full", initial_window_bytes=window_bytes)


def _of_orders(marks: Sequence[Page], network: str, **options: Any) -> Iterator[Load]:
    """Yield loads in orders that know the page; the best of them is at least the optimum."""
    for page in marks:
        for mode in ("off", "chrome-118"):
            yield load_of(page, "atf-first", network, 101, tight_mode=mode, **options)


def _seeing(scheme: Scheme) -> Scheme:
    """Return the scheme of a client that knows with its request what will be seen."""
    visible = next(rule for rule in scheme.rules if rule.visible)
    early = replace(visible, visible=None, flags=(("above_the_fold", True),))
    at = scheme.rules.index(visible)
    return replace(scheme, rules=(*scheme.rules[:at], early, *scheme.rules[at + 1 :]))


_CHROME = "chrome-eps"
_SERVERS = ("quiche", "h2o", "google-quiche", "lsquic", "nghttp3", "quic-go")


def paint_rules(options: argparse.Namespace) -> None:
    """Judge the frozen rules, print what they lack, and draw both."""
    _, kept = halves([h3sim.load_page(row.name) for row in h3sim.list_pages()])
    every = clients()
    others = [name for name in every if name != _FROZEN]
    found = loads_of(kept, every)
    print_ratios("kept for the test", found, every)
    print_contrasts("kept for the test", found, others)
    drawn = [synthetic(seed=seed) for seed in _MADE_UP]
    made_up = [Site(page.name, (page,)) for page in drawn]
    of_made_up = loads_of(made_up, every)
    print_ratios("made up", of_made_up, every)
    print_contrasts("made up", of_made_up, others)
    pair = {name: every[name] for name in (_FROZEN, _CHROME)}
    gradual = loads_of(kept, pair, paint="progressive")
    print_contrasts("kept for the test, images as they load", gradual, [_CHROME])
    print_servers(kept)
    steps = gap(kept)
    print("times the bound, step by step, kept for the test\n")
    rows = [[step, *(by[metric] for metric in _SEEN)] for step, by in steps.items()]
    print(tabulate(rows, ["known", *(METRICS[metric] for metric in _SEEN)], floatfmt=".2f"))
    _draw(found, steps, options.figures / "results-paint-rules.png")


def _draw(found: BySite, steps: Mapping[str, Mapping[str, float]], path: Path) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10.5, 4.4), layout="constrained")
    left, right = figure.subplots(1, 2)
    others = [name for name in clients() if name != _FROZEN]
    family = (len(NETWORKS) + 1) * len(others) * len(_JUDGED)
    for metric, offset, colour in zip(_SEEN, (-0.15, 0.15), _COLOURS, strict=True):
        for y, other in enumerate(others):
            mean, low, high, _ = contrast(found, _FROZEN, other, metric, NETWORKS, family)
            if low is not None and high is not None:
                left.plot([low, high], [y + offset] * 2, color=colour, lw=1.5)
            label = None if y else METRICS[metric]
            left.plot([mean], [y + offset], "o", color=colour, label=label)
        values = [by[metric] for by in steps.values()]
        places = [y + offset for y in range(len(steps))]
        right.barh(places, values, height=0.28, color=colour, label=METRICS[metric])
        for place, value in zip(places, values, strict=True):
            right.text(value + 0.01, place, f"{value:.2f}", va="center", fontsize=8)
    left.axvline(0, color="black", lw=0.8)
    left.set_yticks(range(len(others)), others)
    left.set_xlabel(f"{_FROZEN} relative to others, %\n(sooner is to the left)")
    right.axvline(1.0, color="black", lw=0.8)
    right.set_yticks(range(len(steps)), list(steps))
    right.set_xlim(0, 1.15 * max(max(by.values()) for by in steps.values()))
    right.set_xlabel("times the bound of the page")
    for axis in (left, right):
        axis.invert_yaxis()
    left.legend(loc="best", fontsize=8)
    means = (
        f"{other} {contrast(found, _FROZEN, other, _SEEN[0], NETWORKS, family).mean:+.0f} %"
        for other in others
    )
    set_alt_text(left, f"LCP of {_FROZEN} relative to others: {', '.join(means)}.")
    shown = ", ".join(f"{step} {by[_SEEN[0]]:.2f}" for step, by in steps.items())
    set_alt_text(right, f"LCP as a multiple of its bound: {shown}.")
    save_figure(figure, path)


_COLOURS = ("#d55e00", "#009e73")


def main(argv: Sequence[str]) -> int:
    """Search and write the rules."""
    parser = argparse.ArgumentParser(prog="validate-paint-rules", description=__doc__)
    parser.parse_args(argv)
    search()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
