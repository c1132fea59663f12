"""The input of the engine, a page and everything that it is loaded with, and its outcome."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from h3sim import transport
from h3sim.browser import BrowserModel
from h3sim.http import SendBufferRefill
from h3sim.transport import HandshakeMode, Protocol
from h3sim.values.units import NS_PER_S

if TYPE_CHECKING:
    from collections.abc import Mapping

    from h3sim.engine.connections import CarriedFlow, Connection
    from h3sim.headers import HeaderCompression
    from h3sim.headers.base import HeaderRun
    from h3sim.page import Page
    from h3sim.page.hosts import RecordedHosts
    from h3sim.schemes import Scheme
    from h3sim.trace import Trace
    from h3sim.transport import Network, TransportProfile
    from h3sim.transport.network import CrossFlow


MAX_CONNECTIONS_PER_HOST = 6
"""The limit of Chrome, Firefox and Safari for HTTP/1.1."""
MAX_LOAD_NS = 3600 * NS_PER_S
"""The longest simulated time of a load over links: one hour."""


@dataclass(frozen=True)
class LoadSpec:
    """A page and everything that it is loaded with, resolved from names and options.

    `h3sim.load.resolve` makes one of a `LoadConfig`, once per distinct setting; loads that differ
    only in their seed, page or scheme are copies of it.
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
    """The handshake of each connection."""
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
    server_settings: Mapping[str, Any] = field(default_factory=dict)
    """Fields of the scheme that options replaced; *scheme* has them already."""

    def with_scheme(self, scheme: Scheme) -> LoadSpec:
        """Return this load with another scheme, with the same options of the server."""
        if self.server_settings:
            scheme = replace(scheme, **self.server_settings)
        return replace(self, scheme=scheme)

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


class LoadResult(NamedTuple):
    """The outcome of a load: the fields of a `h3sim.Load`, which computes figures of it."""

    spec: LoadSpec
    trace: Trace
    header_runs: tuple[HeaderRun, HeaderRun] | None
    """Statistics of the field sections of requests, and of responses, if compressed."""
    connections: tuple[Connection, ...]
    """The connections in the order in which they were opened, each with its trace."""
    cross_traffic: tuple[CarriedFlow, ...]
    """The results of competing flows through the same links."""
