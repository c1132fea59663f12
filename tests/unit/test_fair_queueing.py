"""The disciplines of servers, by hand: who goes next among siblings, and why.

A packet of 1400 bytes costs 1400 * 256 / weight: 22,400 at weight 16, 11,200 at 32, 1400 at 256.
"""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING

import pytest

from h3sim.schedulers import Queueing, Scheduler, TreeScheduler, Weights
from tests.unit.driving import on, opened, turns

if TYPE_CHECKING:
    from h3sim.signals import H2Priority


def tree(queueing: Queueing, **signals: H2Priority) -> Scheduler:
    """Return a tree of streams named s0, s4, ..."""
    scheduler = TreeScheduler(queueing=queueing)
    return opened(scheduler, {int(name[1:]): s for name, s in signals.items()})


class TestNghttp2:
    """cycle = last cycle + (bytes * 256 + remainder) / weight."""

    def test_siblings_share_by_weight(self) -> None:
        # Both join at 0, stream 0 first. In units of 11,200: 0 falls at 0, 2, 4, and 4 at 0, 1, 2.
        # Ties go to who was listed first: at 2 and at 4 that is stream 0, served longer ago.
        scheduler = tree(Queueing.NGHTTP2, s0=on(None, 16), s4=on(None, 32))
        assert turns(scheduler, 7) == [0, 4, 4, 0, 4, 4, 0]

    def test_ties_fall_to_who_was_listed_first_and_not_to_the_lower_id(self) -> None:
        scheduler = TreeScheduler(queueing=Queueing.NGHTTP2)
        for stream_id in (8, 0, 4):
            scheduler.open(stream_id, on(None))
            scheduler.activate(stream_id)
        assert turns(scheduler, 6) == [8, 0, 4, 8, 0, 4]

    def test_remainders_are_carried(self) -> None:
        # One byte at weight 3 costs 85 1/3: cycles 0, 85, 170, 256. At weight 1 it costs 256, and
        # at 256 stream 4 was listed first. Had the remainders been lost, 0 would go at 255.
        scheduler = tree(Queueing.NGHTTP2, s0=on(None, 3), s4=on(None, 1))
        assert turns(scheduler, 6, n_bytes=1) == [0, 4, 0, 0, 4, 0]

    def test_who_joins_starts_at_the_cycle_that_was_served_last(self) -> None:
        # In packets of weight 16: 0 is served at 0, 1, 2 and is next at 3. Stream 4 joins at 2.
        scheduler = tree(Queueing.NGHTTP2, s0=on(None))
        assert turns(scheduler, 3) == [0, 0, 0]
        opened(scheduler, {4: on(None)})
        assert turns(scheduler, 4) == [4, 0, 4, 0]

    def test_a_group_is_charged_what_was_sent_below_it(self) -> None:
        # The group pays for 700 bytes a turn, stream 4 for 1400; both began at 0, the group first.
        scheduler = opened(
            TreeScheduler(queueing=Queueing.NGHTTP2), {-1: on(None), 0: on(-1), 4: on(None)}
        )
        picked = []
        for _ in range(7):
            stream_id = scheduler.pick()
            assert stream_id is not None
            picked.append(stream_id)
            scheduler.charge(stream_id, 700 if stream_id == 0 else 1400)
        assert picked == [0, 4, 0, 4, 0, 0, 4]

    def test_a_new_weight_changes_what_the_last_turn_costs(self) -> None:
        # 0 went at 0 and would be next at 22,400; with weight 256 that is 1400. It goes 15 times,
        # up to 21,000; at 22,400 stream 4 was listed first.
        scheduler = tree(Queueing.NGHTTP2, s0=on(None), s4=on(None))
        assert turns(scheduler, 1) == [0]
        scheduler.update(0, on(None, 256))
        assert turns(scheduler, 18) == [4, *[0] * 15, 4, 0]

    def test_a_new_weight_does_not_lead_back_in_time(self) -> None:
        # At weight 1 the turn of 0 at 0 costs 358,400; meanwhile 4 is served at 0, ..., 67,200.
        # At weight 256 the turn costs 1400: that is past, so 0 goes at 67,200, before 4 at 89,600.
        scheduler = tree(Queueing.NGHTTP2, s0=on(None, 1), s4=on(None))
        assert turns(scheduler, 5) == [0, 4, 4, 4, 4]
        scheduler.update(0, on(None, 256))
        # 67,200 + n * 1400 < 89,600 holds for n = 0 to 15; at 89,600 stream 4 was listed first.
        assert turns(scheduler, 18) == [*[0] * 16, 4, 0]

    def test_who_was_moved_by_a_signal_joins_anew(self) -> None:
        # 8 has sent at weight 1, and owes 358,400. Under -1 it starts at the cycle served last, 0.
        scheduler = opened(
            TreeScheduler(queueing=Queueing.NGHTTP2),
            {-1: on(None), 0: on(None), 4: on(-1), 8: on(None, 1)},
        )
        scheduler.deactivate(0)
        assert turns(scheduler, 2) == [4, 8]
        scheduler.update(8, on(-1))
        assert turns(scheduler, 3) == [8, 4, 8]

    def test_who_was_moved_by_an_exclusive_stream_still_owes_its_last_turn(self) -> None:
        # 0 and 4 have had a turn each, of 1 byte and of 1400. Below 8 they owe it: 16 and 22,400.
        scheduler = tree(Queueing.NGHTTP2, s0=on(None), s4=on(None))
        scheduler.charge(0, 1)
        scheduler.charge(4, 1400)
        opened(scheduler, {8: on(None, exclusive=True)})
        scheduler.deactivate(8)
        assert turns(scheduler, 3) == [0, 4, 0]

    def test_when_a_group_moves_the_cycles_of_its_children_start_over(self) -> None:
        # In packets: 4 and 8 are next at 2. Group 0 moves; 16 joins it at 0 and not at 1, and so
        # goes at 0 and 1 before 4 and 8 at 2.
        scheduler = opened(
            TreeScheduler(queueing=Queueing.NGHTTP2),
            {0: on(None), 4: on(0), 8: on(0), 12: on(None)},
        )
        scheduler.deactivate(0)
        scheduler.deactivate(12)
        assert turns(scheduler, 4) == [4, 8, 4, 8]
        scheduler.update(0, on(12))
        opened(scheduler, {16: on(0)})
        assert turns(scheduler, 4) == [16, 16, 4, 8]


