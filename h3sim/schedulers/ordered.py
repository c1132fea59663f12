"""A heap of streams in which any may be dropped or given a new rank: O(log n) each."""

from __future__ import annotations

from heapq import heapify, heappop, heappush, heapreplace
from typing import TypeAlias

__all__ = ["OrderedStreams"]

_SLACK = 16

Rank: TypeAlias = tuple[int, int]
"""What a stream is ordered by; the second part, unique to it, settles ties."""


class OrderedStreams:
    """Streams ordered by a rank.

    The first entry of the heap is never one that was dropped, so looking at it changes nothing.

    >>> streams = OrderedStreams()
    >>> streams.put(4, (1, 4)); streams.put(0, (2, 0)); streams.first
    4
    >>> streams.put(4, (3, 4)); streams.first
    0
    """

    __slots__ = ("_heap", "_ranks")

    def __init__(self) -> None:
        self._heap: list[tuple[Rank, int]] = []
        self._ranks: dict[int, Rank] = {}

    def __len__(self) -> int:
        return len(self._ranks)

    def __contains__(self, stream_id: int) -> bool:
        return stream_id in self._ranks

    @property
    def first(self) -> int | None:
        """The stream of the lowest rank, or None where there is none."""
        return self._heap[0][1] if self._heap else None

    def put(self, stream_id: int, rank: Rank) -> None:
        """Add the stream, or give it a new rank."""
        was_first = bool(self._heap) and self._heap[0][1] == stream_id
        self._ranks[stream_id] = rank
        if was_first:
            heapreplace(self._heap, (rank, stream_id))
            self._drop_stale()
        else:
            heappush(self._heap, (rank, stream_id))
            self._compact()

    def drop(self, stream_id: int) -> None:
        """Take the stream out; without effect where it is not in."""
        if self._ranks.pop(stream_id, None) is not None:
            self._drop_stale()
            self._compact()

    def _drop_stale(self) -> None:
        heap, ranks = self._heap, self._ranks
        while heap and ranks.get(heap[0][1]) != heap[0][0]:
            heappop(heap)

    def _compact(self) -> None:
        if len(self._heap) > 2 * len(self._ranks) + _SLACK:
            self._heap = [(rank, stream_id) for stream_id, rank in self._ranks.items()]
            heapify(self._heap)
