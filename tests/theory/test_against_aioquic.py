"""Controllers beside those of aioquic, fed with the same packets.

Where aioquic leaves the documents, a test says so, and what is compared is re-derived here.
"""

from __future__ import annotations

import math
import random
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from h3sim.transport.congestion import (
    ControllerSettings,
    CubicController,
    NewRenoController,
    make_controller,
)
from h3sim.transport.rtt import RttEstimator
from h3sim.values.units import NS_PER_S, ms
from tests.unit.congestion_sender import Sent

pytest.importorskip("aioquic")

from aioquic.quic.congestion.cubic import CubicCongestionControl
from aioquic.quic.congestion.reno import RenoCongestionControl

from tests.theory.aioquic_packets import PACKET_BYTES, their_packet

if TYPE_CHECKING:
    from collections.abc import Iterator

SETTINGS = ControllerSettings(max_datagram_bytes=PACKET_BYTES)


class Pair:
    """Our controller and theirs; times in nanoseconds, the first packet leaves at 1 s."""

    def __init__(self, ours: Any, theirs: Any, *, rtt_ns: int = 100_000_000) -> None:
        self.ours = ours
        self.theirs = theirs
        self.rtt = RttEstimator(initial_ns=rtt_ns)
        self.rtt.on_sample(rtt_ns)
        self.flying: dict[Any, Any] = {}
        self._flying_bytes = 0
        self.next_number = 0
        self.now_ns = NS_PER_S
        self.others_bytes = PACKET_BYTES
        """What is in flight besides, so that the sender is not idle."""
        self.measured_ns = None

    def measure(self, rtt_ms: float) -> None:
        """Let the next ACK bring this sample."""
        self.rtt.latest_rtt_ns = self.measured_ns = ms(rtt_ms)  # type: ignore[assignment]
        self.now_ns += ms(2)

    @property
    def windows(self) -> Any:
        return self.ours.congestion_window, self.theirs.congestion_window

    @property
    def in_flight(self) -> Any:
        return self.others_bytes + self._flying_bytes

    def send(self, size_bytes: int = PACKET_BYTES) -> None:
        packet = Sent(self.next_number, self.now_ns, size_bytes)
        self.flying[packet.number] = packet
        self._flying_bytes += size_bytes
        self.next_number += 1
        self.ours.on_sent(packet, bytes_in_flight=self.in_flight)
        self.theirs.on_packet_sent(packet=self._their(packet))

    def ack(self, numbers: Any) -> None:
        before = self.in_flight
        packets = self._landed(numbers)
        self.ours.on_acked(
            packets,
            now_ns=self.now_ns,
            rtt=self.rtt,
            bytes_in_flight=before,
            is_cwnd_underutilized=False,
        )
        now_s = self.now_ns / NS_PER_S
        for packet in packets:
            self.theirs.on_packet_acked(packet=self._their(packet), now=now_s)
        if self.measured_ns is not None:
            self.theirs.on_rtt_measurement(now=now_s, rtt=self.measured_ns / NS_PER_S)  # type: ignore[unreachable]

    def lose(self, numbers: Any) -> None:
        before = self.in_flight
        packets = self._landed(numbers)
        self.ours.on_lost(
            packets, now_ns=self.now_ns, bytes_in_flight=before, next_number=self.next_number
        )
        self.theirs.on_packets_lost(
            packets=[self._their(packet) for packet in packets], now=self.now_ns / NS_PER_S
        )

    def _landed(self, numbers: Any) -> list[Any]:
        """Return these packets, which are not in flight any more."""
        packets = [self.flying.pop(number) for number in sorted(numbers)]
        self._flying_bytes -= sum(packet.size_bytes for packet in packets)
        return packets

    def collapse(self) -> None:
        self.ours.on_persistent_congestion(now_ns=self.now_ns)
        self.theirs.on_persistent_congestion()

    @staticmethod
    def _their(packet: Any) -> Any:
        return their_packet(packet.number, packet.sent_at_ns, packet.size_bytes)


# What may happen: a round trip in which some packets are lost; and seldom, all of them.
ROUNDS = st.lists(
    st.tuples(
        st.integers(1, 40),  # packets sent
        st.sets(st.integers(0, 39), max_size=3),  # which of them are lost
        st.sampled_from([False] * 9 + [True]),  # persistent congestion
    ),
    max_size=30,
)


