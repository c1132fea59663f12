"""EPS by hand: RFC 9218 § 10, and what it leaves open. A turn is a packet where nothing is said."""

from __future__ import annotations

import pytest

from h3sim.schedulers import (
    ByteListEpsScheduler,
    EpsScheduler,
    Mixed,
    Quantum,
    RingEpsScheduler,
    RoundRobinScheduler,
)
from h3sim.schedulers.levels import (
    H2oFirstSlice,
    NonIncrementalFirstLevel,
    RoundRobinAll,
    SharedRing,
    SplitHalf,
)
from h3sim.schedulers.queues import DeficitCounter
from h3sim.signals import Eps, H2Priority
from tests.unit.driving import drain_order, opened, turns

SHARES = Eps(incremental=True)
ALONE = Eps()
every_rule = pytest.mark.parametrize("mixed", list(Mixed))


def eps(urgency: int, *, incremental: bool = False) -> Eps:
    return Eps(urgency=urgency, incremental=incremental)


@every_rule
def test_lower_urgency_values_go_first(mixed: Mixed) -> None:
    """RFC 9218 § 4.1: 0 is the highest priority; § 10: send higher urgency responses first."""
    streams = {4 * n: eps(urgency) for n, urgency in enumerate((7, 3, 0, 5))}
    assert drain_order(opened(EpsScheduler(mixed=mixed), streams), 4) == [8, 4, 12, 0]


@every_rule
def test_a_signal_of_another_kind_is_urgency_3_and_not_incremental(mixed: Mixed) -> None:
    """RFC 9218 § 4: what is not said has its default."""
    streams = {0: eps(4), 4: H2Priority(weight=1), 8: eps(2), 12: eps(3)}
    assert drain_order(opened(EpsScheduler(mixed=mixed), streams), 4) == [8, 4, 12, 0]  # type: ignore[arg-type]


@pytest.mark.parametrize("mixed", [mixed for mixed in Mixed if mixed is not Mixed.ALL_SHARE])
def test_non_incremental_streams_go_one_at_a_time_by_stream_id(mixed: Mixed) -> None:
    """RFC 9218 § 10: by serving those requests in the ascending order of their stream IDs."""
    scheduler = opened(EpsScheduler(mixed=mixed), {8: ALONE, 0: ALONE, 4: ALONE})
    assert turns(scheduler, 3) == [0, 0, 0]
    scheduler.deactivate(0)
    assert turns(scheduler, 3) == [4, 4, 4]


@every_rule
def test_incremental_streams_share(mixed: Mixed) -> None:
    """RFC 9218 § 10: incremental responses of one urgency share the bandwidth."""
    scheduler = opened(EpsScheduler(mixed=mixed), {0: SHARES, 4: SHARES, 8: SHARES})
    assert turns(scheduler, 7) == [0, 4, 8, 0, 4, 8, 0]


@pytest.mark.parametrize(
    ("mixed", "order"),
    [
        (Mixed.NON_INCREMENTAL_FIRST, [4, 4, 4, 4, 4, 4]),
        # All of one round by stream id: 0, then 4, which stays in its round.
        (Mixed.SHARED_LIST, [0, 4, 4, 4, 4, 4]),
        # The half of those that are not incremental begins.
        (Mixed.HALVES, [4, 0, 4, 8, 4, 0]),
        (Mixed.HALVES_INCREMENTAL_FIRST, [0, 4, 8, 4, 0, 4]),
        # 0, then 4 to its end; 8 has not had its first turn, but a higher id.
        (Mixed.FIRST_TURN, [0, 4, 4, 4, 4, 4]),
        (Mixed.ALL_SHARE, [0, 4, 8, 0, 4, 8]),
    ],
)
def test_each_rule_for_both_kinds_at_one_urgency(mixed: Mixed, order: list[int]) -> None:
    """RFC 9218 § 10 leaves it to the server."""
    scheduler = opened(EpsScheduler(mixed=mixed), {0: SHARES, 4: ALONE, 8: SHARES})
    assert turns(scheduler, 6) == order


