"""Seeds are added until intervals are narrow, and the level holds although one stops then."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from scipy import stats

import h3sim
from h3sim.errors import InputError
from h3sim.study.sequential import looks, seed_interval
from tests.helpers import page_of

if TYPE_CHECKING:
    from pathlib import Path

PAGE = page_of(
    {"id": "/", "kind": "document", "bytes": 30_000},
    {"id": "a", "kind": "image", "bytes": 60_000, "discovered": {"by": "/", "at": "request"}},
    {"id": "b", "kind": "image", "bytes": 60_000, "discovered": {"by": "/", "at": "request"}},
)
LOSSY = {"schemes": ["rr", "fifo"], "rtt_ms": 50, "loss": 0.03, "executor": "serial"}
WIDTH = 0.06


def misses(width: Any, level: Any) -> Any:
    """Return the share of 1,500 made-up studies that end with an interval without the truth, 0."""
    drawn = np.random.default_rng(33).normal(0, 1, (1500, looks(100)[-1])).tolist()
    return sum(ends_without(study, width, level) for study in drawn) / len(drawn)


def ends_without(study: Any, width: Any, level: Any) -> bool:
    for n in looks(100):
        low, high = seed_interval(study[:n], level)
        if high - low < width:
            break
    return not low < 0 < high


def test_the_level_holds_although_one_stops_where_the_interval_is_narrow() -> None:
    # One that stops with plain intervals misses too often; the standard error here is 0.6 %.
    assert misses(1.2, 0.05) > 0.065
    spent = 0.05 / len(looks(100))
    assert misses(1.2, spent) < 0.05


def test_the_interval_is_students() -> None:
    values = [0.1, 0.4, 0.2, 0.7]
    expected = stats.t.interval(0.99, 3, loc=np.mean(values), scale=stats.sem(values))
    assert seed_interval(values, 0.01) == pytest.approx(expected)


def test_seeds_are_added_until_the_interval_is_narrow_and_no_longer() -> None:
    found = h3sim.sweep_until(PAGE, width=WIDTH, most_seeds=60, **LOSSY)  # type: ignore[arg-type]
    assert found.is_narrow
    (row,) = found.rows
    assert row.high / row.low - 1 < WIDTH
    assert row.seeds == len(speeds(found.results, "fifo")) > 8
    before = found.looks[found.looks.index(row.seeds) - 1]
    few = h3sim.sweep(PAGE, seeds=before, **LOSSY)  # type: ignore[arg-type]
    both = zip(speeds(few, "rr"), speeds(few, "fifo"), strict=True)
    logs = [math.log(base / own) for base, own in both]
    low, high = seed_interval(logs, 0.05 / len(found.looks))
    assert math.exp(high - low) - 1 >= WIDTH


def speeds(results: Any, scheme: Any) -> Any:
    return results.filter(scheme=scheme).column("byte_index_all_ms")


def test_the_rows_are_those_of_a_sweep_over_as_many_seeds(tmp_path: Path) -> None:
    found = h3sim.sweep_until(PAGE, width=1e-9, most_seeds=10, store=tmp_path / "s.db", **LOSSY)  # type: ignore[arg-type]
    assert not found.is_narrow
    assert found.looks == (8, 10)
    again = h3sim.sweep(PAGE, seeds=10, store=tmp_path / "s.db", **LOSSY)  # type: ignore[arg-type]
    assert again.counts.ran == 0
    assert list(found.results) == list(again)
    assert (found.results.counts.reused, found.results.counts.ran) == (16, 4)


def test_where_nothing_is_random_the_first_look_is_enough() -> None:
    found = h3sim.sweep_until(PAGE, width=0.01, schemes=["rr", "fifo"], executor="serial")
    assert [row.seeds for row in found.rows] == [8]
    assert found.rows[0].low == pytest.approx(found.rows[0].high)


def test_every_mistake_is_told() -> None:
    with pytest.raises(InputError) as caught:
        h3sim.sweep_until(PAGE, width=0, confidence=95, most_seeds=1, seeds=3)
    keys = [problem.key for problem in caught.value.problems]
    assert keys == ["width", "confidence", "most_seeds", "seeds"]
    with pytest.raises(InputError, match="baseline: must be one of several schemes"):
        h3sim.sweep_until(PAGE, width=0.1, schemes=["fifo"])
