"""Export of a load as HAR 1.2, which waterfall viewers and DevTools open.

The format is described at http://www.softwareishard.com/blog/har-12-spec/. Values without a
standard field use the field names of chrome-har: `_initiator`, `_priority`, `_resourceType`,
`_chunks`, `_transferSize`, and of DevTools and WebPageTest: `_isLinkPreload`, `_renderBlocking`.
What no tool has a name for (what is above the fold, triggers, attributes of elements) is in
`_h3sim`, as in a page file.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote

from h3sim._version import __version__
from h3sim.browser import BrowserMode
from h3sim.engine.requests import priority_text, request_sizer
from h3sim.load.configuration import in_words
from h3sim.metrics import timings
from h3sim.page import Kind, Level
from h3sim.page.har_facts import FACTS, write_facts, write_page_facts
from h3sim.schema import check_output, write_atomically
from h3sim.signals import Eps, H2Priority
from h3sim.transport import Protocol
from h3sim.values.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from h3sim.load.load import Load
    from h3sim.load.milestones import RootRow
    from h3sim.metrics import Timing
    from h3sim.page import Page, Resource
    from h3sim.signals import Signal


_NAVIGATION_START = datetime(1970, 1, 1, tzinfo=UTC)
"""The date of every HAR: a load has none, and a fixed one makes equal loads equal bytes."""
_LEVELS = tuple(Level)
"""Chrome's priority levels, the highest first: the position is the urgency of RFC 9218."""
_LEVEL_BY_WEIGHT = dict(zip((256, 220, 183, 147, 110), _LEVELS, strict=True))
"""Chrome's mapping of its levels to HTTP/2 weights (`Spdy3PriorityToHttp2Weight`)."""
_ORIGIN = re.compile(r"https?://[^/?#]+", re.IGNORECASE)
_NOT_IN_HOST_NAME = re.compile(r"[^a-z0-9]+")
HTTP_VERSIONS = {
    Protocol.QUIC: "h3",
    Protocol.TCP: "h2",
    Protocol.HTTP1: "http/1.1",
    Protocol.QMUX: "h3",
}
"""Names of the HTTP versions in HARs and Chrome's traces."""
_FIELD_BY_PAINT = {"first_paint_ms": "_firstPaint", "largest_paint_ms": "_largestContentfulPaint"}


class _Entry(NamedTuple):
    """The data of a HAR entry: a request and its response."""

    resource: Resource
    timing: Timing
    page_id: str
    connection: int
    stream_bytes: int
    request_bytes: int
    chunks: list[dict[str, Any]]
    """Deliveries of the body's bytes, in the form of `_chunks`."""
    signals: list[tuple[int, Signal]]
    """Times and signals of its priority, in order."""


def check_har_path(path: str | Path | None, *, key: str = "") -> None:
    """Reject a path to which no HAR could be written; None is accepted.

    Raises:
        InputError: if the path is invalid.

    >>> check_har_path("load.json", key="--har")
    Traceback (most recent call last):
    ...
    h3sim.values.errors.InputError: --har: must end in .har, is 'load.json'
    """
    if path is None:
        return
    if Path(path).suffix.lower() != ".har":
        raise InputError.at(key, f"must end in .har, is {str(path)!r}")
    check_output(path, key=key)


def write_load_har(load: Load, path: str | Path) -> None:
    """Write *load* as a HAR to *path*, atomically.

    Raises:
        InputError: if the path does not end in .har, or cannot be written.
    """
    check_har_path(path)
    write_atomically(path, json.dumps(load_to_har(load), indent=1, allow_nan=False) + "\n")


def load_to_har(load: Load) -> dict[str, Any]:
    """Return *load* as a HAR 1.2 document.

    Times are rounded to microseconds; navigation starts at 1970. URLs that the page lacks are
    derived from its name, below `example`, which is reserved (RFC 2606). Decoded and transferred
    sizes are equal: a page does not record what was compressed.
    """
    addresses, tabs = addresses_of(load.page), _tabs(load)
    entries = sorted(_entries(load, tabs), key=_started_ns)  # the order that HAR 1.2 prefers
    return {
        "log": {
            "version": "1.2",
            "creator": {"name": "h3sim", "version": __version__},
            "pages": [_page_entry(load, page_id, tabs) for page_id in tabs],
            "entries": [_request_entry(load, entry, addresses) for entry in entries],
        }
    }


