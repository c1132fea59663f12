"""Client policies: the signals sent when a stream is requested and when it closes.

As in Marx 2019, policies share the server's view: each change reaches the scheduler at once, and a
stream leaves the tree some time after its last chunk was sent.

Read next, on the path of docs/reading.md: `h3sim/http/stream_sender.py`.
"""

from __future__ import annotations

from collections import defaultdict
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from h3sim.page import UNCHANGED, Resource
from h3sim.schemes.model import RecordedTreeClass, with_recorded_groups
from h3sim.schemes.policy_base import Policy
from h3sim.schemes.ranks import RankPolicy
from h3sim.schemes.registry import SignalKind
from h3sim.schemes.rules import Arrangement, PriorityClass
from h3sim.signals import BucketPriority, Eps, H2Priority, StrictPriority, placeholder_id

if TYPE_CHECKING:
    from h3sim.page import Page, ResourceState
    from h3sim.schemes.model import Scheme
    from h3sim.schemes.rules import Placeholder
    from h3sim.signals import Signal, SignalChange


class QuickerChain:
    """The single chain of a tree, and the last stream of each class in it (Quicker).

    If the last stream of a class leaves the tree, its parent replaces it; that may be a stream of a
    higher class. The next stream of the class is then inserted right below it, and so before later
    streams of the higher class.
    """

    def __init__(self) -> None:
        self._tails: dict[str, int | None] = {}
        """The last stream of each class, or the one that has replaced it."""
        self._parents: dict[int, int | None] = {}
        """The stream directly above each one; None for the root."""
        self._children: dict[int | None, int | None] = {}
        """The stream directly below each one, and below the root (None)."""

    def append(self, stream_id: int, class_names: list[str]) -> int | None:
        """Insert a stream after the last of the first class that has one; return that one."""
        above = None
        for name in class_names:
            above = self._tails.get(name)
            if above is not None:
                break
        # Exclusive: the child of that one is now below the new stream.
        below = self._children.get(above)
        self._parents[stream_id], self._children[stream_id] = above, below
        self._children[above] = stream_id
        if below is not None:
            self._parents[below] = stream_id
        self._tails[class_names[0]] = stream_id
        return above

    def neighbours(self, stream_id: int) -> tuple[int | None, int | None]:
        """Return the streams directly above and below one."""
        return self._parents[stream_id], self._children.get(stream_id)

    def remove(self, stream_id: int) -> None:
        """Remove a stream, if it is in the chain."""
        if stream_id not in self._parents:
            return
        above, below = self._parents.pop(stream_id), self._children.pop(stream_id)
        self._children[above] = below
        if below is not None:
            self._parents[below] = above
        # Several classes may share one last stream.
        for name, tail in self._tails.items():
            if tail == stream_id:
                self._tails[name] = above


def make_policy(scheme: Scheme, page: Page, *, sends_updates: bool = True) -> Policy:
    """Return a new policy for one connection that loads *page*.

    Without *sends_updates* the client sends no signals for open streams.
    """
    if scheme.rank_by is not None:
        return RankPolicy(scheme.rank_by, page)
    updates = scheme.updates if sends_updates else ()
    match scheme.mechanism.signal_kind:
        case SignalKind.BUCKETS:
            return _BucketPolicy(scheme, page, updates)
        case SignalKind.EPS:
            return _EpsPolicy(scheme, page, updates)
        case SignalKind.STRICT:
            return _StrictPolicy(scheme, page, updates)
        case _ if scheme.recorded is not None:
            return _RecordedTreePolicy(with_recorded_groups(scheme, page), page, updates)
        case _:
            return _TreePolicy(scheme, page, updates)


class _OpenStream(NamedTuple):
    """A stream that may change its class."""

    resource: Resource
    images_before: int
    priority_class: PriorityClass


# Under names of their own: looking up an enum member takes as long as half a pick.
_SIBLINGS, _CHAIN = Arrangement.SIBLINGS, Arrangement.CHAIN

_MAX_CACHED_PRIORITIES = 2**13
"""Streams have the same ids in every load, so the positions of a chain recur in the next one."""


