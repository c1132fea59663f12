"""`h3sim header-compression`: HOL blocking and compression ratios over lossy paths."""

from __future__ import annotations

import json
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from h3sim.catalog.resources import root
from h3sim.cli.options import share
from h3sim.cli.parsing import FAILED, ErrorList, Parser, RawHelp, check_plot_path, progress_bar
from h3sim.cli.tables import add_wide, in_ms, terminal_width
from h3sim.config.load_config import FOR_HEADER_LISTS, LoadConfig
from h3sim.errors import InputError, ValidationIssue
from h3sim.headers import CODEC_NAMES, CodecSettings, HeaderCompression, codec_scheme
from h3sim.headers.base import HeaderLists
from h3sim.headers.qif import HeaderListError
from h3sim.importers.header_lists import read_exchanges
from h3sim.schema import format_value, is_quantity, join_words, shown_path
from h3sim.study.backends import dask_client
from h3sim.study.header_study import header_rows, rows_to_dict
from h3sim.study.sweep import sweep
from h3sim.table import Table
from h3sim.text import escape_control, plural
from h3sim.units import ms

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Sequence

    from h3sim.study.header_study import HeaderRow
    from h3sim.study.results import Results


_EPILOG = f"""\
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
"""
_TOLD = 10
_OVER_QUIC = "4g"
_SCHEME = "rr"
"""Default scheme: all responses share the link, so none waits for another to end."""
_MOST_RUNS = 10_000
_SOME_LOSS = 0.1
"""Loss assumed while checking the network: any loss turns a constant rate into links."""
_LARGEST_RTT_MS = 60_000.0
_LARGEST_TABLE_BYTES = 2**30 - 1
"""Largest table capacity that ls-qpack accepts; it rejects more as an encoder stream error."""


def add_command(commands: argparse._SubParsersAction[Parser], summary: str) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "header-compression",
        help=summary,
        description="Send header lists through header compression schemes over a lossy path;"
        " show head-of-line blocking and compression ratios.",
        epilog=_EPILOG,
        formatter_class=RawHelp,
    )
    parser.add_argument(
        "file", metavar="FILE", help="a HAR, a QIF file, or the name of shipped header lists"
    )
    parser.add_argument(
        "--schemes",
        metavar="NAMES",
        default=",".join(CODEC_NAMES),
        help="compression schemes, comma-separated (default: all)",
    )
    parser.add_argument(
        "--direction",
        choices=("requests", "responses"),
        default="requests",
        help="header lists to compress (default: %(default)s)",
    )
    _add_path(parser)
    parser.add_argument(
        "--seed", default="0", metavar="N", help="random seed (default: %(default)s)"
    )
    parser.add_argument("--json", action="store_true", help="print h3sim-headers/1 instead")
    parser.add_argument(
        "--plot",
        metavar="FILE",
        help="plot HOL delay and compression ratio: FILE.png, .svg or .pdf",
    )
    _add_where(parser)
    add_wide(parser)
    parser.set_defaults(command=_headers)


def _add_path(parser: argparse.ArgumentParser) -> None:
    """Add the options of the path, the number of runs and the decoder's limits."""
    parser.add_argument(
        "--model",
        choices=("model", "quic"),
        default="model",
        help="path model: that of Frindell 2017, or QUIC shared with response bodies"
        " (default: %(default)s)",
    )
    parser.add_argument(
        "--network",
        metavar="NAME",
        help=f"with --model quic: rate and queue of the path (default: {_OVER_QUIC})",
    )
    for option, default, metavar, text in (
        ("--rtt-ms", "100", "MS", "round-trip times, comma-separated"),
        ("--loss", "2%", "SHARES", "packet loss rates, comma-separated: 0.02, or 2%%"),
        ("--runs", "5", "N", "runs per condition, with consecutive seeds"),
        ("--table-bytes", "4096", "BYTES", "dynamic table capacity"),
        ("--blocked-streams", "100", "N", "maximum number of streams that QPACK may block"),
        ("--interval-ms", "10", "MS", "time between header lists of a QIF file without timestamps"),
    ):
        parser.add_argument(
            option, metavar=metavar, default=default, help=f"{text} (default: %(default)s)"
        )


