"""A folder served over HTTP/2 through an emulated link: for comparing loads, and nothing else.

The link stands in a relay in front of the server and works on bytes of TCP streams: a rate and a
delay each way, no loss, no window that grows. So it is the constant pace of h3sim. TCP's handshake
with the relay takes no time; the first bytes of each connection are held one round trip longer for
it. The server answers in the order of the requests, one response after the other (fifo), by the
`priority` field of the requests (RFC 9218 § 10), or all in turns: then it keeps two frames on the
link at most, so that a response need not wait for others that have been written already.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import functools
import hashlib
import re
import ssl
import tempfile
import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

import h2.config
import h2.connection
import h2.events
import h2.exceptions

if TYPE_CHECKING:
    from collections.abc import Iterator

    from h3sim.importers.chromium.web_server import Answer, Site

__all__ = ["Order", "RequestLog", "flag_of_certificate", "served_over_link", "site_certificate"]

_CHUNK = 1400
_READ = 65_536
_AHEAD = 2 * _CHUNK
"""The bytes that a server that goes by priorities lets wait for the link."""
_DEFAULT_URGENCY = 3
_URGENCY = re.compile(r"(?:^|[,;\s])u=([0-7])(?:$|[,;\s])")
_INCREMENTAL = re.compile(r"(?:^|[,;\s])i(?:=\?1)?(?:$|[,;\s])")
_PRIORITY_UPDATE = 0x10
"""The frame of RFC 9218 § 7.1."""


class Order(StrEnum):
    """The order in which a server sends its responses."""

    FIFO = "fifo"
    PRIORITY = "priority"
    TURNS = "turns"


@dataclass(slots=True)
class RequestLog:
    """The requests that a server saw: (time in s, target, `priority` field), as they came."""

    requests: list[tuple[float, str, str]] = field(default_factory=list)
    priority_frames: list[tuple[float, str]] = field(default_factory=list)
    """PRIORITY frames about a stream that was open (RFC 7540 § 6.3): time in s, its target."""
    n_priority_updates: int = 0
    """PRIORITY_UPDATE frames (RFC 9218 § 7.1)."""


@contextmanager
def served_over_link(
    site: Site,
    *,
    rate_bps: int,
    rtt_s: float,
    log: RequestLog | None = None,
    order: Order = Order.FIFO,
    think_s: float = 0.0,
    early_hints: tuple[str, ...] = (),
) -> Iterator[str]:
    """Serve *site* at *rate_bps* down and *rtt_s* there and back; yield its address.

    A document is answered *think_s* late, and at once with a 103 response (RFC 8297) that has
    *early_hints* as its Link fields, if there are any.
    """
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    log = RequestLog() if log is None else log
    answering = _Server(site, log, order, think_s, early_hints)
    try:
        started = asyncio.run_coroutine_threadsafe(_start(answering, rate_bps, rtt_s), loop)
        port, servers = started.result(timeout=30)
        yield f"https://127.0.0.1:{port}"
        for server in servers:
            loop.call_soon_threadsafe(server.close)
    finally:
        asyncio.run_coroutine_threadsafe(_cancel_all(), loop).result(timeout=10)
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


async def _cancel_all() -> None:
    tasks = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


@dataclass(frozen=True, slots=True)
class _Server:
    site: Site
    log: RequestLog
    order: Order
    think_s: float
    early_hints: tuple[str, ...]


async def _start(
    server: _Server, rate_bps: int, rtt_s: float
) -> tuple[int, tuple[asyncio.Server, asyncio.Server]]:
    down = _Link(rate_bps, rtt_s / 2)
    origin = await asyncio.start_server(
        lambda reader, writer: _Connection(server, down, reader, writer).run(),
        "127.0.0.1",
        0,
        ssl=_tls_context(),
    )
    origin_port = origin.sockets[0].getsockname()[1]

    async def relay(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        up = _Link(None, rtt_s / 2)
        far_reader, far_writer = await asyncio.open_connection("127.0.0.1", origin_port)
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.gather(
                up.carry(reader, far_writer, held_s=rtt_s), down.carry(far_reader, writer)
            )

    front = await asyncio.start_server(relay, "127.0.0.1", 0)
    return front.sockets[0].getsockname()[1], (front, origin)


class _Link:
    """One direction: bytes leave one after the other at a rate, and arrive after a delay."""

    def __init__(self, rate_bps: int | None, delay_s: float) -> None:
        self._rate_bps = rate_bps
        self._delay_s = delay_s
        self._free_at = 0.0

    def busy_s(self, n_bytes: int) -> float:
        """Return for how long all but the last *n_bytes* of what it has been given keep it busy."""
        now = asyncio.get_running_loop().time()
        return self._free_at - now - n_bytes * 8 / (self._rate_bps or 1)

    async def carry(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, held_s: float = 0.0
    ) -> None:
        """Carry bytes until one side closes; the first ones are held *held_s* longer."""
        now = asyncio.get_running_loop().time
        not_before = now() + held_s
        queue: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue()
        deliver = asyncio.create_task(self._deliver(queue, writer))
        try:
            while data := await reader.read(_READ):
                for start in range(0, len(data), _CHUNK):
                    piece = data[start : start + _CHUNK]
                    leaves_at = max(now(), self._free_at, not_before)
                    if self._rate_bps is not None:
                        leaves_at += len(piece) * 8 / self._rate_bps
                        self._free_at = leaves_at
                    queue.put_nowait((leaves_at + self._delay_s, piece))
        except OSError:
            deliver.cancel()
        queue.put_nowait((0.0, b""))
        await asyncio.gather(deliver, return_exceptions=True)

    @staticmethod
    async def _deliver(
        queue: asyncio.Queue[tuple[float, bytes]], writer: asyncio.StreamWriter
    ) -> None:
        now = asyncio.get_running_loop().time
        while True:
            due, piece = await queue.get()
            if not piece:
                writer.close()
                return
            if due > now():
                await asyncio.sleep(due - now())
            writer.write(piece)


@dataclass(slots=True)
class _Response:
    target: str
    body: memoryview
    urgency: int
    is_incremental: bool
    turn: int
    """When it came, or had its last turn, by the count of frames."""


class _Connection:
    """The server's end of one HTTP/2 connection."""

    def __init__(
        self,
        server: _Server,
        link: _Link,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        self._server = server
        self._link = link
        self._reader = reader
        self._writer = writer
        config = h2.config.H2Configuration(client_side=False, header_encoding="utf-8")
        self._h2 = h2.connection.H2Connection(config=config)
        self._waiting: dict[int, _Response] = {}
        self._may_send = asyncio.Event()
        self._n_frames = 0

    async def run(self) -> None:
        self._h2.initiate_connection()
        self._flush()
        sending = asyncio.create_task(self._send_all())
        try:
            while data := await self._reader.read(_READ):
                for event in self._h2.receive_data(data):
                    self._take(event)
                self._flush()
                self._may_send.set()
        except (OSError, asyncio.CancelledError):
            return
        finally:
            sending.cancel()
            self._writer.close()

    def _take(self, event: h2.events.Event) -> None:
        log = self._server.log
        if isinstance(event, h2.events.RequestReceived):
            self._answer(event)
        elif isinstance(event, h2.events.StreamReset):
            self._waiting.pop(event.stream_id or 0, None)
        elif isinstance(event, h2.events.PriorityUpdated):
            response = self._waiting.get(event.stream_id or 0)
            # The one that comes with a request says nothing that its field does not.
            if response is not None:
                log.priority_frames.append((time.monotonic(), response.target))
        elif isinstance(event, h2.events.UnknownFrameReceived):
            log.n_priority_updates += getattr(event.frame, "type", None) == _PRIORITY_UPDATE

    def _answer(self, request: h2.events.RequestReceived) -> None:
        fields = {str(name): str(value) for name, value in request.headers or ()}
        target, priority = fields[":path"], fields.get("priority", "")
        self._server.log.requests.append((time.monotonic(), target, priority))
        stream_id = request.stream_id or 0
        if not (self._server.think_s and target.endswith(".html")):
            self._respond(stream_id, fields)
            return
        if self._server.early_hints:
            links = [("link", value) for value in self._server.early_hints]
            self._h2.send_headers(stream_id, [(":status", "103"), *links])
        loop = asyncio.get_running_loop()
        loop.call_later(self._server.think_s, self._respond, stream_id, fields)

    def _respond(self, stream_id: int, fields: dict[str, str]) -> None:
        target, priority = fields[":path"], fields.get("priority", "")
        answer: Answer = self._server.site.answer(target, fields.get("accept-encoding", ""))
        head = [(":status", str(answer.status.value))]
        head += [(name.lower(), value) for name, value in answer.fields]
        try:
            self._h2.send_headers(stream_id, head, end_stream=not answer.body)
        except h2.exceptions.ProtocolError:  # the stream was reset together with its request
            return
        if answer.body:
            urgency = _URGENCY.search(priority)
            self._waiting[stream_id] = _Response(
                target,
                memoryview(answer.body),
                int(urgency[1]) if urgency else _DEFAULT_URGENCY,
                _INCREMENTAL.search(priority) is not None,
                self._n_frames,
            )
        self._flush()
        self._may_send.set()

    async def _send_all(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                await self._may_send.wait()
                self._may_send.clear()
                while self._send_one():
                    # Also lets the relay take what was written, so that the link knows of it.
                    is_fifo = self._server.order is Order.FIFO
                    wait_s = 0.0 if is_fifo else self._link.busy_s(_AHEAD)
                    await asyncio.sleep(max(0.0, wait_s))

    def _next(self) -> int | None:
        """Return the response that goes next, of those that have room in their window."""
        ready = [n for n in self._waiting if self._h2.local_flow_control_window(n) > 0]
        if not ready or self._server.order is Order.FIFO:
            # To its end before the others, in the order of the requests.
            first = next(iter(self._waiting), None)
            return first if first in ready else None
        return min(ready, key=self._rank)

    def _rank(self, stream_id: int) -> tuple[int, bool, int, int]:
        """Rank by urgency; what is not incremental goes first, by its ID, the rest in turns."""
        response = self._waiting[stream_id]
        if self._server.order is Order.TURNS:
            return 0, True, response.turn, stream_id
        turn = response.turn if response.is_incremental else 0
        return response.urgency, response.is_incremental, turn, stream_id

    def _send_one(self) -> bool:
        """Send a frame, if a window allows one; return whether it did."""
        stream_id = self._next()
        if stream_id is None:
            return False
        response = self._waiting[stream_id]
        room = self._h2.local_flow_control_window(stream_id)
        size = min(room, _CHUNK, len(response.body))
        ends = size == len(response.body)
        self._h2.send_data(stream_id, bytes(response.body[:size]), end_stream=ends)
        self._flush()  # a TLS record for each frame: a browser reads records whole
        self._n_frames += 1
        response.body, response.turn = response.body[size:], self._n_frames
        if ends:
            del self._waiting[stream_id]
        return True

    def _flush(self) -> None:
        self._writer.write(self._h2.data_to_send())


def _tls_context() -> ssl.SSLContext:
    """Return a context with a certificate that nobody signed; see `flag_of_certificate`."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.set_alpn_protocols(["h2"])
    certificate, key, _ = site_certificate()
    with tempfile.TemporaryDirectory() as folder:
        for name, content in (("certificate", certificate), ("key", key)):
            (Path(folder) / name).write_bytes(content)
        context.load_cert_chain(Path(folder) / "certificate", Path(folder) / "key")
    return context


def flag_of_certificate() -> str:
    """Return the flag with which Chromium takes the certificate of these sites for valid.

    With `--ignore-certificate-errors` it would take it, too, but then it caches no response, and so
    requests again what a 103 response made it preload. Over QUIC it would not connect.
    """
    return f"--ignore-certificate-errors-spki-list={site_certificate()[2]}"


@functools.cache
def site_certificate() -> tuple[bytes, bytes, str]:
    """Return a certificate, its key, and the hash of its public key (RFC 7469 § 2.4)."""
    import datetime

    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "127.0.0.1")])
    now = datetime.datetime.now(tz=datetime.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    public = key.public_key().public_bytes(
        serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    private = key.private_bytes(
        pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    spki = base64.b64encode(hashlib.sha256(public).digest()).decode()
    return certificate.public_bytes(pem), private, spki
