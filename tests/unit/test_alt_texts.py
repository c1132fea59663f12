"""Every picture in words, and what files of pictures hold."""

from __future__ import annotations

import inspect
import re
import tempfile
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from matplotlib.figure import Figure
from matplotlib.text import Text

import h3sim
import h3sim.reporting
from h3sim.export.qlog_file import write_load_qlog
from h3sim.reporting import (
    IdentificationPlots,
    LoadPlots,
    LogPlots,
    OptimalityPlots,
    PagePlots,
    StudyPlots,
    alt_text,
    output,
)
from h3sim.reporting.study_plots import header_figure
from h3sim.reporting.style import SMALL, WIDTHS_IN
from h3sim.study import Results
from h3sim.values.errors import InputError
from tests.effort import some
from tests.helpers import page_of
from tools.picture_check import errors_in

if TYPE_CHECKING:
    from collections.abc import Callable

CHILD = {"by": "/", "at": "complete"}
PAGE = page_of(
    {"id": "/", "kind": "document", "bytes": 1400, "above_the_fold": True},
    {"id": "a.png", "kind": "image", "bytes": 2800, "discovered": CHILD},
    {"id": "b.js", "kind": "script", "bytes": 1400, "discovered": CHILD},
)


def test_each_picture_is_reported_in_words() -> None:
    loads = [h3sim.simulate(PAGE, scheme=scheme) for scheme in ("fifo", "rr")]
    one, two = LoadPlots(loads[:1]), LoadPlots(loads)
    # A packet each 10 ms: the document, then the image and the script, or both in turn.
    assert two.alt_text("multiplexing") == (
        "A lane per load, a rectangle per packet, coloured by resource. fifo: 2 changes from one"
        " resource to another among 4 packets; rr: 3 changes from one resource to another among 4"
        " packets."
    )
    assert one.alt_text("waterfall") == (
        "A row per resource, in request order: b.js ends last, at 40 ms; b.js waits longest for its"
        " first byte to be delivered, 30 ms. No byte was held back after it had arrived."
    )
    assert two.alt_text("deltas") == (
        "A bar per resource: 1 of 3 are complete sooner with rr, 1 later."
    )
    assert one.alt_text("dependencies") == "A tree of requests; the end waited for /, then b.js."
    assert one.alt_text("byte_index").startswith("A line per load rises from 0 to 1: fifo has a")
    assert one.alt_text("priority_tree").startswith("A tree from left to right, 10 ms after")
    assert one.alt_text("throughput").startswith("Arriving bytes peak at ")
    assert one.alt_text("byte_ranges").endswith(" 0 bytes waited for others of their stream.")
    assert one.alt_text() == " ".join(
        one.alt_text(name) for name in ("multiplexing", "byte_index", "waterfall")
    )
    with pytest.raises(InputError, match="must be one of figure, multiplexing"):
        one.alt_text("portrait")


def test_windows_are_reported_where_recovery_was_recorded() -> None:
    load = h3sim.simulate(PAGE, network="cable", record_packets=True)
    assert re.fullmatch(
        r"The window grows to [\d,]+ bytes at most; 0 packets were declared lost.",
        load.plot.alt_text("congestion"),
    )


def test_pages_and_logs_are_reported_as_well(tmp_path: Path) -> None:
    assert PAGE.plot.alt_text() == (
        "A bar per kind: 1 of kind image with 3 kB, 1 of kind document with 1 kB, 1 of kind script"
        " with 1 kB. A tree of what asks for what, in 2 steps."
    )
    write_load_qlog(h3sim.simulate(PAGE), tmp_path / "a.qlog")
    reported = LogPlots([h3sim.read_qlog(tmp_path / "a.qlog")]).alt_text()
    assert reported.startswith("page: A row per stream, in which its bytes rise over time; an area")
    assert reported.endswith("in order: page reaches 6 kB after 40 ms.")


