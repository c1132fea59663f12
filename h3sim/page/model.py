"""The page: a dependency graph of resources, as frozen values."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from h3sim.errors import PageError, Problem

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import networkx as nx

__all__ = ["FLAGS", "At", "Discovery", "FetchPriority", "Kind", "Page", "Resource"]

MAX_STREAM_BYTES = 2**62 - 1
"""The largest final size of a stream (RFC 9000 § 4.5)."""
MAX_TIME_NS = 86_400 * 10**9
"""A day: longer delays are mistakes."""

FLAGS = {
    "in_head": "in_head",
    "async": "is_async",
    "defer": "is_defer",
    "preload": "preload",
    "render_blocking": "render_blocking",
    "after_first_image": "after_first_image",
    "above_the_fold": "above_the_fold",
    "critical": "critical",
    "hero": "hero",
    "lazy": "is_lazy",
}
"""The flags of a page file, each with the attribute of `Resource` that holds it."""


class Kind(enum.Enum):
    """What a resource is to the browser."""

    DOCUMENT = "document"
    STYLESHEET = "stylesheet"
    SCRIPT = "script"
    FONT = "font"
    IMAGE = "image"
    FETCH = "fetch"
    MEDIA = "media"
    OTHER = "other"


class At(enum.Enum):
    """The event that makes the browser ask for a resource."""

    TIME = "time"
    """Navigation start."""
    REQUEST = "request"
    """The parent is requested."""
    OFFSET = "offset"
    """So many contiguous bytes of the parent were delivered."""
    COMPLETE = "complete"
    """All bytes of the parent were delivered."""
    EXECUTED = "executed"
    """The parent was delivered, parsed and executed."""


class FetchPriority(enum.Enum):
    """The page author's hint."""

    HIGH = "high"
    LOW = "low"
    AUTO = "auto"


@dataclass(frozen=True, slots=True, kw_only=True)
class Discovery:
    """Why and when a resource is asked for: *delay_ns* after event *at* of resource *by*."""

    at: At
    by: str | None = None
    offset_bytes: int | None = None
    delay_ns: int = 0

    def problems(self) -> Iterator[Problem]:
        """Yield what is wrong with it, keys relative to it."""
        if self.at is not At.TIME and self.by is None:
            yield Problem(key="by", message=f"is needed where at is {self.at.value!r}")
        if self.at is At.OFFSET and self.offset_bytes is None:
            yield Problem(key="offset_bytes", message="is needed where at is 'offset'")
        if self.at is not At.OFFSET and self.offset_bytes is not None:
            yield Problem(key="offset_bytes", message="goes only with at = 'offset'")
        if self.offset_bytes is not None and self.offset_bytes < 0:
            yield Problem(
                key="offset_bytes", message=f"must not be negative, is {self.offset_bytes}"
            )
        yield from _time_problems("delay_ms", self.delay_ns)


@dataclass(frozen=True, slots=True, kw_only=True)
class Resource:
    """One resource of a page; `docs/page-format.md` explains each field.

    Raises:
        PageError: listing every value that is out of range.

    >>> Resource(id="a.css", kind=Kind.STYLESHEET, size_bytes=-1)
    Traceback (most recent call last):
    ...
    h3sim.errors.PageError: a.css: bytes: must not be negative, is -1
    """

    id: str
    kind: Kind
    size_bytes: int
    mime: str = ""
    header_bytes: int = 0
    request_bytes: int = 0
    discovered: Discovery | None = None
    in_head: bool = False
    is_async: bool = False
    is_defer: bool = False
    preload: bool = False
    render_blocking: bool = False
    after_first_image: bool = False
    above_the_fold: bool = False
    critical: bool = False
    hero: bool = False
    is_lazy: bool = False
    fetchpriority: FetchPriority = FetchPriority.AUTO
    parse_ns: int = 0
    execute_ns: int = 0
    server_ns: int = 0
    viewport: float | None = None
    response_offsets: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        problems = list(self._problems())
        if problems:
            raise PageError(problems, self.id)

    @property
    def stream_bytes(self) -> int:
        """What its stream carries: response header and body."""
        return self.header_bytes + self.size_bytes

    def _problems(self) -> Iterator[Problem]:
        if not self.id:
            yield Problem(key="id", message="must not be empty")
        for key, size in (
            ("bytes", self.size_bytes),
            ("header_bytes", self.header_bytes),
            ("request_bytes", self.request_bytes),
        ):
            if size < 0:
                yield Problem(key=key, message=f"must not be negative, is {size}")
            elif size > MAX_STREAM_BYTES:
                yield Problem(
                    key=key, message=f"is more than a stream can carry (2^62 - 1): {size}"
                )
        for key, time_ns in (
            ("parse_ms", self.parse_ns),
            ("execute_ms", self.execute_ns),
            ("server_ms", self.server_ns),
        ):
            yield from _time_problems(key, time_ns)
        if self.viewport is not None and not 0 <= self.viewport <= 1:
            yield Problem(key="viewport", message=f"must be 0 to 1, is {self.viewport}")
        offsets = self.response_offsets
        if any(b < a for a, b in zip((0, *offsets), offsets, strict=False)):
            yield Problem(key="response_offsets", message="must rise from 0 on")
        if self.discovered is not None:
            for problem in self.discovered.problems():
                yield Problem(key=f"discovered.{problem.key}", message=problem.message)


