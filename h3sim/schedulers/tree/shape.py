"""The structure of the tree: dependencies and weights (RFC 7540 § 5.3).

Scheduling is separate: each insertion, removal or change of weight is reported to the queueing
discipline, which keeps the lists of active children.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from h3sim.schedulers.tree.disciplines import parent_of
from h3sim.schedulers.tree.node import flattened, rebuilt
from h3sim.schedulers.tree.options import Orphans, UnknownParent
from h3sim.signals import ORPHANS, H2Priority
from h3sim.values._mypyc import mypyc_attr
from h3sim.values.errors import H3SimError

if TYPE_CHECKING:
    from h3sim.schedulers.tree.disciplines import FairQueueing
    from h3sim.schedulers.tree.node import Node
    from h3sim.schedulers.tree.options import Weights
    from h3sim.signals import Signal


_MAX_REMEMBERED_PARENTS = 64
"""The number of removed nodes whose parents are remembered, as in Apache Traffic Server."""

_PICKLED_ATTRIBUTES = (
    "_queueing",
    "_least_weight",
    "_most_weight",
    "_default_priority",
    "_orphans",
    "_unknown_parent",
    "_newest_id",
    "_max_retained",
    "_retained",
    "_parents_of_removed",
    "_idle",
    "_closed",
    "_n_open",
    "_retains_closed",
)
"""The pickled attributes of any server's tree, without nodes; compiled, it has no `__dict__`."""


class SelfDependencyError(H3SimError, ValueError):
    """A self-dependency: a stream error of type PROTOCOL_ERROR (RFC 7540 § 5.3.1).

    >>> SelfDependencyError(4).stream_id
    4
    """

    def __init__(self, stream_id: int) -> None:
        super().__init__(f"stream {stream_id} cannot depend on itself (RFC 7540 § 5.3.1)")
        self.stream_id = stream_id

    def __reduce__(self) -> tuple[type[SelfDependencyError], tuple[int]]:
        return type(self), (self.stream_id,)


