"""Edits of a page, or of how it is served, that may make it faster: markup and effect on a load."""

from __future__ import annotations

import html
import itertools
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from h3sim.browser.unseen import is_never_seen
from h3sim.config.load_config import config_for
from h3sim.page import FetchPriority, Kind, Page, Resource, ServerPriority, TriggerEvent
from h3sim.page.hosts import UNNAMED, ConnectionMode
from h3sim.page.transforms import with_early_hints, with_inlined, with_preconnect, with_same_host
from h3sim.page.validation import edited_resource
from h3sim.study.run import resolve_scheme
from h3sim.text import plural
from h3sim.transport import Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from h3sim.study.runner import LoadTask


EARLY_HINTS = "early hints"
"""Kind of the edits whose worth depends on the server's think time."""
_MOST_EDITS = 80
_SERVER_ACTIONS = {
    "chrome-eps": "send by the priorities that Chrome asks for",
    "fifo": "send responses one after the other",
    "rr": "send all responses at once, in turns",
}
_SMALL_BYTES = 10_000
_LARGE_BYTES = 20_000
_RECOMPRESSED = 0.7
_TEXT_KINDS = (Kind.STYLESHEET, Kind.SCRIPT)
_AS = {
    Kind.STYLESHEET: "style",
    Kind.SCRIPT: "script",
    Kind.FONT: "font",
    Kind.IMAGE: "image",
    Kind.FETCH: "fetch",
}
_TAGS = {
    Kind.IMAGE: '<img src="{0}" {1}>',
    Kind.SCRIPT: '<script src="{0}" {1}></script>',
    Kind.STYLESHEET: '<link rel="stylesheet" href="{0}" {1}>',
    Kind.FETCH: 'fetch("{0}", {{priority: "{1}"}})',
    Kind.DOCUMENT: '<iframe src="{0}" {1}></iframe>',
}


class Edit(NamedTuple):
    """Edit of a page or of how it is served."""

    text: str
    kind: str
    markup: str
    change: Callable[[LoadTask], LoadTask]
    touches: frozenset[str]
    """Properties that it sets; edits of a pair have none in common."""
    parts: tuple[str, ...] = ()
    """Texts of the edits of a pair."""


def _ids(resources: Iterable[Resource]) -> str:
    names = [resource.id for resource in resources]
    return names[0] if len(names) == 1 else f"{len(names)} files ({names[0]}, ...)"


def _singly(resources: Sequence[Resource], n_most: int) -> list[list[Resource]]:
    """Return the first few resources, each alone, and then all if there are several."""
    groups = [[resource] for resource in resources[:n_most]]
    return groups + [list(resources)] * (len(resources) > 1)


def _touching(properties: str, resources: Iterable[Resource]) -> frozenset[str]:
    return frozenset(f"{name} {each.id}" for name in properties.split() for each in resources)


def _of_page(change: Callable[..., Page], *arguments: Any) -> Callable[[LoadTask], LoadTask]:
    """Return the change of a task whose page becomes *change* of it and the *arguments*."""
    return lambda task: task._replace(page=change(task.page, *arguments))


def _set(resources: Sequence[Resource], **changes: Any) -> Callable[[LoadTask], LoadTask]:
    return _of_page(_with_each, resources, lambda resource: edited_resource(resource, changes))


def _with_each(
    page: Page, resources: Iterable[Resource], change: Callable[[Resource], Resource]
) -> Page:
    ids = {resource.id for resource in resources}
    return page.with_resources(change(r) if r.id in ids else r for r in page.resources)


def _setting(
    some: Sequence[Resource], touched: str, text: str, kind: str, markup: str, **changes: Any
) -> Edit:
    """Return the edit that changes some properties of resources; *touched* are their names."""
    return Edit(text, kind, markup, _set(some, **changes), _touching(touched, some))


def _url(resource: Resource) -> str:
    """Return the address of a resource as markup has it; ids of other hosts begin with the host."""
    is_remote = resource.host and resource.id.startswith(f"{resource.host}/")
    return html.escape(f"https://{resource.id}" if is_remote else resource.id)


def _tag(resources: Sequence[Resource], attribute: str) -> str:
    """Return the markup of the first few resources with an attribute."""
    values = {Kind.FETCH: attribute.partition('"')[2].rstrip('"')}
    tags = ((r, _TAGS.get(r.kind, '<link href="{0}" {1}>')) for r in resources[:3])
    return "\n".join(tag.format(_url(r), values.get(r.kind, attribute)) for r, tag in tags)


