"""p+ by hand: a chain high (256), normal (1 while high is in the tree, else 256), low (1)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from h3sim.signals import H2Priority
from tests.helpers import finished_ms, replay

if TYPE_CHECKING:
    from h3sim import Load

HIGH, NORMAL, LOW = -1, -2, -3
LATE = {"after_first_image": True}


def weights_of(load: Load, element_id: int) -> list[tuple[float, int]]:
    """Return when (in ms) the element was given which weight."""
    return [
        (s.at_ns / 1e6, s.signal.weight) for s in load.trace.signals if s.element_id == element_id
    ]


def test_high_goes_first_in_arrival_order() -> None:
    steps = [(0, "image", 1), (0, "fetch", 2), (0, "script", 1), (0, "stylesheet", 2)]
    load = replay(steps, "p+")
    # All but the image are high: one chain, in which a stylesheet does not overtake. High falls at
    # 1/256, 2/256, ... and low at 1.
    assert load.trace.order == [4, 4, 8, 12, 12, 0]
    assert finished_ms(load) == {0: 60, 4: 20, 8: 30, 12: 50}
    chain = {s.element_id: s.signal for s in load.trace.signals if s.element_id > 0}
    assert chain == {
        4: H2Priority(weight=256, depends_on=HIGH),
        8: H2Priority(weight=256, depends_on=4),
        12: H2Priority(weight=256, depends_on=8),
    }


def test_while_high_is_there_normal_and_low_halve_what_it_leaves() -> None:
    load = replay([(0, "document", 3), (0, "script", 2, LATE), (0, "image", 2)], "p+")
    # Normal yields: its weight is 1, like that of low. Both fall at 1 and 2, normal declared first;
    # high fell at 1/256, 2/256 and 3/256.
    assert load.trace.order == [0, 0, 0, 4, 8, 4, 8]
    assert finished_ms(load) == {0: 30, 4: 60, 8: 70}


def test_high_gets_256_turns_for_one_of_normal_and_one_of_low() -> None:
    load = replay([(0, "document", 258), (0, "script", 1, LATE), (0, "image", 1)], "p+")
    # High falls at 1/256, ...; at 256/256 it ties with normal and low and is declared first.
    assert load.trace.order == [0] * 256 + [4, 8] + [0] * 2


def test_normal_gets_its_weight_back_500_ms_after_the_last_chunk_of_high() -> None:
    load = replay([(0, "document", 1), (0, "script", 60, LATE), (0, "image", 60)], "p+")
    assert weights_of(load, NORMAL) == [(0, 256), (0, 1), (510, 256)]
    # 20 to 490: 24 turns each, alternating. 500: normal at 25, next at 26. At 510 the weight
    # changes, for turns to come. 510: low at 25; 520: normal at 26 (declared first), next at
    # 26 + 1/256; 530: low at 26, next at 27, before which fall the 34 that normal has left.
    assert load.trace.order == [0] + [4, 8] * 24 + [4, 8, 4, 8] + [4] * 34 + [8] * 34
    assert finished_ms(load) == {0: 10, 4: 870, 8: 1210}


def test_a_send_buffer_takes_the_last_chunk_of_high_as_the_response_begins() -> None:
    steps = [(0, "document", 2), (0, "script", 60, LATE)]
    buffered = replay(steps, "p+", send_buffer_kb=1000)
    assert weights_of(buffered, NORMAL) == [(0, 256), (0, 1), (500, 256)]
    assert weights_of(replay(steps, "p+"), NORMAL) == [(0, 256), (0, 1), (520, 256)]


def test_the_500_ms_count_from_the_last_stream_of_high() -> None:
    load = replay([(0, "document", 1), (300, "stylesheet", 1), (900, "font", 1)], "p+")
    # The document leaves at 510, the stylesheet (sent at 300) at 800; the font comes at 900.
    assert weights_of(load, NORMAL) == [(0, 256), (0, 1), (800, 256), (900, 1)]
    # The stylesheet finds the document in the tree and hangs below it; the font finds high empty.
    assert load.trace.signals[-1].signal == H2Priority(weight=256, depends_on=HIGH)
    assert finished_ms(load) == {0: 10, 4: 300, 8: 900}


def test_without_high_normal_gets_256_turns_for_one_of_low() -> None:
    load = replay([(0, "image", 2), (0, "script", 258, LATE)], "p+")
    # Normal has its full weight: 1/256, ..., and is declared before low for the tie at 1.
    assert weights_of(load, NORMAL) == [(0, 256)]
    assert load.trace.order == [4] * 256 + [0] + [4] * 2 + [0]


def test_a_later_stylesheet_overtakes_an_image() -> None:
    load = replay([(0, "image", 5), (25, "stylesheet", 2)], "p+")
    # Low at 1 and 2, next at 3; high joins at 2 + 1/256 and goes there and at 2 + 2/256.
    assert load.trace.order == [0, 0, 4, 4, 0, 0, 0]
    assert finished_ms(load) == {0: 70, 4: 40}


def test_low_streams_share_equally() -> None:
    steps = [(0, "image", 2), (0, "script", 2, {"async": True}), (0, "other", 1)]
    load = replay(steps, "p+")
    assert load.trace.order == [0, 4, 8, 0, 4]
    assert {s.signal for s in load.trace.signals if s.element_id >= 0} == {
        H2Priority(weight=110, depends_on=LOW)
    }
