"""Settings of a TCP stack, and of TLS and HTTP/2 above it."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from h3sim.constants import FRAME_HEADER_BYTES
from h3sim.errors import NetworkError, ValidationIssue
from h3sim.schema.fields import declare, validate
from h3sim.schema.values import Choice, Flag, Milliseconds, Number, OrNone, Whole
from h3sim.units import NS_PER_MS, NS_PER_S, to_ms

if TYPE_CHECKING:
    from collections.abc import Iterator


RECORD_OVERHEAD_BYTES = 5 + 1 + 16
"""A record's header, content type and AEAD tag (RFC 8446 § 5.2)."""
MIN_FRAME_BYTES = 32
"""The smallest payload for which a further frame is put into a record."""

_MAX_RECORD_BYTES = 2**14
"""The largest payload of a TLS record (RFC 8446 § 5.1)."""
_MIN_MSS_BYTES = 88
"""With less (RFC 879's smallest link aside), a one-segment record would hold no byte of a body."""
_MOST = 2**62
_GAIN = Number(low=0.01, high=100)
_INITIAL_SEGMENTS = 10
_INITIAL_BYTES = 14_600
"""RFC 6928 § 2: ten segments, 14,600 bytes unless two segments are more."""


class LossDetection(enum.StrEnum):
    """The loss detection of a sender."""

    SACK = "sack"
    """By what was selectively acknowledged above (RFC 6675)."""
    RACK = "rack"
    """By time, with probes for a lost tail (RACK-TLP, RFC 8985)."""


class SocketBuffer(enum.StrEnum):
    """The size of a socket's send buffer."""

    FIXED = "fixed"
    """*send_buffer_bytes*."""
    AUTOTUNED = "autotuned"
    """As Linux sizes it from the congestion window, up to *send_buffer_bytes*."""


class TlsVersion(enum.StrEnum):
    """The TLS version, which sets the round trips of a full handshake: 0, 2 or 1."""

    NONE = "none"
    """Cleartext: there are no records, and a frame can be read when it is complete."""
    TLS_1_2 = "1.2"
    TLS_1_3 = "1.3"


