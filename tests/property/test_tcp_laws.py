"""What holds of TCP whatever the path does: loss up to 30 % both ways, and reordering."""

from __future__ import annotations

import random
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from h3sim.transport.congestion import ControllerSettings, make_controller
from h3sim.transport.quic.handshake import HandshakeMode
from h3sim.transport.tcp import TcpSettings
from tests.tcp_pair import CLIENT, MSS, SERVER, FixedWindow, Pair, Reno

BODIES = st.lists(st.sampled_from([0, 1, 100, 1417, 5000, 16_375, 40_000]), min_size=1, max_size=5)
STACKS = st.builds(
    TcpSettings,
    recovery=st.sampled_from(["sack", "rack"]),
    ack_every=st.integers(1, 4),
    min_rto_ns=st.sampled_from([200_000_000, 1_000_000_000]),
    notsent_lowat_bytes=st.sampled_from([1, 16_384, None]),
    has_dynamic_records=st.booleans(),
    data_frame_bytes=st.sampled_from([1000, 16_384]),
    receive_window_bytes=st.sampled_from([2 * MSS, 6 * 2**20]),
    pacing_gain=st.sampled_from([None, 1.25]),
    tls=st.sampled_from(["1.2", "1.3"]),
)
RACK_IN_TWO = TcpSettings(
    recovery="rack",  # type: ignore[arg-type]
    ack_every=1,
    min_rto_ns=200_000_000,
    notsent_lowat_bytes=1,
    receive_window_bytes=2 * MSS,
)
MODES = st.sampled_from(list(HandshakeMode))
SEEDS = st.integers(0, 2**32)
LOSSES = st.sampled_from([0.0, 0.02, 0.1, 0.3])
LATENESS = st.sampled_from([0, 5, 60])


def rough(seed: int, loss: Any, late_ms: float) -> dict[str, Any]:
    """Return what drops segments with a probability, and delays others at random."""
    lots = random.Random(seed)
    return {
        "drop": lambda role, index, segment: lots.random() < loss,
        "delay_ms": lambda role, index, segment: lots.choice([0, 0, 0, late_ms]),
    }


def exchange(stack: Any, mode: Any, up: Any, down: Any, **path: Any) -> Any:
    """Let the client send the bodies of *up*, the server those of *down*, and run to the end."""
    pair = Pair(
        settings=stack,
        mode=mode,
        rtt_ms=40,
        client_controller=Reno(),
        server_controller=Reno(),
        **path,
    )
    for role, bodies in ((CLIENT, up), (SERVER, down)):
        for position, n_bytes in enumerate(bodies):
            pair.put(role, 4 * position, n_bytes)
    return pair


def check_boards(pair: Any) -> None:
    """Compare what both ends believe to be on its way with what they know of each segment."""
    for end in pair.ends.values():
        board = end.recovery.board
        assert board.pipe_bytes == sum(s.copies * s.size_bytes for s in board.sent.values())
        assert all(s.copies >= 0 for s in board.sent.values())
        assert not any(s.is_sacked and s.copies for s in board.sent.values())
        assert list(board.sent) == sorted(board.sent)
        assert board.sacked_segments == sum(s.is_sacked for s in board.sent.values())
        sacked = sum(s.size_bytes for s in board.sent.values() if s.is_sacked)
        assert sum(stop - start for start, stop in board.runs.items()) == sacked


@given(STACKS, MODES, BODIES, BODIES, SEEDS, LOSSES, LATENESS)
def test_all_bytes_come_once_and_in_order_whatever_is_lost(
    stack: Any, mode: Any, up: Any, down: Any, seed: int, loss: Any, late_ms: float
) -> None:
    pair = exchange(stack, mode, up, down, **rough(seed, loss, late_ms))
    pair.run(until_ms=1e9)
    for sender, receiver, bodies in ((CLIENT, SERVER, up), (SERVER, CLIENT, down)):
        source = pair.sources[sender]
        assert source.peek() is None
        assert [row[1:] for row in pair.delivered[receiver]] == source.taken == source.acked
        assert sum(n_bytes for _, _, n_bytes in source.taken) == sum(bodies)
        assert [row[0] for row in pair.delivered[receiver]] == sorted(
            row[0] for row in pair.delivered[receiver]
        )
        assert pair.ends[sender].timer_at_ns() is None
        assert pair.ends[sender].recovery.board.pipe_bytes == 0


@given(STACKS, MODES, BODIES, SEEDS, LOSSES, LATENESS, st.integers(1, 4000))
def test_what_is_on_its_way_is_what_is_known_of_the_segments(
    stack: Any, mode: Any, down: Any, seed: int, loss: Any, late_ms: float, until_ms: float
) -> None:
    pair = exchange(stack, mode, [100], down, **rough(seed, loss, late_ms))
    for moment_ms in range(0, until_ms, 97):  # type: ignore[call-overload]
        pair.run(until_ms=moment_ms)
        check_boards(pair)


@given(STACKS, MODES, BODIES, BODIES)
def test_nothing_goes_again_on_a_path_that_loses_nothing(
    stack: Any, mode: Any, up: Any, down: Any
) -> None:
    pair = exchange(stack, mode, up, down).run()
    assert pair.again(CLIENT) == pair.again(SERVER) == []
    assert pair.controllers[SERVER].lost == pair.controllers[CLIENT].lost == []


