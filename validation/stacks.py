"""`make validate-stacks`: simulated downloads beside downloads measured with real stacks.

The measurements stand beside the checkout, in ../shared/data/stacks; its README is the data
dictionary. For each setting the same bodies are loaded over the same link with the profile of the
stack, and total time, mean completion and head-of-line bytes (Sander's count) are compared with the
measured medians. With loss, simulated medians are over 30 seeds.
"""

from __future__ import annotations

import contextlib
import json
import math
import statistics
import sys
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from tabulate import tabulate

import h3sim
from h3sim.errors import StalledError
from h3sim.page import Page, page_from_dict
from h3sim.schemes import Scheme, scheme_from_dict
from h3sim.transport import LinkProfile, Network
from h3sim.units import mbps, ms

DATA = Path(__file__).resolve().parents[2] / "shared" / "data" / "stacks"
PROFILES = {
    "h2o-q-reno": "quicly",
    "aioq-reno": "aioquic",
    "h2-h2o": "linux-tcp",
    "h2-nghttpd": "linux-tcp",
}
SEEDS = 30
_KINDS = ("document", "stylesheet", "script", "font", "image")
_WEIGHTS = (256, 32, 16, 16, 8)


class Row(NamedTuple):
    """One setting: simulated over measured, and head-of-line bytes of both."""

    setting: str
    total: float
    mean: float
    hol: float
    measured_hol: float
    simulated_total_ms: float
    simulated_mean_ms: float


def page_of(workload: str) -> Page:
    """Return the page of a workload: W1 asks for all at once, W3 for the rest after the first."""
    entries = json.loads((DATA / "workloads.json").read_text())[workload]
    resources: list[dict[str, Any]] = []
    for place, entry in enumerate(entries):
        resource = {
            "id": entry["name"],
            "kind": _KINDS[place % len(_KINDS)] if workload == "W1" else "other",
            "bytes": entry["size"],
        }
        if place:
            resource["discovered"] = {"at": "time"}
            if entry["deps"]:
                parent = entries[entry["deps"][0]]["name"]
                resource["discovered"] = {"by": parent, "at": "complete"}
        resources.append(resource)
    return page_from_dict({"format": "h3sim-page/1", "name": workload, "resources": resources})


def scheme_of(name: str) -> Scheme | None:
    """Return the scheme of that name, None where there is none of the kind."""
    if name in ("fifo", "rr"):
        return h3sim.load_scheme(name)
    if name != "wrr":
        return None
    return scheme_from_dict(
        {
            "format": "h3sim-scheme/1",
            "name": "wrr-w1",
            "title": "wrr",
            "mechanism": "tree",
            "signalling": "server",
            "source": "the measurement",
            "classes": {
                kind: {"weight": weight} for kind, weight in zip(_KINDS, _WEIGHTS, strict=True)
            },
            "rules": [{"kind": kind, "class": kind} for kind in _KINDS],
        }
    )


def network_of(cfg: dict[str, Any]) -> Network:
    """Return the link of a setting: queue and bottleneck both ways, loss only down."""
    rate, rtt_ms = cfg["rate_mbps"], cfg["rtt_ms"]
    limit = cfg.get("queue_bytes") or math.ceil(rate / 8 * 1024**2 * rtt_ms / 1000)
    loss, burst = cfg["loss"] if isinstance(cfg["loss"], list) else (cfg["loss"], None)
    up = LinkProfile(rate_bps=mbps(rate), queue_bytes=limit, frame_overhead_bytes=14)
    down = replace(up, loss=loss, loss_burst=burst)
    return Network(name="measured", rtt_ns=ms(rtt_ms), down=down, up=up)


def simulate(cfg: dict[str, Any], seed: int) -> tuple[float, float, float] | None:
    """Return total time, mean completion and head-of-line bytes of one simulated download."""
    scheme = scheme_of(cfg["scheme"])
    if scheme is None or (cfg["scheme"] == "wrr" and cfg["workload"] != "W1"):
        return None
    load = h3sim.simulate(
        page_of(cfg["workload"]),
        scheme=scheme,
        network=network_of(cfg),
        transport_profile=PROFILES[cfg["label"]],
        handshake="none",
        seed=seed,
    )
    finished = [timing.finished_ms for timing in load.timings]
    hol = load.hol
    counted = hol.sander_stream_bytes if cfg["proto"] == "h3" else hol.connection_bytes
    return load.page_load_ms, statistics.fmean(finished), counted


def compare(setting: dict[str, Any]) -> Row | None:
    """Return how near the simulation of one setting comes."""
    cfg = setting["cfg"]
    known = []
    for seed in range(SEEDS if cfg["loss"] else 1):
        # A burst that outlasts an hour of doubled timeouts is left out, as Sander 2022 does.
        with contextlib.suppress(StalledError):
            run = simulate(cfg, seed)
            if run is not None:
                known.append(run)
    if not known:
        return None
    total, mean, hol = (statistics.median(values) for values in zip(*known, strict=True))
    # The measured head-of-line bytes are given in kB.
    return Row(
        setting["setting"],
        total / setting["plt"][0],
        mean / setting["mean"][0],
        hol / 1000,
        setting["hol"][0],
        total,
        mean,
    )


def main(argv: list[str]) -> int:
    """Print the table; arguments pick the settings whose names contain one of them."""
    if not DATA.is_dir():
        print("the measurements are not here: nothing is compared")
        return 0
    lines = (DATA / "settings.jsonl").read_text().splitlines()
    settings = [json.loads(line) for line in lines]
    wanted = [s for s in settings if not argv or any(part in s["setting"] for part in argv)]
    with ProcessPoolExecutor(max_workers=2) as pool:
        rows = [row for row in pool.map(compare, wanted) if row is not None]
    headers = ("setting", "total", "mean", "HOL kB", "measured", "total ms", "mean ms")
    formats = ("", ".3f", ".3f", ".0f", ".0f", ".0f", ".0f")
    print(tabulate(rows, headers, floatfmt=formats))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
