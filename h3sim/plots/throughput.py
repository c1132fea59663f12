"""Throughput over time: how fast bytes of responses arrived, and how fast they were of use."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from h3sim.plots.labels import plain
from h3sim.plots.style import SMALL
from h3sim.units import to_ms

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from h3sim.trace import Trace

__all__ = ["Bin", "bins_of", "draw"]

_BINS = 60
_ARRIVED, _DELIVERED = "#7d9dc4", "#1b1b1b"


class Bin(NamedTuple):
    """What came in a span of time that begins at *start_ms*."""

    start_ms: float
    arrived_mbps: float
    """Bytes of responses that came over the link, copies too."""
    delivered_mbps: float
    """Bytes that the application got: each once, and in order."""


def bins_of(trace: Trace, end_ms: float) -> list[Bin]:
    """Return the throughput of *trace* in spans of a round length, some sixty up to *end_ms*."""
    width_ms = _round_up(max(end_ms, 1e-3) / _BINS)
    n_bins = math.ceil(max(end_ms, 1e-3) / width_ms)
    arrived, delivered = [0] * n_bins, [0] * n_bins
    columns = trace.packet_rows.columns
    for counted, times in ((arrived, columns.arrived_at_ns), (delivered, columns.delivered_at_ns)):
        for at_ns, n_bytes in zip(times, columns.length_bytes, strict=True):
            if at_ns is not None and (index := int(to_ms(at_ns) / width_ms)) <= n_bins:
                # What comes at the very end belongs to the last span.
                counted[min(index, n_bins - 1)] += n_bytes
    mbps = 8 / 1000 / width_ms  # bytes a span to Mbit/s
    return [
        Bin(number * width_ms, came * mbps, used * mbps)
        for number, (came, used) in enumerate(zip(arrived, delivered, strict=True))
    ]


def draw(ax: Axes, trace: Trace, title: str, *, end_ms: float, note: str = "") -> None:
    """Draw both: what arrived as an area, what was delivered as a line of steps."""
    bins = bins_of(trace, end_ms)
    edges = [span.start_ms for span in bins]
    width_ms = edges[1] if len(edges) > 1 else end_ms
    edges.append(edges[-1] + width_ms)
    arrived, delivered = ([span[column] for span in bins] for column in (1, 2))
    ax.stairs(arrived, edges, fill=True, color=_ARRIVED, label="arrived")
    ax.stairs(delivered, edges, color=_DELIVERED, linewidth=1.2, label="delivered in order")
    ax.set_xlim(0, end_ms)
    ax.set_ylim(bottom=0)
    cut = f"; {note}" if note else ""
    ax.set_xlabel(f"time since navigation start in ms, in spans of {width_ms:g}{cut}")
    ax.set_ylabel("Mbit/s")
    ax.set_title(plain(title), fontsize=SMALL + 1, loc="left")
    ax.grid(color="0.9", linewidth=0.6)
    ax.set_axisbelow(True)
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(loc="upper left", bbox_to_anchor=(1.01, 1.0), frameon=False, borderaxespad=0.0)


def _round_up(value: float) -> float:
    """Return the next 1, 2 or 5 times a power of ten.

    >>> _round_up(30.0), _round_up(0.3)
    (50.0, 0.5)
    """
    power = float(10.0 ** math.floor(math.log10(value)))
    return next(power * factor for factor in (1, 2, 5, 10) if power * factor >= value * (1 - 1e-9))
