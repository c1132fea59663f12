"""`python -m benchmarks.importing`: what it takes to import large files, memory first.

Three files are made up and imported, each in a process of its own: a HAR of 200 MB with the bodies
in it, the same as one line of HTML text in other than Latin letters, and a document of 50 MB with
hundreds of thousands of tags.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from tabulate import tabulate

from benchmarks.options import parser_of

if TYPE_CHECKING:
    from collections.abc import Iterable

_HAR_BYTES = 200 * 10**6
_HTML_BYTES = 50 * 10**6
_BODY_CHARACTERS = 100_000
_IMPORT = """
import resource, sys, time
import h3sim
page = h3sim.import_page(sys.argv[1]).page
used = resource.getrusage(resource.RUSAGE_SELF)
print(len(page.resources), used.ru_maxrss // 1000, used.ru_utime + used.ru_stime)
"""


def _entry(number: int, body: str) -> str:
    document = {
        "startedDateTime": f"2026-01-01T00:{number // 60 % 60:02}:{number % 60:02}Z",
        "time": 50,
        "request": {"method": "GET", "url": f"https://large.example/{number}", "headers": []},
        "response": {
            "status": 200,
            "content": {"size": len(body), "mimeType": "text/html", "text": body},
            "bodySize": len(body) // 3,
        },
    }
    return json.dumps(document, ensure_ascii=False)


def _har(body: str) -> Iterable[str]:
    yield '{"log": {"version": "1.2", "entries": ['
    yield (entry := _entry(0, body))
    for number in range(1, _HAR_BYTES // len(entry.encode())):
        yield "," + _entry(number, body)
    yield "]}}"


def _html() -> Iterable[str]:
    yield "<!doctype html><html><head></head><body>"
    item = '<div class="x"><p>text text text text <img src="a.png"></p></div>'
    for _ in range(_HTML_BYTES // (1000 * len(item))):
        yield item * 1000


def main() -> None:
    """Make the files, import them, and print what that took."""
    parser_of(__doc__).parse_args()
    latin = '<p class="a">text\n</p><img src="a.png">\n' * (_BODY_CHARACTERS // 40)
    other = "<p>\u0442\u0435\u043a\u0441\u0442 \U0001f600</p>\n" * (_BODY_CHARACTERS // 16)
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for name, pieces in (
            ("latin.har", _har(latin)),
            ("other.har", _har(other)),
            ("large.html", _html()),
        ):
            path = Path(folder) / name
            with path.open("w", encoding="utf-8") as file:
                file.writelines(pieces)
            done = subprocess.run(
                [sys.executable, "-c", _IMPORT, str(path)],
                capture_output=True,
                text=True,
                check=True,
            )
            n_resources, peak_mb, seconds = done.stdout.split()
            size = f"{path.stat().st_size / 1e6:.0f}"
            rows.append((name, size, n_resources, peak_mb, f"{float(seconds):.1f}"))
            path.unlink()
    print(tabulate(rows, ("file", "MB", "resources", "peak MB", "CPU s"), "simple"))


if __name__ == "__main__":
    main()
