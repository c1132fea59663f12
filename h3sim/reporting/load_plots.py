"""Plots of a load, or of several loads of one page."""

from __future__ import annotations

from functools import cached_property, partial
from itertools import pairwise
from typing import TYPE_CHECKING

from h3sim.export.tables import describe_losses
from h3sim.reporting import animation, lane_layout, multiplexing, race, time_series, trees
from h3sim.reporting import waterfall as waterfalls
from h3sim.reporting.labels import (
    Palette,
    folded,
    lane_labels,
    load_names,
    plain,
    resource_label,
    shortened,
    title,
    tree_palette,
)
from h3sim.reporting.lane_layout import instant_ns, window_of
from h3sim.reporting.output import (
    SavedPlots,
    ShownFigure,
    alt_text,
    check_choice,
    check_ending,
    check_loads,
    new_axes,
    new_figure,
    plot_methods,
    save_figure,
    set_alt_text,
)
from h3sim.reporting.paper import is_narrow, paper_in
from h3sim.reporting.qlog_plots import CURVE_HEIGHT_IN, byte_ranges_height_in
from h3sim.reporting.style import SMALL
from h3sim.schema import format_value
from h3sim.values.errors import InputError, ValidationIssue
from h3sim.values.units import to_ms

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Sequence
    from typing import Unpack

    from matplotlib.axes import Axes

    from h3sim.engine.connections import Connection
    from h3sim.load import Load
    from h3sim.load.load import Which
    from h3sim.page import Page
    from h3sim.reporting.style import FigureStyle


_ROW_HEIGHT_IN = 0.19
"""Height of a row of a waterfall."""
_AXIS_HEIGHT_IN = 0.95
"""Height of the title and the axis of a waterfall."""


PICTURES = (
    "figure",
    "multiplexing",
    "byte_index",
    "waterfall",
    "byte_ranges",
    "throughput",
    "congestion",
    "transferred",
    "rtt",
    "dependencies",
    "priority_tree",
    "deltas",
)
"""The methods of `LoadPlots` whose pictures have alternative texts."""


