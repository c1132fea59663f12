"""The public names of `h3sim.transport.tcp`, each loaded when it is first used."""

from h3sim.transport.tcp.endpoint import TcpEndpoint as TcpEndpoint
from h3sim.transport.tcp.segments import (
    Segment as Segment,
    SentSegment as SentSegment,
)
from h3sim.transport.tcp.settings import (
    LossDetection as LossDetection,
    TcpSettings as TcpSettings,
    TlsVersion as TlsVersion,
)

__all__: list[str]
