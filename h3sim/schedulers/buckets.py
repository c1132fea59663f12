"""Strict buckets with three concurrency levels (Meenan's proposal for HTTP/3, Marx 2019 Fig. 7)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from h3sim.schedulers.levels import SEQUENTIAL, Bucket
from h3sim.schedulers.queues import IndexedHeap
from h3sim.signals import BucketPriority

if TYPE_CHECKING:
    from h3sim.signals import Signal


class BucketScheduler:
    """Empties the highest bucket first; `BucketPriority` says where a stream belongs.

    A signal of another type counts as bucket 0, level 2, the place of what is not urgent at all.

    >>> scheduler = BucketScheduler()
    >>> for stream_id, bucket in ((0, 31), (4, 63)):
    ...     scheduler.open(stream_id, BucketPriority(bucket=bucket, level=3))
    ...     scheduler.activate(stream_id)
    >>> scheduler.pick()
    4
    """

    def __init__(self) -> None:
        self._place: dict[int, BucketPriority] = {}
        self._arrival: dict[int, int] = {}
        self._arrived = 0
        self._buckets: dict[int, Bucket] = {}
        self._active: dict[int, BucketPriority] = {}
        self._nonempty = IndexedHeap()

    def open(self, stream_id: int, signal: Signal) -> None:
        """Put the stream behind those that arrived before it."""
        self._place[stream_id] = _place(signal)
        # Kept from the opening on: a stream that was blocked comes back to where it stood in its
        # queue.
        self._arrival[stream_id] = self._arrived
        self._arrived += 1

    def update(self, stream_id: int, signal: Signal) -> None:
        """Move the stream to another bucket or level; one that stays keeps its turn."""
        before, self._place[stream_id] = self._place[stream_id], _place(signal)
        if stream_id in self._active and self._place[stream_id] != before:
            self.deactivate(stream_id)
            self.activate(stream_id)

    def activate(self, stream_id: int) -> None:
        """Activate the stream."""
        if stream_id in self._active:
            return
        place = self._active[stream_id] = self._place[stream_id]
        bucket = self._buckets.get(place.bucket)
        if bucket is None:
            # Kept when it is empty: whose turn it is among levels 1 and 2 outlasts a pause.
            bucket = self._buckets[place.bucket] = Bucket()
        bucket.join(stream_id, place.level, self._arrival[stream_id])
        if place.bucket not in self._nonempty:
            # The heap gives the lowest rank first, and the highest bucket is to go first.
            self._nonempty.put(place.bucket, -place.bucket)

    def deactivate(self, stream_id: int) -> None:
        """Take the stream out of the running."""
        place = self._active.pop(stream_id, None)
        if place is None:
            return
        bucket = self._buckets[place.bucket]
        bucket.leave(stream_id, place.level)
        if bucket.is_empty():
            self._nonempty.drop(place.bucket)

    def close(self, stream_id: int) -> None:
        """Forget the stream."""
        self.deactivate(stream_id)
        del self._place[stream_id], self._arrival[stream_id]

    def pick(self) -> int | None:
        """Return who sends next in the highest bucket that has an active stream."""
        number = self._nonempty.first
        return None if number is None else self._buckets[number].first()

    def charge(self, stream_id: int, n_bytes: int) -> None:
        """End the stream's turn."""
        place = self._active[stream_id]
        self._buckets[place.bucket].charge(stream_id, place.level)


_NOT_URGENT = BucketPriority(bucket=0, level=SEQUENTIAL)


def _place(signal: Signal) -> BucketPriority:
    return signal if isinstance(signal, BucketPriority) else _NOT_URGENT
