"""A load as a Chrome trace, which ui.perfetto.dev and chrome://tracing open.

The format is Chrome's "Trace Event Format" (JSON). The page is a process with the main thread; each
connection is a process with its transport and a thread per stream. Counters show the congestion
window and the bytes in flight, where packets were recorded, and what the client had to hold back
for missing bytes. Requests are also written as Chrome's own `Resource*` events, so that
`h3sim import` and other readers of Chrome's traces see them.
"""

from __future__ import annotations

import json
from collections import defaultdict
from typing import TYPE_CHECKING, Any

from h3sim._version import __version__
from h3sim.metrics import timings
from h3sim.page import Kind
from h3sim.results.configuration import in_words
from h3sim.results.har import HTTP_VERSIONS, addresses_of, level_of
from h3sim.results.requests import priority_text
from h3sim.schema import write_atomically
from h3sim.trace import Work
from h3sim.units import NS_PER_S, ms, to_ms

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from h3sim.metrics import Timing
    from h3sim.page import Resource
    from h3sim.results.connections import Connection
    from h3sim.results.load import Load
    from h3sim.trace import Request


Event = dict[str, Any]
_PAGE, _FIRST_CONNECTION = 1, 2
"""Process numbers."""
_MAIN, _NETWORK = 1, 1000
"""Thread numbers of the page: the main thread and those beside it, and the requests."""
_TRANSPORT, _FIRST_STREAM = 1, 2
_FRAME, _NAVIGATION = "main", "navigation"
_TASKS = {Work.PARSE: "parse", Work.STYLE: "style", Work.EXECUTE: "execute"}
_MARKS = {
    Work.FIRST_PAINT: "firstPaint",
    Work.DOM_CONTENT_LOADED: "MarkDOMContent",
    Work.LOAD: "MarkLoad",
}
_TYPES = {Kind.FETCH: "Fetch"}


def write_chrome_trace(load: Load, path: str | Path) -> None:
    """Write *load* as a Chrome trace to *path*, whole or not at all.

    Raises:
        InputError: if the path cannot be written.
    """
    write_atomically(path, json.dumps(load_to_chrome_trace(load), allow_nan=False) + "\n")


def load_to_chrome_trace(load: Load) -> dict[str, Any]:
    """Return *load* as a Chrome trace; times are in microseconds since navigation start.

    >>> import h3sim
    >>> trace = load_to_chrome_trace(h3sim.simulate("davies-meenan", scheme="fifo"))
    >>> sorted({event["ph"] for event in trace["traceEvents"]})
    ['I', 'M', 'X']
    """
    events = [*_page_events(load)]
    for connection in load.connections:
        events += _connection_events(load, connection)
    description = ", ".join([load.scheme.name, *in_words(load).values()])
    return {
        "traceEvents": events,
        "displayTimeUnit": "ms",
        "metadata": {
            "source": "h3sim",
            "product-version": __version__,
            "page": load.page.name,
            "page-digest": load.page.digest,
            "load": description,
        },
    }


def _to_us(at_ns: float) -> float:
    return at_ns / 1000


def _name_events(pid: int, name: str, tid: int | None = None) -> Iterator[Event]:
    """Yield the events that name a process, or a thread of it, and put it in order."""
    what = "process" if tid is None else "thread"
    event = {"ph": "M", "ts": 0, "pid": pid, "tid": tid or 0}
    order = pid if tid is None else tid
    yield event | {"name": f"{what}_name", "args": {"name": name}}
    yield event | {"name": f"{what}_sort_index", "args": {"sort_index": order}}


def _duration_event(pid: int, tid: int, name: str, times_ns: tuple[int, int], **args: Any) -> Event:
    """Return a span of time on a thread (a complete event, "X")."""
    start_ns, end_ns = times_ns
    return {
        "ph": "X",
        "cat": "h3sim",
        "name": name,
        "pid": pid,
        "tid": tid,
        "ts": _to_us(start_ns),
        "dur": _to_us(end_ns - start_ns),
        "args": args,
    }


def _instant_event(pid: int, tid: int, name: str, at_ns: int, **args: Any) -> Event:
    event = {"ph": "I", "s": "t", "cat": "h3sim", "name": name, "pid": pid, "tid": tid}
    return event | {"ts": _to_us(at_ns), "args": args}


def _counter_event(pid: int, name: str, at_ns: int, **values: int) -> Event:
    return {"ph": "C", "name": name, "pid": pid, "ts": _to_us(at_ns), "args": values}


