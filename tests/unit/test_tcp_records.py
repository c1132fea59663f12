"""HTTP/2 frames in TLS records in the byte stream, and what of it can be read when."""

from __future__ import annotations

from typing import Any

import pytest

from h3sim.http import StreamSender
from h3sim.schedulers import FifoScheduler
from h3sim.signals import H2Priority
from h3sim.transport.tcp import TcpSettings, TlsVersion
from h3sim.transport.tcp.records import SendStream
from h3sim.values.units import NS_PER_S
from tests.tcp_pair import CLIENT, MSS, SERVER, FixedWindow, Pair, ScriptedSource, body_bytes, drops

FULL = 16_384 - 9
"""What a full record holds of a body."""
SMALL = MSS - 22 - 9
"""What a record of one segment holds of it."""


def load(*bodies: Any, window: int = 100, settings: Any = None, **path: Any) -> Any:
    pair = Pair(settings=settings, server_controller=FixedWindow(window * MSS), **path)
    for stream_id, n_bytes in bodies:
        pair.put(SERVER, stream_id, n_bytes)
    return pair.run()


def test_a_chunk_takes_a_frame_header_and_a_record() -> None:
    pair = load((0, 100))
    segment = pair.data()[0].segment
    assert (segment.length, segment.frames) == (100 + 9 + 22, [(0, 0, 100)])
    assert segment.size_bytes == segment.length + 32
    assert segment.ip_bytes == segment.size_bytes + 20


def test_chunks_share_a_record_while_it_has_room() -> None:
    pair = load((0, 100), (4, 200), (8, 300))
    assert pair.data()[0].segment.length == 600 + 3 * 9 + 22
    assert pair.delivered[CLIENT] == [(50, 0, 0, 100), (50, 4, 0, 200), (50, 8, 0, 300)]
    assert len(pair.data()[0].segment.records) == 1


def test_a_response_without_a_byte_is_a_frame_without_a_byte() -> None:
    pair = load((0, 0), (4, 10))
    assert pair.delivered[CLIENT] == [(50, 0, 0, 0), (50, 4, 0, 10)]
    assert pair.data()[0].segment.frames == [(0, 0, 0), (4, 0, 10)]


def test_segments_name_the_bytes_of_bodies_that_they_carry() -> None:
    pair = load((0, 3000))
    spans = [sent.segment.frames for sent in pair.data()]
    first = MSS - 5 - 9  # behind the record's and the frame's header
    assert spans == [[(0, 0, first)], [(0, first, MSS)], [(0, first + MSS, 3000 - first - MSS)]]
    assert [len(sent.segment.records) for sent in pair.data()] == [0, 0, 1]


