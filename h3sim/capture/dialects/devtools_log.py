"""Reads logs of the Chrome DevTools protocol: objects {method, params}, as a list or one a line.

Lighthouse saves such logs as devtoolslog.json. Events are those of the domain Network.
"""

from __future__ import annotations

from collections import defaultdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from h3sim.capture.dialects.initiators import read_initiator
from h3sim.capture.inference.kinds import kind_of_word
from h3sim.capture.inference.observed import REDIRECTS, Observed, Outcome, Recording, Size
from h3sim.capture.inference.urls import joined
from h3sim.capture.source.fields import Fields
from h3sim.documents import shown

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["ProtocolLog"]

_MOST_PIECES = 2_000_000
"""When more pieces of bodies came is not kept."""
_LINE_BYTES = 12
_FIELD_BYTES = 4
_LATEST_S = 253_402_300_799  # the end of the year 9999: later is no date


class ProtocolLog:
    """Takes the events of a log one after the other; `finish` puts the requests in the recording.

    A request that is redirected keeps its id; each hop becomes a request of its own.
    """

    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        self._open: dict[str, int] = {}
        self._pieces: dict[int, list[tuple[float, int]]] = defaultdict(list)
        self._n_pieces = 0
        self._first: dict[str, Any] = {}
        self._decoded: dict[int, int] = defaultdict(int)
        self._on: dict[str, Callable[[Fields, str], None]] = {
            "Network.requestWillBeSent": self._will_be_sent,
            "Network.requestServedFromCache": self._from_cache,
            "Network.responseReceived": self._response,
            "Network.dataReceived": self._data,
            "Network.loadingFinished": self._finished,
            "Network.loadingFailed": self._failed,
        }

    def add(self, key: str, value: Any) -> None:
        """Take in an event, or a member of the first, where each has a line of its own."""
        if key.startswith(("[", "event ")):
            self._add_first()
            self._add_event(key, value)
        else:
            self._first[key] = value

    def _add_first(self) -> None:
        if self._first:
            self._add_event("event 1", self._first)
            self._first = {}

    def _add_event(self, key: str, event: object) -> None:
        if not isinstance(event, dict):
            self._recording.note(key, f"skipped: must be an object, is {shown(event)}")
            return
        fields = Fields(event, key, self._recording.note)
        method = fields.text("method")
        self._recording.found["events"] += 1
        if method not in self._on:
            return
        params = fields.table("params")
        request_id = params.text("requestId")
        if not request_id:
            self._recording.note(f"{key}.params.requestId", "skipped: is missing")
        elif method == "Network.requestWillBeSent" or request_id in self._open:
            self._on[method](params, request_id)

    def finish(self) -> None:
        """Settle what can be told only when all was read."""
        self._add_first()
        requests = self._recording.requests
        for place, request in enumerate(requests):
            request.pieces = tuple(self._pieces.get(place, ()))
            _settle_sizes(request, self._decoded.get(place))
            if request.status is None and request.outcome is Outcome.ANSWERED:
                request.outcome = Outcome.FAILED  # the log ends before its answer
        self._recording.dialect = self._recording.dialect or "devtools-log"

    def _request(self, request_id: str) -> Observed:
        return self._recording.requests[self._open[request_id]]

    def _will_be_sent(self, params: Fields, request_id: str) -> None:
        if not self._recording.has_room():
            return
        asked = params.table("request")
        url = asked.text("url")
        if not url:
            asked.wrong("url", "skipped: is missing")
            return
        request = Observed(key=params.key.removesuffix(".params"), url=url)
        before = self._open.get(request_id)
        answer = params.table("redirectResponse")
        if before is not None and "redirectResponse" in params:
            hop = self._recording.requests[before]
            self._take_answer(hop, answer)
            hop.end_ms = _ms(params)
            hop.body_bytes, hop.body_from = 0, Size.RECORDED
            hop.redirect_to = joined(hop.url, url)
            request.redirect_of = before
        request.start_ms = _ms(params)
        request.method = asked.text("method").upper() or "GET"
        request.kind = kind_of_word(params.text("type"))
        request.priority = asked.text("initialPriority").lower()
        request.is_preload = asked.flag("isLinkPreload")
        request.blocking = params.text("renderBlockingBehavior").lower()
        fields = _fields_of(asked)
        request.referer = fields.get("referer", "")
        request.request_bytes = _as_text(fields) + len(url) + len(asked.text("postData"))
        request.request_from = Size.FIELDS
        if request.kind is None:
            request.kind = kind_of_word(fields.get("sec-fetch-dest", ""))
        read_initiator(request, params.table("initiator"))
        request.is_preload = request.is_preload or request.initiator_type == "preload"
        self._note_day(params)
        self._open[request_id] = len(self._recording.requests)
        self._recording.requests.append(request)

    def _note_day(self, params: Fields) -> None:
        wall_s = params.duration("wallTime")
        if wall_s and not self._recording.recorded and wall_s < _LATEST_S:
            day = datetime.fromtimestamp(wall_s, UTC).date()
            self._recording.recorded = day.isoformat()

    def _from_cache(self, _: Fields, request_id: str) -> None:
        self._request(request_id).outcome = Outcome.CACHE

    def _response(self, params: Fields, request_id: str) -> None:
        request = self._request(request_id)
        answer = params.table("response")
        self._take_answer(request, answer)
        request.first_byte_ms = _first_byte_ms(params, answer)
        request.kind = request.kind or kind_of_word(params.text("type"))
        request.mime = answer.text("mimeType")
        if request.kind is None and params.text("type") == "WebSocket":
            request.outcome = Outcome.NOT_HTTP
        if answer.flag("fromDiskCache", "fromPrefetchCache"):
            request.outcome = Outcome.CACHE
        if answer.flag("fromServiceWorker"):
            request.outcome = Outcome.SERVICE_WORKER

    def _take_answer(self, request: Observed, answer: Fields) -> None:
        status = answer.number("status")
        request.status = None if status is None else int(status)
        header_bytes = answer.size("encodedDataLength")
        if header_bytes:
            request.header_bytes, request.header_from = header_bytes, Size.RECORDED
        else:
            request.header_bytes = _as_text(_fields_of(answer))
            request.header_from = Size.FIELDS
        request.is_pushed = (answer.table("timing").number("pushStart") or 0) > 0
        if request.status in REDIRECTS:
            location = _fields_of(answer).get("location", "")
            request.redirect_to = joined(request.url, location)

    def _data(self, params: Fields, request_id: str) -> None:
        place = self._open[request_id]
        self._decoded[place] += params.size("dataLength") or 0
        at_ms, n_bytes = _ms(params), params.size("encodedDataLength")
        if at_ms is not None and n_bytes and self._n_pieces < _MOST_PIECES:
            self._n_pieces += 1
            self._pieces[place].append((at_ms, n_bytes))

    def _finished(self, params: Fields, request_id: str) -> None:
        request = self._request(request_id)
        request.end_ms = _ms(params)
        total = params.size("encodedDataLength")
        if total:
            header = request.header_bytes if request.header_from is Size.RECORDED else None
            request.body_bytes = max(0, total - (header or 0))
            request.body_from = Size.TRANSFER if header is None else Size.RECORDED

    def _failed(self, params: Fields, request_id: str) -> None:
        request = self._request(request_id)
        request.end_ms = _ms(params)
        if request.outcome is Outcome.ANSWERED:
            request.outcome = Outcome.FAILED


