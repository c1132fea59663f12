"""Do turns that follow the bursts of losses help? `python -m validation.adaptive_turns` (minutes).

Sander 2022 (§ V-D, VI) suggests batched round robin against bursts, with turns that adapt. Round
robin by packets, by turns of 16,000 bytes, and by turns that follow the bursts load a page of 32
resources over 2 Mbit/s and 100 ms, with losses in bursts: bytes that waited within their streams
(HOL blocking), and ByteIndex, each as a share of that of round robin by packets, over seeds.
"""

from __future__ import annotations

import sys
from statistics import fmean

import h3sim

SCHEMES = ("rr", "sander-batched-rr", "adaptive-rr")
NETWORK = "sander-2mbps-100ms"
PAGE = "http2rulez"
LOSSES = (0.005, 0.02, 0.05)
BURSTS = (1, 5, 10, 20)


def row(page: str, loss: float, burst: float, n_seeds: int) -> list[tuple[float, float]]:
    """Return HOL bytes and ByteIndex of each scheme, as shares of those of the first."""
    found = []
    for scheme in SCHEMES:
        loads = [
            h3sim.simulate(
                page, scheme=scheme, network=NETWORK, loss=loss, mean_loss_burst=burst, seed=seed
            )
            for seed in range(n_seeds)
        ]
        blocked = fmean(load.hol.stream_bytes for load in loads)
        found.append((blocked, fmean(load.byte_index() for load in loads)))
    base_bytes, base_ms = found[0]
    return [(blocked / max(base_bytes, 1), index / base_ms) for blocked, index in found]


def main(n_seeds: int) -> None:
    """Print a row for each loss and burst length."""
    print(f"{PAGE} over {NETWORK}, {n_seeds} seeds; shares of rr: HOL bytes, ByteIndex")
    print("loss   burst  " + "  ".join(f"{scheme:>17}" for scheme in SCHEMES[1:]))
    for loss in LOSSES:
        for burst in BURSTS:
            shares = row(PAGE, loss, burst, n_seeds)[1:]
            cells = "  ".join(f"{blocked:>8.2f} {index:>8.2f}" for blocked, index in shares)
            print(f"{loss:>5.1%}  {burst:>5}  {cells}", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 6)
