"""The paths through the source that docs/reading.md describes can be walked."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PATHS = {"One load at a constant rate": 2500, "QUIC over links": 3800}
"""The headings of both paths, and how many lines their files may have in all."""


def files_of(heading: str) -> list[str]:
    text = (ROOT / "docs" / "reading.md").read_text("utf-8")
    section = text.split(f"\n## {heading}\n")[1].split("\n## ")[0]
    return re.findall(r"^\| \d+ \| `([\w/.]+)` \|", section, re.M)


def opening(file: str) -> str:
    return ast.get_docstring(ast.parse((ROOT / file).read_text("utf-8"))) or ""


@pytest.mark.parametrize(("heading", "max_lines"), PATHS.items())
def test_a_path_has_ten_files_and_a_limit_of_lines(heading: str, max_lines: int) -> None:
    files = files_of(heading)
    assert len(files) == len(set(files)) == 10
    n_lines = sum(len((ROOT / file).read_text("utf-8").splitlines()) for file in files)
    assert n_lines <= max_lines


@pytest.mark.parametrize("heading", PATHS)
def test_each_file_of_a_path_names_the_next(heading: str) -> None:
    files = files_of(heading)
    lost = [
        file
        for file, following in zip(files, [*files[1:], "docs/reading.md"], strict=True)
        if f"`{following}`" not in opening(file)
    ]
    assert lost == []


@pytest.mark.parametrize("heading", PATHS)
def test_what_to_look_at_is_in_its_file(heading: str) -> None:
    text = (ROOT / "docs" / "reading.md").read_text("utf-8")
    section = text.split(f"\n## {heading}\n")[1].split("\n## ")[0]
    for file, hints in re.findall(r"^\| \d+ \| `([\w/.]+)` \| .*? \| (.*) \|$", section, re.M):
        source = (ROOT / file).read_text("utf-8")
        names = {part for name in re.findall(r"`([\w.]+)`", hints) for part in name.split(".")}
        assert {name for name in names if not re.search(rf"\b{name}\b", source)} == set(), file


def test_other_files_that_are_named_exist() -> None:
    text = (ROOT / "docs" / "reading.md").read_text("utf-8")
    assert [
        file for file in re.findall(r"`(h3sim/[\w/.]+)`", text) if not (ROOT / file).exists()
    ] == []
