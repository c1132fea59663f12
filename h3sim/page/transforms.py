"""Transforms of a page: pushes, hints, caching, first layout, and two pages at once."""

from __future__ import annotations

import enum
import itertools
from collections.abc import Collection
from dataclasses import replace
from typing import TYPE_CHECKING, Any

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
    offsets_in,
)
from h3sim.schema.arguments import Predicate, check_arguments
from h3sim.schema.values import Choice, Number, Text
from h3sim.values.errors import InputError, ValidationIssue
from h3sim.values.units import ms, to_ms

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from h3sim.page.hosts import Host
    from h3sim.page.model import Page


_IS_PAGE = Predicate("a page", lambda value: hasattr(value, "resources") and hasattr(value, "root"))
_ARE_NAMES = Predicate(
    "ids, kinds or patterns of ids",
    lambda value: (
        isinstance(value, str)
        or (isinstance(value, Collection) and all(isinstance(name, str) for name in value))
    ),
)
_IS_SHARE = Predicate(
    "a share, above 0 and up to 1",
    lambda value: isinstance(value, int | float) and 0 < value <= 1,
)
PRECONNECT = "(preconnect"
"""The beginning of the ids that `with_preconnect` gives its links."""
_HINT_BYTES = 28
"""Approximate bytes of a Link header without its URL: `link: <...>; rel=preload; as=style`."""
_NOT_MODIFIED_BYTES = 100
"""Approximate header of a 304 (RFC 9110 § 15.4.5): status, date, ETag and Cache-Control."""
_NO_REQUEST_BYTES = 1
"""The bytes of a request that is not sent, the smallest possible; 0 would mean unknown."""
_PROCESSED_KINDS = (Kind.STYLESHEET, Kind.SCRIPT, Kind.FONT, Kind.DOCUMENT, Kind.FETCH)
"""Kinds that the browser parses or executes, which Vroom fetches before the others."""


def selected(page: Page, names: str | Iterable[str]) -> list[int]:
    """Return the indices of the resources that match *names*: kinds, ids, or globs of ids.

    They are in file order, without duplicates and without roots.

    Raises:
        InputError: listing each name that matches no resource.

    >>> root = Resource(id="/", kind=Kind.DOCUMENT, size_bytes=10)
    >>> late = Discovery(at=TriggerEvent.COMPLETE, by="/")
    >>> image = Resource(id="a/b.png", kind=Kind.IMAGE, size_bytes=9, discovered=late)
    >>> from h3sim.page import Page
    >>> page = Page(name="x", resources=(root, image))
    >>> selected(page, "image") == selected(page, ["a/*"]) == [1]
    True
    """
    check_arguments(InputError, page=(_IS_PAGE, page), names=(_ARE_NAMES, names))
    found: set[int] = set()
    problems = []
    for name in [names] if isinstance(names, str) else names:
        of_kind = [resource.id for resource in page.resources if resource.kind.value == name]
        matches = {page.index[id_] for id_ in of_kind or ids_like(page, name)}
        matches.difference_update(page.roots)
        if not matches:
            message = "matches no id or kind of a resource other than the root"
            problems.append(ValidationIssue(key=name, message=message))
        found |= matches
    if problems:
        raise InputError(problems, page.name)
    return sorted(found)


