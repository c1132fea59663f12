"""How the two dialects in which logs are written spell things."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from h3sim.qlog.packets import StreamFrame
from h3sim.units import to_ms

__all__ = ["DIALECTS", "QlogSchema"]

_EVENTS = {
    # what happens: (its name in 0.3, its name in the current drafts)
    "sent": ("transport:packet_sent", "quic:packet_sent"),
    "received": ("transport:packet_received", "quic:packet_received"),
    "lost": ("recovery:packet_lost", "quic:packet_lost"),
    "metrics": ("recovery:metrics_updated", "quic:recovery_metrics_updated"),
    "moved": ("http:data_moved", "quic:stream_data_moved"),
    "created": ("http:frame_created", "http3:frame_created"),
    "parsed": ("http:frame_parsed", "http3:frame_parsed"),
}
_CONTROL_STREAM = 2
"""The client's first unidirectional stream, on which PRIORITY_UPDATE goes (RFC 9218 § 7.2)."""


@dataclass(frozen=True, kw_only=True)
class QlogSchema:
    """How a dialect says things."""

    names: dict[str, str]
    time_format: str
    reference_time: Any
    trace_fields: dict[str, Any] = field(default_factory=dict)
    is_draft: bool

    def file_head(self, about: dict[str, str], *, is_sequence: bool) -> dict[str, Any]:
        """Return the top of a file, without its traces; *about* has its title and description."""
        if not self.is_draft:
            form = "JSON-SEQ" if is_sequence else "JSON"
            return {"qlog_version": "0.3", "qlog_format": form, **about}
        schema, form = ("sequential", "json-seq") if is_sequence else ("contained", "json")
        return {
            "file_schema": f"urn:ietf:params:qlog:file:{schema}",
            "serialization_format": f"application/qlog+{form}",
            **about,
        }

    def trace_head(self, vantage: str, protocols: list[str]) -> dict[str, Any]:
        """Return the top of a trace, without its events."""
        return {
            "vantage_point": {"name": f"h3sim {vantage}", "type": vantage},
            **self.trace_fields,
            "common_fields": {
                "time_format": self.time_format,
                "reference_time": self.reference_time,
                "protocol_type": protocols,
            },
        }

    def event(self, at_ns: int, what: str, data: dict[str, Any]) -> dict[str, Any]:
        """Return an event. A float of milliseconds keeps nanoseconds exactly for 26 days."""
        return {"time": to_ms(at_ns), "name": self.names[what], "data": self.spelt(what, data)}

    def spelt(self, what: str, data: dict[str, Any]) -> dict[str, Any]:
        """Return *data* with frames and lengths as the dialect has them."""
        if what in ("sent", "received"):
            frames = [self._frame(frame) for frame in data["frames"]]
            return {**data, "frames": frames}
        if self.is_draft:
            if "frame" in data and "length" in data:
                # HTTP3FrameParsed has no length of its own: that is the frame's (h3-events § 3.2).
                raw = {"raw": {"length": data["length"]}}
                return {"stream_id": data["stream_id"], "frame": {**data["frame"], **raw}}
            if "length" in data:
                return {
                    **{key: value for key, value in data.items() if key != "length"},
                    "raw": {"length": data["length"]},
                }
            if data.get("frame", {}).get("frame_type") == "priority_update":
                frame = data["frame"]
                spelt = {
                    "frame_type": "priority_update",
                    "stream_id": frame["element_id"],
                    "priority_field_value": frame["value"],
                }
                return {"stream_id": _CONTROL_STREAM, "frame": spelt}
        return data

    def _frame(self, frame: StreamFrame | dict[str, Any]) -> dict[str, Any]:
        if not isinstance(frame, StreamFrame):
            return frame
        words: dict[str, Any] = {
            "frame_type": "stream",
            "stream_id": frame.stream_id,
            "offset": frame.offset,
        }
        raw = {"payload_length": frame.n_bytes}
        if self.is_draft:
            # quic-events since -12: what the frame's length field says is `raw.length`.
            raw["length"] = frame.n_bytes
        else:
            words["length"] = frame.n_bytes
        return {**words, "fin": frame.fin, "raw": raw}


DIALECTS = {
    "0.3": QlogSchema(
        names={what: names[0] for what, names in _EVENTS.items()},
        time_format="relative",
        reference_time=0,
        is_draft=False,
    ),
    "draft": QlogSchema(
        names={what: names[1] for what, names in _EVENTS.items()},
        time_format="relative_to_epoch",
        reference_time={"clock_type": "monotonic", "epoch": "unknown"},
        trace_fields={
            "event_schemas": [
                "urn:ietf:params:qlog:events:quic",
                "urn:ietf:params:qlog:events:http3",
            ]
        },
        is_draft=True,
    ),
}
