"""`h3sim check-rules`: do a scheme's rules say what the browser said when pages were recorded?"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from h3sim.cli.parsing import Mistakes, Parser, RawHelp
from h3sim.cli.subjects import add_pages, read_pages
from h3sim.cli.tables import add_wide, fitted, plural, table, terminal_width
from h3sim.study import resolve_scheme
from h3sim.study.rule_check import check_rules

if TYPE_CHECKING:
    import argparse

    from h3sim.study.rule_check import RuleCheck, RuleRow

__all__ = ["add_command"]

_EPILOG = """\
examples:
  h3sim check-rules shop.json
  h3sim check-rules corpus --scheme chrome-h2 --no-truncate

`h3sim import shop.har -o shop.json` makes such a page.
"""
_MOST_SHOWN = 20
_HOW_TO = (
    "No page has recorded priorities. `h3sim import` keeps those of a HAR or a DevTools log,"
    " `h3sim record` those of an installed Chromium; the recorded pages of the corpus have them."
)


def add_command(commands: argparse._SubParsersAction[Parser], summary: str) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "check-rules",
        help=summary,
        description="Hold a scheme's rules against what browsers said.",
        epilog=_EPILOG,
        formatter_class=RawHelp,
    )
    add_pages(parser)
    parser.add_argument(
        "--scheme",
        metavar="NAME",
        default="chrome-eps",
        help="whose rules: a shipped scheme or a file.toml (default: %(default)s)",
    )
    parser.add_argument("--json", action="store_true", help="print h3sim-rule-check/1 instead")
    add_wide(parser)
    parser.set_defaults(command=_check)


def _check(options: argparse.Namespace) -> int:
    mistakes = Mistakes()
    pages = read_pages(options, mistakes)
    scheme = mistakes.collect(lambda: resolve_scheme(options.scheme))
    found = None
    if scheme is not None and not mistakes.lines:
        found = mistakes.collect(lambda: check_rules(pages, scheme=scheme))
    if found is None or mistakes.lines:
        return mistakes.tell("check-rules")
    if options.json:
        print(json.dumps(found.to_dict(), allow_nan=False))
    else:
        _show(found, terminal_width(options))
    return 0


def _show(found: RuleCheck, width: int | None) -> None:
    of = f"{found.n_recorded_pages} of {plural(found.n_pages, 'page')}"
    print(fitted(f"rules of {found.scheme}, {of} with recorded priorities", width))
    if not found.rows:
        print(f"\n{fitted(_HOW_TO, width)}")
        return
    rows = [*map(_cells, found.rows), _cells(found.total)]
    print(f"\n{table(('kind', 'recorded', 'agree', 'per cent'), rows, width=width)}")
    shown = [*found.disagreements] if width is None else [*found.disagreements][:_MOST_SHOWN]
    if shown:
        headers = ("page", "resource", "kind", "recorded", "rules")
        print(f"\n{table(headers, shown, width=width, shorten=True)}")
    if len(shown) < len(found.disagreements):
        print(f"and {len(found.disagreements) - len(shown)} more (--no-truncate shows all)")
    if found.n_changed:
        print(f"\n{plural(found.n_changed, 'resource')} got another priority later.")


def _cells(row: RuleRow) -> tuple[str, ...]:
    return row.kind, f"{row.recorded:,}", f"{row.agree:,}", f"{row.percent:.1f}"
