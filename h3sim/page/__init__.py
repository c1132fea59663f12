"""Pages: their resources, and the trigger of each request."""

from h3sim.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__)
