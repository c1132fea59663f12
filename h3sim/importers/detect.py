"""Detection of a file's format, and the import of any file or site."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol

from h3sim.browser.above_the_fold import HEURISTIC, mark_critical_path, with_marks
from h3sim.importers.formats.devtools import ProtocolLog
from h3sim.importers.formats.fact_table import FactsReader
from h3sim.importers.formats.har import HAR_DIALECTS, HarReader
from h3sim.importers.formats.site import read_site
from h3sim.importers.formats.wprof import EploadGraph, WprofxGraph
from h3sim.importers.page_assembly import assemble
from h3sim.importers.recorded_request import Recording
from h3sim.importers.result import RecordingError
from h3sim.importers.source import BrokenJsonError, JsonCursor, opened, parts
from h3sim.schema import format_value, shown_path
from h3sim.schema.arguments import PATH, check_arguments
from h3sim.schema.values import Choice, Text, ValueType, Whole

if TYPE_CHECKING:
    from collections.abc import Callable

    from h3sim.importers.result import ImportedPage
    from h3sim.importers.source import JsonPart, TextSource
    from h3sim.page import Page


class DialectReader(Protocol):
    """Takes in a file part by part and puts requests into the recording that it was given."""

    def add(self, part: JsonPart) -> None:
        """Take in a part of the file, such as the fourth item of its `log.entries`."""

    def finish(self) -> None:
        """Settle what can be told only when all was read."""


class Family(NamedTuple):
    """Dialects with one reader: *is_sign* says of a part whether a file with it is of them."""

    title: str
    names: tuple[str, ...]
    is_sign: Callable[[JsonPart], bool]
    reader: Callable[[Recording], DialectReader]
    has_lines: bool = False
    """Whether a file may be several values, one after the other."""


def _has(name: str) -> Callable[[JsonPart], bool]:
    """Return a sign: an object in a list at the top that has a member of that name."""
    return lambda part: (
        not part.path and not part.line and isinstance(part.value, dict) and name in part.value
    )


def _is_opened(name: str, kind: type) -> Callable[[JsonPart], bool]:
    """Return a sign: a member of the file's object, itself a list or an object."""
    return lambda part: part.path == (name,) and part.item is None and isinstance(part.value, kind)


FAMILIES = (
    Family("HAR", (*HAR_DIALECTS,), _is_opened("log", dict), HarReader),
    Family(
        "devtools-log",
        ("devtools-log",),
        lambda part: part.path == ("method",) or _has("method")(part),
        ProtocolLog,
        has_lines=True,
    ),
    Family("wprofx", ("wprofx",), _has("objs"), WprofxGraph),
    Family("epload", ("epload",), _is_opened("objs", list), EploadGraph),
    Family("facts", ("facts",), _is_opened("resources", list), FactsReader),
)
SITE = "site"
"""The dialect of what is no recording: HTML and what lies beside it."""
DIALECTS = {name: family.title for family in FAMILIES for name in family.names} | {SITE: SITE}
"""The dialects by name, each with the kind of file that it is."""


_HTML_SUFFIXES = (".html", ".htm", ".xhtml")
_MOST_PARTS = 1_000_000
"""Ten times a hundred thousand requests, or the events of the longest logs."""
_MOST_BEFORE = 10_000
"""So many parts are looked at to find out what a file is."""


def import_page(
    path: str | Path,
    *,
    dialect: str | None = None,
    host: str | None = None,
    page: int = 1,
    root: str | Path | None = None,
    strict: bool = False,
    above_the_fold: str | Path = HEURISTIC,
) -> ImportedPage:
    """Return the page that the recording at *path* tells of, with what had to be inferred.

    A folder stands for the `index.html` in it. What a file is shows in it; *dialect* insists on one
    of `DIALECTS`. With *host* only the requests to it are kept. *page* counts the page loads of a
    recording from 1. *root* is the folder at which the paths of a static site begin, its document's
    folder where none is given.

    What is above the fold is marked as *above_the_fold* says: "heuristic" infers it where the
    recording does not know it (`h3sim.browser.infer_above_the_fold`), "none" marks nothing, and a
    file names it.

    Raises:
        RecordingError: if it is no recording of a page, or, with *strict*, if any part of it could
            not be used.
    """
    _check(path, page, above_the_fold, dialect=dialect, host=host, root=root)
    if os.path.isdir(path):  # noqa: PTH112 - a name that is too long is told with the rest
        path = Path(path) / "index.html"
    recording = Recording(source=shown_path(path), dialect=dialect or "", page_number=page)
    site_root = None if root is None else Path(root)
    with opened(path) as source:
        if _is_site(source, path, dialect):
            read_site(Path(path), recording, root=site_root)
        else:
            _read(source, recording)
            for problem in source.problems:
                recording.note("", problem)
    return _marked(assemble(recording, host=host, strict=strict), above_the_fold)


def read_har(path: str | Path, *, host: str | None = None, page: int = 1) -> Page:
    """Return the page that the HAR file at *path* tells of; see `import_page`."""
    return import_page(path, host=host, page=page).page


