"""What of a URL may be kept: no query, no fragment, no name or password, no session in the path.

>>> public_url("https://me:secret@shop.example/cart;jsessionid=1?user=7#top")
'https://shop.example/cart'
"""

from __future__ import annotations

import re
from typing import NamedTuple
from urllib.parse import urljoin, urlsplit

__all__ = ["Address", "address", "joined", "public_url"]

_PARAMETERS = re.compile(r";[^/]*")
_UNFIT = re.compile(r"[\x00-\x20\x7f-\x9f\ud800-\udfff\u2028\u2029\ufeff]+")


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


def public_url(url: str) -> str:
    """Return what of *url* may be kept, "" if it is no URL with a host."""
    parts = address(url)
    return parts.url if parts is not None and parts.host else ""


def joined(base: str, url: str) -> str:
    """Return *url* as seen from *base*, "" where that makes no sense.

    >>> joined("https://a.example/css/main.css?v=1", "../i.png#x")
    'https://a.example/i.png'
    """
    try:
        return urljoin(base, url.strip()).partition("#")[0]
    except ValueError:
        return ""
