"""The streams of which bytes were lost, and which of them has its bytes sent again first."""

from __future__ import annotations

from typing import TYPE_CHECKING

from h3sim.schedulers import Retransmit

if TYPE_CHECKING:
    from h3sim.schedulers import Scheduler

__all__ = ["LostStreams"]


class LostStreams:
    """Those streams by when they first lost bytes; *scheduler* orders them for `PRIORITY`.

    >>> lost = LostStreams(Retransmit.FIRST)
    >>> lost.add(4); lost.add(0); lost.pick()
    4
    >>> lost.remove(4); lost.pick()
    0
    """

    __slots__ = ("_retransmit", "_scheduler", "ids")

    def __init__(self, retransmit: Retransmit, scheduler: Scheduler | None = None) -> None:
        self._retransmit = retransmit
        self._scheduler = scheduler
        self.ids: dict[int, None] = {}
        """Their ids; asked for with each packet whether there are any, so open to be read."""

    def add(self, stream_id: int) -> None:
        """Take up a stream of which bytes were lost; it may be there already."""
        # A dict keeps the first time: `FIRST` goes by when each first lost bytes.
        self.ids.setdefault(stream_id)
        if self._scheduler is not None:
            self._scheduler.activate(stream_id)

    def remove(self, stream_id: int) -> None:
        """Forget a stream of which nothing is left to be sent again."""
        del self.ids[stream_id]
        if self._scheduler is not None:
            self._scheduler.deactivate(stream_id)

    def charge(self, turns: Scheduler, stream_id: int, n_bytes: int) -> None:
        """Charge bytes sent again to who chose their stream, *turns* or the scheduler here."""
        if self._retransmit is Retransmit.TURN:
            turns.charge(stream_id, n_bytes)
        elif self._scheduler is not None:
            self._scheduler.charge(stream_id, n_bytes)

    def pick(self) -> int | None:
        """Return the stream whose lost bytes go before all else; None: no such, or in its turn."""
        if self._retransmit is Retransmit.FIRST:
            return next(iter(self.ids), None)
        return None if self._scheduler is None else self._scheduler.pick()
