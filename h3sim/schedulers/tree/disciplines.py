"""Queueing disciplines of the tree: a heap per node, and fair queueing as servers do it.

A discipline defines three things: the virtual time of a child that joins, the cost of a quantum,
and the effect of a new weight. Everything else, `pick` included, is shared. A node is *listed*
while its parent's heap has an entry of it, which is while its subtree has data.

They agree in the long run: siblings that always have data share by weight. They differ in the start
of a child, in rounding, in the cost of a quantum, and in ties.
"""

from __future__ import annotations

import math
from heapq import heapify, heappop, heappush, heapreplace
from typing import TYPE_CHECKING, Final

from h3sim.schedulers.queues import IndexedHeap
from h3sim.schedulers.tree.node import Node
from h3sim.schedulers.tree.options import Queueing, Weights
from h3sim.signals import MAX_WEIGHT
from h3sim.values._mypyc import mypyc_attr

if TYPE_CHECKING:
    from collections.abc import Container

    from h3sim.schedulers.tree.node import Entry, Time


_STALE_TOLERATED: Final = 16
"""Stale entries that a heap may always keep: with few children it is never rebuilt."""


@mypyc_attr(allow_interpreted_subclasses=True, serializable=True)
class FairQueueing:
    """The order in the heaps of a tree. *turn_bytes* is the expected size of a quantum."""

    def __init__(self, *, turn_bytes: int) -> None:
        self.turn_bytes = turn_bytes

    # Defined by a discipline

    def start_key(self, node: Node, parent: Node) -> tuple[Time, int]:
        """Return the virtual time and the tie-breaker of a node that joins its siblings."""
        raise NotImplementedError

    def next_key(self, node: Node, parent: Node, time: Time, n_bytes: int) -> tuple[Time, int]:
        """Return the node's next time and tie-breaker, after a quantum of its subtree at *time*."""
        raise NotImplementedError

    def reweigh(self, node: Node, weight: int) -> None:
        """Set the node's weight, whether it is listed or not."""
        node.weight = weight

    def forget(self, node: Node) -> None:
        """Reset the state of the node, which is not listed, for its next start."""

    # Shared by all

    def charge(self, node: Node, n_bytes: int) -> None:
        """Charge *n_bytes* to the node and its ancestors."""
        # An inactive stream may be charged: its retransmissions go while it has no new data.
        while node.parent is not None and node.entry is not None:
            parent, entry = node.parent, node.entry
            served_time = entry[0]
            time, tie = self.next_key(node, parent, served_time, n_bytes)
            moved: Entry = (time, tie, node)
            node.entry = moved
            relist(parent, entry, moved)
            node = parent

    def list_ready(self, node: Node) -> None:
        """List the node, and each ancestor that was not listed."""
        # The ancestors of a listed node are listed, so this ascends only as far as needed.
        while node.parent is not None and node.entry is None:
            self.enlist(node)
            node = node.parent

    def unlist_if_idle(self, node: Node) -> None:
        """Unlist the node, and each ancestor without data in its subtree."""
        while node.parent is not None and node.entry is not None:
            if node.has_data or node.heap:
                return
            self.unlist(node)
            self.forget(node)
            node = node.parent

    def finish(self, node: Node) -> None:
        """Unlist a stream that has just sent its last data."""
        self.unlist_if_idle(node)

    def defer(self, root: Node, blocked: dict[int, None]) -> None:
        """Unlist the blocked streams that are next in order.

        Each advances the clocks above it to its own time, though it sends nothing: nghttp2 picks
        the next stream before it checks the window (nghttp2_stream_next_outbound_item).
        """
        node = root
        # Each turn descends one level, and begins at the root again once a stream was unlisted,
        # since whole groups may have gone with it.
        while blocked and node.heap:
            node = node.heap[0][2]  # the child that is next
            if not node.has_data:
                continue
            if node.id not in blocked:
                return
            del blocked[node.id]
            above = node
            while above.parent is not None and above.entry is not None:
                above.parent.last_served_time = above.entry[0]
                above = above.parent
            node.has_data = False
            self.unlist_if_idle(node)
            node = root

    def enlist(self, node: Node) -> None:
        """Add the node to its parent's heap."""
        parent = parent_of(node)
        time, tie = self.start_key(node, parent)
        entry: Entry = (time, tie, node)
        node.entry = entry
        heappush(parent.heap, entry)

    def unlist(self, node: Node) -> None:
        """Remove the node from its parent's heap."""
        parent = parent_of(node)
        was_first = parent.heap[0] is node.entry
        # An inner entry only becomes stale: heapq cannot remove from the middle.
        node.entry = None
        if was_first:
            heappop(parent.heap)
            drop_stale(parent)
            return
        parent.n_stale += 1
        # Once half the entries are stale, a rebuild costs no more than the changes that made them
        # so.
        if 2 * parent.n_stale > len(parent.heap) + _STALE_TOLERATED:
            parent.heap = _valid_entries(parent)
            heapify(parent.heap)
            parent.n_stale = 0


