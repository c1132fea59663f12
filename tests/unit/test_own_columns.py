"""Columns of a study that users compute from each load."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import h3sim
from h3sim.headers.base import HeaderLists, TimedSection
from h3sim.values.errors import InputError

if TYPE_CHECKING:
    from pathlib import Path

STUDY: dict[str, Any] = {"pages": "davies-meenan", "schemes": ["rr", "fifo"], "executor": "serial"}


def last_ms(load: h3sim.Load) -> float:
    return max(timing.finished_ms for timing in load.timings)


def test_a_function_of_a_load_is_a_column() -> None:
    results = h3sim.sweep(**STUDY, columns={"last_ms": last_ms})
    assert results.column("last_ms") == results.column("page_load_ms")
    assert [row.scheme for row in results.compare("rr", value="last_ms")] == ["rr", "fifo"]


def test_a_store_reuses_a_column_until_its_function_changes(tmp_path: Path) -> None:
    store = tmp_path / "s.db"

    def run(factor: float) -> Any:
        return h3sim.sweep(**STUDY, store=store, columns={"x": lambda load: factor})

    assert run(2.0).counts.ran == 2
    assert run(2.0).counts.reused == 2
    changed = run(3.0)
    assert (changed.counts.ran, changed.column("x")) == (2, [3.0, 3.0])


def test_functions_run_in_workers() -> None:
    study = STUDY | {"executor": "processes", "workers": 2}
    results = h3sim.sweep(**study, columns={"n": lambda load: len(load.timings)})
    assert results.column("n") == [9, 9]


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"page_load_ms": last_ms}, "columns.page_load_ms: is a column of every study"),
        ({"p 95": last_ms}, "columns: 'p 95' is no name"),
        ({"p95_ms": 3}, "columns.p95_ms: must be a function of a load, is 3"),
        ([last_ms], "columns: must be functions by name"),
    ],
)
def test_what_is_no_column_is_refused_before_anything_runs(columns: Any, message: str) -> None:
    with pytest.raises(InputError) as error:
        h3sim.sweep(**STUDY, columns=columns)
    assert message in str(error.value)


def test_a_function_that_returns_no_value_fails_its_load_by_name() -> None:
    results = h3sim.sweep(**STUDY, columns={"x": lambda load: [1]})
    assert len(results) == 0
    assert "x: its function must return a finite number" in results.errors[0]


def test_header_lists_have_no_loads_to_compute_from() -> None:
    with pytest.raises(InputError, match=r"columns: .*loads of pages"):
        h3sim.sweep(
            HeaderLists.of([TimedSection(10**7, ((b"x", b"y"),))]),
            schemes="rr",
            columns={"last_ms": last_ms},
        )
