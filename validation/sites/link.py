"""A shaped link between two network namespaces, with an HTTP/2 server at its end.

`linked` makes both namespaces and starts the link, a process of its own with real-time priority:
packets of TUN devices wait in a drop-tail queue each way, leave at the rate of the link and arrive
half a round trip later. `served` starts h2o in the server's namespace. Only addresses of these
namespaces are ever contacted. It needs root, h2o and iproute2.
"""

from __future__ import annotations

import ctypes
import fcntl
import gc
import os
import select
import struct
import subprocess
import sys
import time
from collections import deque
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import h3sim
from h3sim.advice.prediction import serializing
from h3sim.transport import LinkProfile, Network
from h3sim.values.units import NS_PER_S, mbps, ms

if TYPE_CHECKING:
    from collections.abc import Iterator

CLIENT, SERVER = "h3sim-client", "h3sim-server"
"""The namespaces."""
_ADDRESSES = {CLIENT: "10.78.0.1", SERVER: "10.78.0.2"}
HOST = _ADDRESSES[SERVER]
_DEVICES = {CLIENT: "h3c", SERVER: "h3s"}
_TUNSETIFF, _IFF_TUN, _IFF_NO_PI = 0x400454CA, 0x1, 0x1000
_PACKET_BYTES = 1 << 16
_LIBRARY = ctypes.CDLL(None, use_errno=True)


def _link_of_20_mbps() -> Network:
    """Return the fastest of the three links: 20 Mbit/s down, 5 up, 20 ms."""
    down, up = (LinkProfile(rate_bps=mbps(rate), queue_bytes=64 * 1024) for rate in (20, 5))
    return Network(name="20 Mbit/s, 20 ms", rtt_ns=ms(20), down=down, up=up)


LINKS: dict[str, Network] = {
    "3g": serializing(h3sim.load_network("fast-3g")),
    "4g": serializing(h3sim.load_network("4g")),
    "20m": serializing(_link_of_20_mbps()),
}
"""The links by name; `measure` shapes the very networks over which `table` predicts."""


class Direction:
    """Drop-tail queue, serialization and a fixed delay of one direction."""

    def __init__(self, profile: LinkProfile, delay_ns: int) -> None:
        self._rate_bps = profile.rate_bps or 0
        self._queue_bytes = profile.queue_bytes or _PACKET_BYTES
        self._delay_ns = delay_ns
        self._is_free_at_ns = 0
        self._waiting_bytes = 0
        self._waiting: deque[tuple[int, int]] = deque()  # (leaves at, bytes)
        self._underway: deque[tuple[int, bytes]] = deque()  # (arrives at, packet)

    def take(self, packet: bytes, now_ns: int) -> bool:
        """Queue a packet and return True, or drop it if the queue is full."""
        while self._waiting and self._waiting[0][0] <= now_ns:
            self._waiting_bytes -= self._waiting.popleft()[1]
        if self._waiting and self._waiting_bytes + len(packet) > self._queue_bytes:
            return False
        starts_at_ns = max(now_ns, self._is_free_at_ns)
        self._is_free_at_ns = starts_at_ns + len(packet) * 8 * NS_PER_S // self._rate_bps
        self._waiting.append((self._is_free_at_ns, len(packet)))
        self._waiting_bytes += len(packet)
        self._underway.append((self._is_free_at_ns + self._delay_ns, packet))
        return True

    def deliver(self, device: int, now_ns: int) -> None:
        """Write what has arrived."""
        while self._underway and self._underway[0][0] <= now_ns:
            # A device that was taken down refuses packets: they are lost.
            try:
                os.write(device, self._underway.popleft()[1])
            except OSError:
                continue

    @property
    def next_at_ns(self) -> int | None:
        """Time of the next arrival."""
        return self._underway[0][0] if self._underway else None


def _device(namespace: str) -> int:
    """Return the TUN device of a namespace, which lasts as long as this process."""
    with Path(f"/run/netns/{namespace}").open() as file:
        if _LIBRARY.setns(file.fileno(), 0):
            raise OSError(ctypes.get_errno(), "setns")
    device = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    request = struct.pack("16sH22x", _DEVICES[namespace].encode(), _IFF_TUN | _IFF_NO_PI)
    fcntl.ioctl(device, _TUNSETIFF, request)
    name, address = _DEVICES[namespace], _ADDRESSES[namespace]
    for words in (
        f"link set {name} mtu 1500 txqueuelen 10000 up",
        f"address add {address}/24 dev {name}",
        f"route replace 10.78.0.0/24 dev {name} src {address} congctl cubic",
    ):
        _run("ip", *words.split())
    return device


