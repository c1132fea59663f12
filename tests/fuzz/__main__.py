"""`python -m tests.fuzz [SECONDS] [READER...] [--table|--write]`: break inputs until time is over.

Each reader has its turn, in a process of its own; how many inputs it was given, in how many seconds
and at which commits is added to what stands in `build/fuzz`, and so are the inputs that reached
something new; so a million may come in pieces. `--table` prints what was read so far, `--write`
puts it into its generated page. An input that is not refused in whole lines, that takes longer than
10 s or more than 1 GiB is shown; the exit code is then 1. It belongs into `tests/fuzz/once_failed`,
and what it led to is mended.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from tests.fuzz import structured
from tests.fuzz.one import HANG_SECONDS
from tests.fuzz.readers import READERS
from tools.documented import put

FOLDER = Path("build/fuzz")
_COUNTS = FOLDER / "counts.json"
_START_SECONDS = 600.0
"""What a busy machine may take to start and end a process."""
_SAID = {
    "inputs": (r"^read (\d+)$", r"^stat::number_of_executed_units: +(\d+)$"),
    "slowest_s": (r"^slowest (\d+)$", r"^stat::slowest_unit_time_sec: +(\d+)$"),
    "peak_mib": (r"^peak (\d+)$", r"^stat::peak_rss_mb: +(\d+)$"),
}
"""How a process says what it did: blindly, or under libFuzzer."""


def _counts() -> dict[str, dict[str, Any]]:
    kept: dict[str, dict[str, Any]] = {}
    if _COUNTS.exists():
        kept = json.loads(_COUNTS.read_text("utf-8"))
    return kept


def _message(text: str, key: str) -> int:
    found = [int(n) for pattern in _SAID[key] for n in re.findall(pattern, text, re.MULTILINE)]
    return found[-1] if found else 0


def _read(name: str, seconds: float, seed: int) -> dict[str, Any]:
    """Give one reader its turn; return what its process says, "failed" if it found something."""
    command = [sys.executable, "-m", "tests.fuzz.one", name, str(seconds), str(FOLDER), str(seed)]
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
        timeout=seconds + _START_SECONDS,
    )
    message = done.stdout + done.stderr
    reported: dict[str, Any] = {key: _message(message, key) for key in _SAID}
    if done.returncode:
        lines = [line for line in message.splitlines() if not line.startswith("#")]
        reported["failed"] = "\n".join(lines[-40:])
    return reported


def _draw(name: str, seconds: float, seed: int) -> dict[str, Any]:
    """Give one target of Hypothesis its turn."""
    try:
        done, _ = structured.fuzz(name, seconds, seed)
    except Exception as error:  # noqa: BLE001 - whatever it is, it is what was looked for
        notes = "\n".join(getattr(error, "__notes__", ()))
        return {"failed": f"seed {seed}: {type(error).__name__}: {error}\n{notes}"}
    return {"inputs": done}


def table(counts: dict[str, dict[str, Any]]) -> str:
    """Return how many inputs each reader was given, as Markdown.

    >>> found = {"inputs": 1200, "seconds": 9.2, "peak_mib": 61, "commits": ["c0ffee"]}
    >>> print(table({"page": found}))
    | reader | inputs | seconds | slowest | memory | failed |
    |---|--:|--:|--:|--:|--:|
    | page | 1,200 | 9 | under 1 s | 61 MiB | 0 |
    | all | 1,200 | 9 | | | 0 |
    <BLANKLINE>
    Read by the code of c0ffee.
    """
    lines = [
        "| reader | inputs | seconds | slowest | memory | failed |",
        "|---|--:|--:|--:|--:|--:|",
    ]
    for name, found in counts.items():
        slowest = f"{found['slowest_s']} s" if found.get("slowest_s") else "under 1 s"
        memory = f"{found['peak_mib']} MiB" if found.get("peak_mib") else ""
        numbers = (f"{found['inputs']:,}", f"{found['seconds']:,.0f}")
        cells = (name, *numbers, slowest, memory, str(found.get("failed", 0)))
        lines.append(f"| {' | '.join(cells)} |".replace("  ", " "))
    total, seconds, failed = (
        sum(found.get(key, 0) for found in counts.values())
        for key in ("inputs", "seconds", "failed")
    )
    lines.append(f"| all | {total:,} | {seconds:,.0f} | | | {failed} |")
    commits = dict.fromkeys(each for found in counts.values() for each in found["commits"])
    return "\n".join([*lines, "", f"Read by the code of {', '.join(commits)}."])


def _commit() -> str:
    """Return the checkout's commit, with a mark if something in it was changed."""
    command = ["git", "describe", "--always", "--dirty", "--exclude=*"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stdout.strip() or "an unknown commit"


def main(arguments: list[str]) -> int:
    """Give every reader its share of the seconds."""
    if "--table" in arguments or "--write" in arguments:
        print(table(_counts()))
        if "--write" in arguments:
            put("python -m tests.fuzz --write", table(_counts()))
        return 0
    seconds = float(arguments[0]) if arguments else 60.0
    names = arguments[1:] or [*READERS, *structured.TARGETS]
    FOLDER.mkdir(parents=True, exist_ok=True)
    counts, failed, commit = _counts(), False, _commit()
    share = seconds / len(names)
    for name in names:
        kept = counts.setdefault(name, {"inputs": 0, "turns": 0, "seconds": 0.0, "commits": []})
        began = time.monotonic()
        found = (_read if name in READERS else _draw)(name, share, kept["turns"] + 1)
        if "failed" in found:
            failed = True
            print(f"{name}: failed; the input lies in {FOLDER}\n{found['failed']}\n", flush=True)
        kept["inputs"] += found.get("inputs", 0)
        kept["failed"] = kept.get("failed", 0) + ("failed" in found)
        kept["turns"] += 1
        kept["seconds"] += time.monotonic() - began
        kept["commits"] = list(dict.fromkeys([*kept["commits"], commit]))
        for key in ("slowest_s", "peak_mib"):
            kept[key] = max(kept.get(key, 0), found.get(key, 0))
        _COUNTS.write_text(json.dumps(counts), "utf-8")
        print(f"{name}: {found.get('inputs', 0):,} in {time.monotonic() - began:.0f} s", flush=True)
    print(table(counts))
    if not failed:
        print(f"none failed, took longer than {HANG_SECONDS} s or more than 1 GiB")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
