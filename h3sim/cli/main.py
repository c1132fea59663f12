"""The command line: parsing, dispatch, exit codes and orderly termination."""

from __future__ import annotations

import contextlib
import gc
import io
import os
import signal
import sys
import threading
import warnings
from contextlib import contextmanager
from typing import TYPE_CHECKING

from h3sim._version import __version__, build
from h3sim.cli.parsing import BAD_INPUT, FAILED, Parser, RawHelp
from h3sim.errors import H3SimError, InputError, Terminated
from h3sim.lazy import gc_paused

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterator, Sequence


_KILLED = 128
"""Offset from a signal's number to the shell's exit code for it."""


@contextmanager
def exits_on_sigterm() -> Iterator[None]:
    """Handle SIGTERM like Ctrl-C, so that temporary files are removed and browsers stopped.

    Without it, Python exits at once and runs no `finally`. The previous handler is restored
    afterwards. Only the main thread may set signal handlers; other threads change nothing.
    """

    def leave(number: int, _frame: object) -> None:
        raise Terminated(_KILLED + number)

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, leave)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


_INTERRUPTED = 130
_EPILOG = """\
examples:
  h3sim run http2rulez --scheme bucket-html
  h3sim compare http2rulez davies-meenan --plot schemes.png
  h3sim list schemes

exit codes: 0 success, 1 a run failed, 2 bad usage or bad input
"""
COMMANDS = {
    "run": "load one page with one scheme",
    "compare": "load pages with several schemes",
    "report": "write loads, a study or a log as a single HTML file",
    "what-if": "explain what delays load events, and how much sooner they could fire",
    "recommend": "recommend a scheme for your own page, from a HAR in one command",
    "optimality": "compare schemes with a lower bound that no scheme can beat",
    "search": "find the best scheme for pages, with its uncertainty",
    "sweep": "run a study: many loads, stored and resumed",
    "reproduce": "repeat the papers' experiments and judge their findings",
    "store": "show, verify, repair, export or prune the stores of studies",
    "prioritization-test": "test whether a server lets urgent responses overtake",
    "validate-scheme": "compare a scheme's rules with recorded browser priorities",
    "conform": "check a scheduler of another language for bugs",
    "identify": "identify the scheduler behind a qlog or a HAR",
    "workload": "write a workload that tells the schedulers of servers apart",
    "header-compression": "compare header compression schemes",
    "qlog": "compute the metrics of a qlog",
    "import": "convert a recording or a site into a page",
    "record": "record a page in Chromium",
    "transform": "edit a page: push, preload, cache or inline resources",
    "annotate": "mark resources as above the fold",
    "list": "list the shipped pages, schemes, networks and more",
    "show": "show one page, scheme, network or profile in full",
}
_RENAMED = {
    "advise": "recommend",
    "check-rules": "validate-scheme",
    "check-server": "prioritization-test",
    "edit": "transform",
    "find": "search",
    "headers": "header-compression",
    "mark": "annotate",
    "measure": "qlog",
    "regret": "optimality",
}
"""Commands of h3sim 0.1, with their present names."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code: 0 success, 1 failure, 2 bad usage or input."""
    _have_streams()
    arguments = sys.argv[1:] if argv is None else list(argv)
    if arguments and arguments[0] in _RENAMED:
        _complain(f"'{arguments[0]}' was renamed to '{_RENAMED[arguments[0]]}'")
        return BAD_INPUT
    try:
        with exits_on_sigterm():
            return _run(arguments, is_own_process=argv is None)
    except InputError as error:
        _complain(*error.lines())
        return BAD_INPUT
    except H3SimError as error:
        _complain(str(error))
    except KeyboardInterrupt as interrupt:
        _complain("interrupted", *getattr(interrupt, "__notes__", ()))
        return _INTERRUPTED
    except BrokenPipeError:
        _drop_output()  # the reader of our output closed the pipe
    except OSError as error:
        if error.filename is not None:
            raise  # not caused by the output
        _drop_output()
        _complain(f"standard output cannot be written: {error.strerror or error}")
    return FAILED


