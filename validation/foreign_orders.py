"""How many logs of servers with other mechanisms, or with none, `identify` gives a name.

`python -m validation.foreign_orders` loads random pages with schemes whose mechanism is not among
those that are tried, and with schedulers that draw streams at random. A name is right for a log
that the mechanism explains in full: its order is the same.
"""

from __future__ import annotations

import argparse
import random
import time
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import h3sim
from h3sim.export.qlog_file import write_load_qlog
from h3sim.identification.identification import identify
from h3sim.values.errors import StalledError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from h3sim.signals import Signal

_SCHEMES = (
    *("wrr", "firefox", "bucket", "bucket-html", "dfifo", "zeroweight", "p+", "s+", "spdyrr"),
)
_REPEATS = (0.0, 0.8, 0.95)
"""How likely the last stream is sent again, at random."""
_RUNS = ((10,), (2, 5, 9, 14))
"""Lengths of runs in packets, of which one is drawn for each run."""
_NETWORKS = ("sander-2mbps-100ms-2pct", "lte", "cable", "wifi-lossy", "marx-2019", "4g")
_CLIENTS = ("fifo", "chrome-eps", "firefox-eps")
_SIDES = {1: "server", 2: "client"}
_MOST_BYTES = 2_000_000
_N_LOADS = 28
_COLUMNS = ("logs", "explained", "named", "CPU s, median", "most")


class RandomScheduler:
    """A scheduler that draws each stream, or how many packets of it to send."""

    def __init__(self, seed: int, repeats: float, runs: tuple[int, ...]) -> None:
        self._rng = random.Random(seed)  # noqa: S311 - nothing is secret
        self._repeats, self._runs = repeats, runs
        self._active: dict[int, None] = {}
        self._last: int | None = None
        self._next: int | None = None
        self._n_left = 0

    def open(self, stream_id: int, signal: Signal) -> None:
        """Ignore the signal."""

    def update(self, stream_id: int, signal: Signal) -> None:
        """Ignore the signal."""

    def activate(self, stream_id: int) -> None:
        """Add a stream."""
        self._active[stream_id] = None

    def deactivate(self, stream_id: int) -> None:
        """Remove a stream."""
        self._active.pop(stream_id, None)

    def close(self, stream_id: int) -> None:
        """Remove a stream."""
        self._active.pop(stream_id, None)

    def charge(self, stream_id: int, n_bytes: int) -> None:  # noqa: ARG002 - a protocol's
        """End the pick."""
        self._last, self._next = stream_id, None

    def pick(self) -> int | None:
        """Return the stream that was drawn for the next packet."""
        if self._next not in self._active:
            self._next = self._draw() if self._active else None
        return self._next

    def _draw(self) -> int:
        self._n_left -= 1
        is_repeated = self._n_left > 0 or self._rng.random() < self._repeats
        if is_repeated and self._last is not None and self._last in self._active:
            return self._last
        self._n_left = self._rng.choice(self._runs) if self._runs else 0
        others = [stream_id for stream_id in self._active if stream_id != self._last]
        return self._rng.choice(others or [*self._active])


def _servers(number: int) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield kinds of servers and the options of a load: one of another scheme, one at random."""
    yield "other scheme", {"scheme": _SCHEMES[number % len(_SCHEMES)]}
    kinds = [*((repeats, ()) for repeats in _REPEATS), *((0.0, runs) for runs in _RUNS)]
    repeats, runs = kinds[number % len(kinds)]
    clients = _CLIENTS[number % len(_CLIENTS)]
    yield (
        "at random",
        {"scheme": clients, "scheduler": lambda: RandomScheduler(number, repeats, runs)},
    )


def main() -> None:
    """Print by kind of server and side of the log how many logs are named."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--loads", type=int, default=_N_LOADS, help="number of loads of each kind")
    parser.add_argument("--first", type=int, default=0, help="number of the first load")
    parser.add_argument("--verbose", action="store_true", help="print each log that is named")
    options = parser.parse_args()
    pages = [
        page
        for page in h3sim.list_pages()
        if len(page.resources) >= 6 and page.total_bytes <= _MOST_BYTES
    ]
    counts: dict[tuple[str, str], Counter[str]] = {}
    seconds: dict[tuple[str, str], list[float]] = {}
    for number in range(options.first, options.first + options.loads):
        rng = random.Random(number)  # noqa: S311 - nothing is secret
        page, network = rng.choice(pages), rng.choice(_NETWORKS)
        for kind, server in _servers(number):
            try:
                load = h3sim.simulate(
                    page, network=network, seed=number, record_packets=True, **server
                )
            except StalledError:
                continue
            with TemporaryDirectory() as folder:
                log = Path(folder) / "load.qlog"
                write_load_qlog(load, log)
                for trace, side in _SIDES.items():
                    start_s = time.process_time()
                    found = identify(log, trace=trace)
                    key = kind, side
                    seconds.setdefault(key, []).append(time.process_time() - start_s)
                    outcome = "none"
                    if found.candidates:
                        is_explained = found.rows[0].explained == found.n_choices
                        outcome = "explained" if is_explained else "named"
                    counts.setdefault(key, Counter()).update({"logs": 1, outcome: 1})
                    if options.verbose and outcome == "named":
                        print(number, server["scheme"], kind, side, page.name, found)
    print(f"{'server':14}{'side':8}" + "".join(f"{name:>15}" for name in _COLUMNS))
    for key, counted in counts.items():
        cells = [str(counted[name]) for name in _COLUMNS[:3]]
        times = sorted(seconds[key])
        cells += [f"{times[len(times) // 2]:.1f}", f"{times[-1]:.1f}"]
        print(f"{key[0]:14}{key[1]:8}" + "".join(f"{cell:>15}" for cell in cells))


if __name__ == "__main__":
    main()
