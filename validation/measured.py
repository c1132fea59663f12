"""Downloads measured with real stacks, as values.

They are in validation/data/stacks; its README is the data dictionary.
"""

from __future__ import annotations

import functools
import gzip
import json
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from h3sim.transport.link import make_loss
from h3sim.transport.link_profile import LinkProfile
from h3sim.values.rng import substream
from validation.data import STACKS

if TYPE_CHECKING:
    from collections.abc import Container, Iterator

__all__ = [
    "Run",
    "Setting",
    "read_acknowledged",
    "read_runs",
    "read_settings",
    "read_workload",
]

_TRACES = "T1_h2o-q-reno.jsonl.gz"
_RANDOM_LOSS = "2"
_QUEUE_DROP = "1"
_LONGEST_PACKETS = 5000
_TICKS_PER_MS = 100
_LEAST_DATA_BYTES = 100
"""A smaller packet carries no part of a body."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """A stack, a scheme, a workload and a link, and the medians of what was measured there.

    *loss* and *loss_burst* are what the link adds; *queue_bytes* is None for one BDP.
    *hol_bytes* is Sander's count within streams for HTTP/3, that of one order for HTTP/2.
    """

    name: str
    label: str
    is_http3: bool
    scheme: str
    workload: str
    rate_mbps: float
    rtt_ms: float
    queue_bytes: int | None
    loss: float
    loss_burst: float | None
    total_ms: float
    mean_ms: float
    hol_bytes: float

    @property
    def cell(self) -> str:
        """All but the scheme: what schemes are compared in."""
        return self.name.replace(f"_{self.scheme}_", "_", 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One download, and which packets the link lost at random, counted behind the queue.

    Those with fewer than *lost_from_bytes* are not counted.
    """

    setting: str
    total_ms: float
    mean_ms: float
    hol_bytes: float
    lost: tuple[int, ...]
    lost_from_bytes: int


def read_settings() -> list[Setting]:
    """Return all settings in the order of the file."""
    lines = (STACKS / "settings.jsonl").read_text().splitlines()
    return [_setting(json.loads(line)) for line in lines]


def _setting(entry: dict[str, Any]) -> Setting:
    cfg = entry["cfg"]
    loss, burst = _loss_of(cfg["loss"])
    return Setting(
        name=entry["setting"],
        label=cfg["label"],
        is_http3=cfg["proto"] == "h3",
        scheme=cfg["scheme"],
        workload=cfg["workload"],
        rate_mbps=cfg["rate_mbps"],
        rtt_ms=cfg["rtt_ms"],
        queue_bytes=cfg.get("queue_bytes"),
        loss=loss,
        loss_burst=burst,
        total_ms=entry["plt"][0],
        mean_ms=entry["mean"][0],
        hol_bytes=entry["hol"][0] * 1000,
    )


def read_runs() -> list[Run]:
    """Return the downloads over links that added loss.

    Which packets were lost was recorded for one stack. The emulator drew losses by a packet's place
    behind the queue, from the seed of the run: the record shows the same places for all schemes.
    So a run of another stack met the losses that the record has for its seed. They reach as far as
    the recorded download did, and up to there their number is what was counted in the other runs;
    behind that they are drawn anew.

    Where the record is of the run itself, packets that are an acknowledgement alone are left out.
    """
    own, by_seed = _recorded_losses()
    runs = []
    for entry in _lines("runs.jsonl.gz"):
        cfg = entry["cfg"]
        if not cfg["loss"]:
            continue
        name = entry["setting"]
        lost = own.get((name, entry["rep"]))
        runs.append(
            Run(
                setting=name,
                total_ms=entry["plt_ms"],
                mean_ms=entry["mean_done_ms"],
                hol_bytes=entry["stream_hol"] if cfg["proto"] == "h3" else entry["tcp_hol"],
                lost=_continued(cfg["loss"], entry["seed"], *by_seed[_kind(name), entry["seed"]])
                if lost is None
                else lost,
                lost_from_bytes=0 if lost is None else _LEAST_DATA_BYTES,
            )
        )
    return sorted(runs, key=lambda run: run.setting)


def read_acknowledged(names: Container[str]) -> Iterator[tuple[str, list[float], list[float]]]:
    """Yield when data packets came and when the client sent one, in ms, of the settings *names*.

    Of each link one download under rr of five bodies: its name, and both times.
    """
    links = set()
    for entry in _lines(_TRACES):
        name, link = entry["setting"], entry["setting"].partition("_W")[2]
        if name not in names or link in links or "_rr_W1_" not in name:
            continue
        links.add(link)
        came: dict[int, float] = {}
        frames = entry["frames"]
        for at, number in zip(accumulate(frames["t"]), accumulate(frames["pn"]), strict=True):
            came.setdefault(number, at / _TICKS_PER_MS)
        sent = [at / _TICKS_PER_MS for at in accumulate(entry["emu_up"]["t"])]
        yield name, list(came.values()), sent


def _continued(
    loss: float | list[float], seed: int, reach: int, lost: tuple[int, ...]
) -> tuple[int, ...]:
    """Return *lost* packets, and behind *reach* random ones as the link would have lost them."""
    mean, burst = _loss_of(loss)
    process = make_loss(
        LinkProfile(loss=mean, loss_burst=burst), lambda _: substream(seed, "validation.loss")
    )
    assert process is not None  # noqa: S101 - only runs with loss are read
    return lost + tuple(n for n in range(reach, _LONGEST_PACKETS) if process.is_lost())


def _loss_of(loss: float | list[float]) -> tuple[float, float | None]:
    """Return mean loss and mean burst."""
    return (loss[0], loss[1]) if isinstance(loss, list) else (loss, None)


def _recorded_losses() -> tuple[
    dict[tuple[str, int], tuple[int, ...]], dict[tuple[str, int], tuple[int, tuple[int, ...]]]
]:
    """Return lost packets by setting and repetition, and by kind of loss and seed.

    The latter are from the longest record, with the number of packets that it has.
    """
    own: dict[tuple[str, int], tuple[int, ...]] = {}
    longest: dict[tuple[str, int], tuple[int, tuple[int, ...]]] = {}
    for entry in _lines(_TRACES):
        down = entry["emu_down"]
        packets = zip("".join(map(str, down["v"])), down["size"], strict=True)
        passed = [packet for packet in packets if packet[0] != _QUEUE_DROP]
        name, key = entry["setting"], (_kind(entry["setting"]), entry["seed"])
        own[name, entry["rep"]] = _lost([p for p in passed if p[1] >= _LEAST_DATA_BYTES])
        longest[key] = max(longest.get(key, (0, ())), (len(passed), _lost(passed)))
    return own, longest


def _lost(packets: list[tuple[str, int]]) -> tuple[int, ...]:
    return tuple(n for n, (verdict, _) in enumerate(packets) if verdict == _RANDOM_LOSS)


def _kind(setting: str) -> str:
    """Return the part of a setting's name that says what loss the link adds."""
    return setting.rsplit("_l", 1)[1]


def _lines(name: str) -> Iterator[dict[str, Any]]:
    with gzip.open(STACKS / name, "rt") as lines:
        for line in lines:
            yield json.loads(line)


@functools.cache
def read_workload(name: str) -> list[dict[str, Any]]:
    """Return the resources of a workload, as they stand in the file."""
    workload: list[dict[str, Any]] = json.loads((STACKS / "workloads.json").read_text())[name]
    return workload
