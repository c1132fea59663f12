"""Output of figures: equal figures give equal bytes; notebooks display them."""

from __future__ import annotations

import functools
import inspect
import io
import math
import re
from collections.abc import Iterable
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.text import Text
from matplotlib.transforms import Bbox

from h3sim.errors import InputError
from h3sim.reporting.labels import paper, paper_in, wrapped
from h3sim.reporting.style import PAPER_DPI, SMALL, check_figure_style, in_style
from h3sim.results import Load
from h3sim.schema import format_value, write_atomically
from h3sim.schema.arguments import PATH, check_arguments

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterator
    from typing import BinaryIO, Unpack

    from h3sim.reporting.style import FigureStyle


ClassT = TypeVar("ClassT")
DrawT = TypeVar("DrawT", bound="Callable[..., Any]")
DPI = 150
_UNDATED: dict[str, dict[str, Any]] = {
    "png": {},
    "svg": {"Date": None},
    "pdf": {"CreationDate": None},
}
"""Metadata that keep the date out of a file, by file type."""
_ALT_KEYS = {"png": "Description", "svg": "Description", "pdf": "Subject"}
"""Metadata key of the alternative text, by file type."""

_HATCH_SIZE = 72
"""The sides of the tile in which matplotlib draws a hatch for SVG, in points."""
_DOTTED = re.compile(
    r'<pattern id="(?P<id>[^"]*)" patternUnits="userSpaceOnUse" x="0" y="0" width="72" height="72">'
    r'\s*<rect [^>]*fill="(?P<face>[^"]*)"/>'
    r'\s*<path d="M 0 (?P<top>72\.\d+) \s*C [^zM]*z\s*M (?P<step>\d+(?:\.\d+)?) (?P=top) [^"]*"'
    r'\s*style="(?P<style>[^"]*)"/>\s*</pattern>'
)
"""A hatch that begins with two dots on its upper edge, so many points apart."""


def check_ending(path: str | os.PathLike[str]) -> str:
    """Return what kind of file *path* asks for.

    Raises:
        InputError: if figures cannot be written as such.
    """
    check_arguments(InputError, path=(PATH, path))
    kind = Path(path).suffix.lower().removeprefix(".")
    if kind not in _UNDATED:
        endings = ", ".join(f".{known}" for known in _UNDATED)
        message = f"a figure's name must end in {endings}"
        raise InputError.at("", message, str(path))
    return kind


def check_choice(key: str, given: object, choices: Iterable[str]) -> None:
    """Refuse what is none of *choices* as the argument *key*.

    Raises:
        InputError: naming the choices.
    """
    if given not in (known := [*choices]):
        message = f"must be {' or '.join(map(repr, known))}, is {given!r}"
        raise InputError.at(key, message)


def check_loads(key: str, given: Any) -> tuple[Load, ...]:
    """Return the loads that are to be drawn.

    Raises:
        InputError: if there is none, or something else; *key* is the argument that gave them.
    """
    is_list = isinstance(given, Iterable) and not isinstance(given, str | bytes)
    found: tuple[Any, ...] = tuple(given) if is_list else (given,)
    wrong = [one for one in found if not isinstance(one, Load)]
    if wrong or not is_list:
        what = "a list of loads" if key == "loads" else "a load"
        message = f"must be {what}, is {format_value(wrong[0] if wrong else given)}"
        raise InputError.at(key, message)
    if not found:
        raise InputError.at(key, "at least one is needed")
    return found


def set_alt_text(ax: Axes, words: str) -> None:
    """Keep with *ax* in words what is drawn on it, for `alt_text` and the files that hold it."""
    ax.set_label(words)  # of axes, matplotlib shows it nowhere


def alt_text(drawn: Axes | Figure) -> str:
    """Return in words what h3sim drew on axes or a figure, for who does not see it.

    Of a figure the words of all its axes, "" where h3sim drew on none.

    >>> import h3sim
    >>> alt_text(h3sim.load_page("http2rulez").plot.kinds())[:38]
    'A bar per kind: 16 of kind image with '

    Raises:
        InputError: if *drawn* is neither.
    """
    given: object = drawn
    if not isinstance(given, Figure | Axes):
        message = f"must be axes or a figure, is {format_value(drawn)}"
        raise InputError.at("drawn", message)
    description = drawn.axes if isinstance(drawn, Figure) else [drawn]
    return " ".join(words for ax in description if (words := str(ax.get_label())))


def root_figure(drawn: Axes | Figure) -> Figure:
    """Return the figure that axes are on."""
    figure = drawn.get_figure(root=True)
    assert figure is not None, "axes that were drawn are on a figure"  # noqa: S101
    return figure


