"""The server: turns, the send buffer, think time, and how long a stream is kept."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from h3sim.http import StreamSender
from h3sim.http.send_buffer import SendBufferRefill
from h3sim.schedulers import FifoScheduler, RoundRobinScheduler
from h3sim.signals import H2Priority
from tests.helpers import finished_ms, replay
from tests.tcp_pair import FixedHeader

if TYPE_CHECKING:
    from h3sim.transport.packets import StreamBytes

TURN = 1400


def server_of(
    scheduler: FifoScheduler | RoundRobinScheduler, buffer_bytes: int, **responses: int
) -> StreamSender:
    """Return a server with responses, named s0, s4, ..., that are ready in the order given."""
    server = StreamSender(scheduler, turn_bytes=TURN, buffer_bytes=buffer_bytes)
    for name, n_bytes in responses.items():
        answer(server, int(name[1:]), n_bytes)
    return server


def answer(server: StreamSender, stream_id: int, n_bytes: int) -> None:
    server.open(stream_id, H2Priority())
    server.send(stream_id, n_bytes)


def all_of(server: StreamSender) -> list[StreamBytes]:
    """Take until there is nothing left."""
    return list(iter(server.take, None))


def test_a_response_is_cut_into_turns_and_the_rest() -> None:
    server = server_of(FifoScheduler(), 0, s0=3000)
    assert all_of(server) == [(0, 0, 1400), (0, 1400, 1400), (0, 2800, 200)]
    assert server.take() is None


@pytest.mark.parametrize("buffer_bytes", [0, 1, 10**6])
def test_a_response_without_a_byte_is_one_empty_chunk(buffer_bytes: int) -> None:
    server = server_of(FifoScheduler(), buffer_bytes, s0=0, s4=1)
    assert all_of(server) == [(0, 0, 0), (4, 0, 1)]


def test_a_response_without_a_byte_needs_no_credit_of_the_connection() -> None:
    server = StreamSender(FifoScheduler(), turn_bytes=TURN, connection_window_bytes=100)
    for stream_id, n_bytes in ((0, 100), (4, 0), (8, 1)):
        answer(server, stream_id, n_bytes)
    assert all_of(server) == [(0, 0, 100), (4, 0, 0)]


def test_a_stream_without_a_response_is_not_sent() -> None:
    server = StreamSender(FifoScheduler(), turn_bytes=TURN)
    server.open(0, H2Priority())
    answer(server, 4, 100)
    assert all_of(server) == [(4, 0, 100)]


def test_streams_are_reported_as_drained_when_the_scheduler_gives_out_their_last_chunk() -> None:
    server = server_of(FifoScheduler(), 0, s0=TURN, s4=2 * TURN)
    assert not server.has_drained
    server.take()
    assert (server.has_drained, server.take_drained()) == (True, [0])
    server.take()
    assert (server.has_drained, server.take_drained()) == (False, [])
    server.take()
    assert server.take_drained() == [4]
    # With a buffer that is when the chunk enters it, before it is sent.
    assert server_of(FifoScheduler(), 10**6, s0=TURN, s4=2 * TURN).take_drained() == [0, 4]


class TestSendBuffer:
    def test_a_quantum_enters_completely_or_not_at_all(self) -> None:
        # Stream 4 has turns of 1400 and 500. A buffer of 1900 takes both before stream 0, which
        # fifo would put first, is there; one of 1899 takes only the first.
        for buffer_bytes, order in ((1900, [4, 4, 0]), (1899, [4, 0, 4])):
            server = server_of(FifoScheduler(), buffer_bytes, s4=1900)
            answer(server, 0, 100)
            assert [chunk[0] for chunk in all_of(server)] == order

    def test_an_empty_buffer_takes_a_turn_of_any_size(self) -> None:
        # 1 byte of room: always one turn, taken before stream 0 is there.
        server = server_of(FifoScheduler(), 1, s4=2 * TURN)
        answer(server, 0, 2 * TURN)
        assert [chunk[0] for chunk in all_of(server)] == [4, 0, 0, 4]

    def test_what_leaves_makes_room_at_once(self) -> None:
        # Room for two turns. 4 4 enter. After the first has left, stream 0 enters, and again.
        server = server_of(FifoScheduler(), 2 * TURN, s4=4 * TURN)
        answer(server, 0, 2 * TURN)
        assert [chunk[0] for chunk in all_of(server)] == [4, 4, 0, 0, 4, 4]

    def test_a_small_turn_behind_a_large_one_waits_for_it(self) -> None:
        # Room for 1500: the turn of 1400 of stream 0 is in, and its next does not fit; so stream
        # 4, though its 100 would fit, waits behind it.
        server = server_of(FifoScheduler(), 1500, s0=2 * TURN, s4=100)
        assert [chunk[0] for chunk in all_of(server)] == [0, 0, 4]

    @pytest.mark.parametrize(
        ("send_buffer_kb", "order"),
        [
            # None: turns by turns.
            (0, [0, 4, 0, 4, 0, 4]),
            # One turn: it is taken before stream 4 is there, which so joins round 2.
            (0.001, [0, 0, 4, 0, 4, 4]),
            # A kB has 1000 bytes: 2.75 of them still hold one turn and not two.
            (2.75, [0, 0, 4, 0, 4, 4]),
            # Two turns: rounds 1 and 2 of stream 0; both are in round 3, lower id first.
            (2.8, [0, 0, 0, 4, 4, 4]),
            # All.
            (1000, [0, 0, 0, 4, 4, 4]),
        ],
    )
    def test_the_larger_the_buffer_the_later_rr_begins_to_share(
        self, send_buffer_kb: float, order: list[int]
    ) -> None:
        load = replay([(0, "document", 3), (0, "image", 3)], "rr", send_buffer_kb=send_buffer_kb)
        assert load.trace.order == order

    def test_a_buffer_that_is_filled_in_bursts_takes_nothing_in_before_it_is_empty(self) -> None:
        # 4.2 kB hold three turns. The image's first three leave at 0, 10 and 20, and the stylesheet
        # of 15 goes before its last three; refilled, it would be behind one more.
        steps = [(0, "image", 6), (15, "stylesheet", 1)]
        load = replay(steps, "dfifo", send_buffer_kb=4.2, send_buffer_refill="when-empty")
        assert load.trace.order == [0, 0, 0, 4, 0, 0, 0]

    def test_a_burst_holds_all_that_is_ready_when_it_begins(self) -> None:
        # Both are asked for at 0 and enter at the tick of 0, by turns; nothing leaves between.
        steps = [(0, "image", 2), (0, "image", 2)]
        load = replay(steps, "rr", send_buffer_kb=1000, send_buffer_refill="when-empty")
        assert load.trace.order == [0, 4, 0, 4]
        assert replay(steps, "rr", send_buffer_kb=1000).trace.order == [0, 0, 4, 4]

    @pytest.mark.parametrize(
        ("send_buffer_refill", "order"),
        [
            (SendBufferRefill.WHEN_EMPTY, [4, 4, 4, 0, 4, 4]),
            (SendBufferRefill.CONTINUOUS, [4, 4, 4, 4, 4, 0]),
        ],
    )
    def test_a_burst_leaves_completely_before_the_next_is_chosen(
        self, send_buffer_refill: SendBufferRefill, order: list[int]
    ) -> None:
        server = StreamSender(
            FifoScheduler(),
            turn_bytes=TURN,
            buffer_bytes=3 * TURN,
            send_buffer_refill=send_buffer_refill,
        )
        answer(server, 4, 5 * TURN)
        # Room for one more after each; stream 0, which fifo puts first, is ready behind two.
        taken = [server.take(), server.take()]
        answer(server, 0, TURN)
        taken += all_of(server)
        assert [chunk and chunk[0] for chunk in taken] == order

    def test_bursts_without_a_buffer_are_nothing(self) -> None:
        steps = [(0, "image", 6), (15, "stylesheet", 1)]
        load = replay(steps, "dfifo", send_buffer_refill="when-empty")
        assert load.trace.order == replay(steps, "dfifo").trace.order

    def test_a_late_stylesheet_waits_for_what_is_in_the_buffer(self) -> None:
        # 4.2 kB hold three turns. At 0 the image's first three enter; at 10 the fourth, for the
        # first that leaves. The stylesheet of 15 enters at 20 and leaves behind it.
        steps = [(0, "image", 6), (15, "stylesheet", 1)]
        load = replay(steps, "dfifo", send_buffer_kb=4.2)
        assert load.trace.order == [0, 0, 0, 0, 4, 0, 0]
        assert finished_ms(load) == {0: 70, 4: 50}


class TestThinkTime:
    def test_a_response_is_sent_from_the_first_tick_at_which_it_is_ready(self) -> None:
        load = replay([(0, "document", 1, {"server_ms": 40})], "fifo")
        assert finished_ms(load) == {0: 40}
        load = replay([(0, "document", 1, {"server_ms": 40.000001})], "fifo")
        assert finished_ms(load) == {0: 50}

    def test_others_go_meanwhile(self) -> None:
        steps = [(0, "document", 1), (0, "stylesheet", 2, {"server_ms": 25}), (0, "image", 3)]
        load = replay(steps, "dfifo")
        # 10: document, 20: image; ready at 25: stylesheet at 30 and 40; then the image.
        assert load.trace.order == [0, 8, 4, 4, 8, 8]
        assert finished_ms(load) == {0: 10, 4: 40, 8: 60}

    def test_a_ready_response_of_a_page_without_others_is_found_after_a_pause(self) -> None:
        steps = [(0, "document", 1), (0, "image", 1, {"server_ms": 1000})]
        assert finished_ms(replay(steps, "rr")) == {0: 10, 4: 1000}


def test_a_zero_byte_resource_takes_a_packet() -> None:
    load = replay([(0, "document", 1), (0, "image", 0), (0, "image", 1)], "fifo")
    assert load.trace.order == [0, 4, 8]
    assert load.packets.sent == 3
    assert finished_ms(load) == {0: 10, 4: 20, 8: 30}
    assert load.timings[1].first_byte_ms == 20


def rounds(*, requeues: bool) -> list[int]:
    """Whose turns follow when the stream that is next of three has something acknowledged."""
    server = StreamSender(
        RoundRobinScheduler(), turn_bytes=100, requeues=requeues, retains_until_acked=True
    )
    for stream_id in (0, 4, 8):
        answer(server, stream_id, 1000)
    order = [server.take() for _ in range(4)]
    assert [chunk and chunk[0] for chunk in order] == [0, 4, 8, 0]
    server.on_acked(4, 0, 100)
    following = [server.take() for _ in range(6)]
    return [chunk[0] for chunk in following if chunk is not None]


def test_a_stream_that_joins_anew_goes_behind_those_that_wait() -> None:
    assert rounds(requeues=False) == [4, 8, 0, 4, 8, 0]
    assert rounds(requeues=True) == [8, 0, 4, 8, 0, 4]


@pytest.mark.parametrize(("requeues", "following"), [(True, (0, 0, 100)), (False, (4, 0, 100))])
def test_a_stream_with_losses_joins_anew_as_well(requeues: bool, following: StreamBytes) -> None:
    server = StreamSender(
        RoundRobinScheduler(), turn_bytes=100, requeues=requeues, retains_until_acked=True
    )
    for stream_id in (0, 4):
        answer(server, stream_id, 1000)
    assert server.take() == (0, 0, 100)
    server.on_lost(0, 0, 100)
    server.on_lost(4, 0, 0)  # nothing of it, but it was next
    assert server.take() == following


@pytest.mark.parametrize("buffer_bytes", [0, 5000])
@pytest.mark.parametrize(("room", "taken"), [(41, None), (42, (0, 0, 32)), (43, (0, 0, 33))])
def test_the_least_that_a_frame_may_carry_is_enough(
    buffer_bytes: int, room: int, taken: StreamBytes | None
) -> None:
    server = server_of(FifoScheduler(), buffer_bytes, s0=5000)
    assert server.take(room, FixedHeader(10), 32) == taken


def test_a_sender_without_streams_has_nothing() -> None:
    server = StreamSender(FifoScheduler(), turn_bytes=TURN)
    assert (server.has_data, server.has_drained, server.take_drained()) == (False, False, [])
    assert server.take() is None
