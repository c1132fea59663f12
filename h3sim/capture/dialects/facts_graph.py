"""What made a browser ask for each row of a fact table, and how it treated it.

A recording says when a request began and who caused it; a replay needs the event. That follows by
the rules for all dialects (`inference.triggers`); what held the parser stands in the table itself.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from h3sim.capture.dialects.facts_rows import FactsTable, Row, RowType
from h3sim.capture.inference.observed import Observed
from h3sim.capture.inference.triggers import trigger_of
from h3sim.page import At, Discovery, Kind
from h3sim.units import ms, to_ms

if TYPE_CHECKING:
    from collections.abc import Mapping

    from h3sim.capture.inference.triggers import Found

__all__ = ["KIND_OF", "Basis", "Graph"]

KIND_OF = {
    RowType.HTML: Kind.DOCUMENT,
    RowType.CSS: Kind.STYLESHEET,
    RowType.SCRIPT: Kind.SCRIPT,
    RowType.FONT: Kind.FONT,
    RowType.IMAGE: Kind.IMAGE,
    RowType.FETCH: Kind.FETCH,
    RowType.MEDIA: Kind.MEDIA,
    RowType.OTHER: Kind.OTHER,
}
_DIGITS = 3
"""Clocks of recorders do not tell more than a microsecond."""

_BY_PARSER = ("parser", "preload", None)
"""How what stands in a document is found; None where the recording does not tell."""
_EARLY_SCRIPT, _LATE_SCRIPT = "High", "Medium"
"""Chrome's priorities of scripts that block, before the first image and after it."""
_NOT_BLOCKING = ("Low", "VeryLow")


class Basis(NamedTuple):
    """What a trigger follows from, and whether it stands in the recording as it is."""

    what: str
    is_recorded: bool


class Graph:
    """The rows of *table* as the nodes that the replay follows."""

    def __init__(self, table: FactsTable) -> None:
        self._rows = {row.id: row for row in table.rows}
        self._order = {row.id: index for index, row in enumerate(table.rows)}
        self._observed = {row.id: _observed(row) for row in table.rows}
        self._held_by = table.held_by

    @property
    def observed(self) -> list[Observed]:
        """The rows as requests that were seen, in their order."""
        return [*self._observed.values()]

    def discovery(self, row: Row) -> tuple[Discovery | None, Basis]:
        """Return what triggers *row*, None for the root, and what that follows from."""
        if row.parent is None:
            return None, Basis("", is_recorded=True)
        parent = self._rows[row.parent]
        found = trigger_of(
            self._observed[row.id], self._observed[parent.id], KIND_OF[parent.type], direct=True
        )
        discovery = Discovery(
            at=found.at,
            by=row.parent,
            offset_bytes=found.offset_bytes,
            delay_ns=ms(round(found.delay_ms, _DIGITS)),
        )
        return discovery, _basis(found, row, parent)

    def flags(self, row: Row) -> Mapping[str, tuple[bool, bool]]:
        """Return each flag of *row* as (whether it holds, whether that was recorded)."""
        held = self._held_by.get(row.id)
        is_deferred = held == "script-defer"
        is_async = row.type is RowType.SCRIPT and row.priority in _NOT_BLOCKING
        after_image = self._is_after_first_image(row)
        is_blocking_kind = row.type is RowType.CSS or (
            row.type is RowType.SCRIPT and not is_async and not is_deferred
        )
        is_early = not after_image and row.priority not in _NOT_BLOCKING
        in_head = is_blocking_kind and is_early and self._is_in_document(row)
        return {
            "preload": (row.initiator == "preload", True),
            "defer": (is_deferred, True),
            "async": (is_async and not is_deferred, False),
            "after_first_image": (after_image, False),
            "in_head": (in_head, False),
            "render_blocking": (held == "css" or in_head, held == "css"),
        }

    @cached_property
    def _document(self) -> str:
        """The id of the main document: the root, or where its redirects lead."""
        document = next(row for row in self._rows.values() if row.parent is None)
        seen = {document.id}
        while document.status is not None and 300 <= document.status < 400:
            later = [row for row in self._rows.values() if row.parent == document.id]
            if not later or later[0].id in seen:
                break
            document = later[0]
            seen.add(document.id)
        return document.id

    @cached_property
    def _first_image(self) -> int | None:
        """The place of the first image that stands in the document."""
        indexes = (
            index
            for id_, index in self._order.items()
            if self._rows[id_].type is RowType.IMAGE and self._is_in_document(self._rows[id_])
        )
        return min(indexes, default=None)

    def _is_in_document(self, row: Row) -> bool:
        return row.parent == self._document and row.initiator in _BY_PARSER

    def _is_after_first_image(self, row: Row) -> bool:
        """By Chrome's priority where there is one, else by the order of requests."""
        if row.type not in (RowType.SCRIPT, RowType.CSS) or not self._is_in_document(row):
            return False
        if row.priority is not None:
            return row.priority == _LATE_SCRIPT
        return self._first_image is not None and self._order[row.id] > self._first_image


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


def _basis(found: Found, row: Row, parent: Row) -> Basis:
    """Return what a trigger follows from, in the words of the report on a table."""
    if found.at is At.OFFSET:
        is_named = row.offset_bytes is not None and parent.type is RowType.HTML
        is_even = is_named and parent.content_bytes not in (None, parent.body_bytes)
        return Basis(
            "offset" if is_named else "offset by time", is_recorded=is_named and not is_even
        )
    is_known = found.at is At.REQUEST or parent.end_ns is not None
    return Basis(found.at.value, is_recorded=is_known)
