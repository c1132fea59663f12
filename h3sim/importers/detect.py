"""Detection of a file's format, and the import of any file or site."""

from __future__ import annotations

import os
import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol

from h3sim.browser.above_the_fold import HEURISTIC, with_marks
from h3sim.importers.crux import CRUX_COLUMNS
from h3sim.importers.formats import archive
from h3sim.importers.formats.chrome_trace import ChromeTrace
from h3sim.importers.formats.devtools import ProtocolLog
from h3sim.importers.formats.har import HAR_DIALECTS, HarReader
from h3sim.importers.formats.lab_results import (
    LIGHTHOUSE_SIGNS,
    LighthouseResult,
    WebPageTestResult,
)
from h3sim.importers.formats.net_log import NetLog
from h3sim.importers.formats.site import read_site
from h3sim.importers.page_assembly import assemble
from h3sim.importers.recorded_request import Recording
from h3sim.importers.result import ImportedPage, RecordingError
from h3sim.importers.source import BrokenJsonError, JsonCursor, JsonPart, TextSource, opened, parts
from h3sim.schema import format_value, shown_path
from h3sim.schema.arguments import PATH, check_arguments
from h3sim.schema.values import Choice, Integer, Text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from h3sim.page import Page


class DialectReader(Protocol):
    """Reader of one format, which receives a file part by part and fills a recording."""

    def add(self, part: JsonPart) -> None:
        """Process a part of the file, such as the fourth item of its `log.entries`."""

    def finish(self) -> None:
        """Finish after the last part."""


class Family(NamedTuple):
    """Family of formats that have the same reader."""

    title: str
    names: tuple[str, ...]
    is_sign: Callable[[JsonPart], bool]
    """Test for a part that only files of this family have."""
    reader: Callable[[Recording], DialectReader]
    has_lines: bool = False
    """True if a file may consist of several consecutive values."""


def _list_item_has(name: str) -> Callable[[JsonPart], bool]:
    """Return a test for an item of a top-level list that is an object with member *name*."""
    return lambda part: (
        not part.path and not part.line and isinstance(part.value, dict) and name in part.value
    )


def _line_has(name: str) -> Callable[[JsonPart], bool]:
    """Return a test for one of several consecutive objects that has a member *name*."""
    return lambda part: part.line > 0 and isinstance(part.value, dict) and name in part.value


def _is_top_level_member(name: str, kind: type) -> Callable[[JsonPart], bool]:
    """Return a test for member *name* of the top-level object, if its type is *kind*."""
    return lambda part: part.path == (name,) and part.item is None and isinstance(part.value, kind)


def _is_net_event(part: JsonPart) -> bool:
    """Return whether a part is an event of a network log, which may precede the constants."""
    keys = part.value if part.path == ("events",) and isinstance(part.value, dict) else ()
    return all(name in keys for name in ("source", "time", "type"))


def _is_flow_step(part: JsonPart) -> bool:
    return part.path == ("steps",) and isinstance(part.value, dict) and "lhr" in part.value


FAMILIES = (
    Family("HAR", (*HAR_DIALECTS,), _is_top_level_member("log", dict), HarReader),
    Family(
        "devtools-log",
        ("devtools-log",),
        lambda part: (
            part.path == ("method",) or _list_item_has("method")(part) or _line_has("method")(part)
        ),
        ProtocolLog,
        has_lines=True,
    ),
    Family(
        "chrome-trace",
        ("chrome-trace",),
        lambda part: _is_top_level_member("traceEvents", list)(part) or _list_item_has("ph")(part),
        ChromeTrace,
    ),
    Family(
        "net-log",
        ("net-log",),
        lambda part: (
            (part.path == ("constants",) and isinstance(part.value, dict)) or _is_net_event(part)
        ),
        NetLog,
    ),
    Family(
        "webpagetest",
        ("webpagetest",),
        lambda part: (
            part.path == ("data",) and isinstance(part.value, dict) and "runs" in part.value
        ),
        WebPageTestResult,
    ),
    Family(
        "lighthouse",
        ("lighthouse",),
        lambda part: part.path in LIGHTHOUSE_SIGNS or _is_flow_step(part),
        LighthouseResult,
    ),
)
SITE = "site"
"""Format name of static sites."""
DIALECTS = {name: family.title for family in FAMILIES for name in family.names} | {SITE: SITE}
"""Formats by name, each with a description."""


