"""Verification and repair of stores, row by row."""

from __future__ import annotations

import itertools
import json
import sqlite3
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from h3sim.study.rows import row_problem
from h3sim.study.store_file import (
    MEMORY,
    TABLES,
    UNSEALED,
    VERSION,
    Row,
    StoreFile,
    StoreTable,
    digest_of,
    renamed_row,
    script,
)
from h3sim.text import escape_control

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    Keep: TypeAlias = Callable[[StoreTable, Sequence[Any]], object]


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
    if not (isinstance(key, bytes) and _are_texts(model) and isinstance(seconds, float)):
        return "has values of wrong types"
    if any(text is not None and not _are_texts(text) for text in (row, resources, error)):
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


def damage_of(file: StoreFile) -> list[str]:
    """Return the damage of a store, one line each; an empty list if there is none."""
    return _examined(file, lambda _table, _values: None)


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
    found = [
        escape_control(line.decode(errors="replace"))
        for line in _integrity_lines(file)
        if line != b"ok"
    ]  # fmt: skip
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
