"""The critical path of a load and the dependency policies that explain it (WProf).

Wang et al. (WProf, NSDI 2013, table 1) distinguish four kinds of dependency between activities:
*flow*, one needs the result of the other; *output*, results must appear in a fixed order;
*binding*, early or late, one is scheduled relative to the other by choice; and *resource*, they
share a scarce resource.
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
    """One needs the result of the other: a tag is parsed, a script has arrived (F1 to F6)."""
    OUTPUT = "O"
    """Results must appear in order.

    The parser waits for a script (O1), a script for stylesheets (O2), and the parser for
    stylesheets where they block it (O3). The first paint waits for stylesheets too, and deferred
    scripts wait for the end of the document.
    """
    BINDING = "B"
    """The browser chooses the time.

    A resource in a stylesheet waits for a layout, a lazy one for a paint (B1, B2); the preload
    scanner requests before the parser does (B3).
    """
    RESOURCE = "R"
    """The main thread is busy (R3)."""


class Dependency(NamedTuple):
    """A dependency of the activity *after* on *before*: indices of the list of activities."""

    before: int
    after: int
    policy: DependencyPolicy
    is_last: bool
    """True if it ended last of all that *after* waited for, and so decided when *after* began."""


def dependencies(
    activities: Sequence[Activity], page: Page, *, stylesheets_block_parser: bool = False
) -> list[Dependency]:
    """Return the dependencies between activities, sorted by *after* and then by *before*.

    Each activity depends on the one that it waited for longest, as noted by the browser. In
    addition, a computation depends on its own download, and the load event on everything that ended
    before it. If *stylesheets_block_parser*, parsing after a stylesheet depends on it by O3,
    otherwise by R3.

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
    edges = []
    for index, done in enumerate(activities):
        waited = set() if done.after is None else {done.after}
        if done.work in (Work.STYLE, Work.EXECUTE) and done.resource in downloads:
            waited.add(downloads[done.resource])
        if done.work is Work.LOAD:
            began_ns = done.began_at_ns
            waited.update(n for n in range(index) if activities[n].ended_at_ns <= began_ns)
        for before in sorted(waited):
            policy = _policy_of(activities[before], done, page)
            is_parse_after_style = done.work is Work.PARSE and activities[before].work is Work.STYLE
            if stylesheets_block_parser and is_parse_after_style:
                policy = DependencyPolicy.OUTPUT
            edges.append(Dependency(before, index, policy, before == done.after))
    return edges


def slacks_ns(
    activities: Sequence[Activity], edges: Iterable[Dependency], page: Page
) -> list[int | None]:
    """Return how much later each activity could have ended without delaying the load event.

    This is an upper bound: there may be dependencies that *edges* lacks. None for an activity that
    the load event does not depend on. An edge is ignored if part of a download was enough to start
    the next activity. A delay that the page prescribes is not slack.
    """
    slacks: list[int | None] = [0 if done.work is Work.LOAD else None for done in activities]
    # From the last activity backwards: the slack of *after* is final before *before* needs it.
    for edge in sorted(edges, key=lambda edge: -edge.after):
        slack_after_ns = slacks[edge.after]
        if slack_after_ns is None:
            continue
        before, after = activities[edge.before], activities[edge.after]
        if before.ended_at_ns > after.began_at_ns:  # *after* began with a part of the download
            continue
        gap_ns = after.began_at_ns - before.ended_at_ns
        slack_ns = slack_after_ns + max(0, gap_ns - _prescribed_delay_ns(before, after, page))
        known_ns = slacks[edge.before]
        slacks[edge.before] = slack_ns if known_ns is None else min(known_ns, slack_ns)
    return slacks


def _prescribed_delay_ns(before: Activity, after: Activity, page: Page) -> int:
    """Return the delay that the page gives between the trigger *before* and a request."""
    if not after.work.is_of_network or after.resource is None:
        return 0
    discovery = page.resources[after.resource].discovered
    if discovery is None:
        return 0
    by = None if before.resource is None else page.resources[before.resource].id
    alternatives = discovery.alternatives
    fired = next((when for when in alternatives if by in when.parents), discovery)
    return fired.delay_ns


def _policy_of(before: Activity, after: Activity, page: Page) -> DependencyPolicy:
    """Return the WProf policy by which *after* waited for *before*."""
    resource = None if after.resource is None else page.resources[after.resource]
    if after.work.is_of_network and resource is not None:
        return _policy_of_download(before, resource, page)
    if after.work is Work.PARSE:
        return _policy_of_parser(before, page)
    if after.work is Work.STYLE:
        return (
            DependencyPolicy.FLOW
            if before.resource == after.resource
            else DependencyPolicy.RESOURCE
        )
    if after.work is Work.EXECUTE and resource is not None:
        # A module needs the modules that it imports.
        if before.resource in page.module_graphs.get(page.index[resource.id], ()):
            return DependencyPolicy.FLOW
        return _policy_of_script(before, after, resource)
    if after.work is Work.FIRST_PAINT and before.work is Work.STYLE:
        return DependencyPolicy.OUTPUT
    return DependencyPolicy.FLOW


