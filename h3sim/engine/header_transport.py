"""Header compression between a load and what carries it: sections, and what waits for what."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from h3sim.engine.header_layer import HeaderLayer, is_critical
from h3sim.trace import PacketRows

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from h3sim.compression import HeaderCompression
    from h3sim.compression.header_run import HeaderRun
    from h3sim.engine.endpoint_transport import EndpointTransport
    from h3sim.engine.environment import LoadEnvironment
    from h3sim.engine.transport import Application, Carried
    from h3sim.http import SectionSender, StreamSender
    from h3sim.page import Page
    from h3sim.trace import Trace

__all__ = ["HeaderTransport"]


class HeaderTransport:
    """The `Transport` *inner* with headers compressed; for that one it is the application.

    A request reaches the server, and a response the browser, once its field section is decoded.
    The browser counts the bytes of a response from the end of its section on.
    """

    def __init__(
        self,
        environment: LoadEnvironment,
        inner: EndpointTransport,
        streams: SectionSender,
        page: Page,
        headers: HeaderCompression,
    ) -> None:
        self._environment = environment
        self._inner = inner
        self._page = page
        self.response_streams: StreamSender = streams
        self._streams = streams
        self._layer = HeaderLayer(page, headers, send_up=self._send_up, send_down=self._send_down)
        streams.take_sections(self._encode_response, self._layer.responses.on_acked)
        self._application: Application
        self._signals: list[Callable[[int], None]] = []
        """What the frames of the control stream are, as they were sent: what to do with each."""
        self._sizes: dict[int, int] = {}
        """What each part of an encoder or decoder stream has that has not come down."""
        self._watched: dict[int, int] = {}
        self._reached: dict[int, int] = {}
        """How far the responses have come that cannot be read yet."""
        self._section_came: set[int] = set()
        self._readable_at_ns: dict[int, int] = {}

    # What the application asks for

    def begin(self, application: Application) -> None:
        """Connect."""
        self._application = application
        self._inner.begin(self)

    def send_request(self, stream_id: int, n_bytes: int) -> None:
        """Send a request up: its section, whatever the page says that it takes."""
        del n_bytes
        # A request stream is drained once all of it was acknowledged: an encoder may refer to its
        # entries.
        for acked in self._inner.request_streams.take_drained():
            self._layer.requests.on_acked(acked)
        resource = self._application.resource_of(stream_id)
        self._inner.send_request(
            stream_id, self._layer.encode_request(stream_id, resource, self._environment.now_ns)
        )

    def send_signal(self, number: int, n_bytes: int) -> None:
        """Send a frame of the control stream up."""
        self._put_signal(partial(self._application.on_signal_arrived, number), n_bytes)

    def pump(self) -> None:
        """Send what the server's streams have now."""
        self._inner.pump()

    def watch(self, stream_id: int, n_bytes: int) -> None:
        """Report nothing of a response before *n_bytes* behind its section have been delivered."""
        self._watched[stream_id] = n_bytes
        if stream_id in self._readable_at_ns:
            self._inner.watch(stream_id, n_bytes + self._layer.responses.size(stream_id))

    def carried(self) -> Carried:
        """Return what happened to packets; nothing was delivered before it could be read."""
        carried = self._inner.carried()
        readable_at_ns = self._readable_at_ns
        rows = []
        for row in carried.packet_rows:
            *_sent, delivered_at_ns = row
            if is_critical(row[2]):
                continue
            if delivered_at_ns is not None and row[2] in readable_at_ns:
                row = (*row[:6], max(delivered_at_ns, readable_at_ns[row[2]]))
            rows.append(row)
        return carried._replace(packet_rows=PacketRows.of(rows))

    def with_sections(self, trace: Trace) -> Trace:
        """Return the trace with the lengths of responses as they were sent."""
        requests = tuple(map(self._layer.with_section, trace.requests))
        return replace(trace, requests=requests)

    def header_runs(self) -> tuple[HeaderRun, HeaderRun]:
        """Return what came of the sections of requests, and of responses."""
        return self._layer.requests.run, self._layer.responses.run

    # What the transport tells

    def on_connected(self, now_ns: int) -> None:
        """Send requests."""
        self._application.on_connected(now_ns)

    def on_request_arrived(self, stream_id: int, now_ns: int) -> None:
        """Take in the section of a request; the server gets what it can read now."""
        self._answer(self._layer.requests.on_section(stream_id, now_ns), now_ns)

    def on_signal_arrived(self, number: int, now_ns: int) -> None:
        """Take in a frame of the client."""
        self._signals[number](now_ns)

    def on_delivered(self, stream_id: int, contiguous: int, now_ns: int) -> None:
        """Take in bytes of the server; the browser gets what it can read now."""
        if is_critical(stream_id):
            # A copy of a part that came before has no size any more, and is passed by.
            if contiguous >= self._sizes.get(stream_id, contiguous + 1):
                del self._sizes[stream_id]
                self._release(self._layer.on_critical(stream_id, now_ns), now_ns)
            return
        size = self._layer.responses.size(stream_id)
        if stream_id in self._readable_at_ns:
            self._application.on_delivered(stream_id, contiguous - size, now_ns)
            return
        self._reached[stream_id] = contiguous
        if stream_id not in self._section_came:
            self._section_came.add(stream_id)
            self._release(self._layer.responses.on_section(stream_id, now_ns), now_ns)

    def on_drained(self) -> None:
        """Record that streams of the server are done with."""
        self._application.on_drained()

    def resource_of(self, stream_id: int) -> int:
        """Return the index of the resource that a stream carries."""
        return self._application.resource_of(stream_id)

    # In between

    def _encode_response(self, stream_id: int) -> int:
        resource, now_ns = self.resource_of(stream_id), self._environment.now_ns
        size = self._layer.encode_response(stream_id, resource, now_ns)
        self._inner.watch(stream_id, size)
        return size

    def _release(self, readable: Iterable[int], now_ns: int) -> None:
        for stream_id in readable:
            self._readable_at_ns[stream_id] = now_ns
            watched = self._watched.get(stream_id, 0)
            # Only now: how long the section is counts in what the transport is to watch for.
            self.watch(stream_id, watched)
            body_bytes = self._reached.pop(stream_id, 0) - self._layer.responses.size(stream_id)
            if body_bytes >= watched:
                self._application.on_delivered(stream_id, body_bytes, now_ns)

    def _answer(self, readable: Iterable[int], now_ns: int) -> None:
        for stream_id in readable:
            self._application.on_request_arrived(stream_id, now_ns)

    def _send_up(self, stream_id: int, n_bytes: int) -> None:
        """Send a part of an encoder or decoder stream up."""

        def arrive(now_ns: int) -> None:
            self._answer(self._layer.on_critical(stream_id, now_ns), now_ns)

        self._put_signal(arrive, n_bytes)

    def _put_signal(self, arrive: Callable[[int], None], n_bytes: int) -> None:
        self._signals.append(arrive)
        self._inner.send_signal(len(self._signals) - 1, n_bytes)

    def _send_down(self, stream_id: int, n_bytes: int) -> None:
        """Send a part of an encoder or decoder stream down."""
        self._sizes[stream_id] = n_bytes
        self._streams.on_critical(stream_id, n_bytes)
        self._inner.pump()
