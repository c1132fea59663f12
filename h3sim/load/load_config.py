"""The configuration of a load: the network, changes to it, both endpoints and the browser."""

from __future__ import annotations

import inspect
import os
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, TypeVar

from h3sim import catalog
from h3sim.browser import BROWSER_OPTIONS, PARSING_OPTIONS, BrowserMode, BrowserModel
from h3sim.http import SendBufferRefill
from h3sim.load.configuration import MAX_LOAD_NS
from h3sim.load.options import (
    NETWORK_NAMES,
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
    refuse,
)
from h3sim.page import ConnectionMode, Page
from h3sim.page.hosts import host_names
from h3sim.page.recording import RECORDED_NETWORK
from h3sim.schedulers import Retransmit
from h3sim.schema.arguments import (
    ErrorCollector,
    Predicate,
    check_arguments,
    refuse_keywords,
)
from h3sim.schema.fields import fields_of, validation_errors
from h3sim.schema.values import Flag, Integer, Number, Share
from h3sim.signals import Signalling
from h3sim.transport import ConstantRate, HandshakeMode, Jitter, Network, Protocol, congestion
from h3sim.transport.link_profile import LinkProfile, QueueDiscipline
from h3sim.values.errors import InputError, UnknownNameError, UnknownOptionError, ValidationIssue
from h3sim.values.units import BITS_PER_BYTE, NS_PER_S, mbps, ms

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from h3sim.headers import HeaderCompression
    from h3sim.headers.base import HeaderLists
    from h3sim.page import RecordedLoad
    from h3sim.transport import TransportProfile
    from h3sim.transport.congestion import CongestionController, ControllerSettings

    ControllerFactory: TypeAlias = Callable[[ControllerSettings], CongestionController]


NETWORK_WITHOUT_RECORDING = "marx-2019"
"""Default network of pages without a recorded one."""
NETWORK_FOR_HEADER_LISTS = "frindell-2017"
"""Default network of header lists."""
_MIN_QUEUE_BYTES = 65_536
"""Smallest queue of an estimated network, as in the shipped networks."""
_Rule: TypeAlias = "tuple[str, ...]"
"""A message, followed by the names of the options that must not be set, for this reason."""


def recorded_network(page: Page | HeaderLists) -> Network | None:
    """Return the network of the recording of *page*, estimated or stated, or None.

    Without a stated rate of the uplink, both links have that of the downlink. As in the shipped
    networks, the queue is one bandwidth-delay product, but at least 64 KiB; only its overflow
    causes losses, and those that the recording states.
    """
    known = page.recorded_load
    if known is None or known.rtt_ns is None or known.rate_bps is None:
        return None
    rates_bps = known.rate_bps, known.up_bps or known.rate_bps
    down, up = (_recorded_link(rate_bps, known) for rate_bps in rates_bps)
    return Network(
        name=RECORDED_NETWORK,
        title=f"network of the recording of {page.name}, estimated",
        source=f"RTT from {known.rtt_from}, rate from {known.rate_from}",
        rtt_ns=known.rtt_ns,
        down=down,
        up=up,
    )


def _recorded_link(rate_bps: int, known: RecordedLoad) -> LinkProfile:
    """Return a link of a recording, with a queue of one bandwidth-delay product or more."""
    product_bytes = rate_bps * (known.rtt_ns or 0) // (BITS_PER_BYTE * NS_PER_S)
    queue_bytes = max(_MIN_QUEUE_BYTES, product_bytes)
    return LinkProfile(rate_bps=rate_bps, queue_bytes=queue_bytes, loss=known.loss)


_TRANSPORT_OPTIONS = (
    "transport",
    "cc",
    "transport_profile",
    "rate_mbps",
    "interval_ms",
    "packet_bytes",
    "mean_loss_burst",
    "queue_bdp",
    "queue_bytes",
    "queue_discipline",
    "ecn",
    "reorder",
    "retransmission_order",
    "cross_traffic",
    "time_limit_s",
)
"""Options that do not apply to a network of independent packets."""


