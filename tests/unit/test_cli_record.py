"""`h3sim record` without a browser: what it refuses, and how it says so."""

from __future__ import annotations

import sys
from http import HTTPStatus
from typing import TYPE_CHECKING
from urllib.request import urlopen

import pytest

from h3sim.cli import main
from h3sim.importers.chromium import PageRecording, RecordedSource, web_server
from h3sim.importers.chromium.browser import DevTools
from h3sim.importers.chromium.web_server import Site, served
from h3sim.page import read_page
from h3sim.values.errors import InputError, MissingExtraError
from tests.helpers import unworded
from tests.unit.test_recorder_making import ROOT, loaded, made

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "sub").mkdir()
    (tmp_path / "index.html").write_text("<p>home", encoding="utf-8")
    (tmp_path / "sub" / "index.html").write_text("<p>below", encoding="utf-8")
    (tmp_path / "latin.css").write_bytes(b"/* \xe9 */" + b" " * 500)
    return tmp_path


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[str]:
    assert main(["record", *arguments]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    return captured.err.splitlines()


def test_every_error_is_reported_in_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ("nothing", "-o", "no/such/page.json", "--log", "nor/log.json", "--repeat", "0")
    assert unworded(refused(capsys, *arguments)) == unworded(
        [
            "h3sim record: nothing: must be an http(s) URL, an HTML file or a folder with"
            " index.html",
            "h3sim record: --repeat: must be at least 1, is 0",
            "h3sim record: --output: there is no folder 'no/such'",
            "h3sim record: --log: there is no folder 'nor'",
        ]
    )


@pytest.mark.parametrize("how", ["option", "variable", "path"])
def test_without_a_chromium_one_line_states_what_to_do(
    how: str, folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments = [str(folder), "-o", str(folder / "page.json")]
    monkeypatch.delenv("CHROMIUM", raising=False)
    monkeypatch.setattr("h3sim.importers.chromium.browser.INSTALL_PATHS", ())
    if how == "option":
        arguments += ["--chromium", "/no/browser"]
    elif how == "variable":
        monkeypatch.setenv("CHROMIUM", "/no/browser")
    else:
        monkeypatch.setenv("PATH", str(folder))
    assert main(["record", *arguments]) == 1
    [line] = capsys.readouterr().err.splitlines()
    assert ("/no/browser" if how != "path" else "apt-get install chromium") in line
    assert not (folder / "page.json").exists()


def test_other_marks_than_those_of_chromium_can_be_requested(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    load = made(loaded("1", f"{ROOT}b.png?size=2", 2.0, "Image"))
    made_up = PageRecording(page=load.page, loads=(load,), chosen=0, differences=())
    monkeypatch.setattr("h3sim.importers.chromium.record", lambda *_, **__: made_up)
    output = folder / "page.json"
    marks = {}
    for choice in ([], ["--above-the-fold", "none"]):
        assert main(["record", str(folder), "-o", str(output), *choice]) == 0
        marks[len(choice)] = [r.above_the_fold for r in read_page(output).resources]
    assert marks == {0: [True, True], 2: [False, False]}
    output.unlink()
    assert main(["record", str(folder), "-o", str(output), "--above-the-fold", "no.txt"]) == 2
    assert "no.txt" in capsys.readouterr().err
    assert not output.exists()


def test_a_source_is_an_address_a_folder_or_a_file(folder: Path) -> None:
    assert RecordedSource.of("https://example.org/a?b").name == "example.org"
    assert RecordedSource.of(str(folder)) == RecordedSource(root=folder, path="index.html")
    below = RecordedSource.of(str(folder / "sub" / "index.html"), str(folder))
    assert (below.path, below.name) == ("sub/index.html", "sub")
    with pytest.raises(InputError, match=r"--root: .* is not inside"):
        RecordedSource.of(str(folder / "index.html"), str(folder / "sub"))
    with pytest.raises(InputError, match=r"--root: .* a file"):
        RecordedSource.of("https://example.org/", str(folder))


def test_a_site_answers_as_a_web_server(folder: Path) -> None:
    site = Site(folder)
    found = site.answer("/latin.css?v=1")
    assert found.status is HTTPStatus.OK
    # What is not UTF-8 is not said to be.
    assert dict(found.fields)["Content-Type"] == "text/css"
    assert dict(found.fields)["Content-Encoding"] == "gzip"
    assert dict(found.fields)["Content-Length"] == str(len(found.body))
    assert "Content-Encoding" not in dict(site.answer("/latin.css", "identity").fields)
    assert dict(site.answer("/sub").fields)["Location"] == "/sub/"
    assert site.answer("/sub/", "").body == b"<p>below"
    assert site.answer("/no.css").status is HTTPStatus.NOT_FOUND


@pytest.mark.parametrize("target", ["/../secret", "/%2e%2e/secret", "/a/../../secret", "/%00"])
def test_a_site_answers_with_nothing_from_outside_its_folder(folder: Path, target: str) -> None:
    (folder / "secret").write_text("outside", encoding="utf-8")
    inside = Site(folder / "sub")
    assert inside.answer(target).status is HTTPStatus.NOT_FOUND


def test_a_served_site_is_reached_over_http(folder: Path) -> None:
    with served(Site(folder, "none")) as base, urlopen(f"{base}/index.html") as answer:
        assert answer.read() == b"<p>home"


def test_of_a_browser_that_hangs_up_nothing_is_reported(capsys: pytest.CaptureFixture[str]) -> None:
    server = web_server._Server(("127.0.0.1", 0), web_server._Handler)
    message = []
    for error in (ConnectionResetError(), BrokenPipeError(), ValueError("a fault of ours")):
        try:
            raise error
        except (OSError, ValueError):
            server.handle_error(None, ("127.0.0.1", 1))
        message.append(capsys.readouterr().err)
    server.server_close()
    assert message[:2] == ["", ""]
    assert "a fault of ours" in message[2]


@pytest.mark.parametrize(
    ("module", "make"),
    [
        ("websocket", lambda folder: DevTools("ws://127.0.0.1:9")),
        ("brotli", lambda folder: Site(folder, "br")),
    ],
)
def test_a_library_that_is_missing_is_named_with_its_extra(
    module: str, make: Callable[[Path], object], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingExtraError, match=r"pip install 'h3sim\[record\]'"):
        make(folder)
