"""`h3sim run`: one load of a page with one scheme, in full detail."""

from __future__ import annotations

import itertools
import json
import sys
from typing import TYPE_CHECKING

from h3sim import __version__, catalog
from h3sim.cli.options import (
    add_buffer_option,
    add_load_options,
    add_marks,
    add_sample_option,
    check_sample_option,
    named_page,
    read_config,
    switch_of,
)
from h3sim.cli.parsing import (
    ErrorList,
    Parser,
    RawHelp,
    check_outputs_differ,
    check_plot_path,
    progress_bar,
)
from h3sim.cli.tables import add_wide, fitted, in_ms, terminal_width
from h3sim.errors import InputError, UnknownNameError, ValidationIssue
from h3sim.metrics import SAMPLE_MS
from h3sim.results import describe
from h3sim.results.configuration import write_load_qlog
from h3sim.results.tables import (
    connections_table,
    critical_path_sums,
    critical_path_table,
    metrics_of,
    multiplexing_of,
    navigations_table,
)
from h3sim.schema import format_value
from h3sim.study import is_saved_load, read_load, run_config
from h3sim.study.run import resolve_page
from h3sim.table import Table, format_pairs
from h3sim.text import escape_control

if TYPE_CHECKING:
    import argparse

    from h3sim.config import LoadConfig
    from h3sim.page import Page
    from h3sim.results import Load
    from h3sim.schemes import Scheme


_OUTPUTS = (
    *("page", "json", "order", "plot", "qlog", "qlog_dialect", "har"),
    *("against", "animate", "critical_path", "sample_ms", "wide"),
)
"""Options that do not describe the load."""
_EPILOG = """\
examples:
  h3sim run http2rulez --scheme bucket-html
  h3sim run shop.har --connections per-host
  h3sim run my-page.json --scheme fifo --transport tcp --reorder 4:1-3 --seed 7
  h3sim run davies-meenan --scheme rr --json --order > load.json
  h3sim run load.json --plot load.png
  h3sim run davies-meenan --network sander-2mbps-100ms-2pct --animate hol.html
  h3sim run shop.json --scheme chrome-eps --diff shop-preload.json --plot moved.png
  h3sim run davies-meenan --scheme fifo --qlog load.qlog --har load.har
  h3sim run davies-meenan --scheme dfifo --browser parse --cpu-slowdown 4 --critical-path
"""


def add_command(commands: argparse._SubParsersAction[Parser], summary: str) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "run",
        help=summary,
        description="Load a page with one scheme and show when each resource arrives.",
        epilog=_EPILOG,
        formatter_class=RawHelp,
    )
    parser.add_argument(
        "page",
        metavar="PAGE",
        help="a shipped page, a page file (.json), a saved load to run again, or a recording"
        " such as a HAR",
    )
    parser.add_argument(
        "--scheme",
        metavar="NAME",
        default="rr",
        help="a shipped scheme or a scheme file (.toml) (default: %(default)s)",
    )
    add_marks(parser)
    add_load_options(parser)
    add_buffer_option(parser)
    _add_output_options(parser)
    add_sample_option(parser)
    add_wide(parser)
    # Defaults, to detect options given in addition to a saved load.
    parser.set_defaults(usual=vars(parser.parse_args(["PAGE"])))
    parser.set_defaults(command=_run)


def _add_output_options(parser: argparse.ArgumentParser) -> None:
    """Add the options for printed, plotted and written output."""
    parser.add_argument("--json", action="store_true", help="print the load as h3sim-load/2")
    parser.add_argument(
        "--order", action="store_true", help="also show the stream id of each packet"
    )
    parser.add_argument("--plot", metavar="FILE", help="plot the load: FILE.png, .svg or .pdf")
    parser.add_argument(
        "--animate",
        metavar="FILE",
        help="animate packets in flight and data that TCP and QUIC hold back: FILE.html or .gif",
    )
    parser.add_argument(
        "--diff",
        metavar="PAGE",
        help="another version of the page, loaded with the same settings; --plot compares both",
    )
    parser.add_argument(
        "--qlog",
        metavar="FILE",
        help="write a qlog of both endpoints (FILE.qlog), or of the client only (FILE.sqlog)",
    )
    parser.add_argument(
        "--qlog-dialect",
        metavar="NAME",
        default="0.3",
        help="qlog version: 0.3 (for qvis) or draft, the current drafts (default: %(default)s)",
    )
    parser.add_argument(
        "--har",
        metavar="FILE",
        help="write the load as HAR 1.2 for DevTools and waterfall viewers: FILE.har",
    )
    parser.add_argument(
        "--multiplexing",
        action="store_true",
        help="also show multiplexing and prioritization metrics",
    )
    parser.add_argument(
        "--critical-path",
        action="store_true",
        help="show the critical path to the load event (with --browser parse)",
    )


