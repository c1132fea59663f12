"""Header compression in a load: field sections between the load and its transport.

An endpoint carries numbers of bytes rather than bytes. So the content of a stream of header
compression is kept here, by stream, until all of it has arrived.
"""

from __future__ import annotations

import itertools
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from h3sim.headers import DecodingEnd, EncodingEnd, field_bytes, make_codec
from h3sim.headers.base import HeaderRun, SectionTimes
from h3sim.headers.synthetic_headers import request_section, response_section
from h3sim.trace import PacketRows
from h3sim.values.constants import STREAM_ID_STEP

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from h3sim.engine.endpoints import EndpointTransport
    from h3sim.engine.environment import LoadEnvironment
    from h3sim.engine.transport import Application, Transport, TransportTrace
    from h3sim.headers import FieldSection, HeaderCompression, StreamPart
    from h3sim.http import SectionSender, StreamSender
    from h3sim.page import Page
    from h3sim.trace import Request, Trace


if TYPE_CHECKING:
    _OnArrival = Callable[[StreamPart, int], list[int]]
    """A callback for a part that arrived, and its time."""


_CRITICAL = 3
"""The stream ID of header compression streams, modulo 4. Each part of one is a stream of its own
here: parts are put in order on arrival."""


_MAX_SHARED_BYTES = 1000
"""Sections up to this size share a packet with the next one: the smallest datagram of QUIC is 1200
bytes (RFC 9000 § 14.1), and frame headers take some of it."""


def is_critical(stream_id: int) -> bool:
    """Return whether the stream is a part of an encoder or decoder stream."""
    return stream_id % STREAM_ID_STEP == _CRITICAL


def without_headers(page: Page) -> Page:
    """Return the page as a browser counts its bytes if sections come from a codec."""
    return replace(
        page, resources=tuple(replace(entry, header_bytes=0) for entry in page.resources)
    )


class _Direction:
    """The field sections of one direction: the encoder at one end, the decoder at the other.

    *send* takes a part of the encoder stream, *send_back* one of the decoder stream, each with a
    callback for its arrival. Up to *shared_bytes* of sections go into one packet.
    """

    def __init__(
        self,
        headers: HeaderCompression,
        send: Callable[[StreamPart, _OnArrival], None],
        send_back: Callable[[StreamPart, _OnArrival], None],
        *,
        shared_bytes: int,
    ) -> None:
        encoder, decoder = make_codec(headers.codec, headers.settings)
        self._sender, self._receiver = EncodingEnd(encoder), DecodingEnd(decoder)
        self._blocks = headers.blocks
        """True if a stream waits until its section is decoded; otherwise waits are only counted."""
        self._send, self._send_back = send, send_back
        self._sections: dict[int, StreamPart] = {}
        """The encoded section of each stream."""
        self._times: dict[int, SectionTimes] = {}
        """Times when the section of each stream was encoded, arrived and was decoded."""
        self._shared_bytes = shared_bytes
        # The packet that sections share at the moment: its time, and the bytes in it.
        self._packet_at_ns: int | None = None
        self._packet_bytes = 0
        self.run = HeaderRun()
        """The statistics so far."""

    def size(self, stream_id: int) -> int:
        """Return the size of the section of a stream, once it is encoded."""
        return len(self._sections[stream_id].data)

    def encode(self, stream_id: int, fields: FieldSection, now_ns: int) -> int:
        """Encode a section, and send its instructions first; return its size."""
        self._note_packet(now_ns)
        *instructions, section = self._sender.encode(stream_id, fields)
        self.run.n_evicted = self._sender.encoder.n_evicted
        # Instructions first: the section may refer to the entries that they insert, and a decoder
        # without them is blocked (RFC 9204 § 2.1.2).
        for part in instructions:
            self._send(part, self._deliver)
            self.run.n_bytes += len(part.data)
        self._packet_bytes += len(section.data)
        self._sections[stream_id] = section
        self._times[stream_id] = SectionTimes(now_ns)
        self.run.sections.append(self._times[stream_id])
        self.run.n_bytes += len(section.data)
        self.run.uncompressed_bytes += field_bytes(fields)
        return len(section.data)

    def _note_packet(self, now_ns: int) -> None:
        """Report packet boundaries to the encoder.

        Requests of one instant share a packet, as far as they fit; a response is followed by its
        body.
        """
        is_full = self._packet_bytes > self._shared_bytes
        if is_full or now_ns != self._packet_at_ns:
            self._packet_at_ns, self._packet_bytes = now_ns, 0
            self._sender.encoder.on_packet_boundary()

    def on_section(self, stream_id: int, now_ns: int) -> list[int]:
        """Record that a section arrived; return the streams that can be read now."""
        self._times[stream_id].arrived_at_ns = now_ns
        readable = self._deliver(self._sections[stream_id], now_ns)
        return readable if self._blocks else [stream_id]

    def on_acked(self, stream_id: int) -> None:
        """Record that a section was acknowledged."""
        self._sender.encoder.on_acked(stream_id)

    def _deliver(self, part: StreamPart, now_ns: int) -> list[int]:
        """Decode the sections that *part* completes; return the streams that can be read now."""
        decoded = self._receiver.deliver(part)
        for stream_id, _ in decoded:
            self._times[stream_id].decoded_at_ns = now_ns
        self.run.note_held(self._receiver.decoder.held)
        feedback = self._receiver.take_feedback()
        if feedback is not None:
            self._send_back(feedback, self._on_feedback)
        return [stream_id for stream_id, _ in decoded] if self._blocks else []

    def _on_feedback(self, part: StreamPart, _now_ns: int) -> list[int]:
        """Process a part of the decoder stream, which makes no section readable."""
        self._sender.on_feedback(part)
        return []


