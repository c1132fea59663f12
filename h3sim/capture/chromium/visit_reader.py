"""Reads what Chromium said of one load, as the readers of other dialects read files.

What only a browser that is listened to knows comes on top: CPU time, where in a document each
request is named, what blocks, and what is seen.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from h3sim.capture.chromium.browser import ChromiumError
from h3sim.capture.chromium.causes import Causes, ReceivedDocument
from h3sim.capture.chromium.tracing import CpuTime, work_of
from h3sim.capture.chromium.visibility import largest_url, visible_shares
from h3sim.capture.dialects.exchange import join_redirects
from h3sim.capture.dialects.network_events import NetworkEvents
from h3sim.capture.inference.kinds import kind_of
from h3sim.capture.inference.observed import REDIRECTS
from h3sim.capture.inference.urls import address
from h3sim.capture.source.fields import Fields
from h3sim.page import FLAGS, Kind

if TYPE_CHECKING:
    from collections.abc import Sequence

    from h3sim.capture.chromium.causes import Cause
    from h3sim.capture.chromium.visit import Visit
    from h3sim.capture.dialects.exchange import RecordedExchange
    from h3sim.capture.inference.observed import Recording

__all__ = ["VisitReader", "exchanges_of", "is_favicon", "whole"]

_DIGITS = 2
_LOW = "Low"
_WORKED_ON = (Kind.DOCUMENT, Kind.STYLESHEET, Kind.SCRIPT)
_PAINTED = (Kind.IMAGE, Kind.FONT, Kind.MEDIA, Kind.OTHER)


def exchanges_of(visit: Visit) -> list[RecordedExchange]:
    """Return what was exchanged over HTTP, in the order of the requests."""
    events = NetworkEvents(lambda *_: None)
    for event in visit.events:
        events.add(event.method, Fields(event.params, "", lambda *_: None))
    found = (each for each in events.finish() if _is_over_http(each) and not each.is_internal)
    return sorted(found, key=lambda exchange: exchange.requested_ms)


def _is_over_http(exchange: RecordedExchange) -> bool:
    parts = address(exchange.url)
    return parts is not None and parts.scheme in ("http", "https") and bool(parts.host)


def is_favicon(exchange: RecordedExchange) -> bool:
    """Return whether the browser asks for the icon of its tab, which no page waits for."""
    return exchange.type == "Other" and exchange.initiator_type == "other"


def whole(everything: Sequence[RecordedExchange]) -> list[RecordedExchange]:
    """Return what a page consists of: answers that came, and no redirection to what did not."""
    kept = [e for e in everything if e.is_whole and not e.failed and not is_favicon(e)]
    there = {exchange.hop_id for exchange in kept}
    # Backwards, so that a whole chain of redirections that leads to nothing goes.
    for exchange in reversed(everything):
        if exchange.redirected_from is not None and exchange.hop_id not in there:
            there.discard(exchange.redirected_from.hop_id)
    return [exchange for exchange in kept if exchange.hop_id in there]


class VisitReader:
    """Puts the exchanges of one visit, its document first, into a recording.

    Raises:
        ChromiumError: if the document is not there to be looked into.
    """

    def __init__(self, visit: Visit, kept: Sequence[RecordedExchange]) -> None:
        self._visit, self._kept = visit, kept
        join_redirects(kept)
        self._kinds = {exchange.hop_id: kind_of(exchange)[0] for exchange in kept}
        self._work = work_of(visit.trace)
        self._documents = {
            exchange.hop_id: ReceivedDocument(exchange, visit.documents[exchange.number])
            for exchange in kept
            if exchange.number in visit.documents and exchange.status not in REDIRECTS
        }
        # The document behind the redirections of the root.
        self._first = next((e for e in kept if e.status not in REDIRECTS), kept[-1])
        if self._first.hop_id not in self._documents:
            raise ChromiumError("the document is not HTML, or Chromium did not keep it")
        causes = Causes(kept, self._documents, self._work, visit.measured["waited"])
        self._causes = {exchange.hop_id: causes.of(exchange) for exchange in kept[1:]}
        self._shares = visible_shares(visit.measured, visit.fonts)
        self._blocking = visit.measured["blocking"]
        self._hero = largest_url(visit.measured, visit.fonts) or self._first.url
        self._seen = self._above_the_fold()

    def read(self, recording: Recording) -> None:
        """Put the requests into *recording*, and when the load was over."""
        visit, start_ms = self._visit, self._kept[0].requested_ms
        recording.dialect = "chromium"
        recording.say_tool(visit.browser)
        if visit.onload_ms is not None:
            recording.times_ms["load_event"] = visit.onload_ms - start_ms
        if largest := visit.measured["largest"]:
            recording.times_ms["largest_paint"] = largest["at_ms"]
        for exchange in self._kept:
            cause = self._causes.get(exchange.hop_id)
            exchange.trigger = cause
            self._add_paint(exchange)
            self._add_work(exchange)
            exchange.flags = self._flags(exchange, cause)
            recording.requests.append(exchange)

    def _add_paint(self, exchange: RecordedExchange) -> None:
        is_painted = self._kinds[exchange.hop_id] in _PAINTED
        exchange.viewport = self._shares.get(exchange.url) if is_painted else None
        exchange.is_above_the_fold = exchange.hop_id in self._seen
        exchange.is_hero = exchange.url == self._hero
        exchange.is_critical = exchange is self._first or self._is_blocking(exchange)

    def _add_work(self, exchange: RecordedExchange) -> None:
        if self._kinds[exchange.hop_id] in _WORKED_ON:
            work = self._work.get(exchange.url, CpuTime())
            exchange.parse_ms = round(work.parse_ms, _DIGITS)
            exchange.execute_ms = round(work.execute_ms, _DIGITS)

    def _flags(self, exchange: RecordedExchange, cause: Cause | None) -> dict[str, object]:
        flags: dict[str, object] = {}
        if cause is not None and cause.reference is not None:
            flags |= cause.reference.flags
        elif self._kinds[exchange.hop_id] is Kind.SCRIPT and exchange.initiator_type == "script":
            flags[FLAGS["async"]] = exchange.priorities[0][1] == _LOW
        # Chromium knows better than the tag what blocks, and what the first image is.
        flags["render_blocking"] = self._is_blocking(exchange)
        flags["after_first_image"] = cause is not None and self._is_after_image(cause)
        return flags

    def _is_blocking(self, exchange: RecordedExchange) -> bool:
        return exchange.blocking == "blocking" or exchange.url in self._blocking

    def _is_after_image(self, cause: Cause) -> bool:
        """By its place in the document; what others bring comes after all that stands there."""
        first = self._documents[self._first.hop_id].html.first_image_bytes
        if first is None:
            return False
        if cause.reference is None or self._kept[cause.by] is not self._first:
            return True
        return cause.reference.offset_bytes > first

    def _above_the_fold(self) -> set[str]:
        """What is seen, what painting waits for, and what brings either."""
        # Also where a way up ends: whatever stands here has all that brings it in here.
        seen: set[str] = {self._first.hop_id, self._kept[0].hop_id}
        for exchange in self._kept:
            is_painted = self._kinds[exchange.hop_id] in _PAINTED
            shown = is_painted and exchange.url in self._shares
            if shown or self._is_blocking(exchange):
                key: str | None = exchange.hop_id
                while key is not None and key not in seen:
                    seen.add(key)
                    cause = self._causes.get(key)
                    key = None if cause is None else self._kept[cause.by].hop_id
        return seen
