"""Designs, sweeps and their results, in one process."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from types import ModuleType, SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

import h3sim
from h3sim.study import Range, Results, load_study, read_results, runner, sweep
from h3sim.study.design import FactorialDesign, sampled
from h3sim.values.errors import (
    InputError,
    NothingToMeasureError,
    UnknownNameError,
    UnknownOptionError,
)
from h3sim.values.notebook import in_notebook
from tests.helpers import page_of
from tests.standins import standing_in

if TYPE_CHECKING:
    from pathlib import Path

ROOT = {"id": "/", "kind": "document", "bytes": 28_000}
IMAGE = {"id": "a", "kind": "image", "bytes": 14_000, "discovered": {"by": "/", "at": "request"}}
PAGE = page_of(ROOT, IMAGE)
OTHER = page_of(ROOT, IMAGE | {"bytes": 140_000}, name="other")
FEW: dict[str, Any] = {"schemes": ["rr", "fifo"], "seeds": 2, "executor": "serial"}


# Designs


def test_every_combination_stands_once_in_the_order_of_the_parameters() -> None:
    design = load_study(
        [PAGE, OTHER], schemes=["rr", "fifo"], seeds=[5, 3], rtt_ms=[0, 20], loss=[0.0, 0.1]
    ).design
    cells = [
        (cell.page.name, *cell.options.values(), cell.scheme.name, cell.seed) for cell in design
    ]
    assert len(design) == len(cells) == len(set(cells)) == 32
    assert cells[:3] == [
        ("page", 0, 0.0, "rr", 5),
        ("page", 0, 0.0, "rr", 3),
        ("page", 0, 0.0, "fifo", 5),
    ]
    assert cells[4][1:3] == (0, 0.1)
    assert cells[-1] == ("other", 20, 0.1, "fifo", 3)
    assert design.axes == ("page", "rtt_ms", "loss", "scheme", "seed")
    with pytest.raises(IndexError):
        design[32]


def test_a_design_of_a_million_loads_is_a_few_lists() -> None:
    design = load_study(PAGE, schemes=["rr", "fifo"], seeds=range(500_000)).design
    assert len(design) == 1_000_000
    assert design[999_999].seed == 499_999


def test_listed_cells_are_combined_with_the_axes() -> None:
    cells = [{"rtt_ms": 10, "rate_mbps": 50}, {"rtt_ms": 100, "rate_mbps": 1}]
    design = load_study(PAGE, schemes="rr", cells=cells, transport=["quic", "tcp"]).design
    assert [tuple(cell.options.values()) for cell in design] == [
        (10, 50, "quic"), (10, 50, "tcp"), (100, 1, "quic"), (100, 1, "tcp"),
    ]  # fmt: skip
    assert design.axes == ("rtt_ms", "rate_mbps", "transport")


def test_values_of_an_axis_may_come_one_by_one() -> None:
    design = load_study(
        PAGE, rtt_ms=(10 * n for n in range(3)), loss=map(float, ["0", ".1"])
    ).design
    assert design.settings.axes == {"rtt_ms": (0, 10, 20), "loss": (0.0, 0.1)}


@pytest.mark.parametrize("others", [50, [50, 60], Range(low=10, high=90)])
def test_what_cells_have_is_refused_next_to_them(others: Any) -> None:
    with pytest.raises(
        InputError, match="rtt_ms: is given both in cells and as an argument"
    ) as caught:
        load_study(PAGE, cells=[{"rtt_ms": 10}, {"loss": 0.1}], rtt_ms=others, samples=2)
    assert [problem.key for problem in caught.value.problems] == ["rtt_ms"]


@pytest.mark.parametrize("method", ["latin-hypercube", "sobol"])
def test_samples_fill_their_ranges_and_are_the_same_for_one_seed(method: Any) -> None:
    ranges = {
        "rtt_ms": Range(low=10, high=90),
        "max_concurrent_requests": Range(low=1, high=8, integer=True),
    }
    drawn = sampled(ranges, 16, method=method, seed=4)
    assert drawn == sampled(ranges, 16, method=method, seed=4)
    assert drawn != sampled(ranges, 16, method=method, seed=5)
    # Of either method each sixteenth of a range holds one point.
    assert sorted(int((point["rtt_ms"] - 10) / 5) for point in drawn) == list(range(16))
    assert {type(point["max_concurrent_requests"]) for point in drawn} == {int}
    assert {point["max_concurrent_requests"] for point in drawn} <= set(range(1, 9))


def test_sampled_settings_are_loaded() -> None:
    results = sweep(PAGE, samples=4, rtt_ms=Range(low=10, high=90), **FEW)
    assert len(results) == 16
    assert all(10 <= row["rtt_ms"] <= 90 for row in results)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"rtt": [1]}, "rtt: .*rtt_ms"),
        ({"seed": [1]}, "seed: .*seeds"),
        ({"rtt_ms": []}, "rtt_ms: at least one value is needed"),
        ({"rtt_ms": [5, 5]}, "rtt_ms: 5 is given twice"),
        ({"rtt_ms": [5, "x"]}, "rtt_ms: .*, is 'x'"),
        ({"rtt_ms": Range(low=1, high=2)}, "rtt_ms: a range needs samples"),
        ({"cells": []}, "cells: at least one is needed"),
        ({"cells": [{"rtt": 5}]}, "rtt: "),
        ({"seeds": []}, "seeds: at least one is needed"),
        ({"seeds": [1.5, -1]}, "seeds: must be whole numbers from 0 on, is 1.5"),
        ({"seeds": [1, 1]}, "seeds: one is duplicated"),
        ({"schemes": ["rr", "rr"]}, "schemes: .rr. is given twice"),
        ({"seeds": 0}, "seeds: at least one is needed"),
        ({"samples": 3, "sampling": "sobol", "rtt_ms": Range(low=1, high=2)}, "power of two"),
        (
            {"samples": 4, "sampling": "grid", "rtt_ms": Range(low=1, high=2)},
            "'grid'",
        ),
        ({"executor": 5}, "executor: must be 'serial'"),
        ({"workers": 0}, "workers: .*, is 0"),
        ({"mean_loss_burst": [2, 5]}, "mean_loss_burst: clusters losses"),
        (
            {"metrics": ["jain"]},
            r"metrics\[0\]: 'jain' .*paint_bounds_first_paint_ms, .*"
            r"_speed_index_ratio, multiplexing_interleaving",
        ),
    ],
)
def test_every_mistake_is_told_before_anything_runs(arguments: Any, message: Any) -> None:
    with pytest.raises(InputError, match=message):
        sweep(PAGE, **{"schemes": "rr", **arguments})


def test_unknown_names_are_reported_with_those_spelt_alike() -> None:
    with pytest.raises(UnknownNameError, match="4g"):
        sweep(PAGE, network=["4gg"])
    with pytest.raises(UnknownOptionError):
        sweep(PAGE, bandwidth=[5])  # type: ignore[call-arg]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"low": 5, "high": 5}, "high: "),
        ({"low": "x", "high": 5}, "low: must be a number"),
        ({"low": 0, "high": 5, "log": True}, "low: "),
        ({"low": float("nan"), "high": 5}, "low: must be a finite number"),
        ({"low": 0, "high": 5, "log": 1}, "log: must be true or false"),
    ],
)
def test_a_range_without_sense_is_refused(given: Any, message: Any) -> None:
    with pytest.raises(InputError, match=message):
        Range(**given)


def test_combinations_end_where_they_end() -> None:
    combinations = FactorialDesign(listed=({},), axes={"a": (1, 2)})
    assert list(combinations) == [{"a": 1}, {"a": 2}]
    with pytest.raises(IndexError):
        combinations[2]


# Rows


def test_a_row_has_the_settings_and_the_figures_of_its_load() -> None:
    (row,) = sweep(
        PAGE, schemes="fifo", seeds=[7], executor="serial", network="4g", loss=0.01, cc="newreno"
    )
    load = h3sim.simulate(PAGE, scheme="fifo", seed=7, network="4g", loss=0.01, cc="newreno")
    assert row["network"] == "4g"
    known = load.configuration | {"network": "4g"}
    assert {key: row[key] for key in known} == known
    assert row["page_digest"] == PAGE.digest
    assert row["version"] == h3sim.__version__
    assert row["page_load_ms"] == load.page_load_ms
    assert row["byte_index_all_ms"] == load.byte_index()
    assert row["byte_index_atf_ms"] is None
    assert row["hol_stream_bytes"] == load.hol.stream_bytes
    assert row["packets_lost"] == load.packets.lost


def test_rows_are_found_again_by_the_codec_that_was_named() -> None:
    codecs = ["none", "hpack"]
    results = sweep(PAGE, schemes="rr", executor="serial", network="4g", header_compression=codecs)
    assert results.column("header_compression") == codecs
    (row,) = results.filter(header_compression="none")
    (unnamed,) = sweep(PAGE, schemes="rr", executor="serial", network="4g")
    assert unnamed["header_compression"] is None
    assert row | {"header_compression": None} == unnamed


def test_figures_that_take_long_are_columns_on_request() -> None:
    asked = ["multiplexing_jain_index", "multiplexing_interleaving"]
    (row,) = sweep(PAGE, schemes="rr", executor="serial", metrics=asked)
    load = h3sim.simulate(PAGE, scheme="rr")
    assert row["multiplexing_interleaving"] == load.multiplexing.interleaving
    assert [name for name in row if name.startswith("multiplexing")] == [*reversed(asked)]
    (usual,) = sweep(PAGE, schemes="rr", executor="serial")
    assert usual == {name: value for name, value in row.items() if name not in asked}
    assert set(load.figures) > set(asked)


def test_a_store_runs_again_what_lacks_a_column(tmp_path: Path) -> None:
    study = load_study(PAGE, schemes="rr")
    store = tmp_path / "study.db"
    assert study.run(store=store, executor="serial").counts == (0, 1, 0)
    study.ask_for(["multiplexing_ttfb_slope_ms"])
    again = study.run(store=store, executor="serial")
    assert again.counts == (0, 1, 0)
    assert again[0]["multiplexing_ttfb_slope_ms"] is not None
    assert study.run(store=store, executor="serial").counts == (1, 0, 0)


def test_resources_are_kept_on_request() -> None:
    results = sweep(PAGE, resources=True, rtt_ms=[0, 50], **FEW)
    rows = results.resources()
    assert len(rows) == 2 * len(results)
    assert rows[0]["id"] == "/"
    assert {"page", "scheme", "seed", "rtt_ms", "finished_ms"} <= set(rows.columns)
    with pytest.raises(NothingToMeasureError, match="resources=True"):
        sweep(PAGE, **FEW).resources()


def test_a_load_that_fails_is_reported_and_the_others_stand() -> None:
    study = load_study(PAGE, schemes=["rr", "fifo"], seeds=2)

    def stand_in(cell: Any) -> dict[str, Any]:
        if cell.scheme.name == "fifo":
            raise SystemExit("enough")
        return {"scheme": cell.scheme.name, "seed": cell.seed}

    results = standing_in(study, stand_in).run(executor="serial")
    assert results.counts == (0, 2, 2)
    assert [row["scheme"] for row in results] == ["rr", "rr"]
    assert results.errors == [f"page, fifo, seed {n}: SystemExit: enough" for n in range(2)]


def test_a_load_that_takes_too_long_is_ended() -> None:
    study = load_study(PAGE, schemes="rr", timeout_s=0.05)

    def hang(cell: Any) -> None:
        del cell
        while True:
            pass

    results = standing_in(study, hang).run(executor="serial")
    assert results.counts.failed == 1
    assert "took longer than 0.05 s" in results.errors[0]


def test_progress_is_reported_every_load() -> None:
    reported = []
    sweep(PAGE, progress=lambda done, total: reported.append((done, total)), **FEW)
    assert reported[-1] == (4, 4)
    assert [done for done, _ in reported] == sorted(done for done, _ in reported)


@pytest.mark.parametrize("is_kernel", [False, True])
def test_a_notebook_is_reported_from_what_only_starts_one(
    is_kernel: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What starts kernels, as nbclient, loads their modules without being one."""
    monkeypatch.setitem(sys.modules, "ipykernel", ModuleType("ipykernel"))
    shell = SimpleNamespace(config={"IPKernelApp": {}} if is_kernel else {})
    ipython = SimpleNamespace(get_ipython=lambda: shell)
    monkeypatch.setitem(sys.modules, "IPython", cast("ModuleType", ipython))
    assert in_notebook() is is_kernel


