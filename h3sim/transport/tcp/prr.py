"""Proportional rate reduction (RFC 9937, before that RFC 6937)."""

from __future__ import annotations

__all__ = ["ProportionalRateReduction"]


class ProportionalRateReduction:
    """Spreads the reduction of a window over an episode of recovery.

    Without it, what counts as lost leaves the pipe at once, and as much is sent in a burst into a
    queue that has just overflowed. With it, what arrives paces what leaves: at the ratio of the new
    window to the old, then, below the new window, one segment more than arrives.

    >>> prr = ProportionalRateReduction(mss_bytes=10)
    >>> prr.begin(target_bytes=70, flight_bytes=100)
    >>> prr.on_ack(30, pipe_bytes=90, is_safe=False)
    >>> prr.room_bytes
    30
    """

    __slots__ = (
        "_delivered_bytes",
        "_flight_bytes",
        "_mss_bytes",
        "_sent_bytes",
        "_target_bytes",
        "is_active",
        "room_bytes",
    )

    def __init__(self, mss_bytes: int) -> None:
        self._mss_bytes = mss_bytes
        self._target_bytes = 0
        """ssthresh, which here is the window that the controller set."""
        self._flight_bytes = 1
        """RecoverFS."""
        self._delivered_bytes = 0
        """prr_delivered."""
        self._sent_bytes = 0
        """prr_out."""
        self.is_active = False
        self.room_bytes = 0
        """What may leave before the next ACK (sndcnt)."""

    def begin(self, *, target_bytes: int, flight_bytes: int) -> None:
        """Begin an episode with *flight_bytes* that were not known to have arrived before."""
        self.is_active = True
        self._target_bytes = target_bytes
        self._flight_bytes = flight_bytes
        self._delivered_bytes = self._sent_bytes = self.room_bytes = 0

    def end(self) -> None:
        """End the episode: the window rules again."""
        self.is_active = False

    def on_ack(self, n_bytes: int, *, pipe_bytes: int, is_safe: bool) -> None:
        """Take an ACK that delivered *n_bytes*.

        *is_safe*: it moved the first hole and showed no further loss (SafeACK).
        """
        self._delivered_bytes += n_bytes
        if pipe_bytes > self._target_bytes:
            # CEIL in RFC 6937 § 3: rounded down, the last bytes of the reduction would never be
            # allowed.
            share = -(-self._delivered_bytes * self._target_bytes // self._flight_bytes)
            room = share - self._sent_bytes
            # Whole segments, rounded up, as a stack has it that counts segments.
            self.room_bytes = -(-room // self._mss_bytes) * self._mss_bytes
            return
        # At least what this ACK delivered (PRR-CRB), even if less than that is left over from
        # before.
        limit = max(self._delivered_bytes - self._sent_bytes, n_bytes)
        if is_safe:
            limit += self._mss_bytes
        self.room_bytes = min(self._target_bytes - pipe_bytes, limit)

    def on_sent(self, n_bytes: int) -> None:
        """Count data that leaves, for the first time or again."""
        self._sent_bytes += n_bytes
        self.room_bytes -= n_bytes
