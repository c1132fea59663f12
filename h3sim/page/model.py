"""The page: a dependency graph of resources, its roots, triggers and above-the-fold labels."""

from __future__ import annotations

import enum
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from functools import cached_property
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple

from h3sim.page.hosts import Host, host_problems
from h3sim.page.recording import (
    Layout,
    PaintCause,
    RecordedGroup,
    RecordedLoad,
    layout_problems,
    paint_problems,
    tree_problems,
    without_parents,
)
from h3sim.page.resource import FLAGS, Discovery, Kind, Resource, TriggerEvent
from h3sim.page.validation import edited_resource, graph_problems
from h3sim.schema import format_value, parse_json, read_text
from h3sim.schema.fields import Named, Record, declare, read_document, validate, write_table
from h3sim.schema.values import Choice, ListOf, TableOf, Text
from h3sim.values.errors import InputError, PageError, UnknownNameError, ValidationIssue
from h3sim.values.notebook import reporting
from h3sim.values.table import RichDisplay, Table

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence
    from pathlib import Path

    import networkx as nx

    from h3sim.values.plots import PagePlots


class RootPage(NamedTuple):
    """A root with its descendants, as a page: its resource n is *indices[n]* of the full page."""

    root: int
    indices: tuple[int, ...]
    page: Page


def roots_by_resource(
    resources: Sequence[Resource], index: Mapping[str, int], roots: Sequence[int]
) -> tuple[int, ...]:
    """Return the root of each resource: its nearest ancestor that is a root.

    A resource triggered by a timer without a parent belongs to the first of *roots*.
    """
    if len(roots) == 1:
        return (*roots,) * len(resources)
    root_of: dict[int, int] = {}
    for start in range(len(resources)):
        path = []
        at = start
        while at not in root_of and not resources[at].begins_page:
            path.append(at)
            discovered = resources[at].discovered
            # Of several parents all belong to one root.
            by = None if discovered is None else discovered.first_parent
            # Timer triggers may name each other in a cycle: no request waits for them.
            if by is None or at in path[:-1]:
                root_of[at] = roots[0]
                break
            at = index[by]
        root = root_of.get(at, at)
        root_of.update(dict.fromkeys((*path, at), root))
    return tuple(root_of[at] for at in range(len(resources)))


def _check_size(n_resources: int, source: str) -> None:
    """Refuse a page file with too many resources."""
    if n_resources > MAX_RESOURCES:
        message = f"must be at most {MAX_RESOURCES:,} resources, is {n_resources:,}"
        raise PageError.at("resources", message, source)


def parts_of(page: Page) -> tuple[RootPage, ...]:
    """Split *page* by root; a page with one root is returned unchanged.

    >>> from h3sim.page import TriggerEvent, Discovery, Kind, Page, Resource
    >>> later = Discovery(at=TriggerEvent.TIME, delay_ns=5)
    >>> two = Page(name="two", resources=(
    ...     Resource(id="/", kind=Kind.DOCUMENT, size_bytes=9),
    ...     Resource(id="b/", kind=Kind.DOCUMENT, size_bytes=9, is_root=True, discovered=later)))
    >>> [(part.root, part.page.resources[0].id) for part in parts_of(two)]
    [(0, '/'), (1, 'b/')]
    """
    if len(page.roots) == 1:
        return (RootPage(page.root, tuple(range(len(page.resources))), page),)
    indices: dict[int, list[int]] = {}
    for at, root in enumerate(page.root_of):
        indices.setdefault(root, []).append(at)
    # Only one document was recorded with its paints: the one that redirects led to.
    redirects = redirects_of(page)
    painted = next((each for each in page.roots if each not in redirects), None)
    return tuple(
        _part_of_root(page, root, tuple(indices[root]), is_painted=painted in (None, root))
        for root in page.roots
    )


def redirects_of(page: Page) -> frozenset[int]:
    """Return the roots that redirect: another root is requested when they complete."""
    triggers = (page.resources[root].discovered for root in page.roots)
    return frozenset(
        page.index[by]
        for when in triggers
        if when is not None and when.at is TriggerEvent.COMPLETE
        for by in when.parents
    )


def _part_of_root(page: Page, root: int, indices: tuple[int, ...], *, is_painted: bool) -> RootPage:
    """Return one root of several as a page of its own, with its resources at *indices*."""
    ids = {page.resources[at].id for at in indices}
    remaining = [
        _without_foreign_changes(page.resources[at], ids, page.recorded_groups) for at in indices
    ]
    own_root = indices.index(root)
    # As the only root, it needs neither a trigger nor the mark of a further root.
    remaining[own_root] = replace(remaining[own_root], discovered=None, is_root=False)
    # Most pages have no layout, and then no root but one needs all ids.
    gone = page.index.keys() - ids if is_painted or page.layout else ()
    causes = _causes_without(page, gone) if is_painted else dict.fromkeys(page.paint_causes)
    layout = page.layout and page.layout.without(gone)
    part = replace(page, resources=tuple(remaining), hosts=(), layout=layout, **causes)
    return RootPage(root, indices, part)


