"""`h3sim qlog`: the metrics of a qlog from a real stack or from h3sim."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

from h3sim.cli.parsing import ErrorList, Parser, RawHelp, check_plot_path
from h3sim.cli.tables import add_wide, in_ms, terminal_width
from h3sim.errors import InputError, ValidationIssue
from h3sim.qlog import read_qlog
from h3sim.results.qlog_metrics import Measurement, measured_to_dict
from h3sim.results.tables import batches
from h3sim.table import Table, format_pairs
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


def add_command(commands: argparse._SubParsersAction[Parser], summary: str) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "qlog",
        help=summary,
        description="Compute from a qlog the same metrics as for a simulated load.",
        epilog=_EPILOG,
        formatter_class=RawHelp,
    )
    parser.add_argument("file", metavar="FILE", help="a qlog: JSON or JSON-SEQ (may be gzipped)")
    parser.add_argument(
        "--json",
        action="store_true",
        help="print h3sim-load/2, with null for values that the log lacks",
    )
    parser.add_argument(
        "--trace", type=int, metavar="N", help="use only trace N of a file with several traces"
    )
    parser.add_argument(
        "--plot", metavar="FILE", help="plot the arrival of bytes over time: FILE.png, .svg or .pdf"
    )
    parser.add_argument(
        "--with-log",
        metavar="FILE",
        help="another qlog to plot below the first, for example one from `h3sim run --qlog`",
    )
    add_wide(parser)
    parser.set_defaults(command=_measure)


def _measure(options: argparse.Namespace) -> int:
    mistakes = ErrorList()
    log = mistakes.collect(lambda: read_qlog(options.file, trace=options.trace))
    mistakes.collect(lambda: check_plot_path(options.plot))
    mistakes.collect(lambda: _check_with_log(options))
    other = None
    if options.with_log is not None:
        other = mistakes.collect(lambda: read_qlog(options.with_log))
    if log is None or mistakes.lines:
        return mistakes.tell("qlog")
    if options.plot is not None:
        _draw([log] if other is None else [log, other], options.plot)
    document = measured_to_dict(log)
    if options.json:
        print(json.dumps(document, allow_nan=False))
    else:
        _show(log, document, terminal_width(options))
    for what in log.unknown:
        print(f"h3sim qlog: unknown: {what}", file=sys.stderr)
    return 0


def _check_with_log(options: argparse.Namespace) -> None:
    if options.with_log is not None and options.plot is None:
        raise InputError([ValidationIssue(key="--with-log", message="goes only with --plot")])


def _draw(logs: list[MeasuredLog], path: str) -> None:
    from h3sim.reporting import LogPlots  # lazy: most logs are not plotted

    LogPlots([Measurement(log) for log in logs]).save(path)


def _show(log: MeasuredLog, document: dict[str, Any], width: int | None) -> None:
    print(f"{escape_control(log.title)}: a log over {document['transport']}\n")
    print(format_pairs(_figures(document), width=width))
    print()
    rows = (
        (
            str(row["stream_id"]),
            row["id"],
            f"{row['bytes']:,}",
            in_ms(row["requested_ms"]),
            in_ms(row["first_byte_ms"]),
            in_ms(row["finished_ms"]),
        )
        for row in document["resources"]
    )
    headers = ("stream", "resource", "bytes", "requested ms", "first byte ms", "finished ms")
    print(Table(headers, rows).to_text(width, shorten=True))


def _figures(document: dict[str, Any]) -> list[tuple[str, str]]:
    hol, packets = document["hol"], document["packets"]
    again = "-" if packets["retransmitted"] is None else f"{packets['retransmitted']:,}"
    counted = f"{hol['sander_stream_bytes']:,} and {hol['sander_connection_bytes']:,} bytes"
    return [
        ("ByteIndex", f"{in_ms(document['byte_index_ms']['all'])} ms"),
        ("page load", f"{in_ms(document['page_load_ms'])} ms"),
        ("packets", f"{packets['sent']:,} sent, {packets['lost']:,} lost, {again} retransmitted"),
        ("HOL blocking within streams", _hol(hol, "stream")),
        ("HOL blocking across streams", _hol(hol, "connection")),
        ("both, counted as in Sander 2022", counted),
        ("delivery batches", batches(hol["stack_histogram"])),
    ]


def _hol(hol: dict[str, Any], what: str) -> str:
    n_bytes = hol[f"{what}_bytes"]
    return "-" if n_bytes is None else f"{n_bytes:,} bytes, {in_ms(hol[f'{what}_delay_ms'])} ms"
