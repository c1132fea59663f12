"""spdyrr by hand: dfifo's classes as five strict levels, round robin in each."""

from __future__ import annotations

from tests.helpers import finished_ms, replay


def test_levels_go_in_strict_order() -> None:
    load = replay(
        [
            (0, "other", 1),  # 0
            (0, "image", 1),  # 1
            (0, "script", 1, {"after_first_image": True}),  # 2
            (0, "fetch", 1),  # 3
            (0, "document", 1),  # 4
        ],
        "spdyrr",
    )
    assert load.trace.order == [16, 12, 8, 4, 0]
    assert finished_ms(load) == {0: 50, 4: 40, 8: 30, 12: 20, 16: 10}


def test_streams_of_a_level_take_turns() -> None:
    load = replay([(0, "document", 2), (0, "stylesheet", 3), (0, "font", 1)], "spdyrr")
    # Round 1: 0 4 8, round 2: 0 4, round 3: 4.
    assert load.trace.order == [0, 4, 8, 0, 4, 4]
    assert finished_ms(load) == {0: 40, 4: 60, 8: 30}


def test_a_later_higher_level_goes_from_the_next_packet_on() -> None:
    steps = [(0, "image", 3), (0, "script", 2, {"async": True}), (15, "stylesheet", 2)]
    load = replay(steps, "spdyrr")
    # 10: image, its turn of round 1. 20 and 30: the stylesheet of 15, a higher level. Then round 1
    # goes on with the async script, round 2: 0 4, round 3: 0.
    assert load.trace.order == [0, 8, 8, 4, 0, 4, 0]
    assert finished_ms(load) == {0: 70, 4: 60, 8: 30}
