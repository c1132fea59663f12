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

from h3sim.errors import needing_extra
from h3sim.importers.formats.har import HarReader
from h3sim.importers.recorded_request import Recording
from h3sim.importers.request_fields import address
from h3sim.importers.result import RecordingError
from h3sim.importers.source import BrokenJsonError, Fields, JsonCursor, opened, parsed
from h3sim.schema import open_input, shown_path

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

DIALECT = "http-archive"
"""Name of the format."""
_PARQUET_MAGIC = b"PAR1"
_BATCH_ROWS = 64
_LONGEST_NAME = 80
_MOST_BYTES = 1 << 40
_NOT_IN_A_NAME = re.compile(r"[^A-Za-z0-9.-]+")
_COLUMNS = {"request": "request_headers", "response": "response_headers"}
"""Parts of an entry, with the column that has its headers in the tables since 2024."""


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
                # Its rows are those of one page, whichever of the file it is.
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
    shown = (_NOT_IN_A_NAME.sub("-", word[:_LONGEST_NAME]).strip("-.") for word in words)
    return "-".join(word for word in shown if word) or "page"


def _read(rows: Iterable[dict[str, Any]], recording: Recording) -> None:
    reader = HarReader(recording)
    for number, row in enumerate(rows):
        fields = Fields(row, f"row {number + 1}", recording.note)
        payload = _decoded(row.get("payload"))
        if not isinstance(payload, dict):
            fields.wrong("payload", "skipped: must be an object, or one as text")
        elif "request" in payload:
            _restore(payload, fields)
            reader.add_entry(Fields(payload, f"{fields.key}.payload", recording.note))
        elif "pageTimings" in payload:
            reader.add_page(Fields(payload, f"{fields.key}.payload", recording.note))
    reader.finish()
    recording.set_tool("HTTP Archive")


def _restore(payload: dict[str, Any], row: Fields) -> None:
    """Put back into an entry the columns that were taken out of it."""
    for part, column in _COLUMNS.items():
        message = payload.get(part)
        if isinstance(message, dict) and not message.get("headers"):
            message["headers"] = _decoded(row.raw(column)) or []
    response = payload.get("response")
    content = response.get("content") if isinstance(response, dict) else None
    if isinstance(content, dict) and not content.get("text"):
        content["text"] = row.raw("response_body") or ""


def _decoded(value: object) -> Any:
    """Return a column of JSON, which exports have as text or as a value."""
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
    with opened(path, most_bytes=_MOST_BYTES) as source:
        cursor = JsonCursor(source.read)
        if cursor.peek() == "[":
            values: Iterator[Any] = (cursor.value() for _ in cursor.items())
        else:
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
    except pyarrow.ArrowException as error:
        what = str(error).partition("\n")[0]
        raise Recording(source=shown_path(path)).refuse(f"is not valid Parquet: {what}") from error


@contextmanager
def _sorted_rows(
    path: str | Path, broken: list[str]
) -> Iterator[Iterator[tuple[str, str, Iterator[dict[str, Any]]]]]:
    """Yield page, client and rows of each load, in order of the first row of each.

    What is wrong with the end of the file is added to *broken*.
    """
    with (
        tempfile.TemporaryDirectory(prefix="h3sim-") as folder,
        closing(sqlite3.connect(Path(folder) / "rows.db", isolation_level=None)) as database,
    ):
        database.execute("PRAGMA journal_mode=OFF")
        database.execute("PRAGMA synchronous=OFF")
        database.execute("CREATE TABLE rows (page TEXT, client TEXT, date TEXT, row BLOB)")
        try:
            database.executemany("INSERT INTO rows VALUES (?, ?, ?, ?)", map(_packed, _rows(path)))
        except BrokenJsonError as error:
            broken.append(str(error))
        database.execute("CREATE INDEX loads ON rows (page, client, date)")
        keys = database.execute(
            "SELECT page, client, date FROM rows GROUP BY page, client, date ORDER BY MIN(rowid)"
        )
        yield (
            (page, client, _unpacked(database, (page, client, date))) for page, client, date in keys
        )


def _packed(row: dict[str, Any]) -> tuple[str, str, str, bytes]:
    page, client, date = (
        str(row.get(name) or "").encode("utf-8", "replace").decode()
        for name in ("page", "client", "date")
    )
    return page, client, date, zlib.compress(json.dumps(row, default=str).encode(), 1)


def _unpacked(database: sqlite3.Connection, key: tuple[str, str, str]) -> Iterator[dict[str, Any]]:
    query = "SELECT row FROM rows WHERE page = ? AND client = ? AND date = ? ORDER BY rowid"
    for (row,) in database.execute(query, key):
        yield json.loads(zlib.decompress(row))
