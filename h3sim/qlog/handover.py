"""When bytes of streams pass from the transport to the application, as a log tells it."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, NamedTuple

from h3sim.ranges import Ranges
from h3sim.trace import Delivery

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from h3sim.trace import Trace
    from h3sim.trace.model import PacketRow

__all__ = ["Moved", "handovers"]


class Moved(NamedTuple):
    """Bytes of a stream that are handed over at once."""

    at_ns: int
    stream_id: int
    offset: int
    n_bytes: int


class _Piece(NamedTuple):
    """Bytes sent for the first time by one packet."""

    stream_id: int
    offset: int
    end: int


def handovers(trace: Trace) -> Iterator[Moved]:
    """Yield what is handed over when, in the order of time.

    Each stream on its own where the trace says so (QUIC); otherwise everything in the order in
    which it was sent for the first time (TCP). A stream without a byte is handed over as such.
    """
    lines = _waiting(trace)
    got: dict[int, Ranges] = {}
    ended: dict[int, None] = {}
    """Streams without a byte that have arrived."""
    for at_ns, stream_id, offset, n_bytes in _arrivals(trace.packet_rows):
        got.setdefault(stream_id, Ranges()).add(offset, offset + n_bytes)
        ended[stream_id] = None
        line = lines[stream_id if trace.delivery is Delivery.STREAM else None]
        begun: dict[int, int] = {}
        upto: dict[int, int] = {}
        while line and line[0].stream_id in ended:
            piece = line[0]
            if got[piece.stream_id].contiguous < piece.end:
                break
            line.popleft()
            begun.setdefault(piece.stream_id, piece.offset)
            upto[piece.stream_id] = piece.end
        for released, start in begun.items():
            yield Moved(at_ns, released, start, upto[released] - start)


def _waiting(trace: Trace) -> dict[int | None, deque[_Piece]]:
    """Return what waits for its turn: a line for each stream, or one (None) for all."""
    lines: dict[int | None, deque[_Piece]] = {}
    ends: dict[int, int] = {}
    for _, _, stream_id, offset, n_bytes, _ in trace.packet_rows:
        known = ends.get(stream_id)
        if known is not None and offset + n_bytes <= known:
            continue
        key = stream_id if trace.delivery is Delivery.STREAM else None
        piece = _Piece(stream_id, known or 0, offset + n_bytes)
        lines.setdefault(key, deque()).append(piece)
        ends[stream_id] = offset + n_bytes
    return lines


def _arrivals(rows: Sequence[PacketRow]) -> Iterator[tuple[int, int, int, int]]:
    arrived = sorted((row[1], place) for place, row in enumerate(rows) if row[1] is not None)
    for at_ns, place in arrived:
        yield at_ns, *rows[place][2:5]
