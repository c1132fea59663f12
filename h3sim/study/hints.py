"""Hints: edits of a page that make it faster, tried one by one and in pairs.

Each edit is loaded once; those that move a metric are loaded again with other seeds, next to the
page as it is, and so are pairs of the best. Every seed is one user: a network of the given ones,
its RTT and rate drawn. Intervals are of the mean logarithm of the ratio after / before (Student),
at 1 - level / n for n edits (Bonferroni), p-values are corrected after Holm (1979). The first load
of each edit only selects, and is not part of the evidence.
"""

from __future__ import annotations

import html
import itertools
import math
import statistics
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from h3sim._version import __version__
from h3sim.browser import BrowserMode
from h3sim.browser.unseen import is_never_seen
from h3sim.config.load_config import LoadConfig, config_for, over_networks
from h3sim.config.options import LEVEL
from h3sim.errors import InputError, NothingToMeasureError, needing_extra
from h3sim.importers.crux import NetworkShare
from h3sim.page import Kind, Page, TriggerEvent
from h3sim.page.hosts import UNNAMED, ConnectionMode
from h3sim.page.resource import FetchPriority, ServerPriority
from h3sim.page.transforms import (
    with_early_hints,
    with_inlined,
    with_preconnect,
    with_same_host,
)
from h3sim.page.validation import edited_resource
from h3sim.schema.arguments import ErrorCollector, check_arguments
from h3sim.schema.output import TEXT, OutputSchema, Property, rows_of
from h3sim.schema.values import Choice, Integer, ListOf, Number, OrNone, ValueType
from h3sim.study.fidelity import FIDELITY, Fidelity, fidelities, gated
from h3sim.study.racing import FIRST_RESULT
from h3sim.study.recommendation import subject_of
from h3sim.study.rows import COMMON, ResultTable
from h3sim.study.run import resolve_scheme, run_config
from h3sim.study.search import ESTIMATED_WITHIN, with_drawn_network
from h3sim.study.statistics import holm, ratio_end, student_interval
from h3sim.study.tasks import LoadRunner, LoadTask, read_options, with_loads
from h3sim.text import plural
from h3sim.trace import Rows
from h3sim.transport import Protocol
from h3sim.units import to_ms

if TYPE_CHECKING:
    from h3sim.importers import ImportedPage
    from h3sim.page import Resource
    from h3sim.results import Load
    from h3sim.study.run import PageLike, SchemeLike
    from h3sim.transport import Network


METRICS = {
    "lcp": ("largest_paint_ms", "LCP"),
    "fcp": ("fcp_ms", "FCP"),
    "speed-index": ("speed_index_ms", "SpeedIndex"),
    "byte-index": ("byte_index_atf_ms", "ByteIndex above the fold"),
    "load": ("load_event_ms", "load event"),
}
"""The metrics by their names: attribute of a load, and title."""
UNKNOWN = (
    "the time that other hardware takes to parse, execute and paint (see cpu_slowdown)",
    "the cache of returning visitors (see `h3sim transform --cached`)",
    "layout shifts (CLS), and so width and height of images",
    "the first paint that Chromium holds back for a preloaded font",
    "preload links for what leads to more requests, and Early Hints for it where the document does"
    " not name it: they are not tried",
    "whether the server can name files before it has made the document (Early Hints), and whether"
    " what is between it and its users passes 103 responses on",
    "whether a script may run later or in another order: test after defer or async",
    "whether text was sent compressed: sizes are those of the transfer",
)
"""Facts that a page and a simulated load do not have."""
_SERVERS = {
    "chrome-eps": "send by the priorities that Chrome asks for",
    "fifo": "send responses one after the other",
    "rr": "send all responses at once, in turns",
}
_LEAST = 0.01
"""Smallest sure change that matters."""
_LITTLE = 0.02
"""Largest change of a metric that goes without mention."""
_MOVES = 0.005
"""Smallest change of the first load that makes an edit a candidate."""
_MOST_EDITS, _MOST_HELPFUL, _MOST_HARMFUL, _IN_PAIRS = 80, 12, 5, 4
_EARLY_HINTS = "early hints"
_THINK_TIMES_MS = (0, 50, 100, 200, 400, 800)
"""Server think times at which Early Hints are tried."""
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


