"""A constant rate, without loss: one packet of one stream at each tick.

Read next, on the path of docs/reading.md: `h3sim/metrics/progress.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from h3sim import rng
from h3sim.engine.environment import EventPriority, FifoEventQueue
from h3sim.engine.transport import TransportTrace
from h3sim.trace import (
    ConnectionOrder,
    Delivery,
    RowRecorder,
    SteadyRecorder,
    StreamOrder,
)
from h3sim.transport import HoldEveryNth

if TYPE_CHECKING:
    from h3sim.engine.environment import LoadEnvironment
    from h3sim.engine.transport import Application, ProgressCallback
    from h3sim.http import StreamSender
    from h3sim.transport import ConstantRate, Network, Protocol


_REPORT_EVERY_PACKETS: Final = 4096

# Plain numbers: looking a member of an enum up costs as much as half a pick.
_DELIVERY, _ARRIVAL, _SEND = (
    int(EventPriority.DELIVERY),
    int(EventPriority.ARRIVAL),
    int(EventPriority.SEND),
)


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
        progress: ProgressCallback | None = None,
        n_packets: int = 0,
    ) -> None:
        self.response_streams = response_streams
        self._environment = environment
        self._constant_rate = constant_rate
        self._handshake_ns = protocol.handshake_rtts * network.rtt_ns if handshake else 0
        self._one_way_ns = network.one_way_ns
        self._up_ns = network.rtt_ns - network.one_way_ns
        self._interval_ns = constant_rate.interval_ns.as_integer_ratio()
        self._progress = progress
        self._n_packets = n_packets
        # Ticks closer than a nanosecond may fall on one instant, as they are cut to whole ones.
        is_apart = constant_rate.interval_ns >= 1
        self._steady = SteadyRecorder(self._one_way_ns, is_apart=is_apart)
        self._overtaken = RowRecorder()
        """Takes down what the other does not: packets that overtake each other."""
        self._watched: dict[int, int] = {}
        self._jitter: HoldEveryNth | None = None
        self._order: StreamOrder | ConnectionOrder | None = None
        """Puts packets in order that overtake each other; None where none does."""
        if network.jitter is not None:
            source = rng.substream(seed, "jitter")
            interval_ns = constant_rate.tick_at_ns(1)
            self._jitter = HoldEveryNth(network.jitter, interval_ns=interval_ns, source=source)
            per_stream = protocol.delivery is Delivery.STREAM
            order = StreamOrder if per_stream else ConnectionOrder
            self._order = order(self._overtaken.delivered_at_ns)
        self._next_tick = 1
        self._is_sending = False

    # What the application asks for

    def begin(self, application: Application) -> None:
        """Connect, which takes the round trips of a handshake and no bytes."""
        self._application = application
        environment = self._environment
        self._requests_up = FifoEventQueue(environment, _ARRIVAL, application.on_request_arrived)
        self._signals_up = FifoEventQueue(environment, _ARRIVAL, application.on_signal_arrived)
        in_order = self._order is None
        when_arrived = self._on_in_order if in_order else self._on_out_of_order
        self._arrivals = FifoEventQueue(environment, _DELIVERY, when_arrived)
        application.on_connected(self._handshake_ns)

    def send_request(self, stream_id: int, n_bytes: int) -> None:
        """Send a request up, where nothing limits the rate."""
        del n_bytes
        self._requests_up.put(self._environment.now_ns + self._up_ns, stream_id)

    def send_signal(self, number: int, n_bytes: int) -> None:
        """Send a frame of the control stream up, as a request."""
        del n_bytes
        self._signals_up.put(self._environment.now_ns + self._up_ns, number)

    def pump(self) -> None:
        """Send from the next tick on, unless that is done already."""
        if not self._is_sending:
            self._is_sending = True
            first = self._constant_rate.first_tick_from(self._environment.now_ns)
            # A tick that was used is over, though it falls on this very instant.
            self._next_tick = max(self._next_tick, first)
            self._environment.at(self._next_tick_at_ns(), _SEND, self._on_tick, None)

    def watch(self, stream_id: int, n_bytes: int) -> None:
        """Report nothing of a response before *n_bytes* of it have been delivered.

        For one stream that number never falls: a packet that brings less when it leaves brings
        less when it arrives.
        """
        self._watched[stream_id] = n_bytes
        if self._order is not None:
            self._order.watch(stream_id, n_bytes)

    def carried(self) -> TransportTrace:
        """Return what happened to packets."""
        return TransportTrace((self._steady if self._order is None else self._overtaken).rows())

    # What happens

    def _on_tick(self, value: None, now_ns: int) -> None:
        """Send a packet at this tick, and at each one after it; what is due between them happens.

        A tick with nothing to send is lost, and none follows until there is something again.
        """
        environment, streams, watched = self._environment, self.response_streams, self._watched
        one_way_ns, in_order = self._one_way_ns, self._order is None
        sent_at_ns, chunks = self._steady.sent_at_ns, self._steady.chunks
        arrivals = self._arrivals
        advance_to, run_until = environment.advance_to, environment.run_until
        numerator, denominator = self._interval_ns
        del value
        while True:
            self._next_tick += 1
            chunk = streams.take()
            if chunk is None:
                self._is_sending = False
                return
            if in_order:
                sent_at_ns.append(now_ns)
                chunks.append(chunk)
                stream_id, offset, n_bytes = chunk
                # What was lower when it left is lower when it arrives, so an event for it would
                # find nobody.
                if offset + n_bytes >= watched.get(stream_id, 0):
                    arrivals.put(now_ns + one_way_ns, chunk)
                if not len(chunks) % _REPORT_EVERY_PACKETS:
                    self._after_many(self._steady)
            else:
                self._send_held(now_ns, chunk)
            if streams.has_drained:
                self._application.on_drained()
            now_ns = self._next_tick * numerator // denominator
            # Nearly always nothing else is due before the next tick: then no event is made for it.
            if not advance_to(now_ns):
                run_until(now_ns, _SEND)

    def _send_held(self, now_ns: int, chunk: tuple[int, int, int]) -> None:
        """Send a packet that may be held while others pass."""
        recorder = self._overtaken
        row = len(recorder.delivered_at_ns)
        hold_ns = 0 if self._jitter is None else self._jitter.next_hold_ns()
        arrives_at_ns = now_ns + self._one_way_ns + hold_ns
        recorder.pending.append((now_ns, arrives_at_ns, *chunk, row))
        recorder.delivered_at_ns.append(None)
        self._arrivals.put(arrives_at_ns, (row, chunk))
        if not len(recorder.pending) % _REPORT_EVERY_PACKETS:
            self._after_many(recorder)

    def _after_many(self, recorder: SteadyRecorder | RowRecorder) -> None:
        """Report what was sent, and pack what was written down of it."""
        if self._progress is not None:
            self._progress(recorder.n_packets, self._n_packets)
        if recorder.n_pending >= recorder.max_pending:
            recorder.pack()

    def _next_tick_at_ns(self) -> int:
        numerator, denominator = self._interval_ns
        return self._next_tick * numerator // denominator

    def _on_in_order(self, chunk: tuple[int, int, int], now_ns: int) -> None:
        """A packet arrives whose bytes were watched for when it left."""
        stream_id, offset, n_bytes = chunk
        if offset + n_bytes >= self._watched.get(stream_id, 0):
            self._application.on_delivered(stream_id, offset + n_bytes, now_ns)

    def _on_out_of_order(self, numbered: tuple[int, tuple[int, int, int]], now_ns: int) -> None:
        """A packet arrives that others may have overtaken."""
        row, (stream_id, offset, n_bytes) = numbered
        assert self._order is not None  # noqa: S101 - only then are arrivals taken here
        for delivered in self._order.on_packet(row, stream_id, offset, n_bytes, now_ns):
            self._application.on_delivered(*delivered, now_ns)
