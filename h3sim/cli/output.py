"""Output of commands: text and tables for the terminal, JSON, files, figures and progress."""

from __future__ import annotations

import json
import os
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from h3sim.schema import check_output, write_atomically
from h3sim.values.errors import InputError
from h3sim.values.table import MISSING, Column, Table
from h3sim.values.text import escape_control, wrap

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterable, Iterator, Sequence


Progress: TypeAlias = "Callable[[int, int], None]"
"""Callback for the numbers of finished and of all loads."""
STANDARD_OUTPUT = "-"
"""File name that means standard output."""
PLOT = (".png", ".svg", ".pdf")
"""Suffixes of figures."""
HTML = (".html", ".htm")
"""Suffixes of reports."""
_BAR_DELAY_S = 1.0
"""Time before a progress bar appears, so that quick commands show none."""
_DEFAULT_WIDTH = 100
"""Width of output that is not to a terminal."""


NO_HOL = (
    "No head-of-line blocking: no byte waited for a gap in any load. It takes losses or"
    " reordering: --loss 1% --rtt-ms 50, for example, or --network wifi-lossy"
)


def fitted(text: str, width: int | None) -> str:
    """Wrap *text* to lines of at most *width* cells.

    >>> print(fitted("so many words", 8))
    so many
    words
    """
    return text if width is None else "\n".join(wrap(text, width))


def of(
    rows: Iterable[Any], *columns: str | tuple[str | Column, str | Callable[[Any], Any]]
) -> Table[tuple[Any, ...]]:
    """Return the table of *rows*; each column has an attribute or a function for its values.

    A column given by an attribute alone has it as heading; with "_ms" at its end it is a time.

    >>> print(of([("rr", 1.5), ("fifo", 2.25)], ("scheme", lambda row: row[0])))
    scheme
    ------
    rr
    fifo
    """
    pairs = [(_heading(name), name) if isinstance(name, str) else name for name in columns]
    cells = (
        tuple(value(row) if callable(value) else getattr(row, value) for _, value in pairs)
        for row in rows
    )
    return Table((heading for heading, _ in pairs), cells)


def _heading(attribute: str) -> str | Column:
    words = attribute.replace("_", " ")
    return Column.ms(words) if attribute.endswith("_ms") else words


def show(width: int | None, *parts: str | Iterable[str] | Table[Any], shorten: bool = True) -> None:
    """Print sentences, lists of sentences and tables, with an empty line between two parts."""
    texts = []
    for part in parts:
        if isinstance(part, Table):
            texts.append(part.to_text(width, shorten=shorten))
        else:
            lines = [part] if isinstance(part, str) else part
            texts.append("\n".join(fitted(escape_control(line), width) for line in lines))
    print("\n\n".join(texts))


def marked(attribute: str) -> Callable[[Any], str]:
    """Return a function from a row to "yes" where *attribute* is true, else ""."""
    return lambda row: "yes" if getattr(row, attribute) else ""


def in_ms(value_ms: float | None) -> str:
    """Format a time with one decimal; None is a dash."""
    return MISSING if value_ms is None else f"{value_ms:,.1f}"


def ratio(value: float | None) -> str:
    """Format a ratio with two decimals; None is a dash."""
    return MISSING if value is None else f"{value:.2f}"


def terminal_width() -> int:
    """Return the width of the output in cells: $COLUMNS, or the terminal's, or 100."""
    columns = os.environ.get("COLUMNS", "")
    if columns.isascii() and columns.isdigit() and int(columns) > 0:
        return int(columns)
    try:
        return os.get_terminal_size(sys.stdout.fileno()).columns or _DEFAULT_WIDTH
    except (OSError, ValueError, AttributeError):  # a pipe, a file, or no standard output
        return _DEFAULT_WIDTH


def print_first(sentence: str) -> None:
    """Print an early result to standard error, if that is a terminal."""
    if sys.stderr.isatty():
        print(f"h3sim: {escape_control(sentence)}", file=sys.stderr, flush=True)


@contextmanager
def progress_bar(unit: str = "load") -> Iterator[Progress | None]:
    """Yield a progress callback (done, total) that shows a bar after one second.

    Without a terminal it yields None, and tqdm is not imported.
    """
    if not sys.stderr.isatty():
        yield None
        return
    from tqdm import tqdm

    with tqdm(unit=unit, leave=False, delay=_BAR_DELAY_S) as bar:

        def progress(done: int, total: int) -> None:
            bar.total = total
            bar.update(done - bar.n)

        yield progress


def print_json(document: Any) -> None:
    """Print a document as one line of JSON."""
    print(json.dumps(document, allow_nan=False))


def print_file(text: str) -> None:
    """Print the *text* of a file in UTF-8, whatever the terminal's encoding."""
    import io

    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8")
    print(text.removesuffix("\n"))


def write_output(path: str, text: str) -> None:
    """Write *text* to *path* atomically, or print it if *path* is `-`.

    Raises:
        InputError: if the file cannot be written.
    """
    if path == STANDARD_OUTPUT:
        print_file(text)
    else:
        write_atomically(path, text, key="--output")


def report_written(path: str | Path) -> None:
    """Report on standard error that a file was written."""
    print(f"wrote {escape_control(str(path))}", file=sys.stderr)


def figure_style(options: argparse.Namespace) -> dict[str, Any]:
    """Return the keyword arguments of methods that draw."""
    return {"style": options.style, "width": options.figure_width}


def save_plot(found: Any, options: argparse.Namespace, **how: Any) -> None:
    """Save the figure of *found*, if `--plot` requests it."""
    if options.plot is not None:
        found.plot.save(options.plot, **how, **figure_style(options))
        report_written(options.plot)


def save_report(path: str, options: argparse.Namespace, *subjects: Any, **how: Any) -> Any:
    """Save a report on *subjects* with the command that made it, and return the report."""
    import shlex  # lazy, like the next, which imports matplotlib

    from h3sim.reporting import report

    made = report(*subjects, command=f"h3sim {shlex.join(options.arguments)}", **how)
    made.save(path)
    report_written(path)
    return made


def check_output_path(path: str, suffixes: Sequence[str], *, key: str) -> None:
    """Refuse, before anything runs, a path that could not be written.

    Raises:
        InputError: if the path has none of *suffixes* or is unusable.
    """
    # This suffix stands for any file, or standard output.
    if suffixes == (STANDARD_OUTPUT,):
        suffixes = ()
        if path == STANDARD_OUTPUT:
            return
    if suffixes and Path(path).suffix.lower() not in suffixes:
        last = " or ".join(suffixes) if len(suffixes) <= 2 else ", ".join(suffixes)
        raise InputError.at(key, f"must end in {last}, is {path!r}")
    check_output(path, key=key)
