"""What follows from what happens to a resource, as a page says it: worked out once a page."""

from __future__ import annotations

from functools import cached_property
from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple

from h3sim.page.resource import FLAGS, At

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from h3sim.page.resource import Resource

__all__ = ["Graph", "Triggers"]

_FACTS = attrgetter("kind._value_", "fetchpriority._value_", *FLAGS.values())
"""Of enums their text: the hash of a member is a function of Python."""


class Triggers(NamedTuple):
    """What follows from what happens to one resource; all are told by their indices in the page."""

    at_request: tuple[tuple[int, int], ...]
    """From its request: (delay in ns, child)."""
    at_offset: tuple[tuple[int, int, int], ...]
    """From so many bytes of its stream: (bytes, child, delay in ns), the nearest last; equal
    offsets fire in file order."""
    at_end: tuple[tuple[int, int], ...]
    """From its last byte: (delay in ns, child); it is parsed and executed at once."""


class Graph:
    """The resources of a page by their triggers, each by its index in `resources`."""

    resources: tuple[Resource, ...]

    @cached_property
    def index(self) -> dict[str, int]:
        """The index in `resources` of each id."""
        return {resource.id: at for at, resource in enumerate(self.resources)}

    @cached_property
    def root(self) -> int:
        """The index of the first resource that is asked for at navigation start."""
        return next(i for i, resource in enumerate(self.resources) if resource.discovered is None)

    @cached_property
    def roots(self) -> tuple[int, ...]:
        """The indices of all that is navigated to, `root` first: most pages have one."""
        others = (i for i, resource in enumerate(self.resources) if resource.begins_page)
        return tuple(dict.fromkeys((self.root, *others)))

    @cached_property
    def root_of(self) -> tuple[int, ...]:
        """The root that each resource belongs to."""
        from h3sim.page.roots import roots_by_resource  # on use: most pages have one

        return roots_by_resource(self.resources, self.index, self.roots)

    @cached_property
    def stream_bytes(self) -> tuple[int, ...]:
        """What the stream of each resource carries, by its index: every load asks."""
        return tuple(resource.stream_bytes for resource in self.resources)

    @cached_property
    def at_navigation(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """What is asked for whatever happens: when, after navigation start, and which index."""
        found = [
            (0 if resource.discovered is None else resource.discovered.delay_ns, index)
            for index, resource in enumerate(self.resources)
            if resource.discovered is None or resource.discovered.at is At.TIME
        ]
        return tuple(at_ns for at_ns, _ in found), tuple(index for _, index in found)

    @cached_property
    def sorts(self) -> dict[str, int]:
        """A number for each id; those of one number are alike in all that a rule can ask for."""
        numbers: dict[object, int] = {}
        return {
            resource.id: numbers.setdefault((_FACTS(resource), resource.begins_page), len(numbers))
            for resource in self.resources
        }

    @cached_property
    def children(self) -> dict[int, tuple[int, ...]]:
        """The indices of the resources that each index triggers, in file order."""
        found = children_of(self.resources, self.index)
        return {parent: tuple(indices) for parent, indices in found.items()}

    @cached_property
    def triggers(self) -> dict[int, Triggers]:
        """What follows from what happens to each index that has `children`."""
        return triggers_of(self.resources, self.children)


def children_of(resources: Sequence[Resource], index: Mapping[str, int]) -> dict[int, list[int]]:
    """Return the indices of the resources that each index triggers, in file order."""
    found: dict[int, list[int]] = {}
    for child, resource in enumerate(resources):
        discovery = resource.discovered
        if discovery is not None and discovery.by is not None and discovery.at is not At.TIME:
            found.setdefault(index[discovery.by], []).append(child)
    return found


def triggers_of(
    resources: Sequence[Resource], children: Mapping[int, Sequence[int]]
) -> dict[int, Triggers]:
    """Return what each resource triggers that triggers something."""
    return {
        parent: _triggers(resources, parent, triggered) for parent, triggered in children.items()
    }


def _triggers(resources: Sequence[Resource], parent: int, children: Sequence[int]) -> Triggers:
    above = resources[parent]
    at_request: list[tuple[int, int]] = []
    at_offset: list[tuple[int, int, int]] = []
    at_end: list[tuple[int, int]] = []
    for child in children:
        discovery = resources[child].discovered
        assert discovery is not None  # noqa: S101 - the root is nobody's child
        delay_ns = discovery.delay_ns
        if discovery.at is At.REQUEST:
            at_request.append((delay_ns, child))
        elif discovery.at is At.OFFSET:
            offset = above.header_bytes + (discovery.offset_bytes or 0)
            at_offset.append((offset, child, delay_ns))
        elif discovery.at is At.COMPLETE:
            at_end.append((delay_ns, child))
        elif discovery.at is At.EXECUTED:
            at_end.append((above.parse_ns + above.execute_ns + delay_ns, child))
    return Triggers(tuple(at_request), tuple(sorted(at_offset, reverse=True)), tuple(at_end))
