"""The browser: decides which resources to request, and when."""

from h3sim.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__)
