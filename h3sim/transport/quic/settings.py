"""Settings of a QUIC stack that differ between implementations."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field

from h3sim.errors import NetworkError
from h3sim.schema.fields import declare, validate
from h3sim.schema.values import Choice, Flag, Milliseconds, Number, OrNone, Whole
from h3sim.units import NS_PER_MS

_MOST = 2**62
_GAIN = Number(low=0.01, high=100)


class PacingBucket(enum.StrEnum):
    """The burst of a paced sender."""

    LEAKY = "leaky"
    """*pacing_burst_packets*, by bytes."""
    AIOQUIC = "aioquic"
    """A quarter of the window, 2 to 16 packets; and one whenever something happens."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QuicSettings:
    """The settings of one endpoint.

    The declaration of each field describes it; docs/networks.md has them as a table. At a gap in
    packet numbers an ACK is due at once by RFC 9000 § 13.2.1; *ack_ping_every* is that of § 13.2.4.
    Each consecutive PTO is twice the one before (RFC 9002 § 6.2.1): the RFC sets no limit, Chromium
    has *max_pto_ns* of a minute.

    The bounds of each setting are those of RFC 9000 §§ 14.1, 18.2.

    Raises:
        NetworkError: listing every value that is out of range.
    """

    datagram_bytes: int = field(
        default=1280,
        metadata=declare(Whole(low=200, high=65_507), "the UDP payload of a full packet"),
    )
    connection_id_bytes: int = field(
        default=8, metadata=declare(Whole(low=0, high=20), "the connection ID in each header")
    )
    packet_number_bytes: int = field(
        default=2, metadata=declare(Whole(low=1, high=4), "the packet number in each header")
    )
    ip_bytes: int = field(
        default=28, metadata=declare(Whole(low=0, high=1000), "what IP and UDP add")
    )
    ack_every: int = field(
        default=2,
        metadata=declare(
            Whole(low=1, high=_MOST),
            "an ACK is due at once with every n-th packet, and where numbers have a gap",
        ),
    )
    max_ack_delay_ns: int = field(
        default=25 * NS_PER_MS,
        metadata=declare(
            Milliseconds(low=0, high=16_384),
            "else so long after the first packet that is not acknowledged yet",
        ),
    )
    timer_granularity_ns: int = field(
        default=0,
        metadata=declare(
            Milliseconds(low=0, high=1000),
            "timers ring once the end has slept a whole multiple of it (and Linux's 50 "
            "us), counted from when it was done with the last packet; a packet that "
            "arrives wakes it, too. 0: exactly (aioquic, on asyncio: 1)",
        ),
    )
    packet_processing_ns: int = field(
        default=0,
        metadata=declare(
            Milliseconds(low=0, high=1000),
            "how long the end is busy with a packet, as far as its timers notice (aioquic: 0.1)",
        ),
    )
    acks_gaps_at_once: bool = field(
        default=True,
        metadata=declare(
            Flag(),
            "an ACK is due where numbers have a gap; else such packets count as all "
            "others (aioquic)",
        ),
    )
    bundles_acks: bool = field(
        default=True,
        metadata=declare(
            Flag(),
            "an ACK goes with the next packet, else with the first one after it is due "
            "(quicly, aioquic)",
        ),
    )
    ack_ping_every: int = field(
        default=0,
        metadata=declare(
            Whole(low=0, high=2**20),
            "a packet whose number is a multiple of this, and whose ACK has several "
            "spans, asks for an ACK itself (aioquic: 8); once that has come, older "
            "packets are told of no more. 0: none does",
        ),
    )
    initial_rtt_ns: int = field(
        default=333 * NS_PER_MS,
        metadata=declare(
            Milliseconds(low=1, high=60_000),
            "what is taken for the round-trip time before it was measured",
        ),
    )
    max_pto_ns: int = field(
        default=60_000 * NS_PER_MS,
        metadata=declare(
            Milliseconds(low=1, high=3_600_000), "where doubling the probe timeout ends"
        ),
    )
    pacing_gain: float | None = field(
        default=None,
        metadata=declare(
            OrNone(_GAIN),
            "pace at so many windows per round trip, 0.01 to 100, once that was measured; "
            '`"none"`: send what the window allows. A controller\'s own rate goes before',
        ),
    )
    pacing_burst_packets: int = field(
        default=10, metadata=declare(Whole(low=1, high=2**20), "how many may leave together then")
    )
    pacing_bucket: PacingBucket = field(
        default=PacingBucket.LEAKY,
        metadata=declare(
            Choice(PacingBucket),
            "or `aioquic`: a quarter of the window may leave together, 2 to 16 packets, "
            "and a packet whenever something else happens",
        ),
    )
    fills_window: bool = field(
        default=False,
        metadata=declare(Flag(), "the last packet of a window is cut to what is left of it"),
    )
    overshoots_window: bool = field(
        default=False,
        metadata=declare(Flag(), "it leaves whole if 64 bytes of the window are left (quicly)"),
    )
    loss_timer_packets: int = field(
        default=0,
        metadata=declare(
            Whole(low=0, high=2),
            "so many leave, whatever the window, when the timer for losses runs out (quicly: 1)",
        ),
    )
    has_persistent_congestion: bool = field(
        default=True, metadata=declare(Flag(), "RFC 9002 § 7.6")
    )
    probes: int = field(
        default=2, metadata=declare(Whole(low=1, high=2), "packets that leave on a probe timeout")
    )
    stream_window_bytes: int = field(
        default=6 * 2**20,
        metadata=declare(
            Whole(low=1, high=_MOST),
            "the window of flow control of a stream: what the other end may have under "
            "way; raised once half of it was used",
        ),
    )
    connection_window_bytes: int = field(
        default=15 * 2**20,
        metadata=declare(Whole(low=1, high=_MOST), "the same of all streams together"),
    )
    client_initial_bytes: int = field(
        default=1250,
        metadata=declare(
            Whole(low=1200, high=65_507), "the handshake: the client's first datagram, padded"
        ),
    )
    client_hello_bytes: int = field(
        default=300, metadata=declare(Whole(low=1, high=1100), "the client's hello in it")
    )
    server_flight_bytes: int = field(
        default=3000, metadata=declare(Whole(low=1, high=2**20), "what the server answers")
    )
    client_finished_bytes: int = field(
        default=60, metadata=declare(Whole(low=1, high=1100), "what the client ends it with")
    )

    def __post_init__(self) -> None:
        validate(self, NetworkError)

    @property
    def has_event_loop(self) -> bool:
        """True if timers wait for an event loop."""
        return self.timer_granularity_ns > 0 or self.packet_processing_ns > 0

    @property
    def header_bytes(self) -> int:
        """The short header (RFC 9000 § 17.3) and the AEAD tag."""
        return 1 + self.connection_id_bytes + self.packet_number_bytes + 16
