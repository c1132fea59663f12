"""How long 10 MB take over a path that reorders: `python -m validation.reordering` (a minute).

The path is that of cloudflare/quiche#470: 10 ms one way, each packet up to 1 ms earlier or later,
in both directions; here of 100 Mbit/s. Each row changes the rules of one stack for packets that
arrive late.
"""

from __future__ import annotations

import statistics
from typing import Any

from tabulate import tabulate

import h3sim
from h3sim.page import synthetic
from h3sim.transport.link_profile import LinkJitter, LinkProfile
from h3sim.transport.network import Network
from h3sim.values.units import mbps, ms

__all__ = ["NETWORK", "ROWS", "main", "seconds"]

_LINK = LinkProfile(
    rate_bps=mbps(100), jitter=LinkJitter(mean_ns=ms(1), deviation_ns=ms(1), reorder=True)
)
NETWORK = Network(name="reordering", rtt_ns=ms(18), down=_LINK)
_BYTES = 10 * 2**20
_SEEDS = range(5)
ROWS: tuple[tuple[str, str, dict[str, Any], float | None], ...] = (
    ("3 packets, never more", "quiche-chrome", {"reordering": "fixed", "undo": "none"}, 31.92),
    ("adapted as quiche does, nothing undone", "quiche-chrome", {"undo": "none"}, None),
    ("quiche of 2026", "quiche-chrome", {}, None),
    ("adapted, and undone into slow start too", "quiche-chrome", {"undo": "episode"}, 1.85),
    ("adapted as quicly does", "quiche-chrome", {"reordering": "quicly", "undo": "none"}, None),
    ("adapted as mvfst can", "quiche-chrome", {"reordering": "mvfst", "undo": "none"}, None),
    (
        "100 packets, the time threshold alone",
        "quiche-chrome",
        {"reordering": "fixed", "undo": "none", "packet_threshold": 100},
        None,
    ),
    (
        "100 packets, and 2 round trips",
        "quiche-chrome",
        {"reordering": "fixed", "undo": "none", "packet_threshold": 100, "time_threshold": 2.0},
        None,
    ),
    ("RACK and undo (Linux)", "linux-tcp", {}, None),
)
"""What is changed, the profile, its settings of QUIC, and the seconds reported there."""


def seconds(profile_name: str, quic: dict[str, Any], seed: int) -> float:
    """Return how long the download takes."""
    profile = h3sim.load_profile(profile_name)
    load = h3sim.simulate(
        synthetic(n_resources=1, total_bytes=_BYTES),
        scheme="fifo",
        network=NETWORK,
        transport_profile=profile.with_(quic=quic) if quic else profile,
        seed=seed,
    )
    return load.page_load_ms / 1000


def main() -> None:
    """Print the table."""
    rows: list[list[Any]] = []
    for rule, profile_name, quic, reported in ROWS:
        taken = [seconds(profile_name, quic, seed) for seed in _SEEDS]
        spread = f"{min(taken):.2f} to {max(taken):.2f}"
        rows.append([rule, f"{statistics.mean(taken):.2f}", spread, reported])
    print(f"10 MiB, 100 Mbit/s, 20 ms +- 1 ms each way, reordered; {len(_SEEDS)} seeds")
    print(tabulate(rows, headers=["late packets", "mean s", "range s", "reported s"]))


if __name__ == "__main__":
    main()
