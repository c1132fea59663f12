"""The dependency tree alone: shares, shape, mistakes, zero weights.

A packet of 1400 bytes costs 1/weight of virtual time; a stream joins one packet behind the sibling
that was served last; ties go to the lower id, to streams before placeholders.
"""

from __future__ import annotations

import pytest

from h3sim.schedulers import Scheduler, TreeScheduler, Weights
from h3sim.signals import BucketPriority, H2Priority
from tests.unit.driving import TURN_BYTES, drain_order, on, opened, turns


def tree(weights: Weights = Weights.SHARES, **signals: H2Priority) -> Scheduler:
    """Return a tree of streams named s0, s4, ..."""
    return opened(TreeScheduler(weights=weights), {int(name[1:]): s for name, s in signals.items()})


class TestTreeShares:
    def test_siblings_share_by_weight(self) -> None:
        # Units of 1/256: 128 falls at 2, 4, ..., 64 at 4, 8, 256 at 1, 2, ...
        # 1: 8 | 2: 0 8 | 3: 8 | 4: 0 4 8 | 5: 8 | 6: 0 8 | 7: 8 | 8: 0 4 8
        scheduler = tree(s0=on(None, 128), s4=on(None, 64), s8=on(None, 256))
        assert turns(scheduler, 14) == [8, 0, 8, 8, 0, 4, 8, 8, 0, 8, 8, 0, 4, 8]

    def test_half_a_turn_costs_half(self) -> None:
        # In turns: both join at 1. Stream 0 pays 1/2 each: 1, 1.5, 2, ...; stream 4: 1, 2, 3.
        scheduler = tree(s0=on(None), s4=on(None))
        picked = []
        for _ in range(8):
            stream_id = scheduler.pick()
            assert stream_id is not None
            picked.append(stream_id)
            scheduler.charge(stream_id, 700 if stream_id == 0 else 1400)
        assert picked == [0, 4, 0, 0, 4, 0, 0, 4]

    def test_a_placeholder_is_charged_a_full_quantum_for_a_single_byte(self) -> None:
        scheduler = opened(TreeScheduler(), {-1: on(None), 0: on(-1), 4: on(None)})
        picked = []
        for _ in range(4):
            stream_id = scheduler.pick()
            assert stream_id is not None
            picked.append(stream_id)
            scheduler.charge(stream_id, 1 if stream_id == 0 else 1400)
        # Ties go to streams before placeholders.
        assert picked == [4, 0, 4, 0]

    def test_placeholders_of_equal_weight_go_as_declared(self) -> None:
        scheduler = opened(TreeScheduler(), {-1: on(None), -2: on(None), 0: on(-2), 4: on(-1)})
        assert turns(scheduler, 4) == [4, 0, 4, 0]

    def test_a_stream_that_joins_starts_one_turn_behind_the_one_served_last(self) -> None:
        # Stream 0 is served at 1, 2, 3. Stream 4 of double weight joins at 3 + 1/2.
        # 3.5: 4 | 4: 0 4 | 4.5: 4 | 5: 0 4
        scheduler = tree(s0=on(None, 16))
        assert turns(scheduler, 3) == [0, 0, 0]
        opened(scheduler, {4: on(None, 32)})
        assert turns(scheduler, 6) == [4, 0, 4, 4, 0, 4]

    def test_a_stream_that_was_away_gets_nothing_for_it(self) -> None:
        scheduler = tree(s0=on(None), s4=on(None))
        scheduler.deactivate(0)
        turns(scheduler, 10)
        scheduler.activate(0)
        # Stream 4 was served at 10 and is next at 11, where stream 0 joins.
        assert turns(scheduler, 4) == [0, 4, 0, 4]

    def test_a_stream_that_was_not_picked_may_be_charged(self) -> None:
        scheduler = tree(s0=on(None), s4=on(None))
        scheduler.charge(4, TURN_BYTES)
        assert turns(scheduler, 3) == [0, 0, 4]

    def test_a_new_weight_counts_from_the_next_turn_on(self) -> None:
        # Units of 1/256. Both at 16, 32. At 16 stream 0 goes and is next at 32; then it gets 256:
        # 4 at 16 (next 32) | 0 at 32, 33, 34, ...; the tie at 48 goes to 0.
        scheduler = tree(s0=on(None, 16), s4=on(None, 16))
        assert turns(scheduler, 1) == [0]
        scheduler.update(0, on(None, 256))
        assert turns(scheduler, 20) == [4, 0, 4] + [0] * 16 + [4]

    def test_a_signal_of_another_kind_means_the_default(self) -> None:
        scheduler = opened(
            TreeScheduler(), {0: BucketPriority(bucket=63, level=3), 4: on(None, 16)}
        )
        assert turns(scheduler, 4) == [0, 4, 0, 4]


