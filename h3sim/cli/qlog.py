"""`h3sim qlog`: the metrics of a qlog from a real stack or from h3sim."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from h3sim.cli import tables
from h3sim.cli.command import (
    JSON,
    NO_TRUNCATE,
    PLOT,
    Argument,
    Command,
    FigureOptions,
    print_json,
)
from h3sim.qlog import read_qlog
from h3sim.results.qlog_metrics import Measurement, measured_to_dict
from h3sim.results.tables import batches
from h3sim.table import Column, format_pairs
from h3sim.text import escape_control

if TYPE_CHECKING:
    import argparse

    from h3sim.qlog import MeasuredLog


_EPILOG = """\
examples:
  h3sim qlog client.qlog
  h3sim qlog client.sqlog.gz --json > load.json
  h3sim qlog two-connections.qlog --trace 2
  h3sim run davies-meenan --scheme fifo --qlog load.qlog && h3sim qlog load.qlog
  h3sim qlog client.qlog --with-log load.qlog --plot both.png

Metrics are those of one connection, from the client's log, the server's, or (best) both in one
file. All qlog versions since draft-00 are supported, as JSON or as a JSON text sequence.
"""


def _measure(options: argparse.Namespace) -> None:
    log: MeasuredLog = options.file
    if options.plot is not None:
        from h3sim.reporting import LogPlots  # lazy: most logs are not plotted

        logs = [log] if options.with_log is None else [log, options.with_log]
        plots = LogPlots([Measurement(each) for each in logs])
        plots.save(options.plot, **options.figure_style)
    document = measured_to_dict(log)
    if options.json:
        print_json(document)
    else:
        _show(log, document, options.width)
    for what in log.unknown:
        print(f"h3sim qlog: unknown: {what}", file=sys.stderr)


def _show(log: MeasuredLog, document: dict[str, Any], width: int | None) -> None:
    print(f"{escape_control(log.title)}: a log over {document['transport']}\n")
    print(f"{format_pairs(_figures(document), width=width)}\n")
    tables.print_table(
        document["resources"],
        ("stream", lambda row: str(row["stream_id"])),
        ("resource", lambda row: row["id"]),
        ("bytes", lambda row: row["bytes"]),
        *(
            (
                Column.ms(f"{name} ms".replace("_", " ")),
                lambda row, name=name: row[f"{name}_ms"],
            )
            for name in ("requested", "first_byte", "finished")
        ),
        width=width,
    )


def _figures(document: dict[str, Any]) -> list[tuple[str, str]]:
    hol, packets = document["hol"], document["packets"]
    retransmitted = "-" if packets["retransmitted"] is None else f"{packets['retransmitted']:,}"
    counted = f"{hol['sander_stream_bytes']:,} and {hol['sander_connection_bytes']:,} bytes"
    return [
        ("ByteIndex", f"{tables.in_ms(document['byte_index_ms']['all'])} ms"),
        ("page load", f"{tables.in_ms(document['page_load_ms'])} ms"),
        (
            "packets",
            f"{packets['sent']:,} sent, {packets['lost']:,} lost, {retransmitted} retransmitted",
        ),
        ("HOL blocking within streams", _hol(hol, "stream")),
        ("HOL blocking across streams", _hol(hol, "connection")),
        ("both, counted as in Sander 2022", counted),
        ("delivery batches", batches(hol["stack_histogram"])),
    ]


def _hol(hol: dict[str, Any], what: str) -> str:
    n_bytes = hol[f"{what}_bytes"]
    return (
        "-" if n_bytes is None else f"{n_bytes:,} bytes, {tables.in_ms(hol[f'{what}_delay_ms'])} ms"
    )


COMMANDS = {
    "qlog": Command(
        "Compute from a qlog the same metrics as for a simulated load.",
        _measure,
        (
            Argument(
                "FILE",
                "a qlog: JSON or JSON-SEQ (may be gzipped)",
                read=lambda name, options: read_qlog(name, trace=options.trace),
            ),
            JSON("print h3sim-load/2, with null for values that the log lacks"),
            Argument("--trace N", "use only trace N of a file with several traces", type=int),
            Argument(
                "--plot FILE",
                "plot the arrival of bytes over time: FILE.png, .svg or .pdf",
                output=PLOT,
            ),
            FigureOptions(),
            Argument(
                "--with-log FILE",
                "another qlog to plot below the first, for example one from `h3sim run --qlog`",
                needs="--plot",
                read=lambda name, _: read_qlog(name),
            ),
            NO_TRUNCATE,
        ),
        _EPILOG,
    )
}