def level_of(signal: Signal) -> Level | None:
    """Return Chrome's priority level for *signal*, or None if it has none.

    Urgencies map to levels (an urgency above 4 to the lowest); a weight has a level if it is one of
    Chrome's, in the exclusive chain that only Chrome builds.

    >>> level_of(Eps(urgency=1)), level_of(H2Priority(weight=147, exclusive=True))
    (<Level.HIGH: 'High'>, <Level.LOW: 'Low'>)
    >>> level_of(H2Priority(weight=16)) is None
    True
    """
    if isinstance(signal, Eps):
        return _LEVELS[min(signal.urgency, len(_LEVELS) - 1)]
    if isinstance(signal, H2Priority) and signal.exclusive:
        return _LEVEL_BY_WEIGHT.get(signal.weight)
    return None


def _tab_of(page: Page, root: int) -> int:
    """Return the first root in the tab of *root*: frames and redirects are in their parent's."""
    discovered = page.resources[root].discovered
    by = None if discovered is None else discovered.first_parent
    return root if by is None else _tab_of(page, page.root_of[page.index[by]])


def _tabs(load: Load) -> dict[str, list[RootRow]]:
    """Return the tabs, each a page of the HAR, with their roots, in request order."""
    rows_by_tab: dict[int, list[RootRow]] = {}
    for row in load.roots:
        rows_by_tab.setdefault(_tab_of(load.page, load.page.index[row.id]), []).append(row)
    return {f"page_{number}": rows for number, rows in enumerate(rows_by_tab.values(), 1)}


def _page_entry(load: Load, page_id: str, tabs: dict[str, list[RootRow]]) -> dict[str, Any]:
    """Return one tab as HAR's "page"."""
    rows, title = tabs[page_id], load.page.name
    begun_ms = _tab_began_ms(page_id, tabs)
    comment_parts = [load.scheme.name, *in_words(load.spec).values(), f"page {load.page.digest}"]
    return {
        "id": page_id,
        "startedDateTime": _format_date(round(begun_ms * 1000)),
        "title": title if len(tabs) == 1 else f"{title}: {rows[0].id}",
        "pageTimings": _page_timings(load) if len(tabs) == 1 else _tab_timings(rows, begun_ms),
        "comment": ", ".join(comment_parts),
        FACTS: write_page_facts(
            load.page, has_connections_per_host=_has_connections_per_host(load)
        ),
    }


def _has_connections_per_host(load: Load) -> bool:
    return load.spec.hosts is not None


def _tab_began_ms(page_id: str, tabs: dict[str, list[RootRow]]) -> float:
    """Return when a tab began: at navigation start, or with the request for its root."""
    # The first root is requested later than navigation start, once its connection is ready; that
    # time is part of the page in a HAR.
    first_page_id, first_root = next(iter(tabs)), tabs[page_id][0]
    return 0.0 if page_id == first_page_id else first_root.requested_ms


def _tab_timings(rows: list[RootRow], begun_ms: float) -> dict[str, float]:
    """Return the milestones of one of several tabs, from its own start on."""

    def times_ms(name: str) -> list[float]:
        return [
            row.requested_ms - begun_ms + at_ms
            for row in rows
            if (at_ms := getattr(row, name)) is not None
        ]

    painted_ms = times_ms("first_paint_ms")
    timings = {
        "onContentLoad": max(times_ms("dom_content_loaded_ms"), default=-1),
        "onLoad": max(times_ms("load_event_ms") or times_ms("finished_ms")),
    }
    return timings | ({"_firstPaint": min(painted_ms)} if painted_ms else {})


def _page_timings(load: Load) -> dict[str, float]:
    """Return the milestones; -1 means unknown (HAR 1.2, pageTimings)."""
    parsed_ms, loaded_ms = load.dom_content_loaded_ms, load.load_event_ms
    timings = {
        "onContentLoad": -1 if parsed_ms is None else parsed_ms,
        "onLoad": load.page_load_ms if loaded_ms is None else loaded_ms,
    }
    for attribute, field in _FIELD_BY_PAINT.items():
        at_ms = getattr(load, attribute)
        if at_ms is not None:
            timings[field] = at_ms
    return timings


