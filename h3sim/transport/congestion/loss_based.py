"""What NewReno and CUBIC have in common: the states of RFC 9002 § 7.3."""

# ruff: noqa: ARG002 - a controller need not use all that it is told
from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from h3sim.compiling import mypyc_attr
from h3sim.transport.congestion.controller import CongestionController
from h3sim.transport.congestion.hystart import HyStart

if TYPE_CHECKING:
    from collections.abc import Sequence

    from h3sim.transport.congestion.settings import ControllerSettings
    from h3sim.transport.packets import SentPacket
    from h3sim.transport.rtt import RttEstimator

__all__ = ["LossBasedController"]


@mypyc_attr(allow_interpreted_subclasses=True)
class LossBasedController(CongestionController):
    """Slow start, one reduction per round trip, the minimum window (RFC 9002 § 7, appendix B).

    What grows the window in congestion avoidance and what a congestion event leaves of it is up to
    the derived class. The sender may pace the window (§ 7.7); the controller does not.
    """

    __slots__ = (
        "_beta",
        "_datagram_bytes",
        "_hystart",
        "_minimum_bytes",
        "_recovery_start_ns",
    )

    reads_delivery: ClassVar[bool] = False

    def __init__(self, settings: ControllerSettings, *, beta: float) -> None:
        self.congestion_window = settings.initial_congestion_window
        self.ssthresh = None
        self._datagram_bytes = settings.max_datagram_bytes
        self._minimum_bytes = settings.minimum_window_bytes
        self._beta = beta if settings.beta is None else settings.beta
        self._hystart: HyStart | None = None
        if settings.hystart:
            self._hystart = HyStart(max_datagram_bytes=settings.max_datagram_bytes)
        self._recovery_start_ns: int | None = None
        """congestion_recovery_start_time (RFC 9002 § B.2)."""

    def on_sent(self, packet: SentPacket, bytes_in_flight: int) -> None:
        """Take note of a packet that leaves."""
        if self._hystart is not None:
            self._hystart.on_sent(packet.number)

    def on_acked(
        self,
        packets: Sequence[SentPacket],
        now_ns: int,
        rtt: RttEstimator,
        bytes_in_flight: int,
        is_cwnd_underutilized: bool,
    ) -> None:
        """Grow the window by what was sent outside recovery (RFC 9002 § B.5)."""
        # There is one in the initial slow start only, so neither recovery nor `ssthresh` need be
        # asked.
        if self._hystart is not None:
            self._watch_delay(
                self._hystart,
                packets,
                rtt.latest_rtt_ns,
                is_cwnd_underutilized=is_cwnd_underutilized,
            )
            return
        if is_cwnd_underutilized:
            self._on_limited()
            return
        start_ns = self._recovery_start_ns
        ssthresh = self.ssthresh
        sizes: list[int] = []
        for packet in packets:
            # At the same instant is still before: "<=" in InCongestionRecovery of § B.5.
            if start_ns is not None and packet.sent_at_ns <= start_ns:
                continue
            # Asked packet by packet: one ACK may take the window over the threshold.
            if ssthresh is None or self.congestion_window < ssthresh:
                self.congestion_window += packet.size_bytes
            else:
                sizes.append(packet.size_bytes)
        if sizes:
            self._avoid(sizes, now_ns, rtt.smoothed_rtt_ns)

    def on_lost(
        self,
        packets: Sequence[SentPacket],
        now_ns: int,
        bytes_in_flight: int,
        next_number: int,
    ) -> None:
        """Reduce the window once per recovery period (RFC 9002 §§ B.6, B.8)."""
        start_ns = self._recovery_start_ns
        # RFC 9002 § B.8 hands the send time of the last loss to OnCongestionEvent: one cut a round
        # trip.
        if start_ns is not None and max(packet.sent_at_ns for packet in packets) <= start_ns:
            return
        self._recovery_start_ns = now_ns
        # HyStart++ is for the initial slow start (RFC 9406 § 4.3): after a loss `ssthresh` says
        # when.
        self._hystart = None
        self._reduce()

    def on_persistent_congestion(self, now_ns: int) -> None:
        """Fall back to the minimum window and slow start (RFC 9002 § 7.6.2, § B.8)."""
        self.congestion_window = self._minimum_bytes
        # As § B.8: the next loss is an event of its own, whenever its packet was sent.
        self._recovery_start_ns = None

    def pacing_rate_bps(self, rtt: RttEstimator) -> int | None:
        """Return None."""
        return None

    def _watch_delay(
        self,
        hystart: HyStart,
        packets: Sequence[SentPacket],
        latest_rtt_ns: int,
        *,
        is_cwnd_underutilized: bool,
    ) -> None:
        """Go on with the initial slow start as RFC 9406 has it."""
        if not is_cwnd_underutilized:
            acked_bytes = sum(packet.size_bytes for packet in packets)
            # Before HyStart is asked: the ACK that ends slow start has still grown the window.
            self.congestion_window += hystart.growth_bytes(acked_bytes)
        if hystart.on_ack(packets[-1].number, latest_rtt_ns):
            self._hystart = None
            self.ssthresh = self.congestion_window

    def _avoid(self, sizes: list[int], now_ns: int, smoothed_rtt_ns: int) -> None:
        """Grow the window in congestion avoidance for acknowledged packets of *sizes*."""
        raise NotImplementedError

    def _reduce(self) -> None:
        """Set the window and `ssthresh` after a loss."""
        raise NotImplementedError

    def _on_limited(self) -> None:
        """Take note of an ACK that grows nothing, as the window was not full."""
