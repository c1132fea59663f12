"""What leaves a TCP endpoint when, worked by hand: 100 ms there and back, 1448 bytes a segment."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from h3sim.transport.quic.handshake import HandshakeMode
from h3sim.transport.tcp import Segment, TcpSettings
from h3sim.transport.tcp.settings import SocketBuffer, TlsVersion
from h3sim.values.units import ms
from tests.tcp_pair import CLIENT, MSS, SERVER, FixedWindow, Pair, body_bytes, drops

LINUX = TcpSettings.linux()
CLEARTEXT = TcpSettings(tls=TlsVersion.NONE)


def made(settings: TcpSettings, n_segments: int, window_bytes: int = 10 * MSS, **path: Any) -> Pair:
    """Return a pair whose server has so many full segments to send."""
    pair = Pair(settings=settings, server_controller=FixedWindow(window_bytes), **path)
    pair.put(SERVER, 0, body_bytes(n_segments))
    return pair


def request(now_ms: float) -> Segment:
    """Return a segment of the client with 100 bytes that acknowledges nothing new."""
    return Segment(0, ms(now_ms) - ms(50), 0, 100, 0, None, 6 * 2**20)


class TestTimers:
    """The first of what is due: recovery, a delayed ACK, the pace."""

    @pytest.mark.parametrize(("ack_delay_ms", "due_ms"), [(40, 55), (500, 200 + 100)])
    def test_a_delayed_ack_or_recovery(self, ack_delay_ms: float, due_ms: float) -> None:
        server = made(replace(LINUX, max_ack_delay_ns=ms(ack_delay_ms)), 1).ends[SERVER]
        assert len(server.packets_to_send(0)) == 1
        server.on_packet(request(15), ms(15))
        # A lone segment is probed with its timeout, 100 + 200 ms after it left.
        assert server.timer_at_ns() == ms(due_ms)

    @pytest.mark.parametrize(("gain", "due_ms"), [(0.1, 100), (0.02, 300)])
    def test_the_pace_or_recovery(self, gain: float, due_ms: float) -> None:
        settings = replace(LINUX, pacing_gain=gain, pacing_burst_segments=1)
        server = made(settings, 2).ends[SERVER]
        assert len(server.packets_to_send(0)) == 1
        # A window of ten segments and 100 ms: one of them each 10 ms, over the gain.
        assert server.timer_at_ns() == ms(due_ms)

    def test_the_pace_alone_where_nothing_is_out(self) -> None:
        pair = made(TcpSettings(pacing_gain=0.02, pacing_burst_segments=1, ack_every=1), 2)
        pair.run(until_ms=100)
        server = pair.ends[SERVER]
        assert not server.recovery.board.sent
        assert server.timer_at_ns() == ms(500)

    @pytest.mark.parametrize("role", [CLIENT, SERVER])
    def test_an_end_that_is_woken_before_it_has_a_timer_does_nothing(self, role: Any) -> None:
        end = Pair(mode=HandshakeMode.ONE_RTT).ends[role]
        before = end.timer_at_ns()
        end.on_timer(ms(5))
        assert (before, end.timer_at_ns()) == (None, None)


def sent_ms(pair: Pair) -> list[float]:
    return [sent.at_ms for sent in pair.data()]


def test_so_many_segments_leave_together_as_a_burst_may_have() -> None:
    settings = TcpSettings(pacing_gain=1.0, pacing_burst_segments=3)
    pair = made(settings, 8).run()
    # Ten a round trip; the bucket holds three.
    assert sent_ms(pair) == [0, 0, 0, 10, 20, 30, 40, 50]


def test_what_goes_again_is_paced_too() -> None:
    settings = TcpSettings(pacing_gain=1.0, pacing_burst_segments=1)
    pair = made(settings, 3, drop=drops(0, 1, 2)).run()
    assert pair.again() == [(1000, 0), (1010, MSS), (1020, 2 * MSS)]


class Flags(FixedWindow):
    """Notes of each acknowledgement whether the window was not made full use of."""

    def __init__(self, window_bytes: int) -> None:
        super().__init__(window_bytes)
        self.flags: list[bool] = []

    def on_acked(self, *reported: Any) -> None:
        super().on_acked(*reported)
        self.flags.append(reported[-1])


@pytest.mark.parametrize(
    ("n_segments", "is_underutilized"),
    [
        # Of a window of four: a segment more would have left; it is full; more waits.
        (3, True),
        (4, False),
        (5, False),
    ],
)
def test_a_window_is_underutilized_while_a_full_segment_more_could_have_left(
    n_segments: int, is_underutilized: bool
) -> None:
    """RFC 9002 § 7.8, which TCP has from RFC 7661."""
    window = Flags(4 * MSS)
    pair = Pair(settings=TcpSettings(ack_every=1), server_controller=window)
    pair.put(SERVER, 0, body_bytes(1))
    pair.run()
    assert window.flags == [True]
    pair.put(SERVER, 4, body_bytes(n_segments))
    pair.run(until_ms=pair.now_ns / ms(1) + 100)
    assert window.flags[1] is is_underutilized


def test_a_window_that_a_timeout_left_too_small_for_what_was_lost_is_made_full_use_of() -> None:
    class Collapsing(Flags):
        def on_persistent_congestion(self, now_ns: int) -> None:
            super().on_persistent_congestion(now_ns)
            self.congestion_window = 2 * MSS

    # Before, three of ten had left; two of the three fit into the window now.
    window = Collapsing(10 * MSS)
    pair = Pair(server_controller=window, drop=drops(0, 1, 2))
    pair.put(SERVER, 0, body_bytes(3))
    pair.run()
    assert [at_ms for at_ms, _ in pair.again()] == [1000, 1000, 1100]
    assert window.flags == [False, True]


class TestPeersWindow:
    """RFC 9293 § 3.8.6: nothing leaves beyond SND.UNA + SND.WND."""

    @pytest.mark.parametrize(
        ("n_segments", "probe"),
        [
            # Two were acknowledged, so five fit into a window of three. Four were sent: the probe
            # is the fifth. Or five were: it is the last of them once more.
            (4, (300, 4 * MSS)),
            (5, (300, 4 * MSS)),
        ],
    )
    def test_a_probe_takes_new_data_as_far_as_the_peer_takes_it(
        self, n_segments: int, probe: tuple[float, int]
    ) -> None:
        settings = replace(LINUX, receive_window_bytes=3 * MSS)
        pair = made(settings, n_segments, drop=drops(*range(2, n_segments)))
        pair.run(until_ms=290)
        assert len(pair.data()) == n_segments
        window = pair.controllers[SERVER]
        window.congestion_window = 0
        pair.put(SERVER, 4, body_bytes(2))
        pair.run(until_ms=300)
        assert [(sent.at_ms, sent.segment.seq) for sent in pair.data()[n_segments:]] == [probe]

    def test_a_syn_that_comes_late_closes_no_window(self) -> None:
        settings = TcpSettings(receive_window_bytes=2 * MSS, tls=TlsVersion.NONE)
        pair = Pair(
            mode=HandshakeMode.ONE_RTT, settings=settings, server_controller=FixedWindow(20 * MSS)
        ).run()
        pair.put(SERVER, 0, body_bytes(3))
        pair.run()
        assert pair.bytes_of(CLIENT, 0) == body_bytes(3)
        server, now_ns = pair.ends[SERVER], pair.now_ns
        late = next(sent.segment for sent in pair.sent if sent.segment.is_syn)
        assert late.ack is None
        server.on_packet(late, now_ns)
        pair.put(SERVER, 4, body_bytes(1))
        assert [segment.length > 0 for segment in server.packets_to_send(now_ns)] == [True]

    def test_what_the_answer_to_its_own_answer_announces_holds(self) -> None:
        """RFC 9293 § 3.10.7.4: with the state ESTABLISHED SND.WND is that segment's."""
        server = Pair(
            mode=HandshakeMode.ONE_RTT, settings=CLEARTEXT, server_controller=FixedWindow(20 * MSS)
        ).ends[SERVER]
        server.on_packet(Segment(0, 0, 0, 0, None, None, 9 * MSS, is_syn=True), ms(50))
        assert len(server.packets_to_send(ms(50))) == 1
        server.on_packet(Segment(1, ms(100), 0, 0, 0, ms(50), 2 * MSS), ms(150))
        server._source.put(0, body_bytes(5))  # type: ignore[attr-defined]
        assert sum(segment.length for segment in server.packets_to_send(ms(150))) == 2 * MSS


