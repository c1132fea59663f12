"""Timers of an end that an event loop looks after; by hand, and beside asyncio's own selector."""

from __future__ import annotations

import selectors
from typing import Any

import pytest

from h3sim.transport.quic import (
    EventLoop,
    Handshake,
    HandshakeMode,
    QuicPacket,
    QuicSettings,
    Role,
    TimerGranularityEndpoint,
)
from h3sim.values.units import ms
from tests.tcp_pair import FixedWindow
from tests.unit.test_quic_windows import Endless

SLACK_NS = 50_000
"""How late Linux wakes who sleeps."""


class Nothing(Endless):
    def __init__(self) -> None:
        super().__init__()
        self.has_data = False

    def take(self, max_bytes: Any = None, header: Any = None, min_bytes: int = 0) -> Any:
        del max_bytes, header, min_bytes


def client(**settings: Any) -> TimerGranularityEndpoint:
    """Return an end that acknowledges a millisecond after the first packet, on such a loop."""
    made = QuicSettings(ack_every=1000, max_ack_delay_ns=ms(1), bundles_acks=False, **settings)
    return TimerGranularityEndpoint(
        made,
        FixedWindow(100_000),
        Nothing(),
        Handshake(made, Role.CLIENT, HandshakeMode.NONE),
        peer_max_ack_delay_ns=0,
        path_rtt_ns=ms(100),
    )


def acks(end: TimerGranularityEndpoint, arrivals_ms: list[float]) -> list[tuple[int, int]]:
    """Return when ACKs leave and how many packets each one is the first to cover."""
    sent = []
    covered = 0

    def flush(now_ns: int) -> None:
        nonlocal covered
        for packet in end.packets_to_send(now_ns):
            assert packet.ack is not None
            largest = packet.ack[0][1]
            sent.append((now_ns, largest + 1 - covered))
            covered = largest + 1

    for number, at_ms in enumerate((*arrivals_ms, 1e6)):
        at_ns = ms(at_ms)
        while (timer_at_ns := end.timer_at_ns()) is not None and timer_at_ns <= at_ns:
            end.on_timer(timer_at_ns)
            flush(timer_at_ns)
        if number < len(arrivals_ms):
            end.on_packet(QuicPacket(number, 0, 1200, [], None, [], is_ack_eliciting=True), at_ns)
            flush(at_ns)
    return sent


ASYNCIO: dict[str, Any] = {"timer_granularity_ns": ms(1), "packet_processing_ns": 100_000}


@pytest.mark.parametrize(
    ("arrivals", "expected"),
    [
        # Busy until 0.1; of the millisecond 0.9 are left, for which it sleeps a whole one.
        ([0], [(ms(1.1) + SLACK_NS, 1)]),
        # 1322 bytes at 10 Mbit/s: the second packet finds the ACK of the first due.
        ([0, 1.0576], [(ms(1.0576), 2)]),
        # The second wakes it while 0.05 ms are left, over when it is done with that one.
        ([0, 0.95], [(ms(1.05), 2)]),
        # At 0.5 it is woken, and sleeps anew from 0.6 on: 0.4 ms become one.
        ([0, 0.5], [(ms(1.6) + SLACK_NS, 2)]),
        # 2.1152 ms at 5 Mbit/s: an ACK a packet.
        ([0, 2.1152], [(ms(1.1) + SLACK_NS, 1), (ms(3.2152) + SLACK_NS, 1)]),
        # Three at once are worked off one after the other: 0.7 ms are left.
        ([0, 0, 0], [(ms(1.3) + SLACK_NS, 3)]),
    ],
)
def test_an_ack_leaves_when_the_loop_comes_to_it(
    arrivals: list[float], expected: list[tuple[int, int]]
) -> None:
    assert acks(client(**ASYNCIO), arrivals) == expected


def test_without_granularity_a_timer_waits_only_for_work_that_is_under_way() -> None:
    busy = {"packet_processing_ns": ms(0.4)}
    assert acks(client(**busy), [0, 0.9]) == [(ms(1.3), 2)]
    assert acks(client(**busy), [0]) == [(ms(1), 1)]


def test_a_loop_sleeps_as_long_as_asyncios_selector_asks_epoll_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = []

    class Poll:
        def poll(self, timeout: float, max_events: int) -> list[Any]:
            del max_events
            asked.append(timeout)
            return []

        def close(self) -> None:
            pass

    selector = selectors.EpollSelector()
    monkeypatch.setattr(selector, "_selector", Poll())
    loop = EventLoop(granularity_ns=ms(1), processing_ns=0)
    for left_ns in (1, 999_999, 1_000_001, 1_500_000, 2_999_999):
        selector.select(left_ns / 1e9)
        assert loop.wakes_at_ns(left_ns) - SLACK_NS == pytest.approx(asked[-1] * 1e9)


def test_a_timer_that_runs_out_as_it_goes_to_sleep_takes_no_sleep() -> None:
    loop = EventLoop(granularity_ns=ms(1), processing_ns=ms(0.1))
    loop.on_packet(0)
    assert loop.wakes_at_ns(ms(0.1)) == ms(0.1)
    assert loop.wakes_at_ns(ms(0.1) + 1) == ms(1.1) + SLACK_NS


def test_it_goes_to_sleep_anew_when_it_was_woken_and_not_before_it_is_done() -> None:
    loop = EventLoop(granularity_ns=ms(1), processing_ns=ms(0.5))
    loop.on_woken(ms(0.4))
    assert loop.wakes_at_ns(ms(1)) == ms(1.4) + SLACK_NS
    loop.on_packet(ms(2))
    loop.on_woken(ms(2.2))
    assert loop.wakes_at_ns(ms(3)) == ms(3.5) + SLACK_NS


def test_an_end_goes_to_sleep_when_it_has_sent() -> None:
    """An ACK is due a millisecond after a packet at 0; from 0.3 ms on that is one of 0.7."""
    end = client(timer_granularity_ns=ms(1))
    end.on_packet(QuicPacket(0, 0, 60, [], None, (), True), 0)
    assert end.timer_at_ns() == ms(1) + SLACK_NS
    end.packets_to_send(ms(0.3))
    assert end.timer_at_ns() == ms(1.3) + SLACK_NS
