"""Packet counts, and packets reassembled from the rows of a trace."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from itertools import compress, count, groupby, islice, repeat
from operator import is_, is_not, le, ne
from typing import TYPE_CHECKING

from h3sim.metrics.hol import Frame, SanderCount, count_frames, sander_count
from h3sim.ranges import Ranges
from h3sim.trace import PacketRows

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from h3sim.trace import PacketRow, SentRow, Trace


def count_packets(trace: Trace) -> tuple[int, int, int]:
    """Return how many data packets were sent, were lost, and were retransmissions."""
    rows = trace.packet_rows
    if rows.is_sent_once:
        return len(rows), 0, 0
    _, arrived, streams, offsets, lengths, numbers, _ = rows.columns
    lost = dict.fromkeys(compress(numbers, map(is_, arrived, repeat(None))))
    off_sequence = rows.off_sequence
    # Logs omit parts of streams; data that fills such a hole is sent for the first time.
    with_holes = {
        streams[index]: Ranges()
        for index, before in off_sequence
        if offsets[index] > max(before, 0)
    }
    again = {
        numbers[index]: None
        for index, _ in off_sequence
        if lengths[index] and streams[index] not in with_holes
    }
    if with_holes:
        for index in compress(count(), map(with_holes.__contains__, streams)):
            n_bytes, offset = lengths[index], offsets[index]
            if with_holes[streams[index]].add(offset, offset + n_bytes) != n_bytes:
                again[numbers[index]] = None
    return _n_distinct(numbers), len(lost), len(again)


def _n_distinct(numbers: Sequence[int]) -> int:
    """Return the number of distinct *numbers*, which mostly rise."""
    if all(map(le, numbers, islice(numbers, 1, None))):
        n_changes: int = sum(map(ne, numbers, islice(numbers, 1, None)))
        return n_changes + (len(numbers) > 0)
    return len(dict.fromkeys(numbers))


def loss_bursts(rows: Iterable[SentRow | PacketRow]) -> dict[int, int]:
    """Return the number of runs of lost data packets by run length, in the order sent.

    >>> loss_bursts([(0, None, 0, 0, 9, n) for n in range(3)] + [(0, 5, 0, 0, 9, 3)])
    {3: 1}
    """
    if isinstance(rows, PacketRows):
        fates = dict(zip(rows.columns.number, rows.columns.arrived_at_ns, strict=True))
    else:
        fates = {row[5]: row[1] for row in rows}
    lost = [number for number, arrived_at_ns in fates.items() if arrived_at_ns is None]
    if not lost:
        return {}
    # Losses are consecutive if no data packet has a number between theirs: logs may omit some.
    numbers = sorted(fates)
    positions = enumerate(bisect_left(numbers, number) for number in sorted(lost))
    # While numbers are consecutive, number and rank rise together, so their difference stays.
    runs = groupby(positions, lambda entry: entry[1] - entry[0])
    return dict(sorted(Counter(len([*run]) for _, run in runs).items()))


def count_sander(trace: Trace) -> SanderCount:
    """Return Sander's count over the packets of *trace*."""
    rows = trace.packet_rows
    if rows.is_in_order:
        return SanderCount(0, 0)  # no frame has a hole before it
    _, arrived, streams, offsets, lengths, numbers, _ = rows.columns
    # Rows are in the order sent, which is packet-number order unless a log has several
    # packet-number spaces.
    if not all(map(le, numbers, islice(numbers, 1, None))):
        return sander_count(frames_by_number(trace))
    frames = zip(streams, offsets, lengths, strict=True)
    return count_frames(compress(frames, map(is_not, arrived, repeat(None))))


def frames_by_number(trace: Trace) -> Iterator[list[Frame] | None]:
    """Yield the frames of each data packet in packet-number order; None for a lost packet."""
    frames: dict[int, list[Frame] | None] = {}
    _, arrived, streams, offsets, lengths, numbers, _ = trace.packet_rows.columns
    for arrived_at_ns, stream_id, offset, n_bytes, number in zip(
        arrived, streams, offsets, lengths, numbers, strict=True
    ):
        if arrived_at_ns is None:
            frames[number] = None
            continue
        known = frames.setdefault(number, [])
        if known is not None:
            known.append(Frame(stream_id, offset, n_bytes))
    yield from (frames[number] for number in sorted(frames))
