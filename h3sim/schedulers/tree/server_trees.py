"""The tree rules of nghttp2 and h2o, where RFC 7540 leaves them open.

Both define in which order children are relisted after a change of the tree, and whether a group
loses its quantum when its only active child leaves. That decides ties.

Sources: nghttp2 1.52 (lib/nghttp2_session.c, lib/nghttp2_stream.c), h2o 2.2 (lib/http2/scheduler.c,
lib/http2/connection.c). Each rule names its function; their code is not included.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from h3sim.schedulers.tree.disciplines import parent_of
from h3sim.schedulers.tree.options import UnknownParent
from h3sim.schedulers.tree.shape import DependencyTree, is_below
from h3sim.values._mypyc import mypyc_attr

if TYPE_CHECKING:
    from h3sim.schedulers.tree.disciplines import FairQueueing
    from h3sim.schedulers.tree.node import Node
    from h3sim.schedulers.tree.options import Orphans, Weights
    from h3sim.signals import H2Priority, Signal


_MAX_CONCURRENT_STREAMS = 100
"""The concurrent streams that nghttpd allows (SETTINGS_MAX_CONCURRENT_STREAMS)."""
_MAX_IDLE_STREAMS = 100
"""The idle streams that nghttp2 retains (nghttp2_session_adjust_idle_stream)."""


@mypyc_attr(allow_interpreted_subclasses=True, serializable=True)
class Nghttp2Tree(DependencyTree):
    """nghttp2's tree: closed and idle streams are retained; siblings are relisted newest first.

    A node's children are oldest first, as everywhere here; nghttp2 has the reverse order
    (insert_link_dep inserts a child in front). Without *retains_closed* a stream is removed when it
    closes.
    """

    def __init__(
        self,
        queueing: FairQueueing,
        *,
        weights: Weights,
        orphans: Orphans,
        retains_closed: bool = True,
    ) -> None:
        super().__init__(
            queueing,
            weights=weights,
            orphans=orphans,
            unknown_parent=UnknownParent.CREATE,
            retain=0,
        )
        self._idle: dict[int, None] = {}
        """Idle nodes, the oldest first."""
        self._closed: dict[int, None] = {}
        """Closed nodes that are retained, the oldest first."""
        self._retains_closed = retains_closed
        self._n_open = 0
        """The number of open streams, without placeholders."""

    def open(self, node_id: int, signal: Signal) -> None:
        """Add a stream to the tree; one that was idle is removed first.

        So the children of an idle stream move up before it comes back, and share its weight
        (nghttp2_session_open_stream).
        """
        idle = self.nodes.get(node_id)
        if idle is not None and not (idle.is_implied or idle.is_idle):
            raise ValueError(f"stream {node_id} is open already")
        priority = self._check_priority(node_id, signal)
        if node_id > self._newest_id:
            self._newest_id = node_id
        if idle is not None:
            self._remove(idle)
        parent, priority = self._resolved(node_id, priority)
        node = self.nodes[node_id] = self._queueing.make_node(node_id)
        self._queueing.reweigh(node, priority.weight)
        self._insert(node, parent, is_exclusive=priority.exclusive)
        if not node.is_placeholder:
            self._n_open += 1
            self._forget_closed()
        self._forget_idle()

    def update(self, node_id: int, signal: Signal) -> None:
        """Change the weight or parent of a node, be it open, idle or closed."""
        super().update(node_id, signal)
        self._forget_idle()

    def prioritize(self, node_id: int, signal: Signal) -> None:
        """Handle a PRIORITY frame (nghttp2_session_on_priority_received)."""
        super().prioritize(node_id, signal)
        self._forget_idle()

    def close(self, node_id: int) -> None:
        """Close a stream, which is retained (nghttp2_session_keep_closed_stream)."""
        node = self.open_node(node_id)
        node.has_data = False
        if node.is_placeholder:
            self._remove(node)
            return
        # RFC 7540 § 5.3.4 recommends to retain it: signals in flight may still refer to it, and
        # would otherwise give their streams the default priority.
        self._queueing.unlist_if_idle(node)
        node.is_closed = True
        self._closed[node_id] = None
        self._n_open -= 1
        if not self._retains_closed:
            self._remove(node)

    def _forget_closed(self) -> None:
        """Retain closed streams up to the limit of concurrent streams (adjust_closed_stream)."""
        while self._closed and len(self._closed) + self._n_open > _MAX_CONCURRENT_STREAMS:
            self._remove(self.nodes[next(iter(self._closed))])

    def _forget_idle(self) -> None:
        """Remove the oldest idle nodes beyond the limit (adjust_idle_stream)."""
        while len(self._idle) > _MAX_IDLE_STREAMS:
            self._remove(self.nodes[next(iter(self._idle))])

    def _resolved(self, node_id: int, priority: H2Priority) -> tuple[Node, H2Priority]:
        """Return the parent; only an unused ID is created (session_detect_idle_stream)."""
        parent_id = priority.depends_on
        if parent_id is not None and parent_id not in self.nodes:
            # A used ID that is neither in the tree nor idle was removed. Placeholders, below 0, are
            # never used up.
            if 0 <= parent_id <= self._newest_id:
                return self.root, self._default_priority
            self._idle[parent_id] = None
        return super()._resolved(node_id, priority)

    def _insert_idle(self, node_id: int, priority: H2Priority) -> None:
        """Add a node of which only the priority is known yet, and count it as idle."""
        super()._insert_idle(node_id, priority)
        self._idle[node_id] = None

    def _prune(self, node: Node) -> None:
        """Do nothing: idle streams are removed when there are too many."""

    def _reprioritize(self, node: Node, parent: Node, priority: H2Priority) -> None:
        """Remove the node and insert it again (nghttp2_session_reprioritize_stream).

        A group that becomes inactive meanwhile is unlisted, so it starts again even if the node
        returns below it (nghttp2_stream_dep_remove_subtree).
        """
        if is_below(parent, node):
            # RFC 7540 § 5.3.3: otherwise the two would form a cycle.
            self._take_out(parent)
            self._attach(parent, parent_of(node))
        # Compared after that move, by which *parent* has become the node's sibling.
        if parent is node.parent and not priority.exclusive:
            self._queueing.reweigh(node, priority.weight)
            return
        self._take_out(node)
        self._queueing.reweigh(node, priority.weight)
        self._insert(node, parent, is_exclusive=priority.exclusive)

    def _take_out(self, node: Node) -> None:
        """Detach a node with its subtree; it starts anew wherever it is attached."""
        old_parent = self._detach(node)
        self._queueing.forget(node)
        self._queueing.unlist_if_idle(old_parent)

    def _insert(self, node: Node, parent: Node, *, is_exclusive: bool) -> None:
        """Adopt siblings newest first; they follow the node's own children.

        Source: nghttp2_stream_dep_insert and nghttp2_stream_dep_insert_subtree.
        """
        if not is_exclusive:
            super()._insert(node, parent, is_exclusive=False)
            return
        node.is_exclusive = True
        siblings, own_children = [*parent.children.values()], dict(node.children)
        self._attach(node, parent)
        for sibling in reversed(siblings):
            self._move(sibling, node)
        # `_move` has inserted them in listing order; this restores the order of age.
        node.children = {each.id: each for each in siblings} | own_children

    def _remove(self, node: Node) -> None:
        """Remove a node; its children take its position (nghttp2_stream_dep_remove)."""
        del self.nodes[node.id]
        self._closed.pop(node.id, None)
        self._idle.pop(node.id, None)
        parent, children = parent_of(node), [*node.children.values()]
        siblings = [*parent.children.values()]
        total = sum(child.weight for child in children)
        for child in reversed(children):
            weight = self._orphans.weight(child.weight, node.weight, total)
            self._move(child, parent, weight=weight)
        self._queueing.unlist_if_idle(self._detach(node))
        if children:
            # `_move` has appended the children; nghttp2 puts them in the position of the removed
            # node.
            index = siblings.index(node)
            siblings[index : index + 1] = children
            parent.children = {each.id: each for each in siblings}


@mypyc_attr(allow_interpreted_subclasses=True, serializable=True)
class H2oTree(DependencyTree):
    """h2o's tree: a moved node leaves its old list before it joins the new one.

    So a group with one active child starts again with every change of that child, since it is
    unlisted in between (do_rebind counts down before it counts up). Streams are removed when they
    close.
    """

    def __init__(self, queueing: FairQueueing, *, weights: Weights, orphans: Orphans) -> None:
        super().__init__(
            queueing,
            weights=weights,
            orphans=orphans,
            unknown_parent=UnknownParent.DEFAULT,
            retain=0,
        )

    def _reprioritize(self, node: Node, parent: Node, priority: H2Priority) -> None:
        """Rejoin a node, even for a change of weight alone (..._scheduler_rebind)."""
        is_same = parent is node.parent and priority.weight == node.weight
        # h2o_http2_scheduler_rebind returns early then, and the stream keeps its slot.
        if is_same and not priority.exclusive:
            return
        if is_below(parent, node):
            self._move(parent, parent_of(node))
        old_parent = self._detach(node)
        self._queueing.unlist_if_idle(old_parent)
        self._queueing.reweigh(node, priority.weight)
        self._insert(node, parent, is_exclusive=priority.exclusive)

    def _move(
        self,
        node: Node,
        parent: Node,
        *,
        weight: int | None = None,
        starts_anew: bool = False,
    ) -> None:
        """Move a node, unlisting the old parent before the new one is listed (do_rebind)."""
        old_parent = self._detach(node)
        node.is_exclusive = False
        # Before `_attach`, unlike in the base class: a group may lose its quantum and start again.
        self._queueing.unlist_if_idle(old_parent)
        if weight is not None:
            self._queueing.reweigh(node, weight)
        self._attach(node, parent)
