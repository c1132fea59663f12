"""Alternative texts of figures, for screen readers."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from h3sim.errors import InputError, ValidationIssue
from h3sim.reporting import time_series, trees, waterfall
from h3sim.reporting.labels import lane_labels
from h3sim.reporting.lane_layout import window_of
from h3sim.reporting.time_series import shown_set
from h3sim.reporting.waterfall import deltas_of
from h3sim.schema import format_value
from h3sim.table import decimals_of
from h3sim.units import to_ms

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from h3sim.results import Load, ResourceTiming, Which
    from h3sim.results.connections import Connection
    from h3sim.trace import Trace


def alt_of(name: str, loads: Sequence[Load]) -> str:
    """Return the alternative text of the picture that the method *name* of `LoadPlots` draws.

    Raises:
        InputError: if there is no such picture, or it cannot be drawn of these loads.
    """
    if not isinstance(name, str) or name not in _ALTS:
        message = f"must be one of {', '.join(_ALTS)}, is {format_value(name)}"
        raise InputError([ValidationIssue(key="name", message=message)])
    return _ALTS[name](loads)


def byte_index_alt(
    loads: Sequence[Load], which: Which = "atf", *, sample_ms: float | None = None
) -> str:
    """Return the alternative text of the shares of bytes over time, as `byte_index` draws them."""
    shown = shown_set(loads[0], which)
    indexes = [load.byte_index_or_none(shown, sample_ms=sample_ms) for load in loads]
    decimals = decimals_of(indexes, least=0)
    sampled = "" if sample_ms is None else f" (sampled every {sample_ms:g} ms)"
    stated = ", ".join(
        f"{name} has a ByteIndex of {index_ms:,.{decimals}f} ms{sampled}"
        for name, index_ms in zip(lane_labels(loads), indexes, strict=True)
        if index_ms is not None
    )
    return f"A line per load rises from 0 to 1: {stated or 'none has a byte to weigh'}."


def waterfall_alt(load: Load, fold: waterfall.Fold | None = None) -> str:
    """Return the alternative text of a waterfall, with a row per resource or what it is folded by.

    Raises:
        NothingToMeasureError: if the load asked for nothing.
    """
    timings = load.timings
    last = max(timings, key=lambda row: row.finished_ms)
    waits = max(timings, key=_wait_ms)
    return (
        f"A row per {fold or 'resource'}, in request order: {last.id} ends last, at"
        f" {last.finished_ms:,.0f} ms; {waits.id} waits longest for its first byte,"
        f" {_wait_ms(waits):,.0f} ms."
    )


def byte_ranges_alt(n_waited: int) -> str:
    """Return the alternative text of byte ranges, of whose bytes *n_waited* waited for others."""
    return (
        "A row per stream, in which its bytes rise over time; an area shows what was delivered in"
        f" order. {n_waited:,} bytes waited for others of their stream."
    )


def throughput_alt(trace: Trace, end_ms: float) -> str:
    """Return the alternative text of throughput until *end_ms*."""
    peak = max(time_series.bins_of(trace, end_ms), key=lambda span: span.arrived_mbps)
    return (
        f"Arriving bytes peak at {peak.arrived_mbps:.2f} Mbit/s, from {peak.start_ms:,.0f} ms on; a"
        " line shows what was delivered in order."
    )


def congestion_alt(load: Load, connection: Connection) -> str:
    """Return the alternative text of a connection's congestion window.

    Raises:
        NothingToMeasureError: if its recovery was not recorded.
    """
    samples = time_series.samples_of(connection.trace)
    lost = sum(sample.n_lost for sample in samples)
    largest = max(sample.congestion_window for sample in samples)
    description = time_series.describe_connection(load, connection)
    return (
        f"The window{f' of {description}' if description else ''} grows to {largest:,} bytes at"
        f" most; {lost:,}"
        " packets were declared lost."
    )


def transferred_alt(trace: Trace) -> str:
    """Return the alternative text of the bytes that a connection's server sent.

    Raises:
        NothingToMeasureError: if its recovery was not recorded.
    """
    last = time_series.transferred_of(trace)[-1]
    lost = f", {last.lost:,} declared lost" if last.lost else ""
    return (
        f"A line each rises over time to {last.sent:,} bytes sent by the server, and"
        f" {last.acknowledged:,} acknowledged{lost}."
    )


def rtt_alt(trace: Trace) -> str:
    """Return the alternative text of a connection's round-trip times.

    Raises:
        NothingToMeasureError: if its recovery was not recorded.
    """
    rows = time_series.rtt_rows_of(trace)
    latest = [to_ms(row.latest_rtt_ns) for row in rows]
    return (
        f"The latest round-trip time goes from {min(latest):,.1f} to {max(latest):,.1f} ms, the"
        f" smoothed one ends at {to_ms(rows[-1].smoothed_rtt_ns):,.1f} ms."
    )


def priority_tree_alt(load: Load, at_ns: int) -> str:
    """Return the alternative text of what the server's scheduler knew at an instant."""
    states = [each.state for each in trees.elements_of(load, at_ns)]
    waits, idle = (states.count(state) for state in ("waits", "idle"))
    return (
        f"A tree from left to right, {to_ms(at_ns):,.0f} ms after navigation start: {waits}"
        f" responses wait to be sent, {idle} have nothing to send yet."
    )


