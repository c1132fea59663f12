"""Milestones of a computed load, and the multiplexing of its responses."""

from __future__ import annotations

from collections import defaultdict
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from h3sim import metrics
from h3sim.browser import PaintMode
from h3sim.load.painting import PICTURES, Painting, frame_ns, shown_at_ns
from h3sim.metrics.critical_path import dependencies, slacks_ns
from h3sim.page import Kind
from h3sim.trace import Rows, Work
from h3sim.values.units import NS_PER_MS, to_ms

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    import networkx as nx

    from h3sim.engine.connections import Connection
    from h3sim.engine.load_spec import LoadSpec
    from h3sim.metrics import Timing
    from h3sim.metrics.critical_path import Dependency, PathStep
    from h3sim.page import Page, Resource
    from h3sim.trace import Activity, Trace


class ActivityRow(NamedTuple):
    """A row of `Load.activities`: an activity, in ms since navigation start.

    *after* is the row that it waited for longest, *policy* the kind of dependency ("F", "O", "B",
    "R": `DependencyPolicy`); both are None if it waited for nothing. It could have ended at most
    *slack_ms* later without delaying the load event; None if the load event did not depend on it.
    """

    work: str
    id: str | None
    kind: str | None
    began_ms: float
    ended_ms: float
    after: int | None
    policy: str | None
    slack_ms: float | None
    is_on_path: bool


class ContributionRow(NamedTuple):
    """A row of `Load.contributions`: the share of the critical path due to *name*."""

    name: str
    n_steps: int
    time_ms: float
    share: float


class PathRow(NamedTuple):
    """A row of `Load.critical_path`: one step, times in ms since navigation start.

    *work* is the kind of activity on the resource (None: on the page). The last four columns divide
    its time: the round trip to the server, the bytes of this response and of those before it,
    computation, and waiting for a timer or the main thread.
    """

    work: str
    id: str | None
    began_ms: float
    ended_ms: float
    network_ms: float
    bandwidth_ms: float
    computation_ms: float
    blocking_ms: float


class Visual(NamedTuple):
    """Times of visual progress by share of the viewport, in ms since navigation start.

    The first and the last change, and the times when visual completeness reached 85, 95 and 99 %.
    """

    first_change_ms: float
    vc85_ms: float
    vc95_ms: float
    vc99_ms: float
    last_change_ms: float


PARTS_OF_TIME = ("network", "bandwidth", "computation", "blocking")
"""Parts into which the time of each step of a critical path is split."""
_VISUAL_SHARES = tuple(Fraction(percent, 100) for percent in (0, 85, 95, 99, 100))
"""Shares of the viewport at which the times of `Visual` are taken, in its order."""