class HintRow(NamedTuple):
    """Edit with its verdict, in the order of sure gains; *ratio* and its ends are of the metric."""

    edit: str
    kind: str
    verdict: str
    sentence: str
    markup: str
    ratio: float
    low: float
    high: float


class ThinkTimeRow(NamedTuple):
    """Effect of an edit with Early Hints on a load whose document takes the server this long."""

    edit: str
    server_ms: float
    before_ms: float
    after_ms: float


class EffectRow(NamedTuple):
    """Effect of an edit on one metric: geometric means, and their ratio with its interval."""

    edit: str
    metric: str
    before_ms: float
    after_ms: float
    ratio: float
    low: float
    high: float
    p_holm: float


HELPS, TRADES, HARMS, NO_EFFECT = "helps", "helps and harms", "harms", "no sure effect"
HINTS = OutputSchema(
    "h3sim-hints/1",
    "Edits that make a page faster",
    *COMMON,
    Property("sentence", TEXT, "the best edit, as far as the replay fits", of="verdict"),
    Property("metric", Choice(METRICS), "the metric that ranks the edits"),
    Property("networks", ListOf(TEXT, "names"), "networks of the users, in turn"),
    Property("network_within", Number(low=1), "by which factor RTT and rate vary"),
    Property("n_tried", Integer(low=0), "edits that were loaded once"),
    Property("n_seeds", Integer(low=0), "seeds of each edit that was compared"),
    Property("confidence", LEVEL, "joint level of all intervals of a metric"),
    Property("rows", rows_of(HintRow), "one per edit that was compared, best first"),
    Property("effects", rows_of(EffectRow), "one per edit and metric"),
    Property("think_times", rows_of(ThinkTimeRow), "the best Early Hints by server think time"),
    Property("fidelity", OrNone(FIDELITY, none=None), "how well its replay fits its recording"),
    Property("unknown", ListOf(TEXT, "sentences"), "what the model does not know"),
)


@dataclass(frozen=True, kw_only=True, repr=False)
class Hints(ResultTable):
    """Result table of edits, best first, with their effects on all metrics."""

    format = HINTS
    displayed = ("rows", "effects")
    rows: Rows[HintRow]
    effects: Rows[EffectRow]
    think_times: Rows[ThinkTimeRow]
    page: Page
    metric: str
    networks: tuple[str, ...]
    network_within: float
    n_tried: int
    n_seeds: int
    confidence: float
    fidelity: Fidelity | None
    loads: tuple[Load, ...] = ()
    """Loads of one user before and after the best edit, if they were requested."""
    unknown: tuple[str, ...] = UNKNOWN

    @property
    def helpful(self) -> list[HintRow]:
        """Edits with a sure gain, best first."""
        return [row for row in self.rows if row.verdict == HELPS]

    @property
    def mixed(self) -> list[HintRow]:
        """Edits with a sure gain in one metric and a sure loss in another."""
        return [row for row in self.rows if row.verdict == TRADES]

    @property
    def harmful(self) -> list[HintRow]:
        """Edits with a sure loss and no gain, worst first."""
        return [row for row in self.rows if row.verdict == HARMS][::-1]

    @property
    def verdict(self) -> str:
        """The best edit, or that there is none, as far as the replay fits its recording."""
        best = self.helpful[:1]
        found = best[0].sentence if best else f"No edit of {self.page.name} helps for sure."
        return gated(found, [self.fidelity])

    def describe_think_times(self) -> str:
        """Describe from which server think time on Early Hints pay; empty if none were tried."""
        if not self.think_times:
            return ""
        own_ms = self.page.resources[self.page.root].server_ns
        changes = [(row.server_ms, row.after_ms / row.before_ms - 1) for row in self.think_times]
        gains = ", ".join(f"{100 * change:+.0f} % at {ms:g} ms" for ms, change in changes)
        worth = next((ms for ms, change in changes if change < -_LEAST), None)
        pays = "at none of these" if worth is None else f"from {worth:g} ms on"
        return (
            f"Early Hints pay {pays}, by the server's think time for the document"
            f" ({to_ms(own_ms):,.0f} ms on this page): {self.think_times[0].edit}:"
            f" {METRICS[self.metric][1]} {gains} (one load each)."
        )

    def describe(self) -> str:
        """Describe what was tried in words."""
        varied = ""
        if self.network_within > 1:
            varied = f", RTT and rate varied by up to {self.network_within:g} times"
        tried = f"{plural(self.n_tried, 'edit')} tried with one seed, {len(self.rows)} compared"
        return (
            f"{tried} with {plural(self.n_seeds, 'seed')} over {', '.join(self.networks)}{varied};"
            f" intervals at {100 * self.confidence:g} %, corrected for {len(self.rows)} edits;"
            f" {super().describe()}"
        )


