"""Files are opened if they are files, and written whole or not at all."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from h3sim.cli import main
from h3sim.schema import check_output, open_input, read_text, write_atomically
from h3sim.values.errors import InputError, PageError
from tests.effort import HANG_S
from tests.recordings import SAMPLES, write_recording

if TYPE_CHECKING:
    from typing import BinaryIO


def _of(folder: Path, what: str) -> str:
    if what == "pipe":
        os.mkfifo(folder / "pipe")
        return str(folder / "pipe")
    return {"folder": str(folder), "device": "/dev/zero", "long": "a" * 300, "nul": "a\0b"}[what]


NOT_FILES = ["pipe", "folder", "device", "long", "nul"]


@pytest.mark.parametrize("what", NOT_FILES)
def test_what_is_no_regular_file_is_refused_at_once(tmp_path: Path, what: str) -> None:
    path = _of(tmp_path, what)
    with pytest.raises(PageError, match=r"regular file|is a folder|cannot be read"):
        read_text(path, PageError)
    with pytest.raises(InputError), open_input(path, InputError):
        raise AssertionError  # not reached


@pytest.mark.parametrize("what", NOT_FILES)
@pytest.mark.parametrize("command", ["import", "run", "record", "recommend", "report"])
def test_commands_refuse_it_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], what: str, command: str
) -> None:
    if what == "folder":
        tmp_path.joinpath("index.html").mkdir()
    path = _of(tmp_path, what)
    outputs = {"record": ["-o", str(tmp_path / "page.json")]}
    outputs["report"] = ["-o", str(tmp_path / "report.html")]
    arguments = [command, path if "/" in path else f"{path}.json", *outputs.get(command, ())]
    assert main(arguments) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1


@pytest.mark.parametrize("what", ["folder", "long", "nul"])
def test_an_output_that_cannot_be_is_refused_before_the_work(tmp_path: Path, what: str) -> None:
    with pytest.raises(InputError, match="-o: "):
        check_output(_of(tmp_path, what), key="-o")
    check_output(tmp_path / "new.json")
    check_output("/dev/null")


def test_what_cannot_be_written_to_its_end_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "page.json"
    path.write_text("old", encoding="utf-8")

    def fill_the_disk(file: BinaryIO) -> None:
        file.write(b"new")
        raise OSError(28, "No space left on device")

    with pytest.raises(InputError, match=r"page\.json: -o: .*No space left"):
        write_atomically(path, fill_the_disk, key="-o")
    assert path.read_text(encoding="utf-8") == "old"
    assert [each.name for each in tmp_path.iterdir()] == ["page.json"]


def test_an_interrupt_leaves_no_draft(tmp_path: Path) -> None:
    def interrupted(_: BinaryIO) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_atomically(tmp_path / "page.json", interrupted)
    assert list(tmp_path.iterdir()) == []


def test_a_link_is_followed_and_permissions_stay(tmp_path: Path) -> None:
    real, link = tmp_path / "real.json", tmp_path / "link.json"
    real.write_text("old", encoding="utf-8")
    real.chmod(0o640)
    link.symlink_to(real)
    write_atomically(link, "new")
    assert link.is_symlink()
    assert real.read_text(encoding="utf-8") == "new"
    assert real.stat().st_mode & 0o777 == 0o640


def test_a_device_is_written_to_and_not_replaced(tmp_path: Path) -> None:
    link = tmp_path / "null.json"
    link.symlink_to("/dev/null")
    write_atomically(link, b"gone")
    assert Path("/dev/null").is_char_device()
    with pytest.raises(InputError, match="No space left on device"):
        write_atomically("/dev/full", "x" * 100_000)


@pytest.mark.skipif(not Path("/dev/fd").is_dir(), reason="needs /dev/fd")
def test_a_pipe_without_a_name_is_written_to() -> None:
    reader, writer = os.pipe()
    write_atomically(f"/dev/fd/{writer}", "to whoever reads")
    os.close(writer)
    with os.fdopen(reader) as file:
        assert file.read() == "to whoever reads"


def test_import_and_record_replace_a_page_only_with_a_complete_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    recording = str(write_recording(tmp_path, SAMPLES["har"]))
    page = tmp_path / "page.json"
    page.write_text("old", encoding="utf-8")

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    assert main(["import", recording, "-o", str(page)]) == 2
    assert "No space left on device" in capsys.readouterr().err
    assert page.read_text(encoding="utf-8") == "old"


_TERMINATED = """
import os, signal, sys
from h3sim.cli import main
from h3sim.schema import write_atomically
from h3sim.cli import pages

def _write(output, text):
    def kill(file):
        file.write(b"half")
        os.kill(os.getpid(), signal.SIGTERM)
    write_atomically(output, kill)

pages.write_output = _write
main(["import", sys.argv[1], "-o", sys.argv[2]])
"""


def test_a_request_to_end_leaves_no_draft(tmp_path: Path) -> None:
    recording = str(write_recording(tmp_path, SAMPLES["har"]))
    folder = tmp_path / "out"
    folder.mkdir()
    done = subprocess.run(
        [sys.executable, "-c", _TERMINATED, recording, str(folder / "page.json")],
        check=False,
        timeout=HANG_S,
    )
    assert done.returncode == 128 + signal.SIGTERM
    assert list(folder.iterdir()) == []