def relist(parent: Node, entry: Entry, moved: Entry) -> None:
    """Replace *entry* by *moved* in the parent's heap."""
    heap = parent.heap
    if heap[0] is entry:
        # Almost always, since the first child is served: one sift instead of a pop and a push.
        heapreplace(heap, moved)
        if parent.n_stale:
            drop_stale(parent)
    else:
        heappush(heap, moved)
        parent.n_stale += 1


def drop_stale(parent: Node) -> None:
    """Remove stale entries from the top, so that the first one is valid."""
    heap = parent.heap
    while heap:
        first = heap[0]
        node: Node = first[2]
        if node.entry is first:
            return
        heappop(heap)
        parent.n_stale -= 1


def first_unblocked(root: Node, blocked: Container[int]) -> int | None:
    """Return the stream that is next if blocked ones are skipped, or None."""
    # Sorted copies: a heap can be read in order only by emptying it, and a pick changes nothing.
    # This runs only while a stream is blocked by flow control.
    waiting = [iter(sorted(_valid_entries(root)))]
    while waiting:
        entry = next(waiting[-1], None)
        if entry is None:
            waiting.pop()
            continue
        node: Node = entry[2]
        if node.has_data and node.id not in blocked:
            return node.id
        # A blocked stream makes no progress, so its dependents may send (RFC 7540 § 5.3.1).
        waiting.append(iter(sorted(_valid_entries(node))))
    return None


def _valid_entries(parent: Node) -> list[Entry]:
    """Return the entries of the heap that are not stale: those that are their nodes' own."""
    return [entry for entry in parent.heap if entry[2].entry is entry]


def parent_of(node: Node) -> Node:
    """Return the parent of a node that is not the root."""
    assert node.parent is not None, "every node but the root has a parent"  # noqa: S101
    return node.parent


_COST_DENOMINATOR: Final = math.lcm(*range(1, MAX_WEIGHT + 1))
"""The denominator of costs: the cost of a byte is an integer at every weight from 1 to 256."""
_COST_PER_BYTE: Final = tuple(
    MAX_WEIGHT * _COST_DENOMINATOR // weight if weight else 0 for weight in range(MAX_WEIGHT + 1)
)
"""The virtual time of a byte by weight. Weight 0 has none: its time is fixed."""
_BEFORE_ALL: Final = -1
"""A virtual time before that of any child with a share."""
_AFTER_ALL: Final = math.inf
"""A virtual time after that of any child with a share."""
_NO_QUANTUM: Final = -1
"""No quantum since the node was last alone in its list; a quantum may have 0 bytes."""
_TIE_OF_FRONT: Final = -2
_TIE_OF_WAITING: Final = -1
"""Tie-breakers in `Node.line_at_infinity`: before children of weight 0, whose IDs are theirs."""

_FIXED_TIMES_BY_WEIGHT: dict[Weights, dict[int, Time]] = {
    Weights.SHARES: {},
    Weights.ZERO: {255: _BEFORE_ALL, 0: _AFTER_ALL},
    Weights.ZERO_LAST: {0: _AFTER_ALL},
    Weights.QUICKER_ZERO: {255: _BEFORE_ALL, 0: _AFTER_ALL},
}
"""The virtual times of weights that define a position instead of a share."""

# h2o's calendar: see `H2oCalendar`.
_PARTS_PER_SLOT: Final = 65_536
_SLOTS_AT_WEIGHT_1: Final = 63
"""The slots by which a quantum advances a child of the lowest weight."""
_PARTS_PER_QUANTUM: Final = tuple(
    (2 * _SLOTS_AT_WEIGHT_1 * _PARTS_PER_SLOT + weight) // (2 * weight) if weight else 0
    for weight in range(MAX_WEIGHT + 1)
)
"""The cost of a quantum by weight, in parts of a slot, rounded to the nearest; 0 is no weight."""


