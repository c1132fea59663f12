"""Transforms of a page: pushes, hints, caching, first layout, and two pages at once."""

from __future__ import annotations

import enum
import itertools
from collections.abc import Collection
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from h3sim.errors import InputError, ValidationIssue
from h3sim.page.model import ids_like
from h3sim.page.recording import RecordedLoad
from h3sim.page.resource import (
    MAX_TIME_NS,
    Discovery,
    FetchPriority,
    Kind,
    PriorityChange,
    Resource,
    TriggerEvent,
)
from h3sim.schema.arguments import Predicate, check_arguments
from h3sim.schema.values import Choice, Number, Text
from h3sim.units import ms, to_ms

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from h3sim.page.hosts import Host
    from h3sim.page.model import Page


_PAGE = Predicate("a page", lambda value: hasattr(value, "resources") and hasattr(value, "root"))
_NAMES = Predicate(
    "ids, kinds or patterns of ids",
    lambda value: (
        isinstance(value, str)
        or (isinstance(value, Collection) and all(isinstance(name, str) for name in value))
    ),
)
_SHARE = Predicate(
    "a share, above 0 and up to 1",
    lambda value: isinstance(value, int | float) and 0 < value <= 1,
)
_HINT_BYTES = 28
"""Approximate bytes of a Link header beside its URL: `link: <...>; rel=preload; as=style`."""
_NOT_MODIFIED_BYTES = 100
"""The header of a 304 (RFC 9110 § 15.4.5): status, date, etag and what caches are told, about."""
_NO_REQUEST_BYTES = 1
"""The least that a request can take; 0 would mean that nobody said it."""
_PROCESSED = (Kind.STYLESHEET, Kind.SCRIPT, Kind.FONT, Kind.DOCUMENT, Kind.FETCH)


def selected(page: Page, names: str | Iterable[str]) -> list[int]:
    """Return the indices of the resources meant by *names*: kinds, ids, or globs of ids.

    In file order, each once, and never the root. In a pattern `*` stands for any characters.

    Raises:
        InputError: naming each that means no resource.

    >>> root = Resource(id="/", kind=Kind.DOCUMENT, size_bytes=10)
    >>> late = Discovery(at=TriggerEvent.COMPLETE, by="/")
    >>> image = Resource(id="a/b.png", kind=Kind.IMAGE, size_bytes=9, discovered=late)
    >>> from h3sim.page import Page
    >>> page = Page(name="x", resources=(root, image))
    >>> selected(page, "image") == selected(page, ["a/*"]) == [1]
    True
    """
    check_arguments(InputError, page=(_PAGE, page), names=(_NAMES, names))
    found: set[int] = set()
    problems = []
    for name in [names] if isinstance(names, str) else names:
        of_kind = [r.id for r in page.resources if r.kind.value == name]
        meant = {page.index[id_] for id_ in of_kind or ids_like(page, name)}
        meant.difference_update(page.roots)
        if not meant:
            message = "no resource but the root has such an id or kind"
            problems.append(ValidationIssue(key=name, message=message))
        found |= meant
    if problems:
        raise InputError(problems, page.name)
    return sorted(found)


def with_push(page: Page, names: str | Iterable[str]) -> Page:
    """Return *page*, some of whose resources the server pushes (RFC 9113 § 8.4, RFC 9114 § 4.6).

    They are on their way as soon as the server has the request of the document, however long it
    thinks about that. A push has no request; here it has one of a byte, which goes with the
    document's own. Rules of schemes treat what is pushed as what was asked for.

    Raises:
        InputError: naming each of *names* that means no resource; see `selected`.

    >>> root = Resource(id="/", kind=Kind.DOCUMENT, size_bytes=10)
    >>> late = Discovery(at=TriggerEvent.COMPLETE, by="/")
    >>> style = Resource(id="a.css", kind=Kind.STYLESHEET, size_bytes=9, discovered=late)
    >>> from h3sim.page import Page
    >>> with_push(Page(name="x", resources=(root, style)), "*.css").resources[1].discovered.at
    <TriggerEvent.REQUEST: 'request'>
    """
    chosen = set(selected(page, names))
    with_document = Discovery(by=page.resources[page.root].id, at=TriggerEvent.REQUEST)
    return page.with_resources(
        replace(resource, discovered=with_document, request_bytes=_NO_REQUEST_BYTES)
        if index in chosen
        else resource
        for index, resource in enumerate(page.resources)
    )


