"""Head-of-line blocking: exactly, and as counted by Sander 2022.

Let a(g) be the arrival of packet g, q(g) the time when its stream is complete up to the end of g,
and r(g) the time when everything sent before g has arrived as well. Then a packet is blocked within
its stream for q - a, and across a connection for r - a, so independent streams save r - q. Both are
computed for any load, whichever order its transport delivers in.

Packets are taken in packet-number order, the order in which they were sent, so only losses and the
positions of retransmissions count; reordering in the network has no effect.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections import Counter, deque
from itertools import chain, compress, count, groupby, islice, repeat
from operator import eq, is_, is_not, le, ne, sub
from typing import TYPE_CHECKING, NamedTuple

from h3sim.trace import Delivery, PacketRows, delivered_in_one_order, delivered_per_stream
from h3sim.values.ranges import Ranges

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from h3sim.trace import PacketRow, SentRow, Trace


class HolBlocking(NamedTuple):
    """Blocked bytes of streams, headers included, and the sum of their packets' waiting times.

    The sums are packet-nanoseconds: a gap of 10 ms that blocks 100 packets adds up to 1000 ms,
    possibly more than the load takes.
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
    if rows.is_in_order:
        return HolBlocking(0, 0, 0, 0)
    per_stream, in_one_order = _orders(trace)
    return HolBlocking(*_blocked(rows, per_stream), *_blocked(rows, in_one_order))


class BlockedParts(NamedTuple):
    """The number of blocked parts of packets: within their streams, and across the connection.

    A packet with bytes of several streams has a part of each.
    """

    stream: int
    connection: int


def count_blocked(trace: Trace) -> BlockedParts:
    """Return of how many parts of packets `hol_blocking` sums the waits."""
    rows = trace.packet_rows
    if rows.is_in_order:
        return BlockedParts(0, 0)
    per_stream, in_one_order = _orders(trace)
    return BlockedParts(_n_blocked(rows, per_stream), _n_blocked(rows, in_one_order))


def _orders(trace: Trace) -> tuple[Sequence[int | None], Sequence[int | None]]:
    """Return when the rows of packets are delivered: per stream, and in one order."""
    rows = trace.packet_rows
    per_stream: Sequence[int | None] = rows.columns.delivered_at_ns
    if trace.delivery is Delivery.CONNECTION:
        per_stream = delivered_per_stream(rows)
    return per_stream, delivered_in_one_order(rows, per_stream)


def _n_blocked(rows: PacketRows, delivered: Sequence[int | None]) -> int:
    """Return the number of rows that are *delivered* after their arrival."""
    pairs = zip(rows.columns.arrived_at_ns, delivered, strict=True)
    return sum(
        arrived_at_ns is not None
        and delivered_at_ns is not None
        and delivered_at_ns > arrived_at_ns
        for arrived_at_ns, delivered_at_ns in pairs
    )


def _blocked(rows: PacketRows, delivered: Sequence[int | None]) -> tuple[int, int]:
    """Return the bytes of packets *delivered* after their arrival, and the sum of their waits."""
    blocked_bytes = delay_ns = 0
    _, arrived, _, _, lengths, *_ = rows.columns
    # Most packets did not wait, and are skipped by comparing the two columns.
    waited = compress(zip(arrived, lengths, delivered, strict=True), map(ne, arrived, delivered))
    for arrived_at_ns, n_bytes, delivered_at_ns in waited:
        if arrived_at_ns is None or delivered_at_ns is None:  # lost, or without new data
            continue
        if delivered_at_ns > arrived_at_ns:
            blocked_bytes += n_bytes
            delay_ns += delivered_at_ns - arrived_at_ns
    return blocked_bytes, delay_ns


def stacks(trace: Trace) -> dict[int, int]:
    """Return the number of stacks of each height in *trace*, lowest first.

    A stack is the set of packets whose data is delivered at one instant, and its height their
    number.
    """
    rows = trace.packet_rows
    if rows.has_distinct_deliveries:
        return {1: len(rows)} if len(rows) else {}
    columns = rows.columns
    return stack_histogram(once_per_packet(columns.delivered_at_ns, columns.number))


def once_per_packet(
    delivered_at_ns: Sequence[int | None], numbers: Sequence[int]
) -> Iterable[int | None]:
    """Return the times at which rows were delivered, one for the rows of a packet at one instant.

    A packet with frames of several streams has as many rows, one behind the other.

    >>> list(once_per_packet([10, 10, 20, 20], [0, 0, 0, 1]))
    [10, 20, 20]
    """
    if not any(map(eq, numbers, islice(numbers, 1, None))):
        return delivered_at_ns
    return _once_per_packet(delivered_at_ns, numbers)


