"""When the measured QUIC client acknowledges, beside the simulated one."""

from __future__ import annotations

import statistics
from typing import TYPE_CHECKING, NamedTuple

from tabulate import tabulate

from h3sim.values.units import to_ms
from validation.measured import read_acknowledged
from validation.modelled import load_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from h3sim.load import Load
    from validation.measured import Setting

__all__ = ["acks_table"]

_HEADERS = ("link", "packets an ACK", "measured", "waits ms", "measured")
_LEAST_DATA_BYTES = 100


class Waits(NamedTuple):
    """How many packets an ACK covers on average, and how long the first of them waited (median)."""

    packets: float
    wait_ms: float


def acks_table(settings: Iterable[Setting]) -> str:
    """Return a table with a row for each link of which packets were recorded, without added loss.

    A wait is from the packet to the next one that the client sends.
    """
    by_name = {setting.name: setting for setting in settings if not setting.loss}
    rows = []
    for name, arrived_ms, sent_ms in read_acknowledged(by_name):
        load = load_of(by_name[name], 0, record_packets=True)
        if load is not None:
            ours, theirs = waits(*_times(load)), waits(arrived_ms, sent_ms)
            link = f"{by_name[name].rate_mbps:g} Mbit/s, {by_name[name].rtt_ms:g} ms"
            rows.append((link, ours.packets, theirs.packets, ours.wait_ms, theirs.wait_ms))
    return tabulate(sorted(rows), _HEADERS, tablefmt="github", floatfmt=".2f")


def waits(arrived_ms: Sequence[float], sent_ms: Sequence[float]) -> Waits:
    """Return what follows from when packets came and when the client sent one.

    >>> waits([1, 2, 5], [2.5, 6])
    Waits(packets=1.5, wait_ms=1.25)
    """
    counts, waited = [], []
    at = 0
    for now_ms in sent_ms:
        first = at
        while at < len(arrived_ms) and arrived_ms[at] <= now_ms:
            at += 1
        if at > first:
            counts.append(at - first)
            waited.append(now_ms - arrived_ms[first])
    return Waits(statistics.fmean(counts), statistics.median(waited))


def _times(load: Load) -> tuple[list[float], list[float]]:
    """Return when packets with parts of bodies came, and when the client sent one."""
    wire = load.trace.wire
    came = sorted(
        row.arrived_at_ns
        for row in wire
        if row.is_down and row.arrived_at_ns is not None and row.size_bytes >= _LEAST_DATA_BYTES
    )
    sent = sorted(row.sent_at_ns for row in wire if not row.is_down)
    return [float(to_ms(at)) for at in came], [float(to_ms(at)) for at in sent]
