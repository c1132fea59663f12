"""Tables of the command line: no wider than the terminal, and nothing moves its cursor."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import h3sim
from h3sim.cli import main
from h3sim.values.table import Table, format_pairs
from h3sim.values.text import cell_width, truncate, wrap
from tests.effort import some
from tests.helpers import page_file

LISTS = ("schemes", "networks", "profiles", "controllers", "schedulers", "pages", "sets")


def printed(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(arguments) == 0
    return capsys.readouterr().out


def widest(text: str) -> int:
    return max(map(cell_width, text.splitlines()))


def test_a_table_that_fits_is_as_narrow_as_it_can_be() -> None:
    assert Table(["scheme", "ms"], [["rr", "1.5"], ["fifo", "12.25"]]).to_text(80).splitlines() == [
        "scheme     ms",
        "------  -----",
        "rr        1.5",
        "fifo    12.25",
    ]


def test_heads_are_folded_before_anything_is_cut() -> None:
    rows = [["index.html", "12"]]
    assert Table(["resource", "first byte ms"], rows).to_text(20).splitlines() == [
        "               first",
        "resource     byte ms",
        "----------  --------",
        "index.html        12",
    ]


def test_words_are_folded_and_names_without_a_space_are_shortened_in_their_middle() -> None:
    rows = [["one", "two words and then some more"], ["two", "a/very/long/path/to/index.html"]]
    assert Table(["name", "text"], rows).to_text(25).splitlines() == [
        "name  text",
        "----  -------------------",
        "one   two words and then",
        "      some more",
        "two   a/very\N{HORIZONTAL ELLIPSIS}o/index.html",
    ]


def test_with_shorten_each_row_is_one_line() -> None:
    rows = [["one", "two words and then some more"]] * 3
    assert len(Table(["name", "text"], rows).to_text(20, shorten=True).splitlines()) == 5


def test_what_cannot_be_seen_is_spelt_out() -> None:
    assert str(Table(["name"], [["a\x1b[2J\nb"]])).splitlines()[-1] == r"a\x1b[2J\nb"
    assert format_pairs([("name", "a\x1b]0;x\x07")]) == r"name  a\x1b]0;x\x07"


def test_wide_characters_fill_two_cells_and_combining_ones_none() -> None:
    assert cell_width("\u65e5\u672c") == 4
    assert cell_width("e\u0301") == 1
    lines = Table(["name", "n"], [["\u65e5\u672c", "1"], ["ab", "22"]]).to_text().splitlines()
    assert lines[2:] == ["\u65e5\u672c   1", "ab    22"]


@given(st.text(max_size=60), st.integers(3, 40))
def test_what_is_shortened_or_folded_fits(text: str, limit: int) -> None:
    assert cell_width(truncate(text, limit)) <= limit
    assert all(cell_width(line) <= limit for line in wrap(text, limit))
    if cell_width(text) <= limit:
        assert truncate(text, limit) == text


@pytest.mark.parametrize("columns", ["80", "100"])
@pytest.mark.parametrize("what", LISTS)
def test_every_list_fits_the_terminal(
    what: str, columns: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    assert widest(printed(capsys, "list", what)) <= int(columns)


@pytest.mark.parametrize("columns", some(["80"], ["80", "100"]))
@pytest.mark.parametrize(
    "command",
    [
        ("run", "PAGE", "--network", "sander-2mbps-100ms-5pct", "--transport", "tcp"),
        ("run", "PAGE", "--browser", "parse", "--critical-path"),
        ("compare", "PAGE"),
        ("compare", "PAGE", "--send-buffer-kb", "0", "--browser", "parse"),
        ("show", "page", "PAGE"),
        ("show", "scheme", "firefox-h2"),
        ("show", "network", "wifi-lossy"),
        ("show", "profile", "quicly"),
    ],
)
def test_every_table_fits_the_terminal(
    command: tuple[str, ...],
    columns: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    root = {"id": "https://example.org/" + "a/" * 120, "kind": "document", "bytes": 10_000_000}
    found = {"by": root["id"], "at": "complete"}
    image = {"kind": "image", "bytes": 200_000, "above_the_fold": True, "discovered": found}
    images = [{"id": f"https://cdn.example/{'i' * 250}/{n}.jpg"} | image for n in range(3)]
    page = page_file(tmp_path, root | {"above_the_fold": True}, *images)
    monkeypatch.setenv("COLUMNS", columns)
    out = printed(capsys, *(page if word == "PAGE" else word for word in command))
    assert widest(out) <= int(columns)


def test_wide_shows_all_in_full(capsys: pytest.CaptureFixture[str]) -> None:
    assert widest(printed(capsys, "list", "schemes", "--no-truncate")) > 200
    sources = [scheme.source for scheme in h3sim.list_schemes()]
    wide = printed(capsys, "list", "schemes", "--no-truncate")
    assert all(source in wide for source in sources)


def test_what_is_shown_as_a_file_is_one_to_start_from(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for what, name, form in (
        ("scheme", "chrome-eps", "toml"),
        ("network", "wifi-lossy", "toml"),
        ("profile", "quicly", "toml"),
        ("page", "davies-meenan", "json"),
    ):
        mine = tmp_path / f"mine.{form}"
        mine.write_text(printed(capsys, "show", what, name, f"--{form}"), encoding="utf-8")
        load = getattr(h3sim, f"load_{what}")
        assert load(str(mine)) == load(name)
        assert printed(capsys, "show", what, str(mine)) == printed(capsys, "show", what, name)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("page", "davies-meenan", "--toml"), "--toml: a page is JSON: use --json"),
        (("scheme", "rr", "--json"), "--json: a scheme is TOML: use --toml"),
        (
            ("network", "zzz"),
            "no network is called 'zzz' (`h3sim list networks` shows all)",
        ),
    ],
)
def test_what_cannot_be_shown_is_stated_in_one_line(
    arguments: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["show", *arguments]) == 2
    assert capsys.readouterr().err == f"h3sim show: {message}\n"


def program(*arguments: str, **streams: Any) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "h3sim", *arguments]
    return subprocess.run(command, text=True, stderr=subprocess.PIPE, check=False, **streams)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize("arguments", [("list", "schemes"), ("run", "davies-meenan", "--json")])
def test_a_full_disk_behind_the_output_is_reported_in_one_line(arguments: tuple[str, ...]) -> None:
    with Path("/dev/full").open("w") as full:
        done = program(*arguments, stdout=full)
    assert done.returncode == 1
    assert done.stderr == ("h3sim: standard output cannot be written: No space left on device\n")


def test_a_closed_output_is_reported_in_one_line() -> None:
    done = program("list", "schemes", preexec_fn=lambda: os.close(1))
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert done.stderr.startswith("h3sim: standard output cannot be written: ")


def printed_in(encoding: str, monkeypatch: pytest.MonkeyPatch, *arguments: str) -> bytes:
    """Return what a command writes where the system's encoding is another one, as on Windows."""
    stream = io.TextIOWrapper(io.BytesIO(), encoding=encoding, newline="\n")
    monkeypatch.setattr(sys, "stdout", stream)
    assert main(list(arguments)) == 0
    stream.flush()
    assert isinstance(stream.buffer, io.BytesIO)
    return stream.buffer.getvalue()


