"""Flow control above TCP, of HTTP/2 and of QMux: windows, and the frames that raise them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, Final, NamedTuple

from h3sim.engine.endpoints import TcpTransport
from h3sim.http import HeadersFirstSender, QmuxSender
from h3sim.schedulers import RankScheduler
from h3sim.signals import H2Priority
from h3sim.transport import Role
from h3sim.transport.flow_control import FlowReceiver
from h3sim.transport.tcp.settings import BROWSER_WINDOWS, SERVER_WINDOWS, FlowControl

if TYPE_CHECKING:
    from collections.abc import Callable

    from h3sim.engine.endpoints import EndpointFactory
    from h3sim.engine.load_spec import LoadSpec
    from h3sim.http import StreamSender
    from h3sim.transport.endpoint import Endpoint
    from h3sim.transport.packets import StreamBytes


_UPDATE_BYTES: Final = 4
"""The payload of a WINDOW_UPDATE frame (RFC 9113 § 6.9)."""
_MAX_DATA_BYTES: Final = 6
"""About the size of MAX_DATA or MAX_STREAM_DATA (RFC 9000 §§ 19.9, 19.10), as in a QUIC packet."""
_MAX_HEADERS_BYTES: Final = 4096
"""The longest request that is HEADERS alone."""
_UPLOAD_HEADERS_BYTES: Final = 200
"""The HEADERS of a longer one, which is a body else."""


class Windows(NamedTuple):
    """The flow control of both ends as receivers."""

    client: FlowControl
    server: FlowControl

    @classmethod
    def of(cls, spec: LoadSpec) -> Windows | None:
        """Return those of a load; None if none is raised in it, so that no packet is another.

        A profile takes precedence over the scheme's client and server. SETTINGS and the first
        WINDOW_UPDATE of an end precede all that it has asked for, so they apply from the beginning;
        their bytes, about 70 each way, are not sent.
        """
        profile, scheme, unstated = spec.link_profile, spec.scheme, FlowControl()
        client = profile.tcp_client.over((scheme.client_windows or unstated).over(BROWSER_WINDOWS))
        server = profile.tcp.over((scheme.server_windows or unstated).over(SERVER_WINDOWS))
        resources = spec.page.resources
        bodies = [each.size_bytes for each in resources]
        requests = [each.request_bytes for each in resources]
        uploads = [n_bytes for n_bytes in requests if n_bytes > _MAX_HEADERS_BYTES]
        is_used = _may_bind(client, bodies) or _may_bind(server, uploads)
        return cls(client, server) if is_used else None

    @property
    def transport(self) -> type[TcpTransport]:
        """The class of transports with flow control."""
        return Http2Transport


def _may_bind(windows: FlowControl, bodies: list[int]) -> bool:
    """Return whether *bodies* use so much of any window that it is raised."""
    if not bodies:
        return False
    of_all = replace(windows, stream_window_bytes=windows.connection_window_bytes)
    # A window is raised before it is used up: unless it is, nothing has waited for it.
    return (
        bool(_receiver(windows).on_bytes(0, max(bodies)))
        or bool(_receiver(of_all).on_bytes(0, sum(bodies)))
        or windows.initial_limits[0] < (windows.stream_window_bytes or 0)
    )


def _receiver(windows: FlowControl, endpoint: Any = None) -> FlowReceiver:
    """Return a receiver with these windows, which are all stated."""
    assert windows.stream_window_bytes  # noqa: S101 - the defaults state it
    assert windows.connection_window_bytes  # noqa: S101 - and this
    return FlowReceiver(
        stream_window=windows.stream_window_bytes,
        connection_window=windows.connection_window_bytes,
        update_bytes=windows.window_update_bytes,
        at_half=True,
        max_window=windows.max_window_bytes,
        rtt=None if endpoint is None else endpoint.recovery.rtt,
    )


class _FlowControlledEnd:
    """One end: it counts the DATA that arrives, announces limits, and applies its peer's.

    What arrives came from *peer*; *streams* are its own. An announcement takes *update_bytes*. With
    *enlarged_bytes* a stream's window has that size once its HEADERS have arrived.
    """

    def __init__(
        self,
        endpoint: Endpoint[Any],
        streams: HeadersFirstSender,
        peer: HeadersFirstSender,
        receiver: FlowReceiver,
        update_bytes: int,
        enlarged_bytes: int,
    ) -> None:
        self._on_packet: Callable[[Any, int], list[StreamBytes]] = endpoint.on_packet
        self._receiver = receiver
        self._update_bytes = update_bytes
        self._enlarged_bytes = enlarged_bytes
        self._known: set[int] = set()
        """Streams whose HEADERS have arrived, if their windows grow then."""
        self._streams, self._peer = streams, peer
        self.limits: list[tuple[int | None, int]] = []
        """The limits announced, by the number of the frame."""
        self.peer_limits: list[tuple[int | None, int]] = []
        """Those of the peer."""

    def read(self, packet: Any, now_ns: int) -> list[StreamBytes]:
        """Pass a packet to the endpoint; return the stream bytes that it delivers."""
        frames = self._on_packet(packet, now_ns)
        if not frames:
            return frames
        for stream_id, offset, n_bytes in frames:
            if stream_id < 0:
                self._streams.on_limit(*self.peer_limits[~stream_id])
                continue
            start = self._peer.data_starts.get(stream_id, 0)
            if self._enlarged_bytes and stream_id not in self._known:
                self._known.add(stream_id)
                if self._peer.size_of(stream_id) > start:
                    self._announce(stream_id, self._enlarged_bytes + start)
            end = offset + n_bytes
            for limited, limit in self._receiver.on_bytes(stream_id, end - start, now_ns):
                if limited is None:
                    self._announce(None, limit)
                elif end < self._peer.size_of(stream_id):  # else its end has arrived
                    self._announce(stream_id, limit + start)
        return [frame for frame in frames if frame[0] >= 0]

    def _announce(self, stream_id: int | None, limit: int) -> None:
        """Send a WINDOW_UPDATE, MAX_DATA or MAX_STREAM_DATA."""
        self.limits.append((stream_id, limit))
        self._streams.send_frame(-len(self.limits), self._update_bytes)


class _FlowControlledTransport(TcpTransport):
    """A `TcpTransport` with flow control of the protocol above TCP."""

    _sender_class: ClassVar[type[HeadersFirstSender]] = HeadersFirstSender
    """The class of the sender of requests."""

    def _begin(self) -> None:
        """Put both ends of flow control in front of the endpoints."""
        super()._begin()
        requests, responses = self._requests, self.response_streams
        assert isinstance(responses, HeadersFirstSender)  # noqa: S101 - made for it
        up, down = self._client.endpoint, self._server.endpoint
        client = _FlowControlledEnd(up, requests, responses, *self._flow(Role.CLIENT, up))
        server = _FlowControlledEnd(down, responses, requests, *self._flow(Role.SERVER, down))
        client.peer_limits, server.peer_limits = server.limits, client.limits
        self._read_up, self._read_down = server.read, client.read

    def _flow(self, role: Role, endpoint: Any) -> tuple[FlowReceiver, int, int]:
        """Return what one end announces, the size of an announcement and *enlarged_bytes*."""
        raise NotImplementedError

    def _make_request_streams(self, factory: EndpointFactory) -> StreamSender:
        """Return the sender of requests, with the flow control of its peer."""
        self._factory = factory
        stream_bytes, connection_bytes = factory.windows(Role.CLIENT)
        self._requests = self._sender_class(
            RankScheduler(),
            turn_bytes=factory.turn_bytes,
            retains_until_acked=True,
            stream_window_bytes=stream_bytes,
            connection_window_bytes=connection_bytes,
        )
        return self._requests


class Http2Transport(_FlowControlledTransport):
    """A `TcpTransport` with HTTP/2's flow control, for loads in which a window may be raised.

    Of requests only bodies are subject to it.
    """

    def _flow(self, role: Role, endpoint: Any) -> tuple[FlowReceiver, int, int]:
        both = self._factory.http2_windows
        assert both is not None  # noqa: S101 - made for it
        windows = both.client if role is Role.CLIENT else both.server
        stream_bytes = windows.stream_window_bytes or 0
        enlarges = windows.initial_limits[0] < stream_bytes
        return _receiver(windows, endpoint), _UPDATE_BYTES, stream_bytes if enlarges else 0

    def _send_up(self, stream_id: int, n_bytes: int) -> None:
        """Send a message upstream: a frame, or a request, which may have a body."""
        self._messages.expect(stream_id, n_bytes)
        self._requests.open(stream_id, H2Priority())
        header_bytes = n_bytes if n_bytes <= _MAX_HEADERS_BYTES else _UPLOAD_HEADERS_BYTES
        self._requests.send(stream_id, n_bytes, header_bytes)
        self._client.flush_soon(self._environment.now_ns)


class QmuxTransport(_FlowControlledTransport):
    """The `Transport` of QMux: QUIC's streams and their flow control in one stream of bytes.

    Each TLS record holds a record of QMux, which delivers its frames when it is complete; nothing
    is acknowledged or retransmitted but by TCP (draft-ietf-quic-qmux-02 §§ 3.2 and 4). Transport
    parameters, about 40 bytes each way, are not sent: those of the server come with the end of its
    handshake, before the client's first request.
    """

    _sender_class = QmuxSender

    def _flow(self, role: Role, endpoint: Any) -> tuple[FlowReceiver, int, int]:
        quic = self._factory.quic(role)
        receiver = FlowReceiver(
            stream_window=quic.stream_window_bytes,
            connection_window=quic.connection_window_bytes,
            max_window=quic.max_window_bytes,
            rtt=endpoint.recovery.rtt,
        )
        return receiver, _MAX_DATA_BYTES, 0