def with_push(page: Page, names: str | Iterable[str]) -> Page:
    """Return *page* with resources that the server pushes (RFC 9113 § 8.4, RFC 9114 § 4.6).

    The server sends them as soon as it has the request of the document, regardless of its think
    time. A push has no request; here it has one of one byte, sent with that of the document.
    Scheme rules treat pushed resources like requested ones.

    Raises:
        InputError: listing each of *names* that matches no resource; see `selected`.

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
    """Return *page* with Early Hints for some resources (103, RFC 8297).

    The interim response leaves as soon as the server has the request of the document; on its
    arrival the named resources are requested as preloads. Resources that the document references
    still block at their reference (`reference_offset_bytes`). The response is modelled as a
    resource without a body, because the stream of the document stays empty during the think time
    (`server_ms`).

    Raises:
        InputError: listing each of *names* that matches no resource; see `selected`.

    >>> root = Resource(id="/", kind=Kind.DOCUMENT, size_bytes=10)
    >>> named = Discovery(at=TriggerEvent.OFFSET, by="/", offset_bytes=5)
    >>> style = Resource(id="a.css", kind=Kind.STYLESHEET, size_bytes=9, discovered=named)
    >>> from h3sim.page import Page
    >>> hinted = with_early_hints(Page(name="x", resources=(root, style)), "a.css").resources[2]
    >>> hinted.discovered.by, hinted.reference_offset_bytes
    ('(103)', 5)
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
    remaining = [
        replace(_preloaded(r, when), reference_offset_bytes=_element_offset(page, r))
        if i in chosen
        else r
        for i, r in enumerate(page.resources)
    ]
    return page.with_resources([*remaining[: page.root + 1], hints, *remaining[page.root + 1 :]])


def _element_offset(page: Page, resource: Resource) -> int | None:
    """Return the offset of a resource's element in the document; None if it has none."""
    if resource.reference_offset_bytes is not None or resource.preload:
        return resource.reference_offset_bytes
    return next(offsets_in(resource, page.resources[page.root].id), None)


def with_staged_hints(page: Page) -> Page:
    """Return *page* with server hints for all its resources, in stages (Vroom, 2017).

    The first stage has what blocks rendering: stylesheets, and scripts that block the parser. Once
    they are complete, the other processed resources are requested, and then images, media and the
    rest (Ruamviboonsuk et al., SIGCOMM 2017, § 4). A resource has one trigger, so each stage waits
    for the last resource, in file order, of the stage before.

    Raises:
        InputError: if *page* is not a page.
    """
    check_arguments(InputError, page=(_IS_PAGE, page))
    root = page.resources[page.root].id
    when = Discovery(by=root, at=TriggerEvent.OFFSET, offset_bytes=0)
    resources = list(page.resources)
    stages: tuple[list[int], ...] = ([], [], [])
    for index, resource in enumerate(resources):
        if page.root_of[index] == page.root != index:
            stages[_hint_stage(resource)].append(index)
    for stage in stages:
        for index in stage:
            resources[index] = _preloaded(resources[index], when)
        if stage:
            when = Discovery(by=resources[stage[-1]].id, at=TriggerEvent.COMPLETE)
    return page.with_resources(resources)


def with_inlined_styles(page: Page, *, share: float = 1.0) -> Page:
    """Return *page* with stylesheets inlined by its server (Shandian, 2016).

    Shandian's server loads the page itself and sends the resulting document with the styles that
    apply, and later the state that scripts need (Wang et al., NSDI 2016, § 3). Here a *share* of
    the bytes of the head's stylesheets precedes the document; their children, and those of scripts,
    are discovered right after them; scripts are requested once the document is complete.

    Raises:
        InputError: if *page* is not a page, or *share* not a share.
    """
    check_arguments(InputError, page=(_IS_PAGE, page), share=(_IS_SHARE, share))
    root = page.resources[page.root]
    descendants = [
        r
        for index, (r, of) in enumerate(zip(page.resources, page.root_of, strict=True))
        if of == page.root != index
    ]
    inlined = [
        resource
        for resource in descendants
        if resource.kind is Kind.STYLESHEET and resource.in_head
    ]
    front_bytes = round(share * sum(style.size_bytes for style in inlined))
    after_styles = Discovery(by=root.id, at=TriggerEvent.OFFSET, offset_bytes=front_bytes)
    on_completion = Discovery(by=root.id, at=TriggerEvent.COMPLETE)
    scripts = {resource.id for resource in descendants if resource.kind is Kind.SCRIPT}
    replacement_of = dict.fromkeys((style.id for style in inlined), after_styles)

    def shifted(at_bytes: int) -> int:
        return at_bytes + front_bytes

    def moved(when: Discovery) -> Discovery:
        if when.by == root.id and when.offset_bytes is not None:
            return replace(when, offset_bytes=shifted(when.offset_bytes))
        return after_styles if when.by in scripts else _after_removal(when, replacement_of, page)

    remaining = [
        _with_reference(retriggered(resource, moved), shifted)
        for resource in page.resources
        if resource.id not in replacement_of
    ]
    return page.with_resources(
        resource.resized(
            resource.size_bytes + front_bytes, response_offsets=resource.response_offsets
        )
        if resource.id == root.id
        else replace(resource, discovered=on_completion, is_defer=True)
        if resource.id in scripts
        else resource
        for resource in remaining
    )


