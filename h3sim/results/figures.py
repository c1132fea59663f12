"""Every figure of a load, a row each: what it is called, where it stands, how it is had.

Columns of studies, documents of loads and of measured logs, the tables of `h3sim compare --seeds`
and the table in `docs/metrics.md` come from here. A new one is a pure function in `h3sim.metrics`,
and a row.
"""

from __future__ import annotations

from functools import partial
from operator import attrgetter, methodcaller
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from h3sim import metrics
from h3sim.errors import NothingToMeasureError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping

    from h3sim.results.connections import PacketCount
    from h3sim.results.load import Hol, Load, Which
    from h3sim.trace import Trace


_THREE = 3


class Measured(Protocol):
    """The subject of metrics: a load, or the log of a connection, which lacks some."""

    @property
    def trace(self) -> Trace:
        """The trace."""

    @property
    def page_load_ms(self) -> float:
        """Time when the last resource was complete."""

    @property
    def first_paint_ms(self) -> float | None:
        """The visual milestones, if a rendering was computed."""

    @property
    def speed_index_ms(self) -> float | None:
        """As `first_paint_ms`."""

    @property
    def hol(self) -> Hol:
        """Head-of-line blocking."""

    @property
    def packets(self) -> PacketCount:
        """Counts of packets."""

    def byte_index_or_none(self, which: Which, *, sample_ms: float | None = ...) -> float | None:
        """Return the ByteIndex, None where it cannot be given."""


class Figure(NamedTuple):
    """A figure: its name, with the unit, as columns have it; for people its title, and what it is.

    *key* is where it stands in a document, from the outside in; empty where it does not.
    """

    name: str
    title: str
    about: str
    of: Callable[[Any], Any]
    key: tuple[str, ...] = ()
    is_column: bool = True
    is_headline: bool = False
    """True if it is shown where there is room for few."""
    is_compared: bool = False
    """True if `h3sim compare --seeds` has a table of it."""
    is_computed: bool = False
    """True if it stands in a document only where the browser computed the load."""
    is_of_load: bool = False
    """True if only loads have it: their documents write its group themselves, null where there is
    none, and logs are without."""
    is_on_demand: bool = False
    """True if studies have a column of it only where it is asked for: it takes a quarter as long
    as a load."""


def _byte_indexes() -> Iterator[Figure]:
    views: tuple[tuple[Which, str], ...] = (("all", "all"), ("atf", "above the fold"))
    for which, shown in views:
        yield Figure(
            name=f"byte_index_{which}_ms",
            title=f"ByteIndex, {shown}",
            about="ByteIndex from the first request on: the integral itself",
            of=methodcaller("byte_index_or_none", which),
            key=("byte_index_ms", which),
            is_headline=True,
            is_compared=True,
        )
    for which, shown in views:
        yield Figure(
            name=f"byte_index_sampled_{which}_ms",
            title=f"sampled ByteIndex, {shown}",
            about=f"the same, sampled every {metrics.SAMPLE_MS:g} ms as in Marx 2019",
            of=methodcaller("byte_index_or_none", which, sample_ms=metrics.SAMPLE_MS),
            key=("byte_index_sampled_ms", which),
        )
    for which, shown in views:
        yield Figure(
            name=f"object_index_{which}_ms",
            title=f"ObjectIndex, {shown}",
            about="the mean completion time",
            of=partial(_object_index, which),
        )


def _object_index(which: Which, load: Load) -> float | None:
    try:
        return load.object_index(which)
    except NothingToMeasureError:
        return None


def _in_threes(stacks: Mapping[int, int]) -> int:
    return sum(height * number for height, number in stacks.items() if height >= _THREE)


def _mean_burst(load: Load) -> float:
    return load.packets.lost / sum(metrics.loss_bursts(load.trace.packet_rows).values())


def _milestone(name: str, title: str, about: str, **more: Any) -> Figure:
    of = attrgetter(name)
    return Figure(name=name, title=title, about=about, of=of, key=(name,), **more)


def _parts(group: str, title: str, parts: dict[str, str], **more: Any) -> Iterator[Figure]:
    for part, about in parts.items():
        yield Figure(
            name=f"{group}_{part}",
            title=f"{title}: {part.removesuffix('_ms').replace('_', ' ')}",
            about=about,
            of=partial(_part, group, part),
            key=(group, part),
            **more,
        )


def _part(group: str, part: str, load: Any) -> Any:
    found = getattr(load, group)
    return None if found is None else getattr(found, part)