def plot_methods(cls: type[ClassT]) -> type[ClassT]:
    """Make every public method of *cls* that draws a `plot_function`; a decorator of classes."""
    for name, method in list(vars(cls).items()):
        if inspect.isfunction(method) and not name.startswith("_"):
            setattr(cls, name, plot_function(method))
    return cls


def plot_function(draw: DrawT) -> DrawT:
    """Return *draw*, drawing in h3sim's style, with the options of `FigureStyle`.

    That is for functions that end in `**style`; what is no axes is refused as `ax` before they
    draw, with an `InputError`. A function that saves a figure passes the style on to the one that
    draws it.
    """
    signature = inspect.signature(draw)
    names = [*signature.parameters]
    if "style" not in names or signature.return_annotation == "None":
        return draw

    @functools.wraps(draw)
    def drawing(*given: Any, **options: Any) -> Any:
        index = names.index("ax") if "ax" in names else len(given)
        ax = given[index] if index < len(given) else options.get("ax")
        if not isinstance(ax, Axes | None):
            how = "matplotlib's axes (`_, ax = plt.subplots()` makes some)"
            message = f"must be {how}, is {format_value(ax)}"
            raise InputError.at("ax", message)
        figure_style = {name: options.pop(name) for name in ("style", "width") if name in options}
        with paper(check_figure_style(**figure_style) if figure_style else paper_in()), in_style():
            drawn = draw(*given, **options)
            # A part of a larger figure is finished when the whole figure is.
            if figure_style and paper_in() is not None and isinstance(drawn, Axes | Figure):
                _finish_for_paper(drawn, is_own=ax is None)
        return drawn

    return cast("DrawT", drawing)


_LABEL_IN = 0.4
"""Labels of an axis that are taller than this, names that stand upright, add to the height."""


def _finish_for_paper(drawn: Axes | Figure, *, is_own: bool) -> None:
    """Turn what was drawn into what papers print.

    No title: the caption has it. One size of type, labels that wrap, and the legend above the data.
    """
    axes = [drawn] if isinstance(drawn, Axes) else drawn.axes
    figure = root_figure(drawn)
    for ax in axes:
        # A title in the middle says what the axes do not, one on the left what a caption does.
        ax.set_title("", loc="left")
        ax.set_xlabel(ax.get_xlabel().partition("\n")[0].partition(";")[0])
        for text in ax.findobj(Text):
            text.set(fontsize=SMALL)
        ax.tick_params(labelsize=SMALL)
    if is_own:
        _move_legends(figure, axes)
    else:
        for ax in axes:
            if (legend := ax.get_legend()) is not None:
                legend.set_loc("lower left")
                legend.set_bbox_to_anchor((0.0, 1.02), ax.transAxes)
    # How long labels may be is known only once the others have taken their room.
    figure.draw_without_rendering()
    if is_own:
        labels = (label for ax in axes if ax.axison for label in ax.get_xticklabels())
        tallest_in = max(
            (each.get_window_extent().height / figure.dpi for each in labels), default=0
        )
        width_in, height_in = figure.get_size_inches()
        figure.set_size_inches(width_in, height_in + max(0.0, tallest_in - _LABEL_IN))
        figure.draw_without_rendering()
    for ax in axes:
        box, dpi = ax.get_window_extent(), figure.dpi
        ax.set_xlabel(wrapped(ax.get_xlabel(), box.width / dpi))
        ax.set_ylabel(wrapped(ax.get_ylabel(), box.height / dpi))


def _move_legends(figure: Figure, axes: list[Axes]) -> None:
    """Gather the legends of *figure* and its *axes* above them, in as many columns as have room."""
    known: dict[str, Any] = {}
    width_in, height_in = figure.get_size_inches()
    for legend in [*figure.legends, *(ax.get_legend() for ax in axes)]:
        # What is no part of the layout has a row of its own.
        if legend is None or not legend.get_in_layout():
            continue
        for handle, text in zip(legend.legend_handles, legend.get_texts(), strict=True):
            label = wrapped(text.get_text().replace("\n", " "), width_in - 1)
            known.setdefault(label, handle)
        legend.remove()
    if not known:
        return
    for n_columns in range(len(known), 0, -1):
        legend = figure.legend(
            [*known.values()],
            [*known],
            loc="outside upper left",
            ncols=math.ceil(len(known) / math.ceil(len(known) / n_columns)),
            fontsize=SMALL,
            frameon=False,
            columnspacing=1.2,
        )
        box = legend.get_window_extent()
        if box.width <= figure.bbox.width or n_columns == 1:
            break
        legend.remove()
    figure.set_size_inches(width_in, height_in + box.height / figure.dpi)


