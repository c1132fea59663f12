"""Linux's autotuned send buffer, by hand from tcp_sndbuf_expand and sk_stream_is_writeable."""

from __future__ import annotations

from typing import Any

import pytest

import h3sim
from h3sim.transport.tcp import TcpSettings
from h3sim.transport.tcp.records import AutotunedSendStream, Message
from h3sim.transport.tcp.settings import SocketBuffer, TlsVersion
from tests.tcp_pair import ScriptedSource
from tests.unit.test_quic_windows import Endless

MSS = 1448
PER_SEGMENT = 4096 + 256
"""1460 + 320 + 320 bytes take 4096, and an sk_buff comes on top."""
FIRST = 2 * 10 * PER_SEGMENT
"""87,040, which `ss -tm` shows of a new connection as tb87040."""


class Counting(Endless):
    """Counts what was asked of it: so much the scheduler can no longer change."""

    def __init__(self) -> None:
        super().__init__()
        self.taken = 0

    def take(self, max_bytes: Any = None, header: Any = None, min_bytes: int = 0) -> Any:
        self.taken += 1
        return super().take(max_bytes, header, min_bytes)


def stream(**settings: Any) -> tuple[AutotunedSendStream, Counting]:
    source = Counting()
    made = TcpSettings(
        **{
            "send_buffer": SocketBuffer.AUTOTUNED,
            "notsent_lowat_bytes": None,
            "tls": TlsVersion.NONE,
            **settings,
        }
    )
    return AutotunedSendStream(made, source), source


def test_at_first_it_takes_the_memory_of_ten_segments_twice_over() -> None:
    made, source = stream()
    made.fill(0, 0)
    assert made.end == FIRST == 87_040
    # Frames of 16,393 bytes: the sixth was written, and part of it waits in the application.
    assert source.taken == 6


def test_a_full_buffer_takes_nothing_before_a_third_of_it_is_free() -> None:
    made, _ = stream()
    made.fill(0, 0)
    made.cut(50_000)
    made.fill(29_013, 0)  # 58,027 of 87,040 bytes left: 3 * 58,027 > 2 * 87,040
    assert made.end == FIRST
    made.fill(29_014, 0)
    assert made.end == 29_014 + FIRST


def test_it_grows_to_two_windows_memory_where_the_window_is_not_filled() -> None:
    made, _ = stream()
    made.fill(0, 0)
    made.cut(FIRST)
    assert not made.expand(10 * MSS)  # as large as it is
    assert made.expand(61 * MSS)
    made.fill(0, 0)
    assert made.end == 2 * 61 * PER_SEGMENT == 530_944
    made.cut(made.end - FIRST)
    assert not made.expand(60 * MSS)  # it never shrinks


def test_it_grows_no_further_than_the_largest_buffer() -> None:
    made, _ = stream(send_buffer_bytes=100_000)
    made.fill(0, 0)
    assert made.expand(1000 * MSS)
    made.cut(FIRST)
    made.fill(0, 0)  # what is in it still takes more than two thirds
    assert made.end == FIRST
    made.fill(FIRST, 0)
    assert made.end == FIRST + 100_000


def test_a_buffer_that_was_never_full_does_not_grow() -> None:
    made, _ = stream()
    assert not made.expand(1000 * MSS)


def test_with_a_mark_it_takes_that_much_unsent_and_then_waits_for_half_of_it() -> None:
    made, _ = stream(notsent_lowat_bytes=16_384)
    made.fill(0, 0)
    assert made.end == 16_384
    made.cut(8192)
    made.fill(0, 0)  # tcp_stream_memory_free: 2 * 8192 is not below the mark
    assert made.end == 16_384
    made.cut(1)
    made.fill(0, 0)
    assert made.end == 8193 + 16_384


def test_larger_segments_take_the_next_power_of_two() -> None:
    made, _ = stream(mss_bytes=8948)  # 8960 + 640 bytes take 16,384
    made.fill(0, 0)
    assert made.end == 2 * 10 * (16_384 + 256)


def load() -> h3sim.Load:
    return h3sim.simulate(
        "http2rulez", scheme="fifo", network="fibre", transport_profile="linux-tcp-nghttpd"
    )


def test_a_load_over_such_a_buffer_brings_all_and_is_the_same_twice() -> None:
    made = load()
    brought: dict[int, int] = {}
    for _, _, stream_id, offset, n_bytes, *_ in made.trace.packet_rows:
        brought[stream_id] = max(brought.get(stream_id, 0), offset + n_bytes)
    assert sum(brought.values()) == made.page.total_bytes
    assert made.trace.digest() == load().trace.digest()


def scripted(**settings: Any) -> tuple[AutotunedSendStream, ScriptedSource]:
    """Return a stream in cleartext, whose frames have headers of 9 bytes."""
    source = ScriptedSource()
    chosen = {"notsent_lowat_bytes": None, "tls": TlsVersion.NONE, **settings}
    return AutotunedSendStream(TcpSettings(**chosen), source), source


def test_a_buffer_that_was_not_full_takes_more_though_less_than_a_third_of_it_is_free() -> None:
    made, source = scripted(data_frame_bytes=80_000)
    source.put(0, 79_991)
    made.fill(0, 0)
    source.put(4, 991)
    made.fill(0, 0)
    assert made.end == 81_000


def test_a_buffer_that_has_taken_all_that_there_was_is_full_no_more() -> None:
    made, source = scripted(data_frame_bytes=100_000)
    source.put(0, 99_991)
    made.fill(0, 0)
    assert made.end == FIRST
    made.cut(FIRST)
    made.fill(FIRST, 0)
    assert made.end == 100_000
    assert not made.expand(1000 * MSS)


@pytest.mark.parametrize(("acked", "end"), [(19_999, 60_000), (20_000, 80_000)])
def test_exactly_a_third_of_it_is_enough(acked: int, end: int) -> None:
    made, _ = stream(send_buffer_bytes=60_000)
    made.fill(0, 0)
    made.cut(60_000)
    made.fill(acked, 0)
    assert made.end == end


def test_a_handshake_beyond_the_mark_stays_in_the_socket_and_nothing_follows_it() -> None:
    made, source = scripted(notsent_lowat_bytes=1000)
    made.write_message(Message.SERVER_FLIGHT, 3000)
    source.put(0, 500)
    made.fill(0, 0)
    assert made.end == 3000
