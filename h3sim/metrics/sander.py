"""Head-of-line blocking as Sander 2022 counts it, from what a client's log shows.

Packets are taken in the order of their numbers, which is that in which they were sent, so only
losses and the place of retransmissions count; reordering on the way does not show.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from typing import TYPE_CHECKING, NamedTuple

from h3sim.ranges import Ranges

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["Frame", "SanderCount", "sander_count"]


class Frame(NamedTuple):
    """Bytes of one stream in a packet that arrived."""

    stream_id: int
    offset: int
    n_bytes: int


class SanderCount(NamedTuple):
    """Bytes behind a hole of their own stream, and those that one order would have withheld too."""

    stream_bytes: int
    connection_bytes: int


class _Stream:
    """What has come of one stream, and when it was seen to be blocked.

    Times are numbers of blocked frames, counted over all streams.
    """

    __slots__ = ("born", "ends", "got", "holes", "times")

    def __init__(self, born: int) -> None:
        self.born = born
        """So many frames were blocked before its first one came."""
        self.got = Ranges()
        self.times: list[int] = []
        self.ends: list[int] = []
        """How far the stream had come, from each of those times on."""
        self.holes: deque[tuple[int, int]] = deque()
        """Its own blocked frames: the time, and the offset before which bytes lacked then."""

    def note_end(self, now: int) -> None:
        """Remember how far it has come by now."""
        end = self.got.end
        if self.times and self.times[-1] == now:
            self.ends[-1] = end
        elif not self.ends or self.ends[-1] != end:
            self.times.append(now)
            self.ends.append(end)

    def end_at(self, time: int) -> int:
        """Return how far it had come when that frame was blocked."""
        return self.ends[bisect_right(self.times, time) - 1]

    def first_hole(self, since: int) -> int | None:
        """Return when it was first seen to be blocked, *since* then, where it still is."""
        holes, contiguous = self.holes, self.got.contiguous
        while holes and holes[0][1] <= contiguous:
            holes.popleft()
        return next((time for time, at in holes if time >= since and at > contiguous), None)


def sander_count(packets: Iterable[Iterable[Frame] | None]) -> SanderCount:
    """Return Sander's count over *packets* by rising number; None stands for one that was lost.

    A frame that lies behind the first hole of its stream is blocked: its new bytes count in both
    sums, and every other stream known by then remembers it. A frame that does fill the head of its
    stream counts for the connection if it lies beyond what its stream had when some other stream,
    still blocked, was first seen to be (`eval/hol.py` of the paper's testbed).

    >>> frames = [[Frame(0, n * 1000, 1000)] for n in range(10)]
    >>> sander_count([*frames[:2], None, *frames[3:], frames[2]])
    SanderCount(stream_bytes=7000, connection_bytes=7000)
    """
    streams: dict[int, _Stream] = {}
    blocking: dict[int, _Stream] = {}
    """Those that have been seen to be blocked, and may still be."""
    stream_bytes = connection_bytes = n_blocked = 0
    for packet in packets:
        for frame in packet or ():
            if not frame.n_bytes:
                continue
            stream = streams.get(frame.stream_id)
            if stream is None:
                stream = streams[frame.stream_id] = _Stream(n_blocked)
            before = stream.got.contiguous
            unseen = stream.got.add(frame.offset, frame.offset + frame.n_bytes)
            if stream.got.contiguous == before:
                stream_bytes += unseen
                connection_bytes += unseen
                stream.holes.append((n_blocked, frame.offset))
                blocking[frame.stream_id] = stream
                n_blocked += 1
            elif blocking and _is_withheld(stream, frame, blocking):
                connection_bytes += unseen
            stream.note_end(n_blocked)
    return SanderCount(stream_bytes, connection_bytes)


def _is_withheld(stream: _Stream, frame: Frame, blocking: dict[int, _Stream]) -> bool:
    """Return whether some other stream still is blocked since before *frame*'s place was reached.

    How far a stream has come only grows, so of the times at which another was seen to be blocked,
    and still is, the first one says it.
    """
    for stream_id, other in list(blocking.items()):
        if other is stream:
            continue
        time = other.first_hole(stream.born)
        if not other.holes:
            del blocking[stream_id]
        if time is not None and frame.offset > stream.end_at(time):
            return True
    return False
