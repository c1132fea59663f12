"""Edits of a page, or of how it is served, that may make it faster: markup and effect on a load."""

from __future__ import annotations

import html
import itertools
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from h3sim.browser.above_the_fold import guessed_images
from h3sim.browser.capabilities import Hint, fetchpriority_hint, preload_hint
from h3sim.browser.requests import is_lazy
from h3sim.browser.unseen import is_never_seen
from h3sim.load.run import resolve_scheme
from h3sim.page import FetchPriority, Kind, Page, Resource, ServerPriority, TriggerEvent
from h3sim.page.hosts import UNNAMED
from h3sim.page.resource import offsets_in
from h3sim.page.transforms import with_early_hints, with_inlined, with_preconnect, with_same_host
from h3sim.page.validation import edited_resource
from h3sim.schemes.halves import BEFORE
from h3sim.values.text import plural

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from h3sim.schemes import Scheme
    from h3sim.study.runner import LoadTask


EARLY_HINTS = "early hints"
"""Kind of the edits whose worth depends on the server's think time."""
_MAX_EDITS = 80
"""Edits of a page that are tried, at most: each costs loads."""
_SERVER_ACTIONS = {
    "chrome-eps": "send by the priorities that the browser asks for",
    "fifo": "send responses one after the other",
    "rr": "send all responses at once, in turns",
}
"""Actions of the server with each of the schemes that are tried."""
_MAX_INLINED_BYTES = 10_000
"""Largest size of a file that is inlined."""
_MIN_RECOMPRESSED_BYTES = 20_000
"""Smallest size of an image that is recompressed."""
_RECOMPRESSED_SHARE = 0.7
"""Share of its bytes that a recompressed image keeps."""
_INLINED_KINDS = (Kind.STYLESHEET, Kind.SCRIPT)
_PRELOAD_TYPES = {
    Kind.STYLESHEET: "style",
    Kind.SCRIPT: "script",
    Kind.FONT: "font",
    Kind.IMAGE: "image",
    Kind.FETCH: "fetch",
}
"""Value of the attribute `as` of a preload link; resources of other kinds are not preloaded."""
_ATTRIBUTES = ("fetchpriority", "lazy", "defer", "async")
"""Properties of a page file that are attributes of a tag."""
_TAG_TEMPLATES = {
    Kind.IMAGE: '<img src="{0}" {1}>',
    Kind.SCRIPT: '<script src="{0}" {1}></script>',
    Kind.STYLESHEET: '<link rel="stylesheet" href="{0}" {1}>',
    Kind.FETCH: 'fetch("{0}", {{priority: "{1}"}})',
    Kind.DOCUMENT: '<iframe src="{0}" {1}></iframe>',
}
"""Markup of a resource by its kind, with its address and an attribute."""


class Edit(NamedTuple):
    """Edit of a page or of how it is served."""

    text: str
    """The edit as an instruction, such as "preload a.css"."""
    kind: str
    markup: str
    """Markup or header to write; empty if there is none."""
    change: Callable[[LoadTask], LoadTask]
    """Function that applies the edit to a load."""
    touches: frozenset[str]
    """Properties that it sets, each with its resource; edits of a pair have none in common."""
    parts: tuple[str, ...] = ()
    """Texts of the edits of a pair."""
    attribute: tuple[str, str | None] | tuple[()] = ()
    """Attribute of the tags that it sets, with its value; None removes it."""


def _name_files(resources: Iterable[Resource]) -> str:
    """Name one file by its id, and several by their number and the first id."""
    first, *others = [resource.id for resource in resources]
    return f"{1 + len(others)} files ({first}, ...)" if others else first


def _each_and_all(resources: Sequence[Resource], n_alone: int) -> list[list[Resource]]:
    """Return the first *n_alone* resources, each alone, and then all if there are several."""
    groups = [[resource] for resource in resources[:n_alone]]
    if len(resources) > 1:
        groups.append(list(resources))
    return groups


def _touched(properties: str, resources: Iterable[Resource]) -> frozenset[str]:
    """Return each property, of names separated by spaces, of each resource."""
    return frozenset(f"{name} {each.id}" for name in properties.split() for each in resources)


