"""Reads logs of the Chrome DevTools protocol: objects {method, params}, as a list or one a line.

Lighthouse saves such logs as devtoolslog.json. Events are those of the domain Network.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from h3sim.capture.dialects.initiators import take_initiator
from h3sim.capture.dialects.network_events import NetworkEvents
from h3sim.capture.inference.kinds import kind_of_word
from h3sim.capture.inference.observed import REDIRECTS, Observed, RequestOutcome, Size
from h3sim.capture.inference.recorded import take_fields
from h3sim.capture.inference.sizes import NO_BODY, response_text_bytes
from h3sim.capture.inference.urls import joined
from h3sim.capture.source.fields import Fields
from h3sim.capture.source.parts import JsonPart
from h3sim.units import MS_PER_S

if TYPE_CHECKING:
    from collections.abc import Iterable

    from h3sim.capture.dialects.network_events import RecordedExchange
    from h3sim.capture.inference.observed import Recording

__all__ = ["ProtocolLog", "requests_of"]

_LATEST_S = 253_402_300_799  # the end of the year 9999: later is no date


class ProtocolLog:
    """Takes the events of a log one after the other; `finish` puts the requests in the recording.

    A request that is redirected keeps its id; each hop becomes a request of its own.
    """

    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        self._events = NetworkEvents(recording.note)
        self._first: dict[str, Any] = {}
        self._loaded_s: float | None = None

    def add(self, part: JsonPart) -> None:
        """Take in an event, or a member of the first, where each has a line of its own."""
        if not part.path:
            self._add_first()
            self._add_event(part)
        elif part.item is None and len(part.path) == 1:
            self._first[part.path[0]] = part.value

    def _add_first(self) -> None:
        if self._first:
            self._add_event(JsonPart((), self._first, line=1))
            self._first = {}

    def _add_event(self, part: JsonPart) -> None:
        fields = Fields.of(part, self._recording.note)
        if fields is None:
            return
        method = fields.text("method")
        self._recording.found["events"] += 1
        if method == "Page.loadEventFired":
            self._loaded_s = fields.table("params").duration("timestamp")
        is_request = method == "Network.requestWillBeSent"
        # Events of requests that are known already go in even where no more have room.
        if not is_request or self._recording.has_room(len(self._events.exchanges)):
            self._events.add(method, fields.table("params"))

    def finish(self) -> None:
        """Settle what can be told only when all was read."""
        self._add_first()
        recording = self._recording
        exchanges = self._events.finish()
        recording.requests += requests_of(exchanges)
        walls_s = (each.wall_time_s for each in exchanges)
        if wall_s := next((each for each in walls_s if each and each < _LATEST_S), None):
            recording.recorded = datetime.fromtimestamp(wall_s, UTC).date().isoformat()
        begun = [request.start_ms for request in recording.requests if request.start_ms is not None]
        if self._loaded_s is not None and begun:
            recording.times_ms["load_event"] = self._loaded_s * MS_PER_S - begun[0]


def requests_of(exchanges: Iterable[RecordedExchange]) -> list[Observed]:
    """Return exchanges as requests that were seen, each redirect joined with what it led to."""
    requests: list[Observed] = []
    indexes: dict[str, int] = {}
    for exchange in exchanges:
        request, before = _observed(exchange), exchange.redirected_from
        if before is not None and before.key in indexes:
            request.redirect_of = indexes[before.key]
            hop = requests[request.redirect_of]
            hop.redirect_to = request.url
            hop.body_bytes, hop.body_from = 0, Size.RECORDED
        indexes[exchange.key] = len(requests)
        requests.append(request)
    return requests


def _observed(exchange: RecordedExchange) -> Observed:
    sent = {name.lower(): value for name, value in exchange.request_fields}
    request = Observed(key=exchange.source_key, url=exchange.url, method=exchange.method)
    request.start_ms, request.end_ms = exchange.asked_ms, exchange.finished_ms
    request.sent_ms, request.first_byte_ms = exchange.sent_ms, exchange.first_byte_ms
    request.reached, request.protocol = exchange.reached, exchange.protocol.lower()
    request.status, request.mime = exchange.status, exchange.mime
    request.kind = kind_of_word(exchange.type) or kind_of_word(sent.get("sec-fetch-dest", ""))
    request.priority = exchange.priorities[0][1].lower() if exchange.priorities else ""
    request.later_priorities = tuple(
        (at_ms, level.lower()) for at_ms, level in exchange.priorities[1:] if at_ms is not None
    )
    request.blocking = exchange.render_blocking.lower()
    request.is_pushed = exchange.is_pushed
    take_initiator(request, exchange.initiator)
    request.is_preload = exchange.is_link_preload or request.initiator_type == "preload"
    request.outcome = _outcome(exchange, request)
    got = {name.lower(): value for name, value in exchange.response_fields}
    take_fields(request, sent, got)
    if request.status in REDIRECTS:
        location = got.get("location", "")
        request.redirect_to = joined(request.url, location) if location else ""
    _take_sizes(request, exchange)
    return request


def _outcome(exchange: RecordedExchange, request: Observed) -> RequestOutcome:
    if request.kind is None and exchange.type == "WebSocket":
        return RequestOutcome.NOT_HTTP
    if exchange.is_internal:
        return RequestOutcome.INTERNAL
    if exchange.from_service_worker:
        return RequestOutcome.SERVICE_WORKER
    if exchange.from_cache:
        return RequestOutcome.CACHE
    # Without a status the log ends before the answer.
    is_answered = request.status is not None and not exchange.failed
    return RequestOutcome.ANSWERED if is_answered else RequestOutcome.FAILED


def _take_sizes(request: Observed, exchange: RecordedExchange) -> None:
    request.request_bytes = exchange.request_bytes + exchange.post_bytes
    request.request_from = Size.FIELDS
    request.header_bytes, request.header_from = exchange.header_bytes, Size.RECORDED
    if not exchange.header_bytes and exchange.status is not None:
        request.header_bytes = response_text_bytes(exchange.response_fields)
        request.header_from = Size.FIELDS
    sent = [(at_ms, n_sent) for at_ms, n_sent, _ in exchange.pieces if n_sent]
    request.pieces, request.decoded_bytes = tuple(sent), exchange.plain_bytes
    is_empty = request.status in NO_BODY or request.method == "HEAD"
    if is_empty:
        request.body_bytes, request.body_from = 0, Size.RECORDED
    elif exchange.wire_bytes:
        is_known = request.header_from is Size.RECORDED
        header_bytes = exchange.header_bytes if is_known else 0
        request.body_bytes = max(0, exchange.wire_bytes - header_bytes)
        request.body_from = Size.RECORDED if is_known else Size.TRANSFER
    elif sent:
        request.body_bytes = sum(n_sent for _, n_sent in sent)
        request.body_from = Size.PIECES
    elif exchange.plain_bytes is not None:
        request.body_bytes, request.body_from = exchange.plain_bytes, Size.DECODED
