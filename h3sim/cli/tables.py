"""Width of the output, and text that is fitted to it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from h3sim.cli.parsing import output_width
from h3sim.table import MISSING
from h3sim.text import wrap

if TYPE_CHECKING:
    import argparse


def add_wide(parser: argparse.ArgumentParser) -> None:
    """Add the option that disables truncation of tables."""
    parser.add_argument(
        "--no-truncate",
        action="store_true",
        help="do not wrap or truncate output (default: fit the terminal)",
    )


def terminal_width(options: argparse.Namespace) -> int | None:
    """Return the width limit of the output; None means unlimited (`--no-truncate`)."""
    return None if options.no_truncate else output_width()


def fitted(text: str, width: int | None) -> str:
    """Wrap *text* to lines of at most *width* cells.

    >>> print(fitted("so many words", 8))
    so many
    words
    """
    return text if width is None else "\n".join(wrap(text, width))


def in_ms(value_ms: float | None) -> str:
    """Format a time with one decimal; None is a dash."""
    return MISSING if value_ms is None else f"{value_ms:,.1f}"


def ratio(value: float | None) -> str:
    """Format a ratio with two decimals; None is a dash."""
    return MISSING if value is None else f"{value:.2f}"