# Edits of one page


def _ids(resources: Iterable[Resource]) -> str:
    names = [resource.id for resource in resources]
    return names[0] if len(names) == 1 else f"{len(names)} files ({names[0]}, ...)"


def _touching(properties: str, resources: Iterable[Resource]) -> frozenset[str]:
    return frozenset(f"{name} {each.id}" for name in properties.split() for each in resources)


def _of_page(change: Callable[[Page], Page]) -> Callable[[LoadTask], LoadTask]:
    return lambda task: task._replace(page=change(task.page))


def _set(resources: Sequence[Resource], **changes: Any) -> Callable[[LoadTask], LoadTask]:
    ids = {resource.id for resource in resources}

    def changed(page: Page) -> Page:
        return page.with_resources(
            edited_resource(r, changes) if r.id in ids else r for r in page.resources
        )

    return _of_page(changed)


def _url(resource: Resource) -> str:
    """Return the address of a resource as markup has it; ids of other hosts begin with the host."""
    is_remote = resource.host and resource.id.startswith(f"{resource.host}/")
    return html.escape(f"https://{resource.id}" if is_remote else resource.id)


def _tag(resources: Sequence[Resource], attribute: str) -> str:
    """Return the markup of the first few resources with an attribute."""
    lines = []
    for resource in resources[:3]:
        value = attribute
        if resource.kind is Kind.FETCH:
            value = attribute.partition('"')[2].rstrip('"')
        tag = _TAGS.get(resource.kind, '<link href="{0}" {1}>')
        lines.append(tag.format(_url(resource), value))
    return "\n".join(lines)


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
        return dict(sorted(found.items(), key=lambda item: -sum(map(_bytes, item[1]))))


def _offset(resource: Resource) -> int:
    found = resource.discovered
    return 0 if found is None else found.offset_bytes or 0


def _bytes(resource: Resource) -> int:
    return resource.size_bytes


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
        text = f"add {what} to {_ids(some)}"
        if value == "auto":
            text = f"remove fetchpriority from {_ids(some)}"
        yield Edit(
            text,
            "fetchpriority",
            "" if value == "auto" else _tag(some, what),
            _set(some, fetchpriority=value),
            _touching("fetchpriority", some),
        )


def _preload_edits(of: _Subject) -> Iterator[Edit]:
    late_fonts = [r for r in of.unnamed if r.kind is Kind.FONT]
    groups = [[r] for r in of.unnamed[:8]] + [[r] for r in of.visible[:1] if not r.preload]
    if len(late_fonts) > 1:
        groups.append(late_fonts)
    at_start = {"by": of.root.id, "at": TriggerEvent.OFFSET.value, "offset_bytes": 0}
    seen: set[str] = set()
    for some in groups:
        if (name := _ids(some)) in seen:
            continue
        seen.add(name)
        yield Edit(
            f"preload {name}",
            "preload",
            "\n".join(map(_preload_link, some)),
            _set(some, preload=True, lazy=None, discovered=at_start),
            _touching("discovery", some),
        )
    preloaded = [r for r in of.own if r.preload and r.kind in _AS]
    for resource in preloaded[1:] if len(preloaded) > 1 else ():
        yield Edit(
            f"preload {resource.id} before the other preloads",
            "preload order",
            _preload_link(resource),
            _of_page(lambda page, id_=resource.id: _preloaded_first(page, id_)),  # type: ignore[misc]
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
            _EARLY_HINTS,
            "\n".join(["HTTP/1.1 103 Early Hints", *lines]),
            _of_page(lambda page, ids=ids: with_early_hints(page, ids)),  # type: ignore[misc]
            _touching("discovery", some),
        )