class TestH2o:
    """A turn moves a stream on by 63 / weight slots: 3.9375 at weight 16, 1.96875 at 32."""

    def test_siblings_share_by_weight(self) -> None:
        # 0 joins slot 3 (.9375 over), 4 slot 1 (.96875 over).
        # 1: 4, on by 1.96875 + .96875 to 3 (.9375) | 3: 0, listed first, on to 7 (.875); 4 to 5
        # (.90625) | 5: 4 to 7 (.875) | 7: 0 to 11, 4 to 9 | 9: 4 to 11 | 11: 0
        scheduler = tree(Queueing.H2O, s0=on(None, 16), s4=on(None, 32))
        assert turns(scheduler, 8) == [4, 0, 4, 4, 0, 4, 4, 0]

    def test_bytes_do_not_count(self) -> None:
        scheduler = tree(Queueing.H2O, s0=on(None), s4=on(None))
        picked = []
        for _ in range(6):
            stream_id = scheduler.pick()
            assert stream_id is not None
            picked.append(stream_id)
            scheduler.charge(stream_id, 1 if stream_id == 0 else 16_384)
        assert picked == [0, 4] * 3

    def test_weight_256_goes_four_times_in_the_first_slot(self) -> None:
        # .24609375 slots a turn: joins at .246, then .492, .738, .984 and only then 1.23. Stream
        # 4, of weight 63, joins slot 1 and stands there before 0 comes.
        scheduler = tree(Queueing.H2O, s0=on(None, 256), s4=on(None, 63))
        assert turns(scheduler, 6) == [0, 0, 0, 0, 4, 0]

    def test_parts_of_a_slot_are_carried(self) -> None:
        # 63 / 42 = 1.5: stream 0 stands at 1, 3, 4, 6, 7, 9. 63 / 21 = 3: stream 4 at 3, 6, 9. In
        # slot 3 stream 4 was listed first, in slot 6 as well: it came from 3, stream 0 from 4.
        scheduler = tree(Queueing.H2O, s0=on(None, 42), s4=on(None, 21))
        assert turns(scheduler, 9) == [0, 4, 0, 0, 4, 0, 0, 4, 0]

    def test_who_joins_starts_a_turn_behind_the_slot_served_last(self) -> None:
        # 0 is served at 3, 7, 11 and is next at 15. Stream 4 of weight 32 joins at 11 + 1, is next
        # at 12 + 2, then at 16.
        scheduler = tree(Queueing.H2O, s0=on(None, 16))
        assert turns(scheduler, 3) == [0, 0, 0]
        opened(scheduler, {4: on(None, 32)})
        assert turns(scheduler, 4) == [4, 4, 0, 4]

    def test_a_new_weight_counts_from_the_slot_served_last(self) -> None:
        # Both join slot 3. Stream 4 gets weight 1 and stands at 63; stream 0 goes at n * 3.9375,
        # rounded down: at 3, 7, ..., 59, and only then at 63.
        scheduler = tree(Queueing.H2O, s0=on(None), s4=on(None))
        scheduler.update(4, on(None, 1))
        assert turns(scheduler, 17) == [*[0] * 15, 4, 0]

    @pytest.mark.parametrize(
        ("weight", "n_turns"),
        [
            # 63 * 65,536 / 16 is whole: the sixteenth turn is in slot 63.
            (16, 15),
            # A fifth of it is 825,753.6, taken for 825,754: the fifth turn is in slot 63 as well.
            (5, 4),
            # A twentieth is 206,438.4, taken for 206,438: the twentieth turn is still in 62.
            (20, 20),
            (1, 0),
        ],
    )
    def test_a_turn_is_rounded_to_a_65536th_of_a_slot(self, weight: int, n_turns: int) -> None:
        # Stream 4 stands in slot 63 from the beginning.
        scheduler = tree(Queueing.H2O, s4=on(None, 1), s0=on(None, weight))
        assert turns(scheduler, n_turns + 1) == [*[0] * n_turns, 4]

    def test_in_one_slot_they_go_as_they_were_listed(self) -> None:
        scheduler = TreeScheduler(queueing=Queueing.H2O)
        for stream_id in (16, 8, 0, 12, 4):
            opened(scheduler, {stream_id: on(None)})
        assert turns(scheduler, 10) == [16, 8, 0, 12, 4] * 2

    def test_a_turn_is_not_priced_if_the_stream_leaves_with_it_and_else_it_is(self) -> None:
        # At weight 42 a turn is 1.5 slots: 0 joins slot 1, a half over. Its turn takes it to slot 3
        # and nothing over, and 4 goes on to slot 2. Coming back, 0 is due 1.5 behind slot 1, in
        # slot 2; had the turn not been priced it would be 2 behind it, in slot 3 behind 8.
        scheduler = tree(Queueing.H2O, s0=on(None, 42), s4=on(None, 63), s8=on(None, 21))
        assert turns(scheduler, 2) == [0, 4]
        scheduler.deactivate(0)
        scheduler.activate(0)
        assert turns(scheduler, 4) == [4, 0, 8, 4]
        # As soon as it had its turn it leaves with the half that it had.
        scheduler = tree(Queueing.H2O, s0=on(None, 42), s4=on(None, 63), s8=on(None, 21))
        assert turns(scheduler, 1) == [0]
        scheduler.deactivate(0)
        scheduler.activate(0)
        assert turns(scheduler, 4) == [4, 4, 8, 0]

    def test_a_group_pays_a_turn_for_each_turn_below_it(self) -> None:
        scheduler = opened(
            TreeScheduler(queueing=Queueing.H2O), {-1: on(None), 0: on(-1), 4: on(-1), 8: on(None)}
        )
        assert turns(scheduler, 8) == [0, 8, 4, 8, 0, 8, 4, 8]


