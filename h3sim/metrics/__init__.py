"""Metrics computed from a trace: pure functions of a trace, or of plain numbers."""

from h3sim.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__)
