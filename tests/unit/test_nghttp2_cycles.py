"""nghttp2's cycles to the last one: debts, remainders, new weights, lost bytes.

A turn of n bytes costs (256 * n + remainder) / weight cycles; the rest of the division is carried.
Equal cycles go to whoever was listed first.
"""

from __future__ import annotations

from h3sim.schedulers import Queueing, TreeScheduler
from tests.unit.driving import on, opened, turns


def siblings(weights: dict[int, int]) -> TreeScheduler:
    """Return streams of those weights, listed at cycle 0 in that order."""
    tree = TreeScheduler(queueing=Queueing.NGHTTP2)
    for stream_id, weight in weights.items():
        opened(tree, {stream_id: on(None, weight)})
    return tree


def serve(tree: TreeScheduler, *turns_of: tuple[int, int]) -> list[int | None]:
    """Let streams have turns of so many bytes; return who was to have them."""
    picked = []
    for stream_id, n_bytes in turns_of:
        picked.append(tree.pick())
        tree.charge(stream_id, n_bytes)
    return picked


class TestDebts:
    """Who joins without having been forgotten pays for its last turn once more."""

    def test_what_is_owed_is_counted_to_the_cycle(self) -> None:
        # Below 8 stream 0 owes 1 byte, 16 cycles, and 4 owes 1400, 22,400. A turn of 100 bytes
        # costs 1600: 0 goes at 16 + n * 1600 for n = 0 to 13, up to 20,816.
        tree = siblings({0: 16, 4: 16})
        tree.charge(0, 1)
        tree.charge(4, 1400)
        opened(tree, {8: on(None, exclusive=True)})
        tree.deactivate(8)
        assert turns(tree, 16, n_bytes=100) == [*[0] * 14, 4, 0]

    def test_a_remainder_is_owed_as_well(self) -> None:
        # A byte at weight 3 costs 85 cycles and leaves 1. Owed again it is (256 + 1) / 3, 85 and 2;
        # the next costs (256 + 2) / 3, 86. So 0 goes at 85 and at 171, where 4 was listed before.
        tree = siblings({0: 3, 4: 256})
        tree.charge(0, 1)
        tree.charge(4, 171)
        opened(tree, {8: on(None, exclusive=True)})
        tree.deactivate(8)
        assert turns(tree, 3, n_bytes=1) == [0, 4, 0]

    def test_who_moves_by_a_signal_owes_nothing(self) -> None:
        # 8 has sent at weight 1. Below -1 it stands at 0, and behind 4, which was listed before;
        # a debt of one byte would be 256 cycles, 16 turns of 4.
        tree = opened(
            TreeScheduler(queueing=Queueing.NGHTTP2), {-1: on(None), 4: on(-1), 8: on(None, 1)}
        )
        tree.charge(8, 1400)
        tree.update(8, on(-1, 1))
        assert turns(tree, 3, n_bytes=1) == [4, 8, 4]

    def test_a_group_that_moves_sets_the_clock_of_its_children_to_0(self) -> None:
        # A byte at weight 256 is a cycle. 4 and 8 are due at 2; 16 joins at 0, and goes at 0 and 1.
        tree = opened(
            TreeScheduler(queueing=Queueing.NGHTTP2),
            {0: on(None), 4: on(0, 256), 8: on(0, 256), 12: on(None)},
        )
        tree.deactivate(0)
        tree.deactivate(12)
        assert turns(tree, 4, n_bytes=1) == [4, 8, 4, 8]
        tree.update(0, on(12))
        opened(tree, {16: on(0, 256)})
        assert turns(tree, 5, n_bytes=1) == [16, 16, 4, 8, 16]

    def test_who_takes_the_place_of_what_moves_below_it_owes_nothing(self) -> None:
        # RFC 7540 § 5.3.3: 8, which sent at weight 1 and is due at 358,400, gets the place of 0.
        # There it joins at 0, and goes behind 4, which was listed before.
        tree = opened(
            TreeScheduler(queueing=Queueing.NGHTTP2), {0: on(None), 8: on(0, 1), 4: on(None)}
        )
        tree.deactivate(0)
        tree.charge(8, 1400)
        tree.update(0, on(8))
        assert turns(tree, 3) == [4, 8, 4]


class TestNewWeights:
    """nghttp2_stream_change_weight: the last turn is taken back, and charged anew."""

    def test_what_was_carried_into_the_last_turn_is_charged_anew_with_it(self) -> None:
        # At weight 3 the bytes of 0 cost 85 and 85, remainders 1 and 2: it is due at 170. The last
        # cost 256 + 1; at weight 171 that is 1 and 86: it is due at 86, and then, (256 + 86) / 171
        # being 2, at 88. There 4 is, and was listed before.
        tree = siblings({0: 3, 4: 256})
        assert serve(tree, (0, 1), (4, 88), (0, 1)) == [0, 4, 0]
        tree.update(0, on(None, 171))
        assert turns(tree, 3, n_bytes=1) == [0, 4, 0]

    def test_who_is_due_at_the_same_cycle_then_goes_as_it_was_listed(self) -> None:
        # One of two turns at weight 32 costs as much as one at 16: 22,400.
        tree = siblings({0: 16, 4: 16})
        assert serve(tree, (0, 2800), (4, 1400)) == [0, 4]
        tree.update(0, on(None, 32))
        assert turns(tree, 1) == [0]
        tree = siblings({0: 16, 4: 16})
        assert serve(tree, (0, 1400), (4, 2800)) == [0, 4]
        tree.update(4, on(None, 32))
        assert turns(tree, 1) == [0]

    def test_who_has_no_data_takes_the_weight_and_keeps_no_debt(self) -> None:
        # 0 sent 1400 bytes and left; when it comes back its share is another.
        tree = siblings({0: 16, 4: 16})
        assert turns(tree, 1) == [0]
        tree.deactivate(0)
        tree.update(0, on(None, 32))
        tree.activate(0)
        # Both at 0, 4 listed first; then 4 at 22,400, and 0 at 11,200 and 22,400.
        assert turns(tree, 5) == [4, 0, 0, 4, 0]

    def test_the_same_weight_again_moves_nobody(self) -> None:
        # Lost bytes of 8 turn the clock on to 22,400; 0 and 4 stand at 0 still.
        tree = siblings({0: 16, 4: 16, 8: 16})
        tree.charge(8, 1400)
        tree.charge(8, 1400)
        tree.update(0, on(None, 16))
        assert turns(tree, 2) == [0, 4]
        # Another weight may not lead back behind that clock.
        tree = siblings({0: 16, 4: 16, 8: 16})
        tree.charge(8, 1400)
        tree.charge(8, 1400)
        tree.update(0, on(None, 32))
        assert turns(tree, 2) == [4, 0]


def test_lost_bytes_of_who_is_not_next_are_charged_to_it() -> None:
    # 14,000 bytes are ten turns of 0; at 224,000 stream 4 was listed before.
    tree = siblings({0: 16, 4: 16})
    tree.charge(4, 14_000)
    assert turns(tree, 12) == [*[0] * 10, 4, 0]
