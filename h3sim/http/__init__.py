"""A server's streams: scheduling, send buffer, flow control, and received priorities."""

from h3sim.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__)