def test_files_hold_the_words(tmp_path: Path) -> None:
    from PIL import Image

    plots: Any = h3sim.simulate(PAGE).plot
    plots.save(tmp_path / "a.png")
    with Image.open(tmp_path / "a.png") as image:
        assert image.info["Description"] == plots.alt_text()
    plots.save(tmp_path / "a.svg")
    text = (tmp_path / "a.svg").read_text("utf-8")
    assert f"<dc:description>{plots.alt_text()}</dc:description>" in text
    plots.save(tmp_path / "a.pdf")
    assert b"/Subject" in (tmp_path / "a.pdf").read_bytes()


def test_hatches_take_little_room_in_an_svg(tmp_path: Path) -> None:
    h3sim.load_page("http2rulez").plot.save(tmp_path / "a.svg")
    text = (tmp_path / "a.svg").read_text("utf-8")
    patterns = re.findall(r"<pattern.*?</pattern>", text, flags=re.DOTALL)
    assert len(patterns) > 2
    assert max(map(len, patterns)) < 5000


def test_reports_do_not_round_the_scale_of_letters() -> None:
    text = h3sim.report(h3sim.simulate(PAGE)).to_html()
    scales = set(re.findall(r"scale\(([^)]*)\)", text))
    assert "0.015625" in scales
    assert "0.01" not in scales


CLASSES = (*(IdentificationPlots, LoadPlots, LogPlots, PagePlots, OptimalityPlots, StudyPlots),)


@cache
def _subjects() -> dict[type, Any]:
    """Return something to draw for each class of pictures."""
    wired: dict[str, Any] = {"network": "cable", "loss": 0.05, "record_packets": True}
    loads = [h3sim.simulate(PAGE, scheme=scheme, **wired) for scheme in ("rr", "fifo")]
    rows = [
        {"page": page, "page_bytes": size, "scheme": scheme, "rtt_ms": rtt_ms, "seed": seed}
        | {"ms": (100.0 + rtt_ms + seed) * speed, "hol": float(seed * speed)}
        for page, size, factor in (("a", 9_000, 0.5), ("b", 2_000_000, 0.6), ("c", 600_000, 1.0))
        for rtt_ms in (0, 50)
        for scheme, speed in (("rr", 1.0), ("x", factor), ("y", 2 * factor))
        for seed in range(3)
    ]
    return {
        IdentificationPlots: IdentificationPlots(_identified(loads[0])),
        LoadPlots: LoadPlots(loads),
        LogPlots: LogPlots([_measured(loads[0])]),
        PagePlots: PAGE.plot,
        OptimalityPlots: h3sim.optimality(PAGE, schemes=("rr", "fifo")).plot,
        StudyPlots: Results.of(rows, axes=("page", "rtt_ms", "scheme", "seed")).plot,
    }


def _measured(load: h3sim.Load) -> Any:
    return _of_log(load, h3sim.read_qlog)


def _identified(load: h3sim.Load) -> Any:
    return _of_log(load, h3sim.identify)


def _of_log(load: h3sim.Load, read: Callable[[Path], Any]) -> Any:
    with tempfile.TemporaryDirectory() as folder:
        write_load_qlog(load, Path(folder) / "a.qlog")
        return read(Path(folder) / "a.qlog")


GIVEN: dict[str, tuple[Any, ...]] = {
    "LoadPlots.against": (h3sim.simulate(PAGE, scheme="rr"),),
    "StudyPlots.cdf": ("ms",),
    "StudyPlots.forest": ("ms",),
    "StudyPlots.lines": ("rtt_ms", "ms"),
    "StudyPlots.heat": ("scheme", "rtt_ms", "ms"),
    "StudyPlots.scatter": ("ms",),
    "StudyPlots.correlations": ("ms", "hol"),
    "StudyPlots.ranks": ("ms",),
}
"""What a method that draws needs, where it needs something."""
OVER: dict[str, dict[str, Any]] = {
    "StudyPlots.buffers": {"value": "ms", "over": "rtt_ms"},
    **{
        f"StudyPlots.{name}": {"pool": ["rtt_ms"]} for name in ("cdf", "forest", "ranks", "scatter")
    },
}


