"""nginx's use of the dependency tree: a queue by depth, in which nothing is shared."""

from __future__ import annotations

from typing import TYPE_CHECKING

from h3sim.schedulers.tree.options import Orphans
from h3sim.schedulers.tree.scheduler import TreeScheduler

if TYPE_CHECKING:
    from h3sim.schedulers.tree.node import Node
    from h3sim.signals import Signal

_CLOSED_NODES = 32
"""Closed and idle nodes that nginx keeps (`ngx_http_v2_get_closed_node`)."""
_MAX_WEIGHT = 256


class RankedTreeScheduler(TreeScheduler):
    """The tree as in nginx's HTTP/2: the least deep first, then the largest share of the root's.

    Equal ones go in the order in which they got data. Each sends all that it has: weights are no
    shares of the bandwidth. An unknown parent is the root (there with the weight that was sent).

    Source: nginx 1.31.5, `ngx_http_v2_queue_frame` and `ngx_http_v2_set_dependency`.

    >>> from h3sim.signals import H2Priority
    >>> tree = RankedTreeScheduler()
    >>> for stream_id, weight in ((1, 16), (3, 256)):
    ...     tree.open(stream_id, H2Priority(weight=weight)); tree.activate(stream_id)
    >>> tree.pick()
    3
    """

    def __init__(self) -> None:
        super().__init__(orphans=Orphans.SHARE_DOWN, retain=_CLOSED_NODES)
        self._ready: dict[int, None] = {}
        """The active streams, in the order in which they got data."""
        self._next: int | None = None
        """The last pick, as long as nothing changes."""

    def open(self, stream_id: int, signal: Signal) -> None:
        """Add a stream or placeholder to the tree."""
        super().open(stream_id, signal)
        self._next = None

    def update(self, stream_id: int, signal: Signal) -> None:
        """Change the weight or the parent of a node."""
        super().update(stream_id, signal)
        self._next = None

    def prioritize(self, stream_id: int, signal: Signal) -> None:
        """Handle a PRIORITY frame, which may precede the request or follow the response."""
        super().prioritize(stream_id, signal)
        self._next = None

    def activate(self, stream_id: int) -> None:
        """Queue a stream behind those of its rank and share."""
        super().activate(stream_id)
        self._ready.setdefault(stream_id)
        self._next = None

    def deactivate(self, stream_id: int) -> None:
        """Take a stream out of the queue."""
        super().deactivate(stream_id)
        self._ready.pop(stream_id, None)
        self._next = None

    def close(self, stream_id: int) -> None:
        """Close a node, which stays in the tree for a while."""
        super().close(stream_id)
        self._ready.pop(stream_id, None)
        self._next = None

    def pick(self) -> int | None:
        """Return the stream that sends next, or None without data."""
        if self._next is None and self._ready:
            places: dict[int, tuple[int, float]] = {}
            self._next = min(self._ready, key=lambda each: self._place(self._nodes[each], places))
        return self._next

    def charge(self, stream_id: int, n_bytes: int) -> None:
        """Do nothing: who has sent is still the first."""

    def _place(self, node: Node, places: dict[int, tuple[int, float]]) -> tuple[int, float]:
        """Return depth and negative share of a node, by which lower ones go first.

        *places* are those of the nodes above it that are known, and get the others.
        """
        path: list[Node] = []
        above = node
        while above.parent is not None and above.id not in places:  # up to the root
            path.append(above)
            above = above.parent
        depth, share = (0, -1.0) if above.parent is None else places[above.id]
        for below in reversed(path):
            depth, share = depth + 1, share * below.weight / _MAX_WEIGHT
            places[below.id] = depth, share
        return depth, share
