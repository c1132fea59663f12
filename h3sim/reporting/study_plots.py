"""Figures of studies: intervals, distributions, ranks, maps, optimality, and headers."""

from __future__ import annotations

import math
import statistics
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
from matplotlib.ticker import FixedLocator, FuncFormatter, NullFormatter, NullLocator

from h3sim.page.categories import PAGE_CLASSES, size_class
from h3sim.reporting.labels import (
    Interval,
    ends_of,
    listed,
    plain,
    quantity,
    shortened,
    spreads_of,
    value_label,
    with_intervals,
    within,
    wrapped,
)
from h3sim.reporting.output import (
    ShownFigure,
    check_choice,
    check_ending,
    plot_function,
    plot_methods,
    root_figure,
    save_figure,
    set_alt_text,
)
from h3sim.reporting.paper import paper_in
from h3sim.reporting.style import SIDE_LEGEND, SIGNIFICANT, SMALL, finish_axes, line
from h3sim.study.pairing import LOAD_COLUMNS, varying
from h3sim.study.rows import no_column
from h3sim.study.statistics.intervals import mean_interval
from h3sim.study.statistics.pairs import (
    check_pooled,
    differences_by_scheme,
    how_of,
    pairs_by_scheme,
)
from h3sim.values.errors import InputError, NothingToMeasureError, ValidationIssue
from h3sim.values.text import plural

if TYPE_CHECKING:
    import os
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path
    from typing import Unpack

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from h3sim.advice import Optimality
    from h3sim.load.load import Which
    from h3sim.reporting.style import FigureStyle
    from h3sim.study import Results
    from h3sim.study.header_study import HeaderRow
    from h3sim.study.matrix import PairRow
    from h3sim.study.statistics.pairs import How


_PAIR_WIDTH_IN, _PAIR_HEIGHT_IN, _NAMES_WIDTH_IN = 1.6, 0.28, 1.4
"""Of a cell of a map of clients and servers, and the room for names of servers."""
_DARK_SHARE = 0.6
"""From which share of the strongest colour on a text is white."""
_SIZE_LABELS = {"small": "small, < 500 kB", "medium": "medium", "large": "large, > 1000 kB"}
"""Legend texts for the size classes of pages (Marx 2019, Fig. 12)."""
_SIZE_OFFSET = 0.25
"""Horizontal distance between the marks of size classes, as a share of a scheme's column."""
_MAX_COLUMN_CHARS = 96
"""Characters of horizontal names that fit below a figure; longer names are upright."""
_MAX_REACH = 10
"""An axis shows intervals up to this many times as far as the farthest value."""
_NEAR_FACTOR_TICKS = (1.01, 1.02, 1.05, 1.1, 1.25, 1.5, 2, 3, 4, 5, 7, 10)
"""Ticks of an axis of factors."""
_FAR_FACTOR_TICKS = (2, 5, 10, 20, 50, 100)
"""Ticks of an axis of factors with large ones, on which others would be too close."""


def _name_columns(ax: Axes, names: Sequence[str]) -> None:
    """Label the columns of a figure, upright if horizontal labels would overlap."""
    ax.set_xticks(range(len(names)), names)
    longest = max((len(line) for name in names for line in name.splitlines()), default=0)
    if (
        len(names) * (longest + 2)
        > _MAX_COLUMN_CHARS * (paper_in() or _FIGURE_SIZE_IN[0]) / _FIGURE_SIZE_IN[0]
    ):
        ax.tick_params(axis="x", labelrotation=90)


def _check_comparable(schemes: Collection[str], baseline: str, value: str) -> None:
    """Refuse a figure without any schemes to compare with the baseline.

    Raises:
        NothingToMeasureError: if *schemes* is empty.
    """
    if not schemes:
        raise NothingToMeasureError(f"no other scheme has {value} beside one of {baseline}")


def _page_sizes(results: Results) -> dict[str, int]:
    """Return the bytes of each page, in the order of the rows.

    Raises:
        InputError: if the results lack that column.
    """
    if "page_bytes" not in results.columns:
        raise InputError(
            [ValidationIssue(key="page_bytes", message="the results have no such column")]
        )
    return {row["page"]: row["page_bytes"] for row in results}


def _cut_intervals(
    ax: Axes, axis: Literal["x", "y"], shown: Iterable[Interval], *, origin: float = 0.0
) -> None:
    """Limit an axis to `_MAX_REACH` times the distance of the farthest value from *origin*.

    An axis of ratios, whose origin is 1, reaches to 3 at least.
    Intervals of few clusters may end anywhere, and would leave no room for the values.
    """
    intervals = [*shown]
    ends = [end for each in intervals for end in each.ends or ()]
    values = [each.value for each in intervals]
    reach = max(2 * origin, *(_MAX_REACH * abs(value - origin) for value in values))
    limits = [min(max(end, origin - reach), origin + reach) for end in ends]
    if reach and limits != ends:
        all_shown = [*limits, *values, origin]
        margin = 0.05 * (max(all_shown) - min(all_shown))
        ax.set(**{f"{axis}lim": (min(all_shown) - margin, max(all_shown) + margin)})


def _factor_axis(ax: Axes, intervals: Iterable[Interval]) -> None:
    """Make the vertical axis one of factors: x2 is as far above 1 as /2 is below.

    Intervals that reach too far are cut, as by `_cut_intervals`.
    """
    values, ends = [1.1], [1.1]
    for each in intervals:
        values += (max(value, 1 / value) for value in (each.value,) if value > 0)
        ends += (max(end, 1 / end) for end in each.ends or () if end > 0)
    reach = max(*values, min(max(ends), max(values) ** _MAX_REACH))
    reach **= 1.08  # a margin, on a logarithmic axis
    # The first tick above 1, as those close to 1 would overlap on a long axis.
    least = 2 if reach >= 7 else 1.25 if reach >= 1.5 else 1.05 if reach >= 1.1 else 1
    factors = _NEAR_FACTOR_TICKS if reach < 15 else _FAR_FACTOR_TICKS
    shown = [factor for factor in factors if least <= factor <= reach]
    ax.set_yscale("log")
    ax.set_ylim(1 / reach, reach)
    ticks = [*(1 / factor for factor in reversed(shown)), 1.0, *shown]
    ax.yaxis.set_major_locator(FixedLocator(ticks))
    ax.yaxis.set_minor_locator(NullLocator())
    ax.yaxis.set_major_formatter(FuncFormatter(lambda factor, _: _format_factor(factor)))