def _add_where(parser: argparse.ArgumentParser) -> None:
    """Add the options of workers and the store, as for sweeps."""
    parser.add_argument("--store", metavar="FILE", help="store finished runs and reuse them")
    parser.add_argument(
        "-j", "--workers", type=int, metavar="N", help="worker processes (default: one per core)"
    )
    parser.add_argument(
        "--dask", metavar="ADDRESS", help="run on the workers of this dask.distributed scheduler"
    )
    parser.add_argument("--retry-failed", action="store_true", help="rerun loads that failed")


def _headers(options: argparse.Namespace) -> int:
    mistakes = ErrorList()
    wanted = _study_arguments(options, mistakes)
    interval_ms = _Numbers(options, mistakes).one("interval_ms", most=_LARGEST_RTT_MS)
    network = mistakes.collect(partial(_network, options))
    mistakes.collect(lambda: check_plot_path(options.plot))
    lists = mistakes.collect(partial(_read, options.file, options.direction, ms(interval_ms)))
    if mistakes.lines or lists is None:
        return mistakes.tell("header-compression")
    settings, first = wanted["settings"], wanted["seed"]
    results = _run(
        options,
        lists,
        header_compression=[
            HeaderCompression(codec=codec, settings=settings) for codec in wanted["codecs"]
        ],
        rtt_ms=wanted["rtts_ms"],
        loss=wanted["losses"],
        seeds=range(first, first + wanted["runs"]),
        network=network or FOR_HEADER_LISTS,
    )
    waits = results.resources() if len(results) else ()
    # With a failed run, a row would be a mean over other seeds than its neighbours.
    rows = [row for row in header_rows(results, waits) if row.runs == wanted["runs"]]
    if options.plot is not None and rows:
        _draw(rows, options.plot)
    given = {"source": lists.name, "of": options.direction, "interval_ms": interval_ms}
    _print(rows, options, {**given, "network": network, "settings": settings, "seed": first})
    return _print_counts(results, options)


def _network(options: argparse.Namespace) -> str | None:
    """Return the name of the network, or None with the path model.

    Raises:
        InputError: if a network is given with the path model, or cannot be used.
    """
    if options.model == "model":
        if options.network is not None:
            raise InputError(
                [ValidationIssue(key="--network", message="goes only with --model quic")]
            )
        return None
    network: str = options.network or _OVER_QUIC
    if LoadConfig(network=network, loss=_SOME_LOSS).path.named.independent_packets is not None:
        raise InputError(
            [
                ValidationIssue(
                    key="--network",
                    message=f"{network} cannot carry QUIC packets: choose another network",
                )
            ]
        )
    return network


def _run(options: argparse.Namespace, lists: HeaderLists, **study: Any) -> Results:
    with dask_client(options.dask) as client, progress_bar("run") as progress:
        return sweep(
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
            **study,
        )


def _print_counts(results: Results, options: argparse.Namespace) -> int:
    """Print run counts and failures to standard error, so the output stays reproducible."""
    errors, counts = results.errors, results.counts
    if counts is not None and (options.store or errors):
        print(f"h3sim header-compression: {plural(sum(counts), 'run')}: {counts}", file=sys.stderr)
    for error in errors[:_TOLD]:
        print(f"h3sim header-compression: failed: {escape_control(error)}", file=sys.stderr)
    return FAILED if errors else 0


def _print(rows: Sequence[HeaderRow], options: argparse.Namespace, given: dict[str, Any]) -> None:
    """Print the rows under the settings that produced them."""
    if options.json:
        print(json.dumps(rows_to_dict(rows, **given), allow_nan=False))
        return
    if not rows:
        return
    network, table_bytes = given["network"], given["settings"].table_bytes
    over = f", QUIC over {network}" if network else ""
    print(
        f"{escape_control(given['source'])}: {plural(rows[0].sections, options.direction[:-1])},"
        f" {plural(rows[0].runs, 'run')}, table of {table_bytes:,} bytes{over}"
    )
    _show(rows, terminal_width(options))


def _study_arguments(options: argparse.Namespace, mistakes: ErrorList) -> dict[str, Any]:
    """Return the arguments of the study, after collecting every error in the options."""
    schemes = list(dict.fromkeys(name.strip() for name in options.schemes.split(",")))
    for name in schemes:
        mistakes.collect(partial(codec_scheme, name))
    numbers = _Numbers(options, mistakes)
    return {
        "codecs": schemes,
        "rtts_ms": numbers.several("rtt_ms", most=_LARGEST_RTT_MS),
        "losses": numbers.several("loss"),
        "runs": numbers.whole("runs", least=1, most=_MOST_RUNS),
        "settings": CodecSettings(
            table_bytes=numbers.whole("table_bytes", most=_LARGEST_TABLE_BYTES),
            blocked_streams=numbers.whole("blocked_streams", most=2**30),
        ),
        "seed": numbers.whole("seed", most=2**63 - 1),
    }


