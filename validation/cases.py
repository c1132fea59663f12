"""Commands that were once answered wrongly, and what is right: `python -m validation.cases`.

Each `NAME.toml` in `validation/data/cases` has a command, the fault of its earlier answer, and what
is right: an exit code, and what the output must and must not show. Words pick cases by their names.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from h3sim.values.table import Table
from h3sim.values.text import plural

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["CASES", "Case", "differences", "main", "read_cases"]

CASES = Path(__file__).parent / "data" / "cases"
_LIMIT_S = 300
"""No case takes a second; one that hangs is reported as such."""
_COLUMNS = 500
"""Width of the terminal: so wide that long paths do not wrap what a case expects."""
_MAX_SHOWN_CHARS = 300
_TABLE_CELLS = 140
"""Width of the table where nobody says."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A command, the fault of its earlier answer, and what is right.

    In *command*, the arguments of h3sim, `{case}` is the folder of the cases and `{tmp}` an empty
    one, in which the command runs. Patterns are regular expressions, in which `^` and `$` match at
    lines; each of *shows* must match what is printed, output and errors together, and each of
    *lacks* must not.

    Raises:
        ValueError: listing what is wrong with the values.
    """

    name: str
    command: list[str]
    fault: str
    exit_code: int = 0
    shows: tuple[str, ...] = ()
    lacks: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        problems = list(self._problems())
        if problems:
            raise ValueError("\n".join(f"{self.name}.toml: {problem}" for problem in problems))

    def _problems(self) -> Iterator[str]:
        """Yield what is wrong with the values."""
        values: dict[str, Any] = {each.name: getattr(self, each.name) for each in fields(self)}
        for key in ("command", "shows", "lacks"):
            texts = values[key]
            if not isinstance(texts, list | tuple) or not all(isinstance(t, str) for t in texts):
                yield f"{key}: must be a list of texts, is {texts!r}"
                return
        if not self.command:
            yield "command: is empty"
        if not (isinstance(values["fault"], str) and self.fault):
            yield f"fault: must be a sentence, is {self.fault!r}"
        if not isinstance(values["exit_code"], int):
            yield f"exit_code: must be a whole number, is {self.exit_code!r}"
        for pattern in (*self.shows, *self.lacks):
            try:
                re.compile(pattern)
            except re.error as error:
                yield f"{pattern!r} is no regular expression: {error}"


def read_cases(folder: Path = CASES) -> list[Case]:
    """Return the cases of a folder, in the order of their names.

    Raises:
        ValueError: listing what is wrong, by file and key.
    """
    cases, problems = [], []
    known = [field.name for field in fields(Case) if field.name != "name"]
    for path in sorted(folder.glob("*.toml")):
        try:
            given = tomllib.loads(path.read_text("utf-8"))
        except tomllib.TOMLDecodeError as error:
            problems.append(f"{path.name}: {error}")
            continue
        if "format" in given:  # a network or another input of h3sim
            continue
        wrong = [f"{path.name}: {key}: unknown key" for key in given if key not in known]
        wrong += [f"{path.name}: {key}: is missing" for key in known[:2] if key not in given]
        if wrong:
            problems += wrong
            continue
        try:
            cases.append(Case(name=path.stem, **given))
        except ValueError as error:
            problems.append(str(error))
    if problems:
        raise ValueError("\n".join(problems))
    return cases


def differences(case: Case, folder: Path = CASES) -> list[str]:
    """Run a case in an empty folder, as from a shell; return what differs from what is right.

    `python` is the interpreter that runs this.
    """
    environment = {
        **os.environ,
        "COLUMNS": str(_COLUMNS),
        "PATH": os.pathsep.join((str(Path(sys.executable).parent), os.environ.get("PATH", ""))),
        "PYTHONIOENCODING": "utf-8",
        "PYTHONPATH": str(Path(__file__).resolve().parents[1]),
    }
    with tempfile.TemporaryDirectory() as empty:
        words = [
            word.replace("{case}", str(folder)).replace("{tmp}", empty) for word in case.command
        ]
        try:
            done = subprocess.run(  # noqa: S603 - h3sim, with the arguments of a case
                (sys.executable, "-m", "h3sim", *words),
                cwd=empty,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                timeout=_LIMIT_S,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return [f"has not ended after {_LIMIT_S} s"]
    printed = done.stdout.decode("utf-8", "backslashreplace")
    found = []
    if done.returncode != case.exit_code:
        found.append(f"exit code {done.returncode}, not {case.exit_code}: {_last_line(printed)}")
    found += [
        f"does not show {pattern!r}"
        for pattern in case.shows
        if not re.search(pattern, printed, re.MULTILINE)
    ]
    matches = (re.search(pattern, printed, re.MULTILINE) for pattern in case.lacks)
    return [*found, *(f"shows {match[0]!r}" for match in matches if match)]


def _last_line(printed: str) -> str:
    """Return the last line, escaped and shortened: it often has the error."""
    lines = printed.strip().splitlines() or ["no output"]
    return repr(lines[-1])[1:-1][:_MAX_SHOWN_CHARS]


def main(words: list[str]) -> int:
    """Run the cases and print a table; return 1 if one differs, 2 if one cannot be read."""
    try:
        cases = read_cases()
    except ValueError as error:
        print(error, file=sys.stderr)
        return 2
    cases = [each for each in cases if not words or any(word in each.name for word in words)]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        found = list(pool.map(differences, cases))
    rows = [
        (case.name, case.fault, "; ".join(differing) or "ok")
        for case, differing in zip(cases, found, strict=True)
    ]
    width = shutil.get_terminal_size((_TABLE_CELLS, 24)).columns
    print(Table(("case", "fault that it had", "now"), rows).to_text(width))
    n_wrong = sum(map(bool, found))
    print(f"\n{plural(len(cases), 'case')}, {n_wrong} wrong")
    return int(n_wrong > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
