"""The store of a study (`h3sim-store/2`): the outcome of each load, in one crash-safe SQLite file.

Only the driver process writes, with write-ahead logging: committed data survives a kill of any
process. Cells are content-addressed (page, scheme, network, every setting, seed, h3sim's model and
plug-ins), so studies share equal cells. Each row of a table has a digest; rows without a valid one
are neither read nor reused.

A file from elsewhere may contain anything: no code in it is run, queries have a time limit, and
only the tables of the format are read.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import os
import sqlite3
import struct
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, Self, TypeAlias

from h3sim.errors import InputError, ValidationIssue
from h3sim.schema.arguments import PATH, check_arguments
from h3sim.schema.errors import format_value
from h3sim.schema.files import shown_path
from h3sim.study.rows import StoreError, row_problem
from h3sim.text import escape_control

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


Keep: TypeAlias = Callable[[StoreTable, Sequence[Any]], object]


_CHUNK = 500
"""Number of keys in a query: SQLite before 3.32 allows 999 parameters."""
_CELL, _STUDY = (", ".join(table.names) for table in TABLES[:2])


class CellOutcome(NamedTuple):
    """Outcome of a cell: a row and its resources as JSON, or an error."""

    key: bytes
    model: str
    row: str | None
    resources: str | None
    error: str | None
    seconds: float


@dataclass(frozen=True, kw_only=True)
class StoredStudy:
    """Study in a store, with its numbers of finished and failed loads."""

    id: int
    name: str
    n: int
    axes: tuple[str, ...]
    done: int
    failed: int


class Store:
    """Store in the file at *path*, created if missing; ":memory:" keeps everything in memory.

    Raises:
        StoreError: if it is not a store, of another version, or cannot be opened.
    """

    def __init__(self, path: str | Path, *, may_write: bool = True) -> None:
        check_arguments(InputError, store=(PATH, path))
        self.path = os.fspath(path)
        self._file = StoreFile(self.path, may_write=may_write, may_be_unsealed=may_write)
        if self._file.version == UNSEALED:
            seal(self._file)

    # Used by sweeps

    def begin_study(self, token: str, name: str, n: int, axes: Sequence[str]) -> int:
        """Return the number of the study identified by *token*, new or existing."""
        texts = [text.encode() for text in (token, name, json.dumps(list(axes)))]
        with self._file.writing():
            known = {values[1]: values[0] for values in self._studies()}
            if texts[0] in known:
                return int(known[texts[0]])
            study = max(known.values(), default=0) + 1
            values = (study, texts[0], texts[1], n, texts[2])
            self._file.db.execute(
                "INSERT INTO studies VALUES (?, ?, ?, ?, ?, ?)",
                (study, token, name, n, texts[2].decode(), digest_of(*values)),
            )
        return study

    def register_keys(self, study: int, first: int, keys: Iterable[bytes]) -> None:
        """Register *keys* as the study's cells from *first* on."""
        entries = ((study, first + n, key) for n, key in enumerate(keys))
        rows = ((*register_keys, digest_of(*register_keys)) for register_keys in entries)
        with self._file.writing():
            # OR IGNORE: another process may run the same study and have registered them.
            self._file.db.executemany("INSERT OR IGNORE INTO study_cells VALUES (?, ?, ?, ?)", rows)

    def keys_of(self, study: int, first: int, n: int) -> list[bytes]:
        """Return the registered keys of *n* cells of the study from *first* on.

        Raises:
            StoreError: if one is damaged.
        """
        query = (
            "SELECT study, position, key, digest FROM study_cells"
            " WHERE study = ? AND position >= ? AND position < ? ORDER BY position"
        )
        keys, before = [], -1
        for register_keys in self._file.rows(query, (study, first, first + n)):
            before = self._checked_entry(register_keys, study, before)
            keys.append(register_keys[2])
        return keys

    def known(self, keys: Sequence[bytes]) -> dict[bytes, CellOutcome]:
        """Return the stored outcomes, by key.

        Raises:
            StoreError: if one is damaged.
        """
        found: dict[bytes, CellOutcome] = {}
        for start in range(0, len(keys), _CHUNK):
            some = keys[start : start + _CHUNK]
            marks = ",".join("?" * len(some))
            query = f"SELECT {_CELL} FROM cells WHERE key IN ({marks})"  # noqa: S608 - marks
            for values in self._file.rows(query, some):
                found[values[0]] = self._outcome(values)
        return found

    def put(self, outcomes: Iterable[CellOutcome]) -> None:
        """Store outcomes of cells in one transaction.

        Better outcomes that another process stored meanwhile are kept: a failure does not replace
        a row, nor does a row without resources replace one with them.
        """
        query = f"SELECT {_CELL} FROM cells WHERE key = ?"  # noqa: S608 - our names
        with self._file.writing():
            for outcome in outcomes:
                values = self._file.db.execute(query, (outcome.key,)).fetchone()
                known = None if values is None else self._outcome(values)
                if known is not None and known.row is not None:
                    if outcome.row is None:
                        continue
                    if outcome.resources is None and outcome.row == known.row:
                        outcome = outcome._replace(resources=known.resources)
                digest = digest_of(*(v.encode() if isinstance(v, str) else v for v in outcome))
                self._file.db.execute(
                    "INSERT OR REPLACE INTO cells VALUES (?, ?, ?, ?, ?, ?, ?)", (*outcome, digest)
                )

    # Queries and maintenance

    def studies(self) -> list[StoredStudy]:
        """Return the studies, in the order in which they were begun.

        Raises:
            StoreError: if one, or a cell of one, is damaged.
        """
        found = []
        for study, _, name, n, axes in self._studies():
            outcomes = [row is not None for row, _, _ in self.rows(study)]
            done, names = sum(outcomes), tuple(json.loads(axes))
            counts = {"done": done, "failed": len(outcomes) - done}
            found.append(StoredStudy(id=study, name=name.decode(), n=n, axes=names, **counts))
        return found

    def axes_of(self, study: int | None = None) -> tuple[int, tuple[str, ...]]:
        """Return the number and the axes of a *study* (default: the last).

        Raises:
            StoreError: if there is no such study, or one is damaged.
        """
        known = {values[0]: values[4] for values in self._studies()}
        number = max(known, default=0) if study is None else study
        if number not in known:
            message = f"has no study {number}; there are {', '.join(map(str, known)) or 'none'}"
            raise StoreInputError(message, shown_path(self.path))
        return number, tuple(json.loads(known[number]))

    def _studies(self) -> list[tuple[Any, ...]]:
        """Return the rows of all studies, without digests."""
        file = self._file
        if [*file.rows("PRAGMA integrity_check(studies)")] != [(b"ok",)]:
            raise file.damaged("the list of its studies is damaged")
        found = []
        for values in file.rows(f"SELECT {_STUDY} FROM studies ORDER BY id"):  # noqa: S608 - ours
            if not is_sealed(values) or study_problem(values[:-1]):
                raise file.damaged(f"study {values[0]} is damaged")
            found.append(values[:-1])
        # The number of a lost study, and with it its cells, would pass to a new one.
        ((last,),) = file.rows("SELECT max(study) FROM study_cells")
        if last is not None and last not in {values[0] for values in found}:
            raise file.damaged(f"study {last} is lost")
        return found

    def rows(self, study: int) -> Iterator[tuple[str | None, str | None, str | None]]:
        """Yield row, resources and error of each finished cell, in the order of the study.

        Raises:
            StoreError: if one is damaged.
        """
        cell = ", ".join(f"cells.{name}" for name in TABLES[0].names)
        query = (
            "SELECT study, position, study_cells.key, study_cells.digest,"  # noqa: S608 - ours
            f" {cell} FROM study_cells LEFT JOIN cells ON cells.key = study_cells.key"
            " WHERE study = ? ORDER BY position"
        )
        before = -1
        for values in self._file.rows(query, (study,)):
            before = self._checked_entry(values[:4], study, before)
            if values[4] is not None:
                outcome = self._outcome(values[4:])
                if outcome.key != values[2]:
                    raise self._file.damaged(f"load {before} of study {study} is damaged")
                yield outcome.row, outcome.resources, outcome.error

    def _checked_entry(self, register_keys: Sequence[Any], study: int, before: int) -> int:
        """Return the position in a row of `study_cells`, which must exceed the one *before*."""
        # Damaged pages may refer to others twice: then rows are valid but repeated.
        if not is_sealed(register_keys) or register_keys[0] != study or register_keys[1] <= before:
            raise self._file.damaged(f"the list of loads of study {study} is damaged")
        return int(register_keys[1])

    def _outcome(self, values: Sequence[Any]) -> CellOutcome:
        """Return the outcome in a row of `cells` after checking its digest."""
        cell = values[:-1]
        if not is_sealed(values) or cell_problem(cell):
            raise self._file.damaged(f"cell {key_text(cell[0])} is damaged")
        key, model, *texts, seconds = cell
        row, resources, error = (None if text is None else text.decode() for text in texts)
        return CellOutcome(key, model.decode(), row, resources, error, seconds)

    def counts(self) -> list[tuple[str, int, int, float]]:
        """Return for each model of h3sim the cells done, the cells failed and their seconds.

        Raises:
            StoreError: if a cell is damaged.
        """
        found: dict[str, list[Any]] = {}
        before = b""
        for values in self._file.rows(f"SELECT {_CELL} FROM cells ORDER BY key"):  # noqa: S608
            outcome = self._outcome(values)
            if outcome.key <= before:
                raise self._file.damaged(f"cell {key_text(outcome.key)} is damaged")
            before = outcome.key
            sums = found.setdefault(outcome.model, [0, 0, 0.0])
            sums[outcome.error is not None] += 1
            sums[2] += outcome.seconds
        return [(model, *sums) for model, sums in sorted(found.items())]

    def damaged(self, what: str) -> StoreError:
        """Return the error that *what* is damaged, with advice."""
        return self._file.damaged(what)

    def verify(self) -> list[str]:
        """Return the damage, one line per row of any table; an empty list if there is none."""
        with self._file.with_advice():
            return _examined(self._file, lambda _table, _values: None)

    def prune(self, *, keep_model: str | None = None, failed: bool = False) -> int:
        """Delete cells of models other than *keep_model* and, with *failed*, failed cells.

        Returns the number of deleted cells.
        """
        conditions = []
        if keep_model is not None:
            conditions.append("model != :model")
        if failed:
            conditions.append("error IS NOT NULL")
        if not conditions:
            return 0
        query = f"DELETE FROM cells WHERE {' OR '.join(conditions)}"  # noqa: S608 - conditions of ours
        with self._file.with_advice():
            with self._file.db as db:
                n = db.execute(query, {"model": keep_model}).rowcount
            db.execute("VACUUM")  # SQLite refuses it in a transaction
        return int(n)

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def __del__(self) -> None:
        if hasattr(self, "_file"):  # opening may have failed
            self.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


