"""Header compression in a load: what sections take, what waits for what, and who tells whom.

An endpoint carries numbers of bytes and not bytes. So what a stream of header compression says is
kept here, by its stream, until all of it has arrived.
"""

from __future__ import annotations

import itertools
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from h3sim.compression import DecodingEnd, EncodingEnd, field_bytes, make_codec
from h3sim.compression.header_run import HeaderRun, SectionTimes
from h3sim.compression.page_sections import request_section, response_section
from h3sim.protocol import STREAM_ID_STEP

if TYPE_CHECKING:
    from collections.abc import Callable

    from h3sim.compression import FieldSection, HeaderCompression, StreamPart
    from h3sim.page import Page
    from h3sim.trace import Request

    _Arrive = Callable[[StreamPart, int], list[int]]
    """What is to be done with a part that arrives, and when that is."""

__all__ = ["HeaderLayer", "is_critical", "without_headers"]

_CRITICAL = 3
"""What streams of header compression are, modulo 4. Each part of one is a stream of its own here:
parts are put in order where they arrive."""


_SHARED_BYTES = 1000
"""Sections of so many bytes share a packet with the next one: the smallest datagram of QUIC is 1200
bytes (RFC 9000 § 14.1), and frames take some of it."""


def is_critical(stream_id: int) -> bool:
    """Return whether the stream is a part of an encoder or decoder stream."""
    return stream_id % STREAM_ID_STEP == _CRITICAL


def without_headers(page: Page) -> Page:
    """Return the page as a browser counts its bytes where sections come from a codec."""
    return replace(
        page, resources=tuple(replace(entry, header_bytes=0) for entry in page.resources)
    )


class _Direction:
    """The field sections of one direction: the encoder at one end, the decoder at the other.

    *send* takes a part of the encoder stream, *send_back* one of the decoder stream; both say whom
    to call when it has arrived. Up to *shared_bytes* of sections go into one packet.
    """

    def __init__(
        self,
        headers: HeaderCompression,
        send: Callable[[StreamPart, _Arrive], None],
        send_back: Callable[[StreamPart, _Arrive], None],
        *,
        shared_bytes: int,
    ) -> None:
        encoder, decoder = make_codec(headers.codec, headers.settings)
        self._sender, self._receiver = EncodingEnd(encoder), DecodingEnd(decoder)
        self._blocks = headers.blocks
        self._send, self._send_back = send, send_back
        self._sections: dict[int, StreamPart] = {}
        self._times: dict[int, SectionTimes] = {}
        self._shared_bytes = shared_bytes
        self._packet_at_ns = -1
        self._packet_bytes = 0
        self.run = HeaderRun()
        """What came of it so far."""

    def size(self, stream_id: int) -> int:
        """Return what the section of a stream takes, 0 where it is not encoded yet."""
        section = self._sections.get(stream_id)
        return 0 if section is None else len(section.data)

    def encode(self, stream_id: int, fields: FieldSection, now_ns: int) -> int:
        """Encode a section, and send what goes before it; return what it takes of its stream."""
        self._note_packet(now_ns)
        *instructions, section = self._sender.encode(stream_id, fields)
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
        """Tell the encoder where a packet begins that sections share.

        Requests of one instant leave together, as far as they fit; behind a response is its body.
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
        """Record that the transport has brought a section for good."""
        self._sender.encoder.on_acked(stream_id)

    def _deliver(self, part: StreamPart, now_ns: int) -> list[int]:
        decoded = self._receiver.deliver(part)
        for stream_id, _ in decoded:
            self._times[stream_id].decoded_at_ns = now_ns
        self.run.note_held(self._receiver.decoder.held)
        feedback = self._receiver.take_feedback()
        if feedback is not None:
            self._send_back(feedback, self._on_feedback)
        return [stream_id for stream_id, _ in decoded] if self._blocks else []

    def _on_feedback(self, part: StreamPart, now_ns: int) -> list[int]:
        del now_ns
        self._sender.on_feedback(part)
        return []


class HeaderLayer:
    """Both directions of a connection over which *page* is loaded.

    *send_up* and *send_down* are told the stream and the size of what an encoder or a decoder has
    to say; `on_critical` is to be called when that has arrived whole.
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
        self._ids = itertools.count(_CRITICAL, STREAM_ID_STEP)
        self._under_way: dict[int, Callable[[int], list[int]]] = {}
        up, down = partial(self._put, send_up), partial(self._put, send_down)
        self.requests = _Direction(headers, up, down, shared_bytes=_SHARED_BYTES)
        self.responses = _Direction(headers, down, up, shared_bytes=0)

    def encode_request(self, stream_id: int, resource: int, now_ns: int) -> int:
        """Encode the request for a resource; return what it takes of its stream."""
        if self._lists is None:
            fields = request_section(self._page, self._page.resources[resource])
        else:
            fields = self._lists[resource][0]
        return self.requests.encode(stream_id, fields, now_ns)

    def encode_response(self, stream_id: int, resource: int, now_ns: int) -> int:
        """Encode the section of a response; return what it takes of its stream."""
        if self._lists is None:
            fields = response_section(self._page.resources[resource])
        else:
            fields = self._lists[resource][1]
        return self.responses.encode(stream_id, fields, now_ns)

    def on_critical(self, stream_id: int, now_ns: int) -> list[int]:
        """Take in a part of an encoder or decoder stream; return what can be read now."""
        return self._under_way.pop(stream_id)(now_ns)

    def with_section(self, request: Request) -> Request:
        """Return the request with the length of its response as it was sent."""
        n_bytes = self.responses.size(request.stream_id)
        return request._replace(length_bytes=request.length_bytes + n_bytes)

    def _put(
        self,
        send: Callable[[int, int], None],
        part: StreamPart,
        arrive: _Arrive,
    ) -> None:
        stream_id = next(self._ids)
        self._under_way[stream_id] = partial(arrive, part)
        send(stream_id, len(part.data))
