"""Loads a page: at a constant pace without loss, or over links with two endpoints."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from h3sim.browser import BrowserModel
from h3sim.engine.connected import ConnectedRun
from h3sim.engine.constant_rate import ConstantRateRun
from h3sim.engine.endpoint_factory import EndpointFactory
from h3sim.errors import PageError, Problem
from h3sim.http import Retransmit
from h3sim.results.load import Load
from h3sim.transport import Mode, Protocol, TransportProfile
from h3sim.units import NS_PER_S

if TYPE_CHECKING:
    from collections.abc import Callable

    from h3sim.page import Page
    from h3sim.schemes import Scheme
    from h3sim.transport import Network

__all__ = ["MAX_LOAD_NS", "MAX_PACKETS", "packets_of", "simulate"]

MAX_PACKETS = 5_000_000
"""The largest load that is taken on; it takes about 2 GB and half a minute."""

MAX_LOAD_NS = 3600 * NS_PER_S
"""A load over links that takes longer than an hour is given up."""

_MIN_EVENTS, _EVENTS_PER_PACKET = 1_000_000, 200
"""A load over links that takes more events is given up: it takes a handful for each packet, and
more only where nothing but timers runs out."""

Progress: TypeAlias = "Callable[[int, int], None]"


def simulate(
    page: Page,
    *,
    scheme: Scheme,
    network: Network,
    protocol: Protocol = Protocol.QUIC,
    profile: TransportProfile | None = None,
    buffer_bytes: int = 0,
    mode: Mode = Mode.ONE_RTT,
    seed: int = 0,
    records_wire: bool = False,
    limit_ns: int = MAX_LOAD_NS,
    browser: BrowserModel | None = None,
    progress: Progress | None = None,
) -> Load:
    """Return what happens when *page* is loaded.

    A network with a pace is loaded at that pace; over one with links, *profile* says how the two
    ends send, acknowledge and recover. *buffer_bytes* is the size of the server's send buffer, 0
    for none; *mode* how the connection begins; *browser* what asks for resources. With
    *records_wire* the trace holds every packet both ways. *progress* is told, every so many
    packets, how many were sent and how many there are.

    Raises:
        PageError: if the page takes more than `MAX_PACKETS` packets.
        NetworkError: if a queue of *network* cannot hold a packet of *profile*.
        StalledError: if the load cannot come to its end, or not within *limit_ns* or as many events
            as many loads of that size take.
    """
    browser = browser or BrowserModel()
    profile = profile or TransportProfile(name="default")
    makes = EndpointFactory(network, profile, protocol, mode=mode, seed=seed)
    turn_bytes = (
        makes.turn_bytes if network.constant_rate is None else network.constant_rate.packet_bytes
    )
    n_packets = packets_of(page, turn_bytes)
    if n_packets > MAX_PACKETS:
        message = f"takes {n_packets:,} packets; the most that is simulated is {MAX_PACKETS:,}"
        raise PageError([Problem(key="resources", message=message)], page.name)
    run: ConstantRateRun | ConnectedRun
    if network.constant_rate is not None:
        run = ConstantRateRun(
            page,
            scheme,
            network,
            network.constant_rate,
            protocol=protocol,
            buffer_bytes=buffer_bytes,
            seed=seed,
            handshake=mode is Mode.ONE_RTT,
            browser=browser,
        )
    else:
        run = ConnectedRun(
            page,
            scheme,
            protocol=protocol,
            makes=makes,
            turn_bytes=turn_bytes,
            buffer_bytes=buffer_bytes,
            retransmit=scheme.retransmission or Retransmit(profile.retransmit),
            requeues=profile.requeues,
            limit_ns=limit_ns,
            max_events=_MIN_EVENTS + _EVENTS_PER_PACKET * n_packets,
            records_wire=records_wire,
            browser=browser,
        )
    if progress is not None:
        run.report(progress, n_packets)
    return Load(
        page=page,
        scheme=scheme,
        network=network,
        protocol=protocol,
        buffer_bytes=buffer_bytes,
        seed=seed,
        trace=run.run(),
        profile=None if network.constant_rate is not None else profile,
        mode=mode,
        browser=browser,
    )


def packets_of(page: Page, packet_bytes: int) -> int:
    """Return how many packets *page* takes; a response without a byte takes one."""
    return sum(max(1, -(-r.stream_bytes // packet_bytes)) for r in page.resources)
