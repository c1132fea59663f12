"""Siblings by strict priority, and by weight among those of one: what is below one placeholder."""

from __future__ import annotations

from typing import TYPE_CHECKING

from h3sim._mypyc import mypyc_attr
from h3sim.schedulers.queues import IndexedHeap
from h3sim.schedulers.tree.node import Node

if TYPE_CHECKING:
    from h3sim.schedulers.tree.disciplines import FairQueueing


@mypyc_attr(allow_interpreted_subclasses=True, serializable=True)
class StrictGroup:
    """For each strict priority a list without depth, in which siblings take turns by weight.

    A level is the root of such a list: of a tree it takes the heap, and needs none of the rules.
    """

    def __init__(self, queueing: FairQueueing) -> None:
        self._queueing = queueing
        self._levels: dict[int, Node] = {}
        """By strict priority."""
        self._active = IndexedHeap()
        """The strict priorities of which something is active."""
        self.highest: Node | None = None
        """The level of the first of them, or None where nothing is active."""

    @property
    def elements(self) -> list[int]:
        """The ids of all that stands here."""
        return [element_id for level in self._levels.values() for element_id in level.children]

    def put(self, element_id: int, strict: int, weight: int) -> Node:
        """Take up an element; return the node that is charged for it."""
        level = self._levels.get(strict)
        if level is None:
            level = self._levels[strict] = Node(0)
        node = Node(element_id)
        self._queueing.reweigh(node, weight)
        node.parent = level
        level.children[element_id] = node
        return node

    def take(self, element_id: int, strict: int) -> None:
        """Forget an element, which is not active."""
        level = self._levels[strict]
        del level.children[element_id]
        if not level.children:
            del self._levels[strict]

    def reweigh(self, element_id: int, strict: int, weight: int) -> None:
        """Give an element another weight."""
        self._queueing.reweigh(self._levels[strict].children[element_id], weight)

    def activate(self, element_id: int, strict: int) -> None:
        """Activate an element."""
        level = self._levels[strict]
        # Asked before `wake`, which fills the heap.
        is_first = not level.heap
        self._queueing.wake(level.children[element_id])
        if is_first:
            # The heap gives the lowest rank first, and the highest strict priority goes first.
            self._active.put(strict, -strict)
            self._find_highest()

    def deactivate(self, element_id: int, strict: int) -> None:
        """Take an element out of the running."""
        level = self._levels[strict]
        self._queueing.rest(level.children[element_id])
        if not level.heap:
            self._active.drop(strict)
            self._find_highest()

    def pick(self) -> int | None:
        """Return who is next: of the highest strict priority, by weight."""
        if self.highest is None:
            return None
        # The queueing sees to it that the first entry of a heap is never out of date.
        node: Node = self.highest.heap[0][2]
        return node.id

    def _find_highest(self) -> None:
        strict = self._active.first
        self.highest = None if strict is None else self._levels[strict]
