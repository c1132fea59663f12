"""The dependency graph of a page for `networkx`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import networkx as nx

if TYPE_CHECKING:
    from collections.abc import Sequence

    from h3sim.page.resource import Resource

__all__ = ["graph_of"]


def graph_of(name: str, resources: Sequence[Resource]) -> nx.DiGraph[str]:
    """Return the graph: an edge, labelled `at`, from each parent to what it triggers."""
    graph: nx.DiGraph[str] = nx.DiGraph(name=name)
    for resource in resources:
        graph.add_node(resource.id, kind=resource.kind.value, bytes=resource.size_bytes)
    for resource in resources:
        if resource.discovered is not None and resource.discovered.by is not None:
            graph.add_edge(resource.discovered.by, resource.id, at=resource.discovered.at.value)
    return graph
