"""The tables in which a load is shown."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from h3sim.cli.tables import fitted, in_ms, plural, table
from h3sim.metrics import SAMPLE_MS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from h3sim.results import Load, Which

__all__ = [
    "batches",
    "connections_table",
    "load_figures",
    "multiplexing_figures",
    "path_table",
    "roots_table",
    "sampled_every",
]


def connections_table(load: Load, width: int | None) -> str:
    """Return what the connections were as a table."""
    rows = [
        (
            connection.number,
            ", ".join(connection.hosts),
            in_ms(connection.rtt_ms),
            in_ms(connection.opened_ms),
            in_ms(connection.ready_ms),
            connection.n_requests,
            f"{connection.stream_bytes:,}",
        )
        for connection in load.connections
    ]
    headers = ("connection", "hosts", "RTT ms", "opened ms", "ready ms", "requests", "bytes")
    return table(headers, rows, width=width, shorten=True)


def roots_table(load: Load, width: int | None) -> str:
    """Return what became of each root as a table, times since it was asked for."""
    rows = [
        (
            row.id,
            in_ms(row.requested_ms),
            row.resources,
            f"{row.bytes:,}",
            *map(in_ms, (row.byte_index_ms, row.byte_index_atf_ms, row.finished_ms)),
            *((in_ms(row.load_event_ms),) if load.load_event_ms is not None else ()),
        )
        for row in load.roots
    ]
    headers = ("root", "asked for at ms", "resources", "bytes", "ByteIndex all ms")
    times = ("above fold ms", "all there ms")
    computed = ("load event ms",) if load.load_event_ms is not None else ()
    return table((*headers, *times, *computed), rows, width=width, shorten=True)


def path_table(load: Load, width: int | None) -> str:
    """Return the critical path as a table, and what its time went to."""
    path = load.critical_path()
    parts = ("network", "bandwidth", "computation", "blocking")
    rows = [(row.work, row.id or "", *(in_ms(value_ms) for value_ms in row[2:])) for row in path]
    headers = (
        *("critical path", "resource", "from ms", "to ms"),
        *("network ms", "bandwidth ms", "compute ms", "blocking ms"),
    )
    sums = ", ".join(f"{part} {in_ms(sum(path.column(f'{part}_ms')))} ms" for part in parts)
    return f"{table(headers, rows, width=width, shorten=True)}\n\n{fitted(sums, width)}"


def sampled_every(sample_ms: float) -> str:
    """Return what a sampled ByteIndex is called, so that none takes it for the integral.

    >>> sampled_every(100)
    'sampled every 100 ms, as in Marx 2019'
    """
    as_there = ", as in Marx 2019" if sample_ms == SAMPLE_MS else ""
    return f"sampled every {sample_ms:g} ms{as_there}"


def load_figures(load: Load, *, sample_ms: float | None = None) -> list[tuple[str, str]]:
    """Return the figures of a load, each with its name; *sample_ms* adds sampled ByteIndexes."""
    hol = load.hol
    return [
        ("ByteIndex, all", _index(load, "all")),
        ("ByteIndex, above the fold", _index(load, "atf")),
        *_sampled(load, sample_ms),
        ("page load", _ms(load.page_load_ms)),
        *_milestones(load),
        ("packets", _packets(load)),
        ("HOL blocking within streams", _hol(hol.stream_bytes, hol.stream_delay_ms)),
        ("HOL blocking in one order", _hol(hol.connection_bytes, hol.connection_delay_ms)),
        ("delivery batches", batches(hol.stack_histogram)),
    ]


def _sampled(load: Load, sample_ms: float | None) -> list[tuple[str, str]]:
    if sample_ms is None:
        return []
    how = sampled_every(sample_ms)
    return [
        (f"ByteIndex, all, {how}", _index(load, "all", sample_ms)),
        (f"ByteIndex, above the fold, {how}", _index(load, "atf", sample_ms)),
    ]


def _milestones(load: Load) -> list[tuple[str, str]]:
    """Return what only a browser that computes its load can tell."""
    if load.first_paint_ms is None:
        return []
    return [
        ("first paint", _ms(load.first_paint_ms)),
        ("largest paint", _ms(load.largest_paint_ms)),
        (
            "SpeedIndex",
            "the page knows no viewport shares"
            if load.speed_index_ms is None
            else _ms(load.speed_index_ms),
        ),
        ("DOMContentLoaded", _ms(load.dom_content_loaded_ms)),
        ("load event", _ms(load.load_event_ms)),
    ]


def multiplexing_figures(load: Load) -> list[tuple[str, str]]:
    """Return how responses shared the link; what has no sense for the load is left out."""
    found, visual = load.multiplexing, load.visual
    window = f"in {in_ms(found.window_ms)} ms"
    rows: list[tuple[str, str | None]] = [
        ("interleaving", f"{found.interleaving:.3f}, runs of {found.mean_run_packets:.1f} packets"),
        ("streams in flight", f"{found.streams_in_flight:.1f} {window}"),
        ("Jain's index", _or_none(found.jain_index, f"{{:.3f}} {window}")),
        ("priority inversion", _or_none(found.inversion_bytes, "{:,} bytes")),
        ("reprioritization delay", _or_none(found.reprioritization_delay_ms, "{:,.1f} ms")),
        ("TTFB slope", _or_none(found.ttfb_slope_ms, "{:+,.1f} ms a request")),
        ("ImageIndex", _or_none(load.image_index_ms, "{:,.1f} ms")),
        ("bursts of losses", batches(found.loss_bursts) or None),
    ]
    if visual is not None:
        shown = ", ".join(in_ms(value_ms) for value_ms in visual)
        rows.append(("first change, VC85, 95, 99, last", f"{shown} ms"))
    return [(name, text) for name, text in rows if text is not None]


def _or_none(value: float | None, text: str) -> str | None:
    return None if value is None else text.format(value)


def batches(histogram: Mapping[Any, int]) -> str:
    """Return how often how many packets were delivered at once.

    >>> batches({1: 1168, 2: 3})
    '1,168 x 1 packet, 3 x 2 packets'
    """
    return ", ".join(f"{n:,} x {plural(int(height), 'packet')}" for height, n in histogram.items())


def _packets(load: Load) -> str:
    packets = load.packets
    return f"{packets.sent:,} sent, {packets.lost:,} lost, {packets.retransmitted:,} sent again"


def _index(load: Load, which: Which, sample_ms: float | None = None) -> str:
    index_ms = load.byte_index_or_none(which, sample_ms=sample_ms)
    return load.why_none(which) if index_ms is None else f"{in_ms(index_ms)} ms"


def _ms(value_ms: float | None) -> str:
    return "unknown" if value_ms is None else f"{in_ms(value_ms)} ms"


def _hol(n_bytes: int, delay_ms: float) -> str:
    """Return bytes and delay; the latter is a sum over packets, and may exceed the load."""
    return f"{n_bytes:,} bytes, {in_ms(delay_ms)} ms summed over packets"
