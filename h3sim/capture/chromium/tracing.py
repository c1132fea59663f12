"""Reads from a trace how long each resource was parsed and executed, in CPU time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from h3sim.capture.inference.urls import without_fragment

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = ["CATEGORIES", "CpuTime", "work_of"]

CATEGORIES = ("devtools.timeline",)
"""What must be traced for `work_of`."""
_RUNS = "EvaluateScript"
_NAMES = {
    "ParseHTML": ("beginData", "url"),
    "ParseAuthorStyleSheet": ("data", "styleSheetUrl"),
    **dict.fromkeys(("v8.compile", "v8.compileModule", _RUNS), ("data", "url")),
}
"""The events that are counted, and where each has the address of what is worked on."""
_US_PER_MS = 1000


@dataclass(slots=True)
class CpuTime:
    """CPU time that went into one resource, in milliseconds; when it first ran, on some clock."""

    parse_ms: float = 0.0
    execute_ms: float = 0.0
    started_us: float = 0.0


def work_of(trace: Iterable[dict[str, Any]]) -> dict[str, CpuTime]:
    """Return the work per URL: parsing HTML, CSS and scripts, and executing scripts.

    What runs inside something else counts for itself only: a script that the parser of the document
    waits for counts for the script, not for the document; an inline script for the document's
    execution. Functions that are called later, by timers or events, are not counted, nor is what
    modules do: the trace does not say which of them runs.

    >>> run = {"ph": "X", "name": "EvaluateScript", "pid": 1, "tid": 1, "ts": 0, "dur": 5000,
    ...        "args": {"data": {"url": "a.js"}}}
    >>> compiled = run | {"name": "v8.compile", "ts": 10, "dur": 2000}
    >>> work_of([run, compiled])
    {'a.js': CpuTime(parse_ms=2.0, execute_ms=3.0, started_us=0)}
    """
    threads: dict[tuple[int, int], list[dict[str, Any]]] = {}
    for event in trace:
        if event.get("ph") == "X" and event["name"] in _NAMES:
            threads.setdefault((event["pid"], event["tid"]), []).append(event)
    done: dict[str, CpuTime] = {}
    for thread in sorted(threads):
        for event, own_us in _own_times(threads[thread]):
            work = done.setdefault(_url(event), CpuTime(started_us=event["ts"]))
            if event["name"] == _RUNS:
                work.execute_ms += own_us / _US_PER_MS
            else:
                work.parse_ms += own_us / _US_PER_MS
    return done


def _own_times(events: list[dict[str, Any]]) -> Iterator[tuple[dict[str, Any], float]]:
    """Yield each event of a thread with its CPU time less that of the events inside it."""
    # Of two that begin at once the longer one first: it is the outer one.
    events.sort(key=lambda event: (event["ts"], -event.get("dur", 0)))
    ends = [event["ts"] + event.get("dur", 0) for event in events]
    inside: list[float] = [0.0] * len(events)
    open_indexes: list[int] = []
    for index, event in enumerate(events):
        while open_indexes and ends[open_indexes[-1]] <= event["ts"]:
            open_indexes.pop()
        if open_indexes:
            inside[open_indexes[-1]] += _cpu_us(event)
        open_indexes.append(index)
    for index, event in enumerate(events):
        yield event, max(_cpu_us(event) - inside[index], 0.0)


def _cpu_us(event: dict[str, Any]) -> float:
    """CPU time where the trace has it: the clock runs on while others have the processor."""
    return float(event.get("tdur", event.get("dur", 0)))


def _url(event: dict[str, Any]) -> str:
    outer, inner = _NAMES[event["name"]]
    given = event.get("args", {}).get(outer, {})
    return without_fragment(str(given.get(inner) or ""))
