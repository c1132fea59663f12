"""What `h3sim conform` writes for a team: files to start with, JUnit XML and annotations."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from h3sim.cli.conform import _LANGUAGES
from h3sim.cli.main import main
from h3sim.conformance import BrokenLawError, Law
from h3sim.conformance.replay import as_lines, still_broken
from h3sim.conformance.starting import LANGUAGES, start
from h3sim.values.errors import InputError

LAST_FIRST = """
import json, sys
active = set()
for line in sys.stdin:
    request = json.loads(line)
    match request["op"]:
        case "hello":
            print(json.dumps({"protocol": request["protocol"], "name": "last-first"}), flush=True)
        case "reset":
            active.clear()
        case "activate":
            active.add(request["stream"])
        case "deactivate" | "close":
            active.discard(request["stream"])
        case "pick":
            print(json.dumps({"stream": max(active, default=None)}), flush=True)
"""
"""A driver that ignores urgencies."""


@pytest.mark.parametrize("language", LANGUAGES)
def test_each_language_has_a_driver_a_container_and_a_workflow(
    language: str, tmp_path: Path
) -> None:
    driver, container, workflow = start(language, tmp_path)
    assert driver.name in container.read_text("utf-8")
    assert LANGUAGES[language].command in workflow.read_text("utf-8")
    assert LANGUAGES[language].build in workflow.read_text("utf-8")


def test_the_command_knows_the_same_languages() -> None:
    assert tuple(LANGUAGES) == _LANGUAGES


def test_no_file_is_overwritten_and_each_that_exists_is_listed(tmp_path: Path) -> None:
    own = [tmp_path / "driver.go", tmp_path / "Containerfile"]
    for path in own:
        path.write_text("mine", "utf-8")
    with pytest.raises(InputError) as error:
        start("go", tmp_path)
    message = str(error.value)
    assert all(f"{path} exists" in message for path in own)
    assert "conformance.yml" not in message
    assert sorted(tmp_path.iterdir()) == sorted(own)
    assert {path.read_text("utf-8") for path in own} == {"mine"}


def test_the_driver_to_start_with_keeps_all_laws(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["conform", "--init", "python"]) == 0
    report = ["--profile", "quick", "--junit", "j.xml"]
    assert main(["conform", *report, "--", sys.executable, "driver.py"]) == 0
    suite = ET.parse(tmp_path / "j.xml").getroot()
    assert (suite.get("failures"), suite.find(".//failure")) == ("0", None)


def test_a_broken_law_is_a_failure_in_both_reports(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "driver.py").write_text(LAST_FIRST, "utf-8")
    reports = ["--profile", "quick", "--claim", "urgency-order", "--junit", "j.xml", "--annotate"]
    assert main(["conform", *reports, "--", sys.executable, "driver.py"]) == 1
    suite = ET.parse(tmp_path / "j.xml").getroot()
    failed = [
        case.get("name") for case in suite.iter("testcase") if case.find("failure") is not None
    ]
    lines = capsys.readouterr().out.splitlines()
    annotations = [line for line in lines if line.startswith("::error ")]
    assert failed == [line.split("title=")[1].split("::")[0] for line in annotations]
    assert "strict-order" in failed
    # A line break would end an annotation.
    assert all("%0A" in line for line in annotations)


def test_a_failing_history_is_played_again_until_the_law_is_kept(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "broken.py").write_text(LAST_FIRST, "utf-8")
    driver = ["--", sys.executable, "broken.py"]
    claim = ["--profile", "quick", "--claim", "urgency-order"]
    assert main(["conform", *claim, "--failures", "f", *driver]) == 1
    replay = [word for path in sorted(Path("f").iterdir()) for word in ("--replay", str(path))]
    assert {"f/strict-order.jsonl", "f/updates-at-once.jsonl"} <= set(replay)
    capsys.readouterr()
    assert main(["conform", *replay, *driver]) == 1
    assert "strict-order.jsonl: kept" not in capsys.readouterr().out
    start("python", tmp_path)
    assert main(["conform", *replay, "--", sys.executable, "driver.py"]) == 0
    # The same lines are what a driver reads from a file, as in a debugger.
    lines = (tmp_path / "f" / "strict-order.jsonl").read_text("utf-8")
    command = [sys.executable, "broken.py"]
    answers = subprocess.run(command, input=lines, text=True, capture_output=True, check=True)
    *_, last = map(json.loads, lines.splitlines())
    assert json.loads(answers.stdout.splitlines()[-1]) == {"stream": last["was"]}


@pytest.mark.parametrize("demand", ["picks.__class__", "open('x')", "lambda: 1", "picks["])
def test_a_replay_evaluates_nothing_but_demands_of_laws(demand: str, tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text(json.dumps({"law": "x", "broken": "y", "demand": demand}), "utf-8")
    with pytest.raises(InputError, match="jsonl"):
        still_broken(path, [sys.executable])


def test_a_charge_is_replayed_for_the_stream_that_is_picked(tmp_path: Path) -> None:
    signal = "Eps(urgency=3, incremental=True)"
    history = (f"open(4, {signal})", f"open(8, {signal})", "activate(4)", "activate(8)")
    turns = "pick() -> 4; charge(4, 1400)  (4 times)"
    broken = BrokenLawError(Law.SIGNALS_COUNT, "", [*history, turns], "picks.count(8) == 2")
    path = tmp_path / "a.jsonl"
    path.write_text(as_lines(broken), "utf-8")
    start("python", tmp_path)
    assert still_broken(path, [sys.executable, str(tmp_path / "driver.py")]) is None
