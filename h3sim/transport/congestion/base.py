"""The contract between a sender and what controls its window, and the settings of the latter."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from h3sim.errors import InputError, Problem

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from h3sim.transport.rtt import RttEstimator

__all__ = ["MAX_WINDOW_BYTES", "CongestionController", "ControllerSettings", "SentPacket"]

_K_INITIAL_WINDOW_PACKETS = 10
_K_INITIAL_WINDOW_BYTES = 14_720
_K_MINIMUM_WINDOW_PACKETS = 2
MAX_WINDOW_BYTES = 2**30
"""More than any path holds (RFC 7323 § 2.3)."""


class SentPacket(Protocol):
    """A packet (or segment) that was sent, as controllers see it.

    The last four describe delivery-rate sampling: the state when the packet was sent
    (draft-cheng-iccrg-delivery-rate-estimation § 3.2). *delivered_bytes* counts the sizes of all
    packets that the controller had been told of as acknowledged.
    """

    number: int
    sent_at_ns: int
    size_bytes: int
    is_app_limited: bool
    delivered_bytes: int
    delivered_at_ns: int
    first_sent_at_ns: int


@runtime_checkable
class CongestionController(Protocol):
    """Says how many bytes may be in flight; learns what was sent, acknowledged and lost.

    Packets come in rising numbers. If one acknowledgement both acknowledges and loses packets,
    either may be told first.
    """

    congestion_window: int
    """Bytes that may be in flight."""
    ssthresh: int | None
    """The slow start threshold in bytes; None as long as there is none."""

    def on_sent(self, packet: SentPacket, *, bytes_in_flight: int) -> None:
        """Take note of a packet that leaves; *bytes_in_flight* includes it."""

    def on_acked(
        self,
        packets: Sequence[SentPacket],
        *,
        now_ns: int,
        rtt: RttEstimator,
        bytes_in_flight: int,
        is_cwnd_underutilized: bool,
    ) -> None:
        """Take note of what one acknowledgement newly acknowledges, at least one packet.

        *bytes_in_flight* still includes these packets. *is_cwnd_underutilized*: the window
        was not full, because the application or flow control held data back (RFC 9002 § 7.8).
        """

    def on_lost(
        self,
        packets: Sequence[SentPacket],
        *,
        now_ns: int,
        bytes_in_flight: int,
        next_number: int,
    ) -> None:
        """Take note of packets that were declared lost together, at least one.

        *bytes_in_flight* still includes them; *next_number* is what the next packet will have.
        """

    def on_persistent_congestion(self, *, now_ns: int) -> None:
        """Take note that losses span the period of RFC 9002 § 7.6; after their `on_lost`."""

    def pacing_rate_bps(self, rtt: RttEstimator) -> int | None:
        """Return the rate at which packets leave, or None if the controller does not pace."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerSettings:
    """What a controller is made with; None leaves a value to the controller's own document.

    Raises:
        InputError: listing every value that is out of range.

    >>> settings = ControllerSettings(max_datagram_bytes=1280)
    >>> settings.initial_congestion_window, settings.minimum_window_bytes
    (12800, 2560)
    >>> ControllerSettings(max_datagram_bytes=1472, beta=1.5)
    Traceback (most recent call last):
    ...
    h3sim.errors.InputError: congestion control: beta: must be above 0 and below 1, is 1.5
    """

    max_datagram_bytes: int
    initial_window_bytes: int | None = None
    beta: float | None = None
    hystart: bool = False
    rate_bps: int | None = None

    def __post_init__(self) -> None:
        problems = list(self._problems())
        if problems:
            raise InputError(problems, "congestion control")

    @property
    def initial_congestion_window(self) -> int:
        """The window before anything was acknowledged (RFC 9002 § 7.2)."""
        if self.initial_window_bytes is not None:
            return self.initial_window_bytes
        datagram_bytes = self.max_datagram_bytes
        most_bytes = max(_K_INITIAL_WINDOW_BYTES, _K_MINIMUM_WINDOW_PACKETS * datagram_bytes)
        return min(_K_INITIAL_WINDOW_PACKETS * datagram_bytes, most_bytes)

    @property
    def minimum_window_bytes(self) -> int:
        """The smallest window (kMinimumWindow, RFC 9002 § 7.2)."""
        return _K_MINIMUM_WINDOW_PACKETS * self.max_datagram_bytes

    def _problems(self) -> Iterator[Problem]:
        for key in ("max_datagram_bytes", "rate_bps"):
            value = getattr(self, key)
            if value is not None and value < 1:
                yield Problem(key=key, message=f"must be at least 1, is {value}")
        window, least = self.initial_window_bytes, max(1, self.max_datagram_bytes)
        if window is not None and not least <= window <= MAX_WINDOW_BYTES:
            message = f"must be {least:,} (a packet) to {MAX_WINDOW_BYTES:,}, is {window:,}"
            yield Problem(key="initial_window_bytes", message=message)
        if self.beta is not None and not 0 < self.beta < 1:
            yield Problem(key="beta", message=f"must be above 0 and below 1, is {self.beta}")
