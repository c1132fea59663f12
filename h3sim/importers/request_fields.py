"""Fields of a recorded request: its URL, its size as HTTP/1.1 text, its kind.

The ids of resources are unique, and made only of the parts of a URL that are kept.

>>> address("https://me:secret@shop.example/cart;jsessionid=1?user=7#top").url
'https://shop.example/cart'
>>> shop = "https://shop.example/"
>>> ids_of([shop, f"{shop}a.js?v=2", f"{shop}a.js?v=1", "https://cdn.example/a.js"], shop)
['/', 'a.js (2)', 'a.js', 'cdn.example/a.js']
"""

from __future__ import annotations

import re
import unicodedata
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import quote, unquote, urljoin, urlsplit, urlunsplit

from h3sim.page import Kind

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence


_PATH_PARAMETERS = re.compile(r";[^/]*")
"""Parameters in a path, such as a session id, which are not kept."""
_NOT_IN_ADDRESS = re.compile(r"[\x00-\x20\x7f-\x9f\ud800-\udfff\u2028\u2029\ufeff]+")
"""Characters that no address has: control characters, blanks, lone surrogates."""
_MAX_ID_CHARS = 200
"""Longer ids of resources are cut."""
_WEB_SCHEMES = ("http", "https")
_PRINTABLE_ASCII = "".join(map(chr, range(0x21, 0x7F)))
_UNESCAPED_IN_PATH, _UNESCAPED_IN_QUERY = (
    "".join(each for each in _PRINTABLE_ASCII if each not in escaped)
    for escaped in ('"<>`{}', "\"<>'")
)
"""Characters that are not escaped (URL Standard § 1.3), including %: it may start an escape."""
_NOT_IN_ID = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff\u2028\u2029\ufeff]+")
"""Characters that no id has: as above, but blanks are part of a decoded path."""
_IGNORED_IN_HOST = re.compile(
    "[\u00ad\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u2060-\u2064\u206a-\u206f\ufe00-\ufe0f"
    "\ufeff\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0100-\U000e01ef]"
)
"""Characters ignored in host names: soft hyphens, variation selectors and so on (UTS #46)."""
_LABEL_ENDS = re.compile("[.\u3002]")
"""Dots between the labels of a host name: the usual one and the ideographic one."""
_KEPT_CASE = {"\u1e9e": "ß"} | {each: each for each in "ßς\u200c\u200d"}
"""Characters kept despite case folding (UTS #46, nontransitional)."""


class Address(NamedTuple):
    """Parts of a URL that are kept; *scheme* and *host* are in lower case."""

    scheme: str
    host: str
    path: str

    @property
    def url(self) -> str:
        """The URL of these parts."""
        return f"{self.scheme}://{self.host}{self.path}"


NO_ADDRESS = Address("", "", "")


def address(url: str) -> Address | None:
    """Return the parts of *url* that may be kept, without query; None if it is not a URL.

    >>> address("HTTPS://Shop.Example:8443/a/b.css?v=3")
    Address(scheme='https', host='shop.example:8443', path='/a/b.css')
    >>> address("data:image/png;base64,AAAA")
    Address(scheme='data', host='', path='')
    >>> address("https://bücher.example/").host
    'xn--bcher-kva.example'
    """
    scheme, colon, rest = url.strip().partition(":")
    if not colon or not re.fullmatch(r"[A-Za-z][A-Za-z0-9+.-]*", scheme):
        return None
    if not rest.startswith("//"):
        return Address(scheme.lower(), "", "")
    try:
        parts = urlsplit(url.strip())
        host = ascii_host(_NOT_IN_ADDRESS.sub("", parts.hostname or ""))
        port = parts.port
    except ValueError:
        return None
    host = f"[{host}]" if ":" in host else host
    default = {"http": 80, "https": 443}.get(scheme.lower())
    if port is not None and port != default:
        host = f"{host}:{port}"
    path = _NOT_IN_ADDRESS.sub("", _PATH_PARAMETERS.sub("", parts.path))
    return Address(scheme.lower(), host, path or "/")


def ascii_host(host: str) -> str:
    """Return a host's name in lower case as the DNS has it (RFC 3492, UTS #46).

    The mapping of UTS #46 is composed of the standard library's normal forms and case foldings.
    Characters that it forbids are kept, as they were in the recorded request.

    >>> ascii_host("CDN.Example"), ascii_host("straße.example"), ascii_host("例え。テスト")
    ('cdn.example', 'xn--strae-oqa.example', 'xn--r8jz45g.xn--zckzah')
    """
    if host.isascii():
        return host.lower()
    visible = _IGNORED_IN_HOST.sub("", unicodedata.normalize("NFKC", host))
    folded = "".join(_KEPT_CASE.get(each) or each.casefold() for each in visible)
    # Again, as folding may undo the normal form.
    labels = _LABEL_ENDS.split(unicodedata.normalize("NFKC", folded))
    return ".".join(
        label if label.isascii() else f"xn--{label.encode('punycode').decode()}" for label in labels
    )


