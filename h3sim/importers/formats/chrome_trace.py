"""Chrome traces, as saved by DevTools' Performance panel, `chrome://tracing` and Lighthouse.

A trace is a list of events, or an object with that list as `traceEvents` ("Trace Event Format").
Its `Resource*` events have the same fields as those of the Network domain, so they are translated
and read as a protocol log. Tasks of the main thread add the CPU time of each resource and the
script that was running when a request was made; paint events add milestones, the largest element
and the visible rectangles of each image.

Events may be in any order: each thread writes its own buffer.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import defaultdict
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

from h3sim.importers.formats.devtools import NetworkEvents, RecordedExchange, join_redirects
from h3sim.importers.formats.har import started_at
from h3sim.importers.paints import (
    FINISH_REQUEST,
    FIRST_PAINT,
    LARGEST_PAINT,
    OBJECT_PAINTED,
    VIEWPORT,
    paint_event,
    paints_of,
)
from h3sim.importers.recorded_request import SizeSource, kind_of, visible_rectangles
from h3sim.importers.request_fields import without_fragment
from h3sim.importers.source import Fields, JsonPart
from h3sim.importers.trace_tasks import (
    PARSE_HTML,
    SCRIPT_TASKS,
    US_PER_MS,
    WORKED_ON,
    TraceTask,
    number_in,
    outer_first,
    table_in,
    task_of,
    thread_of,
    work_of,
)
from h3sim.page import Kind, Rectangle
from h3sim.page.recording import MAX_PX
from h3sim.schema import is_quantity

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from h3sim.importers.paints import PaintEvent
    from h3sim.importers.recorded_request import Recording


_US_PER_S = 1_000_000
_TASK = "RunTask"
_VISIBILITY = "IntersectionObserverController::computeIntersections"


_WILL_SEND_REQUEST = "ResourceWillSendRequest"
_SEND_REQUEST = "ResourceSendRequest"
_RECEIVE_RESPONSE = "ResourceReceiveResponse"
_PROTOCOL_EVENT_BY_NAME = {
    _WILL_SEND_REQUEST: "",
    _SEND_REQUEST: "requestWillBeSent",
    _RECEIVE_RESPONSE: "responseReceived",
    FINISH_REQUEST: "loadingFinished",
    "ResourceChangePriority": "resourceChangedPriority",
    "ResourceMarkAsCached": "requestServedFromCache",
    "ResourceReceivedData": "dataReceived",
}
"""Trace events of requests, with the equivalent event of the Network domain; "" for none."""
_NAVIGATION_START = "navigationStart"
_LOAD_EVENTS = ("MarkLoad", "loadEventEnd")
_LARGEST_IMAGE = "LargestImagePaint::Candidate"
_LARGEST_TEXT = "LargestTextPaint::Candidate"
_EVENT_LIST_PATHS = ((), ("traceEvents",))
"""Keys under which a file may have its list of events; none if it is the list."""
_SERVICE_WORKER_THREAD = "ServiceWorker thread"
_REDIRECT_STATUS = 302
"""Stands for the status of any redirect, which a trace does not have."""
_MARK_NAMES = frozenset(
    (
        _NAVIGATION_START,
        *_LOAD_EVENTS,
        FIRST_PAINT,
        LARGEST_PAINT,
        _LARGEST_IMAGE,
        _LARGEST_TEXT,
        VIEWPORT,
        OBJECT_PAINTED,
    )
)
"""Events of navigations, milestones and paints."""


class _Event(NamedTuple):
    """Trace event with a valid time."""

    at_us: float
    name: str
    thread: tuple[str, str]
    data: dict[str, Any]
    frame: str
    key: str
    """Its position in the file."""


class ChromeTrace:
    """Reader of the events of a trace; `finish` puts the requests in the recording."""

    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        self._network_events: list[_Event] = []
        self._marks: list[_Event] = []
        self._tasks: list[TraceTask] = []
        self._task_starts_us: defaultdict[tuple[str, str], list[float]] = defaultdict(list)
        self._layouts_us: defaultdict[tuple[str, str], list[float]] = defaultdict(list)
        """Times by thread: of its tasks, and of when it computed what is visible."""
        self._last_line: dict[str, int] = {}
        """Number of the last line that was parsed of each document, by URL."""
        self._paint_events: list[PaintEvent] = []
        self._service_worker_threads: set[tuple[str, str]] = set()

    def add(self, part: JsonPart) -> None:
        """Process an event, or the metadata of the trace."""
        if part.path == ("metadata",) and isinstance(part.value, dict):
            metadata = Fields(part.value, part.key, self._recording.note)
            self._recording.set_tool(metadata.text("source"), metadata.name("product-version"))
            started = started_at(metadata.name("startTime"))
            self._recording.recorded = "" if started is None else started.day
        if part.path not in _EVENT_LIST_PATHS or part.item is None:
            return
        fields = Fields.of(part, self._recording.note)
        if fields is None:
            return
        self._recording.found["events"] += 1
        name = fields.raw("name")
        if not isinstance(name, str):
            return
        if name in _PROTOCOL_EVENT_BY_NAME or name in _MARK_NAMES:
            self._keep_event(fields, name, thread_of(part.value))
        elif (
            name == "thread_name"
            and table_in(part.value, "args").get("name") == _SERVICE_WORKER_THREAD
        ):
            self._service_worker_threads.add(thread_of(part.value))
        elif name in (_TASK, _VISIBILITY) and (at_us := number_in(part.value, "ts")) is not None:
            times_us = self._task_starts_us if name == _TASK else self._layouts_us
            times_us[thread_of(part.value)].append(at_us)
        elif (task := task_of(part.value)) is not None:
            self._tasks.append(task)
            if name == PARSE_HTML:
                self._count_lines(task.url, table_in(part.value, "args"))
        if (mark := paint_event(part.value)) is not None:
            self._paint_events.append(mark)

    def _count_lines(self, url: str, args: dict[str, Any]) -> None:
        """Note how far a document was parsed; what a script parses (`innerHTML`) has a stack."""
        last = table_in(args, "endData").get("endLine")
        if isinstance(last, int) and "stackTrace" not in table_in(args, "beginData"):
            self._last_line[url] = max(last, self._last_line.get(url, 0))

    def _keep_event(self, fields: Fields, name: str, thread: tuple[str, str]) -> None:
        at_us = fields.number("ts")
        if at_us is None:
            fields.wrong("ts", "skipped: is missing")
            return
        args = fields.table("args")
        data = args.table("data")
        frame = args.text("frame") or data.text("frame")
        event = _Event(at_us, name, thread, table_in(fields.raw("args"), "data"), frame, data.key)
        (self._marks if name in _MARK_NAMES else self._network_events).append(event)

    def finish(self) -> None:
        """Add the requests of the chosen load, and what the trace knows of each."""
        recording = self._recording
        self._marks.sort(key=_at_us)
        begun, ended_us = self._chosen_navigation()
        exchanges = self._exchanges()
        if begun is not None:
            chosen = [each for each in exchanges if begun.at_us <= _start_us(each) < ended_us]
            recording.left_out["of another page of the recording"] += len(exchanges) - len(chosen)
            recording.begun_ms = begun.at_us / US_PER_MS
            marks = [mark for mark in self._marks if begun.at_us <= mark.at_us < ended_us]
            exchanges = chosen
            self._add_paints(exchanges, begun, marks, ended_us)
        join_redirects(exchanges)
        self._set_reference_offsets(exchanges)
        work = work_of(self._tasks, exchanges)
        for exchange in exchanges:
            if exchange.url in work and kind_of(exchange)[0] in WORKED_ON:
                work[exchange.url].add_to(exchange)
        recording.requests += exchanges

    def _chosen_navigation(self) -> tuple[_Event | None, float]:
        """Return the start of the chosen load, and the start of the next one."""
        marks = [
            mark for mark in self._marks if mark.name == _NAVIGATION_START and _is_page(mark.data)
        ]
        # Old traces do not mark navigations of other frames: the page's own is the first.
        starts = [*{mark.at_us: mark for mark in marks if mark.frame == marks[0].frame}.values()]
        index = self._recording.choose_page(len(starts))
        if index is None:
            return None, math.inf
        begun, *rest = starts[index:]
        return begun, rest[0].at_us if rest else math.inf

    def _exchanges(self) -> list[RecordedExchange]:
        """Return the requests, read as the events of a protocol log."""
        recording, reader = self._recording, NetworkEvents(self._recording.note)
        self._network_events.sort(key=_at_us)
        callers = self._running_scripts()
        waiting: set[object] = set()
        # `waiting` has the requests under way: another one with the same id is a redirect.
        for event in _with_true_starts(self._network_events):
            if event.name == _SEND_REQUEST and event.thread in self._service_worker_threads:
                recording.left_out["made by a service worker"] += 1
                continue
            if event.name == _SEND_REQUEST and not recording.has_room(len(reader.exchanges)):
                continue
            request_id = event.data.get("requestId")
            params = {"timestamp": event.at_us / _US_PER_S} | _PROTOCOL_PARAMS[event.name](event)
            if event.name == _SEND_REQUEST:
                params["initiator"] = _initiator(event.data, callers.get(event.key, ""))
                if isinstance(request_id, str) and request_id in waiting:
                    params["redirectResponse"] = {"status": _REDIRECT_STATUS}
                waiting.add(request_id if isinstance(request_id, str) else "")
            elif event.name == FINISH_REQUEST and isinstance(request_id, str):
                waiting.discard(request_id)
            method = (
                "loadingFailed"
                if event.data.get("didFail") is True
                else _PROTOCOL_EVENT_BY_NAME[event.name]
            )
            params["requestId"] = request_id
            reader.add(f"Network.{method}", Fields(params, event.key, recording.note))
        exchanges = reader.finish()
        for exchange in exchanges:
            # A trace does not know the headers of requests and of redirects.
            exchange.request_bytes, exchange.request_from = None, SizeSource.NONE
            exchange.pieces = tuple((at_ms, n_plain) for at_ms, _, n_plain in exchange.chunks)
            exchange.stretch_pieces()
            if (before := exchange.redirected_from) is not None:
                before.header_bytes, before.header_from = None, SizeSource.NONE
        return exchanges

    def _set_reference_offsets(self, exchanges: Sequence[RecordedExchange]) -> None:
        """Set the offset of each reference in a document, and mark lazy images.

        Layout requests lazy images: once it has told what is visible, in the same task. Of these,
        and of images that a promise's callback inserts, Chromium tells where the parser stands, if
        it still does, which several of them share. These are no references.
        """
        of_layout = self._requests_of_layout()
        at_position: defaultdict[tuple[str, int, int], list[RecordedExchange]] = defaultdict(list)
        for exchange in exchanges:
            asked, is_image = exchange.asked_by, exchange.kind is Kind.IMAGE
            if is_image and asked.type in ("parser", "other") and exchange.key in of_layout:
                exchange.flags = {"is_lazy": True}
                exchange.initiator = asked.url or self._url_of_frame(exchange, exchanges)
            if asked.type == "parser" and asked.line is not None:
                at_position[asked.url, asked.line, asked.column].append(exchange)
        for document in exchanges:
            last_line = self._last_line.get(document.url)
            if last_line is None or kind_of(document)[0] is not Kind.DOCUMENT:
                continue
            positions = [(line, column) for url, line, column in at_position if url == document.url]
            offsets = _offsets_of(positions, last_line + 1, document.decoded_bytes or 0)
            for (line, column), offset in offsets.items():
                there = at_position[document.url, line, column]
                images = {each.url for each in there if each.kind is Kind.IMAGE and not each.flags}
                for exchange in there:
                    if exchange.url in images and len(images) > 1:
                        exchange.initiator, exchange.initiator_type = "", "other"
                    else:
                        exchange.offset = offset

    def _requests_of_layout(self) -> set[str]:
        """Return the keys of the requests in whose task it was computed before what is visible."""
        found: set[str] = set()
        for thread, layouts_us in self._layouts_us.items():
            layouts_us.sort()
            begun_us = sorted(self._task_starts_us[thread])
            for event in self._network_events:
                if event.thread == thread and event.name == _SEND_REQUEST and begun_us:
                    last_task = bisect_right(begun_us, event.at_us) - 1
                    last_layout = bisect_right(layouts_us, event.at_us) - 1
                    if min(last_task, last_layout) >= 0:
                        is_inside = layouts_us[last_layout] >= begun_us[last_task]
                        found |= {event.key} if is_inside else set()
        return found

    def _url_of_frame(
        self, exchange: RecordedExchange, exchanges: Sequence[RecordedExchange]
    ) -> str:
        """Return the URL of the document of the frame that made a request, "" if unknown."""
        documents = (
            each.url
            for each in exchanges
            if kind_of(each)[0] is Kind.DOCUMENT and each.frame_id == exchange.frame_id
        )
        return next(documents, "")

    def _running_scripts(self) -> dict[str, str]:
        """Return the URL of the script that was running at each request, by the event's key."""
        upcoming: defaultdict[tuple[str, str], list[TraceTask]] = defaultdict(list)
        for task in self._tasks:
            if task.name in SCRIPT_TASKS and task.url:
                upcoming[task.thread].append(task)
        for tasks in upcoming.values():
            tasks.sort(key=outer_first, reverse=True)  # the next one is the last
        running: defaultdict[tuple[str, str], list[TraceTask]] = defaultdict(list)
        found: dict[str, str] = {}
        for event in self._network_events:
            later, stack = upcoming[event.thread], running[event.thread]
            while later and later[-1].start_us <= event.at_us:
                task = later.pop()
                while stack and stack[-1].end_us <= task.start_us:
                    stack.pop()
                stack.append(task)
            while stack and stack[-1].end_us < event.at_us:
                stack.pop()
            if stack and event.name == _SEND_REQUEST:
                found[event.key] = stack[-1].url
        return found

    def _add_paints(
        self,
        exchanges: Sequence[RecordedExchange],
        begun: _Event,
        marks: Sequence[_Event],
        ended_us: float,
    ) -> None:
        """Add milestones, the largest element and the visible rectangles of images."""
        times_ms = self._recording.times_ms
        of_page = [mark for mark in marks if mark.frame in ("", begun.frame)]
        loaded_us = [mark.at_us for name in _LOAD_EVENTS for mark in of_page if mark.name == name]
        if loaded_us:
            times_ms["load_event"] = (loaded_us[0] - begun.at_us) / US_PER_MS
        painted_us = next((mark.at_us for mark in of_page if mark.name == FIRST_PAINT), None)
        if painted_us is not None:
            times_ms["fcp"] = (painted_us - begun.at_us) / US_PER_MS
        largest = next((mark for mark in reversed(of_page) if mark.name == LARGEST_PAINT), None)
        hero_url = None if largest is None else _largest_url(largest, of_page)
        if largest is not None:
            times_ms["largest_paint"] = (largest.at_us - begun.at_us) / US_PER_MS
        self._recording.paints = paints_of(
            (each for each in self._paint_events if begun.at_us <= each.start_us < ended_us),
            (each for each in self._tasks if begun.at_us <= each.start_us < ended_us),
            exchanges,
            frame=begun.frame,
            hero=hero_url or "",
        )
        viewport_px = _viewport_px(exchanges, of_page)
        rectangles = {} if viewport_px is None else _painted_rectangles(viewport_px, of_page)
        self._recording.viewport_px = viewport_px
        documents = [each for each in exchanges if kind_of(each)[0] is Kind.DOCUMENT]
        for exchange in documents:
            exchange.is_framed = exchange.frame_id not in ("", begun.frame)
        images = [exchange for exchange in exchanges if exchange.kind is Kind.IMAGE]
        for exchange in images:
            exchange.rectangles = rectangles.get(exchange.url, ())
        heroes = [exchange for exchange in images if exchange.url == hero_url]
        if hero_url is not None and not heroes:
            # A text, or an image in a data: URL: it came with the document, the last of its hops.
            heroes = [each for each in documents if not each.is_framed][-1:]
        for exchange in heroes:
            exchange.is_hero = True


