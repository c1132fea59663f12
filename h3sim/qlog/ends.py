"""What each end of a load would have logged, in the order of time."""

from __future__ import annotations

from operator import itemgetter
from typing import TYPE_CHECKING, Any

from h3sim.qlog.moved import moves
from h3sim.qlog.priorities import field_values, priority_changes, priority_frames
from h3sim.units import to_ms

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from h3sim.qlog.packets import LoggedPacket
    from h3sim.trace import RecoveryRow, Request, Trace

__all__ = ["Log", "client_log", "server_log"]

# On an equal instant: what arrives, what comes of it, what is asked for, what is sent.
_RECEIVED, _MOVED, _PARSED, _PRIORITIZED, _LOST, _METRICS, _CREATED, _SENT = range(8)
_LATE = 8
"""Added where the response to a request arrives at the instant of the request."""


class Log:
    """The log of one end. Its events are put into words only when they are asked for."""

    def __init__(self, vantage: str) -> None:
        self.vantage = vantage
        self._rows: list[tuple[int, int, str, Callable[..., dict[str, Any]], tuple[Any, ...]]] = []

    def add(
        self, at_ns: int, rank: int, what: str, make: Callable[..., dict[str, Any]], *of: Any
    ) -> None:
        """Note that *what* happened; `make(*of)` are the data of its event."""
        self._rows.append((at_ns, rank, what, make, of))

    def events(self) -> Iterator[tuple[int, str, dict[str, Any]]]:
        """Yield (time, what happened, data), times in rising order."""
        # By time and rank alone, which is stable: what is equal stays in the order of the trace.
        self._rows.sort(key=itemgetter(0, 1))
        for at_ns, _, what, make, of in self._rows:
            yield at_ns, what, make(*of)


def server_log(
    trace: Trace,
    packets: Iterable[LoggedPacket],
    *,
    ids: Mapping[int, str],
    signals_are_sent: bool,
) -> Log:
    """Return what the server would have logged."""
    log = Log("server")
    texts = field_values(trace) if signals_are_sent else {}
    for packet in packets:
        if packet.is_down:
            log.add(packet.sent_at_ns, _SENT, "sent", _packet, packet)
        elif packet.arrived_at_ns is not None:
            log.add(packet.arrived_at_ns, _RECEIVED, "received", _packet, packet)
    for request in trace.requests:
        of = (request.stream_id, ids, texts)
        log.add(request.arrived_at_ns, _PARSED, "parsed", _request_headers, *of)
    for at_ns, frame in priority_frames(trace) if signals_are_sent else ():
        log.add(at_ns, _PARSED, "parsed", _frame, frame)
    for at_ns, data in priority_changes(trace) if signals_are_sent else ():
        log.add(at_ns, _PRIORITIZED, "prioritized", dict, data)
    for row in trace.recovery:
        for number in row.lost:
            log.add(row.at_ns, _LOST, "lost", _lost, number)
        log.add(row.at_ns, _METRICS, "metrics", _metrics, row)
    return log


def client_log(
    trace: Trace,
    packets: Iterable[LoggedPacket],
    *,
    ids: Mapping[int, str],
    bodies: Mapping[int, int],
    signals_are_sent: bool,
) -> Log:
    """Return what the client would have logged."""
    log = Log("client")
    texts = field_values(trace) if signals_are_sent else {}
    asked = {request.stream_id: request for request in trace.requests}
    for packet in packets:
        if not packet.is_down:
            log.add(packet.sent_at_ns, _SENT, "sent", _packet, packet)
        elif packet.arrived_at_ns is not None:
            streams = [frame.stream_id for frame in packet.frames]
            late = _late(packet.arrived_at_ns, streams, asked)
            log.add(packet.arrived_at_ns, _RECEIVED + late, "received", _packet, packet)
    for request in trace.requests:
        of = (request.stream_id, ids, texts)
        log.add(request.requested_at_ns, _CREATED, "created", _request_headers, *of)
    made_at_ns = {request.arrived_at_ns: request.requested_at_ns for request in trace.requests}
    for at_ns, frame in priority_frames(trace) if signals_are_sent else ():
        # A signal that reached the server with a request was sent with it; when others were, the
        # trace does not say.
        if at_ns in made_at_ns:
            log.add(made_at_ns[at_ns], _CREATED, "created", _frame, frame)
    _add_moves(log, trace, asked, bodies)
    return log


