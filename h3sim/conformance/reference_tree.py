"""A dependency tree that is slow and plain: a list of nodes, recursion, fractions and `min`.

It says what a node's virtual time means instead of keeping a queue: a node has one exactly while
it, or something below it, has data. Whoever has none and needs one starts a turn behind the sibling
that was served last; whoever is put in another place needs a new one.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from h3sim.schedulers import Weights
from h3sim.signals import H2Priority

if TYPE_CHECKING:
    from h3sim.signals import Signal

__all__ = ["ReferenceTree"]


@dataclass
class _Node:
    """A stream, a placeholder (id below 0) or the root (no id)."""

    id: int | None
    parent: _Node | None = None
    weight: int = 16
    has_data: bool = False
    time: Fraction | None = None
    last_served: Fraction = Fraction(0)


_BANDS: dict[Weights, dict[int, int]] = {
    Weights.SHARES: {},
    Weights.ZERO: {255: 0, 0: 2},
    Weights.ZERO_LAST: {0: 2},
}


class ReferenceTree:
    """Behaves as `h3sim.schedulers.TreeScheduler` says that it does, with the same settings."""

    def __init__(self, *, turn_bytes: int = 1400, weights: Weights = Weights.SHARES) -> None:
        self._turn_bytes = turn_bytes
        self._default = H2Priority(weight=weights.default)
        self._bands = _BANDS[weights]
        self._root = _Node(None)
        self._nodes: list[_Node] = []

    def open(self, stream_id: int, signal: Signal) -> None:
        """Add a node to the list, and hang it under its parent."""
        wanted = self._resolved(signal)
        node = _Node(stream_id, weight=wanted.weight)
        self._nodes.append(node)
        self._put(node, wanted)
        self._refresh()

    def update(self, stream_id: int, signal: Signal) -> None:
        """Give the node another weight or parent."""
        node, wanted = self._node(stream_id), self._resolved(signal)
        if self._band(node.weight) != self._band(wanted.weight):
            node.time = None
        node.weight = wanted.weight
        parent = self._node(wanted.depends_on)
        if parent is not node.parent or wanted.exclusive:
            if node in self._ancestors(parent):
                self._hang(parent, _known(node.parent))
            self._put(node, wanted)
        self._refresh()

    def activate(self, stream_id: int) -> None:
        """Activate the stream."""
        self._node(stream_id).has_data = True
        self._refresh()

    def deactivate(self, stream_id: int) -> None:
        """Take the stream out of the running."""
        self._node(stream_id).has_data = False
        self._refresh()

    def close(self, stream_id: int) -> None:
        """Take the node off the list; its children go to its parent."""
        node = self._node(stream_id)
        for child in self._children(node):
            self._hang(child, _known(node.parent))
        self._nodes.remove(node)
        self._refresh()

    def pick(self) -> int | None:
        """Go down from the root, at each level to the child whose time is least."""
        node = self._root
        while not node.has_data:
            waiting = [child for child in self._children(node) if self._wants(child)]
            if not waiting:
                return None
            node = min(waiting, key=self._turn)
        return node.id

    def charge(self, stream_id: int, n_bytes: int) -> None:
        """Charge every node from the stream up."""
        node = self._node(stream_id)
        while node.parent is not None:
            if self._band(node.weight) == 1:
                assert node.time is not None, "who is served has a time"  # noqa: S101
                is_placeholder = node.id is not None and node.id < 0
                node.parent.last_served = node.time
                node.time += self._cost(node, self._turn_bytes if is_placeholder else n_bytes)
            node = node.parent

    @property
    def ids(self) -> list[int]:
        """The ids of all nodes."""
        return [node.id for node in self._nodes if node.id is not None]

    @property
    def sending(self) -> list[int]:
        """The ids of the streams that have data."""
        return [node.id for node in self._nodes if node.id is not None and node.has_data]

    def parent_of(self, stream_id: int) -> int | None:
        """Return the parent's id, None for the root."""
        return _known(self._node(stream_id).parent).id

    def _node(self, stream_id: int | None) -> _Node:
        if stream_id is None:
            return self._root
        return next(node for node in self._nodes if node.id == stream_id)

    def _resolved(self, signal: Signal) -> H2Priority:
        """Another type of signal, or a parent that is not there, means the default priority."""
        if not isinstance(signal, H2Priority) or signal.depends_on not in [None, *self.ids]:
            return self._default
        return signal

    def _put(self, node: _Node, wanted: H2Priority) -> None:
        parent = self._node(wanted.depends_on)
        self._hang(node, parent)
        if wanted.exclusive:
            for child in self._children(parent):
                if child is not node:
                    self._hang(child, node)

    @staticmethod
    def _hang(node: _Node, parent: _Node) -> None:
        node.parent, node.time = parent, None

    def _children(self, node: _Node) -> list[_Node]:
        return [child for child in self._nodes if child.parent is node]

    @staticmethod
    def _ancestors(node: _Node | None) -> list[_Node]:
        found = []
        while node is not None:
            found.append(node)
            node = node.parent
        return found

    def _wants(self, node: _Node) -> bool:
        return node.has_data or any(self._wants(child) for child in self._children(node))

    def _refresh(self) -> None:
        for node in self._nodes:
            if not self._wants(node):
                node.time = None
            elif node.time is None:
                last = _known(node.parent).last_served
                node.time = last + self._cost(node, self._turn_bytes)

    def _band(self, weight: int) -> int:
        """0 comes before all, 2 behind all; only band 1 shares."""
        return self._bands.get(weight, 1)

    def _cost(self, node: _Node, n_bytes: int) -> Fraction:
        return Fraction(n_bytes * 256, node.weight) if self._band(node.weight) == 1 else Fraction(0)

    def _turn(self, node: _Node) -> tuple[int, Fraction, bool, int]:
        """Earlier time first, then streams by id, then placeholders as they were declared."""
        assert node.id is not None, "the root is no child"  # noqa: S101
        assert node.time is not None, "who wants to send has a time"  # noqa: S101
        band = self._band(node.weight)
        return band, node.time if band == 1 else Fraction(0), node.id < 0, abs(node.id)


def _known(parent: _Node | None) -> _Node:
    assert parent is not None, "every node but the root has a parent"  # noqa: S101
    return parent
