"""Both ends of HTTP over one transport: requests, priority signals, and responses.

Read next, on the path of docs/reading.md: `h3sim/schemes/policy.py`.
"""

from __future__ import annotations

from functools import partial
from operator import itemgetter
from typing import TYPE_CHECKING

from h3sim.engine.environment import EventPriority, FifoEventQueue
from h3sim.engine.signalling import (
    MetadataSignalling,
    OracleSignalling,
    ServerPriorityPolicy,
    WireSignalling,
    has_server_priorities,
)
from h3sim.schemes import make_policy
from h3sim.signals import Signal, Signalling
from h3sim.trace import Request, SignalSent, Trace
from h3sim.values.constants import FRAME_HEADER_BYTES, STREAM_ID_STEP

if TYPE_CHECKING:
    from collections.abc import Callable

    from h3sim.engine.browser_driver import BrowserDriver
    from h3sim.engine.environment import LoadEnvironment
    from h3sim.engine.signalling import PrioritySignalling
    from h3sim.engine.transport import Transport
    from h3sim.http import ByteThresholds
    from h3sim.page import Page, Resource, ResourceState
    from h3sim.schemes import Scheme
    from h3sim.trace import Activity, Delivery


# Plain ints: looking up a member of an enum costs as much as half a pick.
_REQUEST, _RESPONSE = int(EventPriority.REQUEST), int(EventPriority.RESPONSE)
_CLOSE = int(EventPriority.CLOSE)

# From a plain tuple, without calling a Python function for each of many rows.
_SIGNAL_ROW = partial(tuple.__new__, SignalSent)
_REQUEST_ROW = partial(tuple.__new__, Request)