def _once_per_packet(
    delivered_at_ns: Iterable[int | None], numbers: Iterable[int]
) -> Iterator[int | None]:
    last_number: int | None = None
    known: list[int | None] = []
    for at_ns, number in zip(delivered_at_ns, numbers, strict=True):
        if number != last_number:
            last_number, known = number, []
        if at_ns not in known:
            known.append(at_ns)
            yield at_ns


def stack_histogram(delivered_at_ns: Iterable[int | None]) -> dict[int, int]:
    """Return the number of stacks of each height, lowest first (Marx 2019, Fig. 13).

    >>> stack_histogram([10, 20, 20, 30])
    {1: 2, 2: 1}
    """
    times = sorted(at_ns for at_ns in delivered_at_ns if at_ns is not None)
    # Indices where the next instant begins. A Counter by instant would take a hundred bytes for
    # nearly every packet.
    ends = array("q", compress(count(1), map(ne, times, islice(times, 1, None))))
    if times:
        ends.append(len(times))
    return dict(sorted(Counter(map(sub, ends, chain((0,), ends))).items()))


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

    __slots__ = ("blocked", "earlier_ends", "end", "end_since", "head", "opened_at", "received")

    def __init__(self, opened_at: int) -> None:
        self.opened_at = opened_at
        """The time at which its first frame arrived."""
        self.end = 0
        """The highest offset received."""
        self.head = 0
        """The number of contiguous bytes received."""
        self.end_since = opened_at
        """The time since when *end* has had its value."""
        self.received: Ranges | None = None
        """The received ranges, while they have holes."""
        # Lists are created only when needed: there may be thousands of streams, and creating the
        # lists, and collecting garbage among them, takes longer than counting.
        self.earlier_ends: tuple[list[int], list[int]] | None = None
        """Earlier values of *end_since*, and those of *end* at the same index."""
        self.blocked: deque[tuple[int, int]] | None = None
        """Its blocked frames: their time and offset."""

    def add(self, offset: int, n_bytes: int) -> tuple[int, bool, int]:
        """Add bytes; return how many are new, whether the head grew, and the highest offset."""
        received = self.received
        if received is None:
            received = self.received = Ranges()
            received.add(0, self.end)
        previous_head = self.head
        n_new = received.add(offset, offset + n_bytes)
        self.head, end = received.contiguous, received.end
        if self.head == end:
            self.received = None
        return n_new, self.head != previous_head, end

    def record_end(self, time: int) -> None:
        """Record the highest offset until now, before it grows."""
        if self.earlier_ends is None:
            self.earlier_ends = ([], [])
        times, ends = self.earlier_ends
        times.append(self.end_since)
        ends.append(self.end)
        self.end_since = time

    def end_at(self, time: int) -> int:
        """Return the highest offset received when the frame at *time* was blocked."""
        if time >= self.end_since or self.earlier_ends is None:
            return self.end
        times, ends = self.earlier_ends
        return ends[bisect_right(times, time) - 1]

    def first_blocked(self, since: int) -> int | None:
        """Return the time of the first frame, from *since* on, that is still blocked."""
        blocked, head = self.blocked, self.head
        while blocked and blocked[0][1] <= head:
            blocked.popleft()
        for time, offset in blocked or ():
            if time >= since and offset > head:
                return time
        return None


def sander_count(packets: Iterable[Iterable[Frame] | None]) -> SanderCount:
    """Return Sander's count over *packets* in packet-number order; None for a lost packet.

    A frame beyond the first hole of its stream is blocked: its new bytes count in both sums. A
    frame that extends the contiguous bytes of its stream counts for the connection if it lies
    beyond what its stream had received when some other stream, still blocked, was first blocked
    (`eval/hol.py` of the paper's testbed).

    >>> frames = [[Frame(0, n * 1000, 1000)] for n in range(10)]
    >>> sander_count([*frames[:2], None, *frames[3:], frames[2]])
    SanderCount(stream_bytes=7000, connection_bytes=7000)
    """
    return count_frames(frame for packet in packets for frame in packet or ())


def count_frames(frames: Iterable[tuple[int, int, int]]) -> SanderCount:
    """Return Sander's count over the *frames* of all packets that arrived, in order."""
    streams: dict[int, _Stream] = {}
    blocking: dict[int, _Stream] = {}  # streams that were blocked, and may still be
    stream_bytes = connection_bytes = n_blocked = 0
    for stream_id, offset, n_bytes in frames:
        if not n_bytes:
            continue
        stream = streams.get(stream_id)
        if stream is None:
            stream = streams[stream_id] = _Stream(n_blocked)
        if offset == stream.end and stream.received is None:
            # The common case: the next bytes of a stream without a hole.
            end = offset + n_bytes
            if blocking and _is_withheld(stream, offset, blocking):
                connection_bytes += n_bytes
            # Only the end at each number of blocked frames is looked up later.
            if stream.end_since != n_blocked:
                stream.record_end(n_blocked)
            stream.head = stream.end = end
            continue
        n_new, has_grown, end = stream.add(offset, n_bytes)
        if not has_grown:
            stream_bytes += n_new
            connection_bytes += n_new
            if stream.blocked is None:
                stream.blocked = deque()
            stream.blocked.append((n_blocked, offset))
            blocking[stream_id] = stream
            n_blocked += 1
        elif blocking and _is_withheld(stream, offset, blocking):
            connection_bytes += n_new
        if end != stream.end:
            if stream.end_since != n_blocked:
                stream.record_end(n_blocked)
            stream.end = end
    return SanderCount(stream_bytes, connection_bytes)


