"""The path of a load: the network and transport that names and options resolve to."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from h3sim import catalog
from h3sim.load.load_config import LoadConfig, issues_of, set_options
from h3sim.load.options import NO_CODEC, refuse
from h3sim.page import ConnectionMode, Page
from h3sim.page.hosts import host_names
from h3sim.page.recording import RECORDED_NETWORK
from h3sim.schema.arguments import naming, refuse_keywords
from h3sim.transport import (
    ConstantRate,
    HandshakeMode,
    Jitter,
    Network,
    Protocol,
    congestion,
    network_from_dict,
    network_to_dict,
)
from h3sim.transport.link_profile import LinkProfile, QueueDiscipline
from h3sim.transport.tcp.settings import TlsVersion
from h3sim.values.errors import InputError, UnknownNameError, ValidationIssue
from h3sim.values.units import BITS_PER_BYTE, NS_PER_S, mbps, ms

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from h3sim.headers.base import HeaderLists
    from h3sim.load.load_config import ControllerFactory, Rule
    from h3sim.page import RecordedLoad
    from h3sim.transport import TransportProfile

ValueT = TypeVar("ValueT")
NETWORK_WITHOUT_RECORDING = "marx-2019"
"""Default network of pages without a recorded one."""
NETWORK_FOR_HEADER_LISTS = "frindell-2017"
"""Default network of header lists."""
_MIN_QUEUE_BYTES = 65_536
"""Smallest queue of an estimated network, as in the shipped networks."""
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
    "packet_threshold",
    "time_threshold",
    "cross_traffic",
    "time_limit_s",
)
"""Options that do not apply to a network of independent packets."""


def default_network(page: Page | HeaderLists) -> Network:
    """Return the network of a load of *page* for which none is named.

    Raises:
        InputError: if no network can be estimated from the page's recording.
    """
    if not isinstance(page, Page):
        return catalog.load_network(NETWORK_FOR_HEADER_LISTS)
    known = page.recorded_load
    if known is not None and known.lacks_network:
        reason = "has too few connection, first-byte and transfer times to estimate a network"
        advice = "use a shipped one, such as cable, or a file.toml"
        message = f"must be given: the recording of {page.name} {reason}; {advice}"
        raise InputError.at("network", message)
    return recorded_network(page) or catalog.load_network(NETWORK_WITHOUT_RECORDING)


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


def resolve_path(page: Page | HeaderLists, config: LoadConfig) -> ResolvedPath:
    """Return the network and transport of a load of *page*, after checking that they fit.

    Raises:
        InputError: if there is no such file or no network for the page, if the network cannot
            carry pages, or listing the options without effect on the network.
        UnknownNameError: if a network, profile or controller is unknown.
    """
    named = _named_network(page, config)
    if named.independent_packets is not None and isinstance(page, Page):
        message = "carries only header lists: a page needs a constant rate or links"
        raise InputError.at("network", message)
    return _path_over(named, config)


def _named_network(page: Page | HeaderLists, config: LoadConfig) -> Network:
    named = config.network
    if named == RECORDED_NETWORK:
        return default_network(page)
    if isinstance(named, Network):
        return named
    with naming("network"):
        return catalog.load_network(named)


FILE_TABLES = ("network", "profile")
"""First parts of the keys of files that a study can vary."""
_FILE_KEYS = tuple(f"{table}." for table in FILE_TABLES)


def is_file_key(name: str) -> bool:
    """Return whether *name* is a key of a network or profile file, which a study can vary.

    >>> is_file_key("profile.quic.ack_every"), is_file_key("network")
    (True, False)
    """
    return name.startswith(_FILE_KEYS)


def config_of(page: Page | HeaderLists, options: Mapping[str, Any]) -> LoadConfig:
    """Return the configuration of a load with these *options*, of which some may be file keys.

    `network.down.loss` and `profile.quic.ack_every` replace values of the network and the transport
    profile as named; None leaves them as they are.

    Raises:
        InputError: listing every value that is out of range, or does not apply.
        UnknownNameError: if a network or profile is unknown.

    >>> from h3sim import load_page
    >>> page, options = load_page("davies-meenan"), {"network": "cable", "network.rtt_ms": 80}
    >>> config_of(page, options).network.rtt_ns
    80000000
    """
    config = LoadConfig(**{name: options[name] for name in options if not is_file_key(name)})
    given = [name for name in options if is_file_key(name) and options[name] is not None]
    if not given:
        return config
    of_network, of_profile = (
        {name.removeprefix(prefix): options[name] for name in given if name.startswith(prefix)}
        for prefix in _FILE_KEYS
    )
    network = _named_network(page, config)
    if of_network:
        document = network_to_dict(network)
        network = _with_keys("network.", document, of_network, network_from_dict)
        config = replace(config, network=network)
    if not of_profile:
        return config
    profile = _named_profile(config, network)
    if profile is None:
        message = "needs links: at a constant rate there is no transport"
        refuse(ValidationIssue(key=f"profile.{key}", message=message) for key in of_profile)
    assert profile is not None, "refused above"  # noqa: S101
    # A profile that is given takes precedence over the controller of the network.
    if config.transport_profile is None and network.cc not in (None, profile.cc):
        profile = replace(profile, cc=network.cc, controller=None, beta=None)
    from h3sim.transport import profile_from_dict, profile_to_dict  # lazy: few loads need them

    document = profile_to_dict(profile)
    changed = _with_keys("profile.", document, of_profile, profile_from_dict)
    if "cc" not in of_profile:
        changed = replace(changed, controller=profile.controller)
    return replace(config, transport_profile=changed)


def _with_keys(
    prefix: str,
    document: dict[str, Any],
    changes: Mapping[str, Any],
    read: Callable[[dict[str, Any]], ValueT],
) -> ValueT:
    """Return what *document*, a parsed file, describes with some of its keys changed."""
    for key, value in changes.items():
        *tables, last = key.split(".")
        table = document
        for name in tables:
            entry = table.setdefault(name, {})
            if not isinstance(entry, dict):
                raise InputError.at(f"{prefix}{key}", f"{name} has no keys")
            table = entry
        table[last] = value
    try:
        return read(document)
    except InputError as error:
        raise InputError(
            ValidationIssue(key=f"{prefix}{issue.key}", message=issue.message)
            for issue in error.problems
        ) from error


def _path_over(named: Network, config: LoadConfig) -> ResolvedPath:
    """Return the path over the network *named* with the changes of *config*, if they fit it."""
    network, named_profile = changed_network(config, named), _named_profile(config, named)
    profile = None if named_profile is None else _changed_profile(config, named_profile, named)
    protocol = Protocol.QUIC if profile is None else profile.protocol
    if config.transport is not None:
        protocol = Protocol(config.transport)
    path = ResolvedPath(named, network, named_profile, profile, protocol)
    refuse(issues_of(config, _network_rules(config, path)))
    return path


def changed_network(config: LoadConfig, named: Network) -> Network:
    """Return *named* with the changes of *config*, and a name that lists them if there are any."""
    network, changes = named, _changes(config, named)
    if named.constant_rate is not None and _needs_links(config):
        network = replace(named, **changes).as_links()
        changes = _link_changes(config, network, was_links=False)
    changes = {key: value for key, value in changes.items() if value != getattr(network, key)}
    if network is named and not changes:
        return named
    options = [
        # 50 and 50.0 are the same config and give the same name.
        f"{key}={str(getattr(config, key)).removesuffix('.0')}"
        for key in set_options(config, *NETWORK_OPTIONS)
    ]
    name = f"{named.name} with {', '.join(options) or f'cc={_controller(config)[0]}'}"
    return replace(network, **changes, name=name, title=name)


def _changes(config: LoadConfig, network: Network) -> dict[str, Any]:
    """Return the fields of *network* that the options replace, while it keeps its kind."""
    changes = {} if config.rtt_ms is None else {"rtt_ns": ms(config.rtt_ms)}
    packets, constant_rate = network.independent_packets, network.constant_rate
    if packets is not None:
        return {**changes, "independent_packets": _with_changes(packets, loss=config.loss)}
    if constant_rate is not None:
        return changes | _constant_rate_changes(config, constant_rate)
    return changes | _link_changes(config, network, was_links=True)


def _with_changes(value: ValueT, **changes: Any) -> ValueT:
    """Return a dataclass with those of *changes* that are not None."""
    given = {key: change for key, change in changes.items() if change is not None}
    return replace(value, **given) if given else value  # type: ignore[type-var]


def _needs_links(config: LoadConfig) -> bool:
    """Return whether *config* turns a network with a constant rate into links."""
    names = ("loss", "mean_loss_burst", "queue_bdp", "queue_bytes", "queue_discipline")
    return config.cc not in (None, "constant") or bool(set_options(config, *names))


def _constant_rate_changes(config: LoadConfig, constant_rate: ConstantRate) -> dict[str, Any]:
    """Change packet size, interval or rate; a new packet size alone keeps the interval."""
    changes: dict[str, Any] = {}
    if config.reorder is not None:
        changes["jitter"] = Jitter.parse(str(config.reorder))
    packet_bytes = config.packet_bytes or constant_rate.packet_bytes
    if config.rate_mbps is not None:
        rate_bps = mbps(config.rate_mbps)
        changes["constant_rate"] = ConstantRate.at_rate(
            packet_bytes=packet_bytes, rate_bps=rate_bps
        )
    elif set_options(config, "interval_ms", "packet_bytes"):
        interval_ms, interval_ns = config.interval_ms, constant_rate.interval_ns
        interval_ns = interval_ns if interval_ms is None else Fraction(ms(interval_ms))
        changes["constant_rate"] = ConstantRate(packet_bytes=packet_bytes, interval_ns=interval_ns)
    return changes


def _link_changes(config: LoadConfig, network: Network, *, was_links: bool) -> dict[str, Any]:
    """Change the links: rate and queue of each direction with a bottleneck, loss of both."""
    down, up = network.down, network.up
    assert down is not None, "links have both directions"  # noqa: S101
    assert up is not None, "links have both directions"  # noqa: S101
    # If a constant rate was turned into links, their jitter already includes `reorder`.
    if config.reorder is not None and was_links:
        down = replace(down, hold=Jitter.parse(str(config.reorder)), jitter=None)
    return {"down": _change_link(config, down), "up": _change_link(config, up)}


def _change_link(config: LoadConfig, link: LinkProfile) -> LinkProfile:
    """Return *link* with the options of *config* applied to it."""
    changes: dict[str, Any] = {}
    if link.rate_bps is not None and config.rate_mbps is not None:
        changes["rate_bps"] = mbps(config.rate_mbps)
    if link.mean_rate_bps is not None and set_options(config, "queue_bdp", "queue_bytes"):
        # A link has one queue size: the other fields must be empty.
        changes |= {"queue_packets": None, "queue_bdp": config.queue_bdp}
        changes["queue_bytes"] = config.queue_bytes
    if config.loss is not None:
        # Packets that a network file lists as lost would add to the requested loss rate.
        changes |= {"loss": config.loss, "loss_burst": config.mean_loss_burst, "loss_list": ()}
    elif config.mean_loss_burst is not None:
        changes["loss_burst"] = config.mean_loss_burst
    if changes:
        link = replace(link, **changes)
    if config.queue_discipline is not None and link.mean_rate_bps is not None:
        link = link.with_discipline(QueueDiscipline(config.queue_discipline))
    if config.ecn is not None and link.queue_discipline is not QueueDiscipline.DROP_TAIL:
        link = replace(link, ecn=config.ecn)
    return link


def _controller(config: LoadConfig) -> tuple[str | None, ControllerFactory | None]:
    """Return the name of the given congestion controller, and its factory if it is a user's."""
    if config.cc is None:
        return None, None
    with naming("cc"):
        return congestion.controller_named(config.cc)


