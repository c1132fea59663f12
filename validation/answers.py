"""`make validate-answers`: the questions of docs/results.md, their tables and figures.

A site counts once, whatever its pages. Intervals are over sites, with a joint confidence of 95 %
for all of a table. What is chosen is chosen on one half of the sites, and judged on the other.
"""

from __future__ import annotations

import argparse
import math
import random
import statistics
import sys
from collections import defaultdict
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from tabulate import tabulate

import h3sim
from h3sim import catalog
from h3sim.browser import needed_for_first_paint
from h3sim.catalog.resources import root
from h3sim.cli.command import progress_bar
from h3sim.page import Kind, Page, synthetic
from h3sim.page.transforms import with_early_hints
from h3sim.reporting.output import save_figure, set_alt_text
from h3sim.study import load_study
from h3sim.study.study_file import read_study
from validation.estimates import estimate, per_cent
from validation.h3sim_1 import Site, halves
from validation.paint_rules import paint_rules
from validation.sharing import share
from validation.vgprio import scaled, selected

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from h3sim.page import Resource
    from h3sim.study import Results, Study
    from validation.estimates import Estimate

METRICS = {
    "first_paint_ms": "first paint",
    "largest_paint_ms": "LCP",
    "speed_index_ms": "SpeedIndex",
    "byte_index_all_ms": "ByteIndex",
}
_PAINTS = ("first_paint_ms", "largest_paint_ms", "speed_index_ms")
CLIENTS = {"chrome": 0.7, "safari": 0.25, "firefox": 0.05}
"""Shares of users: rounded from what counters of page views publish for 2025, and varied below."""
NETWORKS = {
    "fibre": 0.2, "cable": 0.3, "4g": 0.25, "wifi-lossy": 0.15, "dsl": 0.06, "fast-3g": 0.04,
}  # fmt: skip
"""Shares of networks: nine in ten at 4G or better, as in CrUX; otherwise chosen, and varied."""
FOLLOW, ALONE = "follow signals", "follow, nothing shares"
_N_MIXTURES = 2000

Logs = dict[Any, dict[str, dict[str, float]]]
"""The logarithm of a metric by state, action and site."""
Changes = dict[tuple[str, str], "Estimate"]
"""Changes by metric and what is changed."""


class Sites:
    """The sites of the pages of a study: the half on which choices are made, and the other."""

    def __init__(self, pages: Iterable[str]) -> None:
        made, kept = halves([h3sim.load_page(row.name) for row in h3sim.list_pages()])
        given = set(pages)
        web = [name for name in catalog.page_set("web") or () if name in given]
        others = [*made_up_pages(), *map(h3sim.load_page, web)]
        drawn = [Site(page.name, (page,)) for page in others]
        made, kept = [*made, *drawn[::2]], [*kept, *drawn[1::2]]
        self._site_of = {page.name: site.name for site in (*made, *kept) for page in site.pages}
        known = {self._site_of[page] for page in given}
        self.chosen_on = sorted(site.name for site in made if site.name in known)
        self.judged_on = sorted(site.name for site in kept if site.name in known)
        self.every = [*self.chosen_on, *self.judged_on]

    def of(self, page: str) -> str:
        """Return the site of a page."""
        return self._site_of[page]


def logs_of(
    rows: Iterable[Mapping[str, Any]],
    metric: str,
    *,
    state: Callable[[Mapping[str, Any]], Any],
    action: Callable[[Mapping[str, Any]], str],
    sites: Sites,
) -> Logs:
    """Return the mean logarithm of a metric over the pages and seeds of each site."""
    found: dict[Any, dict[str, dict[str, list[float]]]] = defaultdict(
        lambda: defaultdict(lambda: defaultdict(list))
    )
    for row in rows:
        if row[metric]:
            found[state(row)][action(row)][sites.of(row["page"])].append(math.log(row[metric]))
    return {
        where: {
            what: {site: statistics.fmean(values) for site, values in by_site.items()}
            for what, by_site in actions.items()
        }
        for where, actions in found.items()
    }


