"""What a store keeps: only what is missing runs, and nothing finished is lost."""

from __future__ import annotations

import json
import re
import sqlite3
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

import h3sim
from benchmarks import million
from h3sim import catalog
from h3sim.cli import main
from h3sim.schedulers import FifoScheduler
from h3sim.study import Range, Store, StoreError, load_study, read_results, sweep
from h3sim.study.cache_key import model_version
from h3sim.study.packed_rows import pack
from h3sim.study.results import ResultsError
from h3sim.study.store import TABLES, CellOutcome, digest_of, repair_store
from h3sim.values.errors import InputError
from tests import flipping, standins
from tests.effort import HANG_S, scaled
from tests.helpers import page_file, page_of

if TYPE_CHECKING:
    from pathlib import Path

ROOT = {"id": "/", "kind": "document", "bytes": 2800}
PAGE = page_of(ROOT)


def study(n_seeds: int = 10, stand_in: Any = standins.reported, **axes: Any) -> Any:
    made = load_study(PAGE, schemes=["rr", "fifo"], seeds=n_seeds, **axes)
    return standins.standing_in(made, stand_in)


def run(made: Any, store: Any, **how: Any) -> Any:
    return made.run(store=store, executor="serial", **how)


@pytest.fixture
def store(tmp_path: Path) -> Any:
    return tmp_path / "study.db"


def test_a_second_call_runs_only_what_is_missing(store: Any) -> None:
    first = run(study(4), store)
    assert first.counts == (0, 8, 0)
    again = run(study(4), store)
    assert again.counts == (8, 0, 0)
    assert list(again) == list(first)
    more = run(study(6), store)
    assert more.counts == (8, 4, 0)
    assert list(more) == list(run(study(6), None))


@pytest.mark.parametrize(
    "other",
    [
        {"n_seeds": 4, "rtt_ms": [5]},
        {"n_seeds": 4, "network": ["4g"]},
        {"n_seeds": 4, "transport_profile": ["quicly"]},
    ],
)
def test_another_setting_is_another_cell(store: Any, other: Any) -> None:
    run(study(4), store)
    assert run(study(**other), store).counts.reused == 0


def test_an_edited_page_scheme_or_model_is_another_cell(store: Any) -> None:
    run(study(4), store)
    edited = load_study(PAGE.with_("/", bytes=1, name="page"), schemes=["rr", "fifo"], seeds=4)
    assert run(standins.standing_in(edited, standins.reported), store).counts.reused == 0
    older = study(4)
    older.model = "h3sim 0.0.1"
    assert run(older, store).counts.reused == 0


def test_a_study_that_was_interrupted_goes_on(store: Any) -> None:
    class StopError(Exception):
        pass

    def stop(done: Any, total: Any) -> None:
        del total
        if done >= 7:
            raise StopError

    complete = list(run(study(10), None))
    with pytest.raises(StopError):
        run(study(10), store, progress=stop)
    with Store(store, may_write=False) as kept:
        (known,) = kept.studies()
    assert 7 <= known.done < 20
    rest = run(study(10), store)
    assert rest.counts == (known.done, 20 - known.done, 0)
    assert list(rest) == complete


def test_what_failed_keeps_its_error_and_runs_again_on_request(store: Any) -> None:
    def fail(cell: Any) -> Any:
        if cell.seed == 2:
            raise ValueError("odd")
        return standins.reported(cell)

    assert run(study(4, fail), store).counts == (0, 6, 2)
    again = run(study(4), store)
    assert again.counts == (6, 0, 2)
    assert again.errors == [f"page, {name}, seed 2: ValueError: odd" for name in ("rr", "fifo")]
    assert len(again) == 6
    retried = run(study(4), store, retry_failed=True)
    assert retried.counts == (6, 2, 0)
    assert retried.errors == []
    assert list(retried) == list(run(study(4), None))


