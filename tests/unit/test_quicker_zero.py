"""Zero weights in Quicker's arithmetic, by hand: what goes on once a turn has cost infinity.

Stream 0 has weight 0 and was served: no time tells its siblings apart any more. Of those that wait
the first and the last take turns; who leaves the front leaves it to the last.
"""

from __future__ import annotations

import pytest

from h3sim.schedulers import TreeScheduler, Weights
from tests.unit.driving import TURN_BYTES, drain_order, on, opened, turns


def quicker(weights: dict[int, int]) -> TreeScheduler:
    """Return siblings of those weights, all with data."""
    tree = TreeScheduler(weights=Weights.QUICKER_ZERO)
    return opened(tree, {stream_id: on(None, weight) for stream_id, weight in weights.items()})


def timeless(*stream_ids: int) -> TreeScheduler:
    """Return a tree in which those joined, in their order, after stream 0 was served."""
    tree = quicker({0: 0})
    assert turns(tree, 1) == [0]
    return opened(tree, {stream_id: on(None) for stream_id in stream_ids})


class TestTheLine:
    def test_the_first_and_the_last_take_turns(self) -> None:
        # By when they joined, not by id.
        assert turns(timeless(16, 8, 12, 4), 5) == [16, 4, 16, 4, 16]
        assert turns(timeless(4, 8), 3) == [4, 8, 4]
        assert turns(timeless(4), 3) == [4, 4, 4]

    def test_all_of_it_goes_before_weight_0_and_behind_weight_255(self) -> None:
        tree = timeless(8, 4)
        opened(tree, {12: on(None, 255), 16: on(None, 0)})
        assert drain_order(tree, 6) == [12, 8, 4, 0, 16, None]

    def test_without_a_share_there_is_none(self) -> None:
        tree = timeless()
        opened(tree, {12: on(None, 255), 16: on(None, 0)})
        assert turns(tree, 2) == [12, 12]
        assert drain_order(tree, 4) == [12, 0, 16, None]

    def test_weight_0_has_a_turn_again_once_no_other_has_data(self) -> None:
        tree = timeless(4)
        tree.deactivate(4)
        assert turns(tree, 2) == [0, 0]
        tree.activate(4)
        assert turns(tree, 2) == [4, 4]

    def test_who_joins_stands_at_the_end(self) -> None:
        tree = timeless(4, 8)
        assert turns(tree, 1) == [4]
        # 8 is the first now, and 4 the last; 12 comes behind it.
        opened(tree, {12: on(None)})
        assert turns(tree, 4) == [8, 12, 8, 12]

    @pytest.mark.parametrize(
        ("leaver", "order"),
        [
            # The last takes the place of the first ...
            (4, [20, 16, 20, 16]),
            # ... and nobody that of another.
            (8, [4, 20, 4, 20]),
            (16, [4, 20, 4, 20]),
            (20, [4, 16, 4, 16]),
        ],
    )
    def test_who_leaves(self, leaver: int, order: list[int]) -> None:
        tree = timeless(4, 8, 12, 16, 20)
        tree.deactivate(leaver)
        assert turns(tree, 4) == order

    @pytest.mark.parametrize(
        ("leaver", "order"),
        [(20, [4, 16, 4, 16]), (4, [20, 16, 20, 16]), (8, [20, 4, 20, 4])],
    )
    def test_who_leaves_after_a_turn(self, leaver: int, order: list[int]) -> None:
        # 4 had it: the line is 20, 8, 12, 16, 4.
        tree = timeless(4, 8, 12, 16, 20)
        assert turns(tree, 1) == [4]
        tree.deactivate(leaver)
        assert turns(tree, 4) == order

    def test_it_empties_from_the_front_by_the_last(self) -> None:
        assert drain_order(timeless(4, 8, 12, 16, 20), 7) == [4, 20, 16, 12, 8, 0, None]

    def test_lost_bytes_outside_of_a_turn_move_nobody(self) -> None:
        tree = timeless(4, 8, 12)
        for stream_id in (8, 12):
            tree.charge(stream_id, TURN_BYTES)
        assert turns(tree, 3) == [4, 12, 4]

    def test_a_share_that_becomes_another_keeps_its_place(self) -> None:
        tree = timeless(4, 8, 12)
        tree.update(8, on(None, 254))
        assert turns(tree, 3) == [4, 12, 4]

    def test_a_share_that_becomes_255_leaves_the_line_and_comes_back_to_its_end(self) -> None:
        tree = timeless(4, 8, 12)
        tree.update(4, on(None, 255))
        assert turns(tree, 2) == [4, 4]
        tree.update(4, on(None, 16))
        # 12 took its place: 12, 8, 4.
        assert turns(tree, 4) == [12, 4, 12, 4]

    def test_each_parent_has_a_time_of_its_own(self) -> None:
        # Group 4 is below the root, whose time has ended; below it all share by weight.
        tree = timeless(4)
        tree.deactivate(4)
        opened(tree, {8: on(4, 16), 12: on(4, 32)})
        assert turns(tree, 6) == [12, 8, 12, 12, 8, 12]


class TestWhenTimeEnds:
    """Lost bytes of weight 0 may go while its siblings have data."""

    def test_who_has_data_stands_in_the_order_of_its_time(self) -> None:
        # One turn is due at 22,400, at 11,200, at 44,800 and at 89,600: 8, 4, 12, 16.
        tree = quicker({0: 0, 4: 16, 8: 32, 12: 8, 16: 4})
        tree.charge(0, TURN_BYTES)
        assert turns(tree, 4) == [8, 16, 8, 16]
        assert drain_order(tree, 6) == [8, 16, 12, 4, 0, None]

    def test_turns_that_were_left_behind_do_not_count(self) -> None:
        # 4 was due first but for 8, leaves and comes back: a turn behind 8, at 33,600.
        tree = quicker({0: 0, 4: 16, 8: 32, 12: 16})
        assert turns(tree, 1) == [8]
        tree.deactivate(4)
        tree.activate(4)
        # 8 and 12 are due at 22,400, and ties fall to the lower id: 8, 12, 4.
        tree.charge(0, TURN_BYTES)
        assert turns(tree, 4) == [8, 4, 8, 4]
        assert drain_order(tree, 4) == [8, 4, 12, 0]

    def test_it_ends_once(self) -> None:
        tree = timeless(4, 8, 12)
        assert turns(tree, 1) == [4]
        tree.charge(0, TURN_BYTES)
        assert turns(tree, 3) == [12, 4, 12]

    def test_weight_255_goes_on_before_all(self) -> None:
        tree = quicker({0: 0, 4: 255, 8: 16, 12: 16})
        tree.charge(0, TURN_BYTES)
        assert turns(tree, 2) == [4, 4]
        tree.deactivate(4)
        assert turns(tree, 3) == [8, 12, 8]

    def test_before_it_who_joins_starts_a_turn_behind_the_one_served_last(self) -> None:
        # 8 goes at 22,400 and 44,800, and is due at 67,200: there 12 joins, and 4 behind both.
        tree = quicker({8: 16})
        assert turns(tree, 2) == [8, 8]
        opened(tree, {12: on(None, 16), 4: on(None, 8)})
        assert turns(tree, 5) == [8, 12, 4, 8, 12]

    def test_before_it_lost_bytes_of_who_is_not_next_cost_as_a_turn(self) -> None:
        # Both join at 22,400, and 8 pays 22,400 for what was lost: 4 goes at 22,400 and 44,800.
        tree = quicker({4: 16, 8: 16})
        tree.charge(8, TURN_BYTES)
        assert turns(tree, 4) == [4, 4, 8, 4]
