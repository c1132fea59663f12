"""Metrics: a trace turned into numbers. Each is a pure function of a trace, or of plain numbers."""

from typing import TYPE_CHECKING

from h3sim.lazy import attach

if TYPE_CHECKING:
    from h3sim.metrics.bound import Response, lower_bound_ns
    from h3sim.metrics.count import count_packets, count_sander, frames_by_number, loss_bursts
    from h3sim.metrics.critical import PathStep, critical_path
    from h3sim.metrics.hol import HolBlocking, hol_blocking, stack_heights, stack_histogram, stacks
    from h3sim.metrics.indexes import SAMPLE_MS, byte_index_ns, object_index_ns
    from h3sim.metrics.multiplexing import (
        Sent,
        fairness,
        interleaving,
        inversion_bytes,
        reprioritization_delays_ns,
        sent_bytes,
        slope,
        streams_in_flight,
    )
    from h3sim.metrics.paint import Element, largest_paint_ns, seen_at_ns, speed_index_ns
    from h3sim.metrics.sander import Frame, SanderCount, sander_count
    from h3sim.metrics.timings import Timing, timings

__all__ = [
    "SAMPLE_MS",
    "Element",
    "Frame",
    "HolBlocking",
    "PathStep",
    "Response",
    "SanderCount",
    "Sent",
    "Timing",
    "byte_index_ns",
    "count_packets",
    "count_sander",
    "critical_path",
    "fairness",
    "frames_by_number",
    "hol_blocking",
    "interleaving",
    "inversion_bytes",
    "largest_paint_ns",
    "loss_bursts",
    "lower_bound_ns",
    "object_index_ns",
    "reprioritization_delays_ns",
    "sander_count",
    "seen_at_ns",
    "sent_bytes",
    "slope",
    "speed_index_ns",
    "stack_heights",
    "stack_histogram",
    "stacks",
    "streams_in_flight",
    "timings",
]

__getattr__, __dir__ = attach(
    __name__,
    bound="lower_bound_ns Response",
    count="count_packets count_sander frames_by_number loss_bursts",
    critical="critical_path PathStep",
    hol="hol_blocking HolBlocking stack_heights stack_histogram stacks",
    indexes="byte_index_ns object_index_ns SAMPLE_MS",
    multiplexing="fairness interleaving inversion_bytes reprioritization_delays_ns Sent sent_bytes"
    " slope streams_in_flight",
    paint="Element largest_paint_ns seen_at_ns speed_index_ns",
    sander="Frame sander_count SanderCount",
    timings="Timing timings",
)
