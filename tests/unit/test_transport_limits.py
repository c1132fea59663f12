"""Links, networks, profiles and controllers: what they are by default, and within which limits."""

from __future__ import annotations

from dataclasses import fields
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import pytest

from h3sim.transport import ConstantRate, LinkProfile, Network, Protocol
from h3sim.transport.congestion import ControllerSettings
from h3sim.transport.endpoint import Source
from h3sim.transport.link_profile import CoDel, Distribution, FqCoDel, Jitter, LinkJitter
from h3sim.transport.network import (
    CrossFlow,
    IndependentPackets,
    network_from_dict,
    parse_cross_traffic,
)
from h3sim.transport.profile import TransportProfile, profile_from_dict, profile_to_dict
from h3sim.transport.quic import QuicSettings
from h3sim.transport.tcp import TcpSettings
from h3sim.values.errors import InputError
from h3sim.values.units import NS_PER_S, ms

if TYPE_CHECKING:
    from pathlib import Path

MICROSECOND = 1000
PLAIN = LinkProfile()
RATE: dict[str, Any] = {"rate_bps": 8_000_000}
LIMITS: list[tuple[Any, dict[str, Any], str, Any, Any, Any]] = [
    # A kind, what it needs besides, a field, its limits, and the least step beyond them
    (LinkProfile, {}, "rate_bps", 1, 10**13, 10**6),
    (LinkProfile, {}, "burst_bytes", 0, 10**9, 1),
    (LinkProfile, RATE, "queue_bytes", 1514, 10**12, 1),
    (LinkProfile, RATE, "queue_packets", 1, 10**12, 1),
    (LinkProfile, RATE, "queue_bdp", 1e-9, 1e6, 1e-9),
    (LinkProfile, {}, "frame_overhead_bytes", 0, 1000, 1),
    (LinkProfile, {}, "loss", 0.0, 1 - 2**-53, 2**-53),
    (LinkProfile, {"loss": 0.1}, "loss_burst", 1.0, 1e6, 1e-6),
    (LinkProfile, {"loss_list": (1,)}, "loss_list_from_bytes", 0, 10**12, 1),
    (LinkJitter, {"deviation_ns": 1, "distribution": Distribution.NORMAL}, "mean_ns", 1, None, 1),
    (LinkJitter, {"deviation_ns": 1}, "mean_ns", None, 600 * NS_PER_S, MICROSECOND),
    (LinkJitter, {"mean_ns": ms(9)}, "deviation_ns", 1, ms(9), 1),
    (Jitter, {"min_overtaken": 0, "max_overtaken": 9}, "every", 1, 10**9, 1),
    (Jitter, {"every": 4, "max_overtaken": 10**9}, "min_overtaken", 0, 10**9, 1),
    (Jitter, {"every": 4, "min_overtaken": 0}, "max_overtaken", 0, 10**9, 1),
    (CoDel, {}, "target_ns", 1, None, 1),
    (CoDel, {}, "target_ns", None, 60 * NS_PER_S, MICROSECOND),
    (CoDel, {}, "interval_ns", 1, None, 1),
    (CoDel, {}, "interval_ns", None, 60 * NS_PER_S, MICROSECOND),
    (FqCoDel, {}, "quantum_bytes", 1, 10**9, 1),
    (IndependentPackets, {}, "packet_bytes", 1, 65_507, 1),
    (IndependentPackets, {}, "loss", 0.0, 1 - 2**-53, 2**-53),
    (Network, {"name": "x", "down": PLAIN}, "rtt_ns", 0, 600 * NS_PER_S, MICROSECOND),
    (TransportProfile, {"name": "x"}, "beta", 2**-53, 1 - 2**-53, 2**-53),
    (TransportProfile, {"name": "x"}, "initial_window_bytes", 1280, 2**30, 1),
    (
        TransportProfile,
        {"name": "x", "protocol": Protocol.TCP},
        "initial_window_bytes",
        1448,
        None,
        1,
    ),
    (
        TransportProfile,
        {"name": "x", "protocol": Protocol.HTTP1},
        "initial_window_bytes",
        1448,
        None,
        1,
    ),
    (ControllerSettings, {}, "max_datagram_bytes", 1, None, 1),
    (ControllerSettings, {"max_datagram_bytes": 1200}, "rate_bps", 1, None, 1),
    (ControllerSettings, {"max_datagram_bytes": 1200}, "initial_window_bytes", 1200, 2**30, 1),
    (ControllerSettings, {"max_datagram_bytes": 1200}, "beta", 2**-53, 1 - 2**-53, 2**-53),
]


