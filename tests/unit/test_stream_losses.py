"""What a sender gives out again after a loss, and how far limits let it go."""

from __future__ import annotations

import pytest

from h3sim.http import StreamSender
from h3sim.http.stream_sender import LostStreams, OutgoingStream
from h3sim.schedulers import FifoScheduler, Retransmit, RoundRobinScheduler
from tests.tcp_pair import FixedHeader
from tests.unit.test_stream_sender import TURN, all_of, answer


def limited(retransmit: Retransmit, scheduler: RoundRobinScheduler | FifoScheduler) -> StreamSender:
    """Return a server that may send two turns in all, and has: the first of streams 0 and 4."""
    server = StreamSender(
        scheduler,
        turn_bytes=TURN,
        retransmit=retransmit,
        lost_scheduler=FifoScheduler() if retransmit is Retransmit.PRIORITY else None,
        retains_until_acked=True,
        connection_window_bytes=2 * TURN,
    )
    for stream_id in (0, 4):
        answer(server, stream_id, 2 * TURN)
    assert [server.take(), server.take(), server.take()] == [(0, 0, TURN), (4, 0, TURN), None]
    return server


def that_retransmits(retransmit: Retransmit) -> StreamSender:
    return StreamSender(
        FifoScheduler(),
        turn_bytes=TURN,
        retransmit=retransmit,
        lost_scheduler=FifoScheduler() if retransmit is Retransmit.PRIORITY else None,
        retains_until_acked=True,
    )


@pytest.mark.parametrize("retransmit", list(Retransmit))
@pytest.mark.parametrize("lost", [0, 4])
def test_lost_bytes_go_again_without_credit(retransmit: Retransmit, lost: int) -> None:
    """RFC 9000 § 4.1: limits count the largest offset sent, so what was lost has its credit."""
    server = limited(retransmit, RoundRobinScheduler())
    server.on_lost(lost, 0, TURN)
    assert [server.take(), server.take()] == [(lost, 0, TURN), None]
    server.on_limit(None, 3 * TURN)
    assert [server.take() is None, server.take()] == [False, None]


@pytest.mark.parametrize("retransmit", list(Retransmit))
def test_what_came_after_all_does_not_go_again(retransmit: Retransmit) -> None:
    server = that_retransmits(retransmit)
    answer(server, 0, TURN)
    assert server.take() == (0, 0, TURN)
    server.on_lost(0, 0, TURN)
    assert (server.has_data, server.has_drained) == (True, False)
    server.on_acked(0, 0, TURN)
    assert (server.has_data, server.take_drained(), server.take()) == (False, [0], None)


def test_a_limit_of_all_streams_counts_from_the_beginning() -> None:
    """RFC 9000 § 4.1: each says how much there may be in all."""
    server = limited(Retransmit.TURN, RoundRobinScheduler())
    taken = []
    for turns in (3, 3, 2, 4):
        server.on_limit(None, turns * TURN)
        taken.append(len(all_of(server)))
    assert taken == [1, 0, 0, 1]


def test_a_limit_is_never_lowered_and_one_of_no_stream_is_nothing() -> None:
    server = StreamSender(FifoScheduler(), turn_bytes=TURN, stream_window_bytes=100)
    answer(server, 0, 300)
    server.on_limit(0, 50)
    server.on_limit(4, 50)
    assert all_of(server) == [(0, 0, 100)]


def test_a_stream_at_its_limit_takes_no_turns_until_it_is_raised() -> None:
    server = StreamSender(FifoScheduler(), turn_bytes=TURN, stream_window_bytes=100)
    for stream_id in (0, 4):
        answer(server, stream_id, 300)
    assert all_of(server) == [(0, 0, 100), (4, 0, 100)]
    had_data = server.has_data
    server.on_limit(4, 150)
    server.on_limit(0, 100)  # no more than it had
    assert (had_data, server.has_data) == (False, True)
    assert all_of(server) == [(4, 100, 50)]


