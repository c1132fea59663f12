"""HEADERS of HTTP/2: in which order they leave, as what frames, and what they cost."""

from __future__ import annotations

from typing import Any

import pytest

import h3sim
from h3sim.http import HeadersFirstSender
from h3sim.page import page_from_dict
from h3sim.schedulers import RankScheduler, RoundRobinScheduler
from h3sim.signals import H2Priority, Rank
from tests.unit.test_section_sender import sender as section_sender

TURN = 1000


def respond(made: Any, stream_id: int, n_bytes: int, header_bytes: int, rank: int = 0) -> None:
    made.open(stream_id, Rank(value=rank))
    made.send(stream_id, n_bytes, header_bytes)


def taken(made: Any, *sizes: int) -> list[Any]:
    return [made.take(size) for size in sizes] if sizes else list(iter(made.take, None))


def test_headers_leave_in_the_order_of_responses_and_ahead_of_all_data() -> None:
    # nghttp2_session_pop_next_ob_item: HEADERS are in ob_reg, DATA is asked for when that is empty.
    made = HeadersFirstSender(RankScheduler(), turn_bytes=TURN)
    respond(made, 0, 2050, 50, rank=2)
    assert taken(made, TURN, TURN) == [(0, 0, 50), (0, 50, 1000)]
    respond(made, 4, 70, 30, rank=3)
    respond(made, 8, 540, 40, rank=1)
    assert taken(made) == [(4, 0, 30), (8, 0, 40), (8, 40, 500), (0, 1050, 1000), (4, 30, 40)]


def test_a_response_without_a_body_ends_with_its_headers() -> None:
    made = HeadersFirstSender(RankScheduler(), turn_bytes=TURN)
    respond(made, 0, 50, 50)
    assert made.has_data
    assert taken(made) == [(0, 0, 50)]
    assert made.take_drained() == [0]
    assert not made.has_data


def test_headers_take_no_turn_of_the_scheduler() -> None:
    made = HeadersFirstSender(RoundRobinScheduler(), turn_bytes=TURN)
    for stream_id in (0, 4):
        made.open(stream_id, H2Priority())
        made.send(stream_id, 2050, 50)
    order = [chunk[0] for chunk in taken(made)]
    assert order == [0, 4, 0, 4, 0, 4]


def test_headers_that_do_not_fit_go_on_in_a_continuation() -> None:
    made = HeadersFirstSender(RankScheduler(), turn_bytes=TURN)
    respond(made, 0, 1500, 1300)
    respond(made, 4, 10, 10)
    assert taken(made) == [(0, 0, 1000), (0, 1000, 300), (4, 0, 10), (0, 1300, 200)]


def test_headers_that_wait_are_counted_with_their_frames() -> None:
    made = HeadersFirstSender(RankScheduler(), turn_bytes=TURN)
    assert made.waiting_header_bytes() == 0
    respond(made, 0, 1500, 1300)
    respond(made, 4, 10, 10)
    assert made.waiting_header_bytes() == (1300 + 2 * 9) + (10 + 9)
    assert taken(made, TURN) == [(0, 0, 1000)]
    assert made.waiting_header_bytes() == (300 + 9) + (10 + 9)


def test_in_a_send_buffer_headers_wait_behind_what_came_before() -> None:
    made = HeadersFirstSender(RankScheduler(), turn_bytes=TURN, buffer_bytes=2100)
    respond(made, 0, 5100, 100)
    respond(made, 4, 550, 50)
    # The buffer is full of the first one's HEADERS and two turns; then HEADERS, and no DATA.
    assert taken(made)[:4] == [(0, 0, 100), (0, 100, 1000), (0, 1100, 1000), (4, 0, 50)]


def test_a_stream_is_drained_once_headers_and_data_are_acknowledged() -> None:
    made = HeadersFirstSender(RankScheduler(), turn_bytes=TURN, retains_until_acked=True)
    respond(made, 0, 150, 50)
    assert taken(made) == [(0, 0, 50), (0, 50, 100)]
    made.on_acked(0, 0, 50)
    assert made.take_drained() == []
    made.on_acked(0, 50, 100)
    assert made.take_drained() == [0]


