"""How a TCP stack, and the TLS and HTTP/2 above it, are set up, as one value."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import TYPE_CHECKING

from h3sim.errors import NetworkError, Problem
from h3sim.transport.value_checks import Range, gain_problems, range_problems
from h3sim.units import NS_PER_MS, NS_PER_S, to_ms

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = [
    "FRAME_HEADER_BYTES",
    "MIN_ROOM_BYTES",
    "RECORD_OVERHEAD_BYTES",
    "LossDetection",
    "TcpSettings",
    "TlsVersion",
]

FRAME_HEADER_BYTES = 9
"""RFC 9113 § 4.1."""
RECORD_OVERHEAD_BYTES = 5 + 1 + 16
"""A header, the type of the content and the AEAD's tag (RFC 8446 § 5.2)."""
MIN_ROOM_BYTES = FRAME_HEADER_BYTES + 32
"""With less room than this in a record, no further frame is worth its header."""

_MAX_RECORD_BYTES = 2**14
"""The largest payload of a TLS record (RFC 8446 § 5.1)."""
_MIN_MSS_BYTES = 88
"""With less (RFC 879's smallest link aside), a one-segment record would hold no byte of a body."""
_INITIAL_SEGMENTS = 10
_INITIAL_BYTES = 14_600
_RANGES: tuple[Range, ...] = (
    ("mss_bytes", _MIN_MSS_BYTES, 65_495),
    ("receive_window_bytes", 1, 2**30),
    ("ack_every", 1, 2**62),
    ("max_ack_delay_ns", 0, 60 * NS_PER_S),
    ("initial_rto_ns", NS_PER_MS, 3600 * NS_PER_S),
    ("min_rto_ns", 0, 3600 * NS_PER_S),
    ("max_rto_ns", NS_PER_S, 3600 * NS_PER_S),
    ("rto_granularity_ns", NS_PER_MS // 1000, 60 * NS_PER_S),
    ("pacing_burst_segments", 1, 2**20),
    ("notsent_lowat_bytes", 1, 2**62),
    ("write_bytes", 0, 2**62),
    ("send_buffer_bytes", 1, 2**62),
    ("data_frame_bytes", 1, 2**24 - 1),
    ("record_bytes", _MIN_MSS_BYTES, _MAX_RECORD_BYTES),
    ("dynamic_record_bytes", 0, 2**62),
    ("dynamic_record_idle_ns", 0, 3600 * NS_PER_S),
    ("client_hello_bytes", 1, 2**20),
    ("server_flight_bytes", 1, 2**20),
    ("client_finished_bytes", 1, 2**20),
    ("tls12_server_finished_bytes", 1, 2**20),
)
"""The smallest and the largest of each setting (RFC 6298 § 2, RFC 7323 § 2.3, RFC 9113 § 4.2)."""


class LossDetection(enum.StrEnum):
    """How a sender finds out what was lost."""

    SACK = "sack"
    """By what was selectively acknowledged above (RFC 6675)."""
    RACK = "rack"
    """By time, with probes for a lost tail (RACK-TLP, RFC 8985)."""


class TlsVersion(enum.StrEnum):
    """How many round trips a full TLS handshake takes: none, two, or one."""

    NONE = "none"
    """Cleartext: there are no records, and a frame can be read when it is whole."""
    TLS_1_2 = "1.2"
    TLS_1_3 = "1.3"


@dataclass(frozen=True, slots=True, kw_only=True)
class TcpSettings:
    """The settings of one end; the defaults are the standards', `linux` has those of Linux.

    Segments: *mss_bytes* of payload beside the timestamps option; a peer may have
    *receive_window_bytes* under way (more than a browser's connection ever uses). *ack_every*
    segments that come in order are acknowledged together, within *max_ack_delay_ns* (RFC 9293
    allows 500 ms; Linux waits for 40 ms at least, the BSDs for 100 ms, and many for 200 ms).

    Recovery: *recovery* (see `LossDetection`); with *has_prr* the reduction of the window is spread
    over an episode (RFC 9937, as Linux and others have it), else it is made at once. The
    retransmission timeout of RFC 6298 is *initial_rto_ns* at first, never below *min_rto_ns* or
    above *max_rto_ns*, and its term for the variance never below *rto_granularity_ns* (G there;
    Linux keeps it at its smallest RTO).

    Sending: *pacing_gain* paces at that many windows per round trip in bursts of
    *pacing_burst_segments*, None not at all (a controller's own rate goes before).

    Above TCP: no record enters the socket while *notsent_lowat_bytes* wait in it unsent (16 KB is
    what Cloudflare recommends for priorities to matter; None is Linux's default), or while
    *send_buffer_bytes* are unsent or not acknowledged (Linux's largest). What enters at once is one
    record; with *write_bytes* above 0 it is as many as fit, the last one cut (h2o fills a buffer,
    and asks the scheduler again when the socket has room for the next). A record carries up to
    *record_bytes*, in HTTP/2 DATA frames of up to *data_frame_bytes*. With *has_dynamic_records* a
    record fits one segment until *dynamic_record_bytes* have been written, and again after
    *dynamic_record_idle_ns* without one (Grigorik 2013, h2o, Cloudflare).

    TLS messages are as large as they come to the wire, records' headers included.

    Raises:
        NetworkError: listing every value with which no connection could work.

    >>> TcpSettings().initial_window_bytes, TcpSettings.linux().recovery.value
    (14480, 'rack')
    """

    mss_bytes: int = 1448
    receive_window_bytes: int = 6 * 2**20
    ack_every: int = 2
    max_ack_delay_ns: int = 40 * NS_PER_MS
    recovery: LossDetection = LossDetection.SACK
    has_prr: bool = True
    initial_rto_ns: int = NS_PER_S
    min_rto_ns: int = NS_PER_S
    max_rto_ns: int = 60 * NS_PER_S
    rto_granularity_ns: int = NS_PER_MS
    pacing_gain: float | None = None
    pacing_burst_segments: int = 10
    notsent_lowat_bytes: int | None = 16 * 1024
    write_bytes: int = 0
    send_buffer_bytes: int = 4 * 2**20
    data_frame_bytes: int = 2**14
    record_bytes: int = _MAX_RECORD_BYTES
    has_dynamic_records: bool = False
    dynamic_record_bytes: int = 2**20
    dynamic_record_idle_ns: int = NS_PER_S
    tls: TlsVersion = TlsVersion.TLS_1_3
    client_hello_bytes: int = 517
    server_flight_bytes: int = 3000
    client_finished_bytes: int = 80
    tls12_server_finished_bytes: int = 51

    def __post_init__(self) -> None:
        problems = list(self._problems())
        if problems:
            raise NetworkError(problems)
        # A table that was read holds plain text.
        object.__setattr__(self, "recovery", LossDetection(self.recovery))
        object.__setattr__(self, "tls", TlsVersion(self.tls))

    @classmethod
    def linux(cls) -> TcpSettings:
        """Return what Linux does: RACK-TLP, and an RTO of the round trip and 200 ms at least."""
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

    def _problems(self) -> Iterator[Problem]:
        single = [*range_problems(self, _RANGES), *gain_problems(self.pacing_gain)]
        yield from single
        if not single:
            yield from self._pair_problems()
        for key, known in (("recovery", LossDetection), ("tls", TlsVersion)):
            value, names = getattr(self, key), [str(member) for member in known]
            if value not in names:
                yield Problem(key=key, message=f"{value!r} is not one of {', '.join(names)}")

    def _pair_problems(self) -> Iterator[Problem]:
        """Yield what cannot be because of another value."""
        if self.receive_window_bytes < self.mss_bytes:
            message = f"must be at least mss_bytes ({self.mss_bytes:,})"
            message = f"{message}, is {self.receive_window_bytes}"
            yield Problem(key="receive_window_bytes", message=message)
        if self.max_rto_ns < self.min_rto_ns:
            message = f"must be at least min_rto_ms ({to_ms(self.min_rto_ns):g})"
            yield Problem(key="max_rto_ms", message=f"{message}, is {to_ms(self.max_rto_ns):g}")
        least = MIN_ROOM_BYTES + (0 if self.tls == TlsVersion.NONE else RECORD_OVERHEAD_BYTES)
        if 0 < self.write_bytes < least:
            message = f"must be 0, or at least {least} (a record with 32 bytes of a body)"
            yield Problem(key="write_bytes", message=f"{message}, is {self.write_bytes}")