_N_MADE_UP = 24
_FIRST_MADE_UP = 2000
"""The first seed of the made-up pages with which the answers are repeated."""
_OTHER_SEEDS = 500
"""The first of the seeds with which the answers are repeated."""


def made_up_pages() -> list[Page]:
    """Return pages that look like the web's, each of which stands for a site."""
    return [synthetic(seed=seed) for seed in range(_FIRST_MADE_UP, _FIRST_MADE_UP + _N_MADE_UP)]


def of_study(name: str, options: argparse.Namespace) -> Study:
    """Return a shipped study, with other seeds or pages if the options say so."""
    study = read_study(str(root("models") / "studies" / "results" / f"{name}.toml"))
    if options.other_seeds:
        study = study.with_seeds([_OTHER_SEEDS + seed for seed in study.design.seeds])
    if options.made_up:
        study = replace(study, design=replace(study.design, pages=tuple(made_up_pages())))
    if options.web:
        names = selected(catalog.page_set("web") or (), options.web, options.half)
        pages = [
            scaled(h3sim.load_page(name), think=options.think, cpu=options.cpu) for name in names
        ]
        study = replace(study, design=replace(study.design, pages=tuple(pages)))
    return study


def run(name: str, options: argparse.Namespace) -> Results:
    """Return the rows of a shipped study, from the store where it has them."""
    study = of_study(name, options)
    with progress_bar(name) as progress:
        return study.run(store=options.store, workers=options.workers, progress=progress)


# The robust choice


def weight(state: tuple[str, str]) -> float:
    """Return the share of users with this client and network."""
    client, network = state
    return CLIENTS[client] * NETWORKS[network]


def expected(logs: Logs, action: str, sites: Iterable[str], weights: Mapping[Any, float]) -> float:
    """Return the mean logarithm of the metric over states and sites."""
    names = [*sites]
    total = sum(weights.values())
    return (
        sum(
            share
            * statistics.fmean(
                logs[state][action][site] for site in names if site in logs[state][action]
            )
            for state, share in weights.items()
        )
        / total
    )


def best_action(logs: Logs, sites: Sequence[str], weights: Mapping[Any, float]) -> str:
    """Return the action with the least expectation."""
    actions = logs[next(iter(logs))]
    return min(actions, key=lambda action: expected(logs, action, sites, weights))


def regrets(logs: Logs, sites: Sequence[str]) -> dict[Any, dict[str, float]]:
    """Return by how many per cent each action is behind the best of its state."""
    found = {}
    for state, actions in logs.items():
        means = {what: expected(logs, what, sites, {state: 1.0}) for what in actions}
        least = min(means.values())
        found[state] = {what: per_cent(mean - least) for what, mean in means.items()}
    return found


def minimax_action(logs: Logs, sites: Sequence[str]) -> str:
    """Return the action with the least greatest regret."""
    behind = regrets(logs, sites)
    actions = logs[next(iter(logs))]
    return min(actions, key=lambda action: max(each[action] for each in behind.values()))


def differences(
    logs: Logs, policy: Callable[[Any], str], other: str, sites: Iterable[str]
) -> list[float]:
    """Return, by site, the mean over users of the log ratio of a policy's metric to an action's."""
    weights = {state: weight(state) for state in logs}
    total = sum(weights.values())
    found = []
    for site in sites:
        pairs = [
            (logs[state][policy(state)], logs[state][other], share)
            for state, share in weights.items()
        ]
        if all(site in one and site in two for one, two, _ in pairs):
            found.append(sum(share * (one[site] - two[site]) for one, two, share in pairs) / total)
    return found


def informed(logs: Logs, sites: Sequence[str], part: Callable[[Any], Any]) -> Callable[[Any], str]:
    """Return the policy that knows *part* of the state, and is best on *sites*."""
    groups: dict[Any, dict[Any, float]] = defaultdict(dict)
    for state in logs:
        groups[part(state)][state] = weight(state)
    chosen = {key: best_action(logs, sites, weights) for key, weights in groups.items()}
    return lambda state: chosen[part(state)]