def _is_withheld(stream: _Stream, offset: int, blocking: dict[int, _Stream]) -> bool:
    """Return whether some other stream has been blocked since before *stream* reached *offset*.

    What a stream has received only grows, so of the times at which another stream was blocked, and
    still is, the first one decides.
    """
    is_withheld = False
    unblocked: list[int] = []
    for stream_id, other in blocking.items():
        if other is stream:
            continue
        time = other.first_blocked(stream.opened_at)
        if time is None:
            if not other.blocked:
                unblocked.append(stream_id)
        elif offset > stream.end_at(time):
            is_withheld = True
            break
    # After the loop: a dict must not change while it is iterated.
    for stream_id in unblocked:
        del blocking[stream_id]
    return is_withheld


def count_packets(trace: Trace) -> tuple[int, int, int]:
    """Return how many data packets were sent, were lost, and were retransmissions."""
    rows = trace.packet_rows
    if rows.is_sent_once:
        return len(rows), 0, 0
    _, arrived, streams, offsets, lengths, numbers, _ = rows.columns
    # A packet with several frames has several rows of the same number.
    lost = set(compress(numbers, map(is_, arrived, repeat(None))))
    # Logs omit parts of streams, and data in such a gap may be sent for the first time later. In
    # the streams with gaps a retransmission is therefore data that was sent before.
    sent_of_streams_with_gaps = {
        streams[index]: Ranges()
        for index, expected_offset in rows.off_sequence
        if offsets[index] > max(expected_offset, 0)
    }
    retransmissions = {
        numbers[index]
        for index, _ in rows.off_sequence
        if lengths[index] and streams[index] not in sent_of_streams_with_gaps
    }
    if sent_of_streams_with_gaps:
        for index in compress(count(), map(sent_of_streams_with_gaps.__contains__, streams)):
            n_bytes, offset = lengths[index], offsets[index]
            sent = sent_of_streams_with_gaps[streams[index]]
            if sent.add(offset, offset + n_bytes) != n_bytes:
                retransmissions.add(numbers[index])
    return _n_distinct(numbers), len(lost), len(retransmissions)


def count_queue_drops(trace: Trace) -> int:
    """Return how many of the lost data packets the queue of the bottleneck dropped."""
    if not trace.queue_drops:
        return 0
    return len(set(trace.packet_rows.columns.number).intersection(trace.queue_drops))


def _n_distinct(numbers: Sequence[int]) -> int:
    """Return the number of distinct *numbers*; without a set in the usual case that they rise."""
    if all(map(le, numbers, islice(numbers, 1, None))):
        n_changes: int = sum(map(ne, numbers, islice(numbers, 1, None)))
        return n_changes + (len(numbers) > 0)
    return len(set(numbers))


def loss_bursts(rows: Iterable[SentRow | PacketRow]) -> dict[int, int]:
    """Return the number of runs of lost data packets by run length, in the order sent.

    >>> loss_bursts([(0, None, 0, 0, 9, n) for n in range(3)] + [(0, 5, 0, 0, 9, 3)])
    {3: 1}
    """
    if isinstance(rows, PacketRows):
        arrivals = dict(zip(rows.columns.number, rows.columns.arrived_at_ns, strict=True))
    else:
        arrivals = {row[5]: row[1] for row in rows}  # by packet number
    lost = [number for number, arrived_at_ns in arrivals.items() if arrived_at_ns is None]
    if not lost:
        return {}
    # Losses are consecutive if no data packet has a number between theirs: packet numbers
    # themselves have gaps, for packets without data.
    numbers = sorted(arrivals)
    positions = [bisect_left(numbers, number) for number in sorted(lost)]
    # In a run, the position and the index among the lost rise together: their difference is equal.
    runs = groupby(position - index for index, position in enumerate(positions))
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
    frames_by_number: dict[int, list[Frame] | None] = {}
    _, arrived, streams, offsets, lengths, numbers, _ = trace.packet_rows.columns
    for arrived_at_ns, stream_id, offset, n_bytes, number in zip(
        arrived, streams, offsets, lengths, numbers, strict=True
    ):
        if arrived_at_ns is None:
            frames_by_number[number] = None
            continue
        frames = frames_by_number.setdefault(number, [])
        if frames is not None:
            frames.append(Frame(stream_id, offset, n_bytes))
    yield from (frames_by_number[number] for number in sorted(frames_by_number))
