"""A network with what the options of a load change of it."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from h3sim.errors import InputError, Problem
from h3sim.page import ConnectionMode
from h3sim.study.load_option import NO_CODEC
from h3sim.study.recorded_network import RECORDED
from h3sim.transport import ConstantRate, Jitter, Mode
from h3sim.units import mbps, ms

if TYPE_CHECKING:
    from collections.abc import Iterator

    from h3sim.study.config import LoadConfig, ResolvedPath
    from h3sim.transport import LinkProfile, Network

__all__ = ["changed_network", "refuse_what_the_network_lacks"]

_OF_TRANSPORT = (
    *("transport", "cc", "transport_profile", "rate_mbps", "interval_ms", "packet_bytes", "burst"),
    *("queue_bdp", "queue_bytes", "jitter", "retransmit", "cross_traffic", "time_limit_s"),
)


def changed_network(config: LoadConfig, network: Network) -> Network:
    """Return *network* with what *config* changes of it."""
    # Asked now: a constant rate takes its jitter along when links are made of it below.
    was_links = network.constant_rate is None
    if config.rtt_ms is not None:
        network = replace(network, rtt_ns=ms(config.rtt_ms))
    if network.independent_packets is not None:
        loss = network.independent_packets.loss if config.loss is None else config.loss
        packets = replace(network.independent_packets, loss=loss)
        return replace(network, independent_packets=packets)
    if network.constant_rate is not None:
        network = _at_constant_rate(config, network, network.constant_rate)
        if not _needs_links(config):
            return network
    return _linked(config, network.as_links(), was_links=was_links)


def _needs_links(config: LoadConfig) -> bool:
    asked = (config.loss, config.mean_loss_burst, config.queue_bdp, config.queue_bytes)
    return config.cc not in (None, "constant") or any(value is not None for value in asked)


def _at_constant_rate(config: LoadConfig, network: Network, constant_rate: ConstantRate) -> Network:
    """A packet of another size keeps the interval, unless a rate is asked for."""
    if config.reorder is not None:
        network = replace(network, jitter=Jitter.parse(str(config.reorder)))
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
    """Rate and queue change the bottleneck of either direction that has such a one; loss both."""
    down, up = network.down, network.up
    assert down is not None, "links have both directions"  # noqa: S101
    assert up is not None, "links have both directions"  # noqa: S101
    if config.reorder is not None and was_links:
        down = replace(down, hold=Jitter.parse(str(config.reorder)), jitter=None)
    return replace(
        network,
        down=replace(down, **_link_changes(config, down)),
        up=replace(up, **_link_changes(config, up)),
    )


def _link_changes(config: LoadConfig, link: LinkProfile) -> dict[str, Any]:
    changes: dict[str, Any] = {}
    if link.rate_bps is not None and config.rate_mbps is not None:
        changes["rate_bps"] = mbps(config.rate_mbps)
    asks_for_queue = config.queue_bdp is not None or config.queue_bytes is not None
    if link.mean_rate_bps is not None and asks_for_queue:
        # However a network says its queue, what is asked for takes its place: two would contradict.
        changes |= {"queue_packets": None, "queue_bdp": config.queue_bdp}
        changes["queue_bytes"] = config.queue_bytes
    if config.loss is not None:
        # Packets that a file lists as lost would be lost beside the share that is asked for.
        changes |= {"loss": config.loss, "loss_burst": config.mean_loss_burst, "loss_list": ()}
    elif config.mean_loss_burst is not None:
        changes["loss_burst"] = config.mean_loss_burst
    return changes


def refuse_what_the_network_lacks(config: LoadConfig, path: ResolvedPath) -> None:
    """Refuse options that do nothing over the network.

    Raises:
        InputError: listing all of them.
    """
    if config.network == RECORDED:
        return
    network = path.network
    if network.independent_packets is not None:
        problems = list(_without_transport(config))
    elif network.constant_rate is not None:
        problems = list(_without_links(config))
    else:
        # Of what was named: options make links of a constant rate, but its interval stays of use
        # then.
        is_named_so = path.named.constant_rate is None
        links = [link for link in (network.down, network.up) if link is not None]
        problems = list(_with_links(config, links, is_named_so=is_named_so))
        if network.down is not None and network.down.mean_rate_bps is None:
            # A flow would grow without end: nothing is ever full, and nothing waits for anything.
            message = "needs a rate: on a link down without one nothing is shared"
            problems += [
                Problem(key=name, message=message) for name in _given(config, "cross_traffic")
            ]
    if problems:
        raise InputError(problems)


def _with_links(
    config: LoadConfig, links: list[LinkProfile], *, is_named_so: bool
) -> Iterator[Problem]:
    if is_named_so:
        for name in _given(config, "interval_ms", "packet_bytes"):
            yield Problem(
                key=name, message="goes with a constant rate, and this network consists of links"
            )
    if all(link.rate_bps is None for link in links):
        for name in _given(config, "rate_mbps"):
            yield Problem(
                key=name,
                message="changes the rate of a bottleneck, and no link here has one",
            )
    if all(link.mean_rate_bps is None for link in links):
        for name in _given(config, "queue_bytes", "queue_bdp"):
            yield Problem(
                key=name, message="is what waits before a bottleneck, and no link here has one"
            )
    if config.mean_loss_burst is not None and not any(link.loss for link in links):
        message = "says how losses cluster, and there is no loss: give that as well"
        yield Problem(key="mean_loss_burst", message=message)


def _without_transport(config: LoadConfig) -> Iterator[Problem]:
    for name in _given(config, *_OF_TRANSPORT):
        message = "changes a transport or its links, and independent packets have neither"
        yield Problem(key=name, message=message)


def _without_links(config: LoadConfig) -> Iterator[Problem]:
    if config.mode is Mode.ZERO_RTT:
        message = "'0-rtt' needs links: a constant rate has no handshake packets"
        yield Problem(key="handshake", message=message)
    for name in _given(config, "time_limit_s"):
        yield Problem(key=name, message="needs links: at a constant rate every load has its end")
    if config.header_compression not in (None, NO_CODEC):
        yield Problem(
            key="header_compression",
            message="needs links: at a constant rate requests have no packets",
        )
    if config.connections == ConnectionMode.PER_HOST.value:
        message = "'per-host' needs links: at a constant rate one connection has all of the rate"
        yield Problem(key="connections", message=message)
    for name in _given(config, "cross_traffic"):
        yield Problem(key=name, message="needs links: at a constant rate nothing is shared")


def _given(config: LoadConfig, *names: str) -> list[str]:
    return [name for name in names if getattr(config, name) is not None]
