"""QUIC packets as the simulator needs them: frames by their ranges, sizes as encoded."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from h3sim.transport.endpoint import StreamBytes

__all__ = [
    "AEAD_TAG_BYTES",
    "MAX_FRAME_HEADER_BYTES",
    "AckFrame",
    "Packet",
    "ack_frame_bytes",
    "crypto_header_bytes",
    "stream_header_bytes",
    "varint_bytes",
]

AEAD_TAG_BYTES = 16
MAX_FRAME_HEADER_BYTES = 1 + 8 + 8 + 2

_ONE, _TWO, _FOUR = 1 << 6, 1 << 14, 1 << 30


def varint_bytes(value: int) -> int:
    """Return the length of a variable-length integer (RFC 9000 § 16).

    >>> [varint_bytes(value) for value in (63, 64, 16383, 16384, 2**30)]
    [1, 2, 2, 4, 8]
    """
    if value < _ONE:
        return 1
    if value < _TWO:
        return 2
    return 4 if value < _FOUR else 8


def stream_header_bytes(stream_id: int, offset: int) -> int:
    """Return the length of a STREAM frame's header with a two-byte length (RFC 9000 § 19.8).

    >>> stream_header_bytes(4, 0), stream_header_bytes(64, 20_000)
    (4, 9)
    """
    # Asked twice for every packet: the usual answers come without a further call.
    n_bytes = 4 if stream_id < _ONE else 5 if stream_id < _TWO else 3 + varint_bytes(stream_id)
    if _TWO <= offset < _FOUR:
        return n_bytes + 4
    return n_bytes + varint_bytes(offset) if offset else n_bytes


def crypto_header_bytes(offset: int) -> int:
    """Return the length of a CRYPTO frame's header, near enough: that of stream 0 at *offset*.

    >>> crypto_header_bytes(0), crypto_header_bytes(1000)
    (4, 6)
    """
    return stream_header_bytes(0, offset)


class AckFrame(NamedTuple):
    """What has arrived: spans of packet numbers, highest first, each (low, high) inclusive."""

    spans: tuple[tuple[int, int], ...]
    delay_ns: int


def ack_frame_bytes(frame: AckFrame) -> int:
    """Return the length of an ACK frame, near enough: 5 bytes and 2 per further range."""
    return 5 + 2 * (len(frame.spans) - 1)


class Packet:
    """A packet on the wire, and what its sender remembers of it.

    The attributes from `eliciting_index` on are those of ack-eliciting packets, and set when one
    leaves; the last four hold the state of delivery-rate sampling at that time
    (draft-cheng-iccrg-delivery-rate-estimation).
    """

    __slots__ = (
        "ack",
        "crypto",
        "delivered_at_ns",
        "delivered_bytes",
        "eliciting_index",
        "first_sent_at_ns",
        "frames",
        "is_ack_eliciting",
        "is_app_limited",
        "limits",
        "number",
        "sent_at_ns",
        "size_bytes",
    )

    eliciting_index: int
    """Its place among the ack-eliciting packets of its sender."""
    is_app_limited: bool
    delivered_bytes: int
    delivered_at_ns: int
    first_sent_at_ns: int

    def __init__(
        self,
        number: int,
        sent_at_ns: int,
        size_bytes: int,
        frames: list[StreamBytes],
        ack: AckFrame | None,
        limits: Sequence[tuple[int | None, int]],
        is_ack_eliciting: bool,
        crypto: Sequence[tuple[int, int]] = (),
    ) -> None:
        self.number = number
        self.sent_at_ns = sent_at_ns
        self.size_bytes = size_bytes
        self.frames = frames
        self.ack = ack
        self.limits = limits
        """MAX_DATA (stream None) and MAX_STREAM_DATA frames: a stream and its new limit."""
        self.is_ack_eliciting = is_ack_eliciting
        self.crypto = crypto
        """CRYPTO frames (RFC 9000 § 19.6), each an offset and a number of handshake bytes. They are
        kept apart from those of streams: whenever they arrive, no stream may take them for its."""
