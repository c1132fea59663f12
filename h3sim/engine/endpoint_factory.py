"""Puts the two ends of a connection together from a network and a transport profile."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from h3sim import seeds
from h3sim.protocol import IP_HEADER_BYTES, UNLIMITED_BYTES
from h3sim.transport import Handshake, Protocol, QuicEndpoint, Role
from h3sim.transport.changing_link import ChangingLink
from h3sim.transport.congestion import ControllerSettings, make_controller
from h3sim.transport.link import Link, make_link
from h3sim.transport.quic import EventLoopEndpoint
from h3sim.transport.remote_link import RemoteLink
from h3sim.transport.tcp import TcpEndpoint
from h3sim.transport.tcp.segments import HEADER_BYTES as TCP_HEADER_BYTES

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Mapping

    from h3sim.transport import Mode, Network, TransportProfile
    from h3sim.transport.congestion import CongestionController
    from h3sim.transport.endpoint import Endpoint, Source

__all__ = ["End", "EndpointFactory"]

_PROBE_BYTES: Final = 64
"""A probe that repeats a full packet and carries an ACK besides is up to so much larger."""
_CLIENT_CONTROLLER = "newreno"
"""Requests are few and small: what controls them does not matter."""


class End:
    """One endpoint, and the link that it sends over."""

    __slots__ = ("endpoint", "link", "overhead_bytes", "role")

    def __init__(
        self, role: Role, endpoint: Endpoint[Any], link: Link, overhead_bytes: int
    ) -> None:
        self.role = role
        self.endpoint = endpoint
        self.link = link
        self.overhead_bytes = overhead_bytes
        """What IP (and UDP) add to each packet."""


class EndpointFactory:
    """Makes the client's and the server's ends of connections that share the links of a network.

    It makes those, unless it is given *links* that others send over as well.

    Raises:
        NetworkError: if a queue of the network cannot hold a packet of the profile.
    """

    def __init__(
        self,
        network: Network,
        profile: TransportProfile,
        protocol: Protocol,
        *,
        mode: Mode,
        seed: int,
        changes_links: bool = False,
        links: Mapping[Role, Link] | None = None,
    ) -> None:
        self._network = network
        self._profile = profile
        self._protocol = protocol
        self._mode = mode
        self._seed = seed
        network.check_packets(
            down_bytes=self._packet_bytes(Role.SERVER), up_bytes=self._packet_bytes(Role.CLIENT)
        )
        make = ChangingLink if changes_links else make_link
        self.links = links or {role: self._link(role, make) for role in Role}
        """The links over which the ends of each role send."""

    @property
    def turn_bytes(self) -> int:
        """What a turn of the scheduler carries: a packet of QUIC, a DATA frame over TCP."""
        if self._protocol is Protocol.TCP:
            return self._profile.tcp.data_frame_bytes
        quic = self._profile.quic
        return quic.datagram_bytes - quic.header_bytes

    def windows(self, role: Role) -> tuple[int, int]:
        """Return what the peer of that end lets it send at first: per stream, and in all.

        Over TCP only the receive window of the connection counts, which the endpoint keeps.
        """
        if self._protocol is Protocol.TCP:
            return UNLIMITED_BYTES, UNLIMITED_BYTES
        peer = self._profile.quic_client if role is Role.SERVER else self._profile.quic
        return peer.stream_window_bytes, peer.connection_window_bytes

    def end(self, role: Role, source: Source, *, rtt_ns: int | None = None) -> End:
        """Return the end of that role, which gives out what *source* has.

        *rtt_ns* is the round-trip time to the server, where that is not the network's.
        """
        network_ns = self._network.rtt_ns
        path_ns = network_ns if rtt_ns is None else rtt_ns
        link = self.links[role]
        # Each way by itself: of an odd nanosecond the way up has more, as `Link` has it.
        extra_ns = _one_way_ns(path_ns, role) - _one_way_ns(network_ns, role)
        if extra_ns:
            link = RemoteLink(self.links[role], extra_ns)
        # An established connection has measured its path.
        known_ns = path_ns if self._mode.is_established else None
        if self._protocol is Protocol.TCP:
            return End(role, self._tcp(role, source, known_ns), link, IP_HEADER_BYTES)
        return End(role, self._quic(role, source, known_ns), link, self._profile.quic.ip_bytes)

    def _link(self, role: Role, make: Callable[..., Link]) -> Link:
        network = self._network
        profile = network.down if role is Role.SERVER else network.up
        assert profile is not None  # noqa: S101 - a network without a pace has links
        direction = "down" if role is Role.SERVER else "up"

        def stream(purpose: str) -> random.Random:
            return seeds.stream(self._seed, f"{purpose}.{direction}")

        upward = role is Role.CLIENT
        return make(profile, rtt_ns=network.rtt_ns, streams=stream, upward=upward)

    def _quic(self, role: Role, source: Source, path_rtt_ns: int | None) -> QuicEndpoint:
        is_server = role is Role.SERVER
        settings = self._profile.quic if is_server else self._profile.quic_client
        peer = self._profile.quic_client if is_server else self._profile.quic
        make = EventLoopEndpoint if settings.has_event_loop else QuicEndpoint
        return make(
            settings,
            self._controller(role, settings.datagram_bytes),
            source,
            Handshake(self._profile.quic, role, self._mode),
            peer_max_ack_delay_ns=peer.max_ack_delay_ns,
            path_rtt_ns=path_rtt_ns,
        )

    def _tcp(self, role: Role, source: Source, path_rtt_ns: int | None) -> TcpEndpoint:
        settings = self._profile.tcp if role is Role.SERVER else self._profile.tcp_client
        controller = self._controller(role, settings.mss_bytes)
        return TcpEndpoint(settings, controller, source, role, self._mode, path_rtt_ns=path_rtt_ns)

    def _packet_bytes(self, role: Role) -> int:
        """Return the size of a full packet of that end, with IP's header."""
        is_server = role is Role.SERVER
        if self._protocol is Protocol.TCP:
            tcp = self._profile.tcp if is_server else self._profile.tcp_client
            return tcp.mss_bytes + TCP_HEADER_BYTES + IP_HEADER_BYTES
        quic = self._profile.quic if is_server else self._profile.quic_client
        return quic.datagram_bytes + _PROBE_BYTES + self._profile.quic.ip_bytes

    def _controller(self, role: Role, datagram_bytes: int) -> CongestionController:
        profile = self._profile
        down = self._network.down
        settings = ControllerSettings(
            max_datagram_bytes=datagram_bytes,
            initial_window_bytes=profile.initial_window_bytes,
            beta=profile.beta,
            hystart=profile.hystart,
            rate_bps=None if down is None else down.rate_bps,
        )
        return make_controller(profile.cc if role is Role.SERVER else _CLIENT_CONTROLLER, settings)


def _one_way_ns(rtt_ns: int, role: Role) -> int:
    """Return what one way takes from that end on, as `Link` has it."""
    return rtt_ns // 2 if role is Role.SERVER else rtt_ns - rtt_ns // 2
