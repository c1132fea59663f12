"""Writes docs/generated/client-server.md: `python -m tools.client_server` (minutes)."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from PIL import Image

import h3sim
from h3sim import catalog
from h3sim.reporting.study_plots import save_matrix_plot
from h3sim.schemes.halves import BEFORE
from h3sim.study.matrix import grid_table, lost_between, matrix_of
from h3sim.values.table import Table

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["CLIENTS", "main"]

PAGE = Path(__file__).parents[1] / "docs" / "generated" / "client-server.md"
FIGURE = PAGE.parents[1] / "images" / "client-server.png"
CLIENTS = ("chrome", "firefox", "safari", "edge")
_CHANGES = {
    "Safari says of nothing that it is incremental": ("safari", "incremental = true\n", "rfc9218"),
    "Chrome sends a frame for each image that layout raises": (
        "chrome",
        "updates = []\n",
        "rfc9218",
    ),
}
"""What a client would do: the client, what goes from its file for it, and the server behind."""
_READ_FIELD = "Envoy reads the Priority field, as Google's QUICHE may since August 2026"
_SETTING: dict[str, Any] = {"browser": "parse", "network": "4g", "send_buffers_kb": [0]}
_METRIC = "byte_index_atf_ms"
_TEXT = """# Any client before any server

Each cell is the speedup of the ByteIndex above the fold of {pages} pages (`corpus:medium`) over
4G, without a send buffer, relative to Chrome before a server that sends in turns: the geometric
mean, and its studentized bootstrap interval over pages. The browsers compute their loads
(`--browser parse`). `make client-server` writes this page; `h3sim compare` with `--client all
--server all` prints such a map for any pages. `edge` stands for all that say nothing. Rows of one
client differ only as far as the servers read what it sends; browsers differ by what they hold
back, too. In the map a number is bold if its interval excludes 1.

![Speedups of four clients before {servers} servers](../images/client-server.png)

{grid}
## What one change would be worth

The speedups of the same figure by one change of one party, relative to the pair as it is.

{changes}
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
    pairs = matrix_of(speedups)
    save_matrix_plot(pairs, FIGURE, found.baseline)
    Image.open(FIGURE).convert("RGB").quantize(64).save(FIGURE, optimize=True)
    grid = grid_table(pairs).to_markdown()
    lost = Table(["what", "clients", "servers"], _lost()).to_markdown()
    heads = ["change", "before", "speedup", "on pages: better, worse by 5 %"]
    changes = Table(heads, list(_changes(list(pages)))).to_markdown()
    filled = {"pages": len(pages), "servers": len(catalog.list_servers())}
    tables = {"grid": f"{grid}\n", "changes": f"{changes}\n", "lost": f"{lost}\n"}
    PAGE.write_text(_TEXT.format(**filled, **tables), "utf-8")
    print(f"wrote {PAGE.name}")


def _changes(pages: list[str]) -> Iterator[tuple[str, ...]]:
    """Yield each change with the speedup that it is worth."""
    with tempfile.TemporaryDirectory() as folder:
        for title, (client, without, server) in _CHANGES.items():
            changed = Path(folder) / f"{client}.toml"
            text = catalog.text_of("client", client).replace(without, "")
            named = text.replace(f'name = "{client}"', 'name = "changed"')
            changed.write_text(named, "utf-8")
            yield _change(title, pages, [client, str(changed)], [server])
    for client in CLIENTS[:3]:
        yield _change(_READ_FIELD, pages, [client], ["envoy", "google-quiche"])


def _change(
    title: str, pages: list[str], clients: list[str], servers: list[str]
) -> tuple[str, ...]:
    """Return the row of a change: the last pair relative to the first."""
    before = f"{clients[0]}{BEFORE}{servers[0]}"
    found = h3sim.compare(
        pages, schemes=[], client=clients, server=servers, baseline=before, seeds=1, **_SETTING
    )
    (row,) = (row for row in found.rows_of(_METRIC) if row.scheme != before)
    speedup = f"{row.geometric:.2f} ({row.low:.2f} to {row.high:.2f})"
    return title, before, speedup, f"{row.wins_5}, {row.losses_5}"


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
