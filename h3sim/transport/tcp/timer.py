"""The retransmission timer (RFC 6298)."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from h3sim.transport.rtt import RttEstimator
    from h3sim.transport.tcp.settings import TcpSettings

__all__ = ["RetransmissionTimer"]


class RetransmissionTimer:
    """Runs while data is in flight; doubles each time it runs out, until the next sample.

    >>> from h3sim.transport.tcp import TcpSettings
    >>> timer = RetransmissionTimer(TcpSettings())
    >>> timer.start(5)
    >>> timer.back_off(timer.due_at_ns)
    >>> timer.due_at_ns
    3000000005
    """

    __slots__ = ("_granularity_ns", "_max_ns", "_min_ns", "_timeout_ns", "due_at_ns")

    def __init__(self, settings: TcpSettings) -> None:
        self._min_ns = settings.min_rto_ns
        self._max_ns = settings.max_rto_ns
        self._granularity_ns = settings.rto_granularity_ns
        self._timeout_ns = settings.initial_rto_ns
        self.due_at_ns: int | None = None
        """When it runs out; None while it does not run."""

    def on_rtt(self, rtt: RttEstimator) -> None:
        """Set the timeout by a new sample, which also ends the back-off (§§ 2.2-2.5)."""
        spread_ns = 4 * rtt.rttvar_ns
        # Comparisons, not `max`: this runs with each ACK.
        if spread_ns < self._granularity_ns:
            spread_ns = self._granularity_ns
        timeout_ns = rtt.smoothed_rtt_ns + spread_ns
        if timeout_ns < self._min_ns:
            timeout_ns = self._min_ns
        self._timeout_ns = timeout_ns if timeout_ns < self._max_ns else self._max_ns

    def start(self, now_ns: int) -> None:
        """Start it, anew if it runs already (§§ 5.1, 5.3)."""
        self.due_at_ns = now_ns + self._timeout_ns

    def stop(self) -> None:
        """Stop it (§ 5.2)."""
        self.due_at_ns = None

    def back_off(self, now_ns: int) -> None:
        """Start it for twice as long (§§ 5.5, 5.6)."""
        self._timeout_ns = min(2 * self._timeout_ns, self._max_ns)
        self.start(now_ns)
