"""The papers' figures, drawn from replicated loads."""

from __future__ import annotations

from typing import TYPE_CHECKING

import h3sim.reporting
from h3sim.metrics import SAMPLE_MS
from h3sim.papers.minor_studies import METRICS, TITLES, cells_of
from h3sim.papers.sander import title
from h3sim.reporting.labels import Interval, listed, plain, spreads_of, with_intervals
from h3sim.reporting.output import ShownFigure, plot_function, save_figure, set_alt_text
from h3sim.reporting.style import SMALL, in_style, line
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
        with in_style():
            figure = figure_of(run, **style)
            if figure is None:
                continue
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
            return _figure_of(h3sim.reporting.LoadPlots(loads).byte_index(sample_ms=SAMPLE_MS))
        case "marx-2019-fig-12":
            unbuffered = results.filter(send_buffer_kb=0)
            return _still(
                h3sim.reporting.StudyPlots(unbuffered).scatter("byte_index_sampled_atf_ms")
            )
        case "marx-2019-fig-13":
            return _lanes(
                [
                    _again("davies-meenan", scheme=s, transport=t, network="marx-2019-jitter")
                    for s in ("rr", "fifo")
                    for t in ("quic", "tcp")
                ]
            )
        case "marx-2019-buffers":
            refilled = results.filter(send_buffer_refill=(None, "continuous"))
            return _still(h3sim.reporting.StudyPlots(refilled).buffers("byte_index_sampled_atf_ms"))
        case "koshiba-2016":
            return _waterfalls()
        case "sander-2022-fig-7":
            plots = h3sim.reporting.StudyPlots(results)
            return _figure_of(plots.correlations("speed_index_ms", "hol_sander_stream_bytes"))
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
    return _figure_of(ax)


def _figure_of(ax: Axes) -> Figure:
    """Return the figure that axes are on."""
    figure = ax.get_figure(root=True)
    assert figure is not None, "axes that were drawn are on a figure"  # noqa: S101
    return figure


def _lanes(loads: Sequence[Load]) -> Figure:
    return _figure_of(h3sim.reporting.LoadPlots(loads).multiplexing())


def _waterfalls() -> Figure:
    """Draw Koshiba's two waterfalls, without and with priorities, at their rate."""
    figure = _new(2, 2.4 * _CELL_IN, 2 * _HEIGHT_IN)
    for ax, scheme in zip(figure.subplots(1, 2), ("fifo", "ats"), strict=True):
        load = simulate(
            "http2rulez", scheme=scheme, transport="tcp", cc="constant", rate_mbps=22, rtt_ms=2
        )
        h3sim.reporting.LoadPlots([load]).waterfall(ax)
        ax.set_title("", loc="left")
        ax.set_title("without priorities" if scheme == "fifo" else "with priorities")
        ax.set_xlabel("time since navigation start in ms")  # the guide is as wide as both panels
    return figure


def _changes(run: ExperimentRun) -> Figure:
    """Draw the cumulative changes of each cell: SpeedIndex above, bytes blocked below."""
    networks = [*dict.fromkeys(row["network"] for row in run.loads.rows)]
    figure = _new(len(networks), _CELL_IN, 2 * _HEIGHT_IN)
    grid = figure.subplots(2, len(networks), squeeze=False, sharey=True)
    for (column, caption), axes in zip(_CHANGES, grid, strict=True):
        for network, ax in zip(networks, axes, strict=True):
            here = run.loads.where(network=network)
            base = here.where(scheme="sander-chrome")
            spreads = {}
            for number, scheme in enumerate(here.schemes[1:]):
                values = sorted(here.where(scheme=scheme).deltas(base, column).values())
                shares = [(index + 1) / len(values) for index in range(len(values))]
                spreads[scheme.removeprefix("sander-")] = [_CDF_PERCENT * value for value in values]
                look = line(number)
                ax.step(
                    # Cut where the axis is: one page far out would not change what is seen.
                    [_CDF_PERCENT * min(value, 1.5) for value in values],
                    shares,
                    where="post",
                    color=look.color,
                    linestyle=look.linestyle,
                    label=scheme.removeprefix("sander-"),
                )
            ax.axvline(0, color="0.6", linewidth=0.8)
            ax.set_xlim(-100, 150)
            ax.set_xlabel(f"change of {caption} in %")
            ax.set_title(title(network), fontsize=SMALL + 1)
            what = f"the share of pages by the change of {caption} in %, {title(network)}"
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
            look = line(number)
            for index, cell in enumerate(cells):
                found = cell.ratios[scheme]
                at = index + 0.15 * (number - 2)
                if found.low is not None and found.high is not None:
                    ax.plot([found.low, found.high], [at, at], color=look.color, linewidth=1)
                label = scheme.removeprefix("sander-") if not index else None
                ax.plot(
                    found.value, at, marker=look.marker, color=look.color, markersize=3.5,
                    linestyle="", label=label,
                )  # fmt: skip
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
    for index, (_, paper, found) in enumerate(run.comparisons):
        if found.low is not None and found.high is not None:
            ax.plot([found.low, found.high], [index, index], color=line(1).color, linewidth=1.5)
        ax.plot(paper, index, "x", color=line(0).color, label=None if index else "paper")
        ax.plot(found.value, index, "o", color=line(1).color, markersize=4,
                label=None if index else caption)  # fmt: skip
    ax.set_yticks(range(len(run.comparisons)), [plain(name) for name, _, _ in run.comparisons])
    ax.invert_yaxis()
    ax.legend(fontsize=SMALL, frameon=False)
    ax.set_title(plain(run.experiment.title), fontsize=SMALL + 1, loc="left")
    pairs = listed(f"{name} {paper:g}, {found.value:.4g}" for name, paper, found in run.comparisons)
    set_alt_text(ax, f"A row per number, that of the paper and that of h3sim: {pairs}")
    return figure


def _new(columns: int, width_in: float, height_in: float) -> Figure:
    return ShownFigure(figsize=(columns * width_in, height_in), layout="constrained")