def _format_factor(factor: float) -> str:
    if abs(factor - 1) < 1e-9:
        return "1"
    return f"x{factor:.3g}" if factor > 1 else f"/{1 / factor:.3g}"


_LEGEND_LOOK: dict[str, Any] = {"fontsize": SMALL, "frameon": False, "title_fontsize": SMALL}
_REFERENCE_LINE: dict[str, Any] = {"color": "0.6", "linewidth": 0.8, "zorder": 0}
"""Options of the line of equality with the baseline."""
_SIGNIFICANT_WIDTH = 2.2
"""Line width of intervals that differ significantly from the baseline."""
_STEP_WIDTH = 0.8
_DIGIT_WIDTH_IN = 0.075
_PERCENT = 100
_FIGURE_SIZE_IN = (7.0, 4.0)
_MAX_PAPER_RATIO = 0.75
"""Greatest ratio of height to width of a figure of a study in papers."""
_ROW_HEIGHT_IN = 0.28
_MAX_INSIDE_LEGEND = 5
"""Most lines of a figure with its legend among them; with more it is beside them."""


@plot_methods
class StudyPlots:
    """Figures of *results*; each method returns the axes that it drew on."""

    def __init__(self, results: Results) -> None:
        self._results = results

    def cdf(
        self,
        value: str = "byte_index_all_ms",
        *,
        relative_to: str = "rr",
        how: How | None = None,
        pool: Sequence[str] = (),
        ax: Axes | None = None,
        **style: Unpack[FigureStyle],
    ) -> Axes:
        """Draw the distribution of changes of medians, per scheme (Sander 2022, Fig. 5).

        Each page and setting is a step, at the change of its median over seeds from *relative_to*,
        in percent, or in the unit of *value* where *how* is "difference"; left of 0 is faster.
        Settings differ only in the columns that *pool* names, and then the axis says that steps are
        combinations of pages and settings. A step is thick if the change is significant by Mann
        and Whitney's U test (p < 0.005). Returns *ax*, or the axes of a new figure.

        Raises:
            InputError: if there is no such scheme or column, or *pool* lacks an axis.
            NothingToMeasureError: if no other scheme has the value.
            MissingExtraError: if scipy is not installed.
        """
        check_pooled(self._results, over="scheme", pool=pool)
        rows = self._results.relative_medians(relative_to, value=value, how=how)
        is_relative = how_of(value, how) == "ratio"
        factor = _PERCENT if is_relative else 1
        unit = " %" if is_relative else ""
        schemes = dict.fromkeys(row.scheme for row in rows if row.scheme != relative_to)
        _check_comparable(schemes, relative_to, value)
        units = _describe_units(self._results, len({(row.page, row.setting) for row in rows}))
        is_own, ax = ax is None, _axes(ax)
        descriptions = []
        for number, scheme in enumerate(schemes):
            steps = sorted(
                (factor * row.delta, row.p is not None and row.p < SIGNIFICANT)
                for row in rows
                if row.scheme == scheme
            )
            _draw_steps(ax, number, scheme, steps)
            changes = [change for change, _ in steps]
            n_clear = sum(is_significant for _, is_significant in steps)
            descriptions.append(
                f"{scheme} from {changes[0]:.1f} to {changes[-1]:.1f}{unit}, half of them"
                f" below {statistics.median(changes):.1f}{unit},"
                f" {n_clear} of {len(steps)} significant"
            )
        # The last step of a scheme that is never slower is at 0, which must not be at the edge.
        ax.axvline(0, **_REFERENCE_LINE)
        ax.margins(x=0.05)
        ax.set_ylim(0, 1.02)
        quantity_of = f"{_without_unit(value)}" if is_relative else quantity(value)
        change = f"{quantity_of}: change of the median to {relative_to}"
        change += " in %" if is_relative else ""
        _label_axes(ax, f"{change}; thick where p < 0.005", f"share of {units}")
        _add_legend(ax, is_own=is_own)
        what = f"the share of {units} by the change of their median {value} to {relative_to}"
        set_alt_text(ax, f"A line of steps per scheme, {what}: {listed(descriptions)}")
        return ax

    def forest(
        self,
        value: str = "byte_index_all_ms",
        *,
        baseline: str = "rr",
        how: How | None = None,
        pool: Sequence[str] = (),
        ax: Axes | None = None,
        **style: Unpack[FigureStyle],
    ) -> Axes:
        """Draw each scheme's speedup with its 95 % interval, one below the other.

        Where *how* is "difference", as by default for metrics that can be 0, it is the difference
        to the baseline. Axes other than page, scheme and seed are averaged over only if *pool*
        names them.

        Raises:
            InputError: if there is no such scheme or column, or *pool* lacks an axis.
            MissingExtraError: if scipy is not installed.
        """
        rows = self._results.compare(baseline, value=value, how=how, pool=pool)
        if how_of(value, how) == "difference":
            means = {row.scheme: Interval(row.difference, row.low, row.high) for row in rows}
            what = f"{quantity(value)}: difference to {baseline}, mean, 95 % interval"
            return draw_ratios(means, what, equality=0, ax=ax)
        means = {row.scheme: Interval(row.geometric, row.low, row.high) for row in rows}
        what = f"{_without_unit(value)}: speedup over {baseline}, geometric mean, 95 % interval"
        return draw_ratios(means, what, ax=ax)

    def lines(
        self,
        over: str,
        value: str = "byte_index_all_ms",
        *,
        baseline: str | None = "rr",
        pool: Sequence[str] = (),
        ax: Axes | None = None,
        **style: Unpack[FigureStyle],
    ) -> Axes:
        """Draw the difference of *value* to the baseline over a column, with its 95 % interval.

        Loads are paired by page, setting and seed: a scheme's point is the mean over pages (over
        seeds, if there is one page) of the differences to *baseline* under the same conditions.
        With `baseline=None` it is the mean of *value* itself, in a band that is its 95 % interval.
        Axes other than page, scheme and seed are averaged over only if *pool* names them. A numeric
        column is a numeric axis; other values are side by side, in the order of the rows.

        Raises:
            InputError: if there is no such column or baseline, or *pool* lacks an axis.
            NothingToMeasureError: if no load has the value, or no other scheme has it beside the
                baseline.
            MissingExtraError: if scipy is not installed.
        """
        self._check_column(over, value)
        check_pooled(self._results, over=over, pool=("scheme", *pool))
        if baseline is None:
            points = _means_over(self._results, over, value)
            what = f"mean {quantity(value)}, band: 95 % interval"
        else:
            points = self._differences_over(over, value, baseline)
            what = f"{quantity(value)}: difference to {baseline}, 95 % interval"
        if not points:
            raise NothingToMeasureError(f"no load has {value}: there is nothing to draw")
        is_own, ax = ax is None, _axes(ax)
        _draw_over(ax, points, has_bands=baseline is None)
        _cut_intervals(ax, "y", _intervals_in(points))
        if baseline is not None:
            ax.axhline(0, **_REFERENCE_LINE)
        return self._finish_over(ax, points, over, what, is_own=is_own)

    def _finish_over(
        self, ax: Axes, points: _Points, over: str, what: str, *, is_own: bool
    ) -> Axes:
        _label_axes(ax, quantity(over), what)
        _add_legend(ax, is_own=is_own)
        lines = {
            scheme: [(level, found.value) for level, found in measured]
            for scheme, measured in points.items()
        }
        set_alt_text(ax, f"A line per scheme over {over}, {what}: {ends_of(lines)}")
        return ax

    def _differences_over(self, over: str, value: str, baseline: str) -> _Points:
        points: _Points = {}
        for level in dict.fromkeys(self._results.column(over)):
            results = self._results.filter(**{over: level})
            if all(row.get(value) is None for row in results):
                continue
            for scheme, clusters in differences_by_scheme(results, baseline, value).items():
                if scheme != baseline:
                    known = [*clusters.values()]
                    found = Interval(math.fsum(known) / len(known), *mean_interval(known))
                    points.setdefault(scheme, []).append((level, found))
        if any(row.get(value) is not None for row in self._results):
            _check_comparable(points, baseline, value)
        return points

    def heat(
        self,
        x: str,
        y: str,
        value: str = "byte_index_all_ms",
        *,
        pool: Sequence[str] = (),
        ax: Axes | None = None,
        **style: Unpack[FigureStyle],
    ) -> Axes:
        """Draw the mean of *value* over two columns as a map, with the numbers in it.

        Axes other than page, seed, *x* and *y* are averaged over only if *pool* names them.

        Raises:
            InputError: if there is no such column, or *pool* lacks an axis.
        """
        self._check_column(x, y, value)
        check_pooled(self._results, over=x, pool=(y, *pool))
        rows = list(self._results.summary(value, by=[x, y]))
        columns, lines = (list(dict.fromkeys(row[name] for row in rows)) for name in (x, y))
        means = {(row[x], row[y]): row["mean"] for row in rows}
        ax = _axes(ax)
        grid = [[means.get((column, row)) for column in columns] for row in lines]
        ax.imshow(np.array(grid, dtype=float), aspect="auto", cmap="cividis")
        known = sorted((mean, *map(str, at)) for at, mean in means.items() if mean is not None)
        ends = (known[0], known[-1]) if known else ()
        middle = sum(mean for mean, *_ in ends) / 2
        longest = max((len(f"{mean:,.0f}") for mean, *_ in known), default=0)
        # Upright where they would overlap.
        cell_in = ax.get_window_extent().width / root_figure(ax).dpi / max(1, len(columns))
        turn = 90 if (longest + 1) * _DIGIT_WIDTH_IN > cell_in else 0
        _write_means(ax, grid, middle, turn)
        _name_columns(ax, [value_label(name) for name in columns])
        ax.set_yticks(range(len(lines)), [value_label(name) for name in lines])
        _label_axes(ax, quantity(x), quantity(y))
        # In the middle, as papers drop titles on the left, and no axis has the quantity.
        box_in = ax.get_window_extent().width / root_figure(ax).dpi
        ax.set_title(wrapped(f"mean {quantity(value)}", 0.8 * box_in), fontsize=SMALL + 1)
        extremes = listed(
            f"the {name} is {mean:,.0f} at {column} and {row}"
            for name, (mean, column, row) in zip(("least", "largest"), ends, strict=False)
        )
        set_alt_text(ax, f"A map of {x} and {y}, the mean {value} in each cell: {extremes}")
        return ax

    def scatter(
        self,
        value: str = "byte_index_all_ms",
        *,
        baseline: str = "rr",
        pool: Sequence[str] = (),
        ax: Axes | None = None,
        **style: Unpack[FigureStyle],
    ) -> Axes:
        """Draw each page's speedup with each scheme, by the size of the page (Marx 2019, Fig. 12).

        Small pages are below 500 kB, large ones above 1000 kB. A point is the geometric mean of
        the page's seeds, and of settings that differ in the columns that *pool* names; x2 is as far
        above 1 as /2 is below.

        Raises:
            InputError: if there is no such scheme or column, *pool* lacks an axis, or too many
                pairs have no ratio because a value is 0.
            NothingToMeasureError: if no other scheme has the value.
        """
        sizes = _page_sizes(self._results)
        check_pooled(self._results, over="scheme", pool=pool)
        pairs = pairs_by_scheme(self._results, baseline, value)
        schemes = [name for name in pairs if name != baseline]
        _check_comparable(schemes, baseline, value)
        ax = _axes(ax)
        points: dict[str, list[float]] = {}
        for position, scheme in enumerate(schemes):
            logs_by_page: dict[str, list[float]] = {}
            for pair in pairs[scheme]:
                logs_by_page.setdefault(pair.page, []).append(math.log(pair.speedup))
            for page, page_logs in logs_by_page.items():
                number = list(_SIZE_LABELS).index(size_class(sizes[page]))
                factor = math.exp(math.fsum(page_logs) / len(page_logs))
                points.setdefault(scheme, []).append(factor)
                ax.plot(
                    position + _SIZE_OFFSET * (number - 1),
                    factor,
                    **line(number)._asdict() | {"linestyle": "none"},
                    markersize=4.5,
                    fillstyle=("none", "left", "full")[number],
                    label=[*_SIZE_LABELS.values()][number],
                )
        for position in range(1, len(schemes)):
            ax.axvline(position - 0.5, color="0.85", linewidth=0.6, zorder=0)
        ax.axhline(1, **_REFERENCE_LINE)
        _name_columns(ax, [plain(shortened(name)) for name in schemes])
        ax.set_xlim(-0.5, len(schemes) - 0.5)
        _factor_axis(ax, (Interval(factor) for own in points.values() for factor in own))
        what = f"{_without_unit(value)}: speedup over {baseline}"
        _label_axes(ax, "", what)
        # A mark of each size, the smallest first.
        handles, labels = ax.get_legend_handles_labels()
        marks = dict(zip(labels, handles, strict=True))
        names = [name for name in _SIZE_LABELS.values() if name in marks]
        ax.legend([marks[name] for name in names], names, title="pages", **_LEGEND_LOOK)
        set_alt_text(ax, f"A mark per page and scheme, {what}: {spreads_of(points)}")
        return ax

    def buffers(
        self,
        value: str = "byte_index_all_ms",
        *,
        baseline: str = "rr",
        over: str = "send_buffer_kb",
        pool: Sequence[str] = (),
        ax: Axes | None = None,
        **style: Unpack[FigureStyle],
    ) -> Axes:
        """Draw each scheme's speedup and its 95 % interval with each send buffer, side by side.

        The baseline has the same buffer. *over* may be any other column. Axes other than page,
        scheme and seed are averaged over only if *pool* names them. For metrics that can be 0, use
        `lines`, which shows differences.

        Raises:
            InputError: if there is no such scheme or column, *pool* lacks an axis, or too many
                pairs have no ratio because a value is 0.
            NothingToMeasureError: if no other scheme has the value.
            MissingExtraError: if scipy is not installed.
        """
        self._check_column(over)
        levels = list(dict.fromkeys(self._results.column(over)))
        points: _Points = {}
        for level in levels:
            of_level = self._results.filter(**{over: level})
            for row in of_level.compare(baseline, value=value, how="ratio", pool=pool):
                if row.scheme != baseline:
                    found = Interval(row.geometric, row.low, row.high)
                    points.setdefault(row.scheme, []).append((level, found))
        _check_comparable(points, baseline, value)
        is_own, ax = ax is None, _axes(ax)
        _draw_over(ax, points, levels=levels)
        ax.axhline(1, **_REFERENCE_LINE)
        _factor_axis(ax, _intervals_in(points))
        what = f"{_without_unit(value)}: speedup over {baseline}, 95 % interval"
        return self._finish_over(ax, points, over, what, is_own=is_own)

    def correlations(
        self, x: str, y: str, *, ax: Axes | None = None, **style: Unpack[FigureStyle]
    ) -> Axes:
        """Draw Spearman's rho of two columns, a bar per page by its size (Sander 2022, Fig. 7).

        Bars are filled if p < 0.005.

        Raises:
            InputError: if there is no such column.
            NothingToMeasureError: if a page has fewer than three rows with both.
            MissingExtraError: if scipy is not installed.
        """
        self._check_column(x, y)
        sizes = _page_sizes(self._results)
        pages = sorted(sizes, key=lambda page: (sizes[page], page))
        ax = _axes(ax)
        color, rhos = line(1).color, []
        for position, page in enumerate(pages):
            results = self._results.filter(page=page)
            # Without variation there is no correlation.
            if any(len(set(results.column(name))) == 1 for name in (x, y)):
                ax.text(position, 0, "none", ha="center", va="bottom", fontsize=SMALL - 1)
                continue
            found = results.correlation(x, y)
            rhos.append(found.rho)
            face = color if found.p_rho is not None and found.p_rho < SIGNIFICANT else "white"
            ax.bar(position, found.rho, width=0.7, facecolor=face, edgecolor=color, linewidth=1.0)
        ax.axhline(0, color="0.3", linewidth=0.8)
        ax.set_ylim(-1.05, 1.05)
        ax.set_xlim(-0.6, len(pages) - 0.4)
        names = [f"{plain(shortened(page))}\n{sizes[page] / 1000:,.0f} kB" for page in pages]
        _name_columns(ax, names)
        y_label = f"Spearman's rho\n{quantity(x)}\n{quantity(y)}"
        _label_axes(ax, "pages by their size; full where p < 0.005", y_label)
        what = f"Spearman's rho of {x} and {y}"
        set_alt_text(ax, f"A bar per page, the smallest first, {what}: {spreads_of({'rho': rhos})}")
        return ax

    def ranks(
        self,
        value: str = "byte_index_all_ms",
        *,
        level: float = 0.05,
        pool: Sequence[str] = (),
        ax: Axes | None = None,
        **style: Unpack[FigureStyle],
    ) -> Axes:
        """Draw mean ranks; a bar joins schemes that are not significantly different (Demsar 2006).

        The title says what is ranked: pages, or combinations of pages and settings if *pool* names
        the columns in which settings differ. Those of one page are not independent: filter the
        results to one setting for a test over pages.

        Raises:
            InputError: if there is no such column, *level* is out of range, or *pool* lacks an
                axis.
            NothingToMeasureError: with fewer than three schemes or two pages.
            MissingExtraError: if scipy is not installed.
        """
        found = self._results.ranks(value, level=level, pool=pool)
        ax = _axes(ax, height_in=1.2 + _ROW_HEIGHT_IN * len(found.ranks) / 2)
        groups = found.groups()
        _draw_ranks(ax, found.ranks, groups)
        _draw_ruler(ax, len(found.ranks), found.critical_difference)
        units = _describe_units(self._results, found.blocks)
        description = f"mean ranks of {_without_unit(value)} over {units}; 1 is fastest"
        ax.set_title(within(ax, plain(description)), fontsize=SMALL + 1)
        ranks = with_intervals({name: Interval(rank) for name, rank in found.ranks.items()})
        joined = listed(f"{', '.join(group)} are not told apart" for group in groups)
        set_alt_text(ax, f"A ruler of {description}: {ranks} Of groups joined by a bar: {joined}")
        return ax

    def __repr__(self) -> str:
        figures = "cdf, forest, lines, heat, scatter, buffers, correlations, ranks"
        return f"<Figures of {self._results!r}: {figures}>"

    def _check_column(self, *names: str) -> None:
        known = self._results.columns
        problems = [
            ValidationIssue(key="column", message=no_column(name, known))
            for name in names
            if name not in known
        ]
        if problems:
            raise InputError(problems)