def _offsets_of(
    positions: Iterable[tuple[int, int]], n_lines: int, n_bytes: int
) -> dict[tuple[int, int], int]:
    """Return the offsets of lines and columns in a text of which only its size is known.

    A line is as long as the last column that is known in it. What is left of the text is taken as
    spread evenly over the lines.

    >>> _offsets_of([(1, 30), (0, 20), (2, 5)], n_lines=3, n_bytes=85)
    {(0, 20): 20, (1, 30): 60, (2, 5): 75}
    """
    in_order = sorted({*positions})
    longest = dict(in_order)
    spare = max(0, n_bytes - sum(longest.values())) // n_lines
    found: dict[tuple[int, int], int] = {}
    before = 0  # columns of the lines above that are known
    for (line, column), (next_line, _) in pairwise([*in_order, (n_lines, 0)]):
        found[line, column] = min(before + line * spare + column, n_bytes)
        before += longest[line] if next_line > line else 0
    return found


def _at_us(event: _Event) -> float:
    return event.at_us


def _start_us(exchange: RecordedExchange) -> float:
    return exchange.requested_ms * US_PER_MS


def _is_page(start: dict[str, Any]) -> bool:
    """Return whether a navigation is that of a page: of the main frame, to a web address."""
    url = start.get("documentLoaderURL", "http")  # old traces have no address
    is_main = start.get("isOutermostMainFrame", start.get("isLoadingMainFrame")) is not False
    return is_main and isinstance(url, str) and url.startswith("http")


