"""What real servers of HTTP/2 wrote for 30 responses at once, and how long that took."""

from __future__ import annotations

import statistics

import pytest

from h3sim.values.units import NS_PER_MS
from validation.http2_writes import WORKLOADS, modelled, read_recorded, simulated

RECORDED = read_recorded()
ONE_BDP_BYTES = 26_215


@pytest.mark.parametrize("workload", WORKLOADS, ids=lambda workload: workload.name)
def test_a_load_writes_the_frames_that_the_server_wrote(workload: object) -> None:
    recorded = RECORDED[workload.name]  # type: ignore[attr-defined]
    assert modelled(workload, recorded.header_bytes) == recorded  # type: ignore[arg-type]


def test_what_was_recorded_has_headers_with_little_room_next_to_them_and_with_none() -> None:
    """Of a write of 17,376 bytes, from which h2o's turns of 16,384 stand in pairs."""
    section_bytes = [
        sum(length + 9 for length in RECORDED[workload.name].header_bytes[1:])
        for workload in WORKLOADS
        if workload.server == "h2o"
    ]
    assert min(section_bytes) > 17_376 - 16_384
    assert max(section_bytes) > 17_376


def test_thirty_responses_of_h2o_take_as_long_as_they_took() -> None:
    """Measured: h2o 2.2.5 in cleartext, 2 Mbit/s, 100 ms, a queue of one BDP."""
    # Without a header of their own HPACK makes 15 bytes of each, 28 where the length is a new one.
    header_bytes = [104, *(28 if position in (1, 5, 11) else 15 for position in range(1, 31))]
    load = simulated(WORKLOADS[0], header_bytes, queue_bytes=ONE_BDP_BYTES)
    done_ms = [timing.finished_ms for timing in load.timings]
    assert done_ms[1:5] == pytest.approx([1471, 2573, 1544, 2591], rel=0.015)
    assert statistics.fmean(done_ms) == pytest.approx(4566, rel=0.005)
    assert load.trace.requests[1].requested_at_ns < 300 * NS_PER_MS
