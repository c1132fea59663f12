"""Hostile files: deep, wide, long, with huge numbers, repeated, in chains and circles, compressed.

Each maker takes the size that the file shall have, about, and returns its bytes. What a reader has
to say of it does not matter here: an answer, or mistakes, in time and within the memory.
"""

from __future__ import annotations

import gzip
import json
import sqlite3
import tempfile
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from h3sim.study.packed_rows import pack
from h3sim.study.store import digest_of
from tests.fuzz.readers import READERS
from tests.recordings import SAMPLES, SITE, archive_lines, entry, net_event

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

__all__ = ["FILES"]

_HUGE = "9" * 4000


def _repeated(make: Callable[[int], str], n_bytes: int) -> list[str]:
    """Return as many different parts as make up the size."""
    return [make(number) for number in range(max(1, n_bytes // (len(make(1000)) + 1)))]


def _joined(make: Callable[[int], str], n_bytes: int, by: str = ",") -> str:
    return by.join(_repeated(make, n_bytes))


def _text(make: Callable[[int], str]) -> Callable[[int], bytes]:
    return lambda n_bytes: make(n_bytes).encode()


def _bomb(head: bytes, filler: bytes) -> Callable[[int], bytes]:
    """Return a maker of gzip that grows to 300 times its size, and begins as a file may."""

    def make(n_bytes: int) -> bytes:
        times = 300 * n_bytes // len(filler)
        return gzip.compress(head + filler * times, compresslevel=9)

    return make


# CrUX

_CRUX_BINS: dict[str, Callable[[int, int], Any]] = {
    "one bin often": lambda _, __: {"start": 0, "end": 75, "density": 0.4},
    "bins of a millisecond": lambda number, _: {"start": number, "end": number + 1, "density": 0.0},
    "huge bins": lambda _, __: {"start": int(_HUGE), "density": 1e308},
}


def _crux() -> Any:
    return json.loads(READERS["CrUX"].samples()[0])


def _crux_row(number: int) -> str:
    return json.dumps({"yyyymm": number, "low_rtt": 0.1, "medium_rtt": 0.2, "high_rtt": 0.7})


# JSON of any kind

_JSON: dict[str, Any] = {
    "deep lists": _text(lambda n: "[" * n),
    "deep objects": _text(lambda n: '{"a":' * (n // 5)),
    "closed deep lists": _text(lambda n: "[" * (n // 2) + "]" * (n // 2)),
    "wide list": _text(lambda n: f"[{_joined(lambda _: '0', n)}]"),
    "wide object": _text(lambda n: _wide(n)),
    "one key often": _text(lambda n: "{" + _joined(lambda _: '"k":0', n) + "}"),
    "a long text": _text(lambda n: f'{{"format":"{"x" * n}"}}'),
    "a long key": _text(lambda n: f'{{"{"x" * n}":1}}'),
    "escapes": _text(lambda n: '{"a":"' + "\\u0000" * (n // 6) + '"}'),
    "a long number": _text(lambda n: f'{{"format":{"9" * n}}}'),
    "spaces": _text(lambda n: " " * n),
    "no end of a text": _text(lambda n: '{"a":"' + "\\\\" * (n // 2)),
}


def _wide(n_bytes: int) -> str:
    return "{" + _joined(lambda i: f'"k{i}":0', n_bytes) + "}"


def _within(sample: Callable[[], Any], *path: str | int) -> dict[str, Callable[[int], bytes]]:
    """Return makers that put something large in place of one value of a whole document."""

    def put(value: Callable[[int], str]) -> Callable[[int], bytes]:
        def make(n_bytes: int) -> bytes:
            document = json.loads(json.dumps(sample()))
            inner = document
            for key in path[:-1]:
                inner = inner[key]
            inner[path[-1]] = "@@"
            return json.dumps(document).replace('"@@"', value(n_bytes), 1).encode()

        return make

    at = ".".join(map(str, path))
    return {
        f"{at}: deep": put(lambda n: "[" * (n // 2) + "]" * (n // 2)),
        f"{at}: 900 deep": put(lambda n: '{"a":' * 900 + "1" + "}" * 900),
        f"{at}: wide list": put(lambda n: "[" + _joined(lambda _: "0", n) + "]"),
        f"{at}: objects": put(lambda n: "[" + _joined(lambda _: "{}", n) + "]"),
        f"{at}: wide object": put(_wide),
        f"{at}: a long text": put(lambda n: f'"{"x" * n}"'),
        f"{at}: huge numbers": put(lambda n: "[" + _joined(lambda _: _HUGE, n) + "]"),
        f"{at}: a huge number": put(lambda _: "1e308"),
    }


def _lists(
    sample: Callable[[], Any], *path: str | int, make: dict[str, Callable[[int, int], Any]]
) -> dict[str, Callable[[int], bytes]]:
    """Return makers that put many entries into the list at *path*: `make(number, of)` is one."""

    def put(entry: Callable[[int, int], Any]) -> Callable[[int], bytes]:
        def of(n_bytes: int) -> bytes:
            n_entries = max(2, n_bytes // (len(json.dumps(entry(5000, 10_000))) + 2))
            document = json.loads(json.dumps(sample()))
            inner = document
            for key in path[:-1]:
                inner = inner[key]
            inner[path[-1]] = [entry(number, n_entries) for number in range(n_entries)]
            return json.dumps(document).encode()

        return of

    return {name: put(entry) for name, entry in make.items()}


# Pages


def _resource(number: int, parent: int | None, **more: Any) -> dict[str, Any]:
    known: dict[str, Any] = {"id": f"r{number}", "kind": "script", "bytes": 9}
    if parent is not None:
        known["discovered"] = {"by": f"r{parent}", "at": "complete"}
    return {**known, **more}


_ROOT = {"id": "r0", "kind": "document", "bytes": 900}
_PAGES: dict[str, Callable[[int, int], Any]] = {
    "a chain": lambda i, n: _resource(i, i - 1) if i else _ROOT,
    "a chain backwards": lambda i, n: (
        _resource(i, i + 1) if i < n - 1 else {**_ROOT, "id": f"r{i}"}
    ),
    "one parent": lambda i, n: _resource(i, 0) if i else _ROOT,
    "one parent and offset": lambda i, n: (
        _resource(i, None, discovered={"by": "r0", "at": "offset", "offset_bytes": 5})
        if i
        else _ROOT
    ),
    "a circle": lambda i, n: _resource(i, (i + 1) % n),
    "pairs in circles": lambda i, n: _resource(i, i ^ 1),
    "no parents": lambda i, n: _resource(i, i + n),
    "one id": lambda i, n: {"id": "x", "kind": "script", "bytes": 9},
    "many hosts": lambda i, n: _resource(i, 0, host=f"h{i}") if i else _ROOT,
    "long ids": lambda i, n: {**_ROOT, "id": f"{i}" + "x" * 3000},
    "unknown kinds": lambda i, n: {**_ROOT, "id": f"r{i}", "kind": f"kind{i}"},
    "unknown keys": lambda i, n: {**_ROOT, "id": f"r{i}", f"discoverd{i}": 1},
    "huge sizes": lambda i, n: {**_ROOT, "id": f"r{i}", "bytes": 10**300},
    "bare": lambda i, n: {},
    "texts": lambda i, n: "x",
}


@cache
def _sample(name: str) -> Any:
    return json.loads(next(iter(READERS[name].samples())))


def _page() -> Any:
    document = _sample("page")
    return {**document, "resources": [_ROOT], "provenance": {}}


_PAGE = {
    **_JSON,
    **_lists(_page, "resources", make=_PAGES),
    **_within(_page, "resources"),
    **_within(_page, "name"),
    **_within(_page, "provenance"),
}

# TOML


def _tables(name: str) -> dict[str, Any]:
    """Return hostile TOML behind the sample of a format."""

    @cache
    def head() -> str:
        return next(iter(READERS[name].samples())).decode()

    def with_(make: Callable[[int], str]) -> Callable[[int], bytes]:
        return lambda n_bytes: f"{make(n_bytes)}\n{head()}".encode()

    def behind(make: Callable[[int], str]) -> Callable[[int], bytes]:
        return lambda n_bytes: f"{head()}\n{make(n_bytes)}".encode()

    return {
        "a dotted key": with_(lambda n: ".".join("a" * (n // 2)) + " = 1"),
        "a dotted quoted key": with_(lambda n: ".".join(['"a"'] * (n // 4)) + " = 1"),
        "a dotted table": behind(lambda n: f"[{'.'.join('a' * (n // 2))}]"),
        "a dotted array": behind(lambda n: f"[[{'.'.join('a' * (n // 2))}]]"),
        "a dotted key without a value": with_(lambda n: ".".join("a" * (n // 2))),
        "a dotted key inline": with_(lambda n: f"x = {{{'.'.join('a' * (n // 2))} = 1}}"),
        "many keys": with_(lambda n: _joined(lambda i: f"k{i} = 1", n, "\n")),
        "many keys of 16 parts": with_(
            lambda n: _joined(lambda i: ".".join([f"a{i}", *"bcdefghijklmnop"]) + "=1", n, "\n")
        ),
        "many tables": behind(lambda n: _joined(lambda i: f"[t{i}]", n, "\n")),
        "many arrays": behind(lambda n: _joined(lambda _: "[[t]]", n, "\n")),
        "many rules": behind(lambda n: _joined(lambda _: "[[rules]]\nclass='x'", n, "\n")),
        "many classes": behind(lambda n: _joined(lambda i: f"[classes.c{i}]\nx=1", n, "\n")),
        "one class of many keys": behind(
            lambda n: "[classes.zz]\n" + _joined(lambda i: f"k{i}=1", n, "\n")
        ),
        "49,000 keys": behind(
            lambda n: "[zz]\n" + _joined(lambda i: f"k{i}=1", min(n, 450_000), "\n")
        ),
        "deep lists": with_(lambda n: "x = " + "[" * n),
        "deep tables": with_(lambda n: "x = " + "{a=" * (n // 3)),
        "a wide list": with_(lambda n: "seeds = [" + _joined(lambda _: "0", n) + "]"),
        "a wide list of pages": with_(
            lambda n: "pages = [" + _joined(lambda i: f"'p{i}'", n) + "]"
        ),
        "a wide list of schemes": with_(
            lambda n: "schemes = [" + _joined(lambda i: f"'s{i}'", n) + "]"
        ),
        "a list of lists": with_(lambda n: "x = [" + _joined(lambda _: "[]", n) + "]"),
        "a list of tables": with_(lambda n: "x = [" + _joined(lambda _: "{}", n) + "]"),
        "a long text": with_(lambda n: f'title = "{"x" * n}"'),
        "a long name": with_(lambda n: f'name = "{"x" * n}"'),
        "a text of several lines": with_(lambda n: '"""'.join(("title = ", '"a' * (n // 2), ""))),
        "quotes": with_(lambda n: "title = " + '"' * n),
        "single quotes": with_(lambda n: "title = " + "'" * n),
        "escapes": with_(lambda n: 'title = "' + "\\u0041" * (n // 6) + '"'),
        "backslashes": with_(lambda n: 'title = "' + "\\" * n),
        "a comment": with_(lambda n: "#" * n),
        "spaces": with_(lambda n: "x = " + " " * n + "1"),
        "lines": with_(lambda n: "\n" * n),
        "a long number": with_(lambda n: f"rtt_ms = {'9' * n}"),
        "a long hexadecimal number": with_(lambda n: f"rtt_ms = 0x{'f' * n}"),
        "a long fraction": with_(lambda n: f"rtt_ms = 0.{'9' * n}"),
        "underscores": with_(lambda n: f"rtt_ms = {'1_' * (n // 2)}1"),
        "a huge exponent": with_(lambda _: "rtt_ms = 1e999999999"),
        "dates": with_(lambda n: "x = [" + _joined(lambda _: "1979-05-27", n) + "]"),
        "axes": behind(
            lambda n: (
                "[axes]\nloss = ["
                + _joined(lambda i: f"0.{i:07}", n // 2)
                + "]\nrtt_ms = ["
                + _joined(lambda i: f"{i}", n // 2)
                + "]"
            )
        ),
        "many axes": behind(lambda n: "[axes]\n" + _joined(lambda i: f"k{i}=[1,2]", n, "\n")),
    }


_TRACE = {
    "huge numbers": _text(lambda n: _joined(lambda _: _HUGE, n, "\n")),
    "a long number": _text(lambda n: "9" * n),
    "one instant": _text(lambda n: _joined(lambda _: "5", n, "\n")),
    "rising": _text(lambda n: _joined(str, n, "\n")),
    "falling": _text(lambda n: _joined(lambda i: str(10**7 - i), n, "\n")),
    "no numbers": _text(lambda n: _joined(lambda i: f"x{i}", n, "\n")),
    "lines": _text(lambda n: "\n" * n),
    "spaces": _text(lambda n: " " * n),
    "NULs": _text(lambda n: "\0" * n),
}

# Recordings


def _har_entry(number: int, url: str, **more: Any) -> dict[str, Any]:
    entry: dict[str, Any] = json.loads(json.dumps(_first_entry()))
    entry["request"]["url"] = url
    entry.update(more)
    return entry


@cache
def _first_entry() -> Any:
    name = next(name for name in SAMPLES if name.startswith("har"))
    return json.loads(json.dumps(SAMPLES[name]))["log"]["entries"][0]


@cache
def _har() -> Any:
    name = next(name for name in SAMPLES if name.startswith("har"))
    return json.loads(json.dumps(SAMPLES[name]))


def _markup(text: str) -> dict[str, Any]:
    return {"response": {**_first_entry()["response"], "content": {
        "size": len(text), "mimeType": "text/html", "text": text}}}  # fmt: skip


def _har_of(text: Callable[[int], str]) -> Callable[[int], bytes]:
    """Return a maker of a HAR whose document is hostile markup."""

    def make(n_bytes: int) -> bytes:
        document = json.loads(json.dumps(_har()))
        document["log"]["entries"] = [
            _har_entry(0, "https://shop.example/", **_markup(text(n_bytes))),
            _har_entry(1, "https://shop.example/a.png"),
        ]
        return json.dumps(document).encode()

    return make


_SITE = "https://shop.example"
_HAR_ENTRIES: dict[str, Callable[[int, int], Any]] = {
    "one address": lambda i, n: _har_entry(i, f"{_SITE}/"),
    "many addresses": lambda i, n: _har_entry(i, f"{_SITE}/{i}"),
    "many hosts": lambda i, n: _har_entry(i, f"https://h{i}.example/"),
    "redirects": lambda i, n: _har_entry(
        i,
        f"{_SITE}/{i}",
        response={
            **_first_entry()["response"],
            "status": 302,
            "redirectURL": f"{_SITE}/{i + 1}",
        },
    ),
    "one redirect": lambda i, n: _har_entry(
        i, f"{_SITE}/", response={**_first_entry()["response"], "status": 302, "redirectURL": "/"}
    ),
    "initiators in a chain": lambda i, n: _har_entry(
        i, f"{_SITE}/{i}", _initiator={"type": "script", "url": f"{_SITE}/{i - 1}"}
    ),
    "initiators in a circle": lambda i, n: _har_entry(
        i, f"{_SITE}/{i}", _initiator={"type": "script", "url": f"{_SITE}/{(i + 1) % n}"}
    ),
    "long queries": lambda i, n: _har_entry(i, f"{_SITE}/{i}?" + "a=b&" * 500),
    "long paths": lambda i, n: _har_entry(i, f"{_SITE}/{i}" + "/../a" * 500),
    "referers": lambda i, n: _har_entry(
        i,
        f"{_SITE}/{i}",
        request={
            **_first_entry()["request"],
            "url": f"{_SITE}/{i}",
            "headers": [{"name": "Referer", "value": f"{_SITE}/{i - 1}"}],
        },
    ),
    "wrong entries": lambda i, n: {"request": i},
    "texts": lambda i, n: "x",
}

_HTML: dict[str, Callable[[int], str]] = {
    "deep elements": lambda n: "<div>" * (n // 5),
    "deep inline elements": lambda n: "<b>" * (n // 3),
    "open tags": lambda n: "<" * n,
    "open attributes": lambda n: "<p " + "a=" * (n // 2),
    "many attributes": lambda n: "<p " + _joined(lambda i: f"a{i}=1", n, " ") + ">",
    "open comments": lambda n: "<!--" * (n // 4),
    "open scripts": lambda n: "<script>" * (n // 8),
    "open titles": lambda n: "<title><" + "</titl" * (n // 6),
    "quotes": lambda n: "<p a='" + "'" * n,
    "entities": lambda n: "<img src='" + "&amp;" * (n // 5) + "'>",
    "images": lambda n: _joined(lambda i: f"<img src={i}.png>", n, ""),
    "one image": lambda n: "<img src=a.png>" * (n // 15),
    "lazy images": lambda n: _joined(lambda i: f"<img loading=lazy src={i}>", n, ""),
    "one srcset": lambda n: "<img srcset='" + _joined(lambda i: f"{i}.png {i + 1}w", n) + "'>",
    "commas in srcset": lambda n: "<img srcset='" + "," * n + "'>",
    "parentheses in sizes": lambda n: "<img srcset='a 1w' sizes='" + "(" * n + "'>",
    "pictures": lambda n: "<picture><source media='(min-width:1px)' srcset=a>" * (n // 50),
    "media": lambda n: "<link rel=stylesheet href=a media='" + "not all and " * (n // 12) + "'>",
    "parentheses in media": lambda n: "<link rel=stylesheet href=a media='" + "(" * n + "'>",
    "bases": lambda n: "<base href=a/>" * (n // 14) + "<img src=b>",
    "dots in paths": lambda n: "<img src='" + "../" * (n // 3) + "a'>",
    "stylesheets": lambda n: "<style>p{background:url(a)}</style>" * (n // 35),
    "style attributes": lambda n: _joined(lambda i: f"<p style='background:url({i})'>", n, ""),
    "many classes": lambda n: "<p class='" + _joined(lambda i: f"c{i}", n, " ") + "'>",
    "frames": lambda n: _joined(lambda i: f"<iframe src={i}.html></iframe>", n, ""),
    "NULs": lambda n: "<p>" + "\0" * n,
}
_CSS: dict[str, Callable[[int], str]] = {
    "deep blocks": lambda n: "a{" * (n // 2),
    "deep media": lambda n: "@media all{" * (n // 11),
    "parentheses": lambda n: "(" * n,
    "open urls": lambda n: "a{b:url(" * (n // 8),
    "open comments": lambda n: "/*" * (n // 2),
    "quotes": lambda n: "'" * n,
    "backslashes": lambda n: "\\" * n,
    "imports": lambda n: _joined(lambda i: f"@import '{i}.css';", n, ""),
    "imports of itself": lambda n: "@import 'a.css';" * (n // 16),
    "one long selector": lambda n: _joined(lambda i: f".c{i}", n) + "{background:url(a)}",
    "a deep selector": lambda n: "p " * (n // 2) + "{background:url(a)}",
    "a selector of not": lambda n: (
        ":not(" * (n // 5) + "p" + ")" * (n // 5) + "{background:url(a)}"
    ),
    "a selector of has": lambda n: (
        _joined(lambda i: f":has(p ~ p:nth-child({i}n))", n, "") + "{background:url(a)}"
    ),
    "selectors": lambda n: _joined(lambda i: f"p:nth-child({i}) b{{background:url(a)}}", n, ""),
    "sibling selectors": lambda n: _joined(lambda i: f"p~p~p~p~p~b{i}{{background:url(a)}}", n, ""),
    "attribute selectors": lambda n: _joined(lambda i: f"[a{i}*=b]{{background:url(a)}}", n, ""),
    "faces": lambda n: (
        _joined(lambda i: f"@font-face{{font-family:f;src:url({i})}}", n, "") + "p{font-family:f}"
    ),
    "faces of many families": lambda n: _joined(
        lambda i: f"@font-face{{font-family:f{i};src:url({i})}}p{{font-family:f{i}}}", n, ""
    ),
    "faces of many weights": lambda n: (
        _joined(
            lambda i: f"@font-face{{font-family:f;font-weight:{i % 1000};src:url({i})}}", n // 2, ""
        )
        + _joined(lambda i: f"p{{font-family:f;font-weight:{i % 1000}}}", n // 2, "")
    ),
    "unicode ranges": lambda n: (
        "@font-face{font-family:f;src:url(a);unicode-range:"
        + _joined(lambda i: f"U+{i:x}", n)
        + "}p{font-family:f}"
    ),
    "many sources": lambda n: (
        "@font-face{font-family:f;src:" + _joined(lambda i: f"url({i})", n) + "}p{font-family:f}"
    ),
    "a long family": lambda n: "p{font-family:" + _joined(lambda i: f"f{i}", n) + "}",
    "urls": lambda n: "p{background:" + _joined(lambda i: f"url({i})", n) + "}",
    "image sets": lambda n: "p{background:" + "image-set(" * (n // 10) + "}",
    "at rules": lambda n: "@x;" * (n // 3),
}
_BODY = "<p class=a>text<b>bold</b>" * 2000


def _site(css: Callable[[int], str], body: str) -> Callable[[int], bytes]:
    return lambda n: f"<!doctype html><style>{css(n - len(body))}</style>{body}".encode()


_SITE_FILES = {
    **{f"HTML: {name}": _text(make) for name, make in _HTML.items()},
    **{f"CSS: {name}": _site(make, "<p>text") for name, make in _CSS.items()},
    **{f"CSS over 4,000 elements: {name}": _site(make, _BODY) for name, make in _CSS.items()},
}


def _of_sample(name: str, *paths: tuple[str | int, ...]) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for path in paths:
        made |= _within(lambda: SAMPLES[name], *path)
    return made


def _lists_of(name: str) -> dict[str, Callable[[int], bytes]]:
    """Return makers that repeat the first entry of each list of a sample, as it is and renamed."""
    made: dict[str, Callable[[int], bytes]] = {}
    for path in _paths(SAMPLES[name]):
        made |= _repeating(name, path)
    return made


def _paths(value: Any, path: tuple[Any, ...] = ()) -> Iterable[tuple[Any, ...]]:
    """Yield where lists with something in them are, at most three keys deep."""
    if isinstance(value, list) and value:
        yield path
    if isinstance(value, dict | list) and len(path) < 3:
        for key, inner in list(value.items() if isinstance(value, dict) else enumerate(value))[:6]:
            yield from _paths(inner, (*path, key))


def _repeating(name: str, path: tuple[Any, ...]) -> dict[str, Callable[[int], bytes]]:
    def make(n_bytes: int, *, is_renamed: bool) -> bytes:
        document = json.loads(json.dumps({"_": SAMPLES[name]}))
        inner = document
        *before, last = ("_", *path)
        for key in before:
            inner = inner[key]
        entry = json.dumps(inner[last][-1])
        n_entries = n_bytes // (len(entry) + 8)
        for number in range(n_entries):
            made = (
                entry.replace("shop.example/", f"shop.example/{number}/") if is_renamed else entry
            )
            inner[last].append(json.loads(made))
        return json.dumps(document["_"]).encode()

    at = ".".join(map(str, path)) or "all"
    return {
        f"{at}: one entry often": partial(make, is_renamed=False),
        f"{at}: many entries": partial(make, is_renamed=True),
    }


# Traces

_TRACES: dict[str, Callable[[int], dict[str, Any]]] = {
    "nested tasks": lambda i: {"ph": "X", "name": "EvaluateScript", "ts": i, "dur": 1e9 - 2 * i},
    "tasks at once": lambda i: {"ph": "X", "name": "FunctionCall", "ts": 5, "dur": i},
    "requests in tasks": lambda i: {
        "ph": "X", "name": "FunctionCall", "ts": i, "dur": 9, "args": {"data": {"url": f"{i}"}},
    } if i % 2 else {"name": "ResourceSendRequest", "ts": i, "args": {"data": {
        "requestId": f"{i}", "url": f"https://shop.example/{i}"}}},
    "one request id": lambda i: {"name": "ResourceSendRequest", "ts": i, "args": {"data": {
        "requestId": "1", "url": f"https://shop.example/{i}"}}},
    "navigations": lambda i: {"name": "navigationStart", "ts": i, "args": {"frame": "F"}},
    "images": lambda i: {"name": "PaintTimingVisualizer::LayoutObjectPainted", "ts": i, "args": {
        "data": {"image_url": f"a{i}", "rect": [0, 0, i, 0, i, i, 0, i]}}},
    "huge times": lambda i: {"name": "ResourceSendRequest", "ts": 1e308 * i, "args": {"data": {
        "requestId": f"{i}", "url": f"https://shop.example/{i}"}}},
    "threads": lambda i: {"ph": "X", "name": "v8.compile", "pid": i, "tid": i, "ts": i, "dur": 1},
}  # fmt: skip


def _traced(event: Callable[[int], dict[str, Any]]) -> Callable[[int], bytes]:
    def make(n_bytes: int) -> bytes:
        load = SAMPLES["chrome-trace"]["traceEvents"]
        n_events = n_bytes // (len(json.dumps(event(1000))) + 2)
        return json.dumps([*load, *map(event, range(n_events))]).encode()

    return make


_NET_LOGS: dict[str, Callable[[int], dict[str, Any]]] = {
    "requests": lambda i: net_event("URL_REQUEST_START_JOB", i, i, 1, url=f"{SITE}/{i}"),
    "redirects of one": lambda i: net_event(
        "URL_REQUEST_START_JOB" if i % 2 else "URL_REQUEST_REDIRECTED", i, 1, i % 2, url=SITE
    ),
    "DATA frames": lambda i: net_event("HTTP2_STREAM_UPDATE_RECV_WINDOW", i, 1, delta=-i),
    "huge frames": lambda i: net_event("HTTP2_STREAM_UPDATE_RECV_WINDOW", i, 1, delta=-1e308),
    "huge numbers": lambda i: net_event("HTTP3_DATA_FRAME_RECEIVED", i, 1, stream_id=1e308 * i),
    "priorities": lambda i: net_event("URL_REQUEST_SET_PRIORITY", i, 1, priority="LOW"),
    "fields": lambda i: net_event(
        "HTTP_TRANSACTION_READ_RESPONSE_HEADERS", i, 1, headers=[f"x{i}: 1"] * 50
    ),
    "sockets": lambda i: net_event("TCP_CONNECT", i, i, 1, remote_address="[" * 50),
    "pages": lambda i: net_event(
        "URL_REQUEST_START_JOB", i, i, 1, url=f"{SITE}/{i}", request_type="main frame"
    ),
    "huge times": lambda i: net_event("REQUEST_ALIVE", 10**300, i, 1),
}


def _logged(event: Callable[[int], dict[str, Any]]) -> Callable[[int], bytes]:
    def make(n_bytes: int) -> bytes:
        log = SAMPLES["net-log"]
        # The request stays open, so that the events are about it.
        open_events = [each for each in log["events"] if each["source"]["id"] == 1][:-1]
        n_events = n_bytes // (len(json.dumps(event(1000))) + 2)
        return json.dumps(log | {"events": [*open_events, *map(event, range(n_events))]}).encode()

    return make


def _chains(n_bytes: int) -> str:
    depth = min(n_bytes // 40, 900)
    chains = '{"1":{"url":"https://a/","children":' * depth + "{}" + "}}" * depth
    tree = (
        f'{{"network-dependency-tree-insight":{{"details":{{"items":[{{"value":{{"chains":{chains}'
    )
    return f'{{"lighthouseVersion":"13","audits":{tree}}}}}]}}}}}}}}'


_ARCHIVES: dict[str, Callable[[int], str]] = {
    "pages": lambda i: archive_lines(entry("/", i, 9), page=f"https://{i}.example/"),
    "one page": lambda i: archive_lines(entry(f"/{i}", i, 9)),
    "long names": lambda i: archive_lines(entry("/", i, 9), page=f"https://a/{i}" + "x" * 5000),
    "no payload": lambda i: json.dumps({"payload": None, "page": i}) + "\n",
    "deep payloads": lambda i: json.dumps({"payload": "[" * 500, "page": i}) + "\n",
    "half a character": lambda i: '{"payload": {}, "page": "\\ud800"}\n',
}


def _archived(row: Callable[[int], str]) -> Callable[[int], bytes]:
    return _text(lambda n: "".join(map(row, range(max(1, n // len(row(1000)))))))


# Logs


def _log(events: Callable[[int], Iterable[Any]]) -> Callable[[int], bytes]:
    def make(n_bytes: int) -> bytes:
        trace = {
            "vantage_point": {"type": "client"},
            "common_fields": {"time_format": "relative", "reference_time": 0},
            "events": list(events(n_bytes)),
        }
        return json.dumps({"qlog_version": "0.3", "traces": [trace]}).encode()

    return make


def _packet(number: int, *frames: Any, what: str = "received") -> dict[str, Any]:
    header = {"packet_type": "1RTT", "packet_number": number}
    data = {"header": header, "frames": list(frames)}
    return {"time": number, "name": f"transport:packet_{what}", "data": data}


def _frame(stream_id: int, offset: int, length: int, **more: Any) -> dict[str, Any]:
    fields = {"frame_type": "stream", "stream_id": stream_id, "offset": offset, "length": length}
    return {**fields, **more}


_EVENT_BYTES = 230
_QLOG_EVENTS: dict[str, Callable[[int], Iterable[Any]]] = {
    "many streams": lambda n: (_packet(i, _frame(4 * i, 0, 9, fin=True)) for i in _times(n)),
    "one byte each": lambda n: (_packet(i, _frame(0, i, 1)) for i in _times(n)),
    "backwards": lambda n: (_packet(i, _frame(0, _most(n) - i, 1)) for i in _times(n)),
    "with holes": lambda n: (_packet(i, _frame(0, 2 * i, 1)) for i in _times(n)),
    "overlaps": lambda n: (_packet(i, _frame(0, i, 1000)) for i in _times(n)),
    "one frame again": lambda n: (_packet(i, _frame(0, 0, 9, fin=True)) for i in _times(n)),
    "one packet": lambda n: [_packet(0, *(_frame(4 * i, 0, 9, fin=True) for i in range(n // 75)))],
    "huge offsets": lambda n: (_packet(i, _frame(0, 2**61 + i, 1)) for i in _times(n)),
    "huge numbers of packets": lambda n: (
        _packet(2**40 * i, _frame(0, 0, 9, fin=True)) for i in _times(n)
    ),
    "huge lengths": lambda n: (_packet(i, _frame(4 * i, 0, 2**61, fin=True)) for i in _times(n)),
    "huge streams": lambda n: (_packet(i, _frame(2**60, i, 1)) for i in _times(n)),
    "huge acknowledgements": lambda n: [
        _packet(0, _frame(0, 0, 9, fin=True)),
        *(
            _packet(i, {"frame_type": "ack", "acked_ranges": [[0, 2**60]]}, what="sent")
            for i in _times(n)
        ),
    ],
    "acknowledgements with holes": lambda n: [
        _packet(0, _frame(0, 0, 9, fin=True)),
        _packet(
            1,
            {"frame_type": "ack", "acked_ranges": [[2 * i, 2 * i] for i in range(n // 20)]},
            what="sent",
        ),
    ],
    "no names": lambda n: ({"time": i} for i in _times(n)),
    "texts": lambda n: ("x" for _ in range(n // 5)),
}


def _most(n_bytes: int) -> int:
    return n_bytes // _EVENT_BYTES


def _times(n_bytes: int) -> range:
    return range(_most(n_bytes))


def _sequence(n_bytes: int) -> bytes:
    head = {"qlog_version": "0.3", "qlog_format": "JSON-SEQ", "trace": {}}
    events = _QLOG_EVENTS["with holes"](n_bytes)
    return "".join(f"\x1e{json.dumps(each)}\n" for each in (head, *events)).encode()


_QLOG = {
    **_JSON,
    **{f"events: {name}": _log(events) for name, events in _QLOG_EVENTS.items()},
    "a sequence": _sequence,
    "a sequence of nothing": lambda n: b"\x1e" * n,
    "a sequence of brackets": lambda n: b"\x1e" + b"[" * n,
    "a gzip bomb": _bomb(b'{"qlog_version": "0.3", "traces": [', b'{"events":[]},'),
    "a gzip bomb of spaces": _bomb(b"", b" " * 1000),
    "a gzip bomb of a sequence": _bomb(b'\x1e{"qlog_version":"0.3"}\n', b'\x1e{"time":1}\n'),
    "many traces": _text(lambda n: '{"traces":[' + _joined(lambda _: "{}", n) + "]}"),
    "gzip within gzip": lambda n: gzip.compress(gzip.compress(b" " * n)),
}

# Header lists

_QIF = {
    "one list": _text(lambda n: _joined(lambda i: f"name{i}\tvalue", n, "\n")),
    "many lists": _text(lambda n: _joined(lambda _: ":method\tGET\n", n, "\n")),
    "a long value": _text(lambda n: f"x\t{'v' * n}\n"),
    "a long name": _text(lambda n: f"{'v' * n}\tx\n"),
    "no tabs": _text(lambda n: _joined(lambda i: f"x{i}", n, "\n")),
    "times": _text(lambda n: _joined(lambda i: f"# at_ms {i}\n:method\tGET\n", n, "\n")),
    "huge times": _text(lambda n: _joined(lambda _: f"# at_ms {_HUGE}\n:method\tGET\n", n, "\n")),
    "tabs": _text(lambda n: "\t" * n),
    "lines": _text(lambda n: "\n" * n),
}

# Loads and results


def _saved() -> Any:
    return _sample("saved load")


_SAVED = {
    **_JSON,
    **_within(_saved, "inputs", "page", "resources"),
    **_within(_saved, "inputs", "scheme"),
    **_within(_saved, "inputs", "scheme", "classes"),
    **_within(_saved, "inputs", "scheme", "rules"),
    **_within(_saved, "inputs", "network"),
    **_within(_saved, "configuration"),
    **_within(_saved, "seed"),
    **_within(_saved, "resources"),
    **_lists(_saved, "inputs", "page", "resources", make=_PAGES),
}


@cache
def _rows() -> list[str]:
    return next(iter(READERS["saved rows"].samples())).decode().splitlines()


_ROWS = {
    **_JSON,
    "one row often": lambda n: "\n".join(
        [_rows()[0], *[_rows()[1]] * (n // len(_rows()[1]))]
    ).encode(),
    "bare rows": lambda n: "\n".join([_rows()[0], *["{}"] * (n // 3)]).encode(),
    "a wide row": lambda n: f"{_rows()[0]}\n{_wide(n)}".encode(),
    "a deep row": lambda n: f"{_rows()[0]}\n{'[' * n}".encode(),
}

# Stores: rows that the digests are right of, and schemas that are not a store's


def _store(make: Callable[[sqlite3.Connection, int], object]) -> Callable[[int], bytes]:
    """Return a maker of a store into which *make* puts what is hostile."""

    def of(n_bytes: int) -> bytes:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "study.db"
            path.write_bytes(next(iter(READERS["store of studies"].samples())))
            database = sqlite3.connect(path, isolation_level=None)
            database.execute("PRAGMA journal_mode = DELETE")
            database.execute("BEGIN")
            make(database, n_bytes)
            database.execute("COMMIT")
            database.close()
            return path.read_bytes()

    return of


def _cells(row: Callable[[int], str], n_cells: Callable[[int], int]) -> Callable[[int], bytes]:
    """Return a maker of a store with that many more cells in its study, whose rows are `row(n)`."""

    def make(database: sqlite3.Connection, n_bytes: int) -> None:
        number = n_cells(n_bytes)
        for n in range(number):
            key, text = f"{n:016}".encode(), pack(row(n_bytes // number))
            digest = digest_of(key, b"m", text, None, None, 1.0)
            cell = (key, "m", text, None, None, 1.0, digest)
            database.execute("INSERT INTO cells VALUES (?, ?, ?, ?, ?, ?, ?)", cell)
            position = (1, 1000 + n, key)
            database.execute(
                "INSERT INTO study_cells VALUES (?, ?, ?, ?)", (*position, digest_of(*position))
            )

    return _store(make)


def _statement(sql: str) -> Callable[[int], bytes]:
    return _store(lambda database, _: database.execute(sql))


def _instead_of_cells(sql: str) -> Callable[[int], bytes]:
    def make(database: sqlite3.Connection, _: int) -> None:
        database.execute("DROP TABLE cells")
        database.execute(f"CREATE VIEW cells AS {sql}")

    return _store(make)


def _studies(database: sqlite3.Connection, n_bytes: int) -> None:
    for n in range(2, n_bytes // 60):
        values = (n, f"token{n}".encode(), b"x", 1, b"[]")
        texts = [value.decode() if isinstance(value, bytes) else value for value in values]
        query = "INSERT INTO studies VALUES (?, ?, ?, ?, ?, ?)"
        database.execute(query, (*texts, digest_of(*values)))


def _places(database: sqlite3.Connection, n_bytes: int) -> None:
    for n in range(1000, 1000 + n_bytes // 50):
        position = (1, n, b"nowhere")
        database.execute(
            "INSERT INTO study_cells VALUES (?, ?, ?, ?)", (*position, digest_of(*position))
        )


def _endless(n_columns: int) -> str:
    columns = ", ".join(["x"] * n_columns)
    return (
        f"WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT {columns} FROM n"
    )


def _once(_: int) -> int:
    return 1


_STORE = {
    "a deep row": _cells(lambda n: "[" * n, _once),
    "a row of deep values": _cells(
        lambda n: '{"a":' + "[" * (n // 2) + "]" * (n // 2) + "}", _once
    ),
    "a wide row": _cells(_wide, _once),
    "a long text": _cells(lambda n: f'{{"page":"{"x" * n}"}}', _once),
    "a long number": _cells(lambda n: f'{{"seed":{"9" * n}}}', _once),
    "huge numbers": _cells(lambda _: f'{{"seed":{_HUGE}}}', lambda n: n // 5000),
    "many rows": _cells(lambda _: "{}", lambda n: n // 150),
    "many rows of other columns": _cells(lambda n: f'{{"k{n}":0}}', lambda n: n // 150),
    "many studies": _store(_studies),
    "many loads that did not run": _store(_places),
    "an endless view": _instead_of_cells(_endless(7)),
    "a view of views": _statement(
        "CREATE VIEW more AS " + " UNION ALL ".join(["SELECT * FROM cells"] * 400)
    ),
    "a trigger": _statement(
        "CREATE TRIGGER more AFTER INSERT ON cells BEGIN UPDATE cells SET row = '{}'; END"
    ),
    "a table of its own": _statement("CREATE TABLE more (x)"),
    "many tables": _store(
        lambda database, n: (
            [database.execute(f"CREATE TABLE t{i} (x)") for i in range(n // 4200)] and None
        )
    ),
    "an index": _statement("CREATE INDEX more ON cells (row)"),
    "no page but the first": lambda n: next(iter(READERS["store of studies"].samples()))[:4096],
    "zeros behind the first page": lambda n: (
        next(iter(READERS["store of studies"].samples()))[:4096] + bytes(n - 4096)
    ),
    "zeros": bytes,
    "only a head": lambda n: b"SQLite format 3\0" * (n // 16),
}

# Packages


_ENTRY_POINTS = {
    "many names": _text(
        lambda n: "[h3sim.schedulers]\n" + _joined(lambda i: f"a{i} = nowhere{i}:x", n, "\n")
    ),
    "one name": _text(lambda n: "[h3sim.schedulers]\n" + _joined(lambda _: "a = b:c", n, "\n")),
    "a long name": _text(lambda n: f"[h3sim.schedulers]\n{'x' * n} = b:c"),
    "a long module": _text(lambda n: f"[h3sim.schedulers]\nx = {'b.' * (n // 2)}b:c"),
    "a long attribute": _text(lambda n: f"[h3sim.schedulers]\nx = json:{'b.' * (n // 2)}b"),
    "spaces": _text(lambda n: f"[h3sim.schedulers]\nx = json {' ' * n}"),
    "extras": _text(lambda n: f"[h3sim.schedulers]\nx = json:loads [{'a,' * (n // 2)}]"),
    "groups": _text(lambda n: _joined(lambda i: f"[g{i}]\nx = b:c", n, "\n")),
    "brackets": _text(lambda n: "[" * n),
    "no values": _text(lambda n: "[h3sim.schedulers]\n" + "x\n" * (n // 2)),
    "NULs": _text(lambda n: "\0" * n),
}
_BYTES = {
    "right": _text(lambda n: "\0" * n),
    **{f"{byte}": partial(lambda byte, n: bytes([byte]) * n, byte) for byte in range(128, 151)},
    "in turns": lambda n: bytes(range(256)) * (n // 256),
}
"""What plug-ins answer, by byte (`tests.fuzz.plugged`)."""
_MARKS = {
    "many lines": _text(lambda n: _joined(lambda i: f"x{i}", n, "\n")),
    "one line often": _text(lambda n: _joined(lambda _: "/", n, "\n")),
    "a long line": _text(lambda n: "x" * n),
    "stars": _text(lambda n: "*" * n),
    "stars and letters": _text(lambda n: "*a" * (n // 2)),
    "lines of stars": _text(lambda n: _joined(lambda _: "*a" * 100 + "b", n, "\n")),
    "brackets": _text(lambda n: "[" * n),
    "a set": _text(lambda n: "[" + "a-z" * (n // 3) + "]"),
    "comments": _text(lambda n: "#" * n),
    "lines": _text(lambda n: "\n" * n),
}

_PRIORITY = {
    "members": _text(lambda n: _joined(lambda i: f"k{i}=1", n)),
    "parameters": _text(lambda n: "u=1" + ";a=1" * (n // 4)),
    "an inner list": _text(lambda n: "u=(" + "a " * (n // 2) + ")"),
    "an open inner list": _text(lambda n: "u=(" + "a " * (n // 2)),
    "quotes": _text(lambda n: 'u="' + '\\"' * (n // 2)),
    "an open text": _text(lambda n: 'u="' + "a" * n),
    "bytes": _text(lambda n: "u=:" + "a" * n),
    "digits": _text(lambda n: "u=" + "1" * n),
    "spaces": _text(lambda n: "u=1" + " " * n + ","),
    "commas": _text(lambda n: "," * n),
    "stars": _text(lambda n: "*" * n),
}

FILES: dict[str, dict[str, Any]] = {
    "page": _PAGE,
    "network": {**_tables("network")},
    "Mahimahi trace": _TRACE,
    "profile": _tables("profile"),
    "scheme": _tables("scheme"),
    "study": _tables("study"),
    "HAR": {
        **_JSON,
        **_lists(_har, "log", "entries", make=_HAR_ENTRIES),
        **_within(_har, "log", "entries"),
        **_within(_har, "log", "entries", 0, "request", "headers"),
        **_within(_har, "log", "entries", 0, "startedDateTime"),
        **{f"markup: {name}": _har_of(make) for name, make in _HTML.items()},
        "a gzip bomb": _bomb(b'{"log": {"entries": [', b'{"request": {}},'),
        "a gzip bomb of spaces": _bomb(b"", b" " * 1000),
        "a gzip bomb of text": _bomb(b'{"log": {"version": "', b"x" * 1000),
    },
    "findings": _tables("findings"),
    "study of headers": _tables("study of headers"),
    "list of marks": _MARKS,
    "stylesheet of a site": {name: _text(make) for name, make in _CSS.items()},
    "store of studies": _STORE,
    "entry points of a plug-in": _ENTRY_POINTS,
    "scheduler plug-in": _BYTES,
    "controller plug-in": _BYTES,
    "DevTools log": {**_JSON, **_lists_of("devtools-log")},
    "Chrome trace": {
        **_JSON,
        **_lists_of("chrome-trace"),
        **_of_sample("chrome-trace", ("traceEvents",), ("traceEvents", 3, "args", "data")),
        **{f"events: {name}": _traced(make) for name, make in _TRACES.items()},
        "a gzip bomb": _bomb(b'{"traceEvents": [', b'{"name": "FunctionCall", "ph": "X"},'),
    },
    "network log": {
        **_JSON,
        **_lists_of("net-log"),
        **_of_sample("net-log", ("events",), ("constants",), ("constants", "logEventTypes")),
        **{f"events: {name}": _logged(make) for name, make in _NET_LOGS.items()},
        "a gzip bomb": _bomb(b'{"constants": {}, "events": [', b'{"type": 7, "time": "1"},'),
    },
    "WebPageTest result": {
        **_JSON,
        **_lists_of("webpagetest"),
        **_of_sample("webpagetest", ("data",), ("data", "median", "firstView")),
    },
    "Lighthouse result": {
        **_JSON,
        **_lists_of("lighthouse"),
        **_of_sample("lighthouse", ("audits",), ("audits", "metrics")),
        "deep chains": _text(lambda n: _chains(n)),
    },
    "HTTP Archive": {
        **_JSON,
        **{name: _archived(make) for name, make in _ARCHIVES.items()},
    },
    "CrUX": {
        **_JSON,
        **_within(_crux, "record", "metrics", "round_trip_time", "histogram"),
        **_lists(_crux, "record", "metrics", "round_trip_time", "histogram", make=_CRUX_BINS),
        "many rows": _text(lambda n: _joined(_crux_row, n, "\n")),
    },
    "HTML and CSS": _SITE_FILES,
    "qlog": _QLOG,
    "header lists": _QIF,
    "header lists of a HAR": {
        **_JSON,
        **_lists(_har, "log", "entries", make=_HAR_ENTRIES),
        **_within(_har, "log", "entries", 0, "request", "headers"),
    },
    "saved load": _SAVED,
    "saved rows": _ROWS,
    "Priority field": _PRIORITY,
}
"""Makers by what they are meant to trouble, by reader of `tests.fuzz.readers`."""
