"""Reads graphs of WProfX: an entry for each URL with its activities, then the dependencies."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from h3sim.capture.inference.observed import Observed, RequestOutcome, Size
from h3sim.capture.source.fields import Fields

if TYPE_CHECKING:
    from collections.abc import Iterable

    from h3sim.capture.inference.observed import Recording
    from h3sim.capture.source.parts import JsonPart

__all__ = ["WprofxGraph"]

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
        done: set[str] = set()
        for index, request in enumerate(requests):
            if not request.initiator and index in latest:
                request.initiator = self._url_of[latest[index][1]]
            if request.url not in done:  # what a URL executes is told once for all its downloads
                done.add(request.url)
                request.execute_ms = self._executed_ms.get(request.url, 0.0)
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
