"""Hints that a page gives its browser, and a page as a browser that ignores some of them sees it.

Which browser heeds which, since which version, is in the tables of `models/clients/`.
"""

from __future__ import annotations

import enum
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from h3sim.page import Discovery, FetchPriority, Kind, TriggerEvent
from h3sim.page.transforms import PRECONNECT

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from h3sim.page import Page, Resource


class Hint(enum.Enum):
    """Something that a page or a server asks a browser to do, which it may ignore."""

    HINTED_PRELOAD = "hinted-preload"
    """A preload in a 103 response (RFC 8297)."""
    HINTED_PRECONNECT = "hinted-preconnect"
    PRELOAD = "preload"
    MODULEPRELOAD = "modulepreload"
    PRECONNECT = "preconnect"
    FETCHPRIORITY_IMAGE = "fetchpriority-image"
    FETCHPRIORITY_SCRIPT = "fetchpriority-script"
    FETCHPRIORITY_LINK = "fetchpriority-link"
    FETCHPRIORITY_FETCH = "fetchpriority-fetch"
    LAZY_IMAGE = "lazy-image"
    LAZY_FRAME = "lazy-frame"


class Ability(enum.Enum):
    """Something that a client does by itself, or how much of it."""

    LAZY_MARGIN = "lazy-margin"
    """Distance from the viewport at which it requests an image with `loading=lazy`."""
    PRELOAD_SCANNER = "preload-scanner"
    """It requests what is behind a script that blocks its parser."""
    LCP_PREDICTION = "lcp-prediction"
    """What it requests early because it was the largest paint of an earlier visit."""
    TAILING = "tailing"
    """Trackers wait until others are done."""
    PRIORITY_FIELD = "priority-field"
    """The Priority field in requests over HTTP/2, if it is one that signals urgencies."""
    HTTP3 = "http3"
    HTTP1_CONNECTIONS = "http1-connections"
    """Connections to a host over HTTP/1.1."""
    STREAMS = "streams"
    """Concurrent streams that it allows a server to push, or opens itself."""


_FETCHPRIORITY_BY_KIND = {
    Kind.IMAGE: Hint.FETCHPRIORITY_IMAGE,
    Kind.SCRIPT: Hint.FETCHPRIORITY_SCRIPT,
    Kind.STYLESHEET: Hint.FETCHPRIORITY_LINK,
    Kind.FONT: Hint.FETCHPRIORITY_LINK,
    Kind.FETCH: Hint.FETCHPRIORITY_FETCH,
}
_LAZY_BY_KIND = {Kind.IMAGE: Hint.LAZY_IMAGE, Kind.DOCUMENT: Hint.LAZY_FRAME}


def fetchpriority_hint(resource: Resource) -> Hint | None:
    """Return the hint that `fetchpriority` on the element of a resource is, if any heeds it."""
    is_link = resource.preload or resource.kind in (Kind.STYLESHEET, Kind.FONT)
    return Hint.FETCHPRIORITY_LINK if is_link else _FETCHPRIORITY_BY_KIND.get(resource.kind)


def preload_hint(resource: Resource) -> Hint:
    """Return the hint that a preload link for a resource is."""
    return Hint.MODULEPRELOAD if resource.is_module else Hint.PRELOAD


def is_hinted(page: Page, resource: Resource) -> bool:
    """Return whether a header of an interim response (103) makes the browser request it."""
    found = resource.discovered
    by = None if found is None else found.first_parent
    return resource.preload and by is not None and page.resources[page.index[by]].kind is Kind.OTHER


def without_ignored(page: Page, ignored: Collection[Hint]) -> Page:
    """Return *page* as a browser sees it that ignores these hints; resources keep their indices.

    What only an ignored preload requests is requested where the document names it
    (`reference_offset_bytes`), or else, as nothing else is known, once the document is complete.

    >>> from h3sim.page import Resource, Page
    >>> root = Resource(id="/", kind=Kind.DOCUMENT, size_bytes=10)
    >>> at_end = Discovery(at=TriggerEvent.COMPLETE, by="/")
    >>> image = Resource(id="a.png", kind=Kind.IMAGE, size_bytes=9, is_lazy=True, discovered=at_end)
    >>> page = Page(name="x", resources=(root, image))
    >>> without_ignored(page, [Hint.LAZY_IMAGE]).resources[1].is_lazy
    False
    """
    if not ignored:
        return page
    heeded = [replace(each, **dict(_changes(page, each, ignored))) for each in page.resources]
    unchanged = all(one == other for one, other in zip(heeded, page.resources, strict=True))
    return page if unchanged else page.with_resources(heeded)


def _changes(
    page: Page, resource: Resource, ignored: Collection[Hint]
) -> Iterator[tuple[str, Any]]:
    """Yield the fields of a resource that differ for a browser that ignores these hints."""
    if resource.fetchpriority is not FetchPriority.AUTO and fetchpriority_hint(resource) in ignored:
        yield "fetchpriority", FetchPriority.AUTO
    if resource.is_lazy and _LAZY_BY_KIND.get(resource.kind) in ignored:
        yield "is_lazy", False
    if resource.id.startswith(PRECONNECT) and Hint.PRECONNECT in ignored:
        yield "host", ""  # on the page's own connection it opens none
    hint = Hint.HINTED_PRELOAD if is_hinted(page, resource) else preload_hint(resource)
    root_id, at_bytes = page.resources[page.root].id, resource.reference_offset_bytes
    if resource.preload and hint in ignored and resource.id != root_id:
        yield "preload", False
        yield "reference_offset_bytes", None
        if at_bytes is None:
            yield "discovered", Discovery(by=root_id, at=TriggerEvent.COMPLETE)
        else:
            event = TriggerEvent.OFFSET
            yield "discovered", Discovery(by=root_id, at=event, offset_bytes=at_bytes)
