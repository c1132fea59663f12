"""What pictures show, in words: for who does not see them, and for what reads pages aloud."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from h3sim.documents import shown
from h3sim.errors import InputError, Problem
from h3sim.plots import congestion, dependencies, priority_state, throughput
from h3sim.plots.deltas import deltas_of
from h3sim.plots.labels import lane_labels
from h3sim.plots.page_plots import kinds_of
from h3sim.plots.window import window_of
from h3sim.units import to_ms

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from h3sim.page import Page
    from h3sim.results import Load, ResourceTiming, Which

__all__ = ["alt_of", "alt_of_page", "byte_index_alt"]


def alt_of(name: str, loads: Sequence[Load]) -> str:
    """Return the alternative text of the picture that the method *name* of `LoadPlots` draws.

    Raises:
        InputError: if there is no such picture, or it cannot be drawn of these loads.
    """
    if not isinstance(name, str) or name not in _ALTS:
        message = f"must be one of {', '.join(_ALTS)}, is {shown(name)}"
        raise InputError([Problem(key="name", message=message)])
    return _ALTS[name](loads)


def byte_index_alt(loads: Sequence[Load], which: Which = "atf") -> str:
    """Return the alternative text of the shares of bytes over time."""
    said = ", ".join(
        f"{name} has a ByteIndex of {index_ms:,.0f} ms"
        for name, load in zip(lane_labels(loads), loads, strict=True)
        if (index_ms := load.byte_index_or_none(which)) is not None
    )
    return f"A line per load rises from 0 to 1: {said}."


def alt_of_page(page: Page) -> str:
    """Return the alternative text of the picture of a page."""
    weights = ", ".join(
        f"{row.n_resources} of kind {row.kind.value} with {row.n_bytes / 1000:,.0f} kB"
        for row in kinds_of(page)
    )
    depth = max(node.depth for node in dependencies.nodes_of(page)) + 1
    return f"A bar per kind: {weights}. Below, what asks for what, in {depth} steps."


def _strip(loads: Sequence[Load]) -> str:
    runs = [
        f"{name}: {_changes(load):,} changes from one resource to another among"
        f" {len(load.trace.packet_rows):,} packets"
        for name, load in zip(lane_labels(loads), loads, strict=True)
    ]
    return f"A lane per load, a rectangle per packet, coloured by resource. {'; '.join(runs)}."


def _changes(load: Load) -> int:
    return sum(left != right for left, right in pairwise(load.trace.order))


def _waterfall(loads: Sequence[Load]) -> str:
    timings = loads[0].timings
    last = max(timings, key=lambda row: row.finished_ms)
    waits = max(timings, key=_wait_ms)
    return (
        f"A row per resource, in request order: {last.id} ends last, at {last.finished_ms:,.0f} ms;"
        f" {waits.id} waits longest for its first byte, {_wait_ms(waits):,.0f} ms."
    )


def _wait_ms(row: ResourceTiming) -> float:
    return row.first_byte_ms - row.requested_ms


def _figure(loads: Sequence[Load]) -> str:
    parts = [_strip(loads), byte_index_alt(loads)]
    return " ".join([*parts, _waterfall(loads)] if len(loads) == 1 else parts)


def _byte_ranges(loads: Sequence[Load]) -> str:
    return (
        "A row per stream, in which its bytes rise over time; an area shows what was delivered in"
        f" order. {loads[0].hol.stream_bytes:,} bytes waited for others of their stream."
    )


def _throughput(loads: Sequence[Load]) -> str:
    bins = throughput.bins_of(loads[0].trace, window_of(loads[:1]).end_ms)
    peak = max(bins, key=lambda span: span.arrived_mbps)
    return (
        f"Arriving bytes peak at {peak.arrived_mbps:.2f} Mbit/s, from {peak.start_ms:,.0f} ms on; a"
        " line shows what was delivered in order."
    )


def _congestion(loads: Sequence[Load]) -> str:
    samples = congestion.samples_of(loads[0].trace)
    lost = sum(sample.n_lost for sample in samples)
    largest = max(sample.congestion_window for sample in samples)
    return f"The window grows to {largest:,} bytes at most; {lost:,} packets were declared lost."


def _dependencies(loads: Sequence[Load]) -> str:
    resources = loads[0].page.resources
    chain = [resources[index].id for index in dependencies.chain_of(loads[0])]
    return f"A tree of requests; the end waited for {', then '.join(chain)}."


def _priority_tree(loads: Sequence[Load]) -> str:
    at_ns = priority_state.busiest_ns(loads[0])
    states = [each.state for each in priority_state.elements_of(loads[0], at_ns)]
    waits, idle = (states.count(state) for state in ("waits", "idle"))
    return (
        f"A tree from left to right, {to_ms(at_ns):,.0f} ms after navigation start: {waits}"
        f" responses wait to be sent, {idle} have nothing to send yet."
    )


def _deltas(loads: Sequence[Load]) -> str:
    first, second = loads
    rows = deltas_of(first, second)
    moved = [row.delta_ms for row in rows if row.delta_ms is not None]
    sooner, later = (sum(sign * delta_ms > 0 for delta_ms in moved) for sign in (-1, 1))
    other = lane_labels(loads)[1]
    return (
        f"A bar per resource: {sooner} of {len(rows)} are complete sooner with {other},"
        f" {later} later."
    )


_ALTS: dict[str, Callable[[Sequence[Load]], str]] = {
    "figure": _figure,
    "multiplexing": _strip,
    "byte_index": byte_index_alt,
    "waterfall": _waterfall,
    "byte_ranges": _byte_ranges,
    "throughput": _throughput,
    "congestion": _congestion,
    "dependencies": _dependencies,
    "priority_tree": _priority_tree,
    "deltas": _deltas,
}