def _robust_logs(options: argparse.Namespace) -> tuple[dict[str, Logs], Sites]:
    """Return the logarithms by metric of what a server may do, by client and network."""
    named = {f"{client}-eps": FOLLOW for client in CLIENTS}
    named |= {f"{client}-eps-none": ALONE for client in CLIENTS}
    rows = [
        {**row, "client": client}
        for client in CLIENTS
        for row in run(f"robust-choice-{client}", options)
    ]
    sites = Sites({row["page"] for row in rows})
    by_metric = {
        metric: logs_of(
            rows,
            metric,
            state=lambda row: (row["client"], row["network"]),
            action=lambda row: named.get(row["scheme"], row["scheme"]),
            sites=sites,
        )
        for metric in _PAINTS
    }
    return by_metric, sites


def robust_changes(options: argparse.Namespace) -> Changes:
    """Return what each action changes to following the client."""
    by_metric, sites = _robust_logs(options)
    actions = [*by_metric["largest_paint_ms"]["chrome", "cable"]]
    family = len(_PAINTS) * len(actions)
    return {
        (METRICS[metric], action): estimate(
            differences(logs, lambda _, a=action: a, FOLLOW, sites.every),  # type: ignore[misc]
            family=family,
        )
        for metric, logs in by_metric.items()
        for action in actions
        if action != FOLLOW
    }


def robust_choice(options: argparse.Namespace) -> None:
    """Print what a server should do that knows neither network nor client, and draw the regrets."""
    by_metric, sites = _robust_logs(options)
    changes, every = robust_changes(options), sites.every
    actions = [*by_metric["largest_paint_ms"]["chrome", "cable"]]
    body = []
    for action in actions:
        cells: list[str | float] = []
        for metric, logs in by_metric.items():
            cells.append(str(changes.get((METRICS[metric], action), "-")))
            cells.append(max(each[action] for each in regrets(logs, every).values()))
        body.append([action, *cells])
    heads = [f"{METRICS[metric]}{what}" for metric in _PAINTS for what in ("", ": worst regret %")]
    print(f"{len(every)} sites, mean over users, relative to following the client\n")
    print(tabulate(body, ["the server", *heads], floatfmt=".1f"), end="\n\n")
    print(f"chosen on {len(sites.chosen_on)} sites, judged on the other {len(sites.judged_on)}\n")
    print(tabulate([_chosen(metric, logs, sites) for metric, logs in by_metric.items()], _CHOSEN))
    print()
    print(tabulate([_mixed(metric, logs, every) for metric, logs in by_metric.items()], _MIXED))
    _draw_regrets(by_metric, every, options.figures / "results-robust-choice.png")


_CHOSEN = (
    *("metric", "Bayes", "minimax", "Bayes to following", "knowing the network"),
    *("knowing the client", "knowing both"),
)
_MIXED = ("metric", "best of how many random mixtures of clients and networks")


def _chosen(metric: str, logs: Logs, sites: Sites) -> list[str]:
    """Return what is chosen on one half, and what it is worth on the other."""
    weights = {state: weight(state) for state in logs}
    bayes = best_action(logs, sites.chosen_on, weights)
    parts: list[Callable[[Any], Any]] = [lambda s: s[1], lambda s: s[0], lambda s: s]
    cells = [METRICS[metric], bayes, minimax_action(logs, sites.chosen_on)]
    family = len(_PAINTS) * (1 + len(parts))
    against = differences(logs, lambda _: bayes, FOLLOW, sites.judged_on)
    cells.append(str(estimate(against, family=family)))
    for part in parts:
        policy = informed(logs, sites.chosen_on, part)
        gain = differences(logs, policy, bayes, sites.judged_on)
        cells.append(str(estimate(gain, family=family)) if any(gain) else "0: the same action")
    return cells


