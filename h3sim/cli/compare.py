"""`h3sim compare`: several schemes against a baseline, with one seed or many."""

from __future__ import annotations

import argparse
import re
import statistics
from pathlib import Path
from typing import TYPE_CHECKING

from h3sim.cli import common, output, shared
from h3sim.cli.command import Argument, Options, call_with, command, group
from h3sim.export.tables import sampled_every
from h3sim.load.figures import FIGURES
from h3sim.schema.values import Integer, Number
from h3sim.study import baseline_of, compare
from h3sim.study.compare import HOL_METRICS, Comparison, SeedComparison, resolve_metrics
from h3sim.study.matrix import grid_table, matrix_of
from h3sim.study.statistics.contrasts import NO_SEED_MATTERS
from h3sim.values.errors import InputError
from h3sim.values.table import FINE_TOLERANCE, MISSING, Column, Table, decimals_of
from h3sim.values.text import escape_control, plural

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from h3sim.schemes import Scheme
    from h3sim.study.compare import ComparisonRow, MetricRow, SeedComparisonRow, SeedMetricRow
    from h3sim.study.matrix import Speedup
    from h3sim.study.statistics.contrasts import SchemeRow


_SPEEDUP_HEADS = (
    "scheme",
    "speedup",
    "95 % interval",
    "p (Holm)",
    "effect",
    "wins 5 %",
    "ties",
    "losses",
    "wins 25 %",
    "losses",
)
_SPEEDUP_NAMES = {"atf": "above the fold"}
"""Headings of speedups whose names are abbreviated."""
_HOL_TABLES = (
    (
        "bytes of head-of-line blocking",
        {"within streams": "hol_stream_bytes", "across streams": "hol_connection_bytes"},
    ),
    (
        "bytes of head-of-line blocking, Sander's count",
        {
            "within streams": "hol_sander_stream_bytes",
            "across streams": "hol_sander_connection_bytes",
        },
    ),
)
"""Tables of head-of-line blocking: titles, and the metric of each column."""
_MAX_DETAILED_PAGES = 4
"""Largest number of pages whose own tables are shown by default; beyond it, only means are."""
_NON_FILE_CHARS = re.compile(r"[^A-Za-z0-9._+-]+")
_MAX_NAME_CHARS = 100
_MEAN_BY_NAME = {"arithmetic": statistics.fmean, "geometric": statistics.geometric_mean}


def _run_compare(options: Options) -> Comparison | SeedComparison:
    """Return the comparison that the options describe, and write its figures."""
    if options.scheduler_process is not None:
        process = shared.with_process(options.schemes[0], options.scheduler_process)
        options.schemes = [*options.schemes, process]
    comparison: Comparison | SeedComparison = call_with(
        compare,
        options,
        keep_loads=options.plot is not None or options.race is not None,
        workers=options.workers,
        progress=options.progress,
    )
    if options.csv is not None:
        rows = comparison.results if isinstance(comparison, SeedComparison) else comparison
        rows.to_csv(options.csv)
        output.report_written(options.csv)
    if isinstance(comparison, Comparison):
        _write_figures(comparison, options)
    return comparison


def _print_over_seeds(comparison: SeedComparison, options: Options) -> int:
    """Print each scheme's speedup over the baseline."""
    width, counts = options.width, comparison.results.counts
    seeds = plural(options.seeds, "seed")
    output.show(width, f"{plural(len(options.pages), 'page')}, {seeds} each: {counts}")
    for page, judged in comparison.fidelity.items():
        for line in judged.lines():
            output.show(width, f"{page}: {line}")
    for text in (*_speedup_tables(comparison, options), *_mean_tables(comparison, options)):
        print(f"\n{text}")
    for kb in options.send_buffers_kb:
        rows = comparison.rows_of(_MATRIX_METRIC, send_buffer_kb=kb)
        _print_matrix({row.scheme: (row.geometric, row.low, row.high) for row in rows}, kb, options)
    note = (
        f"Speedups to {comparison.baseline} with the same buffer: geometric means over pages, each"
        " the mean of its seeds; intervals: studentized bootstrap over pages (over seeds, if there"
        " is one page); p: Wilcoxon, corrected for the number of schemes; wins and losses count"
        " loads. Means are those of pages, or of seeds if there is one page."
    )
    print(f"\n{output.fitted(note, width)}")
    return 1 if comparison.failed else 0


