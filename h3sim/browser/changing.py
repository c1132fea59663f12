"""Changes of priority while a page loads: what layout, scripts and the user make known later."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from h3sim.browser.base import ScheduledChange
from h3sim.page import At, Kind, Standing

if TYPE_CHECKING:
    from collections.abc import Iterator

    from h3sim.browser.base import Browser, Scheduled
    from h3sim.browser.parse import ParseBrowser
    from h3sim.page import Discovery, Page, Resource
    from h3sim.trace import Activity

__all__ = ["ChangingBrowser", "changes_of", "may_change"]

_AT_LAYOUT = Standing(visible=True)


class _Trigger(NamedTuple):
    """What fires, and how that resource changes then."""

    resource: int
    when: Discovery
    change: Standing


def changes_of(page: Page, *, plays_recorded: bool) -> list[_Trigger]:
    """Return what changes of resources while *page* is loaded, in file order.

    What was recorded counts only if somebody *plays* it.
    """
    return [
        _Trigger(index, when, change)
        for index, resource in enumerate(page.resources)
        if resource.priority_changes or (plays_recorded and resource.recorded)
        for when, change in _later(resource, plays_recorded=plays_recorded)
    ]


def may_change(
    page: Page, changes: list[_Trigger], *, is_laid_out: bool, background_at_ns: int | None
) -> bool:
    """Return whether anything can change in a load of *page*: most have nothing, and stay quick."""
    return (
        background_at_ns is not None
        or bool(changes)
        or (is_laid_out and any(map(_is_seen, page.resources)))
    )


class ChangingBrowser:
    """A browser, and the changes of priority that come while it loads *page*.

    A change that the page file has comes when its trigger fires. A browser that parses lays the
    page out at the first paint: from then on it knows which images are seen (Chromium's
    `ResourceFetcher::UpdateAllImageResourcePriorities`), of one asked for later right after its
    request. At *background_at_ns* the tab goes to the background, with all its requests.
    """

    def __init__(
        self,
        inner: Browser,
        page: Page,
        changes: list[_Trigger],
        *,
        background_at_ns: int | None,
    ) -> None:
        self._inner = inner
        self._page = page
        self._changes = changes
        self._background_at_ns = background_at_ns
        from h3sim.browser.parse import ParseBrowser  # on use: a replay has none

        self._parsing: ParseBrowser | None = inner if isinstance(inner, ParseBrowser) else None
        self._triggers: dict[int, list[_Trigger]] = {}
        """By the index of the parent: the resource that changes, when, and how."""
        for trigger in changes:
            when = trigger.when
            if when.by is not None and when.at is not At.TIME:
                self._triggers.setdefault(page.index[when.by], []).append(trigger)
        self._watched: dict[int, list[tuple[int, _Trigger]]] = {}
        self._complete: set[int] = set()
        self._asked: dict[int, None] = {}
        self._n_executed = 0
        self._is_laid_out = False

    @property
    def is_done(self) -> bool:
        """Whether the load is over, whatever might still have changed."""
        return self._inner.is_done

    @property
    def waiting(self) -> list[str]:
        """The ids of the resources that have not been delivered."""
        return self._inner.waiting

    @property
    def activities(self) -> tuple[Activity, ...]:
        """What the browser did."""
        return self._inner.activities

    def on_navigation(self, now_ns: int) -> list[Scheduled]:
        """Return what happens since *now_ns* whatever comes of the load."""
        due: list[Scheduled] = []
        for index, when, change in self._changes:
            if when.at is At.TIME:
                due.append(ScheduledChange(max(now_ns, when.delay_ns), index, change))
        if self._background_at_ns is not None:
            at_ns = max(now_ns, self._background_at_ns)
            due.append(ScheduledChange(at_ns, None, Standing(hidden=True)))
        # Changes first: what is known at the instant of a request is said with it.
        return [*due, *self._inner.on_navigation(now_ns), *self._after(now_ns)]

    def on_requested(self, resource: int, now_ns: int) -> list[Scheduled]:
        """Return what follows from *resource* being requested."""
        triggers = self._triggers.get(resource, ())
        header_bytes = self._page.resources[resource].header_bytes
        # The nearest stands last, to be taken off the end; equal offsets fire in file order.
        self._watched[resource] = sorted(
            (
                (header_bytes + (trigger.when.offset_bytes or 0), trigger)
                for trigger in reversed(triggers)
                if trigger.when.at is At.OFFSET
            ),
            key=lambda entry: -entry[0],
        )
        due: list[Scheduled] = [*self._fired(resource, At.REQUEST, now_ns)]
        self._asked[resource] = None
        if self._is_laid_out and _is_seen(self._page.resources[resource]):
            due.append(ScheduledChange(now_ns, resource, _AT_LAYOUT))
        return [*due, *self._inner.on_requested(resource, now_ns), *self._after(now_ns)]

    def next_offset(self, resource: int) -> int:
        """Return how many contiguous bytes of *resource*'s stream it next wants to hear of."""
        offset = self._inner.next_offset(resource)
        watched = self._watched[resource]
        return min(offset, watched[-1][0]) if watched else offset

    def on_delivered(self, resource: int, contiguous_bytes: int, now_ns: int) -> list[Scheduled]:
        """Return what follows from so many bytes of the stream having been delivered."""
        due: list[Scheduled] = []
        watched = self._watched[resource]
        while watched and watched[-1][0] <= contiguous_bytes:
            _, (index, when, change) = watched.pop()
            due.append(ScheduledChange(now_ns + when.delay_ns, index, change))
        described = self._page.resources[resource]
        if contiguous_bytes >= described.stream_bytes and resource not in self._complete:
            self._complete.add(resource)
            due += self._fired(resource, At.COMPLETE, now_ns)
            if self._parsing is None:
                executed_at_ns = now_ns + described.parse_ns + described.execute_ns
                due += self._fired(resource, At.EXECUTED, executed_at_ns)
        followed = self._inner.on_delivered(resource, contiguous_bytes, now_ns)
        return [*due, *followed, *self._after(now_ns)]

    def on_wake(self, now_ns: int) -> list[Scheduled]:
        """Return what follows from time having passed."""
        return [*self._inner.on_wake(now_ns), *self._after(now_ns)]

    def _fired(self, parent: int, at: At, event_ns: int) -> Iterator[ScheduledChange]:
        for index, when, change in self._triggers.get(parent, ()):
            if when.at is at:
                yield ScheduledChange(event_ns + when.delay_ns, index, change)

    def _after(self, now_ns: int) -> Iterator[ScheduledChange]:
        """Yield what follows from what a browser that parses has done by now."""
        if self._parsing is None:
            return
        executed = self._parsing.executed
        for resource in executed[self._n_executed :]:
            yield from self._fired(resource, At.EXECUTED, now_ns)
        self._n_executed = len(executed)
        if self._parsing.is_laid_out and not self._is_laid_out:
            self._is_laid_out = True
            for resource in self._asked:
                if _is_seen(self._page.resources[resource]):
                    yield ScheduledChange(now_ns, resource, _AT_LAYOUT)


def _later(resource: Resource, *, plays_recorded: bool) -> list[tuple[Discovery, Standing]]:
    """Return what changes of a resource while it loads, and when."""
    changes = [
        (change.when, Standing(visible=change.visible, fetchpriority=change.fetchpriority))
        for change in resource.priority_changes
    ]
    said = resource.recorded if plays_recorded else ()
    recorded = ((entry.when, Standing(recorded=(entry,))) for entry in said)
    return changes + [(when, change) for when, change in recorded if when is not None]


def _is_seen(resource: Resource) -> bool:
    return resource.kind is Kind.IMAGE and (resource.above_the_fold or bool(resource.viewport))
