"""A load as a Chrome trace, which ui.perfetto.dev and chrome://tracing open.

The format is Chrome's "Trace Event Format" (JSON). The page is a process with the main thread; each
connection is a process with a thread for its transport and one per stream. Counters show the
congestion window and the bytes in flight, if packets were recorded, and the bytes that the client
holds back until missing ones arrive. Requests are also written as Chrome's own `Resource*` events,
for `h3sim import` and other readers of Chrome's traces.
"""

from __future__ import annotations

import json
from collections import defaultdict
from typing import TYPE_CHECKING, Any

from h3sim._version import __version__
from h3sim.engine.requests import priority_text
from h3sim.export.har import HTTP_VERSIONS, addresses_of, level_of
from h3sim.load.configuration import in_words
from h3sim.metrics import timings
from h3sim.page import Kind
from h3sim.page.model import named_parents
from h3sim.schema import write_atomically
from h3sim.trace import Work
from h3sim.values.units import NS_PER_S, ms, to_ms

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from h3sim.engine.connections import Connection
    from h3sim.load.load import Load
    from h3sim.metrics import Timing
    from h3sim.page import Resource
    from h3sim.trace import Request


Event = dict[str, Any]
_PAGE_PID, _FIRST_CONNECTION_PID = 1, 2
"""Process numbers."""
_MAIN_TID, _REQUESTS_TID = 1, 1000
"""Thread numbers of the page. Tasks that overlap are on threads after the main one."""
_TRANSPORT_TID, _FIRST_STREAM_TID = 1, 2
"""Thread numbers of a connection."""
_FRAME_ID = "main"
_NAME_BY_TASK = {work: work.value for work in Work if work.is_computation}
_EVENT_BY_MILESTONE = {
    Work.FIRST_PAINT: "firstPaint",
    Work.DOM_CONTENT_LOADED: "MarkDOMContent",
    Work.LOAD: "MarkLoad",
}


def write_chrome_trace(load: Load, path: str | Path) -> None:
    """Write *load* as a Chrome trace to *path*, atomically.

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
    description = ", ".join([load.scheme.name, *in_words(load.spec).values()])
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
    """Yield the events that set the name and the position of a process, or of a thread of it."""
    kind, position = ("process", pid) if tid is None else ("thread", tid)
    event = {"ph": "M", "ts": 0, "pid": pid, "tid": tid or 0}
    yield event | {"name": f"{kind}_name", "args": {"name": name}}
    yield event | {"name": f"{kind}_sort_index", "args": {"sort_index": position}}


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
    """Yield the browser's activities; tasks that overlap are on several threads."""
    yield from _name_events(_PAGE_PID, f"page {load.page.name}")
    start = {"data": {"documentLoaderURL": _addresses(load)[0], "isOutermostMainFrame": True}}
    yield _instant_event(_PAGE_PID, _MAIN_TID, "navigationStart", 0, frame=_FRAME_ID, **start)
    open_ends: list[list[int]] = []
    for done in sorted(
        load.trace.activities, key=lambda each: (each.began_at_ns, -each.ended_at_ns)
    ):
        resource = None if done.resource is None else load.page.resources[done.resource].id
        if done.work in _EVENT_BY_MILESTONE:
            name, data = _EVENT_BY_MILESTONE[done.work], {"frame": _FRAME_ID, "isMainFrame": True}
            yield _instant_event(_PAGE_PID, _MAIN_TID, name, done.ended_at_ns, data=data)
        elif done.work in _NAME_BY_TASK:
            tid = _MAIN_TID + _take_thread(open_ends, done.began_at_ns, done.ended_at_ns)
            name = f"{_NAME_BY_TASK[done.work]} {resource}"
            yield _duration_event(_PAGE_PID, tid, name, (done.began_at_ns, done.ended_at_ns))
    for number in range(max(1, len(open_ends))):
        name = "main thread" if number == 0 else f"main thread, overlapping {number}"
        yield from _name_events(_PAGE_PID, name, _MAIN_TID + number)
    largest_ms = load.largest_paint_ms
    if largest_ms is not None:
        name, data = "largestContentfulPaint::Candidate", {"isMainFrame": True}
        at_ns = ms(largest_ms)
        yield _instant_event(_PAGE_PID, _MAIN_TID, name, at_ns, frame=_FRAME_ID, data=data)
    yield from _name_events(_PAGE_PID, "requests", _REQUESTS_TID)


def _take_thread(open_ends: list[list[int]], start_ns: int, end_ns: int) -> int:
    """Return the first thread on which a task nests in others or is alone, and open it there.

    *open_ends* are the ends of the open tasks of each thread, the innermost last. Viewers draw the
    tasks of a thread nested.
    """
    for number, ends in enumerate(open_ends):
        while ends and ends[-1] <= start_ns:
            ends.pop()
        if not ends or end_ns <= ends[-1]:
            ends.append(end_ns)
            return number
    open_ends.append([end_ns])
    return len(open_ends) - 1