def with_preconnect(page: Page, host: str) -> Page:
    """Return *page* with a link in its head that connects to *host* early (`rel=preconnect`).

    It is modelled as an empty resource of that host, requested with the first bytes of the
    document: its request opens the connection, which later requests share.

    Raises:
        InputError: if no resource has that host.

    >>> root = Resource(id="/", kind=Kind.DOCUMENT, size_bytes=10)
    >>> late = Discovery(at=TriggerEvent.COMPLETE, by="/")
    >>> image = Resource(id="a", kind=Kind.IMAGE, size_bytes=9, host="cdn", discovered=late)
    >>> from h3sim.page import Page
    >>> with_preconnect(Page(name="x", resources=(root, image)), "cdn").resources[1].id
    '(preconnect cdn)'
    """
    check_arguments(InputError, page=(_IS_PAGE, page), host=(Text(is_needed=True), host))
    if all(resource.host != host for resource in page.resources):
        raise InputError.at(host, "is not the host of any resource")
    root = page.resources[page.root]
    link = Resource(
        id=_free_id(page, f"{PRECONNECT} {host})"),
        kind=Kind.OTHER,
        host=host,
        size_bytes=0,
        request_bytes=_NO_REQUEST_BYTES,
        discovered=Discovery(by=root.id, at=TriggerEvent.OFFSET, offset_bytes=0),
    )
    return page.with_resources(
        [*page.resources[: page.root + 1], link, *page.resources[page.root + 1 :]]
    )


def with_inlined(page: Page, names: str | Iterable[str]) -> Page:
    """Return *page* with small files inlined into its document.

    Their bytes replace the references in the document, and all later bytes move back. Their
    children are discovered at these positions; the time to parse and execute them is added to the
    parsing time of the document. ByteIndex counts the remaining resources and the larger document.

    Raises:
        InputError: listing each of *names* that matches no resource, and each resource that the
            document does not name at an offset of its body.

    >>> root = Resource(id="/", kind=Kind.DOCUMENT, size_bytes=10)
    >>> named = Discovery(at=TriggerEvent.OFFSET, by="/", offset_bytes=5)
    >>> style = Resource(id="a.css", kind=Kind.STYLESHEET, size_bytes=9, discovered=named)
    >>> from h3sim.page import Page
    >>> with_inlined(Page(name="x", resources=(root, style)), "a.css").resources[0].size_bytes
    19
    """
    check_arguments(InputError, page=(_IS_PAGE, page))
    root = page.resources[page.root]
    chosen = {page.resources[index].id: page.resources[index] for index in selected(page, names)}
    problems = [
        ValidationIssue(key=id_, message="is not named by the document, at an offset of its body")
        for id_, resource in chosen.items()
        if next(offsets_in(resource, root.id), None) is None
    ]
    if problems:
        raise InputError(problems, page.name)
    inserted_at = {id_: next(offsets_in(each, root.id)) for id_, each in chosen.items()}

    def shifted(offset_bytes: int) -> int:
        """Return the new offset of a byte of the document."""
        before = (chosen[id_].size_bytes for id_, at in inserted_at.items() if at < offset_bytes)
        return offset_bytes + sum(before)

    replacement_of = {
        id_: Discovery(
            by=root.id,
            at=TriggerEvent.OFFSET,
            offset_bytes=shifted(inserted_at[id_]) + resource.size_bytes,
        )
        for id_, resource in chosen.items()
    }

    def moved(when: Discovery) -> Discovery:
        if when.by == root.id and when.offset_bytes is not None:
            return replace(when, offset_bytes=shifted(when.offset_bytes))
        by = when.first_parent
        if by is None or by not in replacement_of:
            return when
        if when.at is TriggerEvent.TIME:
            return replace(when, by=None)
        # Its parsing and execution are part of the document's.
        return replace(replacement_of[by], delay_ns=when.delay_ns)

    larger_root = root.resized(
        root.size_bytes + sum(each.size_bytes for each in chosen.values()),
        parse_ns=root.parse_ns + sum(each.parse_ns + each.execute_ns for each in chosen.values()),
    )
    styles = {id_ for id_, each in chosen.items() if each.kind is Kind.STYLESHEET}

    def settled(resource: Resource) -> Resource:
        """Return a remaining resource: what an inlined stylesheet refers to waits for layout."""
        if resource.id == root.id:
            return larger_root
        by = None if resource.discovered is None else resource.discovered.first_parent
        is_styled = by in styles and resource.kind in (Kind.IMAGE, Kind.FONT)
        return replace(resource, in_style=True) if is_styled else resource

    remaining = (settled(resource) for resource in page.resources if resource.id not in chosen)
    return page.with_resources(
        _with_reference(retriggered(resource, moved), shifted) for resource in remaining
    )


