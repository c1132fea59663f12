"""The receiving end: bytes that have arrived, and those that may be handed to the application."""

from __future__ import annotations

from typing import Protocol

from h3sim.ranges import Ranges

__all__ = ["ConnectionOrder", "Receiver", "StreamOrder"]

Delivered = tuple[int, int]
"""A stream and how many contiguous bytes of it have been handed over by now."""


class Receiver(Protocol):
    """Takes packets as they arrive and says what can be handed over."""

    def on_packet(self, number: int, stream_id: int, offset: int, n_bytes: int) -> list[Delivered]:
        """Take packet *number*, counted from 0 in the order sent; return what it releases."""


class StreamOrder:
    """Each stream is handed over in its own order, whatever the others do (QUIC).

    >>> quic = StreamOrder()
    >>> quic.on_packet(1, 4, 0, 10), quic.on_packet(2, 0, 10, 10), quic.on_packet(0, 0, 0, 10)
    ([(4, 10)], [], [(0, 20)])
    """

    def __init__(self) -> None:
        self._contiguous: dict[int, int] = {}
        self._ahead: dict[int, Ranges] = {}

    def on_packet(self, number: int, stream_id: int, offset: int, n_bytes: int) -> list[Delivered]:
        """Release the packet's bytes, and those behind them that wait, once no hole is before."""
        del number
        known = self._contiguous.get(stream_id, 0)
        ahead = self._ahead.get(stream_id)
        if ahead is None and offset == known:
            self._contiguous[stream_id] = known + n_bytes
            return [(stream_id, known + n_bytes)]
        if ahead is None:
            ahead = self._ahead[stream_id] = Ranges()
            ahead.add(0, known)
        ahead.add(offset, offset + n_bytes)
        if ahead.contiguous == ahead.end:
            del self._ahead[stream_id]
        if ahead.contiguous == known and offset + n_bytes > known:
            return []
        self._contiguous[stream_id] = ahead.contiguous
        return [(stream_id, ahead.contiguous)]


class ConnectionOrder:
    """All packets are handed over in the one order in which they were sent (TCP).

    >>> tcp = ConnectionOrder()
    >>> tcp.on_packet(1, 4, 0, 10), tcp.on_packet(2, 0, 10, 10), tcp.on_packet(0, 0, 0, 10)
    ([], [], [(0, 10), (4, 10), (0, 20)])
    """

    def __init__(self) -> None:
        self._next = 0
        self._ahead: dict[int, Delivered] = {}

    def on_packet(self, number: int, stream_id: int, offset: int, n_bytes: int) -> list[Delivered]:
        """Release the packet, and those behind it that wait, once all before it are there."""
        if number != self._next:
            self._ahead[number] = (stream_id, offset + n_bytes)
            return []
        released = [(stream_id, offset + n_bytes)]
        self._next += 1
        while self._ahead and self._next in self._ahead:
            released.append(self._ahead.pop(self._next))
            self._next += 1
        return released
