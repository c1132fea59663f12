"""The curve of Marx 2019, Fig. 11: the share of bytes that is there, whole resources only."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from h3sim.errors import InputError, NothingToMeasureError, Problem
from h3sim.fitting import decimals_of
from h3sim.plots.labels import folded
from h3sim.plots.style import SMALL, line
from h3sim.units import to_ms

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes

    from h3sim.results import Load
    from h3sim.results.load import Which

__all__ = ["curve", "draw", "shown_set"]

_MARKERS_PER_LINE = 6


def curve(load: Load, which: Which) -> tuple[list[float], list[float]]:
    """Return times in ms and, from each on, the share of bytes in complete resources.

    The first point is the first request, with 0; the last has 1. The area above the steps is the
    ByteIndex. Without a byte to weigh there is no point.
    """
    rows = [row for row in load.timings if row.bytes and (which == "all" or row.above_the_fold)]
    if not rows:
        return [], []
    times_ms, step = np.unique([row.finished_ms for row in rows], return_inverse=True)
    n_bytes = np.bincount(step, weights=[row.bytes for row in rows])
    begin_ms = to_ms(load.trace.requests[0].requested_at_ns)
    shares = np.cumsum(n_bytes) / n_bytes.sum()
    return [begin_ms, *times_ms.tolist()], [0.0, *shares.tolist()]


def shown_set(load: Load, which: Which) -> Which:
    """Return *which*, or "all" where nothing above the fold has a byte.

    Raises:
        InputError: if there is no such set of resources.
    """
    if which not in ("all", "atf"):
        message = f"must be 'all' or 'atf', is {which!r}"
        raise InputError([Problem(key="which", message=message)])
    try:
        load.byte_index(which)
    except NothingToMeasureError:
        return "all"
    return which


def draw(
    ax: Axes,
    loads: Sequence[Load],
    labels: Sequence[str],
    *,
    shown: Which,
    wanted: Which,
    sample_ms: float | None = None,
) -> None:
    """Draw a line per load over the resources *shown*, and name them with their ByteIndexes."""
    indexes = [load.byte_index_or_none(shown, sample_ms=sample_ms) for load in loads]
    decimals = decimals_of(indexes, least=0)
    for number, (load, label, index_ms) in enumerate(zip(loads, labels, indexes, strict=True)):
        times_ms, shares = curve(load, shown)
        if times_ms:
            name = f"{folded(label)}: BI {index_ms:,.{decimals}f} ms"
            _draw_line(ax, number, len(loads), times_ms, shares, name)
    how = "" if sample_ms is None else f", sampled every {sample_ms:g} ms"
    title = _title(shown, wanted, loads[0].page.why_nothing_visible)
    if len(loads) == 1 and ax.get_lines():
        # A legend of one line would lie over it on some page; beside it, it would take its room.
        title += f": {indexes[0]:,.0f} ms{how}"
    ax.set_title(title, fontsize=SMALL + 1, loc="left")
    ax.set_xlabel("time since navigation start in ms", fontsize=SMALL)
    ax.set_ylabel("share of bytes,\nwhole resources only", fontsize=SMALL)
    ax.set_xlim(left=0)
    ax.set_ylim(0, 1.03)
    ax.tick_params(labelsize=SMALL)
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(color="0.9", linewidth=0.6)
    ax.set_axisbelow(True)
    if len(ax.get_lines()) > 1:
        _legend(ax, how)
    elif not ax.get_lines():
        ax.text(0.5, 0.5, "no resource has a byte", ha="center", transform=ax.transAxes)


def _draw_line(
    ax: Axes,
    number: int,
    of: int,
    times_ms: list[float],
    shares: list[float],
    label: str,
) -> None:
    look = line(number)
    # Each line is marked at other points, and where it ends.
    step = max(1, len(times_ms) // _MARKERS_PER_LINE)
    marked = [*range(1 + number * step // of, len(times_ms) - 1, step), len(times_ms) - 1]
    ax.plot(
        times_ms,
        shares,
        drawstyle="steps-post",
        color=look.color,
        linestyle=look.linestyle,
        linewidth=1.2,
        marker=look.marker,
        markevery=marked,
        markersize=4.5,
        markerfacecolor="white",
        label=label,
        clip_on=False,
    )


def _title(shown: Which, wanted: Which, why: str) -> str:
    if shown == "atf":
        return "ByteIndex of the resources above the fold"
    if wanted == "atf":
        return f"ByteIndex of all resources (above the fold: {why})"
    return "ByteIndex of all resources"


def _legend(ax: Axes, how: str) -> None:
    """Name the lines beside them, and *how* their ByteIndexes were taken."""
    ax.legend(
        handles=ax.get_lines(),
        loc="upper left",
        bbox_to_anchor=(1.01, 1.0),
        borderaxespad=0.0,
        fontsize=SMALL,
        title=f"BI: ByteIndex{how.replace(', ', f',{chr(10)}')}",
        title_fontsize=SMALL,
        alignment="left",
        frameon=False,
        handlelength=4,
    )
