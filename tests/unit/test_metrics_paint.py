"""What is seen when, by hand: the largest paint, and the approximate SpeedIndex."""

from __future__ import annotations

import pytest

from h3sim.metrics.visual import Element, largest_paint_ns, speed_index_ns


def element(ready_at_ns: int, share: float | None = None, *, is_hero: bool = False) -> Element:
    return Element(share, is_hero, ready_at_ns)


def test_of_several_heroes_the_one_that_is_there_last_counts_wherever_it_is_named() -> None:
    heroes = [element(20, is_hero=True), element(90, is_hero=True), element(40, is_hero=True)]
    for turned in (heroes, heroes[1:] + heroes[:1], heroes[2:] + heroes[:2]):
        assert largest_paint_ns(10, turned) == 90


def test_a_hero_goes_before_what_is_larger() -> None:
    assert largest_paint_ns(10, [element(20, 0.1, is_hero=True), element(90, 0.8)]) == 20


def test_what_has_no_share_is_never_the_largest() -> None:
    assert largest_paint_ns(10, [element(90), element(30, 0.2), element(60, 0.0)]) == 30
    assert largest_paint_ns(10, [element(90)]) == 10


def test_nothing_is_painted_before_the_first_paint() -> None:
    assert largest_paint_ns(50, [element(20, is_hero=True)]) == 50
    assert largest_paint_ns(50, [element(20, 0.5)]) == 50


def test_elements_that_overlap_are_scaled_to_the_viewport() -> None:
    """0.8 and 0.8 of the viewport are half each: (100 + 300) / 2, and no text beside them."""
    overlapping = [element(100, 0.8), element(300, 0.8)]
    assert speed_index_ns(10, overlapping) == 200
    # 1.5 and 0.5: three quarters and one quarter.
    assert speed_index_ns(10, [element(100, 1.5), element(300, 0.5)]) == 150


def test_what_no_element_covers_is_seen_from_the_first_paint_on() -> None:
    """0.25 at 300 ns and the rest at 100: 75 + 75. Times count from the origin."""
    assert speed_index_ns(100, [element(300, 0.25)]) == 150
    assert speed_index_ns(100, [element(300, 0.25)], origin_ns=40) == 110


@pytest.mark.parametrize("elements", [[], [element(30)], [element(30, 0.0)]])
def test_without_a_share_there_is_no_speed_index(elements: list[Element]) -> None:
    assert speed_index_ns(10, elements) is None


def test_of_the_largest_of_one_size_the_first_that_is_painted_counts() -> None:
    """Largest Contentful Paint § 4: a later element that is no larger does not replace it."""
    early, late = element(30, 0.4), element(90, 0.4)
    assert largest_paint_ns(10, [early, late]) == largest_paint_ns(10, [late, early]) == 30
