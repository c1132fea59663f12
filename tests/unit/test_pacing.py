"""Round-trip times (RFC 9002 § 5) and pacing (§ 7.7), by hand."""

from __future__ import annotations

from typing import Any

import pytest

from h3sim.transport.pacing import AioquicPacer, BucketPacer, Pacer
from h3sim.transport.rtt import RttEstimator
from h3sim.values.units import mbps, ms
from tests.tcp_pair import FixedWindow


class TestRoundTrips:
    def test_a_first_sample_is_taken_without_smoothing(self) -> None:
        rtt = RttEstimator(initial_ns=ms(333))
        assert (rtt.smoothed_rtt_ns, rtt.rttvar_ns, rtt.has_sample) == (ms(333), ms(166.5), False)
        rtt.on_sample(ms(100), ms(60))  # a delay says nothing yet
        assert (rtt.min_rtt_ns, rtt.smoothed_rtt_ns, rtt.rttvar_ns) == (ms(100), ms(100), ms(50))

    def test_later_ones_move_the_mean_by_an_eighth_and_the_variation_by_a_quarter(self) -> None:
        rtt = self.sampled()
        rtt.on_sample(ms(140), ms(20))
        # 120 without the delay: 50 * 3/4 + 20 / 4, and 100 * 7/8 + 120 / 8.
        assert (rtt.latest_rtt_ns, rtt.min_rtt_ns) == (ms(140), ms(100))
        assert (rtt.rttvar_ns, rtt.smoothed_rtt_ns) == (ms(42.5), ms(102.5))
        rtt.on_sample(ms(80))
        # 42.5 * 3/4 + 22.5 / 4, and 102.5 * 7/8 + 80 / 8.
        assert (rtt.latest_rtt_ns, rtt.min_rtt_ns) == (ms(80), ms(80))
        assert (rtt.rttvar_ns, rtt.smoothed_rtt_ns) == (ms(37.5), ms(99.6875))

    @pytest.mark.parametrize(
        ("latest_ms", "delay_ms", "smoothed_ms"),
        [
            # 8 ms above the mean move it by one; a delay counts unless it leaves less than the
            # least, which is 100.
            (108, 0, 101),
            (116, 8, 101),
            (108, 8, 100),
            (107, 8, 100.875),
        ],
    )
    def test_a_delay_is_taken_off_where_no_less_than_the_least_is_left(
        self, latest_ms: float, delay_ms: float, smoothed_ms: float
    ) -> None:
        rtt = self.sampled()
        rtt.on_sample(ms(latest_ms), ms(delay_ms))
        assert rtt.smoothed_rtt_ns == ms(smoothed_ms)

    def test_a_probe_waits_for_four_variations_and_a_late_ack(self) -> None:
        rtt = self.sampled()
        assert rtt.probe_timeout_ns(ms(25)) == ms(100 + 4 * 50 + 25)
        for _ in range(60):
            rtt.on_sample(ms(100))
        # A millisecond at least, where nothing varies.
        assert rtt.probe_timeout_ns(0) == ms(101)

    def test_a_packet_is_lost_nine_eighths_of_the_longer_round_trip_later(self) -> None:
        rtt = self.sampled()
        assert rtt.loss_delay_ns() == ms(112.5)
        rtt.on_sample(ms(200))
        assert (rtt.smoothed_rtt_ns, rtt.loss_delay_ns()) == (ms(112.5), ms(225))
        rtt.on_sample(ms(40))
        assert rtt.loss_delay_ns() == 9 * rtt.smoothed_rtt_ns // 8
        assert RttEstimator(initial_ns=ms(0.1)).loss_delay_ns() == ms(1)

    def sampled(self) -> RttEstimator:
        rtt = RttEstimator(initial_ns=ms(333))
        rtt.on_sample(ms(100))
        return rtt


