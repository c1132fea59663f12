"""Fact tables: the recorded facts of a page load, without any content.

A table is a JSON object about one load: where it was recorded, and a row for each resource with
its type, sizes, times and parent. Names of hosts and files, header values and whatever else a row
holds beside the keys below never enter the page; of hosts it has numbers.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeVar

from h3sim.importers.page_assembly import assemble
from h3sim.importers.recorded_request import (
    REDIRECTS,
    ConnectionInfo,
    RecordedRequest,
    Recording,
    SizeSource,
    first_of,
)
from h3sim.importers.request_fields import kind_of_word, plain_mime
from h3sim.page import FLAGS, Kind
from h3sim.page.resource import DELAY, MAX_STREAM_BYTES, pieces_field
from h3sim.page.validation import cycle_problems, id_problems
from h3sim.schema import format_value
from h3sim.schema.arguments import Predicate
from h3sim.schema.errors import MAX_PROBLEMS, RejectedValueError, TooManyProblemsError
from h3sim.schema.fields import declare, fields_of, read_table
from h3sim.schema.values import Choice, Integer, ListOf, OrNone, Text, ValueType
from h3sim.values.errors import PageError, ValidationIssue
from h3sim.values.units import ms, to_ms

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from h3sim.importers.result import ImportedPage
    from h3sim.page import Page


ValueT = TypeVar("ValueT")
MAX_MENDED_NS = ms(100)
"""Times that run backwards by at most this are mended, as the clocks of two processes differ."""
_GRAPH_KEY = re.compile(r"resources(\[\d+\](\.id|\.parent)?)?")
"""Keys whose problems make ids or parents unknown."""
_KIND_BY_TYPE = {
    word: kind_of_word(word) or Kind.OTHER
    for word in ("html", "css", "js", "font", "image", "xhr", "media", "other")
}
"""Kinds by the type of a row."""


class _Id(Text):
    """Name of a resource, without characters of query strings, which may have private data."""

    def accept(self, value: Any) -> str:
        text = super().accept(value)
        if any(character in text for character in "?#;&"):
            message = f"must be a plain name, without a query string: {format_value(text)}"
            raise RejectedValueError(message)
        return text


class _Type(Choice):
    def read(self, given: Any) -> Kind:
        return _KIND_BY_TYPE[self.accept(given)]


class _Host(ValueType):
    """Name of a host, which is replaced by a number; any other value counts as unknown."""

    def read(self, given: Any) -> str:
        return given if isinstance(given, str) else ""


_BYTES = Integer(low=0, high=MAX_STREAM_BYTES)


def _optional_key(kind: ValueType, key: str = "", default: Any = None) -> Any:
    """Return the field of an optional key, which is *default* if the recording does not have it."""
    return field(default=default, metadata=declare(kind, key=key))


@dataclass(frozen=True, slots=True, kw_only=True)
class FactsRow:
    """One resource as recorded; None for values that the recording does not have."""

    id: str = field(metadata=declare(_Id(is_needed=True)))
    parent: str | None = field(metadata=declare(OrNone(Text(), none=None)))
    kind: Kind = field(metadata=declare(_Type(_KIND_BY_TYPE), key="type", stand_in=Kind.OTHER))
    body_bytes: int | None = field(metadata=declare(OrNone(_BYTES, none=None)))
    start_ns: int = field(metadata=declare(DELAY))
    basis: str = _optional_key(Text(), "parent_basis", "")
    """Evidence for the parent: "initiator", "referer", ..."""
    mime: str = _optional_key(Text(), default="")
    status: int | None = _optional_key(_BYTES)
    content_bytes: int | None = _optional_key(_BYTES)
    sent_ns: int | None = _optional_key(DELAY, "sent_ms")
    first_byte_ns: int | None = _optional_key(DELAY, "first_byte_ms")
    end_ns: int | None = _optional_key(DELAY, "end_ms")
    priority: str | None = _optional_key(Text(), "chrome_priority")
    initiator: str | None = _optional_key(Text(), "initiator_type")
    offset_bytes: int | None = _optional_key(_BYTES, "ref_offset")
    """Offset of its reference in the decoded parent."""
    executes_ns: int | None = _optional_key(DELAY, "exec_ms")
    chunks: tuple[tuple[int, int], ...] = _optional_key(pieces_field(0), default=())
    request_header_bytes: int | None = _optional_key(_BYTES, "req_header_bytes")
    response_header_bytes: int | None = _optional_key(_BYTES, "resp_header_bytes")
    host: str = _optional_key(_Host(), default="")
    """Pseudonym of its host: "host-1", "host-2" and so on; "" if unknown."""
    protocol: str = _optional_key(Text(), default="")
    connection: str = _optional_key(Text(), default="")
    """Pseudonym of its connection, which several hosts may share."""
    dns_ns: int | None = _optional_key(DELAY, "dns_ms")
    connect_ns: int | None = _optional_key(DELAY, "connect_ms")
    """Time to open the connection, without TLS."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Hold:
    """Resource that blocked the parser."""

    kind: str | None = _optional_key(Text())
    resource: str | None = _optional_key(Text())


