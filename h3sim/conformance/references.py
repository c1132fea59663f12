"""Reference schedulers: slow and simple models of those in `h3sim.schedulers`.

They search lists of streams instead of keeping queues. In trees, a node has a virtual time exactly
while it, or a node below it, has data. A new time is one turn after that of the sibling that was
served last, and a node that gets another place gets a new time.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from h3sim.schedulers import Mixed, Quantum, Weights
from h3sim.signals import (
    MAX_URGENCY,
    MAX_WEIGHT,
    BucketPriority,
    Eps,
    H2Priority,
    StrictPriority,
)

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
        """Deactivate the stream."""
        self._stream(stream_id).is_active = False
        self._refresh()

    def close(self, stream_id: int) -> None:
        """Remove the stream."""
        self._streams.remove(self._stream(stream_id))
        self._refresh()

    @property
    def ids(self) -> list[int]:
        """The ids of all open streams and placeholders."""
        return [stream.id for stream in self._streams]

    @property
    def sending(self) -> list[int]:
        """The ids of the streams that have data."""
        return [stream.id for stream in self._streams if stream.is_active]

    def _stream(self, stream_id: int) -> StreamT:
        return next(stream for stream in self._streams if stream.id == stream_id)

    def _refresh(self) -> None:
        """Update what depends on which streams are open and active."""


@dataclass
class _TimedStream(_Stream):
    """A node of a tree: its virtual time is None while nothing at it or below it has data."""

    time: Fraction | None = None


TimedStreamT = TypeVar("TimedStreamT", bound=_TimedStream)


class _ReferenceWithTimes(_Reference[TimedStreamT]):
    """A tree in which a node has a virtual time if it, or a node below it, has data."""

    def _children(self, node: TimedStreamT) -> list[TimedStreamT]:
        raise NotImplementedError

    def _first_time(self, node: TimedStreamT) -> Fraction:
        """Return the virtual time of a node that had none."""
        raise NotImplementedError

    def _has_data(self, node: TimedStreamT) -> bool:
        """Return whether the node, or a node below it, has data."""
        return node.is_active or any(self._has_data(child) for child in self._children(node))

    def _refresh(self) -> None:
        for node in self._streams:
            if not self._has_data(node):
                node.time = None
            elif node.time is None:
                node.time = self._first_time(node)


_ROOT_ID = -(2**32)
"""Below the ids of all placeholders."""


@dataclass
class _Node(_TimedStream):
    """A node below its *parent*, which only the root lacks."""

    parent: _Node | None = None
    weight: int = 16
    last_served: Fraction = Fraction(0)


_FIRST, _SHARING, _LAST = 0, 1, 2
"""Bands of siblings by weight, for servers in which some weights do not share."""
_BANDS: dict[Weights, dict[int, int]] = {
    Weights.SHARES: {},
    Weights.ZERO: {255: _FIRST, 0: _LAST},
    Weights.ZERO_LAST: {0: _LAST},
}
"""Band of special weights: served before all others, or after them. Others share by weight."""


class ReferenceTree(_ReferenceWithTimes[_Node]):
    """Slow model of `h3sim.schedulers.TreeScheduler`, with the same settings."""

    def __init__(self, *, turn_bytes: int = 1400, weights: Weights = Weights.SHARES) -> None:
        super().__init__()
        self._turn_bytes = turn_bytes
        self._default = H2Priority(weight=weights.default)
        self._bands = _BANDS[weights]
        self._root = _Node(_ROOT_ID)

    def open(self, stream_id: int, signal: Signal) -> None:
        """Add a node below its parent."""
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
                self._move_below(_required_parent(node), parent)
            self._insert(node, priority)
        self._refresh()

    def close(self, stream_id: int) -> None:
        """Remove the node; its children go to its parent."""
        node = self._node(stream_id)
        for child in self._children(node):
            self._move_below(_required_parent(node), child)
        super().close(stream_id)

    def pick(self) -> int | None:
        """Go down from the root, at each level to the child whose time is least."""
        node = self._root
        while not node.is_active:
            waiting = [child for child in self._children(node) if self._has_data(child)]
            if not waiting:
                return None
            node = min(waiting, key=self._order)
        return node.id

    def charge(self, stream_id: int, n_bytes: int) -> None:
        """Charge every node from the stream up."""
        node = self._node(stream_id)
        while node.parent is not None:
            if self._band(node.weight) == _SHARING:
                assert node.time is not None, "a node that is served has a time"  # noqa: S101
                is_placeholder = node.id < 0
                node.parent.last_served = node.time
                node.time += self._cost(node, self._turn_bytes if is_placeholder else n_bytes)
            node = node.parent

    def parent_of(self, stream_id: int) -> int | None:
        """Return the parent's id, None for the root."""
        parent = _required_parent(self._node(stream_id))
        return None if parent is self._root else parent.id

    def _node(self, stream_id: int | None) -> _Node:
        return self._root if stream_id is None else self._stream(stream_id)

    def _resolved(self, signal: Signal) -> H2Priority:
        """Return the priority; for another type of signal or an unknown parent, the default."""
        if not isinstance(signal, H2Priority) or signal.depends_on not in [None, *self.ids]:
            return self._default
        return signal

    def _insert(self, node: _Node, priority: H2Priority) -> None:
        parent = self._node(priority.depends_on)
        self._move_below(parent, node)
        if priority.exclusive:
            for child in self._children(parent):
                if child is not node:
                    self._move_below(node, child)

    @staticmethod
    def _move_below(parent: _Node, node: _Node) -> None:
        node.parent, node.time = parent, None

    def _children(self, node: _Node) -> list[_Node]:
        return [child for child in self._streams if child.parent is node]

    @staticmethod
    def _ancestors(node: _Node | None) -> list[_Node]:
        """Return the node and all nodes above it."""
        ancestors = []
        while node is not None:
            ancestors.append(node)
            node = node.parent
        return ancestors

    def _first_time(self, node: _Node) -> Fraction:
        return _required_parent(node).last_served + self._cost(node, self._turn_bytes)

    def _band(self, weight: int) -> int:
        return self._bands.get(weight, _SHARING)

    def _cost(self, node: _Node, n_bytes: int) -> Fraction:
        if self._band(node.weight) != _SHARING:
            return Fraction(0)
        return Fraction(n_bytes * MAX_WEIGHT, node.weight)

    def _order(self, node: _Node) -> tuple[int, Fraction, bool, int]:
        """Earlier time first, then streams by id, then placeholders as they were declared."""
        assert node.time is not None, "a node with data has a time"  # noqa: S101
        band = self._band(node.weight)
        time = node.time if band == _SHARING else Fraction(0)
        return band, time, node.id < 0, abs(node.id)


