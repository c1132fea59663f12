"""What every command needs: a parser that speaks in single lines, and a list of mistakes."""

from __future__ import annotations

import argparse
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, NoReturn

from h3sim.errors import InputError, UnknownNameError
from h3sim.printable import printable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import TypeVar

    ValueT = TypeVar("ValueT")

__all__ = ["BAD_INPUT", "Mistakes", "Parser", "RawHelp", "progress_bar"]

BAD_INPUT = 2
"""The exit code of bad usage and of bad input."""
RawHelp = argparse.RawDescriptionHelpFormatter
_BAR_AFTER_S = 1.0


class Parser(argparse.ArgumentParser):
    """Says in one line what is wrong with a command line, and where help is."""

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
