"""What a module of benchmarks takes on its command line; what its docstring says is its help."""

from __future__ import annotations

import argparse

__all__ = ["parser_of"]


def parser_of(document: str | None) -> argparse.ArgumentParser:
    r"""Return the parser of a module with that docstring, which begins with its command.

    >>> parser_of("`python -m benchmarks.one`: what one costs.").format_usage()
    'usage: python -m benchmarks.one [-h]\n'
    """
    command, _, about = (document or "").partition(": ")
    prog, _, _ = command.strip("`").partition(" [")
    return argparse.ArgumentParser(
        prog=prog,
        description=(about[:1].upper() + about[1:]).replace("`", ""),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
