"""Settings of a QUIC stack that differ between implementations."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field

from h3sim.schema.fields import declare, validate
from h3sim.schema.values import Choice, Flag, Integer, Milliseconds, Number, OrNone
from h3sim.values.errors import NetworkError
from h3sim.values.units import NS_PER_MS

_NO_LIMIT = 2**62
"""The upper limit of settings that a standard does not limit."""
_PACING_GAIN = Number(low=0.01, high=100)
"""The type of a pacing rate in windows per round trip."""


class PacingBucket(enum.StrEnum):
    """The token bucket of a paced sender, which limits its bursts."""

    LEAKY = "leaky"
    """A burst of *pacing_burst_packets*, counted in bytes."""
    AIOQUIC = "aioquic"
    """A burst of a quarter of the window, 2 to 16 packets, and one packet per event."""


class Reordering(enum.StrEnum):
    """The rule by which loss thresholds adapt when a packet arrives that was declared lost."""

    FIXED = "fixed"
    """They do not."""
    QUICHE = "quiche"
    """More packets, 20 at most, and 5/4 of a round trip (cloudflare/quiche)."""
    MVFST = "mvfst"
    """As many packets and as much time as would have sufficed (facebook/mvfst, if enabled)."""
    QUICLY = "quicly"
    """No packets, then up to two round trips (quicly since 2022-06)."""


class Undo(enum.StrEnum):
    """The condition for undoing a reduction of the window that turns out to be spurious."""

    NONE = "none"
    EPISODE = "episode"
    """Once all losses of its episode have arrived (RFC 9438 § 4.9.2; BBR's draft, § 5.5.11)."""
    QUICHE = "quiche"
    """Once one has, or when fewer than a fifth of a window were lost, but not into slow start."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QuicSettings:
    """The settings of one endpoint.

    The declaration of each field describes it; docs/networks.md has them as a table. An immediate
    ACK at a gap in packet numbers follows RFC 9000 § 13.2.1, *ack_ping_every* § 13.2.4. Each
    consecutive PTO is twice the one before (RFC 9002 § 6.2.1): the RFC sets no limit, Chromium
    limits it by a *max_pto_ns* of one minute.

    The bounds of each setting are those of RFC 9000 §§ 14.1, 18.2.

    Raises:
        NetworkError: listing every value that is out of range.
    """

    datagram_bytes: int = field(
        default=1280,
        metadata=declare(Integer(low=200, high=65_507), "UDP payload of a full packet"),
    )
    connection_id_bytes: int = field(
        default=8,
        metadata=declare(Integer(low=0, high=20), "length of the connection ID in each header"),
    )
    packet_number_bytes: int = field(
        default=2,
        metadata=declare(Integer(low=1, high=4), "length of the packet number in each header"),
    )
    ip_bytes: int = field(
        default=28, metadata=declare(Integer(low=0, high=1000), "size of the IP and UDP headers")
    )
    ack_every: int = field(
        default=2,
        metadata=declare(
            Integer(low=1, high=_NO_LIMIT),
            "every n-th ack-eliciting packet is acknowledged immediately, as is a gap in packet "
            "numbers",
        ),
    )
    max_ack_delay_ns: int = field(
        default=25 * NS_PER_MS,
        metadata=declare(
            Milliseconds(low=0, high=16_384),
            "maximum delay of an acknowledgement otherwise",
        ),
    )
    timer_granularity_ns: int = field(
        default=0,
        metadata=declare(
            Milliseconds(low=0, high=1000),
            "timers fire after a multiple of this (plus Linux's slack of 50 us) since the"
            " endpoint finished the last packet, or when a packet arrives; 0: exactly"
            " (aioquic, on asyncio: 1)",
        ),
    )
    packet_processing_ns: int = field(
        default=0,
        metadata=declare(
            Milliseconds(low=0, high=1000),
            "processing time of a packet, during which no timer fires (aioquic: 0.1)",
        ),
    )
    acks_gaps_at_once: bool = field(
        default=True,
        metadata=declare(
            Flag(),
            "a gap in packet numbers is acknowledged immediately; otherwise such packets count"
            " like all others (aioquic)",
        ),
    )
    bundles_acks: bool = field(
        default=True,
        metadata=declare(
            Flag(),
            "an ACK is bundled with the next packet sent; otherwise it waits until it is due"
            " (quicly, aioquic)",
        ),
    )
    ack_ping_every: int = field(
        default=0,
        metadata=declare(
            Integer(low=0, high=2**20),
            "a packet whose number is a multiple of this, and whose ACK has several ranges,"
            " elicits an ACK itself (aioquic: 8); after that, older packets are no longer"
            " acknowledged again. 0: none does",
        ),
    )
    initial_rtt_ns: int = field(
        default=333 * NS_PER_MS,
        metadata=declare(
            Milliseconds(low=1, high=60_000),
            "assumed round-trip time before the first measurement",
        ),
    )
    max_pto_ns: int = field(
        default=60_000 * NS_PER_MS,
        metadata=declare(
            Milliseconds(low=1, high=3_600_000), "upper limit of the doubled probe timeout"
        ),
    )
    idle_timeout_ns: int | None = field(
        default=None,
        metadata=declare(
            OrNone(Milliseconds(low=1, high=3_600_000)),
            "a connection with unacknowledged packets is given up after this time without a"
            " packet from its peer, or three probe timeouts if they are longer (`max_idle_timeout`,"
            " RFC 9000 § 10.1); the shorter one of both ends applies",
            key="idle_timeout_ms",
        ),
    )
    blackhole_timeouts: int = field(
        default=0,
        metadata=declare(
            Integer(low=0, high=20),
            "a connection is given up if none of its packets is acknowledged during two tail loss"
            " probes and this many retransmission timeouts, each twice as long as the last (Chrome:"
            " 5). 0: never",
        ),
    )
    pacing_gain: float | None = field(
        default=None,
        metadata=declare(
            OrNone(_PACING_GAIN),
            "pacing rate in windows per round trip, 0.01 to 100, once the RTT is measured;"
            ' `"none"`: no pacing. The rate of a controller that has one takes precedence',
        ),
    )
    pacing_burst_packets: int = field(
        default=10, metadata=declare(Integer(low=1, high=2**20), "maximum burst of a paced sender")
    )
    pacing_bucket: PacingBucket = field(
        default=PacingBucket.LEAKY,
        metadata=declare(
            Choice(PacingBucket),
            "or `aioquic`: bursts of a quarter of the window, 2 to 16 packets, and one packet"
            " per event",
        ),
    )
    partial_datagrams: bool = field(
        default=False,
        metadata=declare(Flag(), "the last packet of a window is shortened to fit into it"),
    )
    may_exceed_cwnd: bool = field(
        default=False,
        metadata=declare(Flag(), "it is sent in full if 64 bytes of the window are left (quicly)"),
    )
    loss_timer_packets: int = field(
        default=0,
        metadata=declare(
            Integer(low=0, high=2),
            "packets sent regardless of the window when the loss detection timer expires (quicly:"
            " 1)",
        ),
    )
    packet_threshold: int | None = field(
        default=3,
        metadata=declare(
            OrNone(Integer(low=1, high=2**20)),
            "a packet is lost if the n-th after it is acknowledged (kPacketThreshold, RFC 9002"
            ' § 6.1.1); `"none"`: by time only',
        ),
    )
    time_threshold: float = field(
        default=9 / 8,
        metadata=declare(
            Number(low=1, high=16),
            "or if one after it is acknowledged, and this many round trips have passed"
            " (kTimeThreshold, § 6.1.2)",
        ),
    )
    reordering: Reordering = field(
        default=Reordering.FIXED,
        metadata=declare(
            Choice(Reordering),
            "how both adapt when a packet arrives that was declared lost: not; `quiche`: up to 20"
            " packets and 5/4 of a round trip; `mvfst`: by as much as it was late; `quicly`: no"
            " packets, then up to two round trips",
        ),
    )
    undo: Undo = field(
        default=Undo.NONE,
        metadata=declare(
            Choice(Undo),
            "when a reduction of the window is undone: `episode`, once all packets declared lost"
            " in it have arrived (RFC 9438 § 4.9); `quiche`, once one has, or if fewer than a fifth"
            " of a window were lost, but not into slow start",
        ),
    )
    has_persistent_congestion: bool = field(
        default=True, metadata=declare(Flag(), "RFC 9002 § 7.6")
    )
    probes: int = field(
        default=2, metadata=declare(Integer(low=1, high=2), "packets sent per probe timeout")
    )
    stream_window_bytes: int = field(
        default=6 * 2**20,
        metadata=declare(
            Integer(low=1, high=_NO_LIMIT),
            "flow control window of a stream: limit of unread bytes; raised once half of it"
            " is used",
        ),
    )
    connection_window_bytes: int = field(
        default=15 * 2**20,
        metadata=declare(Integer(low=1, high=_NO_LIMIT), "flow control window of the connection"),
    )
    max_window_bytes: int | None = field(
        default=None,
        metadata=declare(
            OrNone(Integer(low=1, high=_NO_LIMIT)),
            "a window that is raised twice within two round trips doubles, up to this (quic-go:"
            ' 6 MiB of a stream); `"none"`: windows stay as they are',
        ),
    )
    client_initial_bytes: int = field(
        default=1250,
        metadata=declare(
            Integer(low=1200, high=65_507), "handshake: the client's first datagram, with padding"
        ),
    )
    client_hello_bytes: int = field(
        default=300, metadata=declare(Integer(low=1, high=1100), "ClientHello in it")
    )
    server_flight_bytes: int = field(
        default=3000, metadata=declare(Integer(low=1, high=2**20), "server's first flight")
    )
    client_finished_bytes: int = field(
        default=60, metadata=declare(Integer(low=1, high=1100), "client's Finished")
    )

    def __post_init__(self) -> None:
        validate(self, NetworkError)

    @property
    def has_event_loop(self) -> bool:
        """True if timers depend on an event loop."""
        return self.timer_granularity_ns > 0 or self.packet_processing_ns > 0

    @property
    def tracks_spurious_losses(self) -> bool:
        """True if something follows from a packet that arrives after it was declared lost."""
        return self.reordering is not Reordering.FIXED or self.undo is not Undo.NONE

    @property
    def header_bytes(self) -> int:
        """The short header (RFC 9000 § 17.3) and the AEAD tag."""
        return 1 + self.connection_id_bytes + self.packet_number_bytes + 16