def play(pair: Any, rounds: Any, *, on_ack: Any = lambda: None) -> Iterator[Any]:
    """Send rounds of packets and yield after each step, with what it was."""
    for count, lost, is_persistent in rounds:
        pair.now_ns += ms(1)
        first = pair.next_number
        for _ in range(count):
            pair.send()
            pair.now_ns += 1000
        pair.now_ns += ms(100)
        lost = {first + position for position in lost if position < count}
        for number in range(first, first + count):
            pair.now_ns += 1000
            if number in lost:
                pair.lose([number])
                yield "lost"
                if is_persistent:
                    pair.collapse()
                    yield "persistent"
            else:
                on_ack()
                pair.ack([number])
                yield "acked"


# NewReno


@given(rounds=ROUNDS)
def test_newreno_is_aioquics_in_slow_start_recovery_losses_and_persistent_congestion(
    rounds: Any,
) -> None:
    """All but the growth in congestion avoidance, which is made equal after each step."""
    pair = Pair(NewRenoController(SETTINGS), RenoCongestionControl(max_datagram_size=PACKET_BYTES))
    for what in play(pair, rounds):
        # RFC 9002 § B.6 lets ssthresh fall below the minimum window; aioquic does not.
        threshold = pair.ours.ssthresh
        if threshold is not None:
            threshold = max(threshold, 2 * PACKET_BYTES)
        if what != "acked":
            # aioquic keeps what was acknowledged towards the window before the loss.
            pair.theirs._congestion_stash = 0
        assert pair.theirs.ssthresh == threshold
        ours, theirs = pair.windows
        is_avoiding = threshold is not None and ours >= threshold
        # aioquic adds a packet when a window was acknowledged, we add its share per packet.
        assert abs(ours - theirs) <= (PACKET_BYTES if is_avoiding else 0)
        pair.theirs.congestion_window = ours


@given(rounds=ROUNDS)
def test_newreno_stays_within_two_packets_of_aioquic(rounds: Any) -> None:
    """What each is ahead within a window's growth is at most a packet, and halved by a loss."""
    pair = Pair(NewRenoController(SETTINGS), RenoCongestionControl(max_datagram_size=PACKET_BYTES))
    for what in play(pair, rounds):
        if what != "acked":
            pair.theirs._congestion_stash = 0  # See above.
        if what == "persistent":
            pair.theirs.ssthresh = pair.ours.ssthresh
        ours, theirs = pair.windows
        assert abs(ours - theirs) <= 2 * PACKET_BYTES


def test_newreno_adds_the_share_of_rfc_9002_for_each_packet() -> None:
    """max_datagram_size · acked / window (RFC 9002 § B.5), with no byte lost to rounding."""
    ours = NewRenoController(SETTINGS)
    pair = Pair(ours, RenoCongestionControl(max_datagram_size=PACKET_BYTES))
    pair.send()
    pair.now_ns += ms(100)
    pair.lose([0])
    exact = Fraction(ours.congestion_window)
    source = random.Random(1)
    for number in range(1, 2000):
        pair.now_ns += ms(1)
        size_bytes = source.randint(40, PACKET_BYTES)
        pair.send(size_bytes)
        pair.ack([number])
        exact += Fraction(PACKET_BYTES * size_bytes / exact).limit_denominator(10**9)
        assert abs(ours.congestion_window - exact) < 2


@given(rounds=ROUNDS, highest_ms=st.sampled_from([50, 60, 120]), seed=st.integers(0, 100))
def test_what_is_named_after_aioquics_reno_is_it_step_by_step(
    rounds: Any, highest_ms: int, seed: int
) -> None:
    """Its growth by whole packets, and its slow start that ends when the delay has risen."""
    pair = Pair(
        make_controller("reno-aioquic", SETTINGS),
        RenoCongestionControl(max_datagram_size=PACKET_BYTES),
    )
    source = random.Random(seed)
    for _ in play(pair, rounds, on_ack=lambda: pair.measure(source.randint(50, highest_ms))):
        assert pair.windows[0] == pair.windows[1]


def test_what_is_named_after_aioquics_reno_leaves_slow_start_with_it() -> None:
    pair = Pair(
        make_controller("reno-aioquic", SETTINGS),
        RenoCongestionControl(max_datagram_size=PACKET_BYTES),
    )
    rtts_ms = iter([*[50] * 20, *[62] * 20, *[63] * 20])
    for _ in play(pair, [(60, set(), False)], on_ack=lambda: pair.measure(next(rtts_ms))):
        assert pair.windows[0] == pair.windows[1]
        assert pair.ours.ssthresh == pair.theirs.ssthresh
    # A quarter above 50 ms in five samples, and this five times
    assert pair.ours.ssthresh == (10 + 49) * PACKET_BYTES


