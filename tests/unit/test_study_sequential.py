"""Seeds are added until intervals are narrow, and the level holds although one stops then."""

from __future__ import annotations

import math
import re
import sys
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from scipy import stats

import h3sim
from h3sim.cli import main
from h3sim.study.design import StoppingRule
from h3sim.study.statistics.intervals import mean_interval, student_interval
from h3sim.study.statistics.pairs import pairs_by_scheme
from h3sim.values.errors import InputError, UnknownOptionError
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

SPREAD = 0.1
STUDIES = 200


def share_missed(width: float, level: float, draw: Any) -> float:
    """Return the share of made-up studies that end with an interval without the truth, 0."""
    source = np.random.default_rng(33)
    looks = StoppingRule(width=width, most_seeds=100).looks
    missed = 0
    for _ in range(STUDIES):
        study = (SPREAD * draw(source, looks[-1])).tolist()
        for n in looks:
            low, high = mean_interval(study[:n], 1 - level)
            if math.exp(high - low) - 1 < width:
                break
        missed += not low < 0 < high
    return missed / STUDIES


def normal(source: Any, n: int) -> Any:
    return source.normal(0, 1, n)


def exponential(source: Any, n: int) -> Any:
    return source.exponential(1, n) - 1


@pytest.mark.parametrize("draw", [normal, exponential])
def test_intervals_cover_although_sampling_stops_where_they_are_narrow(draw: Any) -> None:
    # One analysis after another from eight seeds on, with Student's interval, would miss up to 12 %
    # of exponential seeds. The standard error here is 1.5 %.
    assert 0.02 < share_missed(0.1, StoppingRule(width=0.1).level, draw) < 0.08


def test_the_interval_of_few_seeds_is_students() -> None:
    values = [0.1, 0.4, 0.2, 0.7]
    expected = stats.t.interval(0.99, 3, loc=np.mean(values), scale=stats.sem(values))
    assert student_interval(values, 0.99) == pytest.approx(expected)
    assert mean_interval(values, 0.99) == pytest.approx(expected)


def test_seeds_are_added_until_the_interval_is_narrow_and_no_longer() -> None:
    found = h3sim.study.sequential_sweep(PAGE, width=WIDTH, most_seeds=60, **LOSSY)  # type: ignore[arg-type]
    assert found.is_narrow
    (row,) = found.rows
    assert row.high / row.low - 1 < WIDTH
    assert row.seeds == len(speeds(found.results, "fifo")) > 20
    before = found.looks[found.looks.index(row.seeds) - 1]
    few = h3sim.sweep(PAGE, seeds=before, **LOSSY)  # type: ignore[arg-type]
    both = zip(speeds(few, "rr"), speeds(few, "fifo"), strict=True)
    logs = [math.log(base / own) for base, own in both]
    low, high = mean_interval(logs, 1 - found.rule.level)
    assert math.exp(high - low) - 1 >= WIDTH


def speeds(results: Any, scheme: Any) -> Any:
    return results.filter(scheme=scheme).column("byte_index_all_ms")


def test_the_rows_are_those_of_a_sweep_over_as_many_seeds(tmp_path: Path) -> None:
    store = tmp_path / "s.db"
    found = h3sim.study.sequential_sweep(PAGE, width=1e-9, most_seeds=22, store=store, **LOSSY)  # type: ignore[arg-type]
    assert not found.is_narrow
    assert found.looks == (20, 22)
    again = h3sim.sweep(PAGE, seeds=22, store=tmp_path / "s.db", **LOSSY)  # type: ignore[arg-type]
    assert again.counts.ran == 0
    assert list(found.results) == list(again)
    assert found.results.counts == (0, 44, 0)


def test_equal_seeds_are_enough_once_a_tenth_that_differs_would_show() -> None:
    # 0.9^31 is the first power below the error of 4 %; 45 is the first look with 31 seeds.
    found = h3sim.study.sequential_sweep(
        PAGE, width=0.01, schemes=["rr", "fifo"], executor="serial"
    )
    assert [row.seeds for row in found.rows] == [45]
    assert found.rows[0].low == found.rows[0].high
    assert found.is_narrow
    rule = StoppingRule(width=0.05)
    assert [rule.is_met(1.2, 1.2, n_seeds) for n_seeds in (20, 30, 31)] == [False, False, True]
    assert rule.is_met(1.2, 1.25, 20)
    assert not rule.is_met(1.2, 1.27, 200)
    # No more seeds than the most there may be.
    assert StoppingRule(width=0.05, most_seeds=20).is_met(1.2, 1.2, 20)


def test_every_error_is_reported() -> None:
    with pytest.raises(InputError) as caught:
        h3sim.study.sequential_sweep(PAGE, width=0, confidence=95, most_seeds=1)
    keys = [problem.key for problem in caught.value.problems]
    assert keys == ["width", "confidence", "most_seeds"]
    with pytest.raises(UnknownOptionError, match="seeds"):
        h3sim.study.sequential_sweep(PAGE, width=0.1, seeds=3)  # type: ignore[call-arg]
    with pytest.raises(InputError, match="baseline: must be one of several schemes"):
        h3sim.study.sequential_sweep(PAGE, width=0.1, schemes=["fifo"])


STUDY = """\
format = "h3sim-study/1"
pages = ["mine.json"]
schemes = ["rr", "fifo"]

[settings]
rtt_ms = 50
loss = 0.03

[until]
width = 0.06
most_seeds = 60
"""