@pytest.mark.parametrize(
    ("mixed", "order"),
    [
        (Mixed.NON_INCREMENTAL_FIRST, [0, 8, 0, 8]),
        (Mixed.SHARED_LIST, [8, 0, 8, 0]),
        (Mixed.HALVES, [0, 8, 0, 8]),
        (Mixed.HALVES_INCREMENTAL_FIRST, [0, 8, 0, 8]),
        (Mixed.FIRST_TURN, [8, 0, 8, 0]),
        (Mixed.ALL_SHARE, [8, 0, 8, 0]),
    ],
)
def test_what_is_left_when_the_non_incremental_one_is_done(mixed: Mixed, order: list[int]) -> None:
    scheduler = opened(EpsScheduler(mixed=mixed), {0: SHARES, 4: ALONE, 8: SHARES})
    # halves gives 4, 0, 4, 8, or 0, 4, 8, 4; all-share 0, 4, 8, 0; the others end as above.
    turns(scheduler, 4)
    scheduler.deactivate(4)
    assert turns(scheduler, 4) == order


def test_in_a_shared_list_a_stream_joins_the_round_that_is_on() -> None:
    scheduler = opened(EpsScheduler(mixed=Mixed.SHARED_LIST), {8: SHARES, 12: SHARES})
    assert turns(scheduler, 3) == [8, 12, 8]
    # 12 is in round 1, 8 in round 2. 4 joins round 1, and has the lower id.
    opened(scheduler, {4: ALONE})
    assert turns(scheduler, 3) == [4, 4, 4]
    scheduler.deactivate(4)
    assert turns(scheduler, 3) == [12, 8, 12]


def test_in_a_shared_list_a_stream_that_is_alone_stays_in_its_round() -> None:
    scheduler = opened(EpsScheduler(mixed=Mixed.SHARED_LIST), {0: SHARES})
    assert turns(scheduler, 3) == [0, 0, 0]
    # Both in round 0: 0 is the lower; then 4, then both in round 1.
    opened(scheduler, {4: SHARES})
    assert turns(scheduler, 4) == [0, 4, 0, 4]


def test_a_first_turn_goes_by_stream_id_before_all_second_ones() -> None:
    scheduler = opened(EpsScheduler(mixed=Mixed.FIRST_TURN), {0: SHARES, 4: SHARES})
    assert turns(scheduler, 3) == [0, 4, 0]
    opened(scheduler, {12: SHARES, 8: SHARES})
    # First turns of 8 and 12; then in the order in which they came: 4, 0, 8, 12.
    assert turns(scheduler, 6) == [8, 12, 4, 0, 8, 12]


def test_a_first_turn_comes_once() -> None:
    scheduler = opened(EpsScheduler(mixed=Mixed.FIRST_TURN), {0: SHARES, 4: SHARES})
    turns(scheduler, 2)
    # 0 runs dry and comes back: behind 4, which waits for its second turn.
    scheduler.deactivate(0)
    scheduler.activate(0)
    assert turns(scheduler, 2) == [4, 0]
    scheduler.close(0)
    opened(scheduler, {0: SHARES})
    assert turns(scheduler, 2) == [0, 4]


def test_a_first_turn_is_not_broken_off_in_the_middle() -> None:
    scheduler = EpsScheduler(mixed=Mixed.FIRST_TURN, turn=Quantum(packets=2))
    opened(scheduler, {0: SHARES, 4: SHARES})
    assert turns(scheduler, 8) == [0, 0, 4, 4, 0, 0, 4, 4]


def test_a_first_turn_is_that_of_an_incremental_stream_only() -> None:
    scheduler = opened(EpsScheduler(mixed=Mixed.FIRST_TURN), {0: SHARES, 4: ALONE, 8: SHARES})
    assert turns(scheduler, 2) == [0, 4]
    # 4 has had a turn and comes back, not incremental still: before all second turns.
    scheduler.deactivate(4)
    scheduler.activate(4)
    assert turns(scheduler, 3) == [4, 4, 4]
    scheduler.deactivate(4)
    assert turns(scheduler, 4) == [8, 0, 8, 0]


@every_rule
def test_an_update_takes_effect_at_the_next_pick(mixed: Mixed) -> None:
    """RFC 9218 § 6: a client may change the priority of what it has asked for."""
    scheduler = opened(EpsScheduler(mixed=mixed), {0: ALONE, 4: eps(5), 8: eps(6)})
    assert turns(scheduler, 1) == [0]
    scheduler.update(8, eps(1))
    assert scheduler.pick() == 8
    scheduler.update(0, eps(0, incremental=True))
    assert scheduler.pick() == 0
    scheduler.update(0, eps(7))
    scheduler.update(8, eps(6))
    assert scheduler.pick() == 4


