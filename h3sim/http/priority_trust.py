"""Validation of a client's priorities, and when to ignore them (Koshiba 2016)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from h3sim.page import Kind
from h3sim.signals import Eps

if TYPE_CHECKING:
    from h3sim.signals import Signal, SignalChange


_OWN = {
    Kind.DOCUMENT: Eps(urgency=0, incremental=True),
    Kind.STYLESHEET: Eps(urgency=0),
    Kind.FONT: Eps(urgency=1),
    Kind.SCRIPT: Eps(urgency=1),
    Kind.FETCH: Eps(urgency=2, incremental=True),
}
"""The priority of each type for a server without knowledge of the page."""
_REST = Eps(urgency=3, incremental=True)
_BLOCKING = (Kind.DOCUMENT, Kind.STYLESHEET, Kind.FONT, Kind.SCRIPT)


class ClientPriorityValidator:
    """A validator that trusts a client until its priorities contradict the types of two responses.

    They do if a document, stylesheet, font or script is to share with, or wait for, an image,
    media or a response of no important type. From then on the server uses types alone.

    >>> judge = ClientPriorityValidator()
    >>> judge.on_open(0, Kind.IMAGE, Eps())
    []
    >>> judge.on_open(4, Kind.STYLESHEET, Eps())
    [(0, Eps(urgency=3, incremental=True)), (4, Eps(urgency=0, incremental=False))]
    """

    def __init__(self) -> None:
        self._open: dict[int, tuple[Kind, int]] = {}
        self.overrules = False
        """True if it has seen implausible priorities on this connection."""

    def on_open(self, stream_id: int, kind: Kind, priority: Signal) -> list[SignalChange]:
        """Handle a request; return the server's priorities for it, and for those before."""
        return self._validate(stream_id, kind, priority)

    def on_update(self, stream_id: int, priority: Signal) -> list[SignalChange] | None:
        """Handle a new priority of an open stream; return None while the client is trusted."""
        if stream_id not in self._open:
            return None
        changes = self._validate(stream_id, self._open[stream_id][0], priority)
        return changes if self.overrules else None

    def on_closed(self, stream_id: int) -> None:
        """Forget a stream."""
        self._open.pop(stream_id, None)

    def _validate(self, stream_id: int, kind: Kind, priority: Signal) -> list[SignalChange]:
        if not isinstance(priority, Eps):
            return []
        self._open[stream_id] = (kind, priority.urgency)
        if self.overrules:
            return [(stream_id, _OWN.get(kind, _REST))]
        if not self._looks_bad(kind, priority.urgency):
            return []
        self.overrules = True
        return [(known, _OWN.get(of, _REST)) for known, (of, _) in self._open.items()]

    def _looks_bad(self, kind: Kind, urgency: int) -> bool:
        """Return whether the priorities of this and of an open stream contradict their types."""
        for other, its_urgency in self._open.values():
            if kind in _BLOCKING and other not in _OWN and urgency >= its_urgency:
                return True
            if kind not in _OWN and other in _BLOCKING and its_urgency >= urgency:
                return True
        return False
