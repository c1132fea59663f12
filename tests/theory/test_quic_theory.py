"""Whole loads over QUIC against closed forms: slow start, handshakes, the square-root law."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest

import h3sim
from h3sim.transport import LinkProfile, Network, TransportProfile
from h3sim.values.errors import StalledError
from h3sim.values.units import mbps, ms
from tests.helpers import page_of

WINDOW_PACKETS = 10
PACKET_BYTES = 1280
WIRE_BYTES = PACKET_BYTES + 28
PAYLOAD_BYTES = 1244
"""What a full packet carries where the offset takes 4 bytes; the first ones carry more."""
RENO = TransportProfile(
    name="reno", cc="newreno", initial_window_bytes=WINDOW_PACKETS * PACKET_BYTES
)


def document(n_bytes: int) -> h3sim.Page:
    return page_of({"id": "/", "kind": "document", "bytes": n_bytes, "request_bytes": 100})


def network(rtt_ms: float, rate_mbps: float | None = None, **down: Any) -> Network:
    """Return a path that only serializes downward, at *rate_mbps*, before a queue without end."""
    rate_bps = None if rate_mbps is None else mbps(rate_mbps)
    link = LinkProfile(rate_bps=rate_bps, burst_bytes=0, frame_overhead_bytes=0, **down)
    return Network(name="path", rtt_ns=ms(rtt_ms), down=link, up=LinkProfile())


def load_ms(n_bytes: int, path: Network, **setting: Any) -> float:
    load = h3sim.simulate(
        document(n_bytes), scheme="fifo", network=path, transport_profile=RENO, **setting
    )
    return load.page_load_ms


# Slow start


@pytest.mark.parametrize("rtt_ms", [20, 100])
@pytest.mark.parametrize("n_packets", [1, 10, 11, 30, 31, 150, 151, 630, 800])
def test_slow_start_takes_a_round_trip_for_each_doubling_of_the_window(
    n_packets: int, rtt_ms: float
) -> None:
    """10, 20, 40, ... packets a round trip (RFC 9002 § 7.3.1), exactly: nothing serializes."""
    rounds = math.ceil(math.log2(n_packets / WINDOW_PACKETS + 1))
    took_ms = load_ms(n_packets * PAYLOAD_BYTES, network(rtt_ms), handshake=False)
    assert took_ms == rtt_ms * max(1, rounds)


@pytest.mark.parametrize(
    ("n_bytes", "rate_mbps", "rtt_ms"),
    [(1_000_000, 10, 100), (1_000_000, 2, 50), (200_000, 20, 200), (50_000, 5, 30)],
)
def test_slow_start_at_a_bottleneck_stalls_until_the_window_fills_the_path(
    n_bytes: int, rate_mbps: Any, rtt_ms: float
) -> None:
    """RTT + O/R + what each window leaves idle, within 1 % (Kurose and Ross, static windows).

    The window grows with the second packet's acknowledgement: every second one is acknowledged.
    """
    packet_ms = WIRE_BYTES * 8 / rate_mbps / 1000
    n_packets = n_bytes / PAYLOAD_BYTES
    windows = math.ceil(math.log2(n_packets / WINDOW_PACKETS + 1))
    stalls_ms = (
        rtt_ms + 2 * packet_ms - 2**k * WINDOW_PACKETS * packet_ms for k in range(windows - 1)
    )
    expected_ms = rtt_ms + n_packets * packet_ms + sum(max(0, stall) for stall in stalls_ms)
    took_ms = load_ms(n_bytes, network(rtt_ms, rate_mbps), handshake=False)
    assert took_ms == pytest.approx(expected_ms, rel=0.01)


# Handshakes


@pytest.mark.parametrize(("handshake", "round_trips"), [("none", 1), ("0-rtt", 1), ("1-rtt", 2)])
@pytest.mark.parametrize("rtt_ms", [10, 100])
def test_a_handshake_costs_its_round_trips(handshake: Any, round_trips: Any, rtt_ms: float) -> None:
    """RFC 9001 § 4: keys for the first request are there after one round trip, or at once."""
    assert load_ms(300, network(rtt_ms), handshake=handshake) == round_trips * rtt_ms


@pytest.mark.parametrize(("handshake", "round_trips"), [("0-rtt", 1), ("1-rtt", 2)])
@pytest.mark.parametrize("profile", ["default", "aioquic", "quicly"])
@pytest.mark.parametrize("rtt_ms", [2, 20])
def test_pacing_does_not_delay_the_first_response_over_a_short_path(
    profile: str, handshake: Any, round_trips: Any, rtt_ms: float
) -> None:
    """The server's flight is sent before there is a round-trip time to spread it over."""
    load = h3sim.simulate(
        document(300), network=network(rtt_ms), transport_profile=profile, handshake=handshake
    )
    assert load.page_load_ms == round_trips * rtt_ms


