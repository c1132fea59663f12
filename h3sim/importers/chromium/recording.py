"""Recordings of pages in Chromium: served, loaded several times, aggregated, made into a page.

A live browser provides more than a log: CPU time, the offset of each reference in its document,
render blocking and visibility (docs/recording.md).
"""

from __future__ import annotations

import datetime
import json
import os
import re
import statistics
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import unquote, urlsplit

from h3sim._version import __version__
from h3sim.importers.causes import BLOCKING_KINDS
from h3sim.importers.chromium.browser import ChromiumError, find_chromium, running_chromium
from h3sim.importers.chromium.navigation import Navigation, Timeouts, visit
from h3sim.importers.chromium.web_server import COMPRESSIONS, Site, address_of, served
from h3sim.importers.content_encoding import WireOffsets
from h3sim.importers.css import BOLD, NORMAL, nearest_weights
from h3sim.importers.formats.devtools import NetworkEvents, RecordedExchange, join_redirects
from h3sim.importers.html import Reference, read_markup, scan
from h3sim.importers.media_queries import HEIGHT_PX, WIDTH_PX
from h3sim.importers.page_assembly import assemble
from h3sim.importers.paints import paint_event, paints_of
from h3sim.importers.recorded_request import (
    REDIRECTS,
    Recording,
    Trigger,
    kind_of,
    visible_rectangles,
)
from h3sim.importers.request_fields import FIRST_ERROR_STATUS, address, without_fragment
from h3sim.importers.source import Fields
from h3sim.importers.trace_tasks import (
    US_PER_MS,
    WORKED_ON,
    CpuTime,
    first_runs,
    task_of,
    work_of,
)
from h3sim.page import FLAGS, FontDisplay, Kind, Page, Rectangle, Resource, TriggerEvent
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
from h3sim.values.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence
    from collections.abc import Set as AbstractSet


_SCRIPT_END = re.compile(rb"</script", re.IGNORECASE)
_IMAGE_TAGS = ("img", "image")


class Document:
    """HTML document with the first reference to each URL.

    >>> document = Document('<head><script src="a.js" defer></script><p><img src=b.png>', "http://x/")
    >>> [(url, each.offset_bytes) for url, each in document.references.items()]
    [('http://x/a.js', 31), ('http://x/b.png', 58)]
    >>> document.first_image_bytes
    58
    """

    def __init__(self, text: str, url: str, charset: str = "") -> None:
        # Offsets are in bytes of the document's own charset. Tags are searched as ASCII bytes,
        # which fails in UTF-16, for example.
        self._charset = charset if _encodes_tags_as_ascii(charset) else "utf-8"
        self.data = text.encode(self._charset, "replace")
        self._url = url
        self._line_offsets = [0, *(found.end() for found in re.finditer(rb"\n", self.data))]

    @cached_property
    def _all_references(self) -> list[Reference]:
        return read_markup(scan(self.data), include_unloaded=True).references

    @cached_property
    def references(self) -> Mapping[str, Reference]:
        """References of its tags, by URL without fragment."""
        found: dict[str, Reference] = {}
        for reference in self._all_references:
            if url := reference.url_in(self._url):
                # Duplicates are requested at the first reference, unless it is a lazy element.
                known = found.setdefault(url, reference)
                is_waiting = known.flags.get("is_lazy") and not known.flags.get("preload")
                if is_waiting and reference.flags.get("preload"):
                    found[url] = reference
        return found

    @cached_property
    def elements(self) -> Mapping[str, Reference]:
        """First reference to each URL that is not a preload, by URL without fragment."""
        found: dict[str, Reference] = {}
        for reference in self._all_references:
            if not reference.flags.get("preload"):
                found.setdefault(reference.url_in(self._url), reference)
        return found

    @property
    def first_image_bytes(self) -> int | None:
        """Offset of the first image reference, or None."""
        ends = (
            reference.offset_bytes
            for reference in self.references.values()
            if reference.tag in _IMAGE_TAGS
        )
        return min(ends, default=None)

    def position(self, line: int, column: int) -> int:
        """Convert a line and column, both from 0 and in characters, to a byte offset."""
        line = min(max(line, 0), len(self._line_offsets) - 1)
        start = self._line_offsets[line]
        # A character has at least one byte; one truncated at the end is dropped.
        text = self.data[start : start + 4 * max(column, 0)].decode(self._charset, "ignore")
        return start + len(text[: max(column, 0)].encode(self._charset, "replace"))

    def mention(self, url: str) -> int | None:
        """Return the offset after the first mention of the file name in *url*.

        It finds references that are not in tags, as in inline CSS.
        """
        name = without_fragment(url).partition("?")[0].rsplit("/", 1)[-1]
        # As escaped by browsers, then unescaped.
        for part in (each.encode(self._charset, "replace") for each in (name, unquote(name))):
            index = self.data.find(part) if part else -1
            if index >= 0:
                return index + len(part)
        return None

    def script_end(self, line: int) -> int:
        """Return the offset after the inline script that contains *line*, from 0."""
        found = _SCRIPT_END.search(self.data, self.position(line, 0))
        return len(self.data) if found is None else found.end()