def _addresses(load: Load) -> list[str]:
    """Return the URLs of the page's resources, in their order."""
    url_by_id = addresses_of(load.page)
    return [url_by_id[resource.id] for resource in load.page.resources]


def _connection_events(load: Load, connection: Connection) -> Iterator[Event]:
    """Yield the events of a connection: one thread for the transport, and one per stream."""
    pid, trace = _FIRST_CONNECTION_PID + connection.number, connection.trace
    hosts = ", ".join(connection.hosts)
    yield from _name_events(pid, f"connection {connection.number + 1}: {hosts}")
    yield from _name_events(pid, "transport", _TRANSPORT_TID)
    for name, start_ns, end_ns in connection.lookups:
        yield _duration_event(pid, _TRANSPORT_TID, f"DNS {name}", (start_ns, end_ns))
    if connection.ready_at_ns > connection.opened_at_ns:
        times_ns = connection.opened_at_ns, connection.ready_at_ns
        yield _duration_event(pid, _TRANSPORT_TID, "handshake", times_ns)
    for row in trace.recovery:
        window = {"congestion window": row.congestion_window, "in flight": row.bytes_in_flight}
        for name, n_bytes in window.items():
            yield _counter_event(pid, f"{name} (bytes)", row.at_ns, bytes=n_bytes)
        if row.lost:
            numbers = ", ".join(map(str, row.lost))
            yield _instant_event(pid, _TRANSPORT_TID, "packets lost", row.at_ns, packets=numbers)
    yield from _blocking_events(connection, pid)
    signals = defaultdict(list)
    for at_ns, element_id, signal in trace.signals:
        signals[element_id].append((at_ns, signal))
    tid_by_stream = {}
    addresses = _addresses(load)
    for number, (request, timing) in enumerate(zip(trace.requests, timings(trace), strict=True)):
        tid_by_stream[request.stream_id] = tid = _FIRST_STREAM_TID + number
        resource = load.page.resources[request.resource]
        yield from _name_events(pid, f"stream {request.stream_id}: {resource.id}", tid)
        own_signals = signals[request.stream_id]
        yield from _stream_events(resource, request, timing, (pid, tid), own_signals)
        yield from _chrome_events(load, request, timing, own_signals, addresses, connection.number)
    dropped = set(trace.queue_drops)
    for sent_at_ns, arrived_at_ns, stream_id, _, _, packet, _ in trace.packet_rows:
        if arrived_at_ns is None and stream_id in tid_by_stream:
            tid = tid_by_stream[stream_id]
            name = "dropped by the queue" if packet in dropped else "lost on the way"
            yield _instant_event(pid, tid, name, sent_at_ns, packet=packet)


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
    """Yield request, waiting, receiving and priorities of a stream, on its own thread."""
    requested_ns, first_byte_ns = timing.requested_at_ns, timing.first_byte_at_ns
    finished_ns, discovery = timing.finished_at_ns, resource.discovered
    yield _duration_event(
        *thread,
        resource.id,
        (requested_ns, finished_ns),
        kind=resource.kind.value,
        bytes=request.length_bytes,
        above_the_fold=resource.above_the_fold,
        initiator="" if discovery is None else named_parents(discovery) or "",
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
    """Yield the events that Chrome's renderer writes about a request."""
    resource = load.page.resources[request.resource]
    requested_ns, first_byte_ns = timing.requested_at_ns, timing.first_byte_at_ns
    header_bytes = request.length_bytes - resource.size_bytes
    ids = {"requestId": f"{connection + 1}.{request.stream_id}", "frame": _FRAME_ID}

    def event(name: str, at_ns: int, **data: Any) -> Event:
        instant = _instant_event(_PAGE_PID, _REQUESTS_TID, name, at_ns, data=ids | data)
        return instant | {"cat": "devtools.timeline"}

    levels = [(at_ns, level.value) for at_ns, signal in signals if (level := level_of(signal))]
    sent: dict[str, Any] = {"url": addresses[request.resource], "requestMethod": "GET"}
    sent["resourceType"] = resource.kind.value.capitalize()
    if levels:
        _, sent["priority"] = levels[0]
    by = None if resource.discovered is None else resource.discovered.first_parent
    if by is not None:
        parent = load.page.index[by]
        by_script = load.page.resources[parent].kind is Kind.SCRIPT
        initiator = "preload" if resource.preload else "script" if by_script else "parser"
        sent["initiator"] = {"type": initiator, "url": addresses[parent]}
        sent["isLinkPreload"] = resource.preload
    yield event("ResourceSendRequest", requested_ns, **sent)
    for at_ns, name in levels[1:]:
        yield event("ResourceChangePriority", at_ns, priority=name)
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
        timing.finished_at_ns,
        didFail=False,
        encodedDataLength=request.length_bytes,
        decodedBodyLength=resource.size_bytes,
        finishTime=timing.finished_at_ns / NS_PER_S,
    )
