"""Strict priorities combined with weights: Swett's proposal for HTTP/3 (base-drafts PR 2700)."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from h3sim.schedulers.tree import SelfDependencyError
from h3sim.schedulers.tree.disciplines import ExactTime, StrictGroup
from h3sim.schedulers.tree.options import DEFAULT_TURN_BYTES, Weights
from h3sim.signals import StrictPriority

if TYPE_CHECKING:
    from h3sim.schedulers.tree.node import Node
    from h3sim.signals import Signal


class StrictScheduler:
    """Siblings by strict priority, the highest first; equal ones share by weight.

    The parent of a stream is a placeholder or the root; streams have no children. A placeholder is
    active while a descendant is. A parent that is referenced before it is opened is created at
    once, below the root with the default priority. Siblings of one strict priority share as in
    `TreeScheduler` with exact queueing; *turn_bytes* is the same as there. A signal of another type
    counts as the default, strict priority 16 and weight 16 below the root.

    Source: base-drafts PR 2700. It does not define a move of a placeholder below its own
    descendant; here the descendant first moves to the former parent, as in RFC 7540 § 5.3.3.

    >>> scheduler = StrictScheduler()
    >>> for stream_id, strict, weight in ((0, 16, 16), (4, 32, 16), (8, 32, 32)):
    ...     scheduler.open(stream_id, StrictPriority(strict=strict, weight=weight))
    ...     scheduler.activate(stream_id)
    >>> picked = []
    >>> for _ in range(4):
    ...     picked.append(scheduler.pick())
    ...     scheduler.charge(picked[-1], 1400)
    >>> picked
    [8, 4, 8, 8]
    """

    def __init__(self, *, turn_bytes: int = DEFAULT_TURN_BYTES) -> None:
        self._queueing = ExactTime(turn_bytes=turn_bytes, weights=Weights.SHARES)
        self._root = StrictGroup(self._queueing)
        self._groups: dict[int | None, StrictGroup] = {None: self._root}
        """The children of each placeholder, and of the root (None)."""
        self._priorities: dict[int, StrictPriority] = {}
        self._nodes: dict[int, Node] = {}
        """The node of each element in its group."""
        self._active: dict[int, None] = {}
        """The active streams."""
        self._implied: dict[int, None] = {}
        """Placeholders that exist only because they are referenced."""

    def open(self, stream_id: int, signal: Signal) -> None:
        """Open a stream or placeholder.

        Raises:
            SelfDependencyError: if it depends on itself.
            ValueError: if it is open already.
        """
        if stream_id in self._priorities and stream_id not in self._implied:
            raise ValueError(f"stream {stream_id} is open already")
        priority = self._resolved(stream_id, signal)
        if stream_id in self._implied:
            # It is in the tree already, with its descendants, which move with it.
            del self._implied[stream_id]
            self._move(stream_id, priority)
            return
        self._insert(stream_id, priority)

    def update(self, stream_id: int, signal: Signal) -> None:
        """Change the priority of a stream or placeholder; its descendants move along.

        Raises:
            SelfDependencyError: if it depends on itself.
        """
        self._move(stream_id, self._resolved(stream_id, signal))

    def activate(self, stream_id: int) -> None:
        """Activate the stream, and each of its ancestors."""
        self._active[stream_id] = None
        self._wake(stream_id)

    def deactivate(self, stream_id: int) -> None:
        """Deactivate the stream, and each ancestor without another active descendant."""
        self._active.pop(stream_id, None)
        self._sleep(stream_id)

    def close(self, stream_id: int) -> None:
        """Remove the element. The children of a placeholder move up to its parent."""
        if stream_id < 0:
            above = self._priorities[stream_id].depends_on
            # `elements` is a copy, so moving its members during iteration is safe.
            for element_id in self._groups[stream_id].elements:
                self._move(element_id, replace(self._priorities[element_id], depends_on=above))
            del self._groups[stream_id]
        self.deactivate(stream_id)
        priority = self._priorities.pop(stream_id)
        del self._nodes[stream_id]
        self._groups[priority.depends_on].take(stream_id, priority.strict)

    def pick(self) -> int | None:
        """Descend from the root to the next stream, by each placeholder's group."""
        element_id = self._root.pick()
        while element_id is not None and element_id < 0:
            element_id = self._groups[element_id].pick()
        return element_id

    def charge(self, stream_id: int, n_bytes: int) -> None:
        """Charge *n_bytes* to the stream and to each placeholder above it."""
        element_id: int | None = stream_id
        while element_id is not None:
            # Each level charges its own child: a placeholder's share among its siblings does not
            # depend on the stream that was sent.
            self._queueing.charge(self._nodes[element_id], n_bytes)
            element_id = self._priorities[element_id].depends_on

    def _resolved(self, element_id: int, signal: Signal) -> StrictPriority:
        """Return the priority, below the root or an existing placeholder."""
        priority = signal if isinstance(signal, StrictPriority) else StrictPriority()
        parent = priority.depends_on
        if parent == element_id:
            raise SelfDependencyError(element_id)
        if parent not in self._groups and parent is not None:
            self._implied[parent] = None
            self._insert(parent, StrictPriority())
        return priority

    def _move(self, element_id: int, priority: StrictPriority) -> None:
        """Give an element a new priority, and with it a new group or level."""
        before, parent = self._priorities[element_id], priority.depends_on
        # At most the weight differs, so it keeps its quantum.
        if (parent, priority.strict) == (before.depends_on, before.strict):
            self._priorities[element_id] = priority
            self._groups[parent].reweigh(element_id, priority.strict, priority.weight)
            return
        # RFC 7540 § 5.3.3: otherwise the two would form a cycle, cut off from the root.
        if parent is not None and self._is_below(parent, element_id):
            self._move(parent, replace(self._priorities[parent], depends_on=before.depends_on))
        # Inserted first and removed afterwards: a placeholder above both positions never becomes
        # inactive, and so keeps its quantum.
        self._insert(element_id, priority)
        group = self._groups[before.depends_on]
        group.deactivate(element_id, before.strict)
        group.take(element_id, before.strict)
        if group.highest is None:
            self._sleep(before.depends_on)

    def _insert(self, element_id: int, priority: StrictPriority) -> None:
        """Add an element below its parent, active if its subtree has data."""
        self._priorities[element_id] = priority
        group = self._groups[priority.depends_on]
        self._nodes[element_id] = group.put(element_id, priority.strict, priority.weight)
        if element_id < 0 and element_id not in self._groups:
            self._groups[element_id] = StrictGroup(self._queueing)
        if element_id in self._active or self._has_active_below(element_id):
            self._wake(element_id)

    def _wake(self, element_id: int | None) -> None:
        """Activate an element, and the placeholders above it that were inactive."""
        while element_id is not None:
            priority = self._priorities[element_id]
            group = self._groups[priority.depends_on]
            was_active = group.highest is not None
            group.activate(element_id, priority.strict)
            # If the group was active before, all above it are listed already.
            element_id = None if was_active else priority.depends_on

    def _sleep(self, element_id: int | None) -> None:
        """Deactivate an element, and each placeholder above it that is left without another."""
        while element_id is not None:
            priority = self._priorities[element_id]
            group = self._groups[priority.depends_on]
            group.deactivate(element_id, priority.strict)
            element_id = None if group.highest is not None else priority.depends_on

    def _has_active_below(self, element_id: int) -> bool:
        return element_id < 0 and self._groups[element_id].highest is not None

    def _is_below(self, element_id: int | None, other_id: int) -> bool:
        """Return whether the element is *other_id*, or one of its descendants."""
        while element_id is not None:
            if element_id == other_id:
                return True
            element_id = self._priorities[element_id].depends_on
        return False
