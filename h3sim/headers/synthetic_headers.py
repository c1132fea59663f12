"""Synthetic field sections of a page's requests and responses, and their sizes.

Requests are those of Chromium 156, field by field as observed by the project's recorder; responses
those of a plain server, the recorder's. So the lists of a recorded page match the recording, except
for dates and etags. There are no cookies, and a single host.
"""

from __future__ import annotations

import zlib
from dataclasses import replace
from typing import TYPE_CHECKING

from h3sim.headers.hpack import HpackSizes
from h3sim.page import Kind

if TYPE_CHECKING:
    from h3sim.headers.base import Field, FieldSection
    from h3sim.page import Page, Resource


_AUTHORITY = b"h3sim.example"
"""Stands for the host of every resource."""
_ORIGIN = b"https://" + _AUTHORITY
_ACCEPT_ANY = b"*/*"
_ACCEPT_IMAGE = b"image/jxl,image/avif,image/webp,image/apng,image/svg+xml,image/*,*/*;q=0.8"
_ACCEPT_DOCUMENT = (
    b"text/html,application/xhtml+xml,application/xml;q=0.9,image/jxl,image/avif,image/webp,"
    b"image/apng,*/*;q=0.8,application/signed-exchange;v=b3;q=0.7"
)
_REQUEST_HEADERS_BY_KIND: dict[Kind, tuple[bytes, bytes, bytes]] = {
    Kind.DOCUMENT: (_ACCEPT_DOCUMENT, b"document", b"navigate"),
    Kind.STYLESHEET: (b"text/css,*/*;q=0.1", b"style", b"no-cors"),
    Kind.SCRIPT: (_ACCEPT_ANY, b"script", b"no-cors"),
    Kind.FONT: (_ACCEPT_ANY, b"font", b"cors"),
    Kind.IMAGE: (_ACCEPT_IMAGE, b"image", b"no-cors"),
    Kind.FETCH: (_ACCEPT_ANY, b"empty", b"cors"),
    Kind.MEDIA: (_ACCEPT_ANY, b"video", b"no-cors"),
    Kind.OTHER: (_ACCEPT_ANY, b"empty", b"no-cors"),
}
"""Values of accept, sec-fetch-dest and sec-fetch-mode, by kind."""
_DEFAULT_MIME_BY_KIND = {
    Kind.DOCUMENT: "text/html",
    Kind.STYLESHEET: "text/css",
    Kind.SCRIPT: "text/javascript",
    Kind.FONT: "font/woff2",
    Kind.IMAGE: "image/png",
    Kind.FETCH: "application/json",
    Kind.MEDIA: "video/mp4",
    Kind.OTHER: "application/octet-stream",
}
"""Media type of the response for a resource of which none was recorded."""
_COMPRESSED_MIME_PREFIXES = ("text/", "application/json", "application/javascript", "image/svg")
_ACCEPT_ENCODING = (b"accept-encoding", b"gzip, deflate, br, zstd")
_ACCEPT_LANGUAGE = (b"accept-language", b"en-US,en;q=0.9")
_BROWSER_FIELDS: FieldSection = (
    (
        b"user-agent",
        b"Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) "
        b"HeadlessChrome/156.0.0.0 Safari/537.36",
    ),
    (b"sec-ch-ua", b'"Not:A-Brand";v="8", "Chromium";v="156"'),
    (b"sec-ch-ua-mobile", b"?0"),
    (b"sec-ch-ua-platform", b'"Linux"'),
)
"""Fields that describe the browser, equal in all requests."""
_DATE = b"Sun, 22 Nov 2026 00:00:00 GMT"


def request_section(page: Page, resource: Resource) -> FieldSection:
    """Return the field section of the request for a resource of *page*.

    The referer is the resource that triggered the request if it is a stylesheet, otherwise the
    document.
    """
    accept, dest, mode = _REQUEST_HEADERS_BY_KIND[resource.kind]
    is_document = resource is page.resources[0]
    fields: list[Field] = [
        (b":method", b"GET"),
        (b":scheme", b"https"),
        (b":authority", _AUTHORITY),
        (b":path", _path(resource)),
        (b"accept", accept),
        _ACCEPT_ENCODING,
        _ACCEPT_LANGUAGE,
    ]
    # As observed: Chromium sends the origin for fonts, but not for fetches from the page's own
    # host.
    if resource.kind is Kind.FONT:
        fields.append((b"origin", _ORIGIN))
    if not is_document:
        fields.append((b"referer", _ORIGIN + _path(_referer(page, resource))))
    fields += [
        (b"sec-fetch-dest", dest),
        (b"sec-fetch-mode", mode),
        (b"sec-fetch-site", b"none" if is_document else b"same-origin"),
    ]
    if is_document:
        fields += [(b"sec-fetch-user", b"?1"), (b"upgrade-insecure-requests", b"1")]
    return (*fields, *_BROWSER_FIELDS)