def _run(arguments: Sequence[str], *, is_own_process: bool) -> int:
    """Run the command and flush its output: a full disk may show only then."""
    try:
        with gc_paused():
            options = make_parser(arguments).parse_args(arguments)
            if is_own_process:
                gc.freeze()  # imported modules live to the end: no collection need visit them
                warnings.formatwarning = _formatted
        options.arguments = arguments
        code: int = options.command(options)
    finally:
        sys.stdout.flush()
    return code


def make_parser(arguments: Sequence[str]) -> argparse.ArgumentParser:
    """Return the parser; only the requested command, if any, is imported."""
    parser = Parser(
        prog="h3sim",
        description="Replay web pages through HTTP/2 and HTTP/3 prioritization schemes.",
        epilog=_EPILOG,
        formatter_class=RawHelp,
    )
    parser.add_argument("--version", action="version", version=f"h3sim {__version__} ({build()})")
    commands = parser.add_subparsers(required=True, metavar="COMMAND", parser_class=Parser)
    wanted = next((word for word in arguments if not word.startswith("-")), "")
    # If the first word is a command, the other parsers are not built: that would take as long as
    # reading a page.
    is_first = arguments[:1] == [wanted] and wanted in COMMANDS
    for name, summary in COMMANDS.items():
        if is_first and name != wanted:
            continue
        if name == wanted:
            _add_command(name)(commands, summary)
        else:
            commands.add_parser(name, help=summary)
    return parser


def _add_command(name: str) -> Callable[[argparse._SubParsersAction[Parser], str], None]:
    """Return the function that adds the command to the parser."""
    match name:
        case "run":
            from h3sim.cli.run import add_command
        case "compare":
            from h3sim.cli.compare import add_command
        case "report":
            from h3sim.cli.report import add_command
        case "what-if":
            from h3sim.cli.optimality import add_what_if as add_command
        case "recommend":
            from h3sim.cli.search import add_recommend as add_command
        case "optimality":
            from h3sim.cli.optimality import add_optimality as add_command
        case "search":
            from h3sim.cli.search import add_search as add_command
        case "sweep":
            from h3sim.cli.sweep import add_sweep as add_command
        case "reproduce":
            from h3sim.cli.reproduce import add_command
        case "store":
            from h3sim.cli.sweep import add_store as add_command
        case "prioritization-test":
            from h3sim.cli.validate import add_prioritization_test as add_command
        case "validate-scheme":
            from h3sim.cli.validate import add_validate_scheme as add_command
        case "conform":
            from h3sim.cli.conform import add_command
        case "identify":
            from h3sim.cli.identify import add_identify as add_command
        case "workload":
            from h3sim.cli.identify import add_workload as add_command
        case "header-compression":
            from h3sim.cli.header_compression import add_command
        case "qlog":
            from h3sim.cli.measure import add_command
        case "import":
            from h3sim.cli.importing import add_import as add_command
        case "record":
            from h3sim.cli.importing import add_record as add_command
        case "transform":
            from h3sim.cli.transform import add_transform as add_command
        case "annotate":
            from h3sim.cli.transform import add_annotate as add_command
        case "list":
            from h3sim.cli.listing import add_command
        case _:
            from h3sim.cli.show import add_command
    return add_command


def _have_streams() -> None:
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


def _drop_output() -> None:
    """Discard unwritten output, so that the interpreter does not complain at exit."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


_python_format = warnings.formatwarning


def _formatted(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    line: str | None = None,
) -> str:
    """Return a warning as Python formats it; a plug-in's on one line, without source location."""
    from h3sim.plugins import PluginWarning  # lazy: most commands give no warning

    if issubclass(category, PluginWarning):
        return f"h3sim: {message}\n"
    return _python_format(message, category, filename, lineno, line)


def _complain(*lines: str) -> None:
    for line in lines:
        print(f"h3sim: {line}", file=sys.stderr)