_MATRIX_METRIC = "byte_index_atf_ms"


def _print_matrix(speedups: dict[str, Speedup], send_buffer_kb: float, options: Options) -> None:
    """Print the map of clients before servers, and what is lost between them, if there are some."""
    rows = matrix_of(speedups, options.halves)
    n_clients, n_servers = (len({row[index] for row in rows}) for index in (0, 1))
    if n_clients * n_servers != len(rows) or min(n_clients, n_servers) < 2:
        if options.map is not None:
            raise InputError.at("--map", "needs at least two clients and two servers")
        return
    print(f"\nclients before servers, above the fold, {send_buffer_kb:g} kB buffer:\n")
    grid = grid_table(rows)
    print(grid.to_text(options.width, shorten=False))
    print("\nspeedups, what a better server or client would add, and what is lost between them:\n")
    has_intervals = any(row.low is not None for row in rows)
    ends = (Column.ratio("from"), "low"), (Column.ratio("to"), "high")
    if options.map is not None and send_buffer_kb == options.send_buffers_kb[0]:
        from h3sim.reporting.study_plots import save_matrix_plot  # lazy: imports matplotlib

        base = getattr(options.baseline, "name", options.baseline)
        save_matrix_plot(rows, options.map, base, **output.figure_style(options))
        output.report_written(options.map)
    table = output.of(
        rows,
        "client",
        "server",
        (Column.ratio("speedup"), "speedup"),
        *(ends if has_intervals else ()),
        (Column.ratio("best server"), "other_server"),
        (Column.ratio("best client"), "other_client"),
        "lost",
    )
    print(table.to_text(options.width))


def _speedup_tables(comparison: SeedComparison, options: Options) -> Iterator[str]:
    """Yield a table of each send buffer and metric."""
    width, noun = options.width, "page" if len(options.pages) > 1 else "seed"
    titles = {figure.name: figure.title for figure in FIGURES}
    rows_of_table: dict[tuple[str, float], list[SeedComparisonRow]] = {}
    for row in comparison.rows:
        rows_of_table.setdefault((row.metric, row.send_buffer_kb), []).append(row)
    for (metric, send_buffer_kb), rows in rows_of_table.items():
        if options.sort:
            rows.sort(key=lambda row: -row.geometric)
        cells = [*_speedup_cells(rows)]
        heading = f"{titles[metric]}, {send_buffer_kb:g} kB buffer"
        few = too_few([row for row in rows if row.scheme != comparison.baseline], noun)
        note = output.fitted(f"\n\n{few}", width) if few else ""
        shown = Table(_SPEEDUP_HEADS, cells).to_text(width, shorten=True)
        yield f"{heading}:\n\n{shown}{note}"


def _mean_tables(comparison: SeedComparison, options: Options) -> Iterator[str]:
    """Yield tables of means, with intervals: of head-of-line blocking, and those requested."""
    tables = _tables_of(comparison.metrics, options.metrics or ())
    for kb in options.send_buffers_kb:
        for title, columns in tables:
            rows = {
                (row.metric, row.scheme): row
                for row in comparison.metrics
                if row.send_buffer_kb == kb
            }
            schemes = dict.fromkeys(scheme for _, scheme in rows)
            heads: list[str | Column] = ["scheme"]
            cells: list[list[str]] = [[scheme] for scheme in schemes]
            for head, metric in columns.items():
                heads += [head, "95 % interval"]
                of_metric = [rows[metric, scheme] for scheme in schemes]
                numbers = [number for row in of_metric for number in (row.mean, row.low, row.high)]
                texts = _column(head, metric).format(numbers)
                for line, mean, low, high in zip(
                    cells, texts[::3], texts[1::3], texts[2::3], strict=True
                ):
                    line += [mean, f"{low} to {high}" if low != MISSING else MISSING]
            heading = f"{title}, {kb:g} kB buffer: means"
            shown = Table(heads, cells).to_text(options.width, shorten=True)
            yield f"{heading}:\n\n{shown}"
    if not _has_hol(comparison.metrics):
        yield output.fitted(output.NO_HOL, options.width)