def _check_animation(path: str | None) -> None:
    """Refuse, before anything runs, an animation path that could not be written."""
    if path is not None:
        from h3sim.reporting.animation import check_animation_path  # lazy: few loads are animated

        check_animation_path(path, key="--animate")


def _check_qlog(options: argparse.Namespace) -> None:
    """Refuse, before anything runs, a qlog path that could not be written."""
    if options.qlog is None:
        return
    from h3sim.qlog import DIALECTS, check_qlog_path  # lazy: few loads are logged

    if options.qlog_dialect not in DIALECTS:
        message = f"must be one of {', '.join(DIALECTS)}, is {options.qlog_dialect!r}"
        raise InputError([ValidationIssue(key="--qlog-dialect", message=message)])
    check_qlog_path(options.qlog, key="--qlog")


def _check_path(options: argparse.Namespace) -> None:
    if options.critical_path and options.browser != "parse":
        raise InputError(
            [ValidationIssue(key="--critical-path", message="goes only with --browser parse")]
        )


def _check_sampled_json(options: argparse.Namespace) -> None:
    if options.json and options.sample_ms not in (None, SAMPLE_MS):
        message = (
            f"must be {SAMPLE_MS:g} with --json: byte_index_sampled_ms always has that interval"
        )
        raise InputError([ValidationIssue(key="--sample-ms", message=message)])


def _other_page(options: argparse.Namespace) -> Page | None:
    if options.diff is None:
        return None
    if options.plot is None:
        raise InputError([ValidationIssue(key="--diff", message="goes only with --plot")])
    return resolve_page(options.diff)


def _scheme(name: str) -> Scheme:
    if catalog.scheme_set(name) is not None:
        message = f"{name!r} is a set of schemes: use `h3sim compare`"
        raise InputError([ValidationIssue(key="--scheme", message=message)])
    try:
        return catalog.load_scheme(name)
    except UnknownNameError as error:
        if "," not in name:
            raise
        message = f"{format_value(name)} names several schemes: use `h3sim compare`"
        raise InputError([ValidationIssue(key="--scheme", message=message)]) from error


def _given(
    options: argparse.Namespace, mistakes: ErrorList
) -> tuple[Page, Scheme, LoadConfig] | None:
    """Return the load that the options describe, or None after collecting every error."""
    page = mistakes.collect(lambda: named_page(options.page, options.above_the_fold))
    scheme = mistakes.collect(lambda: _scheme(options.scheme))
    config = read_config(options, mistakes, send_buffer_kb=options.send_buffer_kb, pages=[page])
    mistakes.collect(lambda: _check_path(options))
    return None if page is None or scheme is None or config is None else (page, scheme, config)


def _saved(
    options: argparse.Namespace, mistakes: ErrorList
) -> tuple[Page, Scheme, LoadConfig] | None:
    """Return the settings of a saved load; options of a load are refused."""
    given = [
        ValidationIssue(key=switch_of(key, vars(options)), message="does not go with a saved load")
        for key, value in vars(options).items()
        if key in options.usual and key not in _OUTPUTS and value != options.usual[key]
    ]
    if given:
        mistakes.lines += [str(problem) for problem in given]
        return None
    saved = mistakes.collect(lambda: read_load(options.page))
    if saved is None:
        return None
    if saved.version != __version__:
        print(f"h3sim run: saved by h3sim {saved.version}, this is {__version__}", file=sys.stderr)
    if saved.scheme is None:
        mistakes.lines.append(
            f"{options.page}: inputs.scheme: was defined in Python and cannot be read from a file"
        )
        return None
    return saved.page, saved.scheme, saved.config


