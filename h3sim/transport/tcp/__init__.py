"""TCP (RFC 9293) with HTTP/2 over TLS on top, without a byte of content.

Begin with `endpoint.py`, then `recovery.py` and `records.py` (TLS).
"""

from h3sim.transport.tcp.endpoint import TcpEndpoint
from h3sim.transport.tcp.records import Segment, SentSegment
from h3sim.transport.tcp.settings import LossDetection, TcpSettings, TlsVersion

__all__ = [
    "LossDetection",
    "Segment",
    "SentSegment",
    "TcpEndpoint",
    "TcpSettings",
    "TlsVersion",
]
