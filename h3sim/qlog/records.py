"""Log records that are written and read: frames of streams, and data moved to the application."""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

    from h3sim.trace import PacketRow, PacketRows


class StreamFrame(NamedTuple):
    """Bytes of a stream in a packet, and whether the stream ends with them."""

    stream_id: int
    offset: int
    n_bytes: int
    fin: bool


class DataMoved(NamedTuple):
    """Bytes of a stream that are delivered together."""

    at_ns: int
    stream_id: int
    offset: int
    n_bytes: int


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
