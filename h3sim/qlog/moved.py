"""Bytes that pass from the transport to the application, as a client logs them; and back."""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from h3sim.trace import PacketRow, PacketRows, Trace

__all__ = ["Moved", "moves", "with_moves"]


class Moved(NamedTuple):
    """Bytes of a stream that are delivered at once."""

    at_ns: int
    stream_id: int
    offset: int
    n_bytes: int


def moves(trace: Trace) -> Iterator[Moved]:
    """Yield what is delivered when, in the order of time.

    A stream without a byte is delivered as such.
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
        yield Moved(at_ns, stream_id, start, end - start)


def with_moves(rows: PacketRows, moved: Iterable[Moved]) -> PacketRows:
    """Return *rows* with the times at which a log says that their bytes were delivered.

    Rows whose stream the log says nothing of keep the time they have, and rows without one have
    brought nothing new.
    """
    reached: dict[int, tuple[list[int], list[int]]] = {}
    for at_ns, stream_id, offset, n_bytes in sorted(moved):
        ends, times = reached.setdefault(stream_id, ([], []))
        if not ends or offset + n_bytes > ends[-1]:
            ends.append(offset + n_bytes)
            times.append(at_ns)
    return rows.with_delivery_at([_said_ns(row, reached) for row in rows])


def _said_ns(row: PacketRow, reached: dict[int, tuple[list[int], list[int]]]) -> int | None:
    ends, times = reached.get(row[2], ([], []))
    at = bisect_left(ends, row[3] + row[4])
    return row[6] if row[6] is None or at == len(ends) else max(times[at], row[1] or 0)
