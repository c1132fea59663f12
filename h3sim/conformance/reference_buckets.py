"""Strict buckets as a list of streams that is searched for each pick."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from h3sim.signals import BucketPriority

if TYPE_CHECKING:
    from h3sim.signals import Signal

__all__ = ["ReferenceBuckets"]

_EXCLUSIVE, _SEQUENTIAL, _SHARED = 3, 2, 1


@dataclass
class _Stream:
    """A stream; *round* is when it may next send among those that share."""

    id: int
    place: BucketPriority
    is_active: bool = False
    round: int = 0


class ReferenceBuckets:
    """Behaves as `h3sim.schedulers.BucketScheduler` says that it does."""

    def __init__(self) -> None:
        self._streams: list[_Stream] = []
        self._round: defaultdict[int, int] = defaultdict(int)
        self._shared_goes: defaultdict[int, bool] = defaultdict(bool)

    def open(self, stream_id: int, signal: Signal) -> None:
        """Add a stream to the list."""
        self._streams.append(_Stream(stream_id, self._place(signal)))

    def update(self, stream_id: int, signal: Signal) -> None:
        """Give the stream another place."""
        stream = self._stream(stream_id)
        before, stream.place = stream.place, self._place(signal)
        if stream.place != before:
            self._queue(stream)

    def activate(self, stream_id: int) -> None:
        """Activate the stream."""
        stream = self._stream(stream_id)
        if not stream.is_active:
            stream.is_active = True
            self._queue(stream)

    def deactivate(self, stream_id: int) -> None:
        """Take the stream out of the running."""
        self._stream(stream_id).is_active = False

    def close(self, stream_id: int) -> None:
        """Take the stream off the list."""
        self._streams.remove(self._stream(stream_id))

    def pick(self) -> int | None:
        """Search the highest bucket for who sends next."""
        active = [stream for stream in self._streams if stream.is_active]
        if not active:
            return None
        bucket = max(stream.place.bucket for stream in active)
        levels = {
            level: [s for s in active if (s.place.bucket, s.place.level) == (bucket, level)]
            for level in (_EXCLUSIVE, _SEQUENTIAL, _SHARED)
        }
        # Arrival order is that of the list; those that share go by rounds, then by id.
        if levels[_EXCLUSIVE]:
            return levels[_EXCLUSIVE][0].id
        if levels[_SHARED] and (self._shared_goes[bucket] or not levels[_SEQUENTIAL]):
            return min(levels[_SHARED], key=lambda stream: (stream.round, stream.id)).id
        return levels[_SEQUENTIAL][0].id

    def charge(self, stream_id: int, n_bytes: int) -> None:  # noqa: ARG002 - a turn is a turn
        """End the stream's turn."""
        stream = self._stream(stream_id)
        bucket, level = stream.place.bucket, stream.place.level
        if level == _SHARED:
            self._round[bucket] = stream.round
            stream.round += 1
        if level != _EXCLUSIVE:
            self._shared_goes[bucket] = level == _SEQUENTIAL

    @property
    def ids(self) -> list[int]:
        """The ids of all open streams."""
        return [stream.id for stream in self._streams]

    @property
    def sending(self) -> list[int]:
        """The ids of the streams that have data."""
        return [stream.id for stream in self._streams if stream.is_active]

    def _stream(self, stream_id: int) -> _Stream:
        return next(stream for stream in self._streams if stream.id == stream_id)

    def _queue(self, stream: _Stream) -> None:
        """Whoever joins a bucket's round robin takes the first turn in the next round."""
        stream.round = self._round[stream.place.bucket] + 1

    @staticmethod
    def _place(signal: Signal) -> BucketPriority:
        if isinstance(signal, BucketPriority):
            return signal
        return BucketPriority(bucket=0, level=_SEQUENTIAL)
