"""What the playground asks of h3sim: JSON in, JSON out, on SimPy and the standard library alone.

It runs in the browser, inside a web worker, and the tests run it as it is.
"""

from __future__ import annotations

import json
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import h3sim
from h3sim.load.network_path import recorded_network
from h3sim.page import page_from_dict, page_to_dict
from h3sim.reporting.labels import Palette
from h3sim.reporting.lane_layout import lane_of, window_of
from h3sim.schema.files import parse_json
from h3sim.values.errors import H3SimError, InputError

if TYPE_CHECKING:
    from collections.abc import Callable

    from h3sim.load import Load
    from h3sim.page import Page

__all__ = ["read_page", "simulate"]

_WITHOUT_ESTIMATE = "cable"
_PAGE_FORMAT = "h3sim-page/"


def simulate(request: str) -> str:
    """Return what came of the load that *request* describes.

    It has a *page* (a name, or the document of one), a *scheme*, and *options* of `LoadConfig`.
    """
    return _answered(lambda: _load_document(json.loads(request)))


def read_page(name: str, text: str) -> str:
    """Return the document of the page in a file called *name*: a page file, or a recording.

    *lines* says what was found in a recording and what had to be inferred; *network* has the rate
    and round-trip time of its network, as estimated, or of cable where they cannot be; a page that
    was not recorded has none.
    """
    return _answered(lambda: _page_document(name, text))


def _answered(answer: Callable[[], dict[str, Any]]) -> str:
    """Return what *answer* gives as JSON, or every mistake that it tells, one a line."""
    try:
        document = answer()
    except InputError as error:
        document = {"problems": error.lines()}
    except H3SimError as error:
        document = {"problems": [str(error)]}
    return json.dumps(document)


def _parent_of(page: Page, id_: str) -> str:
    """Return the id of the resource that leads to the request of another, "" without one."""
    found = page.resources[page.index[id_]].discovered
    return "" if found is None else found.first_parent or ""


def _load_document(request: dict[str, Any]) -> dict[str, Any]:
    page = _page(json.dumps(request["page"]))
    load = h3sim.simulate(page, scheme=request["scheme"], **_with_network(page, request["options"]))
    palette = Palette(page)
    window = window_of([load])
    lane = lane_of(load, window.end_ms)
    seen = [row.finished_ms for row in load.timings if row.above_the_fold]
    return {
        "scheme": load.scheme.name,
        "transport": load.protocol.value,
        "page": {"name": page.name},
        "faces": [palette.look(group).face for group in palette.groups],
        # Of a small page the legend names the resources themselves.
        "classes": [
            [entry.label, [palette.look(group).face for group in entry.groups]]
            for entry in (palette.legend() if palette.is_shared else ())
        ],
        "resources": [
            row._asdict() | {"requested_by": _parent_of(load.page, row.id)} for row in load.timings
        ],
        # The table is in the order of requests, the colours in that of the page.
        "numbers": [request.resource for request in load.trace.requests],
        "boxes": [
            [box.resource, round(box.start_ms, 3), round(box.stop_ms, 3), box.level, box.height]
            for box in lane.drawn
        ],
        "is_merged": lane.is_merged,
        "lost_ms": lane.lost_ms,
        "end_ms": window.end_ms,
        "cut": window.note,
        "above_the_fold_at_ms": max(seen, default=None),
        **_figures(load),
    }


def _with_network(page: Page, options: dict[str, Any]) -> dict[str, Any]:
    """Return *options* with a network for a recording from which none can be estimated.

    The page shows which network it is.
    """
    lacks_network = page.recorded_load is not None and page.recorded_load.lacks_network
    return {"network": _WITHOUT_ESTIMATE, **options} if lacks_network else options


def _figures(load: Load) -> dict[str, Any]:
    is_quic = load.protocol.value == "quic"
    return {
        "byte_index_ms": load.byte_index_or_none("all"),
        "byte_index_above_the_fold_ms": load.byte_index_or_none("atf"),
        "why_not_above_the_fold": load.missing_reason("atf"),
        # What waited in this load, and what would have waited in the other order.
        "blocked_bytes": load.hol.stream_bytes if is_quic else load.hol.connection_bytes,
        "blocked_in_stream_order": load.hol.stream_bytes,
        "blocked_in_one_order": load.hol.connection_bytes,
        "page_load_ms": load.page_load_ms,
        "packets": load.packets.sent,
        "lost": load.packets.lost,
        "notes": load.notes,
        "network": load.network.title,
    }


@lru_cache(maxsize=4)
def _page(key: str) -> Page:
    """Return the page that *key*, JSON, names or describes: each is read once for all schemes."""
    page: str | dict[str, Any] = json.loads(key)
    return h3sim.load_page(page) if isinstance(page, str) else page_from_dict(page)


def _page_document(name: str, text: str) -> dict[str, Any]:
    document = _parsed(text)
    if isinstance(document, dict) and str(document.get("format", "")).startswith(_PAGE_FORMAT):
        page = page_from_dict(document, source=name)
        return {"page": page_to_dict(page), "lines": [], "network": _network_of(page)}
    if document is None and f'"{_PAGE_FORMAT}' in text:
        parse_json(text, InputError, source=name)  # says in which line it is broken
    from h3sim.importers import import_page  # on use: few bring a page of their own

    with TemporaryDirectory() as folder:
        # The name is the user's: only its ending says anything, and it must not lead elsewhere.
        path = Path(folder) / f"recording{Path(name).suffix[:8]}"
        path.write_text(text, encoding="utf-8")
        try:
            imported = import_page(path)
        except InputError as error:
            raise type(error)(error.problems, name) from error
    page = imported.page
    return {
        "page": page_to_dict(page),
        "lines": imported.lines(),
        "network": _network_of(page),
    }


def _network_of(page: Page) -> dict[str, float] | None:
    """Return where the sliders of the network stand for *page*; None leaves them."""
    known = page.recorded_load
    if known is None:
        return None
    network = recorded_network(page) or h3sim.load_network(_WITHOUT_ESTIMATE)
    if network.down is None or network.down.rate_bps is None:
        return None
    return {
        "rate": round(network.down.rate_bps / 1e6, 3),
        "rtt": round(network.rtt_ns / 1e6, 1),
    }


def _parsed(text: str) -> Any:
    """Return what *text* is as JSON; None where it is none, which importing says better."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