@dataclass(frozen=True, kw_only=True)
class Page:
    """A page: its resources in file order, the first of which need not be the root.

    Raises:
        PageError: listing every mistake: no or several roots, ids that stand twice, parents that
            are missing, circles, offsets behind their parent's end.

    >>> page = Page(name="one", resources=(Resource(id="/", kind=Kind.DOCUMENT, size_bytes=10),))
    >>> page.root, page.total_bytes
    (0, 10)
    """

    name: str
    resources: tuple[Resource, ...]
    url: str = ""
    provenance: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        problems = list(graph_problems(self.resources))
        if problems:
            raise PageError(problems, self.name)

    def __hash__(self) -> int:
        return hash((self.name, self.resources))

    @cached_property
    def index(self) -> dict[str, int]:
        """The place in `resources` of each id."""
        return {resource.id: place for place, resource in enumerate(self.resources)}

    @cached_property
    def root(self) -> int:
        """The place of the one resource that is asked for at navigation start."""
        return next(i for i, resource in enumerate(self.resources) if resource.discovered is None)

    @cached_property
    def children(self) -> dict[int, tuple[int, ...]]:
        """The places of the resources that each place triggers, in file order."""
        found: dict[int, list[int]] = {}
        for place, resource in enumerate(self.resources):
            discovery = resource.discovered
            if discovery is not None and discovery.by is not None and discovery.at is not At.TIME:
                found.setdefault(self.index[discovery.by], []).append(place)
        return {parent: tuple(places) for parent, places in found.items()}

    @property
    def total_bytes(self) -> int:
        """The bytes of all response bodies."""
        return sum(resource.size_bytes for resource in self.resources)

    @property
    def graph(self) -> nx.DiGraph[str]:
        """The dependency graph: an edge, labelled `at`, from each parent to what it triggers."""
        import networkx

        graph: nx.DiGraph[str] = networkx.DiGraph(name=self.name)
        for resource in self.resources:
            graph.add_node(resource.id, kind=resource.kind.value, bytes=resource.size_bytes)
        for resource in self.resources:
            if resource.discovered is not None and resource.discovered.by is not None:
                graph.add_edge(resource.discovered.by, resource.id, at=resource.discovered.at.value)
        return graph


def graph_problems(resources: tuple[Resource, ...]) -> Iterator[Problem]:
    """Yield what is wrong with *resources* taken together; keys are `resources[n]...`."""
    if not resources:
        yield Problem(key="resources", message="a page needs at least one resource")
        return
    seen: dict[str, int] = {}
    for place, resource in enumerate(resources):
        first = seen.setdefault(resource.id, place)
        if first != place:
            message = f"{resource.id!r} is already the id of resources[{first}]"
            yield Problem(key=f"resources[{place}].id", message=message)
    yield from _root_problems(resources)
    for place, resource in enumerate(resources):
        yield from _parent_problems(f"resources[{place}].discovered", resource, resources, seen)
    yield from _circle_problems(resources, seen)


def _root_problems(resources: tuple[Resource, ...]) -> Iterator[Problem]:
    roots = [place for place, resource in enumerate(resources) if resource.discovered is None]
    if not roots:
        yield Problem(key="resources", message="no root: one resource must have no 'discovered'")
    for place in roots[1:]:
        message = f"a second root beside resources[{roots[0]}]: only one may lack 'discovered'"
        yield Problem(key=f"resources[{place}]", message=message)


def _parent_problems(
    key: str, resource: Resource, resources: tuple[Resource, ...], index: Mapping[str, int]
) -> Iterator[Problem]:
    discovery = resource.discovered
    if discovery is None or discovery.by is None:
        return
    parent = index.get(discovery.by)
    if parent is None:
        yield Problem(key=f"{key}.by", message=f"no resource has the id {discovery.by!r}")
    elif (
        discovery.offset_bytes is not None and discovery.offset_bytes > resources[parent].size_bytes
    ):
        message = (
            f"{discovery.offset_bytes} lies behind the end of {discovery.by!r}"
            f" ({resources[parent].size_bytes} bytes)"
        )
        yield Problem(key=f"{key}.offset_bytes", message=message)


def _circle_problems(
    resources: tuple[Resource, ...], index: Mapping[str, int]
) -> Iterator[Problem]:
    """Follow each resource to its parent, its grandparent and so on; tell each circle once."""
    checked: set[str] = set()
    for resource in resources:
        path: dict[str, None] = {}
        node: str | None = resource.id
        while node is not None and node not in checked and node not in path:
            path[node] = None
            discovery = resources[index[node]].discovered
            node = discovery.by if discovery is not None and discovery.at is not At.TIME else None
            node = node if node in index else None
        if node is not None and node in path:
            steps = [*path]
            circle = [*steps[steps.index(node) :], node]
            yield Problem(
                key=f"resources[{index[node]}].discovered.by",
                message=f"a circle: {' waits for '.join(circle)}",
            )
        checked.update(path)


def _time_problems(key: str, time_ns: int) -> Iterator[Problem]:
    if time_ns < 0:
        yield Problem(key=key, message=f"must not be negative, is {time_ns / 1e6}")
    elif time_ns > MAX_TIME_NS:
        yield Problem(key=key, message=f"is more than a day: {time_ns / 1e6} ms")
