"""What a report says of a measured log: of a real stack, or of h3sim."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from h3sim.plots.throughput import bins_of
from h3sim.reporting.document import ReportTable, Section
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


def part_of_log(measured: Measurement) -> Section:
    """Return the section of one log."""
    known = measured.to_dict()
    return Section(
        title=f"{known['page']}: {len(known['resources'])} responses",
        pictures=_pictures(measured, known),
        tables=[_hol(known)],
    )


def _pictures(measured: Measurement, known: dict[str, Any]) -> list[Picture]:
    plots = measured.plot
    return [
        picture(
            plots.byte_ranges(),
            title=f"{known['page']}: byte ranges per stream",
            data=ReportTable(
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
            plots.throughput(),
            title=f"{known['page']}: throughput",
            data=table_of_bins(bins_of(measured.trace, plots.end_ms)),
        ),
    ]


def _hol(known: dict[str, Any]) -> ReportTable:
    hol = known["hol"]
    return ReportTable(
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
