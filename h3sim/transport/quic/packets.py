"""QUIC packets as the simulator models them: frames by their ranges, sizes as encoded."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

from h3sim.transport.endpoint import FrameHeader
from h3sim.transport.packets import NOT_ECT, SentPacket

if TYPE_CHECKING:
    from collections.abc import Sequence

    from h3sim.transport.packets import StreamBytes


Spans: TypeAlias = tuple[tuple[int, int], ...]
"""Packet numbers of an ACK: highest first, each (low, high) inclusive."""

# RFC 9000 § 16: two bits of the first byte are the length, so 6, 14 and 30 bits hold the value.
# These are the numbers of values that fit into one, two and four bytes.
_ONE_BYTE_VALUES: Final = 1 << 6
_TWO_BYTE_VALUES: Final = 1 << 14
_FOUR_BYTE_VALUES: Final = 1 << 30


def varint_bytes(value: int) -> int:
    """Return the length of a variable-length integer (RFC 9000 § 16).

    >>> [varint_bytes(value) for value in (63, 64, 16383, 16384, 2**30)]
    [1, 2, 2, 4, 8]
    """
    if value < _ONE_BYTE_VALUES:
        return 1
    if value < _TWO_BYTE_VALUES:
        return 2
    return 4 if value < _FOUR_BYTE_VALUES else 8


class StreamFrameHeader(FrameHeader):
    """The header of a STREAM frame with a two-byte length (RFC 9000 § 19.8).

    >>> header = StreamFrameHeader()
    >>> header.measure(4, 0), header.measure(64, 20_000), header.n_bytes
    (4, 9, 9)
    """

    __slots__ = ()

    def measure(self, stream_id: int, offset: int) -> int:
        """Return the length of the header of a frame that begins at *offset* of a stream."""
        # Called for every packet: common cases need no further call.
        # One byte for the type, one for a small stream ID, two for the length; offset 0 takes none.
        n_bytes = (
            4
            if stream_id < _ONE_BYTE_VALUES
            else 5
            if stream_id < _TWO_BYTE_VALUES
            else 3 + varint_bytes(stream_id)
        )
        if offset >= _TWO_BYTE_VALUES:
            n_bytes += 4 if offset < _FOUR_BYTE_VALUES else varint_bytes(offset)
        elif offset:
            n_bytes += 2 if offset >= _ONE_BYTE_VALUES else 1
        self.n_bytes = n_bytes
        return n_bytes


def crypto_header_bytes(offset: int) -> int:
    """Return the approximate length of a CRYPTO frame's header: that of stream 0 at *offset*.

    >>> crypto_header_bytes(0), crypto_header_bytes(1000)
    (4, 6)
    """
    return StreamFrameHeader().measure(0, offset)


def ack_frame_bytes(spans: Spans) -> int:
    """Return the approximate length of an ACK frame: 5 bytes and 2 per further range."""
    return 3 + 2 * len(spans)


class QuicPacket(SentPacket):
    """A packet on the wire, and its sender's record of it.

    `eliciting_index` and the delivery-rate fields of `SentPacket` are set when an ack-eliciting
    packet is sent; other packets have neither.
    """

    __slots__ = (
        "ack",
        "ack_delay_ns",
        "ce_count",
        "crypto",
        "eliciting_index",
        "is_ack_eliciting",
        "limits",
    )

    eliciting_index: int
    """Its index among the ack-eliciting packets of its sender."""

    def __init__(
        self,
        number: int,
        sent_at_ns: int,
        size_bytes: int,
        frames: list[StreamBytes],
        ack: Spans | None,
        limits: Sequence[tuple[int | None, int]],
        is_ack_eliciting: bool,
        crypto: Sequence[tuple[int, int]] = (),
        ack_delay_ns: int = 0,
    ) -> None:
        self.number = number
        self.sent_at_ns = sent_at_ns
        self.size_bytes = size_bytes
        self.frames = frames
        # Two fields rather than an ACK object: constructing one takes as long as half of the
        # processing of an ACK.
        self.ack = ack
        self.ack_delay_ns = ack_delay_ns
        self.limits = limits
        """MAX_DATA (stream None) and MAX_STREAM_DATA frames: a stream and its new limit."""
        self.ecn = NOT_ECT
        self.ce_count = 0
        """The packets with a mark that its ACK reports (RFC 9000 § 19.3.2)."""
        self.is_ack_eliciting = is_ack_eliciting
        self.crypto = crypto
        """CRYPTO frames (RFC 9000 § 19.6), each an offset and a number of handshake bytes. They are
        separate from stream frames, so that no stream can mistake them for its own."""
