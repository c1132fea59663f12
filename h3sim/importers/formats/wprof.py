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


_AT_ITS_END = -1.0
_ON_THE_FIRST_BYTES = 1
_SIZES = ("len", "length", "size", "bytes")
_ANY_HOST = "unknown.invalid"


class _Activity(NamedTuple):
    """A download or a computation of a graph."""

    object_index: int
    """The index of the resource that it belongs to."""
    computation: int | None
    """Index of the computation of the resource; None for the download."""


class _Loaded(NamedTuple):
    """An object of Epload's graph."""

    request: RecordedRequest
    times_ms: tuple[float, ...]
    """Durations of its computations, in order."""
    starts_early: bool


class EploadGraph:
    """Takes in a graph {objs, deps}; an object's computations run in order.

    A dependency lets a download begin *time* ms after an activity began, or at its end (-1).
    """

    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        self._objects: list[_Loaded] = []
        self._activities: dict[str, _Activity] = {}
        self._deps: list[Fields] = []

    def add(self, part: JsonPart) -> None:
        """Take in an object or a dependency."""
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
        """Settle what waits for what; the objects become requests, parents first."""
        recording, objects = self._recording, self._objects
        chosen: dict[int, tuple[_Activity, float]] = {}
        n_more = 0
        for dep in self._deps:
            target = self._activities.get(dep.name("a2"))
            source = self._activities.get(dep.name("a1"))
            if target is None or source is None:
                dep.wrong("a1" if source is None else "a2", "skipped: names no activity")
            elif target.computation is None and source.object_index != target.object_index:
                time_ms = dep.number("time")
                n_more += target.object_index in chosen
                chosen[target.object_index] = (source, _AT_ITS_END if time_ms is None else time_ms)
        recording.inferred["parents where several are given, the last one taken"] += n_more
        for index, (source, time_ms) in chosen.items():
            trigger = _trigger(objects[source.object_index], source, time_ms)
            objects[index].request.trigger = trigger
        self._in_order(chosen)
        recording.missing.append("when things happened in the recording")

    def _add_object(self, entry: Fields) -> None:
        url = _url(entry)
        if not url:
            entry.wrong("path", "skipped: neither path nor url")
            return
        index = len(self._objects)
        download = entry.table("download")
        request = RecordedRequest(key=entry.key, url=url)
        n_bytes = download.size(*_SIZES)
        n_bytes = entry.size(*_SIZES) if n_bytes is None else n_bytes
        request.body_bytes, request.body_from = first_size((n_bytes, SizeSource.RECORDED))
        word = download.text("type")
        request.mime = plain_mime(word)
        request.kind = kind_of_mime(request.mime) or kind_of_word(word)
        times_ms: list[float] = []
        for comp in entry.tables("comps"):
            name = comp.name("id")
            if name:
                self._activities.setdefault(name, _Activity(index, len(times_ms)))
            times_ms.append(_computed_ms(comp))
        request.execute_ms = math.fsum(times_ms)
        starts_early = entry.number("when_comp_start") == _ON_THE_FIRST_BYTES
        self._objects.append(_Loaded(request, tuple(times_ms), starts_early))
        for name in (download.name("id"), entry.name("id")):
            if name:
                self._activities.setdefault(name, _Activity(index, None))

    def _in_order(self, chosen: dict[int, tuple[_Activity, float]]) -> None:
        """Put the requests into the recording, parents first; a circle is cut where it is met."""
        objects, recording = self._objects, self._recording
        children: dict[int, list[int]] = defaultdict(list)
        for index, (source, _) in chosen.items():
            children[source.object_index].append(index)
        order: list[int] = []
        reached = [False] * len(objects)
        heads = [index for index in range(len(objects)) if index not in chosen]
        # Heads first: what is not reached from any of them then is in a circle or behind one.
        for head in (*heads, *range(len(objects))):
            if not reached[head] and head in chosen:
                objects[head].request.trigger = None
                recording.inferred["circles of parents, cut"] += 1
            waiting = deque([] if reached[head] else [head])
            while waiting:
                index = waiting.popleft()
                if not reached[index]:
                    reached[index] = True
                    order.append(index)
                    waiting += children[index]
        new = {index: number for number, index in enumerate(order)}
        for index in order:
            request = objects[index].request
            if request.trigger is not None:
                request.trigger = replace(request.trigger, by=new[request.trigger.by])
            recording.requests.append(request)


def _url(entry: Fields) -> str:
    url = entry.text("url")
    if "://" in url:
        return url
    path = entry.text("path") or url
    if "://" in path or not path:
        return path
    return f"http://{entry.text('host') or _ANY_HOST}/{path.lstrip('/')}"


