"""firefox and firefox-figure by hand: placeholders share by weight, and so does what is below.

A turn of a placeholder costs 1/weight of virtual time, whatever is sent below it; ties go to the
lower stream id, to streams before placeholders, and to placeholders as declared.
"""

from __future__ import annotations

import pytest

from tests.helpers import finished_ms, replay

BOTH = pytest.mark.parametrize("scheme", ["firefox", "firefox-figure"])


@BOTH
@pytest.mark.parametrize(
    ("leader", "unblocked"),
    [
        (("stylesheet", {}), ("fetch", {})),
        (("script", {"in_head": True}), ("script", {"async": True})),
        (("script", {}), ("script", {"defer": True})),
        (("script", {}), ("fetch", {})),
    ],
)
def test_leaders_and_unblocked_share_as_201_to_101(
    scheme: str, leader: tuple[str, dict[str, bool]], unblocked: tuple[str, dict[str, bool]]
) -> None:
    steps = [(0, leader[0], 6, leader[1]), (0, unblocked[0], 3, unblocked[1])]
    load = replay(steps, scheme)
    # Units of 1/(101 * 201): leaders at 101, 202, 303, 404, 505, 606; unblocked at 201, 402, 603.
    assert load.trace.order == [0, 4, 0, 0, 4, 0, 0, 4, 0]
    assert finished_ms(load) == {0: 90, 4: 80}


@BOTH
def test_followers_get_one_turn_for_32_of_a_leader(scheme: str) -> None:
    load = replay([(0, "stylesheet", 40), (0, "image", 3)], scheme)
    # Under leaders: the stylesheet of weight 32 and the placeholder followers of weight 1. Units
    # of 1/32: stylesheet 1, 2, ... 40, followers 32, 64; the tie at 32 goes to the stream.
    assert load.trace.order == [0] * 32 + [4] + [0] * 8 + [4, 4]
    assert finished_ms(load) == {0: 410, 4: 430}


@BOTH
def test_a_later_stylesheet_overtakes_an_image(scheme: str) -> None:
    load = replay([(0, "image", 3), (15, "stylesheet", 2)], scheme)
    # 10: followers at 1, next at 2. The stylesheet joins leaders at 1 + 1/32 and goes there and at
    # 1 + 2/32; then the image goes on.
    assert load.trace.order == [0, 4, 4, 0, 0]
    assert finished_ms(load) == {0: 50, 4: 30}


@BOTH
def test_background_gets_one_turn_for_201_of_leaders(scheme: str) -> None:
    load = replay([(0, "stylesheet", 205), (0, "other", 2)], scheme)
    # Units of 1/201: leaders 1, 2, ..., background 201; that tie goes to leaders, declared first.
    assert load.trace.order == [0] * 201 + [4] + [0] * 4 + [4]


def test_documents_and_images_follow_by_32_to_22() -> None:
    load = replay([(0, "document", 4), (0, "image", 3)], "firefox")
    # Units of 1/352: document 11 22 33 44, image 16 32 48.
    assert load.trace.order == [0, 4, 0, 4, 0, 0, 4]
    assert finished_ms(load) == {0: 60, 4: 70}


def test_fonts_weigh_as_much_as_documents_in_the_code() -> None:
    load = replay([(0, "document", 2), (0, "font", 2)], "firefox")
    assert load.trace.order == [0, 4, 0, 4]


def test_preloads_wait_behind_the_rest_of_the_background() -> None:
    load = replay([(0, "other", 34), (0, "font", 2, {"preload": True})], "firefox")
    # Under background: a stream of weight 32, and speculative of weight 1 with the font below it.
    # Units of 1/32: the stream at 1, 2, ... 34, speculative at 32; that tie goes to the stream.
    assert load.trace.order == [0] * 32 + [4] + [0] * 2 + [4]


def test_in_the_figure_documents_start_urgently() -> None:
    load = replay([(0, "document", 7), (0, "stylesheet", 6)], "firefox-figure")
    # urgent-start 240, leaders 201. Units of 1/(80 * 201): a turn costs 67 and 80. Documents at
    # 67 134 201 268 335 402 469, the stylesheet at 80 160 240 320 400 480.
    assert load.trace.order == [0, 4] * 5 + [0, 0, 4]
    assert finished_ms(load) == {0: 120, 4: 130}


def test_in_the_figure_fonts_weigh_42() -> None:
    load = replay([(0, "font", 5), (0, "image", 3)], "firefox-figure")
    # 42 to 22. Units of 1/462: font 11 22 33 44 55, image 21 42 63.
    assert load.trace.order == [0, 4, 0, 0, 4, 0, 0, 4]
    assert finished_ms(load) == {0: 70, 4: 80}


def test_in_the_figure_what_is_unknown_weighs_16() -> None:
    load = replay([(0, "other", 18), (0, "font", 2, {"preload": True})], "firefox-figure")
    # Units of 1/16: the unknown at 1, 2, ... 18, speculative at 16; that tie goes to the stream.
    assert load.trace.order == [0] * 16 + [4] + [0] * 2 + [4]


def test_a_deferred_script_in_the_head_leads_in_the_code_and_is_unblocked_in_the_figure() -> None:
    steps = [(0, "script", 3, {"in_head": True, "defer": True}), (0, "stylesheet", 3)]
    # Code: both lead, with 32 each. Figure (case study 1): 101 to 201.
    assert replay(steps, "firefox").trace.order == [0, 4, 0, 4, 0, 4]
    # Units of 1/(101 * 201): leaders at 101, 202, 303; unblocked at 201, 402, 603.
    assert replay(steps, "firefox-figure").trace.order == [4, 0, 4, 4, 0, 0]
