"""Reference schedulers: slow, plain and obviously right.

It says what a node's virtual time means instead of keeping a queue: a node has one exactly while
it, or something below it, has data. Whoever has none and needs one starts a turn behind the sibling
that was served last; whoever is put in another place needs a new one.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from h3sim.schedulers import Mixed, Quantum, Weights
from h3sim.signals import MAX_URGENCY, BucketPriority, Eps, H2Priority, StrictPriority

if TYPE_CHECKING:
    from collections.abc import Callable

    from h3sim.signals import Signal


@dataclass
class _Stream:
    """An open stream, or a placeholder (id below 0), which never has data."""

    id: int
    is_active: bool = False


StreamT = TypeVar("StreamT", bound=_Stream)


class _Reference(Generic[StreamT]):
    """The open streams in the order in which they were opened, and which of them have data."""

    def __init__(self) -> None:
        self._streams: list[StreamT] = []

    def activate(self, stream_id: int) -> None:
        """Activate the stream."""
        self._stream(stream_id).is_active = True
        self._refresh()

    def deactivate(self, stream_id: int) -> None:
        """Take the stream out of the running."""
        self._stream(stream_id).is_active = False
        self._refresh()

    def close(self, stream_id: int) -> None:
        """Take the stream off the list."""
        self._streams.remove(self._stream(stream_id))
        self._refresh()

    @property
    def ids(self) -> list[int]:
        """The ids of all that is open."""
        return [stream.id for stream in self._streams]

    @property
    def sending(self) -> list[int]:
        """The ids of the streams that have data."""
        return [stream.id for stream in self._streams if stream.is_active]

    def _stream(self, stream_id: int) -> StreamT:
        return next(stream for stream in self._streams if stream.id == stream_id)

    def _refresh(self) -> None:
        """Take notice of a change."""


@dataclass
class _TimedStream(_Stream):
    """A node of a tree: its virtual time is None while nothing at it or below it has data."""

    time: Fraction | None = None


TimedStreamT = TypeVar("TimedStreamT", bound=_TimedStream)


class _ReferenceWithTimes(_Reference[TimedStreamT]):
    """A tree in which exactly the nodes that want to send have a virtual time."""

    def _children(self, node: TimedStreamT) -> list[TimedStreamT]:
        raise NotImplementedError

    def _first_time(self, node: TimedStreamT) -> Fraction:
        """Return the time of a node that begins to want to send."""
        raise NotImplementedError

    def _wants(self, node: TimedStreamT) -> bool:
        return node.is_active or any(self._wants(child) for child in self._children(node))

    def _refresh(self) -> None:
        for node in self._streams:
            if not self._wants(node):
                node.time = None
            elif node.time is None:
                node.time = self._first_time(node)


_ROOT = -(2**32)


@dataclass
class _Node(_TimedStream):
    """A node below its *parent*, which only the root lacks."""

    parent: _Node | None = None
    weight: int = 16
    last_served: Fraction = Fraction(0)


_BANDS: dict[Weights, dict[int, int]] = {
    Weights.SHARES: {},
    Weights.ZERO: {255: 0, 0: 2},
    Weights.ZERO_LAST: {0: 2},
}


class ReferenceTree(_ReferenceWithTimes[_Node]):
    """Behaves as `h3sim.schedulers.TreeScheduler` says that it does, with the same settings."""

    def __init__(self, *, turn_bytes: int = 1400, weights: Weights = Weights.SHARES) -> None:
        super().__init__()
        self._turn_bytes = turn_bytes
        self._default = H2Priority(weight=weights.default)
        self._bands = _BANDS[weights]
        self._root = _Node(_ROOT)

    def open(self, stream_id: int, signal: Signal) -> None:
        """Add a node to the list, and hang it under its parent."""
        priority = self._resolved(signal)
        node = _Node(stream_id, weight=priority.weight)
        self._streams.append(node)
        self._insert(node, priority)
        self._refresh()

    def update(self, stream_id: int, signal: Signal) -> None:
        """Give the node another weight or parent."""
        node, priority = self._node(stream_id), self._resolved(signal)
        if self._band(node.weight) != self._band(priority.weight):
            node.time = None
        node.weight = priority.weight
        parent = self._node(priority.depends_on)
        if parent is not node.parent or priority.exclusive:
            if node in self._ancestors(parent):
                self._hang(parent, _known(node.parent))
            self._insert(node, priority)
        self._refresh()

    def close(self, stream_id: int) -> None:
        """Take the node off the list; its children go to its parent."""
        node = self._node(stream_id)
        for child in self._children(node):
            self._hang(child, _known(node.parent))
        super().close(stream_id)

    def pick(self) -> int | None:
        """Go down from the root, at each level to the child whose time is least."""
        node = self._root
        while not node.is_active:
            waiting = [child for child in self._children(node) if self._wants(child)]
            if not waiting:
                return None
            node = min(waiting, key=self._turn)
        return node.id

    def charge(self, stream_id: int, n_bytes: int) -> None:
        """Charge every node from the stream up."""
        node = self._node(stream_id)
        while node.parent is not None:
            if self._band(node.weight) == 1:
                assert node.time is not None, "who is served has a time"  # noqa: S101
                is_placeholder = node.id < 0
                node.parent.last_served = node.time
                node.time += self._cost(node, self._turn_bytes if is_placeholder else n_bytes)
            node = node.parent

    def parent_of(self, stream_id: int) -> int | None:
        """Return the parent's id, None for the root."""
        parent = _known(self._node(stream_id).parent)
        return None if parent is self._root else parent.id

    def _node(self, stream_id: int | None) -> _Node:
        return self._root if stream_id is None else self._stream(stream_id)

    def _resolved(self, signal: Signal) -> H2Priority:
        """Another type of signal, or a parent that is not there, means the default priority."""
        if not isinstance(signal, H2Priority) or signal.depends_on not in [None, *self.ids]:
            return self._default
        return signal

    def _insert(self, node: _Node, priority: H2Priority) -> None:
        parent = self._node(priority.depends_on)
        self._hang(node, parent)
        if priority.exclusive:
            for child in self._children(parent):
                if child is not node:
                    self._hang(child, node)

    @staticmethod
    def _hang(node: _Node, parent: _Node) -> None:
        node.parent, node.time = parent, None

    def _children(self, node: _Node) -> list[_Node]:
        return [child for child in self._streams if child.parent is node]

    @staticmethod
    def _ancestors(node: _Node | None) -> list[_Node]:
        found = []
        while node is not None:
            found.append(node)
            node = node.parent
        return found

    def _first_time(self, node: _Node) -> Fraction:
        return _known(node.parent).last_served + self._cost(node, self._turn_bytes)

    def _band(self, weight: int) -> int:
        """0 comes before all, 2 behind all; only band 1 shares."""
        return self._bands.get(weight, 1)

    def _cost(self, node: _Node, n_bytes: int) -> Fraction:
        return Fraction(n_bytes * 256, node.weight) if self._band(node.weight) == 1 else Fraction(0)

    def _turn(self, node: _Node) -> tuple[int, Fraction, bool, int]:
        """Earlier time first, then streams by id, then placeholders as they were declared."""
        assert node.time is not None, "who wants to send has a time"  # noqa: S101
        band = self._band(node.weight)
        return band, node.time if band == 1 else Fraction(0), node.id < 0, abs(node.id)


