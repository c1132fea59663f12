"""docs/scheduler-in-ci.md, step by step, as its reader would do it."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

DOC = Path(__file__).parents[2] / "docs" / "scheduler-in-ci.md"
SUITE = ("-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:randomly")


def files() -> list[tuple[str, str]]:
    """Return the files of the page: the comment that names each, and its text."""
    found = re.findall(r"^```py\n# (.*?)\n(.*?)^```$", DOC.read_text("utf-8"), re.M | re.S)
    return [(name, text) for name, text in found]


def run(folder: Path, *arguments: str) -> tuple[int, str]:
    done = subprocess.run(
        (sys.executable, *arguments), cwd=folder, capture_output=True, text=True, check=False
    )
    return done.returncode, done.stdout + done.stderr


def changed(text: str, method: str) -> str:
    """Return the class with another `update`."""
    return re.sub(r"    def update\(.*?\n\n", lambda _: f"{method}\n", text, flags=re.S)


@pytest.fixture
def steps(tmp_path: Path) -> dict[str, str]:
    """Return the files by name and number, with the class in place."""
    found: dict[str, str] = {}
    for name, text in files():
        found[name if name not in found else f"{name} again"] = text
    (tmp_path / "my_scheduler.py").write_text(found["my_scheduler.py"], "utf-8")
    return found


def test_the_first_test_passes_and_states_what_it_leaves_out(
    steps: dict[str, str], tmp_path: Path
) -> None:
    (tmp_path / "test_my_scheduler.py").write_text(steps["test_my_scheduler.py"], "utf-8")
    code, message = run(tmp_path, *SUITE, "-rs", "--h3sim-profile=quick")
    assert code == 0, message
    assert "at most a hundred" in message


def test_the_claims_that_the_page_makes_are_suggested(
    steps: dict[str, str], tmp_path: Path
) -> None:
    (tmp_path / "ask.py").write_text(steps["ask.py"], "utf-8")
    # On fewer histories than the reader's, as what is asked for here is kept in all of them.
    quickly = "from h3sim.conformance import named_claims as n, runner; n._MIN_HISTORIES = 3"
    code, message = run(tmp_path, "-c", f"{quickly}; runner.PROFILES['default'] = 3; import ask")
    assert code == 0, message
    kept = re.findall(r"keeps +(\S+)", message)
    expected = {"urgency-order", "one-by-one-in-urgency", "round-robin-in-urgency"}
    assert expected | {"non-incremental-first"} <= {*kept}


def test_an_error_is_found_and_its_history_can_be_pasted(
    steps: dict[str, str], tmp_path: Path
) -> None:
    complete = steps["my_scheduler.py"]
    (tmp_path / "test_my_scheduler.py").write_text(steps["test_my_scheduler.py again"], "utf-8")
    assert run(tmp_path, *SUITE, "--h3sim-profile=quick")[0] == 0
    wrong = changed(complete, steps["my_scheduler.py, changed"])
    assert wrong != complete
    (tmp_path / "my_scheduler.py").write_text(wrong, "utf-8")
    code, message = run(tmp_path, *SUITE, "-k", "updates-at-once")
    assert code == 1
    pasted = re.search(r"-- h3sim: the history as a test -+\n(.*?)^[=-]{5}", message, re.M | re.S)
    assert pasted is not None, message
    # What was printed, and what the page shows: both fail as long as the mistake is there.
    (tmp_path / "test_printed.py").write_text(pasted[1], "utf-8")
    (tmp_path / "test_updates.py").write_text(steps["test_updates.py"], "utf-8")
    pastes = ("test_printed.py", "test_updates.py")
    assert "2 failed" in run(tmp_path, *SUITE, *pastes)[1]
    (tmp_path / "my_scheduler.py").write_text(complete, "utf-8")
    assert "2 passed" in run(tmp_path, *SUITE, *pastes)[1]


def test_the_commands_of_the_workflow_are_commands(steps: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "test_my_scheduler.py").write_text(steps["test_my_scheduler.py again"], "utf-8")
    commands = re.findall(r"run: (pytest.*)$", DOC.read_text("utf-8"), re.M)
    assert len(commands) == 2
    for command in commands:
        _, *options = command.replace("${{ github.run_id }}", "1").split()
        code, message = run(tmp_path, *SUITE, *options, "--collect-only")
        assert code == 0, message
        assert "19 tests collected" in message


def test_the_seed_of_hypothesis_chooses_the_histories(tmp_path: Path) -> None:
    (tmp_path / "test_seeds.py").write_text(
        """
from h3sim.conformance import Candidate, Law, check_law
from h3sim.schedulers import FifoScheduler

SEEN = []


class Noted(FifoScheduler):
    def open(self, stream_id, signal):
        SEEN.append((stream_id, signal))
        super().open(stream_id, signal)


def test_histories():
    check_law(Candidate(factory=Noted), Law.WORK_CONSERVING)
    print("SEEN", hash(repr(SEEN)))
""",
        "utf-8",
    )

    def seen(*options: str) -> str:
        message = run(tmp_path, *SUITE, "-s", *options)[1]
        found = re.search(r"SEEN (-?\d+)", message)
        assert found is not None, message
        return found[1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONHASHSEED", "0")
        usual = seen()
        first, again, other = (seen(f"--hypothesis-seed={n}") for n in (1, 1, 2))
    assert first == again
    assert len({usual, first, other}) == 3
