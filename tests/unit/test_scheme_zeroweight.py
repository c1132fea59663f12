"""zeroweight and zeroweight-simple by hand: 255 first, 1 to 254 share, 0 last.

Weights 255 and 0 are sent one at a time, lowest id first.
"""

from __future__ import annotations

from tests.helpers import finished_ms, replay

CRITICAL = {"critical": True}
VISIBLE = {"above_the_fold": True}


def test_first_then_shares_then_last() -> None:
    load = replay(
        [
            (0, "document", 2),  # the root: 255
            (0, "script", 2, CRITICAL),  # 255
            (0, "font", 2),  # 128
            (0, "script", 1),  # 16
            (0, "image", 2),  # 0
            (0, "other", 1),  # 0
        ],
        "zeroweight",
    )
    # 255: 0 0, 4 4. Shares, units of 1/128: font 1 2, script 8. Zeros by id: 16 16, 20.
    assert load.trace.order == [0, 0, 4, 4, 8, 8, 12, 16, 16, 20]
    assert finished_ms(load) == {0: 20, 4: 40, 8: 60, 12: 70, 16: 90, 20: 100}


def test_fonts_get_eight_packets_for_each_of_a_fetch() -> None:
    load = replay([(0, "document", 1), (0, "font", 10), (0, "fetch", 2)], "zeroweight")
    # 128 to 16. Units of 1/128: font 1 ... 10, fetch 8 and 16; the tie at 8 goes to the font.
    assert load.trace.order == [0] + [4] * 8 + [8, 4, 4, 8]
    assert finished_ms(load) == {0: 10, 4: 120, 8: 130}


def test_a_later_higher_weight_overtakes_what_weighs_nothing() -> None:
    steps = [(0, "document", 1), (0, "image", 3), (25, "stylesheet", 1, CRITICAL), (25, "font", 2)]
    load = replay(steps, "zeroweight")
    # 10: document, 20: image, 30: stylesheet (255), 40, 50: font (128), then the image.
    assert load.trace.order == [0, 4, 8, 12, 12, 4, 4]
    assert finished_ms(load) == {0: 10, 4: 70, 8: 30, 12: 50}


def test_among_255_the_lower_id_goes_first_once_it_is_ready() -> None:
    steps = [(0, "document", 2, {"server_ms": 25}), (0, "script", 3, CRITICAL)]
    load = replay(steps, "zeroweight")
    assert load.trace.order == [4, 4, 0, 0, 4]
    assert finished_ms(load) == {0: 40, 4: 50}


def test_among_0_the_lower_id_goes_first_once_it_is_ready() -> None:
    steps = [(0, "document", 1), (0, "image", 2, {"server_ms": 25}), (0, "other", 3)]
    load = replay(steps, "zeroweight")
    # 10: document, 20: other; from 25 on the image.
    assert load.trace.order == [0, 8, 4, 4, 8, 8]
    assert finished_ms(load) == {0: 10, 4: 40, 8: 60}


def test_visible_images_share_with_fonts_as_equals() -> None:
    load = replay([(0, "document", 1), (0, "image", 2, VISIBLE), (0, "font", 2)], "zeroweight")
    assert load.trace.order == [0, 4, 8, 4, 8]


def test_simple_a_script_gets_three_packets_for_each_of_a_visible_image() -> None:
    steps = [(0, "document", 1), (0, "script", 6), (0, "image", 2, VISIBLE)]
    load = replay(steps, "zeroweight-simple")
    # 24 to 8. Units of 1/24: script 1 2 3 4 5 6, image 3 6; ties go to the script.
    assert load.trace.order == [0, 4, 4, 4, 8, 4, 4, 4, 8]
    assert finished_ms(load) == {0: 10, 4: 80, 8: 90}


def test_simple_what_weighs_nothing_goes_last_by_id() -> None:
    steps = [(0, "document", 1), (0, "fetch", 2), (0, "image", 2), (0, "other", 1)]
    load = replay(steps, "zeroweight-simple")
    # The image weighs 1, fetch and other 0.
    assert load.trace.order == [0, 8, 8, 4, 4, 12]
    assert finished_ms(load) == {0: 10, 4: 50, 8: 30, 12: 60}


def test_simple_stylesheets_and_scripts_share_as_254_to_24() -> None:
    load = replay(
        [(0, "document", 1), (0, "stylesheet", 11), (0, "script", 1)], "zeroweight-simple"
    )
    # Units of 1/3048: a packet of the stylesheet costs 12, one of the script 127: ten stylesheet
    # packets (to 120), the script (127), the eleventh (132).
    assert load.trace.order == [0] + [4] * 10 + [8, 4]


def test_simple_a_later_stylesheet_overtakes_an_image() -> None:
    load = replay([(0, "document", 1), (0, "image", 3), (25, "stylesheet", 2)], "zeroweight-simple")
    # 20: image at 1, next at 2. The stylesheet joins at 1 + 1/254, and goes twice before 2.
    assert load.trace.order == [0, 4, 8, 8, 4, 4]
    assert finished_ms(load) == {0: 10, 4: 60, 8: 40}
