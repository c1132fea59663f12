"""The page: a dependency graph of resources, as a frozen value."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from h3sim.documents import parse_json, read_text
from h3sim.documents.declared import read_document, says, settle, write_table
from h3sim.documents.nested import Named, Table
from h3sim.documents.values import Choice, ListOf, TableOf, Text
from h3sim.errors import PageError, UnknownNameError
from h3sim.notebook import escaped, html_table
from h3sim.page.checks import graph_problems
from h3sim.page.edits import edited_resource
from h3sim.page.hosts import Host, host_problems
from h3sim.page.marks import MarksFrom
from h3sim.page.recorded_groups import RecordedGroup, tree_problems, without_parents
from h3sim.page.recorded_load import RecordedLoad
from h3sim.page.resource import Resource
from h3sim.page.triggers import Graph
from h3sim.provided import provided

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    import networkx as nx

    from h3sim.errors import Problem

__all__ = ["FORMAT", "Page"]

FORMAT = "h3sim-page/1"

_RECORDED_LOAD = Table(RecordedLoad, noun="an object")

_EDITED = "~"
"""Stands between the name of a page that was edited and a part of its digest."""
_DIGEST_CHARS, _SHORT_DIGEST_CHARS = 6, 8


@dataclass(frozen=True, kw_only=True, repr=False)
class Page(Graph):
    """A page: its resources in file order, the first of which need not be the root.

    Raises:
        PageError: listing every mistake: no root, ids that stand twice, parents that are missing,
            circles, offsets behind their parent's end.

    >>> from h3sim.page import Kind
    >>> page = Page(name="one", resources=(Resource(id="/", kind=Kind.DOCUMENT, size_bytes=10),))
    >>> page.root, page.total_bytes
    (0, 10)
    """

    name: str = field(metadata=says(Text(is_needed=True), "what results call it"))
    url: str = field(default="", metadata=says(Text(), "where it was recorded"))
    provenance: Mapping[str, str] = field(
        default_factory=dict,
        metadata=says(
            TableOf(Text()),
            "where the facts come from: an object of texts, usually `source`, `recorded`, `tool`,"
            " `licence`, `notes`",
        ),
    )
    above_the_fold_from: MarksFrom = field(
        default=MarksFrom.PAGE, metadata=says(Choice(MarksFrom), "who says what is above the fold")
    )
    recorded_load: RecordedLoad | None = field(
        default=None, metadata=says(_RECORDED_LOAD, "what its recording says of the whole")
    )
    resources: tuple[Resource, ...] = field(
        metadata=says(
            ListOf(Table(Resource, noun="an object", is_kept=True), "resources"),
            "a list of resources; at least one",
        )
    )
    recorded_groups: tuple[RecordedGroup, ...] = field(
        default=(),
        metadata=says(
            ListOf(Table(RecordedGroup, noun="an object", is_kept=True), "objects"),
            "groups of the recorded tree: see [Recorded priorities](#recorded-priorities)",
        ),
    )
    hosts: tuple[Host, ...] = field(
        default=(),
        metadata=says(
            Named(Host), "what is known of hosts, an object by host: see [Hosts](#hosts)"
        ),
    )

    def __post_init__(self) -> None:
        settle(self, PageError, self.name)

    def mistakes(self) -> Iterator[Problem]:
        """Yield what is wrong with its resources, and its hosts, taken together."""
        yield from graph_problems(self.resources)
        yield from host_problems(self.resources, self.hosts)
        yield from tree_problems(self.resources, self.recorded_groups)

    def __hash__(self) -> int:
        return hash((self.name, self.resources))

    @property
    def total_bytes(self) -> int:
        """The bytes of all response bodies."""
        return sum(resource.size_bytes for resource in self.resources)

    @cached_property
    def digest(self) -> str:
        """The SHA-256 of resources, hosts and recorded groups: equal for equal loads.

        Name, address, provenance and what the recording says of the whole are not in it.
        """
        import hashlib  # on use: importing h3sim should stay quick

        known = (*self.resources, *self.hosts, *self.recorded_groups)
        entries = [write_table(entry) for entry in known]
        text = json.dumps(entries, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()

    @property
    def short_digest(self) -> str:
        """The part of `digest` that people are shown."""
        return self.digest[:_SHORT_DIGEST_CHARS]

    @property
    def title(self) -> str:
        """What it is, in a line."""
        n = len(self.resources)
        return f"{n} resource{'s' * (n != 1)}, {self.total_bytes / 1000:,.0f} kB"

    @property
    def knows_above_the_fold(self) -> bool:
        """Whether anybody said what is above the fold: a resource is marked, or its share known."""
        return any(each.above_the_fold or each.viewport is not None for each in self.resources)

    @property
    def why_nothing_visible(self) -> str:
        """Why no byte is above the fold: unknown, none and no bytes are three things; "" if any is.

        Where nobody said what is above the fold, that is unknown, and not nothing.
        """
        return _why_nothing_visible(self)

    @property
    def plot(self) -> Any:
        """Figures of this page: `plot.dependencies()`, `plot.kinds()`."""
        return provided("page.plot", self)

    @property
    def graph(self) -> nx.DiGraph[str]:
        """The dependency graph: an edge, labelled `at`, from each parent to what it triggers."""
        from h3sim.page.graph import graph_of  # on use: networkx takes longer than most loads

        return graph_of(self)

    # As text

    @classmethod
    def from_dict(cls, document: Mapping[str, Any], *, source: str = "page") -> Page:
        """Return the page that a parsed page file describes.

        Raises:
            PageError: listing every mistake in it.

        >>> Page.from_dict({"format": "h3sim-page/1", "name": "x", "resources": [{"id": "/"}]})
        Traceback (most recent call last):
        ...
        h3sim.errors.PageError: page: resources[0].kind: is missing
        page: resources[0].bytes: is missing
        """
        return read_document(
            Page, document, PageError, source=source, format_=FORMAT, noun="an object"
        )

    @classmethod
    def from_json(cls, text: str, *, source: str = "page") -> Page:
        """Return the page that *text*, a page file, describes.

        Raises:
            PageError: listing every mistake in it.
        """
        document: Any = parse_json(text, PageError, source=source)
        return cls.from_dict(document, source=source)

    @classmethod
    def from_file(cls, path: str | Path) -> Page:
        """Return the page in the file at *path*.

        Raises:
            PageError: if it cannot be read, or listing every mistake in it.
        """
        return cls.from_json(read_text(path, PageError), source=str(path))

    def to_dict(self) -> dict[str, Any]:
        """Return the page as a page file's document; reading it back gives an equal page."""
        return {"format": FORMAT, **write_table(self)}

    def to_json(self) -> str:
        """Return the page as a page file; reading it back gives an equal page."""
        return json.dumps(self.to_dict(), ensure_ascii=False, indent=1) + "\n"

    # What if

    def with_(self, id_: str, *, name: str | None = None, **changes: Any) -> Page:
        """Return the page with one resource changed.

        *changes* are keys of a page file, with what may stand there: *bytes*, *kind*, *defer*,
        *fetchpriority*, *discovered* and so on; `async_` stands for the key that Python keeps for
        itself, and None takes a key away. With *preload* set to True, a link at the start of its
        root asks for it, unless *discovered* says otherwise.

        The page is called *name*; without it a part of its digest is added to the name it had, so
        that no table takes the two for one.

        Raises:
            UnknownNameError: if there is no such resource.
            PageError: listing every mistake, with the keys of a page file.

        >>> from h3sim.page import At, Discovery, Kind
        >>> root = Resource(id="/", kind=Kind.DOCUMENT, size_bytes=10)
        >>> late = Discovery(at=At.COMPLETE, by="/")
        >>> script = Resource(id="a.js", kind=Kind.SCRIPT, size_bytes=10, discovered=late)
        >>> page = Page(name="two", resources=(root, script))
        >>> page.with_("a.js", preload=True, fetchpriority="high").resources[1].discovered.at
        <At.OFFSET: 'offset'>
        >>> page.with_("a.js", bytes=20, discovered={"by": "/", "at": "request"}, name="b").name
        'b'
        """
        index = self._place(id_)
        root = self.resources[self.root_of[index]].id
        if changes.get("preload") and "discovered" not in changes and root != id_:
            changes["discovered"] = {"by": root, "at": "offset", "offset_bytes": 0}
        changed = edited_resource(self.resources[index], changes)
        kept = (*self.resources[:index], changed, *self.resources[index + 1 :])
        return self.with_resources(kept, name=name)

    def without(self, id_: str, *, name: str | None = None) -> Page:
        """Return the page without a resource and all that it asks for; *name* as in `with_`.

        Raises:
            UnknownNameError: if there is no such resource.
            PageError: if it is the root.
        """
        gone = {self._place(id_)}
        waiting = [*gone]
        while waiting:
            children = self.children.get(waiting.pop(), ())
            waiting += children
            gone.update(children)
        kept = (resource for index, resource in enumerate(self.resources) if index not in gone)
        return self.with_resources(kept, name=name)

    def with_resources(self, resources: Iterable[Resource], *, name: str | None = None) -> Page:
        """Return the page with other resources, and their hosts; *name* as in `with_`.

        Raises:
            PageError: listing every mistake in them, taken together.
        """
        given = tuple(resources) if isinstance(resources, Iterable) else resources
        if isinstance(given, tuple) and all(isinstance(each, Resource) for each in given):
            gone = self.index.keys() - {each.id for each in given}
            given = tuple(without_parents(each, gone) for each in given) if gone else given
        # First without hosts: one that is left without a resource would be refused.
        edited = replace(self, resources=given, hosts=())
        used = {resource.host for resource in edited.resources}
        edited = replace(edited, hosts=tuple(host for host in self.hosts if host.name in used))
        if name is None and edited.resources != self.resources:
            # A page that is edited twice has one digest in its name.
            was_edited = self.name.rpartition(_EDITED)
            name = f"{was_edited[0] or self.name}{_EDITED}{edited.digest[:_DIGEST_CHARS]}"
        return edited if name is None else replace(edited, name=name)

    def _place(self, id_: str) -> int:
        if not isinstance(id_, str) or id_ not in self.index:
            raise UnknownNameError("resource", id_, list(self.index), "page.index")
        return self.index[id_]

    def __repr__(self) -> str:
        return f"<Page {self.name}: {self.title}>"

    def _repr_html_(self) -> str:
        headers = ("resource", "kind", "bytes", "asked for by", "at")
        rows = [_row(resource) for resource in self.resources]
        return f"<p>{escaped(repr(self))}</p>{html_table(headers, rows)}"


def _row(resource: Resource) -> tuple[Any, ...]:
    """Return what a table of a notebook shows of a resource."""
    found = resource.discovered
    why = (None, None) if found is None else (found.by, found.at.value)
    return (resource.id, resource.kind.value, resource.size_bytes, *why)


def _why_nothing_visible(page: Page) -> str:
    if any(resource.above_the_fold and resource.size_bytes for resource in page.resources):
        return ""
    if not page.knows_above_the_fold:
        return "unknown, the page does not say"
    if not any(resource.above_the_fold for resource in page.resources):
        return "nothing of the page is"
    return "what is marked has no bytes"
