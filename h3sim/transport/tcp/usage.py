"""How much of a window is used, as Linux counts it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from h3sim.transport.congestion import CongestionController
    from h3sim.transport.tcp.scoreboard import Scoreboard

__all__ = ["WindowUsage"]


class WindowUsage:
    """The most segments that were out within a window of data."""

    __slots__ = ("_board", "_controller", "_ends_at_seq", "_most_out", "_mss_bytes")

    def __init__(self, board: Scoreboard, controller: CongestionController, mss_bytes: int) -> None:
        self._board = board
        self._controller = controller
        self._mss_bytes = mss_bytes
        self._most_out = 0
        """max_packets_out."""
        self._ends_at_seq = 0
        """Where the window of data ends that this is the most of (cwnd_usage_seq)."""

    def on_sent(self) -> None:
        """Note that a segment left."""
        board = self._board
        n_out = len(board.sent)
        # A higher mark begins its own window of data; else the mark would outlive what it was
        # measured on.
        if n_out > self._most_out or board.una >= self._ends_at_seq:
            self._most_out, self._ends_at_seq = n_out, board.next_seq

    def may_double(self) -> bool:
        """Return whether slow start may go on though the application pauses.

        It may until the window is twice the most that was out (tcp_is_cwnd_limited).
        """
        window, ssthresh = self._controller.congestion_window, self._controller.ssthresh
        is_slow_start = ssthresh is None or window < ssthresh
        return is_slow_start and window < 2 * self._most_out * self._mss_bytes
