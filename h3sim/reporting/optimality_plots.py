"""Plots of optimality ratios, page by page and by category."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from matplotlib.ticker import FuncFormatter, NullFormatter

from h3sim.errors import InputError, NothingToMeasureError, ValidationIssue
from h3sim.page.categories import PAGE_CLASSES
from h3sim.reporting import output
from h3sim.reporting.labels import Interval, plain, with_intervals
from h3sim.reporting.output import plot_methods
from h3sim.reporting.style import SMALL, finish_axes, line

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path
    from typing import Unpack

    from matplotlib.axes import Axes

    from h3sim.reporting.style import FigureStyle
    from h3sim.results.load import Which
    from h3sim.study import Optimality


_SIZE_IN, _ROW_IN, _MARGIN_IN = 7.0, 0.34, 1.1
_LANE = 0.62
"""Share of a row that its lanes fill, one lane per network or class."""
_TICKS = (1, 1.05, 1.1, 1.2, 1.3, 1.5, 2, 3, 4, 5, 7, 10, 20, 50, 100, 200, 500, 1000)
_LEAST_APART = 0.06
"""So much of the axis lies between two that are told."""
_WORDS = {"all": "on all resources", "atf": "above the fold"}


@plot_methods
class OptimalityPlots:
    """Draws a *optimality*. Each method returns the axes that it drew on, and shows nothing."""

    def __init__(self, optimality: Optimality) -> None:
        self._optimality = optimality

    def schemes(
        self, which: Which = "atf", *, ax: Axes | None = None, **style: Unpack[FigureStyle]
    ) -> Axes:
        """Draw each page's optimality ratio under each scheme, and the mean: a lane a network.

        Faint marks are pages, full marks are means over pages. The axis is of factors: from 1 to
        2 is as far as from 2 to 4. Returns *ax*, or the axes of a new figure.

        Raises:
            InputError: if *which* is neither "all" nor "atf".
            NothingToMeasureError: if no load has that optimality ratio.
        """
        _check_which(which)
        networks = self._networks
        values: dict[tuple[str, str], list[float]] = {}
        for row in self._optimality.rows:
            found = values.setdefault((row.network, row.scheme), [])
            value = row.optimality_ratio_atf if which == "atf" else row.optimality_ratio_all
            found += [] if value is None else [value]
        ax = self._axes(ax, len(networks), [v for found in values.values() for v in found])
        means = {}
        for (network, scheme), found in values.items():
            number = networks.index(network)
            at = self._position(scheme, number, len(networks))
            look = line(number)._asdict() | {"linestyle": "none", "fillstyle": "none"}
            ax.plot(found, [at] * len(found), **look, markersize=3, alpha=0.35)
            if found:
                mean = Interval(math.fsum(found) / len(found))
                _draw_mean(ax, at, number, mean, network)
                means[_lane(scheme, network, networks)] = mean
        self._finish(ax, which, "faint marks: pages; full marks: means", len(networks))
        self._annotate(ax, which, "a mark per page and one for the mean", means)
        return ax

    def classes(
        self,
        by: str = "size",
        *,
        which: Which = "atf",
        network: str | None = None,
        ax: Axes | None = None,
        **style: Unpack[FigureStyle],
    ) -> Axes:
        """Draw each scheme's mean optimality ratio with its 95 % interval: a lane a class of pages.

        Pages are told apart *by* what `Optimality.by_class` takes; *network* is the first one that
        was loaded over unless it is named.

        Raises:
            InputError: if there is no such class, network or *which*.
            MissingExtraError: if scipy is not installed.
            NothingToMeasureError: if no load has that optimality ratio.
        """
        _check_which(which)
        chosen = network or self._networks[0]
        if chosen not in self._networks:
            message = f"must be one of {', '.join(self._networks)}, is {chosen}"
            raise InputError([ValidationIssue(key="network", message=message)])
        rows = [
            row
            for row in self._optimality.by_class(by)
            if (row.network, row.which) == (chosen, which)
        ]
        known = [name for name in PAGE_CLASSES[by][0] if any(r.page_class == name for r in rows)]
        ax = self._axes(ax, len(known), [row.mean for row in rows if row.mean is not None])
        means = {}
        for row in rows:
            if row.mean is not None:
                number, mean = known.index(row.page_class), Interval(row.mean, row.low, row.high)
                at = self._position(row.scheme, number, len(known))
                _draw_mean(ax, at, number, mean, f"{row.page_class} ({row.n_pages})")
                means[_lane(row.scheme, row.page_class, known)] = mean
        description = f"means of pages by {by}, 95 % intervals; {chosen}"
        self._finish(ax, which, description, len(known))
        self._annotate(ax, which, description, means)
        return ax

    def save(
        self,
        path: str | Path,
        *,
        by: str | None = None,
        which: Which = "atf",
        **style: Unpack[FigureStyle],
    ) -> None:
        """Write the figure of all schemes, or that *by* classes of pages; the ending says as what.

        Raises:
            InputError: if the file cannot be written, or its ending is not known.
        """
        output.check_ending(path)
        drawn = (
            self.schemes(which, **style) if by is None else self.classes(by, which=which, **style)
        )
        output.save_figure(output.root_figure(drawn), path)

    def _annotate(self, ax: Axes, which: Which, words: str, means: Mapping[str, Interval]) -> None:
        what = f"its optimality ratio {_WORDS[which]}: ByteIndex over its lower bound"
        words = f"A row per scheme, {what}; {words}: {with_intervals(means)}"
        output.set_alt_text(ax, words)

    @property
    def _networks(self) -> list[str]:
        return [*dict.fromkeys(row.network for row in self._optimality.rows)]

    @property
    def _schemes(self) -> list[str]:
        return [*dict.fromkeys(row.scheme for row in self._optimality.rows)]

    def _position(self, scheme: str, number: int, lanes: int) -> float:
        """Return where a lane of a scheme's row is."""
        return self._schemes.index(scheme) + _LANE * ((number + 0.5) / lanes - 0.5)

    def _axes(self, ax: Axes | None, lanes: int, values: list[float]) -> Axes:
        if not values:
            raise NothingToMeasureError(
                "no load has that optimality ratio: there is nothing to draw"
            )
        if ax is None:
            height_in = _MARGIN_IN + _ROW_IN * len(self._schemes) * max(1.0, 0.55 * lanes)
            ax = output.ShownFigure(figsize=(_SIZE_IN, height_in), layout="constrained").subplots()
        return ax

    def _finish(self, ax: Axes, which: Which, description: str, lanes: int) -> None:
        names = self._schemes
        ax.set_xscale("log")
        ax.axvline(1, color="0.6", linewidth=0.8, zorder=0)
        _tick(ax)
        for row in range(1, len(names)):
            ax.axhline(row - 0.5, color="0.9", linewidth=0.6, zorder=0)
        ax.set_yticks(range(len(names)), [plain(name) for name in names])
        ax.set_ylim(len(names) - 0.5, -0.5)
        x = f"optimality ratio {_WORDS[which]}: ByteIndex over its lower bound"
        finish_axes(ax, title=plain(description), x=x)
        if lanes > 1:
            ax.legend(fontsize=SMALL, frameon=False, loc="lower right")


