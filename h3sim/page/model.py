"""The page: a dependency graph of resources, as a frozen value."""

from __future__ import annotations

import html
import json
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from h3sim.errors import PageError, UnknownNameError
from h3sim.page.checks import graph_problems
from h3sim.page.resource import At, Discovery, FetchPriority, Kind, Resource

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    import networkx as nx

__all__ = ["Page"]


@dataclass(frozen=True, kw_only=True, repr=False)
class Page:
    """A page: its resources in file order, the first of which need not be the root.

    Raises:
        PageError: listing every mistake: no or several roots, ids that stand twice, parents that
            are missing, circles, offsets behind their parent's end.

    >>> from h3sim.page import Kind
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

    # As text

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Page:
        """Return the page that a parsed page file describes.

        Raises:
            PageError: listing every mistake in it.
        """
        from h3sim.page.reader import page_from_dict  # it makes pages, so it knows this module

        return page_from_dict(dict(document))

    @classmethod
    def from_json(cls, text: str) -> Page:
        """Return the page that *text*, a page file, describes.

        Raises:
            PageError: listing every mistake in it.
        """
        from h3sim.page.reader import page_from_json

        return page_from_json(text)

    @classmethod
    def from_file(cls, path: str | Path) -> Page:
        """Return the page in the file at *path*.

        Raises:
            PageError: if it cannot be read, or listing every mistake in it.
        """
        from h3sim.page.reader import read_page

        return read_page(path)

    def to_json(self) -> str:
        """Return the page as a page file; reading it back gives an equal page."""
        from h3sim.page.writer import page_to_dict

        return json.dumps(page_to_dict(self), ensure_ascii=False, indent=1) + "\n"

    # What if

    def with_(self, id_: str, **changes: Any) -> Page:
        """Return the page with one resource changed.

        *changes* are fields of `Resource`; *fetchpriority* and *kind* may be given by their names.
        With *preload* set to True, a link at the start of the root asks for it; where it stands in
        the head is said by `discovered`.

        Raises:
            UnknownNameError: if there is no such resource.
            TypeError: if a resource has no such field.
            PageError: listing every value that is out of range.

        >>> from h3sim.page import Kind
        >>> root = Resource(id="/", kind=Kind.DOCUMENT, size_bytes=10)
        >>> late = Discovery(at=At.COMPLETE, by="/")
        >>> script = Resource(id="a.js", kind=Kind.SCRIPT, size_bytes=10, discovered=late)
        >>> page = Page(name="two", resources=(root, script))
        >>> page.with_("a.js", preload=True, fetchpriority="high").resources[1].discovered.at
        <At.OFFSET: 'offset'>
        """
        place = self._place(id_)
        for name, choices in (("fetchpriority", FetchPriority), ("kind", Kind)):
            if isinstance(changes.get(name), str):
                changes[name] = choices(changes[name])
        if changes.get("preload") and "discovered" not in changes and place != self.root:
            root_id = self.resources[self.root].id
            changes["discovered"] = Discovery(at=At.OFFSET, by=root_id, offset_bytes=0)
        changed = replace(self.resources[place], **changes)
        return replace(
            self, resources=(*self.resources[:place], changed, *self.resources[place + 1 :])
        )

    def without(self, id_: str) -> Page:
        """Return the page without a resource and all that it asks for.

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
        kept = (resource for place, resource in enumerate(self.resources) if place not in gone)
        return replace(self, resources=tuple(kept))

    def _place(self, id_: str) -> int:
        if id_ not in self.index:
            raise UnknownNameError("resource", id_, list(self.index), "page.index")
        return self.index[id_]

    def __repr__(self) -> str:
        kbytes = f"{self.total_bytes / 1000:,.0f} kB"
        return f"<Page {self.name}: {len(self.resources)} resources, {kbytes}>"

    def _repr_html_(self) -> str:
        from tabulate import tabulate

        rows = [
            (
                resource.id,
                resource.kind.value,
                f"{resource.size_bytes:,}",
                "" if resource.discovered is None else resource.discovered.by or "",
                "" if resource.discovered is None else resource.discovered.at.value,
            )
            for resource in self.resources
        ]
        headers = ("resource", "kind", "bytes", "asked for by", "at")
        return f"<p>{html.escape(repr(self))}</p>{tabulate(rows, headers, tablefmt='html')}"
