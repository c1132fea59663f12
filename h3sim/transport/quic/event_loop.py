"""When an event loop comes to its timers: it sleeps in whole milliseconds, and works before."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from h3sim.transport.quic.endpoint import QuicEndpoint
from h3sim.units import NS_PER_MS

if TYPE_CHECKING:
    from h3sim.transport.congestion import CongestionController
    from h3sim.transport.endpoint import Source
    from h3sim.transport.packets import StreamBytes
    from h3sim.transport.quic.handshake import Handshake
    from h3sim.transport.quic.packets import QuicPacket
    from h3sim.transport.quic.settings import QuicSettings

__all__ = ["EventLoop", "EventLoopEndpoint"]

_TIMER_SLACK_NS: Final = NS_PER_MS // 20
"""How late Linux wakes a process that sleeps for a time: up to 50 microseconds (prctl(2),
PR_SET_TIMERSLACK; select_estimate_accuracy in fs/select.c, which epoll_wait uses)."""


class EventLoop:
    """The loop that looks after the timers of one end.

    Where the time until a timer is no whole multiple of *granularity_ns*, the loop sleeps up to the
    next one, counted from when it went to sleep: asyncio's selector rounds the timeout of
    epoll_wait up to a millisecond (Lib/selectors.py, EpollSelector.select). It goes to sleep when
    it is done with what came, which takes *processing_ns* a packet. A packet that arrives wakes it,
    and then it comes to timers that have run out meanwhile, too (Lib/asyncio/base_events.py,
    BaseEventLoop._run_once).

    >>> loop = EventLoop(granularity_ns=1_000_000, processing_ns=100_000)
    >>> loop.on_packet(0); loop.wakes_at_ns(1_000_000)  # 0.9 ms are left when it goes to sleep
    1150000
    >>> loop.on_packet(950_000); loop.wakes_at_ns(1_000_000)  # has run out when that is done
    1050000
    """

    __slots__ = ("_granularity_ns", "_idle_at_ns", "_processing_ns")

    def __init__(self, *, granularity_ns: int, processing_ns: int) -> None:
        self._granularity_ns = granularity_ns
        self._processing_ns = processing_ns
        self._idle_at_ns = 0
        """When it went to sleep last, or will be done with what came."""

    def on_packet(self, now_ns: int) -> None:
        """Take up a packet, once those before it are done with."""
        idle_at_ns = self._idle_at_ns
        # Packets queue up before a busy process: its work adds up instead of overlapping.
        self._idle_at_ns = (idle_at_ns if idle_at_ns > now_ns else now_ns) + self._processing_ns

    def on_woken(self, now_ns: int) -> None:
        """Note that it does something that takes no time."""
        if now_ns > self._idle_at_ns:
            self._idle_at_ns = now_ns

    def wakes_at_ns(self, timer_at_ns: int) -> int:
        """Return when it comes to a timer, if nothing happens before."""
        left_ns = timer_at_ns - self._idle_at_ns
        if left_ns <= 0:
            # The timer ran out while it was busy: it comes to it as soon as it is done, without a
            # sleep.
            return self._idle_at_ns
        granularity_ns = self._granularity_ns
        if not granularity_ns:
            return timer_at_ns
        # Rounded up: a selector that woke too early would find the timer not due, and spin.
        slept_ns = -(-left_ns // granularity_ns) * granularity_ns
        return self._idle_at_ns + slept_ns + _TIMER_SLACK_NS


class EventLoopEndpoint(QuicEndpoint):
    """A `QuicEndpoint` that comes to its timers when its event loop does.

    ACKs that are late, paced packets and probes wait for that; what a packet that arrives leads to
    leaves at once.
    """

    def __init__(
        self,
        settings: QuicSettings,
        controller: CongestionController,
        source: Source,
        handshake: Handshake,
        *,
        peer_max_ack_delay_ns: int,
        path_rtt_ns: int | None = None,
    ) -> None:
        super().__init__(
            settings,
            controller,
            source,
            handshake,
            peer_max_ack_delay_ns=peer_max_ack_delay_ns,
            path_rtt_ns=path_rtt_ns,
        )
        self._loop = EventLoop(
            granularity_ns=settings.timer_granularity_ns,
            processing_ns=settings.packet_processing_ns,
        )

    def on_packet(self, packet: QuicPacket, now_ns: int) -> list[StreamBytes]:
        """Take a packet that arrived; return the stream bytes that it brings."""
        self._loop.on_packet(now_ns)
        return super().on_packet(packet, now_ns)

    def packets_to_send(self, now_ns: int) -> list[QuicPacket]:
        """Return the packets that leave now."""
        self._loop.on_woken(now_ns)
        return super().packets_to_send(now_ns)

    def timer_at_ns(self) -> int | None:
        """Return when the loop comes to the timer that is next."""
        timer_at_ns = super().timer_at_ns()
        return None if timer_at_ns is None else self._loop.wakes_at_ns(timer_at_ns)
