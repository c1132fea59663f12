"""`make corpus-figure`: the shipped pages in numbers and as a figure, beside pages of the web.

The table goes to standard output, as Markdown; docs/generated/corpus.md has it.
"""

from __future__ import annotations

import statistics
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from tabulate import tabulate

from h3sim import catalog
from h3sim.catalog.web import PERIODS, SET
from h3sim.page import Kind

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from matplotlib.axes import Axes

    from h3sim.page import Page

CHECKOUT = Path(__file__).resolve().parents[1]
FIGURE = CHECKOUT / "docs" / "images" / "corpus.png"
ALMANAC = "HTTP Archive 2024"
"""Web Almanac 2024, chapter Page Weight: medians of home pages on desktop, October 2024."""
ALMANAC_RESOURCES = (23, 74, 182)
"""The 10th, 50th and 90th percentile."""
ALMANAC_KB = 2652 * 1.024
ALMANAC_KIND_KB = {
    Kind.DOCUMENT: 18 * 1.024,
    Kind.STYLESHEET: 78 * 1.024,
    Kind.SCRIPT: 613 * 1.024,
    Kind.FONT: 131 * 1.024,
    Kind.IMAGE: 1054 * 1.024,
}
"""Medians of each kind for itself: they do not add up to the median of the whole."""


class Shape(NamedTuple):
    """What a page is like: its name, how many resources, kB of bodies, longest chain, kinds."""

    name: str
    resources: int
    kilobytes: float
    depth: int
    counts: Mapping[Kind, int]
    kind_kb: Mapping[Kind, float]
    hosts: int
    own_share: float
    """Share of the bytes that the page's own site sends, by the names of its hosts."""


def shape_of(page: Page) -> Shape:
    """Return the shape of a page; its depth is the longest chain of discoveries."""
    depths: dict[int, int] = {page.root: 0}
    todo = [page.root]
    while todo:
        position = todo.pop()
        for child in page.children.get(position, ()):
            depths[child] = depths[position] + 1
            todo.append(child)
    counts = dict.fromkeys(Kind, 0)
    kind_kb = dict.fromkeys(Kind, 0.0)
    own_bytes = 0
    for resource in page.resources:
        counts[resource.kind] += 1
        kind_kb[resource.kind] += resource.size_bytes / 1000
        own_bytes += resource.size_bytes * (not resource.host.startswith("third-"))
    return Shape(
        *(page.name, len(page.resources), page.total_bytes / 1000, max(depths.values())),
        *(counts, kind_kb, len({each.host for each in page.resources} - {""}) or 1),
        own_bytes / page.total_bytes,
    )


def summary(shapes: Sequence[Shape], web: Sequence[Shape]) -> str:
    """Return the table of percentiles and medians: templates, the web by period, HTTP Archive."""
    columns = [("corpus", shapes), (SET, web)]
    for period in PERIODS:
        names = set(catalog.page_set(f"{SET}:{period}") or ())
        columns.append((f"{SET}:{period}", [shape for shape in web if shape.name in names]))
    groups = [group for _, group in columns]
    archive = " - ".join(map(str, ALMANAC_RESOURCES))
    rows = [
        ["pages", *(f"{len(group)}" for group in groups), "-"],
        ["resources", *(_range([s.resources for s in g]) for g in groups), archive],
        ["kB", *(_range([s.kilobytes for s in g]) for g in groups), f"{ALMANAC_KB:,.0f}"],
        ["hosts", *(_range([s.hosts for s in g]) for g in groups), "-"],
        ["own site, % of bytes", *(_range([100 * s.own_share for s in g]) for g in groups), "-"],
        ["depth", *(_range([s.depth for s in g]) for g in groups), "-"],
    ]
    for kind in ALMANAC_KIND_KB:
        medians = (statistics.median(s.kind_kb[kind] for s in group) for group in groups)
        name = f"{kind.value}s, kB"
        rows.append([name, *(f"{m:,.0f}" for m in medians), f"{ALMANAC_KIND_KB[kind]:,.0f}"])
    heads = ["", *(name for name, _ in columns), ALMANAC]
    return tabulate(rows, heads, "github", disable_numparse=True)


def _range(values: Sequence[float]) -> str:
    tenths = statistics.quantiles(values, n=10, method="inclusive")
    return " - ".join(f"{tenths[index]:,.0f}" for index in (0, 4, 8))


def draw(shapes: Sequence[Shape], theirs: Sequence[Shape]) -> None:
    """Draw sizes and counts, and which kinds make up the bytes."""
    from matplotlib.figure import Figure

    from h3sim.reporting.output import save_figure, set_alt_text
    from h3sim.reporting.style import in_style

    with in_style():
        figure = Figure(figsize=(9.5, 4.4), layout="constrained")
        left, right = figure.subplots(1, 2, width_ratios=(1.25, 1))
        _draw_sizes(left, shapes, theirs)
        _draw_kinds(right, shapes, theirs)
        for ax, title in ((left, "Sizes and counts"), (right, "Bytes by kind")):
            set_alt_text(
                ax,
                f"{title} of {len(shapes)} shipped templates and {len(theirs)} pages of the web.",
            )
    save_figure(figure, FIGURE)


