"""Makes a page of the requests of a recording, and counts what had to be worked out for it."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from h3sim.capture.imported import ImportedPage, RecordingError
from h3sim.capture.inference.counts import found_in, missing_in, sizes_inferred_in
from h3sim.capture.inference.estimates import path_of
from h3sim.capture.inference.flags import flags_of
from h3sim.capture.inference.holding import let_go, see_multiplexing
from h3sim.capture.inference.hosts import group_numbers, hosts_of
from h3sim.capture.inference.kinds import kind_of, plain_mime
from h3sim.capture.inference.mentions import apply_markup
from h3sim.capture.inference.observed import (
    LONGEST_MS,
    RequestOutcome,
    by_time,
    first_of,
    recorded_ns,
)
from h3sim.capture.inference.odd_roots import odd_root
from h3sim.capture.inference.parents import Basis, find_parents
from h3sim.capture.inference.parser_stops import ParserStops
from h3sim.capture.inference.recorded import (
    priorities_of,
    recorded_frames,
    words_of,
)
from h3sim.capture.inference.server_waits import server_times
from h3sim.capture.inference.triggers import Found, trigger_of
from h3sim.capture.inference.urls import address, ascii_host, ids_of
from h3sim.capture.inference.whole_load import load_as_a_whole
from h3sim.page import At, Discovery, Kind, Page, Resource
from h3sim.units import to_ms

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from h3sim.capture.inference.estimates import EstimatedPath
    from h3sim.capture.inference.hosts import PageHosts
    from h3sim.capture.inference.observed import Observed, Recording
    from h3sim.capture.inference.parents import Parent
    from h3sim.capture.inference.urls import Address

__all__ = ["assemble"]

_WEB = ("http", "https")
_SHOWN_HOSTS = 5
_RECORDED = (Basis.GIVEN, Basis.REDIRECT, Basis.INITIATOR, Basis.NONE)
_ALWAYS_MISSING = "what is critical or the hero"


class _Entry(NamedTuple):
    """A request that may be in the page, and what is worked out for it alone."""

    request: Observed
    address: Address
    kind: Kind


def assemble(
    recording: Recording, *, host: str | None = None, strict: bool = False
) -> ImportedPage:
    """Return the page of *recording*; with *host*, of the requests to that host only.

    Raises:
        RecordingError: if no request is left, or, with *strict*, if anything could not be used.
    """
    entries = _entries(recording)
    if strict and (wrong := (*first_of(recording.mended), *recording.all_problems())):
        raise RecordingError(wrong, recording.source)
    if not any(_is_kept(entry, None) for entry in entries):
        raise recording.refuse("holds no request that was answered over HTTP")
    return _Assembly(recording, entries, host).imported()


def _entries(recording: Recording) -> list[_Entry]:
    """Return the requests with URLs; what notes a place in the list is brought up to date."""
    entries: list[_Entry] = []
    new: list[int | None] = []
    for request in recording.requests:
        parts = address(request.url)
        new.append(None if parts is None else len(entries))
        if parts is None:
            recording.note(request.key, "skipped: its URL cannot be read")
            continue
        if parts.scheme in ("data", "blob", "about"):
            request.outcome = RequestOutcome.INLINE
        elif parts.scheme not in _WEB or not parts.host:
            request.outcome = RequestOutcome.NOT_HTTP
        kind, basis = kind_of(request)
        if basis and request.outcome is RequestOutcome.ANSWERED:
            recording.inferred[basis] += 1
        entries.append(_Entry(request, parts, kind))
    for request, _, _ in entries:
        if request.redirect_of is not None:
            request.redirect_of = new[request.redirect_of]
        if request.parent is not None:
            request.parent = new[request.parent]
        if request.trigger is not None:
            by = new[request.trigger.by]
            request.trigger = None if by is None else replace(request.trigger, by=by)
    # Backwards, so that the kind goes up a whole chain of redirects.
    for request, _, kind in reversed(entries):
        if request.redirect_of is not None:  # what was redirected is of the kind of its target
            entries[request.redirect_of] = entries[request.redirect_of]._replace(kind=kind)
    return entries


def _is_kept(entry: _Entry, host: str | None) -> bool:
    is_there = entry.request.outcome is RequestOutcome.ANSWERED
    return is_there and (host is None or entry.address.host == host)


def _hosts_in(entries: Iterable[_Entry]) -> str:
    """Return the hosts with the most requests, and how many others there are."""
    counts = Counter(entry.address.host for entry in entries if _is_kept(entry, None))
    most = [host for host, _ in counts.most_common(_SHOWN_HOSTS)]
    rest = len(counts) - len(most)
    return ", ".join(most) + (f" and {rest:,} more" if rest else "")


class _Assembly:
    """The work on one recording. Requests are known by their place in it."""

    def __init__(self, recording: Recording, entries: list[_Entry], host: str | None) -> None:
        self._recording = recording
        self._entries = entries
        self._host = ascii_host(host) if host is not None else None
        self._requests = [entry.request for entry in entries]
        self._kinds = [entry.kind for entry in entries]
        self._inferred = recording.inferred
        self._order = by_time(self._requests)
        kept = [index for index in self._order if _is_kept(entries[index], self._host)]
        if not kept:
            raise recording.refuse(
                f"has no request to {host!r}; its hosts are {_hosts_in(entries)}"
            )
        self._kept = kept
        documents = [index for index in kept if entries[index].kind is Kind.DOCUMENT]
        of_pages = (index for index in documents if not entries[index].request.is_framed)
        self._root = next(of_pages, (documents or kept)[0])
        self._landed = self._redirected()
        self._server_ms: dict[int, float | None] = {}

    def _redirected(self) -> set[int]:
        """Return the documents that redirects of the root led to, each another root."""
        found = {self._root}
        # Of all: one on the way may have come from the cache, or from the browser itself.
        for index in self._order:
            if self._requests[index].redirect_of in found:
                found.add(index)
        return found.intersection(self._kept) - {self._root}

    def imported(self) -> ImportedPage:
        recording, inferred = self._recording, self._inferred
        apply_markup(self._requests, inferred)
        parents, n_unbelieved = find_parents(
            self._requests, self._kinds, self._order, self._root, self._landed
        )
        inferred["initiators that begin later, not believed"] += n_unbelieved
        kept = [self._requests[index] for index in self._kept]
        self._before_image = self._asked_before_the_first_image(parents)
        self._stops = self._parser_stops(parents)
        ids = ids_of([request.url for request in kept], self._requests[self._root].url)
        ids = [request.id or id_ for request, id_ in zip(kept, ids, strict=True)]
        self._ids = dict(zip(self._kept, ids, strict=True))
        self._frames = recorded_frames(dict(zip(self._kept, kept, strict=True)), self._ids)
        names = [self._entries[index].address.host for index in self._kept]
        path, hosts = self._network(kept, names)
        resources = tuple(self._resource(index, parents) for index in self._kept)
        n_hosts = len(set(names))
        found = Counter({"requests": len(self._requests), "hosts": n_hosts})
        return ImportedPage(
            page=Page(
                **self._named(n_hosts),
                resources=resources,
                hosts=hosts.known,
                recorded_load=load_as_a_whole(
                    recording,
                    {id_: self._requests[index] for index, id_ in self._ids.items()},
                    path,
                    root_start_ms=self._requests[self._root].start_ms,
                    zero_ms=self._zero_ms,
                ),
            ),
            dialect=recording.dialect,
            found=dict(recording.found + found + found_in(kept)),
            inferred=dict(inferred + sizes_inferred_in(kept)),
            left_out=dict(recording.left_out + self._left_out()),
            warnings=tuple(self._odd_root()),
            missing=(*recording.missing, *missing_in(kept), *self._missing_always()),
            mended=first_of(recording.mended),
            skipped=recording.all_problems(),
        )

    def _network(
        self, kept: list[Observed], names: list[str]
    ) -> tuple[EstimatedPath | None, PageHosts]:
        """Return the path and the hosts, after noting what follows from their times."""
        see_multiplexing(kept)
        root, request = self._kept.index(self._root), self._requests[self._root]
        path = None if self._recording.is_local else path_of(kept, root)
        hosts = hosts_of(kept, names, root, rtt_ms=None if path is None else path.rtt_ms)
        self._hosts = dict(zip(self._kept, hosts.names, strict=True))
        if path is not None:
            own = {host.name: to_ms(host.rtt_ns) for host in hosts.known if host.rtt_ns is not None}
            rtts_ms = [own.get(name, path.rtt_ms) for name in names]
            let_go(kept, group_numbers(names, hosts.known), rtts_ms, request)
            thought_ms = server_times(kept, path, rtts_ms)
            self._server_ms = dict(zip(self._kept, thought_ms, strict=True))
        self._zero_ms = request.start_ms if request.asked_ms is None else request.asked_ms
        return path, hosts

    def _odd_root(self) -> Iterator[str]:
        """Yield why the root may not be what was meant."""
        found = [self._entries[index] for index in self._order]
        root, first = (self._order.index(index) for index in (self._root, self._kept[0]))
        return odd_root(found, root, first, self._host)

    def _parser_stops(self, parents: dict[int, Parent]) -> ParserStops:
        """Return at what parsers stood, but for what the recording itself tells parents of."""
        documents = {
            index: parent.index
            for index in self._kept
            if (parent := parents.get(index)) is not None
            and parent.index is not None
            and parent.basis is not Basis.GIVEN
            and self._is_in_document(index, parent.index)
        }
        return ParserStops(self._requests, self._kinds, documents)

    def _asked_before_the_first_image(self, parents: dict[int, Parent]) -> set[int]:
        """Return what was asked for before the first image that the page's document names."""
        images = (
            number
            for number, index in enumerate(self._kept)
            if self._kinds[index] is Kind.IMAGE
            and index in parents
            and self._is_in_document(index, parents[index].index)
        )
        return set(self._kept[: next(images, None)])

    def _is_in_document(self, index: int, parent: int | None) -> bool:
        """Return whether *parent* is the page's document, in which no script asked for it."""
        request = self._requests[index]
        is_asked_by_it = parent == self._root or parent in self._landed
        return is_asked_by_it and not request.stack and request.initiator_type != "script"

    def _left_out(self) -> Counter[str]:
        left_out: Counter[str] = Counter()
        for entry in self._entries:
            if entry.request.outcome is not RequestOutcome.ANSWERED:
                left_out[entry.request.outcome.value] += 1
            elif not _is_kept(entry, self._host):
                left_out["of other hosts"] += 1
        return left_out

    def _missing_always(self) -> Iterator[str]:
        yield _ALWAYS_MISSING
        n_unknown = sum(self._server_ms.get(index) is None for index in self._kept)
        if n_unknown:
            yield f"server think times of {n_unknown:,}"

    def _named(self, n_hosts: int) -> dict[str, Any]:
        """Return what the page is called and where it comes from, as fields of a `Page`."""
        recording, root = self._recording, self._entries[self._root].address
        said = {
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
            "provenance": {key: _clean(text) for key, text in said.items() if text},
        }

    def _resource(self, index: int, parents: dict[int, Parent]) -> Resource:
        request, _, kind = self._entries[index]
        parent, direct = self._ancestor(index, parents)
        if self._server_ms.get(index) is not None:
            self._inferred["server think times from waits"] += 1
        return Resource(
            id=self._ids[index],
            kind=kind,
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
            viewport=request.viewport,
            is_root=index in self._landed,
            discovered=self._discovered(index, parent, direct=direct),
            recorded=priorities_of(request, self._ids[index], self._frames.get(index)),
            server_priorities=words_of(request),
            **flags_of(
                request,
                kind,
                self._inferred,
                in_document=direct and self._is_in_document(index, parent),
                before_image=index in self._before_image,
            ),
        )

    def _ancestor(self, index: int, parents: dict[int, Parent]) -> tuple[int | None, bool]:
        """Return the nearest ancestor that is in the page, and whether that is the parent.

        Counts how the parent of a request is known; it is asked for once for each.
        """
        if index == self._root:
            return None, True
        first = parents[index]
        if first.basis not in _RECORDED:
            self._inferred[f"parent from {first.basis.value}"] += 1
        at, direct = first.index, True
        while at is not None and at not in self._ids:
            at, direct = parents[at].index if at in parents else None, False
        if not direct:
            self._inferred["parent left out, next ancestor taken"] += 1
        return at, direct

    def _discovered(self, index: int, parent: int | None, *, direct: bool) -> Discovery | None:
        if index == self._root:
            return None
        request = self._requests[index]
        if parent is None:
            start_ms, zero_ms = request.start_ms, self._zero_ms
            known = start_ms is not None and zero_ms is not None
            delay_ms = max(0.0, start_ms - zero_ms) if known else 0.0  # type: ignore[operator]
            self._inferred["trigger at a time, without parent"] += 1
            return Discovery(at=At.TIME, delay_ns=self._time_ns(delay_ms))
        given = request.trigger
        if given is not None and direct and given.by == parent:
            found = Found(given.at, given.offset_bytes, given.delay_ms, "")
        else:
            found = trigger_of(request, self._requests[parent], self._kinds[parent], direct=direct)
            is_late = direct and found.at is At.COMPLETE
            stop = self._stops.last_before(index) if is_late else None
            if stop is not None:
                parent, kind = stop, self._kinds[stop]
                found = trigger_of(request, self._requests[stop], kind, direct=False)
                found = found._replace(basis="trigger from what held the parser up")
            self._inferred[found.basis] += 1
        return Discovery(
            at=found.at,
            by=self._ids[parent],
            offset_bytes=found.offset_bytes,
            delay_ns=self._time_ns(found.delay_ms),
        )

    def _time_ns(self, time_ms: float) -> int:
        if time_ms > LONGEST_MS:
            self._inferred["times of more than a day, cut"] += 1
        return recorded_ns(min(max(0.0, time_ms), LONGEST_MS))


def _clean(text: str) -> str:
    """Return text without lone halves of characters."""
    return text.encode("utf-8", "replace").decode()


def _offsets(request: Observed) -> tuple[int, ...]:
    """Return where the pieces of the body began, if they are of the body as it is counted."""
    total = sum(n_bytes for _, n_bytes in request.pieces)
    if not total or total != request.body_bytes:
        return ()
    offsets, at = [], 0
    for _, n_bytes in request.pieces:
        offsets.append(at)
        at += n_bytes
    return tuple(offsets)