_READ_CHARS = 1 << 20
"""Characters of a report that are searched at once."""
_MAX_MARKER_CHARS = 64
_EMBEDDED_RESULT = re.compile(r"__LIGHTHOUSE(?:_FLOW)?_JSON__\s{0,9}=\s{0,9}(?=\{)")
"""Beginning of the result in an HTML report of Lighthouse."""
_REPORT_TITLE = re.compile(
    r"<meta name=.generator. content=.(h3sim)"
    r"|<title>\s{0,99}(Lighthouse(?: User Flow)?|Playwright Test) Report\s{0,99}<",
    re.IGNORECASE,
)
"""Signs of the reports of other tools, which are no sites."""
_HTML_SUFFIXES = (".html", ".htm", ".xhtml")
_MAX_FILE_PARTS = 1_000_000
"""Most parts of a file that are read: ten for each of 100,000 requests, or the longest logs."""
_MAX_FILE_PROBLEMS = 100_000
"""Mistakes after which the rest of a file is not read: as many as requests."""
_CRUX_MESSAGE = "has connections of CrUX, not a page: name a folder for their networks (-o FOLDER/)"
_NO_EVENT = "must have method or ph, has none"
_MAX_EXAMINED_PARTS = 10_000
"""Most parts that are examined to detect the format."""


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
    """Import the page from the recording at *path*, with a report of inferred values.

    A folder means its `index.html`. The format is detected; *dialect* requires one of `DIALECTS`.
    With *host* only requests to it are kept. *page* selects a page load of the recording, from 1.
    *root* is the root folder of a static site's paths, by default its document's folder.

    *above_the_fold* controls the marks: "heuristic" infers them if the recording has none
    (`h3sim.browser.infer_above_the_fold`), "none" removes them, and a file lists them.

    Raises:
        RecordingError: if it is not a recording of a page or, with *strict*, if any part of it
            cannot be used.
    """
    optional = {
        "dialect": (Choice(DIALECTS), dialect),
        "host": (Text(), host),
        "root": (PATH, root),
    }
    check_arguments(
        RecordingError,
        path=(PATH, path),
        page=(Integer(low=1), page),
        above_the_fold=(PATH, above_the_fold),
        **{key: (kind, value) for key, (kind, value) in optional.items() if value is not None},
    )
    if os.path.isdir(path):  # noqa: PTH112 - a name that is too long is reported later
        path = Path(path) / "index.html"
    recording = read_recording(path, dialect=dialect, page=page, root=root)
    return finished_page(recording, host=host, strict=strict, above_the_fold=above_the_fold)


def read_recording(
    path: str | Path,
    *,
    dialect: str | None = None,
    page: int = 1,
    root: str | Path | None = None,
) -> Recording:
    """Return the recorded requests in the file at *path*, without inference; see `import_page`.

    Raises:
        RecordingError: if it is not a recording of a page.
    """
    recording = Recording(source=shown_path(path), dialect=dialect or "", page_number=page)
    site_root = None if root is None else Path(root)
    with opened(path) as source:
        if _is_site(source, path, dialect):
            _read_html(source, path, recording, site_root)
        else:
            try:
                _read_json(source, path, recording)
            except _IsArchiveError:
                if recording.dialect:
                    message = f"has rows of the HTTP Archive: it is not {recording.dialect}"
                    raise recording.refuse(message) from None
                recording.dialect = archive.DIALECT
                archive.read_archived_load(path, recording)
            for problem in source.problems:
                recording.note("", problem)
    return recording


def _read_html(
    source: TextSource, path: str | Path, recording: Recording, site_root: Path | None
) -> None:
    """Read a site, or the result of Lighthouse in its report.

    Raises:
        RecordingError: if it is a report that has no recording, or is in a zip archive.
    """
    if recording.dialect == SITE:
        read_site(Path(path), recording, root=site_root)
        return
    report = source.peek()
    begins_at = _embedded_result(source)
    if begins_at is not None:
        _read_embedded(begins_at, source, recording)
        return
    if (found := _REPORT_TITLE.search(report)) is not None:
        raise recording.refuse(
            f"is a report of {found[1] or found[2]}, not a site: import the JSON or HAR"
            f" of that tool, or name --dialect {SITE} to read the report as a page"
        )
    if source.is_zipped:
        raise recording.refuse("is a site in a zip archive: unpack it")
    read_site(Path(path), recording, root=site_root)


