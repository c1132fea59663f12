"""The shipped priority vectors, and their runner: parsing, merging, frames and the order sent."""

from __future__ import annotations

import json
from copy import copy
from dataclasses import dataclass
from functools import partial
from importlib.resources import files
from itertools import groupby
from typing import TYPE_CHECKING, Any, Protocol

from h3sim.conformance.call_sequences import (
    PACKET_BYTES,
    Call,
    Event,
    RecordingScheduler,
    SchedulerLoopsError,
)
from h3sim.conformance.laws import BrokenLawError, Law
from h3sim.conformance.runner import calls_limited
from h3sim.http import StreamPriorities
from h3sim.schedulers import DriverScheduler, drivers_released
from h3sim.schemes import new_scheduler, scheduler_named
from h3sim.signals import Eps
from h3sim.values.errors import SchedulerTimeoutError, UnknownNameError, raised_words
from h3sim.values.text import plural

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from h3sim.conformance.subject import SchedulerLike
    from h3sim.schedulers import Scheduler


class FieldReceiver(Protocol):
    """The part of a server that reads fields and frames; None stands for a field that is missing.

    `h3sim.http.StreamPriorities` is one.
    """

    def on_request(self, stream_id: int, field: str | None, /) -> object:
        """Handle a request with that Priority field."""

    def on_priority_update(self, stream_id: int, field: str, /) -> object:
        """Handle a PRIORITY_UPDATE frame, which may come before its request."""

    def on_response(self, stream_id: int, field: str | None, /) -> object:
        """Handle the Priority field of the origin's response."""

    def priority_of(self, stream_id: int, /) -> Eps:
        """Return the priority that the stream has now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VectorVerdict:
    """Outcome of one case: it is kept, or *failed* or *skipped* says why not.

    *level* is that of the case: must, should or may. A case of level may that fails is a choice.
    """

    vectors: str
    case: str
    source: str
    level: str
    failed: str | None = None
    skipped: str | None = None

    @property
    def outcome(self) -> str:
        """Either kept, broken, other (a choice that the RFC leaves) or skipped."""
        if self.skipped is not None:
            return "skipped"
        if self.failed is None:
            return "kept"
        return "other" if self.level == "may" else "broken"

    def __str__(self) -> str:
        line = f"{self.outcome:8} {self.vectors}: {self.case} ({self.level}, {self.source})"
        reason = self.failed or self.skipped
        return f"{line}\n      {reason}" if reason else line


@dataclass(frozen=True, slots=True, kw_only=True)
class VectorReport:
    """The verdicts about one server, in the order of the files and their cases."""

    scheduler: str
    verdicts: tuple[VectorVerdict, ...]

    @property
    def broken(self) -> tuple[VectorVerdict, ...]:
        """The cases of level must or should that fail."""
        return tuple(each for each in self.verdicts if each.outcome == "broken")

    def __str__(self) -> str:
        lines = [self.scheduler]
        for (vectors, skipped), group in groupby(self.verdicts, lambda v: (v.vectors, v.skipped)):
            verdicts = [*group]
            if skipped is None:
                lines += [f"  {verdict}" for verdict in verdicts]
            else:
                lines.append(f"  skipped  {vectors}: {plural(len(verdicts), 'case')}: {skipped}")
        return "\n".join(lines)


def load_vectors() -> dict[str, dict[str, Any]]:
    """Return the shipped files of vectors by name.

    >>> load_vectors()["merging"]["cases"][1]["response"]
    'u=1'
    """
    folder = files("h3sim") / "conformance" / "vectors"
    found = sorted(folder.iterdir(), key=lambda file: file.name)
    documents = (json.loads(file.read_text(encoding="utf-8")) for file in found)
    return {document["name"]: document for document in documents}


def check_vectors(
    scheduler: SchedulerLike | None = None,
    *,
    receiver: Callable[[], FieldReceiver] | None = None,
    skip: Mapping[str, str] | None = None,
) -> VectorReport:
    """Run the priority vectors on a server's *scheduler*, its *receiver* of fields, or both.

    The scheduler is a class, a function, a scheduler or a name, as in `check_scheduler`. A
    `DriverScheduler` is also the receiver if its driver reads fields. Without a receiver, cases of
    fields and frames are skipped, and those of schedules use h3sim's. *skip* maps names of files
    or of cases to reasons.

    Raises:
        InputError: if the scheduler cannot be made.
        UnknownNameError: if there is no file or case of a name in *skip*.

    >>> [each.case for each in check_vectors("eps", receiver=StreamPriorities).broken]
    ['a short incremental response does not wait for a long one that is not']
    """
    documents, skip = load_vectors(), skip or {}
    cases = [case["name"] for document in documents.values() for case in document["cases"]]
    for name in skip:
        if name not in documents and name not in cases:
            raise UnknownNameError("file or case of vectors", name, [*documents])
    label, maker = ("receiver", None) if scheduler is None else scheduler_named(scheduler)
    if isinstance(scheduler, DriverScheduler):
        hello = scheduler.start()
        label = str(hello.get("name") or scheduler.command[0])
        if hello.get("fields") is True:
            receiver = partial(copy, scheduler)
    server = _Server(label, maker, receiver)
    with calls_limited():
        verdicts = [
            server.verdict(document, case, skip.get(name) or skip.get(case["name"]))
            for name, document in documents.items()
            for case in document["cases"]
        ]
    return VectorReport(scheduler=label, verdicts=tuple(verdicts))


class _Server:
    """Server to test: a maker of schedulers and one of receivers, either of which may be None."""

    def __init__(
        self, label: str, maker: Any, receiver: Callable[[], FieldReceiver] | None
    ) -> None:
        self._label, self._maker, self._receiver = label, maker, receiver
        self._hangs: str | None = None
        """The reason to skip all other cases, each of which would take as long."""

    def verdict(
        self, document: dict[str, Any], case: dict[str, Any], skipped: str | None
    ) -> VectorVerdict:
        """Return the outcome of a case."""
        failed, skipped = None, skipped or self._hangs
        is_schedule = document["kind"] == "schedule"
        if skipped is None and is_schedule and self._maker is None:
            skipped = "no scheduler"
        elif skipped is None and not is_schedule and self._receiver is None:
            skipped = "the driver reads no fields"
        if skipped is None:
            try:
                with drivers_released():
                    failed = self._failure_of(document["kind"], case)
            except BrokenLawError as error:  # raised or looped, as its sentence says
                failed = error.sentence
                if isinstance(error.__cause__, SchedulerTimeoutError | SchedulerLoopsError):
                    self._hangs = error.sentence
            except Exception as error:  # noqa: BLE001 - of the server under test
                failed = raised_words(error)
                if isinstance(error, SchedulerTimeoutError):
                    self._hangs = failed
        return VectorVerdict(
            vectors=document["name"],
            case=case["name"],
            source=case["source"],
            level=case["level"],
            failed=failed,
            skipped=skipped,
        )

    def _failure_of(self, kind: str, case: dict[str, Any]) -> str | None:
        """Return how a case fails; None if it holds."""
        if kind == "schedule":
            scheduler = new_scheduler(self._maker, turn_bytes=PACKET_BYTES, name=self._label)
            sent = sent_streams(scheduler, case["events"])
            failures = [*_schedule_failures(case, sent)]
            return f"{'; '.join(failures)}; sent: {_runs(sent)}" if failures else None
        assert self._receiver is not None  # noqa: S101 - else the case is skipped
        receiver = self._receiver()
        expected = case.get("priorities") or {"0": case["priority"]}
        for event in case.get("events") or _events_of(case):
            _apply(receiver, event)
        for stream, priority in expected.items():
            found = receiver.priority_of(int(stream))
            if {"u": found.urgency, "i": found.incremental} != priority:
                wanted = Eps(urgency=priority["u"], incremental=priority["i"])
                return f"stream {stream} has {found}, not {wanted}"
        return None


def _events_of(case: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the events of a case of a field, or of a request's and a response's."""
    events = [{"on": "request", "stream": 0, "field": case.get("request", case.get("field"))}]
    if "response" in case:
        events.append({"on": "response", "stream": 0, "field": case["response"]})
    return events


