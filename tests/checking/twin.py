"""Loads in another process, whose hashes have another seed, what the first one loads.

`python -m tests.checking.twin` answers each seed on a line with the digest of the load's trace.
"""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

from h3sim.values.errors import StalledError
from tests.checking.drawing import digest_of, drawn, ended

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["GIVEN_UP", "Twin", "twin"]

GIVEN_UP = "given up"


class Twin:
    """A process that loads the same; `ask` before the own load, so that both run at once."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def ask(self, seed: int) -> None:
        """Have it load *seed*."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{seed}\n")
        self._process.stdin.flush()

    def answer(self) -> str:
        """Return the digest of the load that was asked for, `GIVEN_UP` or that it stalls."""
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()


@contextmanager
def twin() -> Iterator[Twin]:
    """Start a twin, and end it."""
    other = "2" if os.environ.get("PYTHONHASHSEED") == "1" else "1"
    with subprocess.Popen(
        [sys.executable, "-m", "tests.checking.twin"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONHASHSEED": other},
    ) as process:
        try:
            yield Twin(process)
        finally:
            process.kill()


def _answer_all() -> None:
    for line in sys.stdin:
        try:
            load = ended(drawn(int(line)))
        except StalledError:
            print("stalls", flush=True)
        else:
            print(GIVEN_UP if load is None else digest_of(load), flush=True)


if __name__ == "__main__":
    _answer_all()
