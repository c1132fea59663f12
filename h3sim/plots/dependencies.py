"""The dependency graph of a page, and the chain of requests that its last resource waited for."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from h3sim.plots.labels import plain, shortened
from h3sim.plots.style import SMALL

if TYPE_CHECKING:
    from collections.abc import Iterator

    from matplotlib.axes import Axes

    from h3sim.page import Page, Resource
    from h3sim.plots.palette import Palette
    from h3sim.results import Load

__all__ = ["Node", "chain_of", "draw", "nodes_of"]

_NAME_CHARS = 22
_FOLDED_FROM = 3
"""So many leaves of one kind below one parent share a node."""
_WIDTH, _HEIGHT = 0.74, 0.72
_COLUMNS = 6
"""Deeper graphs are drawn as an outline: a box a line, indented a little."""
_CHAIN = "#c00000"
_DASHES = {"time": ":", "request": ":", "offset": "-", "complete": "-", "executed": "--"}


class Node(NamedTuple):
    """Resources that share a box: one, or leaves of a kind below one parent.

    *depth* counts the steps from navigation start; *row* is where the box stands, from the top, and
    *left* where, in widths of a column; *parent* is the index of another node.
    """

    resources: tuple[int, ...]
    parent: int | None
    depth: int
    row: float
    left: float
    is_on_chain: bool


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


def nodes_of(load: Load) -> list[Node]:
    """Return the nodes of the page's graph, parents before their children."""
    page = load.page
    chain = dict.fromkeys(chain_of(load))
    nodes: list[Node] = []
    next_row = 0.0

    def add(resources: tuple[int, ...], parent: int | None, depth: int) -> int:
        nonlocal next_row
        number = len(nodes)
        is_on_chain = any(index in chain for index in resources)
        nodes.append(Node(resources, parent, depth, next_row, depth, is_on_chain))
        rows = [add(group, number, depth + 1) for group in _groups(page, resources, chain)]
        if rows:
            # A parent stands level with its first child, so that chains run straight.
            nodes[number] = nodes[number]._replace(row=nodes[rows[0]].row)
        else:
            next_row += 1
        return number

    for group in _groups(page, (), chain):
        add(group, None, 0)
    return nodes if _depth(nodes) < _COLUMNS else _outline(nodes)


def _depth(nodes: list[Node]) -> int:
    return max(node.depth for node in nodes)


def _outline(nodes: list[Node]) -> list[Node]:
    """Return *nodes* a line each, the deepest of them in the last column."""
    step = (_COLUMNS - 1) / _depth(nodes)
    return [node._replace(row=float(row), left=node.depth * step) for row, node in enumerate(nodes)]


def draw(ax: Axes, load: Load, palette: Palette) -> None:
    """Draw a box per node from left to right by depth, and a line from each parent."""
    nodes = nodes_of(load)
    finished = {row.id: row.finished_ms for row in load.timings}
    for node in nodes:
        if node.parent is not None:
            _draw_edge(ax, load.page, nodes[node.parent], node)
        _draw_box(ax, load, palette, node, finished)
    ax.set_xlim(-0.05, max(3.0, max(node.left for node in nodes)) + _WIDTH + 0.05)
    ax.set_ylim(max(node.row for node in nodes) + 0.6, -0.6)
    ax.set_axis_off()
    names = (load.page.name, load.scheme.name, load.network.name)
    page, scheme, network = (plain(shortened(name, 40)) for name in names)
    guide = "red: what the end waited for; dotted: asked for with its parent, dashed: once executed"
    ax.set_title(
        f"What asked for what on {page}, and when it was complete with {scheme} over {network}\n"
        f"{guide}",
        fontsize=SMALL + 1,
        loc="left",
    )


def _parent(resource: Resource) -> str | None:
    return None if resource.discovered is None else resource.discovered.by


def _groups(
    page: Page, parents: tuple[int, ...], chain: dict[int, None]
) -> Iterator[tuple[int, ...]]:
    """Yield what stands below a node (below none: the first ones), in the order of the page."""
    if len(parents) > 1:
        return
    wanted = page.resources[parents[0]].id if parents else None
    triggers = dict.fromkeys(map(_parent, page.resources))
    children = [i for i, r in enumerate(page.resources) if _parent(r) == wanted]
    leaves = [i for i in children if page.resources[i].id not in triggers and i not in chain]
    counts = Counter(page.resources[i].kind for i in leaves)
    done: dict[object, None] = {}
    for index in children:
        kind = page.resources[index].kind
        if index not in leaves or counts[kind] < _FOLDED_FROM:
            yield (index,)
        elif kind not in done:
            done[kind] = None
            yield tuple(i for i in leaves if page.resources[i].kind is kind)


def _draw_edge(ax: Axes, page: Page, parent: Node, node: Node) -> None:
    discovered = page.resources[node.resources[0]].discovered
    style = "-" if discovered is None else _DASHES[discovered.at.value]
    is_chain = parent.is_on_chain and node.is_on_chain
    if node.left - parent.left < 1:
        # In an outline: down from the left end of the parent, and into the child.
        middle = (parent.left + node.left) / 2
        xs = [middle, middle, node.left]
        ys = [parent.row + _HEIGHT / 2, node.row, node.row]
    else:
        start, middle = parent.left + _WIDTH, parent.left + (1 + _WIDTH) / 2
        xs, ys = [start, middle, middle, node.left], [parent.row, parent.row, node.row, node.row]
    ax.plot(
        xs,
        ys,
        color=_CHAIN if is_chain else "0.55",
        linewidth=2.0 if is_chain else 0.8,
        linestyle=style,
        zorder=2 if is_chain else 1,
        solid_joinstyle="round",
    )


def _draw_box(
    ax: Axes, load: Load, palette: Palette, node: Node, finished: dict[str, float]
) -> None:
    from matplotlib.patches import Rectangle

    resources = [load.page.resources[index] for index in node.resources]
    look = palette.look(palette.groups[node.resources[0]])
    edge, width = (_CHAIN, 2.0) if node.is_on_chain else ("0.4", 0.8)
    low = node.row - _HEIGHT / 2
    frame = Rectangle((node.left, low), _WIDTH, _HEIGHT, facecolor="white", edgecolor=edge)
    frame.set(linewidth=width, zorder=3)
    ax.add_patch(frame)
    # A band of its colour beside the text, which stays readable on any colour.
    band = Rectangle((node.left, low), 0.045, _HEIGHT, facecolor=look.face, edgecolor=look.ink)
    band.set(hatch=look.hatch, linewidth=0, zorder=4)
    ax.add_patch(band)
    known = [finished[each.id] for each in resources if each.id in finished]
    name = (
        resources[0].id if len(resources) == 1 else f"{len(resources)} x {resources[0].kind.value}"
    )
    when = f"{max(known):,.0f} ms" if known else "not asked for"
    ax.text(
        node.left + 0.06,
        node.row,
        f"{plain(shortened(name, _NAME_CHARS))}\n{when}",
        fontsize=SMALL - 1.5,
        va="center",
        linespacing=1.05,
        zorder=5,
    )
