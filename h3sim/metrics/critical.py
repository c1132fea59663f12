"""The critical path: the chain of activities of which each waited for the one before (WProf)."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from h3sim.trace import Work

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from h3sim.trace import Activity

__all__ = ["PathStep", "critical_path"]


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
