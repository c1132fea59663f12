"""The log of a connection in figures, as those of a load."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from h3sim import metrics
from h3sim._version import __version__
from h3sim.qlog import read_qlog
from h3sim.results.document import FORMAT, hol_figures
from h3sim.trace import Delivery
from h3sim.units import NS_PER_MS, ms, to_ms

if TYPE_CHECKING:
    from pathlib import Path

    from h3sim.metrics import Timing
    from h3sim.qlog import MeasuredLog

__all__ = ["Measurement", "measure", "measured_to_dict"]


@dataclass(frozen=True, repr=False)
class Measurement:
    """The figures of a *log*: what it carried, and when; times are ms since the log began."""

    log: MeasuredLog

    @property
    def unknown(self) -> tuple[str, ...]:
        """What the log does not say, and what stands in for it."""
        return self.log.unknown

    def to_dict(self) -> dict[str, Any]:
        """Return the document of format `h3sim-load/1`; what the log cannot say is None."""
        return measured_to_dict(self.log)

    def __repr__(self) -> str:
        n = len(self.log.resources)
        return f"<Measurement of {self.log.title!r}: {n} response{'s' * (n != 1)}>"


def measure(path: str | Path, *, trace: int | None = None) -> Measurement:
    """Measure the qlog at *path*, of a real stack or of h3sim, as a load is measured.

    One connection is measured: from the client's log, from the server's, or best from both in one
    file. Where a file holds several, *trace* says which log of it, from 1 on.

    Raises:
        LogError: if the file cannot be read, or listing the mistakes in it.
    """
    return Measurement(read_qlog(path, trace=trace))


def measured_to_dict(log: MeasuredLog) -> dict[str, Any]:
    """Return a log as a document like that of a load; what it cannot give is None.

    Times are ms since the log began. ByteIndex counts from the first request on.
    """
    trace = log.trace
    rows = metrics.timings(trace)
    sent, lost, again = metrics.count_packets(trace)
    unseen = log.unseen_packets
    hol = hol_figures(trace)
    hol["stack_histogram"] = {str(height): n for height, n in hol["stack_histogram"].items()}
    if unseen:
        # In one order it matters what the lost packets carried.
        hol |= {"connection_bytes": None, "connection_delay_ms": None}
    return {
        "format": FORMAT,
        "version": __version__,
        "page": log.title,
        "page_digest": None,
        "scheme": None,
        "network": None,
        "transport": "quic" if trace.delivery is Delivery.STREAM else "tcp",
        "seed": None,
        "configuration": None,
        "above_the_fold": {"resources": None, "bytes": None},
        "byte_index_ms": {"all": _byte_index_ms(log, rows, ms(metrics.SAMPLE_MS)), "atf": None},
        "byte_index_exact_ms": {"all": _byte_index_ms(log, rows, None), "atf": None},
        "page_load_ms": to_ms(max(row.finished_at_ns for row in rows)),
        "first_paint_ms": None,
        "speed_index_ms": None,
        "hol": hol,
        "packets": {
            "sent": sent + unseen,
            "lost": lost + unseen,
            "retransmitted": None if unseen else again,
        },
        "resources": [_measured_row(log, row) for row in rows],
    }


def _byte_index_ms(log: MeasuredLog, rows: list[Timing], sample_ns: int | None) -> float | None:
    index_ns = metrics.byte_index_ns(
        ((log.resources[row.resource].body_bytes, row.finished_at_ns) for row in rows),
        origin_ns=rows[0].requested_at_ns,
        sample_ns=sample_ns,
    )
    return None if index_ns is None else float(index_ns / NS_PER_MS)


def _measured_row(log: MeasuredLog, row: Timing) -> dict[str, Any]:
    resource = log.resources[row.resource]
    return {
        "id": resource.id,
        "stream_id": row.stream_id,
        "requested_ms": to_ms(row.requested_at_ns),
        "first_byte_ms": to_ms(row.first_byte_at_ns),
        "finished_ms": to_ms(row.finished_at_ns),
        "bytes": resource.body_bytes,
    }
