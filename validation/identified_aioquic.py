"""What `identify` makes of aioquic: `python -m validation.identified_aioquic`.

A server and a client of aioquic load the workload of `h3sim workload` over the loopback, and both
write a qlog. Needs `pip install aioquic`, and a certificate, which the openssl command makes.
"""

from __future__ import annotations

import asyncio
import ssl
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import aioquic
from aioquic.asyncio.client import connect
from aioquic.asyncio.protocol import QuicConnectionProtocol
from aioquic.asyncio.server import serve
from aioquic.h3.connection import H3_ALPN, H3Connection
from aioquic.h3.events import DataReceived, HeadersReceived
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.logger import QuicFileLogger

import h3sim
from h3sim.signals import Eps
from h3sim.study.workload import EPS_WORKLOAD

if TYPE_CHECKING:
    from aioquic.quic.events import QuicEvent

_PORT = 14_433
_SIZES = {f"/{each.path}": each.size_bytes for each in EPS_WORKLOAD}


class Server(QuicConnectionProtocol):
    """A server that answers each request at once with bytes of the length of its file."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._http = H3Connection(self._quic)

    def quic_event_received(self, event: QuicEvent) -> None:
        """Answer requests."""
        for received in self._http.handle_event(event):
            if isinstance(received, HeadersReceived):
                size = _SIZES[dict(received.headers)[b":path"].decode()]
                headers = [(b":status", b"200"), (b"content-length", str(size).encode())]
                self._http.send_headers(received.stream_id, headers)
                self._http.send_data(received.stream_id, b"." * size, end_stream=True)


class Client(QuicConnectionProtocol):
    """A client that requests paths with priorities, and counts the responses that are complete."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._http = H3Connection(self._quic)
        self._waiting: dict[int, asyncio.Event] = {}

    def get(self, path: str, priority: str) -> asyncio.Event:
        """Request *path*, and return an event that is set once the response is complete."""
        stream_id = self._quic.get_next_available_stream_id()
        headers = [
            (b":method", b"GET"),
            (b":scheme", b"https"),
            (b":authority", b"localhost"),
            (b":path", path.encode()),
        ]
        if priority:
            headers.append((b"priority", priority.encode()))
        self._http.send_headers(stream_id, headers, end_stream=True)
        self.transmit()
        return self._waiting.setdefault(stream_id, asyncio.Event())

    def quic_event_received(self, event: QuicEvent) -> None:
        """Note the ends of responses."""
        for received in self._http.handle_event(event):
            if isinstance(received, DataReceived | HeadersReceived) and received.stream_ended:
                self._waiting[received.stream_id].set()


def _configuration(folder: Path, *, is_client: bool) -> QuicConfiguration:
    return QuicConfiguration(
        is_client=is_client,
        alpn_protocols=H3_ALPN,
        quic_logger=QuicFileLogger(str(folder)),
        verify_mode=ssl.CERT_NONE if is_client else None,
        max_data=16_000_000,
        max_stream_data=4_000_000,
    )


async def load(folder: Path) -> None:
    """Load the workload; the qlogs go into the folders `server` and `client`."""
    certificate, key = folder / "certificate.pem", folder / "key.pem"
    command = f"openssl req -x509 -newkey rsa:2048 -nodes -keyout {key} -out {certificate}"
    await asyncio.to_thread(
        subprocess.run,
        [*command.split(), "-days", "1", "-subj", "/CN=localhost"],
        check=True,
        capture_output=True,
    )
    for side in ("server", "client"):
        (folder / side).mkdir()
    server_side = _configuration(folder / "server", is_client=False)
    server_side.load_cert_chain(certificate, key)
    server = await serve("127.0.0.1", _PORT, configuration=server_side, create_protocol=Server)
    client_side = _configuration(folder / "client", is_client=True)
    async with connect(
        "127.0.0.1", _PORT, configuration=client_side, create_protocol=Client
    ) as client:
        assert isinstance(client, Client)  # noqa: S101 - as `create_protocol` says
        first, *others = EPS_WORKLOAD
        await client.get(f"/{first.path}", "u=0").wait()
        waiting, now_ms = [], 0
        for each in sorted(others, key=lambda request: request.at_ms):
            await asyncio.sleep((each.at_ms - now_ms) / 1000)
            now_ms = each.at_ms
            assert isinstance(each.signal, Eps)  # noqa: S101 - of this workload
            waiting.append(client.get(f"/{each.path}", each.signal.field_value))
        for event in waiting:
            await event.wait()
    server.close()
    await asyncio.sleep(0.1)


def main() -> None:
    """Print what `identify` says of the logs of both ends."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        asyncio.run(load(folder))
        print(f"aioquic {aioquic.__version__}")
        for side in ("server", "client"):
            (log,) = (folder / side).glob("*.qlog")
            found = h3sim.identify(log)
            names = " or ".join(found.candidates) or "none"
            row = found.rows[0]
            print(
                f"{side:6}  {names}, quantum {found.quantum or 'not shown'}:"
                f" {row.explained:,} of {found.n_choices:,} picks ({row.percent:.1f} %);"
                f" runner-up {found.runner_up.mechanism if found.runner_up else 'none'}"
                f" ({found.runner_up.percent if found.runner_up else 0:.1f} %)"
            )


if __name__ == "__main__":
    main()
