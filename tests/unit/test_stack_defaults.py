"""What a stack has unless a profile says otherwise, and from where to where it may be set."""

from __future__ import annotations

from typing import Any

import pytest

from h3sim.transport.quic import QuicSettings
from h3sim.transport.tcp import TcpSettings
from h3sim.values.errors import NetworkError
from h3sim.values.units import NS_PER_MS

S = 1000 * NS_PER_MS
MOST = 2**62  # a variable-length integer of RFC 9000 § 16, and more than anybody has
QUIC: dict[str, tuple[Any, Any, Any]] = {
    # The payload of a UDP datagram: IPv4's 65,535 less 20 and 8.
    "datagram_bytes": (1280, 200, 65_507),
    "connection_id_bytes": (8, 0, 20),  # RFC 9000 § 17.2
    "packet_number_bytes": (2, 1, 4),  # RFC 9000 § 17.1
    "ip_bytes": (28, 0, 1000),  # 20 of IPv4 and 8 of UDP
    "ack_every": (2, 1, MOST),  # RFC 9000 § 13.2.2
    "max_ack_delay_ns": (25 * NS_PER_MS, 0, 16_384 * NS_PER_MS),  # RFC 9000 § 18.2: below 2^14 ms
    "timer_granularity_ns": (0, 0, S),
    "packet_processing_ns": (0, 0, S),
    "ack_ping_every": (0, 0, 2**20),
    "initial_rtt_ns": (333 * NS_PER_MS, NS_PER_MS, 60 * S),  # kInitialRtt, RFC 9002 § 6.2.2
    "max_pto_ns": (60 * S, NS_PER_MS, 3600 * S),
    "idle_timeout_ns": (None, NS_PER_MS, 3600 * S),  # RFC 9000 § 10.1: off unless an end asks
    "blackhole_timeouts": (0, 0, 20),
    "pacing_gain": (None, 0.01, 100.0),
    "pacing_burst_packets": (10, 1, 2**20),  # RFC 9002 § 7.7: the initial window
    "loss_timer_packets": (0, 0, 2),
    "probes": (2, 1, 2),  # RFC 9002 § 6.2.4
    # Chromium: kStreamReceiveWindowLimit and kSessionReceiveWindowLimit are 6 and 15 MiB.
    "stream_window_bytes": (6 * 2**20, 1, MOST),
    "connection_window_bytes": (15 * 2**20, 1, MOST),
    "client_initial_bytes": (1250, 1200, 65_507),  # RFC 9000 § 14.1
    "client_hello_bytes": (300, 1, 1100),
    "server_flight_bytes": (3000, 1, 2**20),
    "client_finished_bytes": (60, 1, 1100),
}
TCP: dict[str, tuple[Any, Any, Any]] = {
    # 1500 less 20 of IPv4, 20 of TCP and 12 of timestamps; 65,535 less 40 at most.
    "mss_bytes": (1448, 88, 65_495),
    "receive_window_bytes": (6 * 2**20, None, 2**30),  # RFC 7323 § 2.3
    "ack_every": (2, 1, MOST),  # RFC 9293 § 3.8.6.3
    "max_ack_delay_ns": (40 * NS_PER_MS, 0, 60 * S),  # Linux: TCP_DELACK_MIN
    "initial_rto_ns": (S, NS_PER_MS, 3600 * S),  # RFC 6298 § 2.1
    "min_rto_ns": (S, 0, None),  # RFC 6298 § 2.4
    "max_rto_ns": (60 * S, S, 3600 * S),  # RFC 6298 § 2.5
    "rto_granularity_ns": (NS_PER_MS, 1000, 60 * S),  # RFC 6298 § 4: 100 ms or less
    "user_timeout_ns": (300 * S, NS_PER_MS, 3600 * S),  # RFC 9293 § 3.9.1.1: five minutes
    "pacing_gain": (None, 0.01, 100.0),
    "pacing_burst_segments": (10, 1, 2**20),  # RFC 6928
    "notsent_lowat_bytes": (16_384, 1, MOST),
    "write_bytes": (0, 0, MOST),
    "send_buffer_bytes": (4 * 2**20, 1, MOST),  # Linux: tcp_wmem[2]
    "data_frame_bytes": (16_384, 1, 2**24 - 1),  # RFC 9113 § 4.2
    "record_bytes": (16_384, 88, 16_384),  # RFC 8446 § 5.1
    "dynamic_record_bytes": (2**20, 0, MOST),
    "dynamic_record_idle_ns": (S, 0, 3600 * S),
    "client_hello_bytes": (517, 1, 2**20),
    "server_flight_bytes": (3000, 1, 2**20),
    "client_finished_bytes": (80, 1, 2**20),
    "tls12_server_finished_bytes": (51, 1, 2**20),
}
STACKS = [
    *((QuicSettings, name, *row) for name, row in QUIC.items()),
    *((TcpSettings, name, *row) for name, row in TCP.items()),
]


