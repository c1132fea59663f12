"""What a report says of a measured log: of a real stack, or of h3sim."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from h3sim.plots import trace_figures
from h3sim.reporting.document import Part, Table
from h3sim.reporting.drawing import picture
from h3sim.reporting.load_pictures import table_of_bins

if TYPE_CHECKING:
    from h3sim.reporting.document import Picture
    from h3sim.results.measured import Measurement

__all__ = ["part_of_log", "verdict_of_log"]


def verdict_of_log(measured: Measurement) -> list[str]:
    """Return what is to be known first, in sentences."""
    known = measured.to_dict()
    n, index_ms = len(known["resources"]), known["byte_index_ms"]["all"]
    said = [
        f"{known['page']}, a log over {known['transport'].upper()}: the last of {n}"
        f" response{'s' * (n != 1)} was complete {known['page_load_ms']:,.0f} ms after the log"
        " began."
    ]
    if index_ms is not None:
        said.append(f"The ByteIndex of all responses is {index_ms:,.0f} ms.")
    packets, hol = known["packets"], known["hol"]
    said.append(f"{packets['lost']:,} of {packets['sent']:,} packets were lost.")
    if hol["stream_bytes"]:
        said.append(f"{hol['stream_bytes']:,} bytes waited for others of their own stream.")
    return [*said, *(f"Not known: {what}." for what in measured.unknown)]


def part_of_log(measured: Measurement) -> Part:
    """Return the section of one log."""
    known = measured.to_dict()
    return Part(
        title=f"{known['page']}: {len(known['resources'])} responses",
        pictures=_pictures(measured, known),
        tables=[_hol(known)],
    )


def _pictures(measured: Measurement, known: dict[str, Any]) -> list[Picture]:
    trace, log = measured.log.trace, measured.log
    end_ms = known["page_load_ms"] * 1.005 or 1.0
    names = {request.stream_id: log.resources[request.resource].id for request in trace.requests}
    bins = trace_figures.bins_of(trace, end_ms)
    peak = max((span.arrived_mbps for span in bins), default=0.0)
    return [
        picture(
            trace_figures.byte_ranges_of(trace, names, known["page"], end_ms=end_ms),
            title=f"{known['page']}: byte ranges per stream",
            alt="A row per stream, in which its bytes rise over time; gaps are filled later, and"
            f" {known['hol']['stream_bytes']:,} bytes waited until they were.",
            data=Table(
                title="Responses, times in ms",
                columns=("stream", "resource", "bytes", "requested", "first byte", "finished"),
                rows=[
                    (
                        *(row["stream_id"], row["id"], row["bytes"]),
                        *(row["requested_ms"], row["first_byte_ms"], row["finished_ms"]),
                    )
                    for row in known["resources"]
                ],
            ),
        ),
        picture(
            trace_figures.throughput_of(trace, known["page"], end_ms=end_ms),
            title=f"{known['page']}: throughput",
            alt=f"Arriving bytes peak at {peak:.2f} Mbit/s; a line shows what was delivered.",
            data=table_of_bins(bins),
        ),
    ]


def _hol(known: dict[str, Any]) -> Table:
    hol = known["hol"]
    return Table(
        title="Head-of-line blocking",
        columns=("order", "bytes", "ms summed over packets", "bytes as Sander 2022 counts"),
        rows=[
            (
                "within streams",
                *(hol["stream_bytes"], hol["stream_delay_ms"], hol["sander_stream_bytes"]),
            ),
            (
                "in one order",
                *(hol["connection_bytes"], hol["connection_delay_ms"]),
                hol["sander_connection_bytes"],
            ),
        ],
    )
