"""The matrix of clients before servers: what each pair gains, and what is lost between the two."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from h3sim.browser.capabilities import Ability
from h3sim.catalog import load_client, load_server
from h3sim.schedulers import Mixed
from h3sim.schemes import Reads
from h3sim.schemes.halves import BEFORE, Client, Over, Server
from h3sim.values.errors import UnknownNameError
from h3sim.values.table import Rows, Table

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

Speedup: TypeAlias = tuple[float, float | None, float | None]
"""A speedup with the ends of its interval, if it has one."""


class PairRow(NamedTuple):
    """A client before a server: its *speedup* to the baseline, and with the best other party.

    *other_server* and *other_client* are the factors by which the load would be faster with the
    best server for this client, and with the best client for this server, of those compared.
    """

    client: str
    server: str
    speedup: float
    low: float | None
    high: float | None
    other_server: float
    other_client: float
    lost: str
    """The signals that do not reach the server's order, and why."""


def matrix_of(
    speedups: Mapping[str, Speedup], halves: Iterable[Client | Server] = ()
) -> Rows[PairRow]:
    """Return a row per pair of *speedups*, by name of the scheme; others are left out.

    *halves* are the clients and servers from files. A pair whose client or server is neither
    shipped nor among them is left out, too.

    >>> rows = matrix_of({"chrome before quic-go": (1.2, 1.1, 1.3), "rr": (1.0, None, None),
    ...     "chrome before haproxy": (1.0, None, None)})
    >>> [(row.server, row.other_server, row.lost) for row in rows][1]
    ('haproxy', 1.2, 'all: the server reads no signal')
    """
    own_halves = list(halves)
    clients = {half.name: half for half in own_halves if isinstance(half, Client)}
    servers = {half.name: half for half in own_halves if isinstance(half, Server)}
    pairs: dict[tuple[str, str], tuple[Speedup, str]] = {}
    for name, value in speedups.items():
        client, before, server = name.partition(BEFORE)
        if not before:
            continue
        with suppress(UnknownNameError):
            lost = lost_between(
                clients.get(client) or load_client(client),
                servers.get(server) or load_server(server),
            )
            pairs[client, server] = value, "; ".join(lost) or "nothing"
    best_of_client: dict[str, float] = {}
    best_of_server: dict[str, float] = {}
    for (client, server), ((speedup, *_), _) in pairs.items():
        best_of_client[client] = max(speedup, best_of_client.get(client, 0.0))
        best_of_server[server] = max(speedup, best_of_server.get(server, 0.0))
    return Rows(
        PairRow,
        (
            PairRow(
                client,
                server,
                speedup,
                low,
                high,
                best_of_client[client] / speedup,
                best_of_server[server] / speedup,
                lost,
            )
            for (client, server), ((speedup, low, high), lost) in pairs.items()
        ),
    )


def grid_table(rows: Sequence[PairRow]) -> Table[tuple[object, ...]]:
    """Return the speedups of the pairs, with intervals, if they have some, as a map.

    It has a row per server, the best first, and a column per client.
    """
    clients = list(dict.fromkeys(row.client for row in rows))
    cells = {(row.client, row.server): _cell(row) for row in rows}
    return Table(
        ["server", *clients],
        [
            (server, *(cells.get((client, server)) for client in clients))
            for server in dict.fromkeys(
                row.server for row in sorted(rows, key=lambda row: -row.speedup)
            )
        ],
    )


def _cell(row: PairRow) -> str:
    interval = "" if row.low is None else f" ({row.low:.2f} to {row.high:.2f})"
    return f"{row.speedup:.2f}{interval}"


def lost_between(client: Client, server: Server) -> list[str]:
    """Return what a client signals, or could, that does not reach the order of a server, and why.

    >>> lost_between(load_client("edge"), load_server("rfc9218"))
    ['all: the client says nothing']
    >>> lost_between(load_client("chrome-95"), load_server("nghttp2-eps"))
    ['all: this version sends no Priority field over HTTP/2']
    """
    if server.reads is Reads.NOTHING:
        return ["all: the server reads no signal"]
    if not client.tables:
        return ["all: the client says nothing"]
    table = client.tables.get(server.reads.value)
    if table is None:
        return [f"all: the client says nothing that the server reads ({server.reads.value})"]
    if server.reads is not Reads.EPS:
        return []
    if server.over is Over.HTTP2 and not client.has(Ability.PRIORITY_FIELD):
        return ["all: this version sends no Priority field over HTTP/2"]
    lost = []
    flags = {entry.incremental for entry in table.classes}
    if server.mixed is Mixed.ALL_SHARE and False in flags:
        lost.append("that a response is not incremental: the server lets all share")
    if flags == {True}:
        lost.append("order within an urgency: the client says that all is incremental")
    urgencies = {entry.urgency for entry in table.classes}
    if server.urgency_buckets and len({server.urgency_buckets[u] for u in urgencies}) < len(
        urgencies
    ):
        lost.append("differences between urgencies that share a bucket")
    if "visible" not in table.updates and any(rule.visible for rule in client.rules):
        lost.append("that layout shows an image whose request is open: the client sends no frame")
    return lost
