"""The weighted dependency tree, with placeholders and fair queueing in virtual time.

Each node keeps its children that have something to send in a heap, ordered by virtual time. What
is served is charged on every level up to the root; a child that gets something to send starts one
turn behind the child that was served last. Virtual time is exact: it counts bytes * 256 / weight in
units of 1/lcm(1..256), so that equal shares tie exactly and ties fall to the lower stream id.

Source: the scheduler of Marx 2019's server (its rules, not its code), RFC 7540 § 5.3.
"""

from __future__ import annotations

import enum
import math
from heapq import heapify, heappop, heappush, heapreplace
from typing import TYPE_CHECKING, TypeAlias

from h3sim.signals import DEFAULT_WEIGHT, H2Priority

if TYPE_CHECKING:
    from h3sim.signals import Signal

__all__ = ["TreeScheduler", "Weights"]

DEFAULT_TURN_BYTES = 1400
_MAX_WEIGHT = 256
_UNIT = math.lcm(*range(1, _MAX_WEIGHT + 1))
_COST_PER_BYTE = (0, *(_MAX_WEIGHT * _UNIT // weight for weight in range(1, _MAX_WEIGHT + 1)))
_BEFORE_ALL = -1
_AFTER_ALL = math.inf
_SLACK = 16
_PLACEHOLDER_TIE = 2**62
"""Placeholders come behind streams, whose ids stay below 2^62, and among themselves as declared."""


class Weights(enum.Enum):
    """What weights mean among siblings."""

    SHARES = "shares"
    """1 to 256, each a share (RFC 7540 § 5.3.2)."""
    ZERO = "zero"
    """255 first and one at a time; 1 to 254 share; 0 last and one at a time (Marx 2019 § 3.3)."""

    @property
    def limits(self) -> tuple[int, int]:
        """The least and the greatest weight."""
        return (1, 256) if self is Weights.SHARES else (0, 255)


class _Node:
    """A stream, a placeholder or the root.

    `entry` is its place in the parent's heap while it, or something below it, has data to send.
    """

    __slots__ = (
        "children",
        "cost_per_byte",
        "entry",
        "fixed_time",
        "has_data",
        "heap",
        "id",
        "is_placeholder",
        "last",
        "parent",
        "stale",
        "tie",
    )

    def __init__(self, node_id: int) -> None:
        self.id = node_id
        self.is_placeholder = node_id < 0
        self.tie = _PLACEHOLDER_TIE - node_id if node_id < 0 else node_id
        self.cost_per_byte = 0
        self.fixed_time: float | None = None
        self.parent: _Node | None = None
        self.children: dict[int, _Node] = {}
        self.has_data = False
        self.entry: _Entry | None = None
        self.heap: list[_Entry] = []
        self.stale = 0
        self.last: float = 0

    def __lt__(self, other: _Node) -> bool:
        """Let the heap take two nodes of one id: a stale entry beside that of a reopened stream."""
        return False


_Entry: TypeAlias = tuple[float, int, _Node]
"""Virtual time (an exact integer, or infinity), tie and node."""


class TreeScheduler:
    """Parents before children; siblings share by weight.

    *turn_bytes* is what a turn is expected to carry: the step of a child that joins, and what a
    placeholder is charged for a turn below it.

    A parent that is not in the tree means the default priority: under the root, weight 16
    (RFC 7540 § 5.3.1). When a node closes its children move up with their weights unchanged.

    >>> tree = TreeScheduler()
    >>> tree.open(0, H2Priority(weight=128)); tree.open(4, H2Priority(weight=64))
    >>> tree.activate(0); tree.activate(4)
    >>> picked = []
    >>> for _ in range(6):
    ...     picked.append(tree.pick())
    ...     tree.charge(picked[-1], 1400)
    >>> picked
    [0, 0, 4, 0, 0, 4]
    """

    def __init__(
        self, *, turn_bytes: int = DEFAULT_TURN_BYTES, weights: Weights = Weights.SHARES
    ) -> None:
        self._turn_bytes = turn_bytes
        self._weights = weights
        self._root = _Node(0)
        self._nodes: dict[int, _Node] = {}

    def open(self, stream_id: int, signal: Signal) -> None:
        """Put a stream or placeholder into the tree.

        Raises:
            ValueError: if it is there already, depends on itself, or its weight is out of range.
        """
        if stream_id in self._nodes:
            raise ValueError(f"stream {stream_id} is open already")
        wanted = self._wanted(stream_id, signal)
        node = self._nodes[stream_id] = _Node(stream_id)
        self._set_weight(node, wanted.weight)
        self._place(node, wanted)

    def update(self, stream_id: int, signal: Signal) -> None:
        """Give a node another weight or another parent; what is below it moves along.

        A new parent from below the node first takes the node's old place (RFC 7540 § 5.3.3).

        Raises:
            KeyError: if it is not in the tree.
            ValueError: if it depends on itself, or its weight is out of range.
        """
        node = self._nodes[stream_id]
        wanted = self._wanted(stream_id, signal)
        self._set_weight(node, wanted.weight)
        parent = self._parent(wanted)
        if parent is not node.parent or wanted.exclusive:
            if self._is_below(parent, node):
                self._move(parent, _known(node.parent))
            old_parent = self._detach(node)
            self._place(node, wanted)
            self._sleep(old_parent)

    def activate(self, stream_id: int) -> None:
        """Let a stream take part."""
        node = self._nodes[stream_id]
        node.has_data = True
        self._wake(node)

    def deactivate(self, stream_id: int) -> None:
        """Take a stream out of the running; what is below it stays in."""
        node = self._nodes[stream_id]
        node.has_data = False
        self._sleep(node)

    def close(self, stream_id: int) -> None:
        """Take a node out of the tree; its children move up to its parent."""
        node = self._nodes.pop(stream_id)
        parent = _known(node.parent)
        node.has_data = False
        for child in list(node.children.values()):
            self._move(child, parent)
        self._sleep(self._detach(node))

    def pick(self) -> int | None:
        """Return the stream that sends next, or None where none has data."""
        node = self._root
        while node.heap:
            node = node.heap[0][2]
            if node.has_data:
                return node.id
        return None

    def charge(self, stream_id: int, n_bytes: int) -> None:
        """Charge *n_bytes* to the stream and a turn to each placeholder above it.

        A stream above it is charged *n_bytes* as well.
        """
        node = self._nodes[stream_id]
        while node.parent is not None and node.entry is not None:
            parent, entry = node.parent, node.entry
            time = node.fixed_time
            if time is None:
                charged = self._turn_bytes if node.is_placeholder else n_bytes
                parent.last = entry[0]
                time = entry[0] + charged * node.cost_per_byte
            node.entry = moved = (time, node.tie, node)
            heap = parent.heap
            if heap[0] is entry:
                heapreplace(heap, moved)
                _settle(parent)
            else:
                heappush(heap, moved)
                parent.stale += 1
            node = parent

    # Shape

    def _wanted(self, node_id: int, signal: Signal) -> H2Priority:
        wanted = signal if isinstance(signal, H2Priority) else H2Priority()
        if wanted.depends_on == node_id:
            raise ValueError(f"stream {node_id} cannot depend on itself (RFC 7540 § 5.3.1)")
        low, high = self._weights.limits
        if not low <= wanted.weight <= high:
            raise ValueError(f"weight must be {low} to {high}, is {wanted.weight}")
        if wanted.depends_on is not None and wanted.depends_on not in self._nodes:
            return H2Priority(weight=DEFAULT_WEIGHT)
        return wanted

    def _parent(self, wanted: H2Priority) -> _Node:
        return self._root if wanted.depends_on is None else self._nodes[wanted.depends_on]

    def _set_weight(self, node: _Node, weight: int) -> None:
        before = node.fixed_time
        node.cost_per_byte = _COST_PER_BYTE[weight]
        node.fixed_time = None
        if self._weights is Weights.ZERO:
            node.fixed_time = {255: _BEFORE_ALL, 0: _AFTER_ALL}.get(weight)
        if node.fixed_time != before and node.entry is not None:
            self._unlist(node)
            self._list(node)

    def _place(self, node: _Node, wanted: H2Priority) -> None:
        parent = self._parent(wanted)
        siblings = list(parent.children.values()) if wanted.exclusive else []
        self._attach(node, parent)
        for sibling in siblings:
            self._move(sibling, node)

    def _move(self, node: _Node, parent: _Node) -> None:
        """Hang the node under another parent, waking that one before the old one may sleep."""
        old_parent = self._detach(node)
        self._attach(node, parent)
        self._sleep(old_parent)

    def _attach(self, node: _Node, parent: _Node) -> None:
        node.parent = parent
        parent.children[node.id] = node
        if node.has_data or node.heap:
            self._wake(node)

    def _detach(self, node: _Node) -> _Node:
        """Take the node off its parent, and return that."""
        parent = _known(node.parent)
        del parent.children[node.id]
        if node.entry is not None:
            self._unlist(node)
        node.parent = None
        return parent

    @staticmethod
    def _is_below(node: _Node | None, other: _Node) -> bool:
        while node is not None:
            if node is other:
                return True
            node = node.parent
        return False

    # Who has something to send

    def _wake(self, node: _Node) -> None:
        """List the node, and each parent that was not listed before."""
        while node.parent is not None and node.entry is None:
            self._list(node)
            node = node.parent

    def _sleep(self, node: _Node) -> None:
        """Take the node off its parent's list, and so on up, where nothing is left to send."""
        while node.parent is not None and node.entry is not None:
            if node.has_data or node.heap:
                return
            self._unlist(node)
            node = node.parent

    def _list(self, node: _Node) -> None:
        parent = _known(node.parent)
        time = node.fixed_time
        if time is None:
            time = parent.last + self._turn_bytes * node.cost_per_byte
        node.entry = (time, node.tie, node)
        heappush(parent.heap, node.entry)

    def _unlist(self, node: _Node) -> None:
        parent = _known(node.parent)
        was_first = parent.heap[0] is node.entry
        node.entry = None
        if was_first:
            heappop(parent.heap)
            _settle(parent)
            return
        parent.stale += 1
        if 2 * parent.stale > len(parent.heap) + _SLACK:
            parent.heap = [entry for entry in parent.heap if entry[2].entry is entry]
            heapify(parent.heap)
            parent.stale = 0


def _settle(parent: _Node) -> None:
    """Take stale entries off the top, so that the first one is always alive."""
    heap = parent.heap
    while heap and heap[0][2].entry is not heap[0]:
        heappop(heap)
        parent.stale -= 1


def _known(parent: _Node | None) -> _Node:
    assert parent is not None, "every node but the root has a parent"  # noqa: S101
    return parent
