"""Reads page files (`h3sim-page/1`) and lists every mistake of a file with its place."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from h3sim.documents import is_quantity, listed, read_text
from h3sim.errors import PageError, Problem
from h3sim.page.model import Page
from h3sim.page.resource import (
    FLAGS,
    MAX_STREAM_BYTES,
    At,
    Discovery,
    FetchPriority,
    Kind,
    Resource,
)
from h3sim.units import ms

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from enum import Enum
    from pathlib import Path

__all__ = [
    "FORMAT",
    "RESOURCE_KEYS",
    "page_from_dict",
    "page_from_json",
    "read_page",
    "resource_from_dict",
    "schema",
]

FORMAT = "h3sim-page/1"
_PAGE_KEYS = ("format", "name", "url", "provenance", "resources")
_DISCOVERED_KEYS = ("by", "at", "offset_bytes", "delay_ms")
_BAD = object()
"""What a reader returns for a value that it has reported."""


def read_page(path: str | Path) -> Page:
    """Return the page that the file at *path* describes.

    Raises:
        PageError: if the file cannot be read, or listing every mistake in it.
    """
    return page_from_json(read_text(path, PageError), source=str(path))


def page_from_json(text: str, *, source: str = "page") -> Page:
    """Return the page that *text*, a page file, describes.

    Raises:
        PageError: listing every mistake in it.
    """
    try:
        document = json.loads(text, object_pairs_hook=_Object)
    except json.JSONDecodeError as error:
        message = f"is not JSON: {error.msg} at line {error.lineno}, column {error.colno}"
        raise PageError([_problem("", message)], source) from error
    except RecursionError as error:
        raise PageError([_problem("", "is nested too deeply")], source) from error
    except ValueError as error:
        message = f"is not JSON that a page file may hold: {error}"
        raise PageError([_problem("", message)], source) from error
    return page_from_dict(document, source=source)


def page_from_dict(document: object, *, source: str = "page") -> Page:
    """Return the page that *document*, a parsed page file, describes.

    Raises:
        PageError: listing every mistake in it.

    >>> page_from_dict({"format": "h3sim-page/1", "name": "x", "resources": [{"id": "/"}]})
    Traceback (most recent call last):
    ...
    h3sim.errors.PageError: page: resources[0].kind: is missing
    page: resources[0].bytes: is missing
    """
    reader = _Reader()
    page = reader.page(document)
    if page is None or reader.problems:
        raise PageError(reader.problems, source)
    return page


def resource_from_dict(entry: dict[str, Any], *, source: str) -> Resource:
    """Return the resource that *entry*, of a page file, describes.

    Raises:
        PageError: listing every mistake in it.
    """
    reader = _Reader()
    resource = reader.resource("", entry)
    if reader.problems:
        raise PageError(reader.problems, source)
    return resource


def schema() -> dict[str, Any]:
    """Return the published JSON Schema of a page file.

    >>> schema()["properties"]["format"]
    {'const': 'h3sim-page/1'}
    """
    from importlib.resources import files  # on use: importing h3sim should stay quick

    text = files("h3sim.page").joinpath("h3sim-page-1.schema.json").read_text(encoding="utf-8")
    document: dict[str, Any] = json.loads(text)
    return document


class _Object(dict[str, object]):
    """A JSON object that remembers which keys stood in it twice."""

    def __init__(self, pairs: Iterable[tuple[str, object]]) -> None:
        super().__init__()
        self.twice: list[str] = []
        for key, value in pairs:
            if key in self:
                self.twice.append(key)
            self[key] = value


def _join(key: str, name: str) -> str:
    return f"{key}.{name}" if key else name


def _problem(key: str, message: str) -> Problem:
    return Problem(key=key, message=message)


def _only_parent(discovery: Discovery | None) -> Discovery | None:
    """Return what a wrong *discovery* still says of its parent: who it is, and where in it."""
    if discovery is None:
        return None
    if discovery.at is At.TIME or discovery.by is None:
        return _LATE
    if discovery.at is At.OFFSET and (discovery.offset_bytes or -1) >= 0:
        return Discovery(at=At.OFFSET, by=discovery.by, offset_bytes=discovery.offset_bytes)
    return Discovery(at=At.COMPLETE, by=discovery.by)


def _said(value: object) -> str:
    """Return how a wrong value is shown: as JSON, cut where it is long."""
    if value is _BAD:
        return "nothing"
    try:
        text = json.dumps(value, default=str)
    except (RecursionError, ValueError):
        text = "too much to show"
    return text if len(text) <= 40 else f"{text[:37]}..."


class _Reader:
    """Turns a document into a page and collects the mistakes instead of stopping at the first."""

    def __init__(self) -> None:
        self.problems: list[Problem] = []

    def page(self, document: object) -> Page | None:
        if not isinstance(document, dict):
            self._report("", f"must be an object, is {_said(document)}")
            return None
        if document.get("format") != FORMAT:
            given = _said(document.get("format", _BAD))
            self._report("format", f"must be {FORMAT!r}, is {given}")
        self._keys("", document, _PAGE_KEYS)
        name = self._text("", document, "name", required=True)
        url = self._text("", document, "url")
        provenance = self._provenance(document.get("provenance", {}))
        entries = document.get("resources", [])
        if not isinstance(entries, list):
            self._report("resources", f"must be a list, is {_said(entries)}")
            return None
        resources = [self.resource(f"resources[{i}]", entry) for i, entry in enumerate(entries)]
        try:
            return Page(name=name, url=url, provenance=provenance, resources=tuple(resources))
        except PageError as error:
            told = {problem.key for problem in self.problems}
            self.problems += [problem for problem in error.problems if problem.key not in told]
            return None

    def resource(self, key: str, entry: object) -> Resource:
        # Where a value cannot be read, this stands in, so that the rest can still be checked.
        stand_in = Resource(
            id=f"({key})", kind=Kind.OTHER, size_bytes=MAX_STREAM_BYTES, discovered=_LATE
        )
        if not isinstance(entry, dict):
            self._report(key, f"must be an object, is {_said(entry)}")
            return stand_in
        self._keys(key, entry, RESOURCE_KEYS)
        values: dict[str, Any] = {}
        for name in ("id", "kind", "bytes"):
            if name not in entry:
                self._report(_join(key, name), "is missing")
        for name, (attribute, read) in _FIELDS.items():
            if name in entry:
                value = read(self, _join(key, name), entry[name])
                if value is not _BAD:
                    values[attribute] = value
        if "discovered" in entry:
            values["discovered"] = self._discovered(_join(key, "discovered"), entry["discovered"])
        return self._checked(key, stand_in, values)

    def _checked(self, key: str, stand_in: Resource, values: dict[str, Any]) -> Resource:
        values.setdefault("discovered", None)
        try:
            return replace(stand_in, **values)
        except PageError as error:
            for problem in error.problems:
                self._report(_join(key, problem.key), problem.message)
            return replace(
                stand_in,
                id=values.get("id") or stand_in.id,
                discovered=_only_parent(values["discovered"]),
            )

    def _discovered(self, key: str, entry: object) -> Discovery:
        if not isinstance(entry, dict):
            self._report(key, f"must be an object, is {_said(entry)}")
            return _LATE
        self._keys(key, entry, _DISCOVERED_KEYS)
        if "at" not in entry:
            self._report(f"{key}.at", "is missing")
        values: dict[str, Any] = {"at": At.COMPLETE}
        for name, attribute, read in (
            ("at", "at", _choice(At)),
            ("by", "by", _text),
            ("offset_bytes", "offset_bytes", _whole),
            ("delay_ms", "delay_ns", _milliseconds),
        ):
            if name in entry:
                values[attribute] = read(self, f"{key}.{name}", entry[name])
        if _BAD in values.values():
            by = values.get("by")
            return Discovery(at=At.COMPLETE, by=by) if isinstance(by, str) else _LATE
        return Discovery(**values)

    def _provenance(self, entry: object) -> dict[str, str]:
        if not isinstance(entry, dict):
            self._report("provenance", f"must be an object, is {_said(entry)}")
            return {}
        wrong = [name for name, value in entry.items() if not isinstance(value, str)]
        for name in wrong:
            self._report(f"provenance.{name}", f"must be text, is {_said(entry[name])}")
        return {name: value for name, value in entry.items() if name not in wrong}

    def _text(
        self, key: str, entry: dict[str, object], name: str, *, required: bool = False
    ) -> str:
        if name not in entry:
            if required:
                self._report(f"{key}{name}", "is missing")
            return ""
        value = _text(self, f"{key}{name}", entry[name])
        return value if isinstance(value, str) else ""

    def _keys(self, key: str, entry: dict[str, object], known: Iterable[str]) -> None:
        for name in getattr(entry, "twice", ()):
            self._report(_join(key, name), "stands twice in one object")
        for name in entry:
            if name not in known:
                self._report(_join(key, name), f"unknown key; allowed are {listed(known)}")

    def _report(self, key: str, message: str) -> None:
        self.problems.append(_problem(key, message))

    def wrong(self, key: str, wanted: str, value: object) -> object:
        """Report a value that is not what is *wanted*, and return _BAD in its place."""
        self._report(key, f"must be {wanted}, is {_said(value)}")
        return _BAD


def _text(reader: _Reader, key: str, value: object) -> object:
    if not isinstance(value, str):
        return reader.wrong(key, "text", value)
    if any("\ud800" <= character <= "\udfff" for character in value):
        return reader.wrong(key, "whole characters, not halves of them (surrogates)", value)
    return value


def _whole(reader: _Reader, key: str, value: object) -> object:
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        return reader.wrong(key, "a whole number", value)
    return value


def _number(reader: _Reader, key: str, value: object) -> object:
    return value if is_quantity(value) else reader.wrong(key, "a finite number", value)


def _milliseconds(reader: _Reader, key: str, value: object) -> object:
    number = _number(reader, key, value)
    return ms(number) if isinstance(number, (int, float)) else number


def _flag(reader: _Reader, key: str, value: object) -> object:
    return value if isinstance(value, bool) else reader.wrong(key, "true or false", value)


def _offsets(reader: _Reader, key: str, value: object) -> object:
    if not isinstance(value, list):
        return reader.wrong(key, "a list of whole numbers", value)
    offsets = [_whole(reader, f"{key}[{place}]", item) for place, item in enumerate(value)]
    return _BAD if _BAD in offsets else tuple(offsets)


def _choice(options: type[Enum]) -> Callable[[_Reader, str, object], object]:
    names = {option.value: option for option in options}

    def read(reader: _Reader, key: str, value: object) -> object:
        if isinstance(value, str) and value in names:
            return names[value]
        return reader.wrong(key, f"one of {', '.join(names)}", value)

    return read


_LATE = Discovery(at=At.TIME)
_FIELDS: dict[str, tuple[str, Callable[[_Reader, str, object], object]]] = {
    "id": ("id", _text),
    "kind": ("kind", _choice(Kind)),
    "mime": ("mime", _text),
    "bytes": ("size_bytes", _whole),
    "header_bytes": ("header_bytes", _whole),
    "request_bytes": ("request_bytes", _whole),
    "fetchpriority": ("fetchpriority", _choice(FetchPriority)),
    "parse_ms": ("parse_ns", _milliseconds),
    "execute_ms": ("execute_ns", _milliseconds),
    "server_ms": ("server_ns", _milliseconds),
    "viewport": ("viewport", _number),
    "response_offsets": ("response_offsets", _offsets),
    **{name: (attribute, _flag) for name, attribute in FLAGS.items()},
}
RESOURCE_KEYS = (*_FIELDS, "discovered")
"""What a resource may say."""
