"""What QUIC's recovery tells its controller, and when its timer rings, number by number."""

from __future__ import annotations

from typing import Any

import pytest

from h3sim.transport.quic import QuicPacket, QuicSettings
from h3sim.transport.quic.recovery import AckState, Recovery
from h3sim.values.units import ms
from tests.tcp_pair import FixedWindow
from tests.unit.test_quic_recovery import acknowledge, sender


class Heard(FixedWindow):
    """Notes all that it is told."""

    def __init__(self) -> None:
        super().__init__(10**6)
        self.heard: list[Any] = []

    def on_sent(self, packet: Any, bytes_in_flight: int) -> None:
        self.heard.append(("sent", packet.number, bytes_in_flight))

    def on_acked(
        self, packets: Any, now_ns: int, rtt: Any, bytes_in_flight: int, is_cwnd_underutilized: bool
    ) -> None:
        numbers = [packet.number for packet in packets]
        self.heard.append(("acked", numbers, now_ns, bytes_in_flight, is_cwnd_underutilized))

    def on_lost(self, packets: Any, now_ns: int, bytes_in_flight: int, next_number: int) -> None:
        numbers = [packet.number for packet in packets]
        self.heard.append(("lost", numbers, now_ns, bytes_in_flight, next_number))

    def on_congestion_experienced(self, sent_at_ns: int, now_ns: int) -> None:
        self.heard.append(("marked", sent_at_ns, now_ns))

    def on_persistent_congestion(self, now_ns: int) -> None:
        self.heard.append(("persistent", now_ns))


def heard_by(
    *sent_at_ms: float, has_persistent_congestion: bool = True
) -> tuple[Recovery, list[Any]]:
    """Return the recovery of an end whose packets of 1200 bytes left then, and what it told."""
    controller = Heard()
    recovery = Recovery(
        controller,
        QuicSettings(has_persistent_congestion=has_persistent_congestion),
        peer_max_ack_delay_ns=ms(25),
    )
    for at_ms in sent_at_ms:
        send(recovery, at_ms)
    return recovery, controller.heard


def send(recovery: Recovery, at_ms: float) -> QuicPacket:
    packet = QuicPacket(recovery.next_number, ms(at_ms), 1200, [], None, (), True)
    recovery.next_number += 1
    recovery.on_sent(packet)
    return packet


def test_the_controller_hears_of_each_packet_with_what_was_in_flight() -> None:
    """Losses before what the same ACK acknowledges, which is told without them."""
    recovery, heard = heard_by(0, 0, 0, 0, 0)
    assert heard == [("sent", number, 1200 * (number + 1)) for number in range(5)]
    heard.clear()
    assert acknowledge(recovery, (3, 3), at_ms=100) == [0]
    assert heard == [
        ("lost", [0], ms(100), 4 * 1200, 5),
        ("acked", [3], ms(100), 4 * 1200, False),
    ]
    assert (recovery.bytes_in_flight, recovery.take_lost()) == (3 * 1200, [0])
    heard.clear()
    recovery.mark_app_limited()
    assert acknowledge(recovery, (1, 4), at_ms=101) == []
    assert heard == [("acked", [1, 2, 4], ms(101), 3 * 1200, True)]
    assert recovery.bytes_in_flight == 0


def test_the_controller_hears_of_new_marks_before_what_the_ack_acknowledges_or_loses() -> None:
    """RFC 9002 §§ A.7, B.7: with the time at which the newest packet was sent."""
    recovery, heard = heard_by(0, 1, 2, 3, 4, 5)
    heard.clear()
    for number, ce_count in ((0, 0), (1, 1), (2, 1), (5, 3)):
        recovery.on_ack(((number, number),), 0, ms(100 + number), ce_count)
    assert [reported[:2] for reported in heard] == [
        ("acked", [0]),
        ("marked", ms(1)),
        ("acked", [1]),
        ("acked", [2]),
        ("marked", ms(5)),
        ("acked", [5]),
    ]
    # An ACK that tells nothing new of packets tells nothing of marks either.
    recovery.on_ack(((5, 5),), 0, ms(110), 9)
    assert len(heard) == 6


def test_all_spans_of_an_ack_are_taken_in_rising_order() -> None:
    recovery, heard = heard_by(*[0] * 12)
    heard.clear()
    acknowledge(recovery, (10, 11), (8, 8), (6, 6), (4, 4), (1, 2), at_ms=100)
    assert [reported[1] for reported in heard if reported[0] == "acked"] == [
        [1, 2, 4, 6, 8, 10, 11]
    ]


def test_what_leaves_after_there_was_nothing_to_send_is_limited_until_that_has_arrived() -> None:
    """draft-cheng-iccrg-delivery-rate-estimation § 3.4: app_limited is delivered and in flight."""
    recovery, _ = heard_by()
    first, second = send(recovery, 0), send(recovery, 0)
    assert (first.is_app_limited, second.is_app_limited) == (False, False)
    recovery.mark_app_limited()
    assert send(recovery, 1).is_app_limited
    acknowledge(recovery, (0, 0), at_ms=100)
    assert send(recovery, 101).is_app_limited
    acknowledge(recovery, (0, 1), at_ms=102)
    assert send(recovery, 103).is_app_limited  # until more than that has arrived
    acknowledge(recovery, (0, 2), at_ms=103)
    assert not send(recovery, 104).is_app_limited


