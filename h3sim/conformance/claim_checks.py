"""Checks of a scheduler's claims: order, waiting, updates, references and shares."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from h3sim.conformance.call_sequences import (
    PACKET_BYTES,
    Call,
    Event,
    RecordingScheduler,
    without,
)
from h3sim.conformance.laws import (
    BrokenLawError,
    Law,
    NotCheckedError,
)
from h3sim.conformance.runner import checks, search
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
from h3sim.conformance.trials import built_in_starvation, built_in_updates
from h3sim.values.constants import STREAM_ID_STEP
from h3sim.values.errors import InputError, ValidationIssue, raised_words
from h3sim.values.units import as_integer

if TYPE_CHECKING:
    from collections.abc import Callable

    from hypothesis import settings
    from hypothesis.strategies import SearchStrategy

    from h3sim.conformance.call_sequences import History
    from h3sim.conformance.subject import Candidate
    from h3sim.schedulers import Scheduler
    from h3sim.signals import Eps


_N_COUNTED_TURNS = 150
"""Turns for which shares are counted after the last change."""
_MOST_SHARING = 8
"""The most streams that share in a history: with more, shares show only after many turns."""
_PACKET_SIZES = ((PACKET_BYTES,), (100,), (PACKET_BYTES, 600, 1), (600,))
"""Repeating lengths of the packets of a stream, by its number."""


@checks(Law.WEIGHTED_SHARES)
def weighted_shares(candidate: Candidate, budget: settings) -> None:
    """Check that streams share turns by weight; some join late, pause or are closed."""
    for claim in candidate.claims_of(WeightedShares):
        _check_shares(candidate, claim, budget)


@checks(Law.BYTE_SHARES)
def byte_shares(candidate: Candidate, budget: settings) -> None:
    """Check that streams share bytes by weight, with packets of all sizes."""
    for claim in candidate.claims_of(ByteShares):
        _check_shares(candidate, claim, budget)


def _check_shares(
    candidate: Candidate, claim: WeightedShares | ByteShares, budget: settings
) -> None:
    """Check the shares in histories without updates; charges of others count as bytes."""
    leave_out = (Call.UPDATE,) if isinstance(claim, ByteShares) else (Call.UPDATE, Call.CHARGE)

    def check(history: History) -> None:
        _ShareCounter(candidate.new_recording(), claim, claim.law).play(history)

    histories = candidate.histories_of(
        claim.law,
        budget,
        signals=_signals_of(candidate, claim),
        leave_out=leave_out,
        most_streams=_MOST_SHARING,
    )
    search(check, histories, budget=budget)


def _signals_of(candidate: Candidate, claim: Any) -> SearchStrategy[Any] | None:
    return candidate.signals if claim.signals is None else claim.signals


class _ShareCounter:
    """Counts the turns or bytes of active streams since one last joined, left or was updated.

    Turns are counted for `WeightedShares`, and bytes for `ByteShares`.
    """

    def __init__(
        self, recording: RecordingScheduler, claim: WeightedShares | ByteShares, law: Law
    ) -> None:
        self._recording = recording
        self._claim = type(claim).__name__
        self._weight: Callable[[Any], Any] = claim.weight
        self._tolerance = Fraction(claim.tolerance)
        self._in_bytes = isinstance(claim, ByteShares)
        self._unit = claim.turn_bytes if isinstance(claim, ByteShares) else claim.packets_per_turn
        self._round = claim.quantum_bytes if isinstance(claim, ByteShares) else 0
        self._law = law
        self._counts: dict[int, int] = {}
        """Turns or bytes of each active stream."""
        self._n_packets: dict[int, int] = {}
        """Packets of each open stream."""
        self._weights: dict[int, int] = {}
        self._charged = self._debt = Fraction(0)
        """Bytes by weight that were charged without a turn, in this period and before it."""
        self._slack: dict[int, Fraction] = {}
        """Allowed deviation of each stream: a turn by each weight that still has an effect."""

    def play(self, history: History) -> None:
        """Play a history, and give turns after it."""
        for event in history:
            if event.call is Call.SERVE:
                self._serve(event.n_turns)
                continue
            self._recording.take(event)
            stream_id = event.stream_id
            match event.call:
                case Call.OPEN:
                    self._n_packets[stream_id] = 0
                    self._slack[stream_id] = Fraction(0)
                    self._set_weight(stream_id, event.signal)
                case Call.UPDATE:
                    self._set_weight(stream_id, event.signal)
                case Call.CHARGE:
                    # It was sent, too: the stream is not picked until others have as much.
                    if self._in_bytes and stream_id in self._counts:
                        self._counts[stream_id] += event.n_bytes
                        # Those that join are behind it, and so up to a turn behind others.
                        charged = event.n_bytes + self._unit
                        self._charged += Fraction(charged, self._weights[stream_id])
                    continue
            # Others may still have to catch up with what was charged.
            self._debt += self._charged
            self._charged = Fraction(0)
            self._counts = dict.fromkeys(self._recording.active, 0)
        # Weights that last for some rounds: the sum of all is a round.
        n_rounds = 4 * sum(self._weights[key] for key in self._counts) * (self._round > 0)
        self._serve(max(_N_COUNTED_TURNS, min(n_rounds, 10 * _N_COUNTED_TURNS)))

    def _serve(self, n_turns: int) -> None:
        """Give turns, and compare shares after each."""
        for _ in range(n_turns):
            picked = self._recording.pick()
            if picked is None or picked not in self._counts:
                return
            sizes = _PACKET_SIZES[picked // STREAM_ID_STEP % len(_PACKET_SIZES)]
            n_bytes = sizes[self._n_packets[picked] % len(sizes)] if self._in_bytes else None
            self._n_packets[picked] += 1
            event = Event(Call.CHARGE, picked, n_bytes=n_bytes or PACKET_BYTES)
            self._recording.take(event)
            self._counts[picked] += n_bytes or 1
            # Only the stream that was just served can have got ahead of others.
            self._compare(picked)

    def _set_weight(self, stream_id: int, signal: Any) -> None:
        value = self._weight(signal)
        weight = as_integer(value)
        if weight is None or weight < 1:
            message = f"must return a whole number, at least 1, and returned {value!r} for {signal}"
            raise InputError.at("weight", message, self._claim)
        self._weights[stream_id] = weight
        # A former weight may still have an effect.
        self._slack[stream_id] += Fraction(self._unit, weight)

    def _compare(self, picked: int) -> None:
        """Compare the count of a stream with those of all others."""
        count, weight, slack = self._counts[picked], self._weights[picked], self._slack[picked]
        for other, other_count in self._counts.items():
            other_weight = self._weights[other]
            # Multiplied by both weights: whole numbers are quick, and mostly decide.
            lead = count * other_weight - other_count * weight
            if lead <= self._unit * (weight + other_weight):
                continue
            allowed = slack + self._slack[other] + self._tolerance * Fraction(count, weight)
            allowed += self._round + self._debt
            if lead > allowed * weight * other_weight:
                unit = "bytes" if self._in_bytes else "turns"
                sentence = (
                    f"stream {picked} of weight {weight} has had {count} {unit}, "
                    f"stream {other} of weight {other_weight} only {other_count}"
                )
                raise self._recording.broken(self._law, sentence, kept=self._kept(picked, other))

    def _kept(self, one: int, other: int) -> str:
        """Return what the claim demands of the turns of this period; empty for bytes."""
        if self._in_bytes:
            return ""
        picks = f"picks[-{sum(self._counts.values())}:]"
        shares = " - ".join(f"{picks}.count({key}) / {self._weights[key]}" for key in (one, other))
        tolerance = self._tolerance * Fraction(self._counts[one], self._weights[one])
        allowed = float(self._slack[one] + self._slack[other] + tolerance)
        return f"abs({shares}) <= {allowed + 1e-9:.9g}"


def _check_updated_shares(
    candidate: Candidate, claim: WeightedShares | ByteShares, budget: settings
) -> None:
    """Check that shares follow the last signals."""

    def error_of(history: History) -> BrokenLawError | None:
        counter = _ShareCounter(candidate.new_recording(), claim, Law.UPDATES_AT_ONCE)
        return _breach_of(Law.UPDATES_AT_ONCE, lambda: counter.play(history))

    _check_updates(candidate, claim, error_of, budget, most_streams=_MOST_SHARING)


def _breach_of(law: Law, play: Callable[[], object]) -> BrokenLawError | None:
    """Return the error if *play* breaks *law*; an error about another law is raised."""
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
    """Check that no stream overtakes one of a lower rank, in histories without updates."""
    without_updates = (Call.UPDATE, Call.CHARGE)
    _check_each(
        candidate.claims_of(StrictOrder),
        lambda claim: _check_order(candidate, claim, budget, leave_out=without_updates),
    )


def _check_each(claims: list[ClaimT], check: Callable[[ClaimT], None]) -> None:
    """Check all *claims*, and then raise the first reason for which one was not checked."""
    first_reason = None
    for claim in claims:
        try:
            check(claim)
        except NotCheckedError as reason:
            first_reason = first_reason or reason
    if first_reason is not None:
        raise first_reason


class _ClaimFunction:
    """Function of a claim, called *name*, that may return None for what is not claimed."""

    def __init__(self, name: str, function: Callable[..., Any]) -> None:
        self._name, self._function = name, function
        self._was_called = self._has_returned_value = False

    def __call__(self, *arguments: Any) -> Any:
        """Return the value of the function, and note whether it is None."""
        value = self._function(*arguments)
        self._was_called = True
        self._has_returned_value = self._has_returned_value or value is not None
        return value

    def require_value(self) -> None:
        """Check that the function did not return None for everything.

        Raises:
            NotCheckedError: if it did, as a function without `return` does.
        """
        if self._was_called and not self._has_returned_value:
            raise NotCheckedError(f"{self._name} returns None whatever it is asked")


def _check_order(
    candidate: Candidate, claim: StrictOrder, budget: settings, leave_out: tuple[Call, ...]
) -> None:
    """Check the order in histories without the calls *leave_out*.

    If updates are not left out, streams are also updated while they are inactive.
    """
    law = Law.STRICT_ORDER if Call.UPDATE in leave_out else Law.UPDATES_AT_ONCE
    rank = _ClaimFunction("rank", claim.rank)
    claim = replace(claim, rank=rank)

    def error_of(history: History) -> BrokenLawError | None:
        return _broken_order(candidate.new_recording(), claim, history, law)

    def check(history: History) -> None:
        if (broken := error_of(history)) is not None:
            raise broken

    if law is Law.STRICT_ORDER:
        histories = candidate.histories_of(law, budget, signals=claim.signals, leave_out=leave_out)
        search(check, histories, budget=budget)
    else:
        _check_updates(candidate, claim, error_of, budget)
    rank.require_value()


def _check_updates(
    candidate: Candidate,
    claim: Any,
    error_of: Callable[[History], BrokenLawError | None],
    budget: settings,
    most_streams: int | None = None,
) -> None:
    """Check histories with updates; *error_of* returns the error in a history, or None."""

    def check(history: History) -> None:
        error = error_of(history)
        # An error that also occurs without updates is not due to them.
        if error is not None and error_of(without(history, Call.UPDATE)) is None:
            raise error

    histories = candidate.histories_of(
        Law.UPDATES_AT_ONCE,
        budget,
        signals=claim.signals,
        leave_out=(Call.CHARGE,),
        most_streams=most_streams,
    )
    search(check, histories, budget=budget)


def _broken_order(
    recording: RecordingScheduler, claim: StrictOrder, history: History, law: Law
) -> BrokenLawError | None:
    """Return the error in the order of *history*, and of the streams left at its end, if any."""
    turn = _Turn(claim.packets_per_turn)

    def look(picked: int | None) -> None:
        if picked is not None and picked in recording.active:
            broken = _overtaking(recording, claim, picked, law)
            if broken is None:
                turn.begin(picked)
            elif not turn.continue_with(picked):
                raise broken

    def play() -> None:
        recording.play(history, on_pick=look)
        while recording.active:
            picked = recording.turn(on_pick=look)
            if picked is None or picked not in recording.active:
                return
            recording.take(Event(Call.DEACTIVATE, picked))

    return _breach_of(law, play)


class _Turn:
    """Turn of up to *packets*, which may go on even if a stream of a lower rank is active.

    Where a turn began cannot be seen from outside, as turns may be shorter. So every packet in the
    right order counts as the first of a turn.
    """

    def __init__(self, packets: int) -> None:
        self._packets = packets
        self._stream_id: int | None = None
        self._packets_left = 0

    def begin(self, picked: int) -> None:
        """Count a packet in the right order as the first of a turn."""
        self._stream_id, self._packets_left = picked, self._packets - 1

    def continue_with(self, picked: int) -> bool:
        """Return whether a packet may belong to the last turn that has begun."""
        self._packets_left -= 1
        return picked == self._stream_id and self._packets_left >= 0


def _overtaking(
    recording: RecordingScheduler, claim: StrictOrder, picked: int, law: Law
) -> BrokenLawError | None:
    """Return the error if a stream of a lower rank than the one that is picked is active."""
    ranks = {key: claim.rank(key, recording.signals[key]) for key in recording.active}
    picked_rank = ranks[picked]
    if picked_rank is None:
        return None
    for stream_id, rank in ranks.items():
        if rank is not None and rank < picked_rank:
            sentence = (
                f"stream {picked} of rank {picked_rank} is picked "
                f"before stream {stream_id} of rank {rank}"
            )
            least = min(rank for rank in ranks.values() if rank is not None)
            first = [key for key, rank in ranks.items() if rank is None or rank == least]
            # A turn of several packets may have gone on.
            kept = f"picks[-1] in {first}" if claim.packets_per_turn == 1 else ""
            return recording.broken(law, sentence, kept=kept)
    return None


@checks(Law.NO_STARVATION)
def no_starvation(candidate: Candidate, budget: settings) -> None:
    """Check that each active stream has its turn in time, while others come and go."""
    claims = [c for c in candidate.claims if isinstance(c, NoStarvation | NeitherFlagStarves)]
    _check_built_in(built_in_starvation, candidate, is_claimed=bool(claims))
    for claim in claims:
        counter: Any = _WaitCounter if isinstance(claim, NoStarvation) else _FlagWaitCounter
        _check_turns(candidate, claim, budget, partial(counter, claim))


@checks(Law.BOUNDED_WAIT)
def bounded_wait(candidate: Candidate, budget: settings) -> None:
    """Check that no stream has too many turns while another waits, and others come and go."""

    def check(claim: BoundedWait) -> None:
        turns = _ClaimFunction("turns", claim.turns)
        noted = replace(claim, turns=turns)
        make_counter = partial(_BypassCounter, noted, Law.BOUNDED_WAIT)
        _check_turns(candidate, noted, budget, make_counter, leave_out=(Call.CHARGE, Call.UPDATE))
        turns.require_value()

    _check_each(candidate.claims_of(BoundedWait), check)


_MOST_WAITING = 16
"""The most streams for which waits are counted: with n of them, there are n² waits in a turn."""


def _check_turns(
    candidate: Candidate,
    claim: NoStarvation | NeitherFlagStarves | BoundedWait,
    budget: settings,
    make_counter: _CounterFactory,
    leave_out: tuple[Call, ...] = (Call.CHARGE,),
) -> None:
    """Count all turns of histories, and of the streams that are left at the end."""
    checks_pauses = isinstance(claim, BoundedWait) and claim.pauses

    def check(history: History) -> None:
        for pauses in (False, True) if checks_pauses else (False,):
            _count_turns(candidate.new_recording(), make_counter, history, pauses=pauses)

    histories = candidate.histories_of(
        claim.law, budget, signals=claim.signals, leave_out=leave_out, most_streams=_MOST_WAITING
    )
    search(check, histories, budget=budget)


def _count_turns(
    recording: RecordingScheduler,
    make_counter: _CounterFactory,
    history: History,
    *,
    pauses: bool = False,
) -> None:
    """Play *history* with packets of one size, as streams with short ones may have more turns.

    With *pauses*, each stream is deactivated after each of its packets and activated again at once.
    Its buffer was empty for a moment, which must not put it before the streams that wait.
    """
    counter = make_counter(recording)

    def turn() -> int | None:
        picked = recording.turn(on_pick=counter.count)
        if pauses and picked is not None and picked in recording.active:
            for call in (Call.DEACTIVATE, Call.ACTIVATE):
                recording.take(Event(call, picked))
                counter.forget()
        return picked

    for event in history:
        if event.call is Call.SERVE:
            for _ in range(event.n_turns):
                turn()
        else:
            recording.take(event)
        counter.forget()
    # Streams that are served are deactivated after a while, as the others may have to wait for
    # them.
    while recording.active:
        served = {turn() for _ in range(counter.n_final_turns)}
        done = [key for key in recording.active if key in served]
        if not done:
            return
        for key in done:
            recording.take(Event(Call.DEACTIVATE, key))
        counter.forget()


def _check_updated_waits(candidate: Candidate, claim: BoundedWait, budget: settings) -> None:
    """Check that waits follow the last signals."""
    make_counter = partial(_BypassCounter, claim, Law.UPDATES_AT_ONCE)

    def error_of(history: History) -> BrokenLawError | None:
        recording = candidate.new_recording()
        return _breach_of(
            Law.UPDATES_AT_ONCE, lambda: _count_turns(recording, make_counter, history)
        )

    _check_updates(candidate, claim, error_of, budget, most_streams=_MOST_WAITING)


class _WaitCounter:
    """Counts the turns of all others since each active stream had its own."""

    def __init__(self, claim: NoStarvation, recording: RecordingScheduler) -> None:
        self._max_wait_per_stream = claim.rounds * claim.packets_per_turn
        self._recording = recording
        self._waits: dict[int, int] = {}
        self._max_active = 1
        """Most streams that were active at a time."""

    @property
    def n_final_turns(self) -> int:
        """Turns that show that no stream starves at the end."""
        return self._max_wait_per_stream * self._max_active + 1

    def count(self, picked: int | None) -> None:
        """Count a turn."""
        active, waits = self._recording.active, self._waits
        self._max_active = max(self._max_active, len(active))
        for key in active:
            waits[key] = 0 if key == picked else waits.get(key, 0) + 1
            if waits[key] > self._max_wait_per_stream * self._max_active:
                sentence = (
                    f"stream {key} has been active for {waits[key]} turns of others, "
                    f"with at most {self._max_active} streams at a time"
                )
                kept = f"{key} in picks[-{waits[key]}:]"
                raise self._recording.broken(Law.NO_STARVATION, sentence, kept=kept)

    def forget(self) -> None:
        """Forget the waits of those that are not active any more."""
        for key in [key for key in self._waits if key not in self._recording.active]:
            del self._waits[key]


class _FlagWaitCounter:
    """Counts, for each urgency and flag that waits, the turns in a row of the other flag."""

    n_final_turns = 60

    def __init__(self, claim: NeitherFlagStarves, recording: RecordingScheduler) -> None:
        self._claim = claim
        self._recording = recording
        self._waits: dict[Eps, int] = {}
        self._max_active = 1

    def count(self, picked: int | None) -> None:
        """Count a turn."""
        active, signals = self._recording.active, self._recording.signals
        self._max_active = max(self._max_active, len(active))
        self.forget()
        if picked is None or picked not in active:
            return
        served = eps_of(signals[picked])
        self._waits.pop(served, None)
        other = replace(served, incremental=not served.incremental)
        waiting = next((key for key in active if eps_of(signals[key]) == other), None)
        if waiting is None or self._claim.incremental is served.incremental:
            return
        self._waits[other] = self._waits.get(other, 0) + 1
        claim = self._claim
        if self._waits[other] > claim.rounds * claim.packets_per_turn * self._max_active:
            adjectives = {True: "incremental", False: "non-incremental"}
            sentence = (
                f"{adjectives[other.incremental]} stream {waiting} waits for {self._waits[other]} "
                f"turns of {adjectives[served.incremental]} ones of its urgency, "
                f"with at most {self._max_active} streams at a time"
            )
            kept = f"{waiting} in picks[-{self._waits[other]}:]"
            raise self._recording.broken(Law.NO_STARVATION, sentence, kept=kept)

    def forget(self) -> None:
        """Forget the waits of an urgency and flag of which no stream is active."""
        active = {eps_of(self._recording.signals[key]) for key in self._recording.active}
        self._waits = {eps: wait for eps, wait in self._waits.items() if eps in active}


class _BypassCounter:
    """Counts for each active stream how many turns each other one has had since its own."""

    n_final_turns = 40

    def __init__(self, claim: BoundedWait, law: Law, recording: RecordingScheduler) -> None:
        self._claim = claim
        self._law = law
        self._recording = recording
        self._signals: dict[int, Any] = {}
        self._turns: dict[int, dict[int, int]] = {}
        """For each waiting stream, the turns of each other stream."""
        self._since: dict[tuple[int, int], int] = {}
        """The number of picks before the first of these turns."""
        self._served: set[int] = set()
        """Active streams that have had a turn since they became active."""

    def count(self, picked: int | None) -> None:
        """Count a turn."""
        if picked is None or picked not in self._recording.active:
            return
        for waiting in self._recording.active:
            if waiting != picked:
                turns = self._turns.setdefault(waiting, {})
                turns[picked] = turns.get(picked, 0) + 1
                if turns[picked] == 1:
                    self._since[waiting, picked] = self._recording.n_picks - 1
                self._compare(waiting, picked, turns[picked])
        self._turns[picked] = {}
        self._served.add(picked)

    def _compare(self, waiting: int, other: int, n_turns: int) -> None:
        """Compare the turns of another stream, while one waits, with those that it may have."""
        claim, signals = self._claim, self._recording.signals
        value = claim.turns(signals[waiting], signals[other])
        if value is None:
            return
        allowed_turns = as_integer(value)
        if allowed_turns is None or allowed_turns < 0:
            pair = f"{signals[waiting]} and {signals[other]}"
            message = f"must return a whole number, or None, and returned {value!r} for {pair}"
            raise InputError.at("turns", message, type(claim).__name__)
        if waiting not in self._served:
            allowed_turns += claim.joining
        allowed_packets = allowed_turns * claim.packets_per_turn
        if n_turns > allowed_packets:
            unit = "packets" if claim.packets_per_turn > 1 else "turns"
            sentence = (
                f"stream {waiting} waits while stream {other} has {n_turns} {unit}; "
                f"it may have {allowed_packets}"
            )
            picks = f"picks[{self._since[waiting, other] - self._recording.n_picks}:]"
            kept = f"{picks}.count({other}) <= {allowed_packets} or {waiting} in {picks}"
            raise self._recording.broken(self._law, sentence, kept=kept)

    def forget(self) -> None:
        """Forget the waits of streams that are not active any more, or have another signal."""
        for key in [key for key in self._turns if key not in self._recording.active]:
            del self._turns[key]
            self._served.discard(key)
        signals = self._recording.signals
        if signals != self._signals:
            for key in [key for key in signals if self._signals.get(key) != signals[key]]:
                self._served.discard(key)
                self._turns.pop(key, None)
                for turns in self._turns.values():
                    turns.pop(key, None)
            self._signals = {**signals}


_CounterFactory: TypeAlias = (
    "Callable[[RecordingScheduler], _WaitCounter | _FlagWaitCounter | _BypassCounter]"
)


def _check_built_in(
    check: Callable[[Candidate], None], candidate: Candidate, *, is_claimed: bool
) -> None:
    """Check what holds without a claim; not to be able to is no reason to skip what is claimed."""
    try:
        check(candidate)
    except NotCheckedError:
        if not is_claimed:
            raise


@checks(Law.UPDATES_AT_ONCE)
def updates_at_once(candidate: Candidate, budget: settings) -> None:
    """Check that orders, shares and waits follow the last signals."""
    kinds = StrictOrder | WeightedShares | ByteShares | BoundedWait
    claims = [claim for claim in candidate.claims if isinstance(claim, kinds)]
    following = [claim for claim in claims if claim.follows_updates]
    _check_built_in(built_in_updates, candidate, is_claimed=bool(following))

    def check(claim: StrictOrder | WeightedShares | ByteShares | BoundedWait) -> None:
        if isinstance(claim, StrictOrder):
            _check_order(candidate, claim, budget, leave_out=(Call.CHARGE,))
        elif isinstance(claim, BoundedWait):
            _check_updated_waits(candidate, claim, budget)
        else:
            _check_updated_shares(candidate, claim, budget)

    _check_each(following, check)


@checks(Law.SAME_AS)
def same_as(candidate: Candidate, budget: settings) -> None:
    """Check that the reference picks the same after every event."""
    for claim in candidate.claims_of(SameAs):
        _check_picks(candidate, claim, budget)


class _Reference(RecordingScheduler):
    """Reference that a scheduler is compared with; its errors are faults of the claim."""

    def invalid_pick(self, sentence: str) -> Exception:
        return self._error(sentence)

    def raised(self, what: str, error: BaseException) -> Exception:
        return self._error(f"{what} raised {raised_words(error)}")

    def _error(self, message: str) -> InputError:
        return InputError.at("reference", message, SameAs.__name__)


def _make_reference(reference: Candidate) -> Scheduler:
    """Return a new reference; its errors are reported as faults of the claim."""
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
        recording, reference_run = candidate.new_recording(), _Reference(_make_reference(reference))
        for event in history:
            for _ in range(event.n_turns if event.call is Call.SERVE else 1):
                _advance(recording, reference_run, event, _common_pick(recording, reference_run))
        # The streams that are left are served in the same order, too.
        while (
            picked := _common_pick(recording, reference_run)
        ) is not None and picked in recording.active:
            for call in (Call.CHARGE, Call.DEACTIVATE):
                _advance(recording, reference_run, Event(call, picked), picked)

    # References are slow: no crowds.
    histories = candidate.histories_of(Law.SAME_AS, budget, most_streams=24)
    search(check, histories, budget=budget)


def _common_pick(recording: RecordingScheduler, reference: RecordingScheduler) -> int | None:
    picked, expected = recording.pick(), reference.pick()
    if picked != expected:
        sentence = f"{picked} is picked, and {expected} by the reference"
        raise recording.broken(Law.SAME_AS, sentence, kept=f"picks[-1] == {expected}")
    return picked


def _advance(
    recording: RecordingScheduler, reference: RecordingScheduler, event: Event, picked: int | None
) -> None:
    if event.call is Call.SERVE:
        if picked is None or picked not in recording.active:
            return
        event = Event(Call.CHARGE, picked, n_bytes=event.n_bytes)
    for each in (recording, reference):
        each.take(event)
