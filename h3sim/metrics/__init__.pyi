"""The public names of `h3sim.metrics`, each loaded when it is first used."""

from h3sim.metrics.bound import (
    Response as Response,
    lower_bound_ns as lower_bound_ns,
)
from h3sim.metrics.count import (
    count_packets as count_packets,
    count_sander as count_sander,
    frames_by_number as frames_by_number,
    loss_bursts as loss_bursts,
)
from h3sim.metrics.critical import (
    PathStep as PathStep,
    critical_path as critical_path,
)
from h3sim.metrics.hol import (
    HolBlocking as HolBlocking,
    hol_blocking as hol_blocking,
    stack_heights as stack_heights,
    stack_histogram as stack_histogram,
    stacks as stacks,
)
from h3sim.metrics.indexes import (
    SAMPLE_MS as SAMPLE_MS,
    byte_index_ns as byte_index_ns,
    object_index_ns as object_index_ns,
)
from h3sim.metrics.multiplexing import (
    Sent as Sent,
    fairness as fairness,
    interleaving as interleaving,
    inversion_bytes as inversion_bytes,
    reprioritization_delays_ns as reprioritization_delays_ns,
    sent_bytes as sent_bytes,
    slope as slope,
    streams_in_flight as streams_in_flight,
)
from h3sim.metrics.paint import (
    Element as Element,
    largest_paint_ns as largest_paint_ns,
    seen_at_ns as seen_at_ns,
    speed_index_ns as speed_index_ns,
)
from h3sim.metrics.sander import (
    Frame as Frame,
    SanderCount as SanderCount,
    sander_count as sander_count,
)
from h3sim.metrics.timings import (
    Timing as Timing,
    timings as timings,
)

__all__: list[str]
