"""Ranks derived from the complete page, which no browser knows when it requests."""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING

from h3sim.page import TriggerEvent
from h3sim.schemes.policy_base import Policy
from h3sim.signals import Rank

if TYPE_CHECKING:
    from h3sim.page import Page, Resource, ResourceState
    from h3sim.signals import SignalChange


_BYTE_TRIGGERS = (TriggerEvent.OFFSET, TriggerEvent.COMPLETE, TriggerEvent.EXECUTED)
"""The triggers that depend on bytes of the parent."""


class RankBy(enum.Enum):
    """The criterion by which a page's resources are ranked."""

    CRITICAL_PATH = "critical-path"
    """The resource with the longest chain of dependents goes first (Polaris)."""
    ABOVE_THE_FOLD = "above-the-fold"
    """Resources above the fold and their dependencies before the rest."""


class RankPolicy(Policy):
    """Signals the rank of each resource of *page*; lower goes first."""

    def __init__(self, by: RankBy, page: Page) -> None:
        self._page = page
        self._follows_chains = by is RankBy.CRITICAL_PATH
        # By index, higher is more important: the length of a chain, or 1 on the way above the fold.
        if self._follows_chains:
            self._importance = chain_lengths(page)
        else:
            self._importance = [int(leads) for leads in leads_above_the_fold(page)]
        self._streams: dict[int, int] = {}
        """The stream of each resource that is open, by index."""
        self._indices: dict[int, int] = {}
        """The resource of each of these streams."""
        self._requested = [False] * len(page.resources)

    def on_connected(self) -> list[SignalChange]:
        """Return nothing: there are no placeholders."""
        return []

    def on_requested(self, stream_id: int, resource: Resource) -> list[SignalChange]:
        """Return the rank, and that of the parent if the longest chain no longer depends on it."""
        index = self._page.index[resource.id]
        self._requested[index] = True
        self._streams[index] = stream_id
        self._indices[stream_id] = index
        changes = self._parent_changes(index) if self._follows_chains else []
        # The lowest rank goes first, and the longest chain should.
        return [*changes, (stream_id, Rank(value=-self._importance[index]))]

    def on_changed(self, resource: Resource | None, change: ResourceState) -> list[SignalChange]:  # noqa: ARG002 - ranks depend on the page alone
        """Return nothing: ranks depend on the page, and are known at once."""
        return []

    def on_closed(self, stream_id: int) -> list[SignalChange]:
        """Forget the stream."""
        del self._streams[self._indices.pop(stream_id)]
        return []

    def _parent_changes(self, index: int) -> list[SignalChange]:
        """Return the new rank of a resource's parent, if fewer wait for it from now on."""
        parent = _parent(self._page, index)
        if parent is None or parent not in self._streams:
            return []
        children = _children_by_bytes(self._page, parent)
        waiting = [child for child in children if not self._requested[child]]
        length = max((1 + self._importance[child] for child in waiting), default=0)
        if length == self._importance[parent]:
            return []
        self._importance[parent] = length
        return [(self._streams[parent], Rank(value=-length))]


def chain_lengths(page: Page) -> list[int]:
    """Return, for each index, the length of the longest chain that depends on its bytes.

    >>> from h3sim.page import Discovery, Kind, Page, Resource
    >>> after = [Discovery(at=TriggerEvent.COMPLETE, by=by) for by in "01"]
    >>> found = [None, *after]
    >>> chain_lengths(Page(name="chain", resources=tuple(
    ...     Resource(id=str(n), kind=Kind.SCRIPT, size_bytes=9, discovered=d)
    ...     for n, d in enumerate(found))))
    [2, 1, 0]
    """
    parents = [_parent(page, index) for index in range(len(page.resources))]
    lengths, n_unseen = [0] * len(parents), [0] * len(parents)
    for parent in parents:
        if parent is not None:
            n_unseen[parent] += 1
    # From the ends of the chains up: a resource after all its dependents.
    seen = [index for index, n_children in enumerate(n_unseen) if not n_children]
    # The list grows during iteration.
    for index in seen:
        above = parents[index]
        if above is not None:
            lengths[above] = max(lengths[above], lengths[index] + 1)
            n_unseen[above] -= 1
            if not n_unseen[above]:
                seen.append(above)
    return lengths


def leads_above_the_fold(page: Page) -> list[bool]:
    """Return, for each index, whether it, or one of its dependents, is above the fold."""
    leads = [False] * len(page.resources)
    for index, resource in enumerate(page.resources):
        node: int | None = index if resource.above_the_fold else None
        while node is not None and not leads[node]:
            leads[node] = True
            node = _parent(page, node)
    return leads


def _parent(page: Page, index: int) -> int | None:
    """Return the index of the resource whose bytes it depends on."""
    discovery = page.resources[index].discovered
    by = None if discovery is None else discovery.first_parent
    if discovery is None or by is None or discovery.at not in _BYTE_TRIGGERS:
        return None
    return page.index[by]


def _children_by_bytes(page: Page, parent: int) -> list[int]:
    """Return the indices of the resources that depend on bytes of *parent*."""
    return [child for child in page.children.get(parent, ()) if _parent(page, child) == parent]