class TestAts:
    """point += bytes * 256 / weight, from the stream's id on."""

    def test_siblings_share_by_weight(self) -> None:
        # 0 at 0, 22400, 44800. 4 at 4, 11204, 22404, 33604, 44804.
        scheduler = tree(Queueing.ATS, s0=on(None, 16), s4=on(None, 32))
        assert turns(scheduler, 7) == [0, 4, 4, 0, 4, 4, 0]

    def test_points_are_truncated_to_integers(self) -> None:
        # One byte at weight 3 costs 85: 0 at 0, 85, 170, 255; 4 at 4, and then at 260.
        scheduler = tree(Queueing.ATS, s0=on(None, 3), s4=on(None, 1))
        assert turns(scheduler, 7, n_bytes=1) == [0, 4, 0, 0, 0, 4, 0]

    def test_a_stream_begins_with_its_id(self) -> None:
        # 40 begins at 40, 0 at 0: with one byte at weight 256 stream 0 goes 40 times, and at 40 it
        # has the lower id.
        scheduler = tree(Queueing.ATS, s0=on(None, 256), s40=on(None, 256))
        assert turns(scheduler, 43, n_bytes=1) == [*[0] * 41, 40, 0]

    def test_who_joins_late_catches_up(self) -> None:
        # 0 has 3 * 22,400 points. 4 begins with 4 and goes until it has more.
        scheduler = tree(Queueing.ATS, s0=on(None))
        assert turns(scheduler, 3) == [0, 0, 0]
        opened(scheduler, {4: on(None)})
        assert turns(scheduler, 6) == [4, 4, 4, 0, 4, 0]

    def test_who_was_away_comes_back_with_its_points_of_then(self) -> None:
        scheduler = tree(Queueing.ATS, s0=on(None), s4=on(None))
        scheduler.deactivate(0)
        assert turns(scheduler, 3) == [4, 4, 4]
        scheduler.activate(0)
        assert turns(scheduler, 5) == [0, 0, 0, 0, 4]

    def test_a_placeholder_begins_with_its_number(self) -> None:
        # The first, -1, with 0 points, before stream 1 with 1; the second, -2, with 1: then the id.
        scheduler = opened(
            TreeScheduler(queueing=Queueing.ATS), {1: on(None), -1: on(None), 5: on(-1)}
        )
        assert turns(scheduler, 1) == [5]
        scheduler = opened(
            TreeScheduler(queueing=Queueing.ATS), {1: on(None), -2: on(None), 5: on(-2)}
        )
        assert turns(scheduler, 1) == [1]

    def test_points_move_with_their_stream(self) -> None:
        # 8 has sent 3 packets and owes them under its new parent too.
        scheduler = opened(
            TreeScheduler(queueing=Queueing.ATS), {-1: on(None), 8: on(None), 0: on(-1)}
        )
        scheduler.deactivate(0)
        assert turns(scheduler, 3) == [8, 8, 8]
        scheduler.activate(0)
        scheduler.update(8, on(-1))
        assert turns(scheduler, 5) == [0, 0, 0, 0, 8]

    def test_a_group_is_charged_what_was_sent_below_it(self) -> None:
        # Group: 0, 22400, 44800. 8 of weight 32: 8, 11208, 22408, 33608.
        scheduler = opened(
            TreeScheduler(queueing=Queueing.ATS),
            {-1: on(None, 16), 0: on(-1), 4: on(-1), 8: on(None, 32)},
        )
        assert turns(scheduler, 7) == [0, 8, 8, 4, 8, 8, 0]