def _preload_link(resource: Resource) -> str:
    cross = " crossorigin" if resource.kind in (Kind.FONT, Kind.FETCH) else ""
    kind, name = _AS[resource.kind], _url(resource)
    return f'<link rel="preload" as="{kind}" href="{name}"{cross}>'


class _Subject:
    """The page that is edited, with groups of its resources."""

    def __init__(self, task: LoadTask) -> None:
        self.page, self.scheme, self.config = task.page, task.scheme, task.config
        page = task.page
        self.own = [
            r
            for index, r in enumerate(page.resources)
            if page.root_of[index] == page.root != index and not r.begins_page
        ]
        self.root = page.resources[page.root]
        pictures = [r for r in self.own if r.kind is Kind.IMAGE]
        self.visible = sorted((r for r in pictures if _is_seen(r)), key=_prominence)
        self.hidden = sorted((r for r in pictures if not _is_seen(r)), key=_size)
        scripts = [r for r in self.own if r.kind is Kind.SCRIPT]
        self.late = sorted((r for r in scripts if r.is_async or r.is_defer), key=_size)
        self.blocking = sorted(
            (r for r in scripts if self._is_named(r) and _may_be_deferred(r)), key=_size
        )
        self.blocking_render = sorted((r for r in self.own if self._blocks_render(r)), key=_size)
        self.unnamed = sorted(
            (r for r in self.own if self._is_found_late(r) and self._may_be_preloaded(r)),
            key=lambda r: (not (r.above_the_fold or r.critical or r.hero), _size(r)),
        )
        self.per_host = config_for(page, task.config).connections == ConnectionMode.PER_HOST.value

    def _is_named(self, resource: Resource) -> bool:
        found = resource.discovered
        return found is not None and (found.by, found.at) == (self.root.id, TriggerEvent.OFFSET)

    def _blocks_render(self, resource: Resource) -> bool:
        """Return whether the document names it in its head, and nothing is painted without it."""
        is_sheet = resource.kind is Kind.STYLESHEET and not resource.other_media
        is_script = resource.kind is Kind.SCRIPT and _may_be_deferred(resource)
        return self._is_named(resource) and resource.in_head and (is_sheet or is_script)

    def _is_found_late(self, resource: Resource) -> bool:
        return not self._is_named(resource) and not is_never_seen(resource)

    def _may_be_preloaded(self, resource: Resource) -> bool:
        """Return whether the browser model keeps what the resource blocks when it is moved.

        A moved stylesheet blocks only if the page marks it as render-blocking, and what a moved
        script or response leads to would not wait for its parent any more.
        """
        is_leaf = not self.page.children.get(self.page.index[resource.id])
        keeps_blocking = resource.kind is not Kind.STYLESHEET or resource.render_blocking
        return resource.kind in _AS and not resource.preload and is_leaf and keeps_blocking

    def is_before_head_ends(self, resource: Resource) -> bool:
        """Return whether a larger file behind *resource* marks where the head ends."""
        return any(
            other.in_head and self._is_named(other) and other.size_bytes > _SMALL_BYTES
            for other in self.page.resources[self.page.index[resource.id] + 1 :]
            if _offset(other) > _offset(resource)
        )

    @property
    def other_hosts(self) -> dict[str, list[Resource]]:
        """Resources by host, for hosts with connections of their own."""
        if not self.per_host:
            return {}
        shared = {host.name: host.shared for host in self.page.hosts}
        own = self.root.host or UNNAMED
        found: dict[str, list[Resource]] = {}
        for resource in self.own:
            host = resource.host
            is_same = shared.get(host) is not None and shared.get(host) == shared.get(own)
            if host and host != own and not is_same and not is_never_seen(resource):
                found.setdefault(host, []).append(resource)
        return dict(sorted(found.items(), key=lambda item: sum(map(_size, item[1]))))


def _offset(resource: Resource) -> int:
    found = resource.discovered
    return 0 if found is None else found.offset_bytes or 0


def _size(resource: Resource) -> int:
    return -resource.size_bytes


def _prominence(resource: Resource) -> tuple[bool, float, int]:
    return not resource.hero, -(resource.viewport or 0.0), -resource.size_bytes


def _is_seen(resource: Resource) -> bool:
    return resource.above_the_fold or resource.hero or bool(resource.viewport)


def _may_be_deferred(resource: Resource) -> bool:
    return not (resource.is_async or resource.is_defer or resource.module or resource.preload)


