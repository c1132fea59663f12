"""The papers' figures, drawn from replicated loads."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

from h3sim.metrics import SAMPLE_MS
from h3sim.papers.minor_studies import METRICS, TITLES, cells_of
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
from h3sim.study import resolve_pages, simulate
from h3sim.study.results import Results

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path
    from typing import Unpack

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from h3sim.papers.reproduce import ExperimentRun, Reproduction
    from h3sim.reporting.style import FigureStyle
    from h3sim.results import Load


_CELL_IN, _HEIGHT_IN, _MARGIN_IN = 3.4, 3.0, 1.0
_CHANGES = (("speed_index_ms", "SpeedIndex"), ("hol_sander_stream_bytes", "bytes blocked"))
_CDF_PERCENT = 100
_MIN_COMPARISONS = 3
"""So many numbers of the paper make a figure of their own."""
_STRIPS = ("rr", "fifo", "dfifo", "firefox", "p+", "s+", "spdyrr", "bucket", "bucket-html")


def draw_all(
    reproduction: Reproduction,
    folder: Path,
    *,
    file_format: str = "png",
    **style: Unpack[FigureStyle],
) -> list[Path]:
    """Draw each experiment into *folder* and return the files that were written.

    They are called NAME.png, or as the other *file_format* says (svg, pdf). An experiment without
    anything to draw has none. Equal figures are equal bytes.
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
    """Return the figure of one experiment, as its paper has it; None where there is none."""
    results = Results.of(run.loads.rows, axes=run.axes)
    match run.experiment.name:
        case "marx-2019-fig-8":
            return _lanes([_again("davies-meenan", scheme=scheme) for scheme in _STRIPS])
        case "marx-2019-fig-11":
            loads = [_again("davies-meenan", scheme=scheme) for scheme in ("bucket", "rr")]
            return root_figure(LoadPlots(loads).byte_index(sample_ms=SAMPLE_MS))
        case "marx-2019-fig-12":
            unbuffered = StudyPlots(results.filter(send_buffer_kb=0))
            return _still(unbuffered.scatter("byte_index_sampled_atf_ms"))
        case "marx-2019-fig-13":
            over = {"network": "marx-2019-jitter"}
            pairs = itertools.product(("rr", "fifo"), ("quic", "tcp"))
            return _lanes(
                [_again("davies-meenan", scheme=s, transport=t, **over) for s, t in pairs]
            )
        case "marx-2019-buffers":
            refilled = StudyPlots(results.filter(send_buffer_refill=(None, "continuous")))
            return _still(refilled.buffers("byte_index_sampled_atf_ms"))
        case "koshiba-2016":
            return _waterfalls()
        case "sander-2022-fig-7":
            plots = StudyPlots(results)
            return root_figure(plots.correlations("speed_index_ms", "hol_sander_stream_bytes"))
        case "loss-map":
            return _map(run)
        case name if name.startswith("sander-2022-fig-") and name != "sander-2022-fig-4":
            return _changes(run)
    return _paper_comparison(run)


def _again(page: str, **options: str) -> Load:
    (found,) = resolve_pages(page)
    return simulate(found, **options)  # type: ignore[arg-type]


def _still(ax: Axes) -> Figure:
    """Return the figure of a study with its legend in a corner: "best" would take a search."""
    legend = ax.get_legend()
    if legend is not None:
        legend.set_loc("lower left")
    return root_figure(ax)


def _lanes(loads: Sequence[Load]) -> Figure:
    return root_figure(LoadPlots(loads).multiplexing())


def _waterfalls() -> Figure:
    """Draw Koshiba's two waterfalls, without and with priorities, at their rate."""
    figure = _new(2, 2.4 * _CELL_IN, 2 * _HEIGHT_IN)
    titles = {"fifo": "without priorities", "ats": "with priorities"}
    for ax, (scheme, title) in zip(figure.subplots(1, 2), titles.items(), strict=True):
        load = simulate(
            "http2rulez", scheme=scheme, transport="tcp", cc="constant", rate_mbps=22, rtt_ms=2
        )
        LoadPlots([load]).waterfall(ax)
        ax.set_title("", loc="left")
        ax.set_title(title)
        ax.set_xlabel("time since navigation start in ms")  # the guide is as wide as both panels
    return figure


