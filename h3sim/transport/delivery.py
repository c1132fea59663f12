"""Requests and frames of the control stream reach the server: each counts once it is whole."""

from __future__ import annotations

from h3sim.ranges import Ranges

__all__ = ["WholeMessages"]


class WholeMessages:
    """Puts messages together, each a stream of its own, and tells of each once.

    >>> messages = WholeMessages()
    >>> messages.expect(0, 20)
    >>> [messages.on_bytes(0, *span) for span in ((10, 10), (0, 10), (0, 10))]
    [False, True, False]
    """

    def __init__(self) -> None:
        self._left: dict[int, tuple[int, Ranges]] = {}

    def expect(self, stream_id: int, n_bytes: int) -> None:
        """Take bytes of a stream that has *n_bytes* in all."""
        self._left[stream_id] = (n_bytes, Ranges())

    def on_bytes(self, stream_id: int, offset: int, n_bytes: int) -> bool:
        """Return whether the message is whole now, and was not before."""
        entry = self._left.get(stream_id)
        if entry is None:
            return False
        size, got = entry
        got.add(offset, offset + n_bytes)
        if got.contiguous < size:
            return False
        del self._left[stream_id]
        return True
