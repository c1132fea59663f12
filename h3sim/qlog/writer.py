"""Writes a load as a qlog: the server's log and the client's."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple, TextIO

from h3sim.documents import check_output, write_whole
from h3sim.errors import Problem
from h3sim.page.resource import DEFAULT_REQUEST_BYTES
from h3sim.qlog.ends import Log, client_log, server_log
from h3sim.qlog.packets import logged_packets
from h3sim.qlog.schema import DIALECTS, QlogSchema
from h3sim.qlog.source import RECORD_SEPARATOR, LogError
from h3sim.trace import Delivery

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from h3sim.trace import Trace

__all__ = ["DIALECTS", "LoggedResource", "check_qlog_path", "qlog_document", "write_qlog"]

_SUFFIXES = (".qlog", ".sqlog")


class LoggedResource(NamedTuple):
    """What a log calls a resource, and its sizes; *body_bytes* is None where it is not known."""

    id: str
    body_bytes: int | None = None
    request_bytes: int = DEFAULT_REQUEST_BYTES


def qlog_document(
    trace: Trace,
    *,
    title: str,
    description: str = "",
    dialect: str = "0.3",
    resources: Mapping[int, LoggedResource] | None = None,
    signals_are_sent: bool = True,
) -> dict[str, Any]:
    """Return *trace* as a qlog document with the server's log and the client's.

    *description* says what was logged. *resources* and *priorities* go by stream id: what is asked
    for (`:path`), and the text of the `priority` header; where that is not given it is what the
    signals of the trace say.

    Raises:
        ValueError: if the dialect is not known.
    """
    schema = _schema(dialect)
    about = _about(title, description)
    document = schema.file_head(about, is_sequence=False)
    document["traces"] = [
        {**_trace_head(log, schema, trace), "events": list(schema.events(log.events()))}
        for log in _logs(trace, resources or {}, signals_are_sent=signals_are_sent)
    ]
    return document


def write_qlog(
    trace: Trace,
    path: str | Path,
    *,
    title: str,
    description: str = "",
    dialect: str = "0.3",
    resources: Mapping[int, LoggedResource] | None = None,
    signals_are_sent: bool = True,
) -> None:
    """Write *trace* to the file at *path*, whole or not at all; arguments as `qlog_document`'s.

    FILE.qlog is JSON and holds both logs. FILE.sqlog is a JSON text sequence, of which the format
    has it that it holds one log: the client's.

    Raises:
        LogError: if the file cannot be written.
        ValueError: if the dialect is not known.
    """
    schema = _schema(dialect)
    check_qlog_path(path)
    about = _about(title, description)
    logs = list(_logs(trace, resources or {}, signals_are_sent=signals_are_sent))

    def put(file: BinaryIO) -> None:
        stream = io.TextIOWrapper(file, encoding="utf-8", newline="\n")
        if Path(path).suffix == ".sqlog":
            client = logs[-1]
            _write_sequence(stream, schema, about, client, _trace_head(client, schema, trace))
        else:
            heads = [_trace_head(log, schema, trace) for log in logs]
            _write_json(stream, schema, about, logs, heads)
        # Not closed: the file is still `write_whole`'s, which has yet to bring it to the disk.
        stream.detach()

    write_whole(path, put, error=LogError)


def check_qlog_path(path: str | Path | None, *, key: str = "") -> None:
    """Refuse a path to which no log could be written; None is none.

    *key* is the option that gave the path.

    Raises:
        LogError: saying what is wrong with it.

    >>> check_qlog_path("load.json")
    Traceback (most recent call last):
    ...
    h3sim.qlog.source.LogError: must end in .qlog or .sqlog, is 'load.json'
    """
    if path is None:
        return
    if Path(path).suffix not in _SUFFIXES:
        message = f"must end in {' or '.join(_SUFFIXES)}, is {str(path)!r}"
        raise LogError([Problem(key=key, message=message)])
    check_output(path, key=key, error=LogError)


def _schema(dialect: str) -> QlogSchema:
    if dialect not in DIALECTS:
        raise ValueError(f"dialect must be one of {', '.join(DIALECTS)}, is {dialect!r}")
    return DIALECTS[dialect]


def _logs(
    trace: Trace, resources: Mapping[int, LoggedResource], *, signals_are_sent: bool
) -> Iterator[Log]:
    request_bytes = {stream_id: entry.request_bytes for stream_id, entry in resources.items()}
    packets = logged_packets(trace, request_bytes)
    ids = {stream_id: entry.id for stream_id, entry in resources.items()}
    bodies = {
        stream_id: entry.body_bytes
        for stream_id, entry in resources.items()
        if entry.body_bytes is not None
    }
    yield server_log(trace, packets, ids=ids, signals_are_sent=signals_are_sent)
    yield client_log(trace, packets, ids=ids, bodies=bodies, signals_are_sent=signals_are_sent)


def _about(title: str, description: str) -> dict[str, str]:
    return {"title": title, "description": description} if description else {"title": title}


def _trace_head(log: Log, schema: QlogSchema, trace: Trace) -> dict[str, Any]:
    is_tcp = trace.delivery is Delivery.CONNECTION
    return schema.trace_head(log.vantage, ["TCP", "HTTP2"] if is_tcp else ["QUIC", "HTTP3"])


def _write_json(
    stream: TextIO,
    schema: QlogSchema,
    about: dict[str, str],
    logs: list[Log],
    heads: list[dict[str, Any]],
) -> None:
    """Write event by event: a document of a large load would not fit into memory."""
    stream.write(_open_object(schema.file_head(about, is_sequence=False)) + ', "traces": [')
    for number, (log, head) in enumerate(zip(logs, heads, strict=True)):
        stream.write(",\n" if number else "\n")
        stream.write(_open_object(head) + ', "events": [')
        for index, event in enumerate(schema.events(log.events())):
            stream.write(",\n" if index else "\n")
            stream.write(json.dumps(event, allow_nan=False))
        stream.write("\n]}")
    stream.write("\n]}\n")


def _open_object(head: dict[str, Any]) -> str:
    return json.dumps(head).removesuffix("}")


def _write_sequence(
    stream: TextIO, schema: QlogSchema, about: dict[str, str], log: Log, head: dict[str, Any]
) -> None:
    first = schema.file_head(about, is_sequence=True) | {"trace": head}
    stream.write(f"{RECORD_SEPARATOR}{json.dumps(first)}\n")
    for event in schema.events(log.events()):
        stream.write(f"{RECORD_SEPARATOR}{json.dumps(event, allow_nan=False)}\n")
