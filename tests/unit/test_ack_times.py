"""A client's log shows when the server got its acknowledgements, if they requeue streams."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import pytest

import h3sim
from h3sim.constants import MAX_VARINT
from h3sim.results.configuration import write_load_qlog
from h3sim.schedulers import Mixed, Quantum
from h3sim.schemes import SchedulerKind
from h3sim.signals import Eps
from h3sim.study import identification
from h3sim.study.ack_times import AckTimeSearch, with_ack_times, with_lost_frames
from h3sim.study.identification import Mechanism, identify, predictions
from h3sim.study.send_history import HistorySearch, SchedulerCall
from h3sim.study.send_order import Acknowledgement, SendOrder, Step, StepKind, send_orders
from tests.logs import client_order
from validation.identified import is_history

if TYPE_CHECKING:
    from pathlib import Path

REQUEUING = Mechanism(
    kind=SchedulerKind.EPS, mixed=Mixed.ALL_SHARE, turn=Quantum(packets=3), requeues=True
)
STREAMS = (0, 4, 8)
SPARE_PACKETS = 4
"""Packets from one that is acknowledged to the first that may know of it."""


def _sent(first_packets: list[int], *, lost: tuple[int, ...] = (), n_packets: int) -> SendOrder:
    """Return the log of a server that gets the acknowledgement of each packet at these times.

    First packets are given in the order of acknowledgements; lost packets have none, and are
    declared lost by that of the third packet after them.
    """
    scheduler = REQUEUING.new(1000)
    steps: list[Step] = []
    for stream_id in STREAMS:
        scheduler.open(stream_id, Eps())
        scheduler.activate(stream_id)
        steps.append(Step(StepKind.OPEN, 0, stream_id, signal=Eps()))
        steps.append(Step(StepKind.ACTIVATE, 0, stream_id))
        steps.append(Step(StepKind.READY, 0, stream_id))
    acked = [number for number in range(n_packets) if number not in lost][: len(first_packets)]
    acknowledgements = [
        Acknowledgement(
            (number,),
            tuple(gone for gone in lost if gone + 3 == number),
            number + SPARE_PACKETS,
        )
        for number in acked
    ]
    carried: dict[int, int] = {}
    offsets = dict.fromkeys(STREAMS, 0)
    for number in range(n_packets):
        for ack, first in zip(acknowledgements, first_packets, strict=True):
            if first == number:
                for gone in (*ack.acked, *ack.lost):
                    scheduler.deactivate(carried[gone])
                    scheduler.activate(carried[gone])
        pick = scheduler.pick()
        assert pick is not None
        stream_id = carried[number] = pick
        scheduler.charge(stream_id, 1000)
        step = Step(StepKind.SENT, number, stream_id, 1000, number, offset=offsets[stream_id])
        steps.append(step._replace(is_choice=number not in lost))
        offsets[stream_id] += 1000
    return client_order(steps, lost_packets=lost, acknowledgements=tuple(acknowledgements))


def _slow_start(n_acks: int, window: int) -> list[int]:
    """Return the first packets if each acknowledgement lets two packets leave."""
    return [window + 2 * index for index in range(n_acks)]


def test_in_slow_start_each_acknowledgement_is_followed_by_two_packets() -> None:
    times = _slow_start(20, window=4)
    found = AckTimeSearch(_sent(times, n_packets=60), REQUEUING).run()
    assert found is not None
    assert (found.first_packets, found.cost) == (tuple(times), 0.0)


def test_a_loss_silences_the_server_until_its_window_is_cut() -> None:
    """Packet 12 is lost, as the acknowledgement of packet 15 says. The next five send nothing.

    In congestion avoidance each leads to one packet.
    """
    times = _slow_start(14, window=4)  # of packets 0 to 11, 13 and 14
    cut_at = times[-1] + 2
    times += [cut_at] * 6
    times += range(cut_at + 1, cut_at + 9)
    order = _sent(times, lost=(12,), n_packets=70)
    found = AckTimeSearch(order, REQUEUING).run()
    assert found is not None
    assert sum(abs(a - b) > 1 for a, b in zip(found.first_packets, times, strict=True)) == 0


def test_another_mechanism_explains_the_picks_at_a_higher_cost() -> None:
    order = _sent(_slow_start(20, window=4), n_packets=60)
    other = Mechanism(kind=SchedulerKind.ROUND_ROBIN, turn=Quantum(), requeues=True)
    found = AckTimeSearch(order, other).run()
    assert found is None or found.cost > 10
    assert AckTimeSearch(order, other).run(most_cost=0.5) is None


def test_streams_are_requeued_by_the_packets_that_were_found() -> None:
    """With the times the mechanism sends what the log shows; as early as may be it does not."""
    times = _slow_start(20, window=4)
    order = _sent(times, n_packets=60)
    misses = []
    for each in (with_ack_times(order, tuple(times)), with_ack_times(order, _earliest(order))):
        search = HistorySearch(each, REQUEUING)
        search.run()
        misses.append(search.n_missed)
    assert misses[0] == 0 < misses[1]


def _earliest(order: SendOrder) -> tuple[int, ...]:
    return tuple(ack.earliest for ack in order.acknowledgements)


def test_acknowledgements_come_up_to_four_packets_before_the_one_that_was_found() -> None:
    order = _sent([5, 12], n_packets=14)
    moved = with_ack_times(order, (5, 12))
    touched = [step for step in moved.steps if step.kind is StepKind.TOUCHED]
    assert [(step.stream_id, step.number) for step in touched] == [(0, 5), (0, 12)]
    assert [_next_packet(moved, step) for step in touched] == [4, 8]  # packet 4 is the earliest
    unknown = with_ack_times(order, (5, MAX_VARINT))  # the second came after the last packet
    assert sum(step.kind is StepKind.TOUCHED for step in unknown.steps) == 1


def test_predictions_requeue_streams_at_the_times_that_were_found() -> None:
    times = _slow_start(20, window=4)
    order = _sent(times, n_packets=60)
    sent = [step.stream_id for step in order.steps if step.is_choice]
    assert predictions(with_ack_times(order, tuple(times)), REQUEUING) == sent
    assert predictions(with_ack_times(order, _earliest(order)), REQUEUING) != sent


def test_a_history_requeues_a_stream_no_later_than_the_packet_that_was_found() -> None:
    times = _slow_start(20, window=4)
    order = with_ack_times(_sent(times, n_packets=60), tuple(times))
    search = HistorySearch(order, REQUEUING)
    search.run()
    assert is_history(order, REQUEUING, search.calls)
    first = next(at for at, call in enumerate(search.calls) if call.method == "requeue")
    later = next(at for at, call in enumerate(search.calls) if call.number == times[0] + 8)
    calls = [*search.calls[:first], *search.calls[first + 1 : later], search.calls[first]]
    assert not is_history(order, REQUEUING, [*calls, *search.calls[later:]])


def _next_packet(order: SendOrder, step: Step) -> int:
    later = order.steps[order.steps.index(step) :]
    return next(each.number for each in later if each.kind is StepKind.SENT)


def test_lost_packets_carry_what_they_did_in_a_history() -> None:
    """Packet 1 had bytes of b in it, so those are sent again in packet 2."""
    steps = [
        Step(StepKind.SENT, 0, 0, 1000, 0, is_choice=True),
        Step(StepKind.SENT, 1, 0, 1000, 1, offset=1000),
        Step(StepKind.SENT, 2, 4, 1000, 2, is_choice=True),
        Step(StepKind.SENT, 3, 4, 1000, 3, is_choice=True, offset=1000),
    ]
    order = client_order(steps, lost_packets=(1,))
    calls = [SchedulerCall("charge", 0, 1000, 0), SchedulerCall("charge", 4, 1000, 1)]
    assert with_lost_frames(order, calls).steps == (
        steps[0],
        Step(StepKind.SENT, 1, 4, 1000, 1),
        steps[2]._replace(kind=StepKind.RESENT, is_choice=False),
        steps[3],
    )


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the log of a load whose server requeues streams, through a queue."""
    path: Path = tmp_path_factory.mktemp("log") / "load.qlog"
    load = h3sim.simulate(
        "shards-agency",
        scheme="rr",
        network="sander-10mbps-100ms",
        transport_profile="quicly",
        loss=0.02,
        seed=3,
        record_packets=True,
    )
    write_load_qlog(load, path)
    return path


def test_a_packet_declares_those_lost_that_were_sent_three_before_it(log: Path) -> None:
    order = next(send_orders(log, trace=2))
    declared = [number for ack in order.acknowledgements for number in ack.lost]
    last = max(max(ack.acked) for ack in order.acknowledgements)
    assert declared == [number for number in order.lost_packets if number + 3 <= last]
    assert declared
    largest = -1
    for ack in order.acknowledgements:
        previous, largest = largest, max(largest, *ack.acked)
        assert all(previous < number + 3 <= largest for number in ack.lost)
    assert all(a.earliest <= b.earliest for a, b in pairwise(order.acknowledgements))


def test_requeuing_is_identified_from_the_client_s_side(
    log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = identify(log, trace=2)
    assert (found.mechanism, found.requeues) == ("round-robin", True)
    assert found.share > 0.99
    monkeypatch.setattr(identification, "_EXPLAINED_WITHOUT_TIMES", 0.0)
    assert identify(log, trace=2).share < 0.9
