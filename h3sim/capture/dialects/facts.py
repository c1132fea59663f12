"""Reads fact tables: what a browser's recording says of a page load, without any content.

A table is a JSON object about one load: where it was recorded, and a row for each resource with
its type, sizes, times and parent. Names of hosts and files, header values and whatever else a row
holds beside the keys below never enter the page; of hosts it has numbers.

A recording says when a request began and who caused it; a replay needs the event. That follows by
the rules for all dialects (`inference.triggers`); what held the parser stands in the table itself.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from h3sim.capture.dialects.facts_rows import read_facts
from h3sim.capture.imported import ImportedPage
from h3sim.capture.inference.estimates import Transfer, estimated_path, recorded_load
from h3sim.capture.inference.hosts import hosts_of
from h3sim.capture.inference.observed import REDIRECTS, Observed, first_of, recorded_ns
from h3sim.capture.inference.recorded import chrome_level
from h3sim.capture.inference.triggers import trigger_of
from h3sim.page import At, Discovery, Kind, Page, Resource
from h3sim.page.resource import FLAGS
from h3sim.units import to_ms

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from h3sim.capture.dialects.facts_rows import FactsTable, Row
    from h3sim.capture.inference.observed import Recording
    from h3sim.capture.source.parts import Part
    from h3sim.page import RecordedLoad

__all__ = ["FactsReader", "facts_from_dict"]

_BY_PARSER = ("parser", "preload", None)
"""How what stands in a document is found; None where the recording does not tell."""
_LATE_SCRIPT = "Medium"
"""Chrome's priority of a script that blocks and stands after the first image."""
_NOT_BLOCKING = ("Low", "VeryLow")


