"""Writes figures: whole or not at all, and equal figures as equal bytes."""

from __future__ import annotations

import contextlib
import secrets
from pathlib import Path
from typing import TYPE_CHECKING, Any

from h3sim.errors import InputError, Problem
from h3sim.plots.style import in_style

if TYPE_CHECKING:
    import os
    from collections.abc import Callable
    from typing import BinaryIO

    from matplotlib.figure import Figure

__all__ = ["DPI", "check_ending", "render", "write_whole"]

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


def write_whole(path: str | os.PathLike[str], write: Callable[[BinaryIO], None]) -> None:
    """Put what *write* writes at *path*; if it fails, whatever stood there stays as it is.

    Raises:
        InputError: if the file cannot be written.
    """
    target = Path(path).resolve()
    draft = target.with_name(f".h3sim-{secrets.token_hex(8)}.tmp")
    try:
        with draft.open("xb") as file:
            write(file)
        draft.replace(target)
    except OSError as error:
        message = f"cannot be written: {error.strerror or error}"
        raise InputError([Problem(key="", message=message)], str(path)) from error
    finally:
        with contextlib.suppress(OSError):
            draft.unlink(missing_ok=True)
