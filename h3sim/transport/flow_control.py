"""The receiving side of flow control, of QUIC and of HTTP/2."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from h3sim.transport.rtt import RttEstimator


_NO_LIMITS_RAISED: tuple[tuple[int | None, int], ...] = ()
"""The result of `FlowReceiver.on_bytes` for nearly all packets."""
_RTTS_TO_GROW = 2
"""A window that has to be raised again within so many round trips limits its sender."""


class FlowReceiver:
    """The receiving side of flow control: raises a limit once enough of its window has been used.

    That is more than half of it, at least half with *at_half* (nghttp2), or *update_bytes*.
    Received bytes are consumed at once, as by browsers. With *max_window* a window doubles, up to
    that, when it is raised twice within two round trips of *rtt*: the rule of Google's QUIC,
    quic-go and Cloudflare's quiche.

    >>> flow = FlowReceiver(stream_window=100, connection_window=150)
    >>> flow.on_bytes(0, 60), flow.on_bytes(0, 80)
    ([(0, 160)], [(None, 230)])
    >>> flow.limit(0), flow.limit(None)
    (160, 230)
    """

    __slots__ = (
        "_at_half",
        "_connection_threshold",
        "_limits",
        "_max_window",
        "_raised_at_ns",
        "_received_bytes",
        "_received_ends",
        "_rtt",
        "_stream_threshold",
        "_thresholds",
        "_update_bytes",
        "_windows",
    )

    def __init__(
        self,
        *,
        stream_window: int,
        connection_window: int,
        update_bytes: int | None = None,
        at_half: bool = False,
        max_window: int | None = None,
        rtt: RttEstimator | None = None,
    ) -> None:
        self._update_bytes = update_bytes
        self._at_half = at_half
        self._max_window = max_window
        self._rtt = rtt
        self._received_ends: dict[int, int] = {}
        """The highest offset received of each stream."""
        self._received_bytes = 0
        """The sum of these."""
        self._windows: dict[int | None, int] = {None: connection_window, -1: stream_window}
        """The window of the connection (None), of streams (-1), and of streams that it grew for."""
        self._limits: dict[int | None, int] = {None: connection_window}
        """The limits announced, of the connection and of streams whose limit was raised."""
        self._raised_at_ns: dict[int | None, int] = {}
        """Time when each of them was raised last, if windows grow."""
        # Thresholds are kept rather than limits: so a packet that raises no limit, like nearly all,
        # costs two comparisons.
        self._stream_threshold = self._threshold(0, stream_window)
        self._thresholds: dict[int, int] = {}
        """The thresholds of streams whose limit was raised."""
        self._connection_threshold = self._threshold(0, connection_window)

    def on_bytes(
        self, stream_id: int, end: int, now_ns: int = 0
    ) -> Sequence[tuple[int | None, int]]:
        """Record that a stream was received up to *end*; return the limits to announce."""
        before = self._received_ends.get(stream_id, 0)
        # A retransmission, or reordering: flow control counts the highest offset (RFC 9000 § 4.1).
        if end <= before:
            return _NO_LIMITS_RAISED
        self._received_ends[stream_id] = end
        self._received_bytes = total = self._received_bytes + end - before
        if total <= self._connection_threshold and end <= self._stream_threshold:
            return _NO_LIMITS_RAISED
        return self._raise_limits(stream_id, end, now_ns)

    def limit(self, stream_id: int | None) -> int:
        """Return the last announced limit of a stream, or (None) of the connection."""
        return self._limits.get(stream_id, self._windows[-1])

    def _raise_limits(self, stream_id: int, end: int, now_ns: int) -> list[tuple[int | None, int]]:
        """Raise the limits whose window is used up far enough; return them."""
        raised: list[tuple[int | None, int]] = []
        # The connection first: its limit applies to all streams. From the bytes received, not from
        # the old limit: a large burst needs one update only.
        if self._received_bytes > self._connection_threshold:
            window = self._window(None, now_ns)
            self._connection_threshold = self._threshold(self._received_bytes, window)
            raised.append((None, self._received_bytes + window))
        if end > self._thresholds.get(stream_id, self._stream_threshold):
            window = self._window(stream_id, now_ns)
            self._thresholds[stream_id] = self._threshold(end, window)
            raised.append((stream_id, end + window))
        self._limits.update(raised)
        return raised

    def _threshold(self, received_bytes: int, window: int) -> int:
        """Return the received bytes above which the limit is raised again."""
        if self._update_bytes is not None:
            used_bytes = self._update_bytes - 1
        else:
            used_bytes = window // 2 - 1 if self._at_half else window - window // 2
        # A window of one byte is used in full before it is raised.
        return received_bytes + max(0, min(used_bytes, window - 1))

    def _window(self, key: int | None, now_ns: int) -> int:
        """Return the window of a stream or the connection, raised now; it may have to grow."""
        window = self._windows.get(key, self._windows[-1])
        if self._max_window is None or self._rtt is None:
            return window
        before_ns = self._raised_at_ns.get(key)
        self._raised_at_ns[key] = now_ns
        rtt_ns = self._rtt.smoothed_rtt_ns
        if before_ns is not None and now_ns - before_ns < _RTTS_TO_GROW * rtt_ns:
            window = self._windows[key] = max(window, min(2 * window, self._max_window))
        return window
