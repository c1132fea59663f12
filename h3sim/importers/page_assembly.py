"""Assembly of a page from recorded requests, with counts of what was inferred."""

from __future__ import annotations

import itertools
import math
import statistics
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from h3sim.importers.causes import (
    InferredTrigger,
    ParentEvidence,
    ParserStops,
    apply_markup,
    detect_multiplexing,
    find_parents,
    flags_of,
    set_release_times,
    starts_after,
    trigger_of,
    trigger_of_import,
)
from h3sim.importers.modules import ModuleGraphs
from h3sim.importers.path_estimation import (
    hosts_of,
    path_of,
    produced_bodies,
    server_times,
)
from h3sim.importers.recorded_request import (
    LONGEST_MS,
    RecordedPaint,
    RequestOutcome,
    SizeSource,
    by_time,
    first_of,
    kind_of,
    priorities_of,
    priority_fields,
    recorded_frames,
    recorded_ns,
)
from h3sim.importers.request_fields import Address, address, ascii_host, ids_of, plain_mime
from h3sim.importers.result import ImportedPage, RecordingError
from h3sim.page import Discovery, ImageFormat, Kind, MarksFrom, Page, Resource, TriggerEvent
from h3sim.page.har_facts import with_known_triggers
from h3sim.page.recording import Layout, PaintCause, RecordedLoad
from h3sim.schema import shown_path
from h3sim.values.units import ms, to_ms

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from h3sim.importers.path_estimation import EstimatedPath, PageHosts
    from h3sim.importers.recorded_request import RecordedRequest, Recording, Trigger
    from h3sim.page import Host


def count_recorded(requests: Sequence[RecordedRequest]) -> Counter[str]:
    """Return how many of *requests* have each value that a recording may have."""
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
        found["facts of h3sim"] += request.facts is not None
    return found


def count_inferred_sizes(requests: Sequence[RecordedRequest]) -> Counter[str]:
    """Return the counts of sizes of *requests* by source, for those not recorded directly."""
    inferred: Counter[str] = Counter()
    known = (SizeSource.RECORDED, SizeSource.NONE)
    for request in requests:
        bases = (request.body_from, request.header_from, request.request_from)
        for what, basis in zip(("body", "header", "request"), bases, strict=True):
            if basis not in known:
                inferred[f"{what} size from {basis.value}"] += 1
    return inferred


def missing_values(requests: Sequence[RecordedRequest]) -> list[str]:
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


_SERVED_LOCALLY = (
    RequestOutcome.CACHE,
    RequestOutcome.SERVICE_WORKER,
    RequestOutcome.OVERRIDDEN,
)
"""Outcomes of requests that did not reach the network."""
_CACHE_ADVICE = "record with the cache disabled and service workers bypassed"


def _choose_root(requests: Sequence[RecordedRequest], retained: Sequence[int]) -> int:
    """Return the index of the root: the first document that is in no frame, else the first."""
    documents = [index for index in retained if requests[index].resolved_kind is Kind.DOCUMENT]
    unframed = (index for index in documents if not requests[index].is_framed)
    return next(unframed, (documents or retained)[0])


def _is_expected_root(request: RecordedRequest, host: str | None) -> bool:
    has_host = host is None or request.address.host == host
    has_response = request.outcome in (RequestOutcome.ANSWERED, *_SERVED_LOCALLY)
    return has_host and has_response and request.resolved_kind is Kind.DOCUMENT


