"""Packets of a trace counted, by hand: sent, lost, retransmitted; logs leave parts out."""

from __future__ import annotations

import pytest

from h3sim.metrics import SanderCount
from h3sim.metrics.critical_path import critical_path
from h3sim.metrics.hol import count_packets, count_sander, frames_by_number, loss_bursts
from h3sim.trace import Activity, Delivery, Request, Trace, Work, with_delivery
from tests.helpers import replay


def trace_of(*rows: tuple[int, int | None, int, int, int, int]) -> Trace:
    """Return a trace of frames (sent, arrived, stream, offset, length, packet number)."""
    streams = dict.fromkeys(sorted(row[2] for row in rows))
    return Trace(
        delivery=Delivery.STREAM,
        requests=tuple(Request(stream_id, n, 0, 0, 0) for n, stream_id in enumerate(streams)),
        signals=(),
        packet_rows=with_delivery(list(rows), Delivery.STREAM),
    )


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([], (0, 0, 0)),
        # The second is lost, and its bytes go again as the fourth.
        (
            [(0, 5, 0, 0, 9, 0), (1, None, 0, 9, 9, 1), (2, 7, 0, 18, 9, 2), (3, 9, 0, 9, 9, 3)],
            (4, 1, 1),
        ),
        # A packet of two frames, one of them sent before, counts once.
        (
            [(0, None, 0, 0, 9, 0), (1, 6, 0, 0, 9, 1), (1, 6, 0, 9, 9, 1), (2, 7, 4, 0, 9, 2)],
            (3, 1, 1),
        ),
        # A log without bytes 9 to 20: 20 to 29 goes twice; 9 to 20 comes later, and is new.
        (
            [
                *[(0, 5, 0, 0, 9, 0), (1, 6, 0, 20, 9, 1), (2, 7, 0, 20, 9, 2)],
                *[
                    (3, 8, 0, 9, 11, 3),
                    (4, 9, 0, 40, 9, 4),
                    (5, 9, 0, 0, 9, 5),
                    (6, 9, 0, 29, 2, 6),
                ],
            ],
            (7, 0, 2),
        ),
        # Nor has it the first byte of a stream, which is sent behind the others, or not at all.
        ([(0, 5, 0, 1, 9, 0), (1, 6, 0, 0, 1, 1)], (2, 0, 0)),
        ([(0, 5, 0, 1, 9, 0)], (1, 0, 0)),
        # A stream that goes on over what was sent: part of it is new, and part is not.
        ([(0, None, 0, 0, 9, 0), (1, 6, 0, 0, 12, 1), (2, 7, 0, 12, 9, 2)], (3, 1, 1)),
        ([(0, None, 0, 0, 9, 0), (1, 6, 0, 0, 12, 1), (2, 7, 0, 9, 3, 2)], (3, 1, 2)),
        ([(0, None, 0, 0, 9, 0)], (1, 1, 0)),
        # Its end alone, without a byte, is sent again by nobody.
        ([(0, 5, 0, 0, 9, 0), (1, 6, 0, 3, 0, 1)], (2, 0, 0)),
        # Numbers that do not rise, as where a log has frames by stream.
        ([(0, 5, 0, 0, 9, 1), (1, 6, 4, 0, 9, 2), (0, 5, 8, 0, 9, 1)], (2, 0, 0)),
        ([(2, 5, 0, 0, 9, 3), (1, 6, 4, 0, 9, 1), (2, 5, 8, 0, 9, 3)], (2, 0, 0)),
    ],
)
def test_packets_are_counted_by_their_numbers(
    rows: list[tuple[int, int | None, int, int, int, int]], expected: tuple[int, int, int]
) -> None:
    assert count_packets(trace_of(*rows)) == expected


def test_the_testbed_counts_by_number_and_not_as_a_log_has_it() -> None:
    # By number: 0 to 999, 1000 to 1999, 2000 to 2999. Nothing waits.
    rows = [(1, 6, 0, 1000, 1000, 1), (0, 5, 0, 0, 1000, 0), (2, 7, 0, 2000, 1000, 2)]
    assert count_sander(trace_of(*rows)) == SanderCount(0, 0)
    # The second is lost; the third waits for the fourth, which the log has first.
    rows = [
        (3, 9, 0, 1000, 1000, 3),
        (1, None, 0, 1000, 1000, 1),  # type: ignore[list-item]
        (0, 5, 0, 0, 1000, 0),
        (2, 7, 0, 2000, 1000, 2),
    ]
    assert [frames and len(frames) for frames in frames_by_number(trace_of(*rows))] == [
        *(1, None, 1, 1),
    ]
    assert count_sander(trace_of(*rows)) == SanderCount(1000, 1000)


def test_at_a_constant_rate_nothing_is_lost_sent_again_or_behind_a_hole() -> None:
    trace = replay([(0, "document", 8), (0, "image", 8)], "rr").trace
    assert count_packets(trace) == (16, 0, 0)
    assert count_sander(trace) == SanderCount(0, 0)


def test_a_download_of_nothing_known_is_all_network() -> None:
    done = [Activity(Work.DOWNLOAD, None, 0, 40, None), Activity(Work.LOAD, None, 40, 40, 0)]
    first, _ = critical_path(done, {})
    assert (first.network_ns, first.bandwidth_ns) == (40, 0)


def test_a_download_of_unknown_latency_is_all_bandwidth() -> None:
    done = [Activity(Work.DOWNLOAD, 0, 0, 40, None), Activity(Work.LOAD, None, 45, 45, 0)]
    first, last = critical_path(done, {})
    assert (first.network_ns, first.bandwidth_ns, first.computation_ns) == (0, 40, 0)
    assert (last.blocking_ns, last.network_ns, last.bandwidth_ns) == (5, 0, 0)


def test_packets_lost_one_behind_the_other_are_a_burst() -> None:
    def lost(*numbers: int, sent: range = range(6)) -> dict[int, int]:
        return loss_bursts([(n, None if n in numbers else 9, 0, 9 * n, 9, n) for n in sent])

    assert lost() == {}
    assert lost(0, 1, 3) == {1: 1, 2: 1}
    assert lost(0, 2, 4) == {1: 3}
    assert lost(1, 2, 4, 5) == {2: 2}
    # A log may leave numbers out: of those that it has 0 and 2 are neighbours.
    assert lost(0, 2, sent=range(0, 6, 2)) == {2: 1}


def test_a_milestone_that_was_not_reached_has_no_path() -> None:
    assert critical_path([Activity(Work.DOWNLOAD, 0, 0, 40, None)], {0: 30}) == []


def test_what_a_download_took_is_counted_from_its_beginning() -> None:
    done = [Activity(Work.DOWNLOAD, 0, 20, 60, None), Activity(Work.LOAD, None, 60, 60, 0)]
    first, last = critical_path(done, {0: 30})
    assert (first.began_at_ns, first.network_ns, first.bandwidth_ns) == (20, 30, 10)
    assert (last.began_at_ns, last.network_ns, last.bandwidth_ns) == (60, 0, 0)