@lru_cache(_MAX_CACHED_PRIORITIES)
def _h2_priority(weight: int, depends_on: int | None, exclusive: bool) -> H2Priority:
    """Return a position in the tree; validating a new one takes as long as scheduling a packet."""
    return H2Priority(weight=weight, depends_on=depends_on, exclusive=exclusive)


@lru_cache(_MAX_CACHED_PRIORITIES)
def _strict_priority(weight: int, strict: int, depends_on: int | None) -> StrictPriority:
    """Return a position by strict priority, of which a page has a handful."""
    return StrictPriority(weight=weight, strict=strict, depends_on=depends_on)


class _ClassPolicy(Policy):
    """Classifies resources when they are requested, and again when their state changes."""

    def __init__(self, scheme: Scheme, page: Page, updates: tuple[str, ...]) -> None:
        self._scheme = scheme
        self._updates = updates
        self._plays_recorded = scheme.recorded is not None
        self._combinations = page.sorts
        """The combination of properties that each resource has, as a number."""
        self._n_first_images = scheme.n_first_images
        self._initial_classes: dict[int, PriorityClass] = {}
        """The class of resources in their initial state, by their combination and, as far as it
        counts, the number of images before."""
        self._images_before = page.images_before
        self._is_as_written = True
        """True while no state has changed: in most loads, from beginning to end."""
        self._tab_state = UNCHANGED
        """The changed state that all resources share."""
        self._states: dict[str, ResourceState] = {}
        """The changed state of single resources, by ID."""
        self._open: dict[int, _OpenStream] = {}
        """The streams that may still change their class."""
        self._class_signals: dict[str, Signal] = {}
        """The signal of each class, if it is the same for all its streams."""

    def on_connected(self) -> list[SignalChange]:
        return []

    def on_requested(self, stream_id: int, resource: Resource) -> list[SignalChange]:
        """Return the changes due to the request, by the class of its resource."""
        images_before = self._images_before[resource.id]
        entry = self._class_of(resource, images_before)
        self._open[stream_id] = _OpenStream(resource, images_before, entry)
        return self._join_changes(stream_id, entry)

    def on_changed(self, resource: Resource | None, change: ResourceState) -> list[SignalChange]:
        """Record the changed state; return the changes for streams whose class differs now."""
        self._is_as_written = False
        if resource is None:
            self._tab_state = self._tab_state.after(change)
        else:
            state = self._states.get(resource.id, UNCHANGED)
            self._states[resource.id] = state.after(change)
        if not change.sets(self._updates):
            return []
        changes: list[SignalChange] = []
        # A copy: each stream that moves gets a new entry in the dict.
        for stream_id, stream in [*self._open.items()]:
            if resource is None or stream.resource.id == resource.id:
                changes += self._reclassified(stream_id, stream)
        return changes

    def on_closed(self, stream_id: int) -> list[SignalChange]:
        return self._leave_changes(stream_id, self._open.pop(stream_id).priority_class)

    def _class_of(self, resource: Resource, images_before: int) -> PriorityClass:
        """Return the class of a resource in its current state."""
        if not self._is_as_written or (self._plays_recorded and resource.recorded):
            state = self._tab_state.after(self._states.get(resource.id, UNCHANGED))
            return self._scheme.classify(resource, images_before=images_before, state=state)
        # A page has thousands of resources and a handful of combinations.
        n_before = images_before if images_before < self._n_first_images else self._n_first_images
        number = self._combinations[resource.id] * (self._n_first_images + 1) + n_before
        entry = self._initial_classes.get(number)
        if entry is None:
            entry = self._scheme.classify(resource, images_before=images_before)
            self._initial_classes[number] = entry
        return entry

    def _reclassified(self, stream_id: int, stream: _OpenStream) -> list[SignalChange]:
        """Return the changes for an open stream whose state has changed, and perhaps its class."""
        before = stream.priority_class
        entry = self._class_of(stream.resource, stream.images_before)
        if entry == before:
            return []
        self._open[stream_id] = stream._replace(priority_class=entry)
        return self._move_changes(stream_id, before, entry)

    # Defined by kind of scheduler

    def _join_changes(self, stream_id: int, entry: PriorityClass) -> list[SignalChange]:
        """Return the changes for a requested stream; the last entry is its own."""
        signal = self._class_signals.get(entry.name)
        if signal is None:
            signal = self._class_signals[entry.name] = self._class_signal(entry)
        return [(stream_id, signal)]

    def _class_signal(self, entry: PriorityClass) -> Signal:
        """Return the signal of every stream of a class."""
        raise NotImplementedError

    def _move_changes(
        self,
        stream_id: int,
        old: PriorityClass,  # noqa: ARG002 - used by trees
        new: PriorityClass,
    ) -> list[SignalChange]:
        """Return the changes for a stream that moves from one class to another."""
        return self._join_changes(stream_id, new)

    def _leave_changes(self, stream_id: int, entry: PriorityClass) -> list[SignalChange]:  # noqa: ARG002 - used by trees
        """Return the changes for a stream that is finished."""
        return []


