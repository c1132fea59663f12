"""What a pick costs (`pick` and `charge`), beside the package `priority`, the probe.

All streams stand under the root, with weights of all sizes. "flat" means that all have data;
"blocked" that all but one have none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from priority.priority import PriorityTree
from tabulate import tabulate

from h3sim.schedulers import Queueing, TreeScheduler
from h3sim.signals import H2Priority

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["picks"]

_STREAMS = (10, 100, 1000, 10_000)
_ROUNDS = 5
_PICKS = 10_000
_PROBE_SPAN = 300_000
"""With all but one blocked the probe goes through all of them for each pick: so many in all."""


def _weight(stream_id: int) -> int:
    return 1 + stream_id % 256


def _tree(n_streams: int, queueing: Queueing, active: Sequence[int]) -> Callable[[int], None]:
    """Return what picks and charges so many times."""
    tree = TreeScheduler(queueing=queueing)
    for stream_id in range(1, n_streams + 1):
        tree.open(stream_id, H2Priority(weight=_weight(stream_id)))
    for stream_id in active:
        tree.activate(stream_id)

    def run(n_picks: int) -> None:
        pick, charge = tree.pick, tree.charge
        for _ in range(n_picks):
            stream_id = pick()
            assert stream_id is not None
            charge(stream_id, 1400)

    return run


def _probe(n_streams: int, active: Sequence[int]) -> Callable[[int], None]:
    tree = PriorityTree(maximum_streams=n_streams + 1)
    for stream_id in range(1, n_streams + 1):
        tree.insert_stream(stream_id, weight=_weight(stream_id))
        if stream_id not in active:
            tree.block(stream_id)

    def run(n_picks: int) -> None:
        for _ in range(n_picks):
            tree.next()

    return run


def _row(
    n_streams: int, *, blocked: bool, least_seconds: Callable[..., list[float]]
) -> tuple[str, ...]:
    active = [n_streams // 2] if blocked else range(1, n_streams + 1)
    runs = [_probe(n_streams, active), *(_tree(n_streams, q, active) for q in Queueing)]
    counts = [max(20, _PROBE_SPAN // n_streams) if blocked else _PICKS, *[_PICKS] * len(Queueing)]
    calls = [lambda run=run, n=n: run(n) for run, n in zip(runs, counts, strict=True)]
    seconds = least_seconds(calls, rounds=_ROUNDS)
    probe, *ours = (s / n * 1e6 for s, n in zip(seconds, counts, strict=True))
    name = f"{n_streams:,} {'blocked but one' if blocked else 'flat'}"
    return (name, f"{probe:.2f}", *(f"{us:.2f} ({probe / us:,.1f}x)" for us in ours))


def picks(least_seconds: Callable[..., list[float]]) -> str:
    """Return the table; *least_seconds* times calls in turns."""
    rows = [
        _row(n, blocked=blocked, least_seconds=least_seconds)
        for blocked in (False, True)
        for n in _STREAMS
    ]
    headers = ("streams", "priority", *(f"{q.value}" for q in Queueing))
    title = "us a pick, and how many times as fast as the package priority\n\n"
    align = ("left", *["right"] * (1 + len(Queueing)))
    return title + str(tabulate(rows, headers, colalign=align, disable_numparse=True))
