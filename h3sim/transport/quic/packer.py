"""Packing of QUIC packets: handshake bytes, limits, stream bytes, and an ACK with them.

Read next, on the path of docs/reading.md: `h3sim/transport/quic/recovery.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from h3sim.transport.quic.packets import QuicPacket, StreamFrameHeader

if TYPE_CHECKING:
    from collections.abc import Sequence

    from h3sim.transport.endpoint import Source
    from h3sim.transport.packets import StreamBytes
    from h3sim.transport.quic.handshake import Handshake
    from h3sim.transport.quic.recovery import AckState, Recovery
    from h3sim.transport.quic.settings import QuicSettings


MIN_FRAME_BYTES: Final = 32
"""The smallest part of a stream that is worth a frame header."""
_RESERVED_ACK_BYTES: Final = 5
"""Reserved for an ACK while a packet is filled; further ranges are added on top."""
_LIMIT_FRAME_BYTES: Final = 6
"""Approximate size of MAX_DATA or MAX_STREAM_DATA: a type, an id of one byte, and a limit below
2^30 (RFC 9000 §§ 19.9, 19.10). Added on top of a filled packet."""
_RESENT_HEADER_BYTES: Final = 12
"""Approximate size of the header of a retransmitted frame."""


class Packer:
    """The packer of one endpoint; packets take consecutive numbers of *recovery*."""

    __slots__ = (
        "_ack_ping_every",
        "_acks",
        "_bundles_acks",
        "_handshake",
        "_header_bytes",
        "_initial_bytes",
        "_recovery",
        "_source",
        "header",
        "limits",
        "probes",
    )

    def __init__(
        self,
        settings: QuicSettings,
        source: Source,
        handshake: Handshake,
        acks: AckState,
        recovery: Recovery,
    ) -> None:
        self._header_bytes = settings.header_bytes
        self._initial_bytes = settings.client_initial_bytes
        self._bundles_acks = settings.bundles_acks
        self._ack_ping_every = settings.ack_ping_every
        self._source = source
        self._handshake = handshake
        self._acks = acks
        self._recovery = recovery
        self.header = StreamFrameHeader()
        self.limits: dict[int | None, int] = {}
        """Raised limits that are to be announced, the newest per stream."""
        self.probes = 0
        """The number of probes to send."""

    def packet(self, now_ns: int, room: int) -> QuicPacket | None:
        """Return a packet of up to *room* bytes with waiting data; None if there is none."""
        # The frames are chosen first, so room for the ACK that goes with them is reserved before.
        reserved_bytes = _RESERVED_ACK_BYTES if self._is_ack_ready(now_ns) else 0
        left_bytes = room - self._header_bytes - reserved_bytes
        frames: list[StreamBytes] = []
        crypto: list[tuple[int, int]] = []
        handshake = self._handshake
        if not handshake.is_over:
            left_bytes = room - handshake.fill(crypto, room - left_bytes, room)
        if handshake.is_over or handshake.may_send:
            # One byte is enough for the first frame: a stream's last bytes must not wait for
            # others.
            left_bytes = self.fill(frames, left_bytes, 1)
        used_bytes = room - left_bytes - reserved_bytes
        if self.probes:
            return self._probe(now_ns, frames, crypto, used_bytes)
        if not frames and not crypto and not self.limits:
            return None
        self._recovery.is_cwnd_underutilized = False
        return self._pack(now_ns, frames, crypto, used_bytes)

    def fill(self, frames: list[StreamBytes], left_bytes: int, min_bytes: int) -> int:
        """Append frames from the source to *frames*, up to *left_bytes*; return the bytes left.

        The first frame carries at least *min_bytes* of its stream.
        """
        source, header = self._source, self.header
        while left_bytes >= MIN_FRAME_BYTES:
            frame = source.take(left_bytes, header, min_bytes)
            if frame is None:
                break
            frames.append(frame)
            _, _, n_bytes = frame
            left_bytes -= header.n_bytes + n_bytes
            min_bytes = MIN_FRAME_BYTES
        return left_bytes

    def bare_ack(self, now_ns: int) -> QuicPacket:
        """Return a packet that carries an ACK alone."""
        if self.limits or self._ack_ping_every:
            return self._pack(now_ns, [], (), self._header_bytes)
        # The result of `_pack` without limits and PINGs: half of a client's packets lead to one.
        acks, recovery = self._acks, self._recovery
        ack = acks.take()
        number = recovery.next_number
        recovery.next_number = number + 1
        size_bytes = self._header_bytes + acks.frame_bytes(ack)
        delay_ns = now_ns - acks.largest_at_ns
        packet = QuicPacket(number, now_ns, size_bytes, [], ack, (), False, (), delay_ns)
        packet.ce_count = acks.ce_count
        return packet

    def _probe(
        self,
        now_ns: int,
        frames: list[StreamBytes],
        crypto: list[tuple[int, int]],
        used_bytes: int,
    ) -> QuicPacket | None:
        """Return a probe with these frames, or else with those of the oldest packet in flight."""
        if not frames and not crypto and not self.limits:
            # Probes ignore the congestion window, but not the anti-amplification limit.
            allowance = self._handshake.allowance_bytes - _RESERVED_ACK_BYTES
            oldest = self._recovery.oldest
            if oldest is not None:  # RFC 9002 § 6.2.4
                used_bytes = _resend_data(oldest, frames, crypto, used_bytes, allowance)
            if not frames and not crypto:
                if allowance <= used_bytes:
                    return None
                # Without data one PING elicits an ACK as well as two.
                self.probes = 0
                # A client probes even with nothing in flight: otherwise a server at its
                # amplification limit and a client that waits for it would deadlock (RFC 9002 §
                # 6.2.2.1).
                must_probe = self._recovery.bytes_in_flight or self._handshake.may_deadlock
                return self._ping(now_ns) if must_probe else None
        self.probes -= 1
        return self._pack(now_ns, frames, crypto, used_bytes)

    def _pack(
        self,
        now_ns: int,
        frames: list[StreamBytes],
        crypto: Sequence[tuple[int, int]],
        used_bytes: int,
    ) -> QuicPacket:
        """Return a packet with these frames, waiting limits, and an ACK if one is ready."""
        limits: Sequence[tuple[int | None, int]] = ()
        if self.limits:
            limits = [*self.limits.items()]
            self.limits.clear()
            used_bytes += _LIMIT_FRAME_BYTES * len(limits)
        is_eliciting = bool(frames or crypto or limits)
        ack = None
        number = self._take_number()
        if self._is_ack_ready(now_ns):  # always so for a bare ACK
            ack = self._acks.take()
            used_bytes += self._acks.frame_bytes(ack)
            every = self._ack_ping_every
            # Without an ACK of an ACK the older spans would be reported for ever (RFC 9000 §
            # 13.2.4).
            if every and not number % every and len(ack) > 1:
                is_eliciting = True
                used_bytes += 1
        if not self._handshake.is_over:
            used_bytes = self._handshake.padded(crypto, used_bytes)
        delay_ns = now_ns - self._acks.largest_at_ns
        packet = QuicPacket(
            number, now_ns, used_bytes, frames, ack, limits, is_eliciting, crypto, delay_ns
        )
        packet.ce_count = self._acks.ce_count
        return packet

    def _ping(self, now_ns: int) -> QuicPacket:
        """Return a probe that carries only a PING."""
        # Padded to a full datagram (RFC 9000 § 14.1): the server may then send three times as much.
        min_bytes = self._initial_bytes if self._handshake.may_deadlock else 0
        used_bytes = max(self._header_bytes + 1, min_bytes)
        return QuicPacket(self._take_number(), now_ns, used_bytes, [], None, (), True)

    def _take_number(self) -> int:
        """Return the number of the next packet, and advance."""
        recovery = self._recovery
        number = recovery.next_number
        recovery.next_number = number + 1
        return number

    def _is_ack_ready(self, now_ns: int) -> bool:
        """Return whether the next packet carries an ACK."""
        due_at_ns = self._acks.due_at_ns
        return due_at_ns is not None and (self._bundles_acks or due_at_ns <= now_ns)


def _resend_data(
    oldest: QuicPacket,
    frames: list[StreamBytes],
    crypto: list[tuple[int, int]],
    used_bytes: int,
    max_used: int,
) -> int:
    """Append the data of *oldest* to both lists, up to *max_used* bytes; return the used bytes."""
    for stream_id, offset, length in oldest.frames:
        n_bytes = min(length, max_used - used_bytes - _RESENT_HEADER_BYTES)
        if n_bytes > 0 or n_bytes == length:  # a frame without bytes carries the end of a stream
            frames.append((stream_id, offset, n_bytes))
            used_bytes += n_bytes + _RESENT_HEADER_BYTES
    for offset, length in oldest.crypto:
        n_bytes = min(length, max_used - used_bytes - _RESENT_HEADER_BYTES)
        if n_bytes > 0:
            crypto.append((offset, n_bytes))
            used_bytes += n_bytes + _RESENT_HEADER_BYTES
    return used_bytes
