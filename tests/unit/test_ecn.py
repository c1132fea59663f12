"""Explicit congestion notification by hand: RFC 3168 over TCP, RFC 9000 § 13.4 over QUIC."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

import h3sim
from h3sim.transport.congestion import ControllerSettings, make_controller, responds_to_ecn
from h3sim.transport.packets import CE, ECT, NOT_ECT
from h3sim.transport.quic import QuicPacket, QuicSettings
from h3sim.transport.quic.packets import ack_frame_bytes
from h3sim.transport.quic.recovery import AckState, Recovery
from h3sim.transport.tcp import TcpEndpoint, TcpSettings
from h3sim.values.errors import InputError
from h3sim.values.units import ms
from tests.helpers import page_of
from tests.tcp_pair import CLIENT, MSS, SERVER, Pair, ScriptedSource, body_bytes

# QUIC: the receiver


def test_a_mark_is_counted_and_acknowledged_at_once() -> None:
    state = AckState(every=10, max_delay_ns=ms(25))
    for number, ecn in enumerate([ECT, ECT, CE]):
        state.on_packet(number, ms(number), True)
        assert state.due_at_ns == ms(25)  # not yet counted
        state.on_ecn(ecn, ms(number), True)
    assert (state.ect_count, state.ce_count, state.due_at_ns) == (2, 1, ms(2))


def test_a_mark_on_a_packet_that_elicits_no_ack_waits_for_one() -> None:
    state = AckState(every=10, max_delay_ns=ms(25))
    state.on_packet(0, 0, False)
    state.on_ecn(CE, 0, False)
    assert (state.ce_count, state.due_at_ns) == (1, None)


@pytest.mark.parametrize(
    ("ect", "ce", "more"), [(0, 0, 0), (1, 0, 3), (0, 1, 3), (64, 0, 4), (64, 64, 5)]
)
def test_the_counts_lengthen_acks_once_there_are_any(ect: int, ce: int, more: int) -> None:
    """RFC 9000 § 19.3.2: three variable-length integers."""
    state = AckState(every=2, max_delay_ns=0)
    state.ect_count, state.ce_count = ect, ce
    assert state.frame_bytes(((0, 1),)) == ack_frame_bytes(((0, 1),)) + more


# QUIC: the sender


def sender(cc: str, *sent_at_ms: float) -> Recovery:
    """Return a sender with a window of 100,000 bytes, whose packets left then."""
    settings = ControllerSettings(max_datagram_bytes=1000, initial_window_bytes=100_000)
    controller = make_controller(cc, settings)
    recovery = Recovery(controller, QuicSettings(), peer_max_ack_delay_ns=ms(25))
    for number, at_ms in enumerate(sent_at_ms):
        recovery.next_number = number + 1
        recovery.on_sent(QuicPacket(number, ms(at_ms), 1000, [], None, (), True))
    return recovery


@pytest.mark.parametrize(("cc", "window"), [("newreno", 50_000), ("cubic", 70_000)])
def test_new_marks_reduce_the_window_once_per_round_trip(cc: str, window: int) -> None:
    recovery = sender(cc, 0, 0, 100, 101)
    controller = recovery.controller
    recovery.on_ack(((0, 0),), 0, ms(100), 1)
    assert controller.congestion_window == controller.ssthresh == window
    # Sent before the reduction: the same congestion. No growth either, in recovery.
    recovery.on_ack(((0, 2),), 0, ms(200), 2)
    assert controller.congestion_window == window
    # Sent after it: another one.
    recovery.on_ack(((0, 3),), 0, ms(201), 3)
    assert controller.congestion_window == pytest.approx(window * window / 100_000)


def test_marks_that_were_reported_before_reduce_nothing() -> None:
    recovery = sender("newreno", 0, 150, 300)
    recovery.on_ack(((0, 0),), 0, ms(100), 1)
    recovery.on_ack(((0, 1),), 0, ms(250), 1)
    recovery.on_ack(((0, 2),), 0, ms(400), 1)
    assert recovery.controller.ssthresh == 50_000


def test_a_loss_and_a_mark_of_one_round_trip_are_one_event() -> None:
    recovery = sender("newreno", 0, 0, 0, 0, 0)
    _, lost = recovery.on_ack(((3, 4),), 0, ms(100), 1)
    assert [packet.number for packet in lost] == [0, 1]
    assert recovery.controller.congestion_window == 50_000


def test_without_marks_the_window_grows() -> None:
    recovery = sender("newreno", 0, 0)
    recovery.on_ack(((0, 1),), 0, ms(100), 0)
    assert recovery.controller.congestion_window == 102_000


# TCP


def pair_with(marked: Any, *, cc: str = "newreno", n_segments: int = 60, **path: Any) -> Any:
    """Return a transfer in which the segments with these indexes are marked, if they may be."""

    def mark(role: Any, index: Any, segment: Any) -> float:
        if role is SERVER and index in marked and segment.ecn != NOT_ECT:
            segment.ecn = CE
        return 0

    made = ControllerSettings(max_datagram_bytes=MSS, initial_window_bytes=10 * MSS)
    path |= {"delay_ms": mark}
    pair = Pair(server_controller=make_controller(cc, made), **path)
    pair.ends[SERVER] = TcpEndpoint(
        TcpSettings(),
        pair.controllers[SERVER],
        pair.sources[SERVER],
        SERVER,
        h3sim.transport.HandshakeMode.NONE,
        path_rtt_ns=ms(100),
        has_ecn=True,
    )
    pair.put(SERVER, 0, body_bytes(n_segments))
    return pair


def reductions(pair: Pair) -> list[tuple[float, int]]:
    """Return when segments with CWR left, and their sequence numbers in segments."""
    return [(sent.at_ms, sent.segment.seq // MSS) for sent in pair.data() if sent.segment.is_cwr]


def test_a_mark_is_echoed_until_the_sender_has_reduced_its_window() -> None:
    pair = pair_with({0}).run()
    # Ten segments at 0; the first ACK with an echo, of two, is back at 100 ms, and the window is
    # halved to five: eight are in flight. At 100 ms all ACKs come, so new data follows with CWR.
    assert reductions(pair) == [(100, 10)]
    echoes = [sent.at_ms for sent in pair.acks() if sent.segment.is_ece]
    assert echoes == [50] * 5  # what arrives at 150 ms begins with CWR
    assert pair.controllers[SERVER].ssthresh == 5 * MSS


def test_marks_of_one_window_reduce_it_once() -> None:
    pair = pair_with(set(range(10))).run()
    assert reductions(pair) == [(100, 10)]
    assert pair.controllers[SERVER].ssthresh == 5 * MSS


def test_a_mark_behind_cwr_reduces_the_window_again() -> None:
    pair = pair_with({0, 10}).run()
    assert [at_ms for at_ms, _ in reductions(pair)] == [100, 200]
    assert pair.controllers[SERVER].ssthresh == 5 * MSS // 2


def test_a_loss_in_a_window_that_a_mark_has_reduced_does_not_reduce_it_again() -> None:
    pair = pair_with({0}, drop=lambda role, index, segment: role is SERVER and index == 4).run()
    assert pair.controllers[SERVER].ssthresh == 5 * MSS
    assert pair.again()


@pytest.mark.parametrize("cc", ["newreno", "cubic", "cubic-linux"])
def test_without_marks_a_transfer_is_the_one_without_ecn(cc: str) -> None:
    def rows(pair: Pair) -> list[Any]:
        return [(sent.at_ms, sent.segment.seq, sent.segment.size_bytes) for sent in pair.run().sent]

    made = ControllerSettings(max_datagram_bytes=MSS, initial_window_bytes=10 * MSS)
    plain = Pair(server_controller=make_controller(cc, made))
    plain.put(SERVER, 0, body_bytes(60))
    assert rows(pair_with(set(), cc=cc)) == rows(plain)


def test_a_mark_in_a_window_that_a_loss_has_reduced_does_not_reduce_it_again() -> None:
    pair = pair_with({9}, drop=lambda role, index, segment: role is SERVER and index == 0).run()
    assert pair.controllers[SERVER].ssthresh == 5 * MSS
    assert pair.again()


def test_only_new_data_is_capable() -> None:
    """RFC 3168 §§ 6.1.4, 6.1.5: neither ACKs nor retransmissions."""
    pair = pair_with(set(), drop=lambda role, index, segment: role is SERVER and index == 3).run()
    seen: set[int] = set()
    for sent in pair.data():
        assert (sent.segment.ecn == NOT_ECT) == (sent.segment.seq in seen)
        seen.add(sent.segment.seq)
    assert {sent.segment.ecn for sent in pair.acks()} == {NOT_ECT}
    assert pair.again()


def test_a_controller_that_does_not_respond_sends_nothing_that_may_be_marked() -> None:
    pair = pair_with({0}, cc="cubic-quicly").run()
    assert {sent.segment.ecn for sent in pair.sent} == {NOT_ECT}
    assert isinstance(pair.sources[CLIENT], ScriptedSource)


# Loads


PAGE = page_of({"id": "/", "kind": "document", "bytes": 1_000_000})


def load(**options: Any) -> h3sim.Load:
    settings: dict[str, Any] = {"network": "4g", "cc": "newreno", "queue_bytes": 10**6, **options}
    return h3sim.simulate(PAGE, scheme="fifo", record_packets=True, **settings)


@pytest.mark.parametrize("queue_discipline", ["codel", "fq-codel"])
@pytest.mark.parametrize("transport", ["quic", "tcp", "http1"])
def test_a_load_with_ecn_loses_nothing_to_codel(transport: str, queue_discipline: str) -> None:
    options: dict[str, Any] = {"transport": transport, "queue_discipline": queue_discipline}
    assert None in load(**options).trace.packet_rows.columns.arrived_at_ns
    capable = load(**options, ecn=True)
    assert None not in capable.trace.packet_rows.columns.arrived_at_ns
    assert reduced(capable)


def reduced(load: h3sim.Load) -> list[int]:
    """Return when the window was reduced."""
    rows = load.trace.recovery
    return [
        later.at_ns
        for row, later in itertools.pairwise(rows)
        if later.congestion_window < row.congestion_window
    ]


@pytest.mark.parametrize("cc", ["newreno", "cubic", "cubic-linux"])
@pytest.mark.parametrize("transport", ["quic", "tcp"])
def test_marks_reduce_a_window_at_most_once_per_round_trip(transport: str, cc: str) -> None:
    times = reduced(load(transport=transport, cc=cc, queue_discipline="codel", ecn=True))
    assert times
    for before, after in itertools.pairwise(times):
        assert after - before >= ms(60)  # the round-trip time of the network without queues


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"network": "4g"}, "ecn: needs a queue that marks"),
        ({"network": "4g", "queue_discipline": "codel", "cc": "bbr"}, "ecn: needs a controller"),
        ({"network": "marx-2019"}, "ecn: needs links"),
    ],
)
def test_ecn_without_effect_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        h3sim.simulate("creative", **options, ecn=True)


def test_the_controllers_that_respond() -> None:
    names = ["newreno", "cubic", "cubic-linux", "cubic-quicly", "reno-aioquic", "constant"]
    assert [name for name in names if responds_to_ecn(name)] == names[:3]