def _read(given: str, what: str, interval_ns: int) -> HeaderLists:
    exchanges = read_exchanges(_path(given, what), interval_ns=interval_ns)
    lists = HeaderLists(
        name=Path(given).name, exchanges=exchanges, of_responses=what == "responses"
    )
    if not lists.sections:
        other = "responses" if what == "requests" else "requests"
        message = f"contains only header lists of {other}: use --direction {other}"
        raise HeaderListError([ValidationIssue(key="", message=message)], given)
    return lists


def _path(given: str, what: str) -> str:
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
        message = (
            f"is neither a file nor one of the shipped header lists: {join_words(sorted(shipped))}"
        )
        raise HeaderListError([ValidationIssue(key="", message=message)], shown_path(given))
    return given


class _Numbers:
    """Reader of numeric options that collects their errors."""

    def __init__(self, options: argparse.Namespace, mistakes: ErrorList) -> None:
        self._options = options
        self._mistakes = mistakes

    def several(self, name: str, *, most: float | None = None) -> list[float]:
        """Return the distinct numbers of an option; without *most* they are shares below 1."""
        texts = getattr(self._options, name).split(",")
        found = [self._number(name, text, most) for text in texts]
        return list(dict.fromkeys(value for value in found if value is not None))

    def one(self, name: str, *, most: float) -> float:
        """Return the number of an option, or 0 after an error."""
        return self._number(name, getattr(self._options, name), most) or 0.0

    def _number(self, name: str, text: str, most: float | None) -> float | None:
        value = _number(share if most is None else float, text.strip())
        if value is None or value < 0 or (value >= 1 if most is None else value > most):
            limit = "below 1" if most is None else f"at most {most:g}"
            self._wrong(name, f"must be at least 0 and {limit}, is {format_value(text)}")
            return None
        return value

    def whole(self, name: str, *, least: int = 0, most: int) -> int:
        """Return the integer of an option, or *least* after an error."""
        text = getattr(self._options, name)
        if text.isascii() and text.isdigit() and least <= int(text[:20]) <= most:
            return int(text)
        self._wrong(
            name, f"must be a whole number from {least} to {most:,}, is {format_value(text)}"
        )
        return least

    def _wrong(self, name: str, message: str) -> None:
        problem = ValidationIssue(key="--" + name.replace("_", "-"), message=message)
        self._mistakes.lines += InputError([problem]).lines()


def _number(read: Callable[[str], float], text: str) -> float | None:
    try:
        value = read(text)
    except ValueError:
        return None
    return value if is_quantity(value) else None


def _show(rows: Sequence[HeaderRow], width: int | None) -> None:
    headers = (
        *("scheme", "HOL ms per run", "per list", "p95", "max", "blocked", "runs without"),
        *("sent %", "saved %", "buffered bytes", "decoded"),
    )
    for rtt_ms, loss in dict.fromkeys((row.rtt_ms, row.loss) for row in rows):
        cell = [_cells(row) for row in rows if (row.rtt_ms, row.loss) == (rtt_ms, loss)]
        print(f"\nRTT {rtt_ms:g} ms, loss {100 * loss:g} %")
        print(Table(headers, cell).to_text(width))


def _cells(row: HeaderRow) -> tuple[str, ...]:
    return (
        row.scheme,
        in_ms(row.hol_total_ms),
        in_ms(row.hol_mean_ms),
        in_ms(row.hol_p95_ms),
        in_ms(row.hol_max_ms),
        f"{row.blocked:,.1f}",
        f"{row.runs_without_hol} of {row.runs}",
        f"{100 * row.ratio:.1f}",
        f"{row.saved_percent:.1f}",
        f"{row.held_compressed_bytes:,}",
        f"{row.held_decompressed_bytes:,}",
    )


def _draw(rows: list[HeaderRow], path: str) -> None:
    from h3sim.reporting.study_plots import save_header_plot

    save_header_plot(rows, path)
