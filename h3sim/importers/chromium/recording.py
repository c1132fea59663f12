"""Recordings of pages in Chromium: served, loaded several times, aggregated, made into a page."""

from __future__ import annotations

import datetime
import os
import statistics
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

from h3sim._version import __version__
from h3sim.errors import InputError, ValidationIssue
from h3sim.importers.chromium.browser import ChromiumError, find_chromium, running_chromium
from h3sim.importers.chromium.navigation import Timeouts, visit
from h3sim.importers.chromium.navigation_reader import (
    VisitReader,
    complete_exchanges,
    exchanges_of,
    is_favicon,
)
from h3sim.importers.chromium.web_server import COMPRESSIONS, Site, address_of, served
from h3sim.importers.css import HEIGHT_PX, WIDTH_PX
from h3sim.importers.page_assembly import assemble
from h3sim.importers.recorded_request import Recording
from h3sim.page import FLAGS, Page, Resource
from h3sim.schema import shown_path
from h3sim.schema.arguments import check_arguments
from h3sim.schema.output import (
    NUMBER,
    NUMBER_OR_NONE,
    TEXT,
    VERSION,
    OutputSchema,
    Property,
    rows_of,
)
from h3sim.schema.values import Choice, Integer, ListOf, Scalar

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from h3sim.importers.chromium.navigation import Navigation
    from h3sim.importers.formats.devtools import RecordedExchange


Row = tuple[object, ...]


def graph_of(page: Page) -> dict[str, Row]:
    """Return the facts that should be equal in all recordings, by id: kind, parent, flags."""
    rows: dict[str, Row] = {}
    for resource in page.resources:
        found = resource.discovered
        trigger = (found.by, found.at.value) if found is not None else None
        flags = tuple(name for name, attribute in FLAGS.items() if getattr(resource, attribute))
        rows[resource.id] = (resource.kind.value, trigger, flags, resource.fetchpriority.value)
    return rows


def merged(pages: Sequence[Page]) -> tuple[Page, int]:
    """Aggregate several recordings into one page; return it and the index of its base recording.

    Graph, sizes and order are those of the first recording with the most frequent graph; times are
    medians over the recordings with that graph.
    """
    graphs = [graph_of(page) for page in pages]
    # The first of equally frequent ones.
    index = max(range(len(pages)), key=lambda n: (graphs.count(graphs[n]), -n))
    alike = [page for page, graph in zip(pages, graphs, strict=True) if graph == graphs[index]]
    page = pages[index]
    return replace(page, resources=tuple(_middle(r, alike) for r in page.resources)), index


def _middle(resource: Resource, pages: Sequence[Page]) -> Resource:
    same = [page.resources[page.index[resource.id]] for page in pages]
    found = resource.discovered
    if found is not None:
        delays = [r.discovered.delay_ns for r in same if r.discovered is not None]
        found = replace(found, delay_ns=statistics.median_low(delays))
    return replace(
        resource,
        discovered=found,
        # The lower median, which is a recorded integer time.
        parse_ns=statistics.median_low([r.parse_ns for r in same]),
        execute_ns=statistics.median_low([r.execute_ns for r in same]),
        server_ns=statistics.median_low([r.server_ns for r in same]),
    )


def differences(pages: Sequence[Page], index: int) -> list[str]:
    """Return a line for each resource whose facts differ between recordings."""
    graphs = [graph_of(page) for page in pages]
    chosen = graphs[index]
    lines = []
    for id_ in dict.fromkeys(id_ for graph in graphs for id_ in graph):
        rows = [graph[id_] for graph in graphs if id_ in graph]
        odd = next((row for row in rows if row != chosen.get(id_)), None)
        if len(rows) < len(graphs):
            lines.append(f"{id_}: in {len(rows)} of {len(graphs)} recordings")
        elif odd is not None:
            descriptions = (
                " ".join(str(part) for part in row if part) for row in (chosen[id_], odd)
            )
            lines.append(f"{id_}: {' or '.join(descriptions)}")
    return lines


_MISSING = 400


class RecordedTiming(NamedTuple):
    """Times of a resource's request and response, in ms since navigation start.

    `priorities` has the time of each priority; `stack` the calls that led to the request.
    """

    id: str
    status: int
    protocol: str
    requested_ms: float
    first_byte_ms: float
    finished_ms: float
    priorities: tuple[tuple[float, str], ...]
    initiator: str
    stack: tuple[str, ...]


