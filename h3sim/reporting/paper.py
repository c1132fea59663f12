"""The width of figures for papers, in force while such are drawn."""

from __future__ import annotations

import math
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


_NARROW_WIDTH_IN = 4.0
"""Figures up to this width have shorter names."""

# A context variable, as figures may be drawn in several threads.
_paper_in: ContextVar[float | None] = ContextVar("paper_in", default=None)


@contextmanager
def paper(width_in: float | None) -> Iterator[None]:
    """Draw figures for papers, with this width in inches; with None for the screen."""
    token = _paper_in.set(width_in)
    try:
        yield
    finally:
        _paper_in.reset(token)


def paper_in() -> float | None:
    """Return the width in inches of figures for papers, while such are drawn; otherwise None."""
    return _paper_in.get()


def is_narrow() -> bool:
    """Return whether figures are drawn for a column of a paper."""
    return (paper_in() or math.inf) <= _NARROW_WIDTH_IN
