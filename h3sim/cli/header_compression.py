"""`h3sim header-compression`: schemes of header compression over a lossy path."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from h3sim import catalog
from h3sim.catalog.resources import root
from h3sim.cli import common, output
from h3sim.cli.command import FAILED, Argument, Options, command
from h3sim.headers import CODEC_NAMES, CodecSettings, HeaderCompression, codec_scheme
from h3sim.headers.base import HeaderListError, HeaderLists
from h3sim.importers.header_lists import read_exchanges
from h3sim.load.network_path import NETWORK_FOR_HEADER_LISTS
from h3sim.schema import join_words, shown_path
from h3sim.schema.values import Integer, Number, Share
from h3sim.study.header_study import header_rows, rows_to_dict
from h3sim.study.runner import dask_client
from h3sim.study.sweep import sweep
from h3sim.values.errors import InputError
from h3sim.values.table import Column, Table
from h3sim.values.text import ELLIPSIS, escape_control, plural
from h3sim.values.units import ms

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from h3sim.study.header_study import HeaderRow
    from h3sim.study.results import Results


_MAX_SHOWN_ERRORS = 10
_DEFAULT_NETWORK = "4g"
"""Network of `--model quic`."""
_SCHEME = "rr"
"""Scheme of all runs: responses share the link, so that none waits for another to end."""
_MAX_RUNS = 10_000
_MAX_RTT_MS = 60_000.0
_MAX_TABLE_BYTES = 2**30 - 1
"""Largest table capacity that ls-qpack accepts; it rejects more as an encoder stream error."""


def _check_network(options: Options) -> None:
    """Refuse a network with the path model, and one that cannot carry QUIC packets.

    Raises:
        InputError: if the network cannot be used.
    """
    if options.model == "model":
        if options.network is not None:
            raise InputError.at("--network", "goes only with --model quic")
        return
    network = options.network or _DEFAULT_NETWORK
    if catalog.load_network(network).independent_packets is not None:
        message = f"{network} cannot carry QUIC packets: choose another network"
        raise InputError.at("--network", message)


def _print_counts(results: Results, options: Options) -> int:
    """Print run counts and failures to standard error, so the output stays reproducible."""
    errors, finished = results.errors, results.counts
    if finished is not None and (options.store or errors):
        runs = plural(sum(finished), "run")
        print(f"h3sim header-compression: {runs}: {finished}", file=sys.stderr)
    for error in errors[:_MAX_SHOWN_ERRORS]:
        print(f"h3sim header-compression: failed: {escape_control(error)}", file=sys.stderr)
    return FAILED if errors else 0


def _read_lists(given: str, options: Options) -> HeaderLists:
    """Return the header lists of a file, in the direction of the options or else of the file."""
    what, interval_ms = options.direction or "requests", options.interval_ms or 0
    exchanges = read_exchanges(_path_of_lists(given, what), interval_ns=ms(interval_ms))
    if options.direction is None and not any(each.request for each in exchanges):
        what = "responses"
    lists = HeaderLists(
        name=Path(given).name, exchanges=exchanges, of_responses=what == "responses"
    )
    if not lists.sections:
        other = "responses" if what == "requests" else "requests"
        message = f"contains only header lists of {other}: use --direction {other}"
        raise HeaderListError.at("", message, given)
    return lists


def _path_of_lists(given: str, what: str) -> str:
    """Return the file of the shipped header lists with that name, or *given* as a path."""
    kind = "req" if what == "requests" else "resp"
    folder = root("corpora") / "headers"
    shipped = {
        file.name.partition(".")[0]: str(file)
        for file in folder.iterdir()
        if file.name.endswith(f".{kind}.qif")
    }
    if given in shipped:
        return shipped[given]
    if not Path(given).suffix and not Path(given).exists():
        names = join_words(sorted(shipped))
        message = f"is neither a file nor one of the shipped header lists: {names}"
        raise HeaderListError.at("", message, shown_path(given))
    return given


def _print_rows(rows: Sequence[HeaderRow], width: int | None) -> None:
    """Print one table per path."""
    for rtt_ms, loss in dict.fromkeys((row.rtt_ms, row.loss) for row in rows):
        own = [row for row in rows if (row.rtt_ms, row.loss) == (rtt_ms, loss)]
        saved = (("saved %", lambda row: f"{row.saved_percent:.1f}"),)
        text = _build_table(own, *saved).to_text(width)
        # Without the column "saved", which follows from "sent", if names would be shortened.
        text = _build_table(own).to_text(width) if ELLIPSIS in text else text
        print(f"\nRTT {rtt_ms:g} ms, loss {100 * loss:g} %")
        print(text)


def _build_table(rows: Sequence[HeaderRow], *saved: tuple[str, Callable[[Any], str]]) -> Table[Any]:
    """Return the table of all codecs over one path."""
    return output.of(
        rows,
        ("scheme", "scheme"),
        (Column.ms("HOL ms per run"), "hol_total_ms"),
        (Column.ms("per list"), "hol_mean_ms"),
        (Column.ms("p95"), "hol_p95_ms"),
        (Column.ms("max"), "hol_max_ms"),
        ("blocked", lambda row: f"{row.blocked:,.1f}"),
        ("runs without", lambda row: f"{row.runs_without_hol} of {row.runs}"),
        ("sent %", lambda row: f"{100 * row.ratio:.1f}"),
        *saved,
        ("buffered bytes", "held_compressed_bytes"),
        ("decoded", "held_decompressed_bytes"),
    )


def _read_codec(name: str, _: Options) -> str:
    codec_scheme(name)
    return name


@command(
    "header-compression",
    Argument(
        "--schemes NAMES",
        "compression schemes, comma-separated (default: all)",
        default=",".join(CODEC_NAMES),
        many="commas",
        read=_read_codec,
    ),
    Argument(
        "--model PATH",
        "path model: that of Frindell 2017, or QUIC shared with response bodies",
        default="model",
        choices=("model", "quic"),
    ),
    Argument(
        "--network NAME",
        f"with --model quic: rate and queue of the path (default: {_DEFAULT_NETWORK})",
    ),
    Argument(
        "--rtt-ms MS",
        "round-trip times, comma-separated",
        Number(low=0, high=_MAX_RTT_MS),
        default="100",
        many="commas",
    ),
    Argument(
        "--loss SHARES",
        "packet loss rates, comma-separated: 0.02, or 2%",
        Share(),
        default="2%",
        many="commas",
    ),
    Argument(
        "--runs N",
        "runs per condition, with consecutive seeds",
        Integer(low=1, high=_MAX_RUNS),
        default=5,
    ),
    Argument(
        "--table-bytes BYTES",
        "dynamic table capacity",
        Integer(low=0, high=_MAX_TABLE_BYTES),
        default=4096,
    ),
    Argument(
        "--blocked-streams N",
        "maximum number of streams that QPACK may block",
        Integer(low=0, high=2**30),
        default=100,
    ),
    Argument(
        "--interval-ms MS",
        "time between header lists of a QIF file without timestamps",
        Number(low=0, high=_MAX_RTT_MS),
        default=10.0,
    ),
    Argument(
        "--direction LISTS",
        "header lists to compress (default: requests, or responses if the file has no others)",
        choices=("requests", "responses"),
    ),
    Argument("FILE", "a HAR, a QIF file, or the name of shipped header lists", read=_read_lists),
    Argument("--seed N", "random seed", Integer(low=0, high=2**63 - 1), default=0),
    common.JSON("print h3sim-headers/1 instead"),
    common.PLOT("plot HOL delay and compression ratio: FILE.png, .svg or .pdf"),
    *common.figure_options(),
    common.STORE,
    common.WORKERS,
    common.DASK,
    common.RETRY,
    common.NO_TRUNCATE,
    progress="run",
    checks=(_check_network,),
    about=f"""Send header lists through header compression schemes over a lossy path;
