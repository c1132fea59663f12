"""The store of a study (`h3sim-store/3`): the outcome of each load, in one crash-safe SQLite file.

Only the driver process writes, with write-ahead logging: committed data survives a kill of any
process. Cells are content-addressed (page, scheme, network, every setting, seed, h3sim's model and
plug-ins), so studies share equal cells. Each row of a table has a digest; rows without a valid one
are neither read nor reused.

A file from elsewhere may contain anything: no code in it is run, and only the tables of the format
are read.
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
import weakref
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, Self, TypeAlias

from h3sim.schema.arguments import PATH, check_arguments
from h3sim.schema.errors import format_value
from h3sim.schema.files import shown_path
from h3sim.study.packed_rows import MAX_TEXT_BYTES, pack, unpack
from h3sim.study.rows import StoreError, row_problem
from h3sim.values.errors import InputError, ValidationIssue
from h3sim.values.text import escape_control

VERSION = 3
"""SQLite's `user_version`, the version of the format."""
FORMAT = f"h3sim-store/{VERSION}"
APPLICATION_ID = 0x68337331  # "h3s1"
"""SQLite's `application_id`, which identifies stores among other databases."""


_DIGEST_BYTES = 8
"""Length of the digest of a cell: it guards against damage, not against an attacker."""
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
    options: str = ""
    """SQL after the columns."""

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
            StoreColumn(
                "row", "BLOB", "the row of the load, a JSON object, packed; NULL if it failed"
            ),
            StoreColumn(
                "resources",
                "BLOB",
                "rows of its resources, a JSON list, packed; NULL if not requested",
            ),
            StoreColumn(
                "error", "TEXT", "description and error of a failed load; NULL if it succeeded"
            ),
            StoreColumn("seconds", "REAL", "run time"),
            _DIGEST,
        ),
        options=_WITHOUT_ROWID,
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
        options=_WITHOUT_ROWID,
    ),
)


def script() -> str:
    """Return the SQL that creates the tables of a new store and marks it as one."""
    statements = [
        f"PRAGMA application_id = {APPLICATION_ID}",
        f"PRAGMA user_version = {VERSION}",
        *(_create_statement(table) for table in TABLES),
    ]
    return "".join(f"{statement};\n" for statement in statements)


def _create_statement(table: StoreTable) -> str:
    columns = [f"{column.name} {column.type}" for column in table.columns]
    definitions = ", ".join([*columns, *filter(None, [table.constraint])])
    # IF NOT EXISTS: two processes may create one file at once.
    return f"CREATE TABLE IF NOT EXISTS {table.name} ({definitions}) {table.options}".rstrip()


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


KEPT_SUFFIX = ".kept"
"""End of the name of the folder of a store's files of loads, beside it."""
MEMORY = ":memory:"
"""SQLite's name of a database without a file."""
_BUSY_MS = 60_000
"""Longest wait for another process that is writing."""
_RETRY_PAUSE_S = 0.01
"""Pause before a locked database is tried again."""
Row = tuple[Any, ...]


class StoreInputError(StoreError, InputError):
    """Wrong input, such as a path to something that is not a store."""

    def __init__(self, problems: str | Iterable[ValidationIssue], source: str = "") -> None:
        if isinstance(problems, str):
            problems = [ValidationIssue(key="", message=problems)]
        InputError.__init__(self, problems, source)


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


def _close(db: sqlite3.Connection, path: str, may_write: bool) -> None:
    """Close the database *db* at *path*, without leaving files beside it.

    SQLite deletes the files of its log with the last connection, unless that may only read. Where
    the log is empty, another connection that may write does it, and changes nothing.
    """
    db.close()
    log = Path(f"{path}-wal")
    if may_write or not log.exists() or log.stat().st_size:
        return
    uri = f"{Path(path).absolute().as_uri()}?mode=rw"
    with (
        suppress(sqlite3.Error),
        closing(sqlite3.connect(uri, uri=True)) as last,
    ):
        last.execute("SELECT name FROM sqlite_schema").fetchone()


