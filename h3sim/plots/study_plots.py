"""Figures of studies: how schemes differ over pages, seeds and settings."""

from __future__ import annotations

import statistics
from typing import TYPE_CHECKING, Any

from h3sim.errors import InputError, NothingToMeasureError, Problem
from h3sim.plots import scheme_plots
from h3sim.plots.files import ShownFigure, checks_axes, say
from h3sim.plots.labels import plain, value_label
from h3sim.plots.study_words import Interval, ends_of, listed, spreads_of, with_intervals
from h3sim.plots.style import SIGNIFICANT, SMALL, in_style, line
from h3sim.study.rows import no_column

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from matplotlib.axes import Axes

    from h3sim.study import Results

__all__ = ["StudyPlots"]

_THICK, _THIN = 2.2, 0.8
_PERCENT = 100
_SIZE_IN = (7.0, 4.0)
_ROW_IN = 0.28
_MOST_WITHIN = 5
"""Of more lines than these, no place is left among them."""


@checks_axes
class StudyPlots:
    """Draws *results*. Each method returns the axes that it drew on, and shows nothing."""

    def __init__(self, results: Results) -> None:
        self._results = results

    def cdf(
        self,
        value: str = "byte_index_all_ms",
        *,
        relative_to: str = "rr",
        ax: Axes | None = None,
    ) -> Axes:
        """Draw, per scheme, which share of pages has its median change below what (Sander, Fig. 5).

        A page and setting is a step, at the change of its median over seeds against *relative_to*,
        in percent; left of 0 is faster. A step is thick where Mann and Whitney's U test calls the
        change significant (p < 0.005). Returns *ax*, or the axes of a new figure.

        Raises:
            InputError: if there is no such scheme or column.
            NothingToMeasureError: if no other scheme has the value beside it.
            MissingExtraError: if scipy is not installed.
        """
        rows = self._results.relative_medians(relative_to, value=value)
        schemes = dict.fromkeys(row.scheme for row in rows if row.scheme != relative_to)
        scheme_plots.check_beside(schemes, relative_to, value)
        is_own = ax is None
        with in_style():
            ax = _axes(ax)
            told = []
            for number, scheme in enumerate(schemes):
                steps = sorted(
                    (_PERCENT * row.delta, row.p is not None and row.p < SIGNIFICANT)
                    for row in rows
                    if row.scheme == scheme
                )
                _draw_steps(ax, number, scheme, steps)
                told.append(_steps_in_words(scheme, steps))
            ax.axvline(0, color="0.6", linewidth=0.8)
            ax.set_ylim(0, 1.02)
            _label(
                ax,
                f"change of the median {value} to {relative_to} in %; thick where p < 0.005",
                "share of pages",
            )
            _explain(ax, is_own=is_own)
        what = f"the share of pages by the change of their median {value} to {relative_to}"
        say(ax, f"A line of steps per scheme, {what}: {listed(told)}")
        return ax

    def forest(
        self, value: str = "byte_index_all_ms", *, baseline: str = "rr", ax: Axes | None = None
    ) -> Axes:
        """Draw each scheme's speedup with its 95 % interval, one below the other.

        Raises:
            InputError: if there is no such scheme or column.
            MissingExtraError: if scipy is not installed.
        """
        rows = self._results.compare(baseline, value=value)
        with in_style():
            ax = _axes(ax, height_in=1 + _ROW_IN * len(rows))
            for index, row in enumerate(rows):
                look = line(index)
                if row.low is not None and row.high is not None:
                    ax.plot([row.low, row.high], [index, index], color=look.color, linewidth=1.5)
                ax.plot(row.geometric, index, marker="D", color=look.color, markersize=5)
            ax.axvline(1, color="0.6", linewidth=0.8)
            ax.set_yticks(range(len(rows)), [plain(row.scheme) for row in rows])
            ax.set_ylim(len(rows) - 0.5, -0.5)
            what = f"speedup of {value} to {baseline}, geometric mean, 95 % interval"
            _label(ax, what, "")
        means = {row.scheme: Interval(row.geometric, row.low, row.high) for row in rows}
        say(ax, f"A row per scheme, {what}: {with_intervals(means)}")
        return ax

    def lines(self, over: str, value: str = "byte_index_all_ms", *, ax: Axes | None = None) -> Axes:
        """Draw the mean of *value* over a column of numbers: a line a scheme, a band of one sd.

        Raises:
            InputError: if there is no such column of numbers.
            NothingToMeasureError: if no load has the value.
        """
        rows = [row for row in self._summary(value, ["scheme", over]) if row["n"]]
        if not rows:
            raise NothingToMeasureError(f"no load has {value}: there is nothing to draw")
        _check_numbers(over, [row[over] for row in rows])
        is_own = ax is None
        with in_style():
            ax = _axes(ax)
            lines: dict[str, list[tuple[object, float]]] = {}
            for number, scheme in enumerate(dict.fromkeys(row["scheme"] for row in rows)):
                own = [row for row in rows if row["scheme"] == scheme]
                points = sorted((row[over], row["mean"], row["sd"] or 0) for row in own)
                xs, means, spreads = zip(*points, strict=True)
                lines[scheme] = [*zip(xs, means, strict=True)]
                look = line(number)
                style: dict[str, Any] = look._asdict()
                ax.plot(xs, means, label=plain(scheme), markersize=4, linewidth=1.2, **style)
                low = [mean - sd for mean, sd in zip(means, spreads, strict=True)]
                high = [mean + sd for mean, sd in zip(means, spreads, strict=True)]
                ax.fill_between(xs, low, high, color=look.color, alpha=0.12, linewidth=0)
            _label(ax, over, f"mean {value}, band: one standard deviation")
            _explain(ax, is_own=is_own)
        say(ax, f"A line per scheme, the mean {value} over {over}: {ends_of(lines)}")
        return ax

    def heat(
        self, x: str, y: str, value: str = "byte_index_all_ms", *, ax: Axes | None = None
    ) -> Axes:
        """Draw the mean of *value* over two columns as a map, with the numbers in it.

        Raises:
            InputError: if there is no such column.
        """
        rows = self._summary(value, [x, y])
        columns, lines = (list(dict.fromkeys(row[name] for row in rows)) for name in (x, y))
        means = {(row[x], row[y]): row["mean"] for row in rows}
        nan = float("nan")
        grid = [[_or(means.get((column, row)), nan) for column in columns] for row in lines]
        with in_style():
            ax = _axes(ax)
            ax.imshow(grid, aspect="auto", cmap="cividis")
            known = [mean for mean in means.values() if mean is not None]
            middle = (min(known, default=0) + max(known, default=0)) / 2
            for index, row in enumerate(grid):
                for at, mean in enumerate(row):
                    if mean != mean:
                        continue
                    # Where all are one, that is the least, and dark.
                    color = "white" if mean <= middle else "black"
                    ax.text(at, index, f"{mean:,.0f}", ha="center", va="center", color=color)
            scheme_plots.name_columns(ax, [value_label(name) for name in columns])
            ax.set_yticks(range(len(lines)), [value_label(name) for name in lines])
            _label(ax, x, y)
            ax.set_title(f"mean {value}", fontsize=SMALL + 1, loc="left")
        say(ax, f"A map of {x} and {y}, the mean {value} in each cell: {_extremes(means)}")
        return ax

    def scatter(
        self, value: str = "byte_index_all_ms", *, baseline: str = "rr", ax: Axes | None = None
    ) -> Axes:
        """Draw each page's speedup with each scheme, by the size of the page (Marx 2019, Fig. 12).

        Small pages are below 500 kB, large ones above 1000 kB. A point is the geometric mean of
        the page's seeds and settings; x2 is as far above 1 as /2 is below.

        Raises:
            InputError: if there is no such scheme or column.
            NothingToMeasureError: if no other scheme has the value beside it.
        """
        with in_style():
            ax = _axes(ax)
            points = scheme_plots.draw_scatter(ax, self._results, baseline, value)
            what = f"speedup of {value} to {baseline}"
            _label(ax, "", what)
            scheme_plots.legend_by_size(ax)
        say(ax, f"A mark per page and scheme, {what}: {spreads_of(points)}")
        return ax

    def buffers(
        self,
        value: str = "byte_index_all_ms",
        *,
        baseline: str = "rr",
        over: str = "send_buffer_kb",
        ax: Axes | None = None,
    ) -> Axes:
        """Draw each scheme's speedup and its 95 % interval with each send buffer, side by side.

        The baseline has the same buffer. *over* may be any other column.

        Raises:
            InputError: if there is no such scheme or column.
            NothingToMeasureError: if no other scheme has the value beside it.
            MissingExtraError: if scipy is not installed.
        """
        self._check_column(over)
        is_own = ax is None
        with in_style():
            ax = _axes(ax)
            lines = scheme_plots.draw_buffers(ax, self._results, baseline, value, over)
            what = f"speedup of {value} to {baseline}, 95 % interval"
            _label(ax, over, what)
            _explain(ax, is_own=is_own)
        say(ax, f"A line per scheme over {over}, {what}: {ends_of(lines)}")
        return ax

    def correlations(self, x: str, y: str, *, ax: Axes | None = None) -> Axes:
        """Draw Spearman's rho of two columns, a bar a page by its size (Sander 2022, Fig. 7).

        Bars are full where p < 0.005.

        Raises:
            InputError: if there is no such column.
            NothingToMeasureError: if a page has fewer than three rows with both.
            MissingExtraError: if scipy is not installed.
        """
        self._check_column(x, y)
        with in_style():
            ax = _axes(ax)
            rhos = scheme_plots.draw_correlations(ax, self._results, x, y)
            _label(ax, "pages by their size; full where p < 0.005", f"Spearman's rho\n{x}\n{y}")
        what = f"Spearman's rho of {x} and {y}"
        say(ax, f"A bar per page, the smallest first, {what}: {spreads_of({'rho': rhos})}")
        return ax

    def ranks(
        self, value: str = "byte_index_all_ms", *, level: float = 0.05, ax: Axes | None = None
    ) -> Axes:
        """Draw mean ranks over pages; a bar joins those that are not told apart (Demsar 2006).

        Raises:
            InputError: if there is no such column, or *level* is out of range.
            NothingToMeasureError: with fewer than three schemes or two pages.
            MissingExtraError: if scipy is not installed.
        """
        found = self._results.ranks(value, level=level)
        with in_style():
            ax = _axes(ax, height_in=1.2 + _ROW_IN * len(found.ranks) / 2)
            scheme_plots.draw_ranks(ax, found)
            told = f"mean ranks of {value} over {found.blocks} pages and settings; 1 is fastest"
            ax.set_title(plain(told), fontsize=SMALL + 1, loc="left")
        ranks = {name: Interval(rank) for name, rank in found.ranks.items()}
        groups = listed(f"{', '.join(group)} are not told apart" for group in found.groups())
        say(ax, f"A ruler of {told}: {with_intervals(ranks)} Of groups joined by a bar: {groups}")
        return ax

    def __repr__(self) -> str:
        figures = "cdf, forest, lines, heat, scatter, buffers, correlations, ranks"
        return f"<Figures of {self._results!r}: {figures}>"

    def _check_column(self, *names: str) -> None:
        known = self._results.columns
        problems = [
            Problem(key="column", message=no_column(name, known))
            for name in names
            if name not in known
        ]
        if problems:
            raise InputError(problems)

    def _summary(self, value: str, by: Sequence[str]) -> list[dict[str, Any]]:
        try:
            return list(self._results.summary(value, by=by))
        except KeyError as error:
            raise InputError([Problem(key="column", message=str(error.args[0]))]) from error


