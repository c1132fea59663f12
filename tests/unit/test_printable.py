"""What people gave cannot steer a terminal, or forge a line of what h3sim says."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from h3sim.catalog import load_network, load_page, load_scheme
from h3sim.cli import main
from h3sim.values.errors import InputError, StalledError, UnknownNameError, ValidationIssue
from h3sim.values.text import escape_control

if TYPE_CHECKING:
    from pathlib import Path

CLEARS = "\x1b[2Jall is well\n\x1b]0;owned\x07\u202e\u2028\x9b31m"


@pytest.mark.parametrize("text", ["", "a b", "día.css", "画像.png", r"C:\pages", "a\xa0b", "🙂"])
def test_what_can_be_seen_stays_as_it_is(text: str) -> None:
    assert escape_control(text) == text


def test_what_cannot_be_seen_is_spelt_out() -> None:
    assert escape_control(CLEARS) == r"\x1b[2Jall is well\n\x1b]0;owned\x07\u202e\u2028\x9b31m"


@pytest.mark.parametrize(
    "error",
    [
        InputError([ValidationIssue(key=CLEARS, message=CLEARS)], CLEARS),
        UnknownNameError("scheme", "rr\x1b", ["rr\x1b\n"]),
        StalledError([CLEARS]),
    ],
)
def test_an_error_is_one_line_without_control_characters(error: Exception) -> None:
    assert str(error)
    assert str(error).isprintable()


def _hostile_page(folder: Path) -> Path:
    root = {"id": CLEARS, "kind": CLEARS, CLEARS: CLEARS, "bytes": -1}
    path = folder / "page.json"
    path.write_text(json.dumps({"format": CLEARS, "name": CLEARS, "resources": [root, root]}))
    return path


def _hostile_toml(folder: Path, table: str) -> Path:
    word = json.dumps(CLEARS)
    path = folder / "hostile.toml"
    path.write_text(
        f"format = {word}\nname = {word}\nmechanism = {word}\ncc = {word}\n{word} = {word}\n"
        f"[{table}]\n{word} = {word}\n"
    )
    return path


def test_no_error_of_a_file_reaches_the_terminal_raw(tmp_path: Path) -> None:
    for read, path in (
        (load_page, _hostile_page(tmp_path)),
        (load_scheme, _hostile_toml(tmp_path, "classes.all")),
        (load_network, _hostile_toml(tmp_path, "down")),
    ):
        with pytest.raises(InputError) as caught:
            read(path)
        assert all(line.isprintable() for line in str(caught.value).split("\n"))
        assert len(str(caught.value).split("\n")) == len(caught.value.problems)


@pytest.mark.parametrize("arguments", [["run", CLEARS], ["list", CLEARS], ["run", "a", CLEARS]])
def test_an_argument_does_not_come_back_raw(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    try:
        code = main(arguments)
    except SystemExit as exited:
        code = int(exited.code or 0)
    shown_text = capsys.readouterr().err
    assert code == 2
    assert all(line.isprintable() for line in shown_text.removesuffix("\n").split("\n"))
