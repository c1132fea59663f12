"""What a tree looks like: as text, and as a graph of networkx."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from h3sim.signals import ORPHANS

if TYPE_CHECKING:
    import networkx

    from h3sim.schedulers.tree.node import Node

__all__ = ["ROOT", "as_networkx", "as_text"]

ROOT = "root"
"""What the root is called in a graph; the others go by their ids."""

_LEVELS_SHOWN = 40
"""Deeper levels are counted: an exclusive chain is as deep as a page has resources, and each level
moves the text three columns to the right."""

if TYPE_CHECKING:
    Graph: TypeAlias = networkx.DiGraph[int | str]


def as_text(root: Node) -> str:
    """Return a line for each node, children in their order below their parent."""
    lines = [ROOT]
    # Without recursion: the lines before which a node stands, and whether it is the last child.
    waiting = _children_of(root, "")
    while waiting:
        node, before, is_last = waiting.pop()
        lines.append(f"{before}{'└─ ' if is_last else '├─ '}{_line(node)}")
        below = before + ("   " if is_last else "│  ")
        if node.children and len(below) >= 3 * _LEVELS_SHOWN:
            lines.append(f"{below}└─ ... {_n_below(node):,} more below")
            continue
        waiting += _children_of(node, below)
    return "\n".join(lines)


def _children_of(node: Node, before: str) -> list[tuple[Node, str, bool]]:
    """Return the children, last first, as `as_text` takes them from the end."""
    children = list(node.children.values())
    return [(child, before, child is children[-1]) for child in reversed(children)]


def _line(node: Node) -> str:
    words = f"{_kind(node)} {node.id}, weight {node.weight}"
    if node.id == ORPHANS:
        words = "the orphan placeholder"
    states = {"has data": node.has_data, "closed": node.is_closed, "idle": _is_idle(node)}
    return ", ".join([words, *(state for state, holds in states.items() if holds)])


def _is_idle(node: Node) -> bool:
    return node.is_implied or node.is_idle


def _kind(node: Node) -> str:
    return "placeholder" if node.is_placeholder else "stream"


def _n_below(node: Node) -> int:
    count, waiting = 0, [node]
    while waiting:
        below = waiting.pop().children
        count += len(below)
        waiting += below.values()
    return count


def as_networkx(root: Node) -> Graph:
    """Return the graph that `TreeScheduler.to_networkx` describes."""
    import networkx as nx  # on use: a load needs no graph

    graph: Graph = nx.DiGraph()
    graph.add_node(ROOT)
    waiting = [root]
    while waiting:
        parent = waiting.pop()
        for place, node in enumerate(parent.children.values()):
            graph.add_node(
                node.id,
                weight=node.weight,
                active=node.has_data,
                exclusive=node.is_exclusive,
                place=place,
                closed=node.is_closed,
                idle=_is_idle(node),
            )
            graph.add_edge(ROOT if parent is root else parent.id, node.id)
            waiting.append(node)
    return graph
