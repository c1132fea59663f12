"""The tree of a recording: groups that a client declared, and what depends on what."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from h3sim.documents.declared import says, settle
from h3sim.documents.values import Text, Whole
from h3sim.errors import PageError, Problem
from h3sim.signals import DEFAULT_WEIGHT, MAX_WEIGHT

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from h3sim.page.resource import Resource

__all__ = ["RecordedGroup", "tree_problems", "without_parents"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedGroup:
    """A node of the recorded tree without data: an idle stream of HTTP/2, or a placeholder.

    It shares by *weight* below another group that stands before it, or below the root.

    Raises:
        PageError: if it has no name, or a weight that is out of range.
    """

    name: str = field(metadata=says(Text(is_needed=True), "what the resources call it"))
    weight: int = field(
        default=DEFAULT_WEIGHT, metadata=says(Whole(low=1, high=MAX_WEIGHT), "its weight")
    )
    depends_on: str = field(
        default="", metadata=says(Text(), "a group before it; empty for the root of the tree")
    )

    def __post_init__(self) -> None:
        settle(self, PageError)


def tree_problems(
    resources: Iterable[Resource], groups: Iterable[RecordedGroup]
) -> Iterator[Problem]:
    """Yield what is wrong with the recorded tree: what stands twice, and parents that are not."""
    ids = {resource.id: None for resource in resources}
    known: dict[str, None] = {}
    for number, group in enumerate(groups):
        key = f"recorded_groups[{number}]"
        if group.name in known or group.name in ids:
            message = f"{group.name!r} is the name of another group or the id of a resource"
            yield Problem(key=f"{key}.name", message=message)
        if group.depends_on and group.depends_on not in known:
            message = f"{group.depends_on!r} is no group that stands before it"
            yield Problem(key=f"{key}.depends_on", message=message)
        known[group.name] = None
    for index, resource in enumerate(resources):
        for number, entry in enumerate(resource.recorded):
            parent = entry.depends_on
            key = f"resources[{index}].recorded[{number}].depends_on"
            if parent and parent not in known and parent not in ids:
                message = f"{parent!r} is neither a resource nor one of recorded_groups"
                yield Problem(key=key, message=message)
            elif parent == resource.id:
                yield Problem(key=key, message="is the resource itself")


def without_parents(resource: Resource, gone: Iterable[str]) -> Resource:
    """Return *resource*, below the root of the tree wherever it depended on what is gone.

    >>> from h3sim.page import Kind, RecordedPriority, Resource
    >>> said = RecordedPriority(depends_on="a", weight=9, exclusive=True)
    >>> image = Resource(id="b", kind=Kind.IMAGE, size_bytes=9, recorded=(said,))
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
