"""Bottlenecks and their queues as recurrences, CoDel included (RFC 8289).

Packets are served first in, first out, so the departure time of a packet is known on arrival:
nothing is scheduled, and the backlog follows from the departure times of earlier packets.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from math import gcd, isqrt
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias

from h3sim.transport.link_profile import OPPORTUNITY_BYTES
from h3sim.values.units import BITS_PER_BYTE, NS_PER_MS, NS_PER_S

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from h3sim.transport.link_profile import LinkProfile


_RECENT_INTERVALS: Final = 16
"""Intervals after which an ended dropping state is no longer resumed (RFC 8289 § 5.5)."""


class CoDelState:
    """The CoDel controller: decides for each packet at the head of the queue whether to drop it.

    The pseudocode's `dequeue` goes on to the next packet after a drop; here each packet is one
    call. A packet that reaches the head later than the drop before it found the queue empty, and
    ends the dropping state as the pseudocode's missing packet does.
    """

    __slots__ = (
        "_count",
        "_drop_next_ns",
        "_first_above_ns",
        "_has_just_dropped",
        "_interval_ns",
        "_is_dropping",
        "_last_count",
        "_max_packet_bytes",
        "_target_ns",
    )

    def __init__(self, *, target_ns: int, interval_ns: int) -> None:
        self._target_ns = target_ns
        self._interval_ns = interval_ns
        # As in the pseudocode of RFC 8289 § 5:
        self._first_above_ns: int | None = None
        """Time when packets will have waited for too long throughout an interval."""
        self._drop_next_ns = 0
        """Time of the next drop, within the dropping state."""
        self._count = 0
        """The drops of this dropping state, which raise its rate."""
        self._last_count = 0
        """The count with which it began."""
        self._is_dropping = False
        self._has_just_dropped = False
        """True if the last packet at the head was dropped within the dropping state."""
        self._max_packet_bytes = 0
        """The largest packet so far: a queue of up to this size is not reduced further."""

    def drops(self, now_ns: int, sojourn_ns: int, waiting_bytes: int, n_bytes: int) -> bool:
        """Return whether the packet at the head of the queue at *now_ns* is dropped.

        It has *n_bytes* and has waited for *sojourn_ns*; *waiting_bytes* of others wait.
        """
        # Reset with every call: only the packet right behind a drop moves drop_next.
        has_just_dropped, self._has_just_dropped = self._has_just_dropped, False
        may_drop = self._may_drop(now_ns, sojourn_ns, waiting_bytes, n_bytes)
        if not self._is_dropping:
            if may_drop:
                self._start_dropping(now_ns)
            return may_drop
        if not may_drop:
            self._is_dropping = False
            return False
        # Here and not with the drop: the pseudocode moves drop_next only if the next packet, too,
        # has waited for too long.
        if has_just_dropped:
            self._drop_next_ns = self._next_drop_ns(self._drop_next_ns)
        if now_ns < self._drop_next_ns:
            return False
        self._count += 1
        self._has_just_dropped = True
        return True

    def on_marked(self) -> None:
        """Record that the packet was marked in place of the drop (RFC 8290 § 5.2.6).

        Linux then moves drop_next at once, since no other packet takes its turn.
        """
        if self._has_just_dropped:
            self._has_just_dropped = False
            self._drop_next_ns = self._next_drop_ns(self._drop_next_ns)

    def _may_drop(self, now_ns: int, sojourn_ns: int, waiting_bytes: int, n_bytes: int) -> bool:
        """Return whether packets have waited for too long, throughout an interval."""
        self._max_packet_bytes = max(self._max_packet_bytes, n_bytes)
        # A packet alone in the queue is the link's own time to send it, and no standing queue.
        if sojourn_ns < self._target_ns or waiting_bytes <= self._max_packet_bytes:
            self._first_above_ns = None
        elif self._first_above_ns is None:
            self._first_above_ns = now_ns + self._interval_ns
        else:
            return now_ns >= self._first_above_ns
        return False

    def _start_dropping(self, now_ns: int) -> None:
        """Enter the dropping state, at the rate of the last one if that was recent."""
        # Count was raised by this much in the last dropping state: its rate held the queue (§ 5.5).
        since_last = self._count - self._last_count
        is_recent = now_ns - self._drop_next_ns < _RECENT_INTERVALS * self._interval_ns
        self._count = since_last if since_last > 1 and is_recent else 1
        self._last_count = self._count
        self._drop_next_ns = self._next_drop_ns(now_ns)
        self._is_dropping = True

    def _next_drop_ns(self, from_ns: int) -> int:
        """Return *from_ns* + interval / sqrt(count), cut to whole nanoseconds."""
        # The square root of a whole number: floats would differ in the last nanosecond.
        return from_ns + isqrt(self._interval_ns * self._interval_ns // self._count)


UNLIMITED: Final = 1 << 62
"""A limit above the size of any queue."""

DepartureTimes: TypeAlias = "Callable[[int, int], int | None]"
"""(now_ns, n_bytes) -> departure time of a packet that arrives now; None if it is dropped."""


class Bottleneck(Protocol):
    """A server of packets, one after the other; *now_ns* never decreases from call to call."""

    def ready_at_ns(self, now_ns: int) -> int:
        """Return when service of a packet that arrives now would begin."""

    def leaves_at_ns(self, now_ns: int, n_bytes: int) -> int:
        """Enqueue a packet; return its departure time."""


class TokenBucket:
    """A token bucket (tc-tbf): *rate_bps* on average, up to *burst_bytes* at once after idling.

    A packet leaves as soon as there are tokens for all its bytes. With a burst of 0 the link
    serializes: a packet leaves when its last bit has been sent. A packet larger than the bucket,
    which tc-tbf drops, waits for the part that does not fit to be sent.

    Times are kept as whole multiples of the time of 1 bit (over the greatest common divisor), so k
    packets take k times as long as one; cut to whole nanoseconds is only what is returned.

    >>> link = TokenBucket(rate_bps=3_000_000, burst_bytes=0)
    >>> [link.leaves_at_ns(0, 1000) for _ in range(3)]
    [2666666, 5333333, 8000000]
    """

    __slots__ = ("_burst", "_per_byte", "_per_ns", "_spent_until")

    def __init__(self, *, rate_bps: int, burst_bytes: int) -> None:
        self._per_byte, self._per_ns, self._burst = token_units(rate_bps, burst_bytes)
        self._spent_until = 0
        """A time in these units. The bucket is full if it is not after now, and empty if it is a
        burst after now."""

    def ready_at_ns(self, now_ns: int) -> int:
        """Return when service of a packet that arrives now would begin: now, or at a departure."""
        return max(now_ns, (self._spent_until - self._burst) // self._per_ns)

    def leaves_at_ns(self, now_ns: int, n_bytes: int) -> int:
        """Enqueue a packet; return its departure time."""
        spent = now_ns * self._per_ns
        if spent < self._spent_until:  # by comparison: `max` costs a call
            spent = self._spent_until
        self._spent_until = spent = spent + n_bytes * self._per_byte
        leaves_at_ns = (spent - self._burst) // self._per_ns
        return leaves_at_ns if leaves_at_ns > now_ns else now_ns

    def change_rate(self, now_ns: int, rate_bps: int) -> None:
        """Pass *rate_bps* from now on.

        Packets already enqueued keep their departure times; unused tokens stay.

        >>> link = TokenBucket(rate_bps=1_000_000, burst_bytes=0)
        >>> first = link.leaves_at_ns(0, 1250)
        >>> link.change_rate(5_000_000, 2_000_000)
        >>> first, link.leaves_at_ns(5_000_000, 1250)
        (10000000, 15000000)
        """
        # Rounded up, so that the first packet at the new rate leaves after those enqueued before.
        free_at_ns = -(-(self._spent_until - self._burst) // self._per_ns)
        spent_bytes = max(0, self._spent_until - now_ns * self._per_ns) // self._per_byte
        burst_bytes = self._burst // self._per_byte
        # Converted through bytes: at the new rate the same tokens are worth another time.
        self._per_byte, self._per_ns, self._burst = token_units(rate_bps, burst_bytes)
        if free_at_ns > now_ns:
            self._spent_until = free_at_ns * self._per_ns + self._burst
        else:
            self._spent_until = now_ns * self._per_ns + spent_bytes * self._per_byte


def token_units(rate_bps: int, burst_bytes: int) -> tuple[int, int, int]:
    """Return a byte, a nanosecond and a burst as whole multiples of one and the same time.

    >>> token_units(2_000_000, 1500)
    (4000, 1, 6000000)
    """
    common = gcd(rate_bps, BITS_PER_BYTE * NS_PER_S)
    per_byte = BITS_PER_BYTE * NS_PER_S // common
    return per_byte, rate_bps // common, burst_bytes * per_byte


class OpportunityTrace:
    """The delivery opportunities of a Mahimahi trace, repeated for ever.

    Each instant is an opportunity of 1500 bytes. As in Mahimahi's link queue: a packet uses one or
    several opportunities and leaves with the last; the remainder goes to packets that already wait
    at that instant, or is lost; a packet that arrives at the instant itself is too late for it.
    Mahimahi counts 4 bytes of a TUN header with each packet and opportunity (1504), which only
    affects packets that are not full.

    >>> trace = OpportunityTrace([2, 5])
    >>> [trace.leaves_at_ns(0, n) for n in (1000, 1000, 1000)]
    [2000000, 5000000, 5000000]
    """

    __slots__ = ("_last_at_ns", "_next_opportunity", "_period_ns", "_times_ns", "_unused_bytes")

    def __init__(self, opportunities_ms: Sequence[int]) -> None:
        self._times_ns = [at_ms * NS_PER_MS for at_ms in opportunities_ms]
        self._period_ns = self._times_ns[-1]
        self._next_opportunity = 0
        """The index of the next one, counted on through all repetitions."""
        self._last_at_ns = 0
        """The time of the last opportunity that a packet used."""
        self._unused_bytes = 0
        """The remainder of that opportunity."""

    def ready_at_ns(self, now_ns: int) -> int:
        """Return when service of a packet that arrives now would begin: at the next opportunity."""
        self._skip_to(now_ns)
        return self._last_at_ns if self._unused_bytes else self._time_ns(self._next_opportunity)

    def leaves_at_ns(self, now_ns: int, n_bytes: int) -> int:
        """Enqueue a packet; return its departure time."""
        self._skip_to(now_ns)
        unused_bytes = self._unused_bytes
        # A packet that fits exactly uses the opportunity up, and needs no further one.
        while n_bytes > unused_bytes:
            n_bytes -= unused_bytes
            unused_bytes = OPPORTUNITY_BYTES
            self._last_at_ns = self._time_ns(self._next_opportunity)
            self._next_opportunity += 1
        self._unused_bytes = unused_bytes - n_bytes
        return self._last_at_ns

    def _skip_to(self, now_ns: int) -> None:
        """Skip the opportunities up to and at *now_ns* that no packet used."""
        if self._last_at_ns > now_ns:
            return
        # What was left of the last opportunity went by unused.
        self._unused_bytes = 0
        repetition, within_ns = divmod(now_ns, self._period_ns)
        # `bisect_right`: an opportunity at this very instant is gone.
        n_before = bisect_right(self._times_ns, within_ns)
        self._next_opportunity = repetition * len(self._times_ns) + n_before

    def _time_ns(self, opportunity: int) -> int:
        """Return the time of an opportunity, by its index through all repetitions."""
        repetition, index = divmod(opportunity, len(self._times_ns))
        return repetition * self._period_ns + self._times_ns[index]


class DropTail:
    """A first-in-first-out queue that drops packets that do not fit.

    The backlog is what was accepted and has not left yet, the packet in service included; a packet
    is accepted if the backlog with it stays within both limits (as bfifo below tc-tbf does it).
    """

    __slots__ = (
        "_backlog_bytes",
        "_bottleneck",
        "_limit_bytes",
        "_limit_packets",
        "_serve",
        "_waiting",
    )

    def __init__(
        self,
        bottleneck: Bottleneck,
        *,
        limit_bytes: int | None = None,
        limit_packets: int | None = None,
    ) -> None:
        self._bottleneck = bottleneck
        self._serve = bottleneck.leaves_at_ns  # looked up once, and not for each packet
        self._limit_bytes = UNLIMITED if limit_bytes is None else limit_bytes
        self._limit_packets = UNLIMITED if limit_packets is None else limit_packets
        self._waiting: deque[tuple[int, int]] = deque()
        """Departure time, rising, and size of each packet in the queue."""
        self._backlog_bytes = 0
        """The sum of these sizes."""

    def leaves_at_ns(self, now_ns: int, n_bytes: int) -> int | None:
        """Return the departure time of a packet that arrives now, or None if it is dropped."""
        waiting = self._waiting
        if waiting and waiting[0][0] <= now_ns:  # pairs of departure time and size
            self._remove_departed(now_ns)
        backlog_bytes = self._backlog_bytes + n_bytes
        # Checked before the bottleneck sees the packet, which would spend its tokens.
        if backlog_bytes > self._limit_bytes or len(waiting) >= self._limit_packets:
            return None
        leaves_at_ns = self._serve(now_ns, n_bytes)
        # A packet that leaves at once, on tokens in the bucket, never occupied the queue.
        if leaves_at_ns > now_ns:
            waiting.append((leaves_at_ns, n_bytes))
            self._backlog_bytes = backlog_bytes
        return leaves_at_ns

    def _remove_departed(self, now_ns: int) -> None:
        """Remove the packets that have left the queue by now."""
        waiting = self._waiting
        while waiting and waiting[0][0] <= now_ns:
            self._backlog_bytes -= waiting.popleft()[1]


class CoDelQueue(DropTail):
    """A queue that also drops at its head packets that have waited too long (CoDel, RFC 8289).

    The fate of a packet is decided when it enters, with one approximation: CoDel lets a packet pass
    if no more than one packet's bytes wait behind it at its turn, and those may not have arrived
    yet. The bytes ahead of it on arrival are used instead; in a standing queue they are as many.

    Set *is_ect* before an ECN-capable packet: CoDel then marks it instead of dropping it, and
    *has_marked* is True afterwards. A full queue still drops it.
    """

    __slots__ = ("_codel", "has_marked", "is_ect")

    def __init__(
        self,
        bottleneck: Bottleneck,
        codel: CoDelState,
        *,
        limit_bytes: int | None = None,
        limit_packets: int | None = None,
    ) -> None:
        super().__init__(bottleneck, limit_bytes=limit_bytes, limit_packets=limit_packets)
        self._codel = codel
        self.is_ect = False
        self.has_marked = False

    def leaves_at_ns(self, now_ns: int, n_bytes: int) -> int | None:
        """Return the departure time of a packet that arrives now, or None if it is dropped."""
        waiting = self._waiting
        if waiting and waiting[0][0] <= now_ns:  # pairs of departure time and size
            self._remove_departed(now_ns)
        before_bytes = self._backlog_bytes
        self.has_marked = False
        if before_bytes + n_bytes > self._limit_bytes or len(waiting) >= self._limit_packets:
            return None
        # Only a query: a packet that is dropped at the head of the queue takes no time of the link.
        turn_at_ns = self._bottleneck.ready_at_ns(now_ns)
        is_dropped = self._codel.drops(turn_at_ns, turn_at_ns - now_ns, before_bytes, n_bytes)
        if is_dropped and self.is_ect:
            self._codel.on_marked()
            self.has_marked, is_dropped = True, False
        leaves_at_ns = turn_at_ns if is_dropped else self._bottleneck.leaves_at_ns(now_ns, n_bytes)
        if leaves_at_ns > now_ns:  # a packet that CoDel will drop occupies the queue until then
            waiting.append((leaves_at_ns, n_bytes))
            self._backlog_bytes = before_bytes + n_bytes
        return None if is_dropped else leaves_at_ns


def make_bottleneck(profile: LinkProfile) -> TokenBucket | OpportunityTrace | None:
    """Return the bottleneck of *profile*, None where it has none."""
    if profile.rate_bps is not None:
        return TokenBucket(rate_bps=profile.rate_bps, burst_bytes=profile.burst_bytes)
    return None if profile.mahimahi is None else OpportunityTrace(profile.mahimahi)


def make_codel_queue(
    profile: LinkProfile, rtt_ns: int, bottleneck: Bottleneck | None
) -> CoDelQueue | None:
    """Return the CoDel queue of *profile*, None where it has none."""
    codel = profile.codel
    if codel is None or bottleneck is None:
        return None
    return CoDelQueue(
        bottleneck,
        CoDelState(target_ns=codel.target_ns, interval_ns=codel.interval_ns),
        limit_bytes=profile.queue_limit_bytes(rtt_ns),
        limit_packets=profile.queue_packets,
    )


def make_queue(profile: LinkProfile, rtt_ns: int, bottleneck: Bottleneck | None) -> DepartureTimes:
    """Return the function from arrival to departure times at a bottleneck without CoDel."""
    if bottleneck is None:
        return lambda now_ns, _: now_ns
    limit_bytes = profile.queue_limit_bytes(rtt_ns)
    limit_packets = profile.queue_packets
    if limit_bytes is None and limit_packets is None:
        return bottleneck.leaves_at_ns
    return DropTail(bottleneck, limit_bytes=limit_bytes, limit_packets=limit_packets).leaves_at_ns
