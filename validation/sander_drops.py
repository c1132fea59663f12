"""Why queues drop what they drop: other controllers over the same pages, and a real server."""

from __future__ import annotations

import gzip
import json
import re
import statistics
from typing import TYPE_CHECKING, Any, NamedTuple

from tabulate import tabulate

from h3sim import catalog, engine
from h3sim.load import LoadConfig
from h3sim.load.network_path import resolve_path
from h3sim.load.run import run_spec
from h3sim.metrics import loss_bursts
from validation.data import STACKS
from validation.measured import read_settings
from validation.modelled import load_of
from validation.sander_runs import BASELINE, pages

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from h3sim.load import Load

__all__ = ["by_controller", "by_real_server"]

_NETWORK = "sander-10mbps-100ms"
_CONTROLLERS = ("cubic-quicly", "cubic", "newreno")
_LABEL = "h2o-q-reno"
_MEASURED = "T1_h2o-q-reno.jsonl.gz"
_QUEUE_DROP = re.compile("1+")
"""In the log of the emulated link, 1 stands for a packet that the queue dropped."""


class Drops(NamedTuple):
    """The share of packets that a load lost, and its longest burst."""

    rate: float
    longest: int


def by_controller(positions: Sequence[int]) -> str:
    """Return a table of what the queue drops at 10 Mbit/s under chrome, for some controllers."""
    rows = []
    for name in _CONTROLLERS:
        setting = LoadConfig(network=_NETWORK, cc=name)
        drops = [_drops(_load(position, setting)) for position in positions]
        longest = sorted(drop.longest for drop in drops)
        rows.append(
            [
                name,
                f"{statistics.median(drop.rate for drop in drops):.1%}",
                f"{statistics.median(longest):g}",
                f"{longest[int(0.9 * len(longest))]}",
                f"{longest[-1]}",
            ]
        )
    headers = ("10 Mbit/s, chrome", "median rate", "longest burst: median", "90 %", "largest")
    return tabulate(rows, headers, disable_numparse=True) + "\n"


def by_real_server() -> str:
    """Return a table of what the queue dropped of a real quicly's packets, and of its profile's.

    The server has Reno there, and five bodies of 200 kB are asked for at once.
    """
    measured: dict[tuple[float, float], list[Drops]] = {}
    for rate_mbps, rtt_ms, drops in _measured():
        measured.setdefault((rate_mbps, rtt_ms), []).append(drops)
    rows = []
    for (rate_mbps, rtt_ms), runs in sorted(measured.items()):
        simulated = _simulated(rate_mbps, rtt_ms)
        rows.append(
            [
                f"{rate_mbps:g} Mbit/s, {rtt_ms:g} ms",
                f"{statistics.median(run.rate for run in runs):.1%}",
                f"{simulated.rate:.1%}",
                f"{statistics.median(run.longest for run in runs):g}",
                f"{simulated.longest}",
            ]
        )
    headers = ("1 MB at once, rr", "rate: measured", "simulated")
    return tabulate(rows, (*headers, "longest burst: measured", "simulated")) + "\n"


def _measured() -> Iterator[tuple[float, float, Drops]]:
    with gzip.open(STACKS / "runs.jsonl.gz", "rt", encoding="utf-8") as lines:
        runs = {(run["setting"], run["rep"]): run["cfg"] for run in map(json.loads, lines)}
    with gzip.open(STACKS / _MEASURED, "rt", encoding="utf-8") as lines:
        for log in map(json.loads, lines):
            cfg: dict[str, Any] = runs[log["setting"], log["rep"]]
            if (cfg["workload"], cfg["scheme"], cfg["loss"]) == ("W1", "rr", 0):
                fates = "".join(map(str, log["emu_down"]["v"]))
                longest = max(map(len, _QUEUE_DROP.findall(fates)), default=0)
                drops = Drops(fates.count("1") / len(fates), longest)
                yield cfg["rate_mbps"], cfg["rtt_ms"], drops


def _simulated(rate_mbps: float, rtt_ms: float) -> Drops:
    """Return what the simulated queue drops of the same download."""
    setting = next(
        setting
        for setting in read_settings()
        if (setting.rate_mbps, setting.rtt_ms) == (rate_mbps, rtt_ms)
        and (setting.label, setting.workload, setting.scheme) == (_LABEL, "W1", "rr")
        and not setting.loss
    )
    load = load_of(setting, seed=0)
    assert load is not None, "without added loss no load stalls"  # noqa: S101
    return _drops(load)


def _load(position: int, setting: LoadConfig) -> Load:
    page = pages()[position]
    path = resolve_path(page, setting)
    return run_spec(
        engine.LoadSpec(
            page,
            scheme=catalog.load_scheme(BASELINE),
            network=path.network,
            profile=path.profile,
        )
    )


def _drops(load: Load) -> Drops:
    packets = load.packets
    longest = max(loss_bursts(load.trace.packet_rows), default=0)
    return Drops(packets.lost / packets.sent, longest)
