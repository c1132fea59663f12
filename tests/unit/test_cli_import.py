"""`h3sim import` as a command."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from h3sim.cli import main
from h3sim.page import read_page
from tests.helpers import unworded
from tests.recordings import SAMPLES, entry, har, write_recording

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def test_the_page_is_written_and_the_report_shown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, page = write_recording(tmp_path, SAMPLES["har-devtools"]), tmp_path / "page.json"
    assert main(["import", str(path), "-o", str(page)]) == 0
    assert [each.id for each in read_page(page).resources] == ["/", "app.js", "api"]
    shown = capsys.readouterr()
    assert "shop.example: 3 resources, 3,000 bytes, from har-devtools" in shown.out.splitlines()
    assert shown.out.startswith("The replay cannot be compared with the recording")
    assert shown.err == ""


def test_the_page_or_the_report_can_go_to_standard_output(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = str(write_recording(tmp_path, SAMPLES["har"]))
    assert main(["import", path, "-o", "-"]) == 0
    shown = capsys.readouterr()
    assert json.loads(shown.out)["format"] == "h3sim-page/1"
    assert "\nshop.example: 3 resources" in shown.err
    assert main(["import", path, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["format"] == "h3sim-import/1"


def test_errors_are_a_line_each_and_nothing_is_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = str(write_recording(tmp_path, har(entry("/", 0, 100), 7, [])))
    page = tmp_path / "page.json"
    assert main(["import", path, "--strict", "-o", str(page)]) == 2
    assert unworded(capsys.readouterr().err.splitlines()) == [
        f"h3sim import: {path}: log.entries[1]: skipped: is 7",
        f"h3sim import: {path}: log.entries[2]: skipped: is []",
    ]
    assert not page.exists()
    assert main(["import", path, "-o", str(tmp_path / "no" / "page.json")]) == 2
    assert main(["import", path, "-o", "-", "--json"]) == 2
    assert main(["import", path, "--dialect", "hra", "--page", "0"]) == 2
    assert main(["import", str(tmp_path / "no.har")]) == 2
    assert main(["import", path, "-o", str(tmp_path)]) == 2
    assert "Traceback" not in capsys.readouterr().err


def test_the_report_fits_the_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    hosts = [entry(f"https://host{n}.example/{n}", n, 60, time="long") for n in range(64)]
    path = str(write_recording(tmp_path, har(entry("/", 0, 50, mime="text/html"), *hosts)))
    for width in (80, 40):
        monkeypatch.setenv("COLUMNS", str(width))
        assert main(["import", path]) == 0
        lines = capsys.readouterr().out.splitlines()
        assert max(map(len, lines)) <= width
        assert any(line.startswith("  ") for line in lines)
    assert main(["import", path, "--no-truncate"]) == 0
    assert max(map(len, capsys.readouterr().out.splitlines())) > 100


def test_of_many_hosts_the_largest_are_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    hosts = [entry(f"https://host{n}.example/{n}", n, 60) for n in range(264)]
    path = str(write_recording(tmp_path, har(*hosts, *hosts[7:8])))
    assert main(["import", path, "--host", "no.example"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.endswith("its hosts are host7.example, host0.example, host1.example,"
                         " host2.example, host3.example and 259 more")  # fmt: skip