_CELLS, _STUDIES, _ENTRIES = TABLES
_MISMATCH = "does not match its digest"
_ENTRY_BYTES = 4
"""Smallest size of a table row in the file."""


def is_sealed(values: Sequence[Any]) -> bool:
    """Return whether the last of *values* is the digest of the others."""
    *row, digest = values
    return bool(digest_of(*row) == digest)


def cell_problem(values: Sequence[Any]) -> str | None:
    """Return the error in a row of `cells` other than its digest, or None."""
    key, model, row, resources, error, seconds = values
    texts = (model, *(text for text in (row, resources, error) if text is not None))
    if not (isinstance(key, bytes) and _are_texts(*texts) and isinstance(seconds, float)):
        return "has values of wrong types"
    if (row is None) == (error is None):
        return "has neither a row nor an error, or both"
    return None


def study_problem(values: Sequence[Any]) -> str | None:
    """Return the error in a row of `studies` other than its digest, or None."""
    number, token, name, n, axes = values
    if not (isinstance(number, int) and isinstance(n, int) and _are_texts(token, name, axes)):
        return "has values of wrong types"
    names = _json(axes)
    if not isinstance(names, list) or not all(isinstance(axis, str) for axis in names):
        return "has axes that are not a list of names"
    return None


def _content_problem(values: Sequence[Any]) -> str | None:
    """Return the error in the JSON of a row of `cells`, a slower check, or None."""
    _, _, row, resources, _, _ = values
    if row is not None:
        columns = _json(row)
        if not isinstance(columns, dict):
            return "has a row that is not a JSON object"
        if problem := row_problem(columns):
            return f"has a row that cannot be read: {problem}"
    if resources is not None and not isinstance(_json(resources), list):
        return "has resources that are not a JSON list"
    return None