class WithMilestones:
    """The milestones and activities of a load's browser; None unless it computed the load."""

    spec: LoadSpec
    trace: Trace
    connections: tuple[Connection, ...]

    @property
    def first_paint_ms(self) -> float | None:
        """Time of the first paint, in ms since navigation start; None unless it was computed.

        Like all milestones, it needs `browser="parse"`. A page without a document has only a load
        event.
        """
        return _in_ms(self._began_at_ns(Work.FIRST_PAINT))

    @property
    def fcp_ms(self) -> float | None:
        """The first contentful paint: of text or an image, as `first_paint_ms`."""
        painted_ns = self._began_at_ns(Work.FIRST_PAINT)
        if painted_ns is None:
            return None
        # What pictures leave free is assumed to have text, all of the viewport if their shares are
        # unknown. The largest paint may be a text over a picture.
        resources = self._page.resources
        pictures = [each for each in resources if each.kind in PICTURES]
        has_text = sum(Fraction(each.viewport or 0) for each in pictures) < 1 or any(
            each.hero for each in resources if each.kind not in PICTURES
        )
        elements, _ = self._painted
        return to_ms(metrics.first_contentful_paint_ns(painted_ns, elements, has_text=has_text))

    @property
    def largest_paint_ms(self) -> float | None:
        """Time of the largest paint (approximates LCP), as `first_paint_ms`."""
        painted_ns = self._began_at_ns(Work.FIRST_PAINT)
        elements = [*self._elements(), *self._main_texts()]
        if painted_ns is None or not (elements or self._shows_text_only()):
            return None
        largest_ns = metrics.largest_paint_ns(painted_ns, elements)
        return to_ms(max(largest_ns, self._largest_held_ns(painted_ns, largest_ns)))

    @property
    def largest_paint_range_ms(self) -> tuple[float, float] | None:
        """Earliest and latest time of the largest paint, as `first_paint_ms`.

        Both are `largest_paint_ms` if that is known. Without layout it may be text, which comes
        with the first contentful paint, or any picture above the fold.
        """
        largest_ms, fcp_ms = self.largest_paint_ms, self.fcp_ms
        if largest_ms is not None or fcp_ms is None:
            return None if largest_ms is None else (largest_ms, largest_ms)
        shown_ns = (
            each.finished_at_ns + frame_ns(self.spec.browser)
            for each in self._timings
            if each.resource in self.largest_candidates
        )
        return fcp_ms, max((fcp_ms, *map(to_ms, shown_ns)))

    @cached_property
    def largest_candidates(self) -> frozenset[int]:
        """Indices of the pictures that may be the largest paint: all if no marks are known."""
        return frozenset(
            index
            for index, each in enumerate(self._page.resources)
            if each.kind in PICTURES
            and (each.above_the_fold or not self._page.knows_above_the_fold)
        )

    @property
    def speed_index_ms(self) -> float | None:
        """The approximate SpeedIndex, as `first_paint_ms`; None also without any viewport share."""
        painted_ns = self._began_at_ns(Work.FIRST_PAINT)
        if painted_ns is None:
            return None
        elements, text = self._painted
        return _float(metrics.speed_index_ns(painted_ns, elements, text=text), NS_PER_MS)

    @property
    def dom_content_loaded_ms(self) -> float | None:
        """Time when the document was parsed and deferred scripts had run, as `first_paint_ms`."""
        return _in_ms(self._began_at_ns(Work.DOM_CONTENT_LOADED))

    @property
    def load_event_ms(self) -> float | None:
        """Time when all resources requested so far were complete, as `first_paint_ms`."""
        return _in_ms(self._began_at_ns(Work.LOAD))

    @cached_property
    def visual(self) -> Visual | None:
        """Visual progress over time; None if the SpeedIndex is."""
        painted_ns = self._began_at_ns(Work.FIRST_PAINT)
        if painted_ns is None:
            return None
        elements, text = self._painted
        times_ms = []
        for share in _VISUAL_SHARES:
            at_ns = metrics.seen_at_ns(painted_ns, elements, share, text=text)
            if at_ns is None:
                return None
            times_ms.append(to_ms(at_ns))
        return Visual(*times_ms)

    def critical_path(self, to: str = "load") -> Rows[PathRow]:
        """Return the critical path to "load", "DOMContentLoaded" or "first paint", step by step.

        Each step could begin once the previous one allowed it. Empty unless the browser computed
        the load.

        Raises:
            ValueError: if there is no such milestone.
        """
        names = [work.value for work in Work if work.is_milestone]
        if to not in names:
            raise ValueError(f"to must be one of {', '.join(names)}, is {to!r}")
        return Rows(PathRow, map(self._path_row, self._critical_steps(Work(to))))

    def activities(self) -> Rows[ActivityRow]:
        """Return the activities of the browser in order of start, with what each waited for.

        Empty unless the browser computed the load (`browser="parse"`).
        """
        on_path = {step.activity for step in self._critical_steps(Work.LOAD)}
        slacks = slacks_ns(self._done, self._edges, self._page)
        rows = (
            ActivityRow(
                work=done.work.value,
                id=self._id(done.resource),
                kind=self._kind(done.resource),
                began_ms=to_ms(done.began_at_ns),
                ended_ms=to_ms(done.ended_at_ns),
                after=done.after,
                policy=self._policy_by_activity.get(index),
                slack_ms=_in_ms(slack_ns),
                is_on_path=index in on_path,
            )
            for index, (done, slack_ns) in enumerate(zip(self._done, slacks, strict=True))
        )
        return Rows(ActivityRow, rows)

    def activity_graph(self) -> nx.DiGraph[int]:
        """Return `activities` as a graph, whose edges name the dependency policy of WProf."""
        import networkx

        graph: nx.DiGraph[int] = networkx.DiGraph(name=self._page.name)
        for index, row in enumerate(self.activities()):
            graph.add_node(index, **row._asdict())
        for edge in self._edges:
            policy = {"policy": edge.policy.value, "why": edge.policy.name.lower()}
            graph.add_edge(edge.before, edge.after, is_last=edge.is_last, **policy)
        return graph

    def contributions(self, by: str = "policy") -> Rows[ContributionRow]:
        """Return the contributions to the time of the load event, largest first.

        *by* is "policy" (the dependency that let each step begin: "F", "O", "B", "R", or "start"),
        "kind" (of resource; "page" for milestones), "resource" (its id; "page" as well) or "part"
        (network, bandwidth, computation, blocking). The times add up to that of the load event,
        including handshakes and lookups.

        Raises:
            ValueError: if *by* is none of the four.
        """
        if by not in ("policy", "kind", "resource", "part"):
            raise ValueError(f"by must be policy, kind, resource or part, is {by!r}")
        times_by_group: defaultdict[str, list[int]] = defaultdict(list)
        for step in self._critical_steps(Work.LOAD):
            parts = {name: getattr(step, f"{name}_ns") for name in PARTS_OF_TIME}
            if by == "part":
                for name, part_ns in parts.items():
                    if part_ns:
                        times_by_group[name].append(part_ns)
                continue
            if by == "policy":
                group = self._policy_by_activity.get(step.activity, "start")
            else:
                name_of = self._kind if by == "kind" else self._id
                group = name_of(step.resource) or "page"
            times_by_group[group].append(sum(parts.values()))
        # A path of length 0 has shares of 0, not 0 / 0.
        total_ns = sum(map(sum, times_by_group.values())) or 1
        rows = [
            ContributionRow(name, len(times_ns), to_ms(sum(times_ns)), sum(times_ns) / total_ns)
            for name, times_ns in times_by_group.items()
        ]
        return Rows(ContributionRow, sorted(rows, key=lambda row: -row.time_ms))

    @property
    def _page(self) -> Page:
        return self.spec.page

    @cached_property
    def _timings(self) -> list[Timing]:
        return metrics.timings(self.trace)

    @cached_property
    def _done(self) -> list[Activity]:
        """The activities of the browser, with lookups and connection setups."""
        from h3sim.engine.connections import with_setup  # on use: a replay has nothing to show

        return with_setup(self._page, self.trace.activities, self.connections)

    @cached_property
    def _edges(self) -> list[Dependency]:
        blocks = self.spec.browser.stylesheets_block_parser
        return dependencies(self._done, self._page, stylesheets_block_parser=blocks)

    @cached_property
    def _policy_by_activity(self) -> dict[int, str]:
        """The kind of dependency by which each activity waited for the last of others."""
        return {edge.after: edge.policy.value for edge in self._edges if edge.is_last}

    def _critical_steps(self, to: Work) -> list[PathStep]:
        """Return the critical path to *to*."""
        latency_ns = {
            # Without waiting for the connection, which is an activity of its own.
            request.resource: request.arrived_at_ns
            - max(request.requested_at_ns, connection.ready_at_ns)
            + self._page.resources[request.resource].server_ns
            + connection.rtt_ns // 2
            for connection in self.connections
            for request in connection.trace.requests
        }
        return metrics.critical_path(self._done, latency_ns, to=to)

    def _began_at_ns(self, work: Work) -> int | None:
        """Return when *work* first began in a document; None if it never did."""
        return next((times[work] for times in self._milestone_times if work in times), None)

    @cached_property
    def _milestone_times(self) -> list[dict[Work, int]]:
        return [*_milestones(self._page, self.trace.activities).values()]

    def _shows_text_only(self) -> bool:
        """Return whether the page has marks above the fold, and no image or media is marked."""
        pictures = (each for each in self._page.resources if each.kind in PICTURES)
        return self._page.knows_above_the_fold and not any(each.above_the_fold for each in pictures)

    @cached_property
    def _painted(self) -> tuple[list[metrics.Element], metrics.Element | None]:
        """The elements with partial paints, as visual metrics need them, and the text around."""
        # Without viewport shares partial paints do not matter, and the packets need not be read.
        has_shares = any(each.viewport for each in self._page.resources)
        if self.spec.browser.paint is PaintMode.COMPLETE or not has_shares:
            return self._elements(), None
        painting = Painting(self._page, self.trace, self._timings, self.spec.browser)
        return painting.elements, painting.text

    def _elements(self) -> list[metrics.Element]:
        """Return the visible elements: images and media with a viewport share or a hero mark.

        LCP counts an image once it is complete, as Chromium does (`ImagePaintTimingDetector`,
        `MediaTiming::IsSufficientContentLoadedForPaint`), except for animated images, of which the
        first frame would do; pages do not say which are.
        """
        return [
            metrics.Element(
                resource.viewport,
                resource.hero,
                timing.finished_at_ns + frame_ns(self.spec.browser),
            )
            for timing in self._timings
            for resource in (self._page.resources[timing.resource],)
            if resource.kind in PICTURES and (resource.viewport or resource.hero)
        ]

    def _main_texts(self) -> list[metrics.Element]:
        """Return the text that is the main element, by its font or as part of its document.

        Text with a web font waits for it, for 3 s at most; other text appears with the first paint.
        """
        return [
            metrics.Element(None, True, self._text_at_ns(resource, timing))
            for timing in self._timings
            for resource in (self._page.resources[timing.resource],)
            if resource.hero and resource.kind in (Kind.FONT, Kind.DOCUMENT)
        ]

    def _text_at_ns(self, resource: Resource, timing: Timing) -> int:
        if resource.kind is Kind.DOCUMENT:
            return 0
        return shown_at_ns(resource, timing, frame_ns(self.spec.browser))

    def _largest_held_ns(self, painted_ns: int, largest_ns: int) -> int:
        """Return when the largest paint can come by what it waited for when it was recorded.

        Its delay counts from the first paint, from the end of what it names, and from that of the
        image that it shows, which is drawn at *largest_ns*.
        """
        cause = self._page.largest_paint
        if cause is None:
            return painted_ns
        awaited = {self._page.index[id_] for id_ in cause.after}
        ends_ns = [each.ended_at_ns for each in self.trace.activities if each.resource in awaited]
        if any(each.hero and each.kind in PICTURES for each in self._page.resources):
            ends_ns.append(largest_ns - frame_ns(self.spec.browser))
        work_ns = round(cause.work_ns * self.spec.browser.cpu_slowdown)
        return max((painted_ns, *ends_ns)) + work_ns + cause.delay_ns

    def _path_row(self, step: PathStep) -> PathRow:
        """Return a step of the critical path in milliseconds."""
        return PathRow(
            work=step.work.value,
            id=self._id(step.resource),
            began_ms=to_ms(step.began_at_ns),
            ended_ms=to_ms(step.ended_at_ns),
            **{f"{name}_ms": to_ms(getattr(step, f"{name}_ns")) for name in PARTS_OF_TIME},
        )

    def _id(self, resource: int | None) -> str | None:
        return None if resource is None else self._page.resources[resource].id

    def _kind(self, resource: int | None) -> str | None:
        return None if resource is None else self._page.resources[resource].kind.value


