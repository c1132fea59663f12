"""Tells what a file is, and reads it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from h3sim.capture.dialects.devtools_log import ProtocolLog
from h3sim.capture.dialects.facts import facts_from_dict
from h3sim.capture.dialects.har import HAR_DIALECTS, read_log
from h3sim.capture.dialects.site import read_site
from h3sim.capture.dialects.wprof import WprofxGraph, read_epload
from h3sim.capture.imported import ImportedPage, RecordingError
from h3sim.capture.inference.assembly import assemble
from h3sim.capture.inference.observed import Recording
from h3sim.capture.source.json_cursor import BrokenJsonError, JsonCursor
from h3sim.capture.source.text_source import opened
from h3sim.documents import shown, shown_path
from h3sim.errors import Problem

if TYPE_CHECKING:
    from h3sim.capture.source.text_source import TextSource
    from h3sim.page import Page

__all__ = ["DIALECTS", "import_page", "read_har"]

_HAR, _LOG, _WPROFX, _EPLOAD = "HAR", "devtools-log", "wprofx", "epload"
_FACTS, _SITE = "facts", "site"
DIALECTS = dict.fromkeys(HAR_DIALECTS, _HAR) | {
    name: name for name in (_LOG, _WPROFX, _EPLOAD, _FACTS, _SITE)
}
"""The dialects by name, each with the kind of file that it is."""
_HTML_SUFFIXES = (".html", ".htm", ".xhtml")


def import_page(
    path: str | Path,
    *,
    dialect: str | None = None,
    host: str | None = None,
    page: int = 1,
    root: str | Path | None = None,
    strict: bool = False,
) -> ImportedPage:
    """Return the page that the recording at *path* tells of, with what had to be inferred.

    A folder stands for the `index.html` in it. What a file is shows in it; *dialect* insists on one
    of `DIALECTS`. All hosts become one, or only *host* is kept. *page* counts the page loads of a
    recording from 1. *root* is the folder at which the paths of a static site begin, its document's
    folder where none is given.

    Raises:
        RecordingError: if it is no recording of a page, or, with *strict*, if any part of it could
            not be used.
    """
    if os.path.isdir(path):  # noqa: PTH112 - a name that is too long is told with the rest
        path = Path(path) / "index.html"
    _check(dialect, page, shown_path(path))
    recording = Recording(source=shown_path(path), dialect=dialect or "")
    with opened(path) as source:
        if _is_site(source, path, dialect):
            read_site(Path(path), recording, root=None if root is None else Path(root))
            return assemble(recording, host=host, strict=strict)
        imported = _read(source, recording, page, host)
        for problem in source.problems:
            recording.note("", problem)
    return assemble(recording, host=host, strict=strict) if imported is None else imported


def read_har(path: str | Path, *, host: str | None = None, page: int = 1) -> Page:
    """Return the page that the HAR file at *path* tells of; see `import_page`."""
    return import_page(path, host=host, page=page).page


def _is_site(source: TextSource, path: str | Path, dialect: str | None) -> bool:
    """Return whether the file is HTML, by its name or by what it begins with."""
    if dialect is not None:
        return dialect == _SITE
    return Path(path).suffix.lower() in _HTML_SUFFIXES or source.peek().lstrip().startswith("<")


def _check(dialect: str | None, page: int, source: str) -> None:
    if dialect is not None and dialect not in DIALECTS:
        known = ", ".join(DIALECTS)
        raise RecordingError([_problem(f"no dialect is called {dialect!r}; there are {known}")])
    if page < 1:
        raise RecordingError([_problem(f"pages count from 1, {page} is none")], source)


def _problem(message: str, key: str = "") -> Problem:
    return Problem(key=key, message=message)


def _read(
    source: TextSource, recording: Recording, page: int, host: str | None
) -> ImportedPage | None:
    """Read what is in the file into *recording*; a fact table is a page at once."""
    wanted = recording.dialect
    kind = DIALECTS.get(wanted, "")
    cursor = JsonCursor(source.read)
    opening = cursor.peek()
    table: dict[str, Any] = {}
    try:
        if opening == "{":
            found = _read_object(cursor, recording, page, table)
        elif opening == "[":
            found = _read_list(cursor, recording)
        else:
            what = "is empty" if not opening else f"begins with {opening!r}: it is not JSON"
            raise recording.refuse(what)
    except BrokenJsonError as error:
        raise recording.refuse(str(error)) from error
    if kind and found != kind:
        raise recording.refuse(f"is {found}, not {wanted}")
    return _of_table(table, recording, host) if found == _FACTS else None


def _of_table(table: dict[str, Any], recording: Recording, host: str | None) -> ImportedPage:
    if host is not None:
        raise recording.refuse("a fact table has no hosts to choose from", "--host")
    page, report = facts_from_dict(table, source=recording.source)
    missing = (f"{what} of {number:,}" for what, number in report.missing.items())
    return ImportedPage(
        page=page,
        dialect=_FACTS,
        found=report.found,
        inferred=report.inferred,
        missing=tuple(missing),
    )


def _read_object(cursor: JsonCursor, recording: Recording, page: int, table: dict[str, Any]) -> str:
    head: dict[str, Any] = {}
    for name in cursor.members():
        if name == "log" and cursor.peek() == "{":
            read_log(cursor, recording, page=page)
            return _HAR
        head[name] = cursor.value()
    if "method" in head:
        _read_lines(head, cursor, recording)
        return _LOG
    if isinstance(head.get("objs"), list):
        read_epload(head, recording)
        return _EPLOAD
    if str(head.get("format")).startswith("h3sim-page/"):
        raise recording.refuse("is a page file already: it needs no import")
    if isinstance(head.get("resources"), list):
        table.update(head)
        return _FACTS
    keys = ", ".join(shown(key) for key in list(head)[:5]) or "nothing"
    raise recording.refuse(f"is no recording that is known: its keys are {keys}")


def _read_list(cursor: JsonCursor, recording: Recording) -> str:
    log, graph = ProtocolLog(recording), WprofxGraph(recording)
    found = ""
    try:
        for place in cursor.items():
            value = cursor.value()
            if not found and isinstance(value, dict):
                found = _LOG if "method" in value else _WPROFX if "objs" in value else ""
                if not found:
                    raise recording.refuse("must have method or objs, has neither", f"[{place}]")
            if found == _WPROFX:
                graph.add_entry(f"[{place}]", value)
            else:
                log.add_event(f"[{place}]", value)
    except BrokenJsonError as error:
        recording.note("", f"{error}; what stands before is used")
    if found == _WPROFX:
        graph.finish()
    else:
        log.finish()
    return found


def _read_lines(head: dict[str, Any], cursor: JsonCursor, recording: Recording) -> None:
    """Read a log of which the first event was read already."""
    log = ProtocolLog(recording)
    log.add_event("event 1", head)
    number = 1
    try:
        while cursor.peek():
            number += 1
            log.add_event(f"event {number}", cursor.value())
    except BrokenJsonError as error:
        recording.note(f"event {number}", f"{error}; what stands before is used")
    log.finish()
