"""The file of a store (`h3sim-store/2`): tables, digests and protection from untrusted files.

A file from elsewhere may contain anything: no code in it is run, queries have a time limit, and
only the tables of the format are read.
"""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
import struct
import time
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from h3sim.errors import H3SimError, InputError, ValidationIssue
from h3sim.schema.errors import format_value
from h3sim.schema.files import shown_path
from h3sim.text import escape_control

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence


VERSION = 2
"""SQLite's `user_version`, the version of the format."""
UNSEALED = 1
"""Version without digests, in whose rows ByteIndex was sampled."""
FORMAT = f"h3sim-store/{VERSION}"
APPLICATION_ID = 0x68337331  # "h3s1"
"""SQLite's `application_id`, which identifies stores among other databases."""


_DIGEST_BYTES = 8
Value: TypeAlias = "bytes | int | float | None"
"""Values in SQLite; texts are their bytes in UTF-8."""


class StoreColumn(NamedTuple):
    """Column: name, SQL type with constraints, and description."""

    name: str
    type: str
    about: str


class StoreTable(NamedTuple):
    """Table: columns, table constraints and table options."""

    name: str
    columns: tuple[StoreColumn, ...]
    constraint: str = ""
    ending: str = ""

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns; the last one is the digest of the others."""
        return tuple(column.name for column in self.columns)


_DIGEST = StoreColumn(
    "digest", "BLOB NOT NULL", f"{_DIGEST_BYTES} bytes of BLAKE2b over the preceding columns"
)
_WITHOUT_ROWID = "WITHOUT ROWID"  # avoids a second copy of each key in an index
TABLES = (
    StoreTable(
        "cells",
        (
            StoreColumn(
                "key", "BLOB PRIMARY KEY", "16 bytes of BLAKE2b over all inputs of the load"
            ),
            StoreColumn(
                "model",
                "TEXT NOT NULL",
                "the model that ran it: h3sim's version, source digest, plug-ins, header codecs",
            ),
            StoreColumn("row", "TEXT", "the row of the load, a JSON object; NULL if it failed"),
            StoreColumn(
                "resources", "TEXT", "rows of its resources, a JSON list; NULL if not requested"
            ),
            StoreColumn(
                "error", "TEXT", "description and error of a failed load; NULL if it succeeded"
            ),
            StoreColumn("seconds", "REAL", "run time"),
            _DIGEST,
        ),
        ending=_WITHOUT_ROWID,
    ),
    StoreTable(
        "studies",
        (
            StoreColumn("id", "INTEGER PRIMARY KEY", "number, in the order of creation"),
            StoreColumn(
                "token",
                "TEXT UNIQUE NOT NULL",
                "identity of the study: a digest of all inputs of its loads, in order",
            ),
            StoreColumn("name", "TEXT NOT NULL", "display name"),
            StoreColumn("n", "INTEGER NOT NULL", "number of loads"),
            StoreColumn("axes", "TEXT NOT NULL", "columns in which its loads differ, a JSON list"),
            _DIGEST,
        ),
    ),
    StoreTable(
        "study_cells",
        (
            StoreColumn("study", "INTEGER NOT NULL", "the `id` of a study"),
            StoreColumn(
                "position", "INTEGER NOT NULL", "the index of the load in the study, from 0"
            ),
            StoreColumn(
                "key", "BLOB NOT NULL", "the `key` of the load, which may not have run yet"
            ),
            _DIGEST,
        ),
        constraint="PRIMARY KEY (study, position)",
        ending=_WITHOUT_ROWID,
    ),
)


def script(version: int = VERSION) -> str:
    """Return the SQL that creates the tables of a new store and marks it as one."""
    made = [
        f"PRAGMA application_id = {APPLICATION_ID}",
        f"PRAGMA user_version = {version}",
        *(_made(table, version) for table in TABLES),
    ]
    return "".join(f"{statement};\n" for statement in made)


def _made(table: StoreTable, version: int) -> str:
    present = [column for column in table.columns if version > UNSEALED or column is not _DIGEST]
    columns = [f"{column.name} {column.type}" for column in present]
    inside = ", ".join([*columns, *filter(None, [table.constraint])])
    # Two processes may create one file at once: the second finds the tables.
    return f"CREATE TABLE IF NOT EXISTS {table.name} ({inside}) {table.ending}".rstrip()


def digest_of(*values: Value) -> bytes:
    """Return the digest of a table row, over type, length and value of each column in order.

    >>> digest_of(b"key", None, 1.5).hex()
    '1bd0ddc439789190'
    """
    parts: list[bytes] = []
    for value in values:
        if value is None:
            parts.append(b"-")
        elif isinstance(value, bytes):
            parts += (b"%d:" % len(value), value)
        elif isinstance(value, float):
            parts += (b"f", struct.pack("<d", value))
        else:
            parts.append(b"i%d;" % value)
    return hashlib.blake2b(b"".join(parts), digest_size=_DIGEST_BYTES).digest()


_EXACT_BEFORE = "byte_index_exact_"
"""Former prefix of the exact ByteIndex's columns, when the plain name was the sampled one's."""


def renamed_row(row: str) -> str:
    """Return a row of a version 1 store or saved results with present column names.

    >>> renamed_row('{"byte_index_all_ms": 200.0, "byte_index_exact_all_ms": 150.5, "page": "p"}')
    '{"byte_index_sampled_all_ms": 200.0, "byte_index_all_ms": 150.5, "page": "p"}'
    """
    columns = json.loads(row).items()
    return json.dumps({_column_now(name): value for name, value in columns})


def _column_now(name: str) -> str:
    if name.startswith(_EXACT_BEFORE):
        return name.replace(_EXACT_BEFORE, "byte_index_", 1)
    return name.replace("byte_index_", "byte_index_sampled_", 1)


MEMORY = ":memory:"
_BUSY_MS = 60_000
_AGAIN_S = 0.01
_CELL_BYTES = 64 << 20
"""Longest text or blob that may be read or written."""
_STEPS = 50_000
"""Steps of SQLite's virtual machine, a few ms, between checks of the clock and signals."""
_LEAST_S, _BYTES_PER_S = 5.0, 1_000_000
"""Limit on a query's processor time per byte: SQLite scans files at least ten times as fast."""
Row = tuple[Any, ...]


