"""The command line: `h3sim run`, `compare`, `measure`, `import`, `record`, `list` and `show`."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from h3sim import __version__
from h3sim.cli import compare, importing, listing, measure, record, run, show
from h3sim.cli.options import BAD_INPUT, Parser
from h3sim.cli.termination import exits_on_sigterm
from h3sim.errors import H3SimError, InputError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

__all__ = ["main"]

_FAILED = 1
_INTERRUPTED = 130
_EPILOG = """\
examples:
  h3sim run http2rulez --scheme bucket-html
  h3sim compare http2rulez davies-meenan --plot schemes.png
  h3sim list schemes

exit codes: 0 good, 1 a run failed, 2 bad usage or bad input
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code: 0 good, 1 failed, 2 bad usage or input."""
    parser = _parser()
    options = parser.parse_args(argv)
    try:
        with exits_on_sigterm():
            code: int = options.command(options)
        sys.stdout.flush()
    except InputError as error:
        _complain(*error.lines())
        return BAD_INPUT
    except H3SimError as error:
        _complain(str(error))
        return _FAILED
    except KeyboardInterrupt:
        _complain("interrupted")
        return _INTERRUPTED
    except BrokenPipeError:
        # Whoever read our output has gone; keep the interpreter from complaining at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _FAILED
    return code


def _parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="h3sim",
        description="Replay web pages through HTTP/2 and HTTP/3 prioritization schemes.",
        epilog=_EPILOG,
        formatter_class=run.RawHelp,
    )
    parser.add_argument("--version", action="version", version=f"h3sim {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND", parser_class=Parser)
    run.add_command(commands)
    compare.add_command(commands)
    measure.add_command(commands)
    importing.add_command(commands)
    record.add_command(commands)
    listing.add_command(commands)
    show.add_command(commands)
    return parser


def _complain(*lines: str) -> None:
    for line in lines:
        print(f"h3sim: {line}", file=sys.stderr)
