"""Names resources by their paths: no query strings, no ports of this machine."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from h3sim.page import Kind

if TYPE_CHECKING:
    from collections.abc import Sequence

    from h3sim.capture.chromium.exchanges import Exchange

__all__ = ["ids_of", "is_chore", "kind_of"]

_KINDS = {
    "Document": Kind.DOCUMENT,
    "Stylesheet": Kind.STYLESHEET,
    "Script": Kind.SCRIPT,
    "Font": Kind.FONT,
    "Image": Kind.IMAGE,
    "Media": Kind.MEDIA,
    "TextTrack": Kind.MEDIA,
    "XHR": Kind.FETCH,
    "Fetch": Kind.FETCH,
    "EventSource": Kind.FETCH,
}
_MIMES = (
    ("text/css", Kind.STYLESHEET),
    ("text/javascript", Kind.SCRIPT),
    ("application/javascript", Kind.SCRIPT),
    ("application/x-javascript", Kind.SCRIPT),
    ("font/", Kind.FONT),
    ("image/", Kind.IMAGE),
    ("audio/", Kind.MEDIA),
    ("video/", Kind.MEDIA),
)


def ids_of(exchanges: Sequence[Exchange], root: Exchange) -> dict[str, str]:
    """Return the id of each exchange by its key: its path, behind its host if that is another.

    Query strings are left out. What has the same path then is told apart by a number, in the order
    of the whole addresses and then of the requests.
    """
    home = urlsplit(root.url).netloc
    groups: dict[str, list[Exchange]] = {}
    for exchange in exchanges:
        groups.setdefault(_path(exchange.url, home), []).append(exchange)
    found: dict[str, str] = {}
    for name, group in groups.items():
        group.sort(key=lambda exchange: (exchange.url, exchange.requested_ms))
        for number, exchange in enumerate(group, 1):
            found[exchange.key] = name if number == 1 else f"{name} ({number})"
    return found


def _path(url: str, home: str) -> str:
    parts = urlsplit(url)
    path = unquote(parts.path)
    if parts.netloc == home:
        return path.lstrip("/") or "/"
    return f"{parts.netloc}{path or '/'}"


def kind_of(exchange: Exchange) -> Kind:
    """Return what the resource is to the browser, by Chromium's word or else by its media type."""
    kind = _KINDS.get(exchange.type)
    if kind is not None:
        return kind
    for start, kind in _MIMES:
        if exchange.mime.startswith(start):
            return kind
    return Kind.OTHER


def is_chore(exchange: Exchange) -> bool:
    """Whether the browser asks for its own sake: the icon of the tab, which no page waits for."""
    return exchange.type == "Other" and exchange.initiator.type == "other"
