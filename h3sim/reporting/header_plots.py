"""HOL delay and compression of header compression schemes, over round-trip times or losses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from h3sim.reporting import output
from h3sim.reporting.labels import ends_of
from h3sim.reporting.style import SMALL, in_style, line

if TYPE_CHECKING:
    import os
    from collections.abc import Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from h3sim.study.header_study import HeaderRow


_PANEL_IN = (3.2, 2.6)
_LEGEND_IN = 1.6
_MEASURES = (
    ("hol_mean_ms", "HOL delay a section in ms"),
    ("ratio", "bytes sent over uncompressed"),
)


def save_header_plot(rows: Sequence[HeaderRow], path: str | os.PathLike[str]) -> None:
    """Write the figure of *rows* to *path*, whose ending says how: .png, .svg or .pdf.

    Raises:
        InputError: if the ending is another, or the file cannot be written.
    """
    output.check_ending(path)
    output.save_figure(header_figure(rows), path)


def header_figure(rows: Sequence[HeaderRow]) -> Figure:
    """Return a panel for each loss and measure, over round-trip times; a line is a scheme.

    With one round-trip time the panels are over losses.
    """
    by_rtt = len({row.rtt_ms for row in rows}) > 1 or len({row.loss for row in rows}) == 1
    losses = list(dict.fromkeys(row.loss for row in rows)) if by_rtt else [None]
    with in_style():
        width, height = _PANEL_IN
        size = (width * len(losses) + _LEGEND_IN, height * len(_MEASURES))
        figure = output.ShownFigure(figsize=size, layout="constrained")
        axes = figure.subplots(len(_MEASURES), len(losses), squeeze=False, sharey="row")
        for index, loss in enumerate(losses):
            shown = [row for row in rows if loss is None or row.loss == loss]
            for ax, (name, label) in zip(axes[:, index], _MEASURES, strict=True):
                lines = _draw(ax, shown, name, by_rtt=by_rtt)
                over = "RTT in ms" if by_rtt else "loss in %"
                given = "" if loss is None else f", with a loss of {100 * loss:g} %"
                output.say(ax, f"A line per scheme, {label} over {over}{given}: {ends_of(lines)}")
                ax.set_title("" if loss is None else f"loss {100 * loss:g} %", fontsize=SMALL)
                ax.set_ylabel("" if index else label, fontsize=SMALL)
        for ax in axes.flat:
            ax.set_ylim(bottom=0)  # once all is drawn: panels of a row share what fits them all
        handles, labels = axes[0, 0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside right upper", fontsize=SMALL, frameon=False)
    return figure


def _draw(
    ax: Axes, rows: Sequence[HeaderRow], name: str, *, by_rtt: bool
) -> dict[str, list[tuple[object, float]]]:
    """Draw a line per scheme, or a bar under a single condition, and return its points."""
    lines: dict[str, list[tuple[object, float]]] = {}
    is_single = len({(row.rtt_ms, row.loss) for row in rows}) == 1
    for number, scheme in enumerate(dict.fromkeys(row.scheme for row in rows)):
        own = [row for row in rows if row.scheme == scheme]
        points = sorted(
            (row.rtt_ms if by_rtt else 100 * row.loss, _value(row, name)) for row in own
        )
        lines[scheme] = [*points]
        look = line(number)
        if is_single:  # a line of one point would show nothing
            ax.bar(scheme, points[0][1], color=look.color, width=0.6, label=scheme)
            continue
        ax.plot(
            [x for x, _ in points],
            [y for _, y in points],
            color=look.color,
            linestyle=look.linestyle,
            marker=look.marker,
            markersize=4.5,
            markerfacecolor="white",
            linewidth=1.2,
            label=scheme,
        )
    if is_single:
        ax.set_xlabel(f"RTT {rows[0].rtt_ms:g} ms", fontsize=SMALL)
        for name_label in ax.get_xticklabels():
            name_label.set(rotation=30, ha="right", rotation_mode="anchor", fontsize=SMALL)
    else:
        ax.set_xlabel("RTT in ms" if by_rtt else "loss in %", fontsize=SMALL)
        ax.set_xlim(left=0)
    ax.grid(color="0.9", linewidth=0.6)
    ax.set_axisbelow(True)
    ax.spines[["top", "right"]].set_visible(False)
    return lines


def _value(row: HeaderRow, name: str) -> Any:
    return getattr(row, name)
