"""The runs in random orders, as far as they begin."""

from __future__ import annotations

import sys

import pytest

from h3sim.values.errors import H3SimError, InputError, MissingExtraError
from tests import orders


def test_without_its_plugin_the_pip_line_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "random_order", None)
    monkeypatch.setattr(orders, "_run", None)  # a run that was started would raise otherwise
    with pytest.raises(MissingExtraError, match=r"pytest-random-order: pip install 'h3sim\[dev\]'"):
        orders.main(["1", "tests/unit/test_units.py"])


@pytest.mark.parametrize("given", ["0", "-3", "tests/unit", "1.5"])
def test_what_is_no_number_of_runs_is_refused(given: str) -> None:
    with pytest.raises(InputError) as caught:
        orders.main([given])
    assert str(caught.value) == f"RUNS: must be a number of runs, from 1 on, is '{given}'"


def test_a_pytest_that_does_not_begin_is_reported() -> None:
    with pytest.raises(H3SimError, match="pytest ended with 4 before it wrote what it found"):
        orders.main(["1", "--no-such-option"])