_LONGEST_LOAD_MS = 1_800_000.0
"""Half the time after which a simulated load is given up: polling goes on as long as a page."""
_WEB_SCHEMES = ("http", "https")
_MAX_LISTED_HOSTS = 5
_FRAME_MS = 15.0
"""From the first moment with something to paint to its frame: as a browser model has it."""
_UNCOUNTED_EVIDENCE = (
    ParentEvidence.GIVEN,
    ParentEvidence.REDIRECT,
    ParentEvidence.INITIATOR,
    ParentEvidence.NONE,
)
"""Evidence of which the report says nothing: recorded facts, and the absence of a parent."""


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
    """Return the requests with readable URLs, with their outcomes, kinds and indices updated."""
    requests: list[RecordedRequest] = []
    new_index: list[int | None] = []  # by the index in the recording
    for request in recording.requests:
        parts = address(request.url)
        new_index.append(None if parts is None else len(requests))
        if parts is None:
            recording.note(request.key, "skipped: its URL cannot be read")
            continue
        request.address = parts
        if parts.scheme in ("data", "blob", "about"):
            request.outcome = RequestOutcome.INLINE
        elif parts.scheme not in _WEB_SCHEMES or not parts.host:
            request.outcome = RequestOutcome.NOT_HTTP
        request.resolved_kind, basis = kind_of(request)
        if request.outcome is RequestOutcome.ANSWERED and request.is_tab_icon:
            request.outcome = RequestOutcome.ICON
        if basis and request.outcome is RequestOutcome.ANSWERED:
            recording.inferred[basis] += 1
        requests.append(request)
    for request in requests:
        if request.redirect_of is not None:
            request.redirect_of = new_index[request.redirect_of]
        if request.parent is not None:
            request.parent = new_index[request.parent]
        if request.trigger is not None:
            request.trigger = _reindexed(request.trigger, new_index)
    # Backwards, so that the kind goes up a whole chain of redirects.
    for request in reversed(requests):
        if request.redirect_of is not None:  # a redirect has the kind of its target
            requests[request.redirect_of].resolved_kind = request.resolved_kind
    return requests


def _reindexed(trigger: Trigger, new_index: Sequence[int | None]) -> Trigger | None:
    """Return a trigger with new indices of its parents; None if all of them are left out."""
    alternatives = [
        replace(each, by=by, or_else=())
        for each in (trigger, *trigger.or_else)
        if (by := new_index[each.by]) is not None
    ]
    if not alternatives:
        return None
    first, *others = alternatives
    return replace(first, or_else=tuple(others))


def _is_retained(request: RecordedRequest, host: str | None) -> bool:
    is_answered = request.outcome is RequestOutcome.ANSWERED
    return is_answered and (host is None or request.address.host == host)


def _hosts_in(requests: Iterable[RecordedRequest]) -> str:
    """Return the hosts with the most requests, and how many others there are."""
    counts = Counter(each.address.host for each in requests if _is_retained(each, None))
    most = [host for host, _ in counts.most_common(_MAX_LISTED_HOSTS)]
    rest = len(counts) - len(most)
    return ", ".join(most) + (f" and {rest:,} more" if rest else "")


def _page_identity(recording: Recording, root: Address, n_hosts: int) -> dict[str, Any]:
    """Return the name, the URL and the provenance, as fields of a `Page`."""
    provenance = {
        "source": recording.source.replace("\\", "/").rpartition("/")[2],
        "recorded": recording.recorded,
        "tool": recording.tool,
        "hosts": str(n_hosts),
        "dialect": recording.dialect,
        **recording.provenance,
    }
    return {
        "name": _without_surrogates(recording.name) or root.host,
        "url": root.url if recording.has_addresses else "",
        "provenance": {key: _without_surrogates(text) for key, text in provenance.items() if text},
    }


def _count_left_out(requests: Iterable[RecordedRequest], host: str | None) -> Counter[str]:
    """Return how many requests are no part of the page, by reason."""
    left_out: Counter[str] = Counter()
    for request in requests:
        if request.outcome is not RequestOutcome.ANSWERED:
            left_out[request.outcome.value] += 1
        elif not _is_retained(request, host):
            left_out["of other hosts"] += 1
    return left_out