def _write_means(
    ax: Axes, grid: Sequence[Sequence[float | None]], middle: float, turn: float
) -> None:
    """Write the numbers of a map in its cells, in white up to *middle*."""
    for index, row in enumerate(grid):
        for at, mean in enumerate(row):
            if mean is not None:
                # By <=, since equal values are all drawn in the darkest colour.
                color = "white" if mean <= middle else "black"
                look: dict[str, Any] = {"ha": "center", "va": "center", "rotation": turn}
                ax.text(at, index, f"{mean:,.0f}", color=color, **look)


def _means_over(results: Results, over: str, value: str) -> _Points:
    """Return each scheme's means of *value* at the levels of *over*, with 95 % intervals."""
    points: _Points = {}
    # Loads of a page are no independent draws: means of pages are, or seeds of a single page.
    cluster = "page" if len(set(results.column("page"))) > 1 else "seed"
    known: dict[tuple[str, Any], list[float]] = {}
    for row in results.summary(value, by=["scheme", over, cluster]):
        if row["n"]:
            known.setdefault((row["scheme"], row[over]), []).append(row["mean"])
    for (scheme, level), means in known.items():
        low, high = mean_interval(means)
        if low is not None and min(means) >= 0:
            low = max(low, 0.0)  # bytes, times and the like: no mean of these is below 0
        found = Interval(math.fsum(means) / len(means), low, high)
        points.setdefault(scheme, []).append((level, found))
    return points


