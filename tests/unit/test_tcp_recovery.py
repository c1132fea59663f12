"""Loss recovery, worked by hand: a window of ten segments, 100 ms there and back."""

from __future__ import annotations

from typing import Any

import pytest

from h3sim.transport.tcp import TcpSettings
from h3sim.values.units import ms
from tests.tcp_pair import CLIENT, MSS, SERVER, FixedWindow, Pair, Reno, body_bytes, drops

SACK = TcpSettings()
RACK = TcpSettings.linux()
BOTH = pytest.mark.parametrize("settings", [SACK, RACK], ids=["sack", "rack"])
WINDOW = 10 * MSS


def load(n_segments: int, *, settings: Any = SACK, window: Any = None, **path: Any) -> Any:
    """Send so many full segments from the server."""
    pair = Pair(settings=settings, server_controller=window or FixedWindow(WINDOW), **path)
    pair.put(SERVER, 0, body_bytes(n_segments))
    pair.run()
    assert pair.bytes_of(CLIENT, 0) == body_bytes(n_segments)
    assert pair.ends[SERVER].recovery.board.pipe_bytes == 0
    return pair


def one_by_one(role: Any, index: Any, segment: Any) -> Any:
    """The n-th segment with data takes n ms longer, so that ACKs come one by one."""
    return index or 0


@BOTH
def test_a_lone_loss_goes_again_with_the_third_duplicate_ack_and_only_once(settings: Any) -> None:
    pair = load(20, settings=settings, drop=drops(4), delay_ms=one_by_one)
    # Segments 5, 6 and 7 arrive at 55, 56 and 57 ms; what they say is back 50 ms later.
    assert pair.again() == [(107, 4 * MSS)]
    assert pair.controllers[SERVER].lost == [[4 * MSS]]
    assert pair.controllers[SERVER].collapses == 0


@BOTH
def test_duplicate_acks_let_new_segments_go_before_anything_counts_as_lost(settings: Any) -> None:
    pair = load(20, settings=settings, drop=drops(4), delay_ms=one_by_one)
    # Limited transmit: one for each of the first two duplicates, though the window was full.
    assert [sent.at_ms for sent in pair.data() if 104 < sent.at_ms < 107] == [105, 106]
    assert max(pair.controllers[SERVER].in_flight) == WINDOW


@BOTH
def test_two_losses_in_a_window_cut_it_once(settings: Any) -> None:
    pair = load(40, settings=settings, window=Reno(), drop=drops(3, 6))
    assert [seq for _, seq in pair.again()] == [3 * MSS, 6 * MSS]
    assert pair.controllers[SERVER].collapses == 0
    assert len(pair.controllers[SERVER].lost) == 1
    # Four segments were acknowledged before: 0 to 2, and 4 with them.
    assert pair.controllers[SERVER].ssthresh == (10 + 4) * MSS // 2


@BOTH
def test_losses_in_two_windows_cut_it_twice(settings: Any) -> None:
    pair = load(60, settings=settings, window=Reno(), drop=drops(3, 25))
    assert len(pair.again()) == 2
    assert len(pair.controllers[SERVER].lost) == 2
    assert pair.controllers[SERVER].collapses == 0