class _Assembly:
    """Assembly of the page of one recording; requests are identified by their index."""

    def __init__(
        self, recording: Recording, requests: list[RecordedRequest], host: str | None
    ) -> None:
        self._recording, self._requests = recording, requests
        self._host = ascii_host(host) if host is not None else None
        self._inferred = recording.inferred
        self._indices_by_time = by_time(self._requests)
        retained = [
            index for index in self._indices_by_time if _is_retained(requests[index], self._host)
        ]
        if not retained:
            hosts = _hosts_in(requests)
            raise recording.refuse(f"has no request to {host!r}; its hosts are {hosts}")
        self._root = _choose_root(requests, retained)
        self._retained = [index for index in retained if not self._is_late(index)]
        self._redirect_targets = self._targets_of_root()
        self._server_ms: dict[int, float | None] = {}
        self._bodies: dict[int, tuple[tuple[int, int], ...]] = {}

    def _is_late(self, index: int) -> bool:
        """Return whether a request was no part of the load, and mark it if so."""
        request, begun_ms = self._requests[index], self._requests[self._root].start_ms
        at_ms = request.start_ms if request.first_byte_ms is None else request.first_byte_ms
        is_known = index != self._root and begun_ms is not None and at_ms is not None
        if not is_known or at_ms <= begun_ms + _LONGEST_LOAD_MS:  # type: ignore[operator]
            return False
        request.outcome = RequestOutcome.LATE
        return True

    def _targets_of_root(self) -> set[int]:
        """Return the documents to which the root was redirected; each is another root."""
        found = {self._root}
        # All requests: a redirect on the way may be from the cache or the browser itself.
        for index in self._indices_by_time:
            if self._requests[index].redirect_of in found:
                found.add(index)
        return found.intersection(self._retained) - {self._root}

    def imported(self) -> ImportedPage:
        """Return the page with the report of its import."""
        recording, inferred = self._recording, self._inferred
        apply_markup(self._requests, inferred)
        self._parents, n_rejected = find_parents(
            self._requests, self._indices_by_time, self._root, self._redirect_targets
        )
        inferred["initiators that begin later, not believed"] += n_rejected
        parents = {index: parent.index for index, parent in self._parents.items()}
        self._modules = ModuleGraphs(self._requests, parents)
        _infer_paint(recording, self._requests, self._retained, parents, self._root)
        retained = [self._requests[index] for index in self._retained]
        self._requested_before_image = self._find_requests_before_image()
        self._blockers = self._find_blockers()
        ids = ids_of([request.url for request in retained], self._requests[self._root].url)
        ids = [request.id or id_ for request, id_ in zip(retained, ids, strict=True)]
        ids = _ids_of_facts(retained) or ids
        self._id_by_index = dict(zip(self._retained, ids, strict=True))
        self._frame_by_index = recorded_frames(
            dict(zip(self._retained, retained, strict=True)), self._id_by_index
        )
        names = [request.address.host for request in retained]
        path, hosts = self._network(retained, names)
        resources = tuple(self._resource(index) for index in self._retained)
        n_hosts = len(set(names))
        found = Counter({"requests": len(self._requests), "hosts": n_hosts})
        return ImportedPage(
            page=Page(
                **_page_identity(recording, self._requests[self._root].address, n_hosts),
                resources=resources,
                hosts=self._known_hosts(resources, hosts),
                recorded_load=self._recorded_load(path),
                layout=_layout(recording, self._requests, self._id_by_index),
                **_paint_causes(recording, self._requests, self._id_by_index),
                above_the_fold_from=MarksFrom.PAGE
                if recording.page_facts is None
                else recording.page_facts.above_the_fold_from,
            ),
            dialect=recording.dialect,
            found=dict(recording.found + found + count_recorded(retained)),
            inferred=dict(inferred + count_inferred_sizes(retained)),
            left_out=dict(recording.left_out + _count_left_out(self._requests, self._host)),
            warnings=(*recording.warnings, *self._root_warnings()),
            missing=(*recording.missing, *missing_values(retained), *self._missing_always()),
            mended=first_of(recording.mended),
            skipped=recording.all_problems(),
        )

    def _root_warnings(self) -> Iterator[str]:
        """Yield reasons why the root may not be the page's document."""
        root, first_retained = (self._requests[index] for index in (self._root, self._retained[0]))
        in_order = (self._requests[index] for index in self._indices_by_time)
        url, is_document = shown_path(root.address.url), root.resolved_kind is Kind.DOCUMENT
        n_late = sum(each.outcome is RequestOutcome.LATE for each in self._requests)
        if n_late:
            noun = "request" if n_late == 1 else "requests"
            yield f"{n_late:,} {noun} {RequestOutcome.LATE.value}: left out, as no part of its load"
        if root.is_unmodified:
            yield f"the main document was not modified (304): {_CACHE_ADVICE}"
        expected = next((each for each in in_order if _is_expected_root(each, self._host)), root)
        if expected is not root and expected.outcome in _SERVED_LOCALLY:
            what, expected_url = "document" if is_document else "request", expected.address.url
            yield (
                f"the main document, {shown_path(expected_url)}, came {expected.outcome.value}:"
                f" {_CACHE_ADVICE}. The root is now {url}, the first {what} that was sent"
            )
        elif not is_document:
            yield f"there is no document: the root is now {url}, the first request"
        elif root.is_framed:
            yield f"the root is now {url}, a document of a frame: that of the page is missing"
        elif first_retained is not root:
            other = shown_path(first_retained.address.url)
            yield f"the recording begins with {other}: the root is now {url}, the first document"

    def _network(
        self, retained: list[RecordedRequest], names: list[str]
    ) -> tuple[EstimatedPath | None, PageHosts]:
        """Return the path and the hosts, and set the times that depend on them.

        These are: when the browser released each request, the server's think times, and the start
        of the load.
        """
        detect_multiplexing(retained)
        root, request = self._retained.index(self._root), self._requests[self._root]
        stated = self._recording.stated_network
        path = None if self._recording.is_local else path_of(retained, root, stated)
        rtt_ms = None if path is None else path.rtt_ms
        stated_ms = {} if stated is None else stated.rtts_ms
        hosts = hosts_of(retained, names, root, rtt_ms=rtt_ms, stated_ms=stated_ms)
        self._host_by_index = dict(zip(self._retained, hosts.names, strict=True))
        if path is not None:
            rtt_by_host = {
                host.name: to_ms(host.rtt_ns) for host in hosts.known if host.rtt_ns is not None
            }
            rtts_ms = [rtt_by_host.get(name, path.rtt_ms) for name in names]
            groups = hosts.group_numbers(names)
            set_release_times(retained, groups, rtts_ms, request)
            usual_ms = {} if stated is None else stated.server_ms
            think_times_ms = server_times(retained, path, rtts_ms, groups, usual_ms)
            self._server_ms = dict(zip(self._retained, think_times_ms, strict=True))
            self._bodies = dict(
                zip(self._retained, produced_bodies(retained, path, rtts_ms), strict=True)
            )
        is_released = request.asked_ms is not None and request.sent_ms is not None
        self._load_start_ms = request.asked_ms if is_released else request.start_ms
        return path, hosts

    def _recorded_load(self, path: EstimatedPath | None) -> RecordedLoad | None:
        """Return the recorded times and sizes of the whole load.

        Times count from when a load that first opens a connection would have begun.
        """
        recording, zero_ms = self._recording, self._load_start_ms
        requests = {id_: self._requests[index] for index, id_ in self._id_by_index.items()}
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
        protocols = [each.protocol for each in requests.values() if each.protocol]
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
            values |= {"up_bps": path.up_bps, "loss": path.loss, "network_within": path.within}
            rtts_ns = {basis: ms(rtt_ms) for basis, rtt_ms in path.rtts_ms.items()}
            values |= {"rtt_estimates_ns": rtts_ns, "rate_estimates_bps": path.rates_bps}
        if recording.has_addresses and not recording.is_local:
            plausible = {id_: at_ms for id_, at_ms in completed_ms.items() if at_ms <= LONGEST_MS}
            completed_ns = {id_: recorded_ns(at_ms) for id_, at_ms in plausible.items()}
            values |= {"n_bytes": n_bytes, "completed_ns": completed_ns}
        if not values:
            return None
        return RecordedLoad(protocol=statistics.mode(protocols) if protocols else "", **values)

    def _find_blockers(self) -> ParserStops:
        """Return what may have blocked parsers, among resources whose parent is not recorded."""
        documents = {
            index: parent.index
            for index in self._retained
            if (parent := self._parents.get(index)) is not None
            and parent.index is not None
            and parent.basis is not ParentEvidence.GIVEN
            and self._is_in_document(index, parent.index)
        }
        return ParserStops(self._requests, documents)

    def _find_requests_before_image(self) -> set[int]:
        """Return the requests before the first image to which the page's document refers."""
        images = (
            number
            for number, index in enumerate(self._retained)
            if self._requests[index].resolved_kind is Kind.IMAGE
            and index in self._parents
            and self._is_in_document(index, self._parents[index].index)
        )
        return set(self._retained[: next(images, None)])  # all of them, without an image

    def _is_in_document(self, index: int, parent: int | None) -> bool:
        """Return whether *parent* is the page's document, and no script made the request."""
        request = self._requests[index]
        is_page = parent == self._root or parent in self._redirect_targets
        return is_page and not request.stack and request.initiator_type != "script"

    def _missing_always(self) -> Iterator[str]:
        """Yield what no recording has, and the number of unknown think times."""
        retained = [self._requests[index] for index in self._retained]
        if not all(request.facts for request in retained):
            has_hero = any(request.is_hero for request in retained)
            yield "what is critical" if has_hero else "what is critical or the hero"
        n_unknown = sum(self._server_ms.get(index) is None for index in self._retained)
        if n_unknown:
            yield f"server think times of {n_unknown:,}"

    def _known_hosts(self, resources: Iterable[Resource], hosts: PageHosts) -> tuple[Host, ...]:
        """Return the hosts of the page with known properties, as h3sim wrote them or as found."""
        facts = self._recording.page_facts
        used = {resource.host for resource in resources}
        known = facts.hosts if facts is not None and facts.hosts else hosts.known
        return tuple(host for host in known if host.name in used)

    def _resource(self, index: int) -> Resource:
        request = self._requests[index]
        if request.facts is not None:
            return self._resource_of_facts(index, request.facts)
        return self._inferred_resource(index)

    def _resource_of_facts(self, index: int, facts: Resource) -> Resource:
        """Return a resource that h3sim itself described, with its recorded sizes and priorities."""
        request = self._requests[index]
        sizes = {id_: self._requests[at].body_bytes or 0 for at, id_ in self._id_by_index.items()}
        known = with_known_triggers(facts, sizes)
        discovered = known.discovered
        if index == self._root:
            discovered = None
        elif discovered is None:
            discovered = self._inferred_resource(index).discovered
        return replace(
            known,
            id=self._id_by_index[index],
            mime=plain_mime(request.mime),
            host=facts.host or self._host_by_index[index],
            size_bytes=request.body_bytes or 0,
            header_bytes=request.header_bytes or 0,
            request_bytes=request.request_bytes or 0,
            response_offsets=_response_offsets(request),
            is_root=known.is_root and index != self._root,
            discovered=discovered,
            recorded=priorities_of(
                request, self._id_by_index[index], self._frame_by_index.get(index)
            ),
        )

    def _inferred_resource(self, index: int) -> Resource:
        """Return a resource, with all that was not recorded inferred."""
        request = self._requests[index]
        parent, direct = self._nearest_ancestor(index)
        if self._server_ms.get(index) is not None:
            self._inferred["server think times from waits"] += 1
        self._inferred["bodies in pieces from pauses"] += bool(self._bodies.get(index))
        return Resource(
            id=self._id_by_index[index],
            kind=request.resolved_kind,
            mime=plain_mime(request.mime),
            host=self._host_by_index[index],
            size_bytes=request.body_bytes or 0,
            header_bytes=request.header_bytes or 0,
            request_bytes=request.request_bytes or 0,
            parse_ns=self._time_ns(request.parse_ms),
            execute_ns=self._time_ns(request.execute_ms),
            server_ns=self._time_ns(self._server_ms.get(index) or 0.0),
            body=self._bodies.get(index, ()),
            response_offsets=_response_offsets(request),
            critical=request.is_critical,
            above_the_fold=request.is_above_the_fold,
            hero=request.is_hero,
            font_display=request.font_display,
            image_format=_image_format(request),
            is_root=index in self._redirect_targets,
            discovered=self._discovered(index, parent, direct=direct),
            reference_offset_bytes=self._reference_offset(index, parent, direct=direct),
            recorded=priorities_of(
                request, self._id_by_index[index], self._frame_by_index.get(index)
            ),
            server_priorities=priority_fields(request),
            **flags_of(
                request,
                self._inferred,
                in_document=direct and self._is_in_document(index, parent),
                before_image=index in self._requested_before_image,
            )
            | ({"module": True} if self._modules.are_modules(index) else {}),
        )

    def _nearest_ancestor(self, index: int) -> tuple[int | None, bool]:
        """Return the nearest ancestor that is in the page, and whether it is the parent.

        Also counts the evidence for the parent, so it must be called once for each request.
        """
        if index == self._root:
            return None, True
        parent = self._parents[index]
        if parent.basis not in _UNCOUNTED_EVIDENCE:
            self._inferred[f"parent from {parent.basis.value}"] += 1
        ancestor, direct = parent.index, True
        while ancestor is not None and ancestor not in self._id_by_index:
            direct = False
            ancestor = self._parents[ancestor].index if ancestor in self._parents else None
        if not direct:
            self._inferred["parent left out, next ancestor taken"] += 1
        return ancestor, direct

    def _reference_offset(self, index: int, parent: int | None, *, direct: bool) -> int | None:
        """Return the offset of a preloaded resource's element in the page's document."""
        offset_bytes = self._requests[index].reference_offset_bytes
        of_page = (self._root, *self._redirect_targets)
        if offset_bytes is None or parent is None or not (direct and parent in of_page):
            return None
        self._inferred["elements of preloads from the markup"] += 1
        return min(offset_bytes, self._requests[parent].body_bytes or 0)

    def _discovered(self, index: int, parent: int | None, *, direct: bool) -> Discovery | None:
        if index == self._root:
            return None
        request = self._requests[index]
        if parent is None:
            start_ms, zero_ms = request.start_ms, self._load_start_ms
            known = start_ms is not None and zero_ms is not None
            delay_ms = max(0.0, start_ms - zero_ms) if known else 0.0  # type: ignore[operator]
            self._inferred["trigger at a time, without parent"] += 1
            return Discovery(at=TriggerEvent.TIME, delay_ns=self._time_ns(delay_ms))
        recorded = request.trigger
        if recorded is not None and direct and recorded.by == parent:
            trigger = InferredTrigger(recorded.at, recorded.delay_ms, "", recorded.offset_bytes)
        elif direct and self._modules.imports(parent, index):
            trigger = trigger_of_import(request, self._requests[parent])
            self._inferred[f"trigger {trigger.basis}"] += 1
        else:
            ran = self._modules.as_it_ran(parent)
            is_after = starts_after(request, ran)
            trigger = trigger_of(
                request, ran if is_after else self._requests[parent], direct=direct
            )
            # A request after the whole document did not wait for its bytes, but for the parser.
            is_late = direct and trigger.at is TriggerEvent.COMPLETE
            blocker = self._blockers.last_before(index) if is_late else None
            if blocker is not None:
                parent = blocker
                trigger = trigger_of(request, self._requests[blocker], direct=False)
                trigger = trigger._replace(basis="from what held the parser up")
            self._inferred[f"trigger {trigger.basis}"] += 1
        by, delay_ns = self._id_by_index[parent], self._time_ns(trigger.delay_ms)
        others = () if recorded is None else recorded.or_else
        return Discovery(
            at=trigger.at,
            by=by,
            offset_bytes=trigger.offset_bytes,
            delay_ns=delay_ns,
            or_else=tuple(
                Discovery(
                    at=each.at,
                    by=self._id_by_index[each.by],
                    offset_bytes=each.offset_bytes,
                    delay_ns=self._time_ns(each.delay_ms),
                )
                for each in others
                if each.by in self._id_by_index
            ),
        )

    def _time_ns(self, time_ms: float) -> int:
        if time_ms > LONGEST_MS:
            self._inferred["times of more than a day, cut"] += 1
        return recorded_ns(min(max(0.0, time_ms), LONGEST_MS))


