"""Multiplexing of a load's responses, in milliseconds and plain numbers."""

from __future__ import annotations

from statistics import fmean
from typing import TYPE_CHECKING, NamedTuple

from h3sim import metrics
from h3sim.units import NS_PER_MS, to_ms

if TYPE_CHECKING:
    from collections.abc import Sequence
    from fractions import Fraction

    from h3sim.metrics import Timing
    from h3sim.page import Page
    from h3sim.trace import Trace


_LEAST_WINDOW_PACKETS = 14
"""The number of packets in a window if the round-trip time is 0."""


class Multiplexing(NamedTuple):
    """Multiplexing of responses, as defined in `docs/metrics.md`; None if undefined.

    *window_ms* is the window over which streams in flight and Jain's index are computed.
    """

    interleaving: float
    mean_run_packets: float
    window_ms: float
    streams_in_flight: float
    jain_index: float | None
    inversion_bytes: int | None
    reprioritization_delay_ms: float | None
    ttfb_slope_ms: float | None
    loss_bursts: dict[int, int]


def multiplexing_of(
    page: Page, trace: Trace, timings: Sequence[Timing], *, rtt_ns: int
) -> Multiplexing:
    """Return the multiplexing of a load; *rtt_ns* is the round-trip time of its network."""
    sent = metrics.sent_bytes(trace)
    order = [row.stream_id for row in sent]
    window_ns = rtt_ns or _usual_window_ns(sent)
    spans = _spans(page, trace)
    signals = [(signal.at_ns, signal.element_id, signal.signal) for signal in trace.signals]
    delays_ns = metrics.reprioritization_delays_ns(sent, signals)
    n_runs = sum(1 for i, stream_id in enumerate(order) if not i or order[i - 1] != stream_id)
    waits_ns = [timing.first_byte_at_ns - timing.requested_at_ns for timing in timings]
    return Multiplexing(
        interleaving=float(metrics.interleaving(order) or 0),
        mean_run_packets=len(order) / n_runs,
        window_ms=to_ms(window_ns),
        streams_in_flight=float(metrics.streams_in_flight(sent, window_ns) or 0),
        jain_index=_float(metrics.fairness(sent, spans, window_ns)),
        inversion_bytes=metrics.inversion_bytes(sent, spans, signals),
        reprioritization_delay_ms=fmean(delays_ns) / NS_PER_MS if delays_ns else None,
        ttfb_slope_ms=_float(metrics.slope(waits_ns), NS_PER_MS),
        loss_bursts=metrics.loss_bursts(trace.packet_rows),
    )


def _usual_window_ns(sent: Sequence[metrics.Sent]) -> int:
    """Return the time of that many packets at the mean rate of the load."""
    span_ns = sent[-1].at_ns - sent[0].at_ns
    return max(1, span_ns * _LEAST_WINDOW_PACKETS // max(1, len(sent) - 1))


def _spans(page: Page, trace: Trace) -> dict[int, tuple[int, int]]:
    """Return the span of each response from ready until its last byte first left.

    Lost data cannot be sent again until the server detects the loss, a round trip later, so a
    response that waits for that does not hold back others.
    """
    ended_at_ns: dict[int, int] = {}
    reached: dict[int, int] = {}
    sent_at_ns, _, streams, offsets, lengths, *_ = trace.packet_rows.columns
    for at_ns, stream_id, offset, n_bytes in zip(
        sent_at_ns, streams, offsets, lengths, strict=True
    ):
        # A response without bytes still sends a frame with its end.
        if offset + n_bytes > reached.get(stream_id, -1):
            reached[stream_id] = offset + n_bytes
            ended_at_ns[stream_id] = at_ns
    return {
        request.stream_id: (
            request.arrived_at_ns + page.resources[request.resource].server_ns,
            ended_at_ns[request.stream_id],
        )
        for request in trace.requests
        if request.stream_id in ended_at_ns
    }


def _float(value: Fraction | None, divisor: int = 1) -> float | None:
    return None if value is None else float(value / divisor)
