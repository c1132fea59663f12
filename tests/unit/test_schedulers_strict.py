"""Swett's strict priorities by hand (base-drafts PR 2700).

Equal strict priorities share as siblings in the tree do: a turn costs 1/weight of virtual time, a
stream joins a turn behind the one served last, and ties go to the lower id.
"""

from __future__ import annotations

import pickle

import pytest

from h3sim.schedulers import SelfDependencyError, StrictScheduler
from h3sim.signals import H2Priority, StrictPriority
from tests.unit.driving import drain_order, opened, turns


def at(strict: int = 16, weight: int = 16, below: int | None = None) -> StrictPriority:
    return StrictPriority(strict=strict, weight=weight, depends_on=below)


class TestSignal:
    def test_the_default_weight_is_16(self) -> None:
        assert StrictPriority() == at(strict=16, weight=16, below=None)

    @pytest.mark.parametrize(
        ("wrong", "message"),
        [
            ({"weight": 0}, "weight .*, is 0"),
            ({"weight": 257}, "weight .*, is 257"),
            ({"strict": -1}, "strict .*, is -1"),
            ({"strict": 256}, "strict .*, is 256"),
            ({"depends_on": 0}, "depends_on must be a placeholder, is stream 0"),
        ],
    )
    def test_what_is_out_of_range_is_refused(self, wrong: dict[str, int], message: str) -> None:
        with pytest.raises(ValueError, match=message):
            StrictPriority(**wrong)


class TestOrder:
    def test_the_highest_goes_first_and_to_its_end(self) -> None:
        scheduler = opened(StrictScheduler(), {0: at(0), 4: at(255), 8: at(17), 12: at()})
        assert turns(scheduler, 2) == [4, 4]
        assert drain_order(scheduler, 5) == [4, 8, 12, 0, None]

    def test_equal_ones_share_by_weight(self) -> None:
        # In turns of weight 32: 4 at 1, 2, 3, ...; 0 at 2, 4, ...
        scheduler = opened(StrictScheduler(), {0: at(9, 16), 4: at(9, 32), 8: at(8, 256)})
        assert turns(scheduler, 6) == [4, 0, 4, 4, 0, 4]

    def test_a_new_weight_alone_counts_from_the_next_turn_on(self) -> None:
        # In turns of weight 16: both at 1; then 4 at 1, 1.5, 2, 2.5 and 0 at 1, 2.
        scheduler = opened(StrictScheduler(), {0: at(9, 16), 4: at(9, 16)})
        scheduler.update(4, at(9, 32))
        assert turns(scheduler, 6) == [0, 4, 4, 0, 4, 4]

    def test_a_new_signal_holds_from_the_next_pick_on(self) -> None:
        scheduler = opened(StrictScheduler(), {0: at(), 4: at()})
        scheduler.update(4, at(17))
        assert turns(scheduler, 3) == [4, 4, 4]
        scheduler.update(4, at(15))
        assert turns(scheduler, 2) == [0, 0]
        # Back in one level it joins a turn behind 0, which was served last at 2 turns.
        scheduler.update(4, at(16))
        assert turns(scheduler, 4) == [0, 4, 0, 4]

    def test_a_signal_of_another_kind_counts_as_the_default(self) -> None:
        scheduler = opened(StrictScheduler(), {0: at(15), 4: H2Priority(weight=1), 8: at(17)})
        assert drain_order(scheduler, 3) == [8, 4, 0]


