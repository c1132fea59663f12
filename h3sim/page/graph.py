"""The dependency graph of a page for `networkx`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import networkx as nx

if TYPE_CHECKING:
    from h3sim.page.model import Page


def graph_of(page: Page) -> nx.DiGraph[str]:
    """Return the graph: an edge, labelled `at`, from each parent to each child.

    Graph attributes: `name`, the name of the page, and `roots`, the ids of its roots.
    """
    roots = [page.resources[root].id for root in page.roots]
    graph: nx.DiGraph[str] = nx.DiGraph(name=page.name, roots=roots)
    for resource in page.resources:
        graph.add_node(resource.id, kind=resource.kind.value, bytes=resource.size_bytes)
    for resource in page.resources:
        if resource.discovered is not None and resource.discovered.by is not None:
            graph.add_edge(resource.discovered.by, resource.id, at=resource.discovered.at.value)
    return graph
