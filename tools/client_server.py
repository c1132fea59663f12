"""Writes docs/generated/client-server.md: `python -m tools.client_server` (minutes)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import h3sim
from h3sim import catalog
from h3sim.study.matrix import grid_table, lost_between, matrix_of
from h3sim.values.table import Table

__all__ = ["CLIENTS", "main"]

PAGE = Path(__file__).parents[1] / "docs" / "generated" / "client-server.md"
CLIENTS = ("chrome", "firefox", "safari", "edge")
_SETTING: dict[str, Any] = {"browser": "parse", "network": "4g", "send_buffers_kb": [0]}
_METRIC = "byte_index_atf_ms"
_TEXT = """# Any client before any server

Each cell is the speedup of the ByteIndex above the fold of {pages} pages (`corpus:medium`) over
4G, without a send buffer, relative to Chrome before a server that sends in turns: the geometric
mean, and its studentized bootstrap interval over pages. The browsers compute their loads
(`--browser parse`). `make client-server` writes this page; `h3sim compare` with `--client all
--server all` prints such a map for any pages. `edge` stands for all that say nothing. Rows of one
client differ only as far as the servers read what it sends; browsers differ by what they hold
back, too.

{grid}
## What is lost between them

{lost}"""


def main() -> None:
    """Run the loads and write the page."""
    pages = catalog.page_set("corpus:medium") or ()
    found = h3sim.compare(
        list(pages), schemes=[], client=list(CLIENTS), server="all", seeds=1, **_SETTING
    )
    rows = found.rows_of(_METRIC)
    speedups = {row.scheme: (row.geometric, row.low, row.high) for row in rows}
    grid = grid_table(matrix_of(speedups)).to_markdown()
    lost = Table(["what", "clients", "servers"], _lost()).to_markdown()
    PAGE.write_text(_TEXT.format(pages=len(pages), grid=f"{grid}\n", lost=f"{lost}\n"), "utf-8")
    print(f"wrote {PAGE.name}")


def _lost() -> list[tuple[str, ...]]:
    """Return what is lost, each with the clients and the servers between which it is."""
    clients_by_loss: dict[tuple[str, str], list[str]] = {}
    for server in catalog.list_servers():
        for name in CLIENTS:
            for text in lost_between(catalog.load_client(name), server) or ["nothing"]:
                clients_by_loss.setdefault((text, server.name), []).append(name)
    servers_by_loss: dict[tuple[str, str], list[str]] = {}
    for (text, server_name), clients in clients_by_loss.items():
        servers_by_loss.setdefault((text, ", ".join(clients)), []).append(server_name)
    return sorted((text, who, ", ".join(names)) for (text, who), names in servers_by_loss.items())


if __name__ == "__main__":
    main()