def _mixed(metric: str, logs: Logs, sites: Sequence[str]) -> list[str]:
    """Return how often each action is the best of random mixtures of states."""
    source = random.Random(0)  # noqa: S311 - mixtures, no secrets
    means = {
        state: {what: expected(logs, what, sites, {state: 1.0}) for what in actions}
        for state, actions in logs.items()
    }
    wins: dict[str, int] = defaultdict(int)
    for _ in range(_N_MIXTURES):
        clients = {client: source.expovariate(1) for client in CLIENTS}
        networks = {network: source.expovariate(1) for network in NETWORKS}
        totals: dict[str, float] = defaultdict(float)
        for (client, network), each in means.items():
            for what, mean in each.items():
                totals[what] += clients[client] * networks[network] * mean
        wins[min(totals, key=totals.__getitem__)] += 1
    shares = sorted(wins.items(), key=lambda item: -item[1])
    return [METRICS[metric], ", ".join(f"{what} {n / _N_MIXTURES:.0%}" for what, n in shares)]


def _draw_regrets(by_metric: Mapping[str, Logs], sites: Sequence[str], path: Path) -> None:
    from matplotlib.figure import Figure

    metrics = ("largest_paint_ms", "speed_index_ms")
    figure = Figure(figsize=(10, 5.6), layout="constrained")
    axes = figure.subplots(2, 1, sharex=True)
    states = [(client, network) for client in CLIENTS for network in NETWORKS]
    for axis, metric in zip(axes, metrics, strict=True):
        behind = regrets(by_metric[metric], sites)
        actions = [*by_metric[metric][states[0]]]
        table = [[behind[state][action] for state in states] for action in actions]
        picture = axis.imshow(table, cmap="Reds", vmin=0, vmax=40, aspect="auto")
        for y, row in enumerate(table):
            for x, value in enumerate(row):
                colour = "white" if value > 24 else "black"
                axis.text(x, y, f"{value:.0f}", ha="center", va="center", fontsize=8, color=colour)
        axis.set_yticks(range(len(actions)), actions, fontsize=9)
        axis.set_title(f"{METRICS[metric]}: per cent behind the best of each column", fontsize=10)
        worst = {what: max(each[what] for each in behind.values()) for what in actions}
        shown = ", ".join(f"{what} {value:.0f} %" for what, value in worst.items())
        set_alt_text(axis, f"{METRICS[metric]} behind the best action at worst: {shown}.")
    labels = [network for _, network in states]
    axes[1].set_xticks(range(len(states)), labels, rotation=60, ha="right", fontsize=8)
    for number, client in enumerate(CLIENTS):
        middle = (number + 0.5) * len(NETWORKS) - 0.5
        axes[1].annotate(
            client.capitalize(), (middle, -0.48), xycoords=("data", "axes fraction"), ha="center"
        )
        if number:
            for axis in axes:
                axis.axvline(number * len(NETWORKS) - 0.5, color="black", lw=1.2)
    figure.colorbar(picture, ax=axes, label="% behind the best", shrink=0.7)
    save_figure(figure, path)


# Loss and order


_WITH_LOSS = ("largest_paint_ms", "speed_index_ms", "byte_index_all_ms")


def loss_order(options: argparse.Namespace) -> None:
    """Print and draw where sharing paints sooner than one response at a time, by loss and burst."""
    ended = [*run("loss-order", options)]
    results = [*in_pairs(ended)]
    sites = Sites({row["page"] for row in results})
    metrics = _WITH_LOSS

    def state(row: Mapping[str, Any]) -> tuple[str, str, float, float]:
        return row["cc"], row["queue_discipline"], row["loss"], row["mean_loss_burst"] or 0

    found = {metric: _of_sharing(results, metric, state, sites) for metric in metrics}
    blocked = _blocked(results, state)
    body = [
        [*where, *(str(found[metric][where]) for metric in metrics), blocked[where]]
        for where in found[metrics[0]]
    ]
    print(f"round robin relative to one response at a time, {len(sites.every)} sites\n")
    heads = ["cc", "queue", "loss", "burst", *(METRICS[metric] for metric in metrics)]
    print(
        tabulate(
            body,
            [*heads, "blocked bytes"],
            floatfmt=("", "", ".2f", ".0f", "", "", "", ".2f"),
            missingval="-",
        )
    )
    for metric in metrics:
        sooner = sum(each.is_sure and each.mean < 0 for each in found[metric].values())
        later = sum(each.is_sure and each.mean > 0 for each in found[metric].values())
        of = len(found[metric])
        print(
            f"{METRICS[metric]}: surely sooner in {sooner} of {of} cells, surely later in {later}"
        )
    n_loads = len(of_study("loss-order", options))
    n_open = n_loads - len(ended)
    print(f"{n_open} of {n_loads:,} loads did not end, and are left out with their pairs")
    _draw_losses(found, options.figures / "results-loss-order.png")


