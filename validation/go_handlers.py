"""Go's HTTP/2 server with RFC 9218: what a handler's writes leave of the priorities.

`python -m validation.go_handlers` asks a live server for three responses of 128 KiB over a path
that is slower than the server, and prints whose DATA frames come in which order.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from itertools import groupby
from typing import TYPE_CHECKING

from tabulate import tabulate

from validation.http2_frames import FIRST_WINDOW, FrameClient
from validation.server_drivers import SERVERS_GO, build
from validation.tree_servers import path_of

if TYPE_CHECKING:
    from collections.abc import Iterator

_SIZE_BYTES = 1 << 17
_STREAM_WINDOW = 1 << 20
_REQUESTS = {
    "u=5; u=3; u=1": ("u=5", "u=3", "u=1"),
    "all u=3": ("u=3", "u=3", "u=3"),
    "all u=3, i": ("u=3, i", "u=3, i", "u=3, i"),
}
_SECONDS_PER_READ = 0.002
_SETTLES_WITHIN_S = 0.1


@contextlib.contextmanager
def serving(*command: str, qlogs: str = "") -> Iterator[int]:
    """Run a server of the drivers in Go, and yield its port; its qlogs go into that folder."""
    environment = {**os.environ, "QLOGDIR": qlogs}
    process = subprocess.Popen(  # noqa: S603
        (SERVERS_GO, *command), stdout=subprocess.PIPE, text=True, env=environment
    )
    assert process.stdout is not None  # noqa: S101 - a pipe
    try:
        yield int(process.stdout.readline())
    finally:
        process.terminate()
        process.communicate()


def frames(port: int, fields: tuple[str, ...]) -> list[int]:
    """Return the streams of the DATA frames that the server sends for requests that wait."""
    with FrameClient(port, _STREAM_WINDOW, seconds_per_read=_SECONDS_PER_READ) as client:
        # Shuts the connection's window, so that all is known before any of it goes.
        client.ask(1, path_of(FIRST_WINDOW), None, field="u=3")
        client.flush(answered=[1])
        client.receive(FIRST_WINDOW)
        n_before = len(client.data)
        streams = [3 + 2 * number for number in range(len(fields))]
        for stream_id, field in zip(streams, fields, strict=True):
            client.ask(stream_id, path_of(_SIZE_BYTES), None, field=field)
        client.flush(answered=streams)
        time.sleep(_SETTLES_WITHIN_S)  # until each handler has written what it can
        client.open_window(len(streams) * _SIZE_BYTES)
        client.send()
        client.receive(len(streams) * _SIZE_BYTES)
        return [stream_id for stream_id, _ in client.data[n_before:] if stream_id in streams]


def main() -> int:
    """Print the order of frames by handler and priorities."""
    reason = build("go")
    if reason:
        print(f"left out: {reason}")
        return 0
    rows = []
    for handler in ("write", "copy"):
        with serving("serve", handler) as port:
            for name, fields in _REQUESTS.items():
                order = frames(port, fields)
                runs = [f"{stream_id}x{len([*run])}" for stream_id, run in groupby(order)]
                rows.append([handler, name, " ".join(runs)])
    headings = ("handler", "streams 3, 5 and 7", "streams of DATA frames, and how many in a row")
    print(tabulate(rows, headings, "github"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
