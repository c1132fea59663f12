"""Over what a page is loaded: a network, what is changed of it, and the two ends."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, TypeAlias

from h3sim import catalog
from h3sim.browser import BrowserMode, BrowserModel
from h3sim.documents import shown
from h3sim.errors import InputError, Problem, UnknownNameError
from h3sim.http import Retransmit
from h3sim.transport import ConstantRate, Jitter, Mode, Network, Protocol, TransportProfile
from h3sim.transport.congestion import controller_names
from h3sim.units import mbps, ms

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

__all__ = ["LoadConfig"]

NetworkLike: TypeAlias = "Network | str | Path"
ProfileLike: TypeAlias = "TransportProfile | str | Path"

_MAX_BDPS = 10**6
_NUMBERS = (
    *("rate_mbps", "interval_ms", "rtt_ms", "loss", "burst", "queue_bdp", "buffer_kb"),
    "cpu_factor",
)
_WHOLE = ("packet_bytes", "queue_bytes", "seed", "max_requests")
_TEXTS = ("transport", "cc", "jitter", "retransmit")
_FLAGS = ("preload_scanner", "tight_mode")
_ALWAYS_GIVEN = ("network", "buffer_kb", "handshake", "seed", "browser")
_MAX_SEED = 2**63 - 1
_OF_NETWORK = (
    *("rate_mbps", "interval_ms", "packet_bytes", "rtt_ms", "loss", "burst", "queue_bdp"),
    *("queue_bytes", "jitter"),
)
_OF_PARSING = ("cpu_factor", "max_requests", "preload_scanner", "tight_mode")
"""What changes only a browser that computes its load."""
_RANGES: tuple[tuple[str, float, float], ...] = (
    ("rate_mbps", 1e-6, 1e7),
    ("interval_ms", 1e-6, 60_000),
    ("packet_bytes", 1, 65_507),
    ("rtt_ms", 0, 600_000),
    ("burst", 1, 1e6),
    ("queue_bytes", 1514, 1e12),
    ("buffer_kb", 0, 1e9),
)


@dataclass(frozen=True, kw_only=True)
class LoadConfig:
    """Over what a page is loaded.

    None keeps what the network, or the transport profile, says. *interval_ms* and *rate_mbps* set
    the same thing. *loss* is a share, in bursts of mean *burst* packets, both ways. *handshake* is
    "1-rtt", "0-rtt" or "none"; True and False stand for the first and the last. *browser* is
    "replay" or "parse", or a `BrowserModel`; the four settings behind it change that.

    A network of a constant pace is loaded at that pace, without loss; a congestion controller
    other than "constant", loss or a queue turns it into links.

    Raises:
        InputError: listing every value that is out of range.
        UnknownNameError: if the network, the profile or the controller is not known.
    """

    network: NetworkLike = "marx-2019"
    transport: str | None = None
    cc: str | None = None
    transport_profile: ProfileLike | None = None
    rate_mbps: float | None = None
    interval_ms: float | None = None
    packet_bytes: int | None = None
    rtt_ms: float | None = None
    loss: float | None = None
    burst: float | None = None
    queue_bdp: float | None = None
    queue_bytes: int | None = None
    jitter: str | None = None
    buffer_kb: float = 0.0
    retransmit: str | None = None
    handshake: bool | str = True
    seed: int = 0
    browser: BrowserModel | str = "replay"
    cpu_factor: float | None = None
    max_requests: int | None = None
    preload_scanner: bool | None = None
    tight_mode: bool | None = None

    def __post_init__(self) -> None:
        problems = list(self._type_problems())
        if problems:
            raise InputError(problems)
        problems = list(self._problems())
        unknown = list(self._unknown_names())
        if unknown and not problems and len(unknown) == 1:
            raise unknown[0][1]
        problems += (Problem(key=key, message=str(error)) for key, error in unknown)
        if problems:
            raise InputError(problems)
        network = self.resolved_network()
        if network.constant_rate is None:
            self._refuse_pace()
        self._refuse_burst_without_loss(network)
        if self.mode is Mode.ZERO_RTT and network.constant_rate is not None:
            message = "'0-rtt' needs links: a constant pace has no handshake packets"
            raise InputError([Problem(key="handshake", message=message)])
        self.resolved_profile()

    def _unknown_names(self) -> Iterator[tuple[str, UnknownNameError]]:
        """Yield what is given by name and not known, all of it: a network's own names follow."""
        for key, named, load in (
            ("network", self.network, catalog.load_network),
            ("transport_profile", self.transport_profile, catalog.load_profile),
        ):
            if isinstance(named, str):
                try:
                    load(named)
                except UnknownNameError as error:
                    yield key, error
        if self.cc is not None and self.cc not in controller_names():
            yield "cc", UnknownNameError("controller", self.cc, controller_names())

    @property
    def protocol(self) -> Protocol:
        """The transport that is meant."""
        if self.transport is not None:
            return Protocol(self.transport)
        return self.resolved_profile().protocol

    @property
    def browser_model(self) -> BrowserModel:
        """The browser with what is changed of it."""
        browser = self.browser
        if not isinstance(browser, BrowserModel):
            browser = BrowserModel(mode=BrowserMode(browser))
        names = _OF_PARSING
        given = {name: getattr(self, name) for name in names if getattr(self, name) is not None}
        return replace(browser, **given)

    @property
    def mode(self) -> Mode:
        """How the connection begins."""
        if isinstance(self.handshake, bool):
            return Mode.ONE_RTT if self.handshake else Mode.NONE
        return Mode(self.handshake)

    def resolved_network(self) -> Network:
        """Return the network with what is changed of it, and called so."""
        named = self._named_network()
        network = self._changed_network(named)
        if network == named:
            return named
        changes = [
            # 50 and 50.0 are one config, and give one name.
            f"{key}={str(getattr(self, key)).removesuffix('.0')}"
            for key in _OF_NETWORK
            if getattr(self, key) is not None
        ]
        name = f"{named.name} with {', '.join(changes) or f'cc={self.cc}'}"
        return replace(network, name=name, title=name)

    def _changed_network(self, network: Network) -> Network:
        if self.rtt_ms is not None:
            network = replace(network, rtt_ns=ms(self.rtt_ms))
        if network.constant_rate is not None:
            network = self._at_constant_rate(network, network.constant_rate)
            if not self._needs_links():
                return network
        return self._linked(network.as_links())

    def resolved_profile(self) -> TransportProfile:
        """Return the transport profile with what is changed of it."""
        network = self._named_network()
        named = self.transport_profile or network.profile or "default"
        profile = named if isinstance(named, TransportProfile) else catalog.load_profile(named)
        # A profile that was asked for goes before what the network suggests.
        suggested = None if self.transport_profile is not None else network.cc
        cc = self.cc or suggested or profile.cc
        if self.cc == "cubic":
            cc = profile.own_cubic
        if cc not in controller_names():
            raise UnknownNameError("controller", cc, controller_names())
        # What the profile says of its own controller says nothing of another one.
        beta = profile.beta if cc == profile.cc else None
        retransmit = self.retransmit or profile.retransmit
        return replace(profile, cc=cc, beta=beta, retransmit=retransmit)

    def _refuse_pace(self) -> None:
        """Refuse what only a constant pace has, on a network that consists of links."""
        if self._named_network().constant_rate is not None:
            return
        names = [n for n in ("interval_ms", "packet_bytes") if getattr(self, n) is not None]
        if names:
            message = "goes with a constant pace, and this network consists of links"
            raise InputError(Problem(key=name, message=message) for name in names)

    def _named_network(self) -> Network:
        named = self.network
        return named if isinstance(named, Network) else catalog.load_network(named)

    def _needs_links(self) -> bool:
        asked = (self.loss, self.burst, self.queue_bdp, self.queue_bytes)
        return self.cc not in (None, "constant") or any(value is not None for value in asked)

    def _at_constant_rate(self, network: Network, constant_rate: ConstantRate) -> Network:
        """A packet of another size keeps the interval, unless a rate is asked for."""
        if self.jitter is not None:
            network = replace(network, jitter=Jitter.parse(self.jitter))
        packet_bytes = (
            constant_rate.packet_bytes if self.packet_bytes is None else self.packet_bytes
        )
        if self.rate_mbps is not None:
            constant_rate = ConstantRate.at_rate(
                packet_bytes=packet_bytes, rate_bps=mbps(self.rate_mbps)
            )
        elif self.interval_ms is not None:
            constant_rate = ConstantRate(
                packet_bytes=packet_bytes, interval_ns=Fraction(ms(self.interval_ms))
            )
        else:
            constant_rate = replace(constant_rate, packet_bytes=packet_bytes)
        return replace(network, constant_rate=constant_rate)

    def _linked(self, network: Network) -> Network:
        """Rate and queue change the bottleneck of either direction that has one; loss both."""
        down, up = network.down, network.up
        assert down is not None, "links have both directions"  # noqa: S101
        assert up is not None, "links have both directions"  # noqa: S101
        if self.jitter is not None and self._named_network().constant_rate is None:
            down = replace(down, hold=Jitter.parse(self.jitter), jitter=None)
        return replace(
            network,
            down=replace(down, **self._link_changes(has_bottleneck=down.rate_bps is not None)),
            up=replace(up, **self._link_changes(has_bottleneck=up.rate_bps is not None)),
        )

    def _link_changes(self, *, has_bottleneck: bool) -> dict[str, Any]:
        changes: dict[str, Any] = {}
        if has_bottleneck and self.rate_mbps is not None:
            changes["rate_bps"] = mbps(self.rate_mbps)
        if has_bottleneck and (self.queue_bdp is not None or self.queue_bytes is not None):
            changes |= {"queue_packets": None, "queue_bdp": self.queue_bdp}
            changes["queue_bytes"] = self.queue_bytes
        if self.loss is not None:
            changes |= {"loss": self.loss, "loss_burst": self.burst, "loss_list": ()}
        elif self.burst is not None:
            changes["loss_burst"] = self.burst
        return changes

    def _refuse_burst_without_loss(self, network: Network) -> None:
        links = (network.down, network.up)
        if self.burst is not None and not any(link is not None and link.loss for link in links):
            message = "says how losses cluster, and there is no loss: give that as well"
            raise InputError([Problem(key="burst", message=message)])

    def _type_problems(self) -> Iterator[Problem]:
        """Yield what is not of its type: the checks behind this one compare and look up."""
        for key in _ALWAYS_GIVEN:
            if getattr(self, key) is None:
                yield Problem(key=key, message="must be given, is None")
        for keys, types, what in (
            (_NUMBERS, (int, float), "a number"),
            (_WHOLE, (int,), "a whole number"),
            (_TEXTS, (str,), "text"),
            (_FLAGS, (bool,), "True or False"),
            (("handshake",), (bool, str), "text, True or False"),
            (("browser",), (BrowserModel, str), "text or a BrowserModel"),
            (("network",), (Network, str, os.PathLike), "a name, a path or a Network"),
            (
                ("transport_profile",),
                (TransportProfile, str, os.PathLike),
                "a name, a path or a TransportProfile",
            ),
        ):
            for key in keys:
                value = getattr(self, key)
                is_flag = isinstance(value, bool) and bool not in types
                if value is not None and (is_flag or not isinstance(value, types)):
                    hint = " (0.02 is 2 %)" if key == "loss" else ""
                    yield Problem(key=key, message=f"must be {what}{hint}, is {shown(value)}")

    def _problems(self) -> Iterator[Problem]:
        if not 0 <= self.seed <= _MAX_SEED:
            yield Problem(key="seed", message=f"must be 0 to 2^63 - 1, is {shown(self.seed)}")
        for key, low, high in _RANGES:
            value = getattr(self, key)
            # Whole numbers may be too large for a float: they are compared before they are shown.
            if value is not None and not (low <= value <= high and math.isfinite(value)):
                is_huge = isinstance(value, int) and abs(value) > high
                given = shown(value) if is_huge else f"{value:g}"
                yield Problem(key=key, message=f"must be {low:g} to {high:g}, is {given}")
        if self.loss is not None and not 0 <= self.loss < 1:
            message = f"must be at least 0 and less than 1 (0.02 is 2 %), is {self.loss:g}"
            yield Problem(key="loss", message=message)
        if self.queue_bdp is not None and not 0 < self.queue_bdp <= _MAX_BDPS:
            message = f"must be more than 0, to {_MAX_BDPS:g}, is {self.queue_bdp:g}"
            yield Problem(key="queue_bdp", message=message)
        if self.rate_mbps is not None and self.interval_ms is not None:
            yield Problem(key="rate_mbps", message="says the same as interval_ms: give only one")
        if self.jitter is not None:
            try:
                Jitter.parse(self.jitter)
            except InputError as error:
                yield from error.problems
        yield from self._choice_problems()
        yield from self._browser_problems()

    def _browser_problems(self) -> Iterator[Problem]:
        if self.browser in [mode.value for mode in BrowserMode]:
            try:
                model = self.browser_model
            except InputError as error:
                yield from error.problems
                return
            if model.mode is BrowserMode.REPLAY:
                for key in _OF_PARSING:
                    if getattr(self, key) is not None:
                        yield Problem(key=key, message="goes only with browser = 'parse'")

    def _choice_problems(self) -> Iterator[Problem]:
        for key, known in (
            ("transport", [protocol.value for protocol in Protocol]),
            ("retransmit", [policy.value for policy in Retransmit]),
            ("handshake", [mode.value for mode in Mode]),
            ("browser", [mode.value for mode in BrowserMode]),
        ):
            value = getattr(self, key)
            is_given = value is not None and not isinstance(value, bool | BrowserModel)
            if is_given and value not in known:
                yield Problem(key=key, message=f"must be one of {', '.join(known)}, is {value!r}")