def _of_sharing(
    rows: Iterable[Mapping[str, Any]],
    metric: str,
    state: Callable[[Mapping[str, Any]], Any],
    sites: Sites,
) -> dict[Any, Estimate]:
    """Return what round robin changes to one response at a time, by state."""
    logs = logs_of(rows, metric, state=state, action=lambda row: row["scheme"], sites=sites)
    return {
        where: estimate(
            [log - by["fifo"][site] for site, log in by["rr"].items() if site in by["fifo"]],
            family=len(_WITH_LOSS) * len(logs),
        )
        for where, by in logs.items()
    }


def loss_changes(options: argparse.Namespace) -> Changes:
    """Return what round robin changes to one response at a time, by the rate of loss."""
    results = [*in_pairs(run("loss-order", options))]
    sites = Sites({row["page"] for row in results})
    return {
        (METRICS[metric], f"rr, {loss:.0%} loss"): each
        for metric in _WITH_LOSS
        for loss, each in _of_sharing(results, metric, lambda row: row["loss"], sites).items()
    }


def in_pairs(rows: Iterable[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    """Yield the rows of loads that ended with either scheme: few do not end under heavy loss."""
    keys = ("page", "seed", "cc", "queue_discipline", "loss", "mean_loss_burst")
    pairs: dict[tuple[Any, ...], list[Mapping[str, Any]]] = defaultdict(list)
    for row in rows:
        pairs[tuple(row[key] for key in keys)].append(row)
    for pair in pairs.values():
        if len(pair) > 1:
            yield from pair


def _blocked(
    rows: Iterable[Mapping[str, Any]], state: Callable[[Mapping[str, Any]], Any]
) -> dict[Any, float | None]:
    """Return the bytes that round robin blocks within streams, relative to fifo.

    None where fifo blocks none.
    """
    sums: dict[Any, dict[str, float]] = defaultdict(lambda: defaultdict(float))
    for row in rows:
        sums[state(row)][row["scheme"]] += row["hol_stream_bytes"]
    return {where: by["rr"] / by["fifo"] if by["fifo"] else None for where, by in sums.items()}


def _draw_losses(found: Mapping[str, Mapping[Any, Estimate]], path: Path) -> None:
    from matplotlib.figure import Figure

    cells = [*next(iter(found.values()))]
    columns = [*dict.fromkeys(where[:2] for where in cells)]
    losses = sorted({where[2] for where in cells})
    bursts = sorted({where[3] for where in cells if where[3]})
    figure = Figure(figsize=(11, 7.4), layout="constrained")
    axes = figure.subplots(len(found), len(columns), sharex=True, sharey=True)
    for line, (metric, by_cell) in zip(axes, found.items(), strict=True):
        for axis, column in zip(line, columns, strict=True):
            table = [
                # Without a loss there is no burst: one value for the row.
                [by_cell.get((*column, loss, burst if loss else 0)) for burst in bursts]
                for loss in losses
            ]
            values = [[0 if each is None else each.mean for each in row] for row in table]
            picture = axis.imshow(
                values, cmap="RdBu_r", vmin=-40, vmax=40, origin="lower", aspect="auto"
            )
            for y, row in enumerate(table):
                for x, each in enumerate(row):
                    text = "" if each is None else f"{each.mean:+.0f}"
                    face = "bold" if each is not None and each.is_sure else "normal"
                    colour = "black" if abs(values[y][x]) < 26 else "white"
                    how = {"fontweight": face, "color": colour, "fontsize": 9}
                    axis.text(x, y, text, ha="center", va="center", **how)
            ends = [each.mean for row in table for each in row if each is not None]
            where = f"{METRICS[metric]}, {column[0]}, {column[1]}"
            set_alt_text(axis, f"{where}: round robin {min(ends):+.0f} to {max(ends):+.0f} %.")
            axis.set_xticks(range(len(bursts)), [f"{burst:g}" for burst in bursts])
            axis.set_yticks(range(len(losses)), [f"{loss:.0%}" for loss in losses])
            if metric == next(iter(found)):
                axis.set_title(f"{column[0].upper()}, {column[1]}", fontsize=10)
        line[0].set_ylabel(f"{METRICS[metric]}\nloss")
    for axis in axes[-1]:
        axis.set_xlabel("mean burst, packets")
    figure.colorbar(picture, ax=axes, label="round robin later (+) or sooner (-), %", shrink=0.6)
    save_figure(figure, path)


# Who should do it

_WHO = {
    "rr": "nobody: turns",
    "fifo": "nobody: in order of requests",
    "chrome-eps": "the client: Chrome",
    "h3sim-1": "the client: h3sim-1",
    "dfifo": "the server: types",
    "bucket-html": "the server: types, and what was visible before",
    "atf-first": "the server: the page",
}
_THINK_MS = 200
_HINT_NETWORKS = ("cable", "4g", "fast-3g")
_HINTED = ("chrome-eps", "bucket-html")


def who_prioritizes(options: argparse.Namespace) -> None:
    """Print what priorities are worth by who knows, and what hints add, or cost if wrong."""
    results = run("who-prioritizes", options)
    sites = Sites({row["page"] for row in results})
    found = _relative(results, "scheme", "fifo", sites, family=len(_PAINTS) * (len(_WHO) - 1))
    body = [[_WHO[scheme], *map(str, cells.values())] for scheme, cells in found.items()]
    print(f"{len(sites.every)} sites, mean over {', '.join(_HINT_NETWORKS)}; relative to fifo\n")
    print(tabulate(body, ["who knows", *(METRICS[metric] for metric in _PAINTS)]), end="\n\n")
    body = [
        [scheme, title, str(n_sites), *map(str, change.values())]
        for scheme, title, n_sites, change in _of_hints(options, sites)
    ]
    print("what a hint adds, with Chrome: relative to the same page without it\n")
    heads = ["server follows", "hint", "sites", *(METRICS[metric] for metric in _PAINTS)]
    print(tabulate(body, heads))
    _draw_who(found, options.figures / "results-who-prioritizes.png")


def _of_hints(
    options: argparse.Namespace, sites: Sites
) -> Iterator[tuple[str, str, int, dict[str, Estimate]]]:
    """Yield what the server follows, the hint, the number of sites, and the changes by metric."""
    given = of_study("who-prioritizes", options).design.pages
    pages = [page for page in given if isinstance(page, Page)]
    for scheme in _HINTED:
        for title, base, edited in _edits(pages):
            rows = _loads_of_edits(base, edited, scheme, options)
            change = _relative(
                rows, "edit", "before", sites, family=len(_PAINTS) * len(_HINTED) * 4
            )
            yield scheme, title, len({sites.of(name) for name in base}), change["after"]


def who_changes(options: argparse.Namespace) -> Changes:
    """Return what each order changes to first in, first out, and what each hint changes."""
    results = run("who-prioritizes", options)
    sites = Sites({row["page"] for row in results})
    found = _relative(results, "scheme", "fifo", sites, family=len(_PAINTS) * (len(_WHO) - 1))
    by_row = {_WHO[scheme]: change for scheme, change in found.items()}
    for scheme, title, _, change in _of_hints(options, sites):
        by_row[f"{title}; server: {scheme}"] = change
    return {(METRICS[m], row): by_row[row][m] for m in _PAINTS for row in by_row}


def _relative(
    rows: Iterable[Mapping[str, Any]], by: str, base: str, sites: Sites, *, family: int
) -> dict[str, dict[str, Estimate]]:
    """Return how each value of a column changes each metric, to *base*; networks count equally."""
    found: dict[str, dict[str, Estimate]] = {}
    some = [*rows]
    for metric in _PAINTS:
        logs = logs_of(
            some, metric, state=lambda _: "all", action=lambda row: row[by], sites=sites
        )["all"]
        for action, of_site in logs.items():
            pairs = [value - logs[base][site] for site, value in of_site.items()]
            if action != base:
                found.setdefault(action, {})[metric] = estimate(pairs, family=family)
    return found


Pages = dict[str, Page]


def _edits(pages: Sequence[Page]) -> Iterator[tuple[str, Pages, Pages]]:
    """Yield hints: their names, and the pages before and after, by the names of the first."""
    slow = [
        page.with_(page.resources[page.root].id, server_ms=_THINK_MS, name=page.name)
        for page in pages
        if len(page.roots) == 1  # a redirect has no 103 of the document
    ]
    blocking = {
        page.name: [page.resources[i].id for i in needed_for_first_paint(page) if i != page.root]
        for page in slow
    }
    before = {page.name: page for page in slow if blocking[page.name]}
    hinted = {name: with_early_hints(page, blocking[name]) for name, page in before.items()}
    yield f"103 for what blocks painting, {_THINK_MS} ms think time", before, hinted
    plain = {page.name: page for page in pages}
    for title, chosen in (("of the largest element", _largest), ("of an unseen image", _unseen)):
        ids = {name: id_ for name, page in plain.items() if (id_ := chosen(page)) is not None}
        known = {name: plain[name] for name in ids}
        high = {name: page.with_(ids[name], fetchpriority="high") for name, page in known.items()}
        yield f"fetchpriority=high {title}", known, high
        if chosen is _unseen:
            loaded = {
                name: page.with_(ids[name], fetchpriority="high", preload=True)
                for name, page in known.items()
            }
            yield f"preload with fetchpriority=high {title}", known, loaded


def _images(page: Page) -> list[Resource]:
    return [each for each in page.resources if each.kind is Kind.IMAGE]


def _largest(page: Page) -> str | None:
    """Return the image that is the largest paint; None if none is known."""
    seen = [each for each in _images(page) if each.hero or each.viewport]
    best = max(seen, key=lambda each: (each.hero, each.viewport or 0), default=None)
    return None if best is None else best.id


def _unseen(page: Page) -> str | None:
    """Return the image with the most bytes of those that are not above the fold."""
    unseen = [each for each in _images(page) if not each.above_the_fold and not each.viewport]
    best = max(unseen, key=lambda each: each.size_bytes, default=None)
    return None if best is None else best.id


def _loads_of_edits(
    before: Pages, after: Pages, scheme: str, options: argparse.Namespace
) -> Iterator[dict[str, Any]]:
    """Yield the rows of all loads, with the name of the page before, and which it is."""
    for edit, pages in (("before", before), ("after", after)):
        name_of = {page.name: name for name, page in pages.items()}
        study = load_study(
            [*pages.values()],
            schemes=scheme,
            network=list(_HINT_NETWORKS),
            browser="parse",
            paint="complete",
            tight_mode="chrome-118",
            transport_profile="quiche-chrome",
        )
        for row in study.run(store=options.store, workers=options.workers):
            yield {**row, "page": name_of[row["page"]], "edit": edit}


def _draw_who(found: Mapping[str, Mapping[str, Estimate]], path: Path) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 4), layout="constrained")
    axis = figure.subplots()
    names = [*found]
    for offset, (metric, colour) in zip((-0.22, 0, 0.22), _COLOURS.items(), strict=True):
        for y, scheme in enumerate(names):
            mean, low, high, _ = found[scheme][metric]
            label = METRICS[metric] if not y else None
            if low is not None and high is not None:
                axis.plot([low, high], [y + offset] * 2, color=colour, lw=1.5)
            axis.plot([mean], [y + offset], "o", color=colour, label=label)
    axis.axvline(0, color="black", lw=0.8)
    axis.set_yticks(range(len(names)), [_WHO[name] for name in names])
    axis.invert_yaxis()
    means = (f"{_WHO[name]} {found[name]['largest_paint_ms'].mean:+.0f} %" for name in names)
    set_alt_text(axis, f"Change of LCP to responses in order of requests: {', '.join(means)}.")
    axis.set_xlabel("change to responses in order of requests, % (sooner is to the left)")
    axis.legend(loc="lower right")
    save_figure(figure, path)


