"""What made a browser ask for each row of a fact table, and how it treated it.

A recording says when a request began and who caused it; a replay needs the event. That follows by
the rules for all dialects (`inference.triggers`); what held the parser stands in the table itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from h3sim.capture.inference.observed import Observed, recorded_ns
from h3sim.capture.inference.triggers import trigger_of
from h3sim.page import At, Discovery, Kind
from h3sim.units import to_ms

if TYPE_CHECKING:
    from collections.abc import Mapping

    from h3sim.capture.dialects.facts_rows import FactsTable, Row

__all__ = ["Graph", "RowTrigger"]

_BY_PARSER = ("parser", "preload", None)
"""How what stands in a document is found; None where the recording does not tell."""
_LATE_SCRIPT = "Medium"
"""Chrome's priority of a script that blocks and stands after the first image."""
_NOT_BLOCKING = ("Low", "VeryLow")


class RowTrigger(NamedTuple):
    """A trigger, what it follows from, and whether that stands in the recording as it is."""

    discovery: Discovery
    basis: str
    is_recorded: bool


class Graph:
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

    def trigger(self, row: Row) -> RowTrigger | None:
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
            return RowTrigger(discovery, found.at.value, is_known)
        if row.offset_bytes is None or parent.kind is not Kind.DOCUMENT:
            return RowTrigger(discovery, "offset by time", is_recorded=False)
        # A place in what was decoded is one on the wire only where nothing was compressed.
        is_plain = parent.content_bytes in (None, parent.body_bytes)
        return RowTrigger(discovery, "offset", is_plain)

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
        while document.status is not None and 300 <= document.status < 400:
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