def _lane(scheme: str, name: str, names: list[str]) -> str:
    """Return what a lane of a scheme's row is called; the only one by the scheme alone."""
    return scheme if len(names) == 1 else f"{scheme} ({name})"


def _draw_mean(ax: Axes, at: float, number: int, mean: Interval, label: str) -> None:
    look: dict[str, Any] = line(number)._asdict() | {"linestyle": "none"}
    if mean.ends is not None:
        ax.plot(mean.ends, [at, at], color=look["color"], linewidth=1.2)
    known = ax.get_legend_handles_labels()[1]
    name = None if plain(label) in known else plain(label)
    ax.plot(mean.value, at, **look, markersize=6, label=name)


def _tick(ax: Axes) -> None:
    """Tell the factors that are within the axis, those near 1 only where all is near it."""
    low, high = ax.get_xlim()
    width = math.log(high / low)
    shown: list[float] = []
    for tick in (tick for tick in _TICKS if low <= tick <= high):
        # On an axis of logarithms those near 1 would stand on each other where it goes far.
        if not shown or math.log(tick / shown[-1]) >= _LEAST_APART * width:
            shown.append(tick)
    ax.set_xticks(shown)
    ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    ax.xaxis.set_minor_formatter(NullFormatter())


def _check_which(which: object) -> None:
    if which not in _WORDS:
        raise InputError(
            [ValidationIssue(key="which", message=f"must be 'all' or 'atf', is {which!r}")]
        )
