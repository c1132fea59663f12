"""fifo by hand: the lowest stream id that has data, to its end."""

from __future__ import annotations

from tests.helpers import finished_ms, replay


def test_responses_go_one_after_another_in_request_order() -> None:
    load = replay([(0, "image", 2), (0, "stylesheet", 1), (0, "script", 3)], "fifo")
    assert load.trace.order == [0, 0, 4, 8, 8, 8]
    assert finished_ms(load) == {0: 20, 4: 30, 8: 60}


def test_a_later_stylesheet_does_not_overtake_an_image() -> None:
    critical = {"in_head": True, "critical": True}
    load = replay([(0, "image", 3), (15, "stylesheet", 1, critical)], "fifo")
    assert load.trace.order == [0, 0, 0, 4]
    assert finished_ms(load) == {0: 30, 4: 40}


def test_while_a_response_is_not_ready_the_next_one_goes() -> None:
    load = replay([(0, "document", 2, {"server_ms": 25}), (0, "image", 4)], "fifo")
    # 10 and 20: only stream 4 has data. From 25 on stream 0 has, and goes to its end.
    assert load.trace.order == [4, 4, 0, 0, 4, 4]
    assert finished_ms(load) == {0: 40, 4: 60}


def test_a_page_in_file_order_is_requested_by_time() -> None:
    load = replay([(0, "document", 1), (40, "image", 1), (20, "script", 2)], "fifo")
    # The script is asked for first, and is stream 4.
    assert [(row.id, row.stream_id) for row in load.timings] == [("r0", 0), ("r2", 4), ("r1", 8)]
    # 20: script, 30: script, 40: image.
    assert load.trace.order == [0, 4, 4, 8]
    assert finished_ms(load) == {0: 10, 4: 30, 8: 40}
