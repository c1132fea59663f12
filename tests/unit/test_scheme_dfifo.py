"""dfifo by hand: one chain, in which each stream is put below the last of its class or higher."""

from __future__ import annotations

from h3sim.signals import H2Priority
from tests.helpers import finished_ms, replay


def test_higher_classes_go_first_and_each_class_in_request_order() -> None:
    load = replay(
        [
            (0, "image", 2),  # low
            (0, "script", 2, {"after_first_image": True}),  # normal
            (0, "script", 2),  # high
            (0, "stylesheet", 2),  # highest
            (0, "other", 2),  # lowest
            (0, "font", 1),  # highest, behind the stylesheet
        ],
        "dfifo",
    )
    assert load.trace.order == [12, 12, 20, 8, 8, 4, 4, 0, 0, 16, 16]
    assert finished_ms(load) == {0: 90, 4: 70, 8: 50, 12: 20, 16: 110, 20: 30}


def test_a_stream_is_put_exclusively_below_the_tail_of_the_lowest_class_not_below_its_own() -> None:
    steps = [(0, "document", 9), (0, "image", 1), (0, "script", 1), (0, "image", 1), (0, "font", 1)]
    load = replay(steps, "dfifo")
    # image: below the document; script (high): below the document too, above the image; second
    # image: below the first; font (highest): below the document.
    assert [(s.element_id, s.signal) for s in load.trace.signals] == [
        (0, H2Priority(weight=256, depends_on=None, exclusive=True)),
        (4, H2Priority(weight=147, depends_on=0, exclusive=True)),
        (8, H2Priority(weight=220, depends_on=0, exclusive=True)),
        (12, H2Priority(weight=147, depends_on=4, exclusive=True)),
        (16, H2Priority(weight=256, depends_on=0, exclusive=True)),
    ]
    # The chain is 0, 16, 8, 4, 12.
    assert load.trace.order == [0] * 9 + [16, 8, 4, 12]


def test_a_later_higher_class_goes_from_the_next_packet_on() -> None:
    load = replay(
        [(0, "document", 1), (0, "image", 3), (25, "font", 2), (35, "script", 1)], "dfifo"
    )
    # 10: document, 20: image; the font of 25 goes at 30 and 40, the script of 35 waits for it and
    # goes at 50, and then what is left of the image.
    assert load.trace.order == [0, 4, 8, 8, 12, 4, 4]
    assert finished_ms(load) == {0: 10, 4: 70, 8: 40, 12: 50}


def test_an_equal_class_does_not_overtake() -> None:
    load = replay([(0, "document", 3), (0, "image", 1), (15, "stylesheet", 1)], "dfifo")
    assert load.trace.order == [0, 0, 0, 8, 4]
    assert finished_ms(load) == {0: 30, 4: 50, 8: 40}


def test_once_the_tail_has_left_the_tree_a_new_stream_goes_to_the_top() -> None:
    load = replay([(0, "document", 1), (0, "image", 60), (515, "stylesheet", 1)], "dfifo")
    # The document's last packet went at 10, so it leaves at 510 and the image moves up to the
    # root. The stylesheet of 515 finds no tail: it is put exclusively under the root.
    assert load.trace.signals[-1].signal == H2Priority(weight=256, exclusive=True)
    # 10: document; 20 to 510: 50 packets of the image; 520: stylesheet; 10 more of the image.
    assert load.trace.order == [0] + [4] * 50 + [8] + [4] * 10
    assert finished_ms(load) == {0: 10, 4: 620, 8: 520}
