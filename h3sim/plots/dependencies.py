"""The dependency graph of a page, and the chain of requests that its last resource waited for."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from h3sim.plots import boxes
from h3sim.plots.labels import plain, shortened
from h3sim.plots.style import SMALL

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from matplotlib.axes import Axes

    from h3sim.page import Page, Resource
    from h3sim.plots.palette import Palette
    from h3sim.results import Load

__all__ = ["ResourceBox", "chain_of", "draw", "height_in", "nodes_of"]

_NAME_CHARS = 22
_FOLDED_FROM = 3
"""So many leaves of one kind below one parent share a node."""
_MAX_NODES = 100
_DASHES = {"time": ":", "request": ":", "offset": "-", "complete": "-", "executed": "--"}
_GUIDE = "dotted: asked for with its parent; dashed: once that was executed"
_CHAIN_GUIDE = "red: what the end waited for; "


class ResourceBox(NamedTuple):
    """Resources that share a box: one, or leaves of a kind below one parent.

    *depth* counts the steps from navigation start; *row* is where the box stands, from the top, and
    *left* where, in widths of a column; *parent* is the index of another node. *n_below* counts
    resources below it that have no box.
    """

    resources: tuple[int, ...]
    parent: int | None
    depth: int
    row: float
    left: float
    is_on_chain: bool
    n_below: int = 0


def chain_of(load: Load) -> list[int]:
    """Return the resources that led to the end of the load, first to last, by index in the page.

    Where the browser computed the load they are those of its critical path; else those that
    triggered one another up to the one that was complete last.
    """
    page = load.page
    if load.first_paint_ms is not None:
        ids = dict.fromkeys(step.id for step in load.critical_path() if step.id is not None)
        return [page.index[id_] for id_ in ids]
    last = max(load.timings, key=lambda row: row.finished_ms)
    chain = [page.index[last.id]]
    while (by := _parent(page.resources[chain[-1]])) is not None:
        chain.append(page.index[by])
    return chain[::-1]


def nodes_of(page: Page, chain: Sequence[int] = ()) -> list[ResourceBox]:
    """Return the nodes of the page's graph, parents before their children.

    *chain* are resources that get a node of their own each.
    """
    on_chain = dict.fromkeys(chain)
    nodes = _nodes(page, on_chain, None)
    deepest = max(node.depth for node in nodes)
    # Of large graphs what is deep goes first, but for the chain.
    while len(nodes) > _MAX_NODES and deepest > 1:
        deepest -= 1
        nodes = _nodes(page, on_chain, deepest)
    return nodes


def _nodes(page: Page, on_chain: dict[int, None], deepest: int | None) -> list[ResourceBox]:
    groups: list[tuple[tuple[int, ...], int | None, int]] = []

    def add(resources: tuple[int, ...], parent: int | None, depth: int) -> None:
        number = len(groups)
        is_cut = depth == deepest and resources[0] not in on_chain
        groups.append((resources, parent, _n_below(page, resources) if is_cut else 0))
        folds_all = deepest is not None and depth + 1 >= deepest
        for group in () if is_cut else _groups(page, resources, on_chain, folds_all=folds_all):
            add(group, number, depth + 1)

    for group in _groups(page, (), on_chain):
        add(group, None, 0)
    positions = boxes.positions_of([parent for _, parent, _ in groups])
    return [
        ResourceBox(resources, parent, *at, any(index in on_chain for index in resources), n_below)
        for (resources, parent, n_below), at in zip(groups, positions, strict=True)
    ]


def _n_below(page: Page, resources: Sequence[int]) -> int:
    """Return how many resources those lead to."""
    count, waiting = 0, [*resources]
    while waiting:
        below = page.children.get(waiting.pop(), ())
        count += len(below)
        waiting += below
    return count


def height_in(nodes: Sequence[ResourceBox]) -> float:
    """Return how high the figure of *nodes* is, in inches."""
    return boxes.HEIGHT_IN * (max(node.row for node in nodes) + 1) + boxes.TITLE_IN


def draw(
    ax: Axes,
    page: Page,
    palette: Palette,
    title: str,
    note_of: Callable[[tuple[int, ...]], str],
    *,
    chain: Sequence[int] = (),
) -> None:
    """Draw a box per node from left to right by depth, and a line from each parent.

    *note_of* says what stands below the name of those resources; *chain* is drawn in red.
    """
    nodes = nodes_of(page, chain)
    positions = [boxes.Position(*node[2:5]) for node in nodes]
    for node, at in zip(nodes, positions, strict=True):
        resources = [page.resources[index] for index in node.resources]
        if node.parent is not None:
            discovered = resources[0].discovered
            dashes = "-" if discovered is None else _DASHES[discovered.at.value]
            is_chain = nodes[node.parent].is_on_chain and node.is_on_chain
            boxes.draw_edge(ax, positions[node.parent], at, dashes=dashes, is_chain=is_chain)
        is_one = len(resources) == 1
        name = resources[0].id if is_one else f"{len(resources)} x {resources[0].kind.value}"
        more = f", and {node.n_below} below" if node.n_below else ""
        text = f"{plain(shortened(name, _NAME_CHARS))}\n{note_of(node.resources)}{more}"
        look = palette.look_of_all(node.resources)
        boxes.draw_box(ax, at, text, look, is_chain=node.is_on_chain)
    boxes.set_limits(ax, positions)
    guide = _CHAIN_GUIDE * bool(chain) + _GUIDE
    ax.set_title(f"{title}\n{guide}", fontsize=SMALL + 1, loc="left")


def _parent(resource: Resource) -> str | None:
    return None if resource.discovered is None else resource.discovered.by


def _groups(
    page: Page, parents: tuple[int, ...], chain: dict[int, None], *, folds_all: bool = False
) -> Iterator[tuple[int, ...]]:
    """Yield what stands below a node (below none: the first ones), in the order of the page."""
    if len(parents) > 1:
        return
    wanted = page.resources[parents[0]].id if parents else None
    triggers = dict.fromkeys(map(_parent, page.resources))
    children = [i for i, r in enumerate(page.resources) if _parent(r) == wanted]
    leaves = [
        i
        for i in children
        if i not in chain and (folds_all or page.resources[i].id not in triggers)
    ]
    counts = Counter(page.resources[i].kind for i in leaves)
    done: dict[object, None] = {}
    for index in children:
        kind = page.resources[index].kind
        if index not in leaves or counts[kind] < _FOLDED_FROM:
            yield (index,)
        elif kind not in done:
            done[kind] = None
            yield tuple(i for i in leaves if page.resources[i].kind is kind)
