"""Figures of schemes beside a baseline: page by page, by buffer, by rank; and of correlations."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from h3sim.errors import InputError, NothingToMeasureError, Problem
from h3sim.page.classes import size_class
from h3sim.plots.labels import plain, shortened, value_label
from h3sim.plots.style import SIGNIFICANT, SMALL, line
from h3sim.study.pairs import pairs_by_scheme

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from matplotlib.axes import Axes

    from h3sim.study import Results
    from h3sim.study.ranks import Ranks

__all__ = [
    *("draw_buffers", "draw_correlations", "draw_ranks", "draw_scatter", "legend_by_size"),
    *("check_beside", "name_columns"),
]

_SIZES = {"small": "small, < 500 kB", "medium": "medium", "large": "large, > 1000 kB"}
"""The sizes of pages of Marx 2019, Fig. 12, in words."""
_LANE = 0.25
_LINE_CHARS = 96
"""So many characters stand beside each other below a figure of a study."""
_FACTORS = (1.01, 1.02, 1.05, 1.1, 1.25, 1.5, 2, 3, 4, 5, 7, 10, 20, 50, 100)


def name_columns(ax: Axes, names: Sequence[str]) -> None:
    """Name the columns of a figure, upright where they would not stand beside each other."""
    ax.set_xticks(range(len(names)), names)
    longest = max((len(line) for name in names for line in name.splitlines()), default=0)
    if len(names) * (longest + 2) > _LINE_CHARS:
        ax.tick_params(axis="x", labelrotation=90)


def check_beside(schemes: Collection[str], baseline: str, value: str) -> None:
    """Refuse a figure of schemes beside a baseline that none stands beside.

    Raises:
        NothingToMeasureError: if there are no such *schemes*.
    """
    if not schemes:
        raise NothingToMeasureError(f"no other scheme has {value} beside one of {baseline}")


def _page_sizes(results: Results) -> dict[str, int]:
    """Return the bytes of each page, in the order of the rows.

    Raises:
        InputError: if the results do not say.
    """
    if "page_bytes" not in results.columns:
        raise InputError([Problem(key="page_bytes", message="the results have no such column")])
    return {row["page"]: row["page_bytes"] for row in results}


def draw_scatter(ax: Axes, results: Results, baseline: str, value: str) -> dict[str, list[float]]:
    """Draw a point a page and scheme, beside each other by size; return those of each scheme."""
    sizes = _page_sizes(results)
    pairs = pairs_by_scheme(results, baseline, value)
    schemes = [name for name in pairs if name != baseline]
    check_beside(schemes, baseline, value)
    told = set()
    drawn: dict[str, list[float]] = {}
    for place, scheme in enumerate(schemes):
        logs: dict[str, list[float]] = {}
        for pair in pairs[scheme]:
            logs.setdefault(pair.page, []).append(math.log(pair.speedup))
        for page, own in logs.items():
            number = list(_SIZES).index(size_class(sizes[page]))
            look = line(number)
            factor = math.exp(math.fsum(own) / len(own))
            drawn.setdefault(scheme, []).append(factor)
            ax.plot(
                place + _LANE * (number - 1),
                factor,
                marker=look.marker,
                markersize=4.5,
                color=look.color,
                fillstyle=("none", "left", "full")[number],
                linestyle="none",
                label=None if number in told else [*_SIZES.values()][number],
            )
            told.add(number)
    for place in range(1, len(schemes)):
        ax.axvline(place - 0.5, color="0.85", linewidth=0.6, zorder=0)
    ax.axhline(1, color="0.6", linewidth=0.8, zorder=0)
    name_columns(ax, [plain(shortened(name)) for name in schemes])
    ax.set_xlim(-0.5, len(schemes) - 0.5)
    _factor_axis(ax)
    return drawn


def legend_by_size(ax: Axes) -> None:
    """Say which marker is which size of page, the smallest first."""
    handles, labels = ax.get_legend_handles_labels()
    known = dict(zip(labels, handles, strict=True))
    names = [name for name in _SIZES.values() if name in known]
    ax.legend(
        [known[name] for name in names],
        names,
        fontsize=SMALL,
        frameon=False,
        title="pages",
        title_fontsize=SMALL,
    )


def _factor_axis(ax: Axes) -> None:
    """Make the vertical axis one of factors: x2 as far above 1 as /2 is below."""
    low, high = ax.dataLim.intervaly
    reach = max(1.1, high, 1 / low) if low > 0 else 1.1
    # A margin on an axis of logarithms is a power.
    reach **= 1.08
    # Where all is close to 1 finer steps are told; farther away they would stand on each other.
    least = 2 if reach >= 7 else 1.25 if reach >= 1.5 else 1.05 if reach >= 1.1 else 1
    shown = [factor for factor in _FACTORS if least <= factor <= reach]
    ax.set_yscale("log")
    ax.set_ylim(1 / reach, reach)
    ticks = [*(1 / factor for factor in reversed(shown)), 1.0, *shown]
    ax.yaxis.set_major_locator(FixedLocator(ticks))
    ax.yaxis.set_minor_locator(NullLocator())
    ax.yaxis.set_major_formatter(FuncFormatter(lambda factor, _: _factor(factor)))


def _factor(factor: float) -> str:
    if abs(factor - 1) < 1e-9:
        return "1"
    return f"x{factor:.3g}" if factor > 1 else f"/{1 / factor:.3g}"


def draw_buffers(
    ax: Axes, results: Results, baseline: str, value: str, over: str
) -> dict[str, list[tuple[object, float]]]:
    """Draw each scheme's speedup with its interval at each value of *over*; return the points."""
    places = list(dict.fromkeys(results.column(over)))
    points: dict[str, list[tuple[int, float, float | None, float | None]]] = {}
    for at, place in enumerate(places):
        for row in results.filter(**{over: place}).compare(baseline, value=value):
            if row.scheme != baseline:
                point = (at, row.geometric, row.low, row.high)
                points.setdefault(row.scheme, []).append(point)
    check_beside(points, baseline, value)
    for number, (scheme, own) in enumerate(points.items()):
        look = line(number)
        shift = 0.5 * ((number + 0.5) / len(points) - 0.5)
        xs = [at + shift for at, *_ in own]
        ax.plot(
            xs,
            [middle for _, middle, _, _ in own],
            label=plain(scheme),
            color=look.color,
            linestyle=look.linestyle,
            marker=look.marker,
            markersize=4,
            linewidth=1.0,
        )
        for x, (_, _, low, high) in zip(xs, own, strict=True):
            if low is not None and high is not None:
                ax.plot([x, x], [low, high], color=look.color, linewidth=1.4)
    ax.axhline(1, color="0.6", linewidth=0.8, zorder=0)
    ax.set_xticks(range(len(places)), [value_label(place) for place in places])
    ax.set_xlim(-0.5, len(places) - 0.5)
    _factor_axis(ax)
    return {
        scheme: [(places[at], middle) for at, middle, _, _ in own] for scheme, own in points.items()
    }


