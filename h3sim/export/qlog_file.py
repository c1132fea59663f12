"""The qlog of a load: a file for each of its connections."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from h3sim._version import __version__
from h3sim.engine.requests import request_sizer
from h3sim.load.configuration import in_words
from h3sim.qlog import LoggedResource, write_qlog
from h3sim.transport import Protocol

if TYPE_CHECKING:
    from h3sim.engine.connections import Connection
    from h3sim.load import Load


def write_load_qlog(load: Load, path: str | Path, *, dialect: str = "0.3") -> None:
    """Write *load* as qlog: FILE.qlog has the logs of both endpoints, FILE.sqlog the client's.

    A log describes one connection. If there are several, each has a file: FILE-1.qlog and so on.

    Raises:
        LogError: if a file cannot be written.
    """
    for connection in load.connections:
        _write_qlog(load, connection, qlog_path(load, path, connection), dialect)


def qlog_path(load: Load, path: str | Path, connection: Connection) -> Path:
    """Return the file for a connection's log: *path* if there is only one connection."""
    file = Path(path)
    if len(load.connections) == 1:
        return file
    # All suffixes follow the number: `a.qlog.gz` becomes `a-1.qlog.gz`.
    stem, *suffixes = file.name.split(".")
    return file.with_name(".".join((f"{stem}-{connection.number + 1}", *suffixes)))


def _write_qlog(load: Load, connection: Connection, path: Path, dialect: str) -> None:
    """Write the qlog of one connection of a load."""
    requests = connection.trace.requests
    requested = {row.stream_id: load.page.resources[row.resource] for row in requests}
    request_bytes = request_sizer(load.page, load.spec.link_protocol)
    resources = {
        stream_id: LoggedResource(
            id=resource.id,
            body_bytes=resource.size_bytes,
            request_bytes=request_bytes(resource),
            server_ns=resource.server_ns,
        )
        for stream_id, resource in requested.items()
    }
    description = [
        *in_words(load.spec).values(),
        f"h3sim {__version__}",
        f"page {load.page.digest}",
    ]
    write_qlog(
        connection.trace,
        path,
        title=load.page.name,
        description=f"scheme {load.scheme.name}, {', '.join(description)}",
        dialect=dialect,
        resources=resources,
        signals_are_sent=load.scheme.signalling.is_sent,
        protocols=("TCP", "QMUX") if load.protocol is Protocol.QMUX else None,
    )