def _infer_paint(
    recording: Recording,
    requests: Sequence[RecordedRequest],
    retained: Sequence[int],
    parents: Mapping[int, int | None],
    root: int,
) -> None:
    """Make the first paint of a document that shows nothing wait for its scripts.

    These are the scripts of the document, and those that they requested, up to the load event:
    where no frames were recorded, nothing tells which of them made the content.
    """
    if recording.paints or not requests[root].shows_nothing:
        return
    loaded_ms = recording.times_ms.get("load_event", math.inf) + (requests[root].start_ms or 0.0)
    scripts = {root}
    for index in retained:
        request = requests[index]
        is_in_time = request.end_ms is not None and request.end_ms <= loaded_ms
        if request.resolved_kind is Kind.SCRIPT and is_in_time and parents.get(index) in scripts:
            scripts.add(index)
    after = [requests[index] for index in retained if index in scripts and index != root]
    recording.inferred["first paint after the scripts of an empty document"] += bool(after)
    if after:
        recording.paints = {"first_paint": RecordedPaint(after, 0.0, _FRAME_MS)}


def _layout(
    recording: Recording, requests: Sequence[RecordedRequest], ids: Mapping[int, str]
) -> Layout | None:
    """Return the rectangles of the retained requests; None if none was recorded."""
    facts = recording.page_facts
    if facts is not None and facts.layout is not None:
        return facts.layout.without(facts.layout.rectangles.keys() - {*ids.values()})
    found = {id_: requests[index].rectangles for index, id_ in ids.items()}
    rectangles = {id_: each for id_, each in found.items() if each}
    size = recording.viewport_px
    if size is None or not rectangles:
        return None
    return Layout(width=size[0], height=size[1], rectangles=rectangles)


