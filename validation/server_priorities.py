"""`make validate-server-priorities`: what a server that prioritizes is worth to each browser.

It runs the shipped study `models/studies/server-scheduling`: Chrome, Firefox and Safari load pages
of the corpus over networks without loss but by full queues, from a server that follows their
urgencies, from one that takes turns and from one that sends in order. What each browser requests,
and when, is the same (`tight_mode`). Speedups are geometric means over pages.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tabulate import tabulate

from h3sim.study.study_file import read_study

if TYPE_CHECKING:
    from collections.abc import Iterator

    from h3sim.study import Results

STUDY = Path("models/studies/server-scheduling/server-scheduling.toml")
SERVERS = {
    "chrome-eps": ("rr", "fifo"),
    "firefox-eps": ("firefox-rr", "firefox-fifo"),
    "safari-eps": ("safari-rr", "safari-fifo"),
}
"""The plain servers that each browser's urgencies are compared with."""
METRICS = {
    "fcp_ms": "FCP",
    "largest_paint_ms": "LCP",
    "speed_index_ms": "SpeedIndex",
}
_AXES = ("send_buffer_kb", "network")
_PLAIN = ("in turns", "in order")
_FAR = 100.0


def rows(results: Results) -> Iterator[tuple[Any, ...]]:
    """Yield a row per plain server, browser, send buffer and network: speedups and intervals."""
    axes = {name: dict.fromkeys(results.column(name)) for name in _AXES}
    for plain, title in enumerate(_PLAIN):
        for scheme, servers in SERVERS.items():
            for send_buffer_kb in axes["send_buffer_kb"]:
                for network in axes["network"]:
                    here = {"network": network, "send_buffer_kb": send_buffer_kb}
                    some = results.filter(scheme=[servers[plain], scheme], **here)
                    cells = []
                    for metric in METRICS:
                        compared = some.compare(servers[plain], value=metric)
                        row = next(r for r in compared if r.scheme == scheme)
                        cells.append(f"{row.geometric:.2f} ({_end(row.low)} to {_end(row.high)})")
                    yield title, scheme, f"{send_buffer_kb:g}", network, *cells


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
    study = read_study(STUDY)
    pages = study.design.pages[:: options.every]
    study = replace(study, design=replace(study.design, pages=pages))
    results = study.run(store=options.store, workers=options.workers)
    heads = ("plain server", "browser", "send buffer kB", "network", *METRICS.values())
    print(tabulate([*rows(results)], heads, "github", disable_numparse=True))
    print(f"\n{len(pages)} pages; speedups to the plain server, 95 % intervals over pages")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
