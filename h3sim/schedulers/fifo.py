"""First in, first out: the lowest stream id is sent in full first."""

from __future__ import annotations

from typing import TYPE_CHECKING

from h3sim.schedulers.ordered import OrderedStreams

if TYPE_CHECKING:
    from h3sim.signals import Signal

__all__ = ["FifoScheduler"]


class FifoScheduler:
    """Sends the active stream of the lowest id (Marx 2019, Table 1: fifo); signals are ignored.

    >>> from h3sim.signals import H2Priority
    >>> scheduler = FifoScheduler()
    >>> for stream_id in (4, 0):
    ...     scheduler.open(stream_id, H2Priority())
    ...     scheduler.activate(stream_id)
    >>> scheduler.pick()
    0
    """

    def __init__(self) -> None:
        self._active = OrderedStreams()

    def open(self, stream_id: int, signal: Signal) -> None:
        """Take up the stream."""

    def update(self, stream_id: int, signal: Signal) -> None:
        """Ignore the signal."""

    def activate(self, stream_id: int) -> None:
        """Activate the stream."""
        if stream_id not in self._active:
            self._active.put(stream_id, stream_id)

    def deactivate(self, stream_id: int) -> None:
        """Take the stream out of the running."""
        self._active.drop(stream_id)

    def close(self, stream_id: int) -> None:
        """Forget the stream."""
        self._active.drop(stream_id)

    def pick(self) -> int | None:
        """Return the active stream of the lowest id."""
        return self._active.first

    def charge(self, stream_id: int, n_bytes: int) -> None:
        """Change nothing: a stream is sent to its end."""
