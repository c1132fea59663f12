"""The command line: parsing, dispatch, exit codes and orderly termination."""

from __future__ import annotations

import argparse
import contextlib
import gc
import io
import os
import signal
import sys
import threading
import warnings
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING

from h3sim._version import identity
from h3sim.cli import command
from h3sim.cli.command import BAD_INPUT, FAILED, Parser
from h3sim.values.errors import H3SimError, InputError, Terminated, UnknownNameError
from h3sim.values.garbage import gc_paused
from h3sim.values.text import escape_control

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


_SIGNAL_EXIT_OFFSET = 128
"""Exit codes after a signal are its number plus this, as in shells."""


@contextmanager
def exits_on_sigterm() -> Iterator[None]:
    """Handle SIGTERM like Ctrl-C, so that temporary files are removed and browsers stopped.

    Without it, Python exits at once and runs no `finally`. The previous handler is restored
    afterwards. Only the main thread may set signal handlers; other threads change nothing.
    """

    def leave(number: int, _frame: object) -> None:
        raise Terminated(_SIGNAL_EXIT_OFFSET + number)

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    previous = signal.signal(signal.SIGTERM, leave)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, previous)


_INTERRUPTED_EXIT_CODE = 130
"""Exit code after Ctrl-C, that of SIGINT in shells."""
_EPILOG = """\
examples:
  h3sim run http2rulez --scheme bucket-html
  h3sim compare http2rulez davies-meenan --plot schemes.png
  h3sim list schemes

exit codes: 0 success, 1 a run failed, 2 bad usage or bad input
"""
COMMANDS = {
    "run": ("run", "load one page with one scheme"),
    "compare": ("compare", "load pages with several schemes"),
    "report": ("report", "write loads, a study or a log as a single HTML file"),
    "what-if": ("optimality", "explain what delays load events, and what would hasten them"),
    "predict": ("search", "predict paints and load event of a recorded page over other networks"),
    "hints": ("search", "try edits of your page, and say which make it faster, and by how much"),
    "recommend": ("search", "recommend a scheme for your own page, from a HAR in one command"),
    "optimality": ("optimality", "compare schemes with a lower bound that no scheme can beat"),
    "search": ("search", "find the best scheme for pages, with its uncertainty"),
    "sweep": ("sweep", "run a study: many loads, stored and resumed"),
    "reproduce": ("reproduce", "repeat the papers' experiments and judge their findings"),
    "store": ("sweep", "show, verify, repair, export or prune the stores of studies"),
    "prioritization-test": ("validate", "test whether a server lets urgent responses overtake"),
    "validate-scheme": ("validate", "compare a scheme's rules with recorded browser priorities"),
    "conform": ("conform", "check a scheduler of another language for bugs"),
    "identify": ("qlog", "identify the scheduler behind a qlog, a HAR or a network log"),
    "workload": ("qlog", "write a workload that tells the schedulers of servers apart"),
    "header-compression": ("header_compression", "compare header compression schemes"),
    "qlog": ("qlog", "compute the metrics of a qlog"),
    "import": ("pages", "convert a recording or a site into a page"),
    "record": ("pages", "record a page in Chromium"),
    "transform": ("pages", "edit a page: push, preload, cache or inline resources"),
    "annotate": ("pages", "mark resources as above the fold"),
    "list": ("show", "list the shipped pages, schemes, networks and more"),
    "show": ("show", "show one page, scheme, network or profile in full"),
}
"""Commands in the order of the help: module in `h3sim.cli`, and summary."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code: 0 success, 1 failure, 2 bad usage or input."""
    _ensure_streams()
    arguments = sys.argv[1:] if argv is None else list(argv)
    try:
        with exits_on_sigterm():
            return _run(arguments, is_own_process=argv is None)
    except (InputError, UnknownNameError) as error:
        lines = error.lines() if isinstance(error, InputError) else [str(error)]
        _print_errors(*lines, command=f" {arguments[0]}")
        return BAD_INPUT
    except H3SimError as error:
        _print_errors(str(error))
    except KeyboardInterrupt as interrupt:
        _print_errors("interrupted", *getattr(interrupt, "__notes__", ()))
        return _INTERRUPTED_EXIT_CODE
    except BrokenPipeError:
        _discard_output()  # the reader of our output closed the pipe
    except OSError as error:
        if not _is_output_broken():
            raise
        _discard_output()
        _print_errors(f"standard output cannot be written: {error.strerror or error}")
    return FAILED


