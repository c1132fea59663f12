"""Recorded facts of a load as a whole: its network, its layout, and its groups of priorities."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from h3sim.page.resource import MAX_TIME_NS
from h3sim.schema.fields import Record, declare, validate
from h3sim.schema.values import (
    Integer,
    ListOf,
    MegabitsPerSecond,
    Milliseconds,
    Number,
    TableOf,
    Text,
)
from h3sim.signals import DEFAULT_WEIGHT, MAX_WEIGHT
from h3sim.values.errors import PageError, ValidationIssue
from h3sim.values.units import to_ms

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from h3sim.page.resource import Resource


RECORDED_NETWORK = "recorded"
"""The name of the network of a page's own recording."""

ESTIMATED_WITHIN = 2.0
"""Least factor by which RTT and rate may be wrong if they were estimated."""
_RTT = Milliseconds(low=0, high=600_000)
_RATE = MegabitsPerSecond(low=1e-6, high=1e7)
_RECORDED_TIME = Milliseconds(low=0, high=to_ms(MAX_TIME_NS), hint="a day")


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedLoad:
    """The network of a recording, estimated or stated by its file, and the recorded times.

    Times are relative to navigation start. Rate and RTT are either both known or both unknown.

    Raises:
        PageError: listing every value that is out of range, and a rate without an RTT.
    """

    rtt_ns: int | None = field(
        default=None,
        metadata=declare(_RTT, "the estimated round-trip time"),
    )
    rtt_from: str = field(default="", metadata=declare(Text(), "the method of its estimate"))
    rate_bps: int | None = field(
        default=None,
        metadata=declare(_RATE, "the estimated downlink rate"),
    )
    rate_from: str = field(default="", metadata=declare(Text(), "the method of its estimate"))
    rtt_estimates_ns: Mapping[str, int] = field(
        default_factory=dict,
        metadata=declare(
            TableOf(_RTT), "all estimates of the RTT, by their method", key="rtt_estimates_ms"
        ),
    )
    rate_estimates_bps: Mapping[str, int] = field(
        default_factory=dict,
        metadata=declare(
            TableOf(_RATE),
            "all estimates of the downlink rate, by their method",
            key="rate_estimates_mbps",
        ),
    )
    network_within: float | None = field(
        default=None,
        metadata=declare(
            Number(low=1, high=100),
            "the factor by which RTT and rate may be wrong, as far as their estimates are apart",
        ),
    )
    up_bps: int | None = field(
        default=None,
        metadata=declare(_RATE, "the uplink rate, if the recording states it"),
    )
    loss: float = field(
        default=0.0,
        metadata=declare(
            Number(low=0, high=1, is_below=True),
            "the share of packets lost at random, if the recording states it",
        ),
    )
    protocol: str = field(
        default="",
        metadata=declare(Text(), "the protocol of most requests, as the recorder calls it"),
    )
    finished_ns: int | None = field(
        default=None, metadata=declare(_RECORDED_TIME, "when the last resource was complete")
    )
    load_event_ns: int | None = field(
        default=None, metadata=declare(_RECORDED_TIME, "the load event")
    )
    fcp_ns: int | None = field(
        default=None, metadata=declare(_RECORDED_TIME, "the first contentful paint")
    )
    largest_paint_ns: int | None = field(
        default=None, metadata=declare(_RECORDED_TIME, "the largest contentful paint")
    )
    speed_index_ns: int | None = field(
        default=None, metadata=declare(_RECORDED_TIME, "the SpeedIndex")
    )
    completed_ns: Mapping[str, int] = field(
        default_factory=dict,
        metadata=declare(
            TableOf(_RECORDED_TIME), "when each resource was complete, by id", key="completed_ms"
        ),
    )
    n_bytes: int | None = field(
        default=None,
        metadata=declare(
            Integer(low=0, high=2**53),
            "bytes of all responses over its network, including those left out of the page",
        ),
    )

    @property
    def lacks_network(self) -> bool:
        """True if it was recorded over a network that could not be estimated."""
        return self.rtt_ns is None and self.n_bytes is not None

    def __post_init__(self) -> None:
        validate(self, PageError)

    def issues(self) -> Iterator[ValidationIssue]:
        """Yield the errors between its values."""
        if (self.rtt_ns is None) != (self.rate_bps is None):
            key = "rtt_ms" if self.rtt_ns is None else "rate_mbps"
            yield ValidationIssue(
                key=key, message="is missing: a network needs a rate and a round-trip time"
            )


_CAUSE_TIME = Milliseconds(low=0, high=to_ms(MAX_TIME_NS), hint="a day")