def _delivery_edits(of: _Subject) -> Iterator[Edit]:
    small = [
        r
        for r in of.own
        if r.kind in _TEXT_KINDS and of._is_named(r) and r.in_head and r.size_bytes <= _SMALL_BYTES
        if not (r.is_async or r.is_defer) and of.is_before_head_ends(r)
    ]
    for some in [[r] for r in small[:4]] + ([small] if len(small) > 1 else []):
        ids = [r.id for r in some]
        yield Edit(
            f"inline {_ids(some)}",
            "inline",
            "<style>...</style>, <script>...</script> in place of the references",
            _of_page(lambda page, ids=ids: with_inlined(page, ids)),  # type: ignore[misc]
            _touching("discovery fetchpriority priority host bytes", some),
        )
    for resource in (r for r in of.visible[:3] if r.size_bytes >= _LARGE_BYTES):
        yield Edit(
            f"recompress {resource.id} to {100 * _RECOMPRESSED:.0f} % of its bytes",
            "compression",
            f"{resource.id} as AVIF or WebP, or of lower quality",
            _set([resource], bytes=round(resource.size_bytes * _RECOMPRESSED)),
            _touching("bytes", [resource]),
        )


def _script_edits(of: _Subject) -> Iterator[Edit]:
    groups = [[r] for r in of.blocking[:5]]
    if len(of.blocking) > 1:
        groups.append(of.blocking)
    for some, how in itertools.product(groups, ("defer", "async")):
        yield Edit(
            f"add {how} to {_ids(some)}",
            how,
            _tag(some, how),
            _set(some, **{how: True, "render_blocking": None}),
            _touching("running", some),
        )


def _lazy_edits(of: _Subject) -> Iterator[Edit]:
    eager = [r for r in of.hidden if not r.is_lazy]
    for some in [[r] for r in eager[:2]] + ([eager] if len(eager) > 1 else []):
        yield Edit(
            f'add loading="lazy" to {_ids(some)}',
            "lazy",
            _tag(some, 'loading="lazy"'),
            _set(some, lazy=True),
            _touching("discovery", some),
        )
    for resource in (r for r in of.visible if r.is_lazy):
        yield Edit(
            f'remove loading="lazy" from {resource.id}',
            "not lazy",
            f'<img src="{_url(resource)}">',
            _set([resource], lazy=None),
            _touching("discovery", [resource]),
        )


def _host_edits(of: _Subject) -> Iterator[Edit]:
    for host, some in itertools.islice(of.other_hosts.items(), 4):
        ids = [r.id for r in some]
        yield Edit(
            f"preconnect to {host}",
            "preconnect",
            f'<link rel="preconnect" href="https://{html.escape(host)}" crossorigin>',
            _of_page(lambda page, host=host: with_preconnect(page, host)),  # type: ignore[misc]
            frozenset({f"connection {host}"}),
        )
        yield Edit(
            f"serve {plural(len(some), 'file')} of {host} from the page's own host",
            "same host",
            "",
            _of_page(lambda page, ids=ids: with_same_host(page, ids)),  # type: ignore[misc]
            _touching("host", some) | {f"connection {host}"},
        )


def _server_edits(of: _Subject) -> Iterator[Edit]:
    for resource in of.visible[:2]:
        found = (ServerPriority(urgency=1),)
        yield _priority_edit([resource], "u=1", found)
    if len(of.hidden) > 1:
        yield _priority_edit(of.hidden, "u=6", (ServerPriority(urgency=6),))
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
    for scheme, title in _SERVERS.items():
        if scheme != of.scheme.name:
            yield Edit(
                f"have the server {title} ({scheme})",
                "server scheme",
                "",
                lambda task, scheme=scheme: task._replace(scheme=resolve_scheme(scheme)),  # type: ignore[misc]
                frozenset({"server"}),
            )


def _priority_edit(some: Sequence[Resource], value: str, found: tuple[ServerPriority, ...]) -> Edit:
    ids = {resource.id for resource in some}

    def changed(page: Page) -> Page:
        return page.with_resources(
            replace(r, server_priorities=found) if r.id in ids else r for r in page.resources
        )

    return Edit(
        f"send the response header priority: {value} with {_ids(some)}",
        "server priority",
        f"priority: {value}",
        _of_page(changed),
        _touching("priority", some),
    )


_SOURCES = (
    *(_fetchpriority_edits, _preload_edits, _script_edits, _lazy_edits, _early_hints_edits),
    *(_delivery_edits, _host_edits, _server_edits),
)


