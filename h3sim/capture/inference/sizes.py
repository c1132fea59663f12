"""How long messages would be as the text of HTTP/1.1; header compression makes them less."""

from __future__ import annotations

from typing import TYPE_CHECKING

from h3sim.capture.inference.urls import request_target

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["NOT_MODIFIED", "NO_BODY", "length_of", "request_text_bytes", "response_text_bytes"]

NOT_MODIFIED = 304
NO_BODY = frozenset((204, 205, NOT_MODIFIED))
"""The statuses that come without a body (RFC 9110 § 15)."""
_STATUS_LINE = "HTTP/1.1 200\r\n"
_FRAMING = len(": \r\n")
_END = len("\r\n")


def length_of(content_length: str) -> int | None:
    """Return the length that a Content-Length field tells, None where it is none."""
    is_number = content_length.isascii() and content_length.isdigit() and len(content_length) < 16
    return int(content_length) if is_number else None


def request_text_bytes(method: str, url: str, fields: Iterable[tuple[str, str]]) -> int:
    r"""Return the size of a request without body as HTTP/1.1 would write it.

    >>> request_text_bytes("GET", "http://x/a?v=2", [("Host", "x"), (":path", "/a?v=2")])
    32
    >>> len("GET /a?v=2 HTTP/1.1\r\nHost: x\r\n\r\n")
    32
    """
    try:
        line = f"{method} {request_target(url)} HTTP/1.1\r\n"
    except ValueError:  # such as a broken IPv6 address
        line = ""
    return len(line) + _fields_bytes(fields) + _END


def response_text_bytes(fields: Iterable[tuple[str, str]]) -> int:
    r"""Return the size of a response's header as HTTP/1.1 would write it.

    >>> response_text_bytes([("Age", "3")]) == len("HTTP/1.1 200\r\nAge: 3\r\n\r\n")
    True
    """
    return len(_STATUS_LINE) + _fields_bytes(fields) + _END


def _fields_bytes(fields: Iterable[tuple[str, str]]) -> int:
    plain = ((name, value) for name, value in fields if name[:1] != ":")
    return sum(len(name) + len(value) + _FRAMING for name, value in plain)
