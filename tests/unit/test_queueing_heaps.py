"""The lists behind the picks: what was left in them neither decides a turn nor grows.

Streams behind the first one come, go and are charged for lost bytes; a heap takes nothing out of
its middle, so an entry is left behind each time.
"""

from __future__ import annotations

import pickle
from random import Random

import pytest

from h3sim.schedulers import (
    FifoScheduler,
    Queueing,
    RankScheduler,
    RoundRobinScheduler,
    TreeScheduler,
    Weights,
)
from h3sim.schedulers.queues import IndexedHeap
from h3sim.schedulers.tree.disciplines import queueing_of
from h3sim.signals import H2Priority, Rank
from tests.unit.driving import on, opened, turns

N_SIBLINGS = 40


def tree_of(queueing: Queueing, weights: Weights = Weights.SHARES) -> TreeScheduler:
    """Return siblings of many weights, the heavier the later they were listed."""
    tree = TreeScheduler(queueing=queueing, weights=weights)
    signals = {4 * n: on(None, 1 + 37 * n % 250) for n in range(N_SIBLINGS)}
    return opened(tree, signals)


class TestWhatIsLeftBehind:
    """The same calls on a tree that is pickled each time, which leaves nothing behind."""

    @pytest.mark.parametrize("queueing", Queueing)
    @pytest.mark.parametrize("seed", range(5))
    def test_it_decides_no_turn(self, queueing: Queueing, seed: int) -> None:
        random = Random(seed)
        tree = tree_of(queueing)
        clean = pickle.loads(pickle.dumps(tree))
        for _ in range(60):
            stream_ids = [4 * random.randrange(N_SIBLINGS) for _ in range(3)]
            for one in (tree, clean):
                one.deactivate(stream_ids[0])
                one.charge(stream_ids[1], 700)
                one.activate(stream_ids[2])
            assert turns(tree, 3) == turns(clean, 3)
            clean = pickle.loads(pickle.dumps(clean))

    @pytest.mark.parametrize("queueing", Queueing)
    def test_who_has_left_is_not_picked_when_its_time_comes(self, queueing: Queueing) -> None:
        # More than half of the entries are out of date then, and 16: a new heap is made.
        tree = tree_of(queueing)
        left = [4 * n for n in range(N_SIBLINGS) if n % 4 != 1]
        for stream_id in left:
            tree.deactivate(stream_id)
        clean = pickle.loads(pickle.dumps(tree))
        picked = turns(tree, 500)
        assert not set(left) & set(picked)
        assert picked == turns(clean, 500)

    @pytest.mark.parametrize("queueing", Queueing)
    def test_who_left_and_who_paid_for_lost_bytes_do_not_make_up_for_one_another(
        self, queueing: Queueing
    ) -> None:
        # An entry of each is left behind in front of 12, the heaviest and soonest due again.
        tree = opened(TreeScheduler(queueing=queueing), {0: on(None), 4: on(None), 8: on(None)})
        opened(tree, {12: on(None, 256)})
        tree.deactivate(4)
        tree.charge(8, 140_000)
        picked = turns(tree, 20)
        assert set(picked[:20]) == {0, 12}


