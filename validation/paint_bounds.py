"""`make validate-paint-bounds`: how far the bounds of paints are from what an order can reach.

Small random pages are loaded with every order of packets that never idles; their bounds are held
against the best of them. Every shipped page is loaded with shipped schemes, and with three that
know the page: one at a time goes what the first paint needs, with the largest element, or with all
that is visible. The best of these is at least the optimum, and the bound at most.
"""

from __future__ import annotations

import argparse
import itertools
import random
import statistics
import sys
from typing import TYPE_CHECKING, Any, NamedTuple

from tabulate import tabulate

import h3sim
from h3sim.browser import needed_for_first_paint
from h3sim.cli.command import progress_bar
from h3sim.page import Kind, MarksFrom
from h3sim.page.model import marked
from h3sim.schedulers import Scheduler

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from h3sim.load import Load
    from h3sim.page import Page

PAINTS = ("first_paint", "largest_paint", "speed_index")
_SHIPPED = ("chrome-eps", "h3sim-1", "bucket-html", "dfifo", "fifo", "rr")
_NETWORKS = ("marx-2019", "cable", "4g")
_MOST_ORDERS = 600
_IN_VIEW = (Kind.IMAGE, Kind.MEDIA)


class ScriptedScheduler(Scheduler):
    """A scheduler whose n-th packet is of the stream that the n-th entry of *script* selects.

    *n_choices* records how many streams there were to choose from at each packet.
    """

    def __init__(self, script: Sequence[int], n_choices: list[int]) -> None:
        self._script = script
        self._n_choices = n_choices
        self._active: set[int] = set()
        self._n_sent = 0

    def open(self, stream_id: int, signal: Any) -> None:
        """Do nothing: only active streams matter."""

    def update(self, stream_id: int, signal: Any) -> None:
        """Do nothing: signals are ignored."""

    def activate(self, stream_id: int) -> None:
        """Record that a stream has bytes."""
        self._active.add(stream_id)

    def deactivate(self, stream_id: int) -> None:
        """Record that a stream has none."""
        self._active.discard(stream_id)

    def close(self, stream_id: int) -> None:
        """Forget a stream."""
        self._active.discard(stream_id)

    def pick(self) -> int | None:
        """Return the stream that the script selects; the first once the script is over."""
        if not self._active:
            return None
        del self._n_choices[self._n_sent :]
        self._n_choices.append(len(self._active))
        chosen = self._script[self._n_sent] if self._n_sent < len(self._script) else 0
        return sorted(self._active)[min(chosen, len(self._active) - 1)]

    def charge(self, stream_id: int, n_bytes: int) -> None:
        """Go on to the next entry of the script."""
        del stream_id, n_bytes
        self._n_sent += 1


_BROWSER = {"browser": "parse", "paint": "complete"}
"""Images count once they are complete: the bound counts pieces of others too early."""


def all_orders(page: Page, **options: Any) -> Iterator[Load]:
    """Yield a load for every order of packets that never idles.

    >>> len({load.page_load_ms for load in all_orders(small_page(1))})
    1
    """
    script: list[int] = []
    while True:
        n_choices: list[int] = []

        def scheduler(
            script: Sequence[int] = tuple(script), n_choices: list[int] = n_choices
        ) -> Scheduler:
            return ScriptedScheduler(script, n_choices)

        yield h3sim.simulate(page, scheduler=scheduler, **{**_BROWSER, **options})
        script += [0] * (len(n_choices) - len(script))
        # The next script in the order of an odometer: the last entry that can go up does.
        last = next(
            (n for n in reversed(range(len(n_choices))) if script[n] + 1 < n_choices[n]), -1
        )
        if last < 0:
            return
        script = [*script[:last], script[last] + 1]


def small_page(seed: int) -> Page:
    """Return a random page of a document, what blocks it, and what is seen: about 8 packets."""
    source, packet_bytes = random.Random(seed), 1400  # noqa: S311 - pages, no secrets
    n_root = source.randint(1, 2)
    resources: list[dict[str, Any]] = [
        {"id": "/", "kind": "document", "bytes": n_root * packet_bytes, "parse_ms": 3},
    ]
    kinds = source.choices(["stylesheet", "script", "image", "font"], [3, 3, 5, 1], k=3)
    for number, kind in enumerate([*kinds, "image"]):
        offset = source.randrange(n_root * packet_bytes)
        entry: dict[str, Any] = {
            "id": f"{number}",
            "kind": kind,
            "bytes": packet_bytes * source.choice([1, 1, 1, 2]),
            "discovered": {"by": "/", "at": "offset", "offset_bytes": offset},
        }
        if kind in ("stylesheet", "script"):
            entry["in_head"] = source.random() < 0.6
            entry["execute_ms"] = source.choice([0, 4, 25])
        if kind == "image":
            entry["viewport"] = source.choice([0.05, 0.2, 0.4])
        parents = [r for r in resources if r["kind"] in ("stylesheet", "script")]
        if parents and source.random() < 0.4:
            by = source.choice(parents)
            at = "executed" if by["kind"] == "script" else "complete"
            entry["discovered"] = {"by": by["id"], "at": at, "delay_ms": source.choice([0, 7])}
            entry.pop("in_head", None)
        resources.append(entry)
    document = {"format": "h3sim-page/1", "name": f"small-{seed}", "resources": resources}
    return h3sim.Page.from_dict(document)