class StoreFile:
    """Database at *path* whose schema has been checked to be that of a store.

    Raises:
        StoreError: if it is no store, of another version, or cannot be opened.
    """

    def __init__(self, path: str, *, may_write: bool) -> None:
        self.path = path
        self._may_write = may_write
        try:
            self._open_database()
        except BaseException:
            self.close()
            raise

    def _open_database(self) -> None:
        """Open the file, and refuse one of another format or version."""
        path, may_write = self.path, self._may_write
        with self.with_advice():
            try:
                self.db = database_in(path, may_write=may_write)
            except StoreInputError:  # also a ValueError
                raise
            except (ValueError, OSError) as error:
                raise self.refused("cannot be the path of a file") from error
            self._closer = weakref.finalize(self, _close, self.db, path, may_write)
            self.db.text_factory = bytes  # decoded after the digest of the bytes is checked
            self.db.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MAX_TEXT_BYTES)
            self.db.execute("PRAGMA trusted_schema = OFF")
            self.db.execute("PRAGMA cell_size_check = ON")
            self.db.execute(f"PRAGMA busy_timeout = {_BUSY_MS}")
            self._prepare(is_empty=not self._is_store())

    def close(self) -> None:
        """Close the file; everything written is in it.

        A file that is not closed is closed with its last reference, or when the program ends.
        """
        if hasattr(self, "db"):  # opening may have failed
            self._closer()

    def _is_store(self) -> bool:
        """Return True for a store and False for an empty file; refuse other files."""
        schema = _schema(self.db)
        if not schema:
            return False
        (application_id,) = self.db.execute("PRAGMA application_id").fetchone()
        (version,) = self.db.execute("PRAGMA user_version").fetchone()
        if application_id != APPLICATION_ID:
            raise self.refused("is not a store of studies: use another file")
        if version != VERSION:
            raise self.refused(
                f"is h3sim-store/{version}, and this h3sim reads {FORMAT}: use another file"
            )
        if schema != _expected_schema():
            raise self.refused(
                "does not have the tables of a store: it is damaged or from another program:"
                " use another file"
            )
        return True

    def _prepare(self, *, is_empty: bool) -> None:
        """Create the tables of a new file and enable write-ahead logging."""
        if not self._may_write:
            if is_empty:
                raise self.refused("is empty")
            self.db.execute("PRAGMA query_only = ON")
            return
        if is_empty:
            # In one transaction, so that an interrupt leaves an empty file or a store. If two
            # processes create one file at once, IMMEDIATE lets one wait until the tables exist.
            self.db.executescript(f"BEGIN IMMEDIATE;{script()}COMMIT;")
        if self.path != MEMORY:
            self._enable_write_ahead_log()
            # With WAL, commits survive the death of a process without waiting for the disk.
            self.db.execute("PRAGMA synchronous = NORMAL")

    def _enable_write_ahead_log(self) -> None:
        """Enable write-ahead logging (WAL), so that readers and a writer do not block each other.

        If two processes switch one new file at once, SQLite refuses the second regardless of its
        time-out, to avoid a deadlock. So it is retried.
        """
        deadline_s = time.monotonic() + _BUSY_MS / 1000
        while True:
            try:
                self.db.execute("PRAGMA journal_mode = WAL")
            except sqlite3.OperationalError as error:
                if not _is_busy(error) or time.monotonic() > deadline_s:
                    raise
                time.sleep(_RETRY_PAUSE_S)
            else:
                return

    def refused(self, message: str) -> StoreInputError:
        """Return an error about an unsuitable file."""
        return _refused(self.path, message)

    def damaged(self, message: str) -> StoreError:
        """Return an error about a damaged file, with advice."""
        return StoreError(f"{shown_path(self.path)}: {message}{_REPAIR_ADVICE}")

    @contextmanager
    def with_advice(self) -> Iterator[None]:
        """Convert errors of SQLite into errors with advice."""
        try:
            yield
        except UnicodeDecodeError as error:  # in a message of SQLite, which quotes the file
            raise self.damaged("its tables are not valid text") from error
        except sqlite3.Error as error:
            name = getattr(error, "sqlite_errorname", "")
            advice = _ADVICE_BY_ERROR.get(name, "")
            if name == "SQLITE_NOTADB":
                raise self.refused(f"{escape_control(str(error))}{advice}") from error
            # The message may quote any bytes of a damaged file.
            message = f"{escape_control(str(error))}{advice}; finished loads are kept"
            raise StoreError(f"{shown_path(self.path)}: {message}") from error

    def rows(self, query: str, arguments: Sequence[Any] = ()) -> Iterator[Row]:
        """Yield the rows of *query*; texts are bytes."""
        with self.with_advice():
            yield from self.db.execute(query, arguments)

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Run the block in one write transaction."""
        with self.with_advice(), self.db:
            self.db.execute("BEGIN IMMEDIATE")
            yield

    @contextmanager
    def exclusive_lock(self) -> Iterator[None]:
        """Lock the file exclusively; wait until others release it."""
        self.db.execute("PRAGMA locking_mode = EXCLUSIVE")
        self.db.execute("BEGIN EXCLUSIVE")
        self.db.commit()  # keeps the lock
        self._is_store()  # another process may have changed it meanwhile
        try:
            yield
        finally:
            self.db.execute("PRAGMA locking_mode = NORMAL")
            self.db.execute("SELECT count(*) FROM sqlite_master")  # releases the lock

    def size_bytes(self) -> int:
        """Return the size of the database in bytes."""
        (n_pages,) = self.db.execute("PRAGMA page_count").fetchone()
        (page_bytes,) = self.db.execute("PRAGMA page_size").fetchone()
        return int(n_pages * page_bytes)


def _refused(path: str, message: str) -> StoreInputError:
    return StoreInputError(message, shown_path(path))


_MAX_SCHEMA_ROWS = 100
"""Most rows of a schema that are read; that of a store has fewer."""


def _schema(database: sqlite3.Connection) -> list[Row]:
    """Return names and SQL of all tables, indexes, views and triggers of a database."""
    query = "SELECT type, name, tbl_name, sql FROM sqlite_master"
    return sorted(database.execute(query).fetchmany(_MAX_SCHEMA_ROWS), key=repr)


@cache
def _expected_schema() -> list[Row]:
    """Return the schema of a new store."""
    database = sqlite3.connect(MEMORY)
    database.text_factory = bytes
    database.executescript(script())
    schema = _schema(database)
    database.close()
    return schema


_REPAIR_ADVICE = (
    ": `h3sim store verify` shows where, and `h3sim store repair` keeps the intact rows"
)
_ADVICE_BY_ERROR = {
    "SQLITE_FULL": ": the disk is full: free some space, then run the same again",
    "SQLITE_READONLY": ": the file or its folder is read-only: use another file",
    "SQLITE_CANTOPEN": ": cannot be opened: its folder must exist and be writable",
    "SQLITE_NOTADB": ": use another file",
    "SQLITE_BUSY": ": another process is writing to it: wait, or use another file",
    "SQLITE_IOERR_WRITE": ": the disk may be full: free some space, then run the same again",
    "SQLITE_TOOBIG": f": texts are limited to {MAX_TEXT_BYTES >> 20} MiB",
    "SQLITE_CORRUPT": f": the file is damaged{_REPAIR_ADVICE}",
}


Keep: TypeAlias = Callable[[StoreTable, Sequence[Any]], object]
"""Function that receives the intact rows of a store, each with its table."""


_KEYS_PER_QUERY = 500
"""Number of keys in a query: SQLite before 3.32 allows 999 parameters."""
_MERGED = 1000
"""Number of cells that are merged together."""
_CELLS, _STUDIES, _STUDY_CELLS = TABLES
_CELL_COLUMNS, _STUDY_COLUMNS = ", ".join(_CELLS.names), ", ".join(_STUDIES.names)


_ENTRY_BYTES, _PAGE_FILL = 110, 0.72
"""Bytes of a cell in both tables besides its texts, and how full the pages of the file are."""


class CellOutcome(NamedTuple):
    """Outcome of a cell: a row and its resources as JSON, or an error."""

    key: bytes
    model: str
    row: str | None
    resources: str | None
    error: str | None
    seconds: float

    @property
    def stored_bytes(self) -> float:
        """Approximate size in the file, with the entry of its study."""
        packed = sum(len(pack(text)) for text in (self.row, self.resources) if text is not None)
        return (packed + len(self.model) + len(self.error or "") + _ENTRY_BYTES) / _PAGE_FILL


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
        self._file = StoreFile(self.path, may_write=may_write)

    # Used by sweeps

    def begin_study(self, token: str, name: str, n: int, axes: Sequence[str]) -> int:
        """Return the number of the study identified by *token*, new or existing."""
        with self._file.writing():
            study_by_token = {known_token: study for study, known_token, *_ in self._studies()}
            if token.encode() in study_by_token:
                return int(study_by_token[token.encode()])
            study = max(study_by_token.values(), default=0) + 1
            axes_text = json.dumps(list(axes))
            digest = digest_of(study, token.encode(), name.encode(), n, axes_text.encode())
            self._file.db.execute(
                "INSERT INTO studies VALUES (?, ?, ?, ?, ?, ?)",
                (study, token, name, n, axes_text, digest),
            )
        return study

    def register_keys(self, study: int, first: int, keys: Iterable[bytes]) -> None:
        """Register *keys* as the study's cells from *first* on."""
        entries = ((study, position, key) for position, key in enumerate(keys, first))
        rows = ((*entry, digest_of(*entry)) for entry in entries)
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
        keys, last_position = [], -1
        for entry in self._file.rows(query, (study, first, first + n)):
            last_position = self._checked_position(entry, study, last_position)
            _, _, key, _ = entry
            keys.append(key)
        return keys

    def known(self, keys: Sequence[bytes]) -> dict[bytes, CellOutcome]:
        """Return the stored outcomes, by key.

        Raises:
            StoreError: if one is damaged.
        """
        outcomes: dict[bytes, CellOutcome] = {}
        for start in range(0, len(keys), _KEYS_PER_QUERY):
            query_keys = keys[start : start + _KEYS_PER_QUERY]
            marks = ",".join("?" * len(query_keys))
            query = f"SELECT {_CELL_COLUMNS} FROM cells WHERE key IN ({marks})"  # noqa: S608 - marks
            for values in self._file.rows(query, query_keys):
                outcome = self._outcome(values)
                outcomes[outcome.key] = outcome
        return outcomes

    def put(self, outcomes: Iterable[CellOutcome]) -> None:
        """Store outcomes of cells in one transaction.

        Better outcomes that another process stored meanwhile are kept: a failure does not replace
        a row, nor does a row without resources replace one with them.
        """
        query = f"SELECT {_CELL_COLUMNS} FROM cells WHERE key = ?"  # noqa: S608 - our names
        with self._file.writing():
            for outcome in outcomes:
                values = self._file.db.execute(query, (outcome.key,)).fetchone()
                known = None if values is None else self._outcome(values)
                if known is not None and known.row is not None:
                    if outcome.row is None:
                        continue
                    if outcome.resources is None and outcome.row == known.row:
                        outcome = outcome._replace(resources=known.resources)
                stored = outcome._asdict()
                for name in ("row", "resources"):
                    stored[name] = self._packed(stored[name])
                digest = digest_of(
                    *(v.encode() if isinstance(v, str) else v for v in stored.values())
                )
                self._file.db.execute(
                    "INSERT OR REPLACE INTO cells VALUES (?, ?, ?, ?, ?, ?, ?)",
                    (*stored.values(), digest),
                )

    def add(self, source: Store) -> None:
        """Add the studies and cells of another store to this one.

        Raises:
            StoreError: if a cell of *source* is damaged, or has another row than here.
        """
        cells = source._file.rows(f"SELECT {_CELL_COLUMNS} FROM cells ORDER BY key")  # noqa: S608 - our names
        while batch := [source._outcome(values) for values in itertools.islice(cells, _MERGED)]:
            known = self.known([outcome.key for outcome in batch])
            for outcome in batch:
                row = known[outcome.key].row if outcome.key in known else None
                if None not in (row, outcome.row) and row != outcome.row:
                    text = (
                        f"cell {key_text(outcome.key)} has another result than in an earlier store"
                    )
                    raise StoreError(f"{shown_path(source.path)}: {text}")
            self.put(batch)
        for number, token, name, n, axes in source._studies():
            study = self.begin_study(token.decode(), name.decode(), n, json.loads(axes))
            for first in range(0, n, _MERGED):
                self.register_keys(study, first, source.keys_of(number, first, _MERGED))

    def _packed(self, text: str | None) -> bytes | None:
        if text is not None and len(text) > MAX_TEXT_BYTES:
            raise StoreError(f"{shown_path(self.path)}: {_ADVICE_BY_ERROR['SQLITE_TOOBIG'][2:]}")
        return None if text is None else pack(text)

    # Queries and maintenance

    def studies(self) -> list[StoredStudy]:
        """Return the studies, in the order in which they were begun.

        Raises:
            StoreError: if one, or a cell of one, is damaged.
        """
        studies = []
        for study, _, name, n, axes in self._studies():
            succeeded = [row is not None for row, _, _ in self.rows(study)]
            n_done = sum(succeeded)
            studies.append(
                StoredStudy(
                    id=study,
                    name=name.decode(),
                    n=n,
                    axes=tuple(json.loads(axes)),
                    done=n_done,
                    failed=len(succeeded) - n_done,
                )
            )
        return studies

    def axes_of(self, study: int | None = None) -> tuple[int, tuple[str, ...]]:
        """Return the number and the axes of a *study* (default: the last).

        Raises:
            StoreError: if there is no such study, or one is damaged.
        """
        axes_by_study = {number: axes for number, _, _, _, axes in self._studies()}
        number = max(axes_by_study, default=0) if study is None else study
        if number not in axes_by_study:
            known = ", ".join(map(str, axes_by_study)) or "none"
            message = f"has no study {number}; there are {known}"
            raise StoreInputError(message, shown_path(self.path))
        return number, tuple(json.loads(axes_by_study[number]))

    def _studies(self) -> list[tuple[Any, ...]]:
        """Return the rows of all studies, without digests."""
        file = self._file
        if [*file.rows("PRAGMA integrity_check(studies)")] != [(b"ok",)]:
            raise file.damaged("the list of its studies is damaged")
        studies = {}
        query = f"SELECT {_STUDY_COLUMNS} FROM studies ORDER BY id"  # noqa: S608 - ours
        for values in file.rows(query):
            *study, _ = values
            number = values[0]
            if not is_sealed(values) or study_problem(study):
                raise file.damaged(f"study {number} is damaged")
            studies[number] = tuple(study)
        # A new study would get the number of a lost one, and with it its cells.
        ((last,),) = file.rows("SELECT max(study) FROM study_cells")
        if last is not None and last not in studies:
            raise file.damaged(f"study {last} is lost")
        return list(studies.values())

    def rows(self, study: int) -> Iterator[tuple[str | None, str | None, str | None]]:
        """Yield row, resources and error of each finished cell, in the order of the study.

        Raises:
            StoreError: if one is damaged.
        """
        cell_columns = ", ".join(f"cells.{name}" for name in _CELLS.names)
        query = (
            "SELECT study, position, study_cells.key, study_cells.digest,"  # noqa: S608 - ours
            f" {cell_columns} FROM study_cells LEFT JOIN cells ON cells.key = study_cells.key"
            " WHERE study = ? ORDER BY position"
        )
        position, n_entry_columns = -1, len(_STUDY_CELLS.names)
        for values in self._file.rows(query, (study,)):
            entry, cell = values[:n_entry_columns], values[n_entry_columns:]
            position = self._checked_position(entry, study, position)
            cell_key, *_ = cell
            if cell_key is None:  # the load has not run yet
                continue
            outcome = self._outcome(cell)
            _, _, entry_key, _ = entry
            if outcome.key != entry_key:
                raise self._file.damaged(f"load {position} of study {study} is damaged")
            yield outcome.row, outcome.resources, outcome.error

    def _checked_position(self, entry: Sequence[Any], study: int, last_position: int) -> int:
        """Return the position in a row of `study_cells`, which must exceed *last_position*."""
        entry_study, position, _, _ = entry
        # Damaged pages may refer to others twice: then rows are valid but repeated.
        if not is_sealed(entry) or entry_study != study or position <= last_position:
            raise self._file.damaged(f"the list of loads of study {study} is damaged")
        return int(position)

    def _outcome(self, values: Sequence[Any]) -> CellOutcome:
        """Return the outcome in a row of `cells` after checking its digest."""
        *cell, _ = values
        key, model, *texts, seconds = cell
        if not is_sealed(values) or cell_problem(cell):
            raise self._file.damaged(f"cell {key_text(key)} is damaged")
        row, resources, error = texts
        try:
            row, resources = (None if text is None else unpack(text) for text in (row, resources))
        except ValueError as refused:
            raise self._file.damaged(f"cell {key_text(key)} is damaged") from refused
        error = None if error is None else error.decode()
        return CellOutcome(key, model.decode(), row, resources, error, seconds)

    def counts(self) -> list[tuple[str, int, int, float]]:
        """Return for each model of h3sim the cells done, the cells failed and their seconds.

        Raises:
            StoreError: if a cell is damaged.
        """
        done: Counter[str] = Counter()
        failed: Counter[str] = Counter()
        seconds: defaultdict[str, float] = defaultdict(float)
        last_key = b""
        query = f"SELECT {_CELL_COLUMNS} FROM cells ORDER BY key"  # noqa: S608 - our names
        for values in self._file.rows(query):
            outcome = self._outcome(values)
            if outcome.key <= last_key:  # a damaged page repeats cells
                raise self._file.damaged(f"cell {key_text(outcome.key)} is damaged")
            last_key = outcome.key
            (done if outcome.error is None else failed)[outcome.model] += 1
            seconds[outcome.model] += outcome.seconds
        return [(model, done[model], failed[model], seconds[model]) for model in sorted(seconds)]

    def damaged(self, message: str) -> StoreError:
        """Return an error about damage of the file, with advice."""
        return self._file.damaged(message)

    def verify(self) -> list[str]:
        """Return the damage, one line per row of any table; an empty list if there is none."""
        with self._file.with_advice():
            return _damage(self._file, lambda _table, _values: None)

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


