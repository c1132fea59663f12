"""wrr by hand: a packet costs 1/weight of virtual time, and a stream joins one packet later.

The comments count virtual time in units that make each step whole.
"""

from __future__ import annotations

from tests.helpers import finished_ms, replay


def test_a_script_gets_three_packets_for_each_of_an_image() -> None:
    load = replay([(0, "script", 6), (0, "image", 3)], "wrr")
    # Weights 24 and 8. Units of 1/24: the script's packets fall at 1, 2, 3, 4, 5, 6, those of the
    # image at 3, 6, 9; the ties at 3 and 6 go to the script, stream 0.
    assert load.trace.order == [0, 0, 0, 4, 0, 0, 0, 4, 4]
    assert finished_ms(load) == {0: 70, 4: 90}


def test_a_document_gets_sixteen_packets_for_each_of_a_font() -> None:
    load = replay([(0, "document", 20), (0, "font", 2)], "wrr")
    # Weights 256 and 16. Units of 1/256: document 1, 2, ... 20, font 16 and 32; the tie at 16 goes
    # to the document.
    assert load.trace.order == [0] * 16 + [4] + [0] * 4 + [4]
    assert finished_ms(load) == {0: 210, 4: 220}


def test_three_classes_share_by_their_weights() -> None:
    load = replay([(0, "font", 4), (0, "script", 4), (0, "fetch", 2)], "wrr")
    # Weights 16, 24, 8. Units of 1/48: font 3 6 9 12, script 2 4 6 8, fetch 6 12.
    # 2: 4 | 3: 0 | 4: 4 | 6: 0 4 8 | 8: 4 | 9: 0 | 12: 0 8
    assert load.trace.order == [4, 0, 4, 0, 4, 8, 4, 0, 0, 8]
    assert finished_ms(load) == {0: 90, 4: 70, 8: 100}


def test_a_script_that_joins_starts_one_packet_behind_the_image_served_last() -> None:
    load = replay([(0, "image", 4), (15, "script", 3)], "wrr")
    # Units of 1/24. At 10 the image goes at 3, next at 6. At 15 the script joins at 3 + 1: it goes
    # at 4 and 5; the tie at 6 goes to the image (next 9); the script at 6; then the image.
    assert load.trace.order == [0, 4, 4, 0, 4, 0, 0]
    assert finished_ms(load) == {0: 70, 4: 50}


def test_a_stylesheet_weighs_as_much_as_a_document() -> None:
    load = replay([(0, "document", 2), (0, "stylesheet", 2)], "wrr")
    assert load.trace.order == [0, 4, 0, 4]
