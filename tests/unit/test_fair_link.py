"""FQ-CoDel by hand (RFC 8290): at 8 Mbit/s 1000 bytes take a millisecond."""

from __future__ import annotations

import random
from typing import Any

import pytest

from h3sim.transport.fair_link import FairLink
from h3sim.transport.link_profile import FqCoDel, LinkProfile
from h3sim.transport.packets import CE, ECT, NOT_ECT
from h3sim.values.errors import NetworkError
from h3sim.values.units import ms
from tests.unit.fair_link_path import FairPath, Flow, NoCoDel

CODEL = FqCoDel()


def path_with(quantum_bytes: int, **profile: Any) -> FairPath:
    settings = FqCoDel(
        target_ns=NoCoDel.target_ns, interval_ns=NoCoDel.interval_ns, quantum_bytes=quantum_bytes
    )
    return FairPath(fq_codel=settings, **profile)


def test_flows_take_turns_by_bytes() -> None:
    path, large, small = path_with(1000), Flow(), Flow()
    for _ in range(3):
        path.put(large, 0, 1000)
    for _ in range(6):
        path.put(small, 0, 500)
    path.run()
    # The first packet finds the link idle. Then each flow sends 1000 bytes per round: the first
    # has used the credit of its first round up, and is an old flow when the second comes.
    assert large.arrivals_ms == [1, 3, 5]
    assert small.arrivals_ms == [1.5, 2, 3.5, 4, 5.5, 6]


def test_a_packet_of_a_new_flow_overtakes_a_standing_queue() -> None:
    path, bulk, sparse = path_with(1514), Flow(), Flow()
    for _ in range(20):
        path.put(bulk, 0, 1000)
    path.put(sparse, ms(4.5), 100)
    path.run()
    # The packet in service leaves at 5 ms, and the new flow goes next.
    assert sparse.arrivals_ms == [5.1]
    assert bulk.arrivals_ms[-1] == 20.1


def test_a_flow_that_has_emptied_is_no_new_one_before_the_old_ones_had_their_turn() -> None:
    path, bulk, sparse = path_with(1000), Flow(), Flow()
    for _ in range(9):
        path.put(bulk, 0, 1000)
    path.put(sparse, ms(0.5), 900)
    path.put(sparse, ms(2.5), 900)
    path.run()
    # The first one is served as new, from 1 to 1.9 ms; found empty, the flow goes to the end of
    # the old ones. So the second waits for the turn of the bulk flow, which begins at 2.9 ms.
    assert sparse.arrivals_ms == [1.9, 3.8]


def test_the_flow_with_the_most_bytes_loses_its_first_packet() -> None:
    path, bulk, sparse = path_with(1000, queue_packets=3), Flow(), Flow()
    for _ in range(4):
        path.put(bulk, 0, 1000)  # one in service, three wait
    path.put(sparse, ms(0.5), 1000)
    path.run()
    assert bulk.arrivals_ms == [1, None, 3, 4]
    assert sparse.arrivals_ms == [2]
    assert (path.link.offered, path.link.queue_drops) == (5, 1)


@pytest.mark.parametrize("limit", [{"queue_packets": 2}, {"queue_bytes": 2999}])
def test_a_flow_alone_loses_from_the_head(limit: dict[str, int]) -> None:
    path, flow = path_with(1514, **limit), Flow()
    for _ in range(5):
        path.put(flow, 0, 1000)
    path.run()
    assert flow.arrivals_ms == [1, None, None, 2, 3]


def standing(path: FairPath, flow: Flow, ecn: int) -> None:
    """Keep a queue of 30 ms: 30 packets at once, then one per millisecond."""
    for _ in range(30):
        path.put(flow, 0, 1000, ecn)
    for now_ms in range(1, 400):
        path.put(flow, ms(now_ms), 1000, ecn)


def test_codel_drops_from_a_standing_queue_as_its_pseudocode_does() -> None:
    path, flow = FairPath(fq_codel=CODEL), Flow()
    standing(path, flow, NOT_ECT)
    path.run()
    drops = [number for number, at_ns in flow.fates.items() if at_ns is None]
    # As of a single queue with CoDel (test_links.py).
    assert drops[:4] == [105, 206, 278, 337]


def test_codel_marks_what_is_capable_in_place_of_drops() -> None:
    path, flow = FairPath(fq_codel=CODEL, ecn=True), Flow()
    standing(path, flow, ECT)
    path.run()
    marked = [number for number, ecn in flow.codepoints.items() if ecn == CE]
    assert None not in flow.fates.values()
    # A drop saves a turn, a mark does not: gaps of 100, 100/sqrt(2), 100/sqrt(3) ms to the letter.
    assert marked[:4] == [105, 205, 276, 334]
    assert path.link.ecn_marks == len(marked)


@pytest.mark.parametrize(("marks", "ecn"), [(True, NOT_ECT), (False, ECT)])
def test_others_are_dropped(marks: bool, ecn: int) -> None:
    path, flow = FairPath(fq_codel=CODEL, ecn=marks), Flow()
    standing(path, flow, ecn)
    path.run()
    assert None in flow.fates.values()
    assert CE not in flow.codepoints.values()


def test_a_flow_with_a_short_queue_is_spared_whatever_others_queue() -> None:
    path, bulk, sparse = FairPath(fq_codel=CODEL), Flow(), Flow()
    standing(path, bulk, NOT_ECT)
    for now_ms in range(0, 400, 10):
        path.put(sparse, ms(now_ms), 100)
    path.run()
    assert None in bulk.fates.values()
    assert None not in sparse.fates.values()


def test_a_new_rate_applies_to_packets_that_wait() -> None:
    path, flow = FairPath(), Flow()
    for _ in range(3):
        path.put(flow, 0, 1000)
    path.at(ms(0.5), 0, lambda value, now_ns: path.link.change_rate(now_ns, 16_000_000), None)
    path.run()
    assert flow.arrivals_ms == [1, 1.5, 2]


def test_the_arrival_of_a_foreign_packet_is_not_known() -> None:
    profile = LinkProfile(rate_bps=8_000_000, fq_codel=CODEL)
    with pytest.raises(NetworkError, match="fq_codel"):
        FairLink(profile, rtt_ns=0, streams=random.Random).send(0, 1000)


def test_packets_in_the_queue_at_the_end_of_a_load_arrive_all_the_same() -> None:
    path, flow = FairPath(), Flow()
    for _ in range(3):
        path.put(flow, 0, 1000)
    path.run(until_ns=ms(0.5))
    assert flow.arrivals_ms == [1]
    path.link.drain()
    assert flow.arrivals_ms == [1, 2, 3]