def _with_true_starts(events: Sequence[_Event]) -> list[_Event]:
    """Return the events by time, with requests of documents at the time when they were made.

    The renderer reports the request of its document only when the document arrives. It was made
    when the browser announced it or, after redirects, when it was sent, which the response has.
    """
    announced_us: dict[object, float] = {}
    sent_us: dict[object, float] = {}
    last_send: dict[object, int] = {}
    for index, event in enumerate(events):
        request_id = event.data.get("requestId")
        if not isinstance(request_id, str):
            continue
        if event.name == _WILL_SEND_REQUEST:
            announced_us.setdefault(request_id, event.at_us)
        elif event.name == _SEND_REQUEST:
            last_send[request_id] = index
        elif event.name == _RECEIVE_RESPONSE:
            requested_s = number_in(table_in(event.data, "timing"), "requestTime")
            sent_us |= {request_id: requested_s * _US_PER_S} if requested_s else {}
    moved = []
    for index, event in enumerate(events):
        request_id = event.data.get("requestId")
        if event.name == _SEND_REQUEST and isinstance(request_id, str):
            # Popped, as the announcement is that of the first hop only.
            made_us = announced_us.pop(request_id, event.at_us)
            if made_us == event.at_us and last_send[request_id] == index:
                made_us = min(made_us, sent_us.get(request_id, made_us))
            event = event._replace(at_us=min(made_us, event.at_us))
        if event.name != _WILL_SEND_REQUEST:
            moved.append(event)
    return sorted(moved, key=_at_us)


