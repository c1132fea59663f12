"""The test of a live server, against servers on this machine whose schedulers are known."""

from __future__ import annotations

import socket
import threading
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import RequestReceived, StreamReset, UnknownFrameReceived
from h2.exceptions import ProtocolError

from h3sim.advice.live_server import LiveTestError, Updates, probe_server
from h3sim.cli.main import main
from h3sim.http import parse_priority
from h3sim.schedulers import EpsScheduler, FifoScheduler, Mixed, RoundRobinScheduler, Scheduler

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


class Server:
    """A server over HTTP/2 that sends *n_bytes* for each request, as its scheduler decides."""

    def __init__(self, make: Callable[[], Scheduler], n_bytes: int, frame_bytes: int) -> None:
        self._make, self._n_bytes, self._frame_bytes = make, n_bytes, frame_bytes

    def serve(self, connection: socket.socket) -> None:
        http = H2Connection(H2Configuration(client_side=False, header_encoding="utf-8"))
        http.initiate_connection()
        scheduler, left = self._make(), dict[int, int]()
        try:
            while True:
                connection.sendall(http.data_to_send())
                if not (data := connection.recv(65_536)):
                    return
                for event in http.receive_data(data):
                    if isinstance(event, RequestReceived):
                        stream_id = event.stream_id
                        fields: dict[Any, Any] = dict(event.headers)
                        scheduler.open(stream_id, parse_priority(fields.get("priority", "")))
                        scheduler.activate(stream_id)
                        left[stream_id] = self._n_bytes
                        http.send_headers(stream_id, [(":status", "200"), ("server", "tested/1")])
                    elif isinstance(event, UnknownFrameReceived):
                        frame: Any = event.frame  # of type 0x10
                        stream_id = int.from_bytes(frame.body[:4], "big")
                        scheduler.update(stream_id, parse_priority(frame.body[4:].decode()))
                    elif isinstance(event, StreamReset) and event.stream_id in left:
                        del left[event.stream_id]
                        scheduler.close(event.stream_id)
                self._send(http, scheduler, left)
        except (OSError, ProtocolError):
            return
        finally:
            connection.close()

    def _send(self, http: H2Connection, scheduler: Scheduler, left: dict[int, int]) -> None:
        while (stream_id := scheduler.pick()) is not None:
            window = http.local_flow_control_window(stream_id)
            n_bytes = min(left[stream_id], self._frame_bytes, window)
            if not http.outbound_flow_control_window:
                return
            if not n_bytes:
                scheduler.deactivate(stream_id)
                continue
            left[stream_id] -= n_bytes
            http.send_data(stream_id, b"x" * n_bytes, end_stream=not left[stream_id])
            scheduler.charge(stream_id, n_bytes)
            if not left[stream_id]:
                del left[stream_id]
                scheduler.close(stream_id)


@contextmanager
def served(
    make: Callable[[], Scheduler], *, n_bytes: int = 400_000, frame_bytes: int = 16_384
) -> Iterator[str]:
    """Yield the URL of a server with that scheduler."""
    server = Server(make, n_bytes, frame_bytes)
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def accept() -> None:
            while True:
                try:
                    connection, _ = listener.accept()
                except OSError:
                    return
                server.serve(connection)

        thread = threading.Thread(target=accept, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}/large"
        finally:
            listener.shutdown(socket.SHUT_RDWR)
    thread.join(5)


SERVERS: dict[str, tuple[Callable[[], Scheduler], str, str]] = {
    "non-incremental first": (EpsScheduler, "rfc9218", "go-h2"),
    "halves": (partial(EpsScheduler, mixed=Mixed.HALVES), "go-h2", "rfc9218"),
    "turns": (RoundRobinScheduler, "rr", "fifo"),
    "one by one": (FifoScheduler, "fifo", "rr"),
}
"""Designs, each with a shipped scheme that has it, and one that has another."""


@pytest.mark.parametrize("design", SERVERS)
def test_a_server_is_named_after_the_order_in_which_it_sends(design: str) -> None:
    make, like, unlike = SERVERS[design]
    with served(make, frame_bytes=3000 if design == "one by one" else 16_384) as url:
        found = probe_server(url)
    assert like in found.like
    assert unlike not in found.like
    assert found.server == "tested/1"
    assert len({*found.rows[0].sent}) == 3


def test_three_requests_are_sent_by_urgency() -> None:
    with served(EpsScheduler, n_bytes=80_000) as url:
        found = probe_server(url)
    three, nine, updated = found.rows
    assert list(dict.fromkeys(three.sent)) == [2, 3, 1]
    assert nine.sent[:9] == (*[9] * 5, *[7] * 4)
    assert list(dict.fromkeys(updated.sent)) == [1, 2, 3]
    assert found.updates is Updates.FOLLOWED


def test_the_command_says_what_a_server_does(capsys: pytest.CaptureFixture[str]) -> None:
    with served(EpsScheduler) as url:
        assert main(["prioritization-test", url]) == 0
    text = capsys.readouterr().out
    assert "tested/1" in text
    assert "It sends in the order of:" in text
    with served(RoundRobinScheduler) as url:
        assert main(["prioritization-test", url, "--like", "haproxy,rfc9218"]) == 0
        assert main(["prioritization-test", url, "--like", "rfc9218"]) == 1
    assert main(["prioritization-test", url, "--like", "no-server"]) == 2


def test_what_cannot_be_tested_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    with served(EpsScheduler, n_bytes=0) as url, pytest.raises(LiveTestError):
        probe_server(url, timeout_s=1)
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    assert main(["prioritization-test", f"http://127.0.0.1:{port}/"]) == 1
    assert "cannot be reached" in capsys.readouterr().err
    assert main(["prioritization-test", "https://example.org/x", "--loss", "2"]) == 2
    assert main(["prioritization-test", "fifo", "--insecure"]) == 2
