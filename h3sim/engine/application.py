"""Both ends of HTTP above the transport: the browser that asks, the server that answers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from h3sim.browser import BrowserModel, make_browser
from h3sim.engine.kernel import Rank
from h3sim.engine.signalling import OracleSignalling, WireSignalling
from h3sim.http import RETENTION_NS
from h3sim.schemes import make_policy
from h3sim.trace import Request

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from h3sim.browser import ScheduledRequest
    from h3sim.engine.kernel import Call, Kernel
    from h3sim.engine.signalling import Signals
    from h3sim.http import StreamSender
    from h3sim.page import Page
    from h3sim.schemes import Scheme
    from h3sim.trace import Activity, Receiver, SignalSent

__all__ = ["STREAM_ID_STEP", "Application"]

STREAM_ID_STEP = 4
"""Client-initiated bidirectional streams are 0, 4, 8, ... (RFC 9000 § 2.1)."""


class Application:
    """A browser that loads *page* from a server that follows *scheme*.

    *send_request* is told the stream and the resource of a request that leaves, *send_message* the
    number and the size of a frame on the control stream; whoever carries them calls
    `on_request_arrived` and `on_message_arrived`. *on_response* is told that the server has
    something to send; what is delivered by *receiver* goes to `on_delivered`.
    """

    def __init__(
        self,
        page: Page,
        scheme: Scheme,
        *,
        kernel: Kernel,
        server: StreamSender,
        receiver: Receiver,
        send_request: Callable[[int, int], None],
        send_message: Callable[[int, int], None],
        on_response: Callable[[], None],
        browser: BrowserModel,
    ) -> None:
        self._page = page
        self._kernel = kernel
        self._server = server
        self._receiver = receiver
        self._send_request = send_request
        self._on_response = on_response
        self._browser = make_browser(page, browser)
        policy = make_policy(scheme, page)
        self._signals: Signals = OracleSignalling(policy, server)
        if scheme.signalling.is_sent:
            self._signals = WireSignalling(
                policy,
                server,
                scheme.signalling,
                send_message,
                default_weight=scheme.mechanism.weights.default,
            )
        self._asked: list[tuple[int, int]] = []
        self._arrived_at_ns: list[int | None] = []
        self._finished: set[int] = set()
        self._when_connected = (self._on_connected,)
        self._when_due = (self._on_due,)
        self._when_woken = (self._on_woken,)
        self._when_ready = (self._on_ready,)
        self._when_closed = (self._on_closed,)

    @property
    def waiting(self) -> list[str]:
        """The ids of the resources that have not been delivered."""
        return self._browser.waiting

    @property
    def signals(self) -> tuple[SignalSent, ...]:
        """What the server was told, in that order."""
        return tuple(self._signals.record)

    @property
    def activities(self) -> tuple[Activity, ...]:
        """What the browser did, if it computed that."""
        return self._browser.activities

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
        self._kernel.at(first_request_at_ns, Rank.REQUEST, self._when_connected, None)
        self._ask(self._browser.on_navigation(first_request_at_ns))

    def on_delivered(self, stream_id: int, contiguous: int, now_ns: int) -> None:
        """Let the browser have *contiguous* bytes of a stream."""
        resource = self._asked[stream_id // STREAM_ID_STEP][0]
        self._ask(self._browser.on_delivered(resource, contiguous, now_ns))
        self._receiver.watch(stream_id, self._browser.next_offset(resource))
        if contiguous >= self._page.resources[resource].stream_bytes:
            self._on_finished(stream_id)
        if self._browser.is_done:
            self._kernel.stop()

    def on_request_arrived(self, stream_id: int, now_ns: int) -> None:
        """Let the server have a request, with what it says of priorities."""
        number = stream_id // STREAM_ID_STEP
        self._arrived_at_ns[number] = now_ns
        resource = self._page.resources[self._asked[number][0]]
        self._signals.on_request_arrived(stream_id, resource, now_ns)
        if resource.server_ns:
            self._kernel.after(resource.server_ns, Rank.RESPONSE, self._when_ready, stream_id)
        else:
            self._respond(stream_id)

    def on_message_arrived(self, number: int, now_ns: int) -> None:
        """Let the server have a frame of the control stream."""
        self._signals.on_message_arrived(number, now_ns)

    def close_drained(self) -> None:
        """Let streams that are done with leave the scheduler, a while from now."""
        for stream_id in self._server.drained:
            self._kernel.after(RETENTION_NS, Rank.CLOSE, self._when_closed, stream_id)
        self._server.drained.clear()

    def _on_finished(self, stream_id: int) -> None:
        if stream_id not in self._finished:
            self._finished.add(stream_id)
            self._signals.on_finished(stream_id)

    def _ask(self, due: Iterable[ScheduledRequest]) -> None:
        for at_ns, resource in due:
            when = self._when_woken if resource is None else self._when_due
            self._kernel.at(at_ns, Rank.REQUEST, when, resource)

    def _on_connected(self, call: Call) -> None:
        del call
        self._signals.on_connected()

    def _on_due(self, call: Call) -> None:
        resource: int = call.value
        now_ns = self._kernel.now_ns
        stream_id = STREAM_ID_STEP * len(self._asked)
        self._asked.append((resource, now_ns))
        self._arrived_at_ns.append(None)
        self._ask(self._browser.on_requested(resource, now_ns))
        self._receiver.watch(stream_id, self._browser.next_offset(resource))
        self._signals.on_requested(stream_id, self._page.resources[resource])
        self._send_request(stream_id, resource)

    def _on_woken(self, call: Call) -> None:
        del call
        self._ask(self._browser.on_wake(self._kernel.now_ns))
        if self._browser.is_done:
            self._kernel.stop()

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
        self._signals.on_closed(stream_id, call.at_ns)
