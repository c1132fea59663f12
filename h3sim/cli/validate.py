"""Checks: `h3sim validate-scheme` and `h3sim prioritization-test`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from h3sim.advice.validation import (
    LATE_KINDS,
    SURVEYED,
    SURVEYED_GOOD,
    prioritization_test,
    validate_scheme,
)
from h3sim.cli import common, output, shared
from h3sim.cli.command import Argument, Options, command
from h3sim.values.table import Table
from h3sim.values.text import plural

if TYPE_CHECKING:
    from h3sim.advice.validation import PrioritizationTest, SchemeValidation


_MAX_SHOWN_DISAGREEMENTS = 20
_NOTHING_RECORDED_NOTE = (
    "No page has recorded priorities. `h3sim import` keeps those of a HAR or a DevTools log,"
    " `h3sim record` those of an installed Chromium; the recorded pages of the corpus have them."
)


@command(
    "validate-scheme",
    shared.PAGES,
    shared.marks(),
    shared.scheme("chrome-eps"),
    shared.Halves(is_single=True),
    common.JSON("print h3sim-rule-check/1 instead"),
    common.NO_TRUNCATE,
    of=validate_scheme,
)
def _print_validation(found: SchemeValidation, options: Options) -> None:
    """Compare a scheme's rules with recorded browser priorities.

    Examples:
      h3sim validate-scheme shop.json
      h3sim validate-scheme corpus --scheme chrome-h2 --no-truncate

    `h3sim import shop.har -o shop.json` creates such a page.
    """
    width = options.width
    pages = f"{found.n_recorded_pages} of {plural(found.n_pages, 'page')}"
    heading = f"rules of {found.scheme}; {pages} with recorded priorities"
    if not found.rows:
        output.show(width, heading, _NOTHING_RECORDED_NOTE)
        return
    counts = output.of(
        [*found.rows, found.total],
        "kind",
        "recorded",
        "agree",
        ("agree %", lambda row: f"{row.percent:.1f}"),
    )
    output.show(width, heading, counts, shorten=False)
    shown = (
        [*found.disagreements]
        if width is None
        else [*found.disagreements][:_MAX_SHOWN_DISAGREEMENTS]
    )
    if shown:
        print()
        output.show(width, Table(("page", "resource", "kind", "recorded", "rules"), shown))
    if len(shown) < len(found.disagreements):
        print(f"and {len(found.disagreements) - len(shown)} more (--no-truncate shows all)")
    if found.n_changed:
        print(f"\n{plural(found.n_changed, 'resource')} changed priority later.")


@command(
    "prioritization-test",
    Argument(
        "SCHEME",
        "schemes, scheme sets or scheme files (.toml) (default: servers)",
        default="servers",
        dest="schemes",
        nargs="*",
        many="words",
        read=shared.read_schemes,
    ),
    shared.Halves(),
    Argument(
        "--late-kind KIND",
        "kind of the late resources; images count as visible",
        choices=LATE_KINDS,
        default="stylesheet",
    ),
    shared.LoadOptions(),
    common.JSON("print h3sim-server-check/1 instead"),
    common.NO_TRUNCATE,
    of=prioritization_test,
)
def _print_server_test(found: PrioritizationTest, options: Options) -> None:
    """Run the prioritization test of Davies and Meenan (2018).

    Examples:
      h3sim prioritization-test
      h3sim prioritization-test h2o quic-go --send-buffer-kb 280
      h3sim prioritization-test my-server.toml --late-kind image --network cable

    30 images are requested, then one second later two urgent resources. A server passes if at most
    a tenth of the images' remaining bytes arrives before these are complete.
    """
    width = options.width
    shown = output.of(
        found.rows,
        "scheme",
        ("", lambda row: "passes" if row.passes else "fails"),
        "first_byte_ms",
        "complete_ms",
        "alone_ms",
        ("images meanwhile kB", lambda row: f"{row.meanwhile_bytes / 1000:,.1f}"),
        ("remaining kB", lambda row: f"{row.waiting_bytes / 1000:,.1f}"),
    )
    output.show(
        width,
        f"{', '.join(found.words.values())}; late: two of kind {found.late}",
        shown,
        f"{found.n_passed} of {len(found.rows)} pass. Of the {SURVEYED} servers and CDNs that"
        f" Davies and Meenan tested in 2018, {SURVEYED_GOOD} passed (Marx 2019, § 2.2).",
    )