_MIN_ROW_BYTES = 4
"""Smallest size of a table row in the file."""


def is_sealed(values: Sequence[Any]) -> bool:
    """Return whether the last of *values* is the digest of the others."""
    *row, digest = values
    return bool(digest_of(*row) == digest)


def cell_problem(values: Sequence[Any]) -> str | None:
    """Return the error in a row of `cells` other than its digest, or None."""
    key, model, row, resources, error, seconds = values
    texts = (model, *(text for text in (error,) if text is not None))
    packed = all(isinstance(value, bytes | None) for value in (key, row, resources))
    if key is None or not (packed and _are_texts(*texts) and isinstance(seconds, float)):
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
        columns = _unpacked_json(row)
        if not isinstance(columns, dict):
            return "has a row that is not a JSON object"
        if problem := row_problem(columns):
            return f"has a row that cannot be read: {problem}"
    if resources is not None and not isinstance(_unpacked_json(resources), list):
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


def _unpacked_json(data: bytes) -> Any:
    try:
        return json.loads(unpack(data))
    except (ValueError, RecursionError):
        return None


def repair_store(path: str) -> list[str]:
    """Rewrite the store at *path* without damaged rows, and return a list of these.

    Raises:
        StoreError: if the file cannot be read or written at all.
    """
    StoreFile(path, may_write=False).close()  # a missing store is not created
    file = StoreFile(path, may_write=True)
    try:
        return _rewrite(file)
    finally:
        file.close()