def _required_parent(node: _Node) -> _Node:
    assert node.parent is not None, "every node but the root has a parent"  # noqa: S101
    return node.parent


_EXCLUSIVE, _SEQUENTIAL, _SHARED = 3, 2, 1
"""Levels of a bucket."""


@dataclass(kw_only=True)
class _BucketStream(_Stream):
    """A stream in a bucket."""

    priority: BucketPriority
    round: int = 0
    """Round of its next turn among the streams that share the bucket."""


class ReferenceBuckets(_Reference[_BucketStream]):
    """Slow model of `h3sim.schedulers.BucketScheduler`."""

    def __init__(self) -> None:
        super().__init__()
        self._round: defaultdict[int, int] = defaultdict(int)  # of each bucket
        self._is_shared_turn: defaultdict[int, bool] = defaultdict(bool)  # in each bucket

    def open(self, stream_id: int, signal: Signal) -> None:
        """Add a stream to the list."""
        self._streams.append(_BucketStream(stream_id, priority=self._priority_of(signal)))

    def update(self, stream_id: int, signal: Signal) -> None:
        """Give the stream another place."""
        stream = self._stream(stream_id)
        previous, stream.priority = stream.priority, self._priority_of(signal)
        if stream.priority != previous:
            self._queue(stream)

    def activate(self, stream_id: int) -> None:
        """Activate the stream."""
        stream = self._stream(stream_id)
        if not stream.is_active:
            self._queue(stream)
        super().activate(stream_id)

    def pick(self) -> int | None:
        """Search the highest bucket for the next stream."""
        active = [stream for stream in self._streams if stream.is_active]
        if not active:
            return None
        bucket = max(stream.priority.bucket for stream in active)
        exclusive, sequential, shared = (
            [s for s in active if (s.priority.bucket, s.priority.level) == (bucket, level)]
            for level in (_EXCLUSIVE, _SEQUENTIAL, _SHARED)
        )
        # One at a time by id (Marx 2019 § 3.3); streams that share go by rounds, then by id.
        if exclusive:
            return min(stream.id for stream in exclusive)
        if shared and (self._is_shared_turn[bucket] or not sequential):
            return min(shared, key=lambda stream: (stream.round, stream.id)).id
        return min(stream.id for stream in sequential)

    def charge(self, stream_id: int, n_bytes: int) -> None:  # noqa: ARG002 - turns have any size
        """End the stream's turn."""
        stream = self._stream(stream_id)
        bucket, level = stream.priority.bucket, stream.priority.level
        if level == _SHARED:
            self._round[bucket] = stream.round
            stream.round += 1
        if level != _EXCLUSIVE:
            self._is_shared_turn[bucket] = level == _SEQUENTIAL

    def _queue(self, stream: _BucketStream) -> None:
        """Give a stream that joins a bucket's round robin its first turn in the next round."""
        stream.round = self._round[stream.priority.bucket] + 1

    @staticmethod
    def _priority_of(signal: Signal) -> BucketPriority:
        if isinstance(signal, BucketPriority):
            return signal
        return BucketPriority(bucket=0, level=_SEQUENTIAL)


