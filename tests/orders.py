"""`python -m tests.orders [RUNS] [PYTEST ARGUMENTS]`: the suite in random orders.

Each run has an order by a seed of its own and one to four workers. All runs of a commit must find
the same of each test: what does not is named, with the seed that brings the order back. Runs of the
whole suite are kept in `build/orders`, so that twenty may come in pieces; `--write` puts what they
found into docs/generated/any-order.md. Needs `pytest-random-order`.
"""

from __future__ import annotations

import importlib
import json
import random
import subprocess
import sys
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path
from xml.etree import ElementTree

from h3sim.values.errors import H3SimError, InputError, ValidationIssue, needing_extra
from tools.documented import put

__all__ = ["Run", "differences", "outcomes", "table"]

_WORKERS = (2, 3, 4, 1)
_FOLDER = Path("build/orders")
_FAILED = ("failure", "error")
_WRITTEN_BY = "python -m tests.orders --write"
_SHOWN_DIGITS = 7


@dataclass(frozen=True)
class Run:
    """The suite once, in an order of its own."""

    commit: str
    seed: int
    workers: int
    found: dict[str, str]
    """What came of each test."""
    otherwise: list[str]
    """A line for each test that failed, or was other in the first run of this commit."""


def outcomes(report: str) -> dict[str, str]:
    """Return what a report of pytest's (`--junit-xml`) says of each test.

    >>> outcomes('<t><testcase classname="a" name="b"><failure/></testcase></t>')
    {'a::b': 'failure'}
    """
    root = ElementTree.fromstring(report)
    return {
        f"{case.get('classname')}::{case.get('name')}": next(
            (each.tag for each in case if each.tag in ("failure", "error", "skipped")), "passed"
        )
        for case in root.iter("testcase")
    }


def differences(first: dict[str, str], other: dict[str, str]) -> list[str]:
    """Return a line for each test of which two runs did not find the same.

    >>> differences({"a": "passed", "b": "passed"}, {"b": "failure"})
    ['a: passed, then missing', 'b: passed, then failure']
    """
    return [
        f"{name}: {first.get(name, 'missing')}, then {other.get(name, 'missing')}"
        for name in sorted({**first, **other})
        if first.get(name) != other.get(name)
    ]


def table(runs: list[Run]) -> str:
    """Return what the runs of each commit found, as Markdown.

    >>> print(table([Run("1f", 7, 2, {"a": "passed"}, []), Run("1f", 8, 3, {"a": "passed"}, [])]))
    | commit | runs | workers | tests of a run | outcomes | failed, or came out otherwise |
    |:--|--:|--:|--:|--:|--:|
    | 1f | 2 | 2 to 3 | 1 | 2 | 0 |
    """
    names = ("runs", "workers", "tests of a run", "outcomes", "failed, or came out otherwise")
    head = f"| commit | {' | '.join(names)} |\n|:--|{'--:|' * len(names)}"
    commits = dict.fromkeys(run.commit for run in runs)
    return "\n".join([head, *(_row([run for run in runs if run.commit == c]) for c in commits)])


def _row(runs: list[Run]) -> str:
    """Return what the runs of one commit found."""
    workers, tests = [run.workers for run in runs], [len(run.found) for run in runs]
    cells = (
        runs[0].commit[:_SHOWN_DIGITS],
        f"{len(runs):,}",
        f"{min(workers)} to {max(workers)}",
        f"{min(tests):,}" if min(tests) == max(tests) else f"{min(tests):,} to {max(tests):,}",
        f"{sum(tests):,}",
        f"{sum(len(run.otherwise) for run in runs):,}",
    )
    return f"| {' | '.join(cells)} |"


def _kept() -> list[Run]:
    return [Run(**json.loads(path.read_text("utf-8"))) for path in sorted(_FOLDER.glob("*.json"))]


def _keep(run: Run, number: int) -> None:
    _FOLDER.mkdir(parents=True, exist_ok=True)
    path = _FOLDER / f"{number:03}.json"
    complete = path.with_suffix(".part")
    complete.write_text(json.dumps(asdict(run)), "utf-8")
    complete.replace(path)


def _commit() -> str:
    shown_text = ["git", "describe", "--always", "--dirty", "--abbrev=40"]
    return subprocess.run(shown_text, capture_output=True, text=True, check=True).stdout.strip()


def _found(seed: int, workers: int, more: list[str]) -> dict[str, str]:
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
        command += ["--random-order", "--random-order-bucket=global"]
        command += [f"--random-order-seed={seed}", "--numprocesses", str(workers)]
        ended = subprocess.run([*command, f"--junit-xml={report}", *more], check=False)
        if not report.is_file():  # an argument that pytest does not know, say
            message = f"pytest ended with {ended.returncode} before it wrote what it found"
            raise H3SimError(message)
        return outcomes(report.read_text("utf-8"))


def _run(number: int, commit: str, first: dict[str, str] | None, more: list[str]) -> Run:
    """Run the suite, compared with what the *first* run found."""
    seed, workers = random.SystemRandom().randrange(2**31), _WORKERS[number % len(_WORKERS)]
    print(f"seed {seed}, {workers} workers, {commit}", flush=True)
    found = _found(seed, workers, more)
    lines = [f"{name}: {what}" for name, what in found.items() if what in _FAILED]
    lines += differences(first or found, found)
    return Run(commit, seed, workers, found, lines)


def _count(arguments: list[str]) -> int:
    """Return how many runs are asked for.

    Raises:
        InputError: if that is no number of runs.
    """
    if not arguments:
        return 20
    if not arguments[0].isdecimal() or not int(arguments[0]):
        message = f"must be a number of runs, from 1 on, is {arguments[0]!r}"
        raise InputError([ValidationIssue(key="RUNS", message=message)])
    return int(arguments[0])


def main(arguments: list[str]) -> int:
    """Run the suite so many times; return 1 if a test failed or came out in two ways, else 0.

    Raises:
        H3SimError: if it cannot be run as asked.
    """
    if "--write" in arguments:
        put(_WRITTEN_BY, table(_kept()))
        return 0
    count, more = _count(arguments), arguments[1:]
    with needing_extra("pytest-random-order", "dev"):
        importlib.import_module("random_order")  # pytest takes it up by itself
    # A part of the suite says nothing about the whole: only whole runs are kept.
    runs = [] if more else _kept()
    commit, is_bad = _commit(), False
    for _ in range(count):
        first = next((run.found for run in runs if run.commit == commit), None)
        run = _run(len(runs), commit, first, more)
        if not more:
            _keep(run, len(runs))
        runs.append(run)
        is_bad = is_bad or bool(run.otherwise)
        shown_text = f"run {len(runs)}: {len(run.found):,} tests, as in the first run"
        print("\n".join(run.otherwise) or shown_text, flush=True)
    return int(is_bad)


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except H3SimError as error:
        sys.exit(f"tests.orders: {error}")
