"""How signals come from the client's policy to the server's scheduler: known, or sent."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

from h3sim.http import PriorityReceiver
from h3sim.signals import DEFAULT_WEIGHT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from h3sim.http import SchedulerUpdate
    from h3sim.page import Resource, Standing
    from h3sim.schemes import Policy
    from h3sim.signals import Signal, Signalling

__all__ = ["OracleSignalling", "PrioritySignalling", "WireSignalling"]


class PriorityTarget(Protocol):
    """Who is told what the server heard: its streams, or what stands before them."""

    def open(self, stream_id: int, signal: Signal, /) -> None:
        """Take up a stream or placeholder."""

    def update(self, element_id: int, signal: Signal, /) -> None:
        """Replace the signal by *signal*."""


class PrioritySignalling(Protocol):
    """What the application tells; the client's side first, then the server's."""

    record: list[tuple[int, int, Signal]]
    """What the server learnt, in that order: the fields of `SignalSent`, which cost more to name
    than to write down."""

    def on_connected(self) -> None:
        """Say what holds before any request."""

    def on_requested(self, stream_id: int, resource: Resource) -> None:
        """Say what is wanted for a request that leaves now."""

    def on_changed(self, resource: Resource | None, change: Standing, now_ns: int) -> None:
        """Tell the client more of a resource, or of all; say what follows for open streams."""

    def on_finished(self, stream_id: int) -> None:
        """Record that the client has all of a response."""

    def on_request_arrived(self, stream_id: int, resource: Resource, now_ns: int) -> None:
        """Deliver a request to the server."""

    def on_message_arrived(self, number: int, now_ns: int) -> None:
        """Deliver a frame of the control stream, the *number*-th that was sent, to the server."""

    def on_closed(self, stream_id: int, now_ns: int) -> None:
        """Record that a stream left the scheduler."""


class OracleSignalling:
    """The server knows what the client wants when the request comes (Marx 2019)."""

    def __init__(self, policy: Policy, streams: PriorityTarget) -> None:
        self._policy = policy
        self._streams = streams
        self.record: list[tuple[int, int, Signal]] = []

    def on_connected(self) -> None:
        """Open the placeholders."""
        for element_id, signal in self._policy.on_connected():
            self.record.append((0, element_id, signal))
            self._streams.open(element_id, signal)

    def on_requested(self, stream_id: int, resource: Resource) -> None:
        """Say nothing."""

    def on_changed(self, resource: Resource | None, change: Standing, now_ns: int) -> None:
        """Tell the server at once what the policy makes of it."""
        for element_id, signal in self._policy.on_changed(resource, change):
            self.record.append((now_ns, element_id, signal))
            self._streams.update(element_id, signal)

    def on_finished(self, stream_id: int) -> None:
        """Say nothing."""

    def on_request_arrived(self, stream_id: int, resource: Resource, now_ns: int) -> None:
        """Tell the server what the policy says."""
        for element_id, signal in self._policy.on_requested(stream_id, resource):
            self.record.append((now_ns, element_id, signal))
            if element_id == stream_id:
                self._streams.open(element_id, signal)
            else:
                self._streams.update(element_id, signal)

    def on_message_arrived(self, number: int, now_ns: int) -> None:
        """Nothing is sent, so nothing comes."""

    def on_closed(self, stream_id: int, now_ns: int) -> None:
        """Tell the server what the policy makes of it."""
        for element_id, signal in self._policy.on_closed(stream_id):
            self.record.append((now_ns, element_id, signal))
            self._streams.update(element_id, signal)


class _Message(NamedTuple):
    """A frame of the control stream."""

    element_id: int
    signal: Signal


class WireSignalling:
    """The client says what it wants, with the request or on the control stream.

    *send_message* is told the number of a frame and its size. Frames may arrive in any order; the
    control stream hands them over in the order in which they were sent. *default_weight* is that of
    what has not been spoken of.
    """

    def __init__(
        self,
        policy: Policy,
        streams: PriorityTarget,
        signalling: Signalling,
        send_message: Callable[[int, int], None],
        *,
        default_weight: int = DEFAULT_WEIGHT,
    ) -> None:
        self._policy = policy
        self._streams = streams
        self._signalling = signalling
        self._send_message = send_message
        self._receiver = PriorityReceiver(signalling, default_weight=default_weight)
        self._with_request: dict[int, Signal] = {}
        self._messages: list[_Message] = []
        self._arrived: set[int] = set()
        self._n_heard = 0
        self.record: list[tuple[int, int, Signal]] = []

    def on_connected(self) -> None:
        """Declare the placeholders."""
        self._say(self._policy.on_connected())

    def on_requested(self, stream_id: int, resource: Resource) -> None:
        """Say what changes; what is wanted for the stream itself goes with it, if it may."""
        changes = self._policy.on_requested(stream_id, resource)
        if self._signalling.goes_with_request:
            self._with_request[stream_id] = changes.pop()[1]
        self._say(changes)

    def on_changed(self, resource: Resource | None, change: Standing, now_ns: int) -> None:  # noqa: ARG002 - it takes the way up
        """Send a frame for each stream, and node of the tree, that is to stand elsewhere."""
        self._say(self._policy.on_changed(resource, change))

    def on_finished(self, stream_id: int) -> None:
        """Say what changes now that nothing waits for the stream."""
        self._say(self._policy.on_closed(stream_id))

    def on_request_arrived(self, stream_id: int, resource: Resource, now_ns: int) -> None:  # noqa: ARG002 - the request has said all
        """Deliver a request to the server, and what came with it."""
        self._apply(self._receiver.on_request(stream_id, self._with_request.get(stream_id)), now_ns)

    def on_message_arrived(self, number: int, now_ns: int) -> None:
        """Hand over what is in order now."""
        self._arrived.add(number)
        while self._n_heard in self._arrived:
            self._arrived.remove(self._n_heard)
            self._apply(self._receiver.on_message(*self._messages[self._n_heard]), now_ns)
            self._n_heard += 1

    def on_closed(self, stream_id: int, now_ns: int) -> None:  # noqa: ARG002 - nothing is recorded
        """Make the server forget the stream."""
        self._receiver.on_closed(stream_id)

    def _say(self, changes: Iterable[tuple[int, Signal]]) -> None:
        for change in changes:
            self._messages.append(_Message(*change))
            self._send_message(len(self._messages) - 1, self._signalling.message_bytes)

    def _apply(self, heard: Iterable[SchedulerUpdate], now_ns: int) -> None:
        for element_id, signal, opens in heard:
            self.record.append((now_ns, element_id, signal))
            if opens:
                self._streams.open(element_id, signal)
            else:
                self._streams.update(element_id, signal)
