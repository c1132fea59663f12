"""Figures of one load, or of several loads of one page."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from h3sim.errors import InputError, Problem
from h3sim.plots import alt_texts, animations, labels, lanes, legend, progress, strip, waterfall
from h3sim.plots.files import Saved, ShownFigure, check_loads, checks_axes, say
from h3sim.plots.load_details import LoadDetails
from h3sim.plots.palette import Palette
from h3sim.plots.style import SMALL, in_style
from h3sim.plots.window import window_of

if TYPE_CHECKING:
    import os
    from collections.abc import Sequence

    from matplotlib.axes import Axes

    from h3sim.results import Load
    from h3sim.results.load import Which

__all__ = ["LoadPlots"]

_WIDTH_IN = 12.0
_MAX_HEIGHT_IN = 200.0
_LANE_IN, _LEVEL_IN, _MAX_LEVELS = 0.37, 0.1, 8
_ROW_IN = 0.19
_LINE_IN = 0.14
_CURVE_IN = 2.5
_AXIS_IN = 0.6
_FRAME_IN = 1.1
"""What a title above and a guide below take of a figure of one picture."""
_TITLE_IN = 0.5


@checks_axes
class LoadPlots(LoadDetails, Saved):
    """Draws *loads*, which are of one page: one lane or line each, in the order given.

    Nothing is shown: each method returns what it drew on, and `save` writes it. A notebook shows
    the whole `figure`.

    Raises:
        InputError: if there is no load, or they are of several pages.
    """

    def __init__(self, loads: Sequence[Load]) -> None:
        self.loads = check_loads("loads", loads)
        if any(load.page != self._page for load in self.loads):
            names = ", ".join(dict.fromkeys(load.page.name for load in self.loads))
            raise InputError([Problem(key="loads", message=f"must be of one page, are of {names}")])

    def multiplexing(
        self, ax: Axes | None = None, *, annotate: bool = True, until_ms: float | None = None
    ) -> Axes:
        """Draw which resource's bytes reached the application when (Marx 2019, Fig. 8 and 13).

        A lane per load and a rectangle per packet, which ends at the time in ms since navigation
        start at which its bytes were delivered; a resource looks the same in all lanes. Packets
        that were delivered at one instant are stacked, first sent lowest, and the highest stack
        of the figure fills its lane. A rectangle is as wide as a send interval, or as what of it
        has passed since the last delivery. In lanes of more than 480 packets, neighbours that look
        alike are joined. Pages of more than 12 resources are coloured by kind, with the colours of
        WebPageTest. Below a lane stands what was lost, above a single one what was sent again.

        The axis ends with the last resource, before a late one that would squash the others (and
        says so), or at *until_ms*. With *annotate*, a resource's number (from 1 on, in the order of
        the page) stands where there is room. Returns *ax*, or the axes of a new figure with its
        legend.
        """
        with in_style():
            if ax is None:
                ax = self._new_figure([])[1][0]
            strip.draw(
                ax,
                self._lanes,
                self._lane_labels,
                self._palette,
                window_of(self.loads, until_ms),
                annotate=annotate,
            )
        say(ax, self.alt_text("multiplexing"))
        return ax

    def byte_index(
        self, ax: Axes | None = None, *, which: Which = "atf", sample_ms: float | None = None
    ) -> Axes:
        """Draw the share of bytes in complete resources over time (Marx 2019, Fig. 11).

        A line per load, from its first request on, over ms since navigation start. *which* is
        "all" or "atf" (above the fold); where nothing above the fold has a byte, all resources
        are drawn and the title says so. The area above a line is the ByteIndex, which the legend,
        of one load the title, names; with *sample_ms* they name the one that is sampled so often.
        Returns *ax*, or the axes of a new figure.

        Raises:
            InputError: if *which* is something else.
        """
        shown = progress.shown_set(self.loads[0], which)
        with in_style():
            if ax is None:
                ax = _figure_of(self._curve_in + _AXIS_IN).subplots()
            names = labels.lane_labels(self.loads)
            progress.draw(ax, self.loads, names, shown=shown, wanted=which, sample_ms=sample_ms)
        say(ax, alt_texts.byte_index_alt(self.loads, which, sample_ms=sample_ms))
        return ax

    def waterfall(
        self,
        ax: Axes | None = None,
        *,
        until_ms: float | None = None,
        fold: waterfall.Fold | None = None,
    ) -> Axes:
        """Draw when each resource of the first load was requested, began to come and was there.

        Rows stand in request order; times are ms since navigation start. A thin line runs from the
        request to the first byte delivered, a bar from there to the last, in full colour where
        bytes came. Beside the name stands the priority that was said first. Colours, hatches and
        numbers are those of `multiplexing` (Marx 2019, Fig. 8); a triangle marks what is above the
        fold. Of more than 60 resources, the smallest below the fold share rows with neighbours that
        were folded too. Where the browser computed its load, lines mark paints and load event. The
        axis ends as that of `multiplexing`. With *fold* there is a row per "host" or "kind".
        Returns *ax*, or the axes of a new figure.

        Raises:
            InputError: if *fold* is something else.
        """
        if fold not in (None, "host", "kind"):
            message = f"must be 'host' or 'kind', is {fold!r}"
            raise InputError([Problem(key="fold", message=message)])
        load, window = self.loads[0], window_of(self.loads[:1], until_ms)
        # What is folded by kind or host has no resource's own colour.
        palette = self._palette if fold is None else Palette(load.page, is_by_kind=True)
        with in_style():
            if ax is None:
                n_rows = len(waterfall.rows_of(load, palette, fold))
                ax = _figure_of(_ROW_IN * n_rows + _FRAME_IN).subplots()
            waterfall.draw(ax, load, palette, window, fold=fold)
        say(ax, alt_texts.waterfall_alt(load, fold))
        return ax

    def figure(self, *, until_ms: float | None = None) -> ShownFigure:
        """Return a new figure of it all: the strip, its legend, and the ByteIndex.

        A single load comes with its waterfall. All share one axis of time, in ms since navigation
        start, which ends as that of `multiplexing`. The legend names the resources, or where there
        are more than 12 the kinds.
        """
        has_waterfall = len(self.loads) == 1
        with in_style():
            figure, (first, *more) = self._new_figure(
                [self._curve_in, self._waterfall_in] if has_waterfall else [self._curve_in],
                title=labels.title(self.loads),
            )
            self.multiplexing(first, until_ms=until_ms)
            self.byte_index(more[0])
            if has_waterfall:
                self.waterfall(more[1], until_ms=until_ms)
            for ax in more:
                ax.set_xlim(first.get_xlim())
        return figure

    def alt_text(self, name: str = "figure") -> str:
        """Return in words what the method *name* draws, for who does not see it.

        Raises:
            InputError: if there is no such picture.
        """
        return alt_texts.alt_of(name, self.loads)

    def animation(self, path: str | os.PathLike[str]) -> None:
        """Write packets on the wire, and what either order of delivery holds back, to *path*.

        Of the first load: as a page that plays by itself (.html), or some seconds of it (.gif).
        For the same packets it shows QUIC, which delivers each stream in its own order, above TCP,
        which has one order for all (Marx 2019 § 2, Sander 2022 § 4). Equal loads give equal bytes.

        Raises:
            InputError: if the ending is another, or the file cannot be written.
        """
        animations.write(self.loads[0], self._palette, path)

    def __repr__(self) -> str:
        return f"<Figures of {self._page.name}: {', '.join(labels.lane_labels(self.loads))}>"

    @cached_property
    def _lanes(self) -> list[lanes.LoadLane]:
        end_ms = window_of(self.loads).end_ms
        return [lanes.lane_of(load, self._palette, end_ms) for load in self.loads]

    @property
    def _lane_labels(self) -> list[str]:
        heads_tails = (label.partition(", ") for label in labels.lane_labels(self.loads))
        return [f"{head}\n{labels.folded(tail)}".rstrip() for head, _, tail in heads_tails]

    @property
    def _strip_in(self) -> float:
        levels = min(lanes.tallest(self._lanes), _MAX_LEVELS)
        lines = max(label.count("\n") + 1 for label in self._lane_labels)
        lane_in = max(_LANE_IN + _LEVEL_IN * (levels - 1), _LINE_IN * (lines + 0.5))
        return len(self.loads) * lane_in

    @property
    def _waterfall_in(self) -> float:
        return _ROW_IN * len(waterfall.rows_of(self.loads[0], self._palette))

    @property
    def _curve_in(self) -> float:
        names = map(labels.folded, labels.lane_labels(self.loads))
        lines = sum(name.count("\n") + 1 for name in names)
        return max(_CURVE_IN, _ROW_IN * (lines + 2))

    def _new_figure(
        self, more_in: list[float], *, title: str = ""
    ) -> tuple[ShownFigure, list[Axes]]:
        """Return a new figure and its axes: for the strip, and one of each height in *more_in*.

        The legend of the resources is there: beside the strip if that is high enough, else below.
        """
        is_beside = legend.height_in(self._palette, columns=1) <= self._strip_in
        below_in = [] if is_beside else [legend.height_in(self._palette)]
        heights_in = [self._strip_in, *below_in, *more_in]
        figure = _figure_of(
            sum(heights_in) + _AXIS_IN * (1 + len(more_in)) + _TITLE_IN * bool(title)
        )
        figure.suptitle(title, fontsize=SMALL + 2)
        grid = figure.add_gridspec(len(heights_in), 1, height_ratios=heights_in)
        axes = [figure.add_subplot(grid[row]) for row in range(len(heights_in))]
        if is_beside:
            legend.beside(axes[0], self._palette)
        else:
            legend.below(axes.pop(1), self._palette)
        return figure, axes


def _figure_of(height_in: float) -> ShownFigure:
    return ShownFigure(figsize=(_WIDTH_IN, min(height_in, _MAX_HEIGHT_IN)), layout="constrained")
