"""A send buffer: what the scheduler has given out and can no longer be re-ordered."""

from __future__ import annotations

import enum
from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from h3sim.transport.endpoint import FrameHeader

__all__ = ["SendBuffer", "SendBufferRefill"]


class SendBufferRefill(enum.Enum):
    """When a send buffer takes something in."""

    CONTINUOUS = "continuous"
    """As soon as a turn fits: whatever leaves makes room."""
    WHEN_EMPTY = "when-empty"
    """Once it is empty and something may leave: it is filled with what waits then, and with nothing
    more until that has left.

    Under this reading the means of Marx 2019, Table 2, move with the buffer as the paper's do
    (`make validate-send-buffer`)."""


class SendBuffer:
    """Holds chunks (stream, offset, bytes), first in, first out, up to *limit_bytes* of them.

    >>> buffer = SendBuffer(1000)
    >>> buffer.put((0, 0, 700)); buffer.has_room(301), buffer.take(500), buffer.take(500)
    (False, (0, 0, 500), (0, 500, 200))
    """

    __slots__ = ("_chunks", "_limit_bytes", "_n_bytes")

    def __init__(self, limit_bytes: int) -> None:
        self._limit_bytes = limit_bytes
        self._chunks: deque[tuple[int, int, int]] = deque()
        self._n_bytes = 0

    def __bool__(self) -> bool:
        return bool(self._chunks)

    def has_room(self, n_bytes: int) -> bool:
        """Return whether so many bytes more fit; an empty buffer takes any."""
        return not self._chunks or self._n_bytes + n_bytes <= self._limit_bytes

    def put(self, chunk: tuple[int, int, int]) -> None:
        """Append a chunk."""
        self._chunks.append(chunk)
        self._n_bytes += chunk[2]

    def take(
        self, max_bytes: int | None, header: FrameHeader | None = None, least: int = 0
    ) -> tuple[int, int, int] | None:
        """Return the first chunk, or as much of it as goes; what is left of it stays first.

        That is *max_bytes*, less what *header* says. None where there is no chunk, or fewer than
        *least* bytes would go.
        """
        if not self._chunks:
            return None
        stream_id, offset, n_bytes = self._chunks[0]
        if header is not None and max_bytes is not None:
            max_bytes -= header.measure(stream_id, offset)
            if max_bytes < least:
                return None
        self._chunks.popleft()
        if max_bytes is not None and n_bytes > max_bytes:
            self._chunks.appendleft((stream_id, offset + max_bytes, n_bytes - max_bytes))
            n_bytes = max_bytes
        self._n_bytes -= n_bytes
        return stream_id, offset, n_bytes