class _BucketPolicy(_ClassPolicy):
    """Signals the bucket and level of the resource's class."""

    def _class_signal(self, entry: PriorityClass) -> Signal:
        assert entry.bucket is not None  # noqa: S101 - rows of a scheme are validated
        assert entry.level is not None  # noqa: S101 - it goes with the bucket
        return BucketPriority(bucket=entry.bucket, level=entry.level)


class _EpsPolicy(_ClassPolicy):
    """Signals the urgency of the resource's class, and whether it is incremental."""

    def _class_signal(self, entry: PriorityClass) -> Signal:
        return Eps(urgency=entry.urgency, incremental=entry.incremental)


class _TreePolicy(_ClassPolicy):
    """Signals a position in the dependency tree."""

    def __init__(self, scheme: Scheme, page: Page, updates: tuple[str, ...]) -> None:
        super().__init__(scheme, page, updates)
        names = [entry.name for entry in scheme.classes]
        self._not_below = {name: names[rank::-1] for rank, name in enumerate(names)}
        """Each class and the classes above it, the lowest first."""
        self._declared = scheme.placeholders[: scheme.max_placeholders]
        self._groups = _groups(scheme)
        self._yielding = [holder for holder in self._declared if holder.yields_to is not None]
        """The placeholders whose weights depend on the streams of a class."""
        # Not only of the scheme's classes: recorded priorities may have others.
        self._members: dict[str, dict[int, None]] = defaultdict(dict)
        """The streams of each class that are in the tree, oldest first: the last is its tail."""
        self._chain = QuickerChain()

    def on_connected(self) -> list[SignalChange]:
        return [self._placeholder(holder) for holder in self._declared]

    def _join_changes(self, stream_id: int, entry: PriorityClass) -> list[SignalChange]:
        """Return the position of a requested stream, after those of placeholders that yield."""
        signal = self._class_signals.get(entry.name)
        if signal is not None:
            return [(stream_id, signal)]
        members = self._members[entry.name]
        # Before the stream: the placeholder yields before the first byte of its class can be sent.
        changes = [] if members else self._yield_changes(entry.name, is_busy=True)
        signal = self._signal(entry, stream_id)
        if entry.arrangement is _SIBLINGS and not self._yielding:
            self._class_signals[entry.name] = signal  # the streams of such a class are not needed
        else:
            members[stream_id] = None
        changes.append((stream_id, signal))
        return changes

    def _leave_changes(self, stream_id: int, entry: PriorityClass) -> list[SignalChange]:
        """Return the weights of placeholders that no longer yield to the class of a stream."""
        if entry.name in self._class_signals:
            return []
        members = self._members[entry.name]
        del members[stream_id]
        self._chain.remove(stream_id)
        return [] if members else self._yield_changes(entry.name, is_busy=False)

    def _move_changes(
        self, stream_id: int, old: PriorityClass, new: PriorityClass
    ) -> list[SignalChange]:
        """Return the changes that move a stream from its chain to the position of its new class."""
        # Before it leaves, which removes it from these lists.
        above, follower = self._neighbours(stream_id, old)
        leaving = self._leave_changes(stream_id, old)
        *before, own_change = self._join_changes(stream_id, new)
        _, signal = own_change
        # Its position would stay the same: only its weight differs, which a chain ignores.
        stays = isinstance(signal, H2Priority) and signal.exclusive and signal.depends_on == above
        if stays and old.arrangement.is_exclusive:
            return [*leaving, *before]
        moved: list[SignalChange] = []
        if follower is not None:
            weight = self._open[follower].priority_class.weight
            is_exclusive = old.arrangement.is_exclusive
            priority = H2Priority(weight=weight, depends_on=above, exclusive=is_exclusive)
            moved.append((follower, priority))
        # In the order of Chromium's Http2PriorityDependencies::OnStreamUpdate: the child of the
        # stream moves to its parent first, so that it does not move along.
        return [*leaving, *before, *moved, own_change]

    def _neighbours(self, stream_id: int, entry: PriorityClass) -> tuple[int | None, int | None]:
        """Return the parent of a stream, and the stream of its chain that depends on it."""
        match entry.arrangement:
            case Arrangement.SIBLINGS:
                return self._group_of(entry), None
            case Arrangement.QUICKER_CHAIN:
                return self._chain.neighbours(stream_id)
            case Arrangement.CHAIN:
                chain = [*self._members[entry.name]]
            case Arrangement.STRICT_CHAIN:
                chain = self._strict_chain()
        index = chain.index(stream_id)
        above = chain[index - 1] if index else self._group_of(entry)
        return above, chain[index + 1] if index + 1 < len(chain) else None

    def _strict_chain(self) -> list[int]:
        """Return the streams of the strict chain, from the top."""
        return [
            stream_id
            for entry in self._scheme.classes
            if entry.arrangement is Arrangement.STRICT_CHAIN
            for stream_id in self._members[entry.name]
        ]

    def _group_of(self, entry: PriorityClass) -> int | None:
        """Return the placeholder above the streams of a class; None for the root."""
        return None if entry.group is None else self._groups[entry.group]

    def _signal(self, entry: PriorityClass, stream_id: int) -> Signal:
        """Return the position of a stream that joins its class, by the class's arrangement."""
        arrangement = entry.arrangement
        if arrangement is _SIBLINGS:
            return _h2_priority(entry.weight, self._group_of(entry), False)
        if arrangement is _CHAIN:
            tail = _last(self._members[entry.name])
            return _h2_priority(
                entry.weight, self._group_of(entry) if tail is None else tail, False
            )
        if arrangement is Arrangement.STRICT_CHAIN:
            return _h2_priority(entry.weight, self._tail_not_below(entry.name), True)
        tail = self._chain.append(stream_id, self._not_below[entry.name])
        return _h2_priority(entry.weight, tail, True)

    def _tail_not_below(self, class_name: str) -> int | None:
        """Return the tail of the lowest class, from *class_name* up, that has a stream."""
        for name in self._not_below[class_name]:
            members = self._members[name]
            if members:
                return _last(members)
        return None

    def _yield_changes(self, class_name: str, *, is_busy: bool) -> list[SignalChange]:
        """Return the new weights of placeholders that yield while a class has streams."""
        if not self._yielding:
            return []
        return [
            self._placeholder(holder, holder.yielding_weight if is_busy else None)
            for holder in self._yielding
            if holder.yields_to == class_name
        ]

    def _placeholder(self, holder: Placeholder, weight: int | None = None) -> SignalChange:
        """Return the signal of a placeholder, with its own weight or another."""
        parent = None if holder.parent is None else self._groups[holder.parent]
        weight = holder.weight if weight is None else weight
        placeholder = self._groups[holder.name]
        assert placeholder is not None  # noqa: S101 - it is one of those that are declared
        return placeholder, self._grouping(holder, weight, parent)

    def _grouping(self, holder: Placeholder, weight: int, parent: int | None) -> Signal:  # noqa: ARG002 - a tree has weights only
        """Return the position of a placeholder, as the kind of scheduler expresses it."""
        return H2Priority(weight=weight, depends_on=parent)


