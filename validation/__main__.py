"""`make validate`: prints the tables of the pages that docs/validation.md lists, page by page.

Without `--all` those that need no server, no browser and no toolchain, and take half an hour of
two cores together. Words pick pages or commands that contain one of them.
"""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

from h3sim.cli.command import BAD_INPUT, FAILED, Parser

__all__ = ["LONG", "PAGE", "SHORT", "commands", "main"]

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "validation.md"

SHORT = {
    "The send buffer": ("validation.send_buffer",),
    "Reordering": ("validation.reordering",),
    "Congestion controllers": ("validation.controllers",),
    "Table 2": ("h3sim reproduce marx-2019-table-2",),
    "Resolution of tables": ("validation.shown_order",),
    "Real stacks": ("validation.stacks",),
    "Pages of the web": ("validation.vgprio", "validation.web_loads"),
    "Cases": ("validation.cases",),
    "The shipped pages": ("validation.hosts", "validation.synthetic", "validation.pages"),
    "Recordings": ("validation.marks",),
    "Schedulers behind logs": ("validation.identified",),
    "Header compression": ("validation.headers",),
    "The cost of header blocking for a page": ("validation.header_blocking",),
}
"""By title of the page, the modules that print its other tables: a minute or some each."""
LONG = {
    "Congestion controllers": ("validation.controller_drivers",),
    "HTTP/2's windows": ("validation.http2_windows",),
    "Real stacks": ("validation.stacks --mechanisms",),
    "Trees of real servers": ("validation.trees", "validation.http2_writes"),
    "Sander 2022": ("validation.sander",),
    "Recordings": ("validation.recordings",),
    "Replays of recordings": ("validation.recorded_hars",),
    "Schedulers behind logs": ("validation.identified_servers",),
    "Drivers in other languages": ("validation.scheduler_drivers",),
    "Schedulers of deployed servers": (
        *("validation.server_drivers", "validation.go_handlers", "validation.server_orders"),
        "validation.live_servers",
    ),
    "Mutants": ("tools.mutation",),
    "Faulty loads": ("tests.checking 10000",),
    "Broken inputs": ("tests.fuzz 60",),
    "Flipped bits": ("tests.flipping 5000",),
    "Any order": ("tests.orders 20",),
    "Speed": ("benchmarks.ratios",),
}
"""What takes longer, or needs servers, a browser or toolchains, and says so if it lacks them."""


class Command(NamedTuple):
    """What is run, by Python, and the page that has its table."""

    section: str
    words: tuple[str, ...]

    def __str__(self) -> str:
        if self.words[0] == "-c":
            return f"python (the example of {self.section})"
        return shlex.join(("python", *self.words))


def commands(*, is_all: bool) -> list[Command]:
    """Return what is run, in the order of the index: what a page shows first, then others."""
    found = []
    for link in re.findall(r"^- \[.*\]\((generated/.*\.md)\)", PAGE.read_text("utf-8"), re.M):
        title, _, text = (PAGE.parent / link).read_text("utf-8")[2:].partition("\n")
        blocks = re.findall(r"^```console\n(.*?)^```$", text, re.M | re.S)
        shown = [line[2:] for block in blocks for line in block.split("\n") if line[:2] == "$ "]
        modules = (*SHORT.get(title, ()), *(LONG.get(title, ()) if is_all else ()))
        lines = [re.sub(r"^h3sim ", "-m h3sim ", line).removeprefix("python ") for line in shown]
        lines += [f"-m {module}" for module in modules]
        programs = re.findall(r"^```python\n((?!>>>).*?)^```$", text, re.M | re.S)
        found += [Command(title, ("-c", program)) for program in programs]
        found += [Command(title, tuple(shlex.split(line))) for line in lines]
    return found


def main() -> int:
    """Run the commands one after the other; return 1 if one fails."""
    parser = Parser(prog="python -m validation", description=__doc__)
    parser.add_argument("--all", action="store_true", help="also what takes long or needs servers")
    parser.add_argument("words", nargs="*", metavar="WORD", help="parts of titles or commands")
    options = parser.parse_args()
    expected = [
        command
        for command in commands(is_all=options.all)
        if not options.words
        or any(word.lower() in f"{command.section} {command}".lower() for word in options.words)
    ]
    if not expected:
        print(f"python -m validation: nothing is named {' or '.join(options.words)}")
        return BAD_INPUT
    failed = []
    section = ""
    for command in expected:
        if command.section != section:
            section = command.section
            print(f"\n## {section}", flush=True)
        print(f"\n$ {command}", flush=True)
        started = time.monotonic()
        words = (sys.executable, *command.words)
        if subprocess.run(words, cwd=ROOT, check=False).returncode:  # noqa: S603
            failed.append(command)
        print(f"({time.monotonic() - started:.0f} s)", flush=True)
    print(f"\n{len(expected)} commands, {len(failed)} failed")
    for command in failed:
        print(f"failed: {command}", file=sys.stderr)
    return FAILED if failed else 0


if __name__ == "__main__":
    sys.exit(main())
