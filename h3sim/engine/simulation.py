"""Wires browser, server, transport and link together, and lets time pass."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from h3sim import seeds
from h3sim.browser import Due, ReplayBrowser
from h3sim.engine.kernel import Call, Callbacks, Kernel, Rank
from h3sim.engine.load import Load
from h3sim.errors import PageError, Problem, StalledError
from h3sim.schemes import make_policy
from h3sim.server import RETENTION_NS, Server
from h3sim.trace import Delivery, Request, SignalSent, Trace
from h3sim.transport import ConnectionOrder, HoldEveryNth, Protocol, StreamOrder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from h3sim.page import Page
    from h3sim.schedulers import Scheduler
    from h3sim.schemes import Scheme
    from h3sim.trace.model import PacketRow
    from h3sim.transport import Network, Receiver

__all__ = ["MAX_PACKETS", "packets_of", "simulate"]

MAX_PACKETS = 5_000_000
"""The largest load that is taken on; it takes about 2 GB and half a minute."""

# Plain numbers: looking a member of an enum up costs as much as half a pick.
_DELIVERY, _SEND = int(Rank.DELIVERY), int(Rank.SEND)

Progress: TypeAlias = "Callable[[int, int], None]"
_REPORT_EVERY_PACKETS = 4096

_STREAM_ID_STEP = 4
"""Client-initiated bidirectional streams are 0, 4, 8, ... (RFC 9000 § 2.1)."""


def simulate(
    page: Page,
    *,
    scheme: Scheme,
    network: Network,
    protocol: Protocol = Protocol.QUIC,
    buffer_bytes: int = 0,
    handshake: bool = True,
    seed: int = 0,
    progress: Progress | None = None,
) -> Load:
    """Return what happens when *page* is loaded.

    *buffer_bytes* is the size of the server's send buffer, 0 for none. Without *handshake* the
    first request leaves at 0 on an established connection. *progress* is told, every so many
    packets, how many have been sent and how many there are.

    Raises:
        PageError: if the page takes more than `MAX_PACKETS` packets.
        StalledError: if the load cannot come to its end.
    """
    n_packets = packets_of(page, network.pacing.packet_bytes)
    if n_packets > MAX_PACKETS:
        message = f"takes {n_packets:,} packets; the most that is simulated is {MAX_PACKETS:,}"
        raise PageError([Problem(key="resources", message=message)], page.name)
    run = _Simulation(page, scheme, network, protocol, buffer_bytes, seed)
    if progress is not None:
        run.report(progress, n_packets)
    trace = run.run(protocol.handshake_rtts * network.rtt_ns if handshake else 0)
    return Load(
        page=page,
        scheme=scheme,
        network=network,
        protocol=protocol,
        buffer_bytes=buffer_bytes,
        seed=seed,
        trace=trace,
    )


def packets_of(page: Page, packet_bytes: int) -> int:
    """Return how many packets *page* takes; a response without a byte takes one."""
    return sum(max(1, -(-r.stream_bytes // packet_bytes)) for r in page.resources)


class _Simulation:
    """One load. Every method is called at an instant and only schedules what comes of it."""

    def __init__(
        self,
        page: Page,
        scheme: Scheme,
        network: Network,
        protocol: Protocol,
        buffer_bytes: int,
        seed: int,
    ) -> None:
        self._page = page
        self._network = network
        self._protocol = protocol
        self._kernel = Kernel()
        self._browser = ReplayBrowser(page)
        self._policy = make_policy(scheme)
        turn_bytes = network.pacing.packet_bytes
        self._scheduler: Scheduler = scheme.mechanism.make(turn_bytes=turn_bytes)
        self._server = Server(self._scheduler, turn_bytes=turn_bytes, buffer_bytes=buffer_bytes)
        self._receiver: Receiver = (
            StreamOrder() if protocol.delivery is Delivery.STREAM else ConnectionOrder()
        )
        self._jitter = None
        if network.jitter is not None:
            self._jitter = HoldEveryNth(
                network.jitter,
                interval_ns=network.pacing.tick_at_ns(1),
                source=seeds.stream(seed, "jitter"),
            )
        self._requests: list[Request] = []
        self._signals: list[SignalSent] = []
        self._packets: list[PacketRow] = []
        self._one_way_ns = network.one_way_ns
        self._interval_ns = network.pacing.interval_ns.as_integer_ratio()
        self._next_tick = 1
        self._is_sending = False
        # One tuple for all calls of a kind: the event loop takes its callbacks from it.
        self._when_due = (self._on_due,)
        self._when_arrived = (self._on_request_arrived,)
        self._when_ready = (self._on_response_ready,)
        self._when_closed = (self._on_closed,)
        self._when_tick: Callbacks = (self._on_tick,)
        self._when_delivered = (self._on_delivered,)

    def report(self, progress: Progress, n_packets: int) -> None:
        """Tell *progress* how far the load is; loads that nobody watches pay nothing for it."""

        def on_tick(call: Call) -> None:
            self._on_tick(call)
            if not len(self._packets) % _REPORT_EVERY_PACKETS:
                progress(len(self._packets), n_packets)

        self._when_tick = (on_tick,)

    def run(self, first_request_at_ns: int) -> Trace:
        for element_id, signal in self._policy.on_connected():
            self._signals.append(SignalSent(0, element_id, signal))
            self._server.on_request(element_id, signal)
        self._ask(self._browser.on_navigation(first_request_at_ns))
        if not self._kernel.run():
            raise StalledError(self._browser.waiting)
        return Trace(
            delivery=self._protocol.delivery,
            requests=tuple(self._requests),
            signals=tuple(self._signals),
            packet_rows=tuple(self._packets),
        )

    # The client's side

    def _ask(self, due: Iterable[Due]) -> None:
        for at_ns, resource in due:
            self._kernel.at(at_ns, Rank.REQUEST, self._when_due, resource)

    def _on_due(self, call: Call) -> None:
        resource: int = call.value
        now_ns = self._kernel.now_ns
        stream_id = _STREAM_ID_STEP * len(self._requests)
        arrives_at_ns = now_ns + self._network.rtt_ns - self._network.one_way_ns
        length = self._page.resources[resource].stream_bytes
        request = Request(stream_id, resource, now_ns, arrives_at_ns, length)
        self._requests.append(request)
        self._ask(self._browser.on_requested(resource, now_ns))
        self._receiver.watch(stream_id, self._browser.watches(resource))
        self._kernel.at(arrives_at_ns, Rank.ARRIVAL, self._when_arrived, request)

    def _on_delivered(self, call: Call) -> None:
        number: int = call.value
        _, now_ns, stream_id, offset, n_bytes = self._packets[number]
        for released_id, contiguous in self._receiver.on_packet(number, stream_id, offset, n_bytes):
            resource = self._requests[released_id // _STREAM_ID_STEP].resource
            self._ask(self._browser.on_delivered(resource, contiguous, now_ns))
            self._receiver.watch(released_id, self._browser.watches(resource))
            if self._browser.is_done:
                self._kernel.stop()

    # The server's side

    def _on_request_arrived(self, call: Call) -> None:
        request: Request = call.value
        now_ns = self._kernel.now_ns
        resource = self._page.resources[request.resource]
        for element_id, signal in self._policy.on_requested(request.stream_id, resource):
            self._signals.append(SignalSent(now_ns, element_id, signal))
            if element_id == request.stream_id:
                self._server.on_request(element_id, signal)
            else:
                self._server.on_signal(element_id, signal)
        if resource.server_ns:
            ready_at_ns = now_ns + resource.server_ns
            self._kernel.at(ready_at_ns, Rank.RESPONSE, self._when_ready, request)
        else:
            self._respond(request)

    def _on_response_ready(self, call: Call) -> None:
        self._respond(call.value)

    def _respond(self, request: Request) -> None:
        self._server.on_response(request.stream_id, request.length_bytes)
        self._close_drained()
        if not self._is_sending:
            self._is_sending = True
            first = self._network.pacing.first_tick_from(self._kernel.now_ns)
            self._next_tick = max(self._next_tick, first)
            self._kernel.at(self._next_tick_at_ns(), _SEND, self._when_tick, None)

    def _on_tick(self, call: Call) -> None:  # noqa: ARG002 - there is nothing to tell
        """Send one packet, and look again at the next tick; an idle tick is lost."""
        self._next_tick += 1
        chunk = self._server.take()
        if chunk is None:
            self._is_sending = False
            return
        kernel = self._kernel
        now_ns = kernel.now_ns
        delay_ns = self._one_way_ns
        if self._jitter is not None:
            delay_ns += self._jitter.next_hold_ns()
        number = len(self._packets)
        self._packets.append((now_ns, now_ns + delay_ns, *chunk))
        kernel.after(delay_ns, _DELIVERY, self._when_delivered, number)
        kernel.after(self._next_tick_at_ns() - now_ns, _SEND, self._when_tick, None)
        if self._server.drained:
            self._close_drained()

    def _next_tick_at_ns(self) -> int:
        numerator, denominator = self._interval_ns
        return self._next_tick * numerator // denominator

    def _close_drained(self) -> None:
        for stream_id in self._server.drained:
            self._kernel.after(RETENTION_NS, Rank.CLOSE, self._when_closed, stream_id)
        self._server.drained.clear()

    def _on_closed(self, call: Call) -> None:
        stream_id: int = call.value
        self._server.on_closed(stream_id)
        for element_id, signal in self._policy.on_closed(stream_id):
            self._signals.append(SignalSent(self._kernel.now_ns, element_id, signal))
            self._server.on_signal(element_id, signal)
