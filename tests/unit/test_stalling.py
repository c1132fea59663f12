"""Loads that cannot come to their end are refused before they begin, or given up."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

import h3sim
from h3sim.engine import LoadSpec, builders
from h3sim.load.run import run_spec
from h3sim.transport import LinkProfile, Network, TransportProfile
from h3sim.transport.profile import ProfileError, profile_from_toml
from h3sim.transport.quic import QuicSettings
from h3sim.values.errors import NetworkError, StalledError
from h3sim.values.units import ms
from tests.helpers import page_of, unworded


def network(rtt_ms: float = 0, **link: Any) -> Any:
    return Network(name="n", rtt_ns=ms(rtt_ms), down=LinkProfile(**link))


@pytest.mark.parametrize("rtt_ms", [0, 0.000001, 0.001])
@pytest.mark.parametrize("handshake", ["none", "1-rtt"])
def test_a_bucket_of_time_lets_packets_leave_however_short_the_round_trip(
    rtt_ms: float, handshake: Any
) -> None:
    load = h3sim.simulate(
        "davies-meenan",
        scheme="rr",
        network=network(rtt_ms),
        transport_profile="aioquic",
        handshake=handshake,
    )
    assert load.page_load_ms < 1000


@pytest.mark.parametrize(
    ("transport", "size"),
    [("quic", "1,872 bytes"), ("tcp", "2,000 bytes")],  # 1280 + 64 + 28 or 1448 + 32 + 20, and 500
)
def test_a_queue_that_no_full_packet_enters_is_refused(transport: Any, size: Any) -> None:
    too_small = network(10, rate_bps=10**6, queue_bytes=1700, frame_overhead_bytes=500)
    with pytest.raises(NetworkError) as caught:
        h3sim.simulate("davies-meenan", scheme="rr", network=too_small, transport=transport)
    assert caught.value.lines() == [
        f"n: {key}.queue_bytes: must hold a full packet of this load ({size}), holds 1,700"
        for key in ("down", "up")
    ]


def test_a_queue_of_exactly_one_packet_brings_a_page_to_its_end() -> None:
    just_enough = network(10, rate_bps=10**6, queue_bytes=1872, frame_overhead_bytes=500)
    assert h3sim.simulate("davies-meenan", scheme="rr", network=just_enough).page_load_ms > 0


def test_a_queue_in_bdps_is_named_as_it_was_given() -> None:
    too_small = network(13, rate_bps=10**6, queue_bdp=1, frame_overhead_bytes=500)
    with pytest.raises(NetworkError, match=r"n: down\.queue_bdp: .*1,872 bytes.*holds 1,625"):
        h3sim.simulate("davies-meenan", scheme="rr", network=too_small)


def test_a_load_that_never_ends_is_given_up_after_so_many_events(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(builders, "_MIN_EVENTS", 300)
    monkeypatch.setattr(builders, "_EVENTS_PER_PACKET", 0)
    with pytest.raises(StalledError) as caught:
        h3sim.simulate("davies-meenan", scheme="rr", network="sander-2mbps-100ms")
    assert caught.value.n_events == 300
    assert str(caught.value).startswith("given up after ")
    assert "s of simulated time and 300 events, still waiting for" in str(caught.value)
    again = pickle.loads(pickle.dumps(caught.value))
    assert (str(again), again.n_events) == (str(caught.value), 300)


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("beta = 1.5", "beta: must be more than 0 and less than 1, is 1.5"),
        (
            "initial_window_bytes = 1000",
            "initial_window_bytes: must be at least a packet (1,280), is 1,000",
        ),
        (
            'protocol = "tcp"\ninitial_window_bytes = 9999999999',
            "initial_window_bytes: must be 1 to 1,073,741,824, is 9999999999",
        ),
        ("[quic]\nmax_pto_ms = 0.5", "quic.max_pto_ms: must be 1 to 3,600,000, is 0.5"),
        ("[quic]\npacing_gain = 1e-6", "quic.pacing_gain: must be 0.01 to 100, is 1e-06"),
        ("[tcp]\nmax_rto_ms = 0.02", "tcp.max_rto_ms: must be 1,000 to 3,600,000, is 0.02"),
        (
            "[tcp_client]\nmax_ack_delay_ms = -1",
            "tcp_client.max_ack_delay_ms: must be 0 to 60,000, is -1",
        ),
    ],
)
def test_a_profile_names_what_cannot_work_by_file_and_key(text: Any, error: Any) -> None:
    with pytest.raises(ProfileError) as caught:
        profile_from_toml(f'format = "h3sim-profile/1"\nname = "p"\n{text}\n', source="p.toml")
    assert unworded(caught.value.lines()) == unworded([f"p.toml: {error}"])


def test_a_profile_made_in_python_is_checked_as_one_from_a_file() -> None:
    with pytest.raises(ProfileError, match=r"p: beta: .*is 0"):
        TransportProfile(name="p", beta=0)
    with pytest.raises(NetworkError, match=r"max_pto_ms: .*1 .*3,600,000, is 5e-06"):
        QuicSettings(max_pto_ns=5)


def test_the_smallest_gain_paces_and_does_not_divide_by_nothing() -> None:
    profile = TransportProfile(name="p", quic=QuicSettings(pacing_gain=0.01))
    spec = LoadSpec(
        h3sim.load_page("davies-meenan"),
        scheme=h3sim.load_scheme("rr"),
        network=network(1, rate_bps=10**7),
        profile=profile,
    )
    load = run_spec(spec)
    assert load.page_load_ms > 0


def test_an_empty_response_takes_a_packet_and_any_other_as_many_as_it_fills() -> None:
    found = {"by": "/", "at": "request"}
    sizes = (0, 1, 1400, 1401)
    others = [{"id": f"{n}", "kind": "image", "bytes": n, "discovered": found} for n in sizes]
    page = page_of({"id": "/", "kind": "document", "bytes": 2801}, *others)
    assert builders.count_packets(page, 1400) == 3 + 1 + 1 + 1 + 2