def _check_numbers(name: str, values: Sequence[Any]) -> None:
    if any(type(value) not in (int, float) for value in values):
        raise InputError([Problem(key="over", message=f"{name} is no column of numbers")])


def _steps_in_words(scheme: str, steps: Sequence[tuple[float, bool]]) -> str:
    changes = [change for change, _ in steps]
    n_clear = sum(is_significant for _, is_significant in steps)
    return (
        f"{scheme} from {changes[0]:.1f} to {changes[-1]:.1f} %, half of them below"
        f" {statistics.median(changes):.1f} %, {n_clear} of {len(steps)} significant"
    )


def _extremes(means: Mapping[tuple[Any, Any], float | None]) -> str:
    known = sorted((mean, *map(str, at)) for at, mean in means.items() if mean is not None)
    ends = (known[0], known[-1]) if known else ()
    return listed(
        f"the {name} is {mean:,.0f} at {x} and {y}"
        for name, (mean, x, y) in zip(("least", "largest"), ends, strict=False)
    )


def _or(value: float | None, other: float) -> float:
    return other if value is None else value


def _axes(ax: Axes | None, height_in: float = _SIZE_IN[1]) -> Axes:
    if ax is not None:
        return ax
    return ShownFigure(figsize=(_SIZE_IN[0], height_in), layout="constrained").subplots()


