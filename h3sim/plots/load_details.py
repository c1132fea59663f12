"""Figures of what went on in a load: windows, throughput, byte ranges, and what asked for what."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from h3sim.errors import InputError, Problem
from h3sim.plots import byte_ranges, congestion, deltas, dependencies, labels, throughput
from h3sim.plots.palette import Palette
from h3sim.plots.style import in_style
from h3sim.plots.trace_figures import CURVE_IN, byte_ranges_height_in, new_axes
from h3sim.plots.window import window_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from matplotlib.axes import Axes

    from h3sim.page import Page
    from h3sim.results import Load
    from h3sim.trace import Trace

__all__ = ["LoadDetails"]

_ROW_IN, _FRAME_IN = 0.19, 1.1
_NODE_IN, _TITLE_IN = 0.36, 0.5


class LoadDetails:
    """The part of `LoadPlots` that looks into loads, most of it into the first."""

    loads: tuple[Load, ...]

    def congestion(self, ax: Axes | None = None, *, until_ms: float | None = None) -> Axes:
        """Draw the server's congestion window, its bytes in flight, and when losses were noticed.

        Of the first load, in kB over ms since navigation start. Returns *ax*, or the axes of a new
        figure.

        Raises:
            NothingToMeasureError: if no recovery was recorded: `simulate(..., records_wire=True)`
                does, over links.
        """
        congestion.samples_of(self.loads[0].trace)
        return self._over_time(ax, "Congestion window", congestion.draw, until_ms)

    def throughput(self, ax: Axes | None = None, *, until_ms: float | None = None) -> Axes:
        """Draw how many bytes of responses arrived, and how many were delivered in order.

        Of the first load, in Mbit/s over spans of a round number of ms: where the line is below the
        area, bytes waited for others. Returns *ax*, or the axes of a new figure.
        """
        return self._over_time(ax, "Throughput", throughput.draw, until_ms)

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
        return self._over_time(ax, "Byte ranges per stream", draw, until_ms, height_in)

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
        return ax

    def dependencies(self, ax: Axes | None = None) -> Axes:
        """Draw what made the browser ask for what, and the chain that the end waited for.

        Of the first load: a box per resource, to the right of its parent; three and more leaves of
        a kind share one. Returns *ax*, or the axes of a new figure.
        """
        load = self.loads[0]
        n_rows = max(node.row for node in dependencies.nodes_of(load)) + 1
        with in_style():
            ax = ax or new_axes(_NODE_IN * n_rows + _TITLE_IN)
            dependencies.draw(ax, load, self._palette)
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
        names = (load.page.name, load.scheme.name, load.network.name)
        page, scheme, network = (labels.shortened(name, 40) for name in names)
        with in_style():
            ax = ax or new_axes(height_in)
            title = f"{what} of {page} with {scheme} over {network}"
            draw(ax, load.trace, title, end_ms=window.end_ms, note=window.note)
        return ax

    @property
    def _page(self) -> Page:
        return self.loads[0].page

    @cached_property
    def _palette(self) -> Palette:
        return Palette(self._page)
