"""Makes a page of what Chromium said of one load."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

from h3sim.capture.chromium.browser import ChromiumError
from h3sim.capture.chromium.causes import Cause, Causes, ReceivedDocument
from h3sim.capture.chromium.tracing import Work, work_of
from h3sim.capture.chromium.visibility import largest_url, visible_shares
from h3sim.capture.dialects.devtools_log import observed_of
from h3sim.capture.dialects.network_events import Exchange, NetworkEvents
from h3sim.capture.inference.hosts import hosts_of
from h3sim.capture.inference.kinds import kind_of
from h3sim.capture.inference.observed import REDIRECTS
from h3sim.capture.inference.recorded import priorities_of, words_of
from h3sim.capture.inference.urls import address, ids_of
from h3sim.capture.source.fields import Fields
from h3sim.page import Kind, Page, Resource
from h3sim.units import ms

if TYPE_CHECKING:
    from collections.abc import Mapping

    from h3sim.capture.chromium.visit import Visit

__all__ = ["Recorded", "Timing", "recorded_of"]

FORMAT = "h3sim-recording/1"
_DIGITS = 2
_LOW = "Low"
_HTTP = ("http://", "https://")
_MISSING = 400


class Timing(NamedTuple):
    """When Chromium asked for a resource and had it, in ms since navigation start.

    `priorities` holds when each priority was given; `stack` the calls that led to the request.
    """

    id: str
    status: int
    protocol: str
    requested_ms: float
    first_byte_ms: float
    finished_ms: float
    priorities: tuple[tuple[float, str], ...]
    initiator: str
    stack: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """One load: the page that it shows, when everything came, and what was left out."""

    page: Page
    timings: tuple[Timing, ...]
    exchanges: tuple[Exchange, ...]
    browser: str
    onload_ms: float
    dcl_ms: float
    first_paint_ms: float | None
    largest_paint_ms: float | None
    notes: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return as JSON what a page file has no place for: when everything came, and why.

        Times are in ms since the document was asked for; `priorities` has a pair of time and
        Chrome's word for each priority that was given; `stack` the innermost call first.
        """
        return {
            "format": FORMAT,
            "page": self.page.name,
            "browser": self.browser,
            "onload_ms": self.onload_ms,
            "dom_content_loaded_ms": self.dcl_ms,
            "first_paint_ms": self.first_paint_ms,
            "largest_paint_ms": self.largest_paint_ms,
            "resources": [timing._asdict() for timing in self.timings],
        }

    @property
    def n_hosts(self) -> int:
        """To how many hosts requests went."""
        return len({urlsplit(exchange.url).netloc for exchange in self.exchanges})


def recorded_of(
    visit: Visit, name: str, provenance: Mapping[str, str], *, url: str = ""
) -> Recorded:
    """Return the page that *visit* shows, with its timings.

    Raises:
        ChromiumError: if the document itself did not come.
    """
    everything = [
        exchange
        for exchange in _exchanges_of(visit)
        if exchange.url.startswith(_HTTP) and not exchange.is_internal
    ]
    kept = _kept(everything)
    if not kept or kept[0] is not everything[0]:
        reason = everything[0].failed if everything else ""
        raise ChromiumError(f"the document did not come{f': {reason}' if reason else ''}")
    root = kept[0]
    if (root.status or 0) >= _MISSING:
        raise ChromiumError(f"the document did not come: status {root.status}")
    urls = [exchange.url for exchange in kept]
    ids = dict(zip((exchange.key for exchange in kept), ids_of(urls, urls[0]), strict=True))
    maker = _Maker(visit, kept, ids)
    page = Page(
        name=name,
        url=url,
        provenance=provenance,
        resources=maker.resources(),
        hosts=maker.hosts.known,
    )
    start_ms = root.requested_ms
    return Recorded(
        page=page,
        timings=tuple(_timing(exchange, ids, start_ms) for exchange in kept),
        exchanges=tuple(kept),
        browser=visit.browser,
        onload_ms=_since(visit.onload_ms, start_ms),
        dcl_ms=_since(visit.dcl_ms, start_ms),
        first_paint_ms=visit.measured["paints"].get("first-contentful-paint"),
        largest_paint_ms=(visit.measured["largest"] or {}).get("at_ms"),
        notes=tuple(_notes(everything)),
    )