def test_an_update_that_changes_nothing_keeps_the_turn() -> None:
    scheduler = opened(EpsScheduler(), {0: SHARES, 4: SHARES})
    scheduler.update(0, SHARES)
    assert turns(scheduler, 2) == [0, 4]
    scheduler.update(4, ALONE)
    scheduler.update(4, SHARES)
    assert turns(scheduler, 2) == [0, 4]


def test_an_update_of_a_stream_without_data_is_kept() -> None:
    scheduler = opened(EpsScheduler(), {0: ALONE, 4: ALONE})
    scheduler.deactivate(4)
    scheduler.update(4, eps(0))
    assert scheduler.pick() == 0
    scheduler.activate(4)
    assert scheduler.pick() == 4


@pytest.mark.parametrize("mixed", [Mixed.NON_INCREMENTAL_FIRST, Mixed.ALL_SHARE])
def test_a_turn_may_have_several_packets(mixed: Mixed) -> None:
    scheduler = EpsScheduler(mixed=mixed, turn=Quantum(packets=3))
    opened(scheduler, {0: SHARES, 4: SHARES})
    assert turns(scheduler, 8) == [0, 0, 0, 4, 4, 4, 0, 0]
    # The turn ends where there is nothing left, and starts anew.
    scheduler.deactivate(0)
    scheduler.activate(0)
    assert turns(scheduler, 6) == [4, 4, 4, 0, 0, 0]


def test_a_turn_of_bytes_ends_with_the_packet_that_makes_them() -> None:
    """16,000 bytes, as Google's servers have them: 12 packets of 1400 (16,800)."""
    scheduler = opened(EpsScheduler(turn=Quantum(size_bytes=16_000)), {0: SHARES, 4: SHARES})
    assert turns(scheduler, 25) == [0] * 12 + [4] * 12 + [0]


def test_halves_of_longer_turns() -> None:
    scheduler = EpsScheduler(mixed=Mixed.HALVES, turn=Quantum(packets=2))
    opened(scheduler, {0: SHARES, 4: ALONE, 8: SHARES})
    assert turns(scheduler, 8) == [4, 4, 0, 0, 4, 4, 8, 8]
    # 4 has one packet of its turn and runs dry: the others go on alone, by whole turns.
    assert turns(scheduler, 1) == [4]
    scheduler.deactivate(4)
    assert turns(scheduler, 3) == [0, 0, 8]
    # 8 ends in the middle of its turn: that of the other kind follows.
    scheduler.activate(4)
    scheduler.deactivate(8)
    assert turns(scheduler, 4) == [4, 4, 0, 0]


def test_in_a_shared_list_a_packet_may_be_several_turns() -> None:
    """nghttp3: the round rises by the bytes over 800, and by 1 at least."""
    scheduler = EpsScheduler(mixed=Mixed.SHARED_LIST, turn=Quantum(size_bytes=800))
    opened(scheduler, {0: SHARES, 4: SHARES})
    assert turns(scheduler, 1, n_bytes=2500) == [0]
    # 0 is in round 3; 4 goes in rounds 0, 1 and 2, and comes behind 0 in round 3.
    assert turns(scheduler, 5, n_bytes=800) == [4, 4, 4, 0, 4]


def test_in_a_shared_list_a_begun_turn_counts_for_the_next_priority() -> None:
    """nghttp3: bytes below 800 are a turn once the stream is scheduled anew."""
    scheduler = EpsScheduler(mixed=Mixed.SHARED_LIST, turn=Quantum(size_bytes=800))
    opened(scheduler, {0: eps(2, incremental=True), 4: SHARES, 8: eps(2)})
    assert turns(scheduler, 1, n_bytes=300) == [0]
    scheduler.update(0, SHARES)
    # 8 at urgency 2; then 4 in round 0, for which 0, in round 1, has to wait.
    scheduler.deactivate(8)
    assert turns(scheduler, 3, n_bytes=800) == [4, 0, 4]
    # One that is not incremental joins the round of the head whatever it has begun.
    scheduler = EpsScheduler(mixed=Mixed.SHARED_LIST, turn=Quantum(size_bytes=800))
    opened(scheduler, {0: eps(2, incremental=True), 4: SHARES})
    turns(scheduler, 1, n_bytes=300)
    scheduler.update(0, ALONE)
    assert turns(scheduler, 2, n_bytes=800) == [0, 0]


