"""Puts the events of the DevTools protocol's domain Network together: one exchange per request.

Logs that were saved and a browser that is listened to say the same; both are read here. Values of
a wrong type are noted and not used.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from h3sim.capture.dialects.exchange import Headers, RecordedExchange
from h3sim.capture.dialects.initiators import read_initiator, take_initiator
from h3sim.capture.dialects.reached import reached_by_response
from h3sim.capture.inference.observed import INTERNAL_REDIRECT, Size
from h3sim.capture.inference.sizes import NOT_MODIFIED
from h3sim.capture.inference.urls import without_fragment
from h3sim.units import MS_PER_S

if TYPE_CHECKING:
    from collections.abc import Callable

    from h3sim.capture.source.fields import Fields

__all__ = ["NetworkEvents"]

_EVENTS = frozenset(
    (
        *("requestWillBeSent", "requestWillBeSentExtraInfo", "responseReceivedExtraInfo"),
        *("requestServedFromCache", "responseReceived", "resourceChangedPriority"),
        *("dataReceived", "loadingFinished", "loadingFailed"),
    )
)
_MOST_PIECES = 2_000_000
"""When more pieces of bodies came is not kept."""


class _ExtraInfo(NamedTuple):
    """What was received as it was: before the cache had its say."""

    fields: Headers
    text_bytes: int
    status: float | None


class NetworkEvents:
    """Takes the events one after the other; a request that is redirected keeps its id."""

    def __init__(self, note: Callable[[str, str], None]) -> None:
        self.exchanges: list[RecordedExchange] = []
        self._note = note
        self._open: dict[str, RecordedExchange] = {}
        self._hops: dict[str, int] = {}
        self._n_pieces = 0
        # Extra events come before or behind those that they belong to: hops join them at the end.
        self._sent: dict[str, list[Headers]] = {}
        self._got: dict[str, list[_ExtraInfo]] = {}

    def add(self, method: str, params: Fields) -> None:
        """Take in an event; those of other domains, and of unknown requests, are passed over."""
        event = method.removeprefix("Network.")
        if event not in _EVENTS or event == method:
            return
        number = params.text("requestId")
        if not number:
            self._note(f"{params.key}.requestId", "skipped: is missing")
        elif event == "requestWillBeSent":
            self._will_be_sent(params, number)
        elif event == "requestWillBeSentExtraInfo":
            self._sent.setdefault(number, []).append(_headers(params))
        elif event == "responseReceivedExtraInfo":
            text = params.raw("headersText")
            n_bytes = len(text) if isinstance(text, str) else 0
            extra = _ExtraInfo(_headers(params), n_bytes, params.number("statusCode"))
            self._got.setdefault(number, []).append(extra)
        elif number in self._open:
            self._go_on(event, params, self._open[number])

    def _go_on(self, event: str, params: Fields, exchange: RecordedExchange) -> None:
        """Take in what became of a request."""
        match event:
            case "requestServedFromCache":
                exchange.from_cache = True
            case "responseReceived":
                exchange.type = params.text("type") or exchange.type
                self._take_answer(exchange, params.table("response"), params)
            case "resourceChangedPriority":
                exchange.priorities.append((_ms(params), params.text("newPriority")))
            case "dataReceived":
                self._data_received(params, exchange)
            case "loadingFinished":
                exchange.end_ms = _ms(params)
                exchange.wire_bytes = params.size("encodedDataLength")
            case _:
                exchange.failed = params.text("errorText") or "canceled"

    def finish(self) -> list[RecordedExchange]:
        """Return the exchanges in the order of their requests, header lists added."""
        hops: Counter[str] = Counter()
        for exchange in self.exchanges:
            if not exchange.has_extra:
                continue
            number = exchange.number
            sent, got, hop = self._sent.get(number, []), self._got.get(number, []), hops[number]
            hops[number] += 1
            if hop < len(sent):
                exchange.request_fields = sent[hop]
            if hop < len(got):
                extra = got[hop]
                exchange.response_fields = extra.fields
                # For a synchronous request Chromium counts the body as header, too.
                exchange.header_bytes = extra.text_bytes or exchange.header_bytes
                if extra.status == NOT_MODIFIED:
                    # Chromium then tells of the answer that it has in its cache, and that all of
                    # that was sent.
                    exchange.status, exchange.wire_bytes = NOT_MODIFIED, exchange.header_bytes
        for exchange in self.exchanges:
            exchange.settle()
            if exchange.redirected_from is not None:  # which came before, and so is settled
                exchange.redirected_from.body_bytes = 0
                exchange.redirected_from.body_from = Size.RECORDED
        return self.exchanges

    def _will_be_sent(self, params: Fields, number: str) -> None:
        asked = params.table("request")
        url = asked.text("url")
        if not url:
            asked.wrong("url", "skipped: is missing")
            return
        now_ms = _ms(params)
        before = self._open.pop(number, None)
        is_redirected = before is not None and "redirectResponse" in params
        if before is not None and is_redirected:
            self._take_answer(before, params.table("redirectResponse"), params)
            before.end_ms = now_ms
        hop = self._hops[number] = self._hops.get(number, -1) + 1
        exchange = RecordedExchange(
            hop_id=f"{number}/{hop}",
            key=params.key.removesuffix(".params"),
            url=without_fragment(url),
            type=params.text("type"),
            frame_id=params.text("frameId"),
            start_ms=now_ms,
            wall_time_s=params.duration("wallTime"),
            asked_by=read_initiator(params.table("initiator")),
            priorities=[(now_ms, asked.text("initialPriority"))],
            blocking=params.text("renderBlockingBehavior").lower(),
            method=asked.text("method").upper() or "GET",
            post_bytes=len(asked.text("postData")),
            redirected_from=before if is_redirected else None,
            request_fields=_headers(asked),
        )
        take_initiator(exchange, exchange.asked_by)
        exchange.is_preload = asked.flag("isLinkPreload") or exchange.initiator_type == "preload"
        self._open[number] = exchange
        self.exchanges.append(exchange)

    def _take_answer(self, exchange: RecordedExchange, answer: Fields, params: Fields) -> None:
        status = answer.number("status")
        exchange.status = None if status is None else int(status)
        exchange.is_internal = answer.raw("statusText") == INTERNAL_REDIRECT
        told = (params.raw("hasExtraInfo"), params.raw("redirectHasExtraInfo"))
        exchange.has_extra = not exchange.is_internal and False not in told
        exchange.mime = answer.text("mimeType")
        exchange.charset = answer.text("charset")
        exchange.protocol = answer.text("protocol").lower()
        exchange.header_bytes = answer.size("encodedDataLength") or 0
        exchange.response_fields = _headers(answer)
        exchange.is_early_hint = answer.flag("fromEarlyHints")
        if not exchange.is_early_hint:
            exchange.from_cache |= answer.flag("fromDiskCache", "fromPrefetchCache")
        exchange.from_service_worker |= answer.flag("fromServiceWorker")
        timing = answer.table("timing")
        exchange.is_pushed = (timing.number("pushStart") or 0) > 0
        heard_ms = _ms(params)
        asked_s, waited_ms = timing.duration("requestTime"), timing.duration("receiveHeadersEnd")
        if asked_s is not None and waited_ms is not None:
            heard_ms = asked_s * MS_PER_S + waited_ms
        sent_ms = timing.duration("sendEnd")
        if asked_s is not None and sent_ms is not None:
            exchange.sent_ms = asked_s * MS_PER_S + sent_ms
        exchange.reached = reached_by_response(answer)
        if heard_ms is not None:
            exchange.first_byte_ms = max(heard_ms, exchange.requested_ms)

    def _data_received(self, params: Fields, exchange: RecordedExchange) -> None:
        n_plain, n_sent = params.size("dataLength") or 0, params.size("encodedDataLength") or 0
        exchange.decoded_bytes = (exchange.decoded_bytes or 0) + n_plain
        at_ms = _ms(params)
        if at_ms is not None and self._n_pieces < _MOST_PIECES:
            self._n_pieces += 1
            exchange.chunks.append((at_ms, n_sent, n_plain))


def _ms(params: Fields) -> float | None:
    seconds = params.duration("timestamp")
    return None if seconds is None else seconds * MS_PER_S


def _headers(message: Fields) -> Headers:
    """Return a header list; DevTools joins fields of one name with line feeds."""
    fields = message.raw("headers")
    if not isinstance(fields, dict):
        return ()
    texts = ((name, value) for name, value in fields.items() if isinstance(value, str))
    return tuple((name, part) for name, value in texts for part in value.split("\n"))
