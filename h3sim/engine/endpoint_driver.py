"""Drives one end of a connection: sends what it has, and wakes it when it asks for that."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from h3sim.engine.environment import EventRank, Lane

if TYPE_CHECKING:
    from collections.abc import Callable

    from h3sim.engine.endpoint_factory import End
    from h3sim.engine.environment import LoadEnvironment
    from h3sim.engine.packet_log import SentLog
    from h3sim.transport.endpoint import Endpoint
    from h3sim.transport.packets import WirePacket

__all__ = ["EndpointDriver"]

# Plain numbers: looking a member of an enum up costs as much as half a pick.
_DELIVERY, _TIMER = int(EventRank.DELIVERY), int(EventRank.SEND)


class EndpointDriver:
    """An end that time passes for.

    *log* is told of each packet that it sends, when that is and when it arrives; *on_woken* of
    each waking. Without *wakes_idle* a timer that has become needless wakes nobody.
    """

    __slots__ = (
        "_armed_at_ns",
        "_due_at_ns",
        "_environment",
        "_is_flush_due",
        "_link",
        "_log",
        "_on_woken",
        "_overhead_bytes",
        "_peer_arrivals",
        "_under_way",
        "_wakes_idle",
        "arrivals",
        "endpoint",
    )

    def __init__(
        self,
        end: End,
        environment: LoadEnvironment,
        *,
        log: SentLog | None,
        on_woken: Callable[[int], None] | None = None,
        wakes_idle: bool = False,
    ) -> None:
        # Of which transport it is, is known to who takes what arrives; here nothing depends on it.
        self.endpoint: Endpoint[Any] = end.endpoint
        self.arrivals = Lane(environment, _DELIVERY)
        """The packets on their way here."""
        self._under_way = self.arrivals.under_way
        self._peer_arrivals = self.arrivals
        self._link = end.link
        self._overhead_bytes = end.overhead_bytes
        self._environment = environment
        self._log = log
        self._on_woken = on_woken
        self._wakes_idle = wakes_idle
        self._armed_at_ns: int | None = None
        self._due_at_ns: int | None = None
        """When the endpoint wants to be woken, as it said when last it was flushed."""
        self._is_flush_due = False

    def face(self, peer: EndpointDriver) -> None:
        """Send packets to *peer* from now on."""
        self._peer_arrivals = peer.arrivals

    def flush(self, now_ns: int) -> None:
        """Send all that the endpoint has to send, and see to it that it is woken in time."""
        endpoint = self.endpoint
        packets: list[WirePacket] = endpoint.packets_to_send(now_ns)
        for packet in packets:
            arrives_at_ns = self._link.send(now_ns, packet.size_bytes + self._overhead_bytes)
            if arrives_at_ns is not None:
                self._peer_arrivals.put(arrives_at_ns, packet)
            if self._log is not None:
                self._log.on_sent(packet, now_ns, arrives_at_ns)
        self._due_at_ns = at_ns = endpoint.timer_at_ns()
        if at_ns is not None:
            # What `_arm` would find out first, without the call: a packet comes before the timer is
            # due.
            under_way = self._under_way
            next_at_ns: int = under_way[0][0] if under_way else now_ns
            if not now_ns < next_at_ns <= at_ns:
                self._arm(at_ns, now_ns)

    def flush_soon(self, now_ns: int) -> None:
        """Flush once all that falls on this instant has happened.

        So requests that are made together leave in one packet, and a server that gets several
        at once knows all of them before it begins to answer.
        """
        if not self._is_flush_due:
            self._is_flush_due = True
            self._environment.at(now_ns, _TIMER, self._on_flush, None)

    def _arm(self, at_ns: int, now_ns: int) -> None:
        """See to it that the end is woken at *at_ns*.

        Each packet that arrives has the end asked for its timer again. So none is armed that one
        of them precedes: as a rule that packet puts the timer off, or does away with it.
        """
        for packet in self._under_way:
            arrives_at_ns: int = packet[0]
            if arrives_at_ns > now_ns:
                if arrives_at_ns <= at_ns:
                    return
                break
        # An earlier waking is there already, and looks for itself whether it has come too soon.
        if self._armed_at_ns is None or at_ns < self._armed_at_ns:
            self._armed_at_ns = at_ns
            # A timer may have been due while nothing could be sent; time does not run backwards.
            at_ns_or_now = at_ns if at_ns > now_ns else now_ns
            self._environment.at(at_ns_or_now, _TIMER, self._on_timer, at_ns)

    def _on_flush(self, value: None, now_ns: int) -> None:
        del value
        self._is_flush_due = False
        self.flush(now_ns)

    def _on_timer(self, armed_at_ns: int, now_ns: int) -> None:
        """Wake the endpoint, unless an earlier timer has taken the place of this one.

        A timer that was put off is let run and looks again: that is cheaper than to take an event
        out of the queue with every packet.
        """
        # Entries are dropped lazily: to take one out of the middle of a heap costs a new heap.
        if armed_at_ns != self._armed_at_ns:
            return
        self._armed_at_ns = None
        due_at_ns = self._due_at_ns
        if self._is_flush_due:  # something came at this very instant
            due_at_ns = self.endpoint.timer_at_ns()
        if due_at_ns is None and not self._wakes_idle:
            return  # its ACK has gone with a later packet
        if due_at_ns is not None and due_at_ns > now_ns:
            self._arm(due_at_ns, now_ns)
            return
        self.endpoint.on_timer(now_ns)
        if self._on_woken is not None:
            self._on_woken(now_ns)
        self.flush(now_ns)
