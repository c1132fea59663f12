"""What a browser said when a page was recorded, in the words of a scheme's classes."""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING

from h3sim.page import Group, Kind, Level
from h3sim.schemes.kinds import SignalKind
from h3sim.schemes.parts import PriorityClass
from h3sim.signals import DEFAULT_URGENCY, MAX_URGENCY

if TYPE_CHECKING:
    from h3sim.page import RecordedPriority, Resource, Standing
    from h3sim.schemes.model import Scheme

__all__ = ["RecordedBy", "recorded_class"]


class RecordedBy(enum.Enum):
    """Whose recorded priorities a scheme plays."""

    ANY = "any"
    """Whatever the page has, the Priority field before levels before classes."""
    CHROME = "chrome"
    FIREFOX = "firefox"
    SAFARI = "safari"


_CLASS_OF_LEVEL = {
    Level.VERY_HIGH: "highest",
    Level.HIGH: "high",
    Level.MEDIUM: "normal",
    Level.LOW: "low",
    Level.VERY_LOW: "lowest",
}
"""What the schemes of Chrome call its levels."""
_URGENCY_OF_LEVEL = {level: urgency for urgency, level in enumerate(_CLASS_OF_LEVEL)}
_SEQUENTIAL = (Kind.STYLESHEET, Kind.SCRIPT, Kind.FONT)
"""Of what Chrome says that it is of use only as a whole; of all else it sets `i`."""
_URGENCY_OF_GROUP = {
    Group.URGENT_START: 1,
    Group.LEADERS: 2,
    Group.UNBLOCKED: 3,
    Group.FOLLOWERS: 4,
    Group.SPECULATIVE: 6,
    Group.BACKGROUND: 6,
}
"""Firefox's `nsHttpHandler::UrgencyFromCoSFlags`."""
_USUAL_WEIGHT = 22
_STEP_OF_WEIGHT = {42: -2, 32: -1, 22: 0, 12: 1, 2: 2}
"""How far a priority moves the urgency: its weight is 22 less the priority (-20 to 20)."""
_SHARING = (Kind.IMAGE, Kind.DOCUMENT)
_LEAST_URGENT = 6


def recorded_class(scheme: Scheme, resource: Resource, standing: Standing) -> PriorityClass | None:
    """Return the class that was recorded for *resource*, None where the page has nothing fit.

    What was said last counts, as far as it has been said by now.
    """
    said = [entry for entry in resource.recorded if entry.when is None]
    for entry in (*(standing.recorded or ()), *reversed(said)):
        is_theirs = entry.browser is not None and entry.browser.value == scheme.recorded.value  # type: ignore[union-attr]
        if scheme.recorded is RecordedBy.ANY or is_theirs:
            found = _class_of(scheme, entry, resource.kind)
            if found is not None:
                return found
    return None


def _class_of(scheme: Scheme, entry: RecordedPriority, kind: Kind) -> PriorityClass | None:
    match scheme.mechanism.signal_kind:
        case SignalKind.EPS:
            urgency, incremental = _parameters(entry, kind)
            name = f"recorded u={urgency}{', i' if incremental else ''}"
            return PriorityClass(name=name, urgency=urgency, incremental=incremental)
        case SignalKind.TREE:
            return _place_in_tree(scheme, entry)
        case _:
            return None


def _parameters(entry: RecordedPriority, kind: Kind) -> tuple[int, bool]:
    if entry.urgency is not None or entry.incremental is not None:
        urgency = DEFAULT_URGENCY if entry.urgency is None else entry.urgency
        return urgency, bool(entry.incremental)
    if entry.level is not None:
        return _URGENCY_OF_LEVEL[entry.level], kind not in _SEQUENTIAL
    assert entry.group is not None  # noqa: S101 - one of them is there, which is checked
    step = _STEP_OF_WEIGHT.get(entry.weight or _USUAL_WEIGHT, 0)
    urgency = min(max(_URGENCY_OF_GROUP[entry.group] + step, 0), _LEAST_URGENT, MAX_URGENCY)
    return urgency, kind in _SHARING


def _place_in_tree(scheme: Scheme, entry: RecordedPriority) -> PriorityClass | None:
    if entry.group is not None:
        name = entry.group.value
        if any(holder.name == name for holder in scheme.placeholders):
            weight = entry.weight or _USUAL_WEIGHT
            return PriorityClass(name=f"recorded {name} {weight}", group=name, weight=weight)
    if entry.level is not None:
        name = _CLASS_OF_LEVEL[entry.level]
        return next((found for found in scheme.classes if found.name == name), None)
    return None