@pytest.mark.parametrize(("flight_bytes", "round_trips"), [(3000, 2), (3500, 2), (3700, 3)])
def test_a_server_flight_beyond_three_times_the_clients_first_waits_a_round_trip(
    flight_bytes: int, round_trips: Any
) -> None:
    """RFC 9000 § 8.1: 3 times 1250 bytes, packet headers included, until the address is valid."""
    flight = replace(RENO.quic, server_flight_bytes=flight_bytes)
    load = h3sim.simulate(
        document(1000),
        network=network(50),
        transport_profile=replace(RENO, quic=flight),
        handshake=True,
    )
    assert load.page_load_ms == 50 * round_trips


@pytest.mark.parametrize(("handshake", "round_trips"), [("none", 0), ("0-rtt", 0), ("1-rtt", 1)])
def test_each_resource_is_requested_once_and_the_first_when_the_handshake_lets_it_go(
    handshake: Any, round_trips: Any
) -> None:
    """Four packets of the server's flight are under way when the first of them ends it."""
    page = page_of(
        {"id": "/", "kind": "document", "bytes": 3000},
        {"id": "late", "kind": "other", "bytes": 10, "discovered": {"at": "time", "delay_ms": 70}},
    )
    load = h3sim.simulate(page, network=network(50), transport_profile=RENO, handshake=handshake)
    requested = [(row.id, row.requested_ms) for row in load.timings]
    assert requested == [("/", 50 * round_trips), ("late", 70)]


def test_a_response_to_0_rtt_waits_where_the_server_flight_leaves_no_room_for_it() -> None:
    """RFC 9000 § 8.1: 3000 bytes of flight leave less than 700 of 3750."""
    assert load_ms(1000, network(50), handshake="0-rtt") == 2 * 50


# Loss


@pytest.mark.parametrize("loss", [0.005, 0.01, 0.02])
def test_a_long_reno_load_has_the_window_of_the_square_root_law_within_25_percent(
    loss: Any,
) -> None:
    """sqrt(3/2) / sqrt(p) packets a round trip: Mathis, Semke, Mahdavi, Ott 1997.

    Counted from a third of the load on, so that the first slow start does not count.
    """
    rtt_ms = 50
    load = h3sim.simulate(
        document(12_000_000), network=network(rtt_ms, loss=loss), transport_profile=RENO, seed=1
    )
    begin_ms = load.page_load_ms / 3
    n_sent = sum(row[0] >= ms(begin_ms) for row in load.trace.packet_rows)
    window = n_sent / ((load.page_load_ms - begin_ms) / rtt_ms)
    assert window == pytest.approx(math.sqrt(1.5 / loss), rel=0.25)


def test_a_probe_timeout_is_doubled_up_to_a_minute() -> None:
    """RFC 9002 § 6.2.1; of 1 ms it would be 2^20 ms after 20 losses in a row."""
    up = LinkProfile(loss_list=tuple(range(60)))
    path = Network(name="mute", rtt_ns=ms(1), down=LinkProfile(), up=up)
    load = h3sim.simulate(document(1000), network=path, handshake=False, transport_profile=RENO)
    # Two probes a timeout: 30 of them, of which 15 or so take a minute.
    assert 15 * 60_000 < load.page_load_ms < 30 * 60_000


def test_a_load_whose_requests_are_all_lost_is_given_up_and_names_what_it_waited_for() -> None:
    lost = LinkProfile(loss_list=tuple(range(1000)))
    path = Network(name="mute", rtt_ns=ms(50), down=LinkProfile(), up=lost)
    with pytest.raises(StalledError, match=r"given up after 3600 s .* waiting for /"):
        h3sim.simulate(document(1000), network=path, handshake=False)
