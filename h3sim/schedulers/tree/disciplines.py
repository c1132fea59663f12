"""Queueing disciplines of the tree: a heap per node, and fair queueing as servers do it.

A discipline defines three things: the virtual time of a child that joins, its entry after a
quantum, and the effect of a new weight. What it has to know of a node for that is `Node.state`.
Everything else, `pick` included, is shared. A node is *listed*
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
from h3sim.signals import MAX_WEIGHT, ORPHANS
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

    def make_node(self, node_id: int) -> Node:
        """Return a new node with the state that the discipline keeps of it."""
        raise NotImplementedError

    def start_key(self, node: Node, parent: Node) -> tuple[Time, int]:
        """Return the virtual time and the tie-breaker of a node that joins its siblings."""
        raise NotImplementedError

    def next_entry(self, node: Node, parent: Node, entry: Entry, n_bytes: int) -> Entry:
        """Return the node's entry after a quantum of its subtree; *entry* itself if it stays."""
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
        parent, entry = node.parent, node.entry
        while parent is not None and entry is not None:
            moved = self.next_entry(node, parent, entry, n_bytes)
            if moved is not entry:
                node.entry = moved
                relist(parent, entry, moved)
            node = parent
            parent, entry = node.parent, node.entry

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
class ExactState:
    """State of a node under exact time."""

    __slots__ = ("cost_per_byte", "fixed_time", "line_at_infinity", "quantum_bytes")

    def __init__(self, node_id: int) -> None:
        self.cost_per_byte = 0
        self.fixed_time: Time | None = _AFTER_ALL if node_id == ORPHANS else None
        """The virtual time that its weight stands for, or None if the weight is a share.

        Descendants of the orphan placeholder are served only if nothing else can be (HTTP/3
        draft-22)."""
        self.quantum_bytes = _NO_QUANTUM
        """The bytes of its last quantum, while it is listed alone."""
        self.line_at_infinity: list[int] | None = None
        """The IDs of active children with shares, once time is infinite (Quicker)."""


