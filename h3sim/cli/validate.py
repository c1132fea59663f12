"""`h3sim validate-scheme` and `h3sim prioritization-test`: checks against real behaviour."""

from __future__ import annotations

from typing import TYPE_CHECKING

from h3sim.cli import shared, tables
from h3sim.cli.command import JSON, NO_TRUNCATE, Argument, Command
from h3sim.study.prioritization_test import LATE_KINDS, SURVEYED, SURVEYED_GOOD, prioritization_test
from h3sim.study.scheme_validation import validate_scheme

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable

    from h3sim.study.prioritization_test import PrioritizationTest
    from h3sim.study.scheme_validation import SchemeValidation


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
    pages = f"{found.n_recorded_pages} of {tables.plural(found.n_pages, 'page')}"
    tables.print_text(f"rules of {found.scheme}; {pages} with recorded priorities", width)
    print()
    if not found.rows:
        tables.print_text(_HOW_TO, width)
        return
    tables.print_table(
        [*found.rows, found.total],
        ("kind", "kind"),
        ("recorded", "recorded", tables.counts),
        ("agree", "agree", tables.counts),
        ("agree %", lambda row: f"{row.percent:.1f}"),
        width=width,
        shorten=False,
    )
    shown = [*found.disagreements] if width is None else [*found.disagreements][:_MOST_SHOWN]
    if shown:
        headers = ("page", "resource", "kind", "recorded", "rules")
        print(f"\n{tables.table(headers, shown, width=width, shorten=True)}")
    if len(shown) < len(found.disagreements):
        print(f"and {len(found.disagreements) - len(shown)} more (--no-truncate shows all)")
    if found.n_changed:
        print(f"\n{tables.plural(found.n_changed, 'resource')} changed priority later.")


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
        ("first byte ms", "first_byte_ms", tables.each_ms),
        ("complete ms", "complete_ms", tables.each_ms),
        ("alone ms", "alone_ms", tables.each_ms),
        ("images meanwhile kB", "meanwhile_bytes", _kilobytes),
        ("remaining kB", "waiting_bytes", _kilobytes),
        width=width,
    )
    print()
    tables.print_text(
        f"{found.n_passed} of {len(found.rows)} pass. Of the {SURVEYED} servers and CDNs that"
        f" Davies and Meenan tested in 2018, {SURVEYED_GOOD} passed (Marx 2019, § 2.2).",
        width,
    )


def _kilobytes(column: Iterable[int]) -> list[str]:
    return [f"{n_bytes / 1000:,.1f}" for n_bytes in column]


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
