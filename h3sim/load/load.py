"""The result of a load: its trace, and all metrics derived from it."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from h3sim import metrics
from h3sim._version import __version__
from h3sim.engine.connections import Connection, PacketCount, packet_count
from h3sim.load.configuration import configuration, hol_figures, identity, in_words, notes
from h3sim.load.figures import columns_of
from h3sim.load.milestones import WithMilestones
from h3sim.page import Kind
from h3sim.schema import format_value, is_quantity, write_atomically
from h3sim.schema.errors import plain_number
from h3sim.values.errors import InputError, NothingToMeasureError
from h3sim.values.notebook import export, reporting
from h3sim.values.table import RichDisplay, Rows, Table
from h3sim.values.units import NS_PER_MS, ms, to_ms

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from fractions import Fraction
    from pathlib import Path

    import pandas as pd

    from h3sim.engine.connections import CarriedFlow
    from h3sim.engine.load_spec import LoadSpec
    from h3sim.headers.base import HeaderRun
    from h3sim.load.milestones import Multiplexing, RootRow
    from h3sim.load.optimality import Given
    from h3sim.load.paint_bounds import PaintBounds
    from h3sim.metrics import Timing
    from h3sim.page import Page, Resource
    from h3sim.schemes import Scheme
    from h3sim.trace import Trace
    from h3sim.transport import Network, Protocol, TransportProfile
    from h3sim.values.plots import LoadPlots


Which = Literal["all", "atf"]
"""All resources, or those above the fold."""


class ResourceTiming(NamedTuple):
    """A row of `Load.timings`: one resource, times in ms since navigation start."""

    id: str
    kind: str
    stream_id: int
    bytes: int
    above_the_fold: bool
    requested_ms: float
    first_byte_ms: float
    finished_ms: float
    completion_ms: float


class Hol(NamedTuple):
    """Head-of-line blocking: see `h3sim.metrics.HolBlocking` and `SanderCount`."""

    stream_bytes: int
    stream_delay_ms: float
    connection_bytes: int
    connection_delay_ms: float
    sander_stream_bytes: int
    sander_connection_bytes: int
    stack_histogram: dict[int, int]


@dataclass(frozen=True, kw_only=True, repr=False)
class Load(WithMilestones, RichDisplay):
    """One load of a page. Metrics are computed from `trace` on first access."""

    spec: LoadSpec
    """The complete specification of the load."""
    trace: Trace
    header_runs: tuple[HeaderRun, HeaderRun] | None = field(default=None, compare=False)
    """Statistics of the field sections of requests, and of responses, if compressed."""
    cross_traffic: tuple[CarriedFlow, ...] = ()
    """The results of competing flows through the same links."""
    connections: tuple[Connection, ...] = field(default=(), compare=False)
    """The connections in the order in which they were opened, each with its trace."""

    @property
    def page(self) -> Page:
        """The page that was loaded."""
        return self.spec.page

    @property
    def scheme(self) -> Scheme:
        """The scheme of the load."""
        return self.spec.scheme

    @property
    def network(self) -> Network:
        """The network of the load."""
        return self.spec.network

    @property
    def protocol(self) -> Protocol:
        """The transport that carried HTTP."""
        return self.spec.protocol

    @property
    def seed(self) -> int:
        """The random seed."""
        return self.spec.seed

    @property
    def profile(self) -> TransportProfile | None:
        """The profile of both endpoints; None at a constant rate, where nothing is lost."""
        return self.spec.profile_of_ends

    def byte_index(self, which: Which = "all", *, sample_ms: float | None = None) -> float:
        """Return the ByteIndex in ms from the first request on, as the exact integral.

        *which* is "all" or "atf" (above the fold). With *sample_ms*, progress is sampled at that
        interval, which rounds every completion up; use 100 to compare with Marx 2019 § 4.2, and
        only for that.

        Raises:
            NothingToMeasureError: if there are no such resources, or they have no bytes.
        """
        index = metrics.byte_index_ns(
            (
                (resource.size_bytes, timing.finished_at_ns)
                for resource, timing in self._selected(which)
            ),
            origin_ns=self._origin_ns,
            sample_ns=None if sample_ms is None else _read_sample_interval(sample_ms),
        )
        return self._index_ms(index, which)

    def object_index(self, which: Which = "all") -> float:
        """Return the ObjectIndex, the mean completion time, in ms from the first request on.

        Raises:
            NothingToMeasureError: if there are no such resources.
        """
        finished = [timing.finished_at_ns for _, timing in self._selected(which)]
        return self._index_ms(metrics.object_index_ns(finished, origin_ns=self._origin_ns), which)

    def lower_bound(self, which: Which = "all", *, given: Given = "requests") -> float:
        """Return a lower bound on the ByteIndex of every scheme, in ms.

        With *given* "requests", request times are those of this load, and over links so are packet
        arrivals. With "page", only the dependencies are fixed, so it bounds every load of the page
        at this rate (docs/metrics.md has the proof).

        Raises:
            NothingToMeasureError: if these resources have no bytes; for "page", if the network has
                no constant rate, or the browser computed its requests.
        """
        from h3sim.load.optimality import lower_bound_ms  # on use: rarely needed

        self._check(which)

        def weighs(resource: Resource) -> bool:
            return which == "all" or resource.above_the_fold

        bound_ms = lower_bound_ms(self, weighs, given)
        if bound_ms is None:
            raise self._nothing_to_measure(which)
        return bound_ms

    def optimality_ratio(self, which: Which = "all", *, given: Given = "requests") -> float:
        """Return the ratio of the ByteIndex to its lower bound: 1 is optimal.

        Raises:
            NothingToMeasureError: as `lower_bound`.
        """
        return self.byte_index(which) / self.lower_bound(which, given=given)

    @cached_property
    def paint_bounds(self) -> PaintBounds | None:
        """Lower bounds on the paints of every load of the page over this path with this browser.

        Its ratios say how many times later this load painted; a ratio of 1 is optimal. None unless
        the browser computed the load of a single document (docs/metrics.md has the proof).

        >>> import h3sim
        >>> bounds = h3sim.simulate("creative", scheme="rr", browser="parse").paint_bounds
        >>> round(bounds.first_paint_ms), round(bounds.first_paint_ratio, 2)
        (375, 5.07)
        """
        from h3sim.load.paint_bounds import paint_bounds  # on use: few ask for it

        return paint_bounds(self)

    @property
    def page_load_ms(self) -> float:
        """Time when the last resource was complete, in ms since navigation start."""
        return to_ms(max(timing.finished_at_ns for timing in self._timings))

    @property
    def figures(self) -> dict[str, Any]:
        """Every metric by the name of its column in studies; None if undefined."""
        return columns_of(self)

    @property
    def configuration(self) -> dict[str, Any]:
        """Every setting of the load by the name of its option, as resolved.

        Settings that do not apply are None: a constant rate, for example, has no queue.
        """
        return configuration(self.spec)

    @property
    def notes(self) -> list[str]:
        """Caveats of the page's data for its metrics; usually none."""
        return notes(self.spec)

    @cached_property
    def timings(self) -> Rows[ResourceTiming]:
        """Times of request and completion per resource, in request order."""
        return Rows(
            ResourceTiming, (_resource_timing(self.page, timing) for timing in self._timings)
        )

    @cached_property
    def roots(self) -> Rows[RootRow]:
        """Metrics per root: most pages have one."""
        from h3sim.load.milestones import RootRow, root_rows  # on use: rarely needed

        return Rows(RootRow, root_rows(self.page, self._timings, self.trace.activities))

    @cached_property
    def hol(self) -> Hol:
        """Head-of-line blocking; summed over connections, as none blocks another."""
        return Hol(**hol_figures(*(connection.trace for connection in self.connections)))

    @cached_property
    def packets(self) -> PacketCount:
        """Counts of data packets: sent, lost, retransmissions, and dropped by the queue."""
        return packet_count(self.trace)

    @cached_property
    def multiplexing(self) -> Multiplexing:
        """Multiplexing of the responses, and the effect of priorities."""
        from h3sim.load.milestones import multiplexing_of  # on use: rarely needed

        rtt_ns = self.network.rtt_ns
        return multiplexing_of(self.page, self.trace, self._timings, rtt_ns=rtt_ns)

    @property
    def image_index_ms(self) -> float | None:
        """The ByteIndex of images alone; None if no image has bytes."""
        images = [
            (resource.size_bytes, timing.finished_at_ns)
            for resource, timing in self._selected("all")
            if resource.kind is Kind.IMAGE
        ]
        index_ns = metrics.byte_index_ns(images, origin_ns=self._origin_ns)
        return None if index_ns is None else float(index_ns / NS_PER_MS)

    @property
    def plot(self) -> LoadPlots:
        """Figures of this load: `plot.multiplexing()`, `plot.byte_index()`, `plot.waterfall()`."""
        plots: LoadPlots = reporting().LoadPlots([self])
        return plots

    def to_pandas(self) -> pd.DataFrame:
        """Return `timings` as a pandas DataFrame; its `attrs` describe the run.

        Raises:
            MissingExtraError: if pandas is not installed.
        """
        frame = self.timings.to_pandas()
        frame.attrs.update(identity(self.spec))
        return frame

    def to_dict(self, *, order: bool = False) -> dict[str, Any]:
        """Return the load as an `h3sim-load/2` document; *order* adds the stream of each packet."""
        document: dict[str, Any] = export().load_to_dict(self, order=order)
        return document

    def save(self, path: str | Path) -> None:
        """Save the load for `read_load`: the document of `to_dict` with the order of packets.

        It has all inputs, so that `read_load(path).run()` of the same version is this load again,
        with its trace.

        Raises:
            InputError: if the file cannot be written.
        """
        import json  # lazy: keeps imports fast

        write_atomically(path, json.dumps(self.to_dict(order=True)))

    def to_har(self) -> dict[str, Any]:
        """Return the load as HAR 1.2, with initiators, priorities and delivery times."""
        har: dict[str, Any] = export().load_to_har(self)
        return har

    def to_chrome_trace(self) -> dict[str, Any]:
        """Return the load as a Chrome trace (JSON), which ui.perfetto.dev opens."""
        trace: dict[str, Any] = export().load_to_chrome_trace(self)
        return trace

    def __repr__(self) -> str:
        return (
            f"<Load of {self.page.name}: {self.scheme.name} over {self.network.name}"
            f" ({self.protocol.value}), {len(self.page.resources)} resources,"
            f" {self.page_load_ms:g} ms>"
        )

    def _display(self) -> Iterable[str | Table[Any]]:
        yield repr(self)
        yield ", ".join([*in_words(self.spec).values(), f"h3sim {__version__}", *self.notes])
        yield Table(("figure", "value"), export().metrics_of(self))
        yield self.timings

    def byte_index_or_none(
        self, which: Which = "all", *, sample_ms: float | None = None
    ) -> float | None:
        """Return `byte_index`, or None if it is undefined."""
        try:
            return self.byte_index(which, sample_ms=sample_ms)
        except NothingToMeasureError:
            return None

    def missing_reason(self, which: Which) -> str:
        """Return why a ByteIndex is undefined: unknown marks, no marked resources, or no bytes."""
        self._check(which)
        if which == "all":
            return "its resources have no bytes"
        return self.page.nothing_visible_reason

    @property
    def _origin_ns(self) -> int:
        """Time of the first request, from which indexes count."""
        return self.trace.requests[0].requested_at_ns

    def _selected(self, which: Which) -> Iterator[tuple[Resource, Timing]]:
        self._check(which)
        for timing in self._timings:
            resource = self.page.resources[timing.resource]
            if which == "all" or resource.above_the_fold:
                yield resource, timing

    def _check(self, which: Which) -> None:
        if which not in ("all", "atf"):
            raise InputError.at("which", f"must be 'all' or 'atf', is {format_value(which)}")

    def _index_ms(self, index_ns: Fraction | None, which: Which) -> float:
        if index_ns is None:
            raise self._nothing_to_measure(which)
        return float(index_ns / NS_PER_MS)

    def _nothing_to_measure(self, which: Which) -> NothingToMeasureError:
        selection = "above the fold: " if which == "atf" else ""
        return NothingToMeasureError(f"{self.page.name}: {selection}{self.missing_reason(which)}")


def _resource_timing(page: Page, timing: Timing) -> ResourceTiming:
    """Return the times of a resource in milliseconds."""
    resource = page.resources[timing.resource]
    return ResourceTiming(
        id=resource.id,
        kind=resource.kind.value,
        stream_id=timing.stream_id,
        bytes=resource.size_bytes,
        above_the_fold=resource.above_the_fold,
        requested_ms=to_ms(timing.requested_at_ns),
        first_byte_ms=to_ms(timing.first_byte_at_ns),
        finished_ms=to_ms(timing.finished_at_ns),
        completion_ms=timing.completion_ms,
    )


def _read_sample_interval(sample_ms: float) -> int:
    """Return a sampling interval in nanoseconds; raise an InputError unless it is positive."""
    number = plain_number(sample_ms)
    sample_ns = ms(number) if is_quantity(number) else 0
    if sample_ns <= 0:
        raise InputError.at("sample_ms", f"must be more than 0, is {format_value(sample_ms)}")
    return sample_ns
