"""Plots of a load, or of several loads of one page."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from h3sim.errors import InputError, ValidationIssue
from h3sim.reporting import (
    alt_texts,
    animation,
    labels,
    lane_layout,
    multiplexing,
    race,
    time_series,
    trees,
    waterfall,
)
from h3sim.reporting.alt_texts import (
    alt_of,
    congestion_alt,
    delta_alt,
    priority_tree_alt,
    rtt_alt,
    throughput_alt,
    transferred_alt,
    waterfall_alt,
)
from h3sim.reporting.labels import Palette, paper_in, tree_palette
from h3sim.reporting.lane_layout import instant_ns, window_of
from h3sim.reporting.output import (
    Saved,
    ShownFigure,
    check_ending,
    check_loads,
    plot_methods,
    save_figure,
    set_alt_text,
)
from h3sim.reporting.qlog_plots import CURVE_IN, byte_ranges_height_in, new_axes
from h3sim.reporting.style import SMALL, in_style
from h3sim.schema import format_value
from h3sim.units import to_ms

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Sequence
    from typing import Unpack

    from matplotlib.axes import Axes

    from h3sim.page import Page
    from h3sim.reporting.style import FigureStyle
    from h3sim.results import Load
    from h3sim.results.load import Which
    from h3sim.trace import Trace


_WIDTH_IN, _MAX_HEIGHT_IN = 12.0, 200.0
_ROW_IN, _AXIS_IN = 0.19, 0.95


def figure_of(first: Load, second: Load, *, until_ms: float | None = None) -> ShownFigure:
    """Return a new figure: both waterfalls over one axis of time, and below them what moved."""
    pair = (first, second)
    window = window_of(pair, until_ms)
    # Numbers of resources may differ between variants, so colours cannot go by them.
    palettes = [Palette(load.page, is_by_kind=True) for load in pair]
    n_rows = [
        waterfall.n_lines(load, palette) for load, palette in zip(pair, palettes, strict=True)
    ]
    n_rows.append(len(waterfall.shown(waterfall.deltas_of(first, second))))
    heights_in = [_ROW_IN * max(1, n) + _AXIS_IN for n in n_rows]
    heights_in.insert(2, multiplexing.height_in(palettes[0]))
    figure = ShownFigure(
        figsize=(_WIDTH_IN, min(sum(heights_in), _MAX_HEIGHT_IN)), layout="constrained"
    )
    above, below, names, moved = figure.subplots(4, height_ratios=heights_in)
    for ax, load, palette in zip((above, below), pair, palettes, strict=True):
        waterfall.draw_waterfall(ax, load, palette, window)
        set_alt_text(ax, waterfall_alt(load))
    above.set_xlabel("")
    multiplexing.below(names, *palettes)
    one, other = labels.lane_labels(pair)
    same = one == other
    waterfall.draw_paired(
        moved, first, second, ("the first", "the second") if same else (one, other)
    )
    set_alt_text(moved, delta_alt(first, second))
    return figure


_DETAILS_ROW_IN, _FRAME_IN = 0.19, 1.1


@plot_methods
class LoadDetails:
    """The part of `LoadPlots` that looks into loads, most of it into the first."""

    loads: tuple[Load, ...]

    def congestion(
        self,
        ax: Axes | None = None,
        *,
        connection: int | None = None,
        until_ms: float | None = None,
        **style: Unpack[FigureStyle],
    ) -> Axes:
        """Draw the server's congestion window, its bytes in flight, and when losses were noticed.

        Of the first load, in kB over ms since navigation start. With several connections each has
        a window of its own: that of number *connection* is drawn (`load.connections` has them), of
        that which carries most without a number. Returns *ax*, or the axes of a new figure.

        Raises:
            InputError: if there is no such connection.
            NothingToMeasureError: if no recovery was recorded: `simulate(..., record_packets=True)`
                does, over links.
        """
        load = self.loads[0]
        return self._of_connection(
            ax,
            connection,
            until_ms,
            "Congestion window of",
            time_series.draw_congestion,
            lambda _: congestion_alt(load, time_series.connection_of(load, connection)),
        )

    def transferred(
        self,
        ax: Axes | None = None,
        *,
        connection: int | None = None,
        until_ms: float | None = None,
        **style: Unpack[FigureStyle],
    ) -> Axes:
        """Draw how many bytes the server had sent, and of them were acknowledged and lost.

        Of the first load, in kB over ms since navigation start, whatever the packets carried; as
        acknowledged and as lost when the server learned it. *connection* as in `congestion`.
        Returns *ax*, or the axes of a new figure.

        Raises:
            InputError: if there is no such connection.
            NothingToMeasureError: if no recovery was recorded, as `congestion`.
        """
        return self._of_connection(
            ax, connection, until_ms, "Transfer of", time_series.draw_transferred, transferred_alt
        )

    def rtt(
        self,
        ax: Axes | None = None,
        *,
        connection: int | None = None,
        until_ms: float | None = None,
        **style: Unpack[FigureStyle],
    ) -> Axes:
        """Draw the server's estimates of the round-trip time: latest, smoothed and least.

        Of the first load, in ms over ms since navigation start. *connection* as in `congestion`.
        Returns *ax*, or the axes of a new figure.

        Raises:
            InputError: if there is no such connection.
            NothingToMeasureError: if no recovery was recorded, as `congestion`.
        """
        return self._of_connection(
            ax, connection, until_ms, "Round-trip time of", time_series.draw_rtt, rtt_alt
        )

    def _of_connection(
        self,
        ax: Axes | None,
        connection: int | None,
        until_ms: float | None,
        what: str,
        draw_trace: Callable[..., None],
        alt_of_trace: Callable[[Trace], str],
    ) -> Axes:
        load = self.loads[0]
        chosen = time_series.connection_of(load, connection)
        description = time_series.describe_connection(load, chosen)
        words = alt_of_trace(chosen.trace)

        def draw(ax: Axes, _: Trace, title: str, *, end_ms: float, note: str) -> None:
            draw_trace(ax, chosen.trace, title, end_ms=end_ms, note=note)

        ax = self._over_time(ax, f"{what} {description}:" if description else what, draw, until_ms)
        set_alt_text(ax, words)
        return ax

    def throughput(
        self, ax: Axes | None = None, *, until_ms: float | None = None, **style: Unpack[FigureStyle]
    ) -> Axes:
        """Draw how many bytes of responses arrived, and how many were delivered in order.

        Of the first load, in Mbit/s over spans of a round number of ms: where the line is below the
        area, bytes waited for others. Returns *ax*, or the axes of a new figure.
        """
        ax = self._over_time(ax, "Throughput of", time_series.draw_throughput, until_ms)
        set_alt_text(
            ax, throughput_alt(self.loads[0].trace, window_of(self.loads[:1], until_ms).end_ms)
        )
        return ax

    def byte_ranges(
        self, ax: Axes | None = None, *, until_ms: float | None = None, **style: Unpack[FigureStyle]
    ) -> Axes:
        """Draw, a row per stream, which of its bytes arrived when, as qvis does.

        Of the first load. The bytes of a stream rise from the bottom of its row to the top; the
        area below is what the application has. What lies above the area waits for bytes before
        it. Of more than 24 streams the largest are shown. Returns *ax*, or new axes.
        """
        load = self.loads[0]
        names = {
            request.stream_id: labels.resource_label(self._page, request.resource)
            for request in load.trace.requests
        }

        def draw(ax: Axes, trace: Trace, title: str, *, end_ms: float, note: str) -> None:
            time_series.draw_byte_ranges(ax, trace, names, title, end_ms=end_ms, note=note)

        height_in = byte_ranges_height_in(load.trace)
        ax = self._over_time(ax, "Byte ranges per stream of", draw, until_ms, height_in)
        set_alt_text(ax, alt_of("byte_ranges", self.loads))
        return ax

    def deltas(self, ax: Axes | None = None, **style: Unpack[FigureStyle]) -> Axes:
        """Draw of two loads how much sooner or later each resource was complete with the second.

        Bars in ms, in the order of the page; of more than 60 resources those that moved most.
        Returns *ax*, or the axes of a new figure.

        Raises:
            InputError: if there are not two loads: `LoadPlots([load, other])`.
        """
        if len(self.loads) != 2:
            message = f"must be two to be compared, are {len(self.loads)}"
            raise InputError([ValidationIssue(key="loads", message=message)])
        first, second = self.loads
        n_rows = len(waterfall.shown(waterfall.deltas_of(first, second)))
        with in_style():
            ax = ax or new_axes(_DETAILS_ROW_IN * n_rows + _FRAME_IN)
            one, other = labels.lane_labels(self.loads)
            waterfall.draw_paired(ax, first, second, (one, other))
        set_alt_text(ax, delta_alt(first, second))
        return ax

    def against(
        self, other: Load, *, until_ms: float | None = None, **style: Unpack[FigureStyle]
    ) -> ShownFigure:
        """Return a figure of the first load above *other*, and of what moved between the two.

        *other* is a load of the same page or of a variant of it (`page.with_(...)`): resources are
        the same where their ids are. Both waterfalls have one axis of time, which ends as that of
        `multiplexing`; colours are those of kinds.

        Raises:
            InputError: if *other* is no load.
        """
        check_loads("other", [other])
        with in_style():
            return figure_of(self.loads[0], other, until_ms=until_ms)

    def save_against(
        self,
        other: Load,
        path: str | os.PathLike[str],
        *,
        until_ms: float | None = None,
        **style: Unpack[FigureStyle],
    ) -> None:
        """Write the figure of `against` to *path*, as `save` writes the others.

        Raises:
            InputError: if the ending is none of .png, .svg and .pdf, or it cannot be written.
        """
        check_ending(path)
        save_figure(self.against(other, until_ms=until_ms, **style), path)

    def dependencies(self, ax: Axes | None = None, **style: Unpack[FigureStyle]) -> Axes:
        """Draw what made the browser ask for what, and the chain that the end waited for.

        Of the first load: a box per resource, to the right of its parent; three and more leaves of
        a kind share one. Returns *ax*, or the axes of a new figure.
        """
        load = self.loads[0]
        chain = trees.chain_of(load)
        finished = {row.id: row.finished_ms for row in load.timings}

        def when(resources: tuple[int, ...]) -> str:
            ids = [load.page.resources[index].id for index in resources]
            known = [finished[id_] for id_ in ids if id_ in finished]
            return f"{max(known):,.0f} ms" if known else "not asked for"

        page, scheme, network = self._names
        title = (
            f"What asked for what on {page}, and when it was complete with {scheme} over {network}"
        )
        with in_style():
            ax = ax or new_axes(trees.dependencies_height_in(trees.nodes_of(load.page, chain)))
            trees.draw_dependencies(
                ax, load.page, tree_palette(self._page), title, when, chain=chain
            )
        set_alt_text(ax, alt_of("dependencies", self.loads))
        return ax

    def priority_tree(
        self, ax: Axes | None = None, *, at_ms: float | None = None, **style: Unpack[FigureStyle]
    ) -> Axes:
        """Draw what the server's scheduler knew of the first load *at_ms* after navigation start.

        The dependency tree as it stood, or, where there is none, the groups of streams (urgencies,
        buckets) in the order in which they are served. Without *at_ms* it is the first instant at
        which most responses waited to be sent. Returns *ax*, or the axes of a new figure.

        Raises:
            InputError: if *at_ms* is no time.
        """
        load = self.loads[0]
        at_ns = trees.busiest_ns(load) if at_ms is None else instant_ns(at_ms)
        found = trees.boxes_of(load.page, trees.elements_of(load, at_ns))
        page, scheme, network = self._names
        title = f"Priorities at the server of {page} with {scheme} over {network}"
        with in_style():
            ax = ax or new_axes(trees.priority_tree_height_in(found))
            trees.draw_tree(
                ax,
                found,
                tree_palette(self._page),
                f"{title}, {to_ms(at_ns):,.0f} ms after navigation start",
            )
        set_alt_text(ax, priority_tree_alt(load, at_ns))
        return ax

    def _over_time(
        self,
        ax: Axes | None,
        what: str,
        draw: Callable[..., None],
        until_ms: float | None,
        height_in: float = CURVE_IN,
    ) -> Axes:
        load, window = self.loads[0], window_of(self.loads[:1], until_ms)
        page, scheme, network = self._names
        with in_style():
            ax = ax or new_axes(height_in)
            title = f"{what} {page} with {scheme} over {network}"
            draw(ax, load.trace, title, end_ms=window.end_ms, note=window.note)
        return ax

    @property
    def _names(self) -> tuple[str, str, str]:
        """The page, the scheme and the network of the first load, as titles have them."""
        load = self.loads[0]
        page, scheme, network = (
            labels.plain(labels.shortened(name, 40))
            for name in (load.page.name, load.scheme.name, load.network.name)
        )
        return page, scheme, network

    @property
    def _page(self) -> Page:
        return self.loads[0].page

    @cached_property
    def _palette(self) -> Palette:
        return Palette(self._page)


_LOADS_WIDTH_IN = 12.0
_LOADS_MAX_HEIGHT_IN = 200.0
_LANE_IN = 0.37
"""Height of a lane without stacks."""
_LOADS_ROW_IN = 0.19
_LINE_IN = 0.14
_CURVE_IN = 2.5
_LOADS_AXIS_IN = 0.6
_LOADS_FRAME_IN = 1.1
"""Height of a title above and a guide below a figure with one picture."""
_TITLE_IN = 0.5


@plot_methods
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
            raise InputError(
                [ValidationIssue(key="loads", message=f"must be of one page, are of {names}")]
            )

    def multiplexing(
        self,
        ax: Axes | None = None,
        *,
        annotate: bool = True,
        until_ms: float | None = None,
        highlight: str | None = None,
        **style: Unpack[FigureStyle],
    ) -> Axes:
        """Draw which resource's bytes reached the application when (Marx 2019, Fig. 8 and 13).

        A lane per load and a rectangle per packet, which ends at the time in ms since navigation
        start at which its bytes were delivered; a resource looks the same in all lanes. Packets
        that were delivered at one instant are stacked, first sent lowest, and the highest stack
        of the figure fills its lane. A rectangle is as wide as a send interval, or as what of it
        has passed since the last delivery. In lanes of more than 480 packets, neighbouring packets
        of a resource are joined. On pages of more than 12 resources the hue is that of the class
        (above the fold, render-blocking, rest), and its shades alternate from resource to resource.
        A dashed line marks when all above the fold was complete. Below a lane are lost packets,
        above a single one those that were sent again.

        The axis ends with the last resource, before a late one that would squash the others (and
        says so), or at *until_ms*. With *annotate*, a resource's number (from 1 on, in the order of
        the page) stands where there is room. *highlight* is the id of a resource that stands out,
        all others are pale. Returns *ax*, or the axes of a new figure with its legend.

        Raises:
            InputError: if *until_ms* is no time, or no resource has the id *highlight*.
        """
        palette = self._palette if highlight is None else self._highlighting(highlight)
        with in_style():
            if ax is None:
                ax = self._new_figure([], palette=palette)[1][0]
            multiplexing.draw(
                ax,
                self._lanes,
                self._lane_labels,
                palette,
                window_of(self.loads, until_ms),
                annotate=annotate,
            )
        set_alt_text(ax, self.alt_text("multiplexing"))
        return ax

    def byte_index(
        self,
        ax: Axes | None = None,
        *,
        which: Which = "atf",
        sample_ms: float | None = None,
        **style: Unpack[FigureStyle],
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
        shown = time_series.shown_set(self.loads[0], which)
        with in_style():
            if ax is None:
                ax = _figure_of(self._curve_in + _LOADS_AXIS_IN).subplots()
            names = labels.lane_labels(self.loads)
            time_series.draw_progress(
                ax, self.loads, names, shown=shown, requested=which, sample_ms=sample_ms
            )
        set_alt_text(ax, alt_texts.byte_index_alt(self.loads, which, sample_ms=sample_ms))
        return ax

    def waterfall(
        self,
        ax: Axes | None = None,
        *,
        until_ms: float | None = None,
        fold: waterfall.Fold | None = None,
        **style: Unpack[FigureStyle],
    ) -> Axes:
        """Draw when each resource of the first load was requested, began to come and was there.

        Rows stand in request order; times are ms since navigation start. A thin line runs from the
        request to the first byte delivered, a bar from there to the last, in full colour where
        bytes came. Names are followed by the first priority and, if it changed, the last. Below the
        rows are the bandwidth that was used and, where the browser computed its load, what the main
        thread did. Colours, hatches and
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
            raise InputError([ValidationIssue(key="fold", message=message)])
        load, window = self.loads[0], window_of(self.loads[:1], until_ms)
        # What is folded by kind or host has no resource's own colour.
        palette = self._palette if fold is None else Palette(load.page, is_by_kind=True)
        with in_style():
            if ax is None:
                n_rows = waterfall.n_lines(load, palette, fold)
                ax = _figure_of(_LOADS_ROW_IN * n_rows + _LOADS_FRAME_IN).subplots()
            waterfall.draw_waterfall(ax, load, palette, window, fold=fold)
        set_alt_text(ax, alt_texts.waterfall_alt(load, fold))
        return ax

    def figure(self, *, until_ms: float | None = None, **style: Unpack[FigureStyle]) -> ShownFigure:
        """Return a new figure of it all: the strip, its legend, and the ByteIndex.

        A single load comes with its waterfall. All share one axis of time, in ms since navigation
        start, which ends as that of `multiplexing`. The legend names the resources, or where there
        are more than 12 their classes.
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
        animation.write(self.loads[0], self._palette, path)

    def race(self, path: str | os.PathLike[str]) -> None:
        """Write the loads side by side, as pages that fill in, to *path* (.html).

        Boxes stand for what is above the fold; below each page are the packets on the wire, below
        all a filmstrip. The page plays, steps, and goes to the next time at which a resource is
        complete with one load and not with all. It needs no other file and no network.

        Raises:
            InputError: if the ending is another, or the file cannot be written.
        """
        race.write(self.loads, labels.load_names(self.loads), self._palette, path)

    def __repr__(self) -> str:
        return f"<Figures of {self._page.name}: {', '.join(labels.lane_labels(self.loads))}>"

    @cached_property
    def _lanes(self) -> list[lane_layout.LoadLane]:
        end_ms = window_of(self.loads).end_ms
        return [lane_layout.lane_of(load, end_ms) for load in self.loads]

    def _highlighting(self, highlight: str) -> Palette:
        index = self._page.index.get(highlight)
        if index is None:
            message = f"no resource of {self._page.name} is called {format_value(highlight)}"
            raise InputError([ValidationIssue(key="highlight", message=message)])
        return Palette(self._page, highlight=index)

    @property
    def _lane_labels(self) -> list[str]:
        heads_tails = (label.partition(", ") for label in labels.lane_labels(self.loads))
        return [f"{head}\n{labels.folded(tail)}".rstrip() for head, _, tail in heads_tails]

    @property
    def _strip_in(self) -> float:
        single = lane_layout.stack_share(1, lane_layout.tallest(self._lanes))
        lines = max(label.count("\n") + 1 for label in self._lane_labels)
        lane_in = max(_LANE_IN / single, _LINE_IN * (lines + 0.5))
        return len(self.loads) * lane_in

    @property
    def _waterfall_in(self) -> float:
        return _LOADS_ROW_IN * waterfall.n_lines(self.loads[0], self._palette)

    @property
    def _curve_in(self) -> float:
        names = map(labels.folded, labels.lane_labels(self.loads))
        lines = sum(name.count("\n") + 1 for name in names)
        return max(_CURVE_IN, _LOADS_ROW_IN * (lines + 2))

    def _new_figure(
        self, more_in: list[float], *, title: str = "", palette: Palette | None = None
    ) -> tuple[ShownFigure, list[Axes]]:
        """Return a new figure and its axes: for the strip, and one of each height in *more_in*.

        The legend of the resources is there: beside the strip if that is high enough, else below.
        """
        palette = palette or self._palette
        room_in = self._strip_in if paper_in() is None else 0.0
        has_side_legend = multiplexing.height_in(palette, columns=1) <= room_in
        below_in = [] if has_side_legend else [multiplexing.height_in(palette)]
        heights_in = [self._strip_in, *below_in, *more_in]
        figure = _figure_of(
            sum(heights_in) + _LOADS_AXIS_IN * (1 + len(more_in)) + _TITLE_IN * bool(title)
        )
        if paper_in() is None:
            figure.suptitle(title, fontsize=SMALL + 2)
        grid = figure.add_gridspec(len(heights_in), 1, height_ratios=heights_in)
        axes = [figure.add_subplot(grid[row]) for row in range(len(heights_in))]
        if has_side_legend:
            multiplexing.draw_side_legend(axes[0], palette)
        else:
            multiplexing.below(axes.pop(1), palette)
        return figure, axes


def _figure_of(height_in: float) -> ShownFigure:
    return ShownFigure(
        figsize=(_LOADS_WIDTH_IN, min(height_in, _LOADS_MAX_HEIGHT_IN)), layout="constrained"
    )
