"""A client of HTTP/2 that says frame by frame what a server is to do, and notes what it does.

Cleartext, with prior knowledge. While the window of the connection is shut everything waits.
"""

from __future__ import annotations

import socket
import time
from typing import TYPE_CHECKING

import hpack
from hyperframe.frame import (
    Frame,
    HeadersFrame,
    PingFrame,
    PriorityFrame,
    SettingsFrame,
    WindowUpdateFrame,
)

if TYPE_CHECKING:
    from types import TracebackType

    from h3sim.signals import H2Priority

__all__ = ["FIRST_WINDOW", "FrameClient"]

FIRST_WINDOW = 65_535
"""What a server may send on a connection before it hears anything of windows (RFC 9113 § 6.9.2)."""
_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
_HEADER_BYTES = 9
_DATA, _HEADERS, _RST_STREAM, _SETTINGS, _PING, _GOAWAY = 0, 1, 3, 4, 6, 7
_ACK = 1
_LONGEST_WAIT_S = 30.0
_PAGE_BYTES = 4096


class FrameClient:
    """One connection to a server on this machine. *data* holds (stream, bytes) of each DATA frame.

    *header_bytes* has the length of each stream's HEADERS. What is said is kept until `flush`, so
    that it arrives as one batch. With *mss_bytes* the server's segments are no longer than that;
    with *seconds_per_read* the path is slow: a small buffer, of which a page is read in that time.
    """

    def __init__(
        self,
        port: int,
        stream_window: int,
        *,
        mss_bytes: int = 0,
        seconds_per_read: float = 0,
    ) -> None:
        self.data: list[tuple[int, int]] = []
        self.header_bytes: dict[int, int] = {}
        self._encoder = hpack.Encoder()
        self._n_pings = self._n_pongs = self._n_bytes = self._n_expected = 0
        self._socket = socket.socket()
        self._socket.settimeout(_LONGEST_WAIT_S)
        self._seconds_per_read = seconds_per_read
        if seconds_per_read:
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2 * _PAGE_BYTES)
        if mss_bytes:
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, mss_bytes)
        self._socket.connect(("127.0.0.1", port))
        settings = {SettingsFrame.ENABLE_PUSH: 0, SettingsFrame.INITIAL_WINDOW_SIZE: stream_window}
        self._outgoing = bytearray(_PREFACE)
        self._send(SettingsFrame(0, settings=settings))

    def __enter__(self) -> FrameClient:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._socket.close()

    def ask(
        self, stream_id: int, path: str, priority: H2Priority | None, *, field: str = ""
    ) -> None:
        """Ask for *path*, with a place in the tree or a Priority field if there is one."""
        fields = [
            (":method", "GET"),
            (":scheme", "http"),
            (":authority", "localhost"),
            (":path", path),
        ]
        if field:
            fields.append(("priority", field))
        frame = HeadersFrame(stream_id, self._encoder.encode(fields))
        frame.flags |= {"END_STREAM", "END_HEADERS"}
        if priority is not None:
            frame.flags.add("PRIORITY")
            _set_priority(frame, priority)
        self._send(frame)

    def prioritize(self, stream_id: int, priority: H2Priority) -> None:
        """Say with a PRIORITY frame where a stream shall stand."""
        frame = PriorityFrame(stream_id)
        _set_priority(frame, priority)
        self._send(frame)

    def open_window(self, n_bytes: int, stream_id: int = 0) -> None:
        """Let the server send so many bytes more, in all or of a stream."""
        self._send(WindowUpdateFrame(stream_id, window_increment=n_bytes))

    def send(self) -> None:
        """Send what was said. No PING: its answer would take room from the first frame."""
        self._socket.sendall(self._outgoing)
        self._outgoing.clear()

    def flush(self, *, answered: list[int] | None = None) -> None:
        """Send what was said, and wait until it was read and the streams *answered* have headers.

        Raises:
            ConnectionError: if the server ends the connection.
        """
        self._n_pings += 1
        self._send(PingFrame(0, self._n_pings.to_bytes(8)))
        self.send()
        expected = answered or []
        while self._n_pongs < self._n_pings or not all(s in self.header_bytes for s in expected):
            self._read_frame()

    def receive(self, n_bytes: int) -> None:
        """Read until so many bytes of bodies more have come."""
        self._n_expected += n_bytes
        while self._n_bytes < self._n_expected:
            self._read_frame()

    def _send(self, frame: Frame) -> None:
        self._outgoing += frame.serialize()

    def _read_frame(self) -> None:
        header = self._read(_HEADER_BYTES)
        length, kind, flags = int.from_bytes(header[:3]), header[3], header[4]
        stream_id = int.from_bytes(header[5:]) & (2**31 - 1)
        payload = self._read(length)
        if kind == _DATA:
            self.data.append((stream_id, length))
            self._n_bytes += length
        elif kind == _HEADERS:
            self.header_bytes[stream_id] = length
        elif kind == _SETTINGS and not flags & _ACK:
            self._socket.sendall(SettingsFrame(0, flags=["ACK"]).serialize())
        elif kind == _PING and flags & _ACK:
            self._n_pongs += 1
        elif kind in (_GOAWAY, _RST_STREAM):
            raise ConnectionError(f"the server gave up: {bytes(payload)!r}")

    def _read(self, n_bytes: int) -> bytes:
        read = bytearray()
        while len(read) < n_bytes:
            if self._seconds_per_read:
                time.sleep(self._seconds_per_read)
            n_most = _PAGE_BYTES if self._seconds_per_read else n_bytes
            some = self._socket.recv(min(n_bytes - len(read), n_most))
            if not some:
                raise ConnectionError("the server closed the connection")
            read += some
        return bytes(read)


def _set_priority(frame: HeadersFrame | PriorityFrame, priority: H2Priority) -> None:
    frame.depends_on = priority.depends_on or 0
    frame.stream_weight = priority.weight - 1  # the wire carries one less (RFC 7540 § 6.3)
    frame.exclusive = priority.exclusive