class _HoldType(ValueType):
    def read(self, given: Any) -> _Hold:
        return _read(_Hold, given)


@dataclass(frozen=True, slots=True, kw_only=True)
class FactsTable:
    """Fact table, with its rows in the order of the file."""

    name: str = field(metadata=declare(Text()))
    resources: list[Any] = field(
        metadata=declare(
            Predicate("a list of tables", lambda value: isinstance(value, list)), stand_in=[]
        )
    )
    source_repo: str = _optional_key(Text(), default="")
    source_path: str = _optional_key(Text(), default="")
    commit: str = _optional_key(Text(), default="")
    captured: str = _optional_key(Text(), default="")
    recorder: str = _optional_key(Text(), default="")
    browser: str = _optional_key(Text(), default="")
    licence: str = _optional_key(Text(), "license", "")
    body_basis: str = _optional_key(Text(), default="")
    grade: str = _optional_key(Text(), default="")
    """Reliability of the facts, in the words of their recorder."""
    hol: tuple[_Hold, ...] = _optional_key(ListOf(_HoldType(), "tables"), default=())
    """Resources that blocked the parser: "css", "script-sync", "script-defer"."""
    rows: tuple[FactsRow, ...] = ()

    @property
    def provenance(self) -> dict[str, str]:
        """Provenance of the facts, without the query strings of their sources."""
        source = (self.source_repo, self.source_path, self.commit)
        notes = (("body sizes", self.body_basis), ("grade", self.grade))
        present = {
            "source": " ".join(part.partition("?")[0] for part in source).strip(),
            "recorded": self.captured,
            "tool": ", ".join(filter(None, (self.recorder, self.browser))),
            "licence": self.licence,
            "notes": "; ".join(f"{name}: {value}" for name, value in notes if value),
        }
        return {name: value for name, value in present.items() if value}


def read_facts(document: object, source: str) -> FactsTable:
    """Return the fact table in *document*, parsed JSON.

    Raises:
        PageError: listing every error in it.
    """
    if not isinstance(document, dict):
        message = f"must be an object, is {format_value(document)}"
        raise PageError.at("", message, source)
    reading = _Reading()
    try:
        table = reading.table(document)
    except TooManyProblemsError:
        table = None
    if table is None or reading.problems:
        raise PageError(first_of(reading.problems), source)
    return table