def _add_moves(
    log: Log, trace: Trace, asked: Mapping[int, Request], bodies: Mapping[int, int]
) -> None:
    unparsed = {
        stream_id: asked[stream_id].length_bytes - n_bytes
        for stream_id, n_bytes in bodies.items()
        if stream_id in asked
    }
    for at_ns, stream_id, offset, n_bytes in moves(trace):
        late = _late(at_ns, [stream_id], asked)
        log.add(at_ns, _MOVED + late, "moved", _moved, stream_id, offset, n_bytes)
        if stream_id in unparsed and offset + n_bytes >= unparsed[stream_id]:
            of = (stream_id, unparsed.pop(stream_id), bodies[stream_id])
            log.add(at_ns, _PARSED + late, "parsed", _response_headers, *of)


def _late(at_ns: int, streams: Sequence[int], asked: Mapping[int, Request]) -> int:
    """Return what keeps an arrival behind its own request; readers look for that first."""
    is_late = any(
        stream_id in asked and asked[stream_id].requested_at_ns == at_ns for stream_id in streams
    )
    return _LATE if is_late else 0


def _packet(packet: LoggedPacket) -> dict[str, Any]:
    frames: list[Any] = list(packet.frames)
    if packet.acked:
        ranges = [list(span) for span in packet.acked]
        frames.insert(0, {"frame_type": "ack", "acked_ranges": ranges})
    return {
        "header": {"packet_type": "1RTT", "packet_number": packet.number},
        "raw": {"length": packet.size_bytes},
        "frames": frames,
    }


def _lost(number: int) -> dict[str, Any]:
    return {"header": {"packet_type": "1RTT", "packet_number": number}}


def _metrics(row: RecoveryRow) -> dict[str, Any]:
    data: dict[str, Any] = {
        "min_rtt": to_ms(row.min_rtt_ns),
        "smoothed_rtt": to_ms(row.smoothed_rtt_ns),
        "latest_rtt": to_ms(row.latest_rtt_ns),
        "rtt_variance": to_ms(row.rtt_variance_ns),
        "congestion_window": row.congestion_window,
        "bytes_in_flight": row.bytes_in_flight,
    }
    if row.ssthresh is not None:
        data["ssthresh"] = row.ssthresh
    return data


def _moved(stream_id: int, offset: int, n_bytes: int) -> dict[str, Any]:
    return {
        "stream_id": stream_id,
        "offset": offset,
        "length": n_bytes,
        "from": "transport",
        "to": "application",
    }


def _request_headers(
    stream_id: int, ids: Mapping[int, str], texts: Mapping[int, str]
) -> dict[str, Any]:
    headers = [{"name": ":method", "value": "GET"}]
    if stream_id in ids:
        headers.append({"name": ":path", "value": ids[stream_id]})
    if texts.get(stream_id):
        headers.append({"name": "priority", "value": texts[stream_id]})
    return {"stream_id": stream_id, "frame": {"frame_type": "headers", "headers": headers}}


def _response_headers(stream_id: int, header_bytes: int, body_bytes: int) -> dict[str, Any]:
    headers = [
        {"name": ":status", "value": "200"},
        {"name": "content-length", "value": str(body_bytes)},
    ]
    return {
        "stream_id": stream_id,
        "length": header_bytes,
        "frame": {"frame_type": "headers", "headers": headers},
    }


def _frame(frame: dict[str, Any]) -> dict[str, Any]:
    return {"frame": frame}