def delta_alt(first: Load, second: Load) -> str:
    """Return the alternative text of what moved between two loads, of one page or of two."""
    rows = deltas_of(first, second)
    moved = [row.delta_ms for row in rows if row.delta_ms is not None]
    sooner, later = (sum(sign * delta_ms > 0 for delta_ms in moved) for sign in (-1, 1))
    one, other = lane_labels((first, second))
    return (
        f"A bar per resource: {sooner} of {len(rows)} are complete sooner with"
        f" {'the second' if one == other else other}, {later} later."
    )


def _strip(loads: Sequence[Load]) -> str:
    runs = [
        f"{name}: {_changes(load):,} changes from one resource to another among"
        f" {len(load.trace.packet_rows):,} packets"
        for name, load in zip(lane_labels(loads), loads, strict=True)
    ]
    return f"A lane per load, a rectangle per packet, coloured by resource. {'; '.join(runs)}."


def _changes(load: Load) -> int:
    return sum(left != right for left, right in pairwise(load.trace.order))


def _wait_ms(row: ResourceTiming) -> float:
    return row.first_byte_ms - row.requested_ms


def _waterfall(loads: Sequence[Load]) -> str:
    return waterfall_alt(loads[0])


def _figure(loads: Sequence[Load]) -> str:
    parts = [_strip(loads), byte_index_alt(loads)]
    return " ".join([*parts, _waterfall(loads)] if len(loads) == 1 else parts)


def _byte_ranges(loads: Sequence[Load]) -> str:
    return byte_ranges_alt(loads[0].hol.stream_bytes)


def _throughput(loads: Sequence[Load]) -> str:
    return throughput_alt(loads[0].trace, window_of(loads[:1]).end_ms)


def _congestion(loads: Sequence[Load]) -> str:
    return congestion_alt(loads[0], time_series.connection_of(loads[0]))


def _dependencies(loads: Sequence[Load]) -> str:
    resources = loads[0].page.resources
    chain = [resources[index].id for index in trees.chain_of(loads[0])]
    return f"A tree of requests; the end waited for {', then '.join(chain)}."


def _priority_tree(loads: Sequence[Load]) -> str:
    return priority_tree_alt(loads[0], trees.busiest_ns(loads[0]))


def _deltas(loads: Sequence[Load]) -> str:
    first, second = loads
    return delta_alt(first, second)


_ALTS: dict[str, Callable[[Sequence[Load]], str]] = {
    "figure": _figure,
    "multiplexing": _strip,
    "byte_index": byte_index_alt,
    "waterfall": _waterfall,
    "byte_ranges": _byte_ranges,
    "throughput": _throughput,
    "congestion": _congestion,
    "transferred": lambda loads: transferred_alt(time_series.connection_of(loads[0]).trace),
    "rtt": lambda loads: rtt_alt(time_series.connection_of(loads[0]).trace),
    "dependencies": _dependencies,
    "priority_tree": _priority_tree,
    "deltas": _deltas,
}