def _has_hol(rows: Iterable[MetricRow | SeedMetricRow]) -> bool:
    """Return whether a byte was blocked in any load."""
    values = (
        getattr(row, "value", getattr(row, "mean", None))
        for row in rows
        if row.metric in HOL_METRICS
    )
    return any(values)


def _tables_of(
    rows: Iterable[MetricRow | SeedMetricRow], requested: Sequence[str]
) -> list[tuple[str, dict[str, str]]]:
    """Return title and columns of each table of metrics; without blocking, only those requested."""
    tables = [*_HOL_TABLES] if _has_hol(rows) else []
    shown = {metric for _, columns in tables for metric in columns.values()}
    others = {name: name for name in requested if name not in shown}
    return [*tables, *([("metrics requested", others)] if others else ())]


def _column(head: str, metric: str) -> Column:
    """Return the column of a metric: whole bytes, and times with a decimal."""
    if metric.endswith("_bytes"):
        return Column(head, 0)
    return Column.ms(head) if metric.endswith("_ms") else Column(head)


def too_few(rows: Sequence[SchemeRow | SeedComparisonRow], noun: str) -> str:
    """Explain why *rows* other than the baseline lack an interval or a p-value; "" if none does.

    Even if all n clusters agree, Wilcoxon's p is 2 / 2^n; Holm multiplies it by the schemes.
    """
    if not rows:
        return ""
    n = min(row.clusters for row in rows)
    if noun == "seed" and n == 1 < rows[0].pairs:
        return NO_SEED_MATTERS
    lacking = ["an interval"] if any(row.low is None for row in rows) else []
    if len(rows) * 2 / 2**n >= 1:
        lacking.append("a p-value below 1")
    many = f", corrected for {len(rows)} schemes" if len(rows) > 1 and len(lacking) else ""
    return f"{plural(n, noun)}: too few for {' or '.join(lacking)}{many}" if lacking else ""


def _speedup_cells(rows: Sequence[SeedComparisonRow]) -> Iterator[tuple[str, ...]]:
    """Yield the table cells of each row, with enough decimals to tell speedups apart.

    A speedup whose interval excludes 1 must not look like 1, however little it differs.
    """
    decimals = decimals_of((row.geometric for row in rows), least=2)
    for row in rows:
        if row.low is not None and row.high is not None and not row.low <= 1 <= row.high:
            nearest_end = row.low if row.low > 1 else row.high
            ends = 1.0, nearest_end
            decimals = decimals_of(ends, least=decimals, tolerance=FINE_TOLERANCE)
    for row in rows:
        has_interval = row.low is not None and row.high is not None
        outcomes = (row.wins_5, row.ties_5, row.losses_5, row.wins_25, row.losses_25)
        yield (
            row.scheme,
            f"{row.geometric:.{decimals}f}",
            f"{row.low:.{decimals}f} to {row.high:.{decimals}f}" if has_interval else "-",
            "-" if row.p_corrected is None else f"{row.p_corrected:.3f}",
            f"{row.effect:+.2f}",
            *map(str, outcomes),
        )


def _print_pages(comparison: Comparison, options: Options) -> None:
    """Print the tables of each page."""
    width = options.width
    for page in options.pages:
        kb, n = page.total_bytes / 1000, len(page.resources)
        size = f"{plural(n, 'resource')}, {kb:,.0f} kB, page {page.short_digest}"
        print(escape_control(f"{page.name}: {size}"))
        _print_notes(comparison, page.name, width)
        print()
        for buffer_kb in options.send_buffers_kb:
            rows = [
                row
                for row in comparison.rows
                if (row.page, row.send_buffer_kb) == (page.name, buffer_kb)
            ]
            print(f"a send buffer of {buffer_kb:g} kB:\n" if buffer_kb else "no send buffer:\n")
            _print_page_tables(rows, comparison.sample_ms, width)
            metrics = [
                row
                for row in comparison.metrics
                if (row.page, row.send_buffer_kb) == (page.name, buffer_kb)
            ]
            for text in _metric_tables(comparison, metrics, options):
                print(f"{text}\n")