@pytest.fixture
def study_file(tmp_path: Path) -> Path:
    (tmp_path / "mine.json").write_text(PAGE.to_json(), encoding="utf-8")
    path = tmp_path / "study.toml"
    path.write_text(STUDY, encoding="utf-8")
    return path


def test_the_command_line_adds_seeds_as_python_does(
    study_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["sweep", str(study_file), "-j", "1"]) == 0
    reported = capsys.readouterr().out
    found = h3sim.study.sequential_sweep(PAGE, width=WIDTH, most_seeds=60, **LOSSY)  # type: ignore[arg-type]
    (row,) = found.rows
    (line,) = [line for line in reported.splitlines() if f"{row.geometric:.3f}" in line]
    assert line.split()[:2] == ["fifo", str(row.seeds)]
    assert f"{len(found.results):,} loads: reused 0, ran {len(found.results)}, failed 0" in reported


def test_the_command_line_reports_intervals_that_stay_wide(
    study_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    study_file.write_text(STUDY.replace("most_seeds = 60", "most_seeds = 21"), encoding="utf-8")
    store = str(tmp_path / "study.db")
    command = ["sweep", str(study_file), "-j", "1", "--store", store]
    assert main([*command, "--target-ci-width", "0.1%"]) == 1
    assert "some intervals exceed 0.1 % after 21 seeds" in capsys.readouterr().err
    assert main([*command, "--target-ci-width", "100%"]) == 0
    assert "40 loads: reused 40, ran 0" in capsys.readouterr().out  # the first look is enough


def test_a_width_on_the_command_line_is_reported_among_other_errors(
    study_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    nowhere = tmp_path / "none" / "rows.csv"
    command = ["sweep", str(study_file), "--csv", str(nowhere), "--target-ci-width", "5"]
    assert main(command) == 2
    first, second = capsys.readouterr().err.splitlines()
    assert first.startswith("h3sim sweep: --csv: there is no folder")
    assert re.match("h3sim sweep: --target-ci-width: .*is 5.0", second)


def test_the_command_line_shows_an_unbounded_interval(
    study_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    wide = STUDY.replace("most_seeds = 60", "most_seeds = 3\nconfidence = 0.999999999999")
    study_file.write_text(wide, encoding="utf-8")
    assert main(["sweep", str(study_file), "-j", "1"]) == 1
    (line,) = [row for row in capsys.readouterr().out.splitlines() if row.split()[-1:] == ["-"]]
    assert (line.split()[0], line.split()[3]) == ("fifo", "0.000")


def test_a_dry_run_states_what_seeds_cost_at_first_and_at_most(
    study_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["sweep", str(study_file), "--dry-run"]) == 0
    first, most = capsys.readouterr().out.splitlines()
    assert first.startswith("with 20 seeds: 40 loads: 0 stored, 40 to run")
    assert most.startswith("with 60 seeds: 120 loads: 0 stored, 120 to run")


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ("width = 0.06", "width = 0", "until.width: "),
        ("width = 0.06", "width = 5", "until.width: "),
        ("width = 0.06", "", "until.width: is missing"),
        ("width = 0.06", "wide = 0.06", "until.wide: unknown key"),
        ("most_seeds = 60", "most_seeds = 1", "until.most_seeds: must be"),
        ("most_seeds = 60", "value = 3", "until.value: must be text"),
        (
            "[settings]",
            "seeds = 3\n[settings]",
            "seeds: are added as needed: use most_seeds instead",
        ),
        ("most_seeds = 60", 'baseline = "x"', "baseline: must be one of several schemes"),
    ],
)
def test_every_error_of_a_rule_in_a_file_is_a_line(
    study_file: Path, capsys: pytest.CaptureFixture[str], before: str, after: str, message: str
) -> None:
    study_file.write_text(STUDY.replace(before, after, 1), encoding="utf-8")
    assert main(["sweep", str(study_file), "-j", "1"]) == 2
    reported = capsys.readouterr().err
    assert message in reported
    assert "Traceback" not in reported


def test_an_unbounded_interval_is_no_error() -> None:
    # Two degrees of freedom, nearly certain: the exponential of such a quantile overflows.
    found = h3sim.study.sequential_sweep(
        "creative",
        width=0.1,
        schemes=["rr", "fifo"],
        most_seeds=3,
        confidence=1 - 1e-12,
        executor="serial",
        rtt_ms=50,
        loss=0.02,
    )
    (row,) = found.rows
    assert not found.is_narrow
    assert row.low == 0 < row.geometric < row.high < float("inf")


def test_a_scheme_that_has_no_interval_has_none_that_is_narrow(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As where all its loads fail."""

    def pairs_of_others(*given: Any) -> Any:
        return {key: pairs for key, pairs in pairs_by_scheme(*given).items() if key != "dfifo"}

    # By name: `h3sim.study.sweep` is the function.
    monkeypatch.setattr(sys.modules["h3sim.study.sweep"], "pairs_by_scheme", pairs_of_others)
    schemes = ["rr", "fifo", "dfifo"]
    found = h3sim.study.sequential_sweep(
        PAGE, width=0.01, most_seeds=3, schemes=schemes, executor="serial"
    )
    assert [(row.scheme, row.low) for row in found.rows] == [("fifo", found.rows[0].high)]
    assert not found.is_narrow
