"""One load, with everything given by name, by path or as a value."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, TypeAlias

from h3sim import catalog, engine
from h3sim.errors import InputError, Problem
from h3sim.page import Page
from h3sim.schemes import Scheme
from h3sim.transport import Jitter, Network, Pacing, Protocol
from h3sim.units import kbyte, mbps, ms

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    from h3sim.engine import Load

__all__ = ["Setting", "resolve_pages", "resolve_schemes", "simulate"]

PageLike: TypeAlias = "Page | str | Path"
SchemeLike: TypeAlias = "Scheme | str | Path"
NetworkLike: TypeAlias = "Network | str | Path"

_MAX_BUFFER_KB = 10**9


@dataclass(frozen=True, kw_only=True)
class Setting:
    """Over what a page is loaded: a network, what is changed of it, and the two ends.

    None keeps what the network says. *interval_ms* and *rate_mbps* set the same thing.

    Raises:
        InputError: listing every value that is out of range.
        UnknownNameError: if the network is not known.
    """

    network: NetworkLike = "marx-2019"
    transport: str = "quic"
    rate_mbps: float | None = None
    interval_ms: float | None = None
    packet_bytes: int | None = None
    rtt_ms: float | None = None
    jitter: str | None = None
    buffer_kb: float = 0.0
    handshake: bool = True
    seed: int = 0

    def __post_init__(self) -> None:
        problems = list(self._problems())
        if problems:
            raise InputError(problems)
        self.resolved_network()
        self.protocol()

    def protocol(self) -> Protocol:
        """Return the transport that is meant."""
        return Protocol(self.transport)

    def resolved_network(self) -> Network:
        """Return the network with what is changed of it."""
        named = self.network
        network = named if isinstance(named, Network) else catalog.load_network(named)
        if self.jitter is not None:
            network = replace(network, jitter=Jitter.parse(self.jitter))
        if self.rtt_ms is not None:
            network = replace(network, rtt_ns=ms(self.rtt_ms))
        pacing = self._pacing(network.pacing)
        return network if pacing == network.pacing else replace(network, pacing=pacing)

    def _pacing(self, pacing: Pacing) -> Pacing:
        """A packet of another size keeps the interval, unless a rate is asked for."""
        packet_bytes = pacing.packet_bytes if self.packet_bytes is None else self.packet_bytes
        if self.rate_mbps is not None:
            return Pacing.at_rate(packet_bytes=packet_bytes, rate_bps=mbps(self.rate_mbps))
        if self.interval_ms is not None:
            return Pacing(packet_bytes=packet_bytes, interval_ns=Fraction(ms(self.interval_ms)))
        return replace(pacing, packet_bytes=packet_bytes)

    def _problems(self) -> Iterator[Problem]:
        for key, low, high in (
            ("rate_mbps", 1e-6, 1e7),
            ("interval_ms", 1e-6, 60_000),
            ("packet_bytes", 1, 65_507),
            ("rtt_ms", 0, 600_000),
            ("buffer_kb", 0, _MAX_BUFFER_KB),
        ):
            value = getattr(self, key)
            if value is not None and not (math.isfinite(value) and low <= value <= high):
                yield Problem(key=key, message=f"must be {low:g} to {high:g}, is {value:g}")
        if self.rate_mbps is not None and self.interval_ms is not None:
            yield Problem(key="rate_mbps", message="says the same as interval_ms: give only one")
        if self.jitter is not None:
            try:
                Jitter.parse(self.jitter)
            except InputError as error:
                yield from error.problems
        if self.transport not in {protocol.value for protocol in Protocol}:
            yield Problem(key="transport", message=f"must be quic or tcp, is {self.transport!r}")


def simulate(
    page: PageLike,
    *,
    scheme: SchemeLike = "rr",
    network: NetworkLike = "marx-2019",
    transport: str = "quic",
    rate_mbps: float | None = None,
    interval_ms: float | None = None,
    packet_bytes: int | None = None,
    rtt_ms: float | None = None,
    jitter: str | None = None,
    buffer_kb: float = 0.0,
    handshake: bool = True,
    seed: int = 0,
) -> Load:
    """Load *page* and return what happened.

    Page, scheme and network are each a shipped name, a path or a value. *transport* is "quic" or
    "tcp"; *buffer_kb* the send buffer in kB of 1000 bytes; *jitter* is as
    `Jitter.parse` reads it; without *handshake* the first request leaves at 0.

    Raises:
        InputError: listing every mistake in what was given.
        UnknownNameError: if a name is not known.

    >>> load = simulate("davies-meenan", scheme="fifo")
    >>> load.page_load_ms
    4580.0
    """
    setting = Setting(
        network=network,
        transport=transport,
        rate_mbps=rate_mbps,
        interval_ms=interval_ms,
        packet_bytes=packet_bytes,
        rtt_ms=rtt_ms,
        jitter=jitter,
        buffer_kb=buffer_kb,
        handshake=handshake,
        seed=seed,
    )
    return run_setting(resolve_page(page), resolve_scheme(scheme), setting)


def run_setting(
    page: Page,
    scheme: Scheme,
    setting: Setting,
    *,
    progress: Callable[[int, int], None] | None = None,
) -> Load:
    """Load *page* with *scheme* over *setting*; *progress* is told packets sent, and in all."""
    return engine.simulate(
        page,
        scheme=scheme,
        network=setting.resolved_network(),
        protocol=setting.protocol(),
        buffer_bytes=kbyte(setting.buffer_kb),
        handshake=setting.handshake,
        seed=setting.seed,
        progress=progress,
    )


def resolve_page(page: PageLike) -> Page:
    """Return the page that is meant."""
    return page if isinstance(page, Page) else catalog.load_page(page)


def resolve_scheme(scheme: SchemeLike) -> Scheme:
    """Return the scheme that is meant."""
    return scheme if isinstance(scheme, Scheme) else catalog.load_scheme(scheme)


def resolve_pages(pages: PageLike | Iterable[PageLike]) -> list[Page]:
    """Return the pages that are meant; a name may be that of a set."""
    found: list[Page] = []
    for page in [pages] if isinstance(pages, Page | str | os.PathLike) else list(pages):
        names = catalog.page_set(page) if isinstance(page, str) else None
        found += map(resolve_page, names or (page,))
    return found


def resolve_schemes(schemes: SchemeLike | Iterable[SchemeLike]) -> list[Scheme]:
    """Return the schemes that are meant; a name may be that of a set."""
    found: list[Scheme] = []
    for scheme in [schemes] if isinstance(schemes, Scheme | str | os.PathLike) else list(schemes):
        names = catalog.scheme_set(scheme) if isinstance(scheme, str) else None
        found += map(resolve_scheme, names or (scheme,))
    return found
