"""Nodes of the dependency tree, and the flat form that is pickled.

pickle recurses along references, and would exhaust the stack in a deep tree.
"""

from __future__ import annotations

from heapq import heapify
from typing import TYPE_CHECKING, Any, TypeAlias

from h3sim.signals import DEFAULT_WEIGHT
from h3sim.values._mypyc import mypyc_attr

if TYPE_CHECKING:
    from collections.abc import Iterable


_PLACEHOLDER_TIE = 2**62
"""Placeholders come after streams, whose IDs are below 2^62, in the order of declaration."""


@mypyc_attr(allow_interpreted_subclasses=True, serializable=True)
class Node:
    """A stream, a placeholder or the root; *state* is that of its tree's queueing discipline."""

    __slots__ = (
        "children",
        "entry",
        "has_data",
        "heap",
        "id",
        "is_closed",
        "is_exclusive",
        "is_idle",
        "is_implied",
        "is_placeholder",
        "last_served_time",
        "n_stale",
        "parent",
        "state",
        "tie_breaker",
        "weight",
    )

    def __init__(self, node_id: int, state: Any) -> None:
        self.id = node_id
        self.is_placeholder = node_id < 0
        self.tie_breaker = _PLACEHOLDER_TIE - node_id if node_id < 0 else node_id
        """Where equal times go to the lower one."""
        self.state = state
        self.weight = DEFAULT_WEIGHT
        self.parent: Node | None = None
        self.children: dict[int, Node] = {}
        self.is_exclusive = False
        """True if it was inserted exclusively."""
        self.has_data = False
        self.is_closed = False
        """True if it is retained although its stream is closed."""
        self.is_implied = False
        """True if it exists only because another depends on it."""
        self.is_idle = False
        """True if only its priority is known yet (RFC 7540 § 5.3.4)."""
        self.entry: Entry | None = None
        """Its entry in the parent's heap, while its subtree has data to send."""
        self.heap: list[Entry] = []
        """The entries of its children, the next one first; any other may be stale."""
        self.n_stale = 0
        """The number of outdated entries in the heap."""
        self.last_served_time: Time = 0
        """The virtual time of the child served last."""

    @property
    def is_open(self) -> bool:
        """True if it is open, and may send."""
        return not (self.is_closed or self.is_implied or self.is_idle)

    def __lt__(self, other: Node) -> bool:
        """Return False: a heap may hold two nodes of one id, a stale one and a reopened one."""
        return False


Time: TypeAlias = int | float
"""Virtual time: an exact integer of any size, or infinity. Not float alone, which compiled code
truncates to 53 bits."""

Entry: TypeAlias = Any
"""A tuple of virtual time, tie and node.

Entries are compared by identity, so the type does not say tuple: compiled code would unpack a known
tuple and build another one.
"""


FlatNode: TypeAlias = tuple[dict[str, Any], list[int], tuple[Time, int] | None]
"""The node's own state, the indices of its children, and its time and tie if listed."""

_OWN_ATTRIBUTES = (
    *("id", "weight", "is_exclusive", "has_data", "is_closed", "is_implied", "is_idle"),
    *("last_served_time", "state"),
)
"""The attributes to pickle: neither neighbours nor entry and heap, which `rebuilt` derives."""


def flattened(nodes: Iterable[Node]) -> list[FlatNode]:
    """Return the flat form of nodes, in order; all nodes referenced must be among them."""
    nodes = list(nodes)
    # IDs of objects only map nodes to indices, and decide no order.
    number = {id(node): index for index, node in enumerate(nodes)}
    return [
        (
            {name: getattr(node, name) for name in _OWN_ATTRIBUTES},
            [number[id(child)] for child in node.children.values()],
            # Without the node itself, through which pickle would recurse to its neighbours.
            None if node.entry is None else node.entry[:2],
        )
        for node in nodes
    ]


def rebuilt(flat: Iterable[FlatNode]) -> list[Node]:
    """Return the nodes from their flat form, with equivalent heaps."""
    flat = list(flat)
    nodes = [Node(own["id"], own["state"]) for own, _, _ in flat]
    for node, (own, children, entry) in zip(nodes, flat, strict=True):
        for name, value in own.items():
            setattr(node, name, value)
        # One tuple for the node and its heap: entries are compared by identity.
        node.entry = None if entry is None else (*entry, node)
        for index in children:
            nodes[index].parent = node
            node.children[nodes[index].id] = nodes[index]
    for node in nodes:
        # Now that all have their entries. Stale ones are not restored, so `n_stale` starts at 0;
        # the others are totally ordered, so that any heap of them pops them in the same order.
        node.heap = [child.entry for child in node.children.values() if child.entry is not None]
        heapify(node.heap)
    return nodes