def _metric_tables(
    comparison: Comparison, rows: Sequence[MetricRow], options: Options, *, of: str = ""
) -> Iterator[str]:
    """Yield the tables of metrics of *rows*, which are of one page, or means."""
    values = {(row.metric, row.scheme): row.value for row in rows}
    schemes = dict.fromkeys(scheme for _, scheme in values)
    for title, columns in _tables_of(comparison.metrics, options.metrics or ()):
        cells = (
            [scheme, *(values[name, scheme] for name in columns.values())] for scheme in schemes
        )
        heads = (_column(head, metric) for head, metric in columns.items())
        shown = Table(["scheme", *heads], cells).to_text(options.width, shorten=True)
        yield f"{title}{of}:\n\n{shown}"


def _print_notes(comparison: Comparison, page: str, width: int | None) -> None:
    """Print how well a recording's replay fits, and the caveats of the page's figures."""
    judged = comparison.fidelity.get(page)
    notes = [*(() if judged is None else judged.lines()), *comparison.notes.get(page, ())]
    if page in comparison.missing_reason:
        notes.append(f"above the fold: {comparison.missing_reason[page]}")
    if notes:
        output.show(width, (f"{page}: {note}" for note in notes))


def _print_means(comparison: Comparison, options: Options) -> None:
    """Print the mean speedups over all pages."""
    width, buffers_kb = options.width, options.send_buffers_kb
    over = f"over {plural(len(options.pages), 'page')}"
    print(escape_control(f"{options.mean} mean speedups to {comparison.baseline} {over}") + "\n")
    means = {
        (row.scheme, row.send_buffer_kb): row
        for row in comparison.means_by(_MEAN_BY_NAME[options.mean])
    }
    columns = [
        (
            Column.ratio(f"{which} {kb:g} kB"),
            # Default arguments, as a loop's variables change before the function is called.
            lambda scheme, kb=kb, mean=mean: getattr(means[scheme, kb], mean),
        )
        for kb in buffers_kb
        for which, mean in (("all", "mean_all"), ("above the fold", "mean_atf"))
    ]
    names = dict.fromkeys(scheme for scheme, _ in means)
    output.show(width, output.of(names, ("scheme", str), *columns), shorten=False)
    if len(options.pages) > 1:
        for kb in buffers_kb:
            rows = [row for row in comparison.metric_means if row.send_buffer_kb == kb]
            of = f", {kb:g} kB buffer: means {over}"
            for text in _metric_tables(comparison, rows, options, of=of):
                print(f"\n{text}")


def _print_versions(
    comparison: Comparison, send_buffers_kb: list[float], width: int | None
) -> None:
    """Print the speedup of each other version over the first page, scheme by scheme."""
    original = escape_control(comparison.rows[0].page)
    for name in dict.fromkeys(comparison.versions.column("page")):
        for kb in send_buffers_kb:
            rows = [
                row for row in comparison.versions if (row.page, row.send_buffer_kb) == (name, kb)
            ]
            buffer = f", a send buffer of {kb:g} kB" if kb else ""
            version = escape_control(name)
            print(f"{version} against {original} with the same scheme{buffer}: speedups\n")
            is_computed = any(row.speedup_first_paint is not None for row in rows)
            heads = ["all", "atf", "page_load"]
            heads += ["first_paint", "largest_paint", "load_event"] if is_computed else []
            ratios = (
                (Column.ratio(_SPEEDUP_NAMES.get(head, head.replace("_", " "))), f"speedup_{head}")
                for head in heads
            )
            output.show(width, output.of(rows, "scheme", *ratios), shorten=False)
            print()


