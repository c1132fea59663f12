"""Reads dependency graphs of WProf's family: those that Epload replays, and WProfX's."""

from __future__ import annotations

from collections import defaultdict, deque
from typing import TYPE_CHECKING, Any, NamedTuple

from h3sim.capture.inference.kinds import kind_of_mime, kind_of_word, plain_mime
from h3sim.capture.inference.observed import Observed, Outcome, Recording, Size, Trigger
from h3sim.capture.source.fields import Fields
from h3sim.documents import shown
from h3sim.page import At

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["WprofxGraph", "read_epload"]

_AT_ITS_END = -1.0
_ON_THE_FIRST_BYTES = 1
_ANY_HOST = "unknown.invalid"


class _Activity(NamedTuple):
    """A download or a computation of a graph."""

    place: int
    """The place of the resource that it belongs to."""
    computation: int | None
    """Which of the resource's computations it is; None for the download."""


class _Loaded(NamedTuple):
    """An object of Epload's graph."""

    request: Observed
    times_ms: tuple[float, ...]
    """How long its computations take, in their order."""
    starts_early: bool


def read_epload(document: dict[str, Any], recording: Recording) -> None:
    """Read a graph {objs, deps}; an object's computations run in order.

    A dependency lets a download begin *time* ms after an activity began, or at its end (-1).
    """
    graph = Fields(document, "", recording.note)
    objects: list[_Loaded] = []
    activities: dict[str, _Activity] = {}
    for entry in graph.tables("objs"):
        _add_object(entry, objects, activities)
    chosen: dict[int, tuple[_Activity, float]] = {}
    n_more = 0
    for dep in graph.tables("deps"):
        target = activities.get(_name(dep, "a2"))
        source = activities.get(_name(dep, "a1"))
        if target is None or source is None:
            dep.wrong("a1" if source is None else "a2", "skipped: names no activity")
        elif target.computation is None and source.place != target.place:
            time_ms = dep.number("time")
            n_more += target.place in chosen
            chosen[target.place] = (source, _AT_ITS_END if time_ms is None else time_ms)
    recording.inferred["parents where several are given, the last one taken"] += n_more
    for place, (source, time_ms) in chosen.items():
        trigger = _trigger(objects[source.place], source, time_ms)
        objects[place].request.trigger = trigger
    _in_order(objects, chosen, recording)
    recording.dialect = recording.dialect or "epload"
    recording.missing.append("when things happened in the recording")


def _add_object(entry: Fields, objects: list[_Loaded], activities: dict[str, _Activity]) -> None:
    url = _url(entry)
    if not url:
        entry.wrong("path", "skipped: neither path nor url")
        return
    place = len(objects)
    download = entry.table("download")
    request = Observed(key=entry.key, url=url)
    request.body_bytes = download.size("len", "length", "size", "bytes")
    if request.body_bytes is None:
        request.body_bytes = entry.size("len", "length", "size", "bytes")
    request.body_from = Size.NONE if request.body_bytes is None else Size.RECORDED
    word = download.text("type")
    request.mime = plain_mime(word)
    request.kind = kind_of_mime(request.mime) or kind_of_word(word)
    times_ms: list[float] = []
    for comp in entry.tables("comps"):
        name = _name(comp, "id")
        if name:
            activities.setdefault(name, _Activity(place, len(times_ms)))
        times_ms.append(_computed_ms(comp))
    request.execute_ms = sum(times_ms)
    starts_early = entry.number("when_comp_start") == _ON_THE_FIRST_BYTES
    objects.append(_Loaded(request, tuple(times_ms), starts_early))
    for name in (_name(download, "id"), _name(entry, "id")):
        if name:
            activities.setdefault(name, _Activity(place, None))


def _url(entry: Fields) -> str:
    url = entry.text("url")
    if "://" in url:
        return url
    path = entry.text("path") or url
    if "://" in path or not path:
        return path
    return f"http://{entry.text('host') or _ANY_HOST}/{path.lstrip('/')}"


def _name(entry: Fields, key: str) -> str:
    value = entry.raw(key)
    return str(value) if isinstance(value, (str, int)) else ""


def _computed_ms(comp: Fields) -> float:
    time_ms = comp.duration("time")
    if time_ms is None:
        begin, end = comp.number("s_time"), comp.number("e_time")
        time_ms = None if begin is None or end is None else max(0.0, end - begin)
    return time_ms or 0.0


