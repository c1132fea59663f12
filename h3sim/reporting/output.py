"""Output of figures: equal figures give equal bytes; notebooks display them."""

from __future__ import annotations

import functools
import inspect
import io
import re
from collections.abc import Iterable
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.transforms import Bbox

from h3sim.errors import InputError, ValidationIssue
from h3sim.reporting.style import in_style
from h3sim.results import Load
from h3sim.schema import format_value, write_atomically
from h3sim.schema.arguments import PATH, check_arguments

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterator
    from typing import BinaryIO


ClassT = TypeVar("ClassT")
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
        raise InputError([ValidationIssue(key="", message=message)], str(path))
    return kind


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
        raise InputError([ValidationIssue(key=key, message=message)])
    if not found:
        raise InputError([ValidationIssue(key=key, message="at least one is needed")])
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
    _check_drawn(drawn)
    description = drawn.axes if isinstance(drawn, Figure) else [drawn]
    return " ".join(words for ax in description if (words := str(ax.get_label())))


def _check_drawn(drawn: object) -> None:
    if not isinstance(drawn, Figure | Axes):
        message = f"must be axes or a figure, is {format_value(drawn)}"
        raise InputError([ValidationIssue(key="drawn", message=message)])


def checks_axes(cls: type[ClassT]) -> type[ClassT]:
    """Have every method of *cls* that takes `ax` refuse, before it draws, what is no axes.

    A decorator of classes; the methods raise an `InputError`.
    """
    for name, method in list(vars(cls).items()):
        names = [*inspect.signature(method).parameters] if inspect.isfunction(method) else []
        if "ax" in names and not name.startswith("_"):
            setattr(cls, name, _with_axes_checked(method, names.index("ax")))
    return cls


def _with_axes_checked(method: Callable[..., Any], index: int) -> Callable[..., Any]:
    @functools.wraps(method)
    def checked(*given: Any, **options: Any) -> Any:
        ax = given[index] if index < len(given) else options.get("ax")
        if not isinstance(ax, Axes | None):
            how = "matplotlib's axes (`_, ax = plt.subplots()` makes some)"
            message = f"must be {how}, is {format_value(ax)}"
            raise InputError([ValidationIssue(key="ax", message=message)])
        return method(*given, **options)

    return checked


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
            figure.savefig(file, format=kind, dpi=DPI, metadata=metadata)
            return
        drawn = io.BytesIO()
        figure.savefig(drawn, format=kind, metadata=metadata)
    file.write(_with_small_tiles(drawn.getvalue().decode()).encode())


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


def _with_small_tiles(svg: str) -> str:
    """Return *svg* with hatches of dots as one tile that repeats, and not 1,800 circles each.

    matplotlib writes every dot of an inch as a path of its own: 400 kB a hatch.
    """
    return _DOTTED.sub(_tile, svg)


def _tile(match: re.Match[str]) -> str:
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

    def figure(self) -> Figure:
        """Return a new figure."""
        raise NotImplementedError

    def alt_text(self) -> str:
        """Return in words what `figure` shows; files say it as well."""
        return alt_text(self.figure())

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write `figure` to *path*, whose ending says how: .png, .svg or .pdf.

        The file is written whole or not at all, and equal loads give equal bytes.

        Raises:
            InputError: if the ending is another, or the file cannot be written.
        """
        check_ending(path)
        save_figure(self.figure(), path)

    def _repr_png_(self) -> bytes:
        file = io.BytesIO()
        render(self.figure(), file, "png")
        return file.getvalue()


class ShownFigure(Figure):
    """A figure that a notebook shows as a picture.

    Of matplotlib's own it shows a line of text, unless pyplot was imported before; h3sim does
    without pyplot, which keeps every figure that it has made.
    """

    def _repr_png_(self) -> bytes:
        file = io.BytesIO()
        render(self, file, "png")
        return file.getvalue()
