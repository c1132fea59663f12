"""A heap of streams in which any may be dropped or given a new rank: O(log n) each."""

from __future__ import annotations

from heapq import heapify, heappop, heappush, heapreplace
from typing import Any, Final, TypeAlias

from h3sim.compiling import mypyc_attr

__all__ = ["OrderedStreams"]

_SLACK: Final = 16
"""So many entries may be out of date before the heap is made anew: few streams never pay for it."""

_Entry: TypeAlias = Any
"""A tuple of rank, tie and stream. Which one counts is asked of the object, so nothing says that it
is a tuple: compiled, one that is known for one is taken apart where it passes, and made anew."""


@mypyc_attr(allow_interpreted_subclasses=True, serializable=True)
class OrderedStreams:
    """Streams ordered by a rank, those of one rank by a tie, then by their ids.

    The first entry of the heap is never one that was dropped, so looking at it changes nothing.

    >>> streams = OrderedStreams()
    >>> streams.put(4, 1); streams.put(0, 2); streams.first
    4
    >>> streams.put(4, 3); streams.first
    0
    """

    __slots__ = ("_entries", "_heap")

    def __init__(self) -> None:
        self._heap: list[_Entry] = []
        self._entries: dict[int, _Entry] = {}

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, stream_id: int) -> bool:
        return stream_id in self._entries

    @property
    def first(self) -> int | None:
        """The stream of the lowest rank, or None where there is none."""
        if not self._heap:
            return None
        stream_id: int = self._heap[0][2]
        return stream_id

    def put(self, stream_id: int, rank: int, tie: int = 0) -> None:
        """Add the stream, or give it a new rank."""
        heap = self._heap
        entry: _Entry = (rank, tie, stream_id)
        was_first = bool(heap) and heap[0][2] == stream_id
        self._entries[stream_id] = entry
        # A stream moves mostly while it is first; one sift then does the work of a pop and a push.
        if was_first:
            heapreplace(heap, entry)
            self._drop_stale()
        else:
            heappush(heap, entry)
            if len(heap) > 2 * len(self._entries) + _SLACK:
                self._compact()

    def drop(self, stream_id: int) -> None:
        """Take the stream out; without effect where it is not in."""
        if self._entries.pop(stream_id, None) is None:
            return
        heap = self._heap
        # Else its entry lies somewhere below, and the first one still counts.
        if heap[0][2] == stream_id:
            self._drop_stale()
        if len(heap) > 2 * len(self._entries) + _SLACK:
            self._compact()

    def _drop_stale(self) -> None:
        heap, entries = self._heap, self._entries
        while heap:
            first = heap[0]
            # By identity: an entry that was left behind may equal the one that counts now.
            if entries.get(first[2]) is first:
                return
            heappop(heap)

    def _compact(self) -> None:
        # heapq removes nothing from the middle, so entries are dropped lazily. Once half are out of
        # date a new heap costs no more than the changes that made them so.
        self._heap = [*self._entries.values()]
        heapify(self._heap)
