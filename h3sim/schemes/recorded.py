"""What a browser said when a page was recorded, in the words of a scheme's classes."""

from __future__ import annotations

import enum
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from h3sim.page import Group, Kind, Level
from h3sim.schemes.kinds import SignalKind
from h3sim.schemes.parts import Placeholder, PriorityClass
from h3sim.signals import DEFAULT_URGENCY, DEFAULT_WEIGHT, MAX_URGENCY

if TYPE_CHECKING:
    from h3sim.page import Page, RecordedPriority, Resource, Standing
    from h3sim.schemes.model import Scheme

__all__ = ["RecordedBy", "RecordedPlace", "recorded_class", "with_recorded_groups"]


class RecordedBy(enum.Enum):
    """Whose recorded priorities a scheme plays."""

    ANY = "any"
    """Whatever the page has, the Priority field before levels before classes."""
    CHROME = "chrome"
    FIREFOX = "firefox"
    SAFARI = "safari"


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedPlace(PriorityClass):
    """What a PRIORITY frame of a recording said: whom a stream depends on, by its name."""

    depends_on: str
    exclusive: bool


def with_recorded_groups(scheme: Scheme, page: Page) -> Scheme:
    """Return *scheme* with the groups that were recorded, in place of its own of the same names."""
    if not page.recorded_groups:
        return scheme
    recorded = {
        group.name: Placeholder(
            name=group.name, weight=group.weight, parent=group.depends_on or None
        )
        for group in page.recorded_groups
    }
    others = (holder for holder in scheme.placeholders if holder.name not in recorded)
    return replace(scheme, placeholders=(*recorded.values(), *others))


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
    # What came later goes before what went with the request, and each from the last word back.
    for entry in (*(standing.recorded or ()), *reversed(said)):
        is_theirs = entry.browser is not None and entry.browser.value == scheme.recorded.value  # type: ignore[union-attr]
        if scheme.recorded is RecordedBy.ANY or is_theirs:
            found = _class_of(scheme, entry, resource.kind)
            if found is not None:
                return found
    return None


def _class_of(scheme: Scheme, entry: RecordedPriority, kind: Kind) -> PriorityClass | None:
    match scheme.mechanism.signal_kind:
        case SignalKind.EPS if entry.depends_on is None:
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
    if entry.depends_on is not None:
        return _place_of_frame(scheme, entry, entry.depends_on)
    if entry.group is not None:
        return _in_group(scheme, entry.group.value, entry.weight or _USUAL_WEIGHT)
    if entry.level is not None:
        name = _CLASS_OF_LEVEL[entry.level]
        return next((found for found in scheme.classes if found.name == name), None)
    return None


def _place_of_frame(scheme: Scheme, entry: RecordedPriority, parent: str) -> PriorityClass:
    """Return what a PRIORITY frame says; below a group, or the root, as a class has it."""
    weight = entry.weight or DEFAULT_WEIGHT
    found = None if entry.exclusive else _in_group(scheme, parent, weight)
    if found is not None:
        return found
    exclusive = bool(entry.exclusive)
    name = f"recorded below {parent!r} {weight}{' exclusively' * exclusive}"
    return RecordedPlace(name=name, weight=weight, depends_on=parent, exclusive=exclusive)


def _in_group(scheme: Scheme, name: str, weight: int) -> PriorityClass | None:
    """Return the class of what stands below a group; None if the scheme has none of that name."""
    if not name:
        return PriorityClass(name=f"recorded {weight}", weight=weight)
    if any(holder.name == name for holder in scheme.placeholders):
        return PriorityClass(name=f"recorded {name} {weight}", group=name, weight=weight)
    return None