def _changes(run: ExperimentRun) -> Figure:
    """Draw the cumulative changes of each cell: SpeedIndex above, bytes blocked below."""
    networks = run.loads.distinct("network")
    figure = _new(len(networks), _CELL_IN, 2 * _HEIGHT_IN)
    grid = figure.subplots(2, len(networks), squeeze=False, sharey=True)
    for (column, caption), axes in zip(_CHANGES, grid, strict=True):
        for network, ax in zip(networks, axes, strict=True):
            here = run.loads.where(network=network)
            base = here.where(scheme="sander-chrome")
            spreads = {}
            for number, scheme in enumerate(here.schemes[1:]):
                deltas = here.where(scheme=scheme).deltas(base, column)
                values = sorted(_CDF_PERCENT * value for value in deltas.values())
                name = scheme.removeprefix("sander-")
                spreads[name] = values
                look = line(number)
                ax.step(
                    # Cut where the axis is: one page far out would not change what is seen.
                    [min(value, 1.5 * _CDF_PERCENT) for value in values],
                    [(index + 1) / len(values) for index in range(len(values))],
                    where="post",
                    color=look.color,
                    linestyle=look.linestyle,
                    label=name,
                )
            ax.axvline(0, color="0.6", linewidth=0.8)
            ax.set_xlim(-100, 150)
            ax.set_xlabel(f"change of {caption} in %")
            ax.set_title(title_of(network), fontsize=SMALL + 1)
            what = f"the share of pages by the change of {caption} in %, {title_of(network)}"
            set_alt_text(ax, f"A line of steps per scheme, {what}: {spreads_of(spreads)}")
        axes[0].set_ylabel("share of pages")
    grid[0][0].legend(fontsize=SMALL, frameon=False)
    return figure


def _map(run: ExperimentRun) -> Figure:
    """Draw each turn's ratio to one response after the other, a panel a metric, a line a turn."""
    figure = _new(len(METRICS), 1.4 * _CELL_IN, 2 * _HEIGHT_IN)
    for ax, metric in zip(figure.subplots(1, len(METRICS)), METRICS, strict=True):
        cells = [*cells_of(run.loads, metric)]
        for number, scheme in enumerate(name for name in cells[0].ratios if name != "fifo"):
            look: dict[str, Any] = line(number)._asdict() | {"linestyle": "", "markersize": 3.5}
            name = scheme.removeprefix("sander-")
            for index, cell in enumerate(cells):
                found = Interval(*cell.ratios[scheme])
                at = index + 0.15 * (number - 2)
                if found.ends is not None:
                    ax.plot(found.ends, [at, at], color=look["color"], linewidth=1)
                ax.plot(found.value, at, **look, label=None if index else name)
        ax.axvline(1, color="0.6", linewidth=0.8)
        ax.set_yticks(range(len(cells)), [plain(cell.name) for cell in cells])
        ax.invert_yaxis()
        ax.set_xscale("log")
        what = f"{TITLES[metric]}: ratio to one response after the other"
        ax.set_xlabel(what)
        ax.legend(fontsize=SMALL, frameon=False)
        turns = {
            f"{scheme.removeprefix('sander-')} in {cell.name}": Interval(*found)
            for cell in cells
            for scheme, found in cell.ratios.items()
            if scheme != "fifo"
        }
        set_alt_text(ax, f"A row per cell, a mark per turn, {what}: {with_intervals(turns)}")
    return figure


def _paper_comparison(run: ExperimentRun) -> Figure | None:
    """Draw the paper's numbers beside those that came out, where there are some."""
    if len(run.comparisons) < _MIN_COMPARISONS:
        return None
    figure = _new(1, 2 * _CELL_IN, _MARGIN_IN + 0.2 * len(run.comparisons))
    ax = figure.subplots()
    has_intervals = any(found.low is not None for _, _, found in run.comparisons)
    caption = "h3sim, 95 % interval" if has_intervals else "h3sim"
    for index, (_, paper, estimate) in enumerate(run.comparisons):
        found, label = Interval(*estimate), None if index else caption
        if found.ends is not None:
            ax.plot(found.ends, [index, index], color=line(1).color, linewidth=1.5)
        ax.plot(paper, index, "x", color=line(0).color, label=None if index else "paper")
        ax.plot(found.value, index, "o", color=line(1).color, markersize=4, label=label)
    ax.set_yticks(range(len(run.comparisons)), [plain(name) for name, _, _ in run.comparisons])
    ax.invert_yaxis()
    ax.legend(fontsize=SMALL, frameon=False)
    ax.set_title(plain(run.experiment.title), fontsize=SMALL + 1, loc="left")
    pairs = listed(f"{name} {paper:g}, {found.value:.4g}" for name, paper, found in run.comparisons)
    set_alt_text(ax, f"A row per number, that of the paper and that of h3sim: {pairs}")
    return figure


def _new(columns: int, width_in: float, height_in: float) -> Figure:
    return ShownFigure(figsize=(columns * width_in, height_in), layout="constrained")
