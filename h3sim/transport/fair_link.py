"""A link with FQ-CoDel before its bottleneck (RFC 8290).

The order of departures depends on packets that arrive later, so they are scheduled, unlike those of
other links.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from h3sim.transport.bottleneck import UNLIMITED, CoDelState
from h3sim.transport.link import ChangingLink
from h3sim.transport.packets import CE, NOT_ECT
from h3sim.values.errors import NetworkError, ValidationIssue

if TYPE_CHECKING:
    import random
    from collections.abc import Callable
    from typing import Any

    from h3sim.transport.link import PacketFlow, Schedule
    from h3sim.transport.link_profile import FqCoDel, LinkProfile
    from h3sim.transport.packets import WirePacket


class QueuedPacket:
    """A packet in the queue of its flow, since *at_ns*."""

    __slots__ = ("at_ns", "flow", "packet", "wire_bytes")

    def __init__(self, flow: PacketFlow, packet: WirePacket, wire_bytes: int, at_ns: int) -> None:
        self.flow = flow
        self.packet = packet
        self.wire_bytes = wire_bytes
        self.at_ns = at_ns


class FlowQueue:
    """The queue of one flow: its packets, its deficit, and its CoDel state."""

    __slots__ = ("codel", "credit_bytes", "is_listed", "n_bytes", "packets")

    def __init__(self, codel: CoDelState) -> None:
        self.packets: deque[QueuedPacket] = deque()
        self.n_bytes = 0
        self.credit_bytes = 0
        """The bytes that it may still send in this round."""
        self.is_listed = False
        """True if it is in the list of new or of old queues."""
        self.codel = codel


class FqCoDelQueue:
    """Queues of flows, served by deficit round robin, new ones first, with CoDel each.

    A flow is a connection in one direction: there are no hash collisions. If the packets together
    exceed a limit, the queue with the most bytes loses its first packet (RFC 8290 § 4.1). With
    *marks* CoDel marks packets that are ECN-capable; *on_dropped* is called with each dropped
    packet. CoDel decides when a packet is dequeued, as in RFC 8289, by the bytes that remain in the
    queue of its flow.
    """

    __slots__ = (
        "_limit_bytes",
        "_limit_packets",
        "_marks",
        "_n_bytes",
        "_n_packets",
        "_new",
        "_old",
        "_on_dropped",
        "_queues",
        "_settings",
        "n_marked",
    )

    def __init__(
        self,
        settings: FqCoDel,
        on_dropped: Callable[[QueuedPacket], None],
        *,
        marks: bool,
        limit_bytes: int | None,
        limit_packets: int | None,
    ) -> None:
        self._settings = settings
        self._on_dropped = on_dropped
        self._marks = marks
        self._limit_bytes = UNLIMITED if limit_bytes is None else limit_bytes
        self._limit_packets = UNLIMITED if limit_packets is None else limit_packets
        self._n_bytes = 0
        self._n_packets = 0
        self._queues: dict[PacketFlow, FlowQueue] = {}
        self._new: deque[FlowQueue] = deque()
        """Queues that have just become active, which are served before the old ones."""
        self._old: deque[FlowQueue] = deque()
        self.n_marked = 0
        """The packets marked so far."""

    def put(self, entry: QueuedPacket) -> None:
        """Enqueue a packet (§ 4.1)."""
        queue = self._queues.get(entry.flow)
        if queue is None:
            settings = self._settings
            codel = CoDelState(target_ns=settings.target_ns, interval_ns=settings.interval_ns)
            queue = self._queues[entry.flow] = FlowQueue(codel)
        queue.packets.append(entry)
        queue.n_bytes += entry.wire_bytes
        self._n_bytes += entry.wire_bytes
        self._n_packets += 1
        # § 4.1: a queue that becomes active starts among the new ones with a full quantum, so a
        # sparse flow waits for no bulk flow.
        if not queue.is_listed:
            queue.is_listed = True
            queue.credit_bytes = self._settings.quantum_bytes
            self._new.append(queue)
        while self._n_bytes > self._limit_bytes or self._n_packets > self._limit_packets:
            # Of equal ones the first in the order of flows, so that loads are reproducible.
            fattest = max(self._queues.values(), key=lambda other: other.n_bytes)
            self._on_dropped(self._pop(fattest))

    def take(self, now_ns: int) -> QueuedPacket | None:
        """Dequeue the packet to be sent next; None if there is none (§ 4.2)."""
        while True:
            is_new = bool(self._new)
            queues = self._new if is_new else self._old
            if not queues:
                return None
            queue = queues[0]
            # § 4.2: a used-up quantum sends the queue behind the old ones, be it new or old.
            if queue.credit_bytes <= 0:
                queue.credit_bytes += self._settings.quantum_bytes
                self._old.append(queues.popleft())
                continue
            entry = self._undropped(queue, now_ns)
            if entry is not None:
                queue.credit_bytes -= entry.wire_bytes
                return entry
            queues.popleft()
            if is_new:
                # § 4.2: otherwise a flow with one packet per round would remain new forever, and
                # starve the old ones.
                self._old.append(queue)
            else:
                queue.is_listed = False

    def _undropped(self, queue: FlowQueue, now_ns: int) -> QueuedPacket | None:
        """Return the first packet of *queue* that CoDel lets pass."""
        while queue.packets:
            entry = self._pop(queue)
            waited_ns = now_ns - entry.at_ns
            if not queue.codel.drops(now_ns, waited_ns, queue.n_bytes, entry.wire_bytes):
                return entry
            if self._marks and entry.packet.ecn != NOT_ECT:
                queue.codel.on_marked()
                entry.packet.ecn = CE
                self.n_marked += 1
                return entry
            self._on_dropped(entry)
        return None

    def _pop(self, queue: FlowQueue) -> QueuedPacket:
        """Remove the first packet of *queue*, be it to send or to drop it."""
        entry = queue.packets.popleft()
        queue.n_bytes -= entry.wire_bytes
        self._n_bytes -= entry.wire_bytes
        self._n_packets -= 1
        return entry


class FairLink(ChangingLink):
    """A `Link` with FQ-CoDel; the fate of a packet is known once it leaves its queue.

    The packet that the bottleneck serves has left the queue, and does not count towards its limit.

    Raises:
        NetworkError: by `send`, since the arrival of a packet is not known when it is sent.
    """

    __slots__ = ("_is_busy", "_leaves_next_ns", "_queue", "_rank", "_schedule")

    def __init__(
        self,
        profile: LinkProfile,
        *,
        rtt_ns: int,
        streams: Callable[[str], random.Random],
        upward: bool = False,
    ) -> None:
        super().__init__(profile, rtt_ns=rtt_ns, streams=streams, upward=upward)
        assert profile.fq_codel is not None  # noqa: S101 - what the link is for
        self._queue = FqCoDelQueue(
            profile.fq_codel,
            self._on_dropped,
            marks=profile.ecn,
            limit_bytes=profile.queue_limit_bytes(rtt_ns),
            limit_packets=profile.queue_packets,
        )
        self._is_busy = False
        """True if a packet is in service, whose departure is scheduled."""
        self._leaves_next_ns = 0
        """The time of this departure."""
        self._schedule: Schedule | None = None
        self._rank = 0
        """The rank of departures among simultaneous events."""

    def attach(self, schedule: Schedule, rank: int) -> None:
        """Set how departures are scheduled."""
        self._schedule, self._rank = schedule, rank

    def send(self, now_ns: int, size_bytes: int) -> int | None:
        """Refuse: nothing is known about the packet yet."""
        del now_ns, size_bytes
        message = "cannot tell when a packet arrives that is sent now; use codel instead"
        raise NetworkError([ValidationIssue(key="fq_codel", message=message)], "link")

    def send_packet(
        self, now_ns: int, packet: WirePacket, size_bytes: int, flow: PacketFlow
    ) -> None:
        """Enqueue *packet*; its fate is reported to *flow* when it leaves the queue."""
        self.offered += 1
        self._queue.put(QueuedPacket(flow, packet, size_bytes + self._overhead_bytes, now_ns))
        if not self._is_busy:
            self._serve(None, now_ns)

    def drain(self) -> None:
        """Serve the packets in the queue, without any that would come later."""
        while self._is_busy:
            self._serve(None, self._leaves_next_ns)

    def _serve(self, _value: Any, now_ns: int) -> None:
        """Serve packets that leave at once, and the first that takes time."""
        bottleneck, schedule = self._bottleneck, self._schedule
        assert bottleneck is not None  # noqa: S101 - a queue needs one
        assert schedule is not None  # noqa: S101 - see `attach`
        self._is_busy = False
        while not self._is_busy:
            entry = self._queue.take(now_ns)
            self.ecn_marks = self._queue.n_marked
            if entry is None:
                return
            # A packet that has already waited may use the remainder of an opportunity at this very
            # instant; a packet that arrives now is too late (see `OpportunityTrace`).
            from_ns = max(entry.at_ns, now_ns - 1)
            leaves_at_ns = max(now_ns, bottleneck.leaves_at_ns(from_ns, entry.wire_bytes))
            if leaves_at_ns > now_ns:
                self._is_busy, self._leaves_next_ns = True, leaves_at_ns
                schedule(leaves_at_ns, self._rank, self._serve, None)
            arrives_at_ns = self._arrives_at_ns(leaves_at_ns, entry.wire_bytes)
            entry.flow.on_departed(entry.packet, arrives_at_ns)

    def _on_dropped(self, entry: QueuedPacket) -> None:
        """Count a packet that the queue has dropped, and report it to its flow."""
        self.queue_drops += 1
        self.has_dropped = True
        entry.flow.on_departed(entry.packet, None)
