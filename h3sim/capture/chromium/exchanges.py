"""Puts the events of Chromium's Network domain together: one exchange per request and answer."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import urldefrag, urlsplit

if TYPE_CHECKING:
    from collections.abc import Iterable

    from h3sim.capture.chromium.connection import Event

__all__ = ["Exchange", "Frame", "Initiator", "exchanges_of"]

_MS = 1000
_HEADER_FRAMING = len(": \r\n")


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """One line of a stack of calls: the script, and where in it (from 0)."""

    url: str
    line: int
    function: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Initiator:
    """Why Chromium asked: its type ("parser", "script", "preload", "other"), a place, a stack.

    The stack is the innermost call first, followed by the calls that led to it earlier, over
    timers, promises and events.
    """

    type: str
    url: str = ""
    line: int | None = None
    column: int = 0
    stack: tuple[Frame, ...] = ()


@dataclass(slots=True, kw_only=True)
class Exchange:
    """One request and its answer; times in ms on Chromium's clock, sizes in bytes.

    `priorities` holds when each was given and what it was, the first of them with the request.
    `received` holds when so many bytes, plain ones, had come together; *wire_bytes* counts
    header and body as they were sent.
    """

    key: str
    url: str
    type: str
    frame: str
    requested_ms: float
    initiator: Initiator
    priorities: list[tuple[float, str]]
    render_blocking: str = ""
    method: str = "GET"
    status: int = 0
    mime: str = ""
    charset: str = ""
    protocol: str = ""
    first_byte_ms: float | None = None
    finished_ms: float | None = None
    header_bytes: int = 0
    request_bytes: int = 0
    wire_bytes: int = 0
    plain_bytes: int = 0
    from_cache: bool = False
    is_internal: bool = False
    failed: str = ""
    redirected_from: str | None = None
    received: list[tuple[float, int]] = field(default_factory=list)
    request_fields: tuple[tuple[str, str], ...] = ()
    response_fields: tuple[tuple[str, str], ...] = ()

    @property
    def body_bytes(self) -> int:
        """The body on the wire: what came in all, less the header."""
        return max(self.wire_bytes - self.header_bytes, 0)

    @property
    def is_whole(self) -> bool:
        """Whether an answer came over the network, to its end."""
        return self.finished_ms is not None and not self.from_cache and self.status > 0


class _Log:
    """Takes in events in their order."""

    def __init__(self) -> None:
        self.exchanges: list[Exchange] = []
        self._open: dict[str, Exchange] = {}
        self._extra_requests: dict[str, list[dict[str, Any]]] = {}
        self._extra_answers: dict[str, list[dict[str, Any]]] = {}
        self._hops: dict[str, int] = {}

    def take(self, event: Event) -> None:
        handler = getattr(self, f"_on_{event.method.removeprefix('Network.')}", None)
        if event.method.startswith("Network.") and handler is not None:
            handler(event.params)

    def _on_requestWillBeSent(self, params: dict[str, Any]) -> None:  # noqa: N802 - as sent
        number, request = params["requestId"], params["request"]
        before = self._open.pop(number, None)
        if before is not None and "redirectResponse" in params:
            self._answered(before, params["redirectResponse"], params["timestamp"])
            before.finished_ms = params["timestamp"] * _MS
        hop = self._hops[number] = self._hops.get(number, -1) + 1
        now_ms = params["timestamp"] * _MS
        exchange = Exchange(
            key=f"{number}/{hop}",
            url=urldefrag(request["url"]).url,
            type=params.get("type", "Other"),
            frame=params.get("frameId", ""),
            requested_ms=now_ms,
            initiator=_initiator(params["initiator"]),
            priorities=[(now_ms, request["initialPriority"])],
            render_blocking=params.get("renderBlockingBehavior", ""),
            method=request["method"],
            redirected_from=before.key if before is not None and hop else None,
        )
        self._open[number] = exchange
        self.exchanges.append(exchange)

    def _on_requestWillBeSentExtraInfo(self, params: dict[str, Any]) -> None:  # noqa: N802
        self._extra_requests.setdefault(params["requestId"], []).append(params)

    def _on_responseReceivedExtraInfo(self, params: dict[str, Any]) -> None:  # noqa: N802
        self._extra_answers.setdefault(params["requestId"], []).append(params)

    def _on_responseReceived(self, params: dict[str, Any]) -> None:  # noqa: N802
        exchange = self._open.get(params["requestId"])
        if exchange is not None:
            exchange.type = params.get("type", exchange.type)
            self._answered(exchange, params["response"], params["timestamp"])

    def _answered(self, exchange: Exchange, response: dict[str, Any], at_s: float) -> None:
        exchange.status = response["status"]
        # Chromium itself moves an address to https (HSTS): nothing goes over the network.
        exchange.is_internal = response.get("statusText") == "Internal Redirect"
        exchange.mime = response.get("mimeType", "")
        exchange.charset = response.get("charset", "")
        exchange.protocol = response.get("protocol", "")
        exchange.header_bytes = int(response.get("encodedDataLength", 0))
        exchange.from_cache = bool(
            response.get("fromDiskCache")
            or response.get("fromServiceWorker")
            or exchange.from_cache
        )
        timing = response.get("timing")
        heard_ms = at_s * _MS
        if timing is not None and timing.get("receiveHeadersEnd", -1) >= 0:
            heard_ms = timing["requestTime"] * _MS + timing["receiveHeadersEnd"]
        exchange.first_byte_ms = max(heard_ms, exchange.requested_ms)

    def _on_requestServedFromCache(self, params: dict[str, Any]) -> None:  # noqa: N802
        if params["requestId"] in self._open:
            self._open[params["requestId"]].from_cache = True

    def _on_resourceChangedPriority(self, params: dict[str, Any]) -> None:  # noqa: N802
        exchange = self._open.get(params["requestId"])
        if exchange is not None:
            change = (params["timestamp"] * _MS, params["newPriority"])
            exchange.priorities.append(change)

    def _on_dataReceived(self, params: dict[str, Any]) -> None:  # noqa: N802
        exchange = self._open.get(params["requestId"])
        if exchange is not None:
            exchange.plain_bytes += params["dataLength"]
            exchange.received.append((params["timestamp"] * _MS, exchange.plain_bytes))

    def _on_loadingFinished(self, params: dict[str, Any]) -> None:  # noqa: N802
        exchange = self._open.get(params["requestId"])
        if exchange is not None:
            exchange.finished_ms = params["timestamp"] * _MS
            exchange.wire_bytes = int(params["encodedDataLength"])

    def _on_loadingFailed(self, params: dict[str, Any]) -> None:  # noqa: N802
        exchange = self._open.get(params["requestId"])
        if exchange is not None:
            exchange.failed = params.get("errorText") or "canceled"

    def finish(self) -> list[Exchange]:
        """Return the exchanges in request order, header lists added."""
        for exchange in self.exchanges:
            number, _, hop = exchange.key.rpartition("/")
            asked = self._extra_requests.get(number, [])
            answered = self._extra_answers.get(number, [])
            if int(hop) < len(asked):
                exchange.request_fields = _fields(asked[int(hop)]["headers"])
            if int(hop) < len(answered):
                exchange.response_fields = _fields(answered[int(hop)]["headers"])
                # For a synchronous request Chromium counts the body as header, too.
                text = answered[int(hop)].get("headersText")
                exchange.header_bytes = len(text) if text else exchange.header_bytes
            exchange.request_bytes = _request_bytes(exchange)
        return sorted(self.exchanges, key=lambda exchange: exchange.requested_ms)


def exchanges_of(events: Iterable[Event]) -> list[Exchange]:
    """Return what was exchanged, in the order of the requests."""
    log = _Log()
    for event in events:
        log.take(event)
    return log.finish()


def _initiator(given: dict[str, Any]) -> Initiator:
    line = given.get("lineNumber")
    return Initiator(
        type=given["type"],
        url=urldefrag(given.get("url", "")).url,
        line=None if line is None else int(line),
        column=int(given.get("columnNumber", 0)),
        stack=tuple(_frames(given.get("stack"))),
    )


def _frames(stack: dict[str, Any] | None) -> Iterable[Frame]:
    while stack is not None:
        for call in stack["callFrames"]:
            yield Frame(
                url=urldefrag(call["url"]).url,
                line=call["lineNumber"],
                function=call["functionName"],
            )
        stack = stack.get("parent")


def _fields(headers: dict[str, str]) -> tuple[tuple[str, str], ...]:
    """Return a header list; DevTools joins fields of one name with line feeds."""
    return tuple((name, part) for name, value in headers.items() for part in value.split("\n"))


def _request_bytes(exchange: Exchange) -> int:
    """Return the size of the request as HTTP/1.1 would write it: nothing compressed."""
    parts = urlsplit(exchange.url)
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    line = len(f"{exchange.method} {target} HTTP/1.1\r\n")
    names = [(name, value) for name, value in exchange.request_fields if name[:1] != ":"]
    return line + sum(len(n) + len(v) + _HEADER_FRAMING for n, v in names) + len("\r\n")
