"""The server: scheduler and send buffer put together, and what it is told of priorities."""

from h3sim.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__)