def test_resources_that_were_not_kept_are_loaded_again(store: Any) -> None:
    arguments = {"schemes": "rr", "executor": "serial", "store": store}
    assert sweep(PAGE, **arguments).counts == (0, 1, 0)
    assert sweep(PAGE, resources=True, **arguments).counts == (0, 1, 0)
    assert sweep(PAGE, resources=True, **arguments).counts == (1, 0, 0)
    assert sweep(PAGE, **arguments).counts == (1, 0, 0)


def test_results_are_read_from_a_store(store: Any) -> None:
    first, second = run(study(3), store), run(study(5), store)
    assert list(read_results(store)) == list(second)
    assert list(read_results(store, study=1)) == list(first)
    assert read_results(store).axes == ("scheme", "seed")
    with pytest.raises(StoreError, match="has no study 9; there are 1, 2"):
        read_results(store, study=9)


def test_a_look_at_a_store_changes_and_leaves_nothing(store: Any, tmp_path: Path) -> None:
    run(study(2), store)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    results = read_results(store)
    assert len(results) == 4
    del results
    assert main(["store", "list", str(store)]) == main(["store", "verify", str(store)]) == 0
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_a_look_at_a_store_leaves_a_log_to_who_writes(store: Any, tmp_path: Path) -> None:
    run(study(2), store)
    with Store(store) as writer:
        writer.begin_study("another", "another", 1, ())
        with Store(store, may_write=False) as reader:
            assert len(reader.studies()) == 2
        assert (tmp_path / f"{store.name}-wal").stat().st_size > 0
    assert [path.name for path in tmp_path.iterdir()] == [store.name]


def test_two_drivers_on_one_store_do_not_harm_each_other(store: Any) -> None:
    # Each writes while the other does, cell by cell.
    def with_other(cell: Any) -> Any:
        if cell.seed == 3 and cell.scheme.name == "rr":
            run(study(8), store)
        return standins.reported(cell)

    results = run(study(10, with_other), store)
    assert list(results) == list(run(study(10), None))
    with Store(store, may_write=False) as kept:
        assert kept.verify() == []
        assert [stored.done for stored in kept.studies()] == [20, 16]


def _outcome(row: str | None, resources: str | None, error: str | None) -> CellOutcome:
    return CellOutcome(b"key", "model", row, resources, error, 1.0)


@pytest.mark.parametrize(
    ("later", "left"),
    [
        (_outcome(None, None, "killed"), ('{"a": 1}', "[1]", None)),
        (_outcome('{"a": 1}', None, None), ('{"a": 1}', "[1]", None)),
        (_outcome('{"a": 2}', "[2]", None), ('{"a": 2}', "[2]", None)),
    ],
)
def test_what_another_process_finished_is_not_lost_to_a_failure(
    later: CellOutcome, left: tuple[str | None, ...]
) -> None:
    with Store(":memory:") as kept:
        number = kept.begin_study("token", "", 1, [])
        kept.register_keys(number, 0, [b"key"])
        for outcome in (_outcome(None, None, "died"), _outcome('{"a": 1}', "[1]", None), later):
            kept.put([outcome])
        assert list(kept.rows(number)) == [left]


def test_a_store_has_the_tables_and_columns_that_its_format_declares(store: Any) -> None:
    run(study(1), store)
    with sqlite3.connect(store) as database:
        tables = database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        found = {
            name: [row[1] for row in database.execute(f"PRAGMA table_info({name})")]
            for (name,) in tables.fetchall()
        }
    database.close()
    assert found == {table.name: [column.name for column in table.columns] for table in TABLES}
    assert found["cells"] == [*CellOutcome._fields, "digest"]


def test_a_plan_counts_loads_whose_resources_are_missing(store: Any) -> None:
    sweep(PAGE, schemes=["rr", "fifo"], executor="serial", store=store)
    assert load_study(PAGE, schemes=["rr", "fifo"]).plan(store=store).to_run == 0
    expected = load_study(PAGE, schemes=["rr", "fifo"], resources=True)
    assert expected.plan(store=store).to_run == 2
    assert expected.run(store=store, executor="serial").counts == (0, 2, 0)


