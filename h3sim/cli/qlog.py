"""Commands that read logs: `h3sim qlog`, `h3sim identify` and `h3sim workload`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from h3sim.cli import common, output
from h3sim.cli.command import Argument, Options, command
from h3sim.export.load_document import measured_to_dict
from h3sim.export.tables import batches
from h3sim.identification.identification import identify
from h3sim.identification.workload import BASE_URL, WORKLOADS, check_base_url, write_workload
from h3sim.load.qlog_metrics import Measurement
from h3sim.qlog import parse_qlog
from h3sim.values.table import Column, Table, format_pairs
from h3sim.values.text import escape_control, plural

if TYPE_CHECKING:
    from h3sim.identification.identification import Explanation, Identification
    from h3sim.qlog import MeasuredLog


def _print_metrics(log: MeasuredLog, document: dict[str, Any], width: int | None) -> None:
    """Print the metrics of a log."""
    print(f"{escape_control(log.title)}: a log over {document['transport']}\n")
    print(f"{format_pairs(_metric_rows(document), width=width)}\n")
    times = ("requested_ms", "first_byte_ms", "finished_ms")
    shown = output.of(
        document["resources"],
        ("stream", lambda row: str(row["stream_id"])),
        ("resource", lambda row: row["id"]),
        ("bytes", lambda row: row["bytes"]),
        # A default argument, as the loop's variable changes before the function is called.
        *((Column.ms(key.replace("_", " ")), lambda row, key=key: row[key]) for key in times),
    )
    output.show(width, shown)


def _metric_rows(document: dict[str, Any]) -> list[tuple[str, str]]:
    """Return names and values of a log's metrics."""
    hol, packets = document["hol"], document["packets"]
    retransmitted = "-" if packets["retransmitted"] is None else f"{packets['retransmitted']:,}"
    counted = f"{hol['sander_stream_bytes']:,} and {hol['sander_connection_bytes']:,} bytes"
    return [
        ("ByteIndex", f"{output.in_ms(document['byte_index_ms']['all'])} ms"),
        ("page load", f"{output.in_ms(document['page_load_ms'])} ms"),
        (
            "downlink packets",
            f"{packets['sent']:,} sent, {packets['lost']:,} lost, {retransmitted} retransmitted",
        ),
        ("HOL blocking within streams", _hol_cell(hol, "stream")),
        ("HOL blocking across streams", _hol_cell(hol, "connection")),
        ("both, counted as in Sander 2022", counted),
        ("delivery batches", batches(hol["stack_histogram"])),
    ]


def _hol_cell(hol: dict[str, Any], what: str) -> str:
    n_bytes = hol[f"{what}_bytes"]
    return (
        "-"
        if n_bytes is None
        else f"{n_bytes:,} bytes, {output.in_ms(hol[f'{what}_delay_ms'])} ms summed over packets"
    )


_MECHANISM_HEADS = ("mechanism", "quantum", "explains", "%", "contradicted by", "")
_RETRANSMISSION_ORDERS = {
    "first": "before anything new",
    "priority": "before anything new, by priority",
    "turn": "at their stream's turn",
}
"""Descriptions of the orders in which servers send retransmissions."""


def _print_identification(found: Identification, width: int | None) -> None:
    """Print the mechanisms that explain the log."""
    output.show(width, f"{found.title}: {found.source} log")
    print(f"\n{format_pairs(_identification_rows(found), width=width)}")
    if found.n_choices:
        print()
        output.show(width, Table(_MECHANISM_HEADS, map(_explanation_cells, found.rows)))
    for row in found.differences:
        print()
        output.show(width, f"To tell {row.mechanism} from {row.other}: {row.needs}.")
    if found.differences:
        output.show(width, "`h3sim workload` writes such responses for a test server.")


def _identification_rows(found: Identification) -> list[tuple[str, str]]:
    """Return what the log shows in words."""
    rows = [("mechanism", _describe_mechanism(found))]
    if not found.candidates:
        return rows
    if found.quantum:
        rows.append(("quantum", found.quantum))
    rows += [
        ("signals", _describe_heeding(found.heeds_signals)),
        ("changed signals", _describe_heeding(found.heeds_updates)),
    ]
    orders = " or ".join(_RETRANSMISSION_ORDERS[name] for name in found.retransmissions)
    rows.append(("retransmissions", orders or "not shown by this log"))
    if found.requeues:
        rows.append(("requeuing", "streams go behind others when their bytes are acknowledged"))
    if found.runner_up is not None:
        rows.append(("runner-up", _describe_explanation(found.runner_up, found.n_choices)))
    return rows


def _describe_mechanism(found: Identification) -> str:
    """Return the mechanism that explains the log, if only one does."""
    if not found.n_choices:
        return "cannot tell: at no time were two responses ready"
    best = _describe_explanation(found.rows[0], found.n_choices)
    changes = f"and {found.n_changes_explained:,} of {found.n_changes:,} changes of stream"
    saved = f"which saves {100 * max(found.saved, 0):.0f} % of what chance would take to say"
    match found.candidates:
        case () if not found.order.has_signals:
            why = "none that ignores priorities, and this log has none"
            return f"{why}; the nearest is {best}, {changes}, {saved}"
        case ():
            return f"none that h3sim ships; the nearest is {best}, {changes}, {saved}"
        case (_,):
            return best
    return f"cannot tell {', '.join(found.candidates[:-1])} and {found.candidates[-1]} apart"