def _print_caveats(schemes: list[Scheme], width: int | None) -> None:
    """Print the caveats of the schemes."""
    notes = [f"{scheme.name}: {scheme.caveat}" for scheme in schemes if scheme.caveat]
    notes += [
        f"{scheme.name}: uses information that browsers do not have ({', '.join(scheme.knows)})"
        for scheme in schemes
        if scheme.knows
    ]
    if notes:
        print()
        output.show(width, notes)


def _print_page_tables(
    rows: list[ComparisonRow], sample_ms: float | None, width: int | None
) -> None:
    """Print the table of ByteIndexes, of those sampled, and of times of computing browsers."""
    exact = output.of(
        rows,
        "scheme",
        (Column.ms("all ms"), "byte_index_all_ms"),
        (Column.ms("above fold ms"), "byte_index_atf_ms"),
        (Column.ratio("speedup all"), "speedup_all"),
        (Column.ratio("speedup above fold"), "speedup_atf"),
        (Column.ms("document at ms"), "document_ms"),
        (Column.ms("last above fold at ms"), "last_atf_ms"),
        ("which is", lambda row: row.last_atf_id or "-"),
    )
    output.show(width, exact)
    print()
    if sample_ms is not None:  # speedups use the exact ones
        sampled = output.of(
            rows,
            "scheme",
            (Column.ms("all ms"), "byte_index_sampled_all_ms"),
            (Column.ms("above fold ms"), "byte_index_sampled_atf_ms"),
        )
        print(f"ByteIndexes {sampled_every(sample_ms)}:\n")
        output.show(width, sampled)
        print()
    if any(row.load_event_ms is not None for row in rows):
        index = (Column.ms("SpeedIndex ms"), "speed_index_ms")
        times = ("first_paint_ms", "largest_paint_ms", index, "load_event_ms")
        output.show(width, output.of(rows, "scheme", *times))
        print()


def _write_figures(comparison: Comparison, options: Options) -> None:
    """Write the figures of a comparison, one per page."""
    for path in (options.plot, options.race):
        if path is None:
            continue
        from h3sim.reporting import LoadPlots  # lazy: imports matplotlib

        targets = plot_paths(path, [page.name for page in options.pages])
        for page, target in zip(options.pages, targets, strict=True):
            loads = comparison.loads_of(page.name, send_buffer_kb=options.send_buffers_kb[0])
            plots = LoadPlots(loads)
            if path is options.race:
                plots.race(target)
            else:
                plots.save(target, **output.figure_style(options))
            output.report_written(target)


def plot_paths(path: str, names: Sequence[str]) -> list[Path]:
    """Return each page's figure path: *path*, or with the page's name before its extension.

    Names are truncated; characters unfit for file names become hyphens, so no name is a path.

    >>> [str(made) for made in plot_paths("a/b.png", ["docs/index", "docs-index"])]
    ['a/b-docs-index.png', 'a/b-docs-index-2.png']
    """
    target = Path(path)
    if len(names) == 1:
        return [target]
    paths: list[Path] = []
    for name in names:
        stem = f"{target.stem}-{_NON_FILE_CHARS.sub('-', name)[:_MAX_NAME_CHARS]}"
        # A number makes equal names unique.
        number = 1
        while (unique := target.with_stem(stem if number == 1 else f"{stem}-{number}")) in paths:
            number += 1
        paths.append(unique)
    return paths


