"""Writes pages as page files (`h3sim-page/1`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from h3sim.page.reader import FORMAT
from h3sim.page.resource import FLAGS, Discovery, FetchPriority, Resource
from h3sim.units import to_ms

if TYPE_CHECKING:
    from h3sim.page.model import Page

__all__ = ["discovery_to_dict", "page_to_dict", "resource_to_dict"]


def page_to_dict(page: Page) -> dict[str, Any]:
    """Return *page* as a page file's document; reading it back gives an equal page.

    >>> from h3sim.page import Kind, Page, page_from_dict
    >>> page = Page(name="one", resources=(Resource(id="/", kind=Kind.DOCUMENT, size_bytes=10),))
    >>> page_from_dict(page_to_dict(page)) == page
    True
    """
    document: dict[str, Any] = {"format": FORMAT, "name": page.name}
    if page.url:
        document["url"] = page.url
    if page.provenance:
        document["provenance"] = dict(page.provenance)
    document["resources"] = [resource_to_dict(resource) for resource in page.resources]
    return document


def resource_to_dict(resource: Resource) -> dict[str, Any]:
    """Return *resource* as an entry of a page file."""
    entry: dict[str, Any] = {"id": resource.id, "kind": resource.kind.value}
    if resource.mime:
        entry["mime"] = resource.mime
    entry["bytes"] = resource.size_bytes
    optional: dict[str, Any] = {
        "header_bytes": resource.header_bytes,
        "request_bytes": resource.request_bytes,
        "parse_ms": to_ms(resource.parse_ns),
        "execute_ms": to_ms(resource.execute_ns),
        "server_ms": to_ms(resource.server_ns),
        "response_offsets": list(resource.response_offsets),
        **{name: getattr(resource, attribute) for name, attribute in FLAGS.items()},
    }
    entry.update({name: value for name, value in optional.items() if value})
    if resource.fetchpriority is not FetchPriority.AUTO:
        entry["fetchpriority"] = resource.fetchpriority.value
    if resource.viewport is not None:
        entry["viewport"] = resource.viewport
    if resource.discovered is not None:
        entry["discovered"] = discovery_to_dict(resource.discovered)
    return entry


def discovery_to_dict(discovery: Discovery) -> dict[str, Any]:
    """Return *discovery* as a page file has it."""
    entry: dict[str, Any] = {} if discovery.by is None else {"by": discovery.by}
    entry["at"] = discovery.at.value
    if discovery.offset_bytes is not None:
        entry["offset_bytes"] = discovery.offset_bytes
    if discovery.delay_ns:
        entry["delay_ms"] = to_ms(discovery.delay_ns)
    return entry
