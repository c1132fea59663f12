"""What servers that run as a process make of weights and Priority fields.

`python -m validation.server_orders` asks nginx, Apache and HAProxy of Debian's packages for three
responses at once, and prints whose DATA frames come in which order. Then Apache is led through 30
random workloads, frame by frame, beside the trees of nghttp2.
"""

from __future__ import annotations

import random
import sys
from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING, TypeAlias

from tabulate import tabulate

from h3sim.schedulers import Queueing, TreeRules, TreeScheduler
from h3sim.signals import H2Priority
from validation.http2_frames import FIRST_WINDOW, FrameClient
from validation.tree_servers import path_of, serving, version_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["MODELS", "describe_runs", "main", "run_workload"]

_SIZE_BYTES = 131_072
_STREAMS = (3, 5, 7)
_FRAME_BYTES = 16_384
_OPEN = 2**30
_SEEDS = range(30)
_SIZES = [frames * _FRAME_BYTES + rest for frames in range(2, 9) for rest in (1, 700, 12_000)]
_Signals: TypeAlias = list[tuple[H2Priority | None, str]]
_CASES: dict[str, _Signals] = {
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


def _order_by_connection(port: int, signals: _Signals) -> list[int]:
    with FrameClient(port, _OPEN) as client:
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
        return [stream_id for stream_id, _ in client.data[n_first:]]


def _order_by_streams(port: int, signals: _Signals) -> list[int]:
    with FrameClient(port, _FRAME_BYTES) as client:
        client.open_window(_OPEN)
        for stream_id, (priority, field) in zip(_STREAMS, signals, strict=True):
            client.ask(stream_id, path_of(_SIZE_BYTES), priority, field=field)
            client.flush(answered=[stream_id])
            client.receive(_FRAME_BYTES)
        n_first = len(client.data)
        for stream_id in _STREAMS:
            client.open_window(_SIZE_BYTES, stream_id)
        client.send()
        client.receive(len(_STREAMS) * (_SIZE_BYTES - _FRAME_BYTES))
        return [stream_id for stream_id, _ in client.data[n_first:]]


def _tree(rules: TreeRules) -> TreeScheduler:
    queueing = Queueing.NGHTTP2
    return TreeScheduler(
        queueing=queueing,
        orphans=queueing.orphans,
        unknown_parent=queueing.unknown_parent,
        rules=rules,
    )


_SERVERS: dict[str, Callable[[int, _Signals], list[int]]] = {
    "nginx": _order_by_connection,
    "apache2": _order_by_streams,
    "haproxy": _order_by_streams,
}
"""How each server comes to have three responses to choose from.

While the window of the connection is shut, Apache and HAProxy hold back HEADERS of new responses;
so there the windows of the streams are shut, behind a first frame of each. nginx would send all of
a stream before it reads that the next one's window is open, too.
"""
MODELS: dict[str, Callable[[], TreeScheduler]] = {
    "nghttp2, closed streams dropped": partial(_tree, TreeRules.NODE),
    "nghttp2, closed streams kept": partial(_tree, TreeRules.NGHTTP2),
}
"""What Apache is held to: nghttp2's tree as Node has it, and as nghttpd does."""


def run_workload(
    client: FrameClient, model: TreeScheduler, seed: int
) -> list[tuple[int, int | None]]:
    """Return of each DATA frame whose it is, and whose the model would have sent."""
    return _Workload(client, model, seed).run()


class _Workload:
    """A connection whose responses come late, stall and are reprioritized."""

    def __init__(self, client: FrameClient, model: TreeScheduler, seed: int) -> None:
        self._client, self._model = client, model
        self._rng = random.Random(seed)  # noqa: S311 - a test
        self._left: dict[int, int] = {}
        self._windows: dict[int, int] = {}
        self._picks: list[tuple[int, int | None]] = []
        self._n_read = 0
        self._next_id = 1

    def run(self) -> list[tuple[int, int | None]]:
        """Go on until every response is sent."""
        rng, n_late = self._rng, self._rng.randint(1, 4)
        self._client.open_window(_OPEN)
        for _ in range(rng.randint(3, 6)):
            self._ask()
        while self._left:
            if n_late and rng.random() < 0.5:
                n_late -= 1
                self._ask()
            self._go_on()
        return self._picks

    def _priority(self, stream_id: int) -> H2Priority:
        rng = self._rng
        parents = [each for each in self._left if each != stream_id]
        parent = rng.choice(parents) if parents and rng.random() < 0.4 else None
        weight = rng.choice((1, 16, 32, 100, 183, 256))
        return H2Priority(weight=weight, depends_on=parent, exclusive=rng.random() < 0.2)

    def _ask(self) -> None:
        """Ask for a response while no other may send, and take its first frame."""
        stream_id, self._next_id = self._next_id, self._next_id + 2
        size_bytes, priority = self._rng.choice(_SIZES), self._priority(stream_id)
        self._left[stream_id], self._windows[stream_id] = size_bytes, _FRAME_BYTES
        self._model.open(stream_id, priority)
        self._model.activate(stream_id)
        self._client.ask(stream_id, path_of(size_bytes), priority)
        self._client.flush(answered=[stream_id])
        self._follow()

    def _go_on(self) -> None:
        """Reprioritize and open windows in one batch, then let all go that may."""
        rng, waiting = self._rng, list(self._left)
        for stream_id in rng.sample(waiting, rng.randint(1, len(waiting))):
            if rng.random() < 0.3:
                priority = self._priority(stream_id)
                self._client.prioritize(stream_id, priority)
                self._model.update(stream_id, priority)
            n_bytes = rng.randint(1, 5) * _FRAME_BYTES - rng.choice((0, 99))
            self._client.open_window(n_bytes, stream_id)
            self._windows[stream_id] += n_bytes
            self._model.activate(stream_id)
        self._client.send()
        self._follow()

    def _follow(self) -> None:
        """Read what may be sent, and charge the model for it as the server sent it."""
        sendable = sum(min(left, self._windows[each]) for each, left in self._left.items())
        self._client.receive(sendable)
        stalled = []
        for stream_id, n_bytes in self._client.data[self._n_read :]:
            if not n_bytes:
                continue  # ends a stream all of whose bytes were sent
            self._picks.append((stream_id, self._model.pick()))
            self._model.charge(stream_id, n_bytes)
            self._left[stream_id] -= n_bytes
            self._windows[stream_id] -= n_bytes
            if not self._left[stream_id]:
                self._model.deactivate(stream_id)
                self._model.close(stream_id)
                del self._left[stream_id], self._windows[stream_id]
            elif not self._windows[stream_id]:
                self._model.block(stream_id)
                stalled.append(stream_id)
        self._n_read = len(self._client.data)
        for stream_id in stalled:  # nothing else may be sent, so each was next once
            self._model.deactivate(stream_id)


def describe_runs(order: Sequence[int]) -> str:
    """Return whose frames follow each other and how many in a row, with cycles counted.

    >>> describe_runs([3, 3, 3, 5, 7, 5, 7, 5, 7, 3])
    '3x3, 3 times (5x1 7x1), 3x1'
    """
    runs = [f"{stream_id}x{len(list(run))}" for stream_id, run in groupby(order)]
    parts: list[str] = []
    while runs:
        n_cycles, length = max((_count_cycles(runs, length), -length) for length in (1, 2, 3))
        cycle = runs[:-length]
        parts.append(f"{n_cycles} times ({' '.join(cycle)})" if n_cycles > 1 else cycle[0])
        del runs[: n_cycles * -length]
    return ", ".join(parts)


def _count_cycles(runs: Sequence[str], length: int) -> int:
    n_cycles = 1
    while runs[n_cycles * length :][:length] == runs[:length]:
        n_cycles += 1
    return n_cycles


def _orders(server: str, port: int) -> list[list[str]]:
    version, order = version_of(server), _SERVERS[server]
    return [[version, name, describe_runs(order(port, some))] for name, some in _CASES.items()]


def _workloads(port: int) -> list[list[object]]:
    rows: list[list[object]] = []
    for name, build_model in MODELS.items():
        n_frames = n_same = n_identical = 0
        for seed in _SEEDS:
            with FrameClient(port, _FRAME_BYTES) as client:
                picks = run_workload(client, build_model(), seed)
            same = sum(real == modelled for real, modelled in picks)
            n_frames, n_same = n_frames + len(picks), n_same + same
            n_identical += same == len(picks)
        rows.append([name, n_frames, n_same, f"{n_identical} of {len(_SEEDS)}"])
    return rows


def main() -> int:
    """Print the orders of each server that is installed, and the workloads of Apache."""
    orders: list[list[str]] = []
    workloads: list[list[object]] = []
    for server in _SERVERS:
        try:
            with serving(server, (FIRST_WINDOW, _SIZE_BYTES, *_SIZES)) as port:
                orders += _orders(server, port)
                workloads += _workloads(port) if server == "apache2" else []
        except FileNotFoundError as error:
            print(f"skipped: {error}")
    headings = ("server", "streams 3, 5 and 7", "streams of DATA frames, and how many in a row")
    print(tabulate(orders, headings, "github"), "\n")
    print(
        tabulate(workloads, ("model of Apache", "frames", "same", "identical workloads"), "github")
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