show head-of-line blocking and compression ratios.

examples:
  h3sim header-compression tabler-gallery
  h3sim header-compression requests.qif --schemes hpack,qpack,qcram --rtt-ms 100 --loss 2%
  h3sim header-compression load.har --rtt-ms 10,50,100,200,500 --loss 0,1%,2%,5%,10% --plot hol.png
  h3sim header-compression load.har --direction responses --table-bytes 65536 --json > rows.json
  h3sim header-compression load.har --model quic --network fibre
  h3sim header-compression load.har --rtt-ms 10,50,100 --runs 100 --store headers.db -j 4

schemes: {", ".join(CODEC_NAMES)}

Without --model quic the path follows Frindell 2017: half a round trip, plus 1.1 to 2 round trips
each time a packet of 1400 bytes is lost. HOL delay is the time from a header list's arrival until
it is decoded.

The store keeps every finished run; if interrupted, run the same command again to resume.
""",
)
def _run_header_compression(options: Options, progress: output.Progress | None) -> int:
    """Run the study that the options describe, and print it."""
    lists = options.file
    direction = "responses" if lists.of_responses else "requests"
    settings = CodecSettings(
        table_bytes=options.table_bytes, blocked_streams=options.blocked_streams
    )
    network = (options.network or _DEFAULT_NETWORK) if options.model == "quic" else None
    with dask_client(options.dask) as client:
        results = sweep(
            lists,
            schemes=_SCHEME,
            handshake=False,
            resources=True,
            name=lists.name,
            store=options.store,
            executor=client,
            workers=options.workers,
            retry_failed=options.retry_failed,
            progress=progress or False,
            header_compression=[
                HeaderCompression(codec=codec, settings=settings) for codec in options.schemes
            ],
            rtt_ms=options.rtt_ms,
            loss=options.loss,
            seeds=range(options.seed, options.seed + options.runs),
            network=network or NETWORK_FOR_HEADER_LISTS,
        )
    delays = results.resources() if len(results) else ()
    # With a failed run, a row would be a mean over other seeds than its neighbours.
    rows = [row for row in header_rows(results, delays) if row.runs == options.runs]
    if options.plot is not None and rows:
        from h3sim.reporting.study_plots import save_header_plot  # lazy: imports matplotlib

        save_header_plot(rows, options.plot, **output.figure_style(options))
        output.report_written(options.plot)
    if options.json:
        given = {"source": lists.name, "of": direction, "seed": options.seed}
        given |= {"interval_ms": options.interval_ms, "network": network, "settings": settings}
        output.print_json(rows_to_dict(rows, **given))
    elif rows:
        over = f", QUIC over {network}" if network else ""
        n_lists = plural(rows[0].sections, direction[:-1])
        n_runs = plural(rows[0].runs, "run")
        size = f"table of {options.table_bytes:,} bytes"
        print(escape_control(f"{lists.name}: {n_lists}, {n_runs}, {size}{over}"))
        _print_rows(rows, options.width)
    return _print_counts(results, options)