def changed_network(config: LoadConfig, network: Network) -> Network:
    """Return *network* with the changes of *config*."""
    # If a constant rate is turned into links below, its jitter already includes `reorder`.
    was_links = network.constant_rate is None
    if config.rtt_ms is not None:
        network = replace(network, rtt_ns=ms(config.rtt_ms))
    if network.independent_packets is not None:
        loss = network.independent_packets.loss if config.loss is None else config.loss
        packets = replace(network.independent_packets, loss=loss)
        return replace(network, independent_packets=packets)
    if network.constant_rate is not None:
        network = _change_constant_rate(config, network, network.constant_rate)
        if not _needs_links(config):
            return network
    return _change_links(config, network.as_links(), was_links=was_links)


def _needs_links(config: LoadConfig) -> bool:
    """Return whether *config* turns a network with a constant rate into links."""
    names = ("loss", "mean_loss_burst", "queue_bdp", "queue_bytes", "queue_discipline")
    return config.cc not in (None, "constant") or bool(_set_options(config, *names))


def _change_constant_rate(
    config: LoadConfig, network: Network, constant_rate: ConstantRate
) -> Network:
    """Change packet size, interval or rate; a new packet size alone keeps the interval."""
    if config.reorder is not None:
        network = replace(network, jitter=Jitter.parse(str(config.reorder)))
    packet_bytes = config.packet_bytes or constant_rate.packet_bytes
    if config.rate_mbps is not None:
        rate_bps = mbps(config.rate_mbps)
        constant_rate = ConstantRate.at_rate(packet_bytes=packet_bytes, rate_bps=rate_bps)
    else:
        interval_ms, interval_ns = config.interval_ms, constant_rate.interval_ns
        interval_ns = interval_ns if interval_ms is None else Fraction(ms(interval_ms))
        constant_rate = ConstantRate(packet_bytes=packet_bytes, interval_ns=interval_ns)
    return replace(network, constant_rate=constant_rate)


def _change_links(config: LoadConfig, network: Network, *, was_links: bool) -> Network:
    """Change the links: rate and queue of each direction with a bottleneck, loss of both."""
    down, up = network.down, network.up
    assert down is not None, "links have both directions"  # noqa: S101
    assert up is not None, "links have both directions"  # noqa: S101
    if config.reorder is not None and was_links:
        down = replace(down, hold=Jitter.parse(str(config.reorder)), jitter=None)
    return replace(network, down=_change_link(config, down), up=_change_link(config, up))


def _change_link(config: LoadConfig, link: LinkProfile) -> LinkProfile:
    """Return *link* with the options of *config* applied to it."""
    link = replace(link, **_link_changes(config, link))
    if config.queue_discipline is not None and link.mean_rate_bps is not None:
        link = link.with_discipline(QueueDiscipline(config.queue_discipline))
    if config.ecn is not None and link.queue_discipline is not QueueDiscipline.DROP_TAIL:
        link = replace(link, ecn=config.ecn)
    return link


def _link_changes(config: LoadConfig, link: LinkProfile) -> dict[str, Any]:
    """Return the fields of *link* that the options of *config* replace."""
    changes: dict[str, Any] = {}
    if link.rate_bps is not None and config.rate_mbps is not None:
        changes["rate_bps"] = mbps(config.rate_mbps)
    is_queue_given = config.queue_bdp is not None or config.queue_bytes is not None
    if link.mean_rate_bps is not None and is_queue_given:
        # A link has one queue size: the other fields must be empty.
        changes |= {"queue_packets": None, "queue_bdp": config.queue_bdp}
        changes["queue_bytes"] = config.queue_bytes
    if config.loss is not None:
        # Packets that a network file lists as lost would add to the requested loss rate.
        changes |= {"loss": config.loss, "loss_burst": config.mean_loss_burst, "loss_list": ()}
    elif config.mean_loss_burst is not None:
        changes["loss_burst"] = config.mean_loss_burst
    return changes


def _issues_of(config: LoadConfig, rules: Iterator[_Rule]) -> Iterator[ValidationIssue]:
    """Yield an issue for each option that is set although one of *rules* forbids it."""
    for message, *names in rules:
        for name in _set_options(config, *names):
            yield ValidationIssue(key=name, message=message)


def _network_rules(config: LoadConfig, path: ResolvedPath) -> Iterator[_Rule]:
    """Yield rules on the options that do not apply to the network."""
    network = path.network
    if network.independent_packets is not None:
        message = "applies to transports and links, but independent packets have neither"
        yield message, *_TRANSPORT_OPTIONS
    elif network.constant_rate is not None:
        yield from _constant_rate_rules(config)
    else:
        yield from _link_rules(config, path)


