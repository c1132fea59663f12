"""The tables of a store, `h3sim-store/2`: made from here, and documented from here."""

from __future__ import annotations

import hashlib
import json
import struct
from typing import NamedTuple, TypeAlias

__all__ = [
    *("APPLICATION_ID", "FORMAT", "TABLES", "UNSEALED", "VERSION", "StoreColumn", "StoreTable"),
    *("Value", "digest_of", "renamed_row", "script"),
]

VERSION = 2
"""SQLite's `user_version`, by which a store of another format is told."""
UNSEALED = 1
"""The version whose tables have no digests, and in whose rows ByteIndex was sampled."""
FORMAT = f"h3sim-store/{VERSION}"
APPLICATION_ID = 0x68337331  # "h3s1"
"""SQLite's `application_id`, by which a store is told from other databases."""


_DIGEST_BYTES = 8
Value: TypeAlias = "bytes | int | float | None"
"""What SQLite keeps; texts are their bytes in UTF-8."""


class StoreColumn(NamedTuple):
    """A column: its type and constraints as SQL has them, and what it is *about*."""

    name: str
    type: str
    about: str


class StoreTable(NamedTuple):
    """A table: its columns, the constraints behind them, and what SQL says behind the brackets."""

    name: str
    columns: tuple[StoreColumn, ...]
    constraint: str = ""
    ending: str = ""

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns; the last one is the digest of the others."""
        return tuple(column.name for column in self.columns)


_DIGEST = StoreColumn(
    "digest", "BLOB NOT NULL", f"{_DIGEST_BYTES} bytes of BLAKE2b over the columns before it"
)
_WITHOUT_ROWID = "WITHOUT ROWID"  # else each key would stand in an index as well
TABLES = (
    StoreTable(
        "cells",
        (
            StoreColumn(
                "key",
                "BLOB PRIMARY KEY",
                "16 bytes of BLAKE2b over all that has a say in what the load comes to",
            ),
            StoreColumn(
                "model",
                "TEXT NOT NULL",
                "the h3sim that ran it: version, digest of its source, plug-ins, header codecs",
            ),
            StoreColumn("row", "TEXT", "the row of the load, a JSON object; NULL if it failed"),
            StoreColumn(
                "resources", "TEXT", "rows of its resources, a JSON list; NULL if not asked for"
            ),
            StoreColumn("error", "TEXT", "which load failed, and why; NULL if it did not"),
            StoreColumn("seconds", "REAL", "how long it took"),
            _DIGEST,
        ),
        ending=_WITHOUT_ROWID,
    ),
    StoreTable(
        "studies",
        (
            StoreColumn("id", "INTEGER PRIMARY KEY", "its number, by when it was begun first"),
            StoreColumn(
                "token",
                "TEXT UNIQUE NOT NULL",
                "what tells it from others: all that its loads are made of, in order",
            ),
            StoreColumn("name", "TEXT NOT NULL", "what lists call it"),
            StoreColumn("n", "INTEGER NOT NULL", "how many loads it has"),
            StoreColumn(
                "axes", "TEXT NOT NULL", "the columns in which its loads differ, a JSON list"
            ),
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
                "key", "BLOB NOT NULL", "the `key` of the load, which need not have run yet"
            ),
            _DIGEST,
        ),
        constraint="PRIMARY KEY (study, position)",
        ending=_WITHOUT_ROWID,
    ),
)


def script(version: int = VERSION) -> str:
    """Return the SQL that makes the tables of a new store, and names it one."""
    made = [
        f"PRAGMA application_id = {APPLICATION_ID}",
        f"PRAGMA user_version = {version}",
        *(_made(table, version) for table in TABLES),
    ]
    return "".join(f"{statement};\n" for statement in made)


def _made(table: StoreTable, version: int) -> str:
    kept = [column for column in table.columns if version > UNSEALED or column is not _DIGEST]
    columns = [f"{column.name} {column.type}" for column in kept]
    inside = ", ".join([*columns, *filter(None, [table.constraint])])
    # Two may make one file at once: the second finds them there.
    return f"CREATE TABLE IF NOT EXISTS {table.name} ({inside}) {table.ending}".rstrip()


def digest_of(*values: Value) -> bytes:
    """Return the digest of a row of a table: of its values in order, each with type and length.

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
"""What columns of the exact ByteIndex were called while the plain name was the sampled one's."""


def renamed_row(row: str) -> str:
    """Return a row of version 1 of a store or of saved results with the columns' names of today.

    >>> renamed_row('{"byte_index_all_ms": 200.0, "byte_index_exact_all_ms": 150.5, "page": "p"}')
    '{"byte_index_sampled_all_ms": 200.0, "byte_index_all_ms": 150.5, "page": "p"}'
    """
    columns = json.loads(row).items()
    return json.dumps({_column_now(name): value for name, value in columns})


def _column_now(name: str) -> str:
    if name.startswith(_EXACT_BEFORE):
        return name.replace(_EXACT_BEFORE, "byte_index_", 1)
    return name.replace("byte_index_", "byte_index_sampled_", 1)