def _embedded_result(source: TextSource) -> str | None:
    """Read up to the result of Lighthouse in its HTML report; return the text read from there on.

    None if there is no result.
    """
    text = ""
    while piece := source.read(_READ_CHARS):
        text += piece
        if (found := _EMBEDDED_RESULT.search(text)) is not None:
            return text[found.end() :]
        text = text[-_MAX_MARKER_CHARS:]  # a marker may be cut in two
    return None


def _read_embedded(text: str, source: TextSource, recording: Recording) -> None:
    """Read a result of Lighthouse that begins with *text* and goes on in *source*."""
    pieces = iter([text])
    cursor = JsonCursor(lambda n_chars: next(pieces, "") or source.read(n_chars))
    reading = _Reading(recording, is_list=False)
    # What follows the object is the rest of a script and of the document.
    _read_parts(cursor, reading, recording, to_end=False)
    reading.finish()


class _IsArchiveError(Exception):
    """The file has rows of the HTTP Archive, which have to be sorted before they are read."""


def finished_page(
    recording: Recording,
    *,
    host: str | None = None,
    strict: bool = False,
    above_the_fold: str | Path = HEURISTIC,
) -> ImportedPage:
    """Return the page of *recording* with its marks; the arguments are those of `import_page`."""
    return _with_requested_marks(assemble(recording, host=host, strict=strict), above_the_fold)


def read_har(path: str | Path, *, host: str | None = None, page: int = 1) -> Page:
    """Import the page from the HAR file at *path*; see `import_page`."""
    return import_page(path, host=host, page=page).page


class ArchivedPage(NamedTuple):
    """Page of an archive: its name, unique among those of the file, and its import or error."""

    name: str
    result: ImportedPage | RecordingError


def read_archive(
    path: str | Path, *, strict: bool = False, above_the_fold: str | Path = HEURISTIC
) -> Iterator[ArchivedPage]:
    """Yield the page of each page load in an export of the HTTP Archive, in order of their rows.

    *strict* and *above_the_fold* are as in `import_page`, which imports one page load of a file.

    Raises:
        RecordingError: if the file cannot be read.
        MissingExtraError: for a Parquet file, if pyarrow is not installed.
    """
    for name, recording in archive.read_archived_loads(path):
        if isinstance(recording, RecordingError):
            yield ArchivedPage(name, recording)
            continue
        try:
            imported = finished_page(recording, above_the_fold=above_the_fold, strict=strict)
        except RecordingError as error:
            yield ArchivedPage(name, error)
        else:
            yield ArchivedPage(name, imported)


def _with_requested_marks(imported: ImportedPage, choice: str | Path) -> ImportedPage:
    """Return the page with the requested marks, counted as inferred where they are."""
    page = imported.page
    is_marked = any(resource.above_the_fold for resource in page.resources)
    is_guess = choice == HEURISTIC and not is_marked  # recorded marks take precedence
    if is_guess or choice != HEURISTIC:
        page = with_marks(page, choice)
    evidence = page.above_the_fold_from
    n_marked = sum(resource.above_the_fold for resource in page.resources)
    marks = {f"above the fold by {evidence.value}": n_marked}
    if not page.knows_above_the_fold:
        return replace(imported, page=page, missing=("what is above the fold", *imported.missing))
    if evidence.is_inferred:
        return replace(imported, page=page, inferred={**imported.inferred, **marks})
    return replace(imported, page=page, found={**imported.found, **marks})


def _is_site(source: TextSource, path: str | Path, dialect: str | None) -> bool:
    """Return whether the file is HTML, by its name or its first bytes."""
    if dialect is not None:
        return dialect == SITE
    return Path(path).suffix.lower() in _HTML_SUFFIXES or source.peek().lstrip().startswith("<")


def _read_json(source: TextSource, path: str | Path, recording: Recording) -> None:
    """Detect the format of the file, and read it into *recording*."""
    if source.peek().startswith("PAR1"):  # Parquet
        raise _IsArchiveError
    cursor = JsonCursor(source.read)
    opening = cursor.peek()
    if opening not in ("{", "["):
        if opening:
            raise recording.refuse(f"begins with {opening!r}: it is not JSON")
        for problem in source.problems:  # possible reasons why it seems empty
            recording.note("", problem)
        raise recording.refuse("is empty")
    reading = _Reading(recording, is_list=opening == "[")
    _read_parts(cursor, reading, recording)
    if reading.is_incomplete:
        with opened(path) as again:
            _read_parts(JsonCursor(again.read), reading, recording)
    reading.finish()


