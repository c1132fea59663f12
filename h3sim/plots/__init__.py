"""Figures of loads, of pages and of studies: who was sent when, what that did.

What draws loads matplotlib; `lanes`, `paints`, `palette` and `window` do without it, for pictures
that something else draws.
"""

from h3sim.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__)
