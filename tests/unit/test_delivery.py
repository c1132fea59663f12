"""From the wire to the application: arrivals made by hand, jitter, round trips, handshakes."""

from __future__ import annotations

import random
from collections import Counter
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest

import h3sim
from h3sim.trace import ConnectionOrder, RecordOrder, StreamOrder
from h3sim.transport import Jitter, PacketHold
from h3sim.values.errors import NetworkError
from tests.helpers import finished_ms, page_of, replay

if TYPE_CHECKING:
    from collections.abc import Iterable


Arrival = tuple[int, int, int, int]
"""(row, stream, offset, bytes); the n-th one arrives at n, from 1 on."""


def delivered(
    receiver: StreamOrder | ConnectionOrder, *arrivals: Arrival
) -> list[list[tuple[int, int]]]:
    """Return what each arrival delivers: streams, and how far they have come."""
    receiver.delivered_at_ns[:] = [None] * (1 + max(row for row, *_ in arrivals))
    return [list(receiver.on_packet(*entry, now)) for now, entry in enumerate(arrivals, 1)]


class TestStreamOrder:
    def test_packets_in_order_are_delivered_as_they_come(self) -> None:
        quic = StreamOrder([])
        expected = [[(0, 10)], [(4, 5)], [(0, 20)]]
        assert delivered(quic, (0, 0, 0, 10), (1, 4, 0, 5), (2, 0, 10, 10)) == expected
        assert quic.delivered_at_ns == [1, 2, 3]

    def test_a_hole_makes_its_own_stream_wait_and_no_other(self) -> None:
        quic = StreamOrder([])
        arrivals = ((1, 0, 10, 10), (2, 4, 0, 5), (3, 0, 20, 10), (0, 0, 0, 10))
        assert delivered(quic, *arrivals) == [[], [(4, 5)], [], [(0, 30)]]
        assert quic.delivered_at_ns == [4, 4, 2, 4]

    def test_filling_the_first_of_two_holes_delivers_up_to_the_second(self) -> None:
        quic = StreamOrder([])
        arrivals = ((1, 0, 10, 10), (3, 0, 30, 10), (0, 0, 0, 10), (2, 0, 20, 10))
        assert delivered(quic, *arrivals) == [[], [], [(0, 20)], [(0, 40)]]
        assert quic.delivered_at_ns == [3, 3, 4, 4]

    def test_a_copy_of_what_was_delivered_or_waits_delivers_nothing(self) -> None:
        quic = StreamOrder([])
        arrivals = ((0, 0, 0, 10), (1, 0, 0, 10), (2, 0, 20, 10), (3, 0, 20, 10), (4, 0, 10, 10))
        assert delivered(quic, *arrivals) == [[(0, 10)], [], [], [], [(0, 30)]]
        assert quic.delivered_at_ns == [1, None, 5, None, 5]

    def test_a_row_with_some_new_bytes_is_delivered_with_the_last_of_them(self) -> None:
        quic = StreamOrder([])
        # The second brings 10 to 15. The fourth fills up to what came before it.
        arrivals = ((0, 0, 0, 10), (1, 0, 5, 10), (2, 0, 20, 5), (3, 0, 15, 10), (4, 0, 25, 5))
        assert delivered(quic, *arrivals) == [[(0, 10)], [(0, 15)], [], [(0, 25)], [(0, 30)]]
        assert quic.delivered_at_ns == [1, 2, 4, 4, 5]

    def test_an_empty_response_is_delivered_once(self) -> None:
        quic = StreamOrder([])
        assert delivered(quic, (0, 0, 0, 0), (1, 0, 0, 0)) == [[(0, 0)], []]
        assert quic.delivered_at_ns == [1, None]

    def test_nothing_is_reported_before_the_bytes_that_are_watched_for(self) -> None:
        quic = StreamOrder([])
        quic.watch(0, 25)
        arrivals = ((0, 0, 0, 10), (2, 0, 20, 10), (1, 0, 10, 10))
        assert delivered(quic, *arrivals) == [[], [], [(0, 30)]]
        assert quic.delivered_at_ns == [1, 3, 3]