class Rated(FixedWindow):
    """A controller that has a rate of its own, or None."""

    def __init__(self, window_bytes: int, rate_bps: int | None) -> None:
        super().__init__(window_bytes)
        self.rate_bps = rate_bps

    def pacing_rate_bps(self, rtt: Any) -> int | None:
        return self.rate_bps


def pacer(
    rate_bps: int | None, *, gain: float | None = None, window: int = 10_000, rtt_ms: float = 100
) -> tuple[Pacer, Rated]:
    """Return a pacer of packets of 1000 bytes, 2500 at once; it has begun."""
    controller = Rated(window, rate_bps)
    rtt = RttEstimator(initial_ns=ms(333))
    rtt.on_sample(ms(rtt_ms))
    made = Pacer(controller, rtt, gain=gain, burst_bytes=2500, packet_bytes=1000)
    made.begin()
    return made, controller


class TestPacer:
    """At 8 Mbit/s a byte takes a microsecond, and a full packet a millisecond."""

    def test_a_full_packet_leaves_where_the_burst_has_room_for_it(self) -> None:
        made, _ = pacer(mbps(8))
        for _ in range(2):
            assert made.allows(0)
            made.on_sent(1000, 0)
        # 2000 are in the bucket: 500 of them have to leave.
        assert (made.allows(ms(0.5) - 1), made.due_at_ns) == (False, ms(0.5))
        made.begin()
        assert (made.allows(ms(0.5)), made.due_at_ns) == (True, None)

    def test_a_part_leaves_sooner_and_a_larger_one_with_an_empty_bucket(self) -> None:
        made, _ = pacer(mbps(8))
        made.on_sent(1000, 0)
        made.on_sent(1000, 0)
        assert (made.allows_part(500, 0), made.due_at_ns) == (True, None)
        assert (made.allows_part(600, 0), made.due_at_ns) == (False, ms(0.1))
        assert (made.allows_part(2500, 0), made.due_at_ns) == (False, ms(2))
        assert (made.allows_part(2600, 0), made.due_at_ns) == (False, ms(2))
        assert made.allows_part(2600, ms(2))

    def test_what_is_sent_takes_its_own_time_and_an_idle_time_is_no_credit(self) -> None:
        made, _ = pacer(mbps(8))
        made.on_sent(500, ms(10))
        assert (made.empty_at_ns, made.ready_at_ns) == (ms(10.5), ms(9))
        made.on_sent(1000, ms(10))
        assert made.empty_at_ns == ms(11.5)

    def test_another_rate_counts_for_what_is_in_the_bucket_too(self) -> None:
        made, controller = pacer(mbps(8))
        made.on_sent(1000, 0)
        made.on_sent(1000, 0)
        controller.rate_bps = mbps(4)
        made.begin()
        # The bucket is empty at 2 ms; 1500 bytes before that are 3 ms now.
        assert (made.ready_at_ns, made.rate_bps) == (-ms(1), mbps(4))
        made.on_sent(1000, 0)
        assert (made.empty_at_ns, made.ready_at_ns) == (ms(4), ms(1))

    def test_without_a_rate_anything_leaves_and_nothing_counts(self) -> None:
        made, controller = pacer(mbps(8))
        for _ in range(9):
            made.on_sent(1000, 0)
        controller.rate_bps = None
        made.begin()
        assert (made.rate_bps, made.allows(0), made.allows_part(9999, 0)) == (None, True, True)
        made.on_sent(1000, ms(50))
        assert made.empty_at_ns == ms(9)

    @pytest.mark.parametrize(
        ("gain", "window", "rtt_ms", "rate_bps"),
        [
            (1.25, 10_000, 100, 1_000_000),  # 80,000 bits in 100 ms, and a quarter more
            (None, 10_000, 100, None),
            (1.0, 0, 100, 1),
            (1.0, 1, 4_000, 2),
            (1.0, 1, 0, 8 * 10**9),  # a round trip of no time counts as one of a nanosecond
        ],
    )
    def test_a_gain_spreads_windows_over_round_trips(
        self, gain: float | None, window: int, rtt_ms: float, rate_bps: int | None
    ) -> None:
        made, _ = pacer(None, gain=gain, window=window, rtt_ms=rtt_ms)
        assert made.rate_bps == rate_bps

    def test_a_gain_waits_for_a_round_trip_time(self) -> None:
        rtt = RttEstimator(initial_ns=ms(333))
        made = Pacer(Rated(9000, None), rtt, gain=1.0, burst_bytes=1000, packet_bytes=1000)
        made.begin()
        assert made.rate_bps is None


