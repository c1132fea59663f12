"""`python -m benchmarks.memory`: what loads of a million packets take in memory.

Each is loaded, and all its figures worked out, in a process of its own. Shown are the most that the
process had, with the interpreter and h3sim, after the load and after its figures; and what the
columns of its trace take. Over links there are a tenth as many packets, for those take a while.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tabulate import tabulate

from benchmarks.options import parser_of

__all__ = ["memory"]

_CASES: dict[str, tuple[int, dict[str, object]]] = {
    "constant rate": (1_000_000, {}),
    "constant rate, packets held": (1_000_000, {"reorder": "4:1-3"}),
    "QUIC, CUBIC, 2 % loss": (100_000, {"network": "sander-2mbps-100ms-2pct", "rate_mbps": 1000.0}),
    "TCP, CUBIC, 2 % loss": (
        100_000,
        {"network": "sander-2mbps-100ms-2pct", "transport": "tcp", "rate_mbps": 1000.0},
    ),
}
_LOAD = """
import resource
import h3sim
from benchmarks.pages import concurrent_page
from h3sim.study.worker import row_of

def peak_mb():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000

load = h3sim.simulate(concurrent_page(50, n_packets={n_packets}), scheme="rr", **{options})
loaded = peak_mb()
row_of(load)
columns = {{id(column): column for column in load.trace.packet_rows.columns}}
kept = sum(8 * len(c) for c in columns.values() if not isinstance(c, range)) / 1e6
print(load.packets.sent, loaded, peak_mb(), kept)
"""


def memory() -> str:
    """Return the table."""
    rows = []
    for name, (n_packets, options) in _CASES.items():
        code = _LOAD.format(n_packets=n_packets, options=options)
        done = subprocess.run(
            [sys.executable, "-c", code],
            cwd=Path(__file__).resolve().parents[1],
            capture_output=True,
            text=True,
            check=True,
        )
        sent, *megabytes = done.stdout.split()
        rows.append((name, f"{int(sent):,}", *(f"{float(mb):.0f}" for mb in megabytes)))
    headers = ("load", "packets", "peak MB, loaded", "peak MB, measured", "MB of columns")
    align = ("left", *["right"] * 4)
    return str(tabulate(rows, headers, colalign=align, disable_numparse=True))


if __name__ == "__main__":
    parser_of(__doc__).parse_args()
    print(memory())