def _draw_ranks(ax: Axes, ranks: Mapping[str, float], groups: Sequence[Sequence[str]]) -> None:
    """Draw mean ranks on a ruler, with a bar for each group without significant differences.

    The figure is that of Demsar 2006, Fig. 1: names are to the left and right, in two halves.
    """
    n, first = len(ranks), -0.5 - 0.3 * len(groups)
    half = (n + 1) // 2
    for position, name in enumerate(sorted(ranks, key=ranks.__getitem__)):
        rank = ranks[name]
        is_left = position < half
        y = first - 0.6 * (position if is_left else n - 1 - position)
        end = 0.9 if is_left else n + 0.1
        ax.plot([rank, rank, end], [0, y, y], color="0.35", linewidth=0.9)
        ax.plot(rank, 0, marker="o", color="0.1", markersize=4, clip_on=False)
        if is_left:
            at, side, description = end - 0.04, "right", f"{plain(name)} {rank:.2f}"
        else:
            at, side, description = end + 0.04, "left", f"{rank:.2f} {plain(name)}"
        ax.text(at, y, description, ha=side, va="center", fontsize=SMALL)
    for position, group in enumerate(groups):
        ends = [ranks[group[0]] - 0.03, ranks[group[-1]] + 0.03]
        ax.plot(ends, [-0.3 * (position + 1)] * 2, color="0.1", linewidth=3, solid_capstyle="butt")
    ax.set_ylim(first - 0.6 * half, 1.9)
    ax.set_xlim(1 - 0.28 * n, n + 0.28 * n)


