"""The extensible priority scheme.

Strict by urgency, sequential or shared in each (RFC 9218 § 10).
"""

from __future__ import annotations

import enum
from collections import OrderedDict
from typing import TYPE_CHECKING

from h3sim.schedulers.base import Quantum
from h3sim.schedulers.levels import (
    H2oFirstSlice,
    NonIncrementalFirstLevel,
    RoundRobinAll,
    SharedRing,
    SplitHalf,
    SplitHalfIncrementalFirst,
)
from h3sim.schedulers.queues import IndexedHeap
from h3sim.signals import MAX_URGENCY, Eps

if TYPE_CHECKING:
    from h3sim.signals import Signal


class Mixed(enum.Enum):
    """The order of incremental and non-incremental responses of one urgency.

    RFC 9218 § 10 leaves this order to the server. Whichever kind goes first may starve the other.
    """

    NON_INCREMENTAL_FIRST = "non-incremental-first"
    """Non-incremental responses go before all incremental ones (quiche, mvfst, lsquic)."""
    SHARED_LIST = "shared-list"
    """All are in one list, by round and then by stream ID. A stream joins the current round. A
    quantum moves an incremental stream to the next round; others stay until they are done
    (nghttp3).
    """
    HALVES = "halves"
    """Both groups alternate with quanta of one size, and so get half each."""
    HALVES_INCREMENTAL_FIRST = "halves-incremental-first"
    """The same, beginning with an incremental response in each urgency (quic-go)."""
    FIRST_TURN = "first-turn"
    """Non-incremental responses and the first quantum of each incremental one go by stream ID, the
    later quanta of incremental ones after them (h2o)."""
    ALL_SHARE = "all-share"
    """All share; the incremental flag is ignored (google-quiche)."""


class EpsScheduler:
    """Strict priority by urgency; non-incremental streams of one urgency one at a time by ID.

    Incremental streams share round robin, in the order of their activation. *mixed* sets the order
    of both kinds within an urgency. A signal of another type counts as the default, urgency 3 and
    not incremental (RFC 9218 § 4). O(log n) in the streams of an urgency.

    >>> scheduler = EpsScheduler()
    >>> for stream_id, urgency in ((0, 3), (4, 1)):
    ...     scheduler.open(stream_id, Eps(urgency=urgency))
    ...     scheduler.activate(stream_id)
    >>> scheduler.pick()
    4
    """

    def __init__(
        self,
        *,
        mixed: Mixed = Mixed.NON_INCREMENTAL_FIRST,
        turn: Quantum = Quantum(),  # noqa: B008 - a frozen value
    ) -> None:
        self._levels = [_LEVEL_CLASSES[mixed](turn) for _ in range(MAX_URGENCY + 1)]
        self._priorities: dict[int, Eps] = {}
        self._active: dict[int, int] = {}
        """The urgency of each active stream."""
        self._n_active = [0] * len(self._levels)
        """The number of active streams of each urgency."""
        self._most_urgent = len(self._levels)
        """The lowest urgency of an active stream; one more than the last without any."""
        self._had_quantum: dict[int, None] = {}
        """The streams that have sent; to h2o this outlasts a deactivation."""
        self._tracks_first_quanta = mixed is Mixed.FIRST_TURN

    def open(self, stream_id: int, signal: Signal) -> None:
        """Open the stream."""
        self._priorities[stream_id] = _eps(signal)

    def update(self, stream_id: int, signal: Signal) -> None:
        """Move the stream behind others of its new urgency; an unchanged one keeps its quantum."""
        before, self._priorities[stream_id] = self._priorities[stream_id], _eps(signal)
        # An unchanged signal must not cost the quantum: a client could repeat it (RFC 9218 § 7 lets
        # it send any number of updates).
        if stream_id in self._active and self._priorities[stream_id] != before:
            has_begun = self._levels[before.urgency].has_begun(stream_id)
            self.deactivate(stream_id)
            self.activate(stream_id)
            if has_begun:
                self._levels[self._priorities[stream_id].urgency].carry_over(stream_id)

    def activate(self, stream_id: int) -> None:
        """Activate the stream."""
        if stream_id in self._active:
            return
        priority = self._priorities[stream_id]
        urgency = self._active[stream_id] = priority.urgency
        self._n_active[urgency] += 1
        self._most_urgent = min(self._most_urgent, urgency)
        is_new = stream_id not in self._had_quantum
        self._levels[urgency].join(stream_id, priority.incremental, is_new)

    def deactivate(self, stream_id: int) -> None:
        """Deactivate the stream, which ends its quantum."""
        urgency = self._active.pop(stream_id, None)
        if urgency is None:
            return
        self._levels[urgency].leave(stream_id)
        self._n_active[urgency] -= 1
        # At most eight steps, and only when a level becomes empty; so `pick` needs no search.
        while self._most_urgent < len(self._levels) and not self._n_active[self._most_urgent]:
            self._most_urgent += 1

    def close(self, stream_id: int) -> None:
        """Forget the stream."""
        self.deactivate(stream_id)
        del self._priorities[stream_id]
        self._had_quantum.pop(stream_id, None)

    def pick(self) -> int | None:
        """Return the stream to send next among the most urgent."""
        urgency = self._most_urgent
        return None if urgency == len(self._levels) else self._levels[urgency].next_stream

    def charge(self, stream_id: int, n_bytes: int) -> None:
        """Charge a packet, and end the stream's quantum if it is used up."""
        self._levels[self._active[stream_id]].charge(stream_id, n_bytes)
        # Only h2o's rule needs it, and this runs for every packet.
        if self._tracks_first_quanta:
            self._had_quantum[stream_id] = None


