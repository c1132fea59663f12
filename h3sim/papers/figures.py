"""The papers' figures, drawn from reproduced loads."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

from h3sim.load import resolve_pages, simulate
from h3sim.metrics import SAMPLE_MS
from h3sim.page import Page
from h3sim.papers.minor_studies import METRICS, NEAR_MS, TITLES, cells_of
from h3sim.papers.sander import title as title_of
from h3sim.reporting import LoadPlots, StudyPlots
from h3sim.reporting.labels import Interval, listed, plain, spreads_of, with_intervals
from h3sim.reporting.output import (
    ShownFigure,
    plot_function,
    root_figure,
    save_figure,
    set_alt_text,
)
from h3sim.reporting.style import SMALL, line
from h3sim.study.results import Results

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path
    from typing import Unpack

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from h3sim.load import Load
    from h3sim.papers.reproduce import ExperimentRun, Reproduction
    from h3sim.reporting.style import FigureStyle


_PANEL_WIDTH_IN, _PANEL_HEIGHT_IN, _MARGIN_IN = 3.4, 3.0, 1.0
_CHANGED_COLUMNS = (("speed_index_ms", "SpeedIndex"), ("hol_sander_stream_bytes", "bytes blocked"))
"""Columns of the changes that Sander 2022 shows, with their titles."""
_MAX_SHOWN_PERCENT = 150
"""Right end of the axis of changes."""
_MIN_COMPARISONS = 3
"""Fewest numbers of a paper that are drawn beside those of h3sim."""
_FIG_8_SCHEMES = ("rr", "fifo", "dfifo", "firefox", "p+", "s+", "spdyrr", "bucket", "bucket-html")


def draw_all(
    reproduction: Reproduction,
    folder: Path,
    *,
    file_format: str = "png",
    **style: Unpack[FigureStyle],
) -> list[Path]:
    """Draw each experiment into *folder*, and return the files that were written.

    They are named after the experiment and the *file_format* (png, svg, pdf). An experiment without
    a figure has none. Equal figures are written as equal bytes.
    """
    written = []
    for name, run in reproduction.runs.items():
        figure = figure_of(run, **style)
        if figure is not None:
            path = folder / f"{name}.{file_format}"
            save_figure(figure, path)
            written.append(path)
    return written


@plot_function
def figure_of(run: ExperimentRun, **style: Unpack[FigureStyle]) -> Figure | None:
    """Return the figure of one experiment, as in its paper; None if there is none."""
    results = Results.of(run.loads.rows, axes=run.axes)
    match run.experiment.name:
        case "marx-2019-fig-8":
            return _multiplexing([_simulate("davies-meenan", scheme=s) for s in _FIG_8_SCHEMES])
        case "marx-2019-fig-11":
            loads = [_simulate("davies-meenan", scheme=scheme) for scheme in ("bucket", "rr")]
            return root_figure(LoadPlots(loads).byte_index(sample_ms=SAMPLE_MS))
        case "marx-2019-fig-12":
            unbuffered = StudyPlots(results.filter(send_buffer_kb=0))
            return _with_fixed_legend(unbuffered.scatter("byte_index_sampled_atf_ms"))
        case "marx-2019-fig-13":
            network = "marx-2019-jitter"
            pairs = itertools.product(("rr", "fifo"), ("quic", "tcp"))
            return _multiplexing(
                [
                    _simulate("davies-meenan", scheme=scheme, transport=transport, network=network)
                    for scheme, transport in pairs
                ]
            )
        case "marx-2019-buffers":
            refilled = StudyPlots(results.filter(send_buffer_refill=(None, "continuous")))
            return _with_fixed_legend(refilled.buffers("byte_index_sampled_atf_ms"))
        case "koshiba-2016":
            return _waterfalls(run)
        case "sander-2022-fig-7":
            plots = StudyPlots(results)
            return root_figure(plots.correlations("speed_index_ms", "hol_sander_stream_bytes"))
        case "loss-map":
            return _draw_loss_map(run)
        case name if name.startswith("sander-2022-fig-") and name != "sander-2022-fig-4":
            return _draw_changes(run)
    return _draw_comparison(run)


def _simulate(page_name: str, **options: str) -> Load:
    (page,) = resolve_pages(page_name)
    return simulate(page, **options)  # type: ignore[arg-type]


def _with_fixed_legend(ax: Axes) -> Figure:
    """Return the figure with its legend in a corner, as the search for "best" takes long."""
    legend = ax.get_legend()
    if legend is not None:
        legend.set_loc("lower left")
    return root_figure(ax)


def _multiplexing(loads: Sequence[Load]) -> Figure:
    return root_figure(LoadPlots(loads).multiplexing())


def _waterfalls(run: ExperimentRun) -> Figure:
    """Draw Koshiba's two waterfalls, without and with priorities: the loads that are judged."""
    figure = _new_figure(2, 2.4 * _PANEL_WIDTH_IN, 2 * _PANEL_HEIGHT_IN)
    titles = {"fifo": "without priorities", "chrome-50-ats": "with priorities"}
    points = {
        point.scheme.name: point
        for point in run.experiment.study(full=True).design
        if point.options["rtt_ms"] == NEAR_MS
    }
    for ax, (scheme, title) in zip(figure.subplots(1, 2), titles.items(), strict=True):
        point = points[scheme]
        assert isinstance(point.page, Page)  # noqa: S101 - no study of header lists has a waterfall
        load = simulate(point.page, scheme=point.scheme, seed=point.seed, **point.options)
        LoadPlots([load]).waterfall(ax)
        ax.set_title("", loc="left")
        ax.set_title(title)
        ax.set_xlabel("time since navigation start in ms")  # the guide is as wide as both panels
    return figure