class HeaderLayer:
    """Both directions of a connection over which *page* is loaded.

    *send_up* and *send_down* are called with the stream and the size of encoder or decoder
    instructions; `on_critical` is to be called when these have arrived completely.
    """

    def __init__(
        self,
        page: Page,
        headers: HeaderCompression,
        *,
        send_up: Callable[[int, int], None],
        send_down: Callable[[int, int], None],
    ) -> None:
        self._page = page
        self._lists = headers.lists
        self._part_stream_ids = itertools.count(_CRITICAL, STREAM_ID_STEP)
        self._under_way: dict[int, Callable[[int], list[int]]] = {}
        """The function to call with the time when a part has arrived, by its stream."""
        up, down = partial(self._send_part, send_up), partial(self._send_part, send_down)
        self.requests = _Direction(headers, up, down, shared_bytes=_MAX_SHARED_BYTES)
        self.responses = _Direction(headers, down, up, shared_bytes=0)

    def encode_request(self, stream_id: int, resource: int, now_ns: int) -> int:
        """Encode the request for a resource; return the size of its section."""
        if self._lists is None:
            fields = request_section(self._page, self._page.resources[resource])
        else:
            fields, _ = self._lists[resource]
        return self.requests.encode(stream_id, fields, now_ns)

    def encode_response(self, stream_id: int, resource: int, now_ns: int) -> int:
        """Encode the section of a response; return its size."""
        if self._lists is None:
            fields = response_section(self._page.resources[resource])
        else:
            _, fields = self._lists[resource]
        return self.responses.encode(stream_id, fields, now_ns)

    def on_critical(self, stream_id: int, now_ns: int) -> list[int]:
        """Process a part of an encoder or decoder stream; return the streams readable now."""
        on_arrived = self._under_way.pop(stream_id)
        return on_arrived(now_ns)

    def with_section(self, request: Request) -> Request:
        """Return the request with the actual length of its response."""
        n_bytes = self.responses.size(request.stream_id)
        return request._replace(length_bytes=request.length_bytes + n_bytes)

    def _send_part(
        self,
        send: Callable[[int, int], None],
        part: StreamPart,
        arrive: _OnArrival,
    ) -> None:
        """Send *part* as a message; *arrive* is called with it at the other end."""
        stream_id = next(self._part_stream_ids)
        self._under_way[stream_id] = partial(arrive, part)
        send(stream_id, len(part.data))


