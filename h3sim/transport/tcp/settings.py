"""Settings of a TCP stack, and of TLS and HTTP/2 above it."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from h3sim.schema.fields import declare, validate
from h3sim.schema.values import Choice, Flag, Integer, Milliseconds, Number, OrNone
from h3sim.values.constants import FRAME_HEADER_BYTES, UNLIMITED_BYTES
from h3sim.values.errors import NetworkError, ValidationIssue
from h3sim.values.units import NS_PER_MS, NS_PER_S, to_ms

if TYPE_CHECKING:
    from collections.abc import Iterator


RECORD_OVERHEAD_BYTES = 5 + 1 + 16
"""A record's header, content type and AEAD tag (RFC 8446 § 5.2)."""
MIN_FRAME_BYTES = 32
"""The smallest payload for which another frame is added to a record."""

MAX_RECORD_BYTES = 2**14
"""The largest payload of a TLS record (RFC 8446 § 5.1)."""
_MIN_MSS_BYTES = 88
"""With less, a record of one segment would have no room for body bytes."""
_NO_LIMIT = 2**62
"""The upper limit of settings that a standard does not limit."""
_PACING_GAIN = Number(low=0.01, high=100)
"""The type of a pacing rate in windows per round trip."""
_INITIAL_SEGMENTS = 10
"""Segments of the initial window (RFC 6928 § 2), at most."""
_INITIAL_BYTES = 14_600
"""Bytes of the initial window (RFC 6928 § 2), at most unless two segments are more."""


class LossDetection(enum.StrEnum):
    """The loss detection of a sender."""

    SACK = "sack"
    """By selective acknowledgements of later data (RFC 6675)."""
    RACK = "rack"
    """By time, with probes for tail losses (RACK-TLP, RFC 8985)."""


class SocketBuffer(enum.StrEnum):
    """The size of a socket's send buffer."""

    FIXED = "fixed"
    """*send_buffer_bytes*."""
    AUTOTUNED = "autotuned"
    """As Linux derives it from the congestion window, up to *send_buffer_bytes*."""


class TlsVersion(enum.StrEnum):
    """The TLS version, which sets the round trips of a full handshake: 0, 2 or 1."""

    NONE = "none"
    """Cleartext: there are no records, and a frame can be read once it is complete."""
    TLS_1_2 = "1.2"
    TLS_1_3 = "1.3"


_MAX_WINDOW_BYTES = 2**31 - 1
"""The largest window of HTTP/2 (RFC 9113 § 6.9.1)."""
_WINDOW = Integer(low=1, high=_MAX_WINDOW_BYTES, hint="2^31 - 1, RFC 9113 § 6.9.1")


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowControl:
    """HTTP/2's flow control by one end, as receiver (RFC 9113 § 5.2); None: not stated here.

    The connection's window is never smaller than 65,535 bytes, which no setting can change
    (§ 6.9.2).

    >>> FlowControl(stream_window_bytes=65_535).over(BROWSER_WINDOWS).connection_window_bytes
    15728640
    """

    stream_window_bytes: int | None = field(
        default=None,
        metadata=declare(
            _WINDOW,
            "HTTP/2's flow control window of a stream; by default that of the client or server"
            " (and for others, Chrome's 6 MiB for responses, nginx's 2 GiB for requests)",
        ),
    )
    initial_stream_window_bytes: int | None = field(
        default=None,
        metadata=declare(
            _WINDOW,
            "its size until HEADERS have arrived on it (SETTINGS_INITIAL_WINDOW_SIZE); by default"
            " the same",
        ),
    )
    connection_window_bytes: int | None = field(
        default=None,
        metadata=declare(
            Integer(low=65_535, high=_MAX_WINDOW_BYTES, hint="RFC 9113 § 6.9.2"),
            "the window of the connection; by default as above (15 MiB, and 2 GiB)",
        ),
    )
    window_update_bytes: int | None = field(
        default=None,
        metadata=declare(
            _WINDOW,
            "a window is raised once so much of it is used; by default half of it",
        ),
    )
    max_window_bytes: int | None = field(
        default=None,
        metadata=declare(
            _WINDOW,
            "a window that is raised twice within two round trips doubles, up to this; by default"
            " windows stay as they are",
        ),
    )

    def __post_init__(self) -> None:
        validate(self, NetworkError)

    def over(self, others: FlowControl) -> FlowControl:
        """Return these values, and those of *others* for what is not stated here."""
        # The initial size and what raises a window belong to its size, not to that of others.
        if self.stream_window_bytes is not None:
            others = FlowControl(connection_window_bytes=others.connection_window_bytes)
        stated = {name: getattr(self, name) for name in FlowControl.__slots__}
        return replace(others, **{name: value for name, value in stated.items() if value})

    @property
    def initial_limits(self) -> tuple[int, int]:
        """The limits of a stream and of the connection before anything has arrived, as stated."""
        stream_bytes = self.initial_stream_window_bytes or self.stream_window_bytes
        return stream_bytes or UNLIMITED_BYTES, self.connection_window_bytes or UNLIMITED_BYTES


