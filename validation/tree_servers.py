"""Starts a server of HTTP/2 from Debian's packages on this machine, with bodies of given sizes."""

from __future__ import annotations

import getpass
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

__all__ = ["PACKAGES", "path_of", "serving", "version_of"]

PACKAGES = {"nghttpd": "nghttp2-server", "node": "nodejs", "h2o": "h2o"}
"""The package of each server whose trees are compared."""
_STARTS_WITHIN_S = 20.0


def path_of(size_bytes: int) -> str:
    """Return the path of a body of that size: no kind of file that a server would raise."""
    return f"/{size_bytes}.bin"


def version_of(server: str) -> str:
    """Return what the server says of its version."""
    option = _VERSION_OPTIONS.get(server, "--version")
    message = subprocess.run([server, option], capture_output=True, text=True, check=True)  # noqa: S603
    first = (message.stdout or message.stderr).splitlines()[0].split(": ")[-1].split(" - ")[0]
    return first.removeprefix(f"{server} ").replace("version ", "")


@contextmanager
def serving(server: str, sizes: Iterable[int], paddings: Sequence[str] = ()) -> Iterator[int]:
    """Serve bodies of *sizes* in cleartext; yield the port.

    With *paddings*, which only h2o takes, bodies are under /0, /1 and so on, each with a header of
    its own, and h2o writes as it does on paths of 50 ms and more. HAProxy forwards bodies of an
    HTTP/1 server.

    Raises:
        FileNotFoundError: if the server is not installed.
        ValueError: with paddings, if the server is not h2o.
    """
    if shutil.which(server) is None:
        raise FileNotFoundError(f"no {server}: apt-get install {PACKAGES.get(server, server)}")
    if paddings and server != "h2o":
        raise ValueError(f"{server} gives every response the same headers")
    with tempfile.TemporaryDirectory() as folder, ExitStack() as running:
        Path(folder).chmod(0o755)  # Apache's workers are another user's
        root = Path(folder) / "bodies"
        root.mkdir()
        for size_bytes in sorted(set(sizes)):
            (root / path_of(size_bytes)[1:]).write_bytes(bytes(size_bytes))
        site = _Site(root, _free_port(), paddings, _free_port())
        if server == "haproxy":
            running.enter_context(_running(_http1(site), site.origin_port))
        running.enter_context(_running(_COMMANDS[server](site), site.port))
        yield site.port


class _Site(NamedTuple):
    root: Path
    port: int
    paddings: Sequence[str]
    origin_port: int
    """Where a proxy finds the server that it stands before."""

    @property
    def folder(self) -> Path:
        return self.root.parent

    def write_config(self, text: str) -> str:
        """Write the server's configuration; return its path."""
        path = self.folder / "server.conf"
        path.write_text(text, "utf-8")
        return str(path)


@contextmanager
def _running(command: list[str], port: int) -> Iterator[None]:
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)  # noqa: S603
    try:
        _wait_for(port, process)
        yield
    finally:
        process.terminate()
        process.wait()


def _http1(site: _Site) -> list[str]:
    options = ("--bind", "127.0.0.1", "--directory", str(site.root))
    return [sys.executable, "-m", "http.server", *options, str(site.origin_port)]


def _nghttpd(site: _Site) -> list[str]:
    return [
        *("nghttpd", "--no-tls", "--address=127.0.0.1"),
        *(f"--htdocs={site.root}", str(site.port)),
    ]


_AS_ON_LONG_PATHS = """http2-latency-optimization-min-rtt: 0
http2-latency-optimization-max-additional-delay: 100000000
"""
"""h2o: write as on paths of 50 ms and more, though the loopback interface has none."""


def _h2o(site: _Site) -> list[str]:
    paths = f"      /:\n        file.dir: {site.root}\n"
    for number, value in enumerate(site.paddings):
        paths += f"      /{number}:\n        file.dir: {site.root}\n"
        paths += f"        header.add: 'x-padding: {value}'\n"
    config = site.write_config(
        f"""user: {getpass.getuser()}
num-threads: 1
{_AS_ON_LONG_PATHS if site.paddings else ""}listen:
  host: 127.0.0.1
  port: {site.port}
hosts:
  default:
    paths:
{paths}"""
    )
    return ["h2o", "--conf", config]


def _node(site: _Site) -> list[str]:
    script = Path(__file__).parent / "drivers/servers/node.js"
    return ["node", str(script), str(site.root), str(site.port)]


def _nginx(site: _Site) -> list[str]:
    folder = site.folder
    kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    paths = " ".join(f"{kind}_temp_path {folder};" for kind in kinds)
    config = site.write_config(
        f"daemon off; user {getpass.getuser()}; pid {folder}/pid; error_log {folder}/errors;\n"
        "events {}\n"
        f"http {{ access_log off; {paths}\n"
        f"server {{ listen 127.0.0.1:{site.port} http2; root {site.root}; }} }}\n"
    )
    return ["nginx", "-c", config, "-e", str(folder / "errors")]


_APACHE_MODULES = ("mpm_event", "authz_core", "http2")


def _apache(site: _Site) -> list[str]:
    modules = "".join(
        f"LoadModule {name}_module /usr/lib/apache2/modules/mod_{name}.so\n"
        for name in _APACHE_MODULES
    )
    user = "User nobody\nGroup nogroup\n" if os.getuid() == 0 else ""  # it refuses to be root
    config = site.write_config(
        f"{modules}{user}ServerRoot {site.folder}\nServerName localhost\n"
        f"Listen 127.0.0.1:{site.port}\nPidFile {site.folder}/pid\nMutex file:{site.folder}\n"
        f"ErrorLog {site.folder}/errors\nProtocols h2c\nDocumentRoot {site.root}\n"
        f"<Directory {site.root}>\nRequire all granted\n</Directory>\n"
    )
    return ["apache2", "-DFOREGROUND", "-f", config]


def _haproxy(site: _Site) -> list[str]:
    config = site.write_config(
        "global\n  nbthread 1\n"
        "defaults\n  mode http\n"
        "  timeout connect 9s\n  timeout client 99s\n  timeout server 99s\n"
        f"listen all\n  bind 127.0.0.1:{site.port} proto h2\n"
        f"  server origin 127.0.0.1:{site.origin_port}\n"
    )
    return ["haproxy", "-f", config]


_COMMANDS = {
    "nghttpd": _nghttpd,
    "node": _node,
    "h2o": _h2o,
    "nginx": _nginx,
    "apache2": _apache,
    "haproxy": _haproxy,
}
_VERSION_OPTIONS = {"nginx": "-v", "apache2": "-v", "haproxy": "-v"}


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
