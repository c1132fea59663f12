"""A load at a constant rate, without loss: one packet of one stream at each tick."""

from __future__ import annotations

from typing import TYPE_CHECKING

from h3sim import seeds
from h3sim.engine.application import Application
from h3sim.engine.kernel import Call, Callbacks, Kernel, Rank
from h3sim.errors import StalledError
from h3sim.http import StreamSender
from h3sim.trace import ConnectionOrder, Delivery, StreamOrder, Trace, rows_of
from h3sim.transport import HoldEveryNth

if TYPE_CHECKING:
    from collections.abc import Callable

    from h3sim.browser import BrowserModel
    from h3sim.page import Page
    from h3sim.schemes import Scheme
    from h3sim.trace import DeliveryTimes
    from h3sim.trace.model import SentRow
    from h3sim.transport import ConstantRate, Network, Protocol

__all__ = ["ConstantRateRun"]

_REPORT_EVERY_PACKETS = 4096

# Plain numbers: looking a member of an enum up costs as much as half a pick.
_DELIVERY, _SEND = int(Rank.DELIVERY), int(Rank.SEND)


class ConstantRateRun:
    """One load. Every method is called at an instant and only schedules what comes of it."""

    def __init__(
        self,
        page: Page,
        scheme: Scheme,
        network: Network,
        constant_rate: ConstantRate,
        *,
        protocol: Protocol,
        buffer_bytes: int,
        seed: int,
        handshake: bool,
        browser: BrowserModel,
    ) -> None:
        self._network = network
        self._handshake_rtts = protocol.handshake_rtts if handshake else 0
        self._constant_rate = constant_rate
        self._protocol = protocol
        self._kernel = Kernel()
        turn_bytes = constant_rate.packet_bytes
        scheduler = scheme.make_scheduler(turn_bytes=turn_bytes)
        self._server = StreamSender(scheduler, turn_bytes=turn_bytes, buffer_bytes=buffer_bytes)
        self._packets: list[SentRow] = []
        self._delivered_at_ns: DeliveryTimes = []
        is_per_stream = protocol.delivery is Delivery.STREAM
        self._receiver: StreamOrder | ConnectionOrder = (
            StreamOrder(self._delivered_at_ns)
            if is_per_stream
            else ConnectionOrder(self._delivered_at_ns)
        )
        self._application = Application(
            page,
            scheme,
            kernel=self._kernel,
            server=self._server,
            receiver=self._receiver,
            send_request=self._send_request,
            send_message=self._send_message,
            on_response=self._on_response,
            browser=browser,
        )
        self._jitter = None
        if network.jitter is not None:
            self._jitter = HoldEveryNth(
                network.jitter,
                interval_ns=constant_rate.tick_at_ns(1),
                source=seeds.stream(seed, "jitter"),
            )
        self._one_way_ns = network.one_way_ns
        self._interval_ns = constant_rate.interval_ns.as_integer_ratio()
        self._next_tick = 1
        self._is_sending = False
        # One tuple for all calls of a kind: the event loop takes its callbacks from it.
        self._when_arrived = (self._on_request_arrived,)
        self._when_message = (self._on_message_arrived,)
        self._when_tick: Callbacks = (self._on_tick,)
        self._when_delivered = (self._on_delivered,)

    def report(self, progress: Callable[[int, int], None], n_packets: int) -> None:
        """Tell *progress* how far the load is; loads that nobody watches pay nothing for it."""

        def on_tick(call: Call) -> None:
            self._on_tick(call)
            if not len(self._packets) % _REPORT_EVERY_PACKETS:
                progress(len(self._packets), n_packets)

        self._when_tick = (on_tick,)

    def run(self) -> Trace:
        """Return what happened."""
        self._application.start(self._handshake_rtts * self._network.rtt_ns)
        if not self._kernel.run():
            raise StalledError(self._application.waiting)
        return Trace(
            delivery=self._protocol.delivery,
            requests=self._application.requests(),
            signals=self._application.signals,
            packet_rows=rows_of(self._packets, self._delivered_at_ns),
            activities=self._application.activities,
        )

    def _send_request(self, stream_id: int, resource: int) -> None:
        del resource
        delay_ns = self._network.rtt_ns - self._network.one_way_ns
        self._kernel.after(delay_ns, Rank.ARRIVAL, self._when_arrived, stream_id)

    def _send_message(self, number: int, n_bytes: int) -> None:
        del n_bytes
        delay_ns = self._network.rtt_ns - self._network.one_way_ns
        self._kernel.after(delay_ns, Rank.ARRIVAL, self._when_message, number)

    def _on_message_arrived(self, call: Call) -> None:
        self._application.on_message_arrived(call.value, call.at_ns)

    def _on_request_arrived(self, call: Call) -> None:
        self._application.on_request_arrived(call.value, self._kernel.now_ns)

    def _on_response(self) -> None:
        if not self._is_sending:
            self._is_sending = True
            first = self._constant_rate.first_tick_from(self._kernel.now_ns)
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
        self._packets.append((now_ns, now_ns + delay_ns, *chunk, number))
        self._delivered_at_ns.append(None)
        kernel.after(delay_ns, _DELIVERY, self._when_delivered, number)
        kernel.after(self._next_tick_at_ns() - now_ns, _SEND, self._when_tick, None)
        if self._server.drained:
            self._application.close_drained()

    def _next_tick_at_ns(self) -> int:
        numerator, denominator = self._interval_ns
        return self._next_tick * numerator // denominator

    def _on_delivered(self, call: Call) -> None:
        row: int = call.value
        _, _, stream_id, offset, n_bytes, _ = self._packets[row]
        for delivered in self._receiver.on_packet(row, stream_id, offset, n_bytes, call.at_ns):
            self._application.on_delivered(*delivered, call.at_ns)
