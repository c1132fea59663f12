"""Initiators and connection information in the forms that Chrome's recorders write."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from h3sim.importers.recorded_request import ConnectionInfo
from h3sim.importers.request_fields import without_fragment
from h3sim.importers.source import Fields

if TYPE_CHECKING:
    from collections.abc import Iterator

    from h3sim.importers.recorded_request import RecordedRequest


_DEEPEST = 50
"""So many asynchronous stacks are followed, and so many frames of each are looked at."""
_LONGEST_DETAIL = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class CallFrame:
    """Call frame: the script and the position in it (from 0)."""

    url: str
    line: int
    function: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Initiator:
    """Initiator of a request: type ("parser", "script", "preload", "other"), position and stack.

    The stack has the innermost call first, followed by its asynchronous callers (timers, promises
    and events).
    """

    type: str = ""
    url: str = ""
    line: int | None = None
    column: int = 0
    stack: tuple[CallFrame, ...] = ()


def read_initiator(given: Fields) -> Initiator:
    """Return an initiator as the DevTools protocol has it."""
    line, column = given.number("lineNumber"), given.number("columnNumber")
    return Initiator(
        type=given.text("type").lower(),
        url=without_fragment(given.text("url")),
        line=int(line) if line is not None and line >= 0 else None,
        column=int(column or 0),
        stack=tuple(_frames(given.table("stack"))),
    )


def _frames(stack: Fields) -> Iterator[CallFrame]:
    for _ in range(_DEEPEST):
        for call in stack.tables("callFrames")[:_DEEPEST]:
            yield CallFrame(
                url=without_fragment(call.text("url")),
                line=int(call.number("lineNumber") or 0),
                function=call.text("functionName"),
            )
        if not isinstance(stack.raw("parent"), dict):
            return
        stack = stack.table("parent")


def take_initiator(request: RecordedRequest, initiator: Initiator) -> None:
    """Take over an initiator as the DevTools protocol has it."""
    request.initiator_type = initiator.type
    request.line = initiator.line
    request.stack = tuple(dict.fromkeys(frame.url for frame in initiator.stack if frame.url))
    is_scripted = initiator.type == "script" and bool(request.stack)
    # The innermost frame decides; Chrome gives the same URL outside of the stack at times.
    request.initiator = "" if is_scripted else initiator.url


def read_initiator_fields(request: RecordedRequest, entry: Fields) -> None:
    """Take over an initiator from `_initiator` and what stands beside it in a HAR.

    DevTools has an object there. chrome-har and WebPageTest have a URL, and chrome-har the whole
    object as text in `_initiator_detail`.
    """
    value: Any = entry.raw("_initiator")
    if isinstance(value, dict):
        take_initiator(request, read_initiator(entry.table("_initiator")))
        return
    detail = _parsed(entry.raw("_initiator_detail"))
    if detail:
        take_initiator(request, read_initiator(Fields(detail, entry.key, lambda *_: None)))
    if not request.stack:
        request.initiator = entry.text("_initiator") or request.initiator
    request.initiator_type = entry.text("_initiator_type").lower() or request.initiator_type
    line = entry.number("_initiator_line")
    if line is not None and line >= 1 and request.line is None:
        request.line = int(line) - 1  # chrome-har counts lines from 1, the protocol from 0


def _parsed(detail: object) -> dict[str, Any]:
    if not isinstance(detail, str) or len(detail) > _LONGEST_DETAIL:
        return {}
    try:
        value = json.loads(detail)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


_PORTS = ("80", "443")
_LEAST_MS = 1.0
_QUIC = ("h3", "http/3", "hq", "quic")


def connection_info(entry: Fields) -> ConnectionInfo:
    """Return what an entry of a HAR says: HAR 1.2, and what Chrome, WebPageTest and Playwright add.

    The `connection` of HAR 1.2 may be a port of either end. That of a server tells nothing: every
    host has it.
    """
    timings = entry.table("timings")
    connection = entry.name("_connectionId", "_socket")
    if not connection and (number := entry.name("connection")) not in _ports(entry):
        connection = number
    handshake_ms = _handshake_of_entry(
        timings.duration("connect"),
        timings.duration("ssl"),
        is_secure=entry.table("request").text("url").lower().startswith("https:"),
        is_quic=entry.table("response").text("httpVersion").lower().startswith(_QUIC),
    )
    certificate, names = _certificate(entry.table("_securityDetails"))
    if not names:
        certificate, names = _certificate(entry.table("response").table("_securityDetails"))
    return ConnectionInfo(
        address=entry.text("serverIPAddress", "_ip_addr"),
        connection=connection,
        certificate=certificate,
        certificate_names=names,
        dns_ms=timings.duration("dns"),
        handshake_ms=handshake_ms,
        connect_ms=timings.duration("connect") if handshake_ms is None else None,
    )


def reached_by_response(answer: Fields) -> ConnectionInfo:
    """Return what a response of the DevTools protocol says (`Network.Response`)."""
    timing = answer.table("timing")
    begin, end = timing.duration("dnsStart"), timing.duration("dnsEnd")
    certificate, names = _certificate(answer.table("securityDetails"))
    connection = answer.name("connectionId")
    return ConnectionInfo(
        address=answer.text("remoteIPAddress"),
        # Chromium's number for what went over no connection is 0.
        connection="" if connection == "0" else connection,
        certificate=certificate,
        certificate_names=names,
        dns_ms=None if begin is None or end is None else end - begin,
        handshake_ms=_handshake_of_response(timing),
    )


def _certificate(details: Fields) -> tuple[str, tuple[str, ...]]:
    """Return by what a certificate is known, and the names that it is good for."""
    subject = details.text("subjectName")
    validity = [details.name(name) for name in ("validFrom", "validTo")]
    known_by = " ".join((subject, details.text("issuer"), *validity)) if all(validity) else ""
    # Names that are no alternative names count for nothing where there are any (RFC 9525 § 2).
    return known_by, tuple(details.texts("sanList")) or ((subject,) if subject else ())


def _ports(entry: Fields) -> tuple[str, ...]:
    try:
        port = urlsplit(entry.table("request").text("url")).port
    except ValueError:
        port = None
    return (*_PORTS, str(port))


def _handshake_of_entry(
    connect: float | None, ssl: float | None, *, is_secure: bool, is_quic: bool
) -> float | None:
    """Return what the transport's handshake took: *connect* has that of TLS in it (HAR 1.2).

    Over QUIC both are one, and a recorder says the same for both, or nothing of TLS; some
    recorders leave TLS out of *connect*. Where nothing is said of TLS although there was some,
    nothing can be told.
    """
    if not connect:
        return None
    if ssl is None or ssl == 0:
        return None if is_secure and not is_quic else connect
    if connect <= ssl:
        return connect
    # Less is what is left of a connection that the browser had opened before, for whatever comes.
    return connect - ssl if connect - ssl >= _LEAST_MS else None


def _handshake_of_response(timing: Fields) -> float | None:
    """Return what the transport's handshake took; QUIC's is that of TLS, too."""
    begin, end = timing.duration("connectStart"), timing.duration("connectEnd")
    ssl = timing.duration("sslStart")
    if begin is None or end is None:
        return None
    return (end if ssl is None or ssl <= begin else ssl) - begin
