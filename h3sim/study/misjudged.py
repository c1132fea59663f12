"""What may turn out to be otherwise: losses, networks near one known only about, other sizes."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from h3sim import seeds
from h3sim.study.config import OF_NETWORK, config_for
from h3sim.transport import ConstantRate, LinkProfile

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from h3sim.page import Page
    from h3sim.study.config import LoadConfig

__all__ = ["elsewhere", "may_lose", "with_drawn_network"]

_MISJUDGED = 2
"""RTT and sizes are guessed wrong by such a factor."""
_SOME_LOSS = 0.02


def with_drawn_network(config: LoadConfig, within: float) -> LoadConfig:
    """Return *config* over a network whose RTT and rates are drawn by its seed.

    Each is multiplied by a factor between 1 / *within* and *within*, even in the logarithm; rates
    down and up by the same one. All loads of one seed meet the same network.
    """
    source = seeds.stream(config.seed, "network")
    # In this order: what a seed draws is part of what results mean.
    rtt, rate = (within ** source.uniform(-1, 1) for _ in range(2))
    network = config.path.network
    drawn = replace(
        network,
        rtt_ns=round(network.rtt_ns * rtt),
        constant_rate=_faster(network.constant_rate, rate),
        down=_faster(network.down, rate),
        up=_faster(network.up, rate),
    )
    # What the options say is in the network by now, and would be done to it a second time.
    done: dict[str, Any] = dict.fromkeys(OF_NETWORK)
    return replace(config, network=drawn, **done)


def _faster(part: Any, rate: float) -> Any:
    """Return a constant rate or a link of so many times the rate, what has none as it is."""
    if isinstance(part, ConstantRate):
        rate_bps = max(1, round(part.rate_bps * rate))
        return ConstantRate.at_rate(packet_bytes=part.packet_bytes, rate_bps=rate_bps)
    if isinstance(part, LinkProfile) and part.rate_bps is not None:
        return replace(part, rate_bps=max(1, round(part.rate_bps * rate)))
    return part


def may_lose(config: LoadConfig) -> bool:
    """Return whether packets are lost at random."""
    network = config.path.network
    return any(link is not None and link.loss > 0 for link in (network.down, network.up))


def elsewhere(
    pages: Sequence[Page], config: LoadConfig, networks: Iterable[str]
) -> Iterator[tuple[str, LoadConfig, Sequence[Page]]]:
    """Yield each setting that may turn out to be true instead, in words and as it is loaded."""
    here = config_for(pages[0], config).path.network
    for name in networks:
        yield f"network {name}", replace(config, network=name), pages
    if here.rtt_ns:
        rtt_ms = here.rtt_ns / 10**6
        yield "half the RTT", replace(config, rtt_ms=rtt_ms / _MISJUDGED), pages
        yield "twice the RTT", replace(config, rtt_ms=rtt_ms * _MISJUDGED), pages
    if here.constant_rate is None:
        yield f"loss of {_SOME_LOSS:.0%}", replace(config, loss=_SOME_LOSS), pages
    yield "sizes wrong by up to 2", config, [_misjudged(page) for page in pages]


def _misjudged(page: Page) -> Page:
    """Return *page* with each body between half and twice as large, drawn by its name."""
    source = seeds.stream(0, f"sizes of {page.name}")
    resources = []
    for resource in page.resources:
        factor = _MISJUDGED ** source.uniform(-1, 1)
        # Smaller than that, something would be found at a byte that never comes.
        size_bytes = max(_least_bytes(page, resource.id), round(resource.size_bytes * factor))
        resources.append(replace(resource, size_bytes=size_bytes))
    return replace(page, resources=tuple(resources))


def _least_bytes(page: Page, id_: str) -> int:
    """Return the farthest byte of a resource at which something is found."""
    triggers = [resource.discovered for resource in page.resources]
    triggers += [change.when for resource in page.resources for change in resource.priority_changes]
    return max((d.offset_bytes or 0 for d in triggers if d is not None and d.by == id_), default=0)
