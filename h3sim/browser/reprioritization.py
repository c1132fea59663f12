"""Changes of priority during a load: by layout, by scripts and by the user."""

from __future__ import annotations

from operator import itemgetter
from typing import TYPE_CHECKING, NamedTuple, Protocol

from h3sim.browser.base import ScheduledPriorityChange, ScheduledRequest, WrappingBrowser
from h3sim.page import Kind, Level, ResourceState, TriggerEvent

if TYPE_CHECKING:
    from collections.abc import Iterator

    from h3sim.browser.base import Browser, Scheduled
    from h3sim.page import Discovery, Page, Resource


_VISIBLE = ResourceState(visible=True)
"""The change that a layout makes to an image in the viewport."""


class ChangeTrigger(NamedTuple):
    """The trigger of a change, and the resource's state after it; None for a navigation root."""

    resource: int
    when: Discovery
    change: ResourceState | None

    def due(self, event_ns: int) -> Scheduled:
        """Return the change at its delay after the event."""
        at_ns = event_ns + self.when.delay_ns
        if self.change is None:
            return ScheduledRequest(at_ns, self.resource)
        return ScheduledPriorityChange(at_ns, self.resource, self.change)


class Parsing(Protocol):
    """The extra interface of a rendering browser."""

    executed: list[int]

    def has_laid_out(self, resource: int) -> bool:
        """Return whether the position of that resource in the layout is known."""


def changes_of(page: Page, *, plays_recorded: bool) -> list[ChangeTrigger]:
    """Return the changes of resources while *page* is loaded, in file order.

    Recorded changes count only if *plays_recorded*.
    """
    return [
        ChangeTrigger(index, when, change)
        for index, resource in enumerate(page.resources)
        if resource.priority_changes or (plays_recorded and resource.recorded)
        for when, change in _later(resource, plays_recorded=plays_recorded)
    ]


def opened_roots(page: Page) -> list[ChangeTrigger]:
    """Return the roots that a resource of another root opens, or redirects to."""
    roots = [(root, page.resources[root].discovered) for root in page.roots]
    return [
        ChangeTrigger(root, when, None)
        for root, when in roots
        if when is not None and when.at is not TriggerEvent.TIME
    ]


def may_change(
    page: Page, changes: list[ChangeTrigger], *, is_laid_out: bool, background_at_ns: int | None
) -> bool:
    """Return whether a load of *page* may have changes: most have none, and stay fast."""
    return (
        background_at_ns is not None
        or bool(changes)
        or (is_laid_out and any(map(_is_seen, page.resources)))
    )