@command(
    "compare",
    shared.PAGES,
    shared.marks(),
    shared.schemes(),
    shared.Halves(),
    shared.scheduler_process(
        "compare a driver (docs/conformance-protocol.md), too: it schedules for the clients"
        " of the first scheme"
    ),
    Argument(
        "--baseline NAME",
        "reference scheme",
        default="rr",
        read=lambda name, options: baseline_of(name, options.schemes),
    ),
    Argument(
        "--send-buffer-kb KB",
        "send buffers in kB (1000 bytes), comma-separated",
        Number(low=0, high=1e9),
        default="0,1000",
        many="commas",
        dest="send_buffers_kb",
    ),
    shared.LoadOptions(are_all=True, but=("send_buffer_kb",)),
    common.PLOT(
        "plot each page's loads by scheme: FILE.png, .svg or .pdf; with several pages the"
        " page's name is inserted before the extension",
        not_with="--seeds",
    ),
    *common.figure_options(),
    Argument(
        "--map FILE",
        "draw the speedups of clients before servers, with the first send buffer: FILE.png,"
        " .svg or .pdf",
        output=output.PLOT,
    ),
    Argument(
        "--race FILE",
        "write each page's loads as pages that fill in, side by side: FILE.html",
        output=output.HTML,
        not_with="--seeds",
    ),
    Argument("--mean MEAN", "mean over pages", default="arithmetic", choices=tuple(_MEAN_BY_NAME)),
    Argument(
        "--metric NAMES",
        "also show these metrics (repeatable, or comma-separated; `h3sim list metrics`)",
        action="append",
        many="commas",
        read=lambda name, _: resolve_metrics([name])[-1],
        dest="metrics",
    ),
    common.JSON("print h3sim-comparison/2 instead, with --seeds h3sim-seed-comparison/1"),
    Argument("--csv FILE", "write one row per load", output=()),
    common.SAMPLE_MS(),
    Argument(
        "--by-page",
        f"also show each page's table (default: for up to {_MAX_DETAILED_PAGES} pages)",
        not_with="--seeds",
        action=argparse.BooleanOptionalAction,
    ),
    common.NO_TRUNCATE,
    *group(
        "many seeds",
        Argument(
            "--seeds N",
            "load each with N seeds, from --seed on; show intervals and wins (needs scipy)",
            Integer(low=1),
            not_with="--sample-ms",
        ),
    ),
    *group(
        "many seeds",
        Argument("-j --workers N", "worker processes", Integer(low=1)),
        Argument("--sort", "sort by speedup, fastest first (default: as given)"),
        needs="--seeds",
    ),
    of=_run_compare,
    checks=(shared.check_names,),
)
def _print_comparison(found: Comparison | SeedComparison, options: Options) -> int:
    """Load pages with several schemes and show which are faster, and why.

    Examples:
      h3sim compare http2rulez davies-meenan
      h3sim compare papers --scheme fifo,bucket-html --baseline dfifo
      h3sim compare my-page.json --send-buffer-kb 0,14,280,1000 --mean geometric
      h3sim compare davies-meenan --plot schemes.png
      h3sim compare davies-meenan --network wifi-lossy --metric packets_lost,page_load_ms
      h3sim compare davies-meenan --scheme rr,bucket-html --race race.html
      h3sim compare corpus:small --scheme chrome-eps,h2o --scheduler-process ./driver
      h3sim compare corpus:small --loss 1% --rtt-ms 50 --seeds 30 --send-buffer-kb 0
      h3sim compare corpus --scheme fifo,chrome-eps --by-page --no-truncate | less -S

    A speedup is the ByteIndex of the baseline without a send buffer, divided by the ByteIndex of
    the scheme: 2.00 is twice as fast, 0.50 half as fast. Several versions of one page are also
    compared with the first version. Where bytes were lost or reordered, further tables have the
    bytes of head-of-line blocking: within streams, as over QUIC, and across them, as over TCP.
    """
    if isinstance(found, SeedComparison):
        return _print_over_seeds(found, options)
    width, buffers_kb = options.width, options.send_buffers_kb
    output.show(width, found.describe())
    print()
    if options.by_page or (options.by_page is None and len(options.pages) <= _MAX_DETAILED_PAGES):
        _print_pages(found, options)
    else:
        for page in options.pages:
            _print_notes(found, page.name, width)
    if found.are_versions:
        _print_versions(found, buffers_kb, width)
    else:
        _print_means(found, options)
    for kb in buffers_kb:
        means = found.means_by(statistics.geometric_mean)
        known = {row.scheme: row.mean_atf for row in means if row.send_buffer_kb == kb}
        _print_matrix({name: (x, None, None) for name, x in known.items() if x}, kb, options)
    if not _has_hol(found.metrics):
        print()
        output.show(width, output.NO_HOL)
    _print_caveats(options.schemes, width)
    return 0