def _constant_rate_rules(config: LoadConfig) -> Iterator[_Rule]:
    """Yield rules on the options that do not apply to a constant rate."""
    if config.mode is HandshakeMode.ZERO_RTT:
        yield "'0-rtt' needs links: a constant rate has no handshake packets", "handshake"
    yield "needs links: at a constant rate there is no queue", "ecn"
    yield "needs links: at a constant rate every load completes", "time_limit_s"
    if config.transport == Protocol.HTTP1.value:
        yield "'http1' needs links: a constant rate has a single connection", "transport"
    if config.header_compression != NO_CODEC:
        message = "needs links: at a constant rate requests are not sent as packets"
        yield message, "header_compression"
    if config.connections == ConnectionMode.PER_HOST.value:
        message = "'per-host' needs links: at a constant rate one connection has the whole rate"
        yield message, "connections"
    yield "needs links: at a constant rate nothing is shared", "cross_traffic"


def _link_rules(config: LoadConfig, path: ResolvedPath) -> Iterator[_Rule]:
    """Yield rules on the options that do not apply to the links of this network."""
    down, links = path.network.down, [*filter(None, (path.network.down, path.network.up))]
    # If options turned a constant rate into links, its interval and packet size still set the rate.
    if path.named.constant_rate is None:
        message = "applies only to a constant rate, but this network consists of links"
        yield message, "interval_ms", "packet_bytes"
    if all(link.rate_bps is None for link in links):
        message = "changes the rate of a bottleneck, but no link of this network has one"
        yield message, "rate_mbps"
    if all(link.mean_rate_bps is None for link in links):
        message = "applies to the queue of a bottleneck, but no link of this network has one"
        yield message, "queue_bytes", "queue_bdp", "queue_discipline"
    if not any(link.loss for link in links):
        yield "clusters losses, but there is no loss: set loss as well", "mean_loss_burst"
    if config.ecn and all(link.queue_discipline is QueueDiscipline.DROP_TAIL for link in links):
        yield "needs a queue that marks: set queue_discipline to codel or fq-codel", "ecn"
    profile = path.profile
    if config.ecn and profile and not congestion.responds_to_ecn(profile.cc, profile.controller):
        yield f"needs a controller that responds to marks, such as cubic; is {profile.cc}", "ecn"
    if down is not None and down.mean_rate_bps is None:
        # The congestion window of a flow would grow without limit, since no queue ever fills.
        message = "needs a downlink with a rate: without one flows do not share anything"
        yield message, "cross_traffic"


def _value_rules(config: LoadConfig) -> Iterator[_Rule]:
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


def _set_options(config: LoadConfig, *names: str) -> list[str]:
    """Return which of the options *names* are set in *config*."""
    return [name for name in names if getattr(config, name) is not None]


NetworkLike: TypeAlias = "Network | str | Path"
ProfileLike: TypeAlias = "TransportProfile | str | Path"
ControllerLike: TypeAlias = "ControllerFactory | str"

NETWORK_OPTIONS = (
    "rate_mbps",
    "interval_ms",
    "packet_bytes",
    "rtt_ms",
    "loss",
    "mean_loss_burst",
    "queue_bdp",
    "queue_bytes",
    "queue_discipline",
    "ecn",
    "reorder",
)
"""Options that change the network."""
_NETWORK_DESCRIPTION = (
    "a shipped network, a network file (.toml), or recorded: the page's own, else marx-2019"
)
_TIME_LIMIT_TYPE = Number(low=0, high=MAX_LOAD_NS / NS_PER_S, is_above=True)


