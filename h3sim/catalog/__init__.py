"""The catalog: shipped pages, networks, schemes and profiles by name, and files by path."""

from h3sim.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__)
