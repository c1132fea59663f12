"""ByteIndex, ObjectIndex, times and the lower bound, by hand."""

from __future__ import annotations

from fractions import Fraction

import pytest

import h3sim
from h3sim.metrics import Response, byte_index_ns, lower_bound_ns, object_index_ns
from h3sim.values.errors import NothingToMeasureError
from h3sim.values.units import ms
from tests.helpers import finished_ms, replay

MS = 10**6
BELOW = {"above_the_fold": False}
ABOVE = {"above_the_fold": True}


def test_byte_index_counts_what_is_outstanding_at_each_sample() -> None:
    # Half the bytes at 250, half at 1000. Sampled every 100 ms from 0 on: all is outstanding at 0,
    # 100 and 200, half from 300 to 900: 3 + 7 * 0.5 = 6.5 samples of 100 ms.
    page = [(500, 250 * MS), (500, 1000 * MS)]
    assert byte_index_ns(page, sample_ns=100 * MS) == 650 * MS
    # The integral: 0.5 * 250 + 0.5 * 1000.
    assert byte_index_ns(page) == 625 * MS


def test_what_completes_at_a_sample_counts_at_it() -> None:
    assert byte_index_ns([(1, 200 * MS)], sample_ns=100 * MS) == 200 * MS
    assert byte_index_ns([(1, 200 * MS + 1)], sample_ns=100 * MS) == 300 * MS


def test_bytes_are_weights() -> None:
    # (1000 * 10 + 3000 * 30) / 4000
    assert byte_index_ns([(1000, 10), (3000, 30)]) == 25


def test_times_and_samples_count_from_the_origin() -> None:
    # 130 and 250 after the origin at 50: 80 and 200, seen at 100 and 200.
    page = [(1, 130), (1, 250)]
    assert byte_index_ns(page, origin_ns=50) == 140
    assert byte_index_ns(page, origin_ns=50, sample_ns=100) == 150


def test_indexes_are_exact() -> None:
    assert byte_index_ns([(1, 1), (2, 2)]) == Fraction(5, 3)
    assert object_index_ns([1, 2, 2]) == Fraction(5, 3)


def test_without_a_byte_there_is_no_byte_index() -> None:
    assert byte_index_ns([(0, 10)]) is None
    assert byte_index_ns([]) is None
    assert object_index_ns([]) is None


def test_object_index_counts_resources_whatever_their_size() -> None:
    assert object_index_ns([130, 250], origin_ns=50) == 140


def test_a_load_gives_its_indexes_from_the_first_request_on() -> None:
    # fifo: r0 (2800 bytes) at 20, r1 (1400 bytes, above the fold) at 30, r2 (empty) at 40. Over a
    # round trip of 100 ms the first request leaves at 100, arrives at 150; the packets leave at
    # 150, 160, 170, 180 and arrive 50 later: 210, 220, 230 after navigation start for r0, r1, r2.
    steps = [(0, "document", 2), (0, "image", 1, ABOVE), (0, "image", 0)]
    load = replay(steps, "fifo", rtt_ms=100)
    assert finished_ms(load) == {0: 210, 4: 220, 8: 230}
    # Less the 100 of the first request: (2800 * 110 + 1400 * 120) / 4200 = 113.33...
    assert load.byte_index() == pytest.approx(340 / 3, rel=1e-12)  # float of a third
    assert load.byte_index(sample_ms=100) == 200
    assert load.byte_index("atf") == 120
    assert load.byte_index(sample_ms=15) == 120
    # (110 + 120 + 130) / 3
    assert load.object_index() == 120
    assert load.object_index("atf") == 120
    assert load.page_load_ms == 230


def test_what_cannot_be_measured_is_an_error_that_states_why() -> None:
    load = replay([(0, "document", 0), (0, "image", 1, BELOW)], "fifo")
    with pytest.raises(NothingToMeasureError, match="above the fold"):
        load.byte_index("atf")
    assert load.byte_index_or_none("atf") is None
    empty = replay([(0, "document", 0, ABOVE)], "fifo")
    with pytest.raises(NothingToMeasureError):
        empty.byte_index()
    with pytest.raises(NothingToMeasureError):
        _ = empty.lower_bound()
    assert empty.object_index() == 10


@pytest.mark.parametrize("sample_ms", [0, -1])
def test_a_sample_interval_is_more_than_nothing(sample_ms: float) -> None:
    with pytest.raises(ValueError, match="sample_ms"):
        replay([(0, "document", 1)], "fifo").byte_index(sample_ms=sample_ms)


def test_only_all_and_atf_are_known() -> None:
    with pytest.raises(ValueError, match="'all' or 'atf'"):
        replay([(0, "document", 1)], "fifo").byte_index("hero")  # type: ignore[arg-type]


def test_timings_report_each_resource() -> None:
    # rr: r0 at 10 and 30, r1 (asked for at 5) at 20.
    load = replay([(0, "document", 2), (5, "image", 1, ABOVE)], "rr")
    assert load.timings.columns == (
        *("id", "kind", "stream_id", "bytes", "above_the_fold"),
        *("requested_ms", "first_byte_ms", "finished_ms", "completion_ms"),
    )
    assert [tuple(row) for row in load.timings] == [
        ("r0", "document", 0, 2800, False, 0, 10, 30, 30),
        ("r1", "image", 4, 1400, True, 5, 20, 20, 15),
    ]
    frame = load.timings.to_pandas()
    assert list(frame["finished_ms"]) == [30, 20]