def with_early_hints(page: Page, names: str | Iterable[str]) -> Page:
    """Return *page*, whose server hints at some resources before its answer (103, RFC 8297).

    The interim response leaves as soon as the server has the request of the document, and what it
    names is asked for, as preloads are, when it has come. Here it is a resource of its own, without
    a body: the document's stream is empty until the server has thought (`server_ms`).

    Raises:
        InputError: naming each of *names* that means no resource; see `selected`.
    """
    chosen = set(selected(page, names))
    root = page.resources[page.root]
    hints = Resource(
        id=_free_id(page, "(103)"),
        kind=Kind.OTHER,
        size_bytes=0,
        header_bytes=sum(_HINT_BYTES + len(page.resources[index].id) for index in chosen),
        request_bytes=_NO_REQUEST_BYTES,
        fetchpriority=FetchPriority.HIGH,
        discovered=Discovery(by=root.id, at=TriggerEvent.REQUEST),
    )
    when = Discovery(by=hints.id, at=TriggerEvent.COMPLETE)
    remaining = [_preloaded(r, when) if i in chosen else r for i, r in enumerate(page.resources)]
    return page.with_resources([*remaining[: page.root + 1], hints, *remaining[page.root + 1 :]])


def with_staged_hints(page: Page) -> Page:
    """Return *page*, whose server names all it needs with its answer, in stages (as Vroom, 2017).

    What must be processed for the page to appear is asked for first: stylesheets, and scripts that
    stop the parser. When that is there, all else that is processed; and then images, media and the
    rest (Ruamviboonsuk et al., SIGCOMM 2017, § 4). A resource has one trigger, and so the last of
    each stage in file order stands for all of it.

    Raises:
        InputError: if it is no page.
    """
    check_arguments(InputError, page=(_PAGE, page))
    root = page.resources[page.root].id
    when = Discovery(by=root, at=TriggerEvent.OFFSET, offset_bytes=0)
    resources = list(page.resources)
    stages: tuple[list[int], ...] = ([], [], [])
    for index, resource in enumerate(resources):
        if page.root_of[index] == page.root != index:
            stages[_stage(resource)].append(index)
    for stage in stages:
        for index in stage:
            resources[index] = _preloaded(resources[index], when)
        if stage:
            when = Discovery(by=resources[stage[-1]].id, at=TriggerEvent.COMPLETE)
    return page.with_resources(resources)


def with_inlined_styles(page: Page, *, share: float = 1.0) -> Page:
    """Return *page* restructured by its server: what paints first (as Shandian, 2016).

    Shandian's server loads the page itself and sends what that came to: the document with those
    styles in it that apply, and later what scripts need (Wang et al., NSDI 2016, § 3). So the
    stylesheets of the head are in the document here, in front of it and *share* of them; what they
    and scripts asked for is named right behind; scripts are asked for when the document is there.

    Raises:
        InputError: if it is no page, or no share.
    """
    check_arguments(InputError, page=(_PAGE, page), share=(_SHARE, share))
    root = page.resources[page.root]
    # Without the root, which may be of any kind: nothing is in front of it, or waits for it here.
    own = [
        r
        for index, (r, of) in enumerate(zip(page.resources, page.root_of, strict=True))
        if of == page.root != index
    ]
    inlined = [r for r in own if r.kind is Kind.STYLESHEET and r.in_head]
    front_bytes = round(share * sum(style.size_bytes for style in inlined))
    behind_styles = Discovery(by=root.id, at=TriggerEvent.OFFSET, offset_bytes=front_bytes)
    on_completion = Discovery(by=root.id, at=TriggerEvent.COMPLETE)
    ran = {r.id for r in own if r.kind is Kind.SCRIPT}
    instead = dict.fromkeys((style.id for style in inlined), behind_styles)

    def moved(when: Discovery) -> Discovery:
        if when.by == root.id and when.offset_bytes is not None:
            return replace(when, offset_bytes=when.offset_bytes + front_bytes)
        return behind_styles if when.by in ran else _after(when, instead, page)

    remaining = [retriggered(r, moved) for r in page.resources if r.id not in instead]
    return page.with_resources(
        replace(r, size_bytes=r.size_bytes + front_bytes)
        if r.id == root.id
        else replace(r, discovered=on_completion, is_defer=True)
        if r.id in ran
        else r
        for r in remaining
    )


