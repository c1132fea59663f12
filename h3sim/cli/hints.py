"""`h3sim hints`: edits of a page that make it faster, tried one by one and in pairs."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from h3sim.cli import shared, tables
from h3sim.cli.command import (
    JSON,
    NO_TRUNCATE,
    WORKERS,
    Argument,
    command,
    print_first,
    report_written,
)
from h3sim.cli.search import OF_RECORDING, SUBJECT
from h3sim.errors import InputError, ValidationIssue
from h3sim.importers.crux import NetworkShare, read_crux
from h3sim.schema.values import Integer, Number
from h3sim.study import hints
from h3sim.study.fidelity import Grade
from h3sim.study.hints import HARMS, METRICS
from h3sim.study.search import ESTIMATED_WITHIN
from h3sim.table import SURE, Column
from h3sim.text import escape_control

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from h3sim.cli.command import Progress
    from h3sim.study import Hints

_INDENT = "    "


def _networks(names: str, options: argparse.Namespace) -> Sequence[str] | tuple[NetworkShare, ...]:
    """Return the names of networks, of which one may be given twice, or those of a CrUX file."""
    listed = [name.strip() for name in names.split(",")]
    files = [name for name in listed if name.endswith(".json")]
    if files and len(listed) > 1:
        message = f"{files[0]} has all users and their shares: give it alone"
        raise InputError([ValidationIssue(key="--networks", message=message)])
    return read_crux(files[0]) if files else [shared.read_network(each, options) for each in listed]


def _run_hints(options: argparse.Namespace, progress: Progress | None) -> Hints:
    """Return the study of hints that the options describe."""
    found = hints(
        options.page if options.imported is None else options.imported,
        scheme=options.scheme,
        metric=options.metric,
        networks=options.networks or (),
        network_within=options.network_within,
        n_seeds=options.n_seeds,
        confidence=options.confidence,
        keep_loads=options.report is not None,
        first_result=print_first,
        config=options.config,
        executor="auto",
        workers=options.workers,
        progress=progress or False,
    )
    if options.report is not None:
        from h3sim.reporting import report  # on use: matplotlib

        command = f"h3sim {shlex.join(options.arguments)}"
        report(found.loads, title=f"h3sim: {found.verdict}", command=command).save(options.report)
        report_written(options.report)
    return found


@command(
    "hints",
    SUBJECT,
    Argument(
        "--scheme NAME",
        "the server's scheme, with the browser's signals",
        default="chrome-eps",
        read=shared.read_scheme,
    ),
    *OF_RECORDING,
    Argument(
        "--metric NAME", "the metric that ranks the edits", default="lcp", choices=tuple(METRICS)
    ),
    Argument(
        "--networks NAMES",
        "networks of the page's users, comma-separated, instead of --network; one that is"
        " named twice counts twice; or a CrUX file (.json)",
        read=_networks,
    ),
    Argument(
        "--network-uncertainty FACTOR",
        "with each seed, multiply RTT and rate by factors between 1/FACTOR and FACTOR",
        Number(low=1, high=100),
        default=ESTIMATED_WITHIN,
        dest="network_within",
    ),
    Argument("--seeds N", "seeds of each comparison", Integer(low=3), default=8, dest="n_seeds"),
    Argument(
        "--confidence SHARE",
        "joint confidence level of the intervals",
        Number(low=0, high=1, is_above=True, is_below=True),
        default=0.95,
    ),
    WORKERS,
    shared.LoadOptions(browser="parse"),
    Argument(
        "--report FILE",
        "write a report of a load before and after the best edit: FILE.html",
        output=(".html", ".htm"),
    ),
    Argument("--effects", "also print a table of all effects with their intervals"),
    JSON("print h3sim-hints/1 instead"),
    NO_TRUNCATE,
    of=_run_hints,
)
def _print_hints(found: Hints, options: argparse.Namespace) -> None:
    """Find the edits of a page that make it faster, by how much, and those that harm.

    Examples:
      h3sim hints shop.har
      h3sim hints shop.har --networks 4g,4g,cable --metric fcp
      h3sim hints shop.har --networks crux.json
      h3sim hints shop.json --network 4g --scheme rr --transport tcp --report shop.html
      h3sim hints http2rulez --network cable --json

    It loads the page with each edit once, and those that matter again with other seeds, next to the
    page as it is. A network that is named twice counts twice. The metrics are FCP, LCP, SpeedIndex,
    ByteIndex above the fold and the load event.
    """
    width = options.width
    for line in () if found.fidelity is None else found.fidelity.lines():
        tables.print_text(line, width)
    tables.print_text(found.describe(), width)
    groups = {"These help": found.helpful, "These help and harm": found.mixed}
    is_poor = found.fidelity is not None and found.fidelity.grade is Grade.POOR
    where = ", in a load that does not fit the recording" if is_poor else ""
    for heading, rows in (*groups.items(), ("These harm", found.harmful)):
        print(f"\n{heading}{where}:\n" if rows else f"\n{heading}{where}: none")
        for number, row in enumerate(rows, 1):
            tables.print_text(f"{number}. {row.sentence}", width)
            for line in row.markup.splitlines() if row.verdict != HARMS else ():
                print(f"{_INDENT}{escape_control(line)}")
    if options.effects:
        print()
        tables.print_table(
            found.effects,
            ("edit", "edit"),
            ("metric", "metric"),
            (Column.ms("before ms"), "before_ms"),
            (Column.ms("after ms"), "after_ms"),
            (Column.ratio("ratio", apart=SURE), "ratio"),
            (Column.ratio("low", apart=SURE), "low"),
            (Column.ratio("high", apart=SURE), "high"),
            (Column("p (Holm)", 3), "p_holm"),
            width=width,
        )
    print()
    if found.think_times:
        tables.print_text(found.describe_think_times(), width)
        print()
    tables.print_text(f"The model does not know: {'; '.join(found.unknown)}.", width)
