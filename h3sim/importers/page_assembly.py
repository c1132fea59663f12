"""Assembly of a page from recorded requests, with counts of what was inferred."""

from __future__ import annotations

import itertools
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from h3sim.importers.causes import (
    ParentEvidence,
    ParentMatch,
    ParserStops,
    apply_markup,
    find_parents,
    flags_of,
    let_go,
    see_multiplexing,
    trigger_of,
)
from h3sim.importers.path_estimation import hosts_of, path_of, server_times
from h3sim.importers.recorded_request import (
    LONGEST_MS,
    RequestOutcome,
    SizeSource,
    by_time,
    first_of,
    priorities_of,
    priority_fields,
    recorded_frames,
    recorded_ns,
)
from h3sim.importers.request_fields import address, ascii_host, ids_of, kind_of, plain_mime
from h3sim.importers.result import ImportedPage, RecordingError
from h3sim.page import Discovery, ImageFormat, Kind, Page, Resource, TriggerEvent
from h3sim.page.recording import Layout, RecordedLoad
from h3sim.schema import shown_path
from h3sim.units import ms, to_ms

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from h3sim.importers.path_estimation import EstimatedPath, PageHosts
    from h3sim.importers.recorded_request import RecordedRequest, Recording


def found_in(requests: Sequence[RecordedRequest]) -> Counter[str]:
    """Return how many of *requests* have what can be recorded."""
    found: Counter[str] = Counter()
    for request in requests:
        found["initiators"] += bool(request.initiator)
        found["stacks"] += bool(request.stack)
        found["Referers"] += bool(request.referer)
        found["triggers"] += request.trigger is not None
        found["redirects"] += request.redirect_of is not None
        found["priorities"] += bool(request.priority)
        found["kinds"] += request.kind is not None
        found["body sizes"] += request.body_from is SizeSource.RECORDED
        found["execution times"] += request.execute_ms > 0
        found["shares of the viewport"] += bool(request.rectangles)
        found["largest paints"] += request.is_hero
        found["on the critical path"] += request.is_critical
        found["largest paint"] += request.is_hero
        found["pushes"] += request.is_pushed
        found["preloads"] += request.is_preload
        found["answers 304"] += request.is_unmodified
    return found


def sizes_inferred_in(requests: Sequence[RecordedRequest]) -> Counter[str]:
    """Return the counts of sizes of *requests* by source, for those not recorded directly."""
    inferred: Counter[str] = Counter()
    known = (SizeSource.RECORDED, SizeSource.NONE)
    for request in requests:
        bases = (request.body_from, request.header_from, request.request_from)
        for what, basis in zip(("body", "header", "request"), bases, strict=True):
            if basis not in known:
                inferred[f"{what} size from {basis.value}"] += 1
    return inferred


def missing_in(requests: Sequence[RecordedRequest]) -> list[str]:
    """Return the missing values, with the number of requests that lack each."""
    counted = (
        ("body sizes", ", taken as 0", lambda request: request.body_bytes is None),
        ("header sizes", ", taken as 0", lambda request: request.header_bytes is None),
        ("request sizes", ", taken as 0", lambda request: request.request_bytes is None),
        ("times", "", lambda request: request.start_ms is None),
        ("media types", "", lambda request: not plain_mime(request.mime)),
    )
    return [
        f"{what} of {number:,}{instead}"
        for what, instead, is_missing in counted
        if (number := sum(map(is_missing, requests)))
    ]


_NOT_SENT = (RequestOutcome.CACHE, RequestOutcome.SERVICE_WORKER)
_WITHOUT_CACHE = "record with the cache disabled and service workers bypassed"


def _may_be_root(request: RecordedRequest, host: str | None) -> bool:
    is_host = host is None or request.address.host == host
    is_there = request.outcome in (RequestOutcome.ANSWERED, *_NOT_SENT)
    return is_host and is_there and request.resolved_kind is Kind.DOCUMENT


_WEB = ("http", "https")
_SHOWN_HOSTS = 5
_RECORDED = (
    ParentEvidence.GIVEN,
    ParentEvidence.REDIRECT,
    ParentEvidence.INITIATOR,
    ParentEvidence.NONE,
)