def _run(arguments: Sequence[str], *, is_own_process: bool) -> int:
    """Run the command and flush its output: a full disk may show only then."""
    try:
        with gc_paused():
            options = make_parser(arguments).parse_args(arguments)
            if is_own_process:
                gc.freeze()  # imported modules stay: garbage collections need not visit them
                warnings.formatwarning = _format_warning
        options.arguments = arguments
        code: int = options.command.run(options)
    finally:
        sys.stdout.flush()
    return code


def make_parser(arguments: Sequence[str]) -> argparse.ArgumentParser:
    """Return the parser; only the requested command, if any, is imported."""
    parser = Parser(
        prog="h3sim",
        description="Replay web pages through HTTP/2 and HTTP/3 prioritization schemes.",
        epilog=_EPILOG,
    )
    parser.add_argument("--version", action=_VersionAction)
    commands = parser.add_subparsers(required=True, metavar="COMMAND", parser_class=Parser)
    requested = next((word for word in arguments if not word.startswith("-")), "")
    # If the first word is a command, the other parsers are not built: that would take as long as
    # reading a page.
    is_first = arguments[:1] == [requested] and requested in COMMANDS
    for name, (module, summary) in COMMANDS.items():
        if is_first and name != requested:
            continue
        subparser = commands.add_parser(name, help=summary)
        if name == requested:
            import_module(f"h3sim.cli.{module}")
            command.COMMANDS[name].add_to(subparser, name, shows_all="--help-all" in arguments)
    return parser


class _VersionAction(argparse.Action):
    """Action that prints version, commit and build, which take time to look up, and exits."""

    def __init__(self, option_strings: Sequence[str], dest: str) -> None:
        about = "show version, commit and build, and exit"
        super().__init__(option_strings, dest, nargs=0, default=argparse.SUPPRESS, help=about)

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        print(identity())
        parser.exit()


def _ensure_streams() -> None:
    """Replace closed standard streams, which are None in Python.

    The substitute for standard output is read-only, so that writing fails as on a closed one.
    Characters that the output's encoding lacks are escaped.
    """
    if sys.stdout is None:
        sys.stdout = open(os.devnull, encoding="utf-8")  # noqa: PTH123, SIM115 - stays open
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123, SIM115 - stays open
    # Pipes use the system's encoding, which on Windows lacks most scripts.
    if isinstance(sys.stdout, io.TextIOWrapper) and sys.stdout.errors == "strict":
        sys.stdout.reconfigure(errors="backslashreplace")


def _is_output_broken() -> bool:
    """Return whether standard output cannot be written; what failed to be written is kept in it."""
    try:
        sys.stdout.write("")
        sys.stdout.flush()
    except (OSError, ValueError):
        return True
    return False


def _discard_output() -> None:
    """Discard unwritten output, so that the interpreter does not complain at exit."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


_default_formatwarning = warnings.formatwarning


def _format_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    line: str | None = None,
) -> str:
    """Return a warning as Python formats it; h3sim's own on one line, without source location."""
    from h3sim.values.errors import (
        NotReusedWarning,  # lazy, like the next: few commands give a warning
    )
    from h3sim.values.plugins import PluginWarning

    if issubclass(category, PluginWarning | NotReusedWarning):
        return f"h3sim: {message}\n"
    return _default_formatwarning(message, category, filename, lineno, line)


def _print_errors(*lines: str, command: str = "") -> None:
    for text in lines:
        # Errors of libraries may quote bytes of a file.
        for line in text.split("\n"):
            print(f"h3sim{command}: {escape_control(line)}", file=sys.stderr)
