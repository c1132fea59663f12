"""Log records: packets, data moved to and from the application, and priorities."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from h3sim.page.resource import DEFAULT_REQUEST_BYTES
from h3sim.signals import DEFAULT_URGENCY, Eps, H2Priority, Signal, StrictPriority

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from h3sim.trace import PacketRow, PacketRows, Request, Trace


_OVERHEAD_BYTES = 25
"""The assumed overhead of a packet without a wire row: short header, AEAD tag and the header of a
STREAM frame."""


class StreamFrame(NamedTuple):
    """Bytes of a stream in a packet, and whether the stream ends with them."""

    stream_id: int
    offset: int
    n_bytes: int
    fin: bool


@dataclass(slots=True, kw_only=True)
class LoggedPacket:
    """A packet on its way to the client (*is_down*) or to the server."""

    is_down: bool
    number: int
    sent_at_ns: int
    arrived_at_ns: int | None
    size_bytes: int
    acked: tuple[tuple[int, int], ...] = ()
    frames: list[StreamFrame] = field(default_factory=list)


def logged_packets(trace: Trace, request_bytes: Mapping[int, int]) -> list[LoggedPacket]:
    """Return the packets of *trace* in both directions, each by number.

    Packets without a wire row are reconstructed from their payload: a response packet has 25 bytes
    of overhead, and each request is in a packet of its own.
    """
    packets = {
        (row.is_down, row.number): LoggedPacket(
            is_down=row.is_down,
            number=row.number,
            sent_at_ns=row.sent_at_ns,
            arrived_at_ns=row.arrived_at_ns,
            size_bytes=row.size_bytes,
            # Rows have ranges highest first, ACK frames of a log lowest first.
            acked=tuple(sorted(row.acked)),
        )
        for row in trace.wire
    }
    _add_responses(trace, packets)
    upward = [packet for packet in packets.values() if not packet.is_down]
    if upward:
        _add_requests(trace.requests, upward, request_bytes)
    else:
        for packet in _request_packets(trace.requests, request_bytes):
            packets[False, packet.number] = packet
    return [packets[key] for key in sorted(packets)]


def _add_responses(trace: Trace, packets: dict[tuple[bool, int], LoggedPacket]) -> None:
    """Add the stream frames of packets down."""
    ends = {request.stream_id: request.length_bytes for request in trace.requests}
    known = frozenset(packets)
    for sent_at_ns, arrived_at_ns, stream_id, offset, n_bytes, number, _ in trace.packet_rows:
        key = (True, number)
        packet = packets.get(key)
        if packet is None:
            packet = packets[key] = LoggedPacket(
                is_down=True,
                number=number,
                sent_at_ns=sent_at_ns,
                arrived_at_ns=arrived_at_ns,
                size_bytes=_OVERHEAD_BYTES,
            )
        # A wire row has the full size.
        if key not in known:
            packet.size_bytes += n_bytes
        fin = offset + n_bytes == ends.get(stream_id)
        packet.frames.append(StreamFrame(stream_id, offset, n_bytes, fin))


def _request_packets(
    requests: Iterable[Request], request_bytes: Mapping[int, int]
) -> Iterable[LoggedPacket]:
    """Yield one packet per request, if packets up were not recorded."""
    for number, request in enumerate(requests):
        n_bytes = request_bytes.get(request.stream_id, DEFAULT_REQUEST_BYTES)
        yield LoggedPacket(
            is_down=False,
            number=number,
            sent_at_ns=request.requested_at_ns,
            arrived_at_ns=request.arrived_at_ns,
            size_bytes=n_bytes + _OVERHEAD_BYTES,
            frames=[StreamFrame(request.stream_id, 0, n_bytes, True)],
        )


def _add_requests(
    requests: Iterable[Request], upward: list[LoggedPacket], request_bytes: Mapping[int, int]
) -> None:
    """Put each request into the packet with which it reached the server.

    Wire rows lack the content of client packets; the packet that arrived at the time of the
    request, and left no earlier than it was made, carried its last byte.
    """
    arrived: list[tuple[int, int]] = sorted(
        (packet.arrived_at_ns, index)
        for index, packet in enumerate(upward)
        if packet.arrived_at_ns is not None
    )
    for request in requests:
        at = bisect_left(arrived, (request.arrived_at_ns, 0))
        while at < len(arrived) and arrived[at][0] == request.arrived_at_ns:
            packet = upward[arrived[at][1]]
            if packet.sent_at_ns >= request.requested_at_ns:
                n_bytes = request_bytes.get(request.stream_id, DEFAULT_REQUEST_BYTES)
                packet.frames.append(StreamFrame(request.stream_id, 0, n_bytes, True))
                break
            at += 1


class DataMoved(NamedTuple):
    """Bytes of a stream that are delivered together."""

    at_ns: int
    stream_id: int
    offset: int
    n_bytes: int


def moves(trace: Trace) -> Iterator[DataMoved]:
    """Yield deliveries in the order of time.

    A stream without bytes is delivered once, with 0 bytes.
    """
    _, _, streams, offsets, lengths, _, delivered_at_ns = trace.packet_rows.columns
    delivered = sorted(
        (at_ns, index) for index, at_ns in enumerate(delivered_at_ns) if at_ns is not None
    )
    contiguous: dict[int, int] = {}
    upto: dict[tuple[int, int], int] = {}
    for at_ns, index in delivered:
        key = (at_ns, streams[index])
        upto[key] = max(upto.get(key, 0), offsets[index] + lengths[index])
    for (at_ns, stream_id), end in upto.items():
        start = contiguous.get(stream_id, 0)
        contiguous[stream_id] = end
        yield DataMoved(at_ns, stream_id, start, end - start)


def with_moves(rows: PacketRows, moved: Iterable[DataMoved]) -> PacketRows:
    """Return *rows* with the delivery times of a log.

    Rows of streams that are not in the log keep their times; rows without a time delivered nothing
    new.
    """
    reached: dict[int, tuple[list[int], list[int]]] = {}
    for at_ns, stream_id, offset, n_bytes in sorted(moved):
        ends, times = reached.setdefault(stream_id, ([], []))
        if not ends or offset + n_bytes > ends[-1]:
            ends.append(offset + n_bytes)
            times.append(at_ns)
    return rows.with_delivery_at([_reported_ns(row, reached) for row in rows])


def _reported_ns(row: PacketRow, reached: dict[int, tuple[list[int], list[int]]]) -> int | None:
    ends, times = reached.get(row[2], ([], []))
    at = bisect_left(ends, row[3] + row[4])
    return row[6] if row[6] is None or at == len(ends) else max(times[at], row[1] or 0)


_DEFAULT_FIELD_VALUE = f"u={DEFAULT_URGENCY}"
"""The default priority in full; a Priority field omits it (RFC 9218 § 4.1)."""


def field_values(trace: Trace) -> dict[int, str]:
    """Return the Priority field of each request that has one (RFC 9218 § 5).

    >>> from h3sim.trace import Delivery, SignalSent, Trace
    >>> said = (SignalSent(0, 0, Eps(urgency=0, incremental=True)), SignalSent(0, 4, Eps()))
    >>> field_values(Trace(delivery=Delivery.STREAM, requests=(), signals=said))
    {0: 'u=0, i'}
    """
    values: dict[int, str] = {}
    for _, element_id, signal in trace.signals:
        if isinstance(signal, Eps):
            values.setdefault(element_id, signal.field_value)
    return {stream_id: value for stream_id, value in values.items() if value}


def priority_frames(trace: Trace) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield when priority frames arrived, and the frames: of dependency trees, updates of EPS.

    Buckets and ranks have no frame, and are not sent.
    """
    has_field: dict[int, None] = {}
    for at_ns, element_id, signal in trace.signals:
        if isinstance(signal, H2Priority | StrictPriority):
            yield at_ns, _in_tree(element_id, signal)
        elif isinstance(signal, Eps) and element_id in has_field:
            frame = {"element_id": element_id, "value": signal.field_value}
            yield at_ns, {"frame_type": "priority_update", **frame}
        has_field[element_id] = None