def _settle_sizes(request: Observed, decoded: int | None) -> None:
    request.decoded_bytes = decoded
    if request.status in (204, 304) or request.method == "HEAD":
        request.body_bytes, request.body_from = 0, Size.RECORDED
    elif request.body_bytes is None and request.pieces:
        request.body_bytes = sum(n_bytes for _, n_bytes in request.pieces)
        request.body_from = Size.PIECES
    elif request.body_bytes is None and decoded is not None:
        request.body_bytes, request.body_from = decoded, Size.DECODED


def _ms(params: Fields) -> float | None:
    seconds = params.duration("timestamp")
    return None if seconds is None else seconds * 1000


def _first_byte_ms(params: Fields, answer: Fields) -> float | None:
    """Return when the response header was there: by its timing, else when Chrome told of it."""
    timing = answer.table("timing")
    asked_s, waited_ms = timing.duration("requestTime"), timing.duration("receiveHeadersEnd")
    if asked_s is not None and waited_ms is not None:
        return asked_s * 1000 + waited_ms
    return _ms(params)


def _fields_of(message: Fields) -> dict[str, str]:
    fields = message.raw("headers")
    if not isinstance(fields, dict):
        return {}
    return {name.lower(): value for name, value in fields.items() if isinstance(value, str)}


def _as_text(fields: dict[str, str]) -> int:
    return _LINE_BYTES + sum(
        len(name) + len(value) + _FIELD_BYTES
        for name, value in fields.items()
        if not name.startswith(":")
    )
