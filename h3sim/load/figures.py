"""Every metric of a load, one row each: its name, title, key in documents, and computation.

Columns of studies, documents of loads and of measured logs, the tables of `h3sim compare --seeds`
and the table in `docs/metrics.md` are built from these rows. A new metric is a pure function in
`h3sim.metrics`, and a row here.
"""

from __future__ import annotations

from functools import partial
from operator import attrgetter, methodcaller
from typing import TYPE_CHECKING, Any, NamedTuple

from h3sim import metrics
from h3sim.values.errors import NothingToMeasureError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping


class Figure(NamedTuple):
    """A metric of a load, and where it is shown."""

    name: str
    """The name of its column, which ends with its unit."""
    title: str
    about: str
    compute: Callable[[Any], Any]
    """Function that returns its value for a `Load` or a `Measurement`."""
    key: tuple[str, ...] = ()
    """Its path in a document, outermost key first; empty if documents leave it out."""
    is_column: bool = True
    """True if studies have a column of it."""
    is_headline: bool = False
    """True if it is shown even where there is room for only a few."""
    is_compared: bool = False
    """True if `h3sim compare --seeds` has a table of it."""
    is_computed: bool = False
    """True if documents have it only for loads that the browser computed."""
    is_load_only: bool = False
    """True if loads have it, but logs do not.

    Then `load_document` writes its group, which is null if undefined.
    """
    can_be_zero: bool = False
    """True if it may be 0 or less, so that a ratio of two loads may be undefined.

    Studies compare such metrics by differences.
    """
    is_on_demand: bool = False
    """True if studies have its column only on request.

    Its computation takes up to a quarter of the time of a load.
    """


def _byte_index_figures() -> Iterator[Figure]:
    """Yield the figures of completion: exact, sampled, and by objects."""
    selections: tuple[tuple[str, str], ...] = (("all", "all"), ("atf", "above the fold"))
    for which, words in selections:
        yield Figure(
            name=f"byte_index_{which}_ms",
            title=f"ByteIndex, {words}",
            about="exact ByteIndex from the first request on",
            compute=methodcaller("byte_index_or_none", which),
            key=("byte_index_ms", which),
            is_headline=True,
            is_compared=True,
        )
    for which, words in selections:
        yield Figure(
            name=f"byte_index_sampled_{which}_ms",
            title=f"sampled ByteIndex, {words}",
            about=f"sampled ByteIndex, every {metrics.SAMPLE_MS:g} ms as in Marx 2019",
            compute=methodcaller("byte_index_or_none", which, sample_ms=metrics.SAMPLE_MS),
            key=("byte_index_sampled_ms", which),
        )
    for which, words in selections:
        yield Figure(
            name=f"object_index_{which}_ms",
            title=f"ObjectIndex, {words}",
            about="mean completion time",
            compute=partial(_object_index, which),
        )


def _object_index(which: str, load: Any) -> Any:
    try:
        return load.object_index(which)
    except NothingToMeasureError:
        return None


def _packets_in_threes(stacks: Mapping[int, int]) -> int:
    """Return the number of packets in stacks of three or more (Marx 2019, Fig. 13)."""
    return sum(height * number for height, number in stacks.items() if height >= 3)


def _mean_burst(load: Any) -> Any:
    return load.packets.lost / sum(metrics.loss_bursts(load.trace.packet_rows).values())


def _attribute_figure(name: str, title: str, about: str, **more: Any) -> Figure:
    """Return a figure that is an attribute of a load, and a key of its document."""
    compute = attrgetter(name)
    return Figure(name=name, title=title, about=about, compute=compute, key=(name,), **more)


def _group_figures(
    group: str, title: str, members: dict[str, str], **more: Any
) -> Iterator[Figure]:
    """Yield the figures of a group: the *members*, with descriptions, of an attribute of a load."""
    for member, about in members.items():
        yield Figure(
            name=f"{group}_{member}",
            title=f"{title}: {member.removesuffix('_ms').replace('_', ' ')}",
            about=about,
            compute=partial(_member, group, member),
            key=(group, member),
            **more,
        )


def _member(group: str, member: str, load: Any) -> Any:
    group_value = getattr(load, group)
    return None if group_value is None else getattr(group_value, member)


