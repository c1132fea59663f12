"""Variants of a page: its resources reach the browser in other ways than they were recorded."""

from __future__ import annotations

import itertools
from collections.abc import Collection
from dataclasses import replace
from typing import TYPE_CHECKING

from h3sim.documents.arguments import Only, check_arguments
from h3sim.errors import InputError, Problem
from h3sim.page.marks import ids_like
from h3sim.page.resource import At, Discovery, FetchPriority, Kind, Resource

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from h3sim.page.model import Page

__all__ = [
    "retriggered",
    "selected",
    "with_cached",
    "with_early_hints",
    "with_inlined_styles",
    "with_push",
    "with_revalidated",
    "with_staged_hints",
]

_PAGE = Only("a page", lambda value: hasattr(value, "resources") and hasattr(value, "root"))
_NAMES = Only(
    "ids, kinds or patterns of ids",
    lambda value: (
        isinstance(value, str)
        or (isinstance(value, Collection) and all(isinstance(name, str) for name in value))
    ),
)
_SHARE = Only(
    "a share, above 0 and up to 1",
    lambda value: isinstance(value, int | float) and 0 < value <= 1,
)
_HINT_BYTES = 28
"""What a link takes besides its URL: `link: <...>; rel=preload; as=style`, about."""
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
    >>> late = Discovery(at=At.COMPLETE, by="/")
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
            problems.append(Problem(key=name, message=message))
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
    >>> late = Discovery(at=At.COMPLETE, by="/")
    >>> style = Resource(id="a.css", kind=Kind.STYLESHEET, size_bytes=9, discovered=late)
    >>> from h3sim.page import Page
    >>> with_push(Page(name="x", resources=(root, style)), "*.css").resources[1].discovered.at
    <At.REQUEST: 'request'>
    """
    chosen = set(selected(page, names))
    with_document = Discovery(by=page.resources[page.root].id, at=At.REQUEST)
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
        discovered=Discovery(by=root.id, at=At.REQUEST),
    )
    when = Discovery(by=hints.id, at=At.COMPLETE)
    kept = [_preloaded(r, when) if i in chosen else r for i, r in enumerate(page.resources)]
    return page.with_resources([*kept[: page.root + 1], hints, *kept[page.root + 1 :]])


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
    when = Discovery(by=root, at=At.OFFSET, offset_bytes=0)
    resources = list(page.resources)
    stages: tuple[list[int], ...] = ([], [], [])
    for index, resource in enumerate(resources):
        if page.root_of[index] == page.root != index:
            stages[_stage(resource)].append(index)
    for stage in stages:
        for index in stage:
            resources[index] = _preloaded(resources[index], when)
        if stage:
            when = Discovery(by=resources[stage[-1]].id, at=At.COMPLETE)
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
    behind_styles = Discovery(by=root.id, at=At.OFFSET, offset_bytes=front_bytes)
    whole = Discovery(by=root.id, at=At.COMPLETE)
    ran = {r.id for r in own if r.kind is Kind.SCRIPT}
    instead = dict.fromkeys((style.id for style in inlined), behind_styles)

    def moved(when: Discovery) -> Discovery:
        if when.by == root.id and when.offset_bytes is not None:
            return replace(when, offset_bytes=when.offset_bytes + front_bytes)
        return behind_styles if when.by in ran else _after(when, instead, page)

    kept = [retriggered(r, moved) for r in page.resources if r.id not in instead]
    return page.with_resources(
        replace(r, size_bytes=r.size_bytes + front_bytes)
        if r.id == root.id
        else replace(r, discovered=whole, is_defer=True)
        if r.id in ran
        else r
        for r in kept
    )


def with_cached(page: Page, names: str | Iterable[str]) -> Page:
    """Return *page* as somebody loads it who has some of its resources in the cache, still fresh.

    They cost nothing and are gone from the page; what they ask for is asked for where they would
    have been, after the time that parsing and running them takes. ByteIndex is then that of what
    still comes over the network.

    Raises:
        InputError: naming each of *names* that means no resource; see `selected`.

    >>> root = Resource(id="/", kind=Kind.DOCUMENT, size_bytes=10)
    >>> late = Discovery(at=At.COMPLETE, by="/", delay_ns=5)
    >>> style = Resource(id="a.css", kind=Kind.STYLESHEET, size_bytes=9, discovered=late)
    >>> by_style = Discovery(at=At.COMPLETE, by="a.css", delay_ns=2)
    >>> font = Resource(id="a.woff2", kind=Kind.FONT, size_bytes=9, discovered=by_style)
    >>> from h3sim.page import Page
    >>> with_cached(Page(name="x", resources=(root, style, font)), "a.css").resources[1].discovered
    Discovery(by='/', at=<At.COMPLETE: 'complete'>, offset_bytes=None, delay_ns=7)
    """
    chosen = {page.resources[index].id: page.resources[index] for index in selected(page, names)}
    instead: dict[str, Discovery] = {}
    waiting = list(chosen.values())
    while waiting:  # a resource may stand before its parent, which may be cached, too
        resource = waiting.pop(0)
        found = resource.discovered or Discovery(at=At.TIME)
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
        is_within = when.by in stale and when.at is At.OFFSET
        return replace(when, at=At.COMPLETE, offset_bytes=None) if is_within else when

    kept = (retriggered(resource, moved) for resource in page.resources)
    return page.with_resources(
        replace(r, size_bytes=0, header_bytes=_NOT_MODIFIED_BYTES, response_offsets=())
        if r.id in stale
        else r
        for r in kept
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
    if when.at is At.TIME:
        return replace(when, by=None)
    gone, stands = page.resources[page.index[when.by]], instead[when.by]
    ran_ns = gone.parse_ns + gone.execute_ns if when.at is At.EXECUTED else 0
    return replace(stands, delay_ns=stands.delay_ns + when.delay_ns + ran_ns)


def _free_id(page: Page, name: str) -> str:
    """Return *name*, with a number behind it if a resource has it."""
    numbered = (f"{name} {number}" for number in itertools.count(2))
    return next(id_ for id_ in itertools.chain([name], numbered) if id_ not in page.index)
