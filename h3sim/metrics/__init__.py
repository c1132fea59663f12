"""Metrics computed from a trace: pure functions of a trace, or of plain numbers.

They may import pages and traces only. Begin with `progress.py` (ByteIndex), then `hol.py`.
"""

from h3sim.metrics.critical_path import PathStep, critical_path
from h3sim.metrics.hol import (
    Frame,
    HolBlocking,
    SanderCount,
    count_blocked,
    count_packets,
    count_queue_drops,
    count_sander,
    frames_by_number,
    hol_blocking,
    loss_bursts,
    sander_count,
    stack_histogram,
    stacks,
)
from h3sim.metrics.lower_bounds import Response, lower_bound_ns
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
from h3sim.metrics.progress import SAMPLE_MS, Timing, byte_index_ns, object_index_ns, timings
from h3sim.metrics.visual import (
    Element,
    Paint,
    first_contentful_paint_ns,
    largest_paint_ns,
    seen_at_ns,
    speed_index_ns,
)

__all__ = [
    "SAMPLE_MS",
    "Element",
    "Frame",
    "HolBlocking",
    "Paint",
    "PathStep",
    "Response",
    "SanderCount",
    "Sent",
    "Timing",
    "byte_index_ns",
    "count_blocked",
    "count_packets",
    "count_queue_drops",
    "count_sander",
    "critical_path",
    "fairness",
    "first_contentful_paint_ns",
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
    "stack_histogram",
    "stacks",
    "streams_in_flight",
    "timings",
]
