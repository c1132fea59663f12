"""Whatever ends a command, a file that it writes is there whole or not at all.

Nothing stays beside it but after a kill.

A full disk, a folder that nothing can be put into, an interrupt at any call, the process killed in
the middle, a reader of the output that has seen enough.
"""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

import h3sim
from h3sim.cli import main
from h3sim.export.qlog_file import write_load_qlog
from tests.effort import HANG_S, scaled
from tests.helpers import page_file
from tests.recordings import SAMPLES, write_recording

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

MOMENTS = 12
"""At how many calls each command is interrupted."""


def _page(folder: Path) -> str:
    return page_file(
        folder,
        {"id": "/", "kind": "document", "bytes": 3000},
        {
            "id": "a.css",
            "kind": "stylesheet",
            "bytes": 9000,
            "above_the_fold": True,
            "discovered": {"by": "/", "at": "complete"},
        },
    )


def _study(folder: Path) -> str:
    path = folder / "study.toml"
    text = f'format = "h3sim-study/1"\npages = ["{_page(folder)}"]\nschemes = ["rr", "fifo"]\n'
    path.write_text(text, "utf-8")
    return str(path)


def _rows(folder: Path) -> str:
    rows = folder / "rows.jsonl"
    page = h3sim.load_page(_page(folder))
    h3sim.sweep(pages=[page], schemes=["rr", "fifo"], executor="serial").save(rows)
    return str(rows)


def _log(folder: Path) -> str:
    log = folder / "load.qlog"
    write_load_qlog(h3sim.simulate(_page(folder), scheme="rr"), log)
    return str(log)


def _recording(folder: Path) -> str:
    return str(write_recording(folder, SAMPLES["har"]))


EXPERIMENT = "marx-2019-case-study-1"
WRITERS: dict[str, tuple[str, Callable[[Path], list[str]]]] = {
    "run --qlog": ("x.qlog", lambda folder: ["run", _page(folder), "--qlog"]),
    "run --har": ("x.har", lambda folder: ["run", _page(folder), "--har"]),
    "run --plot": ("x.svg", lambda folder: ["run", _page(folder), "--plot"]),
    "run --animate": (
        "x.html",
        lambda folder: ["run", _page(folder), "--network", "cable", "--animate"],
    ),
    "compare --csv": (
        "x.csv",
        lambda folder: ["compare", _page(folder), "--scheme", "rr", "--seeds", "2", "--csv"],
    ),
    "compare --plot": (
        "x.svg",
        lambda folder: ["compare", _page(folder), "--scheme", "rr,fifo", "--plot"],
    ),
    "optimality --plot": (
        "x.svg",
        lambda folder: ["optimality", _page(folder), "--scheme", "rr,fifo", "--plot"],
    ),
    "recommend --plot": (
        "x.svg",
        lambda folder: ["recommend", _page(folder), "--scheme", "rr,fifo", "--plot"],
    ),
    "recommend --report": (
        "x.html",
        lambda folder: [
            *("recommend", _page(folder), "--scheme", "rr,fifo", "--report"),
        ],
    ),
    "report": ("x.html", lambda folder: ["report", _page(folder), "-o"]),
    "show --plot": ("x.svg", lambda folder: ["show", "page", _page(folder), "--plot"]),
    "qlog --plot": ("x.svg", lambda folder: ["qlog", _log(folder), "--plot"]),
    "import": ("x.json", lambda folder: ["import", _recording(folder), "-o"]),
    "record": ("x.json", lambda _: ["record", "https://page.example/", "-o"]),
    "annotate": ("x.json", lambda folder: ["annotate", _page(folder), "--set", "a.css", "-o"]),
    "transform": ("x.json", lambda folder: ["transform", _page(folder), "--cached", "a.css", "-o"]),
    "sweep --csv": ("x.csv", lambda folder: ["sweep", _study(folder), "-j", "1", "--csv"]),
    "sweep --parquet": (
        "x.parquet",
        lambda folder: ["sweep", _study(folder), "-j", "1", "--parquet"],
    ),
    "sweep --save": ("x.jsonl", lambda folder: ["sweep", _study(folder), "-j", "1", "--save"]),
    "store export": ("x.csv", lambda folder: ["store", "export", _rows(folder)]),
    "header-compression --plot": (
        "x.svg",
        lambda folder: ["header-compression", _recording(folder), "-j", "1", "--plot"],
    ),
}
"""What writes a file: its name, and the command, to which the path is added."""
QUICK = [
    "run --qlog",
    "run --har",
    "compare --csv",
    "import",
    "transform",
    "annotate",
    "store export",
]
every_writer = pytest.mark.parametrize("name", WRITERS)


