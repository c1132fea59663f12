"""`h3sim run`: one load of a page with one scheme, in full detail."""

from __future__ import annotations

import itertools
import sys
from typing import TYPE_CHECKING

from h3sim import __version__, catalog
from h3sim.cli import common, output, shared
from h3sim.cli.command import Argument, Options, command, refuse
from h3sim.export import SavedLoad, is_saved_load, read_load
from h3sim.export.qlog_file import write_load_qlog
from h3sim.export.tables import (
    connections_table,
    critical_path_sums,
    critical_path_table,
    metrics_of,
    multiplexing_of,
    navigations_table,
)
from h3sim.load import describe, resolve, run_spec
from h3sim.load.load_config import LoadConfig
from h3sim.load.options import switch_of
from h3sim.load.run import resolve_page
from h3sim.metrics import SAMPLE_MS as SAMPLED_MS
from h3sim.schema import format_value
from h3sim.schema.fields import fields_of
from h3sim.values.errors import InputError, UnknownNameError
from h3sim.values.table import Column, format_pairs
from h3sim.values.text import escape_control

if TYPE_CHECKING:
    from h3sim.load import Load
    from h3sim.page import Page
    from h3sim.schemes import Scheme


_HIDDEN_OPTIONS = ("cc", "transport_profile", "reorder", "cpu_slowdown")
"""Options that only `--help-all` shows, so that the help fits two screens of 24 lines."""


def _read_page(name: str, options: Options) -> Page | SavedLoad:
    return read_load(name) if is_saved_load(name) else shared.read_page(name, options)


def _read_scheme(name: str, _: Options) -> Scheme:
    """Return the scheme of that name; refuse several."""
    if catalog.scheme_set(name) is not None:
        raise InputError.at("--scheme", f"{name!r} is a set of schemes: use `h3sim compare`")
    try:
        return catalog.load_scheme(name)
    except UnknownNameError as error:
        if "," not in name:
            raise
        message = f"{format_value(name)} names several schemes: use `h3sim compare`"
        raise InputError.at("--scheme", message) from error


def _read_qlog_dialect(name: str, options: Options) -> str:
    """Return a known dialect of qlog."""
    if options.qlog is None:
        return name
    from h3sim.qlog import DIALECTS  # lazy: few loads are logged

    if name not in DIALECTS:
        raise InputError.at("--qlog-dialect", f"must be one of {', '.join(DIALECTS)}, is {name!r}")
    return name


def check_saved(options: Options) -> None:
    """Refuse options of a load with a saved one, which has its own.

    Raises:
        InputError: with one issue per option.
    """
    if not isinstance(options.page, SavedLoad):
        return
    fields = [entry.attribute for entry in fields_of(LoadConfig)]
    problems = [
        (switch_of(LoadConfig, key, getattr(options, key)), "does not go with a saved load")
        for key in ("scheme", "client", "server", "scheduler_process", "above_the_fold", *fields)
        if key in options.given
    ]
    if options.page.scheme is None:
        problems.append(("inputs.scheme", "was defined in Python and cannot be read from a file"))
    refuse(problems)


def _check_critical_path(options: Options) -> None:
    if options.critical_path and options.browser != "parse":
        raise InputError.at("--critical-path", "goes only with --browser parse")


def _check_sample_ms(options: Options) -> None:
    if options.json and options.sample_ms not in (None, SAMPLED_MS):
        message = "with --json: byte_index_sampled_ms always has that interval"
        raise InputError.at("--sample-ms", f"must be {SAMPLED_MS:g} {message}")


def _run_load(options: Options, progress: output.Progress | None) -> Load:
    """Return the load that the options or a saved load describe."""
    page, scheme, config = options.page, options.scheme, options.config
    if options.scheduler_process is not None:
        scheme = shared.with_process(scheme, options.scheduler_process)
    if isinstance(options.page, SavedLoad):
        saved = options.page
        page, scheme, config = saved.page, saved.scheme, saved.config
        if saved.version != __version__:
            message = f"saved by h3sim {saved.version}, this is {__version__}"
            print(f"h3sim run: {message}", file=sys.stderr)
    load = run_spec(
        resolve(page, scheme, config),
        record_packets=bool(options.qlog or options.trace),
        progress=progress,
    )
    if options.diff is not None:
        other = run_spec(resolve(options.diff, scheme, config))
        load.plot.save_against(other, options.plot, **output.figure_style(options))
    elif options.plot is not None:
        load.plot.save(options.plot, **output.figure_style(options))
    if options.qlog is not None:
        write_load_qlog(load, options.qlog, dialect=options.qlog_dialect)
    if options.animate is not None:
        load.plot.animation(options.animate)
    if options.har is not None:
        from h3sim.export.har import write_load_har  # lazy: few loads are written as HAR

        write_load_har(load, options.har)
    if options.trace is not None:
        from h3sim.export.chrome_trace import write_chrome_trace  # lazy, as above

        write_chrome_trace(load, options.trace)
    for path in (options.plot, options.qlog, options.animate, options.har, options.trace):
        if path is not None:
            output.report_written(path)
    return load