def test_a_segment_may_end_one_record_and_begin_another() -> None:
    pair = load((0, FULL), (4, 5000))
    boundary = FULL + 9 + 22
    across = pair.data()[boundary // MSS].segment
    tail = boundary % MSS - 17
    assert across.frames == [(0, FULL - tail, tail), (4, 0, MSS - tail - 17 - 5 - 9)]


def test_a_segment_that_holds_but_a_tag_carries_no_body() -> None:
    pair = load((0, 2 * MSS - 5 - 9))
    assert [sent.segment.frames for sent in pair.data()][2:] == [[]]
    assert pair.data()[2].segment.length == 17


def test_a_frame_that_begins_with_the_next_segment_is_not_named_by_this_one() -> None:
    pair = load((0, MSS - 5 - 9 - 9), (4, 100))
    assert [sent.segment.frames for sent in pair.data()] == [[(0, 0, MSS - 23)], [(4, 0, 100)]]


def test_data_frames_are_cut_to_their_largest_size() -> None:
    pair = load((0, 5000), settings=TcpSettings(data_frame_bytes=2000))
    assert [row[1:] for row in pair.delivered[CLIENT]] == [
        (0, 0, 2000),
        (0, 2000, 2000),
        (0, 4000, 1000),
    ]


def test_nothing_of_a_record_can_be_read_before_its_last_byte() -> None:
    # One segment per round trip: what a 16 KB record costs is plain to see.
    settings = TcpSettings(ack_every=1)
    pair = load((0, FULL), settings=settings, window=1)
    n_segments = -(-(FULL + 31) // MSS)
    assert pair.delivered[CLIENT] == [(50 + 100 * (n_segments - 1), 0, 0, FULL)]


def test_records_of_one_segment_can_be_read_one_by_one() -> None:
    settings = TcpSettings(ack_every=1, has_dynamic_records=True)
    pair = load((0, 10 * SMALL), settings=settings, window=1)
    assert pair.delivered[CLIENT] == [
        (50 + 100 * position, 0, position * SMALL, SMALL) for position in range(10)
    ]


def test_a_loss_holds_back_what_comes_after_it() -> None:
    settings = TcpSettings(has_dynamic_records=True)
    pair = load((0, 4 * SMALL), (4, 6 * SMALL), settings=settings, drop=drops(3))
    assert [(row[0], row[1]) for row in pair.delivered[CLIENT]] == [
        *[(50, 0)] * 3,
        (150, 0),
        *[(150, 4)] * 6,
    ]


def test_dynamic_records_grow_once_enough_was_written() -> None:
    settings = TcpSettings(has_dynamic_records=True, dynamic_record_bytes=10 * MSS)
    pair = load((0, 10 * SMALL + FULL), settings=settings)
    assert [row[3] for row in pair.delivered[CLIENT]] == [SMALL] * 10 + [FULL]


def test_dynamic_records_shrink_after_an_idle_time() -> None:
    settings = TcpSettings(has_dynamic_records=True, dynamic_record_bytes=MSS)
    pair = load((0, SMALL + FULL), settings=settings)
    before = len(pair.delivered[CLIENT])
    pair.put(SERVER, 4, SMALL + FULL)
    pair.run()
    assert [row[3] for row in pair.delivered[CLIENT][before:]] == [FULL, SMALL]
    pair.run(until_ms=10_000)
    pair.now_ns = 10_000_000_000
    pair.put(SERVER, 8, SMALL + FULL)
    pair.run()
    assert [row[3] for row in pair.delivered[CLIENT][-2:]] == [SMALL, FULL]


def taken_bytes(pair: Any) -> Any:
    return sum(n_bytes for _, _, n_bytes in pair.sources[SERVER].taken)


@pytest.mark.parametrize("lowat", [1, 10_000, 40_000])
def test_no_record_is_taken_while_enough_waits_unsent(lowat: Any) -> None:
    pair = Pair(
        settings=TcpSettings(notsent_lowat_bytes=lowat), server_controller=FixedWindow(10 * MSS)
    )
    pair.put(SERVER, 0, 500_000)
    pair.ends[SERVER].packets_to_send(0)
    n_records = len(pair.sources[SERVER].taken)
    unsent = n_records * (FULL + 31) - 10 * MSS
    assert unsent >= lowat or lowat == 1
    assert unsent - (FULL + 31) < lowat


@pytest.mark.parametrize("send_buffer_bytes", [100_000, 7 * (FULL + 31)])
def test_without_a_mark_the_send_buffer_fills_up(send_buffer_bytes: int) -> None:
    """One that is full to the byte takes no more (Linux, `sk_stream_memory_free`)."""
    settings = TcpSettings(notsent_lowat_bytes=None, send_buffer_bytes=send_buffer_bytes)
    pair = Pair(settings=settings, server_controller=FixedWindow(20 * MSS))
    pair.put(SERVER, 0, 500_000)
    pair.ends[SERVER].packets_to_send(0)
    # Seven records of 16406 bytes are the first that reach it; what is in flight counts too.
    assert taken_bytes(pair) == 7 * FULL


def test_a_late_response_overtakes_less_the_larger_the_socket_is() -> None:
    def overtaken(lowat: Any) -> Any:
        pair = Pair(
            settings=TcpSettings(notsent_lowat_bytes=lowat), server_controller=FixedWindow(MSS)
        )
        server = StreamSender(FifoScheduler(), turn_bytes=1400)
        pair.sources[SERVER] = server
        pair.ends[SERVER]._stream._source = server
        server.open(4, H2Priority())
        server.send(4, 400_000)
        pair.run(until_ms=10)
        server.open(0, H2Priority())
        server.send(0, 1400)
        pair.run()
        rows = pair.delivered[CLIENT]
        assert pair.bytes_of(CLIENT, 0) == 1400
        return sum(row[3] for row in rows[: [row[1] for row in rows].index(0)])

    sizes = [overtaken(lowat) for lowat in (16_384, 100_000, 300_000)]
    assert sizes == sorted(sizes) == sorted(set(sizes))


def test_the_source_is_notified_of_completely_acknowledged_records() -> None:
    pair = Pair(server_controller=FixedWindow(20 * MSS), drop=drops(5))
    pair.put(SERVER, 0, FULL + 1000)
    pair.run(until_ms=110)
    assert pair.sources[SERVER].acked == []
    pair.run()
    assert pair.sources[SERVER].acked == pair.sources[SERVER].taken


def test_a_server_drains_streams_that_were_acknowledged() -> None:
    server = StreamSender(FifoScheduler(), turn_bytes=16_384, retains_until_acked=True)
    pair = Pair(server_source=server, server_controller=FixedWindow(10 * MSS), drop=drops(2))
    for stream_id in (0, 4):
        server.open(stream_id, H2Priority())
        server.send(stream_id, 30_000)
    pair.run()
    assert [pair.bytes_of(CLIENT, stream_id) for stream_id in (0, 4)] == [30_000, 30_000]
    assert server.take_drained() == [0, 4]


def test_the_peers_window_limits_what_is_under_way() -> None:
    client = TcpSettings(receive_window_bytes=4 * MSS)
    pair = Pair(client_settings=client, settings=client, server_controller=FixedWindow(20 * MSS))
    pair.put(SERVER, 0, body_bytes(20))
    pair.run()
    assert max(pair.controllers[SERVER].in_flight) == 4 * MSS
    assert pair.bytes_of(CLIENT, 0) == body_bytes(20)


def test_a_script_gives_what_was_put_in() -> None:
    source = ScriptedSource()
    source.put(0, 10)
    assert (source.peek(), source.take(6), source.take(6), source.take(6)) == (
        (0, 0),
        (0, 0, 6),
        (0, 6, 4),
        None,
    )


CLEARTEXT = TcpSettings(tls="none")  # type: ignore[arg-type]


def test_in_cleartext_a_frame_can_be_read_once_it_is_complete() -> None:
    pair = load((0, 100), (4, 200), settings=CLEARTEXT)
    assert pair.data()[0].segment.length == 300 + 2 * 9
    assert len(pair.data()[0].segment.records) == 2


def test_in_cleartext_a_frame_has_up_to_16384_bytes() -> None:
    pair = load((0, 20_000), settings=CLEARTEXT)
    assert [frame[1:] for frame in pair.delivered[CLIENT]] == [(0, 0, 16_384), (0, 16_384, 3616)]


def written(*bodies: Any, write_bytes: int) -> list[Any]:
    """The frames that enter the socket at once, write by write."""
    settings = TcpSettings(tls="none", notsent_lowat_bytes=1, write_bytes=write_bytes)  # type: ignore[arg-type]
    pair = load(*bodies, window=1, settings=settings)
    return [frame[2:] for frame in pair.delivered[CLIENT]]


def test_the_last_frame_of_a_write_is_cut_to_what_is_left_of_it() -> None:
    # 10,000 bytes take two headers of 9: 2000 and 7982; what is left of the second goes next.
    assert written((0, 2000), (4, 12_000), write_bytes=10_000) == [
        (0, 2000),
        (0, 7982),
        (7982, 4018),
    ]


def test_a_server_that_cuts_no_frames_writes_the_last_one_completely() -> None:
    settings = TcpSettings(
        tls="none",  # type: ignore[arg-type]
        notsent_lowat_bytes=1,
        write_bytes=10_000,
        cuts_frames=False,
    )
    pair = load((0, 2000), (4, 12_000), (8, 500), window=1, settings=settings)
    assert [frame[1:] for frame in pair.delivered[CLIENT]] == [
        (0, 0, 2000),
        (4, 0, 12_000),
        (8, 0, 500),
    ]


def test_a_write_of_one_record_cuts_nothing() -> None:
    assert written((0, 2000), (4, 12_000), write_bytes=0) == [(0, 2000), (0, 12_000)]


def test_an_empty_body_that_ends_its_segment_goes_with_that_segment() -> None:
    # 9 bytes of header each: the empty one ends where the segment does.
    pair = load((0, 100), (4, 0), settings=CLEARTEXT)
    first = pair.data()[0].segment
    assert first.length == 100 + 2 * 9
    assert list(first.frames) == [(0, 0, 100), (4, 0, 0)]
    assert [len(sent.segment.frames) for sent in pair.data()[1:]] == []


def taken(n_bytes: int, *fills_ns: int, acked: int = 0, **settings: Any) -> list[int]:
    """Return the bytes of the bodies' frames that enter when the socket is filled then."""
    source = ScriptedSource()
    stream = SendStream(TcpSettings(**{"notsent_lowat_bytes": None, **settings}), source)
    for now_ns in fills_ns:
        source.put(0, n_bytes)
        stream.fill(acked, now_ns)
    return [row[2] for row in source.taken]


@pytest.mark.parametrize(("lowat", "n_records"), [(FULL + 30, 1), (FULL + 31, 1), (FULL + 32, 2)])
def test_nothing_enters_while_exactly_the_mark_waits(lowat: int, n_records: int) -> None:
    assert taken(100_000, 0, notsent_lowat_bytes=lowat) == [FULL] * n_records


@pytest.mark.parametrize(
    ("dynamic_bytes", "n_small"), [(9 * MSS, 9), (9 * MSS + 1, 10), (10 * MSS, 10)]
)
def test_records_are_small_until_exactly_so_much_was_written(
    dynamic_bytes: int, n_small: int
) -> None:
    settings = {"has_dynamic_records": True, "dynamic_record_bytes": dynamic_bytes}
    assert taken(n_small * SMALL + 10, 0, **settings) == [SMALL] * n_small + [10]
    assert taken(10 * SMALL + FULL, 0, **settings)[n_small] > SMALL
    # After a rest of a second the count begins with 0 again; after less it goes on.
    n_bytes = n_small * SMALL + FULL
    rested = taken(n_bytes, 0, NS_PER_S, **settings)
    assert rested == ([SMALL] * n_small + [FULL]) * 2
    assert taken(n_bytes, 0, NS_PER_S - 1, **settings)[n_small + 1] > SMALL


def test_in_cleartext_no_record_is_dynamic() -> None:
    assert taken(20_000, 0, has_dynamic_records=True, tls=TlsVersion.NONE) == [16_384, 3616]


@pytest.mark.parametrize(("left", "second"), [(41, 32), (42, 33), (40, None)])
def test_a_record_takes_a_further_frame_if_it_has_room_for_32_bytes_of_it(
    left: int, second: int | None
) -> None:
    source = ScriptedSource()
    source.put(0, 16_384 - 9 - left)
    source.put(4, 100)
    SendStream(TcpSettings(notsent_lowat_bytes=1), source).fill(0, 0)
    assert [row[2] for row in source.taken[1:]] == ([] if second is None else [second])


def test_a_write_counts_what_its_records_add() -> None:
    """Of 10,000 bytes 22 are the record's; the header of each frame has 9."""
    source = ScriptedSource()
    source.put(0, 2000)
    source.put(4, 12_000)
    stream = SendStream(TcpSettings(notsent_lowat_bytes=1, write_bytes=10_000), source)
    stream.fill(0, 0)
    assert source.taken == [(0, 0, 2000), (4, 0, 10_000 - 22 - 9 - 2000 - 9)]
    assert stream.end == 10_000


def test_a_full_send_buffer_takes_as_much_as_was_acknowledged() -> None:
    source = ScriptedSource()
    source.put(0, 500_000)
    record = FULL + 31
    settings = TcpSettings(notsent_lowat_bytes=None, send_buffer_bytes=3 * record)
    stream = SendStream(settings, source)
    stream.fill(0, 0)
    stream.cut(3 * record)
    ends = []
    for acked in (0, 1, record, 3 * record):
        stream.fill(acked, 0)
        ends.append(stream.end // record)
    assert ends == [3, 4, 4, 6]
