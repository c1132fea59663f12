"""`h3sim check-server`: do responses that matter overtake what was asked for before?"""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING

from h3sim.cli.options import add_buffer_option, add_load_options, read_config
from h3sim.cli.parsing import Mistakes, Parser, RawHelp
from h3sim.cli.tables import add_wide, fitted, in_ms, table, terminal_width
from h3sim.study import resolve_schemes
from h3sim.study.server_check import LATE_KINDS, SURVEYED, SURVEYED_GOOD, check_server

if TYPE_CHECKING:
    import argparse

    from h3sim.study.server_check import ServerCheck, ServerCheckRow

__all__ = ["add_command"]

_EPILOG = """\
examples:
  h3sim check-server
  h3sim check-server h2o quic-go --send-buffer-kb 280
  h3sim check-server my-server.toml --late-kind image --network cable

30 images are asked for, and two resources that matter a second later. A server passes if at most a
tenth of the images' missing bytes comes before these are complete.
"""
_HEADERS = (
    *("scheme", "", "first byte ms", "complete ms", "alone ms"),
    *("images meanwhile kB", "of kB"),
)


def add_command(commands: argparse._SubParsersAction[Parser], summary: str) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "check-server",
        help=summary,
        description="Put servers to the test of Davies and Meenan (2018).",
        epilog=_EPILOG,
        formatter_class=RawHelp,
    )
    parser.add_argument(
        "schemes",
        metavar="SCHEME",
        nargs="*",
        help="schemes, sets of them, or files.toml (default: servers)",
    )
    parser.add_argument(
        "--late-kind",
        choices=LATE_KINDS,
        default="stylesheet",
        help="what comes late; an image is known to be seen (default: %(default)s)",
    )
    add_load_options(parser)
    add_buffer_option(parser)
    parser.add_argument("--json", action="store_true", help="print h3sim-server-check/1 instead")
    add_wide(parser)
    parser.set_defaults(command=_check)


def _check(options: argparse.Namespace) -> int:
    mistakes = Mistakes()
    names = options.schemes or ["servers"]
    groups = [mistakes.collect(partial(resolve_schemes, name)) for name in names]
    config = read_config(options, mistakes, send_buffer_kb=options.send_buffer_kb)
    if mistakes.lines or config is None:
        return mistakes.tell("check-server")
    schemes = [scheme for group in groups for scheme in group or ()]
    found = mistakes.collect(partial(check_server, schemes, late=options.late_kind, config=config))
    if found is None:
        return mistakes.tell("check-server")
    if options.json:
        print(json.dumps(found.to_dict(), allow_nan=False))
    else:
        _show(found, terminal_width(options))
    return 0


def _show(found: ServerCheck, width: int | None) -> None:
    print(fitted(f"{', '.join(found.words.values())}; late: two of kind {found.late}", width))
    print(f"\n{table(_HEADERS, map(_cells, found.rows), width=width, shorten=True)}")
    note = (
        f"{found.n_passed} of {len(found.rows)} pass. Of {SURVEYED} servers and CDNs that Davies"
        f" and Meenan tested in 2018, {SURVEYED_GOOD} did (Marx 2019, § 2.2)."
    )
    print(f"\n{fitted(note, width)}")


def _cells(row: ServerCheckRow) -> tuple[str, ...]:
    return (
        row.scheme,
        "passes" if row.passes else "fails",
        in_ms(row.first_byte_ms),
        in_ms(row.complete_ms),
        in_ms(row.alone_ms),
        f"{row.meanwhile_bytes / 1000:,.1f}",
        f"{row.waiting_bytes / 1000:,.1f}",
    )