_COLOURS = dict(zip(_PAINTS, ("#0072b2", "#d55e00", "#009e73"), strict=True))


# What survives


class Variant(NamedTuple):
    """What is assumed otherwise; its letter groups two variants that must agree with the first."""

    title: str
    letter: str = ""
    share: float = 1.0
    """Of the pages."""
    half: int | None = None
    think: float = 1.0
    cpu: float = 1.0
    is_web: bool = True


VARIANTS = (
    Variant("web"),
    Variant("half", "a", share=0.5, half=0),
    Variant("half", "a", share=0.5, half=1),
    Variant("templates", "b", is_web=False),
    Variant("CPU/2", "c", cpu=0.5),
    Variant("CPUx2", "c", cpu=2.0),
    Variant("think/2", "d", think=0.5),
    Variant("thinkx2", "d", think=2.0),
)


def survival(
    changes_of: Callable[[argparse.Namespace], Changes], options: argparse.Namespace
) -> None:
    """Print the changes over pages of the web, and in which variants their signs are the same."""
    found: list[Changes] = []
    for variant in VARIANTS:
        web = round(options.web * variant.share) if variant.is_web else None
        times = {"half": variant.half, "think": variant.think, "cpu": variant.cpu}
        found.append(changes_of(argparse.Namespace(**{**vars(options), **times, "web": web})))
    body = []
    for key, base in found[0].items():
        others = [changes[key] for changes in found[1:]]
        cells = [f"{each.mean:+.1f}{'*' * each.is_sure}" for each in others]
        body.append([*key, str(base), *cells, holds(base, others)])
    heads = ["metric", "what changes", *(variant.title for variant in VARIANTS), "survives"]
    print(f"{options.web} pages of the web; per cent, * where the interval excludes 0\n")
    print(tabulate(body, heads, disable_numparse=True), end="\n\n")


