"""`python -m benchmarks.guard`: what twelve loads cost, counted without a clock, beside a record.

Pure Python: the instructions that the interpreter executes. With `--compiled`, of the build that
`make test-compiled` leaves: those of the processor, which valgrind counts. Both are the same in
each run on one version of Python, on a machine that is as busy as it likes. A load that costs 5 %
more than `benchmarks/guard.json` says fails; `--write` records what is found. Where nothing is
recorded for a Python or a build, nothing is compared.
"""

from __future__ import annotations

import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tabulate import tabulate

import h3sim
from benchmarks.options import parser_of

if TYPE_CHECKING:
    from types import FrameType

__all__ = ["ALLOWED", "LOADS", "compared", "counted", "main"]

RECORD = Path(__file__).with_suffix(".json")
_ROOT = Path(__file__).resolve().parents[1]
_COMPILED = _ROOT / "build" / "compiled" / ".venv" / "bin" / "python"
ALLOWED = 1.05
"""How much more than recorded a load may cost."""
_LOSSY = {"network": "sander-2mbps-100ms-2pct", "scheme": "rr"}
LOADS: dict[str, dict[str, Any]] = {
    "constant rate, rr": {"scheme": "rr"},
    "constant rate, fifo": {"scheme": "fifo"},
    "constant rate, bucket-html": {"scheme": "bucket-html"},
    "constant rate, firefox-h2": {"scheme": "firefox-h2"},
    "constant rate, TCP, reordered": {"scheme": "rr", "transport": "tcp", "reorder": "4:1-3"},
    "QUIC, CUBIC, 2 % loss": _LOSSY,
    "TCP, CUBIC, 2 % loss": _LOSSY | {"transport": "tcp"},
    "QUIC, BBR, 2 % loss": _LOSSY | {"cc": "bbr"},
    "TCP, BBR, 2 % loss": _LOSSY | {"transport": "tcp", "cc": "bbr"},
    "QUIC, quiche-chrome, 4g": {
        "network": "4g",
        "scheme": "chrome-eps",
        "transport_profile": "quiche-chrome",
    },
    "QUIC, QPACK, cable": {"network": "cable", "header_compression": "qpack"},
    "QUIC, a browser that renders, cable": {"network": "cable", "scheme": "chrome-eps"},
}
_PAGE = "davies-meenan"
_PAGES = {
    "QUIC, QPACK, cable": "material-dashboard",
    "QUIC, a browser that renders, cable": "agency",
}


def run_load(name: str) -> None:
    """Do one of the loads."""
    h3sim.simulate(_PAGES.get(name, _PAGE), **LOADS[name])


def counted(name: str) -> int:
    """Return how many instructions of bytecode a load executes; the second time, as studies do."""
    run_load(name)
    n_steps = 0

    def trace(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal n_steps
        del argument
        if event == "call":
            frame.f_trace_opcodes, frame.f_trace_lines = True, False
        elif event == "opcode":
            n_steps += 1
        return trace

    sys.settrace(trace)
    try:
        run_load(name)
    finally:
        sys.settrace(None)
    return n_steps


def _by_valgrind(name: str) -> int:
    """Return how many instructions the processor executes for a load, without the start."""
    return _instructions(name, 2) - _instructions(name, 1)


def _instructions(name: str, times: int) -> int:
    code = (
        "import sys\n"
        "from h3sim.values.versions import build\n"
        "assert build() == 'compiled'\n"
        f"sys.path.append({str(_ROOT)!r})\n"
        "from benchmarks.guard import run_load\n"
        f"for _ in range({times}): run_load({name!r})"
    )
    with tempfile.TemporaryDirectory() as folder:
        valgrind = ("valgrind", "--tool=cachegrind", "--cache-sim=no")
        output = f"--cachegrind-out-file={folder}/out"
        done = subprocess.run(
            (*valgrind, output, _COMPILED, "-P", "-c", code),
            capture_output=True,
            text=True,
            check=True,
            env=os.environ | {"PYTHONHASHSEED": "0"},
        )
    return int(re.findall(r"I\s+refs:\s+([\d,]+)", done.stderr)[-1].replace(",", ""))


def _key(*, is_compiled: bool) -> str:
    python = f"Python {sys.version_info.major}.{sys.version_info.minor}"
    return f"{python}, {f'{platform.machine()}, compiled' if is_compiled else 'bytecode'}"


def _why_not() -> str:
    """Return why the compiled build cannot be looked at, nothing where it can."""
    if shutil.which("valgrind") is None:
        return "valgrind, which counts for it, is missing"
    return "" if _COMPILED.exists() else "make test-compiled builds it"


def compared(found: dict[str, int], recorded: dict[str, int]) -> tuple[str, list[str]]:
    """Return a table of what was found beside what is recorded, and the loads that cost too much.

    >>> table, failed = compared({"a": 105, "b": 106}, {"a": 100, "b": 100})
    >>> failed
    ['b']
    """
    failed = [name for name, n in found.items() if n > ALLOWED * recorded.get(name, n)]
    rows = [
        (name, f"{n:,}", f"{recorded[name]:,}", f"{100 * (n / recorded[name] - 1):+.1f}")
        if name in recorded
        else (name, f"{n:,}", "-", "")
        for name, n in found.items()
    ]
    heads = ("load", "instructions", "recorded", "%")
    align = ("left", "right", "right", "right")
    return tabulate(rows, heads, disable_numparse=True, colalign=align), failed


def main() -> int:
    """Count, print and compare; return 1 if a load costs too much."""
    parser = parser_of(__doc__)
    parser.add_argument("--write", action="store_true", help="record what is found")
    parser.add_argument("--compiled", action="store_true", help="look at the compiled build")
    options = parser.parse_args()
    if options.compiled and _why_not():
        print(f"guard-speed: the compiled build is skipped: {_why_not()}")
        return 0
    count, key = _by_valgrind if options.compiled else counted, _key(is_compiled=options.compiled)
    found = {name: count(name) for name in LOADS}
    record = json.loads(RECORD.read_text("utf-8")) if RECORD.is_file() else {}
    table, failed = compared(found, record.get(key, {}))
    print(f"{key}\n\n{table}")
    if options.write:
        text = json.dumps(record | {key: found}, indent=1, sort_keys=True)
        RECORD.write_text(f"{text}\n", "utf-8")
        return 0
    if key not in record:
        print("\nnothing is recorded for this Python and build: ARGS=--write records it")
    for name in failed:
        print(f"guard-speed: {name}: more than {ALLOWED} times what is recorded", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
