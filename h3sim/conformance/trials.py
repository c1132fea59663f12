"""Laws that need no claim: two streams compete, and their signals alone should decide.

A scheduler shows by itself what its signals mean. In a trial two fresh streams compete for some
turns, in either order. The table of all trials has to be monotone: what is more urgent or heavier
goes first, and has more turns. And whatever happened before, two streams have to compete as fresh
ones with their last signals do.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import combinations, groupby, permutations
from typing import TYPE_CHECKING, Any

from h3sim.conformance.call_sequences import Call, Event
from h3sim.conformance.histories import n_changed_fields
from h3sim.conformance.laws import Law, NotCheckedError
from h3sim.conformance.runner import checks, search
from h3sim.schedulers import DriverScheduler
from h3sim.signals import BucketPriority, Eps, H2Priority, Rank, StrictPriority

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from hypothesis import settings

    from h3sim.conformance.call_sequences import History, RecordingScheduler
    from h3sim.conformance.subject import Candidate

_N_TURNS = 64
"""Turns of a trial."""
_MOST_SIGNALS = 16
"""The most signals that are compared pair by pair: all of RFC 9218, half as many of others."""
_TOLERANCE = 6
"""Turns by which a stream may differ from a fresh one, or a quantum if that is longer."""
_MOST_WEIGHT = 32
"""The highest weight that is compared: more turns than a trial has would show nothing."""
_ONE, _OTHER, _THIRD = 4, 8, 12
"""Ids of the streams of a trial."""


def goes_before(one: Any, other: Any) -> bool:
    """Return whether a stream with signal *one* should have more turns than with *other*.

    >>> goes_before(Eps(urgency=1), Eps(urgency=2, incremental=True))
    True
    """
    match one, other:
        case (Eps(), Eps()):
            return bool(one.urgency < other.urgency)
        case (H2Priority(), H2Priority()):
            # Deficit round robin shows smaller differences only after many turns.
            return bool(one.weight >= 2 * other.weight and one.weight > 0)
        case (BucketPriority(), BucketPriority()):
            return bool(one.bucket > other.bucket)
        case (StrictPriority(), StrictPriority()):
            return bool(one.strict > other.strict)
        case (Rank(), Rank()):
            return bool(one.value < other.value)
        case _:
            return False


def _shares_equally(signal: Any) -> bool:
    """Return whether streams with that signal all have turns within a trial."""
    match signal:
        case Eps():
            return bool(signal.incremental)
        case H2Priority():
            return bool(0 < signal.weight < 255)
        case _:
            return False


@dataclass
class Trials:
    """The trials of a scheduler, each of which is run once."""

    candidate: Candidate
    signals: tuple[Any, ...] = field(init=False)
    n_turns: int = _N_TURNS
    _picks: dict[tuple[str, str], list[int | None]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Choose the signals: flat ones, the whole range."""
        flat = {repr(each): each for each in map(_flat, self.candidate.pool())}
        small = [each for each in flat.values() if getattr(each, "weight", 0) <= _MOST_WEIGHT]
        found = sorted(small if len(small) > 1 else flat.values(), key=_by_importance)
        most = _MOST_SIGNALS if isinstance(found[0], Eps) else _MOST_SIGNALS // 2
        step = -(-len(found) // most)
        self.signals = tuple(dict.fromkeys([*found[::step], *found[-1:]]))
        if isinstance(self.candidate.new(), DriverScheduler):
            self.n_turns //= 2

    def picks(self, first: Any, second: Any) -> list[int | None]:
        """Return the picks of two fresh streams, of which *first* has data first."""
        key = repr(first), repr(second)
        if key not in self._picks:
            recording = self.candidate.new_recording()
            self._picks[key] = play(recording, ready(first, second), self.n_turns)
        return self._picks[key]

    def turns(self, one: Any, other: Any) -> int:
        """Return the turns of *one* against *other*, with either of them first."""
        return self.picks(one, other).count(_ONE) + self.picks(other, one).count(_OTHER)

    def always(self, one: Any, other: Any) -> bool:
        """Return whether *one* has all turns whichever is first, and not only by its weight."""
        by_weight = isinstance(other, H2Priority) and other.weight > 0
        return not by_weight and self.turns(one, other) == 2 * self.n_turns

    @property
    def tolerance(self) -> int:
        """Turns by which counts may differ: those of a quantum, which shows between equals."""
        equals = [self.picks(each, each) for each in self.signals[-2:] if _shares_equally(each)]
        runs = [len([*run]) for picks in equals for _, run in groupby(picks)]
        return max([_TOLERANCE, *(run for run in runs if run < self.n_turns // 2)])

    def heeded(self) -> bool:
        """Return whether any two signals lead to different turns."""
        return any(self.turns(a, b) != self.turns(b, a) for a, b in combinations(self.signals, 2))

    def witness(self, before: Any, after: Any) -> Any:
        """Return the signal against which two signals differ most, if they differ clearly."""
        n_before = {repr(other): self.turns(before, other) for other in self.signals}
        best = max(self.signals, key=lambda o: abs(n_before[repr(o)] - self.turns(after, o)))
        differ = abs(n_before[repr(best)] - self.turns(after, best))
        return best if differ > 4 * self.tolerance else None


def _flat(signal: Any) -> Any:
    """Return the signal without a parent."""
    if isinstance(signal, H2Priority):
        return replace(signal, depends_on=None, exclusive=False)
    return replace(signal, depends_on=None) if isinstance(signal, StrictPriority) else signal


def _by_importance(signal: Any) -> tuple[Any, ...]:
    match signal:
        case H2Priority():
            return signal.weight, ""
        case _:
            return 0, repr(signal)


def ready(first: Any, second: Any) -> list[Event]:
    """Return the events that open and activate two streams."""
    return [
        Event(Call.OPEN, _ONE, first),
        Event(Call.ACTIVATE, _ONE),
        Event(Call.OPEN, _OTHER, second),
        Event(Call.ACTIVATE, _OTHER),
    ]


def play(recording: RecordingScheduler, events: list[Event], n_turns: int) -> list[int | None]:
    """Play events, and return the picks of the turns after them."""
    recording.play(events)
    return [recording.turn() for _ in range(n_turns)]


def _trials(candidate: Candidate) -> Trials:
    if candidate.histories is not None:
        raise NotCheckedError("its histories are given")
    trials = Trials(candidate)
    if len(trials.signals) < 2 or not trials.heeded():
        raise NotCheckedError("its picks do not depend on its signals")
    return trials


@checks(Law.SIGNALS_COUNT)
def signals_count(candidate: Candidate, budget: settings) -> None:
    """Check that what should go before has more turns, alone and in crowds."""
    trials = _trials(candidate)
    for one, other in permutations(trials.signals, 2):
        if goes_before(one, other):
            _check_pair(trials, one, other)
    _check_crowds(trials, budget)


def _check_pair(trials: Trials, one: Any, other: Any) -> None:
    n_turns, n_other = trials.turns(one, other), trials.turns(other, one)
    is_first = trials.picks(one, other)[0] == _ONE
    if is_first and n_turns > n_other:
        return
    recording = trials.candidate.new_recording()
    if not is_first:
        play(recording, ready(one, other), 1)
        kept = f"picks[-1] == {_ONE}"
        sentence = f"{other} goes before {one}, which had data first"
    else:
        has_all = trials.picks(one, other).count(_ONE) == trials.n_turns
        play(recording, ready(*((other, one) if has_all else (one, other))), trials.n_turns)
        more, less = (_OTHER, _ONE) if has_all else (_ONE, _OTHER)
        # Half of the turns of the order played, unless the other one shows what is wrong.
        is_shown = has_all or 2 * trials.picks(one, other).count(_ONE) <= trials.n_turns
        kept = f"picks.count({more}) > picks.count({less})" if is_shown else ""
        sentence = (
            f"{one} has {n_turns} of {2 * trials.n_turns} turns against {other}, with either first"
        )
    raise recording.broken(Law.SIGNALS_COUNT, sentence, kept=kept)


def _check_crowds(trials: Trials, budget: settings) -> None:
    """Check that a stream that always goes first in a pair does so in every history.

    A pair that waited for as many turns as a trial has is not compared, as streams may age. One
    that was picked before may end its turn, of as many packets as it has when an important stream
    joins in a trial.
    """
    patience = _patience(trials)

    def before(one: Any, other: Any) -> bool:
        return goes_before(one, other) and trials.always(one, other)

    def check(history: History) -> None:
        recording = trials.candidate.new_recording()
        since: dict[int, int] = {}
        n_turns, run = 0, 0
        last: int | None = None

        def look(picked: int | None) -> None:
            nonlocal n_turns, run, last
            n_turns += 1
            run = run + 1 if picked == last else 1
            last = picked
            if picked is None or picked not in recording.active:
                return
            waited = n_turns - since.setdefault(picked, n_turns)
            since[picked] = n_turns
            signal = recording.signals[picked]
            if waited >= trials.n_turns or 1 < run <= patience + 1:
                return
            for key in recording.active:
                if before(recording.signals[key], signal):
                    sentence = (
                        f"stream {picked} is picked before stream {key}: alone, "
                        f"{recording.signals[key]} always goes before {signal}"
                    )
                    signals = recording.signals
                    first = [
                        each
                        for each in recording.active
                        if not any(before(signals[k], signals[each]) for k in recording.active)
                    ]
                    kept = f"picks[-1] in {first}"
                    raise recording.broken(Law.SIGNALS_COUNT, sentence, kept=kept)

        for event in history:
            if event.call is Call.OPEN:
                since[event.stream_id] = n_turns
            recording.play([event], on_pick=look)
        while recording.active:
            picked = recording.turn(on_pick=look)
            if picked is None or picked not in recording.active:
                return
            recording.take(Event(Call.DEACTIVATE, picked))
            last = None

    histories = trials.candidate.histories_of(Law.SIGNALS_COUNT, budget, leave_out=(Call.CHARGE,))
    flat = [tuple(replace(e, signal=_flat(e.signal)) for e in history) for history in histories]
    search(check, flat, budget=budget)


def _patience(trials: Trials) -> int:
    """Return the most turns that a stream goes on when one joins that always goes before it."""
    longest = 0
    pairs = [p for p in permutations(trials.signals, 2) if goes_before(*p) and trials.always(*p)]
    for one, other in pairs[:1]:
        for n_before in range(1, 17):
            recording = trials.candidate.new_recording()
            recording.play([Event(Call.OPEN, _ONE, other), Event(Call.ACTIVATE, _ONE)])
            play(recording, [], n_before)
            joins = [Event(Call.OPEN, _OTHER, one), Event(Call.ACTIVATE, _OTHER)]
            picks = play(recording, joins, 17)
            longest = max(longest, picks.index(_OTHER) if _OTHER in picks else len(picks))
            if longest == len(picks):
                sentence = f"{one} waits for all turns of {other}, which had data before it"
                kept = f"{_OTHER} in picks[-{len(picks)}:]"
                raise recording.broken(Law.SIGNALS_COUNT, sentence, kept=kept)
    return longest


def built_in_starvation(candidate: Candidate) -> None:
    """Check that equal streams that share do not wait for one another for ever, in any number."""
    trials = _trials(candidate)
    for signal in filter(_shares_equally, trials.signals):
        for n_streams in (2, 3, 20):
            _check_equal_streams(trials, signal, n_streams)
    for one, other in permutations(trials.signals, 2):
        if _must_not_starve(one, other):
            _check_waits(trials, one, other)


def _must_not_starve(one: Any, other: Any) -> bool:
    """Return whether a non-incremental stream and an incremental one of its urgency compete."""
    return (
        isinstance(one, Eps)
        and isinstance(other, Eps)
        and one.urgency == other.urgency
        and not one.incremental
        and other.incremental
    )


def _check_waits(trials: Trials, one: Any, other: Any) -> None:
    for number, picks in ((_ONE, trials.picks(one, other)), (_OTHER, trials.picks(other, one))):
        if number not in picks[trials.n_turns // 2 :]:
            recording = trials.candidate.new_recording()
            signals = (one, other) if number == _ONE else (other, one)
            play(recording, ready(*signals), trials.n_turns)
            sentence = f"stream {number} starves, with {one} against {other}"
            kept = f"{number} in picks[-{trials.n_turns - trials.n_turns // 2}:]"
            raise recording.broken(Law.NO_STARVATION, sentence, kept=kept)


def _check_equal_streams(trials: Trials, signal: Any, n_streams: int) -> None:
    """Check that each has a turn, also if one pauses after each of its packets.

    A stream that pauses may go first again and again, as in lists of rounds, but may not make
    others lose their turns to a third one.
    """
    for pauses in (False, True):
        recording = trials.candidate.new_recording()
        ids = [4 * n for n in range(n_streams)]
        for stream_id in ids:
            recording.play([Event(Call.OPEN, stream_id, signal), Event(Call.ACTIVATE, stream_id)])
        counts = dict.fromkeys(ids, 0)
        n_turns = trials.n_turns * n_streams // 2
        for number in range(n_turns):
            if number == n_turns // 2:  # the first half does not count
                counts = dict.fromkeys(ids, 0)
            picked = recording.turn()
            if picked not in counts:
                return
            counts[picked] += 1
            if pauses and picked == ids[0]:
                recording.play([Event(Call.DEACTIVATE, picked), Event(Call.ACTIVATE, picked)])
        compared = ids[1:] if pauses else ids
        least = min(compared, key=lambda key: counts[key])
        most = max(compared, key=lambda key: counts[key])
        if counts[least] == 0 and counts[most] > 0:
            paused = f", while stream {ids[0]} pauses after each packet" if pauses else ""
            sentence = (
                f"stream {least} has no turn, and stream {most} with the same signal has "
                f"{counts[most]} of the last {n_turns - n_turns // 2}{paused}"
            )
            kept = f"{least} in picks[-{n_turns - n_turns // 2}:]"
            raise recording.broken(Law.NO_STARVATION, sentence, kept=kept)


def built_in_updates(candidate: Candidate) -> None:
    """Check that a stream competes by its last signal, in whichever state it was updated."""
    trials = _trials(candidate)
    names = [*_UPDATES]
    for number, (before, after) in enumerate(permutations(trials.signals, 2)):
        other = trials.witness(before, after)
        if other is None:
            continue
        # All states where one field changes, as updates of the flag do, else one of them.
        is_near = n_changed_fields(before, after) == 1
        for name in names if is_near else [names[number % len(names)]]:
            events = _UPDATES[name](before, after, other)
            what = f"updated from {before} to {after} {name}"
            # A turn that began with the former signal may still end first.
            events = [*events, Event(Call.SERVE, n_turns=trials.n_turns)]
            _check_as_fresh(trials, Law.UPDATES_AT_ONCE, events, after, other, what)


def _updated_before_data(before: Any, after: Any, other: Any) -> list[Event]:
    first, *rest = ready(before, other)
    return [first, Event(Call.UPDATE, _ONE, after), *rest]


def _updated_while_active(before: Any, after: Any, other: Any) -> list[Event]:
    return [*ready(before, other), Event(Call.UPDATE, _ONE, after)]


def _updated_after_turns(before: Any, after: Any, other: Any) -> list[Event]:
    turns = Event(Call.SERVE, n_turns=3)
    return [*ready(before, other), turns, Event(Call.UPDATE, _ONE, after)]


def _updated_while_blocked(before: Any, after: Any, other: Any) -> list[Event]:
    blocked = [
        Event(Call.DEACTIVATE, _ONE),
        Event(Call.UPDATE, _ONE, after),
        Event(Call.ACTIVATE, _ONE),
    ]
    return [*ready(before, other), Event(Call.SERVE, n_turns=3), *blocked]


_UPDATES: dict[str, Callable[[Any, Any, Any], list[Event]]] = {
    "before it has data": _updated_before_data,
    "while it is active": _updated_while_active,
    "after some turns": _updated_after_turns,
    "while it is blocked": _updated_while_blocked,
}


def _check_as_fresh(
    trials: Trials, law: Law, events: list[Event], one: Any, other: Any, what: str
) -> None:
    """Check that two streams compete after *events* as fresh ones with their signals do."""
    recording = trials.candidate.new_recording()
    n_turns = play(recording, events, trials.n_turns).count(_ONE)
    fresh = trials.picks(one, other).count(_ONE), trials.picks(other, one).count(_OTHER)
    low, high = min(fresh) - trials.tolerance, max(fresh) + trials.tolerance
    if not low <= n_turns <= high:
        expected = f"{fresh[0]}" if fresh[0] == fresh[1] else f"{min(fresh)} to {max(fresh)}"
        sentence = (
            f"stream {_ONE}, {what}, has {n_turns} of {trials.n_turns} turns against {other}; "
            f"a stream opened with {one} has {expected}"
        )
        kept = f"{low} <= picks[-{trials.n_turns}:].count({_ONE}) <= {high}"
        raise recording.broken(law, sentence, kept=kept)


@checks(Law.NO_LASTING_DEBT)
def no_lasting_debt(candidate: Candidate, _budget: settings) -> None:
    """Check that neither service nor idleness, closes nor long packets change shares for long."""
    trials = _trials(candidate)
    pairs = [(a, b) for a, b in permutations(trials.signals, 2) if goes_before(a, b)][::7]
    pairs += [(each, each) for each in trials.signals if _shares_equally(each)][:4]
    for one, other in pairs:
        for what, events in _pasts(one, other):
            _check_as_fresh(trials, Law.NO_LASTING_DEBT, events, one, other, what)


def _pasts(one: Any, other: Any) -> Iterator[tuple[str, list[Event]]]:
    """Yield what may have happened before two streams compete."""
    first, starts, second, joins = ready(one, other)
    third = [Event(Call.OPEN, _THIRD, other), Event(Call.ACTIVATE, _THIRD)]
    served = Event(Call.SERVE, n_turns=100)
    closes = Event(Call.CLOSE, _THIRD)
    yield "which joins late", [second, joins, served, first, starts]
    yield "which was served alone", [first, starts, served, second, joins]
    yield (
        "which was idle while others were served",
        [first, second, joins, *third, served, closes, starts],
    )
    pauses = [Event(Call.DEACTIVATE, _ONE), Event(Call.ACTIVATE, _ONE)] * 50
    yield "which paused again and again", [second, joins, first, starts, *pauses]
    turns = [*third, second, joins, served, closes, first, starts]
    yield "which joins after another was closed in its turn", turns
    yield (
        "which was blocked for long",
        [first, starts, second, joins, Event(Call.DEACTIVATE, _ONE), served, starts],
    )