def _draw_changes(run: ExperimentRun) -> Figure:
    """Draw the cumulative changes of each cell: SpeedIndex above, bytes blocked below."""
    networks = run.loads.distinct("network")
    figure = _new_figure(len(networks), _PANEL_WIDTH_IN, 2 * _PANEL_HEIGHT_IN)
    grid = figure.subplots(2, len(networks), squeeze=False, sharey=True)
    for (column, caption), axes in zip(_CHANGED_COLUMNS, grid, strict=True):
        for network, ax in zip(networks, axes, strict=True):
            of_network = run.loads.where(network=network)
            base = of_network.where(scheme="sander-chrome")
            spreads = {}
            for number, scheme in enumerate(of_network.schemes[1:]):
                deltas = of_network.where(scheme=scheme).deltas(base, column)
                values = sorted(100 * value for value in deltas.values())
                name = scheme.removeprefix("sander-")
                spreads[name] = values
                look = line(number)
                ax.step(
                    # Cut at the end of the axis, so that pages far out do not change the file.
                    [min(value, _MAX_SHOWN_PERCENT) for value in values],
                    [(index + 1) / len(values) for index in range(len(values))],
                    where="post",
                    color=look.color,
                    linestyle=look.linestyle,
                    label=name,
                )
            ax.axvline(0, color="0.6", linewidth=0.8)
            ax.set_xlim(-100, _MAX_SHOWN_PERCENT)
            ax.set_xlabel(f"change of {caption} in %")
            ax.set_title(title_of(network), fontsize=SMALL + 1)
            subject = f"the share of pages by the change of {caption} in %, {title_of(network)}"
            set_alt_text(ax, f"A line of steps per scheme, {subject}: {spreads_of(spreads)}")
        axes[0].set_ylabel("share of pages")
    grid[0][0].legend(fontsize=SMALL, frameon=False)
    return figure


def _draw_loss_map(run: ExperimentRun) -> Figure:
    """Draw the ratio of each scheme to one response after the other, in a panel per metric."""
    figure = _new_figure(len(METRICS), 1.4 * _PANEL_WIDTH_IN, 2 * _PANEL_HEIGHT_IN)
    for ax, metric in zip(figure.subplots(1, len(METRICS)), METRICS, strict=True):
        cells = [*cells_of(run.loads, metric)]
        first_cell, *_ = cells
        schemes = [name for name in first_cell.ratios if name != "fifo"]
        for number, scheme in enumerate(schemes):
            look: dict[str, Any] = line(number)._asdict() | {"linestyle": "", "markersize": 3.5}
            name = scheme.removeprefix("sander-")
            for index, cell in enumerate(cells):
                ratio = Interval(*cell.ratios[scheme])
                y = index + 0.15 * (number - 2)  # the marks of a cell are spread around its row
                if ratio.ends is not None:
                    ax.plot(ratio.ends, [y, y], color=look["color"], linewidth=1)
                ax.plot(ratio.value, y, **look, label=None if index else name)
        ax.axvline(1, color="0.6", linewidth=0.8)
        ax.set_yticks(range(len(cells)), [plain(cell.name) for cell in cells])
        ax.invert_yaxis()
        ax.set_xscale("log")
        xlabel = f"{TITLES[metric]}: ratio to one response after the other"
        ax.set_xlabel(xlabel)
        ax.legend(fontsize=SMALL, frameon=False)
        ratios = {
            f"{scheme.removeprefix('sander-')} in {cell.name}": Interval(*estimate)
            for cell in cells
            for scheme, estimate in cell.ratios.items()
            if scheme != "fifo"
        }
        set_alt_text(ax, f"A row per cell, a mark per turn, {xlabel}: {with_intervals(ratios)}")
    return figure


def _draw_comparison(run: ExperimentRun) -> Figure | None:
    """Draw the paper's numbers beside those of h3sim; None if there are few."""
    if len(run.comparisons) < _MIN_COMPARISONS:
        return None
    figure = _new_figure(1, 2 * _PANEL_WIDTH_IN, _MARGIN_IN + 0.2 * len(run.comparisons))
    ax = figure.subplots()
    has_intervals = any(estimate.low is not None for _, _, estimate in run.comparisons)
    caption = "h3sim, 95 % interval" if has_intervals else "h3sim"
    for index, (_, paper, estimate) in enumerate(run.comparisons):
        interval, label = Interval(*estimate), None if index else caption
        if interval.ends is not None:
            ax.plot(interval.ends, [index, index], color=line(1).color, linewidth=1.5)
        ax.plot(paper, index, "x", color=line(0).color, label=None if index else "paper")
        ax.plot(interval.value, index, "o", color=line(1).color, markersize=4, label=label)
    ax.set_yticks(range(len(run.comparisons)), [plain(name) for name, _, _ in run.comparisons])
    ax.invert_yaxis()
    ax.legend(fontsize=SMALL, frameon=False)
    ax.set_title(plain(run.experiment.title), fontsize=SMALL + 1, loc="left")
    pairs = listed(
        f"{name} {paper:g}, {estimate.value:.4g}" for name, paper, estimate in run.comparisons
    )
    set_alt_text(ax, f"A row per number, that of the paper and that of h3sim: {pairs}")
    return figure


def _new_figure(n_columns: int, width_in: float, height_in: float) -> Figure:
    """Return a figure with panels of this width in a row."""
    return ShownFigure(figsize=(n_columns * width_in, height_in), layout="constrained")
