"""Trials that start at once: forks of a process that has collected every test already.

There a mistake inside a function is made by giving the live function other code. What ran when
modules were imported has run without the mistake: a test that fails has noticed it, and what none
noticed has to be tried once more with modules loaded anew.
"""

from __future__ import annotations

import ast
import functools
import gc
import json
import os
import shutil
import sys
from pathlib import Path
from types import CodeType, FunctionType
from typing import TYPE_CHECKING, Any

from tools.mutation import children
from tools.mutation.operators import code_with, mutants_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pytest

    from tools.mutation.operators import Mutant

__all__ = ["Warm"]

_SAID = Path("build/mutants/warm-output.txt")


class Warm:
    """A process that has collected *files*, and tries what it is asked to."""

    def __init__(self, files: Sequence[str]) -> None:
        asking, self._to = os.pipe()
        self._from, answering = os.pipe()
        self._child = os.fork()
        if self._child == 0:
            os.close(self._to)
            os.close(self._from)
            _serve(files, asking, answering)
        os.close(asking)
        os.close(answering)
        self._answers = os.fdopen(self._from, "r", encoding="utf-8")
        self.collected: frozenset[str] = frozenset(json.loads(self._answers.readline() or "[]"))
        """The tests that there are now."""

    def tried(self, mutant: Mutant | None, tests: Sequence[str], cpu_seconds: float) -> Any:
        """Return the test that fails as {"failed": test, or ""}, None if they do not end.

        {} says that it cannot be tried here.
        """
        question = {
            "file": mutant and mutant.file,
            "key": mutant and mutant.key,
            "tests": list(tests),
            "cpu": cpu_seconds,
            "wall": 20 * cpu_seconds,
        }
        os.write(self._to, json.dumps(question).encode() + b"\n")
        answer = self._answers.readline()
        return json.loads(answer) if answer else {}

    def close(self) -> None:
        """End the process."""
        os.close(self._to)
        self._answers.close()
        os.waitpid(self._child, 0)


def _serve(files: Sequence[str], asking: int, answering: int) -> None:
    code = 1
    try:
        message = os.open(_SAID, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
        os.dup2(message, 1)
        os.dup2(message, 2)
        with os.fdopen(asking, "r", encoding="utf-8") as questions:
            children.collected(files, _Server(questions, answering))
        code = 0
    finally:
        sys.stdout.flush()
        os._exit(code)


class _Server:
    """A plugin of pytest: in the stead of running what was collected it answers questions."""

    def __init__(self, questions: Any, answering: int) -> None:
        self._questions = questions
        self._answering = answering
        self._items: dict[str, pytest.Item] = {}
        self._functions: dict[tuple[str, str, int], list[FunctionType]] = {}

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Answer until nobody asks."""
        self._items = {item.nodeid: item for item in session.items}
        self._functions = _live_functions()
        base = session.config._tmp_path_factory.getbasetemp()  # type: ignore[attr-defined]
        gc.collect()
        gc.freeze()
        os.write(self._answering, json.dumps(list(self._items)).encode() + b"\n")
        for line in self._questions:
            asked = json.loads(line)
            found = children.in_child(
                lambda asked=asked: self._answer(asked, base),  # type: ignore[misc]
                cpu_seconds=asked["cpu"],
                wall_seconds=asked["wall"],
            )
            os.write(self._answering, json.dumps(found).encode() + b"\n")
            shutil.rmtree(base / "trial", ignore_errors=True)
        return True

    def _answer(self, asked: dict[str, Any], base: Path) -> dict[str, Any]:
        if asked["key"] and not self._mutant_is_active(asked["file"], asked["key"]):
            return {}
        items = [self._items[test] for test in asked["tests"] if test in self._items]
        if not items:
            return {}
        own = base / "trial"
        own.mkdir()
        items[0].config._tmp_path_factory._basetemp = own  # type: ignore[attr-defined]
        watcher = children.Watcher()
        items[0].config.pluginmanager.register(watcher)
        for item, following in zip(items, [*items[1:], None], strict=True):
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            if watcher.outcome.failed:
                break
        return {"failed": watcher.outcome.failed}

    def _mutant_is_active(self, file: str, key: str) -> bool:
        source = Path(file).read_text("utf-8")
        mutant = next(mutant for mutant in mutants_of(file, source) if mutant.key == key)
        changed = list(_changed(file, source, code_with(mutant, source)))
        made = 0
        for code in changed:
            for function in self._functions.get(_name(code), ()):
                try:
                    function.__code__ = code
                except ValueError:  # another number of free variables
                    return False
                made += 1
        return made > 0


def _name(code: CodeType) -> tuple[str, str, int]:
    return code.co_filename, code.co_qualname, code.co_firstlineno


def _live_functions() -> dict[tuple[str, str, int], list[FunctionType]]:
    """Return h3sim's functions by their code, and forget what they have worked out so far."""
    here = str(Path("h3sim").resolve())
    found: dict[tuple[str, str, int], list[FunctionType]] = {}
    for each in gc.get_objects():
        if isinstance(each, functools._lru_cache_wrapper):
            if getattr(each, "__module__", "").startswith("h3sim"):
                each.cache_clear()
        elif isinstance(each, FunctionType) and each.__code__.co_filename.startswith(here):
            found.setdefault(_name(each.__code__), []).append(each)
    return found


def _changed(file: str, source: str, tree: ast.Module) -> Iterator[CodeType]:
    """Give the code of each function that is another in *tree*, those in functions included."""
    path = str(Path(file).resolve())
    before = compile(ast.parse(source), path, "exec", dont_inherit=True)
    after = compile(tree, path, "exec", dont_inherit=True)
    known = {_name(code): code for code in _codes(before)}
    for code in _codes(after):
        if code != known.get(_name(code)):
            yield code


def _codes(code: CodeType) -> Iterator[CodeType]:
    for const in code.co_consts:
        if isinstance(const, CodeType):
            yield const
            yield from _codes(const)