class TestTreeShape:
    def test_a_parent_goes_before_its_children(self) -> None:
        scheduler = tree(s0=on(None, 1), s4=on(0, 256), s8=on(4, 256))
        assert drain_order(scheduler, 3) == [0, 4, 8]

    def test_the_children_of_a_parent_without_data_take_its_share(self) -> None:
        scheduler = tree(s0=on(None, 32), s4=on(0), s8=on(0), s12=on(None, 32))
        scheduler.deactivate(0)
        # 0 and 12 halve; below 0 the streams 4 and 8 halve its part. Ties: 0 before 12.
        assert turns(scheduler, 8) == [4, 12, 8, 12, 4, 12, 8, 12]

    def test_an_exclusive_stream_takes_all_siblings_below_it(self) -> None:
        scheduler = tree(s0=on(None), s4=on(None), s8=on(None, exclusive=True))
        assert turns(scheduler, 2) == [8, 8]
        scheduler.deactivate(8)
        assert turns(scheduler, 4) == [0, 4, 0, 4]
        # They are below it for good: a sibling of stream 8 gets as much as both together.
        opened(scheduler, {12: on(None)})
        assert turns(scheduler, 8).count(12) == 4

    def test_an_exclusive_insertion_leaves_cousins_alone(self) -> None:
        scheduler = tree(s0=on(None), s4=on(0), s8=on(None), s12=on(0, exclusive=True))
        scheduler.deactivate(0)
        # Below 0 stands 12, and 4 below that; 8 is untouched.
        assert turns(scheduler, 4) == [12, 8, 12, 8]
        scheduler.deactivate(12)
        assert turns(scheduler, 4) == [4, 8, 4, 8]

    def test_an_update_moves_what_is_below_along(self) -> None:
        scheduler = tree(s0=on(None), s4=on(0), s8=on(None))
        scheduler.update(0, on(8))
        assert drain_order(scheduler, 3) == [8, 0, 4]

    def test_an_update_of_the_weight_alone_keeps_the_place(self) -> None:
        scheduler = tree(s0=on(None), s4=on(0), s8=on(0))
        scheduler.update(4, on(0, 32))
        assert drain_order(scheduler, 3) == [0, 4, 8]

    def test_an_exclusive_update_takes_the_present_siblings_below(self) -> None:
        scheduler = tree(s0=on(None), s4=on(None), s8=on(None))
        scheduler.update(8, on(None, exclusive=True))
        assert drain_order(scheduler, 3) == [8, 0, 4]

    @pytest.mark.parametrize(
        ("exclusive", "order"),
        # RFC 7540 § 5.3.3: A has B and C, C has D and E, D has F. A moves below D, which takes the
        # place of A. Below D then stand F and A; or, exclusively, A alone with F, B and C below it.
        [(False, "DFABCE"), (True, "DAFBCE")],
    )
    def test_a_stream_may_move_below_its_own_descendant(self, exclusive: bool, order: str) -> None:
        # F has the lowest id, so that it goes first among equals.
        f, a, b, c, d, e = range(0, 24, 4)
        signals = {a: on(None), b: on(a), c: on(a), d: on(c), e: on(c), f: on(d)}
        scheduler = opened(TreeScheduler(), dict(signals))
        scheduler.update(a, on(d, exclusive=exclusive))
        names = dict(zip((f, a, b, c, d, e), "FABCDE", strict=True))
        assert "".join(names[n] for n in drain_order(scheduler, 6) if n is not None) == order

    def test_an_unknown_parent_means_the_default_priority(self) -> None:
        scheduler = tree(s0=on(None, 16), s4=on(99, 256, exclusive=True))
        # Under the root with weight 16, and not above stream 0.
        assert turns(scheduler, 4) == [0, 4, 0, 4]

    def test_a_closed_stream_leaves_its_children_to_its_parent_with_their_weights(self) -> None:
        scheduler = tree(s0=on(None, 1), s4=on(0, 16), s8=on(0, 32), s12=on(None, 16))
        scheduler.close(0)
        # Units of 1/32: 4 at 2, 4; 8 at 1, 2, 3, 4; 12 at 2, 4.
        assert turns(scheduler, 8) == [8, 4, 8, 12, 8, 4, 8, 12]

    def test_a_closed_placeholder_leaves_its_children_to_its_parent(self) -> None:
        scheduler = opened(TreeScheduler(), {-1: on(None), 0: on(-1), 4: on(-1), 8: on(None)})
        scheduler.close(-1)
        assert turns(scheduler, 6) == [0, 4, 8, 0, 4, 8]

    def test_a_stream_below_a_closed_one_is_no_longer_known_as_its_child(self) -> None:
        scheduler = tree(s0=on(None))
        scheduler.close(0)
        opened(scheduler, {4: on(0, 256), 8: on(None, 16)})
        assert turns(scheduler, 4) == [4, 8, 4, 8]

    def test_a_chain_of_ten_thousand_streams_is_no_trouble(self) -> None:
        n_streams = 10_000
        scheduler = TreeScheduler()
        for stream_id in range(n_streams):
            scheduler.open(stream_id, on(stream_id - 1 if stream_id else None))
        deepest = n_streams - 1
        scheduler.activate(deepest)
        assert turns(scheduler, 2) == [deepest, deepest]
        scheduler.activate(0)
        assert scheduler.pick() == 0
        # The whole chain below its own end, and then gone from the top.
        scheduler.update(0, on(deepest))
        assert scheduler.pick() == deepest
        for stream_id in range(n_streams):
            scheduler.close(stream_id)
        assert scheduler.pick() is None


