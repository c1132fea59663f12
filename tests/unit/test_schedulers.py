"""Schedulers alone, with no page, server or time: what all obey, fifo, round robin, buckets."""

from __future__ import annotations

import pickle
from functools import partial
from typing import TYPE_CHECKING

import pytest

from h3sim.schedulers import (
    AdaptiveRoundRobinScheduler,
    BucketScheduler,
    EpsScheduler,
    FifoScheduler,
    Mixed,
    Queueing,
    RoundRobinScheduler,
    Scheduler,
    TreeScheduler,
)
from h3sim.schemes import SchedulerKind
from h3sim.signals import BucketPriority, H2Priority
from tests.unit.driving import drain_order, on, opened, turns

if TYPE_CHECKING:
    from collections.abc import Callable


EVERY: dict[str, Callable[[], Scheduler]] = {
    **{kind.value: partial(kind.make, turn_bytes=1400) for kind in SchedulerKind},
    **{f"eps {mixed.value}": partial(EpsScheduler, mixed=mixed) for mixed in Mixed},
    **{
        f"tree of {queueing.value}": partial(TreeScheduler.of_server, queueing)
        for queueing in Queueing
    },
}


@pytest.mark.parametrize("make", EVERY.values(), ids=EVERY)
class TestEveryScheduler:
    def test_it_has_the_methods_of_the_contract(self, make: Callable[[], Scheduler]) -> None:
        assert isinstance(make(), Scheduler)

    def test_without_an_active_stream_it_picks_none(self, make: Callable[[], Scheduler]) -> None:
        scheduler = make()
        assert scheduler.pick() is None
        scheduler.open(0, H2Priority())
        assert scheduler.pick() is None

    def test_a_pick_changes_nothing(self, make: Callable[[], Scheduler]) -> None:
        scheduler = opened(make(), {0: H2Priority(), 4: H2Priority()})
        assert [scheduler.pick() for _ in range(3)] == [0, 0, 0]

    def test_activating_twice_is_activating_once(self, make: Callable[[], Scheduler]) -> None:
        scheduler = opened(make(), {0: H2Priority(), 4: H2Priority()})
        scheduler.activate(0)
        scheduler.deactivate(0)
        scheduler.deactivate(0)
        assert turns(scheduler, 2) == [4, 4]

    def test_a_closed_stream_is_not_picked(self, make: Callable[[], Scheduler]) -> None:
        scheduler = opened(make(), {0: H2Priority(), 4: H2Priority()})
        scheduler.close(0)
        assert turns(scheduler, 2) == [4, 4]
        scheduler.close(4)
        assert scheduler.pick() is None

    def test_a_stream_that_comes_back_is_picked_again(self, make: Callable[[], Scheduler]) -> None:
        scheduler = opened(make(), {0: H2Priority()})
        scheduler.deactivate(0)
        assert scheduler.pick() is None
        scheduler.activate(0)
        assert scheduler.pick() == 0

    def test_what_it_keeps_grows_with_the_streams_and_not_with_the_turns(
        self, make: Callable[[], Scheduler]
    ) -> None:
        scheduler = opened(make(), dict.fromkeys(range(0, 40, 4), H2Priority()))

        def size_after(n_rounds: int) -> int:
            for n in range(n_rounds):
                stream_id = 4 * (n % 10)
                scheduler.deactivate(stream_id)
                scheduler.activate(stream_id)
                turns(scheduler, 1)
            return len(pickle.dumps(scheduler))

        few = size_after(100)
        assert size_after(500) < 1.5 * few


@pytest.mark.parametrize("name", [name for name in EVERY if "nghttp2" not in name])
def test_nothing_is_kept_of_streams_that_were_closed(name: str) -> None:
    scheduler = EVERY[name]()

    def size_after(n_streams: int) -> int:
        for first in range(0, 12 * n_streams, 12):
            opened(scheduler, {first: on(None), first + 4: on(None), first + 8: on(first)})
            turns(scheduler, 4)
            for stream_id in (first + 4, first, first + 8):
                scheduler.close(stream_id)
        assert scheduler.pick() is None
        return len(pickle.dumps(scheduler))

    # nginx keeps the last 32 closed nodes.
    few = size_after(40 if name == "nginx-queue" else 1)
    # A count may have become longer by some bytes.
    assert size_after(100) < few + 64


