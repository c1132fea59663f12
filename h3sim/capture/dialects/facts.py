"""Reads fact tables: what a browser's recording says of a page load, without any content.

A table is a JSON object about one load: where it was recorded, and a row for each resource with
its type, sizes, times and parent. Names of hosts and files, header values and whatever else a row
holds beside the keys below never enter the page; of hosts it has numbers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from h3sim.capture.dialects.facts_rows import read_facts
from h3sim.capture.inference.assembly import assemble
from h3sim.capture.inference.observed import REDIRECTS, Observed, Recording, Size
from h3sim.page import FLAGS, Kind
from h3sim.units import to_ms

if TYPE_CHECKING:
    from collections.abc import Sequence

    from h3sim.capture.dialects.facts_rows import FactsRow, FactsTable
    from h3sim.capture.imported import ImportedPage
    from h3sim.capture.source.parts import JsonPart

__all__ = ["FactsReader", "facts_from_dict"]

_KNOWN_PARENTS = ("", "none", "initiator")
"""The bases of parents that nobody worked out."""
_SHOWN_CHARACTERS = 100
"""A longer name of a basis is cut in the report."""


def facts_from_dict(document: object, *, source: str = "table") -> ImportedPage:
    """Return the page that *document*, a parsed fact table, tells of, and what was inferred.

    The table has `name` and `resources`; of `source_repo, source_path, commit, license, captured,
    recorder, browser, body_basis, grade` the provenance is made. A row needs `id`, `parent` (null
    for the root), `type` (html, css, js, font, image, xhr, media, other), `body_bytes` (null where
    unknown) and `start_ms`. It may have `parent_basis, mime, status, content_bytes, first_byte_ms,
    end_ms, chrome_priority, initiator_type, ref_offset, exec_ms, chunks` (pairs of ms and bytes),
    `req_header_bytes, resp_header_bytes, host`. `hol`, where there is one, lists what held the
    parser.

    Ids, body bytes and parents stay what they are; all else follows as for any recording. Sizes of
    headers are those of the recording, so of text where that was of HTTP/1.1.

    Raises:
        PageError: listing every mistake in it.

    >>> read = facts_from_dict({"name": "two", "resources": [
    ...     {"id": "r0", "parent": None, "type": "html", "body_bytes": 900, "start_ms": 0,
    ...      "first_byte_ms": 50, "end_ms": 80},
    ...     {"id": "r1", "parent": "r0", "type": "image", "body_bytes": 40, "start_ms": 85}]})
    >>> found = read.page.resources[1].discovered
    >>> found.at.value, found.delay_ns
    ('complete', 5000000)
    """
    recording = Recording(source=source, dialect="facts")
    _take(read_facts(document, source), recording)
    return assemble(recording)


class FactsReader:
    """Takes in a fact table row by row."""

    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        self._table: dict[str, Any] = {}

    def add(self, part: JsonPart) -> None:
        """Take in a row, an entry of another list, or a value of the table."""
        name = part.path[0]
        if len(part.path) > 1:
            return  # what stands in "log", which is opened for HARs
        if part.item is None:
            self._table[name] = part.value
        elif name != "resources" or self._recording.has_room(len(self._table[name])):
            self._table[name].append(part.value)

    def finish(self) -> None:
        """Put the rows into the recording, once all of them hold together."""
        _take(read_facts(self._table, self._recording.source), self._recording)


def _take(table: FactsTable, recording: Recording) -> None:
    """Put what *table* says into *recording*."""
    recording.name, recording.has_addresses = table.name, False
    recording.provenance |= table.provenance
    recording.mended += table.mended
    recording.requests += _requests(table.rows)
    _take_holds(table, recording)
    for row in table.rows:
        if row.basis not in _KNOWN_PARENTS:
            recording.inferred[f"parent from {row.basis[:_SHOWN_CHARACTERS]}"] += 1
        recording.found["initiators"] += row.basis == "initiator"


def _requests(rows: Sequence[FactsRow]) -> list[Observed]:
    """Return the rows as requests that were seen, each child with the index of its parent."""
    index_of = {row.id: index for index, row in enumerate(rows)}
    hosts = [row.host for row in sorted(rows, key=lambda row: row.parent is not None) if row.host]
    requests: list[Observed] = []
    redirected: set[str] = set()
    for index, row in enumerate(rows):
        # What names no host went to that of the root.
        request = _observed(row, f"http://{row.host or next(iter(hosts), 'host-1')}/{index}")
        requests.append(request)
        if row.parent is None:
            # A navigation asks for a document, whatever it is answered with.
            request.kind = Kind.DOCUMENT
            continue
        request.parent = index_of[row.parent]
        is_redirect = rows[request.parent].status in REDIRECTS
        if is_redirect and row.parent not in redirected:  # a redirect leads to one request
            redirected.add(row.parent)
            request.redirect_of = request.parent
    return requests


def _observed(row: FactsRow, url: str) -> Observed:
    """Return a row as a request that was seen."""
    request = Observed(key=row.id, id=row.id, url=url, kind=row.kind, mime=row.mime)
    request.status = row.status
    request.start_ms = to_ms(row.start_ns)
    request.first_byte_ms = None if row.first_byte_ns is None else to_ms(row.first_byte_ns)
    request.end_ms = None if row.end_ns is None else to_ms(row.end_ns)
    request.body_bytes, request.decoded_bytes = row.body_bytes, row.content_bytes
    request.header_bytes = row.response_header_bytes
    request.request_bytes = row.request_header_bytes
    request.body_from, request.header_from, request.request_from = (
        Size.NONE if n_bytes is None else Size.RECORDED
        for n_bytes in (request.body_bytes, request.header_bytes, request.request_bytes)
    )
    request.initiator_type = (row.initiator or "").lower()
    request.is_preload = request.initiator_type == "preload"
    request.priority = (row.priority or "").lower()
    request.offset = row.offset_bytes
    request.execute_ms = to_ms(row.executes_ns or 0)
    request.pieces = tuple((to_ms(at_ns), n_bytes) for at_ns, n_bytes in row.chunks)
    return request


def _take_holds(table: FactsTable, recording: Recording) -> None:
    """Take over what held the parser: stylesheets that block, scripts that were deferred."""
    held_by = {hold.resource: hold.kind for hold in table.hol if hold.kind is not None}
    for request in recording.requests:
        held = held_by.get(request.id)
        if held == "css":
            request.blocking = "blocking"
        elif held == "script-defer":
            request.flags = {FLAGS["defer"]: True}