def test_over_http2_sections_are_encoded_when_responses_are_ready() -> None:
    made, encoded, acked = section_sender({0: 50, 4: 60}, is_http2=True)
    for stream_id, rank in ((0, 2), (4, 1)):
        made.open(stream_id, Rank(value=rank))
        made.send(stream_id, 100)
    assert encoded == [0, 4]
    assert taken(made) == [(0, 0, 50), (4, 0, 60), (4, 60, 100), (0, 50, 100)]
    made.on_acked(4, 0, 60)
    assert acked == [4]


def two_responses() -> h3sim.Page:
    """Return a page of two bodies of two DATA frames each, which are asked for at once."""
    entry = {
        "kind": "image",
        "bytes": 2 * 16_384,
        "header_bytes": 100,
        "discovered": {"at": "time"},
    }
    document = {"id": "a", "kind": "document", "bytes": 2 * 16_384, "header_bytes": 200}
    resources = [document, {"id": "b", **entry}]
    return page_from_dict({"format": "h3sim-page/1", "name": "two", "resources": resources})


def frames(load: h3sim.Load) -> list[tuple[int, int, int]]:
    """Return the frames of a load in the order sent, their packets joined."""
    joined: list[tuple[int, int, int]] = []
    for _, _, stream_id, offset, n_bytes, *_ in load.trace.packet_rows:
        if joined and joined[-1][0] == stream_id and sum(joined[-1][1:]) == offset:
            joined[-1] = (stream_id, joined[-1][1], joined[-1][2] + n_bytes)
        else:
            joined.append((stream_id, offset, n_bytes))
    return joined


@pytest.mark.parametrize(
    ("transport", "expected"),
    [
        # DATA frames carry 16,384 bytes of a body: HEADERS take nothing of them.
        ("tcp", [(0, 0, 200), (4, 0, 100), (0, 200, 32_768), (4, 100, 32_768)]),
        ("quic", [(0, 0, 32_968), (4, 0, 32_868)]),
    ],
)
def test_headers_of_http2_overtake_data_and_those_of_http3_do_not(
    transport: str, expected: list[tuple[int, int, int]]
) -> None:
    load = h3sim.simulate(
        two_responses(), scheme="fifo", network="4g", transport=transport, handshake="none"
    )
    assert frames(load) == expected


@pytest.mark.parametrize("transport", ["tcp", "quic"])
def test_so_do_those_that_are_compressed(transport: str) -> None:
    load = h3sim.simulate(
        two_responses(),
        scheme="fifo",
        network="4g",
        transport=transport,
        handshake="none",
        header_compression="hpack",
    )
    body_bytes = 2 * 16_384
    first, second = (request.length_bytes - body_bytes for request in load.trace.requests)
    assert min(first, second) > 0
    assert frames(load) == (
        [(0, 0, first), (4, 0, second), (0, first, body_bytes), (4, second, body_bytes)]
        if transport == "tcp"
        else [(0, 0, first + body_bytes), (4, 0, second + body_bytes)]
    )


def test_headers_of_exactly_a_turn_need_no_continuation() -> None:
    made = HeadersFirstSender(RankScheduler(), turn_bytes=TURN)
    respond(made, 0, TURN + 10, TURN)
    assert taken(made) == [(0, 0, TURN), (0, TURN, 10)]


def test_headers_that_end_a_stream_are_kept_until_they_are_acknowledged() -> None:
    made = HeadersFirstSender(RankScheduler(), turn_bytes=TURN, retains_until_acked=True)
    respond(made, 0, 50, 50)
    assert taken(made) == [(0, 0, 50)]
    assert made.take_drained() == []
    made.on_acked(0, 0, 50)
    assert made.take_drained() == [0]


@pytest.mark.parametrize(("buffer_bytes", "drained"), [(1150, [0, 4]), (1149, [0])])
def test_headers_enter_a_buffer_that_has_room_for_them_alone(
    buffer_bytes: int, drained: list[int]
) -> None:
    made = HeadersFirstSender(RankScheduler(), turn_bytes=TURN, buffer_bytes=buffer_bytes)
    # HEADERS of 100 bytes and a turn are in; those of 50 end a stream as they enter.
    respond(made, 0, 100 + TURN, 100)
    respond(made, 4, 50, 50)
    assert made.take_drained() == drained