class TestRoom:
    @pytest.mark.parametrize("queueing", Queueing)
    def test_a_heap_is_at_most_twice_as_long_as_its_list_and_16(self, queueing: Queueing) -> None:
        queue = queueing_of(queueing, turn_bytes=1400, weights=Weights.SHARES)
        root = queue.make_node(0)
        children = [queue.make_node(4 * n) for n in range(N_SIBLINGS)]
        for child in children:
            queue.reweigh(child, 16)
            child.parent, child.has_data = root, True
            root.children[child.id] = child
            queue.list_ready(child)
        # The first stays, so none of the others' entries comes to the front.
        longest = 0
        for _ in range(10):
            for child in children[1:]:
                child.has_data = False
                queue.unlist_if_idle(child)
                longest = max(longest, len(root.heap))
                child.has_data = True
                queue.list_ready(child)
        assert len({entry[2].id for entry in root.heap}) == N_SIBLINGS
        assert N_SIBLINGS + 16 <= longest <= 2 * N_SIBLINGS + 16

    @pytest.mark.parametrize("make", [FifoScheduler, RoundRobinScheduler])
    @pytest.mark.parametrize("has_line", [False, True])
    def test_it_does_not_grow_with_those_who_come_and_go(
        self, make: type[FifoScheduler | RoundRobinScheduler], has_line: bool
    ) -> None:
        scheduler = opened(make(), dict.fromkeys(range(0, 40, 4), H2Priority()))
        if has_line and isinstance(scheduler, RoundRobinScheduler):
            scheduler.requeue(36)
        sizes = []
        for n in range(2000):
            scheduler.deactivate(4 * (1 + n % 9))
            scheduler.activate(4 * (1 + n % 9))
            sizes.append(len(pickle.dumps(scheduler)))
        assert max(sizes[1000:]) == max(sizes[:1000])
        assert scheduler.pick() == 0

    def test_it_does_not_grow_with_new_ranks(self) -> None:
        scheduler = opened(RankScheduler(), {4: Rank(value=9), 0: Rank(value=0)})
        sizes = []
        for n in range(2000):
            scheduler.update(4, Rank(value=1 + n % 8))
            sizes.append(len(pickle.dumps(scheduler)))
            assert scheduler.pick() == 0
        assert max(sizes[1000:]) == max(sizes[:1000])

    def test_it_shrinks_when_most_have_left(self) -> None:
        streams = IndexedHeap()
        for stream_id in range(500):
            streams.put(stream_id, stream_id)
        full = len(pickle.dumps(streams))
        for stream_id in range(1, 500):
            streams.drop(stream_id)
        assert streams.first == 0
        assert len(pickle.dumps(streams)) < full / 10


class TestRounds:
    def test_who_joins_as_the_next_is_picked_however_many_left_before(self) -> None:
        scheduler = opened(RoundRobinScheduler(), dict.fromkeys((16, 8, 12), H2Priority()))
        scheduler.open(4, H2Priority())
        for _ in range(60):
            scheduler.deactivate(12)
            scheduler.activate(12)
            joined = pickle.loads(pickle.dumps(scheduler))
            joined.activate(4)
            assert turns(joined, 6) == [4, 8, 12, 16, 4, 8]
        assert turns(scheduler, 4) == [8, 12, 16, 8]


class TestOrderedStreams:
    def test_the_first_that_gets_a_new_rank_leaves_the_front_to_who_is_there_still(self) -> None:
        streams = IndexedHeap()
        for stream_id, rank in ((0, 1), (4, 2), (8, 3)):
            streams.put(stream_id, rank)
        streams.put(4, 9)
        # What 4 left behind at 2 is before 8, and says nothing.
        streams.put(0, 5)
        assert streams.first == 8
        streams.drop(8)
        assert streams.first == 0

    def test_equal_ranks_go_by_the_tie_which_is_0_where_none_is_given(self) -> None:
        streams = IndexedHeap()
        streams.put(8, 1, 0)
        streams.put(4, 1)
        assert streams.first == 4
        streams.put(0, 1, 1)
        assert streams.first == 4
        streams.put(12, 1, -1)
        assert streams.first == 12

    def test_who_comes_back_with_an_old_rank_is_there_once(self) -> None:
        streams = IndexedHeap()
        for rank in (1, 2, 1):
            streams.put(4, rank)
        streams.put(0, 3)
        assert (streams.first, len(streams)) == (4, 2)
        streams.drop(4)
        assert (streams.first, len(streams), 4 in streams) == (0, 1, False)
        streams.drop(4)
        assert (streams.first, len(streams)) == (0, 1)
        streams.drop(0)
        assert (streams.first, len(streams)) == (None, 0)