def _with_reference(resource: Resource, shifted: Callable[[int], int]) -> Resource:
    """Return *resource* with the offset of its element moved."""
    at_bytes = resource.reference_offset_bytes
    if at_bytes is None:
        return resource
    return replace(resource, reference_offset_bytes=shifted(at_bytes))


def with_same_host(page: Page, names: str | Iterable[str]) -> Page:
    """Return *page* with some resources served by the host of its document.

    Raises:
        InputError: listing each of *names* that matches no resource; see `selected`.
    """
    chosen = {page.resources[index].id for index in selected(page, names)}
    host = page.resources[page.root].host
    return page.with_resources(
        replace(resource, host=host) if resource.id in chosen else resource
        for resource in page.resources
    )


def with_cached(page: Page, names: str | Iterable[str]) -> Page:
    """Return *page* as loaded with fresh copies of some resources in the cache.

    Cached resources cost nothing and are removed from the page; their children are requested when
    they would have been, after the time to parse and execute their parent. What waits for several
    resources then waits for those that are still transferred. ByteIndex covers the latter, too.

    Raises:
        InputError: listing each of *names* that matches no resource; see `selected`.

    >>> root = Resource(id="/", kind=Kind.DOCUMENT, size_bytes=10)
    >>> late = Discovery(at=TriggerEvent.COMPLETE, by="/", delay_ns=5)
    >>> style = Resource(id="a.css", kind=Kind.STYLESHEET, size_bytes=9, discovered=late)
    >>> by_style = Discovery(at=TriggerEvent.COMPLETE, by="a.css", delay_ns=2)
    >>> font = Resource(id="a.woff2", kind=Kind.FONT, size_bytes=9, discovered=by_style)
    >>> from h3sim.page import Page
    >>> cached = with_cached(Page(name="x", resources=(root, style, font)), "a.css")
    >>> cached.resources[1].discovered.by, cached.resources[1].discovered.delay_ns
    ('/', 7)
    """
    chosen = {page.resources[index].id: page.resources[index] for index in selected(page, names)}
    replacement_of: dict[str, Discovery] = {}
    waiting = list(chosen.values())
    while waiting:  # a resource may precede its parent in the file, and both may be cached
        resource = waiting.pop(0)
        found = resource.discovered or Discovery(at=TriggerEvent.TIME)
        known = [
            when
            for when in found.alternatives
            if not any(by in chosen and by not in replacement_of for by in when.waits_for)
        ]
        if known:
            # The first of several triggers stands for all: what follows has one trigger.
            replacement_of[resource.id] = _moved_join(
                known[0], lambda when: _after_removal(when, replacement_of, page)
            )
        else:
            waiting.append(resource)
    return page.with_resources(
        retriggered(resource, lambda when: _after_removal(when, replacement_of, page))
        for resource in page.resources
        if resource.id not in chosen
    )