@documented
@dataclass(frozen=True, kw_only=True, repr=False)
class LoadConfig:
    """Configuration of a load: network, transport, server and browser.

    None keeps the value of the network or the transport profile. *interval_ms* and *rate_mbps* are
    alternatives. For *handshake*, True and False mean "1-rtt" and "none". *browser* is "replay" or
    "parse", or a `BrowserModel`, which the settings after it change.

    The network "recorded" is that of the page's recording, or "marx-2019" for a page without one. A
    constant rate has no loss; a congestion controller other than "constant", loss or a queue turns
    it into links.

    Raises:
        InputError: listing every value that is out of range.
        UnknownNameError: if the only errors are unknown networks, profiles or controllers.
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
        problems = validation_errors(self)
        with ErrorCollector() as errors:
            errors.collect("", lambda: refuse(problems))
            # Names are looked up now, so that unknown ones are reported with all other errors.
            for key in ("network", "transport_profile", "cc"):
                if not any(problem.key == key for problem in problems):
                    errors.collect(key, partial(getattr, self, f"_named_{key}"))
        if self.network != RECORDED_NETWORK:  # otherwise the page decides: see `config_for`
            refuse(_issues_of(self, _network_rules(self, self.path)))

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
        return _issues_of(self, _value_rules(self))

    def _browser_changes(self) -> dict[str, Any]:
        """Return the options that change settings of the browser."""
        # Not all settings of BROWSER_OPTIONS are options: some exist only in a `BrowserModel`.
        options = (entry.attribute for entry in fields_of(LoadConfig))
        settings = {name: getattr(self, name) for name in options if name in BROWSER_OPTIONS}
        return {name: value for name, value in settings.items() if value is not None}

    @cached_property
    def _named_network(self) -> Network:
        """Network without the changes of options; a placeholder if the page will determine it."""
        named = NETWORK_WITHOUT_RECORDING if self.network == RECORDED_NETWORK else self.network
        return named if isinstance(named, Network) else catalog.load_network(named)

    @cached_property
    def _named_transport_profile(self) -> TransportProfile | None:
        """Transport profile without the changes of options; None if none was given."""
        named = self.transport_profile
        return catalog.load_profile(named) if isinstance(named, str | os.PathLike) else named

    @cached_property
    def _named_cc(self) -> tuple[str | None, ControllerFactory | None]:
        """Name of the given congestion controller, and its factory if it is a user's."""
        return (None, None) if self.cc is None else congestion.controller_named(self.cc)

    @cached_property
    def path(self) -> ResolvedPath:
        """Network and transport that the options resolve to, computed once.

        Raises:
            UnknownNameError: if the profile names an unknown controller.
        """
        named = self._named_network
        network = _name_by_changes(self, named, changed_network(self, named))
        profile_choices = (
            self.transport_profile,
            self.cc,
            self.retransmission_order,
            network.profile,
            network.cc,
        )
        if network.constant_rate is not None and all(choice is None for choice in profile_choices):
            # Unused, and reading one takes longer than a load.
            named_profile = profile = None
        else:
            named_profile = self._named_transport_profile or catalog.load_profile(
                named.profile or "default"
            )
            profile = _change_profile(self, named_profile, named)
        default = Protocol.QUIC if profile is None else profile.protocol
        protocol = default if self.transport is None else Protocol(self.transport)
        return ResolvedPath(named, network, named_profile, profile, protocol)

    @property
    def browser_model(self) -> BrowserModel:
        """Browser model with the changes of the options."""
        browser = self.browser
        if not isinstance(browser, BrowserModel):
            browser = BrowserModel(mode=BrowserMode(browser))
        return replace(browser, **self._browser_changes())

    @property
    def mode(self) -> HandshakeMode:
        """Handshake of the connection, which the option may give as a Boolean."""
        if isinstance(self.handshake, bool):
            return HandshakeMode.ONE_RTT if self.handshake else HandshakeMode.NONE
        return HandshakeMode(self.handshake)


class ResolvedPath(NamedTuple):
    """Network and transport of a load."""

    named: Network
    """Network as shipped or given."""
    network: Network
    """Network with the changes of options, and a name that lists them."""
    named_profile: TransportProfile | None
    """Transport profile as shipped or given; None if a constant rate needs none."""
    profile: TransportProfile | None
    """Transport profile of both endpoints, with the changes of options."""
    protocol: Protocol


def _name_by_changes(config: LoadConfig, named: Network, network: Network) -> Network:
    """Return *network* with a name that lists the changes, or *named* if there are none."""
    if network == named:
        return named
    changes = [
        # 50 and 50.0 are the same config and give the same name.
        f"{key}={str(getattr(config, key)).removesuffix('.0')}"
        for key in NETWORK_OPTIONS
        if getattr(config, key) is not None
    ]
    name = f"{named.name} with {', '.join(changes) or f'cc={config._named_cc[0]}'}"
    return replace(network, name=name, title=name)