class RootRow(NamedTuple):
    """A row of `Load.roots`: one root with all its resources.

    *requested_ms* is the time since navigation start; all other times count from *requested_ms*, so
    that they can be compared with a load of that page alone. A ByteIndex is None if there are no
    bytes; the last three are None unless the browser computed the load.
    """

    id: str
    requested_ms: float
    resources: int
    bytes: int
    byte_index_ms: float | None
    byte_index_atf_ms: float | None
    finished_ms: float
    first_paint_ms: float | None
    dom_content_loaded_ms: float | None
    load_event_ms: float | None


def root_rows(
    page: Page, timings: Sequence[Timing], activities: Sequence[Activity]
) -> Iterator[RootRow]:
    """Yield a row for each root, in request order."""
    milestones = _milestones(page, activities)
    requested_at_ns = {timing.resource: timing.requested_at_ns for timing in timings}
    for root in sorted(page.roots, key=lambda root: requested_at_ns[root]):
        of_root = [timing for timing in timings if page.root_of[timing.resource] == root]
        begun_ns = requested_at_ns[root]
        visible = [each for each in of_root if page.resources[each.resource].above_the_fold]
        times = milestones.get(root, {})
        yield RootRow(
            id=page.resources[root].id,
            requested_ms=to_ms(begun_ns),
            resources=len(of_root),
            bytes=sum(page.resources[each.resource].size_bytes for each in of_root),
            byte_index_ms=_byte_index_ms(page, of_root, begun_ns),
            byte_index_atf_ms=_byte_index_ms(page, visible, begun_ns),
            finished_ms=to_ms(max(each.finished_at_ns for each in of_root) - begun_ns),
            first_paint_ms=_since(times.get(Work.FIRST_PAINT), begun_ns),
            dom_content_loaded_ms=_since(times.get(Work.DOM_CONTENT_LOADED), begun_ns),
            load_event_ms=_since(times.get(Work.LOAD), begun_ns),
        )


