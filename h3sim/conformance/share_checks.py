"""Checks of what a scheduler claims of shares: in turns, in bytes, and after updates."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any, NamedTuple

from hypothesis import strategies as st

from h3sim.conformance.claims import ByteShares, WeightedShares
from h3sim.conformance.histories import PACKET_BYTES, Call, Event, Watched, valid_history
from h3sim.conformance.laws import BrokenLawError, Law, checks
from h3sim.conformance.search import for_all
from h3sim.errors import InputError, Problem
from h3sim.units import whole

if TYPE_CHECKING:
    from collections.abc import Callable

    from hypothesis import settings
    from hypothesis.strategies import SearchStrategy

    from h3sim.conformance.candidate import Candidate

__all__ = ["byte_shares", "check_updated_shares", "weighted_shares"]

_SHARED_TURNS = 150
"""How many turns shares are counted over, from one change to the next."""
_SIZES = st.lists(st.sampled_from([PACKET_BYTES, 100, 600, 1]), min_size=1, max_size=3)
"""How long the packets of a stream are, over and over."""


class _Join(NamedTuple):
    """A stream that joins, how long its packets are, and the turns until the next one does."""

    signal: Any
    sizes: list[int]
    n_turns: int


def _joins(
    candidate: Candidate, claim: WeightedShares | ByteShares, sizes: SearchStrategy[list[int]]
) -> SearchStrategy[list[_Join]]:
    """Return who joins."""
    signals = candidate.signals if claim.signals is None else claim.signals
    joins = st.builds(_Join, signals, sizes, st.sampled_from([0, 0, 1, 2, 30]))
    return st.lists(joins, min_size=2, max_size=6)


@checks(Law.WEIGHTED_SHARES)
def weighted_shares(candidate: Candidate, budget: settings) -> None:
    """See that streams share turns by weight; some join late."""
    for claim in candidate.claims_of(WeightedShares):
        _check_shares(candidate, claim, st.just([PACKET_BYTES]), budget)


@checks(Law.BYTE_SHARES)
def byte_shares(candidate: Candidate, budget: settings) -> None:
    """See that streams share bytes by weight, with packets of all lengths; some join late."""
    for claim in candidate.claims_of(ByteShares):
        _check_shares(candidate, claim, _SIZES, budget)


def _check_shares(
    candidate: Candidate,
    claim: WeightedShares | ByteShares,
    sizes: SearchStrategy[list[int]],
    budget: settings,
) -> None:
    def check(joins: list[_Join]) -> None:
        shares = _Shares(candidate.watched(), claim, claim.law)
        for number, join in enumerate(joins):
            shares.join(4 * number, join)
            shares.serve(join.n_turns)
        shares.serve(_SHARED_TURNS)

    for_all(check, _joins(candidate, claim, sizes), budget=budget)


class _Shares:
    """Counts what streams that share have had, since the last one joined or changed.

    That is turns, or bytes, as *claim* has it.
    """

    def __init__(self, watched: Watched, claim: WeightedShares | ByteShares, law: Law) -> None:
        self._watched = watched
        self._claim = type(claim).__name__
        self._weight: Callable[[Any], Any] = claim.weight
        self._tolerance = Fraction(claim.tolerance)
        self._in_bytes = isinstance(claim, ByteShares)
        self._unit = claim.turn_bytes if isinstance(claim, ByteShares) else claim.packets_per_turn
        self._law = law
        self._had: dict[int, int] = {}
        self._sizes: dict[int, list[int]] = {}
        self._n_packets: dict[int, int] = {}
        self._weights: dict[int, int] = {}
        # What a stream may be ahead or behind: a turn, at each weight that still has an effect.
        self._slack: dict[int, Fraction] = {}

    def join(self, stream_id: int, join: _Join) -> None:
        opened = Event(Call.OPEN, stream_id, join.signal)
        for event in valid_history([opened, Event(Call.ACTIVATE, stream_id)]):
            self._watched.take(event)
        self._sizes[stream_id] = join.sizes
        self._n_packets[stream_id] = 0
        self._weigh(stream_id, join.signal)
        self._begin()

    def update(self, stream_id: int, signal: Any) -> None:
        self._watched.take(Event(Call.UPDATE, stream_id, signal))
        before = self._slack[stream_id]
        self._weigh(stream_id, signal)
        self._slack[stream_id] += before
        self._begin()

    def serve(self, n_turns: int) -> None:
        for _ in range(n_turns):
            picked = self._watched.pick()
            if picked is None or picked not in self._had:
                return
            sizes = self._sizes[picked]
            n_bytes = sizes[self._n_packets[picked] % len(sizes)]
            self._n_packets[picked] += 1
            self._watched.take(Event(Call.CHARGE, picked, n_bytes=n_bytes))
            self._had[picked] += n_bytes if self._in_bytes else 1
            # Who was just served alone can have got ahead of others.
            self._compare(picked)

    def _weigh(self, stream_id: int, signal: Any) -> None:
        given = self._weight(signal)
        weight = whole(given)
        if weight is None or weight < 1:
            message = f"must return a whole number, at least 1, and returned {given!r} for {signal}"
            raise InputError([Problem(key="weight", message=message)], self._claim)
        self._weights[stream_id] = weight
        self._slack[stream_id] = Fraction(self._unit, weight)

    def _begin(self) -> None:
        self._had = dict.fromkeys(self._weights, 0)

    def _compare(self, picked: int) -> None:
        had, weight, slack = self._had[picked], self._weights[picked], self._slack[picked]
        for other, had_other in self._had.items():
            weight_other = self._weights[other]
            # Times both weights, to stay with whole numbers as long as all is well.
            ahead = had * weight_other - had_other * weight
            if ahead <= self._unit * (weight + weight_other):
                continue
            allowed = slack + self._slack[other] + self._tolerance * Fraction(had, weight)
            if ahead > allowed * weight * weight_other:
                what = "bytes" if self._in_bytes else "turns"
                sentence = (
                    f"stream {picked} of weight {weight} has had {had} {what}, "
                    f"stream {other} of weight {weight_other} only {had_other}"
                )
                raise self._watched.broken(self._law, sentence)


def check_updated_shares(candidate: Candidate, claim: WeightedShares, budget: settings) -> None:
    """See that shares are those of the last signals."""

    def check(joins: list[_Join], updates: list[tuple[int, Any]]) -> None:
        broken = _unshared(candidate, claim, joins, updates)
        # What is wrong without updates as well is not about them.
        if broken is not None and _unshared(candidate, claim, joins, []) is None:
            raise broken

    signals = candidate.signals if claim.signals is None else claim.signals
    updates = st.lists(st.tuples(st.integers(0, 5), signals), min_size=1, max_size=4)
    for_all(check, _joins(candidate, claim, st.just([PACKET_BYTES])), updates, budget=budget)


def _unshared(
    candidate: Candidate,
    claim: WeightedShares,
    joins: list[_Join],
    updates: list[tuple[int, Any]],
) -> BrokenLawError | None:
    """Return what is wrong with the shares of who joins, and is updated after some turns."""
    shares = _Shares(candidate.watched(), claim, Law.UPDATES_AT_ONCE)
    try:
        for number, join in enumerate(joins):
            shares.join(4 * number, join)
        shares.serve(joins[0].n_turns)
        for index, signal in updates:
            shares.update(4 * (index % len(joins)), signal)
        shares.serve(_SHARED_TURNS)
    except BrokenLawError as broken:
        if broken.law is not Law.UPDATES_AT_ONCE:
            raise
        return broken
    return None