def with_revalidated(page: Page, names: str | Iterable[str]) -> Page:
    """Return *page* as loaded with stale copies of some resources in the cache.

    They are requested, and answered by a header only (304 Not Modified, RFC 9110 § 15.4.5).

    Raises:
        InputError: listing each of *names* that matches no resource; see `selected`.
    """
    stale = {page.resources[index].id for index in selected(page, names)}

    def moved(when: Discovery) -> Discovery:
        is_within = when.by in stale and when.at is TriggerEvent.OFFSET
        return replace(when, at=TriggerEvent.COMPLETE, offset_bytes=None) if is_within else when

    remaining = (retriggered(resource, moved) for resource in page.resources)
    return page.with_resources(
        resource.resized(0, header_bytes=_NOT_MODIFIED_BYTES) if resource.id in stale else resource
        for resource in remaining
    )


def _hint_stage(resource: Resource) -> int:
    """Return the stage of the hint for a resource, from 0."""
    is_late = resource.is_async or resource.is_deferred
    if resource.kind is Kind.STYLESHEET or (resource.kind is Kind.SCRIPT and not is_late):
        return 0
    return 1 if resource.kind in _PROCESSED_KINDS else 2


def _preloaded(resource: Resource, when: Discovery) -> Resource:
    return replace(resource, discovered=when, preload=True)


def retriggered(resource: Resource, moved: Callable[[Discovery], Discovery]) -> Resource:
    """Return *resource* with the function *moved* applied to each of its triggers.

    *moved* is called with triggers of one parent. A trigger that waits for several goes on to wait
    for those parents whose event it does not change, or for the last one if it changes all.
    """
    found = resource.discovered
    discovered = found
    if found is not None:
        first, *others = (_moved_join(when, moved) for when in found.alternatives)
        discovered = replace(first, or_else=tuple(others)) if others else first
    return replace(
        resource,
        discovered=discovered,
        priority_changes=tuple(
            replace(change, when=moved(change.when)) for change in resource.priority_changes
        ),
        recorded=tuple(
            entry if entry.when is None else replace(entry, when=moved(entry.when))
            for entry in resource.recorded
        ),
    )


def _moved_join(when: Discovery, moved: Callable[[Discovery], Discovery]) -> Discovery:
    """Return a trigger with *moved* applied to each of its parents."""
    if len(when.parents) < 2:
        return moved(when)
    each_moved = [moved(replace(when, by=by)) for by in when.parents]
    ids = [
        by
        for each in each_moved
        if (each.at, each.offset_bytes, each.delay_ns) == (when.at, None, when.delay_ns)
        for by in each.parents
    ]
    return replace(when, by=tuple(dict.fromkeys(ids))) if ids else each_moved[-1]


def _after_removal(
    when: Discovery, replacement_of: Mapping[str, Discovery], page: Page
) -> Discovery:
    """Return the trigger *when*; if its parent was removed, after the parent's replacement."""
    by = when.first_parent
    if by is None or by not in replacement_of:
        return when
    # A timer counts from navigation start, not from its parent.
    if when.at is TriggerEvent.TIME:
        return replace(when, by=None)
    removed, replacement = page.resources[page.index[by]], replacement_of[by]
    is_executed = when.at is TriggerEvent.EXECUTED
    execution_ns = removed.parse_ns + removed.execute_ns if is_executed else 0
    return replace(replacement, delay_ns=replacement.delay_ns + when.delay_ns + execution_ns)