def _draw_ruler(ax: Axes, n: int, difference: float) -> None:
    """Draw a ruler of ranks 1 to *n*, and above it the critical difference."""
    ax.plot([1, n], [0, 0], color="0.1", linewidth=1)
    for rank in range(1, n + 1):
        ax.plot([rank, rank], [0, 0.15], color="0.1", linewidth=1)
        ax.text(rank, 0.25, str(rank), ha="center", va="bottom", fontsize=SMALL)
    ax.plot([1, 1 + difference], [1.1, 1.1], color="0.1", linewidth=1.4, marker="|", markersize=6)
    description = f"critical difference {difference:.2f}"
    ax.text(1, 1.3, description, ha="left", va="bottom", fontsize=SMALL)
    ax.set_axis_off()


@plot_function
def draw_ratios(
    ratios: Mapping[str, Interval],
    what: str,
    *,
    equality: float = 1,
    ax: Axes | None = None,
    **style: Unpack[FigureStyle],
) -> Axes:
    """Draw ratios with their intervals, one per row, and *equality* as a line (a forest plot)."""
    ax = _axes(ax, height_in=1 + _ROW_HEIGHT_IN * len(ratios))
    for index, ratio in enumerate(ratios.values()):
        color = line(index).color
        if ratio.ends is not None:
            ax.plot(ratio.ends, [index, index], color=color, linewidth=1.5)
        ax.plot(ratio.value, index, marker="D", color=color, markersize=5)
    ax.axvline(equality, color="0.6", linewidth=0.8)
    _cut_intervals(ax, "x", ratios.values(), origin=equality)
    ax.set_yticks(range(len(ratios)), [plain(name) for name in ratios])
    ax.set_ylim(len(ratios) - 0.5, -0.5)
    _label_axes(ax, what, "")
    set_alt_text(ax, f"A row per scheme, {what}: {with_intervals(ratios)}")
    return ax


_Points: TypeAlias = "dict[str, list[tuple[Any, Interval]]]"
"""For each scheme, its values at the levels of a column."""
# Schemes are spread around each position, as intervals on top of each other would hide one another.
_CATEGORY_SPREAD = 0.5
"""The spread as a share of the distance between categories."""
_NUMERIC_SPREAD = 0.04
"""The spread as a share of a numeric axis."""


def _draw_over(
    ax: Axes, points: _Points, *, levels: Sequence[Any] = (), has_bands: bool = False
) -> None:
    """Draw the points of each scheme over numbers, or over categories side by side.

    Points over *levels*, which are categories, are joined by lines.
    """
    is_joined = bool(levels)
    levels = levels or list(
        dict.fromkeys(level for measured in points.values() for level, _ in measured)
    )
    is_numeric = not is_joined and all(type(level) in (int, float) for level in levels)
    spread = _NUMERIC_SPREAD * (max(levels) - min(levels)) if is_numeric else _CATEGORY_SPREAD
    for number, (scheme, measured) in enumerate(points.items()):
        # Shifted, as intervals on top of each other would be indistinguishable.
        shift = 0.0 if has_bands else spread * ((number + 0.5) / len(points) - 0.5)
        if is_numeric:
            measured = sorted(measured, key=lambda point: point[0])
        xs = [shift + (level if is_numeric else levels.index(level)) for level, _ in measured]
        look: dict[str, Any] = line(number)._asdict() | {"linewidth": 1.0 if is_joined else 1.2}
        # A line between categories would have no meaning.
        look |= {} if is_numeric or is_joined else {"linestyle": "none"}
        ax.plot(
            xs, [found.value for _, found in measured], label=plain(scheme), markersize=4, **look
        )
        if has_bands and is_numeric:
            ends = [found.ends or (found.value, found.value) for _, found in measured]
            lows, highs = zip(*ends, strict=True)
            ax.fill_between(xs, lows, highs, color=look["color"], alpha=0.12, linewidth=0)
            continue
        for x, (_, found) in zip(xs, measured, strict=True):
            if found.ends is not None:
                ax.plot([x, x], found.ends, color=look["color"], linewidth=1.4)
    if not is_numeric:
        _name_columns(ax, [value_label(level) for level in levels])
        ax.set_xlim(-0.5, len(levels) - 0.5)