def response_section(resource: Resource) -> FieldSection:
    """Return the field section of the response with a resource."""
    mime = resource.mime or _DEFAULT_MIME_BY_KIND[resource.kind]
    is_text = mime.startswith("text/")
    is_compressed = mime.startswith(_COMPRESSED_MIME_PREFIXES)
    content_type = f"{mime}; charset=utf-8" if is_text else mime
    fields: list[Field] = [(b":status", b"200"), (b"cache-control", b"public, max-age=31536000")]
    if is_compressed:
        fields.append((b"content-encoding", b"gzip"))
    fields += [
        (b"content-length", str(resource.size_bytes).encode()),
        (b"content-type", content_type.encode("utf-8", "replace")),
        (b"date", _DATE),
        (b"etag", f'"{zlib.crc32(resource.id.encode()):08x}"'.encode()),
        (b"server", b"h3sim"),
    ]
    if is_compressed:
        fields.append((b"vary", b"Accept-Encoding"))
    return tuple(fields)


def _path(resource: Resource) -> bytes:
    return b"/" + resource.id.removeprefix("/").encode("utf-8", "replace")


def _referer(page: Page, resource: Resource) -> Resource:
    """Return the resource that the request names as its referrer."""
    by = resource.discovered.first_parent if resource.discovered is not None else None
    if by is not None:
        parent = page.resources[page.index[by]]
        if parent.kind is Kind.STYLESHEET:
            return parent
    return page.resources[0]


def http1_request_bytes(page: Page, resource: Resource) -> int:
    """Return the size of the HTTP/1.1 request for a resource: as the page has it, or as text.

    >>> from h3sim import load_page
    >>> page = load_page("davies-meenan")
    >>> http1_request_bytes(page, page.resources[0])
    629
    """
    if resource.request_bytes:
        return resource.request_bytes
    return _text_bytes(request_section(page, resource))


def _text_bytes(fields: FieldSection) -> int:
    path = next(value for name, value in fields if name == b":path")
    # The request line has method and path, "Host" the authority (RFC 9112 §§ 3, 3.2).
    line_bytes = len(b"GET ") + len(path) + len(b" HTTP/1.1\r\nHost: \r\n\r\n")
    texts = [(name, value) for name, value in fields if not name.startswith(b":")]
    lines = sum(len(name) + len(b": ") + len(value) + len(b"\r\n") for name, value in texts)
    return line_bytes + len(_AUTHORITY) + lines


def with_http2_requests(page: Page) -> Page:
    """Return *page* with the sizes that its requests have over HTTP/2, in its order.

    Recordings have requests as text, of about 550 bytes; HPACK sends what was in an earlier one as
    an index. What a text has beyond the fields of Chromium, such as cookies, is sent once.

    >>> from h3sim import load_page
    >>> page = load_page("creative")
    >>> [each.request_bytes for each in page.resources[:3]]
    [655, 568, 577]
    >>> [each.request_bytes for each in with_http2_requests(page).resources[:3]]
    [443, 117, 63]
    """
    sizes, known_bytes, resources = HpackSizes(), 0, []
    for each in page.resources:
        fields = request_section(page, each)
        n_bytes = sizes.section_bytes(fields)
        more_bytes = each.request_bytes - _text_bytes(fields) if each.request_bytes else 0
        n_bytes += max(0, more_bytes - known_bytes)
        known_bytes = max(known_bytes, more_bytes)
        resources.append(replace(each, request_bytes=n_bytes))
    return page.with_resources(resources)


class Http2RequestSizes:
    """Request sizes for the resources of *page* over HTTP/2, as compressed by HPACK.

    The fields are those that Chromium sends for such a resource (`request_section`). The first
    request has them all as literals; later ones refer to earlier fields, so calls must be in
    request order. A request size in the page file takes precedence.

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
        # Also if the page has the size: later requests refer to the fields of this one.
        n_bytes = self._sizes.section_bytes(request_section(self._page, resource))
        return resource.request_bytes or n_bytes