def _entries(load: Load, tabs: dict[str, list[RootRow]]) -> Iterator[_Entry]:
    """Yield the entries in request order."""
    page_ids = {load.page.index[row.id]: id_ for id_, rows in tabs.items() for row in rows}
    chunks = _chunks(load)
    begun_ms = {id_: _tab_began_ms(id_, tabs) for id_ in tabs}
    signals: defaultdict[int, list[tuple[int, Signal]]] = defaultdict(list)
    for at_ns, element_id, signal in load.trace.signals:
        signals[element_id].append((at_ns, signal))
    # Each connection has its own dynamic table, which compresses its requests.
    make_sizer = partial(request_sizer, load.page, load.spec.link_protocol)
    sizers: defaultdict[int, Callable[[Resource], int]] = defaultdict(make_sizer)
    trace = load.trace
    connections = trace.connection_of or (0,) * len(trace.requests)
    rows = zip(trace.requests, timings(trace), connections, strict=True)
    for request, timing, connection in rows:
        resource = load.page.resources[request.resource]
        stream_id = request.stream_id
        page_id = page_ids[load.page.root_of[request.resource]]
        deliveries = [
            {**chunk, "ts": round(chunk["ts"] - begun_ms[page_id], 3)}
            for chunk in chunks.get(stream_id, ())
        ]
        yield _Entry(
            resource,
            timing,
            page_id,
            connection,
            request.length_bytes,
            sizers[connection](resource),
            deliveries,
            signals[stream_id],
        )


def _started_ns(entry: _Entry) -> int:
    """Return when an entry began: in a HAR the first one includes connection setup."""
    return 0 if entry.resource.discovered is None else entry.timing.requested_at_ns


def _chunks(load: Load) -> dict[int, list[dict[str, Any]]]:
    """Return for each stream the times and numbers of body bytes delivered, as `_chunks`."""
    columns = load.trace.packet_rows.columns
    ends = map(sum, zip(columns.offset, columns.length_bytes, strict=True))
    rows = zip(columns.delivered_at_ns, columns.stream_id, ends, strict=True)
    # By time, then by stream and end: of data delivered together, the lower offsets come first.
    deliveries = sorted(
        (at_ns, stream_id, end) for at_ns, stream_id, end in rows if at_ns is not None
    )
    header_bytes = {
        request.stream_id: request.length_bytes - load.page.resources[request.resource].size_bytes
        for request in load.trace.requests
    }
    chunks_by_stream: dict[int, list[dict[str, Any]]] = {}
    # A stream is delivered in order: all bytes up to the end of a row arrived with it, or before.
    delivered_bytes = dict(header_bytes)
    for at_ns, stream_id, end in deliveries:
        n_bytes = end - delivered_bytes[stream_id]
        if n_bytes <= 0:
            continue
        delivered_bytes[stream_id] = end
        chunks, ts = chunks_by_stream.setdefault(stream_id, []), _to_ms(_to_us(at_ns))
        if chunks and chunks[-1]["ts"] == ts:
            chunks[-1]["bytes"] += n_bytes
        else:
            chunks.append({"ts": ts, "bytes": n_bytes})
    return chunks_by_stream


def _request_entry(load: Load, entry: _Entry, addresses: dict[str, str]) -> dict[str, Any]:
    """Return one request as HAR's "entry"."""
    resource, timing = entry.resource, entry.timing
    requested_us, first_byte_us = _to_us(timing.requested_at_ns), _to_us(timing.first_byte_at_ns)
    finished_us = _to_us(timing.finished_at_ns)
    start_us = _to_us(_started_ns(entry))
    version = HTTP_VERSIONS[load.protocol]
    header_bytes = entry.stream_bytes - resource.size_bytes
    return {
        "pageref": entry.page_id,
        "startedDateTime": _format_date(start_us),
        "time": _to_ms(finished_us - start_us),
        "request": {
            "method": "GET",
            "url": addresses[resource.id],
            "httpVersion": version,
            "cookies": [],
            "headers": _request_headers(entry),
            "queryString": [],
            "headersSize": entry.request_bytes,
            "bodySize": 0,
        },
        "response": _response_entry(resource, version, header_bytes),
        "cache": {},
        "timings": {
            "blocked": -1,
            "dns": -1,
            "connect": _to_ms(requested_us - start_us) if requested_us > start_us else -1,
            "ssl": -1,
            "send": 0,
            "wait": _to_ms(first_byte_us - requested_us),
            "receive": _to_ms(finished_us - first_byte_us),
        },
        "connection": str(entry.connection + 1),  # "0" means unknown in HARs of DevTools
        "_resourceType": resource.kind.value,
        **_initiator_fields(load.page, resource, addresses),
        **({"_isLinkPreload": True} if resource.preload else {}),
        **({"_renderBlocking": "blocking"} if resource.render_blocking else {}),
        **_priority_fields(entry),
        "_chunks": entry.chunks,
        FACTS: write_facts(
            resource,
            has_triggers=load.spec.browser.mode is BrowserMode.REPLAY,
            has_connections_per_host=_has_connections_per_host(load),
        ),
    }


