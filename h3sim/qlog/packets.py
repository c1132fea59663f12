"""The packets of a trace as a log tells them: numbers, sizes, what each carries."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from h3sim.page.resource import DEFAULT_REQUEST_BYTES

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from h3sim.trace import Request, Trace

__all__ = ["LoggedPacket", "StreamFrame", "logged_packets"]

_OVERHEAD_BYTES = 25
"""What a packet takes beside its payload, where no row of the wire says it: short header, AEAD tag
and the header of a STREAM frame."""


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
    """Return the packets of *trace* both ways, each way by rising number.

    Where the trace has no row of the wire, packets are made from what they carry: a response
    packet takes its payload and 25 bytes more, and each request travels in a packet of its own.
    """
    packets = {
        (row.is_down, row.number): LoggedPacket(
            is_down=row.is_down,
            number=row.number,
            sent_at_ns=row.sent_at_ns,
            arrived_at_ns=row.arrived_at_ns,
            size_bytes=row.size_bytes,
            # Rows have them highest first, ACK frames of a log lowest first.
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
        # A row of the wire has said the size with all that is in it.
        if key not in known:
            packet.size_bytes += n_bytes
        fin = offset + n_bytes == ends.get(stream_id)
        packet.frames.append(StreamFrame(stream_id, offset, n_bytes, fin))


def _request_packets(
    requests: Iterable[Request], request_bytes: Mapping[int, int]
) -> Iterable[LoggedPacket]:
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

    Rows of the wire do not say what client packets carry; the one that arrived when the request
    did, and left no earlier than it was made, brought its last byte.
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
