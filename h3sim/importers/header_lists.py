"""Header lists to compress: from a HAR, a QIF file or a recorded load."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from h3sim.headers.base import Exchange, FieldSection, HeaderListError, read_qif
from h3sim.importers.formats.har import Headers, headers_of, started_at
from h3sim.importers.request_fields import request_target
from h3sim.importers.source import BrokenJsonError, Fields, JsonCursor, opened, parts
from h3sim.schema import open_input, shown_path
from h3sim.schema.files import GZIP_MAGIC
from h3sim.values.constants import HOP_BY_HOP_FIELDS
from h3sim.values.errors import ValidationIssue
from h3sim.values.units import NS_PER_US, ms

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from os import PathLike

    from h3sim.importers.formats.devtools import RecordedExchange


_SECRET_FIELDS = {"authorization", "cookie", "proxy-authorization", "set-cookie"}
"""Fields that are not published with recorded header lists."""
_URL_FIELDS = {"location", "referer"}
"""Fields whose query strings are not published: they may identify a user."""
_HAR_PREFIXES = (b"{", GZIP_MAGIC, b"\xff\xfe", b"\xfe\xff")
"""First bytes of a HAR and of no QIF file: of JSON, of gzip, or a byte order mark of UTF-16."""
_PEEKED_BYTES = 256
"""Bytes read to recognize a HAR, including blanks before its JSON."""


def read_exchanges(path: str | PathLike[str], *, interval_ns: int) -> tuple[Exchange, ...]:
    """Return the requests, and their responses where the file has them, in order.

    Lists of a QIF file that have no times follow each other by *interval_ns*; those without a
    `:method`, which each request has (RFC 9114 § 4.3.1), are responses. A file that begins like
    JSON is read as a HAR.

    Raises:
        HeaderListError: if the file is neither, or holds no header list.
    """
    with open_input(path, HeaderListError) as file:
        start = file.peek(_PEEKED_BYTES)[:_PEEKED_BYTES].removeprefix(b"\xef\xbb\xbf").lstrip()
    if start.startswith(_HAR_PREFIXES):
        return read_har_exchanges(path)
    found = []
    for number, (fields, at_ms) in enumerate(read_qif(path)):
        at_ns = number * interval_ns if at_ms is None else ms(at_ms)
        exchange = Exchange(requested_at_ns=at_ns, request=fields)
        if not any(name == b":method" for name, _ in fields):
            exchange = Exchange(
                requested_at_ns=at_ns, request=(), response=fields, responded_at_ns=at_ns
            )
        found.append(exchange)
    return tuple(found)


def read_har_exchanges(path: str | PathLike[str]) -> tuple[Exchange, ...]:
    """Return the exchanges of a HAR in the order of their start times.

    Names are in lower case, pseudo-header fields first; connection-specific fields are left out,
    and a Cookie field is split into its cookies (RFC 9113 § 8.2.3). Entries without fields, a time
    or a readable URL are left out.

    Raises:
        HeaderListError: if it is no HAR, or none of its entries has fields and a time.
    """
    problems: list[ValidationIssue] = []
    found: list[Exchange] = []
    n_entries, refusal = 0, ""

    def note(key: str, message: str) -> None:
        problems.append(ValidationIssue(key=key, message=message))

    with opened(path, HeaderListError) as source:
        try:
            for part in parts(JsonCursor(source.read), lambda *_: None):
                if part.path == ("log", "entries") and part.item is not None:
                    n_entries += 1
                    entry = Fields.of(part, note)
                    found += [] if entry is None else _exchange_of(entry)
        except BrokenJsonError as error:
            refusal = str(error)
    if not refusal and not found:
        have = f"{n_entries} entries" if n_entries != 1 else "1 entry"
        what = f"has {have}, and none of them header fields with a start time"
        refusal = what if n_entries else "has no log.entries"
    if refusal:
        issue = ValidationIssue(key="", message=refusal)
        raise HeaderListError((*problems, issue), shown_path(path))
    # By time alone: entries of one instant stay in the order of the file, as sorting is stable.
    found.sort(key=lambda exchange: exchange.requested_at_ns)
    zero_ns = found[0].requested_at_ns
    return tuple(
        replace(
            exchange,
            requested_at_ns=exchange.requested_at_ns - zero_ns,
            responded_at_ns=exchange.responded_at_ns - zero_ns,
        )
        for exchange in found
    )


def _exchange_of(entry: Fields) -> Iterator[Exchange]:
    """Yield the exchange of an entry, if it has fields, a time and a readable URL."""
    request_table, response_table = entry.table("request"), entry.table("response")
    started = started_at(entry.text("startedDateTime"))
    request = _request(request_table, headers_of(request_table))
    if not request or started is None:
        return
    receive_ms = entry.table("timings").duration("receive") or 0.0
    wait_ms = max(0.0, (entry.duration("time") or 0.0) - receive_ms)
    yield Exchange(
        requested_at_ns=started.at_us * NS_PER_US,
        request=request,
        response=_response(response_table, headers_of(response_table)),
        responded_at_ns=started.at_us * NS_PER_US + ms(wait_ms),
    )


def _request(table: Fields, fields: Headers) -> FieldSection:
    pseudo = [(name, value) for name, value in fields if name.startswith(":")]
    try:
        pseudo = pseudo or _pseudo_fields(table.text("method").upper() or "GET", table.text("url"))
    except ValueError:  # such as a broken IPv6 address
        return ()
    return _field_section(pseudo, fields) if fields else ()


def _response(table: Fields, fields: Headers) -> FieldSection:
    status = table.number("status")
    if not fields or not status or status < 0:
        return ()
    return _field_section([(":status", str(int(status)))], fields)


def _pseudo_fields(method: str, url: str) -> Headers:
    parts = urlsplit(url)
    # Without user and password, which an authority must not have (RFC 9114 § 4.3.1).
    authority = parts.netloc.rpartition("@")[2]
    return [
        (":method", method),
        (":scheme", parts.scheme),
        (":authority", authority),
        (":path", request_target(url)),
    ]


def _http2_fields(fields: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """Yield regular fields as HTTP/2 and HTTP/3 have them: in lower case, none hop-by-hop."""
    for name, value in fields:
        lower = name.lower()
        if not lower.startswith(":") and lower not in HOP_BY_HOP_FIELDS:
            yield lower, value


def _field_section(pseudo: Headers, fields: Headers) -> FieldSection:
    """Return a field section, with each cookie in a field of its own."""
    lines = [*pseudo]
    for name, value in _http2_fields(fields):
        values = value.split("; ") if name == "cookie" else (value,)
        lines += ((name, each) for each in values)
    return tuple(
        (name.encode("utf-8", "replace"), value.encode("utf-8", "replace")) for name, value in lines
    )


def request_lists(exchanges: Iterable[RecordedExchange]) -> list[Headers]:
    """Return the header list of each request; without cookies, credentials and query strings."""
    return [
        [
            *_pseudo_fields(each.method, each.url.partition("?")[0]),
            *_public_fields(each.request_fields),
        ]
        for each in exchanges
    ]


def response_lists(exchanges: Iterable[RecordedExchange]) -> list[Headers]:
    """Return the header list of each response; without cookies and query strings."""
    return [
        [(":status", str(each.status)), *_public_fields(each.response_fields)] for each in exchanges
    ]


def _public_fields(fields: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    for name, value in _http2_fields(fields):
        if name not in _SECRET_FIELDS:
            yield name, value.partition("?")[0] if name in _URL_FIELDS else value


def to_qif(lists: Iterable[Headers]) -> str:
    r"""Return header lists as QIF: lines of name, tab and value, with a blank line after each list.

    >>> to_qif([[(":method", "GET")], [(":status", "200")]])
    ':method\tGET\n\n:status\t200\n\n'
    """
    return "".join("".join(f"{n}\t{v}\n" for n, v in fields) + "\n" for fields in lists)