def with_cached(page: Page, names: str | Iterable[str]) -> Page:
    """Return *page* as somebody loads it who has some of its resources in the cache, still fresh.

    They cost nothing and are gone from the page; what they ask for is asked for where they would
    have been, after the time that parsing and running them takes. ByteIndex is then that of what
    still comes over the network.

    Raises:
        InputError: naming each of *names* that means no resource; see `selected`.

    >>> root = Resource(id="/", kind=Kind.DOCUMENT, size_bytes=10)
    >>> late = Discovery(at=TriggerEvent.COMPLETE, by="/", delay_ns=5)
    >>> style = Resource(id="a.css", kind=Kind.STYLESHEET, size_bytes=9, discovered=late)
    >>> by_style = Discovery(at=TriggerEvent.COMPLETE, by="a.css", delay_ns=2)
    >>> font = Resource(id="a.woff2", kind=Kind.FONT, size_bytes=9, discovered=by_style)
    >>> from h3sim.page import Page
    >>> with_cached(Page(name="x", resources=(root, style, font)), "a.css").resources[1].discovered
    Discovery(by='/', at=<TriggerEvent.COMPLETE: 'complete'>, offset_bytes=None, delay_ns=7)
    """
    chosen = {page.resources[index].id: page.resources[index] for index in selected(page, names)}
    instead: dict[str, Discovery] = {}
    waiting = list(chosen.values())
    while waiting:  # a resource may stand before its parent, which may be cached, too
        resource = waiting.pop(0)
        found = resource.discovered or Discovery(at=TriggerEvent.TIME)
        if found.by in chosen and found.by not in instead:
            waiting.append(resource)
        else:
            instead[resource.id] = _after(found, instead, page)
    return page.with_resources(
        retriggered(resource, lambda when: _after(when, instead, page))
        for resource in page.resources
        if resource.id not in chosen
    )


def with_revalidated(page: Page, names: str | Iterable[str]) -> Page:
    """Return *page* as somebody loads it whose cached copies of some resources have gone stale.

    They are asked for, and answered by a header (304 Not Modified, RFC 9110 § 15.4.5).

    Raises:
        InputError: naming each of *names* that means no resource; see `selected`.
    """
    stale = {page.resources[index].id for index in selected(page, names)}

    def moved(when: Discovery) -> Discovery:
        is_within = when.by in stale and when.at is TriggerEvent.OFFSET
        return replace(when, at=TriggerEvent.COMPLETE, offset_bytes=None) if is_within else when

    remaining = (retriggered(resource, moved) for resource in page.resources)
    return page.with_resources(
        replace(r, size_bytes=0, header_bytes=_NOT_MODIFIED_BYTES, response_offsets=())
        if r.id in stale
        else r
        for r in remaining
    )


def _stage(resource: Resource) -> int:
    """Return the stage of hints in which a resource is named: 0 is the first."""
    is_late = resource.is_async or resource.is_defer
    if resource.kind is Kind.STYLESHEET or (resource.kind is Kind.SCRIPT and not is_late):
        return 0
    return 1 if resource.kind in _PROCESSED else 2


def _preloaded(resource: Resource, when: Discovery) -> Resource:
    return replace(resource, discovered=when, preload=True)


def retriggered(resource: Resource, moved: Callable[[Discovery], Discovery]) -> Resource:
    """Return *resource* with each of its triggers as *moved* has it."""
    found = resource.discovered
    return replace(
        resource,
        discovered=None if found is None else moved(found),
        priority_changes=tuple(
            replace(change, when=moved(change.when)) for change in resource.priority_changes
        ),
        recorded=tuple(
            entry if entry.when is None else replace(entry, when=moved(entry.when))
            for entry in resource.recorded
        ),
    )


