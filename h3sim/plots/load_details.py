"""Figures of what went on in a load: windows, throughput, byte ranges, and what asked for what."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from h3sim.errors import InputError, Problem
from h3sim.plots import (
    byte_ranges,
    congestion,
    deltas,
    dependencies,
    labels,
    priority_state,
    priority_tree,
    throughput,
    variants,
)
from h3sim.plots.alt_texts import (
    alt_of,
    congestion_alt,
    delta_alt,
    priority_tree_alt,
    throughput_alt,
)
from h3sim.plots.files import (
    ShownFigure,
    check_ending,
    check_loads,
    checks_axes,
    save_figure,
    say,
)
from h3sim.plots.palette import Palette
from h3sim.plots.style import in_style
from h3sim.plots.trace_figures import CURVE_IN, byte_ranges_height_in, new_axes
from h3sim.plots.window import instant_ns, window_of
from h3sim.units import to_ms

if TYPE_CHECKING:
    import os
    from collections.abc import Callable

    from matplotlib.axes import Axes

    from h3sim.page import Page
    from h3sim.results import Load
    from h3sim.trace import Trace

__all__ = ["LoadDetails"]

_ROW_IN, _FRAME_IN = 0.19, 1.1


@checks_axes
class LoadDetails:
    """The part of `LoadPlots` that looks into loads, most of it into the first."""

    loads: tuple[Load, ...]

    def congestion(
        self,
        ax: Axes | None = None,
        *,
        connection: int | None = None,
        until_ms: float | None = None,
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
        chosen = congestion.connection_of(load, connection)
        words = congestion_alt(load, chosen)
        told = congestion.told_connection(load, chosen)
        what = f"Congestion window of {told}:" if told else "Congestion window of"

        def draw(ax: Axes, _: Trace, title: str, *, end_ms: float, note: str) -> None:
            congestion.draw(ax, chosen.trace, title, end_ms=end_ms, note=note)

        ax = self._over_time(ax, what, draw, until_ms)
        say(ax, words)
        return ax

    def throughput(self, ax: Axes | None = None, *, until_ms: float | None = None) -> Axes:
        """Draw how many bytes of responses arrived, and how many were delivered in order.

        Of the first load, in Mbit/s over spans of a round number of ms: where the line is below the
        area, bytes waited for others. Returns *ax*, or the axes of a new figure.
        """
        ax = self._over_time(ax, "Throughput of", throughput.draw, until_ms)
        say(ax, throughput_alt(self.loads[0].trace, window_of(self.loads[:1], until_ms).end_ms))
        return ax

    def byte_ranges(self, ax: Axes | None = None, *, until_ms: float | None = None) -> Axes:
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
            byte_ranges.draw(ax, trace, names, title, end_ms=end_ms, note=note)

        height_in = byte_ranges_height_in(load.trace)
        ax = self._over_time(ax, "Byte ranges per stream of", draw, until_ms, height_in)
        say(ax, alt_of("byte_ranges", self.loads))
        return ax

    def deltas(self, ax: Axes | None = None) -> Axes:
        """Draw of two loads how much sooner or later each resource was complete with the second.

        Bars in ms, in the order of the page; of more than 60 resources those that moved most.
        Returns *ax*, or the axes of a new figure.

        Raises:
            InputError: if there are not two loads: `LoadPlots([load, other])`.
        """
        if len(self.loads) != 2:
            message = f"must be two to be compared, are {len(self.loads)}"
            raise InputError([Problem(key="loads", message=message)])
        first, second = self.loads
        n_rows = len(deltas.shown(deltas.deltas_of(first, second)))
        with in_style():
            ax = ax or new_axes(_ROW_IN * n_rows + _FRAME_IN)
            one, other = labels.lane_labels(self.loads)
            deltas.draw(ax, first, second, (one, other))
        say(ax, delta_alt(first, second))
        return ax

    def against(self, other: Load, *, until_ms: float | None = None) -> ShownFigure:
        """Return a figure of the first load above *other*, and of what moved between the two.

        *other* is a load of the same page or of a variant of it (`page.with_(...)`): resources are
        the same where their ids are. Both waterfalls have one axis of time, which ends as that of
        `multiplexing`; colours are those of kinds.

        Raises:
            InputError: if *other* is no load.
        """
        check_loads("other", [other])
        with in_style():
            return variants.figure_of(self.loads[0], other, until_ms=until_ms)

    def save_against(
        self, other: Load, path: str | os.PathLike[str], *, until_ms: float | None = None
    ) -> None:
        """Write the figure of `against` to *path*, as `save` writes the others.

        Raises:
            InputError: if the ending is none of .png, .svg and .pdf, or it cannot be written.
        """
        check_ending(path)
        save_figure(self.against(other, until_ms=until_ms), path)

    def dependencies(self, ax: Axes | None = None) -> Axes:
        """Draw what made the browser ask for what, and the chain that the end waited for.

        Of the first load: a box per resource, to the right of its parent; three and more leaves of
        a kind share one. Returns *ax*, or the axes of a new figure.
        """
        load = self.loads[0]
        chain = dependencies.chain_of(load)
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
            ax = ax or new_axes(dependencies.height_in(dependencies.nodes_of(load.page, chain)))
            dependencies.draw(ax, load.page, self._palette, title, when, chain=chain)
        say(ax, alt_of("dependencies", self.loads))
        return ax

    def priority_tree(self, ax: Axes | None = None, *, at_ms: float | None = None) -> Axes:
        """Draw what the server's scheduler knew of the first load *at_ms* after navigation start.

        The dependency tree as it stood, or, where there is none, the groups of streams (urgencies,
        buckets) in the order in which they are served. Without *at_ms* it is the first instant at
        which most responses waited to be sent. Returns *ax*, or the axes of a new figure.

        Raises:
            InputError: if *at_ms* is no time.
        """
        load = self.loads[0]
        at_ns = priority_state.busiest_ns(load) if at_ms is None else instant_ns(at_ms)
        found = priority_tree.boxes_of(load.page, priority_state.elements_of(load, at_ns))
        page, scheme, network = self._names
        title = f"Priorities at the server of {page} with {scheme} over {network}"
        with in_style():
            ax = ax or new_axes(priority_tree.height_in(found))
            priority_tree.draw(
                ax, found, self._palette, f"{title}, {to_ms(at_ns):,.0f} ms after navigation start"
            )
        say(ax, priority_tree_alt(load, at_ns))
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