def _byte_index_ms(page: Page, timings: Iterable[Timing], begun_ns: int) -> float | None:
    finished = ((page.resources[each.resource].size_bytes, each.finished_at_ns) for each in timings)
    index_ns = metrics.byte_index_ns(finished, origin_ns=begun_ns)
    return _float(index_ns, NS_PER_MS)


def _in_ms(at_ns: int | None) -> float | None:
    return None if at_ns is None else to_ms(at_ns)


def _since(at_ns: int | None, begun_ns: int) -> float | None:
    return None if at_ns is None else to_ms(at_ns - begun_ns)


def _milestones(page: Page, activities: Sequence[Activity]) -> dict[int, dict[Work, int]]:
    """Return the time of each milestone of each root; only a document is parsed and painted."""
    milestones: dict[int, dict[Work, int]] = {}
    root = page.root
    for done in activities:
        # A milestone has no resource. Activities are sorted by root, each beginning with its
        # download, so that the last resource tells the root.
        if done.resource is not None:
            root = page.root_of[done.resource]
        elif done.work is Work.LOAD or page.resources[root].kind is Kind.DOCUMENT:
            milestones.setdefault(root, {}).setdefault(done.work, done.began_at_ns)
    return milestones


_WINDOW_PACKETS = 14
"""The number of packets in a window if the round-trip time is 0."""