def test_a_network_file_that_was_changed_is_another_network(store: Any, tmp_path: Path) -> None:
    path = tmp_path / "slow.toml"
    for rtt_ms in (10, 200):
        text = catalog.text_of("network", "marx-2019").replace("rtt_ms = 0", f"rtt_ms = {rtt_ms}")
        path.write_text(text, encoding="utf-8")
        found = sweep(PAGE, schemes="rr", network=path, executor="serial", store=store)
        assert (found.counts, found.column("rtt_ms")) == ((0, 1, 0), [rtt_ms])


def test_a_scheme_that_is_code_is_identified_with_or_without_a_source(
    store: Any,
) -> None:
    arguments = {"schemes": [FifoScheduler], "executor": "serial", "store": store}
    assert sweep(PAGE, **arguments).counts == (0, 1, 0)
    assert sweep(PAGE, **arguments).counts == (1, 0, 0)
    reused = []
    for turns in (1, 1, 2):
        namespace: dict[str, Any] = {"FifoScheduler": FifoScheduler}
        exec(f"class Hidden(FifoScheduler): turns = {turns}", namespace)
        results = sweep(PAGE, **(arguments | {"schemes": [namespace["Hidden"]]}))
        reused.append(results.counts.reused)
    assert reused == [0, 1, 0]


def test_the_model_has_version_and_digest_and_stays_what_it_is() -> None:
    name, version, digest = model_version().split()[:3]
    assert (name, version, len(digest)) == ("h3sim", h3sim.__version__, 12)


# What may be wrong with a file


def test_a_file_that_is_no_store_is_left_alone(store: Any) -> None:
    store.write_text("hello, I am not a database at all", encoding="utf-8")
    with pytest.raises(StoreError, match="use another file"):
        run(study(1), store)
    assert store.read_text(encoding="utf-8").startswith("hello")
    foreign = store.with_name("foreign.db")
    with sqlite3.connect(foreign) as database:
        database.execute("CREATE TABLE things (name)")
    database.close()
    with pytest.raises(StoreError, match="is not a store of studies"):
        run(study(1), foreign)


def test_a_store_of_another_version_is_reported(store: Any) -> None:
    run(study(1), store)
    with sqlite3.connect(store) as database:
        database.execute("PRAGMA user_version = 7")
    database.close()
    with pytest.raises(StoreError, match="is h3sim-store/7, and this h3sim reads h3sim-store/3"):
        run(study(1), store)


DAMAGE = {
    "axes of another type": "UPDATE studies SET axes = 'null'",
    "other axes": """UPDATE studies SET axes = '["seed"]'""",
    "a name that is bytes": "UPDATE studies SET name = x'00'",
    "another name": "UPDATE studies SET name = 'other'",
    "a study that is lost": "DELETE FROM studies",
    "a row that is text": "UPDATE cells SET row = '{}'",
    "a row that is bytes": "UPDATE cells SET row = x'ff'",
    "a row of another load": "UPDATE cells SET row = (SELECT max(row) FROM cells)",
    "an error instead of a row": "UPDATE cells SET row = NULL, error = 'broke'",
    "a time that was never taken": "UPDATE cells SET seconds = seconds + 1",
    "another model": "UPDATE cells SET model = 'h3sim 9'",
    "another order": "UPDATE study_cells SET position = 1 - position WHERE position > 2",
    "the key of another load": "UPDATE study_cells SET key = (SELECT max(key) FROM cells)",
}


@pytest.mark.parametrize("change", DAMAGE)
def test_a_store_whose_values_were_changed_is_refused_until_it_is_repaired(
    store: Any, change: str
) -> None:
    true = list(run(study(2), store))
    with sqlite3.connect(store) as other:
        other.execute(DAMAGE[change])
    other.close()
    with Store(store, may_write=False) as kept:
        assert kept.verify() != []
        with pytest.raises(StoreError, match=r"is damaged.*h3sim store verify|lost"):
            (kept.studies(), kept.counts())
    with pytest.raises(StoreError, match=r"(damaged|lost): `h3sim store verify`"):
        list(run(study(2), store))
    assert repair_store(str(store)) != []
    with Store(store, may_write=False) as kept:
        assert kept.verify() == []
    assert list(run(study(2), store)) == true