def _after(when: Discovery, instead: Mapping[str, Discovery], page: Page) -> Discovery:
    """Return *when*, counted from what stands for its parent where that one is gone."""
    if when.by is None or when.by not in instead:
        return when
    # Such a time counts from navigation start, not from its parent.
    if when.at is TriggerEvent.TIME:
        return replace(when, by=None)
    gone, stands = page.resources[page.index[when.by]], instead[when.by]
    ran_ns = gone.parse_ns + gone.execute_ns if when.at is TriggerEvent.EXECUTED else 0
    return replace(stands, delay_ns=stands.delay_ns + when.delay_ns + ran_ns)


def _free_id(page: Page, name: str) -> str:
    """Return *name*, with a number behind it if a resource has it."""
    numbered = (f"{name} {number}" for number in itertools.count(2))
    return next(id_ for id_ in itertools.chain([name], numbered) if id_ not in page.index)


def with_first_layout(page: Page) -> Page:
    """Return *page*, whose images turn out to be seen when it is first laid out.

    A page cannot be laid out before what blocks rendering is there: the stylesheets of its head,
    and the scripts there that are neither async nor deferred (HTML § 4.2.7, § 4.12.1). A replay has
    one trigger for a change, and so the last of these to be asked for stands for all: the document
    itself where there is none. What is seen is what the page marks as above the fold. A browser
    that computes its load (`browser="parse"`) lays out by itself and needs none of this.

    Raises:
        InputError: if it is no page.

    >>> from h3sim.page import Kind, Page, Resource
    >>> image = Discovery(by="/", at=TriggerEvent.COMPLETE)
    >>> shown = with_first_layout(Page(name="one", resources=(
    ...     Resource(id="/", kind=Kind.DOCUMENT, size_bytes=10),
    ...     Resource(id="a", kind=Kind.IMAGE, size_bytes=9, above_the_fold=True, discovered=image),
    ... )))
    >>> shown.resources[1].priority_changes[0].visible
    True
    """
    check_arguments(InputError, page=(_PAGE, page))
    last = {root: page.resources[root].id for root in page.roots}
    last |= {page.root_of[n]: each.id for n, each in enumerate(page.resources) if _blocks(each)}
    changes = {
        root: PriorityChange(when=Discovery(by=by, at=TriggerEvent.COMPLETE), visible=True)
        for root, by in last.items()
    }
    resources = tuple(
        replace(resource, priority_changes=(*resource.priority_changes, changes[root]))
        if _is_shown(resource)
        else resource
        for resource, root in zip(page.resources, page.root_of, strict=True)
    )
    return replace(page, resources=resources)


def _blocks(resource: Resource) -> bool:
    if resource.render_blocking:
        return True
    if resource.kind is Kind.STYLESHEET:
        return resource.in_head
    is_late = resource.is_async or resource.is_defer or resource.preload
    return resource.kind is Kind.SCRIPT and resource.in_head and not is_late


def _is_shown(resource: Resource) -> bool:
    is_picture = resource.kind in (Kind.IMAGE, Kind.MEDIA)
    return is_picture and resource.above_the_fold and resource.discovered is not None


_AFTER = Number(low=0, high=to_ms(MAX_TIME_NS), hint="a day")


class OpenMode(enum.Enum):
    """The way another page is opened, and its effect on the current one."""

    BESIDE = "beside"
    """Both are seen: windows side by side, or two users."""
    BACKGROUND = "background"
    """In a tab in the background."""
    FRONT = "front"
    """In a tab in front, so that the first goes to the background."""