def holds(base: Estimate, others: Sequence[Estimate]) -> str:
    """Return the letters of the variants in all of which the sign is that of a sure change."""
    if not base.is_sure:
        return "undecided"
    fails = {
        variant.letter
        for variant, each in zip(VARIANTS[1:], others, strict=True)
        if each.mean * base.mean <= 0
    }
    letters = dict.fromkeys(variant.letter for variant in VARIANTS[1:])
    return " ".join(letter for letter in letters if letter not in fails) or "none"


_CHANGES = {"robust": robust_changes, "who": who_changes, "loss": loss_changes}
_ANSWERS = {
    "robust": robust_choice,
    "who": who_prioritizes,
    "loss": loss_order,
    "share": share,
    "rules": paint_rules,
}


def main(argv: Sequence[str]) -> int:
    """Print the answers asked for."""
    parser = argparse.ArgumentParser(prog="validate-answers", description=__doc__)
    parser.add_argument("answers", nargs="*", help=f"of {', '.join(_ANSWERS)} (default: all)")
    parser.add_argument("--store", type=Path, help="store finished loads and reuse them")
    parser.add_argument("--workers", type=int)
    parser.add_argument(
        "--other-seeds", action="store_true", help="robust and loss: with seeds from 500 on"
    )
    parser.add_argument(
        "--made-up", action="store_true", help="robust, who and loss: on 24 made-up pages"
    )
    parser.add_argument(
        "--web", type=int, metavar="N", help="robust, who and loss: on N pages of the set web"
    )
    parser.add_argument(
        "--survival",
        action="store_true",
        help="with --web: what holds on each half of the pages, on templates, and with other times",
    )
    parser.set_defaults(half=None, think=1.0, cpu=1.0)
    parser.add_argument(
        "--figures",
        type=Path,
        metavar="FOLDER",
        help="default: docs/images; build/figures for what is repeated",
    )
    options = parser.parse_args(argv)
    if options.figures is None:
        repeats = options.other_seeds or options.made_up or options.web
        options.figures = Path("build/figures" if repeats else "docs/images")
    options.figures.mkdir(parents=True, exist_ok=True)
    for name in options.answers or _ANSWERS:
        if options.survival:
            survival(_CHANGES[name], options)
        else:
            _ANSWERS[name](options)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
