"""Tasks in a Chrome trace: what threads did for which resource, and for how long."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from h3sim.importers.request_fields import without_fragment
from h3sim.page import Kind
from h3sim.schema import is_quantity

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from h3sim.importers.recorded_request import RecordedRequest


US_PER_MS = 1000
EVALUATE_SCRIPT = "EvaluateScript"
PARSE_HTML = "ParseHTML"
COMPILE_MODULE, EVALUATE_MODULE = "v8.compileModule", "v8.evaluateModule"
_URL_KEYS_BY_TASK = {
    PARSE_HTML: ("beginData", "url"),
    "ParseAuthorStyleSheet": ("data", "styleSheetUrl"),
    **dict.fromkeys(
        ("v8.compile", COMPILE_MODULE, EVALUATE_SCRIPT, EVALUATE_MODULE, "FunctionCall"),
        ("data", "url"),
    ),
}
"""Names of tasks, with the key of the URL in each."""
_INLINE_TASKS = ("v8.compile", EVALUATE_SCRIPT)
"""Tasks of an inline script, with the URL of its document."""
SCRIPT_TASKS = ("FunctionCall", EVALUATE_SCRIPT)
"""Tasks in which a script runs."""
_TIME_DECIMALS = 2
"""Decimals of CPU times in ms: more would be noise of the clock."""
WORKED_ON = (Kind.DOCUMENT, Kind.STYLESHEET, Kind.SCRIPT)
"""Kinds whose parsing and execution a trace attributes to their URL."""


@dataclass(slots=True)
class CpuTime:
    """CPU time of one resource in ms, and its first execution on the trace clock."""

    parse_ms: float = 0.0
    execute_ms: float = 0.0
    started_us: float = 0.0

    def add_to(self, request: RecordedRequest) -> None:
        """Set the CPU time of a request, rounded to the precision of clocks."""
        request.parse_ms = round(self.parse_ms, _TIME_DECIMALS)
        request.execute_ms = round(self.execute_ms, _TIME_DECIMALS)


class TraceTask(NamedTuple):
    """Task of a thread: parsing or compiling a resource, or running a script."""

    thread: tuple[str, str]
    start_us: float
    end_us: float
    cpu_us: float
    """CPU time if the trace has it, else wall time."""
    name: str
    url: str


def task_of(event: dict[str, Any]) -> TraceTask | None:
    """Return the task that a trace event describes, or None."""
    keys = _URL_KEYS_BY_TASK.get(event["name"]) if isinstance(event.get("name"), str) else None
    start_us, wall_us = number_in(event, "ts"), number_in(event, "dur") or 0.0
    if keys is None or event.get("ph") != "X" or start_us is None:
        return None
    cpu_us = number_in(event, "tdur")
    outer, inner = keys
    url = table_in(event.get("args"), outer).get(inner)
    return TraceTask(
        thread_of(event),
        start_us,
        start_us + wall_us,
        wall_us if cpu_us is None else cpu_us,
        event["name"],
        without_fragment(url) if isinstance(url, str) else "",
    )


_PARSER_BLOCKING = ("blocking", "in_body_parser_blocking", "inbodyparserblocking")
"""Chromium's names for requests of scripts that block the parser."""