def test_go_has_one_alternation_for_the_connection() -> None:
    streams = {0: eps(1), 4: eps(1), 8: SHARES, 12: ALONE, 16: SHARES}
    scheduler = opened(RingEpsScheduler(), streams)
    # Urgency 1 has the incremental turn, and a second one; then the third is for urgency 3.
    assert turns(scheduler, 2) == [0, 0]
    scheduler.close(0)
    assert turns(scheduler, 1) == [4]
    scheduler.close(4)
    assert turns(scheduler, 5) == [12, 8, 12, 16, 12]


def test_in_go_a_late_response_waits_for_those_after_it() -> None:
    """RFC 9218 § 10 recommends the ascending order of stream IDs; Go goes round the ring."""
    scheduler = RingEpsScheduler()
    scheduler.open(0, ALONE)
    opened(scheduler, {4: ALONE, 8: ALONE})
    assert turns(scheduler, 1) == [4]
    scheduler.activate(0)
    assert turns(scheduler, 2) == [4, 4]
    scheduler.close(4)
    assert turns(scheduler, 1) == [8]
    scheduler.close(8)
    assert turns(scheduler, 1) == [0]


def test_in_go_an_update_to_the_same_priority_goes_to_the_end_of_the_ring() -> None:
    scheduler = opened(RingEpsScheduler(), {0: SHARES, 4: SHARES, 8: SHARES})
    assert turns(scheduler, 1) == [0]
    scheduler.update(4, SHARES)
    assert turns(scheduler, 4) == [8, 0, 4, 8]


def test_nghttp2_moves_an_incremental_stream_back_by_its_bytes() -> None:
    scheduler = opened(ByteListEpsScheduler(), {0: SHARES, 4: SHARES, 8: ALONE})
    # Cycles 1,000, 0, 0; then 1,000, 400, 0: 8 goes on, as it is not incremental.
    assert turns(scheduler, 1, n_bytes=1000) == [0]
    assert turns(scheduler, 1, n_bytes=400) == [4]
    assert turns(scheduler, 2) == [8, 8]
    scheduler.close(8)
    assert turns(scheduler, 3, n_bytes=400) == [4, 4, 0]


def test_in_nghttp2_a_stream_alone_keeps_its_cycle() -> None:
    scheduler = opened(ByteListEpsScheduler(), {0: SHARES})
    assert turns(scheduler, 3) == [0, 0, 0]
    opened(scheduler, {4: SHARES})
    assert turns(scheduler, 4) == [0, 4, 0, 4]


def test_in_nghttp2_an_update_costs_the_bytes_of_the_last_frame() -> None:
    scheduler = opened(ByteListEpsScheduler(), {0: SHARES, 4: SHARES, 8: eps(1, incremental=True)})
    assert turns(scheduler, 1, n_bytes=700) == [8]
    scheduler.update(8, SHARES)
    # It joins at 0 + 700, so the others have 700 bytes each first.
    assert turns(scheduler, 7, n_bytes=350) == [0, 4, 0, 4, 0, 4, 8]
    scheduler.update(4, SHARES)
    assert scheduler.pick() == 0


def test_in_nghttp2_a_stream_without_data_leaves_when_its_turn_comes() -> None:
    scheduler = opened(ByteListEpsScheduler(), {0: SHARES, 4: SHARES})
    assert turns(scheduler, 1, n_bytes=500) == [0]
    scheduler.deactivate(0)
    scheduler.activate(0)  # before its turn: it has kept its cycle, 500
    assert turns(scheduler, 2, n_bytes=400) == [4, 4]
    scheduler.deactivate(0)
    assert turns(scheduler, 1, n_bytes=400) == [4]
    # Its turn came, at 500; it joins again at 4's 800, and 500 more for its last frame.
    scheduler.activate(0)
    assert turns(scheduler, 3, n_bytes=400) == [4, 4, 0]


def test_round_robin_by_longer_turns() -> None:
    scheduler = opened(RoundRobinScheduler(turn=Quantum(packets=2)), {0: ALONE, 8: ALONE})
    assert turns(scheduler, 5) == [0, 0, 8, 8, 0]
    # 4 joins in the middle of 0's turn of round 3, and waits for round 4.
    opened(scheduler, {4: ALONE})
    assert turns(scheduler, 7) == [0, 8, 8, 0, 0, 4, 4]