@dataclass(frozen=True, slots=True, kw_only=True)
class PaintCause:
    """The cause of a recorded paint, besides what the rules of the browser know.

    The paint comes once all of *after* have run, or arrived, the main thread has then worked for
    *work_ns* on the page's style, layout and paint, and *delay_ns* have passed.

    Raises:
        PageError: listing every value that is out of range.
    """

    after: tuple[str, ...] = field(
        default=(),
        metadata=declare(
            ListOf(Text(is_needed=True), "ids"),
            "the ids of scripts that had to run, and of responses that had to arrive, before there"
            " was anything to paint",
        ),
    )
    work_ns: int = field(
        default=0,
        metadata=declare(
            _CAUSE_TIME, "work of the main thread that is no resource's: style, layout, paint"
        ),
    )
    delay_ns: int = field(
        default=0,
        metadata=declare(_CAUSE_TIME, "from then until the paint: timers, and drawing the frame"),
    )

    def __post_init__(self) -> None:
        validate(self, PageError)

    def without(self, ids: Iterable[str]) -> PaintCause:
        """Return the cause without *ids*.

        >>> PaintCause(after=("a.js", "b.js")).without(["a.js"]).after
        ('b.js',)
        """
        gone = {*ids}
        return replace(self, after=tuple(each for each in self.after if each not in gone))


def paint_problems(
    resources: Iterable[Resource], causes: Mapping[str, PaintCause | None]
) -> Iterator[ValidationIssue]:
    """Yield the ids in *causes*, by their key in a page, that no resource has."""
    ids = {resource.id for resource in resources}
    for key, cause in causes.items():
        for number, id_ in enumerate(() if cause is None else cause.after):
            if id_ not in ids:
                message = f"no resource has the id {id_!r}"
                yield ValidationIssue(key=f"{key}.after[{number}]", message=message)