def render(figure: Figure, file: BinaryIO, kind: str) -> None:
    """Write *figure* to *file* as *kind*: png, svg or pdf, which says in words what it shows.

    Raises:
        ValueError: if nothing was said of what is drawn: who does not see it would have nothing.
    """
    alt = alt_text(figure)
    if not alt:
        raise ValueError("what is drawn is not told in words: `say` keeps them with the axes")
    metadata = _UNDATED[kind] | {_ALT_KEYS[kind]: alt}
    with in_style(), _settled_layout(figure):
        if kind != "svg":
            dpi = PAPER_DPI if getattr(figure, "is_for_paper", False) else DPI
            figure.savefig(file, format=kind, dpi=dpi, metadata=metadata)
            return
        drawn = io.BytesIO()
        figure.savefig(drawn, format=kind, metadata=metadata)
    file.write(_DOTTED.sub(_tile, drawn.getvalue().decode()).encode())


def rendered(figure: Figure, kind: str) -> bytes:
    """Return the file that `render` writes."""
    file = io.BytesIO()
    render(figure, file, kind)
    return file.getvalue()


_POSITION_DIGITS = 9


@contextmanager
def _settled_layout(figure: Figure) -> Iterator[None]:
    """Lay *figure* out with rounded positions, whose last bits differ from run to run otherwise."""
    engine = figure.get_layout_engine()
    if engine is None:
        yield
        return
    engine.execute(figure)
    figure.set_layout_engine("none")
    for ax in figure.axes:
        is_in_layout = ax.get_in_layout()
        bounds = ax.get_position(original=True).bounds
        ax.set_position(Bbox.from_bounds(*(round(each, _POSITION_DIGITS) for each in bounds)))
        ax.set_in_layout(is_in_layout)
    try:
        yield
    finally:
        figure.set_layout_engine(engine)


def _tile(match: re.Match[str]) -> str:
    """Return a hatch of dots as one tile that repeats, and not 1,800 circles.

    matplotlib writes every dot of an inch as a path of its own: 400 kB a hatch.
    """
    top, step, style = float(match["top"]), float(match["step"]), match["style"]
    radius = top - _HATCH_SIZE
    # Rows stand half a step apart from their neighbours; corners are shared by four tiles.
    centres = ((0, 0), (1, 0), (0, 2), (1, 2), (0.5, 1))
    dots = "".join(
        f'<circle cx="{x * step:g}" cy="{y * step:g}" r="{radius:g}" style="{style}"/>'
        for x, y in centres
    )
    return (
        f'<pattern id="{match["id"]}" patternUnits="userSpaceOnUse" x="0" y="0" width="{step:g}"'
        f' height="{2 * step:g}"><rect x="0" y="0" width="{step + 1:g}" height="{2 * step + 1:g}"'
        f' fill="{match["face"]}"/>{dots}</pattern>'
    )


def save_figure(figure: Figure, path: str | os.PathLike[str]) -> None:
    """Write *figure* to *path*, whole or not at all; the file holds its `alt_text`.

    Raises:
        InputError: if the ending is another, or the file cannot be written.
    """
    kind = check_ending(path)
    write_atomically(path, lambda file: render(figure, file, kind))


class Saved:
    """Base class of objects with a `figure` that can be saved and is shown in notebooks."""

    def figure(self, **style: Unpack[FigureStyle]) -> Figure:
        """Return a new figure."""
        raise NotImplementedError

    def alt_text(self) -> str:
        """Return in words what `figure` shows; files say it as well."""
        return alt_text(self.figure())

    def save(self, path: str | os.PathLike[str], **style: Unpack[FigureStyle]) -> None:
        """Write `figure` to *path*, whose ending says how: .png, .svg or .pdf.

        The file is written whole or not at all, and equal loads give equal bytes.

        Raises:
            InputError: if the ending is another, the file cannot be written, or there is no such
                style.
        """
        check_ending(path)
        save_figure(self.figure(**style), path)

    def _repr_png_(self) -> bytes:
        return rendered(self.figure(), "png")


class ShownFigure(Figure):
    """A figure that a notebook shows as a picture.

    Of matplotlib's own it shows a line of text, unless pyplot was imported before; h3sim does
    without pyplot, which keeps every figure that it has made. Drawn for papers, its width is that
    of the paper.
    """

    def __init__(self, *, figsize: tuple[float, float] = (6.4, 4.8), **options: Any) -> None:
        width_in = paper_in()
        self.is_for_paper = width_in is not None
        super().__init__(figsize=(width_in or figsize[0], figsize[1]), **options)

    def _repr_png_(self) -> bytes:
        return rendered(self, "png")


_WIDTH_IN, _MAX_HEIGHT_IN = 12.0, 200.0


def new_figure(height_in: float) -> ShownFigure:
    """Return a new figure as wide as all of loads and pages, and as high as given, in inches."""
    return ShownFigure(figsize=(_WIDTH_IN, min(height_in, _MAX_HEIGHT_IN)), layout="constrained")


def new_axes(height_in: float) -> Axes:
    """Return the axes of a new figure of that height in inches."""
    return new_figure(height_in).subplots()
