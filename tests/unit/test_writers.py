"""Networks, profiles and schemes as documents: reading back gives what was written."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest

import h3sim
from h3sim.schemes import scheme_from_dict, scheme_to_dict
from h3sim.transport import (
    ConstantRate,
    Jitter,
    TransportProfile,
    network_from_dict,
    network_from_toml,
    network_to_dict,
    network_to_toml,
    profile_from_dict,
    profile_to_dict,
)
from h3sim.transport.link_profile import CoDel, Distribution, LinkJitter, LinkProfile
from h3sim.transport.quic import QuicSettings
from h3sim.values.errors import NetworkError


def through_json(document: Any) -> Any:
    return json.loads(json.dumps(document, allow_nan=False))


@pytest.mark.parametrize("network", h3sim.list_networks(), ids=lambda network: network.name)
def test_a_shipped_network_reads_back(network: Any) -> None:
    assert network_from_dict(through_json(network_to_dict(network))) == network
    assert network_from_toml(network_to_toml(network), source="again.toml") == network


@pytest.mark.parametrize("profile", h3sim.list_profiles(), ids=lambda profile: profile.name)
def test_a_shipped_profile_reads_back(profile: Any) -> None:
    assert profile_from_dict(through_json(profile_to_dict(profile))) == profile


@pytest.mark.parametrize("scheme", h3sim.list_schemes(), ids=lambda scheme: scheme.name)
def test_a_shipped_scheme_reads_back(scheme: Any) -> None:
    assert scheme_from_dict(through_json(scheme_to_dict(scheme))) == scheme


@pytest.mark.parametrize(
    "interval_ns", [Fraction(10_000_000), Fraction(11_200_000, 3), Fraction(1234567, 7)]
)
def test_a_constant_rate_reads_back_exactly(interval_ns: Any) -> None:
    rate = ConstantRate(packet_bytes=1400, interval_ns=interval_ns)
    jitter = Jitter(every=4, min_overtaken=1, max_overtaken=3)
    network = replace(h3sim.load_network("marx-2019"), constant_rate=rate, jitter=jitter)
    assert network_from_dict(through_json(network_to_dict(network))) == network


@pytest.mark.parametrize("parts", [[1], [1, 0], [1, 2, 3], "1/2", [1.5, 2]])
def test_an_interval_in_parts_has_two_of_them(parts: Any) -> None:
    document = network_to_dict(h3sim.load_network("marx-2019"))
    document["constant_rate"] = {"packet_bytes": 1400, "interval_ns": parts}
    with pytest.raises(NetworkError, match=r"constant_rate\.interval_ns"):
        network_from_dict(document)


def test_a_link_with_everything_reads_back() -> None:
    jitter = LinkJitter(
        mean_ns=5_000_001, deviation_ns=17, distribution=Distribution.PARETO, reorder=True
    )
    down = LinkProfile(
        rate_bps=1_234_567,
        burst_bytes=0,
        queue_bdp=1.5,
        frame_overhead_bytes=38,
        codel=CoDel(target_ns=1, interval_ns=7_000_003),
        loss_list=(3, 17),
        loss_list_from_bytes=200,
        jitter=jitter,
    )
    hold = Jitter(every=4, min_overtaken=2, max_overtaken=2)
    up = LinkProfile(rate_bps=10**6, queue_packets=100, loss=0.02, loss_burst=5.0, hold=hold)
    link = h3sim.load_network("4g")
    network = replace(link, rtt_ns=33_333_333, down=down, up=up, cc="bbr", profile="quicly")
    assert network_from_dict(through_json(network_to_dict(network))) == network
    traced = replace(network, down=LinkProfile(mahimahi=(1, 2, 5)))
    assert network_from_dict(through_json(network_to_dict(traced))) == traced


def test_a_scheduler_that_is_code_cannot_be_written() -> None:
    from h3sim.load import resolve_scheme
    from h3sim.schedulers import FifoScheduler

    assert scheme_to_dict(resolve_scheme(FifoScheduler)) is None


def test_a_client_that_differs_from_its_server_reads_back() -> None:
    server, usual = QuicSettings(pacing_gain=1.25, ack_every=4), QuicSettings()
    for quic, quic_client in ((server, usual), (usual, server), (server, server)):
        profile = TransportProfile(name="x", quic=quic, quic_client=quic_client)
        assert profile_from_dict(through_json(profile_to_dict(profile))) == profile