BROWSER_WINDOWS = FlowControl(stream_window_bytes=6 * 2**20, connection_window_bytes=15 * 2**20)
"""Chrome's windows (net/http/http_network_session.cc), for clients that state none."""
SERVER_WINDOWS = FlowControl(
    stream_window_bytes=_MAX_WINDOW_BYTES,
    initial_stream_window_bytes=65_536,
    connection_window_bytes=_MAX_WINDOW_BYTES,
)
"""nginx's windows (ngx_http_v2.c and its default of http2_body_preread_size), for servers that
state none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TcpSettings(FlowControl):
    """The settings of one endpoint; the defaults follow the standards, `linux` returns Linux's.

    The declaration of each field describes it; docs/networks.md has them as a table. Other common
    values: an ACK may be delayed by up to 500 ms (RFC 9293), on Linux by at least 40 ms, on the
    BSDs by 100 ms, on many systems by 200 ms; Linux uses its minimum RTO as *rto_granularity_ns* (G
    of RFC 6298). Cloudflare recommends a *notsent_lowat_bytes* of 16 KB for priorities to take
    effect; Linux has none by default. Dynamic records are those of Grigorik 2013, of h2o and of
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
        metadata=declare(Integer(low=_MIN_MSS_BYTES, high=65_495), "payload of a full segment"),
    )
    receive_window_bytes: int = field(
        default=6 * 2**20,
        metadata=declare(
            Integer(low=1, high=2**30), "TCP's receive window: limit of unacknowledged bytes"
        ),
    )
    ack_every: int = field(
        default=2,
        metadata=declare(
            Integer(low=1, high=_NO_LIMIT),
            "every n-th segment in order is acknowledged immediately",
        ),
    )
    max_ack_delay_ns: int = field(
        default=40 * NS_PER_MS,
        metadata=declare(
            Milliseconds(low=0, high=60_000),
            "maximum delay of an acknowledgement otherwise",
        ),
    )
    recovery: LossDetection = field(
        default=LossDetection.SACK,
        metadata=declare(
            Choice(LossDetection),
            "loss detection by selective acknowledgements (RFC 6675), or `rack`: by time,"
            " with probes for tail losses (RFC 8985)",
        ),
    )
    has_prr: bool = field(
        default=True,
        metadata=declare(
            Flag(),
            "the window is reduced proportionally during recovery (PRR, RFC 9937), else at once",
        ),
    )
    undoes_reductions: bool = field(
        default=False,
        metadata=declare(
            Flag(),
            "a reduction of the window is undone if all its retransmissions prove to be spurious,"
            " by D-SACK or by the timestamp that the ACK echoes (RFC 3522, RFC 4015)",
        ),
    )
    initial_rto_ns: int = field(
        default=NS_PER_S,
        metadata=declare(
            Milliseconds(low=1, high=3_600_000), "initial retransmission timeout (RFC 6298)"
        ),
    )
    min_rto_ns: int = field(
        default=NS_PER_S,
        metadata=declare(Milliseconds(low=0, high=3_600_000), "its lower limit"),
    )
    max_rto_ns: int = field(
        default=60 * NS_PER_S,
        metadata=declare(Milliseconds(low=1000, high=3_600_000), "its upper limit, at least 1000"),
    )
    rto_granularity_ns: int = field(
        default=NS_PER_MS,
        metadata=declare(Milliseconds(low=0.001, high=60_000), "lower limit of its variance term"),
    )
    user_timeout_ns: int | None = field(
        default=300 * NS_PER_S,
        metadata=declare(
            OrNone(Milliseconds(low=1, high=3_600_000)),
            "a connection is given up if no data is acknowledged for this long (RFC 9293"
            " § 3.9.1.1; Linux: 924,600, from `tcp_retries2`)",
            key="user_timeout_ms",
        ),
    )
    pacing_gain: float | None = field(
        default=None, metadata=declare(OrNone(_PACING_GAIN), "as for QUIC")
    )
    pacing_burst_segments: int = field(
        default=10, metadata=declare(Integer(low=1, high=2**20), "maximum burst of a paced sender")
    )
    notsent_lowat_bytes: int | None = field(
        default=16 * 1024,
        metadata=declare(
            OrNone(Integer(low=1, high=_NO_LIMIT)),
            "no record is written while the socket has this many unsent bytes;"
            ' `"none"`: no limit. With more, priorities take effect too late',
        ),
    )
    write_bytes: int = field(
        default=0,
        metadata=declare(
            Integer(low=0, high=_NO_LIMIT),
            "size of a write; 0: one record (h2o fills a buffer, and asks the scheduler again"
            " for the next); at least 63, or 41 without TLS",
        ),
    )
    cuts_frames: bool = field(
        default=True,
        metadata=declare(
            Flag(),
            "the last frame of a write is shortened to fit (h2o); otherwise it is written"
            " completely if any room is left (nghttpd). HEADERS are never shortened",
        ),
    )
    send_buffer: SocketBuffer = field(
        default=SocketBuffer.FIXED,
        metadata=declare(
            Choice(SocketBuffer),
            "size of the send buffer: `send_buffer_bytes`; or `autotuned`, Linux's default:"
            " 87,040 bytes (with `mss_bytes` of 1448), and six windows once the window is"
            " larger. A full buffer accepts data again when a third of it is free",
        ),
    )
    send_buffer_bytes: int = field(
        default=4 * 2**20,
        metadata=declare(
            Integer(low=1, high=_NO_LIMIT),
            "size of the send buffer: limit of unacknowledged and unsent bytes, also if"
            " `autotuned`",
        ),
    )
    data_frame_bytes: int = field(
        default=2**14,
        metadata=declare(
            Integer(low=1, high=2**24 - 1),
            "maximum size of a DATA frame of HTTP/2, which is one quantum of the scheduler",
        ),
    )
    record_bytes: int = field(
        default=MAX_RECORD_BYTES,
        metadata=declare(
            Integer(low=_MIN_MSS_BYTES, high=MAX_RECORD_BYTES), "maximum size of a TLS record"
        ),
    )
    has_dynamic_records: bool = field(
        default=False,
        metadata=declare(
            Flag(), "records fit into one segment at the start and after an idle period"
        ),
    )
    dynamic_record_bytes: int = field(
        default=2**20,
        metadata=declare(Integer(low=0, high=_NO_LIMIT), "until that many bytes were written"),
    )
    dynamic_record_idle_ns: int = field(
        default=NS_PER_S,
        metadata=declare(Milliseconds(low=0, high=3_600_000), "length of such an idle period"),
    )
    tls: TlsVersion = field(
        default=TlsVersion.TLS_1_3,
        metadata=declare(
            Choice(TlsVersion),
            "or `1.2`, with one more round trip; or `none`: cleartext, in which a frame can"
            " be read once it is complete",
        ),
    )
    client_hello_bytes: int = field(
        default=517,
        metadata=declare(Integer(low=1, high=2**20), "TLS handshake: ClientHello"),
    )
    server_flight_bytes: int = field(
        default=3000, metadata=declare(Integer(low=1, high=2**20), "server's first flight")
    )
    client_finished_bytes: int = field(
        default=80, metadata=declare(Integer(low=1, high=2**20), "client's Finished")
    )
    tls12_server_finished_bytes: int = field(
        default=51,
        metadata=declare(Integer(low=1, high=2**20), "server's Finished in TLS 1.2"),
    )

    def __post_init__(self) -> None:
        validate(self, NetworkError)

    @classmethod
    def linux(cls) -> TcpSettings:
        """Return the settings of Linux.

        They use RACK-TLP, and an RTO at least 200 ms above the round-trip time.
        """
        return cls(
            recovery=LossDetection.RACK,
            min_rto_ns=200 * NS_PER_MS,
            rto_granularity_ns=200 * NS_PER_MS,
            max_rto_ns=120 * NS_PER_S,
            user_timeout_ns=924_600 * NS_PER_MS,
        )

    @property
    def initial_window_bytes(self) -> int:
        """The initial window (RFC 6928 § 2)."""
        return min(_INITIAL_SEGMENTS * self.mss_bytes, max(2 * self.mss_bytes, _INITIAL_BYTES))

    def issues(self) -> Iterator[ValidationIssue]:
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
        min_write_bytes = (
            FRAME_HEADER_BYTES
            + MIN_FRAME_BYTES
            + (0 if self.tls == TlsVersion.NONE else RECORD_OVERHEAD_BYTES)
        )
        if 0 < self.write_bytes < min_write_bytes:
            message = f"must be 0, or at least {min_write_bytes} (a record with 32 bytes of body)"
            yield ValidationIssue(key="write_bytes", message=f"{message}, is {self.write_bytes}")