def _page_change(change: Callable[..., Page], *arguments: Any) -> Callable[[LoadTask], LoadTask]:
    """Return the function that applies *change*, with the *arguments*, to the page of a load."""
    return lambda task: task._replace(
        spec=replace(task.spec, page=change(task.spec.page, *arguments))
    )


def _with_changed(
    page: Page, resources: Iterable[Resource], change: Callable[[Resource], Resource]
) -> Page:
    """Return *page* with *change* applied to each of the *resources*."""
    ids = {resource.id for resource in resources}
    return page.with_resources(change(r) if r.id in ids else r for r in page.resources)


def _property_edit(
    resources: Sequence[Resource], touches: str, text: str, kind: str, markup: str, **changes: Any
) -> Edit:
    """Return the edit that makes *changes* to properties of each resource."""
    change = _page_change(
        _with_changed, resources, lambda resource: edited_resource(resource, changes)
    )
    attribute = next((_attribute(*each) for each in changes.items() if each[0] in _ATTRIBUTES), ())
    return Edit(text, kind, markup, change, _touched(touches, resources), attribute=attribute)


def _attribute(key: str, value: Any) -> tuple[str, str | None]:
    """Return the attribute of HTML with a property of a resource, and its value.

    >>> _attribute("lazy", True), _attribute("lazy", None), _attribute("fetchpriority", "auto")
    (('loading', 'lazy'), ('loading', None), ('fetchpriority', None))
    """
    if key == "fetchpriority":
        return key, None if value == "auto" else value
    if key == "lazy":
        return "loading", "lazy" if value else None
    return key, ""


def _url(resource: Resource) -> str:
    """Return the address of a resource as markup has it; ids of other hosts begin with the host."""
    is_remote = resource.host and resource.id.startswith(f"{resource.host}/")
    return html.escape(f"https://{resource.id}" if is_remote else resource.id)


def _tags(resources: Sequence[Resource], attribute: str) -> str:
    """Return the markup of the first few resources with an attribute."""
    _, _, quoted_value = attribute.partition('"')
    lines = []
    for resource in resources[:3]:
        template = _TAG_TEMPLATES.get(resource.kind, '<link href="{0}" {1}>')
        is_fetch = resource.kind is Kind.FETCH  # a call, which takes the value alone
        filled = quoted_value.rstrip('"') if is_fetch else attribute
        lines.append(template.format(_url(resource), filled))
    return "\n".join(lines)


def preload_link(resource: Resource) -> str:
    """Return the link that preloads a resource."""
    crossorigin = " crossorigin" if _needs_cors(resource) else ""
    preload_type, url = _PRELOAD_TYPES[resource.kind], _url(resource)
    if resource.is_module:
        return f'<link rel="modulepreload" href="{url}"{crossorigin}>'
    return f'<link rel="preload" as="{preload_type}" href="{url}"{crossorigin}>'


def _preload_header(resource: Resource) -> str:
    crossorigin = "; crossorigin" if _needs_cors(resource) else ""
    preload_type, url = _PRELOAD_TYPES[resource.kind], _url(resource)
    if resource.is_module:
        return f"Link: <{url}>; rel=modulepreload{crossorigin}"
    return f"Link: <{url}>; rel=preload; as={preload_type}{crossorigin}"


def _needs_cors(resource: Resource) -> bool:
    """Return whether the browser requests it with CORS, over a connection without credentials.

    Fonts always are, and so are module scripts and what scripts fetch (CSS Fonts 4 § 4.8.2; HTML
    standard § 8.1.4.2; Fetch standard § 2.6). The default for other elements is without CORS.
    """
    return resource.kind in (Kind.FONT, Kind.FETCH) or resource.is_module


def preconnect_links(host: str, group: Iterable[Resource]) -> str:
    """Return a link for each kind of connection that the requests to a host use.

    Those with CORS use another connection than the others, and a link opens only one of the two.
    """
    uses = dict.fromkeys(" crossorigin" if _needs_cors(r) else "" for r in group)
    return "\n".join(
        f'<link rel="preconnect" href="https://{html.escape(host)}"{use}>' for use in sorted(uses)
    )