def _intervals_in(points: _Points) -> Iterator[Interval]:
    return (found for measured in points.values() for _, found in measured)


def _without_unit(value: str) -> str:
    """Return the quantity in a column without its unit, as ratios and ranks have none."""
    return quantity(value).rpartition(" (")[0] or quantity(value)


def _describe_units(results: Results, n: int) -> str:
    """Describe the *n* units of an analysis: pages, or combinations of pages and settings.

    Settings are the axes that vary, other than scheme and seed.
    """
    n_pages = len(set(results.column("page")))
    settings = [name for name in varying(results, results.axes) if name not in LOAD_COLUMNS]
    if not settings:
        return plural(n, "page")
    names = " \N{MULTIPLICATION SIGN} ".join(["page", *map(_without_unit, settings)])
    return f"{n} combinations of {names} ({plural(n_pages, 'page')})"


def _axes(ax: Axes | None, height_in: float | None = None) -> Axes:
    """Return *ax*, or the axes of a new figure, of the default height unless given."""
    if ax is not None:
        return ax
    width_in, default_in = _FIGURE_SIZE_IN
    if height_in is None:
        height_in = min(default_in, _MAX_PAPER_RATIO * (paper_in() or math.inf))
    return ShownFigure(figsize=(width_in, height_in), layout="constrained").subplots()


def _draw_steps(ax: Axes, number: int, scheme: str, steps: Sequence[tuple[float, bool]]) -> None:
    """Draw a cumulative share, with thick lines for significant steps."""
    style = line(number)
    before, share = steps[0][0], 0.0
    for index, (change, is_significant) in enumerate(steps):
        after = (index + 1) / len(steps)
        ax.plot(
            [before, change, change],
            [share, share, after],
            color=style.color,
            linestyle=style.linestyle,
            linewidth=_SIGNIFICANT_WIDTH if is_significant else _STEP_WIDTH,
            label=plain(scheme) if not index else None,
        )
        before, share = change, after


def _add_legend(ax: Axes, *, is_own: bool) -> None:
    """Draw the legend: in a new figure with many lines beside them, as it would cover them."""
    _, labels = ax.get_legend_handles_labels()
    n_lines = len(labels)
    ax.legend(**SIDE_LEGEND if is_own and n_lines > _MAX_INSIDE_LEGEND else _LEGEND_LOOK)


_AXES_SHARE_OF_HEIGHT = 0.75
"""Share of the height that is left for a vertical label after labels and titles are laid out."""


def _label_axes(ax: Axes, x: str, y: str) -> None:
    """Label the axes, with lines that fit their lengths."""
    box, dpi = ax.get_window_extent(), ax.figure.dpi
    height_in = _AXES_SHARE_OF_HEIGHT * box.height / dpi
    lines = wrapped("\n".join(map(plain, y.splitlines())), height_in)
    finish_axes(ax, x=wrapped(plain(x), box.width / dpi), y=lines)


_SCHEME_HEIGHT_IN = 0.34
_MARGIN_HEIGHT_IN = 1.1
_LANES_SHARE = 0.62
"""Share of a scheme's row that its lanes fill, one lane per network or class."""
_RATIO_TICKS = (1, 1.05, 1.1, 1.2, 1.3, 1.5, 2, 3, 4, 5, 7, 10, 20, 50, 100, 200, 500, 1000)
"""Ticks of an axis of optimality ratios, as far as they fit."""
_MIN_TICK_DISTANCE = 0.06
"""Least distance between two ticks, as a share of the axis."""
_SET_DESCRIPTIONS = {"all": "on all resources", "atf": "above the fold"}


