"""Packets as aioquic has them."""

from __future__ import annotations

from typing import Any

from h3sim.values.units import NS_PER_S

__all__ = ["PACKET_BYTES", "their_packet"]

PACKET_BYTES = 1200


def their_packet(number: Any, sent_at_ns: int, size_bytes: int = PACKET_BYTES) -> Any:
    """Return a packet of 1-RTT data; aioquic is imported on use, as it may not be installed."""
    from aioquic.quic.packet import QuicPacketType
    from aioquic.quic.packet_builder import QuicSentPacket
    from aioquic.tls import Epoch

    return QuicSentPacket(
        epoch=Epoch.ONE_RTT,
        in_flight=True,
        is_ack_eliciting=True,
        is_crypto_packet=False,
        packet_number=number,
        packet_type=QuicPacketType.ONE_RTT,
        sent_time=sent_at_ns / NS_PER_S,
        sent_bytes=size_bytes,
    )