def _drawing() -> dict[str, tuple[type, str]]:
    """Return the methods that return what they drew on, of every class of pictures."""
    return {
        f"{made.__name__}.{name}": (made, name)
        for made in CLASSES
        for name, method in inspect.getmembers(made, inspect.isfunction)
        if not name.startswith("_") and method.__annotations__["return"] in ("Axes", "ShownFigure")
    }


def _parameters(made: type, name: str) -> list[str]:
    return [*inspect.signature(getattr(made, name)).parameters]


@pytest.mark.parametrize("picture", _drawing())
def test_whatever_is_drawn_is_reported_in_words(picture: str) -> None:
    made, name = _drawing()[picture]
    drawn = getattr(_subjects()[made], name)(*GIVEN.get(picture, ()), **OVER.get(picture, {}))
    words = alt_text(drawn)
    assert re.fullmatch(r"[A-Za-z].{30,}\.", words), words
    assert not re.search(r"\bnan\b|None|[{}]", words)


NO_AXES = ("x", 3, Figure(), Figure().subplots(2))


@pytest.mark.parametrize(
    "picture",
    [name for name, (made, of) in _drawing().items() if "ax" in _parameters(made, of)],
)
def test_what_is_no_axes_is_refused_and_drawn_on_is_what_is_one(picture: str) -> None:
    made, name = _drawing()[picture]
    draw = getattr(_subjects()[made], name)
    given, options = GIVEN.get(picture, ()), OVER.get(picture, {})
    for wrong in NO_AXES:
        with pytest.raises(InputError, match=r"^ax: must be matplotlib's axes \(.*, is "):
            draw(*given, **options, ax=wrong)
    ax = Figure().subplots()
    assert draw(*given, **options, ax=ax) is ax


@pytest.mark.parametrize("width", some(["column"], [*WIDTHS_IN]))
@pytest.mark.parametrize("picture", _drawing())
def test_whatever_is_drawn_can_be_printed_in_a_paper(picture: str, width: Any) -> None:
    made, name = _drawing()[picture]
    options = OVER.get(picture, {}) | {"style": "paper", "width": width}
    drawn = getattr(_subjects()[made], name)(*GIVEN.get(picture, ()), **options)
    figure = drawn if isinstance(drawn, Figure) else drawn.figure
    assert figure.get_size_inches()[0] == pytest.approx(WIDTHS_IN[width])
    assert [*errors_in(figure)] == []
    texts = [text for text in figure.findobj(Text) if text.get_text().strip()]
    assert {text.get_fontsize() for text in texts} == {SMALL}
    assert {ax.get_title(loc="left") for ax in figure.axes} == {""}
    legends = [*figure.legends, *(each for ax in figure.axes if (each := ax.get_legend()))]
    for ax in (ax for ax in figure.axes if ax.axison):
        inside = ax.get_window_extent().padded(-1)
        assert not any(inside.overlaps(each.get_window_extent()) for each in legends)


def test_a_figure_for_papers_leaves_the_next_one_as_it_was() -> None:
    plots = _subjects()[LoadPlots]
    with pytest.raises(InputError, match="until_ms"):
        plots.multiplexing(until_ms=-1.0, style="paper")
    assert plots.multiplexing().figure.get_size_inches()[0] == 12


@pytest.mark.parametrize("picture", _drawing())
def test_a_misspelt_option_of_a_figure_is_refused_with_the_nearest(picture: str) -> None:
    made, name = _drawing()[picture]
    draw = getattr(_subjects()[made], name)
    with pytest.raises(InputError, match=r"^styel: .* style"):
        draw(*GIVEN.get(picture, ()), **OVER.get(picture, {}), styel="paper")


def test_a_style_that_does_not_exist_is_refused_with_all_that_is_wrong() -> None:
    plots = _subjects()[LoadPlots]
    with pytest.raises(InputError) as caught:
        plots.figure(style="poster", width="wall")
    assert [issue.key for issue in caught.value.problems] == ["style", "width"]
    with pytest.raises(InputError, match=r"width: .*style='paper'"):
        plots.figure(width="column")