def _exchanges_of(visit: Visit) -> list[Exchange]:
    """Return what was exchanged, in the order of the requests."""
    events = NetworkEvents(lambda *_: None)
    for event in visit.events:
        events.add(event.method, Fields(event.params, "", lambda *_: None))
    return sorted(events.finish(), key=lambda exchange: exchange.requested_ms)


def _kept(everything: list[Exchange]) -> list[Exchange]:
    """Return what the page consists of: answers that came, and no redirection to what did not."""
    kept = [e for e in everything if e.is_whole and not e.failed and not is_favicon(e)]
    there = {exchange.key for exchange in kept}
    # Backwards, so that a whole chain of redirections that leads to nothing goes.
    for exchange in reversed(everything):
        if exchange.redirected_from is not None and exchange.key not in there:
            there.discard(exchange.redirected_from.key)
    return [exchange for exchange in kept if exchange.key in there]


class _Maker:
    def __init__(self, visit: Visit, kept: list[Exchange], ids: Mapping[str, str]) -> None:
        self._kept, self._ids = kept, ids
        self._observed = {exchange.key: observed_of(exchange) for exchange in kept}
        self._kinds = {key: kind_of(request)[0] for key, request in self._observed.items()}
        names = [found.host if (found := address(e.url)) else "" for e in kept]
        self.hosts = hosts_of([*self._observed.values()], names, 0, rtt_ms=None)
        self._host_of = dict(zip(self._observed, self.hosts.names, strict=True))
        self._work = work_of(visit.trace)
        self._documents = {
            exchange.key: ReceivedDocument(exchange, visit.documents[number])
            for exchange in kept
            if (number := exchange.key.rpartition("/")[0]) in visit.documents
            and exchange.status not in REDIRECTS
        }
        # The document behind the redirections of the root.
        self._first = next((e for e in kept if e.status not in REDIRECTS), kept[-1])
        # Each redirect of the page itself leads to another root.
        self._landed = {exchange.key for exchange in kept[1 : kept.index(self._first) + 1]}
        if self._first.key not in self._documents:
            raise ChromiumError("the document is not HTML, or Chromium did not keep it")
        causes = Causes(kept, self._documents, self._work, visit.measured["waited"])
        self._causes = {exchange.key: causes.of(exchange) for exchange in kept[1:]}
        self._shares = visible_shares(visit.measured, visit.fonts)
        self._blocking = visit.measured["blocking"]
        self._hero = largest_url(visit.measured, visit.fonts) or self._first.url
        self._seen = self._above_the_fold()

    def resources(self) -> tuple[Resource, ...]:
        return tuple(self._resource(exchange) for exchange in self._kept)

    def _resource(self, exchange: Exchange) -> Resource:
        cause, kind = self._causes.get(exchange.key), self._kinds[exchange.key]
        reference = None if cause is None else cause.reference
        works = kind in (Kind.DOCUMENT, Kind.STYLESHEET, Kind.SCRIPT)
        work = self._work.get(exchange.url, Work()) if works else Work()
        flags: dict[str, Any] = {}
        if reference is not None:
            # Chromium knows better what blocks, and what the first image is.
            known = ("render_blocking", "after_first_image")
            flags = {name: said for name, said in reference.flags.items() if name not in known}
        elif kind is Kind.SCRIPT and exchange.initiator.type == "script":
            flags = {"is_async": exchange.priorities[0][1] == _LOW}
        return Resource(
            id=self._ids[exchange.key],
            kind=kind,
            size_bytes=exchange.body_bytes,
            mime=exchange.mime,
            host=self._host_of[exchange.key],
            header_bytes=exchange.header_bytes,
            request_bytes=exchange.request_bytes,
            discovered=None if cause is None else cause.discovery(self._ids, _DIGITS),
            render_blocking=self._is_blocking(exchange),
            is_root=exchange.key in self._landed,
            critical=exchange is self._first or self._is_blocking(exchange),
            above_the_fold=exchange.key in self._seen,
            after_first_image=cause is not None and self._is_after_image(cause),
            hero=exchange.url == self._hero,
            viewport=self._shares.get(exchange.url) if kind in _PAINTED else None,
            parse_ns=ms(round(work.parse_ms, _DIGITS)),
            execute_ns=ms(round(work.execute_ms, _DIGITS)),
            recorded=priorities_of(self._observed[exchange.key], self._ids[exchange.key]),
            server_priorities=words_of(self._observed[exchange.key]),
            **flags,
        )

    def _is_blocking(self, exchange: Exchange) -> bool:
        return exchange.render_blocking == "Blocking" or exchange.url in self._blocking

    def _is_after_image(self, cause: Cause) -> bool:
        """By its place in the document; what others bring comes after all that stands there."""
        first = self._documents[self._first.key].html.first_image_bytes
        if first is None:
            return False
        if cause.reference is None or cause.parent is not self._first:
            return True
        return cause.reference.offset_bytes > first

    def _above_the_fold(self) -> set[str]:
        """What is seen, what painting waits for, and what brings either."""
        # Also where a way up ends: whatever stands here has all that brings it in here.
        seen: set[str] = {self._first.key, self._kept[0].key}
        for exchange in self._kept:
            is_painted = self._kinds[exchange.key] in _PAINTED
            shown = is_painted and exchange.url in self._shares
            if shown or self._is_blocking(exchange):
                key: str | None = exchange.key
                while key is not None and key not in seen:
                    seen.add(key)
                    cause = self._causes.get(key)
                    key = None if cause is None else cause.parent.key
        return seen