@dataclass(frozen=True, slots=True, kw_only=True)
class TcpSettings:
    """The settings of one endpoint; the defaults are the standards', `linux` returns Linux's.

    The declaration of each field describes it; docs/networks.md has them as a table. Other common
    values: an ACK may wait for 500 ms (RFC 9293), on Linux for 40 ms at least, on the BSDs
    for 100 ms, on many for 200 ms; Linux uses its smallest RTO as *rto_granularity_ns* (G of RFC
    6298). A *notsent_lowat_bytes* of 16 KB is what Cloudflare recommends for priorities to take
    effect, none is Linux's default. Dynamic records are those of Grigorik 2013, of h2o and of
    Cloudflare.

    The sizes of TLS messages are those on the wire, record headers included. The bounds of each
    setting are those of RFC 6298 § 2, RFC 7323 § 2.3 and RFC 9113 § 4.2.

    Raises:
        NetworkError: listing every value with which no connection could work.

    >>> TcpSettings().initial_window_bytes, TcpSettings.linux().recovery.value
    (14480, 'rack')
    """

    mss_bytes: int = field(
        default=1448,
        metadata=declare(Whole(low=_MIN_MSS_BYTES, high=65_495), "the payload of a full segment"),
    )
    receive_window_bytes: int = field(
        default=6 * 2**20,
        metadata=declare(Whole(low=1, high=2**30), "how much the other end may have under way"),
    )
    ack_every: int = field(
        default=2,
        metadata=declare(
            Whole(low=1, high=_MOST),
            "an ACK is due at once with every n-th segment that comes in order",
        ),
    )
    max_ack_delay_ns: int = field(
        default=40 * NS_PER_MS,
        metadata=declare(
            Milliseconds(low=0, high=60_000),
            "else so long after the first that is not acknowledged yet",
        ),
    )
    recovery: LossDetection = field(
        default=LossDetection.SACK,
        metadata=declare(
            Choice(LossDetection),
            "by what was selectively acknowledged (RFC 6675), or `rack`: by time, with "
            "probes for a lost tail (RFC 8985)",
        ),
    )
    has_prr: bool = field(
        default=True,
        metadata=declare(
            Flag(), "the window is reduced over the length of an episode (RFC 9937), else at once"
        ),
    )
    initial_rto_ns: int = field(
        default=NS_PER_S,
        metadata=declare(
            Milliseconds(low=1, high=3_600_000), "the retransmission timeout (RFC 6298) at first"
        ),
    )
    min_rto_ns: int = field(
        default=NS_PER_S,
        metadata=declare(Milliseconds(low=0, high=3_600_000), "the least it may be"),
    )
    max_rto_ns: int = field(
        default=60 * NS_PER_S,
        metadata=declare(Milliseconds(low=1000, high=3_600_000), "the most, 1000 or more"),
    )
    rto_granularity_ns: int = field(
        default=NS_PER_MS,
        metadata=declare(
            Milliseconds(low=0.001, high=60_000), "the least its term for the variance may be"
        ),
    )
    pacing_gain: float | None = field(default=None, metadata=declare(OrNone(_GAIN), "as for QUIC"))
    pacing_burst_segments: int = field(
        default=10, metadata=declare(Whole(low=1, high=2**20), "how many may leave together then")
    )
    notsent_lowat_bytes: int | None = field(
        default=16 * 1024,
        metadata=declare(
            OrNone(Whole(low=1, high=_MOST)),
            'no record enters the socket while so much waits in it unsent; `"none"`: no '
            "limit. With more, priorities come too late",
        ),
    )
    write_bytes: int = field(
        default=0,
        metadata=declare(
            Whole(low=0, high=_MOST),
            "what enters is so many bytes in all; 0: one record "
            "(h2o fills a buffer, and asks the scheduler again for the next); 63 or "
            "more, 41 without TLS",
        ),
    )
    cuts_frames: bool = field(
        default=True,
        metadata=declare(
            Flag(),
            "the last frame of a write is cut to what is left of it (h2o); or it enters "
            "whole, if anything is left (nghttpd). HEADERS are never cut so",
        ),
    )
    send_buffer: SocketBuffer = field(
        default=SocketBuffer.FIXED,
        metadata=declare(
            Choice(SocketBuffer),
            "how large the send buffer is: `send_buffer_bytes`; or `autotuned`, as "
            "Linux's is unless a server sets it: 87,040 bytes (with `mss_bytes` of "
            "1448), and six windows once the window is larger. One that was full takes "
            "nothing before a third of it is free",
        ),
    )
    send_buffer_bytes: int = field(
        default=4 * 2**20,
        metadata=declare(
            Whole(low=1, high=_MOST),
            "no record enters while so much is unsent or not acknowledged; the largest "
            "that is `autotuned`",
        ),
    )
    data_frame_bytes: int = field(
        default=2**14,
        metadata=declare(
            Whole(low=1, high=2**24 - 1),
            "the largest DATA frame of HTTP/2, which is a turn of the scheduler",
        ),
    )
    record_bytes: int = field(
        default=_MAX_RECORD_BYTES,
        metadata=declare(
            Whole(low=_MIN_MSS_BYTES, high=_MAX_RECORD_BYTES), "the largest record of TLS"
        ),
    )
    has_dynamic_records: bool = field(
        default=False, metadata=declare(Flag(), "records fit one segment at first and after a rest")
    )
    dynamic_record_bytes: int = field(
        default=2**20, metadata=declare(Whole(low=0, high=_MOST), "until so much was written")
    )
    dynamic_record_idle_ns: int = field(
        default=NS_PER_S,
        metadata=declare(Milliseconds(low=0, high=3_600_000), "what counts as a rest"),
    )
    tls: TlsVersion = field(
        default=TlsVersion.TLS_1_3,
        metadata=declare(
            Choice(TlsVersion),
            "or `1.2`, which takes a round trip more; or `none`: cleartext, in which a "
            "frame can be read when it is whole",
        ),
    )
    client_hello_bytes: int = field(
        default=517,
        metadata=declare(Whole(low=1, high=2**20), "the handshake of TLS: the client's hello"),
    )
    server_flight_bytes: int = field(
        default=3000, metadata=declare(Whole(low=1, high=2**20), "what the server answers")
    )
    client_finished_bytes: int = field(
        default=80, metadata=declare(Whole(low=1, high=2**20), "what the client ends it with")
    )
    tls12_server_finished_bytes: int = field(
        default=51,
        metadata=declare(Whole(low=1, high=2**20), "what the server ends it with in TLS 1.2"),
    )

    def __post_init__(self) -> None:
        validate(self, NetworkError)

    @classmethod
    def linux(cls) -> TcpSettings:
        """Return the settings of Linux.

        RACK-TLP, and an RTO at least 200 ms above the round trip.
        """
        return cls(
            recovery=LossDetection.RACK,
            min_rto_ns=200 * NS_PER_MS,
            rto_granularity_ns=200 * NS_PER_MS,
            max_rto_ns=120 * NS_PER_S,
        )

    @property
    def initial_window_bytes(self) -> int:
        """The initial window (RFC 6928 § 2)."""
        return min(_INITIAL_SEGMENTS * self.mss_bytes, max(2 * self.mss_bytes, _INITIAL_BYTES))

    def mistakes(self) -> Iterator[ValidationIssue]:
        """Yield inconsistencies between its values."""
        if self.receive_window_bytes < self.mss_bytes:
            message = f"must be at least mss_bytes ({self.mss_bytes:,})"
            message = f"{message}, is {self.receive_window_bytes}"
            yield ValidationIssue(key="receive_window_bytes", message=message)
        if self.max_rto_ns < self.min_rto_ns:
            message = f"must be at least min_rto_ms ({to_ms(self.min_rto_ns):g})"
            yield ValidationIssue(
                key="max_rto_ms", message=f"{message}, is {to_ms(self.max_rto_ns):g}"
            )
        least = (
            FRAME_HEADER_BYTES
            + MIN_FRAME_BYTES
            + (0 if self.tls == TlsVersion.NONE else RECORD_OVERHEAD_BYTES)
        )
        if 0 < self.write_bytes < least:
            message = f"must be 0, or at least {least} (a record with 32 bytes of a body)"
            yield ValidationIssue(key="write_bytes", message=f"{message}, is {self.write_bytes}")
