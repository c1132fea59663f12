"""What people of notebooks give: numbers and arrays of numpy, frames, and what cannot be meant."""

import copy
import multiprocessing
import pickle
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import h3sim as typed
from h3sim.values.errors import H3SimError, InputError, NothingToMeasureError

h3sim: Any = typed  # people of notebooks see no annotations
PAGE = "davies-meenan"
LOAD: Any = h3sim.simulate(PAGE, scheme="fifo")
OVER_LINKS: dict[str, Any] = {"network": "4g", "loss": 0.05}
SERIAL: dict[str, Any] = {"schemes": ["rr", "fifo"], "executor": "serial"}
RESULTS: Any = h3sim.sweep(PAGE, seeds=2, **SERIAL)


def keys_of(call: Callable[[], object]) -> list[str]:
    with pytest.raises(InputError) as caught:
        call()
    return [problem.key for problem in caught.value.problems]


@pytest.mark.parametrize(
    "seeds", [np.int64(2), np.arange(2), [np.int64(0), np.int32(1)], (n for n in range(2))]
)
def test_seeds_may_be_numbers_of_numpy(seeds: Any) -> None:
    assert [*h3sim.sweep(PAGE, seeds=seeds, **SERIAL)] == [*RESULTS]


def test_a_number_or_an_array_of_numpy_is_an_axis() -> None:
    one = h3sim.sweep(PAGE, rtt_ms=np.float64(10), workers=np.int64(1), **SERIAL)
    two = h3sim.sweep(PAGE, rtt_ms=np.array([10, 20]), handshake=np.True_, **SERIAL)
    assert one.column("rtt_ms") == [10.0, 10.0]
    assert two.filter(rtt_ms=np.array([20, 30])).column("rtt_ms") == [20.0, 20.0]
    assert len(two.filter(rtt_ms=(ms for ms in (10, 20)))) == 4


def test_other_seeds_of_a_study_are_checked() -> None:
    study = h3sim.load_study(PAGE, schemes="fifo")
    assert study.with_seeds(np.arange(2)).design.seeds == (0, 1)
    assert keys_of(lambda: study.with_seeds("x")) == ["seeds"]


def test_errors_in_how_a_study_runs_are_reported_before_pages_are_read() -> None:
    wrong: dict[str, Any] = {"workers": 0, "executor": "thread", "progress": 3, "store": 5}
    keys = keys_of(lambda: h3sim.sweep("pge", **wrong))
    assert sorted(keys) == ["executor", "progress", "store", "workers"]
    assert keys_of(lambda: h3sim.sweep(PAGE, retry_failed="yes", **SERIAL)) == ["retry_failed"]


def test_what_find_is_given_in_numpy_is_written_as_numbers() -> None:
    reported: dict[str, Any] = {"n_seeds": np.int64(2), "confidence": np.float32(0.5)}
    found = h3sim.search(
        PAGE,
        schemes="rr",
        networks=None,
        network_within=np.float32(1.5),
        vary={"turn_packets": np.array([1, 16])},
        **reported,
    )
    assert [type(found.to_dict()[key]) for key in (*reported, "network_within")] == [
        int,
        float,
        float,
    ]
    assert {row.scheme for row in found.rows} > {"rr turn_packets=1", "rr turn_packets=16"}


def test_find_begins_at_the_seed_that_is_given() -> None:
    reported: dict[str, Any] = {
        "schemes": ["rr"],
        "baseline": "fifo",
        "networks": None,
        "n_seeds": 1,
    }
    reported |= OVER_LINKS
    behind = {seed: h3sim.search(PAGE, seed=seed, **reported).rows[1] for seed in (0, 1)}
    by_hand = [
        h3sim.simulate(PAGE, scheme=behind[1].scheme if number else "fifo", seed=1, **OVER_LINKS)
        for number in range(2)
    ]
    first, second = (load.byte_index("atf") for load in by_hand)
    assert behind[1].ratio == pytest.approx(second / first)
    assert behind[0].ratio != behind[1].ratio


def test_advice_with_one_scheme_states_that_nothing_was_compared() -> None:
    advice = h3sim.recommend(PAGE, schemes=["chrome-eps"], n_seeds=2)
    assert advice.sentence == "Nothing was compared: chrome-eps is the only scheme."