class _StrictPolicy(_TreePolicy):
    """Signals a placeholder, a strict priority and a weight below it.

    In a chain each stream has a strict priority one below that of the stream before it, so they go
    sequentially; at 0 they share, since there is nothing lower.
    """

    def __init__(self, scheme: Scheme, page: Page, updates: tuple[str, ...]) -> None:
        super().__init__(scheme, page, updates)
        self._strict_by_stream: dict[int, int] = {}
        """The strict priority of each stream, from which that of the next in a chain follows."""

    def _leave_changes(self, stream_id: int, entry: PriorityClass) -> list[SignalChange]:
        self._strict_by_stream.pop(stream_id, None)
        return super()._leave_changes(stream_id, entry)

    def _neighbours(self, stream_id: int, entry: PriorityClass) -> tuple[int | None, int | None]:
        """Return the group, and None: no stream depends on another."""
        del stream_id
        return self._group_of(entry), None

    def _signal(self, entry: PriorityClass, stream_id: int) -> StrictPriority:
        """Return the strict priority of a stream that joins its class."""
        group = self._group_of(entry)
        strict = entry.strict
        tail = _last(self._members[entry.name])
        if entry.arrangement is _CHAIN and tail is not None:
            strict = max(0, self._strict_by_stream[tail] - 1)
        self._strict_by_stream[stream_id] = strict
        return _strict_priority(entry.weight, strict, group)

    def _grouping(self, holder: Placeholder, weight: int, parent: int | None) -> StrictPriority:
        return StrictPriority(weight=weight, strict=holder.strict, depends_on=parent)