def command(name: str, folder: Path, target: Path) -> list[str]:
    given = folder / "given"
    given.mkdir(exist_ok=True)
    return [*WRITERS[name][1](given), str(target)]


@pytest.fixture(autouse=True)
def _no_browser(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Stand in for the browser of `h3sim record`: what it saw is known."""

    load = SimpleNamespace(onload_ms=12.0, browser="a browser", notes=())
    page = h3sim.load_page(_page(tmp_path))

    def record(*_: object, **__: object) -> object:
        return SimpleNamespace(page=page, load=load, differences=())

    monkeypatch.setattr("h3sim.importers.chromium.record", record)


@pytest.fixture
def target(tmp_path: Path, name: str) -> Path:
    """Where a file already stands that is to be replaced."""
    folder = tmp_path / "out"
    folder.mkdir()
    path = folder / WRITERS[name][0]
    path.write_bytes(b"old")
    return path


def left(target: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in target.parent.iterdir()}


@every_writer
def test_a_disk_that_is_full_leaves_the_old_file(
    name: str,
    tmp_path: Path,
    target: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    arguments = command(name, tmp_path, target)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    # The system refuses what goes beyond 100 bytes, as it does where no block is left.
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, limits[1]))
    try:
        code = main(arguments)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    message = capsys.readouterr().err.splitlines()
    assert (code, len(message)) == (2, 1), message
    assert "File too large" in message[0]
    assert left(target) == {target.name: b"old"}


@every_writer
@pytest.mark.skipif(not Path("/proc/self").is_dir(), reason="no folder that refuses even root")
def test_a_folder_that_takes_no_file_is_reported_in_one_line(
    name: str, tmp_path: Path, target: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = main(command(name, tmp_path, Path("/proc") / target.name))
    message = capsys.readouterr().err.splitlines()
    assert (code, len(message)) == (2, 1), message
    assert "cannot be written" in message[0]


class _Interrupt:
    """Raises what Ctrl-C raises at the n-th call of one of h3sim's functions."""

    def __init__(self, at_call: int) -> None:
        self.calls = 0
        self._at_call = at_call

    def __call__(self, frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        if event != "call" or "h3sim" not in code.co_filename or code.co_name == "__del__":
            return
        self.calls += 1
        if self.calls == self._at_call:
            sys.setprofile(None)
            raise KeyboardInterrupt


def interrupted(arguments: list[str], at_call: int) -> tuple[int, int]:
    """Return the exit code, and how many calls there were up to the interrupt."""
    interrupt, before = _Interrupt(at_call), sys.getprofile()
    sys.setprofile(interrupt)
    try:
        code = main(arguments)
    finally:
        sys.setprofile(before)
    return code, interrupt.calls


@pytest.mark.parametrize("name", QUICK)
# What was opened by a call that was interrupted is closed by whoever collects it, and says so.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_an_interrupt_at_any_call_leaves_the_old_file_or_the_new_one(
    name: str, tmp_path: Path, target: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = command(name, tmp_path, target)
    main(arguments)  # what is loaded on first use is loaded
    new, message = target.read_bytes(), capsys.readouterr()
    target.write_bytes(b"old")
    complete, calls = interrupted(arguments, at_call=0)
    assert (complete, target.read_bytes()) == (0, new)
    moments = scaled(MOMENTS)
    # Calls are most at the beginning and in the load; the last ones write.
    chosen = {3 + calls * n // moments for n in range(moments)} | set(range(calls - 10, calls - 2))
    codes: list[int] = []
    for at_call in sorted(chosen):
        target.write_bytes(b"old")
        code, _ = interrupted(arguments, at_call)
        codes.append(code)
        # A CSV file has a description beside it, written after it.
        assert left(target).keys() - {f"{target.name}.json"} == {target.name}, at_call
        # Python drops what is raised while it collects something; then the command goes on.
        assert (code, target.read_bytes()) in ((130, b"old"), (130, new), (0, new)), at_call
    assert codes.count(130) > len(codes) / 2
    lines = set(capsys.readouterr().err.splitlines())
    notes = {line for line in lines if "finished before the interrupt" in line}
    assert lines - notes <= {"h3sim: interrupted", *message.err.splitlines()}


STORES: dict[str, Callable[[Path], list[str]]] = {
    "sweep": lambda folder: ["sweep", _study(folder)],
    "header-compression": lambda folder: ["header-compression", _recording(folder)],
    "reproduce": lambda _: ["reproduce", EXPERIMENT],
}
"""What keeps its finished loads in a store."""


@pytest.mark.parametrize("name", STORES)
def test_a_store_that_cannot_be_written_is_reported_in_one_line(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = [*STORES[name](tmp_path), "-j", "1", "--store"]
    store = tmp_path / "study.db"
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (30_000, limits[1]))
    try:
        code = main([*arguments, str(store)])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    [message] = capsys.readouterr().err.splitlines()
    assert code != 0
    assert "study.db" in message
    # What is there may be used: the same command goes on where the disk was full.
    assert main([*arguments, str(store)]) == 0
    assert main(["store", "verify", str(store)]) == 0


@pytest.mark.parametrize("name", STORES)
# What a call that was interrupted had opened is closed by whoever collects it, and says so.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_a_store_is_sound_after_an_interrupt_at_any_call(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = [*STORES[name](tmp_path), "-j", "1", "--json", "--store"]
    if name == "sweep":
        arguments.remove("--json")
    store = tmp_path / "study.db"
    complete, calls = interrupted([*arguments, str(tmp_path / "whole.db")], at_call=0)
    message = capsys.readouterr().out
    assert complete == 0
    moments = scaled(4)
    for n in range(moments):
        code, _ = interrupted([*arguments, str(store)], 3 + calls * n // moments)
        assert code in (130, 0)
        # A file that SQLite had only just opened is empty.
        is_begun = store.exists() and store.stat().st_size > 0
        assert not is_begun or main(["store", "verify", str(store)]) == 0
    capsys.readouterr()
    assert main([*arguments, str(store)]) == 0
    assert name == "sweep" or capsys.readouterr().out == message


_KILLED = """
import os, signal, sys
from pathlib import Path
from h3sim.cli import main

left = int(sys.argv[1])

def dying(function):
    def call(*arguments, **options):
        global left
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return function(*arguments, **options)
    return call

os.fsync = dying(os.fsync)
Path.replace = dying(Path.replace)
Path.unlink = dying(Path.unlink)
main(sys.argv[2:])
"""


@pytest.mark.parametrize(
    ("moment", "is_new"), [(1, False), (2, False), (3, True)], ids=["sync", "replace", "tidy"]
)
@pytest.mark.parametrize("name", ["import"])
def test_killed_while_it_writes_a_command_leaves_the_old_file_or_the_new_one(
    name: str, tmp_path: Path, target: Path, moment: int, is_new: bool
) -> None:
    # All go through one function, which a test below sees to; so one command stands for all.
    arguments = command(name, tmp_path, target)
    done = subprocess.run(
        [sys.executable, "-c", _KILLED, str(moment), *arguments],
        check=False,
        capture_output=True,
        timeout=HANG_S,
    )
    assert done.returncode == -signal.SIGKILL
    written = target.read_bytes()
    assert main(arguments) == 0
    assert written == (target.read_bytes() if is_new else b"old")
    drafts = [path.name for path in target.parent.iterdir() if path != target]
    assert all(draft.startswith(".h3sim-") and draft.endswith(".tmp") for draft in drafts)


@pytest.mark.parametrize(
    "arguments",
    [["list", "schemes"], ["show", "scheme", "dfifo"], ["run", "http2rulez", "--scheme", "rr"]],
)
def test_a_reader_that_has_seen_enough_ends_the_command_in_silence(arguments: list[str]) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    try:
        done = subprocess.run(
            [sys.executable, "-m", "h3sim", *arguments],
            check=False,
            stdout=writing,
            stderr=subprocess.PIPE,
            text=True,
            timeout=HANG_S,
        )
    finally:
        os.close(writing)
    assert (done.returncode, done.stderr) == (1, "")
