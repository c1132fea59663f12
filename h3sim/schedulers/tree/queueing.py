"""What all disciplines share: a heap a node, of the children that have something to send.

A discipline says three things: where a child joins, what a turn costs it, and what a new weight
changes. Everything else is the same for all, so that `pick` is the same for all.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush, heapreplace
from typing import TYPE_CHECKING, Final

from h3sim.compiling import mypyc_attr

if TYPE_CHECKING:
    from collections.abc import Container

    from h3sim.schedulers.tree.node import Entry, Node, Time

__all__ = ["FairQueueing", "first_unblocked", "known"]

_SLACK: Final = 16
"""So many entries may be out of date before a heap is made anew: few children never pay for it."""


@mypyc_attr(allow_interpreted_subclasses=True, serializable=True)
class FairQueueing:
    """The heaps of a tree. *turn_bytes* is what a turn is expected to carry."""

    def __init__(self, *, turn_bytes: int) -> None:
        self.turn_bytes = turn_bytes

    # What a discipline says

    def joined(self, node: Node, parent: Node) -> tuple[Time, int]:
        """Return the virtual time and the tie at which the node joins its siblings."""
        raise NotImplementedError

    def served(self, node: Node, parent: Node, time: Time, n_bytes: int) -> tuple[Time, int]:
        """Return the node's next time and tie; it, or something below it, had a turn at *time*."""
        raise NotImplementedError

    def reweigh(self, node: Node, weight: int) -> None:
        """Give the node a weight, whether it is listed or not."""
        node.weight = weight

    def forget(self, node: Node) -> None:
        """Make the node, which is not listed now, begin anew when it joins again."""

    # What all do alike

    def charge(self, node: Node, n_bytes: int) -> None:
        """Charge *n_bytes* to the node and to what is above it."""
        # A stream may be charged that is not listed: its lost bytes go while it has no new ones.
        while node.parent is not None and node.entry is not None:
            parent, entry = node.parent, node.entry
            time, tie = self.served(node, parent, entry[0], n_bytes)
            moved: Entry = (time, tie, node)
            node.entry = moved
            relist(parent, entry, moved)
            node = parent

    def wake(self, node: Node) -> None:
        """List the node, and each parent that was not listed before."""
        # Above a node that is listed all are, so this goes up only as far as something changes.
        while node.parent is not None and node.entry is None:
            self.enlist(node)
            node = node.parent

    def sleep(self, node: Node) -> None:
        """Take the node off its parent's list, and so on up, where nothing is left to send."""
        while node.parent is not None and node.entry is not None:
            if node.has_data or node.heap:
                return
            self.unlist(node)
            self.forget(node)
            node = node.parent

    def rest(self, node: Node) -> None:
        """Take a stream off its parent's list that has just sent the last of what it had."""
        self.sleep(node)

    def defer(self, root: Node, blocked: dict[int, None]) -> None:
        """Take those off their lists that are blocked and whose turn has come.

        Each turns the clocks above it on to its own time, though it sends nothing: nghttp2 notes
        who is next before it looks at the window (nghttp2_stream_next_outbound_item).
        """
        node = root
        # From the root again after each: whoever left may have taken the groups above along.
        while blocked and node.heap:
            node = node.heap[0][2]
            if not node.has_data:
                continue
            if node.id not in blocked:
                return
            del blocked[node.id]
            above = node
            while above.parent is not None and above.entry is not None:
                above.parent.last = above.entry[0]
                above = above.parent
            node.has_data = False
            self.sleep(node)
            node = root

    def enlist(self, node: Node) -> None:
        """Put the node on its parent's list."""
        parent = known(node.parent)
        time, tie = self.joined(node, parent)
        entry: Entry = (time, tie, node)
        node.entry = entry
        heappush(parent.heap, entry)

    def unlist(self, node: Node) -> None:
        """Take the node off its parent's list."""
        parent = known(node.parent)
        was_first = parent.heap[0] is node.entry
        # An entry inside the heap is only disowned: heapq takes nothing out of the middle.
        node.entry = None
        if was_first:
            heappop(parent.heap)
            settle(parent)
            return
        parent.stale += 1
        # Once half are out of date a new heap costs no more than the changes that made them so.
        if 2 * parent.stale > len(parent.heap) + _SLACK:
            parent.heap = [entry for entry in parent.heap if entry[2].entry is entry]
            heapify(parent.heap)
            parent.stale = 0


def relist(parent: Node, entry: Entry, moved: Entry) -> None:
    """Replace *entry* by *moved* in the parent's heap."""
    heap = parent.heap
    # Nearly always, for a turn is taken by the first: one sift in the place of a pop and a push.
    if heap[0] is entry:
        heapreplace(heap, moved)
        if parent.stale:
            settle(parent)
    else:
        heappush(heap, moved)
        parent.stale += 1


def settle(parent: Node) -> None:
    """Take stale entries off the top, so that the first one is always alive."""
    heap = parent.heap
    while heap:
        first = heap[0]
        node: Node = first[2]
        if node.entry is first:
            return
        heappop(heap)
        parent.stale -= 1


def first_unblocked(root: Node, blocked: Container[int]) -> int | None:
    """Return the stream whose turn it is once those that are blocked have left, or None."""
    # Sorted copies: a heap can be read in order only by emptying it, and asking changes nothing.
    # This runs only while a stream is blocked by flow control.
    waiting = [iter(sorted(_listed(root)))]
    while waiting:
        entry = next(waiting[-1], None)
        if entry is None:
            waiting.pop()
            continue
        node: Node = entry[2]
        if node.has_data and node.id not in blocked:
            return node.id
        # A blocked stream makes no progress, so what depends on it may (RFC 7540 § 5.3.1).
        waiting.append(iter(sorted(_listed(node))))
    return None


def _listed(parent: Node) -> list[Entry]:
    return [entry for entry in parent.heap if entry[2].entry is entry]


def known(parent: Node | None) -> Node:
    """Return the parent of a node that is not the root."""
    assert parent is not None, "every node but the root has a parent"  # noqa: S101
    return parent