@pytest.mark.parametrize(
    ("stack", "name", "default", "low", "high"), STACKS, ids=lambda given: str(given)[:40]
)
def test_a_number_has_its_default_and_its_limits(
    stack: Any, name: str, default: Any, low: Any, high: Any
) -> None:
    assert getattr(stack(), name) == default
    for limit, way in ((low, -1), (high, 1)):
        if limit is None:
            continue
        step = NS_PER_MS / 1000 if name.endswith("_ns") else 0.001 if "gain" in name else 1
        assert getattr(stack(**{name: limit}), name) == limit
        with pytest.raises(NetworkError):
            stack(**{name: limit + way * type(limit)(step)})


@pytest.mark.parametrize("name", ["acks_gaps_at_once", "bundles_acks", "has_persistent_congestion"])
def test_a_quic_stack_does_what_the_rfcs_have_unless_it_is_reported_otherwise(name: str) -> None:
    # RFC 9000 §§ 13.2.1, 13.2; RFC 9002 § 7.6.
    assert getattr(QuicSettings(), name) is True


@pytest.mark.parametrize("name", ["partial_datagrams", "may_exceed_cwnd"])
def test_a_quic_stack_has_no_habit_of_another(name: str) -> None:
    assert getattr(QuicSettings(), name) is False


def test_a_tcp_stack_reduces_its_window_in_proportion_and_has_records_of_one_size() -> None:
    assert (TcpSettings().has_prr, TcpSettings().has_dynamic_records) == (True, False)


@pytest.mark.parametrize(
    ("connection_id_bytes", "packet_number_bytes", "expected"),
    [(8, 2, 27), (0, 1, 18), (20, 4, 41)],
)
def test_a_short_header_is_a_byte_an_id_and_a_number_and_the_tag_comes_behind(
    connection_id_bytes: int, packet_number_bytes: int, expected: int
) -> None:
    """RFC 9000 § 17.3.1, RFC 9001 § 5.3: a tag of 16 bytes."""
    settings = QuicSettings(
        connection_id_bytes=connection_id_bytes, packet_number_bytes=packet_number_bytes
    )
    assert settings.header_bytes == expected


@pytest.mark.parametrize(
    ("mss", "expected"), [(88, 880), (1448, 14_480), (1460, 14_600), (2000, 14_600), (9000, 18_000)]
)
def test_the_initial_window_is_ten_segments_or_14600_bytes_or_two_segments(
    mss: int, expected: int
) -> None:
    """RFC 6928 § 2: min(10 * MSS, max(2 * MSS, 14600))."""
    assert TcpSettings(mss_bytes=mss).initial_window_bytes == expected


def test_linux_finds_losses_by_time_and_waits_200_ms_at_least() -> None:
    """Linux: tcp_recovery, TCP_RTO_MIN and TCP_RTO_MAX."""
    linux = TcpSettings.linux()
    assert linux.recovery.value == "rack"
    assert (linux.min_rto_ns, linux.rto_granularity_ns) == (200 * NS_PER_MS, 200 * NS_PER_MS)
    assert linux.max_rto_ns == 120 * S


@pytest.mark.parametrize(
    ("granularity_ns", "processing_ns", "expected"), [(0, 0, False), (1, 0, True), (0, 1, True)]
)
def test_timers_wait_for_an_event_loop_where_either_of_its_times_is_set(
    granularity_ns: int, processing_ns: int, expected: bool
) -> None:
    settings = QuicSettings(timer_granularity_ns=granularity_ns, packet_processing_ns=processing_ns)
    assert settings.has_event_loop is expected