def edits_of(task: LoadTask) -> list[Edit]:
    """Return the edits that make sense for the page of *task*, at most 80.

    >>> import h3sim
    >>> page, scheme = h3sim.load_page("davies-meenan"), h3sim.load_scheme("chrome-eps")
    >>> edits = edits_of(LoadTask(page, scheme, h3sim.LoadConfig(network="cable")))
    >>> sorted({edit.kind for edit in edits})[:2]
    ['async', 'compression']
    """
    subject = _Subject(task)
    return list(itertools.chain(*(source(subject) for source in _SOURCES)))[:_MOST_EDITS]


def _pair(one: Edit, other: Edit) -> Edit | None:
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


# Loads and their comparison


def _measured(load: Load, _: str) -> dict[str, Any]:
    """Return the metrics of a load."""
    found = {name: getattr(load, name) for name, _ in METRICS.values() if name != _BYTES}
    return {**found, _BYTES: load.byte_index_or_none("atf")}


_BYTES = "byte_index_atf_ms"
_Values = Mapping[str, Sequence[float]]


class _Trial(NamedTuple):
    """Edit with the metrics of its loads, by seed."""

    edit: Edit
    values: _Values

    def logs(self, before: _Values, name: str) -> list[float]:
        return [math.log(b / a) for a, b in zip(before[name], self.values[name], strict=True)]


def _columns(loads: Sequence[Mapping[str, Any]]) -> dict[str, list[float]]:
    """Return the values of each metric that all loads have."""
    names = [name for name, _ in METRICS.values()]
    found = {name: [load[name] for load in loads] for name in names}
    return {name: values for name, values in found.items() if all(values)}


def _candidates(trials: Sequence[_Trial], before: _Values, first: str) -> list[Edit]:
    """Return the edits whose first load differs: the most helpful, and some that harm."""

    def moves(trial: _Trial) -> dict[str, float]:
        return {name: trial.logs(before, name)[0] for name in before if name in trial.values}

    found = [(trial.edit, moves(trial)) for trial in trials]
    found = [(edit, move) for edit, move in found if first in move]
    helpful = [item for item in found if min(item[1].values()) < -_MOVES]
    helpful.sort(key=lambda item: (item[1][first], min(item[1].values())))
    chosen = [edit for edit, _ in helpful[:_MOST_HELPFUL]]
    harmful = [item for item in found if max(item[1].values()) > _MOVES and item[0] not in chosen]
    harmful.sort(key=lambda item: (-item[1][first], -max(item[1].values())))
    pairs = itertools.combinations(
        [edit for edit, move in helpful if move[first] < -_MOVES][:_IN_PAIRS], 2
    )
    made = (_pair(one, other) for one, other in pairs)
    return chosen + [edit for edit, _ in harmful[:_MOST_HARMFUL]] + [each for each in made if each]


def _p_value(logs: Sequence[float]) -> float:
    """Return the two-sided p of Student's test that the mean is 0."""
    if len(set(logs)) == 1:
        return float(logs[0] == 0)
    with needing_extra("scipy", "study"):
        from scipy import stats  # lazy: optional dependency
    spread = statistics.stdev(logs) / math.sqrt(len(logs))
    return float(2 * stats.t.sf(abs(statistics.fmean(logs)) / spread, len(logs) - 1))


def _effects(trials: Sequence[_Trial], before: _Values, level: float) -> Iterator[EffectRow]:
    for name, title in METRICS.values():
        of_metric = [trial for trial in trials if name in before and name in trial.values]
        p_values = holm([_p_value(trial.logs(before, name)) for trial in of_metric])
        for trial, p in zip(of_metric, p_values, strict=True):
            logs = trial.logs(before, name)
            low, high = map(ratio_end, student_interval(logs, 1 - level / len(trials)))
            base = statistics.geometric_mean(before[name])
            after = statistics.geometric_mean(trial.values[name])
            yield EffectRow(trial.edit.text, title, base, after, after / base, low, high, p)


def _row(edit: Edit, effects: Sequence[EffectRow], metric: str) -> HintRow:
    """Return the verdict about an edit from its effects."""
    ordered = sorted(effects, key=lambda row: (row.metric != metric, row.ratio))
    first = ordered[0]
    gains = [row for row in ordered if row.high < 1 - _LEAST]
    losses = [row for row in ordered if row.low > 1 + _LEAST]
    worst = max((row.low - 1 for row in losses), default=0.0)
    verdict = NO_EFFECT
    if gains:
        is_worth_it = not losses or (first in gains and 1 - first.high > worst)
        verdict = HELPS if is_worth_it else TRADES
    elif losses:
        verdict = HARMS
    sentence = _sentence(edit.text, ordered, [*gains, *losses])
    return HintRow(
        edit.text, edit.kind, verdict, sentence, edit.markup, first.ratio, first.low, first.high
    )