class TestOpening:
    def test_in_cleartext_an_opening_is_three_segments(self) -> None:
        pair = Pair(mode=HandshakeMode.ONE_RTT, settings=CLEARTEXT).run()
        wire = [
            (sent.role, sent.at_ms, sent.segment.is_syn, sent.segment.ack) for sent in pair.sent
        ]
        assert wire == [(CLIENT, 0, True, None), (SERVER, 50, True, 0), (CLIENT, 100, False, 0)]
        # A SYN has 20 bytes of options: MSS, SACK-permitted, timestamps and window scale.
        assert [sent.segment.size_bytes for sent in pair.sent] == [40, 40, 32]

    def test_in_cleartext_an_end_is_ready_once_it_is_established(self) -> None:
        pair = Pair(mode=HandshakeMode.ONE_RTT, settings=CLEARTEXT)
        ready = []
        for until_ms in (0, 50, 99, 100, 149, 150):
            pair.run(until_ms=until_ms)
            ready.append((pair.ends[CLIENT].is_ready, pair.ends[SERVER].is_ready))
        assert ready == [(False, False)] * 3 + [(True, False)] * 2 + [(True, True)]

    @pytest.mark.parametrize("settings", [TcpSettings(), CLEARTEXT], ids=["tls", "cleartext"])
    def test_each_end_numbers_its_segments_from_0_on(self, settings: TcpSettings) -> None:
        pair = Pair(mode=HandshakeMode.ONE_RTT, settings=settings, drop=drops(3), answer={0: 9000})
        pair.put(CLIENT, 0, 100)
        pair.run()
        for role in (CLIENT, SERVER):
            numbers = [sent.segment.number for sent in pair.sent if sent.role is role]
            assert numbers == list(range(len(numbers)))
        assert pair.again() != []

    def test_a_second_answer_to_a_syn_measures_nothing(self) -> None:
        """RFC 7323 § 4.1: only what acknowledges something new is a sample."""
        patient = TcpSettings(min_rto_ns=ms(9000))
        pair = Pair(mode=HandshakeMode.ONE_RTT, client_settings=patient, drop=drops(0, role=CLIENT))
        pair.run(until_ms=1100)
        assert [sent.at_ms for sent in pair.sent if sent.segment.is_syn] == [0, 50, 1050]
        assert pair.ends[CLIENT].recovery.rtt.latest_rtt_ns == ms(100)