def _causes_without(page: Page, ids: Collection[str]) -> dict[str, Any]:
    """Return the causes of the paints of *page* without *ids*."""
    return {key: each and each.without(ids) for key, each in page.paint_causes.items()}


def _without_foreign_changes(
    resource: Resource, ids: Iterable[str], groups: Iterable[RecordedGroup]
) -> Resource:
    """Return *resource* without changes that other parts of the page trigger."""

    def is_known(when: Discovery | None) -> bool:
        return when is None or all(by in ids for by in when.parents)

    changes = tuple(change for change in resource.priority_changes if is_known(change.when))
    parents = {entry.depends_on for entry in resource.recorded if entry.depends_on}
    foreign = parents - {*ids} - {group.name for group in groups}
    without_foreign = without_parents(resource, foreign)
    recorded = tuple(entry for entry in without_foreign.recorded if is_known(entry.when))
    if changes == resource.priority_changes and recorded == resource.recorded:
        return resource
    return replace(resource, priority_changes=changes, recorded=recorded)


_rule_properties = attrgetter("kind._value_", "fetchpriority._value_", *FLAGS.values())
"""Return the properties that rules read; enums by value, since hashing one is a Python call."""


class Join(NamedTuple):
    """A trigger that is not one event of one parent with `Triggers` of its own.

    It fires *delay_ns* after event *at* has happened to all of *parents*; a timer has none. Of
    several joins of one child, the first to fire counts.
    """

    child: int
    at: TriggerEvent
    parents: tuple[int, ...]
    offset_bytes: int
    """An offset of the parent's stream, which begins with the header; 0 for other events."""
    delay_ns: int


class Triggers(NamedTuple):
    """The consequences of events of one resource, by indices in the page, except its `Join`s."""

    at_request: tuple[tuple[int, int], ...]
    """On its request: (delay in ns, child)."""
    at_offset: tuple[tuple[int, int, int], ...]
    """At an offset of its stream: (bytes, child, delay in ns), lowest offset last; equal offsets
    fire in file order."""
    at_end: tuple[tuple[int, int], ...]
    """On its last byte: (delay in ns, child); parsing and executing start immediately."""


