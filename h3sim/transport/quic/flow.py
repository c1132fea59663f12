"""Flow control (RFC 9000 § 4): how much a peer may send, per stream and in all."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from h3sim.transport.quic.settings import QuicSettings

__all__ = ["FlowReceiver"]

_NOTHING: tuple[tuple[int | None, int], ...] = ()


class FlowReceiver:
    """The receiving side: raises a limit once half of its window has been used.

    What arrives is consumed at once, as browsers do.

    >>> flow = FlowReceiver(stream_window=100, connection_window=150)
    >>> flow.on_bytes(0, 60), flow.on_bytes(0, 80)
    ([(0, 160)], [(None, 230)])
    >>> flow.limit(0), flow.limit(None)
    (160, 230)
    """

    __slots__ = (
        "_connection_half",
        "_connection_window",
        "_end",
        "_stream_half",
        "_stream_halves",
        "_stream_window",
        "_total",
    )

    def __init__(self, *, stream_window: int, connection_window: int) -> None:
        self._stream_window = stream_window
        self._connection_window = connection_window
        self._end: dict[int, int] = {}
        self._total = 0
        # Not the limits are kept but where half of each window is used: so a packet that raises
        # none, as nearly all, costs two comparisons.
        # Half the window rounded up, so that a window of one byte is used in full before it is
        # raised.
        self._stream_half = stream_window - stream_window // 2
        self._stream_halves: dict[int, int] = {}
        """Those of the streams whose limit was raised."""
        self._connection_half = connection_window - connection_window // 2

    @classmethod
    def of(cls, settings: QuicSettings) -> FlowReceiver:
        """Return the receiving side of an end with these settings."""
        return cls(
            stream_window=settings.stream_window_bytes,
            connection_window=settings.connection_window_bytes,
        )

    def on_bytes(self, stream_id: int, end: int) -> Sequence[tuple[int | None, int]]:
        """Note that a stream has come up to *end*; return the limits to announce."""
        before = self._end.get(stream_id, 0)
        # A retransmission, or a frame that was overtaken: flow control counts the highest offset (§
        # 4.1).
        if end <= before:
            return _NOTHING
        self._end[stream_id] = end
        self._total = total = self._total + end - before
        if total <= self._connection_half and end <= self._stream_half:
            return _NOTHING
        return self._raised(stream_id, end)

    def limit(self, stream_id: int | None) -> int:
        """Return the limit of a stream, or (None) of all together, as it was last announced."""
        if stream_id is None:
            return self._connection_half + self._connection_window // 2
        half = self._stream_halves.get(stream_id, self._stream_half)
        return half + self._stream_window // 2

    def _raised(self, stream_id: int, end: int) -> list[tuple[int | None, int]]:
        raised: list[tuple[int | None, int]] = []
        # The connection first: it holds back all streams.
        if self._total > self._connection_half:
            # From what has come, not from the old limit: a burst that jumped far needs one update
            # only.
            limit = self._total + self._connection_window
            self._connection_half = limit - self._connection_window // 2
            raised.append((None, limit))
        if end > self._stream_halves.get(stream_id, self._stream_half):
            limit = end + self._stream_window
            self._stream_halves[stream_id] = limit - self._stream_window // 2
            raised.append((stream_id, limit))
        return raised
