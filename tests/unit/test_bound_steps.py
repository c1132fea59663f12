"""How the bounds on ByteIndex are sought, step by step, and their parts against plain counts."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from h3sim.metrics import lower_bounds
from h3sim.metrics.lower_bounds import (
    Part,
    Response,
    TransmissionJob,
    TransmissionOpportunity,
    lower_bound_ns,
    lower_bound_over_links_ns,
    mean_tick_bound,
)
from tests.effort import law

# A packet that weighs nothing, one of weight 10 behind it, and one of weight 4 beside them.
BEHIND = [Part(None, 1, 1, 1, 0), Part(0, 1, 2, 1, 10), Part(None, 1, 1, 1, 4)]


def ascended(parts: list[Part], n_steps: int) -> float:
    return lower_bounds._ascend(parts, [0.0] * len(parts), n_steps)


# Steps along the supergradient


def test_steps_are_as_long_as_what_the_densest_weighs_and_half_that_after_five_in_vain() -> None:
    """Nothing moved: 4 + 2 * 10 = 24, and the slope is 1 + 3 - 2 = 2.

    The first step moves all 10: 10 + 10 * 1 + 4 * 2 = 28, with slope 1 + 1 - 3 = -1. The second
    moves them back, the third there again, and so on: from the second to the sixth five in vain.
    Half as long, the seventh moves 5 from the best: 5 + 5 * 1 + 5 * 2 + 4 * 3 = 32, the optimum.
    """
    found = [ascended(BEHIND, n_steps) for n_steps in range(9)]
    assert found == pytest.approx([24, *[28] * 6, 32, 32])


def test_a_step_is_as_far_for_each_packet_and_moves_no_more_than_there_is() -> None:
    """One of 2 packets weighs 10: nothing moved, 4 + 3 * 10 = 34, and the slope is 2 + 4 - 3 = 3.

    The densest weighs 5 a packet: 5 / 3 * 3 * 2 = 10 are moved, 2 * 10 + 10 * 1 + 4 * 2 = 38.
    """
    parts = [Part(None, 1, 1, 1, 0), Part(0, 1, 2, 2, 10), Part(None, 1, 1, 1, 4)]
    assert [ascended(parts, n_steps) for n_steps in range(2)] == pytest.approx([34, 38])


def test_the_steepest_slope_determines_how_far_the_others_go() -> None:
    """Two that wait: slopes 2 + 3 - 1 = 4 for the one, 5 + 3 - 2 = 6 for that behind a lag of 5.

    By 4 * 4 / 6 = 8/3 and 4 * 6 / 6 = 4, which is all that the second has. Before, 4 * 1 + 4 * 2;
    then 8/3 * 2 + 4 * 5 were added, and the weights are 20/3, 4/3 and 0: 20/3 * 1 + 4/3 * 2.
    """
    parts = [Part(None, 1, 1, 1, 0), Part(0, 2, 1, 1, 4), Part(0, 5, 1, 1, 4)]
    found = [ascended(parts, n_steps) for n_steps in range(2)]
    assert found == pytest.approx([12, (16 + 60 + 20 + 8) / 3])


def test_the_densest_is_who_weighs_most_a_packet() -> None:
    """Slopes 2 + 4 - 1 = 5, and 6 + 4 - 3 = 7 for the one of two packets, of weight 2 each.

    By 4 * 5 / 7 = 20/7 and 4 * 2, cut to the 4 that there are. Before, 4 * 1 + 4 * 3; then
    20/7 * 2 + 4 * 6 were added, and the weights are 48/7, 8/7 and 0: 48/7 * 1 + 8/7 * 2.
    """
    parts = [Part(None, 1, 1, 1, 0), Part(0, 2, 1, 1, 4), Part(0, 5, 1, 2, 4)]
    found = [ascended(parts, n_steps) for n_steps in range(2)]
    assert found == pytest.approx([16, 24 + (40 + 48 + 16) / 7])


def test_the_first_steps_are_as_patient_as_those_behind_a_gain() -> None:
    """From all 10 moved, 28, they lead to 24 and back; after five the sixth goes half as far."""
    found = [lower_bounds._ascend(BEHIND, [0.0, 10.0, 0.0], n_steps) for n_steps in range(7)]
    assert found == pytest.approx([*[28] * 6, 32])


def test_one_of_the_starts_is_where_nothing_is_moved() -> None:
    # Made level both weigh 5: 5 * 1 + 5 * 1 + 5 * 100.
    late = [Part(None, 1, 1, 1, 0), Part(0, 1, 100, 1, 10)]
    assert mean_tick_bound(late, n_steps=0) == 100


def test_there_are_two_hundred_steps_from_each_of_two_starts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lengths: list[float] = []
    stepped = lower_bounds._stepped

    def counted(
        parts: list[Part], moved: list[float], slopes: list[float], length: float
    ) -> object:
        lengths.append(length)
        return stepped(parts, moved, slopes, length)

    monkeypatch.setattr(lower_bounds, "_stepped", counted)
    mean_tick_bound([Part(None, 1, 1, 1, 0), Part(0, 3, 2, 2, 10), Part(None, 1, 1, 1, 4)])
    assert len(lengths) == 2 * 200


def test_where_nothing_waits_there_is_nothing_to_seek(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lower_bounds, "_stepped", None)
    assert mean_tick_bound([Part(None, 1, 1, 2, 3), Part(None, 1, 1, 1, 3)]) == (3 + 1) / 2


@pytest.mark.parametrize(
    ("parts", "moved"),
    [
        # Of one packet each and 0, 1 and 8 heavy, in a chain. The last two are one, of 9 for 2; so
        # they join the first, and all three come to 3 each: 5 move up from the last, then 3.
        ([Part(None, 1, 1, 1, 0), Part(0, 1, 2, 1, 1), Part(1, 1, 3, 1, 8)], [0, 3, 5]),
        # Two behind one: 9 joins 0, which makes 4.5 for each, and 3 does not join that.
        ([Part(None, 1, 1, 1, 0), Part(0, 1, 2, 1, 3), Part(0, 1, 2, 1, 9)], [0, 0, 4.5]),
        # 4 does not join 5; but 5 joins 0, which makes 2.5 each, and then 4 does: 9 for 3.
        ([Part(None, 1, 1, 1, 0), Part(0, 1, 2, 1, 5), Part(1, 1, 3, 1, 4)], [0, 3, 1]),
        # 1.5 each is joined by the densest alone, which makes 5 / 3; two that are joined have 1.5
        # each, which is less, though they weigh more in all.
        (
            [
                Part(None, 1, 1, 2, 3),
                Part(0, 1, 1, 1, 2),
                Part(0, 1, 1, 9, 9),
                Part(2, 1, 1, 9, 18),
            ],
            [0, 1 / 3, 0, 4.5],
        ),
        # Less behind than before, or as much, moves nothing: 8 for 2 packets before 4 for 1.
        ([Part(None, 1, 1, 2, 8), Part(0, 1, 3, 1, 4)], [0, 0]),
    ],
)
def test_what_hangs_behind_is_made_level_with_all_that_it_is_sent_as_one_with(
    parts: list[Part], moved: list[float]
) -> None:
    """Horn 1972: merged again upwards, by the mean weight of all that were merged."""
    assert lower_bounds._levelled(parts) == pytest.approx(moved)


# When each response is ready


@pytest.mark.parametrize(
    ("ready_at_ns", "tick"), [(0, 1), (1, 1), (10, 1), (11, 2), (20, 2), (21, 3)]
)
def test_a_packet_leaves_at_the_first_tick_at_which_its_response_is_ready(
    ready_at_ns: int, tick: int
) -> None:
    alone = [Response(ready_at_ns, 1400, 1)]
    assert lower_bound_ns(alone, interval_ns=Fraction(10), delay_ns=7) == tick * 10 + 7


def test_without_a_byte_no_index_is_bounded() -> None:
    assert lower_bound_ns([Response(0, 0, 3)], interval_ns=Fraction(10)) is None


# The way from the mean to the last byte over links


SLOTS = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9), st.integers(1, 4)), min_size=1)


def byte_by_byte(slots: list[TransmissionOpportunity]) -> list[tuple[int, int]]:
    return [(slot.sent_at_ns, slot.arrived_at_ns) for slot in slots for _ in range(slot.n_bytes)]


@law(80)
@given(drawn=SLOTS, n_bytes=st.integers(0, 9), ready_at_ns=st.integers(0, 20))
def test_the_least_way_is_that_of_the_densest_run_of_bytes(
    drawn: list[tuple[int, int, int]], n_bytes: int, ready_at_ns: int
) -> None:
    slots = lower_bounds._slots(
        [TransmissionOpportunity(at, at + took, n) for at, took, n in drawn]
    )
    usable = [arrived for sent, arrived in byte_by_byte(slots) if sent >= ready_at_ns]
    runs = [usable[begin : begin + n_bytes] for begin in range(len(usable) - n_bytes + 1)]
    expected = min((run[-1] - sum(run) / n_bytes for run in runs if run), default=0.0)
    [found] = lower_bounds._least_gaps([TransmissionJob(ready_at_ns, n_bytes, 1)], slots)
    assert found == pytest.approx(expected)


@law(80)
@given(
    drawn=SLOTS,
    requested=st.lists(
        st.tuples(st.integers(0, 9), st.integers(1, 6), st.integers(0, 5)), max_size=4
    ),
)
def test_each_byte_of_a_slot_goes_to_what_weighs_most_a_byte_of_what_is_ready(
    drawn: list[tuple[int, int, int]], requested: list[tuple[int, int, int]]
) -> None:
    slots = lower_bounds._slots(
        [TransmissionOpportunity(at, at + took, n) for at, took, n in drawn]
    )
    left = [n_bytes for _, n_bytes, _ in requested]
    sums = [0] * len(requested)
    for sent_at_ns, arrived_at_ns in byte_by_byte(slots):
        ready = [n for n, each in enumerate(requested) if each[0] <= sent_at_ns and left[n]]
        if ready:
            densest = max(ready, key=lambda n: requested[n][2] / requested[n][1])
            left[densest] -= 1
            sums[densest] += arrived_at_ns
    found = lower_bounds._mean_arrivals([TransmissionJob(*each) for each in requested], slots)
    totals = [mean * each[1] for mean, each in zip(found, requested, strict=True)]
    weights = [Fraction(each[2], each[1]) for each in requested]
    # Of two that weigh the same a byte either may go first: the sum by weight is one.
    assert float(sum(map(float.__mul__, totals, map(float, weights)))) == pytest.approx(
        float(sum(n * weight for n, weight in zip(sums, weights, strict=True)))
    )


def test_a_response_without_a_byte_is_there_when_it_is_ready() -> None:
    slots = [TransmissionOpportunity(0, 10, 100), TransmissionOpportunity(5, 20, 100)]
    assert (
        lower_bound_over_links_ns([TransmissionJob(7, 0, 3), TransmissionJob(0, 100, 1)], slots)
        == (21 + 10) / 4
    )
