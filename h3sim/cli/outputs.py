"""Files that several commands write: what their names may be."""

from __future__ import annotations

import io
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from h3sim.documents import check_output, shown, write_whole
from h3sim.errors import InputError, Problem

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Sequence

__all__ = [
    *("STANDARD_OUTPUT", "check_file", "check_outputs_differ", "check_plot_path", "print_file"),
    "put_file",
]

STANDARD_OUTPUT = "-"
"""What stands for it where a file is named that is written."""
_PLOT_SUFFIXES = (".png", ".svg", ".pdf")


def print_file(text: str) -> None:
    """Print the *text* of a file that others will read: in UTF-8, whatever a terminal has."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8")
    print(text.removesuffix("\n"))


def check_file(path: str) -> None:
    """Refuse, before anything runs, a file that `put_file` could not write.

    Raises:
        InputError: saying what is wrong with the path.
    """
    if path != STANDARD_OUTPUT:
        check_output(path, key="-o")


def put_file(path: str, text: str) -> None:
    """Write *text* to the file at *path*, whole or not at all; print it where that is `-`.

    Raises:
        InputError: if the file cannot be written.
    """
    if path == STANDARD_OUTPUT:
        print_file(text)
    else:
        write_whole(path, text, key="-o")


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


def check_outputs_differ(options: argparse.Namespace, **outputs: str) -> None:
    """Refuse, before anything runs, outputs that would take the place of what is read.

    *outputs* says of each option that names one how people write it. Two of them at one path are
    refused as well.

    Raises:
        InputError: for each that is at the path of something else.
    """
    taken = {
        _real(path): "what is read"
        for path in _words(options, but=tuple(outputs))
        if os.path.isfile(path)  # noqa: PTH113 - words and paths alike
    }
    problems: list[Problem] = []
    for name, key in outputs.items():
        path = getattr(options, name)
        # A device, /dev/null say, may be written to twice.
        if path is None or (os.path.exists(path) and not os.path.isfile(path)):  # noqa: PTH110, PTH113
            continue
        if (other := taken.get(_real(path))) is not None:
            message = f"{shown(path)} is {other}, too: name another file"
            problems.append(Problem(key=key, message=message))
        taken[_real(path)] = key
    if problems:
        raise InputError(problems)


def _words(options: argparse.Namespace, but: tuple[str, ...]) -> Iterator[str]:
    """Yield each word given, those of options *but* left out."""
    for name, value in vars(options).items():
        # "arguments" is the command line as it was typed, outputs and all.
        if name not in (*but, "arguments"):
            yield from (each for each in (value, *_listed(value)) if isinstance(each, str))


def _listed(value: object) -> Sequence[object]:
    return value if isinstance(value, list) else ()


def _real(path: str) -> str:
    try:
        return os.path.realpath(path)
    except (OSError, ValueError):  # a loop of links, a NUL: refused where it is opened
        return path
