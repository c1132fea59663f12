"""Signals from the client's policy and from the server itself to the server's scheduler."""

from __future__ import annotations

from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple, Protocol

from h3sim import http
from h3sim.http import DefaultPriority, PriorityReceiver
from h3sim.page import UNCHANGED
from h3sim.signals import DEFAULT_WEIGHT, Eps, H2Priority, WithoutSignal
from h3sim.values._mypyc import mypyc_attr

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from h3sim.http import ByteThresholds, SchedulerUpdate, StreamSender
    from h3sim.page import Page, Resource, ResourceState, ServerPriority
    from h3sim.schemes import Policy, Scheme
    from h3sim.signals import Signal, SignalChange, Signalling


class PriorityTarget(Protocol):
    """The receiver of signals at the server: its streams, or a policy in front of them."""

    def open(self, stream_id: int, signal: Signal, /) -> None:
        """Add a stream or placeholder."""

    def update(self, element_id: int, signal: Signal, /) -> None:
        """Replace the signal of an element."""


@mypyc_attr(allow_interpreted_subclasses=True)
class PrioritySignalling:
    """The path of priority signals, the client's side first, then the server's."""

    record: list[tuple[int, int, Signal]]
    """The signals received by the server, in order, with the fields of `SignalSent`; constructing
    those would cost more than recording them."""

    def on_connected(self) -> None:
        """Send the signals that precede any request."""
        raise NotImplementedError

    def on_requested(self, stream_id: int, resource: Resource) -> None:
        """Send the priority of a request that leaves now."""
        raise NotImplementedError

    def on_changed(self, resource: Resource | None, change: ResourceState, now_ns: int) -> None:
        """Apply changed state of a resource, or of all; signal new priorities of open streams."""
        raise NotImplementedError

    def on_finished(self, stream_id: int) -> None:
        """Record that the client has the whole response."""
        raise NotImplementedError

    def on_request_arrived(self, stream_id: int, resource: Resource, now_ns: int) -> None:
        """Deliver a request to the server."""
        raise NotImplementedError

    def on_message_arrived(self, number: int, now_ns: int) -> None:
        """Deliver the *number*-th frame of the control stream to the server."""
        raise NotImplementedError

    def on_closed(self, stream_id: int, now_ns: int) -> None:
        """Record that a stream left the scheduler."""
        raise NotImplementedError


class OracleSignalling(PrioritySignalling):
    """Signalling without delay.

    The server has the client's priority with the request (Marx 2019).
    """

    def __init__(
        self,
        policy: Policy,
        streams: PriorityTarget,
        without_signal: WithoutSignal = WithoutSignal.NOT_INCREMENTAL,
    ) -> None:
        self._policy = policy
        self._streams = streams
        self._defaults = DefaultPriority(without_signal)
        self.record: list[tuple[int, int, Signal]] = []

    def on_connected(self) -> None:
        """Open the placeholders."""
        for element_id, signal in self._policy.on_connected():
            self.record.append((0, element_id, signal))
            self._streams.open(element_id, signal)

    def on_requested(self, stream_id: int, resource: Resource) -> None:
        """Do nothing."""

    def on_changed(self, resource: Resource | None, change: ResourceState, now_ns: int) -> None:
        """Apply the policy's changes at the server at once."""
        self._apply(self._policy.on_changed(resource, change), now_ns)

    def on_finished(self, stream_id: int) -> None:
        """Do nothing."""

    def on_request_arrived(self, stream_id: int, resource: Resource, now_ns: int) -> None:
        """Apply the policy's signals at the server."""
        self._apply(self._policy.on_requested(stream_id, resource), now_ns, stream_id)

    def on_message_arrived(self, number: int, now_ns: int) -> None:
        """Do nothing: no frames are sent."""

    def on_closed(self, stream_id: int, now_ns: int) -> None:
        """Apply the policy's changes at the server."""
        self._apply(self._policy.on_closed(stream_id), now_ns)

    def _apply(
        self, changes: Iterable[SignalChange], now_ns: int, requested: int | None = None
    ) -> None:
        """Open the stream that was requested, and update the others."""
        for element_id, signal in changes:
            is_request = element_id == requested
            if isinstance(signal, Eps):
                defaults = self._defaults
                signal = (defaults.of_request if is_request else defaults.of_update)(signal)
            self.record.append((now_ns, element_id, signal))
            if is_request:
                self._streams.open(element_id, signal)
            else:
                self._streams.update(element_id, signal)


