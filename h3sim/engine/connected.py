"""A load over links: two endpoints with acknowledgements, congestion control and recovery."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any, TypeAlias

from h3sim.engine.application import STREAM_ID_STEP, Application
from h3sim.engine.kernel import Call, Kernel, Rank
from h3sim.errors import StalledError
from h3sim.http import Retransmit, StreamSender
from h3sim.schedulers import RankScheduler
from h3sim.signals import H2Priority
from h3sim.trace import (
    Delivery,
    RecordOrder,
    RecoveryRow,
    StreamOrder,
    Trace,
    WireRow,
    rows_of,
)
from h3sim.transport import Role, WholeMessages

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from h3sim.browser import BrowserModel
    from h3sim.engine.endpoint_factory import End, EndpointFactory
    from h3sim.page import Page
    from h3sim.schemes import Scheme
    from h3sim.trace import DeliveryTimes
    from h3sim.trace.model import SentRow
    from h3sim.transport import Protocol

__all__ = ["ConnectedRun"]

_DEFAULT_REQUEST_BYTES = 100
"""What a request takes where the page does not say (network.md: 60 to 400 bytes)."""
_UNIDIRECTIONAL = 2
"""Added to a multiple of 4: a client's unidirectional stream (RFC 9000 § 2.1)."""
_REPORT_EVERY_PACKETS = 1024

# Plain numbers: looking a member of an enum up costs as much as half a pick.
_DELIVERY, _TIMER = int(Rank.DELIVERY), int(Rank.SEND)


Deliverer: TypeAlias = "Callable[[Any, int], Iterator[tuple[int, int]]]"
"""Takes a packet that arrives now; yields streams and how far they are delivered."""


class _Driven:
    """An end that the kernel drives: its timer, and whom to call when its packets arrive."""

    __slots__ = (
        "armed_at_ns",
        "arrivals_ns",
        "endpoint",
        "flush",
        "is_flush_due",
        "link",
        "overhead_bytes",
        "peer",
        "role",
        "when_arrived",
        "when_flush",
        "when_timer",
    )

    def __init__(self, end: End) -> None:
        self.role = end.role
        self.endpoint = end.endpoint
        self.link = end.link
        self.overhead_bytes = end.overhead_bytes
        self.peer = self
        self.armed_at_ns: int | None = None
        self.arrivals_ns: deque[int] = deque()
        """When packets arrive here that are under way, in the order sent; past ones may linger."""
        self.is_flush_due = False
        self.flush: Callable[[int], None] = _nothing
        """Sends what the endpoint has to send."""
        self.when_flush: tuple[Callable[[Call], None], ...] = ()
        self.when_timer: tuple[Callable[[Call], None], ...] = ()
        self.when_arrived: tuple[Callable[[Call], None], ...] = ()


def _nothing(now_ns: int) -> None:
    """Do nothing."""