@pytest.mark.parametrize("stream_id", [0, None])
def test_a_raised_limit_fills_the_buffer(stream_id: int | None) -> None:
    server = StreamSender(
        FifoScheduler(),
        turn_bytes=500,
        buffer_bytes=600,
        stream_window_bytes=1000 if stream_id == 0 else 10_000,
        connection_window_bytes=1000 if stream_id is None else 10_000,
    )
    answer(server, 0, 3000)
    assert all_of(server) == [(0, 0, 500), (0, 500, 500)]
    server.on_limit(stream_id, 1700)
    assert server.has_data
    assert all_of(server) == [(0, 1000, 500), (0, 1500, 200)]


def test_a_stream_whose_lost_bytes_went_again_is_no_more_in_their_order() -> None:
    lost = LostStreams(Retransmit.PRIORITY, FifoScheduler())
    for stream_id in (4, 0, 4):
        lost.add(stream_id)
    assert (lost.pick(), [*lost.ids]) == (0, [4, 0])
    lost.remove(0)
    assert (lost.pick(), [*lost.ids]) == (4, [4])
    lost.remove(4)
    assert lost.pick() is None


@pytest.mark.parametrize(
    ("acked", "lost", "span", "expected"),
    [
        ([], [], (10, 40), [(10, 40)]),
        ([(0, 10)], [], (10, 40), [(10, 40)]),
        ([(0, 20)], [], (10, 40), [(20, 40)]),
        ([(0, 40)], [], (10, 40), []),
        ([(0, 5), (20, 30)], [], (10, 40), [(10, 20), (30, 40)]),
        ([(0, 5), (20, 30)], [(10, 20)], (10, 40), [(30, 40)]),
        ([(40, 50)], [(60, 70)], (10, 40), [(10, 40)]),
        ([(0, 5), (30, 50)], [(60, 70)], (10, 40), [(10, 30)]),
    ],
)
def test_what_is_missing_was_not_acknowledged_and_does_not_wait(
    acked: list[tuple[int, int]],
    lost: list[tuple[int, int]],
    span: tuple[int, int],
    expected: list[tuple[int, int]],
) -> None:
    stream = OutgoingStream(100, 100)
    for start, stop in acked:
        stream.ack(start, stop - start)
    stream.lost = lost
    assert stream.missing(*span) == expected


class Noting(FifoScheduler):
    """Notes which streams take part when, and what it hears of losses."""

    def __init__(self) -> None:
        super().__init__()
        self.notes: list[tuple[str, int | None]] = []

    def activate(self, stream_id: int) -> None:
        self.notes.append(("activate", stream_id))
        super().activate(stream_id)

    def deactivate(self, stream_id: int) -> None:
        self.notes.append(("deactivate", stream_id))
        super().deactivate(stream_id)

    def close(self, stream_id: int) -> None:
        self.notes.append(("close", stream_id))
        super().close(stream_id)

    def on_lost(self) -> None:
        self.notes.append(("lost", None))


@pytest.mark.parametrize("requeues", [False, True])
@pytest.mark.parametrize(
    ("retransmit", "turns"),
    [
        # Only where lost bytes wait for a turn does their stream take part once more.
        (Retransmit.TURN, [("activate", 0), ("deactivate", 0)]),
        (Retransmit.FIRST, []),
        (Retransmit.PRIORITY, []),
    ],
)
def test_who_has_only_lost_bytes_takes_part_where_those_wait_for_a_turn(
    retransmit: Retransmit, turns: list[tuple[str, int]], requeues: bool
) -> None:
    scheduler = Noting()
    server = StreamSender(
        scheduler,
        turn_bytes=TURN,
        retransmit=retransmit,
        requeues=requeues,
        lost_scheduler=FifoScheduler() if retransmit is Retransmit.PRIORITY else None,
        retains_until_acked=True,
    )
    answer(server, 0, 2 * TURN)
    assert all_of(server) == [(0, 0, TURN), (0, TURN, TURN)]
    assert scheduler.notes == [("activate", 0), ("deactivate", 0)]
    scheduler.notes.clear()
    server.on_lost(0, 0, 2 * TURN)
    server.on_lost(4, 0, 10)  # of a stream that is done with
    assert all_of(server) == [(0, 0, TURN), (0, TURN, TURN)]
    assert scheduler.notes == [("lost", None), *turns]
    assert not server.has_data
    server.close(0)
    assert scheduler.notes[-1] == ("close", 0)