@plot_methods
class LoadDetails:
    """Part of `LoadPlots`: figures of details, most of them of the first load."""

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

        Of the first load, in kB over ms since navigation start. If there are several connections,
        the window is that of number *connection* (see `load.connections`), by default the one that
        carries most bytes. Returns *ax*, or the axes of a new figure.

        Raises:
            InputError: if there is no such connection.
            NothingToMeasureError: if no recovery was recorded: `simulate(..., record_packets=True)`
                does, over links.
        """
        load = self.loads[0]
        name = time_series.describe_connection(load, time_series.connection_of(load, connection))
        draw = partial(time_series.draw_congestion, connection=name)
        return self._draw_connection(ax, connection, until_ms, "Congestion window of", draw)

    def transferred(
        self,
        ax: Axes | None = None,
        *,
        connection: int | None = None,
        until_ms: float | None = None,
        **style: Unpack[FigureStyle],
    ) -> Axes:
        """Draw how many bytes the server had sent, and how many were acknowledged and lost.

        Of the first load, in kB over ms since navigation start, for packets of any content.
        Acknowledgements and losses count when the server learns of them. *connection* is as in
        `congestion`. Returns *ax*, or the axes of a new figure.

        Raises:
            InputError: if there is no such connection.
            NothingToMeasureError: if no recovery was recorded, as `congestion`.
        """
        return self._draw_connection(
            ax, connection, until_ms, "Transfer of", time_series.draw_transferred
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
        return self._draw_connection(
            ax, connection, until_ms, "Round-trip time of", time_series.draw_rtt
        )

    def _draw_connection(
        self,
        ax: Axes | None,
        connection: int | None,
        until_ms: float | None,
        what: str,
        draw: Callable[..., str],
    ) -> Axes:
        """Draw a curve of a connection of the first load; the title begins with *what*."""
        chosen = time_series.connection_of(self.loads[0], connection)
        description = time_series.describe_connection(self.loads[0], chosen)
        what = f"{what} {description}:" if description else what
        return self._draw_over_time(ax, what, draw, until_ms, chosen)

    def throughput(
        self, ax: Axes | None = None, *, until_ms: float | None = None, **style: Unpack[FigureStyle]
    ) -> Axes:
        """Draw how many bytes of responses arrived, and how many were delivered in order.

        Of the first load, in Mbit/s over spans of a round number of ms. If the line is below the
        area, bytes waited for others. Returns *ax*, or the axes of a new figure.
        """
        return self._draw_over_time(ax, "Throughput of", time_series.draw_throughput, until_ms)

    def byte_ranges(
        self, ax: Axes | None = None, *, until_ms: float | None = None, **style: Unpack[FigureStyle]
    ) -> Axes:
        """Draw a row per stream, with the arrival of each of its bytes, as qvis does.

        Of the first load. The bytes of a stream rise from the bottom of its row to the top; the
        area shows those that the application has. Bytes above the area wait for bytes before them.
        Of more than 24 streams the largest are shown. Returns *ax*, or new axes.
        """
        load = self.loads[0]
        names = {
            request.stream_id: resource_label(load.page, request.resource)
            for request in load.trace.requests
        }
        draw = partial(time_series.draw_byte_ranges, labels=names, n_waited=load.hol.stream_bytes)
        height_in = byte_ranges_height_in(load.trace)
        return self._draw_over_time(
            ax, "Byte ranges per stream of", draw, until_ms, height_in=height_in
        )

    def deltas(self, ax: Axes | None = None, **style: Unpack[FigureStyle]) -> Axes:
        """Draw how much sooner or later each resource was complete with the second of two loads.

        Bars are in ms and in the order of the page; of more than 60 resources, those with the
        largest differences are shown.
        Returns *ax*, or the axes of a new figure.

        Raises:
            InputError: if there are not two loads: `LoadPlots([load, other])`.
        """
        if len(self.loads) != 2:
            message = f"must be two to be compared, are {len(self.loads)}"
            raise InputError.at("loads", message)
        first, second = self.loads
        n_rows = len(waterfalls.shown(waterfalls.deltas_of(first, second)))
        ax = ax or new_axes(_ROW_HEIGHT_IN * n_rows + _FRAME_HEIGHT_IN)
        set_alt_text(ax, waterfalls.draw_paired(ax, first, second, lane_labels(self.loads)))
        return ax

    def against(
        self, other: Load, *, until_ms: float | None = None, **style: Unpack[FigureStyle]
    ) -> ShownFigure:
        """Return a figure of the first load above *other*, with the difference of each resource.

        *other* is a load of the same page or of a variant of it (`page.with_(...)`), whose
        resources are identified by their ids. Both waterfalls have the same time axis, which ends
        as that of `multiplexing`; colours are those of kinds.

        Raises:
            InputError: if *other* is not a load.
        """
        check_loads("other", [other])
        pair = (self.loads[0], other)
        window = window_of(pair, until_ms)
        # Colours by kind, as resources have other numbers in variants of a page.
        palettes = [Palette(load.page, is_by_kind=True) for load in pair]
        n_rows = [waterfalls.n_lines(*each) for each in zip(pair, palettes, strict=True)]
        n_rows.append(len(waterfalls.shown(waterfalls.deltas_of(*pair))))
        heights_in = [_ROW_HEIGHT_IN * max(1, n_lines) + _AXIS_HEIGHT_IN for n_lines in n_rows]
        heights_in.insert(2, multiplexing.height_in(palettes[0]))
        figure = new_figure(sum(heights_in))
        above, below, legend, differences = figure.subplots(4, height_ratios=heights_in)
        for ax, load, palette in zip((above, below), pair, palettes, strict=True):
            set_alt_text(ax, waterfalls.draw_waterfall(ax, load, palette, window))
        above.set_xlabel("")
        multiplexing.below(legend, *palettes)
        names = lane_labels(pair)
        names = ["the first", "the second"] if names[0] == names[1] else names
        set_alt_text(differences, waterfalls.draw_paired(differences, *pair, names))
        return figure

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
        """Draw the dependency graph, with the chain for which the end of the load waited.

        Of the first load: a box per resource, to the right of its parent; on pages of more than 100
        resources, three or more leaves of a kind share one. Returns *ax*, or the axes of a new
        figure.
        """
        load = self.loads[0]
        chain = trees.chain_of(load)
        finished = {row.id: row.finished_ms for row in load.timings}

        def completion(resources: tuple[int, ...]) -> str:
            ids = [load.page.resources[index].id for index in resources]
            known = [finished[id_] for id_ in ids if id_ in finished]
            return f"{max(known):,.0f} ms" if known else "not asked for"

        ax = ax or new_axes(trees.height_in(trees.nodes_of(load.page, chain)))
        title = (
            f"What asked for what on {self._page_name}, and when it was complete with"
            f" {self._conditions}"
        )
        palette = tree_palette(load.page)
        trees.draw_dependencies(ax, load.page, palette, title, completion, chain=chain)
        path = ", then ".join(load.page.resources[index].id for index in chain)
        set_alt_text(ax, f"A tree of requests; the end waited for {path}.")
        return ax

    def priority_tree(
        self, ax: Axes | None = None, *, at_ms: float | None = None, **style: Unpack[FigureStyle]
    ) -> Axes:
        """Draw the state of the server's scheduler in the first load, *at_ms* after its start.

        It is the dependency tree, or else the groups of streams (urgencies, buckets) in the order
        in which they are served. By default it is the first instant at which most responses waited
        to be sent. Returns *ax*, or the axes of a new figure.

        Raises:
            InputError: if *at_ms* is not a time.
        """
        load = self.loads[0]
        at_ns = trees.busiest_ns(load) if at_ms is None else instant_ns(at_ms)
        elements = trees.elements_of(load, at_ns)
        found = trees.boxes_of(load.page, elements)
        when = f"{to_ms(at_ns):,.0f} ms after navigation start"
        ax = ax or new_axes(trees.height_in(trees.positions_of([box.parent for box in found])))
        title = f"Priorities at the server of {self._page_name} with {self._conditions}, {when}"
        trees.draw_tree(ax, found, tree_palette(load.page), title)
        waits, idle = (sum(each.state == name for each in elements) for name in ("waits", "idle"))
        set_alt_text(
            ax,
            f"A tree from left to right, {when}: {waits} responses wait to be sent, {idle} have"
            " nothing to send yet.",
        )
        return ax

    def _draw_over_time(
        self,
        ax: Axes | None,
        what: str,
        draw: Callable[..., str],
        until_ms: float | None,
        connection: Connection | None = None,
        height_in: float = CURVE_HEIGHT_IN,
    ) -> Axes:
        """Draw a figure of the trace of the first load, or of one connection, over time."""
        ax = ax or new_axes(height_in)
        trace = (connection or self.loads[0]).trace
        title = f"{what} {self._page_name} with {self._conditions}"
        set_alt_text(ax, draw(ax, trace, title, window_of(self.loads[:1], until_ms)))
        return ax

    @property
    def _page_name(self) -> str:
        return plain(shortened(self._page.name, 40))

    @property
    def _conditions(self) -> str:
        """The scheme and the network of the first load, for titles."""
        load = self.loads[0]
        scheme, network = (plain(shortened(each.name, 40)) for each in (load.scheme, load.network))
        return f"{scheme} over {network}"

    @property
    def _page(self) -> Page:
        return self.loads[0].page

    @cached_property
    def _palette(self) -> Palette:
        return Palette(self._page)


def _conclusion(loads: Sequence[Load]) -> list[str]:
    """Return a sentence that names the load with the least ByteIndex; none for a single load."""
    which = time_series.shown_set(loads[0], "atf")
    known = {
        name: index_ms
        for name, load in zip(lane_labels(loads), loads, strict=True)
        if (index_ms := load.byte_index_or_none(which)) is not None
    }
    if len(known) < 2:
        return []
    least, most = (choose(known, key=lambda name: known[name]) for choose in (min, max))
    if not known[most] or known[least] == known[most]:
        return []
    percent = 100 * (1 - known[least] / known[most])
    of = "above the fold" if which == "atf" else "of all resources"
    return [
        f"{least} has the least ByteIndex {of}: {known[least]:,.0f} ms,"
        f" {percent:.0f} % less than {most}"
    ]


_LANE_HEIGHT_IN = 0.37
"""Height of a lane without stacks."""
_LINE_HEIGHT_IN = 0.14
"""Height of a line of a lane's label."""
_MIN_CURVE_HEIGHT_IN, _NARROW_CURVE_HEIGHT_IN = 2.5, 1.4
_LABEL_HEIGHT_IN = 0.6
_FRAME_HEIGHT_IN = 1.1
"""Height of the title above and the explanation below a figure with one picture."""
_TITLE_HEIGHT_IN = 0.5