def _named_profile(config: LoadConfig, network: Network) -> TransportProfile | None:
    """Return the given transport profile, else the network's; None if a constant rate needs none.

    Without either, TCP is that of Linux, and QUIC that of the RFCs.

    Raises:
        UnknownNameError: if there is no such profile.
    """
    given: Any = config.transport_profile
    choices = (given, config.cc, config.retransmission_order, network.profile, network.cc)
    is_constant = network.constant_rate is not None and not _needs_links(config)
    if is_constant and all(choice is None for choice in choices):
        return None  # unused, and reading one takes longer than a load
    if isinstance(given, str | Path):
        with naming("transport_profile"):
            given = catalog.load_profile(given)
    is_tcp = config.transport is not None and Protocol(config.transport).is_over_tcp
    unnamed = "linux-tcp" if is_tcp else "default"
    return given or catalog.load_profile(network.profile or unnamed)


def _changed_profile(
    config: LoadConfig, profile: TransportProfile, network: Network
) -> TransportProfile:
    """Return the *profile* with the changes of the options.

    Raises:
        UnknownNameError: if it names an unknown controller.
    """
    # The controller of a given profile takes precedence over that of the network.
    network_cc = network.cc if config.transport_profile is None else None
    named, controller = _controller(config)
    cc = named or network_cc or profile.cc
    # A stack may have its own variant of CUBIC, to which that name then refers.
    if named == "cubic":
        cc = profile.own_cubic
    if cc == profile.cc and controller is None:
        controller = profile.controller
    if controller is None and not congestion.is_controller(cc):
        raise UnknownNameError("controller", cc, congestion.controller_names())
    if (cc, controller) != (profile.cc, profile.controller):
        # Settings for the profile's controller do not apply to another one.
        beta = profile.beta if cc == profile.cc else None
        profile = replace(profile, cc=cc, controller=controller, beta=beta)
    changes: dict[str, Any] = {"retransmit": config.retransmission_order, "ecn": config.ecn}
    if config.packet_threshold is not None or config.time_threshold is not None:
        changes["quic"] = _with_changes(
            profile.quic,
            packet_threshold=config.packet_threshold,
            time_threshold=config.time_threshold,
        )
    return _with_changes(profile, **changes)