@dataclass(kw_only=True)
class _Element(_TimedStream):
    """A stream, or a placeholder."""

    priority: StrictPriority
    is_implied: bool = False
    """True if it is not open, but named as a parent."""


class ReferenceStrict(_ReferenceWithTimes[_Element]):
    """Slow model of `h3sim.schedulers.StrictScheduler`."""

    def __init__(self, *, turn_bytes: int = 1400) -> None:
        super().__init__()
        self._turn_bytes = turn_bytes
        self._last_served: dict[tuple[int | None, int], Fraction] = {}
        """Time of the element that was served last, by parent and strict priority."""

    def open(self, stream_id: int, signal: Signal) -> None:
        """Add an element, or update the one that is implied."""
        for element in self._streams:
            if element.id == stream_id:
                element.is_implied = False
                self.update(stream_id, signal)
                return
        priority = self._resolved(signal)
        self._streams.append(_Element(stream_id, priority=priority))

    def update(self, stream_id: int, signal: Signal) -> None:
        """Move an element, which gets a new time unless only its weight changes."""
        element, priority = self._stream(stream_id), self._resolved(signal)
        previous, parent_id = element.priority, priority.depends_on
        if parent_id is not None and stream_id in self._ancestors(parent_id):
            parent = self._stream(parent_id)
            if parent.priority.depends_on != previous.depends_on:
                parent.priority = replace(parent.priority, depends_on=previous.depends_on)
                parent.time = None
        element.priority = priority
        if (previous.depends_on, previous.strict) != (priority.depends_on, priority.strict):
            element.time = None
        self._refresh()

    def close(self, stream_id: int) -> None:
        """Remove the element; its children go to its parent."""
        closed = self._stream(stream_id)
        for element in self._children(closed):
            element.priority = replace(element.priority, depends_on=closed.priority.depends_on)
            element.time = None
        super().close(stream_id)

    def pick(self) -> int | None:
        """Go down to the highest strict priority, and there to the least time."""
        waiting = self._below(None)
        while waiting := [element for element in waiting if self._has_data(element)]:
            first = min(waiting, key=self._order)
            if first.id >= 0:
                return first.id
            waiting = self._children(first)
        return None

    def charge(self, stream_id: int, n_bytes: int) -> None:
        """Charge every element from the stream up; placeholders pay for a turn."""
        element = self._stream(stream_id)
        while True:
            parent_id, strict = element.priority.depends_on, element.priority.strict
            assert element.time is not None, "an element that is served has a time"  # noqa: S101
            self._last_served[parent_id, strict] = element.time
            cost = self._turn_bytes if element.id < 0 else n_bytes
            element.time += Fraction(cost * MAX_WEIGHT, element.priority.weight)
            if parent_id is None:
                return
            element = self._stream(parent_id)

    @property
    def ids(self) -> list[int]:
        """The ids of all open streams and placeholders."""
        return [element.id for element in self._streams if not element.is_implied]

    def _resolved(self, signal: Signal) -> StrictPriority:
        priority = signal if isinstance(signal, StrictPriority) else StrictPriority()
        parent_id = priority.depends_on
        if parent_id is not None and parent_id not in [element.id for element in self._streams]:
            self._streams.append(_Element(parent_id, priority=StrictPriority(), is_implied=True))
        return priority

    def _children(self, node: _Element) -> list[_Element]:
        return self._below(node.id)

    def _below(self, element_id: int | None) -> list[_Element]:
        return [element for element in self._streams if element.priority.depends_on == element_id]

    def _ancestors(self, element_id: int | None) -> list[int]:
        """Return the id of the element and of all elements above it."""
        ancestors = []
        while element_id is not None:
            ancestors.append(element_id)
            element_id = self._stream(element_id).priority.depends_on
        return ancestors

    def _first_time(self, node: _Element) -> Fraction:
        priority = node.priority
        last_served = self._last_served.get((priority.depends_on, priority.strict), Fraction(0))
        return last_served + Fraction(self._turn_bytes * MAX_WEIGHT, priority.weight)

    def _order(self, element: _Element) -> tuple[int, Fraction, bool, int]:
        """Higher strict priority, earlier time, streams by id, placeholders as declared."""
        assert element.time is not None, "an element with data has a time"  # noqa: S101
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
        _, stream_id = min(ranks, default=(None, None))
        return stream_id

    def charge(self, stream_id: int, n_bytes: int) -> None:
        """Change nothing."""


