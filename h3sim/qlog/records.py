"""Records of logs, both written and read: stream frames, and data moved to the application."""

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
    # By stream: rising ends of delivered bytes, and the times when they were reached.
    progress: dict[int, tuple[list[int], list[int]]] = {}
    for at_ns, stream_id, offset, n_bytes in sorted(moved):
        ends, times = progress.setdefault(stream_id, ([], []))
        if not ends or offset + n_bytes > ends[-1]:
            ends.append(offset + n_bytes)
            times.append(at_ns)
    return rows.with_delivery_at([_logged_delivery_ns(row, progress) for row in rows])


def _logged_delivery_ns(
    row: PacketRow, progress: dict[int, tuple[list[int], list[int]]]
) -> int | None:
    """Return when the log says that the bytes of a row were delivered."""
    _, arrived_at_ns, stream_id, offset, n_bytes, _, delivered_at_ns = row
    ends, times = progress.get(stream_id, ([], []))
    position = bisect_left(ends, offset + n_bytes)
    if delivered_at_ns is None or position == len(ends):
        return delivered_at_ns
    return max(times[position], arrived_at_ns or 0)
