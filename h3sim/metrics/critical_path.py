"""The critical path of a load and the blocking policies that explain it (WProf).

Wang et al. (WProf, NSDI 2013, table 1) tell four kinds of dependency between activities apart: the
*flow* of what needs the other's result, the *output* that must come in an order, *binding*, early
or late, of what could come at another time, and *resources* that are scarce.
"""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, NamedTuple

from h3sim.page import Kind, TriggerEvent
from h3sim.trace import Work

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from h3sim.page import Page, Resource
    from h3sim.trace import Activity


class DependencyPolicy(enum.Enum):
    """The kinds of dependency."""

    FLOW = "F"
    """The one needs what the other brings: a tag is parsed, a script has come (F1 to F6)."""
    OUTPUT = "O"
    """They must not be seen in another order: the parser waits for a script (O1), a script for
    stylesheets (O2), the parser for them where they stop it (O3), the first paint for them too,
    deferred scripts for the end of the document."""
    BINDING = "B"
    """It could be earlier or later: what a style names waits for a layout, what is lazy for a paint
    (B1, B2); the preload scanner asks before the parser comes (B3)."""
    RESOURCE = "R"
    """It waits for a turn: the main thread is busy (R3)."""


class Dependency(NamedTuple):
    """The activity *after* waited for *before* (indices); if *is_last*, for nothing longer."""

    before: int
    after: int
    policy: DependencyPolicy
    is_last: bool


def dependencies(
    activities: Sequence[Activity], page: Page, *, stylesheets_block_parser: bool = False
) -> list[Dependency]:
    """Return what waited for what, by *after* and then by *before*.

    Of each activity there is the one that it waited for longest, as the browser noted it. Besides,
    what is computed waits for its own download, and the load event for all that ended before it.
    Where *stylesheets_block_parser*, what is parsed behind a style waits for it by O3; else for
    its turn.

    >>> from h3sim.page import Kind, Page, Resource
    >>> from h3sim.trace import Activity
    >>> page = Page(name="p", resources=(Resource(id="/", kind=Kind.DOCUMENT, size_bytes=9),))
    >>> done = [Activity(Work.DOWNLOAD, 0, 0, 4, None), Activity(Work.PARSE, 0, 4, 9, 0)]
    >>> [(each.before, each.after, each.policy.value) for each in dependencies(done, page)]
    [(0, 1, 'F')]
    """
    downloads = {
        done.resource: index for index, done in enumerate(activities) if done.work is Work.DOWNLOAD
    }
    found = []
    for index, done in enumerate(activities):
        waited = set() if done.after is None else {done.after}
        if done.work in (Work.STYLE, Work.EXECUTE) and done.resource in downloads:
            waited.add(downloads[done.resource])
        if done.work is Work.LOAD:
            began_ns = done.began_at_ns
            waited.update(n for n in range(index) if activities[n].ended_at_ns <= began_ns)
        for before in sorted(waited):
            policy = _policy(activities[before], done, page)
            if stylesheets_block_parser and done.work is Work.PARSE:
                policy = (
                    DependencyPolicy.OUTPUT if activities[before].work is Work.STYLE else policy
                )
            found.append(Dependency(before, index, policy, before == done.after))
    return found


def slacks_ns(
    activities: Sequence[Activity], edges: Iterable[Dependency], page: Page
) -> list[int | None]:
    """Return how much later each activity could have ended, and the load event been no later.

    At most so much: it may have been waited for in ways that *edges* do not have. None where
    nothing that leads to the load event waited for it. Where a part of a download was enough, its
    end was not what was waited for. A delay that the page has is no slack.
    """
    found: list[int | None] = [0 if done.work is Work.LOAD else None for done in activities]
    # The latest first: an activity waits only for earlier ones, so its own slack is known by then.
    for edge in sorted(edges, key=lambda edge: -edge.after):
        later_ns = found[edge.after]
        if later_ns is None:
            continue
        before, after = activities[edge.before], activities[edge.after]
        if before.ended_at_ns > after.began_at_ns:
            continue
        gap_ns = after.began_at_ns - before.ended_at_ns
        may_ns = later_ns + max(0, gap_ns - _delay_ns(after, page))
        known_ns = found[edge.before]
        found[edge.before] = may_ns if known_ns is None else min(known_ns, may_ns)
    return found


def _delay_ns(after: Activity, page: Page) -> int:
    """Return how long a request is held back by what was recorded."""
    if not after.work.is_of_network or after.resource is None:
        return 0
    discovery = page.resources[after.resource].discovered
    return 0 if discovery is None else discovery.delay_ns


