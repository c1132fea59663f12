"""`h3sim validate-scheme` and `h3sim prioritization-test`: checks against real behaviour."""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING

from h3sim.cli.options import (
    add_buffer_option,
    add_load_options,
    add_pages,
    read_config,
    read_pages,
)
from h3sim.cli.parsing import ErrorList, Parser, RawHelp
from h3sim.cli.tables import add_wide, fitted, in_ms, terminal_width
from h3sim.study import resolve_scheme, resolve_schemes
from h3sim.study.validation import (
    LATE_KINDS,
    SURVEYED,
    SURVEYED_GOOD,
    prioritization_test,
    validate_scheme,
)
from h3sim.table import Table
from h3sim.text import plural

if TYPE_CHECKING:
    import argparse

    from h3sim.study.validation import (
        PrioritizationTest,
        PrioritizationTestRow,
        SchemeValidation,
        SchemeValidationRow,
    )


_EPILOG = """\
examples:
  h3sim validate-scheme shop.json
  h3sim validate-scheme corpus --scheme chrome-h2 --no-truncate

`h3sim import shop.har -o shop.json` creates such a page.
"""
_MOST_SHOWN = 20
_HOW_TO = (
    "No page has recorded priorities. `h3sim import` keeps those of a HAR or a DevTools log,"
    " `h3sim record` those of an installed Chromium; the recorded pages of the corpus have them."
)


def add_validate_scheme(commands: argparse._SubParsersAction[Parser], summary: str) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "validate-scheme",
        help=summary,
        description="Compare a scheme's rules with recorded browser priorities.",
        epilog=_EPILOG,
        formatter_class=RawHelp,
    )
    add_pages(parser)
    parser.add_argument(
        "--scheme",
        metavar="NAME",
        default="chrome-eps",
        help="a shipped scheme or a scheme file (.toml) (default: %(default)s)",
    )
    parser.add_argument("--json", action="store_true", help="print h3sim-rule-check/1 instead")
    add_wide(parser)
    parser.set_defaults(command=_check)


def _check(options: argparse.Namespace) -> int:
    mistakes = ErrorList()
    pages = read_pages(options, mistakes)
    scheme = mistakes.collect(lambda: resolve_scheme(options.scheme))
    found = None
    if scheme is not None and not mistakes.lines:
        found = mistakes.collect(lambda: validate_scheme(pages, scheme=scheme))
    if found is None or mistakes.lines:
        return mistakes.tell("validate-scheme")
    if options.json:
        print(json.dumps(found.to_dict(), allow_nan=False))
    else:
        _show(found, terminal_width(options))
    return 0


def _show(found: SchemeValidation, width: int | None) -> None:
    of = f"{found.n_recorded_pages} of {plural(found.n_pages, 'page')}"
    print(fitted(f"rules of {found.scheme}; {of} with recorded priorities", width))
    if not found.rows:
        print(f"\n{fitted(_HOW_TO, width)}")
        return
    rows = [*map(_cells, found.rows), _cells(found.total)]
    print(f"\n{Table(('kind', 'recorded', 'agree', 'agree %'), rows).to_text(width)}")
    shown = [*found.disagreements] if width is None else [*found.disagreements][:_MOST_SHOWN]
    if shown:
        headers = ("page", "resource", "kind", "recorded", "rules")
        print(f"\n{Table(headers, shown).to_text(width, shorten=True)}")
    if len(shown) < len(found.disagreements):
        print(f"and {len(found.disagreements) - len(shown)} more (--no-truncate shows all)")
    if found.n_changed:
        print(f"\n{plural(found.n_changed, 'resource')} changed priority later.")


def _cells(row: SchemeValidationRow) -> tuple[str, ...]:
    return row.kind, f"{row.recorded:,}", f"{row.agree:,}", f"{row.percent:.1f}"


_SERVER_EPILOG = """\
examples:
  h3sim prioritization-test
  h3sim prioritization-test h2o quic-go --send-buffer-kb 280
  h3sim prioritization-test my-server.toml --late-kind image --network cable

30 images are requested, then one second later two urgent resources. A server passes if at most a
tenth of the images' remaining bytes arrives before these are complete.
"""
_HEADERS = (
    *("scheme", "", "first byte ms", "complete ms", "alone ms"),
    *("images meanwhile kB", "remaining kB"),
)


def add_prioritization_test(commands: argparse._SubParsersAction[Parser], summary: str) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "prioritization-test",
        help=summary,
        description="Run the prioritization test of Davies and Meenan (2018).",
        epilog=_SERVER_EPILOG,
        formatter_class=RawHelp,
    )
    parser.add_argument(
        "schemes",
        metavar="SCHEME",
        nargs="*",
        help="schemes, scheme sets or scheme files (.toml) (default: servers)",
    )
    parser.add_argument(
        "--late-kind",
        choices=LATE_KINDS,
        default="stylesheet",
        help="kind of the late resources; images count as visible (default: %(default)s)",
    )
    add_load_options(parser)
    add_buffer_option(parser)
    parser.add_argument("--json", action="store_true", help="print h3sim-server-check/1 instead")
    add_wide(parser)
    parser.set_defaults(command=_check_server)


def _check_server(options: argparse.Namespace) -> int:
    mistakes = ErrorList()
    names = options.schemes or ["servers"]
    groups = [mistakes.collect(partial(resolve_schemes, name)) for name in names]
    config = read_config(options, mistakes, send_buffer_kb=options.send_buffer_kb)
    if mistakes.lines or config is None:
        return mistakes.tell("prioritization-test")
    schemes = [scheme for group in groups for scheme in group or ()]
    found = mistakes.collect(
        partial(prioritization_test, schemes, late=options.late_kind, config=config)
    )
    if found is None:
        return mistakes.tell("prioritization-test")
    if options.json:
        print(json.dumps(found.to_dict(), allow_nan=False))
    else:
        _show_server(found, terminal_width(options))
    return 0


def _show_server(found: PrioritizationTest, width: int | None) -> None:
    print(fitted(f"{', '.join(found.words.values())}; late: two of kind {found.late}", width))
    print(f"\n{Table(_HEADERS, map(_cells_server, found.rows)).to_text(width, shorten=True)}")
    note = (
        f"{found.n_passed} of {len(found.rows)} pass. Of the {SURVEYED} servers and CDNs that"
        f" Davies and Meenan tested in 2018, {SURVEYED_GOOD} passed (Marx 2019, § 2.2)."
    )
    print(f"\n{fitted(note, width)}")


def _cells_server(row: PrioritizationTestRow) -> tuple[str, ...]:
    return (
        row.scheme,
        "passes" if row.passes else "fails",
        in_ms(row.first_byte_ms),
        in_ms(row.complete_ms),
        in_ms(row.alone_ms),
        f"{row.meanwhile_bytes / 1000:,.1f}",
        f"{row.waiting_bytes / 1000:,.1f}",
    )