class TestConnectionOrder:
    def test_packets_in_order_are_delivered_as_they_come(self) -> None:
        tcp = ConnectionOrder([])
        expected = [[(0, 10)], [(4, 5)], [(0, 20)]]
        assert delivered(tcp, (0, 0, 0, 10), (1, 4, 0, 5), (2, 0, 10, 10)) == expected
        assert tcp.delivered_at_ns == [1, 2, 3]

    def test_a_hole_makes_all_streams_wait(self) -> None:
        tcp = ConnectionOrder([])
        arrivals = ((1, 4, 0, 5), (2, 0, 10, 10), (4, 4, 5, 5), (0, 0, 0, 10), (3, 0, 20, 10))
        assert delivered(tcp, *arrivals) == [
            [],
            [],
            [],
            [(0, 10), (4, 5), (0, 20)],
            [(0, 30), (4, 10)],
        ]
        assert tcp.delivered_at_ns == [4, 4, 4, 5, 5]

    def test_nothing_is_reported_before_the_bytes_that_are_watched_for(self) -> None:
        tcp = ConnectionOrder([])
        tcp.watch(0, 25)
        arrivals = ((0, 0, 0, 10), (2, 0, 20, 10), (1, 0, 10, 10))
        assert delivered(tcp, *arrivals) == [[], [], [(0, 30)]]


class TestRecordOrder:
    def test_rows_wait_for_the_end_of_their_record(self) -> None:
        tcp = RecordOrder([None] * 4)
        for row, stream_id, offset, n_bytes in ((0, 0, 0, 10), (1, 0, 10, 5), (2, 0, 15, 5)):
            tcp.on_row(row, stream_id, offset, n_bytes)
        assert tcp.on_frame(0, 0, 15, 30) == ((0, 15),)
        assert tcp.delivered_at_ns == [30, 30, None, None]

    def test_of_a_segment_that_comes_twice_the_first_copy_is_delivered(self) -> None:
        tcp = RecordOrder([None] * 4)
        for row in (1, 0):  # the second copy overtook the first
            tcp.on_row(row, 0, 0, 10)
        assert tcp.on_frame(0, 0, 10, 30) == ((0, 10),)
        tcp.on_row(2, 0, 0, 10)
        assert tcp.delivered_at_ns == [None, 30, None, None]

    def test_an_empty_response_is_delivered_once_and_what_is_watched_for_reported(self) -> None:
        tcp = RecordOrder([None] * 3)
        tcp.watch(4, 10)
        for row, stream_id, n_bytes in ((0, 0, 0), (1, 0, 0), (2, 4, 5)):
            tcp.on_row(row, stream_id, 0, n_bytes)
        assert (tcp.on_frame(0, 0, 0, 30), tcp.on_frame(4, 0, 5, 40)) == (((0, 0),), ())
        assert tcp.delivered_at_ns == [30, None, 40]


def holds(jitter: Jitter, n_packets: int, seed: int = 0) -> list[int]:
    hold = PacketHold(jitter, interval_ns=10, source=random.Random(seed))
    return [hold.next_hold_ns() for _ in range(n_packets)]


