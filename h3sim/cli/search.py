"""`h3sim search`, `recommend`, `hints`, `predict`: answers about a page, with their uncertainty."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from h3sim.advice import (
    Hints,
    Prediction,
    Recommendation,
    SearchResult,
    hints,
    predict,
    recommend,
    search,
)
from h3sim.advice.applying import apply_edits
from h3sim.advice.hints import HARMS, METRICS
from h3sim.advice.prediction import NETWORKS as PREDICTION_NETWORKS
from h3sim.advice.recommendation import EXAMPLE, read_subject
from h3sim.advice.search import DEPLOYABLE, ROBUSTNESS_NETWORKS, arms_of
from h3sim.browser.above_the_fold import HEURISTIC
from h3sim.cli import common, output, shared
from h3sim.cli.command import Argument, Options, call_with, command
from h3sim.importers.crux import NetworkShare, read_crux
from h3sim.page.recording import ESTIMATED_WITHIN
from h3sim.schema import format_value
from h3sim.schema.arguments import ErrorCollector
from h3sim.schema.values import Integer, Number
from h3sim.values.errors import InputError
from h3sim.values.table import FINE_TOLERANCE, MISSING, Column, decimals_of
from h3sim.values.text import escape_control

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from h3sim.importers import ImportedPage
    from h3sim.page import Page


_MARKUP_INDENT = "    "
_MIN_VISIBLE_DIFFERENCE = 1e-6
"""Ratios that differ by more are printed differently, so that no worse one looks like 1.00."""


def _check_arms(options: Options) -> None:
    options.vary = shared.read_values("--param", options.param or ())
    arms_of(options.schemes, options.vary)


def _ratio(loss: float | None) -> str:
    return MISSING if loss is None else f"{1 + loss:.3f}"


def read_subject_into(name: str, options: Options) -> Page:
    """Return the page in a recording or page file, and set `options.imported`."""
    options.source = name
    page, options.imported = read_subject(
        name, host=options.host, page=options.number, above_the_fold=options.above_the_fold
    )
    return page


def _call_with_early_result(function: Any, options: Options, **more: Any) -> Any:
    """Call a function that runs many loads, and print what the first ones show."""
    more |= {"first_result": output.print_first, "executor": "auto", "workers": options.workers}
    return call_with(function, options, progress=options.progress or False, **more)


def _page_or_import(options: Options) -> Page | ImportedPage:
    """Return the page with its import report, if it was imported, or else the page."""
    subject: Page | ImportedPage = options.imported or options.page
    return subject


def _run_search(options: Options) -> Any:
    return _call_with_early_result(search, options)


def _run_recommend(options: Options) -> Any:
    """Return the recommendation for a page, and write its figures."""
    keeps_loads = options.plot is not None or options.report is not None
    advice = _call_with_early_result(
        recommend, options, page=_page_or_import(options), keep_loads=keeps_loads
    )
    if options.plot is not None:
        from h3sim.reporting import LoadPlots  # lazy: imports matplotlib

        LoadPlots(advice.comparison.loads).save(options.plot, **output.figure_style(options))
        output.report_written(options.plot)
    if options.report is not None:
        output.save_report(options.report, options, advice)
    return advice


def _run_hints(options: Options) -> Any:
    """Return the study of hints that the options describe, and write its report."""
    keeps_loads = options.report is not None
    halves = {} if options.clients is None else {"scheme": None, "server": options.given_server}
    found = _call_with_early_result(
        hints, options, page=_page_or_import(options), keep_loads=keeps_loads, **halves
    )
    if options.report is not None:
        output.save_report(options.report, options, found.loads, title=f"h3sim: {found.verdict}")
    if options.apply is not None:
        chosen = apply_edits(options.apply, found.page, found.in_markup, options.copy)
        output.report_written(options.copy)
        print(f"Applied: {' and '.join(edit.text for edit in chosen)}.")
    return found


def _read_networks(names: str, options: Options) -> Sequence[str] | tuple[NetworkShare, ...]:
    """Return the names of networks, possibly repeated, or those of users in a CrUX file."""
    listed = [name.strip() for name in names.split(",")]
    files = [name for name in listed if name.endswith((".json", ".json.gz"))]
    if files and len(listed) > 1:
        message = "has all users and their shares: give it alone"
        raise InputError.at(files[0], message)
    if files:
        return read_crux(files[0])
    with ErrorCollector() as errors:
        return [errors.collect("", partial(shared.read_network, each, options)) for each in listed]


def _read_folder(text: str, _: Options) -> Path:
    """Return a path."""
    return Path(text)


def _read_shares(text: str, _: Options) -> dict[str, float]:
    """Return the share of each client.

    >>> _read_shares("chrome=65,safari=35", Options())
    {'chrome': 65.0, 'safari': 35.0}
    """
    shares = {}
    for entry in text.split(","):
        name, share = entry.partition("=")[::2]
        try:
            shares[name.strip()] = float(share)
        except ValueError:
            message = f"must be like chrome=65,safari=35, is {format_value(entry)}"
            raise InputError.at("--clients", message) from None
    return shares


def _page_lines(page: Page, imported: ImportedPage | None) -> Iterator[str]:
    """Yield a description of the page, and the problems of its recording."""
    if imported is None:
        yield f"{page.name}: {page.title}"
        return
    first, *rest = imported.lines()
    yield first
    yield from (line for line in rest if line.startswith(("warning:", "mended:", "skipped:")))


_CONFIDENCE = Number(low=0, high=1, is_above=True, is_below=True)
_SUBJECT_ARGUMENT = Argument(
    "FILE",
    "a HAR or another recording, a site, a page file; a shipped page",
    dest="page",
    read=read_subject_into,
)
_RECORDING_ARGUMENTS = (
    Argument("--host HOST", "of the recording keep one host's requests"),
    Argument(
        "--page N",
        "which page load of several that are in the recording (default: 1)",
        default=1,
        type=int,
        dest="number",
    ),
    shared.marks(HEURISTIC),
)
"""Options that select and mark the page load of a recording."""
_SEARCH_ARGUMENTS = (
    Argument(
        "--baseline NAME",
        "scheme that the gain is relative to",
        default="chrome-eps",
        read=shared.read_scheme,
    ),
    Argument(
        "--resources WHICH",
        "compare above the fold or all resources (default: atf, if any is marked)",
        choices=("atf", "all"),
        dest="which",
    ),
    Argument(
        "--seeds N",
        "at most this many seeds, from --seed on",
        Integer(low=1),
        default=30,
        dest="n_seeds",
    ),
    Argument("--confidence SHARE", "confidence level", _CONFIDENCE, default=0.95),
    Argument(
        "--robustness-networks NAMES",
        "other networks on which the choice is tried, with commas between",
        default=",".join(ROBUSTNESS_NETWORKS),
        dest="networks",
        many="commas",
        read=shared.read_network,
    ),
    Argument(
        "--network-uncertainty FACTOR",
        "with each seed, multiply RTT and rate by factors between 1/FACTOR and FACTOR"
        f" (default: for the network of a recording as far as its estimates are apart, at least"
        f" {ESTIMATED_WITHIN:g} unless a tool imposed it; else 1)",
        Number(low=1, high=100),
        dest="network_within",
    ),
)
"""Options of `search` and `recommend`."""


@command(
    "search",
    shared.PAGES,
    shared.marks(),
    shared.schemes(",".join(DEPLOYABLE)),
    shared.Halves(),
    Argument(
        "--param KEY=VALUES",
        "try these values of a parameter, with commas between; may be given several times",
        action="append",
    ),
    *_SEARCH_ARGUMENTS,
    common.WORKERS,
    shared.LoadOptions(),
    common.JSON("print h3sim-found/1 instead"),
    common.NO_TRUNCATE,
    of=_run_search,
    checks=(_check_arms,),
)
def _print_search(found: SearchResult, options: Options) -> None:
    """Find the scheme with the least ByteIndex, and say how sure that is.

    Examples:
      h3sim search http2rulez --network cable --loss 1%
      h3sim search corpus:small --scheme chrome-h2,firefox-eps,h3sim-1 --resources all
      h3sim search http2rulez --scheme rr,wrr --param turn_packets=1,4,16
      h3sim search my-page.json --scheme marx-2019,h3sim-1 --baseline chrome-h2 --seeds 100

    All schemes meet the same pages and seeds; the better half goes on, round by round, until the
    best is certain or the seeds are used up. Then the choice is tried on other networks, and with
    RTT, loss and sizes that were misjudged. Schemes that use what no client knows are marked so.
    With --param, each scheme is tried with every combination of the values that it can have: of
    keys of its file (h3sim show scheme NAME), with dots between tables, or of send_buffer_kb,
    send_buffer_refill, retransmission_order and cc, which servers choose.
    """
    width = options.width
    # The interval of a worse scheme is above 1, which its decimals must show.
    decimals = max(
        decimals_of(
            (1.0, row.low),
            least=2,
            tolerance=_MIN_VISIBLE_DIFFERENCE if row.is_worse else FINE_TOLERANCE,
        )
        for row in found.rows
    )
    if not found.is_judged:  # numbers of a load that did not happen answer nothing
        output.show(width, found.verdict)
        return
    output.show(
        width,
        found.verdict,
        f"{found.describe()}; {found.n_loads:,} loads",
        output.of(
            found.rows,
            "scheme",
            "pairs",
            (Column.ratio("ratio to the best", tolerance=_MIN_VISIBLE_DIFFERENCE), "ratio"),
            (Column("low", decimals, FINE_TOLERANCE), "low"),
            (Column("high", decimals, FINE_TOLERANCE), "high"),
            ("", found.status),
        ),
    )
    if sensitivity := (*found.guesses, *found.robustness):
        shown = output.of(
            sensitivity,
            "changed",
            "best_there",
            ("ratio to the best", lambda row: _ratio(row.loss)),
            ("low", lambda row: _ratio(row.low)),
            ("high", lambda row: _ratio(row.high)),
        )
        print()
        heading = f"sensitivity of {found.best}: its ratio to the best under other conditions"
        output.show(width, heading, shown)


@command(
    "recommend",
    _SUBJECT_ARGUMENT,
    shared.schemes(",".join(DEPLOYABLE)),
    shared.Halves(),
    *_RECORDING_ARGUMENTS,
    *_SEARCH_ARGUMENTS,
    common.WORKERS,
    shared.LoadOptions(),
    common.PLOT("plot the page's loads by scheme: FILE.png, .svg or .pdf"),
    *common.figure_options(),
    Argument("--report FILE", "write a report, too: FILE.html", output=output.HTML),
    common.JSON("print h3sim-advice/2 instead"),
    common.NO_TRUNCATE,
    of=_run_recommend,
)
def _print_recommendation(advice: Recommendation, options: Options) -> None:
    """Find the best scheme for a page, by how much, and with which uncertainty.

    Examples:
      h3sim recommend shop.har
      h3sim recommend shop.har --plot shop.png --report shop.html
      h3sim recommend shop.har --scheme rr,chrome-eps,my-server.toml --baseline chrome-eps
      h3sim recommend shop.har --network cable --loss 1% --network-uncertainty 1
      h3sim recommend shop.json --above-the-fold seen.txt --json

    It imports the recording, reports how well its replay fits, and searches as `h3sim search` does,
    with the same defaults. The network of a recording is an estimate: schemes are compared over
    networks of up to twice or half its RTT and rate.
    """
    width = options.width
    fidelity = () if advice.fidelity is None else advice.fidelity.lines()
    notes = advice.comparison.notes.get(advice.page.name, ())
    output.show(width, (*fidelity, *_page_lines(advice.page, options.imported), *notes))
    if not advice.found.is_judged:  # the lines say what is missing
        return
    print()
    _print_search(advice.found, options)
    by_scheme = {row.scheme: row for row in advice.comparison.rows}
    shown = output.of(
        (by_scheme[row.scheme] for row in advice.found.rows),
        "scheme",
        (Column.ms("above fold ms"), "byte_index_atf_ms"),
        (Column.ms("all ms"), "byte_index_all_ms"),
        (Column.ms("last above fold at ms"), "last_atf_ms"),
        "page_load_ms",
    )
    print()
    output.show(width, f"{EXAMPLE}: {advice.comparison.describe()}", shown, shorten=False)


@command(
    "hints",
    _SUBJECT_ARGUMENT,
    shared.scheme("chrome-eps", "the server's scheme, with the browser's signals"),
    shared.Halves(is_single=True),
    Argument(
        "--clients SHARES",
        "clients of the page's users with their shares, instead of --client: chrome=65,safari=35",
        read=_read_shares,
        not_with="--scheme",
    ),
    *_RECORDING_ARGUMENTS,
    Argument(
        "--metric NAME", "the metric that ranks the edits", default="lcp", choices=tuple(METRICS)
    ),
    Argument(
        "--networks NAMES",
        "networks of the page's users, comma-separated, instead of --network; one that is"
        " named twice counts twice; or a CrUX file (.json)",
        read=_read_networks,
    ),
    Argument(
        "--network-uncertainty FACTOR",
        "with each seed, multiply RTT and rate by factors between 1/FACTOR and FACTOR"
        f" (default: {ESTIMATED_WITHIN:g}, or more where the recording's estimates are further"
        " apart)",
        Number(low=1, high=100),
        dest="network_within",
    ),
    Argument("--seeds N", "seeds of each comparison", Integer(low=3), default=8, dest="n_seeds"),
    Argument(
        "--confidence SHARE", "joint confidence level of the intervals", _CONFIDENCE, default=0.95
    ),
    common.WORKERS,
    shared.LoadOptions(browser="parse"),
    Argument(
        "--report FILE",
        "write a report of a load before and after the best edit: FILE.html",
        output=output.HTML,
    ),
    Argument(
        "--apply FOLDER",
        "apply the first hint that changes only the markup to a copy of the page's files",
        read=_read_folder,
        needs="--copy",
    ),
    Argument(
        "--copy FOLDER",
        "the new folder of that copy",
        read=_read_folder,
        needs="--apply",
    ),
    Argument("--effects", "also print a table of all effects with their intervals"),
    common.JSON("print h3sim-hints/1 instead"),
    common.NO_TRUNCATE,
    of=_run_hints,
)
def _print_hints(found: Hints, options: Options) -> None:
    """Find the edits of a page that make it faster, by how much, and those that harm.

    Examples:
      h3sim hints shop.har
      h3sim hints shop.har --networks 4g,4g,cable --metric fcp
      h3sim hints shop.har --networks crux.json
      h3sim hints shop.har --clients chrome=65,safari=25,firefox=10 --seeds 20
      h3sim hints shop.json --network 4g --scheme rr --transport tcp --report shop.html
      h3sim hints http2rulez --network cable --json

    It loads the page with each edit once, and those that matter again with other seeds, next to the
    page as it is. A network that is named twice counts twice. The metrics are FCP, LCP, SpeedIndex,
    ByteIndex above the fold and the load event.
    """
    width = options.width
    fidelity = () if found.fidelity is None else found.fidelity.lines()
    if not found.is_judged:  # the lines say what is missing
        output.show(width, fidelity)
        return
    output.show(width, (*fidelity, found.describe()))
    groups = {
        "These help": found.helpful,
        "These help and harm": found.mixed,
        "These harm": found.harmful,
    }
    for heading, rows in groups.items():
        print(f"\n{heading}:\n" if rows else f"\n{heading}: none")
        for number, row in enumerate(rows, 1):
            output.show(width, f"{number}. {row.sentence}")
            for line in row.markup.splitlines() if row.verdict != HARMS else ():
                print(f"{_MARKUP_INDENT}{escape_control(line)}")
    if options.effects:
        print()
        shown = output.of(
            found.effects,
            "edit",
            "metric",
            "before_ms",
            "after_ms",
            *(
                (Column.ratio(name, tolerance=FINE_TOLERANCE), name)
                for name in ("ratio", "low", "high")
            ),
            (Column("p (Holm)", 3), "p_holm"),
        )
        output.show(width, shown)
    print()
    thinks = [found.describe_think_times()] if found.think_times else []
    output.show(width, *thinks, f"The model does not know: {'; '.join(found.unknown)}.")


@command(
    "predict",
    _SUBJECT_ARGUMENT,
    *_RECORDING_ARGUMENTS,
    Argument(
        "--network NAMES",
        f"networks, comma-separated, or a CrUX file (.json) (default:"
        f" {','.join(PREDICTION_NETWORKS)})",
        dest="networks",
        read=_read_networks,
    ),
    Argument("--confidence SHARE", "level of each interval", _CONFIDENCE, default=0.95),
    common.JSON("print h3sim-prediction/1 instead"),
    common.NO_TRUNCATE,
    of=lambda options: call_with(predict, options, page=_page_or_import(options)),
)
def _print_prediction(found: Prediction, options: Options) -> None:
    """Predict FCP, LCP, SpeedIndex and load event of a recorded page over other networks.

    Examples:
      h3sim predict shop.har --network 4g,cable
      h3sim predict shop.json --network crux.json
      h3sim predict trace.json.gz --network fast-3g --json

    The load is Chrome's, over HTTP/2 and Linux' TCP from h2o, on the machine of the recording.
    Intervals are calibrated on sites that were recorded without throttling and measured over links.
    """
    shown = output.of(
        found.rows,
        "network",
        "metric",
        (Column("predicted s", 2), "predicted_s"),
        (Column("from s", 2), "low_s"),
        (Column("to s", 2), "high_s"),
        (Column("median error, share", 2), "median_error"),
        "n_sites",
        (Column("recorded s", 2), "recorded_s"),
    )
    lines = _page_lines(found.page, options.imported)
    output.show(options.width, lines, shown, found.describe())
