"""The store of a study: what each load came to, in one SQLite file that survives what happens.

Written by one process, the driver, in write-ahead mode: what was committed stays, whoever is
killed. A cell is known by its content (page, scheme, network, every setting, seed, h3sim's model
and plug-ins), so any study that has a cell in common with another reuses it.
"""

from __future__ import annotations

import json
import os
import sqlite3
import time
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from h3sim.documents.arguments import PATH, check_arguments
from h3sim.documents.files import shown_path
from h3sim.documents.shown import shown
from h3sim.errors import H3SimError, InputError, Problem
from h3sim.printable import printable
from h3sim.study.store_format import APPLICATION_ID, FORMAT, SAMPLED_VERSION, VERSION, script

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from types import TracebackType

__all__ = ["CellOutcome", "Store", "StoreError", "StoreInputError", "StoredStudy"]

_BUSY_MS = 60_000
_AGAIN_S = 0.01
_CHUNK = 500
"""Keys asked for at once: SQLite took 999 parameters in a query until 3.32."""
_PUT = """
INSERT INTO cells (key, model, row, resources, error, seconds) VALUES (?, ?, ?, ?, ?, ?)
ON CONFLICT (key) DO UPDATE SET
    row = excluded.row, resources = coalesce(excluded.resources, resources),
    error = excluded.error, seconds = excluded.seconds
WHERE excluded.error IS NULL OR cells.error IS NOT NULL
"""
"""What another process put there meanwhile is not lost.

A failure does not take the place of a row, nor a row without resources that of one with them.
"""


class StoreError(H3SimError):
    """A store cannot be read or written; the message says what to do."""


class StoreInputError(StoreError, InputError):
    """Something else than was given is needed: what is at the path is no store, say."""

    def __init__(self, problems: str | Iterable[Problem], source: str = "") -> None:
        given = [Problem(key="", message=problems)] if isinstance(problems, str) else problems
        InputError.__init__(self, given, source)


class CellOutcome(NamedTuple):
    """What a cell came to: a row and its resources as JSON, or an error."""

    key: bytes
    model: str
    row: str | None
    resources: str | None
    error: str | None
    seconds: float


@dataclass(frozen=True, kw_only=True)
class StoredStudy:
    """A study as a store knows it."""

    id: int
    name: str
    n: int
    axes: tuple[str, ...]
    done: int
    failed: int


