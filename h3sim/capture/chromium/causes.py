"""Finds what made Chromium ask for each resource: the rules of docs/recording.md."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from h3sim.capture.chromium.documents import Document
from h3sim.capture.inference.observed import Trigger
from h3sim.capture.markup.compression import WireOffsets
from h3sim.page import At

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from collections.abc import Set as AbstractSet

    from h3sim.capture.chromium.tracing import CpuTime
    from h3sim.capture.dialects.exchange import RecordedExchange
    from h3sim.capture.markup.references import Reference

__all__ = ["Cause", "Causes", "ReceivedDocument"]

_DIGITS = 2
"""Of a millisecond: what clocks tell of a delay."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause(Trigger):
    """A trigger by the index of an exchange, with the tag that names what is asked for."""

    reference: Reference | None = None


class ReceivedDocument:
    """An HTML document as it was received, with what its exchange says of it."""

    def __init__(self, exchange: RecordedExchange, text: str) -> None:
        self.exchange = exchange
        self.html = Document(text, exchange.url, exchange.charset)

    def wire_bytes(self, offset: int) -> int:
        """Return how many bytes on the wire bring so many of the document."""
        return self._offsets.wire(offset)

    def delivered_ms(self, offset: int) -> float:
        """Return when so many bytes of the document had been received."""
        received = 0
        for at_ms, _, plain_bytes in self.exchange.chunks:
            received += plain_bytes
            if received >= offset:
                return at_ms
        return _finished_ms(self.exchange)

    @cached_property
    def _offsets(self) -> WireOffsets:
        return WireOffsets(self.html.data, self.exchange.body_bytes or 0)


class Causes:
    """Knows the exchanges of one load, in request order, the first of which is the root."""

    def __init__(
        self,
        exchanges: Sequence[RecordedExchange],
        documents: Mapping[str, ReceivedDocument],
        work: Mapping[str, CpuTime],
        waited: Collection[str] = (),
    ) -> None:
        """Take in also the addresses that scripts *waited* for: those of synchronous requests."""
        self._exchanges = exchanges
        self._documents = documents
        self._work = work
        self._waited = frozenset(waited)
        self._index_of = {exchange.hop_id: index for index, exchange in enumerate(exchanges)}

    def of(self, exchange: RecordedExchange) -> Cause:
        """Return what made Chromium ask for *exchange*, which is not the root."""
        index = self._index_of[exchange.hop_id]
        before = exchange.redirected_from
        # First, as an initiator of what follows a redirect is that of the first request.
        if before is not None and before.hop_id in self._index_of:
            return self._complete(exchange, before)
        is_scripted = exchange.initiator_type == "script"
        found = self._by_script(exchange, index) if is_scripted else None
        if found is None:
            found = self._by_parser(exchange, index)
        return found or self._complete(exchange, self._home(exchange, index).exchange)

    def _by_script(self, exchange: RecordedExchange, index: int) -> Cause | None:
        """The script on the stack that ran last: all of them must have run by then."""
        initiator = exchange.asked_by
        urls = {frame.url for frame in initiator.stack}
        scripts = [other for other in self._exchanges[:index] if other.url in urls]
        # An inline script goes by the URL of its document: its place there tells more (below).
        scripts = [other for other in scripts if other.type != "Document"]
        if scripts:
            before = self._waited_for(exchange, index, urls)
            if before is not None:
                return self._complete(exchange, before)
            return self._executed(exchange, max(scripts, key=self._started))
        for frame in initiator.stack:
            document = self._document(frame.url, index)
            if document is not None:
                return self._offset(exchange, document, document.html.script_end(frame.line))
        # A module's import has no stack: it names the module that imports.
        importer = self._asked_before(initiator.url, index)
        if importer is None or importer.type == "Document":
            return None
        return self._complete(exchange, importer)

    def _by_parser(self, exchange: RecordedExchange, index: int) -> Cause | None:
        """What a document or a stylesheet names."""
        initiator = exchange.asked_by
        parent = self._asked_before(initiator.url, index)
        if parent is not None and parent.hop_id not in self._documents:
            return self._complete(exchange, parent)
        document = self._home(exchange, index)
        if parent is not None:
            document = self._documents[parent.hop_id]
        reference = document.html.references.get(exchange.url)
        if reference is not None:
            return self._offset(exchange, document, reference.offset_bytes, reference)
        offset = document.html.mention(exchange.url)
        if offset is None and initiator.type == "parser" and initiator.line is not None:
            offset = document.html.position(initiator.line, initiator.column)
        return None if offset is None else self._offset(exchange, document, offset)

    def _waited_for(
        self, exchange: RecordedExchange, index: int, urls: AbstractSet[str]
    ) -> RecordedExchange | None:
        """The last synchronous request of the same scripts: they went on when it was answered."""
        for other in reversed(self._exchanges[:index]):
            is_over = _finished_ms(other) <= exchange.requested_ms
            if other.url in self._waited and other.type == "XHR" and is_over:
                shared = any(frame.url in urls for frame in other.asked_by.stack)
                return other if shared else None
        return None

    def _started(self, script: RecordedExchange) -> tuple[float, int]:
        """When a script first ran; where the trace does not know, when it was asked for counts."""
        work = self._work.get(script.url)
        return (0.0 if work is None else work.started_us, self._index_of[script.hop_id])

    def _home(self, exchange: RecordedExchange, index: int) -> ReceivedDocument:
        """The document of the frame that asks, or else the root."""
        # Backwards: a frame may have had several documents, of which the last one asks.
        before = (e for e in reversed(self._exchanges[:index]) if e.hop_id in self._documents)
        home = next((e for e in before if e.frame_id == exchange.frame_id), self._exchanges[0])
        return self._documents[home.hop_id]

    def _document(self, url: str, index: int) -> ReceivedDocument | None:
        found = self._asked_before(url, index)
        return None if found is None else self._documents.get(found.hop_id)

    def _asked_before(self, url: str, index: int) -> RecordedExchange | None:
        """The last exchange with *url* that was asked for before the one at *index*."""
        before = reversed(self._exchanges[:index] if url else ())
        return next((other for other in before if other.url == url), None)

    def _complete(self, exchange: RecordedExchange, parent: RecordedExchange) -> Cause:
        return self._cause(exchange, parent, At.COMPLETE, _finished_ms(parent))

    def _executed(self, exchange: RecordedExchange, parent: RecordedExchange) -> Cause:
        work = self._work.get(parent.url)
        since_ms = _finished_ms(parent)
        if work is not None:
            since_ms += work.parse_ms + work.execute_ms
        return self._cause(exchange, parent, At.EXECUTED, since_ms)

    def _offset(
        self,
        exchange: RecordedExchange,
        document: ReceivedDocument,
        plain_offset: int,
        reference: Reference | None = None,
    ) -> Cause:
        since_ms, offset = document.delivered_ms(plain_offset), document.wire_bytes(plain_offset)
        return self._cause(exchange, document.exchange, At.OFFSET, since_ms, offset, reference)

    def _cause(
        self,
        exchange: RecordedExchange,
        parent: RecordedExchange,
        at: At,
        since_ms: float,
        offset_bytes: int | None = None,
        reference: Reference | None = None,
    ) -> Cause:
        return Cause(
            at=at,
            by=self._index_of[parent.hop_id],
            offset_bytes=offset_bytes,
            delay_ms=round(max(exchange.requested_ms - since_ms, 0.0), _DIGITS),
            reference=reference,
        )


def _finished_ms(exchange: RecordedExchange) -> float:
    return exchange.requested_ms if exchange.end_ms is None else exchange.end_ms
