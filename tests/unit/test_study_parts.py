"""Parts of a study on several machines, their merged stores, and plans."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from h3sim.cli import main
from h3sim.study import Store, StoreError, load_study, merge_stores, read_results, sweep
from h3sim.study.packed_rows import pack, unpack
from h3sim.study.study_file import study_from_dict
from h3sim.values.errors import InputError
from tests.effort import HANG_S
from tests.helpers import page_of

PAGE = page_of({"id": "/", "kind": "document", "bytes": 2800})
STUDY: dict[str, Any] = {"schemes": ["rr", "fifo"], "rtt_ms": [0, 20], "executor": "serial"}


def part(number: int, n: int, store: Path | None = None, **changes: Any) -> Any:
    return sweep(PAGE, seeds=8, **{**STUDY, **changes}, part=f"{number}/{n}", store=store)


def test_parts_are_disjoint_and_together_the_study() -> None:
    parts = [list(part(number, 3)) for number in (1, 2, 3)]
    whole = list(sweep(PAGE, seeds=8, **STUDY))
    assert all(parts)
    assert len(whole) == sum(map(len, parts)) == 32
    assert all(row in whole for rows in parts for row in rows)


def test_a_part_has_all_schemes_and_keeps_its_loads_in_a_larger_study() -> None:
    rows = list(part(2, 3))
    settings = {(row["rtt_ms"], row["seed"]) for row in rows}
    assert len(rows) == 2 * len(settings)
    larger = part(2, 3, schemes=["rr", "fifo", "wrr"], rtt_ms=[0, 20, 40])
    assert settings <= {(row["rtt_ms"], row["seed"]) for row in larger}


def test_merged_parts_are_the_study_without_another_run(tmp_path: Path) -> None:
    stores = [tmp_path / f"{number}.db" for number in (1, 2)]
    for number, store in enumerate(stores, 1):
        part(number, 2, store)
    merged = tmp_path / "all.db"
    assert main(["store", "merge", *map(str, stores), "-o", str(merged)]) == 0
    with Store(merged, may_write=False) as kept:
        assert kept.verify() == []
        (study,) = kept.studies()
        assert (study.n, study.done) == (32, 32)
    again = sweep(PAGE, seeds=8, **STUDY, store=merged)
    assert again.counts == (32, 0, 0)
    assert list(read_results(merged)) == list(again) == list(sweep(PAGE, seeds=8, **STUDY))


def test_a_part_is_resumed_from_its_store_elsewhere(tmp_path: Path) -> None:
    part(1, 2, tmp_path / "a.db")
    (tmp_path / "a.db").rename(tmp_path / "b.db")
    rest = part(2, 2, tmp_path / "b.db")
    assert rest.counts.reused + rest.counts.ran == len(rest) == 32
    assert rest.counts.reused == len(part(1, 2))


def test_stores_of_other_versions_or_results_are_not_merged_unasked(tmp_path: Path) -> None:
    one, two, out = (tmp_path / name for name in ("1.db", "2.db", "out.db"))
    load_study(PAGE, schemes="rr").run(store=one, executor="serial")
    other = load_study(PAGE, schemes="rr", seeds=2)
    other.model = "h3sim 0.1"
    other.run(store=two, executor="serial")
    with pytest.raises(StoreError, match=r"2\.db has h3sim 0\.1"):
        merge_stores([one, two], out)
    assert not out.exists()
    assert merge_stores([one, two], out, other_models=True) == 3
    with pytest.raises(StoreError, match="exists"):
        merge_stores([one], out)


def test_a_damaged_store_is_not_merged(tmp_path: Path) -> None:
    load_study(PAGE, schemes="rr").run(store=tmp_path / "1.db", executor="serial")
    with sqlite3.connect(tmp_path / "1.db") as database:
        database.execute("UPDATE cells SET seconds = seconds + 1")
    database.close()
    with pytest.raises(StoreError, match="is damaged"):
        merge_stores([tmp_path / "1.db"], tmp_path / "out.db")
    assert not (tmp_path / "out.db").exists()


@pytest.mark.parametrize("wrong", ["0/3", "4/3", "1", "1/0", "x/2", 3])
def test_no_part_is_refused(wrong: Any, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="part: must be a number of n"):
        load_study(PAGE, part=wrong)
    document = {"format": "h3sim-study/1", "pages": ["creative"], "part": wrong}
    with pytest.raises(InputError, match="part: must be a number of n"):
        study_from_dict(document)
    study = tmp_path / "study.toml"
    study.write_text('format = "h3sim-study/1"\npages = ["creative"]\n')
    assert main(["sweep", str(study), "--dry-run", "--part", str(wrong)]) == 2


def test_a_plan_states_time_with_its_error_and_a_size_that_the_store_then_has(
    tmp_path: Path,
) -> None:
    store = tmp_path / "study.db"
    study = load_study(PAGE, schemes=["rr", "fifo"], seeds=200, network="4g", loss=0.01)
    plan = study.plan(store=store, workers=1)
    assert (plan.loads, plan.reused, plan.to_run) == (400, 0, 400)
    assert 0 < plan.error_seconds < plan.seconds
    study.run(store=store, executor="serial")
    with sqlite3.connect(store) as database:
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    database.close()
    assert plan.store_bytes == pytest.approx(store.stat().st_size, rel=0.25)
    assert study.plan(store=store, workers=1).to_run == 0
    half = load_study(
        PAGE, schemes=["rr", "fifo"], seeds=200, network="4g", loss=0.01, part="1/2"
    ).plan()
    assert 150 < half.loads < 250
    assert half.loads % 2 == 0


def test_packed_rows_of_older_stores_stay_readable() -> None:
    """The first bytes name the dictionary (RFC 1950): another one is another format of stores."""
    data = bytes.fromhex("78bb0c46090d")
    assert pack("{}")[:6] == data
    assert unpack(pack('{"page": "x"}')) == '{"page": "x"}'
    for wrong in (b"", data, pack("{}") + b"x", b"{}"):
        with pytest.raises(ValueError, match=r"Error|not one"):
            unpack(wrong)


@pytest.mark.skipif(os.name != "posix", reason="SLURM runs on Linux")
def test_the_array_of_slurm_jobs_runs_the_study_and_goes_on(tmp_path: Path) -> None:
    script = Path(__file__).parents[2] / "docs" / "sweep.sbatch"
    study = tmp_path / "study.toml"
    study.write_text(
        'format = "h3sim-study/1"\nname = "s"\npages = ["davies-meenan"]\n'
        'schemes = ["rr", "fifo"]\nseeds = 3\n[axes]\nrtt_ms = [0, 20]\n'
    )
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    slurm = {"SLURM_ARRAY_TASK_COUNT": "2", "SLURM_CPUS_PER_TASK": "1", "PATH": path}

    def run(number: int) -> str:
        environment = {**os.environ, **slurm, "SLURM_ARRAY_TASK_ID": str(number)}
        command = ["bash", str(script), str(study)]
        done = subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=HANG_S
        )
        assert done.returncode == 0, done.stderr
        return done.stdout + done.stderr

    for number in (1, 2):
        run(number)
    assert "ran 0" in run(1)
    parts = sorted(tmp_path.glob("part-*/study.db"))
    merge_stores(parts, tmp_path / "all.db")
    assert len(read_results(tmp_path / "all.db")) == 12
