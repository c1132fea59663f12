"""One direction of a path as a recurrence: loss, delay, and changes while packets travel.

A loss process draws exactly one random number per packet, whatever the packet is. So the fate of
the n-th packet depends on n and the seed, and on nothing else.

Read next, on the path of docs/reading.md: `h3sim/trace/delivery.py`.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any, Protocol

from h3sim.transport.bottleneck import (
    UNLIMITED,
    TokenBucket,
    make_bottleneck,
    make_codel_queue,
    make_queue,
    token_units,
)
from h3sim.transport.link_profile import PacketHold, factor_at, make_draw
from h3sim.transport.packets import CE, NOT_ECT
from h3sim.values.errors import NetworkError, ValidationIssue
from h3sim.values.units import BITS_PER_BYTE, NS_PER_S

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Iterable

    from h3sim.transport.link_profile import LinkProfile
    from h3sim.transport.packets import WirePacket

    Schedule = Callable[[int, int, Callable[[Any, int], None], Any], None]
    """(at_ns, rank, call, value): calls *call* with *value* and the time at *at_ns*."""


class Loss(Protocol):
    """A loss process, which decides packet by packet."""

    def is_lost(self) -> bool:
        """Return whether the next packet is lost."""


class RandomLoss:
    """Independent losses, all with the same probability."""

    __slots__ = ("draw", "probability")

    def __init__(self, probability: float, source: random.Random) -> None:
        self.probability = probability
        self.draw = source.random
        """The random draw; a packet is lost if it is below the probability."""

    def is_lost(self) -> bool:
        """Return whether the next packet is lost."""
        return self.draw() < self.probability


class GilbertElliottLoss:
    """Losses in bursts of geometric length with mean *burst*; a share *loss* of all is lost.

    The chain is good or bad; every packet sent while it is bad is lost, and no other. As in
    Linux netem (`loss gemodel p r`), the state that a packet meets decides its fate, then the
    state may change, and the chain starts good. With stationary loss L = p / (p + r) and mean
    burst B = 1 / r: r = 1 / B, p = L * r / (1 - L).

    >>> import random
    >>> chain = GilbertElliottLoss(loss=0.02, burst=5, source=random.Random(0))
    >>> round(100 * chain.to_bad, 7), chain.to_good
    (0.4081633, 0.2)
    """

    __slots__ = ("_draw", "_is_bad", "to_bad", "to_good")

    def __init__(self, *, loss: float, burst: float, source: random.Random) -> None:
        self.to_good = 1 / burst
        self.to_bad = loss * self.to_good / (1 - loss)
        self._draw = source.random
        self._is_bad = False

    def is_lost(self) -> bool:
        """Return whether the next packet is lost."""
        # netem draws the transition after the decision, so a burst of length 1 is possible.
        was_bad = self._is_bad
        if self._draw() < (self.to_good if was_bad else self.to_bad):
            self._is_bad = not was_bad
        return was_bad


class DeterministicLoss:
    """Losses from a list of packet indices, counted from 0 in the order of sending.

    >>> loss = DeterministicLoss([0, 2])
    >>> [loss.is_lost() for _ in range(4)]
    [True, False, True, False]
    """

    __slots__ = ("_lost", "_next")

    def __init__(self, numbers: Iterable[int]) -> None:
        self._lost = frozenset(numbers)
        self._next = 0

    def is_lost(self) -> bool:
        """Return whether the next packet is lost."""
        number = self._next
        self._next = number + 1
        return number in self._lost


def make_loss(profile: LinkProfile, streams: Callable[[str], random.Random]) -> Loss | None:
    """Return the loss process of *profile*, or None if nothing is ever lost."""
    if profile.loss_list:
        return DeterministicLoss(profile.loss_list)
    if profile.loss == 0:
        return None
    if profile.loss_burst is None:
        return RandomLoss(profile.loss, streams("loss"))
    return GilbertElliottLoss(loss=profile.loss, burst=profile.loss_burst, source=streams("loss"))


class PacketFlow(Protocol):
    """The sender of the packets of one connection in one direction."""

    def on_departed(self, packet: WirePacket, arrives_at_ns: int | None) -> None:
        """Handle that the fate of *packet* is known: its arrival time, or None if it is lost."""


class Link:
    """A path in one direction: returns for each packet, in the order sent, its time of arrival.

    One way takes half of *rtt_ns*; the odd nanosecond is spent *upward*. *streams* returns a random
    stream by purpose ("loss", "jitter"): both directions of a path need their own. Each packet that
    leaves the bottleneck draws one number of either, lost or not, so the n-th of them meets the
    same loss and delay whatever its size and time (common random numbers).

    >>> from h3sim.values.rng import substream
    >>> from h3sim.transport.link_profile import LinkProfile
    >>> profile = LinkProfile(rate_bps=1_000_000, burst_bytes=0, queue_bytes=3000)
    >>> link = Link(profile, rtt_ns=20_000_000, streams=lambda purpose: substream(0, purpose))
    >>> [link.send(0, 1250) for _ in range(3)], link.queue_drops
    ([20000000, 30000000, None], 1)
    """

    __slots__ = (
        "_bottleneck",
        "_codel",
        "_delay_ns",
        "_draw_extra_ns",
        "_draw_loss",
        "_is_ordered",
        "_latest_arrival_ns",
        "_leaves_at_ns",
        "_loss",
        "_min_loss_bytes",
        "_overhead_bytes",
        "ecn_marks",
        "handles_packets",
        "has_dropped",
        "loss_drops",
        "offered",
        "queue_drops",
    )

    def __init__(
        self,
        profile: LinkProfile,
        *,
        rtt_ns: int,
        streams: Callable[[str], random.Random],
        upward: bool = False,
    ) -> None:
        self.offered = 0
        self.queue_drops = 0
        self.loss_drops = 0
        self.ecn_marks = 0
        self.has_dropped = False
        """True if the queue dropped the last packet that will not arrive; False if it was lost."""
        self.handles_packets = profile.ecn or profile.fq_codel is not None
        """True if packets have to be sent by `send_packet`."""
        self._overhead_bytes = profile.frame_overhead_bytes
        self._bottleneck = make_bottleneck(profile)
        self._codel = make_codel_queue(profile, rtt_ns, self._bottleneck)
        if self._codel is None:
            self._leaves_at_ns = make_queue(profile, rtt_ns, self._bottleneck)
        else:
            self._leaves_at_ns = self._codel.leaves_at_ns
        # Both directions add up to the RTT, even if it is an odd number of nanoseconds.
        self._delay_ns = rtt_ns - rtt_ns // 2 if upward else rtt_ns // 2
        self._draw_extra_ns = _make_extra_delay(profile, streams)
        self._loss = make_loss(profile, streams)
        self._draw_loss = None if self._loss is None else self._loss.is_lost
        self._min_loss_bytes = profile.loss_list_from_bytes
        """Smaller packets are never lost, and the loss process does not count them."""
        self._is_ordered = profile.jitter is not None and not profile.jitter.reorder
        """True if a packet with a short extra delay waits for those before it."""
        self._latest_arrival_ns = 0

    def send(self, now_ns: int, size_bytes: int) -> int | None:
        """Return the arrival time of a packet of *size_bytes* sent now; None if it is lost.

        Calls come in the order of time.
        """
        self.offered += 1
        wire_bytes = size_bytes + self._overhead_bytes
        leaves_at_ns = self._leaves_at_ns(now_ns, wire_bytes)
        if leaves_at_ns is None:
            self.queue_drops += 1
            self.has_dropped = True
            return None
        return self._arrives_at_ns(leaves_at_ns, wire_bytes)

    def send_packet(
        self, now_ns: int, packet: WirePacket, size_bytes: int, flow: PacketFlow
    ) -> None:
        """Send *packet* of *flow* now, and report its fate to *flow* once it is known."""
        codel = self._codel
        if codel is not None:
            codel.is_ect = packet.ecn != NOT_ECT
        arrives_at_ns = self.send(now_ns, size_bytes)
        if codel is not None and codel.has_marked:
            packet.ecn = CE
            self.ecn_marks += 1
        if codel is not None:
            codel.is_ect = False  # foreign packets come by `send`
        flow.on_departed(packet, arrives_at_ns)

    def attach(self, schedule: Schedule, rank: int) -> None:
        """Set how calls are scheduled, for links that decide later."""

    def drain(self) -> None:
        """Report the fates of packets in the queue; the load is over."""

    def _arrives_at_ns(self, leaves_at_ns: int, wire_bytes: int) -> int | None:
        """Return the arrival time of a packet that leaves the bottleneck; None if it is lost."""
        arrives_at_ns = leaves_at_ns + self._delay_ns
        # Drawn before the loss: a lost packet draws its delay too, so later packets keep theirs.
        if self._draw_extra_ns is not None:
            arrives_at_ns += self._draw_extra_ns(wire_bytes, leaves_at_ns)
        if self._draw_loss is not None and wire_bytes >= self._min_loss_bytes and self._draw_loss():
            self.loss_drops += 1
            self.has_dropped = False
            return None
        # After the losses: a packet that never arrives delays no other.
        if self._is_ordered:
            if arrives_at_ns < self._latest_arrival_ns:
                return self._latest_arrival_ns
            self._latest_arrival_ns = arrives_at_ns
        return arrives_at_ns


class PlainLink(Link):
    """A `Link` that consists of a `TokenBucket`, a `DropTail` and losses only.

    Every packet in both directions passes here, on most links. So one function inlines what `Link`
    delegates to its parts; tests compare the two.
    """

    __slots__ = (
        "_backlog_bytes",
        "_burst",
        "_draw",
        "_is_bounded",
        "_max_queue_bytes",
        "_max_queue_packets",
        "_per_byte",
        "_per_ns",
        "_probability",
        "_roomy_bytes",
        "_spent_until",
        "_waiting",
    )

    def __init__(
        self,
        profile: LinkProfile,
        *,
        rtt_ns: int,
        streams: Callable[[str], random.Random],
        upward: bool = False,
    ) -> None:
        super().__init__(profile, rtt_ns=rtt_ns, streams=streams, upward=upward)
        assert profile.rate_bps is not None  # noqa: S101 - see `is_plain`
        # As in `TokenBucket`.
        units = token_units(profile.rate_bps, profile.burst_bytes)
        self._per_byte, self._per_ns, self._burst = units
        self._spent_until = 0
        limit_bytes = profile.queue_limit_bytes(rtt_ns)
        self._max_queue_bytes = UNLIMITED if limit_bytes is None else limit_bytes
        self._max_queue_packets = (
            UNLIMITED if profile.queue_packets is None else profile.queue_packets
        )
        self._is_bounded = min(self._max_queue_bytes, self._max_queue_packets) < UNLIMITED
        self._roomy_bytes = self._max_queue_bytes if self._max_queue_packets == UNLIMITED else 0
        """A backlog up to this has room whatever has left; where packets are counted as well, room
        is checked for each."""
        self._waiting: deque[tuple[int, int]] = deque()
        """Departure time, rising, and size of each packet in the queue; packets that have left are
        removed once the queue seems full."""
        self._backlog_bytes = 0
        """The sum of these sizes."""
        self._draw: Callable[[], float] | None = None
        """The draw per packet for independent losses, the most common kind."""
        self._probability = 0.0
        if isinstance(self._loss, RandomLoss):
            self._draw, self._probability = self._loss.draw, self._loss.probability

    @staticmethod
    def is_plain(profile: LinkProfile) -> bool:
        """Return whether a link of that profile can be of this class."""
        is_steady = profile.jitter is None and profile.hold is None
        is_fifo = profile.codel is None and profile.fq_codel is None
        return (
            is_steady
            and is_fifo
            and profile.rate_bps is not None
            and not profile.loss_list_from_bytes
        )

    def send(self, now_ns: int, size_bytes: int) -> int | None:
        """Return the arrival time of a packet of *size_bytes* sent now; None if it is lost."""
        self.offered += 1
        wire_bytes = size_bytes + self._overhead_bytes
        backlog_bytes = self._backlog_bytes + wire_bytes
        if backlog_bytes > self._roomy_bytes:
            if not self._has_room(now_ns, wire_bytes):
                self.queue_drops += 1
                self.has_dropped = True
                return None
            backlog_bytes = self._backlog_bytes + wire_bytes
        # As `TokenBucket.leaves_at_ns`: in integer multiples of one time, rounded only at the end.
        spent = now_ns * self._per_ns
        if spent < self._spent_until:
            spent = self._spent_until
        self._spent_until = spent = spent + wire_bytes * self._per_byte
        leaves_at_ns = (spent - self._burst) // self._per_ns
        if leaves_at_ns <= now_ns:
            leaves_at_ns = now_ns
        elif self._is_bounded:  # an unlimited queue drops nothing, and its list would only grow
            self._waiting.append((leaves_at_ns, wire_bytes))
            self._backlog_bytes = backlog_bytes
        # One draw for each packet that leaves the bottleneck, whatever its fate or size: the n-th
        # packet is lost under every scheme or none (common random numbers).
        if self._draw is not None:
            is_lost = self._draw() < self._probability
        else:
            is_lost = self._draw_loss is not None and self._draw_loss()
        if is_lost:
            self.loss_drops += 1
            self.has_dropped = False
            return None
        return leaves_at_ns + self._delay_ns

    def _has_room(self, now_ns: int, wire_bytes: int) -> bool:
        """Return whether a packet fits into the queue, after removing those that have left.

        The backlog is an upper bound until then; it is corrected only when the queue seems full.
        """
        waiting, backlog_bytes = self._waiting, self._backlog_bytes
        while waiting and waiting[0][0] <= now_ns:  # pairs of departure time and size
            backlog_bytes -= waiting.popleft()[1]
        self._backlog_bytes = backlog_bytes
        fits = backlog_bytes + wire_bytes <= self._max_queue_bytes
        return fits and len(waiting) < self._max_queue_packets


def make_link(
    profile: LinkProfile,
    *,
    rtt_ns: int,
    streams: Callable[[str], random.Random],
    upward: bool = False,
) -> Link:
    """Return the cheapest form of `Link` for *profile*."""
    kind = PlainLink if PlainLink.is_plain(profile) else Link
    return kind(profile, rtt_ns=rtt_ns, streams=streams, upward=upward)


def _make_extra_delay(
    profile: LinkProfile, streams: Callable[[str], random.Random]
) -> Callable[[int, int], int] | None:
    """Return a function from wire bytes and time of a packet to its extra delay, or None."""
    if profile.jitter is not None:
        draw, steps = make_draw(profile.jitter, streams("jitter")), profile.jitter.steps
        if steps:
            return lambda _wire_bytes, at_ns: round(draw() * factor_at(steps, at_ns))
        return lambda _wire_bytes, _at_ns: draw()
    if profile.hold is None:
        return None
    rate_bps = profile.rate_bps
    assert rate_bps is not None  # noqa: S101 - a hold counts in packets at a rate
    hold = PacketHold(profile.hold, source=streams("jitter"))

    def extra_ns(wire_bytes: int, _at_ns: int) -> int:
        # The time of a packet of this size at the rate is the interval that the hold counts in.
        return hold.next_hold_of_ns(wire_bytes * BITS_PER_BYTE * NS_PER_S // rate_bps)

    return extra_ns


class RemoteLink(Link):
    """A link to another server: a shared *link* plus an extra one-way delay.

    Packets first pass the bottleneck, queue and losses of the shared link, in the order sent, and
    then the part of the path that is not shared. *extra_ns* is negative for a closer server, but
    never below minus the delay of the link.

    >>> from h3sim.values.rng import substream
    >>> from h3sim.transport.link import Link
    >>> from h3sim.transport.link_profile import LinkProfile
    >>> profile = LinkProfile(rate_bps=1_000_000, burst_bytes=0)
    >>> link = Link(profile, rtt_ns=20_000_000, streams=lambda purpose: substream(0, purpose))
    >>> far = RemoteLink(link, 5_000_000)
    >>> link.send(0, 1250), far.send(0, 1250), link.send(0, 1250)
    (20000000, 35000000, 40000000)
    """

    __slots__ = ("_flow", "_further_ns", "_link")

    def __init__(self, link: Link, extra_ns: int) -> None:
        # No bottleneck of its own: callers need a `Link`, and everything else is *link*'s.
        self._link = link
        self._further_ns = extra_ns
        self.handles_packets = link.handles_packets
        self._flow: PacketFlow | None = None

    def send(self, now_ns: int, size_bytes: int) -> int | None:
        """Return the arrival time of a packet of *size_bytes* sent now; None if it is lost."""
        arrives_at_ns = self._link.send(now_ns, size_bytes)
        self.has_dropped = self._link.has_dropped
        return None if arrives_at_ns is None else arrives_at_ns + self._further_ns

    def send_packet(
        self, now_ns: int, packet: WirePacket, size_bytes: int, flow: PacketFlow
    ) -> None:
        """Send *packet* of the only flow over this link."""
        self._flow = flow
        self._link.send_packet(now_ns, packet, size_bytes, self)

    def on_departed(self, packet: WirePacket, arrives_at_ns: int | None) -> None:
        """Report the fate of *packet*, which arrives later by the rest of the path."""
        assert self._flow is not None  # noqa: S101 - it has sent the packet
        self.has_dropped = self._link.has_dropped
        later_ns = None if arrives_at_ns is None else arrives_at_ns + self._further_ns
        self._flow.on_departed(packet, later_ns)

    def attach(self, schedule: Schedule, rank: int) -> None:
        """Set how the shared link schedules calls."""
        self._link.attach(schedule, rank)

    def drain(self) -> None:
        """Drain the shared link."""
        self._link.drain()


class ChangingLink(Link):
    """A `Link` whose rate and losses can change; until then it is equivalent to a `Link`.

    >>> from h3sim.values.rng import substream
    >>> from h3sim.transport.link_profile import LinkProfile
    >>> profile = LinkProfile(rate_bps=1_000_000, burst_bytes=0)
    >>> link = ChangingLink(profile, rtt_ns=0, streams=lambda purpose: substream(0, purpose))
    >>> before = link.send(0, 1250)
    >>> link.change_rate(0, 2_000_000); link.change_loss(0.0)
    >>> before, link.send(0, 1250)
    (10000000, 15000000)
    """

    __slots__ = ("_source",)

    def __init__(
        self,
        profile: LinkProfile,
        *,
        rtt_ns: int,
        streams: Callable[[str], random.Random],
        upward: bool = False,
    ) -> None:
        super().__init__(profile, rtt_ns=rtt_ns, streams=streams, upward=upward)
        # A stream of its own: the losses of the profile stay the same, changed or not.
        self._source = streams("changed-loss")

    def change_rate(self, now_ns: int, rate_bps: int | Any) -> None:
        """Set the rate from now on; packets already in the queue keep their departure times.

        Raises:
            NetworkError: if the rate is not above 0, or the link has no rate.
        """
        bottleneck = self._bottleneck
        if not isinstance(bottleneck, TokenBucket):
            message = "cannot change: this link has no rate"
            raise NetworkError([ValidationIssue(key="rate_mbps", message=message)], "link")
        if not isinstance(rate_bps, int) or rate_bps <= 0:
            message = f"must be a whole number of bit/s above 0, is {rate_bps!r}"
            raise NetworkError([ValidationIssue(key="rate_mbps", message=message)], "link")
        bottleneck.change_rate(now_ns, rate_bps)

    def change_loss(self, loss: float | Any) -> None:
        """Set the share of independent losses from now on; packets in flight still arrive.

        Raises:
            NetworkError: if *loss* is not a share from 0 up to 1.
        """
        if not isinstance(loss, int | float) or not 0 <= loss < 1:
            message = f"must be 0 up to, but without, 1, is {loss!r}"
            raise NetworkError([ValidationIssue(key="loss", message=message)], "link")
        self._draw_loss = RandomLoss(loss, self._source).is_lost if loss else None