def _trigger(parent: _Loaded, source: _Activity, time_ms: float) -> Trigger:
    """Return the event of *parent* that is meant by *time_ms* after the beginning of *source*."""
    if source.computation is None:
        if time_ms < 0:
            return Trigger(at=At.COMPLETE, by=source.place)
        return Trigger(at=At.REQUEST, by=source.place, delay_ms=time_ms)
    before_ms = sum(parent.times_ms[: source.computation])
    delay_ms = before_ms + (parent.times_ms[source.computation] if time_ms < 0 else time_ms)
    if parent.starts_early and time_ms >= 0:
        return Trigger(at=At.OFFSET, by=source.place, offset_bytes=0, delay_ms=delay_ms)
    if delay_ms >= parent.request.execute_ms:
        delay_ms -= parent.request.execute_ms
        return Trigger(at=At.EXECUTED, by=source.place, delay_ms=delay_ms)
    return Trigger(at=At.COMPLETE, by=source.place, delay_ms=delay_ms)


def _in_order(
    objects: list[_Loaded], chosen: dict[int, tuple[_Activity, float]], recording: Recording
) -> None:
    """Put the requests into the recording, parents first; a circle is cut where it is met."""
    children: dict[int, list[int]] = defaultdict(list)
    for place, (source, _) in chosen.items():
        children[source.place].append(place)
    order: list[int] = []
    reached = [False] * len(objects)
    heads = [place for place in range(len(objects)) if place not in chosen]
    for head in (*heads, *range(len(objects))):
        if not reached[head] and head in chosen:
            objects[head].request.trigger = None
            recording.inferred["circles of parents, cut"] += 1
        waiting = deque([] if reached[head] else [head])
        while waiting:
            place = waiting.popleft()
            if not reached[place]:
                reached[place] = True
                order.append(place)
                waiting += children[place]
    new = {place: number for number, place in enumerate(order)}
    for place in order:
        request = objects[place].request
        if request.trigger is not None:
            by = new[request.trigger.by]
            given = request.trigger
            request.trigger = Trigger(
                at=given.at, by=by, offset_bytes=given.offset_bytes, delay_ms=given.delay_ms
            )
        recording.requests.append(request)


class WprofxGraph:
    """Takes the entries of a WProfX graph one after the other: one for each URL, then `Deps`."""

    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        self._owner: dict[str, int] = {}
        self._url_of: dict[str, str] = {}
        self._executed_ms: dict[str, float] = defaultdict(float)
        self._from_script: dict[int, str] = {}
        self._deps: list[Fields] = []

    def add_entry(self, key: str, value: object) -> None:
        """Read one entry; *key* is its place in the file."""
        if not isinstance(value, dict):
            self._recording.note(key, f"skipped: must be an object, is {shown(value)}")
            return
        entry = Fields(value, key, self._recording.note)
        name = entry.text("id")
        if name == "Deps":
            self._deps += entry.tables("objs")
        elif "://" in name:
            for activity in entry.tables("objs"):
                self._add_activity(name, activity)

    def _add_activity(self, url: str, activity: Fields) -> None:
        name = activity.text("activityId")
        self._url_of.setdefault(name, url)
        if name.startswith("Scripting"):
            begin, end = activity.number("startTime"), activity.number("endTime")
            if begin is not None and end is not None:
                self._executed_ms[url] += max(0.0, end - begin)
        elif name.startswith("Networking"):
            self._owner.setdefault(name, len(self._recording.requests))
            self._add_request(url, activity)

    def _add_request(self, url: str, activity: Fields) -> None:
        request = Observed(key=activity.key, url=url)
        request.start_ms = activity.number("startTime")
        request.end_ms = activity.number("endTime")
        request.first_byte_ms = activity.number("responseReceivedTime")
        request.body_bytes = activity.size("transferSize")
        request.body_from = Size.NONE if request.body_bytes is None else Size.WHOLE
        request.mime = activity.text("mimeType")
        status = activity.number("statusCode")
        request.status = None if status is None else int(status)
        if request.status is not None and request.status <= 0:
            request.outcome = Outcome.FAILED
        self._from_script[len(self._recording.requests)] = activity.text("fromScript")
        self._recording.requests.append(request)

    def finish(self) -> None:
        """Settle parents and execution times, which stand apart from the requests."""
        requests = self._recording.requests
        latest: dict[int, tuple[float, str]] = {}
        for source, place in self._sources():
            begun = self._begun_ms(source)
            if place not in latest or begun >= latest[place][0]:
                latest[place] = (begun, source)
        done: set[str] = set()
        for place, request in enumerate(requests):
            script = self._from_script[place]
            if "://" in script and script != request.url:
                request.initiator = script
            elif place in latest:
                request.initiator = self._url_of[latest[place][1]]
            if request.url not in done:  # what a URL executes is told once for all its downloads
                done.add(request.url)
                request.execute_ms = self._executed_ms.get(request.url, 0.0)
        self._recording.dialect = self._recording.dialect or "wprofx"
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
        place = self._owner.get(name)
        begun = None if place is None else self._recording.requests[place].start_ms
        # What is no download is a computation: it tells more of why something was asked for.
        return float("inf") if place is None else begun or 0.0
