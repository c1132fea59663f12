"""Flow control (RFC 9000 § 4): how much a peer may send, per stream and in all."""

from __future__ import annotations

__all__ = ["FlowReceiver"]


class FlowReceiver:
    """The receiving side: raises a limit once half of its window has been used.

    What arrives is consumed at once, as browsers do.

    >>> flow = FlowReceiver(stream_window=100, connection_window=150)
    >>> flow.on_bytes(0, 60), flow.on_bytes(0, 80)
    ([(0, 160)], [(None, 230)])
    """

    __slots__ = ("_connection", "_end", "_limits", "_stream_window", "_total", "_window")

    def __init__(self, *, stream_window: int, connection_window: int) -> None:
        self._stream_window = stream_window
        self._window = connection_window
        self._limits: dict[int, int] = {}
        self._end: dict[int, int] = {}
        self._total = 0
        self._connection = connection_window

    def on_bytes(self, stream_id: int, end: int) -> list[tuple[int | None, int]]:
        """Note that a stream has come up to *end*; return the limits to announce."""
        before = self._end.get(stream_id, 0)
        if end <= before:
            return []
        self._end[stream_id] = end
        self._total += end - before
        raised: list[tuple[int | None, int]] = []
        if self._connection - self._total < self._window // 2:
            self._connection = self._total + self._window
            raised.append((None, self._connection))
        limit = self._limits.get(stream_id, self._stream_window)
        if limit - end < self._stream_window // 2:
            self._limits[stream_id] = end + self._stream_window
            raised.append((stream_id, end + self._stream_window))
        return raised