def _encodes_tags_as_ascii(charset: str) -> bool:
    """Return whether a character set exists and encodes tags as ASCII does."""
    try:
        return bool(charset) and "<a b='c'>".encode(charset) == b"<a b='c'>"
    except LookupError:
        return False


_DELAY_DECIMALS = 2
"""Decimals of a delay in ms: more would be noise of the clock."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestInitiator(Trigger):
    """Trigger by the index of an exchange, with the tag that refers to the requested resource."""

    reference: Reference | None = None


class ReceivedDocument:
    """HTML document as received, with its exchange."""

    def __init__(self, exchange: RecordedExchange, text: str) -> None:
        self.exchange = exchange
        self.html = Document(text, exchange.url, exchange.charset)

    @cached_property
    def offsets(self) -> WireOffsets:
        """Offsets on the wire of offsets in the document."""
        return WireOffsets(self.html.data, self.exchange.body_bytes or 0)

    def delivered_ms(self, offset: int) -> float:
        """Return when that many bytes of the document had been received."""
        received = 0
        for at_ms, _, plain_bytes in self.exchange.chunks:
            received += plain_bytes
            if received >= offset:
                return at_ms
        return _finished_ms(self.exchange)


class Causes:
    """Inference of what caused each exchange of one load; the first exchange is the root."""

    def __init__(
        self,
        exchanges: Sequence[RecordedExchange],
        documents: Mapping[str, ReceivedDocument],
        work: Mapping[str, CpuTime],
        waited: Collection[str] = (),
        ran_us: Mapping[str, float] | None = None,
    ) -> None:
        """Index *exchanges*, in request order; *waited* are URLs of scripts' synchronous requests.

        *documents* are by the id of their exchange; *work*, and when scripts first had run, by URL.
        """
        self._ran_us = ran_us or {}
        self._exchanges = exchanges
        self._documents = documents
        self._work = work
        self._synchronous_urls = frozenset(waited)
        self._index_of = {exchange.hop_id: index for index, exchange in enumerate(exchanges)}

    @cached_property
    def _imports(self) -> Mapping[str, list[RecordedExchange]]:
        """The modules that each script imports, by the id of its exchange.

        A module's import has no stack: its initiator is the importing module.
        """
        found: dict[str, list[RecordedExchange]] = {}
        for index, exchange in enumerate(self._exchanges):
            initiator = exchange.asked_by
            if exchange.type == "Script" and exchange.initiator_type == "script":
                importer = self._last_exchange_before(initiator.url, index)
                if not initiator.stack and importer is not None and importer.type == "Script":
                    found.setdefault(importer.hop_id, []).append(exchange)
        return found

    @property
    def modules(self) -> AbstractSet[str]:
        """The ids of the exchanges with modules that import others, and of those imports."""
        imported = (each.hop_id for found in self._imports.values() for each in found)
        return {*self._imports, *imported}

    def _module_graph(self, script: RecordedExchange) -> list[RecordedExchange]:
        """Return a script with all modules that run before it, as far as they are known."""
        graph, met = [script], {script.hop_id}
        for module in graph:
            for each in self._imports.get(module.hop_id, ()):
                if each.hop_id not in met:
                    met.add(each.hop_id)
                    graph.append(each)
        return graph

    def of(self, exchange: RecordedExchange) -> RequestInitiator:
        """Return the cause of *exchange*, which is not the root."""
        index = self._index_of[exchange.hop_id]
        redirect = exchange.redirected_from
        # First, because after a redirect the initiator is still that of the first request.
        if redirect is not None and redirect.hop_id in self._index_of:
            return self._after_completion(exchange, redirect)
        is_scripted = exchange.initiator_type == "script"
        found = self._by_script(exchange, index) if is_scripted else None
        if found is None:
            found = self._by_parser(exchange, index) or self._by_clock(exchange, index)
            found = found or self._by_position(exchange, index)
        return found or self._after_completion(
            exchange, self._requesting_document(exchange, index).exchange
        )

    def _by_script(self, exchange: RecordedExchange, index: int) -> RequestInitiator | None:
        """Return the trigger by the script on the stack that ran last: all have run by then."""
        initiator = exchange.asked_by
        urls = {frame.url for frame in initiator.stack}
        scripts = [other for other in self._exchanges[:index] if other.url in urls]
        # An inline script has the URL of its document; its offset is more precise (below).
        scripts = [other for other in scripts if other.type != "Document"]
        if scripts:
            awaited = self._synchronous_request(exchange, index, urls)
            if awaited is not None:
                return self._after_completion(exchange, awaited)
            loaded = self._loaded_before(exchange, index, urls)
            return self._after_execution(exchange, loaded or max(scripts, key=self._first_run))
        for frame in initiator.stack:
            found = self._last_exchange_before(frame.url, index)
            document = None if found is None else self._documents.get(found.hop_id)
            if document is not None:
                return self._at_offset(exchange, document, document.html.script_end(frame.line))
        # A module's import has no stack: it gives the importing module.
        importer = self._last_exchange_before(initiator.url, index)
        if importer is None or importer.type == "Document":
            return None
        return self._after_completion(exchange, importer)

    def _by_parser(self, exchange: RecordedExchange, index: int) -> RequestInitiator | None:
        """Return the trigger by a reference in a document or stylesheet."""
        initiator = exchange.asked_by
        parent = self._last_exchange_before(initiator.url, index)
        if parent is not None and parent.hop_id not in self._documents:
            return self._after_completion(exchange, parent)
        document = self._requesting_document(exchange, index)
        if parent is not None:
            document = self._documents[parent.hop_id]
        reference = document.html.references.get(exchange.url)
        if reference is not None:
            return self._at_offset(exchange, document, reference.offset_bytes, reference)
        offset = document.html.mention(exchange.url)
        return None if offset is None else self._at_offset(exchange, document, offset)

    def _by_position(self, exchange: RecordedExchange, index: int) -> RequestInitiator | None:
        """Return the trigger where the parser stood, which need not have found a reference there.

        So it counts only for what no document mentions, and for which no script can have waited.
        """
        initiator = exchange.asked_by
        if initiator.type != "parser" or initiator.line is None:
            return None
        parent = self._last_exchange_before(initiator.url, index)
        document = None if parent is None else self._documents.get(parent.hop_id)
        document = document or self._requesting_document(exchange, index)
        offset = document.html.position(initiator.line, initiator.column)
        return self._at_offset(exchange, document, offset)

    def _by_clock(self, exchange: RecordedExchange, index: int) -> RequestInitiator | None:
        """Return the trigger by the last complete response that a script may have waited for.

        Requests caused by a promise's callback have no stack: Chromium calls their initiator
        "parser" or "other". No document refers to them, so none requested them.
        """
        ready = [
            other
            for other in self._exchanges[:index]
            if other.type in _SCRIPT_RESPONSE_TYPES and _finished_ms(other) <= exchange.requested_ms
        ]
        last = max(ready, key=_finished_ms, default=None)
        if last is None:
            return None
        trigger = self._after_execution if last.type == "Script" else self._after_completion
        return trigger(exchange, last)

    def _synchronous_request(
        self, exchange: RecordedExchange, index: int, urls: AbstractSet[str]
    ) -> RecordedExchange | None:
        """Return the last synchronous request, if the scripts at *urls* made it and waited for it.

        Until it completes they cannot request anything else.
        """
        for other in reversed(self._exchanges[:index]):
            is_over = _finished_ms(other) <= exchange.requested_ms
            if other.url in self._synchronous_urls and other.type == "XHR" and is_over:
                shared = any(frame.url in urls for frame in other.asked_by.stack)
                return other if shared else None
        return None

    def _loaded_before(
        self, exchange: RecordedExchange, index: int, urls: AbstractSet[str]
    ) -> RecordedExchange | None:
        """Return the script for which a loader of scripts waited, as in `find_parents`."""
        if exchange.type != "Script":
            return None
        loaded = [
            (ran_us, other)
            for other in self._exchanges[:index]
            if other.type == "Script"
            and {frame.url for frame in other.asked_by.stack} == urls
            and (ran_us := self._ran_us.get(other.url)) is not None
            and ran_us <= exchange.requested_ms * US_PER_MS
        ]
        return max(loaded, key=lambda each: each[0], default=(0.0, None))[1]

    def _first_run(self, script: RecordedExchange) -> tuple[float, int]:
        """Return a sort key: when a script first ran, then its request, if the trace lacks it."""
        return self._work.get(script.url, CpuTime()).started_us, self._index_of[script.hop_id]

    def _requesting_document(self, exchange: RecordedExchange, index: int) -> ReceivedDocument:
        """Return the document of the requesting frame, or the root."""
        # Backwards: of several documents of a frame the last one makes the request.
        earlier = (
            each for each in reversed(self._exchanges[:index]) if each.hop_id in self._documents
        )
        root = self._exchanges[0]
        document = next((each for each in earlier if each.frame_id == exchange.frame_id), root)
        return self._documents[document.hop_id]

    def _last_exchange_before(self, url: str, index: int) -> RecordedExchange | None:
        """Return the last exchange with *url* requested before the one at *index*."""
        earlier = reversed(self._exchanges[:index] if url else ())
        return next((other for other in earlier if other.url == url), None)

    def _after_completion(
        self, exchange: RecordedExchange, parent: RecordedExchange
    ) -> RequestInitiator:
        return self._initiator(exchange, parent, TriggerEvent.COMPLETE, _finished_ms(parent))

    def _after_execution(
        self, exchange: RecordedExchange, parent: RecordedExchange
    ) -> RequestInitiator:
        graph = self._module_graph(parent)
        work = [self._work.get(each.url, CpuTime()) for each in graph]
        since_ms = max(map(_finished_ms, graph))
        since_ms += sum(each.parse_ms + each.execute_ms for each in work)
        if parent.url in self._ran_us:
            since_ms = self._ran_us[parent.url] / US_PER_MS
        return self._initiator(exchange, parent, TriggerEvent.EXECUTED, since_ms)

    def _at_offset(
        self,
        exchange: RecordedExchange,
        document: ReceivedDocument,
        plain_offset: int,
        reference: Reference | None = None,
    ) -> RequestInitiator:
        since_ms = document.delivered_ms(plain_offset)
        initiator = self._initiator(exchange, document.exchange, TriggerEvent.OFFSET, since_ms)
        offset_bytes = document.offsets.wire(plain_offset)
        return replace(initiator, offset_bytes=offset_bytes, reference=reference)

    def _initiator(
        self,
        exchange: RecordedExchange,
        parent: RecordedExchange,
        at: TriggerEvent,
        event_ms: float,
    ) -> RequestInitiator:
        """Return the trigger of *exchange*: the event *at* of *parent*, at time *event_ms*."""
        delay_ms = round(max(exchange.requested_ms - event_ms, 0.0), _DELAY_DECIMALS)
        return RequestInitiator(at=at, by=self._index_of[parent.hop_id], delay_ms=delay_ms)


_SCRIPT_RESPONSE_TYPES = ("Fetch", "XHR", "Script")
"""DevTools types of scripts, and of responses that a script may wait for."""


def _finished_ms(exchange: RecordedExchange) -> float:
    return exchange.requested_ms if exchange.end_ms is None else exchange.end_ms


_NAMED_WEIGHTS = {"normal": NORMAL, "bold": BOLD}


def painted_rectangles(
    measured: Mapping[str, Any], fonts: Sequence[Mapping[str, Any]]
) -> dict[str, tuple[Rectangle, ...]]:
    """Return the visible rectangles of each URL.

    For an image these are its boxes, as element or background; for a font the lines of text set in
    it.
    """
    boxes_by_url: dict[str, list[Sequence[float]]] = {
        url: [*boxes] for url, boxes in measured["images"].items()
    }
    for style, lines in measured["texts"].items():
        for url in _font_urls(json.loads(style), fonts):
            boxes_by_url.setdefault(url, []).extend(lines)
    width, height = measured["viewport"]
    return visible_rectangles((width, height), boxes_by_url)


def largest_url(measured: Mapping[str, Any], fonts: Sequence[Mapping[str, Any]]) -> str:
    """Return the URL of the largest contentful paint: an image, or the font of a text, or ""."""
    largest = measured.get("largest")
    if largest is None:
        return ""
    if largest["url"] or largest["font"] is None:
        return str(largest["url"])
    urls = _font_urls(largest["font"], fonts)
    return urls[0] if urls else ""


def _font_urls(style: Sequence[str], fonts: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the font files of the first family in the list that is a loaded web font.

    *style* is (font-family, font-weight, font-style). Only the faces that the browser selects
    count: by slant, then by weight.
    """
    families, weight, font_style = style
    for family in families.split(","):
        name = family.strip().strip("\"'").casefold()
        faces = [face for face in fonts if face["fontFamily"].strip("\"'").casefold() == name]
        if faces:
            slant = _slant(font_style)
            slanted = [face for face in faces if _slant(face["fontStyle"]) == slant] or faces
            weights = [_weight_range(face["fontWeight"]) for face in slanted]
            best = nearest_weights(weights, _weight(weight))
            urls = {face["src"] for face in slanted if _weight_range(face["fontWeight"]) == best}
            return sorted(urls)
    return []