def _known(parent: _Node | None) -> _Node:
    assert parent is not None, "every node but the root has a parent"  # noqa: S101
    return parent


_EXCLUSIVE, _SEQUENTIAL, _SHARED = 3, 2, 1


@dataclass(kw_only=True)
class _BucketStream(_Stream):
    """A stream; *round* is when it may next send among those that share."""

    priority: BucketPriority
    round: int = 0


class ReferenceBuckets(_Reference[_BucketStream]):
    """Behaves as `h3sim.schedulers.BucketScheduler` says that it does."""

    def __init__(self) -> None:
        super().__init__()
        self._round: defaultdict[int, int] = defaultdict(int)
        self._shared_goes: defaultdict[int, bool] = defaultdict(bool)

    def open(self, stream_id: int, signal: Signal) -> None:
        """Add a stream to the list."""
        self._streams.append(_BucketStream(stream_id, priority=self._priority_of(signal)))

    def update(self, stream_id: int, signal: Signal) -> None:
        """Give the stream another place."""
        stream = self._stream(stream_id)
        before, stream.priority = stream.priority, self._priority_of(signal)
        if stream.priority != before:
            self._queue(stream)

    def activate(self, stream_id: int) -> None:
        """Activate the stream."""
        stream = self._stream(stream_id)
        if not stream.is_active:
            self._queue(stream)
        super().activate(stream_id)

    def pick(self) -> int | None:
        """Search the highest bucket for who sends next."""
        active = [stream for stream in self._streams if stream.is_active]
        if not active:
            return None
        bucket = max(stream.priority.bucket for stream in active)
        levels = {
            level: [s for s in active if (s.priority.bucket, s.priority.level) == (bucket, level)]
            for level in (_EXCLUSIVE, _SEQUENTIAL, _SHARED)
        }
        # Arrival order is that of the list; those that share go by rounds, then by id.
        if levels[_EXCLUSIVE]:
            return levels[_EXCLUSIVE][0].id
        if levels[_SHARED] and (self._shared_goes[bucket] or not levels[_SEQUENTIAL]):
            return min(levels[_SHARED], key=lambda stream: (stream.round, stream.id)).id
        return levels[_SEQUENTIAL][0].id

    def charge(self, stream_id: int, n_bytes: int) -> None:  # noqa: ARG002 - a turn is a turn
        """End the stream's turn."""
        stream = self._stream(stream_id)
        bucket, level = stream.priority.bucket, stream.priority.level
        if level == _SHARED:
            self._round[bucket] = stream.round
            stream.round += 1
        if level != _EXCLUSIVE:
            self._shared_goes[bucket] = level == _SEQUENTIAL

    def _queue(self, stream: _BucketStream) -> None:
        """Whoever joins a bucket's round robin takes the first turn in the next round."""
        stream.round = self._round[stream.priority.bucket] + 1

    @staticmethod
    def _priority_of(signal: Signal) -> BucketPriority:
        if isinstance(signal, BucketPriority):
            return signal
        return BucketPriority(bucket=0, level=_SEQUENTIAL)