def _policy(before: Activity, after: Activity, page: Page) -> DependencyPolicy:
    resource = None if after.resource is None else page.resources[after.resource]
    if after.work.is_of_network and resource is not None:
        return _of_download(before, resource, page)
    if after.work is Work.PARSE:
        return _of_parser(before, page)
    if after.work is Work.STYLE:
        return (
            DependencyPolicy.FLOW
            if before.resource == after.resource
            else DependencyPolicy.RESOURCE
        )
    if after.work is Work.EXECUTE and resource is not None:
        return _of_script(before, after, resource)
    if after.work is Work.FIRST_PAINT and before.work is Work.STYLE:
        return DependencyPolicy.OUTPUT
    return DependencyPolicy.FLOW


def _of_download(before: Activity, resource: Resource, page: Page) -> DependencyPolicy:
    if before.work.is_milestone:
        return DependencyPolicy.BINDING
    discovery = resource.discovered
    is_named_in = discovery is not None and discovery.at is TriggerEvent.OFFSET
    if before.work is Work.DOWNLOAD and before.resource in page.roots and is_named_in:
        return DependencyPolicy.BINDING  # the scanner saw it; the parser comes later
    return DependencyPolicy.FLOW


def _of_parser(before: Activity, page: Page) -> DependencyPolicy:
    if before.work in (Work.DOWNLOAD, Work.PARSE) and before.resource in page.roots:
        return DependencyPolicy.FLOW
    script = None if before.resource is None else page.resources[before.resource]
    is_waited_for = (
        before.work is Work.EXECUTE
        and script is not None
        and not (script.is_async or script.is_defer or script.preload)
    )
    return DependencyPolicy.OUTPUT if is_waited_for else DependencyPolicy.RESOURCE


def _of_script(before: Activity, after: Activity, script: Resource) -> DependencyPolicy:
    if before.work is Work.DOWNLOAD and before.resource == after.resource:
        return DependencyPolicy.FLOW
    is_in_order = script.kind is Kind.SCRIPT and not (script.is_async or script.preload)
    has_order = before.work in (Work.PARSE, Work.STYLE) or (
        before.work is Work.EXECUTE and script.is_defer
    )
    return DependencyPolicy.OUTPUT if is_in_order and has_order else DependencyPolicy.RESOURCE


class PathStep(NamedTuple):
    """A step of the path: an activity from when it began until the next step could begin.

    Its time, with what went by since the step before, is *network_ns* (what its first byte would
    have taken on an empty link; a lookup, a handshake), *bandwidth_ns* (the rest of a download: its
    bytes, and those that went before them), *computation_ns* or *blocking_ns*: it waited for a
    timer, or for its turn. *activity* is its index among the activities.
    """

    work: Work
    resource: int | None
    began_at_ns: int
    ended_at_ns: int
    network_ns: int
    bandwidth_ns: int
    computation_ns: int
    blocking_ns: int
    activity: int


def critical_path(
    activities: Sequence[Activity], latency_ns: Mapping[int, int], *, to: Work = Work.LOAD
) -> list[PathStep]:
    """Return the steps that lead to the milestone *to*, first to last.

    *latency_ns* tells of each resource how long its first byte takes at least: the request, the
    server's thinking, and the way back. The times of all steps add up to the time of the milestone,
    but for what went by before the first of them. Empty where there is no such milestone.

    >>> from h3sim.trace import Activity
    >>> done = [Activity(Work.DOWNLOAD, 0, 0, 40, None), Activity(Work.LOAD, None, 40, 40, 0)]
    >>> step = critical_path(done, {0: 30})[0]
    >>> step.network_ns, step.bandwidth_ns
    (30, 10)
    """
    index = next((i for i, done in enumerate(activities) if done.work is to), None)
    steps: list[PathStep] = []
    used_to_ns = 0 if index is None else activities[index].began_at_ns
    while index is not None:
        done = activities[index]
        # A download may have been enough before its end: only the part that was waited for counts.
        ended_at_ns = min(done.ended_at_ns, used_to_ns)
        before_ns = done.began_at_ns
        if done.after is not None:
            before_ns = min(done.began_at_ns, activities[done.after].ended_at_ns)
        blocking_ns = done.began_at_ns - before_ns
        steps.append(_step(index, done, ended_at_ns, blocking_ns, latency_ns))
        used_to_ns = done.began_at_ns
        index = done.after
    return steps[::-1]


def _step(
    index: int,
    done: Activity,
    ended_at_ns: int,
    blocking_ns: int,
    latency_ns: Mapping[int, int],
) -> PathStep:
    took_ns = ended_at_ns - done.began_at_ns
    network_ns = bandwidth_ns = 0
    if done.work is Work.DOWNLOAD and done.resource is not None:
        network_ns = min(latency_ns.get(done.resource, 0), took_ns)
        bandwidth_ns = took_ns - network_ns
    elif done.work.is_of_network:
        network_ns = took_ns
    return PathStep(
        work=done.work,
        resource=done.resource,
        began_at_ns=done.began_at_ns,
        ended_at_ns=ended_at_ns,
        network_ns=network_ns,
        bandwidth_ns=bandwidth_ns,
        computation_ns=took_ns if done.work.is_computation else 0,
        blocking_ns=blocking_ns,
        activity=index,
    )
