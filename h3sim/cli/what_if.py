"""`h3sim what-if`: what load events wait for, and what they would be without."""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING

from h3sim.cli.options import add_buffer_option, add_load_options, read_config
from h3sim.cli.parsing import Mistakes, Parser, RawHelp, progress_bar
from h3sim.cli.subjects import add_pages, read_pages
from h3sim.cli.tables import add_wide, fitted, in_ms, plural, ratio, table, terminal_width
from h3sim.printable import printable
from h3sim.study.run import resolve_scheme
from h3sim.study.what_if import WHAT_IFS, what_if

if TYPE_CHECKING:
    import argparse

    from h3sim.study.what_if import WhatIf, WhatIfRow

__all__ = ["add_command"]

_EPILOG = """\
examples:
  h3sim what-if davies-meenan --network cable
  h3sim what-if corpus:small --network cable --cpu-slowdown 4
  h3sim what-if my-page.json --scheme chrome-eps --network 4g --json

What led to the load event is told by the policies of WProf: F, one needs what the other brings; O,
they must come in that order (a script stops the parser, a stylesheet the paint); B, it could be
asked for earlier or later; R, it waits for the main thread.
"""
_POLICIES = {"F": "flow", "O": "output", "B": "binding", "R": "resource", "start": "start"}


def add_command(commands: argparse._SubParsersAction[Parser], summary: str) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "what-if",
        help=summary,
        description="Ask of pages what their load event waits for, as WProf did.",
        epilog=_EPILOG,
        formatter_class=RawHelp,
    )
    add_pages(parser)
    parser.add_argument(
        "--scheme", metavar="NAME", default="rr", help="a scheme or a file.toml (default: rr)"
    )
    add_load_options(parser)
    add_buffer_option(parser)
    parser.add_argument("--json", action="store_true", help="print h3sim-what-if/1 instead")
    add_wide(parser)
    parser.set_defaults(command=_what_if, browser="parse")


def _what_if(options: argparse.Namespace) -> int:
    mistakes = Mistakes()
    pages = read_pages(options, mistakes)
    scheme = mistakes.collect(partial(resolve_scheme, options.scheme))
    config = read_config(options, mistakes, send_buffer_kb=options.send_buffer_kb)
    if mistakes.lines or config is None or scheme is None:
        return mistakes.tell("what-if")
    with progress_bar("load") as progress:
        found = what_if(pages, scheme=scheme, config=config, progress=progress)
    if options.json:
        print(json.dumps(found.to_dict(), allow_nan=False))
    else:
        _show(found, terminal_width(options))
    return 0


def _show(found: WhatIf, width: int | None) -> None:
    print(f"{fitted(printable(found.told()), width)}\n")
    cells = {(row.page, row.what): row for row in found.rows}
    body = [[page, *(_cell(cells[page, what]) for what in WHAT_IFS)] for page in found.page_digests]
    if len(body) > 1:
        means = (ratio(found.mean_part(what)) for what in WHAT_IFS)
        body.append([f"mean of {plural(len(body), 'page')}", *means])
    headers = ("load event, ms", *WHAT_IFS)
    print(table(headers, body, width=width, shorten=True))
    for by, said in (("policy", "policy"), ("kind", "kind of resource"), ("part", "what it was")):
        rows = [row for row in found.contributions if row.by == by]
        parts = (f"{_POLICIES.get(row.name, row.name)} {100 * row.mean_part:.0f} %" for row in rows)
        said_of = f"of the way there, by {said}: {', '.join(parts)}"
        print(f"\n{fitted(said_of, width)}")


def _cell(row: WhatIfRow) -> str:
    return f"{in_ms(row.load_event_ms)} ({ratio(row.part)})"