class _Subject:
    """The page that is edited, with its resources by the edits that they are candidates for.

    Each list is in the order in which its resources are tried: what may gain most comes first.
    """

    def __init__(self, task: LoadTask) -> None:
        self.spec, page = task.spec, task.spec.page
        self.page = page
        self.subresources = [
            r
            for index, r in enumerate(page.resources)
            if page.root_of[index] == page.root != index and not r.begins_page
        ]
        self.root = page.resources[page.root]
        # Nothing is advised about an image of which it was guessed whether it is visible.
        guessed = {page.resources[index].id for index in guessed_images(page)}
        images = [r for r in self.subresources if r.kind is Kind.IMAGE and r.id not in guessed]
        self.seen_images = sorted((r for r in images if _is_seen(r)), key=_most_prominent_first)
        self.unseen_images = sorted((r for r in images if not _is_seen(r)), key=_largest_first)
        scripts = [r for r in self.subresources if r.kind is Kind.SCRIPT]
        self.nonblocking_scripts = sorted(
            (r for r in scripts if r.is_async or r.is_deferred), key=_largest_first
        )
        self.blocking_scripts = sorted(
            (r for r in scripts if self.is_in_document(r) and _may_be_deferred(r)),
            key=_largest_first,
        )
        self.render_blocking = sorted(
            (r for r in self.subresources if self._blocks_render(r)), key=_largest_first
        )
        self.preloadable = sorted(
            (
                r
                for r in self.subresources
                if self._is_discovered_late(r) and self._may_be_preloaded(r) and r.id not in guessed
            ),
            key=lambda r: (not (r.above_the_fold or r.critical or r.hero), _largest_first(r)),
        )
        self.has_connections_per_host = task.spec.hosts is not None

    def is_in_document(self, resource: Resource) -> bool:
        """Return whether the document itself refers to the resource."""
        return next(offsets_in(resource, self.root.id), None) is not None

    def has_element(self, image: Resource) -> bool:
        """Return whether an element may have attributes for it: it is not of CSS alone."""
        parents = (
            [self.page.index[id_] for id_ in image.discovered.waits_for] if image.discovered else []
        )
        of_sheet = any(self.page.resources[each].kind is Kind.STYLESHEET for each in parents)
        return not (image.in_style or of_sheet)

    def _blocks_render(self, resource: Resource) -> bool:
        """Return whether the document names it in its head, and nothing is painted without it."""
        is_sheet = resource.kind is Kind.STYLESHEET and not resource.other_media
        is_script = resource.kind is Kind.SCRIPT and _may_be_deferred(resource)
        return self.is_in_document(resource) and resource.in_head and (is_sheet or is_script)

    def _is_discovered_late(self, resource: Resource) -> bool:
        return not self.is_in_document(resource) and not is_never_seen(resource)

    def _may_be_preloaded(self, resource: Resource) -> bool:
        """Return whether the browser model keeps what the resource blocks when it is moved.

        A moved stylesheet blocks only if the page marks it as render-blocking, and what a moved
        script or response leads to would not wait for its parent any more.
        """
        is_leaf = not self.page.children.get(self.page.index[resource.id])
        keeps_blocking = resource.kind is not Kind.STYLESHEET or resource.render_blocking
        return (
            resource.kind in _PRELOAD_TYPES and not resource.preload and is_leaf and keeps_blocking
        )

    def precedes_large_file_in_head(self, resource: Resource) -> bool:
        """Return whether a file too large to be inlined comes after *resource* in the head.

        Only then does the page still have a file in its head once *resource* is inlined, and so
        a place where the head ends.
        """
        return any(
            other.in_head and self.is_in_document(other) and other.size_bytes > _MAX_INLINED_BYTES
            for other in self.page.resources[self.page.index[resource.id] + 1 :]
            if _offset(other) > _offset(resource)
        )

    @property
    def other_hosts(self) -> dict[str, list[Resource]]:
        """Resources by host, for hosts with connections of their own; most bytes first."""
        if not self.has_connections_per_host:
            return {}
        shared = {host.name: host.shared for host in self.page.hosts}
        own_host = self.root.host or UNNAMED
        by_host: dict[str, list[Resource]] = {}
        for resource in self.subresources:
            host = resource.host
            shares = shared.get(host) is not None and shared.get(host) == shared.get(own_host)
            if host and host != own_host and not shares and not is_never_seen(resource):
                by_host.setdefault(host, []).append(resource)

        def n_bytes(host: str) -> int:
            return sum(resource.size_bytes for resource in by_host[host])

        return {host: by_host[host] for host in sorted(by_host, key=n_bytes, reverse=True)}


