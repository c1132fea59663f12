"""Makes a page of what Chromium said of one load."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from h3sim._version import __version__
from h3sim.capture.chromium.browser import ChromiumError
from h3sim.capture.chromium.visit_reader import VisitReader, exchanges_of, is_favicon, whole
from h3sim.capture.inference.assembly import assemble
from h3sim.capture.inference.observed import Recording
from h3sim.documents.values import ListOf, Scalar
from h3sim.documents.written import (
    NUMBER,
    NUMBER_OR_NONE,
    TEXT,
    VERSION,
    Key,
    WrittenFormat,
    rows_of,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from h3sim.capture.chromium.visit import Visit
    from h3sim.capture.dialects.exchange import RecordedExchange
    from h3sim.page import Page

__all__ = ["RECORDING", "Recorded", "RecordedTiming", "recorded_of"]

_MISSING = 400


class RecordedTiming(NamedTuple):
    """When Chromium asked for a resource and had it, in ms since navigation start.

    `priorities` holds when each priority was given; `stack` the calls that led to the request.
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


RECORDING = WrittenFormat(
    "h3sim-recording/1",
    "When everything came that a browser loaded, and why",
    VERSION,
    Key("page", TEXT, "the page's name", of="page.name"),
    Key("browser", TEXT, "as it calls itself"),
    Key("onload_ms", NUMBER, "the load event"),
    Key("dom_content_loaded_ms", NUMBER, "when the document was parsed", of="dcl_ms"),
    Key("first_paint_ms", NUMBER_OR_NONE, "when something was seen"),
    Key("largest_paint_ms", NUMBER_OR_NONE, "when the largest element was painted"),
    Key(
        "resources",
        rows_of(
            RecordedTiming,
            priorities=ListOf(ListOf(Scalar(), "a time and a level"), "pairs"),
            stack=ListOf(TEXT, "lines"),
        ),
        "one a resource, in the order of requests",
        of="timings",
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """One load: the page that it shows, when everything came, and what was left out."""

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
        """Return as JSON what a page file has no place for: when everything came, and why.

        Times are in ms since the document was asked for; `priorities` has a pair of time and
        Chrome's word for each priority that was given; `stack` the innermost call first.
        """
        return RECORDING.write(self, version=__version__)


def recorded_of(visit: Visit, name: str, *, url: str = "") -> Recorded:
    """Return the page that *visit* shows, with its timings.

    Without *url* its addresses stand for files. Of what this machine served itself nothing is told
    of a network.

    Raises:
        ChromiumError: if the document itself did not come.
    """
    everything = exchanges_of(visit)
    kept = whole(everything)
    if not kept or kept[0] is not everything[0]:
        reason = everything[0].failed if everything else ""
        raise ChromiumError(f"the document did not come{f': {reason}' if reason else ''}")
    root = kept[0]
    if (root.status or 0) >= _MISSING:
        raise ChromiumError(f"the document did not come: status {root.status}")
    recording = Recording(source=url, name=name, has_addresses=bool(url))
    recording.is_local = root.reached.is_loopback
    VisitReader(visit, kept).read(recording)
    page = assemble(recording).page
    ids = [resource.id for resource in page.resources]
    start_ms = root.requested_ms
    return Recorded(
        page=page,
        timings=tuple(_timing(each, id_, start_ms) for each, id_ in zip(kept, ids, strict=True)),
        exchanges=tuple(kept),
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
    """Say how much of what was asked for is not in the page, and what else is odd."""
    wanted = [exchange for exchange in everything if not is_favicon(exchange)]
    blocked = sum("NAME_NOT_RESOLVED" in exchange.failed for exchange in wanted)
    failed = sum(bool(exchange.failed) for exchange in wanted) - blocked
    unfinished = sum(exchange.is_unfinished for exchange in wanted)
    missing = sum(exchange.is_whole and (exchange.status or 0) >= _MISSING for exchange in wanted)
    counted = (
        (blocked, "requests to other hosts, not let through"),
        (failed, "requests that failed"),
        (unfinished, "responses that had not ended"),
        (missing, "answers that there is no such file"),
    )
    return [f"{what}: {number}" for number, what in counted if number]
