"""A network with what the options of a load change of it."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from h3sim.transport import ConstantRate, Jitter
from h3sim.units import mbps, ms

if TYPE_CHECKING:
    from h3sim.study.config import LoadConfig
    from h3sim.transport import Network

__all__ = ["changed_network"]


def changed_network(config: LoadConfig, network: Network) -> Network:
    """Return *network* with what *config* changes of it."""
    was_links = network.constant_rate is None
    if config.rtt_ms is not None:
        network = replace(network, rtt_ns=ms(config.rtt_ms))
    if network.constant_rate is not None:
        network = _at_constant_rate(config, network, network.constant_rate)
        if not _needs_links(config):
            return network
    return _linked(config, network.as_links(), was_links=was_links)


def _needs_links(config: LoadConfig) -> bool:
    asked = (config.loss, config.burst, config.queue_bdp, config.queue_bytes)
    return config.cc not in (None, "constant") or any(value is not None for value in asked)


def _at_constant_rate(config: LoadConfig, network: Network, constant_rate: ConstantRate) -> Network:
    """A packet of another size keeps the interval, unless a rate is asked for."""
    if config.jitter is not None:
        network = replace(network, jitter=Jitter.parse(config.jitter))
    packet_bytes = (
        constant_rate.packet_bytes if config.packet_bytes is None else config.packet_bytes
    )
    if config.rate_mbps is not None:
        constant_rate = ConstantRate.at_rate(
            packet_bytes=packet_bytes, rate_bps=mbps(config.rate_mbps)
        )
    elif config.interval_ms is not None:
        constant_rate = ConstantRate(
            packet_bytes=packet_bytes, interval_ns=Fraction(ms(config.interval_ms))
        )
    else:
        constant_rate = replace(constant_rate, packet_bytes=packet_bytes)
    return replace(network, constant_rate=constant_rate)


def _linked(config: LoadConfig, network: Network, *, was_links: bool) -> Network:
    """Rate and queue change the bottleneck of either direction that has one; loss both."""
    down, up = network.down, network.up
    assert down is not None, "links have both directions"  # noqa: S101
    assert up is not None, "links have both directions"  # noqa: S101
    if config.jitter is not None and was_links:
        down = replace(down, hold=Jitter.parse(config.jitter), jitter=None)
    return replace(
        network,
        down=replace(down, **_link_changes(config, has_bottleneck=down.rate_bps is not None)),
        up=replace(up, **_link_changes(config, has_bottleneck=up.rate_bps is not None)),
    )


def _link_changes(config: LoadConfig, *, has_bottleneck: bool) -> dict[str, Any]:
    changes: dict[str, Any] = {}
    if has_bottleneck and config.rate_mbps is not None:
        changes["rate_bps"] = mbps(config.rate_mbps)
    if has_bottleneck and (config.queue_bdp is not None or config.queue_bytes is not None):
        changes |= {"queue_packets": None, "queue_bdp": config.queue_bdp}
        changes["queue_bytes"] = config.queue_bytes
    if config.loss is not None:
        changes |= {"loss": config.loss, "loss_burst": config.burst, "loss_list": ()}
    elif config.burst is not None:
        changes["loss_burst"] = config.burst
    return changes