class NotedHeader(FixedHeader):
    """Notes where the frames begin that it measures."""

    def __init__(self) -> None:
        super().__init__(10)
        self.asked: list[tuple[int, int]] = []

    def measure(self, stream_id: int, offset: int) -> int:
        self.asked.append((stream_id, offset))
        return super().measure(stream_id, offset)


@pytest.mark.parametrize("retransmit", list(Retransmit))
def test_the_header_of_what_goes_again_is_measured_where_that_begins(
    retransmit: Retransmit,
) -> None:
    server = that_retransmits(retransmit)
    answer(server, 0, 3 * TURN)
    header = NotedHeader()
    assert server.take(1010, header) == (0, 0, 1000)
    assert server.take(1010, header) == (0, 1000, 1000)
    server.on_lost(0, 700, 1300)
    # 700 to 2000 was lost; what is new begins at 2000.
    assert server.take(1010, header) == (0, 700, 1000)
    assert server.take(310, header) == (0, 1700, 300)
    assert server.take(310, header) == (0, 2000, 300)
    assert header.asked == [(0, offset) for offset in (0, 1000, 700, 1700, 2000)]


class Charged(FifoScheduler):
    """Notes what it is charged."""

    def __init__(self) -> None:
        super().__init__()
        self.charged: list[tuple[int, int]] = []

    def charge(self, stream_id: int, n_bytes: int) -> None:
        self.charged.append((stream_id, n_bytes))
        super().charge(stream_id, n_bytes)


@pytest.mark.parametrize(
    ("retransmit", "turns", "own"),
    [
        (Retransmit.TURN, [(4, 10)], []),
        (Retransmit.FIRST, [], []),
        (Retransmit.PRIORITY, [], [(4, 10)]),
    ],
)
def test_who_chose_a_stream_is_charged_for_its_lost_bytes(
    retransmit: Retransmit, turns: list[tuple[int, int]], own: list[tuple[int, int]]
) -> None:
    new, lost = Charged(), Charged()
    LostStreams(retransmit, lost if own else None).charge(new, 4, 10)
    assert (new.charged, lost.charged) == (turns, own)


def test_a_stream_is_complete_with_its_last_byte_and_its_end() -> None:
    stream = OutgoingStream(30, 100)
    assert not stream.ack(0, 30)  # that there is no more was not said yet
    stream.has_ended = True
    assert stream.ack(0, 30)
    stream = OutgoingStream(30, 100)
    stream.has_ended = True
    assert [stream.ack(offset, 10) for offset in (10, 0, 0, 20)] == [False, False, False, True]
    stream = OutgoingStream(30, 100)
    assert [stream.ack(offset, 15) for offset in (15, 0)] == [False, False]
    assert stream.acked_end == 30


def test_an_end_that_was_lost_goes_again_where_there_is_nothing_else() -> None:
    ended = []
    for size, offset, n_bytes in ((0, 0, 0), (10, 10, 0), (10, 0, 10)):
        stream = OutgoingStream(size, 100)
        stream.next, stream.has_ended = size, True
        stream.lose(offset, n_bytes)
        ended.append((stream.has_ended, stream.has_new(), stream.next_span()))
    # With bytes their span stands for the end, or what came before it does.
    assert ended == [(False, True, (0, 0)), (True, False, (10, 10)), (True, False, (0, 10))]


@pytest.mark.parametrize(
    ("size", "limit", "at", "has_new"),
    [(5, 4, 3, True), (5, 4, 4, False), (4, 4, 4, True), (4, 5, 4, True), (0, 0, 0, True)],
)
def test_bytes_below_the_limit_and_the_end_at_any_limit_are_new(
    size: int, limit: int, at: int, has_new: bool
) -> None:
    stream = OutgoingStream(size, limit)
    stream.next = at
    assert stream.has_new() is has_new
    assert stream.stop == min(size, limit)
    stream.has_ended = True
    assert not stream.has_new()
