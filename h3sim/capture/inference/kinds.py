"""What a resource is to the browser: from what the recorder says, its media type, its name."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from h3sim.page import Kind

if TYPE_CHECKING:
    from h3sim.capture.inference.observed import Observed

__all__ = ["kind_of", "kind_of_extension", "kind_of_mime", "kind_of_word", "plain_mime"]

_WORDS = {
    Kind.DOCUMENT: "document iframe frame html",
    Kind.STYLESHEET: "stylesheet style css",
    Kind.SCRIPT: "script js javascript worker sharedworker",
    Kind.FONT: "font",
    Kind.IMAGE: "image img",
    Kind.FETCH: "xhr fetch eventsource empty json preflight",
    Kind.MEDIA: "media video audio track texttrack",
    Kind.OTHER: "manifest ping beacon cspviolationreport report object embed",
}
"""Chrome's resource types, Fetch's destinations, and what graphs of WProf call them."""
_EXTENSIONS = {
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
    for table in (_WORDS, _EXTENSIONS)
)
_MIMES = (
    (r"text/html|application/xhtml\+xml", Kind.DOCUMENT),
    (r"text/css", Kind.STYLESHEET),
    (r"(text|application)/(x-)?(java|ecma)script|text/jscript", Kind.SCRIPT),
    (r"font/.*|application/((x-)?font-.*|vnd\.ms-fontobject|x-woff)", Kind.FONT),
    (r"image/.*", Kind.IMAGE),
    (r"(audio|video)/.*|application/(ogg|vnd\.apple\.mpegurl|dash\+xml)|text/vtt", Kind.MEDIA),
    (r"(text|application)/(json|.*\+json|xml|.*\+xml|x-protobuf|graphql|grpc.*)", Kind.FETCH),
)
_KIND_OF_MIME = tuple((re.compile(pattern), kind) for pattern, kind in _MIMES)
_GENERIC_MIMES = frozenset(
    ("", "text/plain", "application/octet-stream", "binary/octet-stream", "x-unknown")
)
"""Media types that say nothing: servers use them for what they do not know."""
_MIME = re.compile(r"[\w.+-]{1,60}/[\w.+-]{1,60}")


def plain_mime(mime: str) -> str:
    """Return a media type without parameters, "" where it is none.

    >>> plain_mime("Text/HTML; charset=utf-8"), plain_mime("<script>")
    ('text/html', '')
    """
    plain = mime.partition(";")[0].strip().lower()
    return plain if _MIME.fullmatch(plain) else ""


def kind_of_word(word: str) -> Kind | None:
    """Return what a recorder's word for the type means.

    >>> kind_of_word("XHR"), kind_of_word("Other")
    (<Kind.FETCH: 'fetch'>, None)
    """
    return _KIND_OF_WORD.get(word.lower())


def kind_of_mime(mime: str) -> Kind | None:
    """Return what a plain media type means, None where it says nothing."""
    if mime in _GENERIC_MIMES:
        return None
    return next((kind for pattern, kind in _KIND_OF_MIME if pattern.fullmatch(mime)), None)


def kind_of_extension(path: str) -> Kind | None:
    """Return what the end of the path means.

    >>> kind_of_extension("/static/app.min.JS"), kind_of_extension("/api/v1")
    (<Kind.SCRIPT: 'script'>, None)
    """
    _, dot, extension = path.rpartition("/")[2].rpartition(".")
    return _KIND_OF_EXTENSION.get(extension.lower()) if dot else None


def kind_of(request: Observed) -> tuple[Kind, str]:
    """Return what a request asks for, and from what that was told if nobody said it."""
    if request.kind is not None:
        return request.kind, ""
    kind, basis = kind_of_mime(plain_mime(request.mime)), "kind from the media type"
    if request.is_xhr and kind in (Kind.DOCUMENT, Kind.FETCH, None):
        return Kind.FETCH, "kind from the header of the request"
    if kind is None:
        path = request.url.partition("?")[0].partition("#")[0]
        kind, basis = kind_of_extension(path), "kind from the extension"
    return (Kind.OTHER, "kind unknown, taken as other") if kind is None else (kind, basis)
