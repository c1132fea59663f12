"""Dependency graphs of the WProf family: Epload's and WProfX's."""

from __future__ import annotations

import math
from collections import defaultdict, deque
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from h3sim.importers.recorded_request import (
    RecordedRequest,
    RequestOutcome,
    SizeSource,
    Trigger,
    first_size,
)
from h3sim.importers.request_fields import kind_of_mime, kind_of_word, plain_mime
from h3sim.importers.source import Fields, JsonPart
from h3sim.page import TriggerEvent

if TYPE_CHECKING:
    from collections.abc import Iterable

    from h3sim.importers.recorded_request import Recording


_AT_ACTIVITY_END = -1.0
"""Epload's time of a dependency on the end of an activity."""
_STARTS_ON_FIRST_BYTES = 1
"""Epload's `when_comp_start` of objects that are parsed as they arrive."""
_SIZE_KEYS = ("len", "length", "size", "bytes")
_UNKNOWN_HOST = "unknown.invalid"


class _Activity(NamedTuple):
    """Download of an object of a graph, or one of its computations."""

    object_index: int
    computation: int | None
    """Index among the computations of the object; None for the download."""


class _EploadObject(NamedTuple):
    """Object of Epload's graph."""

    request: RecordedRequest
    computations_ms: tuple[float, ...]
    """Durations of its computations, in order."""
    starts_early: bool
    """True if the computations begin with the first bytes, not with the last."""


class EploadGraph:
    """Reader of a graph {objs, deps}, in which each object's computations run in order.

    By a dependency, a download begins *time* ms after an activity began, or at its end (-1).
    """

    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        self._objects: list[_EploadObject] = []
        self._activities: dict[str, _Activity] = {}
        self._deps: list[Fields] = []

    def add(self, part: JsonPart) -> None:
        """Process an object or a dependency."""
        if part.item is None or part.path not in (("objs",), ("deps",)):
            return
        entry = Fields.of(part, self._recording.note)
        if entry is None:
            return
        if part.path == ("deps",):
            self._deps.append(entry)
        elif self._recording.has_room(len(self._objects)):
            self._add_object(entry)

    def finish(self) -> None:
        """Set the trigger of each object, and add the objects as requests, parents first."""
        recording, objects = self._recording, self._objects
        # By the index of the object, the activity on which it depends, and the time of that.
        chosen: dict[int, tuple[_Activity, float]] = {}
        n_replaced = 0
        for dep in self._deps:
            target = self._activities.get(dep.name("a2"))
            source = self._activities.get(dep.name("a1"))
            if target is None or source is None:
                dep.wrong("a1" if source is None else "a2", "skipped: names no activity")
            elif target.computation is None and source.object_index != target.object_index:
                time_ms = dep.number("time")
                n_replaced += target.object_index in chosen
                chosen[target.object_index] = (
                    source,
                    _AT_ACTIVITY_END if time_ms is None else time_ms,
                )
        recording.inferred["parents where several are given, the last one taken"] += n_replaced
        for index, (source, time_ms) in chosen.items():
            trigger = _trigger(objects[source.object_index], source, time_ms)
            objects[index].request.trigger = trigger
        self._add_parents_first(chosen)
        recording.missing.append("when things happened in the recording")

    def _add_object(self, entry: Fields) -> None:
        url = _url(entry)
        if not url:
            entry.wrong("path", "skipped: neither path nor url")
            return
        index = len(self._objects)
        download = entry.table("download")
        request = RecordedRequest(key=entry.key, url=url)
        n_bytes = download.size(*_SIZE_KEYS)
        n_bytes = entry.size(*_SIZE_KEYS) if n_bytes is None else n_bytes
        request.body_bytes, request.body_from = first_size((n_bytes, SizeSource.RECORDED))
        word = download.text("type")
        request.mime = plain_mime(word)
        request.kind = kind_of_mime(request.mime) or kind_of_word(word)
        computations_ms: list[float] = []
        for computation in entry.tables("comps"):
            name = computation.name("id")
            if name:
                self._activities.setdefault(name, _Activity(index, len(computations_ms)))
            computations_ms.append(_computation_ms(computation))
        request.execute_ms = math.fsum(computations_ms)
        starts_early = entry.number("when_comp_start") == _STARTS_ON_FIRST_BYTES
        self._objects.append(_EploadObject(request, tuple(computations_ms), starts_early))
        for name in (download.name("id"), entry.name("id")):
            if name:
                self._activities.setdefault(name, _Activity(index, None))

    def _add_parents_first(self, chosen: dict[int, tuple[_Activity, float]]) -> None:
        """Add the requests to the recording, parents first; cut each cycle at its first object."""
        objects, recording = self._objects, self._recording
        children: dict[int, list[int]] = defaultdict(list)
        for index, (source, _) in chosen.items():
            children[source.object_index].append(index)
        order: list[int] = []
        is_ordered = [False] * len(objects)
        roots = [index for index in range(len(objects)) if index not in chosen]
        # After the roots, only objects in a cycle, or with an ancestor in one, are left.
        for root in (*roots, *range(len(objects))):
            if not is_ordered[root] and root in chosen:
                objects[root].request.trigger = None
                recording.inferred["circles of parents, cut"] += 1
            waiting = deque([] if is_ordered[root] else [root])
            while waiting:
                index = waiting.popleft()
                if not is_ordered[index]:
                    is_ordered[index] = True
                    order.append(index)
                    waiting += children[index]
        new_index = {index: number for number, index in enumerate(order)}
        for index in order:
            request = objects[index].request
            if request.trigger is not None:
                request.trigger = replace(request.trigger, by=new_index[request.trigger.by])
            recording.requests.append(request)