def _policy_of_download(before: Activity, resource: Resource, page: Page) -> DependencyPolicy:
    """Return the policy by which a download waited."""
    if before.work.is_milestone:
        return DependencyPolicy.BINDING
    discovery = resource.discovered
    is_named_in = discovery is not None and any(
        when.at is TriggerEvent.OFFSET for when in discovery.alternatives
    )
    if before.work is Work.DOWNLOAD and before.resource in page.roots and is_named_in:
        return DependencyPolicy.BINDING  # the preload scanner found it before the parser did
    return DependencyPolicy.FLOW


def _policy_of_parser(before: Activity, page: Page) -> DependencyPolicy:
    """Return the policy by which the parser waited."""
    if before.work in (Work.DOWNLOAD, Work.PARSE) and before.resource in page.roots:
        return DependencyPolicy.FLOW
    script = None if before.resource is None else page.resources[before.resource]
    is_parser_blocking = (
        before.work is Work.EXECUTE
        and script is not None
        and not (script.is_async or script.is_deferred)
        and script.has_element
    )
    return DependencyPolicy.OUTPUT if is_parser_blocking else DependencyPolicy.RESOURCE


def _policy_of_script(before: Activity, after: Activity, script: Resource) -> DependencyPolicy:
    """Return the policy by which a script's execution waited."""
    if before.work is Work.DOWNLOAD and before.resource == after.resource:
        return DependencyPolicy.FLOW
    is_in_order = script.kind is Kind.SCRIPT and not script.is_async and script.has_element
    has_order = before.work in (Work.PARSE, Work.STYLE) or (
        before.work is Work.EXECUTE and script.is_deferred
    )
    return DependencyPolicy.OUTPUT if is_in_order and has_order else DependencyPolicy.RESOURCE


class PathStep(NamedTuple):
    """A step of the path: an activity, from its start until the next step could begin.

    Its time, including any gap since the previous step, is split into *network_ns* (time to first
    byte on an idle link; DNS lookup, handshake), *bandwidth_ns* (the rest of a download: its bytes,
    and those sent before them), *computation_ns*, and *blocking_ns* (waiting for a timer, or for
    the main thread). *activity* is its index in the list of activities.
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

    *latency_ns* holds the minimum time to first byte of each resource: the request, the server's
    response time, and the way back. The times of all steps add up to the time of the milestone,
    except for the time before the first step. Empty if the load has no such milestone.

    >>> from h3sim.trace import Activity
    >>> done = [Activity(Work.DOWNLOAD, 0, 0, 40, None), Activity(Work.LOAD, None, 40, 40, 0)]
    >>> step = critical_path(done, {0: 30})[0]
    >>> step.network_ns, step.bandwidth_ns
    (30, 10)
    """
    index = next((i for i, done in enumerate(activities) if done.work is to), None)
    steps: list[PathStep] = []  # from the last to the first
    next_began_ns = 0 if index is None else activities[index].began_at_ns
    while index is not None:
        done = activities[index]
        # The next step may have begun with a part of a download: the rest is not on the path.
        ended_at_ns = min(done.ended_at_ns, next_began_ns)
        previous_ended_ns = done.began_at_ns
        if done.after is not None:
            previous_ended_ns = min(done.began_at_ns, activities[done.after].ended_at_ns)
        blocking_ns = done.began_at_ns - previous_ended_ns
        steps.append(_make_step(index, done, ended_at_ns, blocking_ns, latency_ns))
        next_began_ns = done.began_at_ns
        index = done.after
    return steps[::-1]


def _make_step(
    index: int,
    done: Activity,
    ended_at_ns: int,
    blocking_ns: int,
    latency_ns: Mapping[int, int],
) -> PathStep:
    """Return the step of an activity, with its duration split by cause."""
    duration_ns = ended_at_ns - done.began_at_ns
    network_ns = bandwidth_ns = 0
    if done.work is Work.DOWNLOAD and done.resource is not None:
        network_ns = min(latency_ns.get(done.resource, 0), duration_ns)
        bandwidth_ns = duration_ns - network_ns
    elif done.work.is_of_network:
        network_ns = duration_ns
    return PathStep(
        work=done.work,
        resource=done.resource,
        began_at_ns=done.began_at_ns,
        ended_at_ns=ended_at_ns,
        network_ns=network_ns,
        bandwidth_ns=bandwidth_ns,
        computation_ns=duration_ns if done.work.is_computation else 0,
        blocking_ns=blocking_ns,
        activity=index,
    )
