"""The server's congestion window over time, what was in flight, and what was declared lost."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from h3sim.documents import shown
from h3sim.errors import InputError, NothingToMeasureError, Problem
from h3sim.plots.labels import plain, shortened
from h3sim.plots.style import SMALL
from h3sim.units import to_ms

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from h3sim.results import Load
    from h3sim.results.connections import Connection
    from h3sim.trace import Trace

__all__ = ["Sample", "connection_of", "draw", "samples_of", "told_connection"]

_KB = 1000
_IN_FLIGHT, _WINDOW, _LOST = "#7d9dc4", "#1b1b1b", "#c00000"
_MANY_LOSSES, _MARK, _SMALL_MARK = 100, 5, 2.5
"""Of more losses the marks are smaller: else they would hide the window."""


class Sample(NamedTuple):
    """The server's recovery after something happened to it: sizes in bytes.

    *n_lost* is how many packets were declared lost then.
    """

    at_ms: float
    congestion_window: int
    bytes_in_flight: int
    smoothed_rtt_ms: float
    n_lost: int


def connection_of(load: Load, number: int | None = None) -> Connection:
    """Return connection *number* of *load*; without one, that which carries most.

    Raises:
        InputError: if there is no such connection.
    """
    known = {connection.number: connection for connection in load.connections}
    if number is None:
        # Of those that carry as much, the one that was opened first.
        return max(load.connections, key=lambda each: (each.stream_bytes, -each.number))
    if not isinstance(number, int) or number not in known:
        message = f"must be one of {', '.join(map(str, known))}, is {shown(number)}"
        raise InputError([Problem(key="connection", message=message)])
    return known[number]


def told_connection(load: Load, connection: Connection) -> str:
    """Return which of several connections that is, "" of the only one."""
    n = len(load.connections)
    hosts = shortened(", ".join(connection.hosts), 40)
    return f"connection {connection.number} of 0 to {n - 1} ({hosts})" if n > 1 else ""


def samples_of(trace: Trace) -> list[Sample]:
    """Return how the server's recovery went on.

    Raises:
        NothingToMeasureError: if it was not recorded, or the load had none.
    """
    if not trace.recovery:
        raise NothingToMeasureError(
            "no recovery was recorded: simulate(..., record_packets=True), over links"
        )
    return [
        Sample(
            to_ms(row.at_ns),
            row.congestion_window,
            row.bytes_in_flight,
            to_ms(row.smoothed_rtt_ns),
            len(row.lost),
        )
        for row in trace.recovery
    ]


def draw(ax: Axes, trace: Trace, title: str, *, end_ms: float, note: str = "") -> None:
    """Draw the window as a line of steps above the bytes in flight, and a cross at each loss."""
    samples = samples_of(trace)
    times = [sample.at_ms for sample in samples]
    in_flight = [sample.bytes_in_flight / _KB for sample in samples]
    window = [sample.congestion_window / _KB for sample in samples]
    ax.fill_between(times, in_flight, step="post", color=_IN_FLIGHT, label="bytes in flight")
    ax.plot(
        times,
        window,
        drawstyle="steps-post",
        color=_WINDOW,
        linewidth=1.2,
        label="congestion window",
    )
    lost = [(sample.at_ms, kb) for sample, kb in zip(samples, window, strict=True) if sample.n_lost]
    if lost:
        ax.plot(
            [at_ms for at_ms, _ in lost],
            [kb for _, kb in lost],
            linestyle="",
            marker="x",
            color=_LOST,
            markersize=_MARK if len(lost) <= _MANY_LOSSES else _SMALL_MARK,
            label="declared lost",
        )
    ax.set_xlim(0, end_ms)
    ax.set_ylim(bottom=0)
    cut = f"; {note}" if note else ""
    ax.set_xlabel(f"time since navigation start in ms{cut}", fontsize=SMALL)
    ax.set_ylabel("kB", fontsize=SMALL)
    ax.set_title(plain(title), fontsize=SMALL + 1, loc="left")
    ax.grid(color="0.9", linewidth=0.6)
    ax.set_axisbelow(True)
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(loc="upper left", bbox_to_anchor=(1.01, 1.0), frameon=False, borderaxespad=0.0)
