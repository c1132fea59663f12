"""What a load over links costs: congestion control, acknowledgements and loss recovery."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tabulate import tabulate

import h3sim
from benchmarks.pages import reference_page
from benchmarks.probes import with_simpy
from benchmarks.timing import least_seconds
from h3sim import engine
from h3sim.load.run import run_spec
from h3sim.transport import HandshakeMode

if TYPE_CHECKING:
    from collections.abc import Callable

    from h3sim.transport import Network, TransportProfile

_ROUNDS = 15
_NETWORK = "sander-2mbps-100ms-2pct"
_LIKE_FOR_LIKE = "default-1400"
_PROFILES = (_LIKE_FOR_LIKE, "default", "linux-tcp")
_DATAGRAM_BYTES = 27 + 9 + 1400
"""QUIC's header and tag, the longest header of a STREAM frame here, and what the probe sends."""
_LOSSES = (0.0, 0.01, 0.02, 0.05)
_HEADERS = (
    *("profile", "loss", "down", "up", "CPU ms", "x probe", "x probe / down"),
    *("us a packet", "x 0 %"),
)


def over_links() -> str:
    """Return loads at rising loss: against the probe, and how the cost of a packet grows."""
    page = reference_page()
    sizes = [resource.size_bytes for resource in page.resources]
    cells = [(name, loss) for name in _PROFILES for loss in _LOSSES]
    loads = [_load(_profile(name), _at_loss(loss)) for name, loss in cells]
    packets = [_count(load(record_packets=True)) for load in loads]
    probe_s, *seconds = least_seconds(
        [lambda: with_simpy(sizes), *loads],
        rounds=_ROUNDS,
    )
    n_probe = sum(-(-size // 1400) for size in sizes)
    rows = []
    for (name, loss), (down, up), load_s in zip(cells, packets, seconds, strict=True):
        packet_s = load_s / (down + up)
        if not loss:
            lossless_s = packet_s
        rows.append(
            (
                name,
                f"{loss * 100:g} %",
                down,
                up,
                f"{load_s * 1e3:.2f}",
                f"{load_s / probe_s:.2f}",
                f"{load_s / down / (probe_s / n_probe):.2f}",
                f"{packet_s * 1e6:.2f}",
                f"{packet_s / lossless_s:.2f}",
            )
        )
    title = (
        f"{page.name}, rr over {_NETWORK} with CUBIC: all packets on the wire, lost ones too.\n"
        "The probe is the smallest with SimPy callbacks:"
        f" {n_probe} packets of up to 1400 bytes, one way, no ACKs.\n"
        f"{_LIKE_FOR_LIKE} is `default` with datagrams of {_DATAGRAM_BYTES} bytes, which carry as"
        " much: like for like.\nx probe / down: the time of a packet down against that of the"
        " probe's.\n\n"
    )
    align = ("left", *["right"] * (len(_HEADERS) - 1))
    return title + str(tabulate(rows, _HEADERS, colalign=align, disable_numparse=True))


def _profile(name: str) -> TransportProfile:
    if name != _LIKE_FOR_LIKE:
        return h3sim.load_profile(name)
    profile = h3sim.load_profile("default")
    return replace(profile, quic=replace(profile.quic, datagram_bytes=_DATAGRAM_BYTES))


def _at_loss(loss: float) -> Network:
    network = h3sim.load_network(_NETWORK)
    assert network.down is not None  # it consists of links
    assert network.up is not None
    down, up = replace(network.down, loss=loss), replace(network.up, loss=loss)
    return replace(network, down=down, up=up)


def _load(profile: TransportProfile, network: Network) -> Callable[..., h3sim.Load]:
    page, scheme = reference_page(), h3sim.load_scheme("rr")

    def load(*, record_packets: bool = False) -> h3sim.Load:
        return run_spec(
            engine.LoadSpec(
                page,
                scheme=scheme,
                network=network,
                protocol=profile.protocol,
                profile=profile,
                mode=HandshakeMode.NONE,
            ),
            record_packets=record_packets,
        )

    return load


def _count(load: h3sim.Load) -> tuple[int, int]:
    """Return how many packets went down and up."""
    down = sum(row.is_down for row in load.trace.wire)
    return down, len(load.trace.wire) - down
