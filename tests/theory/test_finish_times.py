"""When each stream ends, from closed forms: round robin, fair queueing, one after the other.

A packet leaves every 10 ms from 10 ms on, so tick n is at 10 n ms; without delay it is delivered
then. All tolerances are stated; where none is, the equality is exact.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.effort import law
from tests.helpers import finished_ms, page_of, replay
from tests.property.runs import Case

TICK_MS = 10
WRR_WEIGHTS = {"document": 256, "script": 24, "font": 16, "image": 8}


def streams(n_packets: list[int], kinds: Any = ("document",)) -> list[Any]:
    """Return steps that ask for all streams at 0; the last kind is that of all the rest."""
    padded = [*kinds, *[kinds[-1]] * len(n_packets)]
    return [(0, kind, size) for kind, size in zip(padded, n_packets, strict=False)]


def ticks(load: Any) -> list[Any]:
    """Return the tick at which each stream ends, in the order of the streams."""
    return [at_ms / TICK_MS for at_ms in finished_ms(load).values()]


@law(40)
@given(st.integers(1, 9), st.integers(1, 20))
def test_equal_streams_in_round_robin_end_one_after_the_other_in_the_last_round(
    n: Any, k: Any
) -> None:
    load = replay(streams([k] * n), "rr", handshake=False)
    assert ticks(load) == [n * (k - 1) + i + 1 for i in range(n)]


@law(60)
@given(st.lists(st.integers(1, 20), min_size=1, max_size=9))
def test_a_stream_in_round_robin_ends_when_every_other_has_had_as_many_turns(sizes: Any) -> None:
    """Stream i of k_i packets ends after min(k_j, k_i) of those before it, one less behind it."""
    load = replay(streams(sizes), "rr", handshake=False)
    assert ticks(load) == [
        sum(min(other, own if j <= i else own - 1) for j, other in enumerate(sizes))
        for i, own in enumerate(sizes)
    ]


@law(40)
@given(st.lists(st.integers(1, 20), min_size=1, max_size=9))
def test_fifo_ends_each_stream_after_all_packets_before_it(sizes: Any) -> None:
    load = replay(streams(sizes), "fifo", handshake=False)
    assert ticks(load) == [sum(sizes[: i + 1]) for i in range(len(sizes))]


def fluid_finish(own: Any, sizes: Any, weights: Any) -> Any:
    """Return when stream *own* ends if all are served at once by weight, in ticks.

    In fluid fair queueing stream i has had w_i v of its k_i packets at virtual time v, as long as
    it lasts; it ends at v = k_i / w_i, when all have had the sum of min(k_j, w_j v).
    """
    end = Fraction(sizes[own], weights[own])
    return sum(
        min(Fraction(size), weight * end) for size, weight in zip(sizes, weights, strict=True)
    )


@law(80)
@given(
    st.lists(st.tuples(st.sampled_from(list(WRR_WEIGHTS)), st.integers(1, 120)), max_size=6),
    st.integers(1, 120),
)
def test_fair_queueing_ends_no_later_than_the_fluid_and_a_turn_of_each_other_sooner(
    others: Any, root: Any
) -> None:
    """Parekh and Gallager 1993, for packets of one size that are all there at the start."""
    kinds, sizes = ["document", *(kind for kind, _ in others)], [root, *(n for _, n in others)]
    weights = [WRR_WEIGHTS[kind] for kind in kinds]
    load = replay([(0, k, n) for k, n in zip(kinds, sizes, strict=True)], "wrr", handshake=False)
    for own, tick in enumerate(ticks(load)):
        sooner = fluid_finish(own, sizes, weights) - Fraction(tick)
        assert 0 <= sooner <= len(others), (own, sooner)


@law(60)
@given(st.lists(st.integers(0, 20_000), min_size=1, max_size=8), st.sampled_from([None, 100, 250]))
def test_the_byte_index_of_fifo_is_the_byte_weighted_mean_of_partial_sums(
    sizes: Any, sample_ms: float
) -> None:
    """A float holds the result to 1e-12 relative; sampling moves each end to the next sample."""
    resources = [{"id": "r0", "kind": "document", "bytes": 1 + sizes[0]}]
    at_once = {"at": "time", "delay_ms": 0}
    resources += [
        {"id": f"r{n}", "kind": "image", "bytes": size, "discovered": at_once}
        for n, size in enumerate(sizes[1:], 1)
    ]
    load = Case(page_of(*resources), "fifo", link={"handshake": False}).run()
    sizes = [entry["bytes"] for entry in resources]
    packets = [max(1, -(-size // 1400)) for size in sizes]
    ends = [TICK_MS * sum(packets[: n + 1]) for n in range(len(packets))]
    if sample_ms is not None:
        ends = [-(-end // sample_ms) * sample_ms for end in ends]
    mean = Fraction(sum(size * end for size, end in zip(sizes, ends, strict=True)), sum(sizes))
    assert load.byte_index("all", sample_ms=sample_ms) == pytest.approx(float(mean), rel=1e-12)


@law(40)
@given(
    st.sampled_from([("quic", 1), ("tcp", 2)]),
    st.integers(0, 300),
    st.integers(1, 9),
    st.booleans(),
)
def test_a_single_resource_takes_the_handshake_its_ticks_and_a_round_trip(
    transport: Any, rtt_ms: float, n_packets: int, handshake: Any
) -> None:
    name, handshake_rtts = transport
    load = replay(
        [(0, "document", n_packets)], "rr", transport=name, rtt_ms=rtt_ms, handshake=handshake
    )
    requested_ms = handshake_rtts * rtt_ms if handshake else 0
    arrived_ms = requested_ms + rtt_ms / 2
    first_tick = max(1, -(-arrived_ms // TICK_MS))
    (timing,) = load.timings
    assert timing.requested_ms == requested_ms
    assert timing.first_byte_ms == first_tick * TICK_MS + rtt_ms / 2
    assert timing.finished_ms == (first_tick + n_packets - 1) * TICK_MS + rtt_ms / 2
