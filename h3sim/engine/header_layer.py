"""Header compression in a load: what sections take, what waits for what, and who tells whom.

An endpoint carries numbers of bytes and not bytes. So what a stream of header compression says is
kept here, by its stream, until all of it has arrived.
"""

from __future__ import annotations

import itertools
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from h3sim.compression import DecodingEnd, EncodingEnd, make_codec
from h3sim.compression.page_sections import request_section, response_section

if TYPE_CHECKING:
    from collections.abc import Callable

    from h3sim.compression import FieldSection, HeaderCompression, Part
    from h3sim.page import Page
    from h3sim.trace import Request

__all__ = ["HeaderLayer", "is_critical", "without_headers"]

_STREAM_ID_STEP = 4
_CRITICAL = 3
"""What streams of header compression are, modulo 4. Each part of one is a stream of its own here:
parts are put in order where they arrive."""


def is_critical(stream_id: int) -> bool:
    """Return whether the stream is a part of an encoder or decoder stream."""
    return stream_id % _STREAM_ID_STEP == _CRITICAL


def without_headers(page: Page) -> Page:
    """Return the page as a browser counts its bytes where sections come from a codec."""
    return replace(
        page, resources=tuple(replace(entry, header_bytes=0) for entry in page.resources)
    )


class _Direction:
    """The field sections of one direction: the encoder at one end, the decoder at the other.

    *send* takes a part of the encoder stream, *send_back* one of the decoder stream; both say whom
    to call when it has arrived.
    """

    def __init__(
        self,
        headers: HeaderCompression,
        send: Callable[[Part, Callable[[Part], list[int]]], None],
        send_back: Callable[[Part, Callable[[Part], list[int]]], None],
    ) -> None:
        encoder, decoder = make_codec(headers.codec, headers.settings)
        self._sender, self._receiver = EncodingEnd(encoder), DecodingEnd(decoder)
        self._blocks = headers.blocks
        self._send, self._send_back = send, send_back
        self._sections: dict[int, Part] = {}

    def size(self, stream_id: int) -> int:
        """Return what the section of a stream takes, 0 where it is not encoded yet."""
        section = self._sections.get(stream_id)
        return 0 if section is None else len(section.data)

    def encode(self, stream_id: int, fields: FieldSection) -> int:
        """Encode a section, and send what goes before it; return what it takes of its stream."""
        *instructions, section = self._sender.encode(stream_id, fields)
        for part in instructions:
            self._send(part, self._deliver)
        self._sections[stream_id] = section
        return len(section.data)

    def on_section(self, stream_id: int) -> list[int]:
        """Let a section have arrived; return the streams that can be read now."""
        readable = self._deliver(self._sections[stream_id])
        return readable if self._blocks else [stream_id]

    def on_acked(self, stream_id: int) -> None:
        """Let the transport have brought a section for good."""
        self._sender.encoder.on_acked(stream_id)

    def _deliver(self, part: Part) -> list[int]:
        decoded = self._receiver.deliver(part)
        feedback = self._receiver.take_feedback()
        if feedback is not None:
            self._send_back(feedback, self._on_feedback)
        return [stream_id for stream_id, _ in decoded] if self._blocks else []

    def _on_feedback(self, part: Part) -> list[int]:
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
        self._ids = itertools.count(_CRITICAL, _STREAM_ID_STEP)
        self._under_way: dict[int, Callable[[], list[int]]] = {}
        up, down = partial(self._put, send_up), partial(self._put, send_down)
        self.requests = _Direction(headers, up, down)
        self.responses = _Direction(headers, down, up)

    def encode_request(self, stream_id: int, resource: int) -> int:
        """Encode the request for a resource; return what it takes of its stream."""
        fields = request_section(self._page, self._page.resources[resource])
        return self.requests.encode(stream_id, fields)

    def encode_response(self, stream_id: int, resource: int) -> int:
        """Encode the section of a response; return what it takes of its stream."""
        fields = response_section(self._page.resources[resource])
        return self.responses.encode(stream_id, fields)

    def on_critical(self, stream_id: int) -> list[int]:
        """Let a part of an encoder or decoder stream have arrived; return what can be read now."""
        return self._under_way.pop(stream_id)()

    def with_section(self, request: Request) -> Request:
        """Return the request with the length of its response as it was sent."""
        n_bytes = self.responses.size(request.stream_id)
        return request._replace(length_bytes=request.length_bytes + n_bytes)

    def _put(
        self,
        send: Callable[[int, int], None],
        part: Part,
        arrive: Callable[[Part], list[int]],
    ) -> None:
        stream_id = next(self._ids)
        self._under_way[stream_id] = partial(arrive, part)
        send(stream_id, len(part.data))
