"""`h3sim identify` and `h3sim workload`: find the scheduler behind a log."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

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
from h3sim.study.identification import identify
from h3sim.study.workload import BASE_URL, WORKLOADS, write_workload
from h3sim.table import Table, format_pairs
from h3sim.text import plural

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


def _identify(options: argparse.Namespace) -> None:
    found = options.file
    if options.plot is not None:
        found.plot.save(options.plot, **options.figure_style)
    if options.json:
        print_json(found.to_dict())
    else:
        _show(found, options.width)
    for what in found.unknown:
        print(f"h3sim identify: unknown: {what}", file=sys.stderr)


def _write(options: argparse.Namespace) -> None:
    files = write_workload(options.folder, signals=options.signals, base_url=options.base_url)
    for path in files:
        print(path)


def _show(found: Identification, width: int | None) -> None:
    tables.print_text(f"{found.title}: {found.source} log", width)
    print(f"\n{format_pairs(_figures(found), width=width)}")
    if found.n_choices:
        print(f"\n{Table(_HEADERS, map(_cells, found.rows)).to_text(width, shorten=True)}")
    for row in found.differences:
        print()
        tables.print_text(f"To tell {row.mechanism} from {row.other}: {row.needs}.", width)
    if found.differences:
        tables.print_text("`h3sim workload` writes such responses for a test server.", width)


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


COMMANDS = {
    "identify": Command(
        "Find the scheduler whose picks explain the order of bytes in a log.",
        _identify,
        (
            Argument(
                "FILE",
                "a qlog or a HAR (may be gzipped)",
                read=lambda name, options: identify(name, trace=options.trace),
            ),
            Argument("--trace N", "use only trace N of a qlog with several traces", type=int),
            Argument(
                "--plot FILE",
                "plot the picks and the contradictions: FILE.png, .svg or .pdf",
                output=PLOT,
            ),
            FigureOptions(),
            JSON("print h3sim-identification/1 instead"),
            NO_TRUNCATE,
        ),
        _EPILOG,
    ),
    "workload": Command(
        "Write a page, URLs and files on which the mechanisms of servers differ.",
        _write,
        (
            Argument("FOLDER", "where to write; made if it is missing"),
            Argument(
                "--signals TYPE",
                "priorities: RFC 9218, or a dependency tree",
                default="eps",
                choices=tuple(WORKLOADS),
            ),
            Argument("--base-url URL", "server", default=BASE_URL),
        ),
        _WORKLOAD_EPILOG,
    ),
}
