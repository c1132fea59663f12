"""What of a URL may be kept: no query, no fragment, no name or password, no session in the path.

Resources are named by what is kept, each name once.

>>> address("https://me:secret@shop.example/cart;jsessionid=1?user=7#top").url
'https://shop.example/cart'
>>> shop = "https://shop.example/"
>>> ids_of([shop, f"{shop}a.js?v=2", f"{shop}a.js?v=1", "https://cdn.example/a.js"], shop)
['/', 'a.js (2)', 'a.js', 'cdn.example/a.js']
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import unquote, urljoin, urlsplit

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Address", "address", "ids_of", "joined", "request_target", "without_fragment"]

_PARAMETERS = re.compile(r";[^/]*")
_UNFIT = re.compile(r"[\x00-\x20\x7f-\x9f\ud800-\udfff\u2028\u2029\ufeff]+")
_LONGEST_ID = 200
_UNSEEN = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff\u2028\u2029\ufeff]+")


class Address(NamedTuple):
    """The parts of a URL that are kept; *scheme* and *host* are in lower case."""

    scheme: str
    host: str
    path: str

    @property
    def url(self) -> str:
        """The URL of these parts."""
        return f"{self.scheme}://{self.host}{self.path}"


def address(url: str) -> Address | None:
    """Return the parts of *url* that may be kept, None if it is no URL.

    >>> address("HTTPS://Shop.Example:8443/a/b.css?v=3")
    Address(scheme='https', host='shop.example:8443', path='/a/b.css')
    >>> address("data:image/png;base64,AAAA")
    Address(scheme='data', host='', path='')
    """
    scheme, colon, rest = url.strip().partition(":")
    if not colon or not re.fullmatch(r"[A-Za-z][A-Za-z0-9+.-]*", scheme):
        return None
    if not rest.startswith("//"):
        return Address(scheme.lower(), "", "")
    try:
        parts = urlsplit(url.strip())
        host = (parts.hostname or "").lower()
        port = parts.port
    except ValueError:
        return None
    host = f"[{host}]" if ":" in host else host
    default = {"http": 80, "https": 443}.get(scheme.lower())
    if port is not None and port != default:
        host = f"{host}:{port}"
    path = _UNFIT.sub("", _PARAMETERS.sub("", parts.path))
    return Address(scheme.lower(), _UNFIT.sub("", host), path or "/")


def without_fragment(url: str) -> str:
    """Return *url* without its fragment, which is not sent."""
    return url.partition("#")[0]


def request_target(url: str) -> str:
    """Return what of *url* a request line names: path and query; ValueError if it is no URL."""
    parts = urlsplit(url)
    return (parts.path or "/") + (f"?{parts.query}" if parts.query else "")


def joined(base: str, url: str) -> str:
    """Return *url* as seen from *base*, "" where that makes no sense.

    >>> joined("https://a.example/css/main.css?v=1", "../i.png#x")
    'https://a.example/i.png'
    """
    try:
        return without_fragment(urljoin(base, url.strip()))
    except ValueError:
        return ""


def ids_of(urls: Sequence[str], root: str) -> list[str]:
    """Return the id of each URL: its path, behind its host if that is another than the root's.

    What has the same path then is told apart by a number, in the order of the whole URLs and then
    of the list. So the order in which equal requests were made decides nothing.
    """
    parts = address(root)
    home = "" if parts is None else parts.host
    groups: dict[str, list[int]] = {}
    for index, url in enumerate(urls):
        groups.setdefault(_name(url, home), []).append(index)
    ids = [""] * len(urls)
    for name, group in groups.items():
        for number, index in enumerate(sorted(group, key=lambda index: (urls[index], index)), 1):
            ids[index] = name if number == 1 else f"{name} ({number})"
    return ids


def _name(url: str, home: str) -> str:
    parts = address(url)
    if parts is None:
        return "/"
    path = _UNSEEN.sub("", unquote(parts.path))[:_LONGEST_ID]
    return path.lstrip("/") or "/" if parts.host == home else f"{parts.host}{path}"