def _read_parts(
    cursor: JsonCursor, reading: _Reading, recording: Recording, *, to_end: bool = True
) -> None:
    """Pass the parts of a file, or only those of its first value, to *reading*."""
    try:
        for number, part in enumerate(parts(cursor, recording.note, to_end=to_end)):
            reading.add(part)
            if number >= _MAX_FILE_PARTS:
                recording.note("", f"has more than {_MAX_FILE_PARTS:,} parts: the rest is not read")
                break
            if recording.n_problems >= _MAX_FILE_PROBLEMS:
                message = f"has {_MAX_FILE_PROBLEMS:,} mistakes or more: the rest is not read"
                recording.note("", message)
                break
            if recording.is_full:
                break
    except BrokenJsonError as error:
        if reading.family is None:
            raise recording.refuse(str(error)) from error
        recording.note(reading.member, f"{error}; the data before is used")


class _Reading:
    """Format detection: finds the family from the parts of a file and passes them to its reader."""

    def __init__(self, recording: Recording, *, is_list: bool) -> None:
        self._recording = recording
        self._is_list = is_list
        self._required = DIALECTS.get(recording.dialect, "")
        """Title of the family that the user requires; "" for any."""
        self._examined_parts: list[JsonPart] = []
        """Parts before the format is known, which its reader then gets first."""
        self._reader: DialectReader | None = None
        self.family: Family | None = None
        self.member = ""
        """Top-level member of the last part, for messages."""

    @property
    def is_incomplete(self) -> bool:
        """True if the file has to be read again, as its parts are in an unusual order."""
        return isinstance(self._reader, NetLog) and self._reader.is_incomplete

    def add(self, part: JsonPart) -> None:
        if part.path == ("format",) and str(part.value).startswith("h3sim-page/"):
            raise self._recording.refuse(
                "is already a page file: use it directly, unpacked (.json)"
            )
        self.member = part.path[0] if part.path else f"event {part.line}" if part.line else ""
        if self.family is not None and part.line and not self.family.has_lines:
            self._recording.note("", "data after the recording is ignored")
        elif self._reader is not None:
            self._reader.add(part)
        else:
            self._recognise(part)

    def _recognise(self, part: JsonPart) -> None:
        self._examined_parts.append(part)
        self.family = next((each for each in FAMILIES if each.is_sign(part)), None)
        if self.family is None:
            self._refuse_unknown(part)
            return
        if self._required not in ("", self.family.title):
            name = self._recording.dialect
            raise self._recording.refuse(f"is {self.family.title}, not {name}")
        self._reader = self.family.reader(self._recording)
        for before in self._examined_parts:
            self._reader.add(before)

    def _refuse_unknown(self, part: JsonPart) -> None:
        """Refuse a file as soon as a part shows that it is of no known format.

        That is the first item of a list, a second top-level object, or one part too many.
        """
        if part.path == ("payload",) or _list_item_has("payload")(part):
            raise _IsArchiveError
        if part.path == ("record",) or any(_list_item_has(name)(part) for name in CRUX_COLUMNS):
            raise self._recording.refuse(_CRUX_MESSAGE)
        if _list_item_has("browserScripts")(part):
            message = "is a browsertime.json, which lists no requests: import the HAR beside it"
            raise self._recording.refuse(message)
        # The first entry of a log may be empty.
        if not part.path and not part.line and isinstance(part.value, dict) and part.value:
            raise self._recording.refuse(_NO_EVENT, part.key)
        if (part.line and part.value != {}) or len(self._examined_parts) > _MAX_EXAMINED_PARTS:
            self.finish()

    def finish(self) -> None:
        if self._reader is not None and self.family is not None:
            self._reader.finish()
            self._recording.dialect = self._recording.dialect or self.family.names[0]
            return
        keys = [part.key for part in self._examined_parts if part.item is None]
        if not keys and self._examined_parts:
            raise self._recording.refuse(_NO_EVENT, self._examined_parts[0].key)
        if not keys and self._is_list:
            raise self._recording.refuse("contains no request with an HTTP response")
        named = ", ".join(format_value(key) for key in keys[:5]) or "nothing"
        raise self._recording.refuse(f"is not a known recording format: its keys are {named}")
