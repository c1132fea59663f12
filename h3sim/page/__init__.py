"""Pages: what is loaded, and why each part of it is asked for."""

from h3sim.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__)
