"""The bugs of `planted.py` are found without a claim, and correct designs are not refused."""

from __future__ import annotations

from typing import Any

import pytest

from tests.effort import IS_THOROUGH
from tests.mutants.planted import CORRECT, PLANTED, finding

pytestmark = pytest.mark.usefixtures("fewer_histories")
LOOPS = next(each for each in PLANTED if "adds nothing" in each.bug)
FINITE = [each for each in PLANTED if each is not LOOPS]


@pytest.mark.parametrize("planted", FINITE, ids=lambda planted: planted.bug)
def test_a_planted_bug_is_found_in_the_fixed_histories(planted: Any) -> None:
    makers = planted.schedulers if IS_THOROUGH else planted.schedulers[-3:]
    found = [finding(maker, planted.claims, planted.signal_type) for maker in makers]
    assert None not in found


@pytest.mark.parametrize("maker", CORRECT)
def test_a_correct_design_is_not_refused(maker: Any) -> None:
    assert finding(maker) is None


def test_a_scheduler_that_loops_is_reported_with_its_history() -> None:
    error = finding(LOOPS.schedulers[0])
    assert error is not None
    assert "does not return" in error.sentence
    assert len(error.history) < 12