def _draw_sizes(axes: Axes, shapes: Sequence[Shape], theirs: Sequence[Shape]) -> None:
    axes.set(xscale="log", yscale="log", xlabel="resources", ylabel="kB of response bodies")
    x, y = [s.resources for s in theirs], [s.kilobytes for s in theirs]
    axes.scatter(x, y, 26, marker="^", facecolors="none", edgecolors="#8a8a8a", linewidths=0.9)
    axes.scatter([], [], 26, marker="^", facecolors="none", edgecolors="#8a8a8a").set_label(
        f"web ({len(theirs)})"
    )
    x, y = [s.resources for s in shapes], [s.kilobytes for s in shapes]
    axes.scatter(x, y, 22, color="#0b4f8c", label=f"corpus ({len(shapes)})", zorder=3)
    axes.scatter(
        [ALMANAC_RESOURCES[1]],
        [ALMANAC_KB],
        110,
        marker="*",
        color="#1b1b1b",
        label=f"{ALMANAC}, medians",
        zorder=4,
    )
    for kilobytes in (500, 1000):
        axes.axhline(kilobytes, color="#555555", linestyle=":", linewidth=0.9)
    for kilobytes, name in ((70, "small"), (707, "medium"), (3200, "large")):
        where = (1.01, kilobytes)
        axes.annotate(name, where, xycoords=("axes fraction", "data"), va="center", color="#303030")
    ticks = [10, 20, 50, 100, 200]
    axes.set_xticks(ticks, [f"{tick}" for tick in ticks])
    axes.minorticks_off()
    heights = [10, 100, 1000, 10_000]
    axes.set_yticks(heights, [f"{height:,}" for height in heights])
    axes.legend(loc="lower right", frameon=False)
    axes.spines[["top", "right"]].set_visible(False)
    axes.set_title("How large, and of how many parts", loc="left")


def _draw_kinds(axes: Axes, shapes: Sequence[Shape], theirs: Sequence[Shape]) -> None:
    groups = [("corpus:\nbytes", shapes, True), ("corpus:\nresources", shapes, False)]
    groups += [("web:\nbytes", theirs, True), ("web:\nresources", theirs, False)]
    looks = (
        (Kind.IMAGE, "#c8c8c8", "", "#303030"),
        (Kind.SCRIPT, "#0b4f8c", "", "#ffffff"),
        (Kind.STYLESHEET, "#efab35", "/////", "#303030"),
        (Kind.FONT, "#1b1b1b", "", "#ffffff"),
        (Kind.DOCUMENT, "#a3dbf7", "-----", "#303030"),
        (Kind.FETCH, "#d4622a", ".....", "#ffffff"),
        (None, "#ffffff", "", "#303030"),
    )
    named = {kind for kind, *_ in looks}
    for position, (_, group, by_bytes) in enumerate(reversed(groups)):
        sums = {
            kind: sum(s.kind_kb[kind] if by_bytes else s.counts[kind] for s in group)
            for kind in Kind
        }
        total = sum(sums.values())
        start = 0.0
        for kind, face, hatch, ink in looks:
            rest = sum(sums[k] for k in Kind if k not in named)
            share = 100 * (rest if kind is None else sums[kind]) / total
            label = ("other" if kind is None else kind.value) if position == 0 else None
            axes.barh(
                position, share, 0.62, start, color=face, hatch=hatch, edgecolor="#303030",
                linewidth=0.6, label=label,
            )  # fmt: skip
            if share >= 6:
                axes.text(
                    start + share / 2, position, f"{share:.0f}", color=ink, ha="center",
                    va="center",
                    bbox={"facecolor": face, "edgecolor": "none", "pad": 1.0} if hatch else None,
                )  # fmt: skip
            start += share
    axes.set_yticks(range(len(groups)), [name for name, *_ in reversed(groups)])
    axes.set(xlim=(0, 100), xlabel="%")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(
        loc="lower center", bbox_to_anchor=(0.45, 1.0), ncols=4, frameon=False, handlelength=1.2
    )


def main() -> int:
    """Print the tables and draw the figure."""
    shapes = [shape_of(catalog.load_page(name)) for name in catalog.page_set("corpus") or ()]
    theirs = [shape_of(catalog.load_page(name)) for name in catalog.page_set(SET) or ()]
    print(summary(shapes, theirs))
    draw(shapes, theirs)
    return 0


if __name__ == "__main__":
    sys.exit(main())
