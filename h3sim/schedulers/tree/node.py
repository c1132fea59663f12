"""Nodes of the dependency tree, and the flat form that is pickled.

pickle follows references one inside the other, and would run out of stack in a deep tree.
"""

from __future__ import annotations

from heapq import heapify
from typing import TYPE_CHECKING, Any, TypeAlias

from h3sim._mypyc import mypyc_attr
from h3sim.signals import DEFAULT_WEIGHT

if TYPE_CHECKING:
    from collections.abc import Iterable


_PLACEHOLDER_TIE = 2**62
"""Placeholders come behind streams, whose ids stay below 2^62, and among themselves as declared."""


@mypyc_attr(allow_interpreted_subclasses=True, serializable=True)
class Node:
    """A stream, a placeholder or the root."""

    __slots__ = (
        "carry",
        "children",
        "cost_per_byte",
        "entry",
        "fixed_time",
        "has_data",
        "heap",
        "id",
        "is_closed",
        "is_exclusive",
        "is_idle",
        "is_implied",
        "is_placeholder",
        "last",
        "line",
        "n_bytes",
        "n_listed",
        "parent",
        "point",
        "stale",
        "tie",
        "weight",
    )

    def __init__(self, node_id: int) -> None:
        self.id = node_id
        self.is_placeholder = node_id < 0
        self.tie = _PLACEHOLDER_TIE - node_id if node_id < 0 else node_id
        # Its place in the tree.
        self.weight = DEFAULT_WEIGHT
        self.parent: Node | None = None
        self.children: dict[int, Node] = {}
        self.is_exclusive = False
        """True if it was put there exclusively."""
        self.has_data = False
        self.is_closed = False
        """True if it is kept although its stream was closed."""
        self.is_implied = False
        """True if it is there only because another depends on it."""
        self.is_idle = False
        """True if nothing but its priority came yet (RFC 7540 § 5.3.4)."""
        # Its place in the parent's heap, while it or something below it has data to send.
        self.entry: Entry | None = None
        # Its own heap, of the children that have an entry; `stale` counts those that had one.
        self.heap: list[Entry] = []
        self.stale = 0
        self.last: Time = 0
        """The virtual time of the child that was served last."""
        self.n_listed = 0
        """How often a child was listed, where that decides ties."""
        self.line: list[int] | None = None
        """The ids of its children with shares and data, once no time tells them apart."""
        # What a discipline remembers of it.
        self.cost_per_byte = 0
        self.fixed_time: Time | None = None
        self.point = node_id if node_id >= 0 else -1 - node_id
        self.n_bytes = 0
        """What its last turn took; with exact time only while it is listed alone."""
        self.carry = 0

    @property
    def is_open(self) -> bool:
        """True if it is there for itself, and may send."""
        return not (self.is_closed or self.is_implied or self.is_idle)

    def __lt__(self, other: Node) -> bool:
        """Return False: a heap may hold two nodes of one id, a stale one and a reopened one."""
        return False


Time: TypeAlias = int | float
"""Virtual time: an exact integer of any size, or infinity. A float alone it is not: compiled, that
is a number of 53 bits, whatever is put into it."""

Entry: TypeAlias = Any
"""A tuple of virtual time, tie and node.

Whether an entry is the one that a node has is asked of the object. So nothing says that it is a
tuple: compiled, one that is known for one is taken apart where it passes, and made anew.
"""


FlatNode: TypeAlias = tuple[dict[str, Any], list[int], tuple[float, int] | None]
"""What a node holds of its own, the numbers of its children, and its time and tie if listed."""

_OWN = (
    *("id", "is_placeholder", "tie", "weight", "is_exclusive"),
    *("has_data", "is_closed", "is_implied", "is_idle"),
    *("last", "n_listed", "line", "cost_per_byte", "fixed_time", "point", "n_bytes", "carry"),
)
"""All that a node holds but its neighbours, its entry and its heap, which these follow from."""


def flattened(nodes: Iterable[Node]) -> list[FlatNode]:
    """Return the nodes in their order; all that they name must be among them."""
    nodes = list(nodes)
    # The ids of objects find a node again, and decide no order.
    number = {id(node): index for index, node in enumerate(nodes)}
    return [
        (
            {name: getattr(node, name) for name in _OWN},
            [number[id(child)] for child in node.children.values()],
            # Without the node itself, through which pickle would go on to its neighbours.
            None if node.entry is None else node.entry[:2],
        )
        for node in nodes
    ]


def rebuilt(flat: Iterable[FlatNode]) -> list[Node]:
    """Return the nodes that `flattened` made this of, with heaps that hold the same entries."""
    flat = list(flat)
    nodes = [Node(own["id"]) for own, _, _ in flat]
    for node, (own, children, entry) in zip(nodes, flat, strict=True):
        for name, value in own.items():
            setattr(node, name, value)
        # A new tuple, and the one that the heap gets below: entries are told apart by identity.
        node.entry = None if entry is None else (*entry, node)
        for index in children:
            nodes[index].parent = node
            node.children[nodes[index].id] = nodes[index]
    for node in nodes:
        # Entries that were out of date stay behind, so `stale` begins at 0; those alive have one
        # order.
        node.heap = [child.entry for child in node.children.values() if child.entry is not None]
        heapify(node.heap)
    return nodes
