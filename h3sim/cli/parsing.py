"""What every command needs: a parser that speaks in single lines, and a list of mistakes."""

from __future__ import annotations

import argparse
import os
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NoReturn

from h3sim.errors import InputError, UnknownNameError
from h3sim.printable import printable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import TypeVar

    ValueT = TypeVar("ValueT")

__all__ = ["BAD_INPUT", "FAILED", "Mistakes", "Parser", "RawHelp", "output_width", "progress_bar"]

FAILED, BAD_INPUT = 1, 2
"""Exit codes: something did not work out; what was given is wrong."""
_BAR_AFTER_S = 1.0
_WIDTH_UNKNOWN = 100


class RawHelp(argparse.RawDescriptionHelpFormatter):
    """Shows examples as they stand; knows its width without importing shutil and its archives.

    argparse makes a formatter for each argument, not for help alone.
    """

    def __init__(self, prog: str) -> None:
        super().__init__(prog, width=output_width() - 2)

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        """Fold paragraphs of sentences to the terminal; examples stay as they are typed."""
        import textwrap  # for help only

        return "".join(
            textwrap.indent(part if "\n  " in part else textwrap.fill(part, width), indent) + "\n\n"
            for part in text.strip("\n").split("\n\n")
        )


class Parser(argparse.ArgumentParser):
    """Says in one line what is wrong with a command line, and where help is."""

    def __init__(self, **keys: Any) -> None:
        super().__init__(**{"formatter_class": RawHelp} | keys)

    def parse_known_args(  # type: ignore[override]  # as it is called, by this and by subparsers
        self, args: Any = None, namespace: Any = None
    ) -> tuple[argparse.Namespace, list[str]]:
        """Refuse what the command does not know here, where its name and its options are known."""
        options, unknown = super().parse_known_args(args, namespace)
        if unknown:
            import difflib  # on a mistake only

            word = unknown[0].partition("=")[0]
            near = difflib.get_close_matches(word, self._option_string_actions, n=2)
            hint = f"; did you mean {' or '.join(near)}?" if near else ""
            self.error(f"unrecognized arguments: {' '.join(unknown)}{hint}")
        return options, unknown

    def error(self, message: str) -> NoReturn:
        """Exit with 2 after one line."""
        said = printable(message)
        self.exit(BAD_INPUT, f"{self.prog}: {said} (see `{self.prog} --help`)\n")


class Mistakes:
    """Collects the mistakes of several inputs, so that all can be told at once."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def collect(self, read: Callable[[], ValueT]) -> ValueT | None:
        """Return what *read* returns, or None after noting what was wrong."""
        try:
            return read()
        except InputError as error:
            self.lines += error.lines()
        except UnknownNameError as error:
            self.lines.append(str(error))
        return None

    def tell(self, command: str) -> int:
        """Print each mistake as a line of that command, and return the exit code for it."""
        for line in self.lines:
            print(f"h3sim {command}: {line}", file=sys.stderr)
        return BAD_INPUT


def output_width() -> int:
    """Return how many cells are in a line of output: $COLUMNS, or the terminal's, or 100."""
    columns = os.environ.get("COLUMNS", "")
    if columns.isascii() and columns.isdigit() and int(columns) > 0:
        return int(columns)
    try:
        return os.get_terminal_size(sys.stdout.fileno()).columns or _WIDTH_UNKNOWN
    except (OSError, ValueError, AttributeError):  # a pipe, a file, or no standard output
        return _WIDTH_UNKNOWN


@contextmanager
def progress_bar(unit: str) -> Iterator[Callable[[int, int], None] | None]:
    """Yield what to tell of progress (done, total): a bar after a second, on a terminal only.

    Where there is no terminal, nobody is told, and tqdm is not even imported.
    """
    if not sys.stderr.isatty():
        yield None
        return
    from tqdm import tqdm

    with tqdm(unit=unit, leave=False, delay=_BAR_AFTER_S) as bar:

        def progress(done: int, total: int) -> None:
            bar.total = total
            bar.update(done - bar.n)

        yield progress