class _RecordedTreePolicy(_TreePolicy):
    """Signals recorded positions; for other resources those of the scheme's rules.

    A recorded frame is replayed as it is: its effects on other streams follow from it, and if the
    client moved these, too, the recording has frames for that.
    """

    def __init__(self, scheme: Scheme, page: Page, updates: tuple[str, ...]) -> None:
        super().__init__(scheme, page, updates)
        self._stream_ids: dict[str, int] = {}
        """The stream of each requested resource, which recorded frames name as a parent."""

    def on_requested(self, stream_id: int, resource: Resource) -> list[SignalChange]:
        """Return the changes, and remember the stream for those that depend on it."""
        self._stream_ids[resource.id] = stream_id
        return super().on_requested(stream_id, resource)

    def _join_changes(self, stream_id: int, entry: PriorityClass) -> list[SignalChange]:
        """Return the recorded position of a stream, or else that of the scheme's rules."""
        if not isinstance(entry, RecordedTreeClass):
            return super()._join_changes(stream_id, entry)
        # A resource that was not requested in this load has no stream: then the root of the tree.
        name = entry.depends_on
        parent = self._groups[name] if name in self._groups else self._stream_ids.get(name)
        priority = _h2_priority(entry.weight, parent, entry.exclusive)
        return [(stream_id, priority)]

    def _leave_changes(self, stream_id: int, entry: PriorityClass) -> list[SignalChange]:
        """Return nothing for a recorded position, to which no placeholder yields."""
        if isinstance(entry, RecordedTreeClass):
            return []
        return super()._leave_changes(stream_id, entry)

    def _move_changes(
        self, stream_id: int, old: PriorityClass, new: PriorityClass
    ) -> list[SignalChange]:
        """Return a recorded move alone: what it changes for other streams was recorded as well."""
        if isinstance(old, RecordedTreeClass) or isinstance(new, RecordedTreeClass):
            return [*self._leave_changes(stream_id, old), *self._join_changes(stream_id, new)]
        return super()._move_changes(stream_id, old, new)


def _groups(scheme: Scheme) -> dict[str, int | None]:
    """Return the placeholder of each group, None for the root.

    Those beyond the limit of the server are not declared; their streams depend on their parent.
    """
    limit = scheme.max_placeholders
    placeholders: dict[str, int | None] = {}
    for number, holder in enumerate(scheme.placeholders):
        is_declared = limit is None or number < limit
        above = None if holder.parent is None else placeholders[holder.parent]
        placeholders[holder.name] = placeholder_id(number) if is_declared else above
    return placeholders


def _last(members: dict[int, None]) -> int | None:
    """Return the stream that was added last, or None without any."""
    return next(reversed(members), None)