class _Reading:
    """Reader of a table, which collects its problems."""

    def __init__(self) -> None:
        self.problems: list[ValidationIssue] = []

    def table(self, document: dict[str, Any]) -> FactsTable:
        """Return the table; its problems are collected.

        Raises:
            TooManyProblemsError: if there are too many to go on.
        """
        table = self._read_or_stand_in(FactsTable, document, "")
        if not table.resources and all(problem.key != "resources" for problem in self.problems):
            self._wrong("resources", "a page needs at least one resource")
        rows: dict[int, FactsRow] = {}
        hosts: dict[str, str] = {}
        for index, entry in enumerate(table.resources):
            key = f"resources[{index}]"
            row = self._read_or_stand_in(FactsRow, entry, key)
            if isinstance(entry, dict):
                row = self._with_ordered_times(row, key)
                host = row.host and hosts.setdefault(row.host, f"host-{len(hosts) + 1}")
                rows[index] = replace(row, host=host, mime=plain_mime(row.mime))
        self.problems += _graph_problems(rows, {problem.key for problem in self.problems})
        ids = {row.id for row in rows.values()}
        for number, hold in enumerate(table.hol):
            if hold.resource is not None and hold.resource not in ids:
                shown = format_value(hold.resource)
                self._wrong(f"hol[{number}].resource", f"no resource has the id {shown}")
        return replace(table, rows=tuple(rows.values()))

    def _wrong(self, key: str, message: str) -> None:
        self.problems.append(ValidationIssue(key=key, message=message))

    def _read_or_stand_in(self, cls: type[ValueT], given: object, key: str) -> ValueT:
        """Return the values of an object; if it is invalid, add its problems and use defaults."""
        try:
            return _read(cls, given)
        except RejectedValueError as refused:
            self.problems += refused.under(key)
            if isinstance(refused, TooManyProblemsError) or len(self.problems) > MAX_PROBLEMS:
                raise TooManyProblemsError(self.problems) from refused
            stand_in: ValueT = refused.stand_in
            return stand_in

    def _with_ordered_times(self, row: FactsRow, key: str) -> FactsRow:
        """Return a row in which no time is before an earlier event's.

        Small differences are mended, larger ones are problems.
        """

        def later(name: str, at_ns: int | None, since_ns: int | None, since: str) -> int | None:
            """Return the time *at_ns*, but not before the event *since*."""
            if at_ns is None or since_ns is None or at_ns >= since_ns:
                return at_ns
            if since_ns - at_ns > MAX_MENDED_NS:
                self._wrong(f"{key}.{name}", f"lies before {since}: {to_ms(at_ns):g}")
                return None
            return since_ns

        sent_ns = later("sent_ms", row.sent_ns, row.start_ns, "start_ms")
        first_ns = later("first_byte_ms", row.first_byte_ns, row.start_ns, "start_ms")
        first_ns = later("first_byte_ms", first_ns, sent_ns, "sent_ms")
        end_ns = later("end_ms", row.end_ns, row.start_ns, "start_ms")
        end_ns = later("end_ms", end_ns, first_ns, "first_byte_ms")
        chunks: list[tuple[int, int]] = []
        previous_ns: int | None = None
        for number, (at_ns, n_bytes) in enumerate(row.chunks):
            chunk_ns = later(f"chunks[{number}][0]", at_ns, previous_ns, "the chunk ahead of it")
            previous_ns = at_ns if chunk_ns is None else chunk_ns
            chunks.append((previous_ns, n_bytes))
        return replace(
            row, sent_ns=sent_ns, first_byte_ns=first_ns, end_ns=end_ns, chunks=tuple(chunks)
        )


def _read(cls: type[ValueT], given: object) -> ValueT:
    """Return the values of the declared keys; an optional key with null counts as missing."""
    if not isinstance(given, dict):
        return read_table(cls, given)
    fields = [field for field in fields_of(cls) if field.key in given]
    present = (field for field in fields if field.is_needed or given[field.key] is not None)
    return read_table(cls, {field.key: given[field.key] for field in present})


def _graph_problems(rows: Mapping[int, FactsRow], reported: set[str]) -> list[ValidationIssue]:
    """Return the problems of ids and parents, except at keys that were *reported* already."""
    ids = {index: row.id for index, row in rows.items()}
    parents = {index: row.parent for index, row in rows.items()}
    found = [*id_problems(ids)]
    roots = [n for n, parent in parents.items() if parent is None]
    roots = [index for index in roots if f"resources[{index}].parent" not in reported]
    for index in roots[1:]:
        message = f"a second root beside resources[{roots[0]}]: only one may have no parent"
        found.append(ValidationIssue(key=f"resources[{index}].parent", message=message))
    # If an id or parent could not be read, none can be said to be missing.
    if not any(_GRAPH_KEY.fullmatch(key) for key in reported):
        if not roots:
            message = "no root: one row must have the parent null"
            found.append(ValidationIssue(key="resources", message=message))
        named = {*ids.values(), None}
        for index, parent in parents.items():
            if parent not in named:
                message = f"no resource has the id {format_value(parent)}"
                found.append(ValidationIssue(key=f"resources[{index}].parent", message=message))
    waits = {index: [] if parent is None else [(parent,)] for index, parent in parents.items()}
    found += cycle_problems(ids, waits, key="parent")
    return [problem for problem in found if problem.key not in reported]


_RECORDED_BASES = ("", "none", "initiator")
"""Bases of parents that were recorded, not inferred by the table's author."""
_MAX_BASIS_CHARS = 100
"""Longer names of a basis are cut in the report."""


def facts_from_dict(document: object, *, source: str = "table") -> ImportedPage:
    """Return the page of *document*, a fact table as parsed JSON, with a report of the import.

    The table has `name` and `resources`; its provenance is in `source_repo, source_path, commit,
    license, captured, recorder, browser, body_basis, grade`. A row needs `id`, `parent` (null for
    the root), `type` (html, css, js, font, image, xhr, media, other), `body_bytes` (null if
    unknown) and `start_ms`. It may have `parent_basis, mime, status, content_bytes, sent_ms,
    first_byte_ms, end_ms, chrome_priority, initiator_type, ref_offset, exec_ms, chunks` (pairs of
    ms and bytes), `req_header_bytes, resp_header_bytes, host, protocol, connection, dns_ms,
    connect_ms`. The optional `hol` lists resources that blocked the parser.

    Ids, body bytes and parents are kept; other values are inferred as for any recording. Header
    sizes are those recorded: of HTTP/1.1, the size as text.

    Raises:
        PageError: listing every error in it.

    >>> read = facts_from_dict({"name": "two", "resources": [
    ...     {"id": "r0", "parent": None, "type": "html", "body_bytes": 900, "start_ms": 0,
    ...      "first_byte_ms": 50, "end_ms": 80},
    ...     {"id": "r1", "parent": "r0", "type": "image", "body_bytes": 40, "start_ms": 85}]})
    >>> found = read.page.resources[1].discovered
    >>> found.at.value, found.delay_ns
    ('complete', 5000000)
    """
    recording = Recording(source=source, dialect="facts")
    _fill_recording(read_facts(document, source), recording)
    return assemble(recording)