class TestPlaceholders:
    def test_a_placeholder_stands_for_what_is_below_it(self) -> None:
        signals = {-1: at(20), -2: at(10), 0: at(255, below=-2), 4: at(0, below=-1), 8: at(15)}
        assert drain_order(opened(StrictScheduler(), signals), 4) == [4, 8, 0, None]

    def test_placeholders_share_with_streams_and_are_charged_full_quanta(self) -> None:
        # 8 and -1 are level; below -1 are 0 and 4, level again. Streams before placeholders.
        signals = {-1: at(), 0: at(below=-1), 4: at(below=-1), 8: at()}
        scheduler = opened(StrictScheduler(), signals)
        assert turns(scheduler, 6, n_bytes=1400) == [8, 0, 8, 4, 8, 0]
        scheduler = opened(StrictScheduler(), signals)
        # Both join at 1. A byte costs 8 next to nothing, and -1 a turn.
        assert turns(scheduler, 4, n_bytes=1) == [8, 0, 8, 8]

    def test_one_that_has_not_come_yet_has_the_default_until_it_does(self) -> None:
        scheduler = opened(StrictScheduler(), {0: at(255, below=-1), 4: at(17), 8: at(15)})
        assert turns(scheduler, 1) == [4]
        scheduler.open(-1, at(18))
        assert turns(scheduler, 1) == [0]
        with pytest.raises(ValueError, match="stream -1 is open already"):
            scheduler.open(-1, at(18))

    def test_a_placeholder_moves_with_what_is_below_it(self) -> None:
        signals = {-1: at(5), -2: at(50), 0: at(below=-1), 4: at(20)}
        scheduler = opened(StrictScheduler(), signals)
        assert turns(scheduler, 1) == [4]
        scheduler.update(-1, at(0, below=-2))
        assert turns(scheduler, 1) == [0]

    def test_a_placeholder_that_lost_what_was_active_below_it_is_passed_over(self) -> None:
        signals = {-1: at(50), 0: at(below=-1), 4: at(20)}
        scheduler = opened(StrictScheduler(), signals)
        assert turns(scheduler, 1) == [0]
        scheduler.update(0, at(10))
        # -1 stands above both, and nothing below it can send.
        assert drain_order(scheduler, 3) == [4, 0, None]

    def test_one_that_is_moved_below_its_own_first_lets_that_one_have_its_place(self) -> None:
        signals = {-1: at(50), -2: at(9, below=-1), 0: at(below=-2), 4: at(20)}
        scheduler = opened(StrictScheduler(), signals)
        scheduler.update(-1, at(1, below=-2))
        # -2 is below the root now, with the 9 that it had.
        assert drain_order(scheduler, 2) == [4, 0]

    def test_what_is_below_a_placeholder_that_goes_moves_up(self) -> None:
        signals = {-1: at(50), 0: at(7, below=-1), 4: at(8)}
        scheduler = opened(StrictScheduler(), signals)
        scheduler.close(-1)
        assert drain_order(scheduler, 3) == [4, 0, None]

    def test_what_moves_up_goes_to_the_parent_and_not_to_the_root(self) -> None:
        """As the children of a node that leaves the tree do (RFC 7540 § 5.3.4)."""
        signals = {-1: at(30), -2: at(1, below=-1), 0: at(2, below=-2), 4: at(20)}
        scheduler = opened(StrictScheduler(), signals)
        scheduler.close(-2)
        # Below -1, 0 goes before 4; at the root it would be behind.
        assert drain_order(scheduler, 3) == [0, 4, None]

    def test_what_moves_up_keeps_the_weight_that_it_had_last(self) -> None:
        signals = {-1: at(30), 0: at(9, 16, below=-1), 4: at(9, 16, below=-1)}
        scheduler = opened(StrictScheduler(), signals)
        scheduler.update(4, at(9, 32, below=-1))
        scheduler.close(-1)
        # Both join anew: 4 at half a turn of 0, 1, 1.5, and 0 at 1, 2.
        assert turns(scheduler, 6) == [4, 0, 4, 4, 0, 4]

    def test_who_has_left_a_placeholder_stays_where_it_is_when_that_goes(self) -> None:
        signals = {-1: at(30), -2: at(5), 0: at(9, below=-1), 4: at(7)}
        scheduler = opened(StrictScheduler(), signals)
        scheduler.update(0, at(9, below=-2))
        scheduler.close(-1)
        assert drain_order(scheduler, 3) == [4, 0, None]

    def test_one_that_has_gone_is_there_anew_where_it_is_named(self) -> None:
        scheduler = opened(StrictScheduler(), {-1: at(30), 4: at(20)})
        scheduler.close(-1)
        opened(scheduler, {0: at(255, below=-1), 8: at(17)})
        # It has the default, 16, and not the 30 that it had.
        assert drain_order(scheduler, 4) == [4, 8, 0, None]

    def test_placeholders_move_up_with_what_is_below_them(self) -> None:
        signals = {-1: at(30), -2: at(1, below=-1), -3: at(3, below=-2)}
        streams = {0: at(2, below=-3), 4: at(20), 8: at(2, below=-1)}
        scheduler = opened(StrictScheduler(), {**signals, **streams})
        scheduler.close(-2)
        assert drain_order(scheduler, 4) == [0, 8, 4, None]
        scheduler.close(-1)
        scheduler.close(-3)
        for stream_id in streams:
            scheduler.activate(stream_id)
        assert drain_order(scheduler, 4) == [4, 0, 8, None]

    def test_a_placeholder_keeps_its_turn_while_what_is_below_it_moves_within_it(self) -> None:
        """All stand in one level, with equal weights; streams go before placeholders."""
        signals = {-1: at(), 0: at(), 4: at(), 8: at(255, below=-1)}
        scheduler = opened(StrictScheduler(), signals)
        assert turns(scheduler, 2) == [0, 4]
        scheduler.update(8, at(16, below=-1))
        # -1 is still at its first turn, 0 and 4 at their second.
        assert turns(scheduler, 3) == [8, 0, 4]

    def test_nothing_is_kept_of_priorities_that_nobody_has(self) -> None:
        scheduler = StrictScheduler()

        def size_after(strict: range) -> int:
            for each in strict:
                opened(scheduler, {0: at(each)})
                scheduler.close(0)
            return len(pickle.dumps(scheduler))

        one = size_after(range(1))
        assert size_after(range(256)) == one

    def test_none_depends_on_itself(self) -> None:
        scheduler = StrictScheduler()
        with pytest.raises(SelfDependencyError):
            scheduler.open(-1, at(below=-1))
        scheduler.open(-1, at())
        with pytest.raises(SelfDependencyError):
            scheduler.update(-1, at(below=-1))

    def test_a_copy_continues_as_the_original_does(self) -> None:
        signals = {-1: at(), 0: at(below=-1), 4: at(), 8: at(weight=99, below=-1)}
        scheduler = opened(StrictScheduler(), signals)
        turns(scheduler, 3)
        copy = pickle.loads(pickle.dumps(scheduler))
        assert turns(copy, 7) == turns(scheduler, 7)
