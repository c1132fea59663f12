"""What `identify` makes of real servers: `python -m validation.identified_servers`.

A client of aioquic loads the workload of `h3sim workload` over the loopback from servers of
aioquic, quic-go, ngtcp2 with nghttp3, and h2o with quicly. All but h2o write a qlog, as the client
does. Needs aioquic (`pip install aioquic`), Go, openssl (for a certificate) and Debian's package
ngtcp2-server. `H3SIM_H2O` is the path of an h2o with HTTP/3, built from source. Servers that are
missing are left out.
"""

from __future__ import annotations

import asyncio
import contextlib
import getpass
import json
import os
import shutil
import ssl
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import h3sim
from h3sim.identification.workload import EPS_WORKLOAD, write_workload
from h3sim.signals import Eps
from validation.server_drivers import SERVERS_GO, build

try:
    import aioquic
    from aioquic.asyncio.client import connect
    from aioquic.asyncio.protocol import QuicConnectionProtocol
    from aioquic.asyncio.server import serve
    from aioquic.h3.connection import H3_ALPN, H3Connection
    from aioquic.h3.events import DataReceived, HeadersReceived
    from aioquic.quic.configuration import QuicConfiguration
    from aioquic.quic.logger import QuicFileLogger
except ModuleNotFoundError:
    raise SystemExit("identified_servers needs aioquic: pip install aioquic") from None

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from aioquic.quic.events import QuicEvent

_PORT = 14_433
_SIDES = ("server", "client")
"""Folders of the logs."""


