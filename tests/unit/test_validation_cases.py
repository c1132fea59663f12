"""Small inputs that were once answered wrongly are answered as they should be."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.helpers import page_file
from validation import cases

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("case", cases.read_cases(), ids=lambda case: case.name)
def test_a_case_is_answered_rightly(case: cases.Case) -> None:
    assert cases.differences(case) == []


def test_every_file_among_the_cases_is_in_a_command() -> None:
    words = " ".join(word for case in cases.read_cases() for word in case.command)
    names = {case.name for case in cases.read_cases()}
    inputs = {path.name for path in cases.CASES.iterdir()} - {f"{name}.toml" for name in names}
    assert {name for name in inputs if f"{{case}}/{name}" not in words} == set()


def case(**values: object) -> cases.Case:
    return cases.Case(**{"name": "x", "command": ["list", "schemes"], "fault": "none", **values})  # type: ignore[arg-type]


def test_a_case_that_is_answered_otherwise_differs_in_each_respect() -> None:
    wrong = case(exit_code=2, shows=["^no such scheme$"], lacks=["bucket-html"])
    code, shows, lacks = cases.differences(wrong)
    assert code.startswith("exit code 0, not 2")
    assert "no such scheme" in shows
    assert "bucket-html" in lacks
    assert cases.differences(case(shows=["bucket-html"])) == []


def test_a_case_runs_in_an_empty_folder_and_reads_its_own(tmp_path: Path) -> None:
    page_file(tmp_path, {"id": "/", "kind": "document", "bytes": 9})
    words = ["run", "{case}/mine.json", "--har", "{tmp}/own.har"]
    assert cases.differences(case(command=words, shows=["mine: rr"]), tmp_path) == []
    assert [path.name for path in tmp_path.iterdir()] == ["mine.json"]


def test_every_mistake_in_the_cases_is_listed_by_file_and_key(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text("command = []\nfault = ''\nshows = ['(']\n")
    (tmp_path / "b.toml").write_text("fault = 'x'\nexitcode = 1\n")
    (tmp_path / "c.toml").write_text("fault = \n")
    with pytest.raises(ValueError, match=r"a\.toml: command") as caught:
        cases.read_cases(tmp_path)
    text = str(caught.value)
    for part in ("a.toml: fault", "a.toml: '('", "b.toml: exitcode", "b.toml: command", "c.toml:"):
        assert part in text
    assert len(text.splitlines()) == 6


def test_the_table_names_what_differs_and_the_exit_code_is_1(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    right = "command = ['list', 'schemes']\nfault = 'it hung'\n"
    (tmp_path / "right.toml").write_text(right)
    monkeypatch.setattr(cases, "read_cases", lambda: original(tmp_path))
    assert cases.main([]) == 0
    assert "1 case, 0 wrong" in capsys.readouterr().out
    (tmp_path / "wrong.toml").write_text(right + "exit_code = 3\n")
    assert cases.main([]) == 1
    assert "not 3" in capsys.readouterr().out
    assert cases.main(["right"]) == 0


original = cases.read_cases
