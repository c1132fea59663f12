"""Which tests reach which lines, and how long each takes; recorded once, file by file."""

from __future__ import annotations

import difflib
import hashlib
import json
from collections import defaultdict
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tools.mutation import children

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator, Sequence

    from tools.mutation.operators import Mutant

__all__ = ["PACKAGES", "RECORDED", "Reach", "files_of_tests", "record", "sources"]

PACKAGES = ("schedulers", "http", "engine", "transport", "metrics", "schemes", "browser", "page")
"""The core, of which mutants are made."""
_FOLDERS = ("tests/unit", "tests/theory", "tests/stateful", "tests/golden", "tests/property")
_LEFT_OUT = (
    *("docs", "notebook", "structure", "packaging", "cli_", "import", "recorder", "recording"),
    *("sweep", "study"),
    *(
        "hostile",
        "plots",
        "test_find",
        "repro",
        "test_report",
        "header_studies",
        "header_delays",
        "corpus",
        "quicker",
    ),
    *("facts", "validation_", "qlog_mistakes", "versions", "determinism"),
    *("alt_texts", "contrasts", "crash_safety", "hints", "identification", "load_tasks"),
    *("optimality", "picture_check", "python_arguments", "sensitivity"),
    *("advise", "animation", "benchmarks", "chrome_trace", "net_log", "notebooks", "playground"),
    *("race", "test_fuzz", "test_mutation", "words", "workflows"),
)
"""Tests of other things, and those that run h3sim in another process: it has no mistake there."""
RECORDED = "tests/golden/"
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
    return [*(f"h3sim/{package}" for package in PACKAGES), *files]


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
    # Under the tracer some fail; those are not asked, and the others of the file are.
    failed = sorted(set(outcome.every_failed))
    seconds = {test: took for test, took in outcome.seconds.items() if test not in failed}
    did_not_run = [outcome.failed] if outcome.failed and not failed else []
    return {"seconds": seconds, "failed": failed + did_not_run, "lines": lines}


def _digest_of(tests: str) -> str:
    path = Path(tests)
    files = sorted(path.rglob("*.py")) if path.is_dir() else [path]
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()[:16]


def record(folder: Path) -> None:
    """Record what was not recorded yet, or was before its tests changed."""
    folder.mkdir(parents=True, exist_ok=True)
    texts = dict(sources())
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
        if found is None:
            found = {"seconds": {}, "failed": [f"{tests}, which did not end"], "lines": {}}
        for test in found["failed"]:
            print(f"not used: {test}", flush=True)
        found["texts"] = {file: _keep(folder / "texts", texts[file]) for file in found["lines"]}
        kept.write_text(json.dumps({"digest": digest, **found}), "utf-8")
        print(f"{tests}: {sum(found['seconds'].values()):.1f} s", flush=True)


def _keep(folder: Path, text: str) -> str:
    """Keep a text under its digest, and return that."""
    folder.mkdir(exist_ok=True)
    digest = hashlib.sha256(text.encode()).hexdigest()[:16]
    if not (folder / digest).exists():
        (folder / digest).write_text(text, "utf-8")
    return digest


def moved(before: Sequence[str], after: Sequence[str]) -> dict[int, list[int]]:
    """Return where each line of a text is in a later one, by number.

    Whoever reaches a line that was changed, or one that stands beside what is new, is taken to
    reach all that came instead: a test too many costs its time, and one that is missing would let
    a mistake pass.

    >>> moved(["a", "b", "c"], ["a", "new", "newer", "c"])
    {1: [1, 2, 3], 2: [2, 3], 3: [2, 3, 4]}
    >>> moved(["a", "b"], ["b"])
    {2: [1]}
    """
    now: dict[int, list[int]] = defaultdict(list)
    matcher = difflib.SequenceMatcher(None, before, after, autojunk=False)
    for kind, first, end, later, later_end in matcher.get_opcodes():
        if kind == "equal":
            for n in range(1, end - first + 1):
                now[first + n].append(later + n)
        elif later < later_end:
            for number in range(max(1, first), min(len(before), end + 1) + 1):
                now[number].extend(range(later + 1, later_end + 1))
    return {number: sorted(now[number]) for number in sorted(now)}


class Reach:
    """The tests that can notice a mutant: those for its file first, recorded numbers last."""

    def __init__(self, folder: Path) -> None:
        self.seconds: dict[str, float] = {}
        self._lines: dict[tuple[str, int], set[str]] = defaultdict(set)
        self._files: dict[str, set[str]] = defaultdict(set)
        self._texts, self._kept = dict(sources()), folder / "texts"
        for tests in files_of_tests():
            kept = folder / f"{tests.replace('/', '.')}.json"
            if kept.exists():
                self._add(json.loads(kept.read_text("utf-8")))

    def _add(self, found: dict[str, Any]) -> None:
        self.seconds |= found["seconds"]
        for file, lines in found["lines"].items():
            if file not in self._texts:
                continue
            now = self._moved(file, found["texts"][file])
            for line, tests in lines.items():
                for number in now.get(int(line), ()):
                    self._lines[file, number] |= set(tests)
                self._files[file] |= set(tests)

    @cache  # noqa: B019 - it lives as long as the program
    def _moved(self, file: str, digest: str) -> dict[int, list[int]]:
        before = (self._kept / digest).read_text("utf-8")
        return moved(before.splitlines(), self._texts[file].splitlines())

    def tests_of(self, mutant: Mutant) -> list[str]:
        """Return them; of what runs on import, those that reach anything of that file."""
        tests = self._lines[mutant.file, mutant.line]
        if mutant.is_at_import or not tests:
            # A statement of several lines may be recorded under another of them.
            nearby = (self._lines[mutant.file, mutant.line - back] for back in range(1, 8))
            tests = set(self._files[mutant.file]) if mutant.is_at_import else set().union(*nearby)
        return self.in_order(tests, mutant.file)

    def in_order(self, tests: Iterable[str], file: str) -> list[str]:
        """Return tests as they are tried: those that cost least for what they alone reach.

        Thousands of tests pass through a constructor, and only the few that reach the method that
        uses a value notice that it is wrong.
        """
        known = [test for test in tests if test in self.seconds]
        alone = self._share_alone(file)
        return sorted(
            known,
            key=lambda test: (
                test.startswith(RECORDED),
                self.seconds[test] / alone.get(test, 1.0),
                test,
            ),
        )

    @cache  # noqa: B019 - it lives as long as the program
    def _share_alone(self, file: str) -> dict[str, float]:
        """Return by test how much of a file it reaches: a line counts less, the more reach it."""
        shares: dict[str, float] = defaultdict(float)
        for (of_file, _), tests in self._lines.items():
            if of_file == file:
                for test in tests:
                    shares[test] += 1 / len(tests)
        return shares

    def keep(self, tests: Container[str]) -> None:
        """Forget tests that are not among *tests*: they have another name since, or are gone."""
        self.seconds = {test: took for test, took in self.seconds.items() if test in tests}

    @property
    def files(self) -> list[str]:
        """Return the files of the tests that are asked."""
        return sorted({test.split("::")[0] for test in self.seconds})
