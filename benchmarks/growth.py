"""`python -m benchmarks.growth`: how the time of metrics grows with bytes and with streams.

Each metric is timed over loads of rising size: over bytes, of 50 streams from 0.1 to 50 MB, and
over streams, from 10 to 20,000 with 20,000 packets in all. Shown is the exponent: how the time
grows with the size, by a line through the logarithms (1: in proportion); and which share of the
load's own time the metric took at the largest.
"""

from __future__ import annotations

import time
from dataclasses import replace
from math import log
from statistics import linear_regression
from typing import TYPE_CHECKING

from tabulate import tabulate

import h3sim
from benchmarks.options import parser_of
from benchmarks.pages import concurrent_page
from benchmarks.timing import least_seconds
from h3sim import metrics
from h3sim.study.worker import row_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from h3sim.load import Load

__all__ = ["growth"]

_ROUNDS = 3
_BYTES = (10**5, 10**6, 5 * 10**6, 2 * 10**7, 5 * 10**7)
_STREAMS = (10, 100, 1000, 5000, 20_000)
_PACKETS = 20_000
_METRICS: dict[str, Callable[[Load], object]] = {
    "timings": lambda load: metrics.timings(load.trace),
    "ByteIndex": lambda load: load.byte_index(),
    "HOL blocking": lambda load: metrics.hol_blocking(load.trace),
    "Sander's count": lambda load: metrics.count_sander(load.trace),
    "stacks": lambda load: metrics.stacks(load.trace),
    "packets": lambda load: metrics.count_packets(load.trace),
    "all of a row": row_of,
}
_PATHS: dict[str, dict[str, object]] = {
    "constant rate": {},
    "QUIC, 2 % loss": {"network": "sander-2mbps-100ms-2pct", "rate_mbps": 100.0},
    "TCP, 2 % loss": {
        "network": "sander-2mbps-100ms-2pct",
        "rate_mbps": 100.0,
        "transport": "tcp",
    },
}


def growth() -> str:
    """Return the table."""
    by_bytes = [(n_bytes, 50, max(50, n_bytes // 1400)) for n_bytes in _BYTES]
    by_streams = [(n_streams, n_streams, _PACKETS) for n_streams in _STREAMS]
    rows = []
    for path, options in _PATHS.items():
        found = [_exponents(options, sizes) for sizes in (by_bytes, by_streams)]
        for name in _METRICS:
            shown = [f"{value:.2f}" for one in found for value in one[name]]
            rows.append((path, name, *shown))
    headers = ("path", "metric", "exponent, bytes", "x load", "exponent, streams", "x load")
    align = ("left", "left", *["right"] * 4)
    return str(tabulate(rows, headers, colalign=align, disable_numparse=True))


def _exponents(
    options: dict[str, object], sizes: list[tuple[int, int, int]]
) -> dict[str, tuple[float, float]]:
    """Return each metric's exponent over *sizes*, and its share of the time of the last load."""
    seconds: dict[str, list[float]] = {name: [] for name in _METRICS}
    for _, n_streams, n_packets in sizes:
        began = time.process_time()
        load = h3sim.simulate(
            concurrent_page(n_streams, n_packets=n_packets),
            scheme="rr",
            **options,  # type: ignore[arg-type]
        )
        took = time.process_time() - began
        # What a load remembers of its figures is forgotten for each round.
        calls = [lambda of=of, load=load: of(replace(load)) for of in _METRICS.values()]
        for name, least in zip(_METRICS, least_seconds(calls, rounds=_ROUNDS), strict=True):
            seconds[name].append(least)
    scale = [log(size) for size, *_ in sizes]
    return {
        name: (linear_regression(scale, [log(s) for s in times]).slope, times[-1] / took)
        for name, times in seconds.items()
    }


if __name__ == "__main__":
    parser_of(__doc__).parse_args()
    print(growth())
