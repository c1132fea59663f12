"""A folder served over HTTP/2 through an emulated link: for comparing loads, and nothing else.

The link stands in a relay in front of the server and works on bytes of TCP streams: a rate and a
delay each way, no loss, no window that grows. So it is the constant pace of h3sim. TCP's handshake
with the relay takes no time; the first bytes of each connection are held one round trip longer for
it. The server answers in the order of the requests, one response after the other (fifo).
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
import tempfile
import threading
from collections import deque
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import h2.config
import h2.connection
import h2.events

if TYPE_CHECKING:
    from collections.abc import Iterator

    from h3sim.importers.chromium.web_server import Answer, Site

__all__ = ["served_over_link"]

_CHUNK = 1400
_READ = 65_536


@contextmanager
def served_over_link(site: Site, *, rate_bps: int, rtt_s: float) -> Iterator[str]:
    """Serve *site* at *rate_bps* down and *rtt_s* there and back; yield its address."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    try:
        started = asyncio.run_coroutine_threadsafe(_start(site, rate_bps, rtt_s), loop)
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


async def _start(
    site: Site, rate_bps: int, rtt_s: float
) -> tuple[int, tuple[asyncio.Server, asyncio.Server]]:
    origin = await asyncio.start_server(
        lambda reader, writer: _Connection(site, reader, writer).run(),
        "127.0.0.1",
        0,
        ssl=_tls_context(),
    )
    origin_port = origin.sockets[0].getsockname()[1]
    down = _Link(rate_bps, rtt_s / 2)

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


class _Connection:
    """The server's end of one HTTP/2 connection."""

    def __init__(
        self, site: Site, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self._site = site
        self._reader = reader
        self._writer = writer
        config = h2.config.H2Configuration(client_side=False, header_encoding="utf-8")
        self._h2 = h2.connection.H2Connection(config=config)
        self._waiting: deque[tuple[int, memoryview]] = deque()

    async def run(self) -> None:
        self._h2.initiate_connection()
        self._flush()
        try:
            while data := await self._reader.read(_READ):
                for event in self._h2.receive_data(data):
                    if isinstance(event, h2.events.RequestReceived):
                        self._answer(event)
                    elif isinstance(event, h2.events.StreamReset):
                        kept = (entry for entry in self._waiting if entry[0] != event.stream_id)
                        self._waiting = deque(kept)
                self._send()
                self._flush()
        except (OSError, asyncio.CancelledError):
            return
        finally:
            self._writer.close()

    def _answer(self, request: h2.events.RequestReceived) -> None:
        fields = {str(name): str(value) for name, value in request.headers or ()}
        answer: Answer = self._site.answer(fields[":path"], fields.get("accept-encoding", ""))
        head = [(":status", str(answer.status.value))]
        head += [(name.lower(), value) for name, value in answer.fields]
        stream_id = request.stream_id or 0
        self._h2.send_headers(stream_id, head, end_stream=not answer.body)
        if answer.body:
            self._waiting.append((stream_id, memoryview(answer.body)))

    def _send(self) -> None:
        """Send what the windows allow, the oldest response to its end first."""
        while self._waiting:
            stream_id, body = self._waiting[0]
            room = self._h2.local_flow_control_window(stream_id)
            size = min(room, _CHUNK, len(body))
            if size == 0:
                return
            ends = size == len(body)
            self._h2.send_data(stream_id, bytes(body[:size]), end_stream=ends)
            self._flush()  # a TLS record for each frame: a browser reads records whole
            if ends:
                self._waiting.popleft()
            else:
                self._waiting[0] = (stream_id, body[size:])

    def _flush(self) -> None:
        self._writer.write(self._h2.data_to_send())


def _tls_context() -> ssl.SSLContext:
    """Return a context with a certificate that nobody signed; the browser is told to take it."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.set_alpn_protocols(["h2"])
    certificate, key = _certificate()
    with tempfile.TemporaryDirectory() as folder:
        for name, content in (("certificate", certificate), ("key", key)):
            (Path(folder) / name).write_bytes(content)
        context.load_cert_chain(Path(folder) / "certificate", Path(folder) / "key")
    return context


def _certificate() -> tuple[bytes, bytes]:
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
    return certificate.public_bytes(pem), key.private_bytes(
        pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
