"""How a QUIC stack is set up: what differs between implementations, as one value."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field

from h3sim.documents.declared import says, settle
from h3sim.documents.values import Choice, Flag, Milliseconds, Number, OrNone, Whole
from h3sim.errors import NetworkError
from h3sim.units import NS_PER_MS

__all__ = ["QuicSettings"]

_MOST = 2**62
_GAIN = Number(low=0.01, high=100)


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

    Timers ring exactly, unless *timer_granularity_ns* or *packet_processing_ns* says that an event
    loop looks after them (`EventLoop`).

    Each probe timeout in a row is twice the one before (RFC 9002 § 6.2.1), up to *max_pto_ns*: the
    RFC sets no end, Chromium a minute.

    The smallest and the largest of each setting are those of RFC 9000 §§ 14.1, 18.2.

    Raises:
        NetworkError: listing every value that is out of range.
    """

    datagram_bytes: int = field(default=1280, metadata=says(Whole(low=200, high=65_507)))
    connection_id_bytes: int = field(default=8, metadata=says(Whole(low=0, high=20)))
    packet_number_bytes: int = field(default=2, metadata=says(Whole(low=1, high=4)))
    ip_bytes: int = field(default=28, metadata=says(Whole(low=0, high=1000)))
    ack_every: int = field(default=2, metadata=says(Whole(low=1, high=_MOST)))
    max_ack_delay_ns: int = field(
        default=25 * NS_PER_MS, metadata=says(Milliseconds(low=0, high=16_384))
    )
    timer_granularity_ns: int = field(default=0, metadata=says(Milliseconds(low=0, high=1000)))
    packet_processing_ns: int = field(default=0, metadata=says(Milliseconds(low=0, high=1000)))
    acks_gaps_at_once: bool = field(default=True, metadata=says(Flag()))
    bundles_acks: bool = field(default=True, metadata=says(Flag()))
    ack_ping_every: int = field(default=0, metadata=says(Whole(low=0, high=2**20)))
    initial_rtt_ns: int = field(
        default=333 * NS_PER_MS, metadata=says(Milliseconds(low=1, high=60_000))
    )
    max_pto_ns: int = field(
        default=60_000 * NS_PER_MS, metadata=says(Milliseconds(low=1, high=3_600_000))
    )
    pacing_gain: float | None = field(default=None, metadata=says(OrNone(_GAIN)))
    pacing_burst_packets: int = field(default=10, metadata=says(Whole(low=1, high=2**20)))
    pacing_bucket: PacingBucket = field(
        default=PacingBucket.LEAKY, metadata=says(Choice(PacingBucket))
    )
    fills_window: bool = field(default=False, metadata=says(Flag()))
    overshoots_window: bool = field(default=False, metadata=says(Flag()))
    loss_timer_packets: int = field(default=0, metadata=says(Whole(low=0, high=2)))
    has_persistent_congestion: bool = field(default=True, metadata=says(Flag()))
    probes: int = field(default=2, metadata=says(Whole(low=1, high=2)))
    stream_window_bytes: int = field(default=6 * 2**20, metadata=says(Whole(low=1, high=_MOST)))
    connection_window_bytes: int = field(
        default=15 * 2**20, metadata=says(Whole(low=1, high=_MOST))
    )
    client_initial_bytes: int = field(default=1250, metadata=says(Whole(low=1200, high=65_507)))
    client_hello_bytes: int = field(default=300, metadata=says(Whole(low=1, high=1100)))
    server_flight_bytes: int = field(default=3000, metadata=says(Whole(low=1, high=2**20)))
    client_finished_bytes: int = field(default=60, metadata=says(Whole(low=1, high=1100)))

    def __post_init__(self) -> None:
        settle(self, NetworkError)

    @property
    def has_event_loop(self) -> bool:
        """Whether timers wait for an event loop."""
        return self.timer_granularity_ns > 0 or self.packet_processing_ns > 0

    @property
    def header_bytes(self) -> int:
        """The short header (RFC 9000 § 17.3) and the AEAD tag."""
        return 1 + self.connection_id_bytes + self.packet_number_bytes + 16
