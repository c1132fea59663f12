"""HTTP/2's windows beside real clients and servers: `python -m validation.http2_windows`.

curl, Go and Node load from nghttpd and Go, and send to them, over a link in user space: a proxy
that delays what passes by half a round trip and lets it out at a rate. What is measured is the
second exchange of a connection, so that SETTINGS are known, as in h3sim; of curl it is the first,
since 7.88 uses no such connection twice.
"""

from __future__ import annotations

import queue
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, NamedTuple

from tabulate import tabulate

import h3sim
from h3sim.page import page_from_dict
from h3sim.values.units import NS_PER_S

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["CASES", "Case", "main"]

_HERE = Path(__file__).parent / "drivers" / "windows"
_BUILT = Path(__file__).parents[1] / "build" / "drivers"
_RATE_MBPS = 80
_READ_BYTES = 8192
_RUNS = 3
_CURL_WINDOWS = {"stream_window_bytes": 32 << 20, "initial_stream_window_bytes": 32 << 20}
"""Windows of curl 7.88 (the client `curl` has those of 8.21)."""


class Case(NamedTuple):
    """An exchange: so many bytes to the client or from it, at a round-trip time."""

    client: str
    server: str
    is_upload: bool
    n_bytes: int
    rtt_ms: int
    window_bytes: int | None = None
    """The window that limits it, if any."""
    before_bytes: int = 0
    """The body of the first exchange of the connection."""


CASES = (
    Case("curl", "nghttp2", False, 5_000_000, 100),
    Case("node", "nghttp2", False, 1_000_000, 100, 65_535),
    Case("node", "nghttp2", False, 1_000_000, 100, None, before_bytes=100),
    Case("node", "go-h2", False, 1_000_000, 50, 65_535),
    Case("go", "go-h2", False, 16_000_000, 600, 4 << 20),
    Case("curl", "nghttp2", True, 1_000_000, 100, 65_535),
    Case("curl", "go-h2", True, 16_000_000, 300, 1 << 20),
    Case("go", "go-h2", True, 8_000_000, 300, 1 << 20),
    Case("node", "go-h2", True, 8_000_000, 300, 1 << 20),
    Case("go", "nghttp2", True, 1_000_000, 100, 65_535),
)


class _Link:
    """A proxy before *port* that passes bytes on at a rate, half a round trip later."""

    def __init__(self, port: int, rtt_ms: float) -> None:
        self._port, self._delay_s = port, rtt_ms / 2000
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            near, _ = self._listener.accept()
            far = socket.create_connection(("127.0.0.1", self._port))
            for source, target in ((near, far), (far, near)):
                source.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                waiting: queue.SimpleQueue[tuple[float, bytes]] = queue.SimpleQueue()
                threading.Thread(target=self._read, args=(source, waiting), daemon=True).start()
                threading.Thread(target=_write, args=(target, waiting), daemon=True).start()

    def _read(self, source: socket.socket, waiting: queue.SimpleQueue[tuple[float, bytes]]) -> None:
        free_s = 0.0
        while True:
            try:
                data = source.recv(_READ_BYTES)
            except OSError:
                data = b""
            free_s = max(free_s, time.monotonic()) + len(data) * 8 / (_RATE_MBPS * 1e6)
            waiting.put((free_s + self._delay_s, data))
            if not data:
                return


def _write(target: socket.socket, waiting: queue.SimpleQueue[tuple[float, bytes]]) -> None:
    while True:
        at_s, data = waiting.get()
        time.sleep(max(0.0, at_s - time.monotonic()))
        try:
            target.sendall(data)
            if not data:
                target.shutdown(socket.SHUT_WR)
                return
        except OSError:
            return


def _command(case: Case, origin: str, folder: Path) -> list[str]:
    warm, n_bytes = f"{origin}/{case.before_bytes}", str(case.n_bytes)
    url = warm if case.is_upload else f"{origin}/{n_bytes}"
    word = "put" if case.is_upload else "get"
    if case.client == "node":
        return ["node", str(_HERE / "node.js"), word, warm, url, n_bytes]
    if case.client == "go":
        return [str(_BUILT / "windows"), word, warm, url, n_bytes]
    curl = ["curl", "--http2-prior-knowledge", "-s", "-o", "/dev/null", "-w", "%{time_total}\n"]
    return [*curl, *(["-H", "Expect:", "-T", str(folder / n_bytes)] if case.is_upload else []), url]