def _entry_problem(values: Sequence[Any]) -> str | None:
    """Return the error in a row of `study_cells` other than its digest, or None."""
    is_sound = [*map(type, values)] == [int, int, bytes]
    return None if is_sound else "has values of wrong types"


def _are_texts(*values: Any) -> bool:
    try:
        return all(isinstance(value, bytes) and value.decode() is not None for value in values)
    except UnicodeDecodeError:
        return False


def _json(text: bytes) -> Any:
    try:
        return json.loads(text.decode())
    except (ValueError, RecursionError):
        return None


def repair_store(path: str) -> list[str]:
    """Rewrite the store at *path* without damaged rows, and return a list of these.

    Digests are added to a store without them.

    Raises:
        StoreError: if the file cannot be read or written at all.
    """
    StoreFile(path, may_write=False, may_be_unsealed=True).close()  # a missing store is not created
    file = StoreFile(path, may_write=True, may_be_unsealed=True)
    try:
        return _rewritten(file)
    finally:
        file.close()


def seal(file: StoreFile) -> None:
    """Add digests to a store without them.

    Raises:
        StoreError: if a row is damaged.
    """
    _rewritten(file, may_drop=False)


def _rewritten(file: StoreFile, *, may_drop: bool = True) -> list[str]:
    """Rewrite the store with its intact rows if necessary; return the dropped rows."""
    with file.with_advice(), file.alone(), _fresh_store(file) as fresh:

        def keep(table: StoreTable, values: Sequence[Any]) -> None:
            if file.version == UNSEALED and table is _CELLS and values[2] is not None:
                key, model, row, *others = values
                values = (key, model, renamed_row(row.decode()).encode(), *others)
            marks = ", ".join("?" * len(table.columns))
            # OR IGNORE: the pass from the other end meets the same rows again.
            fresh.execute(
                f"INSERT OR IGNORE INTO {table.name} VALUES ({marks})",  # noqa: S608 - ours
                (*_as_declared(table, values), digest_of(*values)),
            )

        found = _examined(file, keep)
        if found and not may_drop:
            raise file.damaged(found[0])
        fresh.commit()
        if found or file.version != VERSION:
            fresh.backup(file.db)
            file.version = VERSION
    return found