def _response_entry(resource: Resource, version: str, header_bytes: int) -> dict[str, Any]:
    """Return HAR's "response"."""
    # An empty body of status 200 would be read as one of unknown size.
    is_empty = resource.size_bytes == 0
    return {
        "status": 204 if is_empty else 200,
        "statusText": "",
        "httpVersion": version,
        "cookies": [],
        "headers": [],
        "content": {"size": resource.size_bytes, "mimeType": resource.mime},
        "redirectURL": "",
        "headersSize": header_bytes,
        "bodySize": resource.size_bytes,
        "_transferSize": header_bytes + resource.size_bytes,
    }


def _request_headers(entry: _Entry) -> list[dict[str, str]]:
    """Return the Priority field (RFC 9218 § 5), the only one whose value a load knows."""
    values = [signal.field_value for _, signal in entry.signals[:1] if isinstance(signal, Eps)]
    return [{"name": "priority", "value": value} for value in values if value]


def _initiator_fields(page: Page, resource: Resource, addresses: dict[str, str]) -> dict[str, Any]:
    """Return the resource that led to this one, as Chrome's HAR names it."""
    by = None if resource.discovered is None else resource.discovered.first_parent
    if by is None:
        return {"_initiator_type": "other"}
    parent = page.resources[page.index[by]]
    kind = "script" if parent.kind is Kind.SCRIPT else "parser"
    return {
        "_initiator": addresses[parent.id],
        "_initiator_type": "preload" if resource.preload else kind,
    }


def _priority_fields(entry: _Entry) -> dict[str, Any]:
    """Return the priority: as Chrome's level, if it is one, and as it was signalled."""
    if not entry.signals:
        return {}
    (_, first), *later = entry.signals
    level = level_of(first)
    fields: dict[str, Any] = {}
    if level is not None:
        fields |= {"_initialPriority": level.value, "_priority": level.value}
    fields["_prioritySignal"] = priority_text(first)
    if later:
        fields["_priorityChanges"] = [
            {"ts": _to_ms(_to_us(at_ns)), "signal": priority_text(signal)}
            for at_ns, signal in later
        ]
    return fields


def _to_us(at_ns: int) -> int:
    """Return an instant in microseconds, rounded to nearest: the precision of dates here.

    All durations are computed from such instants, so that a request triggered by a completion does
    not start before it.
    """
    # Halves up: `round` would sometimes round them up and sometimes down, to the even neighbour.
    return (at_ns + 500) // 1000


def _to_ms(us: int) -> float:
    return us / 1000


def _format_date(at_us: int) -> str:
    when = _NAVIGATION_START + timedelta(microseconds=at_us)
    return when.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def addresses_of(page: Page) -> dict[str, str]:
    """Return the URL of each resource by its id."""
    match = _ORIGIN.match(page.url)
    # A label of a host name has at most 63 characters (RFC 1035 § 2.3.4).
    host = _NOT_IN_HOST_NAME.sub("-", page.name.lower()).strip("-")[:63].strip("-") or "page"
    page_origin = match[0] if match else f"https://{host}.example"
    return {resource.id: _address(page_origin, resource.id) for resource in page.resources}


def _address(page_origin: str, id_: str) -> str:
    """Return the URL of a resource, whose id may be a URL, or a name below the page's origin."""
    if match := _ORIGIN.match(id_):
        return match[0] + quote(id_[match.end() :], safe="/?&=:;,+@!$'()*~%")
    # A name has no query: `?` and `#` are quoted.
    return f"{page_origin}/{quote(id_.removeprefix('/'), safe='/:;,+@!$()*~')}"
