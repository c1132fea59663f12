"""Over what a page is loaded: a network, what is changed of it, and the two ends."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

from h3sim import catalog
from h3sim.browser import OF_BROWSER, OF_PARSING, BrowserMode, BrowserModel
from h3sim.documents.arguments import GatheredMistakes
from h3sim.documents.declared import declared, settled
from h3sim.documents.values import Number, Text, Whole
from h3sim.engine import MAX_LOAD_NS
from h3sim.errors import InputError, Problem, UnknownNameError
from h3sim.http import BufferModel, Retransmit
from h3sim.page import HostMode
from h3sim.page.hosts import host_names
from h3sim.study.arguments import SEED
from h3sim.study.load_option import (
    NO_CODEC,
    BrowserOption,
    CodecName,
    CrossTrafficText,
    HandshakeOption,
    JitterText,
    NameOf,
    NameOr,
    documented,
    of_browser,
    option,
    switched,
)
from h3sim.study.network_changes import changed_network, refuse_what_the_network_lacks
from h3sim.study.recorded_network import RECORDED, WITHOUT_RECORDING, recorded_network
from h3sim.transport import Mode, Network, Protocol
from h3sim.transport.congestion import controller_names, is_controller
from h3sim.units import NS_PER_S

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from h3sim.compression import HeaderCompression
    from h3sim.page import Page
    from h3sim.transport import TransportProfile

__all__ = ["OF_NETWORK", "LoadConfig", "config_for", "has_profile"]

NetworkLike: TypeAlias = "Network | str | Path"
ProfileLike: TypeAlias = "TransportProfile | str | Path"

OF_NETWORK = (
    *("rate_mbps", "interval_ms", "packet_bytes", "rtt_ms", "loss", "burst", "queue_bdp"),
    *("queue_bytes", "jitter"),
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
    burst: float | None = option(
        Number(low=1, high=1e6), "how many packets are lost in a row, on average", "PACKETS"
    )
    queue_bdp: float | None = option(
        Number(low=0, high=1e6, is_above=True),
        "the queue before the bottleneck, in rate times RTT",
        "BDPS",
    )
    queue_bytes: int | None = option(Whole(low=1514, high=10**12), "the same in bytes", "BYTES")
    jitter: str | None = option(
        JitterText(),
        "hold every n-th packet until N (to M) others were sent, say 4:1-3; or none",
        "EVERY:N[-M]",
    )
    buffer_kb: float = option(
        Number(low=0, high=1e9),
        "the send buffer, in kB of 1000 bytes",
        "KB",
        default=0.0,
        is_own=True,
    )
    buffer_model: str = option(
        NameOf(BufferModel),
        "when the send buffer takes something in: whenever something fits, or once it is empty",
        default=BufferModel.REFILLED.value,
    )
    retransmit: str | None = option(
        NameOf(Retransmit),
        "when lost bytes go again: before new ones, by priority, or at their stream's turn"
        " (default: as the transport profile says)",
    )
    max_placeholders: int | None = option(
        Whole(low=0),
        "the most placeholders that a server lets clients declare (default: as the scheme says)",
        "N",
    )
    retention_ms: float | None = option(
        Number(low=0, high=86_400_000),
        "how long a stream that is done with stays in the scheduler, for others to be placed"
        " relative to it (default: as the scheme says; 500)",
        "MS",
    )
    metadata: bool = switched(
        "--metadata",
        "clients announce their scheme when they connect and say of requests what they are for;"
        " the server works the priorities out",
    )
    handshake: bool | str = option(
        HandshakeOption(Mode),
        "how the connection begins: 1-rtt, 0-rtt or none",
        default=True,
        switches=(
            (
                "--no-handshake",
                False,
                "the connection is established: the first request leaves at 0",
            ),
            ("--zero-rtt", "0-rtt", "the requests go with the client's first packet"),
        ),
    )
    headers: str | None = option(
        CodecName(),
        "how headers are compressed, both ways, over links: hpack, qpack, qcram, static, ..., or"
        " none (default: they take what the page says, and block nothing)",
        "CODEC",
    )
    hosts: str | None = option(
        NameOf(HostMode),
        "over links: one connection for all, or one for each host that the page names, but for"
        " those that share a server and a certificate (default: recorded for a recording that"
        " knows several, else one)",
    )
    dns_ms: float | None = option(
        Number(low=0, high=600_000),
        "how long it takes to look up a host that the page says nothing of, with hosts = recorded"
        " (default: 0)",
        "MS",
    )
    cross_traffic: str | None = option(
        CrossTrafficText(),
        "over links: flows of others through the same queues, each from a time in ms on: cubic,"
        " bbr@500, or a video of 3 Mbit/s, on-off:3, with + between them",
        "FLOWS",
    )
    seed: int = option(SEED, "of all that is random", "N", default=0)
    max_simulated_s: float | None = option(
        _LIMIT_S, "when a load over links is given up, in simulated seconds (default: 3600)", "S"
    )
    browser: BrowserModel | str = option(
        BrowserOption(BrowserMode),
        "ask for resources as recorded, or compute what parsing, blocking and executing make of"
        " the page",
        default="replay",
        group="browser",
    )
    cpu_factor: float | None = of_browser("cpu_factor", "FACTOR")
    max_requests: int | None = of_browser("max_requests", "N")
    max_requests_per_host: int | None = of_browser("max_requests_per_host", "N")
    preload_scanner: bool | None = of_browser("preload_scanner")
    tight_mode: bool | None = of_browser("tight_mode")
    styles_stop_parser: bool | None = of_browser("styles_stop_parser")
    background_at_ms: float | None = of_browser("background_at_ms", "MS")

    def __post_init__(self) -> None:
        problems = settled(self)
        with GatheredMistakes() as mistakes:
            mistakes.of("", lambda: _refuse(problems))
            for key, find in _FINDS.items():  # all of them: a network's own names follow
                if not _told(problems, key):
                    mistakes.of(key, partial(find, getattr(self, key)))
        refuse_what_the_network_lacks(self)  # needs known names and values in range
        if has_profile(self):
            self.resolved_profile()

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

    @property
    def protocol(self) -> Protocol:
        """The transport that is meant."""
        if self.transport is not None:
            return Protocol(self.transport)
        return self.resolved_profile().protocol if has_profile(self) else Protocol.QUIC

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

    @property
    def header_compression(self) -> HeaderCompression | None:
        """How headers are compressed; None where they take what the page says."""
        codec = self.headers
        if codec in (None, NO_CODEC):
            return None
        from h3sim.compression import HeaderCompression  # on use: few loads compress headers

        return HeaderCompression(codec=str(codec))

    def resolved_network(self) -> Network:
        """Return the network with what is changed of it, and called so."""
        named = self.named_network()
        network = changed_network(self, named)
        if network == named:
            return named
        changes = [
            # 50 and 50.0 are one config, and give one name.
            f"{key}={str(getattr(self, key)).removesuffix('.0')}"
            for key in OF_NETWORK
            if getattr(self, key) is not None
        ]
        name = f"{named.name} with {', '.join(changes) or f'cc={self.cc}'}"
        return replace(network, name=name, title=name)

    def resolved_profile(self) -> TransportProfile:
        """Return the transport profile with what is changed of it."""
        network = self.named_network()
        named = self.transport_profile or network.profile or "default"
        profile = catalog.load_profile(named) if isinstance(named, str | os.PathLike) else named
        # A profile that was asked for goes before what the network suggests.
        suggested = None if self.transport_profile is not None else network.cc
        cc = self.cc or suggested or profile.cc
        # A stack may have another CUBIC than RFC 9438's: by that name its own is meant.
        if self.cc == "cubic":
            cc = profile.own_cubic
        if not is_controller(cc):
            raise UnknownNameError("controller", cc, controller_names())
        # What the profile says of its own controller says nothing of another one.
        beta = profile.beta if cc == profile.cc else None
        retransmit = self.retransmit or profile.retransmit
        return replace(profile, cc=cc, beta=beta, retransmit=retransmit)

    def named_network(self) -> Network:
        """Return the network as it is shipped or was given, without a page's own."""
        return _load_network(self.network)


