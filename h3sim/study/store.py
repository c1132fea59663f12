"""The store of a study: the outcome of each load, in one crash-safe SQLite file.

Only the driver process writes, with write-ahead logging: committed data survives a kill of any
process. Cells are content-addressed (page, scheme, network, every setting, seed, h3sim's model and
plug-ins), so studies share equal cells. Each row of a table has a digest; rows without a valid one
are neither read nor reused.
"""

from __future__ import annotations

import itertools
import json
import os
import sqlite3
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Self, TypeAlias

from h3sim.errors import InputError
from h3sim.schema.arguments import PATH, check_arguments
from h3sim.schema.files import shown_path
from h3sim.study.rows import row_problem
from h3sim.study.store_file import (
    MEMORY,
    TABLES,
    UNSEALED,
    VERSION,
    Row,
    StoreError,
    StoreFile,
    StoreInputError,
    StoreTable,
    digest_of,
    renamed_row,
    script,
)
from h3sim.text import escape_control

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
                digest = digest_of(*map(_as_bytes, outcome))
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


def _as_bytes(value: Any) -> Any:
    return value.encode() if isinstance(value, str) else value


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
    study, position, key = values
    is_sound = isinstance(study, int) and isinstance(position, int) and isinstance(key, bytes)
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