def test_a_stream_that_joins_during_the_first_turn_waits_for_the_next_round() -> None:
    scheduler = opened(RoundRobinScheduler(turn=Quantum(packets=2)), {8: ALONE})
    assert turns(scheduler, 1) == [8]
    opened(scheduler, {4: ALONE})
    assert turns(scheduler, 5) == [8, 4, 4, 8, 8]


def test_an_interrupted_quantum_of_round_robin_is_full_when_the_stream_returns() -> None:
    scheduler = opened(RoundRobinScheduler(turn=Quantum(packets=3)), {0: ALONE, 4: ALONE})
    assert turns(scheduler, 4) == [0, 0, 0, 4]
    scheduler.deactivate(4)
    scheduler.activate(4)
    assert turns(scheduler, 6) == [0, 0, 0, 4, 4, 4]


@pytest.mark.parametrize(
    ("turn", "packets", "turns_over"),
    [
        (Quantum(), [1400, 0, 5000], [1, 1, 1]),
        (Quantum(packets=2), [1400, 1, 5000, 0, 1400], [0, 1, 0, 1, 0]),
        (Quantum(size_bytes=800), [800, 2399, 2400, 799, 1, 0], [1, 2, 3, 0, 1, 0]),
        # What a packet has above a turn is forgotten.
        (Quantum(size_bytes=800), [1500, 100, 700], [1, 0, 1]),
    ],
)
def test_what_a_packet_is_of_a_turn(
    turn: Quantum, packets: list[int], turns_over: list[int]
) -> None:
    counter = DeficitCounter(turn)
    assert [counter.charge(4, n_bytes) for n_bytes in packets] == turns_over
    # Each stream has a turn of its own.
    assert counter.charge(8, 1) == (1 if turn == Quantum() else 0)
    # Only a turn that is begun and not over is dropped.
    counter.drop(8)
    assert not counter.has_begun(8)
    assert counter.has_begun(4) is (turn == Quantum(packets=2))


@pytest.mark.parametrize(
    "level", [RoundRobinAll, H2oFirstSlice, SplitHalf, NonIncrementalFirstLevel, SharedRing]
)
@pytest.mark.parametrize("is_incremental", [False, True])
def test_a_level_reports_with_which_packet_a_quantum_ends(
    level: type[NonIncrementalFirstLevel] | type[SharedRing], is_incremental: bool
) -> None:
    streams = level(Quantum(packets=2))
    for stream_id in (0, 4):
        streams.join(stream_id, is_incremental, True)
    assert [streams.charge(0, 1400) for _ in range(4)] == [False, True, False, True]


@pytest.mark.parametrize(
    "wrong", [{"packets": 0}, {"size_bytes": 0}, {"packets": 2, "size_bytes": 1400}]
)
def test_a_turn_is_of_packets_or_of_bytes(wrong: dict[str, int]) -> None:
    with pytest.raises(ValueError, match=r"at least 1|not both"):
        Quantum(**wrong)


@pytest.mark.parametrize("urgency", [-1, 8])
def test_an_urgency_is_0_to_7(urgency: int) -> None:
    """RFC 9218 § 4.1: an integer between 0 and 7, inclusive."""
    with pytest.raises(ValueError, match="urgency "):
        Eps(urgency=urgency)


@every_rule
def test_nothing_is_kept_of_closed_streams(mixed: Mixed) -> None:
    scheduler = EpsScheduler(mixed=mixed, turn=Quantum(packets=2))
    fresh = sizes(scheduler)
    opened(scheduler, {0: SHARES, 4: ALONE, 8: eps(1)})
    turns(scheduler, 5)
    for stream_id in (0, 4, 8):
        scheduler.close(stream_id)
    assert scheduler.pick() is None
    assert sizes(scheduler) == fresh


def sizes(thing: object) -> list[int]:
    """Return the sizes of all containers that *thing* holds, however deep."""
    slots = [name for kind in type(thing).__mro__ for name in getattr(kind, "__slots__", ())]
    values = [*getattr(thing, "__dict__", {}).values(), *(getattr(thing, name) for name in slots)]
    found = []
    for value in values:
        if hasattr(value, "__len__"):
            found.append(len(value))
        inner = value if isinstance(value, list) else [value]
        for entry in inner:
            if type(entry).__module__.startswith("h3sim.schedulers"):
                found += sizes(entry)
    return found