class TestBucket:
    """As aioquic's: a quarter of the window, 2 to 16 packets, at 8 Mbit/s 1 ms each."""

    @pytest.mark.parametrize(
        ("window_packets", "n_packets"), [(1, 2), (8, 2), (12, 3), (64, 16), (400, 16)]
    )
    def test_after_a_rest_so_many_packets_leave_at_once(
        self, window_packets: int, n_packets: int
    ) -> None:
        bucket = BucketPacer(datagram_bytes=1000)
        bucket.begin(window_bytes=1000 * window_packets, rate_bps=mbps(8))
        left = 0
        while bucket.ready_at_ns(ms(500)) == ms(500):
            bucket.on_sent(ms(500))
            left += 1
        assert left == n_packets

    def test_what_no_longer_fits_into_a_smaller_bucket_is_gone(self) -> None:
        bucket = BucketPacer(datagram_bytes=1000)
        bucket.begin(window_bytes=64_000, rate_bps=mbps(8))
        assert bucket.ready_at_ns(ms(500)) == ms(500)
        bucket.begin(window_bytes=8000, rate_bps=mbps(8))
        bucket.begin(window_bytes=64_000, rate_bps=mbps(8))
        for _ in range(2):
            bucket.on_sent(ms(500))
        assert bucket.ready_at_ns(ms(500)) == ms(501)


def test_a_packet_of_a_byte_less_than_the_burst_leaves_a_byte_s_time_before_it_is_empty() -> None:
    made, _ = pacer(mbps(8))
    made.on_sent(1000, 0)
    made.on_sent(1000, 0)
    assert (made.allows_part(2499, 0), made.due_at_ns) == (False, ms(2) - 1000)


def test_at_a_bit_per_second_a_large_packet_leaves_when_the_bucket_is_empty() -> None:
    made, _ = pacer(1)
    made.on_sent(1000, 0)
    assert made.empty_at_ns == 8000 * 10**9
    assert not made.allows_part(2500, made.empty_at_ns - 1)
    assert not made.allows_part(2501, made.empty_at_ns - 1)
    assert made.due_at_ns == made.empty_at_ns
    assert made.allows_part(2501, made.empty_at_ns)


class TestBucketOfAnEnd:
    """At 8 Mbit/s a packet takes a millisecond; a quarter of the window is two and a half."""

    def made(self, rate_bps: int | None) -> AioquicPacer:
        rtt = RttEstimator(initial_ns=ms(333))
        controller = Rated(10_000, rate_bps)
        return AioquicPacer(controller, rtt, gain=None, burst_bytes=1000, packet_bytes=1000)

    def test_packets_leave_while_there_is_time_in_the_bucket(self) -> None:
        made = self.made(mbps(8))
        made.begin()
        for _ in range(3):
            assert made.allows_part(1000, ms(500))
            made.on_sent(1000, ms(500))
        assert (made.allows_part(1, ms(500)), made.due_at_ns) == (False, ms(501))
        made.begin()
        assert made.due_at_ns is None
        # Any time that has passed will do.
        assert made.allows_part(1000, ms(500) + 1)

    def test_without_a_rate_nothing_is_paced(self) -> None:
        made = self.made(None)
        made.begin()
        for _ in range(9):
            assert made.allows_part(1000, 0)
            made.on_sent(1000, 0)