def _network_rules(config: LoadConfig, path: ResolvedPath) -> Iterator[Rule]:
    """Yield rules on the options that do not apply to the network."""
    network = path.network
    if network.independent_packets is not None:
        message = "applies to transports and links, but independent packets have neither"
        yield message, *_TRANSPORT_OPTIONS
    elif network.constant_rate is not None:
        yield from _constant_rate_rules(config)
    else:
        yield from _link_rules(config, path)


def _constant_rate_rules(config: LoadConfig) -> Iterator[Rule]:
    """Yield rules on the options that do not apply to a constant rate."""
    if config.mode is HandshakeMode.ZERO_RTT:
        yield "'0-rtt' needs links: a constant rate has no handshake packets", "handshake"
    yield "needs links: at a constant rate there is no queue", "ecn"
    yield "needs links: at a constant rate nothing is lost", "packet_threshold", "time_threshold"
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


def _link_rules(config: LoadConfig, path: ResolvedPath) -> Iterator[Rule]:
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
    if path.protocol is Protocol.QMUX and profile and profile.tcp.tls is TlsVersion.NONE:
        # In cleartext a client waits for the server's transport parameters (draft-ietf-quic-qmux).
        yield "'qmux' needs TLS, but this profile is in cleartext", "transport", "transport_profile"
    if path.protocol.is_over_tcp:
        yield "needs QUIC: TCP has rules of its own", "packet_threshold", "time_threshold"
    if config.ecn and profile and not congestion.responds_to_ecn(profile.cc, profile.controller):
        yield f"needs a controller that responds to marks, such as cubic; is {profile.cc}", "ecn"
    if down is not None and down.mean_rate_bps is None:
        # The congestion window of a flow would grow without limit, since no queue ever fills.
        message = "needs a downlink with a rate: without one flows do not share anything"
        yield message, "cross_traffic"


def has_connections_per_host(page: Page, config: LoadConfig, network: Network) -> bool:
    """Return whether each host has a connection: as given, else for recordings of several."""
    if config.connections is not None:
        return config.connections == ConnectionMode.PER_HOST.value
    if page.recorded_load is None or network.constant_rate is not None:
        return False
    return len(host_names(page.resources, page.root)) > 1


def network_with(network: Network, *, name: str | None = None, **options: Any) -> Network:
    """Return *network* with changes by `NETWORK_OPTIONS`; see `Network.with_`."""
    refuse_keywords("with_", options, (*NETWORK_OPTIONS, "name"))
    config = LoadConfig(network=network, **options)
    changed = _path_over(network, config).network
    return changed if name is None else replace(changed, name=name, title="")
