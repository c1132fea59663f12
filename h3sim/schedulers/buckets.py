"""Strict buckets with three concurrency levels (Meenan's proposal for HTTP/3, Marx 2019 Fig. 7)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from h3sim.schedulers.levels import SEQUENTIAL, Bucket
from h3sim.schedulers.queues import IndexedHeap
from h3sim.signals import BucketPriority

if TYPE_CHECKING:
    from h3sim.signals import Signal


class BucketScheduler:
    """A scheduler that empties the highest bucket first, by `BucketPriority`.

    Within levels 3 and 2 the lowest stream ID goes first (Marx 2019 § 3.3), which is that of the
    earliest request, also where a later request arrives first.

    A signal of another type counts as bucket 0, level 2, for the least urgent resources.

    >>> scheduler = BucketScheduler()
    >>> for stream_id, bucket in ((0, 31), (4, 63)):
    ...     scheduler.open(stream_id, BucketPriority(bucket=bucket, level=3))
    ...     scheduler.activate(stream_id)
    >>> scheduler.pick()
    4
    """

    def __init__(self) -> None:
        self._priority: dict[int, BucketPriority] = {}
        self._buckets: dict[int, Bucket] = {}
        """The buckets by their numbers."""
        self._active: dict[int, BucketPriority] = {}
        """The priority with which each active stream joined its bucket."""
        self._active_buckets = IndexedHeap()
        """The numbers of the buckets with an active stream, the highest first."""

    def open(self, stream_id: int, signal: Signal) -> None:
        """Open the stream."""
        self._priority[stream_id] = _priority(signal)

    def update(self, stream_id: int, signal: Signal) -> None:
        """Move the stream to another bucket or level; an unchanged one keeps its quantum."""
        before, self._priority[stream_id] = self._priority[stream_id], _priority(signal)
        if stream_id in self._active and self._priority[stream_id] != before:
            self.deactivate(stream_id)
            self.activate(stream_id)

    def activate(self, stream_id: int) -> None:
        """Activate the stream."""
        if stream_id in self._active:
            return
        priority = self._active[stream_id] = self._priority[stream_id]
        bucket = self._buckets.get(priority.bucket)
        if bucket is None:
            # Kept while empty: the alternation between levels 1 and 2 outlasts a pause.
            bucket = self._buckets[priority.bucket] = Bucket()
        bucket.join(stream_id, priority.level)
        if priority.bucket not in self._active_buckets:
            # The heap returns the lowest rank first, and the highest bucket has priority.
            self._active_buckets.put(priority.bucket, -priority.bucket)

    def deactivate(self, stream_id: int) -> None:
        """Deactivate the stream."""
        priority = self._active.pop(stream_id, None)
        if priority is None:
            return
        bucket = self._buckets[priority.bucket]
        bucket.leave(stream_id, priority.level)
        if bucket.is_empty():
            self._active_buckets.drop(priority.bucket)

    def close(self, stream_id: int) -> None:
        """Forget the stream."""
        self.deactivate(stream_id)
        del self._priority[stream_id]

    def pick(self) -> int | None:
        """Return the stream to send next in the highest bucket that has an active stream."""
        bucket_number = self._active_buckets.first
        return None if bucket_number is None else self._buckets[bucket_number].next_stream()

    def charge(self, stream_id: int, n_bytes: int) -> None:
        """End the stream's quantum, which is one packet."""
        priority = self._active[stream_id]
        self._buckets[priority.bucket].charge(stream_id, priority.level)


_LEAST_URGENT = BucketPriority(bucket=0, level=SEQUENTIAL)
"""The priority of streams without a `BucketPriority`."""


def _priority(signal: Signal) -> BucketPriority:
    """Return the bucket and level in a signal; the least urgent for signals of other types."""
    return signal if isinstance(signal, BucketPriority) else _LEAST_URGENT
