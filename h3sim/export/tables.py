"""Tables of a load: its metrics, multiplexing, connections, navigations and critical path."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from h3sim.load.milestones import PARTS_OF_TIME
from h3sim.metrics import SAMPLE_MS, count_blocked
from h3sim.values.table import MISSING, Column, Table
from h3sim.values.text import plural

if TYPE_CHECKING:
    from collections.abc import Mapping

    from h3sim.engine.connections import PacketCount
    from h3sim.load.load import Load, Which


def _in_ms(value_ms: float | None) -> str:
    return MISSING if value_ms is None else f"{value_ms:,.1f}"


def connections_table(load: Load) -> Table[Any]:
    """Return the table of connections."""
    rows = (
        (
            connection.number,
            ", ".join(connection.hosts),
            connection.rtt_ms,
            connection.opened_ms,
            connection.ready_ms,
            connection.n_requests,
            connection.stream_bytes,
        )
        for connection in load.connections
    )
    times = map(Column.ms, ("RTT ms", "opened ms", "ready ms"))
    return Table(("connection", "hosts", *times, "requests", "bytes"), rows)


def navigations_table(load: Load) -> Table[Any]:
    """Return the table of navigations, with times since each was requested."""
    load_event = (Column.ms("load event ms"), "load_event_ms")  # only of computed loads
    return Table.select(
        load.roots,
        ("root", "id"),
        (Column.ms("requested at ms"), "requested_ms"),
        ("resources", "resources"),
        ("bytes", "bytes"),
        (Column.ms("ByteIndex all ms"), "byte_index_ms"),
        (Column.ms("above fold ms"), "byte_index_atf_ms"),
        (Column.ms("complete ms"), "finished_ms"),
        *((load_event,) if load.load_event_ms is not None else ()),
    )


def critical_path_table(load: Load) -> Table[Any]:
    """Return the critical path to the load event."""
    headings = ("from ms", "to ms", "network ms", "bandwidth ms", "compute ms", "blocking ms")
    rows = ((work, id_ or "", *times_ms) for work, id_, *times_ms in load.critical_path())
    return Table(("critical path", "resource", *map(Column.ms, headings)), rows)


def critical_path_sums(load: Load) -> str:
    """Return the time of the critical path, split into network, bandwidth and so on."""
    path = load.critical_path()
    sums_ms = {part: sum(path.column(f"{part}_ms")) for part in PARTS_OF_TIME}
    return ", ".join(f"{part} {_in_ms(sum_ms)} ms" for part, sum_ms in sums_ms.items())


def sampled_every(sample_ms: float) -> str:
    """Return the label that distinguishes a sampled ByteIndex from the exact one.

    >>> sampled_every(100)
    'sampled every 100 ms, as in Marx 2019'
    """
    source = ", as in Marx 2019" if sample_ms == SAMPLE_MS else ""
    return f"sampled every {sample_ms:g} ms{source}"


def metrics_of(load: Load, *, sample_ms: float | None = None) -> list[tuple[str, str]]:
    """Return the metrics of a load as (name, value); *sample_ms* adds sampled ByteIndexes.

    Head-of-line blocking is among them if any bytes were blocked.
    """
    hol = load.hol
    blocked = [count_blocked(connection.trace) for connection in load.connections]
    n_within, n_across = (sum(counts) for counts in zip(*blocked, strict=True))
    blocking = [("delivery batches", batches(hol.stack_histogram))]
    if hol.stream_bytes or hol.connection_bytes:
        within = _hol(hol.stream_bytes, hol.stream_delay_ms, n_within)
        across = _hol(hol.connection_bytes, hol.connection_delay_ms, n_across)
        blocking[:0] = [
            ("HOL blocking within streams", within),
            ("HOL blocking across streams", across),
        ]
    elif hol.stack_histogram.keys() <= {1}:
        blocking = []  # each packet was delivered when it arrived
    return [
        ("ByteIndex, all", _index(load, "all")),
        ("ByteIndex, above the fold", _index(load, "atf")),
        *_sampled_rows(load, sample_ms),
        ("page load", _ms(load.page_load_ms)),
        *_milestones(load),
        ("downlink packets", _packets(load)),
        *_uplink(load.packets),
        *blocking,
    ]


def _sampled_rows(load: Load, sample_ms: float | None) -> list[tuple[str, str]]:
    """Return the sampled ByteIndexes, if an interval is given."""
    if sample_ms is None:
        return []
    label = sampled_every(sample_ms)
    return [
        (f"ByteIndex, all, {label}", _index(load, "all", sample_ms)),
        (f"ByteIndex, above the fold, {label}", _index(load, "atf", sample_ms)),
    ]


def _milestones(load: Load) -> list[tuple[str, str]]:
    """Return paint and load-event times, which only rendering browsers have."""
    if load.load_event_ms is None:
        return []
    load_event = ("load event", _ms(load.load_event_ms))
    if load.first_paint_ms is None:
        return [load_event]
    bounds = load.paint_bounds
    first_ratio = largest_ratio = index_ratio = None
    if bounds is not None:
        first_ratio, largest_ratio = bounds.first_paint_ratio, bounds.largest_paint_ratio
        index_ratio = bounds.speed_index_ratio
    return [
        ("first paint", _with_ratio(load.first_paint_ms, first_ratio)),
        ("first contentful paint", _ms(load.fcp_ms)),
        ("largest paint", _with_ratio(load.largest_paint_ms, largest_ratio)),
        (
            "SpeedIndex",
            "the page has no viewport shares"
            if load.speed_index_ms is None
            else _with_ratio(load.speed_index_ms, index_ratio),
        ),
        ("DOMContentLoaded", _ms(load.dom_content_loaded_ms)),
        load_event,
    ]


def multiplexing_of(load: Load) -> list[tuple[str, str]]:
    """Return the metrics of multiplexing and prioritization that apply to the load."""
    result, visual = load.multiplexing, load.visual
    window = f"in {_in_ms(result.window_ms)} ms"
    run = f"runs of {result.mean_run_packets:.1f} packets"
    rows: list[tuple[str, str | None]] = [
        ("interleaving", f"{result.interleaving:.3f}, {run}"),
        ("streams in flight", f"{result.streams_in_flight:.1f} {window}"),
        ("Jain's index", _or_none(result.jain_index, f"{{:.3f}} {window}")),
        ("priority inversion", _or_none(result.inversion_bytes, "{:,} bytes")),
        ("reprioritization delay", _or_none(result.reprioritization_delay_ms, "{:,.1f} ms")),
        ("TTFB slope", _or_none(result.ttfb_slope_ms, "{:+,.1f} ms per request")),
        ("ImageIndex", _or_none(load.image_index_ms, "{:,.1f} ms")),
        ("loss bursts", batches(result.loss_bursts) or None),
    ]
    if visual is not None:
        times = ", ".join(_in_ms(value_ms) for value_ms in visual)
        rows.append(("first change, VC85, 95, 99, last", f"{times} ms"))
    return [(name, text) for name, text in rows if text is not None]


def _or_none(value: float | None, template: str) -> str | None:
    return None if value is None else template.format(value)


def batches(histogram: Mapping[Any, int]) -> str:
    """Describe the number of delivery batches or loss bursts by their size in packets.

    >>> batches({1: 1168, 2: 3})
    '1,168 x 1 packet, 3 x 2 packets'
    """
    return ", ".join(f"{n:,} x {plural(int(height), 'packet')}" for height, n in histogram.items())


def _packets(load: Load) -> str:
    packets = load.packets
    losses = describe_losses(packets)
    return f"{packets.sent:,} sent, {losses}, {packets.retransmitted:,} retransmitted"


def _uplink(packets: PacketCount) -> list[tuple[str, str]]:
    """Return the counts of the client's packets, and bytes both ways, if there are such packets."""
    if packets.uplink_sent is None:
        return []
    n_bytes = f"{packets.sent_bytes:,} down, {packets.uplink_bytes:,} up, retransmissions included"
    lost = f", {packets.uplink_lost:,} lost" if packets.uplink_lost else ""
    sent = f"{packets.uplink_sent:,} sent{lost}"
    return [("uplink packets", sent), ("stream bytes sent", n_bytes)]