class TestTreeMistakes:
    def test_a_stream_cannot_depend_on_itself(self) -> None:
        scheduler = TreeScheduler()
        with pytest.raises(ValueError, match="cannot depend on itself"):
            scheduler.open(4, on(4))
        scheduler.open(4, on(None))
        with pytest.raises(ValueError, match="cannot depend on itself"):
            scheduler.update(4, on(4))

    def test_a_refused_update_changes_nothing(self) -> None:
        scheduler = tree(s0=on(None, 32), s4=on(None, 16))
        with pytest.raises(ValueError, match="itself"):
            scheduler.update(0, on(0, 1))
        assert turns(scheduler, 3) == [0, 0, 4]

    def test_a_stream_is_opened_once(self) -> None:
        scheduler = tree(s0=on(None))
        with pytest.raises(ValueError, match="stream 0 is open already"):
            scheduler.open(0, on(None))

    def test_an_update_of_what_is_not_there_is_an_error(self) -> None:
        with pytest.raises(KeyError):
            TreeScheduler().update(0, on(None))

    @pytest.mark.parametrize(
        ("weights", "weight", "allowed"),
        [
            (Weights.SHARES, 0, "1 to 256"),
            (Weights.ZERO, 256, "0 to 255"),
            (Weights.ZERO_LAST, 256, "0 to 255"),
        ],
    )
    def test_weights_keep_to_the_range_of_their_meaning(
        self, weights: Weights, weight: int, allowed: str
    ) -> None:
        with pytest.raises(ValueError, match=f"weight must be {allowed}, is {weight}"):
            TreeScheduler(weights=weights).open(0, on(None, weight))


