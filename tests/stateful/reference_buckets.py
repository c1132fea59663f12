"""Strict buckets as a list of streams that is searched for each pick."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from h3sim.signals import BucketPriority

EXCLUSIVE, SEQUENTIAL, SHARED = 3, 2, 1


@dataclass
class Stream:
    """A stream; *round* is when it may next send among those that share."""

    id: int
    place: BucketPriority
    is_active: bool = False
    round: int = 0


class ReferenceBuckets:
    """Behaves as `h3sim.schedulers.BucketScheduler` says that it does."""

    def __init__(self):
        self.streams = []
        self.round = defaultdict(int)
        self.shared_goes = defaultdict(bool)

    def open(self, stream_id, signal):
        self.streams.append(Stream(stream_id, self._place(signal)))

    def update(self, stream_id, signal):
        stream = self._stream(stream_id)
        before, stream.place = stream.place, self._place(signal)
        if stream.place != before:
            self._queue(stream)

    def activate(self, stream_id):
        stream = self._stream(stream_id)
        if not stream.is_active:
            stream.is_active = True
            self._queue(stream)

    def deactivate(self, stream_id):
        self._stream(stream_id).is_active = False

    def close(self, stream_id):
        self.streams.remove(self._stream(stream_id))

    def pick(self):
        active = [stream for stream in self.streams if stream.is_active]
        if not active:
            return None
        bucket = max(stream.place.bucket for stream in active)
        levels = {
            level: [s for s in active if (s.place.bucket, s.place.level) == (bucket, level)]
            for level in (EXCLUSIVE, SEQUENTIAL, SHARED)
        }
        # Arrival order is that of the list; those that share go by rounds, then by id.
        if levels[EXCLUSIVE]:
            return levels[EXCLUSIVE][0].id
        if levels[SHARED] and (self.shared_goes[bucket] or not levels[SEQUENTIAL]):
            return min(levels[SHARED], key=lambda stream: (stream.round, stream.id)).id
        return levels[SEQUENTIAL][0].id

    def charge(self, stream_id, n_bytes):
        stream = self._stream(stream_id)
        bucket, level = stream.place.bucket, stream.place.level
        if level == SHARED:
            self.round[bucket] = stream.round
            stream.round += 1
        if level != EXCLUSIVE:
            self.shared_goes[bucket] = level == SEQUENTIAL

    @property
    def ids(self):
        """The ids of all open streams."""
        return [stream.id for stream in self.streams]

    @property
    def sending(self):
        """The ids of the streams that have data."""
        return [stream.id for stream in self.streams if stream.is_active]

    def _stream(self, stream_id):
        return next(stream for stream in self.streams if stream.id == stream_id)

    def _queue(self, stream):
        """Whoever joins a bucket's round robin takes the first turn in the next round."""
        stream.round = self.round[stream.place.bucket] + 1

    @staticmethod
    def _place(signal):
        if isinstance(signal, BucketPriority):
            return signal
        return BucketPriority(bucket=0, level=SEQUENTIAL)
