"""`python -m benchmarks.parsers`: the parsers of `h3sim.importers` beside those of libraries.

It needs `pip install ijson cssselect2 html5lib`, which nothing else here does. Each pair reads the
same made-up input in turns, in one process; the table has the least time of each as a ratio.
"""

from __future__ import annotations

import gc
import io
import json
import sys
import time
from html.parser import HTMLParser
from importlib import import_module
from typing import TYPE_CHECKING, Any

from tabulate import tabulate

from benchmarks.options import parser_of
from h3sim.importers.css import StyledDocument
from h3sim.importers.html import read_markup, scan
from h3sim.importers.source import JsonCursor, parts

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_N_ENTRIES = 5000
_N_PARAGRAPHS = 2000
_ROUNDS = 5
_SELECTORS = [
    *(f".c{number} a:not([href^='#']) > b" for number in range(100)),
    *(f"p.c{number}, div#d{number} > i:first-child" for number in range(100)),
]


def _har() -> str:
    entry = {
        "startedDateTime": "2026-01-01T00:00:00.000Z",
        "time": 50.5,
        "request": {"method": "GET", "url": "https://large.example/", "headers": []},
        "response": {"status": 200, "content": {"size": 900, "text": "y" * 400}, "bodySize": 300},
        "timings": {"blocked": -1, "send": 0, "wait": 40, "receive": 10.5},
    }
    return json.dumps({"log": {"version": "1.2", "entries": [entry] * _N_ENTRIES}})


def _html() -> bytes:
    paragraphs = "".join(
        f'<p class="c{number % 150}"><a href="/{number}"><b>b</b></a><img src="{number}.png"></p>'
        for number in range(_N_PARAGRAPHS)
    )
    return f"<!doctype html><html><head></head><body>{paragraphs}</body></html>".encode()


def _json_readers(text: str) -> dict[str, Callable[[], object]]:
    ijson: Any = import_module("ijson")
    raw = text.encode()

    def by_ijson(backend: str) -> Callable[[], object]:
        items = ijson.get_backend(backend).items
        return lambda: sum(1 for _ in items(io.BytesIO(raw), "log.entries.item"))

    return {
        "JsonCursor": lambda: sum(
            1 for _ in parts(JsonCursor(io.StringIO(text).read), lambda *_: None)
        ),
        "ijson, in C (yajl)": by_ijson("yajl2_c"),
        "ijson, in Python": by_ijson("python"),
        "json.loads, whole": lambda: json.loads(text),
    }


class _Tags(HTMLParser):
    """Takes the place of every tag, as the offsets of requests need it."""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:  # noqa: ARG002
        self.getpos()


def _html_readers(data: bytes) -> dict[str, Callable[[], object]]:
    from selectolax.lexbor import LexborHTMLParser

    return {
        "scan, read_markup": lambda: read_markup(scan(data)),
        "html.parser": lambda: _Tags().feed(data.decode()),
        "selectolax (no offsets)": lambda: LexborHTMLParser(data).css("[src], link"),
    }


def _selector_readers(data: bytes) -> dict[str, Callable[[], object]]:
    cssselect2: Any = import_module("cssselect2")
    html5lib: Any = import_module("html5lib")

    def by_selectolax() -> object:
        document = StyledDocument(data, scan(data))
        return [document.applies(selector) for selector in _SELECTORS]

    def by_cssselect2() -> object:
        tree: Any = html5lib.parse(data.decode(), namespaceHTMLElements=False)
        elements = list(cssselect2.ElementWrapper.from_html_root(tree).iter_subtree())
        compiled = [cssselect2.compile_selector_list(selector) for selector in _SELECTORS]
        return [any(one.test(e) for one in each for e in elements) for each in compiled]

    return {"Document (selectolax)": by_selectolax, "cssselect2, html5lib": by_cssselect2}


def _ratios(readers: Mapping[str, Callable[[], object]]) -> list[tuple[str, str]]:
    least = dict.fromkeys(readers, float("inf"))
    for _ in range(_ROUNDS):
        for name, read in readers.items():
            gc.collect()
            started = time.process_time()
            read()
            least[name] = min(least[name], time.process_time() - started)
    ours = least[next(iter(readers))]
    return [(name, f"{took / ours:.2f}") for name, took in least.items()]


def main() -> int:
    """Print the table."""
    parser_of(__doc__).parse_args()
    html = _html()
    try:
        groups = (_json_readers(_har()), _html_readers(html), _selector_readers(html))
    except ImportError as error:
        print(f"{error}: pip install ijson cssselect2 html5lib", file=sys.stderr)
        return 1
    rows = [row for readers in groups for row in _ratios(readers)]
    print(tabulate(rows, ("reader", "time"), "simple", colalign=("left", "right")))
    return 0


if __name__ == "__main__":
    sys.exit(main())