def _describe_explanation(row: Explanation, n_choices: int) -> str:
    text = f"{row.mechanism}: explains {row.explained:,} of {n_choices:,} picks"
    return f"{text} ({row.percent:.1f} %)"


def _describe_heeding(value: bool | None) -> str:
    return {True: "heeded", False: "ignored", None: "not shown by this log"}[value]


def _explanation_cells(row: Explanation) -> tuple[str, ...]:
    """Return the cells of a mechanism."""
    return (
        row.mechanism,
        row.quantum,
        f"{row.explained:,}",
        f"{row.percent:.1f}",
        plural(row.refuting, "pick"),
        "refuted" if row.is_refuted else "possible",
    )


@command(
    "qlog",
    Argument(
        "FILE",
        "a qlog: JSON or JSON-SEQ (may be gzipped)",
        read=lambda name, options: parse_qlog(name, trace=options.trace),
    ),
    common.JSON("print h3sim-load/2, with null for values that the log lacks"),
    Argument("--trace N", "use only trace N of a file with several traces", type=int),
    common.PLOT("plot the arrival of bytes over time: FILE.png, .svg or .pdf"),
    *common.figure_options(),
    Argument(
        "--with-log FILE",
        "another qlog to plot below the first, for example one from `h3sim run --qlog`",
        needs="--plot",
        read=lambda name, _: parse_qlog(name),
    ),
    common.NO_TRUNCATE,
)
def _run_qlog(options: Options) -> None:
    """Compute from a qlog the same metrics as for a simulated load.

    Examples:
      h3sim qlog client.qlog
      h3sim qlog client.sqlog.gz --json > load.json
      h3sim qlog two-connections.qlog --trace 2
      h3sim run davies-meenan --scheme fifo --qlog load.qlog && h3sim qlog load.qlog
      h3sim qlog client.qlog --with-log load.qlog --plot both.png

    Metrics are those of one connection, from the client's log, the server's, or (best) both in one
    file. All qlog versions since draft-00 are supported, as JSON or as a JSON text sequence.
    """
    log: MeasuredLog = options.file
    if options.plot is not None:
        from h3sim.reporting import LogPlots  # lazy: most logs are not plotted

        logs = [log] if options.with_log is None else [log, options.with_log]
        plots = LogPlots([Measurement(each) for each in logs])
        plots.save(options.plot, **output.figure_style(options))
        output.report_written(options.plot)
    document = measured_to_dict(log)
    if options.json:
        output.print_json(document)
    else:
        _print_metrics(log, document, options.width)
    for what in log.unknown:
        print(f"h3sim qlog: unknown: {what}", file=sys.stderr)


@command(
    "identify",
    Argument(
        "FILE",
        "a qlog, a HAR or a network log of Chromium (may be gzipped)",
        read=lambda name, options: identify(name, trace=options.trace),
    ),
    Argument("--trace N", "use only trace N of a qlog with several traces", type=int),
    common.PLOT("plot the picks and the contradictions: FILE.png, .svg or .pdf"),
    *common.figure_options(),
    common.JSON("print h3sim-identification/1 instead"),
    common.NO_TRUNCATE,
)
def _run_identify(options: Options) -> None:
    """Find the scheduler whose picks explain the order of bytes in a log.

    Examples:
      h3sim identify server.qlog
      h3sim identify client.sqlog.gz --plot picks.png
      h3sim identify shop.har --json
      h3sim workload test && h3sim run test/page.json --scheme recorded --qlog load.qlog

    Reads a qlog (the server's side before the client's), a HAR with the times of chunks, or a
    network log (chrome --log-net-log=FILE).
    """
    found = options.file
    output.save_plot(found, options)
    if options.json:
        output.print_json(found.to_dict())
    else:
        _print_identification(found, options.width)
    for what in found.unknown:
        print(f"h3sim identify: unknown: {what}", file=sys.stderr)


@command(
    "workload",
    Argument("FOLDER", "where to write; made if it is missing"),
    Argument(
        "--signals TYPE",
        "priorities: RFC 9218, or a dependency tree",
        default="eps",
        choices=tuple(WORKLOADS),
    ),
    Argument(
        "--base-url URL",
        "server",
        default=BASE_URL,
        read=lambda url, _: check_base_url(url, key="--base-url"),
    ),
)
def _run_workload(options: Options) -> None:
    """Write a page, URLs and files on which the mechanisms of servers differ.

    Examples:
      h3sim workload test
      h3sim workload test --signals h2 --base-url https://localhost:8443/

    Serve the folder www of it, request the URLs of urls.txt at their times with their priorities
    over one connection, and run `h3sim identify` on the qlog. page.json is the same as a page of
    h3sim.
    """
    files = write_workload(options.folder, signals=options.signals, base_url=options.base_url)
    for path in files:
        print(path)
