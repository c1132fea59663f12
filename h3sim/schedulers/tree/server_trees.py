"""The tree as two servers keep it: what they do, beside queueing, where RFC 7540 leaves it open.

Both say in which order children are listed anew when the tree changes, and whether a group that
is left by its only active child loses its turn. That decides who goes first among equals.

Sources: nghttp2 1.52 (lib/nghttp2_session.c, lib/nghttp2_stream.c), h2o 2.2 (lib/http2/scheduler.c,
lib/http2/connection.c). Each rule names its function; none of the code is here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from h3sim._mypyc import mypyc_attr
from h3sim.schedulers.tree.disciplines import known
from h3sim.schedulers.tree.node import Node
from h3sim.schedulers.tree.options import UnknownParent
from h3sim.schedulers.tree.shape import DependencyTree, is_below

if TYPE_CHECKING:
    from h3sim.schedulers.tree.disciplines import FairQueueing
    from h3sim.schedulers.tree.options import Orphans, Weights
    from h3sim.signals import H2Priority, Signal


_MOST_STREAMS = 100
"""So many streams nghttpd lets be open (SETTINGS_MAX_CONCURRENT_STREAMS)."""
_MOST_IDLE = 100
"""So many idle streams nghttp2 keeps (nghttp2_session_adjust_idle_stream)."""


@mypyc_attr(allow_interpreted_subclasses=True, serializable=True)
class Nghttp2Tree(DependencyTree):
    """Closed and idle streams stay; siblings are listed anew newest first.

    A node's children stand oldest first, as everywhere here; nghttp2 keeps them the other way round
    (insert_link_dep puts a child in front).
    """

    def __init__(self, queueing: FairQueueing, *, weights: Weights, orphans: Orphans) -> None:
        super().__init__(
            queueing,
            weights=weights,
            orphans=orphans,
            unknown_parent=UnknownParent.CREATE,
            retain=0,
        )
        self._idle: dict[int, None] = {}
        self._closed: dict[int, None] = {}
        self._n_open = 0

    def open(self, node_id: int, signal: Signal) -> None:
        """Put a stream into the tree; one that was idle is taken out first.

        So the children of an idle stream move up before it comes back, and share its weight
        (nghttp2_session_open_stream).
        """
        idle = self.nodes.get(node_id)
        if idle is not None and not (idle.is_implied or idle.is_idle):
            raise ValueError(f"stream {node_id} is open already")
        wanted = self._checked(node_id, signal)
        if node_id > self._newest_id:
            self._newest_id = node_id
        if idle is not None:
            self._remove(idle)
        parent, wanted = self._resolved(node_id, wanted)
        node = self.nodes[node_id] = Node(node_id)
        self._queueing.reweigh(node, wanted.weight)
        self._place(node, parent, is_exclusive=wanted.exclusive)
        if not node.is_placeholder:
            self._n_open += 1
            self._forget_closed()
        self._forget_idle()

    def update(self, node_id: int, signal: Signal) -> None:
        """Give a node another weight or parent, be it open, idle or closed."""
        super().update(node_id, signal)
        self._forget_idle()

    def prioritize(self, node_id: int, signal: Signal) -> None:
        """Take a PRIORITY frame (nghttp2_session_on_priority_received)."""
        super().prioritize(node_id, signal)
        self._forget_idle()

    def close(self, node_id: int) -> None:
        """Close a stream; it stays where it is (nghttp2_session_keep_closed_stream)."""
        node = self.open_node(node_id)
        node.has_data = False
        if node.is_placeholder:
            self._remove(node)
            return
        self._queueing.sleep(node)
        node.is_closed = True
        self._closed[node_id] = None
        self._n_open -= 1

    def _forget_closed(self) -> None:
        """Keep so many closed streams as may be open besides (adjust_closed_stream)."""
        while self._closed and len(self._closed) + self._n_open > _MOST_STREAMS:
            self._remove(self.nodes[next(iter(self._closed))])

    def _forget_idle(self) -> None:
        while len(self._idle) > _MOST_IDLE:
            self._remove(self.nodes[next(iter(self._idle))])

    def _resolved(self, node_id: int, wanted: H2Priority) -> tuple[Node, H2Priority]:
        """Only an id that is still to come is put there: session_detect_idle_stream."""
        parent_id = wanted.depends_on
        if parent_id is not None and parent_id not in self.nodes:
            # It has gone, for it is neither in the tree nor idle. Placeholders, below 0, are always
            # to come.
            if 0 <= parent_id <= self._newest_id:
                return self.root, self._default
            self._idle[parent_id] = None
        return super()._resolved(node_id, wanted)

    def _put_idle(self, node_id: int, wanted: H2Priority) -> None:
        super()._put_idle(node_id, wanted)
        self._idle[node_id] = None

    def _prune(self, node: Node) -> None:
        """Keep it: idle streams go when there are too many."""

    def _change(self, node: Node, parent: Node, wanted: H2Priority) -> None:
        """Take the node out and put it back (nghttp2_session_reprioritize_stream).

        A group that it leaves without anything to send is off its list meanwhile, so it begins
        anew even if the node comes back below it (nghttp2_stream_dep_remove_subtree).
        """
        if is_below(parent, node):
            # As RFC 7540 § 5.3.3: without it the two would hang below each other.
            self._take_out(parent)
            self._attach(parent, known(node.parent))
        if parent is node.parent and not wanted.exclusive:
            self._queueing.reweigh(node, wanted.weight)
            return
        self._take_out(node)
        self._queueing.reweigh(node, wanted.weight)
        self._place(node, parent, is_exclusive=wanted.exclusive)

    def _take_out(self, node: Node) -> None:
        old_parent = self._detach(node)
        self._queueing.forget(node)
        self._queueing.sleep(old_parent)

    def _place(self, node: Node, parent: Node, *, is_exclusive: bool) -> None:
        """Take siblings over newest first; they stand behind the node's own children.

        Source: nghttp2_stream_dep_insert and nghttp2_stream_dep_insert_subtree.
        """
        if not is_exclusive:
            super()._place(node, parent, is_exclusive=False)
            return
        node.is_exclusive = True
        siblings, own = [*parent.children.values()], dict(node.children)
        self._attach(node, parent)
        for sibling in reversed(siblings):
            self._move(sibling, node)
        # `_move` has put them in the order in which they are listed; this is the order in which
        # they stand.
        node.children = {each.id: each for each in siblings} | own

    def _remove(self, node: Node) -> None:
        """Take a node out; its children stand where it stood (nghttp2_stream_dep_remove)."""
        del self.nodes[node.id]
        self._closed.pop(node.id, None)
        self._idle.pop(node.id, None)
        parent, children = known(node.parent), [*node.children.values()]
        siblings = [*parent.children.values()]
        total = sum(child.weight for child in children)
        for child in reversed(children):
            weight = self._orphans.weight(child.weight, node.weight, total)
            self._move(child, parent, weight=weight)
        self._queueing.sleep(self._detach(node))
        if children:
            # `_move` has put the children last; nghttp2 leaves them in the place of the one
            # removed.
            index = siblings.index(node)
            siblings[index : index + 1] = children
            parent.children = {each.id: each for each in siblings}


@mypyc_attr(allow_interpreted_subclasses=True, serializable=True)
class H2oTree(DependencyTree):
    """Whoever moves leaves its old list before it joins the new one.

    So a group with one active child begins anew with every change of that child, for it is off its
    own list in between (do_rebind counts down before it counts up). Streams go when they close.
    """

    def __init__(self, queueing: FairQueueing, *, weights: Weights, orphans: Orphans) -> None:
        super().__init__(
            queueing,
            weights=weights,
            orphans=orphans,
            unknown_parent=UnknownParent.DEFAULT,
            retain=0,
        )

    def _change(self, node: Node, parent: Node, wanted: H2Priority) -> None:
        """Join a node anew, even where only its weight is another (..._scheduler_rebind)."""
        is_same = parent is node.parent and wanted.weight == node.weight
        # h2o_http2_scheduler_rebind does nothing then, and the stream keeps its slot.
        if is_same and not wanted.exclusive:
            return
        if is_below(parent, node):
            self._move(parent, known(node.parent))
        old_parent = self._detach(node)
        self._queueing.sleep(old_parent)
        self._queueing.reweigh(node, wanted.weight)
        self._place(node, parent, is_exclusive=wanted.exclusive)

    def _move(
        self,
        node: Node,
        parent: Node,
        *,
        weight: int | None = None,
        is_anew: bool = False,
    ) -> None:
        """Put the old parent to sleep before the new one wakes (do_rebind)."""
        old_parent = self._detach(node)
        node.is_exclusive = False
        # Before `_attach`, unlike in the class above: a group may so lose its turn and begin anew.
        self._queueing.sleep(old_parent)
        if weight is not None:
            self._queueing.reweigh(node, weight)
        self._attach(node, parent)
