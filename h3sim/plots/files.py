"""Writes figures: equal figures as equal bytes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from h3sim.errors import InputError, Problem
from h3sim.plots.style import in_style

if TYPE_CHECKING:
    import os
    from typing import BinaryIO

    from matplotlib.figure import Figure

__all__ = ["DPI", "check_ending", "render"]

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