class TestJitter:
    def test_every_nth_packet_is_held_for_half_an_interval_more_than_those_that_overtake(
        self,
    ) -> None:
        jitter = Jitter(every=3, min_overtaken=2, max_overtaken=2)
        assert holds(jitter, 7) == [0, 0, 25, 0, 0, 25, 0]

    def test_the_number_of_overtakers_is_drawn_between_the_ends(self) -> None:
        jitter = Jitter(every=2, min_overtaken=0, max_overtaken=3)
        drawn = holds(jitter, 200)
        assert set(drawn[::2]) == {0}
        # Nobody overtaking means not held at all.
        assert set(drawn[1::2]) == {0, 15, 25, 35}

    def test_a_share_of_the_packets_is_held_at_random_and_not_at_regular_distances(self) -> None:
        jitter = Jitter(share=0.25, min_overtaken=1, max_overtaken=3)
        drawn = holds(jitter, 40_000)
        held = [number for number, delay in enumerate(drawn) if delay]
        # Four standard deviations of a binomial count: 4 * sqrt(40,000 * 3 / 16) = 346.
        assert len(held) == pytest.approx(10_000, abs=346)
        # The n-th after one that is held is the next with probability 1/4 * (3/4) ** (n - 1).
        gaps = Counter(after - before for before, after in pairwise(held))
        for n in (1, 2, 3, 4, 8):
            assert gaps[n] / len(held) == pytest.approx(0.25 * 0.75 ** (n - 1), abs=0.02)
        assert {delay: n / len(held) for delay, n in Counter(drawn).items() if delay} == (
            pytest.approx({15: 1 / 3, 25: 1 / 3, 35: 1 / 3}, abs=0.02)
        )
        assert holds(jitter, 100) == drawn[:100]
        assert holds(jitter, 100, seed=1) != drawn[:100]

    def test_of_four_parallel_images_held_at_random_no_single_one_has_all_that_is_held(
        self,
    ) -> None:
        """Held strictly every fourth, of four that take turns it is always the same."""
        steps = [(0, "image", 40)] * 4

        def held_of(reorder: str) -> set[int]:
            rows = replay(steps, "rr", reorder=reorder).trace.packet_rows
            return {row[2] for row in rows if row[1] > row[0]}

        assert len(held_of("4:1-3")) == 1
        assert len(held_of("25%:1-3")) == 4

    def test_a_held_packet_arrives_even_if_no_other_is_sent(self) -> None:
        # The second and last packet, of 20, is held for 3.5 intervals.
        load = replay([(0, "document", 2)], "fifo", reorder="2:3")
        assert finished_ms(load) == {0: 55}

    def test_equal_seeds_hold_alike_and_other_seeds_do_not(self) -> None:
        steps = [(0, "document", 100)]
        arrivals = [
            [row[1] for row in replay(steps, "fifo", reorder="4:1-3", seed=seed).trace.packet_rows]
            for seed in (1, 1, 2)
        ]
        assert arrivals[0] == arrivals[1] != arrivals[2]

    def test_all_schemes_meet_the_same_jitter(self) -> None:
        steps = [(0, "document", 50), (0, "image", 50)]
        delays = [
            [row[1] - row[0] for row in replay(steps, scheme, reorder="4:1-3").trace.packet_rows]
            for scheme in ("rr", "fifo", "bucket")
        ]
        assert delays[0] == delays[1] == delays[2]

    def test_all_schemes_meet_the_same_jitter_of_a_share(self) -> None:
        steps = [(0, "document", 50), (0, "image", 50)]
        delays = [
            [row[1] - row[0] for row in replay(steps, scheme, reorder="25%:1-3").trace.packet_rows]
            for scheme in ("rr", "fifo", "bucket")
        ]
        assert delays[0] == delays[1] == delays[2]

    @pytest.mark.parametrize(
        ("text", "jitter"),
        [
            ("4:1-3", Jitter(every=4, min_overtaken=1, max_overtaken=3)),
            ("10:0", Jitter(every=10, min_overtaken=0, max_overtaken=0)),
            ("25%:1-3", Jitter(share=0.25, min_overtaken=1, max_overtaken=3)),
            ("0.7%:2", Jitter(share=0.007, min_overtaken=2, max_overtaken=2)),
            (
                "0.00000012345678901234566%:2",
                Jitter(share=1.2345678901234566e-09, min_overtaken=2, max_overtaken=2),
            ),
            ("100%:0-1", Jitter(share=1.0, min_overtaken=0, max_overtaken=1)),
            ("none", None),
        ],
    )
    def test_jitter_is_read_from_text(self, text: str, jitter: Jitter | None) -> None:
        assert Jitter.parse(text) == jitter
        assert jitter is None or jitter.text == text

    @pytest.mark.parametrize(
        "text",
        [
            *("", "4", "4:", "4:-1", "a:1", "4:1-3-5", "4:3-1", "0:1"),
            *("%:1", "0%:1", "101%:1", "25%", "2.%:1", ".5%:1", "4%%:1", "25 %:1"),
        ],
    )
    def test_other_text_is_refused(self, text: str) -> None:
        with pytest.raises(NetworkError, match="jitter"):
            Jitter.parse(text)