# CUBIC


@given(rounds=ROUNDS, highest_ms=st.sampled_from([50, 60, 120]), seed=st.integers(0, 100))
def test_what_is_named_after_aioquics_cubic_is_it_step_by_step(
    rounds: Any, highest_ms: int, seed: int
) -> None:
    """Both round to bytes; where a cube comes out otherwise in its last bit, that is a byte."""
    pair = Pair(
        make_controller("cubic-aioquic", SETTINGS),
        CubicCongestionControl(max_datagram_size=PACKET_BYTES),
    )
    pair.others_bytes = 0  # what is in flight counts here, and theirs knows of nothing else
    source = random.Random(seed)
    for n_steps, _ in enumerate(
        play(pair, rounds, on_ack=lambda: pair.measure(source.randint(50, highest_ms)))
    ):
        ours, theirs = pair.windows
        assert abs(ours - theirs) <= 1 + n_steps // 10


def test_a_loss_takes_aioquics_window_down_to_0_7_of_what_is_in_flight() -> None:
    controller = make_controller("cubic-aioquic", SETTINGS)
    packets = [Sent(n, NS_PER_S, PACKET_BYTES) for n in range(4)]
    for packet in packets:
        controller.on_sent(packet, bytes_in_flight=4 * PACKET_BYTES)
    # The window is 10 packets, 4 are in flight, 1 of them is lost: 0.7 of 3, and never below 2.
    controller.on_lost(
        packets[:1], now_ns=2 * NS_PER_S, bytes_in_flight=4 * PACKET_BYTES, next_number=4
    )
    assert PACKET_BYTES == 1200
    assert controller.congestion_window == controller.ssthresh == 2520


def test_aioquics_cubic_begins_anew_where_what_was_acknowledged_was_sent_two_seconds_ago() -> None:
    controller = make_controller("cubic-aioquic", SETTINGS)
    rtt = RttEstimator(initial_ns=ms(50))
    rtt.on_sample(ms(50))
    packets = [Sent(n, NS_PER_S, PACKET_BYTES) for n in range(5)]
    controller.on_acked(
        packets,
        now_ns=NS_PER_S + ms(50),
        rtt=rtt,
        bytes_in_flight=6000,
        is_cwnd_underutilized=False,
    )
    for at_ns, window in ((3 * NS_PER_S - 1, 15), (3 * NS_PER_S, 10)):
        controller.on_sent(Sent(9, at_ns, PACKET_BYTES), bytes_in_flight=PACKET_BYTES)
        assert controller.congestion_window == window * PACKET_BYTES


class Rfc9438:
    """CUBIC re-derived, in segments and seconds, without idle times; aioquic differs in that it

    - grows the window in recovery too (§ 4.6 and RFC 9002 § 7.3.2 do not),
    - grows W_est by a whole packet per window from the start (§ 4.3: by 0.529),
    - takes ssthresh from the bytes in flight without those that were lost (§ 4.6: with them, or
      the window),
    - cuts the window, W_est and the target to whole bytes at each step,
    - takes the latest RTT where § 4.2 has the smoothed one,
    - counts a packet of any size as a full one in the cubic regions,
    - sets the window back to the first one after two seconds without an ACK (§ 5.8 does not),
    - and keeps its curve after persistent congestion (§ 4.8: K = 0).
    """

    def __init__(self) -> None:
        self.window = 10.0
        self.ssthresh = math.inf
        self.w_max = self.window_prior = 0.0
        self.epoch_s = None
        self.is_flat = False
        self.recovery_s = -1.0

    def on_acked(self, sent_s: Any, now_s: Any, rtt_s: Any) -> None:
        if sent_s <= self.recovery_s:
            return
        if self.window < self.ssthresh:
            self.window += 1
            return
        if self.epoch_s is None:
            self.epoch_s = now_s
            self.w_est = self.window
            if self.is_flat or self.w_max <= self.window:
                self.w_max = self.window
            self.is_flat = False
            self.k_s = math.cbrt((self.w_max - self.window) / 0.4)
        t_s = now_s - self.epoch_s
        self.w_est += (1 if self.w_est >= self.window_prior else 0.9 / 1.7) / self.window
        if self._curve(t_s) < self.w_est:
            self.window = max(self.window, self.w_est)
        else:
            target = min(max(self._curve(t_s + rtt_s), self.window), 1.5 * self.window)
            self.window += (target - self.window) / self.window

    def on_lost(self, sent_s: Any, now_s: Any) -> bool:
        """Return whether this reduced the window."""
        if sent_s <= self.recovery_s:
            return False
        self.recovery_s = now_s
        self.window_prior = self.window
        self.w_max = self.window * (0.85 if self.window < self.w_max else 1)
        self.ssthresh = self.window = max(self.window * 0.7, 2)
        self.epoch_s = None
        self.is_flat = False
        return True

    def on_persistent_congestion(self) -> None:
        self.window = 2
        self.epoch_s = None
        self.is_flat = True
        self.recovery_s = -1.0

    def _curve(self, t_s: Any) -> Any:
        return 0.4 * (t_s - self.k_s) ** 3 + self.w_max