def _slant(style: object) -> str:
    """Return the first word of a font-style: "oblique 10deg" is oblique."""
    return str(style).split()[0]


def _weight_range(font_weight: object) -> tuple[float, float]:
    """Return the lowest and highest weight of a face; those of a variable font differ."""
    bounds = [_weight(word) for word in str(font_weight).split()] or [NORMAL]
    return min(bounds), max(bounds)


def _weight(word: str) -> float:
    try:
        return float(_NAMED_WEIGHTS.get(word, word))
    except ValueError:
        return NORMAL


_ASYNC_PRIORITY = "Low"
"""Chrome's priority of async scripts, by which those inserted by scripts are recognized."""
_PAINTED_KINDS = (Kind.IMAGE, Kind.FONT, Kind.MEDIA, Kind.OTHER)
"""Kinds whose rectangles are recorded, as they are painted themselves."""


def exchanges_of(visit: Navigation) -> list[RecordedExchange]:
    """Return the HTTP exchanges in request order."""
    events = NetworkEvents(lambda *_: None)
    for event in visit.events:
        # Chromium's own events are well-formed: there is nothing to report.
        events.add(event.method, Fields(event.params, "", lambda *_: None))
    over_http = []
    for exchange in events.finish():
        parts = address(exchange.url)
        is_over_http = parts is not None and parts.scheme in ("http", "https") and bool(parts.host)
        if is_over_http and not exchange.is_internal:
            over_http.append(exchange)
    return sorted(over_http, key=lambda exchange: exchange.requested_ms)


