"""A constant rate, without loss: one packet of one stream at each tick.

Read next, on the path of docs/reading.md: `h3sim/metrics/progress.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from h3sim.engine.environment import EventPriority, FifoEventQueue
from h3sim.engine.transport import TransportTrace
from h3sim.trace import (
    ConnectionOrder,
    Delivery,
    RowRecorder,
    SteadyRecorder,
    StreamOrder,
)
from h3sim.transport import PacketHold
from h3sim.values import rng

if TYPE_CHECKING:
    from h3sim.engine.environment import LoadEnvironment
    from h3sim.engine.transport import Application, ProgressCallback
    from h3sim.http import StreamSender
    from h3sim.transport import ConstantRate, Network, Protocol


_PACKETS_PER_REPORT: Final = 4096
"""The interval of calls of the progress callback."""

# Plain ints: looking up a member of an enum costs as much as half a pick.
_DELIVERY, _ARRIVAL, _SEND = (
    int(EventPriority.DELIVERY),
    int(EventPriority.ARRIVAL),
    int(EventPriority.SEND),
)


class ConstantRateTransport:
    """The `Transport` of a network with a constant rate.

    A packet leaves at each tick and arrives after the delay; nothing is acknowledged. Without
    reordering, the fate of a packet is known when it leaves: it is delivered on arrival. So only
    packets whose bytes the application watches need an event, and while nothing else is due, the
    next packet also leaves without an event.
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
        progress: ProgressCallback | None,
        n_packets: int,
    ) -> None:
        self.response_streams = response_streams
        self._environment = environment
        self._constant_rate = constant_rate
        self._handshake_ns = protocol.handshake_rtts * network.rtt_ns if handshake else 0
        self._one_way_ns = network.one_way_ns
        self._up_ns = network.rtt_ns - network.one_way_ns
        self._interval_ns = constant_rate.interval_ns.as_integer_ratio()
        """The exact time between ticks, as numerator and denominator."""
        self._progress = progress
        self._n_packets = n_packets
        # Intervals below a nanosecond: ticks are truncated, and may fall on one instant.
        has_distinct_deliveries = constant_rate.interval_ns >= 1
        self._ordered_recorder = SteadyRecorder(
            self._one_way_ns, has_distinct_deliveries=has_distinct_deliveries
        )
        self._reordered_recorder = RowRecorder()
        """The recorder of packets that may be reordered."""
        self._watched_bytes: dict[int, int] = {}
        """The threshold of `watch` per response."""
        self._jitter: PacketHold | None = None
        self._order: StreamOrder | ConnectionOrder | None = None
        """The reordering of packets into streams; None without jitter."""
        if network.jitter is not None:
            source = rng.substream(seed, "jitter")
            interval_ns = constant_rate.tick_at_ns(1)
            self._jitter = PacketHold(network.jitter, interval_ns=interval_ns, source=source)
            per_stream = protocol.delivery is Delivery.STREAM
            order = StreamOrder if per_stream else ConnectionOrder
            self._order = order(self._reordered_recorder.delivered_at_ns)
        self._next_tick = 1
        """The number of the next tick at which a packet may leave."""
        self._is_sending = False
        """True while a packet leaves at each tick."""

    # Calls of the application

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
        """Send a request upstream, where the rate is unlimited."""
        del n_bytes
        self._requests_up.put(self._environment.now_ns + self._up_ns, stream_id)

    def send_signal(self, number: int, n_bytes: int) -> None:
        """Send a frame of the control stream upstream, like a request."""
        del n_bytes
        self._signals_up.put(self._environment.now_ns + self._up_ns, number)

    def pump(self) -> None:
        """Start sending at the next tick, unless already sending."""
        if not self._is_sending:
            self._is_sending = True
            first = self._constant_rate.first_tick_from(self._environment.now_ns)
            # A tick that was used is over, even if it falls on this very instant.
            self._next_tick = max(self._next_tick, first)
            self._environment.at(self._next_tick_at_ns(), _SEND, self._on_tick, None)

    def watch(self, stream_id: int, n_bytes: int) -> None:
        """Suppress reports of a response until *n_bytes* of it have been delivered.

        For one stream that number never decreases: a packet below it on departure is below it on
        arrival.
        """
        # In order, this transport checks the threshold itself; out of order, the receiver does.
        self._watched_bytes[stream_id] = n_bytes
        if self._order is not None:
            self._order.watch(stream_id, n_bytes)

    def carried(self) -> TransportTrace:
        """Return the recorded packets."""
        if self._order is None:
            return TransportTrace(self._ordered_recorder.rows())
        return TransportTrace(self._reordered_recorder.rows())

    # Events

    def _on_tick(self, _value: None, now_ns: int) -> None:
        """Send a packet at this tick and at each later one; other events run when due.

        A tick with nothing to send is lost, and sending stops until there is data again.
        """
        environment, streams, arrivals = self._environment, self.response_streams, self._arrivals
        one_way_ns, in_order, watched = self._one_way_ns, self._order is None, self._watched_bytes
        sent_at_ns, chunks = self._ordered_recorder.sent_at_ns, self._ordered_recorder.chunks
        advance_to, run_until = environment.advance_to, environment.run_until
        numerator, denominator = self._interval_ns
        while True:
            self._next_tick += 1
            # Chosen when the packet leaves, and not before: the scheduler then knows every request
            # and signal that has arrived by this tick, since a tick has the last rank.
            chunk = streams.take()
            if chunk is None:
                self._is_sending = False
                return
            if in_order:
                sent_at_ns.append(now_ns)
                chunks.append(chunk)
                stream_id, offset, n_bytes = chunk
                # A packet below the threshold on departure is below it on arrival, so no event is
                # needed.
                if offset + n_bytes >= watched[stream_id]:
                    arrivals.put(now_ns + one_way_ns, chunk)
                if not len(chunks) % _PACKETS_PER_REPORT:
                    self._report_and_pack(self._ordered_recorder)
            else:
                self._send_out_of_order(now_ns, chunk)
            if streams.has_drained:
                self._application.on_drained()
            # From the number of the tick and an exact fraction, rounded down once: adding rounded
            # intervals would drift.
            now_ns = self._next_tick * numerator // denominator
            # Usually nothing else is due before the next tick, and no event is needed for it.
            if not advance_to(now_ns):
                if environment.returns_to_loop:
                    environment.at(now_ns, _SEND, self._on_tick, None)
                    return
                run_until(now_ns, _SEND)

    def _send_out_of_order(self, now_ns: int, chunk: tuple[int, int, int]) -> None:
        """Send a packet that may be held back while others pass."""
        recorder = self._reordered_recorder
        row = len(recorder.delivered_at_ns)
        assert self._jitter is not None  # noqa: S101 - without it packets stay in order
        arrives_at_ns = now_ns + self._one_way_ns + self._jitter.next_hold_ns()
        recorder.pending.append((now_ns, arrives_at_ns, *chunk, row))
        recorder.delivered_at_ns.append(None)
        self._arrivals.put(arrives_at_ns, (row, chunk))
        if not len(recorder.pending) % _PACKETS_PER_REPORT:
            self._report_and_pack(recorder)

    def _report_and_pack(self, recorder: SteadyRecorder | RowRecorder) -> None:
        """Report progress, and pack the recorded rows."""
        if self._progress is not None:
            self._progress(recorder.n_packets, self._n_packets)
        if recorder.n_pending >= recorder.max_pending:
            recorder.pack()

    def _next_tick_at_ns(self) -> int:
        """Return the time of the next tick."""
        # Computed from the tick's number, not by adding intervals: no drift.
        numerator, denominator = self._interval_ns
        return self._next_tick * numerator // denominator

    def _on_in_order(self, chunk: tuple[int, int, int], now_ns: int) -> None:
        """Handle the arrival of a packet whose bytes were watched on departure."""
        stream_id, offset, n_bytes = chunk
        if offset + n_bytes >= self._watched_bytes[stream_id]:
            self._application.on_delivered(stream_id, offset + n_bytes, now_ns)

    def _on_out_of_order(self, numbered: tuple[int, tuple[int, int, int]], now_ns: int) -> None:
        """Handle the arrival of a packet that others may have overtaken."""
        row, (stream_id, offset, n_bytes) = numbered
        assert self._order is not None  # noqa: S101 - only then are arrivals taken here
        for delivered in self._order.on_packet(row, stream_id, offset, n_bytes, now_ns):
            self._application.on_delivered(*delivered, now_ns)