class StoreError(H3SimError):
    """Store that cannot be read or written; the message has advice."""


class StoreInputError(StoreError, InputError):
    """Wrong input, such as a path to something that is not a store."""

    def __init__(self, problems: str | Iterable[ValidationIssue], source: str = "") -> None:
        given = (
            [ValidationIssue(key="", message=problems)] if isinstance(problems, str) else problems
        )
        InputError.__init__(self, given, source)


class _Watch:
    """Watchdog that ends queries after a time limit or a signal.

    SQLite discards exceptions of its progress callback, so a generator keeps them: Python runs
    signal handlers where the generator resumes, inside its `try`.
    """

    def __init__(self, size_bytes: int) -> None:
        self.limit_s = _LEAST_S + size_bytes / _BYTES_PER_S
        self.raised: BaseException | None = None
        self._give_up_at = 0.0

    def begin(self) -> None:
        """Restart the time limit for a query or its next row."""
        # Processor time: waiting for a lock or a disk does not count.
        self._give_up_at = time.thread_time() + self.limit_s

    def looks(self) -> Iterator[int]:
        """Yield at each check whether the query must end."""
        while True:
            try:
                yield time.thread_time() > self._give_up_at
            except GeneratorExit:
                return
            except BaseException as error:  # noqa: BLE001 - raised again by the query's caller
                self.raised = error
                yield True


def guarded(database: sqlite3.Connection, size_bytes: int) -> _Watch:
    """Restrict *database* and its resources, and return the watchdog of its queries."""
    database.text_factory = bytes  # decoded after the digest of the bytes is checked
    database.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _CELL_BYTES)
    watch = _Watch(size_bytes)
    watch.begin()
    database.set_progress_handler(watch.looks().__next__, _STEPS)
    database.execute("PRAGMA trusted_schema = OFF")
    database.execute("PRAGMA cell_size_check = ON")
    return watch


