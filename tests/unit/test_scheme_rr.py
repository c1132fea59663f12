"""rr by hand: one packet each, in rounds; a stream that joins waits for the next round."""

from __future__ import annotations

from tests.helpers import finished_ms, replay


def test_streams_take_turns_of_one_packet() -> None:
    load = replay([(0, "document", 3), (0, "image", 1), (0, "stylesheet", 2)], "rr")
    # Round 1: 0 4 8. Stream 4 is complete, so round 2: 0 8, and round 3: 0.
    assert load.trace.order == [0, 4, 8, 0, 8, 0]
    assert finished_ms(load) == {0: 60, 4: 20, 8: 50}


def test_a_stream_that_joins_takes_its_first_turn_in_the_next_round() -> None:
    load = replay([(0, "image", 4), (15, "document", 2)], "rr")
    # At 10 stream 0 has its turn of round 1 and waits for round 2. At 15 stream 4 joins round 2,
    # in which the lower id goes first: 0 4, then round 3: 0 4, then 0.
    assert load.trace.order == [0, 0, 4, 0, 4, 0]
    assert finished_ms(load) == {0: 60, 4: 50}


def test_a_response_that_is_ready_late_joins_the_round_to_come_by_its_id() -> None:
    load = replay([(0, "document", 1, {"server_ms": 25}), (0, "image", 4)], "rr")
    # 10 and 20: stream 4 alone, rounds 1 and 2. At 25 stream 0 joins round 3, and ties go to it.
    assert load.trace.order == [4, 4, 0, 4, 4]
    assert finished_ms(load) == {0: 30, 4: 50}


def test_kind_and_flags_do_not_matter() -> None:
    flags = {"in_head": True, "critical": True, "above_the_fold": True}
    load = replay([(0, "other", 2), (0, "script", 2, flags), (0, "document", 2, flags)], "rr")
    assert load.trace.order == [0, 4, 8, 0, 4, 8]


def test_an_idle_tick_is_lost() -> None:
    load = replay([(0, "document", 1), (35, "image", 2)], "rr")
    # Nothing to send at 20 and 30; the request of 35 is answered from the tick at 40 on.
    assert [row[0] for row in load.trace.packet_rows] == [10_000_000, 40_000_000, 50_000_000]
    assert finished_ms(load) == {0: 10, 4: 50}