@command(
    "run",
    Argument(
        "PAGE",
        "a shipped page, a file (.json), a saved load, or a HAR",
        read=_read_page,
    ),
    shared.scheme(read=_read_scheme),
    shared.Halves(is_single=True),
    shared.scheduler_process(
        "schedule with a driver (docs/conformance-protocol.md) instead of the scheme's scheduler",
        is_rare=True,
    ),
    shared.marks(is_rare=True),
    shared.LoadOptions(are_all=True, hidden=_HIDDEN_OPTIONS),
    common.PLOT("plot the load: FILE.png, .svg or .pdf"),
    Argument(
        "--qlog FILE",
        "write a qlog of both endpoints (FILE.qlog), or of the client only (FILE.sqlog)",
        output=(".qlog", ".sqlog"),
    ),
    *common.figure_options(),
    Argument(
        "--qlog-dialect NAME",
        "qlog version: 0.3 (for qvis) or draft, the current drafts",
        default="0.3",
        read=_read_qlog_dialect,
        is_rare=True,
    ),
    Argument(
        "--har FILE",
        "write the load as HAR 1.2 for DevTools and waterfall viewers: FILE.har",
        output=(".har",),
        is_rare=True,
    ),
    Argument(
        "--trace FILE",
        "write a Chrome trace for ui.perfetto.dev: FILE.json",
        output=(".json",),
        is_rare=True,
    ),
    Argument(
        "--animate FILE",
        "animate packets in flight and data that TCP and QUIC hold back: FILE.html or .gif",
        output=(".html", ".gif"),
    ),
    common.SAMPLE_MS(is_rare=True),
    Argument(
        "--diff PAGE",
        "another version of the page, to compare in --plot",
        read=lambda name, _: resolve_page(name),
        needs="--plot",
    ),
    common.JSON("print the load as h3sim-load/2"),
    Argument("--order", "also show the stream id of each packet", is_rare=True),
    Argument("--multiplexing", "also show multiplexing and prioritization metrics", is_rare=True),
    Argument(
        "--critical-path",
        "show the critical path to the load event (with --browser parse)",
        is_rare=True,
    ),
    common.NO_TRUNCATE,
    of=_run_load,
    document=lambda load, options: load.to_dict(order=options.order),
    progress="packet",
    checks=(check_saved, _check_critical_path, _check_sample_ms),
)
def _print_load(load: Load, options: Options) -> None:
    """Load a page with one scheme and show when each resource arrives.

    Examples:
      h3sim run davies-meenan --scheme rr --json > load.json && h3sim run load.json --plot load.png
      h3sim run http2rulez --client firefox --server quic-go --network 4g
      h3sim run davies-meenan --network sander-2mbps-100ms-2pct --animate hol.html
      h3sim run shop.json --scheme chrome-eps --diff shop-preload.json --plot moved.png
    """
    width = options.width
    over = f"{load.network.name} ({load.protocol.value})"
    print(escape_control(f"{load.page.name}: {load.scheme.name} over {over}, seed {load.seed}"))
    output.show(width, describe(load.spec))
    for note in load.notes:
        output.show(width, f"{load.page.name}: {note}")
    caveat = load.scheme.caveat
    print(escape_control(f"{load.scheme.name}: {caveat}") + "\n" if caveat else "")
    print(format_pairs(metrics_of(load, sample_ms=options.sample_ms), width=width))
    if not load.hol.connection_bytes and not load.hol.stream_bytes:
        print(f"\n{output.fitted(output.NO_HOL, width)}")
    print()
    connection_of = load.trace.connection_of  # empty if the load has a single connection
    if connection_of:
        print(f"{connections_table(load).to_text(width, shorten=True)}\n")
    if len(load.page.roots) > 1:
        print(f"{navigations_table(load).to_text(width, shorten=True)}\n")
    connection_column = []  # none for a single connection
    if connection_of:
        on = {row.id: each for row, each in zip(load.timings, connection_of, strict=True)}
        connection_column.append(("on", lambda row: on[row.id]))
    shown = output.of(
        load.timings,
        *connection_column,
        ("stream", lambda row: str(row.stream_id)),
        ("resource", "id"),
        "kind",
        "bytes",
        ("above fold", output.marked("above_the_fold")),
        (Column.ms("requested ms"), "requested_ms"),
        (Column.ms("first byte ms"), "first_byte_ms"),
        (Column.ms("finished ms"), "finished_ms"),
    )
    print(shown.to_text(width, shorten=True))
    if options.order:
        runs = ((stream, len(list(group))) for stream, group in itertools.groupby(load.trace.order))
        print("\norder of packets (stream x consecutive packets):")
        print(" ".join(f"{stream}x{n}" for stream, n in runs))
    if options.multiplexing:
        print(f"\n{format_pairs(multiplexing_of(load), width=width)}")
    if options.critical_path:
        print(f"\n{critical_path_table(load).to_text(width, shorten=True)}")
        print(f"\n{output.fitted(critical_path_sums(load), width)}")
