"""Checks: `h3sim validate-scheme`, `h3sim prioritization-test` and `h3sim conform`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from h3sim.advice.validation import (
    LATE_KINDS,
    SURVEYED,
    SURVEYED_GOOD,
    prioritization_test,
    validate_scheme,
)
from h3sim.cli import common, output, shared
from h3sim.cli.command import FAILED, Argument, Options, command
from h3sim.schedulers.driver import SIGNAL_TYPES, DriverScheduler
from h3sim.schema.values import Number
from h3sim.values.errors import InputError, needing_extra
from h3sim.values.table import Table
from h3sim.values.text import plural

if TYPE_CHECKING:
    from h3sim.advice.validation import PrioritizationTest, SchemeValidation


_MAX_SHOWN_DISAGREEMENTS = 20
_NOTHING_RECORDED_NOTE = (
    "No page has recorded priorities. `h3sim import` keeps those of a HAR or a DevTools log,"
    " `h3sim record` those of an installed Chromium; the recorded pages of the corpus have them."
)


def _read_claim(name: str, options: Options) -> Any:
    return _conformance().claim_named(name, signals=options.signals)


def _read_driver(words: list[str], options: Options) -> DriverScheduler:
    return DriverScheduler(words, timeout_s=options.timeout)


def _conformance() -> Any:
    """Return the package `h3sim.conformance`, or ask for the library that it needs."""
    with needing_extra("hypothesis", "testing"):
        from h3sim import conformance
    return conformance


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


@command(
    "conform",
    Argument(
        "--signals TYPE",
        "type of the signals that it gets",
        default="eps",
        choices=tuple(SIGNAL_TYPES),
    ),
    Argument(
        "--claim NAME",
        "a ready claim to check; may be repeated (docs/testing-schedulers.md lists them)",
        action="append",
        many="words",
        read=_read_claim,
    ),
    Argument("--suggest", "try every ready claim, and list those that hold"),
    Argument(
        "--profile NAME",
        "15, 30 or 1,000 histories per law",
        default="default",
        choices=("quick", "default", "thorough"),
    ),
    Argument("--seed N", "random seed of the histories (default: fixed)", type=int),
    Argument(
        "--timeout S",
        "seconds until a driver that does not answer counts as hung",
        Number(low=0, is_above=True),
        default=5.0,
    ),
    Argument(
        "COMMAND",
        "the driver and its arguments, after --",
        dest="driver",
        nargs="+",
        read=_read_driver,
    ),
)
def _run_conformance(options: Options) -> int:
    """Check a scheduler that runs in another process, in any language.

    Examples:
      h3sim conform -- ./driver
      h3sim conform --claim urgency-order --claim one-by-one-in-urgency -- ./driver --verbose
      h3sim conform --suggest -- node driver.js

    The driver reads requests from its standard input, one JSON object per line, and answers two of
    them (docs/conformance-protocol.md). exit codes: 0 all laws are kept, 1 a law is broken or the
    driver fails, 2 bad usage or bad input
    """
    conformance = _conformance()
    from h3sim.conformance.runner import use_profile

    if options.suggest and options.claim:
        raise InputError.at("--suggest", "tries every claim; leave out --claim")
    driver = options.driver
    name = driver.start().get("name")
    candidate = conformance.Candidate(
        factory=driver,
        claims=tuple(options.claim or ()),
        signals=conformance.signals(SIGNAL_TYPES[options.signals]),
        name=name if isinstance(name, str) else Path(driver.command[0]).name,
    )
    with use_profile(options.profile, seed=options.seed):
        try:
            if options.suggest:
                # A driver that fails keeps no claim.
                conformance.check_law(candidate, conformance.Law.NEVER_RAISES)
                print(conformance.suggest_claims(candidate, signals=options.signals))
            else:
                print(conformance.check_scheduler(candidate))
        except conformance.BrokenLawError as broken:
            print(f"{candidate.label}\n  broken   {broken}")
            return FAILED
    return 0
