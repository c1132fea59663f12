"""Rows of the HTTP Archive's tables `requests` and `pages`, one page per page load.

Exports are JSON Lines (or a JSON array) or Parquet. The payload of a row is an entry or a page of
WebPageTest's HAR. Rows of one load may be anywhere in the file, so they are sorted in a temporary
database: only the rows of one load are in memory at a time.
"""

from __future__ import annotations

import json
import re
import sqlite3
import tempfile
import zlib
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from h3sim.importers.formats.har import HarReader
from h3sim.importers.recorded_request import Recording
from h3sim.importers.request_fields import address
from h3sim.importers.result import RecordingError
from h3sim.importers.source import BrokenJsonError, Fields, JsonCursor, opened, parsed
from h3sim.schema import open_input, shown_path
from h3sim.values.errors import needing_extra
from h3sim.values.text import escape_control

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

DIALECT = "http-archive"
"""Name of the format."""
_PARQUET_MAGIC = b"PAR1"
_BATCH_ROWS = 64
"""Rows that are read at once: a row may hold the text of a response."""
_MAX_NAME_CHARS = 80
_MAX_UNPACKED_BYTES = 1 << 40
"""More than any export has; only the rows of one load are in memory."""
_NON_NAME_CHARS = re.compile(r"[^A-Za-z0-9.-]+")
_HEADERS_COLUMN_BY_PART = {"request": "request_headers", "response": "response_headers"}
"""Parts of an entry whose headers are in a column of their own in the tables since 2024."""


def is_archive(path: str | Path) -> bool:
    """Return whether the file has rows of the HTTP Archive.

    Raises:
        RecordingError: if it cannot be opened or read.
    """
    try:
        return "payload" in next(_rows(path), {})
    except BrokenJsonError:
        return False


def read_archived_loads(path: str | Path) -> Iterator[tuple[str, Recording | RecordingError]]:
    """Yield name and recording of each page load, in the order of their first rows.

    Names are unique among those of the file; a page load that cannot be read has its error.

    Raises:
        RecordingError: if the file cannot be read.
        MissingExtraError: for a Parquet file, if pyarrow is not installed.
    """
    names: dict[str, int] = {}
    broken: list[str] = []
    with _sorted_rows(path, broken) as loads:
        for page, client, rows in loads:
            name = _name_of(page, client)
            names[name] = names.get(name, 0) + 1
            name += f"-{names[name]}" if names[name] > 1 else ""
            recording = Recording(source=shown_path(path), dialect=DIALECT, name=name)
            try:
                _read(rows, recording)
            except RecordingError as error:
                yield name, error
            else:
                yield name, recording
    if broken:
        raise Recording(source=shown_path(path)).refuse(f"{broken[0]}; the rows before are used")


def read_archived_load(path: str | Path, recording: Recording) -> None:
    """Read the rows of one page load into *recording*, that of its page number.

    Raises:
        RecordingError: if the file cannot be read, or has no such page load.
        MissingExtraError: for a Parquet file, if pyarrow is not installed.
    """
    broken: list[str] = []
    number, n_loads = recording.page_number, 0
    with _sorted_rows(path, broken) as loads:
        for n_loads, (page, client, rows) in enumerate(loads, 1):
            if n_loads == number:
                recording.name = _name_of(page, client)
                # These rows have a single page, whatever its number in the file.
                recording.page_number = 1
                _read(rows, recording)
    if n_loads < number:
        have = "one page load" if n_loads == 1 else f"{n_loads:,} page loads"
        raise recording.refuse(f"has {have}; there is no page {number}")
    if n_loads > 1:
        recording.found["pages"] = n_loads
    for problem in broken:
        recording.note("", f"{problem}; the rows before are used")


def _name_of(page: str, client: str) -> str:
    """Return the name of a page load: host, path and client.

    >>> _name_of("https://shop.example/cart?user=1", "mobile")
    'shop.example-cart-mobile'
    """
    parts = address(page)
    words = ("page" if parts is None else f"{parts.host}{parts.path}", client)
    shown = (_NON_NAME_CHARS.sub("-", word[:_MAX_NAME_CHARS]).strip("-.") for word in words)
    return "-".join(word for word in shown if word) or "page"


def _read(rows: Iterable[dict[str, Any]], recording: Recording) -> None:
    reader = HarReader(recording)
    for number, row in enumerate(rows):
        fields = Fields(row, f"row {number + 1}", recording.note)
        payload = _json_column(row.get("payload"))
        if not isinstance(payload, dict):
            fields.wrong("payload", "skipped: must be an object, or one as text")
        elif "request" in payload:
            _restore_columns(payload, fields)
            reader.add_entry(Fields(payload, f"{fields.key}.payload", recording.note))
        elif "pageTimings" in payload:
            reader.add_page(Fields(payload, f"{fields.key}.payload", recording.note))
    reader.finish()
    recording.set_tool("HTTP Archive")