def _offset(resource: Resource) -> int:
    """Return where the document refers to a resource."""
    found = resource.discovered
    offsets = () if found is None else (when.offset_bytes for when in found.alternatives)
    return next((offset for offset in offsets if offset), 0)


def _largest_first(resource: Resource) -> int:
    """Sort key of resources."""
    return -resource.size_bytes


def _most_prominent_first(resource: Resource) -> tuple[bool, float, int]:
    """Sort key of images."""
    return not resource.hero, -(resource.viewport or 0.0), -resource.size_bytes


def _is_seen(resource: Resource) -> bool:
    return resource.above_the_fold or resource.hero or bool(resource.viewport)


def _may_be_deferred(resource: Resource) -> bool:
    return not (resource.is_async or resource.is_defer or resource.module or resource.preload)


def _fetchpriority_edits(subject: _Subject) -> Iterator[Edit]:
    seen, unseen = (
        [r for r in images if subject.has_element(r)]
        for images in (subject.seen_images, subject.unseen_images)
    )
    raised = [r for r in seen[:5] if r.fetchpriority is not FetchPriority.HIGH]
    raised += [
        r for r in subject.nonblocking_scripts[:3] if r.fetchpriority is not FetchPriority.HIGH
    ]
    raised += [r for r in subject.subresources if r.kind is Kind.FETCH and r.above_the_fold][:2]
    groups = [("high", [r]) for r in raised]
    lowered = [
        r for r in (*unseen, *subject.nonblocking_scripts) if r.fetchpriority is FetchPriority.AUTO
    ]
    groups += [("low", [r]) for r in lowered[:3]]
    groups += [("low", [r]) for r in seen[1:4] if r.fetchpriority is FetchPriority.AUTO]
    eager_images = [r for r in unseen if r.fetchpriority is FetchPriority.AUTO and not is_lazy(r)]
    if len(eager_images) > 1:
        groups.append(("low", eager_images))
    groups += [
        ("auto", [r]) for r in subject.subresources if r.fetchpriority is FetchPriority.HIGH
    ][:3]
    for value, group in groups:
        attribute = f'fetchpriority="{value}"'
        text, markup = f"add {attribute} to {_name_files(group)}", _tags(group, attribute)
        if value == "auto":
            text, markup = f"remove fetchpriority from {_name_files(group)}", ""
        kind = "fetchpriority"
        yield _property_edit(group, kind, text, kind, markup, fetchpriority=value)


def _preload_edits(subject: _Subject) -> Iterator[Edit]:
    late_fonts = [r for r in subject.preloadable if r.kind is Kind.FONT]
    groups = [[r] for r in subject.preloadable[:8]] + [
        [r] for r in subject.seen_images[:1] if not r.preload
    ]
    if len(late_fonts) > 1:
        groups.append(late_fonts)
    at_start = {"by": subject.root.id, "at": TriggerEvent.OFFSET.value, "offset_bytes": 0}
    changes: dict[str, Any] = {"preload": True, "discovered": at_start}
    first_by_name: dict[str, list[Resource]] = {}
    for group in groups:
        first_by_name.setdefault(_name_files(group), group)
    for name, group in first_by_name.items():
        markup = "\n".join(map(preload_link, group))
        yield _property_edit(group, "discovery", f"preload {name}", "preload", markup, **changes)
    preloaded = [r for r in subject.subresources if r.preload and r.kind in _PRELOAD_TYPES]
    for resource in preloaded[1:]:
        yield Edit(
            f"preload {resource.id} before the other preloads",
            "preload order",
            preload_link(resource),
            _page_change(_with_preload_first, resource.id),
            _touched("discovery", [resource]),
        )


def _with_preload_first(page: Page, id_: str) -> Page:
    changed = page.with_(id_, preload=True)
    resources = list(changed.resources)
    moved = resources.pop(changed.index[id_])
    resources.insert(changed.root + 1, moved)
    return changed.with_resources(resources)


