"""Over what a page is loaded: a network, what is changed of it, and the two ends."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from h3sim import catalog
from h3sim.browser import OF_BROWSER, OF_PARSING, BrowserMode, BrowserModel
from h3sim.documents.arguments import GatheredMistakes
from h3sim.documents.declared import declared, settled
from h3sim.documents.values import Number, Text, Whole
from h3sim.errors import InputError, Problem, UnknownNameError
from h3sim.http import Retransmit, SendBufferRefill
from h3sim.page import ConnectionMode, Page
from h3sim.page.hosts import host_names
from h3sim.results import MAX_LOAD_NS
from h3sim.signals import Signalling
from h3sim.study.arguments import SEED
from h3sim.study.load_option import (
    NO_CODEC,
    BrowserOption,
    CodecName,
    CrossTrafficText,
    HandshakeOption,
    NameOf,
    NameOr,
    ReorderOption,
    documented,
    of_browser,
    option,
)
from h3sim.study.network_changes import changed_network, refuse_what_the_network_lacks
from h3sim.study.recorded_network import (
    FOR_HEADER_LISTS,
    RECORDED,
    WITHOUT_RECORDING,
    recorded_network,
)
from h3sim.transport import Mode, Network, Protocol
from h3sim.transport.congestion import controller_names, is_controller
from h3sim.units import NS_PER_S

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from h3sim.compression import HeaderCompression
    from h3sim.compression.exchanges import HeaderLists
    from h3sim.transport import TransportProfile

__all__ = ["OF_NETWORK", "LoadConfig", "ResolvedPath", "config_for", "header_compression_of"]

NetworkLike: TypeAlias = "Network | str | Path"
ProfileLike: TypeAlias = "TransportProfile | str | Path"

OF_NETWORK = (
    *("rate_mbps", "interval_ms", "packet_bytes", "rtt_ms", "loss", "mean_loss_burst"),
    *("queue_bdp", "queue_bytes", "reorder"),
)
"""The options that change the network."""
_ABOUT_NETWORK = "a shipped network, a file.toml, or recorded: the page's own, else marx-2019"
_LIMIT_S = Number(low=0, high=MAX_LOAD_NS / NS_PER_S, is_above=True)


@documented
@dataclass(frozen=True, kw_only=True, repr=False)
class LoadConfig:
    """Over what a page is loaded.

    None keeps what the network, or the transport profile, says. *interval_ms* and *rate_mbps* set
    the same thing. For *handshake* True and False stand for "1-rtt" and "none". *browser* is
    "replay" or "parse", or a `BrowserModel`; the settings behind it change that.

    The network "recorded" is that of the page's recording, and "marx-2019" for a page without one.
    A constant rate is met without loss; a congestion controller other than "constant", loss or a
    queue make links of it.

    Raises:
        InputError: listing every value that is out of range.
        UnknownNameError: if the network, the profile or the controller is not known, and all else
            is right.
    """

    network: NetworkLike = option(NameOr("Network"), _ABOUT_NETWORK, "NAME", default=RECORDED)
    transport: str | None = option(
        NameOf(Protocol),
        "what carries HTTP (default: as the transport profile says; quic)",
    )
    cc: str | None = option(
        Text(), "the congestion controller: newreno, cubic, bbr, constant, ...", "NAME"
    )
    transport_profile: ProfileLike | None = option(
        NameOr("TransportProfile"),
        "how a stack sends and recovers: a shipped profile or a file.toml",
        "NAME",
    )
    rate_mbps: float | None = option(
        Number(low=1e-6, high=1e7), "the pace as a rate, in Mbit/s of payload", "RATE"
    )
    interval_ms: float | None = option(
        Number(low=1e-6, high=60_000), "the pace as the time between two packets", "MS"
    )
    packet_bytes: int | None = option(
        Whole(low=1, high=65_507), "the most payload of a packet", "BYTES"
    )
    rtt_ms: float | None = option(Number(low=0, high=600_000), "the round-trip time", "MS")
    loss: float | None = option(
        Number(low=0, high=1, is_below=True, example="0.02 is 2 %"),
        "the share of packets lost each way: 0.02, or 2%",
        "SHARE",
        is_share=True,
    )
    mean_loss_burst: float | None = option(
        Number(low=1, high=1e6), "mean number of packets lost in a row", "PACKETS"
    )
    queue_bdp: float | None = option(
        Number(low=0, high=1e6, is_above=True),
        "the queue before the bottleneck, in rate times RTT",
        "BDPS",
    )
    queue_bytes: int | None = option(Whole(low=1514, high=10**12), "the same in bytes", "BYTES")
    reorder: str | Mapping[str, Any] | None = option(
        ReorderOption(),
        "hold every n-th packet until N (to M) others have been sent: 4:1-3, or none; in Python and"
        " files also {every = 4, by = [1, 3]}",
        "EVERY:N[-M]",
    )
    send_buffer_kb: float = option(
        Number(low=0, high=1e9),
        "size of the server's send buffer, in kB of 1000 bytes",
        "KB",
        default=0.0,
        is_own=True,
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
        Whole(low=0),
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
        HandshakeOption(Mode),
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
    seed: int = option(SEED, "random seed", "N", default=0)
    time_limit_s: float | None = option(
        _LIMIT_S, "simulated time after which a load over links is given up (default: 3600)", "S"
    )
    browser: BrowserModel | str = option(
        BrowserOption(BrowserMode),
        "replay requests as recorded, or compute them from parsing, blocking and executing (parse)",
        default="replay",
        group="browser",
    )
    cpu_slowdown: float | None = of_browser("cpu_slowdown", "FACTOR")
    max_concurrent_requests: int | None = of_browser("max_concurrent_requests", "N")
    max_concurrent_requests_per_host: int | None = of_browser(
        "max_concurrent_requests_per_host", "N"
    )
    preload_scanner: bool | None = of_browser("preload_scanner")
    tight_mode: bool | None = of_browser("tight_mode")
    stylesheets_block_parser: bool | None = of_browser("stylesheets_block_parser")
    hidden_at_ms: float | None = of_browser("hidden_at_ms", "MS")

    def __post_init__(self) -> None:
        problems = settled(self)
        with GatheredMistakes() as mistakes:
            mistakes.of("", lambda: _refuse(problems))
            for key in ("network", "transport_profile", "cc"):  # all that names something
                if not _told(problems, key):
                    mistakes.of(key, partial(getattr, self, f"_named_{key}"))
        if self.network != RECORDED:  # else the page decides: see `config_for`
            refuse_what_the_network_lacks(self, self.path)

    def __repr__(self) -> str:
        """Return only what is not as usual."""
        given = ", ".join(
            f"{entry.attribute}={value!r}"
            for entry in declared(LoadConfig)
            if (value := getattr(self, entry.attribute)) != entry.default
        )
        return f"LoadConfig({given})"

    def mistakes(self) -> Iterator[Problem]:
        """Yield what is wrong between its values."""
        return _mistakes(self)

    def _given_of_browser(self) -> dict[str, Any]:
        """Return the settings of a browser that are changed; some only a `BrowserModel` has."""
        options = (entry.attribute for entry in declared(LoadConfig))
        given = {name: getattr(self, name) for name in options if name in OF_BROWSER}
        return {name: value for name, value in given.items() if value is not None}

    @cached_property
    def _named_network(self) -> Network:
        """The network without changes; one that replaces it where the page decides."""
        named = WITHOUT_RECORDING if self.network == RECORDED else self.network
        return named if isinstance(named, Network) else catalog.load_network(named)

    @cached_property
    def _named_transport_profile(self) -> TransportProfile | None:
        """The transport profile that is given; None without one."""
        named = self.transport_profile
        return catalog.load_profile(named) if isinstance(named, str | os.PathLike) else named

    @property
    def _named_cc(self) -> str | None:
        """The congestion controller that is given, if it is known."""
        if self.cc is not None and not is_controller(self.cc):
            raise UnknownNameError("controller", self.cc, controller_names())
        return self.cc

    @cached_property
    def path(self) -> ResolvedPath:
        """What the options of network and transport come to; worked out once.

        Raises:
            UnknownNameError: if the profile names a controller that is not known.
        """
        named, given = self._named_network, self._named_transport_profile
        network = _called_by_its_changes(self, named, changed_network(self, named))
        asked = (
            self.transport_profile,
            self.cc,
            self.retransmission_order,
            network.profile,
            network.cc,
        )
        if network.constant_rate is not None and all(name is None for name in asked):
            profile = None  # of no use, and reading one takes longer than a load
        else:
            profile = _changed_profile(self, given, named)
        usual = Protocol.QUIC if profile is None else profile.protocol
        protocol = usual if self.transport is None else Protocol(self.transport)
        return ResolvedPath(named, network, profile, protocol)

    @property
    def browser_model(self) -> BrowserModel:
        """The browser with what is changed of it."""
        browser = self.browser
        if not isinstance(browser, BrowserModel):
            browser = BrowserModel(mode=BrowserMode(browser))
        return replace(browser, **self._given_of_browser())

    @property
    def mode(self) -> Mode:
        """How the connection begins."""
        if isinstance(self.handshake, bool):
            return Mode.ONE_RTT if self.handshake else Mode.NONE
        return Mode(self.handshake)


class ResolvedPath(NamedTuple):
    """The network and the transport of a load."""

    named: Network
    """The network as it is shipped or was given."""
    network: Network
    """The same with the changes that options make, and a name that lists them."""
    profile: TransportProfile | None
    """How both ends send and recover; None where a constant rate needs none."""
    protocol: Protocol


def _mistakes(config: LoadConfig) -> Iterator[Problem]:
    """Yield what is wrong between its values."""
    if config.rate_mbps is not None and config.interval_ms is not None:
        yield Problem(key="rate_mbps", message="says the same as interval_ms: give only one")
    if config.dns_ms is not None and config.connections != ConnectionMode.PER_HOST.value:
        yield Problem(key="dns_ms", message="goes only with connections = 'per-host'")
    if config.browser == BrowserMode.REPLAY.value:
        for key in config._given_of_browser():
            if key in OF_PARSING:
                yield Problem(key=key, message="goes only with browser = 'parse'")


def _refuse(problems: list[Problem]) -> None:
    if problems:
        raise InputError(problems)


def _called_by_its_changes(config: LoadConfig, named: Network, network: Network) -> Network:
    """Return *network* with a name that lists the changes; the one as named if there are none."""
    if network == named:
        return named
    changes = [
        # 50 and 50.0 are one config, and give one name.
        f"{key}={str(getattr(config, key)).removesuffix('.0')}"
        for key in OF_NETWORK
        if getattr(config, key) is not None
    ]
    name = f"{named.name} with {', '.join(changes) or f'cc={config.cc}'}"
    return replace(network, name=name, title=name)


def _changed_profile(
    config: LoadConfig, given: TransportProfile | None, network: Network
) -> TransportProfile:
    """Return the profile that is *given*, else the network's, with the changes of the options."""
    profile = given or catalog.load_profile(network.profile or "default")
    # A profile that is given goes before what the network suggests.
    suggested = None if given is not None else network.cc
    cc = config.cc or suggested or profile.cc
    # A stack may have another CUBIC than RFC 9438's: by that name its own is meant.
    if config.cc == "cubic":
        cc = profile.own_cubic
    if not is_controller(cc):
        raise UnknownNameError("controller", cc, controller_names())
    # What the profile says of its own controller says nothing of another one.
    beta = profile.beta if cc == profile.cc else None
    retransmit = config.retransmission_order or profile.retransmit
    return replace(profile, cc=cc, beta=beta, retransmit=retransmit)