def _page_events(load: Load) -> Iterator[Event]:
    """Yield the browser's activities, one lane per overlapping task."""
    yield from _name_events(_PAGE, f"page {load.page.name}")
    start = {"data": {"documentLoaderURL": _addresses(load)[0], "isOutermostMainFrame": True}}
    yield _instant_event(_PAGE, _MAIN, "navigationStart", 0, frame=_FRAME, **start)
    lanes: list[list[int]] = []
    for done in sorted(
        load.trace.activities, key=lambda each: (each.began_at_ns, -each.ended_at_ns)
    ):
        resource = None if done.resource is None else load.page.resources[done.resource].id
        if done.work in _MARKS:
            data = {"frame": _FRAME, "isMainFrame": True}
            yield _instant_event(_PAGE, _MAIN, _MARKS[done.work], done.ended_at_ns, data=data)
        elif done.work in _TASKS:
            tid = _MAIN + _take_lane(lanes, done.began_at_ns, done.ended_at_ns)
            times_ns = done.began_at_ns, done.ended_at_ns
            yield _duration_event(_PAGE, tid, f"{_TASKS[done.work]} {resource}", times_ns)
    for number in range(max(1, len(lanes))):
        name = "main thread" if number == 0 else f"main thread, overlapping {number}"
        yield from _name_events(_PAGE, name, _MAIN + number)
    largest_ms = load.largest_paint_ms
    if largest_ms is not None:
        name = "largestContentfulPaint::Candidate"
        data = {"isMainFrame": True}
        at_ns = ms(largest_ms)
        yield _instant_event(_PAGE, _MAIN, name, at_ns, frame=_FRAME, data=data)
    yield from _name_events(_PAGE, "requests", _NETWORK)


def _take_lane(lanes: list[list[int]], start_ns: int, end_ns: int) -> int:
    """Return the first track on which the task nests; *lanes* are the ends of open tasks."""
    for number, ends in enumerate(lanes):
        while ends and ends[-1] <= start_ns:
            ends.pop()
        if not ends or end_ns <= ends[-1]:
            ends.append(end_ns)
            return number
    lanes.append([end_ns])
    return len(lanes) - 1


def _addresses(load: Load) -> list[str]:
    found = addresses_of(load.page)
    return [found[resource.id] for resource in load.page.resources]


def _connection_events(load: Load, connection: Connection) -> Iterator[Event]:
    """Yield one thread for the transport, and one per stream."""
    pid, trace = _FIRST_CONNECTION + connection.number, connection.trace
    hosts = ", ".join(connection.hosts)
    yield from _name_events(pid, f"connection {connection.number + 1}: {hosts}")
    yield from _name_events(pid, "transport", _TRANSPORT)
    for name, start_ns, end_ns in connection.lookups:
        yield _duration_event(pid, _TRANSPORT, f"DNS {name}", (start_ns, end_ns))
    if connection.ready_at_ns > connection.opened_at_ns:
        times_ns = connection.opened_at_ns, connection.ready_at_ns
        yield _duration_event(pid, _TRANSPORT, "handshake", times_ns)
    for row in trace.recovery:
        window = {"congestion window": row.congestion_window, "in flight": row.bytes_in_flight}
        for name, n_bytes in window.items():
            yield _counter_event(pid, f"{name} (bytes)", row.at_ns, bytes=n_bytes)
        if row.lost:
            numbers = ", ".join(map(str, row.lost))
            yield _instant_event(pid, _TRANSPORT, "packets lost", row.at_ns, packets=numbers)
    yield from _blocking_events(connection, pid)
    signals = defaultdict(list)
    for at_ns, element_id, signal in trace.signals:
        signals[element_id].append((at_ns, signal))
    threads = {}
    addresses = _addresses(load)
    for number, (request, timing) in enumerate(zip(trace.requests, timings(trace), strict=True)):
        threads[request.stream_id] = tid = _FIRST_STREAM + number
        resource = load.page.resources[request.resource]
        yield from _name_events(pid, f"stream {request.stream_id}: {resource.id}", tid)
        sent = signals[request.stream_id]
        yield from _stream_events(resource, request, timing, (pid, tid), sent)
        yield from _chrome_events(load, request, timing, sent, addresses, connection.number)
    columns = trace.packet_rows.columns
    packets = zip(columns.sent_at_ns, columns.stream_id, columns.number, strict=True)
    for arrived_at_ns, (sent_at_ns, stream_id, number) in zip(
        columns.arrived_at_ns, packets, strict=True
    ):
        if arrived_at_ns is None and stream_id in threads:
            yield _instant_event(
                pid, threads[stream_id], "lost on the way", sent_at_ns, packet=number
            )


