"""A tree as a list, for pickling: nodes name one another by number.

pickle follows references one inside the other, and would run out of stack in a deep tree.
"""

from __future__ import annotations

from heapq import heapify
from typing import TYPE_CHECKING, Any, TypeAlias

from h3sim.schedulers.tree.node import Node

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["FlatNode", "flattened", "rebuilt"]

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
