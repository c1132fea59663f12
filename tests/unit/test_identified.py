"""The judge of `validation.identified` accepts a history only if a client's log allows for it."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

import h3sim
from h3sim.export.qlog_file import write_load_qlog
from h3sim.identification import send_history
from h3sim.identification.mechanism import Mechanism
from h3sim.identification.send_history import HistorySearch, LostPackets, SchedulerCall
from h3sim.identification.send_order import SendOrder, Step, StepKind, send_orders
from h3sim.qlog import read_timeline
from h3sim.schedulers import Mixed, Quantum
from h3sim.schemes import SchedulerKind
from h3sim.signals import Eps, H2Priority
from tests.logs import client_order
from validation.identified import (
    Case,
    history,
    is_history,
    outcome,
    seen_by_client,
    simulate,
)
from validation.identified import case as random_case

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

TRUE = Mechanism(kind=SchedulerKind.EPS, mixed=Mixed.NON_INCREMENTAL_FIRST, turn=Quantum())


@pytest.fixture(scope="module")
def case() -> Case:
    return Case(
        mechanism=TRUE,
        clients="chrome-eps",
        page=h3sim.load_page("davies-meenan"),
        options={"network": "sander-5mbps-100ms", "loss": 0.01, "transport_profile": "default"},
        trace=2,
    )


@pytest.fixture(scope="module")
def seen(case: Case, tmp_path_factory: pytest.TempPathFactory) -> SendOrder:
    log: Path = tmp_path_factory.mktemp("log") / "load.qlog"
    write_load_qlog(simulate(case, TRUE), log)
    (known,) = send_orders(log, trace=1)
    client = read_timeline(log, trace=2).client
    assert client is not None
    return seen_by_client(known, client.packets)


def test_the_true_mechanism_has_a_history(case: Case, seen: SendOrder) -> None:
    assert history(case, seen, TRUE.name) is not None


@pytest.mark.parametrize("name", ["fifo", "round-robin", "eps, all-share", "eps, one-by-one"])
def test_a_mechanism_that_differs_on_a_choice_has_no_history(
    case: Case, seen: SendOrder, name: str
) -> None:
    """The times that a client lacks do not explain another order of urgencies or of shares."""
    assert history(case, seen, name) is None


def _calls(seen: SendOrder) -> list[SchedulerCall]:
    search = HistorySearch(seen, TRUE)
    search.run()
    return search.calls


def _index(calls: list[SchedulerCall], method: str, start: int = 0) -> int:
    return next(index for index in range(start, len(calls)) if calls[index].method == method)


def test_a_history_has_all_that_was_sent_and_no_more(seen: SendOrder) -> None:
    calls = _calls(seen)
    assert is_history(seen, TRUE, calls)
    first = _index(calls, "charge")
    assert not is_history(seen, TRUE, calls[: len(calls) // 2])
    assert not is_history(seen, TRUE, [*calls[:first], *calls[first + 1 :]])
    assert not is_history(seen, TRUE, [*calls[: first + 1], *calls[first:]])


def test_a_stream_does_not_join_before_its_request_or_leave_for_no_reason(seen: SendOrder) -> None:
    calls = _calls(seen)
    joined = _index(calls, "activate", _index(calls, "charge"))
    early = [calls[joined], *calls[:joined], *calls[joined + 1 :]]
    assert not is_history(seen, TRUE, early)
    stream_id = calls[joined].stream_id
    rejoins = [SchedulerCall("deactivate", stream_id), SchedulerCall("activate", stream_id)]
    few, many = ([*calls[: joined + 1], *n * rejoins, *calls[joined + 1 :]] for n in (1, 4))
    assert not is_history(seen, TRUE, many)
    assert is_history(seen, TRUE, few)  # as few as refute nothing


def test_a_stream_is_requeued_only_by_an_acknowledgement(seen: SendOrder) -> None:
    calls = _calls(seen)
    joined = _index(calls, "activate")
    requeue = SchedulerCall("requeue", calls[joined].stream_id)
    assert not is_history(seen, TRUE, [*calls[: joined + 1], requeue, *calls[joined + 1 :]])


A, B = 0, 4


def _sent(
    packets: str,
    *,
    round_trip_ns: int = 5,
    lost: tuple[int, ...] = (),
    urgencies: tuple[int, int] = (3, 3),
) -> SendOrder:
    """Return what a client saw of streams a and b, a packet of 1,000 bytes per letter.

    A dot is a lost packet of which the log says nothing.
    """
    steps: list[Step] = []
    sent = {A: 0, B: 0}
    for stream_id, urgency in zip(sent, urgencies, strict=True):
        steps.append(Step(StepKind.OPEN, 0, stream_id, signal=Eps(urgency=urgency)))
        steps.append(Step(StepKind.ACTIVATE, 0, stream_id))
    for number, letter in enumerate(packets):
        if letter != ".":
            stream_id = (A, B)["ab".index(letter)]
            step = Step(StepKind.SENT, number, stream_id, 1000, number, offset=sent[stream_id])
            steps.append(step._replace(is_choice=number not in lost))
            sent[stream_id] += 1000
    return client_order(steps, lost_packets=lost, round_trip_ns=round_trip_ns)


TREE = Mechanism(kind=SchedulerKind.TREE)
ROUND_ROBIN = Mechanism(kind=SchedulerKind.ROUND_ROBIN, turn=Quantum())
TWO_EACH = Mechanism(kind=SchedulerKind.EPS, mixed=Mixed.ALL_SHARE, turn=Quantum(packets=2))
FIFO = Mechanism(kind=SchedulerKind.FIFO)


@pytest.mark.parametrize(
    ("packets", "lost", "n_missed"),
    [
        ("ababab", (), 0),
        ("abbaab", (), 1),  # all of it arrived, so nothing may be exchanged
        ("abbaab", (2, 3), 0),  # lost between others of both streams: either may have been first
        ("ab.bbbbbba", (2,), 0),  # a round trip later: it may have been lost before
        ("ab.ba", (2,), 1),  # too early for bytes that were lost
    ],
)
def test_lost_packets_carry_what_is_picked_if_they_may(
    packets: str, lost: tuple[int, ...], n_missed: int
) -> None:
    seen = _sent(packets, lost=lost)
    search = HistorySearch(seen, ROUND_ROBIN)
    search.run()
    assert search.n_missed == n_missed
    assert is_history(seen, ROUND_ROBIN, search.calls)  # fewer than four refute nothing


def test_a_stream_that_rejoins_puts_a_list_in_step_with_the_log() -> None:
    """With turns of two packets, a is next after its first. If it goes behind b then, all fits."""
    seen = _sent("abbaabba")
    plain = HistorySearch(seen, TWO_EACH)
    assert plain.run() == [A, A, A, A, B, B, B, A]  # a's turn ends with the fourth packet
    assert (plain.n_missed, plain.n_rejoined) == (3, 0)
    search = HistorySearch(seen, TWO_EACH, rejoins=True)
    assert search.run() == [A, A, B, A, A, B, B, A]  # as sent, but for the second
    assert (search.n_missed, search.n_rejoined) == (1, 1)
    after_first = _charge(search.calls, 0) + 1
    assert search.calls[after_first : after_first + 4] == [
        SchedulerCall("activate", B),
        SchedulerCall("deactivate", A),
        SchedulerCall("activate", A),
        SchedulerCall("charge", B, 1000, 1),
    ]
    assert is_history(seen, TWO_EACH, search.calls)  # fewer than four refute nothing


def test_a_stream_that_rejoins_stays_before_less_urgent_ones() -> None:
    """So a is moved only once for each packet of b, and each is missed."""
    search = HistorySearch(_sent("abbbaa", urgencies=(3, 7)), TRUE, rejoins=True)
    assert search.run() == [A, A, A, A, A, A]
    assert (search.n_missed, search.n_rejoined) == (3, 3)


def _tree(*steps: Step) -> SendOrder:
    """Return what a client saw of these steps."""
    return replace(_sent(""), steps=steps, ready_spread_ns=0)


def _packets(letters: str, start: int) -> list[Step]:
    """Return choices from packet *start* on, of 1,000 bytes per letter."""
    return [
        Step(StepKind.SENT, number, 4 * "abc".index(letter), 1000, number, is_choice=True)
        for number, letter in enumerate(letters, start)
    ]


def _with_offsets(steps: Iterable[Step]) -> Iterator[Step]:
    """Yield the steps with the offsets of bytes that are sent."""
    sent: Counter[int] = Counter()
    for step in steps:
        yield step._replace(offset=sent[step.stream_id])
        sent[step.stream_id] += step.n_bytes


def _opened(stream_id: int, weight: int) -> Step:
    return Step(StepKind.OPEN, 0, stream_id, signal=H2Priority(weight=weight))


def _missed(seen: SendOrder, *, moves_joins: bool) -> int:
    search = HistorySearch(seen, TREE, moves_joins=moves_joins)
    search.run()
    return search.n_missed


def test_a_stream_joins_from_its_request_on() -> None:
    """b joins before the packet that the log has between its request and its activation."""
    joins = Step(StepKind.ACTIVATE, 0, 4)
    steps = [_opened(0, 16), joins._replace(stream_id=0), *_packets("a", 0), _opened(4, 16)]
    seen = _tree(*_with_offsets([*steps, *_packets("a", 1), joins, *_packets("bababa", 2)]))
    assert _missed(seen, moves_joins=False) == _missed(seen, moves_joins=True) == 0


def test_a_stream_that_seems_ready_too_early_joins_once_it_is_sent() -> None:
    """It costs the one pick that shows that it was not ready."""
    both = [Step(StepKind.ACTIVATE, 0, stream_id) for stream_id in (0, 4)]
    steps = [_opened(0, 16), _opened(4, 16), *both, Step(StepKind.READY, 0, 4)]
    seen = _tree(*_with_offsets([*steps, *_packets("aaaaaaabababab", 1)]))
    assert _missed(seen, moves_joins=False) > 1
    search = HistorySearch(seen, TREE, moves_joins=True)
    search.run()
    assert search.n_missed == 1
    assert is_history(seen, TREE, search.calls)  # fewer than four refute nothing


def test_other_mechanisms_have_the_same_help_where_trees_are_candidates() -> None:
    both = [Step(StepKind.ACTIVATE, 0, stream_id) for stream_id in (0, 4)]
    steps = [*both, *_packets("a", 1), Step(StepKind.READY, 1, 4), *_packets("aaaababab", 2)]
    signals = {stream_id: H2Priority() for stream_id in (0, 4)}
    opened = [Step(StepKind.OPEN, 0, stream_id, signal=signals[stream_id]) for stream_id in signals]
    seen = _tree(*_with_offsets([*opened, *steps]))
    for known, n_missed in (({}, 2), (signals, 1)):
        search = HistorySearch(replace(seen, signals=known), ROUND_ROBIN)
        search.run()
        assert min(search.n_missed, 2) == n_missed


def test_a_stream_is_moved_to_explain_later_picks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each share of a tree depends on when its stream joined, more exactly than its first pick."""
    weights, joins = (32, 100, 64), (0, 12, 19)
    scheduler = TREE.new(1000)
    steps: list[Step] = []
    for stream_id, weight in zip((0, 4, 8), weights, strict=True):
        scheduler.open(stream_id, H2Priority(weight=weight))
        steps += [_opened(stream_id, weight), Step(StepKind.ACTIVATE, 0, stream_id)]
    for number in range(40):
        for stream_id, joined in zip((0, 4, 8), joins, strict=True):
            if number == joined:
                scheduler.activate(stream_id)
        stream_id = scheduler.pick() or 0
        scheduler.charge(stream_id, 1000)
        steps += _packets("abc"[stream_id // 4], number)
    seen = _tree(*_with_offsets(steps))
    assert _missed(seen, moves_joins=True) == 0
    monkeypatch.setattr(send_history, "_MAX_MOVES", 0)
    search = HistorySearch(seen, TREE, moves_joins=True)
    search.run()
    assert search.n_missed > 0


def test_lost_packets_carry_no_more_than_was_lost() -> None:
    seen = _sent("abbaab", lost=(2, 3))
    calls = HistorySearch(seen, ROUND_ROBIN)
    calls.run()
    (first, second) = (_charge(calls.calls, number) for number in (2, 3))
    assert is_history(seen, ROUND_ROBIN, _replaced(calls.calls, first, argument=1000))
    assert not is_history(seen, ROUND_ROBIN, _replaced(calls.calls, first, argument=1001))
    assert not is_history(seen, ROUND_ROBIN, _replaced(calls.calls, second, stream_id=0))
    assert not is_history(seen, ROUND_ROBIN, _replaced(calls.calls, second, number=4))


@pytest.mark.parametrize(("turn_bytes", "n_bytes"), [(1004, 1002), (1000, 1000)])
def test_a_lost_packet_ends_where_bytes_end_that_are_sent_again(
    turn_bytes: int, n_bytes: int
) -> None:
    """Full packets differ by their headers: by 4 bytes here, or not at all."""
    steps = [step for step in _sent("abab.babbba").steps if step.number < 4]
    again = Step(StepKind.SENT, 20, 0, 602, 20, offset=2000)
    rest = again._replace(offset=2602, n_bytes=400), again._replace(offset=3002, n_bytes=900)
    seen = replace(_sent("", lost=(4,)), steps=(*steps, again, *rest), turn_bytes=turn_bytes)
    frame = LostPackets(seen).late_frame(0, 2000, 5, 1000)
    assert frame is not None
    assert frame.n_bytes == n_bytes


def _charge(calls: list[SchedulerCall], number: int) -> int:
    return next(index for index, call in enumerate(calls) if call.number == number)


def _replaced(calls: list[SchedulerCall], index: int, **changes: Any) -> list[SchedulerCall]:
    return [*calls[:index], calls[index]._replace(**changes), *calls[index + 1 :]]


@pytest.mark.parametrize(
    ("number", "verdict"),
    [
        (40_319, "named"),  # the others need many more deviations from a history
        (40_279, "named"),  # a burst of losses at the end of a response
        (40_104, "cannot tell"),  # responses were ready later than it seems
    ],
)
def test_logs_of_clients_with_losses_are_explained(number: int, verdict: str) -> None:
    found = outcome(random_case(number))
    assert found is not None
    assert found.verdict == verdict


@pytest.fixture(scope="module")
def tree_log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    load = h3sim.simulate(
        "kicad-pl-editor",
        scheme="chrome-h2",
        network="cable",
        transport_profile="aioquic",
        record_packets=True,
    )
    log = tmp_path_factory.mktemp("log") / "load.qlog"
    write_load_qlog(load, log)
    return log


def test_a_client_s_priorities_arrive_with_requests_of_two_packets(tree_log: Path) -> None:
    signals = [
        {step.stream_id: step.signal for step in order.steps if step.kind is StepKind.OPEN}
        for order in (next(iter(send_orders(tree_log, trace=trace))) for trace in (1, 2))
    ]
    assert signals[0] == signals[1]


def test_a_stream_closes_once_it_is_acknowledged(tree_log: Path) -> None:
    (order,) = send_orders(tree_log, trace=1)
    sent = {step.stream_id: step.at_ns for step in order.steps if step.kind is StepKind.SENT}
    closed = {step.stream_id: step.at_ns for step in order.steps if step.kind is StepKind.CLOSE}
    assert len(closed) > len(sent) // 2  # the log ends before the last acknowledgements
    assert all(at_ns > sent[stream_id] for stream_id, at_ns in closed.items())