def priority_changes(trace: Trace) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the times at which the server learns or updates an RFC 9218 priority, and the data.

    The data are those of `http3:priority_updated` (draft-ietf-quic-qlog-h3-events-13 § 3.5).

    >>> from h3sim.trace import Delivery, SignalSent, Trace
    >>> signals = (SignalSent(0, 0, Eps(urgency=5)), SignalSent(7, 0, Eps(urgency=0)))
    >>> trace = Trace(delivery=Delivery.STREAM, requests=(), signals=signals)
    >>> [(at_ns, data.get("old"), data["new"]) for at_ns, data in priority_changes(trace)]
    [(0, None, 'u=5'), (7, 'u=5', 'u=0')]
    """
    known: dict[int, str] = {}
    for at_ns, stream_id, signal in trace.signals:
        if isinstance(signal, Eps):
            old = {"old": known[stream_id]} if stream_id in known else {}
            known[stream_id] = signal.field_value or _DEFAULT_FIELD_VALUE
            cause = {"trigger": "client_signal_received", "reason": "client_signal_only"}
            yield at_ns, {"stream_id": stream_id, **old, "new": known[stream_id], **cause}


def _in_tree(element_id: int, signal: Signal) -> dict[str, Any]:
    """Return a PRIORITY frame of draft-marx-qlog-event-definitions-quic-h3-00.

    The weight is the effective one, 1 to 256; without a parent it is the root.
    """
    assert isinstance(signal, H2Priority | StrictPriority)  # noqa: S101 - callers check
    frame: dict[str, Any] = {"frame_type": "priority"}
    kind, number = _element(element_id)
    frame |= {"prioritized_element_type": kind, "prioritized_element_id": number}
    if signal.depends_on is not None:
        kind, number = _element(signal.depends_on)
        frame |= {"element_dependency_type": kind, "element_dependency_id": number}
    frame |= {"weight": signal.weight}
    if isinstance(signal, StrictPriority):
        return frame | {"strict": signal.strict}
    return frame | {"exclusive": signal.exclusive}


def _element(element_id: int) -> tuple[str, int]:
    """Return the type of an element and its number; placeholders are numbered from 0."""
    return ("request_stream", element_id) if element_id >= 0 else ("placeholder", -1 - element_id)