@pytest.mark.parametrize("name", [name for name in EVERY if "nghttp2" not in name])
def test_a_stream_that_was_closed_and_opened_anew_has_no_data_yet(name: str) -> None:
    # nghttp2 keeps closed streams: there no id comes back.
    scheduler = opened(EVERY[name](), {0: H2Priority(), 4: H2Priority()})
    scheduler.close(0)
    scheduler.open(0, H2Priority())
    assert turns(scheduler, 2) == [4, 4]
    scheduler.update(0, H2Priority(weight=32))
    assert turns(scheduler, 2) == [4, 4]


class TestFifo:
    def test_the_lowest_id_is_sent_to_its_end(self) -> None:
        scheduler = opened(FifoScheduler(), {8: H2Priority(weight=256), 0: H2Priority(weight=1)})
        assert turns(scheduler, 3) == [0, 0, 0]
        scheduler.deactivate(0)
        assert turns(scheduler, 2) == [8, 8]

    def test_signals_change_nothing(self) -> None:
        scheduler = opened(FifoScheduler(), {0: on(None), 4: on(None)})
        scheduler.update(4, on(None, 256, exclusive=True))
        assert scheduler.pick() == 0


class TestRoundRobin:
    def test_each_stream_has_a_turn_a_round_whatever_it_sends(self) -> None:
        scheduler = opened(RoundRobinScheduler(), {0: on(None, 256), 4: on(None, 1), 8: on(0)})
        assert turns(scheduler, 3, n_bytes=1) == [0, 4, 8]
        assert turns(scheduler, 3, n_bytes=1400) == [0, 4, 8]

    def test_a_stream_that_joins_or_returns_waits_for_the_next_round(self) -> None:
        scheduler = opened(RoundRobinScheduler(), {4: on(None), 8: on(None)})
        assert turns(scheduler, 1) == [4]
        opened(scheduler, {0: on(None)})
        # 8 ends round 1; then round 2, lowest id first.
        assert turns(scheduler, 4) == [8, 0, 4, 8]

    def test_lost_bytes_that_go_first_are_the_turn_of_their_stream(self) -> None:
        # 8 has had its turn of round 1 before 0 and 4 have theirs.
        scheduler = opened(RoundRobinScheduler(), {0: on(None), 4: on(None), 8: on(None)})
        scheduler.charge(8, 1400)
        assert turns(scheduler, 5) == [0, 4, 0, 4, 8]

    def test_signals_change_nothing(self) -> None:
        scheduler = opened(RoundRobinScheduler(), {0: on(None), 4: on(None)})
        scheduler.update(4, on(None, 256, exclusive=True))
        assert turns(scheduler, 4) == [0, 4, 0, 4]


@pytest.mark.parametrize("make", [RoundRobinScheduler, AdaptiveRoundRobinScheduler])
class TestRequeuing:
    def test_who_is_sent_to_the_end_goes_behind_all_that_wait(
        self, make: Callable[[], RoundRobinScheduler | AdaptiveRoundRobinScheduler]
    ) -> None:
        scheduler = opened(make(), {0: on(None), 4: on(None), 8: on(None)})
        scheduler.requeue(0)
        assert turns(scheduler, 6) == [4, 8, 0, 4, 8, 0]
        # From then on it is first come, first served: 2 waits for all that came before it.
        opened(scheduler, {2: on(None)})
        assert turns(scheduler, 5) == [4, 8, 0, 2, 4]
        # And where nobody waits there is no waiting.
        for stream_id in (0, 2, 4, 8):
            scheduler.deactivate(stream_id)
        assert scheduler.pick() is None
        for stream_id in (8, 4):
            scheduler.activate(stream_id)
        assert turns(scheduler, 4) == [8, 4, 8, 4]

    def test_who_is_out_is_sent_nowhere(
        self, make: Callable[[], RoundRobinScheduler | AdaptiveRoundRobinScheduler]
    ) -> None:
        scheduler = opened(make(), {0: on(None), 4: on(None), 8: on(None)})
        scheduler.deactivate(8)
        scheduler.requeue(8)
        assert turns(scheduler, 4) == [0, 4, 0, 4]
        opened(scheduler, {2: on(None)})
        # There is no line yet: of one round the lowest goes first.
        assert turns(scheduler, 5) == [0, 2, 4, 0, 2]


def bucket_priority(bucket: int, level: int) -> BucketPriority:
    return BucketPriority(bucket=bucket, level=level)


