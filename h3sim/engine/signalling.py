"""Signals from the client's policy and from the server itself to the server's scheduler."""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple, Protocol

from h3sim import http
from h3sim._mypyc import mypyc_attr
from h3sim.http import PriorityReceiver
from h3sim.page import AS_WRITTEN
from h3sim.signals import DEFAULT_WEIGHT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from h3sim.http import ByteThresholds, SchedulerUpdate, StreamSender
    from h3sim.page import Page, Resource, ResourceState, ServerPriority
    from h3sim.schemes import Policy, Scheme
    from h3sim.signals import Signal, Signalling


class PriorityTarget(Protocol):
    """Who is told what the server heard: its streams, or what stands before them."""

    def open(self, stream_id: int, signal: Signal, /) -> None:
        """Take up a stream or placeholder."""

    def update(self, element_id: int, signal: Signal, /) -> None:
        """Replace the signal by *signal*."""


@mypyc_attr(allow_interpreted_subclasses=True)
class PrioritySignalling:
    """What the application tells; the client's side first, then the server's."""

    record: list[tuple[int, int, Signal]]
    """What the server learnt, in that order: the fields of `SignalSent`, which cost more to name
    than to write down."""

    def on_connected(self) -> None:
        """Say what holds before any request."""
        raise NotImplementedError

    def on_requested(self, stream_id: int, resource: Resource) -> None:
        """Say what is wanted for a request that leaves now."""
        raise NotImplementedError

    def on_changed(self, resource: Resource | None, change: ResourceState, now_ns: int) -> None:
        """Tell the client more of a resource, or of all; say what follows for open streams."""
        raise NotImplementedError

    def on_finished(self, stream_id: int) -> None:
        """Record that the client has all of a response."""
        raise NotImplementedError

    def on_request_arrived(self, stream_id: int, resource: Resource, now_ns: int) -> None:
        """Deliver a request to the server."""
        raise NotImplementedError

    def on_message_arrived(self, number: int, now_ns: int) -> None:
        """Deliver a frame of the control stream, the *number*-th that was sent, to the server."""
        raise NotImplementedError

    def on_closed(self, stream_id: int, now_ns: int) -> None:
        """Record that a stream left the scheduler."""
        raise NotImplementedError


class OracleSignalling(PrioritySignalling):
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

    def on_changed(self, resource: Resource | None, change: ResourceState, now_ns: int) -> None:
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


