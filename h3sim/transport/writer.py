"""Writes networks and transport profiles as documents; reading them back gives equal values."""

from __future__ import annotations

import enum
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from h3sim.transport.link_profile import LinkProfile
from h3sim.transport.profile import FORMAT as PROFILE_FORMAT
from h3sim.transport.reader import FORMAT as NETWORK_FORMAT
from h3sim.units import to_mbps, to_ms

if TYPE_CHECKING:
    from h3sim.transport.jitter import LinkJitter
    from h3sim.transport.network import ConstantRate, Network
    from h3sim.transport.profile import TransportProfile

__all__ = ["network_to_dict", "profile_to_dict"]

_BITS_NS = 8 * 10**9


def network_to_dict(network: Network) -> dict[str, Any]:
    """Return *network* as a network file has it.

    >>> from h3sim.transport import network_from_dict
    >>> network = network_from_dict(
    ...     {"format": "h3sim-network/1", "name": "x", "down": {"rate_mbps": 2, "loss": 0.02}}
    ... )
    >>> network_to_dict(network)["down"]
    {'rate_mbps': 2.0, 'loss': 0.02}
    >>> network_from_dict(network_to_dict(network)) == network
    True
    """
    document: dict[str, Any] = {"format": NETWORK_FORMAT, "name": network.name}
    for name in ("title", "source", "cc", "profile"):
        if getattr(network, name):
            document[name] = getattr(network, name)
    document["rtt_ms"] = to_ms(network.rtt_ns)
    if network.constant_rate is not None:
        document["constant_rate"] = _constant_rate(network.constant_rate)
    if network.jitter is not None:
        jitter = network.jitter
        document["jitter"] = {field.name: getattr(jitter, field.name) for field in fields(jitter)}
    for name, link in (("down", network.down), ("up", network.up)):
        if link is not None:
            document[name] = _link(link)
    return document


def _constant_rate(rate: ConstantRate) -> dict[str, Any]:
    """Write the interval exactly: as whole nanoseconds, as a rate in whole bit/s, or in parts."""
    interval_ns = rate.interval_ns
    rate_bps = rate.packet_bytes * _BITS_NS / interval_ns
    if interval_ns.denominator == 1:
        return {"packet_bytes": rate.packet_bytes, "interval_ms": to_ms(int(interval_ns))}
    if rate_bps.denominator == 1:
        return {"packet_bytes": rate.packet_bytes, "rate_mbps": to_mbps(int(rate_bps))}
    parts = [interval_ns.numerator, interval_ns.denominator]
    return {"packet_bytes": rate.packet_bytes, "interval_ns": parts}


def _link(link: LinkProfile) -> dict[str, Any]:
    entry: dict[str, Any] = {}
    usual = LinkProfile()
    if link.rate_bps is not None:
        entry["rate_mbps"] = to_mbps(link.rate_bps)
    for name in (
        *("burst_bytes", "queue_bytes", "queue_packets", "queue_bdp", "frame_overhead_bytes"),
        *("loss", "loss_burst", "loss_list_from_bytes"),
    ):
        if getattr(link, name) != getattr(usual, name):
            entry[name] = getattr(link, name)
    for name in ("loss_list", "mahimahi"):
        if getattr(link, name):
            entry[name] = list(getattr(link, name))
    if link.codel is not None:
        target_ns, interval_ns = link.codel.target_ns, link.codel.interval_ns
        entry["codel"] = {"target_ms": to_ms(target_ns), "interval_ms": to_ms(interval_ns)}
    if link.jitter is not None:
        entry |= _jitter(link.jitter)
    if link.hold is not None:
        entry["hold"] = link.hold.text
    return entry


def _jitter(jitter: LinkJitter) -> dict[str, Any]:
    return {
        "jitter_ms": to_ms(jitter.mean_ns),
        "jitter_deviation_ms": to_ms(jitter.deviation_ns),
        "jitter_distribution": jitter.distribution.value,
        "reorder": jitter.reorder,
    }


def profile_to_dict(profile: TransportProfile) -> dict[str, Any]:
    """Return *profile* as a profile file has it.

    >>> from h3sim.transport import TransportProfile
    >>> profile_to_dict(TransportProfile(name="x"))["quic"]["max_ack_delay_ms"]
    25.0
    """
    document: dict[str, Any] = {"format": PROFILE_FORMAT}
    for field in fields(profile):
        value = getattr(profile, field.name)
        if hasattr(value, "__dataclass_fields__"):
            document[field.name] = _settings(value)
        elif value is not None:
            document[field.name] = _plain(value)
    return document


def _settings(settings: Any) -> dict[str, Any]:
    table: dict[str, Any] = {}
    for field in fields(settings):
        value = getattr(settings, field.name)
        if field.name.endswith("_ns"):
            table[field.name.removesuffix("_ns") + "_ms"] = to_ms(value)
        else:
            table[field.name] = "none" if value is None else _plain(value)
    return table


def _plain(value: Any) -> Any:
    return value.value if isinstance(value, enum.Enum) else value