class ReprioritizingBrowser(WrappingBrowser):
    """A browser with the changes of priority during a load of *page*.

    A change in the page file happens when its trigger fires. A rendering browser has a layout from
    the first paint on, and then knows which images are visible (Chromium's
    `ResourceFetcher::UpdateAllImageResourcePriorities`); for an image requested later, the change
    directly follows its request. At *background_at_ns* the tab moves to the background, with all
    its requests. If a page has several roots, each is computed separately, and this class makes the
    requests from one root for another, too.
    """

    def __init__(
        self,
        inner: Browser,
        page: Page,
        changes: list[ChangeTrigger],
        *,
        parsing: Parsing | None,
        background_at_ns: int | None,
    ) -> None:
        super().__init__(inner)
        self._page = page
        self._changes = changes
        self._background_at_ns = background_at_ns
        self._parsing = parsing
        self._triggers: dict[int, list[ChangeTrigger]] = {}
        """By the index of the parent: the resources that change, with trigger and new state."""
        for trigger in changes:
            when = trigger.when
            for by in when.waits_for:
                self._triggers.setdefault(page.index[by], []).append(trigger)
        self._offsets_ahead: dict[int, list[tuple[int, ChangeTrigger]]] = {}
        """The offsets of each requested resource that still change others, the nearest last."""
        self._to_show: dict[int, None] = {}
        """Requested images that become visible once their document is laid out."""
        self._n_executed = 0
        """The number of executed resources whose changes were returned."""

    def on_navigation(self, now_ns: int) -> list[Scheduled]:
        """Return the requests and changes since *now_ns* that depend on no resource."""
        due: list[Scheduled] = [
            trigger.due(max(0, now_ns - trigger.when.delay_ns))
            for trigger in self._changes
            if trigger.when.at is TriggerEvent.TIME
        ]
        if self._background_at_ns is not None:
            at_ns = max(now_ns, self._background_at_ns)
            due.append(ScheduledPriorityChange(at_ns, None, ResourceState(hidden=True)))
        # Changes first: what is known at the time of a request is signalled with it.
        return [*due, *self._inner.on_navigation(now_ns), *self._computed_changes(now_ns)]

    def on_requested(self, resource: int, now_ns: int) -> list[Scheduled]:
        """Return the requests and changes that follow from the request for *resource*."""
        triggers = self._triggers.get(resource, ())
        header_bytes = self._page.resources[resource].header_bytes
        # By offset alone, and stable: of equal offsets, popped off the end, the first in the file
        # fires first.
        ahead = [
            (header_bytes + (trigger.when.offset_bytes or 0), trigger)
            for trigger in reversed(triggers)
            if trigger.when.at is TriggerEvent.OFFSET
        ]
        ahead.sort(key=itemgetter(0), reverse=True)
        self._offsets_ahead[resource] = ahead
        due: list[Scheduled] = [*self._fired(resource, TriggerEvent.REQUEST, now_ns)]
        if self._parsing is not None and _is_seen(self._page.resources[resource]):
            if self._parsing.has_laid_out(resource):
                due.append(ScheduledPriorityChange(now_ns, resource, _VISIBLE))
            else:
                self._to_show[resource] = None
        return [*due, *self._inner.on_requested(resource, now_ns), *self._computed_changes(now_ns)]

    def next_offset(self, resource: int) -> int:
        """Return the contiguous bytes of *resource*'s stream at which to report it next."""
        offset = self._inner.next_offset(resource)
        ahead = self._offsets_ahead[resource]
        if not ahead:
            return offset
        nearest, _ = ahead[-1]
        return min(offset, nearest)

    def on_delivered(self, resource: int, contiguous_bytes: int, now_ns: int) -> list[Scheduled]:
        """Return the requests and changes that follow from that many delivered bytes."""
        due: list[Scheduled] = []
        ahead = self._offsets_ahead[resource]
        while ahead:
            offset_bytes, trigger = ahead[-1]
            if offset_bytes > contiguous_bytes:
                break
            ahead.pop()
            due.append(trigger.due(now_ns))
        described = self._page.resources[resource]
        if contiguous_bytes >= described.stream_bytes:
            due += self._fired(resource, TriggerEvent.COMPLETE, now_ns)
            # A replaying browser computes nothing, so the recording determines when it has run.
            if self._parsing is None:
                executed_at_ns = now_ns + described.parse_ns + described.execute_ns
                due += self._fired(resource, TriggerEvent.EXECUTED, executed_at_ns)
        followed = self._inner.on_delivered(resource, contiguous_bytes, now_ns)
        return [*due, *followed, *self._computed_changes(now_ns)]

    def on_wake(self, now_ns: int) -> list[Scheduled]:
        """Return the requests and changes that are due now."""
        return [*self._inner.on_wake(now_ns), *self._computed_changes(now_ns)]

    def _fired(self, parent: int, at: TriggerEvent, event_ns: int) -> Iterator[Scheduled]:
        """Yield the changes that an event of *parent* triggers."""
        for trigger in self._triggers.get(parent, ()):
            if trigger.when.at is at:
                yield trigger.due(event_ns)

    def _computed_changes(self, now_ns: int) -> Iterator[Scheduled]:
        """Yield the changes due to layouts and scripts of a rendering browser so far."""
        if self._parsing is None:
            return
        executed = self._parsing.executed
        for resource in executed[self._n_executed :]:
            yield from self._fired(resource, TriggerEvent.EXECUTED, now_ns)
        self._n_executed = len(executed)
        # A list of its own, as entries are removed from the dict meanwhile.
        for resource in [each for each in self._to_show if self._parsing.has_laid_out(each)]:
            del self._to_show[resource]
            yield ScheduledPriorityChange(now_ns, resource, _VISIBLE)


def _later(resource: Resource, *, plays_recorded: bool) -> list[tuple[Discovery, ResourceState]]:
    """Return the changes of a resource during its load, with their triggers."""
    changes = [
        (
            change.when,
            ResourceState(
                visible=change.visible, hidden=change.hidden, fetchpriority=change.fetchpriority
            ),
        )
        for change in resource.priority_changes
    ]
    recorded_entries = resource.recorded if plays_recorded else ()
    recorded = ((entry.when, ResourceState(recorded=(entry,))) for entry in recorded_entries)
    return changes + [(when, change) for when, change in recorded if when is not None]


def _is_seen(resource: Resource) -> bool:
    """Return whether a layout raises the priority of a resource: that of an image in the viewport.

    Chromium raises images that others cover, too. A recording has no visible part of them, but the
    later priority, unless the image was complete by then.
    """
    was_raised = any(
        each.when is not None and each.level is Level.HIGH for each in resource.recorded
    )
    is_in_viewport = resource.above_the_fold or bool(resource.viewport) or was_raised
    return resource.kind is Kind.IMAGE and is_in_viewport