def describe_losses(packets: PacketCount) -> str:
    """Describe how many packets were lost on the way, and how many the queue dropped.

    >>> from h3sim.engine import PacketCount
    >>> describe_losses(PacketCount(sent=90, lost=5, retransmitted=5, queue_drops=3, sent_bytes=9))
    '2 lost on the way, 3 dropped by the queue'
    >>> describe_losses(PacketCount(sent=90, lost=5, retransmitted=5, queue_drops=5, sent_bytes=9))
    '5 dropped by the queue'
    """
    if not packets.queue_drops:
        return f"{packets.lost:,} lost"
    dropped = f"{packets.queue_drops:,} dropped by the queue"
    n_on_the_way = packets.lost - packets.queue_drops
    return f"{n_on_the_way:,} lost on the way, {dropped}" if n_on_the_way else dropped


def _index(load: Load, which: Which, sample_ms: float | None = None) -> str:
    index_ms = load.byte_index_or_none(which, sample_ms=sample_ms)
    return load.missing_reason(which) if index_ms is None else f"{_in_ms(index_ms)} ms"


def _ms(value_ms: float | None) -> str:
    return "unknown" if value_ms is None else f"{_in_ms(value_ms)} ms"


def _with_ratio(value_ms: float | None, ratio: float | None) -> str:
    bound = "" if ratio is None else f", {ratio:.2f} times its lower bound"
    return f"{_ms(value_ms)}{bound}"


def _hol(n_bytes: int, delay_ms: float, n_blocked: int) -> str:
    """Format blocked bytes, and the mean wait: the sum may exceed the time of the load by far."""
    if not n_blocked:
        return f"{n_bytes:,} bytes"
    return f"{n_bytes:,} bytes, held back for {_in_ms(delay_ms / n_blocked)} ms on average"