@pytest.mark.parametrize("wrong", [{"n_seeds": 0}, {"which": "x"}, {"keep_loads": "m"}])
def test_recommend_names_a_wrong_argument(wrong: dict[str, Any]) -> None:
    assert keys_of(lambda: h3sim.recommend(PAGE, **wrong)) == [*wrong]


def test_a_send_buffer_counts_once_however_often_it_is_given() -> None:
    comparison = h3sim.compare(PAGE, schemes="fifo", send_buffers_kb=[0, 0.0], keep_loads=True)
    assert [row.pages for row in comparison.means] == [1]
    assert keys_of(lambda: comparison.loads_of("pge", send_buffer_kb=5)) == [
        "page",
        "send_buffer_kb",
    ]


def test_an_option_that_compare_would_not_use_is_refused() -> None:
    call = lambda: h3sim.compare(PAGE, send_buffer_kb=14, keep_loads="yes")  # noqa: E731
    assert keys_of(call) == ["keep_loads"]
    assert keys_of(lambda: h3sim.compare(PAGE, send_buffer_kb=14)) == ["send_buffer_kb"]


def test_a_sensitivity_names_a_wrong_argument_and_takes_numbers_of_numpy() -> None:
    ranges: dict[str, Any] = {
        "rtt_ms": h3sim.study.Range(low=1, high=20),
        "rate_mbps": h3sim.study.Range(low=1, high=20),
    }
    one = {"rtt_ms": ranges["rtt_ms"]}
    wrong: dict[str, Any] = {"samples": 3, "seeds": -2}
    for key, value in wrong.items():
        assert keys_of(lambda: h3sim.study.sensitivity(PAGE, **{key: value}, **ranges)) == [key]  # noqa: B023
    assert keys_of(lambda: h3sim.study.sensitivity(PAGE, samples=4, **one)) == ["options"]
    reported = {"executor": "serial", **ranges}
    rows = h3sim.study.sensitivity(PAGE, samples=np.int64(2), seed=np.int64(0), **reported)
    assert len(rows) == 2
    assert keys_of(
        lambda: h3sim.study.sensitivity(PAGE, value="scheme", samples=2, **reported)
    ) == ["value"]


def test_statistics_report_every_error() -> None:
    call = lambda: RESULTS.compare("x", value="ms", confidence=9, seed=-1)  # noqa: E731
    assert keys_of(call) == ["confidence", "seed", "value", "baseline"]
    assert keys_of(lambda: RESULTS.power(-1, baseline="x", level=2)) == [
        "speedup",
        "level",
        "baseline",
    ]
    assert keys_of(lambda: RESULTS.ranks("ms", level=3)) == ["value", "level"]


def test_rows_that_do_not_state_which_load_they_are_cannot_be_compared() -> None:
    rows = h3sim.Results.of([{"scheme": "rr", "ms": 3.0}])
    assert keys_of(lambda: rows.compare(value="ms")) == ["rows"]


def test_medians_of_what_no_load_has_are_not_had() -> None:
    page = h3sim.Page(
        name="empty", resources=(h3sim.Resource(id="/", kind="document", size_bytes=0),)
    )
    results = h3sim.sweep(page, **SERIAL)
    with pytest.raises(
        NothingToMeasureError, match="no load has byte_index_all_ms together with one of rr"
    ):
        results.relative_medians()


# Results


def test_results_are_read_from_the_end_and_in_slices() -> None:
    rows = [*RESULTS]
    assert (RESULTS[-1], RESULTS[:2], RESULTS[::-2]) == (rows[-1], rows[:2], rows[::-2])
    with pytest.raises(IndexError, match="index -5 is out of range"):
        RESULTS[-5]


def test_results_go_to_other_processes_and_come_back() -> None:
    part = RESULTS.filter(scheme="fifo")
    for copied in (pickle.loads(pickle.dumps(part)), copy.deepcopy(part)):
        assert [*copied] == [*part]
        assert (copied.axes, copied.counts, copied.errors) == (part.axes, part.counts, part.errors)
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        assert [*pool.submit(h3sim.sweep, PAGE, seeds=2, **SERIAL).result()] == [*RESULTS]