QUEUEINGS = [*((queueing, Weights.SHARES) for queueing in Queueing)]
QUEUEINGS += [(Queueing.EXACT, Weights.QUICKER_ZERO)]


@pytest.mark.parametrize(("queueing", "weights"), QUEUEINGS)
def test_lost_bytes_of_a_stream_that_has_nothing_else_cost_nobody_a_turn(
    queueing: Queueing, weights: Weights
) -> None:
    # 0 has left when its lost bytes go again: it is on no list, so there is nothing to charge.
    scheduler = opened(
        TreeScheduler(queueing=queueing, weights=weights),
        {-1: on(None), 0: on(-1), 4: on(None), 8: on(None)},
    )
    scheduler.deactivate(0)
    assert turns(scheduler, 2) == [4, 8]
    scheduler.charge(0, 100_000)
    assert turns(scheduler, 4) == [4, 8, 4, 8]
    # It owes nothing: it has a turn among the next three.
    scheduler.activate(0)
    assert 0 in turns(scheduler, 3)


class TestExactTime:
    """A turn of 1400 bytes costs 22,400 at weight 16; who joins starts a turn behind."""

    def test_who_comes_back_alone_is_charged_what_it_sends_then(self) -> None:
        # Alone, its turn of 700 bytes ends at 11,200, before 0, which joins at 22,400. At 22,400
        # both are next, and the lower id goes.
        scheduler = tree(Queueing.EXACT, s4=on(None))
        assert turns(scheduler, 2, n_bytes=700) == [4, 4]
        scheduler.deactivate(4)
        scheduler.activate(4)
        assert turns(scheduler, 1, n_bytes=700) == [4]
        opened(scheduler, {0: on(None)})
        assert turns(scheduler, 4) == [4, 0, 4, 0]

    def test_a_group_is_charged_a_full_quantum_and_a_stream_what_it_sent(self) -> None:
        # Both join at 22,400, the stream first. A turn of 700 bytes moves it on by 11,200 and the
        # group by 22,400: 4 at 22,400, 33,600 | the group at 22,400 | 4 at 33,600, 44,800 ...
        for weights in (Weights.SHARES, Weights.QUICKER_ZERO):
            scheduler = opened(
                TreeScheduler(weights=weights), {-1: on(None), 0: on(-1), 4: on(None)}
            )
            assert turns(scheduler, 7, n_bytes=700) == [4, 0, 4, 4, 0, 4, 4]