def _change_profile(
    config: LoadConfig, profile: TransportProfile, network: Network
) -> TransportProfile:
    """Return the *profile* with the changes of the options."""
    # The controller of a given profile takes precedence over that of the network.
    network_cc = network.cc if config.transport_profile is None else None
    named, controller = config._named_cc
    cc = named or network_cc or profile.cc
    # A stack may have its own variant of CUBIC, to which that name then refers.
    if named == "cubic":
        cc = profile.own_cubic
    if cc == profile.cc and controller is None:
        controller = profile.controller
    if controller is None and not congestion.is_controller(cc):
        raise UnknownNameError("controller", cc, congestion.controller_names())
    # Settings for the profile's controller do not apply to another one.
    beta = profile.beta if cc == profile.cc else None
    retransmit = config.retransmission_order or profile.retransmit
    ecn = profile.ecn if config.ecn is None else config.ecn
    return replace(profile, cc=cc, controller=controller, beta=beta, retransmit=retransmit, ecn=ecn)


def config_for(page: Page | HeaderLists, config: LoadConfig) -> LoadConfig:
    """Return *config* with the network and connections that depend on the page.

    Raises:
        InputError: if no network can be estimated from the page's recording, if the network cannot
            carry pages, or listing the options without effect on the network.
        MissingExtraError: if a header compression library is not installed.
    """
    if not isinstance(page, Page):
        return _resolve_for_lists(config)
    if config.network == RECORDED_NETWORK:
        known = page.recorded_load
        if known is not None and known.lacks_network:
            reason = "has too few connection, first-byte and transfer times to estimate a network"
            advice = "use a shipped one, such as cable, or a file.toml"
            message = f"must be given: the recording of {page.name} {reason}; {advice}"
            raise InputError.at("network", message)
        config = replace(config, network=recorded_network(page) or NETWORK_WITHOUT_RECORDING)
    if config.path.named.independent_packets is not None:
        message = "carries only header lists: a page needs a constant rate or links"
        raise InputError.at("network", message)
    if config.connections is None and _has_connections_per_host(page, config):
        config = replace(config, connections=ConnectionMode.PER_HOST.value)
    return config


def _has_connections_per_host(page: Page, config: LoadConfig) -> bool:
    """Return whether the hosts of a page get connections of their own by default."""
    if page.recorded_load is None or config.path.network.constant_rate is not None:
        return False
    return len(host_names(page.resources, page.root)) > 1


def header_compression_of(codec: HeaderCompression | str | None) -> HeaderCompression | None:
    """Return the header codec; None if headers have the sizes that the page gives."""
    if codec is None or codec == NO_CODEC:
        return None
    from h3sim.headers import HeaderCompression  # lazy: few loads compress headers

    return codec if isinstance(codec, HeaderCompression) else HeaderCompression(codec=codec)


def _resolve_for_lists(config: LoadConfig) -> LoadConfig:
    """Return *config* as a study of header lists uses it."""
    if config.network == RECORDED_NETWORK:
        config = replace(config, network=NETWORK_FOR_HEADER_LISTS)
    compression = header_compression_of(config.header_compression)
    if compression is None:
        raise InputError.at("header_compression", "must name a codec for header lists")
    compression.check()  # now, rather than for each load in a worker
    return config


CallableT = TypeVar("CallableT", bound="Callable[..., Any]")
_CONFIG_OR_NONE = Predicate(
    "a LoadConfig", lambda value: value is None or isinstance(value, LoadConfig)
)


def config_of(
    options: Mapping[str, Any], known: tuple[str, ...] = (), *, changed: LoadConfig | None = None
) -> LoadConfig:
    """Return the config with these *options*, the others as in *changed* or their defaults.

    *known* are the caller's own arguments: a misspelt one is among the unknown options, and gets
    them as suggestions.

    Raises:
        UnknownOptionError: naming each unknown option, with similar names.
        InputError: listing every value that is out of range.

    >>> config_of({"rtt": 5})
    Traceback (most recent call last):
    ...
    h3sim.values.errors.UnknownOptionError: rtt: there is no such option; did you mean rtt_ms?
    """
    names = [field.name for field in fields(LoadConfig)]
    unknown = [name for name in options if name not in names]
    changes = {name: options[name] for name in options if name in names}
    base = changed if isinstance(changed, LoadConfig) else None  # callers may ignore the annotation
    with ErrorCollector() as errors:
        errors.collect("", lambda: check_arguments(InputError, config=(_CONFIG_OR_NONE, changed)))
        errors.collect("", partial(refuse_options, unknown, (*names, *known)))
        return errors.collect(
            "", lambda: LoadConfig(**changes) if base is None else replace(base, **changes)
        )


