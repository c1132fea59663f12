"""TCP (RFC 9293) with HTTP/2 over TLS on top, without a byte of content."""

from h3sim.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__)