def assemble(
    recording: Recording, *, host: str | None = None, strict: bool = False
) -> ImportedPage:
    """Return the page of *recording*; with *host*, of the requests to that host only.

    Raises:
        RecordingError: if no request is left, or, with *strict*, if anything could not be used.
    """
    requests = _requests_of_web(recording)
    if strict and (wrong := (*first_of(recording.mended), *recording.all_problems())):
        raise RecordingError(wrong, recording.source)
    if not any(_is_retained(request, None) for request in requests):
        raise recording.refuse("contains no request with an HTTP response")
    return _Assembly(recording, requests, host).imported()


def _requests_of_web(recording: Recording) -> list[RecordedRequest]:
    """Return the requests with URLs; what notes a place in the list is brought up to date."""
    requests: list[RecordedRequest] = []
    new: list[int | None] = []
    for request in recording.requests:
        parts = address(request.url)
        new.append(None if parts is None else len(requests))
        if parts is None:
            recording.note(request.key, "skipped: its URL cannot be read")
            continue
        request.address = parts
        if parts.scheme in ("data", "blob", "about"):
            request.outcome = RequestOutcome.INLINE
        elif parts.scheme not in _WEB or not parts.host:
            request.outcome = RequestOutcome.NOT_HTTP
        request.resolved_kind, basis = kind_of(request)
        if basis and request.outcome is RequestOutcome.ANSWERED:
            recording.inferred[basis] += 1
        requests.append(request)
    for request in requests:
        if request.redirect_of is not None:
            request.redirect_of = new[request.redirect_of]
        if request.parent is not None:
            request.parent = new[request.parent]
        if request.trigger is not None:
            by = new[request.trigger.by]
            request.trigger = None if by is None else replace(request.trigger, by=by)
    # Backwards, so that the kind goes up a whole chain of redirects.
    for request in reversed(requests):
        if request.redirect_of is not None:  # what was redirected is of the kind of its target
            requests[request.redirect_of].resolved_kind = request.resolved_kind
    return requests


def _is_retained(request: RecordedRequest, host: str | None) -> bool:
    is_there = request.outcome is RequestOutcome.ANSWERED
    return is_there and (host is None or request.address.host == host)


def _hosts_in(requests: Iterable[RecordedRequest]) -> str:
    """Return the hosts with the most requests, and how many others there are."""
    counts = Counter(each.address.host for each in requests if _is_retained(each, None))
    most = [host for host, _ in counts.most_common(_SHOWN_HOSTS)]
    rest = len(counts) - len(most)
    return ", ".join(most) + (f" and {rest:,} more" if rest else "")


