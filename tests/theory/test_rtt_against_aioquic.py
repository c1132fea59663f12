"""The RTT estimator beside that of aioquic, fed with the same packets."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from h3sim.transport.rtt import RttEstimator
from h3sim.values.units import NS_PER_S, ms

pytest.importorskip("aioquic")

from aioquic.quic.rangeset import RangeSet
from aioquic.quic.recovery import QuicPacketRecovery, QuicPacketSpace

from tests.theory.aioquic_packets import PACKET_BYTES, their_packet

INITIAL_RTT_NS = ms(333)


@given(
    samples=st.lists(
        # A delay is no multiple of 10 µs, so that no sample is exactly min_rtt + delay: there RFC
        # 9002 § 5.3 takes the delay off, and aioquic does not.
        st.tuples(
            st.integers(100, 50_000).map(lambda tens: 10_000 * tens),
            st.one_of(st.just(0), st.integers(0, 3000).map(lambda tens: 10_000 * tens + 5000)),
        ),
        min_size=1,
        max_size=40,
    )
)
def test_the_rtt_estimate_is_aioquics_but_for_the_variance(samples: Any) -> None:
    """aioquic's variance is that around min_rtt; RFC 9002 § 5.3 has it around smoothed_rtt."""
    recovery = QuicPacketRecovery(
        congestion_control_algorithm="reno",
        initial_rtt=0.333,
        max_datagram_size=PACKET_BYTES,
        peer_completed_address_validation=True,
        send_probe=lambda: None,
    )
    space = QuicPacketSpace(is_application_data=True)
    recovery.spaces = [space]
    ours = RttEstimator(initial_ns=INITIAL_RTT_NS)
    max_ack_delay_ns = round(recovery.max_ack_delay * 1e9)
    our_variance = their_variance = None
    now_ns = NS_PER_S
    for number, (latest_rtt_ns, delay_ns) in enumerate(samples):
        smoothed_before = recovery._rtt_smoothed
        recovery.on_packet_sent(packet=their_packet(number, now_ns), space=space)
        now_ns += latest_rtt_ns
        recovery.on_ack_received(
            ack_rangeset=RangeSet([range(number, number + 1)]),
            ack_delay=delay_ns / 1e9,
            now=now_ns / 1e9,
            space=space,
        )
        ours.on_sample(latest_rtt_ns, ack_delay_ns=min(delay_ns, max_ack_delay_ns))
        if our_variance is None:
            our_variance = their_variance = latest_rtt_ns / 2e9
        else:
            # aioquic's latest RTT is the adjusted one.
            latest = recovery._rtt_latest
            our_variance += (abs(smoothed_before - latest) - our_variance) / 4
            their_variance += (abs(recovery._rtt_min - latest) - their_variance) / 4
        # Whole nanoseconds, cut: what is lost at each step adds up to less than eight.
        assert ours.smoothed_rtt_ns == pytest.approx(recovery._rtt_smoothed * 1e9, abs=10)
        assert ours.min_rtt_ns == pytest.approx(recovery._rtt_min * 1e9, abs=2)
        assert ours.latest_rtt_ns == latest_rtt_ns
        assert recovery._rtt_variance == pytest.approx(their_variance, rel=1e-6, abs=1e-9)
        assert ours.rttvar_ns == pytest.approx(our_variance * 1e9, abs=20)


@given(ack_delay_ms=st.integers(0, 40))
def test_the_probe_timeout_after_one_sample_is_aioquics(ack_delay_ms: float) -> None:
    """After one sample, the variances agree."""
    recovery = QuicPacketRecovery(
        congestion_control_algorithm="reno",
        initial_rtt=0.333,
        max_datagram_size=PACKET_BYTES,
        peer_completed_address_validation=True,
        send_probe=lambda: None,
    )
    recovery.max_ack_delay = ack_delay_ms / 1e3
    space = QuicPacketSpace(is_application_data=True)
    recovery.spaces = [space]
    recovery.on_packet_sent(packet=their_packet(0, NS_PER_S), space=space)
    recovery.on_ack_received(
        ack_rangeset=RangeSet([range(1)]), ack_delay=0.0, now=1.08, space=space
    )
    ours = RttEstimator(initial_ns=INITIAL_RTT_NS)
    ours.on_sample(ms(80))
    timeout_s = recovery.get_probe_timeout()
    assert ours.probe_timeout_ns(ms(ack_delay_ms)) == pytest.approx(timeout_s * 1e9, abs=10)
