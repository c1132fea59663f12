"""`make validate-header-blocking`: what header blocking adds to a page, beside what bodies add.

Each page is loaded twice with the same codec and the same losses: as it is, and as if every section
could be read once it is there. What lies between is blocking, and nothing else. For bodies, the
same load is asked when its bytes would have been there in the one order in which they were sent.
"""

from __future__ import annotations

import argparse
import itertools
import statistics
import sys
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from tabulate import tabulate

import h3sim
from h3sim import catalog
from h3sim.headers import HeaderCompression
from h3sim.load import LoadConfig
from h3sim.load.run import resolve, run_spec
from h3sim.trace import delivered_in_one_order, delivered_per_stream

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from h3sim.load import Load

CODECS = ("hpack", "qpack", "qcram", "static")
SCHEMES = ("chrome-eps", "rr")
RTTS_MS = (30.0, 100.0, 300.0)
LOSSES = (0.0, 0.01, 0.03)
NETWORK = "4g"
_PAGES = ("corpus:small", "corpus:medium", "corpus:large")
_EVERY = 8
"""One page of so many is loaded."""
_SEEDS = 3


class Job(NamedTuple):
    """What is loaded, with which codec, over which path."""

    page: str
    scheme: str
    codec: str
    rtt_ms: float
    loss: float
    seed: int


class Added(NamedTuple):
    """What blocking adds, in percent: headers to ByteIndex and page load, bodies to both."""

    byte_index: float
    page_load: float
    bodies_byte_index: float
    bodies_page_load: float


def added(job: Job) -> Added:
    """Return what blocking adds to a load."""
    blocking, free = (_load(job, blocks=blocks) for blocks in (True, False))
    in_one_order = _in_one_order(free)
    index, load_ms = _figures(free)
    return Added(
        *(
            100 * (now / then - 1)
            for now, then in zip(_figures(blocking), (index, load_ms), strict=True)
        ),
        *(
            100 * (now / then - 1)
            for now, then in zip(_figures(in_one_order), (index, load_ms), strict=True)
        ),
    )


def _figures(load: Load) -> tuple[float, float]:
    finished_ms = max(row.finished_ms for row in load.timings)
    return load.byte_index("all"), finished_ms


def _load(job: Job, *, blocks: bool) -> Load:
    config = LoadConfig(network=NETWORK, rtt_ms=job.rtt_ms, loss=job.loss, seed=job.seed)
    spec = resolve(h3sim.load_page(job.page), h3sim.load_scheme(job.scheme), config)
    headers = HeaderCompression(codec=job.codec, blocks=blocks)
    return run_spec(replace(spec, header_compression=headers))


def _in_one_order(load: Load) -> Load:
    """Return the load as if its bytes had been delivered in the order in which they were sent."""
    rows = load.trace.packet_rows
    times = delivered_in_one_order(rows, delivered_per_stream(rows))
    return replace(load, trace=replace(load.trace, packet_rows=rows.with_delivery_at(times)))


def main(argv: Sequence[str] | None = None) -> int:
    """Print two tables."""
    parser = argparse.ArgumentParser(prog="header-blocking", description=__doc__)
    parser.add_argument("--every", type=int, default=_EVERY, help="load one page of so many")
    parser.add_argument("--seeds", type=int, default=_SEEDS, help="seeds for each lossy path")
    options = parser.parse_args(argv)
    names = [page for group in _PAGES for page in catalog.page_set(group) or ()]
    names = names[:: options.every]
    cells = itertools.product(names, SCHEMES, CODECS, RTTS_MS, LOSSES, range(options.seeds))
    # Without loss nothing is drawn, and one seed is all.
    jobs = [job for job in itertools.starmap(Job, cells) if job.loss or not job.seed]
    with ProcessPoolExecutor(max_workers=2) as pool:
        results = dict(zip(jobs, pool.map(added, jobs, chunksize=8), strict=True))
    print(f"{len(names)} pages over {NETWORK}, {options.seeds} seeds; mean and most, in %")
    headers = ("scheme", "RTT ms", "loss %", *CODECS, "bodies")
    for title, position in (("ByteIndex", 0), ("page load", 1)):
        rows = [
            _row(results, scheme, rtt_ms, loss, position)
            for scheme, rtt_ms, loss in itertools.product(SCHEMES, RTTS_MS, LOSSES)
        ]
        print(f"\nwhat blocking adds to {title}: headers by codec, and bodies")
        align = ("left", *("right",) * (len(headers) - 1))
        print(tabulate(rows, headers, disable_numparse=True, colalign=align))
    return 0


def _row(
    results: Mapping[Job, Added], scheme: str, rtt_ms: float, loss: float, position: int
) -> tuple[str, ...]:
    cells = {
        codec: [
            result
            for job, result in results.items()
            if (job.scheme, job.codec, job.rtt_ms, job.loss) == (scheme, codec, rtt_ms, loss)
        ]
        for codec in CODECS
    }
    by_codec = [_mean_and_most([entry[position] for entry in cells[codec]]) for codec in CODECS]
    # Of loads in which no header waits.
    bodies = _mean_and_most([entry[position + 2] for entry in cells["static"]])
    return scheme, f"{rtt_ms:g}", f"{100 * loss:g}", *by_codec, bodies


def _mean_and_most(values: Sequence[float]) -> str:
    return f"{statistics.fmean(values):.2f}, {max(values):.1f}"


if __name__ == "__main__":
    sys.exit(main())
