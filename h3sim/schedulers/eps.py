"""The extensible priority scheme: strict by urgency, sharing or not in each (RFC 9218 § 10)."""

from __future__ import annotations

import enum
from collections import OrderedDict
from typing import TYPE_CHECKING, Protocol

from h3sim.schedulers.ordered import OrderedStreams
from h3sim.schedulers.turns import Turn, TurnCounter
from h3sim.signals import MAX_URGENCY, Eps

if TYPE_CHECKING:
    from h3sim.signals import Signal

__all__ = ["EpsScheduler", "Mixed"]


class Mixed(enum.Enum):
    """What happens where incremental responses and others have one urgency.

    RFC 9218 § 10 leaves it to the server, and warns of both ends: a long response that is not
    incremental may keep short ones waiting, and one that is may never let the others pass.
    """

    NON_INCREMENTAL_FIRST = "non-incremental-first"
    """Non-incremental responses go before all incremental ones (quiche, mvfst, lsquic)."""
    SHARED_LIST = "shared-list"
    """All stand in one list, by round and then by stream id. A stream joins the round that is on;
    a turn puts an incremental one into the next round, others stay until they are done (nghttp3).
    """
    HALVES = "halves"
    """Both groups take turns of one size, and so get half each."""
    FIRST_TURN = "first-turn"
    """Non-incremental responses and the first turn of each incremental one go by stream id, the
    other turns of incremental ones after them (h2o)."""
    ALL_SHARE = "all-share"
    """All share; the incremental flag is ignored (google-quiche)."""


class EpsScheduler:
    """Sends what is most urgent; in one urgency non-incremental streams one at a time by their id.

    Incremental streams take turns, in the order in which they came to have data. *mixed* says what
    happens where both have one urgency. A signal of another type counts as the default, urgency 3
    and not incremental (RFC 9218 § 4). O(log n) in the streams of an urgency.

    >>> scheduler = EpsScheduler()
    >>> for stream_id, urgency in ((0, 3), (4, 1)):
    ...     scheduler.open(stream_id, Eps(urgency=urgency))
    ...     scheduler.activate(stream_id)
    >>> scheduler.pick()
    4
    """

    def __init__(self, *, mixed: Mixed = Mixed.NON_INCREMENTAL_FIRST, turn: Turn = Turn()) -> None:  # noqa: B008 - a frozen value
        self._levels = [_LEVELS[mixed](turn) for _ in range(MAX_URGENCY + 1)]
        self._wanted: dict[int, Eps] = {}
        self._active: dict[int, int] = {}
        """The urgency of each stream that takes part."""
        self._n_active = [0] * len(self._levels)
        self._most_urgent = len(self._levels)
        """The lowest urgency of these; one more than the last where there is none."""
        self._had_turn: dict[int, None] = {}
        self._keeps_first_turns = mixed is Mixed.FIRST_TURN

    def open(self, stream_id: int, signal: Signal) -> None:
        """Take up the stream."""
        self._wanted[stream_id] = _eps(signal)

    def update(self, stream_id: int, signal: Signal) -> None:
        """Move the stream behind others of its new urgency; one that stays keeps its turn."""
        before, self._wanted[stream_id] = self._wanted[stream_id], _eps(signal)
        if stream_id in self._active and self._wanted[stream_id] != before:
            self.deactivate(stream_id)
            self.activate(stream_id)

    def activate(self, stream_id: int) -> None:
        """Activate the stream."""
        if stream_id in self._active:
            return
        wanted = self._wanted[stream_id]
        urgency = self._active[stream_id] = wanted.urgency
        self._n_active[urgency] += 1
        self._most_urgent = min(self._most_urgent, urgency)
        self._levels[urgency].join(stream_id, wanted.incremental, stream_id not in self._had_turn)

    def deactivate(self, stream_id: int) -> None:
        """Take the stream out of the running; its turn is over."""
        urgency = self._active.pop(stream_id, None)
        if urgency is None:
            return
        self._levels[urgency].leave(stream_id)
        self._n_active[urgency] -= 1
        while self._most_urgent < len(self._levels) and not self._n_active[self._most_urgent]:
            self._most_urgent += 1

    def close(self, stream_id: int) -> None:
        """Forget the stream."""
        self.deactivate(stream_id)
        del self._wanted[stream_id]
        self._had_turn.pop(stream_id, None)

    def pick(self) -> int | None:
        """Return who sends next among the most urgent."""
        urgency = self._most_urgent
        return None if urgency == len(self._levels) else self._levels[urgency].first

    def charge(self, stream_id: int, n_bytes: int) -> None:
        """Count a packet of the stream's turn, and end the turn if it was the last."""
        self._levels[self._active[stream_id]].charge(stream_id, n_bytes)
        if self._keeps_first_turns:
            self._had_turn[stream_id] = None