def test_characters_that_the_output_cannot_encode_are_escaped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    text = printed_in("ascii", monkeypatch, "list", "networks", "--no-truncate")
    assert rb"Marx 2019, \xa7 4.2" in text
    assert "Marx 2019, § 4.2".encode("cp1252") in printed_in(
        "cp1252", monkeypatch, "list", "networks", "--no-truncate"
    )


def test_a_file_on_standard_output_is_one_that_can_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = {"format": "h3sim-page/1", "name": "ü", "resources": [
        {"id": "ü", "kind": "document", "bytes": 1}]}  # fmt: skip
    (tmp_path / "ü.json").write_text(json.dumps(page), encoding="utf-8")
    shown = printed_in("cp1252", monkeypatch, "show", "page", str(tmp_path / "ü.json"), "--json")
    assert json.loads(shown.decode("utf-8")) == page
    shown = printed_in("cp1252", monkeypatch, "show", "scheme", "spdy", "--toml")
    (tmp_path / "mine.toml").write_bytes(shown)
    assert h3sim.catalog.read_scheme(tmp_path / "mine.toml") == h3sim.load_scheme("spdy")


def test_no_number_is_cut_in_a_narrow_table() -> None:
    rows = [["a-page-with-a-long-name", "1,169.6 (1.00)", "2,743.8 (0.98)"]]
    columns = ["page", "as it is", "no network"]
    lines = Table(columns, rows).to_text(40, shorten=True).splitlines()
    assert max(map(cell_width, lines)) <= 40
    for number in ("1,169.6", "(1.00)", "2,743.8", "(0.98)"):
        assert number in "\n".join(lines)


