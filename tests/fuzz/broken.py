"""Hypothesis strategies for recordings and sites that are broken in one place or in several."""

from __future__ import annotations

import copy
import json
from typing import TYPE_CHECKING, Any

from hypothesis import strategies as st

from tests.recordings import SAMPLES, SITE

if TYPE_CHECKING:
    from hypothesis.strategies import DrawFn

__all__ = ["broken_bytes", "broken_recordings", "markup", "sheets"]

_STRANGE: tuple[Any, ...] = (
    *(None, True, False, 0, -1, -7, 1, 0.5, 1e308, -1e308, 10**400, 2**53, 86_400_001),
    *("", "\0", "\ud800", "\u202e", "x" * 3000, "-1", "1e999", "nan", "0x10"),
    *("http://", "https://[", "https://a:99999/", "//x", "data:", "blob:", "about:blank"),
    *("https://shop.example/app.js", "https://shop.example/", f"{SITE}/a/../../b?x#y", "file:///x"),
    *("2026-03-04T05:06:00Z", "0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00", "2026"),
    *("script", "parser", "preload", "document", "xhr", "websocket", "text/html", "blocking"),
    *("Networking_0", "Scripting_0", "d0", "c2", "Deps", "memory", "HEAD", "base64"),
    *(200, 204, 301, 302, 304, 404, 101, -404),
)
_TAGS = (
    *("<p>", "</p>", "<div class=x>", "</div>", "<b>", "text", " ", "<", ">", "'", '"', "&lt;"),
    *("<!--", "-->", "<!-->", "<!x>", "</>", "<?x>", "=", "/", "<p title='", "<p title=", "a=b"),
    *("<img src=1>", "<img src='2'>", '<img alt=">" src="3">', "<IMG\nSRC = 4 />", "<img src=5"),
    *("<script>", "</script>", "<script src=6>", "<style>", "</style>", "</title>", "<title>"),
    *("<textarea>", "</textarea>", "<iframe src=7>", "</iframe>", "--!>", "<script", "!", "-"),
)
_CSS = (
    *("{", "}", "(", ")", "[", "]", ";", ":", ",", "'", '"', "\\", "/*", "*/", "<!--", "\n", " "),
    *(
        "a",
        ".x",
        "@import",
        "@media",
        "@font-face",
        "@supports",
        "url(",
        "url(x.png)",
        "!important",
    ),
    *("src", "font-family", "font", "background", "image-set(", "format(woff2)", "U+0-7F", "10px"),
    *("unicode-range", "print", "screen", "(min-width:1px)", "&:hover", "layer(a)", "--x", "1x"),
)


@st.composite
def broken_recordings(draw: DrawFn) -> str:
    """Return a sample as JSON, with up to four of its values replaced, dropped or repeated."""
    document = copy.deepcopy(SAMPLES[draw(st.sampled_from(sorted(SAMPLES)))])
    for _ in range(draw(st.integers(1, 4))):
        _break(draw, document)
    return json.dumps(document)


def _break(draw: DrawFn, document: Any) -> None:
    """Go down a random way and do something to what is found there."""
    holder = document
    while True:
        keys = list(holder) if isinstance(holder, dict) else list(range(len(holder)))
        if not keys:
            return
        key = draw(st.sampled_from(keys))
        inner = holder[key]
        if not isinstance(inner, dict | list) or not inner or draw(st.integers(0, 5)) == 0:
            break
        holder = inner
    what = draw(st.sampled_from(("replace", "replace", "drop", "repeat")))
    if what == "replace":
        holder[key] = draw(st.sampled_from(_STRANGE) | st.sampled_from(([], {}, [[]], [{}])))
    elif what == "drop":
        del holder[key]
    elif isinstance(holder, list):
        holder.insert(draw(st.integers(0, len(holder))), copy.deepcopy(inner))


@st.composite
def broken_bytes(draw: DrawFn) -> bytes:
    """Return a sample as bytes that were cut, changed or doubled somewhere."""
    data = bytearray(json.dumps(SAMPLES[draw(st.sampled_from(sorted(SAMPLES)))]).encode())
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, len(data)))
        what = draw(st.sampled_from(("cut", "insert", "change", "double", "drop")))
        if what == "cut":
            del data[at:]
        elif what == "insert":
            data[at:at] = draw(st.binary(max_size=6))
        elif what == "change" and at < len(data):
            data[at] = draw(st.integers(0, 255))
        elif what == "double":
            data[at:at] = data[at : at + 300]
        else:
            del data[at : at + draw(st.integers(1, 200))]
    return bytes(data)


def markup() -> st.SearchStrategy[str]:
    """Return a strategy for HTML that is a soup of tags and parts of tags."""
    return st.lists(st.sampled_from(_TAGS), max_size=25).map("".join)


def sheets() -> st.SearchStrategy[str]:
    """Return a strategy for CSS that is a soup of tokens."""
    return st.lists(st.sampled_from(_CSS), max_size=40).map("".join)
