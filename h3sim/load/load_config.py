"""The configuration of a load: the network, changes to it, both endpoints and the browser."""

from __future__ import annotations

import inspect
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias

from h3sim.browser import BROWSER_OPTIONS, PARSING_OPTIONS, BrowserMode, BrowserModel
from h3sim.engine.load_spec import MAX_LOAD_NS
from h3sim.http import SendBufferRefill
from h3sim.load.options import (
    NO_CODEC,
    SEED,
    BrowserOption,
    CodecName,
    ControllerOption,
    CrossTrafficText,
    HandshakeOption,
    NameOf,
    NameOr,
    ReorderOption,
    common_option,
    documented,
    of_browser,
    option,
)
from h3sim.page import ConnectionMode
from h3sim.page.recording import RECORDED_NETWORK
from h3sim.schedulers import Retransmit
from h3sim.schema.arguments import (
    Predicate,
    check_arguments,
)
from h3sim.schema.fields import fields_of, validate
from h3sim.schema.values import Flag, Integer, Number, Share
from h3sim.signals import Signalling
from h3sim.transport import HandshakeMode, Network, Protocol
from h3sim.transport.link_profile import QueueDiscipline
from h3sim.values.errors import InputError, UnknownOptionError, ValidationIssue
from h3sim.values.likeness import did_you_mean
from h3sim.values.units import NS_PER_S

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from pathlib import Path

    from h3sim.headers import HeaderCompression
    from h3sim.transport import TransportProfile
    from h3sim.transport.congestion import CongestionController, ControllerSettings

    ControllerFactory: TypeAlias = Callable[[ControllerSettings], CongestionController]


Rule: TypeAlias = "tuple[str, ...]"
"""A message, followed by the names of the options that must not be set, for this reason."""


def issues_of(config: LoadConfig, rules: Iterator[Rule]) -> Iterator[ValidationIssue]:
    """Yield an issue for each option that is set although one of *rules* forbids it."""
    for message, *names in rules:
        for name in set_options(config, *names):
            yield ValidationIssue(key=name, message=message)


def _value_rules(config: LoadConfig) -> Iterator[Rule]:
    """Yield rules on the options that contradict others."""
    if config.interval_ms is not None:
        yield "is an alternative to interval_ms: give only one of them", "rate_mbps"
    if config.connections != ConnectionMode.PER_HOST.value:
        yield "goes only with connections = 'per-host'", "dns_ms"
    if config.transport == Protocol.HTTP1.value:
        compression = () if config.header_compression == NO_CODEC else ("header_compression",)
        message = "needs HTTP/2 or HTTP/3: set transport to tcp or quic"
        yield message, "signalling", *compression, "max_placeholders"
    elif config.transport is not None:
        yield "is only allowed with transport = 'http1'", "max_connections_per_host"
    if config.browser == BrowserMode.REPLAY.value:
        parse_only = (key for key in config._browser_changes() if key in PARSING_OPTIONS)
        yield "goes only with browser = 'parse'", *parse_only


def set_options(config: LoadConfig, *names: str) -> list[str]:
    """Return which of the options *names* are set in *config*."""
    return [name for name in names if getattr(config, name) is not None]


NetworkLike: TypeAlias = "Network | str | Path"
ProfileLike: TypeAlias = "TransportProfile | str | Path"
ControllerLike: TypeAlias = "ControllerFactory | str"

_NETWORK_DESCRIPTION = (
    "a shipped network, a network file (.toml), or recorded: the page's own, else marx-2019"
)
_TIME_LIMIT_TYPE = Number(low=0, high=MAX_LOAD_NS / NS_PER_S, is_above=True)