class _Level(Protocol):
    """The active streams of one urgency."""

    @property
    def first(self) -> int | None:
        """Who sends next."""

    def join(self, stream_id: int, is_incremental: bool, is_new: bool) -> None:
        """Activate a stream; a new one has not had a turn yet."""

    def leave(self, stream_id: int) -> None:
        """Take a stream out, which ends its turn."""

    def charge(self, stream_id: int, n_bytes: int) -> bool:
        """Count a packet; return whether a turn is over with it."""


class _SequentialFirst:
    """One at a time by stream id, then the others by turns."""

    def __init__(self, turn: Turn) -> None:
        self._sequential = OrderedStreams()
        self._shared: OrderedDict[int, None] = OrderedDict()
        self._turns = TurnCounter(turn)

    @property
    def first(self) -> int | None:
        if self._sequential:
            return self._sequential.first
        return next(iter(self._shared), None)

    def join(self, stream_id: int, is_incremental: bool, is_new: bool) -> None:
        if is_incremental:
            self._shared[stream_id] = None
        else:
            self._sequential.put(stream_id, (stream_id, stream_id))

    def leave(self, stream_id: int) -> None:
        self._turns.drop(stream_id)
        self._sequential.drop(stream_id)
        self._shared.pop(stream_id, None)

    def charge(self, stream_id: int, n_bytes: int) -> bool:
        is_over = bool(self._turns.charge(stream_id, n_bytes))
        if is_over and stream_id in self._shared:
            self._shared.move_to_end(stream_id)
        return is_over


class _AllShare(_SequentialFirst):
    """All by turns."""

    def join(self, stream_id: int, is_incremental: bool, is_new: bool) -> None:
        self._shared[stream_id] = None


class _FirstTurn(_SequentialFirst):
    """The first turn of an incremental stream counts as one that is not."""

    def __init__(self, turn: Turn) -> None:
        super().__init__(turn)
        self._will_share: dict[int, None] = {}

    def join(self, stream_id: int, is_incremental: bool, is_new: bool) -> None:
        super().join(stream_id, is_incremental and not is_new, is_new)
        if is_incremental and is_new:
            self._will_share[stream_id] = None

    def leave(self, stream_id: int) -> None:
        super().leave(stream_id)
        self._will_share.pop(stream_id, None)

    def charge(self, stream_id: int, n_bytes: int) -> bool:
        is_over = super().charge(stream_id, n_bytes)
        if is_over and stream_id in self._will_share:
            del self._will_share[stream_id]
            self._sequential.drop(stream_id)
            self._shared[stream_id] = None
        return is_over


class _Halves(_SequentialFirst):
    """Turns alternate between the two groups; the one that is not incremental begins."""

    def __init__(self, turn: Turn) -> None:
        super().__init__(turn)
        self._shared_is_next = False

    @property
    def first(self) -> int | None:
        if self._shared_is_next and self._shared:
            return next(iter(self._shared))
        return super().first

    def leave(self, stream_id: int) -> None:
        if self._turns.has_begun(stream_id):
            self._shared_is_next = stream_id in self._sequential
        super().leave(stream_id)

    def charge(self, stream_id: int, n_bytes: int) -> bool:
        is_shared = stream_id in self._shared
        is_over = super().charge(stream_id, n_bytes)
        self._shared_is_next = is_over is not is_shared
        return is_over


class _SharedList:
    """One list by round, then by stream id (nghttp3's scheduling of 2026)."""

    def __init__(self, turn: Turn) -> None:
        self._streams = OrderedStreams()
        self._round: dict[int, int] = {}
        self._is_incremental: dict[int, bool] = {}
        self._turns = TurnCounter(turn)

    @property
    def first(self) -> int | None:
        return self._streams.first

    def join(self, stream_id: int, is_incremental: bool, is_new: bool) -> None:
        head = self._streams.first
        self._is_incremental[stream_id] = is_incremental
        self._put(stream_id, 0 if head is None else self._round[head])

    def leave(self, stream_id: int) -> None:
        self._turns.drop(stream_id)
        self._streams.drop(stream_id)
        del self._round[stream_id], self._is_incremental[stream_id]

    def charge(self, stream_id: int, n_bytes: int) -> bool:
        turns = self._turns.charge(stream_id, n_bytes)
        # One that is alone stays, so that the next one to join stands beside it, not before it.
        if turns and self._is_incremental[stream_id] and len(self._round) > 1:
            self._put(stream_id, self._round[stream_id] + turns)
        return turns > 0

    def _put(self, stream_id: int, number: int) -> None:
        self._round[stream_id] = number
        self._streams.put(stream_id, (number, stream_id))


_LEVELS: dict[Mixed, type[_SequentialFirst] | type[_SharedList]] = {
    Mixed.NON_INCREMENTAL_FIRST: _SequentialFirst,
    Mixed.SHARED_LIST: _SharedList,
    Mixed.HALVES: _Halves,
    Mixed.FIRST_TURN: _FirstTurn,
    Mixed.ALL_SHARE: _AllShare,
}
_DEFAULT = Eps()


def _eps(signal: Signal) -> Eps:
    return signal if isinstance(signal, Eps) else _DEFAULT
