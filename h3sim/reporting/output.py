"""Output of figures: equal figures give equal bytes; notebooks display them."""

from __future__ import annotations

import functools
import inspect
import io
import math
from collections.abc import Iterable
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.text import Text
from matplotlib.transforms import Bbox

from h3sim.load import Load
from h3sim.load.load_config import unknown_option
from h3sim.reporting.labels import wrapped
from h3sim.reporting.paper import paper, paper_in
from h3sim.reporting.style import PAPER_DPI, SMALL, check_figure_style, in_style
from h3sim.schema import format_value, write_atomically
from h3sim.schema.arguments import PATH, check_arguments
from h3sim.values.errors import InputError, UnknownOptionError

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterator
    from typing import BinaryIO, Unpack

    from h3sim.reporting.style import FigureStyle


ClassT = TypeVar("ClassT")
DrawT = TypeVar("DrawT", bound="Callable[..., Any]")
DPI = 150
"""Resolution of PNG files for the screen."""
_METADATA_WITHOUT_DATE: dict[str, dict[str, Any]] = {
    "png": {},
    "svg": {"Date": None},
    "pdf": {"CreationDate": None},
}
"""Metadata without which matplotlib writes the date into a file, by file type."""
_ALT_TEXT_KEYS = {"png": "Description", "svg": "Description", "pdf": "Subject"}
"""Metadata key of the alternative text, by file type."""


def check_ending(path: str | os.PathLike[str]) -> str:
    """Return the file type of *path* by its ending.

    Raises:
        InputError: if figures cannot be written as such.
    """
    check_arguments(InputError, path=(PATH, path))
    kind = Path(path).suffix.lower().removeprefix(".")
    if kind not in _METADATA_WITHOUT_DATE:
        endings = ", ".join(f".{known}" for known in _METADATA_WITHOUT_DATE)
        message = f"a figure's name must end in {endings}"
        raise InputError.at("", message, str(path))
    return kind


def check_choice(key: str, given: object, choices: Iterable[str]) -> None:
    """Refuse a value of the argument *key* that is not one of *choices*.

    Raises:
        InputError: naming the choices.
    """
    if given not in (known := [*choices]):
        message = f"must be {' or '.join(map(repr, known))}, is {given!r}"
        raise InputError.at(key, message)


def check_loads(key: str, given: Any) -> tuple[Load, ...]:
    """Return *given*, the value of the argument *key*, as a tuple of loads.

    Raises:
        InputError: if it has no loads, or anything else.
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
    """Store with *ax* a description of what is drawn on it, for `alt_text` and saved files."""
    ax.set_label(words)  # matplotlib does not show labels of axes


def alt_text(drawn: Axes | Figure) -> str:
    """Return the alternative text of axes or of all axes of a figure, for those who cannot see it.

    It is "" if h3sim drew nothing on them.

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
    all_axes = drawn.axes if isinstance(drawn, Figure) else [drawn]
    return " ".join(words for ax in all_axes if (words := str(ax.get_label())))


def root_figure(drawn: Axes | Figure) -> Figure:
    """Return the figure that axes are on."""
    figure = drawn.get_figure(root=True)
    assert figure is not None, "axes that were drawn are on a figure"  # noqa: S101
    return figure


def plot_methods(cls: type[ClassT]) -> type[ClassT]:
    """Apply `plot_function` to every public method of *cls*; a class decorator."""
    for name, method in list(vars(cls).items()):
        if inspect.isfunction(method) and not name.startswith("_"):
            setattr(cls, name, plot_function(method))
    return cls


def plot_function(draw: DrawT) -> DrawT:
    """Wrap *draw* so that it draws in h3sim's style, with the options of `FigureStyle`.

    Only functions with `**style` that return something are wrapped: those that save a figure pass
    the style on to the one that draws it. An `InputError` refuses an `ax` that is not axes, and
    unknown options.
    """
    signature = inspect.signature(draw)
    names = [*signature.parameters]
    known = tuple(dict.fromkeys([*(name for name in names if name != "self"), *_STYLE_NAMES]))
    if "style" not in names or signature.return_annotation == "None":
        return draw

    @functools.wraps(draw)
    def drawing(*given: Any, **options: Any) -> Any:
        if unknown := [name for name in options if name not in known]:
            raise UnknownOptionError([unknown_option(name, known) for name in unknown])
        index = names.index("ax") if "ax" in names else len(given)
        ax = given[index] if index < len(given) else options.get("ax")
        if not isinstance(ax, Axes | None):
            how = "matplotlib's axes (`_, ax = plt.subplots()` makes some)"
            message = f"must be {how}, is {format_value(ax)}"
            raise InputError.at("ax", message)
        figure_style = {name: options.pop(name) for name in ("style", "width") if name in options}
        has_legend = options.pop("legend", True)
        with paper(check_figure_style(**figure_style) if figure_style else paper_in()), in_style():
            drawn = draw(*given, **options)
            if not has_legend and isinstance(drawn, Axes | Figure):
                _remove_legends(drawn)
            # A part of a larger figure is finished when the whole figure is.
            if figure_style and paper_in() is not None and isinstance(drawn, Axes | Figure):
                _finish_for_paper(drawn, is_own=ax is None)
        return drawn

    return cast("DrawT", drawing)


_STYLE_NAMES = ("style", "width", "legend")
"""The options of `FigureStyle`."""


def _remove_legends(drawn: Axes | Figure) -> None:
    figure_legends = drawn.legends if isinstance(drawn, Figure) else []
    axes = drawn.axes if isinstance(drawn, Figure) else [drawn]
    for legend in [*figure_legends, *(ax.get_legend() for ax in axes)]:
        if legend is not None:
            legend.remove()


