"""The metrics of a logged connection, as those of a load."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from h3sim import metrics
from h3sim.engine.connections import PacketCount
from h3sim.load.configuration import hol_figures
from h3sim.load.load import Hol, Which
from h3sim.qlog import parse_qlog
from h3sim.values.notebook import export, reporting
from h3sim.values.units import NS_PER_MS, ms, to_ms

if TYPE_CHECKING:
    from pathlib import Path

    from h3sim.metrics import Timing
    from h3sim.qlog import MeasuredLog
    from h3sim.trace import Trace
    from h3sim.values.plots import LogPlots


@dataclass(frozen=True, repr=False)
class Measurement:
    """The metrics of the responses in a *log*; times are ms since the log began."""

    log: MeasuredLog

    @property
    def unknown(self) -> tuple[str, ...]:
        """Missing data of the log, and its replacements."""
        return self.log.unknown

    def to_dict(self) -> dict[str, Any]:
        """Return an `h3sim-load/2` document; values that the log lacks are None."""
        document: dict[str, Any] = export().measured_to_dict(self.log)
        return document

    @property
    def plot(self) -> LogPlots:
        """Figures of this log: `plot.byte_ranges()`, `plot.progress()`."""
        plots: LogPlots = reporting().LogPlots([self])
        return plots

    @property
    def trace(self) -> Trace:
        """The packets and requests of the log, in the form of a load's trace."""
        return self.log.trace

    @property
    def page_load_ms(self) -> float:
        """Time when the last response was complete."""
        return to_ms(max(row.finished_at_ns for row in self._timings))

    @property
    def first_paint_ms(self) -> None:
        """None: a log has no browser."""

    @property
    def speed_index_ms(self) -> None:
        """None: a log has no browser."""

    @cached_property
    def hol(self) -> Hol:
        """Head-of-line blocking; across streams it is None if some packets were not logged.

        Blocking across streams depends on the contents of every packet.
        """
        figures = hol_figures(self.trace)
        if self.log.unseen_packets:
            figures |= {"connection_bytes": None, "connection_delay_ms": None}
        return Hol(**figures)

    @property
    def packets(self) -> PacketCount:
        """Counts of data packets, including those inferred from gaps in their numbers.

        With inferred packets, the numbers of retransmissions and bytes are None. So is that of
        packets which a queue dropped, if any were lost: a log does not have the reason.
        """
        sent, lost, retransmitted = metrics.count_packets(self.trace)
        unseen = self.log.unseen_packets
        # As Any, since only logs lack these counts.
        known: Any = None if unseen else retransmitted
        n_dropped: Any = None if lost + unseen else 0
        n_bytes: Any = None if unseen else sum(self.trace.packet_rows.columns.length_bytes)
        return PacketCount(
            sent=sent + unseen,
            lost=lost + unseen,
            retransmitted=known,
            queue_drops=n_dropped,
            sent_bytes=n_bytes,
        )

    def byte_index_or_none(
        self, which: Which = "all", *, sample_ms: float | None = None
    ) -> float | None:
        """Return the ByteIndex in ms from the first request on; None above the fold."""
        if which == "atf":  # a log does not say what is above the fold
            return None
        resources = self.log.resources
        index_ns = metrics.byte_index_ns(
            ((resources[row.resource].body_bytes, row.finished_at_ns) for row in self._timings),
            origin_ns=self._timings[0].requested_at_ns,
            sample_ns=None if sample_ms is None else ms(sample_ms),
        )
        return None if index_ns is None else float(index_ns / NS_PER_MS)

    @cached_property
    def _timings(self) -> list[Timing]:
        return metrics.timings(self.trace)

    def __repr__(self) -> str:
        n = len(self.log.resources)
        return f"<Measurement of {self.log.title!r}: {n} response{'s' * (n != 1)}>"


def read_qlog(path: str | Path, *, trace: int | None = None) -> Measurement:
    """Measure the qlog at *path*, of a real stack or of h3sim, as a load is measured.

    One connection is measured: from the client's log, from the server's, or best from both in one
    file. If a file holds several logs, *trace* selects one, counting from 1.

    Raises:
        LogError: if the file cannot be read or is invalid, listing every error.
    """
    return Measurement(parse_qlog(path, trace=trace))
