"""The contract between a sender and what controls its window.

Read next, on the path of docs/reading.md: `h3sim/transport/congestion/loss_based.py`.
"""

# ruff: noqa: ARG002 - a controller need not use all that it is told
from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from h3sim._mypyc import mypyc_attr

if TYPE_CHECKING:
    from collections.abc import Sequence

    from h3sim.transport.packets import SentPacket
    from h3sim.transport.rtt import RttEstimator


@mypyc_attr(allow_interpreted_subclasses=True)
class CongestionController:
    """Says how many bytes may be in flight; learns what was sent, acknowledged and lost.

    Controllers derive from it, set both attributes when they are made, and override what concerns
    them. Packets come in rising numbers. If one acknowledgement both acknowledges and loses
    packets, either may be told first.
    """

    __slots__ = ("congestion_window", "ssthresh")

    reads_delivery: ClassVar[bool] = True
    """Whether it reads what packets say of delivery rates (`SentPacket`); else they do not say it,
    which spares each of them a twentieth of what it costs. A controller that derives from one which
    does not, and does so itself, sets it to True."""

    congestion_window: int
    """Bytes that may be in flight: whole ones, and at least a packet
    (`ControllerSettings.max_datagram_bytes`)."""
    ssthresh: int | None
    """The slow start threshold in bytes; None as long as there is none."""

    # No options: a call with keywords costs Python half as much again, and each packet makes one.

    def on_sent(self, packet: SentPacket, bytes_in_flight: int) -> None:
        """Take note of a packet that leaves; *bytes_in_flight* includes it."""

    def on_acked(
        self,
        packets: Sequence[SentPacket],
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
        now_ns: int,
        bytes_in_flight: int,
        next_number: int,
    ) -> None:
        """Take note of packets that were declared lost together, at least one.

        *bytes_in_flight* still includes them; *next_number* is what the next packet will have.
        """

    def on_persistent_congestion(self, now_ns: int) -> None:
        """Take note that losses span the period of RFC 9002 § 7.6; after their `on_lost`."""

    def pacing_rate_bps(self, rtt: RttEstimator) -> int | None:
        """Return the rate at which packets leave, or None if the controller does not pace."""
        return None
