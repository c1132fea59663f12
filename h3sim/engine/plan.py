"""One run of a `LoadSpec`: what watches it, and what of a connection follows from the spec."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from h3sim import http
from h3sim.engine.server_word import has_marks
from h3sim.errors import PageError, Problem

if TYPE_CHECKING:
    from h3sim.engine.environment import Process
    from h3sim.engine.transport import Progress
    from h3sim.http import ByteMarks
    from h3sim.page import Page
    from h3sim.results import LoadSpec
    from h3sim.schedulers import Scheduler

__all__ = ["MAX_PACKETS", "LoadRun", "count_packets", "make_marks", "make_scheduler"]

MAX_PACKETS = 5_000_000
"""The largest load that is taken on; it takes about 2 GB and half a minute."""


class LoadRun(NamedTuple):
    """A load as it is run: its spec, and what runs beside it or watches it."""

    spec: LoadSpec
    processes: tuple[Process, ...]
    record_packets: bool
    progress: Progress | None


def make_marks(spec: LoadSpec) -> ByteMarks | None:
    """Return what calls where a response has come so far; None where nobody asks."""
    return http.ByteMarks() if has_marks(spec.page, spec.scheme) else None


def make_scheduler(spec: LoadSpec, turn_bytes: int, marks: ByteMarks | None) -> Scheduler:
    """Return what schedules the server's streams of one connection."""
    made = spec.scheme.make_scheduler(turn_bytes=turn_bytes)
    return made if marks is None else marks.around(made)


def count_packets(page: Page, packet_bytes: int) -> int:
    """Return how many packets *page* takes; a response without a byte takes one.

    Raises:
        PageError: if they are more than `MAX_PACKETS`.
    """
    n_packets = sum(-(-n_bytes // packet_bytes) or 1 for n_bytes in page.stream_bytes)
    if n_packets > MAX_PACKETS:
        message = f"takes {n_packets:,} packets; the most that is simulated is {MAX_PACKETS:,}"
        raise PageError([Problem(key="resources", message=message)], page.name)
    return n_packets