def _computed_ms(comp: Fields) -> float:
    time_ms = comp.duration("time")
    return _took_ms(comp, "s_time", "e_time") if time_ms is None else time_ms


def _took_ms(activity: Fields, *names: str) -> float:
    """Return the time from the begin to the end of an activity, 0 if it is not known."""
    begin, end = (activity.number(name) for name in names)
    return 0.0 if begin is None or end is None else max(0.0, end - begin)


def _trigger(parent: _Loaded, source: _Activity, time_ms: float) -> Trigger:
    """Return the event of *parent* that is meant by *time_ms* after the beginning of *source*."""
    by = source.object_index
    if source.computation is None:
        if time_ms < 0:
            return Trigger(at=TriggerEvent.COMPLETE, by=by)
        return Trigger(at=TriggerEvent.REQUEST, by=by, delay_ms=time_ms)
    before_ms = math.fsum(parent.times_ms[: source.computation])
    delay_ms = before_ms + (parent.times_ms[source.computation] if time_ms < 0 else time_ms)
    if parent.starts_early and time_ms >= 0:
        return Trigger(at=TriggerEvent.OFFSET, by=by, offset_bytes=0, delay_ms=delay_ms)
    if delay_ms >= parent.request.execute_ms:
        delay_ms -= parent.request.execute_ms
        return Trigger(at=TriggerEvent.EXECUTED, by=by, delay_ms=delay_ms)
    return Trigger(at=TriggerEvent.COMPLETE, by=by, delay_ms=delay_ms)


_MOST_ACTIVITIES = 1_000_000
"""More activities, or dependencies between them, are not read."""


class WprofxGraph:
    """Takes the entries of a WProfX graph one after the other: one for each URL, then `Deps`."""

    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        self._owner: dict[str, int] = {}
        self._url_of: dict[str, str] = {}
        self._executed_ms: dict[str, float] = defaultdict(float)
        self._deps: list[Fields] = []
        self._critical: list[str] = []
        self._n_read = 0

    def add(self, part: JsonPart) -> None:
        """Take in one entry."""
        entry = Fields.of(part, self._recording.note)
        if entry is None:
            return
        self._critical += entry.texts("criticalPath")
        name = entry.text("id")
        parts = entry.tables("objs")
        if self._n_read + len(parts) > _MOST_ACTIVITIES:
            message = f"has more than {_MOST_ACTIVITIES:,} activities: the rest is not read"
            self._recording.note("", message)
            return
        self._n_read += len(parts)
        if name == "Deps":
            self._deps += parts
        elif "://" in name:
            for activity in parts:
                self._add_activity(name, activity)

    def _add_activity(self, url: str, activity: Fields) -> None:
        if not self._recording.has_room():
            return
        name = activity.text("activityId")
        self._url_of.setdefault(name, url)
        if name.startswith("Scripting"):
            self._executed_ms[url] += _took_ms(activity, "startTime", "endTime")
        elif name.startswith("Networking"):
            self._owner.setdefault(name, len(self._recording.requests))
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
        """Settle parents and execution times, which stand apart from the requests."""
        requests = self._recording.requests
        latest: dict[int, tuple[float, str]] = {}
        for source, index in self._sources():
            begun = self._begun_ms(source)
            # Computations have no begin of their own here: of several the last one listed counts.
            if index not in latest or begun >= latest[index][0]:
                latest[index] = (begun, source)
        for index, request in enumerate(requests):
            if not request.initiator and index in latest:
                request.initiator = self._url_of[latest[index][1]]
            # What a URL executes is recorded once for all its downloads.
            request.execute_ms = self._executed_ms.pop(request.url, 0.0)
        critical = {self._url_of[name] for name in self._critical if name in self._url_of}
        for request in requests:
            request.is_critical = request.url in critical
        self._recording.missing.append("header sizes apart from bodies")

    def _sources(self) -> Iterable[tuple[str, int]]:
        """Yield each activity of another URL that a request waits for, with the request's place."""
        for dep in self._deps:
            source, target = dep.text("a1"), dep.text("a2")
            if target not in self._url_of or source not in self._url_of:
                dep.wrong("a1" if source not in self._url_of else "a2", "names no activity")
            elif target in self._owner and self._url_of[source] != self._url_of[target]:
                yield source, self._owner[target]

    def _begun_ms(self, name: str) -> float:
        index = self._owner.get(name)
        begun = None if index is None else self._recording.requests[index].start_ms
        # What is no download is a computation: it tells more of why something was asked for.
        return float("inf") if index is None else begun or 0.0
