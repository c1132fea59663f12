"""The network between a server and a client, its files (`h3sim-network/1`), and cross traffic."""

from __future__ import annotations

import enum
import re
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

from h3sim.schema import format_value, is_quantity, parse_toml, read_text
from h3sim.schema.errors import RejectedValueError
from h3sim.schema.fields import FileDisplay, Record, declare, read_document, validate, write_table
from h3sim.schema.values import (
    Integer,
    ListOf,
    MegabitsPerSecond,
    Milliseconds,
    Number,
    Text,
    ValueType,
)
from h3sim.trace import Delivery
from h3sim.transport.congestion import controller_names, is_controller
from h3sim.transport.link_profile import PACKET_BYTES, Jitter, LinkProfile
from h3sim.values.errors import NetworkError, ValidationIssue, needing_extra
from h3sim.values.notebook import load_options
from h3sim.values.units import BITS_PER_BYTE, NS_PER_S, mbps, ms, to_mbps, to_ms

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


_MAX_PACKET_BYTES = 65_507
"""The payload of the largest UDP datagram over IPv4."""
_MIN_INTERVAL_NS = 1
"""Shortest interval between packets at a constant rate: the resolution of time."""
_MAX_INTERVAL_NS = 60 * NS_PER_S
"""Longest interval between packets at a constant rate."""
_MAX_PRINTED_NS = 2**63
"""Larger intervals are not printed in an error: converting them to float might overflow."""
_FULL_PACKET_BYTES = 1500
"""The size that `Network.packet_interval_ns` assumes over links."""


class Protocol(enum.Enum):
    """The version of HTTP, by the transport below it."""

    QUIC = "quic"
    """HTTP/3 over one QUIC connection."""
    TCP = "tcp"
    """HTTP/2 over one TCP connection."""
    HTTP1 = "http1"
    """HTTP/1.1 over several TCP connections per host, each with one request at a time."""
    QMUX = "qmux"
    """HTTP/3 over QMux, which carries QUIC's streams over one TCP connection."""

    @property
    def is_over_tcp(self) -> bool:
        """True if TCP is below HTTP."""
        return self is not Protocol.QUIC

    @property
    def delivery(self) -> Delivery:
        """The order in which bytes are delivered."""
        return Delivery.STREAM if self is Protocol.QUIC else Delivery.CONNECTION

    @property
    def handshake_rtts(self) -> int:
        """Round trips before the first request leaves: 1 for QUIC, 2 for TCP with TLS 1.3."""
        return 1 if self is Protocol.QUIC else 2


@dataclass(frozen=True, slots=True)
class _AtRate:
    """A placeholder for an interval until the packet size is known."""

    rate_bps: int


class _Interval(ValueType):
    """The exact time between packets; a file gives it directly, or as a rate.

    Saved loads have `interval_ns`, a numerator and a denominator, where milliseconds are not exact.
    """

    keys = ("interval_ms", "rate_mbps", "interval_ns")
    stand_in = Fraction(1)

    def accept(self, value: Any) -> Fraction:
        if isinstance(value, bool) or not isinstance(value, int | Fraction):
            raise RejectedValueError(
                self._issues(f"must be whole or a Fraction, is {format_value(value)}")
            )
        if not _MIN_INTERVAL_NS <= value <= _MAX_INTERVAL_NS:
            raw = f"{float(value):g}" if value < _MAX_PRINTED_NS else "a huge number of"
            message = f"must be 1 ns to 60 s between packets, is {raw} ns"
            raise RejectedValueError(self._issues(message))
        return value if isinstance(value, Fraction) else Fraction(value)

    def _issues(self, message: str) -> list[ValidationIssue]:
        return [ValidationIssue(key="interval_ms", message=message)]

    def read(self, raw: dict[str, Any]) -> Any:
        if len(raw) != 1:
            raise RejectedValueError("needs interval_ms or rate_mbps, and not both")
        ((key, value),) = raw.items()
        try:
            if key == "interval_ns":
                return self._read_fraction(value)
            if key == "rate_mbps":
                return _AtRate(MegabitsPerSecond(low=0, is_above=True).read(value))
            return Fraction(Milliseconds(low=0, high=60_000, is_above=True).read(value))
        except RejectedValueError as refused:
            raise RejectedValueError(refused.under(key)) from refused

    def write(self, value: Any) -> dict[str, Any]:
        if value.denominator == 1:
            return {"interval_ms": to_ms(value.numerator)}
        return {"interval_ns": [value.numerator, value.denominator]}

    def _read_fraction(self, raw: Any) -> Fraction:
        """Return the fraction that saved loads store as numerator and denominator."""
        parts = ListOf(Integer(low=1), "two whole numbers").read(raw)
        if len(parts) != 2:
            raise RejectedValueError(f"must be two numbers above 0, is {format_value(raw)}")
        return Fraction(*parts)

    def schema(self) -> dict[str, Any]:
        number = {"type": "number", "exclusiveMinimum": 0}
        parts = {"type": "array", "items": {"type": "integer", "minimum": 1}}
        return {"interval_ms": number, "rate_mbps": number, "interval_ns": parts}


