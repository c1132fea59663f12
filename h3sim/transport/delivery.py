"""The receiving end: bytes that have arrived, and those that may be handed to the application."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from h3sim.ranges import Ranges

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["ConnectionOrder", "Receiver", "StreamOrder"]

Delivered = tuple[int, int]
"""A stream and how many contiguous bytes of it have been handed over by now."""

_NOTHING: tuple[Delivered, ...] = ()


class Receiver(Protocol):
    """Takes packets as they arrive and says what can be handed over."""

    def watch(self, stream_id: int, n_bytes: int) -> None:
        """Let nothing be said of the stream until *n_bytes* of it have been handed over."""

    def on_packet(
        self, number: int, stream_id: int, offset: int, n_bytes: int
    ) -> Sequence[Delivered]:
        """Take packet *number*, counted from 0 in the order sent; return what it releases."""


class StreamOrder:
    """Each stream is handed over in its own order, whatever the others do (QUIC).

    >>> quic = StreamOrder()
    >>> for packet in ((1, 4, 0, 10), (2, 0, 10, 10), (0, 0, 0, 10)):
    ...     print(*quic.on_packet(*packet))
    (4, 10)
    <BLANKLINE>
    (0, 20)
    """

    def __init__(self) -> None:
        self._contiguous: dict[int, int] = {}
        self._watched: dict[int, int] = {}
        self._ahead: dict[int, Ranges] = {}

    def watch(self, stream_id: int, n_bytes: int) -> None:
        """Let nothing be said of the stream until *n_bytes* of it have been handed over."""
        self._watched[stream_id] = n_bytes

    def on_packet(
        self, number: int, stream_id: int, offset: int, n_bytes: int
    ) -> Sequence[Delivered]:
        """Release the packet's bytes, and those behind them that wait, once no hole is before."""
        del number  # only one order over the connection needs it
        known = self._contiguous.get(stream_id, 0)
        if offset == known and stream_id not in self._ahead:
            contiguous = known + n_bytes
        else:
            contiguous = self._reassemble(stream_id, known, offset, n_bytes)
            if contiguous == known:
                return _NOTHING
        self._contiguous[stream_id] = contiguous
        if contiguous < self._watched.get(stream_id, 0):
            return _NOTHING
        return ((stream_id, contiguous),)

    def _reassemble(self, stream_id: int, contiguous: int, offset: int, n_bytes: int) -> int:
        """Return how far the stream is contiguous with the packet."""
        got = self._ahead.get(stream_id)
        if got is None:
            got = self._ahead[stream_id] = Ranges()
            got.add(0, contiguous)
        got.add(offset, offset + n_bytes)
        if got.contiguous == got.end:
            del self._ahead[stream_id]
        return got.contiguous


class ConnectionOrder:
    """All packets are handed over in the one order in which they were sent (TCP).

    >>> tcp = ConnectionOrder()
    >>> for packet in ((1, 4, 0, 10), (2, 0, 10, 10), (0, 0, 0, 10)):
    ...     print(*tcp.on_packet(*packet))
    <BLANKLINE>
    <BLANKLINE>
    (0, 10) (4, 10) (0, 20)
    """

    def __init__(self) -> None:
        self._next = 0
        self._ahead: dict[int, Delivered] = {}
        self._watched: dict[int, int] = {}

    def watch(self, stream_id: int, n_bytes: int) -> None:
        """Let nothing be said of the stream until *n_bytes* of it have been handed over."""
        self._watched[stream_id] = n_bytes

    def on_packet(
        self, number: int, stream_id: int, offset: int, n_bytes: int
    ) -> Sequence[Delivered]:
        """Release the packet, and those behind it that wait, once all before it are there."""
        if number != self._next:
            self._ahead[number] = (stream_id, offset + n_bytes)
            return _NOTHING
        released = [(stream_id, offset + n_bytes)]
        self._next += 1
        while self._next in self._ahead:
            released.append(self._ahead.pop(self._next))
            self._next += 1
        return [entry for entry in released if entry[1] >= self._watched.get(entry[0], 0)]