def test_in_linux_the_next_episode_begins_at_once_while_something_lost_is_still_out() -> None:
    pair = load(60, settings=RACK, window=Reno(), drop=drops(4, 16, 22))
    # 4 goes again at 100 and ends the episode at 300, when 21, sent within it, has just been found
    # lost and gone again: it is out, so Linux (tcp_time_to_recover) cuts the window for it.
    assert [(at_ms, seq // MSS) for at_ms, seq in pair.again()] == [(100, 4), (200, 16), (300, 21)]
    assert pair.controllers[SERVER].lost == [[4 * MSS], [21 * MSS]]


def test_the_window_stays_as_it_was_cut_until_the_recovery_point_is_acknowledged() -> None:
    pair = load(60, window=Reno(), drop=drops(4))
    windows = pair.controllers[SERVER].windows
    cut = next(at for at, (_, after) in enumerate(windows) if after == WINDOW // 2 + 2 * MSS)
    resent_ms = pair.again()[0][0]
    assert windows[cut + 1][0] > ms(resent_ms + 100)


def test_what_was_lost_goes_before_anything_new() -> None:
    pair = load(40, drop=drops(4, 5, 6))
    seqs = [sent.segment.seq for sent in pair.data()]
    resent = [position for position, seq in enumerate(seqs) if seq in seqs[:position]]
    assert resent == list(range(resent[0], resent[0] + 3))
    assert len(pair.data()) > resent[-1] + 1


def test_a_lost_tail_waits_for_the_timeout() -> None:
    pair = load(10, drop=drops(9))
    # Segment 8 is alone: its ACK leaves 40 ms late and is back at 140 ms. One second after that:
    assert pair.again() == [(1140, 9 * MSS)]
    assert pair.controllers[SERVER].lost == [[9 * MSS]]
    assert pair.controllers[SERVER].collapses == 1
    assert pair.done_ms() == 1190


def test_a_probe_finds_a_lost_tail_two_round_trips_after_the_last_ack() -> None:
    pair = load(10, settings=RACK, drop=drops(8, 9))
    # The last ACK is back at 100 ms. The probe is the last segment; its SACK shows what else.
    assert pair.again() == [(300, 9 * MSS), (400, 8 * MSS)]
    assert pair.controllers[SERVER].collapses == 0
    assert pair.controllers[SERVER].lost == [[8 * MSS]]
    assert pair.done_ms() == 450


def test_a_probe_takes_new_data_if_there_is_any() -> None:
    pair = Pair(settings=RACK, server_controller=FixedWindow(WINDOW), drop=drops(8, 9))
    pair.put(SERVER, 0, body_bytes(10))
    pair.run(until_ms=290)
    pair.controllers[SERVER].congestion_window = 0
    pair.put(SERVER, 4, body_bytes(1))
    pair.run(until_ms=310)
    assert [(sent.at_ms, sent.segment.seq) for sent in pair.data()[10:]] == [(300, 10 * MSS)]


def test_a_lone_segment_is_probed_no_later_than_its_timeout() -> None:
    pair = load(1, settings=RACK, drop=drops(0))
    # 2 * 100 + 200 ms for a delayed ACK would be later than the RTO of 100 + 200 ms.
    assert pair.again() == [(300, 0)]
    assert pair.controllers[SERVER].collapses == 0


def test_a_probe_that_made_up_for_a_loss_cuts_the_window_with_the_next_ack() -> None:
    pair = Pair(settings=RACK, server_controller=FixedWindow(WINDOW), drop=drops(0))
    pair.put(SERVER, 0, body_bytes(1))
    pair.run()
    assert pair.controllers[SERVER].lost == []
    pair.put(SERVER, 4, body_bytes(1))
    pair.run()
    assert pair.controllers[SERVER].lost == [[0]]


def test_a_needless_probe_cuts_nothing() -> None:
    # Both of the client's first two ACKs get lost: the probe comes to it as a duplicate.
    pair = Pair(
        settings=RACK,
        server_controller=FixedWindow(WINDOW),
        drop=lambda role, index, segment: role is CLIENT and segment.sent_at_ns < ms(100),
    )
    pair.put(SERVER, 0, body_bytes(1))
    pair.run()
    pair.put(SERVER, 4, body_bytes(1))
    pair.run()
    assert pair.again() == [(300, 0)]
    assert pair.acks()[1].segment.sack == ((0, MSS),)
    assert pair.controllers[SERVER].lost == []


def test_a_lost_retransmission_waits_for_the_timeout() -> None:
    pair = load(12, drop=drops(4, 12))
    sent_again = pair.again()
    assert [seq for _, seq in sent_again] == [4 * MSS, 4 * MSS]
    # Set anew when it went again first, at 100 ms.
    assert [at_ms for at_ms, _ in sent_again] == [100, 1100]
    assert pair.controllers[SERVER].collapses == 1
    assert len(pair.controllers[SERVER].lost) == 1


def test_the_timer_begins_anew_when_the_first_segment_goes_again() -> None:
    # 14: 10 at first, 2 + 2 with what segments 0 to 3 freed; then 4 itself at 107 ms.
    pair = load(14, drop=drops(4, 14), delay_ms=one_by_one)
    assert [at_ms for at_ms, seq in pair.again() if seq == 4 * MSS] == [107, 1107]


def test_after_a_timeout_the_window_rules_again() -> None:
    pair = load(14, window=Reno(), drop=drops(*range(4, 10), *range(14, 16)))
    times = [at_ms for at_ms, _ in pair.again()]
    timeout_ms = min(at_ms for at_ms in times if at_ms > 1000)
    assert [times.count(timeout_ms + later_ms) for later_ms in (0, 100)] == [2, 4]


def test_by_time_a_lost_retransmission_is_found_without_a_timeout() -> None:
    pair = load(60, settings=RACK, drop=drops(4, 16))
    assert pair.data()[16].segment.seq == 4 * MSS
    assert [seq for _, seq in pair.again()] == [4 * MSS, 4 * MSS]
    assert pair.again()[1][0] <= pair.again()[0][0] + 150
    assert pair.controllers[SERVER].collapses == 0
    assert len(pair.controllers[SERVER].lost) == 1


def test_a_tail_that_is_lost_during_recovery_is_rescued() -> None:
    pair = load(10, drop=drops(4, 9))
    # Once 4 has arrived all is acknowledged but the tail, which was sent long ago (rule 4).
    assert pair.again() == [(100, 4 * MSS), (200, 9 * MSS)]
    assert pair.controllers[SERVER].collapses == 0


def test_a_hole_under_little_goes_again_for_want_of_new_data() -> None:
    pair = load(10, drop=drops(4, 7))
    # 8 and 9 above 7 are too little to call it lost, but nothing else can go (NextSeg, rule 3).
    assert pair.again() == [(100, 4 * MSS), (100, 7 * MSS)]
    assert pair.controllers[SERVER].lost == [[4 * MSS]]


def test_timeouts_double_until_an_ack_comes() -> None:
    pair = load(1, drop=drops(0, 1, 2, 3))
    assert [at_ms for at_ms, _ in pair.again()] == [1000, 3000, 7000, 15_000]
    # What was lost is told once, each timeout by itself.
    assert pair.controllers[SERVER].lost == [[0]]
    assert pair.controllers[SERVER].collapses == 4


def test_a_timeout_is_never_longer_than_the_largest() -> None:
    settings = TcpSettings(max_rto_ns=ms(3000))
    pair = load(1, settings=settings, drop=drops(0, 1, 2, 3, 4))
    assert [at_ms for at_ms, _ in pair.again()] == [1000, 3000, 6000, 9000, 12_000]


def test_after_a_timeout_the_back_off_ends_with_the_next_sample() -> None:
    pair = Pair(server_controller=FixedWindow(WINDOW), drop=drops(0, 1, 3))
    pair.put(SERVER, 0, body_bytes(1))
    pair.run()
    begun_ms = pair.now_ns / 1e6
    pair.put(SERVER, 4, body_bytes(1))
    pair.run()
    assert [at_ms for at_ms, _ in pair.again()] == [1000, 3000, begun_ms + 1000]


def test_the_smallest_timeout_can_be_the_variance_alone() -> None:
    settings = TcpSettings(min_rto_ns=ms(200), rto_granularity_ns=ms(400))
    assert load(1, settings=settings, drop=drops(0)).again() == [(500, 0)]
    settings = TcpSettings(min_rto_ns=ms(200))
    # An established connection has had one sample of 100 ms: 100 + 4 * 50 ms.
    assert load(1, settings=settings, drop=drops(0)).again() == [(300, 0)]
    settings = TcpSettings(min_rto_ns=ms(400))
    assert load(1, settings=settings, drop=drops(0)).again() == [(400, 0)]


def test_timestamps_measure_retransmissions_too() -> None:
    pair = load(1, drop=drops(0))
    # 100 ms, and 40 ms until the lone segment was acknowledged; not 1140 ms.
    assert pair.ends[SERVER].recovery.rtt.latest_rtt_ns == ms(140)


def test_a_timeout_sends_everything_again_that_was_not_selectively_acknowledged() -> None:
    pair = load(10, drop=drops(0, 1, 2, 3, 4, 5, 6, 7), window=Reno())
    # 8 and 9 alone are too little for recovery, so the timer of the first one runs out.
    times = [at_ms for at_ms, _ in pair.again()]
    assert times == sorted(times)
    assert times[0] == 1000
    assert [seq for _, seq in pair.again()] == [position * MSS for position in range(8)]
    assert pair.controllers[SERVER].collapses == 1


def test_after_a_timeout_the_window_grows_from_two_segments() -> None:
    pair = load(10, drop=drops(0, 1, 2, 3, 4, 5, 6, 7), window=Reno())
    in_flights = [
        sum(1 for other in pair.data() if other.at_ms == at_ms)
        for at_ms in sorted({at_ms for at_ms, _ in pair.again()})
    ]
    assert in_flights[:2] == [2, 4]


@BOTH
def test_reordering_by_two_segments_sends_nothing_again(settings: Any) -> None:
    swapped = load(
        40,
        settings=settings,
        delay_ms=lambda role, index, segment: (index or 0) + 2.5 * (index == 4),
    )
    assert swapped.again() == []
    assert swapped.controllers[SERVER].lost == []


def test_by_time_reordering_within_a_quarter_of_the_round_trip_is_no_loss_once_some_was_seen() -> (
    None
):
    def late(role: Any, index: Any, segment: Any) -> Any:
        if index is None:
            return 0
        return index + 2.5 * (index == 1) + 10 * (index % 20 == 10)

    by_sack = load(200, window=FixedWindow(40 * MSS), delay_ms=late)
    by_time = load(200, settings=RACK, window=FixedWindow(40 * MSS), delay_ms=late)
    assert len(by_sack.again()) >= 5
    assert by_time.again() == []


class Halving(FixedWindow):
    """Is halved with each loss."""

    def on_lost(self, packets: Any, *rest: Any) -> None:
        super().on_lost(packets, *rest)
        self.congestion_window //= 2
        self.ssthresh = self.congestion_window


def sent_ms(pair: Any, first: Any, last: Any) -> list[Any]:
    return [sent.at_ms for sent in pair.data() if first <= sent.at_ms <= last]


def test_a_reduction_is_spread_over_the_round_trip_that_follows() -> None:
    settings = TcpSettings(ack_every=1)
    window = Halving(20 * MSS)
    pair = load(60, settings=settings, window=window, drop=drops(0), delay_ms=one_by_one)
    # From the third duplicate on, one segment leaves for each two that arrived.
    assert sent_ms(pair, 103, 118) == list(range(103, 118, 2))
    assert max(window.in_flight[30:]) == 10 * MSS


def test_a_reduction_can_be_made_at_once() -> None:
    settings = TcpSettings(ack_every=1, has_prr=False)
    window = Halving(20 * MSS)
    pair = load(60, settings=settings, window=window, drop=drops(0), delay_ms=one_by_one)
    # 22 were sent, 3 arrived, 1 was lost and sent again: the next may leave after 10 more.
    assert sent_ms(pair, 103, 115) == [103, 113, 114, 115]


def test_what_leaves_while_data_is_lacking_is_marked_until_that_was_delivered() -> None:
    pair = Pair(settings=TcpSettings(ack_every=1), server_controller=FixedWindow(WINDOW))
    pair.put(SERVER, 0, body_bytes(2))
    pair.run(until_ms=20)
    pair.put(SERVER, 4, body_bytes(2))
    pair.run(until_ms=40)
    # The window is full from here on.
    pair.put(SERVER, 8, body_bytes(20))
    pair.run()
    marks = pair.controllers[SERVER].app_limited
    assert marks[:4] == [False, False, True, True]
    # 6 more fill the window; four must be delivered before the 11th, of which two left marked.
    assert marks[4:10] == [True] * 6
    assert not any(marks[14:])


def test_what_never_lacks_data_is_never_marked() -> None:
    pair = load(12, window=FixedWindow(8 * MSS))
    assert not any(pair.controllers[SERVER].app_limited)


def test_a_window_that_is_not_full_is_reported_so() -> None:
    class Limits(FixedWindow):
        def __init__(self) -> None:
            super().__init__(4 * MSS)
            self.flags: list[Any] = []

        def on_acked(self, *reported: Any) -> None:
            super().on_acked(*reported)
            *_, is_cwnd_underutilized = reported
            self.flags.append(is_cwnd_underutilized)

    assert load(12, window=Limits()).controllers[SERVER].flags == [False] * 5 + [True]
    assert load(2, window=Limits()).controllers[SERVER].flags == [True]


@pytest.mark.parametrize(
    ("settings", "n_segments", "is_underutilized"),
    [(SACK, 6, True), (RACK, 5, True), (RACK, 6, False)],
    ids=["rfc", "linux-half", "linux-more"],
)
def test_linux_lets_slow_start_reach_twice_what_was_out(
    settings: Any, n_segments: int, is_underutilized: bool
) -> None:
    class Limits(FixedWindow):
        flags = None

        def on_acked(self, *reported: Any) -> None:
            super().on_acked(*reported)
            *_, is_cwnd_underutilized = reported
            self.flags = (self.flags or []) + [is_cwnd_underutilized]

    # Of a window of 10 segments 5 were out, or 6: twice that is 10, which it has, or 12.
    controller = load(n_segments, settings=settings, window=Limits(WINDOW)).controllers[SERVER]
    assert controller.ssthresh is None
    assert set(controller.flags) == {is_underutilized}


def test_delivery_rate_samples_know_what_was_delivered_before() -> None:
    seen = []

    class Samples(FixedWindow):
        def on_sent(self, packet: Any, bytes_in_flight: Any) -> None:
            super().on_sent(packet, bytes_in_flight)
            seen.append((packet.delivered_bytes, packet.delivered_at_ns, packet.first_sent_at_ns))

    load(4, window=Samples(2 * MSS))
    # Nothing was in flight any more, so sampling began anew.
    assert seen == [(0, 0, 0)] * 2 + [(2 * MSS, ms(100), ms(100))] * 2


def test_a_pace_spreads_segments_over_the_round_trip() -> None:
    settings = TcpSettings(pacing_gain=1.0, pacing_burst_segments=1)
    pair = load(10, settings=settings)
    assert [round(sent.at_ms) for sent in pair.data()] == list(range(0, 100, 10))
