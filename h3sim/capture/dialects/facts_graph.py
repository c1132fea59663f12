"""What made a browser ask for each row of a fact table, and how it treated it.

A recording says when a request began and who caused it; a replay needs the event. The rules:

- begun before the parent's first byte: the parent's request (a push, a hint, a cached parent);
- named by HTML at a known offset: when that offset was there;
- begun while the parent came: the bytes that were there by then;
- begun later: the parent was complete, or executed where it is a script with a known execution.

What was recorded between event and request becomes the delay.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from h3sim.capture.dialects.facts_rows import FactsTable, Row, RowType
from h3sim.page import At, Discovery

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["Basis", "Graph"]

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
        self._order = {row.id: place for place, row in enumerate(table.rows)}
        self._held_by = table.held_by

    def discovery(self, row: Row) -> tuple[Discovery | None, Basis]:
        """Return what triggers *row*, None for the root, and what that follows from."""
        if row.parent is None:
            return None, Basis("", is_recorded=True)
        parent = self._rows[row.parent]
        first_ns, end_ns = parent.first_byte_ns, parent.end_ns
        if row.start_ns < (parent.start_ns if first_ns is None else first_ns):
            delay_ns = max(0, row.start_ns - parent.start_ns)
            return self._said(At.REQUEST, row, delay_ns), Basis("request", is_recorded=True)
        if row.offset_bytes is not None and parent.type is RowType.HTML:
            offset, is_recorded = _encoded(row.offset_bytes, parent)
            if offset is not None:
                delay_ns = max(0, row.start_ns - _there_ns(parent, offset))
                return (
                    self._said(At.OFFSET, row, delay_ns, offset),
                    Basis("offset", is_recorded=is_recorded),
                )
        if end_ns is not None and first_ns is not None and row.start_ns < end_ns:
            offset, delay_ns = _arrived(parent, row.start_ns)
            if offset:
                discovery = self._said(At.OFFSET, row, delay_ns, offset)
                return discovery, Basis("offset by time", is_recorded=False)
        return self._after(row, parent)

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

    def _after(self, row: Row, parent: Row) -> tuple[Discovery, Basis]:
        """What follows when all of the parent is there."""
        is_known = parent.end_ns is not None
        end_ns = parent.end_ns
        if end_ns is None:
            end_ns = parent.start_ns if parent.first_byte_ns is None else parent.first_byte_ns
        delay_ns = max(0, row.start_ns - end_ns)
        executes_ns = parent.executes_ns
        is_run = parent.type is RowType.SCRIPT and executes_ns is not None
        if is_run and executes_ns is not None and delay_ns >= executes_ns:
            discovery = self._said(At.EXECUTED, row, delay_ns - executes_ns)
            return discovery, Basis("executed", is_recorded=is_known)
        return self._said(At.COMPLETE, row, delay_ns), Basis("complete", is_recorded=is_known)

    def _said(self, at: At, row: Row, delay_ns: int, offset_bytes: int | None = None) -> Discovery:
        return Discovery(at=at, by=row.parent, offset_bytes=offset_bytes, delay_ns=delay_ns)

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
        places = (
            place
            for id_, place in self._order.items()
            if self._rows[id_].type is RowType.IMAGE and self._is_in_document(self._rows[id_])
        )
        return min(places, default=None)

    def _is_in_document(self, row: Row) -> bool:
        return row.parent == self._document and row.initiator in _BY_PARSER

    def _is_after_first_image(self, row: Row) -> bool:
        """By Chrome's priority where there is one, else by the order of requests."""
        if row.type not in (RowType.SCRIPT, RowType.CSS) or not self._is_in_document(row):
            return False
        if row.priority is not None:
            return row.priority == _LATE_SCRIPT
        return self._first_image is not None and self._order[row.id] > self._first_image


def _encoded(offset: int, parent: Row) -> tuple[int | None, bool]:
    """Return where in the body on the wire a decoded *offset* is; None where it is behind the end.

    An encoded body is taken to be as dense everywhere.
    """
    body, content = parent.body_bytes, parent.content_bytes
    if not body:
        return None, False
    if content is None or content == body:
        return (offset, True) if offset <= body else (None, False)
    if not content or offset > content:
        return None, False
    return offset * body // content, False


def _there_ns(parent: Row, offset: int) -> int:
    """Return when *offset* bytes of *parent* were there: by chunks, else by a straight line."""
    got = 0
    for at_ns, n_bytes in parent.chunks:
        got += n_bytes
        if got >= offset:
            return at_ns
    first_ns, end_ns, body = parent.first_byte_ns, parent.end_ns, parent.body_bytes
    if first_ns is None or end_ns is None or not body:
        return parent.start_ns
    return first_ns + (end_ns - first_ns) * min(offset, body) // body


def _arrived(parent: Row, now_ns: int) -> tuple[int, int]:
    """Return how many bytes of *parent* were there at *now_ns*, and for how long by then."""
    body = parent.body_bytes or 0
    first_ns, end_ns = parent.first_byte_ns, parent.end_ns
    if parent.chunks:
        there = [(at_ns, n_bytes) for at_ns, n_bytes in parent.chunks if at_ns <= now_ns]
        got = min(body, sum(n_bytes for _, n_bytes in there))
        if got:
            return got, now_ns - there[-1][0]
    if first_ns is None or end_ns is None or end_ns == first_ns:
        return 0, 0
    if parent.chunks:  # the first bytes came, but no chunk tells how many
        return min(1, body), now_ns - first_ns
    return max(1, body * (now_ns - first_ns) // (end_ns - first_ns)) if body else 0, 0