def test_a_figure_on_axes_of_others_keeps_its_legend_out_of_the_data() -> None:
    ax = Figure(figsize=(7, 4), layout="constrained").subplots()
    _subjects()[StudyPlots].lines("rtt_ms", "ms", ax=ax, style="paper")
    ax.figure.draw_without_rendering()
    assert ax.get_legend().get_window_extent().y0 >= ax.get_window_extent().y1


def test_every_class_that_draws_is_looked_at() -> None:
    named = {getattr(h3sim.reporting, name) for name in h3sim.reporting.__all__}
    drawing = {
        each for each in named if isinstance(each, type) and each is not h3sim.reporting.Report
    }
    assert drawing == set(CLASSES)


def test_words_of_a_figure_are_those_of_its_parts_in_order() -> None:
    for made in (LoadPlots, LogPlots, PagePlots):
        plots = _subjects()[made]
        assert alt_text(plots.figure()) == plots.alt_text()
    page = PAGE.plot
    assert page.alt_text() == f"{alt_text(page.kinds())} {alt_text(page.dependencies())}"


def test_a_figure_that_is_not_reported_in_words_cannot_be_written(tmp_path: Path) -> None:
    silent = output.ShownFigure()
    silent.subplots()
    with pytest.raises(ValueError, match="not told in words"):
        output.save_figure(silent, tmp_path / "a.png")
    assert not list(tmp_path.iterdir())


def test_figures_are_written_in_one_place_only() -> None:
    # So that what refuses those without words sees all of them.
    root = Path(h3sim.__file__).parents[1]
    found = [
        path.relative_to(root).as_posix()
        for folder in ("h3sim", "tools")
        for path in sorted((root / folder).rglob("*.py"))
        if re.search(r"\.(savefig|print_figure|print_png)\(", path.read_text("utf-8"))
    ]
    assert found == ["h3sim/reporting/output.py"]


def test_figures_of_studies_state_their_numbers() -> None:
    plots = _subjects()[StudyPlots]
    assert alt_text(plots.lines("rtt_ms", "ms", baseline=None)) == (
        "A line per scheme over rtt_ms, mean ms, band: 95 % interval: rr from 101 at 0 to"
        " 151 at 50; x from 70.7 at 0 to 106 at 50; y from 141 at 0 to 211 at 50."
    )
    # The differences of these means: all schemes have the same pages and seeds.
    assert alt_text(plots.lines("rtt_ms", "ms")) == (
        "A line per scheme over rtt_ms, ms: difference to rr, 95 % interval: x from -30.3 at 0 to"
        " -45.3 at 50; y from 40.4 at 0 to 60.4 at 50."
    )
    assert alt_text(plots.heat("scheme", "page", "ms", pool=["rtt_ms"])).endswith(
        "the least is 63 at x and a; the largest is 252 at y and c."
    )
    assert alt_text(plots.scatter("ms", pool=["rtt_ms"])) == (
        "A mark per page and scheme, ms: speedup over rr: x from 1 to 2 (3); y from 0.5 to 1 (3)."
    )


def test_figures_of_header_studies_are_described_panel_by_panel() -> None:
    rows: list[Any] = [
        SimpleNamespace(scheme=scheme, rtt_ms=rtt_ms, loss=0.0, hol_mean_ms=rtt_ms / 2, ratio=0.25)
        for scheme in ("hpack", "qpack")
        for rtt_ms in (10, 100)
    ]
    assert alt_text(header_figure(rows)) == (
        "A line per scheme, HOL delay per section in ms over RTT in ms, with a loss of 0 %: hpack"
        " from 5 at 10 to 50 at 100; qpack from 5 at 10 to 50 at 100. A line per scheme, bytes sent"
        " / uncompressed over RTT in ms, with a loss of 0 %: hpack from 0.25 at 10 to 0.25 at"
        " 100; qpack from 0.25 at 10 to 0.25 at 100."
    )