def without_fragment(url: str) -> str:
    """Return *url* without its fragment, which is not sent."""
    return url.partition("#")[0]


def request_target(url: str) -> str:
    """Return the path and query of *url*, as in a request line.

    Raises:
        ValueError: if it is not a URL.
    """
    parts = urlsplit(url)
    return (parts.path or "/") + (f"?{parts.query}" if parts.query else "")


def joined(base: str, url: str) -> str:
    r"""Resolve *url* against *base* as browsers do (URL Standard § 4); return "" if that fails.

    >>> joined("https://a.example/css/main.css?v=1", "../i.png#x")
    'https://a.example/i.png'
    >>> joined("https://a.example/", "//B.Example:443"), joined("https://a.example/", r"é\ü ü.png")
    ('https://b.example/', 'https://a.example/%C3%A9/%C3%BC%20%C3%BC.png')
    """
    try:
        if urlsplit(base).scheme in _WEB_SCHEMES:
            # Browsers treat a backslash in a path as a slash.
            path, *query = re.split("(?=[?#])", url, maxsplit=1)
            url = "".join([path.replace("\\", "/"), *query])
        return _normalized(without_fragment(urljoin(base, url.strip())))
    except ValueError:
        return ""


def _normalized(url: str) -> str:
    """Return an absolute URL in ASCII, without a default port, as browsers send it."""
    parts, parsed = urlsplit(url), address(url)
    if parsed is None or parsed.scheme not in _WEB_SCHEMES or not parsed.host:
        return url
    user, at, _ = parts.netloc.rpartition("@")
    path, query = (
        quote(parts.path or "/", safe=_UNESCAPED_IN_PATH),
        quote(parts.query, safe=_UNESCAPED_IN_QUERY),
    )
    return urlunsplit((parsed.scheme, f"{user}{at}{parsed.host}", path, query, ""))


def ids_of(urls: Sequence[str], root: str) -> list[str]:
    """Return the id of each URL: its path, preceded by its host if that is not the root's.

    Equal ids get a number, in the order of the whole URLs and then of the list, so that ids do not
    depend on the order in which different URLs were requested.
    """
    parts = address(root)
    root_host = "" if parts is None else parts.host
    groups: dict[str, list[int]] = {}
    for index, url in enumerate(urls):
        groups.setdefault(_unnumbered_id(url, root_host), []).append(index)
    ids = [""] * len(urls)
    for name, group in groups.items():
        for number, index in enumerate(sorted(group, key=lambda index: (urls[index], index)), 1):
            ids[index] = name if number == 1 else f"{name} ({number})"
    return ids


def _unnumbered_id(url: str, root_host: str) -> str:
    parts = address(url)
    if parts is None:
        return "/"
    path = _NOT_IN_ID.sub("", unquote(parts.path))[:_MAX_ID_CHARS]
    if parts.host != root_host:
        return f"{parts.host}{path}"
    return path.lstrip("/") or "/"


NOT_MODIFIED = 304
FIRST_ERROR_STATUS = 400
"""From this status on the requested resource was not delivered (RFC 9110 § 15.5)."""
NO_BODY = frozenset((204, 205, NOT_MODIFIED))
"""Statuses of responses without a body (RFC 9110 § 15)."""
_STATUS_LINE = "HTTP/1.1 200\r\n"
"""Stands for any status line: all statuses have three digits."""
_FIELD_OVERHEAD_BYTES = len(": \r\n")
_HEADER_END_BYTES = len("\r\n")


def length_of(content_length: str) -> int | None:
    """Return the number in a Content-Length field, None if it is invalid or implausibly large."""
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
    return len(line) + _fields_bytes(fields) + _HEADER_END_BYTES


def response_text_bytes(fields: Iterable[tuple[str, str]]) -> int:
    r"""Return the size of a response's header as HTTP/1.1 would write it.

    >>> response_text_bytes([("Age", "3")]) == len("HTTP/1.1 200\r\nAge: 3\r\n\r\n")
    True
    """
    return len(_STATUS_LINE) + _fields_bytes(fields) + _HEADER_END_BYTES


