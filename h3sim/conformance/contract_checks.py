"""Checks of what the contract says of every scheduler."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

from hypothesis import strategies as st

from h3sim.conformance.histories import PACKET_BYTES, Call, Event, Watched, valid_history
from h3sim.conformance.laws import BrokenLawError, Law, checks
from h3sim.conformance.processes import check_every_process_picks_the_same
from h3sim.conformance.search import for_all, shortened

if TYPE_CHECKING:
    from hypothesis import settings

    from h3sim.conformance.candidate import Candidate
    from h3sim.conformance.histories import History

__all__ = [
    "deterministic",
    "every_byte_once",
    "never_raises",
    "picks_only_ready",
    "pure_pick",
    "same_in_every_process",
    "work_conserving",
]

_CROWD = 200
_CROWD_EVENTS = 1000


@checks(Law.WORK_CONSERVING)
def work_conserving(candidate: Candidate, budget: settings) -> None:
    """See that a stream is picked after every event that leaves one active."""

    def check(history: History) -> None:
        watched = candidate.watched()

        def look() -> None:
            if watched.active and watched.pick() is None:
                active = ", ".join(map(str, watched.active))
                sentence = f"nobody is picked, and these have bytes to send: {active}"
                raise watched.broken(Law.WORK_CONSERVING, sentence)

        watched.play(history, after=look, on_pick=lambda _: look())

    for_all(check, candidate.scripts(leave_out=(Call.CHARGE,)), budget=budget)


@checks(Law.PICKS_ONLY_READY)
def picks_only_ready(candidate: Candidate, budget: settings) -> None:
    """See that whoever is picked, after every event, is open and active."""

    def check(history: History) -> None:
        watched = candidate.watched()

        def look(picked: int | None) -> None:
            if picked is not None and picked not in watched.active:
                sentence = f"stream {picked!r} is picked, which {watched.state_of(picked)}"
                raise watched.broken(Law.PICKS_ONLY_READY, sentence)

        watched.play(history, on_pick=look, after=lambda: look(watched.pick()))

    for_all(check, candidate.scripts(leave_out=(Call.CHARGE,)), budget=budget)


_RESPONSES = st.lists(
    st.tuples(st.integers(0, 3), st.sampled_from([0, 1, 600, 1400, 2800, 4000, 9000])),
    min_size=1,
    max_size=8,
)
"""Turns before the response becomes ready, and its size in bytes."""


@checks(Law.EVERY_BYTE_ONCE)
def every_byte_once(candidate: Candidate, budget: settings) -> None:
    """Send responses as a server does, and see that each goes to its end and no further."""

    def check(responses: list[tuple[int, int]], signals: list[Any]) -> None:
        watched = candidate.watched()
        left: dict[int, int] = {}
        for number, (turns, n_bytes) in enumerate(responses):
            for _ in range(turns):
                _send(watched, left)
            stream_id = 4 * number
            opened = Event(Call.OPEN, stream_id, signal=signals[number % len(signals)])
            for event in valid_history([opened, Event(Call.ACTIVATE, stream_id)]):
                watched.take(event)
            left[stream_id] = n_bytes
        while left:
            if _send(watched, left) is None:
                rest = ", ".join(f"{n_bytes} bytes of {key}" for key, n_bytes in left.items())
                raise watched.broken(Law.EVERY_BYTE_ONCE, f"never sent: {rest}")
        # Nothing is left: whoever is picked now breaks the law.
        _send(watched, left)

    some = st.lists(candidate.signals, min_size=1, max_size=8)
    for_all(check, _RESPONSES, some, budget=budget)


def _send(watched: Watched, left: dict[int, int]) -> int | None:
    """Give one turn; a response of no bytes takes one as well."""
    picked = watched.pick()
    if picked is None:
        return None
    if picked not in left:
        sentence = f"stream {picked!r} is picked after its last byte was sent"
        if picked not in watched.signals:
            sentence = f"stream {picked!r} is picked, which {watched.state_of(picked)}"
        raise watched.broken(Law.EVERY_BYTE_ONCE, sentence)
    n_bytes = min(left[picked], PACKET_BYTES)
    left[picked] -= n_bytes
    watched.take(Event(Call.CHARGE, picked, n_bytes=n_bytes))
    if not left[picked]:
        del left[picked]
        watched.take(Event(Call.DEACTIVATE, picked))
    return picked


@checks(Law.PURE_PICK)
def pure_pick(candidate: Candidate, budget: settings) -> None:
    """See that asking thrice gives one answer, and does not change later ones."""

    def check(history: History) -> None:
        watched, plain = candidate.watched(), candidate.watched()
        expected: list[int | None] = []
        plain.play(history, on_pick=expected.append)
        turns = iter(expected)

        def look() -> None:
            first, second, third = watched.pick(), watched.pick(), watched.pick()
            if not first == second == third:
                sentence = f"asked three times in a row, it picks {first}, {second}, {third}"
                raise watched.broken(Law.PURE_PICK, sentence)

        def compare(picked: int | None) -> None:
            unasked = next(turns)
            if picked != unasked:
                sentence = f"{picked} is picked; had nobody asked in between, it would be {unasked}"
                raise watched.broken(Law.PURE_PICK, sentence)
            look()

        watched.play(history, on_pick=compare, after=look)

    for_all(check, candidate.scripts(), budget=budget)


@checks(Law.DETERMINISTIC)
def deterministic(candidate: Candidate, budget: settings) -> None:
    """See that two schedulers that live through the same history side by side pick the same."""

    def check(history: History) -> None:
        one, other = candidate.watched(), candidate.watched()
        for event in history:
            first: list[int | None] = []
            second: list[int | None] = []
            one.play([event], on_pick=first.append)
            other.play([event], on_pick=second.append)
            if first != second or one.pick() != other.pick():
                sentence = "two schedulers with the same history pick differently"
                raise one.broken(Law.DETERMINISTIC, sentence)

    for_all(check, candidate.scripts(), budget=budget)


@checks(Law.SAME_IN_EVERY_PROCESS)
def same_in_every_process(candidate: Candidate, budget: settings) -> None:
    """See that processes that hash with other seeds pick the same."""
    histories: list[History] = []
    # Gathered first, so that each child process is started once and not for each example.
    for_all(histories.append, candidate.scripts(), budget=budget)
    check_every_process_picks_the_same(candidate, histories)


@checks(Law.NEVER_RAISES)
def never_raises(candidate: Candidate, budget: settings) -> None:
    """See that histories, and crowds of 200 streams with 1,000 random events, raise nothing."""
    for_all(lambda history: candidate.watched().play(history), candidate.scripts(), budget=budget)

    def check(seed: int, signals: list[Any]) -> None:
        crowd = _crowd(candidate, random.Random(seed), signals)  # noqa: S311 - no secret
        if (broken := _trouble(candidate, crowd)) is not None:
            # The crowd comes of a seed, which Hypothesis can only replace and not shorten.
            shortest = shortened(crowd, lambda events: _trouble(candidate, events) is not None)
            raise _trouble(candidate, shortest) or broken

    some = st.lists(candidate.signals, min_size=20, max_size=40)
    for_all(check, st.integers(0, 2**32), some, budget=budget, share=10)


def _crowd(candidate: Candidate, source: random.Random, signals: list[Any]) -> History:
    """Return all streams, opened and with data, and random events among them."""
    ids = range(-candidate.placeholders, _CROWD)
    ids_of = [4 * n if n >= 0 else n for n in ids]
    events = [Event(Call.OPEN, n, signal=source.choice(signals)) for n in ids_of]
    events += [Event(Call.ACTIVATE, n) for n in ids_of if n >= 0]
    calls = (Call.UPDATE, Call.UPDATE, Call.ACTIVATE, Call.DEACTIVATE, Call.SERVE, Call.CHARGE)
    for number in range(_CROWD_EVENTS):
        # Few are closed, lest the crowd has gone home before the events are over.
        call = source.choice(calls) if number % 20 else Call.CLOSE
        n_bytes = source.choice((PACKET_BYTES, 600, 0))
        stream_id = source.choice(ids_of)
        events.append(Event(call, stream_id, source.choice(signals), n_bytes))
    return valid_history(events)


def _trouble(candidate: Candidate, history: History) -> BrokenLawError | None:
    try:
        candidate.watched().play(history)
    except BrokenLawError as broken:
        return broken
    return None
