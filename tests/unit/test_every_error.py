"""Mistakes: a function raises at the first wrong argument, a file has all of its own listed."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import h3sim
from h3sim.schema.arguments import ErrorCollector
from h3sim.study.study_file import read_study
from h3sim.values.errors import (
    InputError,
    NetworkError,
    UnknownNameError,
    ValidationIssue,
)

WRONG: dict[str, Any] = {"network": "moon", "cc": "nope", "rtt_ms": -1}
NO_CONFIG: Any = 3
STUDY = """
format = "h3sim-study/1"
pages = ["nope", "davies-meenan"]
schemes = ["rr", "buket"]
[settings]
rate_mbps = 5
interval_ms = 3
network = "moon"
[axes]
rtt_ms = [1, 1]
"""
LOAD = h3sim.simulate("davies-meenan")
RESULTS = h3sim.sweep("davies-meenan", executor="serial")


@pytest.mark.parametrize(
    ("call", "start"),
    [
        (lambda: h3sim.simulate("pge", scheme="nope", **WRONG), "rtt_ms: "),
        (lambda: h3sim.simulate("pge", scheme="nope", rtt=5), "rtt: "),  # type: ignore[call-arg]
        (lambda: h3sim.compare("pge", schemes=["nope"], **WRONG), "rtt_ms: "),
        (lambda: h3sim.search("pge", schemes="nope", n_seeds=0, rtt_ms=1), "n_seeds: "),
        (lambda: h3sim.optimality("pge", networks=["moon"], colour=1), "colour: "),  # type: ignore[call-arg]
        (lambda: h3sim.what_if("pge", config=NO_CONFIG), "config: must be a LoadConfig"),
        (
            lambda: h3sim.advice.prioritization_test("nope", late="fnt", **WRONG),
            "late: 'fnt' ",
        ),
        (lambda: h3sim.advice.validate_scheme("pge", late=3), "late: "),  # type: ignore[call-arg]
        (lambda: h3sim.recommend("pge", keep_loads=3, **WRONG), "keep_loads: "),  # type: ignore[arg-type]
        (lambda: h3sim.sweep("pge", colour=1, executor="gpu"), "colour: "),  # type: ignore[call-arg]
        (lambda: h3sim.sweep("pge", rtt=[1, 2]), "rtt: "),  # type: ignore[call-arg]
        (lambda: h3sim.simulate("pge", rtt_ms="50ms"), "rtt_ms: "),  # type: ignore[arg-type]
        (lambda: h3sim.study.sequential_sweep("pge", width=-1, rtt_ms=-1), "width: "),
        (lambda: LOAD.plot.waterfall(unti_ms=5), "unti_ms: "),  # type: ignore[call-arg]
        (lambda: RESULTS.plot.cdf(relative="rr"), "relative: "),  # type: ignore[call-arg]
    ],
)
def test_a_function_raises_at_the_first_wrong_argument(
    call: Callable[[], object], start: str
) -> None:
    with pytest.raises(InputError) as caught:
        call()
    assert len(caught.value.problems) == 1
    assert str(caught.value).startswith(start)


@pytest.mark.parametrize(
    "call",
    [
        lambda: h3sim.simulate("davies-meenan", scheme="buket"),
        lambda: h3sim.compare("davies-meenan", schemes=["rr", "buket"]),
        lambda: h3sim.sweep("davies-meenan", schemes="buket"),
        lambda: h3sim.recommend("davies-meenan", baseline="buket"),
    ],
)
def test_a_single_unknown_name_keeps_its_error(call: Callable[[], object]) -> None:
    with pytest.raises(UnknownNameError, match="no scheme is called 'buket'") as caught:
        call()
    assert caught.value.nearest == ("bucket", "bucket-html")


def test_an_object_that_holds_a_page_is_refused_with_the_advice_to_take_the_page() -> None:
    load: Any = h3sim.simulate("davies-meenan")
    with pytest.raises(InputError, match=r"^page: must be a name, .*: use its `page`$"):
        h3sim.simulate(load)
    nothing: Any = None
    with pytest.raises(InputError, match=r"^page: must be a name, a path or a page, is None$"):
        h3sim.simulate(nothing)
    with pytest.raises(InputError, match=r"^of: must be loads, .*, is 'davies-meenan'$"):
        h3sim.report("davies-meenan")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: h3sim.simulate("papers"), "page: 'papers' is a set of pages"),
        (lambda: h3sim.simulate("creative", scheme="marx-2019"), "scheme: 'marx-2019' is a set of"),
        (lambda: h3sim.what_if("creative", scheme="servers"), "scheme: 'servers' is a set of"),
    ],
)
def test_a_set_is_reported_as_one_where_one_is_needed(
    call: Callable[[], object], text: str
) -> None:
    with pytest.raises(InputError) as caught:
        call()
    assert str(caught.value).startswith(text)


def test_unknown_names_in_a_study_file_are_reported_with_all_else(tmp_path: Path) -> None:
    path = tmp_path / "study.toml"
    path.write_text(STUDY, encoding="utf-8")
    with pytest.raises(InputError) as caught:
        read_study(path)
    assert [problem.key for problem in caught.value.problems] == [
        *("pages[0]", "schemes[1]", "settings.network", "rtt_ms", "rate_mbps"),
    ]


def test_the_errors_of_a_file_are_reported_with_its_name(tmp_path: Path) -> None:
    path = tmp_path / "bad.toml"
    path.write_text('format = "h3sim-network/1"\nnam = "bad"\n', encoding="utf-8")
    with pytest.raises(NetworkError) as caught:
        h3sim.simulate("davies-meenan", network=path)
    assert len(caught.value.lines()) > 1
    assert all(str(path) in line for line in caught.value.lines())


def gather(*reads: Callable[[], object]) -> None:
    with ErrorCollector() as errors:
        for read in reads:
            errors.collect("", read)


def test_one_error_found_twice_is_reported_once() -> None:
    def refuse() -> None:
        raise InputError([ValidationIssue(key="seed", message="must be 1")])

    with pytest.raises(InputError) as caught:
        gather(refuse, refuse)
    assert str(caught.value) == "seed: must be 1"


def test_what_goes_wrong_otherwise_is_not_hidden_by_errors() -> None:
    with pytest.raises(ZeroDivisionError):
        gather(lambda: h3sim.load_page("pge"), lambda: 1 // 0)
