"""Competing flows through the links of a load, with endpoints of the same kind."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from h3sim.engine.connections import CarriedFlow
from h3sim.engine.endpoints import EndpointFactory, PacketLog, QuicTransport, TcpTransport
from h3sim.engine.environment import EventPriority
from h3sim.http import StreamSender
from h3sim.schedulers import FifoScheduler, Retransmit
from h3sim.signals import H2Priority
from h3sim.transport import HandshakeMode, Protocol, Role
from h3sim.values.constants import STREAM_ID_STEP

if TYPE_CHECKING:
    from collections.abc import Mapping

    from h3sim.engine.environment import LoadEnvironment
    from h3sim.engine.load_spec import LoadSpec
    from h3sim.transport.link import Link
    from h3sim.transport.network import CrossFlow


_ENDLESS_BYTES = 2**50
"""The data of a flow that always has some: ten days of it at 10 Gbit/s."""
_UNREACHED_BYTES = 2**62
"""A threshold that is never reached: no application waits for the data."""


class CrossTraffic:
    """A *flow* over *links*, started before the load and active until the load ends."""

    def __init__(
        self,
        spec: LoadSpec,
        flow: CrossFlow,
        environment: LoadEnvironment,
        links: Mapping[Role, Link],
    ) -> None:
        self._flow = flow
        self._environment = environment
        profile = spec.link_profile
        cc = profile.own_cubic if flow.cc == "cubic" else flow.cc
        # The profile's settings for its own controller do not apply to another one.
        beta = profile.beta if cc == profile.cc else None
        factory = EndpointFactory(
            spec.network,
            replace(profile, cc=cc, controller=None, beta=beta),
            # Other applications have no streams of QMux, and none waits for their windows.
            Protocol.TCP if spec.protocol is Protocol.QMUX else spec.protocol,
            mode=HandshakeMode.NONE,
            seed=spec.seed,
            links=links,
        )
        stream_bytes, connection_bytes = factory.windows(Role.SERVER)
        self._streams = StreamSender(
            FifoScheduler(),
            turn_bytes=factory.turn_bytes,
            retransmit=Retransmit.FIRST,
            retains_until_acked=True,
            stream_window_bytes=stream_bytes,
            connection_window_bytes=connection_bytes,
        )
        transport_class = TcpTransport if spec.protocol.is_over_tcp else QuicTransport
        log = PacketLog(record_packets=False)
        self._transport = transport_class(environment, factory, self._streams, log)
        self._n_streams = 0
        environment.at(flow.starts_at_ns, EventPriority.RESPONSE, self._on_start, None)

    def carried(self) -> CarriedFlow:
        """Return the bytes delivered so far."""
        columns = self._transport.carried().packet_rows.columns
        rows = zip(columns.length_bytes, columns.delivered_at_ns, strict=True)
        n_bytes = sum(length for length, at_ns in rows if at_ns is not None)
        began_at_ns = self._flow.starts_at_ns
        return CarriedFlow(self._flow, n_bytes, max(0, self._environment.now_ns - began_at_ns))

    def _on_start(self, _value: None, _now_ns: int) -> None:
        """Connect when the flow is due; `on_connected` is called then."""
        self._transport.begin(self)

    def _on_segment_due(self, _value: None, _now_ns: int) -> None:
        """Send one more segment, and schedule the next."""
        stream_id = STREAM_ID_STEP * self._n_streams
        self._n_streams += 1
        self._streams.open(stream_id, H2Priority())
        # No events for deliveries: only the packets matter, and what they do to the queue.
        self._transport.watch(stream_id, _UNREACHED_BYTES)
        self._streams.send(stream_id, self._flow.segment_bytes or _ENDLESS_BYTES)
        self._transport.pump()
        if self._flow.segment_bytes is not None:
            self._environment.after(
                self._flow.period_ns, EventPriority.RESPONSE, self._on_segment_due, None
            )

    # Callbacks of the transport

    def on_connected(self, now_ns: int) -> None:
        """Start sending."""
        self._on_segment_due(None, now_ns)

    def on_request_arrived(self, stream_id: int, now_ns: int) -> None:
        """Do nothing: a flow has no requests."""

    def on_signal_arrived(self, number: int, now_ns: int) -> None:
        """Do nothing: a flow has no signals."""

    def on_delivered(self, stream_id: int, contiguous: int, now_ns: int) -> None:
        """Do nothing: no application waits for the data."""

    def on_drained(self) -> None:
        """Forget segments that have been sent and acknowledged."""
        for stream_id in self._streams.take_drained():
            self._streams.close(stream_id)

    def resource_of(self, stream_id: int) -> int:
        """Refuse: a flow carries no resource of the page."""
        raise NotImplementedError