def _blocking_events(connection: Connection, pid: int) -> Iterator[Event]:
    """Yield the bytes that had arrived but waited for others, over time."""
    columns = connection.trace.packet_rows.columns
    changes: dict[int, int] = defaultdict(int)
    rows = zip(columns.arrived_at_ns, columns.delivered_at_ns, columns.length_bytes, strict=True)
    for arrived_at_ns, delivered_at_ns, n_bytes in rows:
        if arrived_at_ns is not None and delivered_at_ns is not None:
            changes[arrived_at_ns] += n_bytes
            changes[delivered_at_ns] -= n_bytes
    held_bytes = 0
    for at_ns, change in sorted(changes.items()):
        if change:
            held_bytes += change
            yield _counter_event(pid, "held back (bytes)", at_ns, bytes=held_bytes)


def _stream_events(
    resource: Resource,
    request: Request,
    timing: Timing,
    thread: tuple[int, int],
    signals: Iterable[tuple[int, Any]],
) -> Iterator[Event]:
    """Yield request, waiting, receiving and priorities of a stream."""
    requested_ns, first_byte_ns, finished_ns = timing[2:]
    discovery = resource.discovered
    yield _duration_event(
        *thread,
        resource.id,
        (requested_ns, finished_ns),
        kind=resource.kind.value,
        bytes=request.length_bytes,
        above_the_fold=resource.above_the_fold,
        initiator="" if discovery is None else str(discovery.by or ""),
    )
    yield _duration_event(*thread, "wait", (requested_ns, first_byte_ns))
    yield _duration_event(*thread, "receive", (first_byte_ns, finished_ns))
    for at_ns, signal in signals:
        yield _instant_event(*thread, f"priority {priority_text(signal)}", at_ns)


def _chrome_events(
    load: Load,
    request: Request,
    timing: Timing,
    signals: list[tuple[int, Any]],
    addresses: list[str],
    connection: int,
) -> Iterator[Event]:
    """Yield what Chrome's renderer writes of a request."""
    resource = load.page.resources[request.resource]
    requested_ns, first_byte_ns, finished_ns = timing[2:]
    header_bytes = request.length_bytes - resource.size_bytes
    id_ = {"requestId": f"{connection + 1}.{request.stream_id}", "frame": _FRAME}

    def event(name: str, at_ns: int, **data: Any) -> Event:
        made = _instant_event(_PAGE, _NETWORK, name, at_ns, data=id_ | data)
        return made | {"cat": "devtools.timeline"}

    levels = [(at_ns, level.value) for at_ns, signal in signals if (level := level_of(signal))]
    sent: dict[str, Any] = {"url": addresses[request.resource], "requestMethod": "GET"}
    sent["resourceType"] = _TYPES.get(resource.kind, resource.kind.value.capitalize())
    sent |= {"priority": levels[0][1]} if levels else {}
    if resource.discovered is not None and resource.discovered.by is not None:
        parent = load.page.index[resource.discovered.by]
        of_script = load.page.resources[parent].kind is Kind.SCRIPT
        kind = "preload" if resource.preload else "script" if of_script else "parser"
        sent["initiator"] = {"type": kind, "url": addresses[parent]}
        sent["isLinkPreload"] = resource.preload
    yield event("ResourceSendRequest", requested_ns, **sent)
    for at_ns, word in levels[1:]:
        yield event("ResourceChangePriority", at_ns, priority=word)
    yield event(
        "ResourceReceiveResponse",
        first_byte_ns,
        statusCode=200,
        mimeType=resource.mime,
        protocol=HTTP_VERSIONS[load.protocol],
        encodedDataLength=header_bytes,
        connectionId=connection + 1,
        fromCache=False,
        fromServiceWorker=False,
        timing={
            "requestTime": requested_ns / NS_PER_S,
            "sendEnd": 0,
            "receiveHeadersEnd": to_ms(first_byte_ns - requested_ns),
        },
    )
    yield event(
        "ResourceFinish",
        finished_ns,
        didFail=False,
        encodedDataLength=request.length_bytes,
        decodedBodyLength=resource.size_bytes,
        finishTime=finished_ns / NS_PER_S,
    )