def test_when_what_was_behind_is_acknowledged_no_loss_is_due_any_more() -> None:
    """RFC 9002 § A.10; then the probe timeout counts, of the packet that left at 50 ms."""
    recovery, _ = heard_by(0, 0, 50)
    acknowledge(recovery, (1, 1), at_ms=100)
    assert recovery.due_at_ns == ms(112.5)
    acknowledge(recovery, (0, 1), at_ms=104)
    assert recovery.due_at_ns == ms(50 + 100 + 4 * 50 + 25)


def test_of_several_that_may_be_lost_the_timer_is_that_of_the_first() -> None:
    recovery, _ = heard_by(0, 1, 2)
    acknowledge(recovery, (2, 2), at_ms=102)
    assert recovery.due_at_ns == ms(112.5)
    assert [packet.number for packet in recovery.on_timer(ms(112.5)) or ()] == [0]
    assert recovery.due_at_ns == ms(113.5)


def test_doubling_ends_at_a_minute_by_default() -> None:
    recovery, _ = heard_by(0)
    for _ in range(10):
        at_ns = recovery.due_at_ns
        assert at_ns is not None
        recovery.on_timer(at_ns)
    assert recovery.due_at_ns == at_ns + ms(60_000)


@pytest.mark.parametrize("is_known", [True, False])
def test_congestion_is_not_called_persistent_where_it_is_not_known(is_known: bool) -> None:
    recovery, heard = heard_by(
        0, 200, 700, 1300, 1310, 1310, 1310, has_persistent_congestion=is_known
    )
    acknowledge(recovery, (0, 0), at_ms=100)
    assert acknowledge(recovery, (4, 6), at_ms=1400) == [1, 2, 3]
    assert (("persistent", ms(1400)) in heard) is is_known


def test_congestion_is_not_persistent_without_a_sample() -> None:
    """RFC 9002 § 7.6.2: the largest number here was an ACK alone, so there was none."""
    recovery, reported = sender(0, 5000, 5000, 5000, 5000)
    assert acknowledge(recovery, (4, 9), at_ms=5100) == [0, 1]
    assert reported.persistent_at_ns == []
    assert not recovery.rtt.has_sample


@pytest.mark.parametrize(("first_ms", "is_persistent"), [(100, False), (100.000001, True)])
def test_what_was_sent_until_the_first_sample_is_no_part_of_the_period(
    first_ms: float, is_persistent: bool
) -> None:
    """The sample is of 100 ms. From 700 to 1300 ms is less than 851.25, and from 100 on more.

    Another packet, which was sent at 50 ms, is lost with them, and left out.
    """
    recovery, reported = sender(0, 50, first_ms, 700, 1300, 1310, 1310, 1310)
    acknowledge(recovery, (0, 0), at_ms=100)
    assert acknowledge(recovery, (5, 7), at_ms=1400) == [1, 2, 3, 4]
    assert bool(reported.persistent_at_ns) is is_persistent


# The receiving side


def test_an_ack_carries_the_delay_of_the_largest_packet_if_it_arrived_in_order() -> None:
    state = AckState(every=2, max_delay_ns=ms(25))
    state.on_packet(0, ms(100), True)
    state.on_packet(1, ms(110), True)
    assert state.largest_at_ns == ms(110)


def test_after_an_ack_packets_are_counted_from_the_beginning() -> None:
    state = AckState(every=3, max_delay_ns=ms(25))
    for number in range(2):
        state.on_packet(number, 0, True)
    state.take()
    due = []
    for number in range(2, 5):
        state.on_packet(number, ms(1), True)
        due.append(state.due_at_ns)
    assert due == [ms(26), ms(26), ms(1)]


@pytest.mark.parametrize(
    ("reported_to", "spans"),
    [
        (0, ((8, 9), (5, 6), (1, 2))),
        (1, ((8, 9), (5, 6), (2, 2))),
        (2, ((8, 9), (5, 6))),
        (5, ((8, 9), (6, 6))),
        (8, ((9, 9),)),
        (9, ((8, 9), (5, 6), (1, 2))),  # one range at least must remain
    ],
)
def test_ranges_that_the_peer_knows_are_not_reported_again(reported_to: int, spans: Any) -> None:
    """RFC 9000 §§ 13.2.4, 19.3."""
    state = AckState(every=2, max_delay_ns=25)
    for number in (1, 2, 5, 6, 8, 9):
        state.on_packet(number, 0, True)
    assert state.take() == ((8, 9), (5, 6), (1, 2))
    state.forget(reported_to)
    assert state.take() == spans
