"""What QUIC's ends keep to be quick agrees with what it comes to when worked out anew."""

from __future__ import annotations

import random
from typing import Any

import pytest

from h3sim.http import StreamSender
from h3sim.schedulers import RoundRobinScheduler
from h3sim.signals import H2Priority
from h3sim.transport.congestion import ControllerSettings, make_controller
from h3sim.transport.flow_control import FlowReceiver
from h3sim.transport.link import RandomLoss
from h3sim.transport.quic import QuicSettings
from h3sim.transport.quic.packets import QuicPacket, StreamFrameHeader, varint_bytes
from h3sim.transport.quic.recovery import AckState, Recovery


def spans_of(numbers: Any) -> Any:
    """Return sets of numbers as an ACK has them, without a limit."""
    spans: list[Any] = []
    for number in sorted(numbers):
        if spans and spans[-1][1] == number - 1:
            spans[-1] = (spans[-1][0], number)
        else:
            spans.append((number, number))
    return tuple(reversed(spans))


@pytest.mark.parametrize("seed", range(10))
def test_an_ack_reports_the_last_eight_spans_whatever_the_order_of_arrival(seed: int) -> None:
    source = random.Random(seed)
    numbers = [number for number in range(120) if source.random() < 0.8]
    for position in range(0, len(numbers), 4):  # packets overtake, and some come twice
        part = numbers[position : position + 4]
        source.shuffle(part)
        numbers[position : position + 4] = part
    state = AckState(every=2, max_delay_ns=25)
    seen = set()
    for now_ns, number in enumerate([*numbers, *numbers[::7]]):
        assert state.on_packet(number, now_ns, True) is (number not in seen)
        seen.add(number)
        if source.random() < 0.5:
            assert state.take() == spans_of(seen)[:8]


@pytest.mark.parametrize(("stream_window", "connection_window"), [(100, 150), (99, 1000), (1, 7)])
def test_a_limit_is_raised_once_more_than_half_of_its_window_is_used(
    stream_window: Any, connection_window: Any
) -> None:
    source = random.Random(0)
    flow = FlowReceiver(stream_window=stream_window, connection_window=connection_window)
    ends: dict[Any, Any] = {}
    limits: dict[Any, Any] = {}
    connection = connection_window
    for _ in range(500):
        stream_id = source.choice([0, 4, 8])
        end = max(0, ends.get(stream_id, 0) + source.randint(-10, 20))
        expected = []
        if end > ends.get(stream_id, 0):
            ends[stream_id] = end
            if connection - sum(ends.values()) < max(1, connection_window // 2):
                connection = sum(ends.values()) + connection_window
                expected.append((None, connection))
            if limits.get(stream_id, stream_window) - end < max(1, stream_window // 2):
                limits[stream_id] = end + stream_window
                expected.append((stream_id, end + stream_window))  # type: ignore[arg-type]
        assert list(flow.on_bytes(stream_id, end)) == expected


def test_a_frame_header_is_a_type_an_id_an_offset_where_there_is_one_and_a_length() -> None:
    edges = [0, 1, 63, 64, 16_383, 16_384, 2**30 - 1, 2**30]
    for stream_id in edges:
        for offset in edges:
            offset_bytes = varint_bytes(offset) if offset else 0
            expected = 1 + varint_bytes(stream_id) + offset_bytes + 2
            assert StreamFrameHeader().measure(stream_id, offset) == expected


def test_random_loss_takes_one_number_for_each_packet() -> None:
    loss, source = RandomLoss(0.3, random.Random(1)), random.Random(1)
    assert [loss.is_lost() for _ in range(1000)] == [source.random() < 0.3 for _ in range(1000)]


def test_a_server_has_data_exactly_as_long_as_it_gives_something_out() -> None:
    server = StreamSender(RoundRobinScheduler(), turn_bytes=1000, retains_until_acked=True)
    server.open(0, H2Priority())
    assert (server.has_data, server.take()) == (False, None)
    server.send(0, 1500)
    assert (server.has_data, server.take()) == (True, (0, 0, 1000))
    assert (server.has_data, server.take()) == (True, (0, 1000, 500))
    assert (server.has_data, server.take()) == (False, None)
    server.on_lost(0, 0, 1000)
    assert (server.has_data, server.take()) == (True, (0, 0, 1000))
    assert (server.has_data, server.take()) == (False, None)


@pytest.mark.parametrize("seed", range(5))
def test_the_loss_timer_is_what_it_would_be_if_worked_out_anew(seed: int) -> None:
    """RFC 9002 § 6.2.1: PTO after the last ack-eliciting packet, unless a loss is due before."""
    source = random.Random(seed)
    controller = make_controller("cubic", ControllerSettings(max_datagram_bytes=1200))
    recovery = Recovery(
        controller, QuicSettings(initial_rtt_ns=100_000_000), peer_max_ack_delay_ns=25_000_000
    )
    in_flight, last_ns, n_probes = {}, 0, 0
    for now_ns in range(10**7, 3 * 10**9, 10**7):
        is_silent = 10**9 < now_ns < 2 * 10**9  # so that it probes several times in a row
        if not is_silent and source.random() < 0.7:
            packet = QuicPacket(recovery.next_number, now_ns, 1200, [], None, (), True)
            recovery.next_number += 1
            recovery.on_sent(packet)
            in_flight[packet.number], last_ns = packet, now_ns
        if not is_silent and in_flight and source.random() < 0.4:
            number = source.choice(list(in_flight))
            acked, lost = recovery.on_ack(((number, number),), 0, now_ns)
            assert [packet.number for packet in acked] == [number]
            n_probes = 0
            for packet in (*acked, *lost):
                del in_flight[packet.number]
        elif recovery.due_at_ns is not None and recovery.due_at_ns <= now_ns:
            lost = recovery.on_timer(now_ns)  # type: ignore[assignment]
            if lost is None:  # the timeout counts from the probe on, sent or not
                n_probes += 1  # type: ignore[unreachable]
                last_ns = now_ns
            for packet in lost or ():
                del in_flight[packet.number]
        assert recovery.oldest is (in_flight[min(in_flight)] if in_flight else None)
        largest = recovery._largest_acked
        delay_ns = recovery.rtt.loss_delay_ns()
        dues = [p.sent_at_ns + delay_ns for p in in_flight.values() if p.number < largest]
        timeout_ns = recovery.rtt.probe_timeout_ns(25_000_000) << n_probes
        expected = min(dues) if dues else last_ns + timeout_ns if in_flight else None
        assert recovery.due_at_ns == expected
    assert recovery.next_number > 120