class HeaderTransport:
    """The `Transport` *inner* with header compression; it is the application of *inner*.

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
        self.response_streams: StreamSender = streams
        self._streams = streams
        self._layer = HeaderLayer(page, headers, send_up=self._send_up, send_down=self._send_down)
        streams.take_sections(self._encode_response, self._layer.responses.on_acked)
        self._application: Application
        self._signals: list[Callable[[int], None]] = []
        """The actions on arrival of the frames of the control stream, in the order sent."""
        self._watched_bytes: dict[int, int] = {}
        """The threshold of `watch` per response, in bytes after its section."""
        self._received_bytes: dict[int, int] = {}
        """The received bytes of responses that are not readable yet."""
        self._section_arrived: set[int] = set()
        """The responses whose sections have arrived, decoded or not."""
        self._readable_at_ns: dict[int, int] = {}
        """Time when the section of each response was decoded."""

    # Calls of the application

    def begin(self, application: Application) -> None:
        """Connect; callbacks pass through here, and wait until a section is decoded."""
        self._application = application
        self._inner.begin(self)

    def send_request(self, stream_id: int, n_bytes: int) -> None:
        """Send a request upstream, with the size of its encoded section."""
        del n_bytes
        # A request stream is drained once it was fully acknowledged: then an encoder may refer to
        # its entries.
        for acked in self._inner.request_streams.take_drained():
            self._layer.requests.on_acked(acked)
        resource = self._application.resource_of(stream_id)
        self._inner.send_request(
            stream_id, self._layer.encode_request(stream_id, resource, self._environment.now_ns)
        )

    def send_signal(self, number: int, n_bytes: int) -> None:
        """Send a frame of the control stream upstream."""
        self._send_on_control_stream(partial(self._application.on_signal_arrived, number), n_bytes)

    def pump(self) -> None:
        """Send the waiting data of the server's streams."""
        self._inner.pump()

    def watch(self, stream_id: int, n_bytes: int) -> None:
        """Suppress reports of a response until *n_bytes* after its section have been delivered."""
        self._watched_bytes[stream_id] = n_bytes
        if stream_id in self._readable_at_ns:
            self._inner.watch(stream_id, n_bytes + self._layer.responses.size(stream_id))

    def carried(self) -> TransportTrace:
        """Return the recorded packets; nothing was delivered before it could be read."""
        carried = self._inner.carried()
        readable_at_ns = self._readable_at_ns
        rows = []
        for row in carried.packet_rows:
            sent_at_ns, arrived_at_ns, stream_id, offset, n_bytes, number, delivered_at_ns = row
            if is_critical(stream_id):
                continue
            # Body bytes are of no use before the headers: both have to be there.
            if delivered_at_ns is not None and stream_id in readable_at_ns:
                delivered_at_ns = max(delivered_at_ns, readable_at_ns[stream_id])
            rows.append(
                (sent_at_ns, arrived_at_ns, stream_id, offset, n_bytes, number, delivered_at_ns)
            )
        return carried._replace(packet_rows=PacketRows.of(rows))

    def with_sections(self, trace: Trace) -> Trace:
        """Return the trace with the actual lengths of responses."""
        requests = tuple(map(self._layer.with_section, trace.requests))
        return replace(trace, requests=requests)

    def header_runs(self) -> tuple[HeaderRun, HeaderRun]:
        """Return the statistics of the sections of requests, and of responses."""
        return self._layer.requests.run, self._layer.responses.run

    # Callbacks of the transport

    def on_connected(self, now_ns: int) -> None:
        """Send requests."""
        self._application.on_connected(now_ns)

    def on_request_arrived(self, stream_id: int, now_ns: int) -> None:
        """Process the section of a request; the server gets the requests readable now."""
        self._forward_requests(self._layer.requests.on_section(stream_id, now_ns), now_ns)

    def on_signal_arrived(self, number: int, now_ns: int) -> None:
        """Process a frame of the client."""
        self._signals[number](now_ns)

    def on_delivered(self, stream_id: int, contiguous: int, now_ns: int) -> None:
        """Process bytes of the server; the browser receives those that can be read now."""
        if is_critical(stream_id):
            # Watched up to its end: it is reported once, when it is complete.
            self._release(self._layer.on_critical(stream_id, now_ns), now_ns)
            return
        size = self._layer.responses.size(stream_id)
        if stream_id in self._readable_at_ns:
            self._application.on_delivered(stream_id, contiguous - size, now_ns)
            return
        self._received_bytes[stream_id] = contiguous
        if stream_id not in self._section_arrived:
            self._section_arrived.add(stream_id)
            self._release(self._layer.responses.on_section(stream_id, now_ns), now_ns)

    def on_drained(self) -> None:
        """Report that streams of the server are drained."""
        self._application.on_drained()

    def resource_of(self, stream_id: int) -> int:
        """Return the index of the resource that a stream carries."""
        return self._application.resource_of(stream_id)

    # Internals

    def _encode_response(self, stream_id: int) -> int:
        """Encode the section of a response that may be sent now; return its size."""
        resource, now_ns = self.resource_of(stream_id), self._environment.now_ns
        size = self._layer.encode_response(stream_id, resource, now_ns)
        # Nothing can be decoded of a section before its end, so earlier bytes need no event.
        self._inner.watch(stream_id, size)
        return size

    def _release(self, readable: Iterable[int], now_ns: int) -> None:
        """Report the body bytes that waited for their field sections."""
        for stream_id in readable:
            self._readable_at_ns[stream_id] = now_ns
            watched = self._watched_bytes[stream_id]
            # Only now is the length of the section known, which adds to the threshold.
            self.watch(stream_id, watched)
            body_bytes = self._received_bytes.pop(stream_id) - self._layer.responses.size(stream_id)
            if body_bytes >= watched:
                self._application.on_delivered(stream_id, body_bytes, now_ns)

    def _forward_requests(self, readable: Iterable[int], now_ns: int) -> None:
        """Report to the server the requests whose sections are decoded."""
        for stream_id in readable:
            self._application.on_request_arrived(stream_id, now_ns)

    def _send_up(self, stream_id: int, n_bytes: int) -> None:
        """Send a part of an encoder or decoder stream upstream."""

        def arrive(now_ns: int) -> None:
            self._forward_requests(self._layer.on_critical(stream_id, now_ns), now_ns)

        self._send_on_control_stream(arrive, n_bytes)

    def _send_on_control_stream(self, arrive: Callable[[int], None], n_bytes: int) -> None:
        """Send a frame upstream; *arrive* is called with the time of its arrival."""
        self._signals.append(arrive)
        self._inner.send_signal(len(self._signals) - 1, n_bytes)

    def _send_down(self, stream_id: int, n_bytes: int) -> None:
        """Send a part of an encoder or decoder stream downstream."""
        self._inner.watch(stream_id, n_bytes)
        # It leaves with what follows: the answer to a packet of the client, or a response.
        self._streams.on_critical(stream_id, n_bytes)


def with_header_sections(
    transport: Transport, trace: Trace
) -> tuple[Trace, tuple[HeaderRun, HeaderRun] | None]:
    """Return the trace with actual lengths of responses, and the statistics of their sections."""
    if not isinstance(transport, HeaderTransport):
        return trace, None
    return transport.with_sections(trace), transport.header_runs()


def sum_header_runs(runs: Sequence[tuple[HeaderRun, HeaderRun]]) -> tuple[HeaderRun, HeaderRun]:
    """Return the header statistics of requests, and of responses, on all connections."""
    requests, responses = zip(*runs, strict=True)
    return HeaderRun.over(requests), HeaderRun.over(responses)
