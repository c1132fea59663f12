"""The weighted dependency tree as a scheduler, and views of it.

Each node keeps its active children in a heap, ordered by virtual time. Service is charged on every
level up to the root; so `pick` only descends, O(depth), and a quantum costs O(log n) per level,
however many streams are blocked.

Source: RFC 7540 § 5.3; for its open points, the servers in `Queueing`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from h3sim.schedulers.tree.disciplines import first_unblocked, queueing_of
from h3sim.schedulers.tree.options import (
    DEFAULT_TURN_BYTES,
    Orphans,
    Queueing,
    TreeRules,
    UnknownParent,
    Weights,
)
from h3sim.schedulers.tree.server_trees import H2oTree, Nghttp2Tree
from h3sim.schedulers.tree.shape import DependencyTree
from h3sim.signals import ORPHANS, H2Priority

if TYPE_CHECKING:
    import networkx

    from h3sim.schedulers.tree.node import Node
    from h3sim.signals import Signal


ROOT = "root"
"""The name of the root in a graph; other nodes are named by their IDs."""

_MAX_LEVELS_SHOWN = 40
"""The deepest level printed: an exclusive chain is as deep as a page has resources, and each level
moves the text three columns to the right."""

if TYPE_CHECKING:
    Graph: TypeAlias = networkx.DiGraph[int | str]


def as_text(root: Node) -> str:
    """Return a line per node, children in order below their parent."""
    lines = [ROOT]
    # Iterative: each item has its indentation, and whether it is the last child.
    waiting = _children_of(root, "")
    while waiting:
        node, indent, is_last = waiting.pop()
        lines.append(f"{indent}{'└─ ' if is_last else '├─ '}{_describe(node)}")
        below = indent + ("   " if is_last else "│  ")
        if node.children and len(below) >= 3 * _MAX_LEVELS_SHOWN:
            lines.append(f"{below}└─ ... {_count_descendants(node):,} more below")
            continue
        waiting += _children_of(node, below)
    return "\n".join(lines)


def _children_of(node: Node, indent: str) -> list[tuple[Node, str, bool]]:
    """Return the children, last first, as `as_text` pops them."""
    children = list(node.children.values())
    return [(child, indent, child is children[-1]) for child in reversed(children)]


def _describe(node: Node) -> str:
    """Return a node's kind, ID, weight and states, as in "stream 4, weight 16, has data"."""
    words = f"{_kind(node)} {node.id}, weight {node.weight}"
    if node.id == ORPHANS:
        words = "the orphan placeholder"
    states = {"has data": node.has_data, "closed": node.is_closed, "idle": _is_idle(node)}
    return ", ".join([words, *(state for state, holds in states.items() if holds)])


def _is_idle(node: Node) -> bool:
    return node.is_implied or node.is_idle


def _kind(node: Node) -> str:
    return "placeholder" if node.is_placeholder else "stream"


def _count_descendants(node: Node) -> int:
    """Return the number of nodes below *node*."""
    count, waiting = 0, [node]
    while waiting:
        below = waiting.pop().children
        count += len(below)
        waiting += below.values()
    return count


def as_networkx(root: Node) -> Graph:
    """Return the graph of `TreeScheduler.to_networkx`."""
    import networkx as nx  # on use: a load needs no graph

    graph: Graph = nx.DiGraph()
    graph.add_node(ROOT)
    waiting = [root]
    while waiting:
        parent = waiting.pop()
        for position, node in enumerate(parent.children.values()):
            graph.add_node(
                node.id,
                weight=node.weight,
                active=node.has_data,
                exclusive=node.is_exclusive,
                position=position,
                closed=node.is_closed,
                idle=_is_idle(node),
            )
            graph.add_edge(ROOT if parent is root else parent.id, node.id)
            waiting.append(node)
    return graph


