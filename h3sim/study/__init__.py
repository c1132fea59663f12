"""Studies: single loads by name, and comparisons of many."""

from h3sim.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__)