def work_of(
    tasks: Iterable[TraceTask | None], requests: Sequence[RecordedRequest] = ()
) -> dict[str, CpuTime]:
    """Return the CPU time per URL for parsing HTML, CSS and scripts, and executing scripts.

    Nested events count only once: a parser-blocking script counts for the script, not for the
    document; an inline script for the document's execution, unless one of *requests*, the document
    first, is for a script that blocked the parser before it: then for that script's, as a page does
    not know where inline scripts are. The trace does not say which module an
    evaluation belongs to: that is the first one compiled since the previous evaluation, as a graph
    of modules runs at once. Callbacks of timers and events are not counted.

    >>> run = {"ph": "X", "name": "EvaluateScript", "pid": 1, "tid": 1, "ts": 0, "dur": 5000,
    ...        "args": {"data": {"url": "a.js"}}}
    >>> compiled = run | {"name": "v8.compile", "ts": 10, "dur": 2000}
    >>> work_of([task_of(run), task_of(compiled)])
    {'a.js': CpuTime(parse_ms=2.0, execute_ms=3.0, started_us=0.0)}
    """
    threads: defaultdict[tuple[str, str], list[TraceTask]] = defaultdict(list)
    for task in tasks:
        # Function calls are callbacks, or nested in an evaluation, which counts them.
        if task is not None and task.name != "FunctionCall":
            threads[task.thread].append(task)
    work_by_url: dict[str, CpuTime] = {}
    document = requests[0].url if requests else None
    blocking_urls = {each.url for each in requests[1:] if each.blocking in _PARSER_BLOCKING}
    # In an order that does not depend on that of the events, as sums of floats do.
    for _, thread in sorted(threads.items()):
        module = blocking = ""
        for task, self_us in _self_times(thread):
            if task.name == EVALUATE_SCRIPT and task.url in blocking_urls:
                blocking = task.url
            elif task.name in _INLINE_TASKS and task.url == document and blocking:
                task = task._replace(url=blocking)
            elif task.name == COMPILE_MODULE:
                module = module or task.url
            elif task.name == EVALUATE_MODULE:
                task, module = task._replace(url=module), ""
            work = work_by_url.setdefault(task.url, CpuTime(started_us=task.start_us))
            if task.name in (EVALUATE_SCRIPT, EVALUATE_MODULE):
                work.execute_ms += self_us / US_PER_MS
            else:
                work.parse_ms += self_us / US_PER_MS
    return work_by_url


def _self_times(tasks: list[TraceTask]) -> Iterator[tuple[TraceTask, float]]:
    """Yield each task of a thread with its self time (without nested tasks)."""
    tasks.sort(key=outer_first)
    nested_us: list[float] = [0.0] * len(tasks)
    open_indexes: list[int] = []  # tasks around the current one, the innermost last
    for index, task in enumerate(tasks):
        while open_indexes and tasks[open_indexes[-1]].end_us <= task.start_us:
            open_indexes.pop()
        if open_indexes:
            nested_us[open_indexes[-1]] += task.cpu_us
        open_indexes.append(index)
    for index, task in enumerate(tasks):
        yield task, max(task.cpu_us - nested_us[index], 0.0)


def outer_first(task: TraceTask) -> tuple[float, float]:
    """Return a sort key: of two tasks that start together, the longer one is the outer one."""
    return task.start_us, -task.end_us


def thread_of(event: dict[str, Any]) -> tuple[str, str]:
    """Return the process and the thread of a trace event, as texts."""
    return str(event.get("pid")), str(event.get("tid"))


def number_in(table: dict[str, Any], name: str) -> float | None:
    """Return the number under *name*; None for anything else."""
    value: Any = table.get(name)
    return float(value) if is_quantity(value) else None


def table_in(table: object, name: str) -> dict[str, Any]:
    """Return the object under *name*; an empty one for anything else."""
    value = table.get(name) if isinstance(table, dict) else None
    return value if isinstance(value, dict) else {}


def first_runs(tasks: Iterable[TraceTask]) -> dict[str, float]:
    """Return when each script had run for the first time on a trace's clock in µs, by URL.

    A module runs in the first evaluation after it was compiled, which names none.
    """
    ended_us: dict[str, float] = {}
    compiled: list[str] = []
    for task in sorted(tasks, key=lambda task: task.start_us):
        if task.name == EVALUATE_SCRIPT:
            ended_us.setdefault(task.url, task.end_us)
        elif task.name == COMPILE_MODULE:
            compiled.append(without_fragment(task.url))
        elif task.name == EVALUATE_MODULE:
            ended_us |= {url: task.end_us for url in compiled if url not in ended_us}
            compiled.clear()
    return ended_us