def _free_id(page: Page, name: str) -> str:
    """Return *name*, with a number appended if it is taken."""
    numbered = (f"{name} {number}" for number in itertools.count(2))
    return next(id_ for id_ in itertools.chain([name], numbered) if id_ not in page.index)


def with_first_layout(page: Page) -> Page:
    """Return *page* with its visible images marked as visible at first layout.

    A page is not laid out before its render-blocking resources are complete: the stylesheets of its
    head, and the scripts there that are neither async nor deferred (HTML § 4.2.7, § 4.12.1). A
    change has one trigger in a replay, so it is the last of these in file order, or the document
    if there are none. The images above the fold are the visible ones. A browser that computes its
    load (`browser="parse"`) has a layout of its own and does not need this.

    Raises:
        InputError: if *page* is not a page.

    >>> from h3sim.page import Kind, Page, Resource
    >>> image = Discovery(by="/", at=TriggerEvent.COMPLETE)
    >>> shown = with_first_layout(Page(name="one", resources=(
    ...     Resource(id="/", kind=Kind.DOCUMENT, size_bytes=10),
    ...     Resource(id="a", kind=Kind.IMAGE, size_bytes=9, above_the_fold=True, discovered=image),
    ... )))
    >>> shown.resources[1].priority_changes[0].visible
    True
    """
    check_arguments(InputError, page=(_IS_PAGE, page))
    last_blocking = {root: page.resources[root].id for root in page.roots}
    for index, resource in enumerate(page.resources):
        if _blocks_rendering(resource):
            last_blocking[page.root_of[index]] = resource.id
    changes = {
        root: PriorityChange(when=Discovery(by=by, at=TriggerEvent.COMPLETE), visible=True)
        for root, by in last_blocking.items()
    }
    resources = tuple(
        replace(resource, priority_changes=(*resource.priority_changes, changes[root]))
        if _is_visible_image(resource)
        else resource
        for resource, root in zip(page.resources, page.root_of, strict=True)
    )
    return replace(page, resources=resources)


def _blocks_rendering(resource: Resource) -> bool:
    """Return whether a resource delays the first paint."""
    if resource.render_blocking:
        return True
    if resource.kind is Kind.STYLESHEET:
        return resource.in_head
    is_late = resource.is_async or resource.is_deferred or resource.preload
    return resource.kind is Kind.SCRIPT and resource.in_head and not is_late


def _is_visible_image(resource: Resource) -> bool:
    is_image = resource.kind in (Kind.IMAGE, Kind.MEDIA)
    return is_image and resource.above_the_fold and resource.discovered is not None


_OPENING_DELAY = Number(low=0, high=to_ms(MAX_TIME_NS), hint="a day")


class OpenMode(enum.Enum):
    """Placement of a second page, and its effect on the first."""

    CONCURRENT = "beside"
    """Both are visible: two windows, or two users."""
    BACKGROUND = "background"
    """In a background tab."""
    FRONT = "front"
    """In a foreground tab, which moves the first page to the background."""


