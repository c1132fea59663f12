"""QUIC (RFC 9000, RFC 9002), without a byte of content."""

from h3sim.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__)