@pytest.mark.parametrize(
    "arguments", [["show", "scheme", "chrome-eps"], ["list", "networks"], ["list", "pages"]]
)
def test_what_is_requested_is_shown_in_full_at_80_columns(
    arguments: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    shown = printed(capsys, *arguments)
    assert "\N{HORIZONTAL ELLIPSIS}" not in shown
    assert widest(shown) <= 80


def test_the_help_of_run_fits_two_screens(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    shown = {}
    for flag in ("--help", "--help-all"):
        with pytest.raises(SystemExit):
            main(["run", flag])
        shown[flag] = capsys.readouterr().out
    assert len(shown["--help"].splitlines()) <= 2 * 24
    for option in ("--qlog-dialect", "--cc", "--har", "--critical-path", "--style"):
        assert option not in shown["--help"]
        assert option in shown["--help-all"]


@pytest.mark.parametrize(
    "arguments",
    [
        *(["list", name] for name in LISTS),
        *(["show", "scheme", scheme.name] for scheme in h3sim.catalog.list_schemes()),
        ["header-compression", "tabler-gallery", "--runs", "1"],
    ],
    ids=" ".join,
)
def test_no_table_of_80_columns_elides_what_was_requested(
    arguments: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    text = printed(capsys, *arguments)
    assert "\N{HORIZONTAL ELLIPSIS}" not in text
    assert widest(text) <= 80


def test_no_digit_of_a_what_if_is_cut_at_80_columns(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments = ["what-if", "davies-meenan", "--network", "cable", "--loss", "1%"]
    numbers = {}
    for width in (80, 1000):
        monkeypatch.setenv("COLUMNS", str(width))
        table = printed(capsys, *arguments).split("\n\n")[1]
        numbers[width] = sorted(
            word.strip("()") for word in table.split() if any(map(str.isdigit, word))
        )
    assert numbers[80] == numbers[1000]
    assert len(numbers[80]) == 5 * 2


def test_a_figure_for_a_paper_has_the_width_of_a_column(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "a.svg"
    plot = ["run", "davies-meenan", "--plot", str(path)]
    assert main([*plot, "--style", "paper", "--width", "column"]) == 0
    # 3.33 inches of 72 points.
    assert 'width="239.76pt"' in path.read_text("utf-8")
    capsys.readouterr()
    for wrong, message in (
        ([*plot, "--width", "column"], "--width: goes only with --style"),
        (["run", "davies-meenan", "--style", "paper"], "--style: goes only with --plot"),
        ([*plot, "--style", "poster"], "--style: 'poster' is not one of screen, paper"),
    ):
        assert main(wrong) == 2
        assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("command", "option"),
    [
        *((name, "--plot") for name in ("run", "compare", "show", "qlog", "identify")),
        *((name, "--plot") for name in ("optimality", "recommend", "header-compression")),
        ("reproduce", "--figures"),
    ],
)
def test_every_command_that_draws_has_the_styles_of_papers(
    command: str, option: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main([command, "--help-all"])
    shown = capsys.readouterr().out
    assert all(word in shown for word in (option, "--style", "--width"))
