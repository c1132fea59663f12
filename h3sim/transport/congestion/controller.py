"""The interface between a sender and its congestion controller.

Read next, on the path of docs/reading.md: `h3sim/transport/congestion/loss_based.py`.
"""

# ruff: noqa: ARG002 - a controller need not use every argument
from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from h3sim.values._mypyc import mypyc_attr

if TYPE_CHECKING:
    from collections.abc import Sequence

    from h3sim.transport.packets import SentPacket
    from h3sim.transport.rtt import RttEstimator


@mypyc_attr(allow_interpreted_subclasses=True)
class CongestionController:
    """A congestion controller: sets a window and observes packets sent, acknowledged and lost.

    Controllers derive from it, set both attributes on construction, and override the methods that
    they need. Packet numbers rise. If an acknowledgement also shows losses, `on_acked` and
    `on_lost` are called in either order.
    """

    __slots__ = ("congestion_window", "ssthresh")

    reads_delivery: ClassVar[bool] = True
    """True if it uses the delivery-rate fields of `SentPacket`; otherwise they are not set, which
    saves a twentieth of the cost of a packet. A controller that uses them, but derives from one
    that does not, has to set it to True."""
    reads_losses: ClassVar[bool] = False
    """True if TCP has to report every loss to it, and not only the first of an episode; only
    effective for built-in controllers."""
    responds_to_ecn: ClassVar[bool] = False
    """True if it defines `on_congestion_experienced`; otherwise its packets are sent as Not-ECT,
    and queues drop them."""

    congestion_window: int
    """The limit of bytes in flight: an integer, at least one packet
    (`ControllerSettings.max_datagram_bytes`)."""
    ssthresh: int | None
    """The slow start threshold in bytes; None while it is infinite."""

    # Positional: a call with keywords costs Python half as much again, and each packet makes one.

    def on_sent(self, packet: SentPacket, bytes_in_flight: int) -> None:
        """Handle a packet that is sent; *bytes_in_flight* includes it."""

    def on_acked(
        self,
        packets: Sequence[SentPacket],
        now_ns: int,
        rtt: RttEstimator,
        bytes_in_flight: int,
        is_cwnd_underutilized: bool,
    ) -> None:
        """Handle the packets that one acknowledgement newly acknowledges, at least one.

        *bytes_in_flight* still includes these packets. *is_cwnd_underutilized*: the window
        was not full, because the application or flow control held data back (RFC 9002 § 7.8).
        """

    def on_lost(
        self,
        packets: Sequence[SentPacket],
        now_ns: int,
        bytes_in_flight: int,
        next_number: int,
    ) -> None:
        """Handle packets that are declared lost together, at least one.

        *bytes_in_flight* still includes them; *next_number* is the number of the next packet.
        """

    def on_congestion_experienced(self, sent_at_ns: int, now_ns: int) -> None:
        """Handle an acknowledgement that reports new marks (CE), before its packets are reported.

        *sent_at_ns* is when the newest packet that it acknowledges was sent (RFC 9002 § B.7).
        """

    def on_persistent_congestion(self, now_ns: int) -> None:
        """Handle losses that span the period of RFC 9002 § 7.6; called after their `on_lost`."""

    def on_spurious_loss(self, now_ns: int) -> None:
        """Undo the last reduction: the losses that caused it were spurious (RFC 9438 § 4.9)."""

    def pacing_rate_bps(self, rtt: RttEstimator) -> int | None:
        """Return the pacing rate, or None if the controller does not pace."""
        return None
