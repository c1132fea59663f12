"""Recorded facts of a load as a whole, and the priority groups that its client declared."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from h3sim.errors import PageError, ValidationIssue
from h3sim.page.resource import MAX_TIME_NS
from h3sim.schema.fields import declare, validate
from h3sim.schema.values import Integer, MegabitsPerSecond, Milliseconds, TableOf, Text
from h3sim.signals import DEFAULT_WEIGHT, MAX_WEIGHT
from h3sim.units import to_ms

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from h3sim.page.resource import Resource


RECORDED_NETWORK = "recorded"
"""The name of the network of a page's own recording."""

_TIME = Milliseconds(low=0, high=to_ms(MAX_TIME_NS), hint="a day")


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedLoad:
    """The network estimated from a recording, and the recorded times.

    Times are relative to navigation start. Rate and RTT are either both known or both unknown.

    Raises:
        PageError: listing every value that is out of range, and a rate without an RTT.
    """

    rtt_ns: int | None = field(
        default=None,
        metadata=declare(Milliseconds(low=0, high=600_000), "the estimated round-trip time"),
    )
    rtt_from: str = field(default="", metadata=declare(Text(), "the method of its estimate"))
    rate_bps: int | None = field(
        default=None,
        metadata=declare(MegabitsPerSecond(low=1e-6, high=1e7), "the estimated downlink rate"),
    )
    rate_from: str = field(default="", metadata=declare(Text(), "the method of its estimate"))
    protocol: str = field(
        default="",
        metadata=declare(Text(), "the protocol of most requests, as the recorder calls it"),
    )
    finished_ns: int | None = field(
        default=None, metadata=declare(_TIME, "when the last resource was complete")
    )
    load_event_ns: int | None = field(default=None, metadata=declare(_TIME, "the load event"))
    largest_paint_ns: int | None = field(
        default=None, metadata=declare(_TIME, "the largest contentful paint")
    )
    speed_index_ns: int | None = field(default=None, metadata=declare(_TIME, "the SpeedIndex"))
    completed_ns: Mapping[str, int] = field(
        default_factory=dict,
        metadata=declare(
            TableOf(_TIME), "when each resource was complete, by id", key="completed_ms"
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
    """Return *resource*, moved below the root where its recorded parent is in *gone*.

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
