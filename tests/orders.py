"""`python -m tests.orders [RUNS] [PYTEST ARGUMENTS]`: the suite in random orders.

Each run has an order by a seed of its own and one to four workers. All must find the same of each
test: what does not is named, with the seed that brings the order back. Needs `pytest-random-order`.
"""

from __future__ import annotations

import random
import subprocess
import sys
import tempfile
from pathlib import Path
from xml.etree import ElementTree

__all__ = ["differences", "outcomes"]

_WORKERS = (1, 2, 3, 4)


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


def _run(seed: int, workers: int, more: list[str]) -> dict[str, str]:
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
        command += ["--random-order", "--random-order-bucket=global"]
        command += [f"--random-order-seed={seed}", "--numprocesses", str(workers)]
        subprocess.run([*command, f"--junit-xml={report}", *more], check=False)
        return outcomes(report.read_text("utf-8"))


def main(arguments: list[str]) -> int:
    """Run the suite so many times, and compare each run with the first."""
    runs = int(arguments[0]) if arguments else 20
    seeds = random.SystemRandom()
    first: dict[str, str] | None = None
    found = 0
    for number in range(runs):
        seed, workers = seeds.randrange(2**31), _WORKERS[number % len(_WORKERS)]
        print(f"run {number + 1} of {runs}: seed {seed}, {workers} workers", flush=True)
        outcome = _run(seed, workers, arguments[1:])
        first = outcome if first is None else first
        lines = differences(first, outcome)
        lines += [
            f"{name}: {what}" for name, what in outcome.items() if what in ("failure", "error")
        ]
        found += len(lines)
        print("\n".join(lines) or f"{len(outcome):,} tests, as in the first run", flush=True)
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