@mypyc_attr(allow_interpreted_subclasses=True, serializable=True)
class ExactTime(FairQueueing):
    """Exact virtual time: bytes * 256 / weight, in units of 1/lcm(1..256).

    So equal shares tie exactly. Ties go to the lower ID, and to streams before placeholders.
    """

    def __init__(self, *, turn_bytes: int, weights: Weights) -> None:
        super().__init__(turn_bytes=turn_bytes)
        self._fixed_times = _FIXED_TIMES_BY_WEIGHT[weights]

    def start_key(self, node: Node, parent: Node) -> tuple[Time, int]:
        """Start one quantum behind the child that was served last."""
        # The quantum that `charge` remembers is valid only until the node leaves its list.
        node.quantum_bytes = _NO_QUANTUM
        time = node.fixed_time
        if time is None:
            # Not at `last_served_time`: a stream that often leaves and joins would be first each
            # time, and get more than its share.
            time = parent.last_served_time + self.turn_bytes * node.cost_per_byte
        return time, node.tie_breaker

    def reweigh(self, node: Node, weight: int) -> None:
        """Apply the weight from the next quantum on; a fixed position applies at once."""
        before = node.fixed_time
        # The same bytes cost a different time from now on.
        node.quantum_bytes = _NO_QUANTUM
        node.weight = weight
        node.cost_per_byte = _COST_PER_BYTE[weight]
        node.fixed_time = self._fixed_times.get(weight)
        # A share needs no new entry: its cost applies from the next quantum. A fixed position
        # applies to this one.
        if node.fixed_time != before and node.entry is not None:
            self.unlist(node)
            self.enlist(node)

    def charge(self, node: Node, n_bytes: int) -> None:
        """Charge *n_bytes*, but a full quantum to a placeholder whatever was sent below it.

        The loop of the base class, inlined: the schemes of Marx 2019 depend on its speed.
        """
        turn_bytes = self.turn_bytes
        parent, entry = node.parent, node.entry
        while parent is not None and entry is not None:
            # A child with a fixed position stays where it is.
            if node.fixed_time is None:
                charged = turn_bytes if node.is_placeholder else n_bytes
                heap = parent.heap
                if len(heap) == 1:
                    # Only differences of siblings' times matter, so the time of a single child
                    # restarts at 0 with each quantum: in a chain most quanta change nothing. Equal
                    # bytes give the same entry, time and tie included.
                    if node.quantum_bytes != charged or parent.last_served_time:
                        node.quantum_bytes = charged
                        parent.last_served_time = 0
                        moved: Entry = (charged * node.cost_per_byte, node.tie_breaker, node)
                        node.entry = moved
                        heap[0] = moved
                else:
                    # This time does not start at 0, so it must not be mistaken for that of a single
                    # child.
                    node.quantum_bytes = _NO_QUANTUM
                    parent.last_served_time = time = entry[0]
                    moved = (time + charged * node.cost_per_byte, node.tie_breaker, node)
                    node.entry = moved
                    # Retransmissions may be charged out of order: then the entry is inside the
                    # heap.
                    if heap[0] is not entry:
                        relist(parent, entry, moved)
                    else:
                        heapreplace(heap, moved)
                        # Inlined test: the call would cost as much as the move.
                        if parent.n_stale:
                            drop_stale(parent)
            node = parent
            parent, entry = node.parent, node.entry


