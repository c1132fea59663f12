"""What a store keeps: only what is missing runs, and nothing finished is lost."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

import h3sim
from benchmarks import million
from h3sim import catalog
from h3sim.cli import main
from h3sim.errors import InputError
from h3sim.schedulers import FifoScheduler
from h3sim.study import Store, StoreError, read_results, study_of, sweep
from h3sim.study.identity import model_version
from h3sim.study.store import CellOutcome
from h3sim.study.store_format import TABLES
from tests import standins
from tests.effort import HANG_S
from tests.helpers import page_file, page_of

if TYPE_CHECKING:
    from pathlib import Path

ROOT = {"id": "/", "kind": "document", "bytes": 2800}
PAGE = page_of(ROOT)


def study(n_seeds: int = 10, stand_in: Any = standins.told, **axes: Any) -> Any:
    made = study_of(PAGE, schemes=["rr", "fifo"], seeds=n_seeds, **axes)
    made.stand_in = stand_in
    return made


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
    edited = study_of(PAGE.with_("/", bytes=1, name="page"), schemes=["rr", "fifo"], seeds=4)
    edited.stand_in = standins.told
    assert run(edited, store).counts.reused == 0
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

    whole = list(run(study(10), None))
    with pytest.raises(StopError):
        run(study(10), store, progress=stop)
    with Store(store, may_write=False) as kept:
        (known,) = kept.studies()
    assert 7 <= known.done < 20
    rest = run(study(10), store)
    assert rest.counts == (known.done, 20 - known.done, 0)
    assert list(rest) == whole


def test_what_failed_keeps_its_error_and_runs_again_where_asked(store: Any) -> None:
    def fail(cell: Any) -> Any:
        if cell.seed == 2:
            raise ValueError("odd")
        return standins.told(cell)

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


def test_two_drivers_on_one_store_do_not_harm_each_other(store: Any) -> None:
    # Each writes while the other does, cell by cell.
    def with_other(cell: Any) -> Any:
        if cell.seed == 3 and cell.scheme.name == "rr":
            run(study(8), store)
        return standins.told(cell)

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
        kept.place(number, 0, [b"key"])
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
    assert list(found["cells"]) == list(CellOutcome._fields)


def test_a_plan_counts_loads_whose_resources_are_missing(store: Any) -> None:
    sweep(PAGE, schemes=["rr", "fifo"], executor="serial", store=store)
    assert study_of(PAGE, schemes=["rr", "fifo"]).plan(store=store).to_run == 0
    wanted = study_of(PAGE, schemes=["rr", "fifo"], resources=True)
    assert wanted.plan(store=store).to_run == 2
    assert wanted.run(store=store, executor="serial").counts == (0, 2, 0)


def test_a_network_file_that_was_changed_is_another_network(store: Any, tmp_path: Path) -> None:
    path = tmp_path / "slow.toml"
    for rtt_ms in (10, 200):
        text = catalog.text_of("network", "marx-2019").replace("rtt_ms = 0", f"rtt_ms = {rtt_ms}")
        path.write_text(text, encoding="utf-8")
        found = sweep(PAGE, schemes="rr", network=path, executor="serial", store=store)
        assert (found.counts, found.column("rtt_ms")) == ((0, 1, 0), [rtt_ms])


def test_a_scheme_that_is_code_is_known_by_its_source(store: Any) -> None:
    arguments = {"schemes": [FifoScheduler], "executor": "serial", "store": store}
    assert sweep(PAGE, **arguments).counts == (0, 1, 0)
    assert sweep(PAGE, **arguments).counts == (1, 0, 0)
    namespace: dict[str, Any] = {"FifoScheduler": FifoScheduler}
    exec("class Hidden(FifoScheduler): pass", namespace)
    with pytest.raises(InputError, match="Hidden is code whose source cannot be read"):
        sweep(PAGE, **(arguments | {"schemes": [namespace["Hidden"]]}))


def test_the_model_has_version_and_digest_and_stays_what_it_is() -> None:
    name, version, digest = model_version().split()[:3]
    assert (name, version, len(digest)) == ("h3sim", h3sim.__version__, 12)


# What may be wrong with a file


def test_a_file_that_is_no_store_is_left_alone(store: Any) -> None:
    store.write_text("hello, I am not a database at all", encoding="utf-8")
    with pytest.raises(StoreError, match="give another file"):
        run(study(1), store)
    assert store.read_text(encoding="utf-8").startswith("hello")
    foreign = store.with_name("foreign.db")
    with sqlite3.connect(foreign) as database:
        database.execute("CREATE TABLE things (name)")
    database.close()
    with pytest.raises(StoreError, match="is not a store of studies"):
        run(study(1), foreign)


def test_a_store_of_another_version_is_told(store: Any) -> None:
    run(study(1), store)
    with sqlite3.connect(store) as database:
        database.execute("PRAGMA user_version = 7")
    database.close()
    with pytest.raises(StoreError, match="is h3sim-store/7, and this h3sim reads h3sim-store/2"):
        run(study(1), store)


DAMAGE = {
    "axes of another type": ("UPDATE studies SET axes = 'null'", "study 1: the file is damaged"),
    "axes that are no JSON": ("UPDATE studies SET axes = '['", "study 1: the file is damaged"),
    "axes that are numbers": ("UPDATE studies SET axes = '[1]'", "study 1: the file is damaged"),
    "a name that is bytes": ("UPDATE studies SET name = x'00'", "study 1: the file is damaged"),
    "a row that is no object": ("UPDATE cells SET row = '[]'", "a row cannot be read"),
    "a row that is no JSON": ("UPDATE cells SET row = '{'", "a row cannot be read"),
    "a row that is bytes": ("UPDATE cells SET row = x'ff'", "a row cannot be read"),
}


@pytest.mark.parametrize("change", DAMAGE)
def test_a_store_whose_values_are_damaged_is_told(store: Any, change: str) -> None:
    run(study(1), store)
    command, said = DAMAGE[change]
    with sqlite3.connect(store) as other:
        other.execute(command)
    other.close()
    with pytest.raises(StoreError, match=f"{said}.*h3sim store verify"):
        list(read_results(store))


def test_what_sqlite_quotes_of_a_damaged_file_is_shown_in_one_line(store: Any) -> None:
    run(study(1), store)
    data = store.read_bytes()
    store.write_bytes(data.replace(b"key BLOB PRIMARY KEY", b"key BLOB PRIMARY \x14EY", 1))
    with pytest.raises(StoreError, match="damaged") as caught:
        Store(store, may_write=False).studies()
    assert str(caught.value).isprintable()


def test_a_folder_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="there is no folder '"):
        run(study(1), tmp_path / "nowhere" / "study.db")
    with pytest.raises(StoreError, match="is a folder"):
        run(study(1), tmp_path)
    with pytest.raises(StoreError, match="there is no such file"):
        Store(tmp_path / "study.db", may_write=False)


def test_a_store_that_may_only_be_read_is_told(store: Any) -> None:
    # Root may write to any file, so the file is opened as one that may not.
    run(study(1), store)
    with Store(store, may_write=False) as kept, pytest.raises(StoreError, match="give another"):
        kept.begin_study("t", "n", 1, [])


def test_a_full_store_is_told_and_what_was_finished_is_kept(store: Any) -> None:
    run(study(2), store)
    with Store(store) as kept:
        (pages,) = kept._db.execute("PRAGMA page_count").fetchone()
        kept._db.execute(f"PRAGMA max_page_count = {pages}")
        with pytest.raises(StoreError, match="the disk is full: make room, and run the same"):
            kept.place(1, 10, [bytes(16)] * 100_000)
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
    assert "8 loads: 0 known, 8 to run" in capsys.readouterr().out
    assert not store.exists()
    assert main([*command, "--csv", str(rows)]) == 0
    assert "8 loads: reused 0, ran 8, failed 0;" in capsys.readouterr().out
    assert main(command) == 0
    assert "8 loads: reused 8, ran 0, failed 0;" in capsys.readouterr().out
    assert main([*command, "--dry-run"]) == 0
    assert "8 loads: 8 known, 0 to run" in capsys.readouterr().out
    assert main(["store", "list", str(store)]) == 0
    listed = capsys.readouterr().out
    assert "rtt_ms, scheme, seed" in listed
    assert main(["store", "verify", str(store)]) == 0
    assert "sound" in capsys.readouterr().out
    exported = tmp_path / "exported.csv"
    assert main(["store", "export", str(store), str(exported)]) == 0
    assert exported.read_bytes() == rows.read_bytes()
    assert main(["store", "prune", str(store), "--failed", "--other-models"]) == 0
    assert "forgot 0 cells" in capsys.readouterr().out.splitlines()[-1]


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
        ("seeds = 2", "seeds = -2", "seeds: must be at least 1, is -2"),
        ("seeds = 2", "seeds = [0, -2]", r"seeds\[1\]: must not be negative, is -2"),
        ("seeds = 2", "sedes = 2", "sedes: unknown key"),
        ("[0, 50]", "50", "axes.rtt_ms: must be a list"),
        ("rtt_ms", "rtt", "rtt: there is no such option; did you mean rtt_ms"),
        ('"tcp"', '["tcp"]', "settings.transport: must be one value"),
        ("rtt_ms", "transport", "axes.transport: is fixed in settings"),
        ("[0, 50]", '[0, "x"]', r"axes\.rtt_ms\[1\]: must be a number, is 'x'"),
        ("[axes]", "[samples]\nn = 0\n[axes]", "samples.n: must be 1 to 1,000,000, is 0"),
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
        ('transport = "tcp"', "seeds = 3", "settings.seeds: is no option of a load"),
        ('transport = "tcp"', "loss = []", r"settings.loss: must be one value .*, is \[\]"),
        ("[0, 50]", "[[0], 50]", r"axes.rtt_ms\[0\]: must be one value, is \[0\]"),
    ],
)
def test_every_mistake_of_a_study_is_a_line(
    study_file: Any, capsys: pytest.CaptureFixture[str], before: Any, after: Any, message: Any
) -> None:
    import re

    study_file.write_text(STUDY.replace(before, after, 1), encoding="utf-8")
    assert main(["sweep", str(study_file)]) == 2
    told = capsys.readouterr().err
    assert re.search(message, told), told
    assert "Traceback" not in told


def test_outputs_that_cannot_be_written_are_told_before_anything_runs(
    study_file: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["sweep", str(study_file), "--csv", "/nowhere/rows.csv"]) == 2
    assert "--csv" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("action", "content", "said"),
    [
        (["list"], None, "there is no such file"),
        (["verify"], None, "there is no such file"),
        (["prune", "--failed"], None, "there is no such file"),
        (["list"], b"", "is empty"),
        (["prune", "--failed"], b"", "is empty"),
        (["list"], b"no store at all", "file is not a database: give another file"),
    ],
)
def test_what_is_no_store_is_bad_input_and_stays_as_it_was(
    store: Path, capsys: pytest.CaptureFixture[str], action: Any, content: Any, said: str
) -> None:
    if content is not None:
        store.write_bytes(content)
    assert main(["store", action[0], str(store), *action[1:]]) == 2
    assert capsys.readouterr().err == f"h3sim: {store}: {said}\n"
    assert (store.read_bytes() if store.exists() else None) == content


def test_to_forget_it_must_be_said_what(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["store", "prune", str(store)]) == 2
    assert "say what is of no use: --failed, --other-models" in capsys.readouterr().err


def test_a_study_with_failed_loads_ends_with_1(
    study_file: Any, store: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    text = STUDY.replace('transport = "tcp"', 'transport = "tcp"\nloss = 0.999')
    study_file.write_text(text, encoding="utf-8")
    assert main(["sweep", str(study_file), "--store", str(store), "-j", "1"]) == 1
    out, err = capsys.readouterr()
    assert "failed 8;" in out
    assert "failed: mine, rr, " in err
    assert "StalledError" in err


_KILLED = """
import os, signal, sys
from tests import standins
from tests.unit.test_sweep_store import study
def die(cell):
    if cell.seed == 5:
        os.kill(os.getpid(), signal.SIGKILL)
    return standins.told(cell)
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
    told = {name: million.run_step(name, 4000, store) for name in million.STEPS}
    assert "4,000 loads: 0 known, 4,000 to run" in told["plan"]
    assert "stopped half way" in told["run, interrupted"]
    assert told["resume"].endswith("failed 0")
    assert "reused 4,000, ran 0, failed 0" in told["run again"]
    assert told["sum up"].endswith("8 means of 4,000 loads")