@given(STACKS, SEEDS, LOSSES, st.integers(1, 30))
def test_no_more_is_on_its_way_than_the_window_but_for_a_first_retransmission_or_a_probe(
    stack: Any, seed: int, loss: Any, n_segments: int
) -> None:
    window = FixedWindow(n_segments * MSS)
    path = rough(seed, loss, 0)
    pair = Pair(settings=stack, rtt_ms=40, server_controller=window, **path)
    pair.put(SERVER, 0, 60_000)
    pair.run(until_ms=1e9)
    assert max(window.in_flight) <= window.congestion_window + MSS
    if not loss:
        assert max(window.in_flight) <= window.congestion_window


@given(STACKS, BODIES, SEEDS, st.sampled_from([0.02, 0.1]))
@example(RACK_IN_TWO, [40_000], 48_386_150, 0.1)
def test_a_controller_hears_of_a_loss_only_after_the_last_recovery_point(
    stack: Any, down: Any, seed: int, loss: Any
) -> None:
    """A probe that made up for a loss cuts the window too, but begins no episode.

    RFC 8985 § 7.4.2, as Linux has it: of what was sent before, the next episode may still tell.
    """

    class RecordingScheduler(Reno):
        points: list[int]

        def on_lost(
            self, packets: Any, now_ns: int, bytes_in_flight: Any, next_number: Any
        ) -> None:
            super().on_lost(packets, now_ns, bytes_in_flight, next_number)
            assert all(packet.number >= begun for packet in packets for begun in self.points)
            if pair.ends[SERVER].recovery.episode.point is not None:
                self.points.append(next_number)

    watched = RecordingScheduler()
    watched.points = []
    # One transmission of a segment can be lost only once: without reordering and probes, an
    # episode never tells again of what an earlier one told of.
    pair = Pair(settings=stack, rtt_ms=40, server_controller=watched, **rough(seed, loss, 0))
    for position, n_bytes in enumerate(down):
        pair.put(SERVER, 4 * position, n_bytes)
    pair.run(until_ms=1e9)
    assert pair.ends[SERVER].recovery.episode.point is None


@given(STACKS, MODES, BODIES, SEEDS, LOSSES, LATENESS)
def test_equal_connections_do_the_same(
    stack: Any, mode: Any, down: Any, seed: int, loss: Any, late_ms: float
) -> None:
    wires = []
    for _ in range(2):
        pair = exchange(stack, mode, [100], down, **rough(seed, loss, late_ms)).run(until_ms=20_000)
        wires.append(
            [
                (sent.at_ms, sent.segment.number, sent.segment.seq, sent.segment.ack)
                for sent in pair.sent
            ]
        )
    assert wires[0] == wires[1]


@given(SEEDS, st.sampled_from([0.01, 0.05]))
def test_by_time_what_is_sent_again_was_lost(seed: int, loss: Any) -> None:
    lots = random.Random(seed)
    pair = Pair(
        settings=TcpSettings.linux(),
        server_controller=FixedWindow(50 * MSS),
        drop=lambda role, index, segment: role is SERVER and lots.random() < loss,
    )
    pair.put(SERVER, 0, 400_000)
    pair.run()
    lost = sum(sent.arrives_ms is None for sent in pair.data())
    needless = sum(bool(sent.segment.sack) and _repeats(sent) for sent in pair.acks())
    assert len(pair.again()) == lost + needless


def _repeats(sent: Any) -> Any:
    first, *others = sent.segment.sack
    return first[1] <= sent.segment.ack or any(a <= first[0] < b for a, b in others)


@pytest.mark.parametrize("recovery", ["sack", "rack"])
def test_a_path_that_loses_everything_is_tried_ever_more_rarely(recovery: Any) -> None:
    pair = Pair(
        settings=TcpSettings(recovery=recovery),
        server_controller=Reno(),
        drop=lambda role, index, segment: True,
    )
    pair.put(SERVER, 0, 10_000)
    pair.run(until_ms=600_000)
    times = sorted({at_ms for at_ms, _ in pair.again()})
    gaps = [after - before for before, after in pairwise(times)]
    assert gaps[-1] == 60_000
    assert gaps == sorted(gaps)


@pytest.mark.parametrize("recovery", ["sack", "rack"])
@pytest.mark.parametrize(
    "name", ["constant", "newreno", "cubic", "cubic-quicly", "reno-quicly", "bbr", "bbr1"]
)
@given(seed=SEEDS, loss=LOSSES, late_ms=LATENESS)
@settings(max_examples=10)
def test_under_every_controller_a_transfer_ends(
    name: str, recovery: Any, seed: int, loss: Any, late_ms: float
) -> None:
    made = ControllerSettings(max_datagram_bytes=MSS, rate_bps=5_000_000)
    pair = Pair(
        settings=TcpSettings(recovery=recovery),
        mode=HandshakeMode.ONE_RTT,
        rtt_ms=40,
        server_controller=make_controller(name, made),
        client_controller=make_controller(name, made),
        answer={0: 150_000},
        **rough(seed, loss, late_ms),
    )
    pair.put(CLIENT, 0, 300)
    pair.run(until_ms=1e9)
    assert pair.bytes_of(CLIENT, 0) == 150_000
    assert pair.ends[SERVER].recovery.board.pipe_bytes == 0
