"""A constant rate, without loss: one packet of one stream at each tick."""

from __future__ import annotations

from typing import TYPE_CHECKING

from h3sim import seeds
from h3sim.engine.environment import Rank
from h3sim.engine.transport import Carried
from h3sim.trace import ConnectionOrder, Delivery, StreamOrder, rows_of
from h3sim.transport import HoldEveryNth

if TYPE_CHECKING:
    from h3sim.engine.environment import Call, Callbacks, LoadEnvironment
    from h3sim.engine.transport import Application, Progress
    from h3sim.http import StreamSender
    from h3sim.trace import DeliveryTimes
    from h3sim.trace.model import PacketRow
    from h3sim.transport import ConstantRate, Network, Protocol

__all__ = ["ConstantRateTransport"]

_REPORT_EVERY_PACKETS = 4096

# Plain numbers: looking a member of an enum up costs as much as half a pick.
_DELIVERY, _SEND = int(Rank.DELIVERY), int(Rank.SEND)


class ConstantRateTransport:
    """The `Transport` of a network with a constant rate.

    A packet leaves at each tick and arrives after the delay, and nothing is acknowledged. Where
    none overtakes another, all that is to know of a packet is known when it leaves: it is
    delivered when it arrives. So an event is needed only where the application watches for what it
    brings; and while nothing else is due, the next packet leaves without one either.
    """

    def __init__(
        self,
        environment: LoadEnvironment,
        network: Network,
        constant_rate: ConstantRate,
        response_streams: StreamSender,
        *,
        protocol: Protocol,
        seed: int,
        handshake: bool,
        progress: Progress | None = None,
        n_packets: int = 0,
    ) -> None:
        self.response_streams = response_streams
        self._environment = environment
        self._network = network
        self._constant_rate = constant_rate
        self._handshake_ns = protocol.handshake_rtts * network.rtt_ns if handshake else 0
        self._one_way_ns = network.one_way_ns
        self._interval_ns = constant_rate.interval_ns.as_integer_ratio()
        self._progress = progress
        self._n_packets = n_packets
        self._rows: list[PacketRow] = []
        """Those that others may overtake get the time at which they are delivered at the end."""
        self._delivered_at_ns: DeliveryTimes = []
        self._watched: dict[int, int] = {}
        self._jitter: HoldEveryNth | None = None
        self._order: StreamOrder | ConnectionOrder | None = None
        """Puts packets in order that overtake each other; None where none does."""
        if network.jitter is not None:
            source = seeds.stream(seed, "jitter")
            interval_ns = constant_rate.tick_at_ns(1)
            self._jitter = HoldEveryNth(network.jitter, interval_ns=interval_ns, source=source)
            per_stream = protocol.delivery is Delivery.STREAM
            order = StreamOrder if per_stream else ConnectionOrder
            self._order = order(self._delivered_at_ns)
        self._next_tick = 1
        self._is_sending = False
        self._when_tick: Callbacks = (self._on_tick,)

    # What the application asks for

    def begin(self, application: Application) -> None:
        """Connect, which takes the round trips of a handshake and no bytes."""
        self._application = application
        # One tuple for all calls of a kind: the event loop takes its callbacks from it.
        self._when_request: Callbacks = (
            lambda call: application.on_request_arrived(call.value, call.at_ns),
        )
        self._when_signal: Callbacks = (
            lambda call: application.on_signal_arrived(call.value, call.at_ns),
        )
        self._when_arrived: Callbacks = (
            self._on_in_order if self._order is None else self._on_out_of_order,
        )
        application.on_connected(self._handshake_ns)

    def send_request(self, stream_id: int, n_bytes: int) -> None:
        """Send a request up, where nothing limits the rate."""
        del n_bytes
        self._send_up(self._when_request, stream_id)

    def send_signal(self, number: int, n_bytes: int) -> None:
        """Send a frame of the control stream up, as a request."""
        del n_bytes
        self._send_up(self._when_signal, number)

    def pump(self) -> None:
        """Send from the next tick on, unless that is done already."""
        if not self._is_sending:
            self._is_sending = True
            first = self._constant_rate.first_tick_from(self._environment.now_ns)
            self._next_tick = max(self._next_tick, first)
            self._environment.at(self._next_tick_at_ns(), _SEND, self._when_tick, None)

    def watch(self, stream_id: int, n_bytes: int) -> None:
        """Report nothing of a response before *n_bytes* of it have been delivered.

        For one stream that number never falls: a packet that brings less when it leaves brings
        less when it arrives.
        """
        self._watched[stream_id] = n_bytes
        if self._order is not None:
            self._order.watch(stream_id, n_bytes)

    def carried(self) -> Carried:
        """Return what happened to packets."""
        if self._order is None:
            return Carried(tuple(self._rows))
        return Carried(rows_of([row[:6] for row in self._rows], self._delivered_at_ns))

    def _send_up(self, when: Callbacks, value: int) -> None:
        delay_ns = self._network.rtt_ns - self._one_way_ns
        self._environment.after(delay_ns, Rank.ARRIVAL, when, value)

    # What happens

    def _on_tick(self, call: Call) -> None:
        """Send a packet at this tick, and at each one after it until something else is due.

        A tick with nothing to send is lost, and none follows until there is something again.
        """
        environment, streams, watched = self._environment, self.response_streams, self._watched
        one_way_ns, in_order = self._one_way_ns, self._order is None
        rows, delivered_at_ns = self._rows, self._delivered_at_ns
        take, advance_to, at = streams.take, environment.advance_to, environment.at
        numerator, denominator = self._interval_ns
        row: PacketRow
        now_ns = call.at_ns
        while True:
            self._next_tick += 1
            chunk = take()
            if chunk is None:
                self._is_sending = False
                return
            stream_id, offset, n_bytes = chunk
            number = len(rows)
            arrives_at_ns = now_ns + one_way_ns
            if in_order:
                row = (now_ns, arrives_at_ns, stream_id, offset, n_bytes, number, arrives_at_ns)
                is_noticed = offset + n_bytes >= watched.get(stream_id, 0)
            else:
                arrives_at_ns += self._hold_ns()
                row = (now_ns, arrives_at_ns, stream_id, offset, n_bytes, number, None)
                delivered_at_ns.append(None)
                is_noticed = True
            rows.append(row)
            if is_noticed:
                at(arrives_at_ns, _DELIVERY, self._when_arrived, number)
            if streams.has_drained:
                self._application.on_drained()
            if self._progress is not None and not (number + 1) % _REPORT_EVERY_PACKETS:
                self._progress(number + 1, self._n_packets)
            now_ns = self._next_tick * numerator // denominator
            if not advance_to(now_ns):
                at(now_ns, _SEND, self._when_tick, None)
                return

    def _hold_ns(self) -> int:
        return 0 if self._jitter is None else self._jitter.next_hold_ns()

    def _next_tick_at_ns(self) -> int:
        numerator, denominator = self._interval_ns
        return self._next_tick * numerator // denominator

    def _on_in_order(self, call: Call) -> None:
        """A packet arrives whose bytes were watched for when it left."""
        _, _, stream_id, offset, n_bytes, *_ = self._rows[call.value]
        if offset + n_bytes >= self._watched.get(stream_id, 0):
            self._application.on_delivered(stream_id, offset + n_bytes, call.at_ns)

    def _on_out_of_order(self, call: Call) -> None:
        """A packet arrives that others may have overtaken."""
        row: int = call.value
        _, _, stream_id, offset, n_bytes, *_ = self._rows[row]
        assert self._order is not None  # noqa: S101 - only then are arrivals taken here
        for delivered in self._order.on_packet(row, stream_id, offset, n_bytes, call.at_ns):
            self._application.on_delivered(*delivered, call.at_ns)
