"""The roots of a page: what is navigated to, and what each of them brings."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from h3sim.page.discovery import At
from h3sim.page.recorded_groups import without_parents

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from h3sim.page.model import Page
    from h3sim.page.recorded_groups import RecordedGroup
    from h3sim.page.resource import Discovery, Resource

__all__ = ["RootPage", "parts_of", "redirects_of", "roots_by_resource"]


class RootPage(NamedTuple):
    """A root with all that it brings, as a page: resource n is *indices[n]* of the whole."""

    root: int
    indices: tuple[int, ...]
    page: Page


def roots_by_resource(
    resources: Sequence[Resource], index: Mapping[str, int], roots: Sequence[int]
) -> tuple[int, ...]:
    """Return the root that each resource belongs to: its nearest ancestor that is one.

    What comes by the clock and names no parent belongs to the first of *roots*.
    """
    if len(roots) == 1:
        return (*roots,) * len(resources)
    found: dict[int, int] = {}
    for start in range(len(resources)):
        path = []
        at = start
        while at not in found and not resources[at].begins_page:
            path.append(at)
            discovered = resources[at].discovered
            by = None if discovered is None else discovered.by
            # Triggers by the clock may name one another in a circle, as nothing waits for them.
            if by is None or at in path[:-1]:
                found[at] = roots[0]
                break
            at = index[by]
        root = found.get(at, at)
        found.update(dict.fromkeys((*path, at), root))
    return tuple(found[at] for at in range(len(resources)))


def parts_of(page: Page) -> tuple[RootPage, ...]:
    """Return *page* root by root; of a page of one root, the page as it is.

    >>> from h3sim.page import At, Discovery, Kind, Page, Resource
    >>> later = Discovery(at=At.TIME, delay_ns=5)
    >>> two = Page(name="two", resources=(
    ...     Resource(id="/", kind=Kind.DOCUMENT, size_bytes=9),
    ...     Resource(id="b/", kind=Kind.DOCUMENT, size_bytes=9, is_root=True, discovered=later)))
    >>> [(part.root, part.page.resources[0].id) for part in parts_of(two)]
    [(0, '/'), (1, 'b/')]
    """
    if len(page.roots) == 1:
        return (RootPage(page.root, tuple(range(len(page.resources))), page),)
    return tuple(_part(page, root) for root in page.roots)


def redirects_of(page: Page) -> frozenset[int]:
    """Return the roots that are only on the way to another, which is asked for at their end."""
    triggers = (page.resources[root].discovered for root in page.roots)
    return frozenset(
        page.index[when.by]
        for when in triggers
        if when is not None and when.by is not None and when.at is At.COMPLETE
    )


def _part(page: Page, root: int) -> RootPage:
    indices = tuple(at for at, of in enumerate(page.root_of) if of == root)
    ids = {page.resources[at].id for at in indices}
    kept = [_alone(page.resources[at], ids, page.recorded_groups) for at in indices]
    kept[indices.index(root)] = replace(kept[indices.index(root)], discovered=None, is_root=False)
    return RootPage(root, indices, replace(page, resources=tuple(kept), hosts=()))


def _alone(resource: Resource, ids: Iterable[str], groups: Iterable[RecordedGroup]) -> Resource:
    """Return *resource* without what other parts of the page make known of it."""

    def is_known(when: Discovery | None) -> bool:
        return when is None or when.by is None or when.by in ids

    changes = tuple(change for change in resource.priority_changes if is_known(change.when))
    others = {entry.depends_on for entry in resource.recorded if entry.depends_on} - {*ids}
    alone = without_parents(resource, others - {group.name for group in groups})
    recorded = tuple(entry for entry in alone.recorded if is_known(entry.when))
    if changes == resource.priority_changes and recorded == resource.recorded:
        return resource
    return replace(resource, priority_changes=changes, recorded=recorded)
