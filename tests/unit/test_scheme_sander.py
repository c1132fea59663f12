"""The schemes of Sander 2022 by hand. One packet every 10 ms; what is asked for at 0 goes from 10.

All of them run lost bytes in the turn of their stream; see `test_scheme_settings.py`.
"""

from __future__ import annotations

from tests.helpers import finished_ms, replay

ASYNC, IN_HEAD = {"async": True}, {"in_head": True}


def test_chrome_sends_level_by_level_and_one_at_a_time_in_each() -> None:
    steps = [
        (0, "document", 2),  # highest
        (0, "image", 2),  # low
        (0, "script", 1, {"after_first_image": True}),  # normal
        (0, "script", 2),  # high
        (0, "image", 1),  # low
        (0, "other", 1),  # lowest
        (0, "fetch", 1),  # high
    ]
    load = replay(steps, "sander-chrome")
    assert load.trace.order == [0, 0, 12, 12, 24, 8, 4, 4, 16, 20]
    assert finished_ms(load)[4] == 80


def test_chrome_lets_a_later_stylesheet_overtake_images() -> None:
    load = replay([(0, "document", 1), (0, "image", 3), (25, "stylesheet", 2)], "sander-chrome")
    # 10: document. 20: image. The stylesheet is there at 25: 30 and 40. Then the image.
    assert load.trace.order == [0, 4, 8, 8, 4, 4]
    assert finished_ms(load) == {0: 10, 4: 60, 8: 40}


def test_rr_gives_each_a_packet_a_round() -> None:
    load = replay([(0, "document", 3), (0, "image", 2), (15, "stylesheet", 2)], "sander-rr")
    # Round 1: 0 (10); 8 arrives in it, so 4 (20). Round 2: 0, 4, 8. Round 3: 0, 8.
    assert load.trace.order == [0, 4, 0, 4, 8, 0, 8]


def test_rr_is_rr() -> None:
    steps = [(0, "document", 3), (5, "image", 4), (15, "script", 5), (15, "font", 2)]
    assert replay(steps, "sander-rr").trace.order == replay(steps, "rr").trace.order


def test_wrr_gives_a_script_three_packets_for_two_of_a_font_and_one_of_an_image() -> None:
    steps = [(0, "image", 2), (0, "font", 4), (0, "script", 6)]
    load = replay(steps, "sander-wrr")
    # Units of 1/48: image (8) 6 12, font (16) 3 6 9 12, script (24) 2 4 6 8 10 12.
    # 2: 8 | 3: 4 | 4: 8 | 6: 0 4 8 | 8: 8 | 9: 4 | 10: 8 | 12: 0 4 8
    assert load.trace.order == [8, 4, 8, 0, 4, 8, 8, 4, 8, 0, 4, 8]


def test_wrr_gives_stylesheets_the_weight_of_scripts() -> None:
    load = replay([(0, "document", 1), (0, "stylesheet", 2), (0, "script", 2)], "sander-wrr")
    assert load.trace.order == [0, 4, 8, 4, 8]


def test_firefox_shares_201_to_101_between_leaders_and_unblocked() -> None:
    steps = [(0, "document", 1), (0, "script", 4, IN_HEAD), (0, "script", 2, ASYNC)]
    load = replay(steps, "sander-firefox")
    # A turn costs 63/w slots: urgent .26; leaders .31 .63 .94 1.25; unblocked .62 1.25. In slot 0
    # stand 0, 4 and 8 as they came; 4 joins it anew behind 8, and again; in slot 1 8 came before 4.
    assert load.trace.order == [0, 4, 8, 4, 4, 8, 4]


def test_firefox_lets_followers_wait_for_leaders_by_weight_1() -> None:
    # Under `leaders`, a follower's group has weight 1 beside a stylesheet's 32: 63 slots to 63/32.
    load = replay([(0, "document", 1), (0, "image", 1), (0, "stylesheet", 31)], "sander-firefox")
    assert load.trace.order == [0] + [8] * 31 + [4]
    # The 32nd turn of the stylesheet stands in slot 63 as well, where the follower was first.
    load = replay([(0, "document", 1), (0, "image", 1), (0, "stylesheet", 34)], "sander-firefox")
    assert load.trace.order == [0] + [8] * 31 + [4] + [8] * 3


def test_firefox_has_no_leader_among_scripts_that_do_not_block_the_parser_in_the_head() -> None:
    for flags in ({}, ASYNC, {"defer": True}, {"in_head": True, "defer": True}):
        steps = [(0, "document", 1), (0, "script", 2, flags), (0, "stylesheet", 2)]
        # Leaders .31 .63, unblocked .62 1.25 slots: the script is in slot 0 once.
        assert replay(steps, "sander-firefox").trace.order == [0, 4, 8, 8, 4]


def test_firefox_eps_shares_in_each_urgency_and_nowhere_else() -> None:
    steps = [
        (0, "document", 2),  # urgent, 1
        (0, "image", 2),  # follower, 3
        (0, "script", 2, ASYNC),  # unblocked, 4
        (0, "stylesheet", 2),  # leader, 2
        (0, "script", 2, IN_HEAD),  # leader, 2
        (0, "font", 1),  # follower, 3
    ]
    load = replay(steps, "sander-firefox-eps")
    assert load.trace.order == [0, 0, 12, 16, 12, 16, 4, 20, 4, 8, 8]


def test_firefox_eps_sends_first_turns_first_as_h2o_does() -> None:
    steps = [(0, "document", 1), (0, "image", 3), (0, "image", 3), (45, "image", 2)]
    load = replay(steps, "sander-firefox-eps")
    # 10: document. First turns 4 and 8; then 4 (40). At 45 the last one comes: its first turn at
    # 50, before the second of 8, which waits for 60. Then 4, which waits since 40; and the rest.
    assert load.trace.order == [0, 4, 8, 4, 12, 8, 4, 12, 8]


def test_batched_rr_keeps_a_stream_for_twelve_packets() -> None:
    # 11 packets have 15,400 bytes, 12 have 16,800: the first that make 16,000.
    load = replay([(0, "document", 14), (0, "image", 13)], "sander-batched-rr")
    assert load.trace.order == [0] * 12 + [4] * 12 + [0] * 2 + [4]


def test_batched_rr_passes_the_turn_on_where_a_stream_is_done() -> None:
    load = replay([(0, "document", 2), (0, "image", 20), (35, "font", 1)], "sander-batched-rr")
    # 4 has its turn from 30 on. The font joins the next round, and there 4 has the lower id.
    assert load.trace.order == [0] * 2 + [4] * 20 + [8]
    load = replay([(0, "document", 14), (15, "image", 20), (35, "font", 1)], "sander-batched-rr")
    # Round 1: the document. Round 2: what is left of it, the image, and the font.
    assert load.trace.order == [0] * 14 + [4] * 12 + [8] + [4] * 8
    assert finished_ms(load)[8] == 270
