"""A sender of field sections: when they are encoded, what goes first, what is told when."""

from __future__ import annotations

from typing import Any

from h3sim.http import SectionSender
from h3sim.schedulers import RankScheduler
from h3sim.signals import Rank
from tests.tcp_pair import FixedHeader

TURN = 1000


def sender(sizes: Any, *, buffer_bytes: int = 0, is_http2: bool = False) -> Any:
    """Return a sender, what it has encoded, and what it was told is acknowledged."""
    encoded: list[Any] = []
    acked: list[Any] = []
    made = SectionSender(
        RankScheduler(),
        turn_bytes=TURN,
        buffer_bytes=buffer_bytes,
        retains_until_acked=True,
    )
    made.is_http2 = is_http2

    def encode(stream_id: int) -> Any:
        encoded.append(stream_id)
        return sizes[stream_id]

    made.take_sections(encode, acked.append)
    return made, encoded, acked


def respond(made: Any, stream_id: int, n_bytes: int, rank: Any) -> None:
    made.open(stream_id, Rank(value=rank))
    made.send(stream_id, n_bytes)


def taken(made: Any) -> Any:
    return list(iter(made.take, None))


def test_a_section_stands_before_the_body() -> None:
    made, _, _ = sender({0: 50})
    respond(made, 0, 1200, 0)
    assert taken(made) == [(0, 0, 1000), (0, 1000, 250)]


def test_a_response_without_a_body_is_its_section() -> None:
    made, _, _ = sender({0: 50})
    respond(made, 0, 0, 0)
    assert taken(made) == [(0, 0, 50)]


def test_sections_are_encoded_in_the_order_in_which_they_leave() -> None:
    made, encoded, _ = sender({0: 50, 4: 60})
    respond(made, 0, 100, 2)
    respond(made, 4, 100, 1)
    assert encoded == []
    assert [chunk[0] for chunk in taken(made)] == encoded == [4, 0]


def test_encoder_instructions_precede_the_section_that_needs_them() -> None:
    made, _, _ = sender({0: 50})
    made.take_sections(lambda _: made.on_critical(3, 20) or 50, lambda _: None)
    respond(made, 0, 100, 0)
    assert taken(made) == [(3, 0, 20), (0, 0, 150)]
    assert not made.has_data


def test_critical_bytes_are_cut_where_a_packet_ends() -> None:
    made, _, _ = sender({})
    made.on_critical(3, 30)
    assert made.take(20, FixedHeader(5)) == (3, 0, 15)
    assert made.take(20, FixedHeader(5), 18) is None
    assert made.take(20, FixedHeader(5)) == (3, 15, 15)
    assert made.take() is None


def test_of_critical_bytes_that_were_cut_just_the_rest_is_left() -> None:
    made, _, _ = sender({})
    made.on_critical(3, 30)
    assert made.take(10) == (3, 0, 10)
    assert made.take(10) == (3, 10, 10)
    assert made.take(25) == (3, 20, 10)
    assert not made.has_data


def test_lost_critical_bytes_go_again_and_first() -> None:
    made, _, _ = sender({0: 50})
    made.on_critical(3, 30)
    respond(made, 0, 10, 0)
    made.take()
    made.on_lost(3, 0, 30)
    assert made.has_data
    assert taken(made) == [(3, 0, 30), (0, 0, 60)]


def test_the_acknowledgement_of_a_section_is_reported() -> None:
    made, _, acked = sender({0: 500})
    respond(made, 0, 1000, 0)
    assert taken(made) == [(0, 0, 1000), (0, 1000, 500)]
    made.on_acked(0, 300, 700)
    assert acked == []
    made.on_acked(0, 0, 300)
    assert acked == [0]
    made.on_acked(0, 1000, 500)
    assert made.take_drained() == [0]


def test_the_send_buffer_takes_sections_in() -> None:
    made, encoded, _ = sender({0: 50, 4: 50}, buffer_bytes=10_000)
    respond(made, 0, 100, 0)
    respond(made, 4, 100, 0)
    assert encoded == [0, 4]
    assert taken(made) == [(0, 0, 150), (4, 0, 150)]


def test_critical_bytes_take_what_room_there_is_from_one_byte_on() -> None:
    made, _, _ = sender({})
    assert not made.has_data
    made.on_critical(3, TURN + 5)
    assert made.has_data
    assert made.take(5, FixedHeader(5)) is None
    assert made.take(6, FixedHeader(5)) == (3, 0, 1)
    assert made.take(20, FixedHeader(5), 15) == (3, 1, 15)
    # Without a packet's limit a turn's worth goes.
    made.on_critical(7, TURN)
    assert taken(made) == [(3, 16, TURN - 11), (7, 0, TURN)]
    assert not made.has_data


def test_lost_critical_bytes_are_something_to_send() -> None:
    made, _, _ = sender({})
    made.on_critical(3, 30)
    assert taken(made) == [(3, 0, 30)]
    made.on_lost(3, 10, 20)
    assert made.has_data
    assert taken(made) == [(3, 10, 20)]


def test_a_section_arrives_once() -> None:
    made, _, acked = sender({0: 500})
    respond(made, 0, 1000, 0)
    assert len(taken(made)) == 2
    made.on_acked(0, 0, 500)
    made.on_acked(0, 500, 1000)
    assert acked == [0]
    assert not SectionSender(RankScheduler(), turn_bytes=TURN).is_http2