def _sentence(text: str, effects: Sequence[EffectRow], sure: Sequence[EffectRow]) -> str:
    parts = [f"{row.metric} {_change(row)}" for row in effects if row in sure]
    others = [row for row in effects if row not in sure]
    unclear = [row for row in others if max(1 - row.low, row.high - 1) > _LITTLE]
    parts += [
        f"{row.metric} unclear ({100 * (row.low - 1):+.0f} to {100 * (row.high - 1):+.0f} %)"
        for row in unclear
    ]
    if len(others) > len(unclear):
        what = "nothing else changes" if parts else "nothing changes"
        parts.append(f"{what} by more than {_LITTLE:.0%}".replace("%", " %"))
    return f"{text}: {'; '.join(parts)}"


def _change(row: EffectRow) -> str:
    """Describe a sure change.

    >>> _change(EffectRow("x", "LCP", 1230.0, 870.0, 0.707, 0.67, 0.72, 0.0))
    '1,230 -> 870 ms, 28 to 33 % sooner'
    """
    ends = sorted(100 * abs(1 - ratio) for ratio in (row.low, row.high))
    low, high = (f"{end:.0f}" for end in ends)
    span = high if low == high else f"{low} to {high}"
    how = "sooner" if row.high < 1 else "later"
    return f"{row.before_ms:,.0f} -> {row.after_ms:,.0f} ms, {span} % {how}"


def _better_than_parts(trials: Sequence[_Trial], before: _Values, name: str) -> Iterator[_Trial]:
    """Yield the trials without the pairs that gain no more than one of their edits alone."""
    means = {
        t.edit.text: statistics.fmean(t.logs(before, name)) for t in trials if name in t.values
    }
    for trial in trials:
        parts = [means[text] for text in trial.edit.parts if text in means]
        if not parts or means.get(trial.edit.text, 0.0) < min(parts) - _LEAST:
            yield trial


def _changed(
    starts: Sequence[LoadTask], change: Callable[[LoadTask], LoadTask]
) -> Iterator[LoadTask]:
    """Yield the tasks with an edit; all users have one page, which is edited once."""
    first = change(starts[0])
    if first.config is not starts[0].config:
        yield from map(change, starts)
        return
    for task in starts:
        yield task._replace(page=first.page, scheme=first.scheme)


class _Users:
    """The configuration of each seed: one of the networks, its RTT and rate drawn.

    They have *configs* in turn, the first one twice as user 0 has it as it is.
    """

    def __init__(self, page: Page, configs: Sequence[LoadConfig], within: float) -> None:
        self._page, self._configs, self._within = page, configs, within

    def config(self, n: int) -> LoadConfig:
        """Return the configuration of user *n*; user 0 has the first network as it is."""
        config = self._configs[max(0, n - 1) % len(self._configs)]
        config = config_for(self._page, replace(config, seed=config.seed + n))
        return config if n == 0 or self._within == 1 else with_drawn_network(config, self._within)


_ARGUMENTS: Mapping[str, ValueType] = {
    "metric": Choice(METRICS),
    "n_seeds": Integer(low=3, high=10_000),
    "confidence": LEVEL,
    "network_within": Number(low=1, high=100),
    "first_result": FIRST_RESULT,
}


def _checked(given: Mapping[str, object]) -> dict[str, Any]:
    return check_arguments(InputError, **{key: (_ARGUMENTS[key], given[key]) for key in given})


def _configs(page: Page, config: LoadConfig, networks: Sequence[str | Network]) -> list[LoadConfig]:
    """Return the configuration over each network, with the browser and the page's protocol."""
    config = replace(config, browser=replace(config.browser_model, mode=BrowserMode.PARSE))
    if config.transport is None and config.transport_profile is None:
        config = replace(config, transport=_recorded_protocol(page))
    return [replace(config, network=each) for each in networks] or [config]