def _paint_causes(
    recording: Recording, requests: Sequence[RecordedRequest], ids: Mapping[int, str]
) -> dict[str, Any]:
    """Return the causes of the recorded paints, as fields of a page; *ids* are by index."""
    return {
        key: PaintCause(
            after=tuple(
                id_
                for index, id_ in ids.items()
                if any(requests[index] is each for each in paint.after)
            ),
            work_ns=recorded_ns(min(paint.work_ms, LONGEST_MS)),
            delay_ns=recorded_ns(min(paint.delay_ms, LONGEST_MS)),
        )
        for key, paint in recording.paints.items()
    }


def _ids_of_facts(requests: Sequence[RecordedRequest]) -> list[str]:
    """Return the ids that h3sim wrote; none if any is missing or not unique."""
    ids = [request.facts.id for request in requests if request.facts is not None]
    return ids if len({*ids}) == len(requests) else []


def _image_format(request: RecordedRequest) -> ImageFormat | None:
    """Return the format of an image by its bytes; None if the media type says the same."""
    found = request.image_format if request.resolved_kind is Kind.IMAGE else None
    return None if found is ImageFormat.of_name(plain_mime(request.mime)) else found


def _without_surrogates(text: str) -> str:
    """Return text with lone surrogates replaced: a page file is UTF-8, which has none."""
    return text.encode("utf-8", "replace").decode()


def _response_offsets(request: RecordedRequest) -> tuple[int, ...]:
    """Return the offsets of the pieces of the body, if they add up to its size."""
    *offsets, total = itertools.accumulate((n_bytes for _, n_bytes in request.pieces), initial=0)
    return tuple(offsets) if total and total == request.body_bytes else ()
