"""RFC 9002 by hand: thresholds, round-trip times and persistent congestion; and ACK state."""

from __future__ import annotations

from typing import Any

import pytest

from h3sim.transport.quic import QuicPacket, QuicSettings
from h3sim.transport.quic.recovery import AckState, Recovery
from h3sim.transport.quic.settings import Undo
from h3sim.transport.rtt import RttEstimator
from h3sim.values.units import ms
from tests.tcp_pair import FixedWindow


class ResultTable(FixedWindow):
    """Notes what it hears of losses."""

    def __init__(self) -> None:
        super().__init__(10**6)
        self.persistent_at_ns: list[Any] = []

    def on_lost(self, packets: Any, now_ns: int, bytes_in_flight: Any, next_number: Any) -> None:
        self.lost.append([packet.number for packet in packets])

    def on_persistent_congestion(self, now_ns: int) -> None:
        self.persistent_at_ns.append(now_ns)


def sender(*sent_at_ms: Any, **settings: Any) -> Any:
    """Return the recovery of an end whose packets 0, 1, ... left then, and who is told."""
    reported = ResultTable()
    recovery = Recovery(reported, QuicSettings(**settings), peer_max_ack_delay_ns=ms(25))
    for number, at_ms in enumerate(sent_at_ms):
        recovery.next_number = number + 1
        recovery.on_sent(QuicPacket(number, ms(at_ms), 1200, [], None, (), True))
    return recovery, reported


def acknowledge(recovery: Any, *spans: Any, at_ms: float, delay_ms: float = 0) -> list[Any]:
    """Return the numbers that an ACK makes known as lost."""
    _, lost = recovery.on_ack(spans, ms(delay_ms), ms(at_ms))
    return [packet.number for packet in lost]


@pytest.mark.parametrize(("acked", "lost"), [(2, []), (3, [0]), (4, [0, 1])])
def test_a_packet_is_lost_when_the_third_behind_it_is_acknowledged(acked: Any, lost: Any) -> None:
    """RFC 9002 § 6.1.1: kPacketThreshold is 3."""
    recovery, _ = sender(0, 0, 0, 0, 0)
    assert acknowledge(recovery, (acked, acked), at_ms=100) == lost


@pytest.mark.parametrize(
    ("latest_ms", "smoothed_ms"),
    [
        (124, (7 * 100 + 124) / 8),  # less than the shortest, 100, and 25: as it is
        (125, (7 * 100 + 100) / 8),  # exactly: without the delay
        (133, (7 * 100 + 108) / 8),
    ],
)
def test_a_delay_is_taken_off_where_what_is_left_is_not_below_the_shortest(
    latest_ms: float, smoothed_ms: float
) -> None:
    """RFC 9002 § 5.3: if (latest_rtt >= min_rtt + ack_delay)."""
    rtt = RttEstimator(initial_ns=ms(333))
    rtt.on_sample(ms(100))
    rtt.on_sample(ms(latest_ms), ms(25))
    assert rtt.smoothed_rtt_ns == ms(smoothed_ms)


def test_a_reported_delay_counts_up_to_the_max_ack_delay_of_the_peer() -> None:
    """RFC 9002 § 5.3: the lesser of the acknowledgment delay and max_ack_delay, 25 ms here."""
    recovery, _ = sender(0, 100)
    acknowledge(recovery, (0, 0), at_ms=100)
    acknowledge(recovery, (0, 1), at_ms=300, delay_ms=80)
    assert recovery.rtt.smoothed_rtt_ns == ms((7 * 100 + 200 - 25) / 8)
    assert recovery.rtt.rttvar_ns == ms((3 * 50 + 75) / 4)


@pytest.mark.parametrize(
    ("spans", "lost", "is_persistent"),
    [
        (((4, 6),), [1, 2, 3], True),
        # Packet 2 came: what was lost before it and behind it does not make one period.
        (((4, 6), (2, 2)), [1, 3], False),
    ],
)
def test_congestion_is_persistent_only_if_nothing_in_between_was_acknowledged(
    spans: Any, lost: Any, is_persistent: bool
) -> None:
    """RFC 9002 § 7.6.2; by the second sample, 90 ms, the period is 3 * (98.75 + 4 * 40 + 25) ms."""
    recovery, reported = sender(0, 200, 700, 1300, 1310, 1310, 1310)
    acknowledge(recovery, (0, 0), at_ms=100)
    assert acknowledge(recovery, *spans, at_ms=1400) == lost
    assert 3 * (98.75 + 4 * 40 + 25) < 1300 - 200
    assert reported.persistent_at_ns == ([ms(1400)] if is_persistent else [])


@pytest.mark.parametrize(
    ("first_ms", "is_persistent"), [(448, True), (448.75, False), (449, False)]
)
def test_congestion_is_persistent_after_three_probe_timeouts(
    first_ms: float, is_persistent: bool
) -> None:
    """As above: more than 851.25 ms; from 448 to 1300 ms is enough and from 448.75 on is not."""
    recovery, reported = sender(0, first_ms, 700, 1300, 1310, 1310, 1310)
    acknowledge(recovery, (0, 0), at_ms=100)
    assert acknowledge(recovery, (4, 6), at_ms=1400) == [1, 2, 3]
    assert bool(reported.persistent_at_ns) is is_persistent


@pytest.mark.parametrize("is_known", [True, False])
def test_before_the_first_ack_congestion_is_persistent_only_where_the_path_was_known(
    is_known: bool,
) -> None:
    """RFC 9002 § 7.6.2 asks for a sample before; a connection that stood already brings one.

    By 100 ms twice the period is 3 * (100 + 4 * 37.5 + 25) ms, which is below 900.
    """
    recovery, reported = sender(0, 300, 900, 910, 910, 910)
    if is_known:
        recovery.on_path_rtt(ms(100))
    assert acknowledge(recovery, (3, 5), at_ms=1010) == [0, 1, 2]
    assert reported.persistent_at_ns == ([ms(1010)] if is_known else [])


