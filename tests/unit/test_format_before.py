"""Rows that were kept when ByteIndex was sampled: read with the names that columns have now."""

from __future__ import annotations

import json
import sqlite3
from typing import TYPE_CHECKING, Any

import pytest

import h3sim
from h3sim.study import read_results
from h3sim.study.rows import StoreError
from h3sim.study.store import TABLES, UNSEALED, script

if TYPE_CHECKING:
    from pathlib import Path

PAGE = "davies-meenan"
EXACT, SAMPLED = "byte_index_all_ms", "byte_index_sampled_all_ms"


def former(row: dict[str, Any]) -> dict[str, Any]:
    """Return a row with the names that columns had: the sampled one had the plain name."""
    renamed = {}
    for name, value in row.items():
        if name.startswith("byte_index_sampled_"):
            renamed[name.replace("_sampled_", "_")] = value
        elif name.startswith("byte_index_"):
            renamed[name.replace("byte_index_", "byte_index_exact_")] = value
        else:
            renamed[name] = value
    return renamed


@pytest.fixture(scope="module")
def rows() -> list[dict[str, Any]]:
    return list(h3sim.sweep(PAGE, schemes=["rr", "fifo"], executor="serial"))


def as_stored_before(path: Path) -> None:
    """Make of a store what an h3sim that knew only the format before left."""
    with sqlite3.connect(path) as database, sqlite3.connect(path.with_suffix(".old")) as before:
        before.executescript(script(UNSEALED))
        for table in TABLES:
            names = ", ".join(table.names[:-1])
            for entry in database.execute(f"SELECT {names} FROM {table.name}").fetchall():
                values = list(entry)
                if table.name == "cells":
                    values[2] = json.dumps(former(json.loads(values[2])))
                marks = ", ".join("?" * len(values))
                before.execute(f"INSERT INTO {table.name} VALUES ({marks})", values)
        before.commit()
    database.close()
    before.close()
    path.with_suffix(".old").replace(path)


def version_of(path: Path) -> int:
    with sqlite3.connect(path) as database:
        (version,) = database.execute("PRAGMA user_version").fetchone()
    database.close()
    return int(version)


def test_saved_rows_take_the_names_of_today(tmp_path: Path, rows: Any) -> None:
    path = tmp_path / "rows.jsonl"
    lines = [{"format": "h3sim-results/1", "version": "0.1.0", "axes": ["scheme"]}]
    path.write_text("\n".join(json.dumps(line) for line in [*lines, *map(former, rows)]), "utf-8")
    assert [dict(row) for row in read_results(path)] == rows


def test_rows_that_were_saved_now_are_left_as_they_are(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    results = h3sim.sweep(PAGE, executor="serial")
    results.save(path)
    assert json.loads(path.read_text("utf-8").splitlines()[0])["format"] == "h3sim-results/2"
    assert list(read_results(path)) == list(results)


def test_a_reader_names_what_brings_a_store_up_to_date_and_changes_nothing(
    tmp_path: Path, rows: Any
) -> None:
    path = tmp_path / "study.db"
    h3sim.sweep(PAGE, schemes=["rr", "fifo"], store=path, executor="serial")
    as_stored_before(path)
    with pytest.raises(StoreError, match="h3sim store repair"):
        read_results(path)
    assert version_of(path) == 1


def test_a_store_that_is_written_to_is_one_of_today_whose_old_rows_are_renamed(
    tmp_path: Path, rows: Any
) -> None:
    path = tmp_path / "study.db"
    h3sim.sweep(PAGE, schemes=["rr", "fifo"], store=path, executor="serial")
    as_stored_before(path)
    h3sim.sweep(PAGE, schemes=["dfifo"], store=path, executor="serial")
    assert version_of(path) == 2
    assert list(read_results(path, study=1)) == rows
    (added,) = read_results(path, study=2)
    load = h3sim.simulate(PAGE, scheme="dfifo")
    assert (added[EXACT], added[SAMPLED]) == (load.byte_index(), load.byte_index(sample_ms=100))