@plot_methods
class LoadPlots(LoadDetails, SavedPlots):
    """Figures of *loads* of one page: one lane or line per load, in the order given.

    Each method returns the axes that it drew on, and `save` writes a file. A notebook shows
    `figure`.

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
        **style: Unpack[FigureStyle],
    ) -> Axes:
        """Draw which resource's bytes reached the application when (Marx 2019, Fig. 8 and 13).

        A lane per load has a rectangle per packet, which ends when the packet's bytes were
        delivered, in ms since navigation start; a resource looks the same in all lanes. Packets
        that were delivered at one instant are stacked, first sent lowest, and the highest stack of
        the figure fills its lane. A rectangle is as wide as a send interval, or less if the
        delivery before was later. In lanes of more than 480 packets, neighbouring packets of a
        resource are joined. On pages of more than 12 resources the hue is that of the class (above
        the fold, render-blocking, rest), and its shades alternate from resource to resource. A
        dashed line marks when all resources above the fold were complete. Packets that got lost on
        the way, and those that the queue dropped, are marked below a lane and, with a single lane,
        retransmitted ones above it.

        The axis ends with the last resource, or before a late one that would squash the others
        (with a note), or at *until_ms*. With *annotate*, packets have the number of their resource
        (from 1, in the order of the page) if there is room. Returns *ax*, or the axes
        of a new figure with its legend.

        Raises:
            InputError: if *until_ms* is not a time.
        """
        if ax is None:
            ax = self._new_figure([])[1][0]
        window = window_of(self.loads, until_ms)
        multiplexing.draw(
            ax, self._lanes, self._lane_labels, self._palette, window, annotate=annotate
        )
        lanes = []
        for name, load in zip(lane_labels(self.loads), self.loads, strict=True):
            changes = sum(left != right for left, right in pairwise(load.trace.order))
            losses = f", {describe_losses(load.packets)}" if load.packets.lost else ""
            lanes.append(
                f"{name}: {changes:,} changes from one resource to another among"
                f" {len(load.trace.packet_rows):,} packets{losses}"
            )
        what = "A lane per load, a rectangle per packet, coloured by resource"
        set_alt_text(ax, f"{what}. {'; '.join(lanes)}.")
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

        A line per load, from its first request on, over ms since navigation start; of more than
        five loads, those at even ranks, the best and the worst among them, have a line. *which* is
        "all" or "atf" (above the fold); if the resources above the fold have no bytes, all are
        drawn, with a note in the title. The area above a line is the ByteIndex, which is at its
        end, in a legend sorted by it, or in the title of a single load; with *sample_ms* it is the
        one sampled at that interval. Returns *ax*, or the axes of a new figure.

        Raises:
            InputError: if *which* is something else.
        """
        ax = ax or new_axes(self._curve_height_in + _LABEL_HEIGHT_IN)
        names = lane_labels(self.loads)
        words = time_series.draw_progress(ax, self.loads, names, which, sample_ms=sample_ms)
        set_alt_text(ax, words)
        return ax

    def waterfall(
        self,
        ax: Axes | None = None,
        *,
        until_ms: float | None = None,
        fold: waterfalls.Fold | None = None,
        **style: Unpack[FigureStyle],
    ) -> Axes:
        """Draw when each resource of the first load was requested, arrived, and was delivered.

        Rows are in request order; times are in ms since navigation start. A thin line runs from the
        request to the arrival of the first packet, a bar from the first byte that was delivered to
        the application to the last, in full colour where bytes were. A narrow red bar shows when
        bytes had arrived and were held back (head-of-line blocking). Names are followed by the
        first priority and, if it changed, the last. Below the rows is the bandwidth used; a
        computed load also has the work of the main thread, and lines at paints and load event.
        Colours, hatches and numbers are those of `multiplexing` (Marx 2019, Fig. 8); a triangle
        marks resources above the fold. With more than 60 resources, the smallest below the fold
        share rows with folded neighbours. The axis ends as that of `multiplexing`. With *fold*
        there is a row per "host" or "kind". Returns *ax*, or the axes of a new figure.

        Raises:
            InputError: if *fold* is something else.
        """
        if fold is not None:
            check_choice("fold", fold, ("host", "kind"))
        load, window = self.loads[0], window_of(self.loads[:1], until_ms)
        # Rows of several resources have no colour of their own.
        palette = self._palette if fold is None else Palette(load.page, is_by_kind=True)
        ax = ax or new_axes(
            _ROW_HEIGHT_IN * waterfalls.n_lines(load, palette, fold) + _FRAME_HEIGHT_IN
        )
        set_alt_text(ax, waterfalls.draw_waterfall(ax, load, palette, window, fold=fold))
        return ax

    def figure(self, *, until_ms: float | None = None, **style: Unpack[FigureStyle]) -> ShownFigure:
        """Return a new figure of the strip with its legend, the ByteIndex and, alone, a waterfall.

        A waterfall is drawn for a single load. All share the time axis, in ms since navigation
        start, which ends as that of `multiplexing`. The legend lists the resources, or their
        classes if there are more than 12.
        """
        has_waterfall = len(self.loads) == 1
        waterfall_in = _ROW_HEIGHT_IN * waterfalls.n_lines(self.loads[0], self._palette)
        figure, (first, curve, *below) = self._new_figure(
            [self._curve_height_in, *([waterfall_in] if has_waterfall else ())],
            title="\n".join([*_conclusion(self.loads), title(self.loads)]),
        )
        self.multiplexing(first, until_ms=until_ms)
        self.byte_index(curve)
        for ax in below:
            self.waterfall(ax, until_ms=until_ms)
        for ax in (curve, *below):
            ax.set_xlim(first.get_xlim())
        return figure

    def scheme_card(self, **style: Unpack[FigureStyle]) -> ShownFigure:
        """Return a new figure of the first load's scheme: what it is, its strip, and its tree.

        The tree, or the groups in the order in which they are served, is that of `priority_tree`.
        """
        load = self.loads[0]
        words = [f"{load.scheme.name}: {load.scheme.title}"]
        if load.scheme.knows:
            words.append(f"It uses what no browser knows: {', '.join(load.scheme.knows)}")
        boxes = trees.boxes_of(load.page, trees.elements_of(load, trees.busiest_ns(load)))
        tree_in = trees.height_in(trees.positions_of([box.parent for box in boxes]))
        figure, (strip, tree) = self._new_figure([tree_in], title=plain("\n".join(words)))
        self.multiplexing(strip)
        self.priority_tree(tree)
        return figure

    def alt_text(self, name: str = "figure") -> str:
        """Return the alternative text of the figure that the method *name* draws.

        Raises:
            InputError: if there is no such figure, or it cannot be drawn of these loads.
        """
        if name not in PICTURES:
            message = f"must be one of {', '.join(PICTURES)}, is {format_value(name)}"
            raise InputError.at("name", message)
        return alt_text(getattr(self, name)())

    def animation(self, path: str | os.PathLike[str]) -> None:
        """Write an animation of packets, and of those that either order of delivery holds back.

        It shows the first load, as an interactive page (.html) or in part (.gif), by *path*.
        For the same packets it shows QUIC, which delivers each stream in its own order, above TCP,
        which has one order for all (Marx 2019 § 2, Sander 2022 § 4). Equal loads give equal bytes.

        Raises:
            InputError: if the ending is another, or the file cannot be written.
        """
        animation.write(self.loads[0], self._palette, path)

    def race(self, path: str | os.PathLike[str]) -> None:
        """Write a replay of the loads side by side, as pages that fill in, to *path* (.html).

        Boxes stand for the resources above the fold; below each page are the packets on the wire,
        below all pages a filmstrip. The player can step, and go to the next time at which a
        resource is complete in some loads only. It needs no other file and no network.

        Raises:
            InputError: if the ending is another, or the file cannot be written.
        """
        race.write(self.loads, load_names(self.loads), self._palette, path)

    def __repr__(self) -> str:
        return f"<Figures of {self._page.name}: {', '.join(lane_labels(self.loads))}>"

    @cached_property
    def _lanes(self) -> list[lane_layout.LoadLane]:
        end_ms = window_of(self.loads).end_ms
        return [lane_layout.lane_of(load, end_ms) for load in self.loads]

    @property
    def _lane_labels(self) -> list[str]:
        heads_tails = (label.partition(", ") for label in lane_labels(self.loads))
        return [f"{head}\n{folded(tail)}".rstrip() for head, _, tail in heads_tails]

    @property
    def _strip_height_in(self) -> float:
        # High enough for a single packet in a lane of stacks, and for the lines of a label.
        single = lane_layout.stack_share(1, lane_layout.tallest(self._lanes))
        lines = max(label.count("\n") + 1 for label in self._lane_labels)
        lane_in = max(_LANE_HEIGHT_IN / single, _LINE_HEIGHT_IN * (lines + 0.5))
        return len(self.loads) * lane_in

    @property
    def _curve_height_in(self) -> float:
        names = map(folded, lane_labels(self.loads))
        lines = sum(name.count("\n") + 1 for name in names)
        least_in = _NARROW_CURVE_HEIGHT_IN if is_narrow() else _MIN_CURVE_HEIGHT_IN
        return max(least_in, _ROW_HEIGHT_IN * (lines + 2) * (paper_in() is None))

    def _new_figure(
        self, other_heights_in: list[float], *, title: str = ""
    ) -> tuple[ShownFigure, list[Axes]]:
        """Return a new figure, with axes for the strip and for each of *other_heights_in*.

        The legend of the resources is beside the strip if that is high enough, otherwise below it.
        """
        palette = self._palette
        room_in = self._strip_height_in if paper_in() is None else 0.0
        has_side_legend = multiplexing.height_in(palette, columns=1) <= room_in
        below_in = [] if has_side_legend else [multiplexing.height_in(palette)]
        heights_in = [self._strip_height_in, *below_in, *other_heights_in]
        figure = new_figure(
            sum(heights_in)
            + _LABEL_HEIGHT_IN * (1 + len(other_heights_in))
            + _TITLE_HEIGHT_IN * bool(title)
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