class TestRoundTrips:
    @pytest.mark.parametrize(
        ("setting", "requested_ms", "sent_ms", "finished_ms"),
        # Half a round trip each way. QUIC asks after one round trip, TCP with TLS after two; the
        # packet leaves at the first tick from the request's arrival on.
        [
            ({"transport": "quic"}, 50, 80, 105),  # arrives at 75
            ({"transport": "tcp"}, 100, 130, 155),  # arrives at 125
            ({"transport": "quic", "handshake": False}, 0, 30, 55),  # arrives at 25
            ({"transport": "tcp", "handshake": False}, 0, 30, 55),
        ],
    )
    def test_the_first_request_waits_for_the_handshake(
        self,
        setting: dict[str, object],
        requested_ms: float,
        sent_ms: float,
        finished_ms: float,
    ) -> None:
        load = replay([(0, "document", 1)], "fifo", rtt_ms=50, **setting)
        assert load.timings[0].requested_ms == requested_ms
        assert load.trace.packets[0].sent_at_ns == sent_ms * 10**6
        assert load.timings[0].finished_ms == finished_ms

    def test_a_request_by_the_clock_waits_for_the_handshake_too(self) -> None:
        # 1 round trip of 50: the requests of 0 and 20 leave at 50, that of 60 at 60.
        load = replay([(0, "document", 1), (20, "image", 1), (60, "image", 1)], "fifo", rtt_ms=50)
        assert [timing.requested_ms for timing in load.timings] == [50, 50, 60]

    def test_an_odd_round_trip_is_spent_to_the_last_nanosecond(self) -> None:
        load = replay([(0, "document", 1)], "fifo", rtt_ms=0.000003, handshake=False)
        request, packet = load.trace.requests[0], load.trace.packets[0]
        # 1 ns down, so 2 ns up.
        assert request.arrived_at_ns - request.requested_at_ns == 2
        assert packet.arrived_at_ns - packet.sent_at_ns == 1

    def test_a_follow_up_request_takes_a_round_trip_and_the_wait_for_a_tick(self) -> None:
        page = page_of(
            {"id": "/", "kind": "document", "bytes": 100},
            {
                "id": "a",
                "kind": "image",
                "bytes": 100,
                "discovered": {"by": "/", "at": "complete"},
            },
        )
        load = h3sim.simulate(page, scheme="fifo", rtt_ms=40, handshake=False)
        # 0 asks, 20 arrives, at the tick of 20 sent, 40 there; 60 arrives and leaves, 80 there.
        assert finished_ms(load) == {0: 40, 4: 80}


class TestPace:
    def test_a_packet_leaves_at_each_multiple_of_the_interval_from_the_first_on(self) -> None:
        load = replay([(0, "document", 3)], "fifo", interval_ms=2.5)
        assert sent_ms(load.trace.packet_rows) == [2.5, 5, 7.5]

    def test_a_rate_that_does_not_divide_a_second_is_kept_exactly(self) -> None:
        # 1400 bytes at 3 Mbit/s: 3.7333 ms; the third packet leaves at 11.2 ms exactly.
        load = replay([(0, "document", 3)], "fifo", rate_mbps=3)
        assert [row[0] for row in load.trace.packet_rows] == [3_733_333, 7_466_666, 11_200_000]

    def test_smaller_packets_keep_the_interval(self) -> None:
        load = replay([(0, "document", 1)], "fifo", packet_bytes=600)
        assert [row[4] for row in load.trace.packet_rows] == [600, 600, 200]
        assert sent_ms(load.trace.packet_rows) == [10, 20, 30]


def sent_ms(rows: Iterable[tuple[int | None, ...]]) -> list[float]:
    return [row[0] / 10**6 for row in rows]
