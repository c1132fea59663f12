"""The public names of `h3sim.transport.tcp`, each loaded when it is first used."""

from h3sim.transport.tcp.endpoint import TcpEndpoint as TcpEndpoint
from h3sim.transport.tcp.records import Segment as Segment
from h3sim.transport.tcp.records import SentSegment as SentSegment
from h3sim.transport.tcp.settings import LossDetection as LossDetection
from h3sim.transport.tcp.settings import TcpSettings as TcpSettings
from h3sim.transport.tcp.settings import TlsVersion as TlsVersion

__all__: list[str]