def test_a_number_multiplied_by_hand_is_refused_and_only_its_load_runs_again(store: Any) -> None:
    made = flipping.study()
    true = list(run(made, store))
    wrong = {**true[3], "page_load_ms": 10 * true[3]["page_load_ms"]}
    with sqlite3.connect(store) as other:
        change = "UPDATE cells SET row = ? WHERE row = ?"
        texts = (pack(json.dumps(wrong)), pack(json.dumps(true[3])))
        assert other.execute(change, texts).rowcount == 1
    other.close()
    for read in (lambda: list(read_results(store)), lambda: run(flipping.study(), store)):
        with pytest.raises(StoreError, match=r"cell [0-9a-f]{32} is damaged"):
            read()
    (dropped,) = repair_store(str(store))
    assert re.fullmatch(r"load 3 of study 1, cell [0-9a-f]{32}: does not match.*", dropped)
    again = run(flipping.study(), store)
    assert (again.counts, list(again)) == ((7, 1, 0), true)


def _forged(store: Any, row: dict[str, Any], *, axes: Any = None) -> None:
    """Put *row* into each cell, with digests that are right."""
    text = pack(json.dumps(row))
    with sqlite3.connect(store) as other:
        for key, model, seconds in other.execute("SELECT key, model, seconds FROM cells"):
            digest = digest_of(key, model.encode(), text, None, None, seconds)
            change = "UPDATE cells SET row = ?, digest = ? WHERE key = ?"
            other.execute(change, (text, digest, key))
        if axes is not None:
            (first,) = other.execute("SELECT id, token, name, n FROM studies").fetchall()
            known = [one.encode() if isinstance(one, str) else one for one in first]
            digest = digest_of(*known, json.dumps(axes).encode())
            other.execute("UPDATE studies SET axes = ?, digest = ?", (json.dumps(axes), digest))
    other.close()


@pytest.mark.parametrize("column", ["page", "scheme", "seed", "network", "rtt_ms", "page_digest"])
def test_a_row_that_contradicts_its_load_is_not_reused(store: Any, column: str) -> None:
    arguments: Any = {"schemes": "rr", "network": "4g", "rtt_ms": [20], "executor": "serial"}
    (true,) = sweep(PAGE, store=store, **arguments)
    assert sweep(PAGE, store=store, **arguments).counts == (1, 0, 0)
    _forged(store, true | {column: 77 if isinstance(true[column], int | float) else "other"})
    again = sweep(PAGE, store=store, **arguments)
    assert (again.counts, list(again)) == ((0, 1, 0), [true])


@pytest.mark.parametrize(
    "axes",
    [
        {"rtt_ms": [0, 1 / 3, 33.3333333333], "network": ["cable", "marx-2019"]},
        {"rate_mbps": [1 / 3, 7.123456789], "loss": [0, 0.0123456789]},
        {"network": ["recorded"], "header_compression": ["none"], "transport": ["tcp", "quic"]},
        {"samples": 3, "rtt_ms": Range(low=0.001, high=100, log=True)},
    ],
)
def test_no_row_contradicts_its_own_load(store: Any, axes: Any) -> None:
    arguments: Any = {
        "schemes": ["rr", "chrome-h2"],
        "seeds": 2,
        "executor": "serial",
        "store": store,
    }
    n = sweep(PAGE, **arguments, **axes).counts.ran
    assert sweep(PAGE, **arguments, **axes).counts == (n, 0, 0)


def test_a_row_without_a_figure_is_not_reused(store: Any) -> None:
    (true,) = sweep(PAGE, schemes="rr", store=store, executor="serial")
    _forged(store, {name: true[name] for name in true if name != "byte_index_all_ms"})
    again = sweep(PAGE, schemes="rr", store=store, executor="serial")
    assert (again.counts, list(again)) == ((0, 1, 0), [true])