@plot_methods
class OptimalityPlots:
    """Figures of an *optimality*; each method returns the axes that it drew on."""

    def __init__(self, optimality: Optimality) -> None:
        self._optimality = optimality

    def schemes(
        self, which: Which = "atf", *, ax: Axes | None = None, **style: Unpack[FigureStyle]
    ) -> Axes:
        """Draw each page's optimality ratio under each scheme, and the mean: a lane per network.

        Faint marks are pages, full marks are means over pages. The axis is logarithmic: from 1 to
        2 is as far as from 2 to 4. Returns *ax*, or the axes of a new figure.

        Raises:
            InputError: if *which* is neither "all" nor "atf".
            NothingToMeasureError: if no load has that optimality ratio.
        """
        check_choice("which", which, _SET_DESCRIPTIONS)
        networks = self._networks
        values: dict[tuple[str, str], list[float]] = {}
        for row in self._optimality.rows:
            found = values.setdefault((row.network, row.scheme), [])
            value = row.optimality_ratio_atf if which == "atf" else row.optimality_ratio_all
            found += [] if value is None else [value]
        ax = self._axes(
            ax, len(networks), [interval for found in values.values() for interval in found]
        )
        means = {}
        for (network, scheme), found in values.items():
            number = networks.index(network)
            at = self._lane_position(scheme, number, len(networks))
            look = line(number)._asdict() | {"linestyle": "none", "fillstyle": "none"}
            ax.plot(found, [at] * len(found), **look, markersize=3, alpha=0.35)
            if found:
                mean = Interval(math.fsum(found) / len(found))
                _draw_mean(ax, at, number, mean, network)
                means[_lane_name(scheme, network, networks)] = mean
        self._finish(ax, which, "faint marks: pages; full marks: means", len(networks))
        self._describe(ax, which, "a mark per page and one for the mean", means)
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
        """Draw each scheme's mean optimality ratio with its 95 % interval, a lane per page class.

        Pages are classified *by* a classification of `Optimality.by_class`; *network* is by default
        the first one.

        Raises:
            InputError: if there is no such class, network or *which*.
            MissingExtraError: if scipy is not installed.
            NothingToMeasureError: if no load has that optimality ratio.
        """
        check_choice("which", which, _SET_DESCRIPTIONS)
        chosen = network or self._networks[0]
        if chosen not in self._networks:
            message = f"must be one of {', '.join(self._networks)}, is {chosen}"
            raise InputError.at("network", message)
        rows = [
            row
            for row in self._optimality.by_class(by)
            if (row.network, row.which) == (chosen, which)
        ]
        classes, _ = PAGE_CLASSES[by]
        known = [name for name in classes if any(row.page_class == name for row in rows)]
        ax = self._axes(ax, len(known), [row.mean for row in rows if row.mean is not None])
        means = {}
        for row in rows:
            if row.mean is not None:
                number, mean = known.index(row.page_class), Interval(row.mean, row.low, row.high)
                at = self._lane_position(row.scheme, number, len(known))
                _draw_mean(ax, at, number, mean, f"{row.page_class} ({row.n_pages})")
                means[_lane_name(row.scheme, row.page_class, known)] = mean
        description = f"means of pages by {by}, 95 % intervals; {chosen}"
        self._finish(ax, which, description, len(known))
        self._describe(ax, which, description, means)
        return ax

    def save(
        self,
        path: str | Path,
        *,
        by: str | None = None,
        which: Which = "atf",
        **style: Unpack[FigureStyle],
    ) -> None:
        """Write the figure of all schemes, or that *by* classes of pages, to a file.

        Raises:
            InputError: if the file cannot be written, or its ending is not known.
        """
        check_ending(path)
        drawn = (
            self.schemes(which, **style) if by is None else self.classes(by, which=which, **style)
        )
        save_figure(root_figure(drawn), path)

    def _describe(self, ax: Axes, which: Which, words: str, means: Mapping[str, Interval]) -> None:
        what = f"its optimality ratio {_SET_DESCRIPTIONS[which]}: ByteIndex over its lower bound"
        words = f"A row per scheme, {what}; {words}: {with_intervals(means)}"
        set_alt_text(ax, words)

    @property
    def _networks(self) -> list[str]:
        return [*dict.fromkeys(row.network for row in self._optimality.rows)]

    @property
    def _schemes(self) -> list[str]:
        return [*dict.fromkeys(row.scheme for row in self._optimality.rows)]

    def _lane_position(self, scheme: str, number: int, lanes: int) -> float:
        """Return the vertical position of lane *number* of *lanes* in a scheme's row."""
        return self._schemes.index(scheme) + _LANES_SHARE * ((number + 0.5) / lanes - 0.5)

    def _axes(self, ax: Axes | None, lanes: int, values: list[float]) -> Axes:
        if not values:
            raise NothingToMeasureError(
                "no load has that optimality ratio: there is nothing to draw"
            )
        if ax is None:
            height_in = _MARGIN_HEIGHT_IN + _SCHEME_HEIGHT_IN * len(self._schemes) * max(
                1.0, 0.55 * lanes
            )
            ax = ShownFigure(
                figsize=(_FIGURE_SIZE_IN[0], height_in), layout="constrained"
            ).subplots()
        return ax

    def _finish(self, ax: Axes, which: Which, description: str, lanes: int) -> None:
        names = self._schemes
        ax.set_xscale("log")
        ax.axvline(1, color="0.6", linewidth=0.8, zorder=0)
        _set_ratio_ticks(ax)
        for row in range(1, len(names)):
            ax.axhline(row - 0.5, color="0.9", linewidth=0.6, zorder=0)
        ax.set_yticks(range(len(names)), [plain(name) for name in names])
        ax.set_ylim(len(names) - 0.5, -0.5)
        x = f"optimality ratio {_SET_DESCRIPTIONS[which]}: ByteIndex over its lower bound"
        finish_axes(ax, title=plain(description), x=x)
        if lanes > 1:
            ax.legend(fontsize=SMALL, frameon=False, loc="lower right")


def _lane_name(scheme: str, name: str, names: list[str]) -> str:
    """Return the name of a lane of a scheme's row; that of the scheme if it is the only lane."""
    return scheme if len(names) == 1 else f"{scheme} ({name})"


def _draw_mean(ax: Axes, at: float, number: int, mean: Interval, label: str) -> None:
    look: dict[str, Any] = line(number)._asdict() | {"linestyle": "none"}
    if mean.ends is not None:
        ax.plot(mean.ends, [at, at], color=look["color"], linewidth=1.2)
    # The legend lists each label once.
    _, known_labels = ax.get_legend_handles_labels()
    name = None if plain(label) in known_labels else plain(label)
    ax.plot(mean.value, at, **look, markersize=6, label=name)


def _set_ratio_ticks(ax: Axes) -> None:
    """Set the ticks within a logarithmic axis that are far enough apart."""
    low, high = ax.get_xlim()
    width = math.log(high / low)
    shown: list[float] = []
    for tick in (tick for tick in _RATIO_TICKS if low <= tick <= high):
        if not shown or math.log(tick / shown[-1]) >= _MIN_TICK_DISTANCE * width:
            shown.append(tick)
    ax.set_xticks(shown)
    ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    ax.xaxis.set_minor_formatter(NullFormatter())


_PANEL_SIZE_IN = (3.2, 2.6)
_LEGEND_WIDTH_IN = 1.6
_HEADROOM = 1.08
"""Factor by which an axis is higher than its bars, for the numbers on them."""
_HEADER_METRICS = (
    ("hol_mean_ms", "HOL delay per section in ms"),
    ("ratio", "bytes sent / uncompressed"),
)


def save_header_plot(
    rows: Sequence[HeaderRow], path: str | os.PathLike[str], **style: Unpack[FigureStyle]
) -> None:
    """Write the figure of *rows* to *path*, which ends in .png, .svg or .pdf.

    Raises:
        InputError: if the ending is another, or the file cannot be written.
    """
    check_ending(path)
    save_figure(header_figure(rows, **style), path)


