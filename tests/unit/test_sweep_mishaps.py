"""What happens to sweeps on real machines: full disks, files that may not be written, plug-ins.

Whatever it is, nothing finished is lost, the message says what to do, and the same call goes on.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
import threading
import time
from typing import TYPE_CHECKING, Any

import pytest

from h3sim.cli import main
from h3sim.schedulers import FifoScheduler
from h3sim.study import Store, StoreError, Study, load_study, sweep
from tests import standins
from tests.effort import HANG_S
from tests.helpers import page_file, page_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

ROOT = {"id": "/", "kind": "document", "bytes": 2800}
PAGE = page_of(ROOT)
N_SEEDS = 120
"""So many rows of `standins.large` do not fit the small disk."""
DISK = "256k"

STUDY = f"""\
format = "h3sim-study/1"
pages = ["mine.json"]
schemes = ["rr", "fifo"]
seeds = {N_SEEDS}
"""


def study(stand_in: Any = standins.large, n_seeds: int = N_SEEDS) -> Any:
    made = load_study(PAGE, schemes=["rr", "fifo"], seeds=n_seeds)
    return standins.standing_in(made, stand_in)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of its own that is soon full; only root may mount one."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = shutil.which("mount")
    if mount is None or os.geteuid() != 0:
        pytest.skip("needs root, to mount a small disk")
    command = [mount, "-t", "tmpfs", "-o", f"size={DISK}", "tmpfs", str(disk)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"no disk can be mounted here: {done.stderr.strip()}")
    yield disk
    # The errors that tests look at still hold the store.
    subprocess.run(["umount", "--lazy", str(disk)], check=True)


@pytest.mark.parametrize("executor", ["serial", "processes"])
def test_a_disk_that_is_full_loses_nothing_and_the_sweep_goes_on_with_room(
    small_disk: Path, executor: Any
) -> None:
    store = small_disk / "study.db"
    with pytest.raises(StoreError, match="free some space, then run the same again") as caught:
        study().run(store=store, executor=executor, workers=2)
    assert "finished loads are kept" in str(caught.value)
    with Store(store, may_write=False) as kept:
        assert kept.verify() == []
        (known,) = kept.studies()
    assert 0 < known.done < 2 * N_SEEDS
    subprocess.run(["mount", "-o", "remount,size=16m", str(small_disk)], check=True)
    results = study().run(store=store, executor=executor, workers=2)
    assert results.counts == (known.done, 2 * N_SEEDS - known.done, 0)
    assert list(results) == list(study().run(executor="serial"))


def test_the_command_line_reports_a_full_disk_without_a_traceback(
    small_disk: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page_file(tmp_path, ROOT)
    file = tmp_path / "study.toml"
    file.write_text(STUDY, encoding="utf-8")
    store = small_disk / "study.db"
    command = ["sweep", str(file), "--store", str(store), "--resources", "-j", "1"]
    assert main(command) == 1
    reported = capsys.readouterr().err
    assert "free some space, then run the same again" in reported
    assert "Traceback" not in reported
    with Store(store, may_write=False) as kept:
        assert kept.verify() == []


def test_a_disk_that_is_full_from_the_start_is_reported(small_disk: Path) -> None:
    (small_disk / "fill").write_bytes(bytes(255 * 1024))
    with pytest.raises(StoreError, match="free some space"):
        study().run(store=small_disk / "study.db", executor="serial")


def test_a_disk_that_may_only_be_read_is_reported_and_its_rows_can_be_read(
    small_disk: Path,
) -> None:
    store = small_disk / "study.db"
    before = list(study(n_seeds=5).run(store=store, executor="serial"))
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    with pytest.raises(StoreError, match="its folder must exist and be writable"):
        study(n_seeds=6).run(store=store, executor="serial")
    with Store(store, may_write=False) as kept:
        assert [row is not None for row, _, _ in kept.rows(1)] == [True] * len(before)


class RaisingScheduler(FifoScheduler):
    """A plug-in with a mistake."""

    def pick(self) -> Any:
        raise ZeroDivisionError("the plug-in's own mistake")


class HangingScheduler(FifoScheduler):
    """A plug-in that never answers."""

    def pick(self) -> Any:
        while True:
            time.sleep(1)  # asleep, so that no other test is kept waiting


@pytest.mark.parametrize("executor", ["serial", "processes"])
def test_a_plug_in_that_raises_fails_its_loads_only(tmp_path: Path, executor: Any) -> None:
    results = sweep(
        PAGE, schemes=[RaisingScheduler, "rr"], seeds=2, executor=executor, workers=2,
        store=tmp_path / "study.db",
    )  # fmt: skip
    assert results.counts == (0, 2, 2)
    assert [row["scheme"] for row in results] == ["rr", "rr"]
    assert all(
        "ZeroDivisionError: the plug-in's own mistake" in reported for reported in results.errors
    )


def test_a_plug_in_that_hangs_is_ended_where_a_time_is_given(tmp_path: Path) -> None:
    # The other load has all that time, too: a worker's first one reads modules.
    results = sweep(
        PAGE, schemes=[HangingScheduler, "rr"], executor="processes", workers=2, timeout_s=4,
        store=tmp_path / "study.db",
    )  # fmt: skip
    assert results.counts == (0, 1, 1)
    assert "took longer than 4 s" in results.errors[0]


def test_a_store_of_an_older_version_is_reported_and_left_as_it_was(tmp_path: Path) -> None:
    store = tmp_path / "study.db"
    study(n_seeds=2).run(store=store, executor="serial")
    with sqlite3.connect(store) as database:
        database.execute("PRAGMA user_version = 0")
    database.close()
    before = store.read_bytes()
    with pytest.raises(StoreError, match=r"h3sim-store/0.*use another file"):
        study(n_seeds=2).run(store=store, executor="serial")
    assert store.read_bytes() == before


def test_two_sweeps_at_once_on_one_store_both_end_with_all_rows(tmp_path: Path) -> None:
    store = tmp_path / "study.db"
    script = (
        "import sys\nfrom tests.unit.test_sweep_mishaps import study\n"
        "print(sum(study().run(store=sys.argv[1], executor='serial').counts))\n"
    )
    both = [
        subprocess.Popen(
            [sys.executable, "-c", script, str(store)], stdout=subprocess.PIPE, text=True
        )
        for _ in range(2)
    ]
    reported = [process.communicate(timeout=HANG_S)[0].strip() for process in both]
    assert reported == [str(2 * N_SEEDS)] * 2
    with Store(store, may_write=False) as kept:
        assert kept.verify() == []
        assert [known.done for known in kept.studies()] == [2 * N_SEEDS]


class Contested(sqlite3.Connection):
    """Refuses at first to log ahead, as SQLite does where another switches the file just now."""

    n_asked = 0

    def execute(self, sql: str, *parameters: Any) -> sqlite3.Cursor:
        if "journal_mode" in sql:
            Contested.n_asked += 1
            if Contested.n_asked == 1:
                error = sqlite3.OperationalError("database is locked")
                error.sqlite_errorcode = sqlite3.SQLITE_BUSY
                raise error
        return super().execute(sql, *parameters)


def test_a_store_that_another_sweep_switches_as_well_is_requested_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    connect = sqlite3.connect
    monkeypatch.setattr(
        sqlite3, "connect", lambda path, **options: connect(path, factory=Contested, **options)
    )
    with Store(tmp_path / "study.db") as made:
        assert made.verify() == []
    assert Contested.n_asked == 2
    monkeypatch.undo()
    with Store(tmp_path / "study.db", may_write=False) as kept:
        assert kept.studies() == []


def test_no_thread_is_left_behind(tmp_path: Path) -> None:
    before = threading.active_count()
    study(standins.reported, 5).run(store=tmp_path / "s.db", executor="processes", workers=2)
    assert threading.active_count() <= before


def test_all_names_that_nobody_knows_and_files_that_cannot_be_read_are_reported_at_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "study.toml"
    path.write_text(
        'format = "h3sim-study/1"\n'
        'pages = ["davies-meenan", "nosuch", "broken.json"]\n'
        'schemes = "fifoo"\n'
        'settings.network = "cabel"\n'
        'axes.transport_profile = ["quicly", "quickly"]\n'
        'cells = [{ network = "recorded" }, { network = "recoded" }]\n'
    )
    (tmp_path / "broken.json").write_text("[")
    assert main(["sweep", str(path)]) == 2
    reported = [line.split(": ")[2] for line in capsys.readouterr().err.splitlines()]
    assert reported == [
        *("cells[0].network", "cells[1].network"),  # is fixed in settings
        *("pages[1]", "pages[2]", "schemes[0]", "settings.network"),
        *("axes.transport_profile[1]", "cells[1].network"),
    ]


def test_values_that_cannot_be_are_reported_with_names_and_keys_that_nobody_knows(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "study.toml"
    path.write_text(
        'format = "h3sim-study/1"\n'
        'pages = ["nosuch"]\n'
        'pagse = ["davies-meenan"]\n'
        'schemes = "fifoo"\n'
        'settings = { transport = "sctp", rtt_ms = -4, network = "cabel" }\n'
        "axes = { loss = [0.1, 2.0], seedz = [1] }\n"
        'cells = [{ send_buffer_kb = 14 }, { send_buffer_kb = "x", cc = "cubix" }]\n'
    )
    assert main(["sweep", str(path)]) == 2
    reported = [line.split(": ")[2:] for line in capsys.readouterr().err.splitlines()]
    assert [line[0] for line in reported] == [
        *("pagse", "axes.seedz", "settings.transport", "settings.rtt_ms", "axes.loss[1]"),
        *("cells[1].send_buffer_kb", "pages[0]", "schemes[0]", "settings.network", "cells[1].cc"),
    ]
    assert reported[2][1] == "'sctp' is not one of quic, tcp, http1, qmux"


@pytest.mark.parametrize(
    ("package", "command"),
    [
        ("scipy", ["compare", "davies-meenan", "--seeds", "2"]),
        ("pyarrow", ["sweep", "study.toml", "--parquet", "rows.parquet"]),
    ],
)
def test_a_library_that_the_end_needs_is_requested_before_anything_runs(
    package: str,
    command: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "study.toml").write_text('format = "h3sim-study/1"\npages = "davies-meenan"\n')
    monkeypatch.setitem(sys.modules, package, None)
    monkeypatch.setattr(Study, "run", None)  # would raise if it were called
    assert main(command) == 1
    reported = capsys.readouterr()
    assert reported.err == f"h3sim: this needs {package}: pip install 'h3sim[study]'\n"
    assert reported.out == ""