def _early_hints_edits(subject: _Subject) -> Iterator[Edit]:
    """Yield Early Hints for what blocks the first paint, for the main image, and for fonts."""
    fonts = [r for r in subject.preloadable if r.kind is Kind.FONT and r.above_the_fold]
    sheets = [r for r in subject.render_blocking if r.kind is Kind.STYLESHEET]
    scripts = [r for r in subject.render_blocking if r.kind is Kind.SCRIPT]
    groups = [
        sheets,
        scripts,
        subject.render_blocking,
        [*subject.render_blocking, *subject.seen_images[:1]],
    ]
    groups += [[r] for r in (*subject.render_blocking[:2], *subject.seen_images[:1], *fonts[:2])]
    group_by_ids = {tuple(r.id for r in group): group for group in groups if group}
    for ids, group in group_by_ids.items():
        lines = map(_preload_header, group)
        yield Edit(
            f"send Early Hints (103) for {_name_files(group)}",
            EARLY_HINTS,
            "\n".join(["HTTP/1.1 103 Early Hints", *lines]),
            _page_change(with_early_hints, ids),
            _touched("discovery", group),
        )


def _delivery_edits(subject: _Subject) -> Iterator[Edit]:
    small = [
        r
        for r in subject.subresources
        if r.kind in _INLINED_KINDS
        and subject.is_in_document(r)
        and r.in_head
        and r.size_bytes <= _MAX_INLINED_BYTES
        and not (r.is_async or r.is_deferred)
        and subject.precedes_large_file_in_head(r)
    ]
    for group in _each_and_all(small, 4):
        ids = [r.id for r in group]
        yield Edit(
            f"inline {_name_files(group)}",
            "inline",
            "<style>...</style>, <script>...</script> in place of the references",
            _page_change(with_inlined, ids),
            _touched("discovery fetchpriority priority host bytes", group),
        )
    for resource in (r for r in subject.seen_images[:3] if r.size_bytes >= _MIN_RECOMPRESSED_BYTES):
        text = f"recompress {resource.id} to {100 * _RECOMPRESSED_SHARE:.0f} % of its bytes"
        markup = f"{resource.id} as AVIF or WebP, or of lower quality"
        n_bytes = round(resource.size_bytes * _RECOMPRESSED_SHARE)
        yield _property_edit([resource], "bytes", text, "compression", markup, bytes=n_bytes)


def _script_edits(subject: _Subject) -> Iterator[Edit]:
    groups = _each_and_all(subject.blocking_scripts, 5)
    for group, attribute in itertools.product(groups, ("defer", "async")):
        changes = {attribute: True, "render_blocking": None}
        text, markup = f"add {attribute} to {_name_files(group)}", _tags(group, attribute)
        yield _property_edit(group, "running", text, attribute, markup, **changes)


def _lazy_edits(subject: _Subject) -> Iterator[Edit]:
    # Neither adding nor removing it changes the request for what a link requests.
    eager = [
        r for r in subject.unseen_images if subject.has_element(r) and not (r.is_lazy or r.preload)
    ]
    for group in _each_and_all(eager, 2):
        text, markup = f'add loading="lazy" to {_name_files(group)}', _tags(group, 'loading="lazy"')
        yield _property_edit(group, "discovery", text, "lazy", markup, lazy=True)
    for resource in filter(is_lazy, subject.seen_images):
        text, markup = f'remove loading="lazy" from {resource.id}', f'<img src="{_url(resource)}">'
        yield _property_edit([resource], "discovery", text, "not lazy", markup, lazy=None)


def _host_edits(subject: _Subject) -> Iterator[Edit]:
    for host, group in itertools.islice(subject.other_hosts.items(), 4):
        ids = [r.id for r in group]
        yield Edit(
            f"preconnect to {host}",
            "preconnect",
            preconnect_links(host, group),
            _page_change(with_preconnect, host),
            frozenset({f"connection {host}"}),
        )
        yield Edit(
            f"serve {plural(len(group), 'file')} of {host} from the page's own host",
            "same host",
            "",
            _page_change(with_same_host, ids),
            _touched("host", group) | {f"connection {host}"},
        )