@contextmanager
def _fresh_store(file: StoreFile) -> Iterator[sqlite3.Connection]:
    """Yield an empty temporary store on the same disk."""
    folder = None if file.path == MEMORY else Path(file.path).absolute().parent
    (page_bytes,) = file.db.execute("PRAGMA page_size").fetchone()
    with tempfile.TemporaryDirectory(prefix=".h3sim-store-", dir=folder) as draft:
        fresh = sqlite3.connect(Path(draft) / "fresh.db")
        # SQLite's backup into a file with WAL requires equal page sizes.
        fresh.execute(f"PRAGMA page_size = {page_bytes}")
        fresh.execute("PRAGMA journal_mode = OFF")
        fresh.execute("PRAGMA synchronous = OFF")
        fresh.executescript(script())
        try:
            yield fresh
        finally:
            fresh.close()


def _as_declared(table: StoreTable, values: Sequence[Any]) -> list[Any]:
    """Return *values* with text columns decoded."""
    return [
        value.decode() if isinstance(value, bytes) and column.type.startswith("TEXT") else value
        for column, value in zip(table.columns, values, strict=False)
    ]


def _examined(file: StoreFile, keep: Keep) -> list[str]:
    """Return the damage of a store, and pass each intact row to *keep*."""
    lines = (line for line in _integrity_lines(file) if line != b"ok")
    found = [escape_control(line.decode(errors="replace")) for line in lines]
    studies: set[int] = set()
    for values, problem in _entries(file, _STUDIES, study_problem):
        if problem is None:
            studies.add(values[0])
            keep(_STUDIES, values)
        else:
            found.append(f"study {key_text(values[0])}: {problem}")
    bad: dict[bytes, str] = {}
    for values, problem in _entries(file, _CELLS, cell_problem):
        problem = problem or _content_problem(values)
        if problem is None:
            keep(_CELLS, values)
        else:
            bad[values[0]] = problem
    entries: dict[bytes, str] = {}
    for values, problem in _entries(file, _ENTRIES, _entry_problem):
        study, position, key = values
        name = f"load {key_text(position)} of study {key_text(study)}"
        if problem is None and study not in studies:
            problem = "belongs to no study"
        if problem is None:
            keep(_ENTRIES, values)
            if key in bad:
                entries.setdefault(key, f"{name}, ")
        else:
            found.append(f"{name}: {problem}")
    found += (f"{entries.get(key, '')}cell {key_text(key)}: {text}" for key, text in bad.items())
    return list(dict.fromkeys(found))


def _integrity_lines(file: StoreFile) -> Iterator[Any]:
    """Yield the lines of SQLite's integrity check."""
    try:
        for (line,) in file.db.execute("PRAGMA integrity_check"):
            yield from line.splitlines()
    except sqlite3.DatabaseError as error:
        if file.is_ended_by(error):
            raise
        yield str(error).encode()


def _entries(
    file: StoreFile, table: StoreTable, problem_of: Callable[[Sequence[Any]], str | None]
) -> Iterator[tuple[Row, str | None]]:
    """Yield the readable rows of a table without digests, each with its error or None."""
    is_sealed_store = file.version != UNSEALED
    # Damaged pages may form cycles.
    n_most = file.size_bytes() // _ENTRY_BYTES
    names = table.names if is_sealed_store else table.names[:-1]
    key = names[:2] if table is _ENTRIES else names[:1]
    # From each end: an unreadable page ends a pass.
    for direction in ("", " DESC"):
        order = ", ".join(f"{name}{direction}" for name in key)
        query = f"SELECT {', '.join(names)} FROM {table.name} ORDER BY {order}"  # noqa: S608 - ours
        try:
            for row in itertools.islice(file.db.execute(query), n_most):
                file.go_on()
                values = row[:-1] if is_sealed_store else row
                problem = problem_of(values)
                if problem is None and is_sealed_store and not is_sealed(row):
                    problem = _MISMATCH
                yield values, problem
            else:
                return
        except sqlite3.DatabaseError as error:
            if file.is_ended_by(error):
                raise


def key_text(value: Any) -> str:
    """Return the display form of a key of any type."""
    return value.hex() if isinstance(value, bytes) else escape_control(str(value))