MAX_PX = 1_000_000
"""Larger coordinates are errors."""
_SHARE_DECIMALS = 4
"""Decimals of shares of the viewport in a page file."""
_PX_DECIMALS = 2
"""Decimals of coordinates in a page file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rectangle:
    """A rectangle on the screen, in CSS pixels from the top left corner of the viewport.

    Raises:
        PageError: listing every value that is out of range.
    """

    x: float = field(
        metadata=declare(
            Number(low=-MAX_PX, high=MAX_PX), "its distance from the left edge of the viewport"
        )
    )
    y: float = field(
        metadata=declare(
            Number(low=-MAX_PX, high=MAX_PX), "its distance from the top edge of the viewport"
        )
    )
    width: float = field(metadata=declare(Number(low=0, high=MAX_PX), "its width"))
    height: float = field(metadata=declare(Number(low=0, high=MAX_PX), "its height"))

    def __post_init__(self) -> None:
        validate(self, PageError)


def clipped(
    viewport_px: tuple[float, float], x: float, y: float, width: float, height: float
) -> Rectangle | None:
    """Return the part of a rectangle inside a viewport of that width and height, None if empty.

    >>> clipped((100, 100), -20, 90, 50, 50)
    Rectangle(x=0.0, y=90.0, width=30.0, height=10.0)
    """
    viewport_width, viewport_height = viewport_px
    left, right = max(0.0, x), min(viewport_width, x + width)
    top, bottom = max(0.0, y), min(viewport_height, y + height)
    if left >= right or top >= bottom:
        return None
    return Rectangle(
        x=_rounded_px(left),
        y=_rounded_px(top),
        width=_rounded_px(right - left),
        height=_rounded_px(bottom - top),
    )


def _rounded_px(value: float) -> float:
    return float(round(value, _PX_DECIMALS))


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """The recorded viewport: its size in CSS pixels, and the rectangles of resources in it.

    Raises:
        PageError: listing every value that is out of range.

    >>> left = Rectangle(x=-50, y=0, width=100, height=100)
    >>> Layout(width=400, height=500, rectangles={"a.png": (left,)}).share("a.png")
    0.025
    """

    width: float = field(
        metadata=declare(Number(low=1, high=MAX_PX), "the width of the viewport in CSS pixels")
    )
    height: float = field(metadata=declare(Number(low=1, high=MAX_PX), "its height in CSS pixels"))
    rectangles: Mapping[str, tuple[Rectangle, ...]] = field(
        default_factory=dict,
        metadata=declare(
            TableOf(ListOf(Record(Rectangle, noun="an object"), "rectangles")),
            "the rectangles in which each resource is painted, by id: elements and backgrounds for"
            " an image, lines of text for a font",
        ),
    )

    def __post_init__(self) -> None:
        validate(self, PageError)

    def visible(self, id_: str) -> list[Rectangle]:
        """Return the rectangles of a resource, cut off at the edges of the viewport."""
        size = self.width, self.height
        visible = (
            clipped(size, each.x, each.y, each.width, each.height)
            for each in self.rectangles.get(id_, ())
        )
        return [each for each in visible if each is not None]

    def share(self, id_: str) -> float:
        """Return the share of the viewport that a resource covers, 1 at most.

        Overlaps of its rectangles are ignored.
        """
        area = sum(each.width * each.height for each in self.visible(id_))
        return round(min(area / (self.width * self.height), 1.0), _SHARE_DECIMALS)

    def without(self, ids: Iterable[str]) -> Layout:
        """Return the layout without the rectangles of *ids*."""
        removed = {*ids}
        if removed.isdisjoint(self.rectangles):
            return self
        remaining = {id_: each for id_, each in self.rectangles.items() if id_ not in removed}
        return replace(self, rectangles=remaining)


def layout_problems(resources: Iterable[Resource], layout: Layout) -> Iterator[ValidationIssue]:
    """Yield the errors of *layout*: unknown ids, and shares that contradict its rectangles."""
    ids = set()
    for index, resource in enumerate(resources):
        ids.add(resource.id)
        if resource.viewport is not None and resource.id in layout.rectangles:
            share = layout.share(resource.id)
            if resource.viewport != share:
                message = f"must be left out or {share:g}, as its rectangles say"
                yield ValidationIssue(
                    key=f"resources[{index}].viewport",
                    message=f"{message}, is {resource.viewport:g}",
                )
    for id_ in (id_ for id_ in layout.rectangles if id_ not in ids):
        yield ValidationIssue(key="layout.rectangles", message=f"no resource has the id {id_!r}")


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedGroup:
    """A node of the recorded tree without data: an idle stream of HTTP/2, or a placeholder.

    It has a share by *weight* among the children of an earlier group, or of the root.

    Raises:
        PageError: if it has no name, or a weight out of range.
    """

    name: str = field(metadata=declare(Text(is_needed=True), "its name, used by resources"))
    weight: int = field(
        default=DEFAULT_WEIGHT, metadata=declare(Integer(low=1, high=MAX_WEIGHT), "its weight")
    )
    depends_on: str = field(
        default="", metadata=declare(Text(), "an earlier group; empty for the root of the tree")
    )

    def __post_init__(self) -> None:
        validate(self, PageError)


def tree_problems(
    resources: Iterable[Resource], groups: Iterable[RecordedGroup]
) -> Iterator[ValidationIssue]:
    """Yield the errors of the recorded tree: duplicate names and missing parents."""
    ids = {resource.id: None for resource in resources}
    known: dict[str, None] = {}
    for number, group in enumerate(groups):
        key = f"recorded_groups[{number}]"
        if group.name in known or group.name in ids:
            message = f"{group.name!r} is the name of another group or the id of a resource"
            yield ValidationIssue(key=f"{key}.name", message=message)
        if group.depends_on and group.depends_on not in known:
            message = f"{group.depends_on!r} is not an earlier group"
            yield ValidationIssue(key=f"{key}.depends_on", message=message)
        known[group.name] = None
    for index, resource in enumerate(resources):
        for number, entry in enumerate(resource.recorded):
            parent = entry.depends_on
            key = f"resources[{index}].recorded[{number}].depends_on"
            if parent and parent not in known and parent not in ids:
                message = f"{parent!r} is neither a resource nor one of recorded_groups"
                yield ValidationIssue(key=key, message=message)
            elif parent == resource.id:
                yield ValidationIssue(key=key, message="must not be the resource itself")


def without_parents(resource: Resource, gone: Iterable[str]) -> Resource:
    """Return *resource*, moved below the tree's root if its recorded parent is in *gone*.

    >>> from h3sim.page import Kind, RecordedPriority, Resource
    >>> entry = RecordedPriority(depends_on="a", weight=9, exclusive=True)
    >>> image = Resource(id="b", kind=Kind.IMAGE, size_bytes=9, recorded=(entry,))
    >>> without_parents(image, ["a"]).recorded[0].depends_on
    ''
    """
    names = {*gone}
    if not any(entry.depends_on in names for entry in resource.recorded):
        return resource
    recorded = (
        replace(entry, depends_on="", exclusive=None) if entry.depends_on in names else entry
        for entry in resource.recorded
    )
    return replace(resource, recorded=tuple(recorded))
