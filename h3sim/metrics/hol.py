"""Head-of-line blocking: exactly, and as counted by Sander 2022.

Let a(g) be the arrival of packet g, q(g) the time when its stream is complete up to the end of g,
and r(g) the time when everything sent before g has arrived as well. Then a stream blocks for q - a,
and a connection for r - a, so independent streams save r - q. Both are computed for any load,
whichever order its transport delivers in.

Packets are taken in packet-number order, the order in which they were sent, so only losses and the
positions of retransmissions count; reordering in the network has no effect.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections import Counter, deque
from itertools import chain, compress, count, groupby, islice, repeat
from operator import is_, is_not, le, ne, sub
from typing import TYPE_CHECKING, NamedTuple

from h3sim.ranges import Ranges
from h3sim.trace import Delivery, PacketRows, delivered_in_one_order, delivered_per_stream

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from h3sim.trace import PacketRow, SentRow, Trace


class HolBlocking(NamedTuple):
    """Bytes that were blocked, and the summed waiting times of their packets.

    The bytes are those of streams, response headers included. The times are packet-nanoseconds: a
    hole of 10 ms that blocks 100 packets adds up to 1000 ms, more than the load may take.
    """

    stream_bytes: int
    stream_delay_ns: int
    connection_bytes: int
    connection_delay_ns: int


def hol_blocking(trace: Trace) -> HolBlocking:
    """Return the exact head-of-line blocking of *trace*, within streams and across them.

    Over TCP a byte waits for its TLS record as well; this is not head-of-line blocking and is
    excluded, so blocking within streams is computed from arrivals there. Packets without new data
    do not count.
    """
    rows = trace.packet_rows
    per_stream: Sequence[int | None] = rows.columns.delivered_at_ns
    if rows.is_in_order:
        return HolBlocking(0, 0, 0, 0)
    if trace.delivery is Delivery.CONNECTION:
        per_stream = delivered_per_stream(rows)
    in_one_order = delivered_in_one_order(rows, per_stream)
    return HolBlocking(*_blocked(rows, per_stream), *_blocked(rows, in_one_order))


def _blocked(rows: PacketRows, until: Sequence[int | None]) -> tuple[int, int]:
    """Return the number of blocked bytes, and the summed waiting time of their packets."""
    blocked_bytes = delay_ns = 0
    _, arrived, _, _, lengths, *_ = rows.columns
    # Most did not wait: for those, comparing the two times is enough.
    waited = compress(zip(arrived, lengths, until, strict=True), map(ne, arrived, until))
    for arrived_at_ns, n_bytes, at_ns in waited:
        if at_ns is not None and arrived_at_ns is not None and at_ns > arrived_at_ns:
            blocked_bytes += n_bytes
            delay_ns += at_ns - arrived_at_ns
    return blocked_bytes, delay_ns


def stacks(trace: Trace) -> dict[int, int]:
    """Return how many stacks of each height *trace* has, lowest first."""
    rows = trace.packet_rows
    if rows.is_apart:
        return {1: len(rows)} if len(rows) else {}
    return stack_histogram(rows.columns.delivered_at_ns)


def stack_heights(delivered_at_ns: Iterable[int | None]) -> list[int]:
    """Return the number of packets delivered together at each instant, in time order.

    These are the stacks of Marx 2019, Fig. 13.

    >>> stack_heights([10, 20, 20, 30])
    [1, 2, 1]
    """
    return list(_heights(delivered_at_ns))


def stack_histogram(delivered_at_ns: Iterable[int | None]) -> dict[int, int]:
    """Return the number of stacks of each height, lowest first.

    >>> stack_histogram([10, 20, 20, 30])
    {1: 2, 2: 1}
    """
    return dict(sorted(Counter(_heights(delivered_at_ns)).items()))


def _heights(delivered_at_ns: Iterable[int | None]) -> Iterator[int]:
    """Return the number of packets delivered at each instant, in time order."""
    times = sorted(at_ns for at_ns in delivered_at_ns if at_ns is not None)
    # A counter per instant would take an entry of a hundred bytes for nearly every packet.
    ends = array("q", compress(count(1), map(ne, times, islice(times, 1, None))))
    if times:
        ends.append(len(times))
    return map(sub, ends, chain((0,), ends))


class Frame(NamedTuple):
    """Bytes of one stream in a packet that arrived."""

    stream_id: int
    offset: int
    n_bytes: int


class SanderCount(NamedTuple):
    """Bytes blocked behind a hole of their own stream, and across the connection."""

    stream_bytes: int
    connection_bytes: int


class _Stream:
    """Receive state of one stream, and the times when it was blocked.

    A time is a number of blocked frames, counted over all streams.
    """

    __slots__ = ("born", "end", "got", "head", "holes", "past", "since")

    def __init__(self, born: int) -> None:
        self.born = born
        """The number of blocked frames before its first frame arrived."""
        self.end = 0
        """The highest offset received."""
        self.head = 0
        """The contiguous bytes received."""
        self.since = born
        """The time since when it has had these contiguous bytes."""
        self.got: Ranges | None = None
        """The received ranges, while they have holes."""
        # Lists are created only when needed: there may be thousands of streams, and creating the
        # lists, and collecting garbage among them, takes longer than counting.
        self.past: tuple[list[int], list[int]] | None = None
        """Times, and the contiguous bytes that the stream had until each of them."""
        self.holes: deque[tuple[int, int]] | None = None
        """Its blocked frames: the time, and the contiguous bytes at that time."""

    def add(self, offset: int, n_bytes: int) -> tuple[int, bool, int]:
        """Add bytes; return how many are new, whether the head grew, and the end of the frame."""
        got = self.got
        if got is None:
            got = self.got = Ranges()
            got.add(0, self.end)
        before = self.head
        unseen = got.add(offset, offset + n_bytes)
        self.head, end = got.contiguous, got.end
        if self.head == end:
            self.got = None
        return unseen, self.head != before, end

    def note(self, time: int) -> None:
        """Record the contiguous bytes until now, before they grow."""
        if self.past is None:
            self.past = ([], [])
        times, ends = self.past
        times.append(self.since)
        ends.append(self.end)
        self.since = time

    def end_at(self, time: int) -> int:
        """Return the number of contiguous bytes when the frame at *time* was blocked."""
        if time >= self.since or self.past is None:
            return self.end
        times, ends = self.past
        return ends[bisect_right(times, time) - 1]

    def first_hole(self, since: int) -> int | None:
        """Return the first time since *since* that it was blocked by a hole that is still open."""
        holes, head = self.holes, self.head
        while holes and holes[0][1] <= head:
            holes.popleft()
        for time, at in holes or ():
            if time >= since and at > head:
                return time
        return None


def sander_count(packets: Iterable[Iterable[Frame] | None]) -> SanderCount:
    """Return Sander's count over *packets* in packet-number order; None for a lost packet.

    A frame beyond the first hole of its stream is blocked: its new bytes count in both sums, and
    every other stream known by then records it. A frame that extends the head of its stream counts
    for the connection if it lies beyond what its stream had when some other stream, still blocked,
    was first blocked (`eval/hol.py` of the paper's testbed).

    >>> frames = [[Frame(0, n * 1000, 1000)] for n in range(10)]
    >>> sander_count([*frames[:2], None, *frames[3:], frames[2]])
    SanderCount(stream_bytes=7000, connection_bytes=7000)
    """
    return count_frames(frame for packet in packets for frame in packet or ())


def count_frames(frames: Iterable[tuple[int, int, int]]) -> SanderCount:
    """Return Sander's count over the *frames* of all packets that arrived, in order."""
    streams: dict[int, _Stream] = {}
    blocking: dict[int, _Stream] = {}
    """Streams that were blocked, and may still be."""
    stream_bytes = connection_bytes = n_blocked = 0
    for stream_id, offset, n_bytes in frames:
        if not n_bytes:
            continue
        stream = streams.get(stream_id)
        if stream is None:
            stream = streams[stream_id] = _Stream(n_blocked)
        if offset == stream.end and stream.got is None:
            # The common case: the next bytes of a stream without a hole.
            end = offset + n_bytes
            if blocking and _is_withheld(stream, offset, blocking):
                connection_bytes += n_bytes
            # Recorded once for each number of blocked frames: only those are looked up.
            if stream.since != n_blocked:
                stream.note(n_blocked)
            stream.head = stream.end = end
            continue
        unseen, has_grown, end = stream.add(offset, n_bytes)
        if not has_grown:
            stream_bytes += unseen
            connection_bytes += unseen
            if stream.holes is None:
                stream.holes = deque()
            stream.holes.append((n_blocked, offset))
            blocking[stream_id] = stream
            n_blocked += 1
        elif blocking and _is_withheld(stream, offset, blocking):
            connection_bytes += unseen
        if end != stream.end:
            if stream.since != n_blocked:
                stream.note(n_blocked)
            stream.end = end
    return SanderCount(stream_bytes, connection_bytes)


def _is_withheld(stream: _Stream, offset: int, blocking: dict[int, _Stream]) -> bool:
    """Return whether some other stream has been blocked since before *offset* was reached.

    The head of a stream only grows, so of the times at which another stream was blocked, and still
    is, the first one decides.
    """
    is_withheld = False
    filled: list[int] = []
    for stream_id, other in blocking.items():
        if other is stream:
            continue
        time = other.first_hole(stream.born)
        if time is None:
            if not other.holes:
                filled.append(stream_id)
        elif offset > stream.end_at(time):
            is_withheld = True
            break
    # After the loop, which must not lose entries while it iterates.
    for stream_id in filled:
        del blocking[stream_id]
    return is_withheld


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
