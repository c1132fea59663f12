"""The congestion controllers behave as their documents say, case by case."""

from __future__ import annotations

from typing import Any

import pytest

from h3sim.transport.congestion import BbrController
from validation.controllers import CASES, FIGURES


@pytest.mark.parametrize("number", range(len(CASES)))
def test_bbr_does_what_each_case_of_its_draft_expects(number: int) -> None:
    case = CASES[number]()
    assert case.holds, case


@pytest.mark.parametrize("number", range(len(FIGURES)))
def test_a_number_that_follows_from_an_rfc_is_seen(number: int) -> None:
    case = FIGURES[number]()
    assert case.holds, case


def broken(name: str) -> Any:
    return lambda *_args, **_options: name == "_is_time_to_probe"


@pytest.mark.parametrize(
    ("name", "number"),
    [
        ("_check_startup_and_drain", 0),
        ("_judge_probe", 5),
        ("_check_probe_rtt", 9),
        ("on_spurious_loss", 17),
        ("_is_time_to_probe", 7),
        ("_restart_from_idle", 10),
        ("_adapt_lower_bounds", 15),
    ],
)
def test_a_case_fails_if_what_it_is_about_is_missing(
    name: str, number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(BbrController, name, broken(name))
    assert not CASES[number]().holds