def relay(network: Network) -> None:
    """Carry packets between the namespaces until killed."""
    client, server = _device(CLIENT), _device(SERVER)
    if network.up is None or network.down is None:
        raise ValueError(f"{network.name}: no rates")
    delay_ns = network.rtt_ns // 2
    up, down = Direction(network.up, delay_ns), Direction(network.down, delay_ns)
    ends = {client: up, server: down}
    gc.disable()
    print("ready", flush=True)
    while True:
        next_ns = [at_ns for way in (up, down) if (at_ns := way.next_at_ns) is not None]
        wait_s = max(min(next_ns) - time.monotonic_ns(), 0) / NS_PER_S if next_ns else None
        for device in select.select(list(ends), [], [], wait_s)[0]:
            with suppress(BlockingIOError):  # raised when no packet is left
                while True:
                    packet = os.read(device, _PACKET_BYTES)
                    ends[device].take(packet, time.monotonic_ns())
        up.deliver(server, time.monotonic_ns())
        down.deliver(client, time.monotonic_ns())


@contextmanager
def namespaces() -> Iterator[None]:
    """Make the client's and the server's namespace, and remove them afterwards."""
    for name in (CLIENT, SERVER):
        # Left over by a run that was killed.
        words = ("ip", "netns", "delete", name)
        subprocess.run(words, check=False, capture_output=True)  # noqa: S603
        _run("ip", "netns", "add", name)
        _run("ip", "-n", name, "link", "set", "lo", "up")
        _inside(name, "sysctl", "-qw", "net.ipv4.tcp_no_metrics_save=1")
    # As servers of pages set it: what is written is what may leave, so priorities matter.
    _inside(SERVER, "sysctl", "-qw", "net.ipv4.tcp_notsent_lowat=16384")
    try:
        yield
    finally:
        for name in (CLIENT, SERVER):
            _run("ip", "netns", "delete", name)


@contextmanager
def linked(link: str) -> Iterator[None]:
    """Join the namespaces by a link; without one, *link* "", both ends are in the server's."""
    if not link:
        _run("ip", "-n", SERVER, "address", "add", f"{HOST}/32", "dev", "lo")
        try:
            yield
        finally:
            _run("ip", "-n", SERVER, "address", "delete", f"{HOST}/32", "dev", "lo")
        return
    words = ("chrt", "-f", "50", sys.executable, "-m", "validation.sites.link", link)
    with subprocess.Popen(words, stdout=subprocess.PIPE) as process:  # noqa: S603
        try:
            if process.stdout is None or process.stdout.readline() != b"ready\n":
                raise OSError("the link did not start")
            yield
        finally:
            process.kill()


_CONFIGURATION = """
listen:
  host: {host}
  port: 443
  ssl: {{certificate-file: {folder}/certificate.pem, key-file: {folder}/key.pem}}
hosts:
  default:
    paths:
      /:
        file.dir: "{root}"
        file.send-compressed: ON
        file.mime.addtypes:
          image/webp: .webp
          image/avif: .avif
          font/woff2: .woff2
          application/wasm: .wasm
          text/javascript: .mjs
num-threads: 1
user: root
error-log: {folder}/errors.log
access-log: /dev/null
"""


@contextmanager
def served(root: Path, folder: Path) -> Iterator[None]:
    """Serve the files of *root* over HTTP/2; certificate and key are in *folder*."""
    file = folder / "h2o.conf"
    file.write_text(_CONFIGURATION.format(host=HOST, folder=folder, root=root), encoding="utf-8")
    words = (*within(SERVER), "chrt", "-r", "5", "h2o", "-c", str(file))
    with subprocess.Popen(words, stderr=subprocess.DEVNULL) as process:  # noqa: S603
        time.sleep(0.5)
        try:
            if process.poll() is not None:
                raise OSError(f"h2o did not start: see {folder / 'errors.log'}")
            yield
        finally:
            process.terminate()


def within(namespace: str) -> tuple[str, ...]:
    """Return the words before a command that is run in a namespace."""
    return ("ip", "netns", "exec", namespace)


def _inside(namespace: str, *words: str) -> None:
    _run(*within(namespace), *words)


def _run(*words: str) -> None:
    subprocess.run(words, check=True, capture_output=True)  # noqa: S603


if __name__ == "__main__":
    relay(LINKS[sys.argv[1]])