def _draw_steps(ax: Axes, number: int, scheme: str, steps: Sequence[tuple[float, bool]]) -> None:
    """Draw a cumulative share, each step as thick as it is significant."""
    look = line(number)
    before, share = steps[0][0], 0.0
    for index, (change, is_significant) in enumerate(steps):
        after = (index + 1) / len(steps)
        ax.plot(
            [before, change, change],
            [share, share, after],
            color=look.color,
            linestyle=look.linestyle,
            linewidth=_THICK if is_significant else _THIN,
            label=plain(scheme) if not index else None,
        )
        before, share = change, after


def _explain(ax: Axes, *, is_own: bool) -> None:
    """Say whose lines these are: many of them beside the lines, which they would cover."""
    n_lines = len(ax.get_legend_handles_labels()[1])
    look: dict[str, Any] = {"fontsize": SMALL, "frameon": False}
    if is_own and n_lines > _MOST_WITHIN:
        look |= {"loc": "upper left", "bbox_to_anchor": (1.01, 1.0), "borderaxespad": 0.0}
    ax.legend(**look)


def _label(ax: Axes, x: str, y: str) -> None:
    ax.set_xlabel(plain(x), fontsize=SMALL)
    ax.set_ylabel("\n".join(map(plain, y.splitlines())), fontsize=SMALL)
    ax.tick_params(labelsize=SMALL)
    ax.spines[["top", "right"]].set_visible(False)