@plot_function
def header_figure(rows: Sequence[HeaderRow], **style: Unpack[FigureStyle]) -> Figure:
    """Return a figure with a panel per loss and metric, and a line per scheme over RTTs.

    With a single round-trip time the panels are over losses.
    """
    by_rtt = len({row.rtt_ms for row in rows}) > 1 or len({row.loss for row in rows}) == 1
    losses = list(dict.fromkeys(row.loss for row in rows)) if by_rtt else [None]
    width, height = _PANEL_SIZE_IN
    figure = ShownFigure(
        figsize=(width * len(losses) + _LEGEND_WIDTH_IN, height * len(_HEADER_METRICS)),
        layout="constrained",
    )
    axes = figure.subplots(len(_HEADER_METRICS), len(losses), squeeze=False, sharey="row")
    for index, loss in enumerate(losses):
        shown = [row for row in rows if loss is None or row.loss == loss]
        title, given = "", ""
        if loss is not None:
            title, given = f"loss {100 * loss:g} %", f", with a loss of {100 * loss:g} %"
        for ax, (name, label) in zip(axes[:, index], _HEADER_METRICS, strict=True):
            over = "RTT in ms" if by_rtt else "loss in %"
            lines = _draw_scheme_lines(ax, shown, name, over)
            set_alt_text(ax, f"A line per scheme, {label} over {over}{given}: {ends_of(lines)}")
            ax.set_title(title, fontsize=SMALL)
            ax.set_ylabel("" if index else label, fontsize=SMALL)
    for ax in axes.flat:
        # After all are drawn, as panels of a row share their limits.
        _, highest = ax.get_ylim()
        ax.set_ylim(0, highest * _HEADROOM if ax.containers else highest)
    if not axes[0, 0].containers:  # bars have their names below them
        handles, labels = axes[0, 0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside right upper", fontsize=SMALL, frameon=False)
    return figure


def save_matrix_plot(
    rows: Sequence[PairRow],
    path: str | os.PathLike[str],
    baseline: str = "",
    **style: Unpack[FigureStyle],
) -> None:
    """Write the map of *rows* to *path*, which ends in .png, .svg or .pdf.

    Raises:
        InputError: if the ending is another, or the file cannot be written.
    """
    check_ending(path)
    save_figure(matrix_figure(rows, baseline, **style), path)


@plot_function
def matrix_figure(
    rows: Sequence[PairRow], baseline: str = "", **style: Unpack[FigureStyle]
) -> Figure:
    """Return a map of the speedups of clients before servers, with their intervals.

    A row is a server, the best first; a number whose interval excludes 1 is bold.
    """
    clients = list(dict.fromkeys(row.client for row in rows))
    best_first = sorted(rows, key=lambda row: -row.speedup)
    servers = list(dict.fromkeys(row.server for row in best_first))
    at = {(row.client, row.server): row for row in rows}
    grid = [[at[client, server].speedup for client in clients] for server in servers]
    has_intervals = any(row.low is not None for row in rows)
    cell_in = _PAIR_WIDTH_IN if has_intervals else _PAIR_WIDTH_IN / 2
    figure = ShownFigure(
        figsize=(_NAMES_WIDTH_IN + cell_in * len(clients), 1.2 + _PAIR_HEIGHT_IN * len(servers)),
        layout="constrained",
    )
    ax = figure.subplots()
    logs = np.log2(np.array(grid, dtype=float))
    most = float(np.abs(logs).max()) or 1.0
    ax.imshow(logs, aspect="auto", cmap="PuOr_r", vmin=-most, vmax=most)
    for line_index, server in enumerate(servers):
        for column, client in enumerate(clients):
            row = at[client, server]
            is_dark = abs(math.log2(row.speedup)) > _DARK_SHARE * most
            is_certain = row.low is not None and not row.low <= 1 <= (row.high or math.inf)
            look: dict[str, Any] = {"ha": "center", "va": "center", "fontsize": SMALL}
            look |= {"color": "white" if is_dark else "black"}
            look |= {"fontweight": "bold" if is_certain else "normal"}
            interval = "" if row.low is None else f"  {row.low:.2f} to {row.high:.2f}"
            ax.text(column, line_index, f"{row.speedup:.2f}{interval}", **look)
    ax.set_xticks(range(len(clients)), clients, rotation=0 if len(clients) < 6 else 90)
    ax.set_yticks(range(len(servers)), servers)
    ax.xaxis.tick_top()
    ax.tick_params(length=0)
    to = f",\nrelative to {baseline}" if baseline else ""
    ax.set_xlabel(f"speedup of the ByteIndex\nabove the fold{to}", fontsize=SMALL)
    best, worst = best_first[0], best_first[-1]
    set_alt_text(
        ax,
        f"A map of {plural(len(servers), 'server')} and {plural(len(clients), 'client')}, the"
        f" speedup in each cell: the largest is {best.speedup:.2f} with {best.client} before"
        f" {best.server}, the least {worst.speedup:.2f} with {worst.client} before {worst.server}",
    )
    return figure


def _draw_scheme_lines(
    ax: Axes, rows: Sequence[HeaderRow], name: str, over: str
) -> dict[str, list[tuple[object, float]]]:
    """Draw a line per scheme, or a bar under a single condition, and return its points."""
    lines: dict[str, list[tuple[object, float]]] = {}
    has_one_condition = len({(row.rtt_ms, row.loss) for row in rows}) == 1
    for number, scheme in enumerate(dict.fromkeys(row.scheme for row in rows)):
        points = sorted(
            (row.rtt_ms if over.startswith("RTT") else 100 * row.loss, getattr(row, name))
            for row in rows
            if row.scheme == scheme
        )
        lines[scheme] = [*points]
        look = line(number)
        if has_one_condition:  # a line of one point would show nothing
            bars = ax.bar(scheme, points[0][1], color=look.color, width=0.6, label=scheme)
            # A bar of height 0 is invisible, so each has its number.
            ax.bar_label(bars, fmt="{:,.3g}", fontsize=SMALL, padding=1)
        else:
            size: dict[str, Any] = {"markersize": 4.5, "markerfacecolor": "white", "linewidth": 1.2}
            ax.plot(*zip(*points, strict=True), **look._asdict(), **size, label=scheme)
    if has_one_condition:
        ax.margins(x=0.02)  # the numbers of eight schemes just fit a column
        over = f"RTT {rows[0].rtt_ms:g} ms"
        for name_label in ax.get_xticklabels():
            name_label.set(rotation=30, ha="right", rotation_mode="anchor")
    else:
        ax.set_xlim(left=0)
    finish_axes(ax, x=over, grid="both")
    return lines
