"""The dependency tree of HTTP/2, and the disciplines by which servers queue in it."""

from h3sim.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__)
