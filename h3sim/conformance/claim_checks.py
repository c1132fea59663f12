"""Checks of a scheduler's claims: order, waiting, updates, references and shares."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from hypothesis import strategies as st

from h3sim.conformance.call_sequences import (
    PACKET_BYTES,
    Call,
    Event,
    RecordingScheduler,
    valid_history,
    without,
)
from h3sim.conformance.laws import BrokenLawError, Law, NotCheckedError, checks
from h3sim.conformance.runner import check_all
from h3sim.conformance.subject import (
    BoundedWait,
    ByteShares,
    NeitherFlagStarves,
    NoStarvation,
    SameAs,
    StrictOrder,
    WeightedShares,
    eps_of,
)
from h3sim.errors import InputError, ValidationIssue, raised_words
from h3sim.units import as_integer

if TYPE_CHECKING:
    from collections.abc import Callable

    from hypothesis import settings
    from hypothesis.strategies import SearchStrategy

    from h3sim.conformance.call_sequences import History
    from h3sim.conformance.subject import Candidate
    from h3sim.schedulers import Scheduler
    from h3sim.signals import Eps


_SHARED_TURNS = 150
"""Number of quanta over which shares are counted, from one change to the next."""
_SIZES = st.lists(st.sampled_from([PACKET_BYTES, 100, 600, 1]), min_size=1, max_size=3)
"""Repeating lengths of the packets of a stream."""


class _Join(NamedTuple):
    """A stream that joins, how long its packets are, and the turns until the next one does.

    *closes* is the number of a stream that is closed after these turns, if another one is open.
    """

    signal: Any
    sizes: list[int]
    n_turns: int
    closes: int | None = None


def _joins(
    candidate: Candidate, claim: WeightedShares | ByteShares, sizes: SearchStrategy[list[int]]
) -> SearchStrategy[list[_Join]]:
    """Return who joins."""
    signals = candidate.signals if claim.signals is None else claim.signals
    closes = st.sampled_from([None, None, 0, 1])
    joins = st.builds(_Join, signals, sizes, st.sampled_from([0, 0, 1, 2, 30]), closes)
    return st.lists(joins, min_size=2, max_size=6)


@checks(Law.WEIGHTED_SHARES)
def weighted_shares(candidate: Candidate, budget: settings) -> None:
    """See that streams share turns by weight; some join late, some are closed."""
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
            if join.closes is not None:
                shares.leave(join.closes)
        shares.serve(_SHARED_TURNS)

    check_all(check, _joins(candidate, claim, sizes), budget=budget)


class _Shares:
    """Counts what streams that share have had, since the last one joined or changed.

    That is turns, or bytes, as *claim* has it.
    """

    def __init__(
        self, watched: RecordingScheduler, claim: WeightedShares | ByteShares, law: Law
    ) -> None:
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

    def leave(self, number: int) -> None:
        """Close one of the streams, unless it is the last."""
        if len(self._had) > 1:
            stream_id = list(self._had)[number % len(self._had)]
            self._watched.take(Event(Call.CLOSE, stream_id))
            for table in (self._had, self._sizes, self._n_packets, self._weights, self._slack):
                del table[stream_id]
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
        weight = as_integer(given)
        if weight is None or weight < 1:
            message = f"must return a whole number, at least 1, and returned {given!r} for {signal}"
            raise InputError.at("weight", message, self._claim)
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
    check_all(check, _joins(candidate, claim, st.just([PACKET_BYTES])), updates, budget=budget)


def _unshared(
    candidate: Candidate,
    claim: WeightedShares,
    joins: list[_Join],
    updates: list[tuple[int, Any]],
) -> BrokenLawError | None:
    """Return what is wrong with the shares of who joins, and is updated after some turns."""
    shares = _Shares(candidate.watched(), claim, Law.UPDATES_AT_ONCE)

    def play() -> None:
        for number, join in enumerate(joins):
            shares.join(4 * number, join)
        shares.serve(joins[0].n_turns)
        for index, signal in updates:
            shares.update(4 * (index % len(joins)), signal)
        shares.serve(_SHARED_TURNS)

    return _broken(Law.UPDATES_AT_ONCE, play)


def _broken(law: Law, play: Callable[[], object]) -> BrokenLawError | None:
    """Return how *play* breaks *law*, if it does; that it breaks another law is raised."""
    try:
        play()
    except BrokenLawError as broken:
        if broken.law is not law:
            raise
        return broken
    return None


ClaimT = TypeVar("ClaimT")


@checks(Law.STRICT_ORDER)
def strict_order(candidate: Candidate, budget: settings) -> None:
    """See that nobody overtakes a lower rank, in histories without updates."""
    without_updates = (Call.UPDATE, Call.CHARGE)
    _check_each(
        candidate.claims_of(StrictOrder),
        lambda claim: _check_order(candidate, claim, budget, leave_out=without_updates),
    )


def _check_each(claims: list[ClaimT], check: Callable[[ClaimT], None]) -> None:
    """Check all *claims*, and then say why one of them could not be looked at."""
    reasons = []
    for claim in claims:
        try:
            check(claim)
        except NotCheckedError as reason:
            reasons.append(reason)
    if reasons:
        raise reasons[0]


class _Counted:
    """A function of a claim, called *name*, that may return None for what is not claimed."""

    def __init__(self, name: str, function: Callable[..., Any]) -> None:
        self._name, self._function = name, function
        self._is_asked = self._has_answered = False

    def __call__(self, *arguments: Any) -> Any:
        """Return what the function returns."""
        answer = self._function(*arguments)
        self._is_asked = True
        self._has_answered = self._has_answered or answer is not None
        return answer

    def see(self) -> None:
        """See that something was claimed of anything.

        Raises:
            NotCheckedError: if it was not, as of a function that lacks its `return`.
        """
        if self._is_asked and not self._has_answered:
            raise NotCheckedError(f"{self._name} returns None whatever it is asked")


def _check_order(
    candidate: Candidate, claim: StrictOrder, budget: settings, leave_out: tuple[Call, ...]
) -> None:
    law = Law.STRICT_ORDER if Call.UPDATE in leave_out else Law.UPDATES_AT_ONCE
    rank = _Counted("rank", claim.rank)
    claim = replace(claim, rank=rank)

    def check(history: History) -> None:
        if law is Law.STRICT_ORDER:
            if (broken := _disorder(candidate.watched(), claim, history, law)) is not None:
                raise broken
            return
        for variant in (history, _updated_while_blocked(history)):
            broken = _disorder(candidate.watched(), claim, variant, law)
            plain = without(variant, Call.UPDATE)
            # What is wrong without updates as well is not about them.
            if broken is not None and not _disorder(candidate.watched(), claim, plain, law):
                raise broken

    check_all(check, candidate.scripts(claim.signals, leave_out=leave_out), budget=budget)
    rank.see()


def _updated_while_blocked(history: History) -> History:
    """Return the history with each stream blocked while it is updated, and active afterwards."""
    blocked: list[Event] = []
    for event in history:
        if event.call is Call.UPDATE and event.stream_id >= 0:
            away, back = (Event(c, event.stream_id) for c in (Call.DEACTIVATE, Call.ACTIVATE))
            blocked += [away, event, back]
        else:
            blocked.append(event)
    return tuple(blocked)


def _disorder(
    watched: RecordingScheduler, claim: StrictOrder, history: History, law: Law
) -> BrokenLawError | None:
    """Return what is wrong with the order of turns in *history*, and of what is left at its end."""
    turn = _Turn(claim.packets_per_turn)

    def look(picked: int | None) -> None:
        if picked is not None and picked in watched.active:
            broken = _overtaking(watched, claim, picked, law)
            if broken is None:
                turn.may_begin(picked)
            elif not turn.goes_on(picked):
                raise broken

    def play() -> None:
        watched.play(history, on_pick=look)
        while watched.active:
            picked = watched.turn(on_pick=look)
            if picked is None or picked not in watched.active:
                return
            watched.take(Event(Call.DEACTIVATE, picked))

    return _broken(law, play)


class _Turn:
    """Says whether a packet may belong to a turn that had begun rightly."""

    def __init__(self, packets: int) -> None:
        self._packets = packets
        self._stream_id: int | None = None
        self._left = 0

    def may_begin(self, picked: int) -> None:
        """Take each packet that nobody minds for the first of a turn.

        Turns may be shorter than they may be, and end where their stream leaves for a while: which
        packet was the first cannot be seen from outside.
        """
        self._stream_id, self._left = picked, self._packets - 1

    def goes_on(self, picked: int) -> bool:
        """Return whether a turn that has begun may still last."""
        self._left -= 1
        return picked == self._stream_id and self._left >= 0


def _overtaking(
    watched: RecordingScheduler, claim: StrictOrder, picked: int, law: Law
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


@checks(Law.NO_STARVATION)
def no_starvation(candidate: Candidate, budget: settings) -> None:
    """See that each active stream has its turn in time, while others come and go."""
    claims = [c for c in candidate.claims if isinstance(c, NoStarvation | NeitherFlagStarves)]
    if not claims:
        raise NotCheckedError("not claimed")
    for claim in claims:
        count: Any = _Waits if isinstance(claim, NoStarvation) else _FlagWaits
        _check_turns(candidate, claim, budget, partial(count, claim))


@checks(Law.BOUNDED_WAIT)
def bounded_wait(candidate: Candidate, budget: settings) -> None:
    """See that none has too many turns while another waits, and others come and go."""

    def check(claim: BoundedWait) -> None:
        turns = _Counted("turns", claim.turns)
        counted = replace(claim, turns=turns)
        count = partial(_Bypasses, counted, Law.BOUNDED_WAIT)
        _check_turns(candidate, counted, budget, count, leave_out=(Call.CHARGE, Call.UPDATE))
        turns.see()

    _check_each(candidate.claims_of(BoundedWait), check)


def _check_turns(
    candidate: Candidate,
    claim: NoStarvation | NeitherFlagStarves | BoundedWait,
    budget: settings,
    count: Callable[[RecordingScheduler], _Waits | _FlagWaits | _Bypasses],
    leave_out: tuple[Call, ...] = (Call.CHARGE,),
) -> None:
    """Show *count* all turns of histories, and of the streams that are left at the end."""

    def check(history: History) -> None:
        _count_turns(candidate.watched(), count, history)

    check_all(check, candidate.scripts(claim.signals, leave_out=leave_out), budget=budget)


def _count_turns(
    watched: RecordingScheduler,
    count: Callable[[RecordingScheduler], _Waits | _FlagWaits | _Bypasses],
    history: History,
) -> None:
    """Play *history* with packets of one size: who sends little may have many turns."""
    counter = count(watched)
    for event in history:
        same_size = [replace(event, n_bytes=PACKET_BYTES)]
        watched.play(same_size, on_pick=counter.look, after=counter.forget)
    # Whoever goes first would hide what the others do: it leaves when it has been seen for a while.
    while watched.active:
        served = {watched.turn(on_pick=counter.look) for _ in range(counter.n_turns_left)}
        leaving = [key for key in watched.active if key in served]
        if not leaving:
            return
        for key in leaving:
            watched.take(Event(Call.DEACTIVATE, key))
        counter.forget()


def _check_updated_waits(candidate: Candidate, claim: BoundedWait, budget: settings) -> None:
    """See that waits are those of the last signals."""
    count = partial(_Bypasses, claim, Law.UPDATES_AT_ONCE)

    def broken(history: History) -> BrokenLawError | None:
        return _broken(
            Law.UPDATES_AT_ONCE, lambda: _count_turns(candidate.watched(), count, history)
        )

    def check(history: History) -> None:
        for variant in (history, _updated_while_blocked(history)):
            found = broken(variant)
            # What is wrong without updates as well is not about them.
            if found is not None and broken(without(variant, Call.UPDATE)) is None:
                raise found

    check_all(check, candidate.scripts(claim.signals, leave_out=(Call.CHARGE,)), budget=budget)


class _Waits:
    """Counts the turns of all others since each active stream had its own."""

    def __init__(self, claim: NoStarvation, watched: RecordingScheduler) -> None:
        self._most = claim.rounds * claim.packets_per_turn
        self._watched = watched
        self._waits: dict[int, int] = {}
        self._n_streams = 1
        """The most streams that were active at a time."""

    @property
    def n_turns_left(self) -> int:
        """Number of quanta that show that no stream starves at the end."""
        return self._most * self._n_streams + 1

    def look(self, picked: int | None) -> None:
        """Take notice of a turn."""
        active, waits = self._watched.active, self._waits
        self._n_streams = max(self._n_streams, len(active))
        for key in active:
            waits[key] = 0 if key == picked else waits.get(key, 0) + 1
            if waits[key] > self._most * self._n_streams:
                sentence = (
                    f"stream {key} has been active for {waits[key]} turns of others, "
                    f"with at most {self._n_streams} streams at a time"
                )
                raise self._watched.broken(Law.NO_STARVATION, sentence)

    def forget(self) -> None:
        """Forget the waits of those that are not active any more."""
        for key in [key for key in self._waits if key not in self._watched.active]:
            del self._waits[key]


class _FlagWaits:
    """Counts for each urgency and flag the turns in a row of the other flag while it waits."""

    n_turns_left = 60

    def __init__(self, claim: NeitherFlagStarves, watched: RecordingScheduler) -> None:
        self._claim = claim
        self._watched = watched
        self._waits: dict[Eps, int] = {}
        self._n_streams = 1

    def look(self, picked: int | None) -> None:
        """Take notice of a turn."""
        active, signals = self._watched.active, self._watched.signals
        self._n_streams = max(self._n_streams, len(active))
        self.forget()
        if picked is None or picked not in active:
            return
        served = eps_of(signals[picked])
        self._waits.pop(served, None)
        other = replace(served, incremental=not served.incremental)
        waiting = [key for key in active if eps_of(signals[key]) == other]
        if not waiting or self._claim.incremental is served.incremental:
            return
        self._waits[other] = self._waits.get(other, 0) + 1
        claim = self._claim
        if self._waits[other] > claim.rounds * claim.packets_per_turn * self._n_streams:
            kinds = {True: "incremental", False: "non-incremental"}
            sentence = (
                f"{kinds[other.incremental]} stream {waiting[0]} waits for {self._waits[other]} "
                f"turns of {kinds[served.incremental]} ones of its urgency, "
                f"with at most {self._n_streams} streams at a time"
            )
            raise self._watched.broken(Law.NO_STARVATION, sentence)

    def forget(self) -> None:
        """Forget the waits of a kind of which nobody is active."""
        active = {eps_of(self._watched.signals[key]) for key in self._watched.active}
        for kind in [kind for kind in self._waits if kind not in active]:
            del self._waits[kind]


class _Bypasses:
    """Counts for each active stream how many turns each other one has had since its own."""

    n_turns_left = 40

    def __init__(self, claim: BoundedWait, law: Law, watched: RecordingScheduler) -> None:
        self._claim = claim
        self._law = law
        self._watched = watched
        self._signals: dict[int, Any] = {}
        self._turns: dict[int, dict[int, int]] = {}
        self._has_had_turn: dict[int, None] = {}
        """Active streams that have had a quantum since they became active."""

    def look(self, picked: int | None) -> None:
        """Take notice of a turn."""
        if picked is None or picked not in self._watched.active:
            return
        for waiting in self._watched.active:
            if waiting != picked:
                turns = self._turns.setdefault(waiting, {})
                turns[picked] = turns.get(picked, 0) + 1
                self._compare(waiting, picked, turns[picked])
        self._turns[picked] = {}
        self._has_had_turn[picked] = None

    def _compare(self, waiting: int, other: int, n_turns: int) -> None:
        claim, signals = self._claim, self._watched.signals
        given = claim.turns(signals[waiting], signals[other])
        if given is None:
            return
        allowed = as_integer(given)
        if allowed is None or allowed < 0:
            of = f"{signals[waiting]} and {signals[other]}"
            message = f"must return a whole number, or None, and returned {given!r} for {of}"
            raise InputError.at("turns", message, type(claim).__name__)
        joining = 0 if waiting in self._has_had_turn else claim.joining
        if n_turns > (allowed + joining) * claim.packets_per_turn:
            what = "packets" if claim.packets_per_turn > 1 else "turns"
            sentence = (
                f"stream {waiting} waits while stream {other} has {n_turns} {what}; "
                f"it may have {(allowed + joining) * claim.packets_per_turn}"
            )
            raise self._watched.broken(self._law, sentence)

    def forget(self) -> None:
        """Forget the waits of those that are not active any more, or have another signal."""
        for key in [key for key in self._turns if key not in self._watched.active]:
            del self._turns[key]
            self._has_had_turn.pop(key, None)
        signals = self._watched.signals
        if signals != self._signals:
            for key in [key for key in signals if self._signals.get(key) != signals[key]]:
                self._has_had_turn.pop(key, None)
                self._turns.pop(key, None)
                for turns in self._turns.values():
                    turns.pop(key, None)
            self._signals = {**signals}


@checks(Law.UPDATES_AT_ONCE)
def updates_at_once(candidate: Candidate, budget: settings) -> None:
    """See that order and shares are those of the last signals."""
    kinds = StrictOrder | WeightedShares | BoundedWait
    found = [claim for claim in candidate.claims if isinstance(claim, kinds)]
    followed = [claim for claim in found if claim.follows_updates]
    if not followed:
        raise NotCheckedError("neither an order, shares nor waits that follow updates are claimed")

    def check(claim: StrictOrder | WeightedShares | BoundedWait) -> None:
        if isinstance(claim, StrictOrder):
            _check_order(candidate, claim, budget, leave_out=(Call.CHARGE,))
        elif isinstance(claim, BoundedWait):
            _check_updated_waits(candidate, claim, budget)
        else:
            check_updated_shares(candidate, claim, budget)

    _check_each(followed, check)


@checks(Law.SAME_AS)
def same_as(candidate: Candidate, budget: settings) -> None:
    """See that the reference picks the same after every event."""
    for claim in candidate.claims_of(SameAs):
        _check_picks(candidate, claim, budget)


class _Reference(RecordingScheduler):
    """Reference that a scheduler is compared with: its own errors are mistakes in the claim."""

    def no_id(self, sentence: str) -> Exception:
        return self._error(sentence)

    def raised(self, what: str, error: BaseException) -> Exception:
        return self._error(f"{what} raised {raised_words(error)}")

    def _error(self, message: str) -> InputError:
        return InputError.at("reference", message, SameAs.__name__)


def _make_reference(reference: Candidate) -> Scheduler:
    """Return a new reference; its errors are those of the claim."""
    try:
        return reference.new()
    except InputError as error:
        problems = [
            ValidationIssue(key="reference", message=entry.message) for entry in error.problems
        ]
        raise InputError(problems, SameAs.__name__) from error


def _check_picks(candidate: Candidate, claim: SameAs, budget: settings) -> None:
    """Check that the candidate picks what the claim's reference picks, in every history tried."""
    reference = replace(candidate, factory=claim.reference)

    def check(history: History) -> None:
        watched, reference_run = candidate.watched(), _Reference(_make_reference(reference))
        for event in history:
            for _ in range(event.n_turns if event.call is Call.SERVE else 1):
                _advance(watched, reference_run, event, _agreed(watched, reference_run))
        # The streams that are left are served in the same order, too.
        while (picked := _agreed(watched, reference_run)) is not None and picked in watched.active:
            for call in (Call.CHARGE, Call.DEACTIVATE):
                _advance(watched, reference_run, Event(call, picked), picked)

    check_all(check, candidate.scripts(), budget=budget)


def _agreed(watched: RecordingScheduler, reference: RecordingScheduler) -> int | None:
    picked, expected = watched.pick(), reference.pick()
    if picked != expected:
        sentence = f"{picked} is picked, and {expected} by the reference"
        raise watched.broken(Law.SAME_AS, sentence)
    return picked


def _advance(
    watched: RecordingScheduler, reference: RecordingScheduler, event: Event, picked: int | None
) -> None:
    if event.call is Call.SERVE:
        if picked is None or picked not in watched.active:
            return
        event = Event(Call.CHARGE, picked, n_bytes=event.n_bytes)
    for each in (watched, reference):
        each.take(event)
