"""Histories by construction: which signals meet, which change into which, and how many streams.

Nothing here depends on luck, or on the version of Hypothesis: a history follows from a law, a seed
and its number. Two in a row open all signals of a small pool at once, the second in the opposite
order, so that each pair of signals meets with either stream before the other. Every eighth is a
crowd of 20 to 300 streams.
"""

from __future__ import annotations

from dataclasses import fields, is_dataclass, replace
from random import Random
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from hypothesis import HealthCheck, Phase, given, seed, settings

from h3sim.conformance.call_sequences import PACKET_BYTES, Call, Event, History, valid_history
from h3sim.signals import H2Priority, StrictPriority
from h3sim.values.constants import STREAM_ID_STEP

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Sequence

    from hypothesis.strategies import SearchStrategy


_N_DRAWN = 300
"""Draws for a pool: more than the values of most strategies, which are then all in it."""
_MOST_OWN = 64
"""The most signals in a pool, unless they are of trees, where weights count."""
_SMALL_POOL = 24
"""The most signals that one history can open at once, and still be read."""
_CROWD_SIZES = (300, 40, 101, 20)
_N_EVENTS = 48
"""Random events of a history; a crowd has more."""
_CALLS = (
    *(Call.SERVE, Call.SERVE, Call.SERVE, Call.UPDATE, Call.UPDATE, Call.DEACTIVATE),
    *(Call.ACTIVATE, Call.ACTIVATE, Call.OPEN, Call.OPEN, Call.CHARGE, Call.CLOSE),
)
_CHARGED_BYTES = (PACKET_BYTES, PACKET_BYTES, PACKET_BYTES, 600, 1, 0, 20_000)
RESPONSE_BYTES = (0, 1, 600, 1400, 2800, 4000, 9000)
"""No bytes, a part of a packet of 1400 bytes, whole packets, and several with a rest."""

_pools: WeakKeyDictionary[SearchStrategy[Any], tuple[Any, ...]] = WeakKeyDictionary()


def pool_of(strategy: SearchStrategy[Any]) -> tuple[Any, ...]:
    """Return the values of a strategy, those with short texts first: all if there are few."""
    pool = _pools.get(strategy)
    if pool is None:
        unique = {repr(value): value for value in drawn(strategy, _N_DRAWN)}
        ordered = [unique[key] for key in sorted(unique, key=lambda text: (len(text), text))]
        # The numbers of types of one's own may have twenty digits, which nobody wants to read.
        is_own = not isinstance(ordered[0], H2Priority | StrictPriority)
        pool = _pools[strategy] = tuple(ordered[:_MOST_OWN] if is_own else ordered)
    return pool


