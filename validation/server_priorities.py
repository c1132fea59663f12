"""`make validate-server-priorities`: a server that prioritizes against one that takes turns.

Chrome, Firefox and Safari load pages of the corpus over networks without loss but by full queues,
once from a server that follows their urgencies and once from one with round robin; what each
browser requests, and when, is the same (`tight_mode`). Speedups are geometric means over pages.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tabulate import tabulate

from h3sim import catalog
from h3sim.study import load_study

if TYPE_CHECKING:
    from collections.abc import Iterator

    from h3sim.study import Results

CLIENTS = {"chrome-eps": "chrome-118", "firefox-eps": "off", "safari-eps": "safari"}
"""The urgencies of each browser, and the tight mode of the browser."""
NETWORKS = ("slow-3g", "4g", "cable", "fibre")
SEND_BUFFERS_KB = (0, 1000)
METRICS = {
    "fcp_ms": "FCP",
    "largest_paint_ms": "LCP",
    "speed_index_ms": "SpeedIndex",
}
_PLAIN = "rr"
_FAR = 100.0


def rows(results: Results, scheme: str) -> Iterator[tuple[Any, ...]]:
    """Yield a row per send buffer and network: the speedup in each metric, with its interval."""
    for send_buffer_kb in SEND_BUFFERS_KB:
        for network in NETWORKS:
            some = results.filter(network=network, send_buffer_kb=send_buffer_kb)
            cells = []
            for metric in METRICS:
                row = next(r for r in some.compare(_PLAIN, value=metric) if r.scheme == scheme)
                cells.append(f"{row.geometric:.2f} ({_end(row.low)} to {_end(row.high)})")
            yield scheme, send_buffer_kb, network, *cells


def _end(ratio: float | None) -> str:
    """Return an end of an interval; with few pages that differ, it may lie beyond any meaning."""
    return "?" if ratio is None or not 1 / _FAR < ratio < _FAR else f"{ratio:.2f}"


def main(argv: list[str]) -> int:
    """Run the loads and print the table."""
    parser = argparse.ArgumentParser(prog="validate-server-priorities", description=__doc__)
    parser.add_argument("--every", type=int, default=8, help="use each n-th page of the corpus")
    parser.add_argument("--store", type=Path, help="store finished loads and reuse them")
    parser.add_argument("--workers", type=int)
    options = parser.parse_args(argv)
    pages = [*(catalog.page_set("corpus") or ())][:: options.every]
    body: list[tuple[Any, ...]] = []
    for scheme, tight_mode in CLIENTS.items():
        study = load_study(
            pages,
            schemes=[_PLAIN, scheme],
            browser="parse",
            tight_mode=tight_mode,
            network=list(NETWORKS),
            send_buffer_kb=list(SEND_BUFFERS_KB),
        )
        results = study.run(store=options.store, workers=options.workers)
        body += rows(results, scheme)
    heads = ("client", "send buffer kB", "network", *METRICS.values())
    print(tabulate(body, heads, "github", disable_numparse=True))
    print(f"\n{len(pages)} pages; speedups to {_PLAIN}, 95 % intervals over pages")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
