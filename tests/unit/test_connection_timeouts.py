"""Connections that hear nothing any more: when each end gives up, and what becomes of the load."""

from __future__ import annotations

import pickle
from dataclasses import replace
from typing import Any

import pytest

import h3sim
from h3sim.transport import Handshake, HandshakeMode, QuicEndpoint, Role
from h3sim.transport.profile import profile_from_toml
from h3sim.transport.quic import QuicSettings
from h3sim.values.errors import ConnectionTimeoutError
from h3sim.values.units import ms, to_ms
from tests.unit.test_quic_windows import Endless, Window, peer_packet

FULL_BYTES = 1280
BURSTS: dict[str, Any] = {
    "scheme": "sander-chrome",
    "network": "sander-2mbps-100ms-2pct-burst10",
    "browser": "parse",
    "paint": "complete",
    "tight_mode": "chrome-95",
}


def server(*, idle_ms: float | None = None, blackhole_timeouts: int = 0) -> QuicEndpoint:
    """Return a server with endless data, a window of two packets and an RTT of 100 ms."""
    settings = QuicSettings(datagram_bytes=FULL_BYTES, blackhole_timeouts=blackhole_timeouts)
    return QuicEndpoint(
        settings,
        Window(2 * FULL_BYTES),
        Endless(),
        Handshake(settings, Role.SERVER, HandshakeMode.NONE),
        peer_max_ack_delay_ns=0,
        idle_timeout_ns=None if idle_ms is None else ms(idle_ms),
        path_rtt_ns=ms(100),
    )


def deadline_ms(endpoint: QuicEndpoint) -> float | None:
    deadline = endpoint.deadline()
    return None if deadline is None else to_ms(deadline.at_ns)


def test_an_idle_timer_restarts_with_what_arrives_and_with_the_first_packet_sent_after_it() -> None:
    end = server(idle_ms=5000)
    assert deadline_ms(end) is None  # nothing was sent: nothing is waited for
    end.packets_to_send(ms(40))
    assert deadline_ms(end) == 40 + 5000  # the first packet; its second probe moves nothing
    end.on_packet(peer_packet(0, [(0, 0)]), ms(140))
    assert deadline_ms(end) == 140 + 5000
    end.packets_to_send(ms(300))
    assert deadline_ms(end) == 300 + 5000


def test_an_idle_timeout_is_at_least_three_probe_timeouts() -> None:
    end = server(idle_ms=1)
    end.packets_to_send(ms(40))
    # PTO: 100 ms and four times half of it.
    assert deadline_ms(end) == 40 + 3 * 300


def test_a_black_hole_is_two_probes_and_five_timeouts_without_an_acknowledgement() -> None:
    end = server(blackhole_timeouts=5)
    end.packets_to_send(ms(40))
    # 2 * 200 ms, and 31 * (100 + 4 * 50) ms.
    assert deadline_ms(end) == 40 + 400 + 31 * 300
    # An acknowledgement restarts it, and a packet without one does not.
    end.on_packet(peer_packet(0), ms(100))
    assert deadline_ms(end) == 40 + 400 + 31 * 300
    end.on_packet(peer_packet(1, [(0, 0)]), ms(140))
    deadline = deadline_ms(end)
    assert deadline is not None
    assert deadline > 140 + 400 + 31 * 200


def test_an_end_that_waits_for_nothing_has_no_deadline() -> None:
    end = server(idle_ms=1000, blackhole_timeouts=5)
    end.packets_to_send(0)
    end.on_packet(peer_packet(0, [(0, 1)]), ms(100))
    assert deadline_ms(end) is None


def test_a_load_whose_server_hears_nothing_is_no_finished_load() -> None:
    with pytest.raises(ConnectionTimeoutError, match="server's idle timeout") as caught:
        h3sim.simulate("themekit-profile", **BURSTS)
    error = caught.value
    assert error.waiting
    assert error.limit_ns is not None
    assert 30e9 < error.limit_ns < 60e9
    assert str(error).startswith("connection timed out after 4")
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), str(again)) == (ConnectionTimeoutError, str(error))


def test_the_shorter_idle_timeout_of_both_ends_applies() -> None:
    text = 'format = "h3sim-profile/1"\nname = "p"\ncc = "cubic-quicly"\n'
    keys = ("[quic]\nidle_timeout_ms = 90000\n", "[quic_client]\nidle_timeout_ms = 10000\n")
    profile = profile_from_toml(text + "".join(keys), source="p.toml")
    with pytest.raises(ConnectionTimeoutError, match="no packet for 10 s"):
        h3sim.simulate("themekit-profile", **BURSTS, transport_profile=profile)


def test_without_timeouts_the_same_load_goes_on_for_minutes() -> None:
    profile = h3sim.load_profile("quicly-chrome")
    patient = replace(
        profile,
        quic=replace(profile.quic, idle_timeout_ns=None),
        quic_client=replace(profile.quic_client, idle_timeout_ns=None, blackhole_timeouts=0),
    )
    load = h3sim.simulate("themekit-profile", **BURSTS, transport_profile=patient)
    assert load.page_load_ms > 40_000


def test_a_sweep_reports_a_timeout_as_an_error_and_keeps_the_other_loads() -> None:
    options: dict[str, Any] = {k: v for k, v in BURSTS.items() if k != "scheme"}
    networks = [options.pop("network"), "sander-2mbps-100ms"]
    results = h3sim.sweep(
        ["themekit-profile"],
        schemes="sander-chrome",
        network=networks,
        executor="serial",
        **options,
    )
    (row,) = results
    assert row["network"] == "sander-2mbps-100ms"
    (message,) = results.errors
    assert ConnectionTimeoutError.TIMED_OUT in message


def test_tcp_gives_up_when_nothing_is_acknowledged_for_its_user_timeout() -> None:
    text = (
        'format = "h3sim-profile/1"\nname = "p"\nprotocol = "tcp"\n[tcp]\nuser_timeout_ms = 2000\n'
    )
    profile = profile_from_toml(text, source="p.toml")
    options = {**BURSTS, "network": "sander-2mbps-100ms-2pct-burst15"}
    ends = []
    for seed in range(40):
        try:
            h3sim.simulate("themekit-profile", **options, transport_profile=profile, seed=seed)
        except ConnectionTimeoutError as error:
            ends.append(str(error))
    assert ends
    assert all("user timeout, no acknowledgement for 2 s" in text for text in ends)
