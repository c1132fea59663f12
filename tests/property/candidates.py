"""What each mechanism claims, and so each scheme that runs on it."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

from hypothesis import strategies as st

from h3sim.conformance import (
    BoundedWait,
    ByteShares,
    Candidate,
    FreesMemory,
    Law,
    NoStarvation,
    ReferenceBuckets,
    ReferenceOrder,
    ReferenceRounds,
    ReferenceStrict,
    ReferenceTree,
    RoundRobinInUrgency,
    SameAs,
    StrictOrder,
    UrgencyOrder,
    WeightedShares,
    scheme_scripts,
    signals,
)
from h3sim.conformance.strategies import h2_signals
from h3sim.schedulers import Mixed, Weights
from h3sim.schemes import SchedulerKind
from h3sim.signals import BucketPriority, Eps, H2Priority, Rank, StrictPriority


def flat(low: Any, high: Any) -> Any:
    """Return places under the root, with weights from *low* to *high*."""
    return st.builds(H2Priority, weight=st.integers(low, high))


def by_id(stream_id: int, signal: Any) -> Any:
    return stream_id


def by_bucket(stream_id: int, signal: Any) -> Any:
    """The higher bucket first, and in each level 3 before the others."""
    return -signal.bucket, signal.level != 3


def by_rank(stream_id: int, signal: Any) -> Any:
    return signal.value


def by_strict(stream_id: int, signal: Any) -> Any:
    return -signal.strict


def by_positive_weight(stream_id: int, signal: Any) -> Any:
    """0 behind all, one at a time."""
    return (1, 0) if signal.weight else (2, stream_id)


def by_zero_weight(stream_id: int, signal: Any) -> Any:
    """255 before all and 0 behind all, each one at a time."""
    return {255: (0, stream_id), 0: (2, stream_id)}.get(signal.weight, (1, 0))


def weight_of(signal: Any) -> Any:
    return signal.weight


def one_each(signal: Any) -> int:
    return 1


def one_turn(waiting: Any, other: Any) -> int:
    return 1


def two_turns(waiting: Any, other: Any) -> Any:
    """In a list of rounds, who joins one that is on has a turn in it, and goes first by its id."""
    return None if RoundRobinInUrgency().turns(waiting, other) is None else 2


def turns_by_weight(waiting: Any, other: Any) -> Any:
    """Fair queueing: a turn costs 1 / weight of virtual time."""
    return other.weight // waiting.weight + 1


def turns_by_rounded_weight(waiting: Any, other: Any) -> Any:
    """Virtual time that is rounded may let one more pass, and another after it."""
    return turns_by_weight(waiting, other) + 2


def order_of_ids() -> Any:
    return ReferenceOrder(by_id)


ZERO_SIGNALS = h2_signals(min_weight=0, max_weight=255)
UNGROUPED = st.builds(
    StrictPriority, weight=st.integers(1, 256), strict=st.sampled_from([0, 16, 17, 255])
)
ONE_STRICT = st.builds(StrictPriority, weight=st.integers(1, 256))
UP_TO_255 = st.builds(H2Priority, weight=st.sampled_from([255, 254, 128])) | flat(1, 255)
RANKS = signals(Rank)
SHARED_URGENCY = st.just(Eps(urgency=3, incremental=True))
SHARED_BUCKET = st.just(BucketPriority(bucket=31, level=1))

CYCLES = WeightedShares(weight=weight_of, signals=flat(1, 256), tolerance=0.05)
"""Whole cycles round."""
BYTE_CYCLES = ByteShares(weight=weight_of, signals=flat(1, 256), tolerance=0.05)
ROUNDED_WAIT = BoundedWait(turns=turns_by_rounded_weight, signals=flat(1, 256))
CALENDAR_WAIT = BoundedWait(turns=turns_by_rounded_weight, signals=flat(1, 63))
"""Above 63 a turn costs less than a slot: who leaves and comes back in the slot gains a turn."""
NO_STARVATION = NoStarvation(rounds=8, signals=flat(8, 32))
TURN_BY_TURN = BoundedWait(turns=one_turn, joining=1)


def fair_queueing(signals: Any) -> Any:
    """Return what exact fair queueing claims of streams with these signals."""
    return (
        WeightedShares(weight=weight_of, signals=signals),
        ByteShares(weight=weight_of, signals=signals),
        BoundedWait(turns=turns_by_weight, signals=signals),
    )


CLAIMS: dict[SchedulerKind, dict[str, Any]] = {
    SchedulerKind.FIFO: {"claims": (StrictOrder(rank=by_id), SameAs(reference=order_of_ids))},
    SchedulerKind.ROUND_ROBIN: {
        "claims": (
            WeightedShares(weight=one_each),
            NoStarvation(rounds=2),
            TURN_BY_TURN,
            SameAs(reference=ReferenceRounds),
        )
    },
    # Without losses, of which the laws tell nothing, it is round robin by packets.
    SchedulerKind.ADAPTIVE_ROUND_ROBIN: {
        "claims": (
            WeightedShares(weight=one_each),
            NoStarvation(rounds=2),
            TURN_BY_TURN,
            SameAs(reference=ReferenceRounds),
        )
    },
    SchedulerKind.BUCKETS: {
        "claims": (
            StrictOrder(rank=by_bucket),
            WeightedShares(weight=one_each, signals=SHARED_BUCKET),
            NoStarvation(rounds=2, signals=SHARED_BUCKET),
            replace(TURN_BY_TURN, signals=SHARED_BUCKET),
            SameAs(reference=ReferenceBuckets),
        ),
        "signals": signals(BucketPriority),
    },
    SchedulerKind.TREE: {
        "claims": (
            *fair_queueing(flat(1, 256)),
            NoStarvation(rounds=8, signals=flat(8, 32)),
            SameAs(reference=ReferenceTree),
        ),
        "placeholders": 3,
    },
    SchedulerKind.ZERO_TREE: {
        "claims": (
            StrictOrder(rank=by_zero_weight, signals=flat(0, 255)),
            *fair_queueing(flat(1, 254)),
            NoStarvation(rounds=8, signals=flat(8, 32)),
            SameAs(reference=partial(ReferenceTree, weights=Weights.ZERO)),
        ),
        "signals": ZERO_SIGNALS,
        "placeholders": 3,
    },
    SchedulerKind.ZERO_LAST_TREE: {
        "claims": (
            StrictOrder(rank=by_positive_weight, signals=flat(0, 255)),
            *fair_queueing(UP_TO_255),
            NoStarvation(rounds=8, signals=flat(8, 32)),
            SameAs(reference=partial(ReferenceTree, weights=Weights.ZERO_LAST)),
        ),
        "signals": ZERO_SIGNALS,
        "placeholders": 3,
    },
    # Times that have become infinite say nothing of shares: see `test_quicker_laws.py`.
    SchedulerKind.QUICKER_ZERO_TREE: {
        "claims": (StrictOrder(rank=by_zero_weight, signals=flat(0, 255)),),
        "signals": ZERO_SIGNALS,
        "placeholders": 3,
    },
    SchedulerKind.STRICT: {
        "claims": (
            StrictOrder(rank=by_strict, signals=UNGROUPED),
            *fair_queueing(ONE_STRICT),
            NoStarvation(rounds=2, signals=st.just(StrictPriority())),
            SameAs(reference=ReferenceStrict),
        ),
        "signals": signals(StrictPriority),
        "placeholders": 3,
    },
    SchedulerKind.EPS: {
        "claims": (
            UrgencyOrder(),
            RoundRobinInUrgency(),
            WeightedShares(weight=one_each, signals=SHARED_URGENCY),
            NoStarvation(rounds=2, signals=SHARED_URGENCY),
        ),
        "signals": signals(Eps),
    },
    SchedulerKind.EPS_RINGS: {"claims": (UrgencyOrder(),), "signals": signals(Eps)},
    SchedulerKind.EPS_BYTES: {
        "claims": (UrgencyOrder(), NoStarvation(rounds=4, signals=SHARED_URGENCY)),
        "signals": signals(Eps),
    },
    SchedulerKind.RANKS: {"claims": (StrictOrder(rank=by_rank),), "signals": RANKS},
    # It keeps up to 100 streams that were closed, and 100 that are idle.
    SchedulerKind.NGHTTP2_TREE: {
        "claims": (CYCLES, BYTE_CYCLES, NO_STARVATION, ROUNDED_WAIT, FreesMemory(keeps=200)),
        "placeholders": 3,
    },
    # What slot a stream joins in depends on where the calendar stands, so no bound on shares.
    SchedulerKind.H2O_CALENDAR: {"claims": (NO_STARVATION, CALENDAR_WAIT), "placeholders": 3},
    # A stream that comes late has few points, and goes alone until it has as many as others.
    SchedulerKind.ATS_HEAP: {
        "placeholders": 3,
        "skip": {Law.NO_LASTING_DEBT: "a stream that comes late has few points"},
    },
    SchedulerKind.NGINX_QUEUE: {
        "claims": (FreesMemory(keeps=32),),
        "placeholders": 3,
        "skip": {Law.NO_STARVATION: "equal responses go one after the other"},
    },
}
"""By mechanism; one that is not here is held to what holds for every scheduler."""


def claimed(mechanism: Any, factory: Any) -> Any:
    """Return *factory* as a candidate with the claims of *mechanism*."""
    return Candidate(factory=factory, **CLAIMS.get(mechanism, {}))


def candidate_of_kind(mechanism: Any) -> Any:
    factory = partial(mechanism.make, turn_bytes=1400)
    return replace(claimed(mechanism, factory), name=mechanism.value)


def in_turns_of(packets: Any, claim: Any) -> Any:
    """Return what is left of a claim where a turn has several packets, None for nothing."""
    if isinstance(claim, SameAs | ByteShares):
        return None
    return replace(claim, packets_per_turn=packets)


def in_one_list(claim: Any) -> Any:
    """Return what is left of a claim where all of an urgency stand in one list of rounds."""
    if not isinstance(claim, RoundRobinInUrgency):
        return claim
    # A stream that pauses after each of its turns goes first again and again.
    return replace(claim, turns=two_turns, pauses=False)


def candidate_of_scheme(scheme: Any) -> Any:
    """Return the scheme's scheduler, told what the scheme's clients say."""
    candidate = claimed(scheme.mechanism, partial(scheme.make_scheduler, turn_bytes=1400))
    claims = candidate.claims
    if scheme.turn is not None:
        packets = scheme.turn.packets
        if scheme.turn.size_bytes is not None:
            packets = -(-scheme.turn.size_bytes // 1400)
        claims = filter(None, (in_turns_of(packets, claim) for claim in claims))
    if scheme.mixed is Mixed.SHARED_LIST:
        claims = map(in_one_list, claims)
    histories = scheme_scripts(scheme)
    return replace(candidate, claims=tuple(claims), histories=histories, name=scheme.name)
