"""`h3sim identify` and `h3sim workload`: find the scheduler behind a log."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

from h3sim.cli.parsing import ErrorList, Parser, RawHelp, check_plot_path
from h3sim.cli.tables import add_wide, figures, fitted, plural, table, terminal_width
from h3sim.study.identification import identify
from h3sim.study.workload import BASE_URL, WORKLOADS, write_workload
from h3sim.text import escape_control

if TYPE_CHECKING:
    import argparse

    from h3sim.study.identification import Explanation, Identification


_EPILOG = """\
examples:
  h3sim identify server.qlog
  h3sim identify client.sqlog.gz --plot picks.png
  h3sim identify shop.har --json
  h3sim workload test && h3sim run test/page.json --scheme recorded --qlog load.qlog

Reads a qlog (the server's side before the client's), or a HAR with the times of chunks.
"""
_WORKLOAD_EPILOG = """\
examples:
  h3sim workload test
  h3sim workload test --signals h2 --base-url https://localhost:8443/

Serve the folder www of it, request the URLs of urls.txt at their times with their priorities over
one connection, and run `h3sim identify` on the qlog. page.json is the same as a page of h3sim.
"""
_HEADERS = ("mechanism", "quantum", "explains", "%", "contradicted by", "")
_RETRANSMISSIONS = {
    "first": "before anything new",
    "priority": "before anything new, by priority",
    "turn": "at their stream's turn",
}


def add_identify(commands: argparse._SubParsersAction[Parser], summary: str) -> None:
    """Add `h3sim identify` to the parser."""
    parser = commands.add_parser(
        "identify",
        help=summary,
        description="Find the scheduler whose picks explain the order of bytes in a log.",
        epilog=_EPILOG,
        formatter_class=RawHelp,
    )
    parser.add_argument("file", metavar="FILE", help="a qlog or a HAR (may be gzipped)")
    parser.add_argument(
        "--trace", type=int, metavar="N", help="use only trace N of a qlog with several traces"
    )
    parser.add_argument(
        "--plot", metavar="FILE", help="plot the picks and the contradictions: .png, .svg or .pdf"
    )
    parser.add_argument("--json", action="store_true", help="print h3sim-identification/1 instead")
    add_wide(parser)
    parser.set_defaults(command=_identify)


def add_workload(commands: argparse._SubParsersAction[Parser], summary: str) -> None:
    """Add `h3sim workload` to the parser."""
    parser = commands.add_parser(
        "workload",
        help=summary,
        description="Write a page, URLs and files on which the mechanisms of servers differ.",
        epilog=_WORKLOAD_EPILOG,
        formatter_class=RawHelp,
    )
    parser.add_argument("folder", metavar="FOLDER", help="where to write; made if it is missing")
    parser.add_argument(
        "--signals",
        choices=tuple(WORKLOADS),
        default="eps",
        help="priorities: RFC 9218, or a dependency tree (default: %(default)s)",
    )
    parser.add_argument(
        "--base-url", metavar="URL", default=BASE_URL, help="server (default: %(default)s)"
    )
    parser.set_defaults(command=_write)


def _identify(options: argparse.Namespace) -> int:
    errors = ErrorList()
    found = errors.collect(lambda: identify(options.file, trace=options.trace))
    errors.collect(lambda: check_plot_path(options.plot))
    if found is None or errors.lines:
        return errors.tell("identify")
    if options.plot is not None:
        found.plot.save(options.plot)
    if options.json:
        print(json.dumps(found.to_dict(), allow_nan=False))
    else:
        _show(found, terminal_width(options))
    for what in found.unknown:
        print(f"h3sim identify: unknown: {what}", file=sys.stderr)
    return 0


def _write(options: argparse.Namespace) -> int:
    errors = ErrorList()
    files = errors.collect(
        lambda: write_workload(options.folder, signals=options.signals, base_url=options.base_url)
    )
    if files is None:
        return errors.tell("workload")
    for path in files:
        print(path)
    return 0


def _show(found: Identification, width: int | None) -> None:
    print(fitted(f"{escape_control(found.title)}: {found.source} log\n", width))
    print(figures(_figures(found), width=width))
    if found.n_choices:
        print(f"\n{table(_HEADERS, map(_cells, found.rows), width=width, shorten=True)}")
    for row in found.differences:
        print(f"\n{fitted(f'To tell {row.mechanism} from {row.other}: {row.needs}.', width)}")
    if found.differences:
        print(fitted("`h3sim workload` writes such responses for a test server.", width))


def _figures(found: Identification) -> list[tuple[str, str]]:
    rows = [("mechanism", _verdict(found))]
    if not found.candidates:
        return rows
    if found.quantum:
        rows.append(("quantum", found.quantum))
    rows += [
        ("signals", _heeded(found.heeds_signals)),
        ("changed signals", _heeded(found.heeds_updates)),
    ]
    orders = " or ".join(_RETRANSMISSIONS[name] for name in found.retransmissions)
    rows.append(("retransmissions", orders or "not shown by this log"))
    if found.requeues:
        rows.append(("requeuing", "streams go behind others when their bytes are acknowledged"))
    if found.runner_up is not None:
        rows.append(("runner-up", _explained(found.runner_up, found.n_choices)))
    return rows


def _verdict(found: Identification) -> str:
    if not found.n_choices:
        return "cannot tell: at no time were two responses ready"
    best = _explained(found.rows[0], found.n_choices)
    match found.candidates:
        case ():
            return f"none that h3sim ships; the nearest is {best}"
        case (_,):
            return best
    return f"cannot tell {', '.join(found.candidates[:-1])} and {found.candidates[-1]} apart"


def _explained(row: Explanation, n_choices: int) -> str:
    text = f"{row.mechanism}: explains {row.explained:,} of {n_choices:,} picks"
    return f"{text} ({row.percent:.1f} %)"


def _heeded(value: bool | None) -> str:
    return {True: "heeded", False: "ignored", None: "not shown by this log"}[value]


def _cells(row: Explanation) -> tuple[str, ...]:
    return (
        row.mechanism,
        row.quantum,
        f"{row.explained:,}",
        f"{row.percent:.1f}",
        plural(row.refuting, "pick"),
        "refuted" if row.is_refuted else "possible",
    )
