"""Reads logs of the Chrome DevTools protocol: objects {method, params}, as a list or one a line.

Lighthouse saves such logs as devtoolslog.json. Events are those of the domain Network.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from h3sim.capture.dialects.exchange import join_redirects
from h3sim.capture.dialects.network_events import NetworkEvents
from h3sim.capture.source.fields import Fields
from h3sim.capture.source.parts import JsonPart
from h3sim.page import Kind
from h3sim.units import MS_PER_S

if TYPE_CHECKING:
    from h3sim.capture.dialects.exchange import RecordedExchange
    from h3sim.capture.inference.observed import Recording

__all__ = ["ProtocolLog"]

_LATEST_S = 253_402_300_799  # the end of the year 9999: later is no date


class ProtocolLog:
    """Takes the events of a log one after the other; `finish` puts the requests in the recording.

    A request that is redirected keeps its id; each hop becomes a request of its own.
    """

    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        self._events = NetworkEvents(recording.note)
        self._first: dict[str, Any] = {}
        self._loaded_ms: list[float] = []

    def add(self, part: JsonPart) -> None:
        """Take in an event, or a member of the first, where each has a line of its own."""
        if not part.path:
            self._add_first()
            self._add_event(part)
        elif part.item is None and len(part.path) == 1:
            self._first[part.path[0]] = part.value

    def _add_first(self) -> None:
        if self._first:
            self._add_event(JsonPart((), self._first, line=1))
            self._first = {}

    def _add_event(self, part: JsonPart) -> None:
        fields = Fields.of(part, self._recording.note)
        if fields is None:
            return
        method = fields.text("method")
        self._recording.found["events"] += 1
        if method == "Page.loadEventFired":
            loaded_s = fields.table("params").duration("timestamp")
            self._loaded_ms += [] if loaded_s is None else [loaded_s * MS_PER_S]
        is_request = method == "Network.requestWillBeSent"
        # Events of requests that are known already go in even where no more have room.
        if not is_request or self._recording.has_room(len(self._events.exchanges)):
            self._events.add(method, fields.table("params"))

    def finish(self) -> None:
        """Settle what can be told only when all was read."""
        self._add_first()
        recording = self._recording
        exchanges = self._events.finish()
        join_redirects(exchanges)
        recording.requests += exchanges
        walls_s = (each.wall_time_s for each in exchanges)
        if wall_s := next((each for each in walls_s if each and each < _LATEST_S), None):
            recording.recorded = datetime.fromtimestamp(wall_s, UTC).date().isoformat()
        # Others may have been asked for before the page, and a blank one may have been loaded.
        documents = (each for each in exchanges if each.kind is Kind.DOCUMENT)
        begun_ms = next(
            (each.start_ms for each in (*documents, *exchanges) if _is_sent(each)), None
        )
        if begun_ms is None:
            return
        since_ms = [at_ms - begun_ms for at_ms in self._loaded_ms if at_ms >= begun_ms]
        if since_ms:
            recording.times_ms["load_event"] = since_ms[0]


def _is_sent(exchange: RecordedExchange) -> bool:
    return exchange.start_ms is not None and exchange.url.lower().startswith("http")
