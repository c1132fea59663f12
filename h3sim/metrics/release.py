"""When the bytes of each packet could be handed over: within the stream, and in one order."""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING, NamedTuple

from h3sim.ranges import Ranges
from h3sim.trace import Delivery

if TYPE_CHECKING:
    from collections.abc import Sequence

    from h3sim.trace import Trace
    from h3sim.trace.model import PacketRow

__all__ = ["Releases", "releases"]

Times = list[int | None]


class Releases(NamedTuple):
    """For each row of `Trace.packet_rows`, three times in nanoseconds; None if it never arrived.

    `arrived`: when it arrived. `stream`: when its stream was there without a hole up to its end
    (what QUIC waits for). `connection`: when everything first sent before its end was there too
    (what one order over the connection, TCP's, waits for).
    """

    arrived: Times
    stream: Times
    connection: Times

    def handed_over(self, delivery: Delivery) -> Times:
        """Return when each row's bytes were handed over in that order."""
        return self.stream if delivery is Delivery.STREAM else self.connection


def releases(trace: Trace) -> Releases:
    """Return when the bytes of each packet of *trace* could be handed over.

    Where nothing is lost and each stream is sent in order, both waits are for the latest arrival
    so far; otherwise the streams are put together in the order of arrival.
    """
    arrived: Times = [row[1] for row in trace.packet_rows]
    simple = _in_order(trace.packet_rows)
    return Releases(arrived, *(simple or _reassembled(trace.packet_rows)))


def _in_order(rows: Sequence[PacketRow]) -> tuple[Times, Times] | None:
    """Return both times by running maxima, or None where rows were lost or sent out of order."""
    stream: Times = []
    connection: Times = []
    latest = 0
    latest_of: dict[int, tuple[int, int]] = {}
    for _, arrived_at_ns, stream_id, offset, n_bytes, _ in rows:
        end, at_ns = latest_of.get(stream_id, (0, 0))
        if arrived_at_ns is None or offset != end:
            return None
        latest = max(latest, arrived_at_ns)
        at_ns = max(at_ns, arrived_at_ns)
        latest_of[stream_id] = (end + n_bytes, at_ns)
        stream.append(at_ns)
        connection.append(latest)
    return stream, connection


class _First:
    """The rows that sent bytes of one stream for the first time: their ends rise."""

    __slots__ = ("ends", "places")

    def __init__(self) -> None:
        self.ends: list[int] = []
        self.places: list[int] = []


def _reassembled(rows: Sequence[PacketRow]) -> tuple[Times, Times]:
    """Put the streams together in the order of arrival."""
    firsts = _first_rows(rows)
    whole: list[int | None] = [None] * len(rows)
    """For rows that sent something for the first time: when all up to their end was there."""
    stream = _in_stream(rows, firsts, whole)
    in_order = _running_maximum(firsts, whole, len(rows))
    connection: Times = [None] * len(rows)
    for place, (_, arrived_at_ns, stream_id, offset, n_bytes, _) in enumerate(rows):
        if arrived_at_ns is None:
            continue
        first = firsts[stream_id]
        at = first.places[
            min(bisect_right(first.ends, max(offset + n_bytes - 1, 0)), len(first.places) - 1)
        ]
        until = in_order[at]
        connection[place] = None if until is None else max(until, arrived_at_ns)
    return stream, connection


def _first_rows(rows: Sequence[PacketRow]) -> dict[int, _First]:
    firsts: dict[int, _First] = {}
    for place, (_, _, stream_id, offset, n_bytes, _) in enumerate(rows):
        first = firsts.setdefault(stream_id, _First())
        if not first.ends or offset + n_bytes > first.ends[-1]:
            first.ends.append(offset + n_bytes)
            first.places.append(place)
    return firsts


def _in_stream(
    rows: Sequence[PacketRow], firsts: dict[int, _First], whole: list[int | None]
) -> Times:
    """Return when each row's stream was contiguous up to its end; note the same in *whole*."""
    released: Times = [None] * len(rows)
    got: dict[int, Ranges] = {}
    waiting: dict[int, list[int]] = {}
    reached: dict[int, int] = {}
    for place in _by_arrival(rows):
        _, at_ns, stream_id, offset, n_bytes, _ = rows[place]
        ranges = got.setdefault(stream_id, Ranges())
        ranges.add(offset, offset + n_bytes)
        contiguous = ranges.contiguous
        wait = waiting.setdefault(stream_id, [])
        wait.append(place)
        if offset + n_bytes <= contiguous:
            for n in wait:
                if rows[n][3] + rows[n][4] <= contiguous:
                    released[n] = at_ns
            waiting[stream_id] = [n for n in wait if released[n] is None]
        first = firsts[stream_id]
        upto = reached.get(stream_id, 0)
        while upto < len(first.ends) and first.ends[upto] <= contiguous:
            whole[first.places[upto]] = at_ns
            upto += 1
        reached[stream_id] = upto
    return released


def _running_maximum(
    firsts: dict[int, _First], whole: list[int | None], n_rows: int
) -> list[int | None]:
    """Return, at each first row, when everything first sent up to it was there."""
    is_first = [False] * n_rows
    for first in firsts.values():
        for place in first.places:
            is_first[place] = True
    latest: int | None = 0
    until: list[int | None] = [None] * n_rows
    for place in range(n_rows):
        if is_first[place]:
            at_ns = whole[place]
            latest = None if latest is None or at_ns is None else max(latest, at_ns)
            until[place] = latest
    return until


def _by_arrival(rows: Sequence[PacketRow]) -> list[int]:
    arrived = [place for place, row in enumerate(rows) if row[1] is not None]
    return sorted(arrived, key=lambda place: (rows[place][1], place))
