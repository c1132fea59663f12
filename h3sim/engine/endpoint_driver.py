"""Drives one end of a connection: sends what it has, and wakes it when it asks for that."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from h3sim.engine.environment import Rank

if TYPE_CHECKING:
    from collections.abc import Callable

    from h3sim.engine.endpoint_factory import End
    from h3sim.engine.environment import Call, Callbacks, LoadEnvironment

__all__ = ["EndpointDriver"]

# Plain numbers: looking a member of an enum up costs as much as half a pick.
_DELIVERY, _TIMER = int(Rank.DELIVERY), int(Rank.SEND)


class EndpointDriver:
    """An end that time passes for.

    *note* is told of each packet that it sends, when that is and when it arrives; *on_woken* of
    each waking. Without *wakes_idle* a timer that has become needless wakes nobody.
    """

    __slots__ = (
        "_armed_at_ns",
        "_arrivals_ns",
        "_at",
        "_is_flush_due",
        "_link",
        "_note",
        "_on_woken",
        "_overhead_bytes",
        "_packets_to_send",
        "_peer_arrivals_ns",
        "_timer_at_ns",
        "_wakes_idle",
        "_when_flush",
        "_when_timer",
        "endpoint",
        "when_arrived",
    )

    def __init__(
        self,
        end: End,
        environment: LoadEnvironment,
        *,
        note: Callable[..., None] | None,
        on_woken: Callable[[int], None] | None = None,
        wakes_idle: bool = False,
    ) -> None:
        self.endpoint = end.endpoint
        self._link = end.link
        self._overhead_bytes = end.overhead_bytes
        self._note = note
        self._on_woken = on_woken
        self._wakes_idle = wakes_idle
        self._armed_at_ns: int | None = None
        self._arrivals_ns: deque[int] = deque()
        """When packets arrive here that are under way, in the order sent; past ones may linger."""
        self._peer_arrivals_ns = self._arrivals_ns
        self._is_flush_due = False
        self.when_arrived: Callbacks = ()
        """Called with each packet when it arrives at the peer."""
        self._when_flush: Callbacks = (self._on_flush,)
        self._when_timer: Callbacks = (self._on_timer,)
        # Called with every packet both ways, so looked up once.
        self._at = environment.at
        self._packets_to_send = end.endpoint.packets_to_send
        self._timer_at_ns = end.endpoint.timer_at_ns

    def face(self, peer: EndpointDriver, when_arrived: Callable[[Call], None]) -> None:
        """Let packets go to *peer*; *when_arrived* takes each of them there."""
        self._peer_arrivals_ns = peer._arrivals_ns
        self.when_arrived = (when_arrived,)

    def flush(self, now_ns: int) -> None:
        """Send all that the endpoint has to send, and arm its timer."""
        note, at, peer_arrivals_ns = self._note, self._at, self._peer_arrivals_ns
        for packet in self._packets_to_send(now_ns):
            arrives_at_ns = self._link.send(now_ns, packet.size_bytes + self._overhead_bytes)
            if arrives_at_ns is not None:
                at(arrives_at_ns, _DELIVERY, self.when_arrived, packet)
                peer_arrivals_ns.append(arrives_at_ns)
            if note is not None:
                note(packet, now_ns, arrives_at_ns)
        at_ns = self._timer_at_ns()
        if at_ns is not None:
            self._arm(at_ns, now_ns)

    def flush_soon(self, now_ns: int) -> None:
        """Flush once all that falls on this instant has happened.

        So requests that are made together leave in one packet, and a server that gets several
        at once knows all of them before it begins to answer.
        """
        if not self._is_flush_due:
            self._is_flush_due = True
            self._at(now_ns, _TIMER, self._when_flush, None)

    def _arm(self, at_ns: int, now_ns: int) -> None:
        """See to it that the end is woken at *at_ns*.

        Each packet that arrives has the end asked for its timer again. So none is armed that one
        of them precedes: as a rule that packet puts the timer off, or does away with it.
        """
        arrivals_ns = self._arrivals_ns
        while arrivals_ns and arrivals_ns[0] <= now_ns:
            arrivals_ns.popleft()
        if arrivals_ns and arrivals_ns[0] <= at_ns:
            return
        if self._armed_at_ns is None or at_ns < self._armed_at_ns:
            self._armed_at_ns = at_ns
            self._at(max(at_ns, now_ns), _TIMER, self._when_timer, at_ns)

    def _on_flush(self, call: Call) -> None:
        self._is_flush_due = False
        self.flush(call.at_ns)

    def _on_timer(self, call: Call) -> None:
        """Wake the endpoint, unless an earlier timer has taken the place of this one.

        A timer that was put off is let run and looks again: that is cheaper than to take an event
        out of the queue with every packet.
        """
        if call.value != self._armed_at_ns:
            return
        self._armed_at_ns = None
        due_at_ns = self._timer_at_ns()
        now_ns = call.at_ns
        if due_at_ns is None and not self._wakes_idle:
            return  # its ACK has gone with a later packet
        if due_at_ns is not None and due_at_ns > now_ns:
            self._arm(due_at_ns, now_ns)
            return
        self.endpoint.on_timer(now_ns)
        if self._on_woken is not None:
            self._on_woken(now_ns)
        self.flush(now_ns)
