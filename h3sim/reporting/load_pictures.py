"""Pictures in a report as SVG: of one load, and of the difference between two."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, NamedTuple

from h3sim.reporting import time_series, trees
from h3sim.reporting.document import Picture, ReportTable
from h3sim.reporting.lane_layout import window_of
from h3sim.reporting.load_plots import LoadPlots
from h3sim.reporting.output import alt_text, render
from h3sim.reporting.time_series import bins_of
from h3sim.reporting.waterfall import deltas_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from h3sim.reporting.time_series import Bin
    from h3sim.results import Load
    from h3sim.results.connections import Connection


def picture(drawn: Axes | Figure, *, title: str, data: ReportTable) -> Picture:
    """Return what was *drawn*, whose words stand with it, as a picture of a report."""
    figure = drawn.get_figure(root=True)
    assert figure is not None  # noqa: S101 - axes of h3sim.reporting stand in a figure
    file = io.BytesIO()
    render(figure, file, "svg")
    return Picture(title=title, alt=alt_text(figure), svg=file.getvalue().decode(), data=data)


_MAX_SAMPLES = 200


class NamedLoad(NamedTuple):
    """A load, and what it is called beside the others."""

    name: str
    load: Load


def pictures_of_one(load: Load) -> list[Picture]:
    """Return how the bytes of a load came, and what asked for what."""
    windows = [
        _congestion(load, connection)
        for connection in load.connections
        if connection.trace.recovery
    ]
    return [_byte_ranges(load), _throughput(load), *windows, _dependencies(load)]


def pictures_of_two(first: NamedLoad, second: NamedLoad) -> list[Picture]:
    """Return what was complete sooner, and what later, with the second of two loads."""
    rows = deltas_of(first.load, second.load)
    return [
        picture(
            LoadPlots([first.load, second.load]).deltas(),
            title=f"{first.load.page.name}: what moved with {second.name} against {first.name}",
            data=ReportTable(
                title=f"When resources were complete with {first.name} and {second.name}",
                columns=(
                    *("resource", "kind", "bytes", "above the fold"),
                    *(f"{first.name}, ms", f"{second.name}, ms", "difference, ms"),
                ),
                rows=rows,
            ),
        )
    ]


def table_of_bins(bins: Sequence[Bin]) -> ReportTable:
    """Return throughput as a table."""
    return ReportTable(
        title="Throughput by span of time",
        columns=("from ms", "arrived, Mbit/s", "delivered in order, Mbit/s"),
        rows=bins,
    )


def _byte_ranges(load: Load) -> Picture:
    sent = {row.id: [0, 0] for row in load.timings}
    ids = {
        request.stream_id: load.page.resources[request.resource].id
        for request in load.trace.requests
    }
    for packet in load.trace.packets:
        counts = sent[ids[packet.stream_id]]
        counts[0] += 1
        counts[1] += packet.arrived_at_ns is None
    return picture(
        load.plot.byte_ranges(),
        title=f"{load.page.name}: byte ranges per stream",
        data=ReportTable(
            title="Packets by resource, times in ms",
            columns=("resource", "packets", "of them lost", "bytes", "first byte", "finished"),
            rows=[
                (row.id, *sent[row.id], row.bytes, row.first_byte_ms, row.finished_ms)
                for row in load.timings
            ],
        ),
    )


def _throughput(load: Load) -> Picture:
    bins = bins_of(load.trace, window_of([load]).end_ms)
    return picture(
        load.plot.throughput(),
        title=f"{load.page.name}: throughput",
        data=table_of_bins(bins),
    )


def _congestion(load: Load, connection: Connection) -> Picture:
    samples = time_series.samples_of(connection.trace)
    told = time_series.told_connection(load, connection)
    # Losses stay; between them every so many rows tell enough.
    step = -(-len(samples) // _MAX_SAMPLES)
    shown = [sample for n, sample in enumerate(samples) if n % step == 0 or sample.n_lost]
    return picture(
        load.plot.congestion(connection=connection.number),
        title=f"{load.page.name}: congestion window and bytes in flight"
        + (f", {told}" if told else ""),
        data=ReportTable(
            title="The server's recovery" + (f", every {step} rows and losses" if step > 1 else ""),
            columns=("ms", "window, bytes", "in flight, bytes", "smoothed RTT, ms", "lost packets"),
            rows=shown,
        ),
    )


def _dependencies(load: Load) -> Picture:
    page = load.page
    chain = [page.resources[index].id for index in trees.chain_of(load)]
    finished = {row.id: row.finished_ms for row in load.timings}
    rows = []
    for resource in page.resources:
        found = resource.discovered
        by, at = (None, None) if found is None else (found.by, found.at.value)
        is_chain = resource.id in chain
        rows.append((resource.id, by, at, finished.get(resource.id), is_chain))
    return picture(
        load.plot.dependencies(),
        title=f"{page.name}: what asked for what",
        data=ReportTable(
            title="What made the browser ask for each resource",
            columns=("resource", "asked for by", "at", "finished ms", "on the chain to the end"),
            rows=rows,
        ),
    )