class Graph:
    """The dependency graph of a page, by index in `resources`."""

    resources: tuple[Resource, ...]

    @cached_property
    def index(self) -> dict[str, int]:
        """The index in `resources` of each id."""
        return {resource.id: at for at, resource in enumerate(self.resources)}

    @cached_property
    def root(self) -> int:
        """The index of the first resource that is requested at navigation start."""
        return next(i for i, resource in enumerate(self.resources) if resource.discovered is None)

    @cached_property
    def roots(self) -> tuple[int, ...]:
        """The indices of all navigated documents, `root` first; most pages have one."""
        others = (i for i, resource in enumerate(self.resources) if resource.begins_page)
        return tuple(dict.fromkeys((self.root, *others)))

    @cached_property
    def root_of(self) -> tuple[int, ...]:
        """The root that each resource belongs to."""
        return roots_by_resource(self.resources, self.index, self.roots)

    @cached_property
    def stream_bytes(self) -> tuple[int, ...]:
        """The bytes on the stream of each resource, by index; every load reads them."""
        return tuple(resource.stream_bytes for resource in self.resources)

    @cached_property
    def at_navigation(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The requests without a parent: times after navigation start, and indices."""
        found = [
            (0 if resource.discovered is None else resource.discovered.delay_ns, index)
            for index, resource in enumerate(self.resources)
            if resource.discovered is None
            or (resource.discovered.at is TriggerEvent.TIME and not resource.discovered.is_joined)
        ]
        return tuple(at_ns for at_ns, _ in found), tuple(index for _, index in found)

    @cached_property
    def sorts(self) -> dict[str, int]:
        """The equivalence class of each id; no scheme rule can tell members of a class apart."""
        numbers: dict[object, int] = {}
        return {
            resource.id: numbers.setdefault(
                (_rule_properties(resource), resource.begins_page), len(numbers)
            )
            for resource in self.resources
        }

    @cached_property
    def images_before(self) -> dict[str, int]:
        """The position of each image among those that Chrome assumes to be visible before layout.

        These are the images that the document references and its preload scanner finds, so they are
        neither lazy nor preloaded, nor declared small (`AdjustImagePriority` of Chromium's
        `resource_fetcher.cc`). Images requested by scripts or CSS do not count. Each document is
        counted separately. All other resources have `NOT_COUNTED`.

        >>> page = Page(name="p", resources=(Resource(id="/", kind=Kind.DOCUMENT, size_bytes=9),))
        >>> page.images_before["/"] == NOT_COUNTED
        True
        """
        positions = dict.fromkeys(self.index, NOT_COUNTED)
        by_document: dict[str | None, list[Resource]] = {}
        for image in self.resources:
            found = image.discovered
            if image.kind is Kind.IMAGE and found is not None and _is_found_by_scanner(image):
                by = None if found.at is TriggerEvent.TIME else found.first_parent
                if by is None or self.resources[self.index[by]].kind is Kind.DOCUMENT:
                    by_document.setdefault(by, []).append(image)
        for images in by_document.values():
            # In document order; images of unknown position follow in the order of the file.
            images.sort(key=_reference_order)
            positions.update((image.id, position) for position, image in enumerate(images))
        return positions

    @cached_property
    def children(self) -> dict[int, tuple[int, ...]]:
        """The indices of the resources that each index triggers, in file order."""
        found = children_of(self.resources, self.index)
        return {parent: tuple(indices) for parent, indices in found.items()}

    @cached_property
    def triggers(self) -> dict[int, Triggers]:
        """The consequences of each index that has `children`, except those of `joins`."""
        if not self.joins:
            return triggers_of(self.resources, self.children)
        joined = {join.child for join in self.joins}
        children = {
            parent: tuple(child for child in found if child not in joined)
            for parent, found in self.children.items()
        }
        return triggers_of(self.resources, children)

    @cached_property
    def joins(self) -> tuple[Join, ...]:
        """The triggers that wait for several resources, or for the first of several events.

        What a module script requests when it has run waits for all modules that it imports, too.

        >>> root = Resource(id="/", kind=Kind.DOCUMENT, size_bytes=9)
        >>> data = [Resource(id=id_, kind=Kind.FETCH, size_bytes=9, discovered=Discovery(
        ...     by="/", at=TriggerEvent.COMPLETE)) for id_ in "ab"]
        >>> both = Discovery(by=("a", "b"), at=TriggerEvent.COMPLETE, delay_ns=5)
        >>> image = Resource(id="c", kind=Kind.IMAGE, size_bytes=9, discovered=both)
        >>> Page(name="p", resources=(root, *data, image)).joins[0].parents
        (1, 2)
        """
        return tuple(_joins(self.resources, self.index, self.module_graphs))

    @cached_property
    def joins_of(self) -> dict[int, tuple[int, ...]]:
        """The positions in `joins` of those that wait for each index."""
        found: dict[int, list[int]] = {}
        for number, join in enumerate(self.joins):
            for parent in join.parents:
                found.setdefault(parent, []).append(number)
        return {parent: tuple(numbers) for parent, numbers in found.items()}

    @cached_property
    def module_imports(self) -> dict[int, tuple[int, ...]]:
        """The modules that each module script imports statically.

        These are the module scripts that it triggers when it is complete: then the browser reads
        its imports. A dynamic `import()` is triggered when the script has run.
        """
        found: dict[int, list[int]] = {}
        for child, resource in enumerate(self.resources):
            when = resource.discovered
            if resource.is_module and when is not None:
                for by in _importers(when):
                    parent = self.index[by]
                    if self.resources[parent].is_module:
                        found.setdefault(parent, []).append(child)
        return {parent: tuple(children) for parent, children in found.items()}

    @cached_property
    def module_graphs(self) -> dict[int, tuple[int, ...]]:
        """The modules that run with each module that imports some, in the order in which they run.

        A module runs after those that it imports, which come first (HTML standard § 8.1.4.2:
        a module script is ready once its whole graph is). It is the last itself.
        """
        imports = self.module_imports
        return {module: tuple(_in_order_of_running(module, imports)) for module in imports}

    @cached_property
    def imported_modules(self) -> frozenset[int]:
        """The modules that run only as part of the graph of another one."""
        children = {child for found in self.module_imports.values() for child in found}
        return frozenset(index for index in children if self._has_only_importers(index))

    def _has_only_importers(self, index: int) -> bool:
        """Return whether a module that is imported has no element, and nothing else runs it."""
        resource = self.resources[index]
        if resource.reference_offset_bytes is not None or resource.discovered is None:
            return False
        for when in resource.discovered.alternatives:
            is_import = when.at is TriggerEvent.COMPLETE and all(
                self.resources[self.index[by]].is_module for by in when.parents
            )
            if not is_import and not resource.preload:
                return False
        return True


NOT_COUNTED = 2**31
"""The position of resources that Chrome does not count: after all counted images."""


def _is_found_by_scanner(image: Resource) -> bool:
    """Return whether the preload scanner finds an image, and Chrome counts it."""
    return not (image.preload or image.is_lazy or image.small or image.in_style)


def _reference_order(resource: Resource) -> int:
    """Return the offset at which the document references a resource; if unknown, a huge one."""
    found = resource.discovered
    known = None if found is None else found.offset_bytes
    return NOT_COUNTED if known is None else known


def children_of(resources: Sequence[Resource], index: Mapping[str, int]) -> dict[int, list[int]]:
    """Return the indices of the resources that each index triggers, in file order."""
    found: dict[int, list[int]] = {}
    for child, resource in enumerate(resources):
        discovery = resource.discovered
        for by in () if discovery is None else discovery.waits_for:
            found.setdefault(index[by], []).append(child)
    return found


def _joins(
    resources: Sequence[Resource],
    index: Mapping[str, int],
    module_graphs: Mapping[int, Sequence[int]],
) -> Iterator[Join]:
    """Yield the joins of a page, child by child."""
    for child, resource in enumerate(resources):
        discovery = resource.discovered
        if discovery is None or resource.is_root:
            continue
        runs_late = discovery.at is TriggerEvent.EXECUTED and any(
            index[by] in module_graphs for by in discovery.parents
        )
        if not (discovery.is_joined or runs_late):
            continue
        for when in discovery.alternatives:
            is_timer = when.at is TriggerEvent.TIME
            parents = () if is_timer else tuple(index[by] for by in when.parents)
            offset_bytes = 0
            if when.at is TriggerEvent.OFFSET:
                offset_bytes = resources[parents[0]].header_bytes + (when.offset_bytes or 0)
            yield Join(child, when.at, parents, offset_bytes, when.delay_ns)


def _importers(when: Discovery) -> Iterator[str]:
    """Yield the ids whose completion alone triggers a resource."""
    for each in when.alternatives:
        if each.at is TriggerEvent.COMPLETE and len(each.parents) == 1:
            yield from each.parents


def _in_order_of_running(module: int, imports: Mapping[int, Sequence[int]]) -> list[int]:
    """Return a module after all that it imports, directly or not; cycles are cut."""
    order: list[int] = []
    met = {module}
    # Without recursion: a chain of imports may be longer than Python's stack.
    path = [(module, iter(imports.get(module, ())))]
    while path:
        at, children = path[-1]
        child = next((each for each in children if each not in met), None)
        if child is None:
            order.append(at)
            path.pop()
        else:
            met.add(child)
            path.append((child, iter(imports.get(child, ()))))
    return order


def triggers_of(
    resources: Sequence[Resource], children: Mapping[int, Sequence[int]]
) -> dict[int, Triggers]:
    """Return the triggers of each resource that has children."""
    return {
        parent: _sort_triggers(resources, parent, triggered)
        for parent, triggered in children.items()
    }


def _sort_triggers(resources: Sequence[Resource], parent: int, children: Sequence[int]) -> Triggers:
    """Return the children of a resource by the event that triggers them."""
    parent_resource = resources[parent]
    at_request: list[tuple[int, int]] = []
    at_offset: list[tuple[int, int, int]] = []
    at_end: list[tuple[int, int]] = []
    for child in children:
        discovery = resources[child].discovered
        assert discovery is not None  # noqa: S101 - a root has no parent
        delay_ns = discovery.delay_ns
        if discovery.at is TriggerEvent.REQUEST:
            at_request.append((delay_ns, child))
        elif discovery.at is TriggerEvent.OFFSET:
            # An offset in the stream, which begins with the header.
            offset = parent_resource.header_bytes + (discovery.offset_bytes or 0)
            at_offset.append((offset, child, delay_ns))
        elif discovery.at is TriggerEvent.COMPLETE:
            at_end.append((delay_ns, child))
        elif discovery.at is TriggerEvent.EXECUTED:
            executed_ns = parent_resource.parse_ns + parent_resource.execute_ns
            at_end.append((executed_ns + delay_ns, child))
    return Triggers(tuple(at_request), tuple(sorted(at_offset, reverse=True)), tuple(at_end))


_COMMENT_MARK = "#"


class MarksFrom(enum.Enum):
    """The source of the labels above the fold."""

    PAGE = "page"
    """The author of the page, or a browser that recorded it with its layout."""
    HEURISTIC = "heuristic"
    """Inferred from markup and order (`h3sim.browser.infer_above_the_fold`)."""
    CRITICAL_PATH = "critical-path"
    """The critical path of a WProfX graph."""
    HAND = "hand"
    """Labelled by hand (`h3sim annotate`)."""

    @property
    def is_inferred(self) -> bool:
        """True if the labels were not observed; figures that depend on them must say so."""
        return self in (MarksFrom.HEURISTIC, MarksFrom.CRITICAL_PATH)


_GLOB_CHARS = frozenset("*?[")
MAX_RESOURCES = 100_000
"""Most resources of a page file: a bound of memory, as many as the requests of a recording."""
_MAX_GLOBS = 500
"""Most patterns that are read from a file, since each is compared with every id."""
_MAX_GLOB_CHARS = 1000
"""Longest pattern that is read from a file."""


def marked(page: Page, ids: Collection[str], source: MarksFrom) -> Page:
    """Return *page* with exactly the resources *ids* marked as above the fold.

    >>> from h3sim.page import Kind, Page, Resource
    >>> page = Page(name="p", resources=(Resource(id="/", kind=Kind.DOCUMENT, size_bytes=9),))
    >>> marked(page, {"/"}, MarksFrom.HAND).resources[0].above_the_fold
    True
    """
    resources = tuple(
        resource
        if resource.above_the_fold == (resource.id in ids)
        else replace(resource, above_the_fold=resource.id in ids)
        for resource in page.resources
    )
    return replace(page, resources=resources, above_the_fold_from=source)


def ids_like(page: Page, pattern: str) -> list[str]:
    """Return the ids that *pattern* matches: a literal id, or else a glob (`*.css`)."""
    # A literal id may contain brackets or stars, so it is tried before the glob.
    if pattern in page.index:
        return [pattern]
    if not _is_glob(pattern):
        return []
    return [id_ for id_ in page.index if fnmatchcase(id_, pattern)]


def _is_glob(pattern: str) -> bool:
    return not _GLOB_CHARS.isdisjoint(pattern)


def ids_that_match(page: Page, patterns: Iterable[tuple[str, str]]) -> dict[str, None]:
    """Return the ids that match any of *patterns*: literal ids, or else globs (`*.css`).

    Each pattern is paired with its position in the input, for messages.

    Raises:
        InputError: listing every pattern that matches nothing. Globs are limited in number and
            length, since each is compared with every id.
    """
    found: dict[str, None] = {}
    problems = []
    n_globs = 0
    for where, pattern in patterns:
        if pattern not in page.index and _is_glob(pattern):
            n_globs += 1
            if n_globs > _MAX_GLOBS:
                message = f"more than {_MAX_GLOBS} patterns: the rest is not read"
                problems.append(ValidationIssue(key=where, message=message))
                break
            if len(pattern) > _MAX_GLOB_CHARS:
                message = f"{format_value(pattern)} is longer than {_MAX_GLOB_CHARS:,} characters"
                problems.append(ValidationIssue(key=where, message=message))
                continue
        hits = ids_like(page, pattern)
        if not hits:
            message = f"{format_value(pattern)} matches no resource of {page.name}"
            problems.append(ValidationIssue(key=where, message=message))
        found |= dict.fromkeys(hits)
    if problems:
        raise InputError(problems)
    return found


def read_marks(path: str | Path, page: Page) -> Page:
    """Return *page* with labels from the file at *path*: one id or glob per line, # for comments.

    Raises:
        InputError: if it cannot be read, or listing every line that matches no resource.
    """
    lines = enumerate(read_text(path, InputError).splitlines(), start=1)
    candidates = [(f"line {number}", line.strip()) for number, line in lines]
    patterns = [
        (where, text) for where, text in candidates if text and not text.startswith(_COMMENT_MARK)
    ]
    try:
        ids = ids_that_match(page, patterns)
    except InputError as error:
        raise InputError(error.problems, str(path)) from error
    return marked(page, ids, MarksFrom.HAND)


FORMAT = "h3sim-page/1"

_RECORDED_LOAD = Record(RecordedLoad, noun="an object")
_LAYOUT = Record(Layout, noun="an object")
_CAUSE = Record(PaintCause, noun="an object")

_EDIT_SEPARATOR = "~"
"""Separates the name of an edited page from the start of its digest."""
_DIGEST_CHARS = 6
"""Characters of a digest in the name of an edited page."""
_SHORT_DIGEST_CHARS = 8
"""Characters of `short_digest`."""


@dataclass(frozen=True, kw_only=True, repr=False)
class Page(Graph, RichDisplay):
    """A page: its resources in file order; the root need not be the first.

    Raises:
        PageError: listing every error: no root, duplicate ids, missing parents, cycles, and
            offsets beyond the end of the parent.

    >>> from h3sim.page import Kind
    >>> page = Page(name="one", resources=(Resource(id="/", kind=Kind.DOCUMENT, size_bytes=10),))
    >>> page.root, page.total_bytes
    (0, 10)
    """

    name: str = field(metadata=declare(Text(is_needed=True), "its name in results"))
    url: str = field(default="", metadata=declare(Text(), "its address when it was recorded"))
    provenance: Mapping[str, str] = field(
        default_factory=dict,
        metadata=declare(
            TableOf(Text()),
            "the origin of its facts: an object of strings, usually `source`, `recorded`, `tool`,"
            " `dialect`, `licence`, `notes`",
        ),
    )
    above_the_fold_from: MarksFrom = field(
        default=MarksFrom.PAGE,
        metadata=declare(Choice(MarksFrom), "the source of the above-the-fold labels"),
    )
    recorded_load: RecordedLoad | None = field(
        default=None, metadata=declare(_RECORDED_LOAD, "recorded facts of the load as a whole")
    )
    layout: Layout | None = field(
        default=None,
        metadata=declare(
            _LAYOUT,
            "the recorded viewport and [rectangles in it](../page-format.md#layout)",
        ),
    )
    first_paint: PaintCause | None = field(
        default=None,
        metadata=declare(
            _CAUSE,
            "what the first contentful [paint](../page-format.md#paints) waited for",
        ),
    )
    largest_paint: PaintCause | None = field(
        default=None,
        metadata=declare(
            _CAUSE,
            "what the largest [paint](../page-format.md#paints) waited for after the first",
        ),
    )
    resources: tuple[Resource, ...] = field(
        metadata=declare(
            ListOf(Record(Resource, noun="an object", keeps_partial=True), "resources"),
            "a list of resources; at least one",
        )
    )
    recorded_groups: tuple[RecordedGroup, ...] = field(
        default=(),
        metadata=declare(
            ListOf(Record(RecordedGroup, noun="an object", keeps_partial=True), "objects"),
            "groups of the [recorded priority tree](../page-format.md#recorded-priorities)",
        ),
    )
    hosts: tuple[Host, ...] = field(
        default=(),
        metadata=declare(
            Named(Host),
            "known facts of hosts, one object per host: see [Hosts](../page-format.md#hosts)",
        ),
    )

    def __post_init__(self) -> None:
        validate(self, PageError, self.name)
        layout = self.layout
        if layout is not None:
            # Shares follow from the rectangles of a layout; here all readers find them.
            resources = tuple(
                replace(each, viewport=layout.share(each.id))
                if each.viewport is None and each.id in layout.rectangles
                else each
                for each in self.resources
            )
            object.__setattr__(self, "resources", resources)

    def issues(self) -> Iterator[ValidationIssue]:
        """Yield the errors between its resources, hosts and groups."""
        yield from graph_problems(self.resources)
        yield from host_problems(self.resources, self.hosts)
        yield from tree_problems(self.resources, self.recorded_groups)
        if self.layout is not None:
            yield from layout_problems(self.resources, self.layout)
        yield from paint_problems(self.resources, self.paint_causes)

    @property
    def paint_causes(self) -> dict[str, PaintCause | None]:
        """The causes of the recorded paints, by their keys in a page file."""
        return {"first_paint": self.first_paint, "largest_paint": self.largest_paint}

    def __hash__(self) -> int:
        # Other fields may have mappings, which cannot be hashed; equal pages have equal resources.
        return hash((self.name, self.resources))

    @property
    def total_bytes(self) -> int:
        """The bytes of all response bodies."""
        return sum(resource.size_bytes for resource in self.resources)

    @cached_property
    def digest(self) -> str:
        """The SHA-256 of resources, hosts and recorded groups: equal for equal loads.

        Name, URL, provenance and recorded facts of the load are not part of it, but what its paints
        waited for is.
        """
        import hashlib  # on use: importing h3sim should stay quick

        parts = (*self.resources, *self.hosts, *self.recorded_groups)
        entries: list[Any] = [write_table(part) for part in parts]
        entries += [{key: write_table(each)} for key, each in self.paint_causes.items() if each]
        text = json.dumps(entries, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()

    @property
    def short_digest(self) -> str:
        """The first characters of `digest`, for display."""
        return self.digest[:_SHORT_DIGEST_CHARS]

    @property
    def title(self) -> str:
        """The one-line description."""
        n = len(self.resources)
        return f"{n} resource{'s' * (n != 1)}, {self.total_bytes / 1000:,.0f} kB"

    @property
    def knows_above_the_fold(self) -> bool:
        """True if the page has above-the-fold labels or shares of the viewport."""
        return any(each.above_the_fold or each.viewport is not None for each in self.resources)

    @property
    def nothing_visible_reason(self) -> str:
        """The reason why no byte is above the fold; "" if some are.

        Missing labels, labels on no resource, and labels on empty resources are distinguished.
        """
        return _missing_reason(self)

    @cached_property
    def awaited_by_load_event(self) -> tuple[str, ...]:
        """The ids of the resources that were complete by the recorded load event, if known."""
        load = self.recorded_load
        if load is None or load.load_event_ns is None:
            return ()
        completed_ns, at_ns = load.completed_ns, load.load_event_ns
        return tuple(
            each.id for each in self.resources if completed_ns.get(each.id, at_ns + 1) <= at_ns
        )

    @property
    def plot(self) -> PagePlots:
        """Figures of this page: `plot.dependencies()`, `plot.kinds()`."""
        plots: PagePlots = reporting().PagePlots(self)
        return plots

    @property
    def graph(self) -> nx.DiGraph[str]:
        """The dependency graph: an edge, labelled `at`, from each parent to each child."""
        import networkx as nx  # on use: it takes longer than most loads

        graph: nx.DiGraph[str] = nx.DiGraph(name=self.name)
        graph.graph["roots"] = [self.resources[root].id for root in self.roots]
        for resource in self.resources:
            graph.add_node(resource.id, kind=resource.kind.value, bytes=resource.size_bytes)
        for resource in self.resources:
            found = resource.discovered
            for when in () if found is None else found.alternatives:
                for by in when.parents:
                    graph.add_edge(by, resource.id, at=when.at.value)
        return graph

    # Files

    @classmethod
    def from_dict(cls, document: Mapping[str, Any], *, source: str = "page") -> Page:
        """Return the page that a parsed page file describes.

        Raises:
            PageError: listing every error in it.

        >>> Page.from_dict({"format": "h3sim-page/1", "name": "x", "resources": [{"id": "/"}]})
        Traceback (most recent call last):
        ...
        h3sim.values.errors.PageError: page: resources[0].kind: is missing
        page: resources[0].bytes: is missing
        """
        rows = document.get("resources") if isinstance(document, Mapping) else None
        if isinstance(rows, list | tuple):
            _check_size(len(rows), source)
        return read_document(
            Page, document, PageError, source=source, format_=FORMAT, noun="an object"
        )

    @classmethod
    def from_json(cls, text: str, *, source: str = "page") -> Page:
        """Return the page that *text*, a page file, describes.

        Raises:
            PageError: listing every error in it.
        """
        # Each resource has this key, and no other table does: what is too large is not parsed.
        if isinstance(text, str):
            _check_size(text.count('"kind"'), source)
        document: Any = parse_json(text, PageError, source=source)
        return cls.from_dict(document, source=source)

    @classmethod
    def from_file(cls, path: str | Path) -> Page:
        """Return the page in the file at *path*.

        Raises:
            PageError: if it cannot be read, or listing every error in it.
        """
        return cls.from_json(read_text(path, PageError), source=str(path))

    def to_dict(self) -> dict[str, Any]:
        """Return the page as a page file's document; reading it back gives an equal page."""
        document = {"format": FORMAT, **write_table(self)}
        if self.layout is not None:
            for resource in document["resources"]:
                if resource["id"] in self.layout.rectangles:
                    del resource["viewport"]  # stated by the rectangles
        return document

    def to_json(self) -> str:
        """Return the page as a page file; reading it back gives an equal page."""
        return json.dumps(self.to_dict(), ensure_ascii=False, indent=1) + "\n"

    # Edits

    def with_(self, id_: str, *, name: str | None = None, **changes: Any) -> Page:
        """Return the page with one resource changed.

        *changes* are keys and values of a page file: *bytes*, *kind*, *defer*, *fetchpriority*,
        *discovered* and so on; `async_` is the key `async`, a Python keyword, and None removes a
        key. With *preload* set to True, the resource is requested by a link at the start of its
        root, unless *discovered* is given. Where *viewport* is set, recorded rectangles of the
        resource are dropped.

        The page is called *name*; by default, part of its digest is appended to its old name, so
        that tables do not confuse the two.

        Raises:
            UnknownNameError: if there is no such resource.
            PageError: listing every error by its key in a page file.

        >>> from h3sim.page import TriggerEvent, Discovery, Kind
        >>> root = Resource(id="/", kind=Kind.DOCUMENT, size_bytes=10)
        >>> late = Discovery(at=TriggerEvent.COMPLETE, by="/")
        >>> script = Resource(id="a.js", kind=Kind.SCRIPT, size_bytes=10, discovered=late)
        >>> page = Page(name="two", resources=(root, script))
        >>> page.with_("a.js", preload=True, fetchpriority="high").resources[1].discovered.at
        <TriggerEvent.OFFSET: 'offset'>
        >>> page.with_("a.js", bytes=20, discovered={"by": "/", "at": "request"}, name="b").name
        'b'
        """
        index = self._index_of(id_)
        root = self.resources[self.root_of[index]].id
        if changes.get("preload") and "discovered" not in changes and root != id_:
            changes["discovered"] = {"by": root, "at": "offset", "offset_bytes": 0}
        changed = edited_resource(self.resources[index], changes)
        remaining = (*self.resources[:index], changed, *self.resources[index + 1 :])
        if self.layout is not None and "viewport" in changes:
            page = replace(self, layout=self.layout.without([id_]))
            return page.with_resources(remaining, name=name)
        return self.with_resources(remaining, name=name)

    def without(self, id_: str, *, name: str | None = None) -> Page:
        """Return the page without a resource and its descendants; *name* as in `with_`.

        A resource with several triggers keeps those that can still fire.

        Raises:
            UnknownNameError: if there is no such resource.
            PageError: if it is the root.
        """
        removed = {self._index_of(id_)}
        removed_ids = {id_}
        waiting = [*removed]
        while waiting:
            for child in self.children.get(waiting.pop(), ()):
                if (
                    child not in removed
                    and _without_triggers(self.resources[child], removed_ids) is None
                ):
                    removed.add(child)
                    removed_ids.add(self.resources[child].id)
                    waiting.append(child)
        remaining = (
            _without_triggers(each, removed_ids)
            for index, each in enumerate(self.resources)
            if index not in removed
        )
        return self.with_resources(filter(None, remaining), name=name)

    def with_resources(self, resources: Iterable[Resource], *, name: str | None = None) -> Page:
        """Return the page with other resources, and their hosts; *name* as in `with_`.

        Raises:
            PageError: listing every error between them.
        """
        # Values of wrong types are left to the page's own validation, which reports them.
        candidates = tuple(resources) if isinstance(resources, Iterable) else resources
        removed: set[str] = set()
        if isinstance(candidates, tuple) and all(isinstance(each, Resource) for each in candidates):
            removed = self.index.keys() - {each.id for each in candidates}
            if removed:
                candidates = tuple(without_parents(each, removed) for each in candidates)
        # First without hosts: a host that no resource uses any more would be an error.
        layout = self.layout and self.layout.without(removed)
        causes = _causes_without(self, removed)
        edited = replace(self, resources=candidates, hosts=(), layout=layout, **causes)
        used = {resource.host for resource in edited.resources}
        edited = replace(edited, hosts=tuple(host for host in self.hosts if host.name in used))
        if name is None and edited.resources != self.resources:
            # A page that was edited before gets a new digest in its name, not a second one.
            original, _, _ = self.name.rpartition(_EDIT_SEPARATOR)
            name = f"{original or self.name}{_EDIT_SEPARATOR}{edited.digest[:_DIGEST_CHARS]}"
        return edited if name is None else replace(edited, name=name)

    def _index_of(self, id_: str) -> int:
        if not isinstance(id_, str) or id_ not in self.index:
            raise UnknownNameError("resource", id_, list(self.index), "page.index")
        return self.index[id_]

    def __repr__(self) -> str:
        return f"<Page {self.name}: {self.title}>"

    def _display(self) -> Iterable[str | Table[Any]]:
        yield repr(self)
        yield Table(
            ("resource", "kind", "bytes", "requested by", "at"), map(_display_row, self.resources)
        )


def _without_triggers(resource: Resource, removed: set[str]) -> Resource | None:
    """Return *resource* with the triggers that do not need any id in *removed*; None if none."""
    found = resource.discovered
    if found is None or removed.isdisjoint(found.waits_for):
        return resource
    remaining = [when for when in found.alternatives if removed.isdisjoint(when.waits_for)]
    if not remaining:
        return None
    first, *others = remaining
    return replace(resource, discovered=replace(first, or_else=tuple(others)))


def _display_row(resource: Resource) -> tuple[Any, ...]:
    """Return the row of a resource in a notebook table."""
    found = resource.discovered
    trigger = (None, None) if found is None else (named_parents(found), found.at.value)
    return (resource.id, resource.kind.value, resource.size_bytes, *trigger)


def named_parents(found: Discovery) -> str | None:
    """Return the ids that a trigger names as text, and those of other triggers after "or".

    >>> named_parents(Discovery(by=("a", "b"), at=TriggerEvent.COMPLETE, or_else=(
    ...     Discovery(by="c", at=TriggerEvent.EXECUTED),)))
    'a and b or c'
    """
    names = [" and ".join(when.parents) for when in found.alternatives if when.parents]
    return " or ".join(names) or None


def _missing_reason(page: Page) -> str:
    """Return why nothing above the fold can be measured; "" if something can."""
    if any(resource.above_the_fold and resource.size_bytes for resource in page.resources):
        return ""
    if not page.knows_above_the_fold:
        return "unknown: the page has no labels"
    if not any(resource.above_the_fold for resource in page.resources):
        return "no resource of the page is labelled"
    return "the labelled resources have no bytes"


# Page files


def read_page(path: str | Path) -> Page:
    """Return the page that the file at *path* describes.

    Raises:
        PageError: if the file cannot be read, or listing every error in it.
    """
    return Page.from_file(path)


def page_from_dict(document: dict[str, Any], *, source: str = "page") -> Page:
    """Return the page that *document*, a parsed page file, describes.

    Raises:
        PageError: listing every error in it.
    """
    return Page.from_dict(document, source=source)


def page_to_dict(page: Page) -> dict[str, Any]:
    """Return *page* as a page file's document; reading it back gives an equal page.

    >>> from h3sim.page import Kind, Resource
    >>> page = Page(name="one", resources=(Resource(id="/", kind=Kind.DOCUMENT, size_bytes=10),))
    >>> page_from_dict(page_to_dict(page)) == page
    True
    """
    return page.to_dict()


def schema() -> dict[str, Any]:
    """Return the published JSON Schema of a page file.

    >>> schema()["properties"]["format"]
    {'const': 'h3sim-page/1'}
    """
    from h3sim.schema.output import schema_of  # on use: no load writes a schema

    return schema_of(
        Page, FORMAT, title="A page for h3sim", about=_SCHEMA_DESCRIPTION, rules=_SCHEMA_RULES
    )


_SCHEMA_DESCRIPTION = (
    "A web page as a dependency graph of its resources and their triggers. Rules that a schema"
    " cannot express: ids are unique, exactly one resource has no 'discovered', parents exist,"
    " there is no cycle, and no offset is beyond the end of its parent."
)
_SCHEMA_RULES: dict[str, dict[str, Any]] = {
    "page": {"properties": {"resources": {"minItems": 1}}},
    "discovery": {
        "allOf": [
            {
                "if": {"properties": {"at": {"const": "offset"}}},
                "then": {"required": ["offset_bytes"]},
                "else": {"not": {"required": ["offset_bytes"]}},
            },
            {"if": {"properties": {"at": {"const": "time"}}}, "else": {"required": ["by"]}},
        ]
    },
}
"""The rules between values, as far as a schema can express them."""