def _rewrite(file: StoreFile) -> list[str]:
    """Rewrite the store with its intact rows if necessary; return the dropped rows."""
    with file.with_advice(), file.exclusive_lock(), _fresh_store(file) as fresh:

        def keep(table: StoreTable, values: Sequence[Any]) -> None:
            marks = ", ".join("?" * len(table.columns))
            # OR IGNORE: `_entries` reads a damaged table from both ends, and may repeat rows.
            fresh.execute(
                f"INSERT OR IGNORE INTO {table.name} VALUES ({marks})",  # noqa: S608 - ours
                (*_as_declared(table, values), digest_of(*values)),
            )

        damage = _damage(file, keep)
        fresh.commit()
        if damage:
            fresh.backup(file.db)
    return damage


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


def _damage(file: StoreFile, keep: Keep) -> list[str]:
    """Return the damage of a store, one line each, and pass each intact row to *keep*."""
    integrity_lines = (line for line in _integrity_lines(file) if line != b"ok")
    lines = [escape_control(line.decode(errors="replace")) for line in integrity_lines]
    studies: set[int] = set()
    for values, problem in _entries(file, _STUDIES, study_problem):
        number, *_ = values
        if problem is None:
            studies.add(number)
            keep(_STUDIES, values)
        else:
            lines.append(f"study {key_text(number)}: {problem}")
    damaged_cells: dict[bytes, str] = {}
    for values, problem in _entries(file, _CELLS, cell_problem):
        problem = problem or _content_problem(values)
        if problem is None:
            keep(_CELLS, values)
        else:
            cell_key, *_ = values
            damaged_cells[cell_key] = problem
    load_of_cell: dict[bytes, str] = {}
    for values, problem in _entries(file, _STUDY_CELLS, _entry_problem):
        study, position, key = values
        load = f"load {key_text(position)} of study {key_text(study)}"
        if problem is None and study not in studies:
            problem = "belongs to no study"
        if problem is None:
            keep(_STUDY_CELLS, values)
            if key in damaged_cells:
                load_of_cell.setdefault(key, f"{load}, ")
        else:
            lines.append(f"{load}: {problem}")
    lines += (
        f"{load_of_cell.get(key, '')}cell {key_text(key)}: {problem}"
        for key, problem in damaged_cells.items()
    )
    return list(dict.fromkeys(lines))  # a row may be read twice


