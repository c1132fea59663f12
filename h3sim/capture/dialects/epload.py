"""Reads dependency graphs of WProf's family as Epload replays them."""

from __future__ import annotations

import math
from collections import defaultdict, deque
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from h3sim.capture.inference.kinds import kind_of_mime, kind_of_word, plain_mime
from h3sim.capture.inference.observed import Observed, Size, Trigger
from h3sim.capture.source.fields import Fields
from h3sim.page import At

if TYPE_CHECKING:
    from h3sim.capture.inference.observed import Recording
    from h3sim.capture.source.parts import JsonPart

__all__ = ["EploadGraph"]

_AT_ITS_END = -1.0
_ON_THE_FIRST_BYTES = 1
_ANY_HOST = "unknown.invalid"


class _Activity(NamedTuple):
    """A download or a computation of a graph."""

    object_index: int
    """The index of the resource that it belongs to."""
    computation: int | None
    """Which of the resource's computations it is; None for the download."""


class _Loaded(NamedTuple):
    """An object of Epload's graph."""

    request: Observed
    times_ms: tuple[float, ...]
    """How long its computations take, in their order."""
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
            _add_object(entry, self._objects, self._activities)

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
        _in_order(objects, chosen, recording)
        recording.missing.append("when things happened in the recording")


def _add_object(entry: Fields, objects: list[_Loaded], activities: dict[str, _Activity]) -> None:
    url = _url(entry)
    if not url:
        entry.wrong("path", "skipped: neither path nor url")
        return
    index = len(objects)
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
        name = comp.name("id")
        if name:
            activities.setdefault(name, _Activity(index, len(times_ms)))
        times_ms.append(_computed_ms(comp))
    request.execute_ms = math.fsum(times_ms)
    starts_early = entry.number("when_comp_start") == _ON_THE_FIRST_BYTES
    objects.append(_Loaded(request, tuple(times_ms), starts_early))
    for name in (download.name("id"), entry.name("id")):
        if name:
            activities.setdefault(name, _Activity(index, None))


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
    if time_ms is None:
        begin, end = comp.number("s_time"), comp.number("e_time")
        time_ms = None if begin is None or end is None else max(0.0, end - begin)
    return time_ms or 0.0


def _trigger(parent: _Loaded, source: _Activity, time_ms: float) -> Trigger:
    """Return the event of *parent* that is meant by *time_ms* after the beginning of *source*."""
    if source.computation is None:
        if time_ms < 0:
            return Trigger(at=At.COMPLETE, by=source.object_index)
        return Trigger(at=At.REQUEST, by=source.object_index, delay_ms=time_ms)
    before_ms = math.fsum(parent.times_ms[: source.computation])
    delay_ms = before_ms + (parent.times_ms[source.computation] if time_ms < 0 else time_ms)
    if parent.starts_early and time_ms >= 0:
        return Trigger(at=At.OFFSET, by=source.object_index, offset_bytes=0, delay_ms=delay_ms)
    if delay_ms >= parent.request.execute_ms:
        delay_ms -= parent.request.execute_ms
        return Trigger(at=At.EXECUTED, by=source.object_index, delay_ms=delay_ms)
    return Trigger(at=At.COMPLETE, by=source.object_index, delay_ms=delay_ms)


def _in_order(
    objects: list[_Loaded], chosen: dict[int, tuple[_Activity, float]], recording: Recording
) -> None:
    """Put the requests into the recording, parents first; a circle is cut where it is met."""
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
