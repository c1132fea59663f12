"""Files that several commands write: what their names may be."""

from __future__ import annotations

from pathlib import Path

from h3sim.documents import check_output
from h3sim.errors import InputError, Problem

__all__ = ["check_plot_path"]

_PLOT_SUFFIXES = (".png", ".svg", ".pdf")


def check_plot_path(path: str | None) -> None:
    """Refuse, before anything runs, a figure that could not be written.

    Raises:
        InputError: saying what is wrong with the path.
    """
    if path is None:
        return
    if Path(path).suffix.lower() not in _PLOT_SUFFIXES:
        message = f"must end in {', '.join(_PLOT_SUFFIXES)}, is {path!r}"
        raise InputError([Problem(key="--plot", message=message)])
    check_output(path, key="--plot")