def refuse_options(unknown: Sequence[str], known: tuple[str, ...]) -> None:
    """Refuse unknown options.

    Raises:
        UnknownOptionError: naming each of *unknown*, with similar names from *known*.
    """
    if unknown:
        raise UnknownOptionError(unknown_option(name, known) for name in unknown)


def over_networks(config: LoadConfig, networks: Sequence[str]) -> list[LoadConfig]:
    """Return *config* for each of *networks*, without duplicates.

    Raises:
        InputError: listing every unknown name, and options without effect on a network.
        UnknownNameError: if the only error is an unknown name.
    """
    check_arguments(InputError, networks=(NETWORK_NAMES, networks))
    with ErrorCollector() as errors:
        return [
            errors.collect("networks", partial(replace, config, network=name))
            for name in dict.fromkeys(networks)
        ]


def with_fields(*declarations: type) -> Callable[[CallableT], CallableT]:
    """Return a decorator that adds the fields of dataclasses to the signature of a function.

    So notebooks complete them, and `help` shows them with their defaults, although the function
    receives them as `**options`.
    """

    def decorate(function: CallableT) -> CallableT:
        signature = inspect.signature(function)
        own = {
            name: parameter
            for name, parameter in signature.parameters.items()
            if parameter.kind is not inspect.Parameter.VAR_KEYWORD
        }
        declared = {
            entry.name: inspect.Parameter(
                entry.name,
                inspect.Parameter.KEYWORD_ONLY,
                default=entry.default,
                annotation=entry.type,
            )
            for declaration in declarations
            for entry in fields(declaration)
        }
        parameters = [*own.values(), *(declared[name] for name in declared if name not in own)]
        function.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
        return function

    return decorate


with_options = with_fields(LoadConfig)
"""Add the options of a load to the signature of a function."""


def network_with(network: Network, *, name: str | None = None, **options: Any) -> Network:
    """Return *network* with changes by `NETWORK_OPTIONS`; see `Network.with_`."""
    known = (*NETWORK_OPTIONS, "name")
    with ErrorCollector() as errors:
        errors.collect("", partial(refuse_keywords, "with_", options, known))
        given = {key: options[key] for key in options if key in NETWORK_OPTIONS}
        config = errors.collect("", lambda: LoadConfig(network=network, **given))
    changed: Network = config.path.network
    return changed if name is None else replace(changed, name=name, title="")


def unknown_option(name: str, known: tuple[str, ...]) -> ValidationIssue:
    """Return the issue of an unknown option, with similar names."""
    if name in RENAMED_OPTIONS:
        return ValidationIssue(key=name, message=f"was renamed to {RENAMED_OPTIONS[name]}")
    import difflib  # lazy: keeps imports fast

    alike = meant_by(name, known) or difflib.get_close_matches(name, known, n=2, cutoff=0.4)
    hint = f"; did you mean {' or '.join(alike)}?" if alike else ""
    return ValidationIssue(key=name, message=f"there is no such option{hint}")