class HttpConnection:
    """A connection over *transport* between a browser and a server that follows *scheme*.

    It implements the callbacks of the transport (`transport.Application`). Every method is called
    at an instant, and only schedules later events. *request_bytes* returns the size of a request,
    and is called in the order of requests. A given *signalling* replaces that of the scheme.
    """

    def __init__(
        self,
        page: Page,
        scheme: Scheme,
        *,
        environment: LoadEnvironment,
        transport: Transport,
        driver: BrowserDriver,
        request_bytes: Callable[[Resource], int],
        is_http2: bool,
        sends_updates: bool,
        thresholds: ByteThresholds | None,
        signalling: PrioritySignalling | None,
    ) -> None:
        self._page = page
        self._resources = page.resources
        self._stream_bytes = page.stream_bytes
        self._request_bytes = request_bytes
        self._environment = environment
        self.transport = transport
        """The transport below HTTP."""
        self._streams = transport.response_streams
        self._browser = driver.browser
        self._schedule = driver.schedule
        self._batches_responses = scheme.mechanism.batches_responses
        self._retention_ns = scheme.resolved_retention_ns
        self._server_policy: ServerPriorityPolicy | None = None
        """The server's own priorities; None in most loads, which have none."""
        if signalling is None and has_server_priorities(page, scheme):
            self._server_policy = ServerPriorityPolicy(
                self._streams,
                scheme,
                resource_of=lambda stream_id: page.resources[self.resource_of(stream_id)],
                now_ns=lambda: environment.now_ns,
                thresholds=thresholds,
            )
        self._is_http2 = is_http2
        self._sends_updates = sends_updates
        self.n_frames = self.frame_bytes = 0
        """The number of frames on the control stream that carry priorities, and their bytes."""
        self._signalling = signalling or self._make_signalling(scheme)
        # Parallel lists: a pair per request would be one more object for Python's garbage
        # collector.
        self._requested: list[int] = []
        """The resource of each request."""
        self._requested_at_ns: list[int] = []
        """Time when it left the browser."""
        self._arrived_at_ns: list[int | None] = []
        """Arrival at the server."""
        # Streams are closed in the order in which they end.
        self._closings = FifoEventQueue(environment, _CLOSE, self._on_closed)
        self._on_ready: Callable[[int], None] | None = None
        """The callback of `begin`."""
        self.opened_at_ns: int
        """Time when it began to connect."""
        self.ready_at_ns = 0
        """Time when requests could leave; 0 if the load ended before."""

    def begin(self, on_ready: Callable[[int], None] | None = None) -> None:
        """Connect; *on_ready* is called when requests may leave."""
        self._on_ready = on_ready
        self.opened_at_ns = self._environment.now_ns
        self.transport.begin(self)

    def request(self, resource: int, now_ns: int) -> None:
        """Request the resource at that index of the page."""
        # Client-initiated bidirectional streams are 0, 4, 8, ... (RFC 9000 § 2.1); HTTP/2, with odd
        # IDs, is numbered in the same way.
        stream_id = STREAM_ID_STEP * len(self._requested)
        self._requested.append(resource)
        self._requested_at_ns.append(now_ns)
        self._arrived_at_ns.append(None)
        transport = self.transport
        # The browser reacts to nothing before this offset, so earlier bytes need no event.
        transport.watch(stream_id, self._browser.next_offset(resource))
        described = self._resources[resource]
        # Before the request leaves: frames of the control stream precede it.
        self._signalling.on_requested(stream_id, described)
        transport.send_request(stream_id, self._request_bytes(described))

    def on_changed(self, resource: Resource | None, change: ResourceState, now_ns: int) -> None:
        """Apply changed state of a resource; open streams may be reprioritized."""
        self._signalling.on_changed(resource, change, now_ns)

    # Callbacks of the transport

    def on_connected(self, now_ns: int) -> None:
        """Open the placeholders, and report that requests may leave."""
        self.ready_at_ns = now_ns
        # Before the browser is notified, so that placeholders precede the first requests.
        self._environment.at(now_ns, _REQUEST, self._open_placeholders, None)
        if self._on_ready is not None:
            self._on_ready(now_ns)

    def on_delivered(self, stream_id: int, contiguous: int, now_ns: int) -> None:
        """Deliver *contiguous* bytes of a stream to the browser."""
        resource = self._requested[stream_id // STREAM_ID_STEP]
        browser = self._browser
        due = browser.on_delivered(resource, contiguous, now_ns)
        if due:
            self._schedule(due)
        if contiguous < self._stream_bytes[resource]:
            self.transport.watch(stream_id, browser.next_offset(resource))
        else:
            # The end is delivered once: what is retransmitted needlessly brings nothing new.
            self._signalling.on_finished(stream_id)
            if browser.is_done:
                self._environment.stop()

    def on_request_arrived(self, stream_id: int, now_ns: int) -> None:
        """Deliver a request to the server, with its priority."""
        number = stream_id // STREAM_ID_STEP
        self._arrived_at_ns[number] = now_ns
        index = self._requested[number]
        resource = self._resources[index]
        self._signalling.on_request_arrived(stream_id, resource, now_ns)
        # With a rank of its own: all arrivals of this instant are known before any response starts.
        if resource.server_ns or self._batches_responses:
            self._environment.after(
                resource.server_ns, _RESPONSE, self._on_response_ready, stream_id
            )
        else:
            self._respond(stream_id, index)

    def on_signal_arrived(self, number: int, now_ns: int) -> None:
        """Deliver a frame of the control stream to the server."""
        self._signalling.on_message_arrived(number, now_ns)

    def on_drained(self) -> None:
        """Close drained streams in the scheduler, after the retention time or at once."""
        at_ns = self._environment.now_ns + self._retention_ns
        for stream_id in self._streams.take_drained():
            self._closings.put(at_ns, stream_id)

    @property
    def signals_received(self) -> list[tuple[int, int, Signal]]:
        """The signals of the client that have arrived: time, stream and signal."""
        return self._signalling.record

    def resource_of(self, stream_id: int) -> int:
        """Return the index in the page of the resource that a stream requests."""
        return self._requested[stream_id // STREAM_ID_STEP]

    # Events

    def _open_placeholders(self, _value: None, _now_ns: int) -> None:
        """Send the signals that precede all requests."""
        self._signalling.on_connected()

    def _on_response_ready(self, stream_id: int, _now_ns: int) -> None:
        """Respond once the server's processing time has passed."""
        self._respond(stream_id, self.resource_of(stream_id))

    def _on_closed(self, stream_id: int, now_ns: int) -> None:
        """Remove a stream from the scheduler, and report that to the policies."""
        self._streams.close(stream_id)
        self._signalling.on_closed(stream_id, now_ns)
        if self._server_policy is not None:
            self._server_policy.on_closed(stream_id)

    def _respond(self, stream_id: int, resource: int) -> None:
        """Hand a response to the server's streams, and let the transport send."""
        if self._server_policy is not None:
            # Before the first byte may be chosen: the server's priority applies to the whole
            # response.
            self._server_policy.on_response(stream_id)
        described = self._resources[resource]
        for after_ns, available in described.availability if described.body else ():
            if after_ns:
                piece = stream_id, available
                self._environment.after(after_ns, _RESPONSE, self._on_piece, piece)
            else:
                self._streams.provide(stream_id, available)
        self._streams.send(stream_id, self._stream_bytes[resource], described.header_bytes)
        # A send buffer may take the whole response at once.
        if self._streams.has_drained:
            self.on_drained()
        self.transport.pump()

    def _on_piece(self, piece: tuple[int, int], _now_ns: int) -> None:
        """Send a piece of a response that was produced now."""
        self._streams.provide(*piece)
        if self._streams.has_drained:
            self.on_drained()
        self.transport.pump()

    def _make_signalling(self, scheme: Scheme) -> PrioritySignalling:
        """Return the path of priority signals of *scheme*."""
        policy = make_policy(scheme, self._page, sends_updates=self._sends_updates)
        target = self._streams if self._server_policy is None else self._server_policy
        message_bytes = scheme.signalling.message_bytes(is_http2=self._is_http2)
        if scheme.signalling is Signalling.METADATA:
            return MetadataSignalling(
                policy, target, scheme, self._send_signal, message_bytes=message_bytes
            )
        if not scheme.signalling.is_sent:
            return OracleSignalling(policy, target, scheme.without_signal)
        return WireSignalling(
            policy,
            target,
            scheme.signalling,
            self._send_signal,
            message_bytes=message_bytes,
            default_weight=scheme.mechanism.weights.default,
            without_signal=scheme.without_signal,
        )

    def _send_signal(self, number: int, n_bytes: int) -> None:
        """Send the *number*-th frame of the control stream, of *n_bytes*, and count it."""
        self.n_frames += 1
        self.frame_bytes += n_bytes
        if self._is_http2:  # the transport itself adds the header of each frame
            n_bytes -= FRAME_HEADER_BYTES
        self.transport.send_signal(number, n_bytes)

    # Results

    def trace(self, delivery: Delivery, activities: tuple[Activity, ...] = ()) -> Trace:
        """Return the trace of the connection, with the activities of the browser."""
        carried = self.transport.carried()._asdict()
        return Trace(
            delivery=delivery,
            requests=self._request_rows(),
            signals=self._signal_rows(),
            activities=activities,
            **carried,
        )

    def _signal_rows(self) -> tuple[SignalSent, ...]:
        """Return the signals to the scheduler in order: of one instant the client's first."""
        record = self._signalling.record
        if self._server_policy is not None:
            # The sort is stable: of one instant the client's signals stay first.
            record = sorted([*record, *self._server_policy.record], key=itemgetter(0))
        return tuple(map(_SIGNAL_ROW, record))

    def _request_rows(self) -> tuple[Request, ...]:
        """Return the requests in the order of their creation; a load ends when all have arrived."""
        resources, times = self._requested, self._requested_at_ns
        sizes = map(self._stream_bytes.__getitem__, resources)
        numbers = range(0, STREAM_ID_STEP * len(resources), STREAM_ID_STEP)
        rows = zip(numbers, resources, times, self._arrived_at_ns, sizes, strict=True)
        return tuple(map(_REQUEST_ROW, rows))