@pytest.mark.parametrize("is_shown", [False, True])
def test_a_notebook_is_shown_a_bar(
    is_shown: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(runner, "in_notebook", lambda: is_shown)
    monkeypatch.setattr(runner, "CellOutput", lambda: sys.stderr)
    sweep(PAGE, **FEW)
    assert bool(capsys.readouterr().err) is is_shown


# Results


def results_of(**axes: Any) -> Any:
    return sweep([PAGE, OTHER], **FEW, **axes)


def test_results_can_be_filtered_grouped_and_joined() -> None:
    results = results_of(rtt_ms=[0, 50])
    assert len(results.filter(scheme="rr")) == 8
    assert len(results.filter(scheme="rr").filter(rtt_ms=[50], page="other")) == 2
    assert len(results.filter(lambda row: row["seed"] == 1, scheme="fifo")) == 4
    groups = results.group("page", "scheme")
    assert list(groups) == [("page", "rr"), ("page", "fifo"), ("other", "rr"), ("other", "fifo")]
    assert sum(map(len, groups.values())) == len(results)
    joined = results.filter(scheme="rr").join(results.filter(scheme="fifo"))
    assert sorted(map(json.dumps, joined)) == sorted(map(json.dumps, results))
    with pytest.raises(KeyError, match=r"no column 'schema'; there are scheme and \d+ more"):
        results.filter(schema="rr")


def test_a_table_that_was_exported_is_not_taken_for_saved_results(tmp_path: Path) -> None:
    results = sweep("davies-meenan", schemes="rr", executor="serial")
    assert repr(results).startswith("<Results of 1 row over nothing;")
    results.to_csv(tmp_path / "rows.csv")
    with pytest.raises(InputError, match=r"rows.csv: is neither a store .* pandas"):
        read_results(tmp_path / "rows.csv")


def test_a_summary_goes_by_hand_worked_numbers() -> None:
    results = Results.of([{"s": "a", "v": v} for v in (1.0, 2.0, 6.0)] + [{"s": "b", "v": None}])
    assert list(results.summary("v", by=("s",))) == [
        {"s": "a", "value": "v", "n": 3, "mean": 3.0, "sd": 7**0.5, "min": 1.0, "max": 6.0},
        {"s": "b", "value": "v", "n": 0, "mean": None, "sd": None, "min": None, "max": None},
    ]


def test_results_go_to_pandas_xarray_csv_and_parquet(tmp_path: Path) -> None:
    import pandas

    results = results_of(rtt_ms=[50, 0])
    frame = results.to_pandas()
    assert list(frame.columns) == list(results.columns)
    assert len(frame) == 16
    data = results.to_xarray("page_load_ms")
    assert dict(data.sizes) == {"page": 2, "rtt_ms": 2, "scheme": 2, "seed": 2}
    # In the order of the study, which is not that of the alphabet.
    assert list(data.coords["rtt_ms"].values) == [50, 0]
    assert list(data.coords["scheme"].values) == ["rr", "fifo"]
    where = {"page": "other", "rtt_ms": 0, "scheme": "fifo", "seed": 1}
    (row,) = results.filter(**where)
    assert float(data["page_load_ms"].sel(where)) == row["page_load_ms"]
    results.to_csv(tmp_path / "rows.csv")
    results.to_parquet(tmp_path / "rows.parquet")
    for read in (
        pandas.read_csv(tmp_path / "rows.csv"),
        pandas.read_parquet(tmp_path / "rows.parquet"),
    ):
        assert list(read.columns) == list(results.columns)
        assert list(read["page_load_ms"]) == list(frame["page_load_ms"])
        assert list(read["scheme"]) == list(frame["scheme"])


def test_saved_results_read_back_as_they_were(tmp_path: Path) -> None:
    results = results_of()
    results.save(tmp_path / "rows.jsonl")
    again = read_results(tmp_path / "rows.jsonl")
    assert list(again) == list(results)
    assert again.axes == results.axes
    (tmp_path / "no.jsonl").write_text('{"format": "x"}\n', encoding="utf-8")
    with pytest.raises(InputError, match="neither saved results nor a store"):
        read_results(tmp_path / "no.jsonl")
    with pytest.raises(InputError, match="No such file"):
        read_results(tmp_path / "nothing")


def test_rows_that_are_no_grid_have_no_xarray() -> None:
    results = Results.of([{"seed": 1, "page_load_ms": 1.0}] * 2, axes=("seed",))
    with pytest.raises(InputError, match="not a grid over seed"):
        results.to_xarray()


def test_a_notebook_shows_results_and_what_became_of_the_loads() -> None:
    results = results_of()
    assert repr(results) == (
        "<Results of 8 rows over page, scheme, seed; reused 0, ran 8, failed 0>"
    )
    shown = results._repr_html_()
    assert shown.count("<tr>") == 9
    assert "page_load_ms" in shown


def test_a_plan_states_how_many_loads_and_how_long() -> None:
    plan = load_study(PAGE, schemes=["rr", "fifo"], seeds=50).plan()
    assert (plan.loads, plan.reused, plan.to_run) == (100, 0, 100)
    assert plan.seconds > 0
    assert str(plan).startswith("100 loads: 0 stored, 100 to run, about ")


def _stored(texts: Any) -> Results:
    return Results(lambda: iter(texts))


def test_resources_are_those_of_all_loads_and_a_failed_one_has_none() -> None:
    row = '{"page": "p", "scheme": "rr", "network": "n", "seed": 0}'
    kept, lost, bare = (row, '[{"id": "a"}]', None), (None, None, "it failed"), (row, None, None)
    found = _stored([lost, kept]).resources()
    assert found.column("id") == ["a"]
    for texts in ([kept, bare], [bare, kept], [lost], []):
        with pytest.raises(NothingToMeasureError, match="were not kept"):
            _stored(texts).resources()


def test_networks_that_share_a_name_are_refused() -> None:
    near = h3sim.load_network("cable")
    far = replace(near, rtt_ns=2 * near.rtt_ns)
    with pytest.raises(InputError, match="network: two networks are called 'cable'"):
        load_study(PAGE, network=[near, far])
    with pytest.raises(InputError, match="network: two networks are called 'cable'"):
        load_study(PAGE, cells=[{"network": "cable"}, {"network": far}])
    assert (
        len(load_study(PAGE, schemes="rr", cells=[{"network": near, "loss": 0}, {"network": near}]))
        == 2
    )


def test_an_axis_of_limits_has_a_column_in_all_rows() -> None:
    results = sweep(
        PAGE,
        schemes=["rr", "fifo"],
        network="cable",
        time_limit_s=[None, 500],
        executor="serial",
        resources=True,
    )
    assert results.column("time_limit_s") == [3600, 3600, 500, 500]
    assert [row.pairs for row in results.compare("rr", pool=["time_limit_s"])] == [2, 2]
    assert results.resources().column("time_limit_s")[-1] == 500


def test_rows_that_lack_a_column_of_others_have_none_of_it(tmp_path: Path) -> None:
    joined = Results.of([{"scheme": "a", "ms": 1}]).join(Results.of([{"scheme": "b", "kb": 2}]))
    assert list(joined.filter(ms=1)) == [{"scheme": "a", "ms": 1}]
    assert joined.summary("ms").column("n") == [1, 0]
    assert list(joined.group("ms")) == [(1,), (None,)]
    path = tmp_path / "rows.csv"
    joined.to_csv(path)
    assert path.read_text(encoding="utf-8") == "scheme,ms,kb\na,1,\nb,,2\n"