FIGURES: tuple[Figure, ...] = (
    *_byte_indexes(),
    _milestone(
        "page_load_ms",
        "page load",
        "when the last resource was complete",
        is_headline=True,
        is_compared=True,
    ),
    _milestone("first_paint_ms", "first paint", "when something was seen", is_compared=True),
    _milestone(
        "largest_paint_ms",
        "largest paint",
        "when the largest element was painted",
        is_compared=True,
        is_computed=True,
    ),
    _milestone(
        "speed_index_ms", "SpeedIndex", "how soon the first view was complete", is_compared=True
    ),
    _milestone(
        "dom_content_loaded_ms",
        "DOMContentLoaded",
        "when the document was parsed and the deferred scripts had run",
        is_computed=True,
    ),
    _milestone(
        "load_event_ms",
        "load event",
        "when all was there that had been asked for",
        is_compared=True,
        is_computed=True,
    ),
    *_parts(
        "hol",
        "head-of-line blocking",
        {
            "stream_bytes": "bytes that waited for others of their stream",
            "stream_delay_ms": "how long they waited, all together",
            "connection_bytes": "bytes that would wait in one order, as over TCP",
            "connection_delay_ms": "how long they would",
            "sander_stream_bytes": "as Sander 2022 counts those of a stream",
            "sander_connection_bytes": "as Sander 2022 counts those of the connection",
        },
    ),
    Figure(
        name="hol_stack_histogram",
        title="head-of-line blocking: stacks",
        about="how often so many packets were delivered at once",
        of=lambda load: {str(height): n for height, n in load.hol.stack_histogram.items()},
        key=("hol", "stack_histogram"),
        is_column=False,
    ),
    Figure(
        name="hol_packets_in_threes",
        title="head-of-line blocking: packets in threes",
        about="packets that were delivered with at least two others (Marx 2019, Fig. 13)",
        of=lambda load: _in_threes(load.hol.stack_histogram),
    ),
    *_parts(
        "packets",
        "packets",
        {
            "sent": "data packets that left",
            "lost": "those of them that did not arrive",
            "retransmitted": "those that sent something again",
        },
    ),
    Figure(
        name="packets_longest_burst",
        title="packets: longest burst",
        about="the most that were lost one behind the other",
        # Without loss, the usual case, rows need not be gone through for it.
        of=lambda load: (
            max(metrics.loss_bursts(load.trace.packet_rows)) if load.packets.lost else 0
        ),
    ),
    Figure(
        name="packets_mean_burst",
        title="packets: mean burst",
        about="how many were lost one behind the other, on average; none without a loss",
        of=lambda load: _mean_burst(load) if load.packets.lost else None,
    ),
    Figure(
        name="priority_frames",
        title="priority frames",
        about="frames of the control stream that spoke of priorities",
        of=lambda load: sum(connection.n_frames for connection in load.connections),
        key=("priority_frames", "sent"),
        is_of_load=True,
    ),
    Figure(
        name="priority_frame_bytes",
        title="bytes of priority frames",
        about="what they took, without headers of packets",
        of=lambda load: sum(connection.frame_bytes for connection in load.connections),
        key=("priority_frames", "bytes"),
        is_of_load=True,
    ),
    Figure(
        name="image_index_ms",
        title="ImageIndex",
        about="the ByteIndex of images alone, the integral itself",
        of=attrgetter("image_index_ms"),
        key=("image_index_ms",),
        is_of_load=True,
    ),
    *_parts(
        "visual",
        "viewport",
        {
            "first_change_ms": "when the viewport first changed",
            "vc85_ms": "when 85 % of it were as at the end",
            "vc95_ms": "when 95 % were",
            "vc99_ms": "when 99 % were",
            "last_change_ms": "when it last changed",
        },
        is_of_load=True,
    ),
    *_parts(
        "multiplexing",
        "multiplexing",
        {
            "interleaving": "how far responses were interleaved: 0 for one alone, near 1 by turns",
            "mean_run_packets": "the mean run of packets of one stream",
            "streams_in_flight": "how many streams there are among what was sent in a round trip",
            "jain_index": "Jain's index of what streams got that could send",
            "inversion_bytes": "bytes that left while a more important response was ready",
            "reprioritization_delay_ms": "from a raise to the next packet of that stream",
            "ttfb_slope_ms": "how much the time to first byte rises from request to request",
        },
        is_of_load=True,
        is_on_demand=True,
    ),
)
ON_DEMAND = {figure.name: figure.about for figure in FIGURES if figure.is_on_demand}
"""The load parameters that are columns of studies, with a description each."""


def columns_of(load: Any, *, asked: Collection[str] = ON_DEMAND) -> dict[str, Any]:
    """Return the figures of a load by their names; None for what it has not.

    Of those that are had on demand, those *asked* for.
    """
    return {
        figure.name: figure.of(load)
        for figure in FIGURES
        if figure.is_column and (not figure.is_on_demand or figure.name in asked)
    }


def document_of(measured: Measured, *, is_computed: bool = False) -> dict[str, Any]:
    """Return the figures of a document, each at its key; those of computed loads are apart."""
    document: dict[str, Any] = {}
    for figure in FIGURES:
        if figure.key and not figure.is_of_load and figure.is_computed is is_computed:
            *groups, last = figure.key
            table = document
            for group in groups:
                table = table.setdefault(group, {})
            table[last] = figure.of(measured)
    return document