@pytest.mark.parametrize("key", [2**60, 0.5])
def test_a_key_of_another_type_is_damage(store: Any, key: Any) -> None:
    run(study(2), store)
    with sqlite3.connect(store) as other:
        other.execute("UPDATE cells SET key = ? WHERE key = (SELECT min(key) FROM cells)", (key,))
    other.close()
    with Store(store, may_write=False) as damaged:
        assert any(f"cell {key}: " in line for line in damaged.verify())
        with pytest.raises(StoreError, match=f"cell {key} is damaged"):
            damaged.counts()


def test_axes_that_are_no_columns_are_refused(store: Any) -> None:
    (row,) = sweep(PAGE, schemes="rr", store=store, executor="serial")
    _forged(store, row, axes=["nowhere"])
    with pytest.raises(InputError, match="axes: there is no column 'nowhere'"):
        read_results(store)


@pytest.mark.parametrize(
    "wrong",
    [
        {"scheme": 5},
        {"scheme": None},
        {"page": [1]},
        {"network": True},
        {"page_load_ms": "soon"},
        {"byte_index_all_ms": {"ms": 5}},
    ],
)
def test_values_of_another_type_are_refused_in_stores_and_in_saved_rows(
    store: Any, wrong: dict[str, Any]
) -> None:
    made = flipping.study()
    rows = list(run(made, store))
    _forged(store, rows[0] | wrong)
    (name,) = wrong
    with pytest.raises(StoreError, match=f"{name}: must be"):
        list(read_results(store))
    with pytest.raises(StoreError, match=f"{name}: must be"):
        run(flipping.study(), store)
    with Store(store, may_write=False) as damaged:
        problems = damaged.verify()
        assert len(problems) == len(rows)
        assert all(f"has a row that cannot be read: {name}: must be" in line for line in problems)
    saved = store.with_name("rows.jsonl")
    lines = [{"format": "h3sim-results/2"}, rows[0], rows[1] | wrong, {"digest": ""}]
    saved.write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")
    with pytest.raises(InputError, match=f"line 3: {name}: must be"):
        read_results(saved)


# What somebody else may have put into a file


HOSTILE = {
    "a view that never ends": """
        ALTER TABLE cells RENAME TO kept;
        CREATE VIEW cells AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n)
            SELECT key, model, row, resources, error, seconds, digest FROM kept, n;
    """,
    "a trigger": """
        CREATE TRIGGER t AFTER INSERT ON cells BEGIN UPDATE cells SET row = '{}'; END;
    """,
    "an index": "CREATE INDEX i ON cells (model)",
    "another table": "CREATE TABLE more (x)",
    "a column more": "ALTER TABLE studies ADD COLUMN x",
    "a column that is computed": "ALTER TABLE studies ADD COLUMN x AS (zeroblob(1 << 30))",
    "tables with a rowid": """
        DROP TABLE cells;
        CREATE TABLE cells (key BLOB PRIMARY KEY, model TEXT NOT NULL, row TEXT, resources TEXT,
            error TEXT, seconds REAL, digest BLOB NOT NULL);
    """,
    "a collation": """
        DROP TABLE cells;
        CREATE TABLE cells (key BLOB PRIMARY KEY, model TEXT NOT NULL COLLATE NOCASE, row TEXT,
            resources TEXT, error TEXT, seconds REAL, digest BLOB NOT NULL) WITHOUT ROWID;
    """,
}


@pytest.mark.parametrize("what", HOSTILE)
@pytest.mark.parametrize("may_write", [False, True])
def test_a_store_with_other_tables_than_its_own_is_left_alone(
    store: Any, what: str, may_write: bool
) -> None:
    run(study(2), store)
    with sqlite3.connect(store) as other:
        other.executescript(HOSTILE[what])
    other.close()
    before = store.read_bytes()
    with pytest.raises(StoreError, match="does not have the tables of a store"):
        Store(store, may_write=may_write)
    with pytest.raises(StoreError, match="does not have the tables of a store"):
        repair_store(str(store))
    assert store.read_bytes() == before


def test_a_text_that_is_too_long_is_refused(store: Any) -> None:
    with Store(store) as kept, pytest.raises(StoreError, match="are limited to 64 MiB"):
        kept.put([CellOutcome(b"key", "model", " " * (65 << 20), None, None, 1.0)])


