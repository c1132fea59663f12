"""Writes docs/generated/qmux.md: `python -m tools.qmux` (minutes)."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import h3sim
from h3sim import catalog
from h3sim.values.table import Table

__all__ = ["SETTING", "main", "study", "table_of"]

PAGE = Path(__file__).parents[1] / "docs" / "generated" / "qmux.md"
SETTING: Final[dict[str, Any]] = {
    "schemes": "chrome-eps",
    "transport_profile": "quiche-chrome",
    "browser": "parse",
    "network": ["4g", "cable"],
    "loss": [0, 0.02],
    "transport": ["tcp", "quic", "qmux"],
    "seeds": 20,
}
_REQUEST_BYTES = 100
_METRICS = ("page_load_ms", "byte_index_atf_ms")
_TEXT = """# What QMux costs a page

{pages} pages (`corpus:medium`) over HTTP/2, HTTP/3 and HTTP/3 over QMux, with losses in both
directions and {seeds} seeds: how many times as long a load takes over QMux, the geometric mean,
and its studentized bootstrap interval over pages. Above 1 QMux is slower. Browser (`--browser
parse`), scheme (`chrome-eps`), profile (`quiche-chrome`) and the size of requests
({request_bytes} bytes) are the same for all. `make qmux` writes this page.

{table}
QMux has the handshake, the recovery and the single order of delivery of TCP, and the streams,
headers and windows of HTTP/3. Beside HTTP/2 it differs in headers, which wait for their turn,
and in a few bytes per record; what HTTP/3 gains by its handshake and its streams, it cannot gain.
The losses are the same for all pages, so the intervals do not cover the choice of seeds.
"""


def study(pages: list[Any], **changes: Any) -> Any:
    """Return the results of *pages* with requests of the same size over each transport."""
    loaded = [_with_equal_requests(page) for page in pages]
    return h3sim.sweep(loaded, **SETTING | changes)


def table_of(results: Any) -> Table[Any]:
    """Return how many times as long loads take over QMux, per setting."""
    rows: list[tuple[Any, ...]] = []
    found: dict[tuple[Any, ...], dict[str, str]] = {}
    for value in _METRICS:
        for row in results.compare("qmux", over="transport", value=value, by=["network", "loss"]):
            cell = f"{row.geometric:.3f} ({row.low:.3f} to {row.high:.3f})"
            found.setdefault((row.setting, row.level), {})[value] = cell
    for (setting, level), cells in sorted(found.items()):
        protocol = {"tcp": "HTTP/2", "quic": "HTTP/3"}[level]
        rows.append((protocol, setting, *(cells[value] for value in _METRICS)))
    headers = ["compared with", "setting", "page load", "ByteIndex above the fold"]
    return Table(headers, sorted(rows))


def _with_equal_requests(page: Any) -> Any:
    resources = [replace(each, request_bytes=_REQUEST_BYTES) for each in page.resources]
    return replace(page, resources=tuple(resources))


def main() -> None:
    """Run the loads and write the page."""
    pages = [catalog.load_page(each) for each in catalog.page_set("corpus:medium") or ()]
    text = _TEXT.format(
        pages=len(pages),
        seeds=SETTING["seeds"],
        request_bytes=_REQUEST_BYTES,
        table=f"{table_of(study(pages)).to_markdown()}\n",
    )
    PAGE.write_text(text, "utf-8")
    print(f"wrote {PAGE.name}")


if __name__ == "__main__":
    main()