_OPTIONS_BY_WORD = {
    "rate_mbps": ("bandwidth", "throughput", "speed", "rate", "bitrate", "capacity", "bw", "down"),
    "rtt_ms": ("latency", "delay", "ping", "rtt", "round_trip_time", "propagation_delay"),
    "loss": ("packet_loss", "loss_rate", "plr", "drop", "drop_rate", "loss_pct", "drops"),
    "mean_loss_burst": ("burst_length", "gilbert"),
    "reorder": ("reordering", "out_of_order", "jitter"),
    "queue_bdp": ("queue", "queue_size", "bottleneck_buffer", "buffer_bdp"),
    "queue_discipline": ("aqm", "qdisc"),
    "send_buffer_kb": ("buffer", "socket_buffer", "send_buffer"),
    "send_buffers_kb": ("buffer", "socket_buffer", "send_buffer"),
    "packet_bytes": ("mtu", "mss", "packet_size", "datagram_size"),
    "cc": ("congestion_control", "congestion", "controller", "congestion_controller"),
    "transport": ("protocol", "http", "http_version", "quic", "tcp"),
    "transport_profile": ("stack", "server", "profile"),
    "network": ("link", "access", "connection", "path"),
    "scheme": ("prioritization", "priority", "priorities", "strategy", "algorithm", "scheduling"),
    "schemes": ("prioritization", "priority", "priorities", "strategy", "algorithm", "scheme"),
    "scheduler": ("policy",),
    "seeds": ("runs", "repetitions", "repeat", "trials", "iterations", "replications", "samples"),
    "seed": ("random_seed", "rng"),
    "workers": ("jobs", "parallel", "cores", "threads", "processes"),
    "cpu_slowdown": ("cpu", "cpu_throttling", "throttling"),
    "time_limit_s": ("timeout", "max_time"),
    "handshake": ("zero_rtt", "early_data", "resumption"),
    "output": ("out", "file", "save"),
    "plot": ("figure", "picture", "png", "svg"),
    "metric": ("metrics", "measure", "value"),
}
"""Other words of the field for options and arguments, for messages about unknown ones."""
_UNITS = ("_mbps", "_mbit", "_kbps", "_bps", "_ms", "_s", "_percent", "_pct", "_bytes", "_kb")


def meant_by(word: str, known: Iterable[str]) -> list[str]:
    """Return the options among *known* that an unknown *word* means, whatever its unit.

    >>> meant_by("bandwidth", ["rtt_ms", "rate_mbps"]), meant_by("delay_ms", ["rtt_ms"])
    (['rate_mbps'], ['rtt_ms'])
    """
    plain = word.strip("-").replace("-", "_").lower()
    words = {plain, *(plain.removesuffix(unit) for unit in _UNITS)}
    return [
        name
        for name in known
        if words & {*_OPTIONS_BY_WORD.get(name.strip("-").replace("-", "_"), ())}
    ]


RENAMED_OPTIONS = {
    "burst": "mean_loss_burst",
    "jitter": "reorder",
    "buffer_kb": "send_buffer_kb",
    "buffers_kb": "send_buffers_kb",
    "buffer_model": "send_buffer_refill",
    "retransmit": "retransmission_order",
    "retention_ms": "closed_stream_retention_ms",
    "metadata": "signalling",
    "headers": "header_compression",
    "hosts": "connections",
    "max_simulated_s": "time_limit_s",
    "cpu_factor": "cpu_slowdown",
    "max_requests": "max_concurrent_requests",
    "max_requests_per_host": "max_concurrent_requests_per_host",
    "styles_stop_parser": "stylesheets_block_parser",
    "background_at_ms": "hidden_at_ms",
    "records_wire": "record_packets",
}
"""New names of load options by their old names, for messages and for saved loads."""
_RENAMED_VALUES: dict[str, dict[Any, Any]] = {
    "buffer_model": {"refilled": "continuous", "bursts": "when-empty"},
    "hosts": {"one": "single", "recorded": "per-host"},
    "metadata": {True: "metadata", False: None},
}
"""New values of load options by their old names and values."""
RENAMED_FLAGS = {
    **{
        f"--{old}".replace("_", "-"): f"--{new}".replace("_", "-")
        for old, new in RENAMED_OPTIONS.items()
    },
    "--metadata": "--signalling metadata",
    "--wide": "--no-truncate",
    "--against": "--diff",
    "--which": "--resources",
    "--given": "--bound",
    "--by": "--group-by",
    "--over": "--model",
    "--of": "--direction",
    "--vary": "--param",
    "--network-within": "--network-uncertainty",
    "--other-networks": "--robustness-networks",
    "--until-width": "--target-ci-width",
    "--accept": "--update",
    "--beside": "--with-page (of measure: --with-log)",
    "--without": "--remove",
    "--late": "--late-kind",
    "--unset": "--clear",
}
"""New command-line flags by their old names."""


def with_new_names(configuration: Mapping[str, Any]) -> dict[str, Any]:
    """Return the configuration of a saved load with the present names of options.

    >>> with_new_names({"hosts": "recorded", "rtt_ms": 40})
    {'connections': 'per-host', 'rtt_ms': 40}
    """
    return {
        RENAMED_OPTIONS.get(key, key): (
            _RENAMED_VALUES[key].get(value, value)
            if key in _RENAMED_VALUES and isinstance(value, str | bool)
            else value
        )
        for key, value in configuration.items()
    }