def draw_correlations(ax: Axes, results: Results, x: str, y: str) -> list[float]:
    """Draw a bar a page, the smallest page on the left; return their heights.

    They are full where the correlation is significant.
    """
    sizes = _page_sizes(results)
    pages = sorted(sizes, key=lambda page: (sizes[page], page))
    look = line(1)
    rhos = []
    for place, page in enumerate(pages):
        own = results.filter(page=page)
        if any(len(set(own.column(name))) == 1 for name in (x, y)):
            ax.text(place, 0, "none", ha="center", va="bottom", fontsize=SMALL - 1)
            continue
        found = own.correlation(x, y)
        is_significant = found.p_rho < SIGNIFICANT
        rhos.append(found.rho)
        ax.bar(
            place,
            found.rho,
            width=0.7,
            facecolor=look.color if is_significant else "white",
            edgecolor=look.color,
            linewidth=1.0,
        )
    ax.axhline(0, color="0.3", linewidth=0.8)
    ax.set_ylim(-1.05, 1.05)
    ax.set_xlim(-0.6, len(pages) - 0.4)
    names = [f"{plain(shortened(page))}\n{sizes[page] / 1000:,.0f} kB" for page in pages]
    name_columns(ax, names)
    return rhos


def draw_ranks(ax: Axes, found: Ranks) -> None:
    """Draw mean ranks on a ruler, and a bar over those that are not told apart (Demsar, Fig. 1)."""
    names = sorted(found.ranks, key=lambda name: found.ranks[name])
    n = len(names)
    groups = found.groups()
    first = -0.5 - 0.3 * len(groups)
    half = (n + 1) // 2
    for place, name in enumerate(names):
        is_left = place < half
        y = first - 0.6 * (place if is_left else n - 1 - place)
        rank, end = found.ranks[name], 0.9 if is_left else n + 0.1
        ax.plot([rank, rank, end], [0, y, y], color="0.35", linewidth=0.9)
        ax.plot(rank, 0, marker="o", color="0.1", markersize=4, clip_on=False)
        side = "right" if is_left else "left"
        told = f"{plain(name)} {rank:.2f}" if is_left else f"{rank:.2f} {plain(name)}"
        ax.text(end + (-0.04 if is_left else 0.04), y, told, ha=side, va="center", fontsize=SMALL)
    for place, group in enumerate(groups):
        ends = [found.ranks[group[0]] - 0.03, found.ranks[group[-1]] + 0.03]
        ax.plot(ends, [-0.3 * (place + 1)] * 2, color="0.1", linewidth=3, solid_capstyle="butt")
    _draw_ruler(ax, n, found.critical_difference)
    ax.set_ylim(first - 0.6 * half, 1.9)
    ax.set_xlim(1 - 0.28 * n, n + 0.28 * n)


def _draw_ruler(ax: Axes, n: int, difference: float) -> None:
    ax.plot([1, n], [0, 0], color="0.1", linewidth=1)
    for rank in range(1, n + 1):
        ax.plot([rank, rank], [0, 0.15], color="0.1", linewidth=1)
        ax.text(rank, 0.25, str(rank), ha="center", va="bottom", fontsize=SMALL)
    ax.plot([1, 1 + difference], [1.1, 1.1], color="0.1", linewidth=1.4, marker="|", markersize=6)
    told = f"critical difference {difference:.2f}"
    ax.text(1, 1.3, told, ha="left", va="bottom", fontsize=SMALL)
    ax.set_axis_off()