class Multiplexing(NamedTuple):
    """Multiplexing of responses, as defined in `docs/metrics.md`; None if undefined.

    *window_ms* is the window over which streams in flight and Jain's index are computed.
    """

    interleaving: float
    mean_run_packets: float
    window_ms: float
    streams_in_flight: float
    jain_index: float | None
    inversion_bytes: int | None
    reprioritization_delay_ms: float | None
    ttfb_slope_ms: float | None
    loss_bursts: dict[int, int]


def multiplexing_of(
    page: Page, trace: Trace, timings: Sequence[Timing], *, rtt_ns: int
) -> Multiplexing:
    """Return the multiplexing of a load; *rtt_ns* is the round-trip time of its network."""
    from statistics import fmean  # on use: the import takes longer than loading a page

    sent = metrics.sent_bytes(trace)
    order = [row.stream_id for row in sent]
    window_ns = rtt_ns or _packet_window_ns(sent)
    spans = _sendable_spans(page, trace)
    signals = [(signal.at_ns, signal.element_id, signal.signal) for signal in trace.signals]
    delays_ns = metrics.reprioritization_delays_ns(sent, signals)
    n_runs = sum(1 for i, stream_id in enumerate(order) if not i or order[i - 1] != stream_id)
    waits_ns = [timing.first_byte_at_ns - timing.requested_at_ns for timing in timings]
    return Multiplexing(
        interleaving=float(metrics.interleaving(order) or 0),
        mean_run_packets=len(order) / n_runs,
        window_ms=to_ms(window_ns),
        streams_in_flight=float(metrics.streams_in_flight(sent, window_ns) or 0),
        jain_index=_float(metrics.fairness(sent, spans, window_ns)),
        inversion_bytes=metrics.inversion_bytes(sent, spans, signals),
        reprioritization_delay_ms=fmean(delays_ns) / NS_PER_MS if delays_ns else None,
        ttfb_slope_ms=_float(metrics.slope(waits_ns), NS_PER_MS),
        loss_bursts=metrics.loss_bursts(trace.packet_rows),
    )


def _packet_window_ns(sent: Sequence[metrics.Sent]) -> int:
    """Return the time of `_WINDOW_PACKETS` packets at the mean rate of the load."""
    span_ns = sent[-1].at_ns - sent[0].at_ns
    return max(1, span_ns * _WINDOW_PACKETS // max(1, len(sent) - 1))


def _sendable_spans(page: Page, trace: Trace) -> dict[int, tuple[int, int]]:
    """Return the span of each response from ready until its last byte was first sent.

    Retransmissions are left out: the server learns of a loss a round trip later, and until then has
    nothing to send of the response.
    """
    ended_at_ns: dict[int, int] = {}
    sent_ends: dict[int, int] = {}
    sent_at_ns, _, streams, offsets, lengths, *_ = trace.packet_rows.columns
    for at_ns, stream_id, offset, n_bytes in zip(
        sent_at_ns, streams, offsets, lengths, strict=True
    ):
        # -1, so that a response without bytes, which ends at 0, has a span too.
        if offset + n_bytes > sent_ends.get(stream_id, -1):
            sent_ends[stream_id] = offset + n_bytes
            ended_at_ns[stream_id] = at_ns
    return {
        request.stream_id: (
            request.arrived_at_ns + page.resources[request.resource].server_ns,
            ended_at_ns[request.stream_id],
        )
        for request in trace.requests
        if request.stream_id in ended_at_ns
    }


def _float(value: Fraction | None, divisor: int = 1) -> float | None:
    return None if value is None else float(value / divisor)
