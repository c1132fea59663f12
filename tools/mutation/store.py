"""What became of each mutant, kept line by line, so that a run goes on where another ended."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from tools.mutation.operators import Mutant

__all__ = ["KILLED", "SURVIVED", "TIMED_OUT", "UNREACHED", "Equivalents", "Result", "Store"]

SURVIVED, UNREACHED, TIMED_OUT, KILLED = "survived", "unreached", "timed out", "killed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What the tests said of a mutant: *test* is the first that failed; *seconds* were spent."""

    key: str
    text: str
    outcome: str
    test: str
    seconds: float
    shown: str

    @property
    def is_noticed(self) -> bool:
        """Whether a test failed, or did not end any more."""
        return self.outcome in (KILLED, TIMED_OUT)


class Store:
    """Results in a file of JSON lines; the last one about a mutant counts."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._results: dict[str, Result] = {}
        if path.exists():
            for line in path.read_text("utf-8").splitlines():
                result = Result(**json.loads(line))
                self._results[result.key] = result

    def of(self, mutant: Mutant) -> Result | None:
        """Return what is known, None of a mutant whose function has changed since."""
        result = self._results.get(mutant.key)
        return result if result is not None and result.text == mutant.text else None

    def add(self, result: Result) -> None:
        """Keep one more."""
        self._results[result.key] = result
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(asdict(result)) + "\n")


class Equivalents:
    """Mutants that no test can notice, each with the reason, from `equivalents.txt`."""

    def __init__(self, path: Path) -> None:
        self.reasons: dict[tuple[str, str, str], str] = {}
        reported: list[str] = []
        for line in path.read_text("utf-8").splitlines() if path.exists() else ():
            if line.startswith("#"):
                continue
            if not line.strip():
                reported = []
            elif line.startswith("  "):
                file, function, change = (part.strip() for part in line.split("|", 2))
                self.reasons[file, function, change] = " ".join(reported)
            else:
                reported = [*reported, line.strip()]

    def reason(self, mutant: Mutant) -> str | None:
        """Return why this one changes nothing, None if nobody says so."""
        return self.reasons.get((mutant.file, mutant.function, change_of(mutant)))


def change_of(mutant: Mutant) -> str:
    """Return the change as a line of the list names it; of several lines the first.

    Where a function has the same change in several lines, they are told apart by their number.
    """
    before, after = (text.splitlines()[0] for text in (mutant.before, mutant.after))
    number = f" ({mutant.occurrence + 1})" if mutant.occurrence else ""
    return f"{before} -> {after}{number}"