@dataclass(frozen=True, slots=True, kw_only=True)
class ConstantRate:
    """A constant rate: one packet of up to *packet_bytes* at each multiple of *interval_ns*.

    The interval is a fraction, so that a rate that does not divide a second is exact.

    >>> ConstantRate.at_rate(packet_bytes=1400, rate_bps=1_120_000).interval_ns
    Fraction(10000000, 1)
    """

    packet_bytes: int = field(
        metadata=declare(Integer(low=1, high=_MAX_PACKET_BYTES), "the maximum payload of a packet")
    )
    interval_ns: Fraction = field(
        metadata=declare(_Interval(), "`interval_ms`, the time between packets, or `rate_mbps`")
    )

    def __post_init__(self) -> None:
        if isinstance(self.interval_ns, _AtRate):
            interval_ns = Fraction(_MIN_INTERVAL_NS)  # where the size is refused, any will do
            if isinstance(self.packet_bytes, int) and 0 < self.packet_bytes <= _MAX_PACKET_BYTES:
                bits = self.packet_bytes * BITS_PER_BYTE
                interval_ns = Fraction(bits * NS_PER_S, self.interval_ns.rate_bps)
            object.__setattr__(self, "interval_ns", interval_ns)
        validate(self, NetworkError)

    @classmethod
    def at_rate(cls, *, packet_bytes: int, rate_bps: int) -> ConstantRate:
        """Return the constant rate whose packets of *packet_bytes* add up to *rate_bps*.

        Raises:
            NetworkError: if the rate is not above 0.
        """
        if not is_quantity(rate_bps) or isinstance(rate_bps, float) or rate_bps <= 0:
            message = f"must be a whole number above 0, is {format_value(rate_bps)} bit/s"
            raise NetworkError.at("rate_mbps", message)
        interval: Any = _AtRate(rate_bps)
        return cls(packet_bytes=packet_bytes, interval_ns=interval)

    @property
    def rate_bps(self) -> int:
        """The rate while there is something to send, to the nearest bit per second."""
        return round(self.packet_bytes * BITS_PER_BYTE * NS_PER_S / self.interval_ns)

    def tick_at_ns(self, number: int) -> int:
        """Return the time of tick *number*, counted from 0 at navigation start, truncated to ns."""
        # The product first: ticks do not drift, whatever fraction of a nanosecond an interval has.
        return number * self.interval_ns.numerator // self.interval_ns.denominator

    def first_tick_from(self, now_ns: int) -> int:
        """Return the number of the first tick at or after *now_ns*."""
        # Rounded up, since a tick before now is over; in integers, since a float would be off by a
        # tick after enough ticks.
        return -(-now_ns * self.interval_ns.denominator // self.interval_ns.numerator)


@dataclass(frozen=True, slots=True, kw_only=True)
class IndependentPackets:
    """Packets without a queue or a transport: each is delayed and lost independently.

    A packet takes half a round trip, and 1.1 to 2 round trips more, uniformly distributed, for each
    time that it is lost (Frindell 2017). Only header lists use such a path.
    """

    packet_bytes: int = field(
        default=1400,
        metadata=declare(Integer(low=1, high=_MAX_PACKET_BYTES), "the maximum payload of a packet"),
    )
    loss: float = field(
        default=0.0,
        metadata=declare(
            Number(low=0, high=1, is_below=True, example="0.02 is 2 %"), "the share of packets lost"
        ),
    )

    def __post_init__(self) -> None:
        validate(self, NetworkError)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Network(FileDisplay):
    """A path between a server and a client: at a constant rate, or of two links.

    It has either a *constant_rate*, with or without *jitter*, or *down* and *up*; *up* defaults to
    *down*. Header lists use *independent_packets*, which replaces both. *cc* and *profile* name the
    default congestion controller and transport profile of a load.

    Raises:
        NetworkError: listing every value that is out of range.

    >>> Network(name="x", rtt_ns=-5_000_000)
    Traceback (most recent call last):
    ...
    h3sim.values.errors.NetworkError: x: rtt_ms: must be 0 to 600,000, is -5
    x: constant_rate: is missing: a network needs [constant_rate], or [down] for links
    """

    name: str = field(metadata=declare(Text(is_needed=True), "its name in results"))
    title: str = field(default="", metadata=declare(Text(), "a short description"))
    source: str = field(default="", metadata=declare(Text(), "the source of its values"))
    rtt_ns: int = field(
        default=0,
        metadata=declare(Milliseconds(low=0, high=600_000), "the round-trip time without queues"),
    )
    constant_rate: ConstantRate | None = field(
        default=None,
        metadata=declare(
            Record(ConstantRate),
            "the rate at which the server sends, in place of `down`",
            stand_in=ConstantRate(packet_bytes=1, interval_ns=Fraction(1)),
        ),
    )
    jitter: Jitter | None = field(
        default=None,
        metadata=declare(Record(Jitter), "reordering at a constant rate", stand_in=None),
    )
    down: LinkProfile | None = field(
        default=None,
        metadata=declare(Record(LinkProfile), "the link to the client", stand_in=LinkProfile()),
    )
    up: LinkProfile | None = field(
        default=None,
        metadata=declare(
            Record(LinkProfile), "the uplink; by default as `down`", stand_in=LinkProfile()
        ),
    )
    independent_packets: IndependentPackets | None = field(
        default=None,
        metadata=declare(
            Record(IndependentPackets),
            "for header lists: packets are delayed and lost independently",
            stand_in=IndependentPackets(),
        ),
    )
    cc: str | None = field(
        default=None, metadata=declare(Text(), "the default congestion controller")
    )
    profile: str | None = field(
        default=None, metadata=declare(Text(), "the default transport profile")
    )

    def __post_init__(self) -> None:
        validate(self, NetworkError, self.name)
        if self.up is None:
            object.__setattr__(self, "up", self.down)

    def __repr__(self) -> str:
        return f"<Network {self.name}: {self.title or 'without a title'}>"

    def with_(self, **changes: Any) -> Network:
        """Return this network with changes, named after them unless *name* is given.

        The arguments are those options of `LoadConfig` that change a network, with the same
        meanings: *rate_mbps*, *interval_ms*, *packet_bytes*, *rtt_ms*, *loss*, *mean_loss_burst*,
        *queue_bdp*, *queue_bytes*, *queue_discipline*, *ecn* and *reorder*; and *name*.

        Raises:
            InputError: listing every invalid value.
            UnknownOptionError: if there is no such argument, listing all.

        >>> from h3sim import load_network
        >>> changed = load_network("cable").with_(rtt_ms=80, loss="1%")
        >>> changed.name, changed.rtt_ns
        ('cable with rtt_ms=80, loss=0.01', 80000000)
        """
        changed: Network = load_options().network_with(self, **changes)
        return changed

    @property
    def one_way_ns(self) -> int:
        """The delay from server to client; the other direction takes the rest of the round trip."""
        return self.rtt_ns // 2

    @property
    def is_random(self) -> bool:
        """True if another seed loses, delays or reorders other packets.

        Drops of a queue are not random: the same load fills the same queue.

        >>> link = LinkProfile(rate_bps=2_000_000, queue_packets=5)
        >>> Network(name="x", down=link).is_random
        False
        >>> Network(name="x", down=replace(link, loss=0.01)).is_random
        True
        """
        if self.independent_packets is not None:
            return True
        links = any(link is not None and link.is_random for link in (self.down, self.up))
        return links or (self.jitter is not None and self.jitter.is_random)

    @property
    def packet_interval_ns(self) -> float:
        """The time between two full packets at the constant rate, or at the rate of the link down.

        Without a rate limit it is a tenth of a millisecond, for figures.
        """
        if self.constant_rate is not None:
            return float(self.constant_rate.interval_ns)
        rate_bps = None if self.down is None else self.down.mean_rate_bps
        if rate_bps is None:
            return 1e5
        return float(_FULL_PACKET_BYTES * BITS_PER_BYTE * NS_PER_S / rate_bps)

    def as_links(self) -> Network:
        """Return the network as links, for loads whose sender has a congestion controller.

        A constant rate becomes a link down that serializes at its rate (to the nearest bit/s), with
        the same jitter and an unlimited queue; upward there is only the delay, as before. A
        constant rate counts the payload of packets, a link their headers too.

        >>> constant_rate = ConstantRate.at_rate(packet_bytes=1400, rate_bps=1_120_000)
        >>> Network(name="x", constant_rate=constant_rate).as_links().down.rate_bps
        1120000
        """
        if self.constant_rate is None:
            return self
        try:
            down = LinkProfile(
                rate_bps=self.constant_rate.rate_bps, burst_bytes=0, hold=self.jitter
            )
        except NetworkError as error:
            raise NetworkError(error.problems, self.name) from error
        return replace(self, constant_rate=None, jitter=None, down=down, up=LinkProfile())

    def check_packets(self, *, down_bytes: int, up_bytes: int) -> None:
        """Check that each queue can hold a full packet of this size, IP header included.

        Raises:
            NetworkError: listing the queues that cannot.
        """
        problems = []
        for key, link, packet_bytes in (("down", self.down, down_bytes), ("up", self.up, up_bytes)):
            limit_bytes = None if link is None else link.queue_limit_bytes(self.rtt_ns)
            if link is None or limit_bytes is None:
                continue
            wire_bytes = packet_bytes + link.frame_overhead_bytes
            if limit_bytes < wire_bytes:
                name = "queue_bytes" if link.queue_bdp is None else "queue_bdp"
                message = f"must hold a full packet of this load ({wire_bytes:,} bytes)"
                message = f"{message}, holds {limit_bytes:,}"
                problems.append(ValidationIssue(key=f"{key}.{name}", message=message))
        if problems:
            raise NetworkError(problems, self.name)

    def issues(self) -> Iterator[ValidationIssue]:
        """Yield inconsistencies between its values."""
        if self.independent_packets is not None:
            for key in ("constant_rate", "jitter", "down", "up"):
                if getattr(self, key) is not None:
                    message = "cannot be combined with independent_packets: give only one"
                    yield ValidationIssue(key=key, message=message)
            return
        if self.constant_rate is None and self.down is None and self.up is None:
            message = "is missing: a network needs [constant_rate], or [down] for links"
            yield ValidationIssue(key="constant_rate", message=message)
        for key, link in (("down", self.down), ("up", self.up)):
            if link is None:
                continue
            if self.constant_rate is not None:
                yield ValidationIssue(
                    key=key, message="cannot be combined with constant_rate: give only one"
                )
            limit_bytes = link.queue_limit_bytes(max(0, self.rtt_ns))  # below 0: an issue by itself
            if limit_bytes is not None and limit_bytes < PACKET_BYTES:
                message = f"must be at least a packet ({PACKET_BYTES} bytes) at this rate and RTT"
                yield ValidationIssue(
                    key=f"{key}.queue_bdp", message=f"{message}, is {limit_bytes}"
                )
        if self.up is not None and self.down is None and self.constant_rate is None:
            yield ValidationIssue(key="down", message="is missing: a network with up needs it")
        if self.jitter is not None and self.constant_rate is None:
            message = "holds packets of a constant rate; a link takes jitter_ms or hold"
            yield ValidationIssue(key="jitter", message=message)


FORMAT = "h3sim-network/1"
_MAX_TRACE_DIGITS = 15
"""The digits of a line in a Mahimahi trace: a longer one is no time, but another kind of file."""


def read_network(path: str | Path) -> Network:
    """Return the network that the file at *path* describes.

    Raises:
        NetworkError: if the file cannot be read, or listing every error in it.
    """
    text = read_text(path, NetworkError)
    return network_from_toml(text, source=str(path), folder=Path(path).parent)


def network_from_toml(text: str, *, source: str, folder: Path | None = None) -> Network:
    """Return the network that *text* describes; *folder* and errors as `network_from_dict`."""
    document = parse_toml(text, NetworkError, source=source)
    return network_from_dict(document, source=source, folder=folder)


def network_from_dict(
    document: Mapping[str, Any], *, source: str = "network", folder: Path | None = None
) -> Network:
    """Return the network that *document*, a parsed network file, describes.

    Files that it names are relative to *folder*, or to the current directory.

    Raises:
        NetworkError: listing every error in it.
    """
    tables: Any = document
    if isinstance(document, dict):
        tables = {key: _with_trace(entry, folder or Path()) for key, entry in document.items()}
    return read_document(Network, tables, NetworkError, source=source, format_=FORMAT)


def network_to_dict(network: Network) -> dict[str, Any]:
    """Return *network* in the form of a network file; reading it back gives an equal network.

    >>> network = network_from_dict(
    ...     {"format": "h3sim-network/1", "name": "x", "down": {"rate_mbps": 2, "loss": 0.02}}
    ... )
    >>> network_to_dict(network)["down"]
    {'rate_mbps': 2.0, 'loss': 0.02}
    """
    return {"format": FORMAT, **write_table(network)}


def network_to_toml(network: Network) -> str:
    """Return the network file of *network*.

    Raises:
        MissingExtraError: if tomli-w is not installed.

    >>> network = {"format": "h3sim-network/1", "name": "x", "down": {"rate_mbps": 2}}
    >>> print(network_to_toml(network_from_dict(network)).rstrip())
    format = "h3sim-network/1"
    name = "x"
    <BLANKLINE>
    [down]
    rate_mbps = 2.0
    <BLANKLINE>
    [up]
    rate_mbps = 2.0
    """
    with needing_extra("tomli_w", "import"):
        import tomli_w  # lazy: optional dependency
    return tomli_w.dumps(network_to_dict(network))


def _with_trace(entry: Any, folder: Path) -> Any:
    """Return a table with the path of a trace replaced by the trace."""
    if isinstance(entry, dict) and isinstance(entry.get("mahimahi"), str):
        return {**entry, "mahimahi": _read_trace(folder / entry["mahimahi"])}
    return entry


def _read_trace(path: Path) -> list[int] | RejectedValueError:
    """Return the milliseconds of a Mahimahi trace, or the error in the file."""
    try:
        lines = read_text(path, NetworkError).splitlines()
    except NetworkError as error:
        return RejectedValueError(str(error))
    opportunities_ms: list[int] = []
    for number, line in enumerate(lines, start=1):
        if not (line.isascii() and line.isdigit() and len(line) <= _MAX_TRACE_DIGITS):
            message = f"{path}, line {number}: must be whole milliseconds, is {format_value(line)}"
            return RejectedValueError(message)
        opportunities_ms.append(int(line))
    return opportunities_ms


# The text form of a `CrossFlow`, as in `--cross-traffic`.
_FLOW_PATTERN = re.compile(r"(?P<name>[a-z0-9-]+)(?P<rates>(:[0-9.]+)*)(@(?P<start>[0-9.]+))?")
_ON_OFF = "on-off"
"""The name of a flow like video, in place of a controller's."""
_DEFAULT_PERIOD_MS = 2000.0
"""The default length of a video segment."""
_MAX_FLOW_MBPS, _MAX_FLOW_MS = 1e5, 600_000.0
"""The largest rate, period and start of a flow."""
_EXAMPLE_FLOWS = "cubic, bbr@500, on-off:3 or on-off:3:4000@100, with + between flows"


@dataclass(frozen=True, slots=True, kw_only=True)
class CrossFlow:
    """A bulk flow towards the client under *cc*, on an established connection, from *starts_at_ns*.

    It always has data to send; with *mean_bps* it is on-off like video, one segment per *period_ns*
    at this mean rate, each sent as fast as possible.
    """

    cc: str
    starts_at_ns: int = 0
    mean_bps: int | None = None
    period_ns: int = 0

    @property
    def segment_bytes(self) -> int | None:
        """Bytes of a segment, one per period; None for a flow that never pauses."""
        if self.mean_bps is None:
            return None
        return max(1, self.mean_bps * self.period_ns // (BITS_PER_BYTE * NS_PER_S))

    @property
    def text(self) -> str:
        """The text form, as `parse_cross_traffic` reads it."""
        name = self.cc
        if self.mean_bps is not None:
            name = f"{_ON_OFF}:{to_mbps(self.mean_bps):g}:{to_ms(self.period_ns):g}"
        return f"{name}@{to_ms(self.starts_at_ns):g}" if self.starts_at_ns else name


def parse_cross_traffic(text: str) -> tuple[CrossFlow, ...]:
    """Return the flows that *text* describes; the number after `@` is the start in ms.

    Raises:
        NetworkError: listing every error.

    >>> [flow.text for flow in parse_cross_traffic("cubic + bbr@500 + on-off:3")]
    ['cubic', 'bbr@500', 'on-off:3:2000']
    """
    flows: list[CrossFlow] = []
    problems: list[ValidationIssue] = []
    for part in text.split("+"):
        match = _FLOW_PATTERN.fullmatch(part.strip())
        if match is None:
            message = f"must be such as {_EXAMPLE_FLOWS}, is {format_value(part.strip())}"
            problems.append(ValidationIssue(key="cross_traffic", message=message))
            continue
        errors = list(_flow_errors(match))
        problems += (ValidationIssue(key="cross_traffic", message=message) for message in errors)
        if not errors:
            flows.append(_read_flow(match))
    if problems:
        raise NetworkError(problems)
    return tuple(flows)


def _flow_errors(match: re.Match[str]) -> Iterator[str]:
    """Yield the errors in one flow of a description of cross traffic."""
    name, numbers = match["name"], _rate_and_period(match)
    text_value = format_value(match[0])
    if name == _ON_OFF:
        if not 1 <= len(numbers) <= 2:
            yield f"on-off needs its mean in Mbit/s and may have a period in ms, is {text_value}"
    elif not is_controller(name):
        yield f"there is no controller {name!r}; there are {', '.join(controller_names())}"
    elif numbers:
        yield f"only on-off has a rate, is {text_value}"
    # Not strict: the period may be missing, and excess numbers are reported above.
    for number, limit in zip(numbers, (_MAX_FLOW_MBPS, _MAX_FLOW_MS), strict=False):
        value = _float_or_none(number)
        if value is None or not 0 < value <= limit:
            yield f"{number} must be more than 0, to {limit:,.0f}, in {text_value}"
    start = _float_or_none(match["start"] or "0")
    if start is None or start > _MAX_FLOW_MS:
        yield f"{match['start']} must be 0 to {_MAX_FLOW_MS:,.0f}, in {text_value}"


def _rate_and_period(match: re.Match[str]) -> list[str]:
    """Return the numbers after the name of a flow, each of which has a colon before it."""
    numbers: list[str] = match["rates"].split(":")[1:]
    return numbers


def _float_or_none(text: str) -> float | None:
    """Return the number in *text*; None for text such as "1.2.3"."""
    try:
        return float(text)
    except ValueError:
        return None


def _read_flow(match: re.Match[str]) -> CrossFlow:
    """Return the flow that a valid part of a description defines."""
    starts_at_ns = ms(float(match["start"] or 0))
    if match["name"] != _ON_OFF:
        return CrossFlow(cc=match["name"], starts_at_ns=starts_at_ns)
    rate, *period = (float(number) for number in _rate_and_period(match))
    return CrossFlow(
        cc="cubic",
        starts_at_ns=starts_at_ns,
        mean_bps=mbps(rate),
        period_ns=ms(period[0] if period else _DEFAULT_PERIOD_MS),
    )