def _apply(receiver: FieldReceiver, event: dict[str, Any]) -> Any:
    handlers: dict[str, Callable[..., Any]] = {
        "request": receiver.on_request,
        "frame": receiver.on_priority_update,
        "response": receiver.on_response,
    }
    return handlers[event["on"]](event["stream"], event["field"])


def sent_streams(scheduler: Scheduler, events: Iterable[dict[str, Any]]) -> list[int]:
    """Return the streams of the packets that a server with this scheduler sends, in their order.

    The fields and frames are read by h3sim, and the scheduler gets what follows from them.

    Raises:
        BrokenLawError: if the scheduler raises an error, loops, or picks a stream without packets.
    """
    recording, priorities = RecordingScheduler(scheduler), StreamPriorities()
    waiting, sent, left = list(events), list[int](), dict[int, int]()
    while waiting or left:
        while waiting and (waiting[0].get("after", 0) <= len(sent) or not left):
            event = waiting.pop(0)
            is_request = event["on"] == "request"
            for stream_id, priority in _apply(priorities, event):
                recording.take(Event(Call.OPEN if is_request else Call.UPDATE, stream_id, priority))
            if is_request:
                recording.take(Event(Call.ACTIVATE, event["stream"]))
                left[event["stream"]] = event["packets"]
        picked = recording.turn()
        if picked is None or picked not in left:
            sentence = f"{picked} is picked, and {[*left]} have packets left; sent: {_runs(sent)}"
            raise recording.broken(Law.WORK_CONSERVING, sentence)
        sent.append(picked)
        left[picked] -= 1
        if not left[picked]:
            del left[picked]
            recording.take(Event(Call.CLOSE, picked))
            priorities.on_closed(picked)
    return sent


def _runs(sent: list[int]) -> str:
    """Return the streams of packets as text, each with the number of packets in a row.

    >>> _runs([0, 0, 4])
    '0 x 2, 4'
    """
    runs = [(stream_id, len([*packets])) for stream_id, packets in groupby(sent)]
    return ", ".join(f"{stream_id} x {n}" if n > 1 else f"{stream_id}" for stream_id, n in runs)


def _schedule_failures(case: dict[str, Any], sent: list[int]) -> Iterable[str]:
    """Yield the expectations of a schedule that do not hold."""
    last = {stream_id: index for index, stream_id in enumerate(sent)}
    if case.get("order", sent) != sent:
        yield f"the order is not {case['order']}"
    for one, other in case.get("before", ()):
        if last[one] > sent.index(other):
            yield f"{one} does not end before {other} begins"
    for one, other in case.get("ends_before", ()):
        if last[one] > last[other]:
            yield f"{one} does not end before {other} ends"
    requested = {e["stream"]: e.get("after", 0) for e in case["events"] if e["on"] == "request"}
    for one, n_packets in case.get("ends_within", ()):
        if last[one] >= requested[one] + n_packets:
            yield f"{one} does not end within {n_packets} packets"
    for group in case.get("shares", ()):
        # While all of them have packets left: until the first one has ended.
        end = min(last[stream_id] for stream_id in group) + 1
        for one in group:
            starts = range(end - case["within"] + 1)
            if any(one not in sent[start : start + case["within"]] for start in starts):
                yield f"{one} has no packet among some {case['within']} in a row"
