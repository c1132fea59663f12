"""Tests in forked children: everything but h3sim is loaded once, and h3sim anew in each."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import resource
import signal
import sys
import time
import traceback
from dataclasses import dataclass, field
from importlib.machinery import ModuleSpec, SourceFileLoader
from operator import sub
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    import ast
    from collections.abc import Callable, Sequence
    from types import CodeType, ModuleType

__all__ = ["Outcome", "Watcher", "collected", "in_child", "install", "prepare", "run_tests"]

_PLUGINS = ("h3sim.pytest_plugin", "_hypothesis_pytestplugin")
# Pytest's own way to import asserts would find the module with the mistake before we do.
_ARGUMENTS = [
    *("-q", "--tb=no", "--assert=plain", "-p", "no:cacheprovider"),
    *(part for plugin in _PLUGINS for part in ("-p", plugin)),
]
LAST_OUTPUT = Path("build/mutants/last-output.txt")
"""What the last child printed: where to look when something is wrong with the tool."""
_MOST_BYTES = 4 * 2**30
"""What a child may take: a mutant that fills the memory ends there."""


@dataclass(slots=True)
class Outcome:
    """What tests said: *failed* is the first that failed ("" if none), and all their seconds."""

    failed: str = ""
    every_failed: list[str] = field(default_factory=list)
    seconds: dict[str, float] = field(default_factory=dict)


def prepare() -> None:
    """Load what the tests load beside h3sim, so that children find it."""
    os.environ["HYPOTHESIS_PROFILE"] = "mutants"
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    import _pytest.doctest  # noqa: F401
    import coverage  # noqa: F401
    import hypothesis.stateful  # noqa: F401
    import networkx  # noqa: F401
    import numpy  # noqa: F401
    import simpy  # noqa: F401

    LAST_OUTPUT.parent.mkdir(parents=True, exist_ok=True)
    if any(name.partition(".")[0] in ("h3sim", "tests") for name in sys.modules):
        raise RuntimeError("h3sim is loaded already: children would not see mutants of it")


def in_child(work: Callable[[], Any], *, cpu_seconds: float, wall_seconds: float) -> Any:
    """Return what *work* returns in a fork of this process, as JSON carries it.

    None if the child ended otherwise or took longer than it may: by its own clock, so that a busy
    machine judges no mutant; the other limit is for those that wait for ever.
    """
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        _as_child(work, writing, cpu_seconds)
    os.close(writing)
    try:
        return _received(reading, wall_seconds)
    finally:
        os.close(reading)
        # The child leads a group of its own: what its tests started ends with it.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child, signal.SIGKILL)
        os.waitpid(child, 0)


def _as_child(work: Callable[[], Any], writing: int, cpu_seconds: float) -> None:
    code = 1
    try:
        os.setpgid(0, 0)
        resource.setrlimit(resource.RLIMIT_AS, (_MOST_BYTES, _MOST_BYTES))
        limit = int(cpu_seconds) + 1
        resource.setrlimit(resource.RLIMIT_CPU, (limit, limit))
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        message = os.open(LAST_OUTPUT, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
        os.dup2(message, 1)
        os.dup2(message, 2)
        sent = json.dumps(work()).encode()
        with os.fdopen(writing, "wb") as pipe:
            pipe.write(sent)
        code = 0
    except BaseException:  # noqa: BLE001 - what ends here is told in the file of its output
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        # Without the parent's way out: its buffers and files are not the child's to end.
        os._exit(code)


def _received(reading: int, wall_seconds: float) -> Any:
    until = time.monotonic() + wall_seconds
    received = b""
    os.set_blocking(reading, False)
    import select

    while (left := until - time.monotonic()) > 0:
        if not select.select([reading], [], [], left)[0]:
            break
        part = os.read(reading, 1 << 20)
        if not part:
            break
        received += part
    try:
        return json.loads(received)
    except ValueError:
        return None


class _Loader(SourceFileLoader):
    """Loads a module from a tree that is given, and not from its file."""

    def __init__(self, name: str, path: str, tree: ast.Module) -> None:
        super().__init__(name, path)
        self._tree = tree

    def get_code(self, fullname: str) -> CodeType:  # noqa: ARG002 - the protocol has it
        """Return the code of that tree."""
        return compile(self._tree, self.path, "exec", dont_inherit=True)


class _Finder:
    """Finds one module: the one with the mistake."""

    def __init__(self, name: str, path: Path, tree: ast.Module) -> None:
        self._name, self._path, self._tree = name, path, tree

    def find_spec(
        self, name: str, _path: Sequence[str] | None = None, _target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return how to load it; None for all others."""
        if name != self._name:
            return None
        loader = _Loader(name, str(self._path), self._tree)
        folders = [str(self._path.parent)] if self._path.name == "__init__.py" else None
        return importlib.util.spec_from_file_location(
            name, self._path, loader=loader, submodule_search_locations=folders
        )


def install(file: str, tree: ast.Module) -> None:
    """Let the module of *file* (a path from the checkout) be that tree when it is imported."""
    path = Path(file)
    parts = path.with_suffix("").parts
    name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
    sys.meta_path.insert(0, _Finder(name, path.resolve(), tree))


class Watcher:
    """Notes how long each test took, and which was the first to fail."""

    def __init__(self) -> None:
        self.outcome = Outcome()
        self._began_at_s = (0.0, 0.0)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Note what could not even be imported."""
        if report.failed and not self.outcome.failed:
            self.outcome.failed = report.nodeid or "import"

    def pytest_runtest_logstart(self) -> None:
        """Begin a test."""
        self._began_at_s = _clocks_s()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note a test that failed, whatever part of it."""
        if report.failed:
            self.outcome.failed = self.outcome.failed or report.nodeid
            self.outcome.every_failed.append(report.nodeid)

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        """End a test."""
        took = map(sub, _clocks_s(), self._began_at_s)
        self.outcome.seconds[nodeid] = round(min(took), 5)


def _clocks_s() -> tuple[float, float]:
    """Return what this process has used, and the time: of an interval the lesser one counts.

    The first may advance by milliseconds at once, which is more than most tests take, and the
    second goes on while others have the processor.
    """
    return time.process_time(), time.perf_counter()


def run_tests(what: Sequence[str], *, plugins: Sequence[object] = (), stop: bool = True) -> Outcome:
    """Run test files or single tests in this process, to the first failure if *stop*."""
    watcher = Watcher()
    code = pytest.main([*_ARGUMENTS, *(["-x"] if stop else []), *what], plugins=[watcher, *plugins])
    if (
        code not in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED)
        and not watcher.outcome.failed
    ):
        watcher.outcome.failed = f"pytest ended with {int(code)}"
    return watcher.outcome


def collected(what: Sequence[str], plugin: object) -> None:
    """Collect test files in this process and leave what then happens to *plugin*."""
    pytest.main([*_ARGUMENTS, "-s", "--continue-on-collection-errors", *what], plugins=[plugin])
