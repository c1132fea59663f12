"""The connection over HTTP/3 of the prioritization test of a live server (`live_server`)."""

from __future__ import annotations

import socket
import ssl
import time
from typing import TYPE_CHECKING, Any

from aioquic.buffer import encode_uint_var
from aioquic.h3.connection import H3_ALPN, ErrorCode, H3Connection, encode_frame
from aioquic.h3.events import DataReceived, HeadersReceived
from aioquic.quic import events
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.connection import QuicConnection

from h3sim.advice.live_server import (
    MOST_READ_BYTES,
    SETTLE_S,
    SHOWN_BYTES,
    LiveConnection,
    LiveTestError,
)
from h3sim.values.constants import STREAM_ID_STEP
from h3sim.values.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

__all__ = ["Http3Connection"]

_FIRST_WINDOW_BYTES = 65_536
"""The window of the connection that the first response uses up."""
_GRANT_BYTES = 32_768
"""Bytes by which the window is opened at a time."""
_LEFT_BYTES = 1500
"""What a server may leave of a window, as a packet has no room for more."""
_PRIORITY_UPDATE = 0xF0700
"""The frame of RFC 9218 § 7.2 for a request."""


class _Quic(QuicConnection):
    """A connection whose windows nothing raises that arrives: the library would double them."""

    def _write_connection_limits(self, builder: Any, space: Any) -> None:
        limit = self._local_max_data
        limit.used, used = 0, limit.used
        try:
            super()._write_connection_limits(builder=builder, space=space)
        finally:
            limit.used = used

    def _write_stream_limits(self, builder: Any, space: Any, stream: Any) -> None:
        if stream.stream_id % STREAM_ID_STEP:  # a stream of the server, not a request
            super()._write_stream_limits(builder=builder, space=space, stream=stream)

    @property
    def window(self) -> int:
        """Bytes that the peer may send."""
        return self._local_max_data.value - self._local_max_data.used

    def open_window(self) -> None:
        """Grant the peer as many bytes as are not dropped underway."""
        self._local_max_data.value = self._local_max_data.used + _GRANT_BYTES


class Http3Connection(LiveConnection):
    """A connection over HTTP/3, on whose way nothing is buffered, so that grants may be larger."""

    unit_bytes = 1200
    n_early = 1  # quic-go has a frame of the first request ready when its window is used up

    def connect(self, *, verify: bool) -> None:
        """Connect over QUIC."""
        host = self.address[0]
        if dict(self.headers)[":scheme"] != "https":
            raise InputError.at("URL", "must begin with https://: HTTP/3 is always encrypted")
        configuration = QuicConfiguration(
            alpn_protocols=H3_ALPN,
            server_name=host,
            max_data=_FIRST_WINDOW_BYTES,
            max_stream_data=SHOWN_BYTES,
            verify_mode=ssl.CERT_REQUIRED if verify else ssl.CERT_NONE,
        )
        self._quic = _Quic(configuration=configuration)
        self._control_stream_id = self._quic.get_next_available_stream_id(is_unidirectional=True)
        self._http = H3Connection(self._quic)
        self._is_ready = False
        family, kind, *_, address = socket.getaddrinfo(*self.address, type=socket.SOCK_DGRAM)[0]
        self.socket = socket.socket(family, kind)
        self.socket.connect(address)
        self._quic.connect(address, now=time.monotonic())
        while not self._is_ready:
            self.receive()

    @property
    def window(self) -> int:
        """Bytes that the server may send."""
        return self._quic.window

    def request(self, fields: Sequence[str | None]) -> list[int]:
        """Send requests with these Priority fields at once, and return their streams."""
        streams = []
        for field in fields:
            stream_id = self._quic.get_next_available_stream_id()
            headers = [*self.headers, *([("priority", field)] if field is not None else [])]
            encoded = [(name.encode(), value.encode()) for name, value in headers]
            self._http.send_headers(stream_id, encoded, end_stream=True)
            streams.append(stream_id)
        self._flush()
        return streams

    def update(self, stream_id: int, field: str) -> None:
        """Send a PRIORITY_UPDATE frame on the control stream."""
        payload = encode_uint_var(stream_id) + field.encode()
        frame = encode_frame(_PRIORITY_UPDATE, payload)
        self._quic.send_stream_data(self._control_stream_id, frame)
        self._flush()

    def cancel(self, stream_id: int) -> None:
        """Ask the server to send no more of the stream."""
        self._quic.stop_stream(stream_id, ErrorCode.H3_REQUEST_CANCELLED)
        self.ended.add(stream_id)
        self._flush()

    def granted(self, is_done: Callable[[], bool]) -> Iterator[tuple[int, int]]:
        """Open the window, and yield what arrives until little of it is left, or nothing comes."""
        self._quic.open_window()
        is_silent = True
        while self.window > _LEFT_BYTES and not is_done():
            arrived = self.receive(SETTLE_S if not is_silent else None)
            if not arrived:
                return
            is_silent = False
            yield from arrived

    def awaits(self, has_begun: bool) -> bool:
        """Wait for more, or for silence: a server may leave the end of a window unused."""
        return bool(self.receive(SETTLE_S if has_begun else None))

    def _flush(self) -> None:
        for data, _ in self._quic.datagrams_to_send(now=time.monotonic()):
            self.socket.send(data)

    def receive(self, timeout_s: float | None = None) -> list[tuple[int, int]]:
        """Return stream and bytes of the DATA frames that arrive next; none after *timeout_s*."""
        until = time.monotonic() + (self.timeout_s if timeout_s is None else timeout_s)
        was_ready = self._is_ready
        while True:
            self._flush()
            timer = self._quic.get_timer()
            wait_s = min(until, until if timer is None else timer) - time.monotonic()
            self.socket.settimeout(max(wait_s, 0.001))
            try:
                data = self.socket.recv(MOST_READ_BYTES)
            except TimeoutError:
                now = time.monotonic()
                if timer is not None and now >= timer:
                    self._quic.handle_timer(now)
                elif now >= until:
                    if timeout_s is not None:
                        return []
                    raise LiveTestError(f"sends nothing for {self.timeout_s:g} s") from None
            except OSError as error:
                raise LiveTestError(f"{self.authority} cannot be reached: {error}") from error
            else:
                peer = self._quic.get_peer_address()
                self._quic.receive_datagram(data, peer, now=time.monotonic())
            streams = list(self._arrived())
            if streams or was_ready != self._is_ready:
                self._flush()
                return streams

    def _arrived(self) -> Iterator[tuple[int, int]]:
        """Yield stream and bytes of the content that has arrived."""
        while (event := self._quic.next_event()) is not None:
            if isinstance(event, events.ConnectionTerminated):
                reason = event.reason_phrase or f"error {event.error_code}"
                raise LiveTestError(f"{self.authority} ends the connection: {reason}")
            self._is_ready |= isinstance(event, events.HandshakeCompleted)
            if isinstance(event, events.StreamReset) and event.stream_id not in self.ended:
                raise LiveTestError(f"resets a stream with error {event.error_code}")
            for found in self._http.handle_event(event):
                if isinstance(found, HeadersReceived):
                    pairs = ((name.decode(), value.decode()) for name, value in found.headers)
                    self.learn(dict(pairs))
                elif isinstance(found, DataReceived) and found.data:
                    yield found.stream_id, len(found.data)
                if isinstance(found, HeadersReceived | DataReceived) and found.stream_ended:
                    self.ended.add(found.stream_id)