class _Assembly:
    """Assembly of the page of one recording; requests are identified by their index."""

    def __init__(
        self, recording: Recording, requests: list[RecordedRequest], host: str | None
    ) -> None:
        self._recording, self._requests = recording, requests
        self._host = ascii_host(host) if host is not None else None
        self._inferred = recording.inferred
        self._order = by_time(self._requests)
        retained = [index for index in self._order if _is_retained(requests[index], self._host)]
        if not retained:
            hosts = _hosts_in(requests)
            raise recording.refuse(f"has no request to {host!r}; its hosts are {hosts}")
        self._retained = retained
        documents = [n for n in retained if requests[n].resolved_kind is Kind.DOCUMENT]
        of_pages = (index for index in documents if not requests[index].is_framed)
        self._root = next(of_pages, (documents or retained)[0])
        self._landed = self._redirected()
        self._server_ms: dict[int, float | None] = {}

    def _redirected(self) -> set[int]:
        """Return the documents that redirects of the root led to, each another root."""
        found = {self._root}
        # Of all: one on the way may have come from the cache, or from the browser itself.
        for index in self._order:
            if self._requests[index].redirect_of in found:
                found.add(index)
        return found.intersection(self._retained) - {self._root}

    def imported(self) -> ImportedPage:
        recording, inferred = self._recording, self._inferred
        apply_markup(self._requests, inferred)
        self._parents, n_rejected = find_parents(
            self._requests, self._order, self._root, self._landed
        )
        inferred["initiators that begin later, not believed"] += n_rejected
        retained = [self._requests[index] for index in self._retained]
        self._before_image = self._asked_before_the_first_image()
        self._stops = self._parser_stops()
        ids = ids_of([request.url for request in retained], self._requests[self._root].url)
        ids = [request.id or id_ for request, id_ in zip(retained, ids, strict=True)]
        self._ids = dict(zip(self._retained, ids, strict=True))
        self._frames = recorded_frames(dict(zip(self._retained, retained, strict=True)), self._ids)
        names = [request.address.host for request in retained]
        path, hosts = self._network(retained, names)
        resources = tuple(self._resource(index) for index in self._retained)
        n_hosts = len(set(names))
        found = Counter({"requests": len(self._requests), "hosts": n_hosts})
        return ImportedPage(
            page=Page(
                **self._named(n_hosts),
                resources=resources,
                hosts=hosts.known,
                recorded_load=self._recorded_load(path),
                layout=self._layout(),
            ),
            dialect=recording.dialect,
            found=dict(recording.found + found + found_in(retained)),
            inferred=dict(inferred + sizes_inferred_in(retained)),
            left_out=dict(recording.left_out + self._left_out()),
            warnings=tuple(self._odd_root()),
            missing=(*recording.missing, *missing_in(retained), *self._missing_always()),
            mended=first_of(recording.mended),
            skipped=recording.all_problems(),
        )

    def _odd_root(self) -> Iterator[str]:
        """Yield why the root may not be the page's document."""
        root, first_kept = (self._requests[index] for index in (self._root, self._retained[0]))
        in_order = (self._requests[index] for index in self._order)
        url, is_document = shown_path(root.address.url), root.resolved_kind is Kind.DOCUMENT
        if root.is_unmodified:
            yield f"the main document was not modified (304): {_WITHOUT_CACHE}"
        meant = next((each for each in in_order if _may_be_root(each, self._host)), root)
        if meant is not root and meant.outcome in _NOT_SENT:
            what = "document" if is_document else "request"
            yield (
                f"the main document, {shown_path(meant.address.url)}, came {meant.outcome.value}:"
                f" {_WITHOUT_CACHE}. The root is now {url}, the first {what} that was sent"
            )
        elif not is_document:
            yield f"there is no document: the root is now {url}, the first request"
        elif root.is_framed:
            yield f"the root is now {url}, a document of a frame: that of the page is missing"
        elif first_kept is not root:
            other = shown_path(first_kept.address.url)
            yield f"the recording begins with {other}: the root is now {url}, the first document"

    def _network(
        self, retained: list[RecordedRequest], names: list[str]
    ) -> tuple[EstimatedPath | None, PageHosts]:
        """Return the path and the hosts, after noting what follows from their times."""
        see_multiplexing(retained)
        root, request = self._retained.index(self._root), self._requests[self._root]
        path = None if self._recording.is_local else path_of(retained, root)
        hosts = hosts_of(retained, names, root, rtt_ms=None if path is None else path.rtt_ms)
        self._hosts = dict(zip(self._retained, hosts.names, strict=True))
        if path is not None:
            own = {host.name: to_ms(host.rtt_ns) for host in hosts.known if host.rtt_ns is not None}
            rtts_ms = [own.get(name, path.rtt_ms) for name in names]
            let_go(retained, hosts.group_numbers(names), rtts_ms, request)
            thought_ms = server_times(retained, path, rtts_ms)
            self._server_ms = dict(zip(self._retained, thought_ms, strict=True))
        self._zero_ms = request.start_ms if request.asked_ms is None else request.asked_ms
        return path, hosts

    def _recorded_load(self, path: EstimatedPath | None) -> RecordedLoad | None:
        """Return what the recording says of the load as a whole.

        Its times count from when a load that first opens a connection would have begun.
        """
        recording, zero_ms = self._recording, self._zero_ms
        requests = {id_: self._requests[index] for index, id_ in self._ids.items()}
        begun_ms = recording.begun_ms
        begun_ms = self._requests[self._root].start_ms if begun_ms is None else begun_ms
        since_ms = 0.0 if zero_ms is None or begun_ms is None else zero_ms - begun_ms
        times_ms = {name: at_ms - since_ms for name, at_ms in recording.times_ms.items()}
        completed_ms = {
            id_: request.end_ms - zero_ms
            for id_, request in requests.items()
            if zero_ms is not None and request.end_ms is not None and request.end_ms > zero_ms
        }
        if completed_ms:
            times_ms["finished"] = max(completed_ms.values())
        most = Counter(each.protocol for each in requests.values() if each.protocol).most_common(1)
        n_bytes = sum(
            (request.body_bytes or 0) + (request.header_bytes or 0)
            for request in recording.requests
            if request.outcome in (RequestOutcome.ANSWERED, RequestOutcome.FAILED)
        )
        values: dict[str, Any] = {
            f"{name}_ns": recorded_ns(time_ms)
            for name, time_ms in times_ms.items()
            if 0 < time_ms <= LONGEST_MS
        }
        if path is not None:
            values |= {"rtt_ns": ms(path.rtt_ms), "rtt_from": path.rtt_from}
            values |= {"rate_bps": path.rate_bps, "rate_from": path.rate_from}
        if recording.has_addresses and not recording.is_local:
            plausible = {id_: at_ms for id_, at_ms in completed_ms.items() if at_ms <= LONGEST_MS}
            completed_ns = {id_: recorded_ns(at_ms) for id_, at_ms in plausible.items()}
            values |= {"n_bytes": n_bytes, "completed_ns": completed_ns}
        if not values:
            return None
        return RecordedLoad(protocol=most[0][0] if most else "", **values)

    def _parser_stops(self) -> ParserStops:
        """Return at what parsers stood, but for what the recording itself tells parents of."""
        documents = {
            index: parent.index
            for index in self._retained
            if (parent := self._parents.get(index)) is not None
            and parent.index is not None
            and parent.basis is not ParentEvidence.GIVEN
            and self._is_in_document(index, parent.index)
        }
        return ParserStops(self._requests, documents)

    def _asked_before_the_first_image(self) -> set[int]:
        """Return what was asked for before the first image that the page's document names."""
        images = (
            number
            for number, index in enumerate(self._retained)
            if self._requests[index].resolved_kind is Kind.IMAGE
            and index in self._parents
            and self._is_in_document(index, self._parents[index].index)
        )
        return set(self._retained[: next(images, None)])

    def _is_in_document(self, index: int, parent: int | None) -> bool:
        """Return whether *parent* is the page's document, in which no script asked for it."""
        request = self._requests[index]
        is_asked_by_it = parent == self._root or parent in self._landed
        return is_asked_by_it and not request.stack and request.initiator_type != "script"

    def _left_out(self) -> Counter[str]:
        left_out: Counter[str] = Counter()
        for request in self._requests:
            if request.outcome is not RequestOutcome.ANSWERED:
                left_out[request.outcome.value] += 1
            elif not _is_retained(request, self._host):
                left_out["of other hosts"] += 1
        return left_out

    def _missing_always(self) -> Iterator[str]:
        has_hero = any(self._requests[index].is_hero for index in self._retained)
        yield "what is critical" if has_hero else "what is critical or the hero"
        n_unknown = sum(self._server_ms.get(index) is None for index in self._retained)
        if n_unknown:
            yield f"server think times of {n_unknown:,}"

    def _layout(self) -> Layout | None:
        """Return the rectangles of the retained requests; None if none was recorded."""
        found = {id_: self._requests[index].rectangles for index, id_ in self._ids.items()}
        rectangles = {id_: each for id_, each in found.items() if each}
        size = self._recording.viewport_px
        if size is None or not rectangles:
            return None
        return Layout(width=size[0], height=size[1], rectangles=rectangles)

    def _named(self, n_hosts: int) -> dict[str, Any]:
        """Return what the page is called and where it comes from, as fields of a `Page`."""
        recording, root = self._recording, self._requests[self._root].address
        provenance = {
            "source": recording.source.replace("\\", "/").rpartition("/")[2],
            "recorded": recording.recorded,
            "tool": recording.tool,
            "hosts": str(n_hosts),
            "notes": f"read as {recording.dialect}",
            **recording.provenance,
        }
        return {
            "name": _clean(recording.name) or root.host,
            "url": root.url if recording.has_addresses else "",
            "provenance": {key: _clean(text) for key, text in provenance.items() if text},
        }

    def _resource(self, index: int) -> Resource:
        request = self._requests[index]
        parent, direct = self._ancestor(index)
        if self._server_ms.get(index) is not None:
            self._inferred["server think times from waits"] += 1
        return Resource(
            id=self._ids[index],
            kind=request.resolved_kind,
            mime=plain_mime(request.mime),
            host=self._hosts[index],
            size_bytes=request.body_bytes or 0,
            header_bytes=request.header_bytes or 0,
            request_bytes=request.request_bytes or 0,
            parse_ns=self._time_ns(request.parse_ms),
            execute_ns=self._time_ns(request.execute_ms),
            server_ns=self._time_ns(self._server_ms.get(index) or 0.0),
            response_offsets=_offsets(request),
            critical=request.is_critical,
            above_the_fold=request.is_above_the_fold,
            hero=request.is_hero,
            font_display=request.font_display,
            image_format=_image_format(request),
            is_root=index in self._landed,
            discovered=self._discovered(index, parent, direct=direct),
            reference_offset_bytes=self._reference_offset(index, parent, direct=direct),
            recorded=priorities_of(request, self._ids[index], self._frames.get(index)),
            server_priorities=priority_fields(request),
            **flags_of(
                request,
                self._inferred,
                in_document=direct and self._is_in_document(index, parent),
                before_image=index in self._before_image,
            ),
        )

    def _ancestor(self, index: int) -> tuple[int | None, bool]:
        """Return the nearest ancestor that is in the page, and whether that is the parent.

        Counts how the parent of a request is known; it is asked for once for each.
        """
        if index == self._root:
            return None, True
        first = self._parents[index]
        if first.basis not in _RECORDED:
            self._inferred[f"parent from {first.basis.value}"] += 1
        at, direct = first.index, True
        while at is not None and at not in self._ids:
            at, direct = self._parents[at].index if at in self._parents else None, False
        if not direct:
            self._inferred["parent left out, next ancestor taken"] += 1
        return at, direct

    def _reference_offset(self, index: int, parent: int | None, *, direct: bool) -> int | None:
        """Return where the page's document has an element for what it also preloads."""
        offset_bytes = self._requests[index].reference_offset_bytes
        is_of_page = direct and parent is not None and parent in (self._root, *self._landed)
        if offset_bytes is None or parent is None or not is_of_page:
            return None
        self._inferred["elements of preloads from the markup"] += 1
        return min(offset_bytes, self._requests[parent].body_bytes or 0)

    def _discovered(self, index: int, parent: int | None, *, direct: bool) -> Discovery | None:
        if index == self._root:
            return None
        request = self._requests[index]
        if parent is None:
            start_ms, zero_ms = request.start_ms, self._zero_ms
            known = start_ms is not None and zero_ms is not None
            delay_ms = max(0.0, start_ms - zero_ms) if known else 0.0  # type: ignore[operator]
            self._inferred["trigger at a time, without parent"] += 1
            return Discovery(at=TriggerEvent.TIME, delay_ns=self._time_ns(delay_ms))
        given = request.trigger
        if given is not None and direct and given.by == parent:
            found = ParentMatch(given.at, given.delay_ms, "", given.offset_bytes)
        else:
            found = trigger_of(request, self._requests[parent], direct=direct)
            is_late = direct and found.at is TriggerEvent.COMPLETE
            stop = self._stops.last_before(index) if is_late else None
            if stop is not None:
                parent = stop
                found = trigger_of(request, self._requests[stop], direct=False)
                found = found._replace(basis="from what held the parser up")
            self._inferred[f"trigger {found.basis}"] += 1
        by, delay_ns = self._ids[parent], self._time_ns(found.delay_ms)
        return Discovery(at=found.at, by=by, offset_bytes=found.offset_bytes, delay_ns=delay_ns)

    def _time_ns(self, time_ms: float) -> int:
        if time_ms > LONGEST_MS:
            self._inferred["times of more than a day, cut"] += 1
        return recorded_ns(min(max(0.0, time_ms), LONGEST_MS))


def _image_format(request: RecordedRequest) -> ImageFormat | None:
    """Return the format of an image where its bytes show another one than its media type."""
    found = request.image_format if request.resolved_kind is Kind.IMAGE else None
    return None if found is ImageFormat.of_name(plain_mime(request.mime)) else found


def _clean(text: str) -> str:
    """Return text without lone halves of characters."""
    return text.encode("utf-8", "replace").decode()


def _offsets(request: RecordedRequest) -> tuple[int, ...]:
    """Return where the pieces of the body began, if they are of the body as it is counted."""
    *offsets, total = itertools.accumulate((n_bytes for _, n_bytes in request.pieces), initial=0)
    return tuple(offsets) if total and total == request.body_bytes else ()
