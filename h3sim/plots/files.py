"""Writes figures: equal figures as equal bytes; notebooks show them."""

from __future__ import annotations

import io
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from matplotlib.figure import Figure

from h3sim.documents import write_whole
from h3sim.errors import InputError, Problem
from h3sim.plots.style import in_style

if TYPE_CHECKING:
    import os
    from typing import BinaryIO

__all__ = ["DPI", "Saved", "ShownFigure", "check_ending", "render", "save_figure"]

DPI = 150
_UNDATED: dict[str, dict[str, Any]] = {
    "png": {},
    "svg": {"Date": None},
    "pdf": {"CreationDate": None},
}
"""What keeps the day out of a file, by its kind."""
_ALT_KEYS = {"png": "Description", "svg": "Description", "pdf": "Subject"}
"""Where a file says in words what it shows."""

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
    kind = Path(path).suffix.lower().removeprefix(".")
    if kind not in _UNDATED:
        endings = ", ".join(f".{known}" for known in _UNDATED)
        message = f"a figure's name must end in {endings}"
        raise InputError([Problem(key="", message=message)], str(path))
    return kind


def render(figure: Figure, file: BinaryIO, kind: str, *, alt: str = "") -> None:
    """Write *figure* to *file* as *kind*: png, svg or pdf; *alt* says in words what it shows."""
    said = {_ALT_KEYS[kind]: alt} if alt else {}
    metadata = _UNDATED[kind] | said
    with in_style():
        if kind != "svg":
            figure.savefig(file, format=kind, dpi=DPI, metadata=metadata)
            return
        drawn = io.BytesIO()
        figure.savefig(drawn, format=kind, metadata=metadata)
    file.write(_with_small_tiles(drawn.getvalue().decode()).encode())


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


def save_figure(figure: Figure, path: str | os.PathLike[str], *, alt: str = "") -> None:
    """Write *figure* to *path*, whole or not at all; the file says *alt*, where it has room for it.

    Raises:
        InputError: if the ending is another, or the file cannot be written.
    """
    kind = check_ending(path)
    write_whole(path, lambda file: render(figure, file, kind, alt=alt))


class Saved:
    """What has a `figure` that can be written, and that a notebook shows."""

    def figure(self) -> Figure:
        """Return a new figure."""
        raise NotImplementedError

    def alt_text(self) -> str:
        """Return in words what `figure` shows; files say it as well."""
        raise NotImplementedError

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write `figure` to *path*, whose ending says how: .png, .svg or .pdf.

        The file is written whole or not at all, and equal loads give equal bytes.

        Raises:
            InputError: if the ending is another, or the file cannot be written.
        """
        check_ending(path)
        save_figure(self.figure(), path, alt=self.alt_text())

    def _repr_png_(self) -> bytes:
        file = io.BytesIO()
        render(self.figure(), file, "png", alt=self.alt_text())
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
