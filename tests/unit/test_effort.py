"""A thorough run draws others each time, says its seed, and can be seen again."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from tests.effort import HANG_S

ROOT = Path(__file__).parents[2]
TEST = """
from hypothesis import given, strategies as st
from tests.effort import IS_THOROUGH, law, scaled, some

DRAWN = []


@law(5)
@given(st.integers())
def test_numbers(number):
    DRAWN.append(number)


def test_what_was_drawn():
    print("drawn", IS_THOROUGH, len(DRAWN), scaled(40), some([1], [1, 2]), DRAWN)
"""


def run(folder: Path, *arguments: str, profile: str) -> str:
    """Return what pytest says of `TEST` under that profile."""
    (folder / "conftest.py").write_text("from tests.conftest import *\n", encoding="utf-8")
    (folder / "test_it.py").write_text(TEST, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-s", "-p", "no:cacheprovider", *arguments, str(folder)],
        env={**os.environ, "HYPOTHESIS_PROFILE": profile, "PYTHONPATH": str(ROOT)},
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
        timeout=HANG_S,
    )
    return done.stdout


def drawn(message: str) -> str:
    return next(line for line in message.splitlines() if "drawn" in line)


def test_the_usual_run_draws_the_same_and_states_no_seed(tmp_path: Path) -> None:
    first, second = (run(tmp_path, profile="ci") for _ in range(2))
    assert drawn(first) == drawn(second)
    assert "drawn False 5 40 [1]" in first
    assert "thorough" not in first


def test_a_thorough_run_draws_ten_times_as_many_others_which_its_seed_brings_back(
    tmp_path: Path,
) -> None:
    first, second = (run(tmp_path, profile="thorough") for _ in range(2))
    assert "drawn True 50 400 [1, 2]" in first
    assert drawn(first) != drawn(second)
    seed = re.search(r"--hypothesis-seed=(\d+) looks again", first)
    assert seed is not None
    again = run(tmp_path, f"--hypothesis-seed={seed[1]}", profile="thorough")
    assert drawn(again) == drawn(first)
