"""Head-of-line blocking as Sander 2022 counts it, from what a client's log shows.

Packets are taken in the order of their numbers, which is that in which they were sent, so only
losses and the place of retransmissions count; reordering on the way does not show.
"""

from __future__ import annotations

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


class _Blocked(NamedTuple):
    """While *by* lacked bytes before *at*, this stream had none from *own_end* on."""

    by: int
    at: int
    own_end: int


class _Stream:
    __slots__ = ("blocked", "got")

    def __init__(self) -> None:
        self.got = Ranges()
        self.blocked: list[_Blocked] = []


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
    stream_bytes = connection_bytes = 0
    for packet in packets:
        for frame in packet or ():
            if not frame.n_bytes:
                continue
            stream = streams.setdefault(frame.stream_id, _Stream())
            before = stream.got.contiguous
            unseen = stream.got.add(frame.offset, frame.offset + frame.n_bytes)
            if stream.got.contiguous == before:
                stream_bytes += unseen
                connection_bytes += unseen
                _remember(streams, frame)
            elif any(_still_blocks(streams, entry, frame) for entry in stream.blocked):
                connection_bytes += unseen
    return SanderCount(stream_bytes, connection_bytes)


def _remember(streams: dict[int, _Stream], frame: Frame) -> None:
    for stream_id, stream in streams.items():
        if stream_id != frame.stream_id:
            stream.blocked.append(_Blocked(frame.stream_id, frame.offset, stream.got.end))


def _still_blocks(streams: dict[int, _Stream], entry: _Blocked, frame: Frame) -> bool:
    return streams[entry.by].got.contiguous < entry.at and frame.offset > entry.own_end
