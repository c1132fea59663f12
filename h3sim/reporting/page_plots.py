"""Figures of a page, without a load: its dependencies, and the bytes of each kind."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from h3sim.reporting import trees
from h3sim.reporting.labels import plain, shortened, tree_palette
from h3sim.reporting.output import SavedPlots, new_axes, new_figure, plot_methods, set_alt_text
from h3sim.reporting.style import SMALL, finish_axes

if TYPE_CHECKING:
    from typing import Unpack

    from matplotlib.axes import Axes

    from h3sim.page import Kind, Page
    from h3sim.reporting.output import ShownFigure
    from h3sim.reporting.style import FigureStyle


_ROW_HEIGHT_IN, _FRAME_HEIGHT_IN = 0.26, 0.9
"""Heights of a row of bars, and of title and axis."""
_BAR_HEIGHT = 0.64
"""Share of its row that a bar fills."""


class KindRow(NamedTuple):
    """Number and bytes of the resources of a kind, with their bytes above the fold."""

    kind: Kind
    n_resources: int
    n_bytes: int
    n_bytes_above_the_fold: int


def kinds_of(page: Page) -> list[KindRow]:
    """Return a row per kind, the heaviest first."""
    rows = []
    for kind in dict.fromkeys(resource.kind for resource in page.resources):
        resources = [resource for resource in page.resources if resource.kind is kind]
        above = sum(resource.size_bytes for resource in resources if resource.above_the_fold)
        rows.append(
            KindRow(kind, len(resources), sum(each.size_bytes for each in resources), above)
        )
    return sorted(rows, key=lambda row: -row.n_bytes)


@plot_methods
class PagePlots(SavedPlots):
    """Figures of a *page*; each method returns the axes that it drew on, `save` writes a file."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self._palette = tree_palette(page)

    def dependencies(self, ax: Axes | None = None, **style: Unpack[FigureStyle]) -> Axes:
        """Draw the dependency graph: a box per resource, to the right of its parent.

        On pages of more than 100 resources, three or more leaves of a kind share one. Returns *ax*,
        or the axes of a new figure.
        """
        nodes = trees.nodes_of(self.page)
        ax = ax or new_axes(trees.height_in(nodes))
        title = f"What asks for what on {self._short_name}"
        trees.draw_dependencies(ax, self.page, self._palette, title, self._describe_size)
        depth = max(node.depth for node in nodes) + 1
        set_alt_text(ax, f"A tree of what asks for what, in {depth} steps.")
        return ax

    def kinds(self, ax: Axes | None = None, **style: Unpack[FigureStyle]) -> Axes:
        """Draw the bytes of each kind of resource, and the part above the fold.

        Returns *ax*, or the axes of a new figure.
        """
        rows = kinds_of(self.page)
        ax = ax or new_axes(self._kinds_height_in)
        above = [row.n_bytes_above_the_fold / 1000 for row in rows]
        below = [row.n_bytes / 1000 - part for row, part in zip(rows, above, strict=True)]
        look: dict[str, Any] = {"height": _BAR_HEIGHT, "edgecolor": "0.2", "linewidth": 0.8}
        bars = ax.barh(range(len(rows)), above, color="#0b4f8c", **look)
        bars.set_label("above the fold")
        bars = ax.barh(range(len(rows)), below, left=above, color="#dbe5f0", **look)
        bars.set_label("the rest")
        weights = []
        for position, row in enumerate(rows):
            n, kb = row.n_resources, row.n_bytes / 1000
            text = f" {n} resource{'s' * (n != 1)}, {kb:,.1f} kB"
            ax.text(kb, position, text, va="center_baseline", fontsize=SMALL)
            weights.append(f"{n} of kind {row.kind.value} with {kb:,.0f} kB")
        ax.set_yticks(range(len(rows)), [row.kind.value for row in rows])
        ax.set_ylim(len(rows) - 0.4, -0.6)
        widest = max((row.n_bytes for row in rows), default=0) / 1000 or 1.0
        ax.set_xlim(0, 1.25 * widest)  # room for the text after the longest bar
        why = self.page.nothing_visible_reason
        note = f"; above the fold: {why}" if why else ""
        title = f"What {self._short_name} weighs: {self.page.title}{note}"
        finish_axes(ax, title=title, x="kB", has_rows=True)
        if not why:
            ax.legend(loc="lower right", fontsize=SMALL, frameon=False)
        set_alt_text(ax, f"A bar per kind: {', '.join(weights)}.")
        return ax

    def figure(self, **style: Unpack[FigureStyle]) -> ShownFigure:
        """Return a new figure of the bytes of each kind, above the dependency graph."""
        graph_in = trees.height_in(trees.nodes_of(self.page))
        heights_in = [self._kinds_height_in, graph_in]
        figure = new_figure(sum(heights_in))
        above, below = figure.subplots(2, height_ratios=heights_in)
        self.kinds(above)
        self.dependencies(below)
        return figure

    def __repr__(self) -> str:
        return f"<Figures of {self.page.name}>"

    @property
    def _short_name(self) -> str:
        return plain(shortened(self.page.name, 60))

    @property
    def _kinds_height_in(self) -> float:
        return _ROW_HEIGHT_IN * len(kinds_of(self.page)) + _FRAME_HEIGHT_IN

    def _describe_size(self, resources: tuple[int, ...]) -> str:
        n_bytes = sum(self.page.resources[index].size_bytes for index in resources)
        return f"{n_bytes / 1000:,.1f} kB"
