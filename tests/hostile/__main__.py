"""`python -m tests.hostile [READER...]`: read every hostile file of 1 MB; `--write` the table.

Each file is read by a process of its own, within 500 MB of memory and 10 s of the processor. Files
that break a limit, or end in an error that is not one of h3sim's, are listed; a table is kept below
`build/`, and `--write` puts it into the documentation.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.hostile.files import FILES
from tools.documented import put

FILE_BYTES = 10**6
COMMAND = "python -m tests.hostile --write"
_FOUND = Path("build/hostile.json")


def _read(reader: str) -> dict[str, dict[str, Any]]:
    """Return by name what reading each file took, "failed" if it broke a limit."""
    command = [sys.executable, "-m", "tests.hostile.one", str(FILE_BYTES), "1", reader]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, errors="replace", check=False)
    found: dict[str, dict[str, Any]] = {}
    for line in done.stdout.splitlines():
        took, more, name = line.replace(f"{reader}: ", "", 1).split(maxsplit=2)
        if took == "failed":
            print(f"{reader}: {name}: exit code {more}", flush=True)
            found[name] = {"failed": more}
        else:
            found[name] = {"took_s": float(took), "peak_mb": int(more)}
    for name in FILES[reader].keys() - found.keys():
        print(f"{reader}: {name}: was not read", flush=True)
        found[name] = {"failed": "was not read"}
    return found


def table(found: dict[str, dict[str, dict[str, Any]]]) -> str:
    """Return the most that files of each format took, as Markdown.

    >>> print(table({"page": {"deep": {"took_s": 0.53, "peak_mb": 61}, "wide": {"failed": "x"}}}))
    | reader | files | slowest | most memory | beyond a limit |
    |---|--:|--:|--:|--:|
    | page | 2 | 0.5 s | 61 MB | 1 |
    | all | 2 | 0.5 s | 61 MB | 1 |
    """
    lines = [
        "| reader | files | slowest | most memory | beyond a limit |",
        "|---|--:|--:|--:|--:|",
    ]
    every = {(reader, name): each for reader, of in found.items() for name, each in of.items()}
    titled: list[tuple[str, dict[Any, dict[str, Any]]]] = [*found.items(), ("all", every)]
    for title, of in titled:
        took_s = max((each.get("took_s", 0.0) for each in of.values()), default=0.0)
        peak_mb = max((each.get("peak_mb", 0) for each in of.values()), default=0)
        n_failed = sum("failed" in each for each in of.values())
        lines.append(f"| {title} | {len(of)} | {took_s:.1f} s | {peak_mb} MB | {n_failed} |")
    return "\n".join(lines)


def main(arguments: list[str]) -> int:
    """Read the files of the readers that are named, or of all."""
    found: dict[str, dict[str, dict[str, Any]]] = {}
    if _FOUND.exists():
        found = json.loads(_FOUND.read_text("utf-8"))
    if "--write" in arguments:
        put(COMMAND, table(found))
        return 0
    _FOUND.parent.mkdir(exist_ok=True)
    for reader in arguments or FILES:
        found[reader] = _read(reader)
        _FOUND.write_text(json.dumps(found, indent=1), "utf-8")
    print(table(found))
    return int(any("failed" in each for of in found.values() for each in of.values()))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