def merge_pages(
    page: Page,
    other: Page,
    *,
    after_ms: float = 0,
    opened: OpenMode | str = OpenMode.BESIDE,
    name: str | None = None,
) -> Page:
    """Return *page* with *other* as another root, which is asked for *after_ms*.

    Ids of the other begin with the name of its page. Nothing is cached: what both ask for is sent
    twice, as to two users of a proxy. A page that names no host is taken to be of the same. Of what
    a recording says the network of *page* is kept. The page is called *name*; without it a part of
    its digest is added to the name it had.

    Raises:
        InputError: if an argument is none of these.

    >>> from h3sim.page import Kind, Page, Resource
    >>> one = Page(name="one", resources=(Resource(id="/", kind=Kind.DOCUMENT, size_bytes=9),))
    >>> both = merge_pages(one, replace(one, name="two"), after_ms=500)
    >>> [(resource.id, resource.is_root) for resource in both.resources]
    [('/', False), ('two:/', True)]
    """
    arguments: dict[str, Any] = {"page": (_PAGE, page), "other": (_PAGE, other)}
    arguments |= {"after_ms": (_AFTER, after_ms), "opened": (Choice(OpenMode), opened)}
    check_arguments(InputError, **arguments, **({} if name is None else {"name": (Text(), name)}))
    opened_at = Discovery(at=TriggerEvent.TIME, delay_ns=ms(after_ms))
    remaining, moved = list(page.resources), _moved(other, _prefix(page, other), opened_at)
    if OpenMode(opened) is OpenMode.BACKGROUND:
        moved = _hidden(moved, Discovery(at=TriggerEvent.TIME))
    elif OpenMode(opened) is OpenMode.FRONT:
        remaining = _hidden(remaining, opened_at)
    both = page.with_resources((*remaining, *moved), name=name)
    marks_from = (page if page.above_the_fold_from.is_inferred else other).above_the_fold_from
    return replace(
        both,
        hosts=_hosts(page, other),
        above_the_fold_from=marks_from,
        provenance={**page.provenance, "beside": f"{other.name} after {after_ms:g} ms"},
        recorded_load=_network_of(page.recorded_load),
    )


def _prefix(page: Page, other: Page) -> str:
    """Return what ids of *other* begin with, so that each stands once."""
    number, prefix = 1, f"{other.name}:"
    # Of two copies of a page, or of a page that stands beside others already.
    while any(f"{prefix}{resource.id}" in page.index for resource in other.resources):
        number += 1
        prefix = f"{other.name} ({number}):"
    return prefix


def _moved(other: Page, prefix: str, opened_at: Discovery) -> list[Resource]:
    """Return the resources of a page that is opened later; its clock starts with its root."""
    root = other.resources[other.root]

    def later(when: Discovery) -> Discovery:
        # Navigation start is when its own root is asked for.
        if when.at is TriggerEvent.TIME:
            return Discovery(
                by=f"{prefix}{root.id}", at=TriggerEvent.REQUEST, delay_ns=when.delay_ns
            )
        return replace(when, by=f"{prefix}{when.by}")

    found = []
    for resource in other.resources:
        host = resource.host or root.host
        named = replace(resource, id=f"{prefix}{resource.id}", host=host)
        found.append(retriggered(named, later))
    found[other.root] = replace(found[other.root], is_root=True, discovered=opened_at)
    return found


def _hosts(page: Page, other: Page) -> tuple[Host, ...]:
    """Return the hosts of both; where both know something of one, the first page says it."""
    known = {host.name: host for host in page.hosts}
    rtt_of = {host.shared: host.rtt_ns for host in page.hosts if host.shared is not None}
    for host in other.hosts:
        # Hosts of one server are equally far away, and each recording has its own estimate.
        rtt_ns = rtt_of.get(host.shared, host.rtt_ns) if host.shared is not None else host.rtt_ns
        known.setdefault(host.name, replace(host, rtt_ns=rtt_ns))
    return tuple(known.values())


def _hidden(resources: Iterable[Resource], when: Discovery) -> list[Resource]:
    change = PriorityChange(when=when, hidden=True)
    return [
        replace(resource, priority_changes=(*resource.priority_changes, change))
        for resource in resources
    ]


def _network_of(recorded: RecordedLoad | None) -> RecordedLoad | None:
    """Return what holds of a recording once something else is loaded beside it."""
    if recorded is None or recorded.rtt_ns is None:
        return None
    return RecordedLoad(
        rtt_ns=recorded.rtt_ns,
        rtt_from=recorded.rtt_from,
        rate_bps=recorded.rate_bps,
        rate_from=recorded.rate_from,
        protocol=recorded.protocol,
    )