class RingEpsScheduler:
    """EPS as in Go's HTTP/2 server (golang.org/x/net 0.62, `writesched_priority_rfc9218.go`).

    Within an urgency, frames of incremental and of other streams alternate, the incremental one
    first. There is a single alternation for the connection: each frame flips it, whatever its
    urgency. For each urgency and kind, a ring holds the open streams in the order in which they
    were opened or last updated, and has a head. The first stream with data, from the head on, is
    sent. The head moves to this stream, or behind it if it is incremental. So a non-incremental
    response that becomes ready late does not precede responses with higher IDs, although RFC 9218
    § 10 recommends the order of IDs.

    >>> scheduler = RingEpsScheduler()
    >>> for stream_id, incremental in ((0, False), (4, True), (8, True)):
    ...     scheduler.open(stream_id, Eps(incremental=incremental))
    ...     scheduler.activate(stream_id)
    >>> picks = []
    >>> for _ in range(5):
    ...     picks.append(scheduler.pick())
    ...     scheduler.charge(picks[-1], 1400)
    >>> picks
    [4, 0, 8, 0, 4]
    """

    def __init__(self) -> None:
        self._rings: list[OrderedDict[int, None]] = [
            OrderedDict() for _ in range(2 * (MAX_URGENCY + 1))
        ]
        """The open streams of each urgency and kind, from the head on."""
        self._ring_indices: dict[int, int] = {}
        """The index in `_rings` of each open stream: 2 * urgency, plus 1 if it is incremental."""
        self._active: dict[int, None] = {}
        """The streams with data, as an ordered set."""
        self._n_active = [0] * len(self._rings)
        """The number of active streams in each ring."""
        self._incremental_is_next = True
        """The state of the alternation."""
        self._cached_pick: int | None = None
        """The last pick, as long as nothing changes."""

    def open(self, stream_id: int, signal: Signal) -> None:
        """Open the stream, at the end of its ring."""
        priority = _eps(signal)
        ring = 2 * priority.urgency + priority.incremental
        self._ring_indices[stream_id] = ring
        self._rings[ring][stream_id] = None

    def update(self, stream_id: int, signal: Signal) -> None:
        """Move the stream to the end of its ring, even if the signal is the same."""
        is_active = stream_id in self._active
        self.close(stream_id)
        self.open(stream_id, signal)
        if is_active:
            self.activate(stream_id)

    def activate(self, stream_id: int) -> None:
        """Activate the stream."""
        if stream_id not in self._active:
            self._active[stream_id] = None
            self._n_active[self._ring_indices[stream_id]] += 1
            self._cached_pick = None

    def deactivate(self, stream_id: int) -> None:
        """Deactivate the stream, which keeps its position in the ring."""
        if stream_id in self._active:
            del self._active[stream_id]
            self._n_active[self._ring_indices[stream_id]] -= 1
            self._cached_pick = None

    def close(self, stream_id: int) -> None:
        """Forget the stream."""
        self.deactivate(stream_id)
        del self._rings[self._ring_indices.pop(stream_id)][stream_id]

    def pick(self) -> int | None:
        """Return the stream to send next among the most urgent."""
        if self._cached_pick is None and self._active:
            self._cached_pick = self._search()
        return self._cached_pick

    def charge(self, stream_id: int, n_bytes: int) -> None:
        """Charge a frame: move the head of the stream's ring, and flip the alternation."""
        index = self._ring_indices[stream_id]
        ring = self._rings[index]
        # Turning the ring costs as much as the search for this stream did, and unlike an index of
        # the head it survives the removal of streams.
        while (head := next(iter(ring))) != stream_id:
            ring.move_to_end(head)
        is_incremental = index % 2 == 1
        if is_incremental:
            ring.move_to_end(stream_id)
        self._incremental_is_next = not self._incremental_is_next
        self._cached_pick = None

    def _search(self) -> int:
        """Return the first active stream of the ring whose turn it is, of those most urgent."""
        counts = self._n_active
        urgency = next(u for u in range(MAX_URGENCY + 1) if counts[2 * u] or counts[2 * u + 1])
        index = 2 * urgency + self._incremental_is_next
        other_kind = 2 * urgency + (not self._incremental_is_next)
        ring = self._rings[index if counts[index] else other_kind]
        return next(stream_id for stream_id in ring if stream_id in self._active)


