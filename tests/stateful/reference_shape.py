"""The shape of a dependency tree as a list of (node, parent), with every option of the real one.

It knows who stands below whom and with what weight; nothing of turns. The list has the order in
which nodes were put where they stand, so that the children of a node follow in their order.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

from h3sim.schedulers import Orphans, UnknownParent
from h3sim.signals import H2Priority

REMEMBERED = 64


class ReferenceShape:
    """Behaves as `h3sim.schedulers.TreeScheduler` says that it does."""

    def __init__(self, *, orphans: Any, unknown_parent: Any, retain: Any) -> None:
        self.orphans, self.unknown_parent, self.retain = orphans, unknown_parent, retain
        self.positions: list[Any] = []
        self.weights: dict[Any, Any] = {}
        self.opened: list[Any] = []
        self.closed: list[Any] = []
        self.gone: list[Any] = []
        self.sending: list[Any] = []

    @property
    def ids(self) -> list[Any]:
        return [node for node, _ in self.positions]

    @property
    def implied(self) -> list[Any]:
        return [node for node in self.ids if node not in self.opened + self.closed]

    def parent(self, node: Any) -> Any:
        return dict(self.positions)[node]

    def children(self, node: Any) -> list[Any]:
        return [child for child, parent in self.positions if parent == node]

    def ancestors(self, node: Any) -> Any:
        above = []
        while node is not None:
            node = self.parent(node)
            above.append(node)
        return above

    def open(self, node: Any, signal: Any) -> None:
        parent, weight, exclusive = self.resolve(node, signal)
        is_there = node in self.ids
        if node in self.closed:
            self.closed.remove(node)
        self.opened.append(node)
        self.gone = [entry for entry in self.gone if entry[0] != node]
        if is_there:
            self.change(node, parent, weight, exclusive)
        else:
            self.weights[node] = weight
            self.put(node, parent, exclusive)
        self.prune()

    def update(self, node: Any, signal: Any) -> None:
        known = [None, *self.ids]
        if self.unknown_parent is UnknownParent.ANCESTOR and signal.depends_on not in known:
            return
        self.change(node, *self.resolve(node, signal))
        self.prune()

    def close(self, node: Any) -> None:
        self.opened.remove(node)
        self.closed.append(node)
        if node in self.sending:
            self.sending.remove(node)
        while len(self.closed) > self.retain:
            oldest = self.closed.pop(0)
            self.remove(oldest)
        self.prune()

    def resolve(self, node: Any, signal: Any) -> Any:
        """Return parent, weight and whether it is exclusive."""
        parent = signal.depends_on
        if parent is None or parent in self.ids:
            return parent, signal.weight, signal.exclusive
        if self.unknown_parent is UnknownParent.DEFAULT:
            return None, H2Priority().weight, False
        weight, exclusive = signal.weight, signal.exclusive
        if self.unknown_parent is UnknownParent.ANCESTOR:
            above = dict(self.gone)
            ancestor, steps = above.get(parent), 0
            while ancestor is not None and ancestor not in self.ids and steps <= REMEMBERED:
                ancestor, steps = above.get(ancestor), steps + 1
            if ancestor in self.ids and ancestor != node:
                return ancestor, weight, exclusive
            if parent < node:
                weight = H2Priority().weight
            exclusive = False
        self.weights[parent] = H2Priority().weight
        self.hang(parent, None)
        return parent, weight, exclusive

    def change(self, node: Any, parent: Any, weight: int, exclusive: Any) -> None:
        self.weights[node] = weight
        if parent == self.parent(node) and not exclusive:
            return
        if parent is not None and node in self.ancestors(parent):
            self.hang(parent, self.parent(node))
        self.put(node, parent, exclusive)

    def put(self, node: Any, parent: Any, exclusive: Any) -> None:
        siblings = [child for child in self.children(parent) if child != node]
        self.hang(node, parent)
        for sibling in siblings if exclusive else ():
            self.hang(sibling, node)

    def hang(self, node: Any, parent: Any) -> None:
        self.positions = [position for position in self.positions if position[0] != node] + [
            (node, parent)
        ]

    def remove(self, node: Any) -> None:
        children, parent = self.children(node), self.parent(node)
        total = sum(self.weights[child] for child in children)
        for child in children:
            if self.orphans is not Orphans.KEEP:
                self.weights[child] = max(1, self.share(child, node, total))
            self.hang(child, parent)
        self.positions.remove((node, parent))
        self.gone = [entry for entry in self.gone if entry[0] != node]
        if parent is not None:
            self.gone = [*self.gone, (node, parent)][-REMEMBERED:]

    def share(self, child: Any, node: Any, total: int) -> int:
        """Return the child's part of what the node weighed."""
        weight: int = self.weights[child]
        part = Fraction(self.weights[node], total)
        if self.orphans is Orphans.SHARE:
            # h2o has 16 bits behind the point: a part may be rounded to a half, and that up.
            half = Fraction(1, 2)
            part = Fraction(math.floor(part * 2**16 + half), 2**16)
            return math.floor(weight * part + half)
        return math.floor(weight * part)

    def prune(self) -> None:
        """Nobody is there only for others when there are no others."""
        while alone := [node for node in self.implied if not self.children(node)]:
            self.remove(alone[0])

    def may_send(self) -> list[Any]:
        """Return who has data, and nobody above who has."""
        return [
            node
            for node in self.sending
            if not any(above in self.sending for above in self.ancestors(node))
        ]
