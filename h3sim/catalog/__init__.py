"""The catalog: what is shipped, by name, and what people bring, by path."""

from h3sim.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__)
