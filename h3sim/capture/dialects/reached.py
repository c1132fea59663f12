"""Reads where a request went and how: address, connection, certificate, lookup and handshake."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from h3sim.capture.inference.observed import Reached

if TYPE_CHECKING:
    from h3sim.capture.source.fields import Fields

__all__ = ["reached_by_entry", "reached_by_response"]

_PORTS = ("80", "443")
_LEAST_MS = 1.0
_QUIC = ("h3", "http/3", "hq", "quic")


def reached_by_entry(entry: Fields) -> Reached:
    """Return what an entry of a HAR says: HAR 1.2, and what Chrome, WebPageTest and Playwright add.

    The `connection` of HAR 1.2 may be a port of either end. That of a server tells nothing: every
    host has it.
    """
    timings = entry.table("timings")
    connection = entry.name("_connectionId", "_socket")
    if not connection and (told := entry.name("connection")) not in _ports(entry):
        connection = told
    handshake_ms = _handshake_of_entry(
        timings.duration("connect"),
        timings.duration("ssl"),
        is_secure=entry.table("request").text("url").lower().startswith("https:"),
        is_quic=entry.table("response").text("httpVersion").lower().startswith(_QUIC),
    )
    certificate, names = _certificate(entry.table("_securityDetails"))
    if not names:
        certificate, names = _certificate(entry.table("response").table("_securityDetails"))
    return Reached(
        address=entry.text("serverIPAddress", "_ip_addr"),
        connection=connection,
        certificate=certificate,
        certificate_names=names,
        dns_ms=timings.duration("dns"),
        handshake_ms=handshake_ms,
        connect_ms=timings.duration("connect") if handshake_ms is None else None,
    )


def reached_by_response(answer: Fields) -> Reached:
    """Return what a response of the DevTools protocol says (`Network.Response`)."""
    timing = answer.table("timing")
    begin, end = timing.duration("dnsStart"), timing.duration("dnsEnd")
    certificate, names = _certificate(answer.table("securityDetails"))
    connection = answer.name("connectionId")
    return Reached(
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