def _initiator(data: dict[str, Any], caller: str) -> object:
    """Return the initiator; without a stack, it is *caller*, the script that was running."""
    initiator = data.get("initiator")
    type_ = initiator.get("type") if isinstance(initiator, dict) else None
    if type_ not in (None, "script"):
        return initiator
    calls = data.get("stackTrace")
    if not isinstance(calls, list):
        calls = [{"url": caller}] if caller else None
    return initiator if calls is None else {"type": "script", "stack": {"callFrames": calls}}


_TYPE_BY_FETCH_TYPE = {"fetch": "Fetch", "xmlhttprequest": "XHR"}
"""Types of requests that a trace calls `Other`, by the API with which they were made."""


def _request_params(event: _Event) -> dict[str, Any]:
    data = event.data
    fetch_type = table_in(data, "initiator").get("fetchType")
    return {
        "request": {
            "url": data.get("url"),
            "method": data.get("requestMethod"),
            "initialPriority": data.get("priority"),
            "isLinkPreload": data.get("isLinkPreload"),
        },
        "type": _TYPE_BY_FETCH_TYPE.get(str(fetch_type)) or data.get("resourceType"),
        "frameId": data.get("frame"),
        "renderBlockingBehavior": data.get("renderBlocking"),
    }


def _response_params(event: _Event) -> dict[str, Any]:
    data, fields = event.data, event.data.get("headers")
    headers: dict[str, str] = {}
    for field in fields if isinstance(fields, list) else ():
        pair = field if isinstance(field, dict) else {}
        name, value = pair.get("name"), pair.get("value")
        if isinstance(name, str) and isinstance(value, str):
            # The protocol joins fields of one name with line feeds.
            headers[name] = f"{headers[name]}\n{value}" if name in headers else value
    response = data | {
        "status": data.get("statusCode"),
        "headers": headers,
        "fromDiskCache": data.get("fromCache"),
    }
    return {"response": response, "hasExtraInfo": False}


