"""CoDel's control law (RFC 8289 § 5), fed with one packet after the other as their turns come."""

from __future__ import annotations

from math import isqrt
from typing import Final

__all__ = ["CoDelState"]

_RECENT_INTERVALS: Final = 16
"""A dropping state that ended less than this ago is taken up again."""


class CoDelState:
    """Says of each packet whether it is dropped when its turn comes.

    The pseudocode's `dequeue` goes on to the next packet where it drops one; here each packet is
    one call. A packet that follows a drop later than at the same instant found the queue empty, and
    ends the dropping state as the pseudocode's missing packet does: nothing waits with it.
    """

    __slots__ = (
        "_count",
        "_drop_next_ns",
        "_first_above_ns",
        "_has_just_dropped",
        "_interval_ns",
        "_is_dropping",
        "_last_count",
        "_max_packet_bytes",
        "_target_ns",
    )

    def __init__(self, *, target_ns: int, interval_ns: int) -> None:
        self._target_ns = target_ns
        self._interval_ns = interval_ns
        self._first_above_ns: int | None = None
        self._drop_next_ns = 0
        self._count = 0
        self._last_count = 0
        self._is_dropping = False
        self._has_just_dropped = False
        self._max_packet_bytes = 0

    def drops(self, now_ns: int, sojourn_ns: int, waiting_bytes: int, n_bytes: int) -> bool:
        """Return whether the packet whose turn it is at *now_ns* is dropped.

        It has waited for *sojourn_ns*; *waiting_bytes* others wait.
        """
        has_just_dropped, self._has_just_dropped = self._has_just_dropped, False
        may_drop = self._may_drop(now_ns, sojourn_ns, waiting_bytes, n_bytes)
        if not self._is_dropping:
            if may_drop:
                self._start_dropping(now_ns)
            return may_drop
        if not may_drop:
            self._is_dropping = False
            return False
        # Here and not with the drop: the pseudocode moves drop_next only if the next packet, too,
        # has waited for too long.
        if has_just_dropped:
            self._drop_next_ns = self._next_drop_ns(self._drop_next_ns)
        if now_ns < self._drop_next_ns:
            return False
        self._count += 1
        self._has_just_dropped = True
        return True

    def _may_drop(self, now_ns: int, sojourn_ns: int, waiting_bytes: int, n_bytes: int) -> bool:
        """Return whether packets have waited for too long, throughout an interval."""
        self._max_packet_bytes = max(self._max_packet_bytes, n_bytes)
        # A packet alone in the queue is the link's own time to send it, and no standing queue.
        if sojourn_ns < self._target_ns or waiting_bytes <= self._max_packet_bytes:
            self._first_above_ns = None
        elif self._first_above_ns is None:
            self._first_above_ns = now_ns + self._interval_ns
        else:
            return now_ns >= self._first_above_ns
        return False

    def _start_dropping(self, now_ns: int) -> None:
        """Enter the dropping state, at the rate of the last one if that was recent."""
        # Count was raised by this much in the last dropping state: its rate held the queue (§ 5.5).
        since_last = self._count - self._last_count
        is_recent = now_ns - self._drop_next_ns < _RECENT_INTERVALS * self._interval_ns
        self._count = since_last if since_last > 1 and is_recent else 1
        self._last_count = self._count
        self._drop_next_ns = self._next_drop_ns(now_ns)
        self._is_dropping = True

    def _next_drop_ns(self, from_ns: int) -> int:
        """Return *from_ns* + interval / sqrt(count), cut to whole nanoseconds."""
        # The square root of a whole number: floats would differ in the last nanosecond.
        return from_ns + isqrt(self._interval_ns * self._interval_ns // self._count)
