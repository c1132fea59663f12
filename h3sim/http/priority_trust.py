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
"""What the type of a response tells a server that knows nothing of the page."""
_REST = Eps(urgency=3, incremental=True)
_BLOCKING = (Kind.DOCUMENT, Kind.STYLESHEET, Kind.FONT, Kind.SCRIPT)


class ClientPriorityValidator:
    """Believes a client until what it wants contradicts the types of two open responses.

    That is so when a document, stylesheet, font or script is to share with, or wait for, an
    image, media or what has no type that matters. From then on the server goes by types alone.

    >>> judge = ClientPriorityValidator()
    >>> judge.on_open(0, Kind.IMAGE, Eps())
    []
    >>> judge.on_open(4, Kind.STYLESHEET, Eps())
    [(0, Eps(urgency=3, incremental=True)), (4, Eps(urgency=0, incremental=False))]
    """

    def __init__(self) -> None:
        self._open: dict[int, tuple[Kind, int]] = {}
        self.overrules = False
        """True if it has seen bad advice on this connection."""

    def on_open(self, stream_id: int, kind: Kind, wanted: Signal) -> list[SignalChange]:
        """Take in a request; return what the server makes of it, and of those before."""
        return self._judged(stream_id, kind, wanted)

    def on_update(self, stream_id: int, wanted: Signal) -> list[SignalChange] | None:
        """Take in another word about an open stream; None where the client is believed."""
        if stream_id not in self._open:
            return None
        changes = self._judged(stream_id, self._open[stream_id][0], wanted)
        return changes if self.overrules else None

    def on_closed(self, stream_id: int) -> None:
        """Forget a stream."""
        self._open.pop(stream_id, None)

    def _judged(self, stream_id: int, kind: Kind, wanted: Signal) -> list[SignalChange]:
        if not isinstance(wanted, Eps):
            return []
        self._open[stream_id] = (kind, wanted.urgency)
        if self.overrules:
            return [(stream_id, _OWN.get(kind, _REST))]
        if not self._looks_bad(kind, wanted.urgency):
            return []
        self.overrules = True
        return [(known, _OWN.get(of, _REST)) for known, (of, _) in self._open.items()]

    def _looks_bad(self, kind: Kind, urgency: int) -> bool:
        """Return whether what is wanted of this and of an open stream goes against their types."""
        for other, its_urgency in self._open.values():
            if kind in _BLOCKING and other not in _OWN and urgency >= its_urgency:
                return True
            if kind not in _OWN and other in _BLOCKING and its_urgency >= urgency:
                return True
        return False
