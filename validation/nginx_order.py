"""What nginx makes of weights and Priority fields: `python -m validation.nginx_order`."""

from __future__ import annotations

import subprocess
import sys
from itertools import groupby

from tabulate import tabulate

from h3sim.signals import H2Priority
from validation.http2_frames import FIRST_WINDOW, FrameClient
from validation.tree_servers import path_of, serving

__all__ = ["main"]

_SIZE_BYTES = 131_072
_STREAMS = (3, 5, 7)
_CASES: dict[str, list[tuple[H2Priority | None, str]]] = {
    "no signal": [(None, "")] * 3,
    "weights 1, 16, 256": [(H2Priority(weight=weight), "") for weight in (1, 16, 256)],
    "all weight 16": [(H2Priority(weight=16), "")] * 3,
    "7 exclusively above 5 and 3": [
        *[(H2Priority(weight=256), ""), (H2Priority(weight=1), "")],
        (H2Priority(weight=1, exclusive=True), ""),
    ],
    "u=5; u=3; u=1": [(None, f"u={urgency}") for urgency in (5, 3, 1)],
    "all u=3, i": [(None, "u=3, i")] * 3,
}


def _order(port: int, signals: list[tuple[H2Priority | None, str]]) -> str:
    """Return whose DATA frames come, and how many in a row, once all was asked for."""
    with FrameClient(port, 2**30) as client:
        client.ask(1, path_of(FIRST_WINDOW), None)
        client.flush(answered=[1])
        client.receive(FIRST_WINDOW)
        n_first = len(client.data)
        for stream_id, (priority, field) in zip(_STREAMS, signals, strict=True):
            client.ask(stream_id, path_of(_SIZE_BYTES), priority, field=field)
        client.flush(answered=list(_STREAMS))
        client.open_window(len(_STREAMS) * _SIZE_BYTES)
        client.send()
        client.receive(len(_STREAMS) * _SIZE_BYTES)
        rest = [stream_id for stream_id, _ in client.data[n_first:]]
    return " ".join(f"{stream_id}x{len(list(some))}" for stream_id, some in groupby(rest))


def main() -> int:
    """Print a row for each set of signals."""
    try:
        with serving("nginx", (FIRST_WINDOW, _SIZE_BYTES)) as port:
            rows = [(name, _order(port, signals)) for name, signals in _CASES.items()]
    except FileNotFoundError as error:
        print(f"skipped: {error}")
        return 0
    version = subprocess.run(["nginx", "-v"], capture_output=True, text=True, check=True)  # noqa: S607
    print(version.stderr.strip().removeprefix("nginx version: "), "\n")
    headings = ("streams 3, 5 and 7", "streams of DATA frames, and how many in a row")
    print(tabulate(rows, headings, "github"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
