"""Strict priorities beside weights: Swett's proposal for HTTP/3 (base-drafts PR 2700)."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from h3sim.schedulers.strict_group import StrictGroup
from h3sim.schedulers.tree import SelfDependencyError
from h3sim.schedulers.tree.disciplines import ExactTime
from h3sim.schedulers.tree.options import DEFAULT_TURN_BYTES, Weights
from h3sim.signals import StrictPriority

if TYPE_CHECKING:
    from h3sim.schedulers.tree.node import Node
    from h3sim.signals import Signal


class StrictScheduler:
    """Siblings by strict priority, the highest first; equal ones share by weight.

    Streams stand below placeholders or the root, and nothing below a stream. A placeholder takes
    part while something below it does. One that is named before it is opened is there at once,
    below the root with the default priority. Siblings of one strict priority share as those of
    `TreeScheduler` with exact queueing do; *turn_bytes* is what that one has. A signal of another
    type counts as the default, strict priority 16 and weight 16 below the root.

    Source: base-drafts PR 2700. It leaves open what becomes of a placeholder that is moved below
    one of its own; that one first takes its old place, as in RFC 7540 § 5.3.3.

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
        self._wanted: dict[int, StrictPriority] = {}
        self._nodes: dict[int, Node] = {}
        """Where each stands among its siblings."""
        self._active: dict[int, None] = {}
        self._implied: dict[int, None] = {}
        """Placeholders that are there only because they were named."""

    def open(self, stream_id: int, signal: Signal) -> None:
        """Take up a stream or placeholder.

        Raises:
            SelfDependencyError: if it depends on itself.
            ValueError: if it is open already.
        """
        if stream_id in self._wanted and stream_id not in self._implied:
            raise ValueError(f"stream {stream_id} is open already")
        wanted = self._resolved(stream_id, signal)
        if stream_id in self._implied:
            # It is in the tree already, with all that was put below it: it moves with them.
            del self._implied[stream_id]
            self._move(stream_id, wanted)
            return
        self._put(stream_id, wanted)

    def update(self, stream_id: int, signal: Signal) -> None:
        """Give a stream or placeholder another place; what is below it moves along.

        Raises:
            SelfDependencyError: if it depends on itself.
        """
        self._move(stream_id, self._resolved(stream_id, signal))

    def activate(self, stream_id: int) -> None:
        """Activate the stream, and each placeholder above it."""
        self._active[stream_id] = None
        self._wake(stream_id)

    def deactivate(self, stream_id: int) -> None:
        """Take the stream out of the running, and each placeholder with nothing else below it."""
        self._active.pop(stream_id, None)
        self._sleep(stream_id)

    def close(self, stream_id: int) -> None:
        """Forget the stream. What is below a placeholder moves up to its parent, as it is."""
        if stream_id < 0:
            above = self._wanted[stream_id].depends_on
            # `elements` is a list of its own, so moving them away while going through it is safe.
            for element_id in self._groups[stream_id].elements:
                self._move(element_id, replace(self._wanted[element_id], depends_on=above))
            del self._groups[stream_id]
        self.deactivate(stream_id)
        wanted = self._wanted.pop(stream_id)
        del self._nodes[stream_id]
        self._groups[wanted.depends_on].take(stream_id, wanted.strict)

    def pick(self) -> int | None:
        """Go down from the root, at each placeholder to who is next below it."""
        element_id = self._root.pick()
        while element_id is not None and element_id < 0:
            element_id = self._groups[element_id].pick()
        return element_id

    def charge(self, stream_id: int, n_bytes: int) -> None:
        """Charge *n_bytes* to the stream, and a turn to each placeholder above it."""
        element_id: int | None = stream_id
        while element_id is not None:
            # Each level bills its own child: a placeholder has its share among its siblings,
            # whoever below it sent.
            self._queueing.charge(self._nodes[element_id], n_bytes)
            element_id = self._wanted[element_id].depends_on

    def _resolved(self, element_id: int, signal: Signal) -> StrictPriority:
        """Return what is wanted, below the root or a placeholder that is there."""
        wanted = signal if isinstance(signal, StrictPriority) else StrictPriority()
        parent = wanted.depends_on
        if parent == element_id:
            raise SelfDependencyError(element_id)
        if parent not in self._groups and parent is not None:
            self._implied[parent] = None
            self._put(parent, StrictPriority())
        return wanted

    def _move(self, element_id: int, wanted: StrictPriority) -> None:
        before, parent = self._wanted[element_id], wanted.depends_on
        # Only the weight is another: it keeps its turn.
        if (parent, wanted.strict) == (before.depends_on, before.strict):
            self._wanted[element_id] = wanted
            self._groups[parent].reweigh(element_id, wanted.strict, wanted.weight)
            return
        # Else the two would hang below each other, cut off from the root.
        if parent is not None and self._is_below(parent, element_id):
            self._move(parent, replace(self._wanted[parent], depends_on=before.depends_on))
        # First there and then away: a placeholder above both never runs out of what is active, and
        # so keeps its turn.
        self._put(element_id, wanted)
        group = self._groups[before.depends_on]
        group.deactivate(element_id, before.strict)
        group.take(element_id, before.strict)
        if group.highest is None:
            self._sleep(before.depends_on)

    def _put(self, element_id: int, wanted: StrictPriority) -> None:
        self._wanted[element_id] = wanted
        group = self._groups[wanted.depends_on]
        self._nodes[element_id] = group.put(element_id, wanted.strict, wanted.weight)
        if element_id < 0 and element_id not in self._groups:
            self._groups[element_id] = StrictGroup(self._queueing)
        if element_id in self._active or self._has_active_below(element_id):
            self._wake(element_id)

    def _wake(self, element_id: int | None) -> None:
        while element_id is not None:
            wanted = self._wanted[element_id]
            group = self._groups[wanted.depends_on]
            was_active = group.highest is not None
            group.activate(element_id, wanted.strict)
            # Where the group was active before, all above it is listed already.
            element_id = None if was_active else wanted.depends_on

    def _sleep(self, element_id: int | None) -> None:
        while element_id is not None:
            wanted = self._wanted[element_id]
            group = self._groups[wanted.depends_on]
            group.deactivate(element_id, wanted.strict)
            element_id = None if group.highest is not None else wanted.depends_on

    def _has_active_below(self, element_id: int) -> bool:
        return element_id < 0 and self._groups[element_id].highest is not None

    def _is_below(self, element_id: int | None, other_id: int) -> bool:
        while element_id is not None:
            if element_id == other_id:
                return True
            element_id = self._wanted[element_id].depends_on
        return False