def is_favicon(exchange: RecordedExchange) -> bool:
    """Return whether an exchange is for the tab's icon, which no page waits for."""
    return exchange.type == "Other" and exchange.initiator_type == "other"


def complete_exchanges(everything: Sequence[RecordedExchange]) -> list[RecordedExchange]:
    """Return the exchanges of a page: completed ones, without redirects to failed ones."""
    loaded = [
        exchange
        for exchange in everything
        if exchange.is_complete and not exchange.failed and not is_favicon(exchange)
    ]
    retained_ids = {exchange.hop_id for exchange in loaded}
    # Backwards, to drop whole chains of redirects to failed requests.
    for exchange in reversed(everything):
        if exchange.redirected_from is not None and exchange.hop_id not in retained_ids:
            retained_ids.discard(exchange.redirected_from.hop_id)
    return [exchange for exchange in loaded if exchange.hop_id in retained_ids]


class VisitReader:
    """Reader of one navigation into a recording, the document first.

    Raises:
        ChromiumError: if the document is unavailable.
    """

    def __init__(self, visit: Navigation, loaded: Sequence[RecordedExchange]) -> None:
        self._visit, self._exchanges = visit, loaded
        join_redirects(loaded)  # sets redirected_from, which the causes need
        self._kinds = {exchange.hop_id: kind_of(exchange)[0] for exchange in loaded}
        self._documents = {
            exchange.hop_id: ReceivedDocument(exchange, visit.documents[exchange.number])
            for exchange in loaded
            if exchange.number in visit.documents and exchange.status not in REDIRECTS
        }
        # After redirects of the root, the page is their target.
        self._document = next(
            (exchange for exchange in loaded if exchange.status not in REDIRECTS), loaded[-1]
        )
        if self._document.hop_id not in self._documents:
            raise ChromiumError("the document is not HTML, or Chromium did not keep it")
        self._tasks = [task for task in map(task_of, visit.trace) if task is not None]
        of_page = loaded[loaded.index(self._document) :]
        self._work, ran_us = work_of(self._tasks, of_page), first_runs(self._tasks)
        causes = Causes(loaded, self._documents, self._work, visit.measured["waited"], ran_us)
        self._causes = {exchange.hop_id: causes.of(exchange) for exchange in loaded[1:]}
        self._modules = causes.modules
        self._rectangles = painted_rectangles(visit.measured, visit.fonts)
        self._blocking_urls = visit.measured["blocking"]
        self._font_displays = {
            font["src"]: FontDisplay(font.get("fontDisplay") or "auto") for font in visit.fonts
        }
        self._hero_url = largest_url(visit.measured, visit.fonts) or self._document.url
        self._above_fold_ids = self._above_the_fold()

    def read(self, recording: Recording) -> None:
        """Add the requests and the end of the load to *recording*."""
        visit, start_ms = self._visit, self._exchanges[0].requested_ms
        recording.dialect = "chromium"
        recording.set_tool(visit.browser)
        width, height = visit.measured["viewport"]
        recording.viewport_px = width, height
        if visit.onload_ms is not None:
            recording.times_ms["load_event"] = visit.onload_ms - start_ms
        if largest := visit.measured["largest"]:
            recording.times_ms["largest_paint"] = largest["at_ms"]
        if painted_ms := visit.measured["paints"].get("first-contentful-paint"):
            recording.times_ms["fcp"] = painted_ms
        recording.paints = paints_of(
            filter(None, map(paint_event, visit.trace)),
            self._tasks,
            self._exchanges[self._exchanges.index(self._document) :],
            frame=self._document.frame_id,
            hero=self._hero_url if largest and largest["url"] else "",
        )
        for exchange in self._exchanges:
            cause = self._causes.get(exchange.hop_id)
            exchange.trigger = cause
            kind = self._kinds[exchange.hop_id]
            if kind in _PAINTED_KINDS:
                exchange.rectangles = self._rectangles.get(exchange.url, ())
            exchange.is_above_the_fold = exchange.hop_id in self._above_fold_ids
            exchange.is_hero = exchange.url == self._hero_url
            exchange.is_critical = exchange is self._document or self._is_blocking(exchange)
            if kind in WORKED_ON:
                self._work.get(exchange.url, CpuTime()).add_to(exchange)
            exchange.flags = self._flags(exchange)
            if exchange.flags.get("prefetch"):
                exchange.kind = Kind.OTHER  # not part of this page, whatever it is
            exchange.image_format = visit.image_formats.get(exchange.number)
            exchange.font_display = self._font_displays.get(exchange.url, FontDisplay.AUTO)
            recording.requests.append(exchange)

    def _flags(self, exchange: RecordedExchange) -> dict[str, object]:
        """Return the loading attributes of the resource, from its tag and from Chromium."""
        cause = self._causes.get(exchange.hop_id)
        flags: dict[str, object] = {}
        if cause is not None and cause.reference is not None:
            flags |= cause.reference.flags
            if cause.reference.flags.get("preload"):
                flags |= self._flags_of_element(exchange, cause)
        elif self._kinds[exchange.hop_id] is Kind.SCRIPT and exchange.initiator_type == "script":
            flags[FLAGS["async"]] = exchange.priorities[0][1] == _ASYNC_PRIORITY
        # Chromium knows better than the tag what is render-blocking and what the first image is.
        flags["render_blocking"] = self._is_blocking(exchange)
        flags["after_first_image"] = cause is not None and self._is_after_image(cause)
        if exchange.hop_id in self._modules:
            flags["module"] = True
        # The document mentions it, but in no tag and no script: in its CSS.
        if cause is not None and cause.reference is None and exchange.initiator_type == "parser":
            is_style_kind = self._kinds[exchange.hop_id] in (Kind.IMAGE, Kind.FONT)
            if is_style_kind and cause.at is TriggerEvent.OFFSET:
                flags["in_style"] = True
        return flags

    def _flags_of_element(
        self, exchange: RecordedExchange, cause: RequestInitiator
    ) -> Mapping[str, object]:
        """Return the attributes of the element behind a preload, and set the element's offset."""
        document = self._documents.get(self._exchanges[cause.by].hop_id)
        element = None if document is None else document.html.elements.get(exchange.url)
        if document is None or element is None or element.kind not in BLOCKING_KINDS:
            return {}
        exchange.reference_offset_bytes = document.offsets.wire(element.offset_bytes)
        return {FLAGS["in_head"]: False, **element.flags}

    def _is_blocking(self, exchange: RecordedExchange) -> bool:
        return exchange.blocking == "blocking" or exchange.url in self._blocking_urls

    def _is_after_image(self, cause: RequestInitiator) -> bool:
        """Return whether the reference follows the document's first image.

        Chromium gives scripts found there by the preload scanner a lower priority.
        """
        if cause.reference is None:
            return False
        document = self._documents.get(self._exchanges[cause.by].hop_id)
        first = None if document is None else document.html.first_image_bytes
        return first is not None and cause.reference.offset_bytes > first

    def _above_the_fold(self) -> set[str]:
        """Return the visible and render-blocking resources, with their ancestors."""
        # All ancestors of a member are members, so that climbing stops at the first known one.
        seen: set[str] = {self._document.hop_id, self._exchanges[0].hop_id}
        for exchange in self._exchanges:
            is_painted = self._kinds[exchange.hop_id] in _PAINTED_KINDS
            is_visible = is_painted and exchange.url in self._rectangles
            if is_visible or self._is_blocking(exchange):
                key: str | None = exchange.hop_id
                while key is not None and key not in seen:
                    seen.add(key)
                    cause = self._causes.get(key)
                    key = None if cause is None else self._exchanges[cause.by].hop_id
        return seen