def _mistakes(config: LoadConfig) -> Iterator[Problem]:
    """Yield what is wrong between its values."""
    if config.rate_mbps is not None and config.interval_ms is not None:
        yield Problem(key="rate_mbps", message="says the same as interval_ms: give only one")
    if config.dns_ms is not None and config.hosts != HostMode.RECORDED.value:
        yield Problem(key="dns_ms", message="goes only with hosts = 'recorded'")
    if config.browser == BrowserMode.REPLAY.value:
        for key in config._given_of_browser():
            if key in OF_PARSING:
                yield Problem(key=key, message="goes only with browser = 'parse'")


def _refuse(problems: list[Problem]) -> None:
    if problems:
        raise InputError(problems)


def _find_profile(named: ProfileLike | None) -> None:
    if isinstance(named, str | os.PathLike):
        catalog.load_profile(named)


def _find_controller(name: str | None) -> None:
    if name is not None and not is_controller(name):
        raise UnknownNameError("controller", name, controller_names())


def has_profile(config: LoadConfig) -> bool:
    """Return whether a transport profile is used or asked for: else none need be read."""
    network = config.resolved_network()
    asked = (config.transport_profile, config.cc, config.retransmit, network.profile, network.cc)
    return network.constant_rate is None or any(name is not None for name in asked)


def _shipped(network: NetworkLike) -> NetworkLike:
    """Return the network, or what stands in for that of a page which has none."""
    return WITHOUT_RECORDING if network == RECORDED else network


def _load_network(network: NetworkLike) -> Network:
    named = _shipped(network)
    return named if isinstance(named, Network) else catalog.load_network(named)


def config_for(page: Page, config: LoadConfig) -> LoadConfig:
    """Return *config* with a network and hosts, where these are left to the page.

    Raises:
        InputError: if the page was recorded over a network that cannot be told; or listing the
            options that this network has no use for.
    """
    if config.network == RECORDED:
        known = page.recorded_load
        if known is not None and known.lacks_network:
            raise InputError([Problem(key="network", message=_no_network(page))])
        config = replace(config, network=recorded_network(page) or WITHOUT_RECORDING)
    if config.hosts is None:
        config = replace(config, hosts=_hosts_for(page, config).value)
    return config


def _no_network(page: Page) -> str:
    return (
        f"must be given: the recording of {page.name} has too few times of connections, first bytes"
        " and transfers to estimate its own; name a shipped one, such as cable, or a file.toml"
    )


def _hosts_for(page: Page, config: LoadConfig) -> HostMode:
    """Return from how many hosts a page is loaded if nobody says so."""
    is_recording = page.recorded_load is not None
    if not is_recording or len(host_names(page.resources, page.root)) == 1:
        return HostMode.ONE
    return HostMode.RECORDED if config.resolved_network().constant_rate is None else HostMode.ONE


_FINDS: dict[str, Callable[[Any], object]] = {
    "network": _load_network,
    "transport_profile": _find_profile,
    "cc": _find_controller,
}
"""How what is given by name is found."""


def _told(problems: list[Problem], key: str) -> bool:
    return any(problem.key == key for problem in problems)