class MetadataSignalling(OracleSignalling):
    """Signalling by metadata: clients describe requests, servers prioritize (Marx 2019 § 6).

    The client has announced *scheme* with the handshake, so the server has it before any request. A
    request carries the properties that the scheme's rules use, as known when it leaves. A later
    change of an open stream is a frame; a single one if the change affects the whole tab. No stream
    is named as another's parent, so a late stream does not delay others. *send_message* is called
    with the number of a frame and its size.
    """

    def __init__(
        self,
        policy: Policy,
        streams: PriorityTarget,
        scheme: Scheme,
        send_message: Callable[[int, int], None],
        *,
        message_bytes: int,
    ) -> None:
        super().__init__(policy, streams, scheme.without_signal)
        self._updates = scheme.updates
        self._message_bytes = message_bytes
        self._send_message = send_message
        # Client
        self._known_states: dict[str | None, ResourceState] = {}
        """The known state of resources by ID, and of all of them (None)."""
        self._open_resources: dict[int, str] = {}
        """The ID of the resource on each open stream."""
        self._frames: list[tuple[Resource | None, ResourceState]] = []
        """The frames: the changed state of a resource, or of all."""
        # Server
        self._order = InOrder()
        self._reported_states: dict[str, ResourceState] = {}
        """The state of resources by ID as reported in frames."""
        self._request_states: dict[int, ResourceState] = {}
        """The state sent with each request, beyond the page file."""

    def on_requested(self, stream_id: int, resource: Resource) -> None:
        """Attach the known state of the resource to the request."""
        tab_state = self._known_states.get(None, UNCHANGED)
        own_state = self._known_states.get(resource.id, UNCHANGED)
        self._request_states[stream_id] = tab_state.after(own_state)
        self._open_resources[stream_id] = resource.id

    def on_changed(self, resource: Resource | None, change: ResourceState, now_ns: int) -> None:  # noqa: ARG002 - it takes the way up
        """Send a frame if it concerns an open stream."""
        id_ = None if resource is None else resource.id
        self._known_states[id_] = self._known_states.get(id_, UNCHANGED).after(change)
        open_ids = self._open_resources.values()
        is_open = bool(open_ids) if id_ is None else id_ in open_ids
        if is_open and change.sets(self._updates):
            self._frames.append((resource, change))
            self._send_message(len(self._frames) - 1, self._message_bytes)

    def on_finished(self, stream_id: int) -> None:
        """Forget a stream that needs no more frames."""
        del self._open_resources[stream_id]

    def on_request_arrived(self, stream_id: int, resource: Resource, now_ns: int) -> None:
        """Derive the priority of a request from its metadata."""
        metadata = self._request_states.pop(stream_id)
        if metadata is not UNCHANGED:
            reported = self._reported_states.get(resource.id, UNCHANGED)
            self._apply_change(resource, metadata.after(reported), now_ns)
        super().on_request_arrived(stream_id, resource, now_ns)

    def on_message_arrived(self, number: int, now_ns: int) -> None:
        """Process the frames that are in order now."""
        for index in self._order.on_arrived(number):
            resource, change = self._frames[index]
            if resource is not None:
                state = self._reported_states.get(resource.id, UNCHANGED)
                self._reported_states[resource.id] = state.after(change)
            self._apply_change(resource, change, now_ns)

    def _apply_change(self, resource: Resource | None, change: ResourceState, now_ns: int) -> None:
        """Apply changed state that the server knows now; `on_changed` is the client's side here."""
        super().on_changed(resource, change, now_ns)


class InOrder:
    """Restores the order of numbers that arrive in any order.

    >>> order = InOrder()
    >>> [*order.on_arrived(1)], [*order.on_arrived(0)]
    ([], [0, 1])
    """

    def __init__(self) -> None:
        self._early_numbers: set[int] = set()
        """Numbers that arrived before a lower one."""
        self._next_number = 0
        """The lowest number that has not arrived."""

    def on_arrived(self, number: int) -> Iterator[int]:
        """Yield the numbers that are in order now."""
        self._early_numbers.add(number)
        while self._next_number in self._early_numbers:
            self._early_numbers.remove(self._next_number)
            self._next_number += 1
            yield self._next_number - 1