def _url(entry: Fields) -> str:
    """Return the absolute URL of an object; a path without host gets an unknown one."""
    url = entry.text("url")
    if "://" in url:
        return url
    path = entry.text("path") or url
    if "://" in path or not path:
        return path
    return f"http://{entry.text('host') or _UNKNOWN_HOST}/{path.lstrip('/')}"


def _computation_ms(computation: Fields) -> float:
    time_ms = computation.duration("time")
    return _duration_ms(computation, "s_time", "e_time") if time_ms is None else time_ms


def _duration_ms(activity: Fields, *names: str) -> float:
    """Return the duration of an activity from two keys, of start and end; 0 if it is unknown."""
    start_ms, end_ms = (activity.number(name) for name in names)
    return 0.0 if start_ms is None or end_ms is None else max(0.0, end_ms - start_ms)


def _trigger(parent: _EploadObject, source: _Activity, time_ms: float) -> Trigger:
    """Return the trigger that is *time_ms* after the start of *source*, an activity of *parent*."""
    by = source.object_index
    if source.computation is None:
        if time_ms < 0:
            return Trigger(at=TriggerEvent.COMPLETE, by=by)
        return Trigger(at=TriggerEvent.REQUEST, by=by, delay_ms=time_ms)
    before_ms = math.fsum(parent.computations_ms[: source.computation])
    delay_ms = before_ms + (parent.computations_ms[source.computation] if time_ms < 0 else time_ms)
    if parent.starts_early and time_ms >= 0:
        return Trigger(at=TriggerEvent.OFFSET, by=by, offset_bytes=0, delay_ms=delay_ms)
    if delay_ms >= parent.request.execute_ms:
        delay_ms -= parent.request.execute_ms
        return Trigger(at=TriggerEvent.EXECUTED, by=by, delay_ms=delay_ms)
    return Trigger(at=TriggerEvent.COMPLETE, by=by, delay_ms=delay_ms)


_MAX_ACTIVITIES = 1_000_000
"""Most activities and dependencies that are read, to bound memory."""