def database_in(path: str, *, may_write: bool) -> sqlite3.Connection:
    """Return a connection to the file at *path*, created if it may be written.

    Raises:
        StoreInputError: if the file cannot exist.
    """
    if path == MEMORY:
        return sqlite3.connect(MEMORY, check_same_thread=False)
    if not may_write:
        if not Path(path).is_file():
            raise _refused(path, "there is no such file")
        uri = f"{Path(path).absolute().as_uri()}?mode=ro"
        # Without write access SQLite cannot create the WAL files that coordinate readers and a
        # writer. If there are none, there is no writer.
        folder, log = Path(path).absolute().parent, Path(f"{path}-wal")
        if not os.access(folder, os.W_OK) and not log.exists():
            uri += "&immutable=1"
        return sqlite3.connect(uri, uri=True, check_same_thread=False)
    if not Path(path).absolute().parent.is_dir():
        raise _refused(path, f"there is no folder {format_value(str(Path(path).parent))}")
    if Path(path).is_dir():
        raise _refused(path, "is a folder")
    return sqlite3.connect(path, check_same_thread=False)


class StoreFile:
    """Database at *path* whose schema has been checked to be that of a store.

    Attributes:
        version: version of the format; an unsealed store has the previous one.

    Raises:
        StoreError: if it is no store, of another version, or cannot be opened.
    """

    def __init__(self, path: str, *, may_write: bool, may_be_unsealed: bool = False) -> None:
        self.path = path
        self._may_write = may_write
        self._watch = _Watch(0)
        try:
            self._open_database(may_be_unsealed)
        except BaseException:
            self.close()
            raise

    def _open_database(self, may_be_unsealed: bool) -> None:
        """Open the file, and refuse one of another format or version."""
        path, may_write = self.path, self._may_write
        with self.with_advice():
            try:
                self.db = database_in(path, may_write=may_write)
                size_bytes = 0 if path == MEMORY else Path(path).stat().st_size
            except StoreInputError:  # also a ValueError
                raise
            except (ValueError, OSError) as error:
                raise self.refused("cannot be the path of a file") from error
            self._watch = guarded(self.db, size_bytes)
            self.db.execute(f"PRAGMA busy_timeout = {_BUSY_MS}")
            self.version = self._checked_version()
            if self.version == UNSEALED and not may_be_unsealed:
                raise self.refused(
                    f"is h3sim-store/{UNSEALED}, whose rows have no digests:"
                    " `h3sim store repair` adds them"
                )
            self._prepare()

    def close(self) -> None:
        """Close the file; what was written is in it."""
        if hasattr(self, "db"):  # it could be opened
            self.db.close()

    def _checked_version(self) -> int:
        """Return the version of the format, 0 for an empty file; refuse other files."""
        found = _schema(self.db)
        if not found:
            return 0
        (known,) = self.db.execute("PRAGMA application_id").fetchone()
        (version,) = self.db.execute("PRAGMA user_version").fetchone()
        if known != APPLICATION_ID:
            raise self.refused("is not a store of studies: use another file")
        if version not in {UNSEALED, VERSION}:
            raise self.refused(
                f"is h3sim-store/{version}, and this h3sim reads {FORMAT}:"
                " use another file, or export its rows with the h3sim that made it"
            )
        if found != _expected_schema(version):
            raise self.refused(
                "does not have the tables of a store: it is damaged or from another program:"
                " use another file"
            )
        return int(version)

    def _prepare(self) -> None:
        """Create the tables of a new file and enable write-ahead logging."""
        if not self._may_write:
            if not self.version:
                raise self.refused("is empty")
            self.db.execute("PRAGMA query_only = ON")
            return
        if not self.version:
            # First of all, so that a file that was begun is either empty or a store. Two may make
            # one file at once: IMMEDIATE lets one wait, and then find the tables there.
            self.db.executescript(f"BEGIN IMMEDIATE;{script()}COMMIT;")
            self.version = VERSION
        if self.path != MEMORY:
            self._log_ahead()
            # With WAL, commits survive the death of a process without waiting for the disk.
            self.db.execute("PRAGMA synchronous = NORMAL")

    def _log_ahead(self) -> None:
        """Enable write-ahead logging (WAL), so that readers and a writer do not block each other.

        If two processes switch one new file at once, SQLite refuses the second regardless of its
        time-out, to avoid a deadlock. So it is retried.
        """
        give_up_at = time.monotonic() + _BUSY_MS / 1000
        while True:
            try:
                self.db.execute("PRAGMA journal_mode = WAL")
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY:
                    raise
                if time.monotonic() > give_up_at:
                    raise
                time.sleep(_AGAIN_S)
            else:
                return

    def refused(self, message: str) -> StoreInputError:
        """Return the error that the file is unsuitable."""
        return _refused(self.path, message)

    def damaged(self, what: str) -> StoreError:
        """Return the error that *what* is damaged, with advice."""
        return StoreError(f"{shown_path(self.path)}: {what}{_REPAIR_ADVICE}")

    @contextmanager
    def with_advice(self) -> Iterator[None]:
        """Convert errors of SQLite into errors with advice."""
        self._watch.begin()
        try:
            yield
        except UnicodeDecodeError as error:  # in a quotation by SQLite
            raise self.damaged("its tables are not valid text") from error
        except sqlite3.Error as error:
            if (raised := self._watch.raised) is not None:
                self._watch.raised = None
                raise raised from None
            name = getattr(error, "sqlite_errorname", "")
            advice = _ADVICE.get(name, "")
            if name == "SQLITE_NOTADB":
                raise self.refused(f"{escape_control(str(error))}{advice}") from error
            if name == "SQLITE_INTERRUPT":
                took = f"a query took more than {self._watch.limit_s:,.0f} s of processor time"
                raise self.damaged(took) from error
            # For a damaged file SQLite quotes arbitrary bytes that it could not read.
            message = f"{escape_control(str(error))}{advice}; finished loads are kept"
            raise StoreError(f"{shown_path(self.path)}: {message}") from error

    def rows(self, query: str, arguments: Sequence[Any] = ()) -> Iterator[Row]:
        """Yield the rows of *query*; texts are bytes."""
        with self.with_advice():
            for row in self.db.execute(query, arguments):
                yield row
                self._watch.begin()

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Run the block in one write transaction."""
        with self.with_advice(), self.db:
            self.db.execute("BEGIN IMMEDIATE")
            yield

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Lock the file exclusively; wait until others release it."""
        self.db.execute("PRAGMA locking_mode = EXCLUSIVE")
        self.db.execute("BEGIN EXCLUSIVE")
        self.db.commit()  # keeps the lock
        self.version = self._checked_version()
        try:
            yield
        finally:
            self.db.execute("PRAGMA locking_mode = NORMAL")
            self.db.execute("SELECT count(*) FROM sqlite_master")  # releases the lock

    def go_on(self) -> None:
        """Restart the time limit for the next row of a query."""
        self._watch.begin()

    def is_ended_by(self, error: sqlite3.Error) -> bool:
        """Return whether *error* interrupts an operation rather than reporting damage."""
        return getattr(error, "sqlite_errorname", "") in {"SQLITE_INTERRUPT", "SQLITE_BUSY"}

    def size_bytes(self) -> int:
        """Return the size of the file in bytes."""
        (n,), (size,) = (
            self.db.execute(f"PRAGMA {name}").fetchone() for name in ("page_count", "page_size")
        )
        return int(n * size)


