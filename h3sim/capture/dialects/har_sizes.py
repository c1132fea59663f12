"""How many bytes a HAR's entry says that went over the wire, as well as its dialect knows.

The order of preference stands in `docs/importing.md`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from h3sim.capture.inference.observed import REDIRECTS, Size
from h3sim.capture.inference.sizes import NO_BODY, request_text_bytes, response_text_bytes

if TYPE_CHECKING:
    from h3sim.capture.inference.observed import Observed
    from h3sim.capture.source.fields import Fields

__all__ = ["headers_of", "read_sizes"]


def headers_of(message: Fields) -> list[tuple[str, str]]:
    """Return the fields of a request or a response, names in lower case."""
    return [
        (name.lower(), value)
        for field in message.tables("headers")
        if (name := field.text("name")) and isinstance(value := field.raw("value"), str)
    ]


def read_sizes(request: Observed, entry: Fields) -> None:
    """Take over the sizes of an entry."""
    asked, answer = entry.table("request"), entry.table("response")
    sent, got = headers_of(asked), headers_of(answer)
    # `or`, here and below: recorders write 0, too, where they know nothing.
    transfer = answer.size("_transferSize") or entry.size("_bytesIn")
    header = answer.size("headersSize") or None
    body, basis = _body(request, entry, answer, dict(got), transfer, header)
    request.body_bytes, request.body_from = body, basis
    request.decoded_bytes = answer.table("content").size("size")
    if header is not None:
        request.header_bytes, request.header_from = header, Size.RECORDED
    elif transfer and body is not None and basis is not Size.WHOLE and transfer > body:
        request.header_bytes, request.header_from = transfer - body, Size.TRANSFER
    elif got:
        request.header_bytes, request.header_from = response_text_bytes(got), Size.FIELDS
    size = asked.size("headersSize") or None
    if size is not None:
        request.request_bytes = size + (asked.size("bodySize") or 0)
        request.request_from = Size.RECORDED
    elif sent:
        text_bytes = request_text_bytes(request.method, request.url, sent)
        request.request_bytes = text_bytes + (asked.size("bodySize") or 0)
        request.request_from = Size.FIELDS


def _body(
    request: Observed,
    entry: Fields,
    answer: Fields,
    got: dict[str, str],
    transfer: int | None,
    header: int | None,
) -> tuple[int | None, Size]:
    if request.status in NO_BODY or request.method == "HEAD":
        return 0, Size.RECORDED
    content = answer.table("content")
    recorded = entry.size("_objectSize") if "_objectSize" in entry else None
    recorded = recorded or answer.size("bodySize")
    decoded = content.size("size")
    if recorded or (recorded == 0 and request.status in REDIRECTS):
        return recorded, Size.RECORDED
    length = _length(got.get("content-length", ""))
    if transfer:
        if header is not None and transfer > header:
            return transfer - header, Size.TRANSFER
        if length is not None and length <= transfer:
            return length, Size.CONTENT_LENGTH
        return transfer, Size.WHOLE
    if length is not None:
        return length, Size.CONTENT_LENGTH
    saved = content.size("compression")
    if decoded and saved and saved < decoded:
        return decoded - saved, Size.COMPRESSION
    if decoded:
        return decoded, Size.DECODED
    # Some recorders write 0 for what they do not know; it is believed where nothing contradicts.
    if recorded == 0 or decoded == 0:
        return 0, Size.RECORDED
    return None, Size.NONE


def _length(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 16 else None
