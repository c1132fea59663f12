"""Starts a server of HTTP/2 from Debian's packages on this machine, with bodies of given sizes."""

from __future__ import annotations

import getpass
import shutil
import socket
import subprocess
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

__all__ = ["PACKAGES", "path_of", "serving", "version_of"]

PACKAGES = {"nghttpd": "nghttp2-server", "node": "nodejs", "h2o": "h2o"}
"""The package of each server."""
_STARTS_WITHIN_S = 20.0


def path_of(size_bytes: int) -> str:
    """Return the path of a body of that size: no kind of file that a server would raise."""
    return f"/{size_bytes}.bin"


def version_of(server: str) -> str:
    """Return what the server says of its version."""
    message = subprocess.run([server, "--version"], capture_output=True, text=True, check=True)  # noqa: S603
    return message.stdout.splitlines()[0].removeprefix(f"{server} ").removeprefix("version ")


@contextmanager
def serving(server: str, sizes: Iterable[int], paddings: Sequence[str] = ()) -> Iterator[int]:
    """Serve bodies of *sizes* in cleartext; yield the port.

    With *paddings*, which only h2o takes, bodies are under /0, /1 and so on, each with a header of
    its own, and h2o writes as it does on paths of 50 ms and more.

    Raises:
        FileNotFoundError: if the server is not installed.
    """
    if shutil.which(server) is None:
        raise FileNotFoundError(f"no {server}: apt-get install {PACKAGES.get(server, server)}")
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "bodies"
        root.mkdir()
        for size_bytes in sorted(set(sizes)):
            (root / path_of(size_bytes)[1:]).write_bytes(bytes(size_bytes))
        port = _free_port()
        command = _COMMANDS[server](root, port, paddings)
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)  # noqa: S603
        try:
            _wait_for(port, process)
            yield port
        finally:
            process.terminate()
            process.wait()


def _nghttpd(root: Path, port: int, paddings: Sequence[str]) -> list[str]:
    if paddings:
        raise ValueError("nghttpd gives every response the same headers")
    return ["nghttpd", "--no-tls", "--address=127.0.0.1", f"--htdocs={root}", str(port)]


_AS_ON_LONG_PATHS = """http2-latency-optimization-min-rtt: 0
http2-latency-optimization-max-additional-delay: 100000000
"""
"""h2o: write as on paths of 50 ms and more, though the loopback interface has none."""


def _h2o(root: Path, port: int, paddings: Sequence[str]) -> list[str]:
    config = root.parent / "h2o.yaml"
    paths = f"      /:\n        file.dir: {root}\n"
    for number, value in enumerate(paddings):
        paths += f"      /{number}:\n        file.dir: {root}\n"
        paths += f"        header.add: 'x-padding: {value}'\n"
    config.write_text(
        f"""user: {getpass.getuser()}
num-threads: 1
{_AS_ON_LONG_PATHS if paddings else ""}listen:
  host: 127.0.0.1
  port: {port}
hosts:
  default:
    paths:
{paths}""",
        "utf-8",
    )
    return ["h2o", "--conf", str(config)]


def _node(root: Path, port: int, paddings: Sequence[str]) -> list[str]:
    if paddings:
        raise ValueError("this server gives every response the same headers")
    return ["node", str(Path(__file__).parent / "drivers/servers/node.js"), str(root), str(port)]


def _nginx(root: Path, port: int, paddings: Sequence[str]) -> list[str]:
    if paddings:
        raise ValueError("this server gives every response the same headers")
    folder, config = root.parent, root.parent / "nginx.conf"
    kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    paths = " ".join(f"{kind}_temp_path {folder};" for kind in kinds)
    config.write_text(
        f"daemon off; user {getpass.getuser()}; pid {folder}/pid; error_log {folder}/errors;\n"
        "events {}\n"
        f"http {{ access_log off; {paths}\n"
        f"server {{ listen 127.0.0.1:{port} http2; root {root}; }} }}\n",
        "utf-8",
    )
    return ["nginx", "-c", str(config), "-e", str(folder / "errors")]


_COMMANDS = {"nghttpd": _nghttpd, "node": _node, "h2o": _h2o, "nginx": _nginx}


def _free_port() -> int:
    with socket.socket() as some:
        some.bind(("127.0.0.1", 0))
        port: int = some.getsockname()[1]
        return port


def _wait_for(port: int, process: subprocess.Popen[bytes]) -> None:
    until = time.monotonic() + _STARTS_WITHIN_S
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            if process.poll() is not None or time.monotonic() > until:
                raise
            time.sleep(0.05)
        else:
            return
