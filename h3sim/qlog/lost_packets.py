"""The lost packets of a client's log, and the bytes of responses that they carried.

A client knows of a packet that it never got at most the number, and not even that it was sent:
servers skip numbers, so that a receiver that acknowledges what it never got is noticed (RFC 9000
§ 21.4). Lost packets leave gaps in streams; where no stream has a gap, nothing was lost.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from heapq import heappop, heappush
from typing import TYPE_CHECKING, NamedTuple

from h3sim.qlog.records import StreamFrame

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence


def lost_frames(
    received: Mapping[int, Sequence[StreamFrame]], missing: Sequence[int]
) -> dict[int, list[StreamFrame]]:
    """Return what those of the *missing* packets carried that were lost, by number.

    *received* has the stream frames of the packets that arrived, in order of their numbers, which
    is that of sending. A gap of a stream was sent after what is before it, and before what is
    behind it. Where bytes arrive after other packets were lost and many packets after the ones
    before them, they may have been lost, too: that is how the end of a response is lost. Empty if
    no stream has a gap: then the numbers were skipped, not lost.

    >>> frames = {0: [StreamFrame(0, 0, 10, False)], 2: [StreamFrame(0, 20, 10, False)]}
    >>> lost_frames(frames, [1])
    {1: [StreamFrame(stream_id=0, offset=10, n_bytes=10, fin=False)]}
    >>> lost_frames({0: frames[0], 2: [StreamFrame(0, 10, 10, False)]}, [1])
    {}
    """
    gaps: list[Missing] = []
    later: list[Missing] = []
    last: dict[int, tuple[int, int]] = {}
    for at, frames in received.items():
        for frame in frames:
            start, stop = frame.offset, frame.offset + frame.n_bytes
            number, upto = last.get(frame.stream_id, (-1, 0))
            if start > upto:
                gaps.append(Missing(at, number, frame.stream_id, upto, start))
            if stop > upto and number >= 0:
                # Behind a gap it may be late as well: of a lost end, any part may arrive first.
                later.append(Missing(at, number, frame.stream_id, max(start, upto), stop))
            if stop > upto:
                last[frame.stream_id] = (at, stop)
    if not (gaps and missing):
        return {}
    sizes = (sum(frame.n_bytes for frame in frames) for frames in received.values())
    room = LostRoom(missing, max(sizes))
    room.assign_gaps(gaps)
    room.assign_ends(later)
    return dict(sorted(room.frames.items()))


class Missing(NamedTuple):
    """Bytes that were sent between packets *after* and *before*."""

    before: int
    after: int
    stream_id: int
    start: int
    stop: int


_NEAR_PACKETS = 12
"""A response was lost at most so many packets behind the bytes before it, or ahead of those behind
it."""
MIN_FRAME_BYTES = 32
"""The least bytes of a stream that are worth a frame in a packet that has others."""


class LostRoom:
    """The lost packets of a log, and the bytes that each may have carried."""

    def __init__(self, lost: Sequence[int], capacity_bytes: int) -> None:
        self._lost = lost
        self._capacity_bytes = capacity_bytes
        self._least_bytes = min(MIN_FRAME_BYTES, capacity_bytes)
        self._left = dict.fromkeys(lost, capacity_bytes)
        self.frames: dict[int, list[StreamFrame]] = {}
        """The inferred frames of each packet that carried any."""

    def assign_gaps(self, gaps: Iterable[Missing]) -> None:
        """Place each gap in the packets between those around it, the most urgent one first.

        A packet that does not end a stream is full of it, so each has bytes of one gap, as long as
        there are packets for that.
        """
        by_start = sorted((self._after(gap), gap) for gap in gaps)
        if not self._assign_gaps(by_start, is_shared=False):
            self._left = dict.fromkeys(self._lost, self._capacity_bytes)
            self.frames.clear()
            self._assign_gaps(by_start, is_shared=True)

    def _assign_gaps(self, by_start: list[tuple[int, Missing]], *, is_shared: bool) -> bool:
        """Assign gaps to packets, which they may share or not; return whether all were assigned."""
        waiting: list[Missing] = []
        position = 0
        are_all_assigned = True
        for number in self._lost:
            while position < len(by_start) and by_start[position][0] < number:
                heappush(waiting, by_start[position][1])
                position += 1
            while waiting and self._left[number] >= self._least_bytes:
                if number in self.frames and not is_shared:
                    break
                gap = heappop(waiting)
                if gap.before <= number:  # it is more than its packets can have carried
                    are_all_assigned = False
                elif (rest := self._assign(number, gap)) is not None:
                    heappush(waiting, rest)
        return are_all_assigned and not waiting and position == len(by_start)

    def _after(self, gap: Missing) -> int:
        """Return the packet that a gap comes after; a response begins just ahead of the rest."""
        if gap.after >= 0:
            return gap.after
        n_packets = (gap.stop - gap.start) // self._capacity_bytes + 1
        near = gap.before - _NEAR_PACKETS - n_packets
        index = bisect_left(self._lost, gap.before)
        return near if index and self._lost[index - 1] > near else gap.after

    def assign_ends(self, ends: Iterable[Missing]) -> None:
        """Place bytes that arrive late in what is left of the packets that they may be from."""
        begun: dict[int, tuple[int, int]] = {}
        """The last packet before the lost end of each stream, and the last one assigned for it."""
        for end in ends:
            after, assigned = begun.pop(end.stream_id, (end.after, end.after))
            if end.before - after <= _NEAR_PACKETS:
                continue
            # A burst of losses may be long: each packet of it need only be near the one before.
            first, last = (bisect_right(self._lost, at) for at in (after, assigned + _NEAR_PACKETS))
            n_bytes = end.stop - end.start
            least = min(n_bytes, MIN_FRAME_BYTES)  # an end of a few bytes leaves in any packet
            numbers = [number for number in self._lost[first:last] if self._left[number] >= least]
            if sum(self._left[number] for number in numbers) < n_bytes:
                continue
            rest: Missing | None = end
            for number in numbers:
                if rest is not None:
                    rest, assigned = self._assign(number, rest), number
            begun[end.stream_id] = after, assigned

    def _assign(self, number: int, missing: Missing) -> Missing | None:
        """Place bytes in a packet; return what is left of them."""
        n_bytes = min(self._left[number], missing.stop - missing.start)
        frame = StreamFrame(missing.stream_id, missing.start, n_bytes, False)
        self.frames.setdefault(number, []).append(frame)
        self._left[number] -= n_bytes
        rest = missing._replace(start=missing.start + n_bytes)
        return rest if rest.start < rest.stop else None
