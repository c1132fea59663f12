"""The children of one placeholder: by strict priority, then by weight."""

from __future__ import annotations

from typing import TYPE_CHECKING

from h3sim._mypyc import mypyc_attr
from h3sim.schedulers.queues import IndexedHeap
from h3sim.schedulers.tree.node import Node

if TYPE_CHECKING:
    from h3sim.schedulers.tree.disciplines import FairQueueing


@mypyc_attr(allow_interpreted_subclasses=True, serializable=True)
class StrictGroup:
    """A list per strict priority, in which siblings share by weight.

    A level is the root node of such a list: it uses the heap of a tree node without the tree's
    rules.
    """

    def __init__(self, queueing: FairQueueing) -> None:
        self._queueing = queueing
        self._levels: dict[int, Node] = {}
        """The levels by strict priority."""
        self._active = IndexedHeap()
        """The strict priorities that have an active element."""
        self.highest: Node | None = None
        """The level of the highest of them, or None without an active element."""

    @property
    def elements(self) -> list[int]:
        """The IDs of all elements."""
        return [element_id for level in self._levels.values() for element_id in level.children]

    def put(self, element_id: int, strict: int, weight: int) -> Node:
        """Add an element; return the node that is charged for it."""
        level = self._levels.get(strict)
        if level is None:
            level = self._levels[strict] = Node(0)
        node = Node(element_id)
        self._queueing.reweigh(node, weight)
        node.parent = level
        level.children[element_id] = node
        return node

    def take(self, element_id: int, strict: int) -> None:
        """Remove an element, which is not active."""
        level = self._levels[strict]
        del level.children[element_id]
        if not level.children:
            del self._levels[strict]

    def reweigh(self, element_id: int, strict: int, weight: int) -> None:
        """Change the weight of an element."""
        self._queueing.reweigh(self._levels[strict].children[element_id], weight)

    def activate(self, element_id: int, strict: int) -> None:
        """Activate an element."""
        level = self._levels[strict]
        # Checked before `wake`, which fills the heap.
        is_first = not level.heap
        self._queueing.wake(level.children[element_id])
        if is_first:
            # The heap returns the lowest rank first, and the highest strict priority goes first.
            self._active.put(strict, -strict)
            self._find_highest()

    def deactivate(self, element_id: int, strict: int) -> None:
        """Deactivate an element."""
        level = self._levels[strict]
        self._queueing.rest(level.children[element_id])
        if not level.heap:
            self._active.drop(strict)
            self._find_highest()

    def pick(self) -> int | None:
        """Return the next element: of the highest strict priority, by weight."""
        if self.highest is None:
            return None
        # The first entry of a heap is never stale.
        node: Node = self.highest.heap[0][2]
        return node.id

    def _find_highest(self) -> None:
        strict = self._active.first
        self.highest = None if strict is None else self._levels[strict]