@documented
@dataclass(frozen=True, kw_only=True, repr=False)
class LoadConfig:
    """Configuration of a load: network, transport, server and browser.

    A plain value: names are looked up, and checked against the page and the network, by `resolve`.
    None keeps the value of the network or the transport profile. *interval_ms* and *rate_mbps* are
    alternatives. For *handshake*, True and False mean "1-rtt" and "none". *browser* is "replay" or
    "parse", or a `BrowserModel`, which the settings after it change.

    The network "recorded" is that of the page's recording, or "marx-2019" for a page without one. A
    constant rate has no loss; a congestion controller other than "constant", loss or a queue turns
    it into links.

    Raises:
        InputError: listing every value that is out of range.
    """

    network: NetworkLike = common_option(
        NameOr("Network"), _NETWORK_DESCRIPTION, "NAME", default=RECORDED_NETWORK
    )
    transport: str | None = common_option(
        NameOf(Protocol), "transport protocol (default: that of the transport profile, or quic)"
    )
    cc: ControllerLike | None = common_option(
        ControllerOption(),
        "congestion controller: newreno, cubic, bbr, constant, ...; in Python also a class or"
        " function of your own that takes ControllerSettings",
        "NAME",
    )
    transport_profile: ProfileLike | None = common_option(
        NameOr("TransportProfile"),
        "sender and loss recovery profile: a shipped profile or a profile file (.toml)",
        "NAME",
    )
    rate_mbps: float | None = common_option(
        Number(low=1e-6, high=1e7), "rate in Mbit/s of payload", "RATE"
    )
    interval_ms: float | None = option(
        Number(low=1e-6, high=60_000), "time between two packets at a constant rate", "MS"
    )
    packet_bytes: int | None = option(
        Integer(low=1, high=65_507), "maximum payload of a packet", "BYTES"
    )
    rtt_ms: float | None = common_option(Number(low=0, high=600_000), "round-trip time", "MS")
    loss: float | None = common_option(
        Share(), "packet loss rate in each direction: 0.02, or 2%", "SHARE"
    )
    mean_loss_burst: float | None = option(
        Number(low=1, high=1e6), "mean number of consecutive losses", "PACKETS"
    )
    queue_bdp: float | None = option(
        Number(low=0, high=1e6, is_above=True),
        "queue of the bottleneck in bandwidth-delay products",
        "BDPS",
    )
    queue_bytes: int | None = option(
        Integer(low=1514, high=10**12), "queue of the bottleneck in bytes", "BYTES"
    )
    queue_discipline: str | None = option(
        NameOf(QueueDiscipline),
        "queue of the bottleneck: drop-tail, codel (RFC 8289), or fq-codel with a queue per"
        " connection (RFC 8290) (default: that of the network)",
    )
    ecn: bool | None = option(
        Flag(),
        "explicit congestion notification: packets are ECN-capable, and CoDel marks them in place"
        " of drops (default: those of the transport profile and the network)",
        switches=(
            ("--ecn", True, "packets are ECN-capable, and CoDel marks them in place of drops"),
            ("--no-ecn", False, "packets are not ECN-capable"),
        ),
    )
    reorder: str | Mapping[str, Any] | None = common_option(
        ReorderOption(),
        "hold every n-th packet, or each with a probability, until N (to M) others have been sent:"
        " 4:1-3, 25%:1-3, or none; in Python and files also {every = 4, by = [1, 3]} or"
        " {share = 0.25, by = [1, 3]}",
        "WHICH:N[-M]",
    )
    send_buffer_kb: float = common_option(
        Number(low=0, high=1e9),
        "size of the server's send buffer, in kB of 1000 bytes",
        "KB",
        default=0.0,
    )
    send_buffer_refill: str = option(
        NameOf(SendBufferRefill),
        "when the send buffer is refilled: whenever there is room, or once it is empty",
        default=SendBufferRefill.CONTINUOUS.value,
    )
    retransmission_order: str | None = option(
        NameOf(Retransmit),
        "when lost bytes are sent again: before new ones, by priority, or at their stream's turn"
        " (default: that of the transport profile)",
    )
    packet_threshold: int | None = option(
        Integer(low=1, high=2**20),
        "a QUIC packet of the server is lost if the n-th after it is acknowledged (default: that of"
        " the transport profile; RFC 9002: 3)",
        "N",
    )
    time_threshold: float | None = option(
        Number(low=1, high=16),
        "or after so many round trips if one after it is acknowledged (default: that of the"
        " transport profile; RFC 9002: 1.125)",
        "RTTS",
    )
    max_placeholders: int | None = option(
        Integer(low=0),
        "maximum number of placeholders that the server allows (default: that of the scheme)",
        "N",
    )
    closed_stream_retention_ms: float | None = option(
        Number(low=0, high=86_400_000),
        "how long a closed stream stays in the scheduler, where others may still depend on it"
        " (default: that of the scheme; 500)",
        "MS",
    )
    signalling: str | None = option(
        NameOf([Signalling.METADATA]),
        "how the server learns priorities: with metadata, clients announce their scheme when they"
        " connect and the purpose of each request, and the server derives the priorities (default:"
        " that of the scheme)",
    )
    handshake: bool | str = option(
        HandshakeOption(HandshakeMode),
        "how the connection is established: 1-rtt, 0-rtt or none",
        default=True,
        switches=(
            (
                "--no-handshake",
                False,
                "the connection is already established: the first request leaves at 0",
            ),
            ("--zero-rtt", "0-rtt", "the first requests are sent with the client's first packet"),
        ),
    )
    header_compression: HeaderCompression | str | None = option(
        CodecName(),
        "over links, how headers are compressed, both ways: hpack, qpack, qcram, static, ..., or"
        " none (default: headers have the sizes that the page gives, and block nothing)",
        "CODEC",
    )
    connections: str | None = option(
        NameOf(ConnectionMode),
        "over links: a single connection for all hosts, or one per host that the page names; hosts"
        " that share a server and a certificate share one (default: per-host for a recording that"
        " knows several hosts, else single)",
    )
    max_connections_per_host: int | None = option(
        Integer(low=1, high=256),
        "with transport = http1, connections to each host, or to all with connections = single"
        " (default: 6)",
        "N",
    )
    dns_ms: float | None = option(
        Number(low=0, high=600_000),
        "DNS lookup time of hosts for which the page gives none, with connections = per-host"
        " (default: 0)",
        "MS",
    )
    cross_traffic: str | None = option(
        CrossTrafficText(),
        "over links: other flows through the same queues, each with its start in ms: cubic,"
        " bbr@500, or a video of 3 Mbit/s, on-off:3; + between them",
        "FLOWS",
    )
    seed: int = common_option(SEED, "random seed", "N", default=0)
    time_limit_s: float | None = option(
        _TIME_LIMIT_TYPE,
        "simulated time after which a load over links is given up (default: 3600)",
        "S",
    )
    browser: BrowserModel | str = common_option(
        BrowserOption(BrowserMode),
        "replay requests as recorded, or compute them from parsing, blocking and executing (parse)",
        default="replay",
        group="browser",
    )
    cpu_slowdown: float | None = of_browser("cpu_slowdown", "FACTOR", is_common=True)
    max_concurrent_requests: int | None = of_browser("max_concurrent_requests", "N")
    max_concurrent_requests_per_host: int | None = of_browser(
        "max_concurrent_requests_per_host", "N"
    )
    preload_scanner: bool | None = of_browser("preload_scanner")
    tight_mode: str | None = of_browser("tight_mode", "MODE")
    commit_ms: float | None = of_browser("commit_ms", "MS")
    paint_ms: float | None = of_browser("paint_ms", "MS")
    paint: str | None = of_browser("paint", "MODE")
    image_update_ms: float | None = of_browser("image_update_ms", "MS")
    stylesheets_block_parser: bool | None = of_browser("stylesheets_block_parser")
    hidden_at_ms: float | None = of_browser("hidden_at_ms", "MS")

    def __post_init__(self) -> None:
        validate(self, InputError)

    def __repr__(self) -> str:
        """Return only the fields that differ from their defaults."""
        changes = ", ".join(
            f"{entry.attribute}={value!r}"
            for entry in fields_of(LoadConfig)
            if (value := getattr(self, entry.attribute)) != entry.default
        )
        return f"LoadConfig({changes})"

    def issues(self) -> Iterator[ValidationIssue]:
        """Yield issues of options that contradict each other."""
        return issues_of(self, _value_rules(self))

    def _browser_changes(self) -> dict[str, Any]:
        """Return the options that change settings of the browser."""
        return {name: getattr(self, name) for name in set_options(self, *_OPTIONS_OF_BROWSER)}

    @property
    def browser_model(self) -> BrowserModel:
        """Browser model with the changes of the options."""
        browser = self.browser
        if not isinstance(browser, BrowserModel):
            browser = BrowserModel(mode=BrowserMode(browser))
        changes = self._browser_changes()
        return replace(browser, **changes) if changes else browser

    @property
    def mode(self) -> HandshakeMode:
        """Handshake of the connection, which the option may give as a Boolean."""
        if isinstance(self.handshake, bool):
            return HandshakeMode.ONE_RTT if self.handshake else HandshakeMode.NONE
        return HandshakeMode(self.handshake)