@mypyc_attr(allow_interpreted_subclasses=True, serializable=True)
class DependencyTree:
    """Nodes by id, and the root above them. `TreeScheduler` explains the options."""

    def __init__(
        self,
        queueing: FairQueueing,
        *,
        weights: Weights,
        orphans: Orphans,
        unknown_parent: UnknownParent,
        retain: int,
    ) -> None:
        self.root = queueing.make_node(0)
        self.nodes: dict[int, Node] = {}
        self._queueing = queueing
        self._least_weight, self._most_weight = weights.limits
        self._default_priority = H2Priority(weight=weights.default)
        self._orphans = orphans
        self._unknown_parent = unknown_parent
        self._max_retained = retain
        self._retained: dict[int, None] = {}
        """Closed nodes that are still in the tree, the oldest first."""
        self._parents_of_removed: dict[int, int | None] = {}
        """The last parents of removed nodes, for `UnknownParent.ANCESTOR`."""
        self._newest_id = -1
        """The highest opened ID: higher ones are idle (RFC 7540 § 5.1.1)."""
        if unknown_parent is UnknownParent.ORPHANS:
            orphanage = self.nodes[ORPHANS] = queueing.make_node(ORPHANS)
            self._attach(orphanage, self.root)

    def __getstate__(self) -> dict[str, Any]:
        state = {name: getattr(self, name) for name in _PICKLED_ATTRIBUTES if hasattr(self, name)}
        return {**state, "nodes": flattened([self.root, *self.nodes.values()])}

    def __setstate__(self, state: dict[str, Any]) -> None:
        for name in _PICKLED_ATTRIBUTES:
            if name in state:
                setattr(self, name, state[name])
        self.root, *nodes = rebuilt(state["nodes"])
        self.nodes = {node.id: node for node in nodes}

    # Changes

    def open(self, node_id: int, signal: Signal) -> None:
        """Add a node to the tree, or open an existing one that others depend on."""
        node = self.nodes.get(node_id)
        if node is not None and node.is_open:
            raise ValueError(f"stream {node_id} is open already")
        priority = self._check_priority(node_id, signal)
        if node_id > self._newest_id:
            self._newest_id = node_id
        parent, priority = self._resolved(node_id, priority)
        if node is None:
            node = self._make_node(node_id)
            self._queueing.reweigh(node, priority.weight)
            self._insert(node, parent, is_exclusive=priority.exclusive)
            return
        node.is_implied = node.is_idle = node.is_closed = False
        self._retained.pop(node_id, None)
        self._reprioritize(node, parent, priority)

    def update(self, node_id: int, signal: Signal) -> None:
        """Change the weight or parent of a node; its descendants move along."""
        node = self.nodes[node_id]
        priority = self._check_priority(node_id, signal)
        is_known = priority.depends_on is None or priority.depends_on in self.nodes
        if not is_known and self._unknown_parent is UnknownParent.ANCESTOR:  # Apache Traffic Server
            return
        parent, priority = self._resolved(node_id, priority)
        self._reprioritize(node, parent, priority)

    def prioritize(self, node_id: int, signal: Signal) -> None:
        """Handle a PRIORITY frame: change a node in the tree, or add an idle one."""
        # RFC 7540 § 5.3.4: a frame may name an idle stream, to group others below it. One for a
        # stream that was removed has nothing to change: its ID cannot be used again (§ 5.1.1).
        if node_id in self.nodes:
            self.update(node_id, signal)
        elif node_id > self._newest_id:
            self._insert_idle(node_id, self._check_priority(node_id, signal))

    def close(self, node_id: int) -> None:
        """Close a node, and remove the oldest retained one beyond the limit."""
        node = self.open_node(node_id)
        node.has_data = False
        if not self._max_retained:
            self._remove(node)
            return
        # It stays in the tree above its children, and is listed for their sake only.
        self._queueing.unlist_if_idle(node)
        node.is_closed = True
        self._retained[node_id] = None
        if len(self._retained) > self._max_retained:
            self._remove(self.nodes[next(iter(self._retained))])  # the oldest

    def open_node(self, node_id: int) -> Node:
        """Return an open node.

        Raises:
            KeyError: if it is not in the tree, or only retained or implied.
        """
        node = self.nodes[node_id]
        if node.is_closed or node.is_implied or node.is_idle:  # `is_open`, without a call
            raise KeyError(node_id)
        return node

    # Signals

    def _check_priority(self, node_id: int, signal: Signal) -> H2Priority:
        """Return the priority of a signal, if the tree can apply it."""
        # RFC 7540 § 5.3.5: streams without a signal have the default priority.
        priority = signal if isinstance(signal, H2Priority) else self._default_priority
        if priority.depends_on == node_id:
            raise SelfDependencyError(node_id)
        if not self._least_weight <= priority.weight <= self._most_weight:
            limits = f"{self._least_weight} to {self._most_weight}"
            raise ValueError(f"weight must be {limits}, is {priority.weight}")
        return priority

    def _resolved(self, node_id: int, priority: H2Priority) -> tuple[Node, H2Priority]:
        """Return the parent, which is in the tree, and the effective priority."""
        parent_id = priority.depends_on
        if parent_id is None:
            return self.root, priority
        parent = self.nodes.get(parent_id)
        if parent is not None:
            return parent, priority
        match self._unknown_parent:
            case UnknownParent.DEFAULT:
                return self.root, self._default_priority
            case UnknownParent.CREATE | UnknownParent.ORPHANS:
                return self._add_implied(parent_id), priority
            case UnknownParent.ANCESTOR:
                ancestor = self._ancestor(parent_id)
                if ancestor is not None and ancestor.id != node_id:
                    return ancestor, priority
                # An older parent should be known but is not: the weight is ignored as well.
                weight = self._default_priority.weight if parent_id < node_id else priority.weight
                return self._add_implied(parent_id), H2Priority(weight=weight)

    def _ancestor(self, node_id: int) -> Node | None:
        """Return the nearest remaining ancestor of a removed node."""
        above = self._parents_of_removed.get(node_id)
        # Each parent was removed after its child, if at all: the loop ends.
        while above is not None and above not in self.nodes:
            above = self._parents_of_removed.get(above)
        return None if above is None else self.nodes[above]

    def _make_node(self, node_id: int) -> Node:
        """Return a new node without a parent, and forget its former one."""
        # The former parent may become its descendant: the search for an ancestor would not end.
        self._parents_of_removed.pop(node_id, None)
        return self.nodes.setdefault(node_id, self._queueing.make_node(node_id))

    def _add_implied(self, node_id: int) -> Node:
        """Add a node below the root because another depends on it."""
        node = self._make_node(node_id)
        node.is_implied = True
        self._queueing.reweigh(node, self._default_priority.weight)
        self._attach(node, self.nodes.get(ORPHANS, self.root))
        return node

    def _insert_idle(self, node_id: int, priority: H2Priority) -> None:
        """Add a node of which only the priority is known yet."""
        parent, priority = self._resolved(node_id, priority)
        node = self._make_node(node_id)
        node.is_idle = True
        self._queueing.reweigh(node, priority.weight)
        self._insert(node, parent, is_exclusive=priority.exclusive)

    # Moves

    def _reprioritize(self, node: Node, parent: Node, priority: H2Priority) -> None:
        """Apply a new priority to a node; an inserted parent may move with it."""
        if parent is node.parent and not priority.exclusive:  # it keeps its turn
            self._queueing.reweigh(node, priority.weight)
            return
        may_be_childless = [node]
        if is_below(parent, node):
            may_be_childless.append(parent_of(parent))
            # RFC 7540 § 5.3.3: otherwise the two would form a cycle, cut off from the root.
            self._move(parent, parent_of(node), starts_anew=True)
        old_parent = self._detach(node)
        self._queueing.forget(node)
        self._queueing.reweigh(node, priority.weight)
        self._insert(node, parent, is_exclusive=priority.exclusive)
        # After the node is listed again: a group above both never becomes inactive.
        self._queueing.unlist_if_idle(old_parent)
        for each in (*may_be_childless, old_parent):
            self._prune(each)

    def _insert(self, node: Node, parent: Node, *, is_exclusive: bool) -> None:
        """Attach a node; if it is exclusive, its new siblings become its children."""
        node.is_exclusive = is_exclusive
        # Only an exclusive insertion reads the siblings: there may be thousands. The orphan
        # placeholder is outside the tree: none of its siblings can adopt it.
        siblings = [*parent.children.values()] if is_exclusive else []
        self._attach(node, parent)
        for sibling in siblings:
            if sibling.id != ORPHANS:
                self._move(sibling, node)

    def _move(
        self, node: Node, parent: Node, *, weight: int | None = None, starts_anew: bool = False
    ) -> None:
        """Move the node to another parent, which is listed before the old one may be unlisted.

        With *starts_anew* it loses its position among siblings.
        """
        old_parent = self._detach(node)
        node.is_exclusive = False
        if starts_anew:
            self._queueing.forget(node)
        if weight is not None:
            self._queueing.reweigh(node, weight)
        self._attach(node, parent)
        self._queueing.unlist_if_idle(old_parent)

    def _attach(self, node: Node, parent: Node) -> None:
        """Make the node a child of *parent*, listed if its subtree has data."""
        node.parent = parent
        parent.children[node.id] = node
        if node.has_data or node.heap:
            self._queueing.list_ready(node)

    def _detach(self, node: Node) -> Node:
        """Detach the node from its parent, and return the parent."""
        parent = parent_of(node)
        del parent.children[node.id]
        if node.entry is not None:
            self._queueing.unlist(node)
        node.parent = None
        return parent

    # Removals

    def _remove(self, node: Node) -> None:
        """Remove a node without data; its children move up to its parent."""
        # RFC 7540 § 5.3.4: the dependents of a removed stream move to its parent, and share its
        # weight in proportion to their own (`Orphans`: not every server does that).
        del self.nodes[node.id]
        self._retained.pop(node.id, None)
        parent = parent_of(node)
        if node.children:
            children = list(node.children.values())
            # Before the first is moved: `_move` changes their weights one by one.
            total = sum(child.weight for child in children)
            for child in children:
                weight = self._orphans.weight(child.weight, node.weight, total)
                self._move(child, parent, weight=weight)
        self._queueing.unlist_if_idle(self._detach(node))
        self._remember(node.id, parent)
        self._prune(parent)

    def _remember(self, node_id: int, parent: Node) -> None:
        """Record the parent of a removed node, for later streams that depend on the node."""
        if self._unknown_parent is UnknownParent.ANCESTOR and parent is not self.root:
            self._parents_of_removed[node_id] = parent.id
            if len(self._parents_of_removed) > _MAX_REMEMBERED_PARENTS:
                del self._parents_of_removed[next(iter(self._parents_of_removed))]

    def _prune(self, node: Node) -> None:
        """Remove the node if it existed for children only and has none left."""
        # It may have been removed already, with a child that was pruned before it.
        if node.is_implied and not node.children and self.nodes.get(node.id) is node:
            self._remove(node)


def is_below(node: Node | None, other: Node) -> bool:
    """Return whether *node* is *other*, or one of its descendants."""
    while node is not None:
        if node is other:
            return True
        node = node.parent
    return False