class TreeScheduler:
    """The dependency tree (RFC 7540 § 5.3): parents before children; siblings share by weight.

    *turn_bytes* is the expected size of a quantum: with exact queueing the start offset of a child
    that joins, and the charge of a placeholder per quantum below it.

    *queueing* is the discipline among siblings, *orphans* sets the weights of the children of a
    removed node, *unknown_parent* the meaning of a dependency on a missing node. The last *retain*
    closed streams stay in the tree, without data, so that later streams can still refer to them
    (RFC 7540 § 5.3.4); to retain them for a time instead, close them later. *rules* are those for
    changes of the tree; with a server's, *unknown_parent* and *retain* are that server's as well.

    A stream may be opened long before it has data, or never have any: so idle streams, which group
    others (RFC 7540 § 5.3.4), are opened like any other.

    Raises:
        ValueError: if *retain* is negative, if zero weights are combined with options that need
            shares, or the orphan placeholder with queueing that is not exact.

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
        self,
        *,
        turn_bytes: int = DEFAULT_TURN_BYTES,
        weights: Weights = Weights.SHARES,
        queueing: Queueing = Queueing.EXACT,
        orphans: Orphans = Orphans.KEEP,
        unknown_parent: UnknownParent = UnknownParent.DEFAULT,
        retain: int = 0,
        rules: TreeRules = TreeRules.RFC7540,
    ) -> None:
        if retain < 0:
            raise ValueError(f"retain must not be negative, is {retain}")
        if weights is not Weights.SHARES and orphans is not Orphans.KEEP:
            raise ValueError(f"zero weights cannot be shared out ({orphans.value!r})")
        if unknown_parent is UnknownParent.ORPHANS and queueing is not Queueing.EXACT:
            raise ValueError(f"only exact queueing has an orphan placeholder ({queueing.value!r})")
        self._queueing = queueing_of(queueing, turn_bytes=turn_bytes, weights=weights)
        self._defers_blocked = rules in (TreeRules.NGHTTP2, TreeRules.NODE)
        if self._defers_blocked:
            self._tree: DependencyTree = Nghttp2Tree(
                self._queueing,
                weights=weights,
                orphans=orphans,
                retains_closed=rules is TreeRules.NGHTTP2,
            )
        elif rules is TreeRules.H2O:
            self._tree = H2oTree(self._queueing, weights=weights, orphans=orphans)
        else:
            self._tree = DependencyTree(
                self._queueing,
                weights=weights,
                orphans=orphans,
                unknown_parent=unknown_parent,
                retain=retain,
            )
        self._blocked: dict[int, None] = {}
        """Blocked streams that are still listed, until they are next (nghttp2's rules only)."""
        # Aliases for every packet; the tree keeps both objects for life.
        self._nodes = self._tree.nodes
        self._root = self._tree.root

    def __getstate__(self) -> dict[str, Any]:
        # The tree is pickled flat; by these two names pickle would go into it node by node.
        return {k: v for k, v in self.__dict__.items() if k not in ("_nodes", "_root")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._nodes, self._root = self._tree.nodes, self._tree.root

    @classmethod
    def of_server(
        cls, queueing: Queueing, *, turn_bytes: int = DEFAULT_TURN_BYTES
    ) -> TreeScheduler:
        """Return a tree with all options of the server that *queueing* is named after.

        >>> tree = TreeScheduler.of_server(Queueing.NGHTTP2)
        >>> tree.open(4, H2Priority(weight=32, depends_on=8))
        >>> print(tree)
        root
        └─ stream 8, weight 16, idle
           └─ stream 4, weight 32
        """
        return cls(
            turn_bytes=turn_bytes,
            queueing=queueing,
            orphans=queueing.orphans,
            unknown_parent=queueing.unknown_parent,
            rules=queueing.rules,
        )

    def open(self, stream_id: int, signal: Signal) -> None:
        """Add a stream or placeholder to the tree.

        An existing node that others depend on, or that was closed and retained, becomes open, and
        keeps its descendants.

        Raises:
            SelfDependencyError: if it depends on itself.
            ValueError: if it is there already, or its weight is out of range.
        """
        self._tree.open(stream_id, signal)

    def open_pushed(self, stream_id: int, associated_id: int) -> None:
        """Add a pushed stream to the tree: below its associated stream, weight 16.

        Source: RFC 7540 § 5.3.5. Raises as `open` does.
        """
        self._tree.open(stream_id, H2Priority(depends_on=associated_id))

    def update(self, stream_id: int, signal: Signal) -> None:
        """Change the weight or the parent of a node; its descendants move along.

        A new parent among its descendants first moves to the node's former parent (RFC 7540 §
        5.3.3).

        Raises:
            KeyError: if it is not in the tree.
            SelfDependencyError: if it depends on itself.
            ValueError: if its weight is out of range.
        """
        self._tree.update(stream_id, signal)

    def prioritize(self, stream_id: int, signal: Signal) -> None:
        """Handle a PRIORITY frame, which may precede the request or follow the response.

        A stream in the tree is changed, as by `update`. One whose ID is still unused is added as
        idle; `open` opens it later (RFC 7540 § 5.3.4). A frame for a removed stream is ignored.
        Raises as `update` does, but no KeyError.

        >>> tree = TreeScheduler()
        >>> tree.prioritize(3, H2Priority(weight=201)); tree.open(5, H2Priority(depends_on=3))
        >>> print(tree)
        root
        └─ stream 3, weight 201, idle
           └─ stream 5, weight 16
        """
        self._tree.prioritize(stream_id, signal)

    def activate(self, stream_id: int) -> None:
        """Activate a stream.

        Raises:
            KeyError: if it is not open.
        """
        node = self._tree.open_node(stream_id)
        # If its window opened before it was next, it is still listed, and is not listed again.
        self._blocked.pop(stream_id, None)
        node.has_data = True
        self._queueing.list_ready(node)

    def deactivate(self, stream_id: int) -> None:
        """Deactivate a stream; its descendants stay active.

        Raises:
            KeyError: if it is not open.
        """
        node = self._tree.open_node(stream_id)
        self._blocked.pop(stream_id, None)
        node.has_data = False
        self._queueing.finish(node)

    def block(self, stream_id: int) -> None:
        """Deactivate a stream that has data, but is blocked by flow control.

        As `deactivate`, but by nghttp2's rules it stays listed until it is next; if its window
        opens before, nothing changes.

        Raises:
            KeyError: if it is not open.
        """
        self._tree.open_node(stream_id)
        if self._defers_blocked:
            self._blocked[stream_id] = None
        else:
            self.deactivate(stream_id)

    def close(self, stream_id: int) -> None:
        """Close a node. Once it leaves the tree, its children move up to its parent.

        Raises:
            KeyError: if it is not open.
        """
        self._tree.close(stream_id)
        self._blocked.pop(stream_id, None)

    def pick(self) -> int | None:
        """Return the stream that sends next, or None without data."""
        node: Node = self._root
        while node.heap:
            node = node.heap[0][2]  # the child that is next
            # A stream precedes all its dependents (RFC 7540 § 5.3.1).
            if node.has_data:
                if self._blocked and node.id in self._blocked:
                    return first_unblocked(self._root, self._blocked)
                return node.id
        return None

    def charge(self, stream_id: int, n_bytes: int) -> None:
        """Charge a quantum of *n_bytes* to the stream, and to each ancestor."""
        # Before the charge: the skipped streams were next before this one.
        if self._blocked:
            self._queueing.defer(self._root, self._blocked)
        self._queueing.charge(self._nodes[stream_id], n_bytes)

    def to_networkx(self) -> Graph:
        """Return the tree as a graph of networkx, with an edge from each parent to each child.

        Nodes are named by their ids, and the root "root". All nodes except the root have the
        attributes *weight*, *active* (it has data), *exclusive* (it was inserted exclusively),
        *position* (among its siblings, from 0 on), *closed* (it is retained) and *idle* (it exists
        only because others depend on it).

        >>> tree = TreeScheduler()
        >>> tree.open(0, H2Priority(weight=32)); tree.open(4, H2Priority(depends_on=0))
        >>> tree.to_networkx().edges
        OutEdgeView([('root', 0), (0, 4)])
        """
        return as_networkx(self._root)

    def __str__(self) -> str:
        """Return the tree as text, one line per node.

        >>> tree = TreeScheduler()
        >>> tree.open(0, H2Priority(weight=32)); tree.open(4, H2Priority(depends_on=0))
        >>> tree.activate(4)
        >>> print(tree)
        root
        └─ stream 0, weight 32
           └─ stream 4, weight 16, has data
        """
        return as_text(self._root)
