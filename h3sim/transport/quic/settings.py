"""How a QUIC stack is set up: what differs between implementations, as one value."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from h3sim.errors import NetworkError, Problem
from h3sim.transport.value_checks import Range, gain_problems, range_problems
from h3sim.units import NS_PER_MS

__all__ = ["QuicSettings"]

_RANGES: tuple[Range, ...] = (
    ("datagram_bytes", 200, 65_507),
    ("connection_id_bytes", 0, 20),
    ("packet_number_bytes", 1, 4),
    ("ip_bytes", 0, 1000),
    ("ack_every", 1, 2**62),
    ("max_ack_delay_ns", 0, 2**14 * NS_PER_MS),
    ("initial_rtt_ns", NS_PER_MS, 60_000 * NS_PER_MS),
    ("max_pto_ns", NS_PER_MS, 3_600_000 * NS_PER_MS),
    ("ack_ping_every", 0, 2**20),
    ("pacing_burst_packets", 1, 2**20),
    ("loss_timer_packets", 0, 2),
    ("probes", 1, 2),
    ("stream_window_bytes", 1, 2**62),
    ("connection_window_bytes", 1, 2**62),
    ("client_initial_bytes", 1200, 65_507),
    ("client_hello_bytes", 1, 1100),
    ("server_flight_bytes", 1, 2**20),
    ("client_finished_bytes", 1, 1100),
)
"""The smallest and the largest of each setting (RFC 9000 §§ 14.1, 18.2)."""


class PacingBucket(enum.StrEnum):
    """What a paced sender may send at once."""

    LEAKY = "leaky"
    """*pacing_burst_packets*, by bytes."""
    AIOQUIC = "aioquic"
    """A quarter of the window, 2 to 16 packets; and one whenever something happens."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QuicSettings:
    """The settings of one end.

    *datagram_bytes* is the UDP payload of a full packet; *ip_bytes* what IP and UDP add.
    *pacing_gain* paces at that many windows per round trip, None not at all (a controller's own
    rate goes before); *pacing_bucket* says in what bursts.

    A packet leaves if it fits into the window. With *fills_window* the last one is cut to what is
    left of it; with *overshoots_window* it leaves whole if 64 bytes are left. When the timer for
    losses (RFC 9002 § 6.1.2) runs out, *loss_timer_packets* may leave whatever the window.

    With *acks_gaps_at_once* an ACK is due where packet numbers have a gap (RFC 9000 § 13.2.1), else
    those count as all others. With *bundles_acks* an ACK goes with the next packet, else with the
    first one after it is due. A packet whose number is a multiple of *ack_ping_every* and whose ACK
    has several spans asks for an ACK itself; once that has come, what it told of is told no more
    (§ 13.2.4). 0: none does.

    Each probe timeout in a row is twice the one before (RFC 9002 § 6.2.1), up to *max_pto_ns*: the
    RFC sets no end, Chromium a minute.
    """

    datagram_bytes: int = 1280
    connection_id_bytes: int = 8
    packet_number_bytes: int = 2
    ip_bytes: int = 28
    ack_every: int = 2
    max_ack_delay_ns: int = 25 * NS_PER_MS
    acks_gaps_at_once: bool = True
    bundles_acks: bool = True
    ack_ping_every: int = 0
    initial_rtt_ns: int = 333 * NS_PER_MS
    max_pto_ns: int = 60_000 * NS_PER_MS
    pacing_gain: float | None = None
    pacing_burst_packets: int = 10
    pacing_bucket: PacingBucket = PacingBucket.LEAKY
    fills_window: bool = False
    overshoots_window: bool = False
    loss_timer_packets: int = 0
    has_persistent_congestion: bool = True
    probes: int = 2
    stream_window_bytes: int = 6 * 2**20
    connection_window_bytes: int = 15 * 2**20
    client_initial_bytes: int = 1250
    client_hello_bytes: int = 300
    server_flight_bytes: int = 3000
    client_finished_bytes: int = 60

    def __post_init__(self) -> None:
        problems = [*range_problems(self, _RANGES), *gain_problems(self.pacing_gain)]
        names = [str(member) for member in PacingBucket]
        if self.pacing_bucket not in names:
            message = f"{self.pacing_bucket!r} is not one of {', '.join(names)}"
            problems.append(Problem(key="pacing_bucket", message=message))
        if problems:
            raise NetworkError(problems)
        # A table that was read holds plain text.
        object.__setattr__(self, "pacing_bucket", PacingBucket(self.pacing_bucket))

    @property
    def header_bytes(self) -> int:
        """The short header (RFC 9000 § 17.3) and the AEAD tag."""
        return 1 + self.connection_id_bytes + self.packet_number_bytes + 16
