"""Writes animations: as a page, or as a GIF."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from h3sim.documents import check_output, write_whole
from h3sim.errors import InputError, Problem

if TYPE_CHECKING:
    import os

    from h3sim.plots.palette import Palette
    from h3sim.results import Load

__all__ = ["SUFFIXES", "check_animation_path", "write"]

SUFFIXES = (".html", ".gif")


def check_animation_path(path: str | os.PathLike[str] | None, *, key: str = "") -> None:
    """Refuse a path to which no animation could be written; None is none.

    Raises:
        InputError: saying what is wrong with it.
    """
    if path is None:
        return
    if Path(path).suffix.lower() not in SUFFIXES:
        message = f"must end in {' or '.join(SUFFIXES)}, is {str(path)!r}"
        raise InputError([Problem(key=key, message=message)])
    check_output(path, key=key)


def write(load: Load, palette: Palette, path: str | os.PathLike[str]) -> None:
    """Write the animation of *load* to *path*, whole or not at all.

    Raises:
        InputError: if the ending is neither .html nor .gif, or the file cannot be written.
    """
    check_animation_path(path)
    # On use: either brings what the other does not need.
    if Path(path).suffix.lower() == ".gif":
        from h3sim.plots.animation_gif import gif_of

        write_whole(path, gif_of(load, palette))
    else:
        from h3sim.plots.animation_page import page_of

        write_whole(path, page_of(load, palette))
