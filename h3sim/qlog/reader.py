"""qlog reader: the logs of one or both endpoints as a trace for metrics."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from h3sim.qlog.container import Findings, opened, raw_traces
from h3sim.qlog.events import events_of
from h3sim.qlog.records import with_moves
from h3sim.qlog.vantage_point import VantagePoint
from h3sim.qlog.writer import PROTOCOLS_FIELD
from h3sim.ranges import Ranges
from h3sim.trace import Delivery, Request, Trace, with_delivery
from h3sim.units import to_ms

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from h3sim.qlog.container import RawTrace
    from h3sim.qlog.records import DataMoved
    from h3sim.trace import SentRow


_SHOWN_STREAMS = 5
ViewT = TypeVar("ViewT", bound=VantagePoint)


class StreamRow(NamedTuple):
    """A complete response."""

    stream_id: int
    id: str
    requested_at_ns: int
    arrived_at_ns: int
    length_bytes: int
    body_bytes: int


class Responses(NamedTuple):
    """The responses of a log."""

    rows: list[SentRow]
    streams: list[StreamRow]
    unseen_packets: int


def responses_of(
    client: VantagePoint | None, server: VantagePoint | None, findings: Findings
) -> Responses:
    """Return the responses by the logs of one or both ends."""
    if client is None:
        return _from_server(server, findings) if server is not None else Responses([], [], 0)
    if server is None:
        return _from_client(client, findings)
    shift_ns = _shift_ns(client, server)
    if shift_ns is None:
        findings.unknown.append("when packets were sent: the two logs have different clocks")
    rows = list(_rows_of_both(client, server, shift_ns))
    ends = _ends(client) | _ends(server)
    return Responses(rows, _streams(rows, client, server, ends, shift_ns, findings), 0)


def _from_client(client: VantagePoint, findings: Findings) -> Responses:
    """Count missing packet numbers below the highest as losses, as in Sander 2022."""
    findings.unknown.append("when packets were sent: the server has no log here")
    unseen = _unseen(client)
    if unseen:
        findings.unknown.append(
            f"what {_packets(unseen)} carried, of which only the number is missing; taken as lost"
        )
    rows: list[SentRow] = [
        (client.packets[number], client.packets[number], *frame[:3], number)
        for number in sorted(client.frames)
        for frame in client.frames[number]
    ]
    return Responses(rows, _streams(rows, client, None, _ends(client), 0, findings), unseen)


def _unseen(client: VantagePoint) -> int:
    """Return the number of missing packet numbers up to the highest.

    Some stacks (aioquic) share one sequence between packet number spaces: numbers that the
    handshake used before the first packet are not missing.
    """
    first = min(client.packets, default=0)
    taken = sum(number < first for number in client.handshake_numbers)
    return max(client.packets, default=-1) + 1 - len(client.packets) - taken


def _packets(number: int) -> str:
    return f"{number:,} packet{'' if number == 1 else 's'}"


def _rows_of_both(
    client: VantagePoint, server: VantagePoint, shift_ns: int | None
) -> Iterator[SentRow]:
    """Yield the server's packets with arrivals; without a common clock, sent on arrival."""
    latest_ns = 0
    for number in sorted(client.frames | server.frames):
        arrived_at_ns = client.packets.get(number)
        latest_ns = latest_ns if arrived_at_ns is None else max(latest_ns, arrived_at_ns)
        sent_at_ns = server.packets.get(number)
        if sent_at_ns is None or shift_ns is None:
            # A lost packet was sent before the arrival of the next one; nothing closer is known.
            sent_at_ns = latest_ns if arrived_at_ns is None else arrived_at_ns
        else:
            sent_at_ns += shift_ns
        # The client's view comes first, as it is the one that was measured.
        for stream_id, offset, n_bytes, _ in client.frames.get(number) or server.frames[number]:
            yield sent_at_ns, arrived_at_ns, stream_id, offset, n_bytes, number


def _shift_ns(client: VantagePoint, server: VantagePoint) -> int | None:
    """Return the offset from the server's to the client's clock; None if it is unknown."""
    ours, theirs = client.clock, server.clock
    if ours.reference != theirs.reference or ours.base is None or theirs.base is None:
        return None
    return ours.ns(theirs.base - ours.base)