def _server_edits(subject: _Subject) -> Iterator[Edit]:
    yield from (_priority_edit([resource], 1) for resource in subject.seen_images[:2])
    if len(subject.unseen_images) > 1:
        yield _priority_edit(subject.unseen_images, 6)
    for scheme, action in _SERVER_ACTIONS.items():
        if scheme != subject.spec.scheme.name:
            yield Edit(
                f"have the server {action} ({scheme})",
                "server scheme",
                "",
                _scheme_change(scheme),
                frozenset({"server"}),
            )


def _scheme_change(name: str) -> Callable[[LoadTask], LoadTask]:
    """Return the change of a task to the server of another scheme; the browser stays."""

    def change(task: LoadTask) -> LoadTask:
        now = task.spec.scheme
        client, before, _ = now.name.partition(BEFORE)
        follows = before and name == "chrome-eps"
        scheme = resolve_scheme(f"{client}{BEFORE}rfc9218" if follows else name)
        scheme = replace(scheme, tight_mode=now.tight_mode, ignores=now.ignores)
        return task._replace(spec=task.spec.with_scheme(scheme))

    return change


def _priority_edit(group: Sequence[Resource], urgency: int) -> Edit:
    """Return the edit that gives the responses an *urgency*, from 0 (first) to 7."""
    priorities, value = (ServerPriority(urgency=urgency),), f"u={urgency}"
    return Edit(
        f"send the response header priority: {value} with {_name_files(group)}",
        "server priority",
        f"priority: {value}",
        _page_change(
            _with_changed, group, lambda resource: replace(resource, server_priorities=priorities)
        ),
        _touched("priority", group),
    )


_EDIT_SOURCES = (
    _fetchpriority_edits,
    _preload_edits,
    _script_edits,
    _lazy_edits,
    _early_hints_edits,
    _delivery_edits,
    _host_edits,
    _server_edits,
)
"""Functions that yield the edits of a page, in the order in which they are tried."""


def edits_of(task: LoadTask, schemes: Sequence[Scheme] = ()) -> list[Edit]:
    """Return the edits that make sense for the page of *task*, at most 80.

    None is tried that the client of its scheme ignores (`Scheme.ignores`), or all of *schemes*.

    >>> import h3sim
    >>> from h3sim.study.runner import LoadTask
    >>> page, scheme = h3sim.load_page("davies-meenan"), h3sim.load_scheme("chrome-eps")
    >>> spec = h3sim.load.resolve(page, scheme, h3sim.LoadConfig(network="cable"))
    >>> edits = edits_of(LoadTask(spec))
    >>> sorted({edit.kind for edit in edits})[:2]
    ['async', 'compression']
    """
    subject = _Subject(task)
    ignored = frozenset.intersection(
        *(frozenset(each.ignores) for each in schemes or [task.spec.scheme])
    )
    edits = itertools.chain(*(source(subject) for source in _EDIT_SOURCES))
    heeded = (edit for edit in edits if ignored.isdisjoint(hints_in(edit, subject.page)))
    return list(itertools.islice(heeded, _MAX_EDITS))


def hints_in(edit: Edit, page: Page) -> Iterator[Hint]:
    """Yield the hints to the browser that an edit of *page* consists of."""
    for touched in edit.touches:
        id_ = touched.partition(" ")[-1]
        resource = page.resources[page.index[id_]] if id_ in page.index else None
        if edit.kind == EARLY_HINTS:
            yield Hint.HINTED_PRELOAD
        elif edit.kind == "preconnect":
            yield Hint.PRECONNECT
        elif resource is None:
            continue
        elif edit.kind.startswith("preload"):
            yield preload_hint(resource)
        elif edit.kind == "fetchpriority":
            yield fetchpriority_hint(resource) or Hint.FETCHPRIORITY_LINK
        elif edit.kind.endswith("lazy"):
            yield Hint.LAZY_FRAME if resource.kind is Kind.DOCUMENT else Hint.LAZY_IMAGE


def pair(one: Edit, other: Edit) -> Edit | None:
    """Return both edits as one; None if they set the same property."""
    if one.touches & other.touches:
        return None
    return Edit(
        f"{one.text} and {other.text}",
        "pair",
        "\n".join(filter(None, (one.markup, other.markup))),
        lambda task: other.change(one.change(task)),
        one.touches | other.touches,
        (one.text, other.text),
    )
