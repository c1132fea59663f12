"""The command line's parser, its error list, and checks of output file names."""

from __future__ import annotations

import argparse
import io
import os
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from h3sim.errors import InputError, UnknownNameError, ValidationIssue
from h3sim.schema import check_output, format_value, write_whole
from h3sim.text import escape_control

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from typing import TypeVar


if TYPE_CHECKING:
    ValueT = TypeVar("ValueT")


FAILED, BAD_INPUT = 1, 2
"""Exit codes: a run failed; bad usage or bad input."""
_BAR_AFTER_S = 1.0
_WIDTH_UNKNOWN = 100


class RawHelp(argparse.RawDescriptionHelpFormatter):
    """Help formatter that keeps examples as typed and finds its width without importing shutil.

    argparse makes a formatter for every argument, so importing shutil would slow every start.
    """

    def __init__(self, prog: str) -> None:
        super().__init__(prog, width=output_width() - 2)

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        """Wrap paragraphs to the terminal; keep examples as typed."""
        import textwrap  # for help only

        return "".join(
            textwrap.indent(part if "\n  " in part else textwrap.fill(part, width), indent) + "\n\n"
            for part in text.strip("\n").split("\n\n")
        )


class Parser(argparse.ArgumentParser):
    """Argument parser that reports every error, one per line, and points to help."""

    def __init__(self, **keys: Any) -> None:
        self._refused: list[str] = []
        super().__init__(**{"formatter_class": RawHelp} | keys)

    def parse_known_args(  # type: ignore[override]  # the signature that subparsers call
        self, args: Any = None, namespace: Any = None
    ) -> tuple[argparse.Namespace, list[str]]:
        """Refuse unknown arguments here, where the command's name and options are known."""
        options, unknown = super().parse_known_args(args, namespace)
        if unknown:
            word = unknown[0].partition("=")[0]
            hint = _renamed(word) or _did_you_mean(word, self._option_string_actions)
            self.error(f"unrecognized arguments: {' '.join(unknown)}{hint}")
        if self._refused:
            self.error(self._refused.pop())
        return options, unknown

    def _get_value(self, action: argparse.Action, arg_string: str) -> Any:
        """Return the value of a word; report a bad one after all others have been checked."""
        try:
            return super()._get_value(action, arg_string)
        except argparse.ArgumentError as error:
            wanted = _WANTED.get(getattr(action.type, "__name__", ""))
            said = (
                error.message
                if wanted is None
                else f"must be {wanted}, is {format_value(arg_string)}"
            )
            self._refused.append(f"{_called(action)}: {said}")
            return _REFUSED

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if value is _REFUSED or action.choices is None or value in action.choices:
            return
        said = f"{format_value(value)} is not one of {', '.join(map(str, action.choices))}"
        hint = _did_you_mean(str(value), action.choices)
        if action.nargs == argparse.PARSER:  # a command: nothing else can be read
            self.error(f"no {_called(action)} is called {format_value(value)}{hint}")
        key = _called(action)
        self._refused.append(f"{key}: {said}{hint}" if key else f"{said}{hint}")

    def error(self, message: str) -> NoReturn:
        """Exit with 2 after one line per error; the last line points to help."""
        lines = [f"{self.prog}: {escape_control(line)}" for line in (*self._refused, message)]
        self.exit(BAD_INPUT, "\n".join(lines) + f" (see `{self.prog} --help`)\n")


_REFUSED: Any = object()
"""Placeholder for the value of a refused word."""
_WANTED = {"int": "a whole number", "float": "a number", "share": "a share (0.02, or 2%)"}


def _called(action: argparse.Action) -> str:
    """Return the display name of an argument: its longest switch, or its metavar."""
    metavar = action.metavar if isinstance(action.metavar, str) else action.dest
    if action.nargs == argparse.PARSER:
        return metavar.lower()
    return max(action.option_strings, key=len, default="" if "|" in metavar else metavar)


def _renamed(flag: str) -> str:
    """Return the present name of a flag that was renamed, as the end of a message."""
    from h3sim.config.load_config import FLAGS  # lazy: needed for errors only

    return f"; {flag} was renamed to {FLAGS[flag]}" if flag in FLAGS else ""