def _marked(imported: ImportedPage, choice: str | Path) -> ImportedPage:
    """Return the page with the marks that are asked for; it is told where they are inferred."""
    page = imported.page
    if choice == HEURISTIC and any(resource.critical for resource in page.resources):
        page = mark_critical_path(page)  # the recorder's own word goes before rules about markup
    elif choice != HEURISTIC or not page.knows_above_the_fold:
        page = with_marks(page, choice)
    how = page.above_the_fold_from
    marks = {f"above the fold by {how.value}": sum(r.above_the_fold for r in page.resources)}
    if not page.knows_above_the_fold:
        return replace(imported, page=page, missing=("what is above the fold", *imported.missing))
    if how.is_inferred:
        return replace(imported, page=page, inferred={**imported.inferred, **marks})
    return replace(imported, page=page, found={**imported.found, **marks})


def _is_site(source: TextSource, path: str | Path, dialect: str | None) -> bool:
    """Return whether the file is HTML, by its name or by what it begins with."""
    if dialect is not None:
        return dialect == SITE
    return Path(path).suffix.lower() in _HTML_SUFFIXES or source.peek().lstrip().startswith("<")


def _check(path: object, page: object, above_the_fold: object, **optional: object) -> None:
    """Refuse arguments that can mean nothing, all of them at once."""
    kinds: dict[str, ValueType] = {"dialect": Choice(DIALECTS), "host": Text(), "root": PATH}
    given = {key: (kinds[key], value) for key, value in optional.items() if value is not None}
    needed = {"path": (PATH, path), "page": (Whole(low=1), page)}
    marks = {"above_the_fold": (PATH, above_the_fold)}
    check_arguments(RecordingError, **needed, **marks, **given)


def _read(source: TextSource, recording: Recording) -> None:
    """Read what is in the file into *recording*."""
    cursor = JsonCursor(source.read)
    opening = cursor.peek()
    if opening not in ("{", "["):
        for problem in source.problems if not opening else ():  # why there is nothing to read
            recording.note("", problem)
        what = "is empty" if not opening else f"begins with {opening!r}: it is not JSON"
        raise recording.refuse(what)
    reading = _Reading(recording, is_list=opening == "[")
    try:
        for number, part in enumerate(parts(cursor, recording.note)):
            reading.add(part)
            if number >= _MOST_PARTS:
                recording.note("", f"has more than {_MOST_PARTS:,} parts: the rest is not read")
            if number >= _MOST_PARTS or recording.is_full:
                break
    except BrokenJsonError as error:
        if reading.family is None:
            raise recording.refuse(str(error)) from error
        recording.note(reading.member, f"{error}; what stands before is used")
    reading.finish()


class _Reading:
    """Finds out from the parts of a file what it is, and hands them to a reader."""

    def __init__(self, recording: Recording, *, is_list: bool) -> None:
        self._recording = recording
        self._is_list = is_list
        self._wanted = DIALECTS.get(recording.dialect, "")
        self._before: list[JsonPart] = []
        self._reader: DialectReader | None = None
        self.family: Family | None = None
        self.member = ""
        """The member of the file's object in which the last part stood."""

    def add(self, part: JsonPart) -> None:
        if part.path == ("format",) and str(part.value).startswith("h3sim-page/"):
            raise self._recording.refuse("is a page file already: it needs no import")
        self.member = part.path[0] if part.path else f"event {part.line}" if part.line else ""
        if self.family is not None and part.line and not self.family.has_lines:
            self._recording.note("", "what stands behind the recording is not read")
        elif self._reader is not None:
            self._reader.add(part)
        else:
            self._recognise(part)

    def _recognise(self, part: JsonPart) -> None:
        self._before.append(part)
        self.family = next((each for each in FAMILIES if each.is_sign(part)), None)
        if self.family is None:
            self._refuse_strange(part)
            return
        if self._wanted not in ("", self.family.title):
            name = self._recording.dialect
            raise self._recording.refuse(f"is {self.family.title}, not {name}")
        self._reader = self.family.reader(self._recording)
        for before in self._before:
            self._reader.add(before)

    def _refuse_strange(self, part: JsonPart) -> None:
        """Refuse a list whose first object is no entry of any dialect, and a second object."""
        if not part.path and not part.line and isinstance(part.value, dict):
            raise self._recording.refuse("must have method or objs, has neither", part.key)
        if part.line or len(self._before) > _MOST_BEFORE:
            self.finish()

    def finish(self) -> None:
        if self._reader is not None and self.family is not None:
            self._reader.finish()
            self._recording.dialect = self._recording.dialect or self.family.names[0]
            return
        keys = [part.key for part in self._before if part.item is None]
        if not keys and self._is_list:
            raise self._recording.refuse("holds no request that was answered over HTTP")
        named = ", ".join(format_value(key) for key in keys[:5]) or "nothing"
        raise self._recording.refuse(f"is no recording that is known: its keys are {named}")
