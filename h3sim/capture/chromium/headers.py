"""Writes recorded header lists in QIF, the text format in which header coders are compared.

A list is lines of a name, a tab and a value; an empty line ends it. Names are those of HTTP/2 and
HTTP/3: in small letters, with pseudo-header fields in front.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from h3sim.protocol import HOP_BY_HOP_FIELDS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from h3sim.capture.dialects.network_events import Exchange

__all__ = ["request_lists", "response_lists", "to_qif"]

_SECRETS = {"authorization", "cookie", "proxy-authorization", "set-cookie"}
_ADDRESSES = {"location", "referer"}

HeaderList = list[tuple[str, str]]


def request_lists(exchanges: Iterable[Exchange]) -> list[HeaderList]:
    """Return the header list of each request; without cookies, credentials and query strings."""
    return [_request(exchange) for exchange in exchanges]


def response_lists(exchanges: Iterable[Exchange]) -> list[HeaderList]:
    """Return the header list of each response; without cookies and query strings."""
    return [
        [(":status", str(exchange.status)), *_plain(exchange.response_fields)]
        for exchange in exchanges
    ]


def to_qif(lists: Iterable[HeaderList]) -> str:
    r"""Return the lists as QIF.

    >>> to_qif([[(":method", "GET")], [(":status", "200")]])
    ':method\tGET\n\n:status\t200\n\n'
    """
    return "".join(
        "".join(f"{name}\t{value}\n" for name, value in fields) + "\n" for fields in lists
    )


def _request(exchange: Exchange) -> HeaderList:
    parts = urlsplit(exchange.url)
    return [
        (":method", exchange.method),
        (":scheme", parts.scheme),
        (":authority", parts.netloc),
        (":path", parts.path or "/"),
        *_plain(exchange.request_fields),
    ]


def _plain(fields: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    for name, value in fields:
        small = name.lower()
        if small.startswith(":") or small in _SECRETS or small in HOP_BY_HOP_FIELDS:
            continue
        yield small, value.partition("?")[0] if small in _ADDRESSES else value