@dataclass(kw_only=True)
class _Element(_TimedStream):
    """A stream, or a placeholder; one that is only named as a parent is implied."""

    priority: StrictPriority
    is_implied: bool = False


class ReferenceStrict(_ReferenceWithTimes[_Element]):
    """Behaves as `h3sim.schedulers.StrictScheduler` says that it does."""

    def __init__(self, *, turn_bytes: int = 1400) -> None:
        super().__init__()
        self._turn_bytes = turn_bytes
        self._last: dict[tuple[int | None, int], Fraction] = {}
        """The time of who was served last, by parent and strict priority."""

    def open(self, stream_id: int, signal: Signal) -> None:
        """Add an element to the list, or give the one that is implied its own place."""
        known = [element for element in self._streams if element.id == stream_id]
        if known:
            known[0].is_implied = False
            self.update(stream_id, signal)
            return
        priority = self._resolved(signal)
        self._streams.append(_Element(stream_id, priority=priority))

    def update(self, stream_id: int, signal: Signal) -> None:
        """Begin the element anew in another position; a new weight alone counts from now on."""
        element, priority = self._stream(stream_id), self._resolved(signal)
        before, above = element.priority, priority.depends_on
        if above is not None and stream_id in self._ancestors(above):
            other = self._stream(above)
            if other.priority.depends_on != before.depends_on:
                other.priority = replace(other.priority, depends_on=before.depends_on)
                other.time = None
        element.priority = priority
        if (before.depends_on, before.strict) != (priority.depends_on, priority.strict):
            element.time = None
        self._refresh()

    def close(self, stream_id: int) -> None:
        """Take the element off the list; what is below it moves up."""
        gone = self._stream(stream_id)
        for element in self._children(gone):
            element.priority = replace(element.priority, depends_on=gone.priority.depends_on)
            element.time = None
        super().close(stream_id)

    def pick(self) -> int | None:
        """Go down to the highest strict priority, and there to the least time."""
        waiting = self._below(None)
        while waiting := [one for one in waiting if self._wants(one)]:
            first = min(waiting, key=self._turn)
            if first.id >= 0:
                return first.id
            waiting = self._children(first)
        return None

    def charge(self, stream_id: int, n_bytes: int) -> None:
        """Charge every element from the stream up; placeholders pay for a turn."""
        element = self._stream(stream_id)
        while True:
            above, strict = element.priority.depends_on, element.priority.strict
            assert element.time is not None, "who is served has a time"  # noqa: S101
            self._last[above, strict] = element.time
            cost = self._turn_bytes if element.id < 0 else n_bytes
            element.time += Fraction(cost * 256, element.priority.weight)
            if above is None:
                return
            element = self._stream(above)

    @property
    def ids(self) -> list[int]:
        """The ids of all that is open."""
        return [element.id for element in self._streams if not element.is_implied]

    def _resolved(self, signal: Signal) -> StrictPriority:
        priority = signal if isinstance(signal, StrictPriority) else StrictPriority()
        above = priority.depends_on
        if above is not None and above not in [element.id for element in self._streams]:
            self._streams.append(_Element(above, priority=StrictPriority(), is_implied=True))
        return priority

    def _children(self, node: _Element) -> list[_Element]:
        return self._below(node.id)

    def _below(self, element_id: int | None) -> list[_Element]:
        return [one for one in self._streams if one.priority.depends_on == element_id]

    def _ancestors(self, element_id: int | None) -> list[int]:
        found = []
        while element_id is not None:
            found.append(element_id)
            element_id = self._stream(element_id).priority.depends_on
        return found

    def _first_time(self, node: _Element) -> Fraction:
        priority = node.priority
        last = self._last.get((priority.depends_on, priority.strict), Fraction(0))
        return last + Fraction(self._turn_bytes * 256, priority.weight)

    def _turn(self, element: _Element) -> tuple[int, Fraction, bool, int]:
        """Higher strict priority, earlier time, streams by id, placeholders as declared."""
        assert element.time is not None, "who wants to send has a time"  # noqa: S101
        return -element.priority.strict, element.time, element.id < 0, abs(element.id)