def _finish_params(event: _Event) -> dict[str, Any]:
    at_s = number_in(event.data, "finishTime")
    params = {"encodedDataLength": event.data.get("encodedDataLength")}
    return params | ({"timestamp": at_s} if at_s else {})


_PROTOCOL_PARAMS: dict[str, Callable[[_Event], dict[str, Any]]] = {
    _SEND_REQUEST: _request_params,
    _RECEIVE_RESPONSE: _response_params,
    FINISH_REQUEST: _finish_params,
    "ResourceChangePriority": lambda event: {"newPriority": event.data.get("priority")},
    "ResourceMarkAsCached": lambda _: {},
    # Despite its name it counts bytes of the decoded body.
    "ResourceReceivedData": lambda event: {"dataLength": event.data.get("encodedDataLength")},
}
"""Translations of trace events into parameters of the equivalent protocol events."""


def _largest_url(largest: _Event, marks: Sequence[_Event]) -> str | None:
    """Return the URL of the largest contentful paint, "" of a text; None if it is not told."""
    node = largest.data.get("nodeId")
    for mark in reversed(marks):
        if mark.name in (_LARGEST_IMAGE, _LARGEST_TEXT) and mark.data.get("DOMNodeId") == node:
            url = mark.data.get("imageUrl")
            return without_fragment(url) if isinstance(url, str) else ""
    return None


