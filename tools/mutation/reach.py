"""Which tests reach which lines, and how long each takes; recorded once, file by file."""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tools.mutation import children

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from tools.mutation.operators import Mutant

__all__ = ["PACKAGES", "Reach", "files_of_tests", "record", "sources"]

PACKAGES = ("schedulers", "http", "engine", "transport", "metrics", "schemes", "browser", "page")
"""The core, of which mutants are made."""
_FOLDERS = ("tests/unit", "tests/property", "tests/stateful", "tests/theory", "tests/golden")
_LEFT_OUT = (
    *("docs", "notebook", "structure", "packaging", "cli_", "import", "record", "sweep", "study"),
    *(
        "hostile",
        "plots",
        "find",
        "repro",
        "report",
        "header_studies",
        "header_delays",
        "corpus",
        "quicker",
    ),
    *("facts", "validation_", "processes", "qlog_mistakes", "versions", "determinism"),
)
"""Tests of other things, and those that run h3sim in another process: it has no mistake there."""
_RECORDED = "tests/golden/"
_CPU_SECONDS, _WALL_SECONDS = 1200.0, 3600.0


def sources() -> Iterator[tuple[str, str]]:
    """Give each file of the core and its text, in order."""
    for package in PACKAGES:
        for path in sorted(Path("h3sim", package).rglob("*.py")):
            yield path.as_posix(), path.read_text("utf-8")


def files_of_tests() -> list[str]:
    """Return what is recorded: files of tests, and the folders whose docstrings have examples."""
    files = [
        path.as_posix()
        for folder in _FOLDERS
        for path in sorted(Path(folder).glob("test_*.py"))
        if not any(part in path.name for part in _LEFT_OUT)
    ]
    return [*files, *(f"h3sim/{package}" for package in PACKAGES)]


class _Contexts:
    """Tells coverage which test runs."""

    def __init__(self, coverage: Any) -> None:
        self._coverage = coverage

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self._coverage.switch_context(nodeid)

    def pytest_runtest_logfinish(self) -> None:
        self._coverage.switch_context("")


def _reached_by(tests: str) -> dict[str, Any]:
    """Run those tests in this process; return their seconds and, line by line, who was there."""
    import coverage

    folders = [str(Path("h3sim", package).resolve()) for package in PACKAGES]
    watched = coverage.Coverage(data_file=None, config_file=False, source=folders, branch=False)
    watched.start()
    outcome = children.run_tests([tests], plugins=[_Contexts(watched)], stop=False)
    watched.stop()
    data = watched.get_data()
    here = Path.cwd()
    lines = {
        Path(file).relative_to(here).as_posix(): {
            str(line): [test for test in found if test]
            for line, found in sorted(data.contexts_by_lineno(file).items())
        }
        for file in sorted(data.measured_files())
    }
    return {"seconds": outcome.seconds, "failed": outcome.failed, "lines": lines}


def _digest_of(tests: str) -> str:
    path = Path(tests)
    files = sorted(path.rglob("*.py")) if path.is_dir() else [path]
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()[:16]


def record(folder: Path) -> None:
    """Record what was not recorded yet, or was before its tests changed."""
    folder.mkdir(parents=True, exist_ok=True)
    for tests in files_of_tests():
        kept = folder / f"{tests.replace('/', '.')}.json"
        digest = _digest_of(tests)
        if kept.exists() and json.loads(kept.read_text("utf-8"))["digest"] == digest:
            continue
        found = children.in_child(
            lambda tests=tests: _reached_by(tests),  # type: ignore[misc]
            cpu_seconds=_CPU_SECONDS,
            wall_seconds=_WALL_SECONDS,
        )
        if found is None or found["failed"]:
            print(
                f"{tests}: not used, {found['failed'] if found else 'it did not end'}", flush=True
            )
            found = {"seconds": {}, "failed": "", "lines": {}}
        kept.write_text(json.dumps({"digest": digest, **found}), "utf-8")
        print(f"{tests}: {sum(found['seconds'].values()):.1f} s", flush=True)


class Reach:
    """The tests that can notice a mutant: fastest first, those with recorded numbers last."""

    def __init__(self, folder: Path) -> None:
        self.seconds: dict[str, float] = {}
        self._lines: dict[tuple[str, int], set[str]] = defaultdict(set)
        self._files: dict[str, set[str]] = defaultdict(set)
        for kept in sorted(folder.glob("*.json")):
            self._add(json.loads(kept.read_text("utf-8")))

    def _add(self, found: dict[str, Any]) -> None:
        self.seconds |= found["seconds"]
        for file, lines in found["lines"].items():
            for line, tests in lines.items():
                self._lines[file, int(line)] |= set(tests)
                self._files[file] |= set(tests)

    def tests_of(self, mutant: Mutant) -> list[str]:
        """Return them; of what runs on import, those that reach anything of that file."""
        tests = self._lines[mutant.file, mutant.line]
        if mutant.is_at_import or not tests:
            # A statement of several lines may be recorded under another of them.
            nearby = (self._lines[mutant.file, mutant.line - back] for back in range(1, 8))
            tests = set(self._files[mutant.file]) if mutant.is_at_import else set().union(*nearby)
        return self.in_order(tests)

    def in_order(self, tests: Iterable[str]) -> list[str]:
        """Return tests as they are tried."""
        known = [test for test in tests if test in self.seconds]
        return sorted(
            known, key=lambda test: (test.startswith(_RECORDED), self.seconds[test], test)
        )
