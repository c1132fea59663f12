"""Figures, animations and self-contained HTML reports of loads, studies and logs."""

from h3sim.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__)