def field_lines(lines: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield the header fields of lines such as "Host: example.org" and ":method: GET".

    >>> list(field_lines(["Host: example.org", ":method: GET", "HTTP/1.1 200"]))
    [('Host', 'example.org'), (':method', 'GET')]
    """
    for line in lines:
        # The first character may be the colon of a pseudo-header field.
        name, colon, value = line[1:].partition(":")
        if colon:
            yield line[:1] + name, value.strip()


def _fields_bytes(fields: Iterable[tuple[str, str]]) -> int:
    # Pseudo-header fields correspond to the request line or status line.
    regular = ((name, value) for name, value in fields if not name.startswith(":"))
    return sum(len(name) + len(value) + _FIELD_OVERHEAD_BYTES for name, value in regular)


_WORDS_BY_KIND = {
    Kind.DOCUMENT: "document iframe frame html",
    Kind.STYLESHEET: "stylesheet style css",
    Kind.SCRIPT: "script js javascript worker sharedworker",
    Kind.FONT: "font",
    Kind.IMAGE: "image img",
    Kind.FETCH: "xhr fetch eventsource empty json preflight",
    Kind.MEDIA: "media video audio track texttrack",
    Kind.OTHER: "manifest ping beacon cspviolationreport report object embed",
}
"""Words of recorders: Chrome's resource types, Fetch's destinations, types in WProf's graphs."""
_EXTENSIONS_BY_KIND = {
    Kind.DOCUMENT: "html htm xhtml php asp aspx jsp",
    Kind.STYLESHEET: "css",
    Kind.SCRIPT: "js mjs",
    Kind.FONT: "woff woff2 ttf otf eot",
    Kind.IMAGE: "png jpg jpeg gif webp avif svg ico bmp",
    Kind.FETCH: "json",
    Kind.MEDIA: "mp4 webm m4v mov mp3 ogg ogv m4a wav vtt",
}
_KIND_OF_WORD, _KIND_OF_EXTENSION = (
    {word: kind for kind, words in table.items() for word in words.split()}
    for table in (_WORDS_BY_KIND, _EXTENSIONS_BY_KIND)
)
_KIND_BY_MIME_PATTERN = (
    (r"text/html|application/xhtml\+xml", Kind.DOCUMENT),
    (r"text/css", Kind.STYLESHEET),
    (r"(text|application)/(x-)?(java|ecma)script|text/jscript", Kind.SCRIPT),
    (r"font/.*|application/((x-)?font-.*|vnd\.ms-fontobject|x-woff)", Kind.FONT),
    (r"image/.*", Kind.IMAGE),
    (r"(audio|video)/.*|application/(ogg|vnd\.apple\.mpegurl|dash\+xml)|text/vtt", Kind.MEDIA),
    (r"(text|application)/(json|.*\+json|xml|.*\+xml|x-protobuf|graphql|grpc.*)", Kind.FETCH),
)
_KIND_BY_MIME = tuple((re.compile(pattern), kind) for pattern, kind in _KIND_BY_MIME_PATTERN)
_UNKNOWN_MIMES = frozenset(
    ("", "text/plain", "application/octet-stream", "binary/octet-stream", "x-unknown")
)
"""Media types that servers use for unknown content, so that the kind is unknown."""
_VALID_MIME = re.compile(r"[\w.+-]{1,60}/[\w.+-]{1,60}")


def plain_mime(mime: str) -> str:
    """Return a media type without parameters, "" if it is invalid.

    >>> plain_mime("Text/HTML; charset=utf-8"), plain_mime("<script>")
    ('text/html', '')
    """
    plain = mime.partition(";")[0].strip().lower()
    return plain if _VALID_MIME.fullmatch(plain) else ""


def kind_of_word(word: str) -> Kind | None:
    """Return the kind that a recorder's word for the resource type means, None if unknown.

    >>> kind_of_word("XHR"), kind_of_word("Other")
    (<Kind.FETCH: 'fetch'>, None)
    """
    return _KIND_OF_WORD.get(word.lower())


def kind_of_mime(mime: str) -> Kind | None:
    """Return the kind of a plain media type, None if it is unknown."""
    if mime in _UNKNOWN_MIMES:
        return None
    return next((kind for pattern, kind in _KIND_BY_MIME if pattern.fullmatch(mime)), None)


def kind_of_extension(path: str) -> Kind | None:
    """Return the kind of a path's file extension, None if it is unknown.

    >>> kind_of_extension("/static/app.min.JS"), kind_of_extension("/api/v1")
    (<Kind.SCRIPT: 'script'>, None)
    """
    _, dot, extension = path.rpartition("/")[2].rpartition(".")
    return _KIND_OF_EXTENSION.get(extension.lower()) if dot else None