@pytest.mark.parametrize(
    ("kind", "others", "name", "low", "high", "step"), LIMITS, ids=lambda given: str(given)[:40]
)
def test_a_number_is_taken_up_to_its_limits_and_not_beyond(
    kind: Any, others: dict[str, Any], name: str, low: Any, high: Any, step: Any
) -> None:
    for limit, way in ((low, -1), (high, 1)):
        if limit is None:
            continue
        assert getattr(kind(**others, **{name: limit}), name) == limit
        with pytest.raises(InputError):
            kind(**others, **{name: limit + way * step})


DEFAULTS = [
    (
        LinkProfile(),
        {
            "rate_bps": None,
            "mahimahi": None,
            "burst_bytes": 1514,  # a full Ethernet frame
            "queue_bytes": None,
            "queue_packets": None,
            "queue_bdp": None,
            "frame_overhead_bytes": 0,
            "codel": None,
            "fq_codel": None,
            "ecn": False,
            "loss": 0,
            "loss_burst": None,
            "loss_list": (),
            "loss_list_from_bytes": 0,
            "jitter": None,
            "hold": None,
        },
    ),
    (CoDel(), {"target_ns": ms(5), "interval_ns": ms(100)}),  # RFC 8289 § 5
    (FqCoDel(), {"target_ns": ms(5), "interval_ns": ms(100), "quantum_bytes": 1514}),
    (
        LinkJitter(mean_ns=11),
        {
            "mean_ns": 11,
            "deviation_ns": 5,
            "distribution": Distribution.UNIFORM,
            "reorder": False,
            "steps": (),
        },
    ),
    (IndependentPackets(), {"packet_bytes": 1400, "loss": 0}),
    (
        TransportProfile(name="x"),
        {
            "name": "x",
            "title": "",
            "source": "",
            "protocol": Protocol.QUIC,
            "cc": "cubic",
            "controller": None,
            "own_cubic": "cubic",
            "beta": None,
            "initial_window_bytes": None,
            "hystart": False,
            "search": False,
            "ecn": False,
            "retransmit": "first",
            "requeues": False,
            "quic": QuicSettings(),
            "quic_client": QuicSettings(),
            "tcp": TcpSettings(),
            "tcp_client": TcpSettings(),
        },
    ),
    (
        ControllerSettings(max_datagram_bytes=9),
        {
            "max_datagram_bytes": 9,
            "initial_window_bytes": None,
            "beta": None,
            "hystart": False,
            "search": False,
            "rate_bps": None,
        },
    ),
    (
        Network(name="x", down=LinkProfile(loss=0.5)),
        {
            "name": "x",
            "title": "",
            "source": "",
            "rtt_ns": 0,
            "constant_rate": None,
            "jitter": None,
            "down": LinkProfile(loss=0.5),
            "up": LinkProfile(loss=0.5),  # as down
            "independent_packets": None,
            "cc": None,
            "profile": None,
        },
    ),
    (CrossFlow(cc="x"), {"cc": "x", "starts_at_ns": 0, "mean_bps": None, "period_ns": 0}),
]


@pytest.mark.parametrize(("value", "expected"), DEFAULTS, ids=lambda given: type(given).__name__)
def test_what_is_not_stated_has_its_default(value: Any, expected: dict[str, Any]) -> None:
    assert {each.name: getattr(value, each.name) for each in fields(value)} == expected


@pytest.mark.parametrize(
    "make", [lambda name: Network(name=name, down=PLAIN), lambda name: TransportProfile(name=name)]
)
def test_a_name_is_needed(make: Any) -> None:
    assert make("x").name == "x"
    with pytest.raises(InputError, match="name: must not be empty"):
        make("")