@dataclass
class _SignalledStream(_Stream):
    """A stream with its last signal."""

    signal: Any = None


class _Listed(_Reference[_SignalledStream]):
    """Open streams with their signals."""

    def open(self, stream_id: int, signal: Signal) -> None:
        """Record the signal of the stream."""
        self._streams.append(_SignalledStream(stream_id, signal=signal))

    def update(self, stream_id: int, signal: Signal) -> None:
        """Record the new signal."""
        self._stream(stream_id).signal = signal


class ReferenceOrder(_Listed):
    """One stream at a time, that of the least *rank(stream_id, signal)*; then that of the least id.

    With the id as the rank this is first in, first out; with the urgency, RFC 9218 for responses
    that are not incremental.

    >>> reference = ReferenceOrder(lambda stream_id, signal: signal)
    >>> for stream_id, signal in ((0, 7), (4, 3)):
    ...     reference.open(stream_id, signal)
    ...     reference.activate(stream_id)
    >>> reference.pick()
    4
    """

    def __init__(self, rank: Callable[[int, Any], Any]) -> None:
        super().__init__()
        self._rank = rank

    def pick(self) -> int | None:
        """Search for the least rank."""
        ranks = [
            (self._rank(each.id, each.signal), each.id) for each in self._streams if each.is_active
        ]
        return min(ranks)[1] if ranks else None

    def charge(self, stream_id: int, n_bytes: int) -> None:
        """Change nothing."""


class ReferenceRounds(_Listed):
    """A turn for each in a round, by id; whoever joins waits for the next round."""

    def __init__(self) -> None:
        super().__init__()
        self._round = 0
        self._rounds: dict[int, int] = {}

    def activate(self, stream_id: int) -> None:
        """Put the stream among those that take turns from the next round on."""
        if not self._stream(stream_id).is_active:
            self._rounds[stream_id] = self._round + 1
        super().activate(stream_id)

    def pick(self) -> int | None:
        """Search for whose round came first."""
        turns = [(self._rounds[key], key) for key in self.sending]
        return min(turns)[1] if turns else None

    def charge(self, stream_id: int, n_bytes: int) -> None:  # noqa: ARG002 - a turn is a turn
        """Move the stream to the next round."""
        self._round = self._rounds[stream_id]
        self._rounds[stream_id] += 1


@dataclass(kw_only=True)
class _EpsStream(_Stream):
    """A stream: *position* in the queue of those that share, *used* of its turn so far."""

    signal: Eps
    position: int = 0
    round: int = 0
    used: int = 0
    was_charged: bool = False
    is_first_turn: bool = False