def test_the_lower_bound_sends_the_densest_response_first() -> None:
    # 1401 bytes take two packets, 1400 one: the latter is denser. It leaves at 10, the other at 20
    # and 30: (1400 * 10 + 1401 * 30) / 2801.
    two = [Response(0, 1401, 2), Response(0, 1400, 1)]
    bound = lower_bound_ns(two, interval_ns=Fraction(10))
    assert bound == Fraction(1400 * 10 + 1401 * 30, 2801)


def test_the_lower_bound_lets_a_denser_response_go_in_between() -> None:
    # 1500 bytes in 3 packets, ready at 0; 1400 in one, ready at 15. Packets of the first at 10, 30
    # and 40: mean 80/3, and half of its length of (3 - 1) ticks behind that, 10: 110/3. The
    # second at 20. (1500 * 110/3 + 1400 * 20) / 2900.
    two = [Response(0, 1500, 3), Response(15, 1400, 1)]
    bound = lower_bound_ns(two, interval_ns=Fraction(10))
    assert bound == Fraction(55000 + 28000, 2900)


def test_the_lower_bound_waits_for_what_is_not_ready() -> None:
    # Ready at 35: the first tick is 40. Then the delay of the way.
    assert lower_bound_ns([Response(35, 1400, 1)], interval_ns=Fraction(10), delay_ns=7) == 47
    # Ready at a tick: that tick. Ready at 0: the first tick is 10.
    assert lower_bound_ns([Response(40, 1400, 1)], interval_ns=Fraction(10)) == 40
    assert lower_bound_ns([Response(0, 1400, 1)], interval_ns=Fraction(10)) == 10


def test_a_response_without_a_byte_weighs_nothing() -> None:
    # The bytes go first, though the empty response is listed first.
    assert lower_bound_ns([Response(0, 0, 1), Response(0, 5, 1)], interval_ns=Fraction(10)) == 10
    assert lower_bound_ns([Response(0, 0, 1)], interval_ns=Fraction(10)) is None
    assert lower_bound_ns([], interval_ns=Fraction(10)) is None


def test_a_sequential_load_of_full_packets_attains_its_lower_bound() -> None:
    # 2 and 1 packets, one way 50: from the request at 100 they arrive at 110, 120, 130 after; the
    # requests take 50, and the first tick at or after 150 is 150 itself.
    load = replay([(0, "document", 2), (0, "image", 1)], "fifo", rtt_ms=100)
    # (2800 * 110 + 1400 * 120) / 4200
    assert load.lower_bound() == pytest.approx(340 / 3, rel=1e-12)  # float of a third
    assert load.byte_index() == pytest.approx(load.lower_bound(), rel=1e-12)


def test_rr_misses_the_lower_bound_by_what_turns_cost() -> None:
    # Two of two packets: bound (2 * 20 + 2 * 40) / 4 = 30; rr completes them at 30 and 40: 35.
    load = replay([(0, "document", 2), (0, "image", 2)], "rr")
    assert load.lower_bound() == 30
    assert load.byte_index() == 35


def test_think_time_counts_in_the_lower_bound() -> None:
    # Ready at 25, so the first tick is 30.
    load = replay([(0, "document", 1, {"server_ms": 25})], "fifo")
    assert load.lower_bound() == 30 == load.byte_index()


def test_header_bytes_are_sent_and_not_counted() -> None:
    # 1000 bytes of header and 1000 of body take two packets: 20. Then 1000 bytes alone: 30.
    header = {"header_bytes": 1000, "bytes": 1000}
    load = replay([(0, "document", 0, header), (0, "image", 0, {"bytes": 1000})], "fifo")
    assert [row.bytes for row in load.timings] == [1000, 1000]
    assert load.byte_index() == 25
    # The bound knows that the first takes two packets: the second goes first (500 a packet is less
    # than 1000): (1000 * 10 + 1000 * 30) / 2000.
    assert load.lower_bound() == 20


def test_milliseconds_are_rounded_to_integer_nanoseconds_halves_to_even() -> None:
    assert ms(0.0000005) == 0
    assert ms(0.0000015) == 2
    assert ms(1.5) == 1_500_000


def test_a_comparison_divides_by_the_baseline_without_a_buffer() -> None:
    # A buffer of 1000 kB holds the whole page, so that rr with it is fifo.
    comparison = h3sim.compare("davies-meenan", schemes=["rr"], send_buffers_kb=[1000])
    rr, fifo = (h3sim.simulate("davies-meenan", scheme=name) for name in ("rr", "fifo"))
    assert fifo.byte_index() < rr.byte_index()
    (row,) = comparison.rows
    assert row.speedup_all == rr.byte_index() / fifo.byte_index()
    assert row.speedup_atf == rr.byte_index("atf") / fifo.byte_index("atf")
