"""The tables of a store, `h3sim-store/2`: made from here, and documented from here."""

from __future__ import annotations

from typing import NamedTuple

__all__ = [
    "APPLICATION_ID",
    "FORMAT",
    "SAMPLED_VERSION",
    "TABLES",
    "VERSION",
    "StoreColumn",
    "StoreTable",
    "script",
]

VERSION = 2
"""SQLite's `user_version`, by which a store of another format is told."""
SAMPLED_VERSION = 1
"""The format before, in whose rows `byte_index_all_ms` was sampled: its tables are the same."""
FORMAT = f"h3sim-store/{VERSION}"
APPLICATION_ID = 0x68337331  # "h3s1"
"""SQLite's `application_id`, by which a store is told from other databases."""


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
        ),
        constraint="PRIMARY KEY (study, position)",
        ending=_WITHOUT_ROWID,
    ),
)


def script() -> str:
    """Return the SQL that makes the tables of a new store, and names it one."""
    made = [
        f"PRAGMA application_id = {APPLICATION_ID}",
        f"PRAGMA user_version = {VERSION}",
        *map(_made, TABLES),
    ]
    return "".join(f"{statement};\n" for statement in made)


def _made(table: StoreTable) -> str:
    columns = [f"{column.name} {column.type}" for column in table.columns]
    inside = ", ".join([*columns, *filter(None, [table.constraint])])
    # Two may make one file at once: the second finds them there.
    return f"CREATE TABLE IF NOT EXISTS {table.name} ({inside}) {table.ending}".rstrip()
