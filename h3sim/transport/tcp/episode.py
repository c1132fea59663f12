"""An episode of recovery, and how the reduction of the window is spread over it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from h3sim.transport.tcp.prr import ProportionalRateReduction

if TYPE_CHECKING:
    from collections.abc import Iterable

    from h3sim.transport.congestion import CongestionController
    from h3sim.transport.tcp.scoreboard import Scoreboard
    from h3sim.transport.tcp.segments import SentSegment
    from h3sim.transport.tcp.settings import TcpSettings

__all__ = ["Episode"]


class Episode:
    """The episode of recovery that lasts, if one does.

    It begins with the first loss and ends when all that was sent before it has been acknowledged.
    """

    __slots__ = (
        "_board",
        "_controller",
        "_has_prr",
        "holds_window",
        "is_timed_out",
        "may_exceed_window",
        "point",
        "prr",
    )

    def __init__(
        self, settings: TcpSettings, controller: CongestionController, board: Scoreboard
    ) -> None:
        self._controller = controller
        self._board = board
        self._has_prr = settings.has_prr
        self.prr = ProportionalRateReduction(settings.mss_bytes)
        self.point: int | None = None
        """The recovery point: where what was sent before ends; None outside an episode."""
        self.is_timed_out = False
        """Whether a timeout began this episode, or took it over."""
        self.holds_window = False
        """Whether the window may not grow: in an episode that no timeout took over."""
        self.may_exceed_window = False
        """Whether its first retransmission is still to go, whatever the window."""

    def begin(self) -> None:
        """Begin with all that was sent so far."""
        self.point = self._board.next_seq
        self.holds_window = True

    def reduce(self, news: Iterable[SentSegment]) -> None:
        """Spread the reduction of the window, if there was one; *news* came with the loss."""
        self.may_exceed_window = True
        if not self._has_prr or self._controller.ssthresh is None:
            return
        board = self._board
        # As RecoverFS of RFC 9937 § 6: without what was known to have arrived before this ACK, but
        # with what it delivered itself.
        sacked_bytes = sum(stop - start for start, stop in board.runs.items())
        flight_bytes = board.next_seq - board.una - sacked_bytes
        self.prr.begin(
            target_bytes=self._controller.congestion_window,
            flight_bytes=flight_bytes + sum(segment.size_bytes for segment in news),
        )

    def time_out(self) -> None:
        """Begin anew from the first segment, whatever the window; the window rules again."""
        self.point = self._board.next_seq
        # The window falls below what is in flight by old count: the first segment must go all the
        # same.
        self.is_timed_out = self.may_exceed_window = True
        self.holds_window = False
        self.prr.end()

    def end(self) -> None:
        """End: the window rules again."""
        self.point = None
        self.is_timed_out = self.holds_window = self.may_exceed_window = False
        self.prr.end()