RECORDING = OutputSchema(
    "h3sim-recording/1",
    "Times and causes of all resources that a browser loaded",
    VERSION,
    Property("page", TEXT, "the page's name", of="page.name"),
    Property("browser", TEXT, "User-Agent or product name"),
    Property("onload_ms", NUMBER, "time of the load event"),
    Property("dom_content_loaded_ms", NUMBER, "time of DOMContentLoaded", of="dcl_ms"),
    Property("first_paint_ms", NUMBER_OR_NONE, "time of the first paint"),
    Property("largest_paint_ms", NUMBER_OR_NONE, "time of the largest contentful paint"),
    Property(
        "resources",
        rows_of(
            RecordedTiming,
            priorities=ListOf(ListOf(Scalar(), "a time and a level"), "pairs"),
            stack=ListOf(TEXT, "lines"),
        ),
        "one per resource, in request order",
        of="timings",
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """Recording of one load: its page, the times of all resources, and what was left out."""

    page: Page
    timings: tuple[RecordedTiming, ...]
    exchanges: tuple[RecordedExchange, ...]
    browser: str
    onload_ms: float
    dcl_ms: float
    first_paint_ms: float | None
    largest_paint_ms: float | None
    notes: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return the data that a page file does not have, as JSON: times and causes.

        Times are in ms since the request of the document; `priorities` has pairs of time and
        Chrome's priority; `stack` has the innermost call first.
        """
        return RECORDING.write(self, version=__version__)


def recorded_of(visit: Navigation, name: str, *, url: str = "") -> Recorded:
    """Convert a navigation into a page with its timings.

    Without *url* its URLs represent files. For pages served by this machine no network is
    estimated.

    Raises:
        ChromiumError: if the document did not arrive.
    """
    everything = exchanges_of(visit)
    loaded = complete_exchanges(everything)
    if not loaded or loaded[0] is not everything[0]:
        reason = everything[0].failed if everything else ""
        raise ChromiumError(f"the document did not arrive{f': {reason}' if reason else ''}")
    root = loaded[0]
    if (root.status or 0) >= _MISSING:
        raise ChromiumError(f"the document did not arrive: status {root.status}")
    recording = Recording(source=url, name=name, has_addresses=bool(url))
    recording.is_local = root.reached.is_loopback
    VisitReader(visit, loaded).read(recording)
    page = assemble(recording).page
    ids = [resource.id for resource in page.resources]
    start_ms = root.requested_ms
    return Recorded(
        page=page,
        timings=tuple(_timing(each, id_, start_ms) for each, id_ in zip(loaded, ids, strict=True)),
        exchanges=tuple(loaded),
        browser=visit.browser,
        onload_ms=_since(visit.onload_ms, start_ms),
        dcl_ms=_since(visit.dcl_ms, start_ms),
        first_paint_ms=visit.measured["paints"].get("first-contentful-paint"),
        largest_paint_ms=(visit.measured["largest"] or {}).get("at_ms"),
        notes=tuple(_notes(everything)),
    )


def _timing(exchange: RecordedExchange, id_: str, start_ms: float) -> RecordedTiming:
    return RecordedTiming(
        id=id_,
        status=exchange.status or 0,
        protocol=exchange.protocol,
        requested_ms=_since(exchange.requested_ms, start_ms),
        first_byte_ms=_since(exchange.first_byte_ms, start_ms),
        finished_ms=_since(exchange.end_ms, start_ms),
        priorities=tuple((_since(at, start_ms), name) for at, name in exchange.priorities),
        initiator=exchange.initiator_type,
        stack=tuple(
            f"{name or 'inline'}:{frame.line + 1} {frame.function}".rstrip()
            for frame in exchange.asked_by.stack
            for name in [frame.url.partition("?")[0].rpartition("/")[2]]
        ),
    )


def _since(at_ms: float | None, start_ms: float) -> float:
    return 0.0 if at_ms is None else round(at_ms - start_ms, 3)


def _notes(everything: Sequence[RecordedExchange]) -> list[str]:
    """Return notes on requests that are not in the page and on other irregularities."""
    relevant = [exchange for exchange in everything if not is_favicon(exchange)]
    blocked = sum("NAME_NOT_RESOLVED" in exchange.failed for exchange in relevant)
    failed = sum(bool(exchange.failed) for exchange in relevant) - blocked
    unfinished = sum(exchange.is_unfinished for exchange in relevant)
    missing = sum(
        exchange.is_complete and (exchange.status or 0) >= _MISSING for exchange in relevant
    )
    counted = (
        (blocked, "blocked requests to other hosts"),
        (failed, "requests that failed"),
        (unfinished, "unfinished responses"),
        (missing, "missing files"),
    )
    return [f"{what}: {number}" for number, what in counted if number]


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedSource:
    """Source of a recording: a URL, or a file below a folder that is served locally.

    Raises:
        InputError: if it cannot be used.
    """

    url: str = ""
    root: Path | None = None
    path: str = ""

    @classmethod
    def of(cls, what: str, root: str | None = None) -> RecordedSource:
        """Return the source for user input: a URL, a folder or a file.

        *root* is the folder to serve, if it is not the file's own.
        """
        if urlsplit(what).scheme in ("http", "https"):
            if root is not None:
                raise InputError([ValidationIssue(key="--root", message="goes only with a file")])
            return cls(url=what)
        # os.path, unlike pathlib, returns False for invalid paths.
        file = Path(what, "index.html") if os.path.isdir(what) else Path(what)  # noqa: PTH112
        if not os.path.isfile(file):  # noqa: PTH113
            message = "must be an http(s) URL, an HTML file or a folder with index.html"
            raise InputError([ValidationIssue(key="", message=message)], shown_path(what))
        folder = Path(root) if root is not None else file.parent
        try:
            path = file.resolve().relative_to(folder.resolve())
        except ValueError:
            message = f"{what} is not inside {root}"
            raise InputError([ValidationIssue(key="--root", message=message)]) from None
        return cls(root=folder, path=path.as_posix())

    @property
    def name(self) -> str:
        """Default name of the page."""
        if self.root is None:
            return urlsplit(self.url).netloc
        parts = Path(self.path)
        return parts.stem if parts.stem != "index" else (parts.parent.name or "index")


@dataclass(frozen=True, slots=True, kw_only=True)
class PageRecording:
    """Recorded page, with its loads, the base load and the differences between loads."""

    page: Page
    loads: tuple[Recorded, ...]
    chosen: int
    differences: tuple[str, ...]

    @property
    def load(self) -> Recorded:
        """Load whose graph, sizes and order the page has."""
        return self.loads[self.chosen]


def record(
    source: RecordedSource,
    *,
    name: str = "",
    repeat: int = 1,
    compression: str = "gzip",
    chromium: str | None = None,
    provenance: Mapping[str, str] | None = None,
    patience: Timeouts | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> PageRecording:
    """Record the page at *source*, loaded *repeat* times, each time in a fresh Chromium.

    A folder is served locally with *compression* ("gzip", "br", "none"), and no other host is
    contacted. *provenance* is added to the recorded provenance: date, tool, notes.

    Raises:
        InputError: for a number of repeats below 1, or an unknown compression.
        MissingExtraError: if a library of the extra `record` is not installed.
        ChromiumError: if there is no Chromium, or the page does not load.
    """
    check_arguments(
        InputError, repeat=(Integer(low=1), repeat), compression=(Choice(COMPRESSIONS), compression)
    )
    program = find_chromium(chromium)
    name = name or source.name
    loads = []
    with ExitStack() as stack:
        url = source.url
        if source.root is not None:
            base = stack.enter_context(served(Site(source.root, compression)))
            url = address_of(base, source.path)
        for done in range(repeat):
            with running_chromium(program, local_only=source.root is not None) as address:
                seen = visit(address, url, patience or Timeouts())
            shown_url = "" if source.root is not None else url.partition("?")[0]
            loads.append(recorded_of(seen, name, url=shown_url))
            if progress is not None:
                progress(done + 1, repeat)
    page, chosen = merged([load.page for load in loads])
    found = {**_provenance(source, loads[chosen], compression, repeat), **(provenance or {})}
    return PageRecording(
        page=replace(page, provenance=found),
        loads=tuple(loads),
        chosen=chosen,
        differences=tuple(differences([load.page for load in loads], chosen)),
    )


def _provenance(
    source: RecordedSource, load: Recorded, compression: str, repeat: int
) -> dict[str, str]:
    served_with = "" if source.root is None else f", served on the same machine with {compression}"
    screen = f"{WIDTH_PX}x{HEIGHT_PX}"
    times = "" if repeat == 1 else f", times are medians of {repeat} loads"
    return {
        "source": source.path if source.root is not None else source.url.partition("?")[0],
        "recorded": datetime.datetime.now(tz=datetime.UTC).date().isoformat(),
        "tool": f"h3sim {__version__} record, {load.browser}, {screen}{served_with}{times}",
        "hosts": load.page.provenance["hosts"],
        **({"notes": "; ".join(load.notes)} if load.notes else {}),
    }