_OPTIONS_OF_BROWSER = tuple(
    entry.attribute for entry in fields_of(LoadConfig) if entry.attribute in BROWSER_OPTIONS
)
"""Options that change the browser; other settings exist only in a `BrowserModel`."""
_CONFIG = Predicate("a LoadConfig", lambda value: isinstance(value, LoadConfig))


def changed_config(config: LoadConfig | None, options: Mapping[str, Any]) -> LoadConfig:
    """Return *config*, by default that without any option, with these *options*.

    Raises:
        InputError: if *config* is another value, or listing every option that is out of range.
    """
    if config is None:
        return LoadConfig(**options)
    check_arguments(InputError, config=(_CONFIG, config))
    return replace(config, **options) if options else config


def refuse_unknown(function: Callable[..., Any], options: Iterable[str]) -> None:
    """Refuse the first of the keyword arguments *options* that *function* does not have.

    Raises:
        UnknownOptionError: naming it, with similar names.

    >>> from h3sim import simulate
    >>> refuse_unknown(simulate, {"rtt": 5})
    Traceback (most recent call last):
    ...
    h3sim.values.errors.UnknownOptionError: rtt: there is no such option; did you mean rtt_ms?
    """
    known = inspect.signature(function).parameters
    for name in options:
        if name not in known:
            raise UnknownOptionError([unknown_option(name, tuple(known))])


def unknown_option(name: str, known: Iterable[str]) -> ValidationIssue:
    """Return the issue of an unknown option, with similar names."""
    message = f"there is no such option{did_you_mean(name, known)}"
    return ValidationIssue(key=name, message=message)
