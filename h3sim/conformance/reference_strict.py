"""Swett's strict priorities, slow and plain: lists that are searched."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING

from h3sim.signals import StrictPriority

if TYPE_CHECKING:
    from h3sim.signals import Signal

__all__ = ["ReferenceStrict"]


@dataclass
class _Element:
    """A stream, or a placeholder (id below 0); its time is None while it has nothing to send."""

    id: int
    wanted: StrictPriority
    has_data: bool = False
    is_implied: bool = False
    time: Fraction | None = None


class ReferenceStrict:
    """Behaves as `h3sim.schedulers.StrictScheduler` says that it does."""

    def __init__(self, *, turn_bytes: int = 1400) -> None:
        self._turn_bytes = turn_bytes
        self._elements: list[_Element] = []
        self._last: dict[tuple[int | None, int], Fraction] = {}
        """The time of who was served last, by parent and strict priority."""

    def open(self, stream_id: int, signal: Signal) -> None:
        """Add an element to the list, or give the one that is implied its own place."""
        known = [element for element in self._elements if element.id == stream_id]
        if known:
            known[0].is_implied = False
            self.update(stream_id, signal)
            return
        wanted = self._resolved(signal)
        self._elements.append(_Element(stream_id, wanted))

    def update(self, stream_id: int, signal: Signal) -> None:
        """Begin the element anew in another position; a new weight alone counts from now on."""
        element, wanted = self._element(stream_id), self._resolved(signal)
        before, above = element.wanted, wanted.depends_on
        if above is not None and stream_id in self._ancestors(above):
            other = self._element(above)
            if other.wanted.depends_on != before.depends_on:
                other.wanted = replace(other.wanted, depends_on=before.depends_on)
                other.time = None
        element.wanted = wanted
        if (before.depends_on, before.strict) != (wanted.depends_on, wanted.strict):
            element.time = None
        self._refresh()

    def activate(self, stream_id: int) -> None:
        """Activate the stream."""
        self._element(stream_id).has_data = True
        self._refresh()

    def deactivate(self, stream_id: int) -> None:
        """Take the stream out of the running."""
        self._element(stream_id).has_data = False
        self._refresh()

    def close(self, stream_id: int) -> None:
        """Take the element off the list; what is below it moves up."""
        gone = self._element(stream_id)
        for element in self._children(stream_id):
            element.wanted = replace(element.wanted, depends_on=gone.wanted.depends_on)
            element.time = None
        self._elements.remove(gone)
        self._refresh()

    def pick(self) -> int | None:
        """Go down to the highest strict priority, and there to the least time."""
        parent: int | None = None
        while True:
            waiting = [one for one in self._children(parent) if self._wants(one)]
            if not waiting:
                return None
            first = min(waiting, key=self._turn)
            if first.id >= 0:
                return first.id
            parent = first.id

    def charge(self, stream_id: int, n_bytes: int) -> None:
        """Charge every element from the stream up; placeholders pay for a turn."""
        element = self._element(stream_id)
        while True:
            above, strict = element.wanted.depends_on, element.wanted.strict
            assert element.time is not None, "who is served has a time"  # noqa: S101
            self._last[above, strict] = element.time
            cost = self._turn_bytes if element.id < 0 else n_bytes
            element.time += Fraction(cost * 256, element.wanted.weight)
            if above is None:
                return
            element = self._element(above)

    @property
    def ids(self) -> list[int]:
        """The ids of all that is open."""
        return [element.id for element in self._elements if not element.is_implied]

    @property
    def sending(self) -> list[int]:
        """The ids of the streams that have data."""
        return [element.id for element in self._elements if element.has_data]

    def _resolved(self, signal: Signal) -> StrictPriority:
        wanted = signal if isinstance(signal, StrictPriority) else StrictPriority()
        above = wanted.depends_on
        if above is not None and above not in [element.id for element in self._elements]:
            self._elements.append(_Element(above, StrictPriority(), is_implied=True))
        return wanted

    def _element(self, element_id: int) -> _Element:
        return next(element for element in self._elements if element.id == element_id)

    def _children(self, element_id: int | None) -> list[_Element]:
        return [one for one in self._elements if one.wanted.depends_on == element_id]

    def _ancestors(self, element_id: int | None) -> list[int]:
        found = []
        while element_id is not None:
            found.append(element_id)
            element_id = self._element(element_id).wanted.depends_on
        return found

    def _wants(self, element: _Element) -> bool:
        return element.has_data or any(self._wants(one) for one in self._children(element.id))

    def _refresh(self) -> None:
        for element in self._elements:
            if not self._wants(element):
                element.time = None
            elif element.time is None:
                wanted = element.wanted
                last = self._last.get((wanted.depends_on, wanted.strict), Fraction(0))
                element.time = last + Fraction(self._turn_bytes * 256, wanted.weight)

    def _turn(self, element: _Element) -> tuple[int, Fraction, bool, int]:
        """Higher strict priority, earlier time, streams by id, placeholders as declared."""
        assert element.time is not None, "who wants to send has a time"  # noqa: S101
        return -element.wanted.strict, element.time, element.id < 0, abs(element.id)
