"""Events of the Network domain, put together by hand."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from h3sim.importers.chromium.browser import ProtocolEvent
from h3sim.importers.formats.devtools import CallFrame, NetworkEvents
from h3sim.importers.source import Fields

if TYPE_CHECKING:
    from collections.abc import Iterable

    from h3sim.importers.formats.devtools import RecordedExchange


def exchanges_of(events: Iterable[ProtocolEvent]) -> list[RecordedExchange]:
    log = NetworkEvents(lambda *_: None)
    for each in events:
        log.add(each.method, Fields(each.params, "", lambda *_: None))
    return log.finish()


def asked(number: str, url: str, at_s: float, **more: Any) -> ProtocolEvent:
    params = {
        "requestId": number,
        "timestamp": at_s,
        "type": "Image",
        "frameId": "f",
        "initiator": {"type": "parser", "url": "http://x/", "lineNumber": 3, "columnNumber": 9},
        "request": {"url": url, "method": "GET", "initialPriority": "Medium"},
    }
    return ProtocolEvent("Network.requestWillBeSent", params | more, "s")


def answered(number: str, at_s: float, **more: Any) -> ProtocolEvent:
    response = {"status": 200, "mimeType": "image/png", "encodedDataLength": 180} | more
    params = {"requestId": number, "timestamp": at_s, "type": "Image", "response": response}
    return ProtocolEvent("Network.responseReceived", params, "s")


def event(name: str, number: str, **params: Any) -> ProtocolEvent:
    return ProtocolEvent(f"Network.{name}", {"requestId": number, **params}, "s")


def only(*events: ProtocolEvent) -> RecordedExchange:
    found = exchanges_of(events)
    assert len(found) == 1
    return found[0]


def test_sizes_are_those_on_the_wire_and_the_header_is_not_part_of_the_body() -> None:
    exchange = only(
        asked("1", "http://x/a.png", 1.0),
        answered("1", 1.2),
        event("dataReceived", "1", timestamp=1.3, dataLength=400, encodedDataLength=0),
        event("dataReceived", "1", timestamp=1.4, dataLength=600, encodedDataLength=0),
        event("loadingFinished", "1", timestamp=1.5, encodedDataLength=680),
    )
    assert (exchange.header_bytes, exchange.body_bytes, exchange.decoded_bytes) == (180, 500, 1000)
    assert exchange.chunks == [(1300.0, 0, 400), (1400.0, 0, 600)]
    assert (exchange.requested_ms, exchange.end_ms) == (1000.0, 1500.0)
    assert exchange.is_complete


def test_a_priority_that_changes_is_kept_with_its_times() -> None:
    exchange = only(
        asked("1", "http://x/a.png", 1.0),
        event("resourceChangedPriority", "1", timestamp=1.5, newPriority="High"),
    )
    assert exchange.priorities == [(1000.0, "Medium"), (1500.0, "High")]


def test_each_hop_of_a_redirection_is_an_exchange() -> None:
    moved = {"status": 302, "mimeType": "", "encodedDataLength": 90}
    first, second = exchanges_of(
        [
            asked("1", "http://x/a", 1.0),
            asked("1", "http://x/b", 1.1, redirectResponse=moved),
            answered("1", 1.2),
            event("loadingFinished", "1", timestamp=1.3, encodedDataLength=380),
        ]
    )
    assert (first.url, first.status, first.body_bytes) == ("http://x/a", 302, 0)
    assert first.end_ms == 1100.0
    assert (second.url, second.redirected_from) == ("http://x/b", first)
    assert second.body_bytes == 200


def test_what_comes_from_the_cache_did_not_come_over_the_network() -> None:
    exchange = only(
        asked("1", "http://x/a.png", 1.0),
        event("requestServedFromCache", "1"),
        answered("1", 1.0),
        event("loadingFinished", "1", timestamp=1.0, encodedDataLength=0),
    )
    assert not exchange.is_complete


def test_a_request_that_fails_states_why_and_is_not_complete() -> None:
    exchange = only(
        asked("1", "http://other/a.png", 1.0),
        event("loadingFailed", "1", timestamp=1.1, errorText="net::ERR_NAME_NOT_RESOLVED"),
    )
    assert exchange.failed == "net::ERR_NAME_NOT_RESOLVED"
    assert not exchange.is_complete


def test_a_stack_goes_on_over_timers_and_promises() -> None:
    def call(url: str, line: int) -> dict[str, Any]:
        return {"url": url, "lineNumber": line, "columnNumber": 0, "functionName": "f"}

    stack = {
        "callFrames": [call("http://x/a.js#part", 1)],
        "parent": {"callFrames": [call("http://x/b.js", 2)], "description": "setTimeout"},
    }
    exchange = only(asked("1", "http://x/a.png", 1.0, initiator={"type": "script", "stack": stack}))
    assert exchange.asked_by.stack == (
        CallFrame(url="http://x/a.js", line=1, function="f"),
        CallFrame(url="http://x/b.js", line=2, function="f"),
    )


def test_the_size_of_a_request_is_that_of_its_http_1_text() -> None:
    exchange = only(
        asked("1", "http://x/a.png?v=2", 1.0),
        event("requestWillBeSentExtraInfo", "1", headers={"Host": "x", "Accept": "*/*"}),
    )
    text = "GET /a.png?v=2 HTTP/1.1\r\nHost: x\r\nAccept: */*\r\n\r\n"
    assert exchange.request_bytes == len(text)


def test_what_the_browser_redirects_by_itself_did_not_come_over_the_network() -> None:
    upgraded = {"status": 307, "statusText": "Internal Redirect", "encodedDataLength": 0}
    first, second = exchanges_of(
        [
            asked("1", "http://x/a", 1.0),
            asked("1", "https://x/a", 1.0, redirectResponse=upgraded),
        ]
    )
    assert first.is_internal
    assert not second.is_internal