def test_what_lies_above_a_hole_is_not_what_an_ack_is_measured_by() -> None:
    """RFC 7323 § 4.3, rule 2: SEG.SEQ <= Last.ACK.sent, even where one byte is missing."""
    client = Pair().ends[CLIENT]
    client.on_packet(Segment(1, ms(30), 1, 10, 0, None, 1), ms(80))
    assert [ack.echo_ns for ack in client.packets_to_send(ms(80))] == [None]
    client.on_packet(Segment(0, ms(10), 0, 1, 0, None, 1), ms(81))
    assert [ack.echo_ns for ack in client.packets_to_send(ms(81))] == [ms(10)]


def test_each_arriving_segment_elicits_one_sack() -> None:
    client = Pair().ends[CLIENT]
    for now_ms in (80, 81):
        client.on_packet(Segment(1, ms(30), now_ms * 100, 10, 0, None, 1), ms(now_ms))
        assert [len(client.packets_to_send(ms(now_ms))) for _ in range(2)] == [1, 0]


class TestAutotuned:
    """Linux's send buffer at an endpoint: 87,040 bytes at first, which are 60.1 segments."""

    def endpoint(self, window_bytes: int, **settings: Any) -> Any:
        chosen = TcpSettings(
            send_buffer=SocketBuffer.AUTOTUNED,
            tls=TlsVersion.NONE,
            **{"notsent_lowat_bytes": None, **settings},
        )
        pair = Pair(settings=chosen, server_controller=FixedWindow(window_bytes))
        pair.put(SERVER, 0, 1_000_000)
        return pair

    def left(self, pair: Any) -> tuple[int, int]:
        """Return how many bytes left at once, and how many records were taken from the source."""
        segments = pair.ends[SERVER].packets_to_send(0)
        return sum(segment.length for segment in segments), len(pair.sources[SERVER].taken)

    def test_it_grows_where_the_window_has_room_for_a_segment_more(self) -> None:
        # tcp_should_expand_sndbuf: not while the window is filled. 530,944 bytes for 61 segments
        # are 33 records of 16,393 bytes, of which the last is cut.
        assert self.left(self.endpoint(87_040 + MSS)) == (87_040 + MSS, 33)

    def test_it_does_not_grow_where_less_than_a_segment_more_could_leave(self) -> None:
        assert self.left(self.endpoint(87_040 + MSS - 1)) == (87_040, 6)

    def test_it_does_not_grow_where_the_peer_takes_no_more(self) -> None:
        pair = self.endpoint(200 * MSS, receive_window_bytes=40 * MSS)
        assert self.left(pair) == (40 * MSS, 6)

    def test_with_a_mark_nothing_is_taken_while_as_much_waits_unsent(self) -> None:
        pair = Pair(
            settings=TcpSettings(
                send_buffer=SocketBuffer.AUTOTUNED, tls=TlsVersion.NONE, notsent_lowat_bytes=1000
            ),
            server_controller=FixedWindow(0),
        )
        for stream_id in (0, 4):  # a frame of 1000 bytes each
            pair.put(SERVER, stream_id, 991)
            assert self.left(pair) == (0, 1)


def test_a_tail_is_rescued_with_whatever_comes_once_it_is_overdue() -> None:
    """NextSeg's rule 4, as of `SackDetector`: 9/8 of the round trip after it left."""
    pair = made(TcpSettings(ack_every=1), 10, drop=drops(4, 9))
    pair.run(until_ms=0)
    server = pair.ends[SERVER]
    # As if 9 had left late: its ACK is not overdue as that of 4's retransmission comes.
    next(reversed(server.recovery.board.sent.values())).sent_at_ns = ms(120)
    pair.run(until_ms=200)
    assert pair.again() == [(100, 4 * MSS)]
    server.on_packet(request(240), ms(240))
    again = [segment.seq for segment in server.packets_to_send(ms(240)) if segment.length]
    assert again == [9 * MSS]