class Closeness(NamedTuple):
    """The best value of each paint over several loads, divided by its bound."""

    page: str
    ratios: dict[str, float]


def closeness(page: Page, loads: Sequence[Load]) -> Closeness:
    """Return the best ratios of *loads*.

    Raises:
        AssertionError: if a load is below its bound.
    """
    ratios: dict[str, float] = {}
    for load in loads:
        bounds = load.paint_bounds
        for paint in PAINTS if bounds is not None else ():
            ratio = getattr(bounds, f"{paint}_ratio")
            if ratio is not None:
                assert ratio >= 1, (page.name, paint, ratio, load.network.name, load.scheme.name)  # noqa: S101
                ratios[paint] = min(ratio, ratios.get(paint, ratio))
    return Closeness(page.name, ratios)


def of_small_pages(
    n_pages: int,
    progress: Callable[[int, int], None] | None = None,
    *,
    n_orders: int = _MOST_ORDERS,
) -> list[Closeness]:
    """Return how close the best of all orders is on random pages with at most *n_orders*."""
    found = []
    for seed in range(n_pages):
        page = small_page(seed)
        loads = [*itertools.islice(all_orders(page), n_orders + 1)]
        if len(loads) <= n_orders:
            found.append(closeness(page, loads))
        if progress is not None:
            progress(seed + 1, n_pages)
    return found


def of_shipped_page(page: Page, network: str) -> Closeness:
    """Return how close the best of the schemes is, those that know the page included."""
    options: dict[str, Any] = {"network": network, **_BROWSER}
    if not network.startswith("marx"):
        options["transport_profile"] = "quiche-chrome"
    loads = [h3sim.simulate(page, scheme=scheme, **options) for scheme in _SHIPPED]
    # `atf-first` sends one at a time what is marked, and what leads to it.
    loads += [
        h3sim.simulate(each, scheme="atf-first", tight_mode=mode, **options)
        for each in marked_for_paints(page)
        for mode in ("off", "chrome-118")
    ]
    return closeness(page, loads)


def marked_for_paints(page: Page) -> Iterator[Page]:
    """Yield the page with marks on what the first paint needs; with the largest; with all seen."""
    resources = page.resources
    needed = [resources[index].id for index in needed_for_first_paint(page)]
    seen = [each for each in resources if each.kind in _IN_VIEW and (each.viewport or each.hero)]
    largest = sorted(seen, key=lambda each: (each.hero, each.viewport or 0))[-1:]
    heroes = [each for each in resources if each.hero]
    for some in ([], [*largest, *heroes], seen):
        ids = {*needed, *(each.id for each in some)}
        yield marked(page, _with_parents(page, ids), MarksFrom.HAND)


def _with_parents(page: Page, ids: set[str]) -> set[str]:
    waiting, found = [*ids], set(ids)
    while waiting:
        discovery = page.resources[page.index[waiting.pop()]].discovered
        for by in () if discovery is None else discovery.parents:
            if by not in found:
                found.add(by)
                waiting.append(by)
    return found


def table(found: dict[str, list[Closeness]]) -> str:
    """Return the quantiles of ratios, a row per group and paint."""
    body = []
    for group, rows in found.items():
        for paint in PAINTS:
            ratios = {row.page: row.ratios[paint] for row in rows if paint in row.ratios}
            values, worst = sorted(ratios.values()), max(ratios, key=ratios.__getitem__)
            exact = sum(ratio < 1.0005 for ratio in values) / len(values)
            tenth = values[len(values) * 9 // 10]
            median, mean = statistics.median(values), statistics.fmean(values)
            row = (group, paint.replace("_", " "), len(values), f"{exact:.0%}", median, mean, tenth)
            body.append((*row, ratios[worst], worst))
    heads = ("pages", "paint", "n", "exact", "median", "mean", "90 %", "worst", "page")
    return tabulate(body, heads, floatfmt=".3f")


def main(argv: Sequence[str]) -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="validate-paint-bounds", description=__doc__)
    parser.add_argument("--random", type=int, default=500, metavar="N", help="random small pages")
    parser.add_argument("--every", type=int, default=1, help="use each n-th shipped page")
    options = parser.parse_args(argv)
    pages = [h3sim.load_page(row.name) for row in h3sim.list_pages()][:: options.every]
    found: dict[str, list[Closeness]] = {}
    with progress_bar("page") as progress:
        found["small, every order"] = of_small_pages(options.random, progress)
        for network in _NETWORKS:
            found[f"shipped, {network}"] = [of_shipped_page(page, network) for page in pages]
    print(table(found))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