class MetadataSignalling(OracleSignalling):
    """The client says what a request is for; the server works priorities out (Marx 2019 § 6).

    The client has announced *scheme* with the handshake, so the server has it before any request. A
    request says what the scheme's rules ask for, as far as it is known when it leaves. What becomes
    known of an open stream is a frame; one for the whole tab, if that is what changes. No stream is
    named as another's parent: one that is late keeps no other from its place. *send_message* is
    told the number of a frame and its size.
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
        super().__init__(policy, streams)
        self._updates = scheme.updates
        self._message_bytes = message_bytes
        self._send_message = send_message
        # The client's
        self._known: dict[str | None, ResourceState] = {}
        """What has become known of resources by their ids, and of all of them (None)."""
        self._open: dict[int, str] = {}
        self._messages: list[tuple[Resource | None, ResourceState]] = []
        """The frames: what has become known of a resource, or of all."""
        # The server's
        self._order = InOrder()
        self._early: dict[str, ResourceState] = {}
        """What frames said of resources."""
        self._said: dict[int, ResourceState] = {}
        """What each request says besides what the page file has."""

    def on_requested(self, stream_id: int, resource: Resource) -> None:
        """Send along what is known of the resource."""
        of_all = self._known.get(None, AS_WRITTEN)
        self._said[stream_id] = of_all.after(self._known.get(resource.id, AS_WRITTEN))
        self._open[stream_id] = resource.id

    def on_changed(self, resource: Resource | None, change: ResourceState, now_ns: int) -> None:  # noqa: ARG002 - it takes the way up
        """Send a frame where a stream is open that it is about."""
        id_ = None if resource is None else resource.id
        self._known[id_] = self._known.get(id_, AS_WRITTEN).after(change)
        is_open = bool(self._open) if id_ is None else id_ in self._open.values()
        if is_open and change.tells(self._updates):
            self._messages.append((resource, change))
            self._send_message(len(self._messages) - 1, self._message_bytes)

    def on_finished(self, stream_id: int) -> None:
        """Forget a stream of which nothing is left to say."""
        del self._open[stream_id]

    def on_request_arrived(self, stream_id: int, resource: Resource, now_ns: int) -> None:
        """Let the server work out what a request is to have, by what it says of itself."""
        said = self._said.pop(stream_id)
        if said is not AS_WRITTEN:
            self._learn(resource, said.after(self._early.get(resource.id, AS_WRITTEN)), now_ns)
        super().on_request_arrived(stream_id, resource, now_ns)

    def on_message_arrived(self, number: int, now_ns: int) -> None:
        """Let the server take in what is in order now."""
        for index in self._order.on_arrived(number):
            resource, change = self._messages[index]
            if resource is not None:
                known = self._early.get(resource.id, AS_WRITTEN)
                self._early[resource.id] = known.after(change)
            self._learn(resource, change, now_ns)

    def _learn(self, resource: Resource | None, change: ResourceState, now_ns: int) -> None:
        super().on_changed(resource, change, now_ns)


class InOrder:
    """Puts numbers into their order, in whatever order they come.

    >>> order = InOrder()
    >>> [*order.on_arrived(1)], [*order.on_arrived(0)]
    ([], [0, 1])
    """

    def __init__(self) -> None:
        self._arrived: set[int] = set()
        self._n_passed = 0

    def on_arrived(self, number: int) -> Iterator[int]:
        """Yield those whose turn it is now."""
        self._arrived.add(number)
        while self._n_passed in self._arrived:
            self._arrived.remove(self._n_passed)
            self._n_passed += 1
            yield self._n_passed - 1


class _Message(NamedTuple):
    """A frame of the control stream."""

    element_id: int
    signal: Signal


class WireSignalling(PrioritySignalling):
    """The client says what it wants, with the request or on the control stream.

    *send_message* is told the number of a frame and its size. Frames may arrive in any order; the
    control stream delivers them in the order in which they were sent. *default_weight* is that of
    what has not been spoken of.
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
    ) -> None:
        self._policy = policy
        self._streams = streams
        self._message_bytes = message_bytes
        self._send_message = send_message
        self._receiver = PriorityReceiver(signalling, default_weight=default_weight)
        self._goes_with_request = signalling.goes_with_request
        self._with_request: dict[int, Signal] = {}
        self._messages: list[_Message] = []
        self._order = InOrder()
        self.record: list[tuple[int, int, Signal]] = []

    def on_connected(self) -> None:
        """Declare the placeholders."""
        self._say(self._policy.on_connected())

    def on_requested(self, stream_id: int, resource: Resource) -> None:
        """Say what changes; what is wanted for the stream itself goes with it, if it may."""
        changes = self._policy.on_requested(stream_id, resource)
        if self._goes_with_request:
            # The policy says last what is wanted for the stream itself.
            self._with_request[stream_id] = changes.pop()[1]
        if changes:
            self._say(changes)

    def on_changed(self, resource: Resource | None, change: ResourceState, now_ns: int) -> None:  # noqa: ARG002 - it takes the way up
        """Send a frame for each stream, and node of the tree, that is to stand elsewhere."""
        self._say(self._policy.on_changed(resource, change))

    def on_finished(self, stream_id: int) -> None:
        """Say what changes now that nothing waits for the stream."""
        changes = self._policy.on_closed(stream_id)
        if changes:
            self._say(changes)

    def on_request_arrived(self, stream_id: int, resource: Resource, now_ns: int) -> None:  # noqa: ARG002 - the request has said all
        """Deliver a request to the server, and what came with it."""
        signal = self._with_request.pop(stream_id, None)
        self._apply(self._receiver.on_request(stream_id, signal), now_ns)

    def on_message_arrived(self, number: int, now_ns: int) -> None:
        """Deliver what is in order now."""
        for index in self._order.on_arrived(number):
            self._apply(self._receiver.on_message(*self._messages[index]), now_ns)

    def on_closed(self, stream_id: int, now_ns: int) -> None:  # noqa: ARG002 - nothing is recorded
        """Make the server forget the stream."""
        self._receiver.on_closed(stream_id)

    def _say(self, changes: Iterable[tuple[int, Signal]]) -> None:
        for change in changes:
            self._messages.append(_Message(*change))
            self._send_message(len(self._messages) - 1, self._message_bytes)

    def _apply(self, heard: Iterable[SchedulerUpdate], now_ns: int) -> None:
        for element_id, signal, opens in heard:
            self.record.append((now_ns, element_id, signal))
            if opens:
                self._streams.open(element_id, signal)
            else:
                self._streams.update(element_id, signal)