@pytest.mark.parametrize("queueing", Queueing)
def test_the_same_weight_again_costs_nobody_a_turn(queueing: Queueing) -> None:
    weights = {0: 16, 4: 32, 8: 5}
    signals = {stream_id: on(None, weight) for stream_id, weight in weights.items()}
    reported, untold = (opened(TreeScheduler(queueing=queueing), signals) for _ in range(2))
    picked = []
    for _ in range(20):
        for stream_id, signal in signals.items():
            reported.update(stream_id, signal)
        picked += turns(reported, 1)
    assert picked == turns(untold, 20)


@pytest.mark.parametrize("queueing", Queueing)
@pytest.mark.parametrize("n_turns", [0, 1, 7])
def test_a_copy_of_who_has_turns_goes_on_as_they_do(queueing: Queueing, n_turns: int) -> None:
    weights = {0: 1, 4: 16, 8: 256, 12: 200, 16: 3}
    signals = {stream_id: on(None, weight) for stream_id, weight in weights.items()}
    scheduler = opened(TreeScheduler(queueing=queueing), signals)
    turns(scheduler, n_turns)
    copied = pickle.loads(pickle.dumps(scheduler))
    assert turns(copied, 30) == turns(scheduler, 30)


@pytest.mark.parametrize("queueing", [Queueing.NGHTTP2, Queueing.H2O, Queueing.ATS])
@pytest.mark.parametrize("weights", [Weights.ZERO, Weights.ZERO_LAST, Weights.QUICKER_ZERO])
def test_zero_weights_need_exact_queueing(queueing: Queueing, weights: Weights) -> None:
    with pytest.raises(
        ValueError, match=f"zero weights need exact queueing, not '{queueing.value}'"
    ):
        TreeScheduler(queueing=queueing, weights=weights)