@mypyc_attr(allow_interpreted_subclasses=True, serializable=True)
class ExactTime(FairQueueing):
    """Exact virtual time: bytes * 256 / weight, in units of 1/lcm(1..256).

    So equal shares tie exactly. Ties go to the lower ID, and to streams before placeholders.
    """

    def __init__(self, *, turn_bytes: int, weights: Weights) -> None:
        super().__init__(turn_bytes=turn_bytes)
        self._fixed_times = _FIXED_TIMES_BY_WEIGHT[weights]

    def make_node(self, node_id: int) -> Node:
        """Return a new node."""
        return Node(node_id, ExactState(node_id))

    def start_key(self, node: Node, parent: Node) -> tuple[Time, int]:
        """Start one quantum behind the child that was served last."""
        state: ExactState = node.state
        # The quantum that `next_entry` remembers is valid only until the node leaves its list.
        state.quantum_bytes = _NO_QUANTUM
        time = state.fixed_time
        if time is None:
            # Not at `last_served_time`: a stream that often leaves and joins would be first each
            # time, and get more than its share.
            time = parent.last_served_time + self.turn_bytes * state.cost_per_byte
        return time, node.tie_breaker

    def reweigh(self, node: Node, weight: int) -> None:
        """Apply the weight from the next quantum on; a fixed position applies at once."""
        state: ExactState = node.state
        before = state.fixed_time
        # The same bytes cost a different time from now on.
        state.quantum_bytes = _NO_QUANTUM
        node.weight = weight
        state.cost_per_byte = _COST_PER_BYTE[weight]
        state.fixed_time = self._fixed_times.get(weight)
        # A share needs no new entry: its cost applies from the next quantum. A fixed position
        # applies to this one.
        if state.fixed_time != before and node.entry is not None:
            self.unlist(node)
            self.enlist(node)

    def charge(self, node: Node, n_bytes: int) -> None:
        """Charge *n_bytes*, but a full quantum to a placeholder whatever was sent below it.

        The loop of the base class, inlined: a call per level costs a tenth of a browser's load.
        """
        turn_bytes = self.turn_bytes
        parent, entry = node.parent, node.entry
        while parent is not None and entry is not None:
            state: ExactState = node.state
            # A child with a fixed position stays where it is.
            if state.fixed_time is None:
                charged = turn_bytes if node.is_placeholder else n_bytes
                heap = parent.heap
                if len(heap) == 1:
                    # Only differences of siblings' times matter, so the time of a single child
                    # restarts at 0 with each quantum: in a chain most quanta change nothing.
                    if state.quantum_bytes != charged or parent.last_served_time:
                        state.quantum_bytes = charged
                        parent.last_served_time = 0
                        moved: Entry = (charged * state.cost_per_byte, node.tie_breaker, node)
                        node.entry = moved
                        heap[0] = moved
                else:
                    # This time does not start at 0, so it must not be mistaken for that of a single
                    # child.
                    state.quantum_bytes = _NO_QUANTUM
                    parent.last_served_time = time = entry[0]
                    moved = (time + charged * state.cost_per_byte, node.tie_breaker, node)
                    node.entry = moved
                    # Retransmissions may be charged out of order: then the entry is inside the
                    # heap.
                    if heap[0] is entry and not parent.n_stale:
                        heapreplace(heap, moved)
                    else:
                        relist(parent, entry, moved)
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
        line: list[int] | None = parent.state.line_at_infinity
        if line is None or node.state.fixed_time is not None:
            return super().start_key(node, parent)
        line.append(node.id)
        return _AFTER_ALL, _TIE_OF_FRONT if len(line) == 1 else _TIE_OF_WAITING

    def unlist(self, node: Node) -> None:
        """Leave the line; the last entry replaces the first."""
        super().unlist(node)
        parent = parent_of(node)
        line: list[int] | None = parent.state.line_at_infinity
        if line is None or node.id not in line:
            return
        if line[0] == node.id:
            line[0] = line[-1]
            line.pop()
            self._move_first_to_front(parent, line)
        else:
            line.remove(node.id)

    def charge(self, node: Node, n_bytes: int) -> None:
        """Charge *n_bytes* to the node and its ancestors, by `next_entry`."""
        FairQueueing.charge(self, node, n_bytes)

    def next_entry(self, node: Node, parent: Node, entry: Entry, n_bytes: int) -> Entry:
        """Charge by bytes; once time is infinite, exchange the first and the last of the line."""
        state: ExactState = node.state
        line: list[int] | None = parent.state.line_at_infinity
        if state.fixed_time == _AFTER_ALL:
            # Quicker divides by the weight: bytes / 0 is infinity, and so are all sums with it.
            self._end_time(parent)
            return entry
        if state.fixed_time is not None:
            return entry
        if line is None:
            charged = self.turn_bytes if node.is_placeholder else n_bytes
            parent.last_served_time = time = entry[0]
            return time + charged * state.cost_per_byte, node.tie_breaker, node
        # Retransmissions may be charged out of order, and then move nothing.
        if line[0] != node.id:
            return entry
        line[0], line[-1] = line[-1], node.id
        if line[0] == node.id:  # alone
            return entry
        self._move_first_to_front(parent, line)
        return _AFTER_ALL, _TIE_OF_WAITING, node

    def _end_time(self, parent: Node) -> None:
        """Make time infinite from now on; active children with a share keep their order."""
        state: ExactState = parent.state
        if state.line_at_infinity is not None:
            return
        # Ties are unique among siblings, so this order does not depend on the heap's layout.
        nodes = [node for _, _, node in sorted(_valid_entries(parent))]
        shared = [node for node in nodes if node.state.fixed_time is None]
        for node in shared:
            self._reposition(parent, node, _TIE_OF_WAITING)
        state.line_at_infinity = line = [node.id for node in shared]
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


@mypyc_attr(allow_interpreted_subclasses=True, serializable=True)
class Nghttp2State:
    """State of a node in nghttp2: its last quantum, and what was rounded off its costs."""

    __slots__ = ("quantum_bytes", "remainder")

    def __init__(self) -> None:
        self.quantum_bytes = self.remainder = 0