_SERVER_PRIORITIES = attrgetter("server_priorities")


def has_server_priorities(page: Page, scheme: Scheme) -> bool:
    """Return whether the server has a word of its own: most loads have none, and pay nothing."""
    return (
        scheme.doubts_clients or bool(scheme.hints) or any(map(_SERVER_PRIORITIES, page.resources))
    )


def has_marks(page: Page, scheme: Scheme) -> bool:
    """Return whether it says something once so many bytes of a response were given out."""
    return has_server_priorities(page, scheme) and any(
        word.after_bytes for resource in page.resources for word in scheme.said_by_server(resource)
    )


class ServerPriorityPolicy:
    """Tells the scheduler what the client wants, the origin says, or the server makes of both.

    A response's own word is merged with the client's (RFC 9218 § 8) when the response is ready,
    or once so many bytes of it were given out. What a client says later replaces both (§ 7). A
    server that doubts clients goes by types once advice looks bad.
    """

    def __init__(
        self,
        streams: StreamSender,
        scheme: Scheme,
        *,
        resource_of: Callable[[int], Resource],
        now_ns: Callable[[], int],
        marks: ByteThresholds | None,
    ) -> None:
        self._streams = streams
        self._scheme = scheme
        self._resource_of = resource_of
        self._now_ns = now_ns
        self._marks = marks
        self._wanted: dict[int, Signal] = {}
        self._judge = http.ClientPriorityValidator() if scheme.doubts_clients else None
        self.record: list[tuple[int, int, Signal]] = []
        """What it told the scheduler of its own accord, as `PrioritySignalling.record` has it."""

    def open(self, element_id: int, signal: Signal) -> None:
        """Take up a stream or placeholder that the client asks for."""
        self._wanted[element_id] = signal
        self._streams.open(element_id, signal)
        if self._judge is not None and element_id >= 0:
            kind = self._resource_of(element_id).kind
            for changed, ruled in self._judge.on_open(element_id, kind, signal):
                self._say(changed, ruled)

    def update(self, element_id: int, signal: Signal) -> None:
        """Record that the client wants something else."""
        ruled = None if self._judge is None else self._judge.on_update(element_id, signal)
        if ruled is None:
            self._wanted[element_id] = signal
            self._streams.update(element_id, signal)
            return
        for changed, instead in ruled:
            self._say(changed, instead)

    def on_response(self, stream_id: int) -> None:
        """Record that a response is ready, with what the origin says of it."""
        for word in self._scheme.said_by_server(self._resource_of(stream_id)):
            if not word.after_bytes:
                self._merge(stream_id, word)
            elif self._marks is not None:
                self._merge_later(stream_id, word, self._marks)

    def on_closed(self, stream_id: int) -> None:
        """Forget a stream."""
        self._wanted.pop(stream_id, None)
        if self._judge is not None:
            self._judge.on_closed(stream_id)

    def _merge(self, stream_id: int, word: ServerPriority) -> None:
        merged = word.merged_with(self._wanted[stream_id])
        # A word that changes nothing is no signal, neither for the scheduler nor in the trace.
        if merged != self._wanted[stream_id]:
            self._say(stream_id, merged)

    def _merge_later(self, stream_id: int, word: ServerPriority, marks: ByteThresholds) -> None:
        marks.watch(stream_id, word.after_bytes, lambda: self._merge(stream_id, word))

    def _say(self, element_id: int, signal: Signal) -> None:
        self._wanted[element_id] = signal
        self.record.append((self._now_ns(), element_id, signal))
        self._streams.update(element_id, signal)