def _fetchpriority_edits(of: _Subject) -> Iterator[Edit]:
    raised = [r for r in of.visible[:5] if r.fetchpriority is not FetchPriority.HIGH]
    raised += [r for r in of.late[:3] if r.fetchpriority is not FetchPriority.HIGH]
    raised += [r for r in of.own if r.kind is Kind.FETCH and r.above_the_fold][:2]
    groups = [("high", [r]) for r in raised]
    lowered = [r for r in (*of.hidden, *of.late) if r.fetchpriority is FetchPriority.AUTO]
    groups += [("low", [r]) for r in lowered[:3]]
    groups += [("low", [r]) for r in of.visible[1:4] if r.fetchpriority is FetchPriority.AUTO]
    images = [r for r in of.hidden if r.fetchpriority is FetchPriority.AUTO and not r.is_lazy]
    if len(images) > 1:
        groups.append(("low", images))
    groups += [("auto", [r]) for r in of.own if r.fetchpriority is FetchPriority.HIGH][:3]
    for value, some in groups:
        what = f'fetchpriority="{value}"'
        text, markup = f"add {what} to {_ids(some)}", _tag(some, what)
        if value == "auto":
            text, markup = f"remove fetchpriority from {_ids(some)}", ""
        kind = "fetchpriority"
        yield _setting(some, kind, text, kind, markup, fetchpriority=value)


def _preload_edits(of: _Subject) -> Iterator[Edit]:
    late_fonts = [r for r in of.unnamed if r.kind is Kind.FONT]
    groups = [[r] for r in of.unnamed[:8]] + [[r] for r in of.visible[:1] if not r.preload]
    if len(late_fonts) > 1:
        groups.append(late_fonts)
    at_start = {"by": of.root.id, "at": TriggerEvent.OFFSET.value, "offset_bytes": 0}
    changes: dict[str, Any] = {"preload": True, "lazy": None, "discovered": at_start}
    first_of: dict[str, list[Resource]] = {}
    for some in groups:
        first_of.setdefault(_ids(some), some)
    for name, some in first_of.items():
        markup = "\n".join(map(_preload_link, some))
        yield _setting(some, "discovery", f"preload {name}", "preload", markup, **changes)
    preloaded = [r for r in of.own if r.preload and r.kind in _AS]
    for resource in preloaded[1:]:
        yield Edit(
            f"preload {resource.id} before the other preloads",
            "preload order",
            _preload_link(resource),
            _of_page(_preloaded_first, resource.id),
            _touching("discovery", [resource]),
        )


def _preloaded_first(page: Page, id_: str) -> Page:
    changed = page.with_(id_, preload=True)
    resources = list(changed.resources)
    moved = resources.pop(changed.index[id_])
    resources.insert(changed.root + 1, moved)
    return changed.with_resources(resources)


def _early_hints_edits(of: _Subject) -> Iterator[Edit]:
    """Yield Early Hints for what blocks, by kind and together, for the main image, and fonts."""
    fonts = [r for r in of.unnamed if r.kind is Kind.FONT and r.above_the_fold]
    sheets = [r for r in of.blocking_render if r.kind is Kind.STYLESHEET]
    scripts = [r for r in of.blocking_render if r.kind is Kind.SCRIPT]
    groups = [sheets, scripts, of.blocking_render, [*of.blocking_render, *of.visible[:1]]]
    groups += [[r] for r in (*of.blocking_render[:2], *of.visible[:1], *fonts[:2])]
    for ids, some in {tuple(r.id for r in some): some for some in groups if some}.items():
        lines = (f"Link: <{_url(r)}>; rel=preload; as={_AS[r.kind]}" for r in some)
        yield Edit(
            f"send Early Hints (103) for {_ids(some)}",
            EARLY_HINTS,
            "\n".join(["HTTP/1.1 103 Early Hints", *lines]),
            _of_page(with_early_hints, ids),
            _touching("discovery", some),
        )


def _delivery_edits(of: _Subject) -> Iterator[Edit]:
    small = [
        r
        for r in of.own
        if r.kind in _TEXT_KINDS and of._is_named(r) and r.in_head and r.size_bytes <= _SMALL_BYTES
        if not (r.is_async or r.is_defer) and of.is_before_head_ends(r)
    ]
    for some in _singly(small, 4):
        ids = [r.id for r in some]
        yield Edit(
            f"inline {_ids(some)}",
            "inline",
            "<style>...</style>, <script>...</script> in place of the references",
            _of_page(with_inlined, ids),
            _touching("discovery fetchpriority priority host bytes", some),
        )
    for resource in (r for r in of.visible[:3] if r.size_bytes >= _LARGE_BYTES):
        text = f"recompress {resource.id} to {100 * _RECOMPRESSED:.0f} % of its bytes"
        markup = f"{resource.id} as AVIF or WebP, or of lower quality"
        n_bytes = round(resource.size_bytes * _RECOMPRESSED)
        yield _setting([resource], "bytes", text, "compression", markup, bytes=n_bytes)