def drawn(strategy: SearchStrategy[Any], n: int, *, number: int = 0) -> list[Any]:
    """Return up to *n* values that Hypothesis draws with the seed *number*."""
    values: list[Any] = []

    @seed(number)
    @settings(
        max_examples=n,
        database=None,
        deadline=None,
        derandomize=False,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(strategy)
    def collect(value: Any) -> None:
        values.append(value)

    collect()
    return values


def planned(
    signals: Sequence[Any],
    *,
    name: str,
    n_histories: int,
    placeholders: int = 0,
    most_streams: int = _CROWD_SIZES[0],
) -> list[History]:
    """Return histories of streams with these *signals*, which *name*, of law and seed, selects.

    >>> first, *_ = planned([None], name="doc", n_histories=2)
    >>> first[0].call
    <Call.OPEN: 'open'>
    """
    made = (_planned(signals, name, k, placeholders, most_streams) for k in range(n_histories))
    return [*dict.fromkeys(made)]


def _planned(
    pool: Sequence[Any], name: str, number: int, placeholders: int, most_streams: int
) -> History:
    rng = Random(f"{name} {number}")  # noqa: S311 - no secret
    # The same order twice, once backwards: of each pair, either comes first.
    shared = Random(f"{name} {number // 2}")  # noqa: S311 - no secret
    order = shared.sample([*pool], min(len(pool), _SMALL_POOL))
    if len(pool) > _SMALL_POOL:
        edges = _edges(pool)
        order[: len(edges)] = edges
        shared.shuffle(order)
    if number % 2:
        order.reverse()
    is_crowd = number % 8 == 7 and most_streams >= _CROWD_SIZES[0]
    if is_crowd:
        n_streams = _CROWD_SIZES[number // 8 % len(_CROWD_SIZES)]
    elif number % 8 < 2:
        n_streams = max(len(order), 2)
    else:
        n_streams = rng.randint(2, 12)
        if number % 8 in (3, 4, 5):
            # Few signals, so that many streams have the same one.
            order = order[: rng.randint(1, 3)]
    n_streams = min(n_streams, most_streams)
    ids = _ids(n_streams, number, rng)
    groups = range(-placeholders, 0)
    n_first = n_streams if number % 2 == 0 or is_crowd or number == 1 else rng.randint(1, n_streams)
    maker = _Maker(order, [*groups, *ids], rng)
    if number % 8 == 2:
        maker.events.append(Event(Call.SERVE))  # a turn before there is any stream
    for index, element_id in enumerate(groups):
        maker.open(element_id, index)
    for index, stream_id in enumerate(ids[:n_first]):
        maker.open(stream_id, index, active=is_crowd or rng.random() < 0.8 or number % 8 < 2)
    if number % 8 == 2 and n_first > 2:
        maker.close_parent(ids[0], ids[1])
    if number % 8 >= 2:
        maker.unopened = ids[n_first:]
        for _ in range(2 * n_streams if is_crowd else _N_EVENTS):
            maker.add_random()
    return valid_history(maker.events)


def _edges(pool: Sequence[Any]) -> list[Any]:
    """Return signals of the lowest and the highest weights, which may have a meaning of their own.

    >>> [each.weight for each in _edges([H2Priority(weight=w) for w in range(1, 257)])]
    [1, 2, 255, 256]
    """
    by_weight = sorted((each for each in pool if hasattr(each, "weight")), key=lambda e: e.weight)
    return [*by_weight[:2], *by_weight[-2:]] if len(by_weight) > 4 else []


def _ids(n_streams: int, number: int, rng: Random) -> list[int]:
    """Return ids of streams: small ones in order or not, large ones, or equal ones modulo 64."""
    match number % 4:
        case 0:
            return [*range(0, STREAM_ID_STEP * n_streams, STREAM_ID_STEP)]
        case 1:
            ids = [*range(0, STREAM_ID_STEP * n_streams, STREAM_ID_STEP)]
        case 2:
            ids = [256 * k for k in range(n_streams)]
        case _:
            ids = [STREAM_ID_STEP * rng.randrange(2**24) for _ in range(n_streams)]
            ids = [*dict.fromkeys(ids)]
    rng.shuffle(ids)
    return ids


class _Maker:
    """Adds events about streams with the signals of *order*."""

    def __init__(self, order: Sequence[Any], ids: Sequence[int], rng: Random) -> None:
        self._order, self._ids, self._rng = order, ids, rng
        self._signals: dict[int, Any] = {}
        self.unopened: list[int] = []
        self.events: list[Event] = []

    def open(self, element_id: int, index: int, *, active: bool = False) -> None:
        """Open a stream or placeholder with the signal of that number."""
        signal = self._adapted(self._order[index % len(self._order)])
        self._signals[element_id] = signal
        n_bytes = self._rng.choice(RESPONSE_BYTES)
        self._add(Call.OPEN, element_id, signal, n_bytes)
        if active and element_id >= 0:
            self._add(Call.ACTIVATE, element_id)

    def close_parent(self, parent_id: int, child_id: int) -> None:
        """Close a stream on which an active one depends, if signals are of trees."""
        signal = self._signals[child_id]
        # Where no signal has a parent, a claim is about siblings only.
        if any(isinstance(each, H2Priority) and each.depends_on for each in self._order):
            self._signals[child_id] = signal = replace(signal, depends_on=parent_id)
            self._add(Call.UPDATE, child_id, signal)
            for stream_id in self._signals:
                # Blocked, so that the child alone can be picked.
                if stream_id >= 0:
                    self._add(Call.DEACTIVATE, stream_id)
            self._add(Call.ACTIVATE, child_id)
            self._add(Call.CLOSE, parent_id)
            del self._signals[parent_id]

    def add_random(self) -> None:
        """Add one random event, and what belongs to it."""
        rng, call = self._rng, self._rng.choice(_CALLS)
        n_bytes = rng.choice(_CHARGED_BYTES)
        if call is Call.OPEN and self.unopened:
            stream_id = self.unopened.pop(0)
            self.open(stream_id, rng.randrange(64), active=rng.random() < 0.7)
        elif call is Call.SERVE:
            self.events.append(Event(call, n_bytes=n_bytes, n_turns=rng.randint(1, 9)))
        elif self._signals:
            stream_id = rng.choice([*self._signals])
            if call is Call.UPDATE:
                self._update(stream_id)
            elif call is Call.DEACTIVATE and rng.random() < 0.5:
                # A pause: the stream is blocked for a moment.
                self._add(call, stream_id)
                self._add(Call.ACTIVATE, stream_id)
            elif call is not Call.CLOSE or len(self._signals) > 1:
                self._add(Call.ACTIVATE if call is Call.OPEN else call, stream_id, n_bytes=n_bytes)
            if call is Call.CLOSE and len(self._signals) > 1:
                del self._signals[stream_id]

    def _update(self, stream_id: int) -> None:
        """Update a stream, which may be blocked meanwhile; often one field of its signal only."""
        rng, before = self._rng, self._signals[stream_id]
        near = [each for each in self._order if n_changed_fields(before, each) == 1]
        signal = self._adapted(rng.choice(near if near and rng.random() < 0.5 else self._order))
        self._signals[stream_id] = signal
        is_blocked = stream_id >= 0 and rng.random() < 0.3
        if is_blocked:
            self._add(Call.DEACTIVATE, stream_id)
        self._add(Call.UPDATE, stream_id, signal)
        if is_blocked:
            self._add(Call.ACTIVATE, stream_id)

    def _add(
        self, call: Call, stream_id: int, signal: Any = None, n_bytes: int = PACKET_BYTES
    ) -> None:
        self.events.append(Event(call, stream_id, signal, n_bytes))

    def _adapted(self, signal: Any) -> Any:
        """Return the signal with a parent among the elements of this history."""
        if not isinstance(signal, H2Priority | StrictPriority) or not signal.depends_on:
            return signal
        streams = [each for each in self._ids if each >= 0]
        if signal.depends_on > 0 and streams:
            parent = streams[signal.depends_on // STREAM_ID_STEP % len(streams)]
            return replace(signal, depends_on=parent)
        return signal


def n_changed_fields(one: Any, other: Any) -> int:
    """Return in how many fields two signals differ; 0 if they are of different types.

    >>> n_changed_fields(H2Priority(weight=1), H2Priority(weight=2))
    1
    """
    if type(one) is not type(other) or not is_dataclass(one):
        return 0
    return sum(getattr(one, f.name) != getattr(other, f.name) for f in fields(one))


def shortest(
    history: History, fails: Callable[[History], bool], known: Container[str] = ()
) -> History:
    """Return a short and simple variant of *history* that still fails.

    *known* has the texts of all signals that may occur.
    """
    for _ in range(4):
        before = history
        history = _without_needless(history, fails)
        history = _simplified(history, fails, known)
        if history == before:
            break
    return history


def _without_needless(history: History, fails: Callable[[History], bool]) -> History:
    """Return a part that still fails, but not without any one or two of its events.

    Pieces of half the history are removed first, then of a quarter, down to one event, with the
    events that the contract forbids without them.
    """
    size = len(history) // 2
    while size:
        index = 0
        while index < len(history):
            shorter = valid_history(history[:index] + history[index + size :])
            if len(shorter) < len(history) and fails(shorter):
                history = shorter
            else:
                index += size
        size //= 2
    pairs = [(i, j) for j in range(len(history)) for i in range(j)] if len(history) <= 16 else []
    for i, j in pairs:
        shorter = valid_history(history[:i] + history[i + 1 : j] + history[j + 1 :])
        if fails(shorter):
            return _without_needless(shorter, fails)
    return history


def _simplified(
    history: History, fails: Callable[[History], bool], known: Container[str]
) -> History:
    """Return a variant with fewer turns, full packets, few signals and small ids."""
    signals = [event.signal for event in history if event.call is Call.OPEN]
    for index, event in enumerate(history):
        simpler: list[Event] = []
        if event.call is Call.SERVE:
            simpler += [replace(event, n_turns=n) for n in (1, 2, event.n_turns - 1)]
            simpler = [each for each in simpler if 0 < each.n_turns < event.n_turns]
        if event.call in (Call.SERVE, Call.CHARGE) and event.n_bytes != PACKET_BYTES:
            simpler.append(replace(event, n_bytes=PACKET_BYTES))
        if event.call in (Call.OPEN, Call.UPDATE):
            simple = [*(s for s in _defaults(event.signal) if repr(s) in known), *signals]
            index_of_own = simple.index(event.signal) if event.signal in simple else len(simple)
            simpler += [replace(event, signal=signal) for signal in simple[:index_of_own]]
        for each in simpler:
            variant = valid_history((*history[:index], each, *history[index + 1 :]))
            if len(variant) == len(history) and fails(variant):
                history = variant
                break
    renumbered = _renumbered(history)
    return renumbered if renumbered != history and fails(renumbered) else history


def _defaults(signal: Any) -> list[Any]:
    """Return the signal that its type has by default, if any."""
    try:
        return [type(signal)()]
    except TypeError:
        return []


def _renumbered(history: History) -> History:
    """Return the history with the ids 0, 4, 8 and so on, in the order of its own."""
    ids = sorted({event.stream_id for event in history if event.call is Call.OPEN})
    new = {key: STREAM_ID_STEP * n for n, key in enumerate(each for each in ids if each >= 0)}

    def renumber(event: Event) -> Event:
        signal = event.signal
        if isinstance(signal, H2Priority | StrictPriority):
            parent = signal.depends_on
            signal = replace(signal, depends_on=None if parent is None else new.get(parent, parent))
        return replace(event, stream_id=new.get(event.stream_id, event.stream_id), signal=signal)

    return tuple(map(renumber, history))