Row = tuple[object, ...]


def graph_of(page: Page) -> dict[str, Row]:
    """Return what all recordings of a page should agree on, by id: kind, trigger, flags."""
    rows: dict[str, Row] = {}
    for resource in page.resources:
        discovery = resource.discovered
        trigger = (discovery.by, discovery.at.value) if discovery is not None else None
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
    index = max(range(len(pages)), key=lambda index: (graphs.count(graphs[index]), -index))
    alike = [page for page, graph in zip(pages, graphs, strict=True) if graph == graphs[index]]
    page = pages[index]
    return replace(
        page, resources=tuple(_with_median_times(resource, alike) for resource in page.resources)
    ), index


def _with_median_times(resource: Resource, pages: Sequence[Page]) -> Resource:
    recorded = [page.resources[page.index[resource.id]] for page in pages]
    discovery = resource.discovered
    if discovery is not None:
        delays_ns = [each.discovered.delay_ns for each in recorded if each.discovered is not None]
        discovery = replace(discovery, delay_ns=statistics.median_low(delays_ns))
    # The lower median, which is a recorded integer time.
    times_ns = {
        name: statistics.median_low([getattr(each, name) for each in recorded])
        for name in ("parse_ns", "execute_ns", "server_ns")
    }
    return replace(resource, discovered=discovery, **times_ns)


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
            both = (" ".join(str(part) for part in row if part) for row in (chosen[id_], odd))
            lines.append(f"{id_}: {' or '.join(both)}")
    return lines


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
    # The first exchange is the navigation.
    if not loaded or loaded[0] is not everything[0]:
        reason = everything[0].failed if everything else ""
        raise ChromiumError(f"the document did not arrive{f': {reason}' if reason else ''}")
    root = loaded[0]
    if (root.status or 0) >= FIRST_ERROR_STATUS:
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
        onload_ms=_ms_since(visit.onload_ms, start_ms),
        dcl_ms=_ms_since(visit.dcl_ms, start_ms),
        first_paint_ms=visit.measured["paints"].get("first-contentful-paint"),
        largest_paint_ms=(visit.measured["largest"] or {}).get("at_ms"),
        notes=tuple(_notes(everything)),
    )


