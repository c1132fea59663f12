"""Evidence of chosen loads beside a store, saved loads, and processes in studies."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import h3sim
from h3sim.headers.base import HeaderLists, TimedSection
from h3sim.qlog import parse_qlog
from h3sim.study import sweep
from h3sim.values.errors import InputError
from h3sim.values.units import mbps, ms
from tests.helpers import page_of

if TYPE_CHECKING:
    from collections.abc import Generator

PAGE = page_of({"id": "/", "kind": "document", "bytes": 28_000})
STUDY: dict[str, Any] = {"schemes": ["rr", "fifo"], "network": "cable", "executor": "serial"}


def slower(env: Any) -> Generator[Any, Any, Any]:
    yield env.timeout(ms(1))
    env.down.set_rate(mbps(0.5))


def kept_of(store: Path, row: dict[str, Any]) -> list[Path]:
    return [Path(f"{store}.kept") / name for name in (row["kept"] or "").split()]


def test_a_kept_trace_is_the_load_of_its_row(tmp_path: Path) -> None:
    store = tmp_path / "study.db"
    results = sweep(PAGE, **STUDY, keep="trace", store=store)
    for row in results:
        (file,) = kept_of(store, row)
        load = h3sim.read_load(file).run()
        assert (load.scheme.name, load.page_load_ms) == (row["scheme"], row["page_load_ms"])
        assert load.trace.packet_rows


def test_a_function_chooses_what_is_kept_and_its_files_run_again_when_they_are_lost(
    tmp_path: Path,
) -> None:
    store = tmp_path / "study.db"
    study = {**STUDY, "keep": lambda load: "qlog" if load.scheme.name == "fifo" else None}
    rr, fifo = sweep(PAGE, **study, store=store)
    assert rr["kept"] is None
    (file,) = kept_of(store, fifo)
    assert parse_qlog(file).trace.packet_rows
    assert sweep(PAGE, **study, store=store).counts == (2, 0, 0)
    content = file.read_bytes()
    file.unlink()
    assert sweep(PAGE, **{**study, "executor": "processes"}, store=store).counts == (1, 1, 0)
    assert file.read_bytes() == content


def test_what_cannot_be_kept_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="keep: needs a store"):
        sweep(PAGE, **STUDY, keep="qlog")
    with pytest.raises(InputError, match="keep: must be 'qlog', 'trace' or a function"):
        sweep(PAGE, **STUDY, keep="pcap")
    results = sweep(PAGE, **STUDY, keep=lambda load: load.page.name, store=tmp_path / "study.db")
    assert all("must return 'qlog', 'trace' or None" in error for error in results.errors)
    lists = HeaderLists.of([TimedSection(10**7, ((b"x", b"y"),))])
    with pytest.raises(InputError, match=r"keep: .*loads of pages"):
        sweep(lists, schemes="rr", keep="qlog")


def test_a_saved_load_runs_again_with_its_trace(tmp_path: Path) -> None:
    load = h3sim.simulate(PAGE, scheme="fifo", network="cable")
    load.save(tmp_path / "load.json")
    saved = h3sim.read_load(tmp_path / "load.json")
    assert saved.run().trace.digest() == load.trace.digest()
    assert saved.document["order"] == load.to_dict(order=True)["order"]


def test_processes_run_beside_each_load_and_have_a_column() -> None:
    quiet, slow = sweep(PAGE, **STUDY), sweep(PAGE, **STUDY, processes=[slower])
    for row, other in zip(quiet, slow, strict=True):
        load = h3sim.simulate(PAGE, scheme=row["scheme"], network="cable", processes=[slower])
        assert other["page_load_ms"] == load.page_load_ms > row["page_load_ms"]
        assert other["processes"].startswith("slower ")
    joined = quiet.join(slow)
    assert "processes" in joined.axes
    assert joined.n_merged == 0


def test_a_store_tells_loads_with_and_without_processes_apart(tmp_path: Path) -> None:
    store = tmp_path / "study.db"
    sweep(PAGE, **STUDY, store=store)
    assert sweep(PAGE, **STUDY, processes=[slower], store=store).counts == (0, 2, 0)
    assert sweep(PAGE, **STUDY, processes=[slower], store=store).counts == (2, 0, 0)


def test_a_file_beside_a_csv_file_says_units_version_configuration_and_digest(
    tmp_path: Path,
) -> None:
    results = h3sim.sweep("davies-meenan", schemes=["rr", "fifo"], rtt_ms=50, executor="serial")
    results.to_csv(path := tmp_path / "rows.csv")
    about = json.loads((tmp_path / "rows.csv.json").read_text("utf-8"))
    assert about["sha256"] == hashlib.sha256(path.read_bytes()).hexdigest()
    assert about["units"]["page_load_ms"] == "ms"
    assert about["version"] == h3sim.__version__
    assert about["configuration"]["rtt_ms"] == 50
    assert "scheme" not in about["configuration"]
    assert about["axes"] == list(results.axes)