def _refused(path: str, message: str) -> StoreInputError:
    return StoreInputError(message, shown_path(path))


def _schema(database: sqlite3.Connection, n_most: int = 100) -> list[Row]:
    """Return names and SQL of all tables, indexes, views and triggers of a database."""
    query = "SELECT type, name, tbl_name, sql FROM sqlite_master"
    return sorted(database.execute(query).fetchmany(n_most), key=repr)


@cache
def _expected_schema(version: int) -> list[Row]:
    """Return the schema of a new store of this *version*."""
    database = sqlite3.connect(MEMORY)
    database.text_factory = bytes
    database.executescript(script(version))
    found = _schema(database)
    database.close()
    return found


_REPAIR_ADVICE = (
    ": `h3sim store verify` shows where, and `h3sim store repair` keeps the intact rows"
)
_ADVICE = {
    "SQLITE_FULL": ": the disk is full: free some space, then run the same again",
    "SQLITE_READONLY": ": the file or its folder is read-only: use another file",
    "SQLITE_CANTOPEN": ": cannot be opened: its folder must exist and be writable",
    "SQLITE_NOTADB": ": use another file",
    "SQLITE_BUSY": ": another process is writing to it: wait, or use another file",
    "SQLITE_IOERR_WRITE": ": the disk may be full: free some space, then run the same again",
    "SQLITE_TOOBIG": f": texts are limited to {_CELL_BYTES >> 20} MiB",
    "SQLITE_CORRUPT": f": the file is damaged{_REPAIR_ADVICE}",
}