def _run(options: argparse.Namespace) -> int:
    mistakes = ErrorList()
    cell = _saved(options, mistakes) if is_saved_load(options.page) else _given(options, mistakes)
    mistakes.collect(lambda: check_plot_path(options.plot))
    mistakes.collect(lambda: _check_qlog(options))
    if options.har is not None:
        from h3sim.results.har import check_har_path  # lazy: few loads are written as HAR

        mistakes.collect(lambda: check_har_path(options.har, key="--har"))
    mistakes.collect(lambda: _check_animation(options.animate))
    mistakes.collect(lambda: check_sample_option(options))
    mistakes.collect(lambda: _check_sampled_json(options))
    outputs = {name: f"--{name}" for name in ("plot", "qlog", "animate", "har")}
    mistakes.collect(lambda: check_outputs_differ(options, **outputs))
    other = mistakes.collect(lambda: _other_page(options))
    if cell is None or mistakes.lines:
        return mistakes.tell("run")
    with progress_bar("packet") as progress:
        load = run_config(*cell, record_packets=options.qlog is not None, progress=progress)
    if other is not None:
        load.plot.save_against(run_config(other, *cell[1:]), options.plot)
    elif options.plot is not None:
        load.plot.save(options.plot)
    if options.qlog is not None:
        write_load_qlog(load, options.qlog, dialect=options.qlog_dialect)
    if options.animate is not None:
        load.plot.animation(options.animate)
    if options.har is not None:
        from h3sim.results.har import write_load_har

        write_load_har(load, options.har)
    if options.json:
        print(json.dumps(load.to_dict(order=options.order), allow_nan=False))
        return 0
    width = terminal_width(options)
    _show(load, order=options.order, sample_ms=options.sample_ms, width=width)
    if options.multiplexing:
        print(f"\n{format_pairs(multiplexing_of(load), width=width)}")
    if options.critical_path:
        print(f"\n{critical_path_table(load).to_text(width, shorten=True)}")
        print(f"\n{fitted(critical_path_sums(load), width)}")
    return 0


def _show(load: Load, *, order: bool, sample_ms: float | None, width: int | None) -> None:
    over = f"{load.network.name} ({load.protocol.value})"
    print(escape_control(f"{load.page.name}: {load.scheme.name} over {over}, seed {load.seed}"))
    print(fitted(escape_control(describe(load)), width))
    for note in load.notes:
        print(fitted(escape_control(f"{load.page.name}: {note}"), width))
    caveat = load.scheme.caveat
    print(escape_control(f"{load.scheme.name}: {caveat}") + "\n" if caveat else "")
    print(format_pairs(metrics_of(load, sample_ms=sample_ms), width=width))
    print()
    number_of = load.trace.connection_of
    if number_of:
        print(f"{connections_table(load).to_text(width, shorten=True)}\n")
    if len(load.page.roots) > 1:
        print(f"{navigations_table(load).to_text(width, shorten=True)}\n")
    rows = (
        (
            *number_of[index : index + 1],
            str(timing.stream_id),
            timing.id,
            timing.kind,
            f"{timing.bytes:,}",
            "yes" if timing.above_the_fold else "",
            in_ms(timing.requested_ms),
            in_ms(timing.first_byte_ms),
            in_ms(timing.finished_ms),
        )
        for index, timing in enumerate(load.timings)
    )
    headers = (*("on",) * bool(number_of), "stream", "resource", "kind", "bytes", "above fold")
    times = ("requested ms", "first byte ms", "finished ms")
    print(Table((*headers, *times), rows).to_text(width, shorten=True))
    if order:
        runs = ((stream, len(list(group))) for stream, group in itertools.groupby(load.trace.order))
        print("\norder of packets (stream x consecutive packets):")
        print(" ".join(f"{stream}x{n}" for stream, n in runs))
