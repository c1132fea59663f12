"""The test of a live server over HTTP/3, against servers on this machine with known schedulers."""

from __future__ import annotations

import socket
import threading
import time
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
from aioquic._buffer import Buffer
from aioquic.h3.connection import H3_ALPN, H3Connection
from aioquic.h3.events import HeadersReceived
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.connection import QuicConnection
from aioquic.quic.events import ProtocolNegotiated, StopSendingReceived, StreamDataReceived
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from h3sim.advice.live_server import LiveTestError, Updates, probe_server
from h3sim.cli.main import main
from h3sim.http import parse_priority
from h3sim.schedulers import EpsScheduler, FifoScheduler, Mixed, RoundRobinScheduler, Scheduler
from h3sim.schemes.halves import Over

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

CHUNK_BYTES = 1000
"""Content of a packet."""


def certificate() -> tuple[x509.Certificate, ec.EllipticCurvePrivateKey]:
    """Return a certificate of this machine, and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = datetime.now(UTC)
    made = x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
    dated = made.not_valid_before(now - timedelta(1)).not_valid_after(now + timedelta(1))
    return dated.sign(key, hashes.SHA256()), key


class Quic(QuicConnection):
    """A connection that says whether it may send another chunk now."""

    @property
    def may_send(self) -> bool:
        is_sent = all(stream.sender.buffer_is_empty for stream in self._streams.values())
        return is_sent and self._remote_max_data - self._remote_max_data_used > CHUNK_BYTES + 100

    def window_of(self, stream_id: int) -> int:
        return self._streams[stream_id].max_stream_data_remote


def update_in(data: bytes) -> tuple[int, str]:
    """Return stream and field of a PRIORITY_UPDATE frame of one byte of length."""
    buffer = Buffer(data=data)
    assert buffer.pull_uint_var() == 0xF0700
    end = buffer.pull_uint_var() + buffer.tell()
    return buffer.pull_uint_var(), data[buffer.tell() : end].decode()


class Server:
    """A server over HTTP/3 that sends *n_bytes* for each request, as its scheduler decides."""

    def __init__(self, make: Callable[[], Scheduler], n_bytes: int, *, is_deaf: bool) -> None:
        self._make, self._n_bytes, self._is_deaf = make, n_bytes, is_deaf
        self._certificate, self._key = certificate()
        self._connections: dict[Any, Callable[[bytes], None]] = {}

    def serve(self, udp: socket.socket) -> None:
        while True:
            data, address = udp.recvfrom(65_536)
            if not data:
                return
            if address not in self._connections:
                self._connections[address] = self._connection(udp, address, data)
            self._connections[address](data)

    def _connection(
        self, udp: socket.socket, address: Any, first: bytes
    ) -> Callable[[bytes], None]:
        n_id = first[5]
        quic = Quic(
            configuration=QuicConfiguration(
                is_client=False,
                alpn_protocols=H3_ALPN,
                certificate=self._certificate,
                private_key=self._key,
            ),
            original_destination_connection_id=first[6 : 6 + n_id],
        )
        scheduler, left = self._make(), dict[int, int]()
        http: list[H3Connection] = []

        def flush() -> None:
            for data, _ in quic.datagrams_to_send(now=time.monotonic()):
                udp.sendto(data, address)

        def on_datagram(datagram: bytes) -> None:
            quic.receive_datagram(datagram, address, now=time.monotonic())
            while (event := quic.next_event()) is not None:
                if isinstance(event, ProtocolNegotiated):
                    http.append(H3Connection(quic))
                data = event.data if isinstance(event, StreamDataReceived) else b""
                if data[:4] == b"\x80\x0f\x07\x00" and not self._is_deaf:
                    updated, said = update_in(data)
                    scheduler.update(updated, parse_priority(said))
                if isinstance(event, StopSendingReceived) and left.pop(event.stream_id, 0):
                    scheduler.close(event.stream_id)
                for found in http[0].handle_event(event) if http else ():
                    if isinstance(found, HeadersReceived):
                        field = dict(found.headers).get(b"priority", b"").decode()
                        scheduler.open(found.stream_id, parse_priority(field))
                        scheduler.activate(found.stream_id)
                        window = quic.window_of(found.stream_id) - 500  # less its HEADERS
                        left[found.stream_id] = min(self._n_bytes, window)
                        head = [(b":status", b"200"), (b"server", b"tested/3")]
                        http[0].send_headers(found.stream_id, head)
            flush()
            while quic.may_send and (stream_id := scheduler.pick()) is not None:
                n_bytes = min(left[stream_id], CHUNK_BYTES)
                left[stream_id] -= n_bytes
                is_last = not left[stream_id] and self._n_bytes < CHUNK_BYTES * 50
                http[0].send_data(stream_id, b"x" * n_bytes, end_stream=is_last)
                scheduler.charge(stream_id, n_bytes)
                if not left[stream_id]:
                    del left[stream_id]
                    scheduler.close(stream_id)
                flush()

        return on_datagram


@contextmanager
def served(
    make: Callable[[], Scheduler], *, n_bytes: int = 150_000, is_deaf: bool = False
) -> Iterator[str]:
    """Yield the URL of a server with that scheduler."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp:
        udp.bind(("127.0.0.1", 0))
        server = Server(make, n_bytes, is_deaf=is_deaf)
        thread = threading.Thread(target=server.serve, args=(udp,), daemon=True)
        thread.start()
        try:
            yield f"https://127.0.0.1:{udp.getsockname()[1]}/large"
        finally:
            udp.sendto(b"", udp.getsockname())
            thread.join(5)


