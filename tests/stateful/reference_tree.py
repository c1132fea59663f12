"""A dependency tree that is slow and plain: a list of nodes, recursion, fractions and `min`.

It says what a node's virtual time means instead of keeping a queue: a node has one exactly while
it, or something below it, has data. Whoever has none and needs one starts a turn behind the sibling
that was served last; whoever is put in another place needs a new one.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from h3sim.signals import H2Priority


@dataclass
class Node:
    """A stream, a placeholder (id below 0) or the root (no id)."""

    id: int | None
    parent: Node | None = None
    weight: int = 16
    has_data: bool = False
    time: Fraction | None = None
    last_served: Fraction = Fraction(0)


class ReferenceTree:
    """Behaves as `h3sim.schedulers.TreeScheduler` says that it does."""

    def __init__(self, *, turn_bytes, has_zero_weights):
        self.turn_bytes = turn_bytes
        self.has_zero_weights = has_zero_weights
        self.root = Node(None)
        self.nodes = []

    def open(self, stream_id, signal):
        wanted = self._resolved(signal)
        node = Node(stream_id, weight=wanted.weight)
        self.nodes.append(node)
        self._put(node, wanted)
        self._refresh()

    def update(self, stream_id, signal):
        node, wanted = self._node(stream_id), self._resolved(signal)
        if self._band(node.weight) != self._band(wanted.weight):
            node.time = None
        node.weight = wanted.weight
        parent = self._node(wanted.depends_on)
        if parent is not node.parent or wanted.exclusive:
            if node in self._ancestors(parent):
                self._hang(parent, node.parent)
            self._put(node, wanted)
        self._refresh()

    def activate(self, stream_id):
        self._node(stream_id).has_data = True
        self._refresh()

    def deactivate(self, stream_id):
        self._node(stream_id).has_data = False
        self._refresh()

    def close(self, stream_id):
        node = self._node(stream_id)
        for child in self._children(node):
            self._hang(child, node.parent)
        self.nodes.remove(node)
        self._refresh()

    def pick(self):
        node = self.root
        while not node.has_data:
            waiting = [child for child in self._children(node) if self._wants(child)]
            if not waiting:
                return None
            node = min(waiting, key=self._turn)
        return node.id

    def charge(self, stream_id, n_bytes):
        node = self._node(stream_id)
        while node is not self.root:
            if self._band(node.weight) == 1:
                node.parent.last_served = node.time
                node.time += self._cost(node, self.turn_bytes if node.id < 0 else n_bytes)
            node = node.parent

    @property
    def ids(self):
        """The ids of all nodes."""
        return [node.id for node in self.nodes]

    @property
    def sending(self):
        """The ids of the streams that have data."""
        return [node.id for node in self.nodes if node.has_data]

    def parent_of(self, stream_id):
        """Return the parent's id, None for the root."""
        return self._node(stream_id).parent.id

    def _node(self, stream_id):
        if stream_id is None:
            return self.root
        return next(node for node in self.nodes if node.id == stream_id)

    def _resolved(self, signal):
        """Another type of signal, or a parent that is not there, means the default priority."""
        if not isinstance(signal, H2Priority) or signal.depends_on not in [None, *self.ids]:
            return H2Priority()
        return signal

    def _put(self, node, wanted):
        parent = self._node(wanted.depends_on)
        self._hang(node, parent)
        if wanted.exclusive:
            for child in self._children(parent):
                if child is not node:
                    self._hang(child, node)

    @staticmethod
    def _hang(node, parent):
        node.parent, node.time = parent, None

    def _children(self, node):
        return [child for child in self.nodes if child.parent is node]

    @staticmethod
    def _ancestors(node):
        found = []
        while node is not None:
            found.append(node)
            node = node.parent
        return found

    def _wants(self, node):
        return node.has_data or any(self._wants(child) for child in self._children(node))

    def _refresh(self):
        for node in self.nodes:
            if not self._wants(node):
                node.time = None
            elif node.time is None:
                node.time = node.parent.last_served + self._cost(node, self.turn_bytes)

    def _band(self, weight):
        """0 comes before all, 2 behind all; only band 1 shares."""
        return {255: 0, 0: 2}.get(weight, 1) if self.has_zero_weights else 1

    def _cost(self, node, n_bytes):
        return Fraction(n_bytes * 256, node.weight) if self._band(node.weight) == 1 else Fraction(0)

    def _turn(self, node):
        """Earlier time first, then streams by id, then placeholders as they were declared."""
        band = self._band(node.weight)
        return band, node.time if band == 1 else 0, node.id < 0, abs(node.id)
