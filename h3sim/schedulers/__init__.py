"""Schedulers: which stream sends next. No clock, no bytes, no SimPy."""

from h3sim.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__)