def _viewport_px(
    exchanges: Sequence[RecordedExchange], marks: Sequence[_Event]
) -> tuple[float, float] | None:
    """Return width and height of the viewport in CSS pixels, None if it is unknown."""
    arrived_ms = next(
        (exchange.first_byte_ms for exchange in exchanges if exchange.first_byte_ms is not None),
        0.0,
    )
    # The first viewport of a mobile page, before its document, is wider than the screen; frames
    # and SVG images have smaller ones.
    sizes = [
        (width, height)
        for mark in marks
        if mark.name == VIEWPORT and mark.at_us >= arrived_ms * US_PER_MS
        for _, _, width, height in [_rectangle(mark.data.get("viewport_rect"))]
        if 1 <= width <= MAX_PX and 1 <= height <= MAX_PX
    ]
    return max(sizes, key=math.prod, default=None)


def _painted_rectangles(
    viewport_px: tuple[float, float], marks: Sequence[_Event]
) -> dict[str, tuple[Rectangle, ...]]:
    """Return the rectangle in which each image was last painted, by URL."""
    painted: dict[tuple[str, str], tuple[float, float, float, float]] = {}
    for mark in marks:
        url, node = mark.data.get("image_url"), str(mark.data.get("dom_node_id"))
        if mark.name == OBJECT_PAINTED and isinstance(url, str):
            # An image that is painted again may have moved.
            painted[without_fragment(url), node] = _rectangle(mark.data.get("rect"))
    by_url: defaultdict[str, list[tuple[float, float, float, float]]] = defaultdict(list)
    for (url, _), rectangle in painted.items():
        by_url[url].append(rectangle)
    return visible_rectangles(viewport_px, by_url)


def _rectangle(corners: object) -> tuple[float, float, float, float]:
    """Return x, y, width and height of a rectangle given by its corners: x and y, four times."""
    if not isinstance(corners, list) or not all(map(is_quantity, corners)) or len(corners) != 8:
        return 0.0, 0.0, 0.0, 0.0
    left, top, right, bottom = corners[0], corners[1], corners[4], corners[5]
    return left, top, right - left, bottom - top