def _timing(exchange: RecordedExchange, id_: str, start_ms: float) -> RecordedTiming:
    return RecordedTiming(
        id=id_,
        status=exchange.status or 0,
        protocol=exchange.protocol,
        requested_ms=_ms_since(exchange.requested_ms, start_ms),
        first_byte_ms=_ms_since(exchange.first_byte_ms, start_ms),
        finished_ms=_ms_since(exchange.end_ms, start_ms),
        priorities=tuple((_ms_since(at, start_ms), name) for at, name in exchange.priorities),
        initiator=exchange.initiator_type,
        stack=tuple(
            f"{name or 'inline'}:{frame.line + 1} {frame.function}".rstrip()
            for frame in exchange.asked_by.stack
            for name in [frame.url.partition("?")[0].rpartition("/")[2]]  # binds the file name
        ),
    )


def _ms_since(at_ms: float | None, start_ms: float) -> float:
    return 0.0 if at_ms is None else round(at_ms - start_ms, 3)


def _notes(everything: Sequence[RecordedExchange]) -> list[str]:
    """Return notes on requests that are not in the page and on other irregularities."""
    relevant = [exchange for exchange in everything if not is_favicon(exchange)]
    blocked = sum("NAME_NOT_RESOLVED" in exchange.failed for exchange in relevant)
    failed = sum(bool(exchange.failed) for exchange in relevant) - blocked
    unfinished = sum(exchange.is_unfinished for exchange in relevant)
    missing = sum(
        exchange.is_complete and (exchange.status or 0) >= FIRST_ERROR_STATUS
        for exchange in relevant
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
                raise InputError.at("--root", "goes only with a file")
            return cls(url=what)
        # os.path, unlike pathlib, returns False for invalid paths.
        file = Path(what, "index.html") if os.path.isdir(what) else Path(what)  # noqa: PTH112
        if not os.path.isfile(file):  # noqa: PTH113
            message = "must be an http(s) URL, an HTML file or a folder with index.html"
            raise InputError.at("", message, shown_path(what))
        folder = Path(root) if root is not None else file.parent
        try:
            path = file.resolve().relative_to(folder.resolve())
        except ValueError:
            message = f"{what} is not inside {root}"
            raise InputError.at("--root", message) from None
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
                navigation = visit(address, url, patience or Timeouts())
            # A local server's URLs mean nothing later, and a query may hold secrets.
            public_url = "" if source.root is not None else url.partition("?")[0]
            loads.append(recorded_of(navigation, name, url=public_url))
            if progress is not None:
                progress(done + 1, repeat)
    page, chosen = merged([load.page for load in loads])
    provenance = _provenance(source, loads[chosen], compression, repeat) | dict(provenance or {})
    return PageRecording(
        page=replace(page, provenance=provenance),
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