def measured_s(case: Case, folder: Path) -> float:
    """Return how long the exchange takes between the real ones: the median of some runs."""
    if case.server == "go-h2":
        command = [str(_BUILT / "windows"), "serve"]
    else:
        port = _free_port()
        command = ["nghttpd", "--no-tls", "-d", str(folder), str(port)]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)  # noqa: S603
    try:
        if case.server == "go-h2":
            assert server.stdout is not None  # noqa: S101 - a pipe
            port = int(server.stdout.readline())
        else:
            time.sleep(1)
        link = _Link(port, case.rtt_ms)
        client = _command(case, f"http://127.0.0.1:{link.port}", folder)
        runs = (
            subprocess.run(client, check=True, capture_output=True, text=True, timeout=120).stdout  # noqa: S603
            for _ in range(_RUNS)
        )
        return median(float(run.split()[-1]) for run in runs)
    finally:
        server.terminate()
        server.wait()


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port: int = free.getsockname()[1]
        return port


def simulated_s(case: Case) -> float:
    """Return how long it takes here, without slow start, as on a machine's own link."""
    first = {"id": "/", "kind": "document", "bytes": case.before_bytes, "header_bytes": 60}
    second = {"id": "second", "kind": "fetch", "header_bytes": 60}
    second |= {"bytes": 0 if case.is_upload else case.n_bytes}
    second |= {"request_bytes": case.n_bytes} if case.is_upload else {}
    resources = [first, second | {"discovered": {"by": "/", "at": "complete"}}]
    page = page_from_dict({"format": "h3sim-page/1", "name": "two", "resources": resources})
    network = h3sim.load_network("fibre").with_(
        rate_mbps=_RATE_MBPS, rtt_ms=case.rtt_ms, queue_bytes=1 << 30
    )
    profile = h3sim.load_profile("linux-tcp").with_(initial_window_bytes=1 << 29, hystart=False)
    if case.client == "curl":
        profile = profile.with_(tcp_client=_CURL_WINDOWS)
    load = h3sim.simulate(
        page,
        client=case.client,
        server=case.server,
        network=network,
        transport="tcp",
        transport_profile=profile,
        handshake="none",
    )
    begun = load.trace.requests[1].requested_at_ns
    return load.page_load_ms / 1000 - begun / NS_PER_S


def _arithmetic_s(case: Case) -> float | None:
    """Return a round trip per window, and one for the exchange; None if nothing limits it."""
    if case.window_bytes is None:
        return None
    rest = (case.n_bytes - 1) // case.window_bytes
    last = (case.n_bytes - rest * case.window_bytes) * 8 / (_RATE_MBPS * 1e6)
    return (rest + 1) * case.rtt_ms / 1000 + last


def _rows(folder: Path) -> Iterator[list[object]]:
    for case in CASES:
        real, here = measured_s(case, folder), simulated_s(case)
        window = "-" if case.window_bytes is None else f"{case.window_bytes:,}"
        ends = (case.client, case.server) if case.is_upload else (case.server, case.client)
        size = f"{case.n_bytes / 1e6:g} MB, {case.rtt_ms} ms"
        size += f", after {case.before_bytes} bytes" if case.before_bytes else ""
        yield [" to ".join(ends), size, window, _arithmetic_s(case), real, here, here / real]


def main() -> int:
    """Print a row for each case; return 1 if a program is missing."""
    missing = [name for name in ("go", "node", "curl", "nghttpd") if shutil.which(name) is None]
    if missing:
        print(f"needs {', '.join(missing)}")
        return 1
    _BUILT.mkdir(parents=True, exist_ok=True)
    source, program = str(_HERE / "main.go"), str(_BUILT / "windows")
    subprocess.run(["go", "build", "-o", program, source], check=True)  # noqa: S603, S607
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for n_bytes in {0, 100, *(case.n_bytes for case in CASES)}:
            (folder / str(n_bytes)).write_bytes(bytes(n_bytes))
        rows = list(_rows(folder))
    headers = ("from, to", "exchange", "window", "arithmetic s", "real s", "here s", "here / real")
    print(
        tabulate(rows, headers, floatfmt=("", "", "", ".3f", ".3f", ".3f", ".2f"), missingval="-")
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