class AioquicServer(QuicConnectionProtocol):
    """A server that answers each request at once with bytes of the length of its file."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._http = H3Connection(self._quic)

    def quic_event_received(self, event: QuicEvent) -> None:
        """Answer requests."""
        for received in self._http.handle_event(event):
            if isinstance(received, HeadersReceived):
                size = int(dict(received.headers)[b"bytes"])
                headers = [(b":status", b"200"), (b"content-length", str(size).encode())]
                self._http.send_headers(received.stream_id, headers)
                self._http.send_data(received.stream_id, b"." * size, end_stream=True)


class Client(QuicConnectionProtocol):
    """A client that requests paths with priorities, and counts the responses that are complete."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._http = H3Connection(self._quic)
        self._waiting: dict[int, asyncio.Event] = {}

    def get(self, path: str, size_bytes: int, priority: str) -> asyncio.Event:
        """Request *path*, and return an event that is set once the response is complete."""
        stream_id = self._quic.get_next_available_stream_id()
        headers = [
            (b":method", b"GET"),
            (b":scheme", b"https"),
            (b":authority", b"localhost"),
            (b":path", path.encode()),
            (b"bytes", str(size_bytes).encode()),
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


@contextlib.asynccontextmanager
async def _serve_aioquic(folder: Path, certificate: Path, key: Path) -> AsyncIterator[int]:
    configuration = _configuration(folder, is_client=False)
    configuration.load_cert_chain(certificate, key)
    server = await serve(
        "127.0.0.1", _PORT, configuration=configuration, create_protocol=AioquicServer
    )
    yield _PORT
    server.close()


@contextlib.asynccontextmanager
async def _serve_quic_go(folder: Path, certificate: Path, key: Path) -> AsyncIterator[int]:
    command = (SERVERS_GO, "serve3", str(certificate), str(key))
    environment = {**os.environ, "QLOGDIR": str(folder)}
    process = await asyncio.create_subprocess_exec(
        *command, stdout=asyncio.subprocess.PIPE, env=environment
    )
    assert process.stdout is not None  # noqa: S101 - a pipe
    try:
        yield int(await process.stdout.readline())
    finally:
        await _end(process)


@contextlib.asynccontextmanager
async def _serve_nghttp3(folder: Path, certificate: Path, key: Path) -> AsyncIterator[int]:
    options = (f"--htdocs={_files_in(folder)}", f"--qlog-dir={folder}", "--quiet")
    address = ("127.0.0.1", str(_PORT), str(key), str(certificate))
    async with _running(_NGTCP2_SERVER, *options, *address):
        yield _PORT


@contextlib.asynccontextmanager
async def _serve_h2o(folder: Path, certificate: Path, key: Path) -> AsyncIterator[int]:
    ssl_files = {"key-file": str(key), "certificate-file": str(certificate)}
    listen = {"type": "quic", "host": "127.0.0.1", "port": _PORT, "ssl": ssl_files}
    paths = {"/": {"file.dir": str(_files_in(folder))}}
    configuration = {
        "user": getpass.getuser(),  # who may read the files
        "num-threads": 1,
        "listen": listen,
        "hosts": {"default": {"paths": paths}},
    }
    path = folder.parent / "h2o.conf"
    path.write_text(json.dumps(configuration), "utf-8")  # which is YAML, too
    async with _running(os.environ[_H2O_VARIABLE], "-c", str(path)):
        yield _PORT


def _files_in(folder: Path) -> Path:
    """Write the files of the workload next to *folder*, and return the folder that has them."""
    root = folder.parent / "workload"
    write_workload(root)
    return root / "www"


@contextlib.asynccontextmanager
async def _running(*command: str) -> AsyncIterator[None]:
    """Run a server within the block."""
    output = asyncio.subprocess.DEVNULL
    process = await asyncio.create_subprocess_exec(*command, stdout=output, stderr=output)
    await asyncio.sleep(1)  # until it listens
    if process.returncode is not None:
        raise RuntimeError(f"{command[0]} ended with exit code {process.returncode}")
    try:
        yield
    finally:
        await _end(process)


async def _end(process: asyncio.subprocess.Process) -> None:
    if process.returncode is None:
        process.terminate()
    await process.wait()


_QUIC_GO, _NGHTTP3, _H2O = "quic-go 0.65.0", "nghttp3 (ngtcp2-server)", "h2o"
_H2O_VARIABLE = "H3SIM_H2O"
_NGTCP2_SERVER = "gtlsserver"
"""The server of Debian's package ngtcp2-server, which schedules with nghttp3."""
_SERVERS = {
    f"aioquic {aioquic.__version__}": _serve_aioquic,
    _QUIC_GO: _serve_quic_go,
    _NGHTTP3: _serve_nghttp3,
    _H2O: _serve_h2o,
}


async def load(server: str, folder: Path) -> None:
    """Load the workload from a server; the qlogs go into the folders `server` and `client`."""
    certificate, key = folder / "certificate.pem", folder / "key.pem"
    command = f"openssl req -x509 -newkey rsa:2048 -nodes -keyout {key} -out {certificate}"
    await asyncio.to_thread(
        subprocess.run,
        [*command.split(), "-days", "1", "-subj", "/CN=localhost"],
        check=True,
        capture_output=True,
    )
    for side in _SIDES:
        (folder / side).mkdir()
    client_side = _configuration(folder / "client", is_client=True)
    async with _SERVERS[server](folder / "server", certificate, key) as port:
        async with connect(
            "127.0.0.1", port, configuration=client_side, create_protocol=Client
        ) as client:
            assert isinstance(client, Client)  # noqa: S101 - as `create_protocol` says
            await _request_all(client)
        await asyncio.sleep(0.5)  # until the logs are written


async def _request_all(client: Client) -> None:
    first, *others = EPS_WORKLOAD
    await client.get(f"/{first.path}", first.size_bytes, "u=0").wait()
    waiting, now_ms = [], 0
    for each in sorted(others, key=lambda request: request.at_ms):
        await asyncio.sleep((each.at_ms - now_ms) / 1000)
        now_ms = each.at_ms
        assert isinstance(each.signal, Eps)  # noqa: S101 - of this workload
        waiting.append(client.get(f"/{each.path}", each.size_bytes, each.signal.field_value))
    for event in waiting:
        await event.wait()


def main() -> None:
    """Print what `identify` says of the logs of both ends."""
    if reason := build("go"):
        print(f"left out {_QUIC_GO}: {reason}")
        del _SERVERS[_QUIC_GO]
    if shutil.which(_NGTCP2_SERVER) is None:
        print(f"left out {_NGHTTP3}: {_NGTCP2_SERVER} is not installed")
        del _SERVERS[_NGHTTP3]
    if _H2O_VARIABLE not in os.environ:
        print(f"left out {_H2O}: {_H2O_VARIABLE} is not set")
        del _SERVERS[_H2O]
    for server in _SERVERS:
        with TemporaryDirectory() as name:
            asyncio.run(load(server, Path(name)))
            print(server)
            for side in _SIDES:
                logs = sorted((Path(name) / side).iterdir())
                if side == "client" and not logs:
                    raise RuntimeError(f"the client of {server} wrote no log")
                for log in logs:
                    print(f"{side:6}  {_describe(h3sim.identify(log))}")


def _describe(found: h3sim.identification.Identification) -> str:
    names, row = " or ".join(found.candidates) or "none", found.rows[0]
    runner_up = found.runner_up
    other = f"{runner_up.mechanism} ({runner_up.percent:.1f} %)" if runner_up else "none"
    return (
        f"{names}, quantum {found.quantum or 'not shown'}: {row.explained:,} of"
        f" {found.n_choices:,} picks ({row.percent:.1f} %); runner-up {other}"
    )


if __name__ == "__main__":
    main()
