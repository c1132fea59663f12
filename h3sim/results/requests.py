"""What requests take of the link up."""

from __future__ import annotations

from typing import TYPE_CHECKING

from h3sim.page.resource import DEFAULT_REQUEST_BYTES

if TYPE_CHECKING:
    from collections.abc import Callable

    from h3sim.page import Page, Resource

__all__ = ["request_sizer"]


def request_sizer(page: Page, *, is_http2: bool) -> Callable[[Resource], int]:
    """Return what tells how large the next request is, which is for the resource it is given.

    What the page file says counts first. Else it is what HPACK makes of the request over HTTP/2,
    which depends on those before; and 100 bytes over HTTP/3, whose encoder may not know yet what
    of them has arrived.
    """
    if not is_http2:
        return _plain_size
    from h3sim.compression.request_sizes import Http2RequestSizes  # on use: others go without

    return Http2RequestSizes(page).of


def _plain_size(resource: Resource) -> int:
    return resource.request_bytes or DEFAULT_REQUEST_BYTES
