"""Writes a dependency tree as a line of text."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from h3sim.schedulers import TreeScheduler

__all__ = ["drawn"]


def drawn(
    tree: TreeScheduler, names: Mapping[int, str] | None = None, *, weights: bool = False
) -> str:
    """Return the tree as nested brackets, children in their order: "0(4 8(12))".

    With *names* a node goes by its name, with *weights* its weight follows: "0:16(4:32)".
    """
    graph = tree.to_networkx()

    def text(node: int | str) -> str:
        word = names[node] if names and isinstance(node, int) else str(node)
        weight = f":{graph.nodes[node]['weight']}" if weights else ""
        return word + weight + (f"({below(node)})" if graph.succ[node] else "")

    def below(node: int | str) -> str:
        children = sorted(graph.succ[node], key=lambda child: graph.nodes[child]["position"])
        return " ".join(text(child) for child in children)

    return below("root")
