"""Two loads of one page, resource by resource: what came sooner with the second, what later."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from h3sim.plots.labels import ATF_MARK, plain, shortened
from h3sim.plots.style import SMALL

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes

    from h3sim.results import Load

__all__ = ["MAX_ROWS", "Delta", "deltas_of", "draw", "shown", "unshared"]

MAX_ROWS = 60
"""Of more resources those are shown that moved most."""
_SOONER, _LATER = "#0b4f8c", "#d4622a"
_BAR_HEIGHT = 0.64
_MOST_NAMED = 4


class Delta(NamedTuple):
    """When a resource was complete in either load; *delta_ms* below 0 is sooner in the second.

    A time is None where a load never asked for the resource. Of variants of a page, *bytes* and the
    rest are those of the first that has it.
    """

    id: str
    kind: str
    bytes: int
    above_the_fold: bool
    first_ms: float | None
    second_ms: float | None
    delta_ms: float | None


def deltas_of(first: Load, second: Load) -> list[Delta]:
    """Return a row per resource: of the first load's page in its order, then what is new.

    Resources of two variants of a page are the same where their ids are.
    """
    times = [{row.id: row.finished_ms for row in load.timings} for load in (first, second)]
    # The first load last, so that its resources count where both have one.
    resources = {each.id: each for load in (second, first) for each in load.page.resources}
    rows = []
    for id_ in dict.fromkeys(each.id for load in (first, second) for each in load.page.resources):
        one, other = (found.get(id_) for found in times)
        delta_ms = None if one is None or other is None else other - one
        own = resources[id_]
        kind, is_above = own.kind.value, own.above_the_fold
        rows.append(Delta(id_, kind, own.size_bytes, is_above, one, other, delta_ms))
    return rows


def unshared(rows: Sequence[Delta]) -> str:
    """Return in words what only one of two loads asked for, "" if nothing.

    >>> unshared([Delta("a.js", "script", 9, False, 3.0, None, None)])
    'only in the first: a.js'
    """
    told = []
    for name, own, other in (("first", 4, 5), ("second", 5, 4)):
        ids = [row.id for row in rows if row[own] is not None and row[other] is None]
        names = ", ".join(plain(shortened(id_)) for id_ in ids[:_MOST_NAMED])
        more = f" and {len(ids) - _MOST_NAMED} more" if len(ids) > _MOST_NAMED else ""
        if ids:
            told.append(f"only in the {name}: {names}{more}")
    return "; ".join(told)


def shown(rows: Sequence[Delta]) -> list[tuple[int, float]]:
    """Return which resources are shown, by index in the page, and how far each moved in ms."""
    moved = [(index, row.delta_ms) for index, row in enumerate(rows) if row.delta_ms is not None]
    kept = sorted(moved, key=lambda item: (-abs(item[1]), item[0]))[:MAX_ROWS]
    return sorted(kept)


def draw(ax: Axes, first: Load, second: Load, names: tuple[str, str]) -> None:
    """Draw a bar per resource: to the left where it was complete sooner in the second load."""
    rows = deltas_of(first, second)
    bars = shown(rows)
    places, values = range(len(bars)), [delta_ms for _, delta_ms in bars]
    ax.barh(
        places,
        values,
        height=_BAR_HEIGHT,
        color=[_SOONER if value <= 0 else _LATER for value in values],
        # Told apart in grey print, too.
        hatch=["" if value <= 0 else "/////" for value in values],
        edgecolor="white",
        linewidth=0,
    )
    for place, value in zip(places, values, strict=True):
        # Towards the middle no other bar is in the way.
        ax.annotate(
            f"{value:+,.0f}" if round(value) else "0",
            (0, place),
            xytext=(4 if value <= 0 else -4, 0),
            textcoords="offset points",
            ha="left" if value <= 0 else "right",
            va="center_baseline",
            fontsize=SMALL - 1,
        )
    ax.axvline(0, color="0.2", linewidth=0.8)
    widest = max(map(abs, values), default=0.0) or 1.0
    ax.set_xlim(-1.05 * widest, 1.05 * widest)
    ax.set_ylim(max(1, len(bars)) - 0.4, -0.6)
    ax.set_yticks(places, [_label(rows[index], index) for index, _ in bars])
    ax.tick_params(labelsize=SMALL)
    ax.tick_params(axis="y", length=0)
    ax.grid(axis="x", color="0.9", linewidth=0.6)
    ax.set_axisbelow(True)
    ax.spines[["top", "right", "left"]].set_visible(False)
    one, other = names
    pages = dict.fromkeys(plain(shortened(load.page.name, 40)) for load in (second, first))
    ax.set_title(
        f"{' against '.join(pages)}: {other} against {one}", fontsize=SMALL + 1, loc="left"
    )
    n_both = sum(row.delta_ms is not None for row in rows)
    cut = f"; the {len(bars)} of {n_both} that moved most" if len(bars) < n_both else ""
    label = f"complete so many ms sooner (left) or later (right) with {other}"
    own = unshared(rows)
    ax.set_xlabel(f"{label}{cut}\n\u25b2 above the fold{f'; {own}' if own else ''}", fontsize=SMALL)


def _label(row: Delta, index: int) -> str:
    return f"{index + 1}  {plain(shortened(row.id))}{f' {ATF_MARK}' * row.above_the_fold}"
