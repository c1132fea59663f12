"""Both ends of HTTP above the transport: the browser that asks, the server that answers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from h3sim.browser import Due, ReplayBrowser
from h3sim.engine.kernel import Rank
from h3sim.schemes import make_policy
from h3sim.server import RETENTION_NS
from h3sim.trace import Request, SignalSent

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from h3sim.engine.kernel import Call, Kernel
    from h3sim.page import Page
    from h3sim.schemes import Scheme
    from h3sim.server import Server
    from h3sim.transport import Receiver

__all__ = ["STREAM_ID_STEP", "Application"]

STREAM_ID_STEP = 4
"""Client-initiated bidirectional streams are 0, 4, 8, ... (RFC 9000 § 2.1)."""


class Application:
    """A browser that loads *page* from a server that follows *scheme*.

    *send_request* is told the stream and the resource of a request that leaves; whoever carries it
    calls `on_request_arrived`. *on_response* is told that the server has something to send; what
    is handed over by *receiver* goes to `on_delivered`.
    """

    def __init__(
        self,
        page: Page,
        scheme: Scheme,
        *,
        kernel: Kernel,
        server: Server,
        receiver: Receiver,
        send_request: Callable[[int, int], None],
        on_response: Callable[[], None],
    ) -> None:
        self._page = page
        self._kernel = kernel
        self._server = server
        self._receiver = receiver
        self._send_request = send_request
        self._on_response = on_response
        self._browser = ReplayBrowser(page)
        self._policy = make_policy(scheme, page)
        self._asked: list[tuple[int, int]] = []
        self._arrived_at_ns: list[int | None] = []
        self._signals: list[SignalSent] = []
        self._when_due = (self._on_due,)
        self._when_ready = (self._on_ready,)
        self._when_closed = (self._on_closed,)

    @property
    def waiting(self) -> list[str]:
        """The ids of the resources that have not been delivered."""
        return self._browser.waiting

    @property
    def signals(self) -> tuple[SignalSent, ...]:
        """What the server was told, in that order."""
        return tuple(self._signals)

    def requests(self) -> tuple[Request, ...]:
        """Return the requests that reached the server, in the order made."""
        return tuple(
            Request(
                STREAM_ID_STEP * number,
                resource,
                requested_at_ns,
                arrived_at_ns,
                self._page.resources[resource].stream_bytes,
            )
            for number, ((resource, requested_at_ns), arrived_at_ns) in enumerate(
                zip(self._asked, self._arrived_at_ns, strict=True)
            )
            if arrived_at_ns is not None
        )

    def start(self, first_request_at_ns: int) -> None:
        """Open the placeholders, and ask for what is asked for whatever happens."""
        for element_id, signal in self._policy.on_connected():
            self._signals.append(SignalSent(0, element_id, signal))
            self._server.on_request(element_id, signal)
        self._ask(self._browser.on_navigation(first_request_at_ns))

    def on_delivered(self, stream_id: int, contiguous: int, now_ns: int) -> None:
        """Let the browser have *contiguous* bytes of a stream."""
        resource = self._asked[stream_id // STREAM_ID_STEP][0]
        self._ask(self._browser.on_delivered(resource, contiguous, now_ns))
        self._receiver.watch(stream_id, self._browser.watches(resource))
        if self._browser.is_done:
            self._kernel.stop()

    def on_request_arrived(self, stream_id: int, now_ns: int) -> None:
        """Let the server have a request, with what it says of priorities."""
        number = stream_id // STREAM_ID_STEP
        self._arrived_at_ns[number] = now_ns
        resource = self._page.resources[self._asked[number][0]]
        for element_id, signal in self._policy.on_requested(stream_id, resource):
            self._signals.append(SignalSent(now_ns, element_id, signal))
            if element_id == stream_id:
                self._server.on_request(element_id, signal)
            else:
                self._server.on_signal(element_id, signal)
        if resource.server_ns:
            self._kernel.after(resource.server_ns, Rank.RESPONSE, self._when_ready, stream_id)
        else:
            self._respond(stream_id)

    def close_drained(self) -> None:
        """Let streams that are done with leave the scheduler, a while from now."""
        for stream_id in self._server.drained:
            self._kernel.after(RETENTION_NS, Rank.CLOSE, self._when_closed, stream_id)
        self._server.drained.clear()

    def _ask(self, due: Iterable[Due]) -> None:
        for at_ns, resource in due:
            self._kernel.at(at_ns, Rank.REQUEST, self._when_due, resource)

    def _on_due(self, call: Call) -> None:
        resource: int = call.value
        now_ns = self._kernel.now_ns
        stream_id = STREAM_ID_STEP * len(self._asked)
        self._asked.append((resource, now_ns))
        self._arrived_at_ns.append(None)
        self._ask(self._browser.on_requested(resource, now_ns))
        self._receiver.watch(stream_id, self._browser.watches(resource))
        self._send_request(stream_id, resource)

    def _on_ready(self, call: Call) -> None:
        self._respond(call.value)

    def _respond(self, stream_id: int) -> None:
        resource = self._asked[stream_id // STREAM_ID_STEP][0]
        self._server.on_response(stream_id, self._page.resources[resource].stream_bytes)
        self.close_drained()
        self._on_response()

    def _on_closed(self, call: Call) -> None:
        stream_id: int = call.value
        self._server.on_closed(stream_id)
        for element_id, signal in self._policy.on_closed(stream_id):
            self._signals.append(SignalSent(self._kernel.now_ns, element_id, signal))
            self._server.on_signal(element_id, signal)