class TestZeroWeights:
    def test_255_goes_first_and_0_last_each_one_at_a_time(self) -> None:
        scheduler = tree(
            Weights.ZERO,
            s0=on(None, 0),
            s4=on(None, 0),
            s8=on(None, 1),
            s12=on(None, 255),
            s16=on(None, 255),
        )
        assert turns(scheduler, 2) == [12, 12]
        assert drain_order(scheduler, 5) == [12, 16, 8, 0, 4]

    def test_those_between_share(self) -> None:
        # Units of 1/2: weight 2 at 1, 2, 3, 4; weight 1 at 2, 4.
        scheduler = tree(Weights.ZERO, s0=on(None, 1), s4=on(None, 2))
        assert turns(scheduler, 6) == [4, 0, 4, 4, 0, 4]

    def test_a_weight_that_becomes_255_counts_at_once(self) -> None:
        scheduler = tree(Weights.ZERO, s0=on(None, 16), s4=on(None, 0))
        scheduler.update(4, on(None, 255))
        assert turns(scheduler, 2) == [4, 4]
        scheduler.update(4, on(None, 0))
        assert turns(scheduler, 2) == [0, 0]

    def test_a_placeholder_of_weight_0_waits_for_its_siblings(self) -> None:
        scheduler = opened(
            TreeScheduler(weights=Weights.ZERO), {-1: on(None, 0), 0: on(-1, 255), 4: on(None, 1)}
        )
        assert drain_order(scheduler, 2) == [4, 0]


class TestZeroWeightsOfPr2723:
    """base-drafts PR 2723: 0 is special, 255 is not."""

    def test_those_of_weight_0_go_last_the_lowest_id_that_has_data_first(self) -> None:
        scheduler = tree(
            Weights.ZERO_LAST, s0=on(None, 0), s4=on(None, 0), s8=on(None, 1), s12=on(None, 0)
        )
        assert turns(scheduler, 2) == [8, 8]
        scheduler.deactivate(8)
        assert turns(scheduler, 2) == [0, 0]
        scheduler.deactivate(0)
        assert turns(scheduler, 2) == [4, 4]
        scheduler.activate(0)
        assert turns(scheduler, 2) == [0, 0]

    def test_255_is_a_share_like_others(self) -> None:
        # Units of 1/255: 255 at 1, 2, 3, ...; 85 at 3, 6, ...
        scheduler = tree(Weights.ZERO_LAST, s0=on(None, 85), s4=on(None, 255), s8=on(None, 0))
        assert turns(scheduler, 8) == [4, 4, 0, 4, 4, 4, 0, 4]

    def test_it_is_the_same_for_placeholders(self) -> None:
        signals = {-1: on(None, 0), -2: on(None, 1), 0: on(-1, 200), 4: on(-2, 0), 8: on(None, 0)}
        scheduler = opened(TreeScheduler(weights=Weights.ZERO_LAST), signals)
        # -2 first, whatever stands below it; then the streams of weight 0, then placeholders.
        assert drain_order(scheduler, 3) == [4, 8, 0]

    @pytest.mark.parametrize("weights", [Weights.ZERO, Weights.ZERO_LAST])
    def test_where_nothing_is_reported_the_weight_is_0(self, weights: Weights) -> None:
        scheduler = tree(
            weights,
            s0=BucketPriority(bucket=63, level=3),  # type: ignore[arg-type]
            s4=on(16, 9),
            s8=on(None, 1),
        )
        assert str(scheduler).splitlines()[1:3] == [
            "├─ stream 0, weight 0, has data",
            "├─ stream 4, weight 0, has data",
        ]
        assert drain_order(scheduler, 3) == [8, 0, 4]

    def test_a_weight_that_becomes_0_or_more_counts_at_once(self) -> None:
        scheduler = tree(Weights.ZERO_LAST, s0=on(None, 16), s4=on(None, 0))
        scheduler.update(0, on(None, 0))
        scheduler.update(4, on(None, 1))
        assert turns(scheduler, 2) == [4, 4]