class WprofxGraph:
    """Reader of the entries of a WProfX graph: one for each URL, then the dependencies (`Deps`)."""

    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        self._request_of_download: dict[str, int] = {}
        self._url_of_activity: dict[str, str] = {}
        self._execution_ms_by_url: dict[str, float] = defaultdict(float)
        self._deps: list[Fields] = []
        self._critical_activities: list[str] = []
        self._n_activities = 0

    def add(self, part: JsonPart) -> None:
        """Process an entry."""
        entry = Fields.of(part, self._recording.note)
        if entry is None:
            return
        self._critical_activities += entry.texts("criticalPath")
        name = entry.text("id")
        parts = entry.tables("objs")
        if self._n_activities + len(parts) > _MAX_ACTIVITIES:
            message = f"has more than {_MAX_ACTIVITIES:,} activities: the rest is not read"
            self._recording.note("", message)
            return
        self._n_activities += len(parts)
        if name == "Deps":
            self._deps += parts
        elif "://" in name:
            for activity in parts:
                self._add_activity(name, activity)

    def _add_activity(self, url: str, activity: Fields) -> None:
        if not self._recording.has_room():
            return
        name = activity.text("activityId")
        self._url_of_activity.setdefault(name, url)
        if name.startswith("Scripting"):
            self._execution_ms_by_url[url] += _duration_ms(activity, "startTime", "endTime")
        elif name.startswith("Networking"):
            self._request_of_download.setdefault(name, len(self._recording.requests))
            self._add_request(url, activity)

    def _add_request(self, url: str, activity: Fields) -> None:
        request = RecordedRequest(key=activity.key, url=url)
        request.start_ms = activity.number("startTime")
        request.end_ms = activity.number("endTime")
        request.first_byte_ms = activity.number("responseReceivedTime")
        size = activity.size("transferSize"), SizeSource.TOTAL
        request.body_bytes, request.body_from = first_size(size)
        request.mime = activity.text("mimeType")
        request.status = activity.integer("statusCode")
        if request.status is not None and request.status <= 0:
            request.outcome = RequestOutcome.FAILED
        script = activity.text("fromScript")
        request.initiator = script if "://" in script and script != url else ""
        self._recording.requests.append(request)

    def finish(self) -> None:
        """Set the initiators and execution times, which entries have apart from the requests."""
        requests = self._recording.requests
        latest_ms: dict[int, float] = {}
        latest_source: dict[int, str] = {}
        for source, index in self._dependencies():
            start_ms = self._start_ms(source)
            # Of several computations, which all count as latest, the last one listed is kept.
            if start_ms >= latest_ms.get(index, start_ms):
                latest_ms[index], latest_source[index] = start_ms, source
        for index, request in enumerate(requests):
            if not request.initiator and index in latest_source:
                request.initiator = self._url_of_activity[latest_source[index]]
            # The time of a URL's script is recorded once, so only its first request gets it.
            request.execute_ms = self._execution_ms_by_url.pop(request.url, 0.0)
        critical = {
            self._url_of_activity[name]
            for name in self._critical_activities
            if name in self._url_of_activity
        }
        for request in requests:
            request.is_critical = request.url in critical
        self._recording.missing.append("header sizes apart from bodies")

    def _dependencies(self) -> Iterable[tuple[str, int]]:
        """Yield each activity on which a request for another URL depends, and the index of that."""
        for dep in self._deps:
            source, target = dep.text("a1"), dep.text("a2")
            if target not in self._url_of_activity or source not in self._url_of_activity:
                dep.wrong(
                    "a1" if source not in self._url_of_activity else "a2", "names no activity"
                )
            elif (
                target in self._request_of_download
                and self._url_of_activity[source] != self._url_of_activity[target]
            ):
                yield source, self._request_of_download[target]

    def _start_ms(self, name: str) -> float:
        """Return when an activity started; of several, the latest is taken for the cause."""
        index = self._request_of_download.get(name)
        # An activity that is no download is a computation, which is the better evidence.
        return math.inf if index is None else self._recording.requests[index].start_ms or 0.0