class ReferenceEps(_Reference[_EpsStream]):
    """Slow model of RFC 9218 § 10, with the behaviour of `h3sim.schedulers.EpsScheduler`.

    *mixed* is what happens where incremental and other responses have one urgency.

    >>> reference = ReferenceEps(mixed=Mixed.NON_INCREMENTAL_FIRST)
    >>> for stream_id, incremental in ((0, True), (4, False)):
    ...     reference.open(stream_id, Eps(incremental=incremental))
    ...     reference.activate(stream_id)
    >>> reference.pick()
    4
    """

    def __init__(
        self,
        *,
        mixed: Mixed = Mixed.NON_INCREMENTAL_FIRST,
        turn: Quantum = Quantum(),  # noqa: B008 - a frozen value
    ) -> None:
        super().__init__()
        self._mixed, self._turn = mixed, turn
        self._n_opened = 0
        self._shared_goes = [mixed is Mixed.HALVES_INCREMENTAL_FIRST] * (MAX_URGENCY + 1)

    def open(self, stream_id: int, signal: Signal) -> None:
        """Add a stream to the list."""
        self._streams.append(_EpsStream(stream_id, signal=self._eps(signal)))

    def update(self, stream_id: int, signal: Signal) -> None:
        """Give the stream another signal, behind those that have it."""
        stream, eps = self._stream(stream_id), self._eps(signal)
        if eps == stream.signal:
            return
        was_active, has_begun = stream.is_active, stream.used > 0
        self.deactivate(stream_id)
        stream.signal = eps
        if was_active:
            self.activate(stream_id)
            # In a list of rounds, a turn that was begun with the last signal counts.
            stream.round += has_begun and eps.incremental

    def activate(self, stream_id: int) -> None:
        """Activate the stream."""
        stream = self._stream(stream_id)
        if stream.is_active:
            return
        others = self._level(stream.signal.urgency)
        stream.round = min(((s.round, s.id) for s in others), default=(0, 0))[0]
        stream.is_active = True
        stream.is_first_turn = stream.signal.incremental and not stream.was_charged
        self._queue(stream)

    def deactivate(self, stream_id: int) -> None:
        """Take the stream out of the running; its turn is over."""
        stream = self._stream(stream_id)
        if stream.is_active and stream.used:
            self._shared_goes[stream.signal.urgency] = not self._shares(stream)
        stream.is_active, stream.used = False, 0

    def close(self, stream_id: int) -> None:
        """Take the stream off the list."""
        self.deactivate(stream_id)
        super().close(stream_id)

    def pick(self) -> int | None:
        """Search the most urgent streams for the next to send."""
        active = [stream for stream in self._streams if stream.is_active]
        if not active:
            return None
        urgency = min(stream.signal.urgency for stream in active)
        level = self._level(urgency)
        if self._mixed is Mixed.SHARED_LIST:
            return min(level, key=lambda stream: (stream.round, stream.id)).id
        alone = [stream for stream in level if not self._shares(stream)]
        shared = [stream for stream in level if self._shares(stream)]
        halves = (Mixed.HALVES, Mixed.HALVES_INCREMENTAL_FIRST)
        is_their_half = self._mixed in halves and self._shared_goes[urgency]
        if shared and (is_their_half or not alone):
            return min(shared, key=lambda stream: stream.position).id
        return min(stream.id for stream in alone)

    def charge(self, stream_id: int, n_bytes: int) -> None:
        """Count a packet of the stream's turn."""
        stream = self._stream(stream_id)
        stream.was_charged = True
        size_bytes = self._turn.size_bytes
        stream.used += 1 if size_bytes is None else n_bytes
        turns = stream.used // (self._turn.packets if size_bytes is None else size_bytes)
        # With halves, a turn that goes on leaves the next packet to its own kind.
        self._shared_goes[stream.signal.urgency] = self._shares(stream) == (not turns)
        if not turns:
            return
        stream.used = 0
        if stream.signal.incremental and len(self._level(stream.signal.urgency)) > 1:
            stream.round += turns
        stream.is_first_turn = False
        self._queue(stream)

    def _shares(self, stream: _EpsStream) -> bool:
        """Return whether the stream takes turns at its urgency now."""
        if self._mixed is Mixed.ALL_SHARE:
            return True
        if self._mixed is Mixed.FIRST_TURN and stream.is_first_turn:
            return False
        return stream.signal.incremental

    def _level(self, urgency: int) -> list[_EpsStream]:
        return [s for s in self._streams if s.is_active and s.signal.urgency == urgency]

    def _queue(self, stream: _EpsStream) -> None:
        self._n_opened += 1
        stream.position = self._n_opened

    @staticmethod
    def _eps(signal: Signal) -> Eps:
        return signal if isinstance(signal, Eps) else Eps()
