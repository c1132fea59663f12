"""TCP (RFC 9293) with HTTP/2 over TLS on top, without a byte of content."""

from typing import TYPE_CHECKING

from h3sim.lazy import attach

if TYPE_CHECKING:
    from h3sim.transport.tcp.endpoint import TcpEndpoint
    from h3sim.transport.tcp.segments import Segment, SentSegment
    from h3sim.transport.tcp.settings import LossDetection, TcpSettings, TlsVersion

__all__ = ["LossDetection", "Segment", "SentSegment", "TcpEndpoint", "TcpSettings", "TlsVersion"]

__getattr__, __dir__ = attach(
    __name__,
    endpoint="TcpEndpoint",
    segments="Segment SentSegment",
    settings="LossDetection TcpSettings TlsVersion",
)
