"""The two dialects in which logs are written: qlog 0.3, and the current drafts.

The drafts are draft-ietf-quic-qlog-main-schema-14, -quic-events-13 and -h3-events-13.
`python -m validation.qlog_drafts` checks what is written against their CDDL.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from h3sim.qlog.packets import StreamFrame
from h3sim.units import to_ms

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = ["DIALECTS", "PROTOCOLS_FIELD", "QlogSchema"]

_EVENTS = {
    # what happens: (its name in 0.3, its name in the current drafts)
    "sent": ("transport:packet_sent", "quic:packet_sent"),
    "received": ("transport:packet_received", "quic:packet_received"),
    "lost": ("recovery:packet_lost", "quic:packet_lost"),
    "metrics": ("recovery:metrics_updated", "quic:recovery_metrics_updated"),
    "moved": ("http:data_moved", "quic:stream_data_moved"),
    "created": ("http:frame_created", "http3:frame_created"),
    "parsed": ("http:frame_parsed", "http3:frame_parsed"),
    # 0.3 has no event for it.
    "prioritized": (None, "http3:priority_updated"),
}
_CONTROL_STREAM = 2
"""The client's first unidirectional stream, on which PRIORITY_UPDATE goes (RFC 9218 § 7.2)."""
_H2_PRIORITY_TYPE = 0x02
"""The type of HTTP/2's PRIORITY frame (RFC 9113 § 6.3); HTTP/3 reserves it (RFC 9114 § 11.2.1)."""
_EVENTS_DRAFT = 13
"""The draft that is followed. Until there is an RFC, the URIs of event schemas end in the number
of the draft (quic-events § 2.1, h3-events § 2.1)."""
PROTOCOLS_FIELD = "h3sim_protocols"
"""A common field of our own, which the drafts allow: their event schemas assume QUIC, and
`protocol_types` was dropped from them (main-schema since -10)."""
_QUIC = ["QUIC", "HTTP3"]


@dataclass(frozen=True, kw_only=True)
class QlogSchema:
    """How a dialect says things."""

    names: dict[str, str]
    """The name of each kind of event; what it has no name for is not written."""
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
        common = {"time_format": self.time_format, "reference_time": self.reference_time}
        if not self.is_draft:
            common["protocol_type"] = protocols
        elif protocols != _QUIC:
            common[PROTOCOLS_FIELD] = protocols
        return {
            "vantage_point": {"name": f"h3sim {vantage}", "type": vantage},
            **self.trace_fields,
            "common_fields": common,
        }

    def events(self, rows: Iterable[tuple[int, str, dict[str, Any]]]) -> Iterator[dict[str, Any]]:
        """Yield the events of *rows* (time, kind, data) that the dialect has a name for.

        A float of milliseconds keeps nanoseconds exactly for 26 days.
        """
        for at_ns, what, data in rows:
            if what in self.names:
                name = self.names[what]
                yield {"time": to_ms(at_ns), "name": name, "data": self.spelt(what, data)}

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
            return _draft_priority(data)
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


def _draft_priority(data: dict[str, Any]) -> dict[str, Any]:
    """Return the data of an event with its priority frame, if it has one, as the drafts spell it.

    They describe PRIORITY_UPDATE only: a PRIORITY frame of HTTP/2 is an unknown one to them.
    """
    frame = data.get("frame", {})
    match frame.get("frame_type"):
        case "priority_update":
            spelt = {
                "frame_type": "priority_update",
                "stream_id": frame["element_id"],
                "priority_field_value": frame["value"],
            }
            return {"stream_id": _CONTROL_STREAM, "frame": spelt}
        case "priority":
            unknown = {"frame_type": "unknown", "frame_type_bytes": _H2_PRIORITY_TYPE}
            is_stream = frame["prioritized_element_type"] == "request_stream"
            stream_id = frame["prioritized_element_id"] if is_stream else _CONTROL_STREAM
            return {"stream_id": stream_id, "frame": unknown}
    return data


DIALECTS = {
    "0.3": QlogSchema(
        names={what: names[0] for what, names in _EVENTS.items() if names[0] is not None},
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
                f"urn:ietf:params:qlog:events:quic-{_EVENTS_DRAFT}",
                f"urn:ietf:params:qlog:events:http3-{_EVENTS_DRAFT}",
            ]
        },
        is_draft=True,
    ),
}
