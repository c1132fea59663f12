"""What a forge runs: the make targets of here, and actions that are pinned to a commit.

`make lint-workflows` holds the files to the forge's own rules, with actionlint.
"""

from __future__ import annotations

import configparser
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
every_workflow = pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)


def targets() -> set[str]:
    return set(re.findall(r"^([a-z][a-z-]*):", (ROOT / "Makefile").read_text("utf-8"), re.M))


@every_workflow
def test_every_action_is_pinned_to_a_commit_and_states_its_version(path: Path) -> None:
    used = re.findall(r"uses: (?!\./)(.*)", path.read_text("utf-8"))
    pinned = re.compile(r"[\w-]+/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+")
    assert [line for line in used if not pinned.fullmatch(line)] == []


def test_an_action_is_pinned_to_one_commit_everywhere() -> None:
    text = "".join(path.read_text("utf-8") for path in WORKFLOWS)
    used = set(re.findall(r"uses: ([\w/-]+)@(\S+)", text))
    assert len(used) == len({action for action, _ in used})


@every_workflow
def test_every_step_is_a_target_of_make(path: Path) -> None:
    text = path.read_text("utf-8")
    steps = re.findall(r"run: (.*)", text)
    named = {step.split()[-1] for step in steps if step.startswith("make ")} - {"}}"}
    named -= {word for word in named if word.startswith("TAG=")}
    named |= {match for step in steps for match in re.findall(r"^make ([a-z-]+) TAG=", step)}
    named |= set(re.findall(r"- target: ([\w-]+)", text))
    assert named <= targets()
    of_others = [step for step in steps if not step.startswith(("make ", "sudo apt-get "))]
    assert of_others == []


def test_every_supported_python_is_tested_and_declared() -> None:
    config = configparser.ConfigParser()
    config.read(ROOT / "setup.cfg", encoding="utf-8")
    declared = re.findall(r"Python :: (3\.\d+)", config["metadata"]["classifiers"])
    tests = (ROOT / ".github" / "workflows" / "tests.yml").read_text("utf-8")
    matrix = re.findall(r'"(3\.\d+)"', re.search(r"python: \[(.*)\]", tests)[1])
    wheels = re.findall(r"cp3(\d+)-\*", (ROOT / "pyproject.toml").read_text("utf-8"))
    pythons = re.search(r"^PYTHONS \?= (.*)$", (ROOT / "Makefile").read_text("utf-8"), re.M)[1]
    assert matrix == declared == [f"3.{minor}" for minor in wheels]
    assert pythons.split() == [f"python{version}" for version in declared]
    assert config["options"]["python_requires"] == f">={declared[0]}"