@mypyc_attr(allow_interpreted_subclasses=True, serializable=True)
class Nghttp2Cycles(FairQueueing):
    """Integer cycles, (bytes * 256 + remainder) / weight per quantum, carrying the remainder.

    Equal cycles go to the child listed first.
    """

    def __init__(self, *, turn_bytes: int) -> None:
        super().__init__(turn_bytes=turn_bytes)
        self._n_listed = 0
        """A number per listing: equal cycles go to the child that has waited longest."""

    def make_node(self, node_id: int) -> Node:
        """Return a new node."""
        return Node(node_id, Nghttp2State())

    def start_key(self, node: Node, parent: Node) -> tuple[Time, int]:
        """Start at the cycle served last, plus a quantum that is not paid for yet."""
        state: Nghttp2State = node.state
        self._n_listed += 1
        due = state.quantum_bytes * MAX_WEIGHT + state.remainder
        cycles, state.remainder = divmod(due, node.weight)
        return parent.last_served_time + cycles, self._n_listed

    def next_entry(self, node: Node, parent: Node, entry: Entry, n_bytes: int) -> Entry:
        """Charge *n_bytes*, from the node's own cycle."""
        state: Nghttp2State = node.state
        # Even if it was not the first: nghttp2 sets the last cycle to that of the child it served.
        time = parent.last_served_time = entry[0]
        self._n_listed = number = self._n_listed + 1
        state.quantum_bytes = n_bytes
        due = n_bytes * MAX_WEIGHT + state.remainder
        state.remainder = due % node.weight
        return time + due // node.weight, number, node

    def reweigh(self, node: Node, weight: int) -> None:
        """Charge the last quantum again at the new weight, but never go back in time."""
        before, node.weight = node.weight, weight
        entry, parent = node.entry, node.parent
        if entry is None or parent is None or weight == before:
            return
        state: Nghttp2State = node.state
        # As nghttp2_stream_change_weight: the last quantum is refunded, and charged again.
        paid = state.quantum_bytes * MAX_WEIGHT
        # The remainder carried into its last quantum, derived from the one after it.
        due = paid + (state.remainder - paid) % before
        cycles, state.remainder = divmod(due, weight)
        # A heavier stream must not precede children served since its last quantum.
        old_time, tie, _ = entry
        time = max(old_time - due // before + cycles, parent.last_served_time)
        moved: Entry = (time, tie, node)
        node.entry = moved
        relist(parent, entry, moved)

    def forget(self, node: Node) -> None:
        """Reset its remainder and last quantum, and the clock of its own children."""
        state: Nghttp2State = node.state
        state.quantum_bytes = state.remainder = 0
        node.last_served_time = 0


@mypyc_attr(allow_interpreted_subclasses=True, serializable=True)
class H2oState:
    """State of a node in h2o."""

    __slots__ = ("n_listed", "remainder", "remainder_before")

    def __init__(self) -> None:
        self.n_listed = 0
        """The number of listings of its children, which breaks ties."""
        self.remainder = self.remainder_before = 0
        """The parts of a slot that are carried over, now and before the last quantum."""


class H2oCalendar(FairQueueing):
    """A calendar queue: the lowest slot is served first, first in first out in each.

    A quantum advances a child by 63 / weight slots, whatever its bytes; parts of a slot, counted in
    1/65536, are carried over. So none is ever more than 63 slots ahead of the one served last, and
    a ring of 64 slots is equivalent to the unbounded numbers used here.
    """

    def make_node(self, node_id: int) -> Node:
        """Return a new node."""
        return Node(node_id, H2oState())

    def start_key(self, node: Node, parent: Node) -> tuple[Time, int]:
        """Start one quantum behind the slot that was served last."""
        state: H2oState = node.state
        siblings: H2oState = parent.state
        siblings.n_listed += 1
        state.remainder_before = state.remainder
        parts = _PARTS_PER_QUANTUM[node.weight] + state.remainder
        slots, state.remainder = divmod(parts, _PARTS_PER_SLOT)
        return parent.last_served_time + slots, siblings.n_listed

    def next_entry(self, node: Node, parent: Node, entry: Entry, n_bytes: int) -> Entry:
        """Join again: a quantum costs the same whatever its bytes."""
        parent.last_served_time = entry[0]
        return *self.start_key(node, parent), node

    def finish(self, node: Node) -> None:
        """Unlist a stream, which gets back its remainder from before its last quantum.

        h2o charges a quantum when it relists the stream after it, and so not the one that ends
        its data.
        """
        parent, entry = node.parent, node.entry
        # The highest number is its own: it was listed by the quantum that has just ended, and no
        # other child since.
        if parent is not None and entry is not None and entry[1] == parent.state.n_listed:
            self.unlist_if_idle(node)
            # If a descendant still has data it stays listed, and the charge stands.
            if node.entry is None:
                node.state.remainder = node.state.remainder_before
            return
        self.unlist_if_idle(node)

    def reweigh(self, node: Node, weight: int) -> None:
        """List the node anew if its weight differs."""
        before, node.weight = node.weight, weight
        if node.entry is not None and weight != before:
            self.unlist(node)
            self.enlist(node)


@mypyc_attr(allow_interpreted_subclasses=True, serializable=True)
class AtsState:
    """State of a node in Apache Traffic Server."""

    __slots__ = ("points",)

    def __init__(self, node_id: int) -> None:
        self.points = node_id if node_id >= 0 else -1 - node_id


class AtsPoints(FairQueueing):
    """Points: a quantum costs bytes * 256 / weight, truncated; the fewest points go first.

    A stream starts with its ID, a placeholder with its number. Equal points go to the lower ID.
    """

    def make_node(self, node_id: int) -> Node:
        """Return a new node."""
        return Node(node_id, AtsState(node_id))

    def start_key(self, node: Node, parent: Node) -> tuple[Time, int]:
        """Rejoin with the former points: an absent child precedes those that continued."""
        return node.state.points, node.tie_breaker

    def next_entry(self, node: Node, parent: Node, entry: Entry, n_bytes: int) -> Entry:
        """Add the cost to its points."""
        state: AtsState = node.state
        # Truncated per quantum without carry, as with the server's integers: with many small frames
        # a heavy stream pays less than its share.
        state.points += n_bytes * MAX_WEIGHT // node.weight
        return state.points, node.tie_breaker, node


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
            level = self._levels[strict] = self._queueing.make_node(0)
        node = self._queueing.make_node(element_id)
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