def page_of(path: Path) -> Page:
    """Return the page of the fact table at *path*, without marks above the fold.

    Raises:
        PageError: listing every error in it.
    """
    return facts_from_dict(json.loads(path.read_text("utf-8")), source=path.name).page


def _fill_recording(table: FactsTable, recording: Recording) -> None:
    """Copy the contents of *table* into *recording*."""
    recording.name, recording.has_addresses = table.name, False
    recording.provenance |= table.provenance
    recording.requests += _requests(table.rows)
    _set_parser_holds(table, recording)
    for row in table.rows:
        if row.basis not in _RECORDED_BASES:
            recording.inferred[f"parent from {row.basis[:_MAX_BASIS_CHARS]}"] += 1
        recording.found["initiators"] += row.basis == "initiator"


def _requests(rows: Sequence[FactsRow]) -> list[RecordedRequest]:
    """Return the rows as recorded requests, each child with the index of its parent."""
    index_of = {row.id: index for index, row in enumerate(rows)}
    root_first = sorted(rows, key=lambda row: row.parent is not None)
    default_host = next((row.host for row in root_first if row.host), "host-1")
    requests: list[RecordedRequest] = []
    redirected: set[str] = set()
    for index, row in enumerate(rows):
        # A row without host is of the root's host.
        request = _recorded_request(row, f"http://{row.host or default_host}/{index}")
        requests.append(request)
        if row.parent is None:
            # A navigation requests a document, whatever the response is.
            request.kind = Kind.DOCUMENT
            continue
        request.parent = index_of[row.parent]
        is_redirect = rows[request.parent].status in REDIRECTS
        if is_redirect and row.parent not in redirected:  # a redirect leads to one request
            redirected.add(row.parent)
            request.redirect_of = request.parent
    return requests


def _recorded_request(row: FactsRow, url: str) -> RecordedRequest:
    """Return a row as a recorded request."""
    request = RecordedRequest(key=row.id, id=row.id, url=url, kind=row.kind, mime=row.mime)
    request.status = row.status
    request.start_ms = to_ms(row.start_ns)
    request.sent_ms, request.first_byte_ms, request.end_ms, dns_ms, connect_ms = (
        None if time_ns is None else to_ms(time_ns)
        for time_ns in (row.sent_ns, row.first_byte_ns, row.end_ns, row.dns_ns, row.connect_ns)
    )
    request.protocol = row.protocol.lower()
    request.reached = ConnectionInfo(
        connection=row.connection, dns_ms=dns_ms, handshake_ms=connect_ms
    )
    request.body_bytes, request.decoded_bytes = row.body_bytes, row.content_bytes
    request.header_bytes = row.response_header_bytes
    request.request_bytes = row.request_header_bytes
    request.body_from, request.header_from, request.request_from = (
        SizeSource.NONE if n_bytes is None else SizeSource.RECORDED
        for n_bytes in (request.body_bytes, request.header_bytes, request.request_bytes)
    )
    request.initiator_type = (row.initiator or "").lower()
    request.is_preload = request.initiator_type == "preload"
    request.priority = (row.priority or "").lower()
    request.offset = row.offset_bytes
    request.execute_ms = to_ms(row.executes_ns or 0)
    request.pieces = tuple((to_ms(at_ns), n_bytes) for at_ns, n_bytes in row.chunks)
    return request


def _set_parser_holds(table: FactsTable, recording: Recording) -> None:
    """Mark stylesheets that blocked the parser, and scripts that were deferred."""
    hold_kinds = {hold.resource: hold.kind for hold in table.hol if hold.kind is not None}
    for request in recording.requests:
        hold_kind = hold_kinds.get(request.id)
        if hold_kind == "css":
            request.blocking = "blocking"
        elif hold_kind == "script-defer":
            request.flags = {FLAGS["defer"]: True}
