"""TCP segments: on the wire, and as their sender's records."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from h3sim.constants import IP_HEADER_BYTES
from h3sim.transport.packets import NOT_ECT, SentPacket, WirePacket

if TYPE_CHECKING:
    from h3sim.transport.packets import StreamBytes
    from h3sim.transport.tcp.records import TlsRecord


HEADER_BYTES: Final = 20 + 12
"""The header (RFC 9293 § 3.1) and the timestamps option, padded (RFC 7323 § 3.2, appendix A)."""
SYN_BYTES: Final = 40
"""A SYN's header: MSS, SACK-permitted, timestamps and window scale."""
_BYTES_PER_BLOCK: Final = 8
_SACK_OPTION_BYTES: Final = 4
# Shared by segments without data; segments are immutable.
_NO_FRAMES: list[StreamBytes] = []
_NO_RECORDS: list[TlsRecord] = []


def sack_option_bytes(n_blocks: int) -> int:
    """Return the length of a SACK option (RFC 2018 § 3), padded to whole words.

    >>> [sack_option_bytes(n_blocks) for n_blocks in (0, 1, 3)]
    [0, 12, 28]
    """
    return _SACK_OPTION_BYTES + _BYTES_PER_BLOCK * n_blocks if n_blocks else 0


class Segment(WirePacket):
    """A segment on the wire, immutable: a retransmission is another segment.

    *seq* counts the bytes of the stream from 0; a SYN takes no number. *sack* holds spans that
    arrived, the newest first. *echo_ns* is the echoed timestamp (RFC 7323). *frames* are the body
    bytes in its payload, for traces; *records* are the TLS records whose last byte it carries,
    which is what its receiver learns from it.
    """

    __slots__ = (
        "ack",
        "echo_ns",
        "is_cwr",
        "is_ece",
        "is_syn",
        "length",
        "records",
        "sack",
        "seq",
        "window_bytes",
    )

    def __init__(
        self,
        number: int,
        sent_at_ns: int,
        seq: int,
        length: int,
        ack: int | None,
        echo_ns: int | None,
        window_bytes: int,
        sack: tuple[tuple[int, int], ...] = (),
        frames: list[StreamBytes] = _NO_FRAMES,
        records: list[TlsRecord] = _NO_RECORDS,
        is_syn: bool = False,
    ) -> None:
        self.number = number
        """Its number in the order of sending, data or not."""
        self.sent_at_ns = sent_at_ns
        self.seq = seq
        self.length = length
        self.ack = ack
        self.echo_ns = echo_ns
        self.window_bytes = window_bytes
        self.sack = sack
        self.frames = frames
        self.records = records
        self.is_syn = is_syn
        self.ecn = NOT_ECT
        self.is_ece = False
        """ECN-Echo: a mark has arrived, and no CWR since (RFC 3168 § 6.1)."""
        self.is_cwr = False
        """Congestion Window Reduced."""
        self.size_bytes = HEADER_BYTES + length
        """Its size with TCP's header, without that of IP."""
        if sack:
            self.size_bytes += sack_option_bytes(len(sack))
        elif is_syn:
            self.size_bytes = SYN_BYTES

    @property
    def ip_bytes(self) -> int:
        """Its size with IPv4's header."""
        return self.size_bytes + IP_HEADER_BYTES


class SentSegment(SentPacket):
    """Data in flight: what its sender remembers until it is acknowledged.

    Congestion controllers see it too: *size_bytes* is the payload alone, since TCP's window counts
    payload, and *number* that of its last transmission. The four delivery fields, set by
    `DeliverySampler` on sending, hold the state of delivery-rate sampling
    (draft-cheng-iccrg-delivery-rate-estimation).
    """

    __slots__ = (
        "copies",
        "is_lost",
        "is_retransmitted",
        "is_sacked",
        "records",
        "seq",
        "stop",
    )

    def __init__(
        self,
        number: int,
        sent_at_ns: int,
        seq: int,
        size_bytes: int,
        frames: list[StreamBytes],
        records: list[TlsRecord],
    ) -> None:
        self.number = number
        self.sent_at_ns = sent_at_ns
        self.seq = seq
        self.size_bytes = size_bytes
        self.stop = seq + size_bytes
        self.frames = frames
        self.records = records
        self.copies = 1
        """The number of its transmissions in flight."""
        self.is_sacked = False
        self.is_lost = False
        """True if a transmission of it was declared lost."""
        self.is_retransmitted = False