def probed(url: str) -> Any:
    return probe_server(url, over=Over.HTTP3, verify=False)


@pytest.mark.parametrize(
    ("make", "like", "unlike"),
    [
        (EpsScheduler, "quiche", "quic-go"),
        (partial(EpsScheduler, mixed=Mixed.HALVES_INCREMENTAL_FIRST), "quic-go", "quiche"),
        (partial(EpsScheduler, mixed=Mixed.FIRST_TURN), "h2o", "quiche"),
        (RoundRobinScheduler, "quinn", "msquic"),
        (FifoScheduler, "msquic", "quinn"),
    ],
)
def test_a_server_is_named_after_the_order_in_which_it_sends(
    make: Callable[[], Scheduler], like: str, unlike: str
) -> None:
    with served(make) as url:
        found = probed(url)
    assert like in found.like
    assert unlike not in found.like
    assert found.server == "tested/3"
    assert "nghttp2-eps" not in found.like


def test_frames_of_updates_are_told_from_frames_that_are_ignored() -> None:
    with served(EpsScheduler) as url:
        assert probed(url).updates is Updates.FOLLOWED
    with served(EpsScheduler, is_deaf=True) as url:
        found = probed(url)
    assert found.updates is Updates.IGNORED
    assert "quiche" in found.like


def test_the_command_says_what_a_server_does(capsys: pytest.CaptureFixture[str]) -> None:
    with served(EpsScheduler) as url:
        assert main(["prioritization-test", url, "--http3", "--insecure"]) == 0
        text = capsys.readouterr().out
        assert "tested/3" in text
        assert "quiche" in text
        assert main(["prioritization-test", url, "--http3"]) == 1  # its certificate is its own
    assert main(["prioritization-test", "fifo", "--http3"]) == 2
    assert main(["prioritization-test", "http://127.0.0.1/x", "--http3"]) == 2


def test_what_cannot_be_tested_is_an_error() -> None:
    with served(EpsScheduler, n_bytes=20_000) as url, pytest.raises(LiveTestError):
        probed(url)
    with pytest.raises(LiveTestError):
        probe_server("https://127.0.0.1:9/", over=Over.HTTP3, timeout_s=0.5)
