"""Builders of small qlogs."""

from __future__ import annotations

import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from h3sim.qlog import parse_qlog, write_qlog

if TYPE_CHECKING:
    from collections.abc import Iterable

    from h3sim.qlog import MeasuredLog
    from h3sim.trace import Trace

__all__ = [
    *("MS", "RS", "document", "frame", "headers", "packet", "qlog_document", "reading", "save"),
    "trace",
]

RS = "\x1e"
"""What each record of a JSON text sequence begins with."""
MS = 1_000_000
"""A millisecond in nanoseconds."""


def frame(stream_id: int, offset: int, length: int, **more: Any) -> dict[str, Any]:
    return {
        "frame_type": "stream",
        "stream_id": stream_id,
        "offset": offset,
        "length": length,
        **more,
    }


def packet(time: float, name: str, number: int, *frames: dict[str, Any], **more: Any) -> Any:
    header = {"packet_type": "1RTT", "packet_number": number}
    data = {"header": header, "frames": list(frames), **more}
    return {"time": time, "name": f"transport:packet_{name}", "data": data}


def headers(time: float, name: str, stream_id: int, **fields: str) -> dict[str, Any]:
    """Return an event of HTTP; "_" in the name of a field stands for what Python cannot spell."""
    spelt = {"path": ":path", "content_length": "Content-Length"}
    entries = [{"name": spelt.get(key, key), "value": value} for key, value in fields.items()]
    content = {"frame_type": "headers", "headers": entries}
    return {
        "time": time,
        "name": f"http:frame_{name}",
        "data": {"stream_id": stream_id, "frame": content},
    }


def trace(events: Iterable[Any], end: str = "client", **common: Any) -> dict[str, Any]:
    fields = {"time_format": "relative", "reference_time": 0, **common}
    return {"vantage_point": {"type": end}, "common_fields": fields, "events": list(events)}


def document(*traces: dict[str, Any], title: str = "log") -> dict[str, Any]:
    return {"qlog_version": "0.3", "qlog_format": "JSON", "title": title, "traces": list(traces)}


def save(path: Path, content: object) -> Path:
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


NO_UPLINK = {"uplink_sent": None, "uplink_lost": None, "uplink_bytes": None}
"""Counts of the client's packets, which logs do not have."""


def reading(folder: Path, *traces: dict[str, Any]) -> MeasuredLog:
    return parse_qlog(save(folder / "log.qlog", document(*traces)))


def qlog_document(trace: Trace, **options: Any) -> dict[str, Any]:
    """Return the document that `write_qlog` writes."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "load.qlog"
        write_qlog(trace, path, **options)
        found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return found