class ByteListEpsScheduler:
    """EPS as in nghttp2 (1.52 and 1.68, `nghttp2_session.c`): a list for each urgency, by bytes.

    Streams of an urgency are ordered by their cycle, then by stream ID. A frame adds its bytes to
    the cycle of an incremental stream, unless the stream is alone; other streams continue until
    they are done. A stream that joins, or changes priority, takes the cycle of the first; an
    incremental one adds the bytes of its last frame to it. A stream that runs out of data stays in
    the list until its turn comes, and keeps its position if it has data again by then.

    >>> scheduler = ByteListEpsScheduler()
    >>> for stream_id in (0, 4):
    ...     scheduler.open(stream_id, Eps(incremental=True))
    ...     scheduler.activate(stream_id)
    >>> picks = []
    >>> for n_bytes in (1000, 400, 400, 400):
    ...     picks.append(scheduler.pick())
    ...     scheduler.charge(picks[-1], n_bytes)
    >>> picks
    [0, 4, 4, 4]
    """

    def __init__(self) -> None:
        self._queues = [IndexedHeap() for _ in range(MAX_URGENCY + 1)]
        """The list of each urgency."""
        self._cycles: list[dict[int, int]] = [{} for _ in self._queues]
        """The cycle of each stream in the list of that urgency."""
        self._priorities: dict[int, Eps] = {}
        self._last_bytes: dict[int, int] = {}
        """The size of each stream's last frame."""
        self._active: dict[int, None] = {}
        """The streams with data, as an ordered set."""
        self._first: int | None = None
        """The stream to send next."""

    def open(self, stream_id: int, signal: Signal) -> None:
        """Open the stream."""
        self._priorities[stream_id] = _eps(signal)
        self._last_bytes[stream_id] = 0

    def update(self, stream_id: int, signal: Signal) -> None:
        """Move the stream to the list of its new priority; an unchanged one has no effect."""
        before, self._priorities[stream_id] = self._priorities[stream_id], _eps(signal)
        if before != self._priorities[stream_id] and self._leave(stream_id, before.urgency):
            self._join(stream_id)
            self._update_first()

    def activate(self, stream_id: int) -> None:
        """Activate the stream."""
        self._active[stream_id] = None
        if stream_id not in self._cycles[self._priorities[stream_id].urgency]:
            self._join(stream_id)
        self._update_first()

    def deactivate(self, stream_id: int) -> None:
        """Deactivate the stream, which leaves its list when its turn comes."""
        self._active.pop(stream_id, None)
        self._update_first()

    def close(self, stream_id: int) -> None:
        """Forget the stream."""
        self._active.pop(stream_id, None)
        self._leave(stream_id, self._priorities.pop(stream_id).urgency)
        del self._last_bytes[stream_id]
        self._update_first()

    def pick(self) -> int | None:
        """Return the stream to send next among the most urgent."""
        return self._first

    def charge(self, stream_id: int, n_bytes: int) -> None:
        """Charge a frame, which moves an incremental stream back by its bytes."""
        self._last_bytes[stream_id] = n_bytes
        priority = self._priorities[stream_id]
        cycles = self._cycles[priority.urgency]
        if priority.incremental and len(cycles) > 1:
            cycles[stream_id] += n_bytes
            self._queues[priority.urgency].put(stream_id, cycles[stream_id])
            self._update_first()

    def _join(self, stream_id: int) -> None:
        """Add the stream to the list of its urgency, at the cycle of the first."""
        priority = self._priorities[stream_id]
        cycles, streams = self._cycles[priority.urgency], self._queues[priority.urgency]
        first = streams.first
        cycle = 0 if first is None else cycles[first]
        if priority.incremental:
            cycle += self._last_bytes[stream_id]
        cycles[stream_id] = cycle
        streams.put(stream_id, cycle)

    def _leave(self, stream_id: int, urgency: int) -> bool:
        """Remove the stream from that list; return whether it was in it."""
        if stream_id not in self._cycles[urgency]:
            return False
        self._queues[urgency].drop(stream_id)
        del self._cycles[urgency][stream_id]
        return True

    def _update_first(self) -> None:
        """Find the first stream with data; those before it leave, since their turn has come."""
        for urgency, streams in enumerate(self._queues):
            while (first := streams.first) is not None:
                if first in self._active:
                    self._first = first
                    return
                self._leave(first, urgency)
        self._first = None


_LEVEL_CLASSES: dict[Mixed, type[NonIncrementalFirstLevel] | type[SharedRing]] = {
    Mixed.NON_INCREMENTAL_FIRST: NonIncrementalFirstLevel,
    Mixed.SHARED_LIST: SharedRing,
    Mixed.HALVES: SplitHalf,
    Mixed.HALVES_INCREMENTAL_FIRST: SplitHalfIncrementalFirst,
    Mixed.FIRST_TURN: H2oFirstSlice,
    Mixed.ALL_SHARE: RoundRobinAll,
}
"""The class of each urgency's streams that implements the order."""
_DEFAULT_PRIORITY = Eps()
"""The priority of streams without an `Eps` signal (RFC 9218 § 4)."""


def _eps(signal: Signal) -> Eps:
    """Return the priority in a signal; the default for signals of other types."""
    return signal if isinstance(signal, Eps) else _DEFAULT_PRIORITY