def _integrity_lines(file: StoreFile) -> Iterator[Any]:
    """Yield the lines of SQLite's integrity check."""
    try:
        for (line,) in file.db.execute("PRAGMA integrity_check"):
            yield from line.splitlines()
    except sqlite3.DatabaseError as error:
        if _is_busy(error):
            raise
        yield str(error).encode()


def _is_busy(error: sqlite3.Error) -> bool:
    """Return whether *error* says that another process writes, rather than reporting damage."""
    # The lowest byte of an extended error code is the primary code.
    return getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_BUSY


def _entries(
    file: StoreFile, table: StoreTable, problem_of: Callable[[Sequence[Any]], str | None]
) -> Iterator[tuple[Row, str | None]]:
    """Yield the readable rows of a table without their digests, each with its error or None.

    If a page of the table is unreadable, rows may be yielded twice.
    """
    max_rows = file.size_bytes() // _MIN_ROW_BYTES  # damaged pages may form cycles
    primary_key = table.names[:2] if table is _STUDY_CELLS else table.names[:1]
    # From the start and, if an unreadable page ends that pass, also from the end.
    for direction in ("", " DESC"):
        order = ", ".join(f"{name}{direction}" for name in primary_key)
        query = f"SELECT {', '.join(table.names)} FROM {table.name} ORDER BY {order}"  # noqa: S608 - ours
        try:
            for row in itertools.islice(file.db.execute(query), max_rows):
                *values, _ = row
                problem = problem_of(values)
                if problem is None and not is_sealed(row):
                    problem = "does not match its digest"
                yield values, problem
            else:
                return
        except sqlite3.DatabaseError as error:
            if _is_busy(error):
                raise


def key_text(value: Any) -> str:
    """Return the display form of a key; in a damaged file it may be of any type."""
    return value.hex() if isinstance(value, bytes) else escape_control(str(value))
