"""The configuration of a load: its options, the network, both endpoints and the browser."""

from h3sim.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__)