def _from_server(server: VantagePoint, findings: Findings) -> Responses:
    """Infer arrivals from acknowledgements and declared losses."""
    delay_ns = (server.min_rtt_ns or 0) // 2
    findings.unknown.append(
        "when packets arrived: the client has no log here; taken as sent"
        + (f" + {to_ms(delay_ns):g} ms, half the least RTT" if delay_ns else "")
    )
    spans = server.acked.spans()
    starts = [start for start, _ in spans]
    rows: list[SentRow] = []
    unsure = 0
    for number in sorted(server.frames):
        sent_at_ns = server.packets[number]
        at = bisect_right(starts, number) - 1
        is_acked = at >= 0 and number < spans[at][1]
        # Below the highest acknowledged number, a packet that no ACK covers did not arrive.
        is_lost = not is_acked and (number in server.lost or number < server.acked.end)
        unsure += not is_acked and not is_lost
        arrived_at_ns = None if is_lost else sent_at_ns + delay_ns
        for stream_id, offset, n_bytes, _ in server.frames[number]:
            rows.append((sent_at_ns, arrived_at_ns, stream_id, offset, n_bytes, number))
    if unsure:
        findings.unknown.append(
            f"whether {_packets(unsure)} arrived, neither acknowledged nor lost; taken as arrived"
        )
    streams = _streams(rows, None, server, _ends(server), -delay_ns, findings)
    return Responses(rows, streams, 0)


def _ends(side: VantagePoint) -> dict[int, int]:
    """Return the final size of each stream whose FIN was seen."""
    return {
        frame.stream_id: frame.offset + frame.n_bytes
        for frames in side.frames.values()
        for frame in frames
        if frame.fin
    }


def _streams(
    rows: Iterable[SentRow],
    client: VantagePoint | None,
    server: VantagePoint | None,
    ends: dict[int, int],
    shift_ns: int | None,
    findings: Findings,
) -> list[StreamRow]:
    """Return the complete streams; *shift_ns* converts the server's to the client's times."""
    got: dict[int, Ranges] = {}
    first_at_ns: dict[int, int] = {}
    sizes = dict(ends)
    for _, at_ns, stream_id, offset, n_bytes, _ in rows:
        ranges = got.setdefault(stream_id, Ranges())
        sizes[stream_id] = max(sizes.get(stream_id, 0), offset + n_bytes)
        if at_ns is not None:
            ranges.add(offset, offset + n_bytes)
            first_at_ns[stream_id] = min(first_at_ns.get(stream_id, at_ns), at_ns)
    ends_reported = _ReportedEnds(client, server, shift_ns)
    gaps = _Gaps()
    streams: list[StreamRow] = []
    for stream_id in sorted(got):
        # Without a FIN, a truncated log or a reset response is recognized by the length.
        size = (
            sizes[stream_id] if stream_id in ends else ends_reported.least_bytes(stream_id, sizes)
        )
        if stream_id not in first_at_ns or got[stream_id].contiguous < size:
            gaps.add("the end of responses that are left out", stream_id)
            continue
        if stream_id not in ends:
            gaps.add("whether responses that lack a FIN are whole", stream_id)
        streams.append(ends_reported.row(stream_id, first_at_ns[stream_id], size, gaps))
    findings.unknown += gaps.lines()
    return streams


class _Gaps:
    """Missing data, and the streams concerned."""

    def __init__(self) -> None:
        self._streams: dict[str, list[int]] = {}

    def add(self, what: str, stream_id: int) -> None:
        self._streams.setdefault(what, []).append(stream_id)

    def lines(self) -> Iterator[str]:
        for what, streams in self._streams.items():
            shown = ", ".join(map(str, streams[:_SHOWN_STREAMS]))
            more = f" and {n:,} more" if (n := len(streams) - _SHOWN_STREAMS) > 0 else ""
            yield f"{what}: stream{'s' if len(streams) > 1 else ''} {shown}{more}"


class _ReportedEnds:
    """Requests and their paths in the logs of both ends."""

    def __init__(
        self, client: VantagePoint | None, server: VantagePoint | None, shift_ns: int | None
    ) -> None:
        sides = [side for side in (client, server) if side is not None]
        # The client last, so that its values win where both have one.
        self._ids = {key: name for side in reversed(sides) for key, name in side.ids.items()}
        self._bodies = {key: n for side in reversed(sides) for key, n in side.body_bytes.items()}
        self._reset_at_bytes = {
            stream_id: size for side in sides for stream_id, size in side.reset_at_bytes.items()
        }
        self._arrived_at_ns = dict(server.asked_at_ns) if server is not None else {}
        if client is None:
            self._requested_at_ns = {
                stream_id: at_ns + (shift_ns or 0)
                for stream_id, at_ns in self._arrived_at_ns.items()
            }
        else:
            self._requested_at_ns = client.asked_at_ns
            self._arrived_at_ns = {
                stream_id: at_ns + shift_ns
                for stream_id, at_ns in self._arrived_at_ns.items()
                if shift_ns is not None
            }

    def least_bytes(self, stream_id: int, sizes: dict[int, int]) -> int:
        """Return a lower bound of a stream's length: the bytes seen, and the lengths reported."""
        reported = (self._bodies.get(stream_id, 0), self._reset_at_bytes.get(stream_id, 0))
        return max(sizes[stream_id], *reported)

    def row(self, stream_id: int, first_at_ns: int, size: int, gaps: _Gaps) -> StreamRow:
        requested_at_ns = self._requested_at_ns.get(stream_id)
        if requested_at_ns is None:
            requested_at_ns = first_at_ns
            gaps.add("when requests were made; their first byte stands in", stream_id)
        if stream_id not in self._ids:
            gaps.add("what was asked for", stream_id)
        body_bytes = self._bodies.get(stream_id)
        if body_bytes is None or body_bytes > size:
            body_bytes = size
            gaps.add("how long bodies are; all bytes of the stream stand in", stream_id)
        return StreamRow(
            stream_id=stream_id,
            id=self._ids.get(stream_id, f"stream {stream_id}"),
            requested_at_ns=requested_at_ns,
            arrived_at_ns=self._arrived_at_ns.get(stream_id, requested_at_ns),
            length_bytes=size,
            body_bytes=body_bytes,
        )


