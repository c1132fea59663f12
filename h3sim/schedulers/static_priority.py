"""Sequential schedulers: by stream ID (first in, first out), or by rank.

Read next, on the path of docs/reading.md: `h3sim/engine/constant_rate.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from h3sim.schedulers.queues import IndexedHeap
from h3sim.signals import Rank

if TYPE_CHECKING:
    from h3sim.signals import Signal


class FifoScheduler:
    """FIFO: the active stream of the lowest ID (Marx 2019, Table 1: fifo); signals are ignored.

    >>> from h3sim.signals import H2Priority
    >>> scheduler = FifoScheduler()
    >>> for stream_id in (4, 0):
    ...     scheduler.open(stream_id, H2Priority())
    ...     scheduler.activate(stream_id)
    >>> scheduler.pick()
    0
    """

    def __init__(self) -> None:
        self._active = IndexedHeap()

    def open(self, stream_id: int, signal: Signal) -> None:
        """Open the stream."""

    def update(self, stream_id: int, signal: Signal) -> None:
        """Ignore the signal."""

    def activate(self, stream_id: int) -> None:
        """Activate the stream."""
        # Stream IDs rise in the order of the requests (RFC 9000 § 2.1), so the ID is the rank.
        if stream_id not in self._active:
            self._active.put(stream_id, stream_id)

    def deactivate(self, stream_id: int) -> None:
        """Deactivate the stream."""
        self._active.drop(stream_id)

    def close(self, stream_id: int) -> None:
        """Forget the stream."""
        self._active.drop(stream_id)

    def pick(self) -> int | None:
        """Return the active stream of the lowest ID."""
        return self._active.first

    def charge(self, stream_id: int, n_bytes: int) -> None:
        """Do nothing: a stream is sent to its end."""


class RankScheduler:
    """Static priority by `Rank`, the lowest first; equal ranks in the order of activation.

    Streams of one rank are therefore sent sequentially. A signal of another type counts as rank 0.

    >>> scheduler = RankScheduler()
    >>> for stream_id, value in ((0, 3), (4, -1)):
    ...     scheduler.open(stream_id, Rank(value=value))
    ...     scheduler.activate(stream_id)
    >>> scheduler.pick()
    4
    """

    def __init__(self) -> None:
        self._ranks: dict[int, int] = {}
        self._active = IndexedHeap()
        self._activation_number: dict[int, int] = {}
        """The tie-breaker among equal ranks, for each active stream."""
        self._n_activations = 0

    def open(self, stream_id: int, signal: Signal) -> None:
        """Open the stream."""
        self._ranks[stream_id] = _rank(signal)

    def update(self, stream_id: int, signal: Signal) -> None:
        """Change the stream's rank; its position among those of that rank is by activation."""
        self._ranks[stream_id] = _rank(signal)
        # With its old number: a change of rank does not send it behind its new equals.
        if stream_id in self._active:
            self._enqueue(stream_id)

    def activate(self, stream_id: int) -> None:
        """Activate the stream, behind others of its rank."""
        if stream_id not in self._active:
            # A stream that was blocked returns behind its equals, which have started meanwhile.
            self._activation_number[stream_id] = self._n_activations
            self._n_activations += 1
            self._enqueue(stream_id)

    def deactivate(self, stream_id: int) -> None:
        """Deactivate the stream."""
        self._active.drop(stream_id)
        self._activation_number.pop(stream_id, None)

    def close(self, stream_id: int) -> None:
        """Forget the stream."""
        self.deactivate(stream_id)
        del self._ranks[stream_id]

    def pick(self) -> int | None:
        """Return the active stream of the lowest rank."""
        return self._active.first

    def charge(self, stream_id: int, n_bytes: int) -> None:
        """Do nothing: a stream is sent to its end."""

    def _enqueue(self, stream_id: int) -> None:
        self._active.put(stream_id, self._ranks[stream_id], self._activation_number[stream_id])


def _rank(signal: Signal) -> int:
    """Return the rank in a signal; 0 for signals of other types."""
    return signal.value if isinstance(signal, Rank) else 0