def config_for(page: Page | HeaderLists, config: LoadConfig) -> LoadConfig:
    """Return *config* with the network and the connections that are left to the page.

    Raises:
        InputError: if no network can be estimated from the page's recording, or no page can use the
            network; or listing the options that the network has no use for.
        MissingExtraError: if a library that header lists are compressed by is not installed.
    """
    if not isinstance(page, Page):
        return _config_for_lists(config)
    if config.network == RECORDED:
        known = page.recorded_load
        if known is not None and known.lacks_network:
            raise InputError([Problem(key="network", message=_no_network(page))])
        config = replace(config, network=recorded_network(page) or WITHOUT_RECORDING)
    if config.path.named.independent_packets is not None:
        message = "carries header lists alone: a page needs a constant rate or links"
        raise InputError([Problem(key="network", message=message)])
    if config.connections is None:
        config = replace(config, connections=_connections_for(page, config).value)
    return config


def _no_network(page: Page) -> str:
    return (
        f"must be given: the recording of {page.name} has too few times of connections, first bytes"
        " and transfers to estimate its own; name a shipped one, such as cable, or a file.toml"
    )


def _connections_for(page: Page, config: LoadConfig) -> ConnectionMode:
    """Return whether the hosts of a page have connections of their own, if nobody says."""
    is_recording = page.recorded_load is not None
    has_links = config.path.network.constant_rate is None
    if is_recording and has_links and len(host_names(page.resources, page.root)) > 1:
        return ConnectionMode.PER_HOST
    return ConnectionMode.SINGLE


def header_compression_of(codec: HeaderCompression | str | None) -> HeaderCompression | None:
    """Return the header codec; None where the page gives the sizes of headers."""
    if codec is None or codec == NO_CODEC:
        return None
    from h3sim.compression import HeaderCompression  # on use: few loads compress headers

    return codec if isinstance(codec, HeaderCompression) else HeaderCompression(codec=codec)


def _config_for_lists(config: LoadConfig) -> LoadConfig:
    if config.network == RECORDED:
        config = replace(config, network=FOR_HEADER_LISTS)
    compression = header_compression_of(config.header_compression)
    if compression is None:
        message = "must name a codec for header lists"
        raise InputError([Problem(key="header_compression", message=message)])
    compression.check()  # now, rather than once for each load in a worker
    return config


def _told(problems: list[Problem], key: str) -> bool:
    return any(problem.key == key for problem in problems)