FIGURES: tuple[Figure, ...] = (
    *_byte_index_figures(),
    _attribute_figure(
        "page_load_ms",
        "page load",
        "time when the last resource was complete",
        is_headline=True,
        is_compared=True,
    ),
    _attribute_figure(
        "first_paint_ms", "first paint", "time of the first visible change", is_compared=True
    ),
    _attribute_figure(
        "fcp_ms",
        "first contentful paint",
        "time when the first text or image was painted (FCP)",
        is_computed=True,
    ),
    _attribute_figure(
        "largest_paint_ms",
        "largest paint",
        "time when the largest element was painted",
        is_compared=True,
        is_computed=True,
    ),
    _attribute_figure(
        "speed_index_ms",
        "SpeedIndex",
        "integral of the part of the viewport not yet painted",
        is_compared=True,
    ),
    _attribute_figure(
        "dom_content_loaded_ms",
        "DOMContentLoaded",
        "time when the document was parsed and the deferred scripts had run",
        is_computed=True,
    ),
    _attribute_figure(
        "load_event_ms",
        "load event",
        "time when all resources requested so far were complete",
        is_compared=True,
        is_computed=True,
    ),
    *_group_figures(
        "paint_bounds",
        "bound",
        {
            "first_paint_ms": "least first paint of any order of bytes over this link",
            "largest_paint_ms": "least largest paint of any order",
            "speed_index_ms": "least SpeedIndex of any order",
            "first_paint_ratio": "ratio of this first paint to its bound: 1 is optimal",
            "largest_paint_ratio": "ratio of the largest paint to its bound",
            "speed_index_ratio": "ratio of the SpeedIndex to its bound",
        },
        is_computed=True,
        is_on_demand=True,
    ),
    *_group_figures(
        "hol",
        "head-of-line blocking",
        {
            "stream_bytes": "bytes blocked by a gap in their own stream",
            "stream_delay_ms": "their waiting time, summed over packets",
            "connection_bytes": "bytes that would be blocked by in-order delivery, as over TCP",
            "connection_delay_ms": "their waiting time, summed over packets",
            "sander_stream_bytes": "Sander 2022's count of bytes blocked within streams",
            "sander_connection_bytes": "Sander 2022's count of bytes blocked across the connection",
        },
        can_be_zero=True,
    ),
    Figure(
        name="hol_stack_histogram",
        title="head-of-line blocking: stacks",
        about="number of instants by the number of packets delivered together",
        compute=lambda load: {str(height): n for height, n in load.hol.stack_histogram.items()},
        key=("hol", "stack_histogram"),
        is_column=False,
    ),
    Figure(
        name="hol_packets_in_threes",
        title="head-of-line blocking: packets in threes",
        about="packets delivered together with at least two others (Marx 2019, Fig. 13)",
        compute=lambda load: _packets_in_threes(load.hol.stack_histogram),
        can_be_zero=True,
    ),
    *_group_figures(
        "packets",
        "packets",
        {
            "sent": "data packets that the server sent",
            "sent_bytes": "their stream bytes, retransmissions included",
        },
    ),
    *_group_figures(
        "packets",
        "packets",
        {
            "lost": "data packets that never arrived",
            "retransmitted": "data packets with retransmitted data",
            "queue_drops": "the lost ones that the queue of the bottleneck dropped",
            "uplink_sent": "packets of the client with stream bytes: of requests and uploads",
            "uplink_lost": "those that never arrived",
            "uplink_bytes": "their stream bytes, retransmissions included",
        },
        can_be_zero=True,
    ),
    Figure(
        name="packets_longest_burst",
        title="packets: longest burst",
        about="longest run of consecutive losses",
        # Without loss, the usual case, the rows need not be scanned.
        compute=lambda load: (
            max(metrics.loss_bursts(load.trace.packet_rows)) if load.packets.lost else 0
        ),
        can_be_zero=True,
    ),
    Figure(
        name="packets_mean_burst",
        title="packets: mean burst",
        about="mean length of runs of consecutive losses; undefined without a loss",
        compute=lambda load: _mean_burst(load) if load.packets.lost else None,
    ),
    Figure(
        name="priority_frames",
        title="priority frames",
        about="priority frames on the control streams",
        compute=lambda load: sum(connection.n_frames for connection in load.connections),
        key=("priority_frames", "sent"),
        is_load_only=True,
        can_be_zero=True,
    ),
    Figure(
        name="priority_frame_bytes",
        title="bytes of priority frames",
        about="their bytes, without packet headers",
        compute=lambda load: sum(connection.frame_bytes for connection in load.connections),
        key=("priority_frames", "bytes"),
        is_load_only=True,
        can_be_zero=True,
    ),
    Figure(
        name="image_index_ms",
        title="ImageIndex",
        about="exact ByteIndex of the images alone",
        compute=attrgetter("image_index_ms"),
        key=("image_index_ms",),
        is_load_only=True,
    ),
    *_group_figures(
        "visual",
        "viewport",
        {
            "first_change_ms": "time when the viewport first changed",
            "vc85_ms": "time when 85 % of it was as at the end",
            "vc95_ms": "time when 95 % was",
            "vc99_ms": "time when 99 % was",
            "last_change_ms": "time when it last changed",
        },
        is_load_only=True,
    ),
    *_group_figures(
        "multiplexing",
        "multiplexing",
        {
            "interleaving": "interleaving of responses: 0 if sequential, near 1 if by turns",
            "mean_run_packets": "mean run length of packets of one stream",
            "streams_in_flight": "mean number of streams among the packets of one round trip",
            "jain_index": "Jain's index of the shares of the streams that could send",
            "inversion_bytes": "bytes sent while a more important response was ready",
            "reprioritization_delay_ms": "time from a raised priority to the next packet of that "
            "stream",
            "ttfb_slope_ms": "slope of the time to first byte over request order",
        },
        is_load_only=True,
        is_on_demand=True,
        can_be_zero=True,
    ),
)
ON_DEMAND = {figure.name: figure.about for figure in FIGURES if figure.is_on_demand}
"""Descriptions of the metrics that are columns of studies only on request, by name."""


def columns_of(load: Any, *, on_demand: Collection[str] = ON_DEMAND) -> dict[str, Any]:
    """Return the metrics of a load by their names; None if undefined.

    Of the metrics that are computed on request, only those in *on_demand* are included.
    """
    return {
        figure.name: figure.compute(load)
        for figure in FIGURES
        if figure.is_column and (not figure.is_on_demand or figure.name in on_demand)
    }


def document_of(measured: Any, *, is_computed: bool = False) -> dict[str, Any]:
    """Return the metrics of a document, each at its key.

    With *is_computed* they are those that only loads computed by the browser have, otherwise all
    others.
    """
    document: dict[str, Any] = {}
    for figure in FIGURES:
        if figure.key and not figure.is_load_only and figure.is_computed is is_computed:
            *groups, last = figure.key
            table = document
            for group in groups:
                table = table.setdefault(group, {})
            table[last] = figure.compute(measured)
    return document
