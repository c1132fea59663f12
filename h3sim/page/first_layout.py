"""What the first layout of a page shows, as changes of priority that a replay can make."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from h3sim.documents.arguments import Only, check_arguments
from h3sim.errors import InputError
from h3sim.page.resource import At, Discovery, Kind, PriorityChange

if TYPE_CHECKING:
    from h3sim.page.model import Page
    from h3sim.page.resource import Resource

__all__ = ["with_first_layout"]

_PAGE = Only("a page", lambda value: hasattr(value, "resources") and hasattr(value, "root"))


def with_first_layout(page: Page) -> Page:
    """Return *page*, whose images turn out to be seen when it is first laid out.

    A page cannot be laid out before what blocks rendering is there: the stylesheets of its head,
    and the scripts there that are neither async nor deferred (HTML § 4.2.7, § 4.12.1). A replay has
    one trigger for a change, and so the last of these to be asked for stands for all: the document
    itself where there is none. What is seen is what the page marks as above the fold. A browser
    that computes its load (`browser="parse"`) lays out by itself and needs none of this.

    Raises:
        InputError: if it is no page.

    >>> from h3sim.page import Kind, Page, Resource
    >>> image = Discovery(by="/", at=At.COMPLETE)
    >>> shown = with_first_layout(Page(name="one", resources=(
    ...     Resource(id="/", kind=Kind.DOCUMENT, size_bytes=10),
    ...     Resource(id="a", kind=Kind.IMAGE, size_bytes=9, above_the_fold=True, discovered=image),
    ... )))
    >>> shown.resources[1].priority_changes[0].visible
    True
    """
    check_arguments(InputError, page=(_PAGE, page))
    last = {root: page.resources[root].id for root in page.roots}
    last |= {page.root_of[n]: each.id for n, each in enumerate(page.resources) if _blocks(each)}
    changes = {
        root: PriorityChange(when=Discovery(by=by, at=At.COMPLETE), visible=True)
        for root, by in last.items()
    }
    resources = tuple(
        replace(resource, priority_changes=(*resource.priority_changes, changes[root]))
        if _is_shown(resource)
        else resource
        for resource, root in zip(page.resources, page.root_of, strict=True)
    )
    return replace(page, resources=resources)


def _blocks(resource: Resource) -> bool:
    if resource.render_blocking:
        return True
    if resource.kind is Kind.STYLESHEET:
        return resource.in_head
    is_late = resource.is_async or resource.is_defer or resource.preload
    return resource.kind is Kind.SCRIPT and resource.in_head and not is_late


def _is_shown(resource: Resource) -> bool:
    is_picture = resource.kind in (Kind.IMAGE, Kind.MEDIA)
    return is_picture and resource.above_the_fold and resource.discovered is not None
