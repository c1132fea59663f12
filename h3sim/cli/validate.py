"""`h3sim validate-scheme` and `h3sim prioritization-test`: checks against real behaviour."""

from __future__ import annotations

from typing import TYPE_CHECKING

from h3sim.cli import shared, tables
from h3sim.cli.command import JSON, NO_TRUNCATE, Argument, Command
from h3sim.study.validation import (
    LATE_KINDS,
    SURVEYED,
    SURVEYED_GOOD,
    prioritization_test,
    validate_scheme,
)
from h3sim.table import Column, Table
from h3sim.text import plural

if TYPE_CHECKING:
    import argparse

    from h3sim.study.validation import PrioritizationTest, SchemeValidation


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


def _show(found: SchemeValidation, options: argparse.Namespace) -> None:
    width = options.width
    pages = f"{found.n_recorded_pages} of {plural(found.n_pages, 'page')}"
    tables.print_text(f"rules of {found.scheme}; {pages} with recorded priorities", width)
    print()
    if not found.rows:
        tables.print_text(_HOW_TO, width)
        return
    tables.print_table(
        [*found.rows, found.total],
        ("kind", "kind"),
        ("recorded", "recorded"),
        ("agree", "agree"),
        ("agree %", lambda row: f"{row.percent:.1f}"),
        width=width,
        shorten=False,
    )
    shown = [*found.disagreements] if width is None else [*found.disagreements][:_MOST_SHOWN]
    if shown:
        headers = ("page", "resource", "kind", "recorded", "rules")
        print(f"\n{Table(headers, shown).to_text(width, shorten=True)}")
    if len(shown) < len(found.disagreements):
        print(f"and {len(found.disagreements) - len(shown)} more (--no-truncate shows all)")
    if found.n_changed:
        print(f"\n{plural(found.n_changed, 'resource')} changed priority later.")


_SERVER_EPILOG = """\
examples:
  h3sim prioritization-test
  h3sim prioritization-test h2o quic-go --send-buffer-kb 280
  h3sim prioritization-test my-server.toml --late-kind image --network cable

30 images are requested, then one second later two urgent resources. A server passes if at most a
tenth of the images' remaining bytes arrives before these are complete.
"""


def _show_server(found: PrioritizationTest, options: argparse.Namespace) -> None:
    width = options.width
    tables.print_text(f"{', '.join(found.words.values())}; late: two of kind {found.late}", width)
    print()
    tables.print_table(
        found.rows,
        ("scheme", "scheme"),
        ("", lambda row: "passes" if row.passes else "fails"),
        (Column.ms("first byte ms"), "first_byte_ms"),
        (Column.ms("complete ms"), "complete_ms"),
        (Column.ms("alone ms"), "alone_ms"),
        ("images meanwhile kB", lambda row: f"{row.meanwhile_bytes / 1000:,.1f}"),
        ("remaining kB", lambda row: f"{row.waiting_bytes / 1000:,.1f}"),
        width=width,
    )
    print()
    tables.print_text(
        f"{found.n_passed} of {len(found.rows)} pass. Of the {SURVEYED} servers and CDNs that"
        f" Davies and Meenan tested in 2018, {SURVEYED_GOOD} passed (Marx 2019, § 2.2).",
        width,
    )


COMMANDS = {
    "validate-scheme": Command(
        "Compare a scheme's rules with recorded browser priorities.",
        validate_scheme,
        (
            shared.PAGES,
            shared.marks(),
            Argument(
                "--scheme NAME",
                "a shipped scheme or a scheme file (.toml)",
                default="chrome-eps",
                read=shared.read_scheme,
            ),
            JSON("print h3sim-rule-check/1 instead"),
            NO_TRUNCATE,
        ),
        _EPILOG,
        show=_show,
    ),
    "prioritization-test": Command(
        "Run the prioritization test of Davies and Meenan (2018).",
        prioritization_test,
        (
            Argument(
                "SCHEME",
                "schemes, scheme sets or scheme files (.toml) (default: servers)",
                default="servers",
                dest="schemes",
                nargs="*",
                many="words",
                read=shared.read_schemes,
            ),
            Argument(
                "--late-kind KIND",
                "kind of the late resources; images count as visible",
                choices=LATE_KINDS,
                default="stylesheet",
            ),
            shared.LoadOptions(),
            JSON("print h3sim-server-check/1 instead"),
            NO_TRUNCATE,
        ),
        _SERVER_EPILOG,
        show=_show_server,
    ),
}