def test_rows_of_a_frame_are_results_again() -> None:
    frame = RESULTS.to_pandas()
    again = h3sim.Results.of(frame.to_dict("records"), axes=RESULTS.axes)
    assert [*again] == [*RESULTS]
    assert [*h3sim.Results.of([{"n": np.int64(3), "ms": float("nan")}])] == [{"n": 3, "ms": None}]


@pytest.mark.parametrize("rows", [3, {"a": 1}, [1], [{"a": float("inf")}], [{"a": object()}]])
def test_what_is_no_row_is_refused(rows: Any) -> None:
    with pytest.raises(InputError, match="rows"):
        h3sim.Results.of(rows)


def test_a_notebook_states_of_few_rows_that_these_are_all() -> None:
    assert "The first" not in RESULTS._repr_html_()
    joined = h3sim.Results.of([{"a": 1}, {"b": 2}])
    assert joined._repr_html_().count("<tr>") == 3


def test_figures_that_cannot_stand_over_axes_are_reported() -> None:
    assert keys_of(lambda: RESULTS.to_xarray("page_laod_ms", "seed")) == ["values", "values"]


def test_a_study_of_a_store_is_requested_by_an_integer(tmp_path: Path) -> None:
    store, saved, parquet = (tmp_path / name for name in ("s.db", "r.jsonl", "r.parquet"))
    h3sim.sweep(PAGE, store=store, **SERIAL)
    RESULTS.save(saved)
    RESULTS.to_parquet(parquet)
    assert len(h3sim.read_results(store, study=np.int64(1))) == 2
    assert keys_of(lambda: h3sim.read_results(store, study="x")) == ["study"]
    assert keys_of(lambda: h3sim.read_results(saved, study=2)) == ["study"]
    with pytest.raises(InputError, match="with pandas"):
        h3sim.read_results(parquet)


def test_a_study_that_adds_seeds_states_how_far_it_came() -> None:
    reported: dict[str, Any] = {"schemes": ["rr", "fifo"], "rtt_ms": 50, "loss": 0.02}
    found = [
        h3sim.study.sequential_sweep(
            "creative", width=width, most_seeds=8, executor="serial", **reported
        )
        for width in (0.5, 1e-6)
    ]
    words = "<Sequential: After 8 seeds, the intervals of speedups of byte_index_all_ms to rr are"
    assert [*map(repr, found)] == [
        f"{words} narrower than 50 %.>",
        f"{words} not all narrower than 0.0001 %.>",
    ]
    assert found[0]._repr_html_().count("<td") == 4


# Figures


@pytest.mark.parametrize(
    ("call", "key"),
    [
        (lambda: LOAD.plot.waterfall(until_ms="x"), "until_ms"),
        (lambda: LOAD.plot.multiplexing(until_ms=float("nan")), "until_ms"),
        (lambda: LOAD.plot.figure(until_ms=-5), "until_ms"),
        (lambda: LOAD.plot.against("rr"), "other"),
        (lambda: LOAD.plot.save(5), "path"),
        (lambda: h3sim.report(LOAD).save(None), "path"),
        (lambda: h3sim.reporting.LoadPlots(LOAD), "loads"),
        (lambda: h3sim.reporting.LoadPlots([5]), "loads"),
        (lambda: LOAD.missing_reason("x"), "which"),
    ],
)
def test_a_figure_of_what_cannot_be_drawn_is_refused(call: Callable[[], object], key: str) -> None:
    assert keys_of(call) == [key]


def test_times_of_figures_may_be_numbers_of_numpy() -> None:
    assert LOAD.plot.priority_tree(at_ms=np.int64(300)).get_title(loc="left").count(" 300 ms") == 1
    assert LOAD.byte_index(sample_ms=np.int64(10)) == LOAD.byte_index(sample_ms=10)
    assert LOAD.plot.waterfall(until_ms=np.float32(300)).get_xlim()[1] == pytest.approx(301.5)


def test_errors_are_those_of_h3sim() -> None:
    with pytest.raises(H3SimError):
        h3sim.sweep(PAGE, executor=ProcessPoolExecutor)