class _Frame(NamedTuple):
    """A frame of the control stream."""

    element_id: int
    signal: Signal


class WireSignalling(PrioritySignalling):
    """Signalling on the wire: the client sends priorities with requests or on the control stream.

    *send_message* is called with the number of a frame and its size. Frames may arrive in any
    order; the control stream delivers them in the order sent. *default_weight* is the weight of
    streams without a signal, and *without_signal* their priority in EPS.
    """

    def __init__(
        self,
        policy: Policy,
        streams: PriorityTarget,
        signalling: Signalling,
        send_message: Callable[[int, int], None],
        *,
        message_bytes: int,
        default_weight: int = DEFAULT_WEIGHT,
        without_signal: WithoutSignal = WithoutSignal.NOT_INCREMENTAL,
    ) -> None:
        self._policy = policy
        self._streams = streams
        self._message_bytes = message_bytes
        self._send_message = send_message
        self._receiver = PriorityReceiver(
            signalling, default_weight=default_weight, without_signal=without_signal
        )
        self._goes_with_request = signalling.goes_with_request
        self._with_request: dict[int, Signal] = {}
        """The signals in requests that are on their way, by stream."""
        self._frames: list[_Frame] = []
        """The frames of the control stream, in the order sent."""
        self._order = InOrder()
        self.record: list[tuple[int, int, Signal]] = []

    def on_connected(self) -> None:
        """Declare the placeholders."""
        self._send(self._policy.on_connected())

    def on_requested(self, stream_id: int, resource: Resource) -> None:
        """Send the changes; the stream's own priority goes with the request if possible."""
        changes = self._policy.on_requested(stream_id, resource)
        if self._goes_with_request:
            # The policy returns the stream's own priority last.
            _, self._with_request[stream_id] = changes.pop()
        if changes:
            self._send(changes)

    def on_changed(self, resource: Resource | None, change: ResourceState, now_ns: int) -> None:  # noqa: ARG002 - it takes the way up
        """Send a frame for each stream and tree node whose priority changes."""
        self._send(self._policy.on_changed(resource, change))

    def on_finished(self, stream_id: int) -> None:
        """Send the changes after the end of a response."""
        changes = self._policy.on_closed(stream_id)
        if changes:
            self._send(changes)

    def on_request_arrived(self, stream_id: int, resource: Resource, now_ns: int) -> None:  # noqa: ARG002 - the request has said all
        """Deliver a request to the server, with the signal that it carried."""
        signal = self._with_request.pop(stream_id, None)
        self._apply(self._receiver.on_request(stream_id, signal), now_ns)

    def on_message_arrived(self, number: int, now_ns: int) -> None:
        """Deliver the frames that are in order now."""
        for index in self._order.on_arrived(number):
            self._apply(self._receiver.on_message(*self._frames[index]), now_ns)

    def on_closed(self, stream_id: int, now_ns: int) -> None:  # noqa: ARG002 - nothing is recorded
        """Make the server forget the stream."""
        # The client is not notified: it sees the end of a response by its last byte, and its
        # policy then acts in `on_finished`.
        self._receiver.on_closed(stream_id)

    def _send(self, changes: Iterable[tuple[int, Signal]]) -> None:
        """Send a frame on the control stream for each change."""
        for change in changes:
            self._frames.append(_Frame(*change))
            self._send_message(len(self._frames) - 1, self._message_bytes)

    def _apply(self, updates: Iterable[SchedulerUpdate], now_ns: int) -> None:
        """Pass the receiver's updates on to the scheduler, and record them."""
        for element_id, signal, opens in updates:
            self.record.append((now_ns, element_id, signal))
            if opens:
                self._streams.open(element_id, signal)
            else:
                self._streams.update(element_id, signal)


_server_priorities = attrgetter("server_priorities")


def has_server_priorities(page: Page, scheme: Scheme) -> bool:
    """Return whether the server sets priorities of its own; most loads do not, and pay nothing."""
    return (
        scheme.validates_client_priorities
        or bool(scheme.hints)
        or any(map(_server_priorities, page.resources))
    )


def has_thresholds(page: Page, scheme: Scheme) -> bool:
    """Return whether a server priority takes effect after some bytes of a response."""
    return has_server_priorities(page, scheme) and any(
        priority.after_bytes
        for resource in page.resources
        for priority in scheme.priorities_by_server(resource)
    )