_CHOICE = ": `--trace N` (`trace=N`) takes trace N alone, from 1 on"
_VANTAGES = {"client": True, "server": False}


class MeasuredResource(NamedTuple):
    """The content of a stream: the requested path, and the length of the body."""

    id: str
    body_bytes: int


@dataclass(frozen=True, kw_only=True)
class MeasuredLog:
    """A connection as recorded in a log.

    `Request.resource` is an index into *resources*. Rows of `trace.packet_rows` are ordered by
    packet number, the order of sending. *unseen_packets* is the number of packet numbers that the
    client never received: they count as lost, and their content is unknown.
    """

    title: str
    trace: Trace
    resources: tuple[MeasuredResource, ...]
    unseen_packets: int
    unknown: tuple[str, ...]
    """Missing data of the log, and what replaces it."""


def read_qlog(path: str | Path, *, trace: int | None = None) -> MeasuredLog:
    """Read one connection from the qlog at *path*.

    *trace*, from 1, selects a log in a file with several connections. If both ends were logged,
    arrivals are the client's and everything else is the server's. Times are nanoseconds since the
    log's reference, or since its first event if the reference is a time of day.

    Raises:
        LogError: if the file cannot be read, or listing its errors.
    """
    findings = Findings(str(path))
    with opened(path, findings) as stream:
        traces = select_traces(raw_traces(stream, findings), findings, trace)
        title, protocols, sides = endpoints_of(traces, findings, VantagePoint)
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


def select_traces(
    traces: Iterator[RawTrace], findings: Findings, number: int | None
) -> Iterator[RawTrace]:
    """Yield the trace with that number, or all traces without one."""
    if number is None:
        yield from traces
        return
    last = 0
    for last, raw in enumerate(traces, 1):
        if last == number:
            yield raw
            return
    findings.fatal("", f"has {last} trace{'s' * (last != 1)}, and no trace {number}")


def endpoints_of(
    traces: Iterator[RawTrace], findings: Findings, view: type[ViewT]
) -> tuple[str, list[str], dict[bool, ViewT]]:
    """Return the title, the protocols, and the views of the client (True) and the server."""
    title = ""
    protocols: list[str] = []
    sides: dict[bool, ViewT] = {}
    connections: dict[str, None] = {}
    for raw in traces:
        side = _side(raw, findings, view)
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


def _side(raw: RawTrace, findings: Findings, view: type[ViewT]) -> ViewT | None:
    """Return the view of a trace; None if it has no packets."""
    clock, events = events_of(raw, findings)
    is_client = _vantage(raw)
    side: ViewT | None = None
    for event in events:
        if side is None:
            if is_client is None:
                if event.what not in ("sent", "received"):
                    continue
                is_client = event.what == "sent"
                end = "client" if is_client else "server"
                findings.unknown.append(f"who wrote {raw.key}; by its first packet, the {end}")
            side = view(findings, clock, is_client=is_client)
        side.on_event(event)
    return side


def _vantage(raw: RawTrace) -> bool | None:
    """Return whether the client wrote a trace; None if unknown. The client sends first."""
    vantage = raw.head.get("vantage_point")
    if not isinstance(vantage, dict):
        return None
    for name in (vantage.get("type"), vantage.get("flow")):
        if str(name).casefold() in _VANTAGES:
            return _VANTAGES[str(name).casefold()]
    return None


def _trace(
    responses: Responses, delivery: Delivery, moved: Sequence[DataMoved]
) -> tuple[Trace, tuple[MeasuredResource, ...]]:
    ordered = sorted(responses.streams, key=lambda row: (row.requested_at_ns, row.stream_id))
    stream_ids = {row.stream_id for row in ordered}
    rows = responses.rows
    if delivery is Delivery.CONNECTION:
        # In a single order nothing is delivered after missing bytes; leave such rows out.
        rows = [row for row in rows if row[2] in stream_ids]
    trace = Trace(
        delivery=delivery,
        requests=tuple(
            Request(row.stream_id, index, row.requested_at_ns, row.arrived_at_ns, row.length_bytes)
            for index, row in enumerate(ordered)
        ),
        signals=(),
        packet_rows=with_moves(with_delivery(rows, delivery), moved),
    )
    return trace, tuple(MeasuredResource(row.id, row.body_bytes) for row in ordered)
