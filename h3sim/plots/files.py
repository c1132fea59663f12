"""Writes figures: equal figures as equal bytes; notebooks show them."""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING, Any

from matplotlib.figure import Figure

from h3sim.errors import InputError, Problem
from h3sim.plots.style import in_style

if TYPE_CHECKING:
    import os
    from typing import BinaryIO

__all__ = ["DPI", "ShownFigure", "check_ending", "render"]

DPI = 150
_UNDATED: dict[str, dict[str, Any]] = {
    "png": {},
    "svg": {"Date": None},
    "pdf": {"CreationDate": None},
}
"""What keeps the day out of a file, by its kind."""


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


def render(figure: Figure, file: BinaryIO, kind: str) -> None:
    """Write *figure* to *file* as *kind*: png, svg or pdf."""
    with in_style():
        figure.savefig(file, format=kind, dpi=DPI, metadata=_UNDATED[kind])


class ShownFigure(Figure):
    """A figure that a notebook shows as a picture.

    Of matplotlib's own it shows a line of text, unless pyplot was imported before; h3sim does
    without pyplot, which keeps every figure that it has made.
    """

    def _repr_png_(self) -> bytes:
        file = io.BytesIO()
        render(self, file, "png")
        return file.getvalue()