class ConnectedRun:
    """One load. Every method is called at an instant and only schedules what comes of it."""

    def __init__(
        self,
        page: Page,
        scheme: Scheme,
        *,
        protocol: Protocol,
        makes: EndpointFactory,
        turn_bytes: int,
        buffer_bytes: int,
        retransmit: Retransmit,
        requeues: bool,
        limit_ns: int,
        max_events: int,
        records_wire: bool,
        browser: BrowserModel,
    ) -> None:
        self._page = page
        self._protocol = protocol
        self._limit_ns = limit_ns
        self._max_events = max_events
        self._kernel = Kernel(max_events=max_events)
        make = scheme.make_scheduler
        server_windows, client_windows = makes.windows(Role.SERVER), makes.windows(Role.CLIENT)
        ranks_lost = retransmit is Retransmit.PRIORITY
        self._answers = StreamSender(
            make(turn_bytes=turn_bytes),
            turn_bytes=turn_bytes,
            buffer_bytes=buffer_bytes,
            retransmit=retransmit,
            requeues=requeues,
            lost_scheduler=make(turn_bytes=turn_bytes) if ranks_lost else None,
            keeps_unacked=True,
            stream_window_bytes=server_windows[0],
            connection_window_bytes=server_windows[1],
        )
        self._questions = StreamSender(
            # Of one rank: requests and frames go up in the order in which they were made.
            RankScheduler(),
            turn_bytes=turn_bytes,
            keeps_unacked=True,
            stream_window_bytes=client_windows[0],
            connection_window_bytes=client_windows[1],
        )
        self._packets: list[SentRow] = []
        self._delivered_at_ns: DeliveryTimes = []
        self._first_row: dict[int, int] = {}
        """The first row of each packet that is under way to the client, or lost."""
        is_per_stream = protocol.delivery is Delivery.STREAM
        self._answers_received: StreamOrder | RecordOrder = (
            StreamOrder(self._delivered_at_ns)
            if is_per_stream
            else RecordOrder(self._delivered_at_ns)
        )
        self._questions_received = WholeMessages()
        self._application = Application(
            page,
            scheme,
            kernel=self._kernel,
            server=self._answers,
            receiver=self._answers_received,
            send_request=self._send_request,
            send_message=self._send_message,
            on_response=self._on_response,
            browser=browser,
        )
        self._client = _Driven(makes.end(Role.CLIENT, self._questions))
        self._server = _Driven(makes.end(Role.SERVER, self._answers))
        self._client.peer, self._server.peer = self._server, self._client
        self._progress: Callable[[int, int], None] | None = None
        self._n_packets = 0
        self._wire: list[WireRow] | None = [] if records_wire else None
        self._is_watched = records_wire
        """Whether packets are recorded, or progress is reported, as they are sent."""
        self._recovery: list[RecoveryRow] = []
        for end in (self._client, self._server):
            end.flush = self._flusher(end)
            end.when_timer = (self._timer_of(end),)
            end.when_flush = (self._flush_of(end),)
        self._client.when_arrived = (self._on_question,)
        self._server.when_arrived = (self._answer_taker(self._client.flush),)

    def report(self, progress: Callable[[int, int], None], n_packets: int) -> None:
        """Tell *progress* how far the load is."""
        self._progress = progress
        self._is_watched = True
        self._n_packets = n_packets

    def run(self) -> Trace:
        """Return what happened."""
        self._kernel.at(self._limit_ns, Rank.SEND, (self._on_limit,), None)
        self._begin()
        kernel = self._kernel
        if not kernel.run():
            waiting = self._application.waiting
            if kernel.has_overrun:
                raise StalledError(waiting, limit_ns=kernel.now_ns, n_events=self._max_events)
            raise StalledError(waiting)
        return Trace(
            delivery=self._protocol.delivery,
            requests=self._application.requests(),
            signals=self._application.signals,
            packet_rows=rows_of(self._packets, self._delivered_at_ns),
            activities=self._application.activities,
            wire=tuple(self._wire or ()),
            recovery=tuple(self._recovery),
        )

    def _begin(self) -> None:
        """Start the application once the client may send its requests."""
        client = self._client
        if client.endpoint.is_ready:
            self._application.start(0)
            return
        self._flush_soon(client)
        on_answer = self._server.when_arrived
        take_answer = self._answer_taker(_nothing)

        def on_handshake(call: Call) -> None:
            take_answer(call)
            # Packets that were under way already come here even after the first that did it.
            if client.endpoint.is_ready and self._server.when_arrived is not on_answer:
                self._server.when_arrived = on_answer
                self._application.start(call.at_ns)
            # Behind the first requests, which go with the end of the handshake.
            self._flush_soon(client)

        self._server.when_arrived = (on_handshake,)

    def _on_limit(self, call: Call) -> None:
        del call
        raise StalledError(self._application.waiting, limit_ns=self._limit_ns)

    # The application's side

    def _send_request(self, stream_id: int, resource: int) -> None:
        n_bytes = self._page.resources[resource].request_bytes or _DEFAULT_REQUEST_BYTES
        self._send_up(stream_id, n_bytes)

    def _send_message(self, number: int, n_bytes: int) -> None:
        """Let a frame of the control stream go up: as a stream of its own, put in order later."""
        self._send_up(STREAM_ID_STEP * number + _UNIDIRECTIONAL, n_bytes)

    def _send_up(self, stream_id: int, n_bytes: int) -> None:
        self._questions_received.expect(stream_id, n_bytes)
        self._questions.on_request(stream_id, H2Priority())
        self._questions.on_response(stream_id, n_bytes)
        self._flush_soon(self._client)

    def _on_response(self) -> None:
        self._flush_soon(self._server)

    def _flush_soon(self, end: _Driven) -> None:
        """Flush once all that falls on this instant has happened.

        So requests that are made together leave in one packet, and a server that gets several
        at once knows all of them before it begins to answer.
        """
        if not end.is_flush_due:
            end.is_flush_due = True
            self._kernel.after(0, Rank.SEND, end.when_flush, None)

    # The endpoints

    def _flusher(self, end: _Driven) -> Callable[[int], None]:
        """Return what sends all that the endpoint has to send, and arms its timer."""
        # Called with every packet both ways, so what it calls is looked up once.
        packets_to_send, timer_at_ns = end.endpoint.packets_to_send, end.endpoint.timer_at_ns
        send, at, note_arrival = end.link.send, self._kernel.at, end.peer.arrivals_ns.append
        overhead_bytes, first_row = end.overhead_bytes, self._first_row
        rows, delivered_at_ns = self._packets, self._delivered_at_ns
        is_server, arm = end is self._server, self._arm

        def flush(now_ns: int) -> None:
            for packet in packets_to_send(now_ns):
                arrives_at_ns = send(now_ns, packet.size_bytes + overhead_bytes)
                if arrives_at_ns is not None:
                    at(arrives_at_ns, _DELIVERY, end.when_arrived, packet)
                    note_arrival(arrives_at_ns)
                if is_server and packet.frames:
                    number = packet.number
                    first_row[number] = len(rows)
                    for stream_id, offset, n_bytes in packet.frames:
                        rows.append((now_ns, arrives_at_ns, stream_id, offset, n_bytes, number))
                        delivered_at_ns.append(None)
                if self._is_watched:
                    self._record_sent(end, packet, now_ns, arrives_at_ns)
            at_ns = timer_at_ns()
            if at_ns is not None:
                arm(end, at_ns, now_ns)

        return flush

    def _arm(self, end: _Driven, at_ns: int, now_ns: int) -> None:
        """See to it that the end is woken at *at_ns*.

        Each packet that arrives has the end asked for its timer again. So none is armed that one
        of them precedes: as a rule that packet puts the timer off, or does away with it.
        """
        arrivals_ns = end.arrivals_ns
        while arrivals_ns and arrivals_ns[0] <= now_ns:
            arrivals_ns.popleft()
        if arrivals_ns and arrivals_ns[0] <= at_ns:
            return
        if end.armed_at_ns is None or at_ns < end.armed_at_ns:
            end.armed_at_ns = at_ns
            self._kernel.at(max(at_ns, now_ns), _TIMER, end.when_timer, at_ns)

    def _flush_of(self, end: _Driven) -> Callable[[Call], None]:
        def on_flush(call: Call) -> None:
            end.is_flush_due = False
            end.flush(call.at_ns)

        return on_flush

    def _timer_of(self, end: _Driven) -> Callable[[Call], None]:
        def on_timer(call: Call) -> None:
            """Wake the endpoint, unless an earlier timer has taken the place of this one.

            A timer that was put off is let run and looks again: that is cheaper than to take an
            event out of the queue with every packet.
            """
            if call.value != end.armed_at_ns:
                return
            end.armed_at_ns = None
            due_at_ns = end.endpoint.timer_at_ns()
            now_ns = call.at_ns
            if due_at_ns is None and end is self._client:
                return  # its ACK has gone with a later packet; a server's waking is on record
            if due_at_ns is not None and due_at_ns > now_ns:
                self._arm(end, due_at_ns, now_ns)
                return
            end.endpoint.on_timer(now_ns)
            if end is self._server:
                self._record_recovery(now_ns)
            end.flush(now_ns)

        return on_timer

    def _answer_taker(self, then: Callable[[int], None]) -> Callable[[Call], None]:
        """Return what lets the client have a packet of the server, and then calls *then*."""
        on_delivered = self._application.on_delivered
        if isinstance(self._answers_received, RecordOrder):
            deliver = self._segment_deliverer(self._answers_received)
        else:
            deliver = self._packet_deliverer(self._answers_received)

        def take_answer(call: Call) -> None:
            for stream_id, contiguous in deliver(call.value, call.at_ns):
                on_delivered(stream_id, contiguous, call.at_ns)
            then(call.at_ns)

        return take_answer

    def _packet_deliverer(self, received: StreamOrder) -> Deliverer:
        """Return what delivers the streams' bytes of a packet of QUIC."""
        # Called with every packet down, so what it calls is looked up once.
        on_packet, on_frame = self._client.endpoint.on_packet, received.on_packet
        take_row = self._first_row.pop

        def deliver(packet: Any, now_ns: int) -> Iterator[tuple[int, int]]:
            row = take_row(packet.number, 0)
            for stream_id, offset, n_bytes in on_packet(packet, now_ns):
                yield from on_frame(row, stream_id, offset, n_bytes, now_ns)
                row += 1

        return deliver

    def _segment_deliverer(self, received: RecordOrder) -> Deliverer:
        """Return what delivers the frames of the records that a segment of TCP completes."""
        on_packet, on_frame, on_row = (
            self._client.endpoint.on_packet,
            received.on_frame,
            received.on_row,
        )
        take_row = self._first_row.pop

        def deliver(packet: Any, now_ns: int) -> Iterator[tuple[int, int]]:
            for row, frame in enumerate(packet.frames, take_row(packet.number, 0)):
                on_row(row, *frame)
            for stream_id, offset, n_bytes in on_packet(packet, now_ns):
                yield from on_frame(stream_id, offset, n_bytes, now_ns)

        return deliver

    def _on_question(self, call: Call) -> None:
        """A packet of the client arrives at the server."""
        packet: Any = call.value
        now_ns = call.at_ns
        server = self._server
        for stream_id, offset, n_bytes in server.endpoint.on_packet(packet, now_ns):
            if not self._questions_received.on_bytes(stream_id, offset, n_bytes):
                continue
            if stream_id % STREAM_ID_STEP:
                self._application.on_message_arrived(stream_id // STREAM_ID_STEP, now_ns)
            else:
                self._application.on_request_arrived(stream_id, now_ns)
        if self._answers.drained:
            self._application.close_drained()
        if self._wire is not None:
            self._record_recovery(now_ns)
        server.flush(now_ns)

    # The record

    def _record_recovery(self, now_ns: int) -> None:
        if self._wire is not None:
            self._recovery.append(self._server.endpoint.recovery_row(now_ns))

    def _record_sent(
        self, end: _Driven, packet: Any, now_ns: int, arrives_at_ns: int | None
    ) -> None:
        number = packet.number
        is_down = end is self._server
        if self._progress is not None and is_down and not number % _REPORT_EVERY_PACKETS:
            self._progress(min(number, self._n_packets), self._n_packets)
        if self._wire is not None:
            self._wire.append(
                WireRow(
                    is_down=is_down,
                    number=number,
                    sent_at_ns=now_ns,
                    arrived_at_ns=arrives_at_ns,
                    size_bytes=packet.size_bytes,
                    acked=end.endpoint.ack_ranges(packet),
                )
            )