def merge_pages(
    page: Page,
    other: Page,
    *,
    after_ms: float = 0,
    opened: OpenMode | str = OpenMode.CONCURRENT,
    name: str | None = None,
) -> Page:
    """Return *page* with *other* as another root, which is requested *after_ms*.

    Ids of *other* are prefixed with its name. Nothing is cached: a resource of both pages is sent
    twice, as to two users of a proxy. Pages without hosts share one. Of the recorded facts, the
    network of *page* is kept. The page is called *name*; by default, part of its digest is appended
    to its old name.

    Raises:
        InputError: if an argument is invalid.

    >>> from h3sim.page import Kind, Page, Resource
    >>> one = Page(name="one", resources=(Resource(id="/", kind=Kind.DOCUMENT, size_bytes=9),))
    >>> both = merge_pages(one, replace(one, name="two"), after_ms=500)
    >>> [(resource.id, resource.is_root) for resource in both.resources]
    [('/', False), ('two:/', True)]
    """
    arguments: dict[str, Any] = {"page": (_IS_PAGE, page), "other": (_IS_PAGE, other)}
    arguments |= {"after_ms": (_OPENING_DELAY, after_ms), "opened": (Choice(OpenMode), opened)}
    check_arguments(InputError, **arguments, **({} if name is None else {"name": (Text(), name)}))
    opened_at = Discovery(at=TriggerEvent.TIME, delay_ns=ms(after_ms))
    remaining, moved = list(page.resources), _as_later_root(other, _prefix(page, other), opened_at)
    if OpenMode(opened) is OpenMode.BACKGROUND:
        moved = _moved_to_background(moved, Discovery(at=TriggerEvent.TIME))
    elif OpenMode(opened) is OpenMode.FRONT:
        remaining = _moved_to_background(remaining, opened_at)
    both = page.with_resources((*remaining, *moved), name=name)
    marks_from = (page if page.above_the_fold_from.is_inferred else other).above_the_fold_from
    return replace(
        both,
        hosts=_merged_hosts(page, other),
        above_the_fold_from=marks_from,
        provenance={**page.provenance, "beside": f"{other.name} after {after_ms:g} ms"},
        recorded_load=_network_of(page.recorded_load),
    )


def _prefix(page: Page, other: Page) -> str:
    """Return the prefix of ids of *other* that makes them unique."""
    number, prefix = 1, f"{other.name}:"
    # *other* may be a copy of *page*, or be merged a second time.
    while any(f"{prefix}{resource.id}" in page.index for resource in other.resources):
        number += 1
        prefix = f"{other.name} ({number}):"
    return prefix


def _as_later_root(other: Page, prefix: str, opened_at: Discovery) -> list[Resource]:
    """Return the resources of a page that is opened later; its time starts with its root."""
    root = other.resources[other.root]

    def later(when: Discovery) -> Discovery:
        # Its navigation starts with the request of its own root.
        if when.at is TriggerEvent.TIME:
            return Discovery(
                by=f"{prefix}{root.id}", at=TriggerEvent.REQUEST, delay_ns=when.delay_ns
            )
        return replace(when, by=tuple(f"{prefix}{by}" for by in when.parents))

    found = []
    for resource in other.resources:
        host = resource.host or root.host
        named = replace(resource, id=f"{prefix}{resource.id}", host=host)
        found.append(retriggered(named, later))
    found[other.root] = replace(found[other.root], is_root=True, discovered=opened_at)
    return found


def _merged_hosts(page: Page, other: Page) -> tuple[Host, ...]:
    """Return the hosts of both; facts of the first page win."""
    known = {host.name: host for host in page.hosts}
    rtt_of_group = {host.shared: host.rtt_ns for host in page.hosts if host.shared is not None}
    for host in other.hosts:
        # Hosts of one server are equally far away, and each recording has its own estimate.
        rtt_ns = host.rtt_ns if host.shared is None else rtt_of_group.get(host.shared, host.rtt_ns)
        known.setdefault(host.name, replace(host, rtt_ns=rtt_ns))
    return tuple(known.values())


def _moved_to_background(resources: Iterable[Resource], when: Discovery) -> list[Resource]:
    """Return resources whose tab moves to the background at *when*."""
    change = PriorityChange(when=when, hidden=True)
    return [
        replace(resource, priority_changes=(*resource.priority_changes, change))
        for resource in resources
    ]


def _network_of(recorded: RecordedLoad | None) -> RecordedLoad | None:
    """Return the recorded facts that remain true when another page is loaded as well."""
    if recorded is None or recorded.rtt_ns is None:
        return None
    return RecordedLoad(
        rtt_ns=recorded.rtt_ns,
        rtt_from=recorded.rtt_from,
        rate_bps=recorded.rate_bps,
        rate_from=recorded.rate_from,
        protocol=recorded.protocol,
    )
