"""What a recording says that a load took, beside what its replay takes."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from h3sim.capture.imported import IMPORT
from h3sim.documents.written import Key, rows_of
from h3sim.study.recorded_network import recorded_network
from h3sim.study.run import simulate
from h3sim.trace import Rows
from h3sim.units import to_ms

if TYPE_CHECKING:
    from h3sim.page import Page

__all__ = ["IMPORT_REPORT", "ReplayedRow", "replayed"]

_RECORDED, _USUAL = "recorded", "chrome-eps"
_QUIC = ("h3", "http/3", "hq", "quic")


class ReplayedRow(NamedTuple):
    """A milestone: when the recording has it, and when the replay does."""

    milestone: str
    recorded_ms: float
    replayed_ms: float

    def __str__(self) -> str:
        times = f"recorded {self.recorded_ms:,.0f} ms, replayed {self.replayed_ms:,.0f} ms"
        return f"{self.milestone}: {times}"


IMPORT_REPORT = IMPORT.with_keys(
    Key("replayed", rows_of(ReplayedRow), "as `h3sim import` adds it", is_optional=True)
)
"""How a page was made of a recording, and what the recording took beside what its replay takes."""


def replayed(page: Page) -> Rows[ReplayedRow]:
    """Return the recorded milestones of *page* beside those of loads over its recorded network.

    The loads say what the recorded browser said of priorities, where the page has it, else what
    Chrome says; over QUIC where the recording was of HTTP/3, else over TCP. All hosts share one
    connection there. Load event, largest paint and SpeedIndex are those of a browser that parses.
    Empty where the page has no estimate of its network.
    """
    known, network = page.recorded_load, recorded_network(page)
    if known is None or network is None:
        return Rows(ReplayedRow, ())
    has_priorities = any(resource.recorded for resource in page.resources)
    scheme = _RECORDED if has_priorities else _USUAL
    transport = "quic" if known.protocol.startswith(_QUIC) else "tcp"
    as_recorded = simulate(page, scheme=scheme, network=network, transport=transport)
    found: list[tuple[str, int | None, float | None]] = []
    found.append(("all resources", known.finished_ns, as_recorded.page_load_ms))
    computed = (known.load_event_ns, known.largest_paint_ns, known.speed_index_ns)
    if any(time_ns is not None for time_ns in computed):
        parsed = simulate(
            page, scheme=scheme, network=network, transport=transport, browser="parse"
        )
        found += [
            ("load event", known.load_event_ns, parsed.load_event_ms),
            ("largest paint", known.largest_paint_ns, parsed.largest_paint_ms),
            ("SpeedIndex", known.speed_index_ns, parsed.speed_index_ms),
        ]
    rows = (
        ReplayedRow(name, to_ms(recorded_ns), replayed_ms)
        for name, recorded_ns, replayed_ms in found
        if recorded_ns is not None and replayed_ms is not None
    )
    return Rows(ReplayedRow, rows)
