"""Checks of what a scheduler claims: order, shares, no starvation, updates, a reference."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from hypothesis import strategies as st

from h3sim.conformance.claims import NoStarvation, SameAs, StrictOrder, WeightedShares
from h3sim.conformance.histories import PACKET_BYTES, Call, Event, Watched, valid_history, without
from h3sim.conformance.laws import BrokenLawError, Law, NotCheckedError
from h3sim.conformance.search import for_all

if TYPE_CHECKING:
    from collections.abc import Callable

    from hypothesis import settings
    from hypothesis.strategies import SearchStrategy

    from h3sim.conformance.candidate import Candidate
    from h3sim.conformance.histories import History

__all__ = ["no_starvation", "same_as", "strict_order", "updates_at_once", "weighted_shares"]

_NOT_CLAIMED = "not claimed"
_SHARED_TURNS = 150
"""How many turns shares are counted over, from one change to the next."""


def strict_order(candidate: Candidate, budget: settings) -> None:
    """See that nobody overtakes a lower rank, in histories without updates."""
    claim = candidate.claim(StrictOrder)
    if claim is None:
        raise NotCheckedError(_NOT_CLAIMED)
    _check_order(candidate, claim, budget, leave_out=(Call.UPDATE, Call.CHARGE))


def _check_order(
    candidate: Candidate, claim: StrictOrder, budget: settings, leave_out: tuple[Call, ...]
) -> None:
    law = Law.STRICT_ORDER if Call.UPDATE in leave_out else Law.UPDATES_AT_ONCE

    def check(history: History) -> None:
        broken = _disorder(candidate.watched(), claim, history, law)
        if broken is None:
            return
        plain = without(history, Call.UPDATE)
        # What is wrong without updates as well is not about them.
        if law is Law.STRICT_ORDER or not _disorder(candidate.watched(), claim, plain, law):
            raise broken

    for_all(check, candidate.scripts(claim.signals, leave_out=leave_out), budget=budget)


def _disorder(
    watched: Watched, claim: StrictOrder, history: History, law: Law
) -> BrokenLawError | None:
    """Return what is wrong with the order of turns in *history*, and of what is left at its end."""
    turn = _Turn(claim.packets_per_turn)

    def look(picked: int | None) -> None:
        if picked is not None and picked in watched.active and not turn.goes_on(picked):
            broken = _overtaking(watched, claim, picked, law)
            if broken is not None:
                raise broken

    try:
        watched.play(history, on_pick=look)
        while watched.active:
            picked = watched.turn(on_pick=look)
            if picked is None or picked not in watched.active:
                return None
            watched.take(Event(Call.DEACTIVATE, picked))
    except BrokenLawError as broken:
        if broken.law is not law:
            raise
        return broken
    return None


class _Turn:
    """Says whether a packet belongs to a turn that had begun before."""

    def __init__(self, packets: int) -> None:
        self._packets = packets
        self._of: int | None = None
        self._left = 0

    def goes_on(self, picked: int) -> bool:
        if picked == self._of and self._left:
            self._left -= 1
            return True
        self._of, self._left = picked, self._packets - 1
        return False


def _overtaking(
    watched: Watched, claim: StrictOrder, picked: int, law: Law
) -> BrokenLawError | None:
    ranks = {key: claim.rank(key, watched.signals[key]) for key in watched.active}
    if ranks[picked] is None:
        return None
    lower = [key for key, rank in ranks.items() if rank is not None and rank < ranks[picked]]
    if not lower:
        return None
    sentence = (
        f"stream {picked} of rank {ranks[picked]} is picked "
        f"before stream {lower[0]} of rank {ranks[lower[0]]}"
    )
    return watched.broken(law, sentence)


def weighted_shares(candidate: Candidate, budget: settings) -> None:
    """See that streams share by weight; some join late."""
    claim = candidate.claim(WeightedShares)
    if claim is None:
        raise NotCheckedError(_NOT_CLAIMED)

    def check(joins: list[tuple[Any, int]]) -> None:
        shares = _Shares(candidate.watched(), claim, Law.WEIGHTED_SHARES)
        for number, (signal, n_turns) in enumerate(joins):
            shares.join(4 * number, signal)
            shares.serve(n_turns)
        shares.serve(_SHARED_TURNS)

    for_all(check, _joins(candidate, claim), budget=budget)


def _joins(candidate: Candidate, claim: WeightedShares) -> SearchStrategy[list[tuple[Any, int]]]:
    """Return who joins, each with the number of turns until the next."""
    signals = candidate.signals if claim.signals is None else claim.signals
    pairs = st.tuples(signals, st.sampled_from([0, 0, 1, 2, 30]))
    return st.lists(pairs, min_size=2, max_size=6)


class _Shares:
    """Counts turns of streams that share, since the last one joined or changed."""

    def __init__(self, watched: Watched, claim: WeightedShares, law: Law) -> None:
        self._watched = watched
        self._claim = claim
        self._law = law
        self._turns: dict[int, int] = {}
        self._weights: dict[int, int] = {}
        # What a stream may be ahead or behind: a turn, at each weight that still has an effect.
        self._slack: dict[int, Fraction] = {}

    def join(self, stream_id: int, signal: Any) -> None:
        opened = Event(Call.OPEN, stream_id, signal)
        for event in valid_history([opened, Event(Call.ACTIVATE, stream_id)]):
            self._watched.take(event)
        self._weigh(stream_id, signal)
        self._begin()

    def update(self, stream_id: int, signal: Any) -> None:
        self._watched.take(Event(Call.UPDATE, stream_id, signal))
        before = self._slack[stream_id]
        self._weigh(stream_id, signal)
        self._slack[stream_id] += before
        self._begin()

    def serve(self, n_turns: int) -> None:
        for _ in range(n_turns):
            picked = self._watched.turn()
            if picked is None or picked not in self._turns:
                return
            self._turns[picked] += 1
            self._compare(picked)

    def _weigh(self, stream_id: int, signal: Any) -> None:
        self._weights[stream_id] = weight = self._claim.weight(signal)
        self._slack[stream_id] = Fraction(self._claim.packets_per_turn, weight)

    def _begin(self) -> None:
        self._turns = dict.fromkeys(self._weights, 0)

    def _compare(self, picked: int) -> None:
        n_picked, weight, slack = self._turns[picked], self._weights[picked], self._slack[picked]
        for other, n_other in self._turns.items():
            weight_other = self._weights[other]
            # Times both weights, to stay with whole numbers as long as all is well.
            ahead = n_picked * weight_other - n_other * weight
            if ahead <= weight + weight_other:
                continue
            allowed = slack + self._slack[other]
            allowed += Fraction(self._claim.tolerance) * Fraction(n_picked, weight)
            if ahead > allowed * weight * weight_other:
                sentence = (
                    f"stream {picked} of weight {weight} has had {n_picked} turns, "
                    f"stream {other} of weight {weight_other} only {n_other}"
                )
                raise self._watched.broken(self._law, sentence)


def no_starvation(candidate: Candidate, budget: settings) -> None:
    """See that each active stream has its turn in time, while others come and go."""
    claim = candidate.claim(NoStarvation)
    if claim is None:
        raise NotCheckedError(_NOT_CLAIMED)

    def check(history: History) -> None:
        watched = candidate.watched()
        waits: dict[int, int] = {}
        most = 1

        def look(picked: int | None) -> None:
            nonlocal most
            most = max(most, len(watched.active))
            for key in watched.active:
                waits[key] = 0 if key == picked else waits.get(key, 0) + 1
                if waits[key] > claim.rounds * claim.packets_per_turn * most:
                    sentence = (
                        f"stream {key} has been active for {waits[key]} turns of others, "
                        f"with at most {most} streams at a time"
                    )
                    raise watched.broken(Law.NO_STARVATION, sentence)

        def forget() -> None:
            for key in [key for key in waits if key not in watched.active]:
                del waits[key]

        for event in history:
            # Packets of one size: who sends little may have many turns.
            watched.play([replace(event, n_bytes=PACKET_BYTES)], on_pick=look, after=forget)
        for _ in range(claim.rounds * claim.packets_per_turn * most + 1):
            watched.turn(on_pick=look)

    scripts = candidate.scripts(claim.signals, leave_out=(Call.CHARGE,))
    for_all(check, scripts, budget=budget)


def updates_at_once(candidate: Candidate, budget: settings) -> None:
    """See that order and shares are those of the last signals."""
    order, shares = candidate.claim(StrictOrder), candidate.claim(WeightedShares)
    checks: list[Callable[[], None]] = []
    if order is not None and order.follows_updates:
        checks.append(lambda: _check_order(candidate, order, budget, leave_out=(Call.CHARGE,)))
    if shares is not None and shares.follows_updates:
        checks.append(lambda: _check_updated_shares(candidate, shares, budget))
    if not checks:
        raise NotCheckedError("neither an order nor shares that follow updates are claimed")
    for check in checks:
        check()


def _check_updated_shares(candidate: Candidate, claim: WeightedShares, budget: settings) -> None:
    def check(joins: list[tuple[Any, int]], updates: list[tuple[int, Any]]) -> None:
        broken = _unshared(candidate, claim, joins, updates)
        # What is wrong without updates as well is not about them.
        if broken is not None and _unshared(candidate, claim, joins, []) is None:
            raise broken

    signals = candidate.signals if claim.signals is None else claim.signals
    updates = st.lists(st.tuples(st.integers(0, 5), signals), min_size=1, max_size=4)
    for_all(check, _joins(candidate, claim), updates, budget=budget)


def _unshared(
    candidate: Candidate,
    claim: WeightedShares,
    joins: list[tuple[Any, int]],
    updates: list[tuple[int, Any]],
) -> BrokenLawError | None:
    """Return what is wrong with the shares of who joins, and is updated after some turns."""
    shares = _Shares(candidate.watched(), claim, Law.UPDATES_AT_ONCE)
    try:
        for number, (signal, _) in enumerate(joins):
            shares.join(4 * number, signal)
        shares.serve(joins[0][1])
        for place, signal in updates:
            shares.update(4 * (place % len(joins)), signal)
        shares.serve(_SHARED_TURNS)
    except BrokenLawError as broken:
        if broken.law is not Law.UPDATES_AT_ONCE:
            raise
        return broken
    return None


def same_as(candidate: Candidate, budget: settings) -> None:
    """See that the reference picks the same after every event."""
    claim = candidate.claim(SameAs)
    if claim is None:
        raise NotCheckedError(_NOT_CLAIMED)

    def check(history: History) -> None:
        watched, reference = candidate.watched(), Watched(claim.reference())
        for event in history:
            for _ in range(event.n_turns if event.call is Call.SERVE else 1):
                _advance(watched, reference, event, _agreed(watched, reference))
        # Whoever is left over goes in the same order, too.
        while (picked := _agreed(watched, reference)) is not None and picked in watched.active:
            for call in (Call.CHARGE, Call.DEACTIVATE):
                _advance(watched, reference, Event(call, picked), picked)

    for_all(check, candidate.scripts(), budget=budget)


def _agreed(watched: Watched, reference: Watched) -> int | None:
    picked, expected = watched.pick(), reference.pick()
    if picked != expected:
        sentence = f"{picked} is picked, and {expected} by the reference"
        raise watched.broken(Law.SAME_AS, sentence)
    return picked


def _advance(watched: Watched, reference: Watched, event: Event, picked: int | None) -> None:
    if event.call is Call.SERVE:
        if picked is None or picked not in watched.active:
            return
        event = Event(Call.CHARGE, picked, n_bytes=event.n_bytes)
    for each in (watched, reference):
        each.take(event)


CHECKS: dict[Law, Callable[[Candidate, settings], None]] = {
    Law.STRICT_ORDER: strict_order,
    Law.WEIGHTED_SHARES: weighted_shares,
    Law.NO_STARVATION: no_starvation,
    Law.UPDATES_AT_ONCE: updates_at_once,
    Law.SAME_AS: same_as,
}
