"""s+ by hand: chains high (256) and medium (1 while high is in the tree, else 256), low (1)."""

from __future__ import annotations

from h3sim.signals import H2Priority
from tests.helpers import finished_ms, replay

HIGH, MEDIUM = -1, -2


def test_the_document_starves_behind_stylesheets_and_head_scripts() -> None:
    steps = [(0, "document", 3), (0, "stylesheet", 3), (0, "script", 2, {"in_head": True})]
    load = replay(steps, "s+")
    # High falls at 1/256, 2/256, ...; low, with the document far below it, at 1, 2, 3.
    assert load.trace.order == [4, 4, 4, 8, 8, 0, 0, 0]
    assert finished_ms(load) == {0: 80, 4: 30, 8: 50}


def test_the_document_gets_one_turn_in_257() -> None:
    load = replay([(0, "document", 2), (0, "stylesheet", 258)], "s+")
    # The tie at 256/256 goes to high, declared first.
    assert load.trace.order == [4] * 256 + [0] + [4] * 2 + [0]


def test_high_is_a_chain_in_arrival_order() -> None:
    steps = [(0, "script", 2, {"in_head": True}), (0, "stylesheet", 1), (0, "font", 1)]
    load = replay(steps, "s+")
    assert [s.signal for s in load.trace.signals if s.element_id in (0, 4)] == [
        H2Priority(depends_on=HIGH),
        H2Priority(depends_on=0),
    ]
    assert load.trace.order == [0, 0, 4, 8]


def test_medium_is_a_chain_that_goes_before_low() -> None:
    load = replay([(0, "image", 1), (0, "script", 2), (0, "fetch", 2)], "s+")
    # High is empty, so medium has its full weight: 1/256, ... against low at 1.
    assert load.trace.order == [4, 4, 8, 8, 0]
    assert finished_ms(load) == {0: 50, 4: 20, 8: 40}


def test_medium_gets_its_weight_back_500_ms_after_the_last_chunk_of_high() -> None:
    load = replay([(0, "stylesheet", 1), (0, "script", 60), (0, "image", 60)], "s+")
    changes = [s for s in load.trace.signals if s.element_id == MEDIUM]
    assert [(s.at_ns / 1e6, s.signal.weight) for s in changes] == [(0, 256), (0, 1), (510, 256)]
    # As in p+: alternating from 20 on; 510: low at 25; 520: medium at 26, next at 26 + 1/256;
    # 530: low at 26, next at 27, before which fall the 34 that medium has left.
    assert load.trace.order == [0] + [4, 8] * 24 + [4, 8, 4, 8] + [4] * 34 + [8] * 34
    assert finished_ms(load) == {0: 10, 4: 870, 8: 1210}


def test_a_later_stylesheet_overtakes_all_else() -> None:
    load = replay([(0, "script", 3), (0, "image", 2), (15, "stylesheet", 2)], "s+")
    # 10: medium at 1/256, next at 2/256, set before the weight goes to 1 at 15. The stylesheet
    # joins at 2/256, declared before medium: 20. Then medium at 2/256: 30, next at 2/256 + 1.
    # High at 3/256: 40. Low at 1: 50, next at 2. Medium at 1 + 2/256: 60. Low at 2: 70.
    assert load.trace.order == [0, 8, 0, 8, 4, 0, 4]
    assert finished_ms(load) == {0: 60, 4: 70, 8: 40}


def test_followers_get_201_turns_for_one_of_the_background() -> None:
    load = replay([(0, "image", 203), (0, "other", 2)], "s+")
    # Under low: leaders (201), with followers and the image below, and background (1).
    assert load.trace.order == [0] * 201 + [4] + [0] * 2 + [4]


def test_documents_images_and_fonts_share_equally() -> None:
    load = replay([(0, "document", 2), (0, "image", 2), (0, "font", 1)], "s+")
    assert load.trace.order == [0, 4, 8, 0, 4]


def test_preloads_wait_behind_the_rest_of_the_background() -> None:
    load = replay([(0, "other", 18), (0, "image", 2, {"preload": True})], "s+")
    # Under background: a stream of weight 16, and speculative of weight 1.
    assert load.trace.order == [0] * 16 + [4] + [0] * 2 + [4]
