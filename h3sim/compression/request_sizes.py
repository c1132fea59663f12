"""What requests take of the link up."""

from __future__ import annotations

from typing import TYPE_CHECKING

from h3sim.compression.hpack_sizes import HpackSizes
from h3sim.compression.page_sections import request_section

if TYPE_CHECKING:
    from h3sim.page import Page, Resource

__all__ = ["Http2RequestSizes"]


class Http2RequestSizes:
    """The field sections of requests for resources of *page*, as HPACK makes them.

    The fields are those that Chromium sends for such a resource (`compression.page_sections`). The
    first request brings them all; later ones refer to what came before, and are told in the order
    in which they are made. What the page file says of a request counts before.

    >>> from h3sim.page import page_from_dict
    >>> image = {"kind": "image", "bytes": 9, "discovered": {"at": "time"}}
    >>> document = {"id": "/", "kind": "document", "bytes": 9}
    >>> resources = [document, {"id": "a.png", **image}, {"id": "b.png", **image}]
    >>> page = page_from_dict({"format": "h3sim-page/1", "name": "x", "resources": resources})
    >>> sizes = Http2RequestSizes(page)
    >>> [sizes.of(resource) for resource in page.resources]
    [417, 119, 21]
    """

    def __init__(self, page: Page) -> None:
        self._page = page
        self._sizes = HpackSizes()

    def of(self, resource: Resource) -> int:
        """Return the size of the next request, which is for *resource*."""
        # Also where the page says the size: later requests refer to the fields of this one.
        n_bytes = self._sizes.section_bytes(request_section(self._page, resource))
        return resource.request_bytes or n_bytes
