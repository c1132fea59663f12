"""Whatever is given from Python: every mistake in it is told at once, and one alone as it is."""

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
    UnknownOptionError,
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
OF_OPTIONS = ["network", "cc", "rtt_ms"]


@pytest.mark.parametrize(
    ("call", "keys"),
    [
        pytest.param(
            lambda: h3sim.simulate("pge", scheme="nope", scheduler="non", **WRONG),
            ["page", "scheme", "scheduler", *OF_OPTIONS],
            id="simulate",
        ),
        pytest.param(
            lambda: h3sim.compare("pge", schemes=["nope", "nix"], baseline="no", **WRONG),
            ["pages", "schemes", "schemes", "baseline", *OF_OPTIONS],
            id="compare",
        ),
        pytest.param(
            lambda: h3sim.sweep(["pge", "pga"], schemes="nope", seeds=[-1], name=3, **WRONG),
            ["pages", "pages", "schemes", "seeds", "name", *OF_OPTIONS],
            id="sweep",
        ),
        pytest.param(
            lambda: h3sim.sweep("pge", network=["moon", "mars"], rtt_ms=[-1, -2], loss=[0, 0]),
            ["pages", "network", "network", "rtt_ms", "rtt_ms", "loss"],
            id="axes of a sweep",
        ),
        pytest.param(
            lambda: h3sim.sweep("pge", cells=[{"network": "moon"}, {"rtt_ms": -1}], colour=1),
            ["pages", "network", "rtt_ms", "colour"],
            id="cells of a sweep",
        ),
        pytest.param(
            lambda: h3sim.sequential_sweep("pge", width=-1, schemes="nope", seeds=3, rtt_ms=-1),
            ["pages", "schemes", "width", "seeds", "rtt_ms"],
            id="sequential_sweep",
        ),
        pytest.param(
            lambda: h3sim.search("pge", schemes="nope", baseline="no", n_seeds=0, **WRONG),
            ["pages", "schemes", "baseline", "n_seeds", *OF_OPTIONS],
            id="find",
        ),
        pytest.param(
            lambda: h3sim.optimality("pge", schemes="nope", networks=["moon", "mars"], rtt_ms=-1),
            ["pages", "schemes", "networks", "networks", "rtt_ms"],
            id="regret",
        ),
        pytest.param(
            lambda: h3sim.what_if("pge", scheme="nope", config=NO_CONFIG, **WRONG),
            ["pages", "scheme", "config", *OF_OPTIONS],
            id="what_if",
        ),
        pytest.param(
            lambda: h3sim.prioritization_test("nope", late="fnt", **WRONG),
            ["schemes", "late", *OF_OPTIONS],
            id="check_server",
        ),
        pytest.param(
            lambda: h3sim.validate_scheme("pge", scheme="nope"),
            ["pages", "scheme"],
            id="check_rules",
        ),
        pytest.param(
            lambda: h3sim.recommend("pge", schemes="no", baseline="nix", config=NO_CONFIG, **WRONG),
            ["page", "schemes", "baseline", "config", *OF_OPTIONS],
            id="advise",
        ),
    ],
)
def test_every_error_is_reported_at_once(call: Callable[[], object], keys: list[str]) -> None:
    with pytest.raises(InputError) as caught:
        call()
    assert sorted(problem.key for problem in caught.value.problems) == sorted(keys)


def test_an_unknown_name_gives_the_same_message_next_to_others_as_alone() -> None:
    with pytest.raises(InputError) as caught:
        h3sim.simulate("davies-meenam", scheme="buket")
    assert str(caught.value).splitlines() == [
        "scheme: no scheme is called 'buket'; did you mean bucket or bucket-html?"
        " (`h3sim list schemes` shows all)",
        "page: no page is called 'davies-meenam'; did you mean davies-meenan?"
        " (`h3sim list pages` shows all)",
    ]


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


def test_an_option_that_there_is_not_is_a_type_error_next_to_other_errors_too() -> None:
    wrong: dict[str, Any] = {"rtt": 5, "rate_mbps": -1}
    with pytest.raises(UnknownOptionError) as caught:
        h3sim.simulate("davies-meenan", **wrong)
    assert [problem.key for problem in caught.value.problems] == ["rtt", "rate_mbps"]


def test_the_errors_of_a_file_are_reported_with_its_name(tmp_path: Path) -> None:
    path = tmp_path / "bad.toml"
    path.write_text('format = "h3sim-network/1"\nnam = "bad"\n', encoding="utf-8")
    with pytest.raises(NetworkError) as alone:
        h3sim.simulate("davies-meenan", network=path)
    with pytest.raises(InputError) as others:
        h3sim.simulate("davies-meenan", network=path, scheme="nope")
    lines = [line for line in str(others.value).splitlines() if line.startswith("network: ")]
    assert [line.removeprefix("network: ") for line in lines] == alone.value.lines()
    assert len(lines) > 1


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
