"""Congestion control: how much may be in flight, and how fast it leaves."""

from h3sim.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__)
