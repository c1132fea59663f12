"""Packets counted, and put together from the rows of a trace."""

from __future__ import annotations

from typing import TYPE_CHECKING

from h3sim.metrics.sander import Frame, SanderCount, sander_count
from h3sim.ranges import Ranges

if TYPE_CHECKING:
    from collections.abc import Iterator

    from h3sim.trace import Trace

__all__ = ["count_packets", "count_sander", "frames_by_number"]


def count_packets(trace: Trace) -> tuple[int, int, int]:
    """Return how many data packets were sent, were lost, and carried something sent before."""
    rows, columns = trace.packet_rows, trace.packet_rows.columns
    sent = dict.fromkeys(columns.number)
    asked_bytes = sum(request.length_bytes for request in trace.requests)
    if rows.is_in_order and sum(columns.length_bytes) == asked_bytes:
        return len(sent), 0, 0
    lost: dict[int, None] = {}
    again: dict[int, None] = {}
    known: dict[int, Ranges] = {}
    for _, arrived_at_ns, stream_id, offset, n_bytes, number, _ in rows:
        if arrived_at_ns is None:
            lost[number] = None
        ranges = known.get(stream_id)
        if ranges is None:
            ranges = known[stream_id] = Ranges()
        if ranges.add(offset, offset + n_bytes) < n_bytes:
            again[number] = None
    return len(sent), len(lost), len(again)


def count_sander(trace: Trace) -> SanderCount:
    """Return Sander's count over the packets of *trace*."""
    if trace.packet_rows.is_in_order:
        return SanderCount(0, 0)  # no frame has a hole before it
    return sander_count(frames_by_number(trace))


def frames_by_number(trace: Trace) -> Iterator[list[Frame] | None]:
    """Yield each data packet's frames by rising number; None for one that was lost."""
    frames: dict[int, list[Frame] | None] = {}
    for _, arrived_at_ns, stream_id, offset, n_bytes, number, _ in trace.packet_rows:
        if arrived_at_ns is None:
            frames[number] = None
            continue
        known = frames.setdefault(number, [])
        if known is not None:
            known.append(Frame(stream_id, offset, n_bytes))
    yield from (frames[number] for number in sorted(frames))