@mypyc_attr(allow_interpreted_subclasses=True, serializable=True)
class QuickerZeroTime(ExactTime):
    """Exact time until a child of weight 0 is served; afterwards an infinite time for all.

    Quicker divides by the weight, so a quantum at weight 0 ends at an infinite time, and so does
    that of every child served or joining later. From then on all keys of its binary heap are equal,
    and its order depends only on its own moves: the served child is popped, the last entry moves to
    the front, and the child is pushed at the end. So the first and the last alternate, and those in
    between wait.
    """

    def __init__(self, *, turn_bytes: int) -> None:
        super().__init__(turn_bytes=turn_bytes, weights=Weights.QUICKER_ZERO)

    def start_key(self, node: Node, parent: Node) -> tuple[Time, int]:
        """Join at the end of the line, if there is one."""
        line = parent.line_at_infinity
        if line is None or node.fixed_time is not None:
            return super().start_key(node, parent)
        line.append(node.id)
        return _AFTER_ALL, _TIE_OF_FRONT if len(line) == 1 else _TIE_OF_WAITING

    def unlist(self, node: Node) -> None:
        """Leave the line; the last entry replaces the first."""
        super().unlist(node)
        parent = parent_of(node)
        line = parent.line_at_infinity
        if line is None or node.id not in line:
            return
        if line[0] == node.id:
            line[0] = line[-1]
            line.pop()
            self._move_first_to_front(parent, line)
        else:
            line.remove(node.id)

    def charge(self, node: Node, n_bytes: int) -> None:
        """Charge by bytes; once time is infinite, exchange the first and the last of the line."""
        while node.parent is not None and node.entry is not None:
            parent = node.parent
            line = parent.line_at_infinity
            if node.fixed_time == _AFTER_ALL:
                # Quicker divides by the weight: bytes / 0 is infinity, and so are all sums with it.
                self._end_time(parent)
            elif node.fixed_time is None and line is not None:
                # Retransmissions may be charged out of order, and then move nothing.
                if line[0] == node.id:
                    line[0], line[-1] = line[-1], node.id
                    self._reposition(parent, node, _TIE_OF_WAITING)
                    self._move_first_to_front(parent, line)
            elif node.fixed_time is None:
                charged = self.turn_bytes if node.is_placeholder else n_bytes
                parent.last_served_time = node.entry[0]
                entry = node.entry
                moved: Entry = (entry[0] + charged * node.cost_per_byte, node.tie_breaker, node)
                node.entry = moved
                relist(parent, entry, moved)
            node = parent

    def _end_time(self, parent: Node) -> None:
        """Make time infinite from now on; active children with a share keep their order."""
        if parent.line_at_infinity is not None:
            return
        # Ties are unique among siblings, so this order does not depend on the heap's layout.
        shared = [node for _, _, node in sorted(_valid_entries(parent)) if node.fixed_time is None]
        for node in shared:
            self._reposition(parent, node, _TIE_OF_WAITING)
        parent.line_at_infinity = line = [node.id for node in shared]
        self._move_first_to_front(parent, line)

    def _move_first_to_front(self, parent: Node, line: list[int]) -> None:
        """Give the first of the line the position before the others."""
        if line:
            self._reposition(parent, parent.children[line[0]], _TIE_OF_FRONT)

    @staticmethod
    def _reposition(parent: Node, node: Node, tie: int) -> None:
        """List a child at an infinite time, with *tie* as its position."""
        entry = node.entry
        moved: Entry = (_AFTER_ALL, tie, node)
        node.entry = moved
        relist(parent, entry, moved)