def test_a_repair_waits_until_others_have_left(store: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    run(study(2), store)
    monkeypatch.setattr("h3sim.study.store._BUSY_MS", 50)
    with Store(store) as other:
        other.studies()
        with (
            pytest.raises(StoreError, match="another process is writing to it"),
            other._file.writing(),
        ):
            repair_store(str(store))


def test_single_bits_that_flip_never_give_another_answer(tmp_path: Path) -> None:
    flips = flipping.flip_often(scaled(60), tmp_path)
    assert flips.wrong == []
    # Some of each: else nothing was tried.
    assert {("read", "true"), ("read", "refused"), ("repair", "true")} <= {*flips.outcomes}


def test_neither_do_single_bits_that_flip_in_saved_files(tmp_path: Path) -> None:
    flips = flipping.flip_saved(scaled(60), tmp_path)
    assert flips.wrong == []
    assert {(name, "refused") for name in flipping.SAVED} <= {*flips.outcomes}


def test_saved_rows_without_their_end_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    flipping.study().run(executor="serial").save(path)
    *lines, last = path.read_text("utf-8").splitlines()
    for kept in (lines, lines[:-1], [lines[0]], [lines[0], *lines[2:], last]):
        path.write_text("".join(f"{line}\n" for line in kept), "utf-8")
        with pytest.raises(ResultsError, match=r"digest: (is missing|differs)"):
            read_results(path)


def test_the_command_line_names_and_drops_damaged_cells(
    store: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    run(study(2), store)
    with sqlite3.connect(store) as other:
        last = "(SELECT key FROM study_cells WHERE position = 3)"
        other.execute(f"UPDATE cells SET error = '\x1b[31m', row = NULL WHERE key = {last}")
    other.close()
    assert main(["store", "verify", str(store)]) == 1
    assert "load 3 of study 1, cell " in capsys.readouterr().out
    assert main(["store", "list", str(store)]) != 0
    assert "\x1b" not in capsys.readouterr().err
    assert main(["store", "repair", str(store)]) == 0
    assert "dropped: load 3 of study 1, cell " in capsys.readouterr().out
    assert main(["store", "verify", str(store)]) == 0
    assert main(["store", "repair", str(store)]) == 0
    assert "nothing to drop" in capsys.readouterr().out
    assert main(["store", "repair", f"{store}.none"]) == 2


def test_what_sqlite_quotes_of_a_damaged_file_is_shown_in_one_line(store: Any) -> None:
    run(study(1), store)
    data = store.read_bytes()
    store.write_bytes(data.replace(b"key BLOB PRIMARY KEY", b"key BLOB PRIMARY \x14EY", 1))
    with pytest.raises(StoreError, match="damaged") as caught:
        Store(store, may_write=False).studies()
    assert str(caught.value).isprintable()


def test_a_folder_that_is_not_there_is_reported(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="there is no folder '"):
        run(study(1), tmp_path / "nowhere" / "study.db")
    with pytest.raises(StoreError, match="is a folder"):
        run(study(1), tmp_path)
    with pytest.raises(StoreError, match="there is no such file"):
        Store(tmp_path / "study.db", may_write=False)


def test_a_store_that_may_only_be_read_is_reported(store: Any) -> None:
    # Root may write to any file, so the file is opened as one that may not.
    run(study(1), store)
    with Store(store, may_write=False) as kept, pytest.raises(StoreError, match="use another"):
        kept.begin_study("t", "n", 1, [])


def test_a_full_store_is_reported_and_what_was_finished_is_kept(store: Any) -> None:
    run(study(2), store)
    with Store(store) as kept:
        (pages,) = kept._file.db.execute("PRAGMA page_count").fetchone()
        kept._file.db.execute(f"PRAGMA max_page_count = {pages}")
        with pytest.raises(
            StoreError, match="the disk is full: free some space, then run the same"
        ):
            kept.register_keys(1, 10, [bytes(16)] * 100_000)
        assert kept.verify() == []
    assert run(study(2), store).counts == (4, 0, 0)


# The command line

STUDY = """\
format = "h3sim-study/1"
name = "small"
pages = ["mine.json"]
schemes = ["rr", "fifo"]
seeds = 2

[settings]
transport = "tcp"

[axes]
rtt_ms = [0, 50]
"""


@pytest.fixture
def study_file(tmp_path: Path) -> Any:
    page_file(tmp_path, ROOT)
    path = tmp_path / "study.toml"
    path.write_text(STUDY, encoding="utf-8")
    return path


def test_the_command_line_sweeps_resumes_and_exports(
    study_file: Any, store: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = tmp_path / "rows.csv"
    command = ["sweep", str(study_file), "--store", str(store), "-j", "1"]
    assert main([*command, "--dry-run"]) == 0
    assert "8 loads: 0 stored, 8 to run" in capsys.readouterr().out
    assert not store.exists()
    assert main([*command, "--csv", str(rows)]) == 0
    assert "8 loads: reused 0, ran 8, failed 0;" in capsys.readouterr().out
    assert main(command) == 0
    assert "8 loads: reused 8, ran 0, failed 0;" in capsys.readouterr().out
    assert main([*command, "--dry-run"]) == 0
    assert "8 loads: 8 stored, 0 to run" in capsys.readouterr().out
    assert main(["store", "list", str(store)]) == 0
    listed = capsys.readouterr().out
    assert "rtt_ms, scheme, seed" in listed
    assert main(["store", "verify", str(store)]) == 0
    assert "sound" in capsys.readouterr().out
    exported = tmp_path / "exported.csv"
    assert main(["store", "export", str(store), str(exported)]) == 0
    assert exported.read_bytes() == rows.read_bytes()
    assert main(["store", "prune", str(store), "--failed", "--other-models"]) == 0
    assert "deleted 0 entries" in capsys.readouterr().out.splitlines()[-1]


def test_the_rows_are_those_of_python(study_file: Any, tmp_path: Path) -> None:
    saved = tmp_path / "rows.jsonl"
    assert main(["sweep", str(study_file), "-j", "1", "--save", str(saved)]) == 0
    page = h3sim.load_page(tmp_path / "mine.json")
    results = sweep(page, schemes=["rr", "fifo"], seeds=2, transport="tcp", rtt_ms=[0, 50])
    assert list(read_results(saved)) == list(results)


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ("h3sim-study/1", "h3sim-page/1", "format: must be 'h3sim-study/1'"),
        ('pages = ["mine.json"]', "", "pages: is missing"),
        ('["mine.json"]', '["nowhere"]', "no page is called 'nowhere'"),
        ("mine.json", "a" * 5000, "no page is called 'aaa"),
        ('"tcp"', f'"tcp"\nnetwork = "{"b" * 5000}"', "no network is called 'bbb"),
        ("seeds = 2", "seeds = -2", "seeds: .*, is -2"),
        ("seeds = 2", "seeds = [0, -2]", r"seeds\[1\]: .*, is -2"),
        ("seeds = 2", "sedes = 2", "sedes: unknown key"),
        ("[0, 50]", "50", "axes.rtt_ms: must be a list"),
        ("rtt_ms", "rtt", "rtt: .*rtt_ms"),
        ('"tcp"', '["tcp"]', "settings.transport: must be one value"),
        ("rtt_ms", "transport", "axes.transport: is fixed in settings"),
        ("[0, 50]", '[0, "x"]', r"axes\.rtt_ms\[1\]: .*, is 'x'"),
        ("[axes]", "[samples]\nn = 0\n[axes]", "samples.n: .*, is 0"),
        ("[axes]", "[samples]\nn = 1\n[axes]", "samples.ranges: at least one"),
        (
            "[axes]",
            "[samples]\nn = 1\nranges.loss = 5\n[axes]",
            "samples.ranges.loss: must be .low, high. or",
        ),
        ("[axes]", "[samples]\nn = 1\nranges.loss = {}\n[axes]", "ranges.loss.low: is missing"),
        ("[axes]", "[samples]\nn = 1\nranges.loss = [2, 1]\n[axes]", "ranges.loss.high: must be"),
        (
            "[axes]",
            "[samples]\nn = 1\nranges.rtt_ms = [2, 9]\n[axes]",
            "samples.ranges.rtt_ms: varies in axes",
        ),
        ('transport = "tcp"', "seeds = 3", "settings.seeds: is not an option of a load"),
        ('transport = "tcp"', "loss = []", r"settings.loss: must be one value .*, is \[\]"),
        ("[0, 50]", "[[0], 50]", r"axes.rtt_ms\[0\]: must be one value, is \[0\]"),
    ],
)
def test_every_error_of_a_study_is_a_line(
    study_file: Any, capsys: pytest.CaptureFixture[str], before: Any, after: Any, message: Any
) -> None:
    import re

    study_file.write_text(STUDY.replace(before, after, 1), encoding="utf-8")
    assert main(["sweep", str(study_file)]) == 2
    reported = capsys.readouterr().err
    assert re.search(message, reported), reported
    assert "Traceback" not in reported


def test_outputs_that_cannot_be_written_are_reported_before_anything_runs(
    study_file: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["sweep", str(study_file), "--csv", "/nowhere/rows.csv"]) == 2
    assert "--csv" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("action", "content", "shown_text"),
    [
        (["list"], None, "there is no such file"),
        (["verify"], None, "there is no such file"),
        (["prune", "--failed"], None, "there is no such file"),
        (["list"], b"", "is empty"),
        (["prune", "--failed"], b"", "is empty"),
        (["list"], b"no store at all", "file is not a database: use another file"),
    ],
)
def test_what_is_no_store_is_bad_input_and_stays_as_it_was(
    store: Path, capsys: pytest.CaptureFixture[str], action: Any, content: Any, shown_text: str
) -> None:
    if content is not None:
        store.write_bytes(content)
    assert main(["store", action[0], str(store), *action[1:]]) == 2
    assert capsys.readouterr().err == f"h3sim store: {store}: {shown_text}\n"
    assert (store.read_bytes() if store.exists() else None) == content


