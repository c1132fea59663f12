"""A rule of a real server that h3sim's schedulers do without, to show that nothing else differs."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from h3sim.signals import Signal

__all__ = ["FramesTakeTurns"]


class FramesTakeTurns:
    """One line of all streams with frames, of which HEADERS are the first (hyper's h2)."""

    def __init__(self) -> None:
        self._line: OrderedDict[int, None] = OrderedDict()
        self._answered: set[int] = set()

    def open(self, stream_id: int, signal: Signal) -> None:
        """Open the stream."""

    def update(self, stream_id: int, signal: Signal) -> None:
        """Ignore the signal."""

    def activate(self, stream_id: int) -> None:
        """Put the stream at the end of the line."""
        self._line[stream_id] = None

    def deactivate(self, stream_id: int) -> None:
        """Take the stream out of the line."""
        self._line.pop(stream_id, None)

    def close(self, stream_id: int) -> None:
        """Forget the stream."""
        self.deactivate(stream_id)

    def pick(self) -> int | None:
        """Return the stream of the next DATA frame, after the HEADERS before it."""
        while (first := next(iter(self._line), None)) is not None and first not in self._answered:
            self._answered.add(first)
            self._line.move_to_end(first)
        return first

    def charge(self, stream_id: int, n_bytes: int) -> None:  # noqa: ARG002 - a protocol's
        """Put the stream at the end of the line again."""
        self._line.move_to_end(stream_id)