def test_what_was_forgotten_is_not_reported_again_when_an_older_ack_is_acknowledged() -> None:
    """RFC 9000 § 13.2.4; acknowledgements of ACKs may come out of order."""
    state = AckState(every=2, max_delay_ns=25)
    for number in range(10):
        state.on_packet(number, number, True)
    state.forget(5)
    state.forget(3)
    assert state.take() == ((6, 9),)


@pytest.mark.parametrize(
    ("settings", "acked", "lost"),
    [
        ({"packet_threshold": 1}, 2, [0, 1]),
        ({"packet_threshold": 6}, 5, []),
        ({"packet_threshold": 6}, 6, [0]),
        ({"packet_threshold": None}, 9, []),
    ],
)
def test_a_packet_is_lost_when_as_many_behind_it_as_the_stack_says_are_acknowledged(
    settings: Any, acked: int, lost: Any
) -> None:
    recovery, _ = sender(*[0] * 10, **settings)
    assert acknowledge(recovery, (acked, acked), at_ms=100) == lost


@pytest.mark.parametrize(("time_threshold", "due_ms"), [(1.0, 100), (1.25, 125), (2.0, 200)])
def test_an_overtaken_packet_is_lost_after_as_many_round_trips_as_the_stack_says(
    time_threshold: float, due_ms: float
) -> None:
    recovery, _ = sender(0, 50, time_threshold=time_threshold)
    acknowledge(recovery, (1, 1), at_ms=150)
    if due_ms <= 150:
        assert recovery.take_lost() == [0]
    else:
        assert recovery.due_at_ns == ms(due_ms)


@pytest.mark.parametrize(
    ("rule", "lost_then"),
    [
        ("fixed", [10, 11, 12, 13, 14, 15, 16]),
        ("quiche", [10, 11, 12, 13]),  # 5 had been overtaken by 0 when it arrived: 6 + 0
        ("mvfst", [10, 11, 12, 13, 14, 15]),  # 0 was declared lost by 3 behind it: now 4
        ("quicly", []),
    ],
)
def test_the_packet_threshold_adapts_when_a_packet_arrives_that_was_declared_lost(
    rule: str, lost_then: Any
) -> None:
    """Packet 0 arrives behind 5; the threshold is then 6 in quiche and 4 in mvfst."""
    recovery, _ = sender(*[0] * 6, *[101] * 14, reordering=rule)
    assert acknowledge(recovery, (3, 3), at_ms=100) == [0]
    acknowledge(recovery, (0, 5), at_ms=101)
    acknowledge(recovery, (6, 9), (0, 5), at_ms=101)
    assert acknowledge(recovery, (19, 19), (0, 9), at_ms=202) == lost_then


def test_quiche_raises_its_packet_threshold_to_20_at_most() -> None:
    recovery, _ = sender(*[0] * 100, *[150] * 50, reordering="quiche")
    assert acknowledge(recovery, (50, 99), at_ms=100) == list(range(50))
    acknowledge(recovery, (0, 99), at_ms=150)
    assert acknowledge(recovery, (130, 130), at_ms=250) == list(range(100, 111))


class Undone(ResultTable):
    """Counts how often a reduction is undone."""

    n_undone = 0
    ssthresh = 0

    def on_spurious_loss(self, now_ns: int) -> None:
        self.n_undone += 1


@pytest.mark.parametrize(
    ("undo", "ssthresh", "spans", "n_undone"),
    [
        ("none", 0, ((0, 5),), 0),
        ("episode", 0, ((1, 5),), 0),
        ("episode", 0, ((0, 5),), 1),
        ("episode", None, ((0, 5),), 1),
        ("quiche", 0, ((1, 5),), 1),
        ("quiche", None, ((1, 5),), 0),
    ],
)
def test_a_reduction_is_undone_when_its_losses_arrive(
    undo: str, ssthresh: Any, spans: Any, n_undone: int
) -> None:
    """RFC 9438 § 4.9.2: if all were spurious; quiche: if one was, but not into slow start."""
    controller = Undone()
    controller.ssthresh = ssthresh
    recovery = Recovery(controller, QuicSettings(undo=Undo(undo)), peer_max_ack_delay_ns=ms(25))
    for number in range(6):
        recovery.next_number = number + 1
        recovery.on_sent(QuicPacket(number, 0, 1200, [], None, (), True))
    recovery.is_cwnd_underutilized = True
    assert acknowledge(recovery, (4, 4), at_ms=100) == [0, 1]
    acknowledge(recovery, *spans, at_ms=101)
    assert controller.n_undone == n_undone


@pytest.mark.parametrize(("n_lost", "n_undone"), [(1, 1), (2, 0)])
def test_quiche_undoes_a_reduction_by_a_single_loss(n_lost: int, n_undone: int) -> None:
    """rollback_threshold in cubic.rs: 20 % of a window of 10 packets, 2."""
    controller = Undone()
    controller.congestion_window = 10 * 1280
    controller.ssthresh = 0
    recovery = Recovery(controller, QuicSettings(undo=Undo.QUICHE), peer_max_ack_delay_ns=ms(25))
    for number in range(8):
        if number == 6:
            assert acknowledge(recovery, (n_lost, 5), at_ms=100) == list(range(n_lost))
        recovery.next_number = number + 1
        recovery.on_sent(QuicPacket(number, ms(100 * (number // 6)), 1200, [], None, (), True))
    acknowledge(recovery, (6, 6), (n_lost, 5), at_ms=200)
    assert controller.n_undone == n_undone