@pytest.mark.parametrize(
    ("kind", "values", "keys"),
    [
        (LinkProfile, {"mahimahi": (-1, 2)}, ["mahimahi[0]"]),
        (LinkProfile, {"loss_list": (0, -1)}, ["loss_list[1]"]),
        # A size that is refused does not make the window wrong as well.
        (
            ControllerSettings,
            {"max_datagram_bytes": 0, "initial_window_bytes": 1},
            ["max_datagram_bytes"],
        ),
        # A rate that is refused is a rate all the same: nothing else lacks one.
        (LinkProfile, {"rate_bps": -1, "queue_bytes": 9999}, ["rate_mbps"]),
        (LinkProfile, {"mahimahi": "fast", "queue_bytes": 9999}, ["mahimahi"]),
        (Network, {"name": "x", "down": 5}, ["down"]),
        (Network, {"name": "x", "constant_rate": 5}, ["constant_rate"]),
        (Network, {"name": "x", "independent_packets": 5}, ["independent_packets"]),
        (Network, {"name": "x", "down": PLAIN, "up": 5}, ["up"]),
        (Network, {"name": "x", "down": PLAIN, "jitter": 5}, ["jitter"]),
    ],
)
def test_a_value_that_is_refused_causes_no_second_error(
    kind: Any, values: dict[str, Any], keys: list[str]
) -> None:
    with pytest.raises(InputError) as caught:
        kind(**values)
    assert [problem.key for problem in caught.value.problems] == keys


RATE_OF_BYTES = ConstantRate(packet_bytes=1400, interval_ns=Fraction(10**6))
ALONE = IndependentPackets()
JITTER = Jitter(every=4, min_overtaken=1, max_overtaken=3)


@pytest.mark.parametrize(
    ("values", "keys"),
    [
        ({}, ["constant_rate"]),
        ({"up": PLAIN}, ["down"]),
        ({"down": PLAIN}, []),
        ({"down": PLAIN, "up": PLAIN}, []),
        ({"constant_rate": RATE_OF_BYTES}, []),
        ({"constant_rate": RATE_OF_BYTES, "jitter": JITTER}, []),
        ({"constant_rate": RATE_OF_BYTES, "down": PLAIN}, ["down"]),
        ({"constant_rate": RATE_OF_BYTES, "up": PLAIN}, ["up"]),
        ({"constant_rate": RATE_OF_BYTES, "down": PLAIN, "up": PLAIN}, ["down", "up"]),
        ({"down": PLAIN, "jitter": JITTER}, ["jitter"]),
        ({"independent_packets": ALONE}, []),
        ({"independent_packets": ALONE, "constant_rate": RATE_OF_BYTES}, ["constant_rate"]),
        (
            {"independent_packets": ALONE, "jitter": JITTER, "down": PLAIN, "up": PLAIN},
            ["jitter", "down", "up"],
        ),
    ],
)
def test_a_network_has_a_rate_or_links_or_independent_packets(
    values: dict[str, Any], keys: list[str]
) -> None:
    if not keys:
        assert Network(name="x", **values).name == "x"
        return
    with pytest.raises(InputError) as caught:
        Network(name="x", **values)
    assert [problem.key for problem in caught.value.problems] == keys


@pytest.mark.parametrize(
    ("values", "keys"),
    [
        ({"ecn": True, "codel": CoDel()}, []),
        ({"ecn": True, "fq_codel": FqCoDel()}, []),
        ({"ecn": True}, ["ecn"]),
        ({"codel": CoDel(), "fq_codel": FqCoDel()}, ["fq_codel"]),
        ({"queue_bytes": 9999, "queue_packets": 9, "queue_bdp": 1}, ["queue_packets", "queue_bdp"]),
        ({"rate_bps": None, "mahimahi": (1,), "codel": CoDel(), "queue_bdp": 1}, []),
        ({"rate_bps": None, "fq_codel": FqCoDel(), "queue_bdp": 1}, ["queue_bdp", "fq_codel"]),
        ({"loss_list": (1,), "loss_burst": 2}, ["loss_list"]),
        ({"hold": JITTER}, []),
        ({"hold": JITTER, "rate_bps": None, "jitter": LinkJitter(mean_ns=2)}, ["hold", "hold"]),
    ],
)
def test_the_settings_of_a_link_agree(values: dict[str, Any], keys: list[str]) -> None:
    settings = {**RATE, **values}
    if not keys:
        assert LinkProfile(**settings).burst_bytes == 1514
        return
    with pytest.raises(InputError) as caught:
        LinkProfile(**settings)
    assert [problem.key for problem in caught.value.problems] == keys


