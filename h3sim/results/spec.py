"""The complete specification of a load, as values: the engine runs it, and a load carries it."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field
from typing import TYPE_CHECKING

from h3sim import transport
from h3sim.browser import BrowserModel
from h3sim.http import SendBufferRefill
from h3sim.transport import HandshakeMode, Protocol
from h3sim.units import NS_PER_S

if TYPE_CHECKING:
    from h3sim.headers import HeaderCompression
    from h3sim.page import Page
    from h3sim.page.hosts import RecordedHosts
    from h3sim.schemes import Scheme
    from h3sim.transport import Network, TransportProfile
    from h3sim.transport.cross_traffic import CrossFlow


MAX_CONNECTIONS_PER_HOST = 6
"""The limit of Chrome, Firefox and Safari for HTTP/1.1."""
MAX_LOAD_NS = 3600 * NS_PER_S
"""The longest simulated time of a load over links: one hour."""


@dataclass(frozen=True)
class LoadSpec:
    """A page and everything that it is loaded with, resolved from names and options.

    `h3sim.study.resolve_config` builds one from a `LoadConfig`, once per load.
    """

    page: Page
    _: KW_ONLY
    scheme: Scheme
    network: Network
    """The path, with the overrides of options applied."""
    protocol: Protocol = Protocol.QUIC
    profile: TransportProfile | None = None
    """The transport profile of both ends; None at a constant rate, and for the default."""
    mode: HandshakeMode = HandshakeMode.ONE_RTT
    browser: BrowserModel = field(default_factory=BrowserModel)
    buffer_bytes: int = 0
    """Size of the server's send buffer; 0 without one."""
    send_buffer_refill: SendBufferRefill = SendBufferRefill.CONTINUOUS
    header_compression: HeaderCompression | None = None
    """The header codec; None if header sizes come from the page."""
    hosts: RecordedHosts | None = None
    """The connections per host; None if all hosts share one connection."""
    max_connections_per_host: int = MAX_CONNECTIONS_PER_HOST
    """The connection limit of HTTP/1.1; later versions of HTTP use one."""
    cross_traffic: tuple[CrossFlow, ...] = ()
    limit_ns: int = MAX_LOAD_NS
    """Simulated time after which a load over links is aborted."""
    seed: int = 0

    @property
    def is_constant_rate(self) -> bool:
        """True if the network is a constant rate, which has neither links nor endpoints."""
        return self.network.constant_rate is not None

    @property
    def profile_of_ends(self) -> TransportProfile | None:
        """The profile in use: None at a constant rate, which has no endpoints."""
        return None if self.is_constant_rate else self.link_profile

    @property
    def link_profile(self) -> TransportProfile:
        """The profile of a load over links."""
        return self.profile or transport.TransportProfile(name="default")

    @property
    def link_protocol(self) -> Protocol | None:
        """The protocol over links; None at a constant rate, where requests are not sent."""
        return None if self.is_constant_rate else self.protocol