class ReferenceRounds(_Listed):
    """A turn for each active stream in a round, by id; streams join in the next round."""

    def __init__(self) -> None:
        super().__init__()
        self._round = 0
        self._rounds: dict[int, int] = {}

    def activate(self, stream_id: int) -> None:
        """Add the stream to those that take turns from the next round on."""
        if not self._stream(stream_id).is_active:
            self._rounds[stream_id] = self._round + 1
        super().activate(stream_id)

    def pick(self) -> int | None:
        """Search for the earliest round."""
        turns = [(self._rounds[key], key) for key in self.sending]
        _, stream_id = min(turns, default=(None, None))
        return stream_id

    def charge(self, stream_id: int, n_bytes: int) -> None:  # noqa: ARG002 - turns have any size
        """Move the stream to the next round."""
        self._round = self._rounds[stream_id]
        self._rounds[stream_id] += 1


@dataclass(kw_only=True)
class _EpsStream(_Stream):
    """A stream with its place at its urgency."""

    signal: Eps
    position: int = 0
    """Place in the queue of streams that share."""
    round: int = 0
    used: int = 0
    """Packets or bytes of its turn so far."""
    was_charged: bool = False
    is_first_turn: bool = False


class ReferenceEps(_Reference[_EpsStream]):
    """Slow model of RFC 9218 § 10, with the behaviour of `h3sim.schedulers.EpsScheduler`.

    *mixed* is the order of incremental and non-incremental responses of one urgency.

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
        self._last_position = 0
        self._is_shared_turn = [mixed is Mixed.HALVES_INCREMENTAL_FIRST] * (MAX_URGENCY + 1)

    def open(self, stream_id: int, signal: Signal) -> None:
        """Add a stream to the list."""
        self._streams.append(_EpsStream(stream_id, signal=self._eps(signal)))

    def update(self, stream_id: int, signal: Signal) -> None:
        """Give the stream another signal, and the last place among streams with that signal."""
        stream, eps = self._stream(stream_id), self._eps(signal)
        if eps == stream.signal:
            return
        was_active, has_begun = stream.is_active, stream.used > 0
        self.deactivate(stream_id)
        stream.signal = eps
        if was_active:
            self.activate(stream_id)
            # In a list of rounds, a turn that began with the previous signal counts.
            stream.round += has_begun and eps.incremental

    def activate(self, stream_id: int) -> None:
        """Activate the stream."""
        stream = self._stream(stream_id)
        if stream.is_active:
            return
        others = self._level(stream.signal.urgency)
        stream.round = min((other.round for other in others), default=0)
        stream.is_active = True
        stream.is_first_turn = stream.signal.incremental and not stream.was_charged
        self._queue(stream)

    def deactivate(self, stream_id: int) -> None:
        """Deactivate the stream, whose turn ends."""
        stream = self._stream(stream_id)
        if stream.is_active and stream.used:
            self._is_shared_turn[stream.signal.urgency] = not self._shares(stream)
        stream.is_active, stream.used = False, 0

    def close(self, stream_id: int) -> None:
        """Remove the stream."""
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
        is_shared_half = self._mixed in halves and self._is_shared_turn[urgency]
        if shared and (is_shared_half or not alone):
            return min(shared, key=lambda stream: stream.position).id
        return min(stream.id for stream in alone)

    def charge(self, stream_id: int, n_bytes: int) -> None:
        """Count a packet of the stream's turn."""
        stream = self._stream(stream_id)
        stream.was_charged = True
        size_bytes = self._turn.size_bytes
        stream.used += 1 if size_bytes is None else n_bytes
        n_turns = stream.used // (self._turn.packets if size_bytes is None else size_bytes)
        # With halves, the other half is next when a turn ends, and the same half until then.
        self._is_shared_turn[stream.signal.urgency] = self._shares(stream) == (not n_turns)
        if not n_turns:
            return
        stream.used = 0
        if stream.signal.incremental and len(self._level(stream.signal.urgency)) > 1:
            stream.round += n_turns
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
        self._last_position += 1
        stream.position = self._last_position

    @staticmethod
    def _eps(signal: Signal) -> Eps:
        return signal if isinstance(signal, Eps) else Eps()