_MAX_LABEL_IN = 0.4
"""Tick labels taller than this, which are upright names, add to the height of a figure."""


def _finish_for_paper(drawn: Axes | Figure, *, is_own: bool) -> None:
    """Adapt a drawing for papers; *is_own*: its figure was made for it.

    It gets no title, which the caption has, one type size, wrapped labels, and its legend above the
    data.
    """
    axes = [drawn] if isinstance(drawn, Axes) else drawn.axes
    figure = root_figure(drawn)
    for ax in axes:
        # Only titles on the left repeat the caption; those in the middle name the quantity.
        ax.set_title("", loc="left")
        ax.set_xlabel(" ".join(ax.get_xlabel().split("\n")).partition(";")[0])
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
    # The room for labels is known only after a layout.
    figure.draw_without_rendering()
    if is_own:
        labels = (label for ax in axes if ax.axison for label in ax.get_xticklabels())
        tallest_in = max(
            (each.get_window_extent().height / figure.dpi for each in labels), default=0
        )
        width_in, height_in = figure.get_size_inches()
        figure.set_size_inches(width_in, height_in + max(0.0, tallest_in - _MAX_LABEL_IN))
        figure.draw_without_rendering()
    for ax in axes:
        box, dpi = ax.get_window_extent(), figure.dpi
        ax.set_xlabel(wrapped(ax.get_xlabel(), box.width / dpi))
        ax.set_ylabel(wrapped(ax.get_ylabel(), box.height / dpi))


def _move_legends(figure: Figure, axes: list[Axes]) -> None:
    """Merge the legends of *figure* and its *axes* above them, in as many columns as fit."""
    known: dict[str, Any] = {}
    width_in, height_in = figure.get_size_inches()
    for legend in [*figure.legends, *(ax.get_legend() for ax in axes)]:
        # A legend outside of the layout has a row of its own, and stays.
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
    """Write *figure* to *file* as *kind* (png, svg or pdf), with its alternative text.

    Raises:
        ValueError: if it has no alternative text.
    """
    alt = alt_text(figure)
    if not alt:
        raise ValueError("what is drawn is not told in words: `say` keeps them with the axes")
    metadata = _METADATA_WITHOUT_DATE[kind] | {_ALT_TEXT_KEYS[kind]: alt}
    dpi = PAPER_DPI if getattr(figure, "is_for_paper", False) else DPI
    with in_style(), _settled_layout(figure, dpi if kind == "png" else _VECTOR_DPI):
        resolution: dict[str, Any] = {} if kind == "svg" else {"dpi": dpi}
        figure.savefig(file, format=kind, metadata=metadata, **resolution)


def rendered(figure: Figure, kind: str) -> bytes:
    """Return the file that `render` writes."""
    file = io.BytesIO()
    render(figure, file, kind)
    return file.getvalue()


_POSITION_DECIMALS = 9
"""Decimals of positions of axes, as shares of the figure."""
_VECTOR_DPI = 72
"""Resolution at which matplotlib measures text for SVG and PDF: a pixel is a point."""


@contextmanager
def _settled_layout(figure: Figure, dpi: int) -> Iterator[None]:
    """Lay *figure* out with rounded positions, since their last bits differ from run to run."""
    engine = figure.get_layout_engine()
    if engine is None:
        yield
        return
    figure_dpi = figure.dpi
    # Hinted text is wider at some resolutions: laid out at another one, long labels are cut off.
    figure.set_dpi(dpi)
    try:
        engine.execute(figure)
    finally:
        figure.set_dpi(figure_dpi)
    figure.set_layout_engine("none")
    for ax in figure.axes:
        is_in_layout = ax.get_in_layout()
        bounds = ax.get_position(original=True).bounds
        ax.set_position(Bbox.from_bounds(*(round(each, _POSITION_DECIMALS) for each in bounds)))
        ax.set_in_layout(is_in_layout)
    try:
        yield
    finally:
        figure.set_layout_engine(engine)


def save_figure(figure: Figure, path: str | os.PathLike[str]) -> None:
    """Write *figure* with its `alt_text` to *path*, atomically.

    Raises:
        InputError: if the ending is another, or the file cannot be written.
    """
    kind = check_ending(path)
    write_atomically(path, lambda file: render(figure, file, kind))


class SavedPlots:
    """Base class of objects with a `figure` that can be saved and is shown in notebooks."""

    def figure(self, **style: Unpack[FigureStyle]) -> Figure:
        """Return a new figure."""
        raise NotImplementedError

    def alt_text(self) -> str:
        """Return the alternative text of `figure`, which files have, too."""
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

    A notebook shows matplotlib's own figures as text unless pyplot was imported; h3sim does not use
    pyplot, which keeps all figures in memory. While drawing for papers, the width is theirs.
    """

    def __init__(self, *, figsize: tuple[float, float] = (6.4, 4.8), **options: Any) -> None:
        width_in = paper_in()
        self.is_for_paper = width_in is not None
        super().__init__(figsize=(width_in or figsize[0], figsize[1]), **options)

    def _repr_png_(self) -> bytes:
        return rendered(self, "png")


_WIDTH_IN = 12.0
"""Width of figures of loads and pages."""
_MAX_HEIGHT_IN = 200.0
"""Greatest height of figures, as files have a limit of pixels."""


def new_figure(height_in: float) -> ShownFigure:
    """Return a new figure of that height in inches, and the width of all of loads and pages."""
    return ShownFigure(figsize=(_WIDTH_IN, min(height_in, _MAX_HEIGHT_IN)), layout="constrained")


def new_axes(height_in: float) -> Axes:
    """Return the axes of a new figure of that height in inches."""
    return new_figure(height_in).subplots()
