"""The command lines of the benchmarks: their help says what they measure, and runs nothing."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

import pytest

from benchmarks.million import STEPS

FOLDER = Path(__file__).resolve().parents[2] / "benchmarks"
COMMANDS = {
    path.stem: path for path in FOLDER.glob("*.py") if '__name__ == "__main__"' in path.read_text()
}


def outcome(monkeypatch: pytest.MonkeyPatch, name: str, *arguments: str) -> object:
    """Return with what a benchmark leaves that is given *arguments*."""
    monkeypatch.setattr(sys, "argv", [name, *arguments])
    with pytest.raises(SystemExit) as left:
        runpy.run_path(str(COMMANDS[name]), run_name="__main__")
    return left.value.code


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_the_help_of_a_benchmark_states_how_it_is_called_and_what_it_measures(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert outcome(monkeypatch, name, "--help") == 0
    command = "python -m benchmarks" + (f".{name}" if name != "__main__" else "")
    usage, about, *_ = capsys.readouterr().out.split("\n\n")
    assert usage.startswith(f"usage: {command} [-h]")
    assert about[0].isupper()
    assert len(about) > len("What it measures.")


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_a_benchmark_refuses_what_it_does_not_know(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert outcome(monkeypatch, name, "--nothing-of-that-name") == 2
    assert "unrecognized arguments: --nothing-of-that-name" in capsys.readouterr().err


def test_options_are_described(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    reported = {}
    for name in ("ratios", "million", "steps"):
        outcome(monkeypatch, name, "--help")
        reported[name] = " ".join(capsys.readouterr().out.split())
    assert "--write put the table into docs/generated/speed.md, too" in reported["ratios"]
    assert f"--step NAME one step alone: {'; '.join(STEPS)}" in reported["million"]
    assert "linux-tcp" in reported["steps"]
    assert "cubic" in reported["steps"]