def facts_from_dict(document: object, *, source: str = "table") -> ImportedPage:
    """Return the page that *document*, a parsed fact table, tells of, and what was inferred.

    The table has `name` and `resources`; of `source_repo, source_path, commit, license, captured,
    recorder, browser, body_basis, grade` the provenance is made. A row needs `id`, `parent` (null
    for the root), `type` (html, css, js, font, image, xhr, media, other), `body_bytes` (null where
    unknown) and `start_ms`. It may have `parent_basis, mime, status, content_bytes, first_byte_ms,
    end_ms, chrome_priority, initiator_type, ref_offset, exec_ms, chunks` (pairs of ms and bytes),
    `req_header_bytes, resp_header_bytes, host`. `hol`, where there is one, lists what held the
    parser.

    Rows stay in their order; ids, body bytes and parents stay what they are. What triggers a
    request follows from times. Sizes of headers are those of the recording, so
    of text where that was of HTTP/1.1.

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
    table = read_facts(document, source)
    making = _Making(_Graph(table))
    rows = table.rows
    page = Page(
        name=table.name,
        resources=making.resources(rows),
        provenance=table.provenance,
        recorded_load=_whole(rows),
    )
    making.count_unknown(rows)
    # What is above the fold is settled for all dialects alike, once the page is made.
    return ImportedPage(
        page=page,
        dialect="facts",
        found=dict(making.found),
        inferred=dict(making.inferred),
        missing=tuple(f"{what} of {number:,}" for what, number in making.missing.items()),
        mended=first_of(table.mended),
    )


def _whole(rows: Sequence[Row]) -> RecordedLoad | None:
    """Return what the table tells of its network, and when all was there."""
    transfers, waits_ms = [], []
    for row in rows:
        if row.first_byte_ns is None:
            continue
        first_ms = to_ms(row.first_byte_ns)
        waits_ms.append(first_ms - to_ms(row.start_ns))
        n_bytes = (row.response_header_bytes or 0) + (row.body_bytes or 0)
        if row.end_ns is not None and n_bytes:
            transfers.append(Transfer(first_ms, to_ms(row.end_ns), n_bytes))
    ends_ns = [row.end_ns for row in rows if row.end_ns is not None]
    begun_ns = next(row.start_ns for row in rows if row.parent is None)
    times_ms = {"finished": to_ms(max(ends_ns) - begun_ns)} if ends_ns else {}
    return recorded_load(estimated_path([], waits_ms, transfers), times_ms)


class FactsReader:
    """Takes in a fact table row by row."""

    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        self._table: dict[str, Any] = {}

    def add(self, part: Part) -> None:
        """Take in a row, an entry of another list, or a value of the table."""
        name = part.path[0]
        if len(part.path) > 1:
            return  # what stands in "log", which is opened for HARs
        if part.item is None:
            self._table[name] = part.value
        elif name != "resources" or self._recording.has_room(len(self._table[name])):
            self._table[name].append(part.value)

    def finish(self) -> None:
        """Make a page of the table."""
        recording = self._recording
        if recording.host is not None:
            raise recording.refuse("a fact table has no hosts to choose from", "--host")
        read = facts_from_dict(self._table, source=recording.source)
        recording.imported = replace(read, skipped=recording.all_problems())


class _Making:
    """Makes resources of rows, and counts what was found, inferred and missing."""

    def __init__(self, graph: _Graph) -> None:
        self._graph = graph
        self.found: Counter[str] = Counter()
        self.inferred: Counter[str] = Counter()
        self.missing: Counter[str] = Counter()

    def resources(self, rows: Sequence[Row]) -> tuple[Resource, ...]:
        root = next(index for index, row in enumerate(rows) if row.parent is None)
        hosts = hosts_of(self._graph.observed, [row.host for row in rows], root, rtt_ms=None)
        return tuple(map(self._resource, rows, hosts.names))

    def _resource(self, row: Row, host: str) -> Resource:
        values: dict[str, Any] = {}
        found = self._graph.trigger(row)
        if found is not None:
            self._count(f"trigger {found.basis}", is_found=found.is_recorded)
            self._count(f"parent by {row.basis or 'unknown'}", is_found=row.basis == "initiator")
        for flag, (is_set, is_found) in self._graph.flags(row).items():
            if is_set:
                values[FLAGS[flag]] = True
                self._count(flag, is_found=is_found)
        if row.executes_ns is not None:
            values["execute_ns"] = row.executes_ns
            self.found["execute_ms"] += 1
        # A navigation that is redirected asks for a document, whatever it is answered with.
        kind = Kind.DOCUMENT if row.parent is None else row.kind
        self._count("kind", is_found=kind is row.kind)
        (self.missing if row.body_bytes is None else self.found)["bytes"] += 1
        return Resource(
            id=row.id,
            kind=kind,
            mime=row.mime,
            host=host,
            size_bytes=row.body_bytes or 0,
            header_bytes=row.response_header_bytes or 0,
            request_bytes=row.request_header_bytes or 0,
            discovered=None if found is None else found.discovery,
            recorded=chrome_level(row.priority or ""),
            **values,
        )

    def _count(self, what: str, *, is_found: bool) -> None:
        (self.found if is_found else self.inferred)[what] += 1

    def count_unknown(self, rows: Sequence[Row]) -> None:
        """Count what is missing of what a page could say, and what stands there as recorded."""
        for name, known in (
            ("mime", [bool(row.mime) for row in rows]),
            ("header_bytes", [row.response_header_bytes is not None for row in rows]),
            ("request_bytes", [row.request_header_bytes is not None for row in rows]),
            ("end_ms", [row.end_ns is not None for row in rows]),
            ("server_ms", [False] * len(rows)),
        ):
            if sum(known):
                self.found[name] += sum(known)
            if len(known) > sum(known):
                self.missing[name] += len(known) - sum(known)


class _RowTrigger(NamedTuple):
    """A trigger, what it follows from, and whether that stands in the recording as it is."""

    discovery: Discovery
    basis: str
    is_recorded: bool


class _Graph:
    """The rows of *table* as the nodes that the replay follows."""

    def __init__(self, table: FactsTable) -> None:
        self._rows = {row.id: row for row in table.rows}
        self._order = {row.id: index for index, row in enumerate(table.rows)}
        self._observed = {row.id: _observed(row) for row in table.rows}
        self._held_by = {hold.resource: hold.kind for hold in table.hol if hold.kind is not None}
        self._document = self._landed()
        images = (row for row in table.rows if row.kind is Kind.IMAGE and self._is_in_document(row))
        self._first_image = next((self._order[row.id] for row in images), len(table.rows))

    @property
    def observed(self) -> list[Observed]:
        """The rows as requests that were seen, in their order."""
        return [*self._observed.values()]

    def trigger(self, row: Row) -> _RowTrigger | None:
        """Return what triggers *row*, None for the root."""
        if row.parent is None:
            return None
        parent = self._rows[row.parent]
        request, before = self._observed[row.id], self._observed[parent.id]
        found = trigger_of(request, before, parent.kind, direct=True)
        discovery = Discovery(
            at=found.at,
            by=row.parent,
            offset_bytes=found.offset_bytes,
            delay_ns=recorded_ns(found.delay_ms),
        )
        if found.at is not At.OFFSET:
            is_known = found.at is At.REQUEST or parent.end_ns is not None
            return _RowTrigger(discovery, found.at.value, is_known)
        if row.offset_bytes is None or parent.kind is not Kind.DOCUMENT:
            return _RowTrigger(discovery, "offset by time", is_recorded=False)
        # A place in what was decoded is one on the wire only where nothing was compressed.
        is_plain = parent.content_bytes in (None, parent.body_bytes)
        return _RowTrigger(discovery, "offset", is_plain)

    def flags(self, row: Row) -> Mapping[str, tuple[bool, bool]]:
        """Return each flag of *row* as (whether it holds, whether that was recorded)."""
        held, is_script = self._held_by.get(row.id), row.kind is Kind.SCRIPT
        is_deferred = held == "script-defer"
        is_async = is_script and row.priority in _NOT_BLOCKING
        after_image = self._is_after_first_image(row)
        in_head = (
            (row.kind is Kind.STYLESHEET or (is_script and not is_deferred))
            and not after_image
            and row.priority not in _NOT_BLOCKING
            and self._is_in_document(row)
        )
        return {
            "preload": (row.initiator == "preload", True),
            "defer": (is_deferred, True),
            "async": (is_async and not is_deferred, False),
            "after_first_image": (after_image, False),
            "in_head": (in_head, False),
            "render_blocking": (held == "css" or in_head, held == "css"),
        }

    def _landed(self) -> str:
        """Return the id of the main document: the root, or where its redirects lead."""
        document = next(row for row in self._rows.values() if row.parent is None)
        while document.status in REDIRECTS:
            later = (row for row in self._rows.values() if row.parent == document.id)
            target = next(later, None)
            if target is None:
                break
            document = target
        return document.id

    def _is_in_document(self, row: Row) -> bool:
        return row.parent == self._document and row.initiator in _BY_PARSER

    def _is_after_first_image(self, row: Row) -> bool:
        """By Chrome's priority where there is one, else by the order of requests."""
        if row.kind not in (Kind.SCRIPT, Kind.STYLESHEET) or not self._is_in_document(row):
            return False
        if row.priority is not None:
            return row.priority == _LATE_SCRIPT
        return self._order[row.id] > self._first_image


def _observed(row: Row) -> Observed:
    """Return a row as a request that was seen, as far as triggers go."""
    request = Observed(key=row.id, url="", status=row.status)
    request.start_ms = to_ms(row.start_ns)
    request.first_byte_ms = None if row.first_byte_ns is None else to_ms(row.first_byte_ns)
    request.end_ms = None if row.end_ns is None else to_ms(row.end_ns)
    request.body_bytes, request.decoded_bytes = row.body_bytes, row.content_bytes
    request.offset = row.offset_bytes
    request.execute_ms = to_ms(row.executes_ns or 0)
    request.pieces = tuple((to_ms(at_ns), n_bytes) for at_ns, n_bytes in row.chunks)
    return request
