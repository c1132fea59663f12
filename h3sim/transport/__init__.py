"""Transport: when a packet may leave, and when it arrives."""

from h3sim.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__)