def _script_edits(of: _Subject) -> Iterator[Edit]:
    for some, how in itertools.product(_singly(of.blocking, 5), ("defer", "async")):
        changes = {how: True, "render_blocking": None}
        text = f"add {how} to {_ids(some)}"
        yield _setting(some, "running", text, how, _tag(some, how), **changes)


def _lazy_edits(of: _Subject) -> Iterator[Edit]:
    eager = [r for r in of.hidden if not r.is_lazy]
    for some in _singly(eager, 2):
        text, markup = f'add loading="lazy" to {_ids(some)}', _tag(some, 'loading="lazy"')
        yield _setting(some, "discovery", text, "lazy", markup, lazy=True)
    for resource in (r for r in of.visible if r.is_lazy):
        text, markup = f'remove loading="lazy" from {resource.id}', f'<img src="{_url(resource)}">'
        yield _setting([resource], "discovery", text, "not lazy", markup, lazy=None)


def _host_edits(of: _Subject) -> Iterator[Edit]:
    for host, some in itertools.islice(of.other_hosts.items(), 4):
        ids = [r.id for r in some]
        yield Edit(
            f"preconnect to {host}",
            "preconnect",
            f'<link rel="preconnect" href="https://{html.escape(host)}" crossorigin>',
            _of_page(with_preconnect, host),
            frozenset({f"connection {host}"}),
        )
        yield Edit(
            f"serve {plural(len(some), 'file')} of {host} from the page's own host",
            "same host",
            "",
            _of_page(with_same_host, ids),
            _touching("host", some) | {f"connection {host}"},
        )


def _server_edits(of: _Subject) -> Iterator[Edit]:
    yield from (_priority_edit([resource], 1) for resource in of.visible[:2])
    if len(of.hidden) > 1:
        yield _priority_edit(of.hidden, 6)
    protocol = config_for(of.page, of.config).path.protocol
    others = {Protocol.QUIC: Protocol.TCP, Protocol.TCP: Protocol.QUIC}
    if protocol in others:
        instead = others[protocol]
        name = "HTTP/3" if instead is Protocol.QUIC else "HTTP/2"
        yield Edit(
            f"serve the page over {name}",
            "protocol",
            "",
            lambda task: task._replace(config=replace(task.config, transport=instead.value)),
            frozenset({"protocol"}),
        )
    for scheme, action in _SERVER_ACTIONS.items():
        if scheme != of.scheme.name:
            yield Edit(
                f"have the server {action} ({scheme})",
                "server scheme",
                "",
                lambda task, scheme=scheme: task._replace(scheme=resolve_scheme(scheme)),  # type: ignore[misc]
                frozenset({"server"}),
            )


def _priority_edit(some: Sequence[Resource], urgency: int) -> Edit:
    found, value = (ServerPriority(urgency=urgency),), f"u={urgency}"
    return Edit(
        f"send the response header priority: {value} with {_ids(some)}",
        "server priority",
        f"priority: {value}",
        _of_page(_with_each, some, lambda resource: replace(resource, server_priorities=found)),
        _touching("priority", some),
    )


_SOURCES = (
    *(_fetchpriority_edits, _preload_edits, _script_edits, _lazy_edits, _early_hints_edits),
    *(_delivery_edits, _host_edits, _server_edits),
)


def edits_of(task: LoadTask) -> list[Edit]:
    """Return the edits that make sense for the page of *task*, at most 80.

    >>> import h3sim
    >>> from h3sim.study.runner import LoadTask
    >>> page, scheme = h3sim.load_page("davies-meenan"), h3sim.load_scheme("chrome-eps")
    >>> edits = edits_of(LoadTask(page, scheme, h3sim.LoadConfig(network="cable")))
    >>> sorted({edit.kind for edit in edits})[:2]
    ['async', 'compression']
    """
    subject = _Subject(task)
    return list(itertools.chain(*(source(subject) for source in _SOURCES)))[:_MOST_EDITS]


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