def _in_turn(networks: Sequence[str] | Sequence[NetworkShare], n_seeds: int) -> list[str | Network]:
    """Return the networks of the users: names in turn, shares as near as *n_seeds* allow.

    >>> from h3sim.transport import Network
    >>> from h3sim.transport.network import ConstantRate
    >>> rate = ConstantRate.at_rate(packet_bytes=1400, rate_bps=10**6)
    >>> a, b = (Network(name=name, constant_rate=rate) for name in "ab")
    >>> [each.name for each in _in_turn([NetworkShare(a, 0.3), NetworkShare(b, 0.7)], 4)]
    ['b', 'a', 'b', 'b']
    """
    shares = [each for each in networks if isinstance(each, NetworkShare)]
    found: list[str | Network] = [each for each in networks if isinstance(each, str)]
    counts = [0] * len(shares)
    for n_users in range(1, n_seeds + 1 if shares else 1):
        # The one that is furthest behind its share comes next, of equals the first.
        behind = [each.share * n_users - n for each, n in zip(shares, counts, strict=True)]
        index = behind.index(max(behind))
        counts[index] += 1
        found.append(shares[index].network)
    return found


@with_loads
def hints(
    page: PageLike | ImportedPage,
    *,
    scheme: SchemeLike = "chrome-eps",
    metric: str = "lcp",
    networks: Sequence[str] | Sequence[NetworkShare] = (),
    network_within: float = ESTIMATED_WITHIN,
    n_seeds: int = 8,
    confidence: float = 0.95,
    edits: Sequence[Edit] | None = None,
    keep_loads: bool = False,
    first_result: Callable[[str], None] | None = None,
    config: LoadConfig | None = None,
    **options: Any,
) -> Hints:
    """Return the edits of *page*, a page or a recording, that help, and those that harm.

    The browser computes each load (`browser="parse"`). Seeds are users: they have *networks* in
    turn (a name given twice counts twice; default: that of *config*, or of the recording), or by
    the shares of `read_crux`, with RTT and rate multiplied by 1 / *network_within* to
    *network_within*. Edits, by default those of `edits_of`, are ranked by the sure gain in
    *metric*, one of `METRICS`, or FCP where the page has no such metric. *first_result* is called
    with a sentence about the best edit after one load of each.

    Raises:
        InputError: listing every error in the arguments.
        NothingToMeasureError: if the page paints nothing.

    >>> found = hints("davies-meenan", network="cable", n_seeds=3, network_within=1)
    >>> found.rows[0].verdict
    'helps'
    """
    if config is None:
        options = {"browser": BrowserMode.PARSE.value, **options}
    given: dict[str, object] = {"metric": metric, "n_seeds": n_seeds, "confidence": confidence}
    given |= {"network_within": network_within, "first_result": first_result}
    with ErrorCollector() as errors:
        subject = errors.collect("page", lambda: subject_of(page), default=(None, None))[0]
        taken = errors.collect("", lambda: _checked(given))
        base = errors.collect("scheme", lambda: resolve_scheme(scheme))
        execution, how = errors.collect(
            "", lambda: read_options(hints, options, config), default=(None, None)
        )
        errors.collect("networks", lambda: _check_networks(networks, how or LoadConfig()))
    configs = _configs(subject, how, _in_turn(networks, n_seeds))
    users = _Users(subject, configs, taken["network_within"])
    start = LoadTask(subject, base, users.config(0))
    tried = edits_of(start) if edits is None else list(edits)
    with LoadRunner(execution, _measured) as runner:
        runner.expect(len(tried) + 1 + (_MOST_HELPFUL + 1) * n_seeds)
        loads = runner.run([start, *(edit.change(start) for edit in tried)])
        first = _first_metric(before := _columns(loads[:1]), metric)
        once = [_Trial(e, _columns([found])) for e, found in zip(tried, loads[1:], strict=True)]
        if first_result is not None:
            first_result(_preview(once, before, first))
        chosen = _candidates(once, before, first)
        starts = [LoadTask(subject, base, users.config(n)) for n in range(1, n_seeds + 1)]
        changed = (_changed(starts, edit.change) for edit in chosen)
        compared = runner.run([*starts, *itertools.chain(*changed)])
        think_times = _try_think_times(runner, start, _best_early_hints(once, first), first)
    values = [_columns(compared[n : n + n_seeds]) for n in range(0, len(compared), n_seeds)]
    rows, effects, best = _judged(chosen, values, first, 1 - confidence)
    return Hints(
        rows=Rows(HintRow, rows),
        effects=Rows(EffectRow, effects),
        think_times=Rows(ThinkTimeRow, think_times),
        page=subject,
        metric=next(key for key, (name, _) in METRICS.items() if name == first),
        networks=_titles(networks) or (start.config.path.network.name,),
        network_within=float(network_within),
        n_tried=len(tried),
        n_seeds=n_seeds,
        confidence=confidence,
        fidelity=fidelities([subject], replace(execution, progress=False)).get(subject.name),
        loads=_example(start, best) if keep_loads else (),
        version=__version__,
        configuration=loads[0]["configuration"],
        words=loads[0]["words"],
        page_digests={subject.name: subject.digest},
    )