_PAINTED = (Kind.IMAGE, Kind.FONT, Kind.MEDIA, Kind.OTHER)


def is_favicon(exchange: Exchange) -> bool:
    """Return whether the browser asks for the icon of its tab, which no page waits for."""
    return exchange.type == "Other" and exchange.initiator.type == "other"


def _timing(exchange: Exchange, ids: Mapping[str, str], start_ms: float) -> Timing:
    return Timing(
        id=ids[exchange.key],
        status=exchange.status or 0,
        protocol=exchange.protocol,
        requested_ms=_since(exchange.requested_ms, start_ms),
        first_byte_ms=_since(exchange.first_byte_ms, start_ms),
        finished_ms=_since(exchange.finished_ms, start_ms),
        priorities=tuple((_since(at, start_ms), name) for at, name in exchange.priorities),
        initiator=exchange.initiator.type,
        stack=tuple(
            f"{name or 'inline'}:{frame.line + 1} {frame.function}".rstrip()
            for frame in exchange.initiator.stack
            for name in [frame.url.partition("?")[0].rpartition("/")[2]]
        ),
    )


def _since(at_ms: float | None, start_ms: float) -> float:
    return 0.0 if at_ms is None else round(at_ms - start_ms, 3)


def _notes(everything: list[Exchange]) -> list[str]:
    """Say how much of what was asked for is not in the page, and what else is odd."""
    wanted = [exchange for exchange in everything if not is_favicon(exchange)]
    blocked = sum("NAME_NOT_RESOLVED" in exchange.failed for exchange in wanted)
    failed = sum(bool(exchange.failed) for exchange in wanted) - blocked
    unfinished = sum(exchange.is_unfinished for exchange in wanted)
    missing = sum(exchange.is_whole and (exchange.status or 0) >= _MISSING for exchange in wanted)
    counted = (
        (blocked, "requests to other hosts, not let through"),
        (failed, "requests that failed"),
        (unfinished, "responses that had not ended"),
        (missing, "answers that there is no such file"),
    )
    return [f"{what}: {number}" for number, what in counted if number]