def _restore_columns(payload: dict[str, Any], row: Fields) -> None:
    """Put the columns that the tables since 2024 have separately back into an entry."""
    for part, column in _HEADERS_COLUMN_BY_PART.items():
        message = payload.get(part)
        if isinstance(message, dict) and not message.get("headers"):
            message["headers"] = _json_column(row.raw(column)) or []
    response = payload.get("response")
    content = response.get("content") if isinstance(response, dict) else None
    if isinstance(content, dict) and not content.get("text"):
        content["text"] = row.raw("response_body") or ""


def _json_column(value: object) -> Any:
    """Return a JSON column, which may be text or already parsed, depending on the export."""
    return parsed(value) if isinstance(value, str) else value


def _rows(path: str | Path) -> Iterator[dict[str, Any]]:
    """Yield the rows of a file.

    Raises:
        RecordingError: if it cannot be opened, or is no Parquet file although it begins like one.
        BrokenJsonError: where it is not JSON.
    """
    with open_input(path, RecordingError) as file:
        is_parquet = file.read(len(_PARQUET_MAGIC)) == _PARQUET_MAGIC
    if is_parquet:
        yield from _parquet_rows(path)
        return
    with opened(path, max_bytes=_MAX_UNPACKED_BYTES) as source:
        cursor = JsonCursor(source.read)
        if cursor.peek() == "[":
            values: Iterator[Any] = (cursor.value() for _ in cursor.items())
        else:
            # Until None, at the end of the file.
            values = iter(lambda: cursor.value() if cursor.peek() else None, None)
        yield from (row for row in values if isinstance(row, dict))


def _parquet_rows(path: str | Path) -> Iterator[dict[str, Any]]:
    with needing_extra("pyarrow", "study"):
        import pyarrow
        import pyarrow.parquet
    try:
        with pyarrow.parquet.ParquetFile(path) as file:
            for batch in file.iter_batches(batch_size=_BATCH_ROWS):
                yield from batch.to_pylist()
    except (pyarrow.ArrowException, OSError, ValueError) as error:  # of damaged footers
        what = escape_control(str(error).partition("\n")[0])
        raise Recording(source=shown_path(path)).refuse(f"is not valid Parquet: {what}") from error


@contextmanager
def _sorted_rows(
    path: str | Path, broken: list[str]
) -> Iterator[Iterator[tuple[str, str, Iterator[dict[str, Any]]]]]:
    """Yield page, client and rows of each load, in order of the first row of each.

    If the file is broken at some point, the error is added to *broken*; rows before it are used.
    """
    with (
        tempfile.TemporaryDirectory(prefix="h3sim-") as folder,
        closing(sqlite3.connect(Path(folder) / "rows.db", isolation_level=None)) as database,
    ):
        # The database is temporary: it need not survive a crash.
        database.execute("PRAGMA journal_mode=OFF")
        database.execute("PRAGMA synchronous=OFF")
        database.execute("CREATE TABLE rows (page TEXT, client TEXT, date TEXT, row BLOB)")
        try:
            database.executemany(
                "INSERT INTO rows VALUES (?, ?, ?, ?)", map(_database_row, _rows(path))
            )
        except BrokenJsonError as error:
            broken.append(str(error))
        database.execute("CREATE INDEX loads ON rows (page, client, date)")
        keys = database.execute(
            "SELECT page, client, date FROM rows GROUP BY page, client, date ORDER BY MIN(rowid)"
        )
        yield (
            (page, client, _rows_of_load(database, (page, client, date)))
            for page, client, date in keys
        )


def _database_row(row: dict[str, Any]) -> tuple[str, str, str, bytes]:
    page, client, date = (
        str(row.get(name) or "").encode("utf-8", "replace").decode()  # SQLite refuses surrogates
        for name in ("page", "client", "date")
    )
    return page, client, date, zlib.compress(json.dumps(row, default=str).encode(), 1)


def _rows_of_load(
    database: sqlite3.Connection, key: tuple[str, str, str]
) -> Iterator[dict[str, Any]]:
    query = "SELECT row FROM rows WHERE page = ? AND client = ? AND date = ? ORDER BY rowid"
    for (row,) in database.execute(query, key):
        yield json.loads(zlib.decompress(row))