class Store:
    """The file at *path*, made if it is not there; ":memory:" keeps all in memory.

    Raises:
        StoreError: if it is no store, of another version, or cannot be opened.
    """

    def __init__(self, path: str | Path, *, may_write: bool = True) -> None:
        check_arguments(InputError, store=(PATH, path))
        self.path = os.fspath(path)
        self._may_write = may_write
        with self._told():
            try:
                self._db = self._connect()
            except StoreInputError:  # a ValueError, too
                raise
            except ValueError as error:
                raise self._refused("cannot be the path of a file") from error
            self._db.execute(f"PRAGMA busy_timeout = {_BUSY_MS}")
            self._check()

    def _connect(self) -> sqlite3.Connection:
        if self.path == ":memory:":
            return sqlite3.connect(":memory:", check_same_thread=False)
        if not self._may_write:
            if not Path(self.path).is_file():
                raise self._refused("there is no such file")
            uri = f"{Path(self.path).absolute().as_uri()}?mode=ro"
            # Where nothing may be written SQLite cannot make the files by which readers and a
            # writer know of each other. If no writer left any, there is none.
            folder, log = Path(self.path).absolute().parent, Path(f"{self.path}-wal")
            if not os.access(folder, os.W_OK) and not log.exists():
                uri += "&immutable=1"
            return sqlite3.connect(uri, uri=True, check_same_thread=False)
        if not Path(self.path).absolute().parent.is_dir():
            raise self._refused(f"there is no folder {shown(str(Path(self.path).parent))}")
        if Path(self.path).is_dir():
            raise self._refused("is a folder")
        return sqlite3.connect(self.path, check_same_thread=False)

    def _check(self) -> None:
        """Make the tables of a new file; refuse what is something else."""
        (tables,) = self._db.execute("SELECT count(*) FROM sqlite_master").fetchone()
        (known,) = self._db.execute("PRAGMA application_id").fetchone()
        (version,) = self._db.execute("PRAGMA user_version").fetchone()
        if tables and known != APPLICATION_ID:
            raise self._refused("is not a store of studies: give another file")
        if tables and version not in (VERSION, SAMPLED_VERSION):
            raise self._refused(
                f"is h3sim-store/{version}, and this h3sim reads {FORMAT}:"
                " give another file, or export its rows with the h3sim that made it"
            )
        if version == SAMPLED_VERSION and self._may_write:
            # An h3sim that knows only the format before must not take new rows for such as it has.
            self._db.execute(f"PRAGMA user_version = {VERSION}")
        if self._may_write and self.path != ":memory:":
            self._log_ahead()
            # With WAL no commit is lost when a process dies, and none waits for the disk.
            self._db.execute("PRAGMA synchronous = NORMAL")
        if not tables and self._may_write:
            with self._db:
                # Two may make one file at once: IMMEDIATE lets one wait, and then find the tables
                # there.
                self._db.executescript(f"BEGIN IMMEDIATE;{script()}COMMIT;")
        elif not tables:
            raise self._refused("is empty")

    def _refused(self, message: str) -> StoreInputError:
        return StoreInputError(message, shown_path(self.path))

    def _log_ahead(self) -> None:
        """Have writes logged ahead (WAL): readers and a writer do not wait for one another.

        While two switch one new file at once SQLite refuses the second, whatever its time-out:
        waiting for each other they would wait for ever. So it is asked again.
        """
        give_up_at = time.monotonic() + _BUSY_MS / 1000
        while True:
            try:
                self._db.execute("PRAGMA journal_mode = WAL")
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY:
                    raise
                if time.monotonic() > give_up_at:
                    raise
                time.sleep(_AGAIN_S)
            else:
                return

    @contextmanager
    def _told(self) -> Iterator[None]:
        """Raise what SQLite refuses as an error that says what to do."""
        try:
            yield
        except sqlite3.Error as error:
            name = getattr(error, "sqlite_errorname", "")
            advice = _ADVICE.get(name, "")
            if name == "SQLITE_NOTADB":
                raise self._refused(f"{printable(str(error))}{advice}") from error
            # Of a file that is damaged SQLite quotes what it could not read, whatever it is.
            said = f"{printable(str(error))}{advice}; what was finished before is kept"
            raise StoreError(f"{shown_path(self.path)}: {said}") from error

    # What a sweep does

    def begin_study(self, token: str, name: str, n: int, axes: Sequence[str]) -> int:
        """Return the number of the study that goes by *token*, new or begun before."""
        with self._told(), self._db:
            self._db.execute(
                "INSERT OR IGNORE INTO studies (token, name, n, axes) VALUES (?, ?, ?, ?)",
                (token, name, n, json.dumps(list(axes))),
            )
            (study,) = self._db.execute(
                "SELECT id FROM studies WHERE token = ?", (token,)
            ).fetchone()
        return int(study)

    def placed(self, study: int) -> int:
        """Return how many cells of the study have their places noted: the first so many."""
        query = "SELECT coalesce(max(position) + 1, 0) FROM study_cells WHERE study = ?"
        with self._told():
            return int(self._db.execute(query, (study,)).fetchone()[0])

    def place(self, study: int, first: int, keys: Iterable[bytes]) -> None:
        """Note that the study's cells from *first* on are those of *keys*."""
        rows = ((study, first + n, key) for n, key in enumerate(keys))
        with self._told(), self._db:
            # Ignored: another process may run the same study, and have noted them.
            self._db.executemany("INSERT OR IGNORE INTO study_cells VALUES (?, ?, ?)", rows)

    def keys_of(self, study: int, first: int, n: int) -> list[bytes]:
        """Return the keys of *n* cells of the study from *first* on."""
        query = (
            "SELECT key FROM study_cells WHERE study = ? AND position >= ? AND position < ?"
            " ORDER BY position"
        )
        with self._told():
            return [row[0] for row in self._db.execute(query, (study, first, first + n))]

    def known(self, keys: Sequence[bytes]) -> dict[bytes, tuple[bool, bool]]:
        """Return, of each cell that is there, whether it failed and whether it has resources."""
        found: dict[bytes, tuple[bool, bool]] = {}
        with self._told():
            for start in range(0, len(keys), _CHUNK):
                some = keys[start : start + _CHUNK]
                marks = ",".join("?" * len(some))
                columns = "key, error IS NOT NULL, resources IS NOT NULL"
                query = f"SELECT {columns} FROM cells WHERE key IN ({marks})"  # noqa: S608 - marks
                for key, failed, resources in self._db.execute(query, some):
                    found[key] = (bool(failed), bool(resources))
        return found

    def put(self, outcomes: Iterable[CellOutcome]) -> None:
        """Keep what cells came to: all of them, or, if that fails, none."""
        with self._told(), self._db:
            self._db.executemany(_PUT, outcomes)

    # What is there

    def studies(self) -> list[StoredStudy]:
        """Return the studies, in the order in which they were begun."""
        query = (
            "SELECT id, name, n, axes, count(row), count(error) FROM studies"
            " LEFT JOIN study_cells ON study = id LEFT JOIN cells USING (key)"
            " GROUP BY id ORDER BY id"
        )
        with self._told():
            return [self._study_of(*row) for row in self._db.execute(query)]

    def _study_of(
        self, study: int, name: str, n: int, axes: str, done: int, failed: int
    ) -> StoredStudy:
        # What SQLite takes for a sound page may hold anything where its bytes are others.
        try:
            names = tuple(json.loads(axes))
        except (TypeError, ValueError):
            names = (None,)
        if not (
            isinstance(name, str)
            and isinstance(n, int)
            and all(isinstance(axis, str) for axis in names)
        ):
            raise StoreError(f"{shown_path(self.path)}: study {study}{_ADVICE['SQLITE_CORRUPT']}")
        return StoredStudy(id=study, name=name, n=n, axes=names, done=done, failed=failed)

    def rows(self, study: int) -> Iterator[tuple[str | None, str | None, str | None]]:
        """Yield row, resources and error of each finished cell, in the order of the study."""
        query = (
            "SELECT row, resources, error FROM study_cells JOIN cells USING (key)"
            " WHERE study = ? ORDER BY position"
        )
        with self._told():
            yield from self._db.execute(query, (study,))

    def counts(self) -> list[tuple[str, int, int, float]]:
        """Return, for each model of h3sim, cells done, cells failed, and seconds they took."""
        query = (
            "SELECT model, count(row), count(error), total(seconds) FROM cells"
            " GROUP BY model ORDER BY model"
        )
        with self._told():
            return self._db.execute(query).fetchall()

    def verify(self) -> list[str]:
        """Return what is wrong with the file; nothing is."""
        with self._told():
            found = [row[0] for row in self._db.execute("PRAGMA integrity_check") if row[0] != "ok"]
            query = "SELECT count(*) FROM cells WHERE (row IS NULL) = (error IS NULL)"
            (odd,) = self._db.execute(query).fetchone()
            for name in ("row", "resources"):
                wrong_if = f"{name} IS NOT NULL AND NOT json_valid({name})"
                query = f"SELECT count(*) FROM cells WHERE {wrong_if}"  # noqa: S608 - ours
                (wrong,) = self._db.execute(query).fetchone()
                found += [f"{wrong:,} cells whose {name} is not JSON"] * bool(wrong)
        return found + [f"{odd:,} cells with neither a row nor an error, or both"] * bool(odd)

    def prune(self, *, keep_model: str | None = None, failed: bool = False) -> int:
        """Forget cells of other models than *keep_model*, and with *failed* those that failed.

        Returns how many were forgotten.
        """
        wanted = []
        if keep_model is not None:
            wanted.append("model != :model")
        if failed:
            wanted.append("error IS NOT NULL")
        if not wanted:
            return 0
        query = f"DELETE FROM cells WHERE {' OR '.join(wanted)}"  # noqa: S608 - conditions of ours
        with self._told():
            with self._db:
                n = self._db.execute(query, {"model": keep_model}).rowcount
            self._db.execute("VACUUM")  # SQLite refuses it in a transaction
        return int(n)

    def close(self) -> None:
        """Close the file; what was written is in it."""
        self._db.close()

    def __del__(self) -> None:
        if hasattr(self, "_db"):  # it could be opened
            self.close()

    def __enter__(self) -> Store:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        where: TracebackType | None,
    ) -> None:
        self.close()


_ADVICE = {
    "SQLITE_FULL": ": the disk is full: make room, and run the same again",
    "SQLITE_READONLY": ": the file or its folder may only be read: give another file",
    "SQLITE_CANTOPEN": ": cannot be opened: the folder must be there, and writable",
    "SQLITE_NOTADB": ": give another file",
    "SQLITE_BUSY": ": another process writes to it: wait for it, or give another file",
    "SQLITE_IOERR_WRITE": ": the disk may be full: make room, and run the same again",
    "SQLITE_CORRUPT": ": the file is damaged: `h3sim store verify` says where",
}