def _did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return similar names as the end of a message."""
    import difflib  # lazy: needed for errors only

    near = difflib.get_close_matches(word, list(known), n=2)
    return f"; did you mean {' or '.join(near)}?" if near else ""


class ErrorList:
    """Collector of the errors of several inputs, so that all are reported at once."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def collect(self, read: Callable[[], ValueT]) -> ValueT | None:
        """Call *read* and return its result, or None after collecting its errors."""
        try:
            return read()
        except InputError as error:
            self.lines += error.lines()
        except UnknownNameError as error:
            self.lines.append(str(error))
        return None

    def tell(self, command: str) -> int:
        """Print one line per error, prefixed with the command, and return the exit code."""
        for line in self.lines:
            print(f"h3sim {command}: {line}", file=sys.stderr)
        return BAD_INPUT


def output_width() -> int:
    """Return the width of the output in cells: $COLUMNS, or the terminal's, or 100."""
    columns = os.environ.get("COLUMNS", "")
    if columns.isascii() and columns.isdigit() and int(columns) > 0:
        return int(columns)
    try:
        return os.get_terminal_size(sys.stdout.fileno()).columns or _WIDTH_UNKNOWN
    except (OSError, ValueError, AttributeError):  # a pipe, a file, or no standard output
        return _WIDTH_UNKNOWN


@contextmanager
def progress_bar(unit: str) -> Iterator[Callable[[int, int], None] | None]:
    """Yield a progress callback (done, total) that shows a bar after one second.

    Without a terminal it yields None, and tqdm is not imported.
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


STANDARD_OUTPUT = "-"
"""File name that means standard output."""
_PLOT_SUFFIXES = (".png", ".svg", ".pdf")


def print_file(text: str) -> None:
    """Print the *text* of a file in UTF-8, whatever the terminal's encoding."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8")
    print(text.removesuffix("\n"))


def check_file(path: str) -> None:
    """Refuse, before anything runs, a path that `put_file` could not write.

    Raises:
        InputError: if the path is unusable.
    """
    if path != STANDARD_OUTPUT:
        check_output(path, key="-o")


def put_file(path: str, text: str) -> None:
    """Write *text* to *path* atomically, or print it if *path* is `-`.

    Raises:
        InputError: if the file cannot be written.
    """
    if path == STANDARD_OUTPUT:
        print_file(text)
    else:
        write_whole(path, text, key="-o")


def check_plot_path(path: str | None) -> None:
    """Refuse, before anything runs, a figure path that could not be written.

    Raises:
        InputError: if the path is unusable.
    """
    if path is None:
        return
    if Path(path).suffix.lower() not in _PLOT_SUFFIXES:
        message = f"must end in {', '.join(_PLOT_SUFFIXES)}, is {path!r}"
        raise InputError([ValidationIssue(key="--plot", message=message)])
    check_output(path, key="--plot")


def check_outputs_differ(options: argparse.Namespace, **outputs: str) -> None:
    """Refuse, before anything runs, outputs that would overwrite an input or each other.

    *outputs* maps each attribute that names an output file to its option.

    Raises:
        InputError: with one issue per conflicting path.
    """
    taken = {
        _real(path): "an input file"
        for path in _words(options, but=tuple(outputs))
        if os.path.isfile(path)  # noqa: PTH113 - words and paths alike
    }
    problems: list[ValidationIssue] = []
    for name, key in outputs.items():
        path = getattr(options, name)
        # A device, /dev/null say, may be written to twice.
        if path is None or (os.path.exists(path) and not os.path.isfile(path)):  # noqa: PTH110, PTH113
            continue
        if (other := taken.get(_real(path))) is not None:
            message = f"{format_value(path)} is also {other}: choose another file"
            problems.append(ValidationIssue(key=key, message=message))
        taken[_real(path)] = key
    if problems:
        raise InputError(problems)


def _words(options: argparse.Namespace, but: tuple[str, ...]) -> Iterator[str]:
    """Yield each word of the command line, except those of options *but*."""
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
