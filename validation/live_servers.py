"""The prioritization test of live servers on this machine: `python -m validation.live_servers`.

Servers that are not installed, or cannot be built, are left out.
"""

from __future__ import annotations

import subprocess
import sys
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from tabulate import tabulate

from h3sim.advice.live_server import LiveTestError, probe_server
from h3sim.schemes.halves import Over
from validation.go_handlers import serving as serving_go
from validation.server_drivers import SERVERS_GO, build
from validation.tree_servers import path_of, serving, version_of

if TYPE_CHECKING:
    from collections.abc import Iterator

_SIZE_BYTES = 300_000
_PACKAGES = ("nghttpd", "node", "h2o", "nginx", "apache2", "haproxy")


@contextmanager
def _quic_go() -> Iterator[str]:
    with TemporaryDirectory() as folder:
        certificate, key = Path(folder) / "certificate.pem", Path(folder) / "key.pem"
        made = f"openssl req -x509 -newkey rsa:2048 -nodes -keyout {key} -out {certificate}"
        subprocess.run(  # noqa: S603
            [*made.split(), "-days", "1", "-subj", "/CN=localhost"], check=True, capture_output=True
        )
        with serving_go("serve3", str(certificate), str(key), qlogs=folder) as port:
            yield f"https://127.0.0.1:{port}/?bytes={_SIZE_BYTES}"


@contextmanager
def _x_net(handler: str) -> Iterator[str]:
    with serving_go("serve", handler) as port:
        yield f"http://127.0.0.1:{port}{path_of(_SIZE_BYTES)}"


@contextmanager
def _packaged(server: str) -> Iterator[str]:
    with serving(server, [_SIZE_BYTES]) as port:
        yield f"http://127.0.0.1:{port}{path_of(_SIZE_BYTES)}"


def _rows() -> Iterator[list[str]]:
    servers = {}
    if reason := build("go"):
        print(f"left out: {SERVERS_GO}: {reason}")
    else:
        servers["quic-go 0.65.0"] = _quic_go(), Over.HTTP3
        servers["x/net 0.62.0, one Write"] = _x_net("write"), Over.HTTP2
        servers["x/net 0.62.0, io.Copy"] = _x_net("copy"), Over.HTTP2
    for name in _PACKAGES:
        servers[name] = _packaged(name), Over.HTTP2
    for name, (running, over) in servers.items():
        with ExitStack() as stack:
            try:
                url = stack.enter_context(running)
                found = probe_server(url, over=over, verify=False)
            except (FileNotFoundError, LiveTestError) as error:
                print(f"left out: {name}: {error}")
                continue
        title = f"{name} {version_of(name)}" if name in _PACKAGES else name
        yield [title, over.value, ", ".join(found.like) or "none", found.updates.value]


def main() -> int:
    """Print which shipped servers each live one behaves like."""
    headings = ("live server", "over", "sends in the order of", "PRIORITY_UPDATE")
    print(tabulate(list(_rows()), headings, "github"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