class Nghttp2Cycles(FairQueueing):
    """Integer cycles, (bytes * 256 + remainder) / weight per quantum, carrying the remainder.

    Equal cycles go to the child listed first.
    """

    def start_key(self, node: Node, parent: Node) -> tuple[Time, int]:
        """Start at the cycle served last, plus a quantum that is not paid for yet."""
        parent.n_listed += 1
        due = node.quantum_bytes * MAX_WEIGHT + node.remainder
        cycles, node.remainder = divmod(due, node.weight)
        return parent.last_served_time + cycles, parent.n_listed

    def charge(self, node: Node, n_bytes: int) -> None:
        """Charge *n_bytes* to the node and its ancestors, from their own cycles.

        The loop of the base class, inlined: browsers' trees use nghttp2's rules.
        """
        parent, entry = node.parent, node.entry
        while parent is not None and entry is not None:
            # Even if it was not the first: nghttp2 sets the last cycle to that of the child it
            # served.
            time = parent.last_served_time = entry[0]
            # A number per listing: equal cycles go to the child that has waited longest.
            number = parent.n_listed = parent.n_listed + 1
            node.quantum_bytes = n_bytes
            due = n_bytes * MAX_WEIGHT + node.remainder
            node.remainder = due % node.weight
            moved: Entry = (time + due // node.weight, number, node)
            node.entry = moved
            heap = parent.heap
            if heap[0] is not entry:
                relist(parent, entry, moved)
            else:
                heapreplace(heap, moved)
                if parent.n_stale:
                    drop_stale(parent)
            node = parent
            parent, entry = node.parent, node.entry

    def reweigh(self, node: Node, weight: int) -> None:
        """Charge the last quantum again at the new weight, but never go back in time."""
        before, node.weight = node.weight, weight
        entry, parent = node.entry, node.parent
        if entry is None or parent is None or weight == before:
            return
        # As nghttp2_stream_change_weight: the last quantum is refunded, and charged again.
        paid = node.quantum_bytes * MAX_WEIGHT
        # The remainder carried into its last quantum, derived from the one after it.
        due = paid + (node.remainder - paid) % before
        cycles, node.remainder = divmod(due, weight)
        # A heavier stream must not precede children served since its last quantum.
        old_time, tie, _ = entry
        time = max(old_time - due // before + cycles, parent.last_served_time)
        moved: Entry = (time, tie, node)
        node.entry = moved
        relist(parent, entry, moved)

    def forget(self, node: Node) -> None:
        """Reset its remainder and last quantum, and the clock of its own children."""
        node.quantum_bytes = node.remainder = 0
        node.last_served_time = 0


class H2oCalendar(FairQueueing):
    """A calendar queue: the lowest slot is served first, first in first out in each.

    A quantum advances a child by 63 / weight slots, whatever its bytes; parts of a slot, counted in
    1/65536, are carried over. So none is ever more than 63 slots ahead of the one served last, and
    a ring of 64 slots is equivalent to the unbounded numbers used here.
    """

    def start_key(self, node: Node, parent: Node) -> tuple[Time, int]:
        """Start one quantum behind the slot that was served last."""
        parent.n_listed += 1
        node.remainder_before = node.remainder
        parts = _PARTS_PER_QUANTUM[node.weight] + node.remainder
        slots, node.remainder = divmod(parts, _PARTS_PER_SLOT)
        return parent.last_served_time + slots, parent.n_listed

    def next_key(self, node: Node, parent: Node, time: Time, n_bytes: int) -> tuple[Time, int]:
        """Join again: a quantum costs the same whatever its bytes."""
        parent.last_served_time = time
        return self.start_key(node, parent)

    def finish(self, node: Node) -> None:
        """Unlist a stream, which gets back its remainder from before its last quantum.

        h2o charges a quantum when it relists the stream after it, and so not the one that ends
        its data.
        """
        parent, entry = node.parent, node.entry
        # The highest number is its own: it was listed by the quantum that has just ended, and no
        # other child since.
        if parent is not None and entry is not None and entry[1] == parent.n_listed:  # its tie
            self.unlist_if_idle(node)
            # If a descendant still has data it stays listed, and the charge stands.
            if node.entry is None:
                node.remainder = node.remainder_before
            return
        self.unlist_if_idle(node)

    def reweigh(self, node: Node, weight: int) -> None:
        """List the node anew if its weight differs."""
        before, node.weight = node.weight, weight
        if node.entry is not None and weight != before:
            self.unlist(node)
            self.enlist(node)


class AtsPoints(FairQueueing):
    """Points: a quantum costs bytes * 256 / weight, truncated; the fewest points go first.

    A stream starts with its ID, a placeholder with its number. Equal points go to the lower ID.
    """

    def start_key(self, node: Node, parent: Node) -> tuple[Time, int]:
        """Rejoin with the former points: an absent child precedes those that continued."""
        return node.ats_points, node.tie_breaker

    def next_key(self, node: Node, parent: Node, time: Time, n_bytes: int) -> tuple[Time, int]:
        """Add the cost to its points."""
        # Truncated per quantum without carry, as with the server's integers: with many small frames
        # a heavy stream pays less than its share.
        node.ats_points += n_bytes * MAX_WEIGHT // node.weight
        return node.ats_points, node.tie_breaker


def queueing_of(queueing: Queueing, *, turn_bytes: int, weights: Weights) -> FairQueueing:
    """Return the discipline of that name.

    Raises:
        ValueError: if it has no meaning for zero weights.
    """
    if queueing is Queueing.EXACT and weights is Weights.QUICKER_ZERO:
        return QuickerZeroTime(turn_bytes=turn_bytes)
    if queueing is Queueing.EXACT:
        return ExactTime(turn_bytes=turn_bytes, weights=weights)
    if weights is not Weights.SHARES:
        raise ValueError(f"zero weights need exact queueing, not {queueing.value!r}")
    disciplines = {
        Queueing.NGHTTP2: Nghttp2Cycles,
        Queueing.H2O: H2oCalendar,
        Queueing.ATS: AtsPoints,
    }
    return disciplines[queueing](turn_bytes=turn_bytes)


@mypyc_attr(allow_interpreted_subclasses=True, serializable=True)
class StrictGroup:
    """The children of a placeholder or of the root: a level per strict priority.

    Elements of one level share by weight. A level is a tree node whose heap lists them; no rule of
    the tree applies to it.
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
        was_idle = not level.heap
        self._queueing.list_ready(level.children[element_id])
        if was_idle:
            # The heap returns the lowest rank first, and the highest strict priority goes first.
            self._active.put(strict, -strict)
            self._update_highest()

    def deactivate(self, element_id: int, strict: int) -> None:
        """Deactivate an element."""
        level = self._levels[strict]
        self._queueing.finish(level.children[element_id])
        if not level.heap:
            self._active.drop(strict)
            self._update_highest()

    def pick(self) -> int | None:
        """Return the next element: of the highest strict priority, by weight."""
        if self.highest is None:
            return None
        # The first entry of a heap, which ends with its node, is never stale.
        node: Node = self.highest.heap[0][2]
        return node.id

    def _update_highest(self) -> None:
        """Set `highest` to the level of the highest active strict priority."""
        strict = self._active.first
        self.highest = None if strict is None else self._levels[strict]
