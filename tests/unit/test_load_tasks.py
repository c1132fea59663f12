"""Functions that load more than once: with workers, a store and progress, and always alike."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import h3sim
from h3sim.study import runner
from h3sim.values.errors import InputError, StalledError
from tests.helpers import page_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

PAGE = "davies-meenan"
SCHEMES = ["rr", "fifo"]
_STALLED: dict[str, Any] = {"network": "cable", "time_limit_s": 0.1}
LOSSY: dict[str, Any] = {"network": "4g", "loss": 0.02}
FUNCTIONS: dict[str, Callable[..., Any]] = {
    "compare": lambda **how: h3sim.compare(PAGE, schemes=SCHEMES, **LOSSY, **how),
    "optimality": lambda **how: h3sim.optimality(PAGE, schemes=SCHEMES, **how),
    "hints": lambda **how: h3sim.hints(PAGE, network="cable", n_seeds=3, **how),
    "what_if": lambda **how: h3sim.what_if(PAGE, network="cable", **how),
    "search": lambda **how: h3sim.search(
        PAGE, schemes=SCHEMES, baseline="rr", n_seeds=4, networks=["cable"], **LOSSY, **how
    ),
    "prioritization_test": lambda **how: h3sim.advice.prioritization_test(SCHEMES, **how),
}


@pytest.fixture(scope="module", params=FUNCTIONS)
def case(request: pytest.FixtureRequest) -> tuple[Callable[..., Any], Any]:
    function = FUNCTIONS[request.param]
    return function, function().to_dict()


def test_workers_change_nothing(case: tuple[Callable[..., Any], Any]) -> None:
    function, alone = case
    assert function(workers=2).to_dict() == alone


def test_what_is_stored_is_not_loaded_again(
    case: tuple[Callable[..., Any], Any], tmp_path: Path
) -> None:
    function, alone = case
    loaded: list[tuple[int, int]] = []
    how: dict[str, Any] = {"store": tmp_path / "loads.db", "progress": lambda *n: loaded.append(n)}
    assert function(**how).to_dict() == alone
    assert loaded
    loaded.clear()
    assert function(**how).to_dict() == alone
    assert loaded == []


def test_an_interrupted_comparison_goes_on_where_it_was(tmp_path: Path) -> None:
    store, done = tmp_path / "loads.db", []

    def stop(n: int, _: int) -> None:
        done.append(n)
        if n == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt) as caught:
        h3sim.compare(PAGE, schemes=SCHEMES, store=store, progress=stop)
    assert "kept in" in caught.value.__notes__[0]
    resumed: list[int] = []
    compared = h3sim.compare(
        PAGE, schemes=SCHEMES, store=store, progress=lambda n, _: resumed.append(n)
    )
    assert resumed[0] > 2
    assert resumed[-1] == 4
    assert compared.rows == h3sim.compare(PAGE, schemes=SCHEMES).rows


def test_another_measure_or_setting_is_loaded_anew(tmp_path: Path) -> None:
    store = tmp_path / "loads.db"
    first = h3sim.compare(PAGE, schemes=SCHEMES, send_buffers_kb=[0], store=store)
    again: list[int] = []
    other = h3sim.compare(
        PAGE,
        schemes=SCHEMES,
        send_buffers_kb=[0],
        rtt_ms=80,
        store=store,
        progress=lambda n, _: again.append(n),
    )
    assert again == [1, 2]
    assert other.rows != first.rows
    h3sim.what_if(PAGE, scheme="rr", store=store, progress=lambda n, _: again.append(n))
    assert again[2:] == [1, 2, 3, 4, 5]


def test_loads_that_are_kept_come_with_stored_rows(tmp_path: Path) -> None:
    store = tmp_path / "loads.db"
    h3sim.compare(PAGE, schemes=SCHEMES, send_buffers_kb=[0], store=store)
    compared = h3sim.compare(
        PAGE, schemes=SCHEMES, send_buffers_kb=[0], store=store, keep_loads=True
    )
    assert [load.scheme.name for load in compared.loads] == SCHEMES
    indexes = [load.byte_index("all") for load in compared.loads]
    assert indexes == compared.rows.column("byte_index_all_ms")


@pytest.mark.parametrize("workers", [None, 2])
def test_a_load_that_fails_raises_its_own_error(workers: int | None) -> None:
    page = page_of({"id": "/", "kind": "document", "bytes": 5_000_000}, name="large")
    with pytest.raises(StalledError):
        h3sim.compare(page, schemes="fifo", baseline="fifo", **_STALLED, workers=workers)


def test_every_option_of_execution_is_in_the_signatures_and_checked() -> None:
    functions: list[Any] = [h3sim.compare, h3sim.search, h3sim.advice.validate_scheme, h3sim.sweep]
    for function in functions:
        with pytest.raises(InputError) as caught:
            function(PAGE, workers=0, executor="gpu", progress=3)
        assert [problem.key for problem in caught.value.problems] == [
            "executor",
            "workers",
            "progress",
        ]


@pytest.mark.parametrize("is_long", [False, True])
def test_auto_uses_processes_only_if_they_save_time(
    is_long: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner, "_SMALL_S", 0.0 if is_long else 1000.0)
    monkeypatch.setattr(runner, "worker_count", lambda _: 2)
    pools: list[bool] = []

    pool_of = runner.pool_of

    def noted(executor: Any, workers: int | None, *, is_small: bool) -> Any:
        pool = pool_of(executor, workers, is_small=is_small)
        pools.append(pool.is_serial)
        return pool

    monkeypatch.setattr(runner, "pool_of", noted)
    over: dict[str, Any] = {"schemes": SCHEMES, **LOSSY}
    alone = h3sim.compare(PAGE, **over).to_dict()
    pools.clear()
    assert h3sim.compare(PAGE, executor="auto", **over).to_dict() == alone
    assert pools[-1] is not is_long
