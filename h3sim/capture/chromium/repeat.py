"""Holds several recordings of one page against each other, and takes the middle of their times."""

from __future__ import annotations

import statistics
from dataclasses import replace
from typing import TYPE_CHECKING

from h3sim.page import FLAGS, Page, Resource

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["differences", "graph_of", "merged"]

Row = tuple[object, ...]


def graph_of(page: Page) -> dict[str, Row]:
    """Return what must not change from one recording to the next, per id: kind, parent, flags."""
    rows: dict[str, Row] = {}
    for resource in page.resources:
        found = resource.discovered
        trigger = (found.by, found.at.value) if found is not None else None
        flags = tuple(name for name, attribute in FLAGS.items() if getattr(resource, attribute))
        rows[resource.id] = (resource.kind.value, trigger, flags, resource.fetchpriority.value)
    return rows


def merged(pages: Sequence[Page]) -> tuple[Page, int]:
    """Return one page of several recordings, and the place of the recording that it follows.

    Its graph, sizes and order are those of the first recording whose graph is the most frequent;
    its times are the medians over the recordings with that graph.
    """
    graphs = [graph_of(page) for page in pages]
    # Of equally frequent ones the first.
    index = max(range(len(pages)), key=lambda n: (graphs.count(graphs[n]), -n))
    alike = [page for page, graph in zip(pages, graphs, strict=True) if graph == graphs[index]]
    page = pages[index]
    return replace(page, resources=tuple(_middle(r, alike) for r in page.resources)), index


def _middle(resource: Resource, pages: Sequence[Page]) -> Resource:
    same = [page.resources[page.index[resource.id]] for page in pages]
    found = resource.discovered
    if found is not None:
        delays = [r.discovered.delay_ns for r in same if r.discovered is not None]
        found = replace(found, delay_ns=statistics.median_low(delays))
    return replace(
        resource,
        discovered=found,
        # The lower of two middles: a time that was recorded, and whole.
        parse_ns=statistics.median_low([r.parse_ns for r in same]),
        execute_ns=statistics.median_low([r.execute_ns for r in same]),
        server_ns=statistics.median_low([r.server_ns for r in same]),
    )


def differences(pages: Sequence[Page], index: int) -> list[str]:
    """Return a line for each resource whose facts are not the same in all recordings."""
    graphs = [graph_of(page) for page in pages]
    chosen = graphs[index]
    lines = []
    for id_ in dict.fromkeys(id_ for graph in graphs for id_ in graph):
        rows = [graph[id_] for graph in graphs if id_ in graph]
        odd = next((row for row in rows if row != chosen.get(id_)), None)
        if len(rows) < len(graphs):
            lines.append(f"{id_}: in {len(rows)} of {len(graphs)} recordings")
        elif odd is not None:
            said = (" ".join(str(part) for part in row if part) for row in (chosen[id_], odd))
            lines.append(f"{id_}: {' or '.join(said)}")
    return lines