@pytest.mark.parametrize("text", ["on-off:.", "on-off:1:..", "cubic@.", "bbr@1.2.3"])
def test_a_number_of_a_flow_is_one(text: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_cross_traffic(text)
    assert len(caught.value.problems) == 1


def test_a_source_without_headers_has_none_that_wait() -> None:
    assert Source().waiting_header_bytes() == 0


# Files of networks


def test_a_rate_of_a_file_may_be_as_low_as_a_bit_per_second() -> None:
    document = {"format": "h3sim-network/1", "name": "x", "down": {"rate_mbps": 1e-6}}
    assert network_from_dict(document).down == LinkProfile(rate_bps=1)
    pace = {"packet_bytes": 1, "interval_ms": 60_000}
    made = network_from_dict({"format": "h3sim-network/1", "name": "x", "constant_rate": pace})
    assert made.constant_rate == ConstantRate(packet_bytes=1, interval_ns=Fraction(60 * NS_PER_S))
    for wrong in ({"interval_ms": 0}, {"interval_ms": 60_001}, {"rate_mbps": 0}):
        document = {"constant_rate": {"packet_bytes": 1, **wrong}}
        with pytest.raises(InputError, match=f"constant_rate.{next(iter(wrong))}: must be"):
            network_from_dict({"format": "h3sim-network/1", "name": "x", **document})


def test_a_line_of_a_trace_has_15_digits_at_most(tmp_path: Path) -> None:
    (tmp_path / "trace").write_text("1\n123456789012345\n")
    document = {"format": "h3sim-network/1", "name": "x", "down": {"mahimahi": "trace"}}
    made = network_from_dict(document, folder=tmp_path)
    assert made.down is not None
    assert made.down.mahimahi == (1, 123_456_789_012_345)
    (tmp_path / "trace").write_text("1\n1234567890123456\n")
    with pytest.raises(InputError, match="line 2: must be whole milliseconds"):
        network_from_dict(document, folder=tmp_path)


# Files of profiles


def profile_of(**tables: Any) -> TransportProfile:
    return profile_from_dict({"format": "h3sim-profile/1", "name": "x", **tables})


def test_a_client_has_the_settings_of_its_server_unless_it_states_others() -> None:
    profile = profile_of(
        quic={"ack_every": 4, "ip_bytes": 48},
        quic_client={"ack_every": 5},
        tcp={"ack_every": 6},
    )
    assert profile.quic == QuicSettings(ack_every=4, ip_bytes=48)
    assert profile.quic_client == QuicSettings(ack_every=5, ip_bytes=48)
    assert profile.tcp == profile.tcp_client == TcpSettings(ack_every=6)


def test_a_profile_states_of_a_client_what_differs_from_the_defaults_or_the_server() -> None:
    document = profile_to_dict(
        TransportProfile(
            name="x",
            quic=QuicSettings(ack_every=4),
            quic_client=QuicSettings(ip_bytes=48),
            tcp=TcpSettings(ack_every=6),
            tcp_client=TcpSettings(ack_every=6),
        )
    )
    assert document == {
        "format": "h3sim-profile/1",
        "name": "x",
        "quic": {"ack_every": 4},
        "quic_client": {"ack_every": 2, "ip_bytes": 48},
        "tcp": {"ack_every": 6},
    }


@pytest.mark.parametrize(
    ("tables", "keys"),
    [
        # Of the server: its client only has it from there.
        ({"quic": {"ack_every": 0}}, ["quic.ack_every"]),
        ({"quic": {"acks": 0}}, ["quic.acks"]),
        (
            {"tcp": {"ack_every": 0}, "tcp_client": {"mss_bytes": 9}},
            ["tcp.ack_every", "tcp_client.mss_bytes"],
        ),
        (
            {"quic": {"ack_every": 0}, "quic_client": {"ack_every": 0}},
            ["quic.ack_every", "quic_client.ack_every"],
        ),
        ({"quic": {"ack_every": 0}, "quic_client": {"ack_every": 1}}, ["quic.ack_every"]),
        ({"quic_client": 5}, ["quic_client"]),
        ({"quic": 5, "quic_client": {"ack_every": 0}}, ["quic", "quic_client.ack_every"]),
    ],
)
def test_an_error_of_a_profile_is_reported_where_it_was_made(
    tables: dict[str, Any], keys: list[str]
) -> None:
    with pytest.raises(InputError) as caught:
        profile_of(**tables)
    assert sorted(problem.key for problem in caught.value.problems) == keys


def test_a_profile_that_is_no_table_is_one_line() -> None:
    document: Any = ["x"]
    with pytest.raises(InputError) as caught:
        profile_from_dict(document, source="p.toml")
    assert len(caught.value.lines()) == 1
