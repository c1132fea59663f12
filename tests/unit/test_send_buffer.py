"""A send buffer by itself: what fits, and how much of its first chunk goes."""

from __future__ import annotations

from h3sim.http.send_buffer import SendBuffer
from tests.tcp_pair import FixedHeader


def filled(*chunks: tuple[int, int, int]) -> SendBuffer:
    buffer = SendBuffer(1000)
    for chunk in chunks:
        buffer.put(chunk)
    return buffer


def test_a_chunk_leaves_completely_or_is_cut_and_stays_first() -> None:
    buffer = filled((0, 10, 300), (4, 0, 200))
    assert buffer.take(100) == (0, 10, 100)
    assert buffer.take(200) == (0, 110, 200)
    assert buffer.take(None) == (4, 0, 200)
    assert (bool(buffer), buffer.take(None), buffer.take(9)) == (False, None, None)


def test_a_header_takes_its_part_of_a_limit_and_without_a_limit_nothing() -> None:
    buffer = filled((0, 0, 300))
    assert buffer.take(41, FixedHeader(10), 32) is None
    assert buffer.take(42, FixedHeader(10), 32) == (0, 0, 32)
    assert buffer.take(42, None, 100) == (0, 32, 42)
    assert buffer.take(None, FixedHeader(10), 32) == (0, 74, 226)


def test_what_leaves_makes_room_for_as_much() -> None:
    buffer = filled((0, 0, 700))
    assert [buffer.has_room(n_bytes) for n_bytes in (300, 301)] == [True, False]
    buffer.take(100)
    assert [buffer.has_room(n_bytes) for n_bytes in (400, 401)] == [True, False]
    buffer.take(None)
    assert buffer.has_room(10**9)