class TestBuckets:
    def test_the_highest_bucket_is_emptied_first(self) -> None:
        scheduler = opened(
            BucketScheduler(),
            {0: bucket_priority(0, 3), 4: bucket_priority(63, 1), 8: bucket_priority(31, 3)},
        )
        assert drain_order(scheduler, 3) == [4, 8, 0]

    def test_level_3_goes_first_then_levels_2_and_1_by_turns(self) -> None:
        scheduler = opened(
            BucketScheduler(),
            {
                0: bucket_priority(5, 1),
                4: bucket_priority(5, 1),
                8: bucket_priority(5, 2),
                12: bucket_priority(5, 2),
                16: bucket_priority(5, 3),
            },
        )
        assert turns(scheduler, 2) == [16, 16]
        scheduler.deactivate(16)
        # Level 2 is one at a time, level 1 in rounds.
        assert turns(scheduler, 6) == [8, 0, 8, 4, 8, 0]
        scheduler.deactivate(8)
        # Stream 0 of level 1 had the last turn: level 2, then the second round's stream 4.
        assert turns(scheduler, 4) == [12, 4, 12, 0]

    @pytest.mark.parametrize("level", [2, 3])
    def test_levels_3_and_2_are_ordered_by_id_whatever_arrives_first(self, level: int) -> None:
        """Marx 2019 § 3.3: sequentially by stream ID."""
        scheduler = opened(
            BucketScheduler(),
            {
                8: bucket_priority(5, level),
                0: bucket_priority(5, level),
                4: bucket_priority(5, level),
            },
        )
        assert drain_order(scheduler, 3) == [0, 4, 8]

    def test_a_stream_that_comes_back_is_first_again(self) -> None:
        scheduler = opened(BucketScheduler(), {0: bucket_priority(5, 3), 4: bucket_priority(5, 3)})
        scheduler.deactivate(0)
        assert scheduler.pick() == 4
        scheduler.activate(0)
        assert scheduler.pick() == 0

    def test_an_update_moves_a_stream_at_once(self) -> None:
        scheduler = opened(
            BucketScheduler(), {0: bucket_priority(31, 3), 4: bucket_priority(31, 3)}
        )
        scheduler.update(4, bucket_priority(63, 1))
        assert turns(scheduler, 2) == [4, 4]
        scheduler.update(4, bucket_priority(0, 3))
        assert turns(scheduler, 2) == [0, 0]

    def test_a_stream_updated_while_idle_joins_where_it_was_put(self) -> None:
        scheduler = opened(BucketScheduler(), {0: bucket_priority(31, 3), 4: bucket_priority(0, 1)})
        scheduler.deactivate(4)
        scheduler.update(4, bucket_priority(63, 2))
        assert scheduler.pick() == 0
        scheduler.activate(4)
        assert scheduler.pick() == 4

    def test_a_signal_of_another_kind_counts_as_bucket_0_level_2(self) -> None:
        scheduler = opened(
            BucketScheduler(),
            {0: on(None, 256), 4: bucket_priority(0, 1), 8: bucket_priority(0, 3)},
        )
        assert turns(scheduler, 1) == [8]
        scheduler.deactivate(8)
        assert turns(scheduler, 3) == [0, 4, 0]


class TestSignals:
    @pytest.mark.parametrize("weight", [-1, 257])
    def test_a_weight_outside_0_to_256_is_refused(self, weight: int) -> None:
        with pytest.raises(ValueError, match=f"weight .*, is {weight}"):
            H2Priority(weight=weight)

    @pytest.mark.parametrize(("bucket", "level"), [(-1, 1), (64, 1), (0, 0), (0, 4)])
    def test_a_place_outside_the_buckets_is_refused(self, bucket: int, level: int) -> None:
        with pytest.raises(ValueError, match="must be"):
            BucketPriority(bucket=bucket, level=level)


def test_a_stream_that_was_closed_may_be_opened_again() -> None:
    tree = TreeScheduler()
    for stream_id in (0, 4):
        tree.open(stream_id, H2Priority())
        tree.activate(stream_id)
    tree.close(4)
    tree.open(4, H2Priority())
    tree.activate(4)
    tree.charge(0, 1400)
    # Stream 0 had its turn, and the new stream 4 starts one turn behind it.
    assert tree.pick() == 4


def test_saying_the_same_again_costs_no_turn() -> None:
    buckets = BucketScheduler()
    signal = BucketPriority(bucket=31, level=1)
    for stream_id in (0, 4):
        buckets.open(stream_id, signal)
        buckets.activate(stream_id)
    picked = []
    for _ in range(4):
        picked.append(buckets.pick())
        buckets.charge(picked[-1], 1400)  # type: ignore[arg-type]
        buckets.update(4, signal)
    assert picked == [0, 4, 0, 4]