def test_to_forget_it_must_be_stated_what(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["store", "prune", str(store)]) == 2
    assert "choose what to delete: --failed, --other-models" in capsys.readouterr().err


def test_a_study_with_failed_loads_ends_with_1(
    study_file: Any, store: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    text = STUDY.replace('transport = "tcp"', 'transport = "tcp"\nloss = 0.999')
    study_file.write_text(text, encoding="utf-8")
    assert main(["sweep", str(study_file), "--store", str(store), "-j", "1"]) == 1
    out, err = capsys.readouterr()
    assert "failed 8;" in out
    assert "failed: mine, rr, " in err
    assert "ConnectionTimeoutError" in err


_KILLED = """
import os, signal, sys
from tests import standins
from tests.unit.test_sweep_store import study
def die(cell):
    if cell.seed == 5:
        os.kill(os.getpid(), signal.SIGKILL)
    return standins.reported(cell)
made = study(10, die)
made.run(store=sys.argv[1], executor="serial", progress=None)
"""


def test_a_driver_that_is_killed_loses_nothing_that_was_kept(store: Any) -> None:
    run(study(3), store)
    done = subprocess.run([sys.executable, "-c", _KILLED, str(store)], timeout=HANG_S, check=False)
    assert done.returncode == -9
    with Store(store, may_write=False) as kept:
        assert kept.verify() == []
    results = run(study(10), store)
    assert results.counts.reused >= 6
    assert list(results) == list(run(study(10), None))


def test_a_large_study_is_planned_interrupted_resumed_and_summed_up(store: Any) -> None:
    reported = {name: million.run_step(name, 4000, store) for name in million.STEPS}
    assert "4,000 loads: 0 stored, 4,000 to run" in reported["plan"]
    assert "stopped half way" in reported["run, interrupted"]
    assert reported["resume"].endswith("failed 0")
    assert "reused 4,000, ran 0, failed 0" in reported["run again"]
    assert reported["sum up"].endswith("8 means of 4,000 loads")
