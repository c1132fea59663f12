"""Reads a qlog, of h3sim or of a real stack, as a trace that can be measured."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from h3sim.qlog.events import events_of
from h3sim.qlog.moved import with_moves
from h3sim.qlog.rows import responses_of
from h3sim.qlog.schema import PROTOCOLS_FIELD
from h3sim.qlog.source import Findings, LogError, opened, raw_traces
from h3sim.qlog.vantage_point import VantagePoint
from h3sim.trace import Delivery, Request, Trace, with_delivery

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from h3sim.qlog.moved import Moved
    from h3sim.qlog.rows import Responses
    from h3sim.qlog.source import RawTrace

__all__ = ["LogError", "MeasuredLog", "MeasuredResource", "read_qlog"]

_CHOICE = ": `--trace N` (`trace=N`) takes trace N alone, from 1 on"
_VANTAGES = {"client": True, "server": False}


class MeasuredResource(NamedTuple):
    """What a stream carried: what was asked for, and how long its body was."""

    id: str
    body_bytes: int


@dataclass(frozen=True, kw_only=True)
class MeasuredLog:
    """A connection as a log tells it.

    `Request.resource` is an index into *resources*. Rows of `trace.packet_rows` stand by packet
    number, which is the order in which packets were sent. *unseen_packets* is how many numbers a
    client never saw: they count as lost, and what they carried is not known.
    """

    title: str
    trace: Trace
    resources: tuple[MeasuredResource, ...]
    unseen_packets: int
    unknown: tuple[str, ...]
    """What the log does not say, and what stands in for it."""


def read_qlog(path: str | Path, *, trace: int | None = None) -> MeasuredLog:
    """Return what the qlog at *path* tells of one connection.

    A file with the logs of several is read where *trace* says which log of it, from 1 on. Where
    both ends were logged, arrivals are the client's and the rest is the server's. Times are
    nanoseconds since the log's reference, or since its first event where that is a time of day.

    Raises:
        LogError: if the file cannot be read, or listing the mistakes in it.
    """
    findings = Findings(str(path))
    with opened(path, findings) as stream:
        traces = _wanted(raw_traces(stream, findings), findings, trace)
        title, protocols, sides = _sides(traces, findings)
    findings.raise_if_any()
    client, server = sides.get(True), sides.get(False)
    if not any(side.frames for side in sides.values()):
        findings.fatal("", "holds no packet with bytes of a response")
    responses = responses_of(client, server, findings)
    is_tcp = "TCP" in protocols
    if is_tcp and responses.unseen_packets:
        message = "lost packets hold up all behind them, and only the server's log says which"
        findings.fatal("", message)
    delivery = Delivery.CONNECTION if is_tcp else Delivery.STREAM
    measured, resources = _trace(responses, delivery, [] if client is None else client.moved)
    if not measured.requests:
        findings.fatal("", "holds no response that arrived to its end")
    return MeasuredLog(
        title=title or Path(path).name.partition(".")[0],
        trace=measured,
        resources=resources,
        unseen_packets=responses.unseen_packets,
        unknown=tuple(findings.unknown),
    )


def _wanted(
    traces: Iterator[RawTrace], findings: Findings, number: int | None
) -> Iterator[RawTrace]:
    """Yield the trace of that number, or all where there is none."""
    if number is None:
        yield from traces
        return
    last = 0
    for last, raw in enumerate(traces, 1):
        if last == number:
            yield raw
            return
    findings.fatal("", f"has {last} trace{'s' * (last != 1)}, and no trace {number}")


def _sides(
    traces: Iterator[RawTrace], findings: Findings
) -> tuple[str, list[str], dict[bool, VantagePoint]]:
    """Return title, protocols, and what the client and the server saw."""
    title = ""
    protocols: list[str] = []
    sides: dict[bool, VantagePoint] = {}
    connections: dict[str, None] = {}
    for raw in traces:
        side = _side(raw, findings)
        if side is None or (not side.frames and side.is_client in sides):
            continue
        known = sides.get(side.is_client)
        if known is not None and known.frames:
            end = "client" if side.is_client else "server"
            findings.fatal(
                raw.key, f"is a second log of a {end}; one connection is measured{_CHOICE}"
            )
        sides[side.is_client] = side
        title = title or raw.title
        common = raw.head.get("common_fields")
        if isinstance(common, dict):
            named = common.get("protocol_type", common.get(PROTOCOLS_FIELD))
            protocols += [str(name) for name in named] if isinstance(named, list) else []
            connection = common.get("ODCID", common.get("group_id"))
            if connection is not None:
                connections[str(connection)] = None
        if len(connections) > 1:
            findings.fatal(
                raw.key, f"is of another connection ({' and '.join(connections)}){_CHOICE}"
            )
    return title, protocols, sides


def _side(raw: RawTrace, findings: Findings) -> VantagePoint | None:
    """Return what a trace tells, None if it tells nothing of packets."""
    clock, events = events_of(raw, findings)
    is_client = _vantage(raw)
    side: VantagePoint | None = None
    for event in events:
        if side is None:
            if is_client is None:
                if event.what not in ("sent", "received"):
                    continue
                is_client = event.what == "sent"
                end = "client" if is_client else "server"
                findings.unknown.append(f"who wrote {raw.key}; by its first packet, the {end}")
            side = VantagePoint(findings, clock, is_client=is_client)
        side.on_event(event)
    return side


def _vantage(raw: RawTrace) -> bool | None:
    """Return whether the client wrote a trace, None if it does not say; the client speaks first."""
    vantage = raw.head.get("vantage_point")
    if not isinstance(vantage, dict):
        return None
    for name in (vantage.get("type"), vantage.get("flow")):
        if str(name).casefold() in _VANTAGES:
            return _VANTAGES[str(name).casefold()]
    return None


def _trace(
    responses: Responses, delivery: Delivery, moved: Sequence[Moved]
) -> tuple[Trace, tuple[MeasuredResource, ...]]:
    asked = sorted(responses.streams, key=lambda row: (row.requested_at_ns, row.stream_id))
    kept = {row.stream_id for row in asked}
    rows = responses.rows
    if delivery is Delivery.CONNECTION:
        # Behind bytes that never came nothing is delivered in one order; leave those out.
        rows = [row for row in rows if row[2] in kept]
    trace = Trace(
        delivery=delivery,
        requests=tuple(
            Request(row.stream_id, index, row.requested_at_ns, row.arrived_at_ns, row.length_bytes)
            for index, row in enumerate(asked)
        ),
        signals=(),
        packet_rows=with_moves(with_delivery(rows, delivery), moved),
    )
    return trace, tuple(MeasuredResource(row.id, row.body_bytes) for row in asked)