class ServerPriorityPolicy:
    """Server-provided priorities (RFC 9218 § 8), merged with those of the client.

    A response's own priority is merged with the client's (RFC 9218 § 8) when the response starts,
    or once a number of its bytes were sent. A later signal of the client replaces both (§ 7). A
    server that validates client priorities falls back to content types when they look wrong.
    """

    def __init__(
        self,
        streams: StreamSender,
        scheme: Scheme,
        *,
        resource_of: Callable[[int], Resource],
        now_ns: Callable[[], int],
        thresholds: ByteThresholds | None,
    ) -> None:
        self._streams = streams
        self._scheme = scheme
        self._resource_of = resource_of
        self._now_ns = now_ns
        self._thresholds = thresholds
        self._client_signals: dict[int, Signal] = {}
        """The current signal of each stream, merged with what the server has changed."""
        self._validator = (
            http.ClientPriorityValidator() if scheme.validates_client_priorities else None
        )
        self.record: list[tuple[int, int, Signal]] = []
        """The signals of the server itself, in the form of `PrioritySignalling.record`."""

    def open(self, element_id: int, signal: Signal) -> None:
        """Add a stream or placeholder of the client."""
        self._client_signals[element_id] = signal
        self._streams.open(element_id, signal)
        if self._validator is not None and element_id >= 0:
            kind = self._resource_of(element_id).kind
            for changed, replacements in self._validator.on_open(element_id, kind, signal):
                self._send(changed, replacements)

    def update(self, element_id: int, signal: Signal) -> None:
        """Apply a changed priority of the client."""
        replacements = (
            None if self._validator is None else self._validator.on_update(element_id, signal)
        )
        if replacements is None:
            self._client_signals[element_id] = signal
            self._streams.update(element_id, signal)
            return
        for changed, replacement in replacements:
            self._send(changed, replacement)

    def on_response(self, stream_id: int) -> None:
        """Apply the server's priorities to a response that starts."""
        for priority in self._scheme.priorities_by_server(self._resource_of(stream_id)):
            merge = partial(self._merge, stream_id, priority)
            if not priority.after_bytes:
                merge()
            elif self._thresholds is not None:
                self._thresholds.watch(stream_id, priority.after_bytes, merge)

    def on_closed(self, stream_id: int) -> None:
        """Forget a stream."""
        self._client_signals.pop(stream_id, None)
        if self._validator is not None:
            self._validator.on_closed(stream_id)

    def _merge(self, stream_id: int, priority: ServerPriority) -> None:
        """Merge the server's priority with the current one of a stream."""
        merged = priority.merged_with(self._client_signals[stream_id])
        # A priority without effect is no signal, neither for the scheduler nor in the trace.
        if merged != self._client_signals[stream_id]:
            self._send(stream_id, merged)

    def _send(self, element_id: int, signal: Signal) -> None:
        """Pass a signal of the server itself on to the scheduler, and record it."""
        self._client_signals[element_id] = signal
        self.record.append((self._now_ns(), element_id, signal))
        self._streams.update(element_id, signal)


class UnsignalledRequests(PrioritySignalling):
    """The absence of priority signals in HTTP/1.1; *on_idle* is called after each response."""

    def __init__(self, streams: PriorityTarget, on_idle: Callable[[], None]) -> None:
        self._streams = streams
        self._on_idle = on_idle
        self.record: list[tuple[int, int, Signal]] = []

    def on_connected(self) -> None:
        """Do nothing."""

    def on_requested(self, stream_id: int, resource: Resource) -> None:
        """Do nothing: requests have no priority."""

    def on_changed(self, resource: Resource | None, change: ResourceState, now_ns: int) -> None:
        """Do nothing: a request cannot be reprioritized once it is sent."""

    def on_finished(self, stream_id: int) -> None:
        """Report that the connection is idle."""
        del stream_id
        self._on_idle()

    def on_request_arrived(self, stream_id: int, resource: Resource, now_ns: int) -> None:
        """Open the stream of the response."""
        # With any priority: a connection of HTTP/1.1 has one response at a time.
        del resource, now_ns
        self._streams.open(stream_id, H2Priority())

    def on_message_arrived(self, number: int, now_ns: int) -> None:
        """Do nothing: no frames are sent."""

    def on_closed(self, stream_id: int, now_ns: int) -> None:
        """Do nothing."""