def _check_networks(networks: Sequence[str] | Sequence[NetworkShare], config: LoadConfig) -> None:
    """Refuse networks that are neither names that fit *config* nor shares."""
    names: Any = networks
    if isinstance(networks, list | tuple):
        names = [each for each in networks if not isinstance(each, NetworkShare)]
    over_networks(config, names)


def _titles(networks: Sequence[str] | Sequence[NetworkShare]) -> tuple[str, ...]:
    return tuple(each if isinstance(each, str) else each.title for each in networks)


def _best_early_hints(trials: Sequence[_Trial], first: str) -> Edit | None:
    """Return the Early Hints that help most in one load."""
    found = [t for t in trials if t.edit.kind == _EARLY_HINTS and first in t.values]
    return min(found, key=lambda trial: trial.values[first][0]).edit if found else None


def _try_think_times(
    runner: LoadRunner, start: LoadTask, edit: Edit | None, first: str
) -> list[ThinkTimeRow]:
    """Load *start* before and after *edit*, by think time of the server for the document."""
    if edit is None:
        return []
    root = start.page.resources[start.page.root].id
    tasks = []
    for server_ms in _THINK_TIMES_MS:
        before = start._replace(page=start.page.with_(root, server_ms=server_ms))
        tasks += [before, edit.change(before)]
    times = [load[first] for load in runner.run(tasks)]
    pairs = zip(_THINK_TIMES_MS, times[::2], times[1::2], strict=True)
    return [
        ThinkTimeRow(edit.text, float(server_ms), before, after)
        for server_ms, before, after in pairs
        if before and after
    ]


def _judged(
    edits: Sequence[Edit], values: Sequence[_Values], first: str, level: float
) -> tuple[list[HintRow], list[EffectRow], Edit | None]:
    """Return the verdicts, best first, the effects that they rest on, and the best edit.

    *values* are those of the page as it is, and then with each of *edits*.
    """
    before = values[0]
    trials = [_Trial(edit, after) for edit, after in zip(edits, values[1:], strict=True)]
    effects = [*_effects(trials, before, level)]
    shown = [trial.edit for trial in _better_than_parts(trials, before, first)]
    title = dict(METRICS.values())[first]
    rows = [_row(e, [row for row in effects if row.edit == e.text], title) for e in shown]
    rows.sort(key=lambda row: (_RANKS[row.verdict], row.high))
    names = {row.edit for row in rows}
    best = next((e for e in shown if e.text == rows[0].edit), None)
    return rows, [row for row in effects if row.edit in names], best


_RANKS = {HELPS: 0, TRADES: 1, NO_EFFECT: 2, HARMS: 3}


def _recorded_protocol(page: Page) -> str | None:
    """Return the transport of the recording; None if it is unknown."""
    known = "" if page.recorded_load is None else page.recorded_load.protocol
    return "tcp" if known.startswith(("h2", "http/2", "spdy")) else None


def _first_metric(before: _Values, metric: str) -> str:
    """Return the requested metric, or that of the first paint if the page does not have it."""
    for name in (METRICS[metric][0], "fcp_ms", "load_event_ms"):
        if name in before:
            return name
    raise NothingToMeasureError("the page has no paint and no load event")


def _preview(trials: Sequence[_Trial], before: _Values, first: str) -> str:
    moved = [(t.logs(before, first)[0], t.edit.text) for t in trials if first in t.values]
    ratio, text = min(moved, default=(0.0, "no edit"))
    name = dict(METRICS.values())[first]
    return f"after one load of each edit: {text}: {name} {100 * math.expm1(ratio):+.0f} %"


def _example(start: LoadTask, best: Edit | None) -> tuple[Load, ...]:
    """Return the loads before and after the best edit."""
    tasks = [start] if best is None else [start, best.change(start)]
    return tuple(run_config(task.page, task.scheme, task.config) for task in tasks)