@given(rounds=ROUNDS, rtt_ms=st.sampled_from([5, 100, 1500]))
def test_cubic_is_the_re_derived_one_step_by_step(rounds: Any, rtt_ms: float) -> None:
    """To a thousandth; the whole bytes that our window has at a loss are taken over."""
    ours = CubicController(SETTINGS)
    expected = Rfc9438()
    rtt = RttEstimator(initial_ns=ms(rtt_ms))
    now_ns = ms(1)
    number = 0
    for count, lost, is_persistent in rounds:
        for position in range(count):
            packet = Sent(number, now_ns, PACKET_BYTES)
            ours.on_sent(packet, bytes_in_flight=10 * PACKET_BYTES)
            number += 1
            now_ns += ms(rtt_ms)
            if position in lost:
                expected.window = ours.congestion_window / PACKET_BYTES
                ours.on_lost([packet], now_ns=now_ns, bytes_in_flight=0, next_number=number)
                if expected.on_lost(packet.sent_at_ns / 1e9, now_ns / 1e9):
                    cut = expected.ssthresh * PACKET_BYTES
                    assert ours.ssthresh == pytest.approx(cut, rel=0.001)
                    expected.window = expected.ssthresh = ours.ssthresh / PACKET_BYTES
                if is_persistent:
                    ours.on_persistent_congestion(now_ns=now_ns)
                    expected.on_persistent_congestion()
            else:
                ours.on_acked(
                    [packet],
                    now_ns=now_ns,
                    rtt=rtt,
                    bytes_in_flight=10 * PACKET_BYTES,
                    is_cwnd_underutilized=False,
                )
                expected.on_acked(packet.sent_at_ns / 1e9, now_ns / 1e9, rtt_ms / 1e3)
            now_ns += 1000
            window = expected.window * PACKET_BYTES
            assert ours.congestion_window == pytest.approx(window, rel=0.001)


@pytest.mark.parametrize("rtt_ms", [100, 200])
def test_cubic_stays_within_1_percent_of_aioquic_along_the_curve_after_a_loss(
    rtt_ms: float,
) -> None:
    """Where the two may be compared: far from Reno's estimate, without idle times, RTTs equal."""
    window = 500 * PACKET_BYTES
    ours = CubicController(
        ControllerSettings(max_datagram_bytes=PACKET_BYTES, initial_window_bytes=window)
    )
    theirs = CubicCongestionControl(max_datagram_size=PACKET_BYTES)
    theirs.congestion_window = window
    theirs.rtt = rtt_ms / 1e3
    pair = Pair(ours, theirs, rtt_ns=ms(rtt_ms))
    pair.send()
    # They reduce what is in flight after the loss, we the window.
    theirs.bytes_in_flight += window
    pair.now_ns += ms(rtt_ms)
    pair.lose([0])
    assert pair.windows == (window * 7 // 10, window * 7 // 10)
    end_ns = pair.now_ns + 2 * round(math.cbrt(500 * 0.3 / 0.4) * 1e9)
    number = 1
    while pair.now_ns < end_ns:
        # The clock of a full window, without its length in packets in flight
        pair.now_ns += ms(rtt_ms) * PACKET_BYTES // ours.congestion_window
        pair.send()
        pair.ack([number])
        number += 1
        assert abs(pair.windows[0] - pair.windows[1]) <= 0.01 * pair.windows[1]
    assert ours.congestion_window > 1.25 * window
