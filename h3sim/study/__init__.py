"""Studies: single loads by name, sweeps, comparisons and their statistics."""

from h3sim.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__)
