"""Checks: `h3sim validate-scheme` and `h3sim prioritization-test`."""

from __future__ import annotations

import textwrap
from itertools import groupby
from typing import TYPE_CHECKING

from h3sim import catalog
from h3sim.advice.validation import (
    LATE_KINDS,
    SURVEYED,
    SURVEYED_GOOD,
    PrioritizationTest,
    prioritization_test,
    validate_scheme,
)
from h3sim.cli import common, output, shared
from h3sim.cli.command import Argument, Options, call_with, command
from h3sim.schemes.halves import Over
from h3sim.values.errors import InputError
from h3sim.values.table import Table
from h3sim.values.text import plural

if TYPE_CHECKING:
    from collections.abc import Sequence

    from h3sim.advice.live_server import LiveTest
    from h3sim.advice.validation import SchemeValidation
    from h3sim.schemes import Scheme


_MAX_SHOWN_DISAGREEMENTS = 20
_UPDATES = {
    "followed": "It follows PRIORITY_UPDATE frames.",
    "ignored": "It ignores PRIORITY_UPDATE frames that come before it may send.",
    "neither": "What it does with PRIORITY_UPDATE frames is not clear.",
}
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


def _read_servers(word: str, options: Options) -> list[Scheme | str]:
    """Return the schemes of that name, set or file, or the URL of a live server."""
    return [word] if "://" in word else [*shared.read_schemes(word, options)]


def _check_url(options: Options) -> None:
    """Refuse more than one URL, and options of simulated loads beside one."""
    urls = [each for each in options.schemes or () if isinstance(each, str) and "://" in each]
    live = {"insecure", "http3", "like"}
    others = options.given - {"schemes", "json", "no_truncate"} - live
    if urls and (len(options.schemes) > 1 or others):
        message = "goes only with --json, --http3, --insecure, --like and --no-truncate: it is live"
        raise InputError.at("URL", message)
    for name in sorted(live):
        if name in options.given and not urls:
            raise InputError.at(f"--{name}", "goes only with a URL")


def _test(options: Options) -> PrioritizationTest | LiveTest:
    url = options.schemes[0]
    if isinstance(url, str) and "://" in url:
        from h3sim.advice.live_server import probe_server

        over = Over.HTTP3 if options.http3 else Over.HTTP2
        return probe_server(url, over=over, verify=not options.insecure)
    found: PrioritizationTest = call_with(prioritization_test, options)
    return found


def _runs(sent: Sequence[int]) -> str:
    """Return the order without what is said by repetition."""
    runs = " ".join(str(number) for number, _ in groupby(sent))
    return textwrap.shorten(runs, 60, placeholder=" ...")


@command(
    "prioritization-test",
    Argument(
        "SCHEME",
        "schemes, scheme sets or scheme files (.toml), or the URL of a large file on a live server"
        " (default: servers)",
        default="servers",
        dest="schemes",
        nargs="*",
        many="words",
        read=_read_servers,
    ),
    Argument("--http3", "test a live server over HTTP/3, not HTTP/2"),
    Argument("--insecure", "accept any certificate of a live server"),
    Argument(
        "--like NAMES",
        "end with exit code 1 unless a live server sends in the order of one of these servers",
        many="commas",
        read=lambda name, _: catalog.load_server(name).name,
    ),
    shared.Halves(),
    Argument(
        "--late-kind KIND",
        "kind of the late resources; images count as visible",
        choices=LATE_KINDS,
        default="stylesheet",
    ),
    shared.LoadOptions(),
    common.JSON("print h3sim-server-check/1, or for a URL h3sim-live-test/1, instead"),
    common.NO_TRUNCATE,
    of=_test,
    checks=(_check_url,),
)
def _print_server_test(found: PrioritizationTest | LiveTest, options: Options) -> int:
    """Run the prioritization test of Davies and Meenan (2018), or test a live server.

    Examples:
      h3sim prioritization-test
      h3sim prioritization-test h2o quic-go --send-buffer-kb 280
      h3sim prioritization-test my-server.toml --late-kind image --network cable
      h3sim prioritization-test https://example.org/large.bin --http3

    30 images are requested, then one second later two urgent resources. A server passes if at most
    a tenth of the images' remaining bytes arrives before these are complete. A live server gets
    three and nine requests at once (docs/how-to.md).
    """
    width = options.width
    if not isinstance(found, PrioritizationTest):
        orders = output.of(
            found.rows,
            "pattern",
            ("fields", lambda row: "; ".join(row.fields)),
            ("sent", lambda row: _runs(row.sent)),
        )
        like = ", ".join(found.like) or "none of the shipped servers"
        heading = f"{found.url} over {found.protocol.value}: {found.server or 'no Server field'}"
        answer = _UPDATES[found.updates.value]
        output.show(width, heading, orders, f"It sends in the order of: {like}. {answer}")
        return int(bool(options.like) and not {*options.like} & {*found.like})
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
    return 0
